/*
 * The rules, in memory and in rules.json: [{"tool","folder","input"}]. `input` is the input of the call, as JSON
 * without spaces.
 */
#include "run/rules.h"
#include "base/file.h"
#include "config/paths.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"
#include "protocol/json_writer.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES (64u << 20)
#define VALUES_MAX     1048576 /* the same limit as other callers of json_check for tools have */

struct gw_rules {
    char *path;
    struct json_object *list; /* an array of {tool, folder, input} */
};

static enum fm_code broken(const char *path, struct fm_error *error) {
    return fm_fail(error, FM_UNAVAILABLE, "%s is not a list of rules: repair it, or remove it", path);
}

static const char *rule_text(struct json_object *rule, const char *name) {
    struct json_object *value = NULL;
    json_object_object_get_ex(rule, name, &value);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

static bool is_list(struct json_object *list) {
    bool ok = json_object_is_type(list, json_type_array);
    for (size_t i = 0; ok && i < json_object_array_length(list); i++) {
        struct json_object *rule = json_object_array_get_idx(list, i);
        ok = rule_text(rule, "tool") && rule_text(rule, "folder") && rule_text(rule, "input");
    }
    return ok;
}

/*
 * Parses JSON as a tool's input is parsed (tools/registry.c). The caller puts it; NULL: it is not JSON, or no memory.
 */
static struct json_object *parse_json(const char *text, size_t len) {
    struct json_object *root = NULL;
    struct fm_buf scratch;
    size_t offset;
    if (fm_json_check(text, len, VALUES_MAX, &offset)) {
        return NULL;
    }
    fm_buf_init(&scratch, FILE_MAX_BYTES);
    bool ok = fm_json_tree(text, len, &scratch, &root);
    fm_buf_free(&scratch);
    return ok ? root : NULL;
}

static enum fm_code read_file(struct gw_rules *rules, struct fm_error *error) {
    struct fm_buf text;
    struct fm_file_info info;
    if (fm_file_examine(rules->path, &info) == ENOENT) {
        rules->list = json_object_new_array();
        return rules->list ? FM_OK : fm_fail_no_memory(error);
    }
    fm_buf_init(&text, FILE_MAX_BYTES);
    enum fm_code code = fm_file_read(rules->path, &text, error);
    if (code == FM_OK) {
        rules->list = parse_json(text.data ? text.data : "", text.len);
        code = is_list(rules->list) ? FM_OK : broken(rules->path, error);
    }
    fm_buf_free(&text);
    return code;
}

enum fm_code gw_rules_open(const char *path, struct gw_rules **out, struct fm_error *error) {
    struct gw_rules *rules = calloc(1, sizeof *rules);
    if (rules) {
        rules->path = strdup(path);
    }
    if (!rules || !rules->path) {
        free(rules);
        return fm_fail_no_memory(error);
    }
    enum fm_code code = read_file(rules, error);
    if (code != FM_OK) {
        gw_rules_free(rules);
        return code;
    }
    *out = rules;
    return FM_OK;
}

void gw_rules_free(struct gw_rules *rules) {
    if (rules) {
        json_object_put(rules->list);
        free(rules->path);
        free(rules);
    }
}

static bool is_rule(const struct gw_rules *rules, const char *tool, const char *folder, const char *input) {
    for (size_t i = 0; i < json_object_array_length(rules->list); i++) {
        struct json_object *rule = json_object_array_get_idx(rules->list, i);
        if (strcmp(rule_text(rule, "tool"), tool) == 0 && strcmp(rule_text(rule, "folder"), folder) == 0 &&
            strcmp(rule_text(rule, "input"), input) == 0) {
            return true;
        }
    }
    return false;
}

bool gw_rules_allow(const struct gw_rules *rules, const char *tool, const char *folder, const char *input) {
    struct json_object *root = parse_json(input, strlen(input));
    bool allowed = root && is_rule(rules, tool, folder, json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN));
    json_object_put(root);
    return allowed;
}

static bool append_rule(struct gw_rules *rules, const char *tool, const char *folder, const char *input) {
    struct json_object *rule = json_object_new_object();
    return rule && json_object_object_add(rule, "tool", json_object_new_string(tool)) == 0 &&
           json_object_object_add(rule, "folder", json_object_new_string(folder)) == 0 &&
           json_object_object_add(rule, "input", json_object_new_string(input)) == 0 &&
           json_object_array_add(rules->list, rule) == 0;
}

enum fm_code gw_rules_add(struct gw_rules *rules, const char *tool, const char *folder, const char *input,
                          struct fm_error *error) {
    size_t count = json_object_array_length(rules->list);
    if (gw_rules_allow(rules, tool, folder, input)) {
        return FM_OK;
    }
    if (count >= GW_RULES_MAX) {
        return fm_fail(error, FM_RATE_LIMITED, "there are %u rules already: remove some from %s", GW_RULES_MAX,
                       rules->path);
    }
    struct json_object *root = parse_json(input, strlen(input));
    bool added = root && append_rule(rules, tool, folder, json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN));
    json_object_put(root);
    if (!added) {
        return fm_fail_no_memory(error);
    }
    struct fm_buf text;
    fm_buf_init(&text, FILE_MAX_BYTES);
    struct fm_json_writer w = fm_json_writer_on(&text);
    fm_json_value(&w, rules->list);
    fm_buf_append_char(&text, '\n');
    enum fm_code code =
        text.failed ? fm_fail_no_memory(error) : gw_file_replace(rules->path, text.data, text.len, error);
    fm_buf_free(&text);
    if (code != FM_OK) {
        json_object_array_del_idx(rules->list, count, 1);
    }
    return code;
}
