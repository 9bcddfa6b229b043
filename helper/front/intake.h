/*
 * From the host's bytes to dispatch. A short message is dispatched in the reader's thread. A long one takes a while to
 * parse and check, and a short one that comes while a large frame is built may have to wait for that: these get a
 * thread, and the reader goes on meanwhile. What may not wait (FM_METHOD_AT_ONCE) is dispatched at once, everything else
 * in its order. The thread ends when nothing waits.
 */
#ifndef FM_FRONT_INTAKE_H
#define FM_FRONT_INTAKE_H

#include "front/dispatch.h"

struct fm_intake_entry;

struct fm_intake {
    struct fm_inbound inbound;       /* the reader's alone, as the next */
    struct fm_dispatcher dispatcher; /* for what does not wait */
    pthread_mutex_t lock;            /* guards what follows */
    pthread_cond_t changed;          /* the thread has taken an entry, or has ended */
    struct fm_intake_entry *first;
    struct fm_intake_entry **last; /* where the next entry goes */
    size_t bytes;                  /* of the entries, and of the one that the thread works on */
    bool running;                  /* there is a thread */
    bool ending;                   /* what waits is dropped */
};

/* `front` outlives it. Allocates nothing. */
void fm_intake_init(struct fm_intake *intake, struct fm_front *front);

/*
 * Takes what the host sent. NULL, or on a broken frame what is wrong with it (a static string). The reader's thread
 * alone; waits where too much waits already.
 */
FM_MUST_USE const char *fm_intake_feed(struct fm_intake *intake, const char *data, size_t len);

/*
 * Waits until the thread has ended: after all that waits (`finish`), or after the message that it works on. The reader's
 * thread.
 */
void fm_intake_stop(struct fm_intake *intake, bool finish);

/* After that. */
void fm_intake_free(struct fm_intake *intake);

#endif
