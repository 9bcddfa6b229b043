/* Finds models and their projectors in folders; nothing is cached. */
#include "front/engines/models.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "base/platform.h"
#include "base/utf8.h"
#include "front/engines/aliases.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX       ".gguf"
#define DIGITS       "0123456789"
#define CONTEXT_MAX  8192 /* tokens of KV memory that an estimate counts: the default of engines */
#define EMBEDS_MAX   2048 /* the same for a model that computes a text in one piece */
#define SHARED_MAX   (64.0 * 1024 * 1024) /* bytes besides, for parallel answers and kept conversations */
#define SHARED_PARTS 7                    /* SHARED_MAX is cut to the bytes of this many contexts */
#define EMBEDS_WORK  (64.0 * 1024 * 1024) /* bytes to compute a text in one piece; all-MiniLM's 512 tokens take 60 MB */
#define ESTIMATE_MAX 1e15 /* upper bound of an estimate: a header may claim anything */
#define NAME_SHOWN   200  /* bytes of a name in an error */
#define FILE_SHOWN   120  /* bytes of the name of one of several files in an error */
#define NAMES_MAX    64   /* bytes of all names of engines in an error */
#define DIR_SHOWN    300  /* bytes of a path in an error, so that there is room for what to do */

static bool has_suffix(const char *name) {
    size_t len = strlen(name);
    return len > strlen(SUFFIX) && strcmp(name + len - strlen(SUFFIX), SUFFIX) == 0;
}

/* Whether --model names a file and not an id. */
static bool is_path(const char *model) {
    return fm_file_last_separator(model) || has_suffix(model);
}

/* Where "-00001-of-00003.gguf" begins in the path of a split model's file; NULL: the model has one file. */
static const char *find_part(const char *path) {
    const size_t len = strlen("-00001-of-00003" SUFFIX);
    const char *part = has_suffix(path) && strlen(path) > len ? path + strlen(path) - len : NULL;
    bool fits = part && part[0] == '-' && strspn(part + 1, DIGITS) == 5 && memcmp(part + 6, "-of-", 4) == 0 &&
                strspn(part + 10, DIGITS) == 5;
    return fits ? part : NULL;
}

/* Whether a file is a later part of a split model. The first part names the model and finds the other files. */
static bool is_other_part(const char *path) {
    const char *part = find_part(path);
    return part && strtol(part + 1, NULL, 10) != 1;
}

static char *id_of_path(const char *path) {
    const char *slash = fm_file_last_separator(path);
    const char *name = slash ? slash + 1 : path;
    const char *part = find_part(name);
    return strndup(name, part ? (size_t)(part - name) : strlen(name) - (has_suffix(name) ? strlen(SUFFIX) : 0));
}

/* Returns the bytes of all files of a model; the file at `path` has `first` of them. */
static int64_t size_of_all(const char *path, int64_t first) {
    const char *part = find_part(path);
    long count = part ? strtol(part + 10, NULL, 10) : 1;
    struct fm_file_info info = {.size = 0};
    int64_t size = first;
    for (long i = 2; i <= count; i++) {
        char *other = NULL;
        int len = asprintf(&other, "%.*s-%05ld%s", (int)(part - path), path, i, part + 6);
        bool there = len >= 0 && fm_file_examine(other, &info) == 0;
        free(len >= 0 ? other : NULL);
        if (!there) {
            break; /* the engine will report the missing file */
        }
        size += info.size;
    }
    return size;
}

void fm_model_free(struct fm_model *model) {
    free(model->id);
    free(model->asked);
    free(model->path);
    free(model->mmproj);
    free(model->draft);
    *model = (struct fm_model){0};
}

bool fm_model_is_same(const struct fm_model *model, const struct fm_model *other) {
    bool there = model->id && other->id && model->engine == other->engine;
    return there && (model->listed || strcmp(model->id, other->id) == 0);
}

enum fm_code fm_model_of_list(const struct fm_engine_files *engine, const char *id, const char *asked,
                              struct fm_model *model, struct fm_error *error) {
    *model = (struct fm_model){.engine = engine, .listed = true, .is_default = !asked};
    model->id = strdup(id ? id : engine->name);
    model->asked = asked ? strdup(asked) : NULL;
    if (!model->id || (asked && !model->asked)) {
        fm_model_free(model);
        return fm_fail_no_memory(error);
    }
    return FM_OK;
}

struct fm_model fm_route_next(struct fm_route *route) {
    struct fm_model first = route->models[0];
    route->count--;
    memmove(&route->models[0], &route->models[1], route->count * sizeof route->models[0]);
    return first;
}

void fm_route_free(struct fm_route *route) {
    for (size_t i = 0; i < route->count; i++) {
        fm_model_free(&route->models[i]);
    }
    route->count = 0;
}

static void free_all(struct fm_model *models, size_t count) {
    for (size_t i = 0; i < count; i++) {
        fm_model_free(&models[i]);
    }
    free(models);
}

void fm_model_list_free(struct fm_model_list *list) {
    free_all(list->models, list->count);
    free_all(list->projectors, list->projector_count);
    *list = (struct fm_model_list){0};
}

/* Adds the model to the list. Takes the model over, also on failure. */
static bool append_model(struct fm_model **models, size_t *count, struct fm_model *model) {
    struct fm_model *grown = model->id ? realloc(*models, (*count + 1) * sizeof *grown) : NULL;
    if (!grown) {
        fm_model_free(model);
        return false;
    }
    *models = grown;
    grown[(*count)++] = *model;
    return true;
}

/*
 * Adds the model that --model names, or the model of an engine without files. Takes `id` and `path` over, also on
 * failure.
 */
static bool add_default(struct fm_model_list *list, char *id, char *path) {
    struct fm_model model = {.id = id, .path = path, .is_default = true};
    struct fm_file_info info;
    if (path && fm_file_examine(path, &info) == 0) {
        model.created = info.changed;
        model.size = size_of_all(path, info.size);
    }
    return append_model(&list->models, &list->count, &model);
}

/* Adds the file that --model names. If it is a projector, there is no default model. */
static bool add_named(struct fm_model_list *list, const char *named) {
    char absolute[PATH_MAX]; /* errors show it */
    const char *path = fm_file_absolute(named, absolute, sizeof absolute) ? absolute : named;
    struct fm_gguf_kind kind;
    fm_gguf_kind_read(path, &kind);
    list->named_projector = kind.projector;
    if (kind.projector) {
        return true;
    }
    char *copy = strdup(path);
    bool ok = copy && add_default(list, id_of_path(path), copy);
    if (ok) {
        list->models[list->count - 1].kind = kind;
    }
    return ok;
}

static char *join_path(const char *dir, const char *name) {
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

/*
 * Adds one file of a folder. `models` false: only a projector is added. A file that --model names wins over a file with
 * the same id.
 */
static bool add_file(struct fm_model_list *list, const char *dir, const char *name, bool models) {
    struct fm_model model = {.id = id_of_path(name), .path = join_path(dir, name)};
    struct fm_file_info info;
    if (!model.id || !model.path) {
        fm_model_free(&model);
        return false;
    }
    if (fm_file_examine(model.path, &info) != 0 || !info.regular) {
        fm_model_free(&model);
        return true;
    }
    fm_gguf_kind_read(model.path, &model.kind);
    if (model.kind.projector) {
        return append_model(&list->projectors, &list->projector_count, &model);
    }
    if (!models || find_id(list, model.id)) {
        fm_model_free(&model);
        return true;
    }
    model.created = info.changed;
    model.size = size_of_all(model.path, info.size);
    return append_model(&list->models, &list->count, &model);
}

/* The name of a model file, in a form that JSON can hold. */
static bool is_model_name(const char *name) {
    return name[0] != '.' && has_suffix(name) && !is_other_part(name) && fm_utf8_valid(name, strlen(name));
}

/*
 * Adds the files of a folder. `*failure` is an errno value that says why files may be missing. False when out of
 * memory.
 */
static bool add_folder(struct fm_model_list *list, const char *dir, bool models, int *failure) {
    struct fm_folder *folder = fm_folder_open(dir);
    if (!folder) {
        *failure = errno == ENOENT ? 0 : errno;
        return errno != ENOMEM;
    }
    bool ok = true;
    const char *name;
    while (ok && (name = fm_folder_next(folder))) {
        ok = !is_model_name(name) || add_file(list, dir, name, models);
    }
    *failure = ok ? errno : 0;
    fm_folder_close(folder);
    return ok;
}

/* The folder of the file `path`. Only the text of the path is used. */
static const char *folder_of(const char *path, size_t *len) {
    const char *slash = fm_file_last_separator(path);
    *len = !slash || slash == path ? 1 : (size_t)(slash - path);
    return slash ? path : ".";
}

static bool is_folder_of(const char *dir, const char *path) {
    size_t len;
    const char *folder = folder_of(path, &len);
    return strlen(dir) == len && memcmp(dir, folder, len) == 0;
}

/* Adds the projectors beside the file that --model names, if that file is not in the folder of the other models. */
static bool add_neighbours(struct fm_model_list *list, const char *models_dir) {
    const struct fm_model *model = list->count ? &list->models[0] : NULL;
    int ignored;
    size_t len;
    if (!model || !model->is_default || is_folder_of(models_dir, model->path)) {
        return true;
    }
    const char *folder = folder_of(model->path, &len);
    char *dir = strndup(folder, len);
    bool ok = dir && add_folder(list, dir, false, &ignored);
    free(dir);
    return ok;
}

static int by_default_then_id(const void *left, const void *right) {
    const struct fm_model *a = left;
    const struct fm_model *b = right;
    return a->is_default != b->is_default ? b->is_default - a->is_default : strcmp(a->id, b->id);
}

/* The first model, by id, that generates text; without any, the first model for embeddings. The list is not empty. */
static struct fm_model *first_of(struct fm_model_list *list) {
    struct fm_model *first = &list->models[0];
    for (size_t i = 1; i < list->count; i++) {
        struct fm_model *each = &list->models[i];
        bool earlier = strcmp(each->id, first->id) < 0;
        if (each->kind.embeds == first->kind.embeds ? earlier : first->kind.embeds) {
            first = each;
        }
    }
    return first;
}

/* Marks the default model: the model that --model names by id; without --model, the first one. */
static void choose_default(struct fm_model_list *list, const char *model) {
    if (list->count == 0) {
        return;
    }
    struct fm_model *chosen = !model ? first_of(list) : is_path(model) ? NULL : find_id(list, model);
    if (chosen) {
        chosen->is_default = true;
    }
    qsort(list->models, list->count, sizeof *list->models, by_default_then_id);
}

/* ---- projectors that are found ---- */

static int lower(char c) {
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* The length of the longest common substring of both texts, ignoring case. */
static size_t alike(const char *a, const char *b) {
    size_t most = 0;
    for (size_t i = 0; a[i]; i++) {
        for (size_t k = 0; b[k]; k++) {
            size_t len = 0;
            while (a[i + len] && lower(a[i + len]) == lower(b[k + len])) {
                len++;
            }
            most = len > most ? len : most;
        }
    }
    return most;
}

static bool fits_model(const struct fm_model *projector, const struct fm_model *model) {
    size_t len;
    size_t model_len;
    const char *folder = folder_of(projector->path, &len);
    const char *model_folder = folder_of(model->path, &model_len);
    return !model->kind.embeds && model->kind.tokens > 0 && model->kind.tokens == projector->kind.tokens &&
           len == model_len && memcmp(folder, model_folder, len) == 0;
}

/* Chooses among projectors that fit: the one whose name is most similar to the model's, and of equal ones the first. */
static bool find_mmproj(const struct fm_model_list *list, struct fm_model *model) {
    const struct fm_model *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < list->projector_count; i++) {
        const struct fm_model *projector = &list->projectors[i];
        size_t len = fits_model(projector, model) ? alike(projector->id, model->id) : 0;
        if (fits_model(projector, model) && (!best || len > most)) {
            best = projector;
            most = len;
        }
    }
    model->found = best != NULL;
    model->mmproj = best ? fm_file_resolve(best->path) : NULL;
    if (best && !model->mmproj) {
        model->mmproj = strdup(best->path); /* then the file has just been removed */
    }
    return !best || model->mmproj;
}

/*
 * Sets --mmproj and --draft-model, which are only for the default model: other models have other widths and
 * vocabularies.
 */
static bool set_files(struct fm_model_list *list, const struct fm_options *options) {
    bool ok = true;
    for (size_t i = 0; i < list->count && ok; i++) {
        struct fm_model *model = &list->models[i];
        if (options->mmproj && model->is_default) {
            model->mmproj = strdup(options->mmproj);
            ok = model->mmproj;
        } else if (model->path) {
            ok = find_mmproj(list, model);
        }
        if (ok && options->draft_model && model->is_default) {
            model->draft = strdup(options->draft_model);
            ok = model->draft;
        }
    }
    return ok;
}

/* ---- the list ---- */

static bool add_files(const struct fm_options *options, struct fm_model_list *list) {
    bool named = options->model && is_path(options->model);
    if ((named && !add_named(list, options->model)) || (named && !add_neighbours(list, options->models_dir)) ||
        !add_folder(list, options->models_dir, true, &list->folder_error)) {
        return false;
    }
    choose_default(list, options->model);
    if (list->projector_count) {
        qsort(list->projectors, list->projector_count, sizeof *list->projectors, by_default_then_id);
    }
    for (size_t i = 0; options->model && !named && i < list->projector_count; i++) {
        list->named_projector = list->named_projector || strcmp(list->projectors[i].id, options->model) == 0;
    }
    return true;
}

int64_t fm_model_estimate(const struct fm_model *model) {
    const struct fm_gguf_kind *kind = &model->kind;
    double most = kind->embeds ? EMBEDS_MAX : CONTEXT_MAX;
    double context = kind->context > 0 && (double)kind->context < most ? (double)kind->context : most;
    double memory = context * kind->kv_bytes;
    double shared = memory * SHARED_PARTS < SHARED_MAX ? memory * SHARED_PARTS : SHARED_MAX;
    memory += (kind->embeds ? EMBEDS_WORK : shared) + (double)kind->vocabulary * FM_GGUF_TOKEN_BYTES;
    double bytes = (double)model->size + (double)model->mmproj_size + (double)model->draft_size + memory;
    return bytes < ESTIMATE_MAX ? (int64_t)bytes : (int64_t)ESTIMATE_MAX;
}

enum fm_code fm_models_list(const struct fm_options *options, const struct fm_engine_files *engine,
                            struct fm_model_list *list, struct fm_error *error) {
    *list = (struct fm_model_list){0};
    bool ok;
    if (engine->fault.code != FM_OK) {
        return FM_OK; /* nothing is known about the models of the engine */
    }
    if (engine->descriptor.reads_files) {
        ok = add_files(options, list);
    } else {
        bool named = options->model && !engine->beside;
        char *path = named ? strdup(options->model) : NULL;
        ok = (path || !named) && add_default(list, strdup(engine->name), path);
    }
    if (!ok || !set_files(list, options)) {
        fm_model_list_free(list);
        return fm_fail_no_memory(error);
    }
    for (size_t i = 0; i < list->count; i++) {
        list->models[i].engine = engine;
    }
    if (list->folder_error) {
        fm_log(FM_LOG_WARN, "can't read the models folder: %s", strerror(list->folder_error));
    }
    return FM_OK;
}

bool fm_model_sees(const struct fm_model *model) {
    return model->mmproj || (model->listed && model->engine->descriptor.features & FM_FEATURE_IMAGES);
}

bool fm_model_names_default(const char *name) {
    return !name || !*name || strcmp(name, "default") == 0 || strcmp(name, "local") == 0;
}

/*
 * Finds the model that `name` means. The default model is the first in the list. But a model whose id is "default" or
 * "local" wins.
 */
static struct fm_model *pick_name(struct fm_model_list *list, const char *name) {
    struct fm_model *model = name ? find_id(list, name) : NULL;
    if (model || !fm_model_names_default(name)) {
        return model;
    }
    return list->count && list->models[0].is_default ? &list->models[0] : NULL;
}

static struct fm_model *pick(const struct fm_options *options, struct fm_model_list *list, const char *name) {
    char target[FM_ALIAS_MAX + 1];
    struct fm_model *model = pick_name(list, name);
    if (model || fm_model_names_default(name) || !fm_aliases_find(options->aliases, name, target)) {
        return model;
    }
    return pick_name(list, target);
}

/* Writes "; there is a, b and c", as far as there is room, and then `hint`, which says what to do. */
static void tell_models(const struct fm_model_list *list, const char *hint, struct fm_error *error) {
    const size_t size = sizeof error->detail - strlen(hint) - 1;
    size_t len = strlen(error->detail);
    for (size_t i = 0; i < list->count; i++) {
        const char *id = list->models[i].id;
        const char *before = i == 0 ? "; there is " : i + 1 == list->count ? " and " : ", ";
        const int written = snprintf(error->detail + len, size - len, "%s%.*s", before, fm_utf8_shown(id, NAME_SHOWN), id);
        if (written < 0 || len + (size_t)written + sizeof " ..." > size) {
            memcpy(error->detail + len, " ...", sizeof " ...");
            len += strlen(" ...");
            break;
        }
        len += (size_t)written;
    }
    memcpy(error->detail + len, hint, strlen(hint) + 1);
}

static enum fm_code no_folder(int failure, const char *dir, struct fm_error *error) {
    return failure == ENOTDIR ? fm_fail(error, FM_UNAVAILABLE,
                                        "the models folder %.*s is a file; name its folder with the option modelsDir "
                                        "(--models-dir)",
                                        fm_utf8_shown(dir, DIR_SHOWN), dir)
                              : fm_file_fail_open("models folder", failure, dir, error);
}

static enum fm_code no_such_model(const struct fm_options *options, const struct fm_model_list *list, const char *name,
                                  struct fm_error *error) {
    char target[FM_ALIAS_MAX + 1];
    if (!fm_model_names_default(name) && list->count > 0) {
        if (fm_aliases_find(options->aliases, name, target)) {
            fm_fail(error, FM_NOT_FOUND, "the alias '%.*s' stands for the model '%.*s', which does not exist",
                    fm_utf8_shown(name, NAME_SHOWN), name, fm_utf8_shown(target, NAME_SHOWN), target);
            tell_models(list, "; change the option aliases (--aliases)", error);
        } else {
            fm_fail(error, FM_NOT_FOUND, "the model '%.*s' does not exist", fm_utf8_shown(name, NAME_SHOWN), name);
            tell_models(list, "; " FM_MODEL_ALIAS_HINT, error);
        }
        error->reason = "model_not_found";
        snprintf(error->param, sizeof error->param, "model");
        return FM_NOT_FOUND;
    }
    if (list->named_projector) {
        return fm_fail(error, FM_UNAVAILABLE,
                       "%.*s is a projector, not a model; name it with the option mmproj (--mmproj), and its model with "
                       "the option model (--model)",
                       fm_utf8_shown(options->model, NAME_SHOWN), options->model);
    }
    if (options->model) {
        enum fm_code code = fm_fail(error, FM_UNAVAILABLE, "there is no model %.*s in the folder %.*s",
                                    fm_utf8_shown(options->model, FILE_SHOWN), options->model,
                                    fm_utf8_shown(options->models_dir, FILE_SHOWN), options->models_dir);
        tell_models(list, "; name a model of that folder, or a file, with the option model (--model)", error);
        return code;
    }
    struct fm_file_info info;
    return fm_fail(error, FM_UNAVAILABLE,
                   "there is no model file (*.gguf) in the folder %.*s; put one there%s, or name one with the option model "
                   "(--model)",
                   fm_utf8_shown(options->models_dir, DIR_SHOWN), options->models_dir,
                   fm_file_examine(options->models_dir, &info) == ENOENT ? " (the folder does not exist)" : "");
}

/* The size of the file in bytes; 0 if there is no file. */
static int64_t size_of(const char *path) {
    struct fm_file_info info;
    return path && fm_file_examine(path, &info) == 0 ? info.size : 0;
}

enum fm_code fm_models_look_up(const struct fm_options *options, const struct fm_engine_files *engine, const char *name,
                               struct fm_model *model, struct fm_error *error) {
    struct fm_model_list list;
    if (engine->fault.code != FM_OK) {
        *error = engine->fault;
        return error->code;
    }
    enum fm_code code = fm_models_list(options, engine, &list, error);
    if (code != FM_OK) {
        return code;
    }
    struct fm_model *found = pick(options, &list, name);
    if (found) {
        *model = *found;
        *found = (struct fm_model){0};
        model->mmproj_size = size_of(model->mmproj);
        model->draft_size = size_of(model->draft);
    } else if (list.folder_error && !(list.named_projector && fm_model_names_default(name))) {
        code = no_folder(list.folder_error, options->models_dir, error);
    } else {
        code = no_such_model(options, &list, name, error);
    }
    fm_model_list_free(&list);
    return code;
}

/*
 * Checks that the file that `option` names is a GGUF file. `option` NULL: no option named the file, it was found. A
 * NULL path is fine.
 */
static enum fm_code check_file(const char *path, const char *option, struct fm_error *error) {
    enum fm_code code = path ? fm_file_check_magic(path, "GGUF", error) : FM_OK;
    if (code == FM_UNAVAILABLE && option) {
        const struct fm_error inner = *error;
        fm_fail(error, code, "name another file with the option %s: %s", option, inner.detail);
    }
    return code;
}

enum fm_code fm_models_find(const struct fm_options *options, const struct fm_engine_files *engine, const char *name,
                            struct fm_model *model, struct fm_error *error) {
    enum fm_code code = fm_models_look_up(options, engine, name, model, error);
    if (code == FM_OK && model->path && engine->descriptor.reads_files) {
        bool named = model->is_default && options->model && is_path(options->model);
        const char *mmproj = model->found ? NULL : model->mmproj;
        code = check_file(model->path, named ? "model (--model)" : NULL, error);
        code = code ? code : check_file(mmproj, "mmproj (--mmproj), or leave it out", error);
        code = code ? code : check_file(model->draft, "draftModel (--draft-model), or leave it out", error);
        if (code != FM_OK) {
            fm_model_free(model);
        }
    }
    return code;
}

void fm_model_do_without_images(struct fm_model *model) {
    if (model->found) {
        free(model->mmproj);
        model->mmproj = NULL;
        model->mmproj_size = 0;
        model->found = false;
    }
}

const char *fm_model_blamed(const struct fm_model *model) {
    if (model->listed) { /* one process serves all models of such an engine */
        return model->engine->name;
    }
    return model->found && model->mmproj ? model->mmproj : model->id;
}

enum fm_code fm_model_refuse_images(const struct fm_model *model, struct fm_error *error) {
    char param[sizeof error->param];
    memcpy(param, error->param, sizeof param);
    fm_fail(
        error, FM_INVALID_REQUEST,
        "Unsupported parameter: '%.*s'. The model '%.*s' does not see images: it needs a projector beside its file, or "
        "the option mmproj (--mmproj), which is for the default model.",
        NAME_SHOWN, param, fm_utf8_shown(model->id, NAME_SHOWN), model->id);
    error->reason = "unsupported_parameter";
    memcpy(error->param, param, sizeof param);
    return error->code;
}

/* Writes "llama, remote": the names of the engine programs in the folder, as many as there is room for, and a NUL. */
static void list_programs(const char *dir, struct fm_buf *names) {
    static const char prefix[] = "fm-engine-";
    struct fm_folder *folder = fm_folder_open(dir);
    const char *name;
    while (folder && (name = fm_folder_next(folder))) {
        size_t len = strncmp(name, prefix, sizeof prefix - 1) == 0 ? strcspn(name, ".") : 0;
        if (len >= sizeof prefix && strcmp(name + len, FM_PROGRAM_SUFFIX) == 0) {
            fm_buf_append_str(names, names->len ? ", " : "");
            fm_buf_append(names, name + sizeof prefix - 1, len - (sizeof prefix - 1));
        }
    }
    if (folder) {
        fm_folder_close(folder);
    }
    fm_buf_append(names, "", 1);
}

/* Fills `error`: the program `path` can't be run. The text names the programs that can, and what to do. */
static enum fm_code no_such_program(const struct fm_engine_files *engine, const char *path, int failure,
                                    struct fm_error *error) {
    struct fm_buf names;
    fm_buf_init(&names, NAMES_MAX);
    list_programs(engine->dir, &names);
    bool others = !names.failed && names.len > 1;
    char hint[NAMES_MAX + 160] = "build or install it";
    if (others) {
        snprintf(hint, sizeof hint,
                 "the folder has the engines %s: name one with the option engine (--engine), or install the missing one there",
                 names.data);
    }
    fm_buf_free(&names);
    return fm_fail(error, FM_UNAVAILABLE,
                   "can't run the engine program (%s): %.*s; %s, or name its folder with the option engineDir "
                   "(--engine-dir)",
                   strerror(failure), fm_utf8_shown(path, others ? NAME_SHOWN : DIR_SHOWN), path, hint);
}

enum fm_code fm_engine_program(const struct fm_engine_files *engine, char path[PATH_MAX], struct fm_error *error) {
    int len = snprintf(path, PATH_MAX, "%s/fm-engine-%s" FM_PROGRAM_SUFFIX, engine->dir, engine->name);
    if (len >= PATH_MAX) {
        return fm_fail(error, FM_UNAVAILABLE, "the path of the engine program is too long");
    }
    struct fm_file_info info;
    int failure = fm_file_examine(path, &info);
    failure = failure ? failure : fm_file_check_program(path);
    if (failure == EACCES) {
        return fm_fail(error, FM_UNAVAILABLE,
                       "can't run the engine program (%s): %.*s; make it executable (chmod +x), or name a folder for a "
                       "copy of it with the option storageDir",
                       strerror(failure), fm_utf8_shown(path, DIR_SHOWN), path);
    }
    if (failure) {
        return no_such_program(engine, path, failure, error);
    }
    if (!info.regular) {
        return fm_fail(error, FM_UNAVAILABLE, "the engine program is not a regular file: %s", path);
    }
    return FM_OK;
}
