/* Makes one grammar of a job's format or tools, and checks the whole text if the grammar was less strict. */
#include "engine/guide/guide.h"
#include "base/clock.h"
#include "base/platform.h"
#include "engine/guide/guidance/guidance.h"
#include "engine/guide/schema.h"
#include "engine/guide/tool_grammar.h"
#include "protocol/json_writer.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (64u * 1024u * 1024u) /* bytes */

#define REASON_SIZE 300

/* checks that end do not take this long; a check that does not end uses a gigabyte a second */
#define CHECK_CPU_MS 400
#define CHECK_MS     10000 /* other programs may need the processors meanwhile */
#define CHECK_STACK  (16u << 20)

/*
 * The limit of brackets inside each other, of any kind: more than any real grammar has, and few enough for a recursive
 * parser.
 */
#define BRACKETS_MAX 200

/* ---- kinds of format ---- */

static enum fm_code compile(struct fm_guide *guide, struct fm_grammar_vocab *vocab, const char *kind,
                            struct fm_buf *text, const char *param, struct fm_error *error) {
    fm_buf_append(text, "", 1);
    if (text->failed) {
        return fm_fail_no_memory(error);
    }
    snprintf(guide->fault, sizeof guide->fault, "%s", param);
    return fm_grammar_new(vocab, kind, text->data, &guide->grammar, error);
}

/* The schema that the grammar is made of, if the format has a schema. */
static enum fm_code write_schema(struct fm_guide *guide, struct fm_kit_job *job, struct fm_buf *text,
                                 struct fm_error *error) {
    struct fm_schema schema;
    enum fm_code code = fm_schema_prepare(job->format.schema, job->format.strict, &schema, error);
    if (code != FM_OK) {
        return code;
    }
    fm_buf_append(text, schema.guide.data, schema.guide.len);
    fm_buf_append(&job->schema_report, schema.report.data, schema.report.len);
    guide->schema = schema.exact ? NULL : job->format.schema;
    fm_schema_free(&schema);
    return FM_OK;
}

static void write_json_object(struct fm_buf *text) {
    fm_buf_append_str(text, "{\"x-guidance\":{\"whitespace_flexible\":false},\"type\":\"object\"}");
}

static enum fm_code by_schema(struct fm_guide *guide, struct fm_kit_job *job, struct fm_grammar_vocab *vocab,
                              struct fm_buf *text, struct fm_error *error) {
    enum fm_code code = write_schema(guide, job, text, error);
    return code ? code : compile(guide, vocab, "json_schema", text, "format.schema", error);
}

static enum fm_code by_json_object(struct fm_guide *guide, struct fm_grammar_vocab *vocab, struct fm_buf *text,
                                   struct fm_error *error) {
    write_json_object(text);
    return compile(guide, vocab, "json_schema", text, "format", error);
}

/* llguidance's parsers recurse. */
static bool too_deep(const char *text) {
    size_t depth = 0;
    for (; *text; text++) {
        bool opens = *text == '(' || *text == '[' || *text == '{';
        bool closes = *text == ')' || *text == ']' || *text == '}';
        depth += opens;
        depth -= closes && depth > 0;
        if (depth > BRACKETS_MAX) {
            return true;
        }
    }
    return false;
}

/* The end of the string or regular expression that begins at `text`. */
static const char *after_quoted(const char *text) {
    const char quote = *text++;
    while (*text && *text != quote) {
        text += *text == '\\' && text[1] ? 2 : 1;
    }
    return *text ? text + 1 : text;
}

/*
 * In Lark, `<` begins a token of the vocabulary, <|im_end|> or <[5]>, except in strings, regular expressions and
 * comments. Such a token is not text, and may end the turn.
 */
static bool names_token(const char *lark) {
    while (*lark && *lark != '<') {
        bool comment = *lark == '#' || (lark[0] == '/' && lark[1] == '/');
        if (comment) {
            lark += strcspn(lark, "\n");
        } else {
            lark = *lark == '"' || *lark == '/' ? after_quoted(lark) : lark + 1;
        }
    }
    return *lark;
}

static enum fm_code check_grammar(const struct fm_format *format, struct fm_error *error) {
    enum fm_code code = FM_OK;
    if (too_deep(format->definition)) {
        code = fm_fail(error, FM_INVALID_REQUEST, "the grammar nests more than %d brackets; split it into rules",
                       BRACKETS_MAX);
    } else if (strstr(format->definition, "allow_invalid_utf8")) { /* an option of llguidance's Lark */
        code = fm_fail(error, FM_INVALID_REQUEST, "the text has to be UTF-8; leave allow_invalid_utf8 out");
    } else if (strcmp(format->syntax, "lark") == 0 && names_token(format->definition)) {
        code = fm_fail(error, FM_INVALID_REQUEST,
                       "a grammar is of text; tokens, such as <|name|> and <[1000]>, are not supported: write their "
                       "text in quotes");
    }
    return code;
}

static enum fm_code by_grammar(struct fm_guide *guide, const struct fm_format *format, struct fm_grammar_vocab *vocab,
                               struct fm_buf *text, struct fm_error *error) {
    static const char param[] = "format.definition";
    enum fm_code code = check_grammar(format, error);
    if (code != FM_OK) {
        snprintf(error->param, sizeof error->param, "%s", param);
        return code;
    }
    fm_buf_append_str(text, format->definition);
    return compile(guide, vocab, format->syntax, text, param, error);
}

/* ---- tools ---- */

/*
 * Sets the name of the part at fault if the grammar is refused. The part is only known if the grammar has a single
 * schema.
 */
static void name_param(const struct fm_kit_job *job, char *param, size_t size) {
    size_t allowed = 0;
    size_t last = 0;
    for (size_t i = 0; i < job->tool_count; i++) {
        allowed += job->tools[i].allowed;
        last = job->tools[i].allowed ? i : last;
    }
    bool one = allowed == 1 && (job->format.kind == FM_FORMAT_TEXT || job->tool_mode == FM_TOOLS_REQUIRED);
    if (one) {
        snprintf(param, size, "tools[%zu].parameters", last);
    } else {
        snprintf(param, size, "tools");
    }
}

/*
 * Cuts the end off llguidance's message. The end is the place of the fault in the grammar, which is not the host's
 * text. The text before it says what the fault is.
 */
static void shorten(struct fm_error *error) {
    static const char mark[] = "JSON schema: ";
    const struct fm_error inner = *error;
    const char *reason = strstr(inner.detail, mark);
    if (reason) {
        reason += sizeof mark - 1;
        fm_fail(error, inner.code, "the schema can't be used: %.*s", (int)strcspn(reason, "\n"), reason);
    }
}

/* The schema of a text that may come instead of calls; NULL for free text. */
static enum fm_code write_text_schema(struct fm_guide *guide, struct fm_kit_job *job, struct fm_buf *schema,
                                      struct fm_error *error) {
    enum fm_code code = FM_OK;
    if (job->format.kind == FM_FORMAT_GRAMMAR) {
        code = fm_fail(error, FM_INVALID_REQUEST, "a grammar can't be combined with tools; leave one of them out");
        snprintf(error->param, sizeof error->param, "format");
    } else if (job->format.kind == FM_FORMAT_JSON_SCHEMA) {
        code = write_schema(guide, job, schema, error);
    } else if (job->format.kind == FM_FORMAT_JSON_OBJECT) {
        write_json_object(schema);
    }
    return code == FM_OK && schema->failed ? fm_fail_no_memory(error) : code;
}

static enum fm_code by_tools(struct fm_guide *guide, struct fm_kit_job *job, const struct fm_tool_form *form,
                             const struct fm_vocabulary *vocabulary, struct fm_grammar_vocab *vocab,
                             struct fm_buf *text, struct fm_error *error) {
    char param[64];
    struct fm_buf schema;
    fm_buf_init(&schema, TEXT_MAX);
    guide->param = "tools";
    name_param(job, param, sizeof param);
    enum fm_code code = write_text_schema(guide, job, &schema, error);
    code = code ? code : fm_tool_grammar(job, form, vocabulary, schema.data, schema.len, text, error);
    fm_buf_free(&schema);
    return code ? code : compile(guide, vocab, "lark", text, param, error);
}

/*
 * Makes the grammar of a text in which no call may begin. It is needed because the prompt describes the tools even
 * then.
 */
static enum fm_code without_calls(struct fm_guide *guide, const struct fm_tool_form *form,
                                  struct fm_grammar_vocab *vocab, struct fm_buf *text, struct fm_error *error) {
    guide->param = "tools";
    return fm_tool_grammar_none(form, text) ? compile(guide, vocab, "lark", text, "tools", error) : FM_OK;
}

/* ---- life ---- */

static void wake_kit(void *kit) {
    fm_kit_wake(kit);
}

enum fm_code fm_guide_init(struct fm_guide *guide, struct fm_kit_job *job, const struct fm_tool_form *form,
                           const struct fm_vocabulary *vocabulary, struct fm_grammar_vocab **vocab,
                           struct fm_error *error) {
    bool callable = fm_tools_callable(job);
    *guide = (struct fm_guide){.param = "format"};
    fm_buf_init(&guide->text, TEXT_MAX);
    bool bars_calls = job->tool_count > 0 && fm_grammar_supported();
    if (job->format.kind == FM_FORMAT_TEXT && !callable && !bars_calls) {
        return FM_OK;
    }
    void (*wake)(void *) = job->kit ? wake_kit : NULL;
    enum fm_code code = *vocab ? FM_OK : fm_grammar_vocab_new(vocabulary, wake, job->kit, vocab, error);
    if (code != FM_OK) {
        return code;
    }
    struct fm_buf text;
    fm_buf_init(&text, TEXT_MAX);
    if (callable) {
        code = by_tools(guide, job, form, vocabulary, *vocab, &text, error);
    } else if (job->format.kind == FM_FORMAT_TEXT) {
        code = without_calls(guide, form, *vocab, &text, error);
    } else if (job->format.kind == FM_FORMAT_JSON_SCHEMA) {
        code = by_schema(guide, job, *vocab, &text, error);
    } else if (job->format.kind == FM_FORMAT_JSON_OBJECT) {
        code = by_json_object(guide, *vocab, &text, error);
    } else {
        code = by_grammar(guide, &job->format, *vocab, &text, error);
    }
    fm_buf_free(&text);
    return code;
}

bool fm_guide_compiles(const struct fm_guide *guide) {
    return guide->grammar && fm_grammar_compiles(guide->grammar);
}

enum fm_code fm_guide_wait(struct fm_guide *guide, int64_t until_ms, struct fm_error *error) {
    enum fm_code code = fm_guide_compiles(guide) ? fm_grammar_wait(guide->grammar, until_ms, error) : FM_OK;
    if (code == FM_INVALID_REQUEST) {
        if (strcmp(guide->param, "tools") == 0) {
            shorten(error);
        }
        snprintf(error->param, sizeof error->param, "%s", guide->fault);
    }
    return code;
}

void fm_guide_free(struct fm_guide *guide) {
    fm_grammar_free(guide->grammar);
    fm_buf_free(&guide->text);
    *guide = (struct fm_guide){0};
}

bool fm_guide_add(struct fm_guide *guide, const char *bytes, size_t len) {
    if (guide->schema) {
        fm_buf_append(&guide->text, bytes, len);
    }
    return !guide->text.failed;
}

/* ---- the check afterwards ---- */

/*
 * An untrusted schema can keep the validator busy for ever, or make it use gigabytes, so it works on a separate thread.
 */
struct check {
    struct fm_buf schema;
    struct fm_buf text;
    char violation[REASON_SIZE];
    int32_t status; /* the parameters of fm_schema_check */
};

static void run_check(void *argument) {
    struct check *check = argument;
    check->status = fm_schema_check(check->schema.data, check->schema.len, check->text.data, check->text.len,
                                    check->violation, sizeof check->violation);
}

static void free_check(void *argument) {
    struct check *check = argument;
    if (check) {
        fm_buf_free(&check->schema);
        fm_buf_free(&check->text);
        free(check);
    }
}

static struct check *new_check(struct json_object *schema, const char *text, size_t len) {
    struct check *check = calloc(1, sizeof *check);
    if (!check) {
        return NULL;
    }
    fm_buf_init(&check->schema, TEXT_MAX);
    fm_buf_init(&check->text, TEXT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&check->schema);
    fm_json_value(&w, schema);
    fm_buf_append(&check->text, text, len);
    if (check->schema.failed || check->text.failed) {
        free_check(check);
        return NULL;
    }
    return check;
}

bool fm_guide_check(const struct fm_guide *guide, struct fm_buf *reason) {
    return !guide->schema || fm_guide_check_text(guide->schema, guide->text.data, guide->text.len, reason);
}

bool fm_guide_check_text(struct json_object *schema, const char *text, size_t len, struct fm_buf *reason) {
    if (!fm_grammar_supported()) {
        fm_buf_append_str(reason, FM_GUIDE_UNCHECKED ": this engine is built without Rust");
        return true;
    }
    struct check *check = new_check(schema, text, len);
    int error = ENOMEM;
    if (check) {
        error = fm_run_on_stack_within(CHECK_STACK, CHECK_CPU_MS, CHECK_MS, run_check, free_check, check);
    }
    if (error == ETIMEDOUT) {
        fm_buf_append_str(reason, FM_GUIDE_UNCHECKED " in time");
        return false;
    }
    if (error) {
        fm_buf_append_str(reason, FM_GUIDE_UNCHECKED ": out of memory");
    } else if (check->status != 0) {
        fm_buf_append_str(reason, check->status < 0 ? FM_GUIDE_UNCHECKED ": " : "");
        fm_buf_append_str(reason, check->violation);
    }
    free_check(check);
    return true;
}
