/* What is shown of a transcript: JSON for chat.history and for a run's prompt, and texts to keep. Pure. */
#ifndef GW_SESSIONS_VIEWS_H
#define GW_SESSIONS_VIEWS_H

#include "base/buf.h"

#include <stdint.h>

enum gw_view_form {
    /*
     * [{"role","content","seq","time"}, ...], with runId and attachments if the record has them; without messages that
     * were taken back
     */
    GW_VIEW_MESSAGES,
    GW_VIEW_RECORDS,  /* [record, ...], as they are on the disk (record.h) */
    GW_VIEW_MARKDOWN, /* for people: messages, tools and their results */
    GW_VIEW_JSONL,    /* the transcript itself, its whole records */
};

struct gw_view {
    enum gw_view_form form;
    size_t limit;      /* at most this many elements of an array, the last ones; 0: all */
    int64_t after_seq; /* only records with a greater seq; 0: all */
    size_t max_bytes;  /* of an array's text: older elements are left out. 0: GW_VIEW_MAX */
};

#define GW_VIEW_MAX (256u << 20)

/*
 * Writes the view of a transcript to `out`, an empty buffer that the caller has initialised. `*cut`: because of
 * max_bytes, an array lacks elements that the caller asked for. False: out of memory, or the text is longer than `out`
 * may be.
 */
FM_MUST_USE bool gw_view_write(const char *text, size_t len, const struct gw_view *view, struct fm_buf *out, bool *cut);

#endif
