/*
 * Frames of jobs, built when the host has room, by whichever thread finds the room: the one that brought the news, or
 * the host's writer. So a host that reads slowly gets longer deltas, and one that does not read costs the text of the
 * answers and little more.
 */
#include "front/streams.h"
#include "front/jobs.h"
#include "protocol/frame.h"

/* The answer that the job tells the host of. */
static struct fm_answer *answer_of(struct fm_job *job) {
    return job->source ? &job->source->answer : &job->answer;
}

/* An event that the reader has: into a buffer that takes nothing, in no time. */
static void skip_event(struct fm_job *job) {
    struct fm_buf nothing = {.failed = true};
    struct fm_json_writer w = fm_json_writer_on(&nothing);
    fm_answer_write_event(answer_of(job), &job->cursor, &w);
}

static void send_event(struct fm_front *front, struct fm_job *job) {
    struct fm_answer *answer = answer_of(job);
    const struct fm_surface *surface = answer->surface;
    struct fm_buf *buf = &front->event;
    fm_frame_begin(buf);
    struct fm_json_writer w = fm_rpc_notification_begin(buf, surface->event_method);
    fm_json_object_begin(&w);
    fm_json_key(&w, "id");
    fm_json_raw(&w, job->call.text, job->call.len);
    fm_json_key(&w, surface->event_member);
    fm_answer_write_event(answer, &job->cursor, &w);
    fm_json_object_end(&w);
    fm_rpc_end(buf);
    fm_send_frame(front, &front->outbox, buf);
}

/* The result of the create call or of a cancel call: ok or the error, and the object as far as it came. */
static void send_result(struct fm_front *front, struct fm_job *job, const struct fm_rpc_id *call, bool ok) {
    const struct fm_answer *answer = answer_of(job);
    const struct fm_surface *surface = answer->surface;
    struct fm_buf *buf = &front->event;
    fm_frame_begin(buf);
    struct fm_json_writer w = fm_rpc_result_begin(buf, call);
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "ok", ok);
    if (!ok) {
        fm_json_key(&w, "error");
        fm_error_write(&job->end_error, &w);
    }
    if (surface->result_member && (ok || answer->opened || answer->request.background)) {
        fm_json_key(&w, surface->result_member);
        surface->write(answer, &w);
    } else if (answer->opened) {
        surface->write(answer, &w);
    }
    fm_json_object_end(&w);
    fm_rpc_end(buf);
    fm_send_frame(front, &front->outbox, buf);
}

/* What the job tells of has ended. */
static bool has_ended(const struct fm_job *job) {
    return (job->source ? job->source : job)->state == FM_JOB_CLOSING;
}

/* The call is answered though that goes on: in the background without a stream, or when its reader has left. */
static bool is_detached(const struct fm_job *job) {
    return !job->stream && (job->replays || job->answer.request.background);
}

/* Once there are no more events: a result is due, or the job can go. */
static bool has_result(const struct fm_job *job) {
    if (fm_job_is_done(job)) {
        return job->state == FM_JOB_CLOSING && job->readers == 0;
    }
    bool waits = job->results_sent > 0 && !job->replays; /* who cancels a response is answered at its end */
    return has_ended(job) || (is_detached(job) && !waits);
}

/* It is found, or stored, first. */
static bool waits_for_store(const struct fm_job *job) {
    return job->storing || (job->source && job->source->storing && job->stream);
}

/* The create call's result, then those of the cancel calls; after the last one, the job is gone. */
static void send_next_result(struct fm_front *front, struct fm_job *job) {
    bool failed = job->end_error.code != FM_OK;
    bool found = !(job->replays && failed); /* else there is nothing to tell of */
    if (job->results_sent == 0) {
        send_result(front, job, &job->call, found && (!failed || is_detached(job)));
        job->results_sent++;
    } else if (job->results_sent <= job->cancel_count) {
        send_result(front, job, &job->cancel_calls[job->results_sent - 1], found);
        job->results_sent++;
    }
    if (job->state == FM_JOB_CLOSING && fm_job_is_done(job) && job->readers == 0) {
        fm_job_release_locked(front, job);
    }
}

void fm_streams_pump_locked(struct fm_front *front) {
    bool sent = false;
    for (unsigned idle = 0; idle < FM_JOBS_MAX;) {
        struct fm_job *job = &front->jobs[front->next_stream % FM_JOBS_MAX];
        bool talks = job->state != FM_JOB_FREE && !waits_for_store(job);
        bool event = talks && job->stream && fm_answer_has_event(answer_of(job), &job->cursor);
        bool result = talks && has_result(job);
        if (!event && !result) {
            front->next_stream++;
            idle++;
            continue;
        }
        if (!fm_outbox_has_room(&front->outbox)) {
            break; /* the outbox calls back, and this job is the next */
        }
        if (event && job->cursor.sequence <= job->after) {
            skip_event(job);
        } else if (event) {
            send_event(front, job);
        } else {
            send_next_result(front, job);
        }
        front->next_stream++; /* in turns: one long answer does not keep the others waiting */
        idle = 0;
        sent = true;
    }
    if (sent) {
        pthread_cond_broadcast(&front->drained);
    }
}

size_t fm_streams_backlog_locked(struct fm_front *front) {
    size_t backlog = 0;
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        struct fm_job *job = &front->jobs[i];
        if (job->state != FM_JOB_FREE) {
            backlog += fm_answer_backlog(answer_of(job), job->stream ? &job->cursor : NULL);
        }
    }
    return backlog;
}
