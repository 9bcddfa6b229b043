/*
 * Answers the requests that are about the desktop, one at a time, on one thread. The desktop is opened only when the
 * first of them comes, because clients often start a server just to ask for its lists.
 */
#ifndef SY_MCP_CALLER_H
#define SY_MCP_CALLER_H

#include "commands/confirm.h"
#include "mcp/message.h"
#include "mcp/policy.h"

struct sy_caller {
    struct sy_policy policy;
    struct sy_world world;
    bool open;
    struct sy_confirm confirm; /* set by sy_caller_open */
    bool asks;                 /* the answer is a question: ask.h */
    bool forged;               /* the state that came back was not given for this request */
    struct fm_buf question;
    char state[SY_STATE_SIZE];
    /* Makes the desktop; `struct sy_caller` then owns it. The desktop's `wait` fails while `cancel_fd` is readable. */
    enum fm_code (*open_desktop)(void *context, int cancel_fd, struct sy_desktop *desktop, struct fm_error *error);
    void *open_context;
    /* `furnish` sets the members of the world besides the desktop. None of these members waits while `cancel_fd` is
     * readable. `dismiss` frees what `furnish` has made. Both may be NULL. */
    void (*furnish)(void *context, int cancel_fd, struct sy_world *world);
    void (*dismiss)(void *context);
    int cancel_fd;
    /* Takes a line of progress about the request that is being answered. */
    void (*tell)(void *context, const char *line, size_t len);
    void *tell_context;
};

/* Opens the desktop, unless it is open. On failure the next call tries again. */
FM_MUST_USE enum fm_code sy_caller_open(struct sy_caller *caller, struct fm_error *error);

/* Answers the request: writes one line to `reply`, which is empty before. */
void sy_caller_answer(struct sy_caller *caller, const struct sy_request *request, struct fm_buf *reply);

/* Frees the desktop and the rest of the world. */
void sy_caller_close(struct sy_caller *caller);

/* ---- functions for requests: each writes members of a result, or fills a fault ---- */

typedef bool sy_answer(struct sy_caller *caller, const struct sy_request *request, struct fm_json_writer *w,
                       struct sy_fault *fault);

sy_answer sy_tools_call, sy_resources_read, sy_prompts_get;

#endif
