/*
 * What an engine writes to its stderr, line by line into our log. It is read whether it is shown or not, so that an
 * engine never waits for it; memory does not grow with it.
 */
#ifndef FM_FRONT_ENGINES_RELAY_H
#define FM_FRONT_ENGINES_RELAY_H

#include "base/log.h"

#include <stdbool.h>
#include <stddef.h>

#define FM_RELAY_LINE FM_LOG_LINE_MAX /* bytes of a line that are kept: the log shows no more */

struct fm_relay {
    int fd;           /* the pipe; -1 from its end on */
    const char *name; /* the engine's, for the log */
    size_t len;
    char line[FM_RELAY_LINE];
};

/* Begins with the read end `fd` (taken over) and `name`, which must outlive the relay. */
void fm_relay_begin(struct fm_relay *relay, int fd, const char *name);

/* Takes what is there, once; false: nothing is. Never blocks. */
bool fm_relay_take(struct fm_relay *relay);

/*
 * The engine has ended: takes what is left and closes the pipe. What a process that outlives the engine writes still is
 * taken only up to what a pipe holds. Never blocks.
 */
void fm_relay_end(struct fm_relay *relay);

#endif
