/*
 * Splits an answer into text and calls. The tool grammar ensures that the answer is valid: the parser finds where names
 * and arguments begin and end, and skips the rest by its length.
 */
#include "engine/chat/tools.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <string.h>

#define NAME_MAX_BYTES (1u << 20) /* bytes of a name in JSON */

#define HELD_MAX (64u << 20) /* bytes */

static void skip(struct fm_tool_parser *parser, size_t count, enum fm_tool_state next) {
    parser->state = count ? FM_TOOL_IN_MARK : next;
    parser->skip = count;
    parser->after_place = 0;
    parser->next = next;
}

/* Skips `before` bytes and then `mark`. The place in the mark, however long, counts as one byte. */
static void skip_mark(struct fm_tool_parser *parser, size_t before, const struct fm_tool_mark *mark,
                      enum fm_tool_state next) {
    const size_t place = fm_tool_place_len(mark);
    skip(parser, before + mark->len - (place ? place - 1 : 0), next);
    parser->mark = mark;
    parser->after_place = place ? mark->len - mark->place_at - place : 0;
}

void fm_tool_parser_init(struct fm_tool_parser *parser, const struct fm_kit_job *job, const struct fm_tool_form *form) {
    *parser = (struct fm_tool_parser){.job = job, .form = form, .hold_space = job->stop_count == 0};
    fm_buf_init(&parser->name, NAME_MAX_BYTES);
    fm_buf_init(&parser->held, HELD_MAX);
    fm_json_call_init(&parser->json, job, false);
    parser->matched = form->opened ? form->next.len : 0;
    if (form->header.recipient) {
        parser->state = job->tool_mode == FM_TOOLS_REQUIRED ? FM_TOOL_IN_HEAD : FM_TOOL_AT_HEAD;
    } else if (job->tool_mode == FM_TOOLS_REQUIRED) {
        skip_mark(parser, form->trigger.len, &form->name, FM_TOOL_IN_NAME);
    } else if (job->format.kind != FM_FORMAT_TEXT) {
        parser->state = FM_TOOL_AT_START;
    }
}

void fm_tool_parser_free(struct fm_tool_parser *parser) {
    fm_buf_free(&parser->name);
    fm_buf_free(&parser->held);
}

static size_t take_bytes(const char **bytes, size_t *len, size_t count) {
    count = count < *len ? count : *len;
    *bytes += count;
    *len -= count;
    return count;
}

/* ---- text ---- */

bool fm_tool_is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

size_t fm_tool_space(const char *bytes, size_t len) {
    size_t space = 0;
    while (space < len && fm_tool_is_space(bytes[space])) {
        space++;
    }
    return space;
}

size_t fm_tool_trimmed(const char *bytes, size_t len) {
    while (len > 0 && fm_tool_is_space(bytes[len - 1])) {
        len--;
    }
    return len;
}

bool fm_tool_ends_with(const char *bytes, size_t len, const char *mark, size_t mark_len) {
    len = fm_tool_trimmed(bytes, len);
    return mark_len > 0 && len >= mark_len && memcmp(bytes + len - mark_len, mark, mark_len) == 0;
}

static void drop_given(struct fm_tool_parser *parser) {
    struct fm_buf *held = &parser->held;
    if (parser->given > 0) {
        held->len -= parser->given;
        memmove(held->data, held->data + parser->given, held->len);
        parser->given = 0;
    }
}

/*
 * Passes on the held bytes, except the last `count`, which are not text or may not be text, and the white space before
 * them. False if there is nothing to pass on.
 */
static bool give_before(struct fm_tool_parser *parser, size_t count, struct fm_tool_piece *piece) {
    const struct fm_buf *held = &parser->held;
    if (held->failed) {
        *piece = (struct fm_tool_piece){.kind = FM_TOOL_NO_MEMORY};
        return true;
    }
    size_t len = held->len - count;
    size_t least = len > FM_TOOL_SPACE_MAX ? len - FM_TOOL_SPACE_MAX : 0;
    while (parser->hold_space && len > least && fm_tool_is_space(held->data[len - 1])) {
        len--;
    }
    parser->given = len;
    *piece = (struct fm_tool_piece){.kind = FM_TOOL_TEXT, .bytes = held->data, .len = len};
    return len > 0;
}

/* Passes on held bytes as give_before does, and drops the last `count` bytes, which are not text. */
static bool give_and_drop(struct fm_tool_parser *parser, size_t count, struct fm_tool_piece *piece) {
    bool given = give_before(parser, count, piece);
    parser->given = parser->held.len;
    parser->matched = 0;
    return given;
}

/*
 * How many bytes at the end of `held` may be the beginning of a call in the form. The first bytes of that beginning may
 * be in the prompt.
 */
static size_t undecided_in_form(const struct fm_tool_parser *parser) {
    return parser->matched < parser->held.len ? parser->matched : parser->held.len;
}

static size_t undecided(const struct fm_tool_parser *parser) {
    const size_t matched = undecided_in_form(parser);
    return matched > parser->json.len ? matched : parser->json.len;
}

/* Takes `c`. True if the trigger is complete. No byte of text belongs to a control token or to a header. */
static bool ends_trigger(struct fm_tool_parser *parser, char c) {
    const struct fm_tool_mark *trigger = &parser->form->trigger;
    if (trigger->len == 0 || trigger->control_count > 0 || parser->form->header.recipient) {
        return false;
    }
    bool goes_on = c == trigger->text[parser->matched];
    parser->matched = goes_on ? parser->matched + 1 : c == trigger->text[0];
    return parser->matched == trigger->len;
}

/*
 * `c` is the next byte. True if `c` ends a tool's name after the prompt or `next` has opened a call; otherwise `c` is
 * counted in `matched`.
 */
static bool ends_opened_name(struct fm_tool_parser *parser, char c) {
    const struct fm_tool_mark *next = &parser->form->next;
    const struct fm_buf *held = &parser->held;
    const size_t len = parser->matched > next->len ? parser->matched - next->len : 0; /* bytes of a name */
    bool goes_on = parser->matched < next->len && c == next->text[0];
    if (!parser->form->opened || held->failed) {
        return false;
    }
    const char *begun = len > 0 ? held->data + held->len - len : "";
    for (size_t i = 0; i < parser->job->tool_count && parser->matched >= next->len; i++) {
        const struct fm_tool *tool = &parser->job->tools[i];
        bool same = tool->allowed && strncmp(tool->name, begun, len) == 0;
        if (same && !tool->name[len] && c == parser->form->arguments.text[0]) {
            return true;
        }
        goes_on = goes_on || (same && c && tool->name[len] == c);
    }
    if (goes_on) {
        parser->matched++;
    } else if (c != next->text[0]) {
        parser->matched = 0;
    } else { /* `next` is one byte repeated; some of it may be in the prompt */
        parser->matched = len > 0 ? 1 : held->len + 1 < next->len ? held->len + 1 : next->len;
    }
    return false;
}

/* The name is complete, at the end of the held bytes. From now on it is handled like any other name. */
static bool give_opened_name(struct fm_tool_parser *parser, struct fm_tool_piece *piece) {
    const struct fm_buf *held = &parser->held;
    const size_t len = parser->matched - parser->form->next.len;
    fm_buf_append(&parser->name, held->data + held->len - len, len);
    parser->state = FM_TOOL_IN_NAME;
    return give_and_drop(parser, undecided_in_form(parser), piece);
}

/* Whether a name in plain JSON ends with the next byte, a quote. */
static bool ends_json_name(struct fm_tool_parser *parser, char c) {
    const struct fm_tool *tool = fm_json_call_read(&parser->json, c);
    if (tool) {
        parser->called = tool;
        parser->state = FM_TOOL_AT_JSON_CALL;
    }
    return tool;
}

static bool read_text(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    drop_given(parser);
    while (*len > 0) {
        char c = **bytes;
        if (ends_json_name(parser, c)) {
            return give_and_drop(parser, parser->json.len - 1, piece);
        }
        if (ends_opened_name(parser, c)) {
            return give_opened_name(parser, piece);
        }
        take_bytes(bytes, len, 1);
        fm_buf_append_char(&parser->held, c);
        if (ends_trigger(parser, c)) {
            bool given = give_before(parser, parser->matched, piece);
            parser->matched = 0;
            skip_mark(parser, 0, &parser->form->name, FM_TOOL_IN_NAME);
            return given;
        }
    }
    return give_before(parser, undecided(parser), piece);
}

/* Whether `mark` begins with `token`. */
static bool is_first(const struct fm_tool_mark *mark, int32_t token) {
    return mark->control_count > 0 && mark->controls[0].at == 0 && mark->controls[0].token == token;
}

static bool begins_header(const struct fm_tool_header *header, int32_t token) {
    bool begins = is_first(&header->between, token);
    for (size_t i = 0; i < header->head_count; i++) {
        begins = begins || is_first(&header->heads[i], token);
    }
    return begins;
}

/* The bytes that could have become a head are text. */
static void hold_head(struct fm_tool_parser *parser) {
    if (parser->state == FM_TOOL_AT_HEAD && parser->skip > 0) {
        fm_buf_append(&parser->held, parser->head->text, parser->skip);
        parser->skip = 0;
    }
}

bool fm_tool_parser_read_trigger(struct fm_tool_parser *parser, int32_t token, struct fm_tool_piece *piece) {
    const struct fm_tool_form *form = parser->form;
    bool in_text = parser->state == FM_TOOL_IN_TEXT || parser->state == FM_TOOL_AT_START ||
                   parser->state == FM_TOOL_AT_HEAD;
    bool header = form->header.recipient && begins_header(&form->header, token);
    bool call = header || (!form->header.recipient && is_first(&form->trigger, token));
    if (!in_text || !(call || is_first(&form->text_end, token))) {
        return false;
    }
    drop_given(parser);
    hold_head(parser);
    parser->hold_space &= call;
    (void)give_and_drop(parser, 0, piece);
    if (header || !call) {
        skip(parser, 0, header ? FM_TOOL_IN_HEAD : FM_TOOL_AT_END);
    } else {
        skip_mark(parser, 0, &form->name, FM_TOOL_IN_NAME);
    }
    return true;
}

static bool read_plain(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    (void)parser;
    *piece = (struct fm_tool_piece){.kind = FM_TOOL_TEXT, .bytes = *bytes, .len = *len};
    take_bytes(bytes, len, *len);
    return true;
}

/* fm_tool_form_for has chosen the form for the job because no text of its format begins as a call does. */
static bool read_start(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    const struct fm_tool_form *form = parser->form;
    (void)len;
    (void)piece;
    parser->state = FM_TOOL_IN_PLAIN;
    if (form->trigger.control_count == 0 && **bytes == form->trigger.text[0]) {
        skip_mark(parser, form->trigger.len, &form->name, FM_TOOL_IN_NAME);
    }
    return false;
}

/* ---- headers of calls ---- */

/* The head that begins with `c`, among those without a control token; NULL: none. */
static const struct fm_tool_mark *find_head(const struct fm_tool_header *header, char c) {
    const struct fm_tool_mark *found = NULL;
    for (size_t i = 0; i < header->head_count && !found; i++) {
        const struct fm_tool_mark *head = &header->heads[i];
        found = head->control_count == 0 && head->text[0] == c ? head : NULL;
    }
    return found;
}

/* Reads bytes that may belong to a head. If they do not, all of them are text. */
static bool read_first(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    const char c = **bytes;
    const struct fm_tool_mark *head = parser->skip > 0 ? parser->head : find_head(&parser->form->header, c);
    if (head && head->text[parser->skip] == c) {
        take_bytes(bytes, len, 1);
        parser->head = head;
        if (++parser->skip == head->len) {
            parser->state = FM_TOOL_IN_NAME;
        }
        return false;
    }
    const char *text = head ? head->text : "";
    size_t text_len = parser->skip;
    parser->state = parser->job->format.kind == FM_FORMAT_TEXT ? FM_TOOL_IN_TEXT : FM_TOOL_IN_PLAIN;
    return fm_tool_parser_read(parser, &text, &text_len, piece);
}

static bool read_head(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    const char *recipient = parser->form->header.recipient;
    char c = **bytes;
    (void)piece;
    take_bytes(bytes, len, 1);
    parser->skip = c == recipient[parser->skip] ? parser->skip + 1 : c == recipient[0];
    if (!recipient[parser->skip]) {
        parser->state = FM_TOOL_IN_NAME;
    }
    return false;
}

static bool read_rest(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    (void)piece;
    if (**bytes == '{') {
        parser->state = FM_TOOL_IN_ARGUMENTS;
    } else {
        take_bytes(bytes, len, 1);
    }
    return false;
}

/* ---- calls ---- */

static bool read_mark(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    (void)piece;
    while (*len > 0 && parser->skip > 0) {
        bool more = parser->skip == parser->after_place && fm_tool_in_place(parser->mark, **bytes);
        take_bytes(bytes, len, 1);
        parser->skip -= !more;
    }
    if (parser->skip == 0) {
        parser->state = parser->next;
    }
    return false;
}

/* Whether a JSON string that ends with `quote` goes on after `c`. */
static bool string_goes_on(struct fm_tool_parser *parser, char c, char quote) {
    bool ends = c == quote && !parser->escaped;
    parser->escaped = c == '\\' && !parser->escaped;
    return !ends;
}

/* The tool that may be called and has the name `parser->name`, a JSON string without its quotes; NULL: none. */
static const struct fm_tool *find_tool(const struct fm_tool_parser *parser, bool *failed) {
    const struct fm_tool *found = NULL;
    struct fm_buf quoted;
    fm_buf_init(&quoted, NAME_MAX_BYTES + 2);
    for (size_t i = 0; i < parser->job->tool_count && !found; i++) {
        fm_buf_reset(&quoted);
        struct fm_json_writer w = fm_json_writer_on(&quoted);
        fm_json_str(&w, parser->job->tools[i].name);
        *failed |= quoted.failed;
        bool same = parser->job->tools[i].allowed && quoted.len == parser->name.len + 2 && quoted.len > 2 &&
                    memcmp(quoted.data + 1, parser->name.data, parser->name.len) == 0;
        found = same ? &parser->job->tools[i] : NULL;
    }
    fm_buf_free(&quoted);
    return found;
}

static bool name_goes_on(struct fm_tool_parser *parser, char c) {
    const struct fm_tool_form *form = parser->form;
    const char *end = form->arguments.text;
    for (size_t i = 0; i < form->header.rest_count; i++) {
        end = form->header.rests[i].text[0] == c ? form->header.rests[i].text : end;
    }
    return string_goes_on(parser, c, end[0]);
}

bool fm_tool_form_has_unknown(const struct fm_tool_form *form) {
    const struct fm_tool_mark *marks[] = {&form->trigger, &form->name, &form->arguments, &form->next, &form->end};
    bool plain = form->trigger.len > 0 && form->name.place == FM_TOOL_NO_PLACE && !form->header.recipient;
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        plain = plain && marks[i]->control_count == 0;
    }
    return plain;
}

bool fm_tool_form_retells_unknown(const struct fm_tool_form *form, const struct fm_kit_job *job) {
    return fm_tool_form_has_json(form) && (form->trigger.len > 0 || form->header.recipient) && fm_tools_allow_text(job);
}

/* Begins the text of a call of an unknown tool, up to its arguments or without them. After a call no text may come. */
static void begin_retold(struct fm_tool_parser *parser, struct fm_tool_piece *piece) {
    const bool whole = fm_tool_form_retells_unknown(parser->form, parser->job);
    fm_buf_reset(&parser->held);
    if (!parser->called) {
        fm_buf_append_str(&parser->held, parser->any_unknown ? FM_TOOL_NEXT FM_TOOL_NAME : FM_TOOL_BEGIN FM_TOOL_NAME);
        fm_buf_append(&parser->held, parser->name.data, parser->name.len);
        fm_buf_append_str(&parser->held, whole ? FM_TOOL_ARGUMENTS : "\"" FM_TOOL_END);
    }
    fm_buf_append_char(&parser->name, '\0');
    *piece = (struct fm_tool_piece){.kind = parser->name.failed ? FM_TOOL_NO_MEMORY : FM_TOOL_UNKNOWN,
                                    .name = parser->name.data};
    parser->unknown = parser->any_unknown = true;
    parser->state = whole ? FM_TOOL_AT_UNKNOWN : FM_TOOL_AT_END;
}

/* Passes on the call so far as text; the bytes after it are text too. The next byte is `c`, which ends the name. */
static void begin_unknown(struct fm_tool_parser *parser, char c, struct fm_tool_piece *piece) {
    const struct fm_tool_mark *mark = &parser->form->name;
    fm_buf_append(&parser->held, mark->text, mark->len);
    fm_buf_append(&parser->held, parser->name.data, parser->name.len);
    fm_buf_append_char(&parser->held, c);
    fm_buf_append_char(&parser->name, '\0');
    *piece = (struct fm_tool_piece){.kind = parser->name.failed ? FM_TOOL_NO_MEMORY : FM_TOOL_UNKNOWN,
                                    .name = parser->name.data};
    fm_json_call_init(&parser->json, parser->job, false);
    parser->state = FM_TOOL_IN_TEXT;
}

static void skip_to_arguments(struct fm_tool_parser *parser) {
    const struct fm_tool_form *form = parser->form;
    if (form->header.recipient) {
        parser->state = FM_TOOL_IN_REST;
        return;
    }
    skip_mark(parser, 0, &form->arguments,
              form->notation.open        ? FM_TOOL_IN_NOTATION
              : form->tags.key.len > 0 ? FM_TOOL_AT_KEY
                                       : FM_TOOL_IN_ARGUMENTS);
}

/* Passes on all held bytes as text. */
static bool give_text(struct fm_tool_parser *parser, struct fm_tool_piece *piece) {
    struct fm_buf *held = &parser->held;
    *piece = (struct fm_tool_piece){
        .kind = held->failed ? FM_TOOL_NO_MEMORY : FM_TOOL_TEXT, .bytes = held->data, .len = held->len};
    parser->given = held->len;
    return held->len > 0 || held->failed;
}

static bool read_name(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    const struct fm_tool_form *form = parser->form;
    char c = **bytes;
    if (name_goes_on(parser, c)) {
        take_bytes(bytes, len, 1);
        fm_buf_append_char(&parser->name, c);
        return false;
    }
    bool failed = parser->name.failed;
    const struct fm_tool *tool = find_tool(parser, &failed);
    drop_given(parser);
    if (!tool && !failed && (parser->called || !fm_tool_form_has_unknown(form))) {
        begin_retold(parser, piece);
        fm_buf_reset(&parser->name);
        return true;
    }
    if (!tool && !failed) {
        take_bytes(bytes, len, 1);
        begin_unknown(parser, c, piece);
        fm_buf_reset(&parser->name);
        return true;
    }
    *piece = failed ? (struct fm_tool_piece){.kind = FM_TOOL_NO_MEMORY}
                    : (struct fm_tool_piece){.kind = FM_TOOL_CALL, .name = tool->name};
    fm_buf_reset(&parser->held);
    fm_buf_reset(&parser->name);
    parser->called = tool;
    parser->any_key = false;
    parser->notation = (struct fm_notation_reader){.notation = &form->notation};
    skip_to_arguments(parser);
    return true;
}

static bool read_unknown(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    (void)bytes;
    (void)len;
    skip_to_arguments(parser);
    return give_text(parser, piece);
}

/* Takes `c`. False after the brace that ends the arguments. */
static bool arguments_go_on(struct fm_tool_parser *parser, char c) {
    if (parser->in_string) {
        parser->in_string = string_goes_on(parser, c, '"');
        return true;
    }
    bool closes = c == '}' || c == ']';
    parser->in_string = c == '"';
    parser->depth += c == '{' || c == '[';
    parser->depth -= closes;
    return !closes || parser->depth > 0;
}

static bool read_arguments(struct fm_tool_parser *parser, const char **bytes, size_t *len,
                           struct fm_tool_piece *piece) {
    size_t count = 0;
    bool more = true;
    while (more && count < *len) {
        more = arguments_go_on(parser, (*bytes)[count++]);
    }
    const char *part = *bytes;
    *piece = (struct fm_tool_piece){.kind = FM_TOOL_PART_OF_ARGUMENTS, .bytes = part, .len = count};
    take_bytes(bytes, len, count);
    if (!more) {
        parser->state = parser->json.anywhere ? FM_TOOL_AFTER_JSON_CALL : FM_TOOL_IN_NEXT;
        parser->skip = 0;
    }
    if (!parser->unknown) {
        return true;
    }
    parser->unknown = more;
    drop_given(parser);
    if (!parser->called) {
        fm_buf_append(&parser->held, part, count);
        fm_buf_append_str(&parser->held, more ? "" : FM_TOOL_END);
    }
    return give_text(parser, piece);
}

/* ---- arguments in tags ---- */

/* Passes on the held bytes as a part of the arguments. */
static bool give_arguments(struct fm_tool_parser *parser, struct fm_tool_piece *piece) {
    struct fm_buf *held = &parser->held;
    enum fm_tool_kind kind = held->failed || parser->name.failed ? FM_TOOL_NO_MEMORY : FM_TOOL_PART_OF_ARGUMENTS;
    *piece = (struct fm_tool_piece){.kind = kind, .bytes = held->data, .len = held->len};
    parser->given = held->len;
    return held->len > 0 || kind == FM_TOOL_NO_MEMORY;
}

/*
 * Reads the mark before a key. If other bytes come, the arguments end, and the bytes that matched so far belong to the
 * text after the arguments.
 */
static bool read_key_mark(struct fm_tool_parser *parser, const char **bytes, size_t *len,
                          struct fm_tool_piece *piece) {
    const struct fm_tool_mark *mark = &parser->form->tags.key;
    const struct fm_tool_mark *none = &parser->form->tags.none;
    drop_given(parser);
    if (**bytes != mark->text[parser->skip]) {
        fm_buf_append_str(&parser->held, parser->any_key ? "}" : "{}");
        parser->state = FM_TOOL_IN_NEXT;
        if (parser->skip == 0 && !parser->any_key && none->len > 0 && **bytes == none->text[0]) {
            skip(parser, none->len, FM_TOOL_IN_NEXT);
        }
        return give_arguments(parser, piece);
    }
    take_bytes(bytes, len, 1);
    if (++parser->skip == mark->len) {
        parser->state = FM_TOOL_IN_KEY;
    }
    return false;
}

static bool read_key(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    const struct fm_tool_tags *tags = &parser->form->tags;
    struct fm_json_writer w = fm_json_writer_on(&parser->held);
    struct json_object *property = NULL;
    struct json_object *root = parser->called ? parser->called->parameters : NULL;
    char c = **bytes;
    if (c != tags->raw.text[0]) {
        take_bytes(bytes, len, 1);
        fm_buf_append_char(&parser->name, c);
        return false;
    }
    drop_given(parser);
    fm_buf_append_char(&parser->held, parser->any_key ? ',' : '{');
    fm_json_key_text(&w, parser->name.data, parser->name.len);
    fm_buf_append_char(&parser->name, '\0');
    if (root && !parser->name.failed) {
        property = json_object_object_get(json_object_object_get(root, "properties"), parser->name.data);
    }
    enum fm_tool_value value = fm_tool_value_of(tags, root, property);
    bool raw = value == FM_TOOL_RAW_VALUE || value == FM_TOOL_RAW_OR_NULL;
    parser->maybe_null = value == FM_TOOL_RAW_OR_NULL;
    fm_buf_append_str(&parser->held, value == FM_TOOL_RAW_VALUE ? "\"" : "");
    bool given = give_arguments(parser, piece);
    fm_buf_reset(&parser->name);
    parser->any_key = true;
    skip(parser, raw ? tags->raw.len : tags->json.len, raw ? FM_TOOL_IN_RAW : FM_TOOL_IN_VALUE);
    return given;
}

/* How null is written in a text that begins with `c`. */
static const char *null_word(const struct fm_tool_parser *parser, char c) {
    return parser->form->tags.python && c == 'N' ? "None" : "null";
}

/* Takes a byte of a string; it is held back while the string may still be null. */
static void add_raw(struct fm_tool_parser *parser, char c) {
    struct fm_buf *begun = &parser->name;
    if (parser->maybe_null) {
        const char *word = null_word(parser, begun->len > 0 ? begun->data[0] : c);
        if (begun->len < strlen(word) && word[begun->len] == c) {
            fm_buf_append_char(begun, c);
            return;
        }
        parser->maybe_null = false;
        fm_buf_append_char(&parser->held, '"');
        fm_buf_append(&parser->held, begun->data, begun->len);
        fm_buf_reset(begun);
    }
    fm_notation_escape(c, &parser->held);
}

static void end_raw(struct fm_tool_parser *parser) {
    struct fm_buf *begun = &parser->name;
    bool is_null = parser->maybe_null && begun->len == strlen("null");
    if (parser->maybe_null) {
        fm_buf_append_str(&parser->held, is_null ? "null" : "\"");
        fm_buf_append(&parser->held, begun->data, is_null ? 0 : begun->len);
        fm_buf_reset(begun);
    }
    fm_buf_append_str(&parser->held, is_null ? "" : "\"");
    parser->maybe_null = false;
}

static bool read_raw(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    const struct fm_tool_mark *close = &parser->form->tags.close;
    drop_given(parser);
    while (*len > 0) {
        char c = **bytes;
        take_bytes(bytes, len, 1);
        if (c != close->text[parser->skip]) {
            for (size_t i = 0; i < parser->skip; i++) {
                add_raw(parser, close->text[i]);
            }
            parser->skip = 0;
        }
        if (c != close->text[parser->skip]) {
            add_raw(parser, c);
        } else if (++parser->skip == close->len) {
            end_raw(parser);
            skip(parser, parser->form->tags.after.len, FM_TOOL_AT_KEY);
            break;
        }
    }
    return give_arguments(parser, piece);
}

/* Reads a JSON value; Python's words for true, false and null are allowed too. */
static bool read_value(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    const struct fm_tool_tags *tags = &parser->form->tags;
    drop_given(parser);
    while (*len > 0) {
        char c = **bytes;
        bool outside = parser->depth == 0 && !parser->in_string;
        if (outside && c == tags->close.text[0]) {
            skip(parser, tags->close.len + tags->after.len, FM_TOOL_AT_KEY);
            break;
        }
        if (outside && c == 'N') {
            fm_buf_append_str(&parser->held, "null");
            skip(parser, strlen("None"), FM_TOOL_IN_VALUE);
            break;
        }
        take_bytes(bytes, len, 1);
        (void)arguments_go_on(parser, c);
        fm_buf_append_char(&parser->held, outside && c == 'T' ? 't' : outside && c == 'F' ? 'f' : c);
    }
    return give_arguments(parser, piece);
}

/* ---- arguments in another notation ---- */

static bool read_notation(struct fm_tool_parser *parser, const char **bytes, size_t *len,
                          struct fm_tool_piece *piece) {
    drop_given(parser);
    while (*len > 0 && parser->state == FM_TOOL_IN_NOTATION) {
        if (fm_notation_read(&parser->notation, **bytes, &parser->name, &parser->held)) {
            parser->state = FM_TOOL_IN_NEXT;
            parser->skip = 0;
        }
        take_bytes(bytes, len, 1);
    }
    return give_arguments(parser, piece);
}

/* ---- after a call ---- */

static bool read_next(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    const struct fm_tool_mark *next = &parser->form->next;
    const size_t at = parser->skip;
    const size_t place_end = next->place_at + fm_tool_place_len(next);
    const bool in_place = fm_tool_in_place(next, **bytes);
    const bool begins_place = next->place && at == next->place_at;
    (void)piece;
    if (in_place && (begins_place || at == place_end)) {
        take_bytes(bytes, len, 1);
        parser->skip = place_end;
        return false;
    }
    if (begins_place || at >= next->len || **bytes != next->text[at]) {
        parser->state = FM_TOOL_AT_END;
        return false;
    }
    take_bytes(bytes, len, 1);
    if (++parser->skip == next->len) {
        parser->state = FM_TOOL_IN_NAME;
    }
    return false;
}

static bool read_json_call(struct fm_tool_parser *parser, const char **bytes, size_t *len,
                           struct fm_tool_piece *piece) {
    take_bytes(bytes, len, 1);
    parser->state = FM_TOOL_AFTER_JSON_NAME;
    *piece = (struct fm_tool_piece){.kind = FM_TOOL_CALL, .name = parser->called->name};
    return true;
}

static bool read_after_json_name(struct fm_tool_parser *parser, const char **bytes, size_t *len,
                                 struct fm_tool_piece *piece) {
    (void)piece;
    if (**bytes == '{') {
        fm_json_call_init(&parser->json, parser->job, true);
        parser->state = FM_TOOL_IN_ARGUMENTS;
    } else {
        take_bytes(bytes, len, 1);
    }
    return false;
}

static bool read_after_json_call(struct fm_tool_parser *parser, const char **bytes, size_t *len,
                                 struct fm_tool_piece *piece) {
    (void)piece;
    if (!ends_json_name(parser, **bytes)) {
        take_bytes(bytes, len, 1);
    }
    return false;
}

static bool read_end(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    (void)parser;
    (void)piece;
    take_bytes(bytes, len, *len);
    return false;
}

/* ---- all states ---- */

bool fm_tool_parser_read(struct fm_tool_parser *parser, const char **bytes, size_t *len, struct fm_tool_piece *piece) {
    static bool (*const readers[])(struct fm_tool_parser *, const char **, size_t *, struct fm_tool_piece *) = {
        [FM_TOOL_IN_TEXT] = read_text, [FM_TOOL_AT_START] = read_start, [FM_TOOL_IN_PLAIN] = read_plain,
        [FM_TOOL_AT_HEAD] = read_first, [FM_TOOL_IN_HEAD] = read_head, [FM_TOOL_IN_REST] = read_rest,
        [FM_TOOL_IN_MARK] = read_mark, [FM_TOOL_IN_NAME] = read_name,   [FM_TOOL_IN_ARGUMENTS] = read_arguments,
        [FM_TOOL_AT_KEY] = read_key_mark, [FM_TOOL_IN_KEY] = read_key, [FM_TOOL_IN_RAW] = read_raw,
        [FM_TOOL_IN_VALUE] = read_value,
        [FM_TOOL_IN_NOTATION] = read_notation, [FM_TOOL_AT_UNKNOWN] = read_unknown,
        [FM_TOOL_IN_NEXT] = read_next, [FM_TOOL_AT_END] = read_end,
        [FM_TOOL_AT_JSON_CALL] = read_json_call,
        [FM_TOOL_AFTER_JSON_NAME] = read_after_json_name,
        [FM_TOOL_AFTER_JSON_CALL] = read_after_json_call,
    };
    while (*len > 0) {
        if (readers[parser->state](parser, bytes, len, piece)) {
            return true;
        }
    }
    return false;
}

bool fm_tool_parser_end(struct fm_tool_parser *parser, bool cut, struct fm_tool_piece *piece) {
    drop_given(parser);
    if (!cut) {
        hold_head(parser);
    }
    parser->hold_space = false;
    if (parser->state == FM_TOOL_IN_MARK || parser->state == FM_TOOL_IN_NAME) {
        fm_buf_reset(&parser->held); /* a call has begun */
    }
    return give_and_drop(parser, cut ? undecided_in_form(parser) : 0, piece);
}
