/* Takes an answer apart into what the model thought and its text, by the thought form, whatever the pieces. */
#include "engine/chat/thoughts.h"

#include <string.h>

#define PART_MAX (64u << 20) /* bytes of one token, with what was held */

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

/* How the bytes stand to a mark. */
enum match { MATCH_NOT, MATCH_BEGINS, MATCH_WHOLE };

static enum match match(const char *mark, const char *bytes, size_t len) {
    size_t mark_len = strlen(mark);
    if (len > mark_len || memcmp(mark, bytes, len) != 0) {
        return MATCH_NOT;
    }
    return len < mark_len ? MATCH_BEGINS : mark_len > 0 ? MATCH_WHOLE : MATCH_NOT;
}

static size_t leading_space(const struct fm_thought_parser *parser) {
    size_t len = 0;
    while (len < parser->held_len && fm_tool_is_space(parser->held[len])) {
        len++;
    }
    return len;
}

/* The first `len` bytes that are held are no mark's: they go to `out`. */
static void release(struct fm_thought_parser *parser, size_t len, struct fm_buf *out) {
    fm_buf_append(out, parser->held, len);
    parser->held_len -= len;
    memmove(parser->held, parser->held + len, parser->held_len);
}

static void read_start(struct fm_thought_parser *parser, char c) {
    const struct fm_thought_form *form = parser->form;
    parser->held[parser->held_len++] = c;
    size_t space = leading_space(parser);
    size_t len = parser->held_len - space;
    enum match begin = match(form->begin, parser->held + space, len);
    enum match lead = match(form->lead, parser->held + space, len);
    if (begin == MATCH_WHOLE || lead == MATCH_WHOLE) {
        parser->held_len = 0;
        parser->state = begin == MATCH_WHOLE ? FM_THOUGHT_BEGUN : FM_THOUGHT_OVER;
    } else if ((begin == MATCH_NOT && lead == MATCH_NOT) || space == FM_THOUGHT_SPACE_MAX) {
        release(parser, parser->held_len, &parser->text);
        parser->state = FM_THOUGHT_OVER;
    }
}

/* Gives out as much of what is held as neither begins the end mark nor is white space before it. */
static void read_inside(struct fm_thought_parser *parser, char c) {
    parser->held[parser->held_len++] = c;
    while (parser->held_len > 0) {
        size_t space = leading_space(parser);
        enum match end = match(parser->form->end, parser->held + space, parser->held_len - space);
        if (end == MATCH_WHOLE) {
            parser->held_len = 0;
            parser->state = FM_THOUGHT_AFTER;
        } else if (end == MATCH_NOT || space == FM_THOUGHT_SPACE_MAX) {
            release(parser, space > 0 ? space : 1, &parser->thought);
        } else {
            return;
        }
    }
}

static void read_byte(struct fm_thought_parser *parser, char c) {
    bool space = fm_tool_is_space(c);
    switch (parser->state) {
    case FM_THOUGHT_AT_START: read_start(parser, c); break;
    case FM_THOUGHT_BEGUN:
        if (!space) {
            parser->state = FM_THOUGHT_INSIDE;
            read_inside(parser, c);
        }
        break;
    case FM_THOUGHT_INSIDE: read_inside(parser, c); break;
    case FM_THOUGHT_AFTER:
        parser->space += space;
        if (!space) {
            parser->state = FM_THOUGHT_OVER;
            fm_buf_append_char(&parser->text, c);
        }
        break;
    case FM_THOUGHT_OVER: fm_buf_append_char(&parser->text, c); break;
    }
}

static bool is_sound(const struct fm_thought_parser *parser) {
    return !parser->thought.failed && !parser->text.failed;
}

bool fm_thought_read(struct fm_thought_parser *parser, const char *bytes, size_t len) {
    fm_buf_reset(&parser->thought);
    fm_buf_reset(&parser->text);
    for (size_t i = 0; i < len; i++) {
        read_byte(parser, bytes[i]);
    }
    return is_sound(parser);
}

bool fm_thought_end(struct fm_thought_parser *parser) {
    fm_buf_reset(&parser->thought);
    fm_buf_reset(&parser->text);
    if (parser->state == FM_THOUGHT_AT_START) {
        release(parser, parser->held_len, &parser->text);
    } else if (leading_space(parser) < parser->held_len) {
        release(parser, parser->held_len, &parser->thought);
    }
    parser->held_len = 0;
    return is_sound(parser);
}

/* ---- where an answer begins ---- */

/* `text` ends with `mark`, white space after it not counted. */
static bool ends_with(const char *text, size_t len, const char *mark) {
    size_t mark_len = strlen(mark);
    while (len > 0 && fm_tool_is_space(text[len - 1])) {
        len--;
    }
    return len >= mark_len && memcmp(text + len - mark_len, mark, mark_len) == 0;
}

enum fm_thought_state fm_thought_prompt(const struct fm_thought_form *form, const struct fm_kit_job *job,
                                        const char *text, size_t len, struct fm_buf *more) {
    if (!form->thinks) {
        return FM_THOUGHT_OVER;
    }
    bool opened = form->prompts && ends_with(text, len, form->begin);
    bool closed = form->prompts && !opened && ends_with(text, len, form->end);
    if (closed) {
        return FM_THOUGHT_AFTER;
    }
    if (job->effort != FM_EFFORT_NONE || (form->turns_off && !opened)) {
        return opened ? FM_THOUGHT_BEGUN : FM_THOUGHT_AT_START;
    }
    if (!opened && form->lead[0]) {
        fm_buf_append_str(more, form->lead);
        return FM_THOUGHT_AFTER;
    }
    if (!opened) {
        fm_buf_append_str(more, form->begin);
        fm_buf_append_str(more, "\n\n");
    }
    fm_buf_append_str(more, form->end);
    fm_buf_append_str(more, form->gap);
    return FM_THOUGHT_AFTER;
}
