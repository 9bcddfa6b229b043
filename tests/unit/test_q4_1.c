/* Compares the kernels for Q4_1 weights with plain C, which adds in ggml's order. The results are equal to the bit. */
#include "engine/llama/q4_1.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COLUMNS_MAX 33
#define ROWS_MAX    19
#define BLOCKS_MAX  5
#define GAP         3 /* floats after each column, in the input and the output */
#define NOTHING     12345.5F

static uint32_t state = 1;

static uint32_t random_bits(void) {
    state = state * 1664525U + 1013904223U;
    return state >> 8;
}

/* From -1 to 1. */
static float random_float(void) {
    return (float)random_bits() / (float)(1U << 23) - 1;
}

/* ---- half precision ---- */

static float value_of_half(uint16_t half) {
    int exponent = half >> 10 & 31;
    int mantissa = half & 1023;
    float size = exponent ? ldexpf((float)(1024 + mantissa), exponent - 25) : ldexpf((float)mantissa, -24);
    return half & 0x8000 ? -size : size;
}

static float round_to_half(float value) {
    int exponent;
    frexpf(value, &exponent);
    int last = exponent - 11 > -24 ? exponent - 11 : -24; /* the exponent of its last bit */
    return ldexpf(rintf(ldexpf(value, -last)), last);
}

/* ---- plain C ---- */

struct column_block {
    float scale;
    float sum;
    int values[FM_Q4_1_BLOCK];
};

/* Like the processor, returns the second value if one of them is not a number. */
static float larger(float a, float b) {
    return a > b ? a : b;
}

/* Compares in ggml's order, which matters if some values are not numbers. */
static float largest(const float *values) {
    float lanes[8] = {0};
    for (int i = 0; i < FM_Q4_1_BLOCK; i++) {
        lanes[i % 8] = larger(lanes[i % 8], fabsf(values[i]));
    }
    for (int lane = 0; lane < 4; lane++) {
        lanes[lane] = larger(lanes[lane + 4], lanes[lane]);
    }
    return larger(larger(lanes[0], lanes[2]), larger(lanes[1], lanes[3]));
}

static struct column_block quantised(const float *values) {
    struct column_block block;
    float max = largest(values);
    int sum = 0;
    for (int i = 0; i < FM_Q4_1_BLOCK; i++) {
        float scaled = values[i] * (max != 0 ? 127.0F / max : 0);
        block.values[i] = (int)rintf(scaled);
        sum += block.values[i];
    }
    float scale = max / 127.0F;
    block.scale = round_to_half(scale);
    block.sum = round_to_half(scale * (float)sum);
    return block;
}

static float dot(const struct fm_q4_1_block *row, const struct column_block *column, size_t blocks) {
    float lanes[8] = {0};
    float minima = 0;
    for (size_t b = 0; b < blocks; b++) {
        float scale = value_of_half(row[b].scale) * column[b].scale;
        for (int lane = 0; lane < 8; lane++) {
            int sum = 0;
            for (int i = 4 * lane; i < 4 * lane + 4; i++) {
                int nibble = i < 16 ? row[b].nibbles[i] & 15 : row[b].nibbles[i - 16] >> 4;
                sum += nibble * column[b].values[i];
            }
            lanes[lane] = fmaf(scale, (float)sum, lanes[lane]);
        }
        minima = fmaf(value_of_half(row[b].min), column[b].sum, minima);
    }
    for (int lane = 0; lane < 4; lane++) {
        lanes[lane] = lanes[lane + 4] + lanes[lane];
    }
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]) + minima;
}

/* ---- a product ---- */

static struct fm_q4_1_block weights[ROWS_MAX][BLOCKS_MAX + 1];
static float in[COLUMNS_MAX][BLOCKS_MAX * FM_Q4_1_BLOCK + GAP];
static float out[COLUMNS_MAX][ROWS_MAX + GAP];
static _Alignas(64) struct fm_q4_1_tile tiles[(COLUMNS_MAX + 7) / 8 * BLOCKS_MAX];

/* Some blocks are all 0, some are tiny, some have their largest weights and values equal, with either sign. */
static void fill_block(float *values, uint32_t kind) {
    float size = kind == 1 ? 1e-7F : 3.0F;
    for (int i = 0; i < FM_Q4_1_BLOCK; i++) {
        values[i] = kind == 0 ? 0 : size * random_float();
        values[i] = kind == 2 ? -size : kind == 3 ? size : values[i];
    }
}

static void fill(void) {
    for (size_t r = 0; r < ROWS_MAX; r++) {
        for (size_t b = 0; b <= BLOCKS_MAX; b++) {
            struct fm_q4_1_block *block = &weights[r][b];
            block->scale = (uint16_t)(random_bits() % 0x4000); /* up to 2, with values too small for an exponent */
            block->min = (uint16_t)(random_bits() % 0x4000 + (random_bits() % 2 ? 0x8000 : 0));
            bool largest = random_bits() % 8 == 0;
            for (size_t i = 0; i < sizeof block->nibbles; i++) {
                block->nibbles[i] = largest ? 0xff : (uint8_t)random_bits();
            }
        }
    }
    for (size_t c = 0; c < COLUMNS_MAX; c++) {
        for (size_t b = 0; b < BLOCKS_MAX; b++) {
            fill_block(&in[c][b * FM_Q4_1_BLOCK], random_bits() % 12);
        }
    }
}

static void check(const struct fm_q4_1_product *product) {
    for (size_t c = 0; c < COLUMNS_MAX; c++) {
        struct column_block column[BLOCKS_MAX];
        for (size_t b = 0; b < product->blocks; b++) {
            column[b] = quantised(&in[c][b * FM_Q4_1_BLOCK]);
        }
        for (size_t r = 0; r < ROWS_MAX + GAP; r++) {
            bool there = c < product->columns && r < product->rows;
            float expected = there ? dot(weights[r], column, product->blocks) : NOTHING;
            if (memcmp(&expected, &out[c][r], sizeof expected) != 0) {
                fail_msg("%s, %zu rows, %zu columns, %zu blocks: row %zu of column %zu is %a instead of %a",
                         product->kernel->name, product->rows, product->columns, product->blocks, r, c,
                         (double)out[c][r], (double)expected);
            }
        }
    }
}

/* Computes each step in two parts, as two threads would. */
static void multiply(const struct fm_q4_1_kernel *kernel, size_t rows, size_t columns, size_t blocks) {
    const struct fm_q4_1_product product = {.kernel = kernel,
                                            .weights = weights,
                                            .row_bytes = sizeof weights[0],
                                            .rows = rows,
                                            .blocks = blocks,
                                            .in = in[0],
                                            .in_stride = sizeof in[0] / sizeof in[0][0],
                                            .columns = columns,
                                            .tiles = tiles,
                                            .out = out[0],
                                            .out_stride = sizeof out[0] / sizeof out[0][0]};
    for (size_t c = 0; c < COLUMNS_MAX; c++) {
        for (size_t r = 0; r < ROWS_MAX + GAP; r++) {
            out[c][r] = NOTHING;
        }
    }
    /* fills the tiles with values that are not numbers, in case a kernel uses what it must not */
    memset(tiles, 0xff, sizeof tiles);
    assert_true(fm_q4_1_tiles(columns, blocks) <= sizeof tiles / sizeof tiles[0]);
    fm_q4_1_quantise(&product, blocks / 2, blocks);
    fm_q4_1_quantise(&product, 0, blocks / 2);
    fm_q4_1_multiply(&product, rows / 3, rows);
    fm_q4_1_multiply(&product, 0, rows / 3);
    check(&product);
}

static void test_kernel(const struct fm_q4_1_kernel *kernel) {
    static const size_t row_counts[] = {1, 2, 3, 4, 5, 7, ROWS_MAX};
    for (size_t columns = 1; columns <= COLUMNS_MAX; columns++) {
        for (size_t i = 0; i < sizeof row_counts / sizeof row_counts[0]; i++) {
            fill();
            multiply(kernel, row_counts[i], columns, 1 + random_bits() % BLOCKS_MAX);
        }
    }
}

/* If a model's numbers overflow, the results are also the same as ggml's. */
static void test_not_numbers(const struct fm_q4_1_kernel *kernel) {
    static struct fm_q4_1_tile tile;
    for (size_t place = 0; place < FM_Q4_1_BLOCK; place++) {
        float values[FM_Q4_1_BLOCK];
        fill_block(values, 4);
        values[place] = NAN;
        values[random_bits() % FM_Q4_1_BLOCK] = INFINITY;
        float expected = largest(values);
        expected = isfinite(expected) ? round_to_half(expected / 127.0F) : expected;
        kernel->quantise(values, &tile, 1);
        if (isnan(expected) ? !isnan(tile.scale[1]) : !(tile.scale[1] == expected)) {
            fail_msg("%s: no number at %zu: %a instead of %a", kernel->name, place, (double)tile.scale[1],
                     (double)expected);
        }
    }
}

static void test_avx2(void **unused) {
    (void)unused;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        skip();
    }
    test_kernel(&fm_q4_1_avx2);
    test_not_numbers(&fm_q4_1_avx2);
}

static void test_avx512(void **unused) {
    (void)unused;
    if (!__builtin_cpu_supports("avx512vnni") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
        skip();
    }
    test_kernel(&fm_q4_1_avx512);
    test_not_numbers(&fm_q4_1_avx512);
}

static void test_tiles(void **unused) {
    (void)unused;
    assert_int_equal(fm_q4_1_tiles(1, 18), 18);
    assert_int_equal(fm_q4_1_tiles(8, 18), 18);
    assert_int_equal(fm_q4_1_tiles(9, 18), 36);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_avx2),
        cmocka_unit_test(test_avx512),
        cmocka_unit_test(test_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
