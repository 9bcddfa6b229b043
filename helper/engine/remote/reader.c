/* Reads a streamed answer: bytes become events, events become JSON, and the dialect reads the JSON. */
#include "engine/remote/reader.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

static bool take_event(void *state, const struct fm_sse_event *event);

void fm_reader_init(struct fm_remote_reader *reader, const struct fm_endpoint *endpoint, const char *model,
                    const struct fm_secrets *secrets, fm_remote_part_fn *take, void *state) {
    *reader = (struct fm_remote_reader){
        .endpoint = endpoint,
        .secrets = secrets,
        .take = take,
        .state = state,
        .usage = {FM_UNCOUNTED, FM_UNCOUNTED, FM_UNCOUNTED, FM_UNCOUNTED},
        .call_index = -1,
        .part_index = -1,
    };
    fm_request_maker(endpoint, model, reader->maker);
    fm_sse_init(&reader->sse, take_event, reader);
    fm_buf_init(&reader->scratch, FM_SSE_EVENT_MAX);
    fm_buf_init(&reader->block, FM_SSE_EVENT_MAX);
    fm_buf_init(&reader->seal, FM_SSE_EVENT_MAX);
    fm_buf_init(&reader->joined, FM_SSE_EVENT_MAX + 3);
}

void fm_reader_free(struct fm_remote_reader *reader) {
    fm_sse_free(&reader->sse);
    fm_buf_free(&reader->scratch);
    fm_buf_free(&reader->block);
    fm_buf_free(&reader->seal);
    fm_buf_free(&reader->joined);
}

/* ---- events ---- */

/* Builds the JSON of `text`. Returns NULL, or what is wrong with the text. */
static const char *build(struct fm_remote_reader *reader, const char *text, size_t len, struct json_object **data) {
    struct fm_buf checked;
    struct fm_buf raw;
    size_t offset;
    const char *fault = fm_json_check(text, len, FM_ENGINE_VALUES_MAX, &offset);
    fm_buf_init(&checked, FM_SSE_EVENT_MAX);
    fm_buf_init(&raw, FM_SSE_EVENT_MAX);
    reader->halved = fault && fm_halves_find(text, len, &checked, &raw);
    if (reader->halved) {
        fault = fm_json_check(checked.data, checked.len, FM_ENGINE_VALUES_MAX, &offset);
        text = raw.data;
        len = raw.len;
    }
    if (!fault && !fm_json_tree(text, len, &reader->scratch, data)) {
        fault = "out of memory";
    } else if (!fault && !json_object_is_type(*data, json_type_object)) {
        fault = "it is no JSON object";
    }
    fm_buf_free(&checked);
    fm_buf_free(&raw);
    return fault;
}

/* The answer has ended. */
static void end_answer(struct fm_remote_reader *reader) {
    if (reader->complete) {
        fm_reader_end_text(reader);
    }
}

/* Events after the end are ignored, because it depends on the network whether they have come already. */
static bool take_event(void *state, const struct fm_sse_event *event) {
    static void (*const readers[])(struct fm_remote_reader *, const char *, struct json_object *) = {
        [FM_DIALECT_RESPONSES] = fm_reader_responses,
        [FM_DIALECT_CHAT] = fm_reader_chat,
        [FM_DIALECT_MESSAGES] = fm_reader_messages,
    };
    struct fm_remote_reader *reader = state;
    struct json_object *data = NULL;
    char name[64];
    if (event->len == 6 && memcmp(event->data, "[DONE]", 6) == 0) { /* the end mark of chat; others send it too */
        reader->complete = reader->reason != FM_REASON_NONE;
    } else {
        snprintf(name, sizeof name, "%.*s", event->name_len < sizeof name ? (int)event->name_len : 0, event->name);
        const char *fault = build(reader, event->data, event->len, &data);
        if (fault) {
            fm_reader_fail(reader, fault);
        } else {
            readers[reader->endpoint->dialect](reader, name, data);
        }
        json_object_put(data);
    }
    end_answer(reader);
    return reader->code == FM_OK && !reader->stopped && !reader->complete;
}

/* ---- the stream ---- */

enum fm_code fm_reader_push(struct fm_remote_reader *reader, const char *bytes, size_t len, struct fm_error *error) {
    if (reader->code != FM_OK || reader->complete) {
        return reader->code;
    }
    reader->error = error;
    enum fm_sse_status status = fm_sse_push(&reader->sse, bytes, len);
    if (status == FM_SSE_TOO_LONG) {
        fm_reader_fail(reader, "an event of more than 16 MiB");
    } else if (status == FM_SSE_NO_MEMORY) {
        fm_reader_fail(reader, "out of memory");
    }
    return reader->code;
}

enum fm_code fm_reader_whole(struct fm_remote_reader *reader, const char *body, size_t len, struct fm_error *error) {
    struct json_object *data = NULL;
    reader->error = error;
    reader->whole = true;
    const char *fault = build(reader, body, len, &data);
    if (fault) {
        fm_reader_fail(reader, fault);
    } else if (fm_reader_member(data, "error")) {
        fm_reader_report(reader, data);
    } else if (reader->endpoint->dialect == FM_DIALECT_CHAT) {
        fm_reader_chat(reader, "", data);
    } else if (reader->endpoint->dialect == FM_DIALECT_RESPONSES) {
        fm_reader_responses_whole(reader, data);
    } else {
        fm_reader_messages_whole(reader, data);
    }
    json_object_put(data);
    end_answer(reader);
    return reader->code;
}

enum fm_code fm_reader_close(struct fm_remote_reader *reader, struct fm_error *error) {
    reader->error = error;
    bool chat = reader->endpoint->dialect == FM_DIALECT_CHAT; /* some servers of this dialect leave out [DONE] */
    fm_reader_end_text(reader);
    bool ended = reader->complete || (chat && reader->reason != FM_REASON_NONE);
    if (!ended && reader->whole) {
        fm_reader_fail(reader, "it has no end mark");
    } else if (!ended) {
        fm_reader_break(reader, "ended the answer without an end mark");
    }
    return reader->code;
}
