/* Runs the server on two descriptors, one for input and one for output. */
#ifndef SY_MCP_SERVE_H
#define SY_MCP_SERVE_H

#include "mcp/caller.h"

struct sy_serve {
    int in;
    int out;
    int end_fd; /* readable when this process should end (fm_watch_for_end); -1: none */
    struct sy_policy policy;
    /* These are as in caller.h, and are called on the thread that works on the desktop. */
    enum fm_code (*open_desktop)(void *context, int cancel_fd, struct sy_desktop *desktop, struct fm_error *error);
    void (*furnish)(void *context, int cancel_fd, struct sy_world *world);
    void (*dismiss)(void *context);
    void *open_context;
};

/*
 * Serves until the input ends. Requests that were read before the end are still answered, if the answers are ready
 * within a second. Blocks. Call it once, on the first thread; SIGPIPE is ignored from then on. `*clean` false: work on
 * the desktop did not end in time, and the caller should end the process by _exit. Returns an exit status.
 */
int sy_serve(const struct sy_serve *serve, bool *clean);

#endif
