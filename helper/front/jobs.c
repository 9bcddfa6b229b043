#include "base/clock.h"
#include "front/front.h"

#include <string.h>

/* What an answer emits becomes a notification of its create call. `context` is the job: a slot never moves. */
static void emit_notification(void *context, const char *json, size_t len) {
    const struct fm_job *job = context;
    const struct fm_surface *surface = job->answer.surface;
    struct fm_buf *buf = &job->front->event;
    fm_frame_begin(buf);
    struct fm_json_writer w = fm_rpc_notification_begin(buf, surface->event_method);
    fm_json_object_begin(&w);
    fm_json_key(&w, "id");
    fm_json_raw(&w, job->call.text, job->call.len);
    fm_json_key(&w, surface->event_member);
    fm_json_raw(&w, json, len);
    fm_json_object_end(&w);
    fm_rpc_end(buf);
    fm_send_frame(&job->front->outbox, buf);
}

static struct fm_job *free_slot(struct fm_front *front) {
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        if (front->jobs[i].state == FM_JOB_FREE) {
            return &front->jobs[i];
        }
    }
    return NULL;
}

static void release(struct fm_job *job) {
    fm_answer_free(&job->answer);
    fm_model_free(&job->model);
    job->state = FM_JOB_FREE;
    job->front->jobs_in_flight--;
    pthread_cond_broadcast(&job->changed); /* the watchdog looks, and finds its job gone */
}

enum fm_code fm_job_create_locked(struct fm_front *front, const struct fm_rpc_id *call,
                                  const struct fm_surface *surface, struct fm_request *request, struct fm_model *model,
                                  struct fm_error *error) {
    struct fm_job *job = front->ending ? NULL : free_slot(front);
    if (!job) {
        fm_request_free(request);
        fm_model_free(model);
        return front->ending ? fm_fail(error, FM_CANCELLED, "the helper is shutting down")
                             : fm_fail(error, FM_RATE_LIMITED, "%d requests are in flight already", FM_JOBS_MAX);
    }
    enum fm_code code = fm_answer_init(&job->answer, surface, request, model->id, emit_notification, job, error);
    if (code != FM_OK) {
        fm_model_free(model);
        return code;
    }
    front->jobs_in_flight++;
    job->state = FM_JOB_QUEUED;
    job->stopping = false;
    job->produced = false;
    job->number = ++front->last_number;
    job->call = *call;
    job->model = *model;
    job->arrived_ms = fm_now_ms();
    job->cancel_count = 0;
    if (fm_watchdog_start_locked(front, job) != 0) {
        release(job);
        return fm_fail(error, FM_OVERLOADED, "can't start a thread for the request");
    }
    fm_engine_pump_locked(front);
    return FM_OK;
}

struct fm_job *fm_job_by_number_locked(struct fm_front *front, uint64_t number) {
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        if (front->jobs[i].state != FM_JOB_FREE && front->jobs[i].number == number) {
            return &front->jobs[i];
        }
    }
    return NULL;
}

struct fm_job *fm_job_by_call_locked(struct fm_front *front, const struct fm_rpc_id *call) {
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        if (front->jobs[i].state != FM_JOB_FREE && fm_rpc_id_equal(&front->jobs[i].call, call)) {
            return &front->jobs[i];
        }
    }
    return NULL;
}

struct fm_job *fm_job_by_answer_locked(struct fm_front *front, const char *id) {
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        if (front->jobs[i].state != FM_JOB_FREE && strcmp(front->jobs[i].answer.id, id) == 0) {
            return &front->jobs[i];
        }
    }
    return NULL;
}

bool fm_call_in_flight_locked(struct fm_front *front, const struct fm_rpc_id *call) {
    for (size_t i = 0; i < FM_JOBS_MAX && front->jobs_in_flight; i++) {
        const struct fm_job *job = &front->jobs[i];
        if (job->state == FM_JOB_FREE) {
            continue;
        }
        bool found = fm_rpc_id_equal(&job->call, call);
        for (unsigned k = 0; k < job->cancel_count; k++) {
            found = found || fm_rpc_id_equal(&job->cancel_calls[k], call);
        }
        if (found) {
            return true;
        }
    }
    return false;
}

/* The result of a create or cancel call: ok or the error, and the object as far as it came. */
static void send_result(struct fm_front *front, const struct fm_job *job, const struct fm_rpc_id *call, bool ok,
                        const struct fm_error *error) {
    struct fm_buf *buf = &front->event;
    const struct fm_surface *surface = job->answer.surface;
    fm_frame_begin(buf);
    struct fm_json_writer w = fm_rpc_result_begin(buf, call);
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "ok", ok);
    if (!ok) {
        fm_json_key(&w, "error");
        fm_error_write(error, &w);
    }
    if (ok || job->answer.opened) {
        fm_json_key(&w, surface->result_member);
        surface->write(&job->answer, error, &w);
    }
    fm_json_object_end(&w);
    fm_rpc_end(buf);
    fm_send_frame(&front->outbox, buf);
}

void fm_job_settle_locked(struct fm_front *front, struct fm_job *job, enum fm_finish finish,
                          const struct fm_error *error) {
    if (job->state != FM_JOB_QUEUED) {
        front->engine.held--;
    }
    fm_answer_finish(&job->answer, finish, error);
    send_result(front, job, &job->call, error == NULL, error);
    for (unsigned i = 0; i < job->cancel_count; i++) {
        send_result(front, job, &job->cancel_calls[i], true, error);
    }
    release(job);
}

void fm_job_settle_all_locked(struct fm_front *front) {
    struct fm_error error;
    fm_fail(&error, FM_CANCELLED, "the helper is shutting down");
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        if (front->jobs[i].state != FM_JOB_FREE) {
            fm_job_settle_locked(front, &front->jobs[i], FM_FINISH_CANCELLED, &error);
        }
    }
}

void fm_job_stop_locked(struct fm_front *front, struct fm_job *job, const struct fm_error *error) {
    if (job->stopping) {
        return;
    }
    if (job->state == FM_JOB_QUEUED) {
        enum fm_finish finish = error->code == FM_CANCELLED ? FM_FINISH_CANCELLED : FM_FINISH_FAILED;
        fm_job_settle_locked(front, job, finish, error);
        return;
    }
    job->stopping = true;
    job->stop_error = *error;
    job->grace_end_ms = fm_now_ms() + FM_GRACE_MS;
    fm_engine_abort_locked(front, job);
    pthread_cond_broadcast(&job->changed);
}
