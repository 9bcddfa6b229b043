/*
 * The callbacks on the library's threads, and how the engine thread gets their data. The lock is held only for the time
 * of a copy, and never while the library or the kit is called. So a callback never waits for our output.
 */
#include "engine/apple/inbox.h"
#include "base/clock.h"
#include "engine/kit/kit.h"

#include <pthread.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool woken;
    bool called; /* a tool was called since the last task began: later text is no part of an answer */
    struct fm_apple_call calls[FM_APPLE_CALLS_MAX];
    size_t call_count;
} inbox = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool fm_apple_inbox_init(void) {
    return fm_cond_init(&inbox.changed) == 0;
}

static void wake_locked(void) {
    inbox.woken = true;
    pthread_cond_signal(&inbox.changed);
}

void fm_apple_inbox_wake(void) {
    pthread_mutex_lock(&inbox.lock);
    wake_locked();
    pthread_mutex_unlock(&inbox.lock);
}

void fm_apple_inbox_wait(int64_t until_ms) {
    pthread_mutex_lock(&inbox.lock);
    while (!inbox.woken && fm_now_ms() < until_ms) {
        fm_cond_wait_until(&inbox.changed, &inbox.lock, until_ms);
    }
    inbox.woken = false;
    pthread_mutex_unlock(&inbox.lock);
}

/* ---- tasks ---- */

void fm_apple_task_init(struct fm_apple_task *task) {
    *task = (struct fm_apple_task){0};
    fm_buf_init(&task->text, FM_APPLE_TEXT_MAX);
    fm_buf_init(&task->ends, FM_APPLE_TEXT_MAX);
    fm_buf_init(&task->why, FM_APPLE_TEXT_MAX);
    pthread_mutex_lock(&inbox.lock);
    inbox.called = false;
    pthread_mutex_unlock(&inbox.lock);
}

void fm_apple_task_free(struct fm_apple_task *task) {
    fm_buf_free(&task->text);
    fm_buf_free(&task->ends);
    fm_buf_free(&task->why);
}

static void end_locked(struct fm_apple_task *task, int status, const char *why, size_t len) {
    task->status = status;
    fm_buf_append(&task->why, why, len);
    fm_buf_append_char(&task->why, '\0');
    task->no_memory = task->no_memory || task->why.failed;
    task->ended = true;
}

/*
 * Notes what a snapshot adds. A snapshot without new text is ignored, and so is a snapshot that comes after a tool
 * call.
 */
static void add_snapshot_locked(struct fm_apple_task *task, const char *text, size_t len) {
    size_t had = task->text.len;
    if (inbox.called) {
        return;
    }
    if (len < had || (had > 0 && memcmp(task->text.data, text, had) != 0)) {
        task->rewritten = true;
    } else if (len > had) {
        fm_buf_append(&task->text, text + had, len - had);
        fm_buf_append(&task->ends, &len, sizeof len);
        task->no_memory = task->no_memory || task->text.failed || task->ends.failed;
    }
}

void fm_apple_on_text(int status, const char *text, size_t len, void *user) {
    struct fm_apple_task *task = user;
    pthread_mutex_lock(&inbox.lock);
    if (status != 0 || !text) {
        end_locked(task, status, text, text ? len : 0);
    } else if (!task->rewritten && !task->no_memory) {
        add_snapshot_locked(task, text, len);
    }
    wake_locked();
    pthread_mutex_unlock(&inbox.lock);
}

void fm_apple_on_content(int status, fm_apple_ref content, void *user) {
    struct fm_apple_task *task = user;
    pthread_mutex_lock(&inbox.lock);
    task->content = content;
    end_locked(task, status, "", 0);
    wake_locked();
    pthread_mutex_unlock(&inbox.lock);
}

void fm_apple_on_count(int status, int tokens, const char *error, void *user) {
    struct fm_apple_task *task = user;
    pthread_mutex_lock(&inbox.lock);
    task->tokens = tokens;
    end_locked(task, status, error, error ? strlen(error) : 0);
    wake_locked();
    pthread_mutex_unlock(&inbox.lock);
}

bool fm_apple_task_ended(const struct fm_apple_task *task) {
    pthread_mutex_lock(&inbox.lock);
    bool ended = task->ended;
    pthread_mutex_unlock(&inbox.lock);
    return ended;
}

bool fm_apple_next_piece(struct fm_apple_task *task, struct fm_buf *piece, bool *rewritten) {
    size_t end = task->told;
    fm_buf_reset(piece);
    pthread_mutex_lock(&inbox.lock);
    bool more = (task->piece + 1) * sizeof end <= task->ends.len;
    if (more) {
        memcpy(&end, task->ends.data + task->piece * sizeof end, sizeof end);
        fm_buf_append(piece, task->text.data + task->told, end - task->told);
    }
    *rewritten = task->rewritten;
    pthread_mutex_unlock(&inbox.lock);
    task->piece += more;
    task->told = end;
    return more;
}

/* ---- tools ---- */

/*
 * If an answer has more calls than allowed, the last call gets no result. So its task does not end, and the engine ends
 * (task.h).
 */
static void note_call(unsigned tool, fm_apple_ref arguments, unsigned call) {
    pthread_mutex_lock(&inbox.lock);
    inbox.called = true;
    if (inbox.call_count < FM_APPLE_CALLS_MAX) {
        inbox.calls[inbox.call_count++] = (struct fm_apple_call){arguments, tool, call};
    }
    wake_locked();
    pthread_mutex_unlock(&inbox.lock);
}

size_t fm_apple_take_calls(struct fm_apple_call *calls) {
    pthread_mutex_lock(&inbox.lock);
    size_t count = inbox.call_count;
    memcpy(calls, inbox.calls, count * sizeof *calls);
    inbox.call_count = 0;
    pthread_mutex_unlock(&inbox.lock);
    return count;
}

/* There is a separate function for each tool of a job, because only the called function shows which tool is meant. */
#define TRAMPOLINE(high, low)                                                                                          \
    static void on_call_##high##low(fm_apple_ref arguments, unsigned call) {                                           \
        note_call(0x##high##low, arguments, call);                                                                     \
    }
#define NAME(high, low) on_call_##high##low,
#define SIXTEEN(DO, high)                                                                                              \
    DO(high, 0)                                                                                                        \
    DO(high, 1)                                                                                                        \
    DO(high, 2)                                                                                                        \
    DO(high, 3)                                                                                                        \
    DO(high, 4)                                                                                                        \
    DO(high, 5)                                                                                                        \
    DO(high, 6)                                                                                                        \
    DO(high, 7)                                                                                                        \
    DO(high, 8)                                                                                                        \
    DO(high, 9)                                                                                                        \
    DO(high, a)                                                                                                        \
    DO(high, b)                                                                                                        \
    DO(high, c)                                                                                                        \
    DO(high, d)                                                                                                        \
    DO(high, e)                                                                                                        \
    DO(high, f)
#define ALL(DO)                                                                                                        \
    SIXTEEN(DO, 0)                                                                                                     \
    SIXTEEN(DO, 1)                                                                                                     \
    SIXTEEN(DO, 2)                                                                                                     \
    SIXTEEN(DO, 3)                                                                                                     \
    SIXTEEN(DO, 4)                                                                                                     \
    SIXTEEN(DO, 5)                                                                                                     \
    SIXTEEN(DO, 6)                                                                                                     \
    SIXTEEN(DO, 7)

ALL(TRAMPOLINE)

static fm_apple_tool_fn *const trampolines[] = {ALL(NAME)};

_Static_assert(sizeof trampolines / sizeof trampolines[0] == FM_TOOLS_MAX, "one for each tool of a job");

fm_apple_tool_fn *fm_apple_trampoline(size_t index) {
    return trampolines[index];
}
