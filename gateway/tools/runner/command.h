/* Starts the command of a job, confined as the job says. */
#ifndef GW_TOOLS_RUNNER_COMMAND_H
#define GW_TOOLS_RUNNER_COMMAND_H

#include "tools/runner/job.h"

#include <sys/types.h>

/*
 * Forks and executes the command in the folder GW_RUN_FOLDER, as the leader of a session. Returns its process id when
 * the program runs. Returns -1, with the reason in `problem`, if no part of the command ran. Blocks until one of the
 * two is known.
 */
pid_t gw_command_start(const struct gw_job *job, char *problem, size_t size);

#endif
