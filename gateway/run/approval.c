/*
 * Open approvals, the oldest first. settle_approval is the only place where an approval ends: it leaves the list before
 * its callback runs, so nothing settles it again.
 */
#include "run/approval.h"
#include "base/platform.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct approval {
    struct approval *next;
    gw_decided *decided;
    void *context;
    int64_t end_ms;
    char id[GW_APPROVAL_ID_LEN + 1];
    char run_id[GW_RUN_ID_MAX + 1];
};

struct gw_approvals {
    struct approval *first;
    struct approval **end;
    size_t count;
    int64_t timeout_ms;
};

struct gw_approvals *gw_approvals_new(int64_t timeout_ms) {
    struct gw_approvals *approvals = calloc(1, sizeof *approvals);
    if (approvals) {
        approvals->end = &approvals->first;
        approvals->timeout_ms = timeout_ms;
    }
    return approvals;
}

static void settle_approval(struct gw_approvals *approvals, struct approval **link, enum gw_verdict verdict,
                            const char *reason) {
    struct approval *approval = *link;
    *link = approval->next;
    if (!*link) {
        approvals->end = link;
    }
    approvals->count--;
    approval->decided(approval->context, approval->id, verdict, reason);
    free(approval);
}

void gw_approvals_free(struct gw_approvals *approvals) {
    while (approvals && approvals->first) {
        settle_approval(approvals, &approvals->first, GW_WITHDRAWN, "");
    }
    free(approvals);
}

static void make_id(char id[GW_APPROVAL_ID_LEN + 1]) {
    unsigned char b[16];
    fm_random(b, sizeof b);
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    snprintf(id, GW_APPROVAL_ID_LEN + 1, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
             b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

enum fm_code gw_approval_open(struct gw_approvals *approvals, const char *run_id, gw_decided *decided, void *context,
                              int64_t now_ms, char id[GW_APPROVAL_ID_LEN + 1], struct fm_error *error) {
    if (strlen(run_id) > GW_RUN_ID_MAX) {
        return fm_fail(error, FM_INVALID_REQUEST, "a run's id has at most %u bytes", GW_RUN_ID_MAX);
    }
    if (approvals->count >= GW_APPROVALS_MAX) {
        return fm_fail_too_many(error, "%u approvals are open; answer one first", GW_APPROVALS_MAX);
    }
    struct approval *approval = calloc(1, sizeof *approval);
    if (!approval) {
        return fm_fail_no_memory(error);
    }
    approval->decided = decided;
    approval->context = context;
    approval->end_ms = now_ms + approvals->timeout_ms;
    memcpy(approval->run_id, run_id, strlen(run_id) + 1);
    make_id(approval->id);
    memcpy(id, approval->id, sizeof approval->id);
    *approvals->end = approval;
    approvals->end = &approval->next;
    approvals->count++;
    return FM_OK;
}

bool gw_approval_answer(struct gw_approvals *approvals, const char *id, bool approved, const char *reason,
                        int64_t now_ms) {
    struct approval **link = &approvals->first;
    char shown[GW_DENIAL_MAX + 1] = "";
    while (*link && strcmp((*link)->id, id) != 0) {
        link = &(*link)->next;
    }
    if (!*link) {
        return false;
    }
    if (now_ms >= (*link)->end_ms) { /* the timer is late, but the time for the answer is up */
        settle_approval(approvals, link, GW_EXPIRED, "");
        return false;
    }
    if (!approved && reason) {
        snprintf(shown, sizeof shown, "%.*s", fm_utf8_shown(reason, GW_DENIAL_MAX), reason);
    }
    settle_approval(approvals, link, approved ? GW_APPROVED : GW_DENIED, shown);
    return true;
}

int64_t gw_approvals_expire(struct gw_approvals *approvals, int64_t now_ms) {
    /* All have the same time limit, so the oldest ends first. */
    while (approvals->first && now_ms >= approvals->first->end_ms) {
        settle_approval(approvals, &approvals->first, GW_EXPIRED, "");
    }
    return approvals->first ? approvals->first->end_ms - now_ms : -1;
}

void gw_approvals_withdraw(struct gw_approvals *approvals, const char *run_id) {
    struct approval **link = &approvals->first;
    while (*link) {
        if (strcmp((*link)->run_id, run_id) == 0) {
            settle_approval(approvals, link, GW_WITHDRAWN, "");
            link = &approvals->first; /* the callback may have changed the list */
        } else {
            link = &(*link)->next;
        }
    }
}

size_t gw_approvals_count(const struct gw_approvals *approvals) {
    return approvals->count;
}
