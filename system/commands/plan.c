/*
 * Plans. All steps of a plan are checked on the same snapshot. If an earlier step makes a thing, such as a new window,
 * the later step looks for it when it runs.
 */
#include "commands/plan.h"
#include "base/utf8.h"
#include "commands/internal.h"
#include "commands/table.h"
#include "protocol/json_writer.h"
#include "desktop/refuse.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANDIDATES_MAX 8192u /* bytes */

/* ---- checking ---- */

static enum fm_code begin_plan(struct sy_world *world, struct sy_plan *plan, struct fm_error *error) {
    *plan = (struct sy_plan){.count = 0};
    fm_buf_init(&plan->candidates, CANDIDATES_MAX);
    return sy_snapshot_take(&world->desktop, &plan->snapshot, error);
}

static enum fm_code add_step(struct sy_world *world, struct sy_plan *plan, const struct sy_command *command,
                             struct json_object *args, const char *prefix, struct fm_error *error) {
    struct sy_step *step = &plan->steps[plan->count++];
    step->command = command;
    step->args = args;
    snprintf(step->param, sizeof step->param, "%s", prefix);
    enum fm_code code = sy_check_params(command, args, prefix, error);
    return code == FM_OK && command->check ? command->check(world, plan, step, error) : code;
}

static enum fm_code unknown_type(const char *path, struct sy_plan *plan, struct fm_error *error) {
    struct fm_json_writer w = fm_json_writer_on(&plan->candidates);
    fm_json_array_begin(&w);
    for (size_t i = 0; i < sy_command_count; i++) {
        fm_json_str(&w, sy_commands[i].type);
    }
    fm_json_array_end(&w);
    return sy_refuse(error, "unknown_type", path, "there is no such command; candidates has those that there are");
}

static enum fm_code add_command(struct sy_world *world, struct sy_plan *plan, struct json_object *command,
                                struct fm_error *error) {
    char prefix[32];
    char path[48];
    snprintf(prefix, sizeof prefix, "commands[%zu].", plan->count);
    snprintf(path, sizeof path, "%stype", prefix);
    if (!json_object_is_type(command, json_type_object)) {
        prefix[strlen(prefix) - 1] = '\0';
        return sy_refuse(error, "invalid_type", prefix, "each of commands must be an object");
    }
    struct json_object *type = json_object_object_get(command, "type");
    if (!type) {
        return sy_refuse(error, "missing_param", path, "%s is missing: the name of a command", path);
    }
    if (!json_object_is_type(type, json_type_string)) {
        return sy_refuse(error, "invalid_type", path, "%s must be a string", path);
    }
    const struct sy_command *row = sy_find_command(json_object_get_string(type));
    return row ? add_step(world, plan, row, command, prefix, error) : unknown_type(path, plan, error);
}

/* Handles a request that is a question to the user: none of its commands runs. */
static enum fm_code take_question(struct json_object *reason, struct sy_plan *plan, struct fm_error *error) {
    if (!json_object_is_type(reason, json_type_string) || json_object_get_string_len(reason) == 0) {
        return sy_refuse(error, "missing_reason", "clarification_reason",
                         "clarification_reason must say what is not clear, where needs_clarification is true");
    }
    plan->question = strdup(json_object_get_string(reason));
    return plan->question ? FM_OK : fm_fail_no_memory(error);
}

static enum fm_code check_members(struct json_object *envelope, struct fm_error *error) {
    static const char *const known[] = {"commands", "needs_clarification", "clarification_reason", "dry_run"};
    if (!json_object_is_type(envelope, json_type_object)) {
        return sy_refuse(error, "invalid_type", "", "the request must be an object with an array commands");
    }
    struct json_object_iter at;
    json_object_object_foreachC(envelope, at) {
        size_t i = 0;
        while (i < sizeof known / sizeof known[0] && strcmp(known[i], at.key) != 0) {
            i++;
        }
        if (i == sizeof known / sizeof known[0]) {
            char path[80];
            snprintf(path, sizeof path, "%.*s", fm_utf8_shown(at.key, 64), at.key);
            return sy_refuse(error, "unknown_param", path, "a request has no member of that name");
        }
    }
    struct json_object *asks = json_object_object_get(envelope, "needs_clarification");
    if (asks && !json_object_is_type(asks, json_type_boolean)) {
        return sy_refuse(error, "invalid_type", "needs_clarification", "needs_clarification must be true or false");
    }
    return FM_OK;
}

enum fm_code sy_plan_envelope(struct sy_world *world, struct json_object *envelope, struct sy_plan *plan,
                              struct fm_error *error) {
    enum fm_code code = begin_plan(world, plan, error);
    code = code ? code : check_members(envelope, error);
    if (code == FM_OK && json_object_get_boolean(json_object_object_get(envelope, "needs_clarification"))) {
        return take_question(json_object_object_get(envelope, "clarification_reason"), plan, error);
    }
    struct json_object *commands = json_object_object_get(envelope, "commands");
    if (code != FM_OK) {
        return code;
    }
    if (!commands) {
        return sy_refuse(error, "missing_param", "commands", "commands is missing: an array of 1 to 20 commands");
    }
    if (!json_object_is_type(commands, json_type_array)) {
        return sy_refuse(error, "invalid_type", "commands", "commands must be an array");
    }
    size_t count = json_object_array_length(commands);
    if (count == 0 || count > SY_STEPS_MAX) {
        return sy_refuse(error, count ? "invalid_type" : "empty_commands", "commands",
                         "commands must have 1 to %d commands", SY_STEPS_MAX);
    }
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        code = add_command(world, plan, json_object_array_get_idx(commands, i), error);
    }
    return code;
}

enum fm_code sy_plan_command(struct sy_world *world, const char *type, struct json_object *args, struct sy_plan *plan,
                             struct fm_error *error) {
    enum fm_code code = begin_plan(world, plan, error);
    const struct sy_command *row = sy_find_command(type);
    if (code != FM_OK) {
        return code;
    }
    return row ? add_step(world, plan, row, args, "", error) : unknown_type("type", plan, error);
}

void sy_world_free(struct sy_world *world) {
    sy_told_free(&world->told);
    sy_undos_free(&world->undos);
    sy_talks_free(&world->talks);
}

/* ---- running ---- */

enum fm_code sy_snapshot_now(const struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                             struct sy_snapshot *fresh, const struct sy_snapshot **snapshot, struct fm_error *error) {
    *snapshot = &plan->snapshot;
    if (step == plan->steps) {
        return FM_OK;
    }
    *snapshot = fresh;
    return sy_snapshot_take(&world->desktop, fresh, error);
}

static enum fm_code run_step(struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                             struct fm_json_writer *w, struct fm_error *error) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", step->command->type);
    enum fm_code code = step->command->run(world, plan, step, w, error);
    fm_json_key_bool(w, "ok", code == FM_OK);
    fm_json_object_end(w);
    return code;
}

enum fm_code sy_plan_run(struct sy_world *world, struct sy_plan *plan, sy_progress *progress, void *context,
                         struct fm_json_writer *w, struct fm_error *error) {
    enum fm_code code = FM_OK;
    fm_json_object_begin(w);
    fm_json_key(w, "results");
    fm_json_array_begin(w);
    for (size_t i = 0; i < plan->count && code == FM_OK; i++) {
        if (progress) {
            progress(context, plan, i);
        }
        code = run_step(world, plan, &plan->steps[i], w, error);
    }
    fm_json_array_end(w);
    fm_json_key_bool(w, "ok", code == FM_OK);
    fm_json_object_end(w);
    return code == FM_OK && w->buf->failed ? fm_fail_no_memory(error) : code;
}

/* Calls itself at most once: a preset has no presets in it. */
static void tell_step(const struct sy_step *step, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", step->command->type);
    if (step->name) {
        fm_json_key_str(w, step->parts ? "preset_name" : "app_name", step->name);
    }
    if (step->monitor) {
        fm_json_key_str(w, "monitor", json_object_get_string(sy_arg(step, "monitor")));
    }
    if (step->has_bounds) {
        sy_write_bounds(&step->bounds, w);
    }
    if (step->url) {
        fm_json_key_str(w, "url", step->url);
    }
    if (step->id_count > 0) {
        fm_json_key(w, "ids");
        fm_json_array_begin(w);
        for (size_t i = 0; i < step->id_count; i++) {
            fm_json_str(w, step->ids[i]);
        }
        fm_json_array_end(w);
    }
    if (step->parts) {
        fm_json_key(w, "would");
        fm_json_array_begin(w);
        for (size_t i = 0; i < step->part_count; i++) {
            tell_step(&step->parts[i], w);
        }
        fm_json_array_end(w);
    }
    fm_json_object_end(w);
}

enum fm_code sy_plan_tell(const struct sy_plan *plan, struct fm_json_writer *w, struct fm_error *error) {
    fm_json_object_begin(w);
    fm_json_key_bool(w, "ok", true);
    fm_json_key_bool(w, "dry_run", true);
    fm_json_key(w, "would");
    fm_json_array_begin(w);
    for (size_t i = 0; i < plan->count; i++) {
        tell_step(&plan->steps[i], w);
    }
    fm_json_array_end(w);
    fm_json_object_end(w);
    return w->buf->failed ? fm_fail_no_memory(error) : FM_OK;
}

/* Calls itself at most once: a preset has no presets in it. */
static void free_steps(struct sy_step *steps, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free_steps(steps[i].parts, steps[i].part_count);
        free(steps[i].parts);
        free(steps[i].name);
        free(steps[i].ids);
        free(steps[i].url);
        json_object_put(steps[i].owned);
    }
}

void sy_plan_free(struct sy_plan *plan) {
    free_steps(plan->steps, plan->count);
    free(plan->question);
    fm_buf_free(&plan->candidates);
    sy_snapshot_free(&plan->snapshot);
    plan->count = 0;
    plan->question = NULL;
}
