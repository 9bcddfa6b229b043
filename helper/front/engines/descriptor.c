/* What an engine says of itself: from its file, or from its reply to engine.initialize. */
#include "front/engines/descriptor.h"
#include "base/file.h"
#include "base/utf8.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define FM_DESCRIPTION_MAX 65536 /* bytes */
#define REASON_SHOWN       300   /* bytes of why a file is refused, which has its path: what to do has to follow */

static const struct {
    const char *name;
    enum fm_feature feature;
} names[] = {
    {"structured_output", FM_FEATURE_STRUCTURED_OUTPUT},
    {"tools", FM_FEATURE_TOOLS},
    {"embeddings", FM_FEATURE_EMBEDDINGS},
    {"completions", FM_FEATURE_COMPLETIONS},
    {"images", FM_FEATURE_IMAGES},
    {"input_tokens", FM_FEATURE_INPUT_TOKENS},
    {"truncation", FM_FEATURE_TRUNCATION},
    {"saved_state", FM_FEATURE_SAVED_STATE},
};

static unsigned bit_of(struct json_object *name) {
    const char *text = json_object_is_type(name, json_type_string) ? json_object_get_string(name) : "";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i].name) == 0) {
            return names[i].feature;
        }
    }
    return 0;
}

void fm_descriptor_take(struct fm_descriptor *descriptor, struct json_object *object) {
    struct json_object *models = json_object_object_get(object, "models");
    struct json_object *features = json_object_object_get(object, "features");
    *descriptor = (struct fm_descriptor){.has_features = json_object_is_type(features, json_type_array)};
    descriptor->reads_files =
        json_object_is_type(models, json_type_string) && strcmp(json_object_get_string(models), "files") == 0;
    for (size_t i = 0; descriptor->has_features && i < json_object_array_length(features); i++) {
        descriptor->features |= bit_of(json_object_array_get_idx(features, i));
    }
}

/* Whether the members are of the right kind; other names of features may be of a newer engine. */
static enum fm_code judge(struct json_object *object, const char *path, struct fm_error *error) {
    struct json_object *models = json_object_object_get(object, "models");
    struct json_object *features = json_object_object_get(object, "features");
    const char *text = json_object_is_type(models, json_type_string) ? json_object_get_string(models) : "";
    if (!json_object_is_type(object, json_type_object)) {
        return fm_fail(error, FM_UNAVAILABLE, "this is not an object: %s", path);
    }
    if (models && strcmp(text, "files") != 0 && strcmp(text, "own") != 0) {
        return fm_fail(error, FM_UNAVAILABLE, "models is neither \"files\" nor \"own\": %s", path);
    }
    if (features && !json_object_is_type(features, json_type_array)) {
        return fm_fail(error, FM_UNAVAILABLE, "features is not a list: %s", path);
    }
    return FM_OK;
}

/* False when out of memory; otherwise `error` has what is wrong with the text of the file `path`, or FM_OK. */
static bool parse(struct fm_descriptor *descriptor, const struct fm_buf *text, const char *path,
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
 * Finds the description: beside the program, or in an app of macOS in Contents/Resources, because what lies in
 * Contents/MacOS must be signed. False: there is none.
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
    bool ok = fm_file_read(path, &text, &error) != FM_OK || parse(&files->descriptor, &text, path, &error);
    fm_buf_free(&text);
    if (error.code != FM_OK) {
        fm_fail(&files->fault, FM_UNAVAILABLE,
                "the description of the engine %s can't be used: %.*s; write it with `fm-engine-%s --describe`, and "
                "start fm-proxy again",
                name, fm_utf8_shown(error.detail, REASON_SHOWN), error.detail, name);
    }
    return ok;
}
