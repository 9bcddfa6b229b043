/*
 * A host: one fm-proxy that this program started, and the wire to it. Frames are queued and sent as fast as the front
 * reads them. Input is split into bodies, which `take` gets. There is one thread, and only host_turn blocks.
 */
#ifndef TESTS_LOAD_HOST_H
#define TESTS_LOAD_HOST_H

#include "protocol/frame.h"
#include "protocol/rpc.h"

#include <sys/types.h>

enum wire {
    WIRE_PIPE,
    WIRE_SOCKET /* a pair of stream sockets for each direction, as Node makes them */
};

struct host {
    pid_t pid;
    int to;   /* its stdin; -1: closed */
    int from; /* its stdout */
    struct fm_framer framer;
    struct fm_buf message; /* the message that is being written */
    struct fm_buf out;     /* frames; the first `out_sent` bytes have gone */
    size_t out_sent;
    size_t mark;           /* set by host_mark, as a place in `out`; 0: none, or it has been reached */
    int64_t mark_us;       /* when the write began that reached it */
    int64_t may_read;      /* in bytes; below 0: no limit */
    bool ended;            /* its output ended */
    const char *fault;     /* what is wrong if its output is not frames; else NULL */
    uint64_t bytes_in;     /* of all that was read */
    void (*take)(void *context, const char *body, size_t len);
    void *context;
};

/* Where the programs are; set once. */
extern const char *host_programs;

/* The size of the front's store, as an argument in bytes: small, so that responses soon make room for others. */
extern const char *host_store_bytes;

/* A model's file, for the real engine beside the fake one; NULL: only the fake engine. */
extern const char *host_model;

/* Starts fm-proxy with the fake engine. Ends this program if that fails. */
void host_start(struct host *host, enum wire wire, void (*take)(void *context, const char *body, size_t len),
                void *context);

/* Begins a message. The caller writes its params and sends it by host_send. `id` 0: a notification. */
struct fm_json_writer host_begin(struct host *host, int64_t id, const char *method);
void host_send(struct host *host);

/* Sends a call without params. */
void host_call(struct host *host, int64_t id, const char *method);

/* Queues bytes unchanged. */
void host_send_raw(struct host *host, const char *bytes, size_t len);

/* Notes in `mark_us` when what has been queued until now is written. */
void host_mark(struct host *host);

/* Moves bytes both ways. Waits up to `wait_us` until some bytes can move. */
void host_turn(struct host *host, int64_t wait_us);

/* True while something is not sent yet and the front is there. */
bool host_sending(const struct host *host);

/* Closes the front's stdin. */
void host_hang_up(struct host *host);

/*
 * Reads what is left, waits up to `wait_ms` for the front's end and frees the host. Returns its exit status, -N for
 * signal N, or HOST_STAYED if it had to be killed.
 */
#define HOST_STAYED (-1000)
int host_end(struct host *host, int64_t wait_ms);

/* Returns the id of a reply that begins in our usual way, or -1. This is cheaper than parsing. */
int64_t reply_id(const char *body, size_t len);

#endif
