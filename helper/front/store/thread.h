/*
 * The store's thread, started by the first task, or with the front if there is a file. Only this thread waits for the
 * disk: a job that waits for the store holds up no other job, and its limits go on counting.
 */
#ifndef FM_FRONT_STORE_THREAD_H
#define FM_FRONT_STORE_THREAD_H

#include "front/state.h"

/* Starts the thread, unless it runs. False: it can't be started. Wants the lock; never blocks. */
FM_MUST_USE bool fm_store_thread_start_locked(struct fm_front *front);

#endif
