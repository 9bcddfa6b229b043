/*
 * The policy of request heads. llhttp (strict, which is its default) finds the lines; this file decides which of them
 * are allowed. A header that the policy knows may occur only once.
 *
 * A page of another site may resolve its name to 127.0.0.1, but it sends that name as Host. A page that opens a
 * WebSocket sends its own Origin. Both are refused here, and no answer of the gateway allows another origin to read it.
 */
#include "net/head.h"

#include <llhttp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum known { HOST, ORIGIN, UPGRADE, CONNECTION, WS_KEY, WS_VERSION, LENGTH, ENCODING, IF_NONE_MATCH, KNOWN_COUNT };

static const char *const names[KNOWN_COUNT] = {"Host",
                                               "Origin",
                                               "Upgrade",
                                               "Connection",
                                               "Sec-WebSocket-Key",
                                               "Sec-WebSocket-Version",
                                               "Content-Length",
                                               "Transfer-Encoding",
                                               "If-None-Match"};

struct span {
    const char *at;
    size_t len;
    unsigned count; /* how many there are */
};

struct reading {
    llhttp_t parser;
    struct span url;
    struct span field; /* the name of the header that is being read */
    unsigned value_parts;
    unsigned headers;
    struct span known[KNOWN_COUNT];
    bool complete;
    bool folded;
};

static struct reading *reading_of(llhttp_t *parser) {
    return parser->data;
}

static int on_url(llhttp_t *parser, const char *at, size_t len) {
    reading_of(parser)->url = (struct span){at, len, reading_of(parser)->url.count + 1};
    return 0;
}

static int on_field(llhttp_t *parser, const char *at, size_t len) {
    struct reading *reading = reading_of(parser);
    reading->field = (struct span){at, len, 1};
    reading->value_parts = 0;
    return ++reading->headers > GW_HEADERS_MAX ? HPE_USER : 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t len) {
    struct reading *reading = reading_of(parser);
    if (++reading->value_parts > 1) { /* the value goes on in the next line, which RFC 9112, section 5.2, forbids */
        reading->folded = true;
        return HPE_USER;
    }
    while (len && (at[len - 1] == ' ' || at[len - 1] == '\t')) {
        len--;
    }
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        if (strlen(names[i]) == reading->field.len &&
            strncasecmp(names[i], reading->field.at, reading->field.len) == 0) {
            reading->known[i] = (struct span){at, len, reading->known[i].count + 1};
        }
    }
    return 0;
}

static int on_complete(llhttp_t *parser) {
    reading_of(parser)->complete = true;
    return HPE_PAUSED;
}

size_t gw_head_end(const char *bytes, size_t len, size_t from) {
    static const char empty_line[] = "\r\n\r\n";
    for (size_t i = from > 3 ? from - 3 : 0; i + 4 <= len; i++) {
        if (bytes[i] == '\r' && memcmp(bytes + i, empty_line, 4) == 0) {
            return i + 4;
        }
    }
    return 0;
}

static bool span_equals(struct span span, const char *text) {
    return span.len == strlen(text) && strncasecmp(span.at, text, span.len) == 0;
}

/* Whether the host is a name of this machine with our port. Browsers leave out port 80. */
static bool is_ours(struct span host, unsigned port) {
    static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]"};
    char text[32];
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        snprintf(text, sizeof text, "%s:%u", hosts[i], port);
        if (span_equals(host, text) || (port == 80 && span_equals(host, hosts[i]))) {
            return true;
        }
    }
    return false;
}

static bool is_our_origin(struct span origin, const struct gw_head_policy *policy) {
    static const char scheme[] = "http://";
    const size_t skipped = sizeof scheme - 1;
    if (origin.len <= skipped || strncasecmp(origin.at, scheme, skipped) != 0) {
        return false;
    }
    struct span host = {origin.at + skipped, origin.len - skipped, 1};
    return is_ours(host, policy->port) || (policy->dev && is_ours(host, GW_DEV_PORT));
}

/* Whether the list has the word. Commas separate its words. */
static bool has_word(struct span list, const char *word) {
    const char *end = list.at + list.len;
    for (const char *at = list.at; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        struct span part = {at, (size_t)(stop - at), 1};
        for (; part.len && (*part.at == ' ' || *part.at == '\t'); part.len--) {
            part.at++;
        }
        while (part.len && (part.at[part.len - 1] == ' ' || part.at[part.len - 1] == '\t')) {
            part.len--;
        }
        if (span_equals(part, word)) {
            return true;
        }
        at = stop + (comma != NULL);
    }
    return false;
}

static int refuse_head(int status, const char *text, const char **reason) {
    *reason = text;
    return status;
}

static int check_path(struct span url, const char **reason) {
    if (url.count != 1 || url.len == 0 || url.at[0] != '/') {
        return refuse_head(400, "The request must name a path of this server.", reason);
    }
    if (url.len > GW_PATH_LEN_MAX) {
        return refuse_head(414, "The path is too long.", reason);
    }
    if (memchr(url.at, '?', url.len) || memchr(url.at, '#', url.len)) {
        return refuse_head(400, "No path here has a query. The token belongs in the first message of the WebSocket.",
                           reason);
    }
    return 0;
}

static int check_origin(const struct span known[], const struct gw_head_policy *policy, const char **reason) {
    if (known[HOST].count != 1) {
        return refuse_head(400, "The request must have one Host header.", reason);
    }
    if (!is_ours(known[HOST], policy->port)) {
        return refuse_head(421, "This server answers as 127.0.0.1, localhost and [::1] with its own port only.",
                           reason);
    }
    if (known[ORIGIN].count > 1 || (known[ORIGIN].count == 1 && !is_our_origin(known[ORIGIN], policy))) {
        return refuse_head(403, "Pages of other sites may not use this server.", reason);
    }
    return 0;
}

static int check_body(const struct span known[], const char **reason) {
    if (known[ENCODING].count || known[LENGTH].count > 1 || (known[LENGTH].count && !span_equals(known[LENGTH], "0"))) {
        return refuse_head(400, "No request here has a body.", reason);
    }
    return 0;
}

static bool is_websocket_key(struct span key) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < key.len && i < GW_WEBSOCKET_KEY_LEN - 2; i++) {
        if (!memchr(digits, key.at[i], sizeof digits - 1)) {
            return false;
        }
    }
    return key.count == 1 && key.len == GW_WEBSOCKET_KEY_LEN && memcmp(key.at + key.len - 2, "==", 2) == 0;
}

static int check_upgrade(const struct span known[], struct gw_request *request, const char **reason) {
    if (known[UPGRADE].count == 0) {
        return 0;
    }
    if (known[UPGRADE].count > 1 || !span_equals(known[UPGRADE], "websocket") || known[CONNECTION].count != 1 ||
        !has_word(known[CONNECTION], "upgrade") || request->head_only) {
        return refuse_head(400, "The only upgrade here is GET to websocket.", reason);
    }
    if (known[WS_VERSION].count != 1 || !span_equals(known[WS_VERSION], "13")) {
        return refuse_head(426, "The WebSocket version must be 13.", reason);
    }
    if (!is_websocket_key(known[WS_KEY])) {
        return refuse_head(400, "Sec-WebSocket-Key must be 16 bytes in base64.", reason);
    }
    request->websocket = true;
    request->key = known[WS_KEY].at;
    return 0;
}

/* Applies the policy to a head that the parser has found. */
static int decide(const struct reading *reading, const struct gw_head_policy *policy, struct gw_request *request,
                  const char **reason) {
    uint8_t method = reading->parser.method;
    if (reading->parser.http_major != 1 || reading->parser.http_minor != 1) {
        return refuse_head(505, "The HTTP version must be 1.1.", reason);
    }
    int status = check_path(reading->url, reason);
    status = status ? status : check_origin(reading->known, policy, reason);
    if (!status && method != HTTP_GET && method != HTTP_HEAD) {
        status = refuse_head(405, "The method must be GET or HEAD.", reason);
    }
    status = status ? status : check_body(reading->known, reason);
    if (status) {
        return status;
    }
    *request =
        (struct gw_request){.path = reading->url.at,
                            .path_len = reading->url.len,
                            .head_only = method == HTTP_HEAD,
                            .etag = reading->known[IF_NONE_MATCH].count == 1 ? reading->known[IF_NONE_MATCH].at : NULL,
                            .etag_len = reading->known[IF_NONE_MATCH].len};
    return check_upgrade(reading->known, request, reason);
}

int gw_head_read(const char *bytes, size_t len, const struct gw_head_policy *policy, struct gw_request *request,
                 const char **reason) {
    llhttp_settings_t settings;
    struct reading reading = {0};
    llhttp_settings_init(&settings);
    settings.on_url = on_url;
    settings.on_header_field = on_field;
    settings.on_header_value = on_value;
    settings.on_headers_complete = on_complete;
    llhttp_init(&reading.parser, HTTP_REQUEST, &settings);
    reading.parser.data = &reading;
    enum llhttp_errno fault = llhttp_execute(&reading.parser, bytes, len);
    if (reading.complete && fault == HPE_PAUSED) {
        return decide(&reading, policy, request, reason);
    }
    if (reading.headers > GW_HEADERS_MAX) {
        return refuse_head(431, "There are too many headers.", reason);
    }
    return refuse_head(400, reading.folded ? "A header must be on one line." : "This is not an HTTP request.", reason);
}
