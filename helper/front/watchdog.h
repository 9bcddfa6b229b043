/* One thread for each job. It enforces the job's limits and its engine's grace. */
#ifndef FM_FRONT_WATCHDOG_H
#define FM_FRONT_WATCHDOG_H

#include "front/state.h"

/* Starts the job's watchdog, which ends with the job. Wants the lock; never blocks. Returns 0 or an errno value. */
FM_MUST_USE int fm_watchdog_start_locked(struct fm_front *front, struct fm_job *job);

#endif
