/* What the files of fm-engine-apple share: the library, the model, and one job's way through them. Engine thread. */
#ifndef FM_ENGINE_APPLE_ENGINE_H
#define FM_ENGINE_APPLE_ENGINE_H

#include "engine/apple/bindings.h"
#include "engine/apple/task.h"
#include "engine/apple/transcript.h"
#include "engine/kit/kit.h"

struct fm_apple {
    struct fm_apple_api api;
    bool opened;            /* `api` is filled */
    fm_apple_ref model;     /* NULL: none yet */
    int64_t context_length; /* tokens */
    bool counts;            /* this macOS can count tokens */
    int64_t entry_tokens;   /* tokens of an answer's entry in a transcript, without its text */
    bool stuck;             /* a task did not end: its memory must not be touched, and the process has to end */
};

/* ---- count.c ---- */

/*
 * Counts the tokens of a transcript (JSON, NUL-terminated). The number is FM_UNCOUNTED if this macOS can't count at
 * all, or can't count this transcript. FM_CANCELLED: `job` was aborted meanwhile, or apple->stuck is set. `job` may be
 * NULL. Blocks.
 */
FM_MUST_USE enum fm_code fm_apple_count(struct fm_apple *apple, const struct fm_kit_job *job, const char *json,
                                        int64_t *tokens, struct fm_error *error);

/* Finds out whether tokens can be counted, and how many tokens an answer has besides its text. Blocks. */
void fm_apple_calibrate(struct fm_apple *apple);

/*
 * Returns the tokens of an answer's text (`len` bytes): by how many tokens the answer makes `whole` longer, which has
 * `input` tokens. FM_UNCOUNTED if the tokens can't be counted.
 */
int64_t fm_apple_count_answer(struct fm_apple *apple, const struct fm_kit_job *job, const struct fm_buf *whole,
                              int64_t input, const char *text, size_t len);

/* ---- answer.c ---- */

/*
 * Does a job and returns why it ended; `error` is filled for FM_REASON_ERROR. The caller checks apple->stuck
 * afterwards.
 */
enum fm_reason fm_apple_answer(struct fm_apple *apple, struct fm_kit_job *job, struct fm_error *error);

#endif
