/*
 * Ends all processes that a command started. Call all functions on one thread. They use /proc if there is no namespace.
 */
#ifndef GW_TOOLS_RUNNER_PROCESSES_H
#define GW_TOOLS_RUNNER_PROCESSES_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Sends the signal to every descendant of this process. `own_namespace`: this process is the first of a PID namespace,
 * so the kernel finds them all at once. Otherwise the caller is a subreaper; processes that fork meanwhile are stopped
 * first.
 */
void gw_processes_signal(bool own_namespace, int number);

/* Kills every descendant and waits until none is left. Blocks; a process in an uninterruptible call delays it. */
void gw_processes_end(bool own_namespace);

/* Returns how many threads this user has in total; 0: not known. */
long gw_processes_of_user(void);

#endif
