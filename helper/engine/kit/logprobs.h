/*
 * The log probabilities of a job's tokens, kept until their text goes out, so that the two go together: what a
 * job.delta tells of tokens is told of its text and of nothing else.
 *
 * The nouns: an *entry* is a token that was added. Its bytes are pushed later, through the queue into the text stream,
 * all of them or as far as they are text. A *cut* is a piece of text with its entries, whose borders are those of
 * tokens and of characters; but the text ends where it ends, and the last entry with it. Pure; one thread at a time.
 */
#ifndef FM_ENGINE_KIT_LOGPROBS_H
#define FM_ENGINE_KIT_LOGPROBS_H

#include "base/buf.h"
#include "engine/kit/text_stream.h"
#include "protocol/json_writer.h"

#define FM_LOGPROB_VALUES_MAX 16384u  /* JSON values after which a cut has no more entries than it needs */
#define FM_LOGPROB_MIN        (-9999) /* stands for what is less likely still */

/* A token and how likely it was. */
struct fm_logprob {
    const char *bytes;
    size_t len;
    double logprob; /* natural logarithm of its probability, by the model's own logits */
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
    size_t begun;          /* entries of which bytes were pushed; all but the last of these are whole */
    size_t given;          /* bytes of text that were cut off */
};

struct fm_logprob_cut {
    size_t len;   /* bytes of text */
    size_t count; /* entries */
};

/* Allocates nothing; the free is harmless twice. */
void fm_logprob_queue_init(struct fm_logprob_queue *queue);
void fm_logprob_queue_free(struct fm_logprob_queue *queue);

/*
 * Adds a token (copied), whose bytes are pushed later, after those of the tokens before it. One without bytes is left
 * out. A lack of memory is told by the next push.
 */
void fm_logprob_queue_add(struct fm_logprob_queue *queue, const struct fm_token_logprobs *token);

/* As fm_text_stream_push: these are the next bytes of the tokens. `out` holds all text since the last cut. */
FM_MUST_USE enum fm_text_status fm_logprob_queue_push(struct fm_logprob_queue *queue, struct fm_text_stream *stream,
                                                      const char *bytes, size_t len, struct fm_buf *out);

/*
 * What of the text in `out` can go out next, at the most; with `all`, where no more will follow, there is something as
 * long as `out` is not empty.
 */
struct fm_logprob_cut fm_logprob_queue_cut(const struct fm_logprob_queue *queue, const struct fm_text_stream *stream,
                                           const struct fm_buf *out, bool all);

/* Writes the entries of `cut` as a value, ENGINE.md's `logprobs`. */
void fm_logprob_queue_write(const struct fm_logprob_queue *queue, const struct fm_logprob_cut *cut,
                            struct fm_json_writer *w);

/* Takes `cut` out of the queue and of `out`. */
void fm_logprob_queue_drop(struct fm_logprob_queue *queue, const struct fm_logprob_cut *cut, struct fm_buf *out);

#endif
