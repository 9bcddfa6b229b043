/*
 * One job's answer in the making: a state machine that the scheduler moves on. It puts the tokens that are to be
 * computed next into a batch (`fill`), and takes the logits that come of them (`take`): draws a token, tells it, and
 * adds what must follow. It never computes anything by itself, but for images. Engine thread only.
 */
#ifndef FM_ENGINE_LLAMA_SEQUENCE_H
#define FM_ENGINE_LLAMA_SEQUENCE_H

#include "engine/llama/answer.h"
#include "engine/llama/batch.h"
#include "engine/llama/cache.h"
#include "engine/llama/draft_model.h"
#include "engine/llama/lookup.h"
#include "engine/llama/request.h"
#include "engine/llama/sampler.h"
#include "engine/llama/saved.h"
#include "engine/llama/speculation.h"

/* A mark that an answer may begin with, though its grammar does not have it. */
struct fm_start {
    char text[FM_THOUGHT_MARK_MAX + 1]; /* without white space in front; a line may end after a thought's mark */
    size_t len;
    llama_token tokens[FM_THOUGHT_MARK_MAX]; /* as the tokenizer has it */
    size_t count;                            /* 0: the model has no such mark */
    bool same;                               /* what has come are these tokens */
    bool possible;                           /* it is this text, in whatever tokens */
};

/* How an answer with a grammar begins, until it shows whether that is with a thought. Its tokens are computed, and held.
 */
struct fm_opening {
    struct fm_start starts[FM_THOUGHT_MARKS];
    llama_token tokens[FM_THOUGHT_HELD_MAX];
    size_t count;
    char bytes[FM_THOUGHT_HELD_MAX]; /* of the tokens */
    size_t len;
    size_t come;   /* how many of the tokens are a start's, so far as one is possible */
    size_t spaces; /* tokens of white space that the grammar does not have, and were dropped */
    bool sure;     /* the grammar does not have them: they become a mark */
};

/* What makes drafts. */
struct fm_guessing {
    const struct fm_speculation *speculation; /* whether they pay */
    struct fm_draft_model *model;             /* NULL: none */
    double token_us;                          /* see fm_speculation_drafts */
};

struct fm_sequence {
    struct fm_llama_model *model; /* borrowed */
    struct fm_kit_job *job;
    struct fm_llama_request request;
    struct fm_llama_answer answer;
    struct fm_sampler sampler;
    struct fm_opening opening;
    llama_token *tokens; /* of the prompt, and of the answer as far as it is told; room for a context */
    size_t count;
    struct fm_cached *cached; /* what of them is computed; NULL: nothing, and it has no place in the memory */
    int64_t reused;           /* tokens of the prompt that needed no work */
    int64_t processed;        /* tokens of the prompt that are computed; stays where they are lost again */
    bool exact;               /* cache.h */
    bool forced_more;         /* the next token may be a forced one: don't draw */
    size_t filled;            /* its tokens in the batch */
    int32_t output;           /* the index in the batch of the one whose logits it wants; -1: of none */
    struct fm_lookup lookup;  /* where its drafts come from, first of all; ->room 0: it has none */
    struct fm_speculation_account account;
    llama_token drafts[FM_DRAFTS_MAX]; /* tokens that may follow, in the batch after its own */
    size_t drafted;                    /* how many those are */
    size_t accepted;                   /* how many of the last batch's were right */
    int64_t drafted_tokens;            /* of all its batches */
    int64_t accepted_tokens;           /* of these, those that the answer has */
    struct fm_guess guess;             /* what of the batch's drafts is of a draft model: all, or none */
    int64_t guessed_tokens;            /* the same of all batches, */
    int64_t right_guesses;             /* and of these, those that the answer has */
    double read_us;                    /* in which the draft model read what is computed already */
    enum fm_reason reason;             /* why it is over; FM_REASON_NONE: it is not */
    int64_t start_ms;
};

/*
 * Reads `job` and accepts it, unless its grammar is still being compiled afterwards (fm_sequence_compiles); what is
 * wrong with it is in ->reason afterwards, as is that only its prompt was to be counted. `go_on` is asked while images
 * are looked at. Blocks as long as that takes. End it with fm_sequence_end and fm_sequence_release.
 */
void fm_sequence_begin(struct fm_sequence *sequence, struct fm_llama_model *model, struct fm_kit_job *job,
                       fm_image_go_on *go_on, void *state);

/* Its grammar is being compiled on another thread: fm_sequence_try_to_start and fm_sequence_end alone may be called. */
bool fm_sequence_compiles(const struct fm_sequence *sequence);

/* Accepts the job if its grammar is compiled by now; if that failed, or took too long, ->reason says so. */
void fm_sequence_try_to_start(struct fm_sequence *sequence);

/* All its tokens so far, as one prompt; borrowed. */
struct fm_prompt fm_sequence_prompt(const struct fm_sequence *sequence);

/*
 * Takes a place in the memory, with what is there of its tokens, or in a file. Call it before fill, where ->cached is
 * NULL. `exact`: see fm_cache_begin.
 */
void fm_sequence_place(struct fm_sequence *sequence, struct fm_cache *cache, struct fm_saved *saved, bool exact);

/* Gives its place up: another sequence needs the memory. All that it had is computed again later. */
void fm_sequence_yield_place(struct fm_sequence *sequence);

/* More than one token is to be computed: of the prompt, or of all after fm_sequence_yield_place. */
bool fm_sequence_prefills(const struct fm_sequence *sequence);

/* The image's span that is next; NULL: a token is. */
const struct fm_span *fm_sequence_span(const struct fm_sequence *sequence);

/* Adds at most `most` of the tokens that are next to the batch, which has room for them. Returns how many. */
size_t fm_sequence_fill(struct fm_sequence *sequence, struct fm_batch *batch, size_t most);

/*
 * After fm_sequence_fill with the last token: adds tokens that may follow, as many as pay, at most as there is room
 * for: by lookup, or else of the draft model, which blocks as long as it computes. fm_sequence_take draws each token as
 * if there were no drafts, and needs no batch for those that it finds among them: the answer is the same.
 */
void fm_sequence_draft(struct fm_sequence *sequence, struct fm_batch *batch, const struct fm_guessing *by);

/* After fm_sequence_take, for a batch that was its alone and took so long: what came of the drafts. */
void fm_sequence_measure(struct fm_sequence *sequence, struct fm_speculation *speculation, double took_us);

/*
 * After a batch with drafts: how many of the tokens that are next are those of the drafts from the number `next` on.
 * These are in the memory already.
 */
size_t fm_sequence_accepted(const struct fm_sequence *sequence, size_t next);

/* The batch was computed: takes what came of it. `alone`: no other sequence had a part in it. */
void fm_sequence_take(struct fm_sequence *sequence, const struct fm_batch *batch, bool alone);

/* The batch was not, or not in full: what of it may be in the memory goes. */
void fm_sequence_drop(struct fm_sequence *sequence);

/*
 * Computes the span that is next, with its own batch. Blocks; `go_on` is asked while the image is encoded. Where
 * it does not return FM_DECODE_OK, nothing is left of it in the memory.
 */
FM_MUST_USE enum fm_decode fm_sequence_see(struct fm_sequence *sequence, const struct fm_batch *batch,
                                           fm_image_go_on *go_on, void *state);

/* A sign of progress where it is due, see fm_kit_job_go_on. False when the job should stop. */
bool fm_sequence_go_on(const struct fm_sequence *sequence);

/* Over, for `reason`, and with `detail` where that is FM_REASON_ERROR; what it ended for before stays. */
void fm_sequence_stop(struct fm_sequence *sequence, enum fm_reason reason, const char *detail);

/*
 * Finishes the job for ->reason, and frees all but its place: its tokens may be in a batch that is being computed.
 * ->job is NULL then.
 */
void fm_sequence_end(struct fm_sequence *sequence);

/* After fm_sequence_end, and after that batch: its place is free. What was computed stays there for other prompts. */
void fm_sequence_release(struct fm_sequence *sequence);

#endif
