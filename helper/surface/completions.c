/*
 * The legacy completions API: the object and its streaming chunks, which have the same form. As in chat, an answer that
 * was cancelled or failed has no finish chunk.
 */
#include "surface/answer.h"
#include "surface/request.h"
#include "surface/usage.h"

/* Begins an object or chunk, up to the text of its one choice. */
static void begin_choice(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_chat_write_head(answer, "text_completion", w);
    fm_json_key(w, "choices");
    fm_json_array_begin(w);
    fm_json_object_begin(w);
    fm_json_key_int(w, "index", 0);
    fm_json_key(w, "text");
}

/* Writes the members after the text, up to the end of `choices`. */
static void end_choice(const char *reason, struct fm_json_writer *w) {
    fm_json_key_null(w, "logprobs");
    fm_json_key_str(w, "finish_reason", reason);
    fm_json_object_end(w);
    fm_json_array_end(w);
}

static void completions_write(const struct fm_answer *answer, struct fm_json_writer *w) {
    begin_choice(answer, w);
    fm_answer_write_kind(answer, FM_PART_TEXT, w);
    end_choice(fm_chat_finish_reason(answer), w);
    fm_chat_write_usage(answer, w);
    fm_answer_write_report(answer, FM_MOMENT_NOW, w);
    fm_json_object_end(w);
}

/* ---- the chunks ---- */

/* Ends a chunk. `reason` NULL: the chunk is not the last one. */
static void end_chunk(const struct fm_answer *answer, const char *reason, bool first, struct fm_json_writer *w) {
    end_choice(reason, w);
    if (answer->request.include_usage) {
        fm_json_key_null(w, "usage");
    }
    fm_answer_write_chunk_report(answer, first, reason != NULL, w);
    fm_json_object_end(w);
}

static bool is_first(const struct fm_cursor *cursor) {
    return cursor->pieces == 0;
}

static void write_text(struct fm_answer *answer, struct fm_cursor *cursor, struct fm_json_writer *w) {
    bool first = is_first(cursor); /* checked before the piece is written */
    begin_choice(answer, w);
    fm_event_begin_next(answer, cursor);
    fm_event_write_piece(answer, cursor, w);
    end_chunk(answer, NULL, first, w);
}

static void write_finish(const struct fm_answer *answer, const struct fm_cursor *cursor, struct fm_json_writer *w) {
    begin_choice(answer, w);
    fm_json_str(w, "");
    end_chunk(answer, fm_chat_finish_reason(answer), is_first(cursor), w);
}

static void completions_write_event(struct fm_answer *answer, struct fm_cursor *cursor, int event,
                                    struct fm_json_writer *w) {
    switch (event) {
    case FM_EVENT_DELTA: write_text(answer, cursor, w); break;
    case FM_CHAT_FINISH: write_finish(answer, cursor, w); break;
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
