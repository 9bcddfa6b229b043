/* Images as `data:` URLs: how they are checked, and the paths by which errors name them. */
#include "surface/image.h"
#include "protocol/base64.h"
#include "surface/surface.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SCHEME "data:"
#define BASE64 ";base64,"

const char *const fm_image_details[] = {"auto", "low", "high", "original", NULL};

/* The types that the engines can read. */
static const char *const media_types[] = {"image/png", "image/jpeg", "image/jpg", "image/gif", "image/bmp", NULL};

static bool begins_with(const char *text, size_t len, const char *word) {
    size_t word_len = strlen(word);
    return len >= word_len && strncasecmp(text, word, word_len) == 0;
}

/* Returns the end of the media type's name if the type is supported, else NULL. */
static const char *end_of_media_type(const char *text, size_t len) {
    for (const char *const *type = media_types; *type; type++) {
        size_t type_len = strlen(*type);
        if (begins_with(text, len, *type) && len > type_len && (text[type_len] == ';' || text[type_len] == ',')) {
            return text + type_len;
        }
    }
    return NULL;
}

enum fm_code fm_check_image_url(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                struct fm_error *error) {
    (void)rule;
    if (!json_object_is_type(value, json_type_string)) {
        return fm_reject_type(at, value, "a string", error);
    }
    const char *url = json_object_get_string(value);
    size_t len = (size_t)json_object_get_string_len(value);
    if (begins_with(url, len, "http:") || begins_with(url, len, "https:")) {
        return fm_reject_unsupported_value(at, "fm-proxy fetches nothing: send the image itself, as a 'data:' URL.",
                                           error);
    }
    if (!begins_with(url, len, SCHEME)) {
        return fm_reject_value(at, "Expected a 'data:' URL with an image in base64.", error);
    }
    const char *end = url + len;
    const char *type = url + strlen(SCHEME);
    const char *parameters = end_of_media_type(type, (size_t)(end - type));
    if (!parameters) {
        return fm_reject_value(at, "Supported media types are: 'image/png', 'image/jpeg', 'image/gif', 'image/bmp'.",
                               error);
    }
    if (!begins_with(parameters, (size_t)(end - parameters), BASE64)) {
        return fm_reject_value(at, "Expected ';base64,' after the media type.", error);
    }
    const char *data = parameters + strlen(BASE64);
    return fm_base64_valid(data, (size_t)(end - data)) ? FM_OK
                                                       : fm_reject_value(at, "Expected an image in base64.", error);
}

const char *fm_image_data(struct json_object *url, size_t *len) {
    const char *text = json_object_get_string(url);
    const char *end = text + json_object_get_string_len(url);
    const char *data = strchr(text, ',') + 1; /* a checked URL has a comma before its base64 */
    *len = (size_t)(end - data);
    return data;
}

void fm_image_note(struct fm_buf *params, const char *list, size_t entry, size_t part) {
    char param[96];
    int len = snprintf(param, sizeof param, "%s[%zu].content[%zu]", list, entry, part);
    fm_buf_append(params, param, (size_t)len + 1);
}

bool fm_request_image_param(const struct fm_request *request, size_t index, const char *member,
                            struct fm_error *error) {
    const struct fm_buf *params = &request->image_params;
    for (size_t at = 0; at < params->len; at += strlen(params->data + at) + 1) {
        if (index-- == 0) {
            snprintf(error->param, sizeof error->param, "%s%s", params->data + at, member);
            return true;
        }
    }
    return false;
}
