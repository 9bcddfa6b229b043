/* Addresses. Only http and https with a host, and without user name and password, may be opened. */
#include "desktop/url.h"
#include "base/utf8.h"
#include "desktop/refuse.h"
#include "desktop/sites.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct site {
    const char *word;
    const char *place;
};

#define ROW(word, place) {word, place},
static const struct site sites[] = {SY_SITES(ROW)};
#undef ROW

static int compare_word(const void *word, const void *row) {
    return strcmp(word, ((const struct site *)row)->word);
}

const char *sy_site(const char *word) {
    char small[32];
    size_t len = 0;
    for (const char *at = word; *at && len + 1 < sizeof small; at++) {
        if (*at != ' ' && *at != '-') {
            small[len++] = (char)tolower((unsigned char)*at);
        }
    }
    small[len] = '\0';
    const struct site *site = bsearch(small, sites, sizeof sites / sizeof sites[0], sizeof sites[0], compare_word);
    return site ? site->place : NULL;
}

/* ---- the parts of a URL ---- */

/* The bytes before "://", or before the ":" of something like "javascript:"; 0: there is no scheme. */
static size_t scheme_len(const char *text) {
    size_t len = 0;
    while (isalnum((unsigned char)text[len]) || (len > 0 && text[len] && strchr("+-.", text[len]))) {
        len++;
    }
    return len > 0 && isalpha((unsigned char)text[0]) && text[len] == ':' ? len : 0;
}

static bool is_scheme(const char *text, size_t len, const char *scheme) {
    return strlen(scheme) == len && strncasecmp(text, scheme, len) == 0;
}

/* The length of the part between "//" and the path, query or fragment. Browsers take a backslash for a slash. */
static size_t authority_len(const char *text) {
    return strcspn(text, "/?#\\");
}

/* The host in an authority. `[` and `]` around an IPv6 address are part of the host. */
static size_t host_len(const char *authority, size_t len) {
    const char *end = authority[0] == '[' ? memchr(authority, ']', len) : NULL;
    if (end) {
        return (size_t)(end - authority) + 1;
    }
    const char *colon = memchr(authority, ':', len);
    return colon ? (size_t)(colon - authority) : len;
}

/* Whether the part after the host is a port, 1 to 65535, or empty. */
static bool is_port(const char *text, size_t len) {
    long port = 0;
    if (len == 0) {
        return true;
    }
    for (size_t i = 1; i < len; i++) {
        if (!isdigit((unsigned char)text[i]) || port > 65535) {
            return false;
        }
        port = port * 10 + (text[i] - '0');
    }
    return text[0] == ':' && len > 1 && port >= 1 && port <= 65535;
}

static bool is_address(const char *host, size_t len) {
    char text[INET6_ADDRSTRLEN + 1];
    unsigned char bytes[sizeof(struct in6_addr)];
    bool six = len > 2 && host[0] == '[' && host[len - 1] == ']';
    size_t shown = six ? len - 2 : len;
    if (shown >= sizeof text) {
        return false;
    }
    memcpy(text, host + six, shown);
    text[shown] = '\0';
    return inet_pton(six ? AF_INET6 : AF_INET, text, bytes) == 1;
}

/*
 * Whether the host is a name: letters, digits, "-", "_" and all characters beyond ASCII, with single dots between them.
 */
static bool is_name(const char *host, size_t len) {
    bool dot = true;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)host[i];
        if ((c == '.' && dot) || (c < 0x80 && !isalnum(c) && c != '.' && c != '-' && c != '_')) {
            return false;
        }
        dot = c == '.';
    }
    return len > 0 && len <= 253;
}

/* Checks "host:port/path" of a URL. */
static enum fm_code check_rest(const char *rest, struct fm_error *error) {
    size_t len = authority_len(rest);
    if (memchr(rest, '@', len)) {
        return sy_refuse(error, "credentials_in_url", "url", "the URL has a name or a password in it: leave these out");
    }
    size_t host = host_len(rest, len);
    bool valid = rest[0] == '[' ? is_address(rest, host) : is_name(rest, host);
    if (!valid || !is_port(rest + host, len - host)) {
        return sy_refuse(error, "invalid_url", "url", "the URL has no valid host: give one such as example.com");
    }
    return FM_OK;
}

/* ---- what users mean ---- */

static enum fm_code check_characters(const char *text, struct fm_error *error) {
    size_t len = strlen(text);
    if (len == 0) {
        return sy_refuse(error, "empty_string", "url", "url is empty: give a URL or the name of a site");
    }
    if (len > SY_URL_MAX || !fm_utf8_valid(text, len)) {
        return sy_refuse(error, "invalid_url", "url", "the URL is no UTF-8 text of at most %d bytes", SY_URL_MAX);
    }
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
            return sy_refuse(error, "invalid_url", "url", "the URL has a control character in it");
        }
    }
    return FM_OK;
}

static enum fm_code put_url(const char *scheme, const char *rest, char *url, struct fm_error *error) {
    int len = snprintf(url, SY_URL_MAX + 1, "%s%s", scheme, rest);
    if (len > SY_URL_MAX) {
        return sy_refuse(error, "invalid_url", "url", "the URL is longer than %d bytes", SY_URL_MAX);
    }
    return FM_OK;
}

/* Whether the colon at `scheme` is before a port: "example.com:8080" begins like a scheme. */
static bool is_host_with_port(const char *text, size_t scheme) {
    return isdigit((unsigned char)text[scheme + 1]) != 0;
}

enum fm_code sy_url_normalize(const char *text, char *url, struct fm_error *error) {
    enum fm_code code = check_characters(text, error);
    if (code != FM_OK) {
        return code;
    }
    size_t scheme = scheme_len(text);
    if (scheme > 0 && !is_host_with_port(text, scheme)) {
        bool web = is_scheme(text, scheme, "http") || is_scheme(text, scheme, "https");
        if (!web) {
            return sy_refuse(error, "scheme_not_allowed", "url",
                             "only http and https can be opened, not %.*s:", (int)(scheme < 32 ? scheme : 32), text);
        }
        if (strchr(text, ' ') || strncmp(text + scheme, "://", 3) != 0) {
            return sy_refuse(error, "invalid_url", "url", "the URL has spaces in it, or no // after its scheme");
        }
        code = check_rest(text + scheme + 3, error);
        return code == FM_OK ? put_url("", text, url, error) : code;
    }
    const char *site = sy_site(text);
    if (site) {
        return put_url("https://", site, url, error);
    }
    if (strchr(text, ' ')) {
        return sy_refuse(error, "invalid_url", "url", "the URL has spaces in it");
    }
    size_t authority = authority_len(text);
    size_t host = host_len(text, authority);
    bool plain = is_address(text, host) || (host == strlen("localhost") && strncasecmp(text, "localhost", host) == 0);
    if (!plain && !memchr(text, '@', authority) && !memchr(text, '.', host)) {
        return sy_refuse(error, "unknown_site", "url", "no site of that name is known: give its address");
    }
    code = check_rest(text, error);
    return code == FM_OK ? put_url(plain ? "http://" : "https://", text, url, error) : code;
}

size_t sy_url_domain(const char *url, char *host, size_t size) {
    size_t scheme = scheme_len(url);
    bool has_host = scheme > 0 && strncmp(url + scheme, "://", 3) == 0;
    const char *at = has_host ? url + scheme + 3 : "";
    size_t authority = authority_len(at);
    const char *after = memchr(at, '@', authority);
    if (after) {
        authority -= (size_t)(after + 1 - at);
        at = after + 1;
    }
    size_t len = host_len(at, authority);
    if (len > 4 && strncasecmp(at, "www.", 4) == 0) {
        at += 4;
        len -= 4;
    }
    len = len < size ? len : size - 1;
    for (size_t i = 0; i < len; i++) {
        host[i] = (char)tolower((unsigned char)at[i]);
    }
    host[len] = '\0';
    return len;
}

bool sy_url_is_web(const char *url) {
    struct fm_error error;
    size_t len = scheme_len(url);
    return (is_scheme(url, len, "http") || is_scheme(url, len, "https")) && strncmp(url + len, "://", 3) == 0 &&
           !strchr(url, ' ') && check_characters(url, &error) == FM_OK && check_rest(url + len + 3, &error) == FM_OK;
}
