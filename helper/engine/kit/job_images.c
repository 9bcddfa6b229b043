/*
 * Reads a message's content that is a list of parts, some of them images, and checks it as strictly as the rest
 * (job_params.c).
 */
#include "engine/kit/job_read.h"
#include "protocol/base64.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum fm_code wrong_part(struct fm_error *error, size_t message, size_t part, const char *member,
                               const char *expected) {
    char list[64];
    snprintf(list, sizeof list, "messages[%zu].content", message);
    return fm_kit_job_wrong_entry(error, list, part, member, expected);
}

/* The string `name` of a part that has exactly `others` other members; NULL: it is not such a part. */
static struct json_object *only_member(struct json_object *part, const char *name, int others) {
    struct json_object *value = json_object_object_get(part, name);
    bool valid = json_object_is_type(value, json_type_string) && json_object_object_length(part) == others + 1;
    return valid ? value : NULL;
}

/* Room for the texts of the parts, and for their images. */
static enum fm_code make_room(struct fm_message *message, struct json_object *parts, struct fm_error *error) {
    size_t len = 0;
    size_t count = json_object_array_length(parts);
    for (size_t i = 0; i < count; i++) {
        struct json_object *part = json_object_array_get_idx(parts, i);
        bool object = json_object_is_type(part, json_type_object);
        struct json_object *text = object ? json_object_object_get(part, "text") : NULL;
        len += (size_t)json_object_get_string_len(text);
    }
    message->joined = malloc(len + 1);
    message->images = calloc(count, sizeof *message->images);
    if (!message->joined || !message->images) {
        return fm_fail_no_memory(error);
    }
    message->joined[0] = '\0';
    message->content = message->joined;
    return FM_OK;
}

static enum fm_code add_text(struct fm_message *message, struct json_object *text) {
    size_t len = (size_t)json_object_get_string_len(text);
    memcpy(message->joined + message->content_len, json_object_get_string(text), len);
    message->content_len += len;
    message->joined[message->content_len] = '\0';
    return FM_OK;
}

/* FM_INVALID_REQUEST: the image is not base64. */
static enum fm_code add_image(struct fm_message *message, struct json_object *data, const char *detail,
                              struct fm_error *error) {
    const char *text = json_object_get_string(data);
    size_t digits = (size_t)json_object_get_string_len(data);
    size_t len = fm_base64_decoded_size(text, digits);
    if (len == 0) {
        return FM_INVALID_REQUEST;
    }
    unsigned char *bytes = malloc(len);
    if (!bytes) {
        return fm_fail_no_memory(error);
    }
    message->images[message->image_count++] =
        (struct fm_image){.bytes = bytes, .len = len, .at = message->content_len, .detail = detail};
    return fm_base64_read(text, digits, bytes) ? FM_OK : FM_INVALID_REQUEST;
}

static enum fm_code read_part(struct fm_message *message, size_t index, size_t at, struct json_object *part,
                              struct fm_error *error) {
    static const char *const types[] = {"text", "image", NULL};
    static const char *const details[] = {"auto", "low", "high", "original", NULL};
    if (!json_object_is_type(part, json_type_object)) {
        return wrong_part(error, index, at, "", "an object");
    }
    int type = fm_kit_job_word(json_object_object_get(part, "type"), types);
    if (type < 0) {
        return wrong_part(error, index, at, ".type", "\"text\" or \"image\"");
    }
    if (type == 0) {
        struct json_object *text = only_member(part, "text", 1);
        return text ? add_text(message, text) : wrong_part(error, index, at, "", "a string \"text\" and nothing else");
    }
    struct json_object *detail = NULL;
    int others = 1 + json_object_object_get_ex(part, "detail", &detail);
    struct json_object *data = only_member(part, "data", others);
    int word = fm_kit_job_word(detail, details);
    if (detail && word < 0) {
        return wrong_part(error, index, at, ".detail", "\"auto\", \"low\", \"high\" or \"original\"");
    }
    enum fm_code code = data ? add_image(message, data, detail ? details[word] : NULL, error) : FM_INVALID_REQUEST;
    return code == FM_INVALID_REQUEST
               ? wrong_part(error, index, at, "", "\"data\" in base64, and nothing but \"detail\"")
               : code;
}

enum fm_code fm_kit_job_read_parts(struct fm_message *message, size_t index, struct json_object *parts,
                                   struct fm_error *error) {
    size_t count = json_object_array_length(parts);
    if (count == 0) {
        return fm_kit_job_wrong_entry(error, "messages", index, ".content", "a string, or a list that is not empty");
    }
    enum fm_code code = make_room(message, parts, error);
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        code = read_part(message, index, i, json_object_array_get_idx(parts, i), error);
    }
    return code;
}

void fm_kit_job_count_images(struct fm_kit_job *job) {
    for (size_t i = 0; i < job->message_count; i++) {
        for (size_t k = 0; k < job->messages[i].image_count; k++) {
            job->messages[i].images[k].index = job->image_count++;
        }
    }
}

void fm_kit_job_free_images(struct fm_message *message) {
    for (size_t i = 0; i < message->image_count; i++) {
        free(message->images[i].bytes);
    }
    free(message->images);
    free(message->joined);
}
