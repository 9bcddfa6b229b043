/* capabilities.get: whether a request could be served, by what, and within which limits. Nothing is started for it. */
#include "base/clock.h"
#include "front/engines/table.h"
#include "front/jobs.h"
#include "front/methods/methods.h"
#include "protocol/frame.h"

#include <stdlib.h>
#include <string.h>

/* What the helper has itself (0), and what its engine has to have. */
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

/* What the last engine reported; null when it reported nothing, or there was none yet. */
static void write_engine(struct fm_front *front, struct fm_json_writer *w) {
    pthread_mutex_lock(&front->lock);
    enum fm_engine_state state = fm_engines_state_locked(front);
    bool reported = front->program.has_sandbox;
    struct fm_sandbox sandbox = front->program.sandbox;
    bool has_gpu = front->program.has_gpu;
    struct fm_gpu gpu = front->program.gpu;
    pthread_mutex_unlock(&front->lock);
    fm_json_key(w, "engine");
    fm_json_object_begin(w);
    fm_json_key_str(w, "name", front->program.files.name);
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

/* One that runs, or comes or goes. */
struct engine_report {
    char *model; /* its id; owned */
    enum fm_engine_state state;
    int64_t state_ms;
    int64_t memory; /* 0: unknown */
    unsigned requests;
};

static size_t report_engines(struct fm_front *front, struct engine_report reports[FM_ENGINES_MAX]) {
    size_t count = 0;
    pthread_mutex_lock(&front->lock);
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        const struct fm_engine *engine = &front->engines[i];
        if (engine->state != FM_ENGINE_IDLE) {
            reports[count++] = (struct engine_report){.model = engine->model.id ? strdup(engine->model.id) : NULL,
                                                      .state = engine->state,
                                                      .state_ms = fm_now_ms() - engine->state_since_ms,
                                                      .memory = engine->memory,
                                                      .requests = fm_engine_held_locked(engine)};
        }
    }
    pthread_mutex_unlock(&front->lock);
    return count;
}

static void write_engines(struct fm_front *front, struct fm_json_writer *w) {
    struct engine_report reports[FM_ENGINES_MAX];
    size_t count = report_engines(front, reports);
    fm_json_key(w, "engines");
    fm_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        fm_json_object_begin(w);
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

/* As far as the store's thread has reported it: the disk is not asked here. */
static void write_store(struct fm_front *front, struct fm_json_writer *w) {
    const struct fm_options *options = &front->options;
    bool stores = options->store_bytes > 0;
    pthread_mutex_lock(&front->lock);
    bool known = front->store_queue.known || !options->store_file;
    struct fm_error trouble = front->store_queue.trouble;
    pthread_mutex_unlock(&front->lock);
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

/* What the engine said when it ran last, else what its file says; null where it said nothing. */
static void write_features(struct fm_front *front, struct fm_json_writer *w) {
    pthread_mutex_lock(&front->lock);
    struct fm_descriptor descriptor = front->program.descriptor;
    pthread_mutex_unlock(&front->lock);
    descriptor = descriptor.has_features ? descriptor : front->program.files.descriptor;
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

/* Why the default model did not load when it was tried last; NULL: it did, or was not tried lately. */
static const char *failed_load(struct fm_front *front, const struct fm_model *model, struct fm_error *error) {
    pthread_mutex_lock(&front->lock);
    const struct fm_failed_load *failed = fm_failed_load_of(&front->program.failed_loads, model, fm_now_ms());
    bool started = failed && failed->engine_started;
    if (failed) {
        *error = failed->error;
    }
    pthread_mutex_unlock(&front->lock);
    return !failed ? NULL : started ? "MODEL_NOT_READY" : "HELPER_UNHEALTHY";
}

/* NULL when a request could be served; otherwise the reason's code, with `error` telling more. */
static const char *unavailable_reason(struct fm_front *front, struct fm_error *error) {
    const struct fm_engine_files *files = &front->program.files;
    char program[PATH_MAX];
    struct fm_model model;
    if (fm_engine_program(files, program, error) != FM_OK) {
        return "HELPER_UNHEALTHY";
    }
    if (files->fault.code != FM_OK) {
        *error = files->fault;
        return "HELPER_UNHEALTHY";
    }
    if (fm_models_find(&front->options, files, NULL, &model, error) != FM_OK) {
        return "MODEL_NOT_READY";
    }
    const char *reason = failed_load(front, &model, error);
    fm_model_free(&model);
    return reason;
}

static void write_models(struct fm_json_writer *w, const struct fm_model_list *list) {
    fm_json_key(w, "models");
    fm_json_array_begin(w);
    for (size_t i = 0; i < list->count; i++) {
        fm_json_object_begin(w);
        fm_json_key_str(w, "id", list->models[i].id);
        fm_json_key_bool(w, "default", list->models[i].is_default);
        fm_json_key_bool(w, "images", list->models[i].mmproj != NULL);
        fm_json_key_str(w, "mmproj", list->models[i].mmproj);
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}

static enum fm_code capabilities_get(struct fm_front *front, const struct fm_method_call *call,
                                     struct fm_json_writer *result, struct fm_error *error) {
    struct fm_model_list list;
    struct fm_error reason;
    const struct fm_engine_files *engine = &front->program.files;
    (void)call;
    if (fm_models_list(&front->options, engine, &list, error) != FM_OK) {
        return error->code;
    }
    const char *reason_code = unavailable_reason(front, &reason);
    fm_json_key_bool(result, "available", !reason_code);
    fm_json_key_str(result, "reason_code", reason_code);
    fm_json_key_str(result, "detail", reason_code ? reason.detail : NULL);
    write_engine(front, result);
    write_engines(front, result);
    write_models(result, &list);
    write_store(front, result);
    write_features(front, result);
    write_limits(result);
    fm_model_list_free(&list);
    return FM_OK;
}

const struct fm_method fm_method_capabilities_get = {"capabilities.get", 0, fm_no_params, .run = capabilities_get};
