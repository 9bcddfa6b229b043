/*
 * What the library's threads leave for the engine thread. A callback copies into a task, or notes a call of a tool, and
 * wakes the engine thread; nothing else happens on a thread of the library.
 *
 * There is one inbox in the process, because a tool's callback can't be told which one is meant: so an engine has one
 * job at a time. A task belongs to the engine thread, which frees it after its last callback, never before.
 */
#ifndef FM_ENGINE_APPLE_INBOX_H
#define FM_ENGINE_APPLE_INBOX_H

#include "base/buf.h"
#include "engine/apple/bindings.h"

#include <stdint.h>

#define FM_APPLE_TEXT_MAX (16u << 20) /* bytes of an answer */

/* A call of a tool that the library waits for. */
struct fm_apple_call {
    fm_apple_ref arguments; /* the engine releases them */
    unsigned tool;          /* the number of the tool's trampoline */
    unsigned call;          /* the library's number */
};

#define FM_APPLE_CALLS_MAX 128 /* that can wait at once; ENGINE.md allows an answer as many */

/* Zeroed by fm_apple_task_init; written by callbacks under the inbox's lock. */
struct fm_apple_task {
    struct fm_buf text; /* the last snapshot */
    struct fm_buf ends; /* a size_t for each snapshot that was longer than the one before: its length */
    struct fm_buf why;  /* the text of an error; NUL-terminated once the task has ended */
    bool rewritten;     /* a snapshot did not begin with the text of the snapshot before */
    bool no_memory;     /* something that the task should hold could not be copied */
    bool ended;         /* the last callback came */
    int status;
    fm_apple_ref content; /* of the last callback; the engine releases it; NULL: none */
    int tokens;           /* the result of a task that counts tokens */

    size_t told; /* engine thread: bytes of `text` that fm_apple_next_piece has handed out */
    size_t piece;
};

/* Makes the task ready for its first callback. Do not call it while another task can still call a tool. */
void fm_apple_task_init(struct fm_apple_task *task);

/* Call it after the task's last callback, or before its first. `content` is not released. */
void fm_apple_task_free(struct fm_apple_task *task);

/* The callbacks; `user` is the task. Any thread; wait for nothing but a lock that is held for a copy. */
fm_apple_text_fn fm_apple_on_text;
fm_apple_content_fn fm_apple_on_content;
fm_apple_count_fn fm_apple_on_count;

/* Tool number `index`'s callback (less than FM_TOOLS_MAX). */
fm_apple_tool_fn *fm_apple_trampoline(size_t index);

/* Makes the inbox. Call it once, before any other call. False: the system refused. */
FM_MUST_USE bool fm_apple_inbox_init(void);

/* The fm_apple_inbox_wait that waits now returns, or else the next one returns at once. Any thread. */
void fm_apple_inbox_wake(void);

/* Waits until a callback or fm_apple_inbox_wake came since the last time, or fm_now_ms() is `until_ms`. */
void fm_apple_inbox_wait(int64_t until_ms);

/* Whether the last callback of the task came. */
bool fm_apple_task_ended(const struct fm_apple_task *task);

/*
 * Copies what the next snapshot has added into `piece`, which is emptied before. False when there is nothing new; then
 * `*rewritten` tells whether that is because a snapshot took back what an earlier one said.
 */
FM_MUST_USE bool fm_apple_next_piece(struct fm_apple_task *task, struct fm_buf *piece, bool *rewritten);

/* Takes the calls that came since the last time out of the inbox, up to FM_APPLE_CALLS_MAX; returns how many. */
size_t fm_apple_take_calls(struct fm_apple_call *calls);

#endif
