/*
 * Products of weights in the format Q4_1 with several columns at once. ggml's kernel for it takes one column: it
 * unpacks each block of weights again for each column. These kernels unpack it once for eight columns, and add up the
 * same products in the same order, so that the results are the same as ggml's to the bit. Pure arithmetic: nothing here
 * blocks, and any number of threads may work on parts of one product.
 *
 * Needs nothing of llama.cpp. The format and the order of the sums are those of block_q4_1 and block_q8_1 in ggml's
 * ggml-common.h, and of quantize_row_q8_1 and ggml_vec_dot_q4_1_q8_1 in its ggml-cpu/arch/x86/quants.c, with AVX2, FMA
 * and F16C.
 */
#ifndef FM_ENGINE_LLAMA_Q4_1_H
#define FM_ENGINE_LLAMA_Q4_1_H

#include <stddef.h>
#include <stdint.h>

#define FM_Q4_1_BLOCK   32 /* weights in a block */
#define FM_Q4_1_COLUMNS 8  /* columns in a tile */
#define FM_Q4_1_ROWS    4  /* rows that a kernel multiplies together */

/* A block in the model's file: weight i is `min` + `scale` x its nibble, the lower ones of all bytes first. */
struct fm_q4_1_block {
    uint16_t scale; /* half precision, as `min` */
    uint16_t min;
    uint8_t nibbles[FM_Q4_1_BLOCK / 2];
};

/*
 * A block of up to eight columns, quantised to 8 bits as ggml's Q8_1. If there are fewer than eight columns, only `sum`
 * of the missing columns is read, without effect.
 */
struct fm_q4_1_tile {
    float scale[FM_Q4_1_COLUMNS]; /* rounded to half precision, as `sum` */
    float sum[FM_Q4_1_COLUMNS];   /* the sum of the values, times the scale */
    int8_t values[FM_Q4_1_COLUMNS][FM_Q4_1_BLOCK];
};

/*
 * `blocks` blocks of FM_Q4_1_ROWS rows, which may be the same one, times the columns of `tile`, the first of `blocks`
 * consecutive tiles. The result for row r and column c goes to out[r][c].
 */
typedef void fm_q4_1_multiply_tile(const struct fm_q4_1_block *const *rows, size_t blocks,
                                   const struct fm_q4_1_tile *tile, float (*out)[FM_Q4_1_COLUMNS]);

struct fm_q4_1_kernel {
    const char *name;
    void (*quantise)(const float *values, struct fm_q4_1_tile *tile, size_t column); /* quantises a block of a column */
    fm_q4_1_multiply_tile *multiply[FM_Q4_1_COLUMNS];                                /* for tiles of 1 to 8 columns */
};

/*
 * The first kernels are for processors with AVX2, FMA and F16C; the second also need AVX-512 (F, BW, DQ, VL) with VNNI.
 * On other processors they end the process.
 */
extern const struct fm_q4_1_kernel fm_q4_1_avx2;
extern const struct fm_q4_1_kernel fm_q4_1_avx512;

/*
 * A matrix of weights times `columns` columns: `out` gets a column of `rows` floats for each of them. All pointers are
 * borrowed.
 */
struct fm_q4_1_product {
    const struct fm_q4_1_kernel *kernel;
    const void *weights;
    size_t row_bytes; /* bytes from one row to the next */
    size_t rows;
    size_t blocks; /* blocks in a row, and in a column */
    const float *in;
    size_t in_stride; /* floats from one column to the next in `in`; out_stride: in `out` */
    size_t columns;
    struct fm_q4_1_tile *tiles; /* fm_q4_1_tiles of them */
    float *out;
    size_t out_stride;
};

/* How many tiles the columns need. */
size_t fm_q4_1_tiles(size_t columns, size_t blocks);

/* Quantises the blocks `first` to `end` - 1 of all columns. */
void fm_q4_1_quantise(const struct fm_q4_1_product *product, size_t first, size_t end);

/* Computes the rows `first` to `end` - 1 of the product. Call it after all blocks are quantised. */
void fm_q4_1_multiply(const struct fm_q4_1_product *product, size_t first, size_t end);

#endif
