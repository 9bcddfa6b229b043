/* The whole filter: bytes go into the first stage, and come out of the last one. */
#include "security/filter.h"
#include "security/filter_internal.h"

#include <stdlib.h>
#include <string.h>

struct gw_filter *gw_filter_new(const struct gw_known *known) {
    struct gw_filter *filter = calloc(1, sizeof *filter);
    if (filter) {
        filter->known = known;
        filter->tables = gw_filter_keys_tables();
    }
    return filter;
}

void gw_filter_free(struct gw_filter *filter) {
    free(filter);
}

bool gw_filter_feed(struct gw_filter *filter, const char *text, size_t len, struct fm_buf *out) {
    filter->out = out;
    for (size_t i = 0; i < len; i++) {
        gw_filter_known_byte(filter, (unsigned char)text[i]);
    }
    return !out->failed;
}

bool gw_filter_end(struct gw_filter *filter, struct fm_buf *out) {
    filter->out = out;
    gw_filter_known_end(filter);
    gw_filter_pem_end(filter);
    gw_filter_names_end(filter);
    gw_filter_keys_end(filter);
    memset(&filter->k, 0, sizeof filter->k);
    memset(&filter->p, 0, sizeof filter->p);
    memset(&filter->n, 0, sizeof filter->n);
    memset(&filter->t, 0, sizeof filter->t);
    return !out->failed;
}

bool gw_filter_text(const struct gw_known *known, const char *text, size_t len, struct fm_buf *out) {
    struct gw_filter *filter = gw_filter_new(known);
    if (!filter) {
        return false;
    }
    bool whole = gw_filter_feed(filter, text, len, out) && gw_filter_end(filter, out);
    gw_filter_free(filter);
    return whole;
}
