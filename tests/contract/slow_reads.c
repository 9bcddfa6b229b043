/* A slow disk: each pread takes FM_SLOW_READS_MS ms longer. A library for LD_PRELOAD (Linux, glibc). */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t pread64(int fd, void *data, size_t len, off64_t offset) {
    const char *ms = getenv("FM_SLOW_READS_MS");
    usleep(ms ? (useconds_t)strtoul(ms, NULL, 10) * 1000 : 0);
    return syscall(SYS_pread64, fd, data, len, offset);
}

ssize_t pread(int fd, void *data, size_t len, off_t offset) {
    return pread64(fd, data, len, offset);
}
