/* responses.input_items: GET /responses/{id}/input_items, in pages. */
#include "front/methods/params.h"
#include "front/methods/stored.h"
#include "protocol/frame.h"
#include "surface/request.h"

#include <stdio.h>
#include <string.h>

#define LIST_MAX     100 /* most items of a list, as in the OpenAI API */
#define LIST_DEFAULT 20
#define INPUT_MAX    (64u << 20)                  /* most bytes of a response's input */
#define PAGE_MAX     (FM_FRAME_BODY_MAX - 65536u) /* most bytes of a list: a frame has other members too */

static const struct fm_rule rules[] = {
    {.name = "id", .check = fm_check_any},          {.name = "limit", .check = fm_check_int, .min = 1, .max = LIST_MAX},
    {.name = "order", .check = fm_check_any},       {.name = "after", .check = fm_check_any},
    {.name = "include", .check = fm_check_include}, {0},
};

/* ---- params ---- */

static enum fm_code read_order(struct json_object *params, struct fm_store_query *query, struct fm_error *error) {
    const char *order = fm_params_text(params, "order");
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
    const char *after = fm_params_text(params, "after");
    if (!json_object_object_get(params, "after")) {
        return FM_OK;
    }
    if (!after || !after[0] || strlen(after) >= sizeof query->after) {
        return fm_params_wrong(error, "after", "invalid_value", "'after' must be an item's id");
    }
    snprintf(query->after, sizeof query->after, "%s", after);
    return FM_OK;
}

/* ---- the page, in the store's thread ---- */

static struct json_object *item_at(struct json_object *items, const struct fm_store_query *query, size_t position) {
    size_t count = json_object_array_length(items);
    return json_object_array_get_idx(items, query->ascending ? position : count - 1 - position);
}

static const char *id_of(struct json_object *item) {
    return json_object_get_string(json_object_object_get(item, "id"));
}

/* The position after the item `query->after`; the list's length when the list has no such item. */
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

/*
 * Writes the items from `start` on, at least one, and as many as are asked for and fit in a frame. Returns the position
 * after the last of them.
 */
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

/*
 * Copies the input items of a running response from its job, because the store does not have them yet. Copies nothing
 * while the store is still asked for the items that the request refers to.
 */
static bool copy_running(struct fm_front *front, struct fm_store_query *query, struct fm_buf *input) {
    fm_front_enter(front);
    const struct fm_job *job = fm_stored_find_running_locked(front, query);
    if (job) {
        const struct fm_buf *kept = &job->answer.request.conversation.input;
        fm_front_build_begin_locked(front);
        fm_buf_append(input, kept->data, kept->len);
        fm_front_build_end_locked(front);
    }
    fm_front_leave(front);
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
    enum fm_code code = running ? FM_OK : fm_stored_get(store, query->id, &stored, error);
    code = code ? code : write_items(&stored.input, query, result, error);
    fm_stored_response_free(&stored);
    return code;
}

static enum fm_code responses_input_items(struct fm_front *front, const struct fm_method_call *call,
                                          struct fm_json_writer *result, struct fm_error *error) {
    struct fm_store_query query;
    (void)result;
    enum fm_code code = fm_params_read_id(call->params, &query, error);
    code = code ? code : read_order(call->params, &query, error);
    code = code ? code : read_after(call->params, &query, error);
    struct json_object *limit = json_object_object_get(call->params, "limit");
    query.limit = limit ? (int)json_object_get_int64(limit) : LIST_DEFAULT;
    return code ? code : fm_stored_ask(front, call, reply_input_items, &query, error);
}

const struct fm_method fm_method_responses_input_items = {
    "responses.input_items", FM_METHOD_NEEDS_PARAMS | FM_METHOD_ANSWERS_LATER, rules, .run = responses_input_items};
