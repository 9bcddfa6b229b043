/*
 * Draws tokens, with a grammar or without. The grammar allows most tokens that a model wants. So the first draw is
 * free. Only if the grammar does not allow the drawn token, the mask of allowed tokens is computed, and a second draw
 * takes one of these. If no token is cut off, this changes no probability: let p be the probability of an allowed
 * token, and A the sum for all allowed tokens. The token is drawn with p + (1 - A) * p / A = p / A. top_k, min_p and
 * top_p cut each draw by its own candidates. A token that they cut from the free draw, because better tokens that are
 * not allowed are candidates there, may still be drawn in the second draw. Tokens that are candidates in both draws
 * become more likely.
 *
 * There is one exception: if the grammar allows no white space, a token that begins with white space counts as the
 * token without the white space. The grammars of formats have JSON without white space, but most models write a space
 * after each comma. Without the exception, the remaining tokens would say little about what the model wants: a list's
 * next entry would begin with any token that has a quotation mark. If the grammar allows white space, as in a string,
 * the white space is text and stays. The exception does not apply to a token with a bias.
 *
 * Biases and penalties are part of the logits that both draws use, so p above includes them. They are applied before
 * the mask: a banned token is still drawn if the grammar allows no other token. With ignore_eos the tokens that end the
 * turn are banned.
 */
#include "engine/llama/sampler.h"
#include "base/platform.h"
#include "engine/chat/tools.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tokens less likely than this, relative to the best one, are never drawn. Also in PROTOCOL.md. */
#define MIN_P 0.05f

/*
 * A temperature below this counts as 0. Logits are floats of 1 to 100. If two of them differ at all, dividing by
 * TEMPERATURE_MIN makes them differ so much that only the best can be drawn. Dividing by a much smaller number would
 * overflow to infinity.
 */
#define TEMPERATURE_MIN 1e-8

#define SPACED_MAX 32 /* bytes of a token's text; longer texts are ignored */

#define LANES 16
#define BLOCK 1024

/*
 * The number that a ban adds to a logit. It is larger than the differences of logits, but small enough that banned
 * tokens can still be ranked.
 */
#define BAN (-1e5F)

static bool is_greedy(const struct fm_kit_job *job) {
    return job->sampling[FM_PARAM_TEMPERATURE] < TEMPERATURE_MIN;
}

static uint32_t seed_of(const struct fm_kit_job *job) {
    uint64_t seed = (uint64_t)job->seed;
    if (!job->has_seed) {
        fm_random(&seed, sizeof seed);
    }
    uint32_t folded = (uint32_t)(seed ^ seed >> 32);
    return folded == LLAMA_DEFAULT_SEED ? 0 : folded; /* LLAMA_DEFAULT_SEED means "any seed" */
}

/* The steps for the candidates that min_p keeps. */
static struct llama_sampler *make_chain(const struct fm_kit_job *job) {
    struct llama_sampler *chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    const double *sampling = job->sampling;
    if (fm_kit_job_asks(job, FM_PARAM_TOP_K)) {
        llama_sampler_chain_add(chain, llama_sampler_init_top_k((int32_t)sampling[FM_PARAM_TOP_K]));
    }
    llama_sampler_chain_add(chain, llama_sampler_init_temp((float)sampling[FM_PARAM_TEMPERATURE]));
    if (fm_kit_job_asks(job, FM_PARAM_TOP_P)) {
        llama_sampler_chain_add(chain, llama_sampler_init_top_p((float)sampling[FM_PARAM_TOP_P], 1));
    }
    llama_sampler_chain_add(chain, llama_sampler_init_dist(seed_of(job)));
    return chain;
}

static enum fm_code add_biases(struct fm_sampler *sampler, struct fm_error *error) {
    const struct fm_kit_job *job = sampler->job;
    for (size_t i = 0; i < job->logit_bias_count; i++) {
        const struct fm_logit_bias *bias = &job->logit_biases[i];
        if ((size_t)bias->token >= sampler->vocab_size) {
            (void)fm_fail(error, FM_INVALID_REQUEST, "logit_bias: the model has no token %d, its vocabulary has %zu",
                          (int)bias->token, sampler->vocab_size);
            snprintf(error->param, sizeof error->param, "logit_bias");
            return error->code;
        }
        sampler->added[bias->token] = bias->bias > FM_LOGIT_BAN ? (float)bias->bias : BAN;
    }
    return FM_OK;
}

static void ban_ends(struct fm_sampler *sampler, const struct llama_vocab *vocab) {
    for (size_t i = 0; i < sampler->vocab_size; i++) {
        if (llama_vocab_is_eog(vocab, (llama_token)i)) {
            sampler->added[i] = BAN;
        }
    }
}

static enum fm_code prepare_added(struct fm_sampler *sampler, const struct llama_vocab *vocab, struct fm_error *error) {
    const struct fm_kit_job *job = sampler->job;
    bool adds = fm_kit_job_asks(job, FM_PARAM_PRESENCE_PENALTY) || fm_kit_job_asks(job, FM_PARAM_FREQUENCY_PENALTY) ||
                fm_kit_job_asks(job, FM_PARAM_IGNORE_EOS) || job->logit_bias_count > 0;
    if (!adds) {
        return FM_OK;
    }
    sampler->added = calloc(sampler->vocab_size, sizeof *sampler->added);
    sampler->seen = calloc(sampler->vocab_size, sizeof *sampler->seen);
    enum fm_code code = sampler->added && sampler->seen ? add_biases(sampler, error) : fm_fail_no_memory(error);
    if (code == FM_OK && fm_kit_job_asks(job, FM_PARAM_IGNORE_EOS)) { /* whatever their bias */
        ban_ends(sampler, vocab);
    }
    return code;
}

static enum fm_code prepare_window(struct fm_sampler *sampler, struct fm_error *error) {
    if (!fm_kit_job_asks(sampler->job, FM_PARAM_REPEAT_PENALTY)) {
        return FM_OK;
    }
    sampler->recent = calloc(sampler->vocab_size, sizeof *sampler->recent);
    return sampler->recent ? FM_OK : fm_fail_no_memory(error);
}

enum fm_code fm_sampler_init(struct fm_sampler *sampler, const struct fm_kit_job *job, struct fm_grammar *grammar,
                             const struct llama_vocab *vocab, struct fm_error *error) {
    *sampler = (struct fm_sampler){.grammar = grammar,
                                   .job = job,
                                   .vocab = vocab,
                                   .end = LLAMA_TOKEN_NULL,
                                   .vocab_size = (size_t)llama_vocab_n_tokens(vocab)};
    for (size_t i = 0; i < FM_SAMPLER_ALSO; i++) {
        sampler->also[i] = LLAMA_TOKEN_NULL;
    }
    sampler->candidates = calloc(sampler->vocab_size, sizeof *sampler->candidates);
    enum fm_code code = sampler->candidates ? prepare_added(sampler, vocab, error) : fm_fail_no_memory(error);
    code = code ? code : prepare_window(sampler, error);
    if (code == FM_OK && (sampler->added || sampler->recent)) {
        sampler->adjusted = calloc(sampler->vocab_size, sizeof *sampler->adjusted);
        code = sampler->adjusted ? FM_OK : fm_fail_no_memory(error);
    }
    if (code != FM_OK) {
        fm_sampler_free(sampler);
        return code;
    }
    sampler->chain = is_greedy(job) ? NULL : make_chain(job);
    return FM_OK;
}

void fm_sampler_free(struct fm_sampler *sampler) {
    llama_sampler_free(sampler->chain);
    free(sampler->candidates);
    free(sampler->adjusted);
    free(sampler->added);
    free(sampler->seen);
    free(sampler->recent);
    *sampler = (struct fm_sampler){0};
}

static void take_recent(struct fm_sampler *sampler, llama_token token) {
    llama_token *place = &sampler->window[sampler->windowed % FM_REPEAT_WINDOW];
    if (!sampler->recent || token < 0 || (size_t)token >= sampler->vocab_size) {
        return;
    }
    if (sampler->windowed++ >= FM_REPEAT_WINDOW) {
        sampler->recent[*place]--;
    }
    *place = token;
    sampler->recent[token]++;
}

void fm_sampler_take_prompt(struct fm_sampler *sampler, const llama_token *tokens, size_t count) {
    for (size_t i = count > FM_REPEAT_WINDOW ? count - FM_REPEAT_WINDOW : 0; i < count; i++) {
        take_recent(sampler, tokens[i]);
    }
}

/*
 * Penalises the logit of a token that has come lately, as llama.cpp's own sampler does: the token becomes less likely
 * on both sides of 0.
 */
static float penalise(const struct fm_sampler *sampler, float logit) {
    double penalty = sampler->job->sampling[FM_PARAM_REPEAT_PENALTY];
    double penalised = logit > 0 ? logit / penalty : logit * penalty;
    return penalised < -BAN ? (float)penalised : -BAN; /* a tiny penalty may make a huge reward, but not infinity */
}

void fm_sampler_take(struct fm_sampler *sampler, llama_token token) {
    take_recent(sampler, token);
    if (sampler->added) {
        const double *sampling = sampler->job->sampling;
        double first = sampler->seen[token] ? 0 : sampling[FM_PARAM_PRESENCE_PENALTY];
        double penalty = sampling[FM_PARAM_FREQUENCY_PENALTY] + first;
        sampler->added[token] -= (float)penalty;
        sampler->seen[token] = 1;
    }
}

/* ---- one draw ---- */

/* The logits that both draws use: the model's logits, with penalties and biases if there are any. */
static const float *adjust(struct fm_sampler *sampler, const float *logits) {
    float *adjusted = sampler->adjusted;
    if (!adjusted) {
        return logits;
    }
    memcpy(adjusted, logits, sampler->vocab_size * sizeof *adjusted);
    for (size_t i = 0; sampler->recent && i < sampler->vocab_size; i++) {
        adjusted[i] = sampler->recent[i] ? penalise(sampler, adjusted[i]) : adjusted[i];
    }
    for (size_t i = 0; sampler->added && i < sampler->vocab_size; i++) {
        adjusted[i] += sampler->added[i];
    }
    return adjusted;
}

/*
 * Works in lanes, which the compiler turns into vectors. By itself the compiler may not change the order of
 * comparisons.
 */
static float highest(const float *logits, size_t count) {
    float lanes[LANES];
    float best = -INFINITY;
    for (size_t i = 0; i < LANES; i++) {
        lanes[i] = -INFINITY;
    }
    for (size_t i = 0; i + LANES <= count; i += LANES) {
        for (size_t lane = 0; lane < LANES; lane++) {
            lanes[lane] = logits[i + lane] > lanes[lane] ? logits[i + lane] : lanes[lane];
        }
    }
    for (size_t i = 0; i < LANES; i++) {
        best = lanes[i] > best ? lanes[i] : best;
    }
    for (size_t i = count - count % LANES; i < count; i++) {
        best = logits[i] > best ? logits[i] : best;
    }
    return best;
}

/* The index of the highest logit, the first one if several are equal. Any index if the logits are no numbers. */
static size_t find_highest(const float *logits, size_t count) {
    size_t found = 0;
    float best = -INFINITY;
    for (size_t from = 0; from < count; from += BLOCK) {
        size_t length = count - from < BLOCK ? count - from : BLOCK;
        float of_block = highest(logits + from, length);
        if (of_block > best) {
            best = of_block;
            found = from;
        }
    }
    while (found + 1 < count && logits[found] < best) {
        found++;
    }
    return found;
}

static bool is_in(const uint32_t *mask, size_t token) {
    return !mask || mask[token / 32] & 1u << token % 32;
}

/*
 * The next token, from `*at` on, that may come although `mask` does not have it. LLAMA_TOKEN_NULL: there are no more.
 */
static llama_token next_also(const struct fm_sampler *sampler, const uint32_t *mask, size_t *at) {
    while (mask && sampler->also_alike && *at < FM_SAMPLER_ALSO) {
        llama_token token = sampler->also[(*at)++];
        bool again = false;
        for (size_t i = 0; i + 1 < *at; i++) {
            again |= sampler->also[i] == token;
        }
        if (token != LLAMA_TOKEN_NULL && !again && !is_in(mask, (size_t)token)) {
            return token;
        }
    }
    return LLAMA_TOKEN_NULL;
}

/*
 * The best token among the tokens in `mask` (NULL: all tokens) and the tokens that may come in addition.
 * LLAMA_TOKEN_NULL: there is none.
 */
static llama_token find_best(const struct fm_sampler *sampler, const float *logits, const uint32_t *mask) {
    llama_token best = LLAMA_TOKEN_NULL;
    if (!mask) {
        return (llama_token)find_highest(logits, sampler->vocab_size);
    }
    for (size_t i = 0; i < sampler->vocab_size; i++) {
        if (is_in(mask, i) && (best == LLAMA_TOKEN_NULL || logits[i] > logits[best])) {
            best = (llama_token)i;
        }
    }
    size_t at = 0;
    for (llama_token token; (token = next_also(sampler, mask, &at)) != LLAMA_TOKEN_NULL;) {
        best = best == LLAMA_TOKEN_NULL || logits[token] > logits[best] ? token : best;
    }
    return best;
}

/*
 * Collects the candidates: tokens in `mask`, and tokens that may come in addition, that are not too unlikely compared
 * with the best one. They are few of many, so that all later steps are quick.
 */
static llama_token draw(struct fm_sampler *sampler, const float *logits, const uint32_t *mask) {
    llama_token best = find_best(sampler, logits, mask);
    if (best == LLAMA_TOKEN_NULL || is_greedy(sampler->job)) {
        return best;
    }
    struct llama_token_data_array candidates = {.data = sampler->candidates, .selected = -1};
    bool asks = fm_kit_job_asks(sampler->job, FM_PARAM_MIN_P);
    float least = logits[best] + logf(asks ? (float)sampler->job->sampling[FM_PARAM_MIN_P] : MIN_P);
    for (size_t i = 0; i < sampler->vocab_size; i++) {
        if (logits[i] >= least && is_in(mask, i)) {
            sampler->candidates[candidates.size++] =
                (struct llama_token_data){.id = (llama_token)i, .logit = logits[i]};
        }
    }
    size_t at = 0;
    for (llama_token token; (token = next_also(sampler, mask, &at)) != LLAMA_TOKEN_NULL;) {
        if (logits[token] >= least) {
            sampler->candidates[candidates.size++] = (struct llama_token_data){.id = token, .logit = logits[token]};
        }
    }
    if (candidates.size > 0) {
        llama_sampler_apply(sampler->chain, &candidates);
    }
    return candidates.selected < 0 ? best : candidates.data[candidates.selected].id;
}

static int32_t token_text(const struct fm_sampler *sampler, llama_token token, char text[SPACED_MAX]) {
    return token == LLAMA_TOKEN_NULL ? 0 : llama_token_to_piece(sampler->vocab, token, text, SPACED_MAX, 0, false);
}

/* `len` is below 0 if the text is too long. */
static int32_t space_of(const char *text, int32_t len) {
    return len > 0 ? (int32_t)fm_tool_space(text, (size_t)len) : 0;
}

static bool is_space(const struct fm_sampler *sampler, llama_token token) {
    char text[SPACED_MAX];
    int32_t len = token_text(sampler, token, text);
    return len > 0 && space_of(text, len) == len;
}

static bool may_come(struct fm_sampler *sampler, llama_token token) {
    bool also = sampler->also_space && is_space(sampler, token);
    for (size_t i = 0; i < FM_SAMPLER_ALSO; i++) {
        also |= token == sampler->also[i];
    }
    return token != LLAMA_TOKEN_NULL && (also || fm_grammar_allows(sampler->grammar, token));
}

/* The token with exactly this text, or LLAMA_TOKEN_NULL. */
static llama_token token_of(const struct fm_sampler *sampler, const char *text, int32_t len) {
    char same[SPACED_MAX];
    llama_token found[2];
    bool is_one = llama_tokenize(sampler->vocab, text, len, found, 2, false, false) == 1 &&
                  token_text(sampler, found[0], same) == len && memcmp(same, text, (size_t)len) == 0;
    return is_one ? found[0] : LLAMA_TOKEN_NULL;
}

static bool has_bias(const struct fm_kit_job *job, llama_token token) {
    for (size_t i = 0; i < job->logit_bias_count; i++) {
        if (job->logit_biases[i].token == token) {
            return true;
        }
    }
    return false;
}

/*
 * The token that replaces `token`, which the grammar does not allow: the token with the same text without its white
 * space, or LLAMA_TOKEN_NULL.
 */
static llama_token without_space(struct fm_sampler *sampler, llama_token token) {
    char text[SPACED_MAX];
    int32_t len = token_text(sampler, token, text);
    int32_t spaces = space_of(text, len);
    if (spaces == 0 || spaces >= len || may_come(sampler, token_of(sampler, text, 1))) {
        return LLAMA_TOKEN_NULL;
    }
    llama_token bare = token_of(sampler, text + spaces, len - spaces);
    return has_bias(sampler->job, bare) || !may_come(sampler, bare) ? LLAMA_TOKEN_NULL : bare;
}

/* Whether the token's text begins with a letter, in any script; white space before it does not count. */
static bool is_word(const struct fm_sampler *sampler, llama_token token) {
    char text[SPACED_MAX];
    int32_t len = token_text(sampler, token, text);
    int32_t spaces = space_of(text, len);
    unsigned char first = spaces < len ? (unsigned char)text[spaces] : 0;
    return (first | 0x20) >= 'a' && ((first | 0x20) <= 'z' || first >= 0x80);
}

static bool wants_prose(struct fm_sampler *sampler, llama_token token) {
    return sampler->end != LLAMA_TOKEN_NULL && is_word(sampler, token) && fm_grammar_accepts(sampler->grammar);
}

llama_token fm_sampler_draw(struct fm_sampler *sampler, const float *logits) {
    logits = adjust(sampler, logits);
    llama_token token = draw(sampler, logits, NULL);
    if (sampler->grammar && !may_come(sampler, token)) {
        bool ends = wants_prose(sampler, token);
        token = without_space(sampler, token);
        token = token == LLAMA_TOKEN_NULL && ends ? sampler->end : token;
        const uint32_t *mask = token == LLAMA_TOKEN_NULL ? fm_grammar_mask(sampler->grammar) : NULL;
        token = mask ? draw(sampler, logits, mask) : token;
    }
    if (token != LLAMA_TOKEN_NULL && sampler->chain) {
        llama_sampler_accept(sampler->chain, token);
    }
    return token;
}
