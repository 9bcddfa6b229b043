/*
 * The kernels of q4_1.h for x86_64. A sum is kept in eight lanes, each of which has four of a block's products; the
 * lanes are added up at the end, as ggml does, and the part of the minima last. Each function may use the instructions
 * that its attribute names. The caller has made sure that the processor has them.
 */
#include "engine/llama/q4_1.h"

#include <immintrin.h>
#include <string.h>

#define AVX2   __attribute__((target("avx2,fma,f16c")))
#define AVX512 __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define INLINE static inline __attribute__((always_inline))

/* ---- columns ---- */

/*
 * Compares in the same order as ggml: the instruction gives its second operand if one of the two is not a number, so
 * the result for such values depends on the order.
 */
INLINE AVX2 float largest(__m256 a, __m256 b, __m256 c, __m256 d) {
    const __m256 sign = _mm256_set1_ps(-0.0F);
    __m256 all = _mm256_max_ps(_mm256_andnot_ps(sign, a), _mm256_andnot_ps(sign, b));
    all = _mm256_max_ps(all, _mm256_andnot_ps(sign, c));
    all = _mm256_max_ps(all, _mm256_andnot_ps(sign, d));
    __m128 half = _mm_max_ps(_mm256_extractf128_ps(all, 1), _mm256_castps256_ps128(all));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}

INLINE AVX2 int total(__m256i eight) {
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
    return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(2, 3, 0, 1))));
}

INLINE AVX2 float as_half(float value) {
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT)));
}

static AVX2 void quantise(const float *values, struct fm_q4_1_tile *tile, size_t column) {
    __m256 a = _mm256_loadu_ps(values);
    __m256 b = _mm256_loadu_ps(values + 8);
    __m256 c = _mm256_loadu_ps(values + 16);
    __m256 d = _mm256_loadu_ps(values + 24);
    float max = largest(a, b, c, d);
    float scale = max / 127.0F;
    __m256 factor = _mm256_set1_ps(max != 0.0F ? 127.0F / max : 0.0F);
    __m256i ia = _mm256_cvtps_epi32(_mm256_mul_ps(a, factor));
    __m256i ib = _mm256_cvtps_epi32(_mm256_mul_ps(b, factor));
    __m256i ic = _mm256_cvtps_epi32(_mm256_mul_ps(c, factor));
    __m256i id = _mm256_cvtps_epi32(_mm256_mul_ps(d, factor));
    tile->scale[column] = as_half(scale);
    int sum = total(_mm256_add_epi32(_mm256_add_epi32(ia, ib), _mm256_add_epi32(ic, id)));
    tile->sum[column] = as_half(scale * (float)sum);
    /* Packing works in halves of a register; the permutation after it puts the bytes in order again. */
    __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(ia, ib), _mm256_packs_epi32(ic, id));
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)tile->values[column], bytes);
}

/* ---- both ---- */

/* Scale and minimum of a block, as 4 bytes in the order of the memory. */
INLINE int32_t head(const struct fm_q4_1_block *block) {
    int32_t both;
    memcpy(&both, block, sizeof both);
    return both;
}

/* The order of these sums decides about the last bits. */
INLINE AVX2 float add_lanes(__m256 lanes) {
    __m128 four = _mm_add_ps(_mm256_extractf128_ps(lanes, 1), _mm256_castps256_ps128(lanes));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

/* ---- AVX2 ---- */

INLINE AVX2 __m256i unpack(const struct fm_q4_1_block *block) {
    __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)block->nibbles));
    return _mm256_and_si256(_mm256_srlv_epi64(twice, _mm256_setr_epi64x(0, 0, 4, 4)), _mm256_set1_epi8(15));
}

/* `rows` and `columns` are constant: `rows` times `columns` registers hold the sums. */
INLINE AVX2 void some_avx2(const struct fm_q4_1_block *const *weights, size_t blocks, const struct fm_q4_1_tile *tile,
                           float (*out)[FM_Q4_1_COLUMNS], const int rows, const int columns) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256 sums[FM_Q4_1_ROWS][FM_Q4_1_COLUMNS];
    __m256 minima[FM_Q4_1_ROWS]; /* a lane a column */
    for (int r = 0; r < rows; r++) {
        minima[r] = _mm256_setzero_ps();
        for (int c = 0; c < columns; c++) {
            sums[r][c] = _mm256_setzero_ps();
        }
    }
    for (size_t b = 0; b < blocks; b++, tile++) {
        for (int r = 0; r < rows; r++) {
            __m128 heads = _mm_cvtph_ps(_mm_cvtsi32_si128(head(weights[r] + b)));
            __m256 scale = _mm256_broadcastss_ps(heads);
            __m256 min = _mm256_broadcastss_ps(_mm_movehdup_ps(heads));
            __m256i unpacked = unpack(weights[r] + b);
            minima[r] = _mm256_fmadd_ps(min, _mm256_loadu_ps(tile->sum), minima[r]);
            for (int c = 0; c < columns; c++) {
                __m256i values = _mm256_loadu_si256((const __m256i *)tile->values[c]);
                __m256i four = _mm256_madd_epi16(ones, _mm256_maddubs_epi16(unpacked, values)); /* none overflows */
                __m256 both = _mm256_mul_ps(scale, _mm256_broadcast_ss(&tile->scale[c]));
                sums[r][c] = _mm256_fmadd_ps(both, _mm256_cvtepi32_ps(four), sums[r][c]);
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        float min[FM_Q4_1_COLUMNS];
        _mm256_storeu_ps(min, minima[r]);
        for (int c = 0; c < columns; c++) {
            out[r][c] = add_lanes(sums[r][c]) + min[c];
        }
    }
}

/* Takes as many rows at once as the registers allow. */
#define TILE_AVX2(COLUMNS, AT_ONCE)                                                                                    \
    static AVX2 void avx2_##COLUMNS(const struct fm_q4_1_block *const *rows, size_t blocks,                            \
                                    const struct fm_q4_1_tile *tile, float(*out)[FM_Q4_1_COLUMNS]) {                   \
        for (int r = 0; r < FM_Q4_1_ROWS; r += (AT_ONCE)) {                                                            \
            some_avx2(rows + r, blocks, tile, out + r, (AT_ONCE), (COLUMNS));                                          \
        }                                                                                                              \
    }
TILE_AVX2(1, 4)
TILE_AVX2(2, 4)
TILE_AVX2(3, 2)
TILE_AVX2(4, 2)
TILE_AVX2(5, 1)
TILE_AVX2(6, 1)
TILE_AVX2(7, 1)
TILE_AVX2(8, 1)

const struct fm_q4_1_kernel fm_q4_1_avx2 = {
    .name = "AVX2",
    .quantise = quantise,
    .multiply = {avx2_1, avx2_2, avx2_3, avx2_4, avx2_5, avx2_6, avx2_7, avx2_8},
};

/* ---- AVX-512 with VNNI: two rows a register ---- */

INLINE AVX512 __m512i unpack_two(const struct fm_q4_1_block *one, const struct fm_q4_1_block *other) {
    __m512i twice = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)one->nibbles));
    twice = _mm512_mask_broadcast_i32x4(twice, 0xff00, _mm_loadu_si128((const __m128i *)other->nibbles));
    twice = _mm512_srlv_epi64(twice, _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4));
    return _mm512_and_si512(twice, _mm512_set1_epi8(15));
}

/* Eight lanes of member `a`, eight of `b`. */
INLINE AVX512 __m512 spread(__m512 from, int a, int b) {
    return _mm512_permutexvar_ps(_mm512_setr_epi32(a, a, a, a, a, a, a, a, b, b, b, b, b, b, b, b), from);
}

INLINE AVX512 __m512 add_products(__m512 sums, __m512i unpacked, __m512i values, __m512 scales) {
    __m512i four = _mm512_dpbusd_epi32(_mm512_setzero_si512(), unpacked, values);
    return _mm512_fmadd_ps(scales, _mm512_cvtepi32_ps(four), sums);
}

INLINE AVX512 void some_avx512(const struct fm_q4_1_block *const *weights, size_t blocks,
                               const struct fm_q4_1_tile *tile, float (*out)[FM_Q4_1_COLUMNS], const int columns) {
    const struct fm_q4_1_block *const row[FM_Q4_1_ROWS] = {weights[0], weights[1], weights[2], weights[3]};
    __m512 sums01[FM_Q4_1_COLUMNS];
    __m512 sums23[FM_Q4_1_COLUMNS];
    __m512 minima01 = _mm512_setzero_ps(); /* a lane a column, for each row */
    __m512 minima23 = _mm512_setzero_ps();
    for (int c = 0; c < columns; c++) {
        sums01[c] = _mm512_setzero_ps();
        sums23[c] = _mm512_setzero_ps();
    }
    for (size_t b = 0; b < blocks; b++, tile++) {
        __m128i packed = _mm_setr_epi32(head(row[0] + b), head(row[1] + b), head(row[2] + b), head(row[3] + b));
        __m512 heads = _mm512_castps256_ps512(_mm256_cvtph_ps(packed));
        __m512 scale01 = spread(heads, 0, 2);
        __m512 scale23 = spread(heads, 4, 6);
        __m512 tile_sums = _mm512_broadcast_f32x8(_mm256_loadu_ps(tile->sum));
        minima01 = _mm512_fmadd_ps(spread(heads, 1, 3), tile_sums, minima01);
        minima23 = _mm512_fmadd_ps(spread(heads, 5, 7), tile_sums, minima23);
        __m512i unpacked01 = unpack_two(row[0] + b, row[1] + b);
        __m512i unpacked23 = unpack_two(row[2] + b, row[3] + b);
        for (int c = 0; c < columns; c++) {
            __m512i values = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)tile->values[c]));
            __m512 scale = _mm512_set1_ps(tile->scale[c]);
            sums01[c] = add_products(sums01[c], unpacked01, values, _mm512_mul_ps(scale01, scale));
            sums23[c] = add_products(sums23[c], unpacked23, values, _mm512_mul_ps(scale23, scale));
        }
    }
    float min[FM_Q4_1_ROWS][FM_Q4_1_COLUMNS];
    _mm512_storeu_ps(min[0], minima01);
    _mm512_storeu_ps(min[2], minima23);
    for (int c = 0; c < columns; c++) {
        out[0][c] = add_lanes(_mm512_castps512_ps256(sums01[c])) + min[0][c];
        out[1][c] = add_lanes(_mm512_extractf32x8_ps(sums01[c], 1)) + min[1][c];
        out[2][c] = add_lanes(_mm512_castps512_ps256(sums23[c])) + min[2][c];
        out[3][c] = add_lanes(_mm512_extractf32x8_ps(sums23[c], 1)) + min[3][c];
    }
}

#define TILE_AVX512(COLUMNS)                                                                                           \
    static AVX512 void avx512_##COLUMNS(const struct fm_q4_1_block *const *rows, size_t blocks,                        \
                                        const struct fm_q4_1_tile *tile, float(*out)[FM_Q4_1_COLUMNS]) {               \
        some_avx512(rows, blocks, tile, out, (COLUMNS));                                                               \
    }
TILE_AVX512(1)
TILE_AVX512(2)
TILE_AVX512(3)
TILE_AVX512(4)
TILE_AVX512(5)
TILE_AVX512(6)
TILE_AVX512(7)
TILE_AVX512(8)

const struct fm_q4_1_kernel fm_q4_1_avx512 = {
    .name = "AVX-512",
    .quantise = quantise,
    .multiply = {avx512_1, avx512_2, avx512_3, avx512_4, avx512_5, avx512_6, avx512_7, avx512_8},
};
