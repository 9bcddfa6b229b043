/*
 * An image file in memory, PNG, JPEG, GIF (its first frame) or BMP, into pixels. What is in it comes from strangers: it
 * takes no more memory than its dimensions, which are looked at first, account for. Engine thread only: the limit on
 * allocations is one for the process.
 */
#ifndef FM_ENGINE_LLAMA_IMAGE_H
#define FM_ENGINE_LLAMA_IMAGE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is larger is refused before anything is decoded: docs/limits.md, "Images". */
#define FM_IMAGE_SIDE_MAX   16384u    /* pixels */
#define FM_IMAGE_PIXELS_MAX 33554432u /* width by height */

/* Asked for while an image is worked on, some times a second if not more often; false gives the work up. */
typedef bool fm_image_go_on(void *state);

struct fm_pixels {
    uint32_t width;
    uint32_t height;
    unsigned char *rgb; /* 3 bytes a pixel, row by row; owned; NULL: not decoded */
};

/* The dimensions alone, of what looks like an image. FM_INVALID_REQUEST: it is not one of these, or too large. */
FM_MUST_USE enum fm_code fm_image_look(const unsigned char *bytes, size_t len, struct fm_pixels *pixels,
                                       struct fm_error *error);

/*
 * All of it. FM_INVALID_REQUEST also when it is damaged; FM_CANCELLED when `go_on` was false. On failure nothing is
 * left to free.
 */
FM_MUST_USE enum fm_code fm_image_decode(const unsigned char *bytes, size_t len, fm_image_go_on *go_on, void *state,
                                         struct fm_pixels *pixels, struct fm_error *error);
void fm_pixels_free(struct fm_pixels *pixels);

#endif
