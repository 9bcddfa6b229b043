/* The job of a runner. It is read once, and checked against the digest that the gateway gave. */
#ifndef GW_TOOLS_RUNNER_JOB_H
#define GW_TOOLS_RUNNER_JOB_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gw_job_sandbox { GW_JOB_OFF, GW_JOB_WRITE, GW_JOB_STRICT };

struct json_object;

struct gw_job {
    char **argv; /* NULL-terminated, as the next two */
    char **env;
    char **hidden;              /* absolute paths, as they are named */
    const char *private_folder; /* NULL: none */
    enum gw_job_sandbox sandbox;
    bool folder_writable;
    bool pipes;
    int64_t timeout_ms;
    int64_t processes;
    struct json_object *root; /* holds all of it */
};

/*
 * Reads the job from the memfd `fd`, which must be sealed against writing and have the SHA-256 `digest` (hexadecimal).
 * The memory that `job` points to is valid until the process ends. Blocks only on memory.
 */
FM_MUST_USE enum fm_code gw_job_read(int fd, const char *digest, struct gw_job *job, struct fm_error *error);

#endif
