/*
 * The tasks of the store, one after the other: it stores responses that have ended, completes requests that continue
 * stored responses, and answers calls about stored responses. All of this runs in the store's thread.
 */
#ifndef FM_FRONT_STORE_QUEUE_H
#define FM_FRONT_STORE_QUEUE_H

#include "front/state.h"
#include "front/store/store.h"

struct fm_ignored;

/* What a call asks the store for. */
struct fm_store_query {
    char id[FM_ID_SIZE]; /* the response's id; a longer text is not an id */
    int limit;           /* items in the list */
    bool ascending;
    char after[256]; /* the item that the list begins after; "": none */
    bool again;      /* set by the reply: the response is still to be stored, so ask again afterwards */
    uint64_t job;    /* number of the job that waits for the reply; 0: no job waits */
    const struct fm_ignored *ignored; /* ignored params of the call; NULL: none. Valid only until the query is queued */
};

/*
 * Answers a call, in the store's thread and without the lock. Its result is like that of fm_method.run. `store` NULL:
 * there was no memory for the store, and `error` is filled already.
 */
typedef enum fm_code fm_store_reply_fn(struct fm_front *front, struct fm_store *store, struct fm_store_query *query,
                                       struct fm_json_writer *result, struct fm_error *error);

/* Starts empty, without a thread. */
void fm_store_queue_init(struct fm_store_queue *queue);

/* Call it when the store's thread has ended, or was never started. */
void fm_store_queue_free(struct fm_store_queue *queue);

/*
 * Opens the store before the first task, so that `trouble` is known. `*store` is NULL before, and stays NULL if memory
 * runs out. Called without the lock; may block on the disk. Only the store's thread calls it.
 */
void fm_store_open_early(struct fm_front *front, struct fm_store **store);

/*
 * FM_OK if responses can be stored, as far as is known. Otherwise the store's trouble; the store is then tried again, so
 * that a later call may succeed. Wants the lock; never blocks.
 */
FM_MUST_USE enum fm_code fm_store_check_locked(struct fm_front *front, struct fm_error *error);

/*
 * Does the first task that can be done now; false: there is none. Makes `*store` if it is NULL. Releases the lock
 * meanwhile, and may block on the disk. Only the store's thread calls it.
 */
FM_MUST_USE bool fm_store_run_next_locked(struct fm_front *front, struct fm_store **store);

/* Makes the thread end when it has done all waiting tasks. */
void fm_store_end_locked(struct fm_front *front);

/*
 * Gives the store the tasks of jobs: requests to complete (fm_job_resolved_locked follows), and responses to store
 * (fm_job_stored_locked follows). Never blocks.
 */
void fm_store_pump_locked(struct fm_front *front);

/*
 * Gives the frame of a finished reply that the host has not taken yet; false: there is none. The frame is valid until
 * the next call of this function or of fm_streams_next. Called from the host's writer thread, without the lock.
 */
bool fm_store_next_reply(struct fm_front *front, const char **frame, size_t *len);

/*
 * Makes the store run `find` for the response that the job `query->job` replays; there is no reply to a call. False:
 * out of memory, or no thread.
 */
FM_MUST_USE bool fm_store_replay_locked(struct fm_front *front, fm_store_reply_fn *find,
                                        const struct fm_store_query *query);

/* Makes the store answer `call` with `answer`. On failure the caller answers: RATE_LIMITED, OVERLOADED, CANCELLED. */
FM_MUST_USE enum fm_code fm_store_call_locked(struct fm_front *front, const struct fm_rpc_id *call,
                                              fm_store_reply_fn *answer, const struct fm_store_query *query,
                                              struct fm_error *error);

/* True when the store still has to answer a call with the id `call`. */
bool fm_store_answers_locked(const struct fm_front *front, const struct fm_rpc_id *call);

#endif
