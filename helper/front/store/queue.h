/*
 * The store's work, one task after the other: it stores responses that have ended, completes requests that continue
 * stored ones, and answers calls about stored ones. All of it runs in the store's thread.
 */
#ifndef FM_FRONT_STORE_QUEUE_H
#define FM_FRONT_STORE_QUEUE_H

#include "front/state.h"
#include "front/store/store.h"

struct fm_ignored;

/* What a call asks of the store. */
struct fm_store_query {
    char id[FM_ID_SIZE]; /* of the response; a longer one is not an id */
    int limit;           /* items in the list */
    bool ascending;
    char after[256]; /* the item that the list begins after; "": none */
    bool again;      /* set by the reply: the response is still to be stored, so ask again after that */
    uint64_t job;    /* number of the job that waits for the reply, if a job does */
    const struct fm_ignored *ignored; /* ignored params of the call; NULL: none. Borrowed during the call that asks */
};

/*
 * Answers a call, in the store's thread and without the lock: as fm_method.run. `store` NULL: there was no memory for
 * it, and `error` is filled already.
 */
typedef enum fm_code fm_store_reply_fn(struct fm_front *front, struct fm_store *store, struct fm_store_query *query,
                                       struct fm_json_writer *result, struct fm_error *error);

/* Starts empty, without a thread. */
void fm_store_queue_init(struct fm_store_queue *queue);

/* Call it when its thread has ended, or was never started. */
void fm_store_queue_free(struct fm_store_queue *queue);

/*
 * Opens the store before the first task, so that `trouble` is known. `*store` is NULL, and stays so without memory.
 * Without the lock; may block on the disk: only the store's thread calls it.
 */
void fm_store_open_early(struct fm_front *front, struct fm_store **store);

/*
 * Does the first task that can be done now; false: there is none. Makes `*store` if it is NULL. Releases the lock
 * meanwhile, and may block on the disk: only the store's thread calls it.
 */
FM_MUST_USE bool fm_store_run_next_locked(struct fm_front *front, struct fm_store **store);

/* Makes the thread end when it has done all waiting tasks. */
void fm_store_end_locked(struct fm_front *front);

/*
 * Gives the store the work of jobs: requests to complete (fm_job_resolved_locked follows), and responses to store
 * (fm_job_stored_locked follows). Never blocks.
 */
void fm_store_pump_locked(struct fm_front *front);

/*
 * The frame of a finished reply that the host has not taken yet; false: there is none. It is valid until the next call
 * of this or of fm_streams_next. From the host's writer thread, without the lock.
 */
bool fm_store_next_reply(struct fm_front *front, const char **frame, size_t *len);

/* Has `find` look for what the job `query->job` replays; it answers nothing. False: out of memory, or no thread. */
FM_MUST_USE bool fm_store_replay_locked(struct fm_front *front, fm_store_reply_fn *find,
                                        const struct fm_store_query *query);

/* Makes the store answer `call` with `answer`. On failure the caller answers: RATE_LIMITED, OVERLOADED, CANCELLED. */
FM_MUST_USE enum fm_code fm_store_call_locked(struct fm_front *front, const struct fm_rpc_id *call,
                                              fm_store_reply_fn *answer, const struct fm_store_query *query,
                                              struct fm_error *error);

/* True when the store still has to answer a call with the id `call`. */
bool fm_store_answers_locked(const struct fm_front *front, const struct fm_rpc_id *call);

#endif
