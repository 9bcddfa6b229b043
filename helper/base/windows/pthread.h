/*
 * The POSIX threads that our code uses, made from functions of Windows: a lock without recursion, and a condition, both
 * without a kernel handle. Functions of platform.h start threads. The compiler finds this file as <pthread.h>.
 */
#ifndef FM_BASE_WINDOWS_PTHREAD_H
#define FM_BASE_WINDOWS_PTHREAD_H

/* The same layout as SRWLOCK and CONDITION_VARIABLE, without <windows.h>, whose macros clash with our names. */
typedef struct fm_windows_lock {
    void *state;
} pthread_mutex_t;
typedef struct fm_windows_condition {
    void *state;
} pthread_cond_t;
typedef void *pthread_t; /* a handle; for a detached thread its number */
typedef void pthread_mutexattr_t;
typedef void pthread_condattr_t;

#define PTHREAD_MUTEX_INITIALIZER                                                                                      \
    { 0 }
#define PTHREAD_COND_INITIALIZER                                                                                       \
    { 0 }

enum { PTHREAD_CREATE_JOINABLE, PTHREAD_CREATE_DETACHED };

/* Uses our own names, because a linked library has the usual ones. */
#define pthread_mutex_init     fm_windows_mutex_init
#define pthread_mutex_lock     fm_windows_mutex_lock
#define pthread_mutex_unlock   fm_windows_mutex_unlock
#define pthread_mutex_destroy  fm_windows_mutex_destroy
#define pthread_cond_init      fm_windows_cond_init
#define pthread_cond_wait      fm_windows_cond_wait
#define pthread_cond_signal    fm_windows_cond_signal
#define pthread_cond_broadcast fm_windows_cond_broadcast
#define pthread_cond_destroy   fm_windows_cond_destroy
#define pthread_join           fm_windows_join

/* These work as elsewhere; all return 0. Nothing has to be destroyed. */
int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *none);
int pthread_mutex_lock(pthread_mutex_t *mutex);
int pthread_mutex_unlock(pthread_mutex_t *mutex);
int pthread_mutex_destroy(pthread_mutex_t *mutex);
int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *none);
int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int pthread_cond_signal(pthread_cond_t *cond);
int pthread_cond_broadcast(pthread_cond_t *cond);
int pthread_cond_destroy(pthread_cond_t *cond);

/* `result` must be NULL. */
int pthread_join(pthread_t thread, void **result);

#endif
