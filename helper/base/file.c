/* Opening, reading and creating files by path. The caller never waits, even if a FIFO or a device is at the path. */
#include "base/file.h"
#include "base/platform.h"
#include "base/platform_os.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define MAGIC_MAX 16

static bool begins_with(int fd, const char *magic) {
    char bytes[MAGIC_MAX];
    size_t len = strlen(magic);
    return len <= sizeof bytes && read(fd, bytes, len) == (ssize_t)len && memcmp(bytes, magic, len) == 0;
}

enum fm_code fm_file_fail_open(const char *what, int failure, const char *path, struct fm_error *error) {
    enum fm_code code = failure == EMFILE || failure == ENFILE ? FM_OVERLOADED : FM_UNAVAILABLE;
    const char *hint = failure == EACCES || failure == EPERM ? "; correct its permissions" : "";
    return fm_fail(error, code, "can't open the %s (%s%s): %s", what, strerror(failure), hint, path);
}

/* Opens the regular file `path` into `*fd`. */
static enum fm_code open_regular(const char *path, int *fd, struct fm_error *error) {
    bool regular;
    *fd = fm_os_open(path, false, &regular);
    if (*fd < 0) {
        return fm_file_fail_open("file", errno, path, error);
    }
    return regular ? FM_OK : fm_fail(error, FM_UNAVAILABLE, "this is not a regular file: %s", path);
}

enum fm_code fm_file_check_magic(const char *path, const char *magic, struct fm_error *error) {
    int fd;
    enum fm_code code = open_regular(path, &fd, error);
    if (code == FM_OK && !begins_with(fd, magic)) {
        code = fm_fail(error, FM_UNAVAILABLE, "this is not a %s file: %s", magic, path);
    }
    if (fd >= 0) {
        close(fd);
    }
    return code;
}

/* Reads at most `limit` bytes. */
static enum fm_code read_from(int fd, const char *path, struct fm_buf *text, size_t limit, struct fm_error *error) {
    ssize_t got;
    do {
        char bytes[4096];
        got = fm_read(fd, bytes, limit < sizeof bytes ? limit : sizeof bytes);
        fm_buf_append(text, bytes, got > 0 ? (size_t)got : 0);
        limit -= got > 0 ? (size_t)got : 0;
    } while (got > 0 && limit > 0 && !text->failed);
    if (got < 0) {
        return fm_fail(error, FM_UNAVAILABLE, "can't read the file (%s): %s", strerror(errno), path);
    }
    return text->failed ? fm_fail(error, FM_UNAVAILABLE, "the file is too long: %s", path) : FM_OK;
}

enum fm_code fm_file_read(const char *path, struct fm_buf *text, struct fm_error *error) {
    return fm_file_read_start(path, text, SIZE_MAX, error);
}

enum fm_code fm_file_read_start(const char *path, struct fm_buf *text, size_t limit, struct fm_error *error) {
    int fd;
    enum fm_code code = open_regular(path, &fd, error);
    code = code ? code : read_from(fd, path, text, limit, error);
    if (fd >= 0) {
        close(fd);
    }
    return code;
}

enum fm_code fm_file_create(const char *path, struct fm_error *error) {
    bool regular;
    int fd = fm_os_open(path, true, &regular);
    if (fd < 0) {
        return fm_file_fail_open("file", errno, path, error);
    }
    close(fd);
    return regular ? FM_OK : fm_fail(error, FM_UNAVAILABLE, "not a regular file: %s", path);
}

enum fm_code fm_file_make_private(const char *path, struct fm_error *error) {
    int failure = fm_os_make_private(path);
    if (failure) {
        return fm_fail(error, FM_UNAVAILABLE, "can't make the file private (%s): %s", strerror(failure), path);
    }
    return FM_OK;
}

int fm_file_check_readable(const char *path) {
    bool ignored;
    int fd = fm_os_open(path, false, &ignored);
    if (fd < 0) {
        return errno;
    }
    close(fd);
    return 0;
}

struct fm_file_id fm_file_identify(const char *path) {
    struct fm_file_info info;
    fm_file_examine(path, &info);
    return info.id;
}

bool fm_file_id_equal(const struct fm_file_id *one, const struct fm_file_id *other) {
    return one->device == other->device && one->inode == other->inode;
}
