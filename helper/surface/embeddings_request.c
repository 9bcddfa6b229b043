/* The body of embeddings.create: PROTOCOL.md, "embeddings.create". */
#include "surface/request.h"

#include <json-c/json.h>

static const char *const formats[] = {"float", "base64", NULL};

static bool is_token_ids(struct json_object *value) {
    return json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_array);
}

static enum fm_code check_text(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                               struct fm_error *error) {
    if (is_token_ids(value)) {
        return fm_reject_unsupported_value(at, "Send texts instead: token ids mean something else to each model.",
                                           error);
    }
    return fm_check_string(rule, value, at, error);
}

static enum fm_code check_input(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                struct fm_error *error) {
    return fm_check_one_or_more(check_text, rule, FM_INPUTS_MAX, value, at, error);
}

const struct fm_rule fm_embeddings_rules[] = {
    {.name = "model", .check = fm_check_model},
    {.name = "input", .check = check_input, .min = 1, .required = true},
    {.name = "encoding_format", .check = fm_check_enum, .words = formats},
    {.name = "dimensions", .check = fm_check_int, .min = 1, .max = INT32_MAX},
    {.name = "user", .check = fm_check_string},
    {.name = "fm", .check = fm_check_object, .members = fm_common_fm_rules, .closed = true},
    {0},
};

static void write_inputs(struct json_object *input, struct fm_json_writer *w) {
    bool listed = json_object_is_type(input, json_type_array);
    size_t count = listed ? json_object_array_length(input) : 1;
    fm_json_key(w, "embed");
    fm_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        fm_json_value(w, listed ? json_object_array_get_idx(input, i) : input);
    }
    fm_json_array_end(w);
}

enum fm_code fm_embeddings_read(struct json_object *body, const struct fm_ignored *ignored, struct fm_request *request,
                                struct fm_error *error) {
    static const struct fm_param_name list_params[] = {{"embed", "input"}, {0}};
    static const struct fm_param_name text_params[] = {{"embed[0]", "input"}, {"embed", "input"}, {0}};
    fm_request_begin(request, body, ignored);
    struct json_object *input = json_object_object_get(body, "input");
    bool listed = json_object_is_type(input, json_type_array);
    request->repeatable = false; /* every vector is repeatable anyway */
    request->format_params = listed ? list_params : text_params;
    request->input_count = listed ? json_object_array_length(input) : 1;
    request->dimensions = json_object_get_int64(json_object_object_get(body, "dimensions"));
    request->base64 = fm_string_is(json_object_object_get(body, "encoding_format"), "base64");
    struct fm_json_writer job = fm_json_writer_on(&request->job_members);
    write_inputs(input, &job);
    return fm_request_end(request, error);
}
