/*
 * A vector on the wire: its numbers as 32-bit floats (IEEE 754, little-endian), one after the other, in base64
 * (base64.h). Engines send vectors to the front in this form, and OpenAI's clients ask for it. Pure.
 */
#ifndef FM_PROTOCOL_VECTOR_H
#define FM_PROTOCOL_VECTOR_H

#include "protocol/json_writer.h"

#define FM_VECTOR_MAX 65536u /* numbers in a vector; today's models have up to 8,192 */

/* Bytes of the base64 text of `count` numbers, without quotes. */
size_t fm_vector_text_size(size_t count);

/* Writes a vector as a JSON string. */
void fm_vector_write(const float *values, size_t count, struct fm_json_writer *w);

/* Reads a vector. False unless `text` has exactly `count` numbers, all of them finite. */
FM_MUST_USE bool fm_vector_read(const char *text, size_t len, float *values, size_t count);

/*
 * Scales the vector to length 1. False, with nothing changed, when that is impossible: all numbers are 0, or one is not
 * finite.
 */
FM_MUST_USE bool fm_vector_normalise(float *values, size_t count);

#endif
