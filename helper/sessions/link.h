/*
 * The front on a thread of its own, with this process as its host: session mode is a client of the main mode. One
 * thread may use a link.
 */
#ifndef FM_SESSIONS_LINK_H
#define FM_SESSIONS_LINK_H

#include "front/front.h"
#include "protocol/inbound.h"

struct fm_link {
    int from_front; /* polls readable when there is something for fm_link_receive */
    int to_front;   /* -1: closed */
    int front_in;   /* the front's end of the pipes */
    int front_out;  /* the same; the front closes it */
    struct fm_front *front;
    const struct fm_options *options;
    struct fm_inbound inbound;
    struct fm_buf frame; /* a call in the making */
    int64_t last_id;
    pthread_mutex_t lock; /* guards what is below */
    pthread_cond_t changed;
    bool ended;
};

/* Starts the front; `front` and `options` must outlive the process's main function. Returns 0 or an errno value. */
FM_MUST_USE int fm_link_start(struct fm_link *link, struct fm_front *front, const struct fm_options *options);

/*
 * Begins a call; the caller writes its params, one value, and then has it sent. Sending blocks as long as the front
 * takes to read, a second at most. Returns the call's id in `*id`; false: out of memory, or the front hangs.
 */
struct fm_json_writer fm_link_call_begin(struct fm_link *link, const char *method);
FM_MUST_USE bool fm_link_call_send(struct fm_link *link, int64_t *id);

/*
 * Reads what the front has sent, and hands it to `handler`; blocks when there is nothing. False: nothing more comes.
 */
FM_MUST_USE bool fm_link_receive(struct fm_link *link, const struct fm_inbound_handler *handler);

/*
 * Ends the front with all that it does, by the end of its input, and waits for that: less than two seconds. False: it
 * hangs, or one of its threads does; then nothing is freed, and only _exit is left.
 */
FM_MUST_USE bool fm_link_end(struct fm_link *link);

#endif
