/*
 * Fuzzes the secrets filter. The output is the same whether the text comes whole, byte by byte or in pieces. The output
 * contains no secret that the filter knows. It is UTF-8 if the text is UTF-8, and each piece of the output is UTF-8 if
 * each piece of the text is. It only has bytes of the text, in their order, and markers.
 *
 * The first byte of an input chooses the pieces.
 */
#include "security/filter.h"
#include "tests/fuzz/fuzz.h"

#define OUT_MAX (64u << 20)

static const char *const secrets[] = {"topsecret", "aaaaaaaab", "a b=\"c\", d", "gr\xc3\xbc\xc3\x9f an dich"};

static struct gw_known *known_secrets(void) {
    static struct gw_known *known; /* one for all inputs; it is still reachable at the end, so it is not a leak */
    if (!known) {
        known = gw_known_new();
        HOLDS(known);
        for (size_t i = 0; i < COUNT(secrets); i++) {
            HOLDS(gw_known_add(known, secrets[i], strlen(secrets[i])));
        }
    }
    return known;
}

/* Filters pieces of at most `most` bytes. If the text is UTF-8, the pieces have whole characters. */
static void filter_pieces(const char *text, size_t len, unsigned most, bool utf8, struct fm_buf *out) {
    struct gw_filter *filter = gw_filter_new(known_secrets());
    HOLDS(filter);
    unsigned step = most;
    for (size_t at = 0; at < len;) {
        step = step * 5 % 251 + 1;
        size_t piece = step % most + 1;
        piece = piece < len - at ? piece : len - at;
        while (utf8 && at + piece < len && ((unsigned char)text[at + piece] & 0xC0) == 0x80) {
            piece++;
        }
        char *copy = exact_copy(text + at, piece);
        size_t before = out->len;
        HOLDS(gw_filter_feed(filter, copy, piece, out));
        HOLDS(!utf8 || out->len == before || is_utf8(out->data + before, out->len - before));
        free(copy);
        at += piece;
    }
    HOLDS(gw_filter_end(filter, out));
    gw_filter_free(filter);
}

/* Checks that the output between markers is in the text, in this order. */
static void expect_parts_of(const struct fm_buf *out, const char *text, size_t len) {
    const char *marker = GW_REDACTED;
    size_t marker_len = strlen(marker);
    size_t at = 0;
    while (at < out->len) {
        if (out->len - at >= marker_len && memcmp(out->data + at, marker, marker_len) == 0) {
            at += marker_len;
            continue;
        }
        const char *next = memmem(out->data + at, out->len - at, marker, marker_len);
        size_t part = next ? (size_t)(next - out->data) - at : out->len - at;
        const char *found = memmem(text, len, out->data + at, part);
        HOLDS_OR(found, "%.*s", (int)part, out->data + at);
        len -= (size_t)(found - text) + part;
        text = found + part;
        at += part;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fm_buf whole;
    if (size == 0) {
        return 0;
    }
    const char *text = (const char *)data + 1;
    size_t len = size - 1;
    bool utf8 = is_utf8(text, len);
    fm_buf_init(&whole, OUT_MAX);
    HOLDS(gw_filter_text(known_secrets(), text, len, &whole));
    HOLDS(!utf8 || is_utf8(whole.data, whole.len));
    for (size_t i = 0; i < COUNT(secrets); i++) {
        HOLDS(!whole.len || !memmem(whole.data, whole.len, secrets[i], strlen(secrets[i])));
    }
    if (!memmem(text, len, GW_REDACTED, strlen(GW_REDACTED))) {
        expect_parts_of(&whole, text, len);
    }
    const unsigned most[] = {1, 1 + data[0] % 7u, 1 + data[0]};
    for (size_t i = 0; i < COUNT(most); i++) {
        struct fm_buf pieces;
        fm_buf_init(&pieces, OUT_MAX);
        filter_pieces(text, len, most[i], utf8, &pieces);
        HOLDS_OR(pieces.len == whole.len && (!whole.len || memcmp(pieces.data, whole.data, whole.len) == 0),
                 "%.*s\nis not %.*s", (int)pieces.len, pieces.data, (int)whole.len, whole.data);
        fm_buf_free(&pieces);
    }
    fm_buf_free(&whole);
    return 0;
}
