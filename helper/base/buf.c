/*
 * A byte buffer that grows by doubling, up to its maximum. Once it has failed, it stays as it was until
 * fm_buf_reset.
 */
#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

#define FM_BUF_FIRST 256u

void fm_buf_init(struct fm_buf *buf, size_t max) {
    *buf = (struct fm_buf){.max = max};
}

void fm_buf_free(struct fm_buf *buf) {
    free(buf->data);
    fm_buf_init(buf, buf->max);
}

void fm_buf_reset(struct fm_buf *buf) {
    buf->len = 0;
    buf->failed = false;
}

bool fm_buf_reserve(struct fm_buf *buf, size_t more) {
    if (buf->failed || more > buf->max - buf->len) {
        buf->failed = true;
        return false;
    }
    size_t need = buf->len + more;
    if (need <= buf->cap) {
        return true;
    }
    size_t cap = buf->cap ? buf->cap : FM_BUF_FIRST;
    while (cap < need) {
        cap += cap;
    }
    if (cap > buf->max) {
        cap = buf->max;
    }
    char *data = realloc(buf->data, cap);
    if (!data) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->cap = cap;
    return true;
}

void fm_buf_append(struct fm_buf *buf, const void *bytes, size_t len) {
    if (len && fm_buf_reserve(buf, len)) {
        memcpy(buf->data + buf->len, bytes, len);
        buf->len += len;
    }
}

void fm_buf_append_str(struct fm_buf *buf, const char *str) {
    fm_buf_append(buf, str, strlen(str));
}

void fm_buf_append_char(struct fm_buf *buf, char c) {
    fm_buf_append(buf, &c, 1);
}

void fm_buf_drop_front(struct fm_buf *buf, size_t n) {
    if (n < buf->len) {
        memmove(buf->data, buf->data + n, buf->len - n);
    }
    buf->len -= n;
}
