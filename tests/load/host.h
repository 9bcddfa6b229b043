/*
 * A host: one fm-proxy that this program started, and the wire to it. Frames are queued and go out as the front reads
 * them; input is split into bodies, which are passed to `take`. One thread; only host_turn blocks.
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

/* Begins a message; the caller writes its params and queues it. `id` 0: a notification. */
struct fm_json_writer host_begin(struct host *host, int64_t id, const char *method);
void host_send(struct host *host);

/* Sends a call without params. */
void host_call(struct host *host, int64_t id, const char *method);

/* Queues bytes unchanged. */
void host_send_raw(struct host *host, const char *bytes, size_t len);

/* Moves bytes both ways; waits up to `wait_us` for something to move. */
void host_turn(struct host *host, int64_t wait_us);

/* True until everything is sent, or the front is gone. */
bool host_sending(const struct host *host);

/* Closes the front's stdin. */
void host_hang_up(struct host *host);

/*
 * Reads what is left, waits up to `wait_ms` for the front's end and frees the host. Returns its exit status, -N for
 * signal N, or HOST_STAYED if it had to be killed.
 */
#define HOST_STAYED (-1000)
int host_end(struct host *host, int64_t wait_ms);

/* The id of a reply that has our usual beginning, or -1. Cheaper than parsing. */
int64_t reply_id(const char *body, size_t len);

#endif
