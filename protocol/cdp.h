/*
 * The Chrome DevTools Protocol over a pipe: JSON messages that end with a NUL. Calls have numbers, and each gets one
 * answer; everything else that comes is an event. Pure but for the write function; one thread.
 */
#ifndef FM_PROTOCOL_CDP_H
#define FM_PROTOCOL_CDP_H

#include "base/buf.h"

struct json_object;

#define FM_CDP_MESSAGE_MAX (48u * 1024u * 1024u) /* bytes: a screenshot as base64, with room */
#define FM_CDP_PENDING_MAX 512u

/*
 * `error`: the browser's error text; NULL: the call succeeded, and `result` is the answer. Both are valid during the
 * call.
 */
typedef void fm_cdp_answered(void *context, struct json_object *result, const char *error);

struct fm_cdp_pending {
    int id; /* 0: free */
    fm_cdp_answered *answered;
};

struct fm_cdp {
    void *context;
    bool (*write)(void *context, const char *data, size_t len);
    void (*event)(void *context, const char *session, const char *method, struct json_object *params);
    struct fm_buf in;
    size_t looked; /* bytes of `in` that are known to have no NUL */
    struct fm_buf scratch;
    struct fm_cdp_pending pending[FM_CDP_PENDING_MAX];
    int last_id;   /* the id of the latest call */
    int answering; /* while `answered` runs: the answered call's id (last_id right after fm_cdp_call); else 0 */
    bool closed;
};

/* The functions and the context must outlive `cdp`. */
void fm_cdp_init(struct fm_cdp *cdp, void *context, bool (*write)(void *context, const char *data, size_t len),
                 void (*event)(void *context, const char *session, const char *method, struct json_object *params));
void fm_cdp_free(struct fm_cdp *cdp);

/*
 * Calls a method. `session`: NULL or "" for the browser itself. `params`: a JSON object as text, or NULL. `answered`
 * may be NULL: then the answer is skipped. False: the call could not be written, and gets no answer.
 */
FM_MUST_USE bool fm_cdp_call(struct fm_cdp *cdp, const char *session, const char *method, const char *params,
                             fm_cdp_answered *answered);

/* Makes the answer of the call `id` (the `last_id` after fm_cdp_call) unwanted: if it comes, it is skipped. */
void fm_cdp_forget(struct fm_cdp *cdp, int id);

/* Takes bytes of the pipe, and calls back for each whole message. False: the bytes are not messages of the protocol,
 * and nothing more is taken. */
FM_MUST_USE bool fm_cdp_feed(struct fm_cdp *cdp, const char *data, size_t len);

/* Stops all callbacks from now on. A callback may call it. */
void fm_cdp_close(struct fm_cdp *cdp);

#endif
