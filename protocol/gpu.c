/* The object `gpu` as JSON: written by engines, read by the front. */
#include "protocol/gpu.h"
#include "base/utf8.h"

#include <json-c/json.h>
#include <stdio.h>

void fm_gpu_write(const struct fm_gpu *gpu, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "device", gpu->device[0] ? gpu->device : NULL);
    fm_json_key_int(w, "layers", gpu->layers);
    fm_json_key_int(w, "total_layers", gpu->total_layers);
    fm_json_key_str(w, "detail", gpu->detail[0] ? gpu->detail : NULL);
    fm_json_object_end(w);
}

/* Reads a text; null becomes "". False: the member is neither. */
static bool read_text(struct json_object *object, const char *key, char *text, size_t size) {
    struct json_object *value = NULL;
    bool there = json_object_object_get_ex(object, key, &value);
    const char *read = value ? json_object_get_string(value) : "";
    snprintf(text, size, "%.*s", fm_utf8_shown(read, size - 1), read);
    return there && (!value || json_object_is_type(value, json_type_string));
}

static bool read_count(struct json_object *object, const char *key, int64_t *count) {
    struct json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    *count = json_object_get_int64(value);
    return json_object_is_type(value, json_type_int) && *count >= 0;
}

bool fm_gpu_read(struct json_object *object, struct fm_gpu *gpu) {
    bool device = read_text(object, "device", gpu->device, sizeof gpu->device);
    bool detail = read_text(object, "detail", gpu->detail, sizeof gpu->detail);
    return read_count(object, "layers", &gpu->layers) && read_count(object, "total_layers", &gpu->total_layers) &&
           device && detail;
}
