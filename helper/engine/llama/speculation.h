/*
 * Whether drafts pay, and how long they should be. This depends on how likely the drafts are right, and on how much
 * longer a batch takes with drafts; both are measured. If one token keeps a processor's cores busy, a batch of 8 takes
 * 5 times as long; if the processor waits for its memory, it takes hardly longer. Engine thread only; nothing here
 * blocks.
 */
#ifndef FM_ENGINE_LLAMA_SPECULATION_H
#define FM_ENGINE_LLAMA_SPECULATION_H

#include "engine/llama/lookup.h"

#define FM_SPECULATION_SIZES 6

#define FM_GUESS_CLASSES 8 /* classes, by how sure a draft model is */

/* How often something was right; older results count less. */
struct fm_guess_count {
    float tried;
    float right;
};

/* Times of batches, in microseconds. */
struct fm_speculation {
    bool always;                       /* drafts are always used: for tests */
    double single;                     /* a batch of a single token; 0: not known yet */
    double more[FM_SPECULATION_SIZES]; /* each token beyond the first, by how many there are; 0: not known yet */
    double guess;                      /* time of a token of the draft model, divided by `single` */
    unsigned guesses;                  /* how often `guess` was measured, up to a limit */
    /* results of all the draft model's tokens; tokens that are too unlikely count as wrong */
    struct fm_guess_count all;
};

/* The account of one answer, in microseconds. All zero: nothing yet. */
struct fm_speculation_account {
    double spent;                                    /* time spent in the answer's batches */
    double gained;                                   /* time gained by the answer's drafts; negative: lost */
    struct fm_guess_count guesses[FM_GUESS_CLASSES]; /* by the draft model */
    struct fm_guess_count all;                       /* as in struct fm_speculation, of this answer */
};

/* The tokens that a draft model guesses for the next batch. */
struct fm_guess {
    size_t count;
    double chance;   /* probability that all are right */
    double expected; /* tokens that the batch is expected to give */
    double took_us;  /* time of the draft model so far, without its time for the prompt */
    double step_us;  /* the part of took_us that counts as a measurement */
    size_t steps;    /* how many steps step_us has */
    bool ended;      /* the token after these is too unlikely, or an end of turn */
    unsigned char classes[FM_DRAFTS_MAX];
};

/*
 * Notes that a batch of one answer's last token and of `drafts` more tokens took `took_us`, and that `accepted` of the
 * drafts were right.
 */
void fm_speculation_measure(struct fm_speculation *speculation, struct fm_speculation_account *account, size_t drafts,
                            size_t accepted, double took_us);

/*
 * The number of drafts that the next batch should have, at most `most`; 0 if drafts do not pay. `token_us` is the time
 * of a token of a prompt; 0: not known.
 */
size_t fm_speculation_drafts(const struct fm_speculation *speculation, const struct fm_speculation_account *account,
                             const struct fm_lookup *lookup, size_t most, double token_us);

/* A guess without tokens. */
struct fm_guess fm_guess_none(void);

/* Whether it pays to guess one more token, at most `most`. `token_us`: as in fm_speculation_drafts. */
bool fm_speculation_guesses(const struct fm_speculation *speculation, const struct fm_speculation_account *account,
                            const struct fm_guess *guess, size_t most, double token_us);

/*
 * Adds a token to `guess`, with the probability that its model reports. False: it does not pay to have it in the batch,
 * and `guess` ends.
 */
bool fm_speculation_take(const struct fm_speculation *speculation, const struct fm_speculation_account *account,
                         struct fm_guess *guess, double probability, double token_us);

/*
 * Call it after fm_speculation_measure, for a batch with the tokens of `guess`: notes that `accepted` of them were
 * right.
 */
void fm_speculation_measure_guess(struct fm_speculation *speculation, struct fm_speculation_account *account,
                                  const struct fm_guess *guess, size_t accepted);

#endif
