/* Reads how long a client should wait before it asks a server again: Retry-After (RFC 9110, 10.2.3). Pure. */
#ifndef FM_ENGINE_REMOTE_RETRY_AFTER_H
#define FM_ENGINE_REMOTE_RETRY_AFTER_H

#include <stdint.h>

#define FM_RETRY_AFTER_MAX_MS (24 * 60 * 60 * 1000LL) /* a longer time is cut to this */

/*
 * Reads an HTTP date, in any of the three forms of RFC 9110, 5.6.7. Returns seconds since 1970; -1 for any other text.
 */
int64_t fm_http_date(const char *text);

/*
 * Reads the value of Retry-After. Returns milliseconds, counted from `now` (seconds since 1970). The value is either
 * seconds, which may have a fraction, or an HTTP date. A date in the past gives 0, any other text -1.
 */
int64_t fm_retry_after(const char *text, int64_t now);

/* Reads the value of OpenAI's header retry-after-ms. Returns milliseconds; -1 for any other text. */
int64_t fm_retry_after_ms(const char *text);

#endif
