/* Vectors of floats as base64, and their normalisation to length 1. */
#include "protocol/vector.h"
#include "protocol/base64.h"

#include <math.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "floats are copied as they lie in memory"
#endif

size_t fm_vector_text_size(size_t count) {
    return (count * sizeof(float) + 2) / 3 * 4;
}

void fm_vector_write(const float *values, size_t count, struct fm_json_writer *w) {
    fm_json_raw(w, "\"", 1); /* opens a value that is written in pieces */
    fm_base64_append(w->buf, values, count * sizeof *values);
    fm_buf_append_char(w->buf, '"');
}

bool fm_vector_read(const char *text, size_t len, float *values, size_t count) {
    unsigned char *bytes = (unsigned char *)values;
    size_t left = count * sizeof *values;
    if (len != fm_vector_text_size(count)) {
        return false;
    }
    while (left > 0) {
        size_t group = left < 3 ? left : 3;
        if (!fm_base64_read_group(text, group, bytes)) {
            return false;
        }
        text += 4;
        bytes += group;
        left -= group;
    }
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) {
            return false;
        }
    }
    return true;
}

bool fm_vector_normalise(float *values, size_t count) {
    double squares = 0;
    for (size_t i = 0; i < count; i++) {
        squares += (double)values[i] * values[i];
    }
    if (!isfinite(squares) || squares <= 0) {
        return false;
    }
    double length = sqrt(squares);
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)(values[i] / length);
    }
    return true;
}
