/* The front's messages to an engine (protocol/ENGINE.md). All functions want the lock, unless they say otherwise; none blocks. */
#ifndef FM_FRONT_ENGINES_SEND_H
#define FM_FRONT_ENGINES_SEND_H

#include "front/state.h"

/* The ids of the calls. */
#define FM_ENGINE_INITIALIZE_ID 1
#define FM_ENGINE_LOAD_ID       2
#define FM_ENGINE_AVAILABLE_ID  3

/* Sends engine.initialize. Later messages follow from the engine's replies. */
void fm_engine_send_initialize_locked(struct fm_engine *engine);

/* Sends engine.available. */
void fm_engine_send_available_locked(struct fm_engine *engine);

/* Sends engine.load for engine->model. */
void fm_engine_send_load_locked(struct fm_engine *engine);

/* The job that the engine gets next; NULL: there is none, or the engine has no slot for it. */
struct fm_job *fm_engine_next_locked(const struct fm_engine *engine);

/*
 * Gives the frame of job.start for the job of fm_engine_next_locked, valid until the next call. It is the `next` of the
 * outbox of `engine`, a struct fm_engine; the writer thread of the outbox calls it without the lock.
 */
bool fm_engine_next_job(void *engine, const char **frame, size_t *len);

/* Sends job.abort: the engine stops the job as soon as it can. */
void fm_engine_send_abort_locked(struct fm_engine *engine, const struct fm_job *job);

/* Asks the engine to end by itself. Before that it may save its state, for at most `save_ms`. */
void fm_engine_send_shutdown_locked(struct fm_engine *engine, int64_t save_ms);

#endif
