/*
 * The versions of the two protocols. Each changes when its own protocol does, so that a change for hosts refuses no
 * engine.
 */
#ifndef FM_PROTOCOL_VERSION_H
#define FM_PROTOCOL_VERSION_H

#define FM_PROTOCOL_VERSION        1 /* with hosts: PROTOCOL.md */
#define FM_ENGINE_PROTOCOL_VERSION 1 /* with engines: ENGINE.md */

#endif
