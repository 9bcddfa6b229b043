/*
 * Server-sent events: takes bytes of a response, and hands out whole events (WHATWG HTML, 9.2.6, "Interpreting an event
 * stream"). The fields `id` and `retry`, which are about reconnecting, are skipped. An event that the end of the stream
 * cuts is skipped too.
 *
 * It makes no difference where the pieces end. Pure; one thread at a time.
 */
#ifndef FM_ENGINE_REMOTE_SSE_H
#define FM_ENGINE_REMOTE_SSE_H

#include "base/buf.h"

#define FM_SSE_EVENT_MAX (16u << 20) /* bytes of a line, and of the data of an event */

/* An event. Its pointers are only valid during the call of `take`; its texts are not NUL-terminated. */
struct fm_sse_event {
    const char *name; /* value of the field `event`; empty: no such field, which means "message" */
    size_t name_len;
    const char *data; /* values of the `data` fields, with \n between them */
    size_t len;
};

/* Takes an event. False: the callback wants no more. */
typedef bool fm_sse_take_fn(void *state, const struct fm_sse_event *event);

enum fm_sse_status {
    FM_SSE_MORE,
    FM_SSE_STOPPED,   /* `take` wants no more; later bytes are ignored */
    FM_SSE_TOO_LONG,  /* a line or an event is longer than FM_SSE_EVENT_MAX */
    FM_SSE_NO_MEMORY, /* bytes were lost */
};

struct fm_sse {
    fm_sse_take_fn *take;
    void *state;
    struct fm_buf line; /* the line that has begun */
    struct fm_buf name;
    struct fm_buf data;
    bool has_data;
    bool begun;    /* the first line is over: a byte order mark is no longer possible */
    bool after_cr; /* if a line feed comes next, it belongs to the previous line end */
    enum fm_sse_status status;
};

/* Allocates nothing; freeing twice is harmless. `take` is called inside fm_sse_push. */
void fm_sse_init(struct fm_sse *sse, fm_sse_take_fn *take, void *state);
void fm_sse_free(struct fm_sse *sse);

/* Takes `len` bytes, which may end anywhere. Once the status is not FM_SSE_MORE, it does not change any more. */
FM_MUST_USE enum fm_sse_status fm_sse_push(struct fm_sse *sse, const char *bytes, size_t len);

#endif
