/*
 * Refuses jobs that the engine can't do, before the engine sees them. Each refusal names the member of job.start at
 * fault, and says that another engine may be able to do the job.
 */
#include "engine/kit/kit_internal.h"

#include <stdio.h>

#define BUILD_HINT "; the llama engine can if it is built with Rust: run sh packaging/setup.sh in its clone"

static enum fm_code refuse_param(const char *name, const char *param, const char *cannot, struct fm_error *error) {
    enum fm_code code = fm_fail(error, FM_INVALID_REQUEST, "the engine %s %s", name, cannot);
    snprintf(error->param, sizeof error->param, "%s", param);
    error->elsewhere = true;
    return code;
}

static enum fm_code check_sampling(const struct fm_engine_ops *ops, const struct fm_kit_job *job,
                                   struct fm_error *error) {
    const bool has[] = {
        [FM_PARAM_TEMPERATURE] = true,
        [FM_PARAM_TOP_P] = true,
        [FM_PARAM_PRESENCE_PENALTY] = ops->features & FM_FEATURE_PENALTIES,
        [FM_PARAM_FREQUENCY_PENALTY] = ops->features & FM_FEATURE_PENALTIES,
    };
    for (int i = 0; i < FM_PARAM_COUNT; i++) {
        bool lacks = i < FM_PARAM_FIRST_EXTRA ? !has[i] : !ops->extras;
        if (lacks && fm_kit_job_asks(job, (enum fm_param)i)) {
            return refuse_param(ops->name, fm_params[i].name, "does not have this parameter; leave it out", error);
        }
    }
    return FM_OK;
}

enum fm_code fm_admit_check(const struct fm_engine_ops *ops, bool images, struct fm_kit_job *job,
                            struct fm_error *error) {
    const struct {
        bool asked;
        enum fm_feature needs;
        const char *param;
        const char *cannot; /* after "the engine NAME " */
    } rows[] = {
        {job->format.kind != FM_FORMAT_TEXT, FM_FEATURE_STRUCTURED_OUTPUT, "format",
         "can't hold its output to a format" BUILD_HINT},
        {fm_kit_job_uses_tools(job), FM_FEATURE_TOOLS, "tools", "can't use tools" BUILD_HINT},
        {job->inputs != NULL, FM_FEATURE_EMBEDDINGS, "embed", "can't embed texts"},
        {job->questions != NULL, FM_FEATURE_DECISIONS, "questions", "can't decide questions"},
        {job->prompt != NULL, FM_FEATURE_COMPLETIONS, "prompt", "takes only messages"},
        {job->format.kind == FM_FORMAT_GRAMMAR, FM_FEATURE_GRAMMARS, "format", "can't hold its output to a grammar"},
        {job->has_seed, FM_FEATURE_SEEDS, "seed", "takes no seed"},
        {job->stop_count > 0, FM_FEATURE_STOPS, "stop", "has no stop strings"},
        {job->logit_bias_count > 0, FM_FEATURE_LOGIT_BIAS, "logit_bias", "can't bias tokens"},
        {job->logprobs, FM_FEATURE_LOGPROBS, "logprobs", "reports no log probabilities"},
        {job->prefill_only, FM_FEATURE_PREFILL, "generate", "can't read a prompt ahead; leave it out"},
        {job->count_only, FM_FEATURE_INPUT_TOKENS, "max_tokens", "can't count the tokens of a prompt"},
    };
    if (job->image_count > 0 && !images) {
        enum fm_code code = fm_fail(error, FM_INVALID_REQUEST, "the model does not see images");
        snprintf(error->param, sizeof error->param, "images[0]");
        error->elsewhere = true;
        return code;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].asked && !(ops->features & rows[i].needs)) {
            return refuse_param(ops->name, rows[i].param, rows[i].cannot, error);
        }
    }
    return check_sampling(ops, job, error);
}
