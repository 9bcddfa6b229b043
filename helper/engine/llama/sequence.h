/*
 * One job's answer in the making: a state machine that the scheduler moves on. It puts the tokens to compute next into
 * a batch (`fill`), and takes the resulting logits (`take`): it draws a token, passes it on to the job, and adds tokens
 * that must follow. It computes nothing itself, except images. Engine thread only.
 */
#ifndef FM_ENGINE_LLAMA_SEQUENCE_H
#define FM_ENGINE_LLAMA_SEQUENCE_H

#include "engine/llama/answer.h"
#include "engine/llama/batch.h"
#include "engine/llama/cache.h"
#include "engine/llama/decide.h"
#include "engine/llama/draft_model.h"
#include "engine/llama/lookup.h"
#include "engine/llama/request.h"
#include "engine/llama/sampler.h"
#include "engine/llama/saved.h"
#include "engine/llama/speculation.h"

/* A mark that an answer may begin with, though its grammar does not have it. */
struct fm_start {
    /* the mark without leading white space; a thought's mark may have a line end after it */
    char text[FM_THOUGHT_MARK_MAX + 1];
    size_t len;
    llama_token tokens[FM_THOUGHT_MARK_MAX]; /* the mark's tokens, as the tokenizer splits it */
    size_t count;                            /* 0: the model does not have this mark */
    bool same;                               /* the tokens of the answer so far are the first of `tokens` */
    bool possible;                           /* the text so far is this text, in any tokens */
};

/*
 * The beginning of an answer with a grammar, while it is not clear whether it is a thought. The tokens of the beginning
 * are computed and held.
 */
struct fm_opening {
    struct fm_start starts[FM_THOUGHT_MARKS];
    llama_token tokens[FM_THOUGHT_HELD_MAX];
    size_t count;
    char bytes[FM_THOUGHT_HELD_MAX]; /* bytes of the tokens */
    size_t len;
    size_t come;   /* how many of the tokens belong to a start, while a start is possible */
    size_t spaces; /* how many tokens of white space, which the grammar does not allow, were dropped */
    bool sure;     /* the grammar does not allow the tokens: they must become a mark */
};

/* The sources of drafts. */
struct fm_guessing {
    const struct fm_speculation *speculation; /* decides whether drafts pay */
    struct fm_draft_model *model;             /* NULL: none */
    double token_us;                          /* see fm_speculation_drafts */
};

struct fm_sequence {
    struct fm_llama_model *model; /* borrowed */
    struct fm_kit_job *job;
    struct fm_llama_request request;
    struct fm_llama_answer answer;
    struct fm_decide *decide; /* owned; NULL: the job has no questions */
    struct fm_sampler sampler;
    struct fm_opening opening;
    /* the tokens of the prompt, and of the answer as far as it was passed on; room for a context */
    llama_token *tokens;
    size_t count;
    struct fm_cached *cached; /* the computed tokens; NULL: none, and it has no place in the memory */
    int64_t reused;           /* tokens of the prompt that needed no work */
    int64_t processed;        /* tokens of the prompt that are computed; not reduced if they are lost again */
    bool exact;               /* cache.h */
    bool forced_more;         /* the next token may be a forced one: do not draw */
    size_t filled;            /* how many of its tokens are in the batch */
    int32_t output;           /* index in the batch of the token whose logits are wanted; -1: none */
    struct fm_lookup lookup;  /* the first source of its drafts; ->room 0: it has none */
    struct fm_speculation_account account;
    llama_token drafts[FM_DRAFTS_MAX]; /* tokens that may follow, in the batch after its own tokens */
    size_t drafted;                    /* how many tokens are in `drafts` */
    size_t accepted;                   /* how many of the last batch's drafts were right */
    int64_t drafted_tokens;            /* drafted tokens of all batches */
    int64_t accepted_tokens;           /* drafted tokens that are in the answer */
    struct fm_guess guess;             /* the batch's drafts that come from a draft model: all, or none */
    int64_t guessed_tokens;            /* tokens of all batches that a draft model guessed */
    int64_t right_guesses;             /* how many of the guesses are in the answer */
    double read_us;                    /* time in which the draft model read tokens that are computed already */
    enum fm_reason reason;             /* why the sequence has ended; FM_REASON_NONE: it has not ended */
    int64_t start_ms;
};

/*
 * Reads `job` and accepts it, unless its grammar is still being compiled (fm_sequence_compiles). If something is wrong
 * with it, or only its prompt had to be counted, ->reason is set. `go_on` is called while images are checked. Blocks as
 * long as that takes. End it with fm_sequence_end and fm_sequence_release.
 */
void fm_sequence_begin(struct fm_sequence *sequence, struct fm_llama_model *model, struct fm_kit_job *job,
                       fm_image_go_on *go_on, void *state);

/*
 * True if the sequence's grammar is being compiled on another thread. Then only fm_sequence_try_to_start and
 * fm_sequence_end may be called.
 */
bool fm_sequence_compiles(const struct fm_sequence *sequence);

/* Accepts the job if its grammar is compiled by now; if compiling failed, or took too long, ->reason says so. */
void fm_sequence_try_to_start(struct fm_sequence *sequence);

/* All tokens of the sequence so far, as one prompt; borrowed. */
struct fm_prompt fm_sequence_prompt(const struct fm_sequence *sequence);

/*
 * Takes a place in the KV memory, with the prompt's tokens that are already in the memory or in a file. Call it before
 * fm_sequence_fill if ->cached is NULL. `exact`: see fm_cache_begin.
 */
void fm_sequence_place(struct fm_sequence *sequence, struct fm_cache *cache, struct fm_saved *saved, bool exact);

/* Gives up its place, because another sequence needs the memory. Its tokens are computed again later. */
void fm_sequence_yield_place(struct fm_sequence *sequence);

/* Whether more than one token must be computed: tokens of the prompt, or, after fm_sequence_yield_place, all tokens. */
bool fm_sequence_prefills(const struct fm_sequence *sequence);

/* The image's span that comes next; NULL: a token comes next. */
const struct fm_span *fm_sequence_span(const struct fm_sequence *sequence);

/* Adds at most `most` of the next tokens to the batch, which must have room for them. Returns how many. */
size_t fm_sequence_fill(struct fm_sequence *sequence, struct fm_batch *batch, size_t most);

/*
 * Call it after fm_sequence_fill has added the last token. Adds tokens that may follow, as many as pay and fit: by
 * lookup, or else from the draft model, which blocks while it computes. fm_sequence_take then draws each token as if
 * there were no drafts, but needs no further batch for tokens that were drafted. The answer is the same.
 */
void fm_sequence_draft(struct fm_sequence *sequence, struct fm_batch *batch, const struct fm_guessing *by);

/*
 * Call it after fm_sequence_take, for a batch that had only this sequence and took `took_us`: notes the result of the
 * drafts.
 */
void fm_sequence_measure(struct fm_sequence *sequence, struct fm_speculation *speculation, double took_us);

/*
 * Call it after a batch with drafts. Returns how many of the next tokens are the drafts from index `next` on. These are
 * in the memory already.
 */
size_t fm_sequence_accepted(const struct fm_sequence *sequence, size_t next);

/* Call it when the batch was computed: takes the results. `alone`: no other sequence was in the batch. */
void fm_sequence_take(struct fm_sequence *sequence, const struct fm_batch *batch, bool alone);

/* Call it when the batch was not computed, or not completely: removes its tokens from the memory. */
void fm_sequence_drop(struct fm_sequence *sequence);

/*
 * Computes the next span, in its own batch. Blocks; `go_on` is called while the image is encoded. If it does not return
 * FM_DECODE_OK, nothing of the span is left in the memory.
 */
FM_MUST_USE enum fm_decode fm_sequence_see(struct fm_sequence *sequence, const struct fm_batch *batch,
                                           fm_image_go_on *go_on, void *state);

/* Sends a sign of progress if one is due, see fm_kit_job_go_on. False when the job should stop. */
bool fm_sequence_go_on(const struct fm_sequence *sequence);

/* Ends the sequence for `reason`, with `detail` if `reason` is FM_REASON_ERROR. An earlier reason stays. */
void fm_sequence_stop(struct fm_sequence *sequence, enum fm_reason reason, const char *detail);

/*
 * Finishes the job for ->reason, and frees everything except its place, because its tokens may be in a batch that is
 * being computed. Sets ->job to NULL.
 */
void fm_sequence_end(struct fm_sequence *sequence);

/*
 * Call it after fm_sequence_end, and after the batch that was computed meanwhile: frees the sequence's place. Its
 * computed tokens stay in the memory for other prompts.
 */
void fm_sequence_release(struct fm_sequence *sequence);

#endif
