/* Reading a transcript, which is a text of records (record.h). Pure; recurses as deep as a record's JSON is nested. */
#ifndef GW_SESSIONS_TRANSCRIPT_H
#define GW_SESSIONS_TRANSCRIPT_H

#include "sessions/record.h"

#define GW_SEQ_STEP_MAX 4294967296 /* most between two records, so that no seq can overflow */

struct gw_transcript_reader {
    void *context;
    /* Called for each record, whose JSON is put afterwards. False: the reader stops. */
    bool (*record)(void *context, const struct gw_record *record);
    /*
     * Called for a line that is no record, or whose seq does not rise or rises too much. NULL: such a line is skipped.
     * False: the reader stops.
     */
    bool (*broken)(void *context, const char *line, size_t len, const char *fault);
};

/*
 * Reads the lines of `text` that have their newline. Returns the length of the lines that it has read. If no callback
 * stopped it, the bytes after them have no newline.
 */
size_t gw_transcript_read(const char *text, size_t len, const struct gw_transcript_reader *reader);

/*
 * Returns the runs whose messages were taken back, because these messages are never shown or remembered. The caller
 * puts the result; NULL: no message was taken back, or memory ran out.
 */
struct json_object *gw_transcript_taken_back(const char *text, size_t len);

/* Whether the record belongs to one of the runs that were taken back. */
bool gw_is_taken_back(struct json_object *runs, const struct gw_record *record);

#endif
