/* Products of weights in the format Q4_1: which rows and columns a kernel multiplies together. See q4_1.h. */
#include "engine/llama/q4_1.h"

size_t fm_q4_1_tiles(size_t columns, size_t blocks) {
    return (columns + FM_Q4_1_COLUMNS - 1) / FM_Q4_1_COLUMNS * blocks;
}

void fm_q4_1_quantise(const struct fm_q4_1_product *product, size_t first, size_t end) {
    for (size_t column = 0; column < product->columns; column++) {
        const float *in = product->in + column * product->in_stride;
        struct fm_q4_1_tile *tiles = product->tiles + column / FM_Q4_1_COLUMNS * product->blocks;
        for (size_t block = first; block < end; block++) {
            product->kernel->quantise(in + block * FM_Q4_1_BLOCK, &tiles[block], column % FM_Q4_1_COLUMNS);
        }
    }
}

/* Multiplies up to FM_Q4_1_ROWS rows by the columns of one tile. */
static void multiply_part(const struct fm_q4_1_product *product, size_t row, size_t rows, size_t column) {
    const struct fm_q4_1_block *weights[FM_Q4_1_ROWS];
    float result[FM_Q4_1_ROWS][FM_Q4_1_COLUMNS];
    size_t columns = product->columns - column;
    columns = columns < FM_Q4_1_COLUMNS ? columns : FM_Q4_1_COLUMNS;
    for (size_t i = 0; i < FM_Q4_1_ROWS; i++) {
        size_t one = i < rows ? row + i : row; /* the result of a missing row is not used */
        weights[i] = (const void *)((const unsigned char *)product->weights + one * product->row_bytes);
    }
    const struct fm_q4_1_tile *tiles = product->tiles + column / FM_Q4_1_COLUMNS * product->blocks;
    product->kernel->multiply[columns - 1](weights, product->blocks, tiles, result);
    for (size_t c = 0; c < columns; c++) {
        float *out = product->out + (column + c) * product->out_stride + row;
        for (size_t i = 0; i < rows; i++) {
            out[i] = result[i][c];
        }
    }
}

void fm_q4_1_multiply(const struct fm_q4_1_product *product, size_t first, size_t end) {
    for (size_t column = 0; column < product->columns; column += FM_Q4_1_COLUMNS) {
        for (size_t row = first; row < end; row += FM_Q4_1_ROWS) {
            multiply_part(product, row, end - row < FM_Q4_1_ROWS ? end - row : FM_Q4_1_ROWS, column);
        }
    }
}
