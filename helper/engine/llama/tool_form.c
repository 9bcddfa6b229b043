/*
 * A model's own form is read off what its chat template makes of three calls in a conversation:
 *
 *     OPENING <tool_call>\n{"name": "fm_first", "arguments": {"fm_key":
 * "fm_value"}}\n</tool_call>\n<tool_call>...<|im_end|>
 *
 * OPENING is the prompt that an answer goes on from. Up to the first name it is `trigger` and `name`; between each name
 * and its arguments stands `arguments`, between two calls `next`, and `end` up to the token that ends the turn.
 */
#include "engine/llama/tools.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

#define MARK(literal)                                                                                                  \
    { .text = (literal), .len = sizeof(literal) - 1 }

const struct fm_tool_form fm_tool_form_own = {
    .trigger = MARK(FM_TOOL_BEGIN),
    .name = MARK(FM_TOOL_NAME),
    .arguments = MARK(FM_TOOL_ARGUMENTS),
    .next = MARK(FM_TOOL_END FM_TOOL_NEXT FM_TOOL_NAME),
    .end = MARK(FM_TOOL_END),
};

/* ---- the conversation ---- */

#define CALLS 3

#define CALL_ID   "call_fm" /* all ids begin so */
#define KEY       "\"fm_key\""
#define VALUE     "\"fm_value\""
#define ARGUMENTS "{" KEY ":" VALUE "}"
#define SCHEMA    "{\"type\":\"object\",\"properties\":{" KEY ":{\"type\":\"string\"}}}"
#define TEXT      "fm_text"
#define OUTCOME   "fm_outcome"

static const struct fm_chat_call calls[CALLS] = {
    {CALL_ID "_1", "fm_first", ARGUMENTS, sizeof ARGUMENTS - 1},
    {CALL_ID "_2", "fm_second", ARGUMENTS, sizeof ARGUMENTS - 1},
    {CALL_ID "_3", "fm_third", ARGUMENTS, sizeof ARGUMENTS - 1},
};

static const struct fm_chat_tool tools[CALLS] = {
    {"fm_first", "First.", SCHEMA, sizeof SCHEMA - 1},
    {"fm_second", "Second.", SCHEMA, sizeof SCHEMA - 1},
    {"fm_third", "Third.", SCHEMA, sizeof SCHEMA - 1},
};

static const struct fm_chat_message question = {.role = "user", .content = "hi", .content_len = 2};
static const struct fm_chat_message text = {.role = "assistant", .content = TEXT, .content_len = sizeof TEXT - 1};
static const struct fm_chat_message one_call = {.role = "assistant", .content = "", .calls = calls, .call_count = 1};
static const struct fm_chat_message all_calls = {
    .role = "assistant", .content = "", .calls = calls, .call_count = CALLS};
static const struct fm_chat_message outcome = {.role = "tool",
                                               .content = OUTCOME,
                                               .content_len = sizeof OUTCOME - 1,
                                               .answered_id = CALL_ID "_1",
                                               .answered_name = "fm_first"};

/* Some text of a template's. */
struct part {
    const char *text;
    size_t len;
};

/* What the template made of the conversations. An empty one: it refuses them. */
struct rendered {
    struct part opening; /* the question */
    struct part plain;   /* and a text behind it */
    struct part one;     /* or one call */
    struct part outcome; /* with what came of it */
    struct part all;     /* or all calls */
};

static void free_rendered(struct rendered *rendered) {
    free((char *)rendered->opening.text);
    free((char *)rendered->plain.text);
    free((char *)rendered->one.text);
    free((char *)rendered->outcome.text);
    free((char *)rendered->all.text);
}

/* Renders the question, `second` and `third`, as far as they are not NULL. */
static enum fm_code render(const struct fm_tool_template *from, const struct fm_chat_message *second,
                           const struct fm_chat_message *third, struct part *part, struct fm_error *error) {
    struct fm_chat_message messages[3] = {question};
    struct fm_chat chat = {.messages = messages, .count = 1, .tools = tools, .tool_count = CALLS, .closed = second};
    char *made = NULL;
    if (second) {
        messages[chat.count++] = *second;
    }
    if (third) {
        messages[chat.count++] = *third;
    }
    enum fm_code code = from->render(from->argument, &chat, &made, &part->len, error);
    part->text = made;
    return code == FM_INTERNAL ? code : FM_OK;
}

static enum fm_code render_all(const struct fm_tool_template *from, struct rendered *rendered, struct fm_error *error) {
    enum fm_code code = render(from, NULL, NULL, &rendered->opening, error);
    code = code ? code : render(from, &text, NULL, &rendered->plain, error);
    code = code ? code : render(from, &one_call, NULL, &rendered->one, error);
    code = code ? code : render(from, &one_call, &outcome, &rendered->outcome, error);
    return code ? code : render(from, &all_calls, NULL, &rendered->all, error);
}

/* ---- reading it ---- */

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Where `literal` is in `part`, from `from` on; `part->len` when it is not there. */
static size_t find(const struct part *part, size_t from, const char *literal) {
    const char *found = part->text ? memmem(part->text + from, part->len - from, literal, strlen(literal)) : NULL;
    return found ? (size_t)(found - part->text) : part->len;
}

static bool contains(const struct part *part, const char *literal) {
    return find(part, 0, literal) < part->len;
}

static bool begins_with(const struct part *part, const struct part *beginning) {
    return part->len >= beginning->len && part->text && memcmp(part->text, beginning->text, beginning->len) == 0;
}

/* The template shows tools and outcomes, and puts nothing but white space in front of a text. */
static bool is_whole(const struct rendered *rendered) {
    size_t at = rendered->opening.len;
    if (!contains(&rendered->opening, calls[0].name) || !contains(&rendered->outcome, OUTCOME) ||
        !begins_with(&rendered->plain, &rendered->opening) || !begins_with(&rendered->one, &rendered->opening)) {
        return false;
    }
    while (at < rendered->plain.len && is_space(rendered->plain.text[at])) {
        at++;
    }
    return find(&rendered->plain, at, TEXT) == at;
}

/* Offsets of a call. */
struct call_place {
    size_t name;
    size_t name_end;
    size_t arguments;
    size_t arguments_end;
};

/* Finds the call `index` from `from` on: the name, and behind it the arguments as one JSON object. */
static bool find_call(const struct part *part, size_t from, size_t index, struct call_place *place) {
    place->name = find(part, from, calls[index].name);
    place->name_end = place->name + strlen(calls[index].name);
    if (place->name == part->len) {
        return false;
    }
    size_t key = find(part, place->name_end, KEY);
    size_t value = find(part, key, VALUE);
    size_t end = value + strlen(VALUE);
    while (key > place->name_end && is_space(part->text[key - 1])) {
        key--;
    }
    while (end < part->len && is_space(part->text[end])) {
        end++;
    }
    if (value == part->len || part->text[key - 1] != '{' || end >= part->len || part->text[end] != '}') {
        return false;
    }
    place->arguments = key - 1;
    place->arguments_end = end + 1;
    return place->arguments > place->name_end;
}

/* False where it would need too many control tokens, or ends the turn. */
static bool set_mark(const struct fm_tool_template *from, const struct part *part, size_t begin, size_t end,
                     struct fm_tool_mark *mark) {
    *mark = (struct fm_tool_mark){.text = part->text + begin, .len = end - begin};
    for (size_t at = 0; at < mark->len;) {
        struct fm_tool_control control = {.at = at};
        bool ends_turn = false;
        control.len = from->control(from->argument, mark->text + at, mark->len - at, &control.token, &ends_turn);
        if (ends_turn || (control.len > 0 && mark->control_count == FM_TOOL_MARK_CONTROLS)) {
            return false;
        }
        if (control.len > 0) {
            mark->controls[mark->control_count++] = control;
        }
        at += control.len > 0 ? control.len : 1;
    }
    return true;
}

static bool same_text(const struct fm_tool_mark *mark, const struct part *part, size_t begin, size_t end) {
    return mark->len == end - begin && memcmp(mark->text, part->text + begin, mark->len) == 0;
}

/* Where the turn ends that goes on at `at`. */
static size_t end_of_turn(const struct fm_tool_template *from, const struct part *part, size_t at) {
    for (bool ends_turn = false; at < part->len; at++) {
        int32_t token;
        if (from->control(from->argument, part->text + at, part->len - at, &token, &ends_turn) && ends_turn) {
            return at;
        }
    }
    return at;
}

/* How long the trigger is that `begin` (`len` bytes) begins with: a control token, a tag, or all of it. */
static size_t trigger_len(const struct fm_tool_template *from, const char *begin, size_t len) {
    int32_t token;
    bool ends_turn;
    size_t control = len > 0 ? from->control(from->argument, begin, len, &token, &ends_turn) : 0;
    size_t tag = 0;
    while (tag < len && begin[tag] != '>' && begin[tag] != ']') {
        tag++;
    }
    return control ? control : tag < len ? tag + 1 : len;
}

/* `trigger` and `name` of the bytes from `begin` to `end`. */
static bool set_beginning(const struct fm_tool_template *from, const struct part *part, size_t begin, size_t end,
                          struct fm_tool_form *form) {
    while (begin < end && is_space(part->text[begin])) {
        begin++;
    }
    size_t len = trigger_len(from, part->text + begin, end - begin);
    form->first_only = len > 0 && (part->text[begin] == '{' || (part->text[begin] == '[' && len == end - begin));
    len = form->first_only ? 1 : len;
    const struct fm_tool_mark *trigger = &form->trigger;
    if (!set_mark(from, part, begin, begin + len, &form->trigger) ||
        !set_mark(from, part, begin + len, end, &form->name) || len == 0 || len > FM_TOOL_TRIGGER_MAX) {
        return false;
    }
    bool is_control = trigger->control_count == 1 && trigger->controls[0].len == len;
    bool recurs = memchr(trigger->text + 1, trigger->text[0], len - 1);
    return is_control || (trigger->control_count == 0 && !recurs);
}

/* The marks of one call; `place` is where it is in `part`. */
static bool read_one(const struct fm_tool_template *from, const struct rendered *rendered, struct fm_tool_form *form) {
    const struct part *part = &rendered->one;
    struct call_place place;
    return find_call(part, rendered->opening.len, 0, &place) &&
           set_beginning(from, part, rendered->opening.len, place.name, form) &&
           set_mark(from, part, place.name_end, place.arguments, &form->arguments) &&
           !strchr(NAME_CHARACTERS, form->arguments.text[0]) &&
           set_mark(from, part, place.arguments_end, end_of_turn(from, part, place.arguments_end), &form->end) &&
           !contains(part, CALL_ID);
}

/* How one call follows on another: not at all where it does so in two ways, or where one can't tell it from the end. */
static void read_next(const struct fm_tool_template *from, const struct rendered *rendered, struct fm_tool_form *form) {
    const struct part *part = &rendered->all;
    struct call_place places[CALLS];
    struct fm_tool_mark next = {.len = 0};
    bool same = begins_with(part, &rendered->opening);
    for (size_t i = 0; i < CALLS && same; i++) {
        same = find_call(part, i ? places[i - 1].arguments_end : rendered->opening.len, i, &places[i]) &&
               same_text(&form->arguments, part, places[i].name_end, places[i].arguments);
        if (same && i == 1) {
            same = set_mark(from, part, places[0].arguments_end, places[1].name, &next);
        } else if (same && i > 1) {
            same = same_text(&next, part, places[i - 1].arguments_end, places[i].name);
        }
    }
    if (same) {
        size_t end = places[CALLS - 1].arguments_end;
        bool begins_end = next.len <= form->end.len && memcmp(next.text, form->end.text, next.len) == 0;
        same = same_text(&form->end, part, end, end_of_turn(from, part, end)) && !begins_end;
    }
    form->next = same ? next : (struct fm_tool_mark){.len = 0};
}

enum fm_code fm_tool_form_read(const struct fm_tool_template *from, struct fm_tool_form *form, struct fm_error *error) {
    struct rendered rendered = {.opening = {NULL, 0}};
    *form = (struct fm_tool_form){.native = false};
    enum fm_code code = render_all(from, &rendered, error);
    if (code == FM_OK && is_whole(&rendered) && read_one(from, &rendered, form)) {
        read_next(from, &rendered, form);
        form->native = true;
        form->texts[0] = (char *)rendered.one.text;
        form->texts[1] = (char *)rendered.all.text;
        rendered.one.text = NULL;
        rendered.all.text = NULL;
    }
    free_rendered(&rendered);
    return code;
}

void fm_tool_form_free(struct fm_tool_form *form) {
    free(form->texts[0]);
    free(form->texts[1]);
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

/* In a string or a key of it. Recurses as deep as a body can be nested. */
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
        json_object_object_foreach(value, key, member) {
            found = found || has_control(from, key, strlen(key)) || value_has_control(from, member);
        }
    }
    return found;
}

static bool is_plain_name(const struct fm_tool_template *from, const char *name) {
    return name[0] && name[strspn(name, NAME_CHARACTERS)] == '\0' && !has_control(from, name, strlen(name));
}

static bool tool_fits(const struct fm_tool_template *from, const struct fm_tool *tool) {
    const char *description = tool->description ? tool->description : "";
    return is_plain_name(from, tool->name) && !has_control(from, description, strlen(description)) &&
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

static bool message_fits(const struct fm_tool_template *from, const struct fm_job *job, size_t index) {
    const struct fm_message *message = &job->messages[index];
    for (size_t i = 0; i < message->tool_call_count; i++) {
        if (!call_fits(from, &message->tool_calls[i])) {
            return false;
        }
    }
    return !message->tool_call_id || fm_tool_answered(job, index);
}

const struct fm_tool_form *fm_tool_form_for(const struct fm_tool_form *native, const struct fm_tool_template *from,
                                            const struct fm_job *job) {
    bool fits = native->native && !(native->first_only && job->format.kind != FM_FORMAT_TEXT);
    for (size_t i = 0; i < job->tool_count && fits; i++) {
        fits = tool_fits(from, &job->tools[i]);
    }
    for (size_t i = 0; i < job->message_count && fits; i++) {
        fits = message_fits(from, job, i);
    }
    return fits ? native : &fm_tool_form_own;
}
