/* The methods about stored responses: params here, in the reader's thread; the reply later, in the store's. */
#include "front/methods.h"
#include "front/store.h"
#include "protocol/frame.h"
#include "surface/request.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define LIST_MAX     100 /* items; as the OpenAI API has it, and the next */
#define LIST_DEFAULT 20
#define INPUT_MAX    (64u << 20)                  /* bytes of a response's input */
#define PAGE_MAX     (FM_FRAME_BODY_MAX - 65536u) /* bytes of a list: a frame has other things in it */

/* ---- params ---- */

static enum fm_code no_such_response(struct fm_error *error) {
    fm_fail(error, FM_NOT_FOUND, "there is no such response: it was never made, not stored, or made room for others");
    error->reason = "response_not_found";
    return error->code;
}

/* A string without NUL of the member `name`. NULL where it is something else. */
static const char *get_string(struct json_object *params, const char *name) {
    struct json_object *value = json_object_object_get(params, name);
    const char *text = json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
    return text && strlen(text) == (size_t)json_object_get_string_len(value) ? text : NULL;
}

enum fm_code fm_params_read_id(struct json_object *params, struct fm_store_query *query, struct fm_error *error) {
    *query = (struct fm_store_query){.id = ""};
    struct json_object *value;
    if (!json_object_object_get_ex(params, "id", &value)) {
        return fm_params_wrong(error, "id", "missing_required_parameter", "'id' must be a response's id");
    }
    if (!json_object_is_type(value, json_type_string)) {
        return fm_params_wrong(error, "id", "invalid_type", "'id' must be a response's id, a string");
    }
    const char *id = get_string(params, "id");
    if (!id || strlen(id) >= sizeof query->id) {
        return no_such_response(error);
    }
    snprintf(query->id, sizeof query->id, "%s", id);
    return FM_OK;
}

static enum fm_code read_order(struct json_object *params, struct fm_store_query *query, struct fm_error *error) {
    const char *order = get_string(params, "order");
    if (!json_object_object_get(params, "order")) {
        return FM_OK;
    }
    if (!order || (strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0)) {
        return fm_params_wrong(error, "order", "invalid_value", "'order' must be 'asc' or 'desc'");
    }
    query->ascending = order[0] == 'a';
    return FM_OK;
}

static enum fm_code read_after(struct json_object *params, struct fm_store_query *query, struct fm_error *error) {
    const char *after = get_string(params, "after");
    if (!json_object_object_get(params, "after")) {
        return FM_OK;
    }
    if (!after || !after[0] || strlen(after) >= sizeof query->after) {
        return fm_params_wrong(error, "after", "invalid_value", "'after' must be an item's id");
    }
    snprintf(query->after, sizeof query->after, "%s", after);
    return FM_OK;
}

static enum fm_code ask(struct fm_front *front, const struct fm_rpc_message *message, fm_store_reply_fn *reply,
                        const struct fm_store_query *query, struct fm_error *error) {
    pthread_mutex_lock(&front->lock);
    enum fm_code code = fm_store_call_locked(front, &message->id, reply, query, error);
    pthread_mutex_unlock(&front->lock);
    return code;
}

/* ---- one that has not ended ---- */

/*
 * The job of the response that `query` names, as long as it runs; NULL: it has ended. When it is about to be stored,
 * and so behind what the store does now, `query->again` is set.
 */
static struct fm_job *find_running_locked(struct fm_front *front, struct fm_store_query *query) {
    struct fm_job *job = fm_job_by_answer_locked(front, query->id);
    bool found = job && job->answer.surface == &fm_surface_responses && job->answer.request.store;
    query->again = found && job->state == FM_JOB_CLOSING && job->storing;
    return found && job->state != FM_JOB_CLOSING ? job : NULL;
}

static enum fm_code get(struct fm_store *store, const char *id, struct fm_stored_response *stored,
                        struct fm_error *error) {
    return store ? fm_store_get(store, id, stored, error) : error->code;
}

/* ---- responses.retrieve ---- */

static bool write_running(struct fm_front *front, struct fm_store_query *query, struct fm_json_writer *result) {
    pthread_mutex_lock(&front->lock);
    struct fm_job *job = find_running_locked(front, query);
    if (job) {
        fm_json_key(result, "response");
        job->answer.surface->write(&job->answer, result);
    }
    pthread_mutex_unlock(&front->lock);
    return job;
}

static enum fm_code reply_response(struct fm_front *front, struct fm_store *store, struct fm_store_query *query,
                                   struct fm_json_writer *result, struct fm_error *error) {
    struct fm_stored_response stored;
    if (write_running(front, query, result) || query->again) {
        return FM_OK;
    }
    enum fm_code code = get(store, query->id, &stored, error);
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

/* ---- its events ---- */

static bool follow_running(struct fm_front *front, struct fm_store_query *query) {
    pthread_mutex_lock(&front->lock);
    struct fm_job *source = find_running_locked(front, query);
    if (source) {
        fm_job_replayed_locked(front, query->job, source, NULL, NULL);
    }
    pthread_mutex_unlock(&front->lock);
    return source;
}

static enum fm_code replay_stored(struct fm_front *front, struct fm_store *store, const struct fm_store_query *query,
                                  struct fm_error *error) {
    struct fm_stored_response stored;
    struct fm_answer answer;
    enum fm_code code = get(store, query->id, &stored, error);
    if (code != FM_OK) {
        return code;
    }
    code = fm_answer_restore(&answer, &stored, error);
    fm_stored_response_free(&stored);
    if (code == FM_OK) {
        pthread_mutex_lock(&front->lock);
        fm_job_replayed_locked(front, query->job, NULL, &answer, NULL);
        pthread_mutex_unlock(&front->lock);
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

static enum fm_code replay(struct fm_front *front, const struct fm_rpc_message *message, int64_t after,
                           struct fm_store_query *query, struct fm_error *error) {
    pthread_mutex_lock(&front->lock);
    enum fm_code code = fm_job_replay_locked(front, &message->id, after, query, find_events, error);
    pthread_mutex_unlock(&front->lock);
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

enum fm_code fm_responses_retrieve(struct fm_front *front, const struct fm_rpc_message *message,
                                   struct fm_json_writer *result, struct fm_error *error) {
    static const struct fm_rule rules[] = {
        {.name = "id", .check = fm_check_any},
        {.name = "include", .check = fm_check_include}, /* it is there anyway, or there is none */
        {.name = "stream", .check = fm_check_bool},
        {.name = "starting_after", .check = fm_check_int, .min = 0, .max = INT64_MAX},
        {.name = "include_obfuscation", .check = fm_check_bool}, /* frames are never padded */
        {0},
    };
    struct fm_store_query query;
    struct fm_ignored ignored;
    int64_t after;
    (void)result;
    bool stream = json_object_get_boolean(json_object_object_get(message->params, "stream"));
    enum fm_code code = fm_params_check(front, rules, message->params, &ignored, error);
    code = code ? code : fm_params_read_id(message->params, &query, error);
    query.ignored = &ignored;
    code = code ? code : read_starting_after(message->params, stream, &after, error);
    if (code != FM_OK) {
        return code;
    }
    return stream ? replay(front, message, after, &query, error) : ask(front, message, reply_response, &query, error);
}

/* ---- responses.cancel, of one that has ended ---- */

static bool can_be_cancelled_again(struct json_object *object) {
    const char *status = json_object_get_string(json_object_object_get(object, "status"));
    bool background = json_object_get_boolean(json_object_object_get(object, "background"));
    return background || (status && strcmp(status, "cancelled") == 0);
}

enum fm_code fm_reply_cancelled(struct fm_front *front, struct fm_store *store, struct fm_store_query *query,
                                struct fm_json_writer *result, struct fm_error *error) {
    struct fm_stored_response stored;
    struct json_object *object = NULL;
    (void)front;
    enum fm_code code = get(store, query->id, &stored, error);
    if (code != FM_OK) {
        return code;
    }
    code = fm_stored_json_read(&stored.object, &object, error);
    if (code == FM_OK && !can_be_cancelled_again(object)) {
        code = fm_params_wrong(error, "id", "invalid_value", "Cannot cancel a synchronous response: it has ended.");
    }
    if (code == FM_OK) {
        fm_json_key_value(result, "response", object);
    }
    json_object_put(object);
    fm_stored_response_free(&stored);
    return code;
}

/* ---- responses.delete ---- */

static bool is_running(struct fm_front *front, struct fm_store_query *query) {
    pthread_mutex_lock(&front->lock);
    bool running = find_running_locked(front, query);
    pthread_mutex_unlock(&front->lock);
    return running;
}

static enum fm_code reply_deleted(struct fm_front *front, struct fm_store *store, struct fm_store_query *query,
                                  struct fm_json_writer *result, struct fm_error *error) {
    if (is_running(front, query)) {
        return fm_params_wrong(error, "id", "invalid_value", "The response is still in progress; cancel it first.");
    }
    if (query->again) {
        return FM_OK;
    }
    enum fm_code code = store ? fm_store_delete(store, query->id, error) : error->code;
    if (code == FM_OK) {
        fm_json_key_str(result, "id", query->id);
        fm_json_key_str(result, "object", "response");
        fm_json_key_bool(result, "deleted", true);
    }
    return code;
}

enum fm_code fm_responses_delete(struct fm_front *front, const struct fm_rpc_message *message,
                                 struct fm_json_writer *result, struct fm_error *error) {
    static const struct fm_rule rules[] = {{.name = "id", .check = fm_check_any}, {0}};
    struct fm_store_query query;
    struct fm_ignored ignored;
    (void)result;
    enum fm_code code = fm_params_check(front, rules, message->params, &ignored, error);
    code = code ? code : fm_params_read_id(message->params, &query, error);
    query.ignored = &ignored;
    return code ? code : ask(front, message, reply_deleted, &query, error);
}

/* ---- responses.input_items ---- */

static struct json_object *item_at(struct json_object *items, const struct fm_store_query *query, size_t position) {
    size_t count = json_object_array_length(items);
    return json_object_array_get_idx(items, query->ascending ? position : count - 1 - position);
}

static const char *id_of(struct json_object *item) {
    return json_object_get_string(json_object_object_get(item, "id"));
}

/* The position behind the item `query->after`; the list's length when there is no such item. */
static size_t find_start(struct json_object *items, const struct fm_store_query *query) {
    size_t count = json_object_array_length(items);
    size_t start = 0;
    bool found = !query->after[0];
    while (!found && start < count) {
        const char *id = id_of(item_at(items, query, start++));
        found = id && strcmp(id, query->after) == 0;
    }
    return found ? start : count;
}

/* Writes the items from `start` on, as many as are asked for and fit a frame; one, however large. Returns their end. */
static size_t write_page(struct json_object *items, const struct fm_store_query *query, size_t start,
                         struct fm_json_writer *result) {
    size_t count = json_object_array_length(items);
    size_t begin = result->buf->len;
    size_t end = start;
    for (; end < count && end - start < (size_t)query->limit; end++) {
        size_t before = result->buf->len;
        fm_json_value(result, item_at(items, query, end));
        if (end > start && result->buf->len - begin > PAGE_MAX) {
            result->buf->len = before;
            break;
        }
    }
    return end;
}

static void write_list(struct json_object *items, const struct fm_store_query *query, struct fm_json_writer *result) {
    size_t start = find_start(items, query);
    fm_json_key_str(result, "object", "list");
    fm_json_key(result, "data");
    fm_json_array_begin(result);
    size_t end = write_page(items, query, start, result);
    fm_json_array_end(result);
    fm_json_key_str(result, "first_id", start < end ? id_of(item_at(items, query, start)) : NULL);
    fm_json_key_str(result, "last_id", start < end ? id_of(item_at(items, query, end - 1)) : NULL);
    fm_json_key_bool(result, "has_more", end < json_object_array_length(items));
}

/* Of one that runs the store has nothing yet, but its job has; unless the store is asked for what it goes on with. */
static bool copy_running(struct fm_front *front, struct fm_store_query *query, struct fm_buf *input) {
    pthread_mutex_lock(&front->lock);
    const struct fm_job *job = find_running_locked(front, query);
    if (job) {
        fm_buf_append(input, job->answer.request.conversation.input.data, job->answer.request.conversation.input.len);
    }
    pthread_mutex_unlock(&front->lock);
    return input->len > 0;
}

static enum fm_code write_items(const struct fm_buf *input, const struct fm_store_query *query,
                                struct fm_json_writer *result, struct fm_error *error) {
    struct json_object *items = NULL;
    enum fm_code code = fm_stored_json_read(input, &items, error);
    if (code == FM_OK && !json_object_is_type(items, json_type_array)) {
        code = fm_fail(error, FM_INTERNAL, "a stored response is damaged");
    }
    if (code == FM_OK) {
        write_list(items, query, result);
    }
    json_object_put(items);
    return code;
}

static enum fm_code reply_input_items(struct fm_front *front, struct fm_store *store, struct fm_store_query *query,
                                      struct fm_json_writer *result, struct fm_error *error) {
    struct fm_stored_response stored = {0};
    fm_buf_init(&stored.input, INPUT_MAX);
    bool running = copy_running(front, query, &stored.input);
    if (query->again) {
        return FM_OK;
    }
    enum fm_code code = running ? FM_OK : get(store, query->id, &stored, error);
    code = code ? code : write_items(&stored.input, query, result, error);
    fm_stored_response_free(&stored);
    return code;
}

enum fm_code fm_responses_input_items(struct fm_front *front, const struct fm_rpc_message *message,
                                      struct fm_json_writer *result, struct fm_error *error) {
    static const struct fm_rule rules[] = {
        {.name = "id", .check = fm_check_any},
        {.name = "limit", .check = fm_check_int, .min = 1, .max = LIST_MAX},
        {.name = "order", .check = fm_check_any},
        {.name = "after", .check = fm_check_any},
        {.name = "include", .check = fm_check_include},
        {0},
    };
    struct fm_store_query query;
    struct fm_ignored ignored;
    (void)result;
    enum fm_code code = fm_params_check(front, rules, message->params, &ignored, error);
    code = code ? code : fm_params_read_id(message->params, &query, error);
    query.ignored = &ignored;
    code = code ? code : read_order(message->params, &query, error);
    code = code ? code : read_after(message->params, &query, error);
    struct json_object *limit = json_object_object_get(message->params, "limit");
    query.limit = limit ? (int)json_object_get_int64(limit) : LIST_DEFAULT;
    return code ? code : ask(front, message, reply_input_items, &query, error);
}
