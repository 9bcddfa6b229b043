/* Reads the members of job.start that change which tokens are drawn, and what is reported about them. */
#include "engine/kit/job_read.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/* Reads a number between two bounds; NaN is refused. */
static bool read_between(struct json_object *value, double least, double most, double *number) {
    *number = json_object_get_double(value);
    return (json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double)) &&
           *number >= least && *number <= most;
}

enum fm_code fm_kit_job_read_param(struct fm_kit_job *job, enum fm_param param, struct json_object *value,
                                   struct fm_error *error) {
    char expected[64];
    job->named[param] = true;
    if (!fm_param_read(param, value, &job->sampling[param])) {
        fm_param_expect(param, expected, sizeof expected);
        return fm_kit_job_wrong(error, fm_params[param].name, expected);
    }
    return FM_OK;
}

bool fm_kit_job_asks(const struct fm_kit_job *job, enum fm_param param) {
    return fm_param_asks(param, job->sampling[param]);
}

static bool read_bias(struct fm_logit_bias *bias, struct json_object *value) {
    if (!json_object_is_type(value, json_type_array) || json_object_array_length(value) != 2) {
        return false;
    }
    struct json_object *token = json_object_array_get_idx(value, 0);
    int64_t id = json_object_get_int64(token);
    bias->token = (int32_t)id;
    return json_object_is_type(token, json_type_int) && id >= 0 && id <= INT32_MAX &&
           read_between(json_object_array_get_idx(value, 1), FM_LOGIT_BAN, -FM_LOGIT_BAN, &bias->bias);
}

enum fm_code fm_kit_job_read_logit_bias(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    bool valid = json_object_is_type(value, json_type_array);
    size_t count = valid ? json_object_array_length(value) : 0;
    if (!valid || count > FM_LOGIT_BIASES_MAX) {
        return fm_kit_job_wrong(error, "logit_bias", "a list of up to 1024 pairs");
    }
    job->logit_biases = count ? calloc(count, sizeof *job->logit_biases) : NULL;
    if (count && !job->logit_biases) {
        return fm_fail_no_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        if (!read_bias(&job->logit_biases[i], json_object_array_get_idx(value, i))) {
            return fm_kit_job_wrong_entry(error, "logit_bias", i, "", "a token's id and a number from -100 to 100");
        }
    }
    job->logit_bias_count = count;
    return FM_OK;
}

enum fm_code fm_kit_job_read_logprobs(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    int64_t count = json_object_get_int64(value);
    job->logprobs = json_object_is_type(value, json_type_int) && count >= 0 && count <= FM_TOP_LOGPROBS_MAX;
    job->top_logprobs = job->logprobs ? (size_t)count : 0;
    return job->logprobs ? FM_OK : fm_kit_job_wrong(error, "logprobs", "an integer from 0 to 20");
}
