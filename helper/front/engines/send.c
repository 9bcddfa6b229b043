/* Builds the front's messages to an engine (protocol/ENGINE.md). */
#include "front/engines/send.h"
#include "base/clock.h"
#include "front/engines/engine.h"
#include "front/engines/lost.h"
#include "front/engines/table.h"
#include "front/ignored.h"
#include "front/jobs.h"
#include "protocol/frame.h"
#include "protocol/version.h"

#include <stdio.h>

static struct fm_json_writer begin_notification(struct fm_engine *engine, const char *method) {
    fm_frame_begin(&engine->message);
    return fm_rpc_notification_begin(&engine->message, method);
}

static struct fm_json_writer begin_request(struct fm_engine *engine, int64_t number, const char *method) {
    struct fm_rpc_id id = fm_rpc_id_int(number);
    fm_frame_begin(&engine->message);
    return fm_rpc_request_begin(&engine->message, &id, method);
}

static void end_message(struct fm_engine *engine) {
    fm_rpc_end(&engine->message);
    if (engine->pid) { /* otherwise the process is being reaped, which settles its jobs */
        fm_send_frame(engine->front, &engine->outbox, &engine->message);
    }
}

void fm_engine_send_initialize_locked(struct fm_engine *engine) {
    struct fm_json_writer w = begin_request(engine, FM_ENGINE_INITIALIZE_ID, FM_ENGINE_INITIALIZE);
    fm_json_object_begin(&w);
    fm_json_key_int(&w, "protocol_version", FM_ENGINE_PROTOCOL_VERSION);
    fm_json_key_str(&w, "log_level", fm_log_level_name(fm_log_level_get()));
    fm_json_object_end(&w);
    end_message(engine);
    engine->progress_ms = fm_now_ms();
}

/* Writes the descriptors that the process was started with. */
static void write_saved(const struct fm_kv_files *kv, struct fm_json_writer *w) {
    fm_json_key(w, "saved");
    fm_json_object_begin(w);
    if (kv->read >= 0) {
        fm_json_key_int(w, "read", FM_KV_GIVEN_READ);
    }
    fm_json_key_int(w, "write", FM_KV_GIVEN_WRITE);
    fm_json_key_int(w, "max_bytes", kv->max_bytes);
    fm_json_object_end(w);
}

void fm_engine_send_available_locked(struct fm_engine *engine) {
    struct fm_json_writer w = begin_request(engine, FM_ENGINE_AVAILABLE_ID, FM_ENGINE_AVAILABLE);
    fm_json_object_begin(&w);
    fm_json_object_end(&w);
    end_message(engine);
    engine->progress_ms = fm_now_ms();
}

void fm_engine_send_load_locked(struct fm_engine *engine) {
    const struct fm_model *model = &engine->model;
    const char *chat_template = engine->front->options.chat_template;
    struct fm_json_writer w = begin_request(engine, FM_ENGINE_LOAD_ID, FM_ENGINE_LOAD);
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "model", model->path);
    if (model->mmproj) {
        fm_json_key_str(&w, "mmproj", model->mmproj);
    }
    if (model->draft) {
        fm_json_key_str(&w, "draft_model", model->draft);
    }
    if (chat_template) {
        fm_json_key_str(&w, "chat_template", chat_template);
    }
    if (engine->kv.write >= 0) {
        write_saved(&engine->kv, &w);
    }
    fm_json_object_end(&w);
    end_message(engine);
}

/* ---- jobs, which the engine's writer pulls ---- */

/*
 * Whether the job must wait. A repeatable job is alone in the engine: it waits for earlier jobs, and later jobs wait
 * for it.
 */
static bool must_wait(const struct fm_engine *engine, const struct fm_job *job) {
    for (size_t i = 0; i < engine->front->jobs_end; i++) {
        const struct fm_job *other = &engine->front->jobs[i];
        bool beside = fm_job_is_held(other) && other->engine == engine;
        if (beside && (job->answer.request.repeatable || other->answer.request.repeatable)) {
            return true;
        }
    }
    return false;
}

/*
 * Whether the engine may take the job. The engine's turn ends with the job `last_turn`. Of later jobs, it takes only a
 * job that it has begun to answer.
 */
static bool is_its_turn(const struct fm_engine *engine, const struct fm_job *job) {
    bool waits = job->state == FM_JOB_QUEUED && job->engine == engine && !job->answer.request.unresolved;
    return waits && job->answer.surface->work == FM_WORK_ANSWER &&
           (job->number <= engine->last_turn || job->answer.opened);
}

struct fm_job *fm_engine_next_locked(const struct fm_engine *engine) {
    struct fm_job *next = NULL;
    if (engine->front->ending || engine->state != FM_ENGINE_READY || fm_engine_is_going_locked(engine) ||
        fm_engine_held_locked(engine) >= engine->slots) {
        return NULL;
    }
    for (size_t i = 0; i < engine->front->jobs_end; i++) {
        struct fm_job *job = &engine->front->jobs[i];
        if (is_its_turn(engine, job) && (!next || job->number < next->number)) {
            next = job;
        }
    }
    return next && !must_wait(engine, next) && !fm_engine_may_hang_locked(engine) ? next : NULL;
}

/* Writes the extras that the engine has; the others are ignored, and reported. */
static void write_extras(struct fm_engine *engine, struct fm_request *request, struct fm_json_writer *w) {
    size_t before = request->ignored.len;
    fm_request_write_extras(request, engine->parameters, w);
    if (request->ignored.failed) {
        fm_front_no_memory(engine->front);
    } else if (request->ignored.len > before) {
        fm_log_ignored_locked(engine->front, &request->ignored);
    }
}

/*
 * Writes which of the engine's models is meant, which conversation it is, and whether an answer may be begun anew, for
 * engines that ask for these members.
 */
static void write_place(const struct fm_engine *engine, const struct fm_job *job, struct fm_json_writer *w) {
    const struct fm_descriptor *descriptor = &engine->program->descriptor;
    if (job->model.asked) {
        fm_json_key_str(w, "model", job->model.asked);
    }
    char session[FM_SESSION_SIZE];
    if (descriptor->features & FM_FEATURE_SESSION && fm_request_session(&job->answer.request, session)) {
        fm_json_key_str(w, "session", session);
    }
    if (descriptor->features & FM_FEATURE_RESTARTS && !job->streamed && !job->answer.request.input_count) {
        fm_json_key_bool(w, "restartable", true);
    }
}

/* Builds job.start; members that may be long are written without the lock. */
static void build_job_locked(struct fm_engine *engine, struct fm_job *job) {
    const struct fm_buf *members = &job->answer.request.job_members;
    bool large = members->len + job->answer.request.prompts.len > FM_LARGE;
    fm_frame_begin(&engine->large);
    struct fm_json_writer w = fm_rpc_notification_begin(&engine->large, FM_JOB_START);
    fm_json_object_begin(&w);
    fm_json_key_int(&w, "job", (int64_t)job->run);
    fm_answer_write_choice(&job->answer, &w);
    write_extras(engine, &job->answer.request, &w);
    if (large) {
        fm_front_build_begin_locked(engine->front);
    }
    fm_answer_write_prompt(&job->answer, &w);
    fm_json_raw(&w, members->data, members->len);
    write_place(engine, job, &w);
    fm_json_object_end(&w);
    fm_rpc_end(&engine->large);
    if (large) {
        fm_front_build_end_locked(engine->front);
    }
}

static void note_sent_locked(struct fm_engine *engine, struct fm_job *job) {
    if (engine->front->program_count > 1) {
        snprintf(job->answer.engine, sizeof job->answer.engine, "%s", engine->program->files.name);
    }
    job->state = FM_JOB_SENT;
    job->progress_ms = fm_now_ms();
    engine->used_us = fm_now_us();
    engine->keep_alive_ms = fm_engine_keep_alive(engine->front, &job->answer.request);
}

bool fm_engine_next_job(void *context, const char **frame, size_t *len) {
    struct fm_engine *engine = context;
    struct fm_front *front = engine->front;
    bool made = false;
    if (engine->large.cap > FM_KEEP_BYTES) {
        fm_buf_free(&engine->large);
    }
    fm_front_enter(front);
    struct fm_job *job = fm_engine_next_locked(engine);
    if (job) {
        build_job_locked(engine, job);
        note_sent_locked(engine, job);
        made = fm_end_frame(front, &engine->outbox, &engine->large, frame, len);
    }
    fm_front_leave(front);
    return made;
}

/* ---- other messages ---- */

void fm_engine_send_abort_locked(struct fm_engine *engine, const struct fm_job *job) {
    struct fm_json_writer w = begin_notification(engine, FM_JOB_ABORT);
    fm_json_object_begin(&w);
    fm_json_key_int(&w, "job", (int64_t)job->run);
    fm_json_object_end(&w);
    end_message(engine);
}

void fm_engine_send_shutdown_locked(struct fm_engine *engine, int64_t save_ms) {
    struct fm_json_writer w = begin_notification(engine, FM_ENGINE_SHUTDOWN);
    fm_json_object_begin(&w);
    if (engine->saves) {
        fm_json_key_int(&w, "save_ms", save_ms);
    }
    fm_json_object_end(&w);
    end_message(engine);
}
