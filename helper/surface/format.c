/*
 * Output formats: their rows, the format that a body asks for, and the translation of an engine's field names into the
 * host's.
 */
#include "surface/format.h"
#include "surface/image.h"
#include "base/utf8.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_CHARS_MAX 64
#define DEFINITION_MAX 65536 /* bytes */

/*
 * An answer repeats the schema, some levels deeper than in the request, and among other values. Such a repeated schema
 * must still fit into a body that PROTOCOL.md allows (64 levels, 65,536 values).
 */
#define SCHEMA_LEVELS_MAX 50
#define SCHEMA_NOTE       "Expected a schema of at most 50 levels and 32,768 values."

/* ---- checkers ---- */

enum fm_code fm_check_name(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                           struct fm_error *error) {
    static const struct fm_rule size = {.min = 1, .max = NAME_CHARS_MAX};
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    (void)rule;
    enum fm_code code = fm_check_string(&size, value, at, error);
    if (code == FM_OK && strspn(json_object_get_string(value), allowed) != (size_t)json_object_get_string_len(value)) {
        return fm_reject_value(at, "Expected letters, digits, '_' and '-' only.", error);
    }
    return code;
}

/*
 * Counts the values in `value`, itself included. Values deeper than `levels` count as too many, which limits the
 * recursion.
 */
static size_t count_values(struct json_object *value, unsigned levels) {
    bool is_object = json_object_is_type(value, json_type_object);
    bool is_array = json_object_is_type(value, json_type_array);
    size_t count = 1;
    if (!is_object && !is_array) {
        return count;
    }
    if (levels == 0) {
        return FM_SCHEMA_VALUES_MAX + 1;
    }
    struct lh_entry *entry = is_object ? json_object_get_object(value)->head : NULL;
    for (; entry; entry = lh_entry_next(entry)) {
        count += count_values(lh_entry_v(entry), levels - 1);
    }
    for (size_t i = 0; is_array && i < json_object_array_length(value); i++) {
        count += count_values(json_object_array_get_idx(value, i), levels - 1);
    }
    return count;
}

size_t fm_schema_values(struct json_object *schema) {
    return schema ? count_values(schema, SCHEMA_LEVELS_MAX) : 0;
}

enum fm_code fm_check_schema(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                             struct fm_error *error) {
    (void)rule;
    if (!json_object_is_type(value, json_type_object)) {
        return fm_reject_type(at, value, "an object", error);
    }
    bool fits = fm_schema_values(value) <= FM_SCHEMA_VALUES_MAX;
    return fits ? FM_OK : fm_reject_value(at, SCHEMA_NOTE, error);
}

/* Checks a grammar's syntax. Users of llama.cpp may send GBNF, so the error says what to write instead. */
static enum fm_code check_syntax(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                 struct fm_error *error) {
    if (fm_string_is(value, "gbnf")) {
        return fm_reject_unsupported_value(
            at, "Write the grammar in Lark ('lark') or as a regular expression ('regex').", error);
    }
    return fm_check_enum(rule, value, at, error);
}

/* Checks the size of a schema in bytes, not characters, because an engine has to read the bytes. */
enum fm_code fm_check_definition(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                 struct fm_error *error) {
    enum fm_code code = fm_check_text(rule, value, at, error);
    size_t len = (size_t)json_object_get_string_len(value);
    return code == FM_OK && len > DEFINITION_MAX ? fm_reject_long_string(at, DEFINITION_MAX, len, error) : code;
}

/* ---- the rows ---- */

static const struct fm_rule type_rules[] = {{.name = "type", .check = fm_check_any}, {0}};

static const struct fm_rule schema_rules[] = {
    {.name = "name", .check = fm_check_name, .required = true},
    {.name = "schema", .check = fm_check_schema, .required = true},
    {.name = "strict", .check = fm_check_bool},
    {.name = "description", .check = fm_check_string},
    {0},
};

static const struct fm_rule responses_schema_rules[] = {
    {.name = "type", .check = fm_check_any},
    {.members = schema_rules},
};

static const struct fm_rule chat_schema_rules[] = {
    {.name = "type", .check = fm_check_any},
    {.name = "json_schema", .check = fm_check_object, .members = schema_rules, .required = true},
    {0},
};

const char *const fm_format_types[] = {"text", "json_object", "json_schema", NULL};

const struct fm_rule fm_responses_formats[] = {
    {.name = "text", .members = type_rules},
    {.name = "json_object", .members = type_rules},
    {.name = "json_schema", .members = responses_schema_rules},
    {0},
};

const struct fm_rule fm_chat_formats[] = {
    {.name = "text", .members = type_rules},
    {.name = "json_object", .members = type_rules},
    {.name = "json_schema", .members = chat_schema_rules},
    {0},
};

static const char *const syntaxes[] = {"lark", "regex", NULL};

const struct fm_rule fm_grammar_rules[] = {
    {.name = "syntax", .check = check_syntax, .words = syntaxes, .required = true},
    {.name = "definition", .check = fm_check_definition, .min = 1, .required = true},
    {0},
};

/* ---- where the format is in a body ---- */

static const struct fm_param_name responses_format_params[] = {{"format", "text.format"}, {0}};
static const struct fm_param_name flat_format_params[] = {{"format", "response_format"}, {0}};

const struct fm_param_name fm_chat_format_params[] = {
    {"format.schema", "response_format.json_schema.schema"},
    {"format.strict", "response_format.json_schema.strict"},
    {"format", "response_format"},
    {0},
};

/* `format.type` is set by us: a grammar in the body has no type. */
static const struct fm_param_name grammar_params[] = {{"format.type", "fm.grammar"}, {"format", "fm.grammar"}, {0}};

/* ---- reading a checked body ---- */

static enum fm_format_type type_of(struct json_object *format) {
    struct json_object *type = json_object_object_get(format, "type");
    return fm_string_is(type, "json_schema")   ? FM_ASKS_JSON_SCHEMA
           : fm_string_is(type, "json_object") ? FM_ASKS_JSON_OBJECT
                                               : FM_ASKS_TEXT;
}

enum fm_code fm_format_find(struct json_object *body, const struct fm_format_place *place,
                            struct fm_asked_format *asked, struct fm_error *error) {
    static const struct fm_path fm_at = {.key = "fm"};
    static const struct fm_path grammar_at = {.parent = &fm_at, .key = "grammar"};
    struct json_object *grammar = json_object_object_get(json_object_object_get(body, "fm"), "grammar");
    *asked = (struct fm_asked_format){.type = type_of(place->format), .params = place->params};
    if (grammar && asked->type != FM_ASKS_TEXT) {
        return fm_reject_value(&grammar_at, "The request also asks for a JSON format: send one of them only.", error);
    }
    if (grammar) {
        *asked = (struct fm_asked_format){FM_ASKS_GRAMMAR, grammar, grammar_params};
    } else if (asked->type == FM_ASKS_JSON_SCHEMA) {
        bool nested = place->params == fm_chat_format_params;
        asked->members = nested ? json_object_object_get(place->format, "json_schema") : place->format;
    }
    return FM_OK;
}

/* ---- chat's parameter in the Responses API ---- */

/* Whether `format` has the shape of `text.format`, not that of chat. */
static bool is_flat(struct json_object *format) {
    bool nested = json_object_object_get(format, "json_schema");
    return !nested && (json_object_object_get(format, "name") || json_object_object_get(format, "schema"));
}

enum fm_code fm_check_any_format(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                 struct fm_error *error) {
    struct fm_rule row = *rule;
    row.words = fm_format_types;
    row.members = is_flat(value) ? fm_responses_formats : fm_chat_formats;
    return fm_check_variant(&row, value, at, error);
}

enum fm_code fm_format_of_responses(struct json_object *body, struct fm_format_place *place, struct fm_error *error) {
    static const struct fm_path at = {.key = "response_format"};
    struct json_object *own = json_object_object_get(json_object_object_get(body, "text"), "format");
    struct json_object *chats = json_object_object_get(body, "response_format");
    if (own && chats) {
        return fm_reject_value(&at, "The request also has 'text.format': send one of them only.", error);
    }
    *place = (struct fm_format_place){own, responses_format_params};
    if (chats) {
        *place = (struct fm_format_place){chats, is_flat(chats) ? flat_format_params : fm_chat_format_params};
    }
    return FM_OK;
}

/* ---- an engine's names, and the host's ---- */

void fm_format_note(const struct fm_asked_format *asked, struct fm_request *request) {
    request->has_schema = asked->type == FM_ASKS_JSON_SCHEMA;
    request->format_params = asked->params;
}

/* Whether `param` is the field `name`, or a field inside it. */
static bool is_within(const char *param, const char *name) {
    size_t len = strlen(name);
    return strncmp(param, name, len) == 0 && (param[len] == '\0' || param[len] == '.' || param[len] == '[');
}

/* Sets `error->param` to `before` followed by `rest`, which may be a part of `error->param`. */
static void set_param(struct fm_error *error, const char *before, int before_len, const char *rest) {
    char param[sizeof error->param];
    size_t room = sizeof param - 1 - (size_t)before_len;
    snprintf(param, sizeof param, "%.*s%.*s", before_len, before, fm_utf8_shown(rest, room), rest);
    memcpy(error->param, param, sizeof param);
}

/* Whether the tool at `index` is a custom one. */
static bool is_custom(const struct fm_request *request, size_t index) {
    size_t at = 0;
    while (index > 0 && at < request->tools.len) {
        at += strlen(request->tools.data + at) + 1;
        index--;
    }
    return at < request->tools.len && request->tools.data[at] & FM_TOOL_CUSTOM;
}

/*
 * "tools[0].x" becomes "tools[0].function.x" in chat. Of a custom tool, the engine only can refuse what stands for the
 * grammar.
 */
static void rename_tool_param(const struct fm_request *request, struct fm_error *error) {
    static const char list[] = "tools[";
    static const char *const nests[2][2] = {{"].", "].function."},
                                            {"].format.definition", "].custom.format.grammar.definition"}};
    size_t digits = strspn(error->param + sizeof list - 1, "0123456789");
    const char *rest = error->param + sizeof list - 1 + digits;
    char before[sizeof list + 60];
    if (strncmp(error->param, list, sizeof list - 1) == 0 && digits < 20 && strncmp(rest, "].", 2) == 0) {
        bool custom = is_custom(request, strtoul(error->param + sizeof list - 1, NULL, 10));
        const char *nest = nests[custom][request->nested_tools];
        int len = snprintf(before, sizeof before, "%.*s%s", (int)(rest - error->param), error->param, nest);
        set_param(error, before, len, custom ? "" : rest + 2);
    }
}

/* Returns which of the job's images an error is about; false: the error is not about an image. */
static bool blames_image(const struct fm_error *error, size_t *index) {
    static const char list[] = "images[";
    char *end;
    if (strncmp(error->param, list, sizeof list - 1) != 0) {
        return false;
    }
    *index = (size_t)strtoull(error->param + sizeof list - 1, &end, 10);
    return strcmp(end, "]") == 0;
}

/*
 * Renames a field of an image. In a stored conversation, the index may be that of a stored image; the error then names
 * `input`.
 */
static void rename_image_param(const struct fm_request *request, size_t index, struct fm_error *error) {
    bool own = !request->conversation.previous_id && !request->conversation.refers;
    error->reason = FM_IMAGE_INVALID;
    if (!own || !fm_request_image_param(request, index, ".image_url", error)) {
        snprintf(error->param, sizeof error->param, "input");
    }
}

/*
 * Renames members that the Responses API has inside another member (request.h, fm_request_note_passed), while chat has
 * them at the top level.
 */
static void rename_passed_param(struct fm_error *error) {
    static const struct fm_param_name names[] = {{"verbosity", "text.verbosity"},
                                                 {"reasoning_summary", "reasoning.summary"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(error->param, names[i].engine) == 0) {
            set_param(error, names[i].host, (int)strlen(names[i].host), "");
            return;
        }
    }
}

/* Adds the field's name to the text, because some SDKs show only an error's text. */
static void name_param(struct fm_error *error) {
    char detail[sizeof error->detail];
    if (error->code != FM_INVALID_REQUEST || !error->param[0] || strstr(error->detail, error->param)) {
        return;
    }
    int len = snprintf(detail, sizeof detail, "Invalid '%s': ", error->param);
    size_t room = sizeof detail - 1 - (size_t)len;
    snprintf(detail + len, sizeof detail - (size_t)len, "%.*s", fm_utf8_shown(error->detail, room), error->detail);
    memcpy(error->detail, detail, sizeof detail);
}

static void rename_param(const struct fm_request *request, struct fm_error *error) {
    size_t image;
    if (blames_image(error, &image)) {
        rename_image_param(request, image, error);
        return;
    }
    rename_tool_param(request, error);
    if (!request->nested_tools) {
        rename_passed_param(error);
    }
    for (const struct fm_param_name *name = request->format_params; name && name->engine; name++) {
        if (is_within(error->param, name->engine)) {
            set_param(error, name->host, (int)strlen(name->host), error->param + strlen(name->engine));
            return;
        }
    }
}

void fm_request_rename_param(const struct fm_request *request, struct fm_error *error) {
    rename_param(request, error);
    name_param(error);
}

/* ---- writing ---- */

static bool is_strict(const struct fm_asked_format *asked) {
    return json_object_get_boolean(json_object_object_get(asked->members, "strict"));
}

static void copy_member(const struct fm_asked_format *asked, const char *name, struct fm_json_writer *w) {
    fm_json_key_value(w, name, json_object_object_get(asked->members, name));
}

void fm_format_write_job(const struct fm_asked_format *asked, struct fm_json_writer *w) {
    static const char *const names[] = {
        [FM_ASKS_JSON_OBJECT] = "json_object", [FM_ASKS_JSON_SCHEMA] = "json_schema", [FM_ASKS_GRAMMAR] = "grammar"};
    if (asked->type == FM_ASKS_TEXT) {
        return;
    }
    fm_json_key(w, "format");
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", names[asked->type]);
    if (asked->type == FM_ASKS_JSON_SCHEMA) {
        copy_member(asked, "schema", w);
        fm_json_key_bool(w, "strict", is_strict(asked));
    } else if (asked->type == FM_ASKS_GRAMMAR) {
        copy_member(asked, "syntax", w);
        copy_member(asked, "definition", w);
    }
    fm_json_object_end(w);
}

void fm_format_write_echo(const struct fm_asked_format *asked, struct fm_json_writer *w) {
    static const char *const names[] = {[FM_ASKS_TEXT] = "text",
                                        [FM_ASKS_JSON_OBJECT] = "json_object",
                                        [FM_ASKS_JSON_SCHEMA] = "json_schema",
                                        [FM_ASKS_GRAMMAR] = "text"};
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", names[asked->type]);
    if (asked->type == FM_ASKS_JSON_SCHEMA) {
        copy_member(asked, "name", w);
        copy_member(asked, "description", w);
        fm_json_key_bool(w, "strict", is_strict(asked));
        copy_member(asked, "schema", w);
    }
    fm_json_object_end(w);
}
