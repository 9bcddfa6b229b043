/*
 * Tool forms: our own, and a model's. A model's form is read off the text that its chat template renders for calls:
 *
 *     QUESTION <tool_call>\n{"name": "fm_first", "arguments": {"fm_key": ...}}\n</tool_call>\n<tool_call>...<|im_end|>
 *
 * QUESTION is the prompt, which an answer continues. `trigger` and `name` are the text up to the first name.
 * `arguments` is the text between a name and its arguments, and `next` the text between two calls. `end` goes up to the
 * token that ends the turn.
 */
#include "base/utf8.h"
#include "engine/chat/tools.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

/* The least length in bytes of a trigger that is plain text. */
#define TRIGGER_MIN 4u

#define MARK(literal)                                                                                                  \
    { .text = (literal), .len = sizeof(literal) - 1 }

const struct fm_tool_form fm_tool_form_own = {
    .trigger = MARK(FM_TOOL_BEGIN),
    .name = MARK(FM_TOOL_NAME),
    .arguments = MARK(FM_TOOL_ARGUMENTS),
    .next = MARK(FM_TOOL_END FM_TOOL_NEXT FM_TOOL_NAME),
    .end = MARK(FM_TOOL_END),
};

bool fm_tools_callable(const struct fm_kit_job *job) {
    return job->tool_count > 0 && job->tool_mode != FM_TOOLS_NONE;
}

/* ---- the conversation ---- */

#define CALLS 3

/* All our texts in a rendered conversation contain this word, except ids. No mark may contain it. */
#define PROBE "fm_"

/* With capital letters too, because a template may make everything lower case. */
#define ARGUMENTS "{\"fm_key\":\"fm_Value\",\"fm_flag\":true}"
#define SCHEMA                                                                                                         \
    "{\"type\":\"object\",\"properties\":{\"fm_key\":{\"type\":\"string\"},\"fm_flag\":{\"type\":\"boolean\"}}}"
#define TEXT    "fm_Text"
#define SYSTEM  "fm_System"
#define OUTCOME "fm_Outcome"

/* Ids with FM_TOOL_ID_LEN bytes: the marks of a form have ids of this length. */
#define ID       "fmCallId1"
#define OTHER_ID "fmCallId10"
_Static_assert(sizeof(ID) - 1 == FM_TOOL_ID_LEN, "an id has this length");

#define LENGTH_OF(literal) (sizeof(literal) - 1)

static const struct fm_chat_call calls[CALLS] = {
    {ID, "fm_First", ARGUMENTS, LENGTH_OF(ARGUMENTS)},
    {ID, "fm_second", ARGUMENTS, LENGTH_OF(ARGUMENTS)},
    {ID, "fm_third", ARGUMENTS, LENGTH_OF(ARGUMENTS)},
};

static const struct fm_chat_call empty_call = {ID, "fm_First", "{}", 2};
static const struct fm_chat_call other_call = {OTHER_ID, "fm_First", ARGUMENTS, LENGTH_OF(ARGUMENTS)};

static const struct fm_chat_tool tools[CALLS] = {
    {"fm_First", "First.", SCHEMA, LENGTH_OF(SCHEMA)},
    {"fm_second", "Second.", SCHEMA, LENGTH_OF(SCHEMA)},
    {"fm_third", "Third.", SCHEMA, LENGTH_OF(SCHEMA)},
};

static const struct fm_chat_message instructions = {
    .role = "system", .content = SYSTEM, .content_len = LENGTH_OF(SYSTEM)};
static const struct fm_chat_message question = {.role = "user", .content = "hi", .content_len = 2};
static const struct fm_chat_message text = {.role = "assistant", .content = TEXT, .content_len = LENGTH_OF(TEXT)};
static const struct fm_chat_message one_call = {.role = "assistant", .content = "", .calls = calls, .call_count = 1};
static const struct fm_chat_message call_of_other_id = {
    .role = "assistant", .content = "", .calls = &other_call, .call_count = 1};
static const struct fm_chat_message call_without_arguments = {
    .role = "assistant", .content = "", .calls = &empty_call, .call_count = 1};
static const struct fm_chat_message all_calls = {
    .role = "assistant", .content = "", .calls = calls, .call_count = CALLS};
static const struct fm_chat_message outcome = {.role = "tool",
                                               .content = OUTCOME,
                                               .content_len = LENGTH_OF(OUTCOME),
                                               .answered_id = ID,
                                               .answered_name = "fm_First"};

/* A part of a template's text. */
struct part {
    const char *text;
    size_t len;
};

/* The conversations that are rendered. Each is named after its end. */
enum conversation {
    QUESTION,
    SYSTEM_TOO,
    PLAIN,
    ONE_CALL,
    OTHER_ID_CALL,
    EMPTY_CALL,
    ALL_CALLS,
    CALL_AND_OUTCOME,
    HISTORY, /* the call and its outcome are in the middle */
    CONVERSATIONS
};

#define MESSAGES_MAX 8

static const struct {
    const struct fm_chat_message *messages[MESSAGES_MAX];
    bool closed;
} conversations[CONVERSATIONS] = {
    [QUESTION] = {{&question}, false},
    [SYSTEM_TOO] = {{&instructions, &question}, false},
    [PLAIN] = {{&question, &text}, true},
    [ONE_CALL] = {{&question, &one_call}, true},
    [OTHER_ID_CALL] = {{&question, &call_of_other_id}, true},
    [EMPTY_CALL] = {{&question, &call_without_arguments}, true},
    [ALL_CALLS] = {{&question, &all_calls}, true},
    [CALL_AND_OUTCOME] = {{&question, &one_call, &outcome}, true},
    [HISTORY] = {{&question, &text, &question, &one_call, &outcome, &text, &question, &text}, true},
};

/* What the template renders for a conversation; empty if it refuses it. */
static enum fm_code render(const struct fm_tool_template *from, enum conversation which, struct part *part,
                           struct fm_error *error) {
    struct fm_chat_message messages[MESSAGES_MAX];
    struct fm_chat chat = {.messages = messages,
                           .tools = tools,
                           .tool_count = CALLS,
                           .closed = conversations[which].closed};
    char *made = NULL;
    for (size_t i = 0; i < MESSAGES_MAX && conversations[which].messages[i]; i++) {
        messages[chat.count++] = *conversations[which].messages[i];
    }
    enum fm_code code = from->render(from->argument, &chat, &made, &part->len, error);
    part->text = made;
    return code == FM_INTERNAL ? code : FM_OK;
}

/* ---- reading it ---- */

/* The first place of `literal` in `part` from `from` on; `part->len` if there is none. */
static size_t find_literal(const struct part *part, size_t from, const char *literal) {
    const char *found = from < part->len ? memmem(part->text + from, part->len - from, literal, strlen(literal)) : NULL;
    return found ? (size_t)(found - part->text) : part->len;
}

static bool contains(const struct part *part, const char *literal) {
    return find_literal(part, 0, literal) < part->len;
}

static bool begins_with(const struct part *part, const struct part *beginning) {
    return part->len >= beginning->len && part->text && memcmp(part->text, beginning->text, beginning->len) == 0;
}

/*
 * Whether the template treats tools alike with a system message and without: it shows them in both cases, or in
 * neither. In the latter case `*tells` becomes true.
 */
static bool shows_tools(const struct part *parts, bool *tells) {
    const bool shown = contains(&parts[QUESTION], calls[0].name);
    *tells = !shown;
    return contains(&parts[SYSTEM_TOO], calls[0].name) == shown && contains(&parts[SYSTEM_TOO], SYSTEM);
}

/*
 * Whether no name stands between brackets like those of a control token: otherwise a name could become a control token.
 */
static bool names_stand_apart(const struct part *parts) {
    for (size_t i = 0; i < CONVERSATIONS; i++) {
        for (size_t k = 0; k < CALLS; k++) {
            size_t at = find_literal(&parts[i], 0, calls[k].name);
            for (; at < parts[i].len; at = find_literal(&parts[i], at + 1, calls[k].name)) {
                const size_t end = at + strlen(calls[k].name);
                if (at > 0 && strchr("<[|", parts[i].text[at - 1]) && end < parts[i].len &&
                    strchr(">]|", parts[i].text[end])) {
                    return false;
                }
            }
        }
    }
    return true;
}

/* `part` without `mark` at its end, which begins a thought or a text. */
static struct part before_mark(const struct part *part, const char *mark) {
    const size_t len = fm_tool_trimmed(mark, strlen(mark));
    bool ends = fm_tool_ends_with(part->text, part->len, mark, len);
    return (struct part){part->text, ends ? fm_tool_trimmed(part->text, part->len) - len : part->len};
}

/* Where the call at `at` begins; an empty thought before it is skipped. */
static size_t after_thought(const struct part *part, size_t at, const struct fm_tool_turn *turn) {
    const size_t begin_len = strlen(turn->thought);
    const size_t end_len = strlen(turn->thought_end) - strlen(turn->lead);
    const size_t end = at + begin_len;
    bool thinks = begin_len > 0 && end + end_len <= part->len && memcmp(part->text + at, turn->thought, begin_len) == 0;
    return thinks && memcmp(part->text + end, turn->thought_end, end_len) == 0 ? end + end_len : at;
}

/*
 * Finds where an answer begins in a closed conversation: after the question, and after text that the template puts
 * before both texts and calls, such as an empty thought. A thought that the question opens may be missing there,
 * because templates remove thoughts of earlier turns. 0: the answer does not begin as the prompt asks the model to
 * continue.
 */
static size_t find_answer(const struct part *parts, const struct fm_tool_turn *turn) {
    struct part prompt = parts[QUESTION];
    bool gone = !begins_with(&parts[PLAIN], &prompt) || !begins_with(&parts[ONE_CALL], &prompt);
    prompt = gone ? before_mark(&prompt, turn->thought) : prompt;
    size_t at = find_literal(&parts[PLAIN], prompt.len, TEXT);
    while (at > prompt.len && at < parts[PLAIN].len && fm_tool_is_space(parts[PLAIN].text[at - 1])) {
        at--;
    }
    struct part before = {parts[PLAIN].text, at};
    before = before_mark(&before, turn->lead);
    before = gone ? before_mark(&before, turn->thought) : before;
    bool same =
        at < parts[PLAIN].len && begins_with(&parts[PLAIN], &prompt) && begins_with(&parts[ONE_CALL], &before);
    return same ? after_thought(&parts[ONE_CALL], before.len, turn) : 0;
}

/* Offsets of a call. */
struct call_place {
    size_t name;
    size_t name_end;
    size_t arguments;
    size_t arguments_end;
};

/* The end of the JSON object that begins at `at`; `part->len` if it does not end. */
static size_t end_of_object(const struct part *part, size_t at) {
    size_t depth = 0;
    bool in_string = false; /* the probe has no escapes */
    for (; at < part->len; at++) {
        char c = part->text[at];
        in_string = in_string != (c == '"');
        depth += !in_string && c == '{';
        if (!in_string && c == '}' && --depth == 0) {
            return at + 1;
        }
    }
    return at;
}

/* Whether the bytes are the arguments of the probe, as JSON. */
static bool are_arguments(const char *bytes, size_t len) {
    struct fm_buf scratch;
    struct json_object *found = NULL;
    struct json_object *expected = NULL;
    size_t offset;
    fm_buf_init(&scratch, PTRDIFF_MAX);
    bool same = !fm_json_check(bytes, len, FM_JSON_VALUES_MAX, &offset) && fm_json_tree(bytes, len, &scratch, &found) &&
                fm_json_tree(ARGUMENTS, LENGTH_OF(ARGUMENTS), &scratch, &expected) &&
                json_object_equal(found, expected);
    json_object_put(found);
    json_object_put(expected);
    fm_buf_free(&scratch);
    return same;
}

/*
 * Finds the call `index` from `from` on: the name, and after it the arguments. The arguments are `written`, or JSON if
 * `written` is empty.
 */
static bool find_call(const struct part *part, size_t from, size_t index, const struct part *written,
                      struct call_place *place) {
    place->name = find_literal(part, from, calls[index].name);
    if (place->name == part->len) {
        return false;
    }
    place->name_end = place->name + strlen(calls[index].name);
    if (written->len > 0) {
        const char *found =
            memmem(part->text + place->name_end, part->len - place->name_end, written->text, written->len);
        place->arguments = found ? (size_t)(found - part->text) : part->len;
        place->arguments_end = place->arguments + written->len;
        return found;
    }
    place->arguments = find_literal(part, place->name_end, "{");
    place->arguments_end = end_of_object(part, place->arguments);
    return place->arguments > place->name_end &&
           are_arguments(part->text + place->arguments, place->arguments_end - place->arguments);
}

/*
 * Makes a mark of bytes of the rendered text. False if they can't be a mark: too many control tokens, the end of a
 * turn, or text that is not the template's.
 */
static bool set_mark(const struct fm_tool_template *from, const struct part *part, size_t begin, size_t end,
                     struct fm_tool_mark *mark) {
    const struct part piece = {part->text + begin, end - begin};
    const size_t id_at = find_literal(&piece, 0, ID);
    bool set = fm_tool_mark_set(from, piece.text, piece.len, mark);
    mark->place = id_at < piece.len ? FM_TOOL_ID_PLACE : FM_TOOL_NO_PLACE;
    mark->place_at = id_at;
    if (mark->place && (id_at + FM_TOOL_ID_LEN == mark->len || fm_tool_in_place(mark, mark->text[id_at + FM_TOOL_ID_LEN]))) {
        return false;
    }
    return set && !contains(&piece, PROBE) && find_literal(&piece, id_at + FM_TOOL_ID_LEN, ID) == piece.len &&
           fm_utf8_valid(piece.text, piece.len);
}

/* The end of the turn that contains `at`. */
static size_t end_of_turn(const struct fm_tool_template *from, const struct part *part, size_t at) {
    for (bool ends_turn = false; at < part->len; at++) {
        int32_t token;
        if (from->control(from->argument, part->text + at, part->len - at, &token, &ends_turn) && ends_turn) {
            return at;
        }
    }
    return at;
}

/*
 * The number of bytes that may come before a key: the common beginning of a call with arguments and a call without, up
 * to a tag.
 */
static size_t common_len(const char *one, const char *other, size_t len) {
    size_t same = 0;
    while (same < len && one[same] == other[same]) {
        same++;
    }
    size_t tag = same;
    while (tag > 0 && one[tag - 1] != '<' && one[tag - 1] != '>') {
        tag--;
    }
    return tag > 0 && one[tag - 1] == '<' ? tag - 1 : same;
}

/* Reads `close` and `after` at `begin`: `close` ends with a tag or a control token. */
static bool set_close(const struct fm_tool_template *from, const struct part *part, size_t begin, size_t end,
                      struct fm_tool_tags *tags) {
    int32_t token;
    bool ends_turn;
    size_t len = from->control(from->argument, part->text + begin, end - begin, &token, &ends_turn);
    const char *tag = memchr(part->text + begin, '>', end - begin);
    if (len == 0) {
        len = tag ? (size_t)(tag - part->text) + 1 - begin : 0;
    }
    return len > 0 && strchr("<\n", part->text[begin]) && set_mark(from, part, begin, begin + len, &tags->close) &&
           set_mark(from, part, begin + len, end, &tags->after) &&
           (tags->close.control_count == 0 || tags->close.controls[0].len == len) &&
           !memchr(part->text + begin + 1, part->text[begin], len - 1);
}

/*
 * Reads `none` of a call without arguments: the text between `begin` and `after`, which follows arguments. It is empty
 * or a line end.
 */
static bool set_none(const struct fm_tool_template *from, const struct part *empty, size_t begin,
                     const struct part *after, struct fm_tool_tags *tags) {
    const size_t turn_end = begin < empty->len ? end_of_turn(from, empty, begin) : 0;
    if (turn_end < begin + after->len || memcmp(empty->text + turn_end - after->len, after->text, after->len) != 0) {
        return false;
    }
    const size_t end = turn_end - after->len;
    for (size_t at = begin; at < end; at++) {
        if (!fm_tool_is_space(empty->text[at]) || empty->text[at] == tags->key.text[0]) {
            return false;
        }
    }
    return set_mark(from, empty, begin, end, &tags->none);
}

/* Whether the mark contains the type of the value: then the mark would be different before a number. */
static bool names_type(const struct fm_tool_mark *mark) {
    const struct part part = {mark->text, mark->len};
    return contains(&part, "bool");
}

/*
 * Reads the marks of arguments in tags, after the name. `written` becomes the whole text of the arguments:
 *
 *     >\n<parameter=fm_key>\nfm_Value\n</parameter>\n<parameter=fm_flag>\nTrue\n</parameter>\n</function>
 *
 * A call without arguments shows which part of the text belongs to the call itself.
 */
static bool read_tags(const struct fm_tool_template *from, const struct part *parts, size_t answer,
                      struct fm_tool_form *form, struct part *written) {
    const struct part *part = &parts[ONE_CALL];
    const struct part *empty = &parts[EMPTY_CALL];
    struct fm_tool_tags *tags = &form->tags;
    const size_t at = find_literal(part, answer, calls[0].name) + strlen(calls[0].name);
    const size_t empty_at = find_literal(empty, answer, calls[0].name) + strlen(calls[0].name);
    const size_t key = find_literal(part, at, "fm_key");
    const size_t raw = key + LENGTH_OF("fm_key");
    const size_t value = find_literal(part, raw, "fm_Value");
    const size_t close = value + LENGTH_OF("fm_Value");
    const size_t flag = find_literal(part, close, "fm_flag");
    const size_t json = flag + LENGTH_OF("fm_flag");
    const size_t flag_value = find_literal(part, json, "rue") - 1; /* true, or True */
    if (empty_at >= empty->len || flag_value + LENGTH_OF("true") >= part->len) {
        return false;
    }
    size_t room = key - at < empty->len - empty_at ? key - at : empty->len - empty_at;
    const size_t begin = at + common_len(part->text + at, empty->text + empty_at, room);
    const size_t key_len = key - begin;
    if (key_len == 0 || flag - close <= key_len ||
        memcmp(part->text + flag - key_len, part->text + begin, key_len) != 0) {
        return false;
    }
    const size_t close_len = flag - close - key_len;
    const size_t end = flag_value + LENGTH_OF("true") + close_len;
    const size_t turn_end = end < part->len ? end_of_turn(from, part, end) : end;
    tags->python = part->text[flag_value] == 'T';
    *written = (struct part){part->text + begin, end - begin};
    return turn_end > end && memcmp(part->text + end - close_len, part->text + close, close_len) == 0 &&
           (turn_end - end < key_len || memcmp(part->text + end, part->text + begin, key_len) != 0) &&
           (begin > at || part->text[begin] == part->text[end]) && part->text[raw] == part->text[json] &&
           !strchr(NAME_CHARACTERS, part->text[raw]) && set_mark(from, part, begin, key, &tags->key) &&
           set_mark(from, part, raw, value, &tags->raw) && set_mark(from, part, json, flag_value, &tags->json) &&
           !names_type(&tags->json) && set_close(from, part, close, close + close_len, tags) &&
           set_none(from, empty, empty_at + (begin - at), &(struct part){part->text + end, turn_end - end}, tags);
}

/* Whether the text around a string is a quote, or a mark that normal text does not contain. */
static bool set_quote(const struct fm_tool_template *from, const char *quote, size_t len,
                      struct fm_notation *notation) {
    struct fm_tool_mark mark;
    const struct part part = {quote, len};
    if (len == 1) {
        return strchr("'\"", quote[0]);
    }
    bool set = set_mark(from, &part, 0, len, &mark);
    bool is_control = set && mark.control_count == 1 && mark.controls[0].len == len;
    bool stands_out = set && mark.control_count == 0 && len >= TRIGGER_MIN && quote[0] == '<';
    notation->quote = quote;
    notation->quote_len = len;
    notation->quote_token = is_control ? mark.controls[0].token : -1;
    return (is_control || stands_out) && !memchr(quote + 1, quote[0], len - 1);
}

/*
 * Reads a notation other than JSON off the arguments after the name that ends at `at`; `written` becomes their whole
 * text. To check the result, the arguments are written in the notation that was read. If the template shows another
 * text, the template has no such notation.
 */
static bool read_notation(const struct fm_tool_template *from, const struct part *parts, size_t answer,
                          struct fm_notation *notation, struct part *written) {
    const struct part *part = &parts[ONE_CALL];
    const size_t at = find_literal(part, answer, calls[0].name) + strlen(calls[0].name);
    const size_t key = find_literal(part, at, "fm_key");
    const size_t flag = find_literal(part, at, "fm_flag");
    const size_t value = find_literal(part, key, "fm_Value");
    const size_t quote = key + LENGTH_OF("fm_key") + 1;
    const size_t truth = flag + LENGTH_OF("fm_flag") + 1;
    const size_t flag_end = truth + LENGTH_OF("true");
    if (key >= part->len || flag >= part->len || value >= part->len || quote >= value || flag_end >= part->len) {
        return false;
    }
    const int quote_len = (int)(value - quote);
    const size_t key_end = value + LENGTH_OF("fm_Value") + (size_t)quote_len;
    struct fm_buf made;
    *notation = (struct fm_notation){.open = part->text[at],
                                     .assign = part->text[quote - 1],
                                     .sorted = flag < key,
                                     .python = part->text[truth] == 'T'};
    const char *separator = part->text[(notation->sorted ? flag_end : key_end) + 1] == ' ' ? ", " : ",";
    fm_buf_init(&made, part->len);
    for (int i = 0; i < 2; i++) {
        fm_buf_append_char(&made, i == 0 ? notation->open : separator[0]);
        fm_buf_append_str(&made, i == 0 ? "" : separator + 1);
        fm_buf_append_str(&made, notation->sorted == (i == 0) ? "fm_flag" : "fm_key");
        fm_buf_append_char(&made, notation->assign);
        if (notation->sorted == (i == 0)) {
            fm_buf_append_str(&made, notation->python ? "True" : "true");
        } else {
            fm_buf_append(&made, part->text + quote, (size_t)quote_len);
            fm_buf_append_str(&made, "fm_Value");
            fm_buf_append(&made, part->text + quote, (size_t)quote_len);
        }
    }
    fm_buf_append_char(&made, fm_notation_close(notation));
    bool same = key_end < part->len && !made.failed && at + made.len <= part->len &&
                memcmp(part->text + at, made.data, made.len) == 0 && strchr("{(", notation->open) &&
                strchr(":=", notation->assign) && set_quote(from, part->text + quote, (size_t)quote_len, notation);
    const size_t empty = find_literal(&parts[EMPTY_CALL], answer, calls[0].name) + strlen(calls[0].name);
    same = same && empty + 1 < parts[EMPTY_CALL].len && parts[EMPTY_CALL].text[empty] == notation->open &&
           parts[EMPTY_CALL].text[empty + 1] == fm_notation_close(notation);
    *written = (struct part){part->text + at, made.len};
    fm_buf_free(&made);
    if (!same) {
        *notation = (struct fm_notation){.open = '\0'};
    }
    return same;
}

/* The length of a tag, "<call>" or "[CALLS]", at the beginning of `len` bytes; 0: there is none. */
static size_t tag_len(const char *begin, size_t len) {
    char closing = begin[0] == '<' ? '>' : ']';
    const char *end = begin[0] == '<' || begin[0] == '[' ? memchr(begin, closing, len) : NULL;
    return end ? (size_t)(end - begin) + 1 : 0;
}

/*
 * The length of a word directly followed by a list of objects, "tools[{", at the beginning of `len` bytes; 0: there is
 * none.
 */
static size_t word_len(const char *begin, size_t len) {
    size_t at = 0;
    while (at < len && begin[at] >= 'a' && begin[at] <= 'z') {
        at++;
    }
    return at >= TRIGGER_MIN && at + 2 <= len && memcmp(begin + at, "[{", 2) == 0 ? at + 2 : 0;
}

/*
 * The length of the trigger at the beginning of `begin`: a control token, a tag, the beginning of a tag that ends after
 * the name, or a word with a list. 0: nothing there differs from normal text.
 */
static size_t trigger_len(const struct fm_tool_template *from, const char *begin, size_t len) {
    int32_t token;
    bool ends_turn;
    if (len == 0) {
        return 0;
    }
    size_t control = from->control(from->argument, begin, len, &token, &ends_turn);
    size_t tag = tag_len(begin, len);
    if (control || tag) {
        return control ? control : tag;
    }
    return begin[0] == '<' ? len : word_len(begin, len);
}

/* Whether the bytes are a call as plain JSON, from its beginning to the first name. */
static bool begins_json_call(const char *begin, size_t len) {
    struct fm_tool tool = {.name = calls[0].name, .allowed = true};
    const struct fm_kit_job job = {.tools = &tool, .tool_count = 1};
    const struct part name = {tool.name, strlen(tool.name)};
    struct fm_json_call call;
    fm_json_call_init(&call, &job, false);
    for (size_t i = 0; i < len; i++) {
        (void)fm_json_call_read(&call, begin[i]);
    }
    for (size_t i = 0; i < name.len; i++) {
        (void)fm_json_call_read(&call, name.text[i]);
    }
    return fm_json_call_read(&call, '"') != NULL;
}

/* Reads `trigger` and `name` from the bytes between `begin` and `end`. */
static bool set_beginning(const struct fm_tool_template *from, const struct part *part, size_t answer, size_t end,
                          struct fm_tool_form *form) {
    size_t begin = answer;
    while (begin < end && fm_tool_is_space(part->text[begin])) {
        begin++;
    }
    const struct fm_tool_mark *trigger = &form->trigger;
    size_t len = trigger_len(from, part->text + begin, end - begin);
    if (len > FM_TOOL_TRIGGER_MAX || !set_mark(from, part, begin, begin + len, &form->trigger) || trigger->place ||
        !set_mark(from, part, begin + len, end, &form->name)) {
        return false;
    }
    if (len == 0) {
        form->opened = begin == end && begin == answer;
        return form->opened || begins_json_call(form->name.text, form->name.len);
    }
    bool is_control = trigger->control_count == 1 && trigger->controls[0].len == len;
    bool stands_out = trigger->control_count == 0 && len >= TRIGGER_MIN;
    return is_control || (stands_out && !memchr(trigger->text + 1, trigger->text[0], len - 1));
}

/* Reads a header of calls up to the arguments, in place of `trigger` and `name`. */
static bool set_header(const struct fm_tool_template *from, const struct part *part, size_t answer,
                       const struct call_place *place, const struct fm_tool_turn *turn, struct fm_tool_form *form) {
    const size_t end_len = strlen(turn->thought_end);
    const size_t lead_len = strlen(turn->lead);
    struct fm_tool_mark *between = &form->header.between;
    if (!set_mark(from, part, answer, place->name, &form->trigger) ||
        !set_mark(from, part, place->name_end, place->arguments, &form->arguments) ||
        !fm_tool_header_find(from, &form->trigger, &form->arguments, &form->header)) {
        return false;
    }
    /* In these forms, a thought and a text are two messages, too. */
    bool parts = lead_len > 0 && end_len > lead_len &&
                 fm_tool_mark_set(from, turn->thought_end, end_len - lead_len, between) &&
                 between->control_count > 0 && between->controls[0].at == 0;
    if (!parts) {
        *between = (struct fm_tool_mark){.len = 0};
    }
    return true;
}

/* Whether the mark ends names: it can't be a part of a name, or be read as an escape in a JSON string. */
static bool ends_names(const struct fm_tool_mark *mark) {
    return mark->text[0] != '\\' && !strchr(NAME_CHARACTERS, mark->text[0]);
}

/* Whether the text between the name and the arguments of a plain JSON call is another key. */
static bool is_json_key(const struct fm_tool_mark *mark) {
    const struct part part = {mark->text, mark->len};
    return contains(&part, "\"arguments\"") || contains(&part, "\"parameters\"");
}

/*
 * Whether `part` shows exactly this call, up to the end of its arguments, and then an outcome; an id may be between
 * them.
 */
static bool shows_call(const struct part *part, const struct part *call) {
    const char *found = part->text ? memmem(part->text, part->len, call->text, call->len) : NULL;
    return found && find_literal(part, (size_t)(found - part->text) + call->len, OUTCOME) < part->len;
}

/* Reads the marks of a single call, which must be the same at every place in a conversation. */
static bool read_one(const struct fm_tool_template *from, const struct part *parts, size_t answer,
                     const struct fm_tool_turn *turn, struct fm_tool_form *form) {
    const struct part *part = &parts[ONE_CALL];
    struct call_place place;
    struct part written = {NULL, 0};
    bool found = find_call(part, answer, 0, &written, &place) ||
                 ((read_notation(from, parts, answer, &form->notation, &written) ||
                   read_tags(from, parts, answer, form, &written)) &&
                  find_call(part, answer, 0, &written, &place));
    bool with_header = found && !written.text && set_header(from, part, answer, &place, turn, form);
    bool begun = with_header || (found && set_beginning(from, part, answer, place.name, form) &&
                                 set_mark(from, part, place.name_end, place.arguments, &form->arguments) &&
                                 ends_names(&form->arguments) &&
                                 (form->trigger.len > 0 || form->opened || is_json_key(&form->arguments)));
    if (!begun ||
        !set_mark(from, part, place.arguments_end, end_of_turn(from, part, place.arguments_end), &form->end)) {
        return false;
    }
    const char *begin = form->trigger.text;
    const struct part call = {begin, (size_t)(form->end.text - begin)};
    if (parts[OTHER_ID_CALL].len == 0) {
        form->ids = FM_TOOL_IDS_OF_LEN;
    }
    return shows_call(&parts[CALL_AND_OUTCOME], &call) && shows_call(&parts[HISTORY], &call);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/*
 * Whether the bytes are the mark of a call that comes `count` calls after the call of `mark`. They must be the same
 * bytes, except for a number; then the place of the number in the mark is set.
 */
static bool is_later(struct fm_tool_mark *mark, const struct part *part, size_t begin, size_t end, size_t count) {
    const char *later = part->text + begin;
    size_t at = 0;
    if (end - begin != mark->len) {
        return false;
    }
    while (at < mark->len && later[at] == mark->text[at]) {
        at++;
    }
    if (at == mark->len) {
        return count == 0 || mark->place != FM_TOOL_NUMBER_PLACE;
    }
    bool has_place = mark->place == FM_TOOL_NO_PLACE || (mark->place == FM_TOOL_NUMBER_PLACE && mark->place_at == at);
    bool alone = at + 1 < mark->len && !is_digit(mark->text[at + 1]) && (at == 0 || !is_digit(mark->text[at - 1]));
    bool counts = is_digit(mark->text[at]) && is_digit(later[at]) && later[at] == mark->text[at] + (char)count;
    if (!has_place || !alone || !counts || memcmp(later + at + 1, mark->text + at + 1, mark->len - at - 1) != 0) {
        return false;
    }
    mark->place = FM_TOOL_NUMBER_PLACE;
    mark->place_at = at;
    return true;
}

/* Finds the places of all calls, which must look like the single call. */
static bool find_calls(const struct part *part, size_t answer, struct fm_tool_form *form,
                       struct call_place places[CALLS]) {
    const char *arguments = form->arguments.text + form->arguments.len; /* of the single call */
    bool json = fm_tool_form_has_json(form);
    const struct part written = {arguments, json ? 0 : (size_t)(form->end.text - arguments)};
    for (size_t i = 0; i < CALLS; i++) {
        if (!find_call(part, i ? places[i - 1].arguments_end : answer, i, &written, &places[i]) ||
            !is_later(&form->arguments, part, places[i].name_end, places[i].arguments, i)) {
            return false;
        }
    }
    return true;
}

/*
 * Whether the number in `next` is the number of the following call and also comes before the first call, or is the
 * number of the call before it and also comes after a single call.
 */
static bool is_number_of_call(struct fm_tool_form *form, const struct fm_tool_mark *next) {
    struct fm_tool_mark *name = &form->name;
    const char *number = next->text + next->place_at;
    const size_t rest = next->len - next->place_at;
    const size_t at = name->len - rest;
    if (next->place != FM_TOOL_NUMBER_PLACE) {
        return form->end.place != FM_TOOL_NUMBER_PLACE;
    }
    if (rest <= name->len && name->place == FM_TOOL_NO_PLACE && name->text[at] == number[0] - 1 &&
        memcmp(name->text + at + 1, number + 1, rest - 1) == 0) {
        name->place = FM_TOOL_NUMBER_PLACE;
        name->place_at = at;
        return true;
    }
    return form->end.place == FM_TOOL_NUMBER_PLACE && form->end.place_at == next->place_at &&
           form->end.text[next->place_at] == number[0];
}

/*
 * Reads `next`, the text between two calls. `next` stays empty if that text differs from place to place, or if `end`
 * begins with it: then nothing shows whether a name follows.
 */
static void read_next(const struct fm_tool_template *from, const struct part *parts, size_t answer,
                      struct fm_tool_form *form) {
    const struct part *part = &parts[ALL_CALLS];
    const struct part before = {parts[ONE_CALL].text, answer};
    struct call_place places[CALLS];
    struct fm_tool_mark next;
    if (!begins_with(part, &before) || !find_calls(part, answer, form, places) ||
        !set_mark(from, part, places[0].arguments_end, places[1].name, &next)) {
        return;
    }
    size_t end = places[CALLS - 1].arguments_end;
    bool begins_end = next.len <= form->end.len && memcmp(next.text, form->end.text, next.len) == 0;
    if (is_later(&next, part, places[1].arguments_end, places[2].name, 1) &&
        is_later(&form->end, part, end, end_of_turn(from, part, end), CALLS - 1) && !begins_end &&
        is_number_of_call(form, &next)) {
        form->next = next;
    }
}

static bool is_word(const char *bytes, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (fm_tool_is_space(bytes[i]) || bytes[i] == '"') {
            return false;
        }
    }
    return true;
}

/*
 * Reads the form of an outcome's id, if the outcome shows its id: the text around a call's name, up to control tokens,
 * must be a word with the call's number after the name.
 */
static void read_ids(const struct part *parts, struct fm_tool_form *form) {
    const struct part *part = &parts[CALL_AND_OUTCOME];
    const struct fm_tool_mark *name = &form->name;
    const struct fm_tool_mark *arguments = &form->arguments;
    const struct fm_tool_control *last = name->control_count ? &name->controls[name->control_count - 1] : NULL;
    const size_t begin = last ? last->at + last->len : 0;
    const size_t end = arguments->control_count > 0 ? arguments->controls[0].at : arguments->len;
    if (arguments->place == FM_TOOL_NUMBER_PLACE && arguments->place_at < end && contains(part, ID) &&
        is_word(name->text + begin, name->len - begin) && is_word(arguments->text, end)) {
        form->ids = FM_TOOL_IDS_BY_NAME;
        form->id_before = (struct fm_tool_mark){.text = name->text + begin, .len = name->len - begin};
        form->id_after = *arguments;
        form->id_after.len = end;
    }
}

/* Reads the end of a text, if a text ends with a control token. That token may also begin a call. */
static void read_text_end(const struct fm_tool_template *from, const struct part *part, struct fm_tool_form *form) {
    const size_t end = find_literal(part, 0, TEXT) + LENGTH_OF(TEXT);
    struct fm_tool_mark *mark = &form->text_end;
    bool set = set_mark(from, part, end, end_of_turn(from, part, end), mark);
    if (!set || mark->control_count == 0 || mark->controls[0].at > 0) {
        *mark = (struct fm_tool_mark){.len = 0};
    }
}

/*
 * Whether the prompt ends with `next`, one byte repeated, which also comes before each later call. Then the name
 * distinguishes a call from text.
 */
static bool is_opened(const struct part *prompt, const struct fm_tool_form *form) {
    const struct fm_tool_mark *next = &form->next;
    const struct fm_tool_mark *arguments = &form->arguments;
    return next->len > 0 && next->control_count == 0 && next->place == FM_TOOL_NO_PLACE && form->end.len == 0 &&
           memcmp(next->text, next->text + 1, next->len - 1) == 0 && !strchr(NAME_CHARACTERS, next->text[0]) &&
           fm_tool_ends_with(prompt->text, prompt->len, next->text, next->len) && arguments->len > 0 &&
           arguments->control_count == 0;
}

/* Whether one line of text can show the model how to call. */
static bool can_be_told(const struct fm_tool_form *form) {
    return form->trigger.len > 0 && fm_tool_form_has_json(form) && !form->header.recipient;
}

static enum fm_code render_all(const struct fm_tool_template *from, struct part parts[CONVERSATIONS],
                               struct fm_error *error) {
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < CONVERSATIONS && code == FM_OK; i++) {
        code = render(from, (enum conversation)i, &parts[i], error);
    }
    return code;
}

/* The conversations that contain the marks. */
static const enum conversation kept[] = {PLAIN, ONE_CALL, ALL_CALLS, EMPTY_CALL};

#define KEPT (sizeof kept / sizeof kept[0])
_Static_assert(KEPT == FM_TOOL_FORM_TEXTS, "a form has room for them");

enum fm_code fm_tool_form_read(const struct fm_tool_template *from, const struct fm_tool_turn *turn,
                               struct fm_tool_form *form, struct fm_error *error) {
    struct part parts[CONVERSATIONS] = {{NULL, 0}};
    *form = (struct fm_tool_form){.native = false};
    enum fm_code code = render_all(from, parts, error);
    bool tells = false;
    bool fit = code == FM_OK && shows_tools(parts, &tells) && names_stand_apart(parts);
    size_t answer = fit ? find_answer(parts, turn) : 0;
    if (answer > 0 && read_one(from, parts, answer, turn, form) && (!tells || can_be_told(form))) {
        read_text_end(from, &parts[PLAIN], form);
        read_next(from, parts, answer, form);
        read_ids(parts, form);
        form->native = !form->opened || is_opened(&parts[QUESTION], form);
        form->tells_tools = tells;
        for (size_t i = 0; i < KEPT; i++) {
            form->texts[i] = (char *)parts[kept[i]].text;
            parts[kept[i]].text = NULL;
        }
    } else {
        *form = (struct fm_tool_form){.native = false};
    }
    for (size_t i = 0; i < CONVERSATIONS; i++) {
        free((char *)parts[i].text);
    }
    return code;
}

void fm_tool_form_free(struct fm_tool_form *form) {
    for (size_t i = 0; i < KEPT; i++) {
        free(form->texts[i]);
    }
    *form = (struct fm_tool_form){.native = false};
}

/* ---- choosing ---- */

static bool has_control(const struct fm_tool_template *from, const char *bytes, size_t len) {
    for (size_t at = 0; at < len; at++) {
        int32_t token;
        bool ends_turn;
        if (from->control(from->argument, bytes + at, len - at, &token, &ends_turn)) {
            return true;
        }
    }
    return false;
}

/* Whether a string or a key in the value has a control token. Recurses as deep as a body can be nested. */
static bool value_has_control(const struct fm_tool_template *from, struct json_object *value) {
    bool found = false;
    if (json_object_is_type(value, json_type_string)) {
        return has_control(from, json_object_get_string(value), (size_t)json_object_get_string_len(value));
    }
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value) && !found; i++) {
            found = value_has_control(from, json_object_array_get_idx(value, i));
        }
    } else if (json_object_is_type(value, json_type_object)) {
        struct json_object_iter at;
        json_object_object_foreachC(value, at) {
            found = found || has_control(from, at.key, strlen(at.key)) || value_has_control(from, at.val);
        }
    }
    return found;
}

static bool is_plain_name(const struct fm_tool_template *from, const char *name) {
    return name[0] && name[strspn(name, NAME_CHARACTERS)] == '\0' && !has_control(from, name, strlen(name));
}

static bool tool_fits(const struct fm_tool_template *from, const struct fm_tool_form *form,
                      const struct fm_tool *tool) {
    const char *description = tool->description ? tool->description : "";
    return is_plain_name(from, tool->name) && (form->tags.key.len == 0 || fm_tool_tags_fit(&form->tags, tool)) &&
           (!form->notation.open || fm_notation_fits(&form->notation, tool->parameters)) &&
           !has_control(from, description, strlen(description)) &&
           !value_has_control(from, tool->parameters);
}

static bool call_fits(const struct fm_tool_template *from, const struct fm_tool_call *call) {
    size_t offset;
    struct json_object *arguments = NULL;
    struct fm_buf scratch;
    if (!is_plain_name(from, call->name) || has_control(from, call->id, strlen(call->id)) ||
        fm_json_check(call->arguments, call->arguments_len, FM_JSON_VALUES_MAX, &offset)) {
        return false;
    }
    fm_buf_init(&scratch, PTRDIFF_MAX);
    bool fits = fm_json_tree(call->arguments, call->arguments_len, &scratch, &arguments) &&
                json_object_is_type(arguments, json_type_object) && !value_has_control(from, arguments);
    json_object_put(arguments);
    fm_buf_free(&scratch);
    return fits;
}

static bool message_fits(const struct fm_tool_form *native, const struct fm_tool_template *from,
                         const struct fm_kit_job *job, size_t index) {
    const struct fm_message *message = &job->messages[index];
    size_t called;
    if (message->tool_call_count > 1 && native->next.len == 0) {
        return false;
    }
    for (size_t i = 0; i < message->tool_call_count; i++) {
        if (!call_fits(from, &message->tool_calls[i])) {
            return false;
        }
    }
    return !message->tool_call_id || fm_tool_answered(job, index, &called);
}

/* Whether the first byte distinguishes a text of the job's format from a call. */
static bool format_fits(const struct fm_tool_form *native, const struct fm_kit_job *job) {
    const struct fm_tool_mark *trigger = &native->trigger;
    bool json = trigger->len == 0 || strchr("{[\"-0123456789tfn", trigger->text[0]);
    return job->format.kind == FM_FORMAT_TEXT || trigger->control_count > 0 || !json;
}

const struct fm_tool_form *fm_tool_form_for(const struct fm_tool_form *native, const struct fm_tool_template *from,
                                            const struct fm_kit_job *job) {
    bool fits = native->native && format_fits(native, job);
    for (size_t i = 0; i < job->tool_count && fits; i++) {
        fits = tool_fits(from, native, &job->tools[i]);
    }
    for (size_t i = 0; i < job->message_count && fits; i++) {
        fits = message_fits(native, from, job, i);
    }
    return fits ? native : &fm_tool_form_own;
}
