/* The outbox: its buffer, its writer thread, and its failures. */
#include "front/outbox.h"
#include "base/clock.h"
#include "base/platform.h"

#include <errno.h>

/* A buffer larger than this is freed after it has been written. */
#define KEEP_BYTES 262144u

/* While the descriptor takes nothing, the writer wakes this often, to see whether it must give up. */
#define POLL_SLICE_MS 100

static bool has_failed(struct fm_outbox *outbox) {
    pthread_mutex_lock(&outbox->lock);
    bool failed = outbox->failed;
    pthread_mutex_unlock(&outbox->lock);
    return failed;
}

static void report(struct fm_outbox *outbox, enum fm_outbox_failure failure) {
    if (outbox->options.on_fail) {
        outbox->options.on_fail(outbox->options.context, failure);
    }
}

static void fail_outbox(struct fm_outbox *outbox) {
    pthread_mutex_lock(&outbox->lock);
    bool first = !outbox->failed;
    outbox->failed = true;
    fm_buf_free(&outbox->queued);
    pthread_cond_broadcast(&outbox->changed);
    pthread_mutex_unlock(&outbox->lock);
    if (first) {
        report(outbox, FM_OUTBOX_GONE);
    }
}

static size_t pending(const struct fm_outbox *outbox) {
    return outbox->queued.len + outbox->writing_left;
}

/*
 * Waits until the descriptor takes bytes. False when the other side has taken none for the stall limit, or the outbox
 * failed meanwhile. A socket takes bytes again only when most of its data is read, so a decrease of its unread bytes
 * counts too.
 */
static bool wait_writable(struct fm_outbox *outbox) {
    struct fm_waited descriptor = {.fd = outbox->options.fd, .room = true};
    size_t unread = fm_socket_unread(descriptor.fd);
    int64_t waited = 0; /* a sum of slices, so that time in which the process was stopped does not count */
    while (waited < outbox->options.stall_ms && !has_failed(outbox)) {
        if (fm_wait(&descriptor, 1, POLL_SLICE_MS) > 0) {
            return true;
        }
        size_t unread_now = fm_socket_unread(descriptor.fd);
        waited = unread_now == unread ? waited + POLL_SLICE_MS : 0;
        unread = unread_now;
    }
    return false;
}

/* Notes that queued bytes were written. `left` bytes are not written yet. */
static void note_written(struct fm_outbox *outbox, size_t left) {
    pthread_mutex_lock(&outbox->lock);
    outbox->writing_left = left;
    bool call = outbox->room_wanted && pending(outbox) < outbox->options.room;
    outbox->room_wanted = outbox->room_wanted && !call;
    pthread_mutex_unlock(&outbox->lock);
    if (call) {
        outbox->options.on_room(outbox->options.context);
    }
}

/* False when the other side is gone or stalled. */
static bool write_out(struct fm_outbox *outbox, const char *at, size_t left, bool pulled) {
    while (left) {
        ssize_t sent = fm_write(outbox->options.fd, at, left);
        if (sent >= 0) {
            at += sent;
            left -= (size_t)sent;
            if (!pulled) {
                note_written(outbox, left);
            }
        } else if (errno != EAGAIN || !wait_writable(outbox)) {
            return false;
        }
    }
    return true;
}

/* Writes bytes, unless they must be dropped: the outbox has failed, or was closed before the frame was pulled. */
static void put_out(struct fm_outbox *outbox, const char *bytes, size_t len, bool pulled) {
    pthread_mutex_lock(&outbox->lock);
    bool dropped = outbox->failed || (pulled && outbox->closed);
    pthread_mutex_unlock(&outbox->lock);
    if (!dropped && !write_out(outbox, bytes, len, pulled)) {
        fail_outbox(outbox);
    }
}

/* Writes the bytes in `writing`. */
static void write_taken(struct fm_outbox *outbox) {
    put_out(outbox, outbox->writing.data, outbox->writing.len, false);
    fm_buf_reset(&outbox->writing);
}

/* Moves the queued bytes to `writing`, which is empty. */
static void take_locked(struct fm_outbox *outbox) {
    struct fm_buf empty = outbox->writing;
    outbox->writing = outbox->queued;
    outbox->writing_left = outbox->writing.len;
    outbox->queued = empty;
    if (empty.cap > KEEP_BYTES) {
        fm_buf_free(&outbox->queued);
    }
}

/* Waits for work, and takes the queued bytes. False when the thread has to end. */
static bool take_queued(struct fm_outbox *outbox) {
    pthread_mutex_lock(&outbox->lock);
    outbox->pulling = false;
    while (!outbox->queued.len && !outbox->more && !outbox->closing && outbox->shut == outbox->failed) {
        pthread_cond_wait(&outbox->changed, &outbox->lock);
    }
    bool goes_on = !outbox->closing || (outbox->queued.len && !outbox->failed);
    if (goes_on) {
        take_locked(outbox);
        outbox->pulling = outbox->more && !outbox->closing;
        outbox->more = false; /* a poke that comes from now on is for the next turn */
    }
    pthread_mutex_unlock(&outbox->lock);
    return goes_on;
}

static bool is_awaited(struct fm_outbox *outbox) {
    pthread_mutex_lock(&outbox->lock);
    bool awaited = outbox->queued.len > 0 || outbox->closing;
    pthread_mutex_unlock(&outbox->lock);
    return awaited;
}

/* Writes pulled frames: one, and more as long as nothing is queued. */
static void write_pulled(struct fm_outbox *outbox) {
    const char *frame;
    size_t len;
    bool more;
    do {
        more = outbox->options.next(outbox->options.context, &frame, &len);
        if (more) {
            write_taken(outbox); /* first the frames that were marked */
            put_out(outbox, frame, len, true);
        }
    } while (more && !is_awaited(outbox));
    if (more) {
        fm_outbox_poke(outbox);
    }
}

/* Closes the descriptor once. If the outbox has failed, this is early, so that the other side notices the end. */
static void shut(struct fm_outbox *outbox) {
    if (!outbox->shut) {
        outbox->shut = true;
        fm_close(outbox->options.fd);
    }
}

static void *writer_main(void *argument) {
    struct fm_outbox *outbox = argument;
    fm_thread_be_prompt();
    while (take_queued(outbox)) {
        write_taken(outbox);
        if (has_failed(outbox)) {
            shut(outbox);
        }
        if (outbox->pulling) {
            write_pulled(outbox);
        }
    }
    shut(outbox);
    pthread_mutex_lock(&outbox->lock);
    outbox->ended = true;
    pthread_cond_broadcast(&outbox->changed);
    pthread_mutex_unlock(&outbox->lock);
    return NULL;
}

int fm_outbox_start(struct fm_outbox *outbox, const struct fm_outbox_options *options) {
    int fd = options->fd;
    *outbox = (struct fm_outbox){.options = *options};
    fm_buf_init(&outbox->queued, PTRDIFF_MAX);
    fm_buf_init(&outbox->writing, PTRDIFF_MAX);
    pthread_mutex_init(&outbox->lock, NULL);
    int error = fm_cond_init(&outbox->changed);
    fm_set_nonblocking(fd);
    error = error ? error : fm_thread_start(writer_main, outbox);
    if (error) {
        fm_close(fd);
        outbox->ended = true;
    }
    return error;
}

void fm_outbox_send(struct fm_outbox *outbox, const char *frame, size_t len) {
    bool overflow = false;
    bool no_memory = false;
    pthread_mutex_lock(&outbox->lock);
    if (!outbox->failed && !outbox->closed) {
        bool has_room = pending(outbox) < outbox->options.room;
        outbox->last_with_room = has_room ? len : outbox->last_with_room;
        overflow = !has_room && pending(outbox) + len > outbox->options.max + outbox->last_with_room;
        if (!overflow) {
            fm_buf_append(&outbox->queued, frame, len);
        }
        no_memory = outbox->queued.failed;
        outbox->closed = no_memory;
        outbox->queued.failed = false; /* the buffer still has only complete frames */
        pthread_cond_broadcast(&outbox->changed);
    }
    pthread_mutex_unlock(&outbox->lock);
    if (overflow) {
        fail_outbox(outbox);
    } else if (no_memory) {
        report(outbox, FM_OUTBOX_NO_MEMORY);
    }
}

void fm_outbox_close(struct fm_outbox *outbox) {
    pthread_mutex_lock(&outbox->lock);
    outbox->closed = true;
    pthread_mutex_unlock(&outbox->lock);
}

bool fm_outbox_has_room(struct fm_outbox *outbox) {
    pthread_mutex_lock(&outbox->lock);
    bool room = outbox->failed || outbox->closed || pending(outbox) < outbox->options.room;
    outbox->room_wanted = !room;
    pthread_mutex_unlock(&outbox->lock);
    return room;
}

void fm_outbox_poke(struct fm_outbox *outbox) {
    pthread_mutex_lock(&outbox->lock);
    if (!outbox->more) {
        outbox->more = true;
        pthread_cond_broadcast(&outbox->changed);
    }
    pthread_mutex_unlock(&outbox->lock);
}

void fm_outbox_mark(struct fm_outbox *outbox) {
    pthread_mutex_lock(&outbox->lock);
    take_locked(outbox);
    pthread_mutex_unlock(&outbox->lock);
}

bool fm_outbox_is_empty(struct fm_outbox *outbox) {
    pthread_mutex_lock(&outbox->lock);
    bool empty = outbox->failed || (pending(outbox) == 0 && !outbox->pulling);
    pthread_mutex_unlock(&outbox->lock);
    return empty;
}

static void wait_for_end(struct fm_outbox *outbox, int64_t deadline) {
    while (!outbox->ended && fm_now_ms() < deadline) {
        fm_cond_wait_until(&outbox->changed, &outbox->lock, deadline);
    }
}

bool fm_outbox_stop(struct fm_outbox *outbox, int64_t flush_ms) {
    int64_t deadline = fm_now_ms() + flush_ms;
    pthread_mutex_lock(&outbox->lock);
    outbox->closing = true;
    pthread_cond_broadcast(&outbox->changed);
    wait_for_end(outbox, deadline);
    outbox->failed = true; /* the writer now gives up within a slice */
    pthread_cond_broadcast(&outbox->changed);
    wait_for_end(outbox, fm_now_ms() + 3 * POLL_SLICE_MS);
    bool ended = outbox->ended;
    pthread_mutex_unlock(&outbox->lock);
    if (!ended) {
        return false;
    }
    fm_buf_free(&outbox->queued);
    fm_buf_free(&outbox->writing);
    pthread_cond_destroy(&outbox->changed);
    pthread_mutex_destroy(&outbox->lock);
    return true;
}
