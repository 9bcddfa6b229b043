/* Writes chat completions, as OpenAI defined them and most servers accept them. */
#include "engine/remote/request.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

/* Writes the text of a message from `from` to `to` as a part. */
static void write_text_part(struct fm_json_writer *w, const struct fm_message *message, size_t from, size_t to) {
    if (to > from) {
        fm_json_object_begin(w);
        fm_json_key_str(w, "type", "text");
        fm_json_key(w, "text");
        fm_json_string(w, message->content + from, to - from);
        fm_json_object_end(w);
    }
}

static void write_image_part(struct fm_body *body, const struct fm_image *image) {
    struct fm_json_writer *w = &body->w;
    char before[64];
    snprintf(before, sizeof before, "data:%s;base64,", fm_image_type(image));
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "image_url");
    fm_json_key(w, "image_url");
    fm_json_object_begin(w);
    fm_json_key(w, "url");
    fm_body_base64(body, before, image);
    if (image->detail) {
        fm_json_key_str(w, "detail", image->detail);
    }
    fm_json_object_end(w);
    fm_json_object_end(w);
}

static void write_content(struct fm_body *body, const struct fm_message *message) {
    struct fm_json_writer *w = &body->w;
    size_t at = 0;
    fm_json_key(w, "content");
    if (message->image_count == 0) {
        fm_json_string(w, message->content, message->content_len);
        return;
    }
    fm_json_array_begin(w);
    for (size_t i = 0; i < message->image_count; i++) {
        write_text_part(w, message, at, message->images[i].at);
        write_image_part(body, &message->images[i]);
        at = message->images[i].at;
    }
    write_text_part(w, message, at, message->content_len);
    fm_json_array_end(w);
}

static void write_calls(struct fm_json_writer *w, const struct fm_message *message) {
    fm_json_key(w, "tool_calls");
    fm_json_array_begin(w);
    for (size_t i = 0; i < message->tool_call_count; i++) {
        const struct fm_tool_call *call = &message->tool_calls[i];
        fm_json_object_begin(w);
        fm_json_key_str(w, "id", call->id);
        fm_json_key_str(w, "type", "function");
        fm_json_key(w, "function");
        fm_json_object_begin(w);
        fm_json_key_str(w, "name", call->name);
        fm_json_key(w, "arguments");
        fm_json_string(w, call->arguments, call->arguments_len);
        fm_json_object_end(w);
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}

/*
 * Writes the reasoning. Servers name this member differently. A state of an earlier answer has the name that this
 * server uses.
 */
static void write_reasoning(struct fm_body *body, const struct fm_message *message) {
    struct json_object *states = fm_body_states(body, message);
    struct json_object *item = states ? json_object_array_get_idx(states, 0) : NULL;
    const char *field = json_object_is_type(item, json_type_string) ? json_object_get_string(item) : NULL;
    if (message->reasoning_len > 0) {
        fm_json_key(&body->w, field && strcmp(field, "reasoning") == 0 ? "reasoning" : "reasoning_content");
        fm_json_string(&body->w, message->reasoning, message->reasoning_len);
    }
    json_object_put(states);
}

static void write_messages(struct fm_body *body) {
    struct fm_json_writer *w = &body->w;
    fm_body_key(body, "messages");
    fm_json_array_begin(w);
    for (size_t i = 0; i < body->job->message_count; i++) {
        const struct fm_message *message = &body->job->messages[i];
        fm_json_object_begin(w);
        fm_json_key_str(w, "role", message->role);
        if (message->tool_call_count > 0 && message->content_len == 0) {
            fm_json_key_null(w, "content");
        } else {
            write_content(body, message);
        }
        write_reasoning(body, message);
        if (message->tool_call_count > 0) {
            write_calls(w, message);
        }
        if (message->tool_call_id) {
            fm_json_key_str(w, "tool_call_id", message->tool_call_id);
        }
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}

static void write_tool(const struct fm_tool *tool, struct fm_json_writer *w) {
    fm_json_key_str(w, "type", "function");
    fm_json_key(w, "function");
    fm_json_object_begin(w);
    fm_body_tool_name(tool, w);
    if (tool->parameters) {
        fm_json_key_value(w, "parameters", tool->parameters);
    }
    if (tool->strict) {
        fm_json_key_bool(w, "strict", true);
    }
    fm_json_object_end(w);
}

static void write_tool_choice(struct fm_body *body) {
    static const char *const words[] = {
        [FM_TOOLS_AUTO] = "auto", [FM_TOOLS_REQUIRED] = "required", [FM_TOOLS_NONE] = "none"};
    struct fm_json_writer *w = &body->w;
    const struct fm_tool *only = fm_body_only_tool(body);
    fm_body_key(body, "tool_choice");
    if (!only || body->job->tool_count == 1) { /* for one tool, "required" means the same, and more servers know it */
        fm_json_str(w, words[body->job->tool_mode]);
    } else {
        fm_json_object_begin(w);
        fm_json_key_str(w, "type", "function");
        fm_json_key(w, "function");
        fm_json_object_begin(w);
        fm_json_key_str(w, "name", only->name);
        fm_json_object_end(w);
        fm_json_object_end(w);
    }
    if (!body->job->parallel_tool_calls) {
        fm_body_key(body, "parallel_tool_calls");
        fm_json_bool(w, false);
    }
}

static void write_format(struct fm_body *body) {
    struct fm_json_writer *w = &body->w;
    const struct fm_format *format = &body->job->format;
    if (format->kind == FM_FORMAT_TEXT) {
        return;
    }
    fm_body_key(body, "response_format");
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", format->kind == FM_FORMAT_JSON_OBJECT ? "json_object" : "json_schema");
    if (format->kind == FM_FORMAT_JSON_SCHEMA) {
        fm_json_key(w, "json_schema");
        fm_json_object_begin(w);
        fm_json_key_str(w, "name", "answer");
        fm_json_key_value(w, "schema", format->schema);
        fm_json_key_bool(w, "strict", format->strict);
        fm_json_object_end(w);
    }
    fm_json_object_end(w);
}

static void write_int(struct fm_body *body, const char *key, int64_t value) {
    fm_body_key(body, key);
    fm_json_int(&body->w, value);
}

static void write_biases(struct fm_body *body) {
    const struct fm_kit_job *job = body->job;
    if (job->logit_bias_count == 0) {
        return;
    }
    fm_body_key(body, "logit_bias");
    fm_json_object_begin(&body->w);
    for (size_t i = 0; i < job->logit_bias_count; i++) {
        char token[24];
        bool again = false; /* if a token comes twice, its last bias counts */
        for (size_t j = i + 1; j < job->logit_bias_count; j++) {
            again |= job->logit_biases[j].token == job->logit_biases[i].token;
        }
        if (!again) {
            snprintf(token, sizeof token, "%d", (int)job->logit_biases[i].token);
            fm_json_key_double(&body->w, token, job->logit_biases[i].bias);
        }
    }
    fm_json_object_end(&body->w);
}

static void write_stops(struct fm_body *body) {
    if (body->job->stop_count == 0) {
        return;
    }
    fm_body_key(body, "stop");
    fm_json_array_begin(&body->w);
    for (size_t i = 0; i < body->job->stop_count; i++) {
        fm_json_string(&body->w, body->job->stops[i].text, body->job->stops[i].len);
    }
    fm_json_array_end(&body->w);
}

/* Writes how tokens are drawn. Parameters that OpenAI lacks have the name that most servers use. */
static void write_sampling(struct fm_body *body) {
    const struct fm_kit_job *job = body->job;
    fm_body_sampling(body, ~FM_PARAM_BIT(TOP_K));
    if (job->has_seed) {
        write_int(body, "seed", job->seed);
    }
    write_biases(body);
    if (job->named[FM_PARAM_TOP_K]) {
        bool all = !fm_kit_job_asks(job, FM_PARAM_TOP_K); /* SGLang refuses 0 */
        write_int(body, "top_k", all ? -1 : (int64_t)job->sampling[FM_PARAM_TOP_K]);
    }
    if (job->named[FM_PARAM_REPEAT_PENALTY]) { /* the name for vLLM and SGLang; llama.cpp's was sent above */
        fm_body_key(body, "repetition_penalty");
        fm_json_double(&body->w, job->sampling[FM_PARAM_REPEAT_PENALTY]);
    }
    if (job->logprobs) {
        fm_body_key(body, "logprobs");
        fm_json_bool(&body->w, true);
        if (job->top_logprobs > 0) { /* 0 is the default; if sent, llama.cpp's server sends no log probabilities */
            write_int(body, "top_logprobs", (int64_t)job->top_logprobs);
        }
    }
}

enum fm_code fm_request_chat(struct fm_body *body) {
    const struct fm_kit_job *job = body->job;
    const char *summary = fm_body_passed(body, FM_PASSED_REASONING_SUMMARY);
    if (summary && strcmp(summary, "concise") == 0) {
        return fm_body_refuse(body, "reasoning_summary",
                              "the server's API (chat) has no summaries: thoughts are told whole");
    }
    struct json_object *options = json_object_new_object();
    write_messages(body);
    if (fm_body_has_tools(body)) {
        fm_body_tools(body, write_tool);
        write_tool_choice(body);
    }
    write_format(body);
    write_sampling(body);
    write_stops(body);
    if (job->max_tokens > 0) {
        write_int(body, "max_tokens", job->max_tokens);
    }
    if (fm_body_effort(body)) {
        fm_body_key(body, "reasoning_effort");
        fm_json_str(&body->w, fm_body_effort(body));
    }
    fm_body_pass(body, FM_PASSED_VERBOSITY, "verbosity");
    fm_body_pass_all(body);
    fm_body_key(body, "stream");
    fm_json_bool(&body->w, true);
    if (options) {
        json_object_object_add(options, "include_usage", json_object_new_boolean(true));
    }
    fm_body_object(body, "stream_options", options);
    return FM_OK;
}
