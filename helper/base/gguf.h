/*
 * The kind of a GGUF file, from the beginning of its header: enough to tell models from projectors, and which projector
 * fits which model. This needs no library that loads models. ggml's docs/gguf.md describes the format.
 */
#ifndef FM_BASE_GGUF_H
#define FM_BASE_GGUF_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a file that are read. The keys that matter come before the vocabulary, in the first few KiB. */
#define FM_GGUF_LOOK_MAX 65536

/*
 * Approximate memory of one token of a loaded vocabulary, in bytes. Qwen's takes 290 with its merges; without merges it
 * is less.
 */
#define FM_GGUF_TOKEN_BYTES 200

struct fm_gguf_kind {
    bool projector;  /* not a model: it turns images or sound into tokens for a model */
    bool embeds;     /* a model for embeddings: its header says how its states become one vector */
    uint64_t tokens; /* numbers in a token's vector, which a projector makes or a model takes; 0: unknown */
    double
        kv_bytes; /* KV memory of one token of a model, at 2 bytes a number, if the header gives enough; 0: unknown */
    uint64_t context;    /* tokens of context that it was trained for; 0: unknown */
    uint64_t vocabulary; /* tokens in its vocabulary, as the header claims; 0: unknown */
};

/*
 * Finds the kind of the file that begins with `bytes`. Keys that are missing become zeros; so does everything if this
 * is no GGUF. Pure.
 */
void fm_gguf_kind_parse(const void *bytes, size_t len, struct fm_gguf_kind *kind);

/* Finds the kind of the file `path`; all zeros also if it can't be read. Never waits for another process. */
void fm_gguf_kind_read(const char *path, struct fm_gguf_kind *kind);

#endif
