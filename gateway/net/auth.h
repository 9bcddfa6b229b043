/*
 * Checks logins, by the token or by a one-time code that was made with it. A comparison takes the same time wherever
 * the two secrets differ. After GW_FAILURES_MAX failures within a minute, all logins are refused, from wherever they
 * come, until the minute is over. Pure except for the random bytes of a code; one thread at a time.
 */
#ifndef GW_NET_AUTH_H
#define GW_NET_AUTH_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GW_FAILURES_MAX 10u
#define GW_FAILURES_MS  60000
#define GW_CODE_MS      60000 /* how long a one-time code is valid */
#define GW_CODE_LEN     64u   /* hexadecimal digits */
#define GW_CODES_USED   64u   /* used codes that have not expired; further codes are refused */
#define GW_DIGEST_LEN   32u
#define GW_TOKEN_MAX    512u /* bytes */

enum gw_login { GW_LOGIN_OK, GW_LOGIN_WRONG, GW_LOGIN_LIMITED };

struct gw_auth {
    unsigned char digest[GW_DIGEST_LEN]; /* SHA-256 of the token */
    int64_t failures[GW_FAILURES_MAX];   /* times of the last failures, the oldest at `oldest`; 0: none */
    unsigned oldest;
    int64_t since_ms;
    struct {
        char code[GW_CODE_LEN];
        int64_t ends_ms;
    } used[GW_CODES_USED];
};

/* Starts without failures. Codes made before `now_ms` are refused, because it is not known which of them were used. */
void gw_auth_init(struct gw_auth *auth, const char *token, size_t len, int64_t now_ms);

/* Sets another token. Codes of the old token are invalid from now on. The count of failures stays. */
void gw_auth_set_token(struct gw_auth *auth, const char *token, size_t len);

/* Whether this is the token. If not, a failure is counted. `now_ms` is fm_now_ms(). */
FM_MUST_USE enum gw_login gw_auth_check(struct gw_auth *auth, const char *token, size_t len, int64_t now_ms);

/*
 * Whether this is a code that was not used yet, and was made since gw_auth_init. If not, a failure is counted; on
 * success the code counts as used.
 */
FM_MUST_USE enum gw_login gw_auth_check_code(struct gw_auth *auth, const char *code, size_t len, int64_t now_ms);

/*
 * Makes a code, GW_CODE_LEN characters and a NUL. It contains its end time and a message authentication code with the
 * token as the key, so another process that has the token can make one. All processes of the machine have the same
 * monotonic clock.
 */
void gw_auth_make_code(const char *token, size_t len, int64_t now_ms, char code[GW_CODE_LEN + 1]);

#endif
