/*
 * Turns refusals and failed transfers into errors. A server's words are shown in one line, with all that looks like a
 * key masked.
 */
#include "engine/remote/failure.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "engine/remote/retry_after.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"
#include "protocol/params.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define WORDS_MAX 300 /* bytes of a server's own words that are shown */

/* The content of an error's body, if the body has one of the usual forms. */
struct words {
    const char *type;
    const char *code;
    const char *param;
    const char *message;
    int64_t status; /* an HTTP status, such as vLLM's `code`; 0: the body has none */
};

static const char *string_of(struct json_object *object, const char *key) {
    struct json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

/* Reads {"error":{...}}, {"error":"..."}, {"detail":"..."} or {...}; `object` may also be anything else. */
static struct words read_words(struct json_object *object) {
    struct json_object *inner = NULL;
    json_object_object_get_ex(object, "error", &inner);
    if (json_object_is_type(inner, json_type_string)) {
        return (struct words){.type = "", .code = "", .param = "", .message = json_object_get_string(inner)};
    }
    struct json_object *from = json_object_is_type(inner, json_type_object) ? inner : object;
    struct json_object *code = NULL;
    json_object_object_get_ex(from, "code", &code);
    int64_t status = json_object_is_type(code, json_type_int) ? json_object_get_int64(code) : 0;
    struct words words = {.type = string_of(from, "type"),
                          .code = string_of(from, "code"),
                          .param = string_of(from, "param"),
                          .message = string_of(from, "message"),
                          .status = status >= 400 && status <= 599 ? status : 0};
    words.message = *words.message ? words.message : string_of(from, "detail");
    return words;
}

static bool has_any(const char *text, const char *const *parts) {
    for (; *parts; parts++) {
        if (strcasestr(text, *parts)) {
            return true;
        }
    }
    return false;
}

static bool is_too_long(const struct words *words) {
    static const char *const codes[] = {"context_length_exceeded", "exceed_context_size", "string_above_max_length",
                                        "request_too_large", NULL};
    static const char *const messages[] = {"context length",
                                           "maximum context",
                                           "context window",
                                           "context size",
                                           "prompt is too long",
                                           "input is too long",
                                           NULL};
    return has_any(words->code, codes) || has_any(words->type, codes) || has_any(words->message, messages);
}

static bool is_filtered(const struct words *words) {
    static const char *const codes[] = {"content_filter", "content_policy", "responsibleaipolicy", "safety_violation",
                                        NULL};
    return has_any(words->code, codes) || has_any(words->type, codes);
}

static bool is_quota(const struct words *words) {
    static const char *const codes[] = {"insufficient_quota", "billing", "quota_exceeded", NULL};
    return has_any(words->code, codes) || has_any(words->type, codes);
}

static bool is_unknown_model(const struct words *words) {
    static const char *const codes[] = {"model_not_found", NULL};
    return has_any(words->code, codes);
}

/* The job's member that a server's `param` refers to; "": it refers to no member, or to an unknown one. */
static const char *job_param(const char *param) {
    static const struct {
        const char *theirs;
        const char *ours;
    } names[] = {
        {"max_tokens", "max_tokens"},
        {"max_output_tokens", "max_tokens"},
        {"max_completion_tokens", "max_tokens"},
        {"repetition_penalty", "repeat_penalty"},
        {"seed", "seed"},
        {"stop", "stop"},
        {"stop_sequences", "stop"},
        {"logit_bias", "logit_bias"},
        {"logprobs", "logprobs"},
        {"top_logprobs", "logprobs"},
        {"response_format", "format"},
        {"text.format", "format"},
        {"output_config.format", "format"},
        {"reasoning_effort", "reasoning.effort"},
        {"reasoning.effort", "reasoning.effort"},
        {"tools", "tools"},
        {"tool_choice", "tool_choice"},
    };
    int sampling = fm_param_find(param);
    if (sampling >= 0) {
        return fm_params[sampling].name;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].theirs, param) == 0) {
            return names[i].ours;
        }
    }
    return strncmp(param, "response_format", 15) == 0 || strncmp(param, "text.format", 11) == 0 ? "format" : "";
}

/* Builds "HOST answered WHAT: WORDS", with the words in one line and without secrets. */
static enum fm_code fail_with_words(struct fm_error *error, enum fm_code code, const char *host, const char *what,
                                    const char *words, const struct fm_secrets *secrets) {
    char shown[WORDS_MAX + 1];
    int len = fm_utf8_shown(words, WORDS_MAX);
    snprintf(shown, sizeof shown, "%.*s", len, words);
    fm_secrets_mask(secrets, shown, strlen(shown));
    for (char *at = shown; *at; at++) {
        *at = (unsigned char)*at < 0x20 || *at == 0x7f ? ' ' : *at;
    }
    (void)fm_fail(error, code, "%s %s%s%s", host, what, *shown ? ": " : "", shown);
    return code;
}

static enum fm_code with_reason(struct fm_error *error, const char *reason) {
    snprintf(error->reason_code, sizeof error->reason_code, "%s", reason);
    return error->code;
}

/* The meaning of a status when the server's words say nothing more. */
static const struct status {
    long from;
    long to;
    enum fm_code code;
    const char *reason;
    enum { HERE, ELSEWHERE, AGAIN, UNTAKEN } where; /* where the request may succeed */
} statuses[] = {
    {401, 401, FM_UNAVAILABLE, "AUTH_FAILED", HERE},
    {402, 402, FM_UNAVAILABLE, "QUOTA", HERE},
    {403, 403, FM_UNAVAILABLE, "AUTH_FAILED", HERE},
    {404, 404, FM_NOT_FOUND, "", ELSEWHERE},
    {407, 407, FM_UNAVAILABLE, "AUTH_FAILED", HERE},
    {408, 408, FM_OVERLOADED, "", HERE},
    {409, 409, FM_OVERLOADED, "", HERE},
    {413, 413, FM_CONTEXT_OVERFLOW, "", ELSEWHERE},
    {425, 425, FM_OVERLOADED, "", HERE},
    {429, 429, FM_RATE_LIMITED, "", HERE},
    {400, 499, FM_INVALID_REQUEST, "", HERE},
    {500, 500, FM_OVERLOADED, "", AGAIN}, /* routers send these three when a worker died */
    {502, 502, FM_OVERLOADED, "", UNTAKEN}, /* the worker was gone before it took the request */
    {504, 504, FM_OVERLOADED, "", AGAIN},
    {501, 501, FM_INVALID_REQUEST, "", ELSEWHERE},
    {503, 599, FM_OVERLOADED, "", HERE},
};

static enum fm_code by_status(const char *host, long status, const char *what, const struct words *words,
                              const struct fm_secrets *secrets, struct fm_error *error) {
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        const struct status *row = &statuses[i];
        if (status >= row->from && status <= row->to) {
            (void)fail_with_words(error, row->code, host, what, words->message, secrets);
            error->elsewhere = row->where == ELSEWHERE;
            error->untaken = row->where == UNTAKEN;
            error->again = row->where == AGAIN || error->untaken;
            return with_reason(error, row->reason);
        }
    }
    return fail_with_words(error, FM_INTERNAL, host, what, words->message, secrets);
}

/* The meaning of the server's words, whatever the status is. FM_OK: they have no special meaning. */
static enum fm_code by_words(const char *host, const struct words *words, const struct fm_secrets *secrets,
                             struct fm_error *error) {
    if (is_too_long(words)) {
        (void)fail_with_words(error, FM_CONTEXT_OVERFLOW, host, "says that the input is too long", words->message,
                              secrets);
        error->elsewhere = true;
        return error->code;
    }
    if (is_filtered(words)) {
        return fail_with_words(error, FM_GUARDRAIL, host, "filters the content", words->message, secrets);
    }
    if (is_quota(words)) {
        (void)fail_with_words(error, FM_UNAVAILABLE, host, "says that the quota is used up", words->message, secrets);
        return with_reason(error, "QUOTA");
    }
    if (is_unknown_model(words)) {
        (void)fail_with_words(error, FM_NOT_FOUND, host, "does not have this model", words->message, secrets);
        error->elsewhere = true;
        return error->code;
    }
    return FM_OK;
}

static enum fm_code redirect(const struct fm_refusal *refusal, const struct fm_secrets *secrets,
                             struct fm_error *error) {
    char what[64];
    snprintf(what, sizeof what, "answered with a redirect (%ld), which is not followed", refusal->status);
    (void)fail_with_words(error, FM_UNAVAILABLE, refusal->host, what, refusal->location, secrets);
    return with_reason(error, "NOT_CONFIGURED");
}

static void read_retry_after(const struct fm_refusal *refusal, struct fm_error *error) {
    int64_t ms = fm_retry_after_ms(refusal->retry_after_ms);
    ms = ms >= 0 ? ms : fm_retry_after(refusal->retry_after, refusal->now);
    error->retry_ms = ms > 0 ? ms : 0;
    error->again &= error->retry_ms == 0;
}

enum fm_code fm_failure_of_status(const struct fm_refusal *refusal, const struct fm_secrets *secrets,
                                  struct fm_error *error) {
    struct json_object *object = NULL;
    struct fm_buf scratch;
    size_t offset;
    char what[48];
    snprintf(what, sizeof what, "answered with status %ld", refusal->status);
    if (refusal->status >= 300 && refusal->status < 400) {
        return redirect(refusal, secrets, error);
    }
    fm_buf_init(&scratch, FM_FAILURE_BODY_MAX);
    if (refusal->len > 0 && !fm_json_check(refusal->body, refusal->len, FM_JSON_VALUES_MAX, &offset)) {
        bool built = fm_json_tree(refusal->body, refusal->len, &scratch, &object);
        (void)built; /* if memory runs out, the status alone decides */
    }
    fm_buf_free(&scratch);
    struct words words = read_words(object);
    enum fm_code code = refusal->status >= 500 ? FM_OK : by_words(refusal->host, &words, secrets, error);
    code = code ? code : by_status(refusal->host, refusal->status, what, &words, secrets, error);
    if (code == FM_INVALID_REQUEST) {
        snprintf(error->param, sizeof error->param, "%s", job_param(words.param));
    }
    read_retry_after(refusal, error);
    json_object_put(object);
    return code;
}

enum fm_code fm_failure_of_event(const char *host, struct json_object *object, const struct fm_secrets *secrets,
                                 struct fm_error *error) {
    static const struct {
        const char *type;
        long status;
    } types[] = {
        {"invalid_request", 400}, {"authentication", 401},    {"billing", 402},     {"permission", 403},
        {"not_found", 404},       {"request_too_large", 413}, {"rate_limit", 429},  {"overloaded", 529},
        {"api_error", 500},       {"server_error", 500},      {"unavailable", 503}, {"timeout", 504},
    };
    static const char what[] = "ended the answer with an error";
    struct words words = read_words(object);
    enum fm_code code = by_words(host, &words, secrets, error);
    for (size_t i = 0; i < sizeof types / sizeof types[0] && code == FM_OK; i++) {
        if (strstr(words.type, types[i].type) || strstr(words.code, types[i].type)) {
            code = by_status(host, types[i].status, what, &words, secrets, error);
        }
    }
    long status = words.status ? (long)words.status : 500; /* routers have own types for a worker that died */
    return code ? code : by_status(host, status, what, &words, secrets, error);
}

/* Result codes of libcurl (curl/curl.h), which never change. */
enum {
    RESOLVE_PROXY = 5,
    RESOLVE_HOST = 6,
    CONNECT = 7,
    TIMED_OUT = 28,
    OUT_OF_MEMORY = 27,
    SSL_CONNECT = 35,
    BAD_ENCODING = 61,
    PROXY = 97,
};

static bool is_tls(int result) {
    static const int codes[] = {SSL_CONNECT, 53, 54, 58, 59, 60, 64, 66, 77, 80, 82, 83, 90, 91, 98};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i] == result) {
            return true;
        }
    }
    return false;
}

enum fm_code fm_failure_of_proxy(const char *host, long status, struct fm_error *error) {
    (void)fm_fail(error, FM_UNAVAILABLE, "the proxy does not let requests through to %s (status %ld)", host, status);
    return with_reason(error, "AUTH_FAILED");
}

enum fm_code fm_failure_of_transfer(const char *host, int result, const char *text, enum fm_transfer_phase phase,
                                    const struct fm_secrets *secrets, struct fm_error *error) {
    if (result == OUT_OF_MEMORY) {
        return fm_fail_no_memory(error);
    }
    if (is_tls(result) && phase == FM_PHASE_CONNECTING) {
        (void)fail_with_words(error, FM_UNAVAILABLE, host, "can't be trusted, or TLS failed", text, secrets);
        return with_reason(error, "TLS_FAILED");
    }
    if (result == BAD_ENCODING) {
        return fail_with_words(error, FM_INTERNAL, host, "sent an encoding that was not asked for", text, secrets);
    }
    if (phase == FM_PHASE_CONNECTING || result == RESOLVE_PROXY || result == RESOLVE_HOST || result == CONNECT ||
        result == PROXY) {
        (void)fail_with_words(error, FM_UNAVAILABLE, host, "can't be reached", text, secrets);
        return with_reason(error, "OFFLINE");
    }
    static const char *const words[][2] = {
        {"closed the connection without an answer", "did not begin to answer in time"},
        {"broke off the answer", "fell silent in the middle of the answer"},
    };
    const char *what = words[phase == FM_PHASE_ANSWERING][result == TIMED_OUT];
    (void)fail_with_words(error, FM_OVERLOADED, host, what, text, secrets);
    error->again = result != TIMED_OUT;
    return error->code;
}

bool fm_failure_moves_on(const struct fm_error *error) {
    return error->code == FM_UNAVAILABLE || error->code == FM_RATE_LIMITED || error->code == FM_OVERLOADED ||
           error->code == FM_INTERNAL || error->elsewhere;
}
