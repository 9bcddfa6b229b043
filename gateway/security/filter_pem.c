/*
 * The second stage: private keys in PEM (RFC 7468; OpenPGP's armour too). From BEGIN on, lines are dropped as long as
 * they look like lines of a key: base64, headers. The first other line is passed on as it was. If no line of a key
 * follows BEGIN, the text is only about keys, and BEGIN is passed on too. `held` has what came after the last dropped
 * line; it begins with the end of that line.
 */
#include "security/filter_internal.h"

#include <ctype.h>
#include <string.h>

#define BEGIN     "-----BEGIN "
#define BEGIN_LEN (sizeof BEGIN - 1)
#define END       "-----END "
#define WORD_MIN  40 /* the least length of the words of a key whose line ends became blanks */

static void give_to_names(struct gw_filter *filter, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) {
        gw_filter_names_byte(filter, (unsigned char)text[i]);
    }
}

/* ---- text, and BEGIN ---- */

/* The text that looked like a BEGIN is only text. Its last dashes may still begin another BEGIN. */
static void head_is_text(struct gw_filter *filter) {
    size_t dashes = 0;
    while (dashes < filter->p.head_len && dashes < 5 && filter->p.head[filter->p.head_len - 1 - dashes] == '-') {
        dashes++;
    }
    give_to_names(filter, filter->p.head, filter->p.head_len - dashes);
    memset(filter->p.head, '-', dashes);
    filter->p.head_len = dashes;
    filter->p.state = GW_PEM_TEXT;
}

static void text_byte(struct gw_filter *filter, unsigned char c) {
    if (filter->p.head_len && c != (unsigned char)BEGIN[filter->p.head_len]) {
        if (c == '-' && filter->p.head_len == 5) { /* a sixth dash */
            gw_filter_names_byte(filter, c);
            return;
        }
        give_to_names(filter, filter->p.head, filter->p.head_len);
        filter->p.head_len = 0;
    }
    if (c != (unsigned char)BEGIN[filter->p.head_len]) {
        gw_filter_names_byte(filter, c);
        return;
    }
    filter->p.head[filter->p.head_len++] = (char)c;
    if (filter->p.head_len == BEGIN_LEN) {
        filter->p.state = GW_PEM_LABEL;
        filter->p.dashes = 0;
    }
}

static void label_byte(struct gw_filter *filter, unsigned char c) {
    bool label = (isupper(c) || isdigit(c) || c == ' ') && filter->p.dashes == 0;
    if ((!label && c != '-') || filter->p.head_len == GW_PEM_HEAD_MAX) {
        head_is_text(filter);
        text_byte(filter, c);
        return;
    }
    filter->p.head[filter->p.head_len++] = (char)c;
    filter->p.head[filter->p.head_len] = '\0';
    filter->p.dashes += c == '-';
    if (filter->p.dashes == 5 && strstr(filter->p.head, "PRIVATE KEY")) {
        filter->p.state = GW_PEM_BODY;
        filter->p.held_len = 0;
        filter->p.dropped = false;
    } else if (filter->p.dashes == 5) {
        head_is_text(filter);
    }
}

/* ---- the key ---- */

struct span {
    const char *at;
    size_t len;
};

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The length of the blank at the start of `text`: 1, or 2 for a line end as JSON writes it; 0: the text does not begin
 * with a blank. */
static size_t blank_at(const char *text, size_t len) {
    if (len && is_blank(text[0])) {
        return 1;
    }
    return len > 1 && text[0] == '\\' && (text[1] == 'n' || text[1] == 'r' || text[1] == 't') ? 2 : 0;
}

/* Returns the text without the blanks around it. */
static struct span trim(const char *text, size_t len) {
    size_t step;
    while ((step = blank_at(text, len))) {
        text += step;
        len -= step;
    }
    while (len && (is_blank(text[len - 1]) || (len > 1 && blank_at(text + len - 2, 2) == 2))) {
        len -= is_blank(text[len - 1]) ? 1 : 2;
    }
    return (struct span){text, len};
}

/* "Proc-Type: 4,ENCRYPTED" */
static bool is_header(struct span line) {
    size_t name = 0;
    while (name < line.len && (isalnum((unsigned char)line.at[name]) || line.at[name] == '-')) {
        name++;
    }
    return name && isupper((unsigned char)line.at[0]) && name + 1 < line.len && memcmp(line.at + name, ": ", 2) == 0;
}

/* Whether the line is base64: one word, or several words if line ends became blanks. */
static bool is_base64(struct span line) {
    size_t words = 0;
    size_t word = 0;
    size_t longest = 0;
    for (size_t i = 0; i < line.len; i++) {
        char c = line.at[i];
        if (is_blank(c)) {
            word = 0;
            continue;
        }
        if (!isalnum((unsigned char)c) && c != '+' && c != '/' && c != '=') {
            return false;
        }
        words += word == 0;
        word++;
        longest = word > longest ? word : longest;
    }
    return words == 1 || longest >= WORD_MIN;
}

static bool is_of_key(struct span line) {
    return line.len && (is_base64(line) || is_header(line));
}

/* Drops the first `len` held bytes, which belong to the key. */
static void drop_held(struct gw_filter *filter, size_t len) {
    if (!filter->p.dropped) {
        give_to_names(filter, GW_REDACTED, sizeof GW_REDACTED - 1);
        filter->p.dropped = true;
    }
    memmove(filter->p.held, filter->p.held + len, filter->p.held_len - len);
    filter->p.held_len -= len;
}

/* The key has ended: passes on the held bytes as text. If BEGIN was only text too, BEGIN is passed on first. */
static void end_body(struct gw_filter *filter) {
    char held[GW_PEM_HELD_MAX];
    size_t len = filter->p.held_len;
    memcpy(held, filter->p.held, len);
    filter->p.state = GW_PEM_TEXT;
    filter->p.held_len = 0;
    if (!filter->p.dropped) {
        give_to_names(filter, filter->p.head, filter->p.head_len);
    }
    filter->p.head_len = 0;
    for (size_t i = 0; i < len; i++) { /* the held text may have its own BEGIN, which happens at most a few times */
        gw_filter_pem_byte(filter, (unsigned char)held[i]);
    }
}

/* Judges a line that is complete or gets no more bytes. `end`: the length of its line end; 0: it has none. */
static void judge(struct gw_filter *filter, size_t end) {
    struct span line = trim(filter->p.held, filter->p.held_len);
    if (is_of_key(line)) {
        drop_held(filter, filter->p.held_len - end);
    } else if (line.len) {
        end_body(filter);
    }
}

/* Whether "-----END PRIVATE KEY-----" is complete. */
static bool is_end(const struct gw_filter *filter) {
    const char *held = filter->p.held;
    size_t least = sizeof END - 1 + 1 + 5; /* the least length: a label of one byte, and the dashes */
    size_t at = 0;
    if (filter->p.held_len < least || memcmp(held + filter->p.held_len - 5, "-----", 5) != 0) {
        return false;
    }
    while (at + least <= filter->p.held_len && memcmp(held + at, END, sizeof END - 1) != 0) {
        at++;
    }
    struct span before = trim(held, at);
    return at + least <= filter->p.held_len && (before.len == 0 || is_of_key(before));
}

/* Judges a line that is too long to be held. Its part before a dash, which may begin END, is judged separately. */
static void judge_part(struct gw_filter *filter) {
    const char *dash = memchr(filter->p.held, '-', filter->p.held_len);
    size_t before = dash ? (size_t)(dash - filter->p.held) : 0;
    if (before && is_of_key(trim(filter->p.held, before))) {
        drop_held(filter, before);
        return;
    }
    judge(filter, 0);
    if (filter->p.state == GW_PEM_BODY && filter->p.held_len) { /* only blanks */
        end_body(filter);
    }
}

static void body_byte(struct gw_filter *filter, unsigned char c) {
    static const char never[] = "\"'`{}[]|;#$%&*!?"; /* in a line of a key */
    if (c >= 0x80 || (c && strchr(never, c))) {
        judge(filter, 0);
        if (filter->p.state == GW_PEM_BODY) {
            end_body(filter);
        }
        gw_filter_pem_byte(filter, c);
        return;
    }
    filter->p.held[filter->p.held_len++] = (char)c;
    if (c == '\n') {
        judge(filter, 1);
    } else if (c == 'n' && filter->p.held_len > 1 && filter->p.held[filter->p.held_len - 2] == '\\') {
        judge(filter, 2);
    } else if (c == '-' && is_end(filter)) {
        drop_held(filter, filter->p.held_len);
        filter->p.state = GW_PEM_TEXT;
        filter->p.head_len = 0;
    } else if (filter->p.held_len == GW_PEM_HELD_MAX) {
        judge_part(filter);
    }
}

/* ---- the stage ---- */

void gw_filter_pem_byte(struct gw_filter *filter, unsigned char c) {
    switch (filter->p.state) {
    case GW_PEM_TEXT: text_byte(filter, c); break;
    case GW_PEM_LABEL: label_byte(filter, c); break;
    case GW_PEM_BODY: body_byte(filter, c); break;
    }
}

void gw_filter_pem_end(struct gw_filter *filter) {
    while (filter->p.state == GW_PEM_BODY) { /* the held bytes may have their own BEGIN */
        judge(filter, 0);
        if (filter->p.state == GW_PEM_BODY) {
            end_body(filter);
        }
    }
    give_to_names(filter, filter->p.head, filter->p.head_len);
    filter->p.head_len = 0;
}
