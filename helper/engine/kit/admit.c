/*
 * Which jobs an engine never sees, because it can't do what they ask for. Each refusal names the member of job.start at
 * fault, and says that another engine may be able to.
 */
#include "engine/kit/kit_internal.h"

#include <stdio.h>

#define BUILD_HINT "; the llama engine can if it is built with Rust: run sh packaging/setup.sh in its clone"

static bool has_format(const struct fm_kit_job *job) {
    return job->format.kind != FM_FORMAT_TEXT;
}

static bool has_grammar(const struct fm_kit_job *job) {
    return job->format.kind == FM_FORMAT_GRAMMAR;
}

static bool embeds(const struct fm_kit_job *job) {
    return job->inputs != NULL;
}

static bool has_prompt(const struct fm_kit_job *job) {
    return job->prompt != NULL;
}

static bool has_seed(const struct fm_kit_job *job) {
    return job->has_seed;
}

static bool has_stops(const struct fm_kit_job *job) {
    return job->stop_count > 0;
}

static bool has_presence_penalty(const struct fm_kit_job *job) {
    return job->presence_penalty != 0;
}

static bool has_frequency_penalty(const struct fm_kit_job *job) {
    return job->frequency_penalty != 0;
}

static bool has_biases(const struct fm_kit_job *job) {
    return job->logit_bias_count > 0;
}

static bool wants_logprobs(const struct fm_kit_job *job) {
    return job->logprobs;
}

static bool has_top_k(const struct fm_kit_job *job) {
    return job->top_k > 0;
}

static bool has_min_p(const struct fm_kit_job *job) {
    return job->min_p >= 0;
}

static bool has_repeat_penalty(const struct fm_kit_job *job) {
    return job->repeat_penalty != 1;
}

static bool ignores_eos(const struct fm_kit_job *job) {
    return job->ignore_eos;
}

static bool only_counts(const struct fm_kit_job *job) {
    return job->count_only;
}

/* What the job asks for and the engine may lack. */
static const struct row {
    bool (*asks)(const struct fm_kit_job *job);
    enum fm_lack lack;
    const char *param;
    const char *cannot; /* after "the engine NAME " */
} rows[] = {
    {has_grammar, FM_LACKS_GRAMMARS, "format", "can't hold its output to a grammar"},
    {has_seed, FM_LACKS_SEEDS, "seed", "takes no seed"},
    {has_stops, FM_LACKS_STOPS, "stop", "knows no stop strings"},
    {has_presence_penalty, FM_LACKS_PENALTIES, "presence_penalty", "knows no penalties"},
    {has_frequency_penalty, FM_LACKS_PENALTIES, "frequency_penalty", "knows no penalties"},
    {has_biases, FM_LACKS_LOGIT_BIAS, "logit_bias", "can't bias tokens"},
    {wants_logprobs, FM_LACKS_LOGPROBS, "logprobs", "tells no log probabilities"},
    {has_top_k, FM_LACKS_EXTRAS, "top_k", "knows no top_k"},
    {has_min_p, FM_LACKS_EXTRAS, "min_p", "knows no min_p"},
    {has_repeat_penalty, FM_LACKS_EXTRAS, "repeat_penalty", "knows no penalties"},
    {ignores_eos, FM_LACKS_EXTRAS, "ignore_eos", "ends its answers by itself; leave ignore_eos out"},
    {only_counts, FM_LACKS_COUNTS, "max_tokens", "can't count the tokens of a prompt"},
};

static enum fm_code refuse(const char *name, const char *param, const char *cannot, struct fm_error *error) {
    enum fm_code code = fm_fail(error, FM_INVALID_REQUEST, "the engine %s %s", name, cannot);
    snprintf(error->param, sizeof error->param, "%s", param);
    error->elsewhere = true;
    return code;
}

enum fm_code fm_admit_check(const struct fm_engine_ops *ops, bool images, struct fm_kit_job *job,
                            struct fm_error *error) {
    if (has_format(job) && !ops->formats) {
        return refuse(ops->name, "format", "can't hold its output to a format" BUILD_HINT, error);
    }
    if (fm_kit_job_uses_tools(job) && !ops->tools) {
        return refuse(ops->name, "tools", "can't use tools" BUILD_HINT, error);
    }
    if (embeds(job) && !ops->embeddings) {
        return refuse(ops->name, "embed", "can't embed texts", error);
    }
    if (job->image_count > 0 && !images) {
        enum fm_code code = fm_fail(error, FM_INVALID_REQUEST, "the model does not see images");
        snprintf(error->param, sizeof error->param, "images[0]");
        error->elsewhere = true;
        return code;
    }
    if (has_prompt(job) && !ops->prompts) {
        return refuse(ops->name, "prompt", "takes messages alone", error);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (ops->lacks & rows[i].lack && rows[i].asks(job)) {
            return refuse(ops->name, rows[i].param, rows[i].cannot, error);
        }
    }
    return FM_OK;
}
