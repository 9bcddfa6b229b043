/* What a command may do, by the setting tools.sandbox. */
#ifndef GW_TOOLS_RUNNER_SANDBOX_H
#define GW_TOOLS_RUNNER_SANDBOX_H

#include "tools/runner/job.h"

/*
 * Confines the calling process for good: nothing for "off". For "write": files change in the folder (where the job
 * says so) and the job's private folder alone, the hidden ones can't be read, there are no capabilities, and other
 * processes can't be touched. For "strict" there are no sockets besides. False with the reason in `problem`; the
 * process must not go on then.
 */
bool gw_sandbox_close(const struct gw_job *job, int folder, char *problem, size_t size);

#endif
