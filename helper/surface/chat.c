/*
 * The chat completions API: the completion object and its streaming chunks. A cancelled or failed answer has no finish
 * chunk, and its completion has finish_reason null: no reason that OpenAI has would be true.
 */
#include "surface/answer.h"
#include "surface/request.h"

static const char *finish_reason(const struct fm_answer *answer) {
    static const char *const names[] = {
        [FM_FINISH_STOP] = "stop",    [FM_FINISH_LENGTH] = "length", [FM_FINISH_CONTENT_FILTER] = "content_filter",
        [FM_FINISH_CANCELLED] = NULL, [FM_FINISH_FAILED] = NULL,
    };
    return answer->finished ? names[answer->finish] : NULL;
}

/* ---- the object ---- */

static void write_usage(const struct fm_usage *usage, struct fm_json_writer *w) {
    fm_json_key(w, "usage");
    fm_json_object_begin(w);
    fm_json_key_int(w, "prompt_tokens", usage->input);
    fm_json_key_int(w, "completion_tokens", usage->output);
    fm_json_key_int(w, "total_tokens", usage->input + usage->output);
    fm_json_key(w, "prompt_tokens_details");
    fm_json_object_begin(w);
    fm_json_key_int(w, "cached_tokens", usage->cached);
    fm_json_object_end(w);
    fm_json_key(w, "completion_tokens_details");
    fm_json_object_begin(w);
    fm_json_key_int(w, "reasoning_tokens", usage->reasoning);
    fm_json_object_end(w);
    fm_json_object_end(w);
}

static void write_head(const struct fm_answer *answer, const char *object, struct fm_json_writer *w) {
    fm_json_key_str(w, "id", answer->id);
    fm_json_key_str(w, "object", object);
    fm_json_key_int(w, "created", answer->created_at);
    fm_json_key_str(w, "model", answer->model);
}

static void chat_write(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    write_head(answer, "chat.completion", w);
    fm_json_key(w, "choices");
    fm_json_array_begin(w);
    fm_json_object_begin(w);
    fm_json_key_int(w, "index", 0);
    fm_json_key(w, "message");
    fm_json_object_begin(w);
    fm_json_key_str(w, "role", "assistant");
    fm_json_key(w, "content");
    fm_answer_write_text(answer, w);
    fm_json_key_null(w, "refusal");
    fm_json_key(w, "annotations");
    fm_json_raw(w, "[]", 2);
    fm_json_object_end(w);
    fm_json_key_null(w, "logprobs");
    fm_json_key_str(w, "finish_reason", finish_reason(answer));
    fm_json_object_end(w);
    fm_json_array_end(w);
    write_usage(&answer->usage, w);
    fm_json_key_str(w, "service_tier", "default");
    fm_answer_write_report(answer, false, w);
    fm_json_object_end(w);
}

/* ---- the chunks ---- */

/* Up to the members of the one choice's delta. */
static void begin_delta(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    write_head(answer, "chat.completion.chunk", w);
    fm_json_key(w, "choices");
    fm_json_array_begin(w);
    fm_json_object_begin(w);
    fm_json_key_int(w, "index", 0);
    fm_json_key(w, "delta");
    fm_json_object_begin(w);
}

static void end_delta(const struct fm_answer *answer, const char *reason, struct fm_json_writer *w) {
    fm_json_object_end(w);
    fm_json_key_null(w, "logprobs");
    fm_json_key_str(w, "finish_reason", reason);
    fm_json_object_end(w);
    fm_json_array_end(w);
    if (answer->request.include_usage) {
        fm_json_key_null(w, "usage");
    }
    fm_json_object_end(w);
}

static void write_role(struct fm_answer *answer, struct fm_json_writer *w) {
    begin_delta(answer, w);
    fm_json_key_str(w, "role", "assistant");
    fm_json_key_null(w, "content");
    end_delta(answer, NULL, w);
}

static void write_content(struct fm_answer *answer, struct fm_json_writer *w) {
    begin_delta(answer, w);
    fm_json_key(w, "content");
    fm_event_write_text(answer, w);
    end_delta(answer, NULL, w);
}

static void write_finish(struct fm_answer *answer, struct fm_json_writer *w) {
    begin_delta(answer, w);
    end_delta(answer, finish_reason(answer), w);
}

static void write_usage_chunk(struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    write_head(answer, "chat.completion.chunk", w);
    fm_json_key(w, "choices");
    fm_json_raw(w, "[]", 2);
    write_usage(&answer->usage, w);
    fm_json_object_end(w);
}

static enum fm_event_state finish_state(const struct fm_answer *answer) {
    return finish_reason(answer) ? FM_EVENT_DUE : FM_EVENT_SKIP;
}

static enum fm_event_state usage_state(const struct fm_answer *answer) {
    return finish_reason(answer) && answer->request.include_usage ? FM_EVENT_DUE : FM_EVENT_SKIP;
}

static const struct fm_event_row events[] = {
    {fm_event_due, write_role, false},
    {fm_event_text_state, write_content, true}, /* what follows is reached by a finished answer alone */
    {finish_state, write_finish, false},
    {usage_state, write_usage_chunk, false},
};

const struct fm_surface fm_surface_chat = {
    .create_method = "chat.completions.create",
    .event_method = "chat.completions.chunk",
    .event_member = "chunk",
    .result_member = "completion",
    .id_prefix = "chatcmpl-",
    .item_prefix = NULL,
    .parse = fm_chat_parse,
    .events = events,
    .event_count = sizeof events / sizeof events[0],
    .write = chat_write,
};
