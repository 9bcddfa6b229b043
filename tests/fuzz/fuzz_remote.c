/*
 * Fuzzes a server's stream, in one of three dialects. The events are the same whether the stream comes whole, in pieces
 * or byte by byte, and a second implementation of the rules gives the same events. The parts that the reader passes on
 * are the same too, in the same order and in whole characters, and nothing comes after a fault. If an answer ends well
 * without a part, the stream had no part: no event has a text or a call at the places that the dialect uses.
 *
 * Input: the dialect (modulo 3), the size of a piece (0 counts as 256), the stream.
 */
#include "engine/remote/reader.h"
#include "tests/fuzz/fuzz.h"

#include <json-c/json.h>

#define LOG_MAX (64u << 20)

static void log_bytes(struct fm_buf *log, char kind, const char *bytes, size_t len) {
    fm_buf_append_char(log, kind);
    fm_buf_append(log, &len, sizeof len);
    fm_buf_append(log, bytes, len);
}

/* ---- events ---- */

static bool log_event(void *state, const struct fm_sse_event *event) {
    log_bytes(state, 'n', event->name, event->name_len);
    log_bytes(state, 'd', event->data, event->len);
    return true;
}

static void read_events(const char *text, size_t len, size_t piece, struct fm_buf *log) {
    struct fm_sse sse;
    fm_sse_init(&sse, log_event, log);
    for (size_t at = 0; at < len; at += piece) {
        size_t size = len - at < piece ? len - at : piece;
        char *copy = exact_copy(text + at, size);
        HOLDS(fm_sse_push(&sse, copy, size) == FM_SSE_MORE);
        free(copy);
    }
    HOLDS(sse.line.len <= len && sse.data.len <= len && sse.name.len <= len);
    fm_sse_free(&sse);
}

/* ---- the rules once more, on a whole text ---- */

struct rules {
    struct fm_buf name;
    struct fm_buf data;
    bool has_data;
};

static void rule_line(struct rules *rules, const char *line, size_t len, struct fm_buf *log) {
    size_t name = 0;
    while (name < len && line[name] != ':') {
        name++;
    }
    size_t value = name < len ? name + 1 : len;
    value += value < len && line[value] == ' ';
    if (len == 0) {
        if (rules->has_data) {
            log_bytes(log, 'n', rules->name.data, rules->name.len);
            log_bytes(log, 'd', rules->data.data, rules->data.len - 1); /* without the last \n */
        }
        fm_buf_reset(&rules->name);
        fm_buf_reset(&rules->data);
        rules->has_data = false;
    } else if (name == 5 && memcmp(line, "event", 5) == 0) {
        fm_buf_reset(&rules->name);
        fm_buf_append(&rules->name, line + value, len - value);
    } else if (name == 4 && memcmp(line, "data", 4) == 0) {
        fm_buf_append(&rules->data, line + value, len - value);
        fm_buf_append_char(&rules->data, '\n');
        rules->has_data = true;
    }
}

static void read_by_rules(const char *text, size_t len, struct fm_buf *log) {
    struct rules rules = {.has_data = false};
    size_t at = 0;
    bool first = true;
    fm_buf_init(&rules.name, LOG_MAX);
    fm_buf_init(&rules.data, LOG_MAX);
    while (at < len) {
        size_t end = at;
        while (end < len && text[end] != '\r' && text[end] != '\n') {
            end++;
        }
        if (end == len) {
            break; /* a line without its end does not count */
        }
        size_t mark = first && end - at >= 3 && memcmp(text + at, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        rule_line(&rules, text + at + mark, end - at - mark, log);
        first = false;
        at = end + 1 + (text[end] == '\r' && end + 1 < len && text[end + 1] == '\n');
    }
    fm_buf_free(&rules.name);
    fm_buf_free(&rules.data);
}

/* ---- parts ---- */

struct taken {
    struct fm_buf log;
    size_t parts;
};

static bool log_part(void *state, const struct fm_remote_part *part) {
    struct taken *taken = state;
    taken->parts++;
    if (part->kind == FM_REMOTE_LOGPROBS) {
        const struct fm_token_logprobs *token = part->token;
        HOLDS(token->top_count <= FM_TOP_LOGPROBS_MAX && token->token.len <= FM_LOGPROB_BYTES_MAX + (16u << 20));
        HOLDS(token->token.logprob <= 0 && token->token.logprob >= FM_LOGPROB_MIN);
        log_bytes(&taken->log, 't', token->token.bytes, token->token.len);
        return true;
    }
    HOLDS(part->len > 0 || part->kind == FM_REMOTE_CALL);
    HOLDS(part->kind == FM_REMOTE_CALL || fm_utf8_valid(part->text, part->len));
    log_bytes(&taken->log, (char)('A' + part->kind), part->text, part->len);
    return true;
}

static struct json_object *member(struct json_object *object, const char *key) {
    struct json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    return value;
}

static bool is(struct json_object *object, const char *key, const char *text) {
    struct json_object *value = member(object, key);
    return json_object_is_type(value, json_type_string) && strcmp(json_object_get_string(value), text) == 0;
}

/* Returns the text of a part, by its type; NULL: the type is not known. */
static struct json_object *part_text(struct json_object *part) {
    static const char *const types[][2] = {{"text", "text"},           {"output_text", "text"},
                                           {"refusal", "refusal"},     {"thinking", "thinking"},
                                           {"reasoning_text", "text"}, {"summary_text", "text"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (is(part, "type", types[i][0])) {
            return member(part, types[i][1]);
        }
    }
    return member(part, "type") ? NULL : member(part, "text");
}

/* Whether a value contains a string that is not empty, or a number, at any depth. */
static bool says(struct json_object *value) {
    struct json_object_iter at;
    bool any = json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double) ||
               (json_object_is_type(value, json_type_string) && json_object_get_string_len(value) > 0);
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++) {
            any |= says(json_object_array_get_idx(value, i));
        }
    } else if (part_text(value)) {
        any = says(part_text(value));
    } else if (json_object_is_type(value, json_type_object)) {
        json_object_object_foreachC(value, at) {
            any |= strcmp(at.key, "type") != 0 && says(at.val);
        }
    }
    return any;
}

static bool chat_says(struct json_object *data) {
    static const char *const keys[] = {"content", "refusal", "reasoning_content", "tool_calls", "function_call"};
    struct json_object *choices = member(data, "choices");
    bool any = json_object_is_type(choices, json_type_array) ? false : says(choices);
    if (json_object_is_type(choices, json_type_array) && json_object_array_length(choices) > 0) {
        struct json_object *choice = json_object_array_get_idx(choices, 0);
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            any |= says(member(member(choice, "delta"), keys[i])) || says(member(member(choice, "message"), keys[i]));
        }
    }
    return any;
}

static bool items_say(struct json_object *list) {
    bool any = false;
    for (size_t i = 0; json_object_is_type(list, json_type_array) && i < json_object_array_length(list); i++) {
        struct json_object *item = json_object_array_get_idx(list, i);
        any |= is(item, "type", "message") && says(member(item, "content"));
        any |= is(item, "type", "function_call");
    }
    return any;
}

/* Whether an event has a part of an answer, judged only by the places that the dialects use for one. */
static bool event_says(enum fm_dialect_kind dialect, struct json_object *data) {
    if (dialect == FM_DIALECT_CHAT) {
        return chat_says(data);
    }
    if (dialect == FM_DIALECT_RESPONSES) {
        struct json_object *item = member(data, "item");
        return (is(data, "type", "response.output_text.delta") && says(member(data, "delta"))) ||
               (is(data, "type", "response.output_text.done") && says(member(data, "text"))) ||
               (is(data, "type", "response.output_item.done") && is(item, "type", "message") &&
                says(member(item, "content"))) ||
               (is(data, "type", "response.completed") && items_say(member(member(data, "response"), "output")));
    }
    return (is(data, "type", "content_block_delta") && is(member(data, "delta"), "type", "text_delta") &&
            says(member(member(data, "delta"), "text"))) ||
           (is(data, "type", "content_block_start") && is(member(data, "content_block"), "type", "text") &&
            says(member(member(data, "content_block"), "text")));
}

struct silence {
    enum fm_dialect_kind dialect;
    bool over; /* the end mark has come */
};

static bool look_at_silence(void *state, const struct fm_sse_event *event) {
    struct silence *silence = state;
    char *text = exact_copy(event->data, event->len);
    struct json_tokener *tokener = json_tokener_new();
    struct json_object *data = json_tokener_parse_ex(tokener, text, (int)event->len);
    silence->over |= event->len == 6 && memcmp(event->data, "[DONE]", 6) == 0;
    HOLDS(silence->over || !event_says(silence->dialect, data));
    silence->over |= is(data, "type", "response.completed") || is(data, "type", "message_stop");
    json_object_put(data);
    json_tokener_free(tokener);
    free(text);
    return !silence->over;
}

/* For an answer that ended well without a part: checks that its stream had no part. */
static void expect_silence(enum fm_dialect_kind dialect, const char *text, size_t len) {
    struct silence silence = {.dialect = dialect};
    struct fm_sse sse;
    fm_sse_init(&sse, look_at_silence, &silence);
    enum fm_sse_status status = fm_sse_push(&sse, text, len);
    HOLDS(status == FM_SSE_MORE || status == FM_SSE_STOPPED);
    fm_sse_free(&sse);
}

/* Reads the bytes as an answer that is not streamed. */
static void read_whole(enum fm_dialect_kind dialect, const char *text, size_t len) {
    static const struct fm_secrets none;
    static struct fm_endpoint endpoint = {.base = (char *)"", .host = (char *)"h"};
    struct fm_remote_reader reader;
    struct taken taken = {.parts = 0};
    struct fm_error error = {.code = FM_OK};
    endpoint.dialect = dialect;
    fm_buf_init(&taken.log, LOG_MAX);
    fm_reader_init(&reader, &endpoint, "m", &none, log_part, &taken);
    enum fm_code code = fm_reader_whole(&reader, text, len, &error);
    HOLDS(code == FM_OK || error.detail[0]);
    code = fm_reader_close(&reader, &error);
    HOLDS(code != FM_OK || reader.reason != FM_REASON_NONE);
    fm_buf_free(&taken.log);
    fm_reader_free(&reader);
}

static void read_parts(enum fm_dialect_kind dialect, const char *text, size_t len, size_t piece, struct fm_buf *log) {
    static const struct fm_secrets none;
    static struct fm_endpoint endpoint = {.base = (char *)"", .host = (char *)"h"};
    struct fm_remote_reader reader;
    struct taken taken = {.parts = 0};
    struct fm_error error = {.code = FM_OK};
    enum fm_code code = FM_OK;
    endpoint.dialect = dialect;
    fm_buf_init(&taken.log, LOG_MAX);
    fm_reader_init(&reader, &endpoint, "m", &none, log_part, &taken);
    for (size_t at = 0; at < len; at += piece) {
        size_t size = len - at < piece ? len - at : piece;
        size_t before = taken.log.len;
        char *copy = exact_copy(text + at, size);
        enum fm_code now = fm_reader_push(&reader, copy, size, &error);
        free(copy);
        HOLDS(code == FM_OK || (now == code && taken.log.len == before));
        code = now;
    }
    code = fm_reader_close(&reader, &error);
    HOLDS(code == FM_OK ||
          (error.code == code && error.detail[0] && fm_utf8_valid(error.detail, strlen(error.detail))));
    HOLDS(code != FM_OK || reader.reason != FM_REASON_NONE);
    HOLDS(reader.usage.input >= FM_UNCOUNTED && reader.usage.output >= FM_UNCOUNTED);
    if (code == FM_OK && reader.reason == FM_REASON_STOP && taken.parts == 0) {
        expect_silence(dialect, text, len);
    }
    fm_buf_append(log, taken.log.data, taken.log.len);
    log_bytes(log, '.', (const char *)&code, sizeof code);
    log_bytes(log, '.', (const char *)&reader.usage, sizeof reader.usage);
    fm_buf_append_char(log, reader.complete ? 'c' : '-');
    fm_buf_free(&taken.log);
    fm_reader_free(&reader);
}

static void expect_same(const struct fm_buf *one, const struct fm_buf *other) {
    HOLDS(!one->failed && !other->failed);
    HOLDS(one->len == other->len && (one->len == 0 || memcmp(one->data, other->data, one->len) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) {
        return 0;
    }
    enum fm_dialect_kind dialect = (enum fm_dialect_kind)(data[0] % 3);
    const char *text = (const char *)data + 2;
    const size_t len = size - 2;
    const size_t pieces[] = {len ? len : 1, data[1] ? data[1] : 256, 1};
    struct fm_buf first;
    struct fm_buf next;
    fm_buf_init(&first, LOG_MAX);
    fm_buf_init(&next, LOG_MAX);
    read_by_rules(text, len, &first);
    for (size_t i = 0; i < 3; i++) {
        fm_buf_reset(&next);
        read_events(text, len, pieces[i], &next);
        expect_same(&first, &next);
    }
    fm_buf_reset(&first);
    read_parts(dialect, text, len, pieces[0], &first);
    for (size_t i = 1; i < 3; i++) {
        fm_buf_reset(&next);
        read_parts(dialect, text, len, pieces[i], &next);
        expect_same(&first, &next);
    }
    read_whole(dialect, text, len);
    fm_buf_free(&first);
    fm_buf_free(&next);
    return 0;
}
