/*
 * Extras: generation parameters that are not OpenAI's, and that an engine may not have. Which of them it has is only
 * known when the job goes to it, so a request keeps them apart from the other members of its job.
 */
#include "surface/request.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define REPEAT_PENALTY_MAX 10
#define OWN                4 /* of fm_extra_names: those that are not OpenAI's */

/* The others are OpenAI's, and change nothing here: they are for engines that hand the job on (ENGINE.md). */
const char *const fm_extra_names[FM_EXTRAS] = {
    "top_k",
    "min_p",
    "repeat_penalty",
    "ignore_eos",
    "verbosity",
    "reasoning_summary",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "user",
};

static enum fm_code check_repeat_penalty(const struct fm_rule *rule, struct json_object *value,
                                         const struct fm_path *at, struct fm_error *error) {
    enum fm_code code = fm_check_number(rule, value, at, error);
    bool none = code == FM_OK && json_object_get_double(value) == 0; /* logits are divided by it */
    return none ? fm_reject_value(at, "Expected a number above 0; 1 is no penalty.", error) : code;
}

const struct fm_rule fm_extra_rules[] = {
    {.name = "top_k", .check = fm_check_int, .min = -1, .max = INT32_MAX},
    {.name = "min_p", .check = fm_check_number, .min = 0, .max = 1},
    {.name = "repeat_penalty", .check = check_repeat_penalty, .min = 0, .max = REPEAT_PENALTY_MAX},
    {.name = "ignore_eos", .check = fm_check_bool},
    {0},
};

/*
 * False for a value (its JSON) that changes nothing: an engine that does not have the extra does as asked. `min_p` 0
 * does: an engine's default may differ.
 */
static bool asks(const char *name, const char *value) {
    if (strcmp(name, "top_k") == 0) {
        return strtoll(value, NULL, 10) > 0;
    }
    if (strcmp(name, "repeat_penalty") == 0) {
        return strtod(value, NULL) != 1;
    }
    if (strcmp(name, "ignore_eos") == 0) {
        return strcmp(value, "true") == 0;
    }
    return strcmp(name, "min_p") == 0;
}

/* Each extra is stored as its name and its value in JSON, each followed by a NUL. */
static void note(struct fm_request *request, const char *name, struct json_object *value) {
    struct fm_json_writer w = fm_json_writer_on(&request->extras);
    if (value) {
        fm_buf_append(&request->extras, name, strlen(name) + 1);
        fm_json_value(&w, value);
        fm_buf_append_char(&request->extras, '\0');
    }
}

void fm_request_note_extras(struct fm_request *request, struct json_object *body) {
    for (size_t i = 0; i < OWN; i++) {
        note(request, fm_extra_names[i], json_object_object_get(body, fm_extra_names[i]));
    }
}

void fm_request_note_passed(struct fm_request *request, struct json_object *body, struct json_object *verbosity,
                            struct json_object *summary) {
    static const char *const names[] = {"service_tier", "prompt_cache_key", "prompt_cache_retention",
                                        "safety_identifier", "user"};
    note(request, "verbosity", verbosity);
    note(request, "reasoning_summary", summary);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        note(request, names[i], json_object_object_get(body, names[i]));
    }
}

/* The index of `name` in fm_extra_names; FM_EXTRAS: it is not an extra. */
static size_t find_extra(const char *name) {
    size_t i = 0;
    while (i < FM_EXTRAS && strcmp(fm_extra_names[i], name) != 0) {
        i++;
    }
    return i;
}

bool fm_is_extra(const char *path) {
    return find_extra(path) < OWN;
}

void fm_request_write_extras(struct fm_request *request, unsigned has, struct fm_json_writer *w) {
    const struct fm_buf *extras = &request->extras;
    for (size_t at = 0; at < extras->len;) {
        const char *name = extras->data + at;
        const char *value = name + strlen(name) + 1;
        at += strlen(name) + 1 + strlen(value) + 1;
        if (has & 1u << find_extra(name)) {
            fm_json_key(w, name);
            fm_json_raw(w, value, strlen(value));
        } else if (asks(name, value)) {
            fm_ignored_append(&request->ignored, name);
        }
    }
    if (request->unstored) {
        fm_ignored_append(&request->ignored, "store");
    }
}
