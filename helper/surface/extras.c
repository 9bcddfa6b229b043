/*
 * Extras: generation parameters that OpenAI's API lacks, and that an engine may not have. It is known only when the job
 * goes to the engine which extras the engine has, so a request keeps them apart from the other members of its job.
 */
#include "surface/request.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define OWN        (FM_PARAM_COUNT - FM_PARAM_FIRST_EXTRA) /* in fm_extra_names, the first ones */
#define PASSED(id) (OWN + FM_PASSED_##id)

/* False for a value (its JSON) that changes nothing, so that an engine without the extra already does what is asked. */
static bool asks(size_t extra, const char *value) {
    if (extra >= OWN) {
        return false;
    }
    enum fm_param param = (enum fm_param)(FM_PARAM_FIRST_EXTRA + extra);
    bool flag = fm_params[param].kind == FM_PARAM_BOOL;
    return fm_param_asks(param, flag ? strcmp(value, "true") == 0 : strtod(value, NULL));
}

/* An extra is stored as its index in fm_extra_names, a byte, and its value in JSON, which ends with a NUL. */
static void note_extra(struct fm_request *request, size_t extra, struct json_object *value) {
    struct fm_json_writer w = fm_json_writer_on(&request->extras);
    if (value) {
        fm_buf_append_char(&request->extras, (char)extra);
        fm_json_value(&w, value);
        fm_buf_append_char(&request->extras, '\0');
    }
}

static void note_members(struct fm_request *request, struct json_object *body, size_t first, size_t end) {
    for (size_t i = first; i < end; i++) {
        note_extra(request, i, json_object_object_get(body, fm_extra_names[i]));
    }
}

void fm_request_note_extras(struct fm_request *request, struct json_object *body) {
    note_members(request, body, 0, OWN);
}

void fm_request_note_passed(struct fm_request *request, struct json_object *body, struct json_object *verbosity,
                            struct json_object *summary) {
    note_extra(request, PASSED(VERBOSITY), verbosity);
    note_extra(request, PASSED(REASONING_SUMMARY), summary);
    note_members(request, body, PASSED(SERVICE_TIER), FM_EXTRA_COUNT);
}

void fm_request_write_extras(struct fm_request *request, unsigned has, struct fm_json_writer *w) {
    const struct fm_buf *extras = &request->extras;
    for (size_t at = 0; at < extras->len;) {
        size_t extra = (unsigned char)extras->data[at];
        const char *value = extras->data + at + 1;
        at += 1 + strlen(value) + 1;
        if (has & 1u << extra) {
            fm_json_key(w, fm_extra_names[extra]);
            fm_json_raw(w, value, strlen(value));
        } else if (asks(extra, value)) {
            fm_ignored_append(&request->ignored, fm_extra_names[extra]);
        }
    }
    if (request->unstored) {
        fm_ignored_append(&request->ignored, "store");
    }
}
