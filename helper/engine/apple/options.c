/* Writes a job's sampling and token limit in the form of Apple's library. */
#include "engine/apple/options.h"
#include "protocol/json_writer.h"

#include <stdio.h>
#include <string.h>

#define GREEDY_BELOW 1e-8 /* ENGINE.md: such a temperature may be greedy */

/* The library's strings end at a NUL. */
static bool has_nul(const char *text, size_t len) {
    return text && memchr(text, '\0', len) != NULL;
}

static enum fm_code refuse_param(const char *param, const char *detail, struct fm_error *error) {
    (void)fm_fail(error, FM_INVALID_REQUEST, "%s", detail);
    error->elsewhere = true;
    snprintf(error->param, sizeof error->param, "%s", param);
    return FM_INVALID_REQUEST;
}

static enum fm_code check_message(const struct fm_message *message, size_t index, struct fm_error *error) {
    bool nul = has_nul(message->content, message->content_len);
    for (size_t i = 0; i < message->tool_call_count; i++) {
        nul = nul || has_nul(message->tool_calls[i].arguments, message->tool_calls[i].arguments_len);
    }
    if (!nul) {
        return FM_OK;
    }
    char param[48];
    snprintf(param, sizeof param, "messages[%zu]", index);
    return refuse_param(param, "Apple's library takes no text with a NUL character in it; leave it out", error);
}

enum fm_code fm_apple_check(const struct fm_kit_job *job, struct fm_error *error) {
    const struct {
        bool asked;
        const char *param;
        const char *detail;
    } rows[] = {
        {job->sampling[FM_PARAM_TEMPERATURE] > 1, "temperature", "Apple's model takes temperatures from 0 to 1"},
        {job->format.kind == FM_FORMAT_JSON_OBJECT, "format",
         "Apple's model can't be held to JSON of any shape; use a format with a schema"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].asked) {
            return refuse_param(rows[i].param, rows[i].detail, error);
        }
    }
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < job->message_count && code == FM_OK; i++) {
        code = check_message(&job->messages[i], i, error);
    }
    return code;
}

void fm_apple_options(const struct fm_kit_job *job, struct fm_buf *options) {
    double temperature = job->sampling[FM_PARAM_TEMPERATURE];
    double top_p = job->sampling[FM_PARAM_TOP_P];
    bool greedy = temperature < GREEDY_BELOW;
    struct fm_json_writer w = fm_json_writer_on(options);
    fm_json_object_begin(&w);
    if (greedy || top_p < 1 || job->has_seed) {
        fm_json_key(&w, "sampling");
        fm_json_object_begin(&w);
        fm_json_key_str(&w, "mode", greedy ? "greedy" : "random");
        if (!greedy) {
            fm_json_key_double(&w, "top_p", top_p); /* without top_p the library drops the seed */
        }
        if (!greedy && job->has_seed) {
            fm_json_key_int(&w, "seed", job->seed & INT64_MAX); /* the library drops a negative number */
        }
        fm_json_object_end(&w);
    }
    if (!greedy) {
        fm_json_key_double(&w, "temperature", temperature);
    }
    if (job->max_tokens > 0) {
        fm_json_key_int(&w, "maximum_response_tokens", job->max_tokens);
    }
    fm_json_object_end(&w);
    fm_buf_append_char(options, '\0');
}
