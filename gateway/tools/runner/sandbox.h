/* What a command may do, by the setting tools.sandbox. */
#ifndef GW_TOOLS_RUNNER_SANDBOX_H
#define GW_TOOLS_RUNNER_SANDBOX_H

#include "tools/runner/job.h"

/*
 * Confines the calling process permanently. "off": not at all. "write": files can be changed only in the folder (if the
 * job says so) and in the job's private folder, hidden files can't be read, there are no capabilities, and other
 * processes can't be touched. "strict": there are no sockets either. False with the reason in `problem`; the process
 * must not go on then.
 */
bool gw_sandbox_close(const struct gw_job *job, int folder, char *problem, size_t size);

#endif
