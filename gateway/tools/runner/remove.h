/* Removes a folder that an untrusted program has written to. */
#ifndef GW_TOOLS_RUNNER_REMOVE_H
#define GW_TOOLS_RUNNER_REMOVE_H

#include <stdbool.h>

/*
 * Removes the folder with all that is in it, however deep, without following a link. No process may use it any more.
 * False: something is left. Blocks on the disk.
 */
bool gw_remove_folder(const char *path);

#endif
