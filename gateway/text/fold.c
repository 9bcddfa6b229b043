/* Folding is utf8proc's (https://juliastrings.github.io/utf8proc); pairs of letters are those of Lucene's CJKAnalyzer.
 */
#include "text/fold.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
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

/* Whether the character joins the one before it: a mark, a vowel or end of Korean, a mark of narrow Katakana. */
static bool joins(utf8proc_int32_t c) {
    utf8proc_category_t category = utf8proc_category(c);
    return (category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME) || (c >= 0x1160 && c <= 0x11ff) ||
           c == 0xff9e || c == 0xff9f;
}

/* How many bytes the character at `text` has, with those that join it. */
static size_t whole_character(const char *text, size_t len) {
    size_t bytes;
    (void)gw_letter_at(text, len, &bytes);
    utf8proc_int32_t c;
    utf8proc_ssize_t more;
    while (bytes < len && (unsigned char)text[bytes] >= ASCII_END &&
           (more = utf8proc_iterate((const utf8proc_uint8_t *)text + bytes, (utf8proc_ssize_t)(len - bytes), &c)) > 0 &&
           joins(c)) {
        bytes += (size_t)more;
    }
    return bytes;
}

size_t gw_fold_place(const char *text, size_t len, size_t at) {
    struct fm_buf folded;
    size_t place = 0;
    size_t before = 0;                   /* bytes of the folded text so far */
    fm_buf_init(&folded, len * 18 + 64); /* U+FDFA has 3 bytes, and 33 when it is folded: the most a byte can become */
    while (place < len) {
        size_t bytes = whole_character(text + place, len - place);
        fm_buf_reset(&folded);
        if (!gw_fold(text + place, bytes, &folded) || before + folded.len > at) {
            break;
        }
        before += folded.len;
        place += bytes;
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
        {0x1100, 0x11ff},   /* Hangul, letters */
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

/* Signs at the end of a word that folding would write as letters of the word: U+2122 and U+2120, E2 84 A2 and A0. */
static void drop_signs(char *text, size_t len) {
    for (size_t i = 0; i + 2 < len; i++) {
        bool sign = memcmp(text + i, "\xe2\x84\xa2", 3) == 0 || memcmp(text + i, "\xe2\x84\xa0", 3) == 0;
        if (sign) {
            memset(text + i, ' ', 3);
        }
    }
}

bool gw_fold_for_index(const char *text, size_t len, struct fm_buf *words) {
    struct fm_buf copy;
    struct fm_buf folded;
    fm_buf_init(&copy, len);
    fm_buf_init(&folded, words->max);
    fm_buf_append(&copy, text, len);
    bool done = !copy.failed;
    if (done && len > 0) {
        drop_signs(copy.data, len);
        done = gw_fold(copy.data, len, &folded);
    }
    if (done) {
        append_pairs(folded.data ? folded.data : "", folded.len, words);
    }
    fm_buf_free(&copy);
    fm_buf_free(&folded);
    return done && !words->failed;
}
