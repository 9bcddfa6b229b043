/*
 * Reads frames. Text that fm_json_check refuses never reaches json-c. An unknown member is never skipped: it is a
 * fault.
 */
#include "rpc/frame.h"

#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <string.h>

#define SCRATCH_MAX (16u << 20)

/* Takes a member that must be a string. False: it is something else. */
static bool take_text(struct json_object *value, const char **text, size_t *len) {
    if (!json_object_is_type(value, json_type_string)) {
        return false;
    }
    *text = json_object_get_string(value);
    *len = (size_t)json_object_get_string_len(value);
    return true;
}

static const char *read_auth(struct json_object *root, struct gw_frame *frame) {
    struct json_object_iterator end = json_object_iter_end(root);
    for (struct json_object_iterator at = json_object_iter_begin(root); !json_object_iter_equal(&at, &end);
         json_object_iter_next(&at)) {
        const char *name = json_object_iter_peek_name(&at);
        struct json_object *value = json_object_iter_peek_value(&at);
        size_t len = 0;
        const char *text = NULL;
        if (!take_text(value, &text, &len)) {
            return "the members of an auth frame are strings";
        }
        if (strcmp(name, "type") == 0) {
            if (len != 4 || memcmp(text, "auth", 4) != 0) {
                return "type must be \"auth\"";
            }
        } else if (strcmp(name, "token") == 0) {
            frame->token = text;
            frame->token_len = len;
        } else if (strcmp(name, "code") == 0) {
            frame->one_time_code = text;
            frame->one_time_code_len = len;
        } else {
            return "an auth frame has type and token, or type and code, and nothing else";
        }
    }
    return !frame->token == !frame->one_time_code ? "an auth frame has either a token or a code" : NULL;
}

static const char *read_request(struct json_object *root, struct gw_frame *frame) {
    const char *fault = NULL;
    struct json_object_iterator end = json_object_iter_end(root);
    for (struct json_object_iterator at = json_object_iter_begin(root); !json_object_iter_equal(&at, &end);
         json_object_iter_next(&at)) {
        const char *name = json_object_iter_peek_name(&at);
        struct json_object *value = json_object_iter_peek_value(&at);
        if (strcmp(name, "id") == 0) {
            if (!take_text(value, &frame->id, &frame->id_len) || frame->id_len == 0 || frame->id_len > GW_ID_MAX) {
                frame->id = NULL;
                fault = "id must be a string of 1 to 256 bytes";
            }
        } else if (strcmp(name, "method") == 0) {
            if (!take_text(value, &frame->method, &frame->method_len)) {
                fault = fault ? fault : "method must be a string";
            }
        } else if (strcmp(name, "params") == 0) {
            frame->params = value;
        } else {
            fault = fault ? fault : "a frame has id, method and params, and nothing else";
        }
    }
    if (fault) {
        return fault;
    }
    return !frame->id ? "id is missing" : !frame->method ? "method is missing" : NULL;
}

enum gw_code gw_frame_read(const char *text, size_t len, struct gw_frame *frame, const char **fault) {
    struct fm_buf scratch;
    size_t offset;
    *frame = (struct gw_frame){0};
    *fault = fm_json_check(text, len, FM_JSON_VALUES_MAX, &offset);
    if (*fault) {
        return GW_PARSE;
    }
    fm_buf_init(&scratch, SCRATCH_MAX);
    bool built = fm_json_tree(text, len, &scratch, &frame->root);
    fm_buf_free(&scratch);
    if (!built) {
        *fault = "out of memory";
        return GW_INTERNAL;
    }
    if (!json_object_is_type(frame->root, json_type_object)) {
        *fault = "a frame is a JSON object";
    } else if (json_object_object_get_ex(frame->root, "type", NULL)) {
        frame->kind = GW_FRAME_AUTH;
        *fault = read_auth(frame->root, frame);
    } else {
        *fault = read_request(frame->root, frame);
    }
    return *fault ? GW_INVALID : GW_OK;
}

void gw_frame_free(struct gw_frame *frame) {
    json_object_put(frame->root);
    *frame = (struct gw_frame){0};
}
