/*
 * Asking the user before something is closed. The server that asks need not remember the question. It gives the client
 * a state, and the client returns the state with the answer. A state is valid once, within 120 s, for the same request,
 * and only while this request would close the same things.
 *
 *     if (sy_loses(&plan, &loss)) {
 *         if (there is a state and the user said yes) code = sy_confirm_accept(...), and run the plan;
 *         else sy_confirm_text(...), sy_confirm_issue(...), and ask;
 *     }
 *
 * Times are milliseconds of one clock, such as `now` of the backend. One thread.
 */
#ifndef SY_CONFIRM_H
#define SY_CONFIRM_H

#include "commands/plan.h"

#define SY_CONFIRM_MS       120000
#define SY_CONFIRM_USED_MAX 256 /* used states that have not expired */
#define SY_STATE_SIZE       177 /* 176 hexadecimal digits and a NUL */

struct sy_confirm {
    unsigned char key[32];
    struct {
        char id[33];
        int64_t until_ms;
    } used[SY_CONFIRM_USED_MAX];
    size_t used_count;
};

/* Makes a random key. States are valid only in this process. */
void sy_confirm_init(struct sy_confirm *confirm);

/* What running the plan would close. */
struct sy_loss {
    size_t windows;
    size_t tabs;
    bool last_tab; /* all tabs would be closed, and Chrome would quit */
};

/* True: the user must be asked first. The plan closes an application, more than one tab, or the last tab. Pure. */
bool sy_loses(const struct sy_plan *plan, struct sy_loss *loss);

/* Appends a question for the user: "Close XTerm (2 windows)? Close 3 tabs: ...?" Titles are cleaned and cut. Pure. */
void sy_confirm_text(const struct sy_plan *plan, struct fm_buf *text);

/* Makes a state for this plan. */
FM_MUST_USE enum fm_code sy_confirm_issue(const struct sy_confirm *confirm, const struct sy_plan *plan, int64_t now_ms,
                                          char state[SY_STATE_SIZE], struct fm_error *error);

/*
 * FM_OK: the state was made here for the same request, and the request would close the same windows, and tabs with the
 * same pages. The state can't be used again. FM_INVALID_REQUEST: `denied` (the state is forged, used, or of another
 * request) or `stale_snapshot` (the request would close other things now: ask again). FM_TIMEOUT: the state is too old:
 * ask again.
 */
FM_MUST_USE enum fm_code sy_confirm_accept(struct sy_confirm *confirm, const struct sy_plan *plan, const char *state,
                                           int64_t now_ms, struct fm_error *error);

#endif
