/* Patterns of ECMA-262 in the syntax of Rust's regex-syntax, and the formats that a regex can check. */
#include "base/utf8.h"
#include "engine/guide/schema_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GROUPS_MAX 32
#define CODE_MAX   0x10FFFF

/* White space and line ends of ECMA-262, 12.2 and 12.3, for use inside brackets. */
#define SPACES                                                                                                         \
    "\\x{9}\\x{A}\\x{C}\\x{D} "                                                                                        \
    "\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}\\x{FEFF}"

/*
 * Characters that the guide's strings can't have, because they would be written as \uXXXX; for use inside brackets. No
 * set may contain them. If a set has every character below U+0020, or all of these except the line feed, derivre 0.3
 * lets the set match all short escapes, also \" and \\. The vertical tab is left out of SPACES for the same reason.
 */
#define UNWRITABLE "\\x{0}-\\x{7}\\x{B}\\x{E}-\\x{1F}\\x{7F}"

#define UNWRITABLE_REASON "it has a control character that is written as \\uXXXX"

static const struct {
    uint32_t first;
    uint32_t last;
} unwritable[] = {{0, 7}, {0xB, 0xB}, {0xE, 0x1F}, {0x7F, 0x7F}};

struct group {
    int64_t repeats;  /* the largest product of counts inside the group */
    bool at_start;    /* the group is at the start of an alternative at the pattern's start, so `^` is allowed */
    bool anchored;    /* the group contains `^` or `$`, so it must not be repeated */
    bool anchors_end; /* the group contains `$`, so nothing may follow it */
};

struct scan {
    const char *at;
    const char *end;
    struct fm_buf *out;
    const char *reason;
    enum fm_pattern result;
    struct group groups[GROUPS_MAX + 1]; /* [0] is the pattern itself */
    int depth;
    bool alternative_start; /* nothing has come yet in this alternative */
    bool atom;              /* the last thing can be repeated */
    bool atom_anchored;     /* the last thing is a group with an anchor */
    int64_t atom_repeats;
};

static void stop(struct scan *scan, enum fm_pattern result, const char *reason) {
    if (scan->result == FM_PATTERN_OK) {
        scan->result = result;
        scan->reason = reason;
    }
}

static bool next_is(const struct scan *scan, const char *text) {
    size_t len = strlen(text);
    return (size_t)(scan->end - scan->at) >= len && memcmp(scan->at, text, len) == 0;
}

static bool take_literal(struct scan *scan, const char *text) {
    bool found = next_is(scan, text);
    scan->at += found ? strlen(text) : 0;
    return found;
}

/* ---- characters ---- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/*
 * Letters, digits and non-ASCII characters are written as they are; others are escaped so that they have no special
 * meaning.
 */
static void put_char(struct scan *scan, uint32_t code) {
    char text[16];
    int len;
    if (code < 0x80 && (is_letter((char)code) || is_digit((char)code) || code == ' ' || code == '<' || code == '>')) {
        len = snprintf(text, sizeof text, "%c", (int)code);
    } else if (code > 0x20 && code < 0x7F) {
        len = snprintf(text, sizeof text, "\\%c", (int)code);
    } else {
        len = snprintf(text, sizeof text, "\\x{%" PRIX32 "}", code);
    }
    fm_buf_append(scan->out, text, (size_t)len);
}

static uint32_t take_plain(struct scan *scan) {
    int len = fm_utf8_sequence(scan->at, (size_t)(scan->end - scan->at));
    unsigned char lead = (unsigned char)*scan->at++;
    if (len <= 1) {
        return len == 1 ? lead : 0xFFFD;
    }
    uint32_t code = lead & (0x7Fu >> len);
    for (int i = 1; i < len; i++) {
        code = code << 6 | ((unsigned char)*scan->at++ & 0x3Fu);
    }
    return code;
}

/* Reads hexadecimal digits: exactly `count`, or up to a brace if `count` is 0. */
static uint32_t take_hex(struct scan *scan, int count) {
    uint32_t code = 0;
    int digits = 0;
    for (; scan->at < scan->end && (count == 0 || digits < count); digits++, scan->at++) {
        char c = *scan->at;
        bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (!letter && !is_digit(c)) {
            break;
        }
        code = code << 4 | (uint32_t)(letter ? (c | 0x20) - 'a' + 10 : c - '0');
        if (code > CODE_MAX) {
            break;
        }
    }
    if (code > CODE_MAX || digits == 0 || (count && digits < count)) {
        stop(scan, FM_PATTERN_WRONG, "it has an escape without its hexadecimal digits");
        return 0;
    }
    return code;
}

/* Reads the digits of an escape, after its "\u". */
static uint32_t take_unicode(struct scan *scan) {
    uint32_t code;
    if (take_literal(scan, "{")) {
        code = take_hex(scan, 0);
        if (!take_literal(scan, "}")) {
            stop(scan, FM_PATTERN_WRONG, "it has an escape \\u{ without its end");
        }
    } else {
        code = take_hex(scan, 4);
        if (code >= 0xD800 && code < 0xDC00 && next_is(scan, "\\u") && !next_is(scan, "\\u{")) {
            scan->at += 2;
            uint32_t low = take_hex(scan, 4);
            code = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : code;
        }
    }
    if (code >= 0xD800 && code < 0xE000) {
        stop(scan, FM_PATTERN_UNABLE, "it has half of a surrogate pair");
    }
    return code;
}

/* Reads an escape that stands for one character. `c` is the character after the backslash, which was taken already. */
static uint32_t take_escaped(struct scan *scan, char c) {
    static const char from[] = "tnvfr";
    static const char to[] = "\t\n\v\f\r";
    const char *found = c ? strchr(from, c) : NULL;
    if (found) {
        return (uint32_t)to[found - from];
    }
    if (c == 'x') {
        return take_hex(scan, 2);
    }
    if (c == 'u') {
        return take_unicode(scan);
    }
    if (c == 'c' && scan->at < scan->end && is_letter(*scan->at)) {
        return (uint32_t)*scan->at++ & 0x1F;
    }
    if (c == '0' && (scan->at == scan->end || !is_digit(*scan->at))) {
        return 0;
    }
    if (is_letter(c) || is_digit(c) || (unsigned char)c >= 0x80 || (unsigned char)c < 0x20) {
        stop(scan, FM_PATTERN_WRONG, "it has an unknown escape");
    }
    return (unsigned char)c;
}

/* The set of characters that a letter names, to be written inside brackets; NULL: there is no such set. */
static const char *set_of(char c) {
    switch (c) {
    case 'd': return "0-9";
    case 'D': return "[^0-9" UNWRITABLE "]";
    case 'w': return "0-9A-Za-z_";
    case 'W': return "[^0-9A-Za-z_" UNWRITABLE "]";
    case 's': return SPACES;
    case 'S': return "[^" SPACES UNWRITABLE "]";
    default: return NULL;
    }
}

/*
 * Translates the text after "\p" or "\P": a general category in its short form (Unicode's UAX 44, 5.7.1), which Rust
 * has too.
 */
static void take_category(struct scan *scan, char kind) {
    static const char *const names[] = {"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",
                                        "Nd", "Nl", "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
                                        "S",  "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char text[8];
        snprintf(text, sizeof text, "{%s}", names[i]);
        if (take_literal(scan, text)) {
            fm_buf_append_str(scan->out, kind == 'P' ? "[^\\p" : "\\p");
            fm_buf_append_str(scan->out, text);
            fm_buf_append_str(scan->out, kind == 'P' ? UNWRITABLE "]" : "");
            return;
        }
    }
    stop(scan, FM_PATTERN_UNABLE, "it has a property of characters that is not a general category such as \\p{L}");
}

/* ---- brackets ---- */

static void put_piece(struct scan *scan, uint32_t low, uint32_t high) {
    put_char(scan, low);
    if (low < high) {
        fm_buf_append_char(scan->out, '-');
        put_char(scan, high);
    }
}

/* Writes a range without the characters that can't be written. */
static void put_range(struct scan *scan, uint32_t low, uint32_t high) {
    for (size_t i = 0; i < sizeof unwritable / sizeof unwritable[0] && low <= high; i++) {
        if (high < unwritable[i].first) {
            break;
        }
        if (low < unwritable[i].first) {
            put_piece(scan, low, unwritable[i].first - 1);
        }
        low = low <= unwritable[i].last ? unwritable[i].last + 1 : low;
    }
    if (low <= high) {
        put_piece(scan, low, high);
    }
}

/* Reads one character or set. True: `*code` is a character, which is not written yet. */
static bool take_member(struct scan *scan, uint32_t *code) {
    if (*scan->at != '\\') {
        *code = take_plain(scan);
        return true;
    }
    char c = '\0';
    if (++scan->at < scan->end) {
        c = *scan->at++;
    }
    const char *set = set_of(c);
    if (set) {
        fm_buf_append_str(scan->out, set);
        return false;
    }
    if (c == 'p' || c == 'P') {
        take_category(scan, c);
        return false;
    }
    *code = c == 'b' ? '\b' : take_escaped(scan, c);
    return true;
}

/* Translates one character, set or range of a class. */
static void take_range(struct scan *scan) {
    uint32_t low;
    uint32_t high;
    bool is_char = take_member(scan, &low);
    bool range = next_is(scan, "-") && scan->end - scan->at > 1 && scan->at[1] != ']';
    if (range && !is_char) {
        stop(scan, FM_PATTERN_WRONG, "it has a range that begins with a set");
    } else if (range) {
        scan->at++;
        if (!take_member(scan, &high) || high < low) {
            stop(scan, FM_PATTERN_WRONG, "it has a range that ends before it begins");
            return;
        }
        put_range(scan, low, high);
    } else if (is_char) {
        put_range(scan, low, low);
    }
}

/* Reads a class of characters, after its "[". */
static void take_class(struct scan *scan) {
    bool negated = take_literal(scan, "^");
    fm_buf_append_str(scan->out, negated ? "[^" : "[");
    size_t start = scan->out->len;
    if (next_is(scan, "]")) {
        stop(scan, FM_PATTERN_UNABLE, "it has empty brackets");
    }
    while (scan->at < scan->end && *scan->at != ']' && scan->result == FM_PATTERN_OK) {
        take_range(scan);
    }
    if (!take_literal(scan, "]")) {
        stop(scan, FM_PATTERN_WRONG, "it has brackets without their end");
    }
    if (!negated && scan->out->len == start) {
        stop(scan, FM_PATTERN_UNABLE, UNWRITABLE_REASON);
    }
    fm_buf_append_str(scan->out, negated ? UNWRITABLE "]" : "]");
}

/* ---- what can be repeated ---- */

static bool is_unwritable(uint32_t code) {
    bool found = false;
    for (size_t i = 0; i < sizeof unwritable / sizeof unwritable[0]; i++) {
        found = found || (code >= unwritable[i].first && code <= unwritable[i].last);
    }
    return found;
}

/*
 * Writes a character outside brackets. If the character can't be written, the pattern is refused: leaving it out would
 * change the meaning.
 */
static void put_literal(struct scan *scan, uint32_t code) {
    if (is_unwritable(code)) {
        stop(scan, FM_PATTERN_UNABLE, UNWRITABLE_REASON);
    }
    put_char(scan, code);
}

/* Notes that the last thing can be repeated. */
static void atom(struct scan *scan, int64_t repeats, bool anchored) {
    scan->atom = true;
    scan->atom_anchored = anchored;
    scan->atom_repeats = repeats;
    scan->alternative_start = false;
}

static void take_escape(struct scan *scan) {
    char c = '\0';
    if (scan->at < scan->end) {
        c = *scan->at++;
    }
    const char *set = set_of(c);
    if (set) {
        fm_buf_append_char(scan->out, '[');
        fm_buf_append_str(scan->out, set);
        fm_buf_append_char(scan->out, ']');
    } else if (c == 'p' || c == 'P') {
        take_category(scan, c);
    } else if (c == 'b' || c == 'B') {
        stop(scan, FM_PATTERN_UNABLE, "it has a word boundary");
    } else if (c == 'k' || (c >= '1' && c <= '9')) {
        stop(scan, FM_PATTERN_UNABLE, "it has a back-reference");
    } else {
        put_literal(scan, take_escaped(scan, c));
    }
    atom(scan, 1, false);
}

/* Opens a group, after "(". Names of groups are left out: "stop" would mean something to llguidance. */
static void open_group(struct scan *scan) {
    if (scan->depth == GROUPS_MAX) {
        stop(scan, FM_PATTERN_WRONG, "its groups are nested too deep");
        return;
    }
    if (next_is(scan, "?=") || next_is(scan, "?!") || next_is(scan, "?<=") || next_is(scan, "?<!")) {
        stop(scan, FM_PATTERN_UNABLE, "it looks ahead or behind");
    } else if (take_literal(scan, "?<")) {
        while (scan->at < scan->end && *scan->at != '>') {
            scan->at++;
        }
        if (!take_literal(scan, ">")) {
            stop(scan, FM_PATTERN_WRONG, "it has a group's name without its end");
        }
    } else if (next_is(scan, "?") && !take_literal(scan, "?:")) {
        stop(scan, FM_PATTERN_UNABLE, "it has a kind of group that is not known here");
    }
    fm_buf_append_str(scan->out, "(?:");
    struct group *outer = &scan->groups[scan->depth];
    scan->groups[++scan->depth] = (struct group){.repeats = 1, .at_start = outer->at_start && scan->alternative_start};
    scan->alternative_start = true;
    scan->atom = false;
}

/* After a `$`, or a group with `$`, all groups around it must end too. */
static void check_end(struct scan *scan) {
    bool last = scan->at == scan->end || *scan->at == '|' || *scan->at == ')';
    if (!last) {
        stop(scan, FM_PATTERN_UNABLE, "it has a $ that is not at its end");
    }
    scan->groups[scan->depth].anchors_end = true;
    scan->groups[scan->depth].anchored = true;
}

static void close_group(struct scan *scan) {
    if (scan->depth == 0) {
        stop(scan, FM_PATTERN_WRONG, "it closes a group that is not open");
        return;
    }
    struct group inner = scan->groups[scan->depth--];
    struct group *outer = &scan->groups[scan->depth];
    fm_buf_append_char(scan->out, ')');
    outer->anchored = outer->anchored || inner.anchored;
    atom(scan, inner.repeats, inner.anchored);
    if (inner.anchors_end) {
        check_end(scan);
    }
}

static void take_start(struct scan *scan) {
    struct group *group = &scan->groups[scan->depth];
    if (!scan->alternative_start || !group->at_start) {
        stop(scan, FM_PATTERN_UNABLE, "it has a ^ that is not at its beginning");
    }
    group->anchored = true;
    scan->alternative_start = false;
    scan->atom = false;
    fm_buf_append_char(scan->out, '^');
}

/* ---- quantifiers ---- */

static int64_t take_number(struct scan *scan) {
    int64_t number = -1;
    while (scan->at < scan->end && is_digit(*scan->at)) {
        number = (number < 0 ? 0 : number) * 10 + (*scan->at++ - '0');
        number = number > FM_SCHEMA_REPEAT_MAX ? FM_SCHEMA_REPEAT_MAX + 1 : number;
    }
    return number;
}

/* Reads the counts of a quantifier, after its "{". Returns the larger count, or the only one. */
static int64_t take_counts(struct scan *scan, char *text, size_t size) {
    int64_t low = take_number(scan);
    int64_t high = low;
    bool open = false;
    if (take_literal(scan, ",")) {
        high = take_number(scan);
        open = high < 0;
    }
    if (low < 0 || !take_literal(scan, "}") || (!open && high < low)) {
        stop(scan, FM_PATTERN_WRONG, "it has a { that is not {n}, {n,} or {n,m}; \\{ is the character");
        return 1;
    }
    if (open) {
        snprintf(text, size, "{%" PRId64 ",}", low);
        return low;
    }
    snprintf(text, size, "{%" PRId64 ",%" PRId64 "}", low, high);
    return high;
}

static void take_quantifier(struct scan *scan, char c) {
    char text[48] = {c};
    int64_t count = c == '{' ? take_counts(scan, text, sizeof text) : 1;
    if (!scan->atom) {
        stop(scan, FM_PATTERN_WRONG, "it repeats nothing");
        return;
    }
    if (scan->atom_anchored) {
        stop(scan, FM_PATTERN_UNABLE, "it repeats a ^ or a $");
    }
    take_literal(scan, "?"); /* a lazy quantifier matches the same texts */
    int64_t repeats = scan->atom_repeats * (count > 1 ? count : 1);
    struct group *group = &scan->groups[scan->depth];
    group->repeats = repeats > group->repeats ? repeats : group->repeats;
    if (repeats > FM_SCHEMA_REPEAT_MAX) {
        stop(scan, FM_PATTERN_UNABLE, "its counts, multiplied, are above 10,000");
    }
    fm_buf_append_str(scan->out, text);
    scan->atom = false;
}

static void take_item(struct scan *scan) {
    char c = *scan->at;
    if (strchr("\\[(){|*+?.^$", c) == NULL || c == '\0') {
        put_literal(scan, take_plain(scan));
        atom(scan, 1, false);
        return;
    }
    scan->at++;
    switch (c) {
    case '\\': take_escape(scan); break;
    case '[':
        take_class(scan);
        atom(scan, 1, false);
        break;
    case '(': open_group(scan); break;
    case ')': close_group(scan); break;
    case '|':
        fm_buf_append_char(scan->out, '|');
        scan->alternative_start = true;
        scan->atom = false;
        break;
    case '.':
        fm_buf_append_str(scan->out, "[^\\x{A}\\x{D}\\x{2028}\\x{2029}" UNWRITABLE "]");
        atom(scan, 1, false);
        break;
    case '^': take_start(scan); break;
    case '$':
        fm_buf_append_char(scan->out, '$');
        scan->alternative_start = false;
        scan->atom = false;
        check_end(scan);
        break;
    default: take_quantifier(scan, c); break;
    }
}

enum fm_pattern fm_pattern_translate(const char *text, size_t len, struct fm_buf *out, const char **reason) {
    struct scan scan = {.at = text, .end = text + len, .out = out, .alternative_start = true};
    scan.groups[0] = (struct group){.repeats = 1, .at_start = true};
    fm_buf_reset(out);
    while (scan.at < scan.end && scan.result == FM_PATTERN_OK) {
        take_item(&scan);
    }
    if (scan.depth > 0) {
        stop(&scan, FM_PATTERN_WRONG, "it has a group without its end");
    }
    *reason = scan.reason;
    return scan.result;
}

/* ---- how patterns begin ---- */

/* How many bytes after `^` every match begins with. */
static size_t literal_start(const char *pattern) {
    if (*pattern != '^' || strchr(pattern, '|')) {
        return 0;
    }
    size_t len = 0;
    while (is_letter(pattern[1 + len]) || is_digit(pattern[1 + len]) || pattern[1 + len] == '_' ||
           pattern[1 + len] == '-') {
        len++;
    }
    char next = pattern[1 + len];
    return len > 0 && next != '\0' && strchr("*+?{", next) ? len - 1 : len;
}

bool fm_pattern_disjoint(const char *one, const char *other) {
    size_t one_len = literal_start(one);
    size_t other_len = literal_start(other);
    size_t len = one_len < other_len ? one_len : other_len;
    return memcmp(one + 1, other + 1, len) != 0;
}

/* ---- formats ---- */

#define YEAR     "[0-9]{4}"
#define LEAP     "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
#define MONTHS31 "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
#define MONTHS30 "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
#define MONTH28  "02-(?:0[1-9]|1[0-9]|2[0-8])"
#define DATE     "(?:" YEAR "-(?:" MONTHS31 "|" MONTHS30 "|" MONTH28 ")|" LEAP "-02-29)"
#define TIME     "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
#define DAYS     "[0-9]{1,9}D"
#define MONTHS   "(?:[0-9]{1,9}M(?:" DAYS ")?|" DAYS ")"
#define SECONDS  "[0-9]{1,9}S"
#define MINUTES  "(?:[0-9]{1,9}M(?:" SECONDS ")?|" SECONDS ")"
#define HOURS    "T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:" SECONDS ")?)?|" MINUTES ")"
#define PERIOD   "(?:[0-9]{1,9}Y(?:[0-9]{1,9}M(?:" DAYS ")?)?|" MONTHS ")"
#define ALNUM    "[A-Za-z0-9]"
#define LABEL    "(?:" ALNUM "{1,40}|" ALNUM "{1,20}-" ALNUM "{1,20}|" ALNUM "{1,8}(?:-" ALNUM "{1,8}){2,4})"
#define HOST     LABEL "(?:\\." LABEL "){0,4}"
#define ATOM     "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
#define BYTE     "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define HEX      "[0-9A-Fa-f]"
#define H16      HEX "{1,4}"
#define ENCODED  "%" HEX "{2}"
#define PCHAR    "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|" ENCODED ")"
#define PATH     "(?:/" PCHAR "*)*"
#define AFTER                                                                                                          \
    "(?:\\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|" ENCODED ")*)?(?:#(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|" ENCODED ")*)?"
#define AUTHORITY "(?:[A-Za-z0-9._~-]+(?::[A-Za-z0-9._~-]*)?@)?" HOST "(?::[0-9]{1,4})?"

/*
 * The formats follow these RFCs:
 * date, time, date-time: 3339, without leap seconds, whose validity depends on the zone
 * duration: 3339, appendix A
 * email: 5321, 4.1.2; only dot strings of up to 64 characters, then @ and a host name with at least one dot, as
 * ajv-formats requires
 * hostname: 1123, 2.1; five labels of up to 44 characters stay below 253
 * ipv4, ipv6: 4291, 2.2
 * json-pointer: 6901
 * uri: 3986
 * uuid: 9562, 4
 */
static const struct {
    const char *name;
    const char *pattern;
} formats[] = {
    {"date", "^" DATE "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"duration", "^P(?:" PERIOD "(?:" HOURS ")?|" HOURS "|[0-9]{1,9}W)$"},
    {"email", "^(?:" ATOM "{1,64}|" ATOM "{1,20}(?:\\." ATOM "{1,20}){1,2})@" LABEL "(?:\\." LABEL "){1,4}$"},
    {"hostname", "^" HOST "$"},
    {"ipv4", "^" BYTE "(?:\\." BYTE "){3}$"},
    {"ipv6", "^(?:(?:" H16 ":){7}" H16 "|(?:" H16 ":){1,6}:" H16 "|(?:" H16 ":){1,5}(?::" H16 "){2}|(?:" H16
             ":){1,4}(?::" H16 "){3}|(?:" H16 ":){1,3}(?::" H16 "){4}|(?:" H16 ":){1,2}(?::" H16 "){5}|" H16 ":(?::" H16
             "){6}|:(?::" H16 "){1,7}|(?:" H16 ":){1,7}:|::)$"},
    {"json-pointer", "^(?:/(?:[^~/]|~[01])*)*$"},
    {"time", "^" TIME "$"},
    {"uri", "^[A-Za-z][A-Za-z0-9+.-]*:(?://" AUTHORITY PATH "|" PCHAR "+" PATH ")" AFTER "$"},
    {"uuid", "^" HEX "{8}-" HEX "{4}-" HEX "{4}-" HEX "{4}-" HEX "{12}$"},
};

const char *fm_format_pattern(const char *name) {
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(formats[i].name, name) == 0) {
            return formats[i].pattern;
        }
    }
    return NULL;
}
