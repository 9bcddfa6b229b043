/* Declarations that the kit's files share: the mailbox, the end, the output. Only these files include this header. */
#ifndef FM_ENGINE_KIT_INTERNAL_H
#define FM_ENGINE_KIT_INTERNAL_H

#include "base/platform.h"
#include "engine/kit/kit.h"
#include "protocol/inbound.h"

#include <pthread.h>

#define FM_SAVE_MAX_MS 60000 /* upper limit, even if the front allows more */

/* A message for the engine thread. */
enum fm_item_kind { FM_ITEM_INITIALIZE, FM_ITEM_AVAILABLE, FM_ITEM_LOAD, FM_ITEM_FAULT, FM_ITEM_JOB };

struct fm_item {
    struct fm_item *next;
    enum fm_item_kind kind;
    struct fm_kit_job *job;     /* of FM_ITEM_JOB; the job is on kit->jobs too */
    struct json_object *params; /* of FM_ITEM_INITIALIZE and FM_ITEM_LOAD; owned; otherwise NULL */
    struct fm_rpc_id id;        /* of all kinds except FM_ITEM_JOB */
    enum fm_rpc_error code;     /* FM_ITEM_FAULT */
    char detail[192];           /* FM_ITEM_FAULT */
};

struct fm_kit {
    const struct fm_engine_ops *ops;
    struct fm_sandbox sandbox;
    int wire;      /* frames are written here */
    int end_fd;    /* readable: a signal came, or the parent died */
    int wake_read; /* readable: fm_kit_end was called */
    int wake_write;

    pthread_mutex_t output_lock; /* a thread that holds it may take `lock`, but not the other way round */
    struct fm_buf frame;         /* under output_lock */
    struct fm_buf gathered;      /* frames that wait for fm_kit_flush; under output_lock */
    bool gathers;                /* under output_lock */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* signalled for an item, an abort, the end, or a wake */
    struct fm_item *first;  /* the mailbox, under lock */
    struct fm_item **last;
    struct fm_kit_job *jobs; /* all jobs that exist; the list is under lock */
    bool woken;              /* fm_kit_wake was called, or a job that the engine has was aborted; under lock */
    atomic_bool ending;      /* written under lock */
    int status;              /* the exit status; under lock */
    int64_t save_until_ms;   /* the front lets the engine save its state until then; 0: it does not. Under lock */

    bool initialized; /* engine thread */
    bool loaded;      /* engine thread */
    bool images;      /* engine thread: the model sees images */
    bool over;        /* fm_kit_main returns; under the lock */

    struct fm_inbound inbound; /* reader */
    char input[64 * 1024];     /* reader */
};

/*
 * Wakes an engine that waits for something else (fm_engine_ops.wake). Call it under the lock. fm_kit_main takes the
 * lock once more before it returns; after that, the engine's `ops` and state may be gone, and this function does
 * nothing.
 */
static inline void fm_kit_tell(const struct fm_kit *kit) {
    if (!kit->over && kit->ops->wake) {
        kit->ops->wake(kit->ops->state);
    }
}

/* ---- end.c ---- */

/* Begins the end; only the first call's status counts. Any thread, never blocks. */
void fm_kit_end(struct fm_kit *kit, int status);

/* Ends the process at the front's request: before the end the engine may save its state for `save_ms`. */
void fm_kit_end_saved(struct fm_kit *kit, int64_t save_ms);

/*
 * The exit status of the process: the status of the first fm_kit_end, or 0 if there was none. After this call
 * fm_kit_tell does nothing. Any thread.
 */
int fm_kit_end_status(struct fm_kit *kit);

/* ---- mailbox.c ---- */

/* Adds an item, which the kit then owns. Any thread. */
void fm_mailbox_post(struct fm_kit *kit, struct fm_item *item);

/* How fm_mailbox_next waits. */
enum fm_mailbox_wait {
    FM_WAIT_NOT,    /* does not wait: the engine has other jobs */
    FM_WAIT_ITEM,   /* waits until there is an item, or until the end */
    FM_WAIT_WITHIN, /* waits for an item, the end or a wake, or until the time is over */
};

/*
 * The next item, which the caller frees; NULL: there is none. `until_ms` (fm_now_ms) is for FM_WAIT_WITHIN. A
 * repeatable job stays in the mailbox while the engine has other jobs. Engine thread.
 */
struct fm_item *fm_mailbox_next(struct fm_kit *kit, enum fm_mailbox_wait wait, int64_t until_ms);

/* Takes out the first waiting job that was aborted; NULL: there is none. Engine thread. */
struct fm_item *fm_mailbox_next_aborted(struct fm_kit *kit);

/* Frees an item that is in no mailbox, but not its job. */
void fm_mailbox_free_item(struct fm_item *item);

/* ---- describe.c ---- */

/*
 * Writes the members that describe the engine: the members of a reply, or, with `file`, of the file
 * fm-engine-NAME.json.
 */
void fm_describe_write(const struct fm_engine_ops *ops, bool file, struct fm_json_writer *w);

/* Prints the file fm-engine-NAME.json. Returns 0, or the status to exit with. */
int fm_describe_print(const struct fm_engine_ops *ops);

/* ---- admit.c ---- */

/*
 * Checks whether the engine can do the job once it is loaded; `images`: the model sees images. FM_INVALID_REQUEST names
 * the param. Pure.
 */
FM_MUST_USE enum fm_code fm_admit_check(const struct fm_engine_ops *ops, bool images, struct fm_kit_job *job,
                                        struct fm_error *error);

/* ---- reader.c ---- */

/* The reader thread; `kit` as argument. */
void *fm_reader(void *kit);

/* ---- output.c ---- */

/*
 * fm_output_notification or fm_output_result takes output_lock and opens a message. Write its value, and then call
 * fm_output_send, which closes the message, writes it (may block) and unlocks. False when out of memory. If the front
 * is gone, the end begins, and the message counts as sent.
 */
FM_MUST_USE bool fm_output_init(struct fm_kit *kit);
struct fm_json_writer fm_output_notification(struct fm_kit *kit, const char *method);
struct fm_json_writer fm_output_result(struct fm_kit *kit, const struct fm_rpc_id *id);
FM_MUST_USE bool fm_output_send(struct fm_kit *kit);

/* Works as fm_output_send, for messages that the front must get: out of memory ends the process. */
void fm_output_send_or_end(struct fm_kit *kit);

/* Sends a JSON-RPC error reply. */
void fm_output_fault(struct fm_kit *kit, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *detail);

/* {"code","detail","param"?} */
void fm_output_error_value(struct fm_json_writer *w, const struct fm_error *error);

/* ---- job.c ---- */

/*
 * Makes a job from job.start's `params`; on success it takes over their reference. If the params are wrong, job->fault
 * says why. NULL: out of memory.
 */
struct fm_kit_job *fm_kit_job_new(struct fm_kit *kit, int64_t id, struct json_object *params);

/* Frees a job that is on no list. */
void fm_kit_job_free(struct fm_kit_job *job);

#endif
