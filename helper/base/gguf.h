/*
 * The kind of a GGUF file, from the beginning of its header: enough to tell models from projectors, and which projector
 * fits which model, without a library that loads models. The format: docs/gguf.md of ggml.
 */
#ifndef FM_BASE_GGUF_H
#define FM_BASE_GGUF_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a file that are read. The keys that matter come before the vocabulary, in the first few KiB. */
#define FM_GGUF_LOOK_MAX 65536

/* Bytes of memory that a token of a loaded vocabulary takes, about: 290 of Qwen's with its merges, fewer without. */
#define FM_GGUF_TOKEN_BYTES 200

struct fm_gguf_kind {
    bool projector;  /* not a model: it turns images, or sound, into tokens for one */
    bool embeds;     /* a model whose header says how its states become one vector */
    uint64_t tokens; /* numbers of a token, as a projector makes or a model takes it; 0: unknown */
    double
        kv_bytes; /* of a token in the KV memory of a model, 2 a number, as far as the header tells; 0: it does not */
    uint64_t context;    /* tokens that it was trained for; 0: unknown */
    uint64_t vocabulary; /* tokens that it has, as the header claims; 0: unknown */
};

/*
 * The kind of the file that begins with these bytes. Zeros for keys that are missing, and for anything but GGUF. Pure.
 */
void fm_gguf_kind_parse(const void *bytes, size_t len, struct fm_gguf_kind *kind);

/* The kind of the file `path`; zeros also if it can't be read. Never waits for another process. */
void fm_gguf_kind_read(const char *path, struct fm_gguf_kind *kind);

#endif
