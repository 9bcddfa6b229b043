/* Builds a conversation: stored responses, the items that references name, then the new input. */
#include "surface/conversation.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"
#include "surface/items.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MAX 2000000u /* most JSON values of a stored text, which may have many log probabilities */
#define ITEMS_MAX  16384u   /* three values each, which with tools and formats stays within the engine's 131,072 */

void fm_conversation_free(struct fm_conversation *conversation) {
    free(conversation->previous_id);
    conversation->previous_id = NULL;
    fm_buf_free(&conversation->first);
    fm_buf_free(&conversation->last);
    fm_buf_free(&conversation->input);
}

bool fm_conversation_copy_kept(struct fm_conversation *kept, const struct fm_conversation *from) {
    const struct fm_buf *input = &from->input;
    fm_buf_init(&kept->input, input->max);
    if (from->refers) {
        fm_buf_append_str(&kept->input, "[]");
    } else {
        fm_buf_append(&kept->input, input->data, input->len);
    }
    kept->previous_id = from->previous_id ? strdup(from->previous_id) : NULL;
    return !kept->input.failed && (kept->previous_id || !from->previous_id);
}

void fm_stored_response_free(struct fm_stored_response *stored) {
    fm_buf_free(&stored->object);
    fm_buf_free(&stored->input);
    fm_buf_free(&stored->stream);
}

enum fm_code fm_stored_json_check(const struct fm_buf *text, struct fm_error *error) {
    size_t offset;
    bool valid = text->data && !fm_json_check(text->data, text->len, VALUES_MAX, &offset);
    return valid ? FM_OK : fm_fail(error, FM_INTERNAL, "a stored response is damaged");
}

enum fm_code fm_stored_json_read(const struct fm_buf *text, struct json_object **root, struct fm_error *error) {
    struct fm_buf scratch;
    if (fm_stored_json_check(text, error) != FM_OK) {
        return error->code;
    }
    fm_buf_init(&scratch, text->len);
    bool read = fm_json_tree(text->data, text->len, &scratch, root);
    fm_buf_free(&scratch);
    return read ? FM_OK : fm_fail_no_memory(error);
}

/* ---- what came before ---- */

/* Lists of items, the newest first: for each response first its output, then its input. */
struct history {
    struct json_object **lists; /* owned; the array holds references to the lists, which are owned too */
    size_t count;
};

static void free_history(struct history *history) {
    for (size_t i = 0; i < history->count; i++) {
        json_object_put(history->lists[i]);
    }
    free(history->lists);
}

static bool push(struct history *history, struct json_object *list) {
    struct json_object **lists = realloc(history->lists, (history->count + 1) * sizeof(struct json_object *));
    if (lists) {
        history->lists = lists;
        lists[history->count++] = json_object_get(list);
    }
    return lists;
}

/* Checks a text from the store. The store's file is untrusted, because another process may have written to it. */
static enum fm_code check_stored(struct json_object *list, struct fm_error *error) {
    struct fm_error reason;
    bool valid = json_object_is_type(list, json_type_array) && fm_check_input(NULL, list, NULL, &reason) == FM_OK &&
                 !fm_items_refer(list);
    return valid ? FM_OK : fm_fail(error, FM_INTERNAL, "a stored response is damaged");
}

static enum fm_code push_list(struct history *history, struct json_object *list, struct fm_error *error) {
    enum fm_code code = check_stored(list, error);
    if (code == FM_OK && !push(history, list)) {
        code = fm_fail_no_memory(error);
    }
    return code;
}

static enum fm_code push_response(struct history *history, const struct fm_stored_response *stored,
                                  struct fm_error *error) {
    struct json_object *object = NULL;
    struct json_object *input = NULL;
    enum fm_code code = fm_stored_json_read(&stored->object, &object, error);
    code = code ? code : fm_stored_json_read(&stored->input, &input, error);
    code = code ? code : push_list(history, json_object_object_get(object, "output"), error);
    code = code ? code : push_list(history, input, error);
    json_object_put(object);
    json_object_put(input);
    return code;
}

static enum fm_code not_stored(const char *id, struct fm_error *error) {
    fm_fail(error, FM_INVALID_REQUEST,
            "Previous response with id '%.*s' not found: it is still in progress, was deleted, or was never stored.",
            FM_ID_SIZE, id);
    error->reason = "previous_response_not_found";
    snprintf(error->param, sizeof error->param, "previous_response_id");
    return error->code;
}

/* Reads the response `id` and all responses before it. */
static enum fm_code read_history(struct history *history, const struct fm_conversation_source *source, const char *id,
                                 struct fm_error *error) {
    struct fm_stored_response stored;
    char next[FM_ID_SIZE];
    enum fm_code code = strlen(id) < sizeof next ? FM_OK : not_stored(id, error);
    snprintf(next, sizeof next, "%.*s", (int)sizeof next - 1, id);
    while (code == FM_OK && next[0]) {
        code = source->get(source->context, next, &stored, error);
        if (code == FM_NOT_FOUND) {
            return not_stored(next, error);
        }
        if (code != FM_OK) {
            return code;
        }
        code = push_response(history, &stored, error);
        memcpy(next, stored.previous_id, sizeof next);
        fm_stored_response_free(&stored);
        if (code == FM_OK && history->count > ITEMS_MAX) {
            code = fm_fail(error, FM_CONTEXT_OVERFLOW, "the conversation has more than %u turns: begin a new one",
                           ITEMS_MAX / 2);
        }
    }
    return code;
}

/* Appends references to the entries of `list`. */
static bool append_all(struct json_object *items, struct json_object *list) {
    size_t count = json_object_array_length(list);
    for (size_t i = 0; i < count; i++) {
        struct json_object *item = json_object_get(json_object_array_get_idx(list, i));
        if (json_object_array_add(items, item) != 0) {
            json_object_put(item);
            return false;
        }
    }
    return true;
}

/* ---- references to items ---- */

static struct json_object *find_by_id(struct json_object *items, const char *id) {
    size_t count = json_object_is_type(items, json_type_array) ? json_object_array_length(items) : 0;
    for (size_t i = count; i > 0; i--) {
        struct json_object *item = json_object_array_get_idx(items, i - 1);
        if (fm_string_is(json_object_object_get(item, "id"), id)) {
            return item;
        }
    }
    return NULL;
}

static enum fm_code find_in_response(const struct fm_stored_response *stored, const char *id, struct json_object **item,
                                     struct fm_error *error) {
    struct history lists = {0};
    enum fm_code code = push_response(&lists, stored, error);
    *item = NULL;
    for (size_t i = 0; code == FM_OK && i < lists.count && !*item; i++) {
        *item = json_object_get(find_by_id(lists.lists[i], id));
    }
    free_history(&lists);
    return code;
}

/* Finds the stored item `id`; the caller releases it. `*item` NULL with FM_OK: the item is not stored. */
static enum fm_code find_stored(const struct fm_conversation_source *source, const char *id, struct json_object **item,
                                struct fm_error *error) {
    struct fm_stored_response stored;
    char response[FM_ID_SIZE];
    *item = NULL;
    enum fm_code code = source->find_item(source->context, id, response, error);
    code = code ? code : source->get(source->context, response, &stored, error);
    if (code != FM_OK) {
        return code == FM_NOT_FOUND ? FM_OK : code;
    }
    code = find_in_response(&stored, id, item, error);
    fm_stored_response_free(&stored);
    return code;
}

static enum fm_code no_such_item(const char *id, struct fm_error *error) {
    fm_fail(error, FM_INVALID_REQUEST, "Item with id '%.*s' not found.", FM_ID_SIZE, id);
    error->reason = "";
    snprintf(error->param, sizeof error->param, "input");
    return error->code;
}

/* Replaces the reference at `index` of `input` by the item, from `before` or from the store. */
static enum fm_code replace(struct json_object *input, size_t index, const char *id, struct json_object *before,
                            const struct fm_conversation_source *source, struct fm_error *error) {
    struct json_object *item = json_object_get(find_by_id(before, id));
    enum fm_code code = item ? FM_OK : find_stored(source, id, &item, error);
    if (code != FM_OK) {
        return code;
    }
    if (!item) {
        return no_such_item(id, error);
    }
    if (json_object_array_put_idx(input, index, item) != 0) {
        json_object_put(item);
        return fm_fail_no_memory(error);
    }
    return FM_OK;
}

static enum fm_code replace_references(struct json_object *input, struct json_object *before,
                                       const struct fm_conversation_source *source, struct fm_error *error) {
    size_t count = json_object_array_length(input);
    for (size_t i = 0; i < count; i++) {
        const char *id = fm_item_reference(json_object_array_get_idx(input, i));
        enum fm_code code = id ? replace(input, i, id, before, source, error) : FM_OK;
        if (code != FM_OK) {
            return code;
        }
    }
    return FM_OK;
}

/* ---- the whole conversation ---- */

static enum fm_code write_messages(const struct fm_conversation *conversation, struct json_object *items,
                                   struct fm_buf *messages, struct fm_error *error) {
    if (json_object_array_length(items) + fm_items_image_parts(items) > ITEMS_MAX) {
        return fm_fail(error, FM_CONTEXT_OVERFLOW,
                       "the conversation has more than %u items and parts of messages with images: begin a new one",
                       ITEMS_MAX);
    }
    struct fm_json_writer w = fm_json_writer_on(messages);
    if (conversation->first.len > 0) {
        fm_json_raw(&w, conversation->first.data, conversation->first.len);
    }
    fm_items_write_messages(items, &w);
    if (conversation->last.len > 0) {
        fm_json_raw(&w, conversation->last.data, conversation->last.len);
    }
    if (messages->failed) {
        return fm_fail_no_memory(error);
    }
    return messages->len <= FM_MESSAGES_MAX
               ? FM_OK
               : fm_fail(error, FM_CONTEXT_OVERFLOW, "the conversation has more than %u bytes: begin a new one",
                         FM_MESSAGES_MAX);
}

/* Fills `items` (empty) with the conversation; replaces the references in `input`, its last part. */
static enum fm_code collect_items(const struct fm_conversation *conversation,
                                  const struct fm_conversation_source *source, struct json_object *items,
                                  struct json_object *input, struct fm_error *error) {
    struct history history = {0};
    enum fm_code code =
        conversation->previous_id ? read_history(&history, source, conversation->previous_id, error) : FM_OK;
    for (size_t i = history.count; code == FM_OK && i > 0; i--) {
        code = append_all(items, history.lists[i - 1]) ? FM_OK : fm_fail_no_memory(error);
    }
    free_history(&history);
    code = code ? code : replace_references(input, items, source, error);
    if (code == FM_OK && !append_all(items, input)) {
        code = fm_fail_no_memory(error);
    }
    return code ? code : fm_items_check_whole(items, error);
}

static enum fm_code keep_input(struct fm_conversation *conversation, struct json_object *input,
                               struct fm_error *error) {
    fm_buf_reset(&conversation->input);
    struct fm_json_writer w = fm_json_writer_on(&conversation->input);
    fm_json_value(&w, input);
    return conversation->input.failed ? fm_fail_no_memory(error) : FM_OK;
}

enum fm_code fm_conversation_resolve(struct fm_conversation *conversation, const struct fm_conversation_source *source,
                                     struct fm_buf *messages, struct fm_error *error) {
    struct json_object *input = NULL;
    struct json_object *items = json_object_new_array();
    enum fm_code code = items ? fm_stored_json_read(&conversation->input, &input, error) : fm_fail_no_memory(error);
    code = code ? code : collect_items(conversation, source, items, input, error);
    code = code ? code : write_messages(conversation, items, messages, error);
    code = code ? code : keep_input(conversation, input, error);
    conversation->images = code == FM_OK && fm_items_have_images(items);
    json_object_put(items);
    json_object_put(input);
    return code;
}
