/*
 * Runs the front on its own thread, with this process as its host: session mode is a client of the main mode. Only one
 * thread may use a link.
 */
#ifndef FM_SESSIONS_LINK_H
#define FM_SESSIONS_LINK_H

#include "front/front.h"
#include "protocol/inbound.h"

struct fm_link {
    int from_front; /* becomes readable when fm_link_receive would not block */
    int to_front;   /* -1: closed */
    int front_in;   /* the front's ends of the pipes */
    int front_out;  /* written by the front, which closes it */
    struct fm_front *front;
    const struct fm_options *options;
    struct fm_inbound inbound;
    struct fm_buf frame; /* the call that is being written */
    int64_t last_id;
    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t changed;
    bool ended;
};

/* Starts the front; `front` and `options` must outlive the process's main function. Returns 0 or an errno value. */
FM_MUST_USE int fm_link_start(struct fm_link *link, struct fm_front *front, const struct fm_options *options);

/*
 * Make a call in three steps: begin it, write its params (one value), then send it. Sending blocks until the front has
 * read the call, for a second at most. `*id` is the call's id. False: out of memory, or the front hangs.
 */
struct fm_json_writer fm_link_call_begin(struct fm_link *link, const char *method);
FM_MUST_USE bool fm_link_call_send(struct fm_link *link, int64_t *id);

/*
 * Reads what the front has sent and passes it to `handler`; blocks until something comes. False: the front has ended.
 */
FM_MUST_USE bool fm_link_receive(struct fm_link *link, const struct fm_inbound_handler *handler);

/*
 * Ends the front by closing its input, and waits until the front has ended, for less than two seconds. False: the front
 * or one of its threads hangs. In that case nothing is freed, and the process must end by _exit.
 */
FM_MUST_USE bool fm_link_end(struct fm_link *link);

#endif
