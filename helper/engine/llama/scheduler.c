/*
 * Continuous batching: scheduler.h. The present answers come first, with one token each. The rest of the batch goes to
 * the prompts in equal shares, so that a long prompt does not hold up a short one.
 */
#include "engine/llama/scheduler.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/llama/kv_memory.h"
#include "engine/llama/weights.h"

#include <stdlib.h>

/* In ms: how long a batch may take while answers wait for it, and how long a new job may wait for prompts. */
#define BESIDE_MS 450
#define ALONE_MS  500

/*
 * In ms: how long a batch may take if nothing waits for it. A single thread computes a token as fast in a batch of 64
 * as in a batch of 512. But several threads wait for each other less in a long batch, especially beside other programs.
 */
#define LONG_MS  4000
#define LONG_MIN 256

/*
 * With at least this many tokens in a batch, ggml computes attention in tiles (GGML_FA_TILE_Q in its
 * ggml-cpu/common.h). After some 2,000 tokens of a prompt, a batch of 64 takes hardly longer than one of 32. So a batch
 * may take this long, in ms, to have this many tokens: beside answers, and alone.
 */
#define TILE           64
#define TILE_BESIDE_MS 2000
#define TILE_ALONE_MS  600

#define ADMIT_MS 200 /* how long jobs are admitted before the next batch; the last job may take longer */
#define ASK_MS   10  /* an operation of a small model takes microseconds */

#define CHUNK_MIN 32 /* tokens of a prompt beside answers: fewer are computed no faster */

/* Room that must be free for a job's answer, in tokens, before it begins beside others. Most answers have no more. */
#define ANSWER_ROOM 256

#define MEASURED_MIN 16 /* only a batch with this many tokens shows how long one takes */

enum fm_code fm_scheduler_init(struct fm_scheduler *scheduler, struct fm_llama_model *model,
                               struct fm_draft_model *draft, struct fm_error *error) {
    *scheduler = (struct fm_scheduler){
        .model = model,
        .draft = draft,
        .long_max = model->batch_size,
        .speculation = {.always = model->drafts == FM_DRAFTS_ALWAYS}};
    scheduler->list = calloc((size_t)model->slots, sizeof *scheduler->list);
    enum fm_code code = scheduler->list ? FM_OK : fm_fail_no_memory(error);
    code = code ? code : fm_batch_init(&scheduler->batch, model, error);
    code = code ? code : fm_cache_init(&scheduler->cache, model, model->sequences, error);
    if (code != FM_OK) {
        fm_scheduler_free(scheduler);
    }
    return code;
}

void fm_scheduler_free(struct fm_scheduler *scheduler) {
    fm_cache_free(&scheduler->cache);
    fm_batch_free(&scheduler->batch);
    free(scheduler->list);
    *scheduler = (struct fm_scheduler){0};
}

static size_t max_size(size_t a, size_t b) {
    return a > b ? a : b;
}

static size_t min_size(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t slots(const struct fm_scheduler *scheduler) {
    return (size_t)scheduler->model->slots;
}

/* Whether the sequence has a job that is not over, and a place in the memory. */
static bool is_active(const struct fm_sequence *sequence) {
    return sequence->job && sequence->cached && !sequence->reason;
}

/* ---- signs and aborts ---- */

static void end_sequence(struct fm_scheduler *scheduler, struct fm_sequence *sequence) {
    bool had_place = sequence->cached != NULL;
    fm_sequence_end(sequence);
    scheduler->running--;
    scheduler->crowded = scheduler->crowded && !had_place;
    if (sequence->filled == 0) { /* other sequences report after the batch is computed */
        fm_sequence_release(sequence);
    }
}

static void end_if_over(struct fm_scheduler *scheduler, struct fm_sequence *sequence) {
    if (sequence->job && sequence->reason) {
        end_sequence(scheduler, sequence);
    }
}

/* Called during work that takes long: sends signs of progress, and ends aborted jobs before that work is done. */
static void look_around(struct fm_scheduler *scheduler) {
    scheduler->wanted = false;
    fm_kit_finish_aborted(scheduler->kit);
    for (size_t i = 0; i < slots(scheduler); i++) {
        struct fm_sequence *sequence = &scheduler->list[i];
        bool goes_on = sequence->job && fm_sequence_go_on(sequence);
        scheduler->wanted |= goes_on && sequence->filled > 0;
        if (sequence->job && !goes_on && sequence != scheduler->busy) {
            fm_sequence_stop(sequence, FM_REASON_ABORTED, NULL);
            end_sequence(scheduler, sequence);
        }
    }
}

/* Whether a repeatable job is running: no other job begins beside it. */
static bool is_closed(const struct fm_scheduler *scheduler) {
    for (size_t i = 0; i < slots(scheduler); i++) {
        const struct fm_kit_job *job = scheduler->list[i].job;
        if (job && job->repeatable) {
            return true;
        }
    }
    return false;
}

/* Whether the batch, judged by how many of its operations are done, takes longer than a new job may wait. */
static bool takes_long(const struct fm_scheduler *scheduler, int64_t now_ms) {
    double left = scheduler->asks > scheduler->asked ? scheduler->asks - scheduler->asked : 0;
    return scheduler->asks == 0 || (double)(now_ms - scheduler->begun_ms) * left / scheduler->asked > ALONE_MS;
}

/* Whether the batch must give way because a new job can begin. */
static bool is_to_give_way(const struct fm_scheduler *scheduler, int64_t now_ms) {
    bool has_room = scheduler->running < slots(scheduler) && !scheduler->crowded && !is_closed(scheduler);
    return scheduler->gives_way && !scheduler->busy && has_room && fm_kit_job_waits(scheduler->kit) &&
           takes_long(scheduler, now_ms);
}

/*
 * Whether other programs slow the batch down so much that fewer threads would finish it sooner, even if they begin
 * again.
 */
static bool is_better_begun_again(const struct fm_scheduler *scheduler) {
    return !scheduler->busy && !scheduler->cache.states && fm_threads_lost(&scheduler->model->threads);
}

/* llama.cpp calls this between the operations of a batch, which may take a minute. It stops if the results are no
 * longer wanted. */
static bool abort_asked(void *argument) {
    struct fm_scheduler *scheduler = argument;
    int64_t now = fm_now_ms();
    scheduler->asked++;
    if (now - scheduler->asked_ms >= ASK_MS) {
        scheduler->asked_ms = now;
        look_around(scheduler);
        scheduler->wanted = scheduler->wanted && !is_better_begun_again(scheduler) && !is_to_give_way(scheduler, now);
    }
    return !scheduler->wanted;
}

/* fm_image_go_on: the other sequences wait for scheduler->busy. */
static bool go_on(void *argument) {
    struct fm_scheduler *scheduler = argument;
    (void)abort_asked(scheduler);
    return !fm_kit_job_aborted(scheduler->busy->job);
}

/* Whether the draft model should stop computing, in the form that llama.cpp calls. */
static bool draft_stops(void *argument) {
    return !go_on(argument);
}

/* ---- jobs come and go ---- */

static void begin_job(struct fm_scheduler *scheduler, struct fm_kit_job *job) {
    struct fm_sequence *sequence = scheduler->list;
    while (sequence->job) {
        sequence++;
    }
    scheduler->running++;
    scheduler->busy = sequence;
    fm_sequence_begin(sequence, scheduler->model, job, go_on, scheduler);
    scheduler->busy = NULL;
    end_if_over(scheduler, sequence);
}

/* Whether there are jobs, and all of them wait for their grammars. */
static bool only_compiles(const struct fm_scheduler *scheduler) {
    size_t compiling = 0;
    for (size_t i = 0; i < slots(scheduler); i++) {
        compiling += fm_sequence_compiles(&scheduler->list[i]);
    }
    return compiling > 0 && compiling == scheduler->running;
}

/* Takes a job; waits for one if there is nothing else to do. */
static struct fm_kit_job *take_job(struct fm_scheduler *scheduler) {
    bool idle = scheduler->running == 0;
    if (idle && scheduler->computed) {
        return fm_weights_wait(scheduler->pages, scheduler->kit);
    }
    return only_compiles(scheduler) ? fm_kit_take_within(scheduler->kit, FM_GRAMMAR_POLL_MS)
                                    : fm_kit_take(scheduler->kit, idle);
}

/* Takes jobs that are there; waits if there is nothing to do. False: the end has come. */
static bool admit(struct fm_scheduler *scheduler) {
    if (scheduler->running == 0) { /* before jobs are taken: their computation must not depend on when they come */
        fm_cache_move_out(&scheduler->cache);
    }
    int64_t deadline = INT64_MAX; /* the time starts with the first job, because the present answers wait */
    while (scheduler->running < slots(scheduler) && !is_closed(scheduler) && fm_now_ms() < deadline) {
        struct fm_kit_job *job = take_job(scheduler);
        if (!job) {
            return scheduler->running > 0;
        }
        deadline = deadline == INT64_MAX ? fm_now_ms() + ADMIT_MS : deadline;
        begin_job(scheduler, job);
    }
    if (only_compiles(scheduler)) {
        fm_kit_wait(scheduler->kit, FM_GRAMMAR_POLL_MS);
    }
    return true;
}

static void start_compiled(struct fm_scheduler *scheduler) {
    for (size_t i = 0; i < slots(scheduler); i++) {
        if (fm_sequence_compiles(&scheduler->list[i])) {
            fm_sequence_try_to_start(&scheduler->list[i]);
            end_if_over(scheduler, &scheduler->list[i]);
        }
    }
}

/* ---- places in the memory ---- */

/* The number of tokens that the sequence has, or will soon have. */
static size_t wanted_room(const struct fm_sequence *sequence) {
    const struct fm_kit_job *job = sequence->job;
    int64_t left = job->max_tokens > 0 ? job->max_tokens - job->output_tokens : ANSWER_ROOM;
    size_t all = sequence->count + min_size(left > 0 ? (size_t)left : 0, ANSWER_ROOM);
    return min_size(all, sequence->model->context_length);
}

/* Whether the sequence has room beside the active sequences. A single sequence always has room. */
static bool has_room(struct fm_scheduler *scheduler, const struct fm_sequence *next) {
    const struct fm_llama_model *model = scheduler->model;
    const struct fm_prompt prompt = fm_sequence_prompt(next);
    size_t taken = fm_cache_shared(&scheduler->cache);
    size_t active = 0;
    for (size_t i = 0; i < slots(scheduler); i++) {
        const struct fm_sequence *sequence = &scheduler->list[i];
        if (is_active(sequence)) {
            taken += wanted_room(sequence) - sequence->cached->shared;
            active++;
        }
    }
    taken += wanted_room(next) - fm_cache_common(&scheduler->cache, &prompt);
    bool fits = taken <= model->context_params.n_ctx || llama_model_is_recurrent(model->weights);
    return active == 0 || (fits && !scheduler->crowded);
}

/* The oldest sequence without a place; NULL: all have one. */
static struct fm_sequence *find_placeless(struct fm_scheduler *scheduler) {
    struct fm_sequence *first = NULL;
    for (size_t i = 0; i < slots(scheduler); i++) {
        struct fm_sequence *sequence = &scheduler->list[i];
        bool placeless = sequence->job && !sequence->cached && !sequence->reason && !fm_sequence_compiles(sequence);
        first = placeless && (!first || sequence->job->id < first->job->id) ? sequence : first;
    }
    return first;
}

/* Gives places in order, while there is room. If a sequence later found no room, its computation would be wasted. */
static void place_sequences(struct fm_scheduler *scheduler) {
    struct fm_sequence *next = find_placeless(scheduler);
    for (; next && has_room(scheduler, next); next = find_placeless(scheduler)) {
        bool alone = (next->job->has_seed || next->decide) && scheduler->running == 1; /* so far */
        bool exact = scheduler->model->repeatable || next->job->repeatable || alone;
        fm_sequence_place(next, &scheduler->cache, scheduler->saved, exact);
    }
}

static void end_those_over(struct fm_scheduler *scheduler) {
    for (size_t i = 0; i < slots(scheduler); i++) {
        struct fm_sequence *sequence = &scheduler->list[i];
        if (sequence->job && !fm_sequence_go_on(sequence)) {
            fm_sequence_stop(sequence, FM_REASON_ABORTED, NULL);
        }
        end_if_over(scheduler, sequence);
    }
}

/* ---- a full memory ---- */

/* The active sequence that came last; NULL: there is only one active sequence. */
static struct fm_sequence *find_youngest(struct fm_scheduler *scheduler) {
    struct fm_sequence *youngest = NULL;
    size_t active = 0;
    for (size_t i = 0; i < slots(scheduler); i++) {
        struct fm_sequence *sequence = &scheduler->list[i];
        if (is_active(sequence)) {
            youngest = !youngest || sequence->start_ms >= youngest->start_ms ? sequence : youngest;
            active++;
        }
    }
    return active > 1 ? youngest : NULL;
}

/*
 * Makes room: the memory grows, or a kept conversation is removed, or an active sequence must wait. It waits until
 * another sequence ends, and is then computed again. No answer is cut. A single sequence always has room for a whole
 * context.
 */
static void make_room(struct fm_scheduler *scheduler) {
    if (fm_kv_grow(scheduler->model, 0) || fm_cache_make_room(&scheduler->cache)) {
        return;
    }
    struct fm_sequence *youngest = find_youngest(scheduler);
    if (youngest) {
        fm_log(FM_LOG_DEBUG, "job %lld waits for memory", (long long)youngest->job->id);
        fm_sequence_yield_place(youngest);
        scheduler->crowded = true;
        return;
    }
    for (size_t i = 0; i < slots(scheduler); i++) {
        if (is_active(&scheduler->list[i])) {
            fm_sequence_stop(&scheduler->list[i], FM_REASON_ERROR, "the KV memory is too small for this answer");
        }
    }
}

/* ---- batches ---- */

/* Whether only this sequence is computed now, and must be the same to the bit as in a fresh process. */
static bool is_exact(const struct fm_scheduler *scheduler, const struct fm_sequence *sequence) {
    return sequence->exact && scheduler->running == 1;
}

static size_t left_of(const struct fm_sequence *sequence) {
    return sequence->count - sequence->cached->count;
}

/* Whether the sequence's prompt needs a batch, and is not in this batch yet. */
static bool waits(const struct fm_sequence *sequence) {
    return is_active(sequence) && sequence->filled == 0 && fm_sequence_prefills(sequence) &&
           !fm_sequence_span(sequence);
}

static size_t count_waiting(const struct fm_scheduler *scheduler) {
    size_t waiting = 0;
    for (size_t i = 0; i < slots(scheduler); i++) {
        waiting += waits(&scheduler->list[i]);
    }
    return waiting;
}

/* NULL: no prompt waits. */
static struct fm_sequence *find_shortest(const struct fm_scheduler *scheduler) {
    struct fm_sequence *shortest = NULL;
    for (size_t i = 0; i < slots(scheduler); i++) {
        struct fm_sequence *sequence = &scheduler->list[i];
        if (waits(sequence) && (!shortest || left_of(sequence) < left_of(shortest))) {
            shortest = sequence;
        }
    }
    return shortest;
}

/* The budget beside this many answers, or if a new job has to wait for the batch. */
static size_t short_budget(const struct fm_scheduler *scheduler, size_t answers) {
    double token_ms = scheduler->token_ms;
    size_t most = token_ms > 0 ? (size_t)((answers > 0 ? BESIDE_MS : ALONE_MS) / token_ms) : 0;
    bool tiled = token_ms > 0 && TILE * token_ms <= (answers > 0 ? TILE_BESIDE_MS : TILE_ALONE_MS);
    size_t tile = tiled && answers < TILE ? TILE - answers : 0;
    return max_size(max_size(most, tile), CHUNK_MIN);
}

/*
 * The budget if nothing waits: a token takes less time in a long batch. But batches are short while another number of
 * threads may have to be tried.
 */
static size_t long_budget(const struct fm_scheduler *scheduler) {
    bool known = scheduler->token_ms > 0;
    size_t most = known ? max_size((size_t)(LONG_MS / scheduler->token_ms), LONG_MIN) : scheduler->model->chunk;
    most = fm_threads_settled(&scheduler->model->threads) ? most - most % TILE : TILE;
    return min_size(most, scheduler->long_max);
}

/*
 * Tokens of prompts that the next batch may have. Without answers, the prompts share the batch equally until the
 * shortest prompt is done, so that no prompt waits longer. Such a batch gives way to a new job, if dropping it only
 * loses this batch.
 */
static size_t budget(struct fm_scheduler *scheduler, size_t answers) {
    size_t most = short_budget(scheduler, answers);
    const struct fm_sequence *shortest = find_shortest(scheduler);
    bool may_be_long = answers == 0 && shortest && !is_exact(scheduler, shortest) && !scheduler->cache.states;
    size_t even = may_be_long ? count_waiting(scheduler) * left_of(shortest) : 0;
    even = min_size(even, long_budget(scheduler));
    scheduler->gives_way = even > most;
    return min_size(max_size(most, even), fm_batch_room(&scheduler->batch));
}

/* Takes the shortest prompt first. The other prompts get the part of its share that it does not need. */
static void fill_prompts(struct fm_scheduler *scheduler, size_t most) {
    for (size_t waiting = count_waiting(scheduler); waiting > 0 && most > 0; waiting--) {
        struct fm_sequence *shortest = find_shortest(scheduler);
        size_t share = (most + waiting - 1) / waiting;
        /* exact sequences compute complete chunks, however long they take */
        bool exact = is_exact(scheduler, shortest);
        share = fm_sequence_fill(shortest, &scheduler->batch, exact ? scheduler->model->chunk : share);
        most -= share < most ? share : most;
    }
}

/* The answer that has the batch to itself; NULL: there are prompts, or several answers. */
static struct fm_sequence *find_single(struct fm_scheduler *scheduler) {
    struct fm_sequence *single = NULL;
    for (size_t i = 0; i < slots(scheduler) && scheduler->running == 1; i++) {
        struct fm_sequence *sequence = &scheduler->list[i];
        single = is_active(sequence) && !sequence->decide && sequence->filled == 1 && sequence->output >= 0 ? sequence : single;
    }
    return single;
}

/* Returns how many sequences are in the batch. */
static size_t fill_batch(struct fm_scheduler *scheduler) {
    size_t count = 0;
    size_t answers = 0;
    fm_batch_clear(&scheduler->batch);
    for (size_t i = 0; i < slots(scheduler); i++) {
        struct fm_sequence *sequence = &scheduler->list[i];
        if (is_active(sequence) && !fm_sequence_prefills(sequence) && !fm_sequence_span(sequence)) {
            fm_sequence_fill(sequence, &scheduler->batch, 1);
            answers++;
        }
    }
    fill_prompts(scheduler, budget(scheduler, answers));
    for (size_t i = 0; i < slots(scheduler); i++) {
        count += is_active(&scheduler->list[i]) && scheduler->list[i].filled > 0;
    }
    return count;
}

/* Averages the last batches that have enough tokens. A token takes longer in batches without tiles. */
static void measure(struct fm_scheduler *scheduler, int64_t took_us) {
    size_t count = (size_t)scheduler->batch.tokens.n_tokens;
    double before = scheduler->token_ms;
    double token_ms = (double)took_us / 1000 / (double)count;
    if (count < MEASURED_MIN) {
        return;
    }
    scheduler->asks = scheduler->asked;
    if (before <= 0) {
        scheduler->token_ms = token_ms;
    } else if (count >= TILE || token_ms < before) {
        scheduler->token_ms = (before * 3 + token_ms) / 4;
    }
    if (2 * count > scheduler->long_max) {
        scheduler->long_max = min_size(2 * scheduler->long_max, scheduler->model->batch_size);
        scheduler->vain_ms = 0;
    }
}

/*
 * Notes that a batch gave way. This can't repeat without end: batches become shorter each time, so more and more of
 * them are completed.
 */
static void note_vain(struct fm_scheduler *scheduler) {
    scheduler->vain_ms += fm_now_ms() - scheduler->begun_ms;
    if (scheduler->vain_ms > ALONE_MS) {
        scheduler->long_max = max_size(scheduler->long_max / 2, CHUNK_MIN);
        scheduler->vain_ms = 0;
    }
}

/* Frees the places of sequences that ended while the batch was computed. */
static void drop_batch(struct fm_scheduler *scheduler) {
    for (size_t i = 0; i < slots(scheduler); i++) {
        struct fm_sequence *sequence = &scheduler->list[i];
        if (!sequence->job) {
            fm_sequence_release(sequence);
        } else if (sequence->filled > 0) {
            fm_sequence_drop(sequence);
        }
    }
}

static void take_batch(struct fm_scheduler *scheduler, size_t count) {
    fm_kit_gather(scheduler->kit);
    for (size_t i = 0; i < slots(scheduler); i++) {
        struct fm_sequence *sequence = &scheduler->list[i];
        if (!sequence->job) {
            fm_sequence_release(sequence);
        } else if (sequence->filled > 0) {
            fm_sequence_take(sequence, &scheduler->batch, count == 1);
        }
    }
    fm_kit_flush(scheduler->kit);
}

static enum fm_decode decode_batch(struct fm_scheduler *scheduler) {
    scheduler->wanted = true;
    scheduler->begun_ms = fm_now_ms();
    scheduler->asked = 0;
    scheduler->model->exact = false;
    for (size_t i = 0; i < slots(scheduler); i++) {
        scheduler->model->exact |= scheduler->list[i].filled > 0 && is_exact(scheduler, &scheduler->list[i]);
    }
    return fm_batch_decode(&scheduler->batch);
}

/* The batch failed: computes each of its sequences separately, so that only the one at fault fails. */
static void compute_apart(struct fm_scheduler *scheduler) {
    for (size_t i = 0; i < slots(scheduler); i++) {
        struct fm_sequence *sequence = &scheduler->list[i];
        if (!is_active(sequence) || fm_sequence_span(sequence)) {
            continue;
        }
        fm_batch_clear(&scheduler->batch);
        fm_sequence_fill(sequence, &scheduler->batch, CHUNK_MIN);
        enum fm_decode result = decode_batch(scheduler);
        if (!sequence->job) {
            fm_sequence_release(sequence);
            continue;
        }
        if (result == FM_DECODE_OK) {
            fm_sequence_take(sequence, &scheduler->batch, true);
            continue;
        }
        fm_sequence_drop(sequence);
        if (result == FM_DECODE_FAILED) {
            fm_sequence_stop(sequence, FM_REASON_ERROR, "the model could not be evaluated");
        }
    }
}

static void add_drafts(struct fm_scheduler *scheduler, struct fm_sequence *single) {
    const struct fm_guessing by = {
        .speculation = &scheduler->speculation, .model = scheduler->draft, .token_us = scheduler->token_ms * 1000};
    scheduler->busy = single; /* the draft model may have much to read */
    fm_sequence_draft(single, &scheduler->batch, &by);
    scheduler->busy = NULL;
}

static void compute_batch(struct fm_scheduler *scheduler) {
    size_t count = fill_batch(scheduler);
    if (count == 0) {
        return;
    }
    struct fm_sequence *single = find_single(scheduler);
    if (single && !scheduler->cramped) {
        add_drafts(scheduler, single);
    }
    size_t drafts = single ? single->drafted : 0;
    int64_t start = fm_now_us();
    enum fm_decode result = decode_batch(scheduler);
    int64_t took_us = fm_now_us() - start;
    scheduler->cramped = result == FM_DECODE_FULL && drafts > 0;
    switch (result) {
    case FM_DECODE_OK:
        scheduler->computed = true;
        if (drafts == 0) { /* each draft wants logits, which a prompt's tokens do not */
            measure(scheduler, took_us);
        }
        take_batch(scheduler, count);
        if (single && single->job) {
            fm_sequence_measure(single, &scheduler->speculation, (double)took_us);
        }
        break;
    case FM_DECODE_ABORTED:
        drop_batch(scheduler);
        note_vain(scheduler);
        break;
    case FM_DECODE_FULL:
        drop_batch(scheduler);
        if (!scheduler->cramped) {
            make_room(scheduler);
        }
        break;
    case FM_DECODE_FAILED:
        drop_batch(scheduler);
        compute_apart(scheduler);
        break;
    }
}

/* The oldest sequence whose next token is an image's place; NULL: there is none. */
static struct fm_sequence *find_seeing(struct fm_scheduler *scheduler) {
    struct fm_sequence *oldest = NULL;
    for (size_t i = 0; i < slots(scheduler); i++) {
        struct fm_sequence *sequence = &scheduler->list[i];
        if (is_active(sequence) && fm_sequence_span(sequence)) {
            oldest = !oldest || sequence->start_ms < oldest->start_ms ? sequence : oldest;
        }
    }
    return oldest;
}

/* Computes one span of one sequence's image. The other sequences wait. */
static void see(struct fm_scheduler *scheduler) {
    struct fm_sequence *next = find_seeing(scheduler);
    if (!next) {
        return;
    }
    scheduler->busy = next;
    scheduler->wanted = true;
    scheduler->model->exact = is_exact(scheduler, next);
    next->filled = 1; /* tells look_around that this sequence is being computed */
    enum fm_decode result = fm_sequence_see(next, &scheduler->batch, go_on, scheduler);
    next->filled = 0;
    scheduler->busy = NULL;
    if (result == FM_DECODE_FULL) {
        make_room(scheduler);
    } else if (result == FM_DECODE_FAILED) {
        fm_sequence_stop(next, FM_REASON_ERROR, "the model could not be evaluated");
    }
}

void fm_scheduler_run(struct fm_scheduler *scheduler, struct fm_saved *saved, struct fm_huge_pages *pages,
                      struct fm_kit *kit) {
    scheduler->kit = kit;
    scheduler->pages = pages;
    scheduler->saved = saved;
    fm_llama_model_watch(scheduler->model, abort_asked, scheduler);
    if (scheduler->draft) {
        fm_draft_model_watch(scheduler->draft, draft_stops, scheduler);
    }
    while (admit(scheduler)) {
        start_compiled(scheduler);
        place_sequences(scheduler);
        see(scheduler);
        compute_batch(scheduler);
        end_those_over(scheduler);
    }
    fm_llama_model_watch(scheduler->model, NULL, NULL);
    if (scheduler->draft) {
        fm_draft_model_watch(scheduler->draft, NULL, NULL);
    }
    fm_saved_write(saved, &scheduler->cache, scheduler->token_ms * 1000);
}
