/*
 * A vector on the wire: its numbers as 32-bit floats (IEEE 754, little-endian), one after the other, in base64
 * (base64.h). So an engine tells it to the front, and OpenAI's clients ask for it. Pure.
 */
#ifndef FM_PROTOCOL_VECTOR_H
#define FM_PROTOCOL_VECTOR_H

#include "protocol/json_writer.h"

#define FM_VECTOR_MAX 65536u /* numbers of a vector; those in use have up to 8,192 */

/* Bytes of such a text of `count` numbers, without quotes. */
size_t fm_vector_text_size(size_t count);

/* Writes it as a JSON string. */
void fm_vector_write(const float *values, size_t count, struct fm_json_writer *w);

/* Reads it. False when `text` is none of exactly `count` numbers, or one of them is not finite. */
FM_MUST_USE bool fm_vector_read(const char *text, size_t len, float *values, size_t count);

/*
 * Divides by the length, so that it is 1. False, and nothing is changed, when that can't be: no number is other than 0,
 * or one is not finite.
 */
FM_MUST_USE bool fm_vector_normalise(float *values, size_t count);

#endif
