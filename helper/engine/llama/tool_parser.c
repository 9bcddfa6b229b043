/*
 * The tool grammar has decided what the answer is: the parser finds where names and arguments begin and end, and skips
 * the rest by its length.
 */
#include "engine/llama/tools.h"
#include "protocol/json_writer.h"

#include <string.h>

#define NAME_MAX_BYTES (1u << 20) /* in JSON */

static const char begin_mark[] = FM_TOOL_BEGIN;

#define LENGTH_OF(literal) (sizeof literal - 1)

#define SPACE_MAX (FM_TOOL_HELD_MAX - LENGTH_OF(FM_TOOL_BEGIN))

/* FM_TOOL_NAME with the quote that the name begins with. */
#define BEFORE_NAME   (LENGTH_OF(FM_TOOL_NAME) + 1)
#define BETWEEN_CALLS (LENGTH_OF(FM_TOOL_END) - 1 + LENGTH_OF(FM_TOOL_NEXT) + BEFORE_NAME) /* without the brace */

static void skip(struct fm_tool_parser *parser, size_t count, enum fm_tool_state next) {
    parser->state = FM_TOOL_IN_MARK;
    parser->skip = count;
    parser->next = next;
}

void fm_tool_parser_init(struct fm_tool_parser *parser, const struct fm_job *job) {
    *parser = (struct fm_tool_parser){.job = job, .hold_space = job->stop_count == 0};
    fm_buf_init(&parser->name, NAME_MAX_BYTES);
    if (job->tool_mode == FM_TOOLS_REQUIRED) {
        skip(parser, LENGTH_OF(FM_TOOL_BEGIN) + BEFORE_NAME, FM_TOOL_IN_NAME);
    } else if (job->format.kind != FM_FORMAT_TEXT) {
        parser->state = FM_TOOL_AT_START;
    }
}

void fm_tool_parser_free(struct fm_tool_parser *parser) {
    fm_buf_free(&parser->name);
}

static size_t take(const char **bytes, size_t *len, size_t count) {
    count = count < *len ? count : *len;
    *bytes += count;
    *len -= count;
    return count;
}

/* ---- text ---- */

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool give_held(struct fm_tool_parser *parser, struct fm_tool_piece *piece) {
    *piece = (struct fm_tool_piece){.kind = FM_TOOL_TEXT, .bytes = parser->held, .len = parser->held_len};
    parser->held_len = 0;
    parser->matched = 0;
    return piece->len > 0;
}

/* What is no white space and begins no call. */
static bool give_plain(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    size_t count = 0;
    while (count < *len && (*bytes)[count] != begin_mark[0] && !(parser->hold_space && is_space((*bytes)[count]))) {
        count++;
    }
    *piece = (struct fm_tool_piece){.kind = FM_TOOL_TEXT, .bytes = *bytes, .len = take(bytes, len, count)};
    return true;
}

static bool read_text(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    char c = **bytes;
    bool marks = c == begin_mark[parser->matched];
    bool room = parser->held_len < SPACE_MAX;
    bool holds = marks || (parser->matched == 0 && parser->hold_space && is_space(c) && room);
    if (parser->held_len > 0 && !holds) {
        return give_held(parser, piece); /* and then the same byte again */
    }
    if (!holds) {
        return give_plain(parser, bytes, len, piece);
    }
    take(bytes, len, 1);
    parser->held[parser->held_len++] = c;
    parser->matched += marks;
    if (parser->matched == LENGTH_OF(FM_TOOL_BEGIN)) {
        parser->held_len = 0;
        skip(parser, BEFORE_NAME, FM_TOOL_IN_NAME);
    }
    return false;
}

static bool read_plain(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    (void)parser;
    *piece = (struct fm_tool_piece){.kind = FM_TOOL_TEXT, .bytes = *bytes, .len = *len};
    take(bytes, len, *len);
    return true;
}

static bool read_start(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    (void)len;
    (void)piece;
    parser->state = FM_TOOL_IN_PLAIN;
    if (**bytes == begin_mark[0]) { /* no JSON begins so */
        skip(parser, LENGTH_OF(FM_TOOL_BEGIN) + BEFORE_NAME, FM_TOOL_IN_NAME);
    }
    return false;
}

/* ---- calls ---- */

static bool read_mark(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    (void)piece;
    parser->skip -= take(bytes, len, parser->skip);
    if (parser->skip == 0) {
        parser->state = parser->next;
    }
    return false;
}

/* True inside a JSON string behind `c`, which is in one. */
static bool string_goes_on(struct fm_tool_parser *parser, char c) {
    bool ends = c == '"' && !parser->escaped;
    parser->escaped = c == '\\' && !parser->escaped;
    return !ends;
}

/* The tool whose name is, in JSON, `parser->name` between quotes. */
static const char *find_tool(const struct fm_tool_parser *parser, bool *failed) {
    const char *found = NULL;
    struct fm_buf quoted;
    fm_buf_init(&quoted, NAME_MAX_BYTES + 2);
    for (size_t i = 0; i < parser->job->tool_count && !found; i++) {
        const char *name = parser->job->tools[i].name;
        fm_buf_reset(&quoted);
        struct fm_json_writer w = fm_json_writer_on(&quoted);
        fm_json_str(&w, name);
        *failed |= quoted.failed;
        bool same = quoted.len == parser->name.len + 2 && quoted.len > 2 &&
                    memcmp(quoted.data + 1, parser->name.data, parser->name.len) == 0;
        found = same ? name : NULL;
    }
    fm_buf_free(&quoted);
    return found;
}

static bool read_name(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    char c = **bytes;
    take(bytes, len, 1);
    if (string_goes_on(parser, c)) {
        fm_buf_append_char(&parser->name, c);
        return false;
    }
    bool failed = parser->name.failed;
    const char *name = find_tool(parser, &failed);
    *piece = (struct fm_tool_piece){.kind = failed || !name ? FM_TOOL_NO_MEMORY : FM_TOOL_CALL, .name = name};
    fm_buf_reset(&parser->name);
    parser->called = true;
    skip(parser, LENGTH_OF(FM_TOOL_ARGUMENTS), FM_TOOL_IN_ARGUMENTS);
    return true;
}

/* Moves on by `c`. False at the brace behind the arguments. */
static bool arguments_go_on(struct fm_tool_parser *parser, char c) {
    if (parser->in_string) {
        parser->in_string = string_goes_on(parser, c);
        return true;
    }
    bool closes = c == '}' || c == ']';
    if (closes && parser->depth == 0) {
        return false;
    }
    parser->in_string = c == '"';
    parser->depth += c == '{' || c == '[';
    parser->depth -= closes;
    return true;
}

static bool read_arguments(struct fm_tool_parser *parser, const char **bytes, size_t *len,
                           struct fm_tool_piece *piece) {
    size_t count = 0;
    while (count < *len && arguments_go_on(parser, (*bytes)[count])) {
        count++;
    }
    *piece = (struct fm_tool_piece){.kind = FM_TOOL_PART_OF_ARGUMENTS, .bytes = *bytes, .len = count};
    take(bytes, len, count);
    if (*len > 0) {
        take(bytes, len, 1);
        skip(parser, BETWEEN_CALLS, FM_TOOL_IN_NAME);
    }
    return count > 0;
}

/* ---- all ---- */

bool fm_tool_parser_read(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    static bool (*const readers[])(struct fm_tool_parser *, const char **, size_t *, struct fm_tool_piece *) = {
        [FM_TOOL_IN_TEXT] = read_text, [FM_TOOL_AT_START] = read_start, [FM_TOOL_IN_PLAIN] = read_plain,
        [FM_TOOL_IN_MARK] = read_mark, [FM_TOOL_IN_NAME] = read_name,   [FM_TOOL_IN_ARGUMENTS] = read_arguments,
    };
    while (*len > 0) {
        if (readers[parser->state](parser, bytes, len, piece)) {
            return true;
        }
    }
    return false;
}

bool fm_tool_parser_end(struct fm_tool_parser *parser, struct fm_tool_piece *piece) {
    return give_held(parser, piece);
}
