/* Start, the reader's loop, and the end. */
#include "front/front.h"
#include "base/clock.h"
#include "base/platform.h"

#include <poll.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#define READ_BYTES     65536
#define EVENT_MAX      (64u << 20) /* bytes of one message to the host: an answer's text, escaped */
#define ENGINE_END_MS  800         /* for the engine to end by itself */
#define BROKEN_END_MS  100         /* the same, when the host broke the protocol: the end comes within 1 s then */
#define THREADS_END_MS 300         /* then, for it to be killed and for the watchdogs to see that their jobs are gone */
#define SAY_MS         200         /* for the host to make room for the last events and results */
#define FLUSH_MS       200         /* then, to take what is queued */
#define KEEP_BYTES     (256u << 10) /* a larger buffer is given back after its frame */

void fm_front_no_memory(struct fm_front *front) {
    if (!atomic_exchange(&front->out_of_memory, true)) {
        fm_log(FM_LOG_ERROR, "out of memory");
        fm_outbox_close(&front->outbox);
        fm_ask_for_end();
    }
}

/* The host is gone, or can't be told something. */
static void on_outbox_failure(void *front, enum fm_outbox_failure failure) {
    if (failure == FM_OUTBOX_NO_MEMORY) {
        fm_front_no_memory(front);
    } else {
        fm_log(FM_LOG_WARN, "the host takes nothing any more");
        fm_ask_for_end();
    }
}

void fm_send_frame(struct fm_front *front, struct fm_outbox *outbox, struct fm_buf *buf) {
    const char *frame;
    size_t len;
    if (!fm_frame_end(buf, &frame, &len)) {
        fm_front_no_memory(front); /* a caller would wait for it in vain */
        return;
    }
    fm_outbox_send(outbox, frame, len);
    if (buf->cap > KEEP_BYTES) {
        fm_buf_free(buf);
    }
}

static void init_state(struct fm_front *front, const struct fm_options *options) {
    front->options = *options;
    front->started_ms = fm_now_ms();
    pthread_mutex_init(&front->lock, NULL);
    fm_cond_init(&front->quiet);
    fm_cond_init(&front->drained);
    fm_buf_init(&front->reply, EVENT_MAX);
    fm_buf_init(&front->event, EVENT_MAX);
    fm_buf_init(&front->engine.message, EVENT_MAX);
    fm_storage_init(&front->storage);
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        front->jobs[i].front = front;
        fm_cond_init(&front->jobs[i].changed);
    }
}

static void free_state(struct fm_front *front) {
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        if (front->jobs[i].state != FM_JOB_FREE) { /* what the host did not wait for */
            fm_job_release_locked(front, &front->jobs[i]);
        }
        pthread_cond_destroy(&front->jobs[i].changed);
    }
    fm_model_free(&front->engine.model);
    fm_crash_loop_free(&front->engine.crash_loop);
    fm_buf_free(&front->engine.message);
    fm_storage_free(&front->storage);
    fm_buf_free(&front->event);
    fm_buf_free(&front->reply);
    pthread_cond_destroy(&front->drained);
    pthread_cond_destroy(&front->quiet);
    pthread_mutex_destroy(&front->lock);
}

/* The last reply of a connection whose frames can't be read any more. */
static int end_broken(struct fm_front *front, const char *fault) {
    struct fm_rpc_id none = {.len = 0};
    fm_log(FM_LOG_ERROR, "broken frame: %s", fault);
    fm_frame_begin(&front->reply);
    fm_rpc_write_error(&front->reply, &none, FM_RPC_PARSE, fault);
    fm_send_frame(front, &front->outbox, &front->reply);
    return EX_PROTOCOL;
}

/* Reads and serves until there is a reason to end. Returns the exit status. */
static int serve(struct fm_front *front, struct fm_inbound *inbound, const struct fm_wire *wire) {
    static char bytes[READ_BYTES];
    struct fm_inbound_handler handler = fm_dispatch_handler;
    handler.context = front;
    while (!front->shutdown_called) {
        struct pollfd fds[2] = {{.fd = wire->in, .events = POLLIN}, {.fd = wire->end_fd, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0) {
            continue; /* EINTR */
        }
        if (fds[1].revents) {
            return EX_OK;
        }
        ssize_t got = fm_read(wire->in, bytes, sizeof bytes);
        if (got <= 0) {
            return got == 0 && fm_inbound_at_boundary(inbound) ? EX_OK : EX_PROTOCOL;
        }
        const char *fault = fm_inbound_feed(inbound, bytes, (size_t)got, &handler);
        if (fault) {
            return end_broken(front, fault);
        }
    }
    return EX_OK;
}

/* Waits until the watchdogs and the engine's thread are gone. */
static bool wait_quiet_locked(struct fm_front *front, int64_t wait_ms) {
    int64_t deadline = fm_now_ms() + wait_ms;
    while (front->threads && fm_now_ms() < deadline) {
        fm_cond_wait_until(&front->quiet, &front->lock, deadline);
    }
    return front->threads == 0;
}

/*
 * Settles what is in flight and ends the engine, which has `engine_ms` to do so by itself. False when a thread could
 * not be brought to its end.
 */
static bool end_work(struct fm_front *front, int64_t engine_ms) {
    struct fm_error error;
    fm_fail(&error, FM_CANCELLED, "the helper is shutting down");
    pthread_mutex_lock(&front->lock);
    front->ending = true;
    fm_job_settle_all_locked(front);
    fm_storage_end_locked(front);
    fm_engine_shutdown_locked(front);
    bool quiet = wait_quiet_locked(front, engine_ms);
    if (!quiet) {
        fm_engine_kill_locked(front, FM_END_ASKED, &error);
        quiet = wait_quiet_locked(front, THREADS_END_MS);
    }
    pthread_mutex_unlock(&front->lock);
    return quiet;
}

/* The last that the host hears: what jobs have left to say, then the reply to process.shutdown. */
static void say_the_rest(struct fm_front *front) {
    pthread_mutex_lock(&front->lock);
    bool all = fm_streams_flush_locked(front, SAY_MS);
    pthread_mutex_unlock(&front->lock);
    if (!all || !front->shutdown_call.len) {
        return;
    }
    fm_frame_begin(&front->reply);
    struct fm_json_writer w = fm_rpc_result_begin(&front->reply, &front->shutdown_call);
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "ok", true);
    fm_json_object_end(&w);
    fm_rpc_end(&front->reply);
    fm_send_frame(front, &front->outbox, &front->reply);
}

/* A host should hear early of a file that can't be used. Where there is no thread, the first task tries again. */
static void open_store(struct fm_front *front) {
    pthread_mutex_lock(&front->lock);
    if (front->options.store_file && front->options.store_bytes > 0 && !fm_store_thread_start_locked(front)) {
        fm_log(FM_LOG_WARN, "can't start a thread for the store yet");
    }
    pthread_mutex_unlock(&front->lock);
}

int fm_front_run(struct fm_front *front, const struct fm_options *options, const struct fm_wire *wire) {
    struct fm_inbound inbound;
    init_state(front, options);
    fm_inbound_init(&inbound);
    const struct fm_outbox_options outbox = {
        .fd = wire->out,
        .max = FM_HOST_QUEUE_MAX,
        .room = FM_HOST_ROOM,
        .stall_ms = FM_STALL_MS,
        .on_fail = on_outbox_failure,
        .on_room = fm_streams_on_room,
        .context = front,
    };
    if (fm_outbox_start(&front->outbox, &outbox) != 0) {
        fm_log(FM_LOG_ERROR, "can't start");
        return EX_OSERR;
    }
    open_store(front);
    int status = serve(front, &inbound, wire);
    bool quiet = end_work(front, status == EX_PROTOCOL ? BROKEN_END_MS : ENGINE_END_MS);
    say_the_rest(front);
    quiet = fm_outbox_stop(&front->outbox, FLUSH_MS) && quiet;
    status = atomic_load(&front->out_of_memory) ? EX_SOFTWARE : status;
    fm_inbound_free(&inbound);
    front->stuck = !quiet;
    if (quiet) {
        free_state(front);
    }
    return status;
}
