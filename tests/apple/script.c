/*
 * Decides what the stand-in answers. A prompt that is a JSON array is a script. Its steps are those of the fake engine
 * (helper/engine/fake/script.h) as far as they have a meaning here, and:
 *
 *     {"status":N,"text":TEXT}   the task ends with the status N
 *     {"ignore_cancel_ms":N}     from this step on, a cancel is noticed only after N ms
 *     {"snapshot":TEXT}          the next snapshot is TEXT, whatever came before
 *     {"tool_calls":[{"name","arguments"},...]}   several calls at once; with "gap_ms":N that long between two
 *     {"content":TEXT}           the answer to a schema, as it is
 *
 * In a task with a schema and without tools, a tool_call answers that schema: with its name, or with its arguments.
 *
 * Any other prompt is repeated word by word; after a tool's output, that output is repeated. A task with a schema is
 * answered by a small instance of the schema, whose strings are words of the prompt. One token is one step's text, or a
 * word.
 */
#include "standin.h"
#include "base/error.h"
#include "engine/fake/instance.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOKEN_US 300 /* time for each token */
#define LOOK_US  1000

enum { STATUS_OK = 0, STATUS_GUARDRAIL = 3, STATUS_DECODING = 6, STATUS_UNKNOWN = 255 };

static struct json_object *member(struct json_object *value, const char *name) {
    struct json_object *found = NULL;
    if (json_object_is_type(value, json_type_object)) {
        json_object_object_get_ex(value, name, &found);
    }
    return found;
}

static const char *text_of(struct json_object *value, const char *name) {
    const char *text =
        json_object_is_type(member(value, name), json_type_string) ? json_object_get_string(member(value, name)) : NULL;
    return text ? text : "";
}

/* ---- callbacks, whose texts are freed when they return ---- */

static char *copy(const char *text, size_t len) {
    char *made = malloc(len + 1);
    if (!made) {
        abort();
    }
    memcpy(made, text, len);
    made[len] = '\0';
    return made;
}

static void spoil(char *text, size_t len) {
    memset(text, 'X', len);
    free(text);
}

static void tell_snapshot(struct run *run) {
    size_t len = run->text.len;
    char *text = copy(run->text.data ? run->text.data : "", len);
    callback_begins();
    run->on_text(STATUS_OK, text, len, run->user);
    callback_ends();
    spoil(text, len);
}

static const void *make_content(const char *json) {
    struct content *content = make(CONTENT, sizeof *content);
    content->json = strdup(json);
    return content;
}

/* The text of an error as content: a JSON string. */
static const void *make_error_content(const char *text) {
    struct json_object *string = json_object_new_string(text);
    const void *content = make_content(json_object_to_json_string(string));
    json_object_put(string);
    return content;
}

/* Calls the task's last callback. */
static bool finish(struct run *run, int status, const char *text) {
    size_t len = text ? strlen(text) : 0;
    char *passed = text ? copy(text, len) : NULL;
    const void *content = NULL;
    atomic_store(&run->session->responding, 0);
    json_object_put(run->script);
    run->script = NULL;
    if (run->kind == RUN_SCHEMA) {
        content = status == STATUS_OK ? make_content(run->text.data) : make_error_content(passed ? passed : "");
    }
    atomic_fetch_sub(&tasks_alive, 1);
    callback_begins();
    if (run->kind == RUN_STREAM) {
        run->on_text(status, passed, len, run->user);
    } else if (run->kind == RUN_SCHEMA) {
        run->on_content(status, content, run->user);
    } else {
        run->on_count(status, status ? 0 : (int)run->tokens, passed, run->user);
    }
    callback_ends();
    if (passed) {
        spoil(passed, len);
    }
    return true;
}

/* ---- scripts ---- */

/* Returns the text to repeat if there is no script: the prompt, or the last output of a tool. NULL: the prompt is a
 * script. */
static char *plain_answer(const struct run *run, bool *after_tools) {
    struct json_object *root = json_tokener_parse(run->session->transcript);
    struct json_object *entries = member(member(root, "transcript"), "entries");
    size_t count = json_object_array_length(entries);
    struct json_object *last = count > 0 ? json_object_array_get_idx(entries, count - 1) : NULL;
    *after_tools = strcmp(text_of(last, "role"), "tool") == 0 && strncmp(run->prompt, "Answer with", 11) == 0;
    char *answer =
        strdup(*after_tools ? text_of(json_object_array_get_idx(member(last, "contents"), 0), "text") : run->prompt);
    json_object_put(root);
    return answer;
}

/* Makes one step for each word; white space belongs to the word after it. */
static struct json_object *echo(const char *text) {
    struct json_object *steps = json_object_new_array();
    while (*text) {
        size_t len = strspn(text, " \t\r\n");
        len += strcspn(text + len, " \t\r\n");
        json_object_array_add(steps, json_object_new_string_len(text, (int)len));
        text += len;
    }
    return steps;
}

static char *instance(const char *schema, const char *words) {
    struct fm_buf out;
    struct fm_error error;
    struct json_object *parsed = json_tokener_parse(schema);
    fm_buf_init(&out, TEXTS_MAX);
    if (fm_instance_write(parsed, words, strlen(words), &out, &error) != FM_OK) {
        fprintf(stderr, "stand-in: %s\n", error.detail);
        _exit(STATUS_BROKEN);
    }
    char *text = copy(out.data, out.len);
    fm_buf_free(&out);
    json_object_put(parsed);
    return text;
}

/* Returns the script [{"tool_call":...}] for the first tool. */
static struct json_object *call_of(struct tool *tool, const char *words) {
    char *arguments = instance(tool->schema, words);
    struct json_object *call = json_object_new_object();
    struct json_object *step = json_object_new_object();
    struct json_object *steps = json_object_new_array();
    json_object_object_add(call, "name", json_object_new_string(tool->name));
    json_object_object_add(call, "arguments", json_object_new_string(arguments));
    json_object_object_add(step, "tool_call", call);
    json_object_array_add(steps, step);
    free(arguments);
    return steps;
}

void script_begin(struct run *run) {
    bool after_tools = false;
    if (run->kind == RUN_COUNT) {
        return;
    }
    if (atomic_exchange(&run->session->responding, 1) == 1) {
        broken(8, "two requests come to one session");
    }
    char *answer = plain_answer(run, &after_tools);
    struct json_object *parsed = json_tokener_parse(answer);
    if (json_object_is_type(parsed, json_type_array)) {
        run->script = json_object_get(parsed);
    } else if (run->session->tool_count > 0 && is_told("calls", NULL) && !after_tools) {
        run->script = call_of(run->session->tools[0], answer);
    } else if (run->kind == RUN_STREAM) {
        run->script = echo(answer);
    } else {
        run->script = json_object_new_array();
    }
    json_object_put(parsed);
    free(answer);
}

/* ---- steps ---- */

static bool sees_cancel(struct run *run) {
    if (!atomic_load(&run->cancelled)) {
        return false;
    }
    run->cancelled_us = run->cancelled_us ? run->cancelled_us : now_us();
    return now_us() - run->cancelled_us >= run->deaf_ms * 1000;
}

/* Whether the step still has to wait. */
static bool waits(struct run *run, int64_t ms) {
    int64_t now = now_us();
    run->wait_until_us = run->wait_until_us ? run->wait_until_us : now + ms * 1000;
    run->due_us = now + LOOK_US;
    if (now < run->wait_until_us) {
        return true;
    }
    run->wait_until_us = 0;
    return false;
}

/* Adds a token. Returns true if the limit is reached. */
static bool add_token(struct run *run, const char *text) {
    fm_buf_append_str(&run->text, text);
    run->tokens++;
    if (run->kind == RUN_STREAM) {
        tell_snapshot(run);
    }
    return run->max_tokens > 0 && run->tokens >= run->max_tokens;
}

/* Writes the part of a call that a schema asks for: its name, or its arguments. */
static void write_call(struct run *run, struct json_object *call) {
    struct json_object *schema = json_tokener_parse(run->schema);
    struct json_object *name = json_object_new_object();
    bool choice = strcmp(text_of(schema, "title"), "Call") == 0;
    json_object_object_add(name, "name", json_object_get(member(call, "name")));
    fm_buf_reset(&run->text);
    fm_buf_append_str(&run->text, choice ? json_object_to_json_string(name) : text_of(call, "arguments"));
    json_object_put(name);
    json_object_put(schema);
}

static void begin_call(struct run *run, struct json_object *call) {
    if (run->kind == RUN_SCHEMA && run->session->tool_count == 0) {
        write_call(run, call);
        return;
    }
    for (size_t i = 0; i < run->session->tool_count; i++) {
        struct tool *tool = run->session->tools[i];
        if (strcmp(tool->name, text_of(call, "name")) != 0 || run->called_count == WAITING_MAX) {
            continue;
        }
        pthread_mutex_lock(&tool->lock);
        unsigned id = ++tool->calls;
        pthread_mutex_unlock(&tool->lock);
        const void *arguments = make_content(text_of(call, "arguments"));
        callback_begins();
        tool->callback(arguments, id);
        callback_ends();
        pthread_mutex_lock(&tool->lock); /* a result that came before this is lost */
        tool->waiting[tool->waiting_count++] = id;
        pthread_mutex_unlock(&tool->lock);
        run->called[run->called_count] = tool;
        run->call_ids[run->called_count++] = id;
        return;
    }
}

/* Whether a call still waits for its result. */
static bool waits_for_tools(struct run *run) {
    bool waiting = false;
    for (size_t i = 0; i < run->called_count; i++) {
        struct tool *tool = run->called[i];
        pthread_mutex_lock(&tool->lock);
        for (size_t k = 0; k < tool->waiting_count; k++) {
            waiting = waiting || tool->waiting[k] == run->call_ids[i];
        }
        pthread_mutex_unlock(&tool->lock);
    }
    run->called_count = waiting ? run->called_count : 0;
    return waiting;
}

/* Ends the task as the step says. */
static bool end_step(struct run *run, struct json_object *step) {
    if (member(step, "error")) {
        char text[256];
        snprintf(text, sizeof text, "Error StandIn:7 - %.200s", text_of(step, "error"));
        return finish(run, STATUS_UNKNOWN, text);
    }
    if (member(step, "status")) {
        return finish(run, json_object_get_int(member(step, "status")), text_of(step, "text"));
    }
    bool filtered = strcmp(text_of(step, "finish"), "content_filter") == 0;
    return filtered ? finish(run, STATUS_GUARDRAIL, "May contain sensitive content.") : finish(run, STATUS_OK, NULL);
}

static bool signal_step(struct json_object *step) {
    if (member(step, "exit")) {
        _exit(json_object_get_int(member(step, "exit")));
    }
    if (member(step, "signal")) {
        abort();
    }
    if (member(step, "stdout")) {
        printf("%s", text_of(step, "stdout"));
        fflush(stdout);
    }
    return false;
}

/* Runs a step that is an object of the script. */
static bool object_step(struct run *run, struct json_object *step) {
    struct json_object *calls = member(step, "tool_calls");
    int64_t ms = json_object_get_int64(member(step, member(step, "sleep_ms") ? "sleep_ms" : "prefill_ms"));
    if (member(step, "repeat")) {
        struct json_object *list = member(step, "repeat");
        bool again = ++run->repeated < (size_t)json_object_get_int64(json_object_array_get_idx(list, 1));
        run->step -= again;
        run->repeated = again ? run->repeated : 0;
        return add_token(run, json_object_get_string(json_object_array_get_idx(list, 0))) &&
               finish(run, STATUS_OK, NULL);
    }
    if (member(step, "hang") || (ms > 0 && waits(run, ms))) {
        run->for_ever = strcmp(text_of(step, "hang"), "hard") == 0;
        run->due_us = now_us() + LOOK_US;
        run->step--;
        return false;
    }
    if (member(step, "error") || member(step, "status") || member(step, "finish")) {
        return end_step(run, step);
    }
    if (member(step, "tool_call")) {
        begin_call(run, member(step, "tool_call"));
    }
    for (size_t i = 0; calls && i < json_object_array_length(calls); i++) {
        if (i > 0) {
            usleep((useconds_t)json_object_get_int(member(step, "gap_ms")) * 1000);
        }
        begin_call(run, json_object_array_get_idx(calls, i));
    }
    if (member(step, "snapshot") || member(step, "content")) {
        fm_buf_reset(&run->text);
        fm_buf_append_str(&run->text, text_of(step, member(step, "content") ? "content" : "snapshot"));
        if (run->kind == RUN_STREAM) {
            tell_snapshot(run);
        }
    }
    if (member(step, "ignore_cancel_ms")) {
        run->deaf_ms = json_object_get_int64(member(step, "ignore_cancel_ms"));
    }
    return signal_step(step);
}

/* Ends the task after the last step. */
static bool end(struct run *run) {
    if (run->kind == RUN_STREAM) {
        return finish(run, STATUS_OK, NULL);
    }
    if (run->text.len == 0) {
        char *text = instance(run->schema, run->prompt);
        bool cut = run->max_tokens > 0 && (int64_t)strlen(text) / 4 >= run->max_tokens;
        fm_buf_append_str(&run->text, text);
        free(text);
        if (cut) {
            return finish(run, STATUS_DECODING, "Failed to decode");
        }
    }
    fm_buf_append(&run->text, "", 1);
    return finish(run, STATUS_OK, NULL);
}

static bool count_step(struct run *run) {
    if (sees_cancel(run)) {
        return finish(run, STATUS_UNKNOWN, "Operation cancelled");
    }
    if (is_told("nocount", NULL)) {
        return finish(run, STATUS_UNKNOWN, "Error TokenCount:-1 - Token counting requires macOS 26.4");
    }
    run->tokens = transcript_tokens(run->session->transcript);
    return finish(run, STATUS_OK, NULL);
}

bool script_step(struct run *run) {
    if (run->kind == RUN_COUNT) {
        return count_step(run);
    }
    run->due_us = now_us() + TOKEN_US;
    if (run->for_ever || waits_for_tools(run)) {
        run->due_us = now_us() + LOOK_US;
        return false;
    }
    if (sees_cancel(run)) {
        return finish(run, STATUS_UNKNOWN, run->kind == RUN_STREAM ? "Stream cancelled" : "Operation cancelled");
    }
    if (run->step >= json_object_array_length(run->script)) {
        return end(run);
    }
    struct json_object *step = json_object_array_get_idx(run->script, run->step++);
    if (json_object_is_type(step, json_type_string)) {
        return add_token(run, json_object_get_string(step)) && finish(run, STATUS_OK, NULL);
    }
    return object_step(run, step);
}
