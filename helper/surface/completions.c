/*
 * The legacy completions API: the object and its streaming chunks, which have the same form. As in chat, an answer that
 * was cancelled or failed has no finish chunk.
 */
#include "base/utf8.h"
#include "protocol/json_tree.h"
#include "surface/answer.h"
#include "surface/request.h"
#include "surface/usage.h"

#include <json-c/json.h>
#include <string.h>

/* ---- log probabilities ---- */

/* A legacy list of log probabilities has four arrays in place of an array of objects. */
static void write_tokens(struct json_object *entries, const char *member, struct fm_json_writer *w) {
    fm_json_array_begin(w);
    for (size_t i = 0; i < json_object_array_length(entries); i++) {
        fm_json_value(w, json_object_object_get(json_object_array_get_idx(entries, i), member));
    }
    fm_json_array_end(w);
}

static bool is_same_token(struct json_object *one, struct json_object *other) {
    struct json_object *first = json_object_object_get(one, "token");
    struct json_object *second = json_object_object_get(other, "token");
    int len = json_object_get_string_len(first);
    return len == json_object_get_string_len(second) &&
           memcmp(json_object_get_string(first), json_object_get_string(second), (size_t)len) == 0;
}

static void write_token(struct json_object *entry, struct fm_json_writer *w) {
    struct json_object *token = json_object_object_get(entry, "token");
    fm_json_key_text(w, json_object_get_string(token), (size_t)json_object_get_string_len(token));
    fm_json_value(w, json_object_object_get(entry, "logprob"));
}

/* Writes an object for each token: the token itself, and the most likely tokens there that have another text. */
static void write_top(struct json_object *entries, struct fm_json_writer *w) {
    fm_json_array_begin(w);
    for (size_t i = 0; i < json_object_array_length(entries); i++) {
        struct json_object *entry = json_object_array_get_idx(entries, i);
        struct json_object *top = json_object_object_get(entry, "top_logprobs");
        fm_json_object_begin(w);
        write_token(entry, w);
        for (size_t j = 0; j < json_object_array_length(top); j++) {
            struct json_object *other = json_object_array_get_idx(top, j);
            bool there = is_same_token(entry, other);
            for (size_t k = 0; k < j && !there; k++) {
                there = is_same_token(json_object_array_get_idx(top, k), other);
            }
            if (!there) {
                write_token(other, w);
            }
        }
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}

/*
 * Writes where each token begins in the text of its choice, in characters; `offset`: where the first one does. A token
 * may end within a character. A byte that belongs to no character is one in the text.
 */
static void write_offsets(struct json_object *entries, size_t offset, struct fm_buf *text, struct fm_json_writer *w) {
    size_t start = 0; /* of the token, in bytes */
    size_t next = 0;  /* the next character, in bytes */
    fm_buf_reset(text);
    for (size_t i = 0; i < json_object_array_length(entries); i++) {
        struct json_object *bytes = json_object_object_get(json_object_array_get_idx(entries, i), "bytes");
        for (size_t j = 0; j < json_object_array_length(bytes); j++) {
            fm_buf_append_char(text, (char)json_object_get_int(json_object_array_get_idx(bytes, j)));
        }
    }
    w->buf->failed |= text->failed;
    fm_json_array_begin(w);
    for (size_t i = 0; i < json_object_array_length(entries) && !text->failed; i++) {
        struct json_object *bytes = json_object_object_get(json_object_array_get_idx(entries, i), "bytes");
        for (; next < start; offset++) {
            int len = fm_utf8_sequence(text->data + next, text->len - next);
            next += len > 0 ? (size_t)len : 1;
        }
        fm_json_int(w, (int64_t)offset);
        start += json_object_array_length(bytes);
    }
    fm_json_array_end(w);
}

/*
 * Writes the member `logprobs` of a choice or chunk: null if the request asks for none. `cursor` NULL: those of the
 * whole text; otherwise those of the piece that was written last, which begins at the byte `start` of the text.
 */
static void write_logprobs(const struct fm_answer *answer, const struct fm_cursor *cursor, size_t start,
                           struct fm_json_writer *w) {
    struct fm_buf list;
    struct fm_buf scratch;
    struct json_object *entries = NULL;
    fm_json_key(w, "logprobs");
    if (!answer->request.logprobs) {
        fm_json_null(w);
        return;
    }
    fm_buf_init(&list, answer->logprobs.max + 2);
    fm_buf_init(&scratch, answer->logprobs.max);
    struct fm_json_writer inner = fm_json_writer_on(&list);
    fm_answer_write_logprobs(answer, cursor, &inner);
    if (!list.failed && fm_json_tree(list.data, list.len, &scratch, &entries)) {
        fm_json_object_begin(w);
        fm_json_key(w, "tokens");
        write_tokens(entries, "token", w);
        fm_json_key(w, "token_logprobs");
        write_tokens(entries, "logprob", w);
        fm_json_key(w, "top_logprobs");
        write_top(entries, w);
        fm_json_key(w, "text_offset");
        write_offsets(entries, start > 0 ? fm_utf8_characters(answer->output.data, start) : 0, &scratch, w);
        fm_json_object_end(w);
    } else {
        w->buf->failed = true;
    }
    json_object_put(entries);
    fm_buf_free(&scratch);
    fm_buf_free(&list);
}

/* ---- the object ---- */

/* Begins an object or chunk, up to its choices. */
static void begin_choices(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_chat_write_head(answer, "text_completion", w);
    fm_json_key(w, "choices");
    fm_json_array_begin(w);
}

/* Begins a choice, up to its text. */
static void begin_choice(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_int(w, "index", (int64_t)answer->choice);
    fm_json_key(w, "text");
}

/* Ends a choice after its log probabilities. */
static void end_choice(const char *reason, struct fm_json_writer *w) {
    fm_json_key_str(w, "finish_reason", reason);
    fm_json_object_end(w);
}

static void write_choice(const struct fm_answer *answer, struct fm_json_writer *w) {
    begin_choice(answer, w);
    fm_answer_write_kind(answer, FM_PART_TEXT, w);
    write_logprobs(answer, NULL, 0, w);
    end_choice(fm_chat_finish_reason(answer), w);
}

static void completions_write(const struct fm_answer *answer, struct fm_json_writer *w) {
    begin_choices(answer, w);
    for (size_t i = 0; i < answer->choice; i++) {
        write_choice(answer->earlier[i], w);
    }
    write_choice(answer, w);
    fm_json_array_end(w);
    fm_chat_write_usage(answer, w);
    fm_answer_write_report(answer, FM_MOMENT_NOW, w);
    fm_json_object_end(w);
}

/* ---- the chunks ---- */

/* Ends a chunk. `reason` NULL: the chunk is not the last one. */
static void end_chunk(const struct fm_answer *answer, const char *reason, bool first, struct fm_json_writer *w) {
    end_choice(reason, w);
    fm_json_array_end(w);
    if (answer->request.include_usage) {
        fm_json_key_null(w, "usage");
    }
    fm_answer_write_chunk_report(answer, first, reason != NULL, w);
    fm_json_object_end(w);
}

/* Whether the next chunk is the stream's first one. */
static bool is_first(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    return answer->choice == 0 && cursor->pieces == 0;
}

static void write_text(struct fm_answer *answer, struct fm_cursor *cursor, struct fm_json_writer *w) {
    bool first = is_first(answer, cursor); /* checked before the piece is written */
    begin_choices(answer, w);
    begin_choice(answer, w);
    fm_event_begin_next(answer, cursor);
    size_t start = cursor->sent;
    fm_event_write_piece(answer, cursor, w);
    write_logprobs(answer, cursor, start, w);
    end_chunk(answer, NULL, first, w);
}

static void write_finish(const struct fm_answer *answer, const struct fm_cursor *cursor, struct fm_json_writer *w) {
    begin_choices(answer, w);
    begin_choice(answer, w);
    fm_json_str(w, "");
    fm_json_key_null(w, "logprobs");
    end_chunk(answer, fm_chat_finish_reason(answer), is_first(answer, cursor), w);
}

static void completions_write_event(struct fm_answer *answer, struct fm_cursor *cursor, int event,
                                    struct fm_json_writer *w) {
    switch (event) {
    case FM_EVENT_DELTA: write_text(answer, cursor, w); break;
    case FM_CHAT_FINISH: write_finish(answer, cursor, w); break;
    case FM_EVENT_PROGRESS: fm_chat_write_progress_chunk(answer, "text_completion", w); break;
    default: fm_chat_write_usage_chunk(answer, "text_completion", w); break;
    }
}

const struct fm_surface fm_surface_completions = {
    .event_method = "completions.chunk",
    .event_member = "chunk",
    .result_member = "completion",
    .id_prefix = "cmpl-",
    .item_prefix = NULL,
    .parse = fm_completions_parse,
    .next = fm_chat_next,
    .write_event = completions_write_event,
    .write = completions_write,
};
