/* fm-system preset: lists, saves and deletes presets. */
#ifndef SY_CLI_PRESET_H
#define SY_CLI_PRESET_H

#include "desktop/backend.h"

/*
 * Opens the desktop, which the caller frees. `context` is the one given to sy_preset_main; `cancel_fd` -1: nothing is
 * cancelled.
 */
typedef enum fm_code sy_open_desktop(void *context, int cancel_fd, struct sy_desktop *desktop, struct fm_error *error);

/*
 *     preset list [--json]
 *     preset save NAME [--tabs] [--replace]
 *     preset delete NAME
 *
 * argv[0] is "preset". Only `save` opens the desktop. Results go to stdout, errors to stderr. Returns an exit status of
 * sysexits.h.
 */
int sy_preset_main(int argc, char **argv, sy_open_desktop *open, void *context);

#endif
