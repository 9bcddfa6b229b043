/*
 * Fuzzes gw_head_read. An accepted head has one Host, which is ours, no Origin except ours, and no query. With the
 * policy for another port, the same head is never accepted.
 */
#include "net/head.h"
#include "tests/fuzz/fuzz.h"

#include <strings.h>

/* Returns how often `word` is in the text, in upper or lower case. */
static size_t occurrences(const char *text, size_t len, const char *word) {
    size_t count = 0;
    size_t word_len = strlen(word);
    for (size_t i = 0; i + word_len <= len; i++) {
        count += strncasecmp(text + i, word, word_len) == 0;
    }
    return count;
}

static void expect_let_through(const char *head, size_t len, const struct gw_request *request) {
    static const struct gw_head_policy other = {.port = 4000};
    struct gw_request ignored;
    const char *reason;
    HOLDS(request->path_len > 0 && request->path_len <= GW_PATH_LEN_MAX && request->path[0] == '/');
    HOLDS(request->path >= head && request->path + request->path_len <= head + len);
    HOLDS(!memchr(request->path, '?', request->path_len));
    HOLDS(occurrences(head, len, "\r\nHost:") == 1);
    HOLDS(occurrences(head, len, ":18789") >= 1);
    HOLDS(occurrences(head, len, "\r\nOrigin:") <= 1);
    HOLDS(occurrences(head, len, "\r\nTransfer-Encoding:") == 0);
    HOLDS(!request->websocket || (request->key >= head && request->key + GW_WEBSOCKET_KEY_LEN <= head + len));
    HOLDS(gw_head_read(head, len, &other, &ignored, &reason) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct gw_head_policy policy = {.port = 18789};
    if (size == 0) {
        return 0;
    }
    char *head = exact_copy(data, size);
    size_t end = gw_head_end(head, size, 0);
    struct gw_request request = {0};
    const char *reason = NULL;
    for (size_t i = 1; i < size && i < 64; i++) { /* the same head in two pieces */
        size_t first = gw_head_end(head, i, 0);
        HOLDS((first ? first : gw_head_end(head, size, i)) == end);
    }
    int status = gw_head_read(head, end ? end : size, &policy, &request, &reason);
    HOLDS(status == 0 || (status >= 400 && status < 600));
    HOLDS(!status == !reason);
    if (!status) {
        expect_let_through(head, end ? end : size, &request);
    }
    free(head);
    return 0;
}
