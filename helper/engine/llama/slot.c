/* The KV memory of one sequence: what of it the next prompt reuses, and the prefill of the rest in chunks. */
#include "engine/llama/slot.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static size_t vocab_size(const struct fm_slot *slot) {
    return (size_t)llama_vocab_n_tokens(slot->model->prompter.vocab);
}

enum fm_code fm_slot_init(struct fm_slot *slot, struct fm_llama_model *model, llama_seq_id sequence,
                          struct fm_error *error) {
    *slot = (struct fm_slot){.model = model, .sequence = sequence};
    slot->tokens = calloc(model->context_length, sizeof *slot->tokens);
    slot->spans = calloc(model->vision ? model->context_length : 1, sizeof *slot->spans);
    slot->logits = calloc(vocab_size(slot), sizeof *slot->logits);
    slot->batch = llama_batch_init((int32_t)model->chunk, 0, 1);
    if (!slot->tokens || !slot->spans || !slot->logits || !slot->batch.token) {
        fm_slot_free(slot);
        return fm_fail_no_memory(error);
    }
    return FM_OK;
}

void fm_slot_free(struct fm_slot *slot) {
    free(slot->tokens);
    free(slot->spans);
    free(slot->logits);
    llama_batch_free(slot->batch);
    *slot = (struct fm_slot){0};
}

/* ---- places ---- */

/* The position of what comes after the first `count` tokens: an image's span may have fewer than it has places. */
static llama_pos position_of(const struct fm_slot *slot, size_t count) {
    llama_pos position = (llama_pos)count;
    for (size_t i = 0; i < slot->span_count && slot->spans[i].at + slot->spans[i].count <= count; i++) {
        position += slot->spans[i].positions - (llama_pos)slot->spans[i].count;
    }
    return position;
}

/* The most of the first `count` tokens that are whole spans. */
static size_t whole_spans(const struct fm_slot *slot, size_t count) {
    for (size_t i = 0; i < slot->span_count; i++) {
        const struct fm_span *span = &slot->spans[i];
        if (span->at < count && count < span->at + span->count) {
            return span->at;
        }
    }
    return count;
}

/*
 * The most of the first `count` tokens that any prompt which begins with them computes in the same chunks. `count` is
 * not inside a span.
 */
static size_t whole_chunks(const struct fm_slot *slot, size_t count) {
    size_t whole = count - count % slot->model->chunk;
    for (size_t i = 0; i < slot->span_count && slot->spans[i].at < count; i++) {
        size_t end = slot->spans[i].at + slot->spans[i].count;
        whole = end > whole ? end : whole;
    }
    return whole;
}

/* Forgets all but the first `count` tokens. Some memories can't forget a part: then all goes. */
static void truncate_to(struct fm_slot *slot, size_t count) {
    llama_memory_t memory = llama_get_memory(slot->model->context);
    if (!llama_memory_seq_rm(memory, slot->sequence, position_of(slot, count), -1)) {
        llama_memory_seq_rm(memory, slot->sequence, -1, -1);
        count = 0;
    }
    slot->count = count;
    while (slot->span_count > 0 && slot->spans[slot->span_count - 1].at >= count) {
        slot->span_count--;
    }
    size_t whole = whole_chunks(slot, count);
    slot->exact = whole < slot->exact ? whole : slot->exact;
    slot->logits_count = slot->logits_count <= count ? slot->logits_count : 0;
}

/* How many spans `prompt` and the slot begin with alike. */
static size_t common_spans(const struct fm_slot *slot, const struct fm_prompt *prompt) {
    size_t common = 0;
    while (common < slot->span_count && common < prompt->span_count &&
           fm_span_equal(&slot->spans[common], &prompt->spans[common])) {
        common++;
    }
    return common;
}

/* How many tokens they begin with alike, `limit` at most: up to a token or a span that differs. */
static size_t common_tokens(const struct fm_slot *slot, const struct fm_prompt *prompt, size_t limit) {
    size_t spans = common_spans(slot, prompt);
    size_t common = 0;
    if (spans < slot->span_count && slot->spans[spans].at < limit) {
        limit = slot->spans[spans].at;
    }
    while (common < limit && common < prompt->count && slot->tokens[common] == prompt->tokens[common]) {
        common++;
    }
    return whole_spans(slot, common);
}

/* The prompt is the last one, again. */
static bool comes_again(const struct fm_slot *slot, const struct fm_prompt *prompt, bool repeatable) {
    return slot->logits_count == prompt->count && (slot->logits_exact || !repeatable) &&
           common_tokens(slot, prompt, prompt->count) == prompt->count;
}

static void keep_logits(struct fm_slot *slot, bool exact) {
    memcpy(slot->logits, llama_get_logits_ith(slot->model->context, -1), vocab_size(slot) * sizeof *slot->logits);
    slot->logits_count = slot->count;
    slot->logits_exact = exact;
}

void fm_slot_reuse(struct fm_slot *slot, const struct fm_prompt *prompt, bool repeatable) {
    size_t limit = repeatable ? slot->exact : slot->count;
    /* A recurrent or sliding memory holds the end of the sequence alone. */
    if (llama_memory_seq_pos_min(llama_get_memory(slot->model->context), slot->sequence) != 0) {
        truncate_to(slot, 0);
        return;
    }
    if (comes_again(slot, prompt, repeatable)) {
        truncate_to(slot, prompt->count);
        return;
    }
    limit = limit < prompt->count ? limit : prompt->count - 1;
    size_t common = common_tokens(slot, prompt, limit);
    truncate_to(slot, repeatable ? whole_chunks(slot, common) : common);
}

/* ---- computing ---- */

static enum fm_decode decode(struct fm_slot *slot, const struct llama_batch *batch) {
    int32_t status = fm_llama_model_compute(slot->model, batch, false);
    if (status == 0) {
        return FM_DECODE_OK;
    }
    truncate_to(slot, slot->count); /* what was processed before it stopped is still in the memory */
    if (status != FM_COMPUTE_ABORTED) {
        fm_log(FM_LOG_ERROR, "llama_decode: %d", (int)status);
    }
    return status == FM_COMPUTE_ABORTED ? FM_DECODE_ABORTED : FM_DECODE_FAILED;
}

static enum fm_decode decode_tokens(struct fm_slot *slot, const llama_token *tokens, size_t count, bool logits) {
    struct llama_batch *batch = &slot->batch;
    llama_pos position = position_of(slot, slot->count);
    batch->n_tokens = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        batch->token[i] = tokens[i];
        batch->pos[i] = position + (llama_pos)i;
        batch->n_seq_id[i] = 1;
        batch->seq_id[i][0] = slot->sequence;
        batch->logits[i] = logits && i + 1 == count;
    }
    enum fm_decode result = decode(slot, batch);
    if (result == FM_DECODE_OK) {
        memcpy(slot->tokens + slot->count, tokens, count * sizeof *tokens);
        slot->count += count;
    }
    return result;
}

/* A chunk was computed, from the token `from` on up to where each prompt that begins with it has a chunk's end. */
static void note_exact(struct fm_slot *slot, size_t from, bool whole) {
    if (from == slot->exact && whole) {
        slot->exact = slot->count;
    }
}

const struct fm_span *fm_slot_next_span(const struct fm_slot *slot, const struct fm_prompt *prompt) {
    size_t next = slot->span_count; /* those before it are the prompt's */
    return next < prompt->span_count && prompt->spans[next].at == slot->count ? &prompt->spans[next] : NULL;
}

/* How many tokens of `prompt` come before its next span, or its end. */
static size_t tokens_left(const struct fm_slot *slot, const struct fm_prompt *prompt) {
    size_t next = slot->span_count;
    return (next < prompt->span_count ? prompt->spans[next].at : prompt->count) - slot->count;
}

enum fm_decode fm_slot_prefill(struct fm_slot *slot, const struct fm_prompt *prompt) {
    size_t from = slot->count;
    size_t left = tokens_left(slot, prompt);
    size_t whole = slot->model->chunk - from % slot->model->chunk;
    size_t chunk = whole < left ? whole : left;
    bool last = from + chunk == prompt->count;
    enum fm_decode result = decode_tokens(slot, prompt->tokens + from, chunk, last);
    if (result != FM_DECODE_OK) {
        return result;
    }
    if (last) {
        keep_logits(slot, from == slot->exact);
    }
    note_exact(slot, from, chunk == whole || !last);
    return result;
}

/* Room for one batch of a span. */
struct span_batch {
    struct llama_batch batch;
    llama_pos *all;  /* the span's positions, in rows */
    llama_pos *some; /* those of the batch */
    llama_seq_id *sequence;
    llama_seq_id **sequences;
    int32_t *sequence_counts;
    int8_t *logits;
};

static void free_span_batch(struct span_batch *room) {
    free(room->all);
    free(room->some);
    free(room->sequence);
    free(room->sequences);
    free(room->sequence_counts);
    free(room->logits);
}

static bool make_span_batch(struct span_batch *room, const struct fm_slot *slot, size_t count, size_t rows) {
    *room = (struct span_batch){
        .all = calloc(count * rows, sizeof *room->all),
        .some = calloc(count * rows, sizeof *room->some),
        .sequence = calloc(1, sizeof *room->sequence),
        .sequences = calloc(count, sizeof *room->sequences),
        .sequence_counts = calloc(count, sizeof *room->sequence_counts),
        .logits = calloc(count, sizeof *room->logits),
    };
    if (!room->all || !room->some || !room->sequence || !room->sequences || !room->sequence_counts || !room->logits) {
        free_span_batch(room);
        return false;
    }
    room->sequence[0] = slot->sequence;
    for (size_t i = 0; i < count; i++) {
        room->sequences[i] = room->sequence;
        room->sequence_counts[i] = 1;
    }
    room->batch = (struct llama_batch){
        .pos = room->some, .n_seq_id = room->sequence_counts, .seq_id = room->sequences, .logits = room->logits};
    return true;
}

/* `count` places of a span of `of`, from the place `from` on. */
static void cut_span(struct span_batch *room, size_t from, size_t count, size_t of, size_t rows, float *states,
                     size_t width) {
    for (size_t row = 0; row < rows; row++) {
        memcpy(room->some + row * count, room->all + row * of + from, count * sizeof *room->some);
    }
    room->batch.n_tokens = (int32_t)count;
    room->batch.embd = states + from * width;
}

static enum fm_decode decode_span(struct fm_slot *slot, struct span_batch *room, const struct fm_span *span, bool last,
                                  float *states) {
    const struct fm_llama_model *model = slot->model;
    size_t rows = fm_vision_positions(model->vision);
    size_t width = (size_t)llama_model_n_embd_inp(model->weights);
    enum fm_decode result = FM_DECODE_OK;
    for (size_t from = 0; from < span->count && result == FM_DECODE_OK;) {
        size_t left = span->count - from;
        size_t count = left < model->span_chunk ? left : model->span_chunk;
        cut_span(room, from, count, span->count, rows, states, width);
        room->logits[count - 1] = last && count == left;
        result = decode(slot, &room->batch);
        from += count;
    }
    return result;
}

enum fm_decode fm_slot_prefill_span(struct fm_slot *slot, const struct fm_prompt *prompt,
                                    const struct fm_picture *picture, const struct fm_span *span, float *states) {
    const struct fm_llama_model *model = slot->model;
    struct span_batch room;
    size_t from = slot->count;
    bool last = from + span->count == prompt->count;
    bool whole = fm_vision_needs_whole_spans(model->vision);
    if (!make_span_batch(&room, slot, span->count, fm_vision_positions(model->vision))) {
        return FM_DECODE_FAILED;
    }
    fm_picture_positions(model->vision, picture, span, position_of(slot, from), room.all);
    if (whole) {
        llama_set_causal_attn(model->context, false);
    }
    enum fm_decode result = decode_span(slot, &room, span, last, states);
    if (whole) {
        llama_set_causal_attn(model->context, true);
    }
    free_span_batch(&room);
    if (result != FM_DECODE_OK) {
        return result;
    }
    memcpy(slot->tokens + from, prompt->tokens + from, span->count * sizeof *slot->tokens);
    slot->spans[slot->span_count++] = *span;
    slot->count += span->count;
    if (last) {
        keep_logits(slot, from == slot->exact);
    }
    note_exact(slot, from, true);
    return result;
}

enum fm_decode fm_slot_append(struct fm_slot *slot, const llama_token *tokens, size_t count) {
    return decode_tokens(slot, tokens, count, true);
}

const float *fm_slot_logits(const struct fm_slot *slot) {
    bool kept = slot->logits_count > 0 && slot->logits_count == slot->count;
    return kept ? slot->logits : llama_get_logits_ith(slot->model->context, -1);
}
