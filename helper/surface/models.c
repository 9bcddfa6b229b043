/*
 * models.load and models.unload. The first loads a model before the first request for it; the second ends a model's
 * engine before it is idle for long. They are requests like others: they wait, have time limits and can be cancelled.
 * Each writes the members of its result, besides `ok`.
 */
#include "surface/answer.h"
#include "surface/limits.h"
#include "surface/request.h"

static const struct fm_rule rules[] = {
    {.name = "model", .check = fm_check_model},
    {.name = "fm", .check = fm_check_object, .members = fm_limits_rules, .closed = true},
    {0},
};

static enum fm_code parse_params(struct json_object *params, struct fm_request *request, struct fm_error *error) {
    struct fm_ignored ignored = {0};
    enum fm_code code = fm_check_body(rules, params, &ignored, error);
    if (code != FM_OK) {
        return code;
    }
    fm_request_begin(request, params, &ignored);
    return fm_request_end(request, error);
}

static void write_count(const char *name, int64_t count, struct fm_json_writer *w) {
    if (count > 0) {
        fm_json_key_int(w, name, count);
    } else {
        fm_json_key_str(w, name, NULL);
    }
}

static void load_write(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_key_str(w, "model", answer->model);
    fm_json_key_int(w, "load_ms", answer->loaded.load_ms);
    write_count("memory_bytes", answer->loaded.memory_bytes, w);
    write_count("context_length", answer->loaded.context_length, w);
    fm_json_key_int(w, "slots", answer->loaded.slots);
    fm_answer_write_report(answer, FM_MOMENT_NOW, w);
}

static void unload_write(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_key_str(w, "model", answer->model);
    fm_json_key_bool(w, "unloaded", answer->loaded.unloaded);
    fm_answer_write_report(answer, FM_MOMENT_NOW, w);
}

const struct fm_surface fm_surface_load = {
    .work = FM_WORK_LOAD,
    .id_prefix = "load_",
    .parse = parse_params,
    .write = load_write,
};

const struct fm_surface fm_surface_unload = {
    .work = FM_WORK_UNLOAD,
    .id_prefix = "unload_",
    .parse = parse_params,
    .write = unload_write,
};
