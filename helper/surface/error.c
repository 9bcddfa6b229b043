/* Writes errors as OpenAI's API has them: each code's status, type and `code`. PROTOCOL.md, "Errors". */
#include "surface/answer.h"

#include <stdio.h>
#include <string.h>

static const struct {
    int status;
    const char *type;
    const char *code; /* for errors without a reason */
} errors[] = {
    [FM_OK] = {500, "server_error", "server_error"}, /* no error has this code */
    /* Clients repeat a request by themselves after a 503, while their user waits. */
    [FM_UNAVAILABLE] = {404, "server_error", "model_unavailable"},
    [FM_TIMEOUT] = {408, "timeout_error", "timeout"},
    [FM_CANCELLED] = {499, "cancelled", "cancelled"},
    [FM_INTERNAL] = {500, "server_error", "server_error"},
    [FM_INVALID_REQUEST] = {400, "invalid_request_error", "invalid_value"},
    [FM_NOT_FOUND] = {404, "invalid_request_error", "model_not_found"},
    [FM_CONTEXT_OVERFLOW] = {400, "invalid_request_error", "context_length_exceeded"},
    [FM_RATE_LIMITED] = {429, "rate_limit_error", "rate_limit_exceeded"},
    [FM_OVERLOADED] = {503, "server_error", "overloaded"},
    [FM_GUARDRAIL] = {400, "invalid_request_error", "content_filter"},
};

/*
 * OpenAI's `code` for an error: the error's reason, if it has one. NULL if OpenAI has no code for the error; the reason
 * "" stands for that.
 */
static const char *openai_code(const struct fm_error *error) {
    const char *code = error->reason ? error->reason : errors[error->code].code;
    return *code ? code : NULL;
}

void fm_openai_error_fields(const struct fm_error *error, struct fm_json_writer *w) {
    /* Clients recognize an overflow by these words. */
    static const char words[] = "maximum context length";
    static const char sentence[] = "The prompt is beyond the model's maximum context length: ";
    bool add = error->code == FM_CONTEXT_OVERFLOW && !strstr(error->detail, words);
    char message[sizeof sentence + sizeof error->detail];
    int len = snprintf(message, sizeof message, "%s%s", add ? sentence : "", error->detail);
    fm_json_key_str(w, "code", openai_code(error));
    fm_json_key(w, "message");
    fm_json_string(w, message, (size_t)len);
    fm_json_key_str(w, "param", error->param[0] ? error->param : NULL);
}

void fm_openai_error_write(const struct fm_error *error, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", errors[error->code].type);
    fm_openai_error_fields(error, w);
    fm_json_object_end(w);
}

enum fm_code fm_openai_error_code(const char *type) {
    size_t code = FM_OK + 1;
    while (code < sizeof errors / sizeof errors[0] && strcmp(errors[code].type, type) != 0) {
        code++;
    }
    return code < sizeof errors / sizeof errors[0] ? (enum fm_code)code : FM_INTERNAL;
}

void fm_error_write(const struct fm_error *error, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "code", fm_code_name(error->code));
    fm_json_key_str(w, "detail", error->detail);
    if (error->limit) {
        fm_json_key_str(w, "limit", error->limit);
        fm_json_key_int(w, "limit_ms", error->limit_ms);
    }
    if (error->reason_code[0]) {
        fm_json_key_str(w, "reason_code", error->reason_code);
    }
    if (error->retry_ms > 0) {
        fm_json_key_int(w, "retry_after_ms", error->retry_ms);
    }
    fm_json_key(w, "openai");
    fm_json_object_begin(w);
    fm_json_key_int(w, "status", errors[error->code].status);
    fm_json_key_str(w, "type", errors[error->code].type);
    fm_openai_error_fields(error, w);
    fm_json_object_end(w);
    fm_json_object_end(w);
}
