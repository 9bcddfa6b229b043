/* The work and the state of each engine. */
#include "front/engines/table.h"
#include "base/clock.h"
#include "front/jobs.h"

const char *fm_engine_state_name(enum fm_engine_state state) {
    static const char *const names[] = {"idle", "starting", "ready", "stopping"};
    return names[state];
}

struct fm_program *fm_program_of(struct fm_front *front, const struct fm_model *model) {
    size_t i = 0;
    while (i + 1 < front->program_count && &front->programs[i].files != model->engine) {
        i++;
    }
    return &front->programs[i];
}

void fm_engine_set_state_locked(struct fm_engine *engine, enum fm_engine_state state) {
    engine->state_since_ms = engine->state == state ? engine->state_since_ms : fm_now_ms();
    engine->state = state;
}

bool fm_engine_is_going_locked(const struct fm_engine *engine) {
    bool ends = engine->state == FM_ENGINE_STOPPING || engine->end_error.code != FM_OK;
    return engine->state != FM_ENGINE_IDLE && ends;
}

unsigned fm_engine_held_locked(const struct fm_engine *engine) {
    const struct fm_front *front = engine->front;
    unsigned held = 0;
    for (size_t i = 0; i < front->jobs_end; i++) {
        held += fm_job_is_held(&front->jobs[i]) && front->jobs[i].engine == engine;
    }
    return held + engine->lost_count;
}

unsigned fm_engine_wanted_locked(const struct fm_engine *engine, uint64_t before) {
    const struct fm_front *front = engine->front;
    unsigned wanted = 0;
    for (size_t i = 0; i < front->jobs_end; i++) {
        const struct fm_job *job = &front->jobs[i];
        bool waits = job->state == FM_JOB_QUEUED && (job->number < before || job->answer.opened);
        wanted += job->engine == engine && (waits || fm_job_is_held(job));
    }
    return wanted;
}

int64_t fm_engine_keep_alive(const struct fm_front *front, const struct fm_request *request) {
    int64_t usual = front->options.idle_unload_ms;
    bool said = request && request->limits.keep_alive_ms != FM_KEEP_ALIVE_UNSAID;
    return said ? request->limits.keep_alive_ms : usual > 0 ? usual : -1;
}

enum fm_engine_state fm_engines_state_locked(const struct fm_front *front, const struct fm_program *program) {
    static const enum fm_engine_state order[] = {FM_ENGINE_READY, FM_ENGINE_STARTING, FM_ENGINE_STOPPING};
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++) {
        for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
            if (front->engines[i].state == order[k] && front->engines[i].program == program) {
                return order[k];
            }
        }
    }
    return FM_ENGINE_IDLE;
}

unsigned fm_engine_signs_locked(const struct fm_job *job) {
    unsigned signs = 0;
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        const struct fm_engine *engine = &job->front->engines[i];
        signs += !job->engine || job->engine == engine ? engine->signs : 0;
    }
    return signs;
}
