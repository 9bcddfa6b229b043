/*
 * The secrets filter: a text goes through it in pieces of any size, and secrets come out as "[redacted]". What comes
 * out does not depend on where the pieces were cut. It takes time linear in the text, whatever the text is.
 *
 * It finds, in this order:
 * - the secrets that this process holds, byte for byte (gw_known_add);
 * - private keys in PEM, from BEGIN to END, even if the line ends are written as "\n" or the END is missing;
 * - values of names that end in KEY, TOKEN, SECRET, PASSWORD or similar: in NAME=value, name: value, "name": "value";
 * a name in capitals (an environment variable) is enough, for others the value must look like a secret;
 * - keys of well-known services, JSON Web Tokens, bearer tokens, passwords in URLs (key_formats.c).
 *
 * It can't find a secret that does not look like one (a password in a sentence), or that is encoded (base64 of a key),
 * or whose beginning was cut off. So filter a text first, and truncate it afterwards.
 *
 * Any thread; one thread at a time for each filter. Do not change the known secrets while a filter uses them.
 */
#ifndef GW_SECURITY_FILTER_H
#define GW_SECURITY_FILTER_H

#include "base/buf.h"

#define GW_REDACTED      "[redacted]"
#define GW_KNOWN_MAX     32u
#define GW_KNOWN_LEN_MIN 8u    /* bytes: shorter ones would be found in ordinary words */
#define GW_KNOWN_LEN_MAX 4096u /* bytes */

struct gw_known;
struct gw_filter;

/* The list of secrets that the process holds, empty at first. NULL: out of memory. */
FM_MUST_USE struct gw_known *gw_known_new(void);
void gw_known_free(struct gw_known *known);

/*
 * Adds a secret, and its form in JSON if that differs (quotes, backslashes). With a form in JSON it counts as two
 * secrets, and both must be within the limits. They are copied into memory of base/secret.h. False: it is shorter or
 * longer than the limits, there are GW_KNOWN_MAX secrets already, or there is no memory; nothing was added.
 */
FM_MUST_USE bool gw_known_add(struct gw_known *known, const char *secret, size_t len);

/* Makes a filter. `known` must outlive it; NULL: there are no known secrets. Returns NULL when out of memory. */
FM_MUST_USE struct gw_filter *gw_filter_new(const struct gw_known *known);
void gw_filter_free(struct gw_filter *filter);

/*
 * Takes the next piece of a text, and appends to `out` what is certainly no secret. The end of the text that may still
 * become a secret is held back. Mostly that is nothing or the last word, and at most some KiB. Pieces of whole UTF-8
 * characters come out as whole characters. False: `out` has failed; nothing more comes out of this text.
 */
FM_MUST_USE bool gw_filter_feed(struct gw_filter *filter, const char *text, size_t len, struct fm_buf *out);

/*
 * Ends the text, and appends what was held back. After that the filter can take another text. False: `out` has failed.
 */
FM_MUST_USE bool gw_filter_end(struct gw_filter *filter, struct fm_buf *out);

/* Filters a whole text at once. False: out of memory, or `out` is full. */
FM_MUST_USE bool gw_filter_text(const struct gw_known *known, const char *text, size_t len, struct fm_buf *out);

#endif
