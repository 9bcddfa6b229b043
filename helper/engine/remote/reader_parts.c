/* What the dialects hand out of a streamed answer. The first fault is kept, and nothing is handed out after it. */
#include "base/crc32.h"
#include "engine/remote/failure.h"
#include "engine/remote/reader.h"

#include <json-c/json.h>
#include <string.h>

/* ---- faults ---- */

void fm_reader_fail(struct fm_remote_reader *reader, const char *why) {
    if (reader->code == FM_OK) {
        reader->code = fm_fail(reader->error, FM_INTERNAL, "%s sent an answer that can't be understood: %s",
                               reader->endpoint->host, why);
    }
}

void fm_reader_break(struct fm_remote_reader *reader, const char *how) {
    if (reader->code == FM_OK) {
        reader->code = fm_fail(reader->error, FM_OVERLOADED, "%s %s: a part of it is missing", reader->endpoint->host, how);
        reader->error->again = true;
    }
}

void fm_reader_report(struct fm_remote_reader *reader, struct json_object *object) {
    if (reader->code == FM_OK) {
        reader->code = fm_failure_of_event(reader->endpoint->host, object, reader->secrets, reader->error);
        fm_halves_replace(reader->error->detail, reader->halved ? strlen(reader->error->detail) : 0);
    }
}

/* ---- events ---- */

void fm_reader_dispatch(struct fm_remote_reader *reader, const struct fm_reader_row *rows, size_t count,
                        const char *name, struct json_object *data) {
    const char *type = fm_reader_string(data, "type");
    type = *type ? type : name;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].type, type) == 0) {
            rows[i].read(reader, data);
            return;
        }
    }
    if (json_object_object_get(data, "error")) {
        fm_reader_report(reader, data);
    }
}

/* ---- parts ---- */

static void emit(struct fm_remote_reader *reader, const struct fm_remote_part *part) {
    if (reader->code == FM_OK && !reader->stopped) {
        reader->stopped = !reader->take(reader->state, part);
    }
}

/* Hands out a text of one of the kinds that are cut into pieces. */
static void emit_text(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, const char *text, size_t len) {
    if (len > 0 && (size_t)kind < FM_READER_KINDS && reader->code == FM_OK) {
        fm_reader_tally(reader, kind, text, len);
    }
    if (len > 0) {
        emit(reader, &(struct fm_remote_part){.kind = kind, .text = text, .len = len});
    }
}

static void check_joined(struct fm_remote_reader *reader) {
    if (reader->joined.failed) {
        fm_reader_fail(reader, "out of memory");
    }
}

void fm_reader_end_text(struct fm_remote_reader *reader) {
    if (reader->halves.first) {
        fm_buf_reset(&reader->joined);
        fm_halves_end(&reader->halves, &reader->joined);
        check_joined(reader);
        emit_text(reader, reader->speech, reader->joined.data, reader->joined.len);
    }
}

/*
 * Follows the brackets and strings of the last call's arguments: call_closed is set once the outermost object or array
 * has been closed. Checks nothing else of the JSON.
 */
static void follow_arguments(struct fm_remote_reader *reader, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (reader->call_escaped) {
            reader->call_escaped = false;
        } else if (reader->call_quoted) {
            reader->call_escaped = text[i] == '\\';
            reader->call_quoted = text[i] != '"';
        } else if (text[i] == '"') {
            reader->call_quoted = true;
        } else if (text[i] == '{' || text[i] == '[') {
            reader->call_depth++;
        } else if (text[i] == '}' || text[i] == ']') {
            reader->call_closed |= --reader->call_depth == 0;
        }
    }
    reader->call_arguments |= len > 0;
}

void fm_reader_emit(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, const char *text, size_t len) {
    if (kind == FM_REMOTE_ARGUMENTS && reader->call_count == 0) {
        fm_reader_fail(reader, "arguments without a call");
    }
    if (kind == FM_REMOTE_ARGUMENTS) {
        follow_arguments(reader, text, len);
    }
    if (kind == FM_REMOTE_STATE) {
        emit_text(reader, kind, text, len);
        return;
    }
    if (kind != reader->speech) {
        fm_reader_end_text(reader);
    }
    reader->speech = kind;
    if (reader->halved || (reader->halves.first && len > 0)) {
        fm_buf_reset(&reader->joined);
        fm_halves_join(&reader->halves, text, len, &reader->joined);
        check_joined(reader);
        text = reader->joined.data;
        len = reader->joined.len;
    }
    emit_text(reader, kind, text, len);
}

bool fm_reader_emit_member(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, struct json_object *object,
                           const char *key) {
    struct json_object *value = fm_reader_member(object, key);
    if (value && !json_object_is_type(value, json_type_string)) {
        fm_reader_fail(reader, "a text is no string");
        return false;
    }
    if (!value || json_object_get_string_len(value) == 0) {
        return false;
    }
    fm_reader_emit(reader, kind, json_object_get_string(value), (size_t)json_object_get_string_len(value));
    return true;
}

void fm_reader_emit_arguments(struct fm_remote_reader *reader, struct json_object *object, const char *key) {
    struct json_object *value = fm_reader_member(object, key);
    if (json_object_is_type(value, json_type_object)) {
        const char *text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
        fm_reader_emit(reader, FM_REMOTE_ARGUMENTS, text ? text : "", text ? strlen(text) : 0);
    } else if (value && !json_object_is_type(value, json_type_string)) {
        fm_reader_fail(reader, "the arguments of a call are neither a text nor an object");
    } else {
        fm_reader_emit_member(reader, FM_REMOTE_ARGUMENTS, object, key);
    }
}

void fm_reader_emit_state(struct fm_remote_reader *reader, struct json_object *item) {
    struct fm_buf text;
    fm_buf_init(&text, FM_SSE_EVENT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&text);
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "maker", reader->maker);
    fm_json_key_value(&w, "item", item);
    fm_json_object_end(&w);
    if (text.failed) {
        fm_reader_fail(reader, "out of memory");
    } else {
        fm_halves_replace(text.data, reader->halved ? text.len : 0);
        fm_reader_emit(reader, FM_REMOTE_STATE, text.data, text.len);
    }
    fm_buf_free(&text);
}

void fm_reader_begin_call(struct fm_remote_reader *reader, const char *id, const char *name) {
    fm_reader_end_text(reader);
    if (!*name) {
        fm_reader_fail(reader, "a call without a name");
    } else if (reader->call_count == FM_READER_CALLS) {
        fm_reader_fail(reader, "more than 128 calls");
    } else {
        reader->calls[reader->call_count++] = fm_crc32(0, id, strlen(id));
        reader->call_arguments = reader->call_closed = reader->call_quoted = reader->call_escaped = false;
        reader->call_depth = 0;
        emit(reader, &(struct fm_remote_part){.kind = FM_REMOTE_CALL, .text = name, .len = strlen(name)});
    }
}

bool fm_reader_is_last_call(const struct fm_remote_reader *reader, const char *id) {
    return reader->call_count > 0 && reader->calls[reader->call_count - 1] == fm_crc32(0, id, strlen(id));
}

bool fm_reader_knows_call(const struct fm_remote_reader *reader, const char *id) {
    for (size_t i = 0; i < reader->call_count; i++) {
        if (reader->calls[i] == fm_crc32(0, id, strlen(id))) {
            return true;
        }
    }
    return false;
}

/* ---- log probabilities ---- */

static bool is_number(struct json_object *value) {
    return json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double);
}

/* Copies a list of bytes into `bytes` (room for FM_LOGPROB_BYTES_MAX). False: the value is no list of bytes. */
static bool read_bytes(struct json_object *list, char *bytes, size_t *len) {
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    *len = count < FM_LOGPROB_BYTES_MAX ? count : FM_LOGPROB_BYTES_MAX;
    for (size_t i = 0; i < count; i++) {
        struct json_object *byte = json_object_array_get_idx(list, i);
        int64_t value = json_object_get_int64(byte);
        if (!json_object_is_type(byte, json_type_int) || value < 0 || value > 255) {
            return false;
        }
        if (i < *len) {
            bytes[i] = (char)value;
        }
    }
    return json_object_is_type(list, json_type_array);
}

/*
 * Reads {"token","logprob","bytes"?}. Without `bytes`, the token's text gives the bytes. A logarithm of 0 is null.
 * False: the value has another form.
 */
static bool read_logprob(struct json_object *entry, char *bytes, struct fm_logprob *logprob) {
    struct json_object *token = fm_reader_member(entry, "token");
    struct json_object *list = fm_reader_member(entry, "bytes");
    struct json_object *number = fm_reader_member(entry, "logprob");
    *logprob = (struct fm_logprob){.bytes = bytes};
    if (list && !read_bytes(list, bytes, &logprob->len)) {
        return false;
    }
    if (!list && json_object_is_type(token, json_type_string)) {
        logprob->bytes = json_object_get_string(token);
        logprob->len = (size_t)json_object_get_string_len(token);
    }
    double value = number ? json_object_get_double(number) : FM_LOGPROB_MIN;
    logprob->logprob = value > FM_LOGPROB_MIN ? (value < 0 ? value : 0) : FM_LOGPROB_MIN;
    return (list || json_object_is_type(token, json_type_string)) && (!number || is_number(number));
}

/* Reads a token and its most likely alternatives. */
static bool read_token(struct json_object *entry, char (*bytes)[FM_LOGPROB_BYTES_MAX],
                       struct fm_token_logprobs *token) {
    struct json_object *top = fm_reader_member(entry, "top_logprobs");
    size_t tops = json_object_is_type(top, json_type_array) ? json_object_array_length(top) : 0;
    *token = (struct fm_token_logprobs){.top_count = tops < FM_TOP_LOGPROBS_MAX ? tops : FM_TOP_LOGPROBS_MAX};
    bool good = (!top || json_object_is_type(top, json_type_array)) &&
                read_logprob(entry, bytes[FM_TOP_LOGPROBS_MAX], &token->token);
    for (size_t i = 0; good && i < token->top_count; i++) {
        good = read_logprob(json_object_array_get_idx(top, i), bytes[i], &token->top[i]);
    }
    return good;
}

void fm_reader_emit_logprobs(struct fm_remote_reader *reader, struct json_object *list) {
    static _Thread_local char bytes[FM_TOP_LOGPROBS_MAX + 1][FM_LOGPROB_BYTES_MAX];
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    for (size_t i = 0; i < count; i++) {
        struct fm_token_logprobs token;
        if (!read_token(json_object_array_get_idx(list, i), bytes, &token)) {
            fm_reader_fail(reader, "log probabilities that are no numbers and bytes");
            return;
        }
        emit(reader, &(struct fm_remote_part){.kind = FM_REMOTE_LOGPROBS, .token = &token});
    }
}

/* ---- members ---- */

void fm_reader_count(struct json_object *object, const char *key, int64_t *count) {
    struct json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    if (json_object_is_type(value, json_type_int) && json_object_get_int64(value) >= 0) {
        *count = json_object_get_int64(value);
    }
}

const char *fm_reader_string(struct json_object *object, const char *key) {
    struct json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

struct json_object *fm_reader_member(struct json_object *object, const char *key) {
    struct json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    return value;
}

struct json_object *fm_reader_object(struct json_object *object, const char *key) {
    struct json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    bool container = json_object_is_type(value, json_type_object) || json_object_is_type(value, json_type_array);
    return container ? value : NULL;
}
