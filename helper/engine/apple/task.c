/*
 * Stopping a task. A stream stops when it is released, any other task when it is cancelled; both are only requests. If
 * the model has called a tool, the library waits for the result even after such a request, and takes a result only
 * while it waits. So each call is answered again and again until the last callback has come.
 */
#include "engine/apple/task.h"
#include "base/clock.h"

#include <string.h>

#define SLICE_MS 1000

void fm_apple_cancel(struct fm_apple_running *running) {
    if (running->cancelled_ms) {
        return;
    }
    running->cancelled_ms = fm_now_ms();
    if (running->is_stream) {
        running->api->release(running->ref);
        running->ref = NULL;
    } else {
        running->api->cancel(running->ref);
    }
}

static void take_calls(struct fm_apple_running *running, int64_t now) {
    struct fm_apple_call calls[FM_APPLE_CALLS_MAX];
    size_t count = fm_apple_take_calls(calls);
    running->called_ms = count > 0 ? now : running->called_ms;
    for (size_t i = 0; i < count; i++) {
        if (running->call_count == FM_APPLE_CALLS_MAX) {
            running->api->release(calls[i].arguments);
            continue;
        }
        running->calls[running->call_count++] = calls[i];
        running->collected = running->finished_ms ? running->collected : running->call_count;
    }
}

/* Whether it is time to answer the calls. Call it when the inbox has no more calls. */
static bool calls_are_due(const struct fm_apple_running *running, int64_t now) {
    if (!running->cancelled_ms || running->call_count == 0) {
        return false;
    }
    if (running->finished_ms) {
        return now - running->finished_ms >= FM_APPLE_FINISH_MS;
    }
    return now - running->called_ms >= FM_APPLE_CALLS_MS || now - running->cancelled_ms >= FM_APPLE_ANSWER_MS;
}

/* Answers each call. An answer for which the library does not wait yet, or not any more, is lost; that is harmless. */
static void finish_calls(struct fm_apple_running *running, int64_t now) {
    if (!calls_are_due(running, now)) {
        return;
    }
    running->finished_ms = now;
    for (size_t i = 0; i < running->call_count; i++) {
        running->api->tool_finish(running->tools->refs[running->calls[i].tool], running->calls[i].call, "");
    }
}

bool fm_apple_step(struct fm_apple_running *running) {
    fm_apple_inbox_wait(fm_now_ms() + (running->cancelled_ms ? FM_APPLE_FINISH_MS : SLICE_MS));
    int64_t now = fm_now_ms();
    take_calls(running, now);
    if (fm_apple_task_ended(running->task)) {
        return true;
    }
    finish_calls(running, now);
    return !running->cancelled_ms || fm_now_ms() - running->cancelled_ms < FM_APPLE_STOP_MS;
}

bool fm_apple_finish_task(struct fm_apple_running *running, const struct fm_kit_job *job) {
    while (!fm_apple_task_ended(running->task)) {
        if (fm_kit_job_aborted(job)) {
            fm_apple_cancel(running);
        }
        if (!fm_apple_step(running)) {
            return false;
        }
    }
    return true;
}

void fm_apple_running_free(struct fm_apple_running *running) {
    take_calls(running, 0);
    for (size_t i = 0; i < running->call_count; i++) {
        running->api->release(running->calls[i].arguments);
    }
    if (running->task->content) {
        running->api->release(running->task->content);
    }
    if (running->ref) {
        running->api->release(running->ref);
    }
    fm_apple_task_free(running->task);
}
