/*
 * The first stage: secrets that the process holds. It holds back the end of the text if that may be the beginning of a
 * secret. A byte that leaves is dropped if it was part of a secret, and each run of dropped bytes becomes one marker.
 */
#include "base/secret.h"
#include "base/utf8.h"
#include "protocol/json_writer.h"
#include "security/filter_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- the list ---- */

struct gw_known *gw_known_new(void) {
    return calloc(1, sizeof(struct gw_known));
}

static void drop_secret(const struct gw_secret *secret) {
    fm_secret_free(secret->text);
    free(secret->back);
}

void gw_known_free(struct gw_known *known) {
    for (size_t i = 0; known && i < known->count; i++) {
        drop_secret(&known->secrets[i]);
    }
    free(known);
}

/*
 * Fills `back`: back[i] is the length of the longest proper prefix of the first i + 1 bytes that is also their suffix.
 */
static void fill_back(struct gw_secret *secret) {
    uint16_t matched = 0;
    secret->back[0] = 0;
    for (size_t i = 1; i < secret->len; i++) {
        while (matched && secret->text[i] != secret->text[matched]) {
            matched = secret->back[matched - 1];
        }
        matched = (uint16_t)(matched + (secret->text[i] == secret->text[matched]));
        secret->back[i] = matched;
    }
}

static bool add_one(struct gw_known *known, const char *text, size_t len) {
    if (len < GW_KNOWN_LEN_MIN || len > GW_KNOWN_LEN_MAX || known->count == GW_KNOWN_MAX) {
        return false;
    }
    struct gw_secret secret = {.len = len, .text = fm_secret_copy(text, len), .back = calloc(len, sizeof(uint16_t))};
    if (!secret.text || !secret.back) {
        drop_secret(&secret);
        return false;
    }
    fill_back(&secret);
    known->secrets[known->count++] = secret;
    return true;
}

/* Adds the secret as JSON writes it between quotes, if that differs. False: it can't be added. */
static bool add_escaped(struct gw_known *known, const char *text, size_t len) {
    size_t room = fm_utf8_valid(text, len) ? fm_json_string_size(text, len) : len + 2;
    if (room == len + 2) {
        return true;
    }
    struct fm_buf quoted = {.data = fm_secret_new(room), .cap = room, .max = room}; /* so that the buffer never moves */
    if (!quoted.data) {
        return false;
    }
    struct fm_json_writer w = fm_json_writer_on(&quoted);
    fm_json_string(&w, text, len);
    bool added = !quoted.failed && add_one(known, quoted.data + 1, quoted.len - 2);
    fm_secret_free(quoted.data);
    return added;
}

bool gw_known_add(struct gw_known *known, const char *text, size_t len) {
    if (!add_one(known, text, len)) {
        return false;
    }
    if (!add_escaped(known, text, len)) {
        drop_secret(&known->secrets[--known->count]);
        return false;
    }
    return true;
}

/* ---- the stage ---- */

/* Passes on or drops the oldest held byte. */
static void leave(struct gw_filter *filter) {
    size_t at = filter->k.first;
    bool hit = filter->k.hit[at];
    filter->k.first = (at + 1) % GW_KNOWN_LEN_MAX;
    filter->k.count--;
    if (hit && !filter->k.marked) {
        for (const char *mark = GW_REDACTED; *mark; mark++) {
            gw_filter_pem_byte(filter, (unsigned char)*mark);
        }
    }
    filter->k.marked = hit;
    if (!hit) {
        gw_filter_pem_byte(filter, filter->k.held[at]);
    }
}

static void take_byte(struct gw_filter *filter, unsigned char c) {
    size_t at = (filter->k.first + filter->k.count) % GW_KNOWN_LEN_MAX;
    filter->k.held[at] = c;
    filter->k.hit[at] = false;
    filter->k.count++;
}

static void hit_last(struct gw_filter *filter, size_t len) {
    for (size_t i = 0; i < len; i++) {
        filter->k.hit[(filter->k.first + filter->k.count - 1 - i) % GW_KNOWN_LEN_MAX] = true;
    }
}

/* Returns how many of the secret's first bytes the text ends with, after `c` has come. */
static uint16_t advance(const struct gw_secret *secret, uint16_t matched, unsigned char c) {
    if (matched == secret->len) {
        matched = secret->back[matched - 1];
    }
    while (matched && (unsigned char)secret->text[matched] != c) {
        matched = secret->back[matched - 1];
    }
    return (uint16_t)(matched + ((unsigned char)secret->text[matched] == c));
}

void gw_filter_known_byte(struct gw_filter *filter, unsigned char c) {
    size_t needed = 0;
    if (!filter->known || !filter->known->count) {
        gw_filter_pem_byte(filter, c);
        return;
    }
    if (filter->k.count == GW_KNOWN_LEN_MAX) {
        leave(filter); /* the buffer is full only with a secret of the greatest length */
    }
    take_byte(filter, c);
    for (size_t i = 0; i < filter->known->count; i++) {
        const struct gw_secret *secret = &filter->known->secrets[i];
        filter->k.matched[i] = advance(secret, filter->k.matched[i], c);
        if (filter->k.matched[i] == secret->len) {
            hit_last(filter, secret->len);
        }
        needed = filter->k.matched[i] > needed ? filter->k.matched[i] : needed;
    }
    while (filter->k.count > needed) {
        leave(filter);
    }
}

void gw_filter_known_end(struct gw_filter *filter) {
    while (filter->k.count) {
        leave(filter);
    }
}
