/*
 * Fuzzes requests of models and clients on a fake desktop: {commands, needs_clarification, ...}. Nothing happens before
 * all commands of a request are checked. A refusal has a code of the contract. The description of a plan and the plan's
 * result are JSON. Only windows and tabs that the plan named are closed. Nothing leaks.
 */
#include "backends/fake.h"
#include "commands/plan.h"
#include "commands/table.h"
#include "desktop/refuse.h"
#include "protocol/json_tree.h"
#include "protocol/json_writer.h"
#include "tests/fuzz/fuzz.h"

#define OUT_MAX (8u << 20)

static const char desktop_text[] =
    "{\"monitors\":[{\"area\":[0,0,1920,1080],\"primary\":true},{\"area\":[1920,0,3840,1080]}],"
    "\"apps\":[{\"id\":\"x.desktop\",\"name\":\"X\",\"class\":\"X\",\"program\":\"x\"},"
    "{\"id\":\"n.desktop\",\"name\":\"N\",\"class\":\"N\",\"program\":\"n\"}],"
    "\"windows\":[{\"id\":\"w1\",\"class\":\"X\",\"title\":\"a\",\"bounds\":[0,0,640,480],\"active\":true},"
    "{\"id\":\"w2\",\"class\":\"X\",\"title\":\"b\",\"bounds\":[2000,0,2640,480]}],"
    "\"tabs\":[{\"id\":\"t1\",\"window\":\"1\",\"active\":true,\"title\":\"A\",\"url\":\"https://a.example/"
    "\",\"text\":\"x\"},"
    "{\"id\":\"t2\",\"window\":\"1\",\"title\":\"B\",\"url\":\"https://a.example/\",\"opened\":1000},"
    "{\"id\":\"t3\",\"window\":\"2\",\"active\":true,\"title\":\"C\",\"url\":\"https://b.example/?q\"}],"
    "\"rules\":[{\"on\":\"tab.close "
    "t2\",\"do\":{\"tab.go\":{\"id\":\"t1\",\"url\":\"https://c.example/\"}},\"once\":true}]}";

static void expect_code(const struct fm_error *error) {
    static const char *const codes[] = {
        "missing_param",  "unknown_param",      "invalid_type",       "empty_string",         "unavailable",
        "timeout",        "unknown_app",        "no_window",          "focus_refused",        "no_target",
        "invalid_bounds", "bounds_off_screen",  "bounds_off_monitor", "unknown_monitor",      "not_running",
        "still_open",     "invalid_index",      "unknown_tab",        "stale_snapshot",       "scheme_not_allowed",
        "unknown_site",   "credentials_in_url", "invalid_url",        "empty_list",           "duplicate_index",
        "unknown_preset", "model_unavailable",  "question_too_long",  "unknown_conversation", "nothing_to_undo",
        "unknown_undo",   "empty_commands",     "missing_reason",     "unknown_type"};
    size_t i = 0;
    while (i < COUNT(codes) && strcmp(codes[i], sy_reason(error)) != 0) {
        i++;
    }
    HOLDS_OR(i < COUNT(codes), "%s: %s", sy_reason(error), error->detail);
    HOLDS(error->detail[0]);
    HOLDS(is_utf8(error->param, strlen(error->param)) && is_utf8(error->detail, strlen(error->detail)));
}

static bool is_named(const struct sy_plan *plan, const char *id, size_t len) {
    for (size_t i = 0; i < plan->count; i++) {
        const struct sy_step *step = &plan->steps[i];
        for (size_t at = 0; at < step->id_count && step->command->destroys; at++) {
            if (strlen(step->ids[at]) == len && memcmp(step->ids[at], id, len) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Checks that each log line that closes something names a part of the plan. */
static void expect_named(const struct sy_plan *plan, const struct fm_buf *log) {
    size_t at = 0;
    while (at < log->len) {
        const char *line = log->data + at;
        size_t len = (size_t)((const char *)memchr(line, '\n', log->len - at) - line);
        size_t verb = len > 6 && memcmp(line, "close ", 6) == 0         ? 6
                      : len > 10 && memcmp(line, "tab.close ", 10) == 0 ? 10
                                                                        : 0;
        HOLDS_OR(!verb || is_named(plan, line + verb, len - verb), "%.*s", (int)len, line);
        at += len + 1;
    }
}

static void expect_json(const struct fm_buf *text) {
    HOLDS(!text->failed);
    json_object_put(json_must_parse(text->data, text->len));
}

static void run(struct sy_world *world, struct sy_plan *plan) {
    struct fm_buf out;
    struct fm_error error = {.code = FM_OK};
    fm_buf_init(&out, OUT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&out);
    HOLDS(sy_plan_tell(plan, &w, &error) == FM_OK);
    expect_json(&out);
    HOLDS(sy_fake_log(&world->desktop)->len == 0);
    fm_buf_reset(&out);
    w = fm_json_writer_on(&out);
    if (sy_plan_run(world, plan, NULL, NULL, &w, &error) != FM_OK) {
        expect_code(&error);
    }
    expect_json(&out);
    expect_named(plan, sy_fake_log(&world->desktop));
    fm_buf_free(&out);
}

static void ask(struct json_object *envelope) {
    static struct json_object *description; /* one for all inputs; still reachable at the end, so no leak */
    struct sy_world world = {.presets = NULL};
    struct sy_plan plan;
    struct fm_error error = {.code = FM_OK};
    struct json_object *copy = NULL;
    if (!description) {
        description = json_tokener_parse(desktop_text);
        HOLDS(description);
    }
    HOLDS(json_object_deep_copy(description, &copy, NULL) == 0); /* a copy, because a run uses up its rules */
    HOLDS(sy_fake_new(copy, &world.desktop, &error) == FM_OK);
    enum fm_code code = sy_plan_envelope(&world, envelope, &plan, &error);
    HOLDS(sy_fake_log(&world.desktop)->len == 0);
    if (code != FM_OK) {
        expect_code(&error);
        if (plan.candidates.len > 0) {
            expect_json(&plan.candidates);
        }
    } else if (plan.question) {
        HOLDS(plan.count == 0 && plan.question[0]);
    } else {
        HOLDS(plan.count >= 1 && plan.count <= SY_STEPS_MAX);
        run(&world, &plan);
    }
    sy_plan_free(&plan);
    sy_world_free(&world);
    world.desktop.backend->free(world.desktop.self);
    json_object_put(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = exact_copy(data, size);
    size_t offset;
    struct fm_buf scratch;
    struct json_object *envelope = NULL;
    if (!fm_json_check(text, size, FM_JSON_VALUES_MAX, &offset)) {
        fm_buf_init(&scratch, size + 1);
        HOLDS(fm_json_tree(text, size, &scratch, &envelope));
        fm_buf_free(&scratch);
        ask(envelope);
        json_object_put(envelope);
    }
    free(text);
    return 0;
}
