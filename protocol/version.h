/*
 * The versions of the two protocols. Each version changes only with its protocol: a change of the host protocol must
 * not make engines incompatible.
 */
#ifndef FM_PROTOCOL_VERSION_H
#define FM_PROTOCOL_VERSION_H

#define FM_PROTOCOL_VERSION        1 /* with hosts: PROTOCOL.md */
#define FM_ENGINE_PROTOCOL_VERSION 1 /* with engines: ENGINE.md */

#endif
