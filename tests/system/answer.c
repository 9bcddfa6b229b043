/* Runs a request and writes what became of it, as fm-system answers. */
#include "answer.h"
#include "commands/plan.h"
#include "desktop/refuse.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>

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
