/*
 * The audit: audit.jsonl, one line of JSON for each attempt to log in, and a line before and a line after each tool. A
 * caller runs a tool only after `done`, so that the record is on the disk first. All texts go through the secrets
 * filter, whatever the setting for other texts is.
 *
 *     {"time":1764061200123,"event":"auth","ok":false,"detail":"token"}
 *     {"time":...,"event":"tool_before","sessionKey":"...","runId":"...","callId":"...","tool":"bash","approval":"user",
 *      "details":{"command":"ls","workingDir":"/home/me"}}
 *     {"time":...,"event":"tool_after","sessionKey":"...","runId":"...","callId":"...","tool":"bash","outcome":"done",
 *      "exitCode":0,"outputBytes":120,"truncated":false,"durationMs":31}
 *
 * Loop thread. Only gw_audit_open blocks.
 */
#ifndef GW_SECURITY_AUDIT_H
#define GW_SECURITY_AUDIT_H

#include "security/filter.h"
#include "sessions/journal.h"

#define GW_AUDIT_DETAILS_MAX (256u << 10) /* bytes of a tool's details; longer ones are cut, and the record says so */

struct gw_audit;

/*
 * Opens audit.jsonl in the folder `home`, and cuts off an incomplete last line, which a crash may have left. `on`
 * false: nothing is written, and all calls succeed (security.auditLog). `known`: see filter.h; it must outlive the
 * audit. FM_UNAVAILABLE: the file can't be used. Blocks on the disk.
 */
FM_MUST_USE enum fm_code gw_audit_open(struct gw_journal *journal, const char *home, bool on,
                                       const struct gw_known *known, struct gw_audit **audit, struct fm_error *error);

/* Closes the audit. Call it before gw_journal_close. Accepted records are still written. NULL: nothing happens. */
void gw_audit_free(struct gw_audit *audit);

/* A tool call. Texts are copied; a NULL is left out. */
struct gw_audit_tool {
    const char *session_key;
    const char *run_id;
    const char *call_id;
    const char *tool;
};

/*
 * Records an attempt to log in. `detail` is what it used ("token" or "code"), or "too many failures"; never the token
 * itself.
 */
FM_MUST_USE enum fm_code gw_audit_auth(struct gw_audit *audit, bool ok, const char *detail, gw_journal_done *done,
                                       void *context, struct fm_error *error);

/*
 * Records that a tool is about to run. `approval`: who allowed it, such as "user" or "rule". `details`: what it will
 * do, JSON.
 */
FM_MUST_USE enum fm_code gw_audit_tool_before(struct gw_audit *audit, const struct gw_audit_tool *tool,
                                              const char *approval, const char *details, size_t len,
                                              gw_journal_done *done, void *context, struct fm_error *error);

/*
 * The outcome: "done", "denied", "aborted" or "failed", for example. A tool that was ended by its time limit has
 * "failed".
 */
struct gw_audit_result {
    const char *outcome;
    int exit_code; /* -1: no process, so no exit code */
    size_t output_bytes;
    bool truncated;
    int64_t duration_ms;
};

/* Records that a tool has run, or that it will not run. */
FM_MUST_USE enum fm_code gw_audit_tool_after(struct gw_audit *audit, const struct gw_audit_tool *tool,
                                             const struct gw_audit_result *result, gw_journal_done *done, void *context,
                                             struct fm_error *error);

#endif
