/* The body of completions.create: PROTOCOL.md, "completions.create". */
#include "surface/format.h"
#include "surface/request.h"

#include <json-c/json.h>

#define MAX_TOKENS_DEFAULT 16 /* OpenAI's */

/* ---- the prompt ---- */

/* Checks a list with one text. Each further text would need a separate answer. */
static enum fm_code check_list(struct json_object *list, const struct fm_path *at, struct fm_error *error) {
    static const char note[] = "fm-proxy takes a string, or an array of one string.";
    size_t count = json_object_array_length(list);
    struct json_object *first = json_object_array_get_idx(list, 0);
    struct fm_path first_at = {.parent = at, .index = 0};
    if (count == 0) {
        return fm_reject_value(at, note, error);
    }
    bool tokens = json_object_is_type(first, json_type_int) || json_object_is_type(first, json_type_array);
    if (count > 1 || tokens) {
        return fm_reject_unsupported_value(at, note, error);
    }
    return json_object_is_type(first, json_type_string) ? FM_OK : fm_reject_type(&first_at, first, "a string", error);
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

static struct json_object *prompt_of(struct json_object *body) {
    struct json_object *prompt = json_object_object_get(body, "prompt");
    return json_object_is_type(prompt, json_type_array) ? json_object_array_get_idx(prompt, 0) : prompt;
}

/* ---- the body ---- */

const struct fm_rule fm_completions_rules[] = {
    {.name = "prompt", .check = check_prompt, .required = true},
    {.name = "suffix", .check = fm_check_string},
    {.name = "max_tokens", .check = fm_check_int, .min = 0, .max = FM_TOKENS_MAX},
    {.name = "echo", .check = fm_check_bool},
    {.name = "stream_options", .check = fm_check_object, .members = fm_chat_stream_option_rules},
    {.name = "n", .check = fm_check_only_number, .min = 1, .note = "fm-proxy gives one choice; 1 is accepted."},
    {.name = "best_of", .check = fm_check_only_number, .min = 1, .note = "fm-proxy gives one choice; 1 is accepted."},
    {.name = "logprobs",
     .check = fm_check_unsupported,
     .note = "fm-proxy has no log probabilities here: leave it out."},
    {.name = "logit_bias",
     .check = fm_check_only_empty_object,
     .note = "fm-proxy has no token biases here; {} is accepted."},
    {.members = fm_generation_rules},
};

/* Checks `echo`: the answer begins with the prompt, so the prompt must fit into an answer. */
static enum fm_code check_echo(struct json_object *body, struct json_object *prompt, struct fm_error *error) {
    static const struct fm_path at = {.key = "echo"};
    static const char note[] = "The prompt is longer than the 4 MiB of an answer: shorten it, or leave out 'echo'.";
    size_t len = (size_t)json_object_get_string_len(prompt);
    bool echo = json_object_get_boolean(json_object_object_get(body, "echo"));
    bool fits = fm_json_string_size(json_object_get_string(prompt), len) - 2 <= FM_OUTPUT_MAX;
    return fits || !echo ? FM_OK : fm_reject_value(&at, note, error);
}

static void write_job(struct json_object *body, struct json_object *prompt, struct fm_json_writer *w) {
    struct json_object *suffix = json_object_object_get(body, "suffix");
    struct json_object *max_tokens = json_object_object_get(body, "max_tokens");
    fm_json_key_value(w, "prompt", prompt);
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
    struct json_object *prompt = prompt_of(body);
    enum fm_code code = fm_format_find(body, &(struct fm_format_place){0}, &format, error);
    code = code ? code : check_echo(body, prompt, error);
    if (code != FM_OK) {
        return code;
    }
    fm_request_begin(request, body, ignored);
    fm_format_note(&format, request);
    if (json_object_get_boolean(json_object_object_get(body, "echo"))) {
        size_t len = (size_t)json_object_get_string_len(prompt);
        fm_buf_append(&request->output_start, json_object_get_string(prompt), len);
    }
    struct fm_json_writer job = fm_json_writer_on(&request->job_members);
    write_job(body, prompt, &job);
    fm_request_note_extras(request, body);
    fm_format_write_job(&format, &job);
    return fm_request_end(request, error);
}
