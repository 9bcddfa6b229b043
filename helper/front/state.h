/*
 * The front's shared state: what its parts read and change, and the lock that guards it.
 *
 * The nouns: a *job* is a create call, or one that streams a stored response, until its last result is on the way; an
 * *engine* is a place for a process of the engine program, and the process with its model, if it runs; the *outbox* is
 * the way to the host. helper/README.md says which thread owns what.
 *
 * Locking: `front->lock` guards the jobs and the engines' state. It is held for microseconds: never across anything
 * that blocks, nor while a large frame is built. Functions named ..._locked want it held.
 *
 * A large frame (FM_LARGE) is built without the lock: of what a job has said for the host, of a job for an engine, of a
 * response for the store. Meanwhile `front->building` is set, and no job may change. Who may change one takes the lock
 * by fm_front_enter, which waits for the end of that, a few ms at most; the host's writer by fm_front_try_enter, which
 * does not wait; who has to do with anything else by fm_front_lock.
 *
 * One place pumps. A part changes state and no more: it marks a job as settled, as to be stored, as to be aborted.
 * What follows from that is done by fm_front_pump_locked, which every thread that changed something calls before it
 * lets go of the lock: fm_front_leave. It is the one call that goes up, from each part to pump.c above them all, and
 * what the pump calls doesn't pump again. All other calls go down: tests/style/includes.py checks it.
 *
 * Settle once: a job's end may be decided by its engine, its watchdog, a cancel, a dead engine or shutdown. All of them
 * hold the lock and come to fm_job_settle_locked. From then on the job is closing, and fm_job_by_number_locked does not
 * find it any more: the first one wins. Other threads name a job by its number, never by pointer.
 */
#ifndef FM_FRONT_STATE_H
#define FM_FRONT_STATE_H

#include "base/platform.h"
#include "front/engines/availability.h"
#include "front/engines/config.h"
#include "front/engines/crash_loop.h"
#include "front/engines/failed_load.h"
#include "front/engines/descriptor.h"
#include "front/engines/kv_files.h"
#include "front/engines/memory.h"
#include "front/engines/models.h"
#include "front/metrics.h"
#include "front/options.h"
#include "front/outbox.h"
#include "protocol/engine.h"
#include "protocol/gpu.h"
#include "protocol/rpc.h"
#include "protocol/sandbox.h"
#include "surface/surface.h"

#include <pthread.h>
#include <stdatomic.h>

#define FM_JOBS_MAX         64
#define FM_PROGRAMS_MAX     FM_OPTIONS_ORDER_MAX
#define FM_ENGINES_MAX      (FM_OPTIONS_ENGINES_MAX + FM_PROGRAMS_MAX) /* models of files, and engines without */
#define FM_SILENCE_MS       5000 /* an engine that has not obeyed an abort, and says nothing for this long, is ended */
#define FM_CANCEL_WAITERS   4
#define FM_STOPPED_MS       1000  /* a thread that wakes this much too late was stopped: SIGSTOP, a debugger, suspend */
#define FM_STALL_MS         60000 /* a peer that takes no byte for this long is gone */
#define FM_LARGE            65536 /* bytes: what may be longer is not built under the lock */
#define FM_EVENT_MAX        (64u << 20)  /* bytes of one message in the making: an answer's text, escaped */
#define FM_KEEP_BYTES       (256u << 10) /* a larger buffer is given back after its frame */

struct fm_front;

/* ---- jobs ---- */

enum fm_job_state {
    FM_JOB_FREE,    /* the slot is empty */
    FM_JOB_QUEUED,  /* waits for the engine */
    FM_JOB_SENT,    /* in the engine, the prompt not accepted yet */
    FM_JOB_RUNNING, /* the engine accepted the prompt */
    FM_JOB_CLOSING, /* settled: what is left to say waits for the host */
};

struct fm_job {
    struct fm_front *front;
    struct fm_engine *engine; /* with the job's model: the job waits for this engine or is in it; NULL: none yet */
    enum fm_job_state state;
    bool stopping;         /* the job is to end early; `stop_error` says how */
    bool abort_due;        /* job.abort has to be sent */
    bool produced;         /* the first output has come */
    bool streamed;         /* a reader gets the events, or got some: output is not taken back */
    bool resolve_due;      /* the store has to be asked for what the request goes on with */
    bool storing;          /* once closing: the last messages wait for the store */
    bool put_due;          /* once closing: the response has to be given to the store */
    uint64_t number;       /* never used twice */
    uint64_t run;          /* the job's number for the engine: `number`, then a new one for each choice */
    struct fm_rpc_id call; /* the create call's id */
    struct fm_model model;
    struct fm_route route; /* other engines that may do it, if this one can't */
    struct fm_answer answer;
    struct fm_cursor cursor; /* how far the create call's stream is */
    bool stream;             /* the create call still gets events */
    bool last_event_sent;    /* the create call has got its last event */
    bool full_result;        /* fm.full_result of the call: its result repeats the object of the last event */
    bool replays;            /* a call of responses.retrieve gets the events of a response that others made */
    struct fm_job *source;   /* the job that still makes the replayed response; NULL: it was stored, and is `answer` */
    unsigned readers;        /* jobs that have this job as their `source`; it stays as long as they do */
    int64_t after;           /* events up to this sequence_number are not sent */
    int64_t arrived_ms;
    int64_t queued_us; /* when the job, or its next choice, came into the queue */
    int64_t accepted_ms;
    int64_t progress_ms;  /* the last sign of progress: the job's, or while queued the engine's; or when it was sent */
    int64_t grace_end_ms; /* while stopping: when the engine is ended if it has not obeyed */
    struct fm_error stop_error;
    struct fm_error end_error;                        /* once closing: why the job failed; code FM_OK: it did not */
    struct fm_rpc_id cancel_calls[FM_CANCEL_WAITERS]; /* answered after the create call */
    unsigned cancel_count;
    unsigned results_sent;  /* how many of the 1 + cancel_count results are sent */
    pthread_cond_t changed; /* wakes the watchdog; lives as long as the slot, over many jobs */
};

/* ---- engines ---- */

enum fm_engine_state { FM_ENGINE_IDLE, FM_ENGINE_STARTING, FM_ENGINE_READY, FM_ENGINE_STOPPING };

/* How an engine comes to its end. Before the model is loaded it decides about the jobs that wait for that model. */
enum fm_engine_end {
    FM_END_CRASH,   /* the engine's own fault: the jobs fail, and the end counts for the crash loop */
    FM_END_REFUSED, /* the engine reported why it can't go on: the jobs fail */
    FM_END_ASKED,   /* the engine makes way: the jobs go on waiting */
};

/* An engine program: what all of its processes have in common, and what is remembered of those that ended. */
struct fm_program {
    struct fm_engine_files files; /* constant while threads run, like `config` */
    struct fm_config config;
    struct fm_verdict availability;
    bool asking; /* a process of it is to tell whether it is available */
    struct fm_crash_loop crash_loop;
    struct fm_failed_loads failed_loads;
    struct fm_needs needs;
    struct fm_descriptor descriptor; /* what the last initialized process reported of itself */
    bool has_sandbox;                /* the last initialized process reported its `sandbox` */
    struct fm_sandbox sandbox;       /* what is in force in that process */
    bool gpu_given_up;               /* a process died with a GPU: later processes get none */
    bool has_gpu;                    /* `gpu` is known */
    struct fm_gpu gpu;               /* what the last process uses, or why it was given no GPU */
};

struct fm_engine {
    struct fm_front *front;
    struct fm_program *program; /* the program that runs in this place; NULL: none ever did */
    enum fm_engine_state state;
    bool probes;            /* it is in front->probes, and only finds out whether the program is available */
    struct fm_model model;  /* the model that the process loads or holds */
    char path[PATH_MAX];    /* the program's path */
    pid_t pid;              /* 0: there is no process that may be killed */
    int64_t state_since_ms; /* when it came to its state */
    int64_t started_ms;
    int64_t load_ms;        /* from started_ms until it was ready */
    int64_t context_length; /* tokens, as the engine reported them; 0: it did not */
    bool warming;           /* it was started by models.load, and ends if nobody waits for the load any more */
    int64_t memory;         /* bytes that the model takes: what is estimated, then what the engine reports */
    int64_t used_us;        /* when a job was handed to it, or ended in it, last; or when it was started (in ms,
                               two could be the same) */
    unsigned slots;         /* jobs it runs at once */
    bool silent;            /* the engine's jobs show no progress before their first output */
    uint64_t lost[FM_SLOTS_MAX]; /* runs that the engine was to abort and still has, though their jobs are settled */
    unsigned lost_count;
    int64_t lost_ms;           /* when the last of `lost` was lost, or when the engine last had another job */
    int64_t heard_ms;          /* when the engine sent something last */
    struct fm_outbox outbox;   /* to its stdin; valid while pid is not 0 */
    struct fm_error end_error; /* why it is being ended; code FM_OK: no reason noted */
    enum fm_engine_end end;    /* the kind of that end */
    int wake_read;             /* while the engine has a thread: bytes in this pipe make the thread look at the state */
    int wake_write;
    int64_t kill_ms;       /* when a process that was asked to end is killed; 0: it was not asked */
    struct fm_kv_files kv; /* only for the engine's thread: the files from the predecessor and for the successor */
    bool saves;            /* the process can save its state: it has a model, and files */
    bool drop_saved;       /* it can't use what its predecessor saved: that file is to be removed */
    int64_t saved_bytes;   /* bytes that it reported as saved; 0: it reported none */
    unsigned signs;        /* how many signs of progress came, in loading or any job; the count wraps */
    bool initialized;      /* answered engine.initialize */
    int64_t progress_ms;   /* while starting: the last step, or load_progress that rose */
    double load_progress;  /* the highest so far */
    bool loaded;           /* answered engine.load with ok */
    bool wanted;           /* the engine had a job, or a job waited for it, when its thread looked last */
    int64_t keep_alive_ms; /* how long it may go without a job, as its last job said; -1: for ever */
    int64_t idle_since_ms; /* when it was first seen without a job */
    unsigned parameters;   /* extras that it has: bit i is fm_extra_names[i] */
    bool gpu_told;         /* the engine was given a GPU's library */
    bool gpu_unused;       /* the engine reported that it uses no GPU */
    bool died;             /* nobody ended the process, nor did it say why it ends */
    struct fm_buf message; /* short messages to the engine that are being made */
    struct fm_buf large;   /* the large message that the engine's writer sends; only for that thread */
    uint64_t last_turn;    /* jobs with a higher number wait: another model needs the place (engines/places.c) */
};

/* ---- the store's queue ---- */

struct fm_store_task;

/* What waits for the store, and its thread, which alone has the store itself. */
struct fm_store_queue {
    bool started;
    bool ending;
    pthread_cond_t changed;
    struct fm_store_task *first;
    struct fm_store_task **last;   /* where the next task goes */
    struct fm_store_task *running; /* no longer in the list; only for the store's thread, except its call's id */
    unsigned calls;                /* tasks that answer a call */
    bool reply_waits;              /* `reply`, a frame for the host, waits for room; `reply_call` is its id */
    struct fm_buf reply;
    struct fm_rpc_id reply_call;
    struct fm_buf pulled;    /* the reply that the host's writer sends; only for that thread */
    bool known;              /* the store has been tried */
    struct fm_error trouble; /* why nothing can be stored, as far as is known; code FM_OK: it can */
    char said[512];          /* only for the store's thread: the trouble that was logged last */
    int64_t said_ms;
};

/* ---- the log of ignored parameters ---- */

#define FM_LOGGED_NAMES    64
#define FM_LOGGED_NAME_MAX 64 /* bytes */

/* Names of ignored parameters that the log has, each once. */
struct fm_logged_names {
    unsigned count;
    char names[FM_LOGGED_NAMES][FM_LOGGED_NAME_MAX + 1];
};

/* ---- large frames ---- */

/* A frame of a job with a large answer, for the host's writer; streams.c. */
struct fm_large_frame {
    struct fm_job *job; /* whose frame it is; the job has no other one, and is not released, until it is taken */
    bool is_result;     /* the frame is a result; else an event */
    bool built;         /* the frame is complete: the writer can take it */
    struct fm_buf buf;  /* belongs to the builder, then to the writer until it asks for the next frame */
    const char *frame;  /* the frame, in `buf` */
    size_t len;         /* bytes */
};

/* ---- all of it ---- */

struct fm_front {
    struct fm_options options;
    int64_t started_ms;
    struct fm_outbox outbox;        /* to the host */
    bool reply_first;               /* only the writer's: this time the store's reply goes before a large frame */
    atomic_bool out_of_memory;      /* the process ends with EX_SOFTWARE */
    bool stuck;                     /* see fm_front_run */
    struct fm_metrics metrics;      /* the lock's, but for the bytes */
    atomic_bool shutdown_called;    /* process.shutdown came: nothing is dispatched any more */
    struct fm_rpc_id shutdown_call; /* the id of that call, which is answered after everything else; or none */

    pthread_mutex_t lock;   /* guards all below */
    pthread_cond_t quiet;   /* a watchdog, the store's thread or an engine's ended */
    pthread_cond_t drained; /* a frame of a job is on its way to the host */
    pthread_cond_t built;   /* `building` is no longer set */
    atomic_bool building;   /* set under the lock: a frame is built without the lock, and no job may change */
    struct fm_job jobs[FM_JOBS_MAX];
    size_t jobs_end; /* all jobs from this index on are free */
    unsigned jobs_in_flight;
    unsigned next_stream;                        /* the job whose turn it is to send something, modulo jobs_end */
    struct fm_program programs[FM_PROGRAMS_MAX]; /* in the order of --engine */
    size_t program_count;                        /* constant, at least 1 */
    struct fm_engine probes[FM_PROGRAMS_MAX];    /* probes[i] finds out whether programs[i] is available */
    int64_t memory_budget; /* bytes that the engines may take together, unless one alone takes more; constant */
    struct fm_engine engines[FM_ENGINES_MAX];
    struct fm_store_queue store_queue;
    struct fm_logged_names logged;
    uint64_t last_number;
    unsigned threads;    /* watchdogs, the store's and the engines' */
    bool ending;         /* no new jobs, no new engine */
    struct fm_buf event; /* messages to the host in the making */
    bool said_all;       /* the end: no large frame is begun any more */
    struct fm_large_frame large;
};

/* Before the first thread; the caller frees it after the last one. `options` is copied. */
void fm_front_state_init(struct fm_front *front, const struct fm_options *options);
void fm_front_state_free(struct fm_front *front);

/*
 * Out of memory for something that must not be lost: no further frame goes to the host, and the main thread ends the
 * process with EX_SOFTWARE, which the host can't miss. Any thread, any lock; never blocks.
 */
void fm_front_no_memory(struct fm_front *front);

/* Sends what was built in `buf` between fm_frame_begin and this call. If memory ran out, calls fm_front_no_memory. */
void fm_send_frame(struct fm_front *front, struct fm_outbox *outbox, struct fm_buf *buf);

/*
 * Ends a frame in `buf` as fm_send_frame does, for an outbox that pulls frames: the frame lies in `buf` until `buf`
 * changes. False when out of memory.
 */
bool fm_end_frame(struct fm_front *front, struct fm_outbox *outbox, struct fm_buf *buf, const char **frame, size_t *len);

/*
 * Does what follows from a change of state: hands jobs and aborts to the engines, gives the store its tasks, and sends
 * the host the messages of jobs. For a large message it only wakes the outbox's writer, which builds it. Never blocks.
 * Any thread.
 */
void fm_front_pump_locked(struct fm_front *front);

/* An outbox has room again; `front` is the context of that outbox. Takes the lock. */
void fm_front_on_room(void *front);

/* Takes the lock for anything but jobs and their answers. */
static inline void fm_front_lock(struct fm_front *front) {
    pthread_mutex_lock(&front->lock);
}

/* Lets go of the lock. */
static inline void fm_front_unlock(struct fm_front *front) {
    pthread_mutex_unlock(&front->lock);
}

/* Waits while a frame is built; a few ms at most. Nothing that was seen under the lock before holds any more. */
static inline void fm_front_await_built_locked(struct fm_front *front) {
    while (atomic_load(&front->building)) {
        pthread_cond_wait(&front->built, &front->lock);
    }
}

/*
 * Takes the lock as fm_front_enter, for a thread that must not wait while a frame is built. False: a frame is being
 * built, and the lock is not taken; the thread that builds it pumps afterwards, which wakes the writer for what waits.
 */
FM_MUST_USE static inline bool fm_front_try_enter(struct fm_front *front) {
    pthread_mutex_lock(&front->lock);
    bool entered = !atomic_load(&front->building);
    if (!entered) {
        pthread_mutex_unlock(&front->lock);
    }
    return entered;
}

/* Takes the lock to change something. Let go of it with fm_front_leave, which pumps first. */
static inline void fm_front_enter(struct fm_front *front) {
    pthread_mutex_lock(&front->lock);
    fm_front_await_built_locked(front);
}

/* Pumps, then lets go of the lock. */
static inline void fm_front_leave(struct fm_front *front) {
    fm_front_pump_locked(front);
    pthread_mutex_unlock(&front->lock);
}

/* Waits on `changed` until `deadline_ms` (fm_now_ms), as after fm_front_enter. */
void fm_front_wait_locked(struct fm_front *front, pthread_cond_t *changed, int64_t deadline_ms);

/*
 * Around the making of a large frame: lets go of the lock, which the caller has by fm_front_enter, while no job can
 * change; takes it again.
 */
void fm_front_build_begin_locked(struct fm_front *front);
void fm_front_build_end_locked(struct fm_front *front);

#endif
