#include "front/models.h"
#include "base/file.h"
#include "base/log.h"
#include "base/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX     ".gguf"
#define NAME_SHOWN 200 /* bytes of a name in an error */

/* The one engine whose models are GGUF files; others have one model that bears the engine's name. */
static bool engine_reads_gguf(const struct fm_options *options) {
    return strcmp(options->engine, "llama") == 0;
}

static bool has_suffix(const char *name) {
    size_t len = strlen(name);
    return len > strlen(SUFFIX) && strcmp(name + len - strlen(SUFFIX), SUFFIX) == 0;
}

/* --model names a file rather than an id. */
static bool is_path(const char *model) {
    return strchr(model, '/') || has_suffix(model);
}

static char *id_of_path(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return strndup(name, strlen(name) - (has_suffix(name) ? strlen(SUFFIX) : 0));
}

void fm_model_free(struct fm_model *model) {
    free(model->id);
    free(model->path);
    free(model->mmproj);
    *model = (struct fm_model){0};
}

void fm_model_list_free(struct fm_model_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        fm_model_free(&list->models[i]);
    }
    free(list->models);
    *list = (struct fm_model_list){0};
}

/* Takes `id` and `path` over, also on failure. */
static bool add(struct fm_model_list *list, char *id, char *path, bool is_default) {
    struct fm_model model = {.id = id, .path = path, .is_default = is_default};
    struct stat info;
    if (path && stat(path, &info) == 0) {
        model.created = (int64_t)info.st_mtime;
    }
    struct fm_model *grown = id ? realloc(list->models, (list->count + 1) * sizeof *grown) : NULL;
    if (!grown) {
        fm_model_free(&model);
        return false;
    }
    list->models = grown;
    list->models[list->count++] = model;
    return true;
}

static char *join(const char *dir, const char *name) {
    char *path = NULL;
    return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

static struct fm_model *find_id(struct fm_model_list *list, const char *id) {
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->models[i].id, id) == 0) {
            return &list->models[i];
        }
    }
    return NULL;
}

/* One file of the models folder; the file that --model names wins over one of the same id. */
static bool add_file(struct fm_model_list *list, const char *dir, const char *name) {
    char *id = id_of_path(name);
    if (id && find_id(list, id)) {
        free(id);
        return true;
    }
    char *path = join(dir, name);
    if (!path) {
        free(id);
        return false;
    }
    return add(list, id, path, false);
}

/* A name that JSON can say, of a regular file. */
static bool can_be_asked_for(int dir_fd, const char *name) {
    struct stat info;
    return fm_utf8_valid(name, strlen(name)) && fstatat(dir_fd, name, &info, 0) == 0 && S_ISREG(info.st_mode);
}

static struct dirent *next_entry(DIR *stream) {
    errno = 0; /* so that an error can be told from the end */
    return readdir(stream);
}

static bool add_folder(struct fm_model_list *list, const char *dir) {
    DIR *stream = opendir(dir);
    if (!stream) {
        list->folder_error = errno == ENOENT ? 0 : errno;
        return errno != ENOMEM;
    }
    bool ok = true;
    struct dirent *entry;
    while (ok && (entry = next_entry(stream))) {
        if (entry->d_name[0] != '.' && has_suffix(entry->d_name) && can_be_asked_for(dirfd(stream), entry->d_name)) {
            ok = add_file(list, dir, entry->d_name);
        }
    }
    list->folder_error = ok ? errno : 0;
    closedir(stream);
    return ok;
}

static int by_default_then_id(const void *left, const void *right) {
    const struct fm_model *a = left;
    const struct fm_model *b = right;
    return a->is_default != b->is_default ? b->is_default - a->is_default : strcmp(a->id, b->id);
}

/* Marks the default: the one that --model names by id, else (without --model) the first. */
static void choose_default(struct fm_model_list *list, const char *model) {
    struct fm_model *named = model && !is_path(model) ? find_id(list, model) : NULL;
    if (named) {
        named->is_default = true;
    }
    if (list->count) {
        qsort(list->models, list->count, sizeof *list->models, by_default_then_id);
    }
    if (list->count && !model) {
        list->models[0].is_default = true;
    }
}

/* The projector is for the default model, as others have other widths. */
static bool set_mmproj(struct fm_model_list *list, const char *mmproj) {
    struct fm_model *model = list->count && list->models[0].is_default ? &list->models[0] : NULL;
    if (!model || !mmproj) {
        return true;
    }
    model->mmproj = strdup(mmproj);
    return model->mmproj;
}

enum fm_code fm_models_list(const struct fm_options *options, struct fm_model_list *list, struct fm_error *error) {
    *list = (struct fm_model_list){0};
    bool ok = true;
    if (!engine_reads_gguf(options)) {
        char *path = options->model ? strdup(options->model) : NULL;
        ok = add(list, strdup(options->engine), path, true);
    } else {
        if (options->model && is_path(options->model)) {
            char *path = strdup(options->model);
            ok = path && add(list, id_of_path(options->model), path, true);
        }
        ok = ok && add_folder(list, options->models_dir);
    }
    if (!ok) {
        fm_model_list_free(list);
        return fm_fail_no_memory(error);
    }
    if (list->folder_error) {
        fm_log(FM_LOG_WARN, "can't read the models folder: %s", strerror(list->folder_error));
    }
    if (engine_reads_gguf(options)) {
        choose_default(list, options->model);
    }
    if (!set_mmproj(list, options->mmproj)) {
        fm_model_list_free(list);
        return fm_fail_no_memory(error);
    }
    return FM_OK;
}

/* The default one is the first of the list. */
static struct fm_model *pick(struct fm_model_list *list, const char *name) {
    if (name) {
        return find_id(list, name);
    }
    return list->count && list->models[0].is_default ? &list->models[0] : NULL;
}

static enum fm_code no_such_model(const struct fm_options *options, const char *name, struct fm_error *error) {
    if (name) {
        enum fm_code code =
            fm_fail(error, FM_NOT_FOUND, "the model '%.*s' does not exist", fm_utf8_shown(name, NAME_SHOWN), name);
        error->openai_code = "model_not_found";
        snprintf(error->param, sizeof error->param, "model");
        return code;
    }
    if (options->model) {
        return fm_fail(error, FM_UNAVAILABLE, "there is no model %.*s in the folder %.*s",
                       fm_utf8_shown(options->model, NAME_SHOWN), options->model,
                       fm_utf8_shown(options->models_dir, NAME_SHOWN), options->models_dir);
    }
    return fm_fail(error, FM_UNAVAILABLE, "there is no model file (*.gguf) in the folder %s", options->models_dir);
}

enum fm_code fm_models_look_up(const struct fm_options *options, const char *name, struct fm_model *model,
                               struct fm_error *error) {
    struct fm_model_list list;
    enum fm_code code = fm_models_list(options, &list, error);
    if (code != FM_OK) {
        return code;
    }
    struct fm_model *found = pick(&list, name);
    if (found) {
        *model = *found;
        *found = (struct fm_model){0};
    } else if (list.folder_error) {
        code = fm_file_fail_open("models folder", list.folder_error, options->models_dir, error);
    } else {
        code = no_such_model(options, name, error);
    }
    fm_model_list_free(&list);
    return code;
}

enum fm_code fm_models_find(const struct fm_options *options, const char *name, struct fm_model *model,
                            struct fm_error *error) {
    enum fm_code code = fm_models_look_up(options, name, model, error);
    if (code == FM_OK && model->path && engine_reads_gguf(options)) {
        code = fm_file_check_magic(model->path, "GGUF", error);
        code = code || !model->mmproj ? code : fm_file_check_magic(model->mmproj, "GGUF", error);
        if (code != FM_OK) {
            fm_model_free(model);
        }
    }
    return code;
}

enum fm_code fm_model_refuse_images(const struct fm_model *model, struct fm_error *error) {
    char param[sizeof error->param];
    memcpy(param, error->param, sizeof param);
    fm_fail(
        error, FM_INVALID_REQUEST,
        "Unsupported parameter: '%.*s'. The model '%.*s' does not see images: the default model does, with --mmproj.",
        NAME_SHOWN, param, fm_utf8_shown(model->id, NAME_SHOWN), model->id);
    error->openai_code = "unsupported_parameter";
    memcpy(error->param, param, sizeof param);
    return error->code;
}

enum fm_code fm_engine_program(const struct fm_options *options, char path[PATH_MAX], struct fm_error *error) {
    int len = snprintf(path, PATH_MAX, "%s/fm-engine-%s", options->engine_dir, options->engine);
    if (len >= PATH_MAX) {
        return fm_fail(error, FM_UNAVAILABLE, "the path of the engine program is too long");
    }
    struct stat info;
    if (stat(path, &info) != 0 || access(path, X_OK) != 0) {
        return fm_fail(error, FM_UNAVAILABLE, "can't run the engine program (%s): %s", strerror(errno), path);
    }
    if (!S_ISREG(info.st_mode)) {
        return fm_fail(error, FM_UNAVAILABLE, "the engine program is not a regular file: %s", path);
    }
    return FM_OK;
}
