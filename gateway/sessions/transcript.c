/* Reading a transcript. A record is handed out only if its seq is above all earlier ones. */
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

static bool note_taken_back(void *context, const struct gw_record *record) {
    struct json_object **runs = context;
    if (record->type == GW_RECORD_RUN_ENDED && json_object_object_get_ex(record->json, "takenBack", NULL)) {
        *runs = *runs ? *runs : json_object_new_object();
        if (*runs) {
            json_object_object_add(*runs, gw_record_text(record, "runId"), NULL);
        }
    }
    return true;
}

struct json_object *gw_transcript_taken_back(const char *text, size_t len) {
    static const char member[] = "\"takenBack\"";
    struct json_object *runs = NULL;
    const struct gw_transcript_reader reader = {.context = &runs, .record = note_taken_back};
    if (len && memmem(text, len, member, sizeof member - 1)) { /* otherwise the line need not be parsed */
        gw_transcript_read(text, len, &reader);
    }
    return runs;
}

bool gw_is_taken_back(struct json_object *runs, const struct gw_record *record) {
    const char *run = gw_record_text(record, "runId");
    return runs && run && json_object_object_get_ex(runs, run, NULL);
}
