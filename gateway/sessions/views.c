/*
 * Views. An array's elements are written one after the other. At the end the oldest are dropped, so `starts` has the
 * place where each element begins.
 */
#include "sessions/views.h"
#include "sessions/transcript.h"

#include <json-c/json.h>
#include <string.h>
#include <time.h>

struct writing {
    const struct gw_view *view;
    struct fm_buf *out;
    struct fm_buf body;   /* elements, each with a comma after it */
    struct fm_buf starts; /* size_t each */
    struct json_object *taken_back;
};

/* ---- arrays ---- */

static void write_view_message(struct fm_json_writer *w, const struct gw_record *record) {
    struct json_object *attachments;
    const char *run = gw_record_text(record, "runId");
    struct json_object *content = json_object_object_get(record->json, "content");
    fm_json_object_begin(w);
    fm_json_key_str(w, "role", gw_record_text(record, "role"));
    fm_json_key(w, "content");
    fm_json_string(w, json_object_get_string(content), (size_t)json_object_get_string_len(content));
    fm_json_key_int(w, "seq", record->seq);
    fm_json_key_int(w, "time", record->time_ms);
    if (run) {
        fm_json_key_str(w, "runId", run);
    }
    if (json_object_object_get_ex(record->json, "attachments", &attachments)) {
        fm_json_key_value(w, "attachments", attachments);
    }
    fm_json_object_end(w);
}

static bool add_element(void *context, const struct gw_record *record) {
    struct writing *writing = context;
    bool messages = writing->view->form == GW_VIEW_MESSAGES;
    if (record->seq <= writing->view->after_seq || (messages && record->type != GW_RECORD_MESSAGE) ||
        (messages && gw_is_taken_back(writing->taken_back, record))) {
        return true;
    }
    fm_buf_append(&writing->starts, &writing->body.len, sizeof writing->body.len);
    if (messages) {
        struct fm_json_writer w = fm_json_writer_on(&writing->body);
        write_view_message(&w, record);
    } else {
        fm_buf_append(&writing->body, record->line, record->len);
    }
    fm_buf_append_char(&writing->body, ',');
    return !writing->body.failed && !writing->starts.failed;
}

static void write_array(struct writing *writing, bool *cut) {
    const size_t *starts = (const size_t *)(const void *)writing->starts.data;
    size_t count = writing->starts.len / sizeof *starts;
    size_t room = writing->view->max_bytes ? writing->view->max_bytes : GW_VIEW_MAX;
    size_t first = writing->view->limit && count > writing->view->limit ? count - writing->view->limit : 0;
    while (first < count && writing->body.len - starts[first] + 1 > room) { /* adds two brackets, drops one comma */
        first++;
        *cut = true;
    }
    fm_buf_append_char(writing->out, '[');
    if (first < count) {
        fm_buf_append(writing->out, writing->body.data + starts[first], writing->body.len - starts[first] - 1);
    }
    fm_buf_append_char(writing->out, ']');
}

/* ---- for people ---- */

static void append_time(struct fm_buf *out, int64_t time_ms) {
    char text[32] = "";
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm tm;
    if (gmtime_r(&seconds, &tm)) {
        strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &tm);
    }
    fm_buf_append_str(out, text);
}

/* Appends the text in a fence that nothing in it can close. */
static void append_fenced(struct fm_buf *out, const char *text) {
    size_t longest = 2;
    for (const char *at = text; *at; at++) {
        size_t run = strspn(at, "`");
        longest = run > longest ? run : longest;
        at += run ? run - 1 : 0;
    }
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i <= longest; i++) {
            fm_buf_append_char(out, '`');
        }
        fm_buf_append_char(out, '\n');
        if (side == 0) {
            fm_buf_append_str(out, text);
            fm_buf_append_str(out, *text && text[strlen(text) - 1] == '\n' ? "" : "\n");
        }
    }
    fm_buf_append_char(out, '\n');
}

static void append_heading(struct fm_buf *out, const struct gw_record *record, const char *before, const char *what) {
    fm_buf_append_str(out, before);
    fm_buf_append_str(out, what);
    fm_buf_append_str(out, " (");
    append_time(out, record->time_ms);
    fm_buf_append_str(out, ")\n\n");
}

static bool add_section(void *context, const struct gw_record *record) {
    struct fm_buf *out = ((struct writing *)context)->out;
    struct json_object *input;
    const char *message;
    switch (record->type) {
    case GW_RECORD_MESSAGE:
        append_heading(out, record, "## ", gw_record_text(record, "role"));
        fm_buf_append_str(out, gw_record_text(record, "content"));
        fm_buf_append_str(out, "\n\n");
        break;
    case GW_RECORD_TOOL_CALL:
        append_heading(out, record, "### Tool: ", gw_record_text(record, "name"));
        input = json_object_object_get(record->json, "input");
        append_fenced(out, json_object_to_json_string_ext(input, JSON_C_TO_STRING_PLAIN));
        break;
    case GW_RECORD_APPROVAL_SETTLED:
        append_heading(out, record, "Approval: ", gw_record_text(record, "verdict"));
        break;
    case GW_RECORD_TOOL_RESULT:
        fm_buf_append_str(out, "Result:\n\n");
        append_fenced(out, gw_record_text(record, "output"));
        break;
    case GW_RECORD_RUN_ENDED:
        message = gw_record_text(record, "message");
        if (message && strcmp(gw_record_text(record, "outcome"), "final") != 0) {
            fm_buf_append_str(out, "> ");
            fm_buf_append_str(out, message);
            fm_buf_append_str(out, "\n\n");
        }
        break;
    default: break;
    }
    return !out->failed;
}

static bool add_line(void *context, const struct gw_record *record) {
    struct fm_buf *out = ((struct writing *)context)->out;
    fm_buf_append(out, record->line, record->len + 1);
    return !out->failed;
}

bool gw_view_write(const char *text, size_t len, const struct gw_view *view, struct fm_buf *out, bool *cut) {
    struct writing writing = {.view = view, .out = out};
    bool array = view->form == GW_VIEW_MESSAGES || view->form == GW_VIEW_RECORDS;
    struct gw_transcript_reader reader = {.context = &writing,
                                          .record = array                            ? add_element
                                                    : view->form == GW_VIEW_MARKDOWN ? add_section
                                                                                     : add_line};
    *cut = false;
    fm_buf_init(&writing.body, SIZE_MAX / 2);
    fm_buf_init(&writing.starts, SIZE_MAX / 2);
    writing.taken_back = view->form == GW_VIEW_MESSAGES ? gw_transcript_taken_back(text, len) : NULL;
    gw_transcript_read(text, len, &reader);
    json_object_put(writing.taken_back);
    bool failed = writing.body.failed || writing.starts.failed;
    if (array && !failed) {
        write_array(&writing, cut);
    }
    fm_buf_free(&writing.body);
    fm_buf_free(&writing.starts);
    return !failed && !out->failed;
}
