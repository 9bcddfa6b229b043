/*
 * capabilities.get: whether a request could be served, by which engine, and within which limits. It loads no model and
 * waits for nothing: engines that have to be asked are asked in the background.
 */
#include "base/clock.h"
#include "front/engines/route.h"
#include "front/engines/table.h"
#include "front/jobs.h"
#include "front/methods/methods.h"
#include "protocol/frame.h"

#include <stdlib.h>
#include <string.h>

/* Features of the helper itself (0), and features that an engine must have. */
static const struct {
    const char *name;
    unsigned feature;
} features[] = {
    {"responses", 0},
    {"chat_completions", 0},
    {"streaming", 0},
    {"cancel", 0},
    {"structured_output", FM_FEATURE_STRUCTURED_OUTPUT},
    {"tools", FM_FEATURE_TOOLS},
    {"embeddings", FM_FEATURE_EMBEDDINGS},
    {"stored_responses", 0},
    {"input_tokens", FM_FEATURE_INPUT_TOKENS},
    {"truncation", FM_FEATURE_TRUNCATION},
    {"completions", FM_FEATURE_COMPLETIONS},
    {"compaction", 0},
    {"images", FM_FEATURE_IMAGES},
};

/* What is known of each engine, in the order of --engine. */
struct readiness {
    enum fm_readiness ready;
    struct fm_error error; /* why the engine is not ready */
};

/* The engine that the next request goes to; if none is ready, the first one. */
static size_t chosen_of(const struct fm_front *front, const struct readiness *engines) {
    size_t i = 0;
    while (i < front->program_count && engines[i].ready != FM_READY_YES) {
        i++;
    }
    return i < front->program_count ? i : 0;
}

/* Writes what the last process of the engine reported; null when it reported nothing, or there was no process yet. */
static void write_engine(struct fm_front *front, const struct fm_program *program, struct fm_json_writer *w) {
    fm_front_lock(front);
    enum fm_engine_state state = fm_engines_state_locked(front, program);
    bool reported = program->has_sandbox;
    struct fm_sandbox sandbox = program->sandbox;
    bool has_gpu = program->has_gpu;
    struct fm_gpu gpu = program->gpu;
    fm_front_unlock(front);
    fm_json_key(w, "engine");
    fm_json_object_begin(w);
    fm_json_key_str(w, "name", program->files.name);
    fm_json_key_str(w, "state", fm_engine_state_name(state));
    fm_json_key(w, "sandbox");
    if (reported) {
        fm_sandbox_write(&sandbox, w);
    } else {
        fm_json_null(w);
    }
    fm_json_key(w, "gpu");
    if (has_gpu) {
        fm_gpu_write(&gpu, w);
    } else {
        fm_json_null(w);
    }
    fm_json_object_end(w);
}

/* Finds an engine that runs, starts or ends. */
struct engine_report {
    const char *engine; /* its name */
    char *model;        /* its id; owned */
    enum fm_engine_state state;
    int64_t state_ms;
    int64_t memory; /* 0: unknown */
    unsigned requests;
};

static size_t report_engines(struct fm_front *front, struct engine_report reports[FM_ENGINES_MAX]) {
    size_t count = 0;
    fm_front_lock(front);
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        const struct fm_engine *engine = &front->engines[i];
        if (engine->state != FM_ENGINE_IDLE) {
            reports[count++] = (struct engine_report){.engine = engine->program->files.name,
                                                      .model = engine->model.id ? strdup(engine->model.id) : NULL,
                                                      .state = engine->state,
                                                      .state_ms = fm_now_ms() - engine->state_since_ms,
                                                      .memory = engine->memory,
                                                      .requests = fm_engine_held_locked(engine)};
        }
    }
    fm_front_unlock(front);
    return count;
}

static void write_engines(struct fm_front *front, struct fm_json_writer *w) {
    struct engine_report reports[FM_ENGINES_MAX];
    size_t count = report_engines(front, reports);
    fm_json_key(w, "engines");
    fm_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        fm_json_object_begin(w);
        if (front->program_count > 1) {
            fm_json_key_str(w, "engine", reports[i].engine);
        }
        fm_json_key_str(w, "model", reports[i].model);
        fm_json_key_str(w, "state", fm_engine_state_name(reports[i].state));
        fm_json_key_int(w, "state_ms", reports[i].state_ms);
        fm_json_key_int(w, "requests", reports[i].requests);
        if (reports[i].memory > 0) {
            fm_json_key_int(w, "memory_bytes", reports[i].memory);
        } else {
            fm_json_key_str(w, "memory_bytes", NULL);
        }
        fm_json_object_end(w);
        free(reports[i].model);
    }
    fm_json_array_end(w);
}

/* Writes what the store's thread has reported last. The disk is not read. */
static void write_store(struct fm_front *front, struct fm_json_writer *w) {
    const struct fm_options *options = &front->options;
    bool stores = options->store_bytes > 0;
    fm_front_lock(front);
    bool known = front->store_queue.known || !options->store_file;
    struct fm_error trouble = front->store_queue.trouble;
    fm_front_unlock(front);
    fm_json_key(w, "store");
    fm_json_object_begin(w);
    fm_json_key_str(w, "kind", !stores ? "none" : options->store_file ? "file" : "memory");
    if (known || !stores) {
        fm_json_key_bool(w, "usable", stores && trouble.code == FM_OK);
    } else {
        fm_json_key(w, "usable");
        fm_json_null(w);
    }
    fm_json_key_str(w, "detail", stores && trouble.code != FM_OK ? trouble.detail : NULL);
    fm_json_object_end(w);
}

static void write_limits(struct fm_json_writer *w) {
    const struct fm_limits limits = FM_LIMITS_DEFAULT;
    fm_json_key(w, "limits");
    fm_json_object_begin(w);
    fm_json_key_int(w, "max_requests", FM_JOBS_MAX);
    fm_json_key_int(w, "max_frame_bytes", FM_FRAME_BODY_MAX);
    fm_json_key_int(w, "queue_timeout_ms", limits.queue_ms);
    fm_json_key_int(w, "first_token_timeout_ms", limits.first_token_ms);
    fm_json_key_int(w, "no_progress_timeout_ms", limits.no_progress_ms);
    fm_json_key_int(w, "timeout_ms", limits.total_ms);
    fm_json_key_int(w, "grace_ms", FM_GRACE_MS);
    fm_json_object_end(w);
}

/* What the engine reported when it ran last; before that, the content of its file. */
static struct fm_descriptor descriptor_of(struct fm_front *front, const struct fm_program *program) {
    fm_front_lock(front);
    struct fm_descriptor descriptor = program->descriptor;
    fm_front_unlock(front);
    return descriptor.has_features ? descriptor : program->files.descriptor;
}

/* Writes what at least one engine that may take requests can do; null if no engine has reported it. */
static void write_features(struct fm_front *front, const struct readiness *engines, struct fm_json_writer *w) {
    struct fm_descriptor descriptor = descriptor_of(front, &front->programs[chosen_of(front, engines)]);
    for (size_t i = 0; i < front->program_count; i++) {
        struct fm_descriptor other = descriptor_of(front, &front->programs[i]);
        if (engines[i].ready == FM_READY_YES && other.has_features) {
            descriptor.has_features = true;
            descriptor.features |= other.features;
        }
    }
    fm_json_key(w, "features");
    fm_json_object_begin(w);
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        if (features[i].feature == 0 || descriptor.has_features) {
            fm_json_key_bool(w, features[i].name,
                             features[i].feature == 0 || (descriptor.features & features[i].feature));
        } else {
            fm_json_key(w, features[i].name);
            fm_json_null(w);
        }
    }
    fm_json_object_end(w);
}

/* Writes the models. The default model is that of the first engine that is ready. */
static void write_models(const struct fm_front *front, const struct fm_model_list *list, bool chosen,
                         struct fm_json_writer *w) {
    for (size_t i = 0; i < list->count; i++) {
        const struct fm_model *model = &list->models[i];
        fm_json_object_begin(w);
        fm_json_key_str(w, "id", model->id);
        fm_json_key_bool(w, "default", chosen && model->is_default);
        fm_json_key_bool(w, "images", fm_model_sees(model));
        fm_json_key_str(w, "mmproj", model->mmproj);
        if (front->program_count > 1) {
            fm_json_key_str(w, "engine", model->engine->name);
        }
        fm_json_object_end(w);
    }
}

static enum fm_code write_all_models(struct fm_front *front, const struct readiness *engines, struct fm_json_writer *w,
                                     struct fm_error *error) {
    fm_json_key(w, "models");
    fm_json_array_begin(w);
    for (size_t i = 0; i < front->program_count; i++) {
        struct fm_model_list list;
        bool there = front->program_count == 1 || engines[i].ready != FM_READY_NO;
        if (there && fm_program_models(front, &front->programs[i], &list, error) != FM_OK) {
            return error->code;
        }
        if (there) {
            write_models(front, &list, i == chosen_of(front, engines), w);
            fm_model_list_free(&list);
        }
    }
    fm_json_array_end(w);
    return FM_OK;
}

static void write_order(const struct fm_front *front, const struct readiness *engines, struct fm_json_writer *w) {
    fm_json_key(w, "order");
    fm_json_array_begin(w);
    for (size_t i = 0; i < front->program_count; i++) {
        const struct fm_error *error = engines[i].ready == FM_READY_YES ? NULL : &engines[i].error;
        fm_json_object_begin(w);
        fm_json_key_str(w, "name", front->programs[i].files.name);
        fm_json_key_bool(w, "available", !error);
        fm_json_key_str(w, "reason_code", error ? error->reason_code : NULL);
        fm_json_key_str(w, "detail", error ? error->detail : NULL);
        fm_json_key_bool(w, "remote", front->programs[i].files.descriptor.remote);
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}

/*
 * Finds why no engine is ready. If an engine is still being asked, that is the reason. Otherwise the code is the first
 * one that is not UNSUPPORTED_..., because a user can do something about it, and the detail has the reasons of all
 * engines.
 */
static void find_reason(const struct fm_front *front, const struct readiness *engines, struct fm_error *reason) {
    const char *names[FM_PROGRAMS_MAX];
    struct fm_error errors[FM_PROGRAMS_MAX];
    *reason = engines[0].error;
    for (size_t i = 0; i < front->program_count; i++) {
        if (engines[i].ready == FM_READY_UNKNOWN) {
            *reason = engines[i].error;
            return;
        }
        bool never = strncmp(reason->reason_code, "UNSUPPORTED", sizeof "UNSUPPORTED" - 1) == 0;
        names[i] = front->programs[i].files.name;
        errors[i] = engines[i].error;
        *reason = never ? errors[i] : *reason;
    }
    if (front->program_count > 1) {
        fm_route_explain(names, errors, front->program_count, reason);
    }
}

static enum fm_code capabilities_get(struct fm_front *front, const struct fm_method_call *call,
                                     struct fm_json_writer *result, struct fm_error *error) {
    struct readiness engines[FM_PROGRAMS_MAX] = {{FM_READY_NO, {.code = FM_OK}}};
    (void)call;
    for (size_t i = 0; i < front->program_count; i++) {
        engines[i].ready = fm_program_readiness(front, &front->programs[i], &engines[i].error);
    }
    size_t chosen = chosen_of(front, engines);
    bool available = engines[chosen].ready == FM_READY_YES;
    struct fm_error reason;
    if (!available) {
        find_reason(front, engines, &reason);
    }
    fm_json_key_bool(result, "available", available);
    fm_json_key_str(result, "reason_code", available ? NULL : reason.reason_code);
    fm_json_key_str(result, "detail", available ? NULL : reason.detail);
    write_engine(front, &front->programs[chosen], result);
    write_order(front, engines, result);
    write_engines(front, result);
    if (write_all_models(front, engines, result, error) != FM_OK) {
        return error->code;
    }
    write_store(front, result);
    write_features(front, engines, result);
    write_limits(result);
    return FM_OK;
}

const struct fm_method fm_method_capabilities_get = {"capabilities.get", 0, fm_no_params, .run = capabilities_get};
