/* UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* RFC 3629 section 4: the second byte's range depends on the first. */
static int second_byte_valid(uint8_t first, uint8_t second) {
    uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    return second >= low && second <= high;
}

int fm_utf8_sequence(const char *text, size_t len) {
    const uint8_t *bytes = (const uint8_t *)text;
    uint8_t first = bytes[0];
    if (first < 0x80) {
        return 1;
    }
    if (first < 0xC2 || first > 0xF4) {
        return -1;
    }
    size_t need = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    for (size_t i = 1; i < need; i++) {
        if (i == len) {
            return 0;
        }
        if (i == 1 ? !second_byte_valid(first, bytes[1]) : (bytes[i] & 0xC0) != 0x80) {
            return -1;
        }
    }
    return (int)need;
}

bool fm_utf8_valid(const char *text, size_t len) {
    for (size_t at = 0; at < len;) {
        int step = fm_utf8_sequence(text + at, len - at);
        if (step <= 0) {
            return false;
        }
        at += (size_t)step;
    }
    return true;
}

size_t fm_utf8_mark(const char *text, size_t len) {
    static const char mark[] = "\xef\xbb\xbf";
    return len >= sizeof mark - 1 && memcmp(text, mark, sizeof mark - 1) == 0 ? sizeof mark - 1 : 0;
}

size_t fm_utf8_whole_prefix(const char *text, size_t len) {
    size_t back = len < 3 ? len : 3;
    for (size_t i = 1; i <= back; i++) {
        uint8_t byte = (uint8_t)text[len - i];
        if (byte >= 0xC0) {
            return fm_utf8_sequence(text + len - i, i) == 0 ? len - i : len;
        }
        if (byte < 0x80) {
            break;
        }
    }
    return len;
}

static bool starts_character(char byte) {
    return ((unsigned char)byte & 0xC0) != 0x80;
}

size_t fm_utf8_prefix(const char *text, size_t len, size_t max) {
    size_t characters = 0;
    for (size_t i = 0; i < len; i++) {
        characters += starts_character(text[i]);
        if (characters > max) {
            return i;
        }
    }
    return len;
}

size_t fm_utf8_characters(const char *text, size_t len) {
    size_t characters = 0;
    for (size_t i = 0; i < len; i++) {
        characters += starts_character(text[i]);
    }
    return characters;
}

int fm_utf8_shown(const char *text, size_t max) {
    size_t len = strnlen(text, max + 1);
    return (int)(len > max ? fm_utf8_whole_prefix(text, max) : len);
}

/* Sets bit 7 of each byte that is 0. Above the lowest such byte, other bytes may be marked too. */
static uint64_t zero_bytes(uint64_t bytes) {
    return (bytes - 0x0101010101010101u) & ~bytes & 0x8080808080808080u;
}

static bool all_plain(const char *text) {
    const uint64_t each = 0x0101010101010101u;
    uint64_t bytes;
    memcpy(&bytes, text, sizeof bytes);
    uint64_t control = (bytes - 0x20 * each) & ~bytes & 0x80 * each; /* some byte is below 0x20 */
    uint64_t special = zero_bytes(bytes ^ '"' * each) | zero_bytes(bytes ^ '\\' * each);
    return ((bytes & 0x80 * each) | control | special) == 0;
}

size_t fm_ascii_plain(const char *text, size_t len) {
    size_t at = 0;
    while (len - at >= 8 && all_plain(text + at)) {
        at += 8;
    }
    while (at < len && (unsigned char)text[at] >= 0x20 && (unsigned char)text[at] < 0x80 && text[at] != '"' &&
           text[at] != '\\') {
        at++;
    }
    return at;
}
