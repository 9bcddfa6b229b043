/*
 * The sending half of a connection: any thread sends whole frames, and one thread writes them to one descriptor.
 *
 * Senders append to a buffer and never wait for the descriptor. The writer thread takes all frames in the buffer and
 * writes them in as few calls as the descriptor allows. A sender that can wait asks for *room* first, and is called
 * back when the other side has taken enough. The outbox has *failed* when the other side takes no byte for `stall_ms`,
 * or is gone, or when the buffer would exceed its maximum. Queued and later frames are then dropped, and `on_fail` is
 * called once. Without memory for a frame the outbox is closed: that frame and later ones are dropped, but queued
 * frames are still written.
 *
 * Frames that can be large are not queued but *pulled*: the writer asks `next` for such a frame when it has written all
 * queued frames. So a large frame is built only when the other side has taken all earlier ones, and frames that are
 * queued meanwhile wait for this one frame only. Frames that must be written before the pulled frame are *marked*. An
 * outbox that has failed goes on pulling, and drops the frames.
 */
#ifndef FM_FRONT_OUTBOX_H
#define FM_FRONT_OUTBOX_H

#include "base/buf.h"

#include <pthread.h>
#include <stdint.h>

enum fm_outbox_failure {
    FM_OUTBOX_GONE,      /* the other side is gone or stalled, or too many bytes are queued */
    FM_OUTBOX_NO_MEMORY, /* a frame could not be queued */
};

struct fm_outbox_options {
    int fd;           /* the descriptor, owned from the start on, also if the start fails */
    size_t max;       /* bytes that may be queued, besides the last frame for which there was room */
    size_t room;      /* bytes: there is room while less is queued. If there is room, a frame of any size is taken */
    int64_t stall_ms; /* how long the other side may take no bytes at all */
    void (*on_fail)(
        void *context,
        enum fm_outbox_failure failure); /* the writer thread or a sender calls it, without the lock; or NULL */
    void (*on_room)(void *context);      /* the writer thread calls it, without the lock; or NULL */
    /*
     * Gives the next frame that is pulled, valid until the next call. False: there is no frame now. Called from the
     * writer thread, without the lock. NULL: nothing is pulled.
     */
    bool (*next)(void *context, const char **frame, size_t *len);
    void *context;
};

struct fm_outbox {
    struct fm_outbox_options options;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* signals that bytes were queued or taken, or that the state changed */
    struct fm_buf queued;   /* frames that the writer has not taken yet */
    struct fm_buf writing;  /* frames that the writer is writing; only the writer uses it */
    size_t writing_left;    /* bytes of `writing` not written yet */
    size_t last_with_room;  /* bytes of the last frame for which there was room */
    bool room_wanted;       /* a sender waits for on_room */
    bool more;              /* `next` may have a frame */
    bool pulling;           /* the writer pulls in this turn; only the writer and fm_outbox_is_empty use it */
    bool shut;              /* the descriptor is closed; only the writer uses it */
    bool closed;            /* the outbox takes no more frames */
    bool closing;           /* the writer must write what is queued, then end */
    bool failed;
    bool ended; /* the writer thread has finished */
};

/* Starts the writer thread, which closes the descriptor at its end. Returns 0 or an errno value. */
FM_MUST_USE int fm_outbox_start(struct fm_outbox *outbox, const struct fm_outbox_options *options);

/* Queues one whole frame (copied). Any thread; never blocks on the descriptor. */
void fm_outbox_send(struct fm_outbox *outbox, const char *frame, size_t len);

/*
 * Makes the outbox take no more frames; queued frames are still written. on_fail is not called. Any thread, never
 * blocks.
 */
void fm_outbox_close(struct fm_outbox *outbox);

/*
 * True when there is room, or when all frames are dropped anyway. If false, on_room is called once, as soon as there is
 * room.
 */
FM_MUST_USE bool fm_outbox_has_room(struct fm_outbox *outbox);

/* Reports that `next` has a frame. Any thread, with any lock of the caller's; never blocks. */
void fm_outbox_poke(struct fm_outbox *outbox);

/*
 * Marks the frames that are queued so far: they are written before the frame that `next` returns, and later ones after
 * it. Only `next` calls this, once, when it returns a frame. Never blocks.
 */
void fm_outbox_mark(struct fm_outbox *outbox);

/* True when all queued and pulled frames are written or dropped. Any thread, never blocks. */
FM_MUST_USE bool fm_outbox_is_empty(struct fm_outbox *outbox);

/*
 * Ends the writer thread: waits up to `flush_ms` until queued frames are written, then gives up. Afterwards the
 * outbox's memory is freed, and no thread may use the outbox. False when the thread does not end because it hangs in a
 * write (to a paused terminal). In that case nothing is freed, and the process can only call _exit.
 */
FM_MUST_USE bool fm_outbox_stop(struct fm_outbox *outbox, int64_t flush_ms);

#endif
