/* The members of job.start that change which tokens are drawn, and what is told of them. */
#include "engine/kit/job_read.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/* NaN is no such number. */
static bool read_between(struct json_object *value, double least, double most, double *number) {
    *number = json_object_get_double(value);
    return (json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double)) &&
           *number >= least && *number <= most;
}

enum fm_code fm_kit_job_read_presence_penalty(struct fm_kit_job *job, struct json_object *value,
                                              struct fm_error *error) {
    bool valid = read_between(value, -2, 2, &job->presence_penalty);
    job->named.presence_penalty = true;
    return valid ? FM_OK : fm_kit_job_wrong(error, "presence_penalty", "a number from -2 to 2");
}

enum fm_code fm_kit_job_read_frequency_penalty(struct fm_kit_job *job, struct json_object *value,
                                               struct fm_error *error) {
    bool valid = read_between(value, -2, 2, &job->frequency_penalty);
    job->named.frequency_penalty = true;
    return valid ? FM_OK : fm_kit_job_wrong(error, "frequency_penalty", "a number from -2 to 2");
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

/* ---- extra parameters ---- */

const char *const fm_kit_job_extras[] = {"top_k", "min_p", "repeat_penalty", "ignore_eos", NULL};

const char *const fm_kit_job_passed[FM_PASSED_COUNT + 1] = {
    [FM_PASSED_VERBOSITY] = "verbosity",
    [FM_PASSED_REASONING_SUMMARY] = "reasoning_summary",
    [FM_PASSED_SERVICE_TIER] = "service_tier",
    [FM_PASSED_CACHE_KEY] = "prompt_cache_key",
    [FM_PASSED_CACHE_RETENTION] = "prompt_cache_retention",
    [FM_PASSED_SAFETY_IDENTIFIER] = "safety_identifier",
    [FM_PASSED_USER] = "user",
};

bool fm_kit_job_read_passed(struct fm_kit_job *job, const char *name, struct json_object *value) {
    for (size_t i = 0; i < FM_PASSED_COUNT; i++) {
        if (strcmp(fm_kit_job_passed[i], name) == 0) {
            job->passed[i] = value;
            return true;
        }
    }
    return false;
}

enum fm_code fm_kit_job_read_top_k(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    int64_t count = json_object_get_int64(value);
    bool valid = json_object_is_type(value, json_type_int) && count >= -1 && count <= INT32_MAX;
    job->top_k = valid && count > 0 ? count : 0;
    job->named.top_k = true;
    return valid ? FM_OK : fm_kit_job_wrong(error, "top_k", "an integer from -1 to 2147483647");
}

enum fm_code fm_kit_job_read_min_p(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    bool valid = read_between(value, 0, 1, &job->min_p);
    return valid ? FM_OK : fm_kit_job_wrong(error, "min_p", "a number from 0 to 1");
}

enum fm_code fm_kit_job_read_repeat_penalty(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    bool valid = read_between(value, 0, 10, &job->repeat_penalty) && job->repeat_penalty > 0;
    job->named.repeat_penalty = true;
    return valid ? FM_OK : fm_kit_job_wrong(error, "repeat_penalty", "a number above 0, up to 10");
}

enum fm_code fm_kit_job_read_ignore_eos(struct fm_kit_job *job, struct json_object *value, struct fm_error *error) {
    job->ignore_eos = json_object_get_boolean(value);
    job->named.ignore_eos = true;
    bool valid = json_object_is_type(value, json_type_boolean);
    return valid ? FM_OK : fm_kit_job_wrong(error, "ignore_eos", "true or false");
}
