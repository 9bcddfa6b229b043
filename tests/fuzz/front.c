/*
 * The host of the fuzz targets. It remembers each call and response, and checks every frame of the front against
 * PROTOCOL.md. Between any two steps, each call is either answered once or in flight.
 */
#include "tests/fuzz/front.h"
#include "front/dispatch.h"
#include "front/engines/send.h"
#include "front/engines/supervisor.h"
#include "front/store/queue.h"
#include "front/store/thread.h"
#include "front/streams.h"
#include "front/watchdog.h"
#include "protocol/frame.h"

#define EVENT_MAX (64u << 20)
#define TOLD_MAX  256u
#define WHOLE     240u /* choices from here on mean the calls of `whole_calls` */

struct fm_front front;
unsigned host_room;
static struct fm_dispatcher dispatcher;

/* ---- the host's memory ---- */

/* The state of a stream, in the order of PROTOCOL.md's events. */
enum stage {
    STAGE_NONE,
    STAGE_CREATED,
    STAGE_QUEUED,
    STAGE_BEGUN,
    STAGE_THOUGHT,
    STAGE_THOUGHT_PART,
    STAGE_THOUGHT_TEXT_DONE,
    STAGE_THOUGHT_PART_DONE,
    STAGE_THOUGHT_DONE,
    STAGE_ITEM,
    STAGE_PART,
    STAGE_TEXT_DONE,
    STAGE_PART_DONE,
    STAGE_CALL,
    STAGE_ARGUMENTS,
    STAGE_ARGUMENTS_DONE,
    STAGE_ITEM_DONE,
    STAGE_ERROR,
    STAGE_END
};

/* An id that was used, and the stream that uses it now. */
struct call {
    struct fm_rpc_id id; /* len 0: the id null */
    unsigned asked;
    unsigned answered;
    bool taken;  /* the current call has the id of a call in flight: it must be refused */
    bool stream; /* the create call in flight asked for a stream */
    bool chat;
    bool usage; /* chat: it also asked for the usage chunk */
    enum stage stage;
    int64_t sequence;
    struct fm_buf text;     /* the deltas of all items, one item after the other */
    size_t item;            /* where the last item begins in `text` */
    size_t items;           /* items begun so far; of a chat stream, the calls of its choice */
    int64_t choices;        /* the requested number; 0: requested by another call, which this call cancels */
    int64_t choice;         /* of a chat stream: the choice whose chunks come now */
    size_t all_calls;       /* of a chat stream: the calls of all its choices */
    bool spoke;             /* of a chat stream: text has come, so no reasoning may follow */
    bool legacy;            /* completions.create, which counts as chat too */
    bool replay;            /* responses.retrieve */
    int64_t after;          /* of a replay: its starting_after; -1: none */
    bool left;              /* a cancel named the call, so its stream may end early */
    struct told *told;      /* the response of the stream; NULL: unknown, or its readers may get different deltas */
    struct fm_buf logprobs; /* the entries of all deltas */
};

/* A response, and its events by sequence_number: each reader gets the same events. */
struct told {
    char id[FM_ID_SIZE];
    bool stored; /* false: its readers' deltas may differ */
    struct json_object *events;
};

static struct {
    struct call *calls;
    size_t count;
    size_t cap;
    struct told *told[TOLD_MAX];
    size_t told_count;
    struct fm_inbound inbound;
    bool broken;
} host;

static struct call *call_of(const struct fm_rpc_id *id) {
    for (size_t i = 0; i < host.count; i++) {
        if (fm_rpc_id_equal(&host.calls[i].id, id)) {
            return &host.calls[i];
        }
    }
    if (host.count == host.cap) {
        host.cap = host.cap ? 2 * host.cap : 16;
        host.calls = realloc(host.calls, host.cap * sizeof *host.calls);
        HOLDS(host.calls);
    }
    struct call *call = &host.calls[host.count++];
    *call = (struct call){.id = *id, .after = -1};
    fm_buf_init(&call->text, EVENT_MAX);
    fm_buf_init(&call->logprobs, EVENT_MAX);
    return call;
}

static struct call *call_named(struct json_object *id) {
    struct fm_rpc_id read = {.len = 0};
    HOLDS(!id || fm_rpc_id_read(id, &read));
    return call_of(&read);
}

/* ---- values ---- */

static struct json_object *member(struct json_object *object, const char *name) {
    struct json_object *value = NULL;
    HOLDS_OR(json_object_object_get_ex(object, name, &value), "no member %s", name);
    return value;
}

static bool is_word(struct json_object *value, const char *word) {
    return json_object_is_type(value, json_type_string) && strcmp(json_object_get_string(value), word) == 0;
}

static bool has(struct json_object *object, const char *name) {
    return json_object_object_get_ex(object, name, NULL);
}

static int64_t count_at(struct json_object *object, const char *name) {
    struct json_object *value = member(object, name);
    HOLDS(json_object_is_type(value, json_type_int) && json_object_get_int64(value) >= 0);
    return json_object_get_int64(value);
}

/* Checks that `text` is the deltas' text from `start` on, or the beginning of this text. Returns where `text` ends in
 * the deltas. */
static size_t expect_text(const struct call *call, size_t start, struct json_object *text) {
    HOLDS(json_object_is_type(text, json_type_string));
    size_t len = (size_t)json_object_get_string_len(text);
    HOLDS(len <= call->text.len - start);
    HOLDS(len == 0 || memcmp(json_object_get_string(text), call->text.data + start, len) == 0);
    return start + len;
}

/* ---- what other readers had ---- */

static struct told *find_told(const char *id) {
    for (size_t i = 0; i < host.told_count; i++) {
        if (strcmp(host.told[i]->id, id) == 0) {
            return host.told[i];
        }
    }
    return NULL;
}

/* Notes a response that the host has seen. */
static struct told *note_response(struct json_object *response) {
    const char *id = json_object_get_string(member(response, "id"));
    struct told *told = find_told(id);
    if (!told && host.told_count < TOLD_MAX) {
        told = calloc(1, sizeof *told);
        HOLDS(told && strlen(id) < sizeof told->id);
        snprintf(told->id, sizeof told->id, "%s", id);
        told->stored = json_object_get_boolean(member(response, "store"));
        told->events = json_object_new_array();
        host.told[host.told_count++] = told;
    }
    return told;
}

static void expect_same(struct call *call, struct json_object *event) {
    size_t number = (size_t)count_at(event, "sequence_number");
    if (is_word(member(event, "type"), "response.created")) {
        call->told = note_response(member(event, "response"));
    }
    if (!call->told || !call->told->stored) {
        return;
    }
    struct json_object *other = json_object_array_get_idx(call->told->events, number);
    HOLDS_OR(!other || json_object_equal(other, event), "%s", json_object_to_json_string(event));
    if (!other) {
        HOLDS(json_object_array_put_idx(call->told->events, number, json_object_get(event)) == 0);
    }
}

static void free_told(void) {
    for (size_t i = 0; i < host.told_count; i++) {
        json_object_put(host.told[i]->events);
        free(host.told[i]);
    }
}

/* ---- texts ---- */

/* Whether this call has got, or will get, all events of the stream. */
static bool reads_all(const struct call *call) {
    return call->stream && call->after < 0 && (!call->left || call->stage == STAGE_END);
}

/* Checks the text of the last item. */
static void expect_item(const struct call *call, struct json_object *text) {
    HOLDS(expect_text(call, call->item, text) == call->text.len);
}

static void begin_item(struct call *call) {
    call->item = call->text.len;
    call->items++;
}

static void take_delta(struct call *call, struct json_object *text, bool may_be_empty) {
    HOLDS(json_object_is_type(text, json_type_string));
    HOLDS(may_be_empty || json_object_get_string_len(text) > 0);
    fm_buf_append(&call->text, json_object_get_string(text), (size_t)json_object_get_string_len(text));
}

static void append_entries(struct json_object *list, struct fm_buf *entries) {
    HOLDS(json_object_is_type(list, json_type_array));
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *entry = json_object_array_get_idx(list, i);
        HOLDS(json_object_get_double(member(entry, "logprob")) <= 0);
        HOLDS(json_object_is_type(member(entry, "bytes"), json_type_array));
        fm_buf_append_str(entries, json_object_to_json_string(entry));
    }
}

/* The entries at the end of a text must be those of its deltas. */
static void expect_entries(const struct call *call, struct json_object *list) {
    struct fm_buf entries;
    fm_buf_init(&entries, EVENT_MAX);
    append_entries(list, &entries);
    HOLDS(entries.len == call->logprobs.len);
    HOLDS(entries.len == 0 || memcmp(entries.data, call->logprobs.data, entries.len) == 0);
    fm_buf_free(&entries);
}

/* Checks the usage. Null: the engine has not counted everything. */
static void expect_usage(struct json_object *usage, const char *input, const char *output) {
    if (!usage) {
        return;
    }
    HOLDS(count_at(usage, "total_tokens") == count_at(usage, input) + count_at(usage, output));
}

/* OpenAI's types demand these counts. */
static void expect_details(struct json_object *usage) {
    if (usage) {
        HOLDS(count_at(member(usage, "input_tokens_details"), "cached_tokens") >= 0);
        HOLDS(count_at(member(usage, "output_tokens_details"), "reasoning_tokens") >= 0);
    }
}

static void expect_error(struct json_object *error) {
    struct json_object *openai = member(error, "openai");
    HOLDS(json_object_is_type(member(error, "code"), json_type_string) && !is_word(member(error, "code"), "OK"));
    HOLDS(json_object_get_string_len(member(error, "detail")) > 0);
    HOLDS(count_at(openai, "status") >= 400 && count_at(openai, "status") < 600);
    HOLDS(!member(openai, "code") || json_object_is_type(member(openai, "code"), json_type_string));
    HOLDS(json_object_is_type(member(openai, "type"), json_type_string));
    HOLDS(json_object_is_type(member(openai, "message"), json_type_string));
    HOLDS(has(openai, "param"));
}

/* ---- the Responses API's stream ---- */

/* The text of the only part of a message or of a reasoning's summary, or a call's arguments. */
static struct json_object *item_text(struct json_object *item) {
    if (is_word(member(item, "type"), "function_call")) {
        HOLDS(is_word(member(item, "name"), json_object_get_string(member(item, "name"))));
        return member(item, "arguments");
    }
    bool thought = is_word(member(item, "type"), "reasoning");
    struct json_object *content = member(item, thought ? "summary" : "content");
    HOLDS(json_object_array_length(content) == 1);
    return member(json_object_array_get_idx(content, 0), "text");
}

/* Whether a response has not ended. Only a background response at its creation, and a retrieved response, may be
 * unfinished. */
static bool runs(struct json_object *response) {
    struct json_object *status = member(response, "status");
    return is_word(status, "queued") || is_word(status, "in_progress");
}

/*
 * A Response's items: at most one reasoning, which is the first, then at most one message, and each but the last is
 * complete. In a stream, they equal what the stream sent.
 */
static void expect_output(const struct call *call, struct json_object *response) {
    struct json_object *output = member(response, "output");
    size_t count = json_object_array_length(output);
    size_t at = 0;
    bool reasons = false;
    bool streamed = reads_all(call);
    for (size_t i = 0; i < count; i++) {
        struct json_object *item = json_object_array_get_idx(output, i);
        struct json_object *type = member(item, "type");
        HOLDS(i == 0 || !is_word(type, "reasoning"));
        HOLDS(i == 0 || is_word(type, "function_call") || (i == 1 && reasons));
        reasons = is_word(type, "reasoning");
        HOLDS(i + 1 == count || is_word(member(item, "status"), "completed"));
        struct json_object *text = item_text(item);
        at = streamed ? expect_text(call, at, text) : at;
    }
    HOLDS(!streamed || (at == call->text.len && count == call->items));
}

static const struct event {
    const char *type;
    enum stage from_first;
    enum stage from_last;
    enum stage to;
} events[] = {
    {"response.created", STAGE_NONE, STAGE_NONE, STAGE_CREATED},
    {"response.queued", STAGE_CREATED, STAGE_CREATED, STAGE_QUEUED},
    {"response.in_progress", STAGE_CREATED, STAGE_QUEUED, STAGE_BEGUN},
    {"response.output_item.added reasoning", STAGE_BEGUN, STAGE_BEGUN, STAGE_THOUGHT},
    {"response.reasoning_summary_part.added", STAGE_THOUGHT, STAGE_THOUGHT, STAGE_THOUGHT_PART},
    {"response.reasoning_summary_text.delta", STAGE_THOUGHT_PART, STAGE_THOUGHT_PART, STAGE_THOUGHT_PART},
    {"response.reasoning_summary_text.done", STAGE_THOUGHT_PART, STAGE_THOUGHT_PART, STAGE_THOUGHT_TEXT_DONE},
    {"response.reasoning_summary_part.done", STAGE_THOUGHT_TEXT_DONE, STAGE_THOUGHT_TEXT_DONE, STAGE_THOUGHT_PART_DONE},
    {"response.output_item.done reasoning", STAGE_THOUGHT_PART_DONE, STAGE_THOUGHT_PART_DONE, STAGE_THOUGHT_DONE},
    {"response.output_item.added message", STAGE_BEGUN, STAGE_BEGUN, STAGE_ITEM},
    {"response.output_item.added message", STAGE_THOUGHT_DONE, STAGE_THOUGHT_DONE, STAGE_ITEM},
    {"response.content_part.added", STAGE_ITEM, STAGE_ITEM, STAGE_PART},
    {"response.output_text.delta", STAGE_PART, STAGE_PART, STAGE_PART},
    {"response.output_text.done", STAGE_PART, STAGE_PART, STAGE_TEXT_DONE},
    {"response.content_part.done", STAGE_TEXT_DONE, STAGE_TEXT_DONE, STAGE_PART_DONE},
    {"response.output_item.done message", STAGE_PART_DONE, STAGE_PART_DONE, STAGE_ITEM_DONE},
    {"response.output_item.added function_call", STAGE_BEGUN, STAGE_BEGUN, STAGE_CALL},
    {"response.output_item.added function_call", STAGE_THOUGHT_DONE, STAGE_THOUGHT_DONE, STAGE_CALL},
    {"response.output_item.added function_call", STAGE_ITEM_DONE, STAGE_ITEM_DONE, STAGE_CALL},
    {"response.function_call_arguments.delta", STAGE_CALL, STAGE_ARGUMENTS, STAGE_ARGUMENTS},
    {"response.function_call_arguments.done", STAGE_ARGUMENTS, STAGE_ARGUMENTS, STAGE_ARGUMENTS_DONE},
    {"response.output_item.done function_call", STAGE_ARGUMENTS_DONE, STAGE_ARGUMENTS_DONE, STAGE_ITEM_DONE},
    {"error", STAGE_QUEUED, STAGE_ITEM_DONE, STAGE_ERROR},
    {"response.failed", STAGE_ERROR, STAGE_ERROR, STAGE_END},
    {"response.completed", STAGE_ITEM_DONE, STAGE_ITEM_DONE, STAGE_END},
    {"response.incomplete", STAGE_QUEUED, STAGE_ITEM_DONE, STAGE_END},
};

/* Returns the event's type, followed by its item's type. */
static void write_kind(struct json_object *event, char kind[96]) {
    struct json_object *item = has(event, "item") ? member(event, "item") : NULL;
    snprintf(kind, 96, "%s%s%s", json_object_get_string(member(event, "type")), item ? " " : "",
             item ? json_object_get_string(member(item, "type")) : "");
}

static void advance(struct call *call, const char *kind) {
    for (size_t i = 0; i < COUNT(events); i++) {
        bool in_order = call->stage >= events[i].from_first && call->stage <= events[i].from_last;
        if (strcmp(kind, events[i].type) != 0 || !in_order) {
            continue;
        }
        bool item_open =
            call->stage > STAGE_BEGUN && call->stage < STAGE_ITEM_DONE && call->stage != STAGE_THOUGHT_DONE;
        /* the open item must be closed first */
        HOLDS(!item_open || (events[i].to != STAGE_ERROR && events[i].to != STAGE_END));
        call->stage = events[i].to;
        return;
    }
    HOLDS_OR(false, "%s in stage %d", kind, call->stage);
}

/* Takes an event of a stream whose earlier events are not known. */
static void take_joined(struct call *call, struct json_object *type) {
    HOLDS(call->stage != STAGE_END);
    bool ends =
        is_word(type, "response.completed") || is_word(type, "response.incomplete") || is_word(type, "response.failed");
    call->stage = ends ? STAGE_END : STAGE_BEGUN;
}

static void take_event(struct call *call, struct json_object *event) {
    struct json_object *type = member(event, "type");
    enum stage before = call->stage;
    char kind[96];
    HOLDS(!call->chat);
    HOLDS(count_at(event, "sequence_number") == call->sequence++);
    expect_same(call, event);
    if (call->after >= 0) {
        take_joined(call, type);
        return;
    }
    write_kind(event, kind);
    advance(call, kind);
    if (is_word(type, "response.output_item.added")) {
        begin_item(call);
    }
    HOLDS(!has(event, "output_index") || (size_t)count_at(event, "output_index") == call->items - 1);
    if (has(event, "delta")) {
        take_delta(call, member(event, "delta"), before == STAGE_CALL);
        if (is_word(type, "response.output_text.delta")) {
            append_entries(member(event, "logprobs"), &call->logprobs);
        }
    } else if (is_word(type, "response.output_text.done") || is_word(type, "response.reasoning_summary_text.done")) {
        expect_item(call, member(event, "text"));
        if (is_word(type, "response.output_text.done")) {
            expect_entries(call, member(event, "logprobs"));
        }
    } else if (is_word(type, "response.function_call_arguments.done")) {
        expect_item(call, member(event, "arguments"));
    } else if (is_word(type, "response.output_item.done")) {
        expect_item(call, item_text(member(event, "item")));
    } else if (call->stage == STAGE_END) {
        expect_output(call, member(event, "response"));
        expect_usage(member(member(event, "response"), "usage"), "input_tokens", "output_tokens");
    }
}

/* ---- the chat stream ---- */

/* Checks one call in a delta: the beginning of the call, or a part of its arguments. */
static void take_call_delta(struct call *call, struct json_object *calls) {
    struct json_object *entry = json_object_array_get_idx(calls, 0);
    struct json_object *arguments = member(member(entry, "function"), "arguments");
    HOLDS(json_object_array_length(calls) == 1);
    if (has(entry, "id")) {
        begin_item(call);
        call->all_calls++;
        HOLDS(json_object_get_string_len(arguments) == 0 && has(member(entry, "function"), "name"));
    } else {
        take_delta(call, arguments, false);
    }
    HOLDS((size_t)count_at(entry, "index") == call->items - 1);
}

/* The chunks of the next choice begin like those of the first one. */
static void end_choice(struct call *call) {
    if (call->choice + 1 < call->choices) {
        call->choice++;
        call->stage = STAGE_NONE;
        call->items = 0;
        call->spoke = false;
        call->item = call->text.len;
        return;
    }
    call->stage = call->usage ? STAGE_TEXT_DONE : STAGE_END;
}

/* Checks legacy completions, which begin with their text. */
static void take_text_choice(struct call *call, struct json_object *choice) {
    bool ends = json_object_is_type(member(choice, "finish_reason"), json_type_string);
    HOLDS(call->stage == STAGE_NONE || call->stage == STAGE_BEGUN);
    take_delta(call, member(choice, "text"), ends);
    HOLDS(!ends || json_object_get_string_len(member(choice, "text")) == 0);
    call->stage = STAGE_BEGUN;
    if (ends) {
        end_choice(call);
    }
}

static void take_chunk(struct call *call, struct json_object *chunk) {
    struct json_object *choices = member(chunk, "choices");
    HOLDS(call->chat && call->stage != STAGE_END);
    if (json_object_array_length(choices) == 0) {
        HOLDS(call->usage && call->stage == STAGE_TEXT_DONE);
        expect_usage(member(chunk, "usage"), "prompt_tokens", "completion_tokens");
        call->stage = STAGE_END;
        return;
    }
    struct json_object *choice = json_object_array_get_idx(choices, 0);
    HOLDS(json_object_array_length(choices) == 1);
    HOLDS(has(chunk, "usage") == call->usage);
    HOLDS(count_at(choice, "index") == call->choice);
    if (call->legacy) {
        take_text_choice(call, choice);
        return;
    }
    struct json_object *delta = member(choice, "delta");
    if (call->stage == STAGE_NONE) {
        HOLDS(is_word(member(delta, "role"), "assistant"));
        call->stage = STAGE_BEGUN;
    } else if (json_object_is_type(member(choice, "finish_reason"), json_type_string)) {
        HOLDS(call->stage == STAGE_BEGUN && json_object_object_length(delta) == 0);
        end_choice(call);
    } else {
        HOLDS(call->stage == STAGE_BEGUN);
        if (has(delta, "tool_calls")) {
            take_call_delta(call, member(delta, "tool_calls"));
        } else {
            bool thought = has(delta, "reasoning_content");
            HOLDS(call->items == 0); /* no text may follow a call */
            HOLDS(!thought || !call->spoke);
            call->spoke |= !thought;
            take_delta(call, member(delta, thought ? "reasoning_content" : "content"), false);
        }
    }
}

/* ---- what the front sends ---- */

static void take_notification(struct json_object *message) {
    struct json_object *params = member(message, "params");
    struct json_object *method = member(message, "method");
    struct call *call = call_named(member(params, "id"));
    HOLDS(call->stream && call->asked > call->answered && host_room > 0);
    if (is_word(method, "responses.event")) {
        take_event(call, member(params, "event"));
    } else {
        HOLDS(is_word(method, call->legacy ? "completions.chunk" : "chat.completions.chunk"));
        take_chunk(call, member(params, "chunk"));
    }
}

/* A chat stream has its finish chunk if and only if the answer ended well. */
static void expect_stream_ended(const struct call *call, struct json_object *object, bool ok) {
    bool begun = call->stage == STAGE_BEGUN || (call->legacy && call->stage == STAGE_NONE);
    bool nothing = call->after >= 0 && call->stage == STAGE_NONE; /* the reader joined after the last event */
    bool goes_on = call->replay || (has(object, "background") && json_object_get_boolean(member(object, "background")));
    bool cut = ok && call->left && goes_on;
    HOLDS_OR(call->stage == STAGE_END || (call->chat && !ok && begun) || nothing || cut, "stage %d", call->stage);
}

/*
 * Checks a completion's message: its reasoning, its text, then its calls, which begin at `at` in the streamed calls.
 * Returns where the calls end; adds their number to `call_count`.
 */
static size_t expect_message(const struct call *call, struct json_object *message, size_t at, size_t *call_count) {
    struct json_object *calls = has(message, "tool_calls") ? member(message, "tool_calls") : NULL;
    struct json_object *text = member(message, "content");
    size_t count = calls ? json_object_array_length(calls) : 0;
    HOLDS(text || count > 0);
    if (call->stream && has(message, "reasoning_content")) {
        at = expect_text(call, at, member(message, "reasoning_content"));
    }
    if (call->stream && text) {
        at = expect_text(call, at, text);
    }
    for (size_t i = 0; i < count && call->stream; i++) {
        struct json_object *function = member(json_object_array_get_idx(calls, i), "function");
        at = expect_text(call, at, member(function, "arguments"));
    }
    *call_count += count;
    return at;
}

static void expect_choices(const struct call *call, struct json_object *choices, bool ok) {
    size_t count = json_object_array_length(choices);
    size_t at = 0;
    size_t calls = 0;
    HOLDS(count >= 1);
    HOLDS(call->choices == 0 || (ok ? (int64_t)count == call->choices : (int64_t)count <= call->choices));
    for (size_t i = 0; i < count; i++) {
        struct json_object *choice = json_object_array_get_idx(choices, i);
        HOLDS((size_t)count_at(choice, "index") == i);
        at = expect_message(call, member(choice, "message"), at, &calls);
    }
    HOLDS(!call->stream || (at == call->text.len && calls == call->all_calls));
}

static void expect_text_choice(const struct call *call, struct json_object *choices) {
    struct json_object *text = member(json_object_array_get_idx(choices, 0), "text");
    HOLDS(json_object_array_length(choices) == 1);
    HOLDS(!call->stream || expect_text(call, 0, text) == call->text.len);
}

/* Checks the vectors that have come. */
static void take_vectors(struct json_object *object) {
    struct json_object *data = member(object, "data");
    for (size_t i = 0; i < json_object_array_length(data); i++) {
        struct json_object *entry = json_object_array_get_idx(data, i);
        HOLDS(is_word(member(entry, "object"), "embedding") && (size_t)count_at(entry, "index") == i);
        HOLDS(json_object_array_length(member(entry, "embedding")) > 0);
    }
    struct json_object *usage = member(object, "usage");
    if (usage) { /* null: the usage is not known */
        HOLDS(count_at(usage, "total_tokens") == count_at(usage, "prompt_tokens"));
    }
}

/* Whether the result only has the rest of a response, because a stream had the whole response. */
static bool is_end(struct json_object *object) {
    return !has(object, "output");
}

static void expect_end(struct call *call, struct json_object *object, bool ok) {
    HOLDS(call->stream && !call->chat && call->stage == STAGE_END);
    HOLDS(json_object_object_length(object) == 3 && is_word(member(object, "object"), "response"));
    HOLDS(is_word(member(object, "id"), call->told ? call->told->id : json_object_get_string(member(object, "id"))));
    expect_stream_ended(call, object, ok);
}

static void take_object(struct call *call, struct json_object *result, bool ok) {
    struct json_object *object = member(result, has(result, "response") ? "response" : "completion");
    if (has(result, "response") && is_end(object)) {
        expect_end(call, object, ok);
        return;
    }
    HOLDS(!call->stream || call->chat == has(result, "completion"));
    if (has(result, "response")) {
        (void)note_response(object);
    }
    if (has(result, "response") && runs(object)) { /* the call has no stream, or a cancel has named it */
        HOLDS(ok && (!call->replay || !call->stream || call->left));
        return;
    }
    if (has(result, "response")) {
        expect_output(call, object);
        expect_usage(member(object, "usage"), "input_tokens", "output_tokens");
        expect_details(member(object, "usage"));
    } else if (is_word(member(object, "object"), "text_completion")) {
        expect_text_choice(call, member(object, "choices"));
        expect_usage(member(object, "usage"), "prompt_tokens", "completion_tokens");
    } else {
        expect_choices(call, member(object, "choices"), ok);
        expect_usage(member(object, "usage"), "prompt_tokens", "completion_tokens");
    }
    if (call->chat && call->stage == STAGE_TEXT_DONE && !member(object, "usage")) {
        call->stage = STAGE_END; /* the usage is unknown, so no chunk with it comes */
    }
    if (call->stream) {
        expect_stream_ended(call, object, ok);
    }
}

/* A copy of the jobs from before a pulled frame was built, because the frame's job may be gone afterwards. */
static struct fm_job jobs_before[FM_JOBS_MAX];
static bool pulled;

/* Returns the closing job whose next result answers `call`; NULL if a method answers the call. */
static const struct fm_job *closing_job(const struct fm_rpc_id *call) {
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        const struct fm_job *job = pulled ? &jobs_before[i] : &front.jobs[i];
        unsigned sent = job->results_sent;
        bool says = job->state == FM_JOB_CLOSING && sent <= job->cancel_count;
        if (says && fm_rpc_id_equal(sent ? &job->cancel_calls[sent - 1] : &job->call, call)) {
            return job;
        }
    }
    return NULL;
}

/*
 * Results of jobs only come when there is room. A stopped job fails with the error of the stop, whatever the engine
 * sends later.
 */
static void expect_job_result(const struct fm_job *job, struct json_object *result, bool ok) {
    HOLDS(host_room > 0);
    /* it succeeds, whatever happened to the job */
    bool goes_on = !job->stream && (job->replays || job->answer.request.background);
    if (job->replays && job->end_error.code != FM_OK) {
        HOLDS(!ok && !has(result, "response")); /* the requested response does not exist */
    } else if (job->results_sent > 0 || goes_on) {
        HOLDS(ok);
    } else if (job->stopping && !front.ending) {
        HOLDS(!ok && is_word(member(member(result, "error"), "code"), fm_code_name(job->stop_error.code)));
    }
}

static void forget_call(struct call *call) {
    fm_buf_free(&call->text);
    fm_buf_free(&call->logprobs);
    struct call forgotten = {.id = call->id, .asked = call->asked, .answered = call->answered, .taken = call->taken};
    *call = forgotten;
    call->after = -1;
    fm_buf_init(&call->text, EVENT_MAX);
    fm_buf_init(&call->logprobs, EVENT_MAX);
}

static void take_result(struct call *call, struct json_object *result) {
    bool ok = json_object_get_boolean(member(result, "ok"));
    const struct fm_job *job = closing_job(&call->id);
    HOLDS(json_object_is_type(member(result, "ok"), json_type_boolean));
    HOLDS(ok != has(result, "error"));
    if (!ok) {
        expect_error(member(result, "error"));
    }
    if (job) {
        expect_job_result(job, result, ok);
    }
    if (has(result, "response") || has(result, "completion")) {
        take_object(call, result, ok);
    } else {
        if (has(result, "embeddings")) {
            take_vectors(member(result, "embeddings"));
        }
        HOLDS(call->stage == STAGE_NONE); /* a request that fails before its prompt is accepted has no events */
    }
    forget_call(call);
}

static void take_reply(struct json_object *message) {
    struct call *call = call_named(member(message, "id"));
    call->answered++;
    HOLDS_OR(call->answered <= call->asked, "%.*s is answered too often", call->id.len, call->id.text);
    HOLDS(has(message, "result") != has(message, "error"));
    HOLDS(!call->taken || has(message, "error"));
    if (has(message, "result")) {
        HOLDS(call->id.len > 0);
        take_result(call, member(message, "result"));
    } else {
        struct json_object *code = member(member(message, "error"), "code");
        int number = json_object_get_int(code);
        HOLDS(number == FM_RPC_PARSE || number == FM_RPC_INVALID || number == FM_RPC_METHOD || number == FM_RPC_PARAMS);
    }
}

/* Returns the body of exactly one whole frame. */
static struct json_object *unwrap(const char *frame, size_t len) {
    struct fm_framer framer;
    const char *body = NULL;
    size_t body_len = 0;
    fm_framer_init(&framer);
    HOLDS(fm_framer_next(&framer, &frame, &len, &body, &body_len) == FM_FRAME_BODY && len == 0);
    struct json_object *message = json_must_parse(body, body_len);
    HOLDS(is_word(member(message, "jsonrpc"), "2.0"));
    fm_framer_free(&framer);
    return message;
}

/* ---- in place of outbox.c and watchdog.c ---- */

void fm_outbox_send(struct fm_outbox *outbox, const char *frame, size_t len) {
    struct json_object *message = unwrap(frame, len);
    if (outbox == &front.engines[0].outbox) {
        engine_got(message);
    } else {
        has(message, "method") ? take_notification(message) : take_reply(message);
        host_room -= host_room > 0;
    }
    json_object_put(message);
}

static bool poked; /* the host's writer takes frames until there are none, and then waits for a poke */

void fm_outbox_poke(struct fm_outbox *outbox) {
    poked = poked || outbox == &front.outbox;
}

static bool marked;

void fm_outbox_mark(struct fm_outbox *outbox) {
    marked = outbox == &front.outbox;
}

/*
 * Queued frames of a stream go before its pulled frames. The host waits for a frame that a thread builds. The frame
 * also waits for the host, even if the host had room for a frame, because other frames may have taken this room.
 */
static bool next_of_jobs(const char **frame, size_t *len) {
    bool more;
    bool built;
    do {
        memcpy(jobs_before, front.jobs, sizeof jobs_before);
        marked = false;
        more = fm_streams_next(&front, frame, len);
        HOLDS(!more || marked);
        fm_front_enter(&front);
        built = front.large.built;
        fm_front_unlock(&front);
        host_room -= built && host_room == 1;
    } while (!more && built && host_room > 0);
    return more;
}

/* A job that the store reads must not be freed, whatever happens to the job. */
static void expect_stored_kept(void) {
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        HOLDS(!front.jobs[i].storing || front.jobs[i].state != FM_JOB_FREE);
    }
}

static bool next_of_host(const char **frame, size_t *len) {
    poked = false;
    bool reply = fm_store_next_reply(&front, frame, len);
    pulled = !reply && next_of_jobs(frame, len);
    poked = poked || reply || pulled;
    expect_stored_kept();
    return reply || pulled;
}

void front_write(void) {
    const char *frame;
    size_t len;
    bool more = true;
    while (more) {
        more = host_room > 0 && poked;
        if (more && next_of_host(&frame, &len)) {
            fm_outbox_send(&front.outbox, frame, len);
        }
        pulled = false;
        if (fm_engine_next_job(&front.engines[0], &frame, &len)) {
            fm_outbox_send(&front.engines[0].outbox, frame, len);
            more = true;
        }
    }
    HOLDS(host_room == 0 || !next_of_host(&frame, &len)); /* a frame that waits must have caused a poke */
}

void fm_outbox_close(struct fm_outbox *outbox) {
    (void)outbox;
    abort(); /* not called, because there is memory */
}

bool fm_outbox_has_room(struct fm_outbox *outbox) {
    (void)outbox;
    return host_room > 0;
}

int fm_outbox_start(struct fm_outbox *outbox, const struct fm_outbox_options *options) {
    (void)outbox;
    (void)options;
    abort(); /* fm_front_run is never called */
}

bool fm_outbox_stop(struct fm_outbox *outbox, int64_t flush_ms) {
    (void)outbox;
    (void)flush_ms;
    abort();
}

int fm_watchdog_start_locked(struct fm_front *the_front, struct fm_job *job) {
    (void)the_front;
    (void)job;
    return 0;
}

/* ---- what the host sends ---- */

static void note_retrieve(struct call *call, const struct fm_rpc_message *message) {
    struct json_object *value = NULL;
    call->replay = true;
    call->stream = json_object_object_get_ex(message->params, "stream", &value) && json_object_get_boolean(value);
    bool joins = json_object_object_get_ex(message->params, "starting_after", &value);
    call->after = joins && json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : -1;
    call->sequence = (int64_t)((uint64_t)call->after + 1);
    bool named = json_object_object_get_ex(message->params, "id", &value) && value;
    call->told = named ? find_told(json_object_get_string(value)) : NULL;
}

/* Notes that a cancel names the response, so its streams may end early. */
static void note_cancel(const struct fm_rpc_message *message) {
    struct json_object *value = NULL;
    struct fm_rpc_id id;
    bool cancels = strcmp(message->method, "$/cancelRequest") == 0;
    const char *name = cancels ? "id" : "request_id";
    if (!cancels && strcmp(message->method, "responses.cancel") != 0) {
        return;
    }
    if (json_object_object_get_ex(message->params, name, &value) && value && fm_rpc_id_read(value, &id)) {
        call_of(&id)->left = true;
    }
}

static void note_call(struct call *call, const struct fm_rpc_message *message) {
    bool legacy = strcmp(message->method, "completions.create") == 0;
    bool chat = legacy || strcmp(message->method, "chat.completions.create") == 0;
    struct json_object *options = NULL;
    struct json_object *value = NULL;
    forget_call(call);
    if (strcmp(message->method, "responses.retrieve") == 0) {
        note_retrieve(call, message);
        return;
    }
    if (!chat && strcmp(message->method, "responses.create") != 0) {
        return;
    }
    call->chat = chat;
    call->legacy = legacy;
    call->choices = json_object_object_get_ex(message->params, "n", &value) && value ? json_object_get_int64(value) : 1;
    call->stream = json_object_object_get_ex(message->params, "stream", &value) && json_object_get_boolean(value);
    call->usage = json_object_object_get_ex(message->params, "stream_options", &options) &&
                  json_object_object_get_ex(options, "include_usage", &value) && json_object_get_boolean(value);
}

static void on_message(void *context, const struct fm_rpc_message *message, struct json_object *root) {
    bool noted = message->kind == FM_RPC_REQUEST && !front.shutdown_called;
    unsigned answered = 0;
    if (message->kind != FM_RPC_RESPONSE) {
        note_cancel(message);
    }
    if (noted) {
        struct call *call = call_of(&message->id);
        call->taken = call->asked > call->answered;
        answered = call->answered;
        if (!call->taken) {
            note_call(call, message);
        }
        call->asked++;
    }
    fm_dispatch_handler.message(context, message, root);
    if (noted) {
        struct call *call = call_of(&message->id);
        HOLDS(!call->taken || call->answered == answered + 1);
        call->taken = false;
    }
}

static void on_fault(void *context, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *detail) {
    call_of(id)->asked++;
    fm_dispatch_handler.fault(context, id, code, detail);
}

bool host_send(const char *bytes, size_t len) {
    const struct fm_inbound_handler handler = {.context = &dispatcher, .message = on_message, .fault = on_fault};
    char *copy = exact_copy(bytes, len);
    if (!host.broken) {
        host.broken = fm_inbound_feed(&host.inbound, copy, len, &handler) != NULL;
    }
    free(copy);
    front_write();
    return !host.broken;
}

bool host_send_body(const char *body, size_t len) {
    char header[40];
    int header_len = snprintf(header, sizeof header, "Content-Length: %zu\r\n\r\n", len);
    return host_send(header, (size_t)header_len) && host_send(body, len);
}

static const char *const ids[] = {
    "1",
    "2",
    "3",
    "\"a\"",
    "\"1\"",
    "\"\"",
    "-9007199254740991",
    "9007199254740992",
    "1.5",
    "null",
    "true",
    "{}",
    "0",
    "\"\\u0000\\u0001\"",
    "4",
    "5",
    "6",
    "7",
    "8",
    "9",
};

static const char *const methods[] = {
    "responses.create",
    "chat.completions.create",
    "responses.cancel",
    "$/cancelRequest",
    "health.ping",
    "capabilities.get",
    "models.list",
    "process.shutdown",
    "__proto__",
    "",
    "responses.retrieve",
    "responses.delete",
    "responses.input_items",
};

static const char *const bodies[] = {
    "{\"input\":\"x\",\"stream\":true}",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"stream\":true}",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"stream\":true,\"stream_options\":{\"include_usage\":true}"
    "}",
    "{\"input\":\"x\"}",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"stop\":\"y\",\"fm\":{\"schema_report\":true}}",
    "{\"input\":[{\"role\":\"user\",\"content\":\"\\u0000\"}],\"stream\":true,\"instructions\":\"be\",\"metadata\":{"
    "\"a\":\"b\"},\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"n\",\"schema\":{\"a\":[]}}},\"fm\":{"
    "\"schema_report\":true}}",
    "{\"input\":\"x\",\"model\":\"other\"}",
    "{\"input\":\"\"}",
    "{}",
    "[]",
    "null",
    "7",
    "{\"input\":\"x\",\"stream\":true,\"tools\":[{\"type\":\"function\",\"name\":\"f\"},{\"type\":\"function\","
    "\"name\":"
    "\"g\"}]}",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"stream\":true,\"tools\":[{\"type\":\"function\","
    "\"function\":{\"name\":\"f\"}}]}",
    "{\"input\":\"x\",\"parallel_tool_calls\":false,\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{}}"
    "]"
    "}",
    "{\"input\":\"x\",\"background\":true}",
    "{\"input\":\"x\",\"background\":true,\"stream\":true}",
    "{\"previous_response_id\":\"resp_1\",\"stream\":true}",
    /* repeated so often that the response's frames are large */
    "{\"input\":\"x\",\"background\":true,\"instructions\":\"%s\"}",
};

/* Appends the params, with the instructions if they contain some. */
static void append_params(const char *params, struct fm_buf *body) {
    const char *hole = strstr(params, "%s");
    fm_buf_append(body, params, hole ? (size_t)(hole - params) : strlen(params));
    for (size_t i = 0; hole && i <= FM_LARGE; i++) {
        fm_buf_append_char(body, 'i');
    }
    fm_buf_append_str(body, hole ? hole + 2 : "");
}

/* Each of these calls has one body; without a body: the events of a stored response. */
static const struct {
    const char *method;
    const char *params;
} whole_calls[] = {
    {"responses.create", "{\"input\":\"x\",\"stream\":true,\"include\":[\"message.output_text.logprobs\"]}"},
    {"chat.completions.create", "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"stream\":true,\"n\":3}"},
    {"chat.completions.create", "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"stream\":true,\"n\":2,"
                                "\"logprobs\":true,\"top_logprobs\":1,\"stream_options\":{\"include_usage\":true}}"},
    {"completions.create", "{\"prompt\":\"x\",\"stream\":true}"},
    {"completions.create",
     "{\"prompt\":\"x\",\"stream\":true,\"echo\":true,\"stream_options\":{\"include_usage\":true}}"},
    {"responses.input_tokens", "{\"input\":\"x\"}"},
    {"responses.compact", "{\"input\":\"x\",\"model\":\"fake\"}"},
    {"responses.retrieve", NULL},
    {"responses.retrieve", NULL},
    {"embeddings.create", "{\"input\":[\"x\",\"y\"],\"dimensions\":2}"},
};

/* Requests the events of a response that the host has seen, or of a response in flight. */
static void build_retrieve(struct choices *from, struct fm_buf *body) {
    unsigned choice = choose(from);
    const struct fm_job *job = nth_job(choice / 4);
    size_t told = host.told_count ? choice / 4 % host.told_count : 0;
    const char *id = host.told_count ? host.told[told]->id : "resp_none";
    bool told_to_host = job && (job->answer.opened || job->answer.request.background);
    char after[40] = "";
    if (choice & 2) {
        snprintf(after, sizeof after, ",\"starting_after\":%zu", choose_of(from, 16));
    }
    fm_buf_append_str(body, "{\"stream\":true,\"id\":\"");
    fm_buf_append_str(body, choice & 1 && told_to_host ? job->answer.id : id);
    fm_buf_append_char(body, '"');
    fm_buf_append_str(body, after);
    fm_buf_append_char(body, '}');
}

/* Writes an id of the table, or a number. */
static void append_id(unsigned choice, struct fm_buf *body) {
    char number[12];
    snprintf(number, sizeof number, "%u", choice);
    fm_buf_append_str(body, choice < COUNT(ids) ? ids[choice] : number);
}

/* Writes what a cancel names: a job by its answer or its call, something unknown, or too much or too little. */
static void build_cancel(struct choices *from, struct fm_buf *body) {
    unsigned choice = choose(from);
    if (choice >= 252) {
        fm_buf_append_str(body, choice & 1 ? "{\"id\":\"a\",\"request_id\":1}" : "{\"zz\":1}");
        return;
    }
    const struct fm_job *job = nth_job(choice / 8);
    const char *name = choice & 1 ? "request_id" : "id";
    fm_buf_append_str(body, "{\"");
    fm_buf_append_str(body, name);
    fm_buf_append_str(body, "\":");
    if (job && choice & 2) {
        fm_buf_append(body, job->call.text, job->call.len);
    } else if (job && choice & 4) {
        fm_buf_append_char(body, '"');
        fm_buf_append_str(body, job->answer.id);
        fm_buf_append_char(body, '"');
    } else {
        append_id(choose(from), body);
    }
    fm_buf_append_char(body, '}');
}

void host_call(struct choices *from) {
    unsigned choice = choose(from);
    bool whole = choice >= WHOLE && choice < WHOLE + COUNT(whole_calls);
    size_t method = choice % COUNT(methods);
    struct fm_buf body;
    fm_buf_init(&body, EVENT_MAX);
    fm_buf_append_str(&body, "{\"jsonrpc\":\"2.0\"");
    if (choice < 250) { /* without an id, the message is a notification */
        fm_buf_append_str(&body, ",\"id\":");
        append_id(choose(from), &body);
    }
    fm_buf_append_str(&body, ",\"method\":\"");
    fm_buf_append_str(&body, whole ? whole_calls[choice - WHOLE].method : methods[method]);
    fm_buf_append_str(&body, "\",\"params\":");
    if (whole && whole_calls[choice - WHOLE].params) {
        fm_buf_append_str(&body, whole_calls[choice - WHOLE].params);
    } else if (whole) {
        build_retrieve(from, &body);
    } else if (method == 2 || method == 3 || method >= 10) {
        build_cancel(from, &body);
    } else {
        append_params(bodies[choose_of(from, COUNT(bodies))], &body);
    }
    fm_buf_append_char(&body, '}');
    host_send_body(body.data, body.len);
    fm_buf_free(&body);
}

/* While another writer builds a frame, the host's writer gets nothing. If something waits, it is poked afterwards. */
static void ask_in_vain(void) {
    const char *frame;
    size_t len;
    fm_front_build_begin_locked(&front);
    poked = false;
    HOLDS(!fm_store_next_reply(&front, &frame, &len) && !fm_streams_next(&front, &frame, &len));
    fm_front_build_end_locked(&front);
}

void host_takes(unsigned frames) {
    host_room = frames;
    fm_front_enter(&front);
    if (host_room > 0) {
        ask_in_vain();
    }
    fm_front_leave(&front);
    front_write();
}

/* ---- the state ---- */

unsigned jobs_held(void) {
    unsigned held = 0;
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        held += front.jobs[i].state == FM_JOB_SENT || front.jobs[i].state == FM_JOB_RUNNING;
    }
    return held;
}

struct fm_job *nth_job(size_t n) {
    n = front.jobs_in_flight ? n % front.jobs_in_flight : 0;
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        if (front.jobs[i].state != FM_JOB_FREE && n-- == 0) {
            return &front.jobs[i];
        }
    }
    return NULL;
}

/* ---- the store ---- */

/* Work for the store is done between two steps, in memory. */
static struct fm_store *store;

bool fm_store_thread_start_locked(struct fm_front *of) {
    (void)of;
    return true;
}

static void run_store(void) {
    pthread_mutex_lock(&front.lock);
    while (fm_store_run_next_locked(&front, &store)) {
    }
    pthread_mutex_unlock(&front.lock);
}

/* Lets the store and the writers finish all their work. */
static void settle(void) {
    do {
        run_store();
        front_write();
    } while (front.store_queue.first && (host_room > 0 || !front.store_queue.reply_waits));
}

/* Returns the number of calls with this id that one of `jobs` or the store will answer. */
static unsigned in_flight(const struct fm_rpc_id *id, struct fm_job *const *jobs, size_t count) {
    unsigned found = front.shutdown_called && fm_rpc_id_equal(&front.shutdown_call, id);
    for (size_t i = 0; i < count; i++) {
        const struct fm_job *job = jobs[i];
        bool stays = job->answer.request.background || job->readers > 0;
        HOLDS(job->cancel_count <= FM_CANCEL_WAITERS && job->results_sent <= job->cancel_count + stays);
        found += job->results_sent == 0 && fm_rpc_id_equal(&job->call, id);
        for (unsigned k = job->results_sent ? job->results_sent - 1 : 0; k < job->cancel_count; k++) {
            found += fm_rpc_id_equal(&job->cancel_calls[k], id);
        }
    }
    return found + fm_store_answers_locked(&front, id);
}

/* Returns the size of the output of all choices. For a stored answer that is read, returns what its reader may still
 * get. */
static size_t output_of(const struct fm_job *job) {
    const struct fm_answer *answer = job->source ? &job->source->answer : &job->answer;
    size_t len = answer->output.len;
    for (size_t i = 0; i < answer->choice; i++) {
        len += answer->earlier[i]->output.len;
    }
    return len;
}

void expect_calls(void) {
    struct fm_job *jobs[FM_JOBS_MAX];
    size_t count = 0;
    size_t text = 0;
    settle();
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        jobs[count] = &front.jobs[i];
        count += front.jobs[i].state != FM_JOB_FREE;
        text += front.jobs[i].state != FM_JOB_FREE ? output_of(&front.jobs[i]) : 0;
    }
    HOLDS(count == front.jobs_in_flight);
    for (size_t i = 0; i < host.count; i++) {
        const struct call *call = &host.calls[i];
        unsigned left = call->asked - call->answered;
        HOLDS_OR(left == (call->id.len ? in_flight(&call->id, jobs, count) : 0), "%u calls of %.*s are open", left,
                 call->id.len, call->id.text);
    }
    HOLDS(fm_streams_backlog_locked(&front) <= text);
    HOLDS(dispatcher.reply.cap <= FM_KEEP_BYTES && front.engines[0].message.cap <= FM_KEEP_BYTES);
    HOLDS(front.event.cap <= FM_KEEP_BYTES && (host_room == 0 || front.large.buf.cap <= FM_KEEP_BYTES));
}

static void init_once(void) {
    static bool done;
    if (done) {
        return;
    }
    done = true;
    const struct fm_options options = {.store_bytes = 1 << 20};
    front.programs[0].files = (struct fm_engine_files){.name = "fake", .dir = ""};
    front.program_count = 1;
    fm_front_state_init(&front, &options);
    front.engines[0].program = &front.programs[0];
    fm_dispatcher_init(&dispatcher, &front);
    fm_store_queue_init(&front.store_queue);
}

void front_begin(void) {
    init_once();
    host_room = 1000000;
    fm_inbound_init(&host.inbound);
}

void front_end(void) {
    pthread_mutex_lock(&front.lock);
    front.ending = true;
    fm_job_settle_all_locked(&front);
    fm_front_leave(&front);
    host_takes(1000000);
    settle();
    HOLDS(front.jobs_in_flight == 0 && !front.store_queue.reply_waits);
    expect_calls();
    HOLDS(front.jobs_in_flight == 0 && jobs_held() == 0);
    for (size_t i = 0; i < host.count; i++) {
        fm_buf_free(&host.calls[i].text);
        fm_buf_free(&host.calls[i].logprobs);
    }
    free(host.calls);
    free_told();
    fm_inbound_free(&host.inbound);
    memset(&host, 0, sizeof host);
    fm_store_close(store);
    store = NULL;
    fm_buf_free(&front.store_queue.reply);
    fm_dispatcher_free(&dispatcher);
    fm_buf_free(&front.event);
    fm_buf_free(&front.engines[0].message);
    fm_buf_free(&front.engines[0].large);
    fm_buf_free(&front.large.buf);
    fm_buf_free(&front.store_queue.pulled);
    fm_crash_loop_free(&front.programs[0].crash_loop);
    front.programs[0] = (struct fm_program){.files = front.programs[0].files};
    front.engines[0] = (struct fm_engine){.front = &front,
                                          .program = &front.programs[0],
                                          .message = front.engines[0].message,
                                          .large = front.engines[0].large};
    front.last_number = 0;
    front.next_stream = 0;
    front.ending = false;
    front.shutdown_called = false;
    front.shutdown_call.len = 0;
}

/* ---- in place of supervisor.c: no engine is asked whether it is available ---- */

void fm_engine_ask_locked(struct fm_program *program, struct fm_engine *probe) {
    (void)program;
    (void)probe;
}
