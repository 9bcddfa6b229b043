/* What the files of the kit share. Nobody else includes this. */
#ifndef FM_ENGINE_KIT_INTERNAL_H
#define FM_ENGINE_KIT_INTERNAL_H

#include "base/platform.h"
#include "engine/kit/kit.h"
#include "protocol/inbound.h"

#include <pthread.h>

/* A message for the engine thread. */
enum fm_item_kind { FM_ITEM_INITIALIZE, FM_ITEM_LOAD, FM_ITEM_FAULT, FM_ITEM_JOB };

struct fm_item {
    struct fm_item *next;
    enum fm_item_kind kind;
    struct fm_job *job;         /* FM_ITEM_JOB; it is on kit->jobs too */
    struct json_object *params; /* FM_ITEM_INITIALIZE and FM_ITEM_LOAD; owned */
    struct fm_rpc_id id;        /* all but FM_ITEM_JOB */
    enum fm_rpc_error code;     /* FM_ITEM_FAULT */
    char detail[192];           /* FM_ITEM_FAULT */
};

struct fm_kit {
    const struct fm_engine_ops *ops;
    struct fm_sandbox sandbox;
    int wire;      /* frames go out here */
    int end_fd;    /* readable: a signal came, or the parent died */
    int wake_read; /* readable: fm_kit_end was called */
    int wake_write;

    pthread_mutex_t output_lock; /* may be held while `lock` is taken, never the other way round */
    struct fm_buf frame;         /* under output_lock */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* an item, an abort, the end */
    struct fm_item *first;  /* the mailbox, under lock */
    struct fm_item **last;
    struct fm_job *jobs; /* all that live; the list under lock */
    atomic_bool ending;  /* written under lock */
    int status;          /* of exit; under lock */

    bool initialized; /* engine thread */
    bool loaded;      /* engine thread */
    bool images;      /* engine thread: the model sees */

    struct fm_inbound inbound; /* reader */
    char input[64 * 1024];     /* reader */
};

/* ---- kit.c ---- */

/* The end begins; the first call's status counts. Any thread, never blocks. */
void fm_kit_end(struct fm_kit *kit, int status);

/* ---- reader.c ---- */

/* The reader thread; `kit` as argument. */
void *fm_reader(void *kit);

/* ---- output.c ---- */

/*
 * fm_output_notification or fm_output_result takes output_lock and opens a message; write its value, then call
 * fm_output_send: it closes, writes (may block) and unlocks. False when out of memory; a front that is gone begins the
 * end and counts as sent.
 */
FM_MUST_USE bool fm_output_init(struct fm_kit *kit);
struct fm_json_writer fm_output_notification(struct fm_kit *kit, const char *method);
struct fm_json_writer fm_output_result(struct fm_kit *kit, const struct fm_rpc_id *id);
FM_MUST_USE bool fm_output_send(struct fm_kit *kit);

/* As fm_output_send, for what the front can't do without: out of memory ends the process. */
void fm_output_send_or_end(struct fm_kit *kit);

/* A JSON-RPC error reply. */
void fm_output_fault(struct fm_kit *kit, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *detail);

/* {"code","detail","param"?} */
void fm_output_error_value(struct fm_json_writer *w, const struct fm_error *error);

/* ---- job_params.c, job_images.c, job_sampling.c, job_tools.c, job.c ---- */

/*
 * Reads job.start's `params` (borrowed; what it names must outlive the job) but `job` into a zeroed `job`. Allocates
 * lists in it, also on failure; fm_job_free_lists frees them. Pure.
 */
FM_MUST_USE enum fm_code fm_job_read(struct fm_job *job, struct json_object *params, struct fm_error *error);
void fm_job_free_lists(struct fm_job *job);

/* For these files: an INVALID_REQUEST that names the member `param`, or "LIST[INDEX]MEMBER", and says what it should
 * be. */
enum fm_code fm_job_wrong(struct fm_error *error, const char *param, const char *expected);
enum fm_code fm_job_wrong_entry(struct fm_error *error, const char *list, size_t index, const char *member,
                                const char *expected);

/* For these files: the string that `value` is, borrowed; NULL for what is no string or holds a NUL, and of the second
 * function also for an empty one. */
const char *fm_job_string(struct json_object *value);
const char *fm_job_full_string(struct json_object *value);

/* For these files: which of `words` (NULL ends them) `value` is; -1: none. */
int fm_job_word(struct json_object *value, const char *const *words);

/* The members of job.start that are about tools, as fm_job_read. The choice is read behind the tools. */
enum fm_code fm_job_read_tools(struct fm_job *job, struct json_object *value, struct fm_error *error);
enum fm_code fm_job_read_tool_choice(struct fm_job *job, struct json_object *value, struct fm_error *error);
enum fm_code fm_job_read_parallel_tool_calls(struct fm_job *job, struct json_object *value, struct fm_error *error);

/* The members of job.start that say how tokens are drawn, and what is told of them, as fm_job_read. */
enum fm_code fm_job_read_presence_penalty(struct fm_job *job, struct json_object *value, struct fm_error *error);
enum fm_code fm_job_read_frequency_penalty(struct fm_job *job, struct json_object *value, struct fm_error *error);
enum fm_code fm_job_read_logprobs(struct fm_job *job, struct json_object *value, struct fm_error *error);
enum fm_code fm_job_read_logit_bias(struct fm_job *job, struct json_object *value, struct fm_error *error);

/* The same for the extra parameters; and their names, as the reply to engine.initialize lists them: NULL ends them. */
enum fm_code fm_job_read_top_k(struct fm_job *job, struct json_object *value, struct fm_error *error);
enum fm_code fm_job_read_min_p(struct fm_job *job, struct json_object *value, struct fm_error *error);
enum fm_code fm_job_read_repeat_penalty(struct fm_job *job, struct json_object *value, struct fm_error *error);
enum fm_code fm_job_read_ignore_eos(struct fm_job *job, struct json_object *value, struct fm_error *error);
extern const char *const fm_job_extras[];

/*
 * The same for the message `index`: the calls that `value` lists, for fm_job_free_lists to free, and the call that it
 * answers.
 */
enum fm_code fm_job_read_calls(struct fm_message *message, size_t index, struct json_object *value,
                               struct fm_error *error);
enum fm_code fm_job_read_call_id(struct fm_message *message, size_t index, struct json_object *value,
                                 struct fm_error *error);

/*
 * The same for a content that is a list of parts, for fm_job_free_images to free. Behind all messages, the images get
 * their index.
 */
enum fm_code fm_job_read_parts(struct fm_message *message, size_t index, struct json_object *parts,
                               struct fm_error *error);
void fm_job_count_images(struct fm_job *job);
void fm_job_free_images(struct fm_message *message);

/* A job of job.start's `params`, whose reference it takes over on success. What is wrong in them is in job->fault.
 * NULL: out of memory. */
struct fm_job *fm_job_new(struct fm_kit *kit, int64_t id, struct json_object *params);

/* Frees a job that is on no list. */
void fm_job_free(struct fm_job *job);

/* ---- truncation.c ---- */

/* job.start's `truncation`, as fm_job_read; and, behind all other members, where the conversation may be cut. */
enum fm_code fm_job_read_truncation(struct fm_job *job, struct json_object *value, struct fm_error *error);
enum fm_code fm_job_find_cuts(struct fm_job *job, struct fm_error *error);

/* Frees what the latter allocated, and gives the job all of its messages back. */
void fm_job_free_cuts(struct fm_job *job);

#endif
