/*
 * From a job to the body of a request, in an endpoint's dialect. Pure. What a dialect can't say is an INVALID_REQUEST
 * that names the member of the job, with `elsewhere`: nothing is left out in silence.
 */
#ifndef FM_ENGINE_REMOTE_REQUEST_H
#define FM_ENGINE_REMOTE_REQUEST_H

#include "engine/remote/config.h"
#include "protocol/json_writer.h"

#define FM_REQUEST_MAX (64u << 20) /* bytes of a body: images in base64, escapes */
#define FM_MESSAGES_MAX_TOKENS                                                                                         \
    8192 /* where the job has no limit: the dialect Messages demands one. `body` may say more */

/* What is added to the endpoint's URL for this job, such as "/chat/completions". */
const char *fm_request_path(const struct fm_endpoint *endpoint, const struct fm_kit_job *job);

/*
 * Appends the body to `out` (empty, with FM_REQUEST_MAX as its maximum). `model` NULL: none is named.
 * FM_INVALID_REQUEST as above; FM_OVERLOADED: it is too long, or out of memory.
 */
FM_MUST_USE enum fm_code fm_request_write(const struct fm_endpoint *endpoint, const char *model,
                                          const struct fm_kit_job *job, struct fm_buf *out, struct fm_error *error);

/*
 * Who made a state of an answer: it goes back to this endpoint and model alone. `maker` has room for FM_MAKER_SIZE.
 */
#define FM_MAKER_SIZE 24u
void fm_request_maker(const struct fm_endpoint *endpoint, const char *model, char *maker);

/* ---- what the dialects share; only the dialects and tests use it ---- */

struct fm_body {
    struct fm_json_writer w;
    const struct fm_endpoint *endpoint;
    const struct fm_kit_job *job;
    char maker[FM_MAKER_SIZE];
    const char *keys[40]; /* the keys that were written */
    size_t key_count;
    struct fm_error *error;
};

/* A member of the body begins: its value follows. */
void fm_body_key(struct fm_body *body, const char *key);

/*
 * Writes a member that is an object, to which the configuration may add members: `own` (taken over; NULL: out of
 * memory) and what else the configuration's member of this name has.
 */
void fm_body_object(struct fm_body *body, const char *key, struct json_object *own);

/*
 * The parameters of sampling that the host named, of those in `has`, a set of FM_PARAM_BITs. A parameter that the host
 * did not name is not sent, because models that think refuse it, whatever its value is. fm_body_missing: the first
 * parameter that the job asks for and `has` lacks; NULL: none.
 */
void fm_body_sampling(struct fm_body *body, unsigned has);
const char *fm_body_missing(const struct fm_body *body, unsigned has);

/* A member that the request has to be without: the configuration's does not go either. */
void fm_body_omit(struct fm_body *body, const char *key);

/*
 * fm_body_passed: a value that the host named for the server, a string, or NULL. fm_body_pass: writes it as a member of
 * the body.
 */
const char *fm_body_passed(const struct fm_body *body, enum fm_passed which);
void fm_body_pass(struct fm_body *body, enum fm_passed which, const char *key);

/* Writes the passed members that OpenAI's dialects have alike: service_tier, prompt_cache_key and so on. */
void fm_body_pass_all(struct fm_body *body);

/* Writes the members that the configuration adds and that were not written yet. Call it last. */
void fm_body_others(struct fm_body *body);

/* INVALID_REQUEST: the dialect has no such thing. `param` is the job's member. */
enum fm_code fm_body_refuse(struct fm_body *body, const char *param, const char *why);

/* The media type of an image; NULL: it is not one that servers take. */
const char *fm_image_type(const struct fm_image *image);

/* Writes `before`, the image in base64 and `after` as one string. */
void fm_body_base64(struct fm_body *body, const char *before, const struct fm_image *image);

/* Refuses an image of an unknown type. */
enum fm_code fm_body_check_images(struct fm_body *body);

/* Whether the job has tools at all. */
bool fm_body_has_tools(const struct fm_body *body);

/* Writes "tools": an object for each, with the members that `write` gives it. Tools that must not be called are left out, as
 * no dialect can forbid single ones. Where none may be called all are told of, and the choice forbids them. */
void fm_body_tools(struct fm_body *body, void (*write)(const struct fm_tool *tool, struct fm_json_writer *w));

/* Two members that all dialects have alike: "name", and "description" if there is one. */
void fm_body_tool_name(const struct fm_tool *tool, struct fm_json_writer *w);

/* The one tool that has to be called; NULL: there is a choice. */
const struct fm_tool *fm_body_only_tool(const struct fm_body *body);

/* "none" to "max"; NULL: the model's default. */
const char *fm_body_effort(const struct fm_body *body);

/*
 * The items among the states of `message` that this endpoint made, as a new list (the caller's); NULL: there are none,
 * or out of memory.
 */
struct json_object *fm_body_states(const struct fm_body *body, const struct fm_message *message);

/* Whether `message` is of that role. */
bool fm_body_is_role(const struct fm_message *message, const char *role);

/* A dialect's members. As fm_request_write. */
enum fm_code fm_request_chat(struct fm_body *body);
enum fm_code fm_request_responses(struct fm_body *body);
enum fm_code fm_request_messages(struct fm_body *body);

#endif
