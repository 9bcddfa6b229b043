/* The threads of platform.h, with pthreads only. */
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

/* ---- tasks ---- */

struct fm_task {
    struct fm_task_calls calls;
    void *argument;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
    bool abandoned;
};

static void free_task(struct fm_task *task) {
    pthread_cond_destroy(&task->changed);
    pthread_mutex_destroy(&task->lock);
    free(task);
}

static void *run_task(void *argument) {
    struct fm_task *task = argument;
    task->calls.body(task->argument);
    pthread_mutex_lock(&task->lock);
    bool abandoned = task->abandoned;
    task->over = true;
    if (!abandoned && task->calls.ended) {
        task->calls.ended(task->argument); /* the owner needs the lock to free `argument` */
    }
    pthread_cond_broadcast(&task->changed);
    pthread_mutex_unlock(&task->lock);
    if (abandoned) {
        task->calls.drop(task->argument);
        free_task(task);
    }
    return NULL;
}

static struct fm_task *new_task(const struct fm_task_calls *calls, void *argument) {
    struct fm_task *task = calloc(1, sizeof *task);
    if (!task || fm_cond_init(&task->changed) != 0) {
        free(task);
        return NULL;
    }
    pthread_mutex_init(&task->lock, NULL);
    task->calls = *calls;
    task->argument = argument;
    return task;
}

int fm_task_start(size_t stack, const struct fm_task_calls *calls, void *argument, struct fm_task **task) {
    struct fm_task *made = new_task(calls, argument);
    *task = NULL;
    if (!made) {
        return ENOMEM;
    }
    int error = fm_os_thread_start(&made->thread, PTHREAD_CREATE_DETACHED, whole_steps(stack), run_task, made);
    if (error) {
        free_task(made);
        return error;
    }
    *task = made;
    return 0;
}

bool fm_task_wait(struct fm_task *task, int64_t until_ms) {
    pthread_mutex_lock(&task->lock);
    while (!task->over && fm_now_ms() < until_ms) {
        fm_cond_wait_until(&task->changed, &task->lock, until_ms);
    }
    bool over = task->over;
    pthread_mutex_unlock(&task->lock);
    return over;
}

int64_t fm_task_cpu_ms(struct fm_task *task) {
    pthread_mutex_lock(&task->lock);
    int64_t used = task->over ? 0 : fm_os_thread_ms(task->thread); /* the thread exists: it needs the lock to end */
    pthread_mutex_unlock(&task->lock);
    return used;
}

bool fm_task_end(struct fm_task *task) {
    pthread_mutex_lock(&task->lock);
    bool over = task->over;
    task->abandoned = !over;
    pthread_mutex_unlock(&task->lock);
    if (over) {
        free_task(task); /* otherwise the task's thread frees it */
    }
    return over;
}

int fm_run_on_stack_within(size_t stack, int64_t cpu_ms, int64_t clock_ms, void (*body)(void *), void (*drop)(void *),
                           void *argument) {
    struct fm_task *task;
    int error = fm_task_start(stack, &(struct fm_task_calls){.body = body, .drop = drop}, argument, &task);
    if (error) {
        return error;
    }
    int64_t last = fm_now_ms() + clock_ms;
    int64_t left = cpu_ms; /* rest of the thread's processor time; by the clock it takes at least as long */
    while (left > 0 && fm_now_ms() < last) {
        int64_t next = fm_now_ms() + left;
        if (fm_task_wait(task, next < last ? next : last)) {
            break;
        }
        int64_t used = fm_task_cpu_ms(task);
        left = used < 0 ? next - fm_now_ms() : cpu_ms - used;
    }
    return fm_task_end(task) ? 0 : ETIMEDOUT;
}
