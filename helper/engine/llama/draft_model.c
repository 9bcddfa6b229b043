/* A small model that guesses tokens: draft_model.h. */
#include "engine/llama/draft_model.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/llama/bridge.h"
#include "engine/llama/context.h"
#include "engine/llama/matmul.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024.0 * 1024.0)

#define MEASURED_MIN 16 /* only a batch with this many tokens shows how long one takes among many */

#define UNLIKELY 20.0F /* tokens this far below the best logit are ignored */

/* ---- loading ---- */

#define OPTION  "the option draftModel (--draft-model)"
#define ANOTHER "name another model with " OPTION ", or leave it out: "

static enum fm_code refuse_draft(struct fm_error *error, const char *path, const char *why) {
    return fm_fail(error, FM_UNAVAILABLE, ANOTHER "%s: %s", why, path);
}

static bool is_padding(const struct llama_vocab *vocab, llama_token token) {
    return llama_vocab_get_attr(vocab, token) & LLAMA_TOKEN_ATTR_UNUSED;
}

/* Models of one family may have vocabularies of different lengths, because of unused tokens at the end. */
static bool is_all_padding(const struct llama_vocab *vocab, llama_token from) {
    for (llama_token token = from; token < llama_vocab_n_tokens(vocab); token++) {
        if (!is_padding(vocab, token)) {
            return false;
        }
    }
    return true;
}

/* The number of tokens that both vocabularies have; 0: the vocabularies differ. */
static llama_token common_tokens(const struct llama_vocab *ours, const struct llama_vocab *theirs) {
    llama_token count = llama_vocab_n_tokens(ours);
    count = llama_vocab_n_tokens(theirs) < count ? llama_vocab_n_tokens(theirs) : count;
    bool same = llama_vocab_type(ours) == llama_vocab_type(theirs) &&
                llama_vocab_bos(ours) == llama_vocab_bos(theirs) && llama_vocab_eos(ours) == llama_vocab_eos(theirs) &&
                is_all_padding(ours, count) && is_all_padding(theirs, count);
    for (llama_token token = 0; token < count && same; token++) {
        same = strcmp(llama_vocab_get_text(ours, token), llama_vocab_get_text(theirs, token)) == 0;
    }
    return same ? count : 0;
}

/* Whether the two models can work together. */
static enum fm_code check_pair(struct fm_draft_model *draft, const char *path, struct fm_error *error) {
    const struct fm_llama_model *model = draft->model;
    if (model->embeds || !fm_context_keeps_all_tokens(model->weights)) {
        return fm_fail(error, FM_UNAVAILABLE,
                       "leave " OPTION " out: nothing can be guessed for a model that embeds, or has a sliding window or "
                       "recurrent layers: %s",
                       path);
    }
    if (!fm_context_keeps_all_tokens(draft->weights)) {
        return refuse_draft(error, path, "a model with a sliding window or recurrent layers can't guess");
    }
    draft->vocabulary = common_tokens(model->prompter.vocab, llama_model_get_vocab(draft->weights));
    if (draft->vocabulary == 0) {
        return refuse_draft(error, path, "its vocabulary is not the model's, as it is in models of one family");
    }
    return FM_OK;
}

/* Both KV memories together must fit, see fm_context_check. */
static enum fm_code check_memory(const struct fm_draft_model *draft, double bytes, const char *path,
                                 struct fm_error *error) {
    double model = (double)draft->model->kv_bytes;
    double usable = fm_context_usable_memory();
    if (usable <= 0 || model + bytes <= usable) {
        return FM_OK;
    }
    return fm_fail(error, FM_UNAVAILABLE,
                   "leave " OPTION " out, or set " FM_CONTEXT_SETTING " to less: the context needs %.0f MiB for the model "
                   "and %.0f MiB for the draft model, above the %.0f MiB that are three quarters of the memory: %s",
                   model / MIB, bytes / MIB, usable / MIB, path);
}

static enum fm_code make_context(struct fm_draft_model *draft, const struct fm_llama_model *look, const char *path,
                                 const struct fm_llama_model_options *options, struct fm_error *error) {
    const struct fm_llama_model_options own = {.context_length = options->context_length, .slots = 1};
    int64_t trained = llama_model_n_ctx_train(look->weights);
    struct llama_context_params params = fm_context_params(look, &own, path);
    double token_bytes = (double)fm_context_memory(look, &own, path) / params.n_ctx;
    uint32_t room = draft->model->context_length;
    room = trained > 0 && trained < room ? (uint32_t)trained : room;
    params.n_ctx = room;
    params.n_seq_max = 1;
    enum fm_code code = check_memory(draft, token_bytes * room, path, error);
    if (code != FM_OK) {
        return code;
    }
    draft->context = fm_matmul_context(draft->weights, params);
    draft->batch = llama_batch_init(FM_MODEL_BATCH, 0, 1);
    draft->tokens = calloc(room, sizeof *draft->tokens);
    if (!draft->context || !draft->batch.token || !draft->tokens) {
        return refuse_draft(error, path, "there is no memory for its context");
    }
    uint32_t made = llama_n_ctx_seq(draft->context);
    draft->room = made < room ? made : room;
    draft->memory_bytes = (int64_t)((double)llama_model_size(draft->weights) + token_bytes * draft->room);
    fm_threads_share(&draft->model->threads, draft->context);
    return FM_OK;
}

enum fm_code fm_draft_model_load(struct fm_draft_model *draft, const struct fm_llama_model *model, const char *path,
                                 const struct fm_llama_model_options *options, fm_llama_model_progress *progress,
                                 void *argument, struct fm_error *error) {
    struct fm_llama_model look;
    *draft = (struct fm_draft_model){.model = model};
    enum fm_code code = fm_llama_model_load_weights(&look, path, progress, argument, error);
    if (code == FM_UNAVAILABLE) {
        const struct fm_error inner = *error;
        fm_fail(error, code, ANOTHER "%s", inner.detail);
    }
    if (code != FM_OK) {
        return code;
    }
    look.thread_count = model->thread_count;
    draft->weights = look.weights;
    code = look.embeds ? refuse_draft(error, path, "a model that embeds can't guess") : check_pair(draft, path, error);
    code = code ? code : make_context(draft, &look, path, options, error);
    if (code != FM_OK) {
        fm_draft_model_free(draft);
        return code;
    }
    fm_log(FM_LOG_INFO, "draft model: context %zu, %lld bytes", draft->room, (long long)draft->memory_bytes);
    return FM_OK;
}

void fm_draft_model_free(struct fm_draft_model *draft) {
    if (draft->batch.token) {
        llama_batch_free(draft->batch);
    }
    llama_free(draft->context);
    llama_model_free(draft->weights);
    free(draft->tokens);
    *draft = (struct fm_draft_model){0};
}

void fm_draft_model_watch(struct fm_draft_model *draft, fm_llama_stop *stop, void *argument) {
    llama_set_abort_callback(draft->context, stop, argument);
}

/* ---- computing ---- */

/*
 * How many tokens in the draft model's memory can be used again. The last of `tokens` is never among them, because its
 * logits are wanted.
 */
static size_t common(const struct fm_draft_model *draft, const llama_token *tokens, size_t count) {
    size_t same = 0;
    while (same < draft->count && same + 1 < count && draft->tokens[same] == tokens[same]) {
        same++;
    }
    return same;
}

size_t fm_draft_model_behind(const struct fm_draft_model *draft, const llama_token *tokens, size_t count) {
    size_t from = common(draft, tokens, count);
    for (size_t i = from; i < count; i++) {
        if (tokens[i] < 0 || tokens[i] >= draft->vocabulary) { /* padding tokens, which this model may not have */
            return 0;
        }
    }
    return count < draft->room ? count - from : 0;
}

static void cut(struct fm_draft_model *draft, size_t count) {
    llama_memory_seq_rm(llama_get_memory(draft->context), 0, (llama_pos)count, -1);
    draft->count = count;
}

/* Computes one batch of tokens after the tokens in the draft model's memory, with logits after the last one. */
static bool compute_tokens(struct fm_draft_model *draft, const llama_token *tokens, size_t count) {
    struct llama_batch *batch = &draft->batch;
    struct fm_error error = {.detail = ""};
    for (size_t i = 0; i < count; i++) {
        batch->token[i] = tokens[i];
        batch->pos[i] = (llama_pos)(draft->count + i);
        batch->n_seq_id[i] = 1;
        batch->seq_id[i][0] = 0;
        batch->logits[i] = i + 1 == count;
        draft->tokens[draft->count + i] = tokens[i];
    }
    batch->n_tokens = (int32_t)count;
    fm_threads_lend(&draft->model->threads, draft->context);
    int64_t start = fm_now_us();
    int32_t status = fm_compute(draft->context, batch, false, &error);
    double took_us = (double)(fm_now_us() - start) / (double)count;
    if (status != 0) {
        fm_log(FM_LOG_DEBUG, "the draft model stops: %d %s", (int)status, error.detail);
        cut(draft, draft->count); /* some of the batch may be in its memory */
        return false;
    }
    if (count >= MEASURED_MIN) {
        draft->token_us = draft->token_us > 0 ? (draft->token_us * 3 + took_us) / 4 : took_us;
    }
    draft->count += count;
    return true;
}

bool fm_draft_model_follow(struct fm_draft_model *draft, const llama_token *tokens, size_t count, size_t most) {
    size_t from = common(draft, tokens, count);
    bool ok = true;
    if (from < draft->count) {
        cut(draft, from);
    }
    most = count - from < most ? count - from : most;
    for (size_t done = 0; done < most && ok;) {
        size_t piece = most - done < FM_MODEL_BATCH ? most - done : FM_MODEL_BATCH;
        ok = compute_tokens(draft, tokens + from + done, piece);
        done += piece;
    }
    return ok;
}

bool fm_draft_model_go_on(struct fm_draft_model *draft, llama_token token) {
    return draft->count < draft->room && compute_tokens(draft, &token, 1);
}

llama_token fm_draft_model_guess(const struct fm_draft_model *draft, double *probability) {
    const float *logits = llama_get_logits_ith(draft->context, -1);
    llama_token best = 0;
    float sum = 0;
    for (llama_token token = 1; token < draft->vocabulary; token++) {
        best = logits[token] > logits[best] ? token : best;
    }
    for (llama_token token = 0; token < draft->vocabulary; token++) {
        float below = logits[best] - logits[token];
        sum += below < UNLIKELY ? expf(-below) : 0;
    }
    *probability = sum > 0 ? 1 / (double)sum : 0; /* NaN: nothing is likely */
    return best;
}
