/*
 * The last stage: keys of well-known formats. Each format is compared with the text, byte by byte, from every place
 * where it may begin. As soon as no format can match from the first held byte any more, that byte is passed on.
 */
#include "security/filter_internal.h"

#include <ctype.h>
#include <pthread.h>
#include <string.h>

/* ---- a format ---- */

static const struct gw_key_part *part_of(const struct gw_key_format *format, size_t part) {
    const struct gw_key_part *at = &format->parts[part];
    return part < GW_PARTS_MAX && (at->literal || at->classes) ? at : NULL;
}

static bool is_last(const struct gw_key_format *format, size_t part) {
    return !part_of(format, part + 1);
}

static size_t last_of(const struct gw_key_format *format) {
    size_t last = 0;
    while (!is_last(format, last)) {
        last++;
    }
    return last;
}

static bool equal(unsigned char a, unsigned char b, bool any_case) {
    return any_case ? tolower(a) == tolower(b) : a == b;
}

static bool may_begin(const struct gw_key_format *format, unsigned char c) {
    const struct gw_key_part *first = part_of(format, 0);
    return first->literal ? equal(c, (unsigned char)first->literal[0], format->any_case)
                          : gw_classes_of(c) & first->classes;
}

/*
 * Whether a key may begin after the byte `before`. If `before` is a letter, a digit or a byte that the key's last run
 * may have, no key begins here.
 */
static bool may_follow(const struct gw_key_format *format, unsigned char before) {
    return format->anywhere || !(gw_classes_of(before) & (format->parts[last_of(format)].classes | GW_ALNUM));
}

static struct gw_key_tables tables;

static void fill_tables(void) {
    for (unsigned c = 0; c < 256; c++) {
        tables.classes[c] = gw_classes_of((unsigned char)c);
        for (size_t i = 0; i < gw_key_format_count; i++) {
            uint64_t bit = UINT64_C(1) << i;
            tables.may_begin[c] |= may_begin(&gw_key_formats[i], (unsigned char)c) ? bit : 0;
            tables.may_follow[c] |= may_follow(&gw_key_formats[i], (unsigned char)c) ? bit : 0;
        }
    }
}

const struct gw_key_tables *gw_filter_keys_tables(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_tables);
    return &tables;
}

/* Whether the first bytes of a run have both digits and letters. */
static bool is_mixed(const unsigned char *run, size_t len) {
    bool digit = false;
    bool letter = false;
    for (size_t i = 0; i < len && i < GW_KEY_LOOK; i++) {
        digit = digit || isdigit(run[i]);
        letter = letter || isalpha(run[i]);
    }
    return digit && letter;
}

enum verdict { GOES_ON, IS_NONE, IS_KEY };

/* Judges the current run, which ended before `c` (0 at the end of the text). */
static enum verdict end_run(const struct gw_filter *filter, size_t index, unsigned char c) {
    const struct gw_key_format *format = &gw_key_formats[index];
    const struct gw_key_part *part = part_of(format, filter->t.part[index]);
    size_t run = filter->t.run[index];
    if (run < part->min || (part->max && run > part->max)) {
        return IS_NONE;
    }
    if (!is_last(format, filter->t.part[index])) {
        return GOES_ON;
    }
    bool boundary = !format->exact || !(filter->tables->classes[c] & GW_WORD);
    bool mixed = !format->mixed || is_mixed(filter->t.held + filter->t.begins[index], run);
    return boundary && mixed ? IS_KEY : IS_NONE;
}

/* Adds a byte to the run. If the run's length already decides, the verdict comes before the run's end. */
static enum verdict go_on(struct gw_filter *filter, size_t index) {
    const struct gw_key_format *format = &gw_key_formats[index];
    const struct gw_key_part *part = part_of(format, filter->t.part[index]);
    size_t run = ++filter->t.run[index];
    if (part->max && run > part->max) {
        return IS_NONE;
    }
    if (!is_last(format, filter->t.part[index]) || format->exact || run < part->min) {
        return GOES_ON;
    }
    if (!format->mixed) {
        return IS_KEY;
    }
    if (is_mixed(filter->t.held + filter->t.begins[index], run)) {
        return IS_KEY;
    }
    return run < GW_KEY_LOOK ? GOES_ON : IS_NONE;
}

static void next_part(struct gw_filter *filter, size_t index, size_t at) {
    filter->t.part[index]++;
    filter->t.run[index] = 0;
    filter->t.begins[index] = (uint16_t)at;
}

/* Compares `held[at]` with the next byte of a literal. */
static enum verdict match_literal(struct gw_filter *filter, size_t index, size_t at) {
    const struct gw_key_format *format = &gw_key_formats[index];
    const char *literal = part_of(format, filter->t.part[index])->literal;
    if (!equal(filter->t.held[at], (unsigned char)literal[filter->t.run[index]], format->any_case)) {
        return IS_NONE;
    }
    if (!literal[++filter->t.run[index]]) {
        if (is_last(format, filter->t.part[index])) {
            return IS_KEY;
        }
        next_part(filter, index, at + 1);
    }
    return GOES_ON;
}

/*
 * Compares a format with `held[at]`. On IS_KEY, the first `*len` held bytes are the key, including its parts that are
 * no secret.
 */
static enum verdict step(struct gw_filter *filter, size_t index, size_t at, size_t *len) {
    const struct gw_key_part *part = part_of(&gw_key_formats[index], filter->t.part[index]);
    *len = at + 1;
    if (part->literal) {
        return match_literal(filter, index, at);
    }
    if (filter->tables->classes[filter->t.held[at]] & part->classes) {
        return go_on(filter, index);
    }
    enum verdict verdict = end_run(filter, index, filter->t.held[at]);
    if (verdict != GOES_ON) {
        *len = at; /* the byte that ends a run is not the key's */
        return verdict;
    }
    next_part(filter, index, at);
    return match_literal(filter, index, at);
}

/* ---- the held bytes ---- */

static void give_out(struct gw_filter *filter, const void *text, size_t len) {
    fm_buf_append(filter->out, text, len);
}

static void shift(struct gw_filter *filter, size_t len) {
    memmove(filter->t.held, filter->t.held + len, filter->t.count - len);
    filter->t.count -= len;
    filter->t.at = 0;
    filter->t.alive = 0;
}

/*
 * Redacts the first `len` bytes, which are a key. The parts before its secret are matched again, to find where the
 * secret begins.
 */
static void redact(struct gw_filter *filter, size_t index, size_t len) {
    const struct gw_key_format *format = &gw_key_formats[index];
    size_t last = filter->t.part[index];
    size_t from = 0;
    size_t to = len;
    for (size_t part = 0; part < format->kept; part++) {
        const struct gw_key_part *at = part_of(format, part);
        size_t run = 0;
        while (!at->literal && run < at->max && filter->tables->classes[filter->t.held[from + run]] & at->classes) {
            run++;
        }
        from += at->literal ? strlen(at->literal) : run;
    }
    for (size_t part = 0; part < format->kept_end; part++) {
        to -= strlen(part_of(format, last - part)->literal);
    }
    give_out(filter, filter->t.held, from);
    give_out(filter, GW_REDACTED, sizeof GW_REDACTED - 1);
    give_out(filter, filter->t.held + to, len - to);
    filter->t.before = len > to ? filter->t.held[len - 1] : ']';
    filter->t.dropping = part_of(format, last)->literal || format->exact ? NULL : format;
    shift(filter, len);
}

/* The first format of a set. */
static size_t first_of(uint64_t formats) {
    return (size_t)__builtin_ctzll(formats);
}

static void begin_formats(struct gw_filter *filter) {
    filter->t.alive = filter->tables->may_begin[filter->t.held[0]] & filter->tables->may_follow[filter->t.before];
    for (uint64_t left = filter->t.alive; left; left &= left - 1) {
        size_t i = first_of(left);
        filter->t.part[i] = 0;
        filter->t.run[i] = filter->t.begins[i] = 0;
    }
}

/* Compares all formats with one more byte. True: one has matched, and its key is redacted. */
static bool follow_formats(struct gw_filter *filter) {
    size_t at = filter->t.at++;
    for (uint64_t left = filter->t.alive; left; left &= left - 1) {
        size_t i = first_of(left);
        size_t len;
        enum verdict verdict = step(filter, i, at, &len);
        if (verdict == IS_KEY) {
            redact(filter, i, len);
            return true;
        }
        if (verdict == IS_NONE) {
            filter->t.alive &= ~(UINT64_C(1) << i);
        }
    }
    return false;
}

/* No key begins at the first byte: passes it on. */
static void let_go(struct gw_filter *filter) {
    give_out(filter, filter->t.held, 1);
    filter->t.before = filter->t.held[0];
    shift(filter, 1);
}

static void match_held(struct gw_filter *filter) {
    while (filter->t.at < filter->t.count) {
        if (filter->t.dropping) {
            const struct gw_key_format *format = filter->t.dropping;
            if (filter->tables->classes[filter->t.held[0]] & format->parts[last_of(format)].classes) {
                shift(filter, 1);
                continue;
            }
            filter->t.dropping = NULL;
        }
        if (filter->t.at == 0) {
            begin_formats(filter);
        }
        if (filter->t.alive && follow_formats(filter)) {
            continue;
        }
        if (!filter->t.alive || filter->t.count == GW_KEY_HELD_MAX) {
            let_go(filter);
        }
    }
}

void gw_filter_keys_byte(struct gw_filter *filter, unsigned char c) {
    filter->t.held[filter->t.count++] = c;
    match_held(filter);
}

/* Ends every run, because the text has ended. True: that made a key complete, and the key is redacted. */
static bool end_runs(struct gw_filter *filter) {
    for (uint64_t left = filter->t.alive; left; left &= left - 1) {
        size_t i = first_of(left);
        if (!part_of(&gw_key_formats[i], filter->t.part[i])->literal && end_run(filter, i, 0) == IS_KEY) {
            redact(filter, i, filter->t.count);
            return true;
        }
    }
    return false;
}

void gw_filter_keys_end(struct gw_filter *filter) {
    while (filter->t.count) {
        if (!end_runs(filter)) {
            let_go(filter);
            match_held(filter);
        }
    }
}
