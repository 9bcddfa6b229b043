/* Reads the beginning of calls that are plain JSON, byte by byte: json_call.h. */
#include "engine/chat/json_call.h"

#include <string.h>

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/"

enum state {
    NONE,
    AT_FENCE,
    IN_FENCE, /* after its backticks */
    IN_TAG,   /* after the beginning of a tag */
    AFTER_FENCE, /* after a fence or a tag */
    IN_LIST,
    IN_CALL,
    IN_DOUBLED, /* after a second brace */
    AFTER_TYPE,
    TYPE,
    AFTER_TYPE_VALUE,
    AFTER_TYPE_MEMBER,
    AFTER_FUNCTION,
    FUNCTION,
    IN_FUNCTION,
    AFTER_NAME_KEY,
    NAME,
    IN_NAME,
    STATES
};

#define STEPS_MAX 4

/*
 * For each state: the words that may come next, and the state after each word. Two words may begin with the same bytes.
 */
static const struct step {
    const char *word; /* NULL: no more words */
    enum state next;
} steps[STATES][STEPS_MAX] = {
    [AT_FENCE] = {{"```", IN_FENCE}},
    [AFTER_FENCE] = {{"[", IN_LIST}, {"{", IN_CALL}},
    [IN_LIST] = {{"{", IN_CALL}},
    [IN_CALL] = {{"\"name\"", AFTER_NAME_KEY},
                 {"\"function\"", AFTER_FUNCTION},
                 {"\"type\"", AFTER_TYPE},
                 {"{", IN_DOUBLED}},
    [IN_DOUBLED] = {{"\"name\"", AFTER_NAME_KEY}, {"\"function\"", AFTER_FUNCTION}, {"\"type\"", AFTER_TYPE}},
    [AFTER_TYPE] = {{":", TYPE}},
    [TYPE] = {{"\"function\"", AFTER_TYPE_VALUE}},
    [AFTER_TYPE_VALUE] = {{",", AFTER_TYPE_MEMBER}},
    [AFTER_TYPE_MEMBER] = {{"\"name\"", AFTER_NAME_KEY}, {"\"function\"", AFTER_FUNCTION}},
    [AFTER_FUNCTION] = {{":", FUNCTION}},
    [FUNCTION] = {{"{", IN_FUNCTION}},
    [IN_FUNCTION] = {{"\"name\"", AFTER_NAME_KEY}},
    [AFTER_NAME_KEY] = {{":", NAME}},
    [NAME] = {{"\"", IN_NAME}},
};

static bool is_in_line(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_one_of(char c, const char *set) {
    return memchr(set, c, strlen(set)) != NULL;
}

bool fm_json_call_names(const struct fm_tool *tool) {
    size_t len = strspn(tool->name, NAME_CHARACTERS);
    return tool->allowed && !tool->name[len] && len <= FM_JSON_CALL_NAME_MAX;
}

void fm_json_call_init(struct fm_json_call *call, const struct fm_kit_job *job, bool anywhere) {
    *call = (struct fm_json_call){.job = job, .anywhere = anywhere, .place = true, .state = NONE};
}

static void enter(struct fm_json_call *call, enum state state) {
    call->state = state;
    call->matched = 0;
    call->spaces = 0;
}

/* Whether `word` begins with the bytes that have come, and continues with `c`. */
static bool takes(struct fm_json_call *call, const char *word, char c) {
    bool same = call->matched == 0 || strncmp(word, call->word, call->matched) == 0;
    bool goes_on = same && word[call->matched] == c;
    call->word = goes_on ? word : call->word;
    return goes_on;
}

/* Whether one of the words that may come here continues with `c`, which may be its last byte. */
static bool read_word(struct fm_json_call *call, char c) {
    const struct step *list = steps[call->state];
    for (size_t i = 0; i < STEPS_MAX && list[i].word; i++) {
        if (takes(call, list[i].word, c)) {
            if (!list[i].word[++call->matched]) {
                enter(call, list[i].next);
            }
            return true;
        }
    }
    return false;
}

/* Works as read_word, but for the names of tools. `*named` becomes the tool whose name ends with this quote. */
static bool read_name(struct fm_json_call *call, char c, const struct fm_tool **named) {
    const struct fm_kit_job *job = call->job;
    for (size_t i = 0; i < job->tool_count; i++) {
        const struct fm_tool *tool = &job->tools[i];
        if (c && fm_json_call_names(tool) && takes(call, tool->name, c == '"' ? '\0' : c)) {
            *named = c == '"' ? tool : NULL;
            call->matched++;
            return true;
        }
    }
    return false;
}

/* The rest of the line after the backticks: the name of a language. */
static bool read_fence(struct fm_json_call *call, char c) {
    bool word = is_letter(c) || (c >= '0' && c <= '9') || c == '_';
    if (c == '\n') {
        enter(call, AFTER_FENCE);
    }
    return c == '\n' || ((word || is_in_line(c)) && call->spaces++ < FM_JSON_CALL_SPACES);
}

static bool read_tag(struct fm_json_call *call, char c) {
    bool ends = c == '>' && call->spaces > 0;
    if (call->spaces == 0 && is_one_of(c, "[{")) {
        enter(call, AFTER_FENCE);
        return read_word(call, c);
    }
    if (ends) {
        enter(call, AFTER_FENCE);
    }
    return ends || ((is_letter(c) || c == '_') && call->spaces++ < FM_JSON_CALL_TAG_MAX);
}

static bool goes_on(struct fm_json_call *call, char c, const struct fm_tool **named) {
    if (call->state == NONE) {
        return false;
    }
    if (call->state == IN_FENCE) {
        return read_fence(call, c);
    }
    if (call->state == IN_TAG) {
        return read_tag(call, c);
    }
    if (call->state == IN_NAME) {
        return read_name(call, c, named);
    }
    if (call->matched == 0 && call->state != AT_FENCE && (is_in_line(c) || c == '\n')) {
        return call->spaces++ < FM_JSON_CALL_SPACES;
    }
    return read_word(call, c);
}

/* Whether only white space is before `c` in its line. An object that begins there is a call, or is inside one. */
static bool begins(struct fm_json_call *call, char c) {
    if (c == '`') {
        enter(call, AT_FENCE);
        return read_word(call, c);
    }
    bool opens = (call->place || call->anywhere) && (c == '{' || c == '[' || c == '<');
    if (opens) {
        enter(call, c == '{' ? IN_CALL : c == '[' ? IN_LIST : IN_TAG);
    }
    return opens;
}

const struct fm_tool *fm_json_call_read(struct fm_json_call *call, char c) {
    const struct fm_tool *named = NULL;
    bool at_start = call->anywhere || call->line == FM_JSON_CALL_BLANK;
    bool more = goes_on(call, c, &named);
    call->len = more ? call->len : 0;
    if (at_start && !(more && (c == '`' || c == '['))) {
        more = begins(call, c) || more;
    }
    if (!more) {
        enter(call, NONE);
    }
    call->len += more;
    if (c == '\n') {
        call->place = call->line != FM_JSON_CALL_OPENER;
        call->line = FM_JSON_CALL_BLANK;
    } else if (!is_in_line(c)) {
        call->line = is_one_of(c, FM_JSON_CALL_OPENERS) ? FM_JSON_CALL_OPENER : FM_JSON_CALL_OTHER;
    }
    return named;
}
