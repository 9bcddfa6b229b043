/* A JSON validator in one pass, without recursion or allocation. */
#include "protocol/json_check.h"
#include "base/utf8.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX   309 /* digits of the largest double before the decimal point */
#define EXPONENT_CUT 1000000000

const char fm_json_too_many[] = "too many values";

struct scan {
    const char *at;
    const char *end;
    const char *fault;
    uint64_t objects; /* bit d: the container at depth d is an object */
    int depth;
    size_t values_left; /* how many more values may begin */
};

static bool fail_scan(struct scan *scan, const char *fault) {
    scan->fault = fault;
    return false;
}

static void skip_space(struct scan *scan) {
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\r' || *scan->at == '\t')) {
        scan->at++;
    }
}

static bool peek_is(const struct scan *scan, char c) {
    return scan->at < scan->end && *scan->at == c;
}

static bool digit_at(const struct scan *scan) {
    return scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9';
}

static void skip_digits(struct scan *scan) {
    while (digit_at(scan)) {
        scan->at++;
    }
}

/* The exponent, after 'e'; 0 when there is none. A huge one is cut: no body has enough digits to balance it. */
static int64_t exponent_of(const char *at, const char *end) {
    int64_t value = 0;
    bool negative = at < end && *at == '-';
    for (; at < end; at++) {
        if (*at >= '0' && *at <= '9' && value < EXPONENT_CUT) {
            value = value * 10 + (*at - '0');
        }
    }
    return negative ? -value : value;
}

/*
 * True unless the number rounds to infinity. Needs no memory, however long the numeral is: the significant digits and
 * the place of the point decide. The limit is an integer of DIGITS_MAX digits, so no digit after the first DIGITS_MAX
 * counts.
 */
static bool in_double_range(const char *start, const char *end) {
    char digits[DIGITS_MAX + 1];
    size_t kept = 0;
    int64_t places = 0; /* the value is 0.DIGITS times ten to this power */
    bool fraction = false;
    const char *at = start + (*start == '-');
    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            fraction = true;
        } else if (kept == 0 && *at == '0') {
            places -= fraction;
        } else {
            places += !fraction;
            if (kept < DIGITS_MAX) {
                digits[kept++] = *at;
            }
        }
    }
    places += exponent_of(at + (at < end), end);
    if (kept == 0 || places != DIGITS_MAX) {
        return kept == 0 || places < DIGITS_MAX;
    }
    memset(digits + kept, '0', DIGITS_MAX - kept);
    digits[DIGITS_MAX] = '\0';
    return isfinite(strtod(digits, NULL));
}

static bool scan_number(struct scan *scan) {
    const char *start = scan->at;
    scan->at += *scan->at == '-';
    if (!digit_at(scan)) {
        return fail_scan(scan, "a number without digits");
    }
    if (*scan->at == '0') {
        scan->at++;
    } else {
        skip_digits(scan);
    }
    if (peek_is(scan, '.')) {
        scan->at++;
        if (!digit_at(scan)) {
            return fail_scan(scan, "a number without digits after its point");
        }
        skip_digits(scan);
    }
    if (peek_is(scan, 'e') || peek_is(scan, 'E')) {
        scan->at++;
        scan->at += peek_is(scan, '+') || peek_is(scan, '-');
        if (!digit_at(scan)) {
            return fail_scan(scan, "a number without digits in its exponent");
        }
        skip_digits(scan);
    }
    return in_double_range(start, scan->at) || fail_scan(scan, "a number beyond a double's range");
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Reads the four digits after "\u". */
static bool scan_hex4(struct scan *scan, unsigned *unit) {
    *unit = 0;
    for (int i = 0; i < 4; i++, scan->at++) {
        int value = scan->at < scan->end ? hex_value(*scan->at) : -1;
        if (value < 0) {
            return fail_scan(scan, "a \\u escape without four hex digits");
        }
        *unit = *unit << 4 | (unsigned)value;
    }
    return true;
}

/* Reads an escape after "\u", or both escapes of a surrogate pair. */
static bool scan_unicode_escape(struct scan *scan, bool key) {
    unsigned unit;
    unsigned low = 0;
    if (!scan_hex4(scan, &unit)) {
        return false;
    }
    if (unit == 0 && key) {
        return fail_scan(scan, "a NUL in a key");
    }
    if (unit < 0xD800 || unit > 0xDFFF) {
        return true;
    }
    bool pair = unit < 0xDC00 && scan->end - scan->at >= 2 && scan->at[0] == '\\' && scan->at[1] == 'u';
    if (pair) {
        scan->at += 2;
        if (!scan_hex4(scan, &low)) {
            return false;
        }
    }
    return (low >= 0xDC00 && low <= 0xDFFF) || fail_scan(scan, "a lone surrogate");
}

static bool scan_escape(struct scan *scan, bool key) {
    char c = scan->at < scan->end ? *scan->at : '\0';
    scan->at++;
    if (c == 'u') {
        return scan_unicode_escape(scan, key);
    }
    if (c != '\0' && strchr("\"\\/bfnrt", c)) {
        return true;
    }
    scan->at--;
    return fail_scan(scan, "an escape that JSON does not have");
}

static bool scan_string(struct scan *scan, bool key) {
    scan->at++;
    for (;;) {
        scan->at += fm_ascii_plain(scan->at, (size_t)(scan->end - scan->at));
        if (scan->at == scan->end) {
            return fail_scan(scan, "a string without an end");
        }
        unsigned char c = (unsigned char)*scan->at;
        if (c == '"') {
            scan->at++;
            return true;
        }
        if (c < 0x20) {
            return fail_scan(scan, "a control character in a string");
        }
        if (c == '\\') {
            scan->at++;
            if (!scan_escape(scan, key)) {
                return false;
            }
            continue;
        }
        int step = fm_utf8_sequence(scan->at, (size_t)(scan->end - scan->at));
        if (step <= 0) {
            return fail_scan(scan, "bytes that are not UTF-8");
        }
        scan->at += step;
    }
}

static bool scan_word(struct scan *scan, const char *word) {
    size_t len = strlen(word);
    if ((size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len) != 0) {
        return fail_scan(scan, "a word that JSON does not have");
    }
    scan->at += len;
    return true;
}

static bool scan_scalar(struct scan *scan) {
    if (scan->at == scan->end) {
        return fail_scan(scan, "a value is missing");
    }
    switch (*scan->at) {
    case '"': return scan_string(scan, false);
    case 't': return scan_word(scan, "true");
    case 'f': return scan_word(scan, "false");
    case 'n': return scan_word(scan, "null");
    default: return *scan->at == '-' || digit_at(scan) ? scan_number(scan) : fail_scan(scan, "a value is missing");
    }
}

static bool inside_object(const struct scan *scan) {
    return scan->objects >> (scan->depth - 1) & 1;
}

/* Reads a key and its colon. */
static bool scan_key(struct scan *scan) {
    skip_space(scan);
    if (!peek_is(scan, '"')) {
        return fail_scan(scan, "a key is missing");
    }
    if (!scan_string(scan, true)) {
        return false;
    }
    skip_space(scan);
    if (!peek_is(scan, ':')) {
        return fail_scan(scan, "a colon is missing");
    }
    scan->at++;
    return true;
}

/*
 * Opens a container at `at`. `*value_next`: whether a value must follow. After an empty container, which is closed
 * here, none does.
 */
static bool open_container(struct scan *scan, bool *value_next) {
    bool object = *scan->at == '{';
    if (scan->depth == FM_JSON_DEPTH_MAX) {
        return fail_scan(scan, "more than 64 levels");
    }
    scan->at++;
    skip_space(scan);
    *value_next = !peek_is(scan, object ? '}' : ']');
    if (!*value_next) {
        scan->at++;
        return true;
    }
    scan->objects &= ~(1ull << scan->depth);
    scan->objects |= (uint64_t)object << scan->depth;
    scan->depth++;
    return !object || scan_key(scan);
}

/* After a value: closes containers until a comma announces the next value, or depth 0 is reached. */
static bool close_value(struct scan *scan) {
    while (scan->depth > 0) {
        skip_space(scan);
        bool object = inside_object(scan);
        if (peek_is(scan, ',')) {
            scan->at++;
            return !object || scan_key(scan);
        }
        if (!peek_is(scan, object ? '}' : ']')) {
            return fail_scan(scan, "a comma or a closing bracket is missing");
        }
        scan->at++;
        scan->depth--;
    }
    return true;
}

static bool scan_document(struct scan *scan) {
    do {
        skip_space(scan);
        bool value_next = false;
        if (scan->values_left == 0) {
            return fail_scan(scan, fm_json_too_many);
        }
        scan->values_left--;
        if (peek_is(scan, '{') || peek_is(scan, '[')) {
            if (!open_container(scan, &value_next)) {
                return false;
            }
        } else if (!scan_scalar(scan)) {
            return false;
        }
        if (!value_next && !close_value(scan)) {
            return false;
        }
    } while (scan->depth > 0);
    skip_space(scan);
    return scan->at == scan->end || fail_scan(scan, "something follows the value");
}

const char *fm_json_check(const char *text, size_t len, size_t values_max, size_t *offset) {
    struct scan scan = {.at = text, .end = text + len, .values_left = values_max};
    scan_document(&scan);
    *offset = (size_t)(scan.at - text);
    return scan.fault;
}
