/* Restoring what an earlier engine saved: saved.h. */
#include "engine/llama/saved.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/private_files.h"
#include "engine/llama/checkpoints.h"
#include "engine/llama/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GAIN_MIN     16 /* tokens; fewer tokens are computed as fast as they are restored */
#define PIECE        ((size_t)1 << 20)
#define JUDGE_US     100000 /* nobody notices reading that takes less, even if computing were faster */
#define SAMPLES      64   /* pieces of the model's file that are compared */
#define SAMPLE_BYTES 4096

/* ---- which model a file belongs to ---- */

/*
 * The identity does not depend on the file's name. If another file replaces the model's file, a piece that differs
 * shows that.
 */
static uint64_t sum_of_file(const char *path) {
    char bytes[SAMPLE_BYTES];
    struct fm_file_info info;
    FILE *file = fopen(path, "rb");
    if (!file || fm_file_examine(path, &info) != 0 || fseeko(file, 0, SEEK_END) != 0) {
        info = (struct fm_file_info){.changed = 0};
    }
    int64_t size = file ? (int64_t)ftello(file) : 0;
    const int64_t facts[] = {size, info.changed};
    uint64_t sum = fm_saved_sum(0, facts, sizeof facts);
    for (int64_t i = 0; i < SAMPLES && file; i++) {
        size_t got = fseeko(file, size / SAMPLES * i, SEEK_SET) == 0 ? fread(bytes, 1, sizeof bytes, file) : 0;
        sum = fm_saved_sum(sum, bytes, got);
    }
    if (file) {
        fclose(file);
    }
    return sum;
}

/*
 * Everything that the numbers in a KV memory depend on, besides the tokens. Many releases of llama.cpp report one
 * version.
 */
static uint64_t identity_of(const struct fm_llama_model *model, const char *path) {
    const char *const releases[] = {FM_VERSION, llama_version(), ggml_version(), ggml_commit()};
    const uint64_t facts[] = {llama_model_size(model->weights), model->context_params.n_ctx,
                              (uint64_t)llama_model_n_layer(model->weights), model->uses_gpu};
    uint64_t sum = sum_of_file(path);
    for (size_t i = 0; i < sizeof releases / sizeof releases[0]; i++) {
        sum = fm_saved_sum(sum, releases[i], strlen(releases[i]));
    }
    return fm_saved_sum(sum, facts, sizeof facts);
}

/* ---- the beginning ---- */

static void give_up(struct fm_saved *saved, const char *reason) {
    fm_log(FM_LOG_INFO, "the saved state is not used: %s", reason);
    fm_saved_index_free(&saved->index);
    saved->read = -1;
}

static struct fm_saved_kind kind_of(const struct fm_saved *saved) {
    const struct fm_llama_model *model = saved->model;
    return (struct fm_saved_kind){.identity = saved->identity,
                                  .context_length = model->context_length,
                                  .vocabulary = llama_vocab_n_tokens(model->prompter.vocab)};
}

void fm_saved_init(struct fm_saved *saved, struct fm_llama_model *model, const struct fm_model_files *files,
                   struct fm_kit *kit) {
    *saved = (struct fm_saved){.model = model, .kit = kit, .read = -1, .write = -1};
    int32_t window = llama_model_n_swa(model->weights); /* a shorter window leaves gaps between the blocks */
    bool gaps = window > 0 && window < FM_SAVED_TOKENS;
    if (files->saved_write < 0 || model->embeds || model->repeatable || gaps) {
        return;
    }
    saved->read = files->saved_read;
    saved->write = files->saved_write;
    saved->max_bytes = files->saved_max_bytes > 0 ? (uint64_t)files->saved_max_bytes : 0;
    saved->identity = identity_of(model, files->model);
    const struct fm_saved_kind kind = kind_of(saved);
    const char *reason = saved->read >= 0 ? fm_saved_index_read(&saved->index, saved->read, &kind) : NULL;
    if (reason) {
        fm_kit_saved_unusable(kit, reason);
        give_up(saved, reason);
    }
}

void fm_saved_free(struct fm_saved *saved) {
    fm_saved_index_free(&saved->index);
}

/* ---- which blocks ---- */

/* The path of a prompt through the blocks. */
struct way {
    const struct fm_prompt *prompt;
    size_t limit; /* tokens of the prompt that may be restored: not its last one, and none after an image */
    size_t end;   /* tokens up to the end of the path */
    int32_t last; /* index of the way's last block; -1: none */
    uint64_t bytes;
    int64_t start_us;
    uint64_t read_bytes;
    double worth_us;     /* reading that takes longer does not pay; 0: unknown */
    unsigned char *data; /* the data of a block */
    size_t room;
};

/* How many of the block's tokens are the same in the prompt. */
static size_t common(const struct way *way, const struct fm_saved_block *block) {
    size_t count = 0;
    while (count < block->count && block->from + count < way->limit &&
           block->tokens[count] == way->prompt->tokens[block->from + count]) {
        count++;
    }
    return count;
}

/* The block after `parent` that has the most tokens in common with the prompt; -1: none has any. */
static int32_t next_block(const struct fm_saved_index *index, const struct way *way, int32_t parent, size_t *most) {
    int32_t best = -1;
    *most = 0;
    for (size_t i = parent < 0 ? 0 : (size_t)parent; i < index->count; i++) {
        const struct fm_saved_block *block = &index->blocks[i];
        size_t count = block->parent == parent && block->bytes > 0 && !block->state ? common(way, block) : 0;
        if (count > *most) {
            best = (int32_t)i;
            *most = count;
        }
    }
    return best;
}

/* How many bytes must be read, from the first block with more than `have` tokens on, and how many tokens they give. */
static void find_way(const struct fm_saved_index *index, struct way *way, size_t have) {
    size_t count;
    int32_t block;
    way->last = -1;
    while ((block = next_block(index, way, way->last, &count)) >= 0) {
        way->last = block;
        way->end = index->blocks[block].from + count;
        way->bytes += way->end > have ? index->blocks[block].bytes : 0;
        if (count < index->blocks[block].count) {
            return;
        }
    }
}

/*
 * Whether the prompt has all tokens of the block and of the blocks before it. Sets ->bytes to the size of the blocks
 * beyond `have`.
 */
static bool leads_to(const struct fm_saved_index *index, struct way *way, int32_t last, size_t have) {
    way->bytes = 0;
    for (int32_t i = last; i >= 0; i = index->blocks[i].parent) {
        const struct fm_saved_block *block = &index->blocks[i];
        if (block->bytes == 0 || common(way, block) < block->count) {
            return false;
        }
        way->bytes += block->from + block->count > have ? block->bytes : 0;
    }
    return true;
}

/* Finds the way for a model with recurrent layers: to the last block that has the state of these layers. */
static void find_state(const struct fm_saved_index *index, struct way *way, size_t have) {
    uint64_t bytes = 0;
    way->last = -1;
    for (size_t i = 0; i < index->count; i++) {
        size_t end = index->blocks[i].from + index->blocks[i].count;
        if (index->blocks[i].state && end > way->end && leads_to(index, way, (int32_t)i, have)) {
            way->last = (int32_t)i;
            way->end = end;
            bytes = way->bytes;
        }
    }
    way->bytes = bytes;
}

/* ---- reading ---- */

/* Whether reading the rest, at the speed so far, is faster than computing the tokens. */
static bool pays(const struct way *way) {
    double took_us = (double)(fm_now_us() - way->start_us);
    return way->worth_us <= 0 || took_us < JUDGE_US ||
           took_us * (double)(way->bytes - way->read_bytes) <= way->worth_us * (double)way->read_bytes;
}

/* Reads the block's data. Returns NULL, or the reason why the data can't be used; "": reading takes too long. */
static const char *read_block(const struct fm_saved *saved, const struct fm_saved_block *block, struct way *way) {
    size_t bytes = (size_t)block->bytes;
    if (bytes > way->room) {
        free(way->data);
        way->data = malloc(bytes);
        way->room = way->data ? bytes : 0;
    }
    if (!way->data) {
        return "";
    }
    for (size_t at = 0; at < bytes; at += PIECE) {
        size_t len = bytes - at < PIECE ? bytes - at : PIECE;
        if (!fm_private_file_read(saved->read, way->data + at, len, (int64_t)(block->offset + at))) {
            return "the file can't be read";
        }
        way->read_bytes += len;
        if (!pays(way)) {
            return "";
        }
    }
    return fm_saved_sum(0, way->data, bytes) == block->check ? NULL : "the file is damaged";
}

/* Puts the part of the data that continues `cached` into the memory. False: there is no room, or the data don't fit. */
static bool put_block(const struct fm_saved *saved, const struct fm_saved_block *block, const struct way *way,
                      struct fm_cached *cached, size_t end) {
    const llama_seq_id spare = saved->model->spare;
    llama_memory_t memory = llama_get_memory(saved->model->context);
    size_t got = llama_state_seq_set_data(saved->model->context, way->data, (size_t)block->bytes, spare);
    bool reaches = llama_memory_seq_pos_max(memory, spare) == (llama_pos)(block->from + block->count) - 1;
    bool begins = llama_memory_seq_pos_min(memory, spare) == (llama_pos)block->from;
    bool fits = got == block->bytes && (cached->cache->states ? reaches == block->state : begins && reaches);
    if (fits) {
        llama_memory_seq_cp(memory, spare, cached->id, (llama_pos)cached->count, (llama_pos)end);
        fm_cached_add(cached, way->prompt->tokens + cached->count, end - cached->count, false);
    }
    llama_memory_seq_rm(memory, spare, -1, -1);
    return fits;
}

/* Restores the blocks of the path, from its beginning to `last`. */
static bool restore_path(struct fm_saved *saved, int32_t last, struct way *way, struct fm_cached *cached) {
    int32_t list[FM_SAVED_BLOCKS_MAX];
    size_t count = 0;
    for (int32_t i = last; i >= 0; i = saved->index.blocks[i].parent) {
        list[count++] = i;
    }
    while (count > 0) {
        struct fm_saved_block *block = &saved->index.blocks[list[--count]];
        size_t end = block->from + block->count < way->end ? block->from + block->count : way->end;
        const char *reason = end > cached->count ? read_block(saved, block, way) : NULL;
        if (reason && reason[0]) {
            fm_log(FM_LOG_WARN, "a part of the saved state is not used: %s", reason);
            fm_kit_saved_unusable(saved->kit, reason);
            block->bytes = 0; /* blocks after it are not used either */
        }
        if (reason) {
            return false;
        }
        if (end > cached->count && !put_block(saved, block, way, cached, end)) {
            block->bytes = 0; /* the block may never fit; the tokens are computed instead and saved again */
            return false;
        }
    }
    return true;
}

void fm_saved_restore(struct fm_saved *saved, struct fm_cached *cached, const struct fm_prompt *prompt) {
    struct way way = {.prompt = prompt, .limit = prompt->count - 1, .start_us = fm_now_us()};
    if (saved->read < 0) {
        return;
    }
    way.limit = prompt->span_count > 0 && prompt->spans[0].at < way.limit ? prompt->spans[0].at : way.limit;
    if (cached->cache->states) {
        find_state(&saved->index, &way, cached->count);
    } else {
        find_way(&saved->index, &way, cached->count);
    }
    if (way.end < cached->count + GAIN_MIN) {
        return;
    }
    size_t before = cached->count;
    way.worth_us = (double)(way.end - before) * saved->index.token_us;
    bool all = restore_path(saved, way.last, &way, cached);
    free(way.data);
    if (cached->cache->states && !all) {
        fm_cached_cut(cached, before); /* some of the tokens can't be used */
    }
    fm_checkpoints_add(cached);
    size_t got = cached->count > before ? cached->count - before : 0;
    fm_log(FM_LOG_INFO, "%zu tokens restored of %zu, in %lld us", got, way.end - before,
           (long long)(fm_now_us() - way.start_us));
    if (!all && !pays(&way)) {
        give_up(saved, "reading takes longer than computing");
    }
}
