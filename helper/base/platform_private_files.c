/* private_files.h on Linux and macOS. */
#include "base/platform_os.h"
#include "base/private_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER_MODE     (S_IRUSR | S_IWUSR | S_IXUSR)
#define FILE_MODE       (S_IRUSR | S_IWUSR)
#define OTHERS_WRITE    (S_IWGRP | S_IWOTH)
#define OTHERS_ANYTHING (S_IRWXG | S_IRWXO)

bool fm_cache_folder(char *path, size_t size) {
    const char *home = getenv("HOME");
    const char *named = fm_os_cache_variable ? getenv(fm_os_cache_variable) : NULL;
    int len = -1;
    if (named && named[0] == '/') {
        len = snprintf(path, size, "%s", named);
    } else if (home && home[0] == '/') {
        len = snprintf(path, size, "%s/%s", home, fm_os_cache_name);
    }
    while (len > 1 && (size_t)len < size && path[len - 1] == '/') {
        path[--len] = '\0';
    }
    return len > 0 && (size_t)len < size;
}

/* Makes the folder and its parents, if they do not exist. An error here shows when the folder is opened. */
static void make_folders(const char *path) {
    char part[PATH_MAX];
    size_t len = strlen(path);
    if (len >= sizeof part) {
        return;
    }
    memcpy(part, path, len + 1);
    for (size_t i = 1; i <= len; i++) {
        if (path[i] == '/' || path[i] == '\0') {
            part[i] = '\0';
            mkdir(part, FOLDER_MODE);
            part[i] = path[i];
        }
    }
}

/* Closes the descriptor, and keeps errno. */
static int give_up(int fd, int error) {
    close(fd);
    errno = error;
    return -1;
}

int fm_private_folder_open(const char *path) {
    struct stat info;
    make_folders(path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &info) != 0) {
        return give_up(fd, errno);
    }
    bool ours = fd >= 0 && info.st_uid == geteuid() && !(info.st_mode & OTHERS_WRITE);
    return fd < 0 || ours ? fd : give_up(fd, EPERM);
}

static bool is_ours(const struct stat *info) {
    return S_ISREG(info->st_mode) && info->st_uid == geteuid() && !(info->st_mode & OTHERS_ANYTHING);
}

bool fm_private_folder_list(int folder, void (*each)(void *context, const struct fm_private_entry *entry),
                            void *context) {
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* fdopendir owns the descriptor from now on */
    DIR *entries = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *entry;
    struct stat info;
    if (!entries && copy >= 0) {
        close(copy);
    }
    if (!entries) {
        return false;
    }
    while ((entry = readdir(entries))) {
        if (fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && is_ours(&info)) {
            each(context, &(struct fm_private_entry){.name = entry->d_name,
                                                     .bytes = (int64_t)info.st_size,
                                                     .used_ms = fm_os_changed_ms(&info)});
        }
    }
    closedir(entries);
    return true;
}

int fm_private_file_open(int folder, const char *name) {
    struct stat info;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &info) != 0) {
        return give_up(fd, errno);
    }
    if (fd >= 0 && !is_ours(&info)) {
        return give_up(fd, EPERM);
    }
    if (fd >= 0) {
        futimens(fd, NULL); /* on a read-only file system the times stay as they are */
    }
    return fd;
}

int fm_private_file_create(int folder, const char *name) {
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, FILE_MODE);
    if (fd >= 0 && fchmod(fd, FILE_MODE) != 0) { /* the mode does not depend on the umask */
        unlinkat(folder, name, 0);
        return give_up(fd, errno);
    }
    if (fd >= 0) {
        flock(fd, LOCK_EX | LOCK_NB); /* if the file system has no locks, the files of a killed process stay */
    }
    return fd;
}

int fm_private_file_append(int folder, const char *name, bool make) {
    struct stat info;
    int made = make ? O_CREAT | O_EXCL : 0;
    int fd = openat(folder, name, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | made, FILE_MODE);
    if (fd >= 0 && ((make && fchmod(fd, FILE_MODE) != 0) || fstat(fd, &info) != 0)) {
        return give_up(fd, errno);
    }
    return fd < 0 || is_ours(&info) ? fd : give_up(fd, EPERM);
}

bool fm_private_file_sync(int fd) {
    return fm_os_sync(fd) == 0;
}

bool fm_private_folder_sync(int folder) {
    return fsync(folder) == 0;
}

bool fm_private_file_cut(int fd, int64_t size) {
    return ftruncate(fd, (off_t)size) == 0;
}

bool fm_private_file_is_left(int folder, const char *name) {
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool left = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return left;
}

bool fm_private_file_is(int folder, const char *name, int fd) {
    struct stat named;
    struct stat opened;
    return fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &opened) == 0 &&
           named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

bool fm_private_file_rename(int folder, const char *from, const char *to) {
    return renameat(folder, from, folder, to) == 0;
}

void fm_private_file_remove(int folder, const char *name) {
    unlinkat(folder, name, 0);
}

int64_t fm_private_file_size(int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? (int64_t)info.st_size : -1;
}

bool fm_private_file_read(int fd, void *data, size_t len, int64_t offset) {
    char *at = data;
    while (len) {
        ssize_t got = pread(fd, at, len, (off_t)offset);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            return false;
        }
        at += got > 0 ? got : 0;
        offset += got > 0 ? got : 0;
        len -= got > 0 ? (size_t)got : 0;
    }
    return true;
}
