/* Runs what a client requests, and writes the outcome as one object, on success and on failure. */
#include "commands/table.h"
#include "desktop/refuse.h"
#include "mcp/ask.h"
#include "mcp/tools.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

/* A call while it runs. */
struct running {
    struct sy_caller *caller;
    const struct sy_request *request;
    struct json_object *token; /* the progress token; NULL: the client wants no progress */
};

/* ---- refusals ---- */

static void write_error(const struct fm_error *error, const struct sy_plan *plan, struct fm_json_writer *w) {
    fm_json_key_bool(w, "ok", false);
    fm_json_key(w, "error");
    fm_json_object_begin(w);
    fm_json_key_str(w, "code", sy_reason(error));
    fm_json_key_str(w, "param", error->param);
    fm_json_key_str(w, "detail", error->detail);
    if (plan && plan->candidates.len > 0) {
        fm_json_key(w, "candidates");
        fm_json_raw(w, plan->candidates.data, plan->candidates.len);
    }
    fm_json_object_end(w);
}

bool sy_write_refusal(const struct fm_error *error, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    write_error(error, NULL, w);
    fm_json_object_end(w);
    return false;
}

/* ---- progress ---- */

/* Sends progress at the beginning of a step. The end of the last step needs no message: the answer shows it. */
static void on_step(void *context, const struct sy_plan *plan, size_t step) {
    const struct running *running = context;
    char message[96];
    struct fm_buf line;
    snprintf(message, sizeof message, "%zu of %zu: %s", step + 1, plan->count, plan->steps[step].command->type);
    fm_buf_init(&line, SY_REPLY_MAX);
    struct fm_json_writer w = fm_rpc_notification_begin(&line, "notifications/progress");
    fm_json_object_begin(&w);
    fm_json_key_value(&w, "progressToken", running->token);
    fm_json_key_int(&w, "progress", (int64_t)step);
    fm_json_key_int(&w, "total", (int64_t)plan->count);
    if (running->request->era >= SY_2025_03_26) {
        fm_json_key_str(&w, "message", message);
    }
    fm_json_object_end(&w);
    fm_rpc_end(&line);
    fm_buf_append_char(&line, '\n');
    if (!line.failed) {
        running->caller->tell(running->caller->tell_context, line.data, line.len);
    }
    fm_buf_free(&line);
}

/* ---- running a plan ---- */

/* Writes the members of `object`, except "ok", which comes last. With `alone`, also leaves out "type", which was
 * written before. */
static void write_members(struct json_object *object, bool alone, struct fm_json_writer *w) {
    if (!object) {
        return;
    }
    struct json_object_iter at;
    json_object_object_foreachC(object, at) {
        if (strcmp(at.key, "ok") != 0 && !(alone && strcmp(at.key, "type") == 0)) {
            fm_json_key_text(w, at.key, strlen(at.key));
            fm_json_value(w, at.val);
        }
    }
}

/* Writes the outcome of a plan. `text` is what the plan wrote. `error` says why the plan failed; NULL: it succeeded.
 * `alone`: the plan was a single command. */
static bool write_outcome(const struct fm_buf *text, bool alone, const char *type, const struct sy_plan *plan,
                          const struct fm_error *error, struct fm_json_writer *w) {
    struct json_object *root = NULL;
    struct json_object *results = NULL;
    struct fm_buf scratch;
    fm_buf_init(&scratch, SY_REPLY_MAX);
    bool built = text->len == 0 || fm_json_tree(text->data, text->len, &scratch, &root);
    fm_buf_free(&scratch);
    fm_json_object_begin(w);
    if (alone) {
        fm_json_key_str(w, "type", type);
    }
    if (alone && json_object_object_get_ex(root, "results", &results)) {
        struct json_object *first = json_object_array_get_idx(results, 0);
        write_members(first, true, w);
    } else {
        write_members(root, false, w);
    }
    if (error || !built) {
        struct fm_error no_memory;
        (void)fm_fail_no_memory(&no_memory);
        write_error(error ? error : &no_memory, plan, w);
    } else {
        fm_json_key_bool(w, "ok", true);
    }
    fm_json_object_end(w);
    json_object_put(root);
    return !error && built;
}

bool sy_write_outcome(const struct fm_buf *text, const struct fm_error *error, struct fm_json_writer *w) {
    const struct fm_buf none = {.len = 0};
    return write_outcome(text ? text : &none, false, "", NULL, error, w);
}

/* Runs the plan, or only writes what the plan would do. If the user must be asked first, nothing runs. */
static enum fm_code carry_out(const struct running *running, struct sy_plan *plan, bool dry, struct fm_json_writer *w,
                              struct fm_error *error) {
    if (dry) {
        return sy_plan_tell(plan, w, error);
    }
    enum fm_code code = sy_ask(running->caller, running->request, plan, error);
    if (code != FM_OK || running->caller->asks) {
        return code;
    }
    return sy_plan_run(&running->caller->world, plan, running->token ? on_step : NULL, (void *)running, w, error);
}

static struct running begin_request(struct sy_caller *caller, const struct sy_request *request) {
    struct json_object *token = json_object_object_get(request->meta, "progressToken");
    bool valid = json_object_is_type(token, json_type_string) || json_object_is_type(token, json_type_int);
    return (struct running){caller, request, valid ? token : NULL};
}

/* Reads dry_run, which is not in the commands' own tables of parameters. */
static enum fm_code take_dry_run(struct json_object *args, bool *dry, struct fm_error *error) {
    struct json_object *value = json_object_object_get(args, "dry_run");
    if (value && !json_object_is_type(value, json_type_boolean)) {
        return sy_refuse(error, "invalid_type", "dry_run", "dry_run must be true or false");
    }
    *dry = json_object_get_boolean(value);
    return FM_OK;
}

bool sy_call_command(struct sy_caller *caller, const struct sy_request *request, const char *type,
                     struct json_object *args, struct fm_json_writer *w) {
    const struct running running = begin_request(caller, request);
    struct sy_plan plan = {.count = 0};
    struct fm_error error;
    struct fm_buf text;
    bool dry = false;
    fm_buf_init(&text, SY_REPLY_MAX);
    struct fm_json_writer on_text = fm_json_writer_on(&text);
    enum fm_code code = FM_OK;
    if (args && !sy_find_command(type)->reads) {
        code = take_dry_run(args, &dry, &error);
        json_object_object_del(args, "dry_run");
    }
    code = code ? code : sy_plan_command(&caller->world, type, args, &plan, &error);
    code = code ? code : carry_out(&running, &plan, dry, &on_text, &error);
    bool ok = write_outcome(&text, true, type, &plan, code ? &error : NULL, w);
    sy_plan_free(&plan);
    fm_buf_free(&text);
    return ok;
}

/* ---- a whole request ---- */

/* Refuses a request with a command that may not be called by itself. Unknown commands are refused later. */
static enum fm_code check_allowed(const struct sy_policy *policy, struct json_object *args, struct fm_error *error) {
    struct json_object *commands = json_object_object_get(args, "commands");
    size_t count = json_object_is_type(commands, json_type_array) ? json_object_array_length(commands) : 0;
    for (size_t i = 0; i < count; i++) {
        struct json_object *at = json_object_array_get_idx(commands, i);
        struct json_object *type =
            json_object_is_type(at, json_type_object) ? json_object_object_get(at, "type") : NULL;
        const struct sy_command *command =
            json_object_is_type(type, json_type_string) ? sy_find_command(json_object_get_string(type)) : NULL;
        if (command && !sy_policy_allows(policy, command->type, command->reads)) {
            char path[40];
            snprintf(path, sizeof path, "commands[%zu].type", i);
            return sy_refuse(error, "denied", path, "fm-system was started without %s: see its --allow and --read-only",
                             command->type);
        }
    }
    return FM_OK;
}

/* Writes the outcome of a request that asks the user a question. */
static bool write_question(const char *question, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key(w, "results");
    fm_json_array_begin(w);
    fm_json_array_end(w);
    fm_json_key_bool(w, "needs_clarification", true);
    fm_json_key_str(w, "clarification_reason", question);
    fm_json_key_bool(w, "ok", true);
    fm_json_object_end(w);
    return true;
}

bool sy_call_envelope(struct sy_caller *caller, const struct sy_request *request, struct json_object *args,
                      struct fm_json_writer *w) {
    const struct running running = begin_request(caller, request);
    struct json_object *envelope = args ? json_object_get(args) : json_object_new_object();
    struct sy_plan plan = {.count = 0};
    struct fm_error error;
    struct fm_buf text;
    bool dry = false;
    bool ok;
    fm_buf_init(&text, SY_REPLY_MAX);
    struct fm_json_writer on_text = fm_json_writer_on(&text);
    enum fm_code code = envelope ? check_allowed(&caller->policy, envelope, &error) : fm_fail_no_memory(&error);
    code = code ? code : take_dry_run(envelope, &dry, &error);
    code = code ? code : sy_plan_envelope(&caller->world, envelope, &plan, &error);
    if (code == FM_OK && plan.question) {
        ok = write_question(plan.question, w);
    } else {
        code = code ? code : carry_out(&running, &plan, dry, &on_text, &error);
        ok = write_outcome(&text, false, "", &plan, code ? &error : NULL, w);
    }
    sy_plan_free(&plan);
    fm_buf_free(&text);
    json_object_put(envelope);
    return ok;
}
