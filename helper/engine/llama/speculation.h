/*
 * Whether drafts pay, and how long they should be: by how likely they are right, and by what a batch with drafts takes
 * beside one without, both as measured. On a processor whose cores are busy with one token a batch of 8 takes 5 times
 * as long; on one that waits for its memory hardly longer. Engine thread only; nothing here blocks.
 */
#ifndef FM_ENGINE_LLAMA_SPECULATION_H
#define FM_ENGINE_LLAMA_SPECULATION_H

#include "engine/llama/lookup.h"

#define FM_SPECULATION_SIZES 6

/* What batches take, in microseconds. */
struct fm_speculation {
    bool always;                       /* whether it pays or not: for tests */
    double single;                     /* one of a single token; 0: not known yet */
    double more[FM_SPECULATION_SIZES]; /* each token beyond the first, by how many there are; 0: not known yet */
};

/* One answer's account of it, in microseconds. Zeroed: nothing yet. */
struct fm_speculation_account {
    double spent;  /* in its batches */
    double gained; /* by its drafts; negative: lost */
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

#endif
