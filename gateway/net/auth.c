/*
 * Checks tokens and one-time codes. Secrets are compared only by their digests, and a failure is counted before it is
 * reported.
 */
#include "net/auth.h"

#include "base/hex.h"
#include "base/platform.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A code: 16 digits of its end time, 16 random digits, 32 of HMAC-SHA-256 over both. */
#define SIGNED_LEN 32u

static void digest_of(const char *text, size_t len, unsigned char digest[GW_DIGEST_LEN]) {
    if (EVP_Digest(text, len, digest, NULL, EVP_sha256(), NULL) != 1) {
        abort(); /* out of memory: the old bytes there must not be compared */
    }
}

/* Computes the digits that a code with this beginning must have at its end. */
static void sign(const unsigned char key[GW_DIGEST_LEN], const char *code, char mac[SIGNED_LEN + 1]) {
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    char text[16 + SIGNED_LEN];
    memcpy(text, "fm-gateway code ", 16); /* so that the HMAC is valid for nothing else */
    memcpy(text + 16, code, SIGNED_LEN);
    if (!HMAC(EVP_sha256(), key, GW_DIGEST_LEN, (const unsigned char *)text, sizeof text, bytes, &len)) {
        abort();
    }
    fm_hex(mac, bytes, SIGNED_LEN / 2);
}

void gw_auth_init(struct gw_auth *auth, const char *token, size_t len, int64_t now_ms) {
    memset(auth, 0, sizeof *auth);
    auth->since_ms = now_ms;
    gw_auth_set_token(auth, token, len);
}

void gw_auth_set_token(struct gw_auth *auth, const char *token, size_t len) {
    digest_of(token, len, auth->digest);
}

/* Whether logins are refused now, because too many have failed. */
static bool is_limited(const struct gw_auth *auth, int64_t now_ms) {
    int64_t oldest = auth->failures[auth->oldest];
    return oldest && now_ms - oldest < GW_FAILURES_MS;
}

static enum gw_login count(struct gw_auth *auth, bool right, int64_t now_ms) {
    if (right) {
        return GW_LOGIN_OK;
    }
    auth->failures[auth->oldest] = now_ms;
    auth->oldest = (auth->oldest + 1) % GW_FAILURES_MAX;
    return GW_LOGIN_WRONG;
}

enum gw_login gw_auth_check(struct gw_auth *auth, const char *token, size_t len, int64_t now_ms) {
    unsigned char digest[GW_DIGEST_LEN];
    if (is_limited(auth, now_ms)) {
        return GW_LOGIN_LIMITED;
    }
    digest_of(token, len, digest);
    return count(auth, CRYPTO_memcmp(digest, auth->digest, GW_DIGEST_LEN) == 0, now_ms);
}

/* Marks the code as used. False: it was used before, or too many used codes are still noted. */
static bool use(struct gw_auth *auth, const char *code, int64_t ends_ms, int64_t now_ms) {
    size_t free_place = GW_CODES_USED;
    for (size_t i = 0; i < GW_CODES_USED; i++) {
        if (auth->used[i].ends_ms <= now_ms) {
            free_place = i;
        } else if (memcmp(auth->used[i].code, code, GW_CODE_LEN) == 0) {
            return false;
        }
    }
    if (free_place == GW_CODES_USED) {
        return false;
    }
    memcpy(auth->used[free_place].code, code, GW_CODE_LEN);
    auth->used[free_place].ends_ms = ends_ms;
    return true;
}

enum gw_login gw_auth_check_code(struct gw_auth *auth, const char *code, size_t len, int64_t now_ms) {
    char mac[SIGNED_LEN + 1];
    char when[17] = "";
    if (is_limited(auth, now_ms)) {
        return GW_LOGIN_LIMITED;
    }
    if (len != GW_CODE_LEN) {
        return count(auth, false, now_ms);
    }
    sign(auth->digest, code, mac);
    if (CRYPTO_memcmp(mac, code + GW_CODE_LEN - SIGNED_LEN, SIGNED_LEN) != 0) {
        return count(auth, false, now_ms);
    }
    memcpy(when, code, 16);
    int64_t ends_ms = (int64_t)strtoull(when, NULL, 16);
    bool in_time = ends_ms > now_ms && ends_ms <= now_ms + GW_CODE_MS && ends_ms - GW_CODE_MS >= auth->since_ms;
    return count(auth, in_time && use(auth, code, ends_ms, now_ms), now_ms);
}

void gw_auth_make_code(const char *token, size_t len, int64_t now_ms, char code[GW_CODE_LEN + 1]) {
    unsigned char key[GW_DIGEST_LEN];
    uint64_t chance;
    digest_of(token, len, key);
    fm_random(&chance, sizeof chance);
    snprintf(code, SIGNED_LEN + 1, "%016llx%016llx", (unsigned long long)(now_ms + GW_CODE_MS),
             (unsigned long long)chance);
    sign(key, code, code + SIGNED_LEN);
    OPENSSL_cleanse(key, sizeof key);
}
