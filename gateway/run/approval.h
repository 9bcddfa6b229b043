/*
 * Approvals. A tool call waits until the user has approved or denied exactly this call, or the time is up, or its run
 * ends. Each approval is settled exactly once, by the first answer. Its id is random and never used again, so a late or
 * repeated answer finds nothing.
 *
 * Pure except for random ids: the caller gives the time (fm_now_ms) and holds the timer. One thread, the loop's. The
 * callback comes from within the function that settles; it may open approvals, and settle others.
 */
#ifndef GW_RUN_APPROVAL_H
#define GW_RUN_APPROVAL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GW_APPROVALS_MAX   256u  /* open approvals of all runs together */
#define GW_APPROVAL_ID_LEN 36u   /* an UUID of version 4 (RFC 9562, section 5.4) */
#define GW_RUN_ID_MAX      64u   /* bytes */
#define GW_DENIAL_MAX      2000u /* bytes of the user's reason */

enum gw_verdict {
    GW_APPROVED,
    GW_DENIED,   /* by the user */
    GW_EXPIRED,  /* the user did not answer in time */
    GW_WITHDRAWN /* the run has ended, or the gateway is ending */
};

struct gw_approvals;

/*
 * Reports the outcome, once for each approval that was opened. `reason`: with GW_DENIED the user's reason, valid during
 * the call; otherwise "".
 */
typedef void gw_decided(void *context, const char *approval_id, enum gw_verdict verdict, const char *reason);

/* Makes an empty list, which the caller frees. `timeout_ms`: how long the user has to answer. NULL: out of memory. */
FM_MUST_USE struct gw_approvals *gw_approvals_new(int64_t timeout_ms);

/* Withdraws all open approvals, and calls back for each. */
void gw_approvals_free(struct gw_approvals *approvals);

/*
 * Opens an approval for a run, from `now_ms` on; `id` gets its id. FM_RATE_LIMITED: too many are open.
 * FM_INVALID_REQUEST: the run's id is too long. FM_INTERNAL: out of memory. After a failure nothing calls back.
 */
FM_MUST_USE enum fm_code gw_approval_open(struct gw_approvals *approvals, const char *run_id, gw_decided *decided,
                                          void *context, int64_t now_ms, char id[GW_APPROVAL_ID_LEN + 1],
                                          struct fm_error *error);

/*
 * Takes the user's answer. True for the one call that settled the approval. False if the approval is not open (any
 * more), or if its time was up at `now_ms`, even if the timer has not run yet. A reason of more than GW_DENIAL_MAX
 * bytes is cut between characters.
 */
bool gw_approval_answer(struct gw_approvals *approvals, const char *id, bool approved, const char *reason,
                        int64_t now_ms);

/*
 * Settles the approvals whose time is up. Returns after how many ms this function must be called again; -1: no approval
 * is open.
 */
int64_t gw_approvals_expire(struct gw_approvals *approvals, int64_t now_ms);

/* Withdraws the approvals of a run, because it has ended. */
void gw_approvals_withdraw(struct gw_approvals *approvals, const char *run_id);

/* How many are open. */
size_t gw_approvals_count(const struct gw_approvals *approvals);

#endif
