/* Jobs that an engine does not stop. Their slots stay taken until the engine reports that they have ended. */
#include "front/engines/lost.h"
#include "base/clock.h"
#include "front/engines/table.h"
#include "front/jobs.h"

bool fm_engine_can_lose_locked(const struct fm_engine *engine) {
    return engine->state == FM_ENGINE_READY && fm_engine_held_locked(engine) > engine->lost_count + 1;
}

/* Whether a job of the engine is to stop, and the engine has sent nothing since it was told. */
static bool does_not_stop(const struct fm_engine *engine, const struct fm_job *job) {
    bool stopping = fm_job_is_held(job) && job->engine == engine && job->stopping;
    return stopping && engine->heard_ms <= job->grace_end_ms - FM_GRACE_MS;
}

bool fm_engine_may_hang_locked(const struct fm_engine *engine) {
    bool hangs = engine->lost_count > 0 && engine->heard_ms <= engine->lost_ms;
    for (size_t i = 0; i < engine->front->jobs_end && !hangs; i++) {
        hangs = does_not_stop(engine, &engine->front->jobs[i]);
    }
    return hangs;
}

void fm_engine_lose_job_locked(struct fm_engine *engine, struct fm_job *job) {
    struct fm_error error = job->stop_error; /* a copy, because the job's own error goes away with the job */
    enum fm_finish finish = error.code == FM_CANCELLED ? FM_FINISH_CANCELLED : FM_FINISH_FAILED;
    engine->lost[engine->lost_count++] = job->run; /* there is room: the engine has no more jobs than slots */
    engine->lost_ms = fm_now_ms();
    fm_log(FM_LOG_WARN, "engine %d does not stop a request; that one is settled without it", (int)engine->pid);
    fm_job_settle_locked(job, finish, &error);
    bool woken = fm_write_all(engine->wake_write, "l", 1); /* the engine's thread must now limit the engine's silence */
    (void)woken;                                           /* the pipe is empty, so it takes one byte */
}

void fm_engine_find_run_locked(struct fm_engine *engine, uint64_t run) {
    for (unsigned i = 0; i < engine->lost_count; i++) {
        if (engine->lost[i] == run) {
            engine->lost[i] = engine->lost[--engine->lost_count];
            return;
        }
    }
}

int64_t fm_engine_silence_left_locked(const struct fm_engine *engine) {
    if (engine->lost_count == 0) {
        return -1;
    }
    bool others = fm_engine_held_locked(engine) > engine->lost_count;
    int64_t since = others && engine->heard_ms > engine->lost_ms ? engine->heard_ms : engine->lost_ms;
    int64_t left = since + FM_SILENCE_MS - fm_now_ms();
    return left > 0 ? left : 0;
}
