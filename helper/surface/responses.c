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

/* An item is complete when another one follows. */
static const char *item_status(const struct fm_answer *answer, size_t index) {
    if (index + 1 < answer->part_count || completed(answer)) {
        return "completed";
    }
    return answer->finished ? "incomplete" : "in_progress";
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

/* Whether the item has a part, which is streamed: a call has none, nor has reasoning that is only a state. */
static bool has_content(const struct fm_answer *answer, size_t index) {
    const struct fm_output_part *part = &answer->parts[index];
    bool bare = part->kind == FM_PART_REASONING && fm_answer_part_len(answer, index) == 0;
    return part->kind != FM_PART_CALL && !bare;
}

/* The text of the part `index`; "" as when it begins. */
static void write_text(const struct fm_answer *answer, size_t index, bool whole, struct fm_json_writer *w) {
    if (whole) {
        fm_answer_write_part(answer, index, w);
    } else {
        fm_json_str(w, "");
    }
}

/* An item's part; not `whole`: as when it begins. */
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

/* `summary` is always there. */
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

static void write_message(const struct fm_answer *answer, size_t index, bool whole, struct fm_json_writer *w) {
    fm_json_key_str(w, "role", "assistant");
    fm_json_key(w, "content");
    write_parts(answer, index, whole, w);
}

static void write_call(const struct fm_answer *answer, size_t index, bool whole, struct fm_json_writer *w) {
    fm_json_key_str(w, "call_id", answer->parts[index].call_id);
    fm_json_key_str(w, "name", answer->parts[index].name);
    fm_json_key(w, "arguments");
    write_text(answer, index, whole, w);
}

/* The item of the part `index`; not `whole`: as when it begins, even if that is at the end of the answer. */
static void write_item(const struct fm_answer *answer, size_t index, bool whole, struct fm_json_writer *w) {
    static const struct {
        const char *type;
        void (*write)(const struct fm_answer *answer, size_t index, bool whole, struct fm_json_writer *w);
    } kinds[] = {[FM_PART_REASONING] = {"reasoning", write_reasoning},
                 [FM_PART_TEXT] = {"message", write_message},
                 [FM_PART_REFUSAL] = {"message", write_message},
                 [FM_PART_CALL] = {"function_call", write_call}};
    const struct fm_output_part *part = &answer->parts[index];
    fm_json_object_begin(w);
    fm_json_key_str(w, "id", part->item_id);
    fm_json_key_str(w, "type", kinds[part->kind].type);
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
    /* The echo is members, not a value, but it needs the same commas. */
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

static void write_created(struct fm_answer *answer, struct fm_json_writer *w) {
    write_response_event(answer, "response.created", first_moment(answer), w);
}

static void write_queued(struct fm_answer *answer, struct fm_json_writer *w) {
    write_response_event(answer, "response.queued", FM_MOMENT_QUEUED, w);
}

static void write_in_progress(struct fm_answer *answer, struct fm_json_writer *w) {
    write_response_event(answer, "response.in_progress", FM_MOMENT_BEGUN, w);
}

/* ---- events about the open item ---- */

static void write_item_event(struct fm_answer *answer, const char *type, bool whole, struct fm_json_writer *w) {
    begin(answer, type, w);
    fm_json_key_int(w, "output_index", (int64_t)fm_event_open_index(answer));
    fm_json_key(w, "item");
    write_item(answer, fm_event_open_index(answer), whole, w);
    fm_json_object_end(w);
}

/* The index of an item's part has its own name in each kind; a call has none. */
static void begin_part(struct fm_answer *answer, const char *type, struct fm_json_writer *w) {
    const struct fm_output_part *part = fm_event_open_part(answer);
    begin(answer, type, w);
    fm_json_key_str(w, "item_id", part->item_id);
    fm_json_key_int(w, "output_index", (int64_t)fm_event_open_index(answer));
    if (part->kind != FM_PART_CALL) {
        fm_json_key_int(w, part->kind == FM_PART_REASONING ? words_of(answer)->index : "content_index", 0);
    }
}

static void write_part_event(struct fm_answer *answer, const char *type, bool whole, struct fm_json_writer *w) {
    begin_part(answer, type, w);
    fm_json_key(w, "part");
    write_part(answer, fm_event_open_index(answer), whole, w);
    fm_json_object_end(w);
}

/* The names of the open item's events. */
struct item_words {
    const char *part_added;
    const char *delta;
    const char *text_done;
    const char *part_done;
    const char *text; /* the member of text_done that has all of it */
};

static struct item_words item_words_of(const struct fm_answer *answer) {
    static const struct item_words kinds[] = {
        [FM_PART_TEXT] = {"response.content_part.added", "response.output_text.delta", "response.output_text.done",
                          "response.content_part.done", "text"},
        [FM_PART_REFUSAL] = {"response.content_part.added", "response.refusal.delta", "response.refusal.done",
                             "response.content_part.done", "refusal"},
        [FM_PART_CALL] = {NULL, "response.function_call_arguments.delta", "response.function_call_arguments.done", NULL,
                          "arguments"},
    };
    enum fm_output_kind kind = fm_event_open_part(answer)->kind;
    const struct reasoning_words *reasoning = words_of(answer);
    return kind != FM_PART_REASONING ? kinds[kind]
                                     : (struct item_words){reasoning->part_added, reasoning->delta,
                                                           reasoning->text_done, reasoning->part_done, "text"};
}

static void write_item_added(struct fm_answer *answer, struct fm_json_writer *w) {
    answer->cursor->parts_begun++;
    answer->cursor->content_due = has_content(answer, fm_event_open_index(answer));
    write_item_event(answer, "response.output_item.added", false, w);
}

static void write_part_added(struct fm_answer *answer, struct fm_json_writer *w) {
    answer->cursor->content_due = false;
    write_part_event(answer, item_words_of(answer).part_added, false, w);
}

static void write_delta(struct fm_answer *answer, struct fm_json_writer *w) {
    begin_part(answer, item_words_of(answer).delta, w);
    fm_json_key(w, "delta");
    fm_event_write_piece(answer, w);
    if (fm_event_open_part(answer)->kind == FM_PART_TEXT) {
        fm_json_key(w, "logprobs");
        fm_event_write_logprobs(answer, w);
    }
    fm_json_object_end(w);
}

static void write_text_done(struct fm_answer *answer, struct fm_json_writer *w) {
    const struct fm_output_part *part = fm_event_open_part(answer);
    size_t index = fm_event_open_index(answer);
    begin_part(answer, item_words_of(answer).text_done, w);
    if (part->kind == FM_PART_CALL) {
        fm_json_key_str(w, "name", part->name);
    }
    fm_json_key(w, item_words_of(answer).text);
    fm_answer_write_part(answer, index, w);
    if (part->kind == FM_PART_TEXT) {
        fm_json_key(w, "logprobs");
        fm_part_write_logprobs(answer, index, w);
    }
    fm_json_object_end(w);
}

static void write_part_done(struct fm_answer *answer, struct fm_json_writer *w) {
    write_part_event(answer, item_words_of(answer).part_done, true, w);
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
    write_response_event(answer, types[answer->finish], FM_MOMENT_NOW, w);
}

static enum fm_event_state queued_state(const struct fm_answer *answer) {
    return answer->request.background ? FM_EVENT_DUE : FM_EVENT_SKIP;
}

/* Only a stream in the background begins before this event. */
static enum fm_event_state in_progress_state(const struct fm_answer *answer) {
    return answer->opened ? FM_EVENT_DUE : answer->finished ? FM_EVENT_SKIP : FM_EVENT_LATER;
}

/* The rows after the deltas are reached when all of those were sent. */
static enum fm_event_state item_state(const struct fm_answer *answer) {
    return fm_event_open_part(answer) ? FM_EVENT_DUE : FM_EVENT_SKIP;
}

static enum fm_event_state content_state(const struct fm_answer *answer) {
    bool has = fm_event_open_part(answer) && has_content(answer, fm_event_open_index(answer));
    return has ? FM_EVENT_DUE : FM_EVENT_SKIP;
}

static enum fm_event_state content_due_state(const struct fm_answer *answer) {
    return answer->cursor->content_due ? FM_EVENT_DUE : FM_EVENT_SKIP;
}

static enum fm_event_state text_state(const struct fm_answer *answer) {
    bool call = fm_event_open_part(answer) && fm_event_open_part(answer)->kind == FM_PART_CALL;
    return call ? FM_EVENT_DUE : content_state(answer);
}

/* Clients expect at least one delta, so a call without arguments also has one. */
static enum fm_event_state first_arguments_state(const struct fm_answer *answer) {
    if (!fm_event_open_part(answer) || fm_event_open_part(answer)->kind != FM_PART_CALL) {
        return FM_EVENT_SKIP;
    }
    enum fm_event_state state = fm_event_open_state(answer);
    return state == FM_EVENT_SKIP ? FM_EVENT_DUE : state;
}

/* Whether the next item has no part: a call, or reasoning that is only a state, which comes with it. */
static enum fm_event_state bare_item_state(const struct fm_answer *answer) {
    enum fm_event_state state = fm_event_next_state(answer);
    return state == FM_EVENT_DUE && has_content(answer, answer->cursor->parts_begun) ? FM_EVENT_SKIP : state;
}

/* Some clients notice a failure only by this event. */
static enum fm_event_state error_state(const struct fm_answer *answer) {
    return answer->finish == FM_FINISH_FAILED ? FM_EVENT_DUE : FM_EVENT_SKIP;
}

static const struct fm_event_row events[] = {
    {fm_event_due, write_created, 1},
    {queued_state, write_queued, 1},
    {in_progress_state, write_in_progress, 1},
    /* the open item, if there is one */
    {first_arguments_state, write_delta, 1},
    {fm_event_open_state, write_delta, 0},
    {text_state, write_text_done, 1},
    {content_state, write_part_done, 1},
    {item_state, write_item_done, 1},
    /* the beginning of the next one, which is the open one from then on */
    {bare_item_state, write_item_added, -5},
    {fm_event_next_state, write_item_added, 1},
    {content_due_state, write_part_added, -7},
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
    .whole_usage = true,
    .parse = fm_responses_parse,
    .events = events,
    .event_count = sizeof events / sizeof events[0],
    .write = responses_write,
    .write_end = write_end,
};
