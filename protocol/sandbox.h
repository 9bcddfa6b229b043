/* How an engine reports its sandbox: the object `sandbox` of engine.initialize and capabilities.get. */
#ifndef FM_PROTOCOL_SANDBOX_H
#define FM_PROTOCOL_SANDBOX_H

#include "base/platform.h"
#include "protocol/json_writer.h"

struct json_object;

/* Writes `sandbox` as one value. Pure. */
void fm_sandbox_write(const struct fm_sandbox *sandbox, struct fm_json_writer *w);

/*
 * Reads what an engine reports of its sandbox from `object` (borrowed, may be NULL) into `*sandbox`. False, with
 * `*sandbox` undefined, unless each member is there and has its type (ENGINE.md, Sandbox). Pure.
 */
FM_MUST_USE bool fm_sandbox_read(struct json_object *object, struct fm_sandbox *sandbox);

#endif
