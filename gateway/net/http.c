/*
 * HTTP answers. Each has headers that limit what a page can do: scripts, styles and connections come only from the
 * gateway, no page can frame it, browsers do not guess types, and other sites get no referrer.
 */
#include "net/http.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The constant of RFC 6455, 1.3, for the answer to a handshake. */
#define WEBSOCKET_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

/*
 * Lit and DOMPurify each have a policy of Trusted Types: Lit for its templates, DOMPurify for the HTML that it has
 * cleaned.
 */
static const char guard[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html dompurify jarvis\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Permissions-Policy: camera=(), geolocation=(), microphone=(), payment=(), usb=()\r\n"
    "Connection: close\r\n";

const char gw_http_too_many[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\n"
                                "Connection: close\r\n\r\n";

static const char *phrase_of(int status) {
    switch (status) {
    case 200: return "OK";
    case 304: return "Not Modified";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 414: return "URI Too Long";
    case 421: return "Misdirected Request";
    case 426: return "Upgrade Required";
    case 431: return "Request Header Fields Too Large";
    case 505: return "HTTP Version Not Supported";
    default: return "Bad Request";
    }
}

struct answer {
    int status;
    const char *type;
    const char *cache;
    const char *more; /* headers, each with its line end */
    const char *body;
    size_t len;
    bool head_only;
};

static void write_answer(struct fm_buf *out, const struct answer *answer) {
    char text[512];
    snprintf(text, sizeof text, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: %s\r\n%s",
             answer->status, phrase_of(answer->status), answer->type, answer->len, answer->cache, answer->more);
    fm_buf_append_str(out, text);
    fm_buf_append_str(out, guard);
    fm_buf_append_str(out, "\r\n");
    if (!answer->head_only && answer->len) {
        fm_buf_append(out, answer->body, answer->len);
    }
}

static void write_text(struct fm_buf *out, int status, const char *text, const char *more, bool head_only) {
    char body[256];
    int len = snprintf(body, sizeof body, "%s\n", text);
    write_answer(out,
                 &(struct answer){status, "text/plain; charset=utf-8", "no-store", more, body, (size_t)len, head_only});
}

void gw_http_refuse(struct fm_buf *out, int status, const char *reason) {
    const char *more = status == 405   ? "Allow: GET, HEAD\r\n"
                       : status == 426 ? "Sec-WebSocket-Version: 13\r\nUpgrade: websocket\r\n"
                                       : "";
    write_text(out, status, reason, more, false);
}

static bool same_text(const char *text, const char *other, size_t len) {
    return strlen(text) == len && memcmp(text, other, len) == 0;
}

static void write_health(struct fm_buf *out, bool head_only, int64_t uptime) {
    char body[64];
    int len = snprintf(body, sizeof body, "{\"status\":\"ok\",\"uptime\":%lld}", (long long)uptime);
    write_answer(out, &(struct answer){200, "application/json", "no-store", "", body, (size_t)len, head_only});
}

void gw_http_answer(struct fm_buf *out, const struct gw_request *request, const struct gw_files *files,
                    int64_t uptime) {
    char etag[64];
    if (same_text("/health", request->path, request->path_len)) {
        write_health(out, request->head_only, uptime);
        return;
    }
    const struct gw_file *file = gw_files_find(files, request->path, request->path_len);
    if (!file) {
        write_text(out, 404,
                   files->count ? "There is no such file." : "The page is not installed; GET /health answers.", "",
                   request->head_only);
        return;
    }
    snprintf(etag, sizeof etag, "ETag: %s\r\n", file->etag);
    bool same = request->etag && same_text(file->etag, request->etag, request->etag_len);
    write_answer(out, &(struct answer){same ? 304 : 200, file->type, "no-cache", etag, file->data, same ? 0 : file->len,
                                       request->head_only || same});
}

void gw_http_upgrade(struct fm_buf *out, const char *key) {
    unsigned char text[GW_WEBSOCKET_KEY_LEN + sizeof WEBSOCKET_GUID];
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned char accept[32];
    memcpy(text, key, GW_WEBSOCKET_KEY_LEN);
    memcpy(text + GW_WEBSOCKET_KEY_LEN, WEBSOCKET_GUID, sizeof WEBSOCKET_GUID);
    if (EVP_Digest(text, sizeof text - 1, digest, NULL, EVP_sha1(), NULL) != 1) {
        abort(); /* out of memory */
    }
    EVP_EncodeBlock(accept, digest, 20);
    fm_buf_append_str(out, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           "Sec-WebSocket-Accept: ");
    fm_buf_append_str(out, (const char *)accept);
    fm_buf_append_str(out, "\r\n\r\n");
}
