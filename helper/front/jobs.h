/*
 * Jobs: the requests in flight, how they are found, and the only way in which they end. Functions here change a job's
 * state. Of the front's other parts they call only engines/models.h, for the job's model. fm_front_leave does what
 * follows from a change. All functions want the lock; none blocks.
 */
#ifndef FM_FRONT_JOBS_H
#define FM_FRONT_JOBS_H

#include "front/state.h"

#define FM_GRACE_MS 750 /* how long an engine may take to stop a job before it is ended */

/*
 * Takes a checked request as a new job, which waits for the engine of the first model of `route`. `request` and `route`
 * are taken over, also on failure. The caller starts the job's watchdog. On failure `*job` is not set, and the caller
 * answers: RATE_LIMITED, OVERLOADED, CANCELLED.
 */
FM_MUST_USE enum fm_code fm_job_create_locked(struct fm_front *front, const struct fm_rpc_id *call,
                                              const struct fm_surface *surface, struct fm_request *request,
                                              struct fm_route *route, struct fm_job **job, struct fm_error *error);

/*
 * Takes a call of responses.retrieve as a job. The job gets the events of a response after the event number `after`
 * (-1: all events), and then its result. The caller asks the store for that response. When the store has answered, the
 * caller calls fm_job_replayed_locked. RATE_LIMITED, CANCELLED.
 */
FM_MUST_USE enum fm_code fm_job_replay_locked(struct fm_front *front, const struct fm_rpc_id *call, int64_t after,
                                              struct fm_job **job, struct fm_error *error);

/*
 * Gives the job `number`, if it still exists, what it has to send: the answer of `source`, or `answer` (taken over, or
 * freed). With an `error`, the job gets neither.
 */
void fm_job_replayed_locked(struct fm_front *front, uint64_t number, struct fm_job *source, struct fm_answer *answer,
                            const struct fm_error *error);

/* Finds a job by its number. NULL when there is no such job, or when it is settled. */
struct fm_job *fm_job_by_number_locked(struct fm_front *front, uint64_t number);
struct fm_job *fm_job_by_run_locked(struct fm_front *front, uint64_t run);

/* Finds a job by its create call. NULL when there is no such job, or when the create call is answered. */
struct fm_job *fm_job_by_call_locked(struct fm_front *front, const struct fm_rpc_id *call);

/*
 * Finds a job by its response's id, like fm_job_by_call_locked. A job in the background is found until all its calls
 * have their answer.
 */
struct fm_job *fm_job_by_answer_locked(struct fm_front *front, const char *id);

/* Whether a job still has to answer the call with the id `call`. */
bool fm_jobs_answer_locked(const struct fm_front *front, const struct fm_rpc_id *call);

/* Whether all calls that the job has to answer have their results. */
bool fm_job_is_done(const struct fm_job *job);

/* Whether an engine has the job. */
bool fm_job_is_held(const struct fm_job *job);

/*
 * Call it when the engine has finished the answer, or a choice of it, without an error; `finish` says how. If another
 * choice or try has to be made, the job goes back to the queue, before all later jobs. Otherwise, or without memory for
 * that, the job is settled.
 */
void fm_job_made_locked(struct fm_job *job, enum fm_finish finish);

/*
 * Whether the answer may be made again from the start: there was no output yet, or no event of the answer has been
 * sent. A caller who asked for the object meanwhile has only seen an unfinished one.
 */
bool fm_job_can_restart(const struct fm_job *job);

/*
 * Call it when the engine makes the answer, or its current choice, again from the start, and only if fm_job_can_restart
 * is true.
 */
void fm_job_restarted_locked(struct fm_job *job);

/*
 * Call it when the engine lost the job and fm_job_can_restart is true: the job goes back to the queue, before all later
 * jobs.
 */
void fm_job_again_locked(struct fm_job *job);

/*
 * Call it when the job's engine, or the engine that it waits for, can't do the job; `error` says why. If another engine
 * may do the job, and fm_job_can_restart is true, the job goes back to the queue for that engine. Otherwise the job is
 * settled as failed.
 */
void fm_job_fail_or_move_locked(struct fm_job *job, const struct fm_error *error);

/* Whether the job would go to another engine if this one failed. Its contents have to be kept for that case. */
bool fm_job_may_move(const struct fm_job *job);

/*
 * Settles a job. This is the only way in which a job ends. The last messages of the job (the last events, the create
 * call's result, the results of cancel calls) are sent as the host has room. `error` (copied) NULL: the job went well.
 */
void fm_job_settle_locked(struct fm_job *job, enum fm_finish finish, const struct fm_error *error);

/* Settles every job as cancelled, because the helper ends. */
void fm_job_settle_all_locked(struct fm_front *front);

/*
 * Call it when the store has finished with the job `number`, if it still exists. `stored` false: the response was lost.
 */
void fm_job_stored_locked(struct fm_front *front, uint64_t number, bool stored);

/*
 * Call it when the store has answered for the job `number`, whose request continues a stored response. Adds `messages`
 * (borrowed), and `conversation`, which is taken over if the job still exists. `error`: the stored response can't be
 * read, and the job fails.
 */
void fm_job_resolved_locked(struct fm_front *front, uint64_t number, struct fm_conversation *conversation,
                            const struct fm_buf *messages, const struct fm_error *error);

/*
 * Ends a job early. A queued job ends at once; otherwise its engine ends it, and has FM_GRACE_MS for that. Only the
 * error of the first stop counts.
 */
void fm_job_stop_locked(struct fm_job *job, const struct fm_error *error);

/* Frees the slot of a closing job, or of a job that was not started. */
void fm_job_release_locked(struct fm_front *front, struct fm_job *job);

#endif
