/*
 * The sending half of a connection: whole frames from any thread, written to one descriptor by one thread.
 *
 * Senders append to a buffer and never wait for the descriptor; the writer thread takes all that is there and writes it
 * in as few calls as the descriptor allows. When the other side takes no byte for `stall_ms`, or is gone, or the buffer
 * would pass its maximum, the outbox has *failed*: what is queued is dropped, later frames too, and `on_fail` is called
 * once.
 */
#ifndef FM_FRONT_OUTBOX_H
#define FM_FRONT_OUTBOX_H

#include "base/buf.h"

#include <pthread.h>
#include <stdint.h>

struct fm_outbox {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* something queued, taken, or the state changed */
    struct fm_buf queued;   /* frames that the writer has not taken yet */
    struct fm_buf writing;  /* frames that the writer is busy with; its alone but for `len` */
    size_t writing_left;    /* bytes of `writing` not written yet */
    int fd;                 /* owned, closed by the writer thread at its end */
    int64_t stall_ms;
    bool closing; /* write what is queued, then end */
    bool failed;
    bool ended; /* the writer thread is done with everything */
    void (*on_fail)(void *context);
    void *context;
};

/*
 * Starts the writer thread on `fd`, which it owns from here on, also on failure. `max` bytes may be queued, except that
 * one frame of any size goes into an empty queue. `on_fail` (may be NULL) is called from the writer thread or from a
 * sender, without the outbox's lock. Returns 0 or an errno value.
 */
FM_MUST_USE int fm_outbox_start(struct fm_outbox *outbox, int fd, size_t max, int64_t stall_ms,
                                void (*on_fail)(void *context), void *context);

/* Queues one whole frame (copied). Any thread; never blocks on the descriptor. */
void fm_outbox_send(struct fm_outbox *outbox, const char *frame, size_t len);

/*
 * Waits up to `wait_ms` until at most `bytes` are queued; true when it is so, or the outbox has failed. For threads
 * that may wait: back-pressure on an engine.
 */
FM_MUST_USE bool fm_outbox_wait_below(struct fm_outbox *outbox, size_t bytes, int64_t wait_ms);

/*
 * Ends the writer thread: waits up to `flush_ms` for what is queued to go out, then gives up on it. The outbox's memory
 * is free again afterwards; nobody may use it any more. False when the thread can't be brought to its end, because it
 * hangs in a write (to a paused terminal): then nothing is freed, and only _exit is left.
 */
FM_MUST_USE bool fm_outbox_stop(struct fm_outbox *outbox, int64_t flush_ms);

#endif
