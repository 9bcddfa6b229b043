/*
 * What the request bodies of the APIs have in common: the rows of parameters that mean the same in all APIs, and
 * functions that read a checked body into a struct fm_request. Ownership: see surface.h.
 */
#ifndef FM_SURFACE_REQUEST_H
#define FM_SURFACE_REQUEST_H

#include "surface/check.h"
#include "surface/ignored.h"
#include "surface/messages.h"
#include "surface/surface.h"

/*
 * The shared rows. Tables form a chain. An API's table goes on in its tools' table, and this goes on in
 * fm_shared_rules. That table goes on in fm_generation_rules, which all APIs that generate text have.
 */
extern const struct fm_rule fm_shared_rules[];
extern const struct fm_rule fm_generation_rules[];

/* The complete tables of the APIs. */
extern const struct fm_rule fm_responses_rules[];
extern const struct fm_rule fm_chat_rules[];
extern const struct fm_rule fm_completions_rules[];
extern const struct fm_rule fm_embeddings_rules[];
extern const struct fm_rule fm_decisions_rules[];

/* The members of `prompt_cache_options`. */
extern const struct fm_rule fm_cache_rules[];

/* The members of `fm` that all calls have. */
extern const struct fm_rule fm_common_fm_rules[];

/* The members of chat's and completions' `stream_options`. */
extern const struct fm_rule fm_chat_stream_option_rules[];

extern const char *const fm_verbosity_words[];

/* The checker of `model`, for a table without the shared rows. */
fm_check_fn fm_check_model;

/*
 * The most tokens of a summary: an eighth of the default context. On a machine that generates four tokens a second, two
 * tries then take less than the default limit of ten minutes.
 */
#define FM_SUMMARY_TOKENS 1024

/* The largest token limit that a request may name. */
#define FM_TOKENS_MAX INT32_MAX

/*
 * Fills `request` from a checked body and the paths that the check ignored, but leaves job_members and echo empty.
 * fm_request_end must follow.
 */
void fm_request_begin(struct fm_request *request, struct json_object *body, const struct fm_ignored *ignored);

/* extras.c: notes the extras (protocol/params.h) that a checked body names, for fm_request_write_extras. */
void fm_request_note_extras(struct fm_request *request, struct json_object *body);

/*
 * extras.c: notes the members that are only passed on, from a body with fm_shared_rules, for fm_request_write_extras.
 * `verbosity` and `summary` (of reasoning): the values if the API has these members, or NULL.
 */
void fm_request_note_passed(struct fm_request *request, struct json_object *body, struct json_object *verbosity,
                            struct json_object *summary);

/* completions_request.c: the prompt of a choice, `*len` bytes. Only for a request with prompts. */
const char *fm_request_prompt(const struct fm_request *request, size_t choice, size_t *len);

/* Whether a choice is the first one of its prompt. In APIs without prompts, all choices have one prompt. */
bool fm_request_begins_prompt(const struct fm_request *request, size_t choice);

/* Writes the job's sampling members, which all APIs name alike. `max_tokens`: the API's own value, or NULL. */
void fm_request_write_sampling(struct json_object *body, struct json_object *max_tokens, struct fm_json_writer *w);

/*
 * Sets `request->logprobs` to `asked`; if true, writes the job member that asks for log probabilities, with those of
 * `top` alternatives (a checked integer, or NULL: 0).
 */
void fm_request_write_logprobs(struct fm_request *request, bool asked, struct json_object *top,
                               struct fm_json_writer *w);

/* chat_request.c: the checker of `logit_bias`, and its job member. */
fm_check_fn fm_check_logit_bias;
void fm_request_write_logit_bias(struct json_object *body, struct fm_json_writer *w);

/* Writes the job's member `reasoning`, unless `effort` (a checked word) is NULL. */
void fm_request_write_effort(struct json_object *effort, struct fm_json_writer *w);

/* Writes the job's member `reasoning` for an answer without a thought. */
void fm_request_write_no_effort(struct fm_json_writer *w);

/* Ends the request. Returns FM_OK, or FM_INTERNAL, with the request freed, if memory ran out since fm_request_begin. */
FM_MUST_USE enum fm_code fm_request_end(struct fm_request *request, struct fm_error *error);

/* Checks the list of what a response may include; the fields of its rule are ignored. */
fm_check_fn fm_check_include;

/* The purpose for which the conversation in a body of the Responses API is read. */
enum fm_purpose {
    FM_PURPOSE_ANSWER,
    FM_PURPOSE_COUNT,   /* its tokens are counted, nothing is generated */
    FM_PURPOSE_SUMMARY, /* responses.compact */
};

/*
 * Each fills `request` from a body that has passed the check against its API's table. It also checks what a table can't
 * express: members that exclude each other. `ignored` has the paths that the check against the table ignored. The
 * errors are those of fm_surface.parse.
 */
enum fm_code fm_responses_read(struct json_object *body, enum fm_purpose purpose, const struct fm_ignored *ignored,
                               struct fm_request *request, struct fm_error *error);
enum fm_code fm_completions_read(struct json_object *body, const struct fm_ignored *ignored, struct fm_request *request,
                                 struct fm_error *error);
enum fm_code fm_chat_read(struct json_object *body, const struct fm_ignored *ignored, struct fm_request *request,
                          struct fm_error *error);
enum fm_code fm_embeddings_read(struct json_object *body, const struct fm_ignored *ignored, struct fm_request *request,
                                struct fm_error *error);
enum fm_code fm_decisions_read(struct json_object *body, const struct fm_ignored *ignored, struct fm_request *request,
                               struct fm_error *error);

/* Call it before the check: makes texts of what only decisions.create may have in its input, and so no checker knows. */
enum fm_code fm_decisions_prepare(struct json_object *body, struct fm_error *error);

/* parse.c: the functions fm_surface.parse of the calls. */
enum fm_code fm_responses_parse(struct json_object *params, struct fm_request *request, struct fm_error *error);
enum fm_code fm_input_tokens_parse(struct json_object *params, struct fm_request *request, struct fm_error *error);
enum fm_code fm_compact_parse(struct json_object *params, struct fm_request *request, struct fm_error *error);
enum fm_code fm_completions_parse(struct json_object *params, struct fm_request *request, struct fm_error *error);
enum fm_code fm_chat_parse(struct json_object *params, struct fm_request *request, struct fm_error *error);
enum fm_code fm_embeddings_parse(struct json_object *params, struct fm_request *request, struct fm_error *error);
enum fm_code fm_decisions_parse(struct json_object *params, struct fm_request *request, struct fm_error *error);

#endif
