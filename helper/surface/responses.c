/*
 * The Responses API: the Response object and its streaming events. The output has these items, in this order: one for
 * the reasoning, if there is any, in one of three dialects; one message with one text part, which begins with the first
 * text, or at the end of a completed answer that has no calls; one for each call.
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
    if (answer->finished) {
        return names[answer->finish];
    }
    return answer->request.background && !answer->opened ? "queued" : "in_progress";
}

/* The moment at which a stream begins. */
static enum fm_moment first_moment(const struct fm_answer *answer) {
    return answer->request.background ? FM_MOMENT_QUEUED : FM_MOMENT_BEGUN;
}

static bool completed(const struct fm_answer *answer) {
    return answer->finished && answer->finish == FM_FINISH_STOP;
}

/* An item is complete when another one follows (`followed`). */
static const char *item_status(const struct fm_answer *answer, bool followed) {
    if (followed || completed(answer)) {
        return "completed";
    }
    return answer->finished ? "incomplete" : "in_progress";
}

static bool has_reasoning(const struct fm_answer *answer) {
    return answer->reasoning_len > 0;
}

/* Whether the message item exists: from the first text on, or at the end of a completed answer without calls. */
static bool has_message(const struct fm_answer *answer) {
    return fm_answer_text_len(answer) > 0 || (completed(answer) && answer->call_count == 0);
}

/* A dialect of reasoning: where its only part lies, and the names of its events. */
struct reasoning_words {
    const char *member;
    const char *part_type;
    const char *index; /* the name of the part's index in events */
    const char *part_added;
    const char *delta;
    const char *text_done;
    const char *part_done;
};

static const struct reasoning_words *words_of(const struct fm_answer *answer) {
    static const struct reasoning_words words[] = {
        [FM_REASONING_SUMMARY] = {"summary", "summary_text", "summary_index", "response.reasoning_summary_part.added",
                                  "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done",
                                  "response.reasoning_summary_part.done"},
        [FM_REASONING_TEXT] = {"content", "reasoning_text", "content_index", "response.content_part.added",
                               "response.reasoning_text.delta", "response.reasoning_text.done",
                               "response.content_part.done"},
        [FM_REASONING_OPEN] = {"content", "reasoning_text", "content_index", "response.content_part.added",
                               "response.reasoning.delta", "response.reasoning.done", "response.content_part.done"},
    };
    return &words[answer->request.reasoning_dialect];
}

/* The reasoning's part; without `with_text`, as when it begins. */
static void write_reasoning_part(const struct fm_answer *answer, bool with_text, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", words_of(answer)->part_type);
    fm_json_key(w, "text");
    if (with_text) {
        fm_answer_write_reasoning(answer, w);
    } else {
        fm_json_str(w, "");
    }
    fm_json_object_end(w);
}

/* The reasoning item; without `with_part`, as when it begins. `summary` is always there. */
static void write_reasoning(const struct fm_answer *answer, bool with_part, struct fm_json_writer *w) {
    bool followed = fm_answer_text_len(answer) > 0 || answer->call_count > 0;
    fm_json_object_begin(w);
    fm_json_key_str(w, "id", answer->reasoning_id);
    fm_json_key_str(w, "type", "reasoning");
    fm_json_key_str(w, "status", with_part ? item_status(answer, followed) : "in_progress");
    if (answer->request.reasoning_dialect != FM_REASONING_SUMMARY) {
        fm_json_key(w, "summary");
        fm_json_raw(w, "[]", 2);
    }
    fm_json_key(w, words_of(answer)->member);
    fm_json_array_begin(w);
    if (with_part) {
        write_reasoning_part(answer, true, w);
    }
    fm_json_array_end(w);
    fm_json_object_end(w);
}

/* The text part; without `with_text`, as when it begins. */
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
    if (with_text) {
        fm_answer_write_logprobs(answer, w);
    } else {
        fm_json_raw(w, "[]", 2);
    }
    fm_json_object_end(w);
}

/* The message item; without `with_part`, as when it begins, even if that is at the end of the answer. */
static void write_message(const struct fm_answer *answer, bool with_part, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "id", answer->item_id);
    fm_json_key_str(w, "type", "message");
    fm_json_key_str(w, "status", with_part ? item_status(answer, answer->call_count > 0) : "in_progress");
    fm_json_key_str(w, "role", "assistant");
    fm_json_key(w, "content");
    fm_json_array_begin(w);
    if (with_part) {
        write_part(answer, true, w);
    }
    fm_json_array_end(w);
    fm_json_object_end(w);
}

/* The item of the call `index`; without `with_arguments`, as when it begins. */
static void write_call(const struct fm_answer *answer, size_t index, bool with_arguments, struct fm_json_writer *w) {
    const struct fm_call *call = &answer->calls[index];
    fm_json_object_begin(w);
    fm_json_key_str(w, "id", call->item_id);
    fm_json_key_str(w, "type", "function_call");
    fm_json_key_str(w, "status", with_arguments ? item_status(answer, index + 1 < answer->call_count) : "in_progress");
    fm_json_key_str(w, "call_id", call->call_id);
    fm_json_key_str(w, "name", call->name);
    fm_json_key(w, "arguments");
    if (with_arguments) {
        fm_answer_write_arguments(answer, index, w);
    } else {
        fm_json_str(w, "");
    }
    fm_json_object_end(w);
}

static void write_output(const struct fm_answer *answer, bool now, struct fm_json_writer *w) {
    fm_json_key(w, "output");
    fm_json_array_begin(w);
    if (now && has_reasoning(answer)) {
        write_reasoning(answer, true, w);
    }
    if (now && has_message(answer)) {
        write_message(answer, true, w);
    }
    for (size_t i = 0; now && i < answer->call_count; i++) {
        write_call(answer, i, true, w);
    }
    fm_json_array_end(w);
}

void fm_responses_write_usage(const struct fm_usage *usage, struct fm_json_writer *w) {
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

static void write_response(const struct fm_answer *answer, enum fm_moment moment, struct fm_json_writer *w) {
    const char *const statuses[] = {"queued", "in_progress", status_of(answer)};
    bool now = moment == FM_MOMENT_NOW;
    fm_json_object_begin(w);
    fm_json_key_str(w, "id", answer->id);
    fm_json_key_str(w, "object", "response");
    fm_json_key_int(w, "created_at", answer->created_at);
    fm_json_key_str(w, "status", statuses[moment]);
    write_outcome(answer, now && answer->finished, w);
    fm_json_key_str(w, "model", answer->model);
    write_output(answer, now, w);
    if (now && answer->finished) {
        fm_responses_write_usage(&answer->usage, w);
    } else {
        fm_json_key_null(w, "usage");
    }
    fm_json_key_bool(w, "store", answer->request.store && !answer->lost);
    /* The echo is members, not a value, but it needs the same commas. */
    fm_json_raw(w, answer->request.echo.data, answer->request.echo.len);
    fm_answer_write_report(answer, moment, w);
    fm_json_object_end(w);
}

static void responses_write(const struct fm_answer *answer, struct fm_json_writer *w) {
    write_response(answer, FM_MOMENT_NOW, w);
}

/* ---- the events ---- */

static void begin(struct fm_answer *answer, const char *type, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", type);
    fm_json_key_int(w, "sequence_number", answer->cursor->sequence++);
}

static void write_response_event(struct fm_answer *answer, const char *type, enum fm_moment moment,
                                 struct fm_json_writer *w) {
    begin(answer, type, w);
    fm_json_key(w, "response");
    write_response(answer, moment, w);
    fm_json_object_end(w);
}

/* Events about the reasoning, which is always the first item. */

static void write_reasoning_event(struct fm_answer *answer, const char *type, bool with_part,
                                  struct fm_json_writer *w) {
    begin(answer, type, w);
    fm_json_key_int(w, "output_index", 0);
    fm_json_key(w, "item");
    write_reasoning(answer, with_part, w);
    fm_json_object_end(w);
}

static void begin_reasoning_part(struct fm_answer *answer, const char *type, struct fm_json_writer *w) {
    begin(answer, type, w);
    fm_json_key_str(w, "item_id", answer->reasoning_id);
    fm_json_key_int(w, "output_index", 0);
    fm_json_key_int(w, words_of(answer)->index, 0);
}

static void write_reasoning_part_event(struct fm_answer *answer, const char *type, bool with_text,
                                       struct fm_json_writer *w) {
    begin_reasoning_part(answer, type, w);
    fm_json_key(w, "part");
    write_reasoning_part(answer, with_text, w);
    fm_json_object_end(w);
}

static void write_reasoning_added(struct fm_answer *answer, struct fm_json_writer *w) {
    write_reasoning_event(answer, "response.output_item.added", false, w);
}

static void write_reasoning_part_added(struct fm_answer *answer, struct fm_json_writer *w) {
    write_reasoning_part_event(answer, words_of(answer)->part_added, false, w);
}

static void write_reasoning_delta(struct fm_answer *answer, struct fm_json_writer *w) {
    begin_reasoning_part(answer, words_of(answer)->delta, w);
    fm_json_key(w, "delta");
    fm_event_write_reasoning_piece(answer, w);
    fm_json_object_end(w);
}

static void write_reasoning_text_done(struct fm_answer *answer, struct fm_json_writer *w) {
    begin_reasoning_part(answer, words_of(answer)->text_done, w);
    fm_json_key(w, "text");
    fm_answer_write_reasoning(answer, w);
    fm_json_object_end(w);
}

static void write_reasoning_part_done(struct fm_answer *answer, struct fm_json_writer *w) {
    write_reasoning_part_event(answer, words_of(answer)->part_done, true, w);
}

static void write_reasoning_done(struct fm_answer *answer, struct fm_json_writer *w) {
    write_reasoning_event(answer, "response.output_item.done", true, w);
}

static void write_message_event(struct fm_answer *answer, const char *type, bool with_part, struct fm_json_writer *w) {
    begin(answer, type, w);
    fm_json_key_int(w, "output_index", has_reasoning(answer));
    fm_json_key(w, "item");
    write_message(answer, with_part, w);
    fm_json_object_end(w);
}

/* An event about the text part. */
static void begin_part(struct fm_answer *answer, const char *type, struct fm_json_writer *w) {
    begin(answer, type, w);
    fm_json_key_str(w, "item_id", answer->item_id);
    fm_json_key_int(w, "output_index", has_reasoning(answer));
    fm_json_key_int(w, "content_index", 0);
}

static void write_part_event(struct fm_answer *answer, const char *type, bool with_text, struct fm_json_writer *w) {
    begin_part(answer, type, w);
    fm_json_key(w, "part");
    write_part(answer, with_text, w);
    fm_json_object_end(w);
}

static void write_created(struct fm_answer *answer, struct fm_json_writer *w) {
    write_response_event(answer, "response.created", first_moment(answer), w);
}

static void write_queued(struct fm_answer *answer, struct fm_json_writer *w) {
    write_response_event(answer, "response.queued", FM_MOMENT_QUEUED, w);
}

static void write_in_progress(struct fm_answer *answer, struct fm_json_writer *w) {
    write_response_event(answer, "response.in_progress", FM_MOMENT_BEGUN, w);
}

static void write_message_added(struct fm_answer *answer, struct fm_json_writer *w) {
    write_message_event(answer, "response.output_item.added", false, w);
}

static void write_part_added(struct fm_answer *answer, struct fm_json_writer *w) {
    write_part_event(answer, "response.content_part.added", false, w);
}

static void write_delta(struct fm_answer *answer, struct fm_json_writer *w) {
    begin_part(answer, "response.output_text.delta", w);
    fm_json_key(w, "delta");
    fm_event_write_piece(answer, w);
    fm_json_key(w, "logprobs");
    fm_event_write_logprobs(answer, w);
    fm_json_object_end(w);
}

static void write_text_done(struct fm_answer *answer, struct fm_json_writer *w) {
    begin_part(answer, "response.output_text.done", w);
    fm_json_key(w, "text");
    fm_answer_write_text(answer, w);
    fm_json_key(w, "logprobs");
    fm_answer_write_logprobs(answer, w);
    fm_json_object_end(w);
}

static void write_part_done(struct fm_answer *answer, struct fm_json_writer *w) {
    write_part_event(answer, "response.content_part.done", true, w);
}

static void write_message_done(struct fm_answer *answer, struct fm_json_writer *w) {
    write_message_event(answer, "response.output_item.done", true, w);
}

/* Events about the open call, the last one that was begun. */

static size_t open_call(const struct fm_answer *answer) {
    return answer->cursor->calls_begun - 1;
}

static int64_t open_call_index(const struct fm_answer *answer) {
    return (int64_t)open_call(answer) + has_reasoning(answer) + has_message(answer);
}

static void write_call_event(struct fm_answer *answer, const char *type, bool with_arguments,
                             struct fm_json_writer *w) {
    begin(answer, type, w);
    fm_json_key_int(w, "output_index", open_call_index(answer));
    fm_json_key(w, "item");
    write_call(answer, open_call(answer), with_arguments, w);
    fm_json_object_end(w);
}

static void begin_arguments(struct fm_answer *answer, const char *type, struct fm_json_writer *w) {
    begin(answer, type, w);
    fm_json_key_str(w, "item_id", answer->calls[open_call(answer)].item_id);
    fm_json_key_int(w, "output_index", open_call_index(answer));
}

static void write_call_added(struct fm_answer *answer, struct fm_json_writer *w) {
    answer->cursor->calls_begun++;
    write_call_event(answer, "response.output_item.added", false, w);
}

static void write_arguments_delta(struct fm_answer *answer, struct fm_json_writer *w) {
    begin_arguments(answer, "response.function_call_arguments.delta", w);
    fm_json_key(w, "delta");
    fm_event_write_piece(answer, w);
    fm_json_object_end(w);
}

static void write_arguments_done(struct fm_answer *answer, struct fm_json_writer *w) {
    begin_arguments(answer, "response.function_call_arguments.done", w);
    fm_json_key_str(w, "name", answer->calls[open_call(answer)].name);
    fm_json_key(w, "arguments");
    fm_answer_write_arguments(answer, open_call(answer), w);
    fm_json_object_end(w);
}

static void write_call_done(struct fm_answer *answer, struct fm_json_writer *w) {
    write_call_event(answer, "response.output_item.done", true, w);
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
    write_response_event(answer, types[answer->finish], FM_MOMENT_NOW, w);
}

static enum fm_event_state queued_state(const struct fm_answer *answer) {
    return answer->request.background ? FM_EVENT_DUE : FM_EVENT_SKIP;
}

/* Only a stream in the background begins before this event. */
static enum fm_event_state in_progress_state(const struct fm_answer *answer) {
    return answer->opened ? FM_EVENT_DUE : answer->finished ? FM_EVENT_SKIP : FM_EVENT_LATER;
}

static enum fm_event_state reasoning_state(const struct fm_answer *answer) {
    return has_reasoning(answer) ? FM_EVENT_DUE : fm_event_reasoning_state(answer);
}

static enum fm_event_state message_state(const struct fm_answer *answer) {
    bool never = answer->finished || answer->call_count > 0;
    return has_message(answer) ? FM_EVENT_DUE : never ? FM_EVENT_SKIP : FM_EVENT_LATER;
}

/* The rows after the arguments' deltas are reached when all of those were sent. */
static enum fm_event_state call_end_state(const struct fm_answer *answer) {
    return answer->cursor->calls_begun > 0 ? FM_EVENT_DUE : FM_EVENT_SKIP;
}

/* Clients expect at least one delta, so a call without arguments also has one. */
static enum fm_event_state first_arguments_state(const struct fm_answer *answer) {
    enum fm_event_state state = fm_event_arguments_state(answer);
    return state == FM_EVENT_SKIP ? call_end_state(answer) : state;
}

/* Some clients notice a failure only by this event. */
static enum fm_event_state error_state(const struct fm_answer *answer) {
    return answer->finish == FM_FINISH_FAILED ? FM_EVENT_DUE : FM_EVENT_SKIP;
}

static const struct fm_event_row events[] = {
    {fm_event_due, write_created, 1},
    {queued_state, write_queued, 1},
    {in_progress_state, write_in_progress, 1},
    /* the reasoning */
    {reasoning_state, write_reasoning_added, 1},
    {reasoning_state, write_reasoning_part_added, 1},
    {fm_event_reasoning_state, write_reasoning_delta, 0},
    {reasoning_state, write_reasoning_text_done, 1},
    {reasoning_state, write_reasoning_part_done, 1},
    {reasoning_state, write_reasoning_done, 1},
    /* the message */
    {message_state, write_message_added, 1},
    {message_state, write_part_added, 1},
    {fm_event_text_state, write_delta, 0},
    {message_state, write_text_done, 1},
    {message_state, write_part_done, 1},
    {message_state, write_message_done, 1},
    /* the open call, then the beginning of the next call, which is the open one from then on */
    {first_arguments_state, write_arguments_delta, 1},
    {fm_event_arguments_state, write_arguments_delta, 0},
    {call_end_state, write_arguments_done, 1},
    {call_end_state, write_call_done, 1},
    {fm_event_call_state, write_call_added, -4},
    /* the end: only a finished answer gets here */
    {error_state, write_error, 1},
    {fm_event_due, write_terminal, 1},
};

const struct fm_surface fm_surface_responses = {
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
