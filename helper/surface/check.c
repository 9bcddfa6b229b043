/* The walk over a body and the typed checkers. An error always names the path of the field. */
#include "surface/check.h"
#include "base/utf8.h"
#include "surface/ignored.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

/* ---- paths and rejections ---- */

struct path_text {
    char text[sizeof(((struct fm_error *)0)->param)];
    size_t len;
};

/*
 * Appends a key to a path. A key may be any text of the host, so it may be too long. In that case it is cut between
 * characters.
 */
static void path_append(struct path_text *path, const char *part, size_t len) {
    size_t room = sizeof path->text - 1 - path->len;
    if (len > room) {
        len = fm_utf8_whole_prefix(part, room);
    }
    memcpy(path->text + path->len, part, len);
    path->len += len;
    path->text[path->len] = '\0';
}

/* Builds a path, which is at most as deep as its table. */
static struct path_text path_write(const struct fm_path *at) {
    const struct fm_path *chain[16];
    size_t depth = 0;
    for (; at && depth < sizeof chain / sizeof chain[0]; at = at->parent) {
        chain[depth++] = at;
    }
    depth -= depth > 0 && chain[depth - 1]->ignored ? 1 : 0; /* the step for the body has no name */
    struct path_text path = {.len = 0};
    while (depth > 0) {
        const struct fm_path *step = chain[--depth];
        if (step->key) {
            path_append(&path, ".", path.len > 0 ? 1 : 0);
            path_append(&path, step->key, strlen(step->key));
        } else {
            char index[32];
            int len = snprintf(index, sizeof index, "[%zu]", step->index);
            path_append(&path, index, (size_t)len);
        }
    }
    return path;
}

/* Completes a rejection: `error` has its sentence already. */
static enum fm_code blame(struct fm_error *error, const struct path_text *path, const char *reason) {
    error->reason = reason;
    memcpy(error->param, path->text, path->len + 1);
    return error->code;
}

enum fm_code fm_reject_missing(const struct fm_path *at, struct fm_error *error) {
    struct path_text path = path_write(at);
    fm_fail(error, FM_INVALID_REQUEST, "Missing required parameter: '%s'.", path.text);
    return blame(error, &path, "missing_required_parameter");
}

enum fm_code fm_reject_unknown(const struct fm_path *at, const char *meant, struct fm_error *error) {
    struct path_text path = path_write(at);
    if (meant) {
        fm_fail(error, FM_INVALID_REQUEST, "Unknown parameter: '%s'. Did you mean '%s'?", path.text, meant);
    } else {
        fm_fail(error, FM_INVALID_REQUEST, "Unknown parameter: '%s'.", path.text);
    }
    return blame(error, &path, "unknown_parameter");
}

enum fm_code fm_reject_unsupported(const struct fm_path *at, const char *note, struct fm_error *error) {
    struct path_text path = path_write(at);
    fm_fail(error, FM_INVALID_REQUEST, "Unsupported parameter: '%s'. %s", path.text,
            note ? note : "fm-proxy does not have it: leave it out.");
    return blame(error, &path, "unsupported_parameter");
}

enum fm_code fm_reject_type(const struct fm_path *at, struct json_object *value, const char *expected,
                            struct fm_error *error) {
    static const char *const names[] = {
        [json_type_null] = "null",       [json_type_boolean] = "a boolean", [json_type_double] = "a decimal",
        [json_type_int] = "an integer",  [json_type_object] = "an object",  [json_type_array] = "an array",
        [json_type_string] = "a string",
    };
    struct path_text path = path_write(at);
    fm_fail(error, FM_INVALID_REQUEST, "Invalid type for '%s': expected %s, but got %s instead.", path.text, expected,
            names[json_object_get_type(value)]);
    return blame(error, &path, "invalid_type");
}

enum fm_code fm_reject_value(const struct fm_path *at, const char *note, struct fm_error *error) {
    struct path_text path = path_write(at);
    fm_fail(error, FM_INVALID_REQUEST, "Invalid value for '%s'. %s", path.text, note);
    return blame(error, &path, "invalid_value");
}

enum fm_code fm_reject_unsupported_value(const struct fm_path *at, const char *note, struct fm_error *error) {
    struct path_text path = path_write(at);
    fm_fail(error, FM_INVALID_REQUEST, "Unsupported value: '%s'. %s", path.text, note);
    return blame(error, &path, "unsupported_value");
}

enum fm_code fm_reject_long_string(const struct fm_path *at, size_t max, size_t chars, struct fm_error *error) {
    struct path_text path = path_write(at);
    fm_fail(error, FM_INVALID_REQUEST,
            "Invalid '%s': string too long. Expected a string with maximum length %zu, but got one with length %zu.",
            path.text, max, chars);
    return blame(error, &path, "string_above_max_length");
}

enum fm_code fm_reject_long_array(const struct fm_path *at, size_t max, size_t entries, struct fm_error *error) {
    struct path_text path = path_write(at);
    fm_fail(error, FM_INVALID_REQUEST,
            "Invalid '%s': array too long. Expected an array with maximum length %zu, but got one with length %zu.",
            path.text, max, entries);
    return blame(error, &path, "array_above_max_length");
}

/* Refuses a number outside the range of `rule`; `kind` is "integer" or "decimal". */
static enum fm_code reject_range(const struct fm_rule *rule, bool above, const char *kind, const char *reason,
                                 const struct fm_path *at, struct fm_error *error) {
    struct path_text path = path_write(at);
    fm_fail(error, FM_INVALID_REQUEST, "Invalid '%s': %s %s value. Expected a value %s %" PRId64 ".", path.text, kind,
            above ? "above maximum" : "below minimum", above ? "<=" : ">=", above ? rule->max : rule->min);
    return blame(error, &path, reason);
}

/* ---- values ---- */

bool fm_string_is(struct json_object *value, const char *word) {
    size_t len = strlen(word);
    return json_object_is_type(value, json_type_string) && (size_t)json_object_get_string_len(value) == len &&
           memcmp(json_object_get_string(value), word, len) == 0;
}

size_t fm_string_chars(struct json_object *value) {
    return fm_utf8_characters(json_object_get_string(value), (size_t)json_object_get_string_len(value));
}

static bool is_word(struct json_object *value, const char *const *words) {
    for (; *words; words++) {
        if (fm_string_is(value, *words)) {
            return true;
        }
    }
    return false;
}

static bool is_number(struct json_object *value) {
    return json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double);
}

/* ---- checkers ---- */

enum fm_code fm_check_any(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                          struct fm_error *error) {
    (void)rule, (void)value, (void)at, (void)error;
    return FM_OK;
}

enum fm_code fm_check_bool(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                           struct fm_error *error) {
    (void)rule;
    return json_object_is_type(value, json_type_boolean) ? FM_OK : fm_reject_type(at, value, "a boolean", error);
}

enum fm_code fm_check_int(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                          struct fm_error *error) {
    if (!json_object_is_type(value, json_type_int)) {
        return fm_reject_type(at, value, "an integer", error);
    }
    int64_t number = json_object_get_int64(value);
    bool beyond = json_object_get_uint64(value) > INT64_MAX; /* json-c stores large numbers as unsigned */
    if (number < rule->min) {
        return reject_range(rule, false, "integer", "integer_below_min_value", at, error);
    }
    if (beyond || number > rule->max) {
        return reject_range(rule, true, "integer", "integer_above_max_value", at, error);
    }
    return FM_OK;
}

enum fm_code fm_check_number(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                             struct fm_error *error) {
    if (!is_number(value)) {
        return fm_reject_type(at, value, "a decimal", error);
    }
    double number = json_object_get_double(value);
    if (number < (double)rule->min) {
        return reject_range(rule, false, "decimal", "decimal_below_min_value", at, error);
    }
    if (number > (double)rule->max) {
        return reject_range(rule, true, "decimal", "decimal_above_max_value", at, error);
    }
    return FM_OK;
}

enum fm_code fm_check_string(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                             struct fm_error *error) {
    if (!json_object_is_type(value, json_type_string)) {
        return fm_reject_type(at, value, "a string", error);
    }
    size_t chars = fm_string_chars(value);
    if (chars < (size_t)rule->min) {
        return fm_reject_value(at, "Expected a string that is not empty.", error);
    }
    if (rule->max > 0 && chars > (size_t)rule->max) {
        return fm_reject_long_string(at, (size_t)rule->max, chars, error);
    }
    return FM_OK;
}

enum fm_code fm_check_text(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                           struct fm_error *error) {
    enum fm_code code = fm_check_string(rule, value, at, error);
    if (code == FM_OK && strlen(json_object_get_string(value)) != (size_t)json_object_get_string_len(value)) {
        return fm_reject_value(at, "Expected a text without NUL characters.", error);
    }
    return code;
}

enum fm_code fm_check_enum(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                           struct fm_error *error) {
    if (!json_object_is_type(value, json_type_string)) {
        return fm_reject_type(at, value, "a string", error);
    }
    if (is_word(value, rule->words)) {
        return FM_OK;
    }
    char note[256];
    size_t len = (size_t)snprintf(note, sizeof note, "Supported values are: ");
    for (size_t i = 0; rule->words[i] && len < sizeof note; i++) {
        len += (size_t)snprintf(note + len, sizeof note - len, "%s'%s'", i ? ", " : "", rule->words[i]);
    }
    if (len < sizeof note) {
        snprintf(note + len, sizeof note - len, ".");
    }
    return fm_reject_value(at, note, error);
}

enum fm_code fm_check_array(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                            struct fm_error *error) {
    (void)rule;
    return json_object_is_type(value, json_type_array) ? FM_OK : fm_reject_type(at, value, "an array", error);
}

enum fm_code fm_check_object(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                             struct fm_error *error) {
    if (!json_object_is_type(value, json_type_object)) {
        return fm_reject_type(at, value, "an object", error);
    }
    return fm_check_members(rule->members, value, at, error);
}

enum fm_code fm_check_tag(struct json_object *value, const char *key, const struct fm_path *at,
                          struct json_object **tag, struct fm_error *error) {
    if (!json_object_is_type(value, json_type_object)) {
        return fm_reject_type(at, value, "an object", error);
    }
    struct fm_path tag_at = {.parent = at, .key = key};
    struct json_object *found = json_object_object_get(value, key);
    if (!found) {
        return fm_reject_missing(&tag_at, error);
    }
    if (!json_object_is_type(found, json_type_string)) {
        return fm_reject_type(&tag_at, found, "a string", error);
    }
    *tag = found;
    return FM_OK;
}

enum fm_code fm_check_one_or_more(fm_check_fn *entry, const struct fm_rule *rule, size_t max, struct json_object *value,
                                  const struct fm_path *at, struct fm_error *error) {
    if (json_object_is_type(value, json_type_string)) {
        return entry(rule, value, at, error);
    }
    if (!json_object_is_type(value, json_type_array)) {
        return fm_reject_type(at, value, "a string or an array of strings", error);
    }
    size_t count = json_object_array_length(value);
    if (count == 0) {
        return fm_reject_value(at, "Expected at least one string.", error);
    }
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        struct fm_path here = {.parent = at, .index = i};
        code = entry(rule, json_object_array_get_idx(value, i), &here, error);
    }
    return code == FM_OK && count > max ? fm_reject_long_array(at, max, count, error) : code;
}

enum fm_code fm_check_variant(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                              struct fm_error *error) {
    struct json_object *type = NULL;
    struct fm_path type_at = {.parent = at, .key = "type"};
    enum fm_code code = fm_check_tag(value, "type", at, &type, error);
    code = code ? code : fm_check_enum(rule, type, &type_at, error);
    if (code != FM_OK) {
        return code;
    }
    const struct fm_rule *row = rule->members;
    while (!fm_string_is(type, row->name)) { /* the table has a row for each word */
        row++;
    }
    return fm_check_members(row->members, value, at, error);
}

static enum fm_code only(bool harmless, const struct fm_rule *rule, const struct fm_path *at, struct fm_error *error) {
    return harmless ? FM_OK : fm_reject_unsupported(at, rule->note, error);
}

enum fm_code fm_check_unsupported(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                  struct fm_error *error) {
    (void)value;
    return only(false, rule, at, error);
}

enum fm_code fm_check_only_false(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                 struct fm_error *error) {
    bool harmless = json_object_is_type(value, json_type_boolean) && !json_object_get_boolean(value);
    return only(harmless, rule, at, error);
}

enum fm_code fm_check_only_word(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                struct fm_error *error) {
    return only(is_word(value, rule->words), rule, at, error);
}

enum fm_code fm_check_only_number(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                  struct fm_error *error) {
    bool harmless = is_number(value) && json_object_get_double(value) == (double)rule->min;
    return only(harmless, rule, at, error);
}

enum fm_code fm_check_only_list(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                struct fm_error *error) {
    bool harmless = json_object_is_type(value, json_type_array);
    size_t count = harmless ? json_object_array_length(value) : 0;
    for (size_t i = 0; i < count && harmless; i++) {
        harmless = is_word(json_object_array_get_idx(value, i), rule->words);
    }
    return only(harmless, rule, at, error);
}

/* ---- the walk ---- */

/* Returns `rule`, or the first row of the table in which the table goes on; NULL: the end. */
static const struct fm_rule *rule_at(const struct fm_rule *rule) {
    return rule->name ? rule : rule->members;
}

const struct fm_rule *fm_rule_find(const struct fm_rule *rules, const char *name) {
    for (const struct fm_rule *rule = rule_at(rules); rule; rule = rule_at(rule + 1)) {
        if (strcmp(rule->name, name) == 0) {
            return rule;
        }
    }
    return NULL;
}

/* Returns the list that takes unknown members at `at`; NULL: they are refused. */
static struct fm_ignored *find_ignored(const struct fm_path *at) {
    while (at && !at->closed && !at->ignored) {
        at = at->parent;
    }
    return at && !at->closed ? at->ignored : NULL;
}

/* Removes the unknown member at `at` from `object` and notes its path. False: it must be refused. */
static bool ignore_member(struct json_object *object, const struct fm_path *at) {
    struct fm_ignored *ignored = find_ignored(at);
    if (ignored) {
        struct path_text path = path_write(at);
        fm_ignored_add(ignored, path.text);
        json_object_object_del(object, at->key);
    }
    return ignored;
}

/* Returns the first known name that begins with `name`: "timeout" gives "timeout_ms". NULL: no name does. */
static const char *completed(const struct fm_rule *rules, const char *name) {
    const struct fm_rule *rule = rule_at(rules);
    while (rule && (!name[0] || strncmp(rule->name, name, strlen(name)) != 0)) {
        rule = rule_at(rule + 1);
    }
    return rule ? rule->name : NULL;
}

enum fm_code fm_check_members(const struct fm_rule *rules, struct json_object *object, const struct fm_path *at,
                              struct fm_error *error) {
    struct lh_entry *next;
    for (struct lh_entry *entry = json_object_get_object(object)->head; entry; entry = next) {
        const struct fm_rule *rule = fm_rule_find(rules, lh_entry_k(entry));
        struct fm_path here = {.parent = at, .key = lh_entry_k(entry), .closed = rule && rule->closed};
        struct json_object *value = lh_entry_v(entry);
        next = lh_entry_next(entry); /* read now, because this entry may be removed */
        if (!rule && !ignore_member(object, &here)) {
            return fm_reject_unknown(&here, completed(rules, here.key), error);
        }
        enum fm_code code = rule && value ? rule->check(rule, value, &here, error) : FM_OK;
        if (code != FM_OK) {
            return code;
        }
    }
    for (const struct fm_rule *rule = rule_at(rules); rule; rule = rule_at(rule + 1)) {
        struct fm_path here = {.parent = at, .key = rule->name};
        if (rule->required && !json_object_object_get(object, rule->name)) {
            return fm_reject_missing(&here, error);
        }
    }
    return FM_OK;
}

enum fm_code fm_check_body(const struct fm_rule *rules, struct json_object *body, struct fm_ignored *ignored,
                           struct fm_error *error) {
    const struct fm_path root = {.ignored = ignored};
    return fm_check_members(rules, body, ignored ? &root : NULL, error);
}

enum fm_code fm_ignored_refuse(const struct fm_buf *paths, struct fm_error *error) {
    const struct fm_path at = {.key = fm_ignored_next(paths, NULL)};
    return fm_reject_unknown(&at, NULL, error);
}
