/*
 * The reference for tokens/s. It runs llama.cpp's own loop with the model, template, context and threads of
 * fm-engine-llama, but only with ggml's kernels, and without frames, JSON, stop strings or a second process. Decoding
 * is greedy, up to the model's end of turn.
 *
 *     bare_llama MODEL PROMPT TOKENS
 *
 * Prints one line of JSON; the decode time begins with the first token.
 */
#include "base/clock.h"
#include "engine/llama/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct timing {
    int64_t start_us;
    int64_t first_us; /* when the first token was sampled */
    int64_t end_us;
    long tokens;
};

static bool always(float progress, void *unused) {
    (void)progress;
    (void)unused;
    return true;
}

static bool prefill(const struct fm_llama_model *model, llama_token *prompt, size_t count) {
    for (size_t at = 0; at < count; at += model->chunk) {
        size_t left = count - at;
        int32_t chunk = (int32_t)(left < model->chunk ? left : model->chunk);
        if (llama_decode(model->context, llama_batch_get_one(prompt + at, chunk)) != 0) {
            return false;
        }
    }
    return true;
}

static bool generate(const struct fm_llama_model *model, llama_token *prompt, size_t count, long limit,
                     struct timing *timing) {
    struct llama_sampler *sampler = llama_sampler_init_greedy();
    timing->start_us = fm_now_us();
    bool ok = prefill(model, prompt, count);
    while (ok && timing->tokens < limit) {
        llama_token token = llama_sampler_sample(sampler, model->context, -1);
        timing->first_us = timing->tokens ? timing->first_us : fm_now_us();
        if (llama_vocab_is_eog(model->prompter.vocab, token)) {
            break;
        }
        timing->tokens++;
        ok = timing->tokens == limit || llama_decode(model->context, llama_batch_get_one(&token, 1)) == 0;
    }
    timing->end_us = fm_now_us();
    llama_sampler_free(sampler);
    return ok;
}

int main(int argc, char **argv) {
    const struct fm_llama_model_options options = {.slots = 1, .ggml_kernels = true};
    struct fm_llama_model model;
    struct fm_error error;
    struct timing timing = {0};
    struct fm_prompt prompt = {0};
    long limit = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
    if (limit < 1) {
        fprintf(stderr, "usage: bare_llama MODEL PROMPT TOKENS\n");
        return 64;
    }
    const struct fm_chat_message message = {.role = "user", .content = argv[2], .content_len = strlen(argv[2])};
    const struct fm_chat chat = {.messages = &message, .count = 1};
    enum fm_code code = fm_llama_model_load(&model, argv[1], &options, always, NULL, &error);
    struct fm_prompt_thought thought = {.form = &(struct fm_thought_form){.thinks = false}};
    code =
        code ? code : fm_prompter_tokens(&model.prompter, &chat, NULL, model.context_length, &thought, &prompt, &error);
    if (code != FM_OK) {
        fprintf(stderr, "bare_llama: %s\n", error.detail);
        return 1;
    }
    bool ok = generate(&model, prompt.tokens, prompt.count, limit, &timing);
    if (ok) {
        double decode_s = (double)(timing.end_us - timing.first_us) / 1e6;
        printf("{\"prompt_tokens\":%zu,\"tokens\":%ld,\"threads\":%d,\"prefill_ms\":%.1f,\"decode_tokens_per_second\":%"
               ".2f}\n",
               prompt.count, timing.tokens, model.thread_count, (double)(timing.first_us - timing.start_us) / 1e3,
               timing.tokens > 1 ? (double)(timing.tokens - 1) / decode_s : 0.0);
    }
    fm_prompt_free(&prompt);
    fm_llama_model_free(&model);
    return ok ? 0 : 1;
}
