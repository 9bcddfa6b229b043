/*
 * What a command prints, kept within a limit: the beginning and the end. Takes any bytes at any rate; memory is bounded
 * by the limit. One thread.
 */
#ifndef GW_TOOLS_OUTPUT_H
#define GW_TOOLS_OUTPUT_H

#include "base/buf.h"

#include <stdint.h>

struct gw_output {
    size_t max;
    struct fm_buf head; /* the first bytes, up to half of `max` */
    struct fm_buf tail; /* a ring of the last bytes, up to the other half of `max` */
    size_t at;          /* where the ring's next byte goes, once it is full */
    uint64_t total;
    bool failed; /* out of memory: later bytes are counted as missing */
};

/* Prepares an empty output of at most `max` bytes; less than 1,000 counts as 1,000. Allocates nothing. */
void gw_output_init(struct gw_output *output, size_t max);
void gw_output_free(struct gw_output *output);

/* Never blocks. */
void gw_output_add(struct gw_output *output, const char *data, size_t len);

/*
 * Appends the text: UTF-8 of at most `max` bytes; a byte that is not UTF-8 becomes U+FFFD. If not all fits, a line
 * between beginning and end says how many bytes are missing; both are cut between characters, and `*truncated` is set.
 * False when out of memory.
 */
FM_MUST_USE bool gw_output_text(const struct gw_output *output, struct fm_buf *text, bool *truncated);

#endif
