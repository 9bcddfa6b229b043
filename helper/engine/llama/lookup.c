/* Drafts from earlier text: lookup.h. Works like a compressor, which finds repeated texts. */
#include "engine/llama/lookup.h"

#include <stdlib.h>

#define KEY       3     /* tokens that a search begins with */
#define STEPS     24    /* places that a search checks */
#define AGREE_MAX 64    /* tokens that are compared */
#define ROOM_MAX  65536 /* tokens */
#define HASH_BITS 13

/*
 * After a difference the repeated text may continue: at most this many tokens further on in the old text, and within
 * this many tokens of the answer.
 */
#define RESUME_NEAR   12
#define RESUME_WITHIN 8
#define RESUME_MIN    4 /* if at least this many tokens agreed before the difference */

/*
 * The weight of the chances below, in tokens, compared with the observed results; and the upper limit of the observed
 * results.
 */
#define CHANCE_WEIGHT 6
#define SEEN_MAX      96

/* Chances by class: for a text that a search found, and for a text that continues after a difference. */
static const float first_chances[2][FM_LOOKUP_CLASSES] = {
    {0.3F, 0.4F, 0.5F, 0.65F, 0.75F, 0.85F, 0.93F, 0.97F, 0.98F},
    {0.75F, 0.8F, 0.9F, 0.93F, 0.95F, 0.96F, 0.97F, 0.98F, 0.98F},
};

enum fm_code fm_lookup_init(struct fm_lookup *lookup, size_t most, struct fm_error *error) {
    *lookup = (struct fm_lookup){.room = 256};
    while (lookup->room < most && lookup->room < ROOM_MAX) {
        lookup->room *= 2;
    }
    lookup->heads = calloc((size_t)1 << HASH_BITS, sizeof *lookup->heads);
    lookup->links = calloc(lookup->room, sizeof *lookup->links);
    if (!lookup->heads || !lookup->links) {
        fm_lookup_free(lookup);
        return fm_fail_no_memory(error);
    }
    return FM_OK;
}

void fm_lookup_free(struct fm_lookup *lookup) {
    free(lookup->heads);
    free(lookup->links);
    *lookup = (struct fm_lookup){0};
}

/* ---- what follows ---- */

static bool begins_with(const int32_t *tokens, size_t count, const int32_t *with, size_t with_count) {
    for (size_t i = 0; i < with_count; i++) {
        if (i >= count || tokens[i] != with[i]) {
            return false;
        }
    }
    return with_count > 0;
}

static bool changes(const struct fm_lookup *lookup, const struct fm_lookup_place *place, const int32_t *tokens) {
    const struct fm_lookup_change *change = &lookup->change;
    return place->changed > 0 ||
           begins_with(tokens + place->at, lookup->count - place->at, change->from, change->from_count);
}

/* The token at `place`, which moves on. `drafts` come after the tokens: a text may repeat itself inside its draft. */
static int32_t next_token(const struct fm_lookup *lookup, struct fm_lookup_place *place, const int32_t *tokens,
                          const int32_t *drafts) {
    const struct fm_lookup_change *change = &lookup->change;
    if (place->at >= lookup->count) {
        return drafts[place->at++ - lookup->count];
    }
    if (changes(lookup, place, tokens)) {
        int32_t token = change->to[place->changed++];
        if (place->changed == change->to_count) {
            *place = (struct fm_lookup_place){.at = place->at + change->from_count};
        }
        return token;
    }
    return tokens[place->at++];
}

size_t fm_lookup_draft(const struct fm_lookup *lookup, const int32_t *tokens, int32_t *drafts, size_t most) {
    struct fm_lookup_place place = lookup->place;
    size_t count = 0;
    while (lookup->found && count < most && place.at < lookup->count + count) {
        drafts[count] = next_token(lookup, &place, tokens, drafts);
        if (drafts[count] < 0) { /* a place of an image */
            break;
        }
        count++;
    }
    return count;
}

/* ---- chances ---- */

static size_t class_of(size_t agree) {
    static const size_t least[FM_LOOKUP_CLASSES] = {0, 2, 3, 4, 6, 8, 12, 20, 32};
    size_t class = FM_LOOKUP_CLASSES - 1;
    while (agree < least[class]) {
        class --;
    }
    return class;
}

double fm_lookup_chance(const struct fm_lookup *lookup, size_t ahead) {
    size_t class = class_of(lookup->agree + ahead);
    double tried = (double)lookup->counts[lookup->resumed][class].tried + CHANCE_WEIGHT;
    double right = (double)lookup->counts[lookup->resumed][class].right;
    right += CHANCE_WEIGHT * (double)first_chances[lookup->resumed][class];
    return lookup->found ? right / tried : 0;
}

static void count_chance(struct fm_lookup *lookup, bool right) {
    float *tried = &lookup->counts[lookup->resumed][class_of(lookup->agree)].tried;
    float *rights = &lookup->counts[lookup->resumed][class_of(lookup->agree)].right;
    *tried += 1;
    *rights += right ? 1 : 0;
    if (*tried > SEEN_MAX) { /* older results count less */
        *tried /= 2;
        *rights /= 2;
    }
}

/* ---- searching ---- */

static uint32_t *head_of(const struct fm_lookup *lookup, const int32_t *end) {
    uint32_t hash = 0;
    for (size_t i = 1; i <= KEY; i++) {
        hash = (hash ^ (uint32_t)end[-(ptrdiff_t)i]) * 2654435761U;
        hash ^= hash >> 15;
    }
    return &lookup->heads[hash >> (32 - HASH_BITS)];
}

/* How many tokens before both places are the same. */
static size_t agreement(const int32_t *tokens, size_t one, size_t other) {
    size_t agree = 0;
    while (agree < AGREE_MAX && agree < one && tokens[one - agree - 1] == tokens[other - agree - 1]) {
        agree++;
    }
    return agree;
}

/* Finds the place where most tokens agree; of equal ones the last. */
static void search(struct fm_lookup *lookup, const int32_t *tokens, size_t count) {
    size_t best = 0;
    uint32_t link = *head_of(lookup, tokens + count);
    for (size_t steps = 0; steps < STEPS && link > 0 && link - 1 + lookup->room > count && link - 1 < count; steps++) {
        size_t agree = agreement(tokens, link - 1, count);
        if (agree >= KEY && agree > best) {
            best = agree;
            lookup->found = true;
            lookup->resumed = false;
            lookup->agree = agree;
            lookup->place = (struct fm_lookup_place){.at = link - 1};
        }
        uint32_t before = lookup->links[(link - 1) & (lookup->room - 1)];
        link = before < link ? before : 0;
    }
}

/* ---- differences ---- */

/* Notes that the answer has the `count` tokens before `end` in place of the tokens from `from` up to `to`. */
static void note_change(struct fm_lookup *lookup, const int32_t *tokens, size_t from, size_t to, size_t end,
                        size_t count) {
    struct fm_lookup_change *change = &lookup->change;
    if (to - from == 0 || to - from > FM_LOOKUP_CHANGE_MAX || count == 0 || count > FM_LOOKUP_CHANGE_MAX) {
        return;
    }
    change->from_count = to - from;
    change->to_count = count;
    for (size_t i = 0; i < change->from_count; i++) {
        change->from[i] = tokens[from + i];
    }
    for (size_t i = 0; i < count; i++) {
        change->to[i] = tokens[end - count + i];
    }
}

/* If the token before `count` is one that comes soon after the difference, the text continues there. */
static void resume(struct fm_lookup *lookup, const int32_t *tokens, size_t count) {
    size_t differ = count - 1 - lookup->lost_since;
    if (differ > RESUME_WITHIN) {
        lookup->lost = false;
        return;
    }
    for (size_t i = 0; i < RESUME_NEAR && lookup->lost_at + i < lookup->lost_since; i++) {
        if (tokens[lookup->lost_at + i] == tokens[count - 1]) {
            note_change(lookup, tokens, lookup->lost_at, lookup->lost_at + i, count - 1, differ);
            lookup->found = true;
            lookup->resumed = true;
            lookup->agree = 1;
            lookup->place = (struct fm_lookup_place){.at = lookup->lost_at + i + 1};
            return;
        }
    }
}

/* Notes whether `token` is the expected token. */
static void follow_token(struct fm_lookup *lookup, const int32_t *tokens, int32_t token, bool counts) {
    struct fm_lookup_place before = lookup->place;
    bool inside = before.at < lookup->count;
    bool changed = inside && changes(lookup, &before, tokens);
    bool right = inside && next_token(lookup, &lookup->place, tokens, NULL) == token;
    if (counts) {
        count_chance(lookup, right);
    }
    if (right) {
        lookup->agree += lookup->agree < AGREE_MAX;
        return;
    }
    lookup->found = false;
    if (changed) {
        lookup->change.from_count = 0;
    }
    if (lookup->agree >= RESUME_MIN) {
        lookup->lost = true;
        lookup->lost_at = before.at;
        lookup->lost_since = lookup->count;
    }
}

/* Reads the next token. `last`: a draft may be asked for after this token. */
static void read_token(struct fm_lookup *lookup, const int32_t *tokens, bool counts, bool last) {
    if (lookup->found) {
        follow_token(lookup, tokens, tokens[lookup->count], counts);
    }
    size_t count = ++lookup->count;
    bool weak = !lookup->found || (!lookup->resumed && lookup->agree < RESUME_MIN);
    if (lookup->lost && lookup->lost_since < count - 1 && weak) {
        resume(lookup, tokens, count);
    }
    if (count < KEY) {
        return;
    }
    if (last && !lookup->found) {
        search(lookup, tokens, count);
    }
    uint32_t *head = head_of(lookup, tokens + count);
    lookup->links[count & (lookup->room - 1)] = *head;
    *head = (uint32_t)count + 1;
}

void fm_lookup_read(struct fm_lookup *lookup, const int32_t *tokens, size_t count, size_t answer) {
    while (lookup->count < count) {
        read_token(lookup, tokens, lookup->count >= answer, lookup->count + 1 >= answer);
    }
}
