/* The cost and gain of drafts: speculation.h. */
#include "engine/llama/speculation.h"

#define BATCH_MAX_US 120000.0 /* a new job waits for the batch, and so do readers of the stream */

/* The gain that a draft must promise, because times vary. It must promise more if drafts have cost this answer time. */
#define GAIN_MIN    1.05
#define LOSS_FACTOR 3

#define AGREE_MORE 4 /* how much longer a draft may be than the repeated text before it */

/*
 * The weight of the chances below, in tokens, compared with the observed results; the upper limit of these; and how
 * long they count.
 */
#define GUESS_WEIGHT 6
#define GUESS_CHANCE 0.6 /* chance that one more token is likely enough, and right */
#define GUESSED_MAX  96

/*
 * A change for each token that is not guessed, so that guessing that did not pay is tried again later, in this answer
 * and in others.
 */
#define FORGET     (1.0F / 64)
#define FORGET_ALL (1.0F / 1024)

#define GUESS_LEAST 0.3 /* a token with a lower probability is not drafted, whatever it costs */
#define GUESS_TRIES 4   /* guessing is measured this often first, */
#define TRIED       2   /* with this many tokens */

#define WEIGHT 0.125 /* the weight of a new measurement in an average */
#define STEP   0.3   /* a measurement that differs by more is limited to this, because other work was in between */

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

/* The time that each of `drafts` tokens adds to a batch. For a size not tried yet, it is estimated from other sizes. */
static double more_of(const struct fm_speculation *speculation, size_t drafts, double token_us) {
    double more = speculation->more[size_of(drafts)];
    more = more > 0 ? more : token_us;
    return more > 0 ? more : speculation->single;
}

static double least_gain(const struct fm_speculation_account *account) {
    return GAIN_MIN + (account->gained < 0 ? LOSS_FACTOR * -account->gained / account->spent : 0);
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
    double expected = 1; /* tokens that the batch is expected to give */
    double chance = 1;   /* probability that all tokens before are right */
    double best = least_gain(account);
    size_t drafts = 0;
    if (single <= 0) {
        return 0;
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

/* ---- guesses of a draft model ---- */

struct fm_guess fm_guess_none(void) {
    return (struct fm_guess){.chance = 1, .expected = 1};
}

static size_t guess_class(double probability) {
    static const double least[FM_GUESS_CLASSES] = {0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97};
    size_t class = FM_GUESS_CLASSES - 1;
    while (class > 0 && !(probability >= least[class])) {
        class --;
    }
    return class;
}

/* The observed chance; `first` is the value before anything was observed. */
static double chance_of(const struct fm_guess_count *seen, double first) {
    return ((double)seen->right + GUESS_WEIGHT * first) / ((double)seen->tried + GUESS_WEIGHT);
}

/* The chance for a token of this class; at first the model's own probability. */
static double guess_chance(const struct fm_speculation_account *account, size_t class) {
    static const double first[FM_GUESS_CLASSES] = {0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.93, 0.98};
    return chance_of(&account->guesses[class], first[class]);
}

/*
 * The speed of the batch with the present guesses, relative to no guesses; and the best speed with up to `most`
 * guesses.
 */
static double gain_so_far(const struct fm_speculation *speculation, const struct fm_guess *guess, double token_us) {
    double more = guess->count > 0 ? (double)guess->count * more_of(speculation, guess->count, token_us) : 0;
    return guess->expected * speculation->single / (speculation->single + guess->took_us + more);
}

static double gain_at_best(const struct fm_speculation *speculation, const struct fm_speculation_account *account,
                           const struct fm_guess *guess, size_t most, double token_us) {
    double single = speculation->single;
    double next = chance_of(&account->all, chance_of(&speculation->all, GUESS_CHANCE));
    double chance = guess->chance;
    double expected = guess->expected;
    double took = single + guess->took_us;
    double best = 0;
    for (size_t i = guess->count + 1; i <= most; i++) {
        chance *= next;
        expected += chance;
        took += speculation->guess * single;
        double whole = took + (double)i * more_of(speculation, i, token_us);
        if (whole > BATCH_MAX_US && whole > 2 * single) {
            break;
        }
        best = expected * single / whole > best ? expected * single / whole : best;
    }
    return best;
}

bool fm_speculation_guesses(const struct fm_speculation *speculation, const struct fm_speculation_account *account,
                            const struct fm_guess *guess, size_t most, double token_us) {
    most = most < FM_DRAFTS_MAX ? most : FM_DRAFTS_MAX;
    if (guess->ended || guess->count >= most) {
        return false;
    }
    if (speculation->always || speculation->single <= 0) {
        return speculation->always;
    }
    if (speculation->guesses < GUESS_TRIES) {
        return guess->count < TRIED;
    }
    double least = guess->count == 0 ? least_gain(account) : gain_so_far(speculation, guess, token_us);
    return gain_at_best(speculation, account, guess, most, token_us) > least;
}

bool fm_speculation_take(const struct fm_speculation *speculation, const struct fm_speculation_account *account,
                         struct fm_guess *guess, double probability, double token_us) {
    size_t class = guess_class(probability);
    struct fm_guess with = *guess;
    with.classes[with.count++] = (unsigned char)class;
    with.chance *= guess_chance(account, class);
    with.expected += with.chance;
    bool pays = speculation->always;
    if (!pays) {
        double best = gain_at_best(speculation, account, &with, FM_DRAFTS_MAX, token_us);
        double now = gain_so_far(speculation, &with, token_us);
        pays = (best > now ? best : now) > gain_so_far(speculation, guess, token_us);
    }
    if (!pays || !(probability >= GUESS_LEAST)) {
        guess->ended = true;
        return false;
    }
    *guess = with;
    return true;
}

static void count_guess(struct fm_guess_count *count, bool right) {
    count->tried += 1;
    count->right += right ? 1 : 0;
    if (count->tried > GUESSED_MAX) {
        count->tried /= 2;
        count->right /= 2;
    }
}

static void forget_part(struct fm_guess_count *count, float part) {
    count->tried -= count->tried * part;
    count->right -= count->right * part;
}

static void count_guesses(struct fm_speculation *speculation, struct fm_speculation_account *account,
                          const struct fm_guess *guess, size_t accepted) {
    for (size_t i = 0; i < guess->count && i <= accepted; i++) {
        count_guess(&account->guesses[guess->classes[i]], i < accepted);
        count_guess(&account->all, i < accepted);
        count_guess(&speculation->all, i < accepted);
    }
    if (guess->ended) {
        count_guess(&account->all, false);
        count_guess(&speculation->all, false);
    } else if (guess->count == 0) {
        forget_part(&account->all, FORGET);
        forget_part(&speculation->all, FORGET_ALL);
    }
}

void fm_speculation_measure_guess(struct fm_speculation *speculation, struct fm_speculation_account *account,
                                  const struct fm_guess *guess, size_t accepted) {
    account->spent += guess->took_us;
    account->gained -= guess->took_us;
    count_guesses(speculation, account, guess, accepted);
    if (speculation->single <= 0 || guess->steps == 0) {
        return;
    }
    double sample = guess->step_us / (double)guess->steps / speculation->single;
    if (speculation->guesses >= GUESS_TRIES) {
        average(&speculation->guess, sample);
        return;
    }
    speculation->guess = speculation->guesses == 0 || sample < speculation->guess ? sample : speculation->guess;
    /* the least measurement counts, because the first one included reading the weights from the disk */
    speculation->guesses++;
}
