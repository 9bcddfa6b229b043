/*
 * The shared declarations of the remote engine. The nouns: an *ask* is a job on its way through the endpoints, one
 * endpoint at a time; a *probe* asks an endpoint whether it can be reached.
 *
 * Only the engine thread owns this state and calls these functions.
 */
#ifndef FM_ENGINE_REMOTE_REMOTE_H
#define FM_ENGINE_REMOTE_REMOTE_H

#include "engine/remote/reader.h"
#include "engine/remote/transport.h"

struct fm_ask;

struct fm_remote {
    struct fm_remote_config config;
    struct fm_error fault; /* code not FM_OK: why the engine can't do anything */
    struct fm_curl curl;
    struct fm_transport transport;
    struct fm_listed_model models[FM_LISTED_MAX]; /* the models of all endpoints, each once */
    size_t model_count;                           /* 0: some endpoint takes any model */
    struct fm_ask *asks;
};

/* ---- ask.c ---- */

/* Takes the job over, and finishes it sooner or later. */
void fm_ask_start(struct fm_remote *remote, struct fm_kit_job *job);

/* Ends the asks whose jobs are aborted, and closes their connections. Do not call it from a transfer's callbacks. */
void fm_ask_drop_aborted(struct fm_remote *remote);

/* ---- answer.c: passes the answer on to the kit ---- */

struct fm_remote_answer {
    struct fm_kit_job *job;
    const struct fm_endpoint *endpoint;
    bool accepted;              /* the first output was sent */
    bool calls;                 /* the answer has calls */
    bool text_told;             /* the answer has text */
    bool unknown;               /* the last part was of a call sent as text, for a tool that this answer may not call */
    const struct fm_tool *call; /* the last part was a call of this tool or its arguments; NULL: something else */
    struct fm_buf arguments;    /* the arguments of that call, so far */
    struct fm_error fault;      /* code not FM_OK: what was wrong with a call */
    bool counted;               /* the kit has the token counts */
    struct fm_buf text;         /* the text, if it has to be checked */
    enum fm_reason reason;      /* the last result that the kit returned */
};

/* `job` is borrowed; the answer allocates nothing yet. */
void fm_remote_answer_init(struct fm_remote_answer *answer, struct fm_kit_job *job);
void fm_remote_answer_free(struct fm_remote_answer *answer);

/* Takes back the output that was sent: another try follows. False: out of memory. */
FM_MUST_USE bool fm_remote_answer_restart(struct fm_remote_answer *answer, const struct fm_error *why);

/* An fm_remote_part_fn. False: the kit wants no more, and `reason` says why. */
bool fm_remote_answer_take(void *answer, const struct fm_remote_part *part);

/*
 * Ends the answer as `reader` reports: sends the last output and the counts, and checks the text. Returns how to finish
 * the job; with FM_REASON_ERROR, `error` says why.
 */
FM_MUST_USE enum fm_reason fm_remote_answer_end(struct fm_remote_answer *answer, const struct fm_remote_reader *reader,
                                                struct fm_error *error);

/* Reads the body of an answer with vectors, and ends the answer like fm_remote_answer_end. */
FM_MUST_USE enum fm_reason fm_remote_answer_embed(struct fm_remote_answer *answer, const struct fm_buf *body,
                                                  struct fm_error *error);

/* ---- probe.c ---- */

/*
 * Asks all endpoints at the same time, and fills `out`. Blocks for two seconds at most; `pump` (with `remote`) moves
 * all transfers on, and waits up to `ms`.
 */
void fm_probe(struct fm_remote *remote, void (*pump)(struct fm_remote *, int64_t ms), struct fm_availability *out);

#endif
