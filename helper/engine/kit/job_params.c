/* Reads and checks the members of job.start. Nothing is trusted, although the front has checked it before. */
#include "engine/kit/job_read.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages ---- */

static enum fm_code read_content(struct fm_message *message, size_t index, struct json_object *value,
                                 struct fm_error *error) {
    if (json_object_is_type(value, json_type_array) && strcmp(message->role, "user") == 0) {
        return fm_kit_job_read_parts(message, index, value, error);
    }
    if (!json_object_is_type(value, json_type_string)) {
        return fm_kit_job_wrong_entry(error, "messages", index, ".content", "a string");
    }
    message->content = json_object_get_string(value);
    message->content_len = (size_t)json_object_get_string_len(value);
    return FM_OK;
}

static enum fm_code read_message_reasoning(struct fm_message *message, size_t index, struct json_object *value,
                                           struct fm_error *error) {
    if (!json_object_is_type(value, json_type_string)) {
        return fm_kit_job_wrong_entry(error, "messages", index, ".reasoning", "a string");
    }
    message->reasoning = json_object_get_string(value);
    message->reasoning_len = (size_t)json_object_get_string_len(value);
    return FM_OK;
}

/* Texts of job.state. Only the engine knows what they mean. */
static enum fm_code read_states(struct fm_message *message, size_t index, struct json_object *value,
                                struct fm_error *error) {
    size_t count = json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
    if (count == 0 || count > FM_STATES_MAX) {
        return fm_kit_job_wrong_entry(error, "messages", index, ".state", "a list of 1 to 16 strings");
    }
    message->states = calloc(count, sizeof *message->states);
    if (!message->states) {
        return fm_fail_no_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        struct json_object *text = json_object_array_get_idx(value, i);
        int len = json_object_is_type(text, json_type_string) ? json_object_get_string_len(text) : 0;
        if (len == 0) {
            return fm_kit_job_wrong_entry(error, "messages", index, ".state", "a list of strings that are not empty");
        }
        message->states[i] = (struct fm_state_text){.text = json_object_get_string(text), .len = (size_t)len};
    }
    message->state_count = count;
    return FM_OK;
}

/* The role comes first: it says which other members there may be. */
static const struct message_member {
    const char *name;
    const char *role; /* the role whose messages have this member; NULL: all roles */
    enum fm_code (*read)(struct fm_message *message, size_t index, struct json_object *value, struct fm_error *error);
} message_members[] = {
    {"tool_calls", "assistant", fm_kit_job_read_calls},
    {"reasoning", "assistant", read_message_reasoning},
    {"state", "assistant", read_states},
    {"tool_call_id", "tool", fm_kit_job_read_call_id},
    {"content", NULL, read_content},
};

/*
 * Whether the message must have the member. A message with calls may have no text; every other message must have one.
 */
static bool is_needed(const struct message_member *row, const struct fm_message *message) {
    return !row->role ? message->tool_call_count == 0 : row->read == fm_kit_job_read_call_id;
}

static enum fm_code read_message(struct fm_message *message, size_t index, struct json_object *value,
                                 struct fm_error *error) {
    static const char *const roles[] = {"system", "user", "assistant", "tool", NULL};
    int count = 1;
    message->content = "";
    message->reasoning = "";
    if (!json_object_is_type(value, json_type_object)) {
        return fm_kit_job_wrong_entry(error, "messages", index, "", "an object");
    }
    int role = fm_kit_job_word(json_object_object_get(value, "role"), roles);
    if (role < 0) {
        return fm_kit_job_wrong_entry(error, "messages", index, ".role",
                                      "\"system\", \"user\", \"assistant\" or \"tool\"");
    }
    message->role = roles[role];
    for (size_t i = 0; i < sizeof message_members / sizeof message_members[0]; i++) {
        const struct message_member *row = &message_members[i];
        struct json_object *member = NULL;
        if (row->role && strcmp(row->role, message->role) != 0) {
            continue;
        }
        count += json_object_object_get_ex(value, row->name, &member);
        enum fm_code code = member || is_needed(row, message) ? row->read(message, index, member, error) : FM_OK;
        if (code != FM_OK) {
            return code;
        }
    }
    bool known = json_object_object_length(value) == count;
    return known ? FM_OK
                 : fm_kit_job_wrong_entry(error, "messages", index, "", "the members of its role and nothing else");
}

static enum fm_code read_messages(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    size_t count = json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
    if (count == 0) {
        return fm_kit_job_wrong(error, "messages", "a list that is not empty");
    }
    job->messages = calloc(count, sizeof *job->messages);
    if (!job->messages) {
        return fm_fail_no_memory(error);
    }
    job->message_count = count;
    for (size_t i = 0; i < count; i++) {
        enum fm_code code = read_message(&job->messages[i], i, json_object_array_get_idx(value, i), error);
        if (code != FM_OK) {
            return code;
        }
    }
    fm_kit_job_count_images(job);
    return FM_OK;
}

/* ---- embed ---- */

static enum fm_code read_embed(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    size_t count = json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
    if (count == 0 || count > FM_INPUTS_MAX) {
        return fm_kit_job_wrong(error, "embed", "a list of 1 to 2048 strings");
    }
    job->inputs = calloc(count, sizeof *job->inputs);
    if (!job->inputs) {
        return fm_fail_no_memory(error);
    }
    job->input_count = count;
    for (size_t i = 0; i < count; i++) {
        struct json_object *text = json_object_array_get_idx(value, i);
        int len = json_object_is_type(text, json_type_string) ? json_object_get_string_len(text) : 0;
        if (len == 0) {
            return fm_kit_job_wrong_entry(error, "embed", i, "", "a string that is not empty");
        }
        job->inputs[i] = (struct fm_input){.text = json_object_get_string(text), .len = (size_t)len};
    }
    return FM_OK;
}

/* A job that embeds has no other members. */
static const char *const beside_embed[] = {"job", "embed", "model", NULL};

/* ---- a prompt in place of messages ---- */

static enum fm_code read_prompt(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    job->prompt = json_object_get_string(value);
    job->prompt_len = (size_t)json_object_get_string_len(value);
    return json_object_is_type(value, json_type_string) ? FM_OK : fm_kit_job_wrong(error, "prompt", "a string");
}

static enum fm_code read_suffix(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    job->suffix = json_object_get_string(value);
    job->suffix_len = (size_t)json_object_get_string_len(value);
    return json_object_is_type(value, json_type_string) ? FM_OK : fm_kit_job_wrong(error, "suffix", "a string");
}

/* Checks which members may be together. Call it when all members are read. */
static enum fm_code check_company(const struct fm_kit_job *job, struct fm_error *error) {
    if (!job->messages && !job->prompt) {
        return fm_kit_job_wrong(error, "messages", "a list that is not empty");
    }
    if (job->prompt && (job->messages || job->tool_count > 0 || job->truncation.asked)) {
        return fm_kit_job_wrong(error, "prompt", "no messages, tools or truncation beside it");
    }
    return job->suffix && !job->prompt ? fm_kit_job_wrong(error, "suffix", "a prompt beside it") : FM_OK;
}

/* ---- which model gets the job ---- */

static enum fm_code read_model(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    job->model = fm_kit_job_full_string(value);
    return job->model ? FM_OK : fm_kit_job_wrong(error, "model", "a string that is not empty and has no NUL");
}

static enum fm_code read_session(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    job->session = fm_kit_job_full_string(value);
    bool valid = job->session && strlen(job->session) == 16 && strspn(job->session, "0123456789abcdef") == 16;
    return valid ? FM_OK : fm_kit_job_wrong(error, "session", "16 hexadecimal digits");
}

/* ---- how to answer ---- */

static enum fm_code read_max_tokens(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    job->max_tokens = json_object_get_int64(value);
    job->count_only = job->max_tokens == 0;
    bool valid = json_object_is_type(value, json_type_int) && job->max_tokens >= 0;
    return valid ? FM_OK : fm_kit_job_wrong(error, "max_tokens", "an integer from 0");
}

static enum fm_code read_seed(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    job->has_seed = true;
    job->seed = json_object_get_int64(value);
    return json_object_is_type(value, json_type_int) ? FM_OK : fm_kit_job_wrong(error, "seed", "an integer");
}

static enum fm_code read_flag(bool *flag, const char *name, struct json_object *value, struct fm_error *error) {
    *flag = json_object_get_boolean(value);
    return json_object_is_type(value, json_type_boolean) ? FM_OK : fm_kit_job_wrong(error, name, "true or false");
}

static enum fm_code read_repeatable(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    return read_flag(&job->repeatable, "repeatable", value, error);
}

static enum fm_code read_generate(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    bool generate;
    enum fm_code code = read_flag(&generate, "generate", value, error);
    job->prefill_only = !generate;
    return code;
}

static enum fm_code read_restartable(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    return read_flag(&job->restartable, "restartable", value, error);
}

static enum fm_code read_stop(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    size_t count = json_object_is_type(value, json_type_array) ? json_object_array_length(value) : FM_STOPS_MAX + 1;
    if (count > FM_STOPS_MAX) {
        return fm_kit_job_wrong(error, "stop", "a list of up to 4 strings");
    }
    for (size_t i = 0; i < count; i++) {
        struct json_object *stop = json_object_array_get_idx(value, i);
        int len = json_object_is_type(stop, json_type_string) ? json_object_get_string_len(stop) : 0;
        if (len == 0) {
            return fm_kit_job_wrong(error, "stop", "a list of strings that are not empty");
        }
        job->stops[i] = (struct fm_stop){.text = json_object_get_string(stop), .len = (size_t)len};
        job->stop_count = i + 1;
    }
    return FM_OK;
}

/* ---- reasoning ---- */

static enum fm_code read_reasoning(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    struct json_object *effort = NULL;
    if (!json_object_is_type(value, json_type_object)) {
        return fm_kit_job_wrong(error, "reasoning", "an object");
    }
    int count = json_object_object_get_ex(value, "effort", &effort);
    if (json_object_object_length(value) != count) {
        return fm_kit_job_wrong(error, "reasoning", "effort and nothing else");
    }
    int word = fm_kit_job_word(effort, fm_effort_words);
    if (effort && word < 0) {
        return fm_kit_job_wrong(error, "reasoning.effort", "one of \"none\" to \"max\"");
    }
    /* no word: the value before the first word, which is the default */
    job->effort = (enum fm_effort)(FM_EFFORT_NONE + word);
    return FM_OK;
}

/* ---- format ---- */

static enum fm_code read_schema(struct fm_format *format, struct json_object *value, struct fm_error *error) {
    format->schema = value;
    return json_object_is_type(value, json_type_object) ? FM_OK : fm_kit_job_wrong(error, "format.schema", "an object");
}

static enum fm_code read_strict(struct fm_format *format, struct json_object *value, struct fm_error *error) {
    format->strict = json_object_get_boolean(value);
    return json_object_is_type(value, json_type_boolean) ? FM_OK
                                                         : fm_kit_job_wrong(error, "format.strict", "true or false");
}

static enum fm_code read_syntax(struct fm_format *format, struct json_object *value, struct fm_error *error) {
    static const char *const syntaxes[] = {"lark", "regex", NULL};
    int syntax = fm_kit_job_word(value, syntaxes);
    format->syntax = syntax < 0 ? NULL : syntaxes[syntax];
    return format->syntax ? FM_OK : fm_kit_job_wrong(error, "format.syntax", "\"lark\" or \"regex\"");
}

static enum fm_code read_definition(struct fm_format *format, struct json_object *value, struct fm_error *error) {
    format->definition = fm_kit_job_full_string(value);
    return format->definition
               ? FM_OK
               : fm_kit_job_wrong(error, "format.definition", "a string that is not empty and has no NUL");
}

static const struct format_member {
    enum fm_format_kind kind;
    const char *name;
    bool required;
    enum fm_code (*read)(struct fm_format *format, struct json_object *value, struct fm_error *error);
} format_members[] = {
    {FM_FORMAT_JSON_SCHEMA, "schema", true, read_schema},
    {FM_FORMAT_JSON_SCHEMA, "strict", false, read_strict},
    {FM_FORMAT_GRAMMAR, "syntax", true, read_syntax},
    {FM_FORMAT_GRAMMAR, "definition", true, read_definition},
};

/* Reads the members of `value` that its kind has. `count` gets the number of members that were found. */
static enum fm_code read_format_members(struct fm_format *format, struct json_object *value, int *count,
                                        struct fm_error *error) {
    *count = 0;
    for (size_t i = 0; i < sizeof format_members / sizeof format_members[0]; i++) {
        const struct format_member *row = &format_members[i];
        struct json_object *member = NULL;
        if (row->kind != format->kind) {
            continue;
        }
        *count += json_object_object_get_ex(value, row->name, &member);
        enum fm_code code = member || row->required ? row->read(format, member, error) : FM_OK;
        if (code != FM_OK) {
            return code;
        }
    }
    return FM_OK;
}

static enum fm_code read_format(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    static const char *const types[] = {"json_object", "json_schema", "grammar", NULL};
    static const enum fm_format_kind kinds[] = {FM_FORMAT_JSON_OBJECT, FM_FORMAT_JSON_SCHEMA, FM_FORMAT_GRAMMAR};
    int count;
    if (!json_object_is_type(value, json_type_object)) {
        return fm_kit_job_wrong(error, "format", "an object");
    }
    int type = fm_kit_job_word(json_object_object_get(value, "type"), types);
    if (type < 0) {
        return fm_kit_job_wrong(error, "format.type", "\"json_object\", \"json_schema\" or \"grammar\"");
    }
    job->format.kind = kinds[type];
    enum fm_code code = read_format_members(&job->format, value, &count, error);
    if (code == FM_OK && json_object_object_length(value) != count + 1) {
        return fm_kit_job_wrong(error, "format", "the members of its type and nothing else");
    }
    return code;
}

/* The member `job` is read elsewhere, for the list of jobs. `tool_choice` is read after all others. */
static enum fm_code read_nothing(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    (void)job;
    (void)value;
    (void)error;
    return FM_OK;
}

static const struct member {
    const char *name;
    enum fm_code (*read)(struct fm_kit_job *job, struct json_object *value, struct fm_error *error);
} members[] = {
    {"job", read_nothing},
    {"messages", read_messages},
    {"embed", read_embed},
    {"prompt", read_prompt},
    {"suffix", read_suffix},
    {"questions", fm_kit_job_read_questions},
    {"model", read_model},
    {"session", read_session},
    {"restartable", read_restartable},
    {"max_tokens", read_max_tokens},
    {"generate", read_generate},
    {"truncation", fm_kit_job_read_truncation},
    {"seed", read_seed},
    {"repeatable", read_repeatable},
    {"logit_bias", fm_kit_job_read_logit_bias},
    {"logprobs", fm_kit_job_read_logprobs},
    {"stop", read_stop},
    {"reasoning", read_reasoning},
    {"format", read_format},
    {"tools", fm_kit_job_read_tools},
    {"tool_choice", read_nothing},
    {"parallel_tool_calls", fm_kit_job_read_parallel_tool_calls},
};

static const struct member *find_member(const char *name) {
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (strcmp(members[i].name, name) == 0) {
            return &members[i];
        }
    }
    return NULL;
}

/* Reads a member of job.start. If `value` is NULL, the member counts as absent. */
static enum fm_code read_member(struct fm_kit_job *job, const char *name, struct json_object *value,
                                struct fm_error *error) {
    const struct member *member = find_member(name);
    if (member) {
        return value ? member->read(job, value, error) : FM_OK;
    }
    int param = fm_param_find(name);
    if (param >= 0) {
        return value ? fm_kit_job_read_param(job, (enum fm_param)param, value, error) : FM_OK;
    }
    for (int i = 0; i < FM_PASSED_COUNT; i++) {
        if (strcmp(fm_passed_names[i], name) == 0) {
            bool valid = !value || json_object_is_type(value, json_type_string);
            job->passed[i] = value;
            return valid ? FM_OK : fm_kit_job_wrong(error, name, "a string");
        }
    }
    return fm_fail(error, FM_INVALID_REQUEST, "job.start: this engine does not know the member \"%s\"", name);
}

enum fm_code fm_kit_job_read(struct fm_kit_job *job, struct json_object *params, struct fm_error *error) {
    for (int i = 0; i < FM_PARAM_COUNT; i++) {
        job->sampling[i] = fm_params[i].neutral;
    }
    job->parallel_tool_calls = true;
    struct json_object_iterator end = json_object_iter_end(params);
    for (struct json_object_iterator at = json_object_iter_begin(params); !json_object_iter_equal(&at, &end);
         json_object_iter_next(&at)) {
        enum fm_code code = read_member(job, json_object_iter_peek_name(&at), json_object_iter_peek_value(&at), error);
        if (code != FM_OK) {
            return code;
        }
    }
    if (job->inputs) {
        return fm_kit_job_only(params, beside_embed, "nothing beside \"embed\"", error);
    }
    enum fm_code code = check_company(job, error);
    if (code == FM_OK && job->questions) {
        return fm_kit_job_check_questions(job, params, error);
    }
    code = code ? code : fm_kit_job_read_tool_choice(job, json_object_object_get(params, "tool_choice"), error);
    return code ? code : fm_kit_job_find_cuts(job, error);
}

void fm_kit_job_free_lists(struct fm_kit_job *job) {
    fm_kit_job_free_cuts(job);
    for (size_t i = 0; i < job->message_count; i++) {
        free(job->messages[i].tool_calls);
        free(job->messages[i].states);
        fm_kit_job_free_images(&job->messages[i]);
    }
    free(job->messages);
    fm_kit_job_free_questions(job);
    free(job->inputs);
    free(job->tools);
    free(job->logit_biases);
}
