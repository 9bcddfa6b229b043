/*
 * Reads and writes presets.json. To change it, a process locks the file next to it (LOCK_SUFFIX), reads the old file,
 * writes a whole new file, and renames that to presets.json.
 */
#include "desktop/presets.h"
#include "base/file.h"
#include "base/platform.h"
#include "base/private_files.h"
#include "base/utf8.h"
#include "desktop/refuse.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#define FILE_MAX    1048576u /* bytes */
#define VALUES_MAX  16384u
#define PATH_SIZE   4096
#define NEW_SUFFIX  ".new"
#define LOCK_SUFFIX ".lock" /* never removed, so that all processes lock the same file */

/* ---- reading ---- */

enum fm_code sy_presets_path(char *path, size_t size, struct fm_error *error) {
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    bool given = config && config[0] == '/'; /* XDG Base Directory Specification: a relative path is ignored */
    if (!given && (!home || home[0] != '/')) {
        return fm_fail(error, FM_UNAVAILABLE, "HOME is not set, so it is not known where presets.json is");
    }
    int len = snprintf(path, size, "%s%s/fm-system/presets.json", given ? config : home, given ? "" : "/.config");
    return len < (int)size ? FM_OK : fm_fail(error, FM_UNAVAILABLE, "the path of presets.json is too long");
}

static enum fm_code invalid(struct fm_error *error, const char *where, const char *what) {
    return sy_refuse(error, "invalid_preset", where, "presets.json: %s %s", where[0] ? where : "it", what);
}

enum fm_code sy_presets_check_name(const char *name, struct fm_error *error) {
    size_t len = strlen(name);
    if (len == 0) {
        return sy_refuse(error, "empty_string", "name", "a preset needs a name");
    }
    bool plain = len <= SY_PRESET_NAME_MAX && fm_utf8_valid(name, len);
    for (size_t i = 0; i < len; i++) {
        plain &= (unsigned char)name[i] >= 0x20 && name[i] != 0x7f;
    }
    return plain ? FM_OK
                 : sy_refuse(error, "invalid_name", "name",
                             "the name of a preset is UTF-8 of at most %d bytes, without control characters",
                             SY_PRESET_NAME_MAX);
}

static enum fm_code check_names(struct sy_presets *presets, struct fm_error *error) {
    char where[64];
    for (size_t i = 0; i < json_object_array_length(presets->list); i++) {
        struct json_object *preset = json_object_array_get_idx(presets->list, i);
        snprintf(where, sizeof where, "presets[%zu]", i);
        if (!json_object_is_type(preset, json_type_object)) {
            return invalid(error, where, "must be an object with a name");
        }
        struct json_object *name = json_object_object_get(preset, "name");
        snprintf(where, sizeof where, "presets[%zu].name", i);
        if (!json_object_is_type(name, json_type_string) ||
            strlen(json_object_get_string(name)) != (size_t)json_object_get_string_len(name) ||
            sy_presets_check_name(json_object_get_string(name), error) != FM_OK) {
            return invalid(error, where, "must be a text of 1 to 100 bytes without control characters");
        }
        if (sy_presets_find(presets, json_object_get_string(name)) != i) {
            return invalid(error, where, "is the name of a preset before it: give each its own");
        }
    }
    return FM_OK;
}

static enum fm_code check_file(struct sy_presets *presets, struct fm_error *error) {
    if (!json_object_is_type(presets->root, json_type_object)) {
        return invalid(error, "", "must be {\"presets\": [...]}");
    }
    struct json_object_iter at;
    json_object_object_foreachC(presets->root, at) {
        if (strcmp(at.key, "presets") != 0 || !json_object_is_type(at.val, json_type_array)) {
            return invalid(error, "", "must be {\"presets\": [...]}, with nothing besides");
        }
        presets->list = at.val;
    }
    if (sy_presets_count(presets) > SY_PRESETS_MAX) {
        return invalid(error, "presets", "has more than 100 presets");
    }
    return presets->list ? check_names(presets, error) : FM_OK;
}

static enum fm_code parse_presets(const struct fm_buf *text, struct sy_presets *presets, struct fm_error *error) {
    size_t offset = 0;
    const char *fault = fm_json_check(text->data ? text->data : "", text->len, VALUES_MAX, &offset);
    if (fault) {
        return sy_refuse(error, "invalid_preset", "", "presets.json is no JSON: %s, at byte %zu", fault, offset);
    }
    struct fm_buf scratch;
    fm_buf_init(&scratch, FILE_MAX);
    bool built = fm_json_tree(text->data, text->len, &scratch, &presets->root);
    fm_buf_free(&scratch);
    enum fm_code code = built ? check_file(presets, error) : fm_fail_no_memory(error);
    if (code != FM_OK) {
        sy_presets_free(presets);
    }
    return code;
}

enum fm_code sy_presets_read(const char *path, struct sy_presets *presets, struct fm_error *error) {
    struct fm_file_info info;
    struct fm_buf text;
    *presets = (struct sy_presets){.list = NULL};
    int failure = fm_file_examine(path, &info);
    if (failure == ENOENT) {
        return FM_OK;
    }
    if (failure == 0 && info.size > (int64_t)FILE_MAX) {
        return sy_refuse(error, "invalid_preset", "", "presets.json is longer than %u bytes", FILE_MAX);
    }
    fm_buf_init(&text, FILE_MAX);
    enum fm_code code = fm_file_read(path, &text, error);
    code = code ? code : parse_presets(&text, presets, error);
    fm_buf_free(&text);
    return code;
}

void sy_presets_free(struct sy_presets *presets) {
    json_object_put(presets->root);
    *presets = (struct sy_presets){.list = NULL};
}

size_t sy_presets_count(const struct sy_presets *presets) {
    return presets->list ? json_object_array_length(presets->list) : 0;
}

const char *sy_presets_name(const struct sy_presets *presets, size_t index) {
    return json_object_get_string(json_object_object_get(json_object_array_get_idx(presets->list, index), "name"));
}

size_t sy_presets_find(const struct sy_presets *presets, const char *name) {
    size_t i = 0;
    while (i < sy_presets_count(presets) && strcmp(sy_presets_name(presets, i), name) != 0) {
        i++;
    }
    return i;
}

/* ---- writing ---- */

/* A change of the file: a new file that will replace the old one. */
struct change {
    char folder_path[PATH_SIZE]; /* the folder of the real file, if `path` is a link */
    char name[256];
    char new_name[256 + sizeof NEW_SUFFIX];
    char lock_name[256 + sizeof LOCK_SUFFIX];
    int folder;
    int lock;
    int fd;
};

static enum fm_code failed(const char *what, const struct change *change, struct fm_error *error) {
    return fm_fail(error, FM_UNAVAILABLE, "can't %s %s in %.200s: %s", what, change->name, change->folder_path,
                   strerror(errno));
}

static enum fm_code find_folder(const char *path, struct change *change, struct fm_error *error) {
    char *resolved = fm_file_resolve(path);
    const char *real = resolved ? resolved : path;
    const char *slash = fm_file_last_separator(real);
    size_t len = slash ? (size_t)(slash - real) : 0;
    bool fits = slash && len > 0 && len < sizeof change->folder_path && strlen(slash + 1) < sizeof change->name;
    if (fits) {
        memcpy(change->folder_path, real, len);
        change->folder_path[len] = '\0';
        snprintf(change->name, sizeof change->name, "%s", slash + 1);
        snprintf(change->new_name, sizeof change->new_name, "%s" NEW_SUFFIX, change->name);
        snprintf(change->lock_name, sizeof change->lock_name, "%s" LOCK_SUFFIX, change->name);
    }
    free(resolved);
    return fits ? FM_OK : fm_fail(error, FM_UNAVAILABLE, "presets can't be written to %.200s", path);
}

static void close_all(struct change *change) {
    const int fds[] = {change->fd, change->lock, change->folder};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0) {
            fm_close(fds[i]);
        }
    }
}

static enum fm_code take_lock(struct change *change, struct fm_error *error) {
    /* opens the lock file, or makes it if no other process has just made it */
    for (int i = 0; i < 3 && change->lock < 0; i++) {
        change->lock = fm_private_file_append(change->folder, change->lock_name, i == 1);
    }
    if (change->lock < 0) {
        return failed("lock", change, error);
    }
    if (flock(change->lock, LOCK_EX | LOCK_NB) == 0) {
        return FM_OK;
    }
    return errno == EWOULDBLOCK ? fm_fail(error, FM_OVERLOADED, "another process writes presets.json now: try again")
                                : failed("lock", change, error);
}

static enum fm_code begin_change(const char *path, struct change *change, struct fm_error *error) {
    *change = (struct change){.folder = -1, .lock = -1, .fd = -1};
    enum fm_code code = find_folder(path, change, error);
    if (code != FM_OK) {
        return code;
    }
    change->folder = fm_private_folder_open(change->folder_path);
    if (change->folder < 0 && errno == EPERM) {
        return fm_fail(error, FM_UNAVAILABLE, "%.200s must belong to you, and nobody else may write to it: chmod go-w",
                       change->folder_path);
    }
    code = change->folder < 0 ? failed("open the folder of", change, error) : take_lock(change, error);
    if (code == FM_OK) {
        fm_private_file_remove(change->folder, change->new_name); /* a killed process has left this file */
        change->fd = fm_private_file_create(change->folder, change->new_name);
        code = change->fd < 0 ? failed("write", change, error) : FM_OK;
    }
    if (code != FM_OK) {
        close_all(change);
    }
    return code;
}

/* Ends the change, after a failure too. The old file is replaced only by a complete new one. */
static enum fm_code end_change(struct change *change, enum fm_code code, const struct sy_presets *presets,
                               struct fm_error *error) {
    const char *text = code == FM_OK ? json_object_to_json_string_ext(presets->root, JSON_C_TO_STRING_PRETTY |
                                                                                         JSON_C_TO_STRING_SPACED |
                                                                                         JSON_C_TO_STRING_NOSLASHESCAPE)
                                     : NULL;
    if (code == FM_OK && !text) {
        code = fm_fail_no_memory(error);
    }
    if (code == FM_OK && strlen(text) >= FILE_MAX) {
        code = sy_refuse(error, "invalid_preset", "", "presets.json would be longer than %u bytes", FILE_MAX);
    }
    if (code == FM_OK &&
        !(fm_write_all(change->fd, text, strlen(text)) && fm_write_all(change->fd, "\n", 1) &&
          fm_private_file_sync(change->fd) && fm_private_file_rename(change->folder, change->new_name, change->name) &&
          fm_private_folder_sync(change->folder))) {
        code = failed("write", change, error);
    }
    if (code != FM_OK) {
        fm_private_file_remove(change->folder, change->new_name);
    }
    close_all(change);
    return code;
}

/* Makes the object and the list, {"presets": []}, if they are missing. False when out of memory. */
static bool make_list(struct sy_presets *presets) {
    if (!presets->root) {
        presets->root = json_object_new_object();
    }
    if (presets->root && !presets->list) {
        struct json_object *list = json_object_new_array();
        if (!list || json_object_object_add(presets->root, "presets", list) != 0) {
            json_object_put(list);
            return false;
        }
        presets->list = list;
    }
    return presets->list != NULL;
}

enum fm_code sy_presets_save(const char *path, struct json_object *preset, bool replace, bool *replaced,
                             struct fm_error *error) {
    const char *name = json_object_get_string(json_object_object_get(preset, "name"));
    struct sy_presets presets = {.list = NULL};
    struct change change;
    enum fm_code code = sy_presets_check_name(name, error);
    code = code ? code : begin_change(path, &change, error);
    if (code != FM_OK) {
        return code;
    }
    code = sy_presets_read(path, &presets, error);
    size_t at = sy_presets_find(&presets, name);
    *replaced = at < sy_presets_count(&presets);
    if (code == FM_OK && *replaced && !replace) {
        code =
            sy_refuse(error, "preset_exists", "name", "there is a preset of this name: --replace puts this one there");
    } else if (code == FM_OK && at == SY_PRESETS_MAX) {
        code = sy_refuse(error, "invalid_preset", "name", "there are %d presets: delete one first", SY_PRESETS_MAX);
    } else if (code == FM_OK &&
               (!make_list(&presets) || json_object_array_put_idx(presets.list, at, json_object_get(preset)) != 0)) {
        code = fm_fail_no_memory(error);
    }
    code = end_change(&change, code, &presets, error);
    sy_presets_free(&presets);
    return code;
}

enum fm_code sy_presets_delete(const char *path, const char *name, struct fm_error *error) {
    struct sy_presets presets = {.list = NULL};
    struct change change;
    enum fm_code code = begin_change(path, &change, error);
    if (code != FM_OK) {
        return code;
    }
    code = sy_presets_read(path, &presets, error);
    size_t at = sy_presets_find(&presets, name);
    if (code == FM_OK && at == sy_presets_count(&presets)) {
        code = sy_refuse(error, "unknown_preset", "name", "there is no preset of this name");
    } else if (code == FM_OK && json_object_array_del_idx(presets.list, at, 1) != 0) {
        code = fm_fail(error, FM_INTERNAL, "the preset can't be taken out of the list");
    }
    code = end_change(&change, code, &presets, error);
    sy_presets_free(&presets);
    return code;
}
