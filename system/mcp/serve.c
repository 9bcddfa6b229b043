/*
 * Two threads. The first one reads, writes, and answers requests that need no desktop. The second one works on the
 * desktop, one job after the other. Only the first thread writes to the client, and only whole lines. Jobs go from the
 * first thread to the second and back; only the first makes and frees them. All that waits is bounded: if the client
 * reads slowly, its requests are read slowly too.
 */
#include "mcp/serve.h"
#include "base/clock.h"
#include "base/platform.h"
#include "mcp/server.h"
#include "protocol/json_tree.h"
#include "protocol/line.h"

#include <errno.h>
#include <json-c/json.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define JOBS_MAX  64u          /* waiting jobs; with this many, no more input is read */
#define HELD_MAX  1048576u     /* bytes that wait for the desktop's thread, or for the client */
#define OUT_MAX   (128u << 20) /* bytes of output; large, because one message can cause a batch of large answers */
#define GRACE_MS  1000         /* time to answer open requests after the end of the input */
#define LET_GO_MS 1000         /* time to free the desktop after GRACE_MS */

struct list {
    struct sy_job *first;
    struct sy_job **last;
    size_t count;
    size_t bytes;
};

struct serve {
    struct sy_server server;
    struct fm_lines lines;
    struct fm_buf out;
    const struct sy_serve *given;
    bool ended;       /* no more is read */
    bool hung_up;     /* the client writes no more; maybe not all of its input is read yet */
    bool lost;        /* output can't be written any more */
    int64_t until_ms; /* once the input has ended: when the present time limit ends */
    bool impatient;   /* the first time limit (GRACE_MS) is over */

    pthread_mutex_t lock; /* for the members below, except `caller`, which the desktop's thread owns */
    pthread_cond_t changed;
    struct list todo;
    struct list done;
    struct sy_job *running;
    bool interrupted; /* a byte is in the cancel pipe */
    bool finish;      /* the desktop's thread ends when `todo` is empty */
    bool finished;    /* the desktop's thread uses nothing of this struct any more */
    int cancel[2];    /* readable: the running job was cancelled */
    int wake[2];      /* readable: a job is done, or has lines to send, or `finished` was set */
    struct sy_caller caller;
};

/* ---- lists ---- */

static void list_init(struct list *list) {
    *list = (struct list){.last = &list->first};
}

static void push(struct list *list, struct sy_job *job) {
    job->next = NULL;
    *list->last = job;
    list->last = &job->next;
    list->count++;
    list->bytes += job->len + job->told.len + job->answer.len;
}

/* Takes the job at `*at` out. */
static struct sy_job *take_job(struct list *list, struct sy_job **at) {
    struct sy_job *job = *at;
    *at = job->next;
    list->last = list->last == &job->next ? at : list->last;
    list->count--;
    list->bytes -= job->len + job->told.len + job->answer.len;
    return job;
}

/* ---- the desktop's thread ---- */

static void wake(const struct serve *serve) {
    (void)!fm_write(serve->wake[1], "", 1); /* a full pipe wakes too */
}

static void tell(void *context, const char *line, size_t len) {
    struct serve *serve = context;
    pthread_mutex_lock(&serve->lock);
    fm_buf_append(&serve->running->told, line, len);
    pthread_mutex_unlock(&serve->lock);
    wake(serve);
}

static void do_job(struct sy_caller *caller, struct sy_job *job) {
    struct json_object *root = NULL;
    struct fm_rpc_message message;
    struct sy_request request;
    struct sy_fault fault;
    struct fm_buf scratch;
    fm_buf_init(&scratch, FM_LINE_MAX);
    if (fm_json_tree(job->text, job->len, &scratch, &root) && fm_rpc_read(root, &message) == FM_RPC_OK &&
        sy_request_read(&message, &request, &fault)) {
        request.era = job->era;
        sy_caller_answer(caller, &request, &job->answer);
    } else { /* the server has read this message before, so only memory can be missing */
        sy_fail(&fault, FM_RPC_INTERNAL, "out of memory");
        sy_write_fault(&job->answer, &job->id, job->era, &fault);
    }
    fm_buf_free(&scratch);
    json_object_put(root);
}

/* Waits for the next job; NULL: the thread should end. The lock is held. */
static struct sy_job *next_job(struct serve *serve) {
    while (!serve->finish && (!serve->todo.first || serve->done.bytes > HELD_MAX)) {
        pthread_cond_wait(&serve->changed, &serve->lock);
    }
    serve->running = serve->todo.first ? take_job(&serve->todo, &serve->todo.first) : NULL;
    return serve->running;
}

static void end_job(struct serve *serve, struct sy_job *job) {
    char byte;
    if (serve->interrupted) {
        (void)!fm_read(serve->cancel[0], &byte, 1);
        serve->interrupted = false;
    }
    serve->running = NULL;
    push(&serve->done, job);
}

static void *run_desktop(void *context) {
    struct serve *serve = context;
    struct sy_job *job;
    pthread_mutex_lock(&serve->lock);
    while ((job = next_job(serve))) {
        pthread_mutex_unlock(&serve->lock);
        do_job(&serve->caller, job);
        pthread_mutex_lock(&serve->lock);
        end_job(serve, job);
        wake(serve);
    }
    pthread_mutex_unlock(&serve->lock);
    sy_caller_close(&serve->caller);
    pthread_mutex_lock(&serve->lock);
    serve->finished = true;
    wake(serve);
    pthread_mutex_unlock(&serve->lock);
    return NULL;
}

/* ---- functions that the server calls ---- */

static void hand_over(void *context, struct sy_job *job) {
    struct serve *serve = context;
    pthread_mutex_lock(&serve->lock);
    push(&serve->todo, job);
    pthread_cond_signal(&serve->changed);
    pthread_mutex_unlock(&serve->lock);
}

/* The lock is held. */
static void interrupt(struct serve *serve) {
    if (serve->running && !serve->interrupted) {
        serve->interrupted = fm_write(serve->cancel[1], "", 1) == 1;
    }
}

static void cancel(void *context, struct sy_job *job) {
    struct serve *serve = context;
    struct sy_job *waited = NULL;
    pthread_mutex_lock(&serve->lock);
    for (struct sy_job **at = &serve->todo.first; *at && !waited; at = waited ? at : &(*at)->next) {
        waited = *at == job ? take_job(&serve->todo, at) : NULL;
    }
    if (serve->running == job) {
        interrupt(serve);
    }
    pthread_mutex_unlock(&serve->lock);
    if (waited) {
        sy_server_done(&serve->server, waited);
    }
}

/* ---- this thread ---- */

/* Sends the answers of jobs that are done, and lines of the running job. */
static void collect_answers(struct serve *serve) {
    char bytes[64];
    struct fm_buf told;
    fm_buf_init(&told, SY_REPLY_MAX);
    (void)!fm_read(serve->wake[0], bytes, sizeof bytes);
    pthread_mutex_lock(&serve->lock);
    struct sy_job *running = serve->running;
    struct sy_job *job = serve->done.first;
    list_init(&serve->done);
    if (running) {
        told = running->told;
        fm_buf_init(&running->told, SY_REPLY_MAX);
    }
    pthread_cond_signal(&serve->changed);
    pthread_mutex_unlock(&serve->lock);
    if (job && serve->hung_up && !serve->ended) {
        serve->until_ms = fm_now_ms() + GRACE_MS; /* there is progress, and more input to read: new time limit */
    }
    while (job) {
        struct sy_job *next = job->next;
        sy_server_done(&serve->server, job);
        job = next;
    }
    if (running) {
        sy_server_tell(&serve->server, running, &told);
    }
    fm_buf_free(&told);
}

static void flush(struct serve *serve) {
    ssize_t sent = fm_write(serve->given->out, serve->out.data, serve->out.len);
    if (sent >= 0) {
        fm_buf_drop_front(&serve->out, (size_t)sent);
    } else if (errno != EAGAIN) {
        serve->lost = true;
    }
    if (serve->out.len == 0 && serve->out.cap > HELD_MAX) {
        fm_buf_free(&serve->out);
    }
}

static bool is_full(struct serve *serve) {
    pthread_mutex_lock(&serve->lock);
    bool full = serve->todo.count >= JOBS_MAX || serve->todo.bytes >= HELD_MAX;
    pthread_mutex_unlock(&serve->lock);
    return full || serve->out.len >= HELD_MAX;
}

/* Takes the lines that have arrived. False: all lines were taken. True: some lines remain, because too much waits
 * already. */
static bool take_lines(struct serve *serve) {
    const char *line;
    size_t len;
    for (;;) {
        if (is_full(serve)) {
            return true;
        }
        switch (fm_lines_next(&serve->lines, &line, &len)) {
        case FM_LINE_NONE: return false;
        case FM_LINE_READY: sy_server_line(&serve->server, line, len); break;
        case FM_LINE_TOO_LONG: sy_server_long_line(&serve->server); break;
        }
    }
}

/* The client has closed its end: from now on there is a time limit. */
static void hang_up(struct serve *serve, int64_t grace_ms) {
    int64_t until_ms = fm_now_ms() + grace_ms;
    serve->until_ms = serve->until_ms && serve->until_ms < until_ms ? serve->until_ms : until_ms;
    serve->hung_up = true;
}

static void end_input(struct serve *serve, int64_t grace_ms) {
    if (!serve->ended) {
        serve->ended = true;
        fm_lines_end(&serve->lines);
    }
    hang_up(serve, grace_ms);
}

static void read_input(struct serve *serve) {
    char piece[FM_LINE_FEED];
    ssize_t len = fm_read(serve->given->in, piece, sizeof piece);
    if (len <= 0 || !fm_lines_feed(&serve->lines, piece, (size_t)len)) {
        end_input(serve, GRACE_MS);
    }
}

/* Notifies the desktop's thread that no more jobs come. */
static void ask_to_finish(struct serve *serve) {
    sy_server_end(&serve->server);
    pthread_mutex_lock(&serve->lock);
    serve->finish = true;
    pthread_cond_signal(&serve->changed);
    pthread_mutex_unlock(&serve->lock);
}

/* The time limit is over: drops waiting jobs, interrupts the running one, and reads no more. */
static void abandon(struct serve *serve) {
    struct list todo;
    end_input(serve, 0);
    fm_lines_free(&serve->lines);
    pthread_mutex_lock(&serve->lock);
    todo = serve->todo;
    list_init(&serve->todo);
    if (serve->running) {
        serve->running->dropped = true;
    }
    interrupt(serve);
    pthread_mutex_unlock(&serve->lock);
    for (struct sy_job *job = todo.first; job;) {
        struct sy_job *next = job->next;
        job->dropped = true;
        sy_server_done(&serve->server, job);
        job = next;
    }
    serve->impatient = true;
    serve->until_ms = fm_now_ms() + LET_GO_MS;
    ask_to_finish(serve);
}

static bool is_finished(struct serve *serve) {
    pthread_mutex_lock(&serve->lock);
    bool finished = serve->finished && !serve->done.first;
    pthread_mutex_unlock(&serve->lock);
    return finished;
}

/* Waits for the descriptors, and then reads, writes or collects. `blocked`: some lines can't be taken yet. */
static void wait_and_do(struct serve *serve, bool blocked) {
    bool read = !serve->ended && !blocked;
    bool write = serve->out.len > 0 && !serve->lost;
    struct fm_waited waited[] = {
        /* without `read`: only to notice the end of the input */
        {.fd = read || !serve->hung_up ? serve->given->in : -1, .input = read},
        {.fd = serve->out.len < HELD_MAX ? serve->wake[0] : -1, .input = true},
        {.fd = write ? serve->given->out : -1, .room = true},
        {.fd = serve->ended ? -1 : serve->given->end_fd, .input = true},
    };
    int64_t left_ms = serve->hung_up ? serve->until_ms - fm_now_ms() : -1;
    fm_wait(waited, sizeof waited / sizeof waited[0], serve->hung_up && left_ms < 0 ? 0 : (int)left_ms);
    if (read && waited[0].ready) {
        read_input(serve);
    } else if (waited[0].ready) {
        hang_up(serve, GRACE_MS);
    }
    if (waited[1].ready) {
        collect_answers(serve);
    }
    if (write && waited[2].ready) {
        flush(serve);
    }
    if (waited[3].ready) {
        end_input(serve, 0);
    }
    if (serve->lost || serve->out.failed) { /* failed: out of memory; the client notices the end */
        serve->lost = true;
        fm_buf_reset(&serve->out);
        end_input(serve, 0);
    }
}

static bool run_loop(struct serve *serve) {
    bool asked = false;
    for (;;) {
        bool blocked = take_lines(serve);
        if (serve->ended && !blocked && !asked) {
            ask_to_finish(serve);
            asked = true;
        }
        if (is_finished(serve) && (serve->out.len == 0 || serve->lost)) {
            return true;
        }
        if (serve->hung_up && fm_now_ms() >= serve->until_ms) {
            if (serve->impatient) {
                return is_finished(serve);
            }
            abandon(serve);
            asked = true;
        }
        wait_and_do(serve, blocked);
    }
}

static bool prepare_server(struct serve *serve) {
    list_init(&serve->todo);
    list_init(&serve->done);
    fm_lines_init(&serve->lines);
    fm_buf_init(&serve->out, OUT_MAX);
    pthread_mutex_init(&serve->lock, NULL);
    pthread_cond_init(&serve->changed, NULL);
    if (fm_pipe(&serve->cancel[0], &serve->cancel[1]) || fm_pipe(&serve->wake[0], &serve->wake[1])) {
        return false;
    }
    fm_set_nonblocking(serve->wake[1]);
    serve->server = (struct sy_server){.policy = &serve->given->policy,
                                       .out = &serve->out,
                                       .hand_over = hand_over,
                                       .cancel = cancel,
                                       .context = serve};
    serve->caller = (struct sy_caller){.policy = serve->given->policy,
                                       .open_desktop = serve->given->open_desktop,
                                       .open_context = serve->given->open_context,
                                       .furnish = serve->given->furnish,
                                       .dismiss = serve->given->dismiss,
                                       .cancel_fd = serve->cancel[0],
                                       .tell = tell,
                                       .tell_context = serve};
    return fm_thread_start(run_desktop, serve) == 0;
}

int sy_serve(const struct sy_serve *given, bool *clean) {
    static struct serve serve; /* the desktop's thread may outlive this call */
    serve.given = given;
    signal(SIGPIPE, SIG_IGN);
    fm_set_nonblocking(given->out);
    if (!prepare_server(&serve)) {
        *clean = true;
        return EX_OSERR;
    }
    *clean = run_loop(&serve);
    if (*clean) {
        sy_server_free(&serve.server);
        fm_lines_free(&serve.lines);
        fm_buf_free(&serve.out);
    }
    return EX_OK;
}
