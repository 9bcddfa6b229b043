/* The softmax of a model's logits for one token, with the most likely ones beside it. */
#include "engine/llama/logprobs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX   (16u << 20) /* bytes of all the tokens */
#define PIECE_SIZE 256         /* bytes of a token's text; most have less than 20 */

/* The greatest logit is subtracted first, so that nothing overflows. */
double fm_llama_log_sum_exp(const float *logits, size_t size) {
    float greatest = logits[0];
    for (size_t i = 1; i < size; i++) {
        greatest = logits[i] > greatest ? logits[i] : greatest;
    }
    double sum = 0;
    for (size_t i = 0; i < size; i++) {
        sum += (double)expf(logits[i] - greatest);
    }
    return (double)greatest + log(sum);
}

/* The `count` tokens with the greatest logits, greatest first; of equal ones the first. Returns how many there are. */
static size_t find_top(const float *logits, size_t size, size_t count, size_t *top) {
    size_t found = 0;
    for (size_t i = 0; i < size && count > 0; i++) {
        if (found == count && !(logits[i] > logits[top[found - 1]])) {
            continue;
        }
        size_t at = found < count ? found++ : found - 1;
        for (; at > 0 && logits[i] > logits[top[at - 1]]; at--) {
            top[at] = top[at - 1];
        }
        top[at] = i;
    }
    return found;
}

/* Appends the text of `token`; returns its length. */
static size_t append_piece(const struct llama_vocab *vocab, llama_token token, struct fm_buf *text) {
    int32_t room = PIECE_SIZE;
    int32_t len = -1;
    while (len < 0 && fm_buf_reserve(text, (size_t)room)) {
        len = llama_token_to_piece(vocab, token, text->data + text->len, room, 0, true);
        room = len < 0 ? -len : room;
    }
    text->len += len > 0 ? (size_t)len : 0;
    return len > 0 ? (size_t)len : 0;
}

bool fm_llama_logprobs_read(struct fm_llama_logprobs *logprobs, const struct llama_vocab *vocab, const float *logits,
                            llama_token token, size_t count) {
    size_t size = (size_t)llama_vocab_n_tokens(vocab);
    size_t top[FM_TOP_LOGPROBS_MAX];
    double sum = fm_llama_log_sum_exp(logits, size);
    struct fm_token_logprobs *told = &logprobs->told;
    *logprobs = (struct fm_llama_logprobs){.told = {.token = {.logprob = (double)logits[token] - sum}}};
    fm_buf_init(&logprobs->text, TEXT_MAX);
    told->top_count = find_top(logits, size, count, top);
    for (size_t i = 0; i < told->top_count; i++) {
        told->top[i].len = append_piece(vocab, (llama_token)top[i], &logprobs->text);
        told->top[i].logprob = (double)logits[top[i]] - sum;
    }
    const char *bytes = logprobs->text.data;
    for (size_t i = 0; i < told->top_count; i++) { /* now they stay where they are */
        told->top[i].bytes = bytes;
        bytes += told->top[i].len;
    }
    return !logprobs->text.failed;
}

void fm_llama_logprobs_free(struct fm_llama_logprobs *logprobs) {
    fm_buf_free(&logprobs->text);
}

/* ---- held back ---- */

bool fm_held_logprobs_add(struct fm_held_logprobs *held, const struct llama_vocab *vocab, const float *logits,
                          llama_token token, size_t len, size_t count) {
    struct fm_llama_logprobs *tokens = realloc(held->tokens, (held->count + 1) * sizeof *tokens);
    if (!tokens) {
        return false;
    }
    held->tokens = tokens;
    bool read = fm_llama_logprobs_read(&tokens[held->count], vocab, logits, token, count);
    tokens[held->count++].told.token.len = len;
    return read;
}

void fm_held_logprobs_tell(struct fm_held_logprobs *held, struct fm_kit_job *job, const char *text, size_t len) {
    size_t more = 0; /* bytes of tokens before the text */
    for (size_t i = 0; i < held->count; i++) {
        more += held->tokens[i].told.token.len;
    }
    more -= len < more ? len : more;
    for (size_t i = 0; i < held->count; i++) {
        struct fm_logprob *token = &held->tokens[i].told.token;
        size_t skipped = more < token->len ? more : token->len;
        more -= skipped;
        token->len -= skipped;
        token->bytes = text;
        text += token->len;
        fm_kit_job_logprobs(job, &held->tokens[i].told);
    }
}

void fm_held_logprobs_drop(struct fm_held_logprobs *held) {
    for (size_t i = 0; i < held->count; i++) {
        fm_llama_logprobs_free(&held->tokens[i]);
    }
    free(held->tokens);
    *held = (struct fm_held_logprobs){0};
}
