/*
 * Which engine a job goes to. An engine has one model, and a model has one engine. A job whose model no engine has gets
 * a place, if one is free and the memory budget allows it. Else an engine with nothing to do makes way, the least
 * recently used first. Where all have jobs, the job waits, and so do later ones that find no place. The engine that has
 * the fewest jobs then takes no later ones, so that it comes to its end.
 */
#include "front/engines/places.h"
#include "base/clock.h"
#include "front/engines/engine.h"
#include "front/engines/send.h"
#include "front/engines/supervisor.h"
#include "front/engines/table.h"
#include "front/jobs.h"

/* The first job that waits for a place. */
struct waiting {
    uint64_t number;                /* UINT64_MAX: none waits */
    const struct fm_engine *yields; /* the engine that takes no jobs after that one; NULL: none */
};

/* Whether the engine can do the job: what sees also answers a request that has no images. */
static bool serves(const struct fm_engine *engine, const struct fm_job *job) {
    return engine->state != FM_ENGINE_IDLE && !fm_engine_is_going_locked(engine) &&
           fm_model_is_same(&job->model, &engine->model) && (engine->model.mmproj || !job->model.mmproj);
}

/* It could go to an engine. */
static bool is_ready(const struct fm_job *job) {
    return job->state == FM_JOB_QUEUED && !job->answer.request.unresolved;
}

/* ---- jobs and their engines ---- */

static void find_engine(struct fm_front *front, struct fm_job *job) {
    job->engine = NULL;
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        job->engine = serves(&front->engines[i], job) ? &front->engines[i] : job->engine;
    }
}

/* Gives each job that waits the engine that has its model, or none. False when none waits. */
static bool find_engines(struct fm_front *front) {
    bool any = false;
    for (size_t i = 0; i < FM_JOBS_MAX && front->jobs_in_flight; i++) {
        if (front->jobs[i].state == FM_JOB_QUEUED) {
            find_engine(front, &front->jobs[i]);
            any = true;
        }
    }
    return any;
}

/* The first that is ready for `engine` (NULL: for a place); NULL: there is none. */
static struct fm_job *first_for(struct fm_front *front, const struct fm_engine *engine) {
    struct fm_job *first = NULL;
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        struct fm_job *job = &front->jobs[i];
        if (is_ready(job) && job->engine == engine && (!first || job->number < first->number)) {
            first = job;
        }
    }
    return first;
}

/* ---- places ---- */

static int64_t memory_used(const struct fm_front *front) {
    int64_t used = 0;
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        used += front->engines[i].memory;
    }
    return used;
}

/* NULL: there is none, or the model does not fit beside those that are loaded. One that is alone has all the memory. */
static struct fm_engine *free_place(struct fm_front *front, int64_t need) {
    int64_t used = memory_used(front);
    if (used > 0 && used + need > front->memory_budget) {
        return NULL;
    }
    for (size_t i = 0; i < (size_t)front->options.max_engines; i++) {
        if (front->engines[i].state == FM_ENGINE_IDLE) {
            return &front->engines[i];
        }
    }
    return NULL;
}

static bool is_any_going(const struct fm_front *front) {
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        if (fm_engine_is_going_locked(&front->engines[i])) {
            return true;
        }
    }
    return false;
}

/* What the engine has to do before a job: one that loads also for those that came later, as the load would be lost. */
static unsigned work_before(const struct fm_engine *engine, uint64_t number) {
    return fm_engine_wanted_locked(engine, engine->state == FM_ENGINE_STARTING ? UINT64_MAX : number);
}

/* The one that has the least work before the job; of those without any, the least recently used. NULL: none runs. */
static struct fm_engine *least_busy(struct fm_front *front, uint64_t number) {
    struct fm_engine *chosen = NULL;
    unsigned least = 0;
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        struct fm_engine *engine = &front->engines[i];
        bool runs = engine->state != FM_ENGINE_IDLE;
        unsigned work = runs ? work_before(engine, number) : 0;
        bool older = chosen && work == 0 && least == 0 && engine->used_ms < chosen->used_ms;
        if (runs && (!chosen || work < least || older)) {
            chosen = engine;
            least = work;
        }
    }
    return chosen;
}

static void start(struct fm_engine *engine, struct fm_job *job) {
    struct fm_error error;
    if (fm_engine_start_locked(engine, &job->model, &error) != FM_OK) {
        fm_job_settle_locked(job, FM_FINISH_FAILED, &error);
    }
}

/* The engine that has the job's model already, but lacks the projector, or is going; NULL: there is none. */
static struct fm_engine *rival_of(struct fm_front *front, const struct fm_job *job) {
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        struct fm_engine *engine = &front->engines[i];
        if (engine->state != FM_ENGINE_IDLE && fm_model_is_same(&engine->model, &job->model)) {
            return engine;
        }
    }
    return NULL;
}

/* What stands in the way of the job's model for longer than the job may wait. */
static enum fm_code check_model(struct fm_front *front, const struct fm_model *model, struct fm_error *error) {
    bool known;
    int64_t need = fm_needs_of(&front->program.needs, model, &known);
    need = known ? need : model->size; /* the engine's settings decide about the rest */
    enum fm_code code = fm_crash_loop_check(&front->program.crash_loop, fm_model_blamed(model), fm_now_ms(), error);
    return code ? code : fm_needs_check(model, need, front->options.memory_budget, error);
}

/* Starts an engine for the job, or ends it where its model may not be tried now. False: it waits. */
static bool find_place(struct fm_front *front, struct fm_job *job, struct waiting *waiting) {
    struct fm_error error;
    if (check_model(front, &job->model, &error) != FM_OK) {
        fm_job_settle_locked(job, FM_FINISH_FAILED, &error);
        return true;
    }
    struct fm_engine *rival = rival_of(front, job);
    struct fm_engine *place = rival ? NULL : free_place(front, fm_needs_of(&front->program.needs, &job->model, NULL));
    if (place) {
        start(place, job);
        return true;
    }
    waiting->number = job->number;
    if (is_any_going(front)) {
        return false; /* its end comes back here */
    }
    struct fm_engine *goes = rival ? rival : least_busy(front, job->number);
    if (goes && work_before(goes, job->number) == 0) { /* an engine without jobs has nothing to lose */
        fm_engine_dismiss_locked(goes, "another model needs its place or its memory");
    } else {
        waiting->yields = goes;
    }
    return false;
}

/* Engines may report that they take more than was estimated. */
static void keep_to_budget(struct fm_front *front) {
    struct fm_engine *idle = least_busy(front, UINT64_MAX);
    if (idle && memory_used(front) > front->memory_budget && memory_used(front) > idle->memory &&
        !is_any_going(front) && fm_engine_wanted_locked(idle, UINT64_MAX) == 0) {
        fm_engine_dismiss_locked(idle, "the models take more memory than their budget");
    }
}

/* ---- the pump ---- */

static void send_aborts(struct fm_front *front) {
    for (size_t i = 0; i < FM_JOBS_MAX && front->jobs_in_flight; i++) {
        struct fm_job *job = &front->jobs[i];
        if (fm_job_is_held(job) && job->abort_due) {
            job->abort_due = false;
            fm_engine_send_abort_locked(job->engine, job);
        }
    }
}

/* A repeatable job is alone in the engine: it waits for those before it, and those after it wait for it. */
static bool must_wait(const struct fm_engine *engine, const struct fm_job *job) {
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        const struct fm_job *other = &engine->front->jobs[i];
        bool beside = fm_job_is_held(other) && other->engine == engine;
        if (beside && (job->answer.request.repeatable || other->answer.request.repeatable)) {
            return true;
        }
    }
    return false;
}

static void send_jobs(struct fm_engine *engine, const struct waiting *waiting) {
    struct fm_job *job;
    while (engine->state == FM_ENGINE_READY && !fm_engine_is_going_locked(engine) &&
           fm_engine_held_locked(engine) < engine->slots && (job = first_for(engine->front, engine))) {
        if (engine == waiting->yields && job->number > waiting->number) {
            return;
        }
        if (must_wait(engine, job)) {
            return;
        }
        if (!fm_outbox_has_room(&engine->outbox)) {
            return; /* fm_front_on_room goes on: prompts can be megabytes, and there are 64 */
        }
        fm_engine_send_job_locked(engine, job);
    }
}

void fm_engines_pump_locked(struct fm_front *front) {
    struct waiting waiting = {.number = UINT64_MAX};
    struct fm_job *job;
    send_aborts(front);
    while (!front->ending && find_engines(front) && (job = first_for(front, NULL)) &&
           find_place(front, job, &waiting)) {
    }
    keep_to_budget(front);
    for (size_t i = 0; i < FM_ENGINES_MAX && !front->ending; i++) {
        send_jobs(&front->engines[i], &waiting);
    }
}
