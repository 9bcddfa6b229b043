/* Tools and `tool_choice`, for both APIs: the rows, the checks across fields, and the members of the job. */
#include "surface/tools.h"
#include "surface/custom.h"
#include "surface/request.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

/* ---- checkers ---- */

/* Refuses `value` if it is a function in the other API's form; `members` are those of this API's form. */
static enum fm_code check_form(const struct fm_rule *members, struct json_object *value, const struct fm_path *at,
                               struct fm_error *error) {
    bool nested = fm_rule_find(members, "function");
    bool inner = json_object_object_get(value, "function");
    bool outer = json_object_object_get(value, "name");
    struct fm_path here = {.parent = at, .key = nested ? "function" : "name"};
    if (nested ? inner || !outer : outer || !inner) {
        return FM_OK;
    }
    enum fm_code code = fm_reject_missing(&here, error);
    size_t len = strlen(error->detail);
    snprintf(error->detail + len, sizeof error->detail - len, "%s",
             nested ? " In chat.completions.create 'name' and the others are inside of 'function'."
                    : " Only chat.completions.create has 'function'; here 'name' and the others are beside 'type'.");
    return code;
}

/* Checks a tool, a call or a tool's name, which depend on the type. */
static enum fm_code check_tool(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                               struct fm_error *error) {
    struct json_object *type = NULL;
    struct fm_path type_at = {.parent = at, .key = "type"};
    enum fm_code code = fm_check_tag(value, "type", at, &type, error);
    if (code != FM_OK) {
        return code;
    }
    const struct fm_rule *kind = fm_rule_find(rule->members, json_object_get_string(type));
    if (!kind || !fm_string_is(type, kind->name)) { /* a text with a NUL is no type */
        return fm_reject_unsupported_value(&type_at, "fm-proxy has tools of the types 'function' and 'custom' only.",
                                           error);
    }
    code = fm_string_is(type, "function") ? check_form(kind->members, value, at, error) : FM_OK;
    return code ? code : fm_check_members(kind->members, value, at, error);
}

enum fm_code fm_check_tools(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                            struct fm_error *error) {
    if (!json_object_is_type(value, json_type_array)) {
        return fm_reject_type(at, value, "an array", error);
    }
    size_t count = json_object_array_length(value);
    if (count < (size_t)rule->min) {
        return fm_reject_value(at, "Expected an array that is not empty.", error);
    }
    if (rule->max > 0 && count > (size_t)rule->max) {
        return fm_reject_long_array(at, (size_t)rule->max, count, error);
    }
    for (size_t i = 0; i < count; i++) {
        struct fm_path here = {.parent = at, .index = i};
        enum fm_code code = check_tool(rule, json_object_array_get_idx(value, i), &here, error);
        if (code != FM_OK) {
            return code;
        }
    }
    return FM_OK;
}

/* Checks `tool_choice`: a mode, or an object that names tools; the rule's `words` are the object's types. */
static enum fm_code check_choice(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                 struct fm_error *error) {
    static const char *const modes[] = {"auto", "none", "required", NULL};
    static const struct fm_rule mode = {.words = modes};
    if (json_object_is_type(value, json_type_string)) {
        return fm_check_enum(&mode, value, at, error);
    }
    if (!json_object_is_type(value, json_type_object)) {
        return fm_reject_type(at, value, "a string or an object", error);
    }
    const struct fm_rule *function = fm_rule_find(rule->members, "function");
    enum fm_code code = FM_OK;
    if (fm_string_is(json_object_object_get(value, "type"), "function")) {
        code = check_form(function->members, value, at, error);
    }
    return code ? code : fm_check_variant(rule, value, at, error);
}

/* ---- the rows ---- */

static const char *const choice_types[] = {"function", "custom", "allowed_tools", NULL};
static const char *const allowed_modes[] = {"auto", "required", NULL};

static const struct fm_rule function_rules[] = {
    {.name = "name", .check = fm_check_name, .required = true},
    {.name = "description", .check = fm_check_text},
    {.name = "parameters", .check = fm_check_schema},
    {.name = "strict", .check = fm_check_bool},
    {0},
};

static const struct fm_rule name_rules[] = {{.name = "name", .check = fm_check_name, .required = true}, {0}};

/* Responses: the members are beside the type. */

static const char *const callers[] = {"direct", NULL};

#define FLAT_MEMBERS                                                                                                   \
    {.name = "type", .check = fm_check_any},                                                                           \
        {.name = "async",                                                                                              \
         .check = fm_check_only_false,                                                                                 \
         .note = "fm-proxy waits for the output of each call: leave it out."},                                         \
        {.name = "defer_loading",                                                                                      \
         .check = fm_check_only_false,                                                                                 \
         .note = "fm-proxy has no search for tools: the model sees all of 'tools'. Leave it out."},                    \
        {.name = "allowed_callers",                                                                                    \
         .check = fm_check_only_list,                                                                                  \
         .words = callers,                                                                                             \
         .note = "Only the model calls fm-proxy's tools: use ['direct'], or leave it out."}

static const struct fm_rule flat_function_rules[] = {FLAT_MEMBERS, {.members = function_rules}};
static const struct fm_rule flat_custom_rules[] = {FLAT_MEMBERS, {.members = fm_custom_rules}};

static const struct fm_rule flat_tools[] = {
    {.name = "function", .members = flat_function_rules},
    {.name = "custom", .members = flat_custom_rules},
    {0},
};

static const struct fm_rule flat_name_rules[] = {{.name = "type", .check = fm_check_any}, {.members = name_rules}};

static const struct fm_rule flat_names[] = {
    {.name = "function", .members = flat_name_rules},
    {.name = "custom", .members = flat_name_rules},
    {0},
};

static const struct fm_rule flat_allowed_rules[] = {
    {.name = "type", .check = fm_check_any},
    {.name = "mode", .check = fm_check_enum, .words = allowed_modes, .required = true},
    {.name = "tools", .check = fm_check_tools, .min = 1, .max = FM_TOOLS_MAX, .members = flat_names, .required = true},
    {0},
};

static const struct fm_rule flat_choices[] = {
    {.name = "function", .members = flat_name_rules},
    {.name = "custom", .members = flat_name_rules},
    {.name = "allowed_tools", .members = flat_allowed_rules},
    {0},
};

const struct fm_rule fm_responses_tool_rules[] = {
    {.name = "tools", .check = fm_check_tools, .max = FM_TOOLS_MAX, .members = flat_tools},
    {.name = "tool_choice", .check = check_choice, .words = choice_types, .members = flat_choices},
    {.members = fm_shared_rules},
};

/* Chat: the members are in an object under the type's name. */

static const struct fm_rule nested_function_rules[] = {
    {.name = "type", .check = fm_check_any},
    {.name = "function", .check = fm_check_object, .members = function_rules, .required = true},
    {0},
};

static const struct fm_rule nested_custom_rules[] = {
    {.name = "type", .check = fm_check_any},
    {.name = "custom", .check = fm_check_object, .members = fm_nested_custom_rules, .required = true},
    {0},
};

static const struct fm_rule nested_tools[] = {
    {.name = "function", .members = nested_function_rules},
    {.name = "custom", .members = nested_custom_rules},
    {0},
};

static const struct fm_rule nested_name_rules[] = {
    {.name = "type", .check = fm_check_any},
    {.name = "function", .check = fm_check_object, .members = name_rules, .required = true},
    {0},
};

static const struct fm_rule nested_custom_name_rules[] = {
    {.name = "type", .check = fm_check_any},
    {.name = "custom", .check = fm_check_object, .members = name_rules, .required = true},
    {0},
};

static const struct fm_rule nested_names[] = {
    {.name = "function", .members = nested_name_rules},
    {.name = "custom", .members = nested_custom_name_rules},
    {0},
};

static const struct fm_rule allowed_rules[] = {
    {.name = "mode", .check = fm_check_enum, .words = allowed_modes, .required = true},
    {.name = "tools",
     .check = fm_check_tools,
     .min = 1,
     .max = FM_TOOLS_MAX,
     .members = nested_names,
     .required = true},
    {0},
};

static const struct fm_rule nested_allowed_rules[] = {
    {.name = "type", .check = fm_check_any},
    {.name = "allowed_tools", .check = fm_check_object, .members = allowed_rules, .required = true},
    {0},
};

static const struct fm_rule nested_choices[] = {
    {.name = "function", .members = nested_name_rules},
    {.name = "custom", .members = nested_custom_name_rules},
    {.name = "allowed_tools", .members = nested_allowed_rules},
    {0},
};

const struct fm_rule fm_chat_tool_rules[] = {
    {.name = "tools", .check = fm_check_tools, .max = FM_TOOLS_MAX, .members = nested_tools},
    {.name = "tool_choice", .check = check_choice, .words = choice_types, .members = nested_choices},
    {.members = fm_shared_rules},
};

/* ---- reading a checked body ---- */

static size_t tool_count(const struct fm_asked_tools *asked) {
    return asked->list ? json_object_array_length(asked->list) : 0;
}

static const char *type_of(struct json_object *entry) {
    return json_object_get_string(json_object_object_get(entry, "type"));
}

/* Returns the object that holds the members of the tool in `entry`; in chat it lies under the name of the type. */
static struct json_object *function_of(const struct fm_asked_tools *asked, struct json_object *entry) {
    return asked->nested ? json_object_object_get(entry, type_of(entry)) : entry;
}

static bool is_custom(const struct fm_asked_tools *asked, size_t index) {
    return strcmp(type_of(json_object_array_get_idx(asked->list, index)), "custom") == 0;
}

static struct json_object *tool_at(const struct fm_asked_tools *asked, size_t index) {
    return function_of(asked, json_object_array_get_idx(asked->list, index));
}

static const char *name_in(struct json_object *function) {
    return json_object_get_string(json_object_object_get(function, "name"));
}

/* Returns the index of the first tool with this name; tool_count() if there is none. */
static size_t find_tool(const struct fm_asked_tools *asked, const char *name) {
    size_t i = 0;
    while (i < tool_count(asked) && strcmp(name_in(tool_at(asked, i)), name) != 0) {
        i++;
    }
    return i;
}

/* Refuses the name in `entry`, which is at `at`. */
static enum fm_code reject_name(const struct fm_asked_tools *asked, struct json_object *entry, const struct fm_path *at,
                                const char *note, struct fm_error *error) {
    struct fm_path function_at = {.parent = at, .key = type_of(entry)};
    struct fm_path name_at = {.parent = asked->nested ? &function_at : at, .key = "name"};
    return fm_reject_value(&name_at, note, error);
}

static enum fm_code check_names(const struct fm_asked_tools *asked, struct fm_error *error) {
    static const struct fm_path tools_at = {.key = "tools"};
    for (size_t i = 0; i < tool_count(asked); i++) {
        struct fm_path here = {.parent = &tools_at, .index = i};
        if (find_tool(asked, name_in(tool_at(asked, i))) != i) {
            return reject_name(asked, json_object_array_get_idx(asked->list, i), &here,
                               "Another tool has this name: each tool needs its own.", error);
        }
    }
    return FM_OK;
}

/* Allows the tool that `entry` (at the path `at`) names. */
static enum fm_code allow(struct fm_asked_tools *asked, struct json_object *entry, const struct fm_path *at,
                          struct fm_error *error) {
    size_t index = find_tool(asked, name_in(function_of(asked, entry)));
    if (index == tool_count(asked)) {
        return reject_name(asked, entry, at, "'tools' has no tool with this name: name one of them.", error);
    }
    if (strcmp(type_of(entry), type_of(json_object_array_get_idx(asked->list, index))) != 0) {
        return reject_name(asked, entry, at, "The tool with this name has another type: use that one.", error);
    }
    asked->allowed[index] = true;
    asked->some = true;
    return FM_OK;
}

static enum fm_code allow_all_of(struct fm_asked_tools *asked, struct json_object *choice, const struct fm_path *at,
                                 struct fm_error *error) {
    struct fm_path nest_at = {.parent = at, .key = "allowed_tools"};
    struct fm_path tools_at = {.parent = asked->nested ? &nest_at : at, .key = "tools"};
    struct json_object *allowed = asked->nested ? json_object_object_get(choice, "allowed_tools") : choice;
    struct json_object *tools = json_object_object_get(allowed, "tools");
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < json_object_array_length(tools) && code == FM_OK; i++) {
        struct fm_path here = {.parent = &tools_at, .index = i};
        code = allow(asked, json_object_array_get_idx(tools, i), &here, error);
    }
    asked->mode = json_object_get_string(json_object_object_get(allowed, "mode"));
    return code;
}

static enum fm_code read_choice(struct fm_asked_tools *asked, struct fm_error *error) {
    static const struct fm_path at = {.key = "tool_choice"};
    struct json_object *choice = json_object_object_get(asked->body, "tool_choice");
    struct json_object *type = json_object_object_get(choice, "type");
    if (fm_string_is(type, "allowed_tools")) {
        return allow_all_of(asked, choice, &at, error);
    }
    asked->mode = type ? "required" : choice ? json_object_get_string(choice) : "auto";
    if (type) {
        return allow(asked, choice, &at, error);
    }
    bool forced = strcmp(asked->mode, "required") == 0;
    return forced && !asked->list ? fm_reject_value(&at, "There are no tools to call: send some in 'tools'.", error)
                                  : FM_OK;
}

static enum fm_code check_sizes(const struct fm_asked_tools *asked, const struct fm_asked_format *format,
                                struct fm_error *error) {
    static const struct fm_path at = {.key = "tools"};
    size_t values = fm_schema_values(json_object_object_get(format->members, "schema"));
    for (size_t i = 0; i < tool_count(asked); i++) {
        values += fm_schema_values(json_object_object_get(tool_at(asked, i), "parameters"));
    }
    bool fits = values <= FM_SCHEMA_VALUES_MAX;
    return fits ? FM_OK : fm_reject_value(&at, "Expected at most 32,768 values in all schemas together.", error);
}

static enum fm_code check_company(const struct fm_asked_tools *asked, const struct fm_asked_format *format,
                                  struct fm_error *error) {
    static const struct fm_path fm_at = {.key = "fm"};
    static const struct fm_path grammar_at = {.parent = &fm_at, .key = "grammar"};
    static const struct fm_path stop_at = {.key = "stop"};
    if (asked->list && format->type == FM_ASKS_GRAMMAR) {
        return fm_reject_value(&grammar_at, "The request also has 'tools': send one of them only.", error);
    }
    if (strcmp(asked->mode, "required") == 0 && json_object_object_get(asked->body, "stop")) {
        return fm_reject_unsupported(&stop_at,
                                     "'tool_choice' forces a call, so there is no text to stop: leave it out.", error);
    }
    return FM_OK;
}

enum fm_code fm_tools_find(struct json_object *body, bool nested, const struct fm_asked_format *format,
                           struct fm_asked_tools *asked, struct fm_error *error) {
    struct json_object *list = json_object_object_get(body, "tools");
    bool any = list && json_object_array_length(list) > 0;
    *asked = (struct fm_asked_tools){.body = body, .list = any ? list : NULL, .nested = nested, .mode = "auto"};
    enum fm_code code = check_names(asked, error);
    if (code == FM_OK) {
        code = check_sizes(asked, format, error);
    }
    if (code == FM_OK) {
        code = read_choice(asked, error);
    }
    return code == FM_OK ? check_company(asked, format, error) : code;
}

static bool is_allowed(const struct fm_asked_tools *asked, size_t index) {
    return strcmp(asked->mode, "none") != 0 && (!asked->some || asked->allowed[index]);
}

void fm_tools_note(const struct fm_asked_tools *asked, struct fm_request *request) {
    struct json_object *parallel = json_object_object_get(asked->body, "parallel_tool_calls");
    request->nested_tools = asked->nested;
    request->one_call = parallel && !json_object_get_boolean(parallel);
    for (size_t i = 0; i < tool_count(asked); i++) {
        const char *name = name_in(tool_at(asked, i));
        unsigned use =
            FM_TOOL_KNOWN | (is_allowed(asked, i) ? FM_TOOL_ALLOWED : 0) | (is_custom(asked, i) ? FM_TOOL_CUSTOM : 0);
        fm_buf_append_char(&request->tools, (char)use);
        fm_buf_append(&request->tools, name, strlen(name) + 1);
    }
}

/* ---- writing ---- */

static void write_tool(const struct fm_asked_tools *asked, size_t index, struct fm_json_writer *w) {
    static const char *const members[] = {"description", "parameters", "strict"};
    struct json_object *tool = tool_at(asked, index);
    bool custom = is_custom(asked, index);
    fm_json_object_begin(w);
    fm_json_key_str(w, "name", name_in(tool));
    for (size_t i = 0; i < sizeof members / sizeof members[0] && !custom; i++) {
        struct json_object *member = json_object_object_get(tool, members[i]);
        if (member) {
            fm_json_key_value(w, members[i], member);
        }
    }
    if (custom) {
        fm_custom_write_function(tool, w);
    }
    fm_json_object_end(w);
}

static void write_job_choice(const struct fm_asked_tools *asked, struct fm_json_writer *w) {
    fm_json_key(w, "tool_choice");
    fm_json_object_begin(w);
    fm_json_key_str(w, "mode", asked->mode);
    if (asked->some) {
        fm_json_key(w, "names");
        fm_json_array_begin(w);
        for (size_t i = 0; i < tool_count(asked); i++) {
            if (asked->allowed[i]) {
                fm_json_str(w, name_in(tool_at(asked, i)));
            }
        }
        fm_json_array_end(w);
    }
    fm_json_object_end(w);
}

void fm_tools_write_job(const struct fm_asked_tools *asked, struct fm_json_writer *w) {
    struct json_object *parallel = json_object_object_get(asked->body, "parallel_tool_calls");
    if (!asked->list) {
        return;
    }
    fm_json_key(w, "tools");
    fm_json_array_begin(w);
    for (size_t i = 0; i < tool_count(asked); i++) {
        write_tool(asked, i, w);
    }
    fm_json_array_end(w);
    if (json_object_object_get(asked->body, "tool_choice")) {
        write_job_choice(asked, w);
    }
    if (parallel) {
        fm_json_key_value(w, "parallel_tool_calls", parallel);
    }
}

void fm_tools_write_echo(const struct fm_asked_tools *asked, struct fm_json_writer *w) {
    static const char *const members[] = {"name", "description", "parameters", "strict"};
    fm_json_array_begin(w);
    for (size_t i = 0; i < tool_count(asked); i++) {
        fm_json_object_begin(w);
        if (is_custom(asked, i)) {
            fm_custom_write_echo(tool_at(asked, i), w);
        } else {
            fm_json_key_str(w, "type", "function");
            for (size_t m = 0; m < sizeof members / sizeof members[0]; m++) {
                fm_json_key_value(w, members[m], json_object_object_get(tool_at(asked, i), members[m]));
            }
        }
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}
