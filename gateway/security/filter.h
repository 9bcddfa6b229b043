/*
 * The secrets filter: a text goes through it in pieces of any size, and secrets come out as "[redacted]". What comes
 * out does not depend on where the pieces were cut. It takes time linear in the text, whatever the text is.
 *
 * It finds, in this order:
 * - the secrets that this process holds, byte for byte (gw_known_add);
 * - private keys in PEM, from BEGIN to END, also where the line ends are written "\n" or the END is missing;
 * - values of names that end in KEY, TOKEN, SECRET, PASSWORD or similar: in NAME=value, name: value, "name": "value";
 *   a name in capitals (an environment variable) is enough, for others the value must look like a secret;
 * - keys of well-known services, JSON Web Tokens, bearer tokens, passwords in URLs (key_formats.c).
 *
 * It can't find a secret that does not look like one (a password in a sentence), one that is encoded (base64 of a key),
 * or the rest of a key whose beginning was cut off before: filter first, truncate afterwards.
 *
 * Any thread; one thread at a time for each filter. The known secrets are not changed while a filter uses them.
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
 * Adds a secret, and its form in JSON if that differs (quotes, backslashes): then it counts as two, and both must be
 * within the limits. They are copied into memory of base/secret.h. False: it is shorter or longer than the limits,
 * there are GW_KNOWN_MAX already, or there is no memory; then nothing was added.
 */
FM_MUST_USE bool gw_known_add(struct gw_known *known, const char *secret, size_t len);

/* `known` NULL: none; else it must outlive the filter. NULL: out of memory. */
FM_MUST_USE struct gw_filter *gw_filter_new(const struct gw_known *known);
void gw_filter_free(struct gw_filter *filter);

/*
 * The next piece of a text: appends to `out` what is certainly no secret. What may still turn out to be a secret is
 * held back: mostly nothing or the last word, at most some KiB. Pieces of whole UTF-8 characters come out as whole
 * characters. False: `out` has failed; nothing more comes out of this text.
 */
FM_MUST_USE bool gw_filter_feed(struct gw_filter *filter, const char *text, size_t len, struct fm_buf *out);

/* The end of the text: appends what was held back. Then the filter can take another text. False: `out` has failed. */
FM_MUST_USE bool gw_filter_end(struct gw_filter *filter, struct fm_buf *out);

/* A whole text at once. False: out of memory, or `out` is full. */
FM_MUST_USE bool gw_filter_text(const struct gw_known *known, const char *text, size_t len, struct fm_buf *out);

#endif
