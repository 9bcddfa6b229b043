/* What drafts cost and gain, under speculation.h. */
#include "engine/llama/speculation.h"

#define BATCH_MAX_US 120000.0 /* a job that comes waits for it, and whoever reads along */

/* A draft has to promise so much, because times vary; and more by what drafts have lost of the answer's time. */
#define GAIN_MIN    1.05
#define LOSS_FACTOR 3

#define AGREE_MORE 4 /* a draft may be longer by so much than what was repeated before it */

#define WEIGHT 0.125 /* of a new measurement */
#define STEP   0.3   /* one that is far off counts as if it were so far: other work was in between */

static size_t size_of(size_t drafts) {
    static const size_t least[FM_SPECULATION_SIZES] = {0, 2, 4, 8, 12, 20};
    size_t size = FM_SPECULATION_SIZES - 1;
    while (drafts < least[size]) {
        size--;
    }
    return size;
}

static void average(double *value, double sample) {
    if (*value <= 0) {
        *value = sample;
        return;
    }
    double least = *value * (1 - STEP);
    double most = *value * (1 + STEP);
    sample = sample < least ? least : sample > most ? most : sample;
    *value += (sample - *value) * WEIGHT;
}

void fm_speculation_measure(struct fm_speculation *speculation, struct fm_speculation_account *account, size_t drafts,
                            size_t accepted, double took_us) {
    account->spent += took_us;
    if (drafts == 0) {
        average(&speculation->single, took_us);
        return;
    }
    double more = (took_us - speculation->single) / (double)drafts;
    average(&speculation->more[size_of(drafts)], more > 1 ? more : 1);
    account->gained += (double)(accepted + 1) * speculation->single - took_us;
}

/* What each of `drafts` tokens adds to a batch; of a size that was not tried yet, what is known of others. */
static double more_of(const struct fm_speculation *speculation, size_t drafts, double token_us) {
    double more = speculation->more[size_of(drafts)];
    more = more > 0 ? more : token_us;
    return more > 0 ? more : speculation->single;
}

size_t fm_speculation_drafts(const struct fm_speculation *speculation, const struct fm_speculation_account *account,
                             const struct fm_lookup *lookup, size_t most, double token_us) {
    double single = speculation->single;
    size_t agree = lookup->agree + AGREE_MORE;
    most = agree < most ? agree : most;
    most = most < FM_DRAFTS_MAX ? most : FM_DRAFTS_MAX;
    if (speculation->always) {
        return lookup->found ? most : 0;
    }
    double expected = 1; /* tokens that the batch gives */
    double chance = 1;   /* that all before are right */
    double best = GAIN_MIN;
    size_t drafts = 0;
    if (single <= 0) {
        return 0;
    }
    if (account->gained < 0) {
        best += LOSS_FACTOR * -account->gained / account->spent;
    }
    for (size_t i = 1; i <= most; i++) {
        double took = single + (double)i * more_of(speculation, i, token_us);
        chance *= fm_lookup_chance(lookup, i - 1);
        expected += chance;
        if (took > BATCH_MAX_US && took > 2 * single) {
            break;
        }
        if (expected * single / took > best) {
            best = expected * single / took;
            drafts = i;
        }
    }
    return drafts;
}
