/*
 * The connection to the front, which runs in this process on its own thread. A pair of pipes connects it with this
 * code.
 */
#include "sessions/link.h"
#include "protocol/frame.h"
#include "base/clock.h"
#include "base/platform.h"

#include <errno.h>

#define READ_BYTES 65536
#define END_MS     1700        /* longer than the front needs, and less than the two seconds allowed for the end */
#define SEND_MS    1000        /* the front reads all the time: if it takes nothing for this long, it hangs */
#define FRAME_MAX  (16u << 20) /* bytes; the largest message of a session is smaller */

static void *run_front(void *argument) {
    struct fm_link *link = argument;
    const struct fm_wire wire = {.in = link->front_in, .out = link->front_out, .end_fd = -1};
    fm_front_run(link->front, link->options, &wire); /* the exit status is for a host, which here is this process */
    pthread_mutex_lock(&link->lock);
    link->ended = true;
    pthread_cond_broadcast(&link->changed);
    pthread_mutex_unlock(&link->lock);
    return NULL;
}

static void close_pipes(struct fm_link *link) {
    int fds[] = {link->from_front, link->to_front, link->front_in, link->front_out};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0) {
            fm_close(fds[i]);
        }
    }
}

int fm_link_start(struct fm_link *link, struct fm_front *front, const struct fm_options *options) {
    *link = (struct fm_link){.front = front, .options = options};
    link->from_front = link->to_front = link->front_in = link->front_out = -1;
    int error = fm_pipe(&link->front_in, &link->to_front);
    error = error ? error : fm_pipe(&link->from_front, &link->front_out);
    error = error ? error : fm_cond_init(&link->changed);
    if (error) {
        close_pipes(link);
        return error;
    }
    fm_set_nonblocking(link->to_front);
    pthread_mutex_init(&link->lock, NULL);
    fm_inbound_init(&link->inbound);
    fm_buf_init(&link->frame, FRAME_MAX);
    error = fm_thread_start(run_front, link);
    if (error) {
        close_pipes(link);
    }
    return error;
}

struct fm_json_writer fm_link_call_begin(struct fm_link *link, const char *method) {
    struct fm_rpc_id id = fm_rpc_id_int(++link->last_id);
    fm_frame_begin(&link->frame);
    return fm_rpc_request_begin(&link->frame, &id, method);
}

/* Writes like fm_write_all, but gives up if the front hangs. */
static bool write_frame(struct fm_link *link, const char *frame, size_t len) {
    struct fm_waited waited = {.fd = link->to_front, .room = true};
    while (len > 0) {
        ssize_t sent = fm_write(link->to_front, frame, len);
        if (sent >= 0) {
            frame += sent;
            len -= (size_t)sent;
        } else if (errno != EAGAIN || fm_wait(&waited, 1, SEND_MS) == 0) {
            return false;
        }
    }
    return true;
}

bool fm_link_call_send(struct fm_link *link, int64_t *id) {
    const char *frame;
    size_t len;
    fm_rpc_end(&link->frame);
    *id = link->last_id;
    bool sent = fm_frame_end(&link->frame, &frame, &len) && write_frame(link, frame, len);
    fm_buf_free(&link->frame);
    return sent;
}

bool fm_link_receive(struct fm_link *link, const struct fm_inbound_handler *handler) {
    static char bytes[READ_BYTES];
    ssize_t got = fm_read(link->from_front, bytes, sizeof bytes);
    return got > 0 && !fm_inbound_feed(&link->inbound, bytes, (size_t)got, handler);
}

/* Reads and drops what the front still sends, until it closes its end. False: it did not close it in time. */
static bool drain(struct fm_link *link, int64_t deadline) {
    static char bytes[READ_BYTES];
    struct fm_waited waited = {.fd = link->from_front, .input = true};
    for (;;) {
        int64_t left = deadline - fm_now_ms();
        if (left <= 0) {
            return false;
        }
        if (fm_wait(&waited, 1, (int)left) > 0 && fm_read(link->from_front, bytes, sizeof bytes) <= 0) {
            return true;
        }
    }
}

bool fm_link_end(struct fm_link *link) {
    fm_close(link->to_front);
    link->to_front = -1;
    int64_t deadline = fm_now_ms() + END_MS;
    bool closed = drain(link, deadline);
    pthread_mutex_lock(&link->lock);
    while (closed && !link->ended && fm_now_ms() < deadline) {
        fm_cond_wait_until(&link->changed, &link->lock, deadline);
    }
    bool ended = link->ended;
    pthread_mutex_unlock(&link->lock);
    if (!ended || link->front->stuck) {
        return false;
    }
    fm_close(link->from_front);
    fm_close(link->front_in);
    fm_inbound_free(&link->inbound);
    fm_buf_free(&link->frame);
    pthread_cond_destroy(&link->changed);
    pthread_mutex_destroy(&link->lock);
    return true;
}
