/* What job.start says, checked. Nothing of it is trusted, though the front has checked it before. */
#include "engine/kit/kit_internal.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum fm_code wrong(struct fm_error *error, const char *param, const char *expected) {
    enum fm_code code = fm_fail(error, FM_INVALID_REQUEST, "job.start: %s: %s is expected", param, expected);
    snprintf(error->param, sizeof error->param, "%s", param);
    return code;
}

static enum fm_code wrong_message(struct fm_error *error, size_t index, const char *what, const char *expected) {
    char param[64];
    snprintf(param, sizeof param, "messages[%zu]%s", index, what);
    return wrong(error, param, expected);
}

static const char *known_role(struct json_object *value) {
    static const char *const roles[] = {"system", "user", "assistant"};
    for (size_t i = 0; json_object_is_type(value, json_type_string) && i < sizeof roles / sizeof roles[0]; i++) {
        if (strcmp(json_object_get_string(value), roles[i]) == 0) {
            return roles[i];
        }
    }
    return NULL;
}

static enum fm_code read_message(struct fm_message *message, size_t index, struct json_object *value,
                                 struct fm_error *error) {
    struct json_object *role = NULL;
    struct json_object *content = NULL;
    if (!json_object_is_type(value, json_type_object)) {
        return wrong_message(error, index, "", "an object");
    }
    json_object_object_get_ex(value, "role", &role);
    json_object_object_get_ex(value, "content", &content);
    message->role = known_role(role);
    if (!message->role) {
        return wrong_message(error, index, ".role", "\"system\", \"user\" or \"assistant\"");
    }
    if (!json_object_is_type(content, json_type_string)) {
        return wrong_message(error, index, ".content", "a string");
    }
    if (json_object_object_length(value) != 2) {
        return wrong_message(error, index, "", "role and content and nothing else");
    }
    message->content = json_object_get_string(content);
    message->content_len = (size_t)json_object_get_string_len(content);
    return FM_OK;
}

static enum fm_code read_messages(struct fm_job *job, struct json_object *value, struct fm_error *error) {
    size_t count = json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
    if (count == 0) {
        return wrong(error, "messages", "a list that is not empty");
    }
    job->messages = calloc(count, sizeof *job->messages);
    if (!job->messages) {
        return fm_fail_no_memory(error);
    }
    job->message_count = count;
    for (size_t i = 0; i < count; i++) {
        enum fm_code code = read_message(&job->messages[i], i, json_object_array_get_idx(value, i), error);
        if (code != FM_OK) {
            return code;
        }
    }
    return FM_OK;
}

static enum fm_code read_max_tokens(struct fm_job *job, struct json_object *value, struct fm_error *error) {
    job->max_tokens = json_object_get_int64(value);
    if (!json_object_is_type(value, json_type_int) || job->max_tokens < 1) {
        return wrong(error, "max_tokens", "an integer from 1");
    }
    return FM_OK;
}

static bool read_number(struct json_object *value, double *number) {
    *number = json_object_get_double(value);
    return (json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double)) &&
           isfinite(*number) && *number >= 0;
}

static enum fm_code read_temperature(struct fm_job *job, struct json_object *value, struct fm_error *error) {
    return read_number(value, &job->temperature) ? FM_OK : wrong(error, "temperature", "a number from 0");
}

static enum fm_code read_top_p(struct fm_job *job, struct json_object *value, struct fm_error *error) {
    bool valid = read_number(value, &job->top_p) && job->top_p <= 1;
    return valid ? FM_OK : wrong(error, "top_p", "a number from 0 to 1");
}

static enum fm_code read_seed(struct fm_job *job, struct json_object *value, struct fm_error *error) {
    job->has_seed = true;
    job->seed = json_object_get_int64(value);
    return json_object_is_type(value, json_type_int) ? FM_OK : wrong(error, "seed", "an integer");
}

static enum fm_code read_stop(struct fm_job *job, struct json_object *value, struct fm_error *error) {
    size_t count = json_object_is_type(value, json_type_array) ? json_object_array_length(value) : FM_STOPS_MAX + 1;
    if (count > FM_STOPS_MAX) {
        return wrong(error, "stop", "a list of up to 4 strings");
    }
    for (size_t i = 0; i < count; i++) {
        struct json_object *stop = json_object_array_get_idx(value, i);
        int len = json_object_is_type(stop, json_type_string) ? json_object_get_string_len(stop) : 0;
        if (len == 0) {
            return wrong(error, "stop", "a list of strings that are not empty");
        }
        job->stops[i] = (struct fm_stop){.text = json_object_get_string(stop), .len = (size_t)len};
        job->stop_count = i + 1;
    }
    return FM_OK;
}

/* `job` is read by whoever has the list of jobs. */
static enum fm_code read_nothing(struct fm_job *job, struct json_object *value, struct fm_error *error) {
    (void)job;
    (void)value;
    (void)error;
    return FM_OK;
}

static const struct member {
    const char *name;
    enum fm_code (*read)(struct fm_job *job, struct json_object *value, struct fm_error *error);
} members[] = {
    {"job", read_nothing},
    {"messages", read_messages},
    {"max_tokens", read_max_tokens},
    {"temperature", read_temperature},
    {"top_p", read_top_p},
    {"seed", read_seed},
    {"stop", read_stop},
};

static const struct member *find_member(const char *name) {
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (strcmp(members[i].name, name) == 0) {
            return &members[i];
        }
    }
    return NULL;
}

enum fm_code fm_job_read(struct fm_job *job, struct json_object *params, struct fm_error *error) {
    job->temperature = 1;
    job->top_p = 1;
    struct json_object_iterator end = json_object_iter_end(params);
    for (struct json_object_iterator at = json_object_iter_begin(params); !json_object_iter_equal(&at, &end);
         json_object_iter_next(&at)) {
        const char *name = json_object_iter_peek_name(&at);
        struct json_object *value = json_object_iter_peek_value(&at);
        const struct member *member = find_member(name);
        if (!member) {
            return fm_fail(error, FM_INVALID_REQUEST, "job.start: this engine does not know the member \"%s\"", name);
        }
        enum fm_code code = value ? member->read(job, value, error) : FM_OK; /* null: as if absent */
        if (code != FM_OK) {
            return code;
        }
    }
    return job->messages ? FM_OK : wrong(error, "messages", "a list that is not empty");
}
