/*
 * A file of saved KV states: a forest of *blocks*. A block is a run of tokens that follow those of its parent, with
 * what llama.cpp has computed for them; conversations with the same beginning share their first blocks. First comes the
 * data of the blocks, then the index (which blocks there are), then a trailer of fixed size. Each of them has a
 * checksum, so an incomplete or damaged file is noticed before a byte of it is used. The checksum does not protect
 * against an attacker; the private folder does (base/private_files.h). Nothing here needs llama.cpp. Engine thread
 * only.
 */
#ifndef FM_ENGINE_LLAMA_SAVED_FILE_H
#define FM_ENGINE_LLAMA_SAVED_FILE_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FM_SAVED_TOKENS     128  /* in a block; the last block of a conversation has fewer */
#define FM_SAVED_BLOCKS_MAX 4096 /* in a file */

struct fm_saved_block {
    int32_t parent; /* the parent's index, which is lower; -1: the block begins a conversation */
    uint32_t from;  /* tokens before the block */
    uint32_t count; /* 1 to FM_SAVED_TOKENS; exactly that many if the block has children */
    bool state;     /* the data include the state of recurrent layers at the block's end; it has no children */
    uint64_t offset;
    uint64_t bytes;
    uint64_t check;
    double worth; /* how much the block was used; older use counts less. At least 0, at most the worth of its parent */
    const int32_t *tokens;
};

struct fm_saved_index {
    struct fm_saved_block *blocks; /* owned, as are the tokens */
    size_t count;
    int32_t *tokens;
    double token_us; /* time to compute a token on the engine that saved it; 0: unknown */
};

/* The model and release that the file is for: a file for others is not used. */
struct fm_saved_kind {
    uint64_t identity;
    uint32_t context_length;
    int32_t vocabulary; /* tokens */
};

/*
 * Reads the index of the file `fd`. NULL: it is complete; free it with fm_saved_index_free. Otherwise returns why it
 * can't be used, and there is nothing to free.
 */
const char *fm_saved_index_read(struct fm_saved_index *index, int fd, const struct fm_saved_kind *kind);
void fm_saved_index_free(struct fm_saved_index *index); /* harmless twice */

/*
 * A file that is being written. Once something has failed, nothing more is written, and fm_saved_writer_end returns
 * false.
 */
struct fm_saved_writer {
    int fd;
    uint64_t bytes; /* so far */
    uint64_t max_bytes;
    struct fm_saved_index index; /* `tokens`, token_us and the memory of `blocks` belong to the caller */
    bool failed;
};

/* The size of the file if it ends after one more block, with `bytes` of data. */
uint64_t fm_saved_writer_size(const struct fm_saved_writer *writer, uint64_t bytes);

/* Writes the data of a block, and adds it to index.blocks, which have room; `offset`, `bytes`, `check` are set here. */
void fm_saved_writer_add(struct fm_saved_writer *writer, struct fm_saved_block block, const void *data, size_t bytes);

/* Writes the index and the trailer. False: the file is not complete. */
FM_MUST_USE bool fm_saved_writer_end(struct fm_saved_writer *writer, uint64_t identity);

/*
 * A checksum of 64 bits. It always differs after a change within one aligned group of 8 bytes. Continues from `sum`,
 * which is 0 at first.
 */
uint64_t fm_saved_sum(uint64_t sum, const void *data, size_t len);

#endif
