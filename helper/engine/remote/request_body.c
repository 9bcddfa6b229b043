/* What the dialects use to write the body of a request. Each member of the job wins over the configuration's. */
#include "base/crc32.h"
#include "engine/remote/request.h"
#include "protocol/base64.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

/* ---- members ---- */

void fm_body_omit(struct fm_body *body, const char *key) {
    if (body->key_count < sizeof body->keys / sizeof body->keys[0]) {
        body->keys[body->key_count++] = key;
    }
}

void fm_body_key(struct fm_body *body, const char *key) {
    fm_body_omit(body, key);
    fm_json_key(&body->w, key);
}

/*
 * A value that changes nothing is sent too, because the default of the server or of the configuration may be another
 * one.
 */
void fm_body_sampling(struct fm_body *body, unsigned has) {
    for (int i = 0; i < FM_PARAM_COUNT; i++) {
        if (!body->job->named[i] || !(has & 1u << i)) {
            continue;
        }
        fm_body_key(body, fm_params[i].name);
        if (fm_params[i].kind == FM_PARAM_BOOL) {
            fm_json_bool(&body->w, body->job->sampling[i] != 0);
        } else if (fm_params[i].kind == FM_PARAM_INT) {
            fm_json_int(&body->w, (int64_t)body->job->sampling[i]);
        } else {
            fm_json_double(&body->w, body->job->sampling[i]);
        }
    }
}

const char *fm_body_missing(const struct fm_body *body, unsigned has) {
    for (int i = 0; i < FM_PARAM_COUNT; i++) {
        if (!(has & 1u << i) && fm_kit_job_asks(body->job, (enum fm_param)i)) {
            return fm_params[i].name;
        }
    }
    return NULL;
}

static bool is_written(const struct fm_body *body, const char *key) {
    for (size_t i = 0; i < body->key_count; i++) {
        if (strcmp(body->keys[i], key) == 0) {
            return true;
        }
    }
    return false;
}

static void write_member(struct fm_body *body, const char *key, struct json_object *value) {
    fm_json_key_text(&body->w, key, strlen(key));
    fm_json_value(&body->w, value);
}

void fm_body_object(struct fm_body *body, const char *key, struct json_object *own) {
    struct json_object *others = NULL;
    struct json_object_iter at;
    fm_body_key(body, key);
    fm_json_object_begin(&body->w);
    if (!own) {
        body->w.buf->failed = true;
        return;
    }
    json_object_object_foreachC(own, at) {
        write_member(body, at.key, at.val);
    }
    json_object_object_get_ex(body->endpoint->body, key, &others);
    if (json_object_is_type(others, json_type_object)) {
        json_object_object_foreachC(others, at) {
            if (!json_object_object_get_ex(own, at.key, NULL)) {
                write_member(body, at.key, at.val);
            }
        }
    }
    fm_json_object_end(&body->w);
    json_object_put(own);
}

/* ---- what is passed on ---- */

const char *fm_body_passed(const struct fm_body *body, enum fm_passed which) {
    return json_object_get_string(body->job->passed[which]);
}

void fm_body_pass(struct fm_body *body, enum fm_passed which, const char *key) {
    if (body->job->passed[which]) {
        fm_body_key(body, key);
        fm_json_value(&body->w, body->job->passed[which]);
    }
}

void fm_body_pass_all(struct fm_body *body) {
    fm_body_pass(body, FM_PASSED_SERVICE_TIER, "service_tier");
    fm_body_pass(body, FM_PASSED_CACHE_KEY, "prompt_cache_key");
    fm_body_pass(body, FM_PASSED_CACHE_RETENTION, "prompt_cache_retention");
    fm_body_pass(body, FM_PASSED_SAFETY_IDENTIFIER, "safety_identifier");
    fm_body_pass(body, FM_PASSED_USER, "user");
}

/* Writes the members that the configuration adds and the job does not have. */
void fm_body_others(struct fm_body *body) {
    struct json_object_iter at;
    if (!body->endpoint->body) {
        return;
    }
    json_object_object_foreachC(body->endpoint->body, at) {
        if (!is_written(body, at.key)) {
            write_member(body, at.key, at.val);
        }
    }
}

enum fm_code fm_body_refuse(struct fm_body *body, const char *param, const char *why) {
    (void)fm_fail(body->error, FM_INVALID_REQUEST, "%s: %s", param, why);
    snprintf(body->error->param, sizeof body->error->param, "%s", param);
    body->error->elsewhere = true;
    return FM_INVALID_REQUEST;
}

/* ---- images ---- */

const char *fm_image_type(const struct fm_image *image) {
    static const struct {
        const char *magic;
        size_t len;
        const char *type;
    } types[] = {{"\x89PNG\r\n\x1a\n", 8, "image/png"},
                 {"\xff\xd8\xff", 3, "image/jpeg"},
                 {"GIF8", 4, "image/gif"},
                 {"BM", 2, "image/bmp"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (image->len > types[i].len && memcmp(image->bytes, types[i].magic, types[i].len) == 0) {
            return types[i].type;
        }
    }
    bool webp = image->len > 12 && memcmp(image->bytes, "RIFF", 4) == 0 && memcmp(image->bytes + 8, "WEBP", 4) == 0;
    return webp ? "image/webp" : NULL;
}

void fm_body_base64(struct fm_body *body, const char *before, const struct fm_image *image) {
    struct fm_buf *out = body->w.buf;
    fm_json_raw(&body->w, "\"", 1);
    fm_buf_append_str(out, before);
    fm_base64_append(out, image->bytes, image->len);
    fm_buf_append_char(out, '"');
}

enum fm_code fm_body_check_images(struct fm_body *body) {
    for (size_t i = 0; i < body->job->message_count; i++) {
        const struct fm_message *message = &body->job->messages[i];
        for (size_t j = 0; j < message->image_count; j++) {
            if (!fm_image_type(&message->images[j])) {
                char param[64];
                snprintf(param, sizeof param, "images[%zu]", message->images[j].index);
                enum fm_code code = fm_body_refuse(body, param, "a PNG, JPEG, GIF, WebP or BMP file is expected");
                body->error->elsewhere = false;
                return code;
            }
        }
    }
    return FM_OK;
}

/* ---- tools, effort, state ---- */

bool fm_body_has_tools(const struct fm_body *body) {
    return body->job->tool_count > 0;
}

void fm_body_tools(struct fm_body *body, void (*write)(const struct fm_tool *tool, struct fm_json_writer *w)) {
    struct fm_json_writer *w = &body->w;
    fm_body_key(body, "tools");
    fm_json_array_begin(w);
    for (size_t i = 0; i < body->job->tool_count; i++) {
        const struct fm_tool *tool = &body->job->tools[i];
        if (tool->allowed || body->job->tool_mode == FM_TOOLS_NONE) {
            fm_json_object_begin(w);
            write(tool, w);
            fm_json_object_end(w);
        }
    }
    fm_json_array_end(w);
}

void fm_body_tool_name(const struct fm_tool *tool, struct fm_json_writer *w) {
    fm_json_key_str(w, "name", tool->name);
    if (tool->description) {
        fm_json_key_str(w, "description", tool->description);
    }
}

const struct fm_tool *fm_body_only_tool(const struct fm_body *body) {
    const struct fm_tool *only = NULL;
    size_t count = 0;
    for (size_t i = 0; i < body->job->tool_count; i++) {
        if (body->job->tools[i].allowed) {
            only = &body->job->tools[i];
            count++;
        }
    }
    return count == 1 && body->job->tool_mode == FM_TOOLS_REQUIRED ? only : NULL;
}

const char *fm_body_effort(const struct fm_body *body) {
    enum fm_effort effort = body->job->effort;
    return effort == FM_EFFORT_DEFAULT ? NULL : fm_effort_words[effort - FM_EFFORT_NONE];
}

void fm_request_maker(const struct fm_endpoint *endpoint, const char *model, char *maker) {
    uint32_t sum = fm_crc32(0, endpoint->base, strlen(endpoint->base));
    sum = fm_crc32(sum, model ? model : "", model ? strlen(model) : 0);
    snprintf(maker, FM_MAKER_SIZE, "remote-%d-%08x", (int)endpoint->dialect, (unsigned)sum);
}

struct json_object *fm_body_states(const struct fm_body *body, const struct fm_message *message) {
    struct json_object *items = NULL;
    for (size_t i = 0; i < message->state_count; i++) {
        const struct fm_state_text *state = &message->states[i];
        struct json_object *root = NULL;
        struct fm_buf scratch;
        size_t offset;
        fm_buf_init(&scratch, FM_STATE_BYTES_MAX);
        bool read = !fm_json_check(state->text, state->len, FM_JSON_VALUES_MAX, &offset) &&
                    fm_json_tree(state->text, state->len, &scratch, &root);
        fm_buf_free(&scratch);
        const char *maker = json_object_get_string(json_object_object_get(root, "maker"));
        if (read && json_object_is_type(root, json_type_object) && maker && strcmp(maker, body->maker) == 0) {
            items = items ? items : json_object_new_array();
            json_object_array_add(items, json_object_get(json_object_object_get(root, "item")));
        }
        json_object_put(root);
    }
    return items;
}

bool fm_body_is_role(const struct fm_message *message, const char *role) {
    return strcmp(message->role, role) == 0;
}
