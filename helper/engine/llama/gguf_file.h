/* What llama.h does not report about a GGUF file's header: why the file may not load, and arrays. */
#ifndef FM_ENGINE_LLAMA_GGUF_FILE_H
#define FM_ENGINE_LLAMA_GGUF_FILE_H

#include <stdint.h>

enum fm_gguf_state {
    FM_GGUF_WHOLE,
    FM_GGUF_NO_HEADER, /* damaged, or the file ends inside it */
    FM_GGUF_CUT,       /* the file ends before its last tensor does */
};

/*
 * Reads the header (not the tensors) of `path`. `*size` and `*needed` are bytes, both 0 for FM_GGUF_NO_HEADER. Only for
 * a file that llama.cpp has refused: it reads the header in the same way.
 */
enum fm_gguf_state fm_gguf_look(const char *path, int64_t *size, int64_t *needed);

/* The sum of the array of 32-bit integers that the header of `path` has as `key`; 0 when there is none. */
int64_t fm_gguf_sum(const char *path, const char *key);

#endif
