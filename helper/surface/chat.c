/*
 * The chat completions API: the completion object and its streaming chunks. A cancelled or failed answer has no finish
 * chunk, and its completion has finish_reason null, because none of OpenAI's reasons would be true.
 */
#include "surface/answer.h"
#include "surface/request.h"
#include "surface/usage.h"

const char *fm_chat_finish_reason(const struct fm_answer *answer) {
    static const char *const names[] = {
        [FM_FINISH_STOP] = "stop",    [FM_FINISH_LENGTH] = "length", [FM_FINISH_CONTENT_FILTER] = "content_filter",
        [FM_FINISH_CANCELLED] = NULL, [FM_FINISH_FAILED] = NULL,
    };
    if (!answer->finished) {
        return NULL;
    }
    return answer->finish == FM_FINISH_STOP && answer->call_count > 0 ? "tool_calls" : names[answer->finish];
}

/* ---- the object ---- */

void fm_chat_write_head(const struct fm_answer *answer, const char *object, struct fm_json_writer *w) {
    fm_json_key_str(w, "id", answer->id);
    fm_json_key_str(w, "object", object);
    fm_json_key_int(w, "created", answer->created_at);
    fm_json_key_str(w, "model", answer->model);
}

static const char *type_of(const struct fm_output_part *call) {
    return call->custom ? "custom" : "function";
}

/* The name of the member that has a call's arguments, or its text. */
static const char *text_of(const struct fm_output_part *call) {
    return call->custom ? "input" : "arguments";
}

/* Begins a call, up to the value of its arguments. */
static void begin_call(const struct fm_output_part *call, struct fm_json_writer *w) {
    fm_json_key_str(w, "id", call->call_id);
    fm_json_key_str(w, "type", type_of(call));
    fm_json_key(w, type_of(call));
    fm_json_object_begin(w);
    fm_json_key_str(w, "name", call->name);
    fm_json_key(w, text_of(call));
}

static void write_calls(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_key(w, "tool_calls");
    fm_json_array_begin(w);
    for (size_t i = 0; i < answer->part_count; i++) {
        if (answer->parts[i].kind == FM_PART_CALL) {
            fm_json_object_begin(w);
            begin_call(&answer->parts[i], w);
            fm_answer_write_part(answer, i, w);
            fm_json_object_end(w);
            fm_json_object_end(w);
        }
    }
    fm_json_array_end(w);
}

/* Writes the parts of a kind, joined, or null. */
static void write_kind_or_null(const struct fm_answer *answer, enum fm_output_kind kind, bool there,
                               struct fm_json_writer *w) {
    if (there) {
        fm_answer_write_kind(answer, kind, w);
    } else {
        fm_json_null(w);
    }
}

static void write_choice_message(const struct fm_answer *answer, struct fm_json_writer *w) {
    bool refusal = fm_answer_has(answer, FM_PART_REFUSAL);
    bool text = fm_answer_has(answer, FM_PART_TEXT) || (answer->call_count == 0 && !refusal);
    fm_json_key(w, "message");
    fm_json_object_begin(w);
    fm_json_key_str(w, "role", "assistant");
    fm_json_key(w, "content");
    write_kind_or_null(answer, FM_PART_TEXT, text, w);
    fm_json_key(w, "refusal");
    write_kind_or_null(answer, FM_PART_REFUSAL, refusal, w);
    fm_json_key(w, "annotations");
    fm_json_raw(w, "[]", 2);
    if (fm_answer_has(answer, FM_PART_REASONING)) {
        fm_json_key(w, "reasoning_content");
        fm_answer_write_kind(answer, FM_PART_REASONING, w);
    }
    if (answer->call_count > 0) {
        write_calls(answer, w);
    }
    fm_json_object_end(w);
}

/*
 * Writes the member `logprobs` of a choice or chunk: null if the request asks for none, or if not `there`. `cursor`
 * NULL: those of the whole text; otherwise those of the piece that was written last.
 */
static void write_logprobs(const struct fm_answer *answer, const struct fm_cursor *cursor, bool there,
                           struct fm_json_writer *w) {
    fm_json_key(w, "logprobs");
    if (!answer->request.logprobs || !there) {
        fm_json_null(w);
        return;
    }
    fm_json_object_begin(w);
    fm_json_key(w, "content");
    fm_answer_write_logprobs(answer, cursor, w);
    fm_json_key_null(w, "refusal");
    fm_json_object_end(w);
}

static void write_choice(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_int(w, "index", (int64_t)answer->choice);
    write_choice_message(answer, w);
    write_logprobs(answer, NULL, true, w);
    fm_json_key_str(w, "finish_reason", fm_chat_finish_reason(answer));
    fm_json_object_end(w);
}

static void chat_write(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_chat_write_head(answer, "chat.completion", w);
    fm_json_key(w, "choices");
    fm_json_array_begin(w);
    for (size_t i = 0; i < answer->choice; i++) {
        write_choice(answer->earlier[i], w);
    }
    write_choice(answer, w);
    fm_json_array_end(w);
    fm_chat_write_usage(answer, w);
    fm_json_key_str(w, "service_tier", "default");
    fm_answer_write_report(answer, FM_MOMENT_NOW, w);
    fm_json_object_end(w);
}

/* ---- the chunks ---- */

/* Begins a chunk, up to the members of its delta. */
static void begin_delta(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_chat_write_head(answer, "chat.completion.chunk", w);
    fm_json_key(w, "choices");
    fm_json_array_begin(w);
    fm_json_object_begin(w);
    fm_json_key_int(w, "index", (int64_t)answer->choice);
    fm_json_key(w, "delta");
    fm_json_object_begin(w);
}

/*
 * Ends the delta and its choice; the chunk's object stays open. `cursor`: the delta is a piece of the text, which may
 * have log probabilities. NULL: it is not.
 */
static void end_choice(const struct fm_answer *answer, const struct fm_cursor *cursor, const char *reason,
                       struct fm_json_writer *w) {
    fm_json_object_end(w);
    write_logprobs(answer, cursor, cursor != NULL, w);
    fm_json_key_str(w, "finish_reason", reason);
    fm_json_object_end(w);
    fm_json_array_end(w);
    if (answer->request.include_usage) {
        fm_json_key_null(w, "usage");
    }
}

static void end_delta(const struct fm_answer *answer, const struct fm_cursor *cursor, struct fm_json_writer *w) {
    end_choice(answer, cursor, NULL, w);
    fm_json_object_end(w);
}

static void write_role(const struct fm_answer *answer, struct fm_json_writer *w) {
    begin_delta(answer, w);
    fm_json_key_str(w, "role", "assistant");
    fm_json_key_null(w, "content");
    end_choice(answer, NULL, NULL, w);
    fm_answer_write_chunk_report(answer, answer->choice == 0, false, w); /* the first chunk of the stream */
    fm_json_object_end(w);
}

/* Begins a chunk with one call, up to the call's members. */
static void begin_call_delta(const struct fm_answer *answer, size_t index, struct fm_json_writer *w) {
    begin_delta(answer, w);
    fm_json_key(w, "tool_calls");
    fm_json_array_begin(w);
    fm_json_object_begin(w);
    fm_json_key_int(w, "index", (int64_t)index);
}

/* Ends a chunk with one call, beginning with the end of the call's function. */
static void end_call_delta(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_object_end(w);
    fm_json_object_end(w);
    fm_json_array_end(w);
    end_delta(answer, NULL, w);
}

static void write_call(const struct fm_answer *answer, struct fm_cursor *cursor, struct fm_json_writer *w) {
    fm_event_begin_next(answer, cursor);
    begin_call_delta(answer, fm_answer_calls_before(answer, fm_event_open_index(cursor)), w);
    begin_call(fm_event_open_part(answer, cursor), w);
    fm_json_str(w, "");
    end_call_delta(answer, w);
}

static void write_arguments(struct fm_answer *answer, struct fm_cursor *cursor, struct fm_json_writer *w) {
    const struct fm_output_part *call = fm_event_open_part(answer, cursor);
    begin_call_delta(answer, fm_answer_calls_before(answer, fm_event_open_index(cursor)), w);
    fm_json_key(w, type_of(call));
    fm_json_object_begin(w);
    fm_json_key(w, text_of(call));
    fm_event_write_piece(answer, cursor, w);
    end_call_delta(answer, w);
}

/* Writes the next piece of the open part. If there is none, writes the next part's first piece, unless it is a call. */
static void write_piece(struct fm_answer *answer, struct fm_cursor *cursor, struct fm_json_writer *w) {
    static const char *const members[] = {
        [FM_PART_REASONING] = "reasoning_content", [FM_PART_TEXT] = "content", [FM_PART_REFUSAL] = "refusal"};
    fm_event_begin_next(answer, cursor);
    enum fm_output_kind kind = fm_event_open_part(answer, cursor)->kind;
    if (kind == FM_PART_CALL) {
        write_arguments(answer, cursor, w);
        return;
    }
    begin_delta(answer, w);
    fm_json_key(w, members[kind]);
    fm_event_write_piece(answer, cursor, w);
    end_delta(answer, kind == FM_PART_TEXT ? cursor : NULL, w);
}

static void write_finish(const struct fm_answer *answer, struct fm_json_writer *w) {
    begin_delta(answer, w);
    end_choice(answer, NULL, fm_chat_finish_reason(answer), w);
    fm_answer_write_chunk_report(answer, false, true, w);
    fm_json_object_end(w);
}

void fm_chat_write_usage_chunk(const struct fm_answer *answer, const char *object, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_chat_write_head(answer, object, w);
    fm_json_key(w, "choices");
    fm_json_raw(w, "[]", 2);
    fm_chat_write_usage(answer, w);
    fm_json_object_end(w);
}

void fm_chat_write_progress_chunk(const struct fm_answer *answer, const char *object, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_chat_write_head(answer, object, w);
    fm_json_key(w, "choices");
    fm_json_raw(w, "[]", 2);
    if (answer->request.include_usage) {
        fm_json_key_null(w, "usage");
    }
    fm_event_write_progress(answer, w);
    fm_json_object_end(w);
}

/* Whether there is a chunk with the usage. There is none if the usage is not known. */
static bool has_usage_chunk(const struct fm_answer *answer) {
    if (!answer->request.include_usage || fm_answer_has_next(answer)) {
        return false;
    }
    const struct fm_usage usage = fm_answer_usage(answer);
    return fm_usage_known(&usage);
}

/* The next event after the first chunk, a piece or a call. */
static int next_of_output(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    size_t next = fm_event_next_part(answer, cursor);
    if (fm_event_has_piece(answer, cursor)) {
        return FM_EVENT_DELTA;
    }
    if (next < answer->part_count) {
        return answer->parts[next].kind == FM_PART_CALL ? FM_CHAT_CALL : FM_EVENT_DELTA;
    }
    if (!answer->finished) {
        return FM_EVENT_NONE;
    }
    return fm_chat_finish_reason(answer) ? FM_CHAT_FINISH : FM_EVENT_END;
}

int fm_chat_next(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    switch (cursor->last) {
    case FM_CHAT_FINISH: return has_usage_chunk(answer) ? FM_CHAT_USAGE : FM_EVENT_END;
    case FM_CHAT_USAGE: return FM_EVENT_END;
    default: return next_of_output(answer, cursor);
    }
}

static int chat_next(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    return cursor->last == FM_EVENT_NONE ? FM_CHAT_ROLE : fm_chat_next(answer, cursor);
}

static void chat_write_event(struct fm_answer *answer, struct fm_cursor *cursor, int event, struct fm_json_writer *w) {
    switch (event) {
    case FM_CHAT_ROLE: write_role(answer, w); break;
    case FM_CHAT_CALL: write_call(answer, cursor, w); break;
    case FM_EVENT_DELTA: write_piece(answer, cursor, w); break;
    case FM_CHAT_FINISH: write_finish(answer, w); break;
    case FM_EVENT_PROGRESS: fm_chat_write_progress_chunk(answer, "chat.completion.chunk", w); break;
    default: fm_chat_write_usage_chunk(answer, "chat.completion.chunk", w); break;
    }
}

const struct fm_surface fm_surface_chat = {
    .event_method = "chat.completions.chunk",
    .event_member = "chunk",
    .result_member = "completion",
    .id_prefix = "chatcmpl-",
    .item_prefix = NULL,
    .parse = fm_chat_parse,
    .next = chat_next,
    .write_event = chat_write_event,
    .write = chat_write,
};
