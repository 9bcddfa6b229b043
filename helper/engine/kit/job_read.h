/*
 * Declarations that the files which read job.start share, from the whole down to one value. Pure. Only the kit and
 * tests include this.
 */
#ifndef FM_ENGINE_KIT_JOB_READ_H
#define FM_ENGINE_KIT_JOB_READ_H

#include "engine/kit/kit.h"

/* ---- job_params.c ---- */

/*
 * Reads job.start's `params`, except the member `job`, into a zeroed `job`. `params` is borrowed and must outlive the
 * job. Allocates lists in `job`, also on failure; fm_kit_job_free_lists frees them. Pure.
 */
FM_MUST_USE enum fm_code fm_kit_job_read(struct fm_kit_job *job, struct json_object *params, struct fm_error *error);
void fm_kit_job_free_lists(struct fm_kit_job *job);

/* ---- job_tools.c ---- */

/* Like fm_kit_job_read, for the members of job.start that are about tools. The choice is read after the tools. */
enum fm_code fm_kit_job_read_tools(struct fm_kit_job *job, struct json_object *value, struct fm_error *error);
enum fm_code fm_kit_job_read_tool_choice(struct fm_kit_job *job, struct json_object *value, struct fm_error *error);
enum fm_code fm_kit_job_read_parallel_tool_calls(struct fm_kit_job *job, struct json_object *value,
                                                 struct fm_error *error);

/*
 * Like fm_kit_job_read, for the members of the message `index` that are about calls: the calls that `value` lists,
 * which fm_kit_job_free_lists frees, and the id of the call that the message answers.
 */
enum fm_code fm_kit_job_read_calls(struct fm_message *message, size_t index, struct json_object *value,
                                   struct fm_error *error);
enum fm_code fm_kit_job_read_call_id(struct fm_message *message, size_t index, struct json_object *value,
                                     struct fm_error *error);

/* ---- job_sampling.c ---- */

/* Like fm_kit_job_read, for the members of job.start that say how tokens are drawn, and what is reported about them. */
enum fm_code fm_kit_job_read_param(struct fm_kit_job *job, enum fm_param param, struct json_object *value,
                                   struct fm_error *error);
enum fm_code fm_kit_job_read_logprobs(struct fm_kit_job *job, struct json_object *value, struct fm_error *error);
enum fm_code fm_kit_job_read_logit_bias(struct fm_kit_job *job, struct json_object *value, struct fm_error *error);

/* ---- job_images.c ---- */

/*
 * Like fm_kit_job_read, for the content of the message `index` that is a list of parts; fm_kit_job_free_images frees
 * it. When all messages are read, fm_kit_job_count_images gives the images their index.
 */
enum fm_code fm_kit_job_read_parts(struct fm_message *message, size_t index, struct json_object *parts,
                                   struct fm_error *error);
void fm_kit_job_count_images(struct fm_kit_job *job);
void fm_kit_job_free_images(struct fm_message *message);

/* ---- job_questions.c ---- */

/*
 * Like fm_kit_job_read, for the member `questions`; fm_kit_job_free_questions frees them. The second function comes
 * after all members are read: it checks which of them are there, and adds the message that asks the first question.
 */
enum fm_code fm_kit_job_read_questions(struct fm_kit_job *job, struct json_object *value, struct fm_error *error);
enum fm_code fm_kit_job_check_questions(struct fm_kit_job *job, struct json_object *params, struct fm_error *error);
void fm_kit_job_free_questions(struct fm_kit_job *job);

/* ---- truncation.c ---- */

/*
 * Like fm_kit_job_read, for job.start's `truncation`. fm_kit_job_find_cuts comes after all other members: it finds
 * where the conversation may be cut.
 */
enum fm_code fm_kit_job_read_truncation(struct fm_kit_job *job, struct json_object *value, struct fm_error *error);
enum fm_code fm_kit_job_find_cuts(struct fm_kit_job *job, struct fm_error *error);

/* Frees what fm_kit_job_find_cuts allocated, and gives the job all of its messages back. */
void fm_kit_job_free_cuts(struct fm_kit_job *job);

/* ---- job_value.c ---- */

/* An INVALID_REQUEST that names the member `param`, or "LIST[INDEX]MEMBER", and says what it should be. */
enum fm_code fm_kit_job_wrong(struct fm_error *error, const char *param, const char *expected);
enum fm_code fm_kit_job_wrong_entry(struct fm_error *error, const char *list, size_t index, const char *member,
                                    const char *expected);

/*
 * The string in `value`, borrowed. NULL if `value` is not a string or contains a NUL. The second function also returns
 * NULL for an empty string.
 */
const char *fm_kit_job_string(struct json_object *value);
const char *fm_kit_job_full_string(struct json_object *value);

/* The index of `value` in `words`, which end with NULL; -1: none of them. */
int fm_kit_job_word(struct json_object *value, const char *const *words);

/* Refuses the first member of `params` that is not null and is not one of `names` (NULL ends them): fm_kit_job_wrong. */
enum fm_code fm_kit_job_only(struct json_object *params, const char *const *names, const char *expected,
                             struct fm_error *error);

#endif
