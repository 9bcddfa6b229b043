/* An answer's tokens that are computed before they are drawn, under sequence.h. */
#include "engine/llama/sequence.h"

/* How many tokens the answer may have after the one that is next. */
static size_t room_for_drafts(const struct fm_sequence *sequence, const struct fm_batch *batch) {
    const struct fm_kit_job *job = sequence->job;
    size_t most = fm_batch_room(batch);
    size_t context = sequence->model->context_length - sequence->count;
    most = context < most ? context : most;
    if (job->max_tokens > 0 && (size_t)(job->max_tokens - job->output_tokens) <= most) {
        most = (size_t)(job->max_tokens - job->output_tokens);
        most -= most > 0; /* the last one needs no logits after it */
    }
    return most < FM_DRAFTS_MAX ? most : FM_DRAFTS_MAX;
}

void fm_sequence_draft(struct fm_sequence *sequence, struct fm_batch *batch, const struct fm_speculation *speculation,
                       double token_us) {
    const struct fm_cached *cached = sequence->cached;
    if (sequence->lookup.room == 0 || sequence->exact || cached->cache->whole || sequence->output < 0) {
        return;
    }
    fm_lookup_read(&sequence->lookup, sequence->tokens, sequence->count, sequence->request.prompt.count);
    size_t most = fm_speculation_drafts(speculation, &sequence->account, &sequence->lookup,
                                        room_for_drafts(sequence, batch), token_us);
    size_t count = fm_lookup_draft(&sequence->lookup, sequence->tokens, sequence->drafts, most);
    llama_pos position = fm_cached_position(cached, sequence->count);
    for (size_t i = 0; i < count; i++) {
        fm_batch_add(batch, cached->id, sequence->drafts[i], position + (llama_pos)i, true);
    }
    sequence->drafted = count;
}

size_t fm_sequence_accepted(const struct fm_sequence *sequence, size_t next) {
    const llama_token *tokens = sequence->tokens + sequence->cached->count;
    size_t left = sequence->count - sequence->cached->count;
    size_t count = 0;
    while (count < left && next + count < sequence->drafted && tokens[count] == sequence->drafts[next + count]) {
        count++;
    }
    return count;
}
