/* Which tokens of which sequence are in the KV memory: cache.h. */
#include "engine/llama/cache.h"
#include "base/clock.h"
#include "engine/llama/checkpoints.h"
#include "engine/llama/context.h"
#include "engine/llama/kv_memory.h"
#include "engine/llama/swap.h"

#include <stdlib.h>
#include <string.h>

#define SWAP_COST 256 /* at most this many tokens can be moved in the time of computing one token */
#define STAYS_MIN 256 /* tokens of the last conversation; fewer tokens can be moved back within a millisecond or two   \
                       */

#define LOST_MAX                                                                                                       \
    16 /* tokens that a conversation may lose when it is continued; they are quickly computed again if needed */

static bool init_cached(struct fm_cache *cache, size_t index) {
    struct fm_cached *cached = &cache->list[index];
    uint32_t context = cache->model->context_length;
    cached->cache = cache;
    cached->id = (llama_seq_id)index;
    cached->tokens = calloc(context, sizeof *cached->tokens);
    cached->spans = calloc(cache->model->vision ? context : 1, sizeof *cached->spans);
    return cached->tokens && cached->spans;
}

enum fm_code fm_cache_init(struct fm_cache *cache, struct fm_llama_model *model, size_t count, struct fm_error *error) {
    *cache = (struct fm_cache){.model = model,
                               .states = fm_context_has_states(model->weights),
                               .window = llama_model_n_swa(model->weights),
                               .pure = true};
    cache->list = calloc(count, sizeof *cache->list);
    bool made = cache->list != NULL;
    cache->count = made ? count : 0;
    for (size_t i = 0; i < cache->count && made; i++) {
        made = init_cached(cache, i);
    }
    if (!made) {
        fm_cache_free(cache);
        return fm_fail_no_memory(error);
    }
    return FM_OK;
}

void fm_cache_free(struct fm_cache *cache) {
    for (size_t i = 0; i < cache->count; i++) {
        free(cache->list[i].tokens);
        free(cache->list[i].spans);
        free(cache->list[i].state);
        fm_checkpoints_drop(&cache->list[i], 0);
    }
    free(cache->list);
    *cache = (struct fm_cache){0};
}

/* ---- places ---- */

llama_pos fm_cached_position(const struct fm_cached *cached, size_t count) {
    llama_pos position = (llama_pos)count;
    for (size_t i = 0; i < cached->span_count && cached->spans[i].at + cached->spans[i].count <= count; i++) {
        position += cached->spans[i].positions - (llama_pos)cached->spans[i].count;
    }
    return position;
}

/* The largest number of tokens, up to `count`, that does not end inside a span. */
static size_t whole_spans(const struct fm_cached *cached, size_t count) {
    for (size_t i = 0; i < cached->span_count; i++) {
        const struct fm_span *span = &cached->spans[i];
        if (span->at < count && count < span->at + span->count) {
            return span->at;
        }
    }
    return count;
}

/*
 * How many of the first `count` tokens are computed in the same chunks by every prompt that begins with them. `count`
 * is not inside a span.
 */
static size_t whole_chunks(const struct fm_cached *cached, size_t count) {
    size_t whole = count - count % cached->cache->model->chunk;
    for (size_t i = 0; i < cached->span_count && cached->spans[i].at < count; i++) {
        size_t end = cached->spans[i].at + cached->spans[i].count;
        whole = end > whole ? end : whole;
    }
    return whole;
}

static llama_memory_t memory_of(const struct fm_cache *cache) {
    return llama_get_memory(cache->model->context);
}

static void drop_spans(struct fm_cached *cached) {
    while (cached->span_count > 0 && cached->spans[cached->span_count - 1].at >= cached->count) {
        cached->span_count--;
    }
}

/*
 * Whether all layers still have the tokens that the token after the first `count` attends to. True at a sequence's end.
 */
static bool has_window(const struct fm_cached *cached, size_t count) {
    if (cached->cache->window <= 0 || count == cached->count) {
        return true;
    }
    llama_pos first = fm_cached_position(cached, count) - cached->cache->window + 1;
    llama_pos least = llama_memory_seq_pos_min(memory_of(cached->cache), cached->id);
    return least >= 0 && least <= (first > 0 ? first : 0);
}

/* Removes all tokens after the first `count`. False: recurrent layers have no state after exactly `count` tokens. */
static bool remove_after(const struct fm_cached *cached, size_t count) {
    llama_memory_t memory = memory_of(cached->cache);
    llama_pos position = fm_cached_position(cached, count);
    return llama_memory_seq_rm(memory, cached->id, position, -1) &&
           (!cached->cache->states || llama_memory_seq_pos_max(memory, cached->id) == position - 1);
}

/* Goes back to a checkpoint, or to the beginning. Returns how many tokens are left. */
static size_t go_back(struct fm_cached *cached, size_t count) {
    count = fm_checkpoints_before(cached, count);
    cached->exact = 0;
    if (count == 0 || !fm_checkpoints_restore(cached, count, cached->id) || !remove_after(cached, count)) {
        llama_memory_seq_rm(memory_of(cached->cache), cached->id, -1, -1);
        return 0;
    }
    return count;
}

void fm_cached_cut(struct fm_cached *cached, size_t count) {
    fm_swap_drop(cached);
    count = count < cached->count ? count : cached->count;
    bool back = !has_window(cached, count) || !remove_after(cached, count);
    cached->count = back ? go_back(cached, count) : count;
    cached->shared = cached->count < cached->shared ? cached->count : cached->shared;
    drop_spans(cached);
    fm_checkpoints_drop(cached, cached->count);
    size_t whole = whole_chunks(cached, cached->count);
    cached->exact = whole < cached->exact ? whole : cached->exact;
}

/* ---- what can be used again ---- */

/* How many spans at the beginning are the same in both. */
static size_t common_spans(const struct fm_cached *cached, const struct fm_prompt *prompt) {
    size_t common = 0;
    while (common < cached->span_count && common < prompt->span_count &&
           fm_span_equal(&cached->spans[common], &prompt->spans[common])) {
        common++;
    }
    return common;
}

/*
 * How many tokens at the beginning are the same in both, up to a difference in a token or span; always fewer than the
 * prompt has.
 */
static size_t common_tokens(const struct fm_cached *cached, const struct fm_prompt *prompt) {
    size_t spans = common_spans(cached, prompt);
    size_t limit = cached->count < prompt->count ? cached->count : prompt->count - 1;
    size_t common = 0;
    if (spans < cached->span_count && cached->spans[spans].at < limit) {
        limit = cached->spans[spans].at;
    }
    while (common < limit && cached->tokens[common] == prompt->tokens[common]) {
        common++;
    }
    return whole_spans(cached, common);
}

/* Whether the memory has the results for the first `count` tokens, and can remove all results after them. */
static bool is_there(const struct fm_cached *cached, size_t count) {
    return cached->cache->states ? count == cached->count && !cached->busy : has_window(cached, count);
}

/* How many of the sequence's tokens `prompt` can use. */
static size_t usable(const struct fm_cached *cached, const struct fm_prompt *prompt, bool exact) {
    size_t common = common_tokens(cached, prompt);
    if (cached->state && common < 1 + cached->count / SWAP_COST) {
        return 0;
    }
    if (exact) {
        size_t whole = whole_chunks(cached, common);
        whole = whole < cached->exact ? whole : cached->exact;
        return is_there(cached, whole) ? whole : 0;
    }
    return is_there(cached, common) ? common : fm_checkpoints_before(cached, common);
}

/* NULL: no sequence has anything in common with the prompt. */
static struct fm_cached *find_best(struct fm_cache *cache, const struct fm_prompt *prompt, bool exact, size_t *most) {
    struct fm_cached *best = NULL;
    *most = 0;
    for (size_t i = 0; i < cache->count; i++) {
        size_t count = usable(&cache->list[i], prompt, exact);
        bool idle = best && best->busy && !cache->list[i].busy && !cache->list[i].state;
        bool inside = best && best->state && !cache->list[i].state;
        if (count > *most || (count > 0 && count == *most && (idle || inside))) {
            best = &cache->list[i];
            *most = count;
        }
    }
    return best;
}

/* ---- what is removed ---- */

/* Whether the sequence is kept, and is in the cells of the KV memory. */
static bool is_inside(const struct fm_cached *cached) {
    return !cached->busy && cached->count > 0 && !cached->state;
}

/*
 * The sequence of least worth that is not busy; empty sequences come first. NULL: all are busy. `inside`: only
 * sequences kept in cells.
 */
static struct fm_cached *find_worst(struct fm_cache *cache, bool inside) {
    int64_t now = fm_now_ms();
    struct fm_cached *worst = NULL;
    for (size_t i = 0; i < cache->count; i++) {
        struct fm_cached *cached = &cache->list[i];
        bool eligible = inside ? is_inside(cached) : !cached->busy;
        if (eligible && (!worst || fm_cached_worth(cached, now) < fm_cached_worth(worst, now))) {
            worst = cached;
        }
    }
    return worst;
}

bool fm_cache_make_room(struct fm_cache *cache) {
    struct fm_cached *worst = find_worst(cache, true);
    if (worst && (cache->pure || !fm_swap_out(worst))) {
        fm_cached_cut(worst, 0);
    }
    return worst != NULL;
}

/* The kept sequence that was used last; NULL: no sequence is kept. */
static struct fm_cached *find_last(struct fm_cache *cache) {
    struct fm_cached *last = NULL;
    for (size_t i = 0; i < cache->count; i++) {
        struct fm_cached *cached = &cache->list[i];
        last = is_inside(cached) && (!last || cached->used_ms >= last->used_ms) ? cached : last;
    }
    return last;
}

/* Exact sequences are not moved: they must stay in the cells that a fresh run would use. */
static void move_out(struct fm_cache *cache, const struct fm_cached *but) {
    for (size_t i = 0; i < cache->count && !cache->pure; i++) {
        struct fm_cached *cached = &cache->list[i];
        if (is_inside(cached) && cached != but && !cached->stays) {
            cached->stays = !fm_swap_out(cached);
        }
    }
}

void fm_cache_move_out(struct fm_cache *cache) {
    const struct fm_cached *last = find_last(cache);
    move_out(cache, last && last->count >= STAYS_MIN ? last : NULL);
}

/* ---- use ---- */

/* `to` has the cells of the first `count` tokens of `from`: notes which tokens these are. */
static void note_tokens(struct fm_cached *to, const struct fm_cached *from, size_t count) {
    memcpy(to->tokens, from->tokens, count * sizeof *to->tokens);
    memcpy(to->spans, from->spans, from->span_count * sizeof *to->spans);
    to->span_count = from->span_count;
    to->count = count;
    drop_spans(to);
    to->exact = 0;
}

static void join_family(struct fm_cached *cached, unsigned family, size_t count) {
    cached->family = family;
    cached->shared = count > cached->shared ? count : cached->shared;
}

/* Makes `to` the first `count` tokens of `from`; both share the cells. */
static void share(struct fm_cached *to, struct fm_cached *from, size_t count) {
    fm_cached_cut(to, 0);
    llama_memory_seq_cp(memory_of(to->cache), from->id, to->id, 0, fm_cached_position(from, count));
    note_tokens(to, from, count);
    join_family(from, from->shared > 0 ? from->family : ++to->cache->families, count);
    join_family(to, from->family, count);
    fm_checkpoints_share(to, from);
    if (to->cache->states && !fm_checkpoints_restore(from, count, to->id)) {
        fm_cached_cut(to, 0);
    }
}

/*
 * Gives `to` the beginning of `from` if `from` is outside of the KV memory: in separate cells. If there is no room for
 * them, other conversations are removed.
 */
static void come_back(struct fm_cached *to, struct fm_cached *from, size_t count) {
    bool same = to == from;
    if (!same) {
        fm_cached_cut(to, 0);
    }
    while (!fm_swap_in(to, from, count)) {
        struct fm_cached *worst = find_worst(to->cache, true);
        if (!worst) {
            fm_cached_cut(to, 0);
            return;
        }
        fm_cached_cut(worst, 0);
    }
    if (same) {
        fm_cached_cut(to, count);
    } else {
        note_tokens(to, from, count);
    }
}

/*
 * Whether the prompt takes over the place of `best`, whose other tokens are then lost. Otherwise the prompt gets
 * another place. With recurrent layers there are few places, so the prompt takes over this place if the sequence in the
 * other place would lose more.
 */
static bool goes_on(const struct fm_cached *best, const struct fm_cached *worst, size_t common, bool exact) {
    size_t lost = best->count - common;
    return !best->busy && (exact || lost <= LOST_MAX || (best->cache->states && lost <= worst->count));
}

static void clear(struct fm_cache *cache) {
    move_out(cache, NULL);
    llama_memory_clear(memory_of(cache), false);
    for (size_t i = 0; i < cache->count; i++) {
        if (cache->list[i].state) {
            continue;
        }
        cache->list[i].count = 0;
        cache->list[i].shared = 0;
        cache->list[i].span_count = 0;
        cache->list[i].exact = 0;
        fm_checkpoints_drop(&cache->list[i], 0);
    }
}

/* After how many tokens the prompt differs from what is kept: the next prompt may differ there too. */
static size_t find_parting(const struct fm_cache *cache, const struct fm_prompt *prompt) {
    size_t most = 0;
    for (size_t i = 0; i < cache->count; i++) {
        size_t common = common_tokens(&cache->list[i], prompt);
        most = common > most ? common : most;
    }
    return most;
}

/*
 * Grows the KV memory if `more` tokens and all of `best` do not fit beside its contents. This is done before the prompt
 * is computed, when there is least to move.
 */
static void make_whole(const struct fm_cache *cache, size_t more, const struct fm_cached *best) {
    size_t needed = more + 1;
    for (size_t i = 0; i < cache->count; i++) {
        const struct fm_cached *cached = &cache->list[i];
        needed += !cached->state || cached == best ? cached->count : 0;
    }
    if (needed > llama_n_ctx(cache->model->context)) {
        (void)fm_kv_grow(cache->model, needed);
    }
}

struct fm_cached *fm_cache_begin(struct fm_cache *cache, const struct fm_prompt *prompt, bool exact) {
    size_t common = 0;
    struct fm_cached *best = exact && !cache->pure ? NULL : find_best(cache, prompt, exact, &common);
    size_t parting = cache->states ? find_parting(cache, prompt) : 0;
    if (exact && !best) {
        clear(cache); /* the memory has to be filled from its beginning */
    }
    cache->pure = exact;
    make_whole(cache, prompt->count - common, best);
    struct fm_cached *cached = find_worst(cache, false);
    cached = best && goes_on(best, cached, common, exact) ? best : cached;
    if (best && best->state) {
        come_back(cached, best, common);
    } else if (!best || cached == best) {
        fm_cached_cut(cached, common);
    } else {
        share(cached, best, common);
    }
    cached->busy = true;
    cached->stays = false;
    fm_checkpoints_plan(cached, exact ? NULL : prompt, parting);
    return cached;
}

size_t fm_cache_common(struct fm_cache *cache, const struct fm_prompt *prompt) {
    size_t common = 0;
    const struct fm_cached *best = find_best(cache, prompt, false, &common);
    size_t shared = best && best->busy ? common : 0;
    for (size_t i = 0; best && i < cache->count; i++) {
        const struct fm_cached *other = &cache->list[i];
        bool related = other != best && other->busy && other->shared > 0 && other->family == best->family;
        size_t both = best->shared < other->shared ? best->shared : other->shared;
        shared = related && both > shared ? both : shared;
    }
    return shared < common ? shared : common;
}

/*
 * Whether `cached` is busy and shares the most cells among the busy sequences of its family. If several sequences share
 * the most, only the first one counts.
 */
static bool shares_most(const struct fm_cache *cache, const struct fm_cached *cached) {
    bool most = cached->busy && cached->shared > 0;
    for (size_t i = 0; i < cache->count; i++) {
        const struct fm_cached *other = &cache->list[i];
        bool related = other != cached && other->busy && other->family == cached->family;
        bool more = other->shared > cached->shared || (other->shared == cached->shared && other < cached);
        most = most && !(related && more);
    }
    return most;
}

size_t fm_cache_shared(const struct fm_cache *cache) {
    size_t shared = 0;
    for (size_t i = 0; i < cache->count; i++) {
        shared += shares_most(cache, &cache->list[i]) ? cache->list[i].shared : 0;
    }
    return shared;
}

void fm_cache_end(struct fm_cached *cached) {
    cached->busy = false;
    cached->used_ms = fm_now_ms();
}

static void move_on(struct fm_cached *cached, size_t count, bool exact) {
    bool follows = exact && cached->exact == cached->count;
    cached->count += count;
    cached->exact = follows ? cached->count : cached->exact;
}

void fm_cached_add(struct fm_cached *cached, const llama_token *tokens, size_t count, bool exact) {
    memcpy(cached->tokens + cached->count, tokens, count * sizeof *tokens);
    move_on(cached, count, exact);
}

void fm_cached_add_span(struct fm_cached *cached, const struct fm_span *span, bool exact) {
    for (size_t i = 0; i < span->count; i++) {
        cached->tokens[cached->count + i] = FM_VISION_TOKEN;
    }
    cached->spans[cached->span_count++] = *span;
    move_on(cached, span->count, exact);
}
