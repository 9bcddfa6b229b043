/* Runs a script. Each kind of step has a row in a table, and makes tokens, an event or a fault of the engine. */
#include "engine/fake/script.h"
#include "base/clock.h"
#include "base/platform.h"
#include "base/secret.h"
#include "engine/fake/attempt.h"
#include "engine/fake/saved.h"
#include "protocol/json_check.h"

#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A sleep that does not end by itself. */
#define FOREVER_MS ((int64_t)1000 * 60 * 60 * 24 * 365)

struct run {
    struct fm_kit_job *job;
    struct fm_error *error;
    bool calls; /* a call has begun: tokens are its arguments */
};

#define TOP_TEXT_MAX 64u /* bytes of a token that the made-up tokens begin with */

/* A number from -1.023 to 0, made from the bytes. */
static double made_up_logprob(const char *text, size_t len) {
    int sum = 0;
    for (size_t i = 0; i < len; i++) {
        sum = (sum + (unsigned char)text[i]) % 1024;
    }
    return -sum / 1000.0;
}

/*
 * The most likely token is the token itself. After it come the token with "~", with "~~" and so on; each logprob is 1
 * lower.
 */
static void tell_logprobs(struct fm_kit_job *job, const char *text, size_t len) {
    char tops[FM_TOP_LOGPROBS_MAX][TOP_TEXT_MAX + FM_TOP_LOGPROBS_MAX];
    size_t kept = len < TOP_TEXT_MAX ? len : TOP_TEXT_MAX;
    double logprob = made_up_logprob(text, len);
    struct fm_token_logprobs told = {.token = {.bytes = text, .len = len, .logprob = logprob}};
    for (size_t i = 0; job->logprobs && i < job->top_logprobs; i++) {
        memcpy(tops[i], text, kept);
        memset(tops[i] + kept, '~', i);
        told.top[told.top_count++] = (struct fm_logprob){tops[i], kept + i, logprob - (double)i};
    }
    fm_kit_job_logprobs(job, &told);
}

static enum fm_reason told(struct run *run, enum fm_reason reason) {
    if (reason == FM_REASON_ERROR) {
        (void)fm_fail_no_memory(run->error);
    }
    return reason;
}

static enum fm_reason token(struct run *run, const char *text, size_t len) {
    tell_logprobs(run->job, text, len);
    return told(run,
                run->calls ? fm_kit_job_tool_arguments(run->job, text, len) : fm_kit_job_token(run->job, text, len));
}

static const char *string_of(struct json_object *value, size_t *len) {
    *len = (size_t)json_object_get_string_len(value);
    return json_object_get_string(value);
}

/* ---- what a step's argument may be ---- */

static bool is_text(struct json_object *argument) {
    return json_object_is_type(argument, json_type_string);
}

static bool is_count(struct json_object *argument) {
    return json_object_is_type(argument, json_type_int) && json_object_get_int64(argument) >= 0;
}

static bool is_repeat(struct json_object *argument) {
    return json_object_is_type(argument, json_type_array) && json_object_array_length(argument) == 2 &&
           is_text(json_object_array_get_idx(argument, 0)) && is_count(json_object_array_get_idx(argument, 1));
}

struct word {
    const char *word;
    int value;
};

static const struct word finishes[] = {
    {"stop", FM_REASON_STOP}, {"length", FM_REASON_LENGTH}, {"content_filter", FM_REASON_CONTENT_FILTER}, {NULL, 0}};
static const struct word hangs[] = {{"soft", 0}, {"hard", 1}, {NULL, 0}};
static const struct word signals[] = {{"SEGV", SIGSEGV}, {"ABRT", SIGABRT}, {"KILL", SIGKILL}, {"STOP", SIGSTOP},
                                      {"TERM", SIGTERM}, {"BUS", SIGBUS},   {"FPE", SIGFPE},   {NULL, 0}};

static const struct word *find_word(const struct word *words, struct json_object *argument) {
    for (; is_text(argument) && words->word; words++) {
        if (strcmp(words->word, json_object_get_string(argument)) == 0) {
            return words;
        }
    }
    return NULL;
}

static bool is_finish(struct json_object *argument) {
    return find_word(finishes, argument) != NULL;
}

static bool is_hang(struct json_object *argument) {
    return find_word(hangs, argument) != NULL;
}

static bool is_signal(struct json_object *argument) {
    return find_word(signals, argument) != NULL;
}

static bool is_tool_call(struct json_object *argument) {
    return json_object_is_type(argument, json_type_object) && json_object_object_length(argument) == 2 &&
           is_text(json_object_object_get(argument, "name")) && is_text(json_object_object_get(argument, "arguments"));
}

static const struct word pieces[] = {{"text", FM_PIECE_TEXT},
                                     {"reasoning", FM_PIECE_REASONING},
                                     {"refusal", FM_PIECE_REFUSAL},
                                     {"arguments", FM_PIECE_ARGUMENTS},
                                     {NULL, 0}};

static bool is_piece(struct json_object *argument) {
    return json_object_is_type(argument, json_type_array) && json_object_array_length(argument) == 2 &&
           find_word(pieces, json_object_array_get_idx(argument, 0)) && is_text(json_object_array_get_idx(argument, 1));
}

static bool is_object(struct json_object *argument) {
    return json_object_is_type(argument, json_type_object);
}

static bool is_error(struct json_object *argument) {
    return is_text(argument) || is_object(argument);
}

static bool is_attempt(struct json_object *argument) {
    return is_text(argument) && fm_attempt_known(json_object_get_string(argument));
}

/* ---- what a step does ---- */

static enum fm_reason run_repeat(struct run *run, struct json_object *argument) {
    size_t len;
    const char *text = string_of(json_object_array_get_idx(argument, 0), &len);
    enum fm_reason reason = FM_REASON_NONE;
    for (int64_t left = json_object_get_int64(json_object_array_get_idx(argument, 1)); left && !reason; left--) {
        reason = token(run, text, len);
    }
    return reason;
}

static enum fm_reason run_sleep(struct run *run, struct json_object *argument) {
    return fm_kit_job_sleep(run->job, json_object_get_int64(argument)) ? FM_REASON_ABORTED : FM_REASON_NONE;
}

static enum fm_reason run_prefill(struct run *run, struct json_object *argument) {
    int64_t end = fm_now_ms() + json_object_get_int64(argument);
    while (fm_now_ms() < end) {
        if (fm_kit_job_aborted(run->job)) {
            return FM_REASON_ABORTED;
        }
        fm_sleep_ms(1);
    }
    fm_kit_job_progress(run->job, run->job->input_tokens, 0);
    return FM_REASON_NONE;
}

static enum fm_reason run_finish(struct run *run, struct json_object *argument) {
    (void)run;
    return (enum fm_reason)find_word(finishes, argument)->value;
}

static const char *word_of(struct json_object *object, const char *name, const char *otherwise) {
    struct json_object *value = json_object_object_get(object, name);
    return value ? json_object_get_string(value) : otherwise;
}

static enum fm_reason run_error(struct run *run, struct json_object *argument) {
    if (is_text(argument)) {
        (void)fm_fail(run->error, FM_INTERNAL, "%s", json_object_get_string(argument));
        return FM_REASON_ERROR;
    }
    (void)fm_fail(run->error, fm_code_parse(word_of(argument, "code", "")), "%s",
                  word_of(argument, "detail", "the script asks for it"));
    snprintf(run->error->reason_code, sizeof run->error->reason_code, "%s", word_of(argument, "reason_code", ""));
    run->error->retry_ms = json_object_get_int64(json_object_object_get(argument, "retry_after_ms"));
    run->error->elsewhere = json_object_get_boolean(json_object_object_get(argument, "elsewhere"));
    return FM_REASON_ERROR;
}

static enum fm_reason piece(struct run *run, enum fm_piece kind, struct json_object *text) {
    size_t len;
    const char *bytes = string_of(text, &len);
    return told(run, fm_kit_job_piece(run->job, kind, bytes, len));
}

static enum fm_reason run_piece(struct run *run, struct json_object *argument) {
    enum fm_piece kind = (enum fm_piece)find_word(pieces, json_object_array_get_idx(argument, 0))->value;
    return piece(run, kind, json_object_array_get_idx(argument, 1));
}

static enum fm_reason run_refusal(struct run *run, struct json_object *argument) {
    return piece(run, FM_PIECE_REFUSAL, argument);
}

static enum fm_reason run_call(struct run *run, struct json_object *argument) {
    return told(run, fm_kit_job_tool_call(run->job, json_object_get_string(argument)));
}

static enum fm_reason run_state(struct run *run, struct json_object *argument) {
    size_t len;
    const char *text = string_of(argument, &len);
    return told(run, fm_kit_job_state(run->job, text, len));
}

static enum fm_reason run_restart(struct run *run, struct json_object *argument) {
    (void)fm_fail(run->error, FM_OVERLOADED, "%s", json_object_get_string(argument));
    if (!run->job->restartable) {
        return FM_REASON_ERROR;
    }
    run->calls = false;
    bool begun = fm_kit_job_restart(run->job, run->error);
    return begun ? fm_kit_job_accept(run->job, run->job->input_tokens) : told(run, FM_REASON_ERROR);
}

static int64_t count_of(struct json_object *object, const char *name) {
    struct json_object *value = json_object_object_get(object, name);
    return value ? json_object_get_int64(value) : FM_UNCOUNTED;
}

static enum fm_reason run_usage(struct run *run, struct json_object *argument) {
    const struct fm_kit_usage usage = {.input = count_of(argument, "input"),
                                       .cached = count_of(argument, "cached"),
                                       .output = count_of(argument, "output"),
                                       .reasoning = count_of(argument, "reasoning")};
    fm_kit_job_usage(run->job, &usage);
    return FM_REASON_NONE;
}

static enum fm_reason run_stdout(struct run *run, struct json_object *argument) {
    size_t len;
    const char *text = string_of(argument, &len);
    fm_kit_write_raw(run->job->kit, text, len);
    return FM_REASON_NONE;
}

static void hang(void) {
    for (;;) {
        fm_sleep_ms(FOREVER_MS);
    }
}

static enum fm_reason run_hang(struct run *run, struct json_object *argument) {
    if (find_word(hangs, argument)->value) {
        fm_kit_job_progress(run->job, run->job->input_tokens, 0); /* nothing looks at the abort flag from here on */
        hang();
    }
    while (!fm_kit_job_sleep(run->job, FOREVER_MS)) {
    }
    return FM_REASON_ABORTED;
}

static enum fm_reason run_signal(struct run *run, struct json_object *argument) {
    int number = find_word(signals, argument)->value;
    (void)run;
    fm_end_by_signal(number);
    if (number != SIGSTOP) {
        hang();
    }
    return FM_REASON_NONE;
}

static enum fm_reason run_gpu_signal(struct run *run, struct json_object *argument) {
    struct fm_gpu_wish wish;
    fm_kit_gpu_wish(&wish);
    return wish.folder ? run_signal(run, argument) : FM_REASON_NONE;
}

static enum fm_reason run_exit(struct run *run, struct json_object *argument) {
    (void)run;
    _exit(json_object_get_int(argument));
}

static enum fm_reason run_words(struct run *run, const char *text, size_t len);

static enum fm_reason call(struct run *run, const char *name, const char *arguments, size_t len) {
    if (fm_kit_job_tool_call(run->job, name) != FM_REASON_NONE) {
        (void)fm_fail_no_memory(run->error);
        return FM_REASON_ERROR;
    }
    run->calls = true;
    return run_words(run, arguments, len);
}

/* Sends one token of reasoning. */
static enum fm_reason run_reasoning(struct run *run, struct json_object *argument) {
    size_t len;
    const char *text = string_of(argument, &len);
    if (run->job->spoke || run->calls) {
        (void)fm_fail(run->error, FM_INVALID_REQUEST, "the script thinks after its text");
        return FM_REASON_ERROR;
    }
    enum fm_reason reason = fm_kit_job_reasoning(run->job, text, len);
    return told(run, reason ? reason : fm_kit_job_token(run->job, "", 0));
}

static enum fm_reason run_tool_call(struct run *run, struct json_object *argument) {
    size_t len;
    const char *arguments = string_of(json_object_object_get(argument, "arguments"), &len);
    return call(run, json_object_get_string(json_object_object_get(argument, "name")), arguments, len);
}

/* Makes an attempt, and sends its outcome as one token. */
static enum fm_reason run_try(struct run *run, struct json_object *argument) {
    const char *outcome = fm_attempt_run(json_object_get_string(argument));
    return token(run, outcome, strlen(outcome));
}

static char *keys[8];
static char key_names[8][64];
static size_t key_count;

static void take_keys(struct json_object *value) {
    struct json_object_iter member;
    for (size_t i = 0; json_object_is_type(value, json_type_array) && i < json_object_array_length(value); i++) {
        take_keys(json_object_array_get_idx(value, i));
    }
    if (!json_object_is_type(value, json_type_object)) {
        return;
    }
    json_object_object_foreachC(value, member) {
        if (strcmp(member.key, "key_env") == 0 && key_count < sizeof keys / sizeof keys[0]) {
            snprintf(key_names[key_count], sizeof key_names[0], "%s", json_object_get_string(member.val));
            keys[key_count++] = fm_secret_take(json_object_get_string(member.val));
        }
        take_keys(member.val);
    }
}

void fm_fake_take_config(void) {
    const char *text = fm_kit_config(NULL);
    struct json_object *config = text ? json_tokener_parse(text) : NULL;
    take_keys(config);
    json_object_put(config);
}

/*
 * Writes the configuration, its folder, or a key that the configuration names. "env:NAME": the variable NAME, which
 * should be unset.
 */
static int write_config(const char *name, char *text, size_t size) {
    const char *folder;
    const char *config = fm_kit_config(&folder);
    if (strcmp(name, "config") == 0) {
        return snprintf(text, size, "%s", config ? config : "none");
    }
    if (strcmp(name, "config_dir") == 0) {
        return snprintf(text, size, "%s", folder ? folder : "none");
    }
    if (strncmp(name, "env:", 4) == 0) {
        const char *value = getenv(name + 4);
        return snprintf(text, size, "%s", value ? value : "unset");
    }
    for (size_t i = 0; i < key_count && strncmp(name, "key:", 4) == 0; i++) {
        if (strcmp(key_names[i], name + 4) == 0) {
            return snprintf(text, size, "%s", keys[i] ? keys[i] : "unset");
        }
    }
    return 0;
}

/* The states of all messages, each with a space after it. */
static int write_states(const struct fm_kit_job *job, char *text, size_t size) {
    int len = 0;
    for (size_t i = 0; i < job->message_count; i++) {
        for (size_t k = 0; k < job->messages[i].state_count; k++) {
            len += snprintf(text + len, size - (size_t)len, "%s ", job->messages[i].states[k].text);
        }
    }
    return len ? len : snprintf(text, size, "none");
}

/* The value that the job has under this name, as JSON; "" for an unknown name. */
static int write_parameter(const struct fm_kit_job *job, const char *name, char *text, size_t size) {
    if (strcmp(name, "saved") == 0) {
        return snprintf(text, size, "%s", fm_fake_saved_text());
    }
    int param = fm_param_find(name);
    if (param >= 0 && fm_params[param].kind == FM_PARAM_BOOL) {
        return snprintf(text, size, "%s", job->sampling[param] ? "true" : "false");
    }
    if (param >= 0) {
        return snprintf(text, size, "%.10g", job->sampling[param]);
    }
    if (strcmp(name, "model") == 0) {
        return snprintf(text, size, "%s", job->model ? job->model : "none");
    }
    if (strcmp(name, "session") == 0) {
        return snprintf(text, size, "%s", job->session ? job->session : "none");
    }
    if (strcmp(name, "states") == 0) {
        return write_states(job, text, size);
    }
    return write_config(name, text, size);
}

/* Sends the value of a parameter as one token. */
static enum fm_reason run_parameter(struct run *run, struct json_object *argument) {
    char text[1024] = "";
    int len = write_parameter(run->job, json_object_get_string(argument), text, sizeof text);
    return token(run, text, (size_t)len);
}

/* ---- the table ---- */

static const struct step {
    const char *name;
    bool (*valid)(struct json_object *argument);
    enum fm_reason (*run)(struct run *run, struct json_object *argument);
} steps[] = {
    {"repeat", is_repeat, run_repeat},     {"sleep_ms", is_count, run_sleep},
    {"prefill_ms", is_count, run_prefill}, {"finish", is_finish, run_finish},
    {"error", is_error, run_error},        {"stdout", is_text, run_stdout},
    {"hang", is_hang, run_hang},           {"signal", is_signal, run_signal},
    {"exit", is_count, run_exit},          {"try", is_attempt, run_try},
    {"reasoning", is_text, run_reasoning}, {"tool_call", is_tool_call, run_tool_call},
    {"parameter", is_text, run_parameter}, {"gpu_signal", is_signal, run_gpu_signal},
    {"piece", is_piece, run_piece},        {"refusal", is_text, run_refusal},
    {"call", is_text, run_call},           {"state", is_text, run_state},
    {"usage", is_object, run_usage},       {"restart", is_text, run_restart},
};

/* The step's row, and its argument; NULL when the entry is not a step. */
static const struct step *find_step(struct json_object *entry, struct json_object **argument) {
    if (!json_object_is_type(entry, json_type_object) || json_object_object_length(entry) != 1) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (json_object_object_get_ex(entry, steps[i].name, argument)) {
            return &steps[i];
        }
    }
    return NULL;
}

static enum fm_code check_entry(struct json_object *entry, size_t index, struct fm_error *error) {
    struct json_object *argument = NULL;
    if (is_text(entry)) {
        return FM_OK;
    }
    const struct step *step = find_step(entry, &argument);
    if (!step) {
        return fm_fail(error, FM_INVALID_REQUEST, "the script's step %zu is not known", index);
    }
    if (!step->valid(argument)) {
        return fm_fail(error, FM_INVALID_REQUEST, "the script's step %zu, %s, has a wrong argument", index, step->name);
    }
    return FM_OK;
}

enum fm_code fm_script_parse(const char *text, size_t len, struct json_object **script, struct fm_error *error) {
    size_t offset;
    *script = NULL;
    if (fm_json_check(text, len, FM_JSON_VALUES_MAX, &offset)) {
        return FM_OK;
    }
    struct json_tokener *tokener = json_tokener_new_ex(FM_JSON_DEPTH_MAX + 1);
    if (!tokener) {
        return fm_fail_no_memory(error);
    }
    struct json_object *value = json_tokener_parse_ex(tokener, text, (int)len);
    json_tokener_free(tokener);
    if (!json_object_is_type(value, json_type_array)) {
        json_object_put(value);
        return FM_OK;
    }
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < json_object_array_length(value) && code == FM_OK; i++) {
        code = check_entry(json_object_array_get_idx(value, i), i, error);
    }
    if (code == FM_OK) {
        *script = value;
    } else {
        json_object_put(value);
    }
    return code;
}

void fm_script_free(struct json_object *script) {
    json_object_put(script);
}

enum fm_reason fm_script_run(struct json_object *script, struct fm_kit_job *job, struct fm_error *error) {
    struct run run = {.job = job, .error = error};
    enum fm_reason reason = FM_REASON_NONE;
    for (size_t i = 0; i < json_object_array_length(script) && !reason; i++) {
        struct json_object *entry = json_object_array_get_idx(script, i);
        struct json_object *argument = NULL;
        if (is_text(entry)) {
            size_t len;
            const char *text = string_of(entry, &len);
            reason = token(&run, text, len);
        } else {
            reason = find_step(entry, &argument)->run(&run, argument);
        }
    }
    return reason ? reason : FM_REASON_STOP;
}

/* ---- words ---- */

static bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/*
 * Length of the white space and the word at the beginning of `text`. White space at the very end belongs to the last
 * word.
 */
static size_t first_word(const char *text, size_t len) {
    size_t at = 0;
    while (at < len && is_space(text[at])) {
        at++;
    }
    while (at < len && !is_space(text[at])) {
        at++;
    }
    size_t rest = at;
    while (rest < len && is_space(text[rest])) {
        rest++;
    }
    return rest == len ? len : at;
}

int64_t fm_script_words(const char *text, size_t len) {
    int64_t words = 0;
    for (size_t i = 0; i < len; i++) {
        words += !is_space(text[i]) && (i == 0 || is_space(text[i - 1]));
    }
    return words;
}

static enum fm_reason run_words(struct run *run, const char *text, size_t len) {
    enum fm_reason reason = FM_REASON_NONE;
    while (len && !reason) {
        size_t word = first_word(text, len);
        reason = token(run, text, word);
        text += word;
        len -= word;
    }
    return reason;
}

enum fm_reason fm_script_echo(const char *text, size_t len, int64_t room, struct fm_kit_job *job,
                              struct fm_error *error) {
    struct run run = {.job = job, .error = error};
    enum fm_reason reason = run_words(&run, text, len);
    while (job->sampling[FM_PARAM_IGNORE_EOS] && job->format.kind == FM_FORMAT_TEXT && !reason) {
        bool full = job->output_tokens >= room || len == 0;
        reason = full ? FM_REASON_LENGTH : run_words(&run, text, len);
    }
    return reason ? reason : FM_REASON_STOP;
}

enum fm_reason fm_script_call(const char *name, const char *arguments, size_t len, struct fm_kit_job *job,
                              struct fm_error *error) {
    struct run run = {.job = job, .error = error};
    enum fm_reason reason = call(&run, name, arguments, len);
    return reason ? reason : FM_REASON_STOP;
}
