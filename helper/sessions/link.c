#include "sessions/link.h"
#include "base/clock.h"
#include "base/platform.h"

#include <sysexits.h>
#include <unistd.h>

#define READ_BYTES 65536
#define END_MS     2500        /* more than the front ever takes */
#define FRAME_MAX  (16u << 20) /* bytes; the largest that a session can make is smaller */

static void *run_front(void *argument) {
    struct fm_link *link = argument;
    const struct fm_wire wire = {.in = link->front_in, .out = link->front_out, .end_fd = -1};
    int status = fm_front_run(link->front, link->options, &wire);
    pthread_mutex_lock(&link->lock);
    link->status = status;
    link->ended = true;
    pthread_cond_broadcast(&link->changed);
    pthread_mutex_unlock(&link->lock);
    return NULL;
}

static void close_pipes(struct fm_link *link) {
    int fds[] = {link->from_front, link->to_front, link->front_in, link->front_out};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

int fm_link_start(struct fm_link *link, struct fm_front *front, const struct fm_options *options) {
    *link = (struct fm_link){.front = front, .options = options, .status = EX_OSERR};
    link->from_front = link->to_front = link->front_in = link->front_out = -1;
    int error = fm_pipe(&link->front_in, &link->to_front);
    error = error ? error : fm_pipe(&link->from_front, &link->front_out);
    error = error ? error : fm_cond_init(&link->changed);
    if (error) {
        close_pipes(link);
        return error;
    }
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

bool fm_link_call_send(struct fm_link *link, int64_t *id) {
    const char *frame;
    size_t len;
    fm_rpc_end(&link->frame);
    *id = link->last_id;
    bool sent = fm_frame_end(&link->frame, &frame, &len) && fm_write_all(link->to_front, frame, len);
    fm_buf_free(&link->frame);
    return sent;
}

bool fm_link_receive(struct fm_link *link, const struct fm_inbound_handler *handler) {
    static char bytes[READ_BYTES];
    ssize_t got = fm_read(link->from_front, bytes, sizeof bytes);
    return got > 0 && !fm_inbound_feed(&link->inbound, bytes, (size_t)got, handler);
}

/* The front may have something to say still, and waits until it is taken. */
static bool drain(struct fm_link *link) {
    static char bytes[READ_BYTES];
    return fm_read(link->from_front, bytes, sizeof bytes) > 0;
}

int fm_link_end(struct fm_link *link) {
    close(link->to_front);
    link->to_front = -1;
    while (drain(link)) {
    }
    int64_t deadline = fm_now_ms() + END_MS;
    pthread_mutex_lock(&link->lock);
    while (!link->ended && fm_now_ms() < deadline) {
        fm_cond_wait_until(&link->changed, &link->lock, deadline);
    }
    bool ended = link->ended;
    int status = link->status;
    pthread_mutex_unlock(&link->lock);
    if (!ended) {
        _exit(status);
    }
    close(link->from_front);
    close(link->front_in);
    fm_inbound_free(&link->inbound);
    fm_buf_free(&link->frame);
    pthread_cond_destroy(&link->changed);
    pthread_mutex_destroy(&link->lock);
    return status;
}
