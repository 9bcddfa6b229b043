/*
 * Passes the host's bytes on to dispatch. Most messages are dispatched in the reader's thread. Two kinds would stop the
 * reader for a while: a long message, which takes time to parse and check, and a short message that comes while a large
 * frame is built. A separate thread works on these messages and on those that come after them, and the reader goes on
 * meanwhile. Messages are dispatched in their order; only those that must not wait (FM_METHOD_AT_ONCE) are dispatched
 * at once. The thread ends when nothing waits.
 */
#ifndef FM_FRONT_INTAKE_H
#define FM_FRONT_INTAKE_H

#include "front/dispatch.h"

struct fm_intake_entry;

struct fm_intake {
    struct fm_inbound inbound;       /* only the reader uses this and `dispatcher` */
    struct fm_dispatcher dispatcher; /* dispatches messages that do not wait */
    pthread_mutex_t lock;            /* guards the members below */
    pthread_cond_t changed;          /* the thread has taken an entry, or has ended */
    struct fm_intake_entry *first;
    struct fm_intake_entry **last; /* where the next entry goes */
    size_t bytes;                  /* bytes of the waiting entries, and of the entry that the thread works on */
    bool running;                  /* the thread exists */
    bool ending;                   /* entries that wait are dropped */
};

/* Starts empty. `front` must outlive the intake. Allocates nothing. */
void fm_intake_init(struct fm_intake *intake, struct fm_front *front);

/*
 * Takes what the host sent. Returns NULL; for a broken frame, a static string that says what is wrong with it. Call it
 * only on the reader's thread. It waits if too many bytes wait already.
 */
FM_MUST_USE const char *fm_intake_feed(struct fm_intake *intake, const char *data, size_t len);

/*
 * Waits until the thread has ended: after all waiting messages (`finish`), or after the message that it works on. Call
 * it only on the reader's thread.
 */
void fm_intake_stop(struct fm_intake *intake, bool finish);

/* Frees the intake. Call it after fm_intake_stop. */
void fm_intake_free(struct fm_intake *intake);

#endif
