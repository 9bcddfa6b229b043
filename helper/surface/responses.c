/*
 * The Responses API: the Response object and its streaming events. An answer has one output item, a message with one
 * text part; it begins with the first text, or at the end of a completed answer without any.
 */
#include "surface/answer.h"
#include "surface/request.h"

/* ---- the object ---- */

static const char *status_of(const struct fm_answer *answer) {
    static const char *const names[] = {
        [FM_FINISH_STOP] = "completed",
        [FM_FINISH_LENGTH] = "incomplete",
        [FM_FINISH_CONTENT_FILTER] = "incomplete",
        [FM_FINISH_CANCELLED] = "cancelled",
        [FM_FINISH_FAILED] = "failed",
    };
    return answer->finished ? names[answer->finish] : "in_progress";
}

static const char *item_status_of(const struct fm_answer *answer) {
    return !answer->finished ? "in_progress" : answer->finish == FM_FINISH_STOP ? "completed" : "incomplete";
}

static bool completed(const struct fm_answer *answer) {
    return answer->finished && answer->finish == FM_FINISH_STOP;
}

/* The message item is there: from the first text on, or at the end of a completed answer without any. */
static bool has_item(const struct fm_answer *answer) {
    return answer->text.len > 0 || completed(answer);
}

/* The text part; without `with_text`, as it is when it begins. */
static void write_part(const struct fm_answer *answer, bool with_text, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "output_text");
    fm_json_key(w, "text");
    if (with_text) {
        fm_answer_write_text(answer, w);
    } else {
        fm_json_str(w, "");
    }
    fm_json_key(w, "annotations");
    fm_json_raw(w, "[]", 2);
    fm_json_key(w, "logprobs");
    fm_json_raw(w, "[]", 2);
    fm_json_object_end(w);
}

/* The message item; without `with_part`, as it is when it begins, even where that is at the end of the answer. */
static void write_item(const struct fm_answer *answer, bool with_part, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "id", answer->item_id);
    fm_json_key_str(w, "type", "message");
    fm_json_key_str(w, "status", with_part ? item_status_of(answer) : "in_progress");
    fm_json_key_str(w, "role", "assistant");
    fm_json_key(w, "content");
    fm_json_array_begin(w);
    if (with_part) {
        write_part(answer, true, w);
    }
    fm_json_array_end(w);
    fm_json_object_end(w);
}

static void write_usage(const struct fm_usage *usage, struct fm_json_writer *w) {
    fm_json_key(w, "usage");
    fm_json_object_begin(w);
    fm_json_key_int(w, "input_tokens", usage->input);
    fm_json_key(w, "input_tokens_details");
    fm_json_object_begin(w);
    fm_json_key_int(w, "cached_tokens", usage->cached);
    fm_json_key_int(w, "cache_write_tokens", 0);
    fm_json_object_end(w);
    fm_json_key_int(w, "output_tokens", usage->output);
    fm_json_key(w, "output_tokens_details");
    fm_json_object_begin(w);
    fm_json_key_int(w, "reasoning_tokens", usage->reasoning);
    fm_json_object_end(w);
    fm_json_key_int(w, "total_tokens", usage->input + usage->output);
    fm_json_object_end(w);
}

static void write_incomplete_details(const char *reason, struct fm_json_writer *w) {
    fm_json_key(w, "incomplete_details");
    if (!reason) {
        fm_json_null(w);
        return;
    }
    fm_json_object_begin(w);
    fm_json_key_str(w, "reason", reason);
    fm_json_object_end(w);
}

static void write_outcome(const struct fm_answer *answer, bool ended, struct fm_json_writer *w) {
    static const char *const reasons[] = {
        [FM_FINISH_STOP] = NULL,
        [FM_FINISH_LENGTH] = "max_output_tokens",
        [FM_FINISH_CONTENT_FILTER] = "content_filter",
        [FM_FINISH_CANCELLED] = NULL,
        [FM_FINISH_FAILED] = NULL,
    };
    fm_json_key(w, "completed_at");
    if (ended && answer->finish == FM_FINISH_STOP) {
        fm_json_int(w, answer->completed_at);
    } else {
        fm_json_null(w);
    }
    fm_json_key(w, "error");
    if (ended && answer->finish == FM_FINISH_FAILED) {
        fm_openai_error_write(&answer->error, w);
    } else {
        fm_json_null(w);
    }
    write_incomplete_details(ended ? reasons[answer->finish] : NULL, w);
}

/* `begun`: as the response was when it began, however far it is by now. */
static void write_response(const struct fm_answer *answer, bool begun, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "id", answer->id);
    fm_json_key_str(w, "object", "response");
    fm_json_key_int(w, "created_at", answer->created_at);
    fm_json_key_str(w, "status", begun ? "in_progress" : status_of(answer));
    write_outcome(answer, !begun && answer->finished, w);
    fm_json_key_str(w, "model", answer->model);
    fm_json_key(w, "output");
    fm_json_array_begin(w);
    if (!begun && has_item(answer)) {
        write_item(answer, true, w);
    }
    fm_json_array_end(w);
    if (!begun && answer->finished) {
        write_usage(&answer->usage, w);
    } else {
        fm_json_key_null(w, "usage");
    }
    /* Members, not a value: the commas are the same. */
    fm_json_raw(w, answer->request.echo.data, answer->request.echo.len);
    fm_answer_write_report(answer, begun, w);
    fm_json_object_end(w);
}

static void responses_write(const struct fm_answer *answer, struct fm_json_writer *w) {
    write_response(answer, false, w);
}

/* ---- the events ---- */

static void begin(struct fm_answer *answer, const char *type, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", type);
    fm_json_key_int(w, "sequence_number", answer->sequence++);
}

static void write_response_event(struct fm_answer *answer, const char *type, bool begun, struct fm_json_writer *w) {
    begin(answer, type, w);
    fm_json_key(w, "response");
    write_response(answer, begun, w);
    fm_json_object_end(w);
}

static void write_item_event(struct fm_answer *answer, const char *type, bool with_part, struct fm_json_writer *w) {
    begin(answer, type, w);
    fm_json_key_int(w, "output_index", 0);
    fm_json_key(w, "item");
    write_item(answer, with_part, w);
    fm_json_object_end(w);
}

/* An event about the text part. */
static void begin_part(struct fm_answer *answer, const char *type, struct fm_json_writer *w) {
    begin(answer, type, w);
    fm_json_key_str(w, "item_id", answer->item_id);
    fm_json_key_int(w, "output_index", 0);
    fm_json_key_int(w, "content_index", 0);
}

static void write_part_event(struct fm_answer *answer, const char *type, bool with_text, struct fm_json_writer *w) {
    begin_part(answer, type, w);
    fm_json_key(w, "part");
    write_part(answer, with_text, w);
    fm_json_object_end(w);
}

static void end_text(struct fm_json_writer *w) {
    fm_json_key(w, "logprobs");
    fm_json_raw(w, "[]", 2);
    fm_json_object_end(w);
}

static void write_created(struct fm_answer *answer, struct fm_json_writer *w) {
    write_response_event(answer, "response.created", true, w);
}

static void write_in_progress(struct fm_answer *answer, struct fm_json_writer *w) {
    write_response_event(answer, "response.in_progress", true, w);
}

static void write_item_added(struct fm_answer *answer, struct fm_json_writer *w) {
    write_item_event(answer, "response.output_item.added", false, w);
}

static void write_part_added(struct fm_answer *answer, struct fm_json_writer *w) {
    write_part_event(answer, "response.content_part.added", false, w);
}

static void write_delta(struct fm_answer *answer, struct fm_json_writer *w) {
    begin_part(answer, "response.output_text.delta", w);
    fm_json_key(w, "delta");
    fm_event_write_text(answer, w);
    end_text(w);
}

static void write_text_done(struct fm_answer *answer, struct fm_json_writer *w) {
    begin_part(answer, "response.output_text.done", w);
    fm_json_key(w, "text");
    fm_answer_write_text(answer, w);
    end_text(w);
}

static void write_part_done(struct fm_answer *answer, struct fm_json_writer *w) {
    write_part_event(answer, "response.content_part.done", true, w);
}

static void write_item_done(struct fm_answer *answer, struct fm_json_writer *w) {
    write_item_event(answer, "response.output_item.done", true, w);
}

static void write_error(struct fm_answer *answer, struct fm_json_writer *w) {
    begin(answer, "error", w);
    fm_openai_error_fields(&answer->error, w);
    fm_json_key(w, "error");
    fm_openai_error_write(&answer->error, w);
    fm_json_object_end(w);
}

static void write_terminal(struct fm_answer *answer, struct fm_json_writer *w) {
    static const char *const types[] = {
        [FM_FINISH_STOP] = "response.completed",
        [FM_FINISH_LENGTH] = "response.incomplete",
        [FM_FINISH_CONTENT_FILTER] = "response.incomplete",
        [FM_FINISH_CANCELLED] = "response.incomplete", /* clients throw at a type that they do not know */
        [FM_FINISH_FAILED] = "response.failed",
    };
    write_response_event(answer, types[answer->finish], false, w);
}

static enum fm_event_state item_state(const struct fm_answer *answer) {
    return has_item(answer) ? FM_EVENT_DUE : answer->finished ? FM_EVENT_SKIP : FM_EVENT_LATER;
}

/* Some clients miss a failure that has no event of its own. */
static enum fm_event_state error_state(const struct fm_answer *answer) {
    return answer->finish == FM_FINISH_FAILED ? FM_EVENT_DUE : FM_EVENT_SKIP;
}

static const struct fm_event_row events[] = {
    {fm_event_due, write_created, false},     {fm_event_due, write_in_progress, false},
    {item_state, write_item_added, false},    {item_state, write_part_added, false},
    {fm_event_text_state, write_delta, true}, /* what follows is reached by a finished answer alone */
    {item_state, write_text_done, false},     {item_state, write_part_done, false},
    {item_state, write_item_done, false},     {error_state, write_error, false},
    {fm_event_due, write_terminal, false},
};

const struct fm_surface fm_surface_responses = {
    .create_method = "responses.create",
    .event_method = "responses.event",
    .event_member = "event",
    .result_member = "response",
    .id_prefix = "resp_",
    .item_prefix = "msg_",
    .parse = fm_responses_parse,
    .events = events,
    .event_count = sizeof events / sizeof events[0],
    .write = responses_write,
};
