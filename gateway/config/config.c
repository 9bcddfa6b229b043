/*
 * Reads the text of a config.json. Each key is set once, by its row in keys.c. Anything else in the text is refused
 * with key and line, so no setting that a user wrote is silently ignored.
 */
#include "config/config.h"

#include "base/secret.h"
#include "base/utf8.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MAX 1024

/* A place in text that fm_json_check has accepted. */
struct place {
    const char *at;
    const char *end;
    size_t line;
};

struct reading {
    struct gw_config *config;
    struct json_object *root;
    struct json_object *group; /* the group that `place` is in; NULL: it is not an object */
    const char *group_name;
    size_t group_len;
    const char *file;
    unsigned seen;   /* a bit for each row */
    unsigned groups; /* a bit for the first row of each group */
    struct fm_error *error;
};

static size_t line_of(const char *text, size_t offset) {
    size_t line = 1;
    for (size_t i = 0; i < offset; i++) {
        line += text[i] == '\n';
    }
    return line;
}

/* Puts "FILE, line N: KEY: " before the detail of `error`. */
static enum fm_code at_line(const struct reading *reading, size_t line, const char *key, struct fm_error *error) {
    char detail[sizeof error->detail];
    memcpy(detail, error->detail, sizeof detail);
    fm_fail(error, FM_INVALID_REQUEST, "%s, line %zu: %s: %s", reading->file, line, key, detail);
    snprintf(error->param, sizeof error->param, "%s", key); /* fm_fail clears it */
    return FM_INVALID_REQUEST;
}

static enum fm_code refuse_key(const struct reading *reading, const struct place *place, const char *name, size_t len,
                               const char *fault) {
    char key[200];
    snprintf(reading->error->detail, sizeof reading->error->detail, "%s", fault);
    snprintf(key, sizeof key, "%.*s%s%.*s", reading->group_name ? (int)(reading->group_len % 80) : 0,
             reading->group_name ? reading->group_name : "", reading->group_name ? "." : "", (int)(len < 80 ? len : 80),
             name);
    return at_line(reading, place->line, key, reading->error);
}

/* Takes a key of the outermost object. */
static enum fm_code take_group(struct reading *reading, const struct place *place, const char *name, size_t len) {
    reading->group_name = NULL;
    if (!gw_key_group_exists(name, len)) {
        return refuse_key(reading, place, name, len,
                          "no such group; there are gateway, agents, tools, memory and security");
    }
    for (size_t i = 0; i < gw_key_count; i++) {
        if (strlen(gw_keys[i].group) == len && memcmp(gw_keys[i].group, name, len) == 0) {
            if (reading->groups & (1u << i)) {
                return refuse_key(reading, place, name, len, "the group is there twice");
            }
            reading->groups |= 1u << i;
            json_object_object_get_ex(reading->root, gw_keys[i].group, &reading->group);
            break;
        }
    }
    if (!json_object_is_type(reading->group, json_type_object)) {
        return refuse_key(reading, place, name, len, "must be an object");
    }
    reading->group_name = name;
    reading->group_len = len;
    return FM_OK;
}

/* Takes a key of a group. */
static enum fm_code take_key(struct reading *reading, const struct place *place, const char *name, size_t len) {
    const struct gw_key *key = gw_key_find(reading->group_name, reading->group_len, name, len);
    struct json_object *value = NULL;
    if (!key) {
        return refuse_key(reading, place, name, len, "no such key; docs/gateway.md lists them");
    }
    unsigned bit = 1u << (key - gw_keys);
    if (reading->seen & bit) {
        return refuse_key(reading, place, name, len, "the key is there twice");
    }
    reading->seen |= bit;
    json_object_object_get_ex(reading->group, key->name, &value);
    if (gw_key_set(reading->config, key, value, reading->error) != FM_OK) {
        char path[sizeof reading->error->param];
        memcpy(path, reading->error->param, sizeof path);
        return at_line(reading, place->line, path, reading->error);
    }
    return FM_OK;
}

/* `place` is at a quote: moves past the string's end. */
static void skip_string(struct place *place) {
    for (place->at++; *place->at != '"'; place->at++) {
        place->at += *place->at == '\\';
    }
    place->at++;
}

/* Whether a colon follows, so that the string before it was a key. */
static bool is_key(const struct place *place) {
    const char *at = place->at;
    while (at < place->end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')) {
        at++;
    }
    return at < place->end && *at == ':';
}

/* Takes every key of the two outer levels, in order, each with its line. */
static enum fm_code take_all(struct reading *reading, struct place place) {
    size_t depth = 0;
    while (place.at < place.end) {
        char c = *place.at;
        if (c != '"') {
            depth += c == '{' || c == '[';
            depth -= c == '}' || c == ']';
            place.line += c == '\n';
            place.at++;
            continue;
        }
        const char *name = place.at + 1;
        skip_string(&place);
        size_t len = (size_t)(place.at - name) - 1;
        enum fm_code code = FM_OK;
        if (is_key(&place) && depth <= 2) {
            code = depth == 1 ? take_group(reading, &place, name, len) : take_key(reading, &place, name, len);
        }
        if (code != FM_OK) {
            return code;
        }
    }
    return FM_OK;
}

enum fm_code gw_config_parse(struct gw_config *config, const char *text, size_t len, const char *file,
                             struct fm_error *error) {
    struct gw_config read = *config;
    struct reading reading = {.config = &read, .file = file, .error = error};
    struct fm_buf scratch;
    size_t offset = 0;
    size_t mark = fm_utf8_mark(text, len);
    text += mark;
    len -= mark;
    const char *fault = fm_json_check(text, len, VALUES_MAX, &offset);
    if (fault) {
        return fm_fail(error, FM_INVALID_REQUEST, "%s, line %zu: not JSON: %s", file, line_of(text, offset), fault);
    }
    fm_buf_init(&scratch, GW_CONFIG_FILE_MAX);
    enum fm_code code = FM_OK;
    if (!fm_json_tree(text, len, &scratch, &reading.root)) {
        code = fm_fail_no_memory(error);
    } else if (!json_object_is_type(reading.root, json_type_object)) {
        code = fm_fail(error, FM_INVALID_REQUEST, "%s, line 1: must be a JSON object", file);
    } else {
        code = take_all(&reading, (struct place){text, text + len, 1});
    }
    if (code == FM_OK) {
        *config = read;
    }
    json_object_put(reading.root);
    fm_buf_free(&scratch);
    return code;
}

void gw_config_defaults(struct gw_config *config) {
    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < gw_key_count; i++) {
        struct fm_error error;
        struct json_object *value = json_tokener_parse(gw_keys[i].fallback);
        if (gw_key_set(config, &gw_keys[i], value, &error) != FM_OK) {
            abort(); /* the table is wrong, or there is no memory at the start; a unit test checks the rows */
        }
        json_object_put(value);
    }
}

void gw_config_write_defaults(struct fm_buf *text) {
    const char *group = "";
    for (size_t i = 0; i < gw_key_count; i++) {
        bool same = strcmp(group, gw_keys[i].group) == 0;
        if (!same) {
            fm_buf_append_str(text, *group ? "\n  },\n  \"" : "{\n  \"");
            fm_buf_append_str(text, gw_keys[i].group);
            fm_buf_append_str(text, "\": {");
        }
        group = gw_keys[i].group;
        fm_buf_append_str(text, same ? ",\n    \"" : "\n    \"");
        fm_buf_append_str(text, gw_keys[i].name);
        fm_buf_append_str(text, "\": ");
        fm_buf_append_str(text, gw_keys[i].fallback);
    }
    fm_buf_append_str(text, "\n  }\n}\n");
}

/* Makes a JSON value from a variable's text: digits become a number, other text stays text. */
static struct json_object *variable_value(const struct gw_key *key, const char *text) {
    char *end = NULL;
    if (key->type == GW_INT) {
        long long number = strtoll(text, &end, 10);
        bool digits = *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 18;
        return digits ? json_object_new_int64(number) : json_object_new_string(text);
    }
    return json_object_new_string(text);
}

enum fm_code gw_config_environment(struct gw_config *config, struct fm_error *error) {
    for (size_t i = 0; i < gw_key_count; i++) {
        const char *text = gw_keys[i].variable ? getenv(gw_keys[i].variable) : NULL;
        if (!text || !*text) {
            continue;
        }
        struct json_object *value = variable_value(&gw_keys[i], text);
        enum fm_code code = value ? gw_key_set(config, &gw_keys[i], value, error) : fm_fail_no_memory(error);
        json_object_put(value);
        if (code != FM_OK) {
            char detail[sizeof error->detail];
            memcpy(detail, error->detail, sizeof detail);
            return fm_fail(error, code, "environment variable %s: %s", gw_keys[i].variable, detail);
        }
    }
    return FM_OK;
}

void gw_secrets_take(struct gw_secrets *secrets) {
    secrets->token = fm_secret_take("PROJ_JARVIS_TOKEN");
    secrets->anthropic_key = fm_secret_take("ANTHROPIC_API_KEY");
    secrets->openai_key = fm_secret_take("OPENAI_API_KEY");
}

void gw_secrets_free(struct gw_secrets *secrets) {
    fm_secret_free(secrets->token);
    fm_secret_free(secrets->anthropic_key);
    fm_secret_free(secrets->openai_key);
    *secrets = (struct gw_secrets){0};
}
