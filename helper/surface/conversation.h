/*
 * The conversation that a request of the Responses API continues: stored responses, and stored items to which the
 * request's items refer. The front has the store, but only this file knows the meaning of what is stored. Pure, except
 * for the calls of the source.
 */
#ifndef FM_SURFACE_CONVERSATION_H
#define FM_SURFACE_CONVERSATION_H

#include "base/buf.h"
#include "base/error.h"
#include "surface/stored.h"

struct json_object;

/* Most bytes of a job's messages, which are JSON. An engine takes 20,000,000 bytes, with tools and formats. */
#define FM_MESSAGES_MAX (16u << 20)

/* Calling it twice is harmless. */
void fm_conversation_free(struct fm_conversation *conversation);

/*
 * For a request that ends before fm_conversation_resolve. Copies the parts of `conversation` that are stored into
 * `kept` (zeroed): `previous_id`, and the input, unless the input refers to items that are not known yet. False when
 * out of memory.
 */
FM_MUST_USE bool fm_conversation_copy_kept(struct fm_conversation *kept, const struct fm_conversation *from);

/* Calling it twice is harmless. */
void fm_stored_response_free(struct fm_stored_response *stored);

/* The source of stored responses. Both functions may block. FM_NOT_FOUND: not stored. */
struct fm_conversation_source {
    void *context;
    /* Fills `stored`; the caller frees it. */
    enum fm_code (*get)(void *context, const char *id, struct fm_stored_response *stored, struct fm_error *error);
    /* Writes the id of the last response that has the item `item_id`, in its input or its output. */
    enum fm_code (*find_item)(void *context, const char *item_id, char id[FM_ID_SIZE], struct fm_error *error);
};

/*
 * Completes the conversation. `messages` (initialised, empty) gets the entries of the job's `messages`; each item of
 * `conversation->input` that refers to another item is replaced by that item. FM_INVALID_REQUEST, with the path of the
 * field: something is not stored, an output has no call, or there is no text. FM_CONTEXT_OVERFLOW: the conversation is
 * larger than an engine can take. Other errors come from the source. The caller still frees `conversation`, on failure
 * too.
 */
FM_MUST_USE enum fm_code fm_conversation_resolve(struct fm_conversation *conversation,
                                                 const struct fm_conversation_source *source, struct fm_buf *messages,
                                                 struct fm_error *error);

/* Checks that a text from the store is JSON that can be sent unchanged. FM_INTERNAL: the text is damaged. */
FM_MUST_USE enum fm_code fm_stored_json_check(const struct fm_buf *text, struct fm_error *error);

/*
 * Reads a JSON text from the store into a tree, which the caller releases. FM_INTERNAL: it is damaged, or out of
 * memory.
 */
FM_MUST_USE enum fm_code fm_stored_json_read(const struct fm_buf *text, struct json_object **root,
                                             struct fm_error *error);

#endif
