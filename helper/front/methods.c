#include "front/methods.h"
#include "base/clock.h"
#include "protocol/sandbox.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum fm_code health_ping(struct fm_front *front, const struct fm_rpc_message *message,
                                struct fm_json_writer *result, struct fm_error *error) {
    (void)message;
    (void)error;
    fm_json_key_int(result, "protocol_version", FM_PROTOCOL_VERSION);
    fm_json_key_str(result, "version", FM_VERSION);
    fm_json_key_int(result, "pid", getpid());
    fm_json_key_int(result, "uptime_ms", fm_now_ms() - front->started_ms);
    return FM_OK;
}

/* Logs what was ignored, or refuses it. */
static enum fm_code judge_ignored(struct fm_front *front, const struct fm_buf *paths, struct fm_error *error) {
    if (paths->len > 0 && front->options.strict_parameters) {
        return fm_ignored_refuse(paths, error);
    }
    pthread_mutex_lock(&front->lock);
    fm_log_ignored_locked(front, paths);
    pthread_mutex_unlock(&front->lock);
    return FM_OK;
}

enum fm_code fm_params_check(struct fm_front *front, const struct fm_rule *rules, struct json_object *params,
                             struct fm_ignored *ignored, struct fm_error *error) {
    *ignored = (struct fm_ignored){0};
    enum fm_code code = params ? fm_check_body(rules, params, ignored, error) : FM_OK;
    const struct fm_buf paths = fm_ignored_paths(ignored);
    return code ? code : judge_ignored(front, &paths, error);
}

static void write_ignored(const struct fm_ignored *ignored, struct fm_json_writer *result) {
    const struct fm_buf paths = fm_ignored_paths(ignored);
    fm_ignored_write_report(&paths, result);
}

static const struct fm_rule no_members[] = {{0}};

/* ---- capabilities.get ---- */

static const struct {
    const char *name;
    bool supported;
} features[] = {
    {"responses", true},  {"chat_completions", true},  {"streaming", true},
    {"cancel", true},     {"structured_output", true}, {"tools", true},
    {"embeddings", true}, {"stored_responses", true},  {"input_tokens", true},
    {"truncation", true}, {"completions", true},       {"compaction", true},
    {"images", true},
};

/* What the last engine told; null when it told nothing, or there was none yet. */
static void write_engine(struct fm_front *front, struct fm_json_writer *w) {
    static const char *const state_names[] = {"idle", "starting", "ready", "stopping"};
    pthread_mutex_lock(&front->lock);
    enum fm_engine_state state = front->engine.state;
    bool told = front->engine.has_sandbox;
    struct fm_sandbox sandbox = front->engine.sandbox;
    pthread_mutex_unlock(&front->lock);
    fm_json_key(w, "engine");
    fm_json_object_begin(w);
    fm_json_key_str(w, "name", front->options.engine);
    fm_json_key_str(w, "state", state_names[state]);
    fm_json_key(w, "sandbox");
    if (told) {
        fm_sandbox_write(&sandbox, w);
    } else {
        fm_json_null(w);
    }
    fm_json_object_end(w);
}

/* As far as the store's thread has reported it: the disk is not asked here. */
static void write_store(struct fm_front *front, struct fm_json_writer *w) {
    const struct fm_options *options = &front->options;
    bool stores = options->store_bytes > 0;
    pthread_mutex_lock(&front->lock);
    bool known = front->storage.known || !options->store_file;
    struct fm_error trouble = front->storage.trouble;
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

static void write_features(struct fm_json_writer *w) {
    fm_json_key(w, "features");
    fm_json_object_begin(w);
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        fm_json_key_bool(w, features[i].name, features[i].supported);
    }
    fm_json_object_end(w);
}

static void write_id(struct fm_json_writer *w, const char *id) {
    fm_json_key_str(w, "id", id);
}

/* NULL when a request could be served; otherwise the reason's code, with `error` telling more. */
static const char *unavailable_reason(const struct fm_options *options, struct fm_error *error) {
    char program[PATH_MAX];
    struct fm_model model;
    if (fm_engine_program(options, program, error) != FM_OK) {
        return "HELPER_UNHEALTHY";
    }
    if (fm_models_find(options, NULL, &model, error) != FM_OK) {
        return "MODEL_NOT_READY";
    }
    fm_model_free(&model);
    return NULL;
}

static enum fm_code capabilities_get(struct fm_front *front, const struct fm_rpc_message *message,
                                     struct fm_json_writer *result, struct fm_error *error) {
    struct fm_model_list list;
    struct fm_ignored ignored;
    struct fm_error reason;
    if (fm_params_check(front, no_members, message->params, &ignored, error) != FM_OK ||
        fm_models_list(&front->options, &list, error) != FM_OK) {
        return error->code;
    }
    const char *reason_code = unavailable_reason(&front->options, &reason);
    fm_json_key_bool(result, "available", !reason_code);
    fm_json_key_str(result, "reason_code", reason_code);
    fm_json_key_str(result, "detail", reason_code ? reason.detail : NULL);
    write_engine(front, result);
    fm_json_key(result, "models");
    fm_json_array_begin(result);
    for (size_t i = 0; i < list.count; i++) {
        fm_json_object_begin(result);
        write_id(result, list.models[i].id);
        fm_json_key_bool(result, "default", list.models[i].is_default);
        fm_json_key_bool(result, "images", list.models[i].mmproj != NULL);
        fm_json_key_str(result, "mmproj", list.models[i].mmproj);
        fm_json_object_end(result);
    }
    fm_json_array_end(result);
    write_store(front, result);
    write_features(result);
    write_limits(result);
    write_ignored(&ignored, result);
    fm_model_list_free(&list);
    return FM_OK;
}

/* The members of a model's object. */
static void write_model(struct fm_json_writer *w, const struct fm_model *model) {
    write_id(w, model->id);
    fm_json_key_str(w, "object", "model");
    fm_json_key_int(w, "created", model->created);
    fm_json_key_str(w, "owned_by", "fm-proxy");
}

static enum fm_code models_list(struct fm_front *front, const struct fm_rpc_message *message,
                                struct fm_json_writer *result, struct fm_error *error) {
    struct fm_model_list list;
    struct fm_ignored ignored;
    if (fm_params_check(front, no_members, message->params, &ignored, error) != FM_OK ||
        fm_models_list(&front->options, &list, error) != FM_OK) {
        return error->code;
    }
    fm_json_key_str(result, "object", "list");
    fm_json_key(result, "data");
    fm_json_array_begin(result);
    for (size_t i = 0; i < list.count; i++) {
        fm_json_object_begin(result);
        write_model(result, &list.models[i]);
        fm_json_object_end(result);
    }
    fm_json_array_end(result);
    write_ignored(&ignored, result);
    fm_model_list_free(&list);
    return FM_OK;
}

static enum fm_code models_retrieve(struct fm_front *front, const struct fm_rpc_message *message,
                                    struct fm_json_writer *result, struct fm_error *error) {
    static const struct fm_rule rules[] = {{.name = "id", .check = fm_check_text, .required = true}, {0}};
    struct fm_ignored ignored;
    struct fm_model model;
    if (fm_params_check(front, rules, message->params, &ignored, error) != FM_OK) {
        return error->code;
    }
    const char *id = json_object_get_string(json_object_object_get(message->params, "id"));
    if (fm_models_look_up(&front->options, id, &model, error) != FM_OK) {
        return error->code;
    }
    write_model(result, &model);
    write_ignored(&ignored, result);
    fm_model_free(&model);
    return FM_OK;
}

/* ---- create and cancel ---- */

enum fm_code fm_method_create(struct fm_front *front, const struct fm_rpc_message *message,
                              const struct fm_surface *surface, struct fm_error *error) {
    struct fm_request request;
    struct fm_model model;
    if (surface->parse(message->params, &request, error) != FM_OK) {
        return error->code;
    }
    if (judge_ignored(front, &request.ignored, error) != FM_OK) {
        fm_request_free(&request);
        return error->code;
    }
    request.store = request.store && front->options.store_bytes > 0;
    if (request.background && !request.store) {
        fm_request_free(&request);
        return fm_params_wrong(
            error, "background", "unsupported_value",
            "what runs in the background has to be stored, and fm-proxy was started without a store");
    }
    if (fm_models_find(&front->options, request.model, &model, error) != FM_OK) {
        fm_request_free(&request);
        return error->code;
    }
    if (!model.mmproj && fm_request_image_param(&request, 0, ".type", error)) {
        enum fm_code refused = fm_model_refuse_images(&model, error);
        fm_request_free(&request);
        fm_model_free(&model);
        return refused;
    }
    if (!request.unresolved && request.image_params.len == 0) {
        fm_model_do_without_images(&model);
    }
    pthread_mutex_lock(&front->lock);
    enum fm_code code = fm_job_create_locked(front, &message->id, surface, &request, &model, error);
    pthread_mutex_unlock(&front->lock);
    return code;
}

enum fm_code fm_params_wrong(struct fm_error *error, const char *param, const char *openai_code, const char *detail) {
    fm_fail(error, FM_INVALID_REQUEST, "%s", detail);
    error->reason = openai_code;
    snprintf(error->param, sizeof error->param, "%s", param);
    return error->code;
}

static enum fm_code nothing_to_cancel(struct fm_error *error) {
    fm_fail(error, FM_NOT_FOUND, "no such request is in flight: it was never made, or it has ended");
    error->reason = "response_not_found";
    return error->code;
}

/* Has `call` (when it has an id) answered behind the job's other calls. */
static enum fm_code await_locked(struct fm_job *job, const struct fm_rpc_id *call, struct fm_error *error) {
    if (call->len && job->cancel_count == FM_CANCEL_WAITERS) {
        return fm_fail(error, FM_RATE_LIMITED, "%d calls wait for this cancel already", FM_CANCEL_WAITERS);
    }
    if (call->len) {
        job->cancel_calls[job->cancel_count++] = *call;
    }
    return FM_OK;
}

static enum fm_code cancel_job_locked(struct fm_front *front, struct fm_job *job, const struct fm_rpc_id *call,
                                      struct fm_error *error) {
    struct fm_error reason;
    if (await_locked(job, call, error) != FM_OK) {
        return error->code;
    }
    fm_fail(&reason, FM_CANCELLED, "the request was cancelled");
    fm_job_stop_locked(front, job, &reason);
    return FM_OK;
}

/* The call that the job is of gets no more events. What it made, or follows, goes on. */
static enum fm_code detach_locked(struct fm_front *front, struct fm_job *job, const struct fm_rpc_id *call,
                                  struct fm_error *error) {
    if (await_locked(job, call, error) != FM_OK) {
        return error->code;
    }
    job->stream = false;
    fm_streams_pump_locked(front);
    return FM_OK;
}

/* By the call that made it. `detach`: what runs in the background goes on. */
static enum fm_code cancel(struct fm_front *front, const struct fm_rpc_message *message,
                           const struct fm_rpc_id *request_id, bool detach, struct fm_error *error) {
    pthread_mutex_lock(&front->lock);
    struct fm_job *job = fm_job_by_call_locked(front, request_id);
    enum fm_code code = FM_OK;
    if (!job) {
        code = nothing_to_cancel(error);
    } else if (job->replays || (detach && job->answer.request.background)) {
        code = detach_locked(front, job, &message->id, error);
    } else {
        code = cancel_job_locked(front, job, &message->id, error);
    }
    pthread_mutex_unlock(&front->lock);
    return code;
}

/* By a response's id: one that runs, or one that is stored. */
static enum fm_code cancel_answer(struct fm_front *front, const struct fm_rpc_message *message,
                                  const struct fm_ignored *ignored, struct fm_error *error) {
    struct fm_store_query query;
    if (fm_params_read_id(message->params, &query, error) != FM_OK) {
        return error->code;
    }
    query.ignored = ignored;
    pthread_mutex_lock(&front->lock);
    struct fm_job *job = fm_job_by_answer_locked(front, query.id);
    enum fm_code code = job ? cancel_job_locked(front, job, &message->id, error)
                            : fm_store_call_locked(front, &message->id, fm_reply_cancelled, &query, error);
    pthread_mutex_unlock(&front->lock);
    return code;
}

static enum fm_code responses_cancel(struct fm_front *front, const struct fm_rpc_message *message,
                                     struct fm_json_writer *result, struct fm_error *error) {
    static const struct fm_rule rules[] = {
        {.name = "id", .check = fm_check_any}, {.name = "request_id", .check = fm_check_any}, {0}};
    struct json_object *request;
    struct fm_rpc_id request_id;
    struct fm_ignored ignored;
    (void)result;
    if (fm_params_check(front, rules, message->params, &ignored, error) != FM_OK) {
        return error->code;
    }
    bool by_answer = json_object_object_get_ex(message->params, "id", NULL);
    bool by_request = json_object_object_get_ex(message->params, "request_id", &request);
    if (by_answer && by_request) {
        return fm_params_wrong(error, "request_id", "invalid_value",
                               "'id' or 'request_id' says what to cancel, not both");
    }
    if (by_answer) {
        return cancel_answer(front, message, &ignored, error);
    }
    if (!by_request) {
        return fm_params_wrong(error, "id", "missing_required_parameter",
                               "'id' or 'request_id' must say what to cancel");
    }
    if (!fm_rpc_id_read(request, &request_id)) {
        return fm_params_wrong(error, "request_id", "invalid_type",
                               "'request_id' must be a JSON-RPC id, a string or an integer");
    }
    return cancel(front, message, &request_id, false, error);
}

/* As stock LSP clients send it; as a call (with an id) it is answered like responses.cancel. */
static enum fm_code cancel_request(struct fm_front *front, const struct fm_rpc_message *message,
                                   struct fm_json_writer *result, struct fm_error *error) {
    struct json_object *value;
    struct fm_rpc_id request_id;
    struct fm_ignored ignored;
    static const struct fm_rule rules[] = {{.name = "id", .check = fm_check_any}, {0}};
    (void)result;
    if (fm_params_check(front, rules, message->params, &ignored, error) != FM_OK) {
        return error->code;
    }
    if (!json_object_object_get_ex(message->params, "id", &value) || !fm_rpc_id_read(value, &request_id)) {
        return fm_params_wrong(error, "id", "invalid_type", "'id' must be the JSON-RPC id of the call to cancel");
    }
    /* who sends no id has gone */
    return cancel(front, message, &request_id, message->kind == FM_RPC_NOTIFICATION, error);
}

static enum fm_code process_shutdown(struct fm_front *front, const struct fm_rpc_message *message,
                                     struct fm_json_writer *result, struct fm_error *error) {
    (void)result;
    (void)error;
    front->shutdown_called = true;
    front->shutdown_call = message->id;
    return FM_OK;
}

static const struct fm_method methods[] = {
    {"health.ping", FM_METHOD_IGNORES_PARAMS, .run = health_ping},
    {"capabilities.get", 0, .run = capabilities_get},
    {"models.list", 0, .run = models_list},
    {"models.retrieve", FM_METHOD_NEEDS_PARAMS, .run = models_retrieve},
    {"responses.create", FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER, .surface = &fm_surface_responses},
    {"responses.input_tokens", FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER, .surface = &fm_surface_input_tokens},
    {"responses.compact", FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER, .surface = &fm_surface_compact},
    {"responses.cancel", FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER, .run = responses_cancel},
    {"responses.retrieve", FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER, .run = fm_responses_retrieve},
    {"responses.delete", FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER, .run = fm_responses_delete},
    {"responses.input_items", FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER, .run = fm_responses_input_items},
    {"chat.completions.create", FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER, .surface = &fm_surface_chat},
    {"embeddings.create", FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER, .surface = &fm_surface_embeddings},
    {"completions.create", FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER, .surface = &fm_surface_completions},
    {"$/cancelRequest", FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER | FM_METHOD_NOTIFICATION,
     .run = cancel_request},
    {"process.shutdown", FM_METHOD_ANSWERS_LATER | FM_METHOD_NOTIFICATION, .run = process_shutdown},
};

const struct fm_method *fm_method_find(const char *name, size_t len) {
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (strlen(methods[i].name) == len && memcmp(methods[i].name, name, len) == 0) {
            return &methods[i];
        }
    }
    return NULL;
}
