/*
 * Answers the requests that are about the desktop, one at a time, on one thread. The desktop is opened when the first
 * of them comes: clients start servers only to ask what they are.
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
    bool forged;               /* the state that came back is not one that was given for this request */
    struct fm_buf question;
    char state[SY_STATE_SIZE];
    /* Makes the desktop, which then belongs to the caller. Its `wait` fails while `cancel_fd` is readable. */
    enum fm_code (*open_desktop)(void *context, int cancel_fd, struct sy_desktop *desktop, struct fm_error *error);
    void *open_context;
    /* Sets what the world has besides the desktop; NULL: nothing. */
    void (*furnish)(void *context, struct sy_world *world);
    int cancel_fd;
    /* Takes a line of progress of the request that is being answered. */
    void (*tell)(void *context, const char *line, size_t len);
    void *tell_context;
};

/* The desktop is open, or `error` says why it is not: the next call tries again. */
FM_MUST_USE enum fm_code sy_caller_open(struct sy_caller *caller, struct fm_error *error);

/* Answers the request: `reply` (empty) has one line then. */
void sy_caller_answer(struct sy_caller *caller, const struct sy_request *request, struct fm_buf *reply);

/* Frees the desktop and what was kept. */
void sy_caller_close(struct sy_caller *caller);

/* ---- what it calls: members of a result, or a fault ---- */

typedef bool sy_answer(struct sy_caller *caller, const struct sy_request *request, struct fm_json_writer *w,
                       struct sy_fault *fault);

sy_answer sy_tools_call, sy_resources_read, sy_prompts_get;

#endif
