/*
 * Models that see images: a projector beside the weights turns images into tokens, with libmtmd. In a prompt an image
 * is one or more *spans* of places, with the text tokens that the model wants around them. The image's dimensions give
 * the number of places; it is decoded and computed when its turn comes. vision_none.c is for builds without images.
 * Engine thread only.
 */
#ifndef FM_ENGINE_LLAMA_VISION_H
#define FM_ENGINE_LLAMA_VISION_H

#include "base/buf.h"
#include "engine/kit/kit.h"
#include "engine/llama/image.h"

#include <llama.h>

#define FM_VISION_ID_SIZE 32 /* bytes of an image's identity: SHA-256 */

/* The place of an image in a list of tokens. */
#define FM_VISION_TOKEN (-2)

/* The places of one batch of the encoder's output. Plain data: slots keep it to know what they hold. */
struct fm_span {
    unsigned char id[FM_VISION_ID_SIZE]; /* of the image's file */
    size_t part;                         /* which span of the image it is */
    size_t at;                           /* tokens before the span */
    size_t count;                        /* number of its places: tokens of the context */
    llama_pos positions;                 /* number of positions that the span takes; mostly as many as places */
    size_t image;                        /* index of the image in the job; not compared */
};

/* True if both are the same part of the same image in the same place. */
bool fm_span_equal(const struct fm_span *a, const struct fm_span *b);

struct fm_vision;

/* An image of a job, and its places in a prompt. */
struct fm_picture;

/* False in a build without images. */
bool fm_vision_supported(void);

/*
 * Loads the projector in the file `path` for a loaded model, which must outlive it. FM_UNAVAILABLE, with the file's
 * name, when it can't be used with this model. On failure nothing is left loaded. Blocks as long as it takes.
 */
FM_MUST_USE enum fm_code fm_vision_load(struct fm_vision **vision, const char *path, const struct llama_model *weights,
                                        int threads, struct fm_error *error);
void fm_vision_free(struct fm_vision *vision); /* NULL is allowed */

/* Whether the places of a span attend to each other in both directions, so that they must be in one batch. */
bool fm_vision_needs_whole_spans(const struct fm_vision *vision);

/* Sets the function that gets the log lines of the library. Call it before fm_vision_load. */
void fm_vision_log_to(ggml_log_callback callback);

/*
 * Reads the dimensions and places of an image, without decoding it. The image must outlive the result.
 * FM_INVALID_REQUEST, with the param `images[index]`, when it can't be used.
 */
FM_MUST_USE enum fm_code fm_picture_new(const struct fm_vision *vision, const struct fm_image *image,
                                        struct fm_picture **picture, struct fm_error *error);
void fm_picture_free(struct fm_picture *picture); /* NULL is allowed */

/*
 * Appends the picture's tokens (of llama_token) to `tokens`, with FM_VISION_TOKEN at the places of its spans, and the
 * spans (of struct fm_span) to `spans`. If memory runs out, the buffers fail.
 */
void fm_picture_write(const struct fm_picture *picture, struct fm_buf *tokens, struct fm_buf *spans);

/*
 * Decodes the image and drops the result: FM_INVALID_REQUEST, as from fm_picture_new, if the image is damaged;
 * FM_CANCELLED when `go_on` returned false.
 */
FM_MUST_USE enum fm_code fm_picture_check(const struct fm_picture *picture, fm_image_go_on *go_on, void *state,
                                          struct fm_error *error);

/*
 * Computes a span: `*states` are its embeddings, one after the other, valid until the next call. FM_CANCELLED when
 * `go_on` returned false; it is called between the encoder's larger operations.
 */
FM_MUST_USE enum fm_code fm_picture_encode(struct fm_vision *vision, struct fm_picture *picture,
                                           const struct fm_span *span, fm_image_go_on *go_on, void *state,
                                           float **states, struct fm_error *error);

/* The positions of a span that begins at the position `start`: fm_vision_positions() rows of span->count. */
void fm_picture_positions(const struct fm_vision *vision, const struct fm_picture *picture, const struct fm_span *span,
                          llama_pos start, llama_pos *positions);

/* Positions that each place has: 1, or 4 if the model distinguishes rows and columns. */
size_t fm_vision_positions(const struct fm_vision *vision);

#endif
