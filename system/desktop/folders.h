/* Folders of the user's in which work is going on. */
#ifndef SY_FOLDERS_H
#define SY_FOLDERS_H

#include <stddef.h>

/*
 * Fills `paths` with folders below `home` that have a .git, those that changed last first; at most `max`, each the
 * caller's to free. Looks three folders deep, into no hidden one, and at 2,000 names at most, so that it takes
 * milliseconds. Returns how many. Blocks on the disk.
 */
size_t sy_git_folders(const char *home, char **paths, size_t max);

#endif
