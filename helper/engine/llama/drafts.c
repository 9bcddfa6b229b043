/* Tokens of an answer that are computed before they are drawn: sequence.h. */
#include "base/clock.h"
#include "engine/llama/sequence.h"

/*
 * A draft model that lacks more than a few tokens, mostly those of the prompt, reads them first. This may take a part
 * of the time that the answer has taken so far. The tokens are read in pieces, because each piece delays the next
 * token.
 */
#define BEHIND_MAX 8
#define READ_PART  8 /* 1/READ_PART of the answer's time */
#define PIECE_US   80000.0
#define PIECE_MIN  32

/* How many tokens the answer may have after the next one. */
static size_t room_for_drafts(const struct fm_sequence *sequence, const struct fm_batch *batch) {
    const struct fm_kit_job *job = sequence->job;
    size_t most = fm_batch_room(batch);
    size_t context = sequence->model->context_length - sequence->count;
    most = context < most ? context : most;
    if (job->max_tokens > 0 && (size_t)(job->max_tokens - job->output_tokens) <= most) {
        most = (size_t)(job->max_tokens - job->output_tokens);
        most -= most > 0; /* no logits are needed after the last token */
    }
    return most < FM_DRAFTS_MAX ? most : FM_DRAFTS_MAX;
}

/* ---- a draft model ---- */

/* How many of the tokens that the draft model lacks it may read now. */
static size_t piece_of(const struct fm_sequence *sequence, const struct fm_draft_model *model, size_t behind) {
    if (model->token_us <= 0) {
        return PIECE_MIN;
    }
    double spent_us = (double)(fm_now_ms() - sequence->start_ms) * 1000;
    if (sequence->read_us + (double)behind * model->token_us > spent_us / READ_PART) {
        return 0;
    }
    size_t piece = (size_t)(PIECE_US / model->token_us);
    return piece > PIECE_MIN ? piece : PIECE_MIN;
}

/* Lets the draft model read the answer so far. False: it can't guess for this batch. */
static bool read_behind(struct fm_sequence *sequence, const struct fm_guessing *by) {
    size_t behind = fm_draft_model_behind(by->model, sequence->tokens, sequence->count);
    bool reads = behind > BEHIND_MAX;
    size_t piece = !reads || by->speculation->always ? behind : piece_of(sequence, by->model, behind);
    if (piece == 0) {
        return false;
    }
    int64_t start = fm_now_us();
    bool ok = fm_draft_model_follow(by->model, sequence->tokens, sequence->count, piece);
    double took_us = (double)(fm_now_us() - start);
    if (reads) {
        sequence->read_us += took_us;
        sequence->account.spent += took_us;
    } else {
        sequence->guess.took_us += took_us;
        sequence->guess.step_us += took_us;
        sequence->guess.steps += behind;
    }
    return ok && piece >= behind;
}

/* Guesses one token, if there is one that may be in the batch. */
static bool guess_token(struct fm_sequence *sequence, const struct fm_guessing *by) {
    struct fm_guess *guess = &sequence->guess;
    double probability;
    int64_t start = fm_now_us();
    bool ok = guess->count == 0 || fm_draft_model_go_on(by->model, sequence->drafts[guess->count - 1]);
    llama_token token = ok ? fm_draft_model_guess(by->model, &probability) : LLAMA_TOKEN_NULL;
    double took_us = (double)(fm_now_us() - start);
    guess->took_us += took_us;
    if (guess->count > 0) {
        guess->step_us += took_us;
        guess->steps++;
    }
    if (!ok || llama_vocab_is_eog(sequence->answer.vocab, token)) { /* nothing comes after an end of turn */
        guess->ended = ok;
        return false;
    }
    if (!fm_speculation_take(by->speculation, &sequence->account, guess, probability, by->token_us)) {
        return false;
    }
    sequence->drafts[guess->count - 1] = token;
    return true;
}

/* Lets a draft model guess at most `most` tokens. Returns how many. */
static size_t guess_tokens(struct fm_sequence *sequence, const struct fm_guessing *by, size_t most) {
    const struct fm_guess *guess = &sequence->guess;
    const struct fm_speculation_account *account = &sequence->account;
    if (!fm_speculation_guesses(by->speculation, account, guess, most, by->token_us) || !read_behind(sequence, by)) {
        return 0;
    }
    while (fm_speculation_guesses(by->speculation, account, guess, most, by->token_us) && guess_token(sequence, by)) {
    }
    return guess->count;
}

/* ---- drafts ---- */

void fm_sequence_draft(struct fm_sequence *sequence, struct fm_batch *batch, const struct fm_guessing *by) {
    const struct fm_cached *cached = sequence->cached;
    if (sequence->lookup.room == 0 || sequence->exact || cached->cache->states || sequence->output < 0) {
        return;
    }
    fm_lookup_read(&sequence->lookup, sequence->tokens, sequence->count, sequence->request.prompt.count);
    size_t room = room_for_drafts(sequence, batch);
    size_t most = fm_speculation_drafts(by->speculation, &sequence->account, &sequence->lookup, room, by->token_us);
    size_t count = fm_lookup_draft(&sequence->lookup, sequence->tokens, sequence->drafts, most);
    if (count == 0 && by->model) {
        count = guess_tokens(sequence, by, room);
    }
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

void fm_sequence_measure(struct fm_sequence *sequence, struct fm_speculation *speculation, double took_us) {
    fm_speculation_measure(speculation, &sequence->account, sequence->drafted, sequence->accepted, took_us);
    fm_speculation_measure_guess(speculation, &sequence->account, &sequence->guess, sequence->accepted);
    if (sequence->guess.count > 0) {
        sequence->guessed_tokens += (int64_t)sequence->drafted;
        sequence->right_guesses += (int64_t)sequence->accepted;
    }
}
