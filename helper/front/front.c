/* Starts the front, runs the reader's loop, and ends the front. */
#include "front/front.h"
#include "base/clock.h"
#include "front/engines/engine.h"
#include "front/engines/send.h"
#include "front/intake.h"
#include "front/jobs.h"
#include "front/store/queue.h"
#include "front/store/thread.h"
#include "front/streams.h"
#include "protocol/frame.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define READ_BYTES     65536
#define ENGINE_END_MS  800         /* how long an engine may take to end by itself */
#define END_SAVE_MS    400         /* the part of ENGINE_END_MS in which an engine may save what it has computed */
#define BROKEN_END_MS  100         /* the same if the host broke the protocol, because we must end within 1 s */
#define THREADS_END_MS 300         /* after that, to kill the engines and let watchdogs see that their jobs are gone */
#define SAY_MS         200         /* time for the host to make room for the last events and results */
#define FLUSH_MS       200         /* after that, time for the host to take what is queued */
#define ROOM           (64u << 10) /* bytes: while less is queued, streams and results are queued too, like replies */

/* Handles a failed outbox: the host is gone, or something can't be sent to it. */
static void on_outbox_failure(void *front, enum fm_outbox_failure failure) {
    if (failure == FM_OUTBOX_NO_MEMORY) {
        fm_front_no_memory(front);
    } else {
        fm_log(FM_LOG_WARN, "the host takes nothing any more");
        fm_ask_for_end();
    }
}

/*
 * Returns the frame that the host's writer pulls. The store's reply and the frames of jobs take turns, so that neither
 * keeps the other waiting.
 */
static bool next_frame(void *context, const char **frame, size_t *len) {
    struct fm_front *front = context;
    front->reply_first = !front->reply_first;
    return front->reply_first ? fm_store_next_reply(front, frame, len) || fm_streams_next(front, frame, len)
                              : fm_streams_next(front, frame, len) || fm_store_next_reply(front, frame, len);
}

static void init_state(struct fm_front *front, const struct fm_options *options) {
    fm_front_state_init(front, options);
    int64_t memory = fm_memory_limit();
    int64_t half = memory > 0 ? memory / 2 : INT64_MAX;
    front->memory_budget = options->memory_budget ? options->memory_budget : half;
    fm_store_queue_init(&front->store_queue);
}

static void free_state(struct fm_front *front) {
    for (size_t i = 0; i < FM_JOBS_MAX; i++) {
        if (front->jobs[i].state != FM_JOB_FREE) { /* jobs whose end the host did not wait for */
            fm_job_release_locked(front, &front->jobs[i]);
        }
    }
    fm_store_queue_free(&front->store_queue);
    fm_front_state_free(front);
}

/* Sends the last reply of a connection whose frames can no longer be read. */
static int end_broken(struct fm_intake *intake, const char *fault) {
    struct fm_rpc_id none = {.len = 0};
    fm_log(FM_LOG_ERROR, "broken frame: %s", fault);
    fm_intake_stop(intake, true);
    fm_dispatch_handler.fault(&intake->dispatcher, &none, FM_RPC_PARSE, fault);
    return EX_PROTOCOL;
}

/*
 * Reads and serves until there is a reason to end. `*told`: the reason is a signal, or the end of the parent process.
 * Returns the exit status.
 */
static int read_all(struct fm_front *front, struct fm_intake *intake, const struct fm_wire *wire, bool *told) {
    static char bytes[READ_BYTES];
    while (!atomic_load(&front->shutdown_called)) {
        struct fm_waited waited[] = {{.fd = wire->in, .input = true}, {.fd = wire->end_fd, .input = true}};
        if (fm_wait(waited, 2, -1) == 0) {
            continue; /* the system has no memory for the message now */
        }
        *told = waited[1].ready;
        if (*told) {
            return EX_OK;
        }
        ssize_t got = fm_read(wire->in, bytes, sizeof bytes);
        if (got <= 0) {
            return got == 0 && fm_inbound_at_boundary(&intake->inbound) ? EX_OK : EX_PROTOCOL;
        }
        fm_metrics_count_bytes(&front->metrics.host_received, (size_t)got);
        const char *fault = fm_intake_feed(intake, bytes, (size_t)got);
        if (fault) {
            return end_broken(intake, fault);
        }
    }
    return EX_OK;
}

/*
 * Serves like read_all, and then serves all that came before the end of the input. After a signal it skips the second
 * step.
 */
static int serve_input(struct fm_front *front, struct fm_intake *intake, const struct fm_wire *wire) {
    bool told = false;
    fm_thread_be_prompt();
    int status = read_all(front, intake, wire, &told);
    fm_intake_stop(intake, !told);
    return status;
}

/* Waits until the threads of the watchdogs, the store and the engines have ended. */
static bool wait_quiet_locked(struct fm_front *front, int64_t wait_ms) {
    int64_t deadline = fm_now_ms() + wait_ms;
    while (front->threads && fm_now_ms() < deadline) {
        fm_front_wait_locked(front, &front->quiet, deadline);
    }
    return front->threads == 0;
}

/* Calls `act` for every engine. */
static void each_engine_locked(struct fm_front *front, void (*act)(struct fm_engine *engine)) {
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        act(&front->engines[i]);
    }
    for (size_t i = 0; i < FM_PROGRAMS_MAX; i++) {
        act(&front->probes[i]);
    }
}

static void ask_engine_locked(struct fm_engine *engine) {
    fm_engine_send_shutdown_locked(engine, END_SAVE_MS);
}

static void kill_engine_locked(struct fm_engine *engine) {
    struct fm_error error;
    fm_fail(&error, FM_CANCELLED, "the helper is shutting down");
    fm_engine_kill_locked(engine, FM_END_ASKED, &error);
}

/*
 * Settles all requests in flight and ends the engines, which have `engine_ms` to end by themselves. False when some
 * thread did not end.
 */
static bool end_work(struct fm_front *front, int64_t engine_ms) {
    fm_front_enter(front);
    front->ending = true;
    fm_job_settle_all_locked(front);
    fm_front_pump_locked(front); /* so that the store has what is to be stored */
    fm_store_end_locked(front);
    each_engine_locked(front, ask_engine_locked);
    bool quiet = wait_quiet_locked(front, engine_ms);
    if (!quiet) {
        each_engine_locked(front, kill_engine_locked);
        quiet = wait_quiet_locked(front, THREADS_END_MS);
    }
    fm_front_leave(front);
    return quiet;
}

/* Whether something must still be sent to the host. */
static bool is_owed_locked(const struct fm_front *front) {
    return front->jobs_in_flight || front->store_queue.calls || front->store_queue.reply_waits;
}

/*
 * Waits up to SAY_MS until every job is gone and the host has the store's reply. All jobs should be settled before.
 * False when something is left.
 */
static bool flush_locked(struct fm_front *front) {
    int64_t deadline = fm_now_ms() + SAY_MS;
    fm_front_pump_locked(front);
    while (is_owed_locked(front) && fm_now_ms() < deadline) {
        fm_front_wait_locked(front, &front->drained, deadline);
        fm_front_pump_locked(front); /* if the host is gone, there is room for everything */
    }
    return !is_owed_locked(front);
}

/* Sends the last frames to the host: what jobs still have to send, then the reply to process.shutdown. */
static void say_the_rest(struct fm_front *front, struct fm_buf *reply) {
    fm_front_enter(front);
    bool all = flush_locked(front);
    front->said_all = true;
    fm_front_leave(front);
    if (!all || !front->shutdown_call.len) {
        return;
    }
    fm_frame_begin(reply);
    struct fm_json_writer w = fm_rpc_result_begin(reply, &front->shutdown_call);
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "ok", true);
    fm_json_object_end(&w);
    fm_rpc_end(reply);
    fm_send_frame(front, &front->outbox, reply);
}

/*
 * Opens the store early, so that the host soon hears of a file that can't be used. If no thread can be started, the
 * first task tries again.
 */
static void start_store(struct fm_front *front) {
    fm_front_enter(front);
    if (front->options.store_file && front->options.store_bytes > 0 && !fm_store_thread_start_locked(front)) {
        fm_log(FM_LOG_WARN, "can't start a thread for the store yet");
    }
    fm_front_leave(front);
}

/* False when out of memory. */
static bool read_program(struct fm_program *program, const struct fm_options *options,
                         const struct fm_engine_choice *choice, bool beside) {
    char *name = strdup(choice->name); /* this copy lives as long as the process */
    bool ok = name && fm_engine_files_read(&program->files, options->engine_dir, name) &&
              fm_config_read(&program->config, choice->config);
    program->files.beside = beside;
    program->files.descriptor.elsewhere |= choice->elsewhere;
    if (program->files.fault.code != FM_OK) {
        fm_log(FM_LOG_ERROR, "%s", program->files.fault.detail);
    }
    if (program->config.fault.code != FM_OK) {
        fm_log(FM_LOG_ERROR, "%s", program->config.fault.detail);
    }
    return ok;
}

bool fm_front_read_engines(struct fm_front *front, const struct fm_options *options) {
    struct fm_engine_choice choice;
    struct fm_engine_choice second;
    bool beside = fm_options_engine(options, 1, &second);
    bool ok = true;
    for (size_t i = 0; i < FM_PROGRAMS_MAX && ok && fm_options_engine(options, i, &choice); i++) {
        ok = read_program(&front->programs[i], options, &choice, beside);
        front->program_count = i + 1;
    }
    return ok;
}

int fm_front_run(struct fm_front *front, const struct fm_options *options, const struct fm_wire *wire) {
    struct fm_intake intake;
    init_state(front, options);
    fm_intake_init(&intake, front);
    const struct fm_outbox_options outbox = {
        .fd = wire->out,
        .max = FM_HOST_QUEUE_MAX,
        .stall_ms = FM_STALL_MS,
        .on_fail = on_outbox_failure,
        .room = ROOM,
        .on_room = fm_front_on_room,
        .next = next_frame,
        .context = front,
    };
    int failure = fm_outbox_start(&front->outbox, &outbox);
    if (failure) {
        fm_log(FM_LOG_ERROR, "can't start: %s; free memory, or raise the user's limits (ulimit -a)", strerror(failure));
        return EX_OSERR;
    }
    start_store(front);
    int status = serve_input(front, &intake, wire);
    bool quiet = end_work(front, status == EX_PROTOCOL ? BROKEN_END_MS : ENGINE_END_MS);
    say_the_rest(front, &intake.dispatcher.reply);
    quiet = fm_outbox_stop(&front->outbox, FLUSH_MS) && quiet;
    status = atomic_load(&front->out_of_memory) ? EX_SOFTWARE : status;
    fm_intake_free(&intake);
    front->stuck = !quiet;
    if (quiet) {
        free_state(front);
    }
    return status;
}
