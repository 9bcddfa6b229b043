/*
 * Data that the library's threads leave for the engine thread. A callback copies data into a task, or notes a tool
 * call, and wakes the engine thread. It does nothing else on the library's thread.
 *
 * There is one inbox in the process, because a tool's callback has no parameter that could name an inbox. So an engine
 * has one job at a time. A task belongs to the engine thread, which frees it after its last callback, never before.
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

#define FM_APPLE_CALLS_MAX 128 /* calls that can wait at once; ENGINE.md allows an answer this many */

/* Zeroed by fm_apple_task_init; written by callbacks under the inbox's lock. */
struct fm_apple_task {
    struct fm_buf text; /* the last snapshot */
    struct fm_buf ends; /* a size_t for each snapshot that was longer than the one before: its length */
    struct fm_buf why;  /* the text of an error; NUL-terminated once the task has ended */
    bool rewritten;     /* a snapshot did not begin with the text of the snapshot before */
    bool no_memory;     /* data for the task could not be copied */
    bool ended;         /* the last callback came */
    int status;
    fm_apple_ref content; /* the content of the last callback; the engine releases it; NULL: none */
    int tokens;           /* the result of a task that counts tokens */

    size_t told; /* engine thread: bytes of `text` that fm_apple_next_piece has handed out */
    size_t piece;
};

/* Makes the task ready for its first callback. Do not call it while another task can still call a tool. */
void fm_apple_task_init(struct fm_apple_task *task);

/* Frees what a task owns. Call it after the task's last callback, or before its first. `content` is not released. */
void fm_apple_task_free(struct fm_apple_task *task);

/* The callbacks; `user` is the task. Any thread. They wait only for a lock that is held for the time of a copy. */
fm_apple_text_fn fm_apple_on_text;
fm_apple_content_fn fm_apple_on_content;
fm_apple_count_fn fm_apple_on_count;

/* The callback of tool number `index` (less than FM_TOOLS_MAX). */
fm_apple_tool_fn *fm_apple_trampoline(size_t index);

/* Makes the inbox. Call it once, before any other call. False: the system refused. */
FM_MUST_USE bool fm_apple_inbox_init(void);

/* Makes the current call of fm_apple_inbox_wait return. Without a current call, the next call returns at once. Any
 * thread. */
void fm_apple_inbox_wake(void);

/* Waits until a callback or fm_apple_inbox_wake has come since the last call, or fm_now_ms() is `until_ms`. */
void fm_apple_inbox_wait(int64_t until_ms);

/* Whether the last callback of the task came. */
bool fm_apple_task_ended(const struct fm_apple_task *task);

/*
 * Copies what the next snapshot has added into `piece`, which is emptied before. False when there is nothing new; then
 * `*rewritten` says whether the reason is that a snapshot took back text of an earlier one.
 */
FM_MUST_USE bool fm_apple_next_piece(struct fm_apple_task *task, struct fm_buf *piece, bool *rewritten);

/* Takes the calls that came since the last time from the inbox, up to FM_APPLE_CALLS_MAX. Returns how many. */
size_t fm_apple_take_calls(struct fm_apple_call *calls);

#endif
