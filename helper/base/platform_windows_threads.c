/* Threads, locks and conditions on Windows: windows/pthread.h, and the functions that platform_threads.c calls. */
#include "base/clock.h"
#include "base/platform_os.h"
#include "base/platform_windows.h"

#include <errno.h>
#include <process.h>
#include <stdlib.h>

_Static_assert(sizeof(pthread_mutex_t) == sizeof(SRWLOCK), "a lock of ours is one of the system's");
_Static_assert(sizeof(pthread_cond_t) == sizeof(CONDITION_VARIABLE), "and so is a condition");

static SRWLOCK *lock_of(pthread_mutex_t *mutex) {
    return (SRWLOCK *)(void *)mutex;
}

static CONDITION_VARIABLE *condition_of(pthread_cond_t *cond) {
    return (CONDITION_VARIABLE *)(void *)cond;
}

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *none) {
    (void)none;
    InitializeSRWLock(lock_of(mutex));
    return 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    AcquireSRWLockExclusive(lock_of(mutex));
    return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    ReleaseSRWLockExclusive(lock_of(mutex));
    return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *mutex) {
    (void)mutex;
    return 0;
}

int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *none) {
    (void)none;
    InitializeConditionVariable(condition_of(cond));
    return 0;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) {
    SleepConditionVariableSRW(condition_of(cond), lock_of(mutex), INFINITE, 0);
    return 0;
}

int pthread_cond_signal(pthread_cond_t *cond) {
    WakeConditionVariable(condition_of(cond));
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t *cond) {
    WakeAllConditionVariable(condition_of(cond));
    return 0;
}

int pthread_cond_destroy(pthread_cond_t *cond) {
    (void)cond;
    return 0;
}

int fm_cond_init(pthread_cond_t *cond) {
    return pthread_cond_init(cond, NULL);
}

void fm_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ms) {
    int64_t left = deadline_ms - fm_now_ms();
    left = left < 0 ? 0 : left < INFINITE ? left : INFINITE - 1;
    SleepConditionVariableSRW(condition_of(cond), lock_of(mutex), (DWORD)left, 0);
}

struct call {
    void *(*body)(void *);
    void *argument;
};

static unsigned __stdcall run_call(void *argument) {
    const struct call call = *(struct call *)argument;
    free(argument);
    call.body(call.argument);
    return 0;
}

/* There are no signals to block. */
int fm_os_thread_start(pthread_t *thread, int detached, size_t stack, void *(*body)(void *), void *argument) {
    struct call *call = malloc(sizeof *call);
    if (!call) {
        return ENOMEM;
    }
    *call = (struct call){body, argument};
    unsigned id;
    HANDLE handle =
        (HANDLE)_beginthreadex(NULL, (unsigned)stack, run_call, call, STACK_SIZE_PARAM_IS_A_RESERVATION, &id);
    if (!handle) {
        free(call);
        return EAGAIN;
    }
    *thread = handle;
    if (detached == PTHREAD_CREATE_DETACHED) {
        CloseHandle(handle);
        *thread = (HANDLE)(uintptr_t)id;
    }
    return 0;
}

int pthread_join(pthread_t thread, void **result) {
    (void)result;
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
    return 0;
}

/* A FILETIME as a number, in units of 100 ns. */
static int64_t ticks_of(FILETIME time) {
    return (int64_t)((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime);
}

/* `thread` is detached: only its number is known, and no other thread has that number while it runs. */
int64_t fm_os_thread_ms(pthread_t thread) {
    HANDLE handle = OpenThread(THREAD_QUERY_LIMITED_INFORMATION, FALSE, (DWORD)(uintptr_t)thread);
    FILETIME ignored;
    FILETIME kernel;
    FILETIME user;
    bool known = handle && GetThreadTimes(handle, &ignored, &ignored, &kernel, &user);
    if (handle) {
        CloseHandle(handle);
    }
    return known ? (ticks_of(kernel) + ticks_of(user)) / 10000 : -1;
}

void fm_thread_be_prompt(void) {}
