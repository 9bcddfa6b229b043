/* Reads an engine's configuration. Takes the keys that it names out of our environment. */
#include "front/engines/config.h"
#include "base/file.h"
#include "base/platform.h"
#include "base/secret.h"
#include "base/utf8.h"
#include "base/variables.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SHOWN 128 /* bytes of a variable's name in an error */
#define WHY_SHOWN  300 /* bytes of a message from another part, so that there is room for the rest */

static enum fm_code refuse_config(struct fm_config *config, const char *source, const char *why) {
    fm_fail(&config->fault, FM_UNAVAILABLE, "the engine's configuration (%.*s) can't be used: %.*s",
            fm_utf8_shown(source, NAME_SHOWN), source, fm_utf8_shown(why, WHY_SHOWN), why);
    snprintf(config->fault.reason_code, sizeof config->fault.reason_code, "NOT_CONFIGURED");
    return config->fault.code;
}

/* ---- where the text comes from ---- */

static bool set_folder(struct fm_config *config, const char *path) {
    char *resolved = fm_file_resolve(path);
    bool ok = resolved && strlen(resolved) < sizeof config->dir;
    if (ok) {
        snprintf(config->dir, sizeof config->dir, "%s", resolved);
    }
    free(resolved);
    return ok;
}

/* False when out of memory. */
static bool read_file(struct fm_config *config, const char *path) {
    struct fm_buf text;
    struct fm_error error;
    fm_buf_init(&text, FM_CONFIG_MAX);
    if (fm_file_read(path, &text, &error) != FM_OK) {
        refuse_config(config, path, error.detail);
        fm_buf_free(&text);
        return true;
    }
    config->text = fm_secret_copy(text.data ? text.data : "", text.len);
    fm_buf_free(&text);
    bool placed = config->text && set_folder(config, path);
    const char *separator = placed ? fm_file_last_separator(config->dir) : NULL;
    if (separator) { /* if the file is in the root folder, the slash stays */
        config->dir[separator == config->dir ? 1 : separator - config->dir] = '\0';
    }
    return placed;
}

/* False when out of memory. */
static bool read_variable(struct fm_config *config, const char *source, const char *name) {
    if (!getenv(name)) {
        refuse_config(config, source, "the variable is not set");
        return true;
    }
    config->text = fm_secret_take(name);
    if (config->text && strlen(config->text) > FM_CONFIG_MAX) {
        refuse_config(config, source, "it is longer than 32,000 bytes");
    }
    return config->text && set_folder(config, ".");
}

/* ---- which keys the configuration names ---- */

static bool has_key(const struct fm_config *config, const char *name) {
    for (size_t i = 0; i < config->key_count; i++) {
        if (strcmp(config->keys[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/*
 * Names that no key may have; a name with '_' at the end is a prefix. Some of these variables are read by an engine's
 * loader and libraries before the engine confines itself (ld.so(8), glibc's manual, OpenSSL's env(7)). The helper and
 * its engines read the others.
 */
static const char *const read_by_others[] = {
    "PATH",     "HOME",      "TMPDIR",        "LANG",        "LANGUAGE",    "TZ",         "TZDIR",
    "LC_",      "LD_",       "DYLD_",         "MALLOC_",     "GLIBC_",      "GCONV_PATH", "RES_OPTIONS",
    "OPENSSL_", "SSL_CERT_", "SSLKEYLOGFILE", "HOSTALIASES", "LOCALDOMAIN", "GGML_",      "VK_",
    "ASAN_",    "UBSAN_",    "TSAN_",         "LSAN_",       "FM_ENGINE_",  "FM_PROXY_",
};

static bool is_read_by_others(const char *name) {
    return fm_variable_is_in(read_by_others, sizeof read_by_others / sizeof read_by_others[0], name);
}

/* FM_INTERNAL: out of memory; FM_UNAVAILABLE: `config->fault` says what is wrong. */
static enum fm_code take_key(struct fm_config *config, const char *source, const char *name) {
    char why[NAME_SHOWN + 160];
    if (has_key(config, name)) {
        return FM_OK;
    }
    if (config->key_count == FM_CONFIG_KEYS_MAX) {
        return refuse_config(config, source, "it names more than 16 variables as key_env");
    }
    if (!*name || strchr(name, '=')) {
        return refuse_config(config, source, "a key_env is not a variable's name");
    }
    if (is_read_by_others(name)) {
        snprintf(why, sizeof why,
                 "key_env: the system or the helper reads the variable %.*s itself; put the key into another one",
                 fm_utf8_shown(name, NAME_SHOWN), name);
        return refuse_config(config, source, why);
    }
    if (!getenv(name)) {
        snprintf(why, sizeof why, "key_env: the variable %.*s is not set", fm_utf8_shown(name, NAME_SHOWN), name);
        return refuse_config(config, source, why);
    }
    fm_process_hide();
    struct fm_config_key *key = &config->keys[config->key_count];
    key->name = strdup(name);
    key->value = key->name ? fm_secret_take(name) : NULL;
    config->key_count += key->name != NULL;
    return key->value ? FM_OK : FM_INTERNAL;
}

/* The recursion is as deep as the nesting of the JSON, which is limited. */
static enum fm_code take_keys(struct fm_config *config, const char *source, struct json_object *value) {
    enum fm_code code = FM_OK;
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value) && code == FM_OK; i++) {
            code = take_keys(config, source, json_object_array_get_idx(value, i));
        }
        return code;
    }
    if (!json_object_is_type(value, json_type_object)) {
        return FM_OK;
    }
    struct json_object_iter member;
    json_object_object_foreachC(value, member) {
        if (code != FM_OK) {
            break;
        }
        bool names = strcmp(member.key, "key_env") == 0 && json_object_is_type(member.val, json_type_string);
        code = names ? take_key(config, source, json_object_get_string(member.val))
                     : take_keys(config, source, member.val);
    }
    return code;
}

/* False when out of memory. */
static bool parse_config(struct fm_config *config, const char *source) {
    struct fm_buf scratch;
    struct json_object *object = NULL;
    size_t offset;
    size_t len = strlen(config->text);
    char why[160];
    const char *fault = fm_json_check(config->text, len, FM_JSON_VALUES_MAX, &offset);
    if (fault) {
        snprintf(why, sizeof why, "it is not JSON (%s, at byte %zu)", fault, offset);
        refuse_config(config, source, why);
        return true;
    }
    fm_buf_init(&scratch, FM_CONFIG_MAX);
    enum fm_code code = FM_INTERNAL;
    if (fm_json_tree(config->text, len, &scratch, &object)) {
        code = json_object_is_type(object, json_type_object) ? take_keys(config, source, object)
                                                             : refuse_config(config, source, "it is not a JSON object");
    }
    json_object_put(object);
    fm_buf_free(&scratch);
    return code != FM_INTERNAL;
}

bool fm_config_read(struct fm_config *config, const char *source) {
    static const char in_variable[] = "env:";
    *config = (struct fm_config){0};
    if (!source) {
        return true;
    }
    bool variable = strncmp(source, in_variable, sizeof in_variable - 1) == 0;
    bool ok = variable ? read_variable(config, source, source + sizeof in_variable - 1) : read_file(config, source);
    ok = ok && (config->fault.code != FM_OK || parse_config(config, source));
    if (!ok || config->fault.code != FM_OK) { /* nothing of the configuration is used, and nobody else gets the keys */
        fm_secret_free(config->text);
        config->text = NULL;
    }
    return ok;
}

void fm_config_free(struct fm_config *config) {
    for (size_t i = 0; i < config->key_count; i++) {
        free(config->keys[i].name);
        fm_secret_free(config->keys[i].value);
    }
    fm_secret_free(config->text);
    *config = (struct fm_config){0};
}
