/*
 * A thread with a queue. A job is in exactly one place: waiting, with the thread, or done and not called back yet; the
 * lock guards the two lists and the flags, and is never held while a job runs.
 */
#include "sessions/worker.h"
#include "base/clock.h"
#include "base/platform.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct list {
    struct gw_job *first;
    struct gw_job **end;
};

struct gw_worker {
    struct gw_worker_options options;
    uv_async_t finished;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct list urgent;
    struct list waiting;
    struct list done;
    bool ending; /* the thread shall end as soon as no job waits */
    bool ended;
    void (*closed)(void *context);
    void *closed_context;
};

static void list_init(struct list *list) {
    list->first = NULL;
    list->end = &list->first;
}

/* Moves all of `from` to the end of `to`. */
static void list_move(struct list *to, struct list *from) {
    if (from->first) {
        *to->end = from->first;
        to->end = from->end;
        list_init(from);
    }
}

static void list_add(struct list *list, struct gw_job *job) {
    job->next = NULL;
    *list->end = job;
    list->end = &job->next;
}

/* Takes what to run next; an empty list if nothing waits. Call it with the lock held while the thread lives. */
static void take_jobs(struct gw_worker *worker, struct list *taken) {
    struct list *from = worker->urgent.first ? &worker->urgent : &worker->waiting;
    struct gw_job *job = from->first;
    list_init(taken);
    if (worker->options.in_batches) {
        list_move(taken, &worker->urgent);
        list_move(taken, &worker->waiting);
    } else if (job) {
        from->first = job->next;
        if (!from->first) {
            list_init(from);
        }
        list_add(taken, job);
    }
}

static void *thread_body(void *argument) {
    struct gw_worker *worker = argument;
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        struct list taken;
        take_jobs(worker, &taken);
        if (!taken.first && worker->ending) {
            break;
        }
        if (!taken.first) {
            pthread_cond_wait(&worker->changed, &worker->lock);
            continue;
        }
        pthread_mutex_unlock(&worker->lock);
        worker->options.run(worker->options.context, taken.first);
        pthread_mutex_lock(&worker->lock);
        list_move(&worker->done, &taken);
        uv_async_send(&worker->finished);
    }
    worker->ended = true;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

/* Calls back for all jobs that are done. True if there was one. */
static bool deliver(struct gw_worker *worker) {
    struct list done;
    list_init(&done);
    pthread_mutex_lock(&worker->lock);
    list_move(&done, &worker->done);
    pthread_mutex_unlock(&worker->lock);
    bool any = done.first;
    while (done.first) {
        struct gw_job *job = done.first;
        done.first = job->next;
        job->done(job);
    }
    return any;
}

static void on_finished(uv_async_t *async) {
    deliver(async->data);
}

enum fm_code gw_worker_open(const struct gw_worker_options *options, struct gw_worker **out, struct fm_error *error) {
    struct gw_worker *worker = calloc(1, sizeof *worker);
    if (!worker) {
        return fm_fail_no_memory(error);
    }
    worker->options = *options;
    list_init(&worker->urgent);
    list_init(&worker->waiting);
    list_init(&worker->done);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->changed, NULL);
    worker->finished.data = worker;
    int status = uv_async_init(options->loop, &worker->finished, on_finished);
    if (status) {
        free(worker);
        return fm_fail(error, FM_UNAVAILABLE, "no descriptor is left for a thread (%s)", uv_strerror(status));
    }
    int failure = fm_thread_start(thread_body, worker);
    if (failure) {
        worker->ended = true;
        gw_worker_close(worker, NULL, NULL);
        return fm_fail(error, FM_UNAVAILABLE, "can't start a thread (%s)", strerror(failure));
    }
    *out = worker;
    return FM_OK;
}

void gw_worker_add(struct gw_worker *worker, struct gw_job *job) {
    pthread_mutex_lock(&worker->lock);
    list_add(job->urgent ? &worker->urgent : &worker->waiting, job);
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

static void on_closed(uv_handle_t *handle) {
    struct gw_worker *worker = handle->data;
    pthread_mutex_destroy(&worker->lock);
    pthread_cond_destroy(&worker->changed);
    if (worker->closed) {
        worker->closed(worker->closed_context);
    }
    free(worker);
}

/* Blocks until no job waits or runs. */
static void drain(struct gw_worker *worker) {
    pthread_mutex_lock(&worker->lock);
    worker->ending = true;
    pthread_cond_broadcast(&worker->changed);
    while (!worker->ended) {
        pthread_cond_wait(&worker->changed, &worker->lock);
    }
    pthread_mutex_unlock(&worker->lock);
}

/* A job that a callback adds after the thread's end is run here. */
static void run_the_rest(struct gw_worker *worker) {
    while (deliver(worker)) {
        struct list taken;
        for (take_jobs(worker, &taken); taken.first; take_jobs(worker, &taken)) {
            worker->options.run(worker->options.context, taken.first);
            list_move(&worker->done, &taken);
        }
    }
}

void gw_worker_close(struct gw_worker *worker, void (*closed)(void *context), void *context) {
    drain(worker);
    run_the_rest(worker);
    worker->closed = closed;
    worker->closed_context = context;
    uv_close((uv_handle_t *)&worker->finished, on_closed);
}
