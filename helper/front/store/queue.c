/* The tasks that wait for the store: the list, each kind of task, and the store's trouble. */
#include "front/store/queue.h"
#include "base/clock.h"
#include "front/jobs.h"
#include "front/reply.h"
#include "front/store/thread.h"
#include "protocol/frame.h"
#include "surface/ignored.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_MAX    64
#define REPLY_MAX    (64u << 20) /* most bytes of a stored text, escaped */
#define SAY_AGAIN_MS 60000       /* for this long, the same trouble with the store is not logged again */

struct fm_store_task {
    struct fm_store_task *next;
    /* Runs in the store's thread, without the lock. If `store` is NULL, `error` says why. */
    void (*run)(struct fm_front *front, struct fm_store *store, struct fm_store_task *task, struct fm_error *error);
    uint64_t job;                        /* put_response, resolve_conversation: the waiting job's number; otherwise 0 */
    struct fm_answer *answer;            /* put_response: the job's answer; it stays until fm_job_stored_locked */
    struct fm_stored_response response;  /* put_response: the response as it is stored */
    struct fm_conversation conversation; /* resolve_conversation: the conversation to complete */
    bool replies;                        /* it answers a call, and waits until the host has taken the previous reply */
    struct fm_rpc_id call;
    fm_store_reply_fn *reply; /* for a task that replies, or replays */
    struct fm_store_query query;
    struct fm_buf ignored; /* the ignored params (paths) that the reply must report; owned */
};

static void free_task(struct fm_store_task *task) {
    fm_stored_response_free(&task->response);
    fm_conversation_free(&task->conversation);
    fm_buf_free(&task->ignored);
    free(task);
}

/* ---- the list ---- */

static void replay(struct fm_front *front, struct fm_store *store, struct fm_store_task *task, struct fm_error *error);

static bool can_be_done(const struct fm_store_queue *queue, const struct fm_store_task *task) {
    return !task->replies || !queue->reply_waits || queue->ending;
}

/*
 * Takes the next task that can be done now out of the list; NULL: there is none. Tasks for which a job waits go before
 * a replay, because a replay of a large response takes long.
 */
static struct fm_store_task *take_task_locked(struct fm_store_queue *queue) {
    struct fm_store_task **link = NULL;
    for (struct fm_store_task **at = &queue->first; *at; at = &(*at)->next) {
        bool first = !link || ((*link)->run == replay && (*at)->job > 0);
        if (can_be_done(queue, *at) && first) {
            link = at;
        }
    }
    struct fm_store_task *task = link ? *link : NULL;
    if (task) {
        *link = task->next;
        if (!*link) {
            queue->last = link;
        }
    }
    return task;
}

static void append_locked(struct fm_store_queue *queue, struct fm_store_task *task) {
    task->next = NULL;
    *queue->last = task;
    queue->last = &task->next;
}

/* ---- the trouble of the store ---- */

static void make_store(struct fm_front *front, struct fm_store **store, struct fm_error *error) {
    if (!*store) {
        *store = fm_store_new(front->options.store_file, front->options.store_bytes);
    }
    if (!*store) {
        (void)fm_fail_no_memory(error);
    }
}

/* Logs a trouble only once, however many calls it affects. */
static void report(struct fm_store_queue *queue, const struct fm_error *trouble) {
    int64_t now = fm_now_ms();
    bool said = strcmp(queue->said, trouble->detail) == 0 && now - queue->said_ms < SAY_AGAIN_MS;
    if (!said) {
        fm_log(FM_LOG_ERROR, "%s", trouble->detail);
    }
    memcpy(queue->said, trouble->detail, sizeof queue->said);
    queue->said_ms = now;
}

static void note_trouble(struct fm_front *front, const struct fm_store *store) {
    struct fm_store_queue *queue = &front->store_queue;
    struct fm_error trouble = {.code = FM_OK};
    if (store) {
        trouble = *fm_store_trouble(store);
    } else {
        (void)fm_fail_no_memory(&trouble);
    }
    fm_front_lock(front);
    bool was = queue->known && queue->trouble.code != FM_OK;
    bool same = was && strcmp(queue->trouble.detail, trouble.detail) == 0;
    queue->trouble = trouble;
    queue->known = true;
    fm_front_unlock(front);
    if (trouble.code != FM_OK && !same) {
        report(queue, &trouble);
    } else if (trouble.code == FM_OK && was) {
        fm_log(FM_LOG_INFO, "the store of responses is used again");
    }
}

void fm_store_open_early(struct fm_front *front, struct fm_store **store) {
    struct fm_error error;
    make_store(front, store, &error);
    if (*store) {
        (void)fm_store_open(*store, &error);
    }
    note_trouble(front, *store);
}

static void run_task(struct fm_front *front, struct fm_store **store, struct fm_store_task *task) {
    struct fm_error error = {.code = FM_OK};
    make_store(front, store, &error);
    task->run(front, *store, task, &error);
    note_trouble(front, *store); /* for tasks that do not report their errors themselves */
}

bool fm_store_run_next_locked(struct fm_front *front, struct fm_store **store) {
    struct fm_store_queue *queue = &front->store_queue;
    queue->running = take_task_locked(queue);
    if (!queue->running) {
        return false;
    }
    fm_front_unlock(front);
    run_task(front, store, queue->running);
    fm_front_lock(front);
    if (queue->running->query.again) {
        append_locked(queue, queue->running);
    } else {
        free_task(queue->running);
    }
    queue->running = NULL;
    return true;
}

static bool add_locked(struct fm_front *front, struct fm_store_task *task) {
    if (!fm_store_thread_start_locked(front)) {
        return false;
    }
    append_locked(&front->store_queue, task);
    pthread_cond_signal(&front->store_queue.changed);
    return true;
}

void fm_store_queue_init(struct fm_store_queue *queue) {
    *queue = (struct fm_store_queue){.last = &queue->first};
    pthread_cond_init(&queue->changed, NULL);
    fm_buf_init(&queue->reply, REPLY_MAX);
}

void fm_store_queue_free(struct fm_store_queue *queue) {
    fm_buf_free(&queue->reply);
    fm_buf_free(&queue->pulled);
    pthread_cond_destroy(&queue->changed);
}

void fm_store_end_locked(struct fm_front *front) {
    front->store_queue.ending = true;
    pthread_cond_signal(&front->store_queue.changed);
}

/* ---- whether it can be used ---- */

static void open_store(struct fm_front *front, struct fm_store *store, struct fm_store_task *task,
                       struct fm_error *error) {
    (void)front;
    (void)task;
    if (store) {
        (void)fm_store_open(store, error); /* run_task notes the trouble */
    }
}

enum fm_code fm_store_check_locked(struct fm_front *front, struct fm_error *error) {
    const struct fm_store_queue *queue = &front->store_queue;
    if (!queue->known || queue->trouble.code == FM_OK) {
        return FM_OK;
    }
    *error = queue->trouble;
    struct fm_store_task *task = calloc(1, sizeof *task);
    if (task) {
        task->run = open_store;
    }
    if (task && !add_locked(front, task)) {
        free(task);
    }
    return error->code;
}

/* ---- storing ---- */

/*
 * Fills the form in which the store keeps the answer. The answer does not change meanwhile, because its job is settled
 * and waits for this.
 */
static bool fill_response(struct fm_stored_response *response, struct fm_answer *answer) {
    const char *previous = answer->request.conversation.previous_id;
    snprintf(response->id, sizeof response->id, "%s", answer->id);
    snprintf(response->previous_id, sizeof response->previous_id, "%s", previous ? previous : "");
    fm_buf_init(&response->object, REPLY_MAX);
    struct fm_json_writer w = fm_json_writer_on(&response->object);
    answer->surface->write(answer, &w);
    fm_buf_init(&response->stream, REPLY_MAX);
    w = fm_json_writer_on(&response->stream);
    fm_answer_write_stream(answer, &w);
    return !response->object.failed && !response->stream.failed;
}

static void put_response(struct fm_front *front, struct fm_store *store, struct fm_store_task *task,
                         struct fm_error *error) {
    enum fm_code code = store ? FM_OK : error->code;
    if (code == FM_OK) {
        bool filled = fill_response(&task->response, task->answer);
        code = filled ? fm_store_put(store, &task->response, error) : fm_fail_no_memory(error);
    }
    if (code != FM_OK) { /* logged as a warning; trouble with the store as a whole is logged once as an error */
        fm_log(FM_LOG_WARN, "a response was not stored: %s", error->detail);
    }
    note_trouble(front, store); /* before the host gets the result, because it may then ask about the trouble */
    fm_front_enter(front);
    fm_job_stored_locked(front, task->job, code == FM_OK);
    fm_front_leave(front);
}

/* Moves the request's input into the task. */
static bool put_locked(struct fm_front *front, struct fm_job *job) {
    struct fm_conversation *conversation = &job->answer.request.conversation;
    struct fm_store_task *task = calloc(1, sizeof *task);
    if (!task) {
        return false;
    }
    *task = (struct fm_store_task){.run = put_response, .job = job->number, .answer = &job->answer};
    if (!add_locked(front, task)) {
        free(task);
        return false;
    }
    task->response.input = conversation->input;
    fm_buf_init(&conversation->input, task->response.input.max);
    return true;
}

/* ---- resolving ---- */

static enum fm_code get_response(void *store, const char *id, struct fm_stored_response *stored,
                                 struct fm_error *error) {
    return fm_store_get(store, id, stored, error);
}

static enum fm_code find_item(void *store, const char *item_id, char id[FM_ID_SIZE], struct fm_error *error) {
    return fm_store_find_item(store, item_id, id, error);
}

static void resolve_conversation(struct fm_front *front, struct fm_store *store, struct fm_store_task *task,
                                 struct fm_error *error) {
    const struct fm_conversation_source source = {.context = store, .get = get_response, .find_item = find_item};
    struct fm_buf messages;
    fm_buf_init(&messages, REPLY_MAX);
    enum fm_code code = store ? fm_conversation_resolve(&task->conversation, &source, &messages, error) : error->code;
    fm_front_enter(front);
    fm_job_resolved_locked(front, task->job, &task->conversation, &messages, code == FM_OK ? NULL : error);
    fm_front_leave(front);
    fm_buf_free(&messages);
}

static bool resolve_locked(struct fm_front *front, struct fm_job *job) {
    struct fm_conversation *conversation = &job->answer.request.conversation;
    struct fm_conversation kept = {0};
    struct fm_store_task *task = calloc(1, sizeof *task);
    if (!task || !fm_conversation_copy_kept(&kept, conversation)) {
        fm_conversation_free(&kept);
        free(task);
        return false;
    }
    task->run = resolve_conversation;
    task->job = job->number;
    if (!add_locked(front, task)) {
        fm_conversation_free(&kept);
        free_task(task);
        return false;
    }
    task->conversation = *conversation;
    *conversation = kept;
    return true;
}

/* ---- replaying ---- */

static void replay(struct fm_front *front, struct fm_store *store, struct fm_store_task *task, struct fm_error *error) {
    task->query.again = false;
    if (task->reply(front, store, &task->query, NULL, error) != FM_OK) {
        fm_front_enter(front);
        fm_job_replayed_locked(front, task->query.job, NULL, NULL, error);
        fm_front_leave(front);
    }
}

bool fm_store_replay_locked(struct fm_front *front, fm_store_reply_fn *find, const struct fm_store_query *query) {
    struct fm_store_task *task = calloc(1, sizeof *task);
    if (!task) {
        return false;
    }
    task->run = replay;
    task->reply = find;
    task->query = *query;
    task->query.ignored = NULL;
    if (!add_locked(front, task)) {
        free_task(task);
        return false;
    }
    return true;
}

/* ---- replying ---- */

/* Writes the report if the frame has room for it. */
static void write_ignored(const struct fm_buf *paths, struct fm_json_writer *w) {
    size_t before = w->buf->len;
    fm_ignored_write_report(paths, w);
    if (before <= FM_FRAME_BODY_MAX && w->buf->len > FM_FRAME_BODY_MAX - 16) {
        w->buf->len = before;
    }
}

static void write_reply(struct fm_front *front, struct fm_store *store, struct fm_store_task *task, struct fm_buf *buf,
                        struct fm_error *error) {
    fm_frame_begin(buf);
    struct fm_json_writer w = fm_rpc_result_begin(buf, &task->call);
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "ok", true);
    enum fm_code code = task->reply(front, store, &task->query, &w, error);
    write_ignored(&task->ignored, &w);
    fm_json_object_end(&w);
    fm_rpc_end(buf);
    if (code == FM_OK && buf->len > FM_FRAME_BODY_MAX) { /* a host would treat it as a broken connection */
        code = fm_fail(error, FM_INTERNAL, "the reply is too large for a frame");
    }
    if (code != FM_OK) {
        fm_reply_write_failure(buf, &task->call, error);
    }
}

static void hand_over_locked(struct fm_front *front, struct fm_store_task *task, struct fm_buf *buf) {
    struct fm_store_queue *queue = &front->store_queue;
    queue->calls--;
    task->replies = false;    /* the call's id becomes free when the host has the reply */
    if (queue->reply_waits) { /* this process is ending, and does not wait for the host any more */
        fm_send_frame(front, &front->outbox, buf);
    } else {
        fm_buf_free(&queue->reply);
        queue->reply = *buf;
        fm_buf_init(buf, REPLY_MAX);
        queue->reply_call = task->call;
        queue->reply_waits = true;
    }
}

static void reply(struct fm_front *front, struct fm_store *store, struct fm_store_task *task, struct fm_error *error) {
    struct fm_buf buf;
    fm_buf_init(&buf, REPLY_MAX);
    task->query.again = false;
    write_reply(front, store, task, &buf, error);
    note_trouble(front, store);
    if (!task->query.again) {
        fm_front_enter(front);
        hand_over_locked(front, task, &buf);
        fm_front_leave(front);
    }
    fm_buf_free(&buf);
}

enum fm_code fm_store_call_locked(struct fm_front *front, const struct fm_rpc_id *call, fm_store_reply_fn *answer,
                                  const struct fm_store_query *query, struct fm_error *error) {
    if (front->ending) {
        return fm_fail(error, FM_CANCELLED, "the helper is shutting down");
    }
    if (front->store_queue.calls == CALLS_MAX) {
        return fm_fail_too_many(error, "%d calls wait for the store already", CALLS_MAX);
    }
    struct fm_store_task *task = calloc(1, sizeof *task);
    if (!task) {
        return fm_fail_no_memory(error);
    }
    task->run = reply;
    task->replies = true;
    task->call = *call;
    task->reply = answer;
    task->query = *query;
    task->query.ignored = NULL;
    fm_buf_init(&task->ignored, FM_IGNORED_BYTES);
    if (query->ignored) {
        fm_buf_append(&task->ignored, query->ignored->paths, query->ignored->len);
    }
    if (task->ignored.failed) {
        free_task(task);
        return fm_fail_no_memory(error);
    }
    if (!add_locked(front, task)) {
        free_task(task);
        return fm_fail(error, FM_OVERLOADED, "can't start a thread for the store");
    }
    front->store_queue.calls++;
    return FM_OK;
}

bool fm_store_next_reply(struct fm_front *front, const char **frame, size_t *len) {
    struct fm_store_queue *queue = &front->store_queue;
    if (!fm_front_try_enter(front)) {
        return false; /* the pump pokes the outbox again */
    }
    bool waits = queue->reply_waits;
    fm_buf_free(&queue->pulled);
    if (waits) {
        queue->pulled = queue->reply;
        fm_buf_init(&queue->reply, REPLY_MAX);
        queue->reply_waits = false;
        pthread_cond_signal(&queue->changed);
        pthread_cond_broadcast(&front->drained);
    }
    fm_front_leave(front);
    return waits && fm_end_frame(front, &front->outbox, &queue->pulled, frame, len);
}

/* ---- tasks from jobs ---- */

static void resolve_job_locked(struct fm_front *front, struct fm_job *job) {
    job->resolve_due = false;
    if (!resolve_locked(front, job)) {
        struct fm_error error;
        fm_fail(&error, FM_OVERLOADED, "can't ask the store for the request");
        fm_job_settle_locked(job, FM_FINISH_FAILED, &error);
    }
}

static void put_job_locked(struct fm_front *front, struct fm_job *job) {
    job->put_due = false;
    job->storing = put_locked(front, job);
    job->answer.lost = !job->storing;
}

void fm_store_pump_locked(struct fm_front *front) {
    for (size_t i = 0; i < front->jobs_end; i++) {
        struct fm_job *job = &front->jobs[i];
        if (job->state == FM_JOB_QUEUED && job->resolve_due) {
            resolve_job_locked(front, job);
        }
        if (job->state == FM_JOB_CLOSING && job->put_due) {
            put_job_locked(front, job);
        }
    }
    if (front->store_queue.reply_waits) {
        fm_outbox_poke(&front->outbox);
    }
}

static bool answers(const struct fm_store_task *task, const struct fm_rpc_id *call) {
    return task && task->replies && fm_rpc_id_equal(&task->call, call);
}

bool fm_store_answers_locked(const struct fm_front *front, const struct fm_rpc_id *call) {
    const struct fm_store_queue *queue = &front->store_queue;
    bool found = answers(queue->running, call) || (queue->reply_waits && fm_rpc_id_equal(&queue->reply_call, call));
    for (const struct fm_store_task *task = queue->first; task && !found; task = task->next) {
        found = answers(task, call);
    }
    return found;
}
