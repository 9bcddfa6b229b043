/*
 * The store's thread. The first task starts it; if there is a file, the front starts it. Only this thread waits for the
 * disk, so a job that waits for the store holds up no other job. The limits of such a job go on counting.
 */
#ifndef FM_FRONT_STORE_THREAD_H
#define FM_FRONT_STORE_THREAD_H

#include "front/state.h"

/* Starts the thread, unless it runs. False: the thread can't be started. Wants the lock; never blocks. */
FM_MUST_USE bool fm_store_thread_start_locked(struct fm_front *front);

#endif
