/*
 * An image file in memory, PNG, JPEG, GIF (its first frame) or BMP, into pixels. The file is untrusted: decoding takes
 * no more memory than its dimensions, which are checked first, justify. Engine thread only, because the process has one
 * limit on allocations.
 */
#ifndef FM_ENGINE_LLAMA_IMAGE_H
#define FM_ENGINE_LLAMA_IMAGE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Larger images are refused before anything is decoded: docs/limits.md, "Images". */
#define FM_IMAGE_SIDE_MAX   16384u    /* pixels */
#define FM_IMAGE_PIXELS_MAX 33554432u /* width by height */

/* Called while an image is worked on, at least some times a second; false stops the work. */
typedef bool fm_image_go_on(void *state);

struct fm_pixels {
    uint32_t width;
    uint32_t height;
    unsigned char *rgb; /* 3 bytes a pixel, row by row; owned; NULL: not decoded */
};

/* Reads only the dimensions. FM_INVALID_REQUEST: the file is none of these formats, or too large. */
FM_MUST_USE enum fm_code fm_image_look(const unsigned char *bytes, size_t len, struct fm_pixels *pixels,
                                       struct fm_error *error);

/*
 * Decodes the whole image. FM_INVALID_REQUEST also when the image is damaged; FM_CANCELLED when `go_on` was false. On
 * failure nothing is left to free.
 */
FM_MUST_USE enum fm_code fm_image_decode(const unsigned char *bytes, size_t len, fm_image_go_on *go_on, void *state,
                                         struct fm_pixels *pixels, struct fm_error *error);
void fm_pixels_free(struct fm_pixels *pixels);

#endif
