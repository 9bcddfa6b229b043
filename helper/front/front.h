/*
 * The front's shared state and the calls between its parts.
 *
 * The nouns: a *job* is a create call from its acceptance until its last result is on the way; the *engine* is the one
 * engine process (or none); the *outbox* is the way to the host. helper/README.md tells which thread owns what.
 *
 * Locking: `front->lock` guards the jobs and the engine's state. It is never held across anything that blocks: sending
 * only appends to an outbox, so a health.ping waits microseconds for it. Functions named ..._locked want it held.
 *
 * Settle once: a job's end may be decided by its engine, its watchdog, a cancel, a dead engine or shutdown. All of them
 * hold the lock and come to fm_job_settle_locked. From then on the job is closing, and fm_job_by_number_locked does not
 * find it any more: the first one wins. Other threads name a job by its number, never by pointer.
 */
#ifndef FM_FRONT_FRONT_H
#define FM_FRONT_FRONT_H

#include "base/platform.h"
#include "front/crash_loop.h"
#include "front/models.h"
#include "front/options.h"
#include "front/outbox.h"
#include "protocol/inbound.h"
#include "surface/surface.h"

#include <pthread.h>
#include <stdatomic.h>

#define FM_PROTOCOL_VERSION 1
#define FM_JOBS_MAX         64
#define FM_CANCEL_WAITERS   4
#define FM_STORE_CALLS_MAX  64
#define FM_GRACE_MS         750         /* from job.abort until the engine is ended */
#define FM_STOPPED_MS       1000        /* who wakes so much too late was stopped: SIGSTOP, a debugger, suspend */
#define FM_STALL_MS         60000       /* a peer that takes no byte for so long is gone */
#define FM_HOST_QUEUE_MAX   (8u << 20)  /* bytes queued for the host; beyond it the host counts as gone */
#define FM_HOST_ROOM        (64u << 10) /* bytes: below it, streams and results are queued too, not replies alone */
#define FM_BACKLOG_PAUSE    (2u << 20)  /* bytes of text waiting for the host: above it, generation pauses */
#define FM_ENGINE_QUEUE_MAX (16u << 20)
#define FM_ENGINE_ROOM      (64u << 10) /* bytes: below it, a prompt is queued for the engine */

enum fm_job_state {
    FM_JOB_FREE,    /* the slot is empty */
    FM_JOB_QUEUED,  /* waits for the engine */
    FM_JOB_SENT,    /* in the engine, the prompt not accepted yet */
    FM_JOB_RUNNING, /* the engine accepted the prompt */
    FM_JOB_CLOSING, /* settled: what is left to say waits for the host */
};

struct fm_front;

struct fm_job {
    struct fm_front *front;
    enum fm_job_state state;
    bool stopping;         /* job.abort was sent; `stop_error` is how it will end */
    bool produced;         /* the first output has come */
    bool storing;          /* once closing: what is left to say waits for the store */
    uint64_t number;       /* never used twice */
    uint64_t run;          /* the number that the engine knows it by: `number`, then a new one for each choice */
    struct fm_rpc_id call; /* the create call's id */
    struct fm_model model;
    struct fm_answer answer;
    struct fm_cursor cursor; /* how far the create call's stream is */
    bool stream;             /* the call gets events: still */
    bool replays;            /* a call of responses.retrieve gets the events of a response that others made */
    struct fm_job *source;   /* the job that makes it still; NULL: it was stored, and is `answer` */
    unsigned readers;        /* jobs that have this one as their `source`; it stays as long as they do */
    int64_t after;           /* events up to this sequence_number are not sent */
    int64_t arrived_ms;
    int64_t accepted_ms;
    int64_t progress_ms;  /* the last sign of progress: its own, or while it is queued the engine's; or it was sent */
    int64_t grace_end_ms; /* while stopping: when the engine is ended */
    struct fm_error stop_error;
    struct fm_error end_error;                        /* once closing: why it failed; code FM_OK: it did not */
    struct fm_rpc_id cancel_calls[FM_CANCEL_WAITERS]; /* answered behind the create call */
    unsigned cancel_count;
    unsigned results_sent;  /* of 1 + cancel_count */
    pthread_cond_t changed; /* wakes the watchdog; lives as long as the slot, over many jobs */
};

enum fm_engine_state { FM_ENGINE_IDLE, FM_ENGINE_STARTING, FM_ENGINE_READY, FM_ENGINE_STOPPING };

/* How an engine comes to its end. Before the model is loaded it decides about the jobs that wait for that model. */
enum fm_engine_end {
    FM_END_CRASH,   /* its own fault: they are told, and it counts for the crash loop */
    FM_END_REFUSED, /* it said why it can't: they are told */
    FM_END_ASKED,   /* it makes way: they go on waiting */
};

struct fm_engine {
    enum fm_engine_state state;
    struct fm_model model; /* the one it loads or holds */
    char program[PATH_MAX];
    pid_t pid;                 /* 0: none that may be killed */
    unsigned slots;            /* jobs it runs at once */
    unsigned held;             /* jobs in it */
    struct fm_outbox outbox;   /* to its stdin; valid while pid is not 0 */
    struct fm_error end_error; /* why it is being ended; code FM_OK: no reason noted */
    enum fm_engine_end end;    /* what kind of end that is */
    struct fm_crash_loop crash_loop;
    unsigned signs;            /* of progress, in loading or any job; it wraps */
    bool initialized;          /* answered engine.initialize */
    int64_t progress_ms;       /* while starting: the last step, or load_progress that rose */
    double load_progress;      /* the highest so far */
    bool loaded;               /* answered engine.load with ok */
    unsigned parameters;       /* extras that it has: bit i is fm_extra_names[i] */
    bool has_sandbox;          /* the last one that was initialized told what is below */
    struct fm_sandbox sandbox; /* what the engine says is in force */
    struct fm_buf message;     /* messages to the engine in the making */
};

struct fm_ignored;
struct fm_store;
struct fm_store_task;

/* What a call asks the store. */
struct fm_store_query {
    char id[FM_ID_SIZE]; /* of the response; one that is longer is none */
    int limit;           /* items in the list */
    bool ascending;
    char after[256]; /* the item that the list begins behind; "": none */
    bool again;      /* set by the reply: the response is on its way into the store, so ask again behind that */
    uint64_t job;    /* number of the job that waits for it, if one does */
    const struct fm_ignored *ignored; /* of the call's params; NULL: nothing. Borrowed for the call that asks */
};

/*
 * Answers a call, in the store's thread and without the lock: as fm_method.run. `store` NULL: there is no memory for
 * it, and `error` is filled already.
 */
typedef enum fm_code fm_store_reply_fn(struct fm_front *front, struct fm_store *store, struct fm_store_query *query,
                                       struct fm_json_writer *result, struct fm_error *error);

/* What waits for the store, and its thread, which alone has the store itself. */
struct fm_storage {
    bool started;
    bool ending;
    pthread_cond_t changed;
    struct fm_store_task *first;
    struct fm_store_task **last;   /* where the next task goes */
    struct fm_store_task *running; /* out of the list, and the thread's alone but for its call's id */
    unsigned calls;                /* tasks that answer one */
    bool reply_waits;              /* `reply`, a frame for the host, waits for room; `reply_call` is its id */
    struct fm_buf reply;
    struct fm_rpc_id reply_call;
    bool known;              /* the store has been tried */
    struct fm_error trouble; /* why nothing can be stored, as far as is known; code FM_OK: it can */
    char said[512];          /* the thread's alone: what stderr has of such a trouble, and since when */
    int64_t said_ms;
};

#define FM_LOGGED_NAMES    64
#define FM_LOGGED_NAME_MAX 64 /* bytes */

/* Names of ignored parameters that the log has, each once. */
struct fm_logged_names {
    unsigned count;
    char names[FM_LOGGED_NAMES][FM_LOGGED_NAME_MAX + 1];
};

struct fm_front {
    struct fm_options options;
    int64_t started_ms;
    struct fm_outbox outbox;        /* to the host */
    atomic_bool out_of_memory;      /* the process ends with EX_SOFTWARE */
    bool stuck;                     /* see fm_front_run */
    struct fm_buf reply;            /* the reader's: replies in the making */
    bool shutdown_called;           /* the reader's: process.shutdown came */
    struct fm_rpc_id shutdown_call; /* the reader's: its id, answered behind everything else; or none */

    pthread_mutex_t lock;   /* guards all below */
    pthread_cond_t quiet;   /* a watchdog or the engine's thread ended */
    pthread_cond_t drained; /* a frame of a job was queued for the host */
    struct fm_job jobs[FM_JOBS_MAX];
    unsigned jobs_in_flight;
    unsigned next_stream; /* whose turn it is to say something, modulo FM_JOBS_MAX */
    struct fm_engine engine;
    struct fm_storage storage;
    struct fm_logged_names logged;
    uint64_t last_number;
    unsigned threads;    /* watchdogs and the engine's thread */
    bool ending;         /* no new jobs, no new engine */
    struct fm_buf event; /* messages to the host in the making */
};

/* ---- front.c ---- */

/* Where the host is. */
struct fm_wire {
    int in;     /* frames from it; stays the caller's */
    int out;    /* frames to it; closed before fm_front_run returns */
    int end_fd; /* polls readable when the front is to end; stays the caller's. -1: the end of `in` is the only one */
};

/*
 * Serves until the end. Returns the process's exit status. Blocks; once in a process. front->stuck: a thread could not
 * be brought to its end, and uses the state still, so only _exit is left.
 */
int fm_front_run(struct fm_front *front, const struct fm_options *options, const struct fm_wire *wire);

/*
 * Out of memory for something that must not be lost: no further frame goes to the host, and the main thread ends the
 * process with EX_SOFTWARE, which the host can't miss. Any thread, any lock; never blocks.
 */
void fm_front_no_memory(struct fm_front *front);

/* Sends what was built in `buf` between fm_frame_begin and here; without memory, fm_front_no_memory. */
void fm_send_frame(struct fm_front *front, struct fm_outbox *outbox, struct fm_buf *buf);

/* ---- dispatch.c: the reader's side ---- */

/* Makes `buf` the frame of {"ok":false,"error":...}; any thread. */
void fm_reply_write_failure(struct fm_buf *buf, const struct fm_rpc_id *id, const struct fm_error *error);

extern const struct fm_inbound_handler fm_dispatch_handler; /* copy, and set context to the front */

/* ---- ignored.c ---- */

/*
 * Logs the parameters (`paths` as surface/ignored.h has them) that were ignored: each once in a process, whatever the
 * place in a list. A name that may be a user's text is told by its length.
 */
void fm_log_ignored_locked(struct fm_front *front, const struct fm_buf *paths);

/* ---- jobs.c ---- */

/*
 * Takes a checked request as a new job (`request` and `model` are taken over, also on failure), starts its watchdog and
 * queues it. On failure the caller answers.
 */
FM_MUST_USE enum fm_code fm_job_create_locked(struct fm_front *front, const struct fm_rpc_id *call,
                                              const struct fm_surface *surface, struct fm_request *request,
                                              struct fm_model *model, struct fm_error *error);

/*
 * Takes a call of responses.retrieve as a job, which gets the events behind the one numbered `after` (-1: all) of the
 * response `query->id`, and then its result. `find` looks for it, in the store's thread; fm_job_replayed_locked
 * follows. RATE_LIMITED, OVERLOADED, CANCELLED.
 */
FM_MUST_USE enum fm_code fm_job_replay_locked(struct fm_front *front, const struct fm_rpc_id *call, int64_t after,
                                              struct fm_store_query *query, fm_store_reply_fn *find,
                                              struct fm_error *error);

/*
 * What the job `number` is to tell, if that is there still: the answer of `source`, or `answer` (taken over, or freed);
 * with an `error`, neither.
 */
void fm_job_replayed_locked(struct fm_front *front, uint64_t number, struct fm_job *source, struct fm_answer *answer,
                            const struct fm_error *error);

/* NULL when there is none, or when it is settled. */
struct fm_job *fm_job_by_number_locked(struct fm_front *front, uint64_t number);
struct fm_job *fm_job_by_run_locked(struct fm_front *front, uint64_t run);

/* Whether all calls that the job answers have their results. */
bool fm_job_is_done(const struct fm_job *job);

/* NULL when there is none, or when the create call is answered. */
struct fm_job *fm_job_by_call_locked(struct fm_front *front, const struct fm_rpc_id *call);

/* The same by the response's id; one in the background is there until all calls have their answer. */
struct fm_job *fm_job_by_answer_locked(struct fm_front *front, const char *id);

/* True when `call` is the id of a call that is still to be answered by a job. */
bool fm_call_in_flight_locked(struct fm_front *front, const struct fm_rpc_id *call);

/*
 * The engine has made the answer, or a choice of it, which ended well, as `finish`. Where there is another choice or
 * try, the job goes back to the queue for that, before all that came after it; else, and without memory for it, the job
 * is settled.
 */
void fm_job_made_locked(struct fm_front *front, struct fm_job *job, enum fm_finish finish);

/*
 * The one end of a job: decides it. What the host is told of it (the last events, the create call's result, the cancel
 * calls' results) goes out as there is room. `error` (copied) NULL: it went well.
 */
void fm_job_settle_locked(struct fm_front *front, struct fm_job *job, enum fm_finish finish,
                          const struct fm_error *error);

/* Settles every job as cancelled, because the helper ends. */
void fm_job_settle_all_locked(struct fm_front *front);

/* The store is done with the job `number`, if that is still there; not `stored`: it was lost. */
void fm_job_stored_locked(struct fm_front *front, uint64_t number, bool stored);

/*
 * What fm_store_resolve_locked asked for: `messages` (borrowed), and `conversation`, which is taken over where the job
 * is still there. `error`: it can't be had, and the job fails.
 */
void fm_job_resolved_locked(struct fm_front *front, uint64_t number, struct fm_conversation *conversation,
                            const struct fm_buf *messages, const struct fm_error *error);

/* Frees a closing job's slot. */
void fm_job_release_locked(struct fm_front *front, struct fm_job *job);

/* Ends a job early: at once when it is queued, else through the engine, which gets FM_GRACE_MS. The first stop's error
 * counts. */
void fm_job_stop_locked(struct fm_front *front, struct fm_job *job, const struct fm_error *error);

/* ---- streams.c ---- */

/* Queues what jobs have to say, in turns, while the host has room. Call when there is news of a job. */
void fm_streams_pump_locked(struct fm_front *front);

/* The host has room again; `front` is the context of the outbox to the host. */
void fm_streams_on_room(void *front);

/* Bytes of text that wait for the host. */
size_t fm_streams_backlog_locked(struct fm_front *front);

/*
 * Waits up to `wait_ms` until every job is gone, and the host has the store's reply; they should be settled. False when
 * something is left.
 */
FM_MUST_USE bool fm_streams_flush_locked(struct fm_front *front, int64_t wait_ms);

/* ---- store_thread.c ---- */

/* Starts the store's thread, unless it runs. False: it can't be had. */
FM_MUST_USE bool fm_store_thread_start_locked(struct fm_front *front);

/* ---- store_tasks.c ---- */

/* Nothing waits, and there is no thread. */
void fm_storage_init(struct fm_storage *storage);

/*
 * Opens the store before the first task, so that `storage->trouble` is known. `*store` is NULL, and stays so without
 * memory. Without the lock; may block on the disk: the store's thread alone calls it.
 */
void fm_store_open_early(struct fm_front *front, struct fm_store **store);

/*
 * Does the first thing that can be done now; false: there is none. Makes `*store` where it is NULL. Lets go of the lock
 * meanwhile, and may block on the disk: the store's thread alone calls it.
 */
FM_MUST_USE bool fm_store_run_next_locked(struct fm_front *front, struct fm_store **store);

/* Its thread is gone, or never was. */
void fm_storage_free(struct fm_storage *storage);

/* The thread ends when it has done all that waits. */
void fm_storage_end_locked(struct fm_front *front);

/*
 * Has a closing job's response stored; fm_job_stored_locked follows. False: out of memory, or no thread can be had.
 */
FM_MUST_USE bool fm_store_put_locked(struct fm_front *front, struct fm_job *job);

/* Has a queued job's request made whole; fm_job_resolved_locked follows. False: as above. */
FM_MUST_USE bool fm_store_resolve_locked(struct fm_front *front, struct fm_job *job);

/* Has `find` look for what the job `query->job` replays; it answers nothing. False: as above. */
FM_MUST_USE bool fm_store_replay_locked(struct fm_front *front, fm_store_reply_fn *find,
                                        const struct fm_store_query *query);

/* Has `call` answered by `answer`. On failure the caller answers: RATE_LIMITED, OVERLOADED, CANCELLED. */
FM_MUST_USE enum fm_code fm_store_call_locked(struct fm_front *front, const struct fm_rpc_id *call,
                                              fm_store_reply_fn *answer, const struct fm_store_query *query,
                                              struct fm_error *error);

/* Queues the reply that waits for the host, where there is room. */
void fm_store_send_reply_locked(struct fm_front *front);

/* True when `call` is the id of a call that is still to be answered from the store. */
bool fm_store_call_in_flight_locked(const struct fm_front *front, const struct fm_rpc_id *call);

/* ---- watchdog.c ---- */

/* Starts the thread that enforces the job's limits and the engine's grace. Returns 0 or an errno value. */
FM_MUST_USE int fm_watchdog_start_locked(struct fm_front *front, struct fm_job *job);

/* ---- supervisor.c: the life of the engine process ---- */

/* Hands queued jobs to the engine as far as it has slots; starts or changes the engine where needed. */
void fm_engine_pump_locked(struct fm_front *front);

/* Sends job.abort. */
void fm_engine_abort_locked(struct fm_front *front, const struct fm_job *job);

/*
 * Ends the engine the hard way. `error` is what the jobs in it are told, unless they were stopped for another reason,
 * and the jobs that `end` says. The first kill decides.
 */
void fm_engine_kill_locked(struct fm_front *front, enum fm_engine_end end, const struct fm_error *error);

/* Asks the engine to end by itself. */
void fm_engine_shutdown_locked(struct fm_front *front);

/* ---- engine_events.c: what the engine says, and the calls that open the conversation ---- */

/* Handles the engine's messages and replies; context is the front. The lock is taken inside. */
extern const struct fm_inbound_handler fm_engine_events_handler;

/* Sends engine.initialize; the rest of the conversation follows from the replies. */
void fm_engine_send_initialize_locked(struct fm_front *front);

/* Hands a queued job to the engine. */
void fm_engine_send_job_locked(struct fm_front *front, struct fm_job *job);

#endif
