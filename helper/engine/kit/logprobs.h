/*
 * The log probabilities of a job's tokens, kept until the text of the tokens is sent. So a job.delta reports exactly
 * the tokens of its own text.
 *
 * The nouns: an *entry* is a token that was added. Its bytes are pushed later, through the queue into the text stream:
 * all bytes, or the ones that are text. A *cut* is a piece of text with its entries. It ends at the end of a token and
 * of a character, except at the end of the whole text, where the last entry may be incomplete. Pure; one thread at a
 * time.
 */
#ifndef FM_ENGINE_KIT_LOGPROBS_H
#define FM_ENGINE_KIT_LOGPROBS_H

#include "base/buf.h"
#include "engine/kit/text_stream.h"
#include "protocol/json_writer.h"

#define FM_LOGPROB_VALUES_MAX 16384u  /* JSON values after which a cut has no more entries than it needs */
#define FM_LOGPROB_MIN        (-9999) /* replaces any lower value */

/* A token and how likely it was. */
struct fm_logprob {
    const char *bytes;
    size_t len;
    double logprob; /* natural logarithm of its probability, computed from the model's own logits */
};

/* The token that came, and the most likely ones in its place, the best first. */
struct fm_token_logprobs {
    struct fm_logprob token;
    struct fm_logprob top[FM_TOP_LOGPROBS_MAX];
    size_t top_count;
};

struct fm_logprob_queue {
    struct fm_buf entries; /* struct fm_logprob_entry, the oldest first */
    struct fm_buf records; /* for each entry: its bytes, then its other members as JSON */
    size_t begun;          /* number of entries with pushed bytes; all of them except the last are complete */
    size_t given;          /* bytes of text that were cut off so far */
};

struct fm_logprob_cut {
    size_t len;   /* bytes of text */
    size_t count; /* entries */
};

/* Allocates nothing. fm_logprob_queue_free may be called twice. */
void fm_logprob_queue_init(struct fm_logprob_queue *queue);
void fm_logprob_queue_free(struct fm_logprob_queue *queue);

/*
 * Adds a token (copied). Its bytes are pushed later, after the bytes of the tokens before it. A token without bytes is
 * ignored. The next push reports a lack of memory.
 */
void fm_logprob_queue_add(struct fm_logprob_queue *queue, const struct fm_token_logprobs *token);

/* Works as fm_text_stream_push, for the next bytes of the tokens. `out` holds all text since the last cut. */
FM_MUST_USE enum fm_text_status fm_logprob_queue_push(struct fm_logprob_queue *queue, struct fm_text_stream *stream,
                                                      const char *bytes, size_t len, struct fm_buf *out);

/*
 * The longest part of the text in `out` that can be sent next. With `all`, no more text will follow, and the part is
 * not empty while `out` is not empty.
 */
struct fm_logprob_cut fm_logprob_queue_cut(const struct fm_logprob_queue *queue, const struct fm_text_stream *stream,
                                           const struct fm_buf *out, bool all);

/* Writes the entries of `cut` as a value, ENGINE.md's `logprobs`. */
void fm_logprob_queue_write(const struct fm_logprob_queue *queue, const struct fm_logprob_cut *cut,
                            struct fm_json_writer *w);

/* Takes `cut` out of the queue and of `out`. */
void fm_logprob_queue_drop(struct fm_logprob_queue *queue, const struct fm_logprob_cut *cut, struct fm_buf *out);

#endif
