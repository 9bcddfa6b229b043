/*
 * Reads the configuration. The table has one row for each member, so an unknown member is an error and is not ignored.
 */
#include "engine/remote/config.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/secret.h"
#include "base/utf8.h"
#include "engine/remote/twice.h"
#include "engine/remote/url.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG_VALUES_MAX 8192
#define CONFIG_TEXT_MAX   65536

/* The part of the configuration that is being read, and its path. */
struct place {
    struct fm_remote_config *config;
    struct fm_endpoint *endpoint;
    size_t index;
    const char *folder;
    struct fm_error *error;
};

/* ---- errors ---- */

/* An error's text, "endpoints[0].url: WHY", so that the host sees where the configuration is wrong. */
static enum fm_code wrong(const struct place *place, const char *member, const char *why) {
    struct fm_error *error = place->error;
    char param[sizeof error->param];
    if (place->endpoint) {
        snprintf(param, sizeof param, "endpoints[%zu]%s%s", place->index, *member ? "." : "", member);
    } else {
        snprintf(param, sizeof param, "%s", member);
    }
    (void)fm_fail(error, FM_UNAVAILABLE, "the configuration of the remote engine: %s%s%s", param, *param ? ": " : "",
                  why);
    snprintf(error->param, sizeof error->param, "%s", param);
    snprintf(error->reason_code, sizeof error->reason_code, "NOT_CONFIGURED");
    return FM_UNAVAILABLE;
}

/* Returns a string that is not empty and has no NUL; NULL for anything else. */
static const char *whole_text(struct json_object *value) {
    const char *text = json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
    bool whole = text && *text && strlen(text) == (size_t)json_object_get_string_len(value);
    return whole ? text : NULL;
}

static char *joined(const char *first, const char *second, const char *third) {
    size_t size = strlen(first) + strlen(second) + strlen(third) + 1;
    char *text = malloc(size);
    if (text) {
        snprintf(text, size, "%s%s%s", first, second, third);
    }
    return text;
}

/* ---- URLs ---- */

static enum fm_code read_endpoint_url(const struct place *place, struct json_object *value) {
    struct fm_endpoint *endpoint = place->endpoint;
    const char *text = whole_text(value);
    struct fm_url url;
    const char *fault = text ? fm_url_read(text, &url) : "a string that is not empty is expected";
    if (fault) {
        return wrong(place, "url", fault);
    }
    size_t len = strcspn(text, "?");
    endpoint->url = text;
    endpoint->query = text + len;
    fm_secrets_add(&place->config->secrets, endpoint->query); /* the URL may contain a key */
    while (len > 0 && text[len - 1] == '/') {
        len--;
    }
    endpoint->port = url.port;
    endpoint->base = malloc(len + 1);
    endpoint->host = malloc(url.authority_len + 1);
    if (!endpoint->base || !endpoint->host) {
        return fm_fail_no_memory(place->error);
    }
    snprintf(endpoint->base, len + 1, "%s", text);
    snprintf(endpoint->host, url.authority_len + 1, "%s", url.authority);
    return FM_OK;
}

static enum fm_code read_proxy(const struct place *place, struct json_object *value) {
    struct fm_url url;
    const char *text = whole_text(value);
    const char *fault = text ? fm_url_read(text, &url) : "a string that is not empty is expected";
    if (!fault && strcmp(url.rest, "") != 0 && strcmp(url.rest, "/") != 0) {
        fault = "a URL without a path is expected";
    }
    place->endpoint->proxy = text;
    return fault ? wrong(place, "proxy", fault) : FM_OK;
}

/* ---- the other members of an endpoint ---- */

static enum fm_code read_dialect(const struct place *place, struct json_object *value) {
    static const char *const names[] = {"responses", "chat", "messages"};
    const char *text = whole_text(value);
    for (size_t i = 0; text && i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], text) == 0) {
            place->endpoint->dialect = (enum fm_dialect_kind)i;
            return FM_OK;
        }
    }
    return wrong(place, "dialect", "\"responses\", \"chat\" or \"messages\" is expected");
}

/* A relative path begins at the configuration's folder. The caller frees it; NULL: out of memory. */
static char *path_of(const struct place *place, const char *text) {
    return text[0] == '/' || !place->folder ? joined(text, "", "") : joined(place->folder, "/", text);
}

/* A file or a variable that a member names can't be used: puts the member's path before the reason in `error`. */
static enum fm_code cannot_use(const struct place *place, const char *member) {
    char why[sizeof place->error->detail];
    snprintf(why, sizeof why, "%s", place->error->detail);
    return wrong(place, member, why);
}

/*
 * The path of a member inside another member, such as "headers.x-a". If the name can't be shown, only the path of the
 * outer member.
 */
static void inner_path(char *path, size_t size, const char *member, const char *name) {
    bool shown = fm_utf8_valid(name, strlen(name)) && strlen(name) < 64;
    snprintf(path, size, shown ? "%s.%s" : "%s", member, name);
}

static enum fm_code read_key_file(const struct place *place, struct json_object *value) {
    const char *text = whole_text(value);
    if (!text) {
        return wrong(place, "key_file", "the path of a file is expected");
    }
    char *path = path_of(place, text);
    if (!path) {
        return fm_fail_no_memory(place->error);
    }
    enum fm_code code = fm_key_read_file(path, &place->endpoint->key, place->error);
    free(path);
    return code ? cannot_use(place, "key_file") : FM_OK;
}

static enum fm_code read_key_env(const struct place *place, struct json_object *value) {
    const char *name = whole_text(value);
    if (!name || strchr(name, '=')) {
        return wrong(place, "key_env", "the name of an environment variable is expected");
    }
    enum fm_code code = fm_key_read_environment(name, &place->endpoint->key, place->error);
    return code ? cannot_use(place, "key_env") : FM_OK;
}

static enum fm_code read_keychain(const struct place *place, struct json_object *value) {
    (void)value;
    return wrong(place, "keychain",
                 "keys from a system's keychain are not supported yet: use key_file, or key_env with the variable "
                 "that a keychain's own tool fills");
}

/* Checks a header's name (RFC 9110, 5.1). */
static bool is_token(const char *text) {
    size_t len = strspn(text, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return len > 0 && text[len] == '\0';
}

static bool is_header_value(const char *text) {
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            return false;
        }
    }
    return true;
}

/*
 * Headers that the engine sets itself. If the configuration could change them, an answer could become unreadable, or
 * belong to another request.
 */
static bool is_reserved(const char *name) {
    static const char *const names[] = {"host",       "content-length", "content-type",    "transfer-encoding",
                                        "connection", "accept",         "accept-encoding", "expect"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static enum fm_code read_header_name(const struct place *place, const char *member, struct json_object *value,
                                     const char **name) {
    *name = whole_text(value);
    if (!*name || !is_token(*name) || is_reserved(*name)) {
        return wrong(place, member, "the name of a header is expected, none that HTTP itself needs");
    }
    return FM_OK;
}

static enum fm_code read_key_header(const struct place *place, struct json_object *value) {
    return read_header_name(place, "key_header", value, &place->endpoint->key_header);
}

static enum fm_code read_session_header(const struct place *place, struct json_object *value) {
    return read_header_name(place, "session_header", value, &place->endpoint->session_header);
}

static enum fm_code read_headers(const struct place *place, struct json_object *value) {
    struct fm_endpoint *endpoint = place->endpoint;
    struct json_object_iter at;
    char member[96];
    if (!json_object_is_type(value, json_type_object)) {
        return wrong(place, "headers", "an object with a string for each header is expected");
    }
    json_object_object_foreachC(value, at) {
        const char *text = json_object_is_type(at.val, json_type_string) ? json_object_get_string(at.val) : NULL;
        if (endpoint->header_count == FM_REMOTE_HEADERS_MAX) {
            return wrong(place, "headers", "at most 16 headers are expected");
        }
        inner_path(member, sizeof member, "headers", at.key);
        if (!is_token(at.key) || is_reserved(at.key)) {
            return wrong(place, member, "the name of a header is expected, none that HTTP itself needs");
        }
        if (!text || !is_header_value(text) || strlen(text) != (size_t)json_object_get_string_len(at.val)) {
            return wrong(place, member, "a string without control characters is expected");
        }
        endpoint->headers[endpoint->header_count++] = (struct fm_remote_header){.name = at.key, .value = text};
        fm_secrets_add(&place->config->secrets, text); /* it may be one */
    }
    return FM_OK;
}

static enum fm_code read_body(const struct place *place, struct json_object *value) {
    place->endpoint->body = value;
    return json_object_is_type(value, json_type_object) ? FM_OK : wrong(place, "body", "an object is expected");
}

static enum fm_code read_ca_file(const struct place *place, struct json_object *value) {
    const char *text = whole_text(value);
    if (!text) {
        return wrong(place, "ca_file", "the path of a file is expected");
    }
    place->endpoint->ca_file = path_of(place, text);
    if (!place->endpoint->ca_file) {
        return fm_fail_no_memory(place->error);
    }
    struct fm_buf start;
    fm_buf_init(&start, 1);
    enum fm_code code = fm_file_read_start(place->endpoint->ca_file, &start, 1, place->error);
    bool empty = start.len == 0;
    fm_buf_free(&start);
    if (code != FM_OK) {
        return cannot_use(place, "ca_file");
    }
    return empty ? wrong(place, "ca_file", "the file is empty: one with certificates (PEM) is expected") : FM_OK;
}

static enum fm_code read_plaintext(const struct place *place, struct json_object *value) {
    place->endpoint->plaintext = json_object_get_boolean(value);
    return json_object_is_type(value, json_type_boolean) ? FM_OK
                                                         : wrong(place, "plaintext", "true or false is expected");
}

static enum fm_code read_timeouts(const struct place *place, struct json_object *value) {
    struct fm_endpoint *endpoint = place->endpoint;
    const struct {
        const char *name;
        int64_t *ms;
    } rows[] = {{"connect_ms", &endpoint->connect_ms},
                {"first_byte_ms", &endpoint->first_byte_ms},
                {"silence_ms", &endpoint->silence_ms}};
    struct json_object_iter at;
    if (!json_object_is_type(value, json_type_object)) {
        return wrong(place, "timeouts", "an object of connect_ms, first_byte_ms and silence_ms is expected");
    }
    json_object_object_foreachC(value, at) {
        char member[96];
        size_t row = 0;
        while (row < sizeof rows / sizeof rows[0] && strcmp(rows[row].name, at.key) != 0) {
            row++;
        }
        inner_path(member, sizeof member, "timeouts", at.key);
        if (row == sizeof rows / sizeof rows[0]) {
            return wrong(place, member, "there is no such member");
        }
        *rows[row].ms = json_object_get_int64(at.val);
        if (!json_object_is_type(at.val, json_type_int) || *rows[row].ms < 1 || *rows[row].ms > FM_REMOTE_TIMEOUT_MAX) {
            return wrong(place, member, "an integer from 1 to 86400000 is expected");
        }
    }
    return FM_OK;
}

/* ---- models ---- */

/* Reads "ID", or {"id","name"?,"context_length"?}. False: the value is neither. */
static bool read_model(struct fm_remote_model *model, struct json_object *value) {
    struct json_object *name = NULL;
    struct json_object *length = NULL;
    model->id = whole_text(value);
    model->name = model->id;
    if (model->id || !json_object_is_type(value, json_type_object)) {
        return model->id && strlen(model->id) <= FM_LISTED_ID_MAX;
    }
    model->id = whole_text(json_object_object_get(value, "id"));
    int known = 1 + json_object_object_get_ex(value, "name", &name);
    known += json_object_object_get_ex(value, "context_length", &length);
    model->name = name ? whole_text(name) : model->id;
    model->context_length = json_object_get_int64(length);
    bool length_fits = !length || (json_object_is_type(length, json_type_int) && model->context_length > 0);
    return model->id && strlen(model->id) <= FM_LISTED_ID_MAX && model->name && length_fits &&
           json_object_object_length(value) == known;
}

static enum fm_code read_models(const struct place *place, struct json_object *value) {
    struct fm_endpoint *endpoint = place->endpoint;
    size_t count = json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
    if (count == 0 || count > FM_REMOTE_MODELS_MAX) {
        return wrong(place, "models", "a list of 1 to 256 models is expected; without it, any model may be asked for");
    }
    endpoint->models = calloc(count, sizeof *endpoint->models);
    if (!endpoint->models) {
        return fm_fail_no_memory(place->error);
    }
    for (size_t i = 0; i < count; i++) {
        if (!read_model(&endpoint->models[i], json_object_array_get_idx(value, i))) {
            char member[64];
            snprintf(member, sizeof member, "models[%zu]", i);
            return wrong(place, member,
                         "a name of up to 255 bytes, or an object of id, name and context_length, is expected");
        }
        endpoint->model_count = i + 1;
    }
    return FM_OK;
}

const struct fm_remote_model *fm_endpoint_model(const struct fm_endpoint *endpoint, const char *id,
                                                struct fm_remote_model *spare) {
    for (size_t i = 0; i < endpoint->model_count; i++) {
        if (!id || strcmp(endpoint->models[i].id, id) == 0) {
            return &endpoint->models[i];
        }
    }
    *spare = (struct fm_remote_model){.id = id, .name = id};
    return endpoint->models ? NULL : spare;
}

/* ---- the whole configuration ---- */

static const struct row {
    const char *name;
    enum fm_code (*read)(const struct place *place, struct json_object *value);
    bool key; /* a member that gives the key: at most one of these may be set */
} rows[] = {
    {"url", read_endpoint_url, false},    {"dialect", read_dialect, false},
    {"key_file", read_key_file, true},    {"key_env", read_key_env, true},
    {"keychain", read_keychain, true},    {"key_header", read_key_header, false},
    {"models", read_models, false},       {"headers", read_headers, false},
    {"body", read_body, false},           {"ca_file", read_ca_file, false},
    {"proxy", read_proxy, false},         {"session_header", read_session_header, false},
    {"plaintext", read_plaintext, false}, {"timeouts", read_timeouts, false},
};

/* Checks rules about several members together. */
static enum fm_code check_endpoint(const struct place *place) {
    static const char in_clear[] =
        "without https, prompts and the key could be read on the way: use https, or set plaintext to true if the "
        "network can be trusted";
    struct fm_endpoint *endpoint = place->endpoint;
    struct fm_url url;
    struct fm_url proxy;
    const char *fault = endpoint->url ? fm_url_read(endpoint->url, &url) : "this member is missing";
    if (fault) {
        return wrong(place, "url", fault);
    }
    bool open = !url.https && !endpoint->plaintext; /* without TLS, every machine on the way can read the requests */
    if (endpoint->key_header && !endpoint->key) {
        return wrong(place, "key_header", "a key_file or key_env is expected beside it");
    }
    if (open && !fm_url_is_loopback(&url)) {
        return wrong(place, "url", in_clear);
    }
    if (endpoint->proxy && fm_url_read(endpoint->proxy, &proxy) == NULL) {
        endpoint->port = proxy.port; /* the connection goes to the proxy */
        if (open && !fm_url_is_loopback(&proxy)) {
            return wrong(place, "proxy", in_clear);
        }
    }
    return FM_OK;
}

static enum fm_code read_endpoint(struct place *place, struct json_object *value) {
    int known = 0;
    int keys = 0;
    place->endpoint->connect_ms = FM_CONNECT_MS;
    if (!json_object_is_type(value, json_type_object)) {
        return wrong(place, "", "an object is expected");
    }
    if (!json_object_object_get_ex(value, "dialect", NULL)) {
        return wrong(place, "dialect", "this member is missing: \"responses\", \"chat\" or \"messages\"");
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_object *member;
        if (!json_object_object_get_ex(value, rows[i].name, &member)) {
            continue;
        }
        known++;
        keys += rows[i].key;
        if (keys > 1) {
            return wrong(place, rows[i].name, "only one of key_file, key_env and keychain is expected");
        }
        enum fm_code code = rows[i].read(place, member);
        if (code != FM_OK) {
            return code;
        }
    }
    struct json_object_iter at;
    json_object_object_foreachC(value, at) {
        bool found = json_object_object_length(value) == known;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0] && !found; i++) {
            found = strcmp(rows[i].name, at.key) == 0;
        }
        if (!found) {
            return wrong(place, fm_utf8_valid(at.key, strlen(at.key)) && strlen(at.key) < 64 ? at.key : "",
                         "there is no such member");
        }
    }
    fm_secrets_add(&place->config->secrets, place->endpoint->key);
    return check_endpoint(place);
}

static enum fm_code read_endpoints(struct place *place, struct json_object *root) {
    struct fm_remote_config *config = place->config;
    struct json_object *list = NULL;
    struct json_object_iter at;
    if (!json_object_is_type(root, json_type_object)) {
        return wrong(place, "", "an object with the member endpoints is expected");
    }
    json_object_object_foreachC(root, at) {
        if (strcmp(at.key, "endpoints") != 0) {
            return wrong(place, strlen(at.key) < 64 ? at.key : "",
                         "there is no such member, endpoints is the only one");
        }
    }
    if (!json_object_object_get_ex(root, "endpoints", &list)) {
        return wrong(place, "endpoints", "this member is missing");
    }
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    if (count == 0 || count > FM_ENDPOINTS_MAX) {
        return wrong(place, "endpoints", "a list of 1 to 8 endpoints is expected");
    }
    for (size_t i = 0; i < count; i++) {
        place->endpoint = &config->endpoints[i];
        place->index = i;
        config->endpoint_count = i + 1; /* also counts an endpoint that fails, so that it is freed */
        enum fm_code code = read_endpoint(place, json_object_array_get_idx(list, i));
        if (code != FM_OK) {
            return code;
        }
    }
    return FM_OK;
}

enum fm_code fm_remote_config_read(struct fm_remote_config *config, const char *text, size_t len, const char *folder,
                                   struct fm_error *error) {
    struct place place = {.config = config, .folder = folder, .error = error};
    struct fm_buf scratch;
    size_t offset;
    char path[128];
    *config = (struct fm_remote_config){.root = NULL};
    const char *fault = fm_json_check(text, len, CONFIG_VALUES_MAX, &offset);
    if (fault) {
        char why[160];
        snprintf(why, sizeof why, "it is not JSON: %s, at byte %zu", fault, offset);
        return wrong(&place, "", why);
    }
    if (fm_json_find_twice(text, len, path, sizeof path)) {
        return wrong(&place, path, "this member is there twice");
    }
    fm_buf_init(&scratch, CONFIG_TEXT_MAX);
    bool built = fm_json_tree(text, len, &scratch, &config->root);
    fm_buf_free(&scratch);
    enum fm_code code = built ? read_endpoints(&place, config->root) : fm_fail_no_memory(error);
    if (code != FM_OK) {
        fm_remote_config_free(config);
    }
    return code;
}

void fm_remote_config_free(struct fm_remote_config *config) {
    for (size_t i = 0; i < config->endpoint_count; i++) {
        struct fm_endpoint *endpoint = &config->endpoints[i];
        fm_secret_free(endpoint->key);
        free(endpoint->models);
        free(endpoint->base);
        free(endpoint->host);
        free(endpoint->ca_file);
    }
    json_object_put(config->root);
    *config = (struct fm_remote_config){.root = NULL};
}
