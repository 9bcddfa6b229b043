/* The fake engine's vectors, made from a hash of each text, or of its script's text. */
#include "engine/fake/embed.h"
#include "base/hash.h"
#include "engine/fake/script.h"
#include "protocol/vector.h"

#include <stdio.h>
#include <stdlib.h>

#define DIMENSION 8

static size_t dimension(void) {
    const char *value = getenv("FM_ENGINE_FAKE_DIMENSION");
    unsigned long asked = value ? strtoul(value, NULL, 10) : 0;
    return asked > 0 && asked <= FM_VECTOR_MAX ? asked : DIMENSION;
}

/* The next number, from -1 up to 1, by a linear congruential generator. */
static float next_number(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 33) / (double)(1u << 30) - 1);
}

/* Runs the input as a script, before its vector is sent. FM_REASON_NONE: nothing ended the job. */
static enum fm_reason run_script(const struct fm_input *input, struct fm_kit_job *job, struct fm_error *error) {
    struct json_object *script = NULL;
    if (fm_script_parse(input->text, input->len, &script, error) != FM_OK) {
        return FM_REASON_ERROR;
    }
    if (!script) {
        return FM_REASON_NONE;
    }
    enum fm_reason reason = fm_script_run(script, job, error);
    fm_script_free(script);
    return reason == FM_REASON_STOP ? FM_REASON_NONE : reason;
}

static enum fm_reason embed_input(const struct fm_input *input, struct fm_kit_job *job, float *values,
                                  struct fm_error *error) {
    uint64_t state = fm_hash(FM_HASH_START, input->text, input->len);
    enum fm_reason reason = run_script(input, job, error);
    for (size_t i = 0; i < job->dimension; i++) {
        values[i] = next_number(&state);
    }
    return reason ? reason : fm_kit_job_embedding(job, values, error);
}

/* The words of all inputs together; -1 with `error` if an input has too many. */
static int64_t count_words(const struct fm_kit_job *job, int64_t context, struct fm_error *error) {
    int64_t sum = 0;
    for (size_t i = 0; i < job->input_count; i++) {
        int64_t words = fm_script_words(job->inputs[i].text, job->inputs[i].len);
        if (words > context) {
            (void)fm_fail(error, FM_CONTEXT_OVERFLOW, "the input has %lld tokens, the context holds %lld",
                          (long long)words, (long long)context);
            snprintf(error->param, sizeof error->param, "embed[%zu]", i);
            return -1;
        }
        sum += words;
    }
    return sum;
}

enum fm_reason fm_fake_embed(struct fm_kit_job *job, int64_t context, struct fm_error *error) {
    int64_t words = count_words(job, context, error);
    job->dimension = dimension();
    float *values = calloc(job->dimension, sizeof *values);
    if (!values) {
        (void)fm_fail_no_memory(error);
    }
    enum fm_reason reason = words < 0 || !values ? FM_REASON_ERROR : FM_REASON_NONE;
    reason = reason ? reason : fm_kit_job_accept(job, words);
    for (size_t i = 0; !reason; i++) {
        reason = embed_input(&job->inputs[i], job, values, error);
    }
    free(values);
    return reason;
}
