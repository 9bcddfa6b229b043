/* A small URL parser: the configuration allows less than RFC 3986. */
#include "engine/remote/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads the port after the colon at `text` (`len` bytes, including the colon); -1: the text is no port. */
static int port_of(const char *text, size_t len, int otherwise) {
    int port = 0;
    if (len == 0) {
        return otherwise;
    }
    for (size_t i = 1; i < len; i++) {
        port = text[i] >= '0' && text[i] <= '9' && port <= 65535 ? port * 10 + (text[i] - '0') : 65536;
    }
    return text[0] == ':' && len > 1 && port > 0 && port <= 65535 ? port : -1;
}

const char *fm_url_read(const char *text, struct fm_url *url) {
    url->https = strncmp(text, "https://", 8) == 0;
    if (!url->https && strncmp(text, "http://", 7) != 0) {
        return "a URL that begins with https:// or http:// is expected";
    }
    for (const char *at = text; *at; at++) {
        if (*at <= 0x20 || *at >= 0x7f || *at == '\\' || *at == '#') {
            return "a URL of visible ASCII, without \\ and #, is expected";
        }
    }
    url->authority = text + (url->https ? 8 : 7);
    url->authority_len = strcspn(url->authority, "/?");
    url->rest = url->authority + url->authority_len;
    if (memchr(url->authority, '@', url->authority_len)) {
        return "a URL without a user and a password is expected; a key belongs into key_file or key_env";
    }
    bool bracket = url->authority[0] == '[';
    size_t host_len = strcspn(url->authority, bracket ? "]/?" : ":/?");
    size_t past = bracket && url->authority[host_len] == ']' ? host_len + 1 : host_len;
    const char *host = url->authority + bracket;
    host_len -= bracket;
    url->port = port_of(url->authority + past, url->authority_len - past, url->https ? 443 : 80);
    if (host_len == 0 || host_len >= sizeof url->host || url->port < 0 || (bracket && past == host_len + 1)) {
        return "a URL with a host, and a port from 1 to 65535 if there is one, is expected";
    }
    snprintf(url->host, sizeof url->host, "%.*s", (int)host_len, host);
    return NULL;
}

/*
 * Checks for an IPv4 address of this machine: 127 and three numbers. Anything else that begins with 127 is a name,
 * which a name server resolves.
 */
static bool is_ipv4_loopback(const char *host) {
    if (strncmp(host, "127.", 4) != 0) {
        return false;
    }
    host += 3;
    for (int i = 0; i < 3; i++) {
        size_t digits = *host == '.' ? strspn(host + 1, "0123456789") : 0;
        if (digits == 0 || digits > 3 || strtol(host + 1, NULL, 10) > 255) {
            return false;
        }
        host += digits + 1;
    }
    return *host == '\0';
}

bool fm_url_is_loopback(const struct fm_url *url) {
    return strcmp(url->host, "localhost") == 0 || strcmp(url->host, "::1") == 0 || is_ipv4_loopback(url->host);
}
