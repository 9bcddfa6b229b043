#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC_MAX 16

static bool begins_with(int fd, const char *magic) {
    char bytes[MAGIC_MAX];
    size_t len = strlen(magic);
    return len <= sizeof bytes && read(fd, bytes, len) == (ssize_t)len && memcmp(bytes, magic, len) == 0;
}

enum fm_code fm_file_fail_open(const char *what, int failure, const char *path, struct fm_error *error) {
    enum fm_code code = failure == EMFILE || failure == ENFILE ? FM_OVERLOADED : FM_UNAVAILABLE;
    return fm_fail(error, code, "can't open the %s (%s): %s", what, strerror(failure), path);
}

enum fm_code fm_file_check_magic(const char *path, const char *magic, struct fm_error *error) {
    struct stat info;
    enum fm_code code = FM_OK;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        code = fm_file_fail_open("file", errno, path, error);
    } else if (!S_ISREG(info.st_mode)) {
        code = fm_fail(error, FM_UNAVAILABLE, "this is not a regular file: %s", path);
    } else if (!begins_with(fd, magic)) {
        code = fm_fail(error, FM_UNAVAILABLE, "this is not a %s file: %s", magic, path);
    }
    if (fd >= 0) {
        close(fd);
    }
    return code;
}
