/* The states of recurrent layers at some places of a sequence: checkpoints.h. */
#include "engine/llama/checkpoints.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define APART_MIN 32 /* tokens from one checkpoint to the next: fewer are computed very quickly */
/* a few more tokens than those at a prompt's end that begin the answer, which the next prompt may lack */
#define TAIL      16

struct fm_checkpoint {
    size_t users; /* sequences that have this checkpoint */
    size_t count; /* tokens before the checkpoint */
    size_t bytes;
    unsigned char state[];
};

/* ---- removing a checkpoint ---- */

static void forget_checkpoint(struct fm_cached *cached, size_t index) {
    struct fm_checkpoints *all = &cached->checkpoints;
    struct fm_checkpoint *checkpoint = all->list[index];
    all->count--;
    memmove(&all->list[index], &all->list[index + 1], (all->count - index) * sizeof(struct fm_checkpoint *));
    if (--checkpoint->users == 0) {
        cached->cache->checkpoint_bytes -= checkpoint->bytes;
        free(checkpoint);
    }
}

void fm_checkpoints_drop(struct fm_cached *cached, size_t count) {
    struct fm_checkpoints *all = &cached->checkpoints;
    while (all->count > 0 && (count == 0 || all->list[all->count - 1]->count > count)) {
        forget_checkpoint(cached, all->count - 1);
    }
}

/* The checkpoint whose neighbours are closest to each other; never the last one, which is used most. */
static size_t find_closest(const struct fm_checkpoints *all) {
    size_t closest = 0;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i + 1 < all->count; i++) {
        size_t gap = all->list[i + 1]->count - (i > 0 ? all->list[i - 1]->count : 0);
        closest = gap < least ? i : closest;
        least = gap < least ? gap : least;
    }
    return closest;
}

/*
 * The sequence of least worth that has checkpoints; `but` only if no other sequence has any. NULL: no sequence has any.
 */
static struct fm_cached *find_poorest(struct fm_cached *but) {
    int64_t now = fm_now_ms();
    struct fm_cached *poorest = NULL;
    for (size_t i = 0; i < but->cache->count; i++) {
        struct fm_cached *other = &but->cache->list[i];
        bool eligible = other != but && other->checkpoints.count > 0;
        if (eligible && (!poorest || fm_cached_worth(other, now) < fm_cached_worth(poorest, now))) {
            poorest = other;
        }
    }
    return poorest ? poorest : but->checkpoints.count > 0 ? but : NULL;
}

static bool make_room(struct fm_cached *cached, size_t bytes) {
    const struct fm_cache *cache = cached->cache;
    if (cached->checkpoints.count == FM_CHECKPOINTS_MAX) {
        forget_checkpoint(cached, find_closest(&cached->checkpoints));
    }
    while (bytes <= FM_CHECKPOINTS_BYTES && cache->checkpoint_bytes + bytes > FM_CHECKPOINTS_BYTES) {
        struct fm_cached *poorest = find_poorest(cached);
        if (!poorest) {
            return false;
        }
        forget_checkpoint(poorest, find_closest(&poorest->checkpoints));
    }
    return bytes > 0 && bytes <= FM_CHECKPOINTS_BYTES;
}

/* ---- adding a checkpoint ---- */

static size_t last_of(const struct fm_cached *cached) {
    return fm_checkpoints_before(cached, cached->count);
}

static void take_checkpoint(struct fm_cached *cached) {
    struct llama_context *context = cached->cache->model->context;
    const llama_state_seq_flags flags = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;
    size_t bytes = llama_state_seq_get_size_ext(context, cached->id, flags);
    struct fm_checkpoint *made = make_room(cached, bytes) ? malloc(sizeof *made + bytes) : NULL;
    if (!made || llama_state_seq_get_data_ext(context, made->state, bytes, cached->id, flags) != bytes) {
        free(made);
        return;
    }
    made->users = 1;
    made->count = cached->count;
    made->bytes = bytes;
    cached->checkpoints.list[cached->checkpoints.count++] = made;
    cached->cache->checkpoint_bytes += bytes;
    fm_log(FM_LOG_DEBUG, "a checkpoint of %zu bytes after %zu tokens", bytes, made->count);
}

void fm_checkpoints_add(struct fm_cached *cached) {
    if (cached->cache->states && cached->span_count == 0 && last_of(cached) < cached->count) {
        take_checkpoint(cached);
    }
}

size_t fm_checkpoints_at(const struct fm_cached *cached, size_t index) {
    return cached->checkpoints.list[index]->count;
}

void fm_checkpoints_make(struct fm_cached *cached) {
    size_t *places = cached->checkpoints.places;
    for (size_t i = 0; i < sizeof cached->checkpoints.places / sizeof *places; i++) {
        if (places[i] > 0 && places[i] == cached->count && last_of(cached) + APART_MIN <= cached->count) {
            take_checkpoint(cached);
        }
        places[i] = places[i] <= cached->count ? 0 : places[i];
    }
}

void fm_checkpoints_plan(struct fm_cached *cached, const struct fm_prompt *prompt, size_t parting) {
    size_t *places = cached->checkpoints.places;
    size_t here = cached->count;
    memset(places, 0, sizeof cached->checkpoints.places);
    if (!prompt || !cached->cache->states || prompt->span_count > 0) {
        return;
    }
    if (last_of(cached) + APART_MIN <= here) {
        take_checkpoint(cached);
    }
    size_t before = here;
    if (parting >= before + APART_MIN && parting < prompt->count) {
        places[0] = parting;
        before = parting;
    }
    if (prompt->count >= before + APART_MIN + TAIL) {
        places[1] = prompt->count - TAIL;
    }
}

size_t fm_checkpoints_limit(const struct fm_cached *cached, size_t count) {
    const size_t *places = cached->checkpoints.places;
    for (size_t i = 0; i < sizeof cached->checkpoints.places / sizeof *places; i++) {
        bool within = places[i] > cached->count && places[i] < cached->count + count;
        count = within ? places[i] - cached->count : count;
    }
    return count;
}

/* ---- use ---- */

static const struct fm_checkpoint *find_checkpoint(const struct fm_cached *cached, size_t count) {
    const struct fm_checkpoint *found = NULL;
    for (size_t i = 0; i < cached->checkpoints.count && cached->checkpoints.list[i]->count <= count; i++) {
        found = cached->checkpoints.list[i];
    }
    return found;
}

size_t fm_checkpoints_before(const struct fm_cached *cached, size_t count) {
    const struct fm_checkpoint *found = find_checkpoint(cached, count);
    return found ? found->count : 0;
}

bool fm_checkpoints_restore(const struct fm_cached *cached, size_t count, llama_seq_id to) {
    const struct fm_checkpoint *found = find_checkpoint(cached, count);
    return found && found->count == count &&
           llama_state_seq_set_data_ext(cached->cache->model->context, found->state, found->bytes, to,
                                        LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY) == found->bytes;
}

void fm_checkpoints_share(struct fm_cached *to, const struct fm_cached *from) {
    const struct fm_checkpoints *all = &from->checkpoints;
    for (size_t i = 0; i < all->count && all->list[i]->count <= to->count; i++) {
        all->list[i]->users++;
        to->checkpoints.list[to->checkpoints.count++] = all->list[i];
    }
}
