/* Builds the body of a request in the endpoint's dialect. Requests for vectors are the same in all dialects. */
#include "engine/remote/request.h"

static const struct dialect {
    const char *path;
    const char *embed_path; /* NULL: the dialect can't embed */
    enum fm_code (*write)(struct fm_body *body);
} dialects[] = {
    [FM_DIALECT_RESPONSES] = {"/responses", "/embeddings", fm_request_responses},
    [FM_DIALECT_CHAT] = {"/chat/completions", "/embeddings", fm_request_chat},
    [FM_DIALECT_MESSAGES] = {"/messages", NULL, fm_request_messages},
};

const char *fm_request_path(const struct fm_endpoint *endpoint, const struct fm_kit_job *job) {
    const struct dialect *dialect = &dialects[endpoint->dialect];
    return job->inputs ? dialect->embed_path : dialect->path;
}

/* ---- the whole body ---- */

static enum fm_code write_inputs(struct fm_body *body) {
    fm_body_key(body, "input");
    fm_json_array_begin(&body->w);
    for (size_t i = 0; i < body->job->input_count; i++) {
        fm_json_string(&body->w, body->job->inputs[i].text, body->job->inputs[i].len);
    }
    fm_json_array_end(&body->w);
    fm_body_key(body, "encoding_format"); /* base64: numbers as text would be four times as long */
    fm_json_str(&body->w, "base64");
    return FM_OK;
}

enum fm_code fm_request_write(const struct fm_endpoint *endpoint, const char *model, const struct fm_kit_job *job,
                              struct fm_buf *out, struct fm_error *error) {
    struct fm_body body = {.w = fm_json_writer_on(out), .endpoint = endpoint, .job = job, .error = error};
    const struct dialect *dialect = &dialects[endpoint->dialect];
    fm_request_maker(endpoint, model, body.maker);
    if (!fm_request_path(endpoint, job)) {
        return fm_body_refuse(&body, "embed", "the dialect \"messages\" has no embeddings");
    }
    fm_json_object_begin(&body.w);
    if (model) {
        fm_body_key(&body, "model");
        fm_json_str(&body.w, model);
    }
    enum fm_code code = job->inputs ? write_inputs(&body) : fm_body_check_images(&body);
    code = code || job->inputs ? code : dialect->write(&body);
    if (code != FM_OK) {
        return code;
    }
    fm_body_others(&body);
    fm_json_object_end(&body.w);
    return out->failed ? fm_fail(error, FM_OVERLOADED, "the request is longer than 64 MiB, or memory is short") : FM_OK;
}
