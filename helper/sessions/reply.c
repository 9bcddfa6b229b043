/* Turns the front's reply to responses.create into an answer of session mode, or into a fault. */
#include "sessions/reply.h"
#include "base/error.h"
#include "base/utf8.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

static struct json_object *reply_member(struct json_object *object, const char *name) {
    struct json_object *value = NULL;
    if (json_object_is_type(object, json_type_object)) {
        json_object_object_get_ex(object, name, &value);
    }
    return value;
}

static const char *string_member(struct json_object *object, const char *name) {
    struct json_object *value = reply_member(object, name);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

/* ---- what went wrong ---- */

static enum fm_fault_code fail_as(enum fm_code code, const char *detail, struct fm_fault *fault) {
    switch (code) {
    case FM_GUARDRAIL: return fm_fault_fill(fault, FM_FAULT_GUARDRAIL_BLOCKED, "%s", detail);
    case FM_UNAVAILABLE:
    case FM_NOT_FOUND: /* the model was not found; a session names nothing else that could be missing */
        return fm_fault_fill(fault, FM_FAULT_MODEL_UNAVAILABLE, "%s", detail);
    case FM_CONTEXT_OVERFLOW: return fm_fault_fill(fault, FM_FAULT_EXECUTION_FAILED, "context full: %s", detail);
    default: return fm_fault_fill(fault, FM_FAULT_EXECUTION_FAILED, "%s", detail);
    }
}

static enum fm_fault_code read_failure(const struct fm_rpc_message *reply, struct fm_fault *fault) {
    struct json_object *error = reply_member(reply->result, "error");
    if (!error) { /* a JSON-RPC error: the front could not read what we wrote */
        return fm_fault_fill(fault, FM_FAULT_EXECUTION_FAILED, "%s", string_member(reply->error, "message"));
    }
    enum fm_code code = fm_code_parse(string_member(error, "code"));
    enum fm_fault_code told = fail_as(code, string_member(error, "detail"), fault);
    fault->quotes =
        code == FM_INVALID_REQUEST || code == FM_INTERNAL; /* a grammar's or template's error may quote a text */
    return told;
}

/* Reports an answer that was cut. */
static enum fm_fault_code fail_incomplete(struct json_object *response, int64_t max_output_tokens,
                                          struct fm_turn_result *result, struct fm_fault *fault) {
    const char *reason = string_member(reply_member(response, "incomplete_details"), "reason");
    if (strcmp(reason, "content_filter") == 0) {
        return fm_fault_fill(fault, FM_FAULT_GUARDRAIL_BLOCKED, "the engine's filter ended the answer");
    }
    if (result->output_tokens < max_output_tokens) {
        return fm_fault_fill(
            fault, FM_FAULT_EXECUTION_FAILED,
            "context full: %lld input tokens left room for %lld output tokens, and the answer has more; open a new "
            "session, or send less",
            (long long)result->input_tokens, (long long)result->output_tokens);
    }
    result->ran_on = true;
    return fm_fault_fill(fault, FM_FAULT_EXECUTION_FAILED,
                         "the answer has more than %lld tokens: ask for a shorter one, or raise --max-output-tokens",
                         (long long)max_output_tokens);
}

/* ---- the answer ---- */

static int64_t int_member(struct json_object *object, const char *name) {
    struct json_object *value = reply_member(object, name);
    return json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : 0;
}

static void read_usage(struct json_object *response, struct fm_turn_result *result) {
    struct json_object *usage = reply_member(response, "usage");
    result->input_tokens = int_member(usage, "input_tokens");
    result->cached_tokens = int_member(reply_member(usage, "input_tokens_details"), "cached_tokens");
    result->output_tokens = int_member(usage, "output_tokens");
}

/*
 * Returns the text of the last message of the output; if the model refused, the text of the refusal. Reasoning may come
 * before and after it.
 */
static struct fm_text find_answer(struct json_object *response) {
    struct json_object *output = reply_member(response, "output");
    size_t left = json_object_is_type(output, json_type_array) ? json_object_array_length(output) : 0;
    struct json_object *text = NULL;
    while (left-- > 0 && !text) {
        struct json_object *content = reply_member(json_object_array_get_idx(output, left), "content");
        struct json_object *part =
            json_object_is_type(content, json_type_array) ? json_object_array_get_idx(content, 0) : NULL;
        bool refuses = reply_member(part, "refusal") != NULL;
        struct json_object *type = reply_member(part, "type");
        const char *word = json_object_is_type(type, json_type_string) ? json_object_get_string(type) : "";
        bool reasoning = strcmp(word, "reasoning_text") == 0;
        text = reasoning ? NULL : reply_member(part, refuses ? "refusal" : "text");
    }
    if (!json_object_is_type(text, json_type_string)) {
        return (struct fm_text){.data = "", .len = 0};
    }
    return (struct fm_text){json_object_get_string(text), (size_t)json_object_get_string_len(text)};
}

static bool is_string_list(struct json_object *value) {
    if (!json_object_is_type(value, json_type_array)) {
        return false;
    }
    size_t count = json_object_array_length(value);
    for (size_t i = 0; i < count; i++) {
        if (!json_object_is_type(json_object_array_get_idx(value, i), json_type_string)) {
            return false;
        }
    }
    return true;
}

/* the schema demands this, but an engine may not enforce the schema */
static bool has_shape(struct json_object *value, enum fm_output_format format) {
    return format == FM_OUTPUT_TEXT ? json_object_is_type(value, json_type_string) : is_string_list(value);
}

static enum fm_fault_code read_value(enum fm_output_format format, struct fm_buf *scratch,
                                     struct fm_turn_result *result, struct fm_fault *fault) {
    size_t offset;
    struct json_object *root = NULL;
    const char *wrong = fm_json_check(result->answer.data, result->answer.len, FM_JSON_VALUES_MAX, &offset);
    if (wrong == fm_json_too_many) {
        return fm_fault_fill(fault, FM_FAULT_EXECUTION_FAILED, "the answer has more than %d values",
                             FM_JSON_VALUES_MAX);
    }
    if (!wrong && !fm_json_tree(result->answer.data, result->answer.len, scratch, &root)) {
        return fm_fault_fill(fault, FM_FAULT_EXECUTION_FAILED, "out of memory");
    }
    struct json_object *value = reply_member(root, "result");
    if (has_shape(value, format)) {
        result->value = json_object_get(value);
    }
    json_object_put(root);
    return result->value ? FM_FAULT_NONE
                         : fm_fault_fill(fault, FM_FAULT_EXECUTION_FAILED,
                                         "the engine's answer does not match its schema: send the message again");
}

enum fm_fault_code fm_reply_read_turn(const struct fm_rpc_message *reply, enum fm_output_format format,
                                      int64_t max_output_tokens, struct fm_buf *scratch, struct fm_turn_result *result,
                                      struct fm_fault *fault) {
    *result = (struct fm_turn_result){.answer = {"", 0}};
    struct json_object *response = reply_member(reply->result, "response");
    read_usage(response, result);
    if (!json_object_get_boolean(reply_member(reply->result, "ok"))) {
        return read_failure(reply, fault);
    }
    if (strcmp(string_member(response, "status"), "completed") != 0) {
        return fail_incomplete(response, max_output_tokens, result, fault);
    }
    result->answer = find_answer(response);
    return read_value(format, scratch, result, fault);
}

void fm_turn_result_free(struct fm_turn_result *result) {
    json_object_put(result->value);
    result->value = NULL;
}

bool fm_reply_read_availability(const struct fm_rpc_message *reply, char *reason, size_t size) {
    if (json_object_get_boolean(reply_member(reply->result, "available"))) {
        reason[0] = '\0';
        return true;
    }
    const char *code = string_member(reply->result, "reason_code");
    const char *detail = string_member(reply->result, "detail");
    if (!code[0]) { /* the check itself failed */
        struct fm_fault fault;
        read_failure(reply, &fault);
        snprintf(reason, size, "HELPER_UNHEALTHY: %s", fault.detail);
    } else {
        snprintf(reason, size, "%s: %s", code, detail);
    }
    reason[fm_utf8_whole_prefix(reason, strlen(reason))] = '\0';
    return false;
}
