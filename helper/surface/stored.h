/*
 * What is stored: a response, and the part of a request that continues stored responses. conversation.h has the
 * functions.
 */
#ifndef FM_SURFACE_STORED_H
#define FM_SURFACE_STORED_H

#include "base/buf.h"
#include "surface/ids.h"

/* The part of struct fm_request that belongs to the conversation. */
struct fm_conversation {
    char *previous_id;   /* owned; NULL: none */
    struct fm_buf first; /* entries of the job's `messages` that come before all items */
    struct fm_buf last;  /* entries that come after all items */
    struct fm_buf input; /* the request's items as they are stored, a JSON list; items.h */
    bool refers;         /* some of the items refer to stored items */
    bool images;         /* the messages from fm_conversation_resolve have images */
};

/* A response as it is stored. The texts are JSON. */
struct fm_stored_response {
    char id[FM_ID_SIZE];
    char previous_id[FM_ID_SIZE]; /* "": none */
    struct fm_buf object;         /* the Response object; owned */
    struct fm_buf input;          /* the response's own input items, a list; owned */
    struct fm_buf stream;         /* data that the response's events need besides the object: replay.c; owned */
};

#endif
