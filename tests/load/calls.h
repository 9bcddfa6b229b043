/*
 * Create calls and all messages of the front about them. Each stream is put together and checked against PROTOCOL.md's
 * rules (sequence numbers without gaps, deltas that add up to the final text, one terminal event and nothing after it,
 * one result). A broken rule goes to report_fault.
 */
#ifndef TESTS_LOAD_CALLS_H
#define TESTS_LOAD_CALLS_H

#include "host.h"

struct json_object;
struct json_tokener;

#define CALLS_MAX 1024 /* the 1,024th call after a call uses the same slot */

enum call_api { CALL_RESPONSES, CALL_CHAT };

struct call {
    int64_t id; /* 0: this slot has not been used yet */
    enum call_api api;
    bool done;     /* the result has come */
    bool ended;    /* the terminal event (or finish chunk) has come */
    char code[24]; /* "ok", or the code of the result's error */
    char answer_id[64];
    char terminal[32];
    struct fm_buf text; /* of the deltas */
    int64_t events;
    int64_t deltas;
    int64_t started_us;
    int64_t ended_us; /* the result's arrival */
};

struct calls {
    struct host *host;
    struct json_tokener *tokener;
    struct call slots[CALLS_MAX];
    int64_t last_id;
    unsigned open;
    int64_t finished;
    /* Takes replies and notifications that do not belong to a create call. For a reply, `message` is its `result` or
     * `error`. */
    void (*other)(void *context, int64_t id, struct json_object *message);
    void *context;
};

/* `calls` is large: keep it static. Ids are counted from 1. */
void calls_init(struct calls *calls, struct host *host);
void calls_free(struct calls *calls);

/*
 * Starts a streamed call with the prompt `script`; returns the call. `limits`: JSON of `fm`, or NULL. The caller may
 * read the call until its slot is used again.
 */
struct call *call_create(struct calls *calls, enum call_api api, const char *script, const char *limits);

/* The call with this id; NULL if it never existed, or its slot was used again. */
struct call *call_by_id(struct calls *calls, int64_t id);

/* Handles one message from the front. */
void calls_take(struct calls *calls, const char *body, size_t len);

/* Calls host_turn until no call is open. False if that takes longer than `wait_ms` or the front is gone. */
bool calls_wait(struct calls *calls, int64_t wait_ms);

/* Makes one short call, so that the engine runs and everything is warmed up. */
void calls_warm_up(struct calls *calls);

#endif
