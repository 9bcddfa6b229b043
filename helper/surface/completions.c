/*
 * The legacy completions API: the object and its streaming chunks, which are alike. As in chat, an answer that was
 * cancelled or failed has no finish chunk.
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

/* Writes from after the text to the end of `choices`. */
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

/* `reason` NULL: it is not the last one. */
static void end_chunk(const struct fm_answer *answer, const char *reason, bool first, struct fm_json_writer *w) {
    end_choice(reason, w);
    if (answer->request.include_usage) {
        fm_json_key_null(w, "usage");
    }
    fm_answer_write_chunk_report(answer, first, reason != NULL, w);
    fm_json_object_end(w);
}

static bool is_first(const struct fm_answer *answer) {
    return answer->cursor->pieces == 0;
}

static void write_text(struct fm_answer *answer, struct fm_json_writer *w) {
    bool first = is_first(answer); /* asked before the piece is taken */
    begin_choice(answer, w);
    fm_event_begin_flow(answer);
    fm_event_write_piece(answer, w);
    end_chunk(answer, NULL, first, w);
}

static void write_finish(struct fm_answer *answer, struct fm_json_writer *w) {
    begin_choice(answer, w);
    fm_json_str(w, "");
    end_chunk(answer, fm_chat_finish_reason(answer), is_first(answer), w);
}

static void write_usage_chunk(struct fm_answer *answer, struct fm_json_writer *w) {
    fm_chat_write_usage_chunk(answer, "text_completion", w);
}

static const struct fm_event_row events[] = {
    {fm_event_flow_state, write_text, 0},
    {fm_chat_finish_state, write_finish, 1}, /* only a finished answer gets past the text */
    {fm_chat_usage_state, write_usage_chunk, 1},
};

const struct fm_surface fm_surface_completions = {
    .event_method = "completions.chunk",
    .event_member = "chunk",
    .result_member = "completion",
    .id_prefix = "cmpl-",
    .item_prefix = NULL,
    .parse = fm_completions_parse,
    .events = events,
    .event_count = sizeof events / sizeof events[0],
    .write = completions_write,
};
