/* Reads a value of job.start as a string or as one of several words, and refuses other values. */
#include "engine/kit/job_read.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

enum fm_code fm_kit_job_wrong(struct fm_error *error, const char *param, const char *expected) {
    enum fm_code code = fm_fail(error, FM_INVALID_REQUEST, "job.start: %s: %s is expected", param, expected);
    snprintf(error->param, sizeof error->param, "%s", param);
    return code;
}

enum fm_code fm_kit_job_wrong_entry(struct fm_error *error, const char *list, size_t index, const char *member,
                                    const char *expected) {
    char param[96];
    snprintf(param, sizeof param, "%s[%zu]%s", list, index, member);
    return fm_kit_job_wrong(error, param, expected);
}

const char *fm_kit_job_string(struct json_object *value) {
    const char *text = json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
    return text && strlen(text) == (size_t)json_object_get_string_len(value) ? text : NULL;
}

const char *fm_kit_job_full_string(struct json_object *value) {
    const char *text = fm_kit_job_string(value);
    return text && *text ? text : NULL;
}

int fm_kit_job_word(struct json_object *value, const char *const *words) {
    const char *text = fm_kit_job_string(value);
    for (int i = 0; text && words[i]; i++) {
        if (strcmp(text, words[i]) == 0) {
            return i;
        }
    }
    return -1;
}

enum fm_code fm_kit_job_only(struct json_object *params, const char *const *names, const char *expected,
                             struct fm_error *error) {
    struct json_object_iter member;
    json_object_object_foreachC(params, member) {
        size_t i = 0;
        while (names[i] && strcmp(names[i], member.key) != 0) {
            i++;
        }
        if (member.val && !names[i]) {
            return fm_kit_job_wrong(error, member.key, expected);
        }
    }
    return FM_OK;
}
