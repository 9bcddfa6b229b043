/* Reads, masks and wipes keys. No function here writes a key to a log or into an error. */
#include "engine/remote/key.h"
#include "base/file.h"
#include "base/secret.h"

#include <stdio.h>
#include <string.h>

void fm_wipe(void *memory, size_t len) {
    volatile unsigned char *bytes = memory;
    for (size_t i = 0; i < len; i++) {
        bytes[i] = 0;
    }
}

static enum fm_code not_configured(struct fm_error *error, const char *what, const char *name, const char *why) {
    enum fm_code code = fm_fail(error, FM_UNAVAILABLE, "the key of %s %s %s", what, name, why);
    snprintf(error->reason_code, sizeof error->reason_code, "NOT_CONFIGURED");
    return code;
}

/* Checks a header's value: visible ASCII (RFC 9110, 5.5), without white space and control characters. */
static bool is_key(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (text[i] <= 0x20 || text[i] >= 0x7f) {
            return false;
        }
    }
    return len > 0;
}

/* A copy of `text` without white space around it. */
static enum fm_code copy_key(const char *text, size_t len, const char *what, const char *name, char **key,
                             struct fm_error *error) {
    static const char blanks[] = " \t\r\n";
    while (len > 0 && strchr(blanks, text[len - 1])) {
        len--;
    }
    while (len > 0 && strchr(blanks, text[0])) {
        text++;
        len--;
    }
    if (len == 0) {
        return not_configured(error, what, name, "is empty");
    }
    if (len > FM_KEY_MAX) {
        return not_configured(error, what, name, "is longer than 8192 bytes");
    }
    if (!is_key(text, len)) {
        return not_configured(error, what, name, "has white space or other characters that no key has");
    }
    *key = fm_secret_copy(text, len);
    return *key ? FM_OK : fm_fail_no_memory(error);
}

enum fm_code fm_key_read_file(const char *path, char **key, struct fm_error *error) {
    struct fm_buf text;
    *key = NULL;
    fm_buf_init(&text, FM_KEY_MAX);
    if (!fm_buf_reserve(&text, FM_KEY_MAX)) { /* reserved at once: a buffer that grows would leave copies behind */
        return fm_fail_no_memory(error);
    }
    enum fm_code code = fm_file_read(path, &text, error);
    if (code != FM_OK) {
        snprintf(error->reason_code, sizeof error->reason_code, "NOT_CONFIGURED");
    } else {
        code = copy_key(text.data, text.len, "key_file", path, key, error);
    }
    fm_wipe(text.data, text.cap);
    fm_buf_free(&text);
    return code;
}

enum fm_code fm_key_read_environment(const char *name, char **key, struct fm_error *error) {
    char *value = fm_secret_take(name);
    *key = NULL;
    if (!value) {
        return not_configured(error, "key_env", name, "is missing: set that variable");
    }
    enum fm_code code = copy_key(value, strlen(value), "key_env", name, key, error);
    fm_secret_free(value);
    return code;
}

void fm_secrets_add(struct fm_secrets *secrets, const char *text) {
    if (text && strlen(text) >= FM_SECRET_MIN && secrets->count < FM_SECRETS_MAX) {
        secrets->texts[secrets->count++] = text;
    }
}

static int digit_of(char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/*
 * Decodes the first byte of `text` (`len` bytes, at least one) and reports how many bytes it takes. A percent-encoded
 * byte (RFC 3986, 2.1) takes three; servers that repeat a URL send such bytes.
 */
static size_t byte_at(const char *text, size_t len, char *byte) {
    int high = len >= 3 && text[0] == '%' ? digit_of(text[1]) : -1;
    int low = high >= 0 ? digit_of(text[2]) : -1;
    *byte = low >= 0 ? (char)(high << 4 | low) : text[0];
    return low >= 0 ? 3 : 1;
}

/* The bytes that the beginning of a text and a secret have in common. */
struct match {
    size_t bytes;     /* bytes in common, counted in the text as it is written */
    size_t in_common; /* bytes in common when both are decoded */
};

static struct match match_from(const char *secret, size_t secret_len, const char *text, size_t len) {
    struct match match = {0, 0};
    while (secret_len > 0 && match.bytes < len) {
        char theirs;
        char ours;
        size_t step = byte_at(text + match.bytes, len - match.bytes, &theirs);
        size_t secret_step = byte_at(secret, secret_len, &ours);
        if (theirs != ours) {
            break;
        }
        match.bytes += step;
        match.in_common++;
        secret += secret_step;
        secret_len -= secret_step;
    }
    return match;
}

/* How many bytes at the beginning of `text` must be masked for this secret. */
static size_t masked_by(const char *secret, const char *text, size_t len) {
    size_t secret_len = strlen(secret);
    size_t masked = 0;
    size_t whole = 0; /* length of the secret, decoded */
    char byte;
    for (size_t at = 0; at < secret_len; at += byte_at(secret + at, secret_len - at, &byte)) {
        whole++;
    }
    for (size_t at = 0; at < secret_len; at += byte_at(secret + at, secret_len - at, &byte)) {
        struct match match = match_from(secret + at, secret_len - at, text, len);
        if (match.bytes > masked && (match.in_common >= FM_KEY_PART || match.in_common == whole)) {
            masked = match.bytes;
        }
    }
    return masked;
}

void fm_secrets_mask(const struct fm_secrets *secrets, char *text, size_t len) {
    size_t at = 0;
    while (at < len) {
        size_t masked = 0;
        for (size_t i = 0; i < secrets->count; i++) {
            size_t bytes = masked_by(secrets->texts[i], text + at, len - at);
            masked = bytes > masked ? bytes : masked;
        }
        memset(text + at, '*', masked);
        at += masked ? masked : 1;
    }
}
