/* Runs requests and writes their results in the form of fm-system's answers. */
#include "answer.h"
#include "base/clock.h"
#include "commands/plan.h"
#include "desktop/refuse.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

#define OUT_MAX (64u << 20)

static void write_error(const struct sy_plan *plan, const struct fm_error *error, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "code", sy_reason(error));
    fm_json_key_str(w, "param", error->param);
    fm_json_key_str(w, "detail", error->detail);
    if (plan->candidates.len > 0) {
        fm_json_key(w, "candidates");
        fm_json_raw(w, plan->candidates.data, plan->candidates.len);
    }
    fm_json_object_end(w);
}

void answer_members(struct sy_world *world, struct json_object *request, struct fm_json_writer *w) {
    struct json_object *type = json_object_object_get(request, "type");
    bool dry = json_object_get_boolean(json_object_object_get(request, "dry_run"));
    struct fm_error error = {.code = FM_OK};
    struct sy_plan plan;
    enum fm_code code = type ? sy_plan_command(world, json_object_get_string(type),
                                               json_object_object_get(request, "args"), &plan, &error)
                             : sy_plan_envelope(world, request, &plan, &error);
    if (code == FM_OK && plan.question) {
        fm_json_key_str(w, "question", plan.question);
    } else if (code == FM_OK) {
        fm_json_key(w, "done");
        code = dry ? sy_plan_tell(&plan, w, &error) : sy_plan_run(world, &plan, NULL, NULL, w, &error);
    }
    if (code != FM_OK) {
        fm_json_key(w, "error");
        write_error(&plan, &error, w);
    }
    sy_plan_free(&plan);
}

void answer_lines(struct sy_world *world,
                  bool (*other)(struct sy_world *world, struct json_object *request, struct fm_json_writer *w)) {
    struct fm_buf out;
    char *line = NULL;
    size_t size = 0;
    fm_buf_init(&out, OUT_MAX);
    while (getline(&line, &size, stdin) > 0) {
        struct json_object *request = json_tokener_parse(line);
        struct fm_json_writer w = fm_json_writer_on(&out);
        int64_t begun_us = fm_now_us();
        fm_buf_reset(&out);
        fm_json_object_begin(&w);
        if (!other(world, request, &w)) {
            answer_members(world, request, &w);
        }
        fm_json_key_double(&w, "ms", (double)(fm_now_us() - begun_us) / 1000);
        fm_json_object_end(&w);
        fm_buf_append_char(&out, '\n');
        fwrite(out.data, 1, out.len, stdout);
        fflush(stdout);
        json_object_put(request);
    }
    free(line);
    fm_buf_free(&out);
    sy_world_free(world);
    world->desktop.backend->free(world->desktop.self);
}
