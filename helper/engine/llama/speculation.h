/*
 * Whether drafts pay, and how long they should be: by how likely they are right, and by what a batch with drafts takes
 * beside one without, both as measured. On a processor whose cores are busy with one token a batch of 8 takes 5 times
 * as long; on one that waits for its memory hardly longer. Engine thread only; nothing here blocks.
 */
#ifndef FM_ENGINE_LLAMA_SPECULATION_H
#define FM_ENGINE_LLAMA_SPECULATION_H

#include "engine/llama/lookup.h"

#define FM_SPECULATION_SIZES 6

#define FM_GUESS_CLASSES 8 /* of how sure a draft model is */

/* How often something was right; what is long ago counts less. */
struct fm_guess_count {
    float tried;
    float right;
};

/* What batches take, in microseconds. */
struct fm_speculation {
    bool always;                       /* whether it pays or not: for tests */
    double single;                     /* one of a single token; 0: not known yet */
    double more[FM_SPECULATION_SIZES]; /* each token beyond the first, by how many there are; 0: not known yet */
    double guess;                      /* a token of the draft model, as a part of `single` */
    unsigned guesses;                  /* how often that was measured, as far as it matters */
    struct fm_guess_count all;         /* of its tokens; those that were too unlikely count as wrong ones */
};

/* One answer's account of it, in microseconds. Zeroed: nothing yet. */
struct fm_speculation_account {
    double spent;                                    /* in its batches */
    double gained;                                   /* by its drafts; negative: lost */
    struct fm_guess_count guesses[FM_GUESS_CLASSES]; /* of the draft model */
    struct fm_guess_count all;                       /* as above */
};

/* What a draft model guesses for the next batch. */
struct fm_guess {
    size_t count;
    double chance;   /* that all are right */
    double expected; /* tokens that the batch gives */
    double took_us;  /* the draft model, so far; what it took for the prompt is not in it */
    double step_us;  /* the part of that which counts as measurements, */
    size_t steps;    /* and how many there are */
    bool ended;      /* the one after these is too unlikely, or the end */
    unsigned char classes[FM_DRAFTS_MAX];
};

/* A batch of one answer's last token and of `drafts` more took `took_us`; `accepted` of them were right. */
void fm_speculation_measure(struct fm_speculation *speculation, struct fm_speculation_account *account, size_t drafts,
                            size_t accepted, double took_us);

/*
 * How many drafts the next batch should have, at most `most`; 0 where they do not pay. `token_us` is what a token of a
 * prompt takes; 0: not known.
 */
size_t fm_speculation_drafts(const struct fm_speculation *speculation, const struct fm_speculation_account *account,
                             const struct fm_lookup *lookup, size_t most, double token_us);

/* Nothing is guessed yet. */
struct fm_guess fm_guess_none(void);

/* Whether it pays to have one more token guessed, at most `most`. `token_us` as above. */
bool fm_speculation_guesses(const struct fm_speculation *speculation, const struct fm_speculation_account *account,
                            const struct fm_guess *guess, size_t most, double token_us);

/*
 * Adds to `guess` a token that is so probable, as its model says. False: it does not pay to have it in the batch, and
 * `guess` has ended.
 */
bool fm_speculation_take(const struct fm_speculation *speculation, const struct fm_speculation_account *account,
                         struct fm_guess *guess, double probability, double token_us);

/* After fm_speculation_measure: whether `guess`, whose tokens the batch had, was right. Without any, others were. */
void fm_speculation_measure_guess(struct fm_speculation *speculation, struct fm_speculation_account *account,
                                  const struct fm_guess *guess, size_t accepted);

#endif
