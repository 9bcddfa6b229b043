/* Writes requests of Anthropic's Messages. */
#include "engine/remote/request.h"
#include "protocol/json_check.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTHING_SAID "." /* servers refuse an empty message, and want a user's message before each answer */

/* Returns the tier in the words of this dialect; "": the dialect has no such tier; NULL: the host named none. */
static const char *tier_of(const struct fm_body *body) {
    const char *tier = fm_body_passed(body, FM_PASSED_SERVICE_TIER);
    if (!tier || strcmp(tier, "auto") == 0) {
        return tier;
    }
    return strcmp(tier, "default") == 0 ? "standard_only" : "";
}

#define SAMPLING (FM_PARAM_BIT(TEMPERATURE) | FM_PARAM_BIT(TOP_P)) /* the dialect also has top_k, where 0 is not sent  \
                                                                    */

static enum fm_code refuse_what_is_missing(struct fm_body *body) {
    const struct fm_kit_job *job = body->job;
    const char *verbosity = fm_body_passed(body, FM_PASSED_VERBOSITY);
    const char *summary = fm_body_passed(body, FM_PASSED_REASONING_SUMMARY);
    const char *missing = fm_body_missing(body, SAMPLING | FM_PARAM_BIT(TOP_K));
    const struct {
        bool used;
        const char *param;
    } rows[] = {
        {verbosity && strcmp(verbosity, "medium") != 0, "verbosity"},
        {summary && strcmp(summary, "concise") == 0, "reasoning_summary"},
        {tier_of(body) && !*tier_of(body), "service_tier"},
        {job->has_seed, "seed"},
        {job->logit_bias_count > 0, "logit_bias"},
        {job->logprobs, "logprobs"},
        {missing, missing},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].used) {
            return fm_body_refuse(body, rows[i].param, "the server's API (Messages) has no such parameter");
        }
    }
    return FM_OK;
}

/* Servers refuse texts that are only white space. */
static bool is_blank(const char *text, size_t len) {
    size_t at = 0;
    while (at < len && strchr(" \t\r\n", text[at]) && text[at]) {
        at++;
    }
    return at == len;
}

static void write_text(struct fm_json_writer *w, const char *text, size_t len) {
    if (!is_blank(text, len)) {
        fm_json_object_begin(w);
        fm_json_key_str(w, "type", "text");
        fm_json_key(w, "text");
        fm_json_string(w, text, len);
        fm_json_object_end(w);
    }
}

static void write_image(struct fm_body *body, const struct fm_image *image) {
    struct fm_json_writer *w = &body->w;
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "image");
    fm_json_key(w, "source");
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "base64");
    fm_json_key_str(w, "media_type", fm_image_type(image));
    fm_json_key(w, "data");
    fm_body_base64(body, "", image);
    fm_json_object_end(w);
    fm_json_object_end(w);
}

/* Writes the input of a call. In this dialect it is an object, not text. */
static enum fm_code write_call(struct fm_body *body, const struct fm_tool_call *call, size_t message, size_t index) {
    struct fm_json_writer *w = &body->w;
    size_t offset;
    size_t blanks = strspn(call->arguments, " \t\r\n");
    bool empty = blanks == call->arguments_len;
    if (!empty && (call->arguments[blanks] != '{' ||
                   fm_json_check(call->arguments, call->arguments_len, FM_ENGINE_VALUES_MAX, &offset))) {
        char param[64];
        snprintf(param, sizeof param, "messages[%zu].tool_calls[%zu].arguments", message, index);
        return fm_body_refuse(body, param, "the server's API (Messages) takes only a JSON object as arguments");
    }
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "tool_use");
    fm_json_key_str(w, "id", call->id);
    fm_json_key_str(w, "name", call->name);
    fm_json_key(w, "input");
    fm_json_raw(w, empty ? "{}" : call->arguments, empty ? 2 : call->arguments_len);
    fm_json_object_end(w);
    return FM_OK;
}

static void write_output(struct fm_json_writer *w, const struct fm_message *message) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "tool_result");
    fm_json_key_str(w, "tool_use_id", message->tool_call_id);
    fm_json_key(w, "content");
    fm_json_string(w, message->content, message->content_len);
    fm_json_object_end(w);
}

/* Writes the reasoning first, with its signatures, exactly as it came. */
static enum fm_code write_blocks(struct fm_body *body, size_t index) {
    const struct fm_message *message = &body->job->messages[index];
    struct fm_json_writer *w = &body->w;
    struct json_object *states = fm_body_states(body, message);
    size_t at = 0;
    enum fm_code code = FM_OK;
    for (size_t i = 0; states && i < json_object_array_length(states); i++) {
        fm_json_value(w, json_object_array_get_idx(states, i));
    }
    json_object_put(states);
    if (message->tool_call_id) {
        write_output(w, message);
        return FM_OK;
    }
    for (size_t i = 0; i < message->image_count; i++) {
        write_text(w, message->content + at, message->images[i].at - at);
        write_image(body, &message->images[i]);
        at = message->images[i].at;
    }
    write_text(w, message->content + at, message->content_len - at);
    for (size_t i = 0; i < message->tool_call_count && code == FM_OK; i++) {
        code = write_call(body, &message->tool_calls[i], index, i);
    }
    return code;
}

/* ---- the order of the messages ---- */

/*
 * In this dialect turns of the user and of the assistant alternate. The user's turn comes first. The outputs of calls
 * begin the turn that follows the calls. OpenAI's dialects allow any order, so each message gets a place.
 */
struct place {
    size_t turn; /* even: the user's turn */
    bool output; /* the message is the output of a call */
    size_t index;
};

static bool is_assistant(const struct fm_message *message) {
    return fm_body_is_role(message, "assistant");
}

/* Whether the message would have a block. */
static bool says_something(const struct fm_body *body, const struct fm_message *message) {
    bool said = !is_blank(message->content, message->content_len) || message->image_count || message->tool_call_count;
    struct json_object *states = said ? NULL : fm_body_states(body, message);
    json_object_put(states);
    return said || states || message->tool_call_id;
}

/* Returns the turn after the last call with this id; `otherwise` if there is no such call. */
static size_t turn_of_output(const struct fm_kit_job *job, const struct place *places, size_t count, const char *id,
                             size_t otherwise) {
    for (size_t i = count; i-- > 0;) {
        const struct fm_message *message = &job->messages[places[i].index];
        for (size_t j = 0; j < message->tool_call_count; j++) {
            if (strcmp(message->tool_calls[j].id, id) == 0) {
                return places[i].turn + 1;
            }
        }
    }
    return otherwise;
}

static int compare_places(const void *a, const void *b) {
    const struct place *left = a;
    const struct place *right = b;
    if (left->turn != right->turn) {
        return left->turn < right->turn ? -1 : 1;
    }
    if (left->output != right->output) {
        return left->output ? -1 : 1;
    }
    return left->index < right->index ? -1 : 1;
}

/*
 * Fills `places` in the order of the dialect, without the system's messages and without the assistant's empty messages.
 */
static size_t find_places(const struct fm_body *body, struct place *places) {
    const struct fm_kit_job *job = body->job;
    size_t count = 0;
    size_t turn = 0;
    for (size_t i = 0; i < job->message_count; i++) {
        const struct fm_message *message = &job->messages[i];
        bool assistant = is_assistant(message);
        if (fm_body_is_role(message, "system") || (assistant && !says_something(body, message))) {
            continue;
        }
        bool output = message->tool_call_id != NULL;
        size_t own = turn + (turn % 2 != assistant);
        own = output ? turn_of_output(job, places, count, message->tool_call_id, own) : own;
        turn = own > turn ? own : turn;
        places[count++] = (struct place){.turn = own, .output = output, .index = i};
    }
    qsort(places, count, sizeof *places, compare_places);
    return count;
}

/* Writes all messages of a turn as one message. A turn in which the user says nothing still needs a text. */
static enum fm_code write_turn(struct fm_body *body, size_t turn, const struct place *places, size_t count) {
    struct fm_json_writer *w = &body->w;
    enum fm_code code = FM_OK;
    bool said = false;
    fm_json_object_begin(w);
    fm_json_key_str(w, "role", turn % 2 ? "assistant" : "user");
    fm_json_key(w, "content");
    fm_json_array_begin(w);
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        said |= says_something(body, &body->job->messages[places[i].index]);
        code = write_blocks(body, places[i].index);
    }
    if (!said) {
        write_text(w, NOTHING_SAID, sizeof NOTHING_SAID - 1);
    }
    fm_json_array_end(w);
    fm_json_object_end(w);
    return code;
}

/*
 * Whether a system message comes last, after an answer. Without a turn of the user the model would go on with that
 * answer.
 */
static bool lacks_last_turn(const struct fm_kit_job *job, size_t turns) {
    return turns % 2 == 0 && !is_assistant(&job->messages[job->message_count - 1]);
}

static enum fm_code write_messages(struct fm_body *body) {
    struct place *places = calloc(body->job->message_count + 1, sizeof *places);
    if (!places) {
        return fm_fail_no_memory(body->error);
    }
    size_t count = find_places(body, places);
    size_t turns = count ? places[count - 1].turn + 1 : 1;
    turns += lacks_last_turn(body->job, turns);
    enum fm_code code = FM_OK;
    fm_body_key(body, "messages");
    fm_json_array_begin(&body->w);
    for (size_t turn = 0, at = 0; turn < turns && code == FM_OK; turn++) {
        size_t end = at;
        while (end < count && places[end].turn == turn) {
            end++;
        }
        code = write_turn(body, turn, places + at, end - at);
        at = end;
    }
    fm_json_array_end(&body->w);
    free(places);
    return code;
}

/* Collects all of the system's messages, wherever they are. */
static void write_system(struct fm_body *body) {
    const struct fm_kit_job *job = body->job;
    bool begun = false;
    for (size_t i = 0; i < job->message_count; i++) {
        const struct fm_message *message = &job->messages[i];
        if (!fm_body_is_role(message, "system") || is_blank(message->content, message->content_len)) {
            continue;
        }
        if (!begun) {
            fm_body_key(body, "system");
            fm_json_array_begin(&body->w);
        }
        begun = true;
        write_text(&body->w, message->content, message->content_len);
    }
    if (begun) {
        fm_json_array_end(&body->w);
    }
}

static void write_tool(const struct fm_tool *tool, struct fm_json_writer *w) {
    fm_body_tool_name(tool, w);
    fm_json_key(w, "input_schema");
    if (tool->parameters) {
        fm_json_value(w, tool->parameters);
    } else {
        fm_json_raw(w, "{\"type\":\"object\"}", 17);
    }
    if (tool->strict) {
        fm_json_key_bool(w, "strict", true);
    }
}

static void write_tool_choice(struct fm_body *body) {
    static const char *const words[] = {
        [FM_TOOLS_AUTO] = "auto", [FM_TOOLS_REQUIRED] = "any", [FM_TOOLS_NONE] = "none"};
    struct fm_json_writer *w = &body->w;
    const struct fm_tool *only = fm_body_only_tool(body);
    fm_body_key(body, "tool_choice");
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", only ? "tool" : words[body->job->tool_mode]);
    if (only) {
        fm_json_key_str(w, "name", only->name);
    }
    if (!body->job->parallel_tool_calls && body->job->tool_mode != FM_TOOLS_NONE) {
        fm_json_key_bool(w, "disable_parallel_tool_use", true);
    }
    fm_json_object_end(w);
}

/* Writes {"format"?,"effort"?}, and whether the model thinks at all. */
static void write_output_config(struct fm_body *body) {
    const struct fm_format *format = &body->job->format;
    const char *effort = fm_body_effort(body);
    bool thinks = effort && body->job->effort != FM_EFFORT_NONE;
    struct json_object *config = json_object_new_object();
    if (effort) {
        struct json_object *thinking = json_object_new_object();
        if (thinking) {
            json_object_object_add(thinking, "type", json_object_new_string(thinks ? "adaptive" : "disabled"));
        }
        fm_body_object(body, "thinking", thinking);
    }
    if (!config || (format->kind == FM_FORMAT_TEXT && !thinks)) {
        body->w.buf->failed |= !config;
        json_object_put(config);
        return;
    }
    if (thinks) {
        const char *word = body->job->effort == FM_EFFORT_MINIMAL ? "low" : effort; /* this dialect's lowest effort */
        json_object_object_add(config, "effort", json_object_new_string(word));
    }
    struct json_object *shape = format->kind == FM_FORMAT_TEXT ? NULL : json_object_new_object();
    if (shape) {
        struct json_object *schema = format->schema ? json_object_get(format->schema) : json_object_new_object();
        if (!format->schema) {
            json_object_object_add(schema, "type", json_object_new_string("object"));
        }
        json_object_object_add(shape, "type", json_object_new_string("json_schema"));
        json_object_object_add(shape, "schema", schema);
        json_object_object_add(config, "format", shape);
    }
    fm_body_object(body, "output_config", config);
}

/* If the job has no limit, the configuration's limit is sent. */
static void write_max_tokens(struct fm_body *body) {
    bool configured = json_object_object_get_ex(body->endpoint->body, "max_tokens", NULL);
    if (body->job->max_tokens > 0 || !configured) {
        fm_body_key(body, "max_tokens");
        fm_json_int(&body->w, body->job->max_tokens > 0 ? body->job->max_tokens : FM_MESSAGES_MAX_TOKENS);
    }
}

/* Writes who asks, so that the server can detect abuse. Of OpenAI's two names for it, the newer one counts first. */
static void write_user(struct fm_body *body) {
    struct json_object *user = body->job->passed[FM_PASSED_SAFETY_IDENTIFIER];
    user = user ? user : body->job->passed[FM_PASSED_USER];
    if (user) {
        struct json_object *metadata = json_object_new_object();
        if (metadata) {
            json_object_object_add(metadata, "user_id", json_object_get(user));
        }
        fm_body_object(body, "metadata", metadata);
    }
}

static void write_options(struct fm_body *body) {
    const struct fm_kit_job *job = body->job;
    struct fm_json_writer *w = &body->w;
    write_max_tokens(body);
    fm_body_sampling(body, SAMPLING);
    if (fm_kit_job_asks(job, FM_PARAM_TOP_K)) {
        fm_body_sampling(body, FM_PARAM_BIT(TOP_K));
    } else if (job->named[FM_PARAM_TOP_K]) { /* the job wants all tokens; without top_k the server uses all */
        fm_body_omit(body, "top_k");
    }
    if (job->stop_count > 0) {
        fm_body_key(body, "stop_sequences");
        fm_json_array_begin(w);
        for (size_t i = 0; i < job->stop_count; i++) {
            fm_json_string(w, job->stops[i].text, job->stops[i].len);
        }
        fm_json_array_end(w);
    }
    if (tier_of(body)) {
        fm_body_key(body, "service_tier");
        fm_json_str(w, tier_of(body));
    }
    write_user(body);
    fm_body_key(body, "stream");
    fm_json_bool(w, true);
}

enum fm_code fm_request_messages(struct fm_body *body) {
    enum fm_code code = refuse_what_is_missing(body);
    if (code != FM_OK) {
        return code;
    }
    write_system(body);
    code = write_messages(body);
    if (code != FM_OK) {
        return code;
    }
    if (fm_body_has_tools(body)) {
        fm_body_tools(body, write_tool);
        write_tool_choice(body);
    }
    write_output_config(body);
    write_options(body);
    return FM_OK;
}
