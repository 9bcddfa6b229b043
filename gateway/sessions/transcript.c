/* Reading a transcript. A record is handed out only if its seq is above all that were handed out before. */
#include "sessions/transcript.h"

#include <json-c/json.h>
#include <string.h>

static bool read_line(const char *line, size_t len, const struct gw_transcript_reader *reader, struct fm_buf *scratch,
                      int64_t *seq) {
    struct gw_record record;
    const char *fault;
    fm_buf_reset(scratch);
    bool whole = gw_record_read(line, len, scratch, &record, &fault);
    if (whole && (record.seq <= *seq || record.seq - *seq > GW_SEQ_STEP_MAX)) {
        json_object_put(record.json);
        whole = false;
        fault = "its seq is not above those before it, or far above";
    }
    if (!whole) {
        return !reader->broken || reader->broken(reader->context, line, len, fault);
    }
    *seq = record.seq;
    bool more = reader->record(reader->context, &record);
    json_object_put(record.json);
    return more;
}

size_t gw_transcript_read(const char *text, size_t len, const struct gw_transcript_reader *reader) {
    struct fm_buf scratch;
    int64_t seq = 0;
    size_t at = 0;
    bool more = true;
    fm_buf_init(&scratch, GW_RECORD_MAX);
    while (more && at < len) {
        const char *end = memchr(text + at, '\n', len - at);
        if (!end) {
            break;
        }
        size_t line = (size_t)(end - (text + at));
        more = read_line(text + at, line, reader, &scratch, &seq);
        at += line + 1;
    }
    fm_buf_free(&scratch);
    return at;
}
