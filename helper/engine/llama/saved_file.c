/* The file's format: saved_file.h. Numbers are in this machine's byte order, because the file never leaves it. */
#include "engine/llama/saved_file.h"
#include "base/platform.h"
#include "base/private_files.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC     0x325645564b4d4601u /* also shows if a machine has another byte order */
#define INDEX_MAX (FM_SAVED_BLOCKS_MAX * (sizeof(struct disk_block) + FM_SAVED_TOKENS * sizeof(int32_t)))
#define LANES     4

struct disk_block {
    int32_t parent;
    uint32_t count;
    uint64_t offset;
    uint64_t bytes;
    uint64_t check;
    double worth;
    uint64_t state;
};

struct trailer {
    uint64_t magic;
    uint64_t identity;
    uint64_t index_offset;
    uint64_t index_bytes;
    uint64_t index_check;
    uint64_t count;
    double token_us;
    uint64_t check; /* checksum of all before it */
};

/* ---- the checksum ---- */

/* Gives a different result for each word, and for each state, so that no single change is lost. */
static uint64_t mix(uint64_t state, uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15u;
    return state ^ (state >> 32);
}

/* Takes four words at a time, which a processor computes in parallel. */
uint64_t fm_saved_sum(uint64_t sum, const void *data, size_t len) {
    uint64_t lanes[LANES] = {sum, ~sum, sum + 1, ~sum - 1};
    uint64_t words[LANES];
    const unsigned char *at = data;
    size_t left = len;
    for (; left >= sizeof words; left -= sizeof words, at += sizeof words) {
        memcpy(words, at, sizeof words);
        for (size_t i = 0; i < LANES; i++) {
            lanes[i] = mix(lanes[i], words[i]);
        }
    }
    memset(words, 0, sizeof words);
    memcpy(words, at, left);
    for (size_t i = 0; i < LANES; i++) {
        lanes[i] = mix(lanes[i], words[i]);
        sum = mix(sum, lanes[i]);
    }
    return mix(sum, len);
}

/* ---- reading ---- */

static const char *read_trailer(struct trailer *trailer, int fd, uint64_t identity) {
    int64_t size = fm_private_file_size(fd);
    if (size < (int64_t)sizeof *trailer) {
        return "the file is cut short";
    }
    uint64_t before = (uint64_t)size - sizeof *trailer;
    if (!fm_private_file_read(fd, trailer, sizeof *trailer, (int64_t)before)) {
        return "the file can't be read";
    }
    if (trailer->magic != MAGIC || trailer->check != fm_saved_sum(0, trailer, offsetof(struct trailer, check))) {
        return "the file's end is damaged, or of another format";
    }
    if (trailer->identity != identity) {
        return "it is of another model, or of another release of the engine";
    }
    bool fits = trailer->index_bytes <= INDEX_MAX && trailer->index_bytes <= before &&
                trailer->index_offset == before - trailer->index_bytes && trailer->count <= FM_SAVED_BLOCKS_MAX &&
                trailer->count * sizeof(struct disk_block) <= trailer->index_bytes;
    return fits ? NULL : "the file's end contradicts its size";
}

/*
 * Reads a block from the file's format. `room` tokens are left for this block and the blocks after it. False: the block
 * is invalid.
 */
static bool take_block(struct fm_saved_index *index, const struct disk_block *disk, const struct trailer *trailer,
                       size_t room) {
    struct fm_saved_block *block = &index->blocks[index->count];
    const struct fm_saved_block *parent = disk->parent < 0 ? NULL : &index->blocks[disk->parent];
    if (disk->parent < -1 || disk->parent >= (int64_t)index->count || disk->count < 1 ||
        disk->count > FM_SAVED_TOKENS || disk->count > room || disk->state > 1 ||
        (parent && (parent->count != FM_SAVED_TOKENS || parent->state))) {
        return false;
    }
    *block = (struct fm_saved_block){.parent = disk->parent,
                                     .from = parent ? parent->from + parent->count : 0,
                                     .count = disk->count,
                                     .state = disk->state != 0,
                                     .offset = disk->offset,
                                     .bytes = disk->bytes,
                                     .check = disk->check,
                                     .worth = disk->worth};
    index->count++;
    return disk->offset <= trailer->index_offset && disk->bytes <= trailer->index_offset - disk->offset &&
           disk->bytes > 0 && disk->worth >= 0;
}

static bool are_tokens(const int32_t *tokens, size_t count, int32_t vocabulary) {
    size_t i = 0;
    while (i < count && tokens[i] >= 0 && tokens[i] < vocabulary) {
        i++;
    }
    return i == count;
}

/* Reads the index from `bytes`, in the file's format. False: the index is invalid, although its checksum is right. */
static bool take_index(struct fm_saved_index *index, const char *bytes, const struct trailer *trailer,
                       const struct fm_saved_kind *kind) {
    const size_t blocks_bytes = (size_t)trailer->count * sizeof(struct disk_block);
    size_t tokens = ((size_t)trailer->index_bytes - blocks_bytes) / sizeof(int32_t);
    size_t used = 0;
    memcpy(index->tokens, bytes + blocks_bytes, tokens * sizeof(int32_t));
    while (index->count < trailer->count) {
        struct disk_block disk;
        memcpy(&disk, bytes + index->count * sizeof disk, sizeof disk);
        if (!take_block(index, &disk, trailer, tokens - used)) {
            return false;
        }
        struct fm_saved_block *block = &index->blocks[index->count - 1];
        block->tokens = index->tokens + used;
        used += block->count;
        if (block->from + block->count > kind->context_length ||
            !are_tokens(block->tokens, block->count, kind->vocabulary)) {
            return false;
        }
    }
    return used == tokens;
}

const char *fm_saved_index_read(struct fm_saved_index *index, int fd, const struct fm_saved_kind *kind) {
    struct trailer trailer;
    *index = (struct fm_saved_index){.count = 0};
    const char *reason = read_trailer(&trailer, fd, kind->identity);
    if (reason) {
        return reason;
    }
    size_t len = (size_t)trailer.index_bytes;
    char *bytes = malloc(len + 1);
    index->blocks = calloc((size_t)trailer.count + 1, sizeof *index->blocks);
    index->tokens = calloc(len / sizeof(int32_t) + 1, sizeof *index->tokens);
    index->token_us = trailer.token_us;
    if (!bytes || !index->blocks || !index->tokens) {
        reason = "out of memory";
    } else if (!fm_private_file_read(fd, bytes, len, (int64_t)trailer.index_offset)) {
        reason = "the file can't be read";
    } else if (fm_saved_sum(0, bytes, len) != trailer.index_check) {
        reason = "the file's index is damaged";
    } else if (!take_index(index, bytes, &trailer, kind)) {
        reason = "the file's index makes no sense";
    }
    free(bytes);
    if (reason) {
        fm_saved_index_free(index);
    }
    return reason;
}

void fm_saved_index_free(struct fm_saved_index *index) {
    free(index->blocks);
    free(index->tokens);
    *index = (struct fm_saved_index){.count = 0};
}

/* ---- writing ---- */

static size_t index_bytes(const struct fm_saved_index *index) {
    size_t bytes = index->count * sizeof(struct disk_block);
    for (size_t i = 0; i < index->count; i++) {
        bytes += index->blocks[i].count * sizeof(int32_t);
    }
    return bytes;
}

uint64_t fm_saved_writer_size(const struct fm_saved_writer *writer, uint64_t bytes) {
    return writer->bytes + bytes + index_bytes(&writer->index) + sizeof(struct disk_block) +
           FM_SAVED_TOKENS * sizeof(int32_t) + sizeof(struct trailer);
}

static void append_bytes(struct fm_saved_writer *writer, const void *data, size_t len) {
    writer->failed = writer->failed || !fm_write_all(writer->fd, data, len);
    writer->bytes += len;
}

void fm_saved_writer_add(struct fm_saved_writer *writer, struct fm_saved_block block, const void *data, size_t bytes) {
    block.offset = writer->bytes;
    block.bytes = bytes;
    block.check = fm_saved_sum(0, data, bytes);
    writer->index.blocks[writer->index.count++] = block;
    append_bytes(writer, data, bytes);
}

/* Makes the index in the file's format; NULL when out of memory. */
static char *make_index(const struct fm_saved_index *index) {
    char *bytes = malloc(index_bytes(index) + 1);
    char *at = bytes;
    for (size_t i = 0; i < index->count && bytes; i++) {
        const struct fm_saved_block *block = &index->blocks[i];
        const struct disk_block disk = {.parent = block->parent,
                                        .count = block->count,
                                        .offset = block->offset,
                                        .bytes = block->bytes,
                                        .check = block->check,
                                        .worth = block->worth,
                                        .state = block->state};
        memcpy(at, &disk, sizeof disk);
        at += sizeof disk;
    }
    for (size_t i = 0; i < index->count && bytes; i++) {
        const struct fm_saved_block *block = &index->blocks[i];
        memcpy(at, block->tokens, block->count * sizeof(int32_t));
        at += block->count * sizeof(int32_t);
    }
    return bytes;
}

bool fm_saved_writer_end(struct fm_saved_writer *writer, uint64_t identity) {
    size_t len = index_bytes(&writer->index);
    char *bytes = make_index(&writer->index);
    if (!bytes) {
        return false;
    }
    struct trailer trailer = {.magic = MAGIC,
                              .identity = identity,
                              .index_offset = writer->bytes,
                              .index_bytes = len,
                              .index_check = fm_saved_sum(0, bytes, len),
                              .count = writer->index.count,
                              .token_us = writer->index.token_us};
    trailer.check = fm_saved_sum(0, &trailer, offsetof(struct trailer, check));
    append_bytes(writer, bytes, len);
    append_bytes(writer, &trailer, sizeof trailer);
    free(bytes);
    return !writer->failed;
}
