/*
 * Copies what an engine writes to its stderr, line by line, into our log. The pipe is read even if the log does not
 * show it, so that an engine never waits. The memory used does not grow.
 */
#ifndef FM_FRONT_ENGINES_RELAY_H
#define FM_FRONT_ENGINES_RELAY_H

#include "base/log.h"

#include <stdbool.h>
#include <stddef.h>

#define FM_RELAY_LINE FM_LOG_LINE_MAX /* bytes of a line that are kept: the log does not show more */

struct fm_relay {
    int fd;           /* the pipe; -1 after its end */
    const char *name; /* the engine's name, for the log */
    size_t len;
    char line[FM_RELAY_LINE];
};

/* Begins with the read end `fd` (taken over) and `name`, which must outlive the relay. */
void fm_relay_begin(struct fm_relay *relay, int fd, const char *name);

/* Reads the bytes that have come, once. False: no bytes have come. Never blocks. */
bool fm_relay_take(struct fm_relay *relay);

/*
 * Call it when the engine has ended: reads what is left and closes the pipe. If another process still writes to the
 * pipe, at most as much as a pipe holds is read. Never blocks.
 */
void fm_relay_end(struct fm_relay *relay);

#endif
