/* Folding is utf8proc's (https://juliastrings.github.io/utf8proc); pairs of letters are those of Lucene's CJKAnalyzer.
 */
#include "text/fold.h"

#include <ctype.h>
#include <stdlib.h>
#include <utf8proc.h>

#define ASCII_END 0x80

/* ---- folding ---- */

static bool is_ascii(const char *text, size_t len) {
    size_t i = 0;
    while (i < len && (unsigned char)text[i] < ASCII_END) {
        i++;
    }
    return i == len;
}

static bool fold_ascii(const char *text, size_t len, struct fm_buf *folded) {
    size_t at = folded->len;
    fm_buf_append(folded, text, len);
    for (; !folded->failed && at < folded->len; at++) {
        folded->data[at] = (char)tolower((unsigned char)folded->data[at]);
    }
    return !folded->failed;
}

/* Leaves U+0300 to U+036F out, which are CC 80 to CD AF in UTF-8. Returns the new length. */
static size_t drop_accents(utf8proc_uint8_t *text, size_t len) {
    size_t kept = 0;
    for (size_t i = 0; i < len; i++) {
        if (i + 1 < len && (text[i] == 0xcc || (text[i] == 0xcd && text[i + 1] <= 0xaf))) {
            i++;
        } else {
            text[kept++] = text[i];
        }
    }
    return kept;
}

bool gw_fold(const char *text, size_t len, struct fm_buf *folded) {
    utf8proc_uint8_t *apart = NULL;
    utf8proc_uint8_t *whole = NULL;
    if (is_ascii(text, len)) {
        return fold_ascii(text, len, folded);
    }
    utf8proc_ssize_t size = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)len, &apart,
                                         UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE);
    if (size >= 0) {
        size = (utf8proc_ssize_t)drop_accents(apart, (size_t)size);
        size = utf8proc_map(apart, size, &whole, UTF8PROC_COMPOSE);
    }
    if (size >= 0) {
        fm_buf_append(folded, (const char *)whole, (size_t)size);
    } else if (size == UTF8PROC_ERROR_INVALIDUTF8) {
        fm_buf_append(folded, text, len);
    }
    free(apart);
    free(whole);
    return !folded->failed && (size >= 0 || size == UTF8PROC_ERROR_INVALIDUTF8);
}

size_t gw_fold_place(const char *text, size_t len, size_t at) {
    struct fm_buf folded;
    size_t place = 0;
    size_t bytes = 0;
    fm_buf_init(&folded, len * 18 + 64); /* the most that NFKC makes of a character of 3 bytes: U+FDFA has 33 */
    for (; place < len; place += bytes) {
        (void)gw_letter_at(text + place, len - place, &bytes);
        if (!gw_fold(text + place, bytes, &folded) || folded.len > at) {
            break;
        }
    }
    fm_buf_free(&folded);
    return place;
}

/* ---- letters ---- */

/* By scripts: the blocks of Unicode that hold their letters. In order. */
static bool is_unspaced(utf8proc_int32_t c) {
    static const struct {
        utf8proc_int32_t first, last;
    } blocks[] = {
        {0x0e00, 0x0eff},   /* Thai, Lao */
        {0x1000, 0x109f},   /* Myanmar */
        {0x1780, 0x17ff},   /* Khmer */
        {0x3005, 0x3007},   /* ideographic iteration mark, closing mark, zero */
        {0x3041, 0x30fa},   /* Hiragana, Katakana */
        {0x30fc, 0x30ff},   /* and their marks, without the middle dot */
        {0x3105, 0x318e},   /* Bopomofo, Hangul */
        {0x31f0, 0x31ff},   /* Katakana */
        {0x3400, 0x4dbf},   /* Han */
        {0x4e00, 0x9fff},   /* Han */
        {0xac00, 0xd7a3},   /* Hangul */
        {0xf900, 0xfaff},   /* Han */
        {0x20000, 0x3ffff}, /* Han */
    };
    size_t i = 0;
    while (i < sizeof blocks / sizeof *blocks && c > blocks[i].last) {
        i++;
    }
    return i < sizeof blocks / sizeof *blocks && c >= blocks[i].first;
}

static bool is_of_word(utf8proc_int32_t c) {
    utf8proc_category_t category = utf8proc_category(c);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO) || category == UTF8PROC_CATEGORY_CO;
}

enum gw_letter gw_letter_at(const char *text, size_t len, size_t *bytes) {
    utf8proc_int32_t c;
    utf8proc_ssize_t size = utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)len, &c);
    *bytes = size > 0 ? (size_t)size : 1;
    if (size <= 0 || !is_of_word(c)) {
        return GW_LETTER_NONE;
    }
    return is_unspaced(c) ? GW_LETTER_UNSPACED : GW_LETTER_WORD;
}

/* ---- an index of words ---- */

static void append_pairs(const char *text, size_t len, struct fm_buf *words) {
    enum gw_letter before = GW_LETTER_NONE;
    size_t bytes;
    for (size_t at = 0; at < len; at += bytes) {
        enum gw_letter kind = gw_letter_at(text + at, len - at, &bytes);
        if (kind != before && (kind == GW_LETTER_UNSPACED || before == GW_LETTER_UNSPACED)) {
            fm_buf_append_char(words, ' ');
        }
        fm_buf_append(words, text + at, bytes);
        size_t next;
        if (kind == GW_LETTER_UNSPACED && at + bytes < len &&
            gw_letter_at(text + at + bytes, len - at - bytes, &next) == GW_LETTER_UNSPACED) {
            fm_buf_append(words, text + at + bytes, next);
            fm_buf_append_char(words, ' ');
        }
        before = kind;
    }
}

bool gw_fold_for_index(const char *text, size_t len, struct fm_buf *words) {
    struct fm_buf folded;
    fm_buf_init(&folded, words->max);
    bool done = gw_fold(text, len, &folded);
    if (done) {
        append_pairs(folded.data ? folded.data : "", folded.len, words);
    }
    fm_buf_free(&folded);
    return done && !words->failed;
}
