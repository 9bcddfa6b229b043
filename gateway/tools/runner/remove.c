/*
 * Removes a tree with one descriptor. It goes down into a folder's first subfolder until a folder has none, removes the
 * entries of that folder, goes up by "..", and looks again. So neither the depth nor the length of a path matters.
 */
#include "tools/runner/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEPS_MAX 1000000 /* if more were needed, something can't be removed, such as an immutable file */
#define FOLDER    (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int open_folder(int at, const char *name) {
    int fd = openat(at, name, FOLDER);
    if (fd < 0 && errno == EACCES && fchmodat(at, name, 0700, 0) == 0) {
        fd = openat(at, name, FOLDER);
    }
    if (fd >= 0) {
        fchmod(fd, 0700); /* so that its entries can be removed */
    }
    return fd;
}

/*
 * Removes the entries that can be removed. Returns the first subfolder that can be opened and is not empty; -1: there
 * is no such subfolder.
 */
static int clear(int folder) {
    int next = -1;
    int copy = openat(folder, ".", FOLDER);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *entry;
    while (entries && next < 0 && (entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            unlinkat(folder, entry->d_name, 0) == 0 || unlinkat(folder, entry->d_name, AT_REMOVEDIR) == 0) {
            continue;
        }
        next = open_folder(folder, entry->d_name);
    }
    if (entries) {
        closedir(entries);
    }
    return next;
}

bool gw_remove_folder(const char *path) {
    int folder = open_folder(AT_FDCWD, path);
    long depth = 0;
    for (long step = 0; folder >= 0; step++) {
        int next = step < STEPS_MAX ? clear(folder) : -1;
        if (step >= STEPS_MAX) {
            depth = 0;
        }
        if (next < 0) {
            next = depth > 0 ? openat(folder, "..", FOLDER) : -1;
            depth--;
        } else {
            depth++;
        }
        close(folder);
        folder = next;
    }
    return rmdir(path) == 0 || errno == ENOENT;
}
