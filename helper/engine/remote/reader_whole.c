/*
 * Texts that a server sends as a whole, in addition to their pieces or in place of them. Nothing is handed out twice:
 * of a whole text, only the part after its pieces is handed out.
 */
#include "base/crc32.h"
#include "engine/remote/reader.h"

#include <json-c/json.h>
#include <string.h>

/* ---- what has been handed out ---- */

static void reset(struct fm_remote_reader *reader, enum fm_tally_level level) {
    for (size_t i = 0; i < FM_READER_KINDS; i++) {
        reader->told[i][level] = (struct fm_tally){.len = 0};
    }
}

void fm_reader_begin_part(struct fm_remote_reader *reader) {
    reset(reader, FM_TALLY_PART);
}

void fm_reader_begin_item(struct fm_remote_reader *reader) {
    reset(reader, FM_TALLY_PART);
    reset(reader, FM_TALLY_ITEM);
}

void fm_reader_tally(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, const char *text, size_t len) {
    for (size_t i = 0; i < FM_TALLY_LEVELS; i++) {
        struct fm_tally *tally = &reader->told[kind][i];
        tally->sum = fm_crc32(tally->sum, text, len);
        tally->len += len;
    }
}

bool fm_reader_emit_rest(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, enum fm_tally_level level,
                         const char *text, size_t len) {
    const struct fm_tally told = reader->told[kind][level];
    if (told.len > len || fm_crc32(0, text, told.len) != told.sum) {
        return false;
    }
    if (len > told.len) {
        fm_reader_emit(reader, kind, text + told.len, len - told.len);
    }
    return true;
}

/* ---- texts in several forms ---- */

void fm_said_init(struct fm_said *said) {
    for (size_t i = 0; i < FM_READER_KINDS; i++) {
        fm_buf_init(&said->texts[i], FM_SSE_EVENT_MAX);
    }
}

void fm_said_free(struct fm_said *said) {
    for (size_t i = 0; i < FM_READER_KINDS; i++) {
        fm_buf_free(&said->texts[i]);
    }
}

static void say_string(struct fm_remote_reader *reader, struct json_object *value, enum fm_remote_part_kind kind,
                       struct fm_said *said) {
    size_t len = (size_t)json_object_get_string_len(value);
    if (!said) {
        fm_reader_emit(reader, kind, json_object_get_string(value), len);
        return;
    }
    fm_buf_append(&said->texts[kind], json_object_get_string(value), len);
    if (said->texts[kind].failed) {
        fm_reader_fail(reader, "a text of more than 16 MiB, or out of memory");
    }
}

/* Reads a part by its type; a part without a type is text. */
static void say_part(struct fm_remote_reader *reader, struct json_object *part, enum fm_remote_part_kind kind,
                     struct fm_said *said) {
    static const struct {
        const char *type;
        const char *member;
        enum fm_remote_part_kind kind;
    } types[] = {
        {"text", "text", FM_REMOTE_TEXT},
        {"output_text", "text", FM_REMOTE_TEXT},
        {"refusal", "refusal", FM_REMOTE_REFUSAL},
        {"thinking", "thinking", FM_REMOTE_REASONING}, /* Mistral: a list of texts */
        {"reasoning_text", "text", FM_REMOTE_REASONING},
        {"summary_text", "text", FM_REMOTE_REASONING},
    };
    const char *type = fm_reader_string(part, "type");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct json_object *text = fm_reader_member(part, types[i].member);
        if (text && strcmp(types[i].type, *type ? type : "text") == 0) {
            bool inner = kind == FM_REMOTE_REASONING && types[i].kind == FM_REMOTE_TEXT; /* a text of the reasoning */
            fm_reader_say(reader, text, inner ? kind : types[i].kind, said);
            return;
        }
    }
    fm_reader_fail(reader, "a part of the answer is of a type that is not known, or has no text");
}

void fm_reader_say(struct fm_remote_reader *reader, struct json_object *value, enum fm_remote_part_kind kind,
                   struct fm_said *said) {
    if (json_object_is_type(value, json_type_string)) {
        say_string(reader, value, kind, said);
    } else if (json_object_is_type(value, json_type_object)) {
        say_part(reader, value, kind, said);
    } else if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++) {
            fm_reader_say(reader, json_object_array_get_idx(value, i), kind, said);
        }
    } else if (value) {
        fm_reader_fail(reader, "a text is neither a string nor a list of parts");
    }
}
