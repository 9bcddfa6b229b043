/*
 * What a request of the Responses API goes on with: stored responses, and stored items that its own stand for. The
 * front has the store; what is in it is known here. Pure, but for what the source does.
 */
#ifndef FM_SURFACE_CONVERSATION_H
#define FM_SURFACE_CONVERSATION_H

#include "base/buf.h"
#include "base/error.h"
#include "surface/ids.h"

struct json_object;

/* Of a request; part of struct fm_request. */
struct fm_conversation {
    char *previous_id;   /* owned; NULL: none */
    struct fm_buf first; /* what goes before all items, as entries of the job's `messages` */
    struct fm_buf last;  /* what goes behind them, the same */
    struct fm_buf input; /* the request's items as they are kept, a JSON list; items.h */
    bool refers;         /* some of them stand for stored ones */
    bool images;         /* there are some in what fm_conversation_resolve has written */
};

/* Harmless twice. */
void fm_conversation_free(struct fm_conversation *conversation);

/*
 * Copies into `kept` (zeroed) what is stored of a request that ends before fm_conversation_resolve has made it whole:
 * its input, unless some of that stands for what is not known yet, and `previous_id`. False when out of memory.
 */
FM_MUST_USE bool fm_conversation_copy_kept(struct fm_conversation *kept, const struct fm_conversation *from);

/* A response as it is stored. The texts are JSON. */
struct fm_stored_response {
    char id[FM_ID_SIZE];
    char previous_id[FM_ID_SIZE]; /* ""; none */
    struct fm_buf object;         /* the Response object; owned */
    struct fm_buf input;          /* its own input items, a list; owned */
    struct fm_buf stream;         /* what its events have that the object has not: replay.c; owned */
};

/* Harmless twice. */
void fm_stored_response_free(struct fm_stored_response *stored);

/* Where stored responses come from. Both functions may block; FM_NOT_FOUND: there is none. */
struct fm_conversation_source {
    void *context;
    /* Fills `stored`, the caller's to free. */
    enum fm_code (*get)(void *context, const char *id, struct fm_stored_response *stored, struct fm_error *error);
    /* Writes the id of the last response that has the item `item_id`, in its input or its output. */
    enum fm_code (*find_item)(void *context, const char *item_id, char id[FM_ID_SIZE], struct fm_error *error);
};

/*
 * Makes the request whole. `messages` (initialised, empty) gets the entries of the job's `messages`; each item of
 * `conversation->input` that stood for another is replaced by that. INVALID_REQUEST with the path of the field when
 * something is not stored, an output has no call, or there is no text; CONTEXT_OVERFLOW when it is more than an engine
 * can be told; else what the source says. `conversation` can be freed whatever came.
 */
FM_MUST_USE enum fm_code fm_conversation_resolve(struct fm_conversation *conversation,
                                                 const struct fm_conversation_source *source, struct fm_buf *messages,
                                                 struct fm_error *error);

/* Looks whether a text of the store is JSON that can be sent as it is. INTERNAL: it is damaged. */
FM_MUST_USE enum fm_code fm_stored_json_check(const struct fm_buf *text, struct fm_error *error);

/*
 * Reads a JSON text of the store into a tree, the caller's to put. INTERNAL: it is damaged, or out of memory.
 */
FM_MUST_USE enum fm_code fm_stored_json_read(const struct fm_buf *text, struct json_object **root,
                                             struct fm_error *error);

#endif
