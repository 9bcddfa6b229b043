/* The state folder. Its paths do not depend on the working folder, and only its owner can read what is in it. */
#include "config/paths.h"

#include "base/platform.h"
#include "base/private_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static enum fm_code fail_file(struct fm_error *error, const char *what, const char *path) {
    return fm_fail(error, FM_UNAVAILABLE, "can't %s %s: %s", what, path, strerror(errno));
}

static bool join_path(char *path, const char *folder, const char *name) {
    return snprintf(path, GW_PATH_MAX, "%s/%s", folder, name) < GW_PATH_MAX - 16; /* room for ".new" */
}

static enum fm_code find_home(char *home, struct fm_error *error) {
    const char *given = getenv("PROJ_JARVIS_HOME");
    const char *user = getenv("HOME");
    if (given && *given == '/' && strlen(given) < GW_PATH_MAX) {
        memcpy(home, given, strlen(given) + 1);
    } else if (given && *given) {
        return fm_fail(error, FM_UNAVAILABLE, "PROJ_JARVIS_HOME must be an absolute path, not %.200s", given);
    } else if (!user || *user != '/' || !join_path(home, user, ".proj-jarvis")) {
        return fm_fail(error, FM_UNAVAILABLE, "HOME is not set to a folder: set it, or PROJ_JARVIS_HOME");
    }
    return FM_OK;
}

enum fm_code gw_paths_open(struct gw_paths *paths, struct fm_error *error) {
    enum fm_code code = find_home(paths->home, error);
    if (code != FM_OK) {
        return code;
    }
    const char *home = paths->home;
    if (!join_path(paths->config, home, "config.json") || !join_path(paths->token, home, "token") ||
        !join_path(paths->lock, home, "lock") || !join_path(paths->sessions, home, "sessions") ||
        !join_path(paths->blobs, home, "blobs") || !join_path(paths->audit, home, "audit.jsonl") ||
        !join_path(paths->memory_db, home, "memory.db")) {
        return fm_fail(error, FM_UNAVAILABLE, "the path of the state folder is too long: %.200s", home);
    }
    int folder = fm_private_folder_open(home);
    if (folder < 0 && errno == EPERM) {
        return fm_fail(error, FM_UNAVAILABLE, "%s must belong to you, and nobody else may write to it: chmod 700 %s",
                       home, home);
    }
    if (folder < 0) {
        return fail_file(error, "open the folder", home);
    }
    if (fchmod(folder, 0700) != 0) {
        code = fail_file(error, "make private", home);
    }
    fm_close(folder);
    return code;
}

enum fm_code gw_paths_lock(const struct gw_paths *paths, int *fd, struct fm_error *error) {
    char text[32] = "";
    int lock = open(paths->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0) {
        return fail_file(error, "open", paths->lock);
    }
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        ssize_t len = pread(lock, text, sizeof text - 1, 0);
        text[len > 0 ? len : 0] = 0;
        text[strcspn(text, "\n")] = 0;
        close(lock);
        return fm_fail(error, FM_UNAVAILABLE,
                       "another fm-gateway (process %s) uses %s: end it, or set PROJ_JARVIS_HOME to another folder",
                       *text ? text : "unknown", paths->home);
    }
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(lock, 0) != 0 || pwrite(lock, text, (size_t)len, 0) != len) {
        close(lock);
        return fail_file(error, "write", paths->lock);
    }
    *fd = lock;
    return FM_OK;
}

enum fm_code gw_paths_note_port(const struct gw_paths *paths, int fd, int port, struct fm_error *error) {
    char text[48];
    int len = snprintf(text, sizeof text, "%ld\n%d\n", (long)getpid(), port);
    return pwrite(fd, text, (size_t)len, 0) == len ? FM_OK : fail_file(error, "write", paths->lock);
}

enum fm_code gw_paths_find_port(const struct gw_paths *paths, int *port, struct fm_error *error) {
    char text[48] = "";
    int fd = open(paths->lock, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0;
    ssize_t len = held ? pread(fd, text, sizeof text - 1, 0) : 0;
    if (fd >= 0) {
        close(fd);
    }
    text[len > 0 ? len : 0] = 0;
    const char *second = strchr(text, '\n');
    *port = second ? (int)strtol(second + 1, NULL, 10) : 0;
    return *port > 0 ? FM_OK
                     : fm_fail(error, FM_UNAVAILABLE, "no fm-gateway is running with %s: start it first", paths->home);
}

enum fm_code gw_file_replace(const char *path, const char *text, size_t len, struct fm_error *error) {
    char name[GW_PATH_MAX];
    enum fm_code code = FM_OK;
    snprintf(name, sizeof name, "%s.new", path);
    unlink(name); /* left by a gateway that was killed */
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return fail_file(error, "create", name);
    }
    if (!fm_write_all(fd, text, len) || fsync(fd) != 0 || rename(name, path) != 0) {
        code = fail_file(error, "write", path);
        unlink(name);
    }
    close(fd);
    return code;
}
