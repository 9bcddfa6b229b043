/* Batches of tokens and of an image's places: batch.h. */
#include "engine/llama/batch.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

enum fm_code fm_batch_init(struct fm_batch *batch, struct fm_llama_model *model, struct fm_error *error) {
    *batch = (struct fm_batch){.model = model, .tokens = llama_batch_init((int32_t)model->batch_size, 0, 1)};
    return batch->tokens.token ? FM_OK : fm_fail_no_memory(error);
}

void fm_batch_free(struct fm_batch *batch) {
    llama_batch_free(batch->tokens);
    *batch = (struct fm_batch){0};
}

void fm_batch_clear(struct fm_batch *batch) {
    batch->tokens.n_tokens = 0;
}

size_t fm_batch_room(const struct fm_batch *batch) {
    return batch->model->batch_size - (size_t)batch->tokens.n_tokens;
}

int32_t fm_batch_add(struct fm_batch *batch, llama_seq_id id, llama_token token, llama_pos position, bool logits) {
    struct llama_batch *tokens = &batch->tokens;
    int32_t index = tokens->n_tokens++;
    tokens->token[index] = token;
    tokens->pos[index] = position;
    tokens->n_seq_id[index] = 1;
    tokens->seq_id[index][0] = id;
    tokens->logits[index] = logits;
    return index;
}

/* llama.h, llama_decode: 1 is "no KV slot". */
static enum fm_decode compute_tokens(struct fm_llama_model *model, const struct llama_batch *batch) {
    int32_t status = fm_llama_model_compute(model, batch, false);
    switch (status) {
    case 0: return FM_DECODE_OK;
    case 1: return FM_DECODE_FULL;
    case FM_COMPUTE_ABORTED: return FM_DECODE_ABORTED;
    default: fm_log(FM_LOG_ERROR, "llama_decode: %d", (int)status); return FM_DECODE_FAILED;
    }
}

enum fm_decode fm_batch_decode(struct fm_batch *batch) {
    return compute_tokens(batch->model, &batch->tokens);
}

const float *fm_batch_logits(const struct fm_batch *batch, int32_t index) {
    return llama_get_logits_ith(batch->model->context, index);
}

/* ---- spans ---- */

/* Room for one batch of a span. */
struct span_batch {
    struct llama_batch batch;
    llama_pos *all;  /* the span's positions, in rows */
    llama_pos *some; /* those of this batch */
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

static bool make_span_batch(struct span_batch *room, llama_seq_id id, size_t count, size_t rows) {
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
    room->sequence[0] = id;
    for (size_t i = 0; i < count; i++) {
        room->sequences[i] = room->sequence;
        room->sequence_counts[i] = 1;
    }
    room->batch = (struct llama_batch){
        .pos = room->some, .n_seq_id = room->sequence_counts, .seq_id = room->sequences, .logits = room->logits};
    return true;
}

/* Fills the batch with `count` of the `of` places of a span, from the place `from` on. */
static void cut_span(struct span_batch *room, size_t from, size_t count, size_t of, size_t rows, float *states,
                     size_t width) {
    for (size_t row = 0; row < rows; row++) {
        memcpy(room->some + row * count, room->all + row * of + from, count * sizeof *room->some);
    }
    room->batch.n_tokens = (int32_t)count;
    room->batch.embd = states + from * width;
}

static enum fm_decode decode_pieces(struct fm_llama_model *model, struct span_batch *room, const struct fm_span *span,
                                    bool last, float *states) {
    size_t rows = fm_vision_positions(model->vision);
    size_t width = (size_t)llama_model_n_embd_inp(model->weights);
    enum fm_decode result = FM_DECODE_OK;
    for (size_t from = 0; from < span->count && result == FM_DECODE_OK;) {
        size_t left = span->count - from;
        size_t count = left < model->batch_size ? left : model->batch_size;
        cut_span(room, from, count, span->count, rows, states, width);
        room->logits[count - 1] = last && count == left;
        result = compute_tokens(model, &room->batch);
        from += count;
    }
    return result;
}

enum fm_decode fm_batch_decode_span(const struct fm_batch *batch, const struct fm_picture *picture,
                                    const struct fm_span *span, const struct fm_span_place *place, float *states) {
    struct fm_llama_model *model = batch->model;
    struct span_batch room;
    bool whole = fm_vision_needs_whole_spans(model->vision);
    if (!make_span_batch(&room, place->id, span->count, fm_vision_positions(model->vision))) {
        return FM_DECODE_FAILED;
    }
    fm_picture_positions(model->vision, picture, span, place->position, room.all);
    if (whole) {
        llama_set_causal_attn(model->context, false);
    }
    enum fm_decode result = decode_pieces(model, &room, span, place->last, states);
    if (whole) {
        llama_set_causal_attn(model->context, true);
    }
    free_span_batch(&room);
    return result;
}
