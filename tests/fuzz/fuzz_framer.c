/*
 * Fuzzes the framer. An input is a size, a list of piece lengths and a stream of bytes. The stream must give the same
 * events in one piece, in pieces of these lengths, byte by byte, and in a second implementation of the rules. Bodies
 * that are framed again must come out unchanged. The parser never uses more memory than the bytes that it has got.
 */
#include "protocol/frame.h"
#include "tests/fuzz/fuzz.h"

#include <ctype.h>
#include <strings.h>

#define PIECES_MAX   15
#define SMALL_MAX    40u /* maximum bytes of a body, small so that larger bodies fit into an input */
/* A longer stream is not fed byte by byte, because one block per byte is too slow. */
#define BYTEWISE_MAX 512u

struct event {
    enum fm_frame_event kind;
    size_t end; /* bytes of the stream after which the event was reported */
    size_t start;
    size_t len; /* position of the body in the transcript's `bodies` */
};

struct transcript {
    struct event events[4096];
    size_t count;
    struct fm_buf bodies;
    bool boundary;
};

static size_t body_max;

static void note(struct transcript *log, enum fm_frame_event kind, size_t end, const char *body, size_t len) {
    HOLDS(log->count < COUNT(log->events));
    log->events[log->count++] = (struct event){.kind = kind, .end = end, .start = log->bodies.len, .len = len};
    fm_buf_append(&log->bodies, body, len);
}

static void transcript_init(struct transcript *log) {
    log->count = 0;
    fm_buf_init(&log->bodies, FM_FRAME_BODY_MAX);
}

static const char *body_of(const struct transcript *log, size_t i) {
    return log->events[i].len ? log->bodies.data + log->events[i].start : "";
}

/* False if the stream is broken. */
static bool feed_piece(struct fm_framer *framer, const char *piece, size_t len, size_t before, struct transcript *log) {
    const char *at = piece;
    for (;;) {
        const char *body = NULL;
        size_t body_len = 0;
        enum fm_frame_event kind = fm_framer_next(framer, &at, &len, &body, &body_len);
        if (kind == FM_FRAME_MORE) {
            HOLDS(len == 0);
            return true;
        }
        HOLDS(kind != FM_FRAME_NO_MEMORY);
        HOLDS((kind == FM_FRAME_BODY) == (body != NULL));
        note(log, kind, before + (size_t)(at - piece), body, body_len);
        if (kind == FM_FRAME_BROKEN) {
            HOLDS(framer->fault && *framer->fault);
            return false;
        }
    }
}

/* Checks that a broken framer stays broken, and reads nothing more. */
static void stays_broken(struct fm_framer *framer) {
    const char *at = "Content-Length: 0\r\n\r\n";
    size_t len = 21;
    const char *body = NULL;
    size_t body_len = 0;
    HOLDS(fm_framer_next(framer, &at, &len, &body, &body_len) == FM_FRAME_BROKEN);
    HOLDS(len == 21 && !body);
}

/*
 * Feeds the stream in pieces whose lengths repeat; each is in a separate block that is freed before the next one comes.
 */
static void feed(const char *stream, size_t len, const uint8_t *steps, size_t step_count, struct transcript *log) {
    struct fm_framer framer;
    fm_framer_init(&framer);
    fm_framer_set_max(&framer, body_max);
    transcript_init(log);
    bool ok = true;
    for (size_t at = 0, i = 0; ok && at < len; i++) {
        size_t step = step_count ? steps[i % step_count] : len;
        step = step < len - at ? step : len - at;
        char *piece = exact_copy(stream + at, step);
        ok = feed_piece(&framer, piece, step, at, log);
        free(piece);
        at += step;
        HOLDS_OR(framer.body.cap <= 256 + 2 * at, "%zu bytes held after %zu", framer.body.cap, at);
    }
    log->boundary = fm_framer_at_boundary(&framer);
    HOLDS(ok || !log->boundary);
    if (!ok) {
        stays_broken(&framer);
    }
    fm_framer_free(&framer);
}

static void expect_same(const struct transcript *a, const struct transcript *b) {
    HOLDS_OR(a->count == b->count, "%zu and %zu events", a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const struct event *x = &a->events[i];
        const struct event *y = &b->events[i];
        HOLDS_OR(x->kind == y->kind && x->len == y->len, "event %zu", i);
        HOLDS_OR(x->end == y->end, "event %zu ends at %zu and %zu", i, x->end, y->end);
    }
    HOLDS(a->bodies.len == b->bodies.len);
    HOLDS(a->bodies.len == 0 || memcmp(a->bodies.data, b->bodies.data, a->bodies.len) == 0);
    HOLDS(a->boundary == b->boundary);
}

/* ---- the rules once more, for a stream that is all there ---- */

/* Returns the Content-Length of a whole header; -1: the header is broken. `*charset`: the header names a charset, which
 * may be other than UTF-8. */
struct header {
    int64_t length;
    bool charset;
};

static bool read_length(const char *value, size_t len, int64_t *length) {
    char digits[20];
    bool seen = *length >= 0;
    if (seen || len == 0 || len >= sizeof digits || (len > 1 && value[0] == '0')) {
        return false;
    }
    memcpy(digits, value, len);
    digits[len] = '\0';
    *length = strtoll(digits, NULL, 10);
    return strspn(digits, "0123456789") == len && *length <= 40000000;
}

static bool read_line(const char *line, size_t len, struct header *header) {
    size_t name = 0;
    while (name < len && line[name] != ':') {
        if (!isalnum((unsigned char)line[name]) && !strchr("!#$%&'*+-.^_`|~", line[name])) {
            return false;
        }
        name++;
    }
    if (name == 0 || name == len) {
        return false;
    }
    size_t from = name + 1;
    while (from < len && (line[from] == ' ' || line[from] == '\t')) {
        from++;
    }
    while (len > from && (line[len - 1] == ' ' || line[len - 1] == '\t')) {
        len--;
    }
    if (name == 14 && strncasecmp(line, "content-length", name) == 0) {
        return read_length(line + from, len - from, &header->length);
    }
    if (name == 12 && strncasecmp(line, "content-type", name) == 0) {
        for (size_t i = from; i + 8 <= len; i++) {
            header->charset = header->charset || strncasecmp(line + i, "charset=", 8) == 0;
        }
    }
    return true;
}

/* Reads a header, or the part of the header that has come. False if this part is already broken. */
static bool read_header(const char *text, size_t len, struct header *header) {
    unsigned lines = 0;
    *header = (struct header){.length = -1};
    for (size_t i = 0; i < len; i++) {
        bool line_end = i > 0 && text[i - 1] == '\r';
        if (i == 8192 || text[i] == '\0' || (text[i] & 0x80) || (text[i] == '\n') != line_end) {
            return false;
        }
    }
    const char *end;
    while ((end = memmem(text, len, "\r\n", 2)) && end > text) {
        if (++lines > 32 || !read_line(text, (size_t)(end - text), header)) {
            return false;
        }
        len -= (size_t)(end - text) + 2;
        text = end + 2;
    }
    return true;
}

/* Returns where the header's empty line ends; 0 if this line has not come yet. */
static size_t header_end(const char *text, size_t len) {
    if (len >= 2 && memcmp(text, "\r\n", 2) == 0) {
        return 2;
    }
    const char *end = memmem(text, len, "\r\n\r\n", 4);
    return end ? (size_t)(end - text) + 4 : 0;
}

/* Checks that `got` agrees with the rules. */
static void expect_rules(const char *stream, size_t len, const struct transcript *got) {
    size_t i = 0;
    for (size_t at = 0; at < len; i++) {
        struct header header;
        size_t head = header_end(stream + at, len - at);
        const struct event *event = i < got->count ? &got->events[i] : NULL;
        bool good = read_header(stream + at, head ? head : len - at, &header);
        if (!good || (head && header.length < 0)) {
            HOLDS_OR(event && event->kind == FM_FRAME_BROKEN && i + 1 == got->count, "a broken header");
            return;
        }
        if (!head) {
            HOLDS_OR(!event && !got->boundary, "half a header");
            return;
        }
        at += head;
        if ((uint64_t)header.length > len - at) {
            HOLDS_OR(!event && !got->boundary, "half a body");
            return;
        }
        HOLDS_OR(event && event->end == at + (size_t)header.length, "a frame");
        if ((uint64_t)header.length > body_max) {
            HOLDS(event->kind == FM_FRAME_TOO_LARGE);
        } else if (event->kind == FM_FRAME_BODY) {
            HOLDS(event->len == (size_t)header.length);
            HOLDS(memcmp(body_of(got, i), stream + at, event->len) == 0);
        } else {
            HOLDS_OR(event->kind == FM_FRAME_CHARSET && header.charset, "kind %d", event->kind);
        }
        at += (size_t)header.length;
    }
    HOLDS(i == got->count && got->boundary);
}

/* ---- what came, framed again ---- */

static void expect_round_trip(const struct transcript *got, struct transcript *again) {
    struct fm_buf frame;
    struct fm_framer framer;
    fm_buf_init(&frame, FM_FRAME_BODY_MAX);
    fm_framer_init(&framer);
    for (size_t i = 0; i < got->count; i++) {
        if (got->events[i].kind != FM_FRAME_BODY) {
            continue;
        }
        const char *wire = NULL;
        size_t wire_len = 0;
        fm_frame_begin(&frame);
        fm_buf_append(&frame, body_of(got, i), got->events[i].len);
        HOLDS(fm_frame_end(&frame, &wire, &wire_len));
        transcript_init(again);
        HOLDS(feed_piece(&framer, wire, wire_len, 0, again));
        HOLDS(again->count == 1 && again->events[0].kind == FM_FRAME_BODY && again->events[0].end == wire_len);
        HOLDS(again->bodies.len == got->events[i].len);
        HOLDS(memcmp(body_of(again, 0), body_of(got, i), again->bodies.len) == 0);
        fm_buf_free(&again->bodies);
    }
    fm_framer_free(&framer);
    fm_buf_free(&frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct transcript whole;
    static struct transcript pieces;
    static const uint8_t one = 1;
    uint8_t steps[PIECES_MAX];
    struct choices from = {data, data + size};
    unsigned choice = choose(&from);
    size_t step_count = choice % (PIECES_MAX + 1);
    body_max = choice / (PIECES_MAX + 1) & 1 ? SMALL_MAX : FM_FRAME_BODY_MAX;
    unsigned sum = 0;
    for (size_t i = 0; i < step_count; i++) {
        steps[i] = (uint8_t)choose(&from); /* 0 is allowed: an empty piece */
        sum += steps[i];
    }
    size_t len = choices_left(&from);
    const char *stream = choose_bytes(&from, &len);
    feed(stream, len, NULL, 0, &whole);
    feed(stream, len, steps, sum ? step_count : 0, &pieces);
    expect_same(&whole, &pieces);
    fm_buf_free(&pieces.bodies);
    if (len <= BYTEWISE_MAX) {
        feed(stream, len, &one, 1, &pieces);
        expect_same(&whole, &pieces);
        fm_buf_free(&pieces.bodies);
    }
    expect_rules(stream, len, &whole);
    expect_round_trip(&whole, &pieces);
    fm_buf_free(&whole.bodies);
    return 0;
}
