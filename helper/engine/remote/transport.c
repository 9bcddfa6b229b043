/*
 * The transfers. Each has a handle of libcurl and is on the list from its start to its end. `data` and `done` may
 * cancel or start other transfers, so the list is only walked where neither is called.
 */
#include "engine/remote/transport.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/remote/failure.h"
#include "engine/remote/retry_after.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTIONS_MAX 64
#define DRAIN_MS        1000 /* see fm_transfer_detach */
#define HEADER_MAX      256  /* bytes of a header's value that are of interest */
#define LINE_MAX_BYTES  (FM_KEY_MAX + 512u)

struct fm_transfer {
    struct fm_transport *transport;
    struct fm_transfer *next;
    struct fm_transfer **link; /* the pointer that points to this transfer */
    fm_curl_easy *easy;
    struct curl_slist *headers;
    struct fm_call call;
    struct fm_buf body;
    struct fm_buf refusal; /* body of an answer with another status */
    char text[FM_CURL_ERROR_SIZE];
    int64_t deadline_ms; /* deadline for the next event; 0: no limit */
    bool begun;          /* the answer has begun: its head is complete */
    bool detached;
    bool over; /* `data` wants no more */
    long status;
    char retry_after[HEADER_MAX];
    char retry_after_ms[HEADER_MAX];
    char location[HEADER_MAX];
    char date[HEADER_MAX];
    char type[HEADER_MAX];
    char encoding[HEADER_MAX];
};

/* ---- the list ---- */

static void enlist(struct fm_transport *transport, struct fm_transfer *transfer) {
    transfer->next = transport->first;
    transfer->link = &transport->first;
    if (transfer->next) {
        transfer->next->link = &transfer->next;
    }
    transport->first = transfer;
    transport->count++;
}

static void destroy(struct fm_transfer *transfer) {
    struct fm_transport *transport = transfer->transport;
    const struct fm_curl *curl = transport->curl;
    *transfer->link = transfer->next;
    if (transfer->next) {
        transfer->next->link = transfer->link;
    }
    transport->count--;
    if (transfer->easy) {
        curl->multi_remove_handle(transport->multi, transfer->easy);
        curl->easy_cleanup(transfer->easy);
    }
    curl->slist_free_all(transfer->headers);
    fm_buf_free(&transfer->body);
    fm_buf_free(&transfer->refusal);
    free(transfer);
}

void fm_transfer_cancel(struct fm_transfer *transfer) {
    if (transfer) {
        destroy(transfer);
    }
}

bool fm_transfer_streams(const struct fm_transfer *transfer) {
    return strncasecmp(transfer->type, "text/", 5) == 0;
}

void fm_transfer_detach(struct fm_transfer *transfer) {
    if (transfer) {
        transfer->detached = true;
        transfer->deadline_ms = fm_now_ms() + DRAIN_MS;
    }
}

/* ---- the answer ---- */

static void set_deadline(struct fm_transfer *transfer, int64_t ms) {
    transfer->deadline_ms = ms > 0 ? fm_now_ms() + ms : 0;
}

/* Copies the value of the header `name` into `value`, if `line` is that header. */
static void take_header(const char *line, size_t len, const char *name, char *value) {
    size_t name_len = strlen(name);
    if (len <= name_len || strncasecmp(line, name, name_len) != 0 || line[name_len] != ':') {
        return;
    }
    const char *from = line + name_len + 1;
    const char *end = line + len;
    while (from < end && (*from == ' ' || *from == '\t')) {
        from++;
    }
    while (end > from && (unsigned char)end[-1] <= ' ') {
        end--;
    }
    size_t size = (size_t)(end - from) < HEADER_MAX ? (size_t)(end - from) : HEADER_MAX - 1;
    memcpy(value, from, size);
    value[size] = '\0';
}

static size_t on_header(char *line, size_t one, size_t len, void *argument) {
    struct fm_transfer *transfer = argument;
    (void)one;
    if (len > 5 && strncasecmp(line, "HTTP/", 5) == 0) { /* head of the next answer, after a status of 100 to 199 */
        transfer->retry_after[0] = transfer->retry_after_ms[0] = transfer->location[0] = '\0';
        transfer->date[0] = transfer->type[0] = transfer->encoding[0] = '\0';
    }
    take_header(line, len, "retry-after", transfer->retry_after);
    take_header(line, len, "retry-after-ms", transfer->retry_after_ms);
    take_header(line, len, "location", transfer->location);
    take_header(line, len, "date", transfer->date);
    take_header(line, len, "content-type", transfer->type);
    take_header(line, len, "content-encoding", transfer->encoding);
    if (len > 0 && (line[0] == '\r' || line[0] == '\n')) {
        transfer->transport->curl->easy_getinfo(transfer->easy, FM_CURLINFO_RESPONSE_CODE, &transfer->status);
        transfer->begun = transfer->status >= 200;
    }
    return len;
}

/* Checks an answer of status 200 before its body. Returns what is wrong with it; NULL: nothing. */
static const char *look_at_headers(const struct fm_transfer *transfer) {
    static const char stream[] = "text/event-stream";
    static const char json[] = "application/json";
    if (transfer->encoding[0] && strcasecmp(transfer->encoding, "identity") != 0) {
        return "sent an encoding that was not asked for";
    }
    if (strncasecmp(transfer->type, json, sizeof json - 1) == 0) { /* some servers don't stream */
        return NULL;
    }
    if (!transfer->call.stream) {
        return "answered with something else than JSON";
    }
    return strncasecmp(transfer->type, stream, sizeof stream - 1) == 0
               ? NULL
               : "answered without a stream: its Content-Type is not text/event-stream";
}

static size_t on_data(char *bytes, size_t one, size_t len, void *argument) {
    struct fm_transfer *transfer = argument;
    (void)one;
    if (transfer->detached) {
        return len;
    }
    set_deadline(transfer, transfer->call.endpoint->silence_ms);
    if (transfer->status != 200) {
        size_t room = FM_FAILURE_BODY_MAX - transfer->refusal.len;
        fm_buf_append(&transfer->refusal, bytes, len < room ? len : room);
        return len;
    }
    if (look_at_headers(transfer)) {
        return 0; /* libcurl then reports a write error; the end of the transfer handles it */
    }
    bool more = transfer->call.data(transfer->call.state, bytes, len);
    transfer->over = !more && !transfer->detached;
    return transfer->over ? 0 : len;
}

/* ---- the end ---- */

static enum fm_code fail_by_status(struct fm_transfer *transfer, struct fm_error *error) {
    int64_t date = fm_http_date(transfer->date);
    const struct fm_refusal refusal = {
        .host = transfer->call.endpoint->host,
        .status = transfer->status,
        .body = transfer->refusal.data,
        .len = transfer->refusal.len,
        .retry_after = transfer->retry_after,
        .retry_after_ms = transfer->retry_after_ms,
        .location = transfer->location,
        .now = date >= 0 ? date : fm_wall_seconds(),
    };
    return fm_failure_of_status(&refusal, transfer->transport->secrets, error);
}

static enum fm_transfer_phase phase_of(const struct fm_transfer *transfer) {
    double connected = 0;
    transfer->transport->curl->easy_getinfo(transfer->easy, FM_CURLINFO_PRETRANSFER_TIME, &connected);
    return transfer->begun ? FM_PHASE_ANSWERING : connected > 0 ? FM_PHASE_WAITING : FM_PHASE_CONNECTING;
}

/* The proxy's status for the last CONNECT; 0: none. */
static long proxy_status(const struct fm_transfer *transfer) {
    long status = 0;
    transfer->transport->curl->easy_getinfo(transfer->easy, FM_CURLINFO_HTTP_CONNECTCODE, &status);
    return status;
}

/* Reports how the transfer ended, from libcurl's `result`. */
static enum fm_code judge(struct fm_transfer *transfer, int result, struct fm_error *error) {
    const struct fm_curl *curl = transfer->transport->curl;
    const char *host = transfer->call.endpoint->host;
    const char *fault = transfer->begun && transfer->status == 200 ? look_at_headers(transfer) : NULL;
    if (fault && (result == FM_CURLE_OK || result == FM_CURLE_WRITE_ERROR)) {
        return fm_fail(error, FM_INTERNAL, "%s %s", host, fault);
    }
    if (transfer->begun && (transfer->status >= 300 || (result == FM_CURLE_OK && transfer->status != 200))) {
        return fail_by_status(transfer, error); /* also if the answer's body was cut short */
    }
    long refused = transfer->begun ? 0 : proxy_status(transfer);
    if (refused == 403 || refused == 407) {
        return fm_failure_of_proxy(host, refused, error);
    }
    if (result != FM_CURLE_OK || !transfer->begun) {
        result = result ? result : FM_CURLE_GOT_NOTHING;
        const char *text = transfer->text[0] ? transfer->text : curl->easy_strerror(result);
        return fm_failure_of_transfer(host, result, text, phase_of(transfer), transfer->transport->secrets, error);
    }
    return FM_OK;
}

/*
 * Ends a transfer and reports its end once. The transfer is removed first, because the callback may start the next one.
 */
static void finish_transfer(struct fm_transfer *transfer, int result) {
    struct fm_error error = {.code = FM_OK};
    const struct fm_call call = transfer->call;
    bool detached = transfer->detached;
    enum fm_code code = transfer->over ? FM_CANCELLED : judge(transfer, result, &error);
    destroy(transfer);
    if (!detached) {
        call.done(call.state, code, &error);
    }
}

static void finish_all(struct fm_transport *transport) {
    const struct fm_curl *curl = transport->curl;
    struct fm_curl_message *message;
    int left;
    while ((message = curl->multi_info_read(transport->multi, &left))) {
        struct fm_transfer *transfer = NULL;
        int result = message->data.result;
        curl->easy_getinfo(message->easy, FM_CURLINFO_PRIVATE, &transfer);
        if (message->kind == FM_CURLMSG_DONE && transfer) {
            finish_transfer(transfer, result);
        }
    }
}

/* The first transfer whose time is over; NULL: none. Shortens `wait` so that it ends at the next deadline. */
static struct fm_transfer *first_late(struct fm_transport *transport, int64_t *wait) {
    int64_t now = fm_now_ms();
    for (struct fm_transfer *transfer = transport->first; transfer; transfer = transfer->next) {
        int64_t left = transfer->deadline_ms - now;
        if (transfer->deadline_ms > 0 && left <= 0) {
            return transfer;
        }
        if (transfer->deadline_ms > 0 && left < *wait) {
            *wait = left;
        }
    }
    return NULL;
}

void fm_transport_wait(struct fm_transport *transport, int64_t ms) {
    if (!first_late(transport, &ms) && ms > 0) {
        transport->curl->multi_poll(transport->multi, NULL, 0, (int)ms, NULL);
    }
}

void fm_transport_move(struct fm_transport *transport) {
    struct fm_transfer *late;
    int64_t wait = INT64_MAX;
    int running;
    transport->curl->multi_perform(transport->multi, &running);
    finish_all(transport);
    while ((late = first_late(transport, &wait))) {
        finish_transfer(late, FM_CURLE_OPERATION_TIMEDOUT);
    }
}

void fm_transport_wake(struct fm_transport *transport) {
    transport->curl->multi_wakeup(transport->multi);
}

/* ---- the start ---- */

static bool add_header(struct fm_transfer *transfer, const char *name, const char *before, const char *value) {
    const struct fm_curl *curl = transfer->transport->curl;
    char line[LINE_MAX_BYTES];
    int len = snprintf(line, sizeof line, *value ? "%s: %s%s" : "%s;%s%s", name, before, value);
    struct curl_slist *longer = len < (int)sizeof line ? curl->slist_append(transfer->headers, line) : NULL;
    fm_wipe(line, (size_t)len < sizeof line ? (size_t)len : sizeof line);
    transfer->headers = longer ? longer : transfer->headers;
    return longer != NULL;
}

static bool is_configured(const struct fm_endpoint *endpoint, const char *name) {
    for (size_t i = 0; i < endpoint->header_count; i++) {
        if (strcasecmp(endpoint->headers[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool add_key(struct fm_transfer *transfer) {
    const struct fm_endpoint *endpoint = transfer->call.endpoint;
    const char *header = endpoint->key_header;
    if (!endpoint->key) {
        return true;
    }
    header = header ? header : endpoint->dialect == FM_DIALECT_MESSAGES ? "x-api-key" : "authorization";
    return add_header(transfer, header, strcasecmp(header, "authorization") == 0 ? "Bearer " : "", endpoint->key);
}

static bool add_headers(struct fm_transfer *transfer) {
    const struct fm_endpoint *endpoint = transfer->call.endpoint;
    const struct fm_curl *curl = transfer->transport->curl;
    bool ok = add_header(transfer, "accept", "", transfer->call.stream ? "text/event-stream" : "application/json") &&
              add_key(transfer);
    if (ok && transfer->call.body) {
        ok = add_header(transfer, "content-type", "", "application/json");
    }
    if (ok && !is_configured(endpoint, "user-agent")) {
        ok = add_header(transfer, "user-agent", "", "fm-proxy/" FM_VERSION);
    }
    if (ok && endpoint->dialect == FM_DIALECT_MESSAGES && !is_configured(endpoint, "anthropic-version")) {
        ok = add_header(transfer, "anthropic-version", "", "2023-06-01");
    }
    if (ok && endpoint->session_header && transfer->call.session) {
        ok = add_header(transfer, endpoint->session_header, "", transfer->call.session);
    }
    for (size_t i = 0; i < endpoint->header_count && ok; i++) {
        ok = add_header(transfer, endpoint->headers[i].name, "", endpoint->headers[i].value);
    }
    struct curl_slist *longer = ok ? curl->slist_append(transfer->headers, "Expect:") : NULL; /* saves a round trip */
    transfer->headers = longer ? longer : transfer->headers;
    return longer != NULL;
}

static bool set_up(struct fm_transfer *transfer) {
    const struct fm_curl *curl = transfer->transport->curl;
    const struct fm_endpoint *endpoint = transfer->call.endpoint;
    fm_curl_easy *easy = transfer->easy;
    char url[4096];
    int len = snprintf(url, sizeof url, "%s%s%s", endpoint->base, transfer->call.path, endpoint->query);
    bool ok = len < (int)sizeof url && add_headers(transfer) &&
              curl->easy_setopt(easy, FM_CURLOPT_URL, url) == FM_CURLE_OK &&
              curl->easy_setopt(easy, FM_CURLOPT_PROXY, endpoint->proxy ? endpoint->proxy : "") == FM_CURLE_OK &&
              curl->easy_setopt(easy, FM_CURLOPT_NOPROXY, endpoint->proxy ? "" : "*") == FM_CURLE_OK &&
              curl->easy_setopt(easy, FM_CURLOPT_HTTPHEADER, transfer->headers) == FM_CURLE_OK;
    if (ok && endpoint->ca_file) {
        ok = curl->easy_setopt(easy, FM_CURLOPT_CAINFO, endpoint->ca_file) == FM_CURLE_OK;
    }
    curl->easy_setopt(easy, FM_CURLOPT_HTTP_VERSION, (long)FM_CURL_HTTP_VERSION_1_1);
    curl->easy_setopt(easy, FM_CURLOPT_SSLVERSION, (long)FM_CURL_SSLVERSION_TLSV1_2); /* TLS 1.2 or later */
    curl->easy_setopt(easy, FM_CURLOPT_PROTOCOLS, (long)FM_CURLPROTO_HTTP_AND_HTTPS);
    curl->easy_setopt(easy, FM_CURLOPT_FOLLOWLOCATION, 0L);
    curl->easy_setopt(easy, FM_CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl->easy_setopt(easy, FM_CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(easy, FM_CURLOPT_TCP_KEEPALIVE, 1L);
    curl->easy_setopt(easy, FM_CURLOPT_CONNECTTIMEOUT_MS, (long)endpoint->connect_ms);
    curl->easy_setopt(easy, FM_CURLOPT_ERRORBUFFER, transfer->text);
    curl->easy_setopt(easy, FM_CURLOPT_PRIVATE, transfer);
    curl->easy_setopt(easy, FM_CURLOPT_HEADERDATA, transfer);
    curl->easy_setopt(easy, FM_CURLOPT_HEADERFUNCTION, on_header);
    curl->easy_setopt(easy, FM_CURLOPT_WRITEDATA, transfer);
    curl->easy_setopt(easy, FM_CURLOPT_WRITEFUNCTION, on_data);
    if (transfer->call.body) {
        curl->easy_setopt(easy, FM_CURLOPT_POST, 1L);
        curl->easy_setopt(easy, FM_CURLOPT_POSTFIELDSIZE_LARGE, (int64_t)transfer->body.len);
        ok &= curl->easy_setopt(easy, FM_CURLOPT_POSTFIELDS, transfer->body.data) == FM_CURLE_OK;
    }
    return ok;
}

struct fm_transfer *fm_transport_start(struct fm_transport *transport, const struct fm_call *call) {
    const struct fm_curl *curl = transport->curl;
    struct fm_transfer *transfer = calloc(1, sizeof *transfer);
    if (!transfer) {
        return NULL;
    }
    transfer->transport = transport;
    transfer->call = *call;
    if (call->body) {
        transfer->body = *call->body;
        fm_buf_init(call->body, call->body->max);
    }
    fm_buf_init(&transfer->refusal, FM_FAILURE_BODY_MAX);
    enlist(transport, transfer);
    transfer->easy = curl->easy_init();
    if (!transfer->easy || !set_up(transfer) || curl->multi_add_handle(transport->multi, transfer->easy) != 0) {
        destroy(transfer);
        return NULL;
    }
    set_deadline(transfer, call->endpoint->first_byte_ms);
    return transfer;
}

bool fm_transport_init(struct fm_transport *transport, const struct fm_curl *curl, const struct fm_secrets *secrets) {
    *transport = (struct fm_transport){.curl = curl, .secrets = secrets, .multi = curl->multi_init()};
    return transport->multi &&
           curl->multi_setopt(transport->multi, FM_CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_MAX) == 0;
}

void fm_transport_free(struct fm_transport *transport) {
    while (transport->first) {
        destroy(transport->first);
    }
    if (transport->multi) {
        transport->curl->multi_cleanup(transport->multi);
    }
    transport->multi = NULL;
}
