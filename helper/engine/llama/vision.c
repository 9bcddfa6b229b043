/* Uses libmtmd: turns an image into places of the prompt, and those places into embeddings. See vision.h. */
#include "engine/llama/vision.h"

#include <hash/sha256/sha256.h>
#include <mtmd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Marks the place of an image in a text for mtmd_tokenize. That text never contains a user's text. */
#define MARKER "<fm-image>"

struct fm_vision {
    mtmd_context *context;
    const struct llama_vocab *vocab;
    /* the members from here on belong to the present work */
    fm_image_go_on *go_on;
    void *state;
    bool stopped;
};

struct fm_picture {
    const struct fm_image *image; /* borrowed */
    unsigned char id[FM_VISION_ID_SIZE];
    mtmd_input_chunks *outline; /* without pixels */
    mtmd_input_chunks *chunks;  /* with pixels, while its spans are computed; NULL before and after */
};

bool fm_vision_supported(void) {
    return true;
}

/* ---- the projector ---- */

/*
 * Before each operation, the encoder's scheduler asks whether to call this again when it is done. This code asks for it
 * after operations that take long, and can end the work there; the results are then not used.
 */
static bool on_operation(struct ggml_tensor *tensor, bool ask, void *argument) {
    struct fm_vision *vision = argument;
    if (ask) {
        return tensor->op == GGML_OP_MUL_MAT || tensor->op == GGML_OP_FLASH_ATTN_EXT ||
               tensor->op == GGML_OP_SOFT_MAX || tensor->op == GGML_OP_IM2COL || tensor->op == GGML_OP_CONV_2D;
    }
    vision->stopped = vision->stopped || (vision->go_on && !vision->go_on(vision->state));
    return !vision->stopped;
}

void fm_vision_log_to(ggml_log_callback callback) {
    mtmd_log_set(callback, NULL);
}

enum fm_code fm_vision_load(struct fm_vision **vision, const char *path, const struct llama_model *weights, int threads,
                            struct fm_error *error) {
    struct fm_vision *made = calloc(1, sizeof *made);
    *vision = NULL;
    if (!made) {
        return fm_fail_no_memory(error);
    }
    struct mtmd_context_params params = mtmd_context_params_default();
    params.use_gpu = false;
    params.print_timings = false;
    params.warmup = false; /* the buffers are made for the first image */
    params.n_threads = threads;
    params.media_marker = MARKER;
    params.cb_eval = on_operation;
    params.cb_eval_user_data = made;
    made->vocab = llama_model_get_vocab(weights);
    made->context = mtmd_init_from_file(path, weights, params);
    if (!made->context || !mtmd_support_vision(made->context)) {
        const char *what = made->context ? "the projector is not for images" : "the projector can't be used";
        fm_vision_free(made);
        return fm_fail(error, FM_UNAVAILABLE, "%s: %s", path, what);
    }
    *vision = made;
    return FM_OK;
}

void fm_vision_free(struct fm_vision *vision) {
    if (vision) {
        mtmd_free(vision->context);
        free(vision);
    }
}

bool fm_vision_needs_whole_spans(const struct fm_vision *vision) {
    return mtmd_decode_use_non_causal(vision->context, NULL);
}

size_t fm_vision_positions(const struct fm_vision *vision) {
    return mtmd_decode_use_mrope(vision->context) ? 4 : 1;
}

/* ---- pictures ---- */

bool fm_span_equal(const struct fm_span *a, const struct fm_span *b) {
    return memcmp(a->id, b->id, sizeof a->id) == 0 && a->part == b->part && a->at == b->at && a->count == b->count &&
           a->positions == b->positions;
}

static enum fm_code blame(const struct fm_image *image, struct fm_error *error) {
    if (error->code == FM_INVALID_REQUEST) {
        snprintf(error->param, sizeof error->param, "images[%zu]", image->index);
    }
    return error->code;
}

static bool is_image(const mtmd_input_chunk *chunk) {
    return mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_IMAGE;
}

/* The places for an image of the size of `pixels`; only the dimensions are used. NULL: it is not possible. */
static mtmd_input_chunks *cut_up(const struct fm_vision *vision, const struct fm_pixels *pixels) {
    const struct mtmd_input_text text = {.text = MARKER, .text_len = sizeof MARKER - 1, .parse_special = true};
    mtmd_bitmap *bitmap = mtmd_bitmap_init(pixels->width, pixels->height, pixels->rgb);
    mtmd_input_chunks *chunks = mtmd_input_chunks_init();
    const mtmd_bitmap *bitmaps[] = {bitmap};
    bool made = bitmap && chunks && mtmd_tokenize(vision->context, chunks, &text, bitmaps, 1) == 0;
    mtmd_bitmap_free(bitmap);
    if (!made) {
        mtmd_input_chunks_free(chunks);
        return NULL;
    }
    return chunks;
}

/* A projector for another vocabulary uses marks that this vocabulary lacks. */
static bool has_known_tokens(const struct fm_vision *vision, const mtmd_input_chunks *chunks) {
    for (size_t i = 0; i < mtmd_input_chunks_size(chunks); i++) {
        const mtmd_input_chunk *chunk = mtmd_input_chunks_get(chunks, i);
        size_t count = 0;
        const llama_token *tokens = is_image(chunk) ? NULL : mtmd_input_chunk_get_tokens_text(chunk, &count);
        for (size_t k = 0; tokens && k < count; k++) {
            if (tokens[k] < 0 || tokens[k] >= llama_vocab_n_tokens(vision->vocab)) {
                return false;
            }
        }
    }
    return true;
}

enum fm_code fm_picture_new(const struct fm_vision *vision, const struct fm_image *image, struct fm_picture **picture,
                            struct fm_error *error) {
    struct fm_pixels pixels;
    *picture = NULL;
    if (fm_image_look(image->bytes, image->len, &pixels, error) != FM_OK) {
        return blame(image, error);
    }
    struct fm_picture *made = calloc(1, sizeof *made);
    if (!made) {
        return fm_fail_no_memory(error);
    }
    made->image = image;
    made->outline = cut_up(vision, &pixels);
    if (!made->outline || !has_known_tokens(vision, made->outline)) {
        const char *what = made->outline ? "the projector needs tokens that the model has not"
                                         : "the projector can't take an image of these dimensions";
        fm_picture_free(made);
        fm_fail(error, FM_INVALID_REQUEST, "%s", what);
        return blame(image, error);
    }
    sha256_hash(made->id, image->bytes, image->len);
    *picture = made;
    return FM_OK;
}

void fm_picture_free(struct fm_picture *picture) {
    if (picture) {
        mtmd_input_chunks_free(picture->outline);
        mtmd_input_chunks_free(picture->chunks);
        free(picture);
    }
}

static void write_span(const struct fm_picture *picture, size_t part, struct fm_buf *tokens, struct fm_buf *spans) {
    const mtmd_input_chunk *chunk = mtmd_input_chunks_get(picture->outline, part);
    const llama_token place = FM_VISION_TOKEN;
    struct fm_span span = {
        .part = part,
        .at = tokens->len / sizeof place,
        .count = mtmd_input_chunk_get_n_tokens(chunk),
        .positions = mtmd_input_chunk_get_n_pos(chunk),
        .image = picture->image->index,
    };
    memcpy(span.id, picture->id, sizeof span.id);
    for (size_t i = 0; i < span.count; i++) {
        fm_buf_append(tokens, &place, sizeof place);
    }
    fm_buf_append(spans, &span, sizeof span);
}

void fm_picture_write(const struct fm_picture *picture, struct fm_buf *tokens, struct fm_buf *spans) {
    for (size_t i = 0; i < mtmd_input_chunks_size(picture->outline); i++) {
        const mtmd_input_chunk *chunk = mtmd_input_chunks_get(picture->outline, i);
        if (is_image(chunk)) {
            write_span(picture, i, tokens, spans);
        } else {
            size_t count = 0;
            const llama_token *text = mtmd_input_chunk_get_tokens_text(chunk, &count);
            fm_buf_append(tokens, text, count * sizeof *text);
        }
    }
}

enum fm_code fm_picture_check(const struct fm_picture *picture, fm_image_go_on *go_on, void *state,
                              struct fm_error *error) {
    struct fm_pixels pixels;
    const struct fm_image *image = picture->image;
    if (fm_image_decode(image->bytes, image->len, go_on, state, &pixels, error) != FM_OK) {
        return blame(image, error);
    }
    fm_pixels_free(&pixels);
    return FM_OK;
}

/* ---- computing ---- */

/* Whether the pixels were split as the dimensions had shown. */
static bool fits_outline(const struct fm_picture *picture, const struct fm_span *span) {
    const mtmd_input_chunks *chunks = picture->chunks;
    const mtmd_input_chunk *chunk =
        span->part < mtmd_input_chunks_size(chunks) ? mtmd_input_chunks_get(chunks, span->part) : NULL;
    return chunk && is_image(chunk) && mtmd_input_chunk_get_n_tokens(chunk) == span->count &&
           mtmd_input_chunk_get_n_pos(chunk) == span->positions;
}

static enum fm_code decode_image(struct fm_vision *vision, struct fm_picture *picture, struct fm_error *error) {
    struct fm_pixels pixels;
    const struct fm_image *image = picture->image;
    if (fm_image_decode(image->bytes, image->len, vision->go_on, vision->state, &pixels, error) != FM_OK) {
        return blame(image, error);
    }
    picture->chunks = cut_up(vision, &pixels);
    fm_pixels_free(&pixels);
    if (!picture->chunks) {
        fm_fail(error, FM_INVALID_REQUEST,
                "the projector can't take an image of these dimensions, or is out of memory");
        return blame(image, error);
    }
    return FM_OK;
}

static bool is_last_span(const struct fm_picture *picture, size_t part) {
    for (size_t i = part + 1; i < mtmd_input_chunks_size(picture->outline); i++) {
        if (is_image(mtmd_input_chunks_get(picture->outline, i))) {
            return false;
        }
    }
    return true;
}

enum fm_code fm_picture_encode(struct fm_vision *vision, struct fm_picture *picture, const struct fm_span *span,
                               fm_image_go_on *go_on, void *state, float **states, struct fm_error *error) {
    vision->go_on = go_on;
    vision->state = state;
    vision->stopped = false;
    enum fm_code code = picture->chunks ? FM_OK : decode_image(vision, picture, error);
    if (code == FM_OK && !fits_outline(picture, span)) {
        code = fm_fail(error, FM_INTERNAL, "the projector takes the image for another than its dimensions say");
    }
    if (code == FM_OK) {
        bool made = mtmd_encode_chunk(vision->context, mtmd_input_chunks_get(picture->chunks, span->part)) == 0;
        *states = mtmd_get_output_embd(vision->context);
        if (vision->stopped) {
            code = fm_fail(error, FM_CANCELLED, "the job was aborted");
        } else if (!made || !*states) {
            code = fm_fail(error, FM_INTERNAL, "the image could not be computed");
        }
    }
    vision->go_on = NULL;
    if (code != FM_OK || is_last_span(picture, span->part)) {
        mtmd_input_chunks_free(picture->chunks);
        picture->chunks = NULL;
    }
    return code;
}

void fm_picture_positions(const struct fm_vision *vision, const struct fm_picture *picture, const struct fm_span *span,
                          llama_pos start, llama_pos *positions) {
    const mtmd_input_chunk *chunk = mtmd_input_chunks_get(picture->outline, span->part);
    const mtmd_image_tokens *places = mtmd_input_chunk_get_tokens_image(chunk);
    bool plane = fm_vision_positions(vision) > 1;
    for (size_t i = 0; i < span->count; i++) {
        positions[i] = start + (llama_pos)i;
        if (plane) {
            struct mtmd_decoder_pos at = mtmd_image_tokens_get_decoder_pos(places, start, i);
            positions[i] = (llama_pos)at.t;
            positions[i + span->count] = (llama_pos)at.y;
            positions[i + span->count * 2] = (llama_pos)at.x;
            positions[i + span->count * 3] = (llama_pos)at.z;
        }
    }
}
