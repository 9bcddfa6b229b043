/* What the APIs share of a request: the common rows, and functions that read a checked body and end the request. */
#include "surface/request.h"
#include "base/utf8.h"
#include "surface/conversation.h"
#include "surface/format.h"
#include "surface/limits.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/*
 * Most bytes of the job. A body has at most 10 MB, and only its files grow when they are escaped again: a byte in base64
 * may become six. What is written around calls and tools is shorter than they are. So this is enough, also for a stored
 * conversation.
 */
#define JOB_MAX (64u << 20)

#define METADATA_PAIRS_MAX 16
#define METADATA_KEY_MAX   64
#define METADATA_VALUE_MAX 512
#define IDENTIFIER_MAX     64 /* characters */

/* ---- checkers of the shared rows ---- */

/* Checks an id. Ids become C strings, so an id with a NUL inside would be taken for a shorter id. */
enum fm_code fm_check_model(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                            struct fm_error *error) {
    enum fm_code code = fm_check_string(rule, value, at, error);
    if (code == FM_OK && strlen(json_object_get_string(value)) != (size_t)json_object_get_string_len(value)) {
        return fm_reject_value(at, "Expected a model id, as models.list has them.", error);
    }
    return code;
}

static enum fm_code check_stop(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                               struct fm_error *error) {
    return fm_check_one_or_more(fm_check_string, rule, FM_STOPS_MAX, value, at, error);
}

static enum fm_code check_above(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                struct fm_error *error) {
    enum fm_code code = fm_check_number(rule, value, at, error);
    bool above = code != FM_OK || json_object_get_double(value) > (double)rule->min;
    return above ? code : fm_reject_value(at, "Expected a number above 0; 1 is no penalty.", error);
}

static enum fm_code check_metadata(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                   struct fm_error *error) {
    static const struct fm_rule value_rule = {.max = METADATA_VALUE_MAX};
    (void)rule;
    if (!json_object_is_type(value, json_type_object)) {
        return fm_reject_type(at, value, "an object", error);
    }
    if (json_object_object_length(value) > METADATA_PAIRS_MAX) {
        return fm_reject_value(at, "Expected at most 16 pairs.", error);
    }
    for (struct lh_entry *entry = json_object_get_object(value)->head; entry; entry = lh_entry_next(entry)) {
        struct fm_path here = {.parent = at, .key = lh_entry_k(entry)};
        size_t chars = fm_utf8_characters(here.key, strlen(here.key));
        if (chars > METADATA_KEY_MAX) {
            return fm_reject_long_string(at, METADATA_KEY_MAX, chars, error);
        }
        enum fm_code code = fm_check_string(&value_rule, lh_entry_v(entry), &here, error);
        if (code != FM_OK) {
            return code;
        }
    }
    return FM_OK;
}

/* ---- the shared rows ---- */

static const char *const service_tiers[] = {"auto", "default", "flex", "scale", "priority", NULL};
static const char *const cache_modes[] = {"implicit", "explicit", NULL};
static const char *const cache_ttls[] = {"30m", NULL};

const struct fm_rule fm_cache_rules[] = {
    {.name = "mode", .check = fm_check_enum, .words = cache_modes},
    {.name = "ttl", .check = fm_check_enum, .words = cache_ttls},
    {0},
};

static const char *const retentions[] = {"in_memory", "in-memory", "24h", NULL};

const char *const fm_verbosity_words[] = {"low", "medium", "high", NULL};

/* In the order of enum fm_reasoning_dialect. */
static const char *const dialect_words[] = {"summary", "reasoning_text", "reasoning", NULL};

const struct fm_rule fm_common_fm_rules[] = {
    {.name = "local_only", .check = fm_check_bool},
    {.name = "repeatable", .check = fm_check_bool},
    {.name = "timings", .check = fm_check_bool},
    {.members = fm_limits_rules},
};

static const struct fm_rule fm_rules[] = {
    {.name = "grammar", .check = fm_check_object, .members = fm_grammar_rules},
    {.name = "schema_report", .check = fm_check_bool},
    {.name = "reasoning_dialect", .check = fm_check_enum, .words = dialect_words},
    {.name = "full_result", .check = fm_check_bool},
    {.members = fm_common_fm_rules},
};

#define CHECK_NUMBER fm_check_number
#define CHECK_ABOVE  check_above
#define CHECK_INT    fm_check_int
#define CHECK_BOOL   fm_check_bool
#define PARAM_RULE(id, param, kind, least, most, neutral)                                                              \
    {.name = param, .check = CHECK_##kind, .min = least, .max = most},

const struct fm_rule fm_generation_rules[] = {
    {.name = "model", .check = fm_check_model},
    {.name = "stream", .check = fm_check_bool},
    {.name = "return_progress", .check = fm_check_bool},
    {.name = "seed", .check = fm_check_int, .min = -INT64_MAX, .max = INT64_MAX},
    {.name = "stop", .check = check_stop, .min = 1},
    {.name = "user", .check = fm_check_string},
    {.name = "fm", .check = fm_check_object, .members = fm_rules, .closed = true},
    FM_OPENAI_PARAMS(PARAM_RULE)
    FM_EXTRA_PARAMS(PARAM_RULE)
    {0},
};

const struct fm_rule fm_shared_rules[] = {
    {.name = "metadata", .check = check_metadata},
    {.name = "safety_identifier", .check = fm_check_string, .max = IDENTIFIER_MAX},
    {.name = "prompt_cache_key", .check = fm_check_string, .max = IDENTIFIER_MAX},
    {.name = "prompt_cache_retention", .check = fm_check_enum, .words = retentions},
    {.name = "prompt_cache_options", .check = fm_check_object, .members = fm_cache_rules},
    {.name = "service_tier", .check = fm_check_enum, .words = service_tiers},
    {.name = "parallel_tool_calls", .check = fm_check_bool},
    {.name = "top_logprobs", .check = fm_check_int, .min = 0, .max = 20},
    {.name = "generate", .check = fm_check_bool},
    {.members = fm_generation_rules},
};

/* ---- reading a checked body ---- */

/* The dialect that a checked `fm` asks for. */
static enum fm_reasoning_dialect dialect_of(struct json_object *fm) {
    struct json_object *word = json_object_object_get(fm, "reasoning_dialect");
    int dialect = 0;
    while (word && dialect_words[dialect] && !fm_string_is(word, dialect_words[dialect])) {
        dialect++;
    }
    return (enum fm_reasoning_dialect)dialect;
}

void fm_request_begin(struct fm_request *request, struct json_object *body, const struct fm_ignored *ignored) {
    struct json_object *model = json_object_object_get(body, "model");
    struct json_object *fm = json_object_object_get(body, "fm");
    struct json_object *seed = json_object_object_get(body, "seed");
    struct json_object *generate = json_object_object_get(body, "generate");
    struct json_object *stream_options = json_object_object_get(body, "stream_options");
    *request = (struct fm_request){
        .has_seed = seed != NULL,
        .seed = json_object_get_int64(seed),
        .model = model ? strdup(json_object_get_string(model)) : NULL,
        .limits = fm_limits_read(fm),
        .stream = json_object_get_boolean(json_object_object_get(body, "stream")),
        .include_usage = json_object_get_boolean(json_object_object_get(stream_options, "include_usage")),
        .reasoning_dialect = dialect_of(fm),
        .schema_report = json_object_get_boolean(json_object_object_get(fm, "schema_report")),
        .full_result = json_object_get_boolean(json_object_object_get(fm, "full_result")),
        .timings = json_object_get_boolean(json_object_object_get(fm, "timings")),
        .local_only = json_object_get_boolean(json_object_object_get(fm, "local_only")),
        .repeatable = json_object_get_boolean(json_object_object_get(fm, "repeatable")),
        .progress = json_object_get_boolean(json_object_object_get(body, "return_progress")),
        .prefill_only = generate && !json_object_get_boolean(generate),
    };
    fm_buf_init(&request->job_members, JOB_MAX);
    fm_buf_init(&request->echo, JOB_MAX);
    fm_buf_init(&request->tools, JOB_MAX);
    fm_buf_init(&request->image_params, JOB_MAX);
    fm_buf_init(&request->conversation.first, JOB_MAX);
    fm_buf_init(&request->conversation.last, JOB_MAX);
    fm_buf_init(&request->conversation.input, JOB_MAX);
    fm_buf_init(&request->prompts, JOB_MAX);
    fm_buf_init(&request->prompt_ends, JOB_MAX);
    fm_buf_init(&request->ignored, FM_IGNORED_BYTES);
    fm_buf_append(&request->ignored, ignored->paths, ignored->len);
    fm_buf_init(&request->extras, JOB_MAX);
    request->job_members.failed = model && !request->model;
}

static void copy_member(struct json_object *body, const char *name, struct fm_json_writer *w) {
    struct json_object *value = json_object_object_get(body, name);
    if (value) {
        fm_json_key_value(w, name, value);
    }
}

void fm_request_write_sampling(struct json_object *body, struct json_object *max_tokens, struct fm_json_writer *w) {
    if (max_tokens) {
        fm_json_key_value(w, "max_tokens", max_tokens);
    }
    for (int i = 0; i < FM_PARAM_FIRST_EXTRA; i++) {
        copy_member(body, fm_params[i].name, w);
    }
    struct json_object *stop = json_object_object_get(body, "stop");
    if (json_object_is_type(stop, json_type_string)) {
        fm_json_key(w, "stop");
        fm_json_array_begin(w);
        fm_json_value(w, stop);
        fm_json_array_end(w);
    } else {
        copy_member(body, "stop", w);
    }
}

void fm_request_write_logprobs(struct fm_request *request, bool asked, struct json_object *top,
                               struct fm_json_writer *w) {
    request->logprobs = asked;
    if (asked) {
        fm_json_key_int(w, "logprobs", json_object_get_int64(top));
    }
}

void fm_request_write_effort(struct json_object *effort, struct fm_json_writer *w) {
    if (effort) {
        fm_json_key(w, "reasoning");
        fm_json_object_begin(w);
        fm_json_key_value(w, "effort", effort);
        fm_json_object_end(w);
    }
}

void fm_request_write_no_effort(struct fm_json_writer *w) {
    fm_json_key(w, "reasoning");
    fm_json_object_begin(w);
    fm_json_key_str(w, "effort", "none");
    fm_json_object_end(w);
}

enum fm_code fm_request_end(struct fm_request *request, struct fm_error *error) {
    const struct fm_buf *bufs[] = {&request->job_members,
                                   &request->echo,
                                   &request->tools,
                                   &request->conversation.first,
                                   &request->conversation.input,
                                   &request->prompts,
                                   &request->prompt_ends,
                                   &request->conversation.last,
                                   &request->image_params,
                                   &request->ignored,
                                   &request->extras};
    bool failed = false;
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++) {
        failed |= bufs[i]->failed;
    }
    if (failed) {
        fm_request_free(request);
        return fm_fail_no_memory(error);
    }
    if (request->job_members.len > FM_MESSAGES_MAX) {
        fm_request_free(request);
        return fm_fail(error, FM_CONTEXT_OVERFLOW, "the messages have more than %u bytes with their files: send less",
                       FM_MESSAGES_MAX);
    }
    return FM_OK;
}

enum fm_code fm_request_resolve(struct fm_request *request, const struct fm_buf *messages, struct fm_error *error) {
    struct fm_json_writer w = fm_json_writer_on(&request->job_members);
    w.comma = request->job_members.len > 0;
    fm_json_key(&w, "messages");
    fm_json_array_begin(&w);
    if (messages->len > 0) {
        fm_json_raw(&w, messages->data, messages->len);
    }
    fm_json_array_end(&w);
    request->unresolved = false;
    return request->job_members.failed ? fm_fail_no_memory(error) : FM_OK;
}

static void take_buf(struct fm_buf *from, struct fm_buf *to) {
    fm_buf_free(to);
    *to = *from;
    fm_buf_init(from, to->max);
}

void fm_request_take_job(struct fm_request *request, struct fm_buf taken[2]) {
    take_buf(&request->job_members, &taken[0]);
    if (!request->echo_prompt) { /* otherwise the answer needs it */
        take_buf(&request->prompts, &taken[1]);
    }
}

void fm_request_free(struct fm_request *request) {
    free(request->model);
    request->model = NULL;
    fm_buf_free(&request->job_members);
    fm_buf_free(&request->echo);
    fm_buf_free(&request->tools);
    fm_buf_free(&request->image_params);
    fm_conversation_free(&request->conversation);
    fm_buf_free(&request->prompts);
    fm_buf_free(&request->prompt_ends);
    fm_buf_free(&request->ignored);
    fm_buf_free(&request->extras);
    json_object_put(request->questions);
    request->questions = NULL;
}
