/* The server on a pair of descriptors. */
#ifndef SY_MCP_SERVE_H
#define SY_MCP_SERVE_H

#include "mcp/caller.h"

struct sy_serve {
    int in;
    int out;
    int end_fd; /* readable when this process should end (fm_watch_for_end); -1: none */
    struct sy_policy policy;
    /* As in caller.h; called on the thread that works on the desktop. */
    enum fm_code (*open_desktop)(void *context, int cancel_fd, struct sy_desktop *desktop, struct fm_error *error);
    void (*furnish)(void *context, int cancel_fd, struct sy_world *world); /* these as in caller.h */
    void (*dismiss)(void *context);
    void *open_context;
};

/*
 * Serves until the input ends: what was asked by then is still answered, as far as it is ready in a second. Blocks.
 * Call it once, on the first thread; SIGPIPE is ignored from then on. False in `*clean`: the desktop did not let go,
 * and this process should end by _exit. Returns an exit status.
 */
int sy_serve(const struct sy_serve *serve, bool *clean);

#endif
