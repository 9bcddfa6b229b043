/* The threads of platform.h, of pthreads alone. */
#include "base/clock.h"
#include "base/platform.h"
#include "base/platform_os.h"

#include <errno.h>
#include <stdlib.h>

/* Stack sizes must be whole pages; no system has larger pages than this. */
#define STACK_STEP ((size_t)64 * 1024)

static size_t whole_steps(size_t stack) {
    return (stack + STACK_STEP - 1) / STACK_STEP * STACK_STEP;
}

int fm_thread_start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    return fm_os_thread_start(&thread, PTHREAD_CREATE_DETACHED, FM_THREAD_STACK, body, argument);
}

struct stack_call {
    void (*body)(void *);
    void *argument;
};

static void *run_stack_call(void *argument) {
    const struct stack_call *call = argument;
    call->body(call->argument);
    return NULL;
}

int fm_run_on_stack(size_t stack, void (*body)(void *), void *argument) {
    struct stack_call call = {body, argument};
    pthread_t thread;
    int error = fm_os_thread_start(&thread, PTHREAD_CREATE_JOINABLE, whole_steps(stack), run_stack_call, &call);
    if (!error) {
        pthread_join(thread, NULL);
    }
    return error;
}

#define PATIENCE 4 /* times as long by the clock */

struct timed_call {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*body)(void *);
    void (*drop)(void *);
    void *argument;
    bool done;
    bool abandoned;
};

static void free_timed_call(struct timed_call *call) {
    pthread_cond_destroy(&call->changed);
    pthread_mutex_destroy(&call->lock);
    free(call);
}

static void *run_timed_call(void *argument) {
    struct timed_call *call = argument;
    call->body(call->argument);
    pthread_mutex_lock(&call->lock);
    call->done = true;
    bool abandoned = call->abandoned;
    pthread_cond_broadcast(&call->changed);
    pthread_mutex_unlock(&call->lock);
    if (abandoned) {
        call->drop(call->argument);
        free_timed_call(call);
    }
    return NULL;
}

static struct timed_call *new_timed_call(void (*body)(void *), void (*drop)(void *), void *argument) {
    struct timed_call *call = calloc(1, sizeof *call);
    if (!call || fm_cond_init(&call->changed) != 0) {
        free(call);
        return NULL;
    }
    pthread_mutex_init(&call->lock, NULL);
    call->body = body;
    call->drop = drop;
    call->argument = argument;
    return call;
}

/* Waits for the end of the call; its lock is held. False: it took too long. */
static bool wait_for_call(struct timed_call *call, pthread_t thread, int64_t ms) {
    int64_t last = fm_now_ms() + PATIENCE * ms;
    int64_t left = ms; /* of the thread's processor time; it needs at least so long by the clock */
    while (!call->done && left > 0 && fm_now_ms() < last) {
        int64_t next = fm_now_ms() + left;
        fm_cond_wait_until(&call->changed, &call->lock, next < last ? next : last);
        int64_t used = call->done ? 0 : fm_os_thread_ms(thread); /* the thread exists: it needs the lock to end */
        left = used < 0 ? next - fm_now_ms() : ms - used;
    }
    return call->done;
}

int fm_run_on_stack_within(size_t stack, int64_t ms, void (*body)(void *), void (*drop)(void *), void *argument) {
    pthread_t thread;
    struct timed_call *call = new_timed_call(body, drop, argument);
    if (!call) {
        return ENOMEM;
    }
    int error = fm_os_thread_start(&thread, PTHREAD_CREATE_DETACHED, whole_steps(stack), run_timed_call, call);
    if (error) {
        free_timed_call(call);
        return error;
    }
    pthread_mutex_lock(&call->lock);
    bool done = wait_for_call(call, thread, ms);
    call->abandoned = !done;
    pthread_mutex_unlock(&call->lock);
    if (!done) {
        return ETIMEDOUT; /* the thread frees `call` */
    }
    free_timed_call(call);
    return 0;
}
