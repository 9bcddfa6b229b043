/*
 * The life of an engine's process, on its own thread. The thread starts the process, reads the engine's messages, and
 * reaps the process.
 *
 *     IDLE --a job (places.c)--> STARTING --loaded--> READY --killed, died, ended--> STOPPING --reaped--> IDLE
 *
 * An engine that had no job for as long as --idle-unload-ms says is ended too. Jobs that wait when an engine ends go on
 * waiting: places.c starts the next engine.
 *
 * `engine->pid` is set to 0, under the lock, before the process is reaped. So a kill under the lock can't hit another
 * process that got the same number.
 */
#include "front/engines/supervisor.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/platform.h"
#include "front/engines/engine.h"
#include "front/engines/environment.h"
#include "front/engines/events.h"
#include "front/engines/lost.h"
#include "front/engines/relay.h"
#include "front/engines/send.h"
#include "front/engines/table.h"
#include "front/jobs.h"
#include "front/streams.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_MS        250
#define INITIALIZE_MS   5000  /* limit for the reply to engine.initialize */
#define LOAD_QUIET_MS   60000 /* limit without progress in engine.load */
#define AVAILABLE_MS    2000  /* limit for the reply to engine.available */
#define PAUSED_READS    64    /* 256 KiB of the engine's log for each slice in which the host does not read */
#define READS_AFTER_END 64    /* as much as a pipe can hold, 1 MiB at most: a child of the engine may go on writing */
#define IDLE_SAVE_MS    3000  /* how long an engine may take to save its state, if no request waits for its place */
#define HASTY_SAVE_MS   300   /* how long an engine may take to save its state while requests for another model wait */
#define END_MS          1000  /* how long an engine may take to end after it has saved its state */
#define QUEUE_MAX       (16u << 20)
#define ROOM            (64u << 10) /* bytes: while less is queued, a prompt is queued for the engine */

/* ---- the jobs of an engine that ends ---- */

static bool is_held(const struct fm_engine *engine, const struct fm_job *job) {
    return job->engine == engine && fm_job_is_held(job);
}

/* Settles a job that was in the engine when the engine died. */
static void settle_held(struct fm_job *job, const struct fm_error *death) {
    const struct fm_error *error = job->stopping ? &job->stop_error : death;
    enum fm_finish finish = error->code == FM_CANCELLED ? FM_FINISH_CANCELLED : FM_FINISH_FAILED;
    struct fm_error copy = *error; /* the job's own error goes away with the job */
    fm_job_settle_locked(job, finish, &copy);
}

/*
 * Whether the job waited for this engine, which ended before it loaded the job's model. A job without the projector is
 * not included if the engine had one: without the projector the model may still load.
 */
static bool was_for(const struct fm_engine *engine, const struct fm_job *job) {
    bool wants = job->answer.surface->work != FM_WORK_UNLOAD && !engine->probes;
    return wants && !engine->loaded && engine->end != FM_END_ASKED && fm_model_is_same(&job->model, &engine->model) &&
           (job->model.mmproj || !engine->model.mmproj);
}

/*
 * Remembers a failed load. Two failures are not remembered: a load with a projector that was found, because the model
 * may load without it, and a shortage, because it passes.
 */
static void remember_failed_load_locked(struct fm_engine *engine) {
    bool asked = engine->end == FM_END_ASKED || engine->front->ending || engine->probes;
    if (!engine->loaded && !asked && !engine->model.found && engine->end_error.code == FM_UNAVAILABLE) {
        fm_failed_load_note(&engine->program->failed_loads, &engine->model, engine->initialized, &engine->end_error,
                            fm_now_ms());
    }
}

/*
 * Called when an engine died that could use a GPU, because the driver may have caused the crash. From then on no engine
 * of this program gets a GPU. True when this has just been decided: jobs that the engine had not begun to answer are
 * then computed on the CPU.
 */
static bool give_gpu_up_locked(struct fm_engine *engine) {
    if (!engine->died || !fm_engine_may_use_gpu_locked(engine) || engine->front->ending) {
        return false;
    }
    struct fm_program *program = engine->program;
    program->gpu_given_up = true;
    program->has_gpu = true;
    program->gpu = (struct fm_gpu){.layers = 0};
    snprintf(program->gpu.detail, sizeof program->gpu.detail, "no GPU is used any more: with one, %.200s",
             engine->end_error.detail);
    fm_log(FM_LOG_WARN, "%s", program->gpu.detail);
    return true;
}

/*
 * Whether the engine may not have read the job: it was ended because it did not stop another one, and has not accepted
 * this one. A job that an engine begins anew was accepted before, so its text is gone.
 */
static bool is_unread(const struct fm_engine *engine, const struct fm_job *job) {
    bool waits = job->state == FM_JOB_SENT && !job->stopping && job->answer.request.job_members.len > 0;
    return engine->deaf && waits && !engine->front->ending;
}

static void settle_after_death_locked(struct fm_engine *engine) {
    struct fm_front *front = engine->front;
    bool again = give_gpu_up_locked(engine);
    if (!again && engine->model.found && !engine->loaded && engine->end != FM_END_ASKED && !front->ending) {
        fm_log(FM_LOG_WARN, "requests with images fail, as the model does not load with the projector beside it: %s",
               engine->end_error.detail);
    }
    if (!again) {
        remember_failed_load_locked(engine);
    }
    for (size_t i = 0; i < front->jobs_end; i++) {
        struct fm_job *job = &front->jobs[i];
        if (is_held(engine, job) && (is_unread(engine, job) || (again && fm_job_can_restart(job) && !job->stopping))) {
            fm_job_again_locked(job);
        } else if (is_held(engine, job)) {
            settle_held(job, &engine->end_error);
        } else if (job->state == FM_JOB_QUEUED && was_for(engine, job) && !again) {
            fm_job_fail_or_move_locked(job, &engine->end_error);
        }
    }
}

/* ---- the process ---- */

static void describe_death_locked(struct fm_engine *engine, int status) {
    struct fm_error error;
    const bool not_loaded = status == FM_CHILD_NOT_LOADED;
    const char *hint = not_loaded
                           ? ": a library that it needs is missing or too old; install fm-proxy again, or see which "
                             "one with the option logLevel (--log-level debug)"
                           : "";
    char how[48];
    engine->died = engine->died || (engine->end_error.code == FM_OK && status != -SIGKILL);
    snprintf(how, sizeof how, status < 0 ? "was ended by signal %d" : "exited with status %d", abs(status));
    if (engine->loaded) {
        fm_fail(&error, FM_INTERNAL, "the engine %s while it held the request", how);
    } else if (engine->probes) {
        fm_fail(&error, FM_UNAVAILABLE, "the engine program %s %s before it told whether it is available%s",
                engine->path, how, hint);
    } else {
        fm_fail(&error, FM_UNAVAILABLE, "the engine program %s %s before the model %s was loaded%s", engine->path, how,
                engine->model.path ? engine->model.path : engine->model.id, hint);
    }
    fm_engine_note_end_locked(engine, FM_END_CRASH, &error);
}

/* How long the engine may make no progress in its state, in ms; -1: without a limit. */
static int64_t quiet_limit_locked(const struct fm_engine *engine) {
    if (engine->state != FM_ENGINE_STARTING) {
        return -1;
    }
    return !engine->initialized ? INITIALIZE_MS : engine->probes ? AVAILABLE_MS : LOAD_QUIET_MS;
}

/*
 * True when the engine made no progress for too long; it must be killed then. `late_ms` is how much later than planned
 * this check runs. This process was stopped during that time, so it does not count.
 */
static bool too_quiet(struct fm_engine *engine, int64_t late_ms) {
    fm_front_lock(engine->front);
    engine->progress_ms += late_ms > FM_STOPPED_MS ? late_ms : 0;
    int64_t limit = quiet_limit_locked(engine);
    bool over = limit >= 0 && fm_now_ms() - engine->progress_ms >= limit;
    if (over) {
        struct fm_error error;
        fm_fail(&error, FM_UNAVAILABLE, "the engine program %s made no progress for %lld ms while it %s", engine->path,
                (long long)limit,
                !engine->initialized ? "started"
                : engine->probes     ? "was asked whether it is available"
                                     : "loaded the model");
        engine->died = engine->end_error.code == FM_OK;
        fm_engine_note_end_locked(engine, FM_END_CRASH, &error);
    }
    fm_front_unlock(engine->front);
    return over;
}

/*
 * How many ms an engine that is ready may still go without a job; -1: without a limit. A job may end without a message
 * from the engine, so a busy engine is checked again after the full time.
 */
static int64_t idle_left_locked(struct fm_engine *engine) {
    int64_t limit = engine->keep_alive_ms;
    int64_t now = fm_now_ms();
    bool ready = engine->state == FM_ENGINE_READY;
    bool wanted = !ready || fm_engine_wanted_locked(engine, UINT64_MAX) > 0;
    if (wanted || engine->wanted) {
        engine->idle_since_ms = now;
    }
    engine->wanted = wanted;
    if (!ready || limit < 0) {
        return -1;
    }
    if (wanted) {
        return limit > SLICE_MS ? limit : SLICE_MS;
    }
    int64_t left = engine->idle_since_ms + limit - now;
    return left > 0 ? left : 0;
}

/*
 * Ends an engine that has no job; the end of its output follows. If the engine can save what it has computed, it is
 * asked to save and to end, and is killed if that takes too long. Jobs that come meanwhile wait for its successor.
 */
static void end_idle_locked(struct fm_engine *engine, const char *why, int64_t save_ms) {
    struct fm_error error;
    fm_log(FM_LOG_INFO, "engine %d is ended: %s", (int)engine->pid, why);
    fm_fail(&error, FM_INTERNAL, "the engine was ended: %s", why);
    if (!engine->saves || engine->state != FM_ENGINE_READY) {
        fm_engine_kill_locked(engine, FM_END_ASKED, &error);
        return;
    }
    fm_engine_note_end_locked(engine, FM_END_ASKED, &error);
    fm_engine_send_shutdown_locked(engine, save_ms);
    fm_engine_set_state_locked(engine, FM_ENGINE_STOPPING);
    engine->kill_ms = fm_now_ms() + save_ms + END_MS;
    bool woken = fm_write_all(engine->wake_write, "e", 1); /* wakes the engine's thread, so that it applies the limit */
    (void)woken;                                           /* the pipe is empty, so it takes one byte */
}

/*
 * How many ms an engine that was asked to end may still take; -1: it was not asked. An engine that takes longer is
 * killed.
 */
static int64_t end_left_locked(struct fm_engine *engine) {
    if (!engine->kill_ms) {
        return -1;
    }
    int64_t left = engine->kill_ms - fm_now_ms();
    if (left <= 0) {
        fm_log(FM_LOG_WARN, "engine %d is killed: it did not end in time", (int)engine->pid);
        fm_engine_kill_locked(engine, FM_END_ASKED, &engine->end_error);
        engine->kill_ms = 0;
        left = -1;
    }
    return left;
}

/* Kills an engine that did not stop a job, if it sends nothing any more or has no other job. */
static void end_silent_locked(struct fm_engine *engine) {
    struct fm_error error;
    bool others = fm_engine_held_locked(engine) > engine->lost_count;
    fm_fail(&error, FM_INTERNAL,
            "the engine was ended, because it did not stop a request%s %d ms; send the request again",
            others ? ", and then sent nothing for" : " within", FM_SILENCE_MS);
    engine->deaf = true;
    fm_engine_kill_locked(engine, FM_END_CRASH, &error);
}

/* How many ms to wait for the engine's next message; -1: without a limit. Also ends an engine that is not needed. */
static int look_after(struct fm_engine *engine, bool *limited) {
    fm_front_lock(engine->front);
    *limited = quiet_limit_locked(engine) >= 0;
    int64_t left = idle_left_locked(engine);
    if (left == 0) {
        end_idle_locked(engine, "it had nothing to do", IDLE_SAVE_MS);
    }
    int64_t silence = engine->state == FM_ENGINE_READY ? fm_engine_silence_left_locked(engine) : -1;
    if (silence == 0) {
        end_silent_locked(engine);
    } else if (silence > 0) {
        left = left < 0 || silence < left ? silence : left;
    }
    if (engine->state == FM_ENGINE_STOPPING) {
        left = end_left_locked(engine);
    }
    fm_front_unlock(engine->front);
    return *limited ? SLICE_MS : (int)left;
}

/*
 * Excuses the jobs in the engine: they make no progress because the host does not read, which is not the engine's
 * fault.
 */
static void excuse_jobs_locked(struct fm_engine *engine) {
    int64_t now = fm_now_ms();
    engine->signs++; /* counts as progress for the jobs that wait */
    for (size_t i = 0; i < engine->front->jobs_end; i++) {
        struct fm_job *job = &engine->front->jobs[i];
        if (is_held(engine, job)) {
            job->progress_ms = now;
            job->accepted_ms = job->produced ? job->accepted_ms : now;
            job->grace_end_ms = now + FM_GRACE_MS; /* the end of the job may be in the pipe, not read yet */
        }
    }
    engine->heard_ms = now;
    engine->lost_ms = now;
}

static bool is_job_stopping(const struct fm_engine *engine) {
    for (size_t i = 0; i < engine->front->jobs_end; i++) {
        const struct fm_job *job = &engine->front->jobs[i];
        if (is_held(engine, job) && job->stopping) {
            return true;
        }
    }
    return false;
}

/*
 * Whether the engine's events must stay in its pipe. While a job is stopping, more is read, because the job's end may
 * come next.
 */
static bool must_pause(const struct fm_engine *engine) {
    size_t limit = is_job_stopping(engine) ? 2 * (size_t)FM_BACKLOG_PAUSE : FM_BACKLOG_PAUSE;
    return !engine->front->ending && engine->state == FM_ENGINE_READY &&
           fm_streams_backlog_locked(engine->front) > limit;
}

/* Applies back-pressure: an engine whose pipe is full stops generating. Its log is still read. */
static void wait_for_host(struct fm_engine *engine, struct fm_relay *relay) {
    struct fm_front *front = engine->front;
    fm_front_enter(front);
    while (must_pause(engine)) {
        excuse_jobs_locked(engine);
        fm_front_wait_locked(front, &front->drained, fm_now_ms() + SLICE_MS);
        fm_front_unlock(front);
        for (int reads = 0; reads < PAUSED_READS && fm_relay_take(relay); reads++) {
        }
        fm_front_enter(front);
    }
    fm_front_unlock(front);
}

/*
 * Waits for bytes from the engine. Meanwhile its stderr is read, a piece at a time, so that neither pipe holds up the
 * other. False when there is nothing more to wait for: the engine has ended, or made no progress for too long.
 * `*ended`: the engine's process has ended, though a child of it may keep the pipe open.
 */
static bool wait_for_engine(struct fm_engine *engine, const struct fm_child *child, struct fm_relay *relay,
                            bool *ended) {
    for (;;) {
        struct fm_waited waited[] = {{.fd = child->from_child, .input = true},
                                     {.fd = child->ended, .input = true},
                                     {.fd = relay->fd, .input = true},
                                     {.fd = engine->wake_read, .input = true}};
        bool limited;
        int wait_ms = look_after(engine, &limited);
        int64_t before = fm_now_ms();
        fm_wait(waited, 4, child->ended < 0 ? SLICE_MS : wait_ms);
        if (limited && too_quiet(engine, fm_now_ms() - before - SLICE_MS)) {
            return false;
        }
        if (waited[2].ready) {
            fm_relay_take(relay);
        }
        if (waited[3].ready) {
            char byte;
            (void)fm_read(engine->wake_read, &byte, 1);
        }
        *ended = child->ended < 0 ? fm_child_has_ended(child->pid) : waited[1].ready;
        if (waited[0].ready || *ended) {
            return waited[0].ready ||
                   fm_wait(waited, 1, 0) > 0; /* once more: the last bytes may have come after the first look */
        }
    }
}

/* Reads until the engine ends, for whatever reason. */
static void read_engine(struct fm_engine *engine, const struct fm_child *child, struct fm_relay *relay) {
    struct fm_inbound inbound;
    struct fm_inbound_handler handler = fm_engine_events_handler;
    char bytes[16384];
    const char *fault = NULL;
    unsigned reads_left = READS_AFTER_END;
    bool ended;
    handler.context = engine;
    fm_inbound_init(&inbound);
    while (!fault && reads_left && wait_for_engine(engine, child, relay, &ended)) {
        reads_left -= ended;
        ssize_t got = fm_read(child->from_child, bytes, sizeof bytes);
        if (got <= 0) {
            break;
        }
        fm_metrics_count_bytes(&engine->front->metrics.engines_received, (size_t)got);
        fault = fm_inbound_feed(&inbound, bytes, (size_t)got, &handler);
        wait_for_host(engine, relay);
    }
    fm_inbound_free(&inbound);
    if (fault) {
        struct fm_error error;
        fm_fail(&error, FM_INTERNAL, "the engine sent what is not a frame: %s", fault);
        fm_front_lock(engine->front);
        fm_engine_note_end_locked(engine, FM_END_CRASH, &error);
        fm_front_unlock(engine->front);
    }
}

/*
 * Handles a failed outbox. If an engine reads nothing any more, the limits of its jobs apply. But no limit covers a
 * message that was lost.
 */
static void on_engine_outbox_failure(void *context, enum fm_outbox_failure failure) {
    struct fm_engine *engine = context;
    if (failure == FM_OUTBOX_NO_MEMORY) {
        fm_front_no_memory(engine->front);
    }
}

/* Whether the system has no descriptor, process or memory left. Such a shortage may pass. */
static bool is_shortage(int error) {
    return error == EMFILE || error == ENFILE || error == EAGAIN || error == ENOMEM;
}

/* What the user can do about a failed start, for the text of the error. */
static const char *start_hint(int failure) {
    bool root = failure == EACCES && fm_is_root();
    return root
               ? " (engines of root have no capabilities: everybody, or root as the owner, has to be allowed to run it)"
               : "";
}

/* Closes all descriptors but stdin, which belongs to the outbox, and stderr, which belongs to the relay. */
static void close_child(const struct fm_child *child) {
    fm_close(child->from_child);
    if (child->ended >= 0) {
        fm_close(child->ended);
    }
}

/* Starts the process and the outbox to it. False with end_error noted. */
static bool start_process(struct fm_engine *engine, struct fm_child *child) {
    struct fm_front *front = engine->front;
    struct fm_error error = {.code = FM_OK};
    struct fm_environment env;
    struct fm_child_given given = fm_kv_files_given(&engine->kv);
    int failure = 0;
    bool made = fm_environment_make(&env, front->options.gpu, engine->gpu_told ? front->options.gpu_dir : NULL,
                                    &engine->program->config);
    if (engine->gpu_told) {
        given.file_bytes = 0; /* drivers use memory that counts as a file */
    }
    if (fm_engine_program(&engine->program->files, engine->path, &error) == FM_OK) {
        failure = made ? fm_child_start(child, engine->path, env.entries, &given) : ENOMEM;
    }
    fm_environment_free(&env);
    if (failure) {
        fm_fail(&error, is_shortage(failure) ? FM_OVERLOADED : FM_UNAVAILABLE,
                "can't start the engine program %s: %s%s", engine->path, strerror(failure), start_hint(failure));
    }
    fm_front_lock(front);
    struct fm_outbox_options outbox = {.fd = child->to_child,
                                       .max = QUEUE_MAX,
                                       .stall_ms = FM_STALL_MS,
                                       .on_fail = on_engine_outbox_failure,
                                       .next = fm_engine_next_job,
                                       .context = engine};
    if (error.code == FM_OK && (failure = fm_outbox_start(&engine->outbox, &outbox))) {
        fm_child_kill(child->pid);
        fm_child_reap(child->pid);
        close_child(child);
        fm_close(child->errors);
        fm_fail(&error, FM_OVERLOADED, "can't start a thread for the engine: %s", strerror(failure));
    }
    if (error.code != FM_OK) {
        fm_engine_note_end_locked(engine, FM_END_REFUSED, &error);
    } else {
        engine->pid = child->pid;
        front->metrics.engine_starts++;
        fm_engine_send_initialize_locked(engine);
    }
    if (error.code == FM_OK && (front->ending || engine->end_error.code != FM_OK)) {
        fm_child_kill(child->pid); /* the process is no longer needed */
    }
    fm_front_unlock(front);
    return error.code == FM_OK;
}

/* Kills what is left of the process, and frees what belonged to it. */
static void reap_process(struct fm_engine *engine, struct fm_child *child, struct fm_relay *relay) {
    struct fm_front *front = engine->front;
    fm_front_lock(front);
    fm_engine_set_state_locked(engine, FM_ENGINE_STOPPING);
    engine->pid = 0;
    fm_front_unlock(front);
    fm_child_kill(child->pid);
    while (!fm_outbox_stop(&engine->outbox, 0)) { /* a write to the dead engine's pipe fails, so the thread ends soon */
    }
    int status = fm_child_reap(child->pid);
    close_child(child);
    fm_relay_end(relay); /* logs the engine's last lines, such as why it aborted */
    fm_log(FM_LOG_INFO, "engine %d ended with %d", (int)child->pid, status);
    fm_front_lock(front);
    describe_death_locked(engine, status);
    engine->drop_saved |= engine->died && !front->ending; /* the saved state that the engine read may be the reason */
    if (engine->end == FM_END_CRASH && !front->ending && engine->probes) {
        front->metrics.engine_deaths++;
    } else if (engine->end == FM_END_CRASH && !front->ending) {
        front->metrics.engine_deaths++;
        fm_crash_loop_note(&engine->program->crash_loop, fm_model_blamed(&engine->model), &engine->end_error,
                           fm_now_ms());
    }
    fm_front_unlock(front);
}

/* `path` (NULL: none) as the engine gets it. False when out of memory. */
static bool resolve_path(const char *path, char **resolved) {
    *resolved = path ? fm_file_resolve(path) : NULL;
    if (!*resolved && path) {
        *resolved = strdup(path); /* the file has just been removed: the engine will report that */
    }
    return *resolved || !path;
}

/* False when out of memory. */
static bool copy_model(struct fm_model *copy, const struct fm_model *model) {
    copy->engine = model->engine;
    copy->listed = model->listed;
    copy->id = strdup(model->listed ? model->engine->name : model->id);
    copy->found = model->found;
    copy->created = model->created;
    bool resolved = resolve_path(model->path, &copy->path);
    resolved = resolve_path(model->draft, &copy->draft) && resolved;
    return resolve_path(model->mmproj, &copy->mmproj) && resolved && copy->id;
}

static bool is_gpu_wanted(const struct fm_engine *engine) {
    const struct fm_options *options = &engine->front->options;
    bool there = options->gpu_dir && options->gpu_dir[0];
    return there && strcmp(options->gpu, "off") != 0 && !engine->program->gpu_given_up;
}

/* Opens the files for the new process, if its engine can use them. */
static void open_files(struct fm_engine *engine) {
    const struct fm_model *model = &engine->model;
    if (engine->program->files.descriptor.features & FM_FEATURE_SAVED_STATE && !engine->probes) {
        fm_kv_files_open(&engine->kv, &engine->front->options, engine->program->files.name,
                         model->path ? model->path : model->id);
    }
}

static void close_files(struct fm_engine *engine) {
    if (engine->drop_saved) {
        fm_kv_files_drop(&engine->kv);
    }
    fm_kv_files_close(&engine->kv, engine->saved_bytes);
}

/*
 * Handles the end of a process that had to report whether its program is available. If the process did not report, the
 * reason for its end is the result.
 */
static void note_probe_locked(struct fm_engine *engine) {
    if (engine->probes && engine->program->asking) {
        engine->program->asking = false;
        if (!engine->front->ending) {
            fm_availability_fail(&engine->program->availability, &engine->end_error, fm_now_ms());
        }
    }
}

static void *engine_main(void *argument) {
    struct fm_engine *engine = argument;
    struct fm_front *front = engine->front;
    struct fm_child child = {0};
    struct fm_relay relay;
    open_files(engine);
    if (start_process(engine, &child)) {
        fm_relay_begin(&relay, child.errors, engine->program->files.name);
        read_engine(engine, &child, &relay);
        reap_process(engine, &child, &relay);
    }
    close_files(engine);
    fm_front_enter(front);
    settle_after_death_locked(engine);
    note_probe_locked(engine);
    fm_close(engine->wake_read);
    fm_close(engine->wake_write);
    fm_engine_set_state_locked(engine, FM_ENGINE_IDLE);
    engine->memory = 0;
    fm_model_free(&engine->model);
    front->threads--;
    pthread_cond_broadcast(&front->quiet);
    fm_front_leave(front); /* this may start the next process in this place, on another thread */
    return NULL;
}

/* Starts the engine's thread, and creates the pipe that wakes it. 0 or an errno value. */
static int start_thread(struct fm_engine *engine) {
    int failure = fm_pipe(&engine->wake_read, &engine->wake_write);
    if (failure) {
        return failure;
    }
    failure = fm_thread_start(engine_main, engine);
    if (failure) {
        fm_close(engine->wake_read);
        fm_close(engine->wake_write);
    }
    return failure;
}

/* Resets what an earlier process in this place has left. */
static void reset_place(struct fm_engine *engine) {
    engine->initialized = false;
    engine->loaded = false;
    engine->wanted = false;
    engine->died = false;
    engine->saves = false;
    engine->drop_saved = false;
    engine->saved_bytes = 0;
    engine->kill_ms = 0;
    engine->silent = false;
    engine->lost_count = 0;
    engine->deaf = false;
    engine->gpu_told = !engine->probes && is_gpu_wanted(engine);
    engine->gpu_unused = false;
    engine->end_error.code = FM_OK;
    engine->started_ms = fm_now_ms();
    engine->used_us = fm_now_us();
    engine->warming = false;
    engine->keep_alive_ms = fm_engine_keep_alive(engine->front, NULL);
}

/* Starts the engine. `code` is the result of earlier steps; FM_OK: the place has all that its thread needs. */
static enum fm_code start_engine(struct fm_engine *engine, enum fm_code code, struct fm_error *error) {
    reset_place(engine);
    fm_engine_set_state_locked(engine, FM_ENGINE_STARTING); /* before its thread reads the state */
    int failure = code ? 0 : start_thread(engine);
    if (failure) {
        code = fm_fail(error, FM_OVERLOADED, "can't start a thread for the engine: %s", strerror(failure));
    }
    if (code == FM_OK) {
        engine->front->threads++;
    } else {
        fm_engine_set_state_locked(engine, FM_ENGINE_IDLE);
        engine->memory = 0;
        fm_model_free(&engine->model);
    }
    return code;
}

enum fm_code fm_engine_start_locked(struct fm_engine *engine, const struct fm_model *model, struct fm_error *error) {
    enum fm_code code = copy_model(&engine->model, model) ? FM_OK : fm_fail_no_memory(error);
    engine->program = fm_program_of(engine->front, model);
    engine->memory = fm_needs_of(&engine->program->needs, model, NULL);
    return start_engine(engine, code, error);
}

void fm_engine_ask_locked(struct fm_program *program, struct fm_engine *probe) {
    struct fm_error error;
    if (program->asking || probe->state != FM_ENGINE_IDLE || probe->front->ending) {
        return;
    }
    probe->probes = true;
    enum fm_code code = fm_model_of_list(&program->files, NULL, NULL, &probe->model, &error);
    program->asking = start_engine(probe, code, &error) == FM_OK;
}

void fm_engine_dismiss_locked(struct fm_engine *engine, const char *why) {
    end_idle_locked(engine, why, HASTY_SAVE_MS);
}
