/* Writes OpenAI's Responses without its store: each request has the whole conversation, reasoning included. */
#include "engine/remote/request.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define SAMPLING                                                                                                       \
    (FM_PARAM_BIT(TEMPERATURE) | FM_PARAM_BIT(TOP_P) | FM_PARAM_BIT(PRESENCE_PENALTY) | FM_PARAM_BIT(FREQUENCY_PENALTY))

static enum fm_code refuse_what_is_missing(struct fm_body *body) {
    const struct fm_kit_job *job = body->job;
    const char *missing = job->has_seed           ? "seed"
                          : job->stop_count       ? "stop"
                          : job->logit_bias_count ? "logit_bias"
                                                  : fm_body_missing(body, SAMPLING);
    return missing ? fm_body_refuse(body, missing, "the server's API (Responses) has no such parameter") : FM_OK;
}

/* Writes the text of a message from `from` to `to` as a part. */
static void write_part(struct fm_json_writer *w, const char *type, const char *text, size_t len) {
    if (len > 0) {
        fm_json_object_begin(w);
        fm_json_key_str(w, "type", type);
        fm_json_key(w, "text");
        fm_json_string(w, text, len);
        fm_json_object_end(w);
    }
}

static void write_image(struct fm_body *body, const struct fm_image *image) {
    char before[64];
    snprintf(before, sizeof before, "data:%s;base64,", fm_image_type(image));
    fm_json_object_begin(&body->w);
    fm_json_key_str(&body->w, "type", "input_image");
    fm_json_key_str(&body->w, "detail", image->detail ? image->detail : "auto");
    fm_json_key(&body->w, "image_url");
    fm_body_base64(body, before, image);
    fm_json_object_end(&body->w);
}

/* Writes the text of a message, with its images. */
static void write_message_item(struct fm_body *body, const struct fm_message *message) {
    struct fm_json_writer *w = &body->w;
    const char *type = fm_body_is_role(message, "assistant") ? "output_text" : "input_text";
    size_t at = 0;
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "message");
    fm_json_key_str(w, "role", message->role);
    fm_json_key(w, "content");
    fm_json_array_begin(w);
    for (size_t i = 0; i < message->image_count; i++) {
        write_part(w, type, message->content + at, message->images[i].at - at);
        write_image(body, &message->images[i]);
        at = message->images[i].at;
    }
    write_part(w, type, message->content + at, message->content_len - at);
    fm_json_array_end(w);
    fm_json_object_end(w);
}

static void write_output(struct fm_json_writer *w, const struct fm_message *message) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "function_call_output");
    fm_json_key_str(w, "call_id", message->tool_call_id);
    fm_json_key(w, "output");
    fm_json_string(w, message->content, message->content_len);
    fm_json_object_end(w);
}

static void write_call(struct fm_json_writer *w, const struct fm_tool_call *call) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "function_call");
    fm_json_key_str(w, "call_id", call->id);
    fm_json_key_str(w, "name", call->name);
    fm_json_key(w, "arguments");
    fm_json_string(w, call->arguments, call->arguments_len);
    fm_json_object_end(w);
}

static void write_item(struct fm_body *body, const struct fm_message *message) {
    struct fm_json_writer *w = &body->w;
    struct json_object *states = fm_body_states(body, message);
    if (message->tool_call_id) {
        write_output(w, message);
        return;
    }
    for (size_t i = 0; states && i < json_object_array_length(states); i++) {
        fm_json_value(w, json_object_array_get_idx(states, i));
    }
    json_object_put(states);
    if (message->content_len > 0 || message->image_count > 0 || message->tool_call_count == 0) {
        write_message_item(body, message);
    }
    for (size_t i = 0; i < message->tool_call_count; i++) {
        write_call(w, &message->tool_calls[i]);
    }
}

static void write_tool(const struct fm_tool *tool, struct fm_json_writer *w) {
    fm_json_key_str(w, "type", "function");
    fm_body_tool_name(tool, w);
    if (tool->parameters) {
        fm_json_key_value(w, "parameters", tool->parameters);
    }
    fm_json_key_bool(w, "strict", tool->strict); /* in this dialect, true is the default */
}

static void write_tool_choice(struct fm_body *body) {
    static const char *const words[] = {
        [FM_TOOLS_AUTO] = "auto", [FM_TOOLS_REQUIRED] = "required", [FM_TOOLS_NONE] = "none"};
    struct fm_json_writer *w = &body->w;
    const struct fm_tool *only = fm_body_only_tool(body);
    fm_body_key(body, "tool_choice");
    if (!only || body->job->tool_count == 1) {
        fm_json_str(w, words[body->job->tool_mode]);
    } else {
        fm_json_object_begin(w);
        fm_json_key_str(w, "type", "function");
        fm_json_key_str(w, "name", only->name);
        fm_json_object_end(w);
    }
    if (!body->job->parallel_tool_calls) {
        fm_body_key(body, "parallel_tool_calls");
        fm_json_bool(w, false);
    }
}

/* Returns the format of the text; NULL: any text is allowed, or out of memory. */
static struct json_object *make_format(const struct fm_format *job) {
    bool schema = job->kind == FM_FORMAT_JSON_SCHEMA;
    struct json_object *format = job->kind == FM_FORMAT_TEXT ? NULL : json_object_new_object();
    if (!format) {
        return NULL;
    }
    json_object_object_add(format, "type", json_object_new_string(schema ? "json_schema" : "json_object"));
    if (schema) {
        json_object_object_add(format, "name", json_object_new_string("answer"));
        json_object_object_add(format, "schema", json_object_get(job->schema));
        json_object_object_add(format, "strict", json_object_new_boolean(job->strict));
    }
    return format;
}

/* Writes {"format"?,"verbosity"?}; the configuration may add members. */
static void write_text(struct fm_body *body) {
    struct json_object *verbosity = body->job->passed[FM_PASSED_VERBOSITY];
    struct json_object *format = make_format(&body->job->format);
    struct json_object *text = json_object_new_object();
    body->w.buf->failed |= !text || (!format && body->job->format.kind != FM_FORMAT_TEXT);
    if (!text || (!format && !verbosity)) {
        json_object_put(format);
        json_object_put(text);
        return;
    }
    if (format) {
        json_object_object_add(text, "format", format);
    }
    if (verbosity) {
        json_object_object_add(text, "verbosity", json_object_get(verbosity));
    }
    fm_body_object(body, "text", text);
}

/* Writes {"effort"?,"summary"?}. */
static void write_reasoning(struct fm_body *body) {
    struct json_object *summary = body->job->passed[FM_PASSED_REASONING_SUMMARY];
    const char *effort = fm_body_effort(body);
    if (!effort && !summary) {
        return;
    }
    struct json_object *reasoning = json_object_new_object();
    if (reasoning && effort) {
        json_object_object_add(reasoning, "effort", json_object_new_string(effort));
    }
    if (reasoning && summary) {
        json_object_object_add(reasoning, "summary", json_object_get(summary));
    }
    fm_body_object(body, "reasoning", reasoning);
}

static void write_include(struct fm_body *body) {
    fm_body_key(body, "include");
    fm_json_array_begin(&body->w);
    fm_json_str(&body->w, "reasoning.encrypted_content");
    if (body->job->logprobs) {
        fm_json_str(&body->w, "message.output_text.logprobs");
    }
    fm_json_array_end(&body->w);
    if (body->job->top_logprobs > 0) { /* 0 is the default; if sent, llama.cpp's server sends no log probabilities */
        fm_body_key(body, "top_logprobs");
        fm_json_int(&body->w, (int64_t)body->job->top_logprobs);
    }
}

static void write_options(struct fm_body *body) {
    const struct fm_kit_job *job = body->job;
    fm_body_sampling(body, SAMPLING);
    if (job->max_tokens > 0) {
        fm_body_key(body, "max_output_tokens");
        fm_json_int(&body->w, job->max_tokens);
    }
    write_reasoning(body);
    fm_body_pass_all(body);
    write_include(body);
    fm_body_key(body, "store");
    fm_json_bool(&body->w, false);
    fm_body_key(body, "stream");
    fm_json_bool(&body->w, true);
}

enum fm_code fm_request_responses(struct fm_body *body) {
    enum fm_code code = refuse_what_is_missing(body);
    if (code != FM_OK) {
        return code;
    }
    fm_body_key(body, "input");
    fm_json_array_begin(&body->w);
    for (size_t i = 0; i < body->job->message_count; i++) {
        write_item(body, &body->job->messages[i]);
    }
    fm_json_array_end(&body->w);
    if (fm_body_has_tools(body)) {
        fm_body_tools(body, write_tool);
        write_tool_choice(body);
    }
    write_text(body);
    write_options(body);
    return FM_OK;
}
