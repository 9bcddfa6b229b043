/*
 * Records: what a transcript is made of, one JSON object a line (sessions/KEY.jsonl):
 *
 *     {"seq":7,"time":1764061200123,"type":"message","runId":"...","role":"user","content":"..."}
 *
 * `seq` rises from record to record (it may skip numbers), `time` is in ms since 1970. The table in record.c has the
 * members that a type must have; writers may add others, and readers keep records of types that they don't know.
 *
 *     session agentId the first record of each transcript title title what the user calls it run_started runId also
 *     requestKey, of the chat.send that began it message role, content role: user or assistant; also attachments, see
 *     blobs.h tool_call runId, callId, name, input the model asks for a tool approval_opened runId, approvalId, callId
 *     approval_settled runId, approvalId, verdict approved, denied, expired or withdrawn; also reason tool_started
 *     runId, callId from here on it may have run; not needed after "approved" tool_result runId, callId, output also
 *     outcome: unknown, if it is not known whether the tool ran step runId, items what the model said in one turn:
 *     items of the Responses API, as
 *                                                       they go back to it; also provider, model, text
 *     run_ended         runId, outcome                  final, error or aborted; also usage, message, model, event (the
 *                                                       number of the event that reports it), takenBack (it never
 *                                                       began)
 *
 * Pure.
 */
#ifndef GW_SESSIONS_RECORD_H
#define GW_SESSIONS_RECORD_H

#include "protocol/json_writer.h"

#include <stdint.h>

#define GW_RECORD_MAX  (16u << 20)      /* bytes of a line */
#define GW_EVENTS_A_MS 1000             /* at a start, event numbers begin at the ms since 1970, multiplied by this */
#define GW_EVENT_MAX   9007199254740991 /* 2^53 - 1: the greatest integer that a page can represent */

enum gw_record_type {
    GW_RECORD_SESSION,
    GW_RECORD_TITLE,
    GW_RECORD_RUN_STARTED,
    GW_RECORD_MESSAGE,
    GW_RECORD_TOOL_CALL,
    GW_RECORD_APPROVAL_OPENED,
    GW_RECORD_APPROVAL_SETTLED,
    GW_RECORD_TOOL_STARTED,
    GW_RECORD_TOOL_RESULT,
    GW_RECORD_STEP,
    GW_RECORD_RUN_ENDED,
    GW_RECORD_OTHER, /* of a later version: read, never written */
};

/* A record that was read. */
struct gw_record {
    int64_t seq;
    int64_t time_ms;
    enum gw_record_type type;
    struct json_object *json; /* belongs to the reader; json_object_get keeps it */
    const char *line;         /* without its newline */
    size_t len;
};

/* The fault of gw_record_read when there is no memory. */
extern const char gw_record_no_memory[];

/* The word of a type. The type must not be GW_RECORD_OTHER. */
const char *gw_record_name(enum gw_record_type type);

/*
 * Begins a line: the caller writes further members to `w`, then calls gw_record_end. `run_id` NULL: it belongs to no
 * run.
 */
void gw_record_begin(struct fm_json_writer *w, int64_t seq, int64_t time_ms, enum gw_record_type type,
                     const char *run_id);
void gw_record_end(struct fm_json_writer *w);

/*
 * Reads a line (without its newline) into `record`; the caller puts `record->json`. `scratch` is used for the work.
 * False: it is no record, its members are not those of its type, or there is no memory; `*fault` says which, in static
 * memory.
 */
FM_MUST_USE bool gw_record_read(const char *line, size_t len, struct fm_buf *scratch, struct gw_record *record,
                                const char **fault);

/*
 * Returns the number of the event that reports a run's end (`json` is the run_ended record). If the record has no
 * number, one is made from its time. 0: that is not possible.
 */
int64_t gw_record_event(struct json_object *json);

/* The string `name` of a record; NULL: it has none. */
const char *gw_record_text(const struct gw_record *record, const char *name);

#endif
