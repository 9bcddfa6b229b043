/* The internal state of a call, which the tools' files share with registry.c. The loop's thread. */
#ifndef GW_TOOLS_CALL_H
#define GW_TOOLS_CALL_H

#include "base/buf.h"
#include "tools/output.h"
#include "tools/process.h"
#include "tools/tool.h"

#define GW_TOOL_CALL_TEXT_MAX                                                                                          \
    (4u * 1024u * 1024u) /* bytes of summary and of details: the input with each byte escaped */
#define GW_ATTACHMENTS_MAX  8u
#define GW_ATTACHMENT_BYTES (16u * 1024u * 1024u) /* bytes of all attachments of a call, as base64 */

struct gw_tools {
    uv_loop_t *loop;
    char *runner;
    char *browser;
    char *exempt_address;
    const uint16_t *own_port; /* see gw_tools_config */
    char **environment;       /* what commands get, NULL-terminated */
    char **hidden;            /* what a sandbox hides, NULL-terminated, absolute */
    char *temporary;          /* where temporary folders are made */
    int64_t timeout_ms;
    size_t output_max;
    int64_t processes_max;
    enum gw_sandbox sandbox;
};

struct gw_tool_call {
    struct gw_tools *tools;
    const struct gw_tool *tool;
    struct json_object *input;
    int folder;                      /* O_PATH */
    char *folder_path;               /* the path when the folder was opened, without links */
    int job;                         /* sealed memfd that holds the job; -1: none */
    char digest[GW_DIGEST_SIZE];     /* the digest of what the user approves */
    char job_digest[GW_DIGEST_SIZE]; /* the digest of the job */
    struct fm_buf summary;           /* NUL-terminated once the call is prepared, as the details are */
    struct fm_buf details;
    struct gw_observer observer;
    struct gw_output output;
    struct gw_attachment attachments[GW_ATTACHMENTS_MAX];
    size_t attachment_count;
    size_t attachment_bytes;
    uv_timer_t later; /* for callbacks that must come later, from the loop */
    bool aborting;
    bool settled;
    bool freed;              /* gw_tool_call_free was called; the timer is closing */
    struct fm_error failure; /* why the start failed */
    void *own;               /* the tool's */
};

/* What a job has besides the call's own settings. `private_folder`: "" for none. */
struct gw_job_plan {
    const char *const *argv; /* NULL-terminated */
    const char *private_folder;
    bool folder_writable;
    bool pipes;
    bool home_private; /* the private folder is HOME, too */
};

/* Writes the job into a sealed memfd, and computes its digest. */
FM_MUST_USE enum fm_code gw_tool_call_freeze(struct gw_tool_call *call, const struct gw_job_plan *plan,
                                             struct fm_error *error);

/* Returns a path for a folder that the runner makes. The caller frees the path; NULL: no memory. */
char *gw_tool_call_private_path(const struct gw_tool_call *call);

/* Reports progress to the observer. */
void gw_tool_call_progress(struct gw_tool_call *call, const char *fmt, ...) FM_PRINTF(2, 3);

/*
 * Adds an attachment. The call owns `data` (base64, malloc'd) from now on, whatever is returned. False: there is no
 * room for it.
 */
FM_MUST_USE bool gw_tool_call_attach(struct gw_tool_call *call, const char *mime_type, const char *name, char *data,
                                     size_t len);

/*
 * Settles the call; a call ends only by this function. `note` is a line that is added to the output; "" or NULL: none.
 * `process` may be NULL if no process ran.
 */
void gw_tool_call_settle(struct gw_tool_call *call, enum gw_end end, const struct gw_process_end *process,
                         const char *note);

#endif
