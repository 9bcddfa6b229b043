#include "engine/llama/slot.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

#define DECODE_ABORTED 2 /* llama_decode's */

static size_t vocab_size(const struct fm_slot *slot) {
    return (size_t)llama_vocab_n_tokens(slot->model->prompter.vocab);
}

enum fm_code fm_slot_init(struct fm_slot *slot, struct fm_model *model, llama_seq_id sequence, struct fm_error *error) {
    *slot = (struct fm_slot){.model = model, .sequence = sequence};
    slot->tokens = calloc(model->context_length, sizeof *slot->tokens);
    slot->logits = calloc(vocab_size(slot), sizeof *slot->logits);
    slot->batch = llama_batch_init((int32_t)model->chunk, 0, 1);
    if (!slot->tokens || !slot->logits || !slot->batch.token) {
        fm_slot_free(slot);
        return fm_fail_no_memory(error);
    }
    return FM_OK;
}

void fm_slot_free(struct fm_slot *slot) {
    free(slot->tokens);
    free(slot->logits);
    llama_batch_free(slot->batch);
    *slot = (struct fm_slot){0};
}

static size_t whole_chunks(const struct fm_slot *slot, size_t count) {
    return count - count % slot->model->chunk;
}

/* Forgets all but the first `count` tokens. Some memories can't forget a part: then all goes. */
static void truncate_to(struct fm_slot *slot, size_t count) {
    llama_memory_t memory = llama_get_memory(slot->model->context);
    if (!llama_memory_seq_rm(memory, slot->sequence, (llama_pos)count, -1)) {
        llama_memory_seq_rm(memory, slot->sequence, -1, -1);
        count = 0;
    }
    slot->count = count;
    size_t whole = whole_chunks(slot, count);
    slot->exact = whole < slot->exact ? whole : slot->exact;
    slot->logits_count = slot->logits_count <= count ? slot->logits_count : 0;
}

/* The prompt is the last one, again. */
static bool comes_again(const struct fm_slot *slot, const llama_token *prompt, size_t count, bool repeatable) {
    return slot->logits_count == count && (slot->logits_exact || !repeatable) &&
           memcmp(slot->tokens, prompt, count * sizeof *prompt) == 0;
}

static void keep_logits(struct fm_slot *slot, bool exact) {
    memcpy(slot->logits, llama_get_logits_ith(slot->model->context, -1), vocab_size(slot) * sizeof *slot->logits);
    slot->logits_count = slot->count;
    slot->logits_exact = exact;
}

void fm_slot_reuse(struct fm_slot *slot, const llama_token *prompt, size_t count, bool repeatable) {
    size_t common = 0;
    size_t limit = repeatable ? slot->exact : slot->count;
    /* A recurrent or sliding memory holds the end of the sequence alone. */
    if (llama_memory_seq_pos_min(llama_get_memory(slot->model->context), slot->sequence) != 0) {
        truncate_to(slot, 0);
        return;
    }
    if (comes_again(slot, prompt, count, repeatable)) {
        truncate_to(slot, count);
        return;
    }
    while (common < limit && common + 1 < count && slot->tokens[common] == prompt[common]) {
        common++;
    }
    truncate_to(slot, repeatable ? whole_chunks(slot, common) : common);
}

static enum fm_decode decode(struct fm_slot *slot, const llama_token *tokens, size_t count, bool logits) {
    struct llama_batch *batch = &slot->batch;
    batch->n_tokens = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        batch->token[i] = tokens[i];
        batch->pos[i] = (llama_pos)(slot->count + i);
        batch->n_seq_id[i] = 1;
        batch->seq_id[i][0] = slot->sequence;
        batch->logits[i] = logits && i + 1 == count;
    }
    int32_t status = llama_decode(slot->model->context, *batch);
    if (status != 0) {
        truncate_to(slot, slot->count); /* what was processed before it stopped is still in the memory */
        if (status != DECODE_ABORTED) {
            fm_log(FM_LOG_ERROR, "llama_decode: %d", (int)status);
        }
        return status == DECODE_ABORTED ? FM_DECODE_ABORTED : FM_DECODE_FAILED;
    }
    memcpy(slot->tokens + slot->count, tokens, count * sizeof *tokens);
    slot->count += count;
    return FM_DECODE_OK;
}

enum fm_decode fm_slot_prefill(struct fm_slot *slot, const llama_token *prompt, size_t count) {
    size_t from = slot->count;
    size_t left = count - from;
    size_t whole = slot->model->chunk;
    size_t chunk = whole - from % whole;
    chunk = chunk < left ? chunk : left;
    enum fm_decode result = decode(slot, prompt + from, chunk, chunk == left);
    if (result != FM_DECODE_OK) {
        return result;
    }
    if (chunk == left) {
        keep_logits(slot, from == slot->exact);
    }
    if (from == slot->exact && chunk == whole) {
        slot->exact = slot->count;
    }
    return result;
}

enum fm_decode fm_slot_append(struct fm_slot *slot, const llama_token *tokens, size_t count) {
    return decode(slot, tokens, count, true);
}

const float *fm_slot_logits(const struct fm_slot *slot) {
    bool kept = slot->logits_count > 0 && slot->logits_count == slot->count;
    return kept ? slot->logits : llama_get_logits_ith(slot->model->context, -1);
}
