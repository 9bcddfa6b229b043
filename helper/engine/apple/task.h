/* A task of the library from its start to its last callback: waiting for it, and stopping it. Engine thread. */
#ifndef FM_ENGINE_APPLE_TASK_H
#define FM_ENGINE_APPLE_TASK_H

#include "engine/apple/inbox.h"
#include "engine/apple/tools.h"
#include "engine/kit/kit.h"

#define FM_APPLE_STOP_MS   700 /* a task that still runs this long after its cancel never ends; the front waits 750 */
#define FM_APPLE_CALLS_MS  50  /* after this time without another call, the model has made all its parallel calls */
#define FM_APPLE_ANSWER_MS 350 /* for this time after the cancel, calls are answered even if more calls come */
#define FM_APPLE_FINISH_MS 20  /* between two tries to answer calls of tools, whose results the library waits for */

/* A running task. */
struct fm_apple_running {
    const struct fm_apple_api *api;
    const struct fm_apple_tools *tools; /* tools that the task may call; NULL: none */
    struct fm_apple_task *task;
    fm_apple_ref ref; /* the task, which can be cancelled, or a stream, which ends when it is released */
    bool is_stream;
    int64_t cancelled_ms; /* 0: it is not cancelled */
    int64_t called_ms;    /* when the last call was taken */
    int64_t finished_ms;  /* time of the last try to answer calls; 0: none so far */
    struct fm_apple_call calls[FM_APPLE_CALLS_MAX];
    size_t call_count;
    size_t collected; /* calls that came before the library had an answer to any call: only these are passed on */
};

/* Begins to stop the task. One call is enough. */
void fm_apple_cancel(struct fm_apple_running *running);

/*
 * Waits until something has happened, or a second has passed; takes new calls of tools, and answers them if the task is
 * being stopped. False: FM_APPLE_STOP_MS have passed since the cancel, and only the end of the process helps. Until
 * that end, the task and all memory that it may use must stay unchanged.
 */
FM_MUST_USE bool fm_apple_step(struct fm_apple_running *running);

/* Waits for the task's end, and cancels it when `job` is aborted. False means the same as for fm_apple_step. */
FM_MUST_USE bool fm_apple_finish_task(struct fm_apple_running *running, const struct fm_kit_job *job);

/* Call it after the last callback. Releases the task, its result and the arguments of its calls. */
void fm_apple_running_free(struct fm_apple_running *running);

#endif
