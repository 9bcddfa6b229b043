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

static void write_outcome(const struct fm_answer *answer, const struct fm_error *error, struct fm_json_writer *w) {
    fm_json_key(w, "completed_at");
    if (completed(answer)) {
        fm_json_int(w, answer->completed_at);
    } else {
        fm_json_null(w);
    }
    fm_json_key(w, "error");
    if (answer->finished && answer->finish == FM_FINISH_FAILED && error) {
        fm_openai_error_write(error, w);
    } else {
        fm_json_null(w);
    }
    bool length = answer->finished && answer->finish == FM_FINISH_LENGTH;
    bool filter = answer->finished && answer->finish == FM_FINISH_CONTENT_FILTER;
    fm_json_key(w, "incomplete_details");
    if (length || filter) {
        fm_json_object_begin(w);
        fm_json_key_str(w, "reason", length ? "max_output_tokens" : "content_filter");
        fm_json_object_end(w);
    } else {
        fm_json_null(w);
    }
}

static void responses_write(const struct fm_answer *answer, const struct fm_error *error, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "id", answer->id);
    fm_json_key_str(w, "object", "response");
    fm_json_key_int(w, "created_at", answer->created_at);
    fm_json_key_str(w, "status", status_of(answer));
    write_outcome(answer, error, w);
    fm_json_key_str(w, "model", answer->model);
    fm_json_key(w, "output");
    fm_json_array_begin(w);
    if (answer->text.len > 0 || completed(answer)) {
        write_item(answer, true, w);
    }
    fm_json_array_end(w);
    if (answer->finished) {
        write_usage(&answer->usage, w);
    } else {
        fm_json_key_null(w, "usage");
    }
    /* Members, not a value: the commas are the same. */
    fm_json_raw(w, answer->request.echo.data, answer->request.echo.len);
    fm_json_object_end(w);
}

/* ---- the events ---- */

static struct fm_json_writer begin(struct fm_answer *answer, const char *type) {
    struct fm_json_writer w = fm_event_begin(answer);
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "type", type);
    fm_json_key_int(&w, "sequence_number", answer->sequence++);
    return w;
}

static void end(struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_object_end(w);
    fm_event_send(answer);
}

static void send_response(struct fm_answer *answer, const char *type, const struct fm_error *error) {
    struct fm_json_writer w = begin(answer, type);
    fm_json_key(&w, "response");
    responses_write(answer, error, &w);
    end(answer, &w);
}

static void send_item(struct fm_answer *answer, const char *type, bool with_part) {
    struct fm_json_writer w = begin(answer, type);
    fm_json_key_int(&w, "output_index", 0);
    fm_json_key(&w, "item");
    write_item(answer, with_part, &w);
    end(answer, &w);
}

/* An event about the text part. */
static struct fm_json_writer begin_part(struct fm_answer *answer, const char *type) {
    struct fm_json_writer w = begin(answer, type);
    fm_json_key_str(&w, "item_id", answer->item_id);
    fm_json_key_int(&w, "output_index", 0);
    fm_json_key_int(&w, "content_index", 0);
    return w;
}

static void send_part(struct fm_answer *answer, const char *type, bool with_text) {
    struct fm_json_writer w = begin_part(answer, type);
    fm_json_key(&w, "part");
    write_part(answer, with_text, &w);
    end(answer, &w);
}

static void end_text(struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_key(w, "logprobs");
    fm_json_raw(w, "[]", 2);
    end(answer, w);
}

static void send_delta(struct fm_answer *answer, const char *text, size_t len) {
    struct fm_json_writer w = begin_part(answer, "response.output_text.delta");
    fm_json_key(&w, "delta");
    fm_json_string(&w, text, len);
    end_text(answer, &w);
}

static void send_done(struct fm_answer *answer) {
    struct fm_json_writer w = begin_part(answer, "response.output_text.done");
    fm_json_key(&w, "text");
    fm_answer_write_text(answer, &w);
    end_text(answer, &w);
}

static void send_error(struct fm_answer *answer, const struct fm_error *error) {
    struct fm_json_writer w = begin(answer, "error");
    fm_openai_error_fields(error, &w);
    fm_json_key(&w, "error");
    fm_openai_error_write(error, &w);
    end(answer, &w);
}

static void open_item(struct fm_answer *answer) {
    answer->item_opened = true;
    send_item(answer, "response.output_item.added", false);
    send_part(answer, "response.content_part.added", false);
}

static void responses_open(struct fm_answer *answer) {
    send_response(answer, "response.created", NULL);
    send_response(answer, "response.in_progress", NULL);
}

static void responses_delta(struct fm_answer *answer, const char *text, size_t len) {
    if (!answer->item_opened) {
        open_item(answer);
    }
    send_delta(answer, text, len);
}

static void responses_close(struct fm_answer *answer, const struct fm_error *error) {
    static const char *const terminals[] = {
        [FM_FINISH_STOP] = "response.completed",
        [FM_FINISH_LENGTH] = "response.incomplete",
        [FM_FINISH_CONTENT_FILTER] = "response.incomplete",
        [FM_FINISH_CANCELLED] = "response.incomplete", /* clients throw at a type that they do not know */
        [FM_FINISH_FAILED] = "response.failed",
    };
    if (!answer->item_opened && completed(answer)) {
        open_item(answer);
    }
    if (answer->item_opened) {
        send_done(answer);
        send_part(answer, "response.content_part.done", true);
        send_item(answer, "response.output_item.done", true);
    }
    if (answer->finish == FM_FINISH_FAILED) {
        send_error(answer, error); /* some clients miss a failure that has no event of its own */
    }
    send_response(answer, terminals[answer->finish], error);
}

const struct fm_surface fm_surface_responses = {
    .create_method = "responses.create",
    .event_method = "responses.event",
    .event_member = "event",
    .result_member = "response",
    .id_prefix = "resp_",
    .item_prefix = "msg_",
    .parse = fm_responses_parse,
    .open = responses_open,
    .delta = responses_delta,
    .close = responses_close,
    .write = responses_write,
};
