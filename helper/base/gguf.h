/*
 * What kind of thing a GGUF file is, by the beginning of its header: enough to tell models from projectors and which of
 * them fit, without a library that reads models. (llama.cpp, docs/gguf.md of ggml)
 */
#ifndef FM_BASE_GGUF_H
#define FM_BASE_GGUF_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a file that are looked at. What counts here stands before the vocabulary, in the first few KiB. */
#define FM_GGUF_LOOK_MAX 65536

struct fm_gguf_kind {
    bool projector;  /* no model: it makes tokens of images, or of sound, for one */
    bool embeds;     /* a model that says how its states become a vector */
    uint64_t tokens; /* numbers of a token: that a projector makes of images, or a model takes; 0: not known */
};

/* The kind of what begins with these bytes. What is not there, or no GGUF, leaves zeros. Pure. */
void fm_gguf_kind_parse(const void *bytes, size_t len, struct fm_gguf_kind *kind);

/* The kind of the file `path`; zeros where it can't be read, too. Never waits for another process. */
void fm_gguf_kind_read(const char *path, struct fm_gguf_kind *kind);

#endif
