/*
 * Saving at the engine's end: saved.h. The kept sequences and the old file become one forest of blocks. A block is
 * worth as much as all conversations that contain it, so a common beginning of several conversations comes first. A
 * block loses half of its worth with each engine that did not use it.
 */
#include "base/log.h"
#include "base/clock.h"
#include "base/private_files.h"
#include "engine/llama/checkpoints.h"
#include "engine/llama/saved.h"
#include "engine/llama/swap.h"

#include <stdlib.h>
#include <string.h>

#define TOKENS_MIN 64   /* least tokens of a conversation: fewer are computed very quickly */
#define MARGIN_MS  50   /* time for what comes after the last block */
#define KEPT       0.5  /* the part of its worth that an old block keeps */
#define FADES      0.9  /* part of its worth that a state keeps for each later one in its conversation */
#define WORTH_MIN  0.02 /* blocks worth less are dropped: six engines in a row did not use them */
#define MINUTE_MS  60000

struct node {
    int32_t parent; /* -1: none */
    uint32_t from;
    uint32_t count;
    bool state; /* as in fm_saved_block */
    const llama_token *tokens;
    double worth;
    struct fm_cached *live; /* a conversation that has the block; NULL: none */
    int32_t old;            /* the block's index in the old file; -1: the old file lacks it */
    int32_t written;        /* the block's index in the new file; -1: the new file lacks it */
};

struct forest {
    struct node *nodes;
    size_t count;
    struct node **order; /* the most valuable first */
    unsigned char *data; /* the data of a block */
    size_t room;
};

/* ---- the forest ---- */

/* The node of the same block; -1: there is none. */
static int32_t find_node(const struct forest *forest, int32_t parent, const llama_token *tokens, uint32_t count,
                         bool state) {
    for (size_t i = parent < 0 ? 0 : (size_t)parent; i < forest->count; i++) {
        const struct node *node = &forest->nodes[i];
        if (node->parent == parent && node->count == count && node->state == state &&
            memcmp(node->tokens, tokens, count * sizeof *tokens) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

/* The node of the block, which is made if it does not exist; -1: there are too many. */
static int32_t node_of(struct forest *forest, int32_t parent, const llama_token *tokens, uint32_t count, bool state) {
    int32_t found = find_node(forest, parent, tokens, count, state);
    if (found >= 0 || forest->count == FM_SAVED_BLOCKS_MAX) {
        return found;
    }
    uint32_t from = parent < 0 ? 0 : forest->nodes[parent].from + forest->nodes[parent].count;
    forest->nodes[forest->count] = (struct node){.parent = parent,
                                                 .from = from,
                                                 .count = count,
                                                 .state = state,
                                                 .tokens = tokens,
                                                 .old = -1,
                                                 .written = -1};
    return (int32_t)forest->count++;
}

/* Notes that the conversation contains the block. */
static void add_live(struct node *node, struct fm_cached *cached, double worth) {
    node->worth += worth;
    node->live = cached;
}

/* Adds the checkpoints that are within the block that begins after `from` tokens. */
static void add_states(struct forest *forest, struct fm_cached *cached, int32_t parent, size_t from, double worth) {
    for (size_t i = cached->checkpoints.count; i > 0; i--, worth *= FADES) {
        size_t at = fm_checkpoints_at(cached, i - 1);
        bool within = from < at && at <= from + FM_SAVED_TOKENS;
        int32_t node =
            within ? node_of(forest, parent, cached->tokens + from, (uint32_t)(at - from), true) : -1;
        if (node >= 0) {
            add_live(&forest->nodes[node], cached, worth);
        }
    }
}

static void add_sequence(struct forest *forest, struct fm_cached *cached, int64_t now) {
    size_t count = cached->span_count > 0 ? cached->spans[0].at : cached->count;
    double worth = 1 / (1 + (double)(now - cached->used_ms) / MINUTE_MS);
    int32_t parent = -1;
    if (count >= TOKENS_MIN) {
        fm_checkpoints_add(cached); /* its end */
    }
    for (size_t from = 0; from < count && count >= TOKENS_MIN; from += FM_SAVED_TOKENS) {
        size_t len = count - from < FM_SAVED_TOKENS ? count - from : FM_SAVED_TOKENS;
        add_states(forest, cached, parent, from, worth);
        parent = node_of(forest, parent, cached->tokens + from, (uint32_t)len, false);
        if (parent < 0) {
            return;
        }
        add_live(&forest->nodes[parent], cached, worth);
    }
}

/* Whether `block` is the end of a conversation that went on later: then another block begins with the same tokens. */
static bool went_on(const struct forest *forest, int32_t parent, const struct fm_saved_block *block) {
    for (size_t i = 0; i < forest->count; i++) {
        const struct node *node = &forest->nodes[i];
        if (node->parent == parent && node->live && !node->state && !block->state && node->count > block->count &&
            memcmp(node->tokens, block->tokens, block->count * sizeof *block->tokens) == 0) {
            return true;
        }
    }
    return false;
}

/* `nodes` gets the node of each old block; -1: it is dropped. */
static void add_old(struct forest *forest, const struct fm_saved_index *index, int32_t *nodes) {
    for (size_t i = 0; i < index->count; i++) {
        const struct fm_saved_block *block = &index->blocks[i];
        int32_t parent = block->parent < 0 ? -1 : nodes[block->parent];
        double worth = block->worth * KEPT;
        nodes[i] = -1;
        if ((block->parent >= 0 && parent < 0) || block->bytes == 0 || went_on(forest, parent, block)) {
            continue;
        }
        nodes[i] = worth < WORTH_MIN ? find_node(forest, parent, block->tokens, block->count, block->state)
                                     : node_of(forest, parent, block->tokens, block->count, block->state);
        if (nodes[i] >= 0) {
            forest->nodes[nodes[i]].worth += worth;
            forest->nodes[nodes[i]].old = (int32_t)i;
        }
    }
}

static int compare_nodes(const void *a, const void *b) {
    const struct node *one = *(struct node *const *)a;
    const struct node *other = *(struct node *const *)b;
    if (one->worth > other->worth || one->worth < other->worth) {
        return one->worth > other->worth ? -1 : 1;
    }
    if (one->from != other->from) {
        return one->from < other->from ? -1 : 1;
    }
    return one < other ? -1 : one > other; /* pointers into the same array */
}

static void free_forest(struct forest *forest) {
    free(forest->nodes);
    free(forest->order);
    free(forest->data);
}

/* Makes the forest. False: the old file has everything already, or there is no memory. */
static bool grow(struct forest *forest, const struct fm_saved *saved, const struct fm_cache *cache) {
    int64_t now = fm_now_ms();
    size_t fresh = 0;
    int32_t nodes[FM_SAVED_BLOCKS_MAX];
    *forest = (struct forest){.nodes = calloc(FM_SAVED_BLOCKS_MAX, sizeof *forest->nodes),
                              .order = calloc(FM_SAVED_BLOCKS_MAX, sizeof *forest->order)};
    if (!forest->nodes || !forest->order) {
        return false;
    }
    for (size_t i = 0; i < cache->count; i++) {
        add_sequence(forest, &cache->list[i], now);
    }
    add_old(forest, &saved->index, nodes);
    for (size_t i = 0; i < forest->count; i++) {
        forest->order[i] = &forest->nodes[i];
        fresh += forest->nodes[i].old < 0;
    }
    qsort(forest->order, forest->count, sizeof *forest->order, compare_nodes);
    return fresh > 0;
}

/* ---- the data ---- */

static bool make_room(struct forest *forest, size_t bytes) {
    if (bytes > forest->room) {
        free(forest->data);
        forest->data = malloc(bytes);
        forest->room = forest->data ? bytes : 0;
    }
    return forest->room >= bytes;
}

/*
 * Brings the conversation into the KV memory. If there is no room, the other conversations are moved out: growing the
 * memory would take most of the time. False: there is still no room, or this conversation was forgotten when another
 * was moved out.
 */
static bool bring_in(struct fm_cached *cached) {
    if (!cached->state) {
        return cached->count > 0;
    }
    if (fm_swap_in(cached, cached, cached->count)) {
        return true;
    }
    for (size_t i = 0; i < cached->cache->count; i++) {
        (void)fm_swap_out(&cached->cache->list[i]);
    }
    return cached->state && fm_swap_in(cached, cached, cached->count);
}

/*
 * Gives the block's cells to the spare sequence, with the block's state of recurrent layers, if it has one. False: the
 * memory does not have all of these cells.
 */
static bool to_spare(const struct fm_saved *saved, struct forest *forest, const struct node *node) {
    struct llama_context *context = saved->model->context;
    llama_memory_t memory = llama_get_memory(context);
    const llama_state_seq_flags part = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;
    const llama_seq_id spare = saved->model->spare;
    llama_pos from = (llama_pos)node->from;
    llama_pos end = from + (llama_pos)node->count;
    if (!node->live->cache->states) {
        llama_memory_seq_cp(memory, node->live->id, spare, from, end);
        return llama_memory_seq_pos_min(memory, spare) == from;
    }
    size_t bytes = node->state ? 0 : llama_state_seq_get_size_ext(context, spare, part);
    bool none = bytes > 0 && make_room(forest, bytes) &&
                llama_state_seq_get_data_ext(context, forest->data, bytes, spare, part) == bytes;
    llama_memory_seq_cp(memory, node->live->id, spare, from, end);
    return node->state ? fm_checkpoints_restore(node->live, (size_t)end, spare)
                       : none && llama_state_seq_set_data_ext(context, forest->data, bytes, spare, part) == bytes;
}

/* Copies the block from the memory into forest->data. 0: that is not possible. */
static size_t take_live(const struct fm_saved *saved, struct forest *forest, const struct node *node) {
    struct llama_context *context = saved->model->context;
    const llama_seq_id spare = saved->model->spare;
    size_t bytes = 0;
    if (bring_in(node->live) && to_spare(saved, forest, node)) {
        bytes = llama_state_seq_get_size(context, spare);
        bytes = make_room(forest, bytes) ? llama_state_seq_get_data(context, forest->data, bytes, spare) : 0;
    }
    llama_memory_seq_rm(llama_get_memory(context), spare, -1, -1);
    return bytes;
}

/* Copies the block from the old file. */
static size_t take_old(const struct fm_saved *saved, struct forest *forest, const struct node *node) {
    const struct fm_saved_block *block = &saved->index.blocks[node->old];
    size_t bytes = (size_t)block->bytes;
    bool whole = make_room(forest, bytes) &&
                 fm_private_file_read(saved->read, forest->data, bytes, (int64_t)block->offset) &&
                 fm_saved_sum(0, forest->data, bytes) == block->check;
    return whole ? bytes : 0;
}

/* ---- the file ---- */

/* Writes a node's block. False: there is no room for it, nor for less valuable blocks. */
static bool write_node(const struct fm_saved *saved, struct forest *forest, struct node *node,
                       struct fm_saved_writer *writer) {
    const struct node *parent = node->parent < 0 ? NULL : &forest->nodes[node->parent];
    if (parent && parent->written < 0) {
        return true;
    }
    size_t bytes = node->live ? take_live(saved, forest, node) : 0;
    bytes = bytes == 0 && node->old >= 0 ? take_old(saved, forest, node) : bytes;
    if (bytes == 0) {
        return true;
    }
    if (fm_saved_writer_size(writer, bytes) > writer->max_bytes) {
        return false;
    }
    const struct fm_saved_block block = {.parent = parent ? parent->written : -1,
                                         .from = node->from,
                                         .count = node->count,
                                         .state = node->state,
                                         .worth = node->worth,
                                         .tokens = node->tokens};
    node->written = (int32_t)writer->index.count;
    fm_saved_writer_add(writer, block, forest->data, bytes);
    return !writer->failed;
}

/* True when the file is complete. */
static bool write_file(const struct fm_saved *saved, struct forest *forest, struct fm_saved_writer *writer) {
    bool more = true;
    for (size_t i = 0; i < forest->count && more; i++) {
        more = fm_kit_save_ms(saved->kit) > MARGIN_MS && write_node(saved, forest, forest->order[i], writer);
    }
    return !writer->failed && writer->index.count > 0 && fm_saved_writer_end(writer, saved->identity);
}

void fm_saved_write(struct fm_saved *saved, struct fm_cache *cache, double token_us) {
    struct forest forest;
    int64_t start_us = fm_now_us();
    if (saved->write < 0 || fm_kit_save_ms(saved->kit) == 0) {
        return;
    }
    struct fm_saved_writer writer = {.fd = saved->write, .max_bytes = saved->max_bytes};
    writer.index.token_us = token_us > 0 ? token_us : saved->index.token_us;
    bool useful = grow(&forest, saved, cache);
    writer.index.blocks = useful ? calloc(forest.count, sizeof *writer.index.blocks) : NULL;
    if (writer.index.blocks && write_file(saved, &forest, &writer)) {
        fm_log(FM_LOG_INFO, "%zu of %zu pieces of the KV memory saved: %llu bytes in %lld us", writer.index.count,
               forest.count, (unsigned long long)writer.bytes, (long long)(fm_now_us() - start_us));
        fm_kit_saved(saved->kit, (int64_t)writer.bytes);
    } else if (writer.failed) {
        fm_log(FM_LOG_WARN, "the KV memory is not saved: the file can't be written (is the disk full?)");
    }
    free(writer.index.blocks);
    free_forest(&forest);
}
