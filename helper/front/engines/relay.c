/* Reads an engine's stderr and logs it line by line. */
#include "front/engines/relay.h"
#include "base/log.h"
#include "base/platform.h"

#include <string.h>

#define READ_BYTES 4096
#define LAST_READS 32 /* 128 KiB, twice what a pipe holds (pipe(7)) */

void fm_relay_begin(struct fm_relay *relay, int fd, const char *name) {
    relay->fd = fd;
    relay->name = name;
    relay->len = 0;
}

/* Logs a line. Empty lines, and a carriage return at the end of a line, are left out. */
static void end_line(struct fm_relay *relay) {
    size_t len = relay->len;
    len -= len && relay->line[len - 1] == '\r';
    if (len) {
        fm_log_relay(relay->name, relay->line, len);
    }
    relay->len = 0;
}

static void add_bytes(struct fm_relay *relay, const char *bytes, size_t len) {
    size_t room = sizeof relay->line - relay->len;
    len = len < room ? len : room;
    memcpy(relay->line + relay->len, bytes, len);
    relay->len += len;
}

static void feed(struct fm_relay *relay, const char *bytes, size_t len) {
    const char *newline;
    while ((newline = memchr(bytes, '\n', len))) {
        size_t step = (size_t)(newline - bytes);
        add_bytes(relay, bytes, step);
        end_line(relay);
        bytes += step + 1;
        len -= step + 1;
    }
    add_bytes(relay, bytes, len);
}

static void close_pipe(struct fm_relay *relay) {
    if (relay->fd >= 0) {
        fm_close(relay->fd);
    }
    relay->fd = -1;
}

bool fm_relay_take(struct fm_relay *relay) {
    struct fm_waited waited = {.fd = relay->fd, .input = true};
    char bytes[READ_BYTES];
    if (relay->fd < 0 || fm_wait(&waited, 1, 0) != 1) {
        return false;
    }
    ssize_t got = fm_read(relay->fd, bytes, sizeof bytes);
    if (got <= 0) {
        close_pipe(relay);
        return false;
    }
    feed(relay, bytes, (size_t)got);
    return true;
}

void fm_relay_end(struct fm_relay *relay) {
    for (int reads = 0; reads < LAST_READS && fm_relay_take(relay); reads++) {
    }
    end_line(relay);
    close_pipe(relay);
}
