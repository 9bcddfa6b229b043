/* Files that the user has opened lately, as desktops note them. */
#ifndef SY_RECENT_H
#define SY_RECENT_H

#include <stddef.h>

/*
 * Fills `paths` with at most `max` files of the user's list (freedesktop.org, "Desktop Bookmark Specification":
 * recently-used.xbel in $XDG_DATA_HOME or ~/.local/share), the latest first, without those that are marked private.
 * The caller frees each path. Returns how many there are; 0 also if there is no list. Blocks on the disk.
 */
size_t sy_recent_files(char **paths, size_t max);

#endif
