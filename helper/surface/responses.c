/*
 * The Responses API: the Response object and its streaming events. Each part of the answer is an item of the output:
 * reasoning in one of three dialects; a message with one part, a text or a refusal; a call. An item is streamed from
 * its beginning to its end before the next one.
 */
#include "surface/answer.h"
#include "surface/request.h"
#include "surface/usage.h"

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

/* An item is complete when another item follows it. */
static const char *item_status(const struct fm_answer *answer, size_t index) {
    if (index + 1 < answer->part_count || completed(answer)) {
        return "completed";
    }
    return answer->finished ? "incomplete" : "in_progress";
}

/* A dialect of reasoning: the member that holds its only part, and the names of its events. */
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

/* Whether the item has a part that is streamed. A call has none, and neither has reasoning that is only a state. */
static bool has_content(const struct fm_answer *answer, size_t index) {
    const struct fm_output_part *part = &answer->parts[index];
    bool bare = part->kind == FM_PART_REASONING && fm_answer_part_len(answer, index) == 0;
    return part->kind != FM_PART_CALL && !bare;
}

/* Writes the text of the part `index`; "" if the part is written as it begins. */
static void write_text(const struct fm_answer *answer, size_t index, bool whole, struct fm_json_writer *w) {
    if (whole) {
        fm_answer_write_part(answer, index, w);
    } else {
        fm_json_str(w, "");
    }
}

/* Writes an item's part. Not `whole`: the part as it begins. */
static void write_part(const struct fm_answer *answer, size_t index, bool whole, struct fm_json_writer *w) {
    enum fm_output_kind kind = answer->parts[index].kind;
    bool refusal = kind == FM_PART_REFUSAL;
    fm_json_object_begin(w);
    fm_json_key_str(w, "type",
                    refusal                ? "refusal"
                    : kind == FM_PART_TEXT ? "output_text"
                                           : words_of(answer)->part_type);
    fm_json_key(w, refusal ? "refusal" : "text");
    write_text(answer, index, whole, w);
    if (kind == FM_PART_TEXT) {
        fm_json_key(w, "annotations");
        fm_json_raw(w, "[]", 2);
        fm_json_key(w, "logprobs");
        if (whole) {
            fm_part_write_logprobs(answer, index, w);
        } else {
            fm_json_raw(w, "[]", 2);
        }
    }
    fm_json_object_end(w);
}

static void write_parts(const struct fm_answer *answer, size_t index, bool whole, struct fm_json_writer *w) {
    fm_json_array_begin(w);
    if (whole && has_content(answer, index)) {
        write_part(answer, index, true, w);
    }
    fm_json_array_end(w);
}

/* Writes the members of a reasoning item, which always has `summary`. */
static void write_reasoning(const struct fm_answer *answer, size_t index, bool whole, struct fm_json_writer *w) {
    const struct fm_output_part *part = &answer->parts[index];
    if (answer->request.reasoning_dialect != FM_REASONING_SUMMARY) {
        fm_json_key(w, "summary");
        fm_json_raw(w, "[]", 2);
    }
    fm_json_key(w, words_of(answer)->member);
    write_parts(answer, index, whole, w);
    if (whole && part->state) {
        fm_json_key(w, "encrypted_content");
        fm_json_string(w, part->state, part->state_len);
    }
}

static void write_message_parts(const struct fm_answer *answer, size_t index, bool whole, struct fm_json_writer *w) {
    fm_json_key_str(w, "role", "assistant");
    fm_json_key(w, "content");
    write_parts(answer, index, whole, w);
}

static void write_call(const struct fm_answer *answer, size_t index, bool whole, struct fm_json_writer *w) {
    fm_json_key_str(w, "call_id", answer->parts[index].call_id);
    fm_json_key_str(w, "name", answer->parts[index].name);
    fm_json_key(w, answer->parts[index].custom ? "input" : "arguments");
    write_text(answer, index, whole, w);
}

/* Writes the item of the part `index`. Not `whole`: the item as it begins, even at the end of the answer. */
static void write_item(const struct fm_answer *answer, size_t index, bool whole, struct fm_json_writer *w) {
    static const struct {
        const char *type;
        void (*write)(const struct fm_answer *answer, size_t index, bool whole, struct fm_json_writer *w);
    } kinds[] = {[FM_PART_REASONING] = {"reasoning", write_reasoning},
                 [FM_PART_TEXT] = {"message", write_message_parts},
                 [FM_PART_REFUSAL] = {"message", write_message_parts},
                 [FM_PART_CALL] = {"function_call", write_call}};
    const struct fm_output_part *part = &answer->parts[index];
    fm_json_object_begin(w);
    fm_json_key_str(w, "id", part->item_id);
    fm_json_key_str(w, "type", part->custom ? "custom_tool_call" : kinds[part->kind].type);
    fm_json_key_str(w, "status", whole ? item_status(answer, index) : "in_progress");
    kinds[part->kind].write(answer, index, whole, w);
    fm_json_object_end(w);
}

static void write_output(const struct fm_answer *answer, bool now, struct fm_json_writer *w) {
    fm_json_key(w, "output");
    fm_json_array_begin(w);
    for (size_t i = 0; now && i < answer->part_count; i++) {
        write_item(answer, i, true, w);
    }
    fm_json_array_end(w);
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
    /* Writes the echo. It is a list of members, not a value, but it needs the same commas. */
    fm_json_raw(w, answer->request.echo.data, answer->request.echo.len);
    fm_answer_write_report(answer, moment, w);
    fm_json_object_end(w);
}

static void responses_write(const struct fm_answer *answer, struct fm_json_writer *w) {
    write_response(answer, FM_MOMENT_NOW, w);
}

static void write_end(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "id", answer->id);
    fm_json_key_str(w, "object", "response");
    fm_json_key_str(w, "status", status_of(answer));
    fm_json_object_end(w);
}

/* ---- the events ---- */

enum responses_event {
    CREATED = FM_EVENT_OWN,
    QUEUED, /* only in the background */
    IN_PROGRESS,
    ITEM_ADDED,
    PART_ADDED, /* for an item with a part; FM_EVENT_DELTA follows, once or several times */
    TEXT_DONE,
    PART_DONE,
    ITEM_DONE,
    FAILED, /* the event "error": some clients notice a failure only by it */
    TERMINAL,
};

/* The next event after an item's end: the beginning of another item, or the end. */
static int next_item(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    if (cursor->parts_begun < answer->part_count) {
        return ITEM_ADDED;
    }
    if (!answer->finished) {
        return FM_EVENT_NONE;
    }
    return answer->finish == FM_FINISH_FAILED ? FAILED : TERMINAL;
}

/* The next event after the beginning of the open item's content, or after a delta of it. */
static int next_of_content(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    bool call = fm_event_open_part(answer, cursor)->kind == FM_PART_CALL;
    if (fm_event_has_piece(answer, cursor)) {
        return FM_EVENT_DELTA;
    }
    if (!fm_event_is_over(answer, cursor)) {
        return FM_EVENT_NONE;
    }
    if (call && cursor->last == ITEM_ADDED) { /* clients expect a delta, even for a call without arguments */
        return FM_EVENT_DELTA;
    }
    return call || has_content(answer, fm_event_open_index(cursor)) ? TEXT_DONE : ITEM_DONE;
}

static int responses_next(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    switch (cursor->last) {
    case FM_EVENT_NONE: return CREATED;
    case CREATED:
    case QUEUED:
        if (cursor->last == CREATED && answer->request.background) {
            return QUEUED;
        }
        return answer->opened ? IN_PROGRESS : next_item(answer, cursor); /* not opened: it failed before it began */
    case ITEM_ADDED:
        if (has_content(answer, fm_event_open_index(cursor))) {
            return PART_ADDED;
        }
        return next_of_content(answer, cursor);
    case PART_ADDED:
    case FM_EVENT_DELTA: return next_of_content(answer, cursor);
    case TEXT_DONE: return fm_event_open_part(answer, cursor)->kind == FM_PART_CALL ? ITEM_DONE : PART_DONE;
    case PART_DONE: return ITEM_DONE;
    case IN_PROGRESS:
    case ITEM_DONE: return next_item(answer, cursor);
    case FAILED: return TERMINAL;
    default: return FM_EVENT_END;
    }
}

static void begin_event(struct fm_cursor *cursor, const char *type, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", type);
    fm_json_key_int(w, "sequence_number", cursor->sequence++);
}

static void write_response_event(const struct fm_answer *answer, struct fm_cursor *cursor, const char *type,
                                 enum fm_moment moment, struct fm_json_writer *w) {
    begin_event(cursor, type, w);
    fm_json_key(w, "response");
    write_response(answer, moment, w);
    fm_json_object_end(w);
}

/* ---- events about the open item ---- */

static void write_item_event(const struct fm_answer *answer, struct fm_cursor *cursor, const char *type, bool whole,
                             struct fm_json_writer *w) {
    begin_event(cursor, type, w);
    fm_json_key_int(w, "output_index", (int64_t)fm_event_open_index(cursor));
    fm_json_key(w, "item");
    write_item(answer, fm_event_open_index(cursor), whole, w);
    fm_json_object_end(w);
}

/*
 * Begins an event about the open item's part. The event has the part's index, whose name comes from words_of for
 * reasoning; otherwise it is content_index. A call has no such index.
 */
static void begin_part(const struct fm_answer *answer, struct fm_cursor *cursor, const char *type,
                       struct fm_json_writer *w) {
    const struct fm_output_part *part = fm_event_open_part(answer, cursor);
    begin_event(cursor, type, w);
    fm_json_key_str(w, "item_id", part->item_id);
    fm_json_key_int(w, "output_index", (int64_t)fm_event_open_index(cursor));
    if (part->kind != FM_PART_CALL) {
        fm_json_key_int(w, part->kind == FM_PART_REASONING ? words_of(answer)->index : "content_index", 0);
    }
}

static void write_part_event(const struct fm_answer *answer, struct fm_cursor *cursor, const char *type, bool whole,
                             struct fm_json_writer *w) {
    begin_part(answer, cursor, type, w);
    fm_json_key(w, "part");
    write_part(answer, fm_event_open_index(cursor), whole, w);
    fm_json_object_end(w);
}

/* The names that events use for the open item. */
struct item_words {
    const char *part_added;
    const char *delta;
    const char *text_done;
    const char *part_done;
    const char *text; /* the member of text_done that has the whole text */
};

static struct item_words item_words_of(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    static const struct item_words kinds[] = {
        [FM_PART_TEXT] = {"response.content_part.added", "response.output_text.delta", "response.output_text.done",
                          "response.content_part.done", "text"},
        [FM_PART_REFUSAL] = {"response.content_part.added", "response.refusal.delta", "response.refusal.done",
                             "response.content_part.done", "refusal"},
        [FM_PART_CALL] = {NULL, "response.function_call_arguments.delta", "response.function_call_arguments.done", NULL,
                          "arguments"},
    };
    static const struct item_words custom = {.delta = "response.custom_tool_call_input.delta",
                                             .text_done = "response.custom_tool_call_input.done",
                                             .text = "input"};
    enum fm_output_kind kind = fm_event_open_part(answer, cursor)->kind;
    const struct reasoning_words *reasoning = words_of(answer);
    if (fm_event_open_part(answer, cursor)->custom) {
        return custom;
    }
    return kind != FM_PART_REASONING ? kinds[kind]
                                     : (struct item_words){reasoning->part_added, reasoning->delta,
                                                           reasoning->text_done, reasoning->part_done, "text"};
}

static void write_delta(struct fm_answer *answer, struct fm_cursor *cursor, const char *type,
                        struct fm_json_writer *w) {
    begin_part(answer, cursor, type, w);
    fm_json_key(w, "delta");
    fm_event_write_piece(answer, cursor, w);
    if (fm_event_open_part(answer, cursor)->kind == FM_PART_TEXT) {
        fm_json_key(w, "logprobs");
        fm_answer_write_logprobs(answer, cursor, w);
    }
    fm_json_object_end(w);
}

static void write_text_done(const struct fm_answer *answer, struct fm_cursor *cursor, const struct item_words *words,
                            struct fm_json_writer *w) {
    const struct fm_output_part *part = fm_event_open_part(answer, cursor);
    size_t index = fm_event_open_index(cursor);
    begin_part(answer, cursor, words->text_done, w);
    if (part->kind == FM_PART_CALL && !part->custom) {
        fm_json_key_str(w, "name", part->name);
    }
    fm_json_key(w, words->text);
    fm_answer_write_part(answer, index, w);
    if (part->kind == FM_PART_TEXT) {
        fm_json_key(w, "logprobs");
        fm_part_write_logprobs(answer, index, w);
    }
    fm_json_object_end(w);
}

static void write_open_item(struct fm_answer *answer, struct fm_cursor *cursor, int event, struct fm_json_writer *w) {
    const struct item_words words = item_words_of(answer, cursor);
    switch (event) {
    case ITEM_ADDED: write_item_event(answer, cursor, "response.output_item.added", false, w); break;
    case PART_ADDED: write_part_event(answer, cursor, words.part_added, false, w); break;
    case FM_EVENT_DELTA: write_delta(answer, cursor, words.delta, w); break;
    case TEXT_DONE: write_text_done(answer, cursor, &words, w); break;
    case PART_DONE: write_part_event(answer, cursor, words.part_done, true, w); break;
    default: write_item_event(answer, cursor, "response.output_item.done", true, w); break;
    }
}

/* ---- events about the whole ---- */

static void write_error(const struct fm_answer *answer, struct fm_cursor *cursor, struct fm_json_writer *w) {
    begin_event(cursor, "error", w);
    fm_openai_error_fields(&answer->error, w);
    fm_json_key(w, "error");
    fm_openai_error_write(&answer->error, w);
    fm_json_object_end(w);
}

/*
 * Writes how much of the prompt is computed. The stream helpers of OpenAI's SDK ignore only events of this type; they
 * throw at types that they do not know. It repeats the last number, so that the others stay the same for all readers.
 */
static void write_progress(const struct fm_answer *answer, const struct fm_cursor *cursor, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "keepalive");
    fm_json_key_int(w, "sequence_number", cursor->sequence - 1);
    fm_event_write_progress(answer, w);
    fm_json_object_end(w);
}

static void responses_write_event(struct fm_answer *answer, struct fm_cursor *cursor, int event,
                                  struct fm_json_writer *w) {
    static const char *const terminals[] = {
        [FM_FINISH_STOP] = "response.completed",
        [FM_FINISH_LENGTH] = "response.incomplete",
        [FM_FINISH_CONTENT_FILTER] = "response.incomplete",
        [FM_FINISH_CANCELLED] = "response.incomplete", /* clients throw at a type that they do not know */
        [FM_FINISH_FAILED] = "response.failed",
    };
    switch (event) {
    case CREATED: write_response_event(answer, cursor, "response.created", first_moment(answer), w); break;
    case QUEUED: write_response_event(answer, cursor, "response.queued", FM_MOMENT_QUEUED, w); break;
    case IN_PROGRESS: write_response_event(answer, cursor, "response.in_progress", FM_MOMENT_BEGUN, w); break;
    case FAILED: write_error(answer, cursor, w); break;
    case FM_EVENT_PROGRESS: write_progress(answer, cursor, w); break;
    case TERMINAL: write_response_event(answer, cursor, terminals[answer->finish], FM_MOMENT_NOW, w); break;
    default:
        cursor->parts_begun += event == ITEM_ADDED;
        write_open_item(answer, cursor, event, w);
        break;
    }
}

const struct fm_surface fm_surface_responses = {
    .event_method = "responses.event",
    .event_member = "event",
    .result_member = "response",
    .id_prefix = "resp_",
    .item_prefix = "msg_",
    .whole_usage = true,
    .parse = fm_responses_parse,
    .next = responses_next,
    .write_event = responses_write_event,
    .write = responses_write,
    .write_end = write_end,
};
