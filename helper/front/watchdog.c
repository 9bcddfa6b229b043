/*
 * One thread for each job. It sleeps until the next of the job's limits, on the monotonic clock. It only requests:
 * fm_job_stop_locked marks the job for an abort. When the engine's grace is over too, fm_engine_kill_locked ends the
 * engine; if the engine has other jobs, fm_engine_lose_job_locked settles only this one.
 *
 * Time in which the process was stopped (SIGSTOP, a debugger, suspend if the clock goes on) must not count. The thread
 * sleeps in slices and knows how long each should take. If a slice takes more than FM_STOPPED_MS longer (a tolerance
 * for a busy machine), the extra time is added to the job's times, as if they had happened that much later.
 */
#include "front/watchdog.h"
#include "base/clock.h"
#include "base/platform.h"
#include "front/engines/engine.h"
#include "front/engines/lost.h"
#include "front/engines/table.h"
#include "front/jobs.h"

#include <errno.h>
#include <stdlib.h>

#define SLICE_MS 500

struct watch {
    struct fm_front *front;
    struct fm_job *slot; /* the slot's condition may be waited on; the job is looked up by its number */
    uint64_t number;
    unsigned signs; /* result of fm_engine_signs_locked at the last look */
};

/* The limit that passes next, given how far the job has come. */
static struct fm_limit next_limit(const struct fm_job *job) {
    bool silent = fm_job_is_held(job) && job->engine->silent;
    bool begun = silent && !job->answer.opened; /* the engine has the job, but is silent before the first output */
    struct fm_progress progress = {.accepted = job->answer.opened || begun,
                                   .produced = job->produced,
                                   .silent = silent,
                                   .arrived_ms = job->arrived_ms,
                                   .accepted_ms = begun ? job->progress_ms : job->accepted_ms,
                                   .sign_ms = job->progress_ms};
    return fm_limit_next(&job->answer.request.limits, &progress);
}

/*
 * Counts the engine's progress for a job that waits for the engine, because all the engine's work comes before the job.
 */
static void note_signs(struct watch *watch, struct fm_job *job) {
    unsigned signs = fm_engine_signs_locked(job);
    bool waits = job->state == FM_JOB_QUEUED && !job->answer.request.unresolved;
    if (waits && signs != watch->signs) {
        job->progress_ms = fm_now_ms();
    }
    watch->signs = signs;
}

static void fire(struct fm_job *job, const struct fm_limit *limit) {
    struct fm_error error;
    fm_fail(&error, FM_TIMEOUT, "the %s limit of %lld ms was reached", limit->name, (long long)limit->length_ms);
    error.limit = limit->name;
    error.limit_ms = limit->length_ms;
    fm_job_stop_locked(job, &error);
}

static void end_engine(struct fm_engine *engine) {
    struct fm_error error;
    fm_fail(&error, FM_INTERNAL, "the engine was ended, because a request in it did not stop within %d ms",
            FM_GRACE_MS);
    fm_engine_kill_locked(engine, FM_END_CRASH, &error);
}

/* Acts on limits that have passed. Returns when to check again. The job may be settled afterwards. */
static int64_t check_job(struct fm_job *job) {
    int64_t now = fm_now_ms();
    if (job->stopping) {
        if (now >= job->grace_end_ms && fm_engine_can_lose_locked(job->engine)) {
            fm_engine_lose_job_locked(job->engine, job);
            return now;
        }
        if (now >= job->grace_end_ms) {
            end_engine(job->engine);
            return now + SLICE_MS; /* the engine's thread settles the job when the process is gone */
        }
        return job->grace_end_ms;
    }
    struct fm_limit limit = next_limit(job);
    if (now < limit.since_ms + limit.length_ms) {
        return limit.since_ms + limit.length_ms;
    }
    fire(job, &limit);
    return now;
}

/* Sleeps at most a slice, and does not count the time in which the process was stopped. */
static void sleep_until(struct watch *watch, int64_t due_ms) {
    int64_t before = fm_now_ms();
    int64_t until = due_ms < before + SLICE_MS ? due_ms : before + SLICE_MS;
    fm_front_wait_locked(watch->front, &watch->slot->changed, until);
    int64_t late = fm_now_ms() - until;
    struct fm_job *job = fm_job_by_number_locked(watch->front, watch->number);
    if (job && late > FM_STOPPED_MS) {
        job->arrived_ms += late;
        job->accepted_ms += late;
        job->progress_ms += late;
        job->grace_end_ms += late;
    }
}

static void *watchdog_main(void *argument) {
    struct watch watch = *(struct watch *)argument;
    free(argument);
    fm_front_enter(watch.front);
    struct fm_job *job;
    while ((job = fm_job_by_number_locked(watch.front, watch.number))) {
        note_signs(&watch, job);
        int64_t due = check_job(job);
        fm_front_pump_locked(watch.front);
        if (fm_job_by_number_locked(watch.front, watch.number)) {
            sleep_until(&watch, due);
        }
    }
    watch.front->threads--;
    pthread_cond_broadcast(&watch.front->quiet);
    fm_front_unlock(watch.front);
    return NULL;
}

int fm_watchdog_start_locked(struct fm_front *front, struct fm_job *job) {
    struct watch *watch = malloc(sizeof *watch);
    if (!watch) {
        return ENOMEM;
    }
    *watch = (struct watch){.front = front, .slot = job, .number = job->number, .signs = fm_engine_signs_locked(job)};
    int error = fm_thread_start(watchdog_main, watch);
    if (error) {
        free(watch);
        return error;
    }
    front->threads++;
    return 0;
}
