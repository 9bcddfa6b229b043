/* Reads a stream of chat completions. Its end mark is `finish_reason`; the usage follows in its own chunk. */
#include "engine/remote/reader.h"

#include <json-c/json.h>
#include <string.h>

static void read_usage(struct fm_remote_reader *reader, struct json_object *usage) {
    fm_reader_count(usage, "prompt_tokens", &reader->usage.input);
    fm_reader_count(usage, "completion_tokens", &reader->usage.output);
    fm_reader_count(fm_reader_object(usage, "prompt_tokens_details"), "cached_tokens", &reader->usage.cached);
    fm_reader_count(fm_reader_object(usage, "completion_tokens_details"), "reasoning_tokens", &reader->usage.reasoning);
}

static void read_finish(struct fm_remote_reader *reader, const char *finish) {
    static const struct {
        const char *word;
        enum fm_reason reason;
    } words[] = {{"stop", FM_REASON_STOP},           {"tool_calls", FM_REASON_STOP},
                 {"function_call", FM_REASON_STOP},  {"length", FM_REASON_LENGTH},
                 {"model_length", FM_REASON_LENGTH}, {"content_filter", FM_REASON_CONTENT_FILTER}};
    for (size_t i = 0; i < sizeof words / sizeof words[0] && *finish; i++) {
        if (strcmp(words[i].word, finish) == 0) {
            reader->reason = words[i].reason;
            return;
        }
    }
    if (strcmp(finish, "abort") == 0) { /* vLLM and SGLang send it when they are ended */
        fm_reader_break(reader, "gave the answer up");
    } else if (*finish) {
        fm_reader_fail(reader, "it ended for a reason that is not known");
    }
}

/*
 * Whether a piece begins another call though it has no id, and no index other than the last one's. In a list without
 * indices each entry is a separate call. A piece with a name and arguments that comes after a whole call is the next
 * call.
 */
static bool is_next_call(const struct fm_remote_reader *reader, struct json_object *function, bool indexed,
                         size_t place) {
    struct json_object *arguments = fm_reader_member(function, "arguments");
    bool more = json_object_is_type(arguments, json_type_object) || *fm_reader_string(function, "arguments");
    bool named = *fm_reader_string(function, "name");
    return named && ((place > 0 && !indexed) || (reader->call_closed && (more || !indexed)));
}

/*
 * Reads a piece of a call. The first piece has the name. Some servers repeat the name in later pieces; some tell calls
 * apart by the index, others by the id. `place`: the piece's index in the list.
 */
static void read_call(struct fm_remote_reader *reader, struct json_object *call, struct json_object *function,
                      size_t place) {
    const char *id = fm_reader_string(call, "id");
    int64_t index = -1;
    fm_reader_count(call, "index", &index);
    bool indexed = index >= 0;
    index = indexed ? index : reader->call_index;
    bool other_id = *id && !fm_reader_is_last_call(reader, id);
    bool next = reader->call_count == 0 || index > reader->call_index || other_id;
    next = next || (!*id && is_next_call(reader, function, indexed, place));
    if (!json_object_is_type(function, json_type_object)) {
        fm_reader_fail(reader, "a call of something else than a function");
    } else if (index < reader->call_index || (other_id && fm_reader_knows_call(reader, id)) ||
               (!next && !indexed && !*id && place > 0)) {
        fm_reader_fail(reader, "pieces of several calls are mixed");
    } else if (next) {
        fm_reader_begin_call(reader, id, fm_reader_string(function, "name"));
        reader->call_index = index;
    }
    fm_reader_emit_arguments(reader, function, "arguments");
}

/* Reads a list of calls. `whole`: the list has all calls of the answer, first those that were read before. */
static void read_calls(struct fm_remote_reader *reader, struct json_object *said, bool whole) {
    struct json_object *list = fm_reader_member(said, "tool_calls");
    struct json_object *single =
        fm_reader_member(said, "function_call"); /* the form of calls before there were tools */
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    size_t known = whole ? reader->call_count : 0;
    if (list && !json_object_is_type(list, json_type_array)) {
        fm_reader_fail(reader, "the calls are no list");
    }
    for (size_t i = known; i < count && reader->code == FM_OK; i++) {
        struct json_object *call = json_object_array_get_idx(list, i);
        read_call(reader, call, fm_reader_member(call, "function"), i);
    }
    if (single && count == 0 && known == 0) {
        read_call(reader, NULL, single, 0);
    }
}

/*
 * Hands out the reasoning. Servers name this member differently; this server's name for it is reported, for the next
 * request.
 */
static struct json_object *find_thought(struct fm_remote_reader *reader, struct json_object *said) {
    struct json_object *thought = fm_reader_member(said, "reasoning_content");
    bool empty =
        !thought || (json_object_is_type(thought, json_type_string) && json_object_get_string_len(thought) == 0);
    if (empty && *fm_reader_string(said, "reasoning") && !reader->told_field) {
        reader->told_field = true;
    }
    return empty ? fm_reader_member(said, "reasoning") : thought;
}

static void tell_field(struct fm_remote_reader *reader) {
    struct json_object *field = json_object_new_string("reasoning");
    fm_reader_emit_state(reader, field);
    json_object_put(field);
}

/* Reads a piece of a choice's message. */
static void read_delta(struct fm_remote_reader *reader, struct json_object *delta) {
    bool told = reader->told_field;
    fm_reader_say(reader, find_thought(reader, delta), FM_REMOTE_REASONING, NULL);
    if (reader->told_field && !told) {
        tell_field(reader);
    }
    fm_reader_say(reader, fm_reader_member(delta, "content"), FM_REMOTE_TEXT, NULL);
    fm_reader_say(reader, fm_reader_member(delta, "refusal"), FM_REMOTE_REFUSAL, NULL);
    read_calls(reader, delta, false);
}

/* Reads a whole message, from a server that does not stream, or from one that repeats the message after its pieces. */
static void read_message(struct fm_remote_reader *reader, struct json_object *message) {
    static const enum fm_remote_part_kind kinds[] = {FM_REMOTE_REASONING, FM_REMOTE_TEXT, FM_REMOTE_REFUSAL};
    bool told = reader->told_field;
    struct fm_said said;
    fm_said_init(&said);
    fm_reader_say(reader, find_thought(reader, message), FM_REMOTE_REASONING, &said);
    fm_reader_say(reader, fm_reader_member(message, "content"), FM_REMOTE_TEXT, &said);
    fm_reader_say(reader, fm_reader_member(message, "refusal"), FM_REMOTE_REFUSAL, &said);
    for (size_t i = 0; i < FM_READER_KINDS; i++) {
        const struct fm_buf *text = &said.texts[kinds[i]];
        if (text->len > 0 && !fm_reader_emit_rest(reader, kinds[i], FM_TALLY_ANSWER, text->data, text->len)) {
            fm_reader_fail(reader, "the whole message is another one than its pieces");
        }
    }
    if (reader->told_field && !told) {
        tell_field(reader);
    }
    fm_said_free(&said);
    read_calls(reader, message, true);
}

static void read_choice(struct fm_remote_reader *reader, struct json_object *choice) {
    struct json_object *delta = fm_reader_member(choice, "delta");
    struct json_object *message = fm_reader_member(choice, "message");
    struct json_object *finish = fm_reader_member(choice, "finish_reason");
    if (!json_object_is_type(choice, json_type_object) || (delta && !json_object_is_type(delta, json_type_object)) ||
        (message && !json_object_is_type(message, json_type_object)) ||
        (finish && !json_object_is_type(finish, json_type_string))) {
        fm_reader_fail(reader, "a member of a choice is of another kind than expected");
        return;
    }
    fm_reader_emit_logprobs(reader, fm_reader_object(fm_reader_object(choice, "logprobs"), "content"));
    read_delta(reader, delta);
    read_message(reader, message);
    if (!delta && !message) {
        fm_reader_emit_member(reader, FM_REMOTE_TEXT, choice, "text"); /* the text, as in legacy completions */
    }
    read_finish(reader, fm_reader_string(choice, "finish_reason"));
}

void fm_reader_chat(struct fm_remote_reader *reader, const char *name, struct json_object *data) {
    struct json_object *choices = fm_reader_member(data, "choices");
    if (fm_reader_member(data, "error") || strcmp(name, "error") == 0) {
        fm_reader_report(reader, data);
        return;
    }
    if (choices && !json_object_is_type(choices, json_type_array)) {
        fm_reader_fail(reader, "the choices are no list");
    } else if (choices && json_object_array_length(choices) > 0) {
        read_choice(reader, json_object_array_get_idx(choices, 0));
    }
    read_usage(reader, fm_reader_object(data, "usage"));
}
