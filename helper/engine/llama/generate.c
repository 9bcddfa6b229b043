#include "engine/llama/generate.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/platform.h"

#include <stdlib.h>

/* Tokens less likely than this, relative to the best one, are never drawn. PROTOCOL.md names it. */
#define MIN_P 0.05f

/*
 * Below this a temperature is 0. Logits are floats of 1 to 100, and where two of them differ at all, divided by this
 * they are so far apart that only the best can be drawn; divided by much less they overflow to infinity.
 */
#define TEMPERATURE_MIN 1e-8

#define PIECE_SIZE 256 /* bytes of a token's text; most have less than 20 */

struct generation {
    struct fm_slot *slot;
    struct fm_job *job;
    struct llama_sampler *sampler;
    llama_token *prompt;
    size_t prompt_count;
    struct fm_error error; /* of FM_REASON_ERROR */
};

/* ---- sampling ---- */

static uint32_t seed_of(const struct fm_job *job) {
    uint64_t seed = (uint64_t)job->seed;
    if (!job->has_seed) {
        fm_random(&seed, sizeof seed);
    }
    uint32_t folded = (uint32_t)(seed ^ seed >> 32);
    return folded == LLAMA_DEFAULT_SEED ? 0 : folded; /* that one means "any" */
}

static bool is_greedy(const struct fm_job *job) {
    return job->temperature < TEMPERATURE_MIN;
}

static struct llama_sampler *make_sampler(const struct fm_job *job) {
    struct llama_sampler *chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    if (is_greedy(job)) {
        llama_sampler_chain_add(chain, llama_sampler_init_greedy());
        return chain;
    }
    llama_sampler_chain_add(chain, llama_sampler_init_min_p(MIN_P, 1));
    llama_sampler_chain_add(chain, llama_sampler_init_temp((float)job->temperature));
    if (job->top_p < 1) {
        llama_sampler_chain_add(chain, llama_sampler_init_top_p((float)job->top_p, 1));
    }
    llama_sampler_chain_add(chain, llama_sampler_init_dist(seed_of(job)));
    return chain;
}

/* ---- steps ---- */

static bool abort_asked(void *job) {
    return fm_job_aborted(job);
}

static enum fm_reason fail(struct generation *run, enum fm_code code, const char *detail) {
    (void)fm_fail(&run->error, code, "%s", detail);
    return FM_REASON_ERROR;
}

static enum fm_reason reason_of(struct generation *run, enum fm_decode result) {
    switch (result) {
    case FM_DECODE_OK: return FM_REASON_NONE;
    case FM_DECODE_ABORTED: return FM_REASON_ABORTED;
    default: return fail(run, FM_INTERNAL, "the model could not be evaluated");
    }
}

static enum fm_reason read_prompt(struct generation *run) {
    const struct fm_job *job = run->job;
    struct fm_model *model = run->slot->model;
    struct fm_chat_message *messages = calloc(job->message_count, sizeof *messages);
    if (!messages) {
        return fail(run, FM_INTERNAL, "out of memory");
    }
    for (size_t i = 0; i < job->message_count; i++) {
        const struct fm_message *message = &job->messages[i];
        messages[i] = (struct fm_chat_message){message->role, message->content, message->content_len};
    }
    enum fm_code code = fm_prompter_tokens(&model->prompter, messages, job->message_count, model->context_length,
                                           &run->prompt, &run->prompt_count, &run->error);
    free(messages);
    return code == FM_OK ? FM_REASON_NONE : FM_REASON_ERROR;
}

static enum fm_reason prefill(struct generation *run) {
    struct fm_slot *slot = run->slot;
    enum fm_reason reason = FM_REASON_NONE;
    bool repeatable = run->job->has_seed || is_greedy(run->job);
    fm_slot_reuse(slot, run->prompt, run->prompt_count, repeatable);
    int64_t cached = (int64_t)slot->count;
    while (slot->count < run->prompt_count && !reason) {
        reason = reason_of(run, fm_slot_prefill(slot, run->prompt, run->prompt_count));
        if (!reason) {
            fm_job_progress(run->job, (int64_t)slot->count, cached);
        }
    }
    return reason;
}

/* The text of `token`, "" for a control token; a token without room in a piece is told as empty. */
static enum fm_reason send_token(struct generation *run, llama_token token) {
    char piece[PIECE_SIZE];
    const struct llama_vocab *vocab = run->slot->model->prompter.vocab;
    int32_t len = llama_token_to_piece(vocab, token, piece, sizeof piece, 0, false);
    if (len >= 0) {
        return fm_job_token(run->job, piece, (size_t)len);
    }
    char *larger = malloc((size_t)-len);
    if (!larger) {
        return fail(run, FM_INTERNAL, "out of memory");
    }
    len = llama_token_to_piece(vocab, token, larger, -len, 0, false);
    enum fm_reason reason = fm_job_token(run->job, larger, len > 0 ? (size_t)len : 0);
    free(larger);
    return reason;
}

static enum fm_reason step(struct generation *run) {
    struct fm_slot *slot = run->slot;
    if (fm_job_aborted(run->job)) {
        return FM_REASON_ABORTED;
    }
    llama_token token = llama_sampler_sample(run->sampler, slot->model->context, -1);
    if (llama_vocab_is_eog(slot->model->prompter.vocab, token)) {
        return FM_REASON_STOP;
    }
    enum fm_reason reason = send_token(run, token);
    if (!reason && slot->count + 1 >= slot->model->context_length) {
        reason = FM_REASON_LENGTH; /* this token has the last place */
    }
    return reason ? reason : reason_of(run, fm_slot_append(slot, token));
}

static enum fm_reason generate(struct generation *run) {
    enum fm_reason reason = read_prompt(run);
    if (reason) {
        return reason;
    }
    fm_job_accept(run->job, (int64_t)run->prompt_count);
    reason = prefill(run);
    while (!reason) {
        reason = step(run);
    }
    return reason;
}

void fm_generate(struct fm_slot *slot, struct fm_job *job) {
    struct generation run = {.slot = slot, .job = job};
    int64_t start = fm_now_ms();
    (void)fm_fail_no_memory(&run.error); /* what FM_REASON_ERROR of a fm_job_token means */
    llama_set_abort_callback(slot->model->context, abort_asked, job);
    run.sampler = make_sampler(job);
    enum fm_reason reason = generate(&run);
    llama_set_abort_callback(slot->model->context, NULL, NULL);
    llama_sampler_free(run.sampler);
    free(run.prompt);
    fm_log(FM_LOG_INFO, "job %lld: %zu tokens in, %lld out, %lld ms", (long long)job->id, run.prompt_count,
           (long long)job->output_tokens, (long long)(fm_now_ms() - start));
    fm_job_finish(job, reason, &run.error);
}
