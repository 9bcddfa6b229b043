/*
 * The sending half of a connection: whole frames from any thread, written to one descriptor by one thread.
 *
 * Senders append to a buffer and never wait for the descriptor; the writer thread takes all that is there and writes it
 * in as few calls as the descriptor allows. A sender that can wait asks for *room* first, and is called back when the
 * other side has taken enough. When the other side takes no byte for `stall_ms`, or is gone, or the buffer would pass
 * its maximum, the outbox has *failed*: what is queued is dropped, later frames too, and `on_fail` is called once.
 * Without memory for a frame it is closed: that frame and later ones are dropped, what is queued still goes out.
 *
 * Frames that can be large are not queued but *pulled*: the writer asks `next` for one when it has written what was
 * queued. So it is built when the other side has taken all before it, and what is queued meanwhile waits for this one
 * alone; what has to go before it is *marked*. An outbox that has failed goes on pulling, and drops what it gets.
 */
#ifndef FM_FRONT_OUTBOX_H
#define FM_FRONT_OUTBOX_H

#include "base/buf.h"

#include <pthread.h>
#include <stdint.h>

enum fm_outbox_failure {
    FM_OUTBOX_GONE,      /* the other side is gone, or has stalled, or let too much collect */
    FM_OUTBOX_NO_MEMORY, /* a frame could not be queued */
};

struct fm_outbox_options {
    int fd;           /* owned from the start on, also when it fails */
    size_t max;       /* bytes that may be queued after the last frame there was room for */
    size_t room;      /* bytes: there is room while less is queued; a frame of any size is taken then */
    int64_t stall_ms; /* how long the other side may take no byte */
    void (*on_fail)(
        void *context,
        enum fm_outbox_failure failure); /* from the writer thread or a sender, without the outbox's lock; or NULL */
    void (*on_room)(void *context);      /* from the writer thread, without the lock; or NULL */
    /*
     * The next frame that is pulled: valid until the next call. False: there is none now. From the writer thread,
     * without the lock; NULL: nothing is pulled.
     */
    bool (*next)(void *context, const char **frame, size_t *len);
    void *context;
};

struct fm_outbox {
    struct fm_outbox_options options;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* something queued, taken, or the state changed */
    struct fm_buf queued;   /* frames that the writer has not taken yet */
    struct fm_buf writing;  /* frames that the writer is busy with; its alone */
    size_t writing_left;    /* bytes of `writing` not written yet */
    size_t last_with_room;  /* bytes of the last frame there was room for */
    bool room_wanted;       /* somebody waits for on_room */
    bool more;              /* `next` may have a frame */
    bool pulling;           /* the writer pulls in this turn; its alone, but for fm_outbox_is_empty */
    bool shut;              /* the descriptor is closed; the writer's alone */
    bool closed;            /* takes no more frames */
    bool closing;           /* write what is queued, then end */
    bool failed;
    bool ended; /* the writer thread is done with everything */
};

/* Starts the writer thread, which closes the descriptor at its end. Returns 0 or an errno value. */
FM_MUST_USE int fm_outbox_start(struct fm_outbox *outbox, const struct fm_outbox_options *options);

/* Queues one whole frame (copied). Any thread; never blocks on the descriptor. */
void fm_outbox_send(struct fm_outbox *outbox, const char *frame, size_t len);

/* Takes no more frames from here on; what is queued goes out. on_fail is not called. Any thread, never blocks. */
void fm_outbox_close(struct fm_outbox *outbox);

/* True when there is room, or all is dropped anyway. When it is false, on_room is called once as soon as there is. */
FM_MUST_USE bool fm_outbox_has_room(struct fm_outbox *outbox);

/* `next` has a frame. Any thread, with any lock of the caller's; never blocks. */
void fm_outbox_poke(struct fm_outbox *outbox);

/*
 * From `next`, once, when it returns a frame: what is queued now goes out before that frame, what is queued later after
 * it. Never blocks.
 */
void fm_outbox_mark(struct fm_outbox *outbox);

/* True when all that was queued or pulled is written, or dropped. Any thread, never blocks. */
FM_MUST_USE bool fm_outbox_is_empty(struct fm_outbox *outbox);

/*
 * Ends the writer thread: waits up to `flush_ms` for what is queued to go out, then gives up on it. The outbox's memory
 * is free again afterwards; nobody may use it any more. False when the thread can't be brought to its end, because it
 * hangs in a write (to a paused terminal): then nothing is freed, and only _exit is left.
 */
FM_MUST_USE bool fm_outbox_stop(struct fm_outbox *outbox, int64_t flush_ms);

#endif
