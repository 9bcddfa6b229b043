/* The body of completions.create: PROTOCOL.md, "completions.create". */
#include "surface/format.h"
#include "surface/request.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define MAX_TOKENS_DEFAULT 16   /* OpenAI's */
#define N_MAX              128  /* OpenAI's */
#define LOGPROBS_MAX       5    /* OpenAI's */
#define ALL_CHOICES_MAX    2048 /* of all prompts together */

/* ---- the prompts ---- */

/* Checks a list of texts, each of which gets answers. */
static enum fm_code check_list(struct json_object *list, const struct fm_path *at, struct fm_error *error) {
    static const char note[] = "fm-proxy takes a string, or an array of strings.";
    size_t count = json_object_array_length(list);
    if (count == 0) {
        return fm_reject_value(at, note, error);
    }
    for (size_t i = 0; i < count; i++) {
        struct json_object *text = json_object_array_get_idx(list, i);
        struct fm_path text_at = {.parent = at, .index = i};
        if (json_object_is_type(text, json_type_int) || json_object_is_type(text, json_type_array)) {
            return fm_reject_unsupported_value(&text_at, note, error);
        }
        if (!json_object_is_type(text, json_type_string)) {
            return fm_reject_type(&text_at, text, "a string", error);
        }
    }
    return count > ALL_CHOICES_MAX ? fm_reject_long_array(at, ALL_CHOICES_MAX, count, error) : FM_OK;
}

static enum fm_code check_prompt(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                 struct fm_error *error) {
    (void)rule;
    if (json_object_is_type(value, json_type_array)) {
        return check_list(value, at, error);
    }
    bool valid = json_object_is_type(value, json_type_string);
    return valid ? FM_OK : fm_reject_type(at, value, "a string or an array", error);
}

static size_t prompt_count(struct json_object *prompt) {
    return json_object_is_type(prompt, json_type_array) ? json_object_array_length(prompt) : 1;
}

static struct json_object *prompt_at(struct json_object *prompt, size_t index) {
    return json_object_is_type(prompt, json_type_array) ? json_object_array_get_idx(prompt, index) : prompt;
}

static void note_prompts(struct json_object *prompt, struct fm_request *request) {
    for (size_t i = 0; i < prompt_count(prompt); i++) {
        struct json_object *text = prompt_at(prompt, i);
        fm_buf_append(&request->prompts, json_object_get_string(text), (size_t)json_object_get_string_len(text));
        fm_buf_append(&request->prompt_ends, &request->prompts.len, sizeof(size_t));
    }
}

/* How many choices each prompt has. */
static size_t choices_each(const struct fm_request *request) {
    size_t count = request->prompt_ends.len / sizeof(size_t);
    size_t choices = request->choices > 0 ? (size_t)request->choices : 1;
    return count > 0 ? choices / count : choices;
}

static size_t prompt_end(const struct fm_request *request, size_t index) {
    size_t end;
    memcpy(&end, request->prompt_ends.data + index * sizeof end, sizeof end);
    return end;
}

const char *fm_request_prompt(const struct fm_request *request, size_t choice, size_t *len) {
    size_t index = choice / choices_each(request);
    size_t start = index > 0 ? prompt_end(request, index - 1) : 0;
    *len = prompt_end(request, index) - start;
    return *len > 0 ? request->prompts.data + start : "";
}

void fm_request_name_prompt(const struct fm_request *request, size_t choice, struct fm_error *error) {
    bool several = request->prompt_ends.len > sizeof(size_t);
    bool prompt = error->code == FM_CONTEXT_OVERFLOW || error->code == FM_INVALID_REQUEST;
    if (several && prompt && !error->param[0]) {
        snprintf(error->param, sizeof error->param, "prompt[%zu]", choice / choices_each(request));
    }
}

bool fm_request_begins_prompt(const struct fm_request *request, size_t choice) {
    return choice % choices_each(request) == 0;
}

/* ---- the body ---- */

const struct fm_rule fm_completions_rules[] = {
    {.name = "prompt", .check = check_prompt, .required = true},
    {.name = "suffix", .check = fm_check_string},
    {.name = "max_tokens", .check = fm_check_int, .min = 0, .max = FM_TOKENS_MAX},
    {.name = "echo", .check = fm_check_bool},
    {.name = "stream_options", .check = fm_check_object, .members = fm_chat_stream_option_rules},
    {.name = "n", .check = fm_check_int, .min = 1, .max = N_MAX},
    {.name = "best_of", .check = fm_check_int, .min = 1, .max = N_MAX},
    {.name = "logprobs", .check = fm_check_int, .min = 0, .max = LOGPROBS_MAX},
    {.name = "logit_bias", .check = fm_check_logit_bias},
    {.members = fm_generation_rules},
};

static int64_t n_of(struct json_object *body) {
    struct json_object *n = json_object_object_get(body, "n");
    return n ? json_object_get_int64(n) : 1;
}

/* Checks the number of choices. All of them are given: nothing ranks more answers than are asked for. */
static enum fm_code check_choices(struct json_object *body, struct json_object *prompt, struct fm_error *error) {
    static const struct fm_path n_at = {.key = "n"};
    static const struct fm_path best_at = {.key = "best_of"};
    struct json_object *best_of = json_object_object_get(body, "best_of");
    if (best_of && json_object_get_int64(best_of) != n_of(body)) {
        return fm_reject_unsupported(&best_at, "fm-proxy gives all answers that it makes: use the number of 'n'.",
                                     error);
    }
    bool fit = n_of(body) * (int64_t)prompt_count(prompt) <= ALL_CHOICES_MAX;
    return fit ? FM_OK
               : fm_reject_value(&n_at, "All prompts together have at most 2048 choices: ask for fewer.", error);
}

/* Checks `logprobs`: the engine gives none for the tokens of a prompt, which `echo` would need. */
static enum fm_code check_logprobs(struct json_object *body, struct fm_error *error) {
    static const struct fm_path at = {.key = "logprobs"};
    bool echo = json_object_get_boolean(json_object_object_get(body, "echo"));
    bool asked = json_object_object_get(body, "logprobs") != NULL;
    return echo && asked ? fm_reject_unsupported(&at, "Leave it out, or leave out 'echo'.", error) : FM_OK;
}

/* Checks `echo`: each choice begins with its prompt, so the prompts must fit into an answer. */
static enum fm_code check_echo(struct json_object *body, struct json_object *prompt, struct fm_error *error) {
    static const struct fm_path at = {.key = "echo"};
    static const char note[] = "The prompts are longer than the 4 MiB of an answer: shorten them, or leave out 'echo'.";
    size_t size = 0;
    if (!json_object_get_boolean(json_object_object_get(body, "echo"))) {
        return FM_OK;
    }
    for (size_t i = 0; i < prompt_count(prompt); i++) {
        struct json_object *text = prompt_at(prompt, i);
        size += fm_json_string_size(json_object_get_string(text), (size_t)json_object_get_string_len(text)) - 2;
    }
    return size * (size_t)n_of(body) <= FM_OUTPUT_MAX ? FM_OK : fm_reject_value(&at, note, error);
}

static void write_job(struct json_object *body, struct fm_json_writer *w) {
    struct json_object *suffix = json_object_object_get(body, "suffix");
    struct json_object *max_tokens = json_object_object_get(body, "max_tokens");
    if (suffix && json_object_get_string_len(suffix) > 0) { /* an empty suffix is the same as none */
        fm_json_key_value(w, "suffix", suffix);
    }
    if (!max_tokens) {
        fm_json_key_int(w, "max_tokens", MAX_TOKENS_DEFAULT);
    }
    fm_request_write_sampling(body, max_tokens, w);
}

enum fm_code fm_completions_read(struct json_object *body, const struct fm_ignored *ignored, struct fm_request *request,
                                 struct fm_error *error) {
    struct fm_asked_format format;
    struct json_object *prompt = json_object_object_get(body, "prompt");
    enum fm_code code = fm_format_find(body, &(struct fm_format_place){0}, &format, error);
    code = code ? code : check_choices(body, prompt, error);
    code = code ? code : check_logprobs(body, error);
    code = code ? code : check_echo(body, prompt, error);
    if (code != FM_OK) {
        return code;
    }
    fm_request_begin(request, body, ignored);
    fm_format_note(&format, request);
    request->choices = n_of(body) * (int64_t)prompt_count(prompt);
    request->echo_prompt = json_object_get_boolean(json_object_object_get(body, "echo"));
    note_prompts(prompt, request);
    struct fm_json_writer job = fm_json_writer_on(&request->job_members);
    write_job(body, &job);
    struct json_object *logprobs = json_object_object_get(body, "logprobs");
    fm_request_write_logprobs(request, logprobs != NULL, logprobs, &job);
    fm_request_write_logit_bias(body, &job);
    fm_request_note_extras(request, body);
    fm_format_write_job(&format, &job);
    return fm_request_end(request, error);
}
