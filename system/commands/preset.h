/* A preset of what is on the screen. */
#ifndef SY_PRESET_H
#define SY_PRESET_H

#include "commands/table.h"

/*
 * Makes a preset, as desktop/presets.h has it, of the windows of now, and with `tabs` of the addresses of Chrome's
 * tabs. It is the caller's, for json_object_put. What can't be in one is told in `left_out`, a line each: "NAME: why".
 * unavailable; nothing_to_save.
 */
FM_MUST_USE enum fm_code sy_preset_of_layout(struct sy_world *world, const char *name, bool tabs,
                                             struct json_object **preset, struct fm_buf *left_out,
                                             struct fm_error *error);

#endif
