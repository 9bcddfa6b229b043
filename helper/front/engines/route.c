/*
 * Finds the engines for a request. What is known about the engines is read under the lock; files are read without it.
 */
#include "front/engines/route.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "front/engines/aliases.h"
#include "front/engines/supervisor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SHOWN 200 /* bytes of a name in an error */

static enum fm_code because(struct fm_error *error, const char *reason_code) {
    snprintf(error->reason_code, sizeof error->reason_code, "%s", reason_code);
    return error->code;
}

/* Checks for problems of the engine that are known without its report. */
static enum fm_code check_program(const struct fm_program *program, struct fm_error *error) {
    const struct fm_engine_files *files = &program->files;
    char path[PATH_MAX];
    if (files->descriptor.elsewhere) {
        fm_fail(error, FM_UNAVAILABLE, "the engine %s does not run on this system (%s)", files->name,
                fm_platform_name());
        return because(error, "UNSUPPORTED_PLATFORM");
    }
    if (fm_engine_program(files, path, error) != FM_OK || files->fault.code != FM_OK) {
        *error = files->fault.code != FM_OK ? files->fault : *error;
        return because(error, "HELPER_UNHEALTHY");
    }
    if (program->config.fault.code != FM_OK) {
        *error = program->config.fault;
        return error->code;
    }
    if (files->descriptor.needs_config && !program->config.text) {
        fm_fail(error, FM_UNAVAILABLE, "the engine %s has no configuration; set the option %s (--%s)", files->name,
                files->name, files->name);
        return because(error, "NOT_CONFIGURED");
    }
    return FM_OK;
}

/* ---- engines that list their models ---- */

/* A copy of what is known about `name`, so that it can be used without the lock. */
struct listing {
    bool complete; /* the engine's list is known and not too old, so a model that is not in it does not exist */
    bool found;
    char first[FM_LISTED_ID_MAX + 1]; /* the default model's id; "": not known */
};

static struct listing look_at_list(struct fm_front *front, const struct fm_program *program, const char *name) {
    const struct fm_verdict *availability = &program->availability;
    struct listing listing = {.complete = false};
    fm_front_lock(front);
    listing.complete = availability->has_models && fm_availability_known(availability, fm_now_ms()) == FM_KNOWN_GOOD;
    listing.found = name && fm_availability_find(availability, name);
    if (availability->model_count > 0) {
        snprintf(listing.first, sizeof listing.first, "%s", availability->models[0].id);
    }
    fm_front_unlock(front);
    return listing;
}

static enum fm_code no_such_model(const char *name, const char *engine, struct fm_error *error) {
    fm_fail(error, FM_NOT_FOUND,
            "the model '%.*s' does not exist; models.list has those of the engine %s; " FM_MODEL_ALIAS_HINT,
            fm_utf8_shown(name, NAME_SHOWN), name, engine);
    error->reason = "model_not_found";
    snprintf(error->param, sizeof error->param, "model");
    return FM_NOT_FOUND;
}

/* `*sure`: the engine has reported that it has the model, or the request means the default model. */
static enum fm_code find_listed(struct fm_front *front, const struct fm_program *program, const char *name,
                                struct fm_model *model, bool *sure, struct fm_error *error) {
    char target[FM_ALIAS_MAX + 1];
    struct listing listing = look_at_list(front, program, name);
    bool means_default = fm_model_names_default(name) || strcmp(name, program->files.name) == 0;
    if (!listing.found && !means_default && fm_aliases_find(front->options.aliases, name, target)) {
        name = target;
        listing = look_at_list(front, program, name);
        means_default = fm_model_names_default(name);
    }
    *sure = listing.found || means_default;
    if (means_default && !listing.found) {
        return fm_model_of_list(&program->files, listing.first[0] ? listing.first : NULL, NULL, model, error);
    }
    if (!listing.found && listing.complete) {
        return no_such_model(name, program->files.name, error);
    }
    return fm_model_of_list(&program->files, name, name, model, error);
}

/* ---- one engine ---- */

static enum fm_code find_model(struct fm_front *front, const struct fm_program *program, const char *name,
                               struct fm_model *model, bool *sure, struct fm_error *error) {
    *sure = true;
    if (program->files.descriptor.lists_models) {
        return find_listed(front, program, name, model, sure, error);
    }
    return fm_models_find(&front->options, &program->files, name, model, error);
}

/* Reads what the engine has reported recently. */
static enum fm_known known_of(struct fm_front *front, const struct fm_program *program, struct fm_error *error) {
    fm_front_lock(front);
    enum fm_known known = fm_availability_known(&program->availability, fm_now_ms());
    if (known == FM_KNOWN_BAD) {
        *error = program->availability.error;
    }
    fm_front_unlock(front);
    return known;
}

/* Reads why the default model did not load at the last try; FM_OK: it did load, or there was no recent try. */
static enum fm_code failed_load(struct fm_front *front, const struct fm_program *program, const struct fm_model *model,
                                struct fm_error *error) {
    fm_front_lock(front);
    const struct fm_failed_load *failed = fm_failed_load_of(&program->failed_loads, model, fm_now_ms());
    const char *reason = failed && failed->engine_started ? "MODEL_NOT_READY" : "HELPER_UNHEALTHY";
    enum fm_code code = failed ? FM_UNAVAILABLE : FM_OK;
    if (failed) {
        *error = failed->error;
        if (!error->reason_code[0]) {
            because(error, reason);
        }
    }
    fm_front_unlock(front);
    return code;
}

enum fm_readiness fm_program_readiness(struct fm_front *front, struct fm_program *program, struct fm_error *error) {
    struct fm_model model;
    bool sure;
    if (check_program(program, error) != FM_OK) {
        return FM_READY_NO;
    }
    if (find_model(front, program, NULL, &model, &sure, error) != FM_OK) {
        because(error, "MODEL_NOT_READY");
        return FM_READY_NO;
    }
    enum fm_code code = failed_load(front, program, &model, error);
    fm_model_free(&model);
    if (code != FM_OK) {
        return FM_READY_NO;
    }
    if (!(program->files.descriptor.features & FM_FEATURE_AVAILABILITY)) {
        return FM_READY_YES;
    }
    enum fm_known known = known_of(front, program, error);
    if (known == FM_KNOWN_NOT) {
        fm_front_enter(front);
        fm_engine_ask_locked(program, &front->probes[program - front->programs]);
        fm_front_leave(front);
        fm_fail(error, FM_UNAVAILABLE, "the engine %s is being asked; ask again in a moment", program->files.name);
        because(error, "CHECKING");
        return FM_READY_UNKNOWN;
    }
    return known == FM_KNOWN_GOOD ? FM_READY_YES : FM_READY_NO;
}

/* ---- a request ---- */

/* The engines that have been looked at: those that can take the request, by class, and why the others can't. */
struct search {
    struct fm_route sure;  /* engines that have the model, as far as is known */
    struct fm_route maybe; /* engines that may have the model */
    struct fm_route late;  /* engines that have the model, but are not available */
    struct fm_error errors[FM_PROGRAMS_MAX];
    const char *names[FM_PROGRAMS_MAX]; /* names of the engines that can't have the request */
    size_t error_count;
};

static void note_error(struct search *search, const struct fm_program *program, const struct fm_error *error) {
    search->names[search->error_count] = program->files.name;
    search->errors[search->error_count++] = *error;
}

static bool has_images(const struct fm_request *request, struct fm_error *error) {
    return fm_request_image_param(request, 0, ".type", error);
}

static enum fm_code look_at(struct fm_front *front, const struct fm_program *program, const struct fm_request *request,
                            struct search *search, struct fm_error *error) {
    const struct fm_engine_files *files = &program->files;
    struct fm_model model;
    bool sure;
    if (request->local_only && files->descriptor.remote) {
        return fm_fail(error, FM_UNAVAILABLE,
                       "the engine %s sends requests to another machine, and fm.local_only keeps this one here",
                       files->name);
    }
    bool alone = !files->beside && !files->descriptor.needs_config && !files->descriptor.elsewhere;
    enum fm_code code = alone ? FM_OK : check_program(program, error); /* a sole engine fails when it is started */
    code = code ? code : find_model(front, program, request->model, &model, &sure, error);
    if (code != FM_OK) {
        return code;
    }
    if (!fm_model_sees(&model) && has_images(request, error)) {
        code = fm_model_refuse_images(&model, error);
        fm_model_free(&model);
        return code;
    }
    if (!request->unresolved && request->image_params.len == 0) {
        fm_model_do_without_images(&model);
    }
    bool bad = known_of(front, program, error) == FM_KNOWN_BAD;
    struct fm_route *route = bad ? &search->late : sure ? &search->sure : &search->maybe;
    route->models[route->count++] = model;
    return bad ? error->code : FM_OK;
}

/* Whether `error` says more than `other` about what is wrong with the request or with this machine. */
static bool tells_more(const struct fm_error *error, const struct fm_error *other) {
    static const enum fm_code order[] = {FM_INVALID_REQUEST, FM_NOT_FOUND, FM_INTERNAL, FM_OVERLOADED, FM_UNAVAILABLE};
    size_t rank = 0;
    size_t other_rank = 0;
    while (rank + 1 < sizeof order / sizeof order[0] && order[rank] != error->code) {
        rank++;
    }
    while (other_rank + 1 < sizeof order / sizeof order[0] && order[other_rank] != other->code) {
        other_rank++;
    }
    bool other_never = strncmp(other->reason_code, "UNSUPPORTED", sizeof "UNSUPPORTED" - 1) == 0;
    return rank < other_rank || (rank == other_rank && other_never && error->code == FM_UNAVAILABLE);
}

void fm_route_explain(const char *const names[], const struct fm_error errors[], size_t count, struct fm_error *error) {
    int share = (int)(sizeof error->detail / count) - (int)sizeof "engine: ; ";
    size_t len = (size_t)snprintf(error->detail, sizeof error->detail, "no engine is available");
    for (size_t i = 0; i < count; i++) {
        const char *why = errors[i].detail;
        int shown = fm_utf8_shown(why, (size_t)share - strlen(names[i]));
        int written = snprintf(error->detail + len, sizeof error->detail - len, "%s%s: %.*s", i == 0 ? ": " : "; ",
                               names[i], shown, why);
        len += written > 0 && len + (size_t)written < sizeof error->detail ? (size_t)written : 0;
    }
}

/* Fills the error. If several engines are not available, the error has the reason of each. */
static enum fm_code tell_why(const struct search *search, struct fm_error *error) {
    const struct fm_error *first = &search->errors[0];
    for (size_t i = 1; i < search->error_count; i++) {
        first = tells_more(&search->errors[i], first) ? &search->errors[i] : first;
    }
    *error = *first;
    if (search->error_count > 1 && first->code == FM_UNAVAILABLE) {
        fm_route_explain(search->names, search->errors, search->error_count, error);
    }
    return error->code;
}

enum fm_code fm_route_find(struct fm_front *front, const struct fm_request *request, struct fm_route *route,
                           struct fm_error *error) {
    struct search search = {.error_count = 0};
    struct fm_error fault = {.code = FM_OK};
    for (size_t i = 0; i < front->program_count; i++) {
        if (look_at(front, &front->programs[i], request, &search, &fault) != FM_OK) {
            note_error(&search, &front->programs[i], &fault);
        }
    }
    struct fm_route *best = search.sure.count ? &search.sure : search.maybe.count ? &search.maybe : &search.late;
    *route = *best;
    best->count = 0;
    fm_route_free(&search.sure);
    fm_route_free(&search.maybe);
    fm_route_free(&search.late);
    return route->count ? FM_OK : tell_why(&search, error);
}

enum fm_code fm_route_look_up(struct fm_front *front, const char *name, struct fm_model *model,
                              struct fm_error *error) {
    enum fm_code code = FM_NOT_FOUND;
    for (size_t i = 0; i < front->program_count && code != FM_OK; i++) {
        const struct fm_program *program = &front->programs[i];
        struct fm_error fault;
        bool sure = true;
        code = program->files.descriptor.lists_models
                   ? find_listed(front, program, name, model, &sure, &fault)
                   : fm_models_look_up(&front->options, &program->files, name, model, &fault);
        if (code == FM_OK && !sure) {
            fm_model_free(model);
            code = no_such_model(name, program->files.name, &fault);
        }
        if (code != FM_OK && (i == 0 || tells_more(&fault, error))) {
            *error = fault;
        }
    }
    return code == FM_OK ? FM_OK : error->code;
}

/* ---- all models ---- */

/* Call it under the lock. */
static enum fm_code copy_list(const struct fm_program *program, struct fm_model_list *list, struct fm_error *error) {
    const struct fm_verdict *availability = &program->availability;
    size_t count = availability->model_count ? availability->model_count : 1;
    list->models = calloc(count, sizeof *list->models);
    enum fm_code code = list->models ? FM_OK : fm_fail_no_memory(error);
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        const char *id = availability->model_count ? availability->models[i].id : NULL;
        code = fm_model_of_list(&program->files, id, i == 0 ? NULL : id, &list->models[i], error);
        list->count += code == FM_OK;
    }
    return code;
}

enum fm_code fm_program_models(struct fm_front *front, const struct fm_program *program, struct fm_model_list *list,
                               struct fm_error *error) {
    *list = (struct fm_model_list){0};
    if (!program->files.descriptor.lists_models) {
        return fm_models_list(&front->options, &program->files, list, error);
    }
    fm_front_lock(front);
    enum fm_code code = copy_list(program, list, error);
    fm_front_unlock(front);
    if (code != FM_OK) {
        fm_model_list_free(list);
    }
    return code;
}
