/* responses.retrieve: GET /responses/{id}, also as a stream. The response may still run, or be stored. */
#include "front/jobs.h"
#include "front/methods/params.h"
#include "front/methods/stored.h"
#include "surface/request.h"

static const struct fm_rule fm_rules[] = {
    {.name = "full_result", .check = fm_check_bool}, /* for a stream: without a stream, the result is always complete */
    {0},
};

static const struct fm_rule rules[] = {
    {.name = "id", .check = fm_check_any},
    {.name = "include", .check = fm_check_include}, /* included in any case, or never available */
    {.name = "stream", .check = fm_check_bool},
    {.name = "starting_after", .check = fm_check_int, .min = 0, .max = INT64_MAX},
    {.name = "include_obfuscation", .check = fm_check_bool}, /* frames are never padded */
    {.name = "fm", .check = fm_check_object, .members = fm_rules, .closed = true},
    {0},
};

static bool write_running(struct fm_front *front, struct fm_store_query *query, struct fm_json_writer *result) {
    fm_front_enter(front);
    struct fm_job *job = fm_stored_find_running_locked(front, query);
    if (job) {
        fm_front_build_begin_locked(front);
        fm_json_key(result, "response");
        job->answer.surface->write(&job->answer, result);
        fm_front_build_end_locked(front);
    }
    fm_front_leave(front);
    return job;
}

static enum fm_code reply_response(struct fm_front *front, struct fm_store *store, struct fm_store_query *query,
                                   struct fm_json_writer *result, struct fm_error *error) {
    struct fm_stored_response stored;
    if (write_running(front, query, result) || query->again) {
        return FM_OK;
    }
    enum fm_code code = fm_stored_get(store, query->id, &stored, error);
    if (code != FM_OK) {
        return code;
    }
    code = fm_stored_json_check(&stored.object, error);
    if (code == FM_OK) {
        fm_json_key(result, "response");
        fm_json_raw(result, stored.object.data, stored.object.len);
    }
    fm_stored_response_free(&stored);
    return code;
}

/* ---- the events of a response ---- */

static bool follow_running(struct fm_front *front, struct fm_store_query *query) {
    fm_front_enter(front);
    struct fm_job *source = fm_stored_find_running_locked(front, query);
    if (source) {
        fm_job_replayed_locked(front, query->job, source, NULL, NULL);
    }
    fm_front_leave(front);
    return source;
}

static enum fm_code replay_stored(struct fm_front *front, struct fm_store *store, const struct fm_store_query *query,
                                  struct fm_error *error) {
    struct fm_stored_response stored;
    struct fm_answer answer;
    enum fm_code code = fm_stored_get(store, query->id, &stored, error);
    if (code != FM_OK) {
        return code;
    }
    code = fm_answer_restore(&answer, &stored, error);
    fm_stored_response_free(&stored);
    if (code == FM_OK) {
        fm_front_enter(front);
        fm_job_replayed_locked(front, query->job, NULL, &answer, NULL);
        fm_front_leave(front);
    }
    return code;
}

static enum fm_code find_events(struct fm_front *front, struct fm_store *store, struct fm_store_query *query,
                                struct fm_json_writer *result, struct fm_error *error) {
    (void)result;
    if (follow_running(front, query) || query->again) {
        return FM_OK;
    }
    return replay_stored(front, store, query, error);
}

/* Makes the call a job that follows the response's events. */
static enum fm_code replay(struct fm_front *front, const struct fm_method_call *call, int64_t after,
                           struct fm_store_query *query, struct fm_error *error) {
    struct fm_job *job;
    fm_front_enter(front);
    enum fm_code code = fm_job_replay_locked(front, call->id, after, &job, error);
    query->job = code == FM_OK ? job->number : 0;
    if (code == FM_OK) {
        struct json_object *fm = json_object_object_get(call->params, "fm");
        job->full_result = json_object_get_boolean(json_object_object_get(fm, "full_result"));
    }
    if (code == FM_OK && !fm_store_replay_locked(front, find_events, query)) {
        fm_job_release_locked(front, job);
        code = fm_fail(error, FM_OVERLOADED, "can't ask the store for the response");
    }
    fm_front_leave(front);
    return code;
}

static enum fm_code read_starting_after(struct json_object *params, bool stream, int64_t *after,
                                        struct fm_error *error) {
    struct json_object *value = json_object_object_get(params, "starting_after");
    *after = value ? json_object_get_int64(value) : -1;
    return stream || !value ? FM_OK
                            : fm_params_wrong(error, "starting_after", "invalid_value",
                                              "'starting_after' is about events: set 'stream'");
}

static enum fm_code responses_retrieve(struct fm_front *front, const struct fm_method_call *call,
                                       struct fm_json_writer *result, struct fm_error *error) {
    struct fm_store_query query;
    int64_t after;
    (void)result;
    bool stream = json_object_get_boolean(json_object_object_get(call->params, "stream"));
    enum fm_code code = fm_params_read_id(call->params, &query, error);
    code = code ? code : read_starting_after(call->params, stream, &after, error);
    if (code != FM_OK) {
        return code;
    }
    return stream ? replay(front, call, after, &query, error)
                  : fm_stored_ask(front, call, reply_response, &query, error);
}

const struct fm_method fm_method_responses_retrieve = {
    "responses.retrieve", FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER, rules, .run = responses_retrieve};
