/*
 * Splits an answer into the model's thoughts and its text, by the thought form. It does not matter how the bytes are
 * cut into calls.
 */
#include "engine/chat/thoughts.h"

#include <string.h>

#define PART_MAX (64u << 20) /* bytes of one token, with the bytes held before */

void fm_thought_parser_init(struct fm_thought_parser *parser, const struct fm_thought_form *form,
                            enum fm_thought_state state) {
    *parser = (struct fm_thought_parser){.form = form, .state = state};
    fm_buf_init(&parser->thought, PART_MAX);
    fm_buf_init(&parser->text, PART_MAX);
}

void fm_thought_parser_free(struct fm_thought_parser *parser) {
    fm_buf_free(&parser->thought);
    fm_buf_free(&parser->text);
}

/* The length of `end` without the lead. */
static size_t end_len_of(const struct fm_thought_form *form) {
    return form->thinks ? strlen(form->end) - strlen(form->lead) : 0;
}

void fm_thought_marks(const struct fm_thought_form *form, struct fm_thought_mark marks[FM_THOUGHT_MARKS]) {
    const struct fm_thought_mark all[FM_THOUGHT_MARKS] = {
        {form->begin, strlen(form->begin), fm_tool_space(form->begin, strlen(form->begin)), FM_THOUGHT_BEGUN},
        {form->end, end_len_of(form), 0, FM_THOUGHT_AFTER},
        {form->lead, strlen(form->lead), fm_tool_space(form->lead, strlen(form->lead)), FM_THOUGHT_OVER},
        {form->preamble, strlen(form->preamble), 0, FM_THOUGHT_OVER},
    };
    memcpy(marks, all, sizeof all);
}

enum match { MATCH_NOT, MATCH_BEGINS, MATCH_WHOLE };

/* How the bytes match the best of the first `count` marks; `*next` is the state after a mark that is complete. */
static enum match match(const struct fm_thought_form *form, size_t count, const char *bytes, size_t len,
                        enum fm_thought_state *next) {
    struct fm_thought_mark marks[FM_THOUGHT_MARKS];
    enum match best = MATCH_NOT;
    fm_thought_marks(form, marks);
    for (size_t i = 0; i < count && best != MATCH_WHOLE; i++) {
        const char *text = marks[i].text + marks[i].space;
        size_t mark_len = marks[i].len - marks[i].space;
        if (mark_len > 0 && len <= mark_len && memcmp(text, bytes, len) == 0) {
            best = len < mark_len ? MATCH_BEGINS : MATCH_WHOLE;
            *next = marks[i].next;
        }
    }
    return best;
}

/* Appends the first `len` held bytes, which belong to no mark, to `out`, without control tokens. */
static void release_held(struct fm_thought_parser *parser, size_t len, struct fm_buf *out) {
    bool thought = out == &parser->thought;
    for (size_t i = 0; i < len; i++) {
        if (!parser->held_control[i]) {
            fm_buf_append_str(out, thought && parser->joins ? "\n\n" : "");
            fm_buf_append_char(out, parser->held[i]);
            parser->joins &= !thought;
            parser->thought_told |= thought;
        }
    }
    parser->held_len -= len;
    memmove(parser->held, parser->held + len, parser->held_len);
    memmove(parser->held_control, parser->held_control + len, parser->held_len * sizeof *parser->held_control);
}

static void hold(struct fm_thought_parser *parser, char c, bool control) {
    parser->held_control[parser->held_len] = control;
    parser->held[parser->held_len++] = c;
}

static void go_to(struct fm_thought_parser *parser, enum fm_thought_state next) {
    parser->held_len = 0;
    parser->state = next;
    parser->joins = next == FM_THOUGHT_BEGUN && parser->thought_told;
}

/* Drops white space after a thought. */
static void read_start(struct fm_thought_parser *parser, char c, bool control) {
    bool after = parser->state == FM_THOUGHT_AFTER;
    enum fm_thought_state next = FM_THOUGHT_OVER;
    if (after && parser->held_len == 0 && fm_tool_is_space(c)) {
        parser->space++;
        return;
    }
    hold(parser, c, control);
    size_t space = fm_tool_space(parser->held, parser->held_len);
    enum match found = match(parser->form, FM_THOUGHT_MARKS, parser->held + space, parser->held_len - space, &next);
    if (found == MATCH_WHOLE) {
        go_to(parser, next);
    } else if (space == FM_THOUGHT_SPACE_MAX || (found == MATCH_NOT && space < parser->held_len)) {
        release_held(parser, parser->held_len, &parser->text);
        parser->state = FM_THOUGHT_OVER;
    }
}

/* Releases the held bytes that neither begin a mark nor are white space before one. */
static void read_inside(struct fm_thought_parser *parser, char c, bool control) {
    enum fm_thought_state next = FM_THOUGHT_INSIDE;
    hold(parser, c, control);
    while (parser->held_len > 0) {
        size_t space = fm_tool_space(parser->held, parser->held_len);
        size_t len = parser->held_len - space;
        enum match found = match(parser->form, FM_THOUGHT_MARKS_INSIDE, parser->held + space, len, &next);
        if (found == MATCH_WHOLE) {
            go_to(parser, next);
        } else if (found == MATCH_NOT || space == FM_THOUGHT_SPACE_MAX) {
            release_held(parser, space > 0 ? space : 1, &parser->thought);
        } else {
            return;
        }
    }
}

static void read_byte(struct fm_thought_parser *parser, char c, bool control) {
    switch (parser->state) {
    case FM_THOUGHT_AT_START:
    case FM_THOUGHT_AFTER: read_start(parser, c, control); break;
    case FM_THOUGHT_BEGUN:
        if (fm_tool_is_space(c)) {
            break;
        }
        parser->state = FM_THOUGHT_INSIDE;
        read_inside(parser, c, control);
        break;
    case FM_THOUGHT_INSIDE: read_inside(parser, c, control); break;
    case FM_THOUGHT_OVER: fm_buf_append_char(&parser->text, c); break;
    }
}

enum fm_thought_start fm_thought_match_start(const struct fm_thought_form *form, const char *bytes, size_t len) {
    enum fm_thought_state next;
    size_t space = fm_tool_space(bytes, len);
    enum match found = MATCH_BEGINS;
    for (size_t i = space; i < len && found == MATCH_BEGINS; i++) {
        found = match(form, FM_THOUGHT_MARKS, bytes + space, i + 1 - space, &next);
    }
    return space > FM_THOUGHT_SPACE_MAX || found == MATCH_NOT ? FM_THOUGHT_NO_START
           : found == MATCH_WHOLE                             ? FM_THOUGHT_START
                                                              : FM_THOUGHT_MAY_START;
}

static bool is_sound(const struct fm_thought_parser *parser) {
    return !parser->thought.failed && !parser->text.failed;
}

bool fm_thought_read(struct fm_thought_parser *parser, const char *bytes, size_t len, bool control) {
    fm_buf_reset(&parser->thought);
    fm_buf_reset(&parser->text);
    for (size_t i = 0; i < len; i++) {
        read_byte(parser, bytes[i], control);
    }
    return is_sound(parser);
}

bool fm_thought_end(struct fm_thought_parser *parser) {
    fm_buf_reset(&parser->thought);
    fm_buf_reset(&parser->text);
    if (parser->state == FM_THOUGHT_AT_START || parser->state == FM_THOUGHT_AFTER) {
        release_held(parser, parser->held_len, &parser->text);
    } else if (fm_tool_space(parser->held, parser->held_len) < parser->held_len) {
        release_held(parser, parser->held_len, &parser->thought);
    }
    parser->held_len = 0;
    return is_sound(parser);
}

/* ---- where an answer begins ---- */

bool fm_thought_is_closed(const struct fm_thought_form *form, const char *text, size_t len) {
    const size_t end_len = end_len_of(form);
    return fm_tool_ends_with(text, len, form->end, end_len) &&
           (!form->lead[0] ||
            fm_tool_ends_with(text, fm_tool_trimmed(text, len) - end_len, form->begin, strlen(form->begin)));
}

enum fm_thought_state fm_thought_prompt(const struct fm_thought_form *form, const struct fm_kit_job *job,
                                        const char *text, size_t len, struct fm_buf *more) {
    if (!form->thinks && !form->lead[0]) {
        return FM_THOUGHT_OVER;
    }
    bool calls = fm_tools_callable(job); /* calls come without the lead */
    bool opened = form->prompts && fm_tool_ends_with(text, len, form->begin, strlen(form->begin));
    if (form->prompts && !opened && fm_thought_is_closed(form, text, len)) {
        return FM_THOUGHT_AFTER;
    }
    if (job->effort != FM_EFFORT_NONE || (form->turns_off && !opened) || !form->thinks) {
        return opened ? FM_THOUGHT_BEGUN : FM_THOUGHT_AT_START;
    }
    if (!opened && form->lead[0]) {
        fm_buf_append_str(more, calls ? "" : form->lead);
        return calls ? FM_THOUGHT_AT_START : FM_THOUGHT_OVER;
    }
    if (!opened) {
        fm_buf_append_str(more, form->begin);
        fm_buf_append_str(more, "\n\n");
    }
    fm_buf_append(more, form->end, calls ? end_len_of(form) : strlen(form->end));
    fm_buf_append_str(more, form->gap);
    return FM_THOUGHT_AFTER;
}
