/*
 * Images in messages: how both APIs send them (a `data:` URL, as nothing is fetched here), and what is checked of them.
 * What is in the file is the engine's matter. Pure; values are borrowed.
 */
#ifndef FM_SURFACE_IMAGE_H
#define FM_SURFACE_IMAGE_H

#include "base/buf.h"
#include "surface/check.h"

struct fm_request;

/* A string: a data: URL of an image in base64. */
fm_check_fn fm_check_image_url;

/* How closely to look: a word, which changes nothing. */
extern const char *const fm_image_details[];

/* The base64 in a checked URL, `*len` bytes. */
const char *fm_image_data(struct json_object *url, size_t *len);

/* The code of a request that has an image which the engine can't read. */
#define FM_IMAGE_INVALID "invalid_image"

/* Appends the path of an image of the request to those that it has (fm_request.image_params), where they end. */
void fm_image_note(struct fm_buf *params, const char *list, size_t entry, size_t part);

#endif
