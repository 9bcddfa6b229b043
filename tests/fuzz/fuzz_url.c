/*
 * Fuzzes URLs from users and models. An opened URL is http or https, has a host, and neither a name nor a password. It
 * is UTF-8 without control characters, and opening it again gives the same URL. A refusal has one of the contract's
 * codes. A cleaned URL has no query, no fragment and no password.
 */
#include "desktop/clean.h"
#include "desktop/refuse.h"
#include "desktop/url.h"
#include "tests/fuzz/fuzz.h"

#include <strings.h>

static void expect_code(const struct fm_error *error) {
    static const char *const codes[] = {"scheme_not_allowed", "unknown_site", "credentials_in_url", "invalid_url",
                                        "empty_string"};
    size_t i = 0;
    while (i < COUNT(codes) && strcmp(codes[i], sy_reason(error)) != 0) {
        i++;
    }
    HOLDS_OR(i < COUNT(codes), "%s", sy_reason(error));
    HOLDS(strcmp(error->param, "url") == 0 && is_utf8(error->detail, strlen(error->detail)));
}

/* Reads the URL like a browser: a backslash counts as a slash. */
static void expect_safe(const char *url) {
    size_t len = strlen(url);
    bool tls = strncasecmp(url, "https://", 8) == 0;
    HOLDS_OR(len <= SY_URL_MAX && (tls || strncasecmp(url, "http://", 7) == 0), "%s", url);
    const char *host = url + (tls ? 8 : 7);
    size_t authority = strcspn(host, "/?#\\");
    HOLDS_OR(authority > 0 && host[0] != ':' && !memchr(host, '@', authority), "%s", url);
    HOLDS(is_utf8(url, len));
    for (size_t i = 0; i < len; i++) {
        HOLDS_OR((unsigned char)url[i] > ' ' && url[i] != 0x7f, "%s", url);
    }
}

static void clean(const char *text, size_t max) {
    struct fm_buf out;
    fm_buf_init(&out, 1u << 20);
    sy_clean_url(&out, text, max);
    HOLDS(!out.failed && is_utf8(out.data ? out.data : "", out.len));
    HOLDS(fm_utf8_characters(out.data ? out.data : "", out.len) <= max);
    HOLDS(!out.len || (!memchr(out.data, '?', out.len) && !memchr(out.data, '#', out.len)));
    fm_buf_reset(&out);
    sy_clean(&out, text, max, true);
    HOLDS(!out.failed && is_utf8(out.data ? out.data : "", out.len));
    HOLDS(fm_utf8_characters(out.data ? out.data : "", out.len) <= max);
    for (size_t i = 0; i < out.len; i++) {
        HOLDS((unsigned char)out.data[i] >= ' ' || out.data[i] == '\n');
    }
    fm_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *input = malloc(size + 1);
    HOLDS(input);
    memcpy(input, data, size);
    input[size] = '\0'; /* an earlier NUL ends the text */
    char url[SY_URL_MAX + 1];
    char again[SY_URL_MAX + 1];
    char domain[254];
    struct fm_error error = {.code = FM_OK};
    if (sy_url_normalize(input, url, &error) == FM_OK) {
        expect_safe(url);
        HOLDS_OR(sy_url_normalize(url, again, &error) == FM_OK && strcmp(url, again) == 0, "%s", url);
        size_t len = sy_url_domain(url, domain, sizeof domain);
        HOLDS_OR(len > 0 && len == strlen(domain), "%s", url);
    } else {
        expect_code(&error);
    }
    for (size_t room = 1; room < sizeof domain; room *= 3) {
        HOLDS(sy_url_domain(input, domain, room) == strlen(domain) && strlen(domain) < room);
    }
    clean(input, 5);
    clean(input, SY_URL_MAX);
    free(input);
    return 0;
}
