/* The front's shared state: its start and end, and the functions that every part needs. */
#include "front/state.h"
#include "base/clock.h"
#include "protocol/frame.h"

void fm_front_no_memory(struct fm_front *front) {
    if (!atomic_exchange(&front->out_of_memory, true)) {
        fm_log(FM_LOG_ERROR, "out of memory");
        fm_outbox_close(&front->outbox);
        fm_ask_for_end();
    }
}

bool fm_end_frame(struct fm_front *front, struct fm_outbox *outbox, struct fm_buf *buf, const char **frame,
                  size_t *len) {
    if (!fm_frame_end(buf, frame, len)) {
        fm_front_no_memory(front); /* without this, a caller would wait in vain for the frame */
        return false;
    }
    fm_metrics_count_bytes(outbox == &front->outbox ? &front->metrics.host_sent : &front->metrics.engines_sent, *len);
    return true;
}

void fm_send_frame(struct fm_front *front, struct fm_outbox *outbox, struct fm_buf *buf) {
    const char *frame;
    size_t len;
    if (fm_end_frame(front, outbox, buf, &frame, &len)) {
        fm_outbox_send(outbox, frame, len);
    }
    if (buf->cap > FM_KEEP_BYTES) {
        fm_buf_free(buf);
    }
}

void fm_front_on_room(void *front) {
    if (fm_front_try_enter(front)) {
        fm_front_leave(front);
    }
}

void fm_front_wait_locked(struct fm_front *front, pthread_cond_t *changed, int64_t deadline_ms) {
    fm_cond_wait_until(changed, &front->lock, deadline_ms);
    fm_front_await_built_locked(front);
}

void fm_front_build_begin_locked(struct fm_front *front) {
    atomic_store(&front->building, true);
    pthread_mutex_unlock(&front->lock);
}

void fm_front_build_end_locked(struct fm_front *front) {
    pthread_mutex_lock(&front->lock);
    atomic_store(&front->building, false);
    pthread_cond_broadcast(&front->built);
}

static void init_engine(struct fm_engine *engine, struct fm_front *front) {
    engine->front = front;
    fm_kv_files_none(&engine->kv);
    fm_buf_init(&engine->message, FM_EVENT_MAX);
    fm_buf_init(&engine->large, FM_EVENT_MAX);
}

static void free_engine(struct fm_engine *engine) {
    fm_model_free(&engine->model);
    fm_buf_free(&engine->message);
    fm_buf_free(&engine->large);
}

void fm_front_state_init(struct fm_front *front, const struct fm_options *options) {
    front->options = *options;
    front->started_ms = fm_now_ms();
    pthread_mutex_init(&front->lock, NULL);
    fm_cond_init(&front->quiet);
    fm_cond_init(&front->drained);
    fm_cond_init(&front->built);
    fm_buf_init(&front->event, FM_EVENT_MAX);
    fm_buf_init(&front->large.buf, FM_EVENT_MAX);
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        init_engine(&front->engines[i], front);
    }
    for (size_t i = 0; i < FM_PROGRAMS_MAX; i++) {
        init_engine(&front->probes[i], front);
        front->probes[i].program = &front->programs[i];
    }
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        front->jobs[i].front = front;
        fm_cond_init(&front->jobs[i].changed);
    }
}

void fm_front_state_free(struct fm_front *front) {
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        pthread_cond_destroy(&front->jobs[i].changed);
    }
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        free_engine(&front->engines[i]);
    }
    for (size_t i = 0; i < FM_PROGRAMS_MAX; i++) {
        struct fm_program *program = &front->programs[i];
        free_engine(&front->probes[i]);
        fm_crash_loop_free(&program->crash_loop);
        fm_availability_free(&program->availability);
        fm_config_free(&program->config);
    }
    fm_buf_free(&front->event);
    fm_buf_free(&front->large.buf);
    pthread_cond_destroy(&front->built);
    pthread_cond_destroy(&front->drained);
    pthread_cond_destroy(&front->quiet);
    pthread_mutex_destroy(&front->lock);
}
