/*
 * Frames of jobs. A frame is built when the host has room for it. The thread that finds the room builds it: the one
 * that changed the job, or the host's writer. So a host that reads slowly gets longer deltas, and for a host that does
 * not read, little more than the text of the answers is kept. Once an answer is large, its frames are built without the
 * lock, one at a time, when the writer asks for one. The writer builds such a frame, but if that takes long, another
 * thread does, so that the writer goes on with queued frames. Frames of that answer that were queued before are marked
 * and written first, so its frames stay in order.
 */
#include "front/streams.h"
#include "front/jobs.h"
#include "protocol/frame.h"

/* The answer that the job sends to the host. */
static struct fm_answer *answer_of(struct fm_job *job) {
    return job->source ? &job->source->answer : &job->answer;
}

static void write_event(struct fm_job *job, struct fm_buf *buf) {
    struct fm_answer *answer = answer_of(job);
    const struct fm_surface *surface = answer->surface;
    struct fm_json_writer w = fm_rpc_notification_begin(buf, surface->event_method);
    fm_json_object_begin(&w);
    fm_json_key(&w, "id");
    fm_json_raw(&w, job->call.text, job->call.len);
    fm_json_key(&w, surface->event_member);
    fm_answer_write_event(answer, &job->cursor, &w);
    fm_json_object_end(&w);
}

/* Whether the call got the object in its last event. Its result then leaves out what that event had. */
static bool has_had(struct fm_job *job, const struct fm_rpc_id *call) {
    bool had = call == &job->call && job->stream && job->last_event_sent;
    return had && answer_of(job)->surface->write_end && !job->full_result;
}

static void write_object(struct fm_job *job, const struct fm_rpc_id *call, struct fm_json_writer *w) {
    const struct fm_answer *answer = answer_of(job);
    const struct fm_surface *surface = answer->surface;
    (has_had(job, call) ? surface->write_end : surface->write)(answer, w);
}

/* The result of the create call or of a cancel call: ok or the error, and the object as far as it came. */
static void write_result(struct fm_job *job, const struct fm_rpc_id *call, bool ok, struct fm_buf *buf) {
    const struct fm_answer *answer = answer_of(job);
    const struct fm_surface *surface = answer->surface;
    struct fm_json_writer w = fm_rpc_result_begin(buf, call);
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "ok", ok);
    if (!ok) {
        fm_json_key(&w, "error");
        fm_error_write(&job->end_error, &w);
    }
    if (surface->result_member && (ok || answer->opened || answer->request.background)) {
        fm_json_key(&w, surface->result_member);
        write_object(job, call, &w);
    } else if (answer->opened) {
        write_object(job, call, &w);
    }
    fm_json_object_end(&w);
}

/* Whether the answer that the job sends has ended. */
static bool has_ended(const struct fm_job *job) {
    return (job->source ? job->source : job)->state == FM_JOB_CLOSING;
}

/*
 * Whether the call is answered while the answer goes on: in the background without a stream, or when its reader has
 * left.
 */
static bool is_detached(const struct fm_job *job) {
    return !job->stream && (job->replays || job->answer.request.background);
}

/* Called when there are no more events. True if a result is due, or if the job can be released. */
static bool has_result(const struct fm_job *job) {
    if (fm_job_is_done(job)) {
        return job->state == FM_JOB_CLOSING && job->readers == 0;
    }
    bool waits = job->results_sent > 0 && !job->replays; /* calls that cancel a response are answered at its end */
    return has_ended(job) || (is_detached(job) && !waits);
}

/* Whether the store has to find or store the response first. */
static bool waits_for_store(const struct fm_job *job) {
    return job->storing || (job->source && job->source->storing && job->stream);
}

/* Whether the job's frame is built, but the writer has not taken it yet. */
static bool waits_for_writer(const struct fm_job *job) {
    const struct fm_large_frame *large = &job->front->large;
    return large->built && large->job == job;
}

/* The call that is answered next: first the create call, then the cancel calls. */
static const struct fm_rpc_id *next_answered(const struct fm_job *job) {
    return job->results_sent == 0 ? &job->call : &job->cancel_calls[job->results_sent - 1];
}

static void write_next_result(struct fm_job *job, struct fm_buf *buf) {
    bool failed = job->end_error.code != FM_OK;
    bool found = !(job->replays && failed); /* if false, there is no response to send */
    bool ok = found && (!failed || job->results_sent > 0 || is_detached(job));
    write_result(job, next_answered(job), ok, buf);
}

/* Returns the kind of a job's next frame. */
enum frame { NO_FRAME, EVENT, SKIPPED_EVENTS, RESULT, NO_RESULT };

static enum frame frame_of(struct fm_job *job) {
    if (job->state == FM_JOB_FREE || waits_for_store(job) || waits_for_writer(job)) {
        return NO_FRAME;
    }
    if (job->stream && fm_answer_has_event(answer_of(job), &job->cursor)) {
        return job->cursor.sequence <= job->after ? SKIPPED_EVENTS : EVENT;
    }
    if (!has_result(job)) {
        return NO_FRAME;
    }
    return fm_job_is_done(job) ? NO_RESULT : RESULT;
}

static bool is_large(struct fm_job *job) {
    return fm_answer_size(answer_of(job)) > FM_LARGE;
}

/*
 * The job that may send a frame next, or NULL. Jobs take turns, so that one long answer does not keep the others
 * waiting.
 */
static struct fm_job *take_turn(struct fm_front *front, bool large, enum frame *kind) {
    for (unsigned i = 0; i < front->jobs_end; i++) {
        struct fm_job *job = &front->jobs[front->next_stream++ % front->jobs_end];
        *kind = frame_of(job);
        if (*kind != NO_FRAME && is_large(job) == large) {
            return job;
        }
    }
    return NULL;
}

static bool has_large(struct fm_front *front) {
    for (unsigned i = 0; i < front->jobs_end; i++) {
        struct fm_job *job = &front->jobs[i];
        if (job->state != FM_JOB_FREE && is_large(job) && frame_of(job) != NO_FRAME) {
            return true;
        }
    }
    return false;
}

static void build(struct fm_job *job, enum frame kind, struct fm_buf *buf) {
    fm_frame_begin(buf);
    if (kind == EVENT) {
        write_event(job, buf);
    } else if (kind == SKIPPED_EVENTS) {
        fm_answer_skip_events(answer_of(job), &job->cursor, job->after);
    } else if (kind == RESULT) {
        write_next_result(job, buf);
    }
    fm_rpc_end(buf);
}

/* After its last result the job is released; if the store still reads it, it is released after that. */
static void note_told_locked(struct fm_front *front, struct fm_job *job, enum frame kind) {
    job->results_sent += kind == RESULT;
    job->last_event_sent = kind == EVENT || (job->last_event_sent && kind != SKIPPED_EVENTS);
    if (job->state == FM_JOB_CLOSING && fm_job_is_done(job) && job->readers == 0 && !job->storing) {
        fm_job_release_locked(front, job);
    }
    pthread_cond_broadcast(&front->drained);
}

void fm_streams_pump_locked(struct fm_front *front) {
    struct fm_buf *buf = &front->event;
    struct fm_job *job;
    enum frame kind;
    while (front->jobs_in_flight && fm_outbox_has_room(&front->outbox) && (job = take_turn(front, false, &kind))) {
        build(job, kind, buf);
        if (kind == EVENT || kind == RESULT) {
            fm_send_frame(front, &front->outbox, buf);
        }
        note_told_locked(front, job, kind);
    }
    if (front->large.built || (has_large(front) && !front->said_all)) {
        fm_outbox_poke(&front->outbox);
    }
}

/* ---- large frames ---- */

static bool takes_long(struct fm_job *job, enum frame kind) {
    bool whole_result = kind == RESULT && !has_had(job, next_answered(job));
    bool whole_event = kind == EVENT && !fm_answer_event_is_part(answer_of(job), &job->cursor);
    return whole_result || whole_event;
}

/* Called after fm_front_build_begin_locked: builds the frame, then takes the lock again. */
static void build_large(struct fm_front *front, struct fm_job *job, enum frame kind) {
    struct fm_large_frame *large = &front->large;
    build(job, kind, &large->buf);
    fm_front_build_end_locked(front);
    bool made = kind == EVENT || kind == RESULT;
    large->built = made && fm_end_frame(front, &front->outbox, &large->buf, &large->frame, &large->len);
    if (!large->built) {
        note_told_locked(front, job, kind);
    }
}

static void *build_main(void *argument) {
    struct fm_front *front = argument;
    build_large(front, front->large.job, front->large.is_result ? RESULT : EVENT);
    fm_outbox_poke(&front->outbox);
    fm_front_leave(front);
    return NULL;
}

/*
 * Starts a large frame. True: a thread builds the frame, and the lock is released. False: the frame, if any, is built,
 * and the lock is held.
 */
static bool begin_large_locked(struct fm_front *front, struct fm_job *job, enum frame kind) {
    bool aside = takes_long(job, kind);
    front->large.job = job;
    front->large.is_result = kind == RESULT;
    fm_front_build_begin_locked(front);
    if (aside && fm_thread_start(build_main, front) == 0) {
        return true;
    }
    build_large(front, job, kind);
    return false;
}

/* Hands the frame that is built to the writer. */
static bool take_large_locked(struct fm_front *front, const char **frame, size_t *len) {
    struct fm_large_frame *large = &front->large;
    if (!large->built) {
        return false;
    }
    large->built = false;
    *frame = large->frame;
    *len = large->len;
    fm_outbox_mark(&front->outbox); /* frames of this job may be queued from the time when it was not large yet */
    note_told_locked(front, large->job, large->is_result ? RESULT : EVENT);
    return true;
}

bool fm_streams_next(struct fm_front *front, const char **frame, size_t *len) {
    struct fm_large_frame *large = &front->large;
    struct fm_job *job;
    enum frame kind;
    if (!fm_front_try_enter(front)) {
        return false;
    }
    while (!large->built && !front->said_all && (job = take_turn(front, true, &kind))) {
        if (begin_large_locked(front, job, kind)) {
            return false;
        }
    }
    bool made = take_large_locked(front, frame, len);
    if (!made && large->buf.cap > FM_KEEP_BYTES) { /* the buffer is kept while one large frame follows another */
        fm_buf_free(&large->buf);
    }
    fm_front_leave(front);
    return made;
}

size_t fm_streams_backlog_locked(struct fm_front *front) {
    size_t backlog = 0;
    for (size_t i = 0; i < front->jobs_end; i++) {
        struct fm_job *job = &front->jobs[i];
        if (job->state != FM_JOB_FREE) {
            backlog += fm_answer_backlog(answer_of(job), job->stream ? &job->cursor : NULL);
        }
    }
    return backlog;
}
