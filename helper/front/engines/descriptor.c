/* Reads what an engine reports of itself: from its file, or from its reply to engine.initialize. */
#include "front/engines/descriptor.h"
#include "base/file.h"
#include "base/platform.h"
#include "base/utf8.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define REASON_SHOWN 300 /* bytes of why a file is refused; what to do has to follow the reason, which has the path */

static unsigned bit_of(struct json_object *name) {
    const char *text = json_object_is_type(name, json_type_string) ? json_object_get_string(name) : "";
    for (size_t i = 0; i < FM_FEATURE_COUNT; i++) {
        if (strcmp(text, fm_feature_names[i]) == 0) {
            return 1u << i;
        }
    }
    return 0;
}

/* Whether the member `name` is the text `word`. */
static bool says(struct json_object *object, const char *name, const char *word) {
    struct json_object *value = json_object_object_get(object, name);
    return json_object_is_type(value, json_type_string) && strcmp(json_object_get_string(value), word) == 0;
}

static bool is_true(struct json_object *object, const char *name) {
    struct json_object *value = json_object_object_get(object, name);
    return json_object_is_type(value, json_type_boolean) && json_object_get_boolean(value);
}

/* Whether the list contains the name of this system. */
static bool has_this_system(struct json_object *list) {
    bool found = false;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *name = json_object_array_get_idx(list, i);
        found |= json_object_is_type(name, json_type_string) &&
                 strcmp(json_object_get_string(name), fm_platform_name()) == 0;
    }
    return found;
}

void fm_descriptor_take(struct fm_descriptor *descriptor, struct json_object *object) {
    struct json_object *features = json_object_object_get(object, "features");
    struct json_object *list = json_object_object_get(object, "platforms");
    *descriptor = (struct fm_descriptor){
        .has_features = json_object_is_type(features, json_type_array),
        .reads_files = says(object, "models", "files"),
        .lists_models = says(object, "models", "listed"),
        .remote = is_true(object, "remote"),
        .any_order = says(object, "parts", "any"),
        .needs_config = is_true(object, "config"),
        .elsewhere = json_object_is_type(list, json_type_array) && !has_this_system(list),
    };
    for (size_t i = 0; descriptor->has_features && i < json_object_array_length(features); i++) {
        descriptor->features |= bit_of(json_object_array_get_idx(features, i));
    }
}

/*
 * Whether the members have the right types. Unknown names of features are allowed, because a newer engine may have
 * them.
 */
static enum fm_code judge(struct json_object *object, const char *path, struct fm_error *error) {
    static const struct {
        const char *name;
        enum json_type type;
        const char *expected;
    } members[] = {{"features", json_type_array, "a list"},
                   {"platforms", json_type_array, "a list"},
                   {"remote", json_type_boolean, "true or false"},
                   {"config", json_type_boolean, "true or false"}};
    if (!json_object_is_type(object, json_type_object)) {
        return fm_fail(error, FM_UNAVAILABLE, "this is not an object: %s", path);
    }
    bool models = says(object, "models", "files") || says(object, "models", "own") || says(object, "models", "listed");
    if (!models && json_object_object_get(object, "models")) {
        return fm_fail(error, FM_UNAVAILABLE, "models is neither \"files\" nor \"own\" nor \"listed\": %s", path);
    }
    bool parts = says(object, "parts", "ordered") || says(object, "parts", "any");
    if (!parts && json_object_object_get(object, "parts")) {
        return fm_fail(error, FM_UNAVAILABLE, "parts is neither \"ordered\" nor \"any\": %s", path);
    }
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        struct json_object *value = json_object_object_get(object, members[i].name);
        if (value && !json_object_is_type(value, members[i].type)) {
            return fm_fail(error, FM_UNAVAILABLE, "%s is not %s: %s", members[i].name, members[i].expected, path);
        }
    }
    return FM_OK;
}

/* False when out of memory. Otherwise `error` says what is wrong with the text of the file `path`, or is FM_OK. */
static bool parse_descriptor(struct fm_descriptor *descriptor, const struct fm_buf *text, const char *path,
                             struct fm_error *error) {
    struct fm_buf scratch;
    struct json_object *object = NULL;
    size_t offset;
    const char *fault = fm_json_check(text->data, text->len, FM_JSON_VALUES_MAX, &offset);
    if (fault) {
        fm_fail(error, FM_UNAVAILABLE, "this is not JSON (%s, at byte %zu): %s", fault, offset, path);
        return true;
    }
    fm_buf_init(&scratch, FM_DESCRIPTION_MAX);
    bool ok = fm_json_tree(text->data, text->len, &scratch, &object);
    if (ok && judge(object, path, error) == FM_OK) {
        fm_descriptor_take(descriptor, object);
    }
    json_object_put(object);
    fm_buf_free(&scratch);
    return ok;
}

/*
 * Finds the description. It is beside the program; in an app of macOS it is in Contents/Resources, because all files in
 * Contents/MacOS must be signed. False: there is no description.
 */
static bool find_description(char *path, size_t size, const char *dir, const char *name) {
    static const char in_app[] = "/Contents/MacOS";
    struct fm_file_info info;
    size_t len = strlen(dir);
    snprintf(path, size, "%s/fm-engine-%s.json", dir, name);
    if (fm_file_examine(path, &info) != ENOENT) {
        return true;
    }
    if (len < sizeof in_app - 1 || strcmp(dir + len - (sizeof in_app - 1), in_app) != 0) {
        return false;
    }
    snprintf(path, size, "%s/../Resources/fm-engine-%s.json", dir, name);
    return fm_file_examine(path, &info) != ENOENT;
}

bool fm_engine_files_read(struct fm_engine_files *files, const char *dir, const char *name) {
    char path[PATH_MAX + 96];
    struct fm_error error = {.code = FM_OK};
    struct fm_buf text;
    *files = (struct fm_engine_files){.name = name, .dir = dir};
    if (!find_description(path, sizeof path, dir, name)) {
        return true;
    }
    fm_buf_init(&text, FM_DESCRIPTION_MAX);
    bool ok = fm_file_read(path, &text, &error) != FM_OK || parse_descriptor(&files->descriptor, &text, path, &error);
    fm_buf_free(&text);
    if (error.code != FM_OK) {
        fm_fail(&files->fault, FM_UNAVAILABLE,
                "the description of the engine %s can't be used: %.*s; write it with `fm-engine-%s --describe`, and "
                "start fm-proxy again",
                name, fm_utf8_shown(error.detail, REASON_SHOWN), error.detail, name);
    }
    return ok;
}
