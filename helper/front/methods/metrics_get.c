/* metrics.get reports what the helper has done since it started, and what it does now. No engine is asked. */
#include "base/clock.h"
#include "front/engines/table.h"
#include "front/jobs.h"
#include "front/methods/methods.h"

static void write_requests_locked(const struct fm_front *front, struct fm_json_writer *w) {
    static const char *const names[FM_OUTCOMES] = {"completed", "incomplete", "failed",
                                                   "timed_out", "cancelled",  "refused"};
    int64_t queued = 0;
    int64_t running = 0;
    for (size_t i = 0; i < front->jobs_end; i++) {
        queued += front->jobs[i].state == FM_JOB_QUEUED;
        running += fm_job_is_held(&front->jobs[i]);
    }
    int64_t received = queued + running;
    fm_json_key(w, "requests");
    fm_json_object_begin(w);
    for (size_t i = 0; i < FM_OUTCOMES; i++) {
        received += front->metrics.outcomes[i];
        fm_json_key_int(w, names[i], front->metrics.outcomes[i]);
    }
    fm_json_key_int(w, "queued", queued);
    fm_json_key_int(w, "running", running);
    fm_json_key_int(w, "received", received);
    fm_json_object_end(w);
}

static void write_work_locked(const struct fm_metrics *metrics, struct fm_json_writer *w) {
    fm_json_key(w, "tokens");
    fm_json_object_begin(w);
    fm_json_key_int(w, "input", metrics->tokens.input);
    fm_json_key_int(w, "cached", metrics->tokens.cached);
    fm_json_key_int(w, "output", metrics->tokens.output);
    fm_json_key_int(w, "reasoning", metrics->tokens.reasoning);
    fm_json_key_int(w, "drafted", metrics->timings.drafted);
    fm_json_key_int(w, "accepted", metrics->timings.accepted);
    fm_json_object_end(w);
    fm_json_key(w, "time_ms");
    fm_json_object_begin(w);
    fm_json_key_int(w, "queue", metrics->timings.queue_us / 1000);
    fm_json_key_int(w, "prefill", metrics->timings.prefill_us / 1000);
    fm_json_key_int(w, "decode", metrics->timings.decode_us / 1000);
    fm_json_object_end(w);
}

/* Writes the engines that have a process. */
static void write_engines_locked(const struct fm_front *front, struct fm_json_writer *w) {
    fm_json_key(w, "engines");
    fm_json_object_begin(w);
    fm_json_key_int(w, "starts", front->metrics.engine_starts);
    fm_json_key_int(w, "deaths", front->metrics.engine_deaths);
    fm_json_key(w, "now");
    fm_json_array_begin(w);
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        const struct fm_engine *engine = &front->engines[i];
        if (engine->state != FM_ENGINE_IDLE) {
            fm_json_object_begin(w);
            fm_json_key_str(w, "model", engine->model.id);
            fm_json_key_str(w, "state", fm_engine_state_name(engine->state));
            fm_json_key_int(w, "requests", fm_engine_held_locked(engine));
            fm_json_object_end(w);
        }
    }
    fm_json_array_end(w);
    fm_json_object_end(w);
}

static void write_bytes(const char *name, const _Atomic int64_t *received, const _Atomic int64_t *sent,
                        struct fm_json_writer *w) {
    fm_json_key(w, name);
    fm_json_object_begin(w);
    fm_json_key_int(w, "received", atomic_load_explicit(received, memory_order_relaxed));
    fm_json_key_int(w, "sent", atomic_load_explicit(sent, memory_order_relaxed));
    fm_json_object_end(w);
}

static enum fm_code metrics_get(struct fm_front *front, const struct fm_method_call *call,
                                struct fm_json_writer *result, struct fm_error *error) {
    const struct fm_metrics *metrics = &front->metrics;
    (void)call;
    (void)error;
    fm_json_key_int(result, "uptime_ms", fm_now_ms() - front->started_ms);
    fm_front_lock(front);
    write_requests_locked(front, result);
    write_work_locked(metrics, result);
    write_engines_locked(front, result);
    fm_front_unlock(front);
    fm_json_key(result, "bytes");
    fm_json_object_begin(result);
    write_bytes("host", &metrics->host_received, &metrics->host_sent, result);
    write_bytes("engines", &metrics->engines_received, &metrics->engines_sent, result);
    fm_json_object_end(result);
    return FM_OK;
}

const struct fm_method fm_method_metrics_get = {"metrics.get", 0, fm_no_params, .run = metrics_get};
