/*
 * Server-sent events: bytes of a response in, whole events out (WHATWG HTML, 9.2.6, "Interpreting an event stream").
 * The fields `id` and `retry`, which are about reconnecting, are skipped, and so is an event that the stream's end
 * cuts.
 *
 * Where the pieces end makes no difference. Pure; one thread at a time.
 */
#ifndef FM_ENGINE_REMOTE_SSE_H
#define FM_ENGINE_REMOTE_SSE_H

#include "base/buf.h"

#define FM_SSE_EVENT_MAX (16u << 20) /* bytes of a line, and of the data of an event */

/* An event. Its pointers are only valid during the call of `take`; its texts are not NUL-terminated. */
struct fm_sse_event {
    const char *name; /* of the field `event`; empty: none, which stands for "message" */
    size_t name_len;
    const char *data; /* lines of several `data` fields, with \n between them */
    size_t len;
};

/* False: nothing more is wanted. */
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
    bool begun;    /* the first line is over: no byte order mark may come any more */
    bool after_cr; /* a line feed that comes next belongs to the line end before it */
    enum fm_sse_status status;
};

/* Allocates nothing; freeing twice is harmless. `take` is called inside fm_sse_push. */
void fm_sse_init(struct fm_sse *sse, fm_sse_take_fn *take, void *state);
void fm_sse_free(struct fm_sse *sse);

/* Takes `len` bytes, which may end anywhere. Once the status is not FM_SSE_MORE, it does not change any more. */
FM_MUST_USE enum fm_sse_status fm_sse_push(struct fm_sse *sse, const char *bytes, size_t len);

#endif
