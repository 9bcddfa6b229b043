/* What the dialects hand out of a streamed answer. A fault is kept, and nothing is handed out after it. */
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

void fm_reader_report(struct fm_remote_reader *reader, struct json_object *object) {
    if (reader->code == FM_OK) {
        reader->code = fm_failure_of_event(reader->endpoint->host, object, reader->secrets, reader->error);
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

void fm_reader_emit(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, const char *text, size_t len) {
    if (kind == FM_PART_ARGUMENTS && reader->call_count == 0) {
        fm_reader_fail(reader, "arguments without a call");
    }
    if (len > 0) {
        reader->call_arguments |= kind == FM_PART_ARGUMENTS;
        emit(reader, &(struct fm_remote_part){.kind = kind, .text = text, .len = len});
    }
}

bool fm_reader_emit_member(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, struct json_object *object,
                           const char *key) {
    struct json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    if (!json_object_is_type(value, json_type_string) || json_object_get_string_len(value) == 0) {
        return false;
    }
    fm_reader_emit(reader, kind, json_object_get_string(value), (size_t)json_object_get_string_len(value));
    return true;
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
        fm_reader_emit(reader, FM_PART_STATE, text.data, text.len);
    }
    fm_buf_free(&text);
}

void fm_reader_begin_call(struct fm_remote_reader *reader, const char *id, const char *name) {
    if (!*name) {
        fm_reader_fail(reader, "a call without a name");
    } else if (reader->call_count == FM_READER_CALLS) {
        fm_reader_fail(reader, "more than 128 calls");
    } else {
        reader->calls[reader->call_count++] = fm_crc32(0, id, strlen(id));
        reader->call_arguments = false;
        emit(reader, &(struct fm_remote_part){.kind = FM_PART_CALL, .text = name, .len = strlen(name)});
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

/* `bytes` (room for FM_LOGPROB_BYTES_MAX) gets those of a list of numbers. False: there is no such list. */
static bool read_bytes(struct json_object *list, char *bytes, size_t *len) {
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    *len = count < FM_LOGPROB_BYTES_MAX ? count : FM_LOGPROB_BYTES_MAX;
    for (size_t i = 0; i < *len; i++) {
        bytes[i] = (char)json_object_get_int(json_object_array_get_idx(list, i));
    }
    return json_object_is_type(list, json_type_array);
}

/* {"token","logprob","bytes"?}; without bytes, the token's text has them. */
static struct fm_logprob read_logprob(struct json_object *entry, char *bytes) {
    struct fm_logprob logprob = {.bytes = bytes};
    struct json_object *token = json_object_object_get(entry, "token");
    if (!read_bytes(json_object_object_get(entry, "bytes"), bytes, &logprob.len) &&
        json_object_is_type(token, json_type_string)) {
        logprob.bytes = json_object_get_string(token);
        logprob.len = (size_t)json_object_get_string_len(token);
    }
    double value = json_object_get_double(json_object_object_get(entry, "logprob"));
    logprob.logprob = value > FM_LOGPROB_MIN ? (value < 0 ? value : 0) : FM_LOGPROB_MIN;
    return logprob;
}

void fm_reader_emit_logprobs(struct fm_remote_reader *reader, struct json_object *list) {
    static _Thread_local char bytes[FM_TOP_LOGPROBS_MAX + 1][FM_LOGPROB_BYTES_MAX];
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    for (size_t i = 0; i < count; i++) {
        struct json_object *entry = json_object_array_get_idx(list, i);
        struct json_object *top = fm_reader_object(entry, "top_logprobs");
        size_t tops = json_object_is_type(top, json_type_array) ? json_object_array_length(top) : 0;
        struct fm_token_logprobs token = {.top_count = tops < FM_TOP_LOGPROBS_MAX ? tops : FM_TOP_LOGPROBS_MAX};
        if (!json_object_is_type(entry, json_type_object)) {
            continue;
        }
        token.token = read_logprob(entry, bytes[FM_TOP_LOGPROBS_MAX]);
        for (size_t j = 0; j < token.top_count; j++) {
            token.top[j] = read_logprob(json_object_array_get_idx(top, j), bytes[j]);
        }
        emit(reader, &(struct fm_remote_part){.kind = FM_PART_LOGPROBS, .token = &token});
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

struct json_object *fm_reader_object(struct json_object *object, const char *key) {
    struct json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    bool container = json_object_is_type(value, json_type_object) || json_object_is_type(value, json_type_array);
    return container ? value : NULL;
}
