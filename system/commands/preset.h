/* Makes a preset of the windows on the screen. */
#ifndef SY_PRESET_H
#define SY_PRESET_H

#include "commands/table.h"

/*
 * Makes a preset, in the form of desktop/presets.h, from the present windows, and with `tabs` also from the addresses
 * of Chrome's tabs. The caller frees it by json_object_put. `left_out` gets a line for each window or tab that can't be
 * in a preset: "NAME: why". Fails with FM_UNAVAILABLE, or the reason nothing_to_save.
 */
FM_MUST_USE enum fm_code sy_preset_of_layout(struct sy_world *world, const char *name, bool tabs,
                                             struct json_object **preset, struct fm_buf *left_out,
                                             struct fm_error *error);

#endif
