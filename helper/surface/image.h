/*
 * Images in messages. Both APIs send them as `data:` URLs, because nothing is fetched here. Only the URL is checked;
 * the engine reads the image itself. Pure; values are borrowed.
 */
#ifndef FM_SURFACE_IMAGE_H
#define FM_SURFACE_IMAGE_H

#include "base/buf.h"
#include "surface/check.h"

struct fm_request;

/* Checks a string: it must be a `data:` URL of an image in base64. */
fm_check_fn fm_check_image_url;

/* The values of `detail`. They are accepted and have no effect. */
extern const char *const fm_image_details[];

/* The base64 text in a checked URL, `*len` bytes. */
const char *fm_image_data(struct json_object *url, size_t *len);

/* The reason of an error when the engine can't read an image. */
#define FM_IMAGE_INVALID "invalid_image"

/* Appends the path of an image to fm_request.image_params. Call it in the order of the images in the body. */
void fm_image_note(struct fm_buf *params, const char *list, size_t entry, size_t part);

#endif
