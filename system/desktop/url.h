/* Which addresses a browser may be sent to, and what users mean by them. Pure. */
#ifndef SY_URL_H
#define SY_URL_H

#include "base/error.h"

#include <stddef.h>

#define SY_URL_MAX 8192 /* bytes of a URL, without its NUL */

/*
 * Makes the URL that open_url opens for `text`. An http or https URL stays as it is. A host with a dot (and a path)
 * gets "https://"; an IP address or localhost gets "http://". A word of the table of sites, such as "chatgpt", becomes
 * its address. `url` has room for SY_URL_MAX + 1 bytes. Fails with FM_INVALID_REQUEST and the reason
 * scheme_not_allowed, unknown_site, credentials_in_url, invalid_url or empty_string.
 */
FM_MUST_USE enum fm_code sy_url_normalize(const char *text, char *url, struct fm_error *error);

/* True for an http or https URL that sy_url_normalize keeps as it is. */
bool sy_url_is_web(const char *url);

/* The host of a URL in lower case, without "www." and port; "" if it has none. Returns its length; `host` is cut at
 * `size` - 1 bytes. */
size_t sy_url_domain(const char *url, char *host, size_t size);

/* The address that a word for a site means, such as "gmail": a host, perhaps with a path. NULL: the word is unknown. */
const char *sy_site(const char *word);

#endif
