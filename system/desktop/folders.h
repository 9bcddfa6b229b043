/* The user's git folders: the user probably works in them. */
#ifndef SY_FOLDERS_H
#define SY_FOLDERS_H

#include <stddef.h>

/*
 * Fills `paths` with at most `max` folders below `home` that have a .git, the last changed one first. The caller frees
 * each path. The search goes three folders deep, skips hidden folders, and looks at 2,000 names at most, so that it
 * takes only milliseconds. Returns how many there are. Blocks on the disk.
 */
size_t sy_git_folders(const char *home, char **paths, size_t max);

#endif
