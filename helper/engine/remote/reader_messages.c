/* Reads a stream of Anthropic's Messages. Its end mark is `message_stop`. */
#include "engine/remote/reader.h"

#include <json-c/json.h>
#include <string.h>

/* At most 2^53: no model reads more tokens, and a sum of such counts does not overflow. */
static int64_t at_most(int64_t tokens) {
    return tokens < INT64_C(1) << 53 ? tokens : INT64_C(1) << 53;
}

/*
 * Reads the usage. We count tokens that were read from the cache as input; this dialect reports them separately. Output
 * is only counted at the end.
 */
static void read_input_usage(struct fm_remote_reader *reader, struct json_object *usage) {
    int64_t fresh = FM_UNCOUNTED;
    int64_t read = 0;
    int64_t written = 0;
    fm_reader_count(usage, "input_tokens", &fresh);
    fm_reader_count(usage, "cache_read_input_tokens", &read);
    fm_reader_count(usage, "cache_creation_input_tokens", &written);
    if (fresh != FM_UNCOUNTED) {
        reader->usage.input = at_most(fresh) + at_most(read) + at_most(written);
        reader->usage.cached = read;
    }
}

static void append_member(struct fm_remote_reader *reader, struct fm_buf *buf, struct json_object *object,
                          const char *key) {
    const char *text = fm_reader_string(object, key);
    fm_buf_append_str(buf, text);
    if (buf->failed) {
        fm_reader_fail(reader, "a thought of more than 16 MiB, or out of memory");
    }
}

static void read_block(struct fm_remote_reader *reader, struct json_object *block) {
    const char *type = fm_reader_string(block, "type");
    struct json_object *input = fm_reader_member(block, "input");
    fm_buf_reset(&reader->block);
    fm_buf_reset(&reader->seal);
    reader->call_open = strcmp(type, "tool_use") == 0;
    if (reader->call_open) {
        fm_reader_begin_call(reader, fm_reader_string(block, "id"), fm_reader_string(block, "name"));
        if (!json_object_is_type(input, json_type_object) || json_object_object_length(input) > 0) {
            fm_reader_emit_arguments(reader, block, "input");
        }
    } else if (strcmp(type, "text") == 0) {
        fm_reader_emit_member(reader, FM_REMOTE_TEXT, block, "text");
    } else if (strcmp(type, "thinking") == 0) {
        append_member(reader, &reader->block, block, "thinking");
        append_member(reader, &reader->seal, block, "signature");
        fm_reader_emit_member(reader, FM_REMOTE_REASONING, block, "thinking");
    } else if (strcmp(type, "redacted_thinking") == 0) {
        fm_reader_emit_state(reader, block);
    }
}

static void read_block_start(struct fm_remote_reader *reader, struct json_object *data) {
    read_block(reader, fm_reader_object(data, "content_block"));
}

static void read_block_delta(struct fm_remote_reader *reader, struct json_object *data) {
    struct json_object *delta = fm_reader_object(data, "delta");
    const char *type = fm_reader_string(delta, "type");
    if (strcmp(type, "text_delta") == 0) {
        fm_reader_emit_member(reader, FM_REMOTE_TEXT, delta, "text");
    } else if (strcmp(type, "thinking_delta") == 0) {
        append_member(reader, &reader->block, delta, "thinking");
        fm_reader_emit_member(reader, FM_REMOTE_REASONING, delta, "thinking");
    } else if (strcmp(type, "signature_delta") == 0) {
        append_member(reader, &reader->seal, delta, "signature");
    } else if (strcmp(type, "input_json_delta") == 0 && reader->call_open) {
        fm_reader_emit_member(reader, FM_REMOTE_ARGUMENTS, delta, "partial_json");
    }
}

/* Signed reasoning goes back to the server with the answer, word by word. */
static void read_block_stop(struct fm_remote_reader *reader, struct json_object *data) {
    struct json_object *block = reader->seal.len > 0 ? json_object_new_object() : NULL;
    (void)data;
    if (block) {
        json_object_object_add(block, "type", json_object_new_string("thinking"));
        json_object_object_add(
            block, "thinking",
            json_object_new_string_len(reader->block.len ? reader->block.data : "", (int)reader->block.len));
        json_object_object_add(block, "signature",
                               json_object_new_string_len(reader->seal.data, (int)reader->seal.len));
        fm_reader_emit_state(reader, block);
    }
    json_object_put(block);
    fm_buf_reset(&reader->block);
    fm_buf_reset(&reader->seal);
    reader->call_open = false;
}

/* Reads a message: its whole blocks, if it has any, and the tokens of its prompt. */
static void read_message(struct fm_remote_reader *reader, struct json_object *message) {
    struct json_object *content = fm_reader_member(message, "content");
    size_t count = json_object_is_type(content, json_type_array) ? json_object_array_length(content) : 0;
    read_input_usage(reader, fm_reader_object(message, "usage"));
    if (content && !json_object_is_type(content, json_type_array)) {
        fm_reader_say(reader, content, FM_REMOTE_TEXT, NULL);
    }
    for (size_t i = 0; i < count && reader->code == FM_OK; i++) {
        read_block(reader, json_object_array_get_idx(content, i));
        read_block_stop(reader, NULL);
    }
}

static void read_start(struct fm_remote_reader *reader, struct json_object *data) {
    read_message(reader, fm_reader_object(data, "message"));
}

static void read_stop_reason(struct fm_remote_reader *reader, struct json_object *delta) {
    static const struct {
        const char *word;
        enum fm_reason reason;
    } words[] = {{"end_turn", FM_REASON_STOP},
                 {"stop_sequence", FM_REASON_STOP},
                 {"tool_use", FM_REASON_STOP},
                 {"max_tokens", FM_REASON_LENGTH},
                 {"model_context_window_exceeded", FM_REASON_LENGTH},
                 {"refusal", FM_REASON_CONTENT_FILTER}};
    const char *stop = fm_reader_string(delta, "stop_reason");
    for (size_t i = 0; i < sizeof words / sizeof words[0] && *stop; i++) {
        if (strcmp(words[i].word, stop) == 0) {
            reader->reason = words[i].reason;
            return;
        }
    }
    if (*stop) {
        fm_reader_fail(reader, "it ended for a reason that is not known");
    }
}

static void read_message_delta(struct fm_remote_reader *reader, struct json_object *data) {
    struct json_object *usage = fm_reader_object(data, "usage");
    read_input_usage(reader, usage);
    fm_reader_count(usage, "output_tokens", &reader->usage.output);
    read_stop_reason(reader, fm_reader_object(data, "delta"));
}

static void read_stop(struct fm_remote_reader *reader, struct json_object *data) {
    (void)data;
    reader->complete = reader->reason != FM_REASON_NONE;
}

static const struct fm_reader_row rows[] = {
    {"message_start", read_start},
    {"content_block_start", read_block_start},
    {"content_block_delta", read_block_delta},
    {"content_block_stop", read_block_stop},
    {"message_delta", read_message_delta},
    {"message_stop", read_stop},
    {"error", fm_reader_report},
};

void fm_reader_messages(struct fm_remote_reader *reader, const char *name, struct json_object *data) {
    fm_reader_dispatch(reader, rows, sizeof rows / sizeof rows[0], name, data);
}

/* Reads a message object that comes in place of a stream. */
void fm_reader_messages_whole(struct fm_remote_reader *reader, struct json_object *data) {
    read_message(reader, data);
    fm_reader_count(fm_reader_object(data, "usage"), "output_tokens", &reader->usage.output);
    read_stop_reason(reader, data);
    reader->complete = reader->reason != FM_REASON_NONE;
}
