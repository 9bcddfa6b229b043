/* How long a server wants to be left alone: its Retry-After (RFC 9110, 10.2.3). Pure. */
#ifndef FM_ENGINE_REMOTE_RETRY_AFTER_H
#define FM_ENGINE_REMOTE_RETRY_AFTER_H

#include <stdint.h>

#define FM_RETRY_AFTER_MAX_MS (24 * 60 * 60 * 1000LL) /* a longer time is cut to this */

/* Seconds since 1970 that an HTTP date names, in any of the three forms of RFC 9110, 5.6.7; -1 for any other text. */
int64_t fm_http_date(const char *text);

/*
 * Milliseconds from the value of Retry-After: seconds, which may have a fraction, or an HTTP date, from `now` (seconds
 * since 1970) on; a date that is over is 0. -1 for any other text.
 */
int64_t fm_retry_after(const char *text, int64_t now);

/* Milliseconds from the value of OpenAI's header retry-after-ms. -1 for any other text. */
int64_t fm_retry_after_ms(const char *text);

#endif
