/*
 * What a transcript says after a crash: which of its bytes are whole records, and which records close what was open
 * when the gateway ended. A tool is never run again. Pure; recurses as deep as a record's JSON is nested.
 */
#ifndef GW_SESSIONS_RECOVERY_H
#define GW_SESSIONS_RECOVERY_H

#include "base/error.h"
#include "sessions/record.h"

#define GW_TITLE_MAX    800u /* bytes */
#define GW_AGENT_ID_MAX 64u  /* bytes */

/* What the list of sessions shows of a session. */
struct gw_facts {
    char agent_id[GW_AGENT_ID_MAX + 1];
    char title[GW_TITLE_MAX + 1]; /* the user's title, or the beginning of the first message; "": no message yet */
    bool renamed;                 /* the title is the user's */
    int64_t created_ms;           /* since 1970 */
    int64_t updated_ms;           /* of the last message, or `created_ms` */
    int64_t seq;                  /* of the last record; 0: the transcript has no record */
    size_t messages;
    int64_t input_tokens; /* of all runs that have ended */
    int64_t output_tokens;
    bool priceless; /* the cost of some tokens is not known; all others cost nothing */
    int64_t event;  /* the highest event number in the records; 0: no record has an event number */
};

/* Takes a record that is on the disk into account. */
void gw_facts_apply(struct gw_facts *facts, const struct gw_record *record);

/* Writes a title on one line: without control characters, cut between characters. */
void gw_title_set(char title[GW_TITLE_MAX + 1], const char *text, size_t characters);

struct gw_recovered {
    struct gw_facts facts;
    size_t whole; /* the first bytes of the text are whole records; the rest was torn by the crash */
    /*
     * There are broken lines that no crash can have caused. The caller must set the text aside. `kept` has its whole
     * records, and `whole` is the length of `kept`.
     */
    bool damaged;
    struct fm_buf kept;
    struct fm_buf closing; /* records to append, which close what was open; empty: nothing was open */
    size_t runs;           /* how many `closing` records are "run_ended", outcome "error" */
    size_t approvals;      /* how many `closing` records are "approval_settled", verdict "withdrawn" */
    size_t tools;          /* how many `closing` records are "tool_result", outcome "unknown" or "not_run" */
};

/*
 * Examines a transcript. `now_ms` (since 1970) is the time of the closing records. The caller frees `recovered` by
 * gw_recovered_free. After a failure (FM_INTERNAL: out of memory) there is nothing to free.
 */
FM_MUST_USE enum fm_code gw_recover(const char *text, size_t len, int64_t now_ms, struct gw_recovered *recovered,
                                    struct fm_error *error);
void gw_recovered_free(struct gw_recovered *recovered);

#endif
