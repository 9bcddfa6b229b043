/*
 * The front's shared state: what its parts read and change, and the lock that guards it.
 *
 * The nouns: a *job* is a create call, or a call that streams a stored response, until its last result is on the way.
 * An *engine* is a place for a process of the engine program, and the process with its model, if it runs. The *outbox*
 * is the way to the host. helper/README.md says which thread owns what.
 *
 * Locking: `front->lock` guards the jobs and the engines' state. It is held for microseconds: never during anything
 * that blocks, nor while a large frame is built. Functions named ..._locked want the lock to be held.
 *
 * A large frame (FM_LARGE) is built without the lock. Such a frame carries a job's output to the host, a job to an
 * engine, or a response to the store. Meanwhile `front->building` is set, and no job may change. A thread that may
 * change a job takes the lock by fm_front_enter, which waits until the frame is built, a few ms at most. The host's
 * writer uses fm_front_try_enter, which does not wait. A thread that needs the lock for anything else uses
 * fm_front_lock.
 *
 * Only one place pumps. A part only changes state: for example, it marks a job as settled, to be stored, or to be
 * aborted. fm_front_pump_locked does what follows from the change. Every thread that changed something calls
 * fm_front_leave, which pumps before it releases the lock. This is the only call that goes up, from each part to pump.c
 * above them all, and what the pump calls doesn't pump again. All other calls go down: tests/style/includes.py checks
 * this.
 *
 * Settle once: a job's end may be decided by its engine, its watchdog, a cancel, a dead engine or shutdown. All of them
 * hold the lock and call fm_job_settle_locked. After the first of these calls the job is closing, and
 * fm_job_by_number_locked does not find it any more, so the first end wins. Other threads refer to a job by its number,
 * never by pointer.
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
#define FM_ENGINES_MAX      (FM_OPTIONS_ENGINES_MAX + FM_PROGRAMS_MAX) /* engines with files, and engines without */
#define FM_SILENCE_MS       5000 /* an engine that ignored an abort is ended if it sends nothing for this long */
#define FM_CANCEL_WAITERS   4
#define FM_STOPPED_MS       1000  /* a thread that wakes this much too late was stopped: SIGSTOP, a debugger, suspend */
#define FM_STALL_MS         60000 /* a peer that takes no byte for this long is gone */
#define FM_LARGE            65536 /* bytes: what may be longer is not built under the lock */
#define FM_EVENT_MAX        (64u << 20)  /* most bytes of one message in the making: an answer's text, escaped */
#define FM_KEEP_BYTES       (256u << 10) /* a larger buffer is given back after its frame */

struct fm_front;

/* ---- jobs ---- */

enum fm_job_state {
    FM_JOB_FREE,    /* the slot is empty */
    FM_JOB_QUEUED,  /* waits for the engine */
    FM_JOB_SENT,    /* in the engine, which has not accepted the prompt yet */
    FM_JOB_RUNNING, /* the engine accepted the prompt */
    FM_JOB_CLOSING, /* settled: the remaining messages wait for the host */
};

struct fm_job {
    struct fm_front *front;
    struct fm_engine *engine; /* an engine with the job's model, which has the job or gets it; NULL: none yet */
    enum fm_job_state state;
    bool stopping;         /* the job is to end early; `stop_error` says how */
    bool abort_due;        /* job.abort has to be sent */
    bool produced;         /* the first output has come */
    bool streamed;         /* a reader gets events, or got some: output can't be taken back */
    bool resolve_due;      /* the store has to be asked for the response that the request continues */
    bool storing;          /* once closing: the last messages wait for the store */
    bool put_due;          /* once closing: the response has to be given to the store */
    uint64_t number;       /* never used twice */
    uint64_t run;          /* the job's number for the engine: `number`, then a new one for each choice */
    struct fm_rpc_id call; /* the create call's id */
    struct fm_model model;
    struct fm_route route; /* other engines that may do the job if this one can't */
    struct fm_answer answer;
    struct fm_cursor cursor; /* the position in the create call's stream */
    bool stream;             /* the create call still gets events */
    bool last_event_sent;    /* the create call has got its last event */
    bool full_result;        /* the call's fm.full_result: its result repeats the object of the last event */
    bool replays;            /* a call of responses.retrieve, which gets the events of another response */
    struct fm_job *source;   /* the job that still makes the replayed response; NULL: `answer` has the stored one */
    unsigned readers;        /* jobs that have this job as their `source`; this job stays as long as they do */
    int64_t after;           /* events up to this sequence_number are not sent */
    int64_t arrived_ms;
    int64_t queued_us; /* when the job, or its next choice, came into the queue */
    int64_t accepted_ms;
    int64_t progress_ms;  /* last sign of progress: the job's; while queued, the engine's; or when the job was sent */
    int64_t grace_end_ms; /* while stopping: when the engine is ended if it has not obeyed */
    struct fm_error stop_error;
    struct fm_error end_error;                        /* once closing: why the job failed; code FM_OK: it did not */
    struct fm_rpc_id cancel_calls[FM_CANCEL_WAITERS]; /* cancel calls, answered after the create call */
    unsigned cancel_count;
    unsigned results_sent;  /* how many of the 1 + cancel_count results were sent */
    pthread_cond_t changed; /* wakes the watchdog; lives as long as the slot, over many jobs */
};

/* ---- engines ---- */

enum fm_engine_state { FM_ENGINE_IDLE, FM_ENGINE_STARTING, FM_ENGINE_READY, FM_ENGINE_STOPPING };

/*
 * The reason for an engine's end. If the model is not loaded yet, it decides what happens to the jobs that wait for it.
 */
enum fm_engine_end {
    FM_END_CRASH,   /* the engine's own fault: the jobs fail, and the end counts for the crash loop */
    FM_END_REFUSED, /* the engine reported why it can't go on: the jobs fail */
    FM_END_ASKED,   /* the engine makes way: the jobs go on waiting */
};

/* An engine program: the common state of all its processes, and what is remembered of processes that ended. */
struct fm_program {
    struct fm_engine_files files; /* constant while threads run, like `config` */
    struct fm_config config;
    struct fm_verdict availability;
    bool asking; /* a process of this program is checking whether the program is available */
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
    bool probes;            /* this place is in front->probes, and only checks whether the program is available */
    struct fm_model model;  /* the model that the process loads or holds */
    char path[PATH_MAX];    /* the program's path */
    pid_t pid;              /* 0: there is no process that may be killed */
    int64_t state_since_ms; /* when the engine entered its state */
    int64_t started_ms;
    int64_t load_ms;        /* time from started_ms until the engine was ready */
    int64_t context_length; /* tokens, as the engine reported; 0: not reported */
    bool warming;           /* started by models.load; the engine ends if nobody waits for the load any more */
    int64_t memory;         /* bytes that the model takes: first an estimate, then what the engine reports */
    int64_t used_us;        /* last time it got or ended a job, or its start (in ms, two could be the same) */
    unsigned slots;         /* how many jobs the engine runs at once */
    bool silent;            /* the engine's jobs show no progress before their first output */
    uint64_t lost[FM_SLOTS_MAX]; /* runs whose jobs are settled, but which the engine has not aborted yet */
    unsigned lost_count;
    bool deaf;                 /* it was ended because it did not stop a job */
    struct fm_buf spent[2];    /* what an accepted job needed; its thread frees it without the lock */
    int64_t lost_ms;           /* when the last of `lost` was added, or when the engine last had another job */
    int64_t heard_ms;          /* when the last message from the engine came */
    struct fm_outbox outbox;   /* to its stdin; valid while pid is not 0 */
    struct fm_error end_error; /* why the engine is being ended; code FM_OK: no reason noted */
    enum fm_engine_end end;    /* the kind of that end */
    int wake_read;             /* while the engine has a thread: bytes in this pipe make the thread look at the state */
    int wake_write;
    int64_t kill_ms;       /* when a process that was asked to end is killed; 0: it was not asked */
    struct fm_kv_files kv; /* only for the engine's thread: the saved files to read and to write */
    bool saves;            /* the process can save its state: it has a model, and files */
    bool drop_saved;       /* the engine can't use its predecessor's saved state: that file is to be removed */
    int64_t saved_bytes;   /* bytes that the engine reported as saved; 0: not reported */
    unsigned signs;        /* how many signs of progress came, in loading or any job; the count wraps */
    bool initialized;      /* the engine answered engine.initialize */
    int64_t progress_ms;   /* while starting: time of the last step, or of the last rise of load_progress */
    double load_progress;  /* the highest value so far */
    bool loaded;           /* the engine answered engine.load with ok */
    bool wanted;           /* at the last look of its thread, the engine had a job, or a job waited for it */
    int64_t keep_alive_ms; /* how long the engine may go without a job, as its last job said; -1: for ever */
    int64_t idle_since_ms; /* when the engine was first seen without a job */
    unsigned parameters;   /* extras that the engine has: bit i is fm_extra_names[i] */
    bool gpu_told;         /* the engine was given a GPU's library */
    bool gpu_unused;       /* the engine reported that it uses no GPU */
    bool died;             /* nobody ended the process, and it did not say why it ends */
    struct fm_buf message; /* short messages to the engine that are being made */
    struct fm_buf large;   /* the large message that the engine's writer sends; only for that thread */
    uint64_t last_turn;    /* jobs with a higher number wait: another model needs the place (engines/places.c) */
};

/* ---- the store's queue ---- */

struct fm_store_task;

/* The queue of tasks for the store, and the thread that alone has the store itself. */
struct fm_store_queue {
    bool started;
    bool ending;
    pthread_cond_t changed;
    struct fm_store_task *first;
    struct fm_store_task **last;   /* where the next task goes */
    struct fm_store_task *running; /* no longer in the list; only the store's thread uses it, except its call's id */
    unsigned calls;                /* tasks that answer a call */
    bool reply_waits;              /* `reply`, a frame for the host, waits for room; `reply_call` is its id */
    struct fm_buf reply;
    struct fm_rpc_id reply_call;
    struct fm_buf pulled;    /* the reply that the host's writer sends; only that thread uses it */
    bool known;              /* the store was opened, or an attempt failed */
    struct fm_error trouble; /* why nothing can be stored, as far as is known; code FM_OK: it can */
    char said[512];          /* only for the store's thread: the trouble that was logged last */
    int64_t said_ms;
};

/* ---- the log of ignored parameters ---- */

#define FM_LOGGED_NAMES    64
#define FM_LOGGED_NAME_MAX 64 /* bytes */

/* Names of ignored parameters that were logged, each once. */
struct fm_logged_names {
    unsigned count;
    char names[FM_LOGGED_NAMES][FM_LOGGED_NAME_MAX + 1];
};

/* ---- large frames ---- */

/* A frame of a job with a large answer, for the host's writer. See streams.c. */
struct fm_large_frame {
    struct fm_job *job; /* the frame's job; until the frame is taken, the job has no other frame and is not released */
    bool is_result;     /* the frame is a result; otherwise an event */
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
    bool reply_first;               /* only the writer uses it: the store's reply goes before a large frame this time */
    atomic_bool out_of_memory;      /* the process ends with EX_SOFTWARE */
    bool stuck;                     /* see fm_front_run */
    struct fm_metrics metrics;      /* guarded by the lock, except the byte counters */
    atomic_bool shutdown_called;    /* process.shutdown came: nothing is dispatched any more */
    struct fm_rpc_id shutdown_call; /* the id of that call, which is answered last; or none */

    pthread_mutex_t lock;   /* guards all members below */
    pthread_cond_t quiet;   /* a thread ended: a watchdog, the store's or an engine's */
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
    unsigned threads;    /* running threads: watchdogs, the store's and the engines' */
    bool ending;         /* no new jobs, no new engine */
    struct fm_buf event; /* the message to the host that is being made */
    bool said_all;       /* the end has come: no more large frames are begun */
    struct fm_large_frame large;
};

/* Call it before the first thread starts; the caller frees the state after the last thread. `options` is copied. */
void fm_front_state_init(struct fm_front *front, const struct fm_options *options);
void fm_front_state_free(struct fm_front *front);

/*
 * Reports that memory ran out for something that must not be lost. No further frame goes to the host, and the main
 * thread ends the process with EX_SOFTWARE, which the host can't miss. Any thread, any lock; never blocks.
 */
void fm_front_no_memory(struct fm_front *front);

/* Sends what was built in `buf` between fm_frame_begin and this call. If memory ran out, calls fm_front_no_memory. */
void fm_send_frame(struct fm_front *front, struct fm_outbox *outbox, struct fm_buf *buf);

/*
 * Ends a frame in `buf` like fm_send_frame, for an outbox that pulls frames. The frame stays valid until `buf` changes.
 * False when out of memory.
 */
bool fm_end_frame(struct fm_front *front, struct fm_outbox *outbox, struct fm_buf *buf, const char **frame, size_t *len);

/*
 * Does what follows from a change of state: hands jobs and aborts to the engines, gives the store its tasks, and sends
 * the host the messages of jobs. For a large message it only wakes the outbox's writer, which builds it. Never blocks.
 * Any thread.
 */
void fm_front_pump_locked(struct fm_front *front);

/* Called when an outbox has room again; `front` is the context of that outbox. Takes the lock. */
void fm_front_on_room(void *front);

/* Takes the lock for anything but jobs and their answers. */
static inline void fm_front_lock(struct fm_front *front) {
    pthread_mutex_lock(&front->lock);
}

/* Releases the lock. */
static inline void fm_front_unlock(struct fm_front *front) {
    pthread_mutex_unlock(&front->lock);
}

/*
 * Waits while a frame is built, a few ms at most. The lock is released meanwhile, so the caller must check its state
 * again.
 */
static inline void fm_front_await_built_locked(struct fm_front *front) {
    while (atomic_load(&front->building)) {
        pthread_cond_wait(&front->built, &front->lock);
    }
}

/*
 * Takes the lock like fm_front_enter, for a thread that must not wait while a frame is built. False: a frame is being
 * built, and the lock is not taken. The thread that builds the frame pumps afterwards, which wakes the writer.
 */
FM_MUST_USE static inline bool fm_front_try_enter(struct fm_front *front) {
    pthread_mutex_lock(&front->lock);
    bool entered = !atomic_load(&front->building);
    if (!entered) {
        pthread_mutex_unlock(&front->lock);
    }
    return entered;
}

/* Takes the lock to change something. Release it with fm_front_leave, which pumps first. */
static inline void fm_front_enter(struct fm_front *front) {
    pthread_mutex_lock(&front->lock);
    fm_front_await_built_locked(front);
}

/* Pumps, then releases the lock. */
static inline void fm_front_leave(struct fm_front *front) {
    fm_front_pump_locked(front);
    pthread_mutex_unlock(&front->lock);
}

/* Waits on `changed` until `deadline_ms` (fm_now_ms), with the lock taken by fm_front_enter. */
void fm_front_wait_locked(struct fm_front *front, pthread_cond_t *changed, int64_t deadline_ms);

/*
 * Call these around the building of a large frame. The first releases the lock, which the caller took by
 * fm_front_enter, and no job can change meanwhile. The second takes the lock again.
 */
void fm_front_build_begin_locked(struct fm_front *front);
void fm_front_build_end_locked(struct fm_front *front);

#endif
