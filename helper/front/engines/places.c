/*
 * Decides which engine a job goes to. An engine has one model, and a model has one engine. If no engine has the job's
 * model, the job gets a place, provided that one is free and the memory budget allows it. Otherwise an engine with
 * nothing to do makes way, the least recently used one first. If all engines have jobs, the job waits, and so do later
 * jobs that find no place. From then on the engine with the fewest jobs takes no later jobs, so that it can end; but it
 * finishes all choices of an answer that it has begun. A job that waits for its own model to be loaded with a projector
 * waits in the same way, and holds up no other model. Engines that take little memory are not counted: they do not wait
 * for a place, and do not make way.
 */
#include "front/engines/places.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "front/engines/engine.h"
#include "front/engines/lost.h"
#include "front/engines/send.h"
#include "front/engines/supervisor.h"
#include "front/engines/table.h"
#include "front/jobs.h"

#include <string.h>

#define MODEL_SHOWN 200 /* bytes of a model's id in an error */

/* The number of the last job that each engine may take, in the order of front->engines. Later jobs have to wait. */
struct turns {
    uint64_t last[FM_ENGINES_MAX];
};

enum outcome { PLACED_OR_FAILED, WAITS, WAITS_FOR_OWN_ENGINE };

/* Whether the engine can do the job. An engine that sees images also does requests without images. */
static bool serves(const struct fm_engine *engine, const struct fm_job *job) {
    return engine->state != FM_ENGINE_IDLE && !fm_engine_is_going_locked(engine) &&
           fm_model_is_same(&job->model, &engine->model) && (engine->model.mmproj || !job->model.mmproj);
}

static enum fm_work work_of(const struct fm_job *job) {
    return job->answer.surface->work;
}

/* Whether the job can go to an engine; with `placed` false: whether an engine can be started for it. */
static bool is_ready(const struct fm_job *job, bool placed) {
    if (job->state != FM_JOB_QUEUED || job->answer.request.unresolved) {
        return false;
    }
    return work_of(job) == FM_WORK_ANSWER || (work_of(job) == FM_WORK_LOAD && !placed);
}

/* ---- jobs and their engines ---- */

static void find_engine(struct fm_front *front, struct fm_job *job) {
    job->engine = NULL;
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        bool has = work_of(job) != FM_WORK_UNLOAD && serves(&front->engines[i], job);
        job->engine = has ? &front->engines[i] : job->engine;
    }
}

/* Sets the engine of each waiting job: the engine that has the job's model, or none. False when no job waits. */
static bool find_engines(struct fm_front *front) {
    bool any = false;
    for (size_t i = 0; i < front->jobs_end; i++) {
        if (front->jobs[i].state == FM_JOB_QUEUED) {
            find_engine(front, &front->jobs[i]);
            any = true;
        }
    }
    return any;
}

/*
 * The first job after number `after` that is ready for `engine` (NULL: that is ready for a place); NULL: there is none.
 */
static struct fm_job *first_for(struct fm_front *front, const struct fm_engine *engine, uint64_t after) {
    struct fm_job *first = NULL;
    for (size_t i = 0; i < front->jobs_end; i++) {
        struct fm_job *job = &front->jobs[i];
        bool fits = is_ready(job, engine != NULL) && job->engine == engine && job->number > after;
        if (fits && (!first || job->number < first->number)) {
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

/* Whether --max-engines counts an engine with this model. An engine without files takes little, and runs only once. */
static bool is_counted(const struct fm_model *model) {
    return model->engine->descriptor.reads_files || !model->engine->beside;
}

/* The number of loaded models that --max-engines counts. */
static int64_t count_loaded(const struct fm_front *front) {
    int64_t count = 0;
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        const struct fm_engine *engine = &front->engines[i];
        count += engine->state != FM_ENGINE_IDLE && is_counted(&engine->model);
    }
    return count;
}

/*
 * Finds a free place. NULL: there is none, or the model does not fit beside the loaded ones. If no counted engine runs,
 * the model may take all the memory: engines that do not count never make way for it.
 */
static struct fm_engine *free_place(struct fm_front *front, const struct fm_model *model, int64_t need) {
    int64_t loaded = count_loaded(front);
    struct fm_engine *place = NULL;
    for (size_t i = FM_ENGINES_MAX; i-- > 0;) {
        place = front->engines[i].state == FM_ENGINE_IDLE ? &front->engines[i] : place;
    }
    bool beyond = loaded > 0 && memory_used(front) + need > front->memory_budget;
    bool full = loaded >= front->options.max_engines || beyond;
    return full && is_counted(model) ? NULL : place;
}

static bool is_any_going(const struct fm_front *front) {
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        if (fm_engine_is_going_locked(&front->engines[i])) {
            return true;
        }
    }
    return false;
}

/*
 * How many jobs the engine has to do before the job `number`. An engine that is loading also does later jobs first,
 * because the load would be lost otherwise.
 */
static unsigned work_before(const struct fm_engine *engine, uint64_t number) {
    return fm_engine_wanted_locked(engine, engine->state == FM_ENGINE_STARTING ? UINT64_MAX : number);
}

/*
 * The engine with the least work before the job. Of several engines without work, the least recently used one. NULL: no
 * engine runs.
 */
static struct fm_engine *least_busy(struct fm_front *front, uint64_t number) {
    struct fm_engine *chosen = NULL;
    unsigned least = 0;
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        struct fm_engine *engine = &front->engines[i];
        bool runs = engine->state != FM_ENGINE_IDLE && is_counted(&engine->model);
        unsigned work = runs ? work_before(engine, number) : 0;
        bool older = chosen && work == 0 && least == 0 && engine->used_us < chosen->used_us;
        if (runs && (!chosen || work < least || older)) {
            chosen = engine;
            least = work;
        }
    }
    return chosen;
}

static void start_place(struct fm_engine *engine, struct fm_job *job) {
    struct fm_error error;
    if (fm_engine_start_locked(engine, &job->model, &error) != FM_OK) {
        fm_job_fail_or_move_locked(job, &error);
        return;
    }
    engine->warming = work_of(job) == FM_WORK_LOAD;
}

/* The engine that already has the job's model, but lacks the projector or is ending; NULL: there is none. */
static struct fm_engine *rival_of(struct fm_front *front, const struct fm_job *job) {
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        struct fm_engine *engine = &front->engines[i];
        if (engine->state != FM_ENGINE_IDLE && fm_model_is_same(&engine->model, &job->model)) {
            return engine;
        }
    }
    return NULL;
}

/* Fails if the model may not be loaded now: its engine crashed too often, or it never fits the memory budget. */
static enum fm_code check_model(struct fm_front *front, const struct fm_model *model, struct fm_error *error) {
    const struct fm_program *program = fm_program_of(front, model);
    enum fm_code code = fm_crash_loop_check(&program->crash_loop, fm_model_blamed(model), fm_now_ms(), error);
    return code ? code : fm_needs_check(&program->needs, model, front->options.memory_budget, error);
}

/*
 * Makes the engine end before it takes jobs that came after `job`. The engine ends at once if it has no earlier jobs.
 */
static void have_end(struct fm_engine *engine, const struct fm_job *job, struct turns *turns) {
    uint64_t *last = &turns->last[engine - engine->front->engines];
    if (work_before(engine, job->number) == 0) { /* the engine has no work that could be lost */
        fm_engine_dismiss_locked(engine, "another model needs its place or its memory");
    } else {
        *last = job->number < *last ? job->number : *last;
    }
}

/* Starts an engine for the job, fails the job if its model may not be tried now, or makes another engine end. */
static enum outcome find_place(struct fm_front *front, struct fm_job *job, struct turns *turns) {
    struct fm_error error;
    if (check_model(front, &job->model, &error) != FM_OK) {
        fm_job_fail_or_move_locked(job, &error);
        return PLACED_OR_FAILED;
    }
    struct fm_engine *rival = rival_of(front, job);
    if (rival) {
        if (!fm_engine_is_going_locked(rival)) {
            have_end(rival, job, turns);
        }
        return WAITS_FOR_OWN_ENGINE;
    }
    int64_t need = fm_needs_of(&fm_program_of(front, &job->model)->needs, &job->model, NULL);
    struct fm_engine *place = free_place(front, &job->model, need);
    if (place) {
        start_place(place, job);
        return PLACED_OR_FAILED;
    }
    struct fm_engine *goes = is_any_going(front) ? NULL : least_busy(front, job->number);
    if (goes) { /* otherwise an engine is ending already, and this function runs again after its end */
        have_end(goes, job, turns);
    }
    return WAITS;
}

/* If a job waits for a place, later jobs wait too, except those whose engine does not count. */
static void find_places(struct fm_front *front, struct turns *turns) {
    struct fm_job *job;
    uint64_t after = 0;
    bool full = false;
    while (find_engines(front) && (job = first_for(front, NULL, after))) {
        enum outcome outcome = full && is_counted(&job->model) ? WAITS : find_place(front, job, turns);
        full = full || outcome == WAITS;
        after = outcome == PLACED_OR_FAILED ? after : job->number;
    }
}

/* ---- models.load and models.unload ---- */

static void finish_job(struct fm_job *job) {
    fm_answer_open(&job->answer, 0);
    fm_job_settle_locked(job, FM_FINISH_STOP, NULL);
}

/* The job's engine is ready. */
static void finish_load(struct fm_job *job) {
    struct fm_engine *engine = job->engine;
    job->answer.loaded = (struct fm_loaded){.load_ms = engine->load_ms,
                                            .memory_bytes = engine->memory,
                                            .context_length = engine->context_length,
                                            .slots = engine->slots};
    engine->used_us = fm_now_us();
    engine->idle_since_ms = fm_now_ms();
    engine->keep_alive_ms = fm_engine_keep_alive(engine->front, &job->answer.request);
    finish_job(job);
    if (engine->keep_alive_ms == 0 && fm_engine_wanted_locked(engine, UINT64_MAX) == 0) {
        fm_engine_dismiss_locked(engine, "models.load was to keep it for 0 ms");
    }
}

/* Ends the engine with the job's model; the job is answered when the engine is gone. */
static void unload(struct fm_front *front, struct fm_job *job) {
    struct fm_engine *engine = rival_of(front, job);
    unsigned requests = engine ? fm_engine_wanted_locked(engine, UINT64_MAX) : 0;
    struct fm_error error;
    if (!engine) {
        finish_job(job);
    } else if (fm_engine_is_going_locked(engine)) {
        job->answer.loaded.unloaded = true;
    } else if (requests > 0) {
        fm_fail(&error, FM_OVERLOADED, "the model %.*s has %u request%s; wait for the end or cancel, then unload it",
                fm_utf8_shown(job->model.id, MODEL_SHOWN), job->model.id, requests, requests == 1 ? "" : "s");
        fm_job_settle_locked(job, FM_FINISH_FAILED, &error);
    } else {
        job->answer.loaded.unloaded = true;
        fm_engine_dismiss_locked(engine, "models.unload was called");
    }
}

static void unload_models(struct fm_front *front) {
    for (size_t i = 0; i < front->jobs_end; i++) {
        struct fm_job *job = &front->jobs[i];
        if (job->state == FM_JOB_QUEUED && work_of(job) == FM_WORK_UNLOAD) {
            unload(front, job);
        }
    }
}

static void finish_loads(struct fm_front *front) {
    for (size_t i = 0; i < front->jobs_end; i++) {
        struct fm_job *job = &front->jobs[i];
        bool loads = job->state == FM_JOB_QUEUED && work_of(job) == FM_WORK_LOAD;
        if (loads && job->engine && job->engine->state == FM_ENGINE_READY && !fm_engine_is_going_locked(job->engine)) {
            finish_load(job);
        }
    }
}

/* A load that was cancelled ends, unless a request waits for it. */
static void end_unwanted_loads(struct fm_front *front) {
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        struct fm_engine *engine = &front->engines[i];
        if (engine->state == FM_ENGINE_STARTING && engine->warming && !fm_engine_is_going_locked(engine) &&
            fm_engine_wanted_locked(engine, UINT64_MAX) == 0) {
            fm_engine_dismiss_locked(engine, "nobody waits for models.load any more");
        }
    }
}

/* ---- the budget ---- */

/* Ends an engine if the engines take more than the budget: they may report more than was estimated. */
static void keep_to_budget(struct fm_front *front) {
    if (memory_used(front) <= front->memory_budget || is_any_going(front)) {
        return;
    }
    struct fm_engine *idle = least_busy(front, UINT64_MAX);
    if (idle && count_loaded(front) > 1 && fm_engine_wanted_locked(idle, UINT64_MAX) == 0) {
        fm_engine_dismiss_locked(idle, "the models take more memory than their budget");
    }
}

/* ---- the pump ---- */

static void send_aborts(struct fm_front *front) {
    for (size_t i = 0; i < front->jobs_end; i++) {
        struct fm_job *job = &front->jobs[i];
        if (fm_job_is_held(job) && job->abort_due) {
            job->abort_due = false;
            fm_engine_send_abort_locked(job->engine, job);
        }
    }
}

void fm_engines_pump_locked(struct fm_front *front) {
    struct turns turns;
    memset(&turns, 0xff, sizeof turns); /* no limit: each engine takes all jobs */
    send_aborts(front);
    if (front->ending) {
        return;
    }
    find_engines(front);
    unload_models(front);
    find_places(front, &turns);
    finish_loads(front);
    end_unwanted_loads(front);
    keep_to_budget(front);
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        struct fm_engine *engine = &front->engines[i];
        engine->last_turn = turns.last[i];
        if (fm_engine_next_locked(engine)) {
            fm_outbox_poke(&engine->outbox);
        }
    }
}
