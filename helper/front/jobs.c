/* The table of jobs: functions to begin, find and end jobs. */
#include "front/jobs.h"
#include "base/clock.h"
#include "surface/conversation.h"

#include <stdlib.h>
#include <string.h>

static struct fm_job *free_slot(struct fm_front *front) {
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        if (front->jobs[i].state == FM_JOB_FREE) {
            return &front->jobs[i];
        }
    }
    return NULL;
}

bool fm_job_is_done(const struct fm_job *job) {
    return job->results_sent > job->cancel_count;
}

void fm_job_release_locked(struct fm_front *front, struct fm_job *job) {
    if (job->source) {
        job->source->readers--; /* if the source waited only for this job, the pump releases it */
    }
    fm_answer_free(&job->answer);
    fm_model_free(&job->model);
    fm_route_free(&job->route);
    job->state = FM_JOB_FREE;
    front->jobs_in_flight--;
    while (front->jobs_end > 0 && front->jobs[front->jobs_end - 1].state == FM_JOB_FREE) {
        front->jobs_end--;
    }
    pthread_cond_broadcast(&job->changed); /* wakes the watchdog, which finds that its job is gone */
}

static enum fm_code no_slot(const struct fm_front *front, struct fm_error *error) {
    return front->ending
               ? fm_fail(error, FM_CANCELLED, "the helper is shutting down")
               : fm_fail_too_many(error, "%d requests are in flight already; wait for an answer, then try again",
                                  FM_JOBS_MAX);
}

/* Begins a job of either kind; the answer exists already. */
static void begin_job(struct fm_front *front, struct fm_job *job, const struct fm_rpc_id *call, bool stream) {
    size_t end = (size_t)(job - front->jobs) + 1;
    front->jobs_end = end > front->jobs_end ? end : front->jobs_end;
    front->jobs_in_flight++;
    job->engine = NULL;
    job->stopping = false;
    job->abort_due = false;
    job->produced = false;
    job->resolve_due = false;
    job->storing = false;
    job->put_due = false;
    job->number = ++front->last_number;
    job->run = job->number;
    job->call = *call;
    job->cursor = (struct fm_cursor){0};
    job->stream = stream;
    job->streamed = stream;
    job->last_event_sent = false;
    job->full_result = false;
    job->replays = false;
    job->source = NULL;
    job->readers = 0;
    job->after = -1;
    job->arrived_ms = fm_now_ms();
    job->queued_us = fm_now_us();
    job->progress_ms = job->arrived_ms;
    job->cancel_count = 0;
    job->results_sent = 0;
}

enum fm_code fm_job_replay_locked(struct fm_front *front, const struct fm_rpc_id *call, int64_t after,
                                  struct fm_job **job, struct fm_error *error) {
    struct fm_job *new = front->ending ? NULL : free_slot(front);
    if (!new) {
        return no_slot(front, error);
    }
    begin_job(front, new, call, true);
    new->state = FM_JOB_CLOSING;
    new->storing = true;
    new->replays = true;
    new->after = after;
    new->answer = (struct fm_answer){.surface = &fm_surface_responses};
    new->model = (struct fm_model){0};
    new->route.count = 0;
    new->end_error = (struct fm_error){.code = FM_OK};
    *job = new;
    return FM_OK;
}

static struct fm_job *find_closing(struct fm_front *front, uint64_t number) {
    for (size_t i = 0; i < front->jobs_end; i++) {
        if (front->jobs[i].state == FM_JOB_CLOSING && front->jobs[i].number == number) {
            return &front->jobs[i];
        }
    }
    return NULL;
}

void fm_job_replayed_locked(struct fm_front *front, uint64_t number, struct fm_job *source, struct fm_answer *answer,
                            const struct fm_error *error) {
    struct fm_job *job = find_closing(front, number);
    if (!job && answer) {
        fm_answer_free(answer);
    }
    if (!job) {
        return;
    }
    job->storing = false;
    if (error) {
        job->end_error = *error;
    } else if (source) {
        job->source = source;
        source->readers++;
        source->streamed = true;
    } else {
        job->answer = *answer;
    }
}

enum fm_code fm_job_create_locked(struct fm_front *front, const struct fm_rpc_id *call,
                                  const struct fm_surface *surface, struct fm_request *request, struct fm_route *route,
                                  struct fm_job **job, struct fm_error *error) {
    struct fm_job *new = front->ending ? NULL : free_slot(front);
    if (!new) {
        fm_request_free(request);
        fm_route_free(route);
        return no_slot(front, error);
    }
    enum fm_code code = fm_answer_init(&new->answer, surface, request, route->models[0].id, error);
    if (code != FM_OK) {
        fm_route_free(route);
        return code;
    }
    begin_job(front, new, call, new->answer.request.stream);
    new->full_result = new->answer.request.full_result;
    new->state = FM_JOB_QUEUED;
    new->model = fm_route_next(route);
    new->route = *route;
    new->resolve_due = new->answer.request.unresolved;
    *job = new;
    return FM_OK;
}

static bool is_settled(const struct fm_job *job) {
    return job->state == FM_JOB_FREE || job->state == FM_JOB_CLOSING;
}

static bool is_answered(const struct fm_job *job) {
    return job->state == FM_JOB_FREE || job->results_sent > 0;
}

struct fm_job *fm_job_by_number_locked(struct fm_front *front, uint64_t number) {
    for (size_t i = 0; i < front->jobs_end; i++) {
        if (!is_settled(&front->jobs[i]) && front->jobs[i].number == number) {
            return &front->jobs[i];
        }
    }
    return NULL;
}

struct fm_job *fm_job_by_run_locked(struct fm_front *front, uint64_t run) {
    for (size_t i = 0; i < front->jobs_end; i++) {
        if (!is_settled(&front->jobs[i]) && front->jobs[i].run == run) {
            return &front->jobs[i];
        }
    }
    return NULL;
}

struct fm_job *fm_job_by_call_locked(struct fm_front *front, const struct fm_rpc_id *call) {
    for (size_t i = 0; i < front->jobs_end; i++) {
        if (!is_answered(&front->jobs[i]) && fm_rpc_id_equal(&front->jobs[i].call, call)) {
            return &front->jobs[i];
        }
    }
    return NULL;
}

struct fm_job *fm_job_by_answer_locked(struct fm_front *front, const char *id) {
    for (size_t i = 0; i < front->jobs_end; i++) {
        const struct fm_job *job = &front->jobs[i];
        bool there = !is_answered(job) || (job->state != FM_JOB_FREE && job->answer.request.background);
        if (there && !job->replays && strcmp(front->jobs[i].answer.id, id) == 0) {
            return &front->jobs[i];
        }
    }
    return NULL;
}

/* Whether one of the results that the job still has to send answers `call`. */
static bool will_answer(const struct fm_job *job, const struct fm_rpc_id *call) {
    unsigned sent = job->results_sent;
    bool found = sent == 0 && fm_rpc_id_equal(&job->call, call);
    for (unsigned i = sent ? sent - 1 : 0; i < job->cancel_count && !found; i++) {
        found = fm_rpc_id_equal(&job->cancel_calls[i], call);
    }
    return found;
}

bool fm_jobs_answer_locked(const struct fm_front *front, const struct fm_rpc_id *call) {
    for (size_t i = 0; i < front->jobs_end; i++) {
        if (front->jobs[i].state != FM_JOB_FREE && will_answer(&front->jobs[i], call)) {
            return true;
        }
    }
    return false;
}

bool fm_job_is_held(const struct fm_job *job) {
    return job->state == FM_JOB_SENT || job->state == FM_JOB_RUNNING;
}

static void queue_again(struct fm_job *job) {
    job->state = FM_JOB_QUEUED;
    job->queued_us = fm_now_us();
    job->run = ++job->front->last_number;
}

bool fm_job_can_restart(const struct fm_job *job) {
    return !job->produced || !job->streamed;
}

/* Resets the answer and its output. Limits that count from the first output stop counting until output comes again. */
static void forget_output(struct fm_job *job, bool all) {
    if (job->produced) {
        fm_answer_restart(&job->answer, all);
        job->produced = false;
        job->accepted_ms = fm_now_ms();
    }
}

void fm_job_restarted_locked(struct fm_job *job) {
    forget_output(job, false);
    job->state = FM_JOB_SENT;
}

void fm_job_again_locked(struct fm_job *job) {
    forget_output(job, false);
    queue_again(job);
}

bool fm_job_may_move(const struct fm_job *job) {
    return job->route.count > 0 && fm_job_can_restart(job);
}

/* Whether an error says more about the engine than about the request. */
static bool is_of_the_engine(const struct fm_error *error) {
    return error->elsewhere || error->code == FM_UNAVAILABLE || error->code == FM_RATE_LIMITED ||
           error->code == FM_OVERLOADED;
}

/* Gives the answer the id of the job's new model. False when out of memory. */
static bool rename_answer(struct fm_job *job) {
    char *name = strdup(job->model.id);
    if (name) {
        free(job->answer.model);
        job->answer.model = name;
    }
    return name != NULL;
}

void fm_job_fail_or_move_locked(struct fm_job *job, const struct fm_error *error) {
    struct fm_error copy = *error; /* a copy: `error` may belong to the engine, and may change */
    if (!fm_job_may_move(job) || job->stopping || !is_of_the_engine(&copy) || job->front->ending) {
        fm_job_settle_locked(job, FM_FINISH_FAILED, &copy);
        return;
    }
    fm_log(FM_LOG_INFO, "a request goes to the engine %s: %s", job->route.models[0].engine->name, copy.detail);
    fm_model_free(&job->model);
    job->model = fm_route_next(&job->route);
    job->engine = NULL;
    forget_output(job, true); /* all choices must be of one model */
    if (!job->answer.opened && !rename_answer(job)) {
        (void)fm_fail_no_memory(&copy);
        fm_job_settle_locked(job, FM_FINISH_FAILED, &copy);
        return;
    }
    queue_again(job);
}

void fm_job_made_locked(struct fm_job *job, enum fm_finish finish) {
    struct fm_answer *answer = &job->answer;
    struct fm_error error;
    enum fm_code code = FM_OK;
    bool goes_on = fm_answer_goes_on(answer, finish);
    if (goes_on) {
        fm_metrics_count_choice(&job->front->metrics, answer);
        code = fm_answer_next(answer, finish, &error);
    } else if (finish == FM_FINISH_LENGTH && answer->surface->check_cut) {
        code = answer->surface->check_cut(answer, &error);
    }
    if (code != FM_OK) {
        fm_job_settle_locked(job, FM_FINISH_FAILED, &error);
        return;
    }
    if (!goes_on) {
        fm_job_settle_locked(job, finish, NULL);
        return;
    }
    queue_again(job);
}

void fm_job_settle_locked(struct fm_job *job, enum fm_finish finish, const struct fm_error *error) {
    static const struct fm_error none = {.code = FM_OK};
    job->end_error = error ? *error : none;
    job->state = FM_JOB_CLOSING;
    fm_metrics_count_end(&job->front->metrics, finish, error);
    fm_metrics_count_choice(&job->front->metrics, &job->answer);
    fm_answer_finish(&job->answer, finish, error);
    job->put_due = fm_answer_is_kept(&job->answer);
    job->storing = job->put_due;
    pthread_cond_broadcast(&job->changed); /* the watchdog no longer needs this job */
}

void fm_job_stored_locked(struct fm_front *front, uint64_t number, bool stored) {
    struct fm_job *job = find_closing(front, number);
    if (job) {
        job->storing = false;
        job->answer.lost = !stored;
    }
}

void fm_job_resolved_locked(struct fm_front *front, uint64_t number, struct fm_conversation *conversation,
                            const struct fm_buf *messages, const struct fm_error *error) {
    struct fm_job *job = fm_job_by_number_locked(front, number);
    struct fm_error no_memory;
    if (!job) {
        return;
    }
    struct fm_request *request = &job->answer.request;
    struct fm_error refusal = {.param = "input"};
    fm_conversation_free(&request->conversation);
    request->conversation = *conversation;
    *conversation = (struct fm_conversation){0};
    if (!error && request->conversation.images && !fm_model_sees(&job->model)) {
        (void)fm_model_refuse_images(&job->model, &refusal);
        error = &refusal;
    }
    if (!request->conversation.images && request->image_params.len == 0) {
        fm_model_do_without_images(&job->model);
    }
    if (!error && fm_request_resolve(request, messages, &no_memory) != FM_OK) {
        error = &no_memory;
    }
    if (error) {
        fm_job_settle_locked(job, FM_FINISH_FAILED, error);
    }
}

void fm_job_settle_all_locked(struct fm_front *front) {
    struct fm_error error;
    fm_fail(&error, FM_CANCELLED, "the helper is shutting down");
    for (size_t i = 0; i < front->jobs_end; i++) {
        if (!is_settled(&front->jobs[i])) {
            fm_job_settle_locked(&front->jobs[i], FM_FINISH_CANCELLED, &error);
        }
    }
}

void fm_job_stop_locked(struct fm_job *job, const struct fm_error *error) {
    if (job->stopping || is_settled(job)) {
        return;
    }
    if (job->state == FM_JOB_QUEUED) {
        enum fm_finish finish = error->code == FM_CANCELLED ? FM_FINISH_CANCELLED : FM_FINISH_FAILED;
        fm_job_settle_locked(job, finish, error);
        return;
    }
    job->stopping = true;
    job->stop_error = *error;
    job->grace_end_ms = fm_now_ms() + FM_GRACE_MS;
    job->abort_due = true;
    pthread_cond_broadcast(&job->changed);
}
