/* Runs eight threads, which take any task that is due. So the callbacks of one task come from several threads, and the
 * callbacks of different tasks are mixed in any order. */
#include "standin.h"

#include <stdlib.h>
#include <time.h>

#define WORKERS 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct run *queue;

int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void push(struct run *run) {
    pthread_mutex_lock(&lock);
    run->next = queue;
    queue = run;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Returns the link to the task that is due first; NULL: there is no task. */
static struct run **first_due(void) {
    struct run **first = NULL;
    for (struct run **link = &queue; *link; link = &(*link)->next) {
        first = !first || (*link)->due_us < (*first)->due_us ? link : first;
    }
    return first;
}

static struct run *take(void) {
    pthread_mutex_lock(&lock);
    for (;;) {
        struct run **link = first_due();
        int64_t wait_us = link ? (*link)->due_us - now_us() : 1000000;
        if (link && wait_us <= 0) {
            struct run *run = *link;
            *link = run->next;
            pthread_mutex_unlock(&lock);
            return run;
        }
        int64_t until = now_us() + wait_us;
        struct timespec at = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
        pthread_cond_timedwait(&changed, &lock, &at);
    }
}

static void *work(void *argument) {
    for (;;) {
        struct run *run = take();
        if (script_step(run)) {
            run_drop(run); /* the last callback came before this, so the process may be about to end */
        } else {
            push(run);
        }
    }
    return argument;
}

static void start_workers(void) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    for (int i = 0; i < WORKERS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) != 0) {
            abort();
        }
        pthread_detach(thread);
    }
}

void run_start(struct run *run) {
    pthread_once(&once, start_workers);
    atomic_fetch_add(&tasks_alive, 1);
    script_begin(run);
    push(run);
}

void run_drop(struct run *run) {
    if (atomic_fetch_sub(&run->owners, 1) > 1) {
        return;
    }
    release(run->session);
    free(run->prompt);
    free(run->schema);
    fm_buf_free(&run->text);
    free(run);
}
