/*
 * Turns a job into the body of a request, in an endpoint's dialect. Pure. If the dialect can't express a member of the
 * job, the result is an INVALID_REQUEST that names the member, with `elsewhere`. Nothing is left out silently.
 */
#ifndef FM_ENGINE_REMOTE_REQUEST_H
#define FM_ENGINE_REMOTE_REQUEST_H

#include "engine/remote/config.h"
#include "protocol/json_writer.h"

#define FM_REQUEST_MAX (64u << 20) /* bytes of a body: images in base64, escapes */
#define FM_MESSAGES_MAX_TOKENS                                                                                         \
    8192 /* used if the job has no limit, because the dialect Messages requires one. `body` may set more */

/* What is added to the endpoint's URL for this job, such as "/chat/completions". */
const char *fm_request_path(const struct fm_endpoint *endpoint, const struct fm_kit_job *job);

/*
 * Appends the body to `out` (empty, with FM_REQUEST_MAX as its maximum). `model` NULL: the request names no model.
 * FM_INVALID_REQUEST: see above; FM_OVERLOADED: the body is too long, or out of memory.
 */
FM_MUST_USE enum fm_code fm_request_write(const struct fm_endpoint *endpoint, const char *model,
                                          const struct fm_kit_job *job, struct fm_buf *out, struct fm_error *error);

/*
 * Names the endpoint and model that made a state of an answer: the state goes back only to these. `maker` has room for
 * FM_MAKER_SIZE.
 */
#define FM_MAKER_SIZE 24u
void fm_request_maker(const struct fm_endpoint *endpoint, const char *model, char *maker);

/* ---- shared by the dialects; only they and tests use it ---- */

struct fm_body {
    struct fm_json_writer w;
    const struct fm_endpoint *endpoint;
    const struct fm_kit_job *job;
    char maker[FM_MAKER_SIZE];
    const char *keys[40]; /* the keys that were written */
    size_t key_count;
    struct fm_error *error;
};

/* Begins a member of the body: the caller writes its value next. */
void fm_body_key(struct fm_body *body, const char *key);

/*
 * Writes a member that is an object: `own` (taken over; NULL: out of memory), and the other members that the
 * configuration has in its object of this name.
 */
void fm_body_object(struct fm_body *body, const char *key, struct json_object *own);

/*
 * Writes the sampling parameters that the host named and that `has`, a set of FM_PARAM_BITs, allows. A parameter that
 * the host did not name is not sent, because models that think refuse it, whatever its value is. fm_body_missing
 * returns the first parameter that the job asks for and `has` lacks; NULL: none.
 */
void fm_body_sampling(struct fm_body *body, unsigned has);
const char *fm_body_missing(const struct fm_body *body, unsigned has);

/* Notes a member that the request must not have: the configuration's value is not sent either. */
void fm_body_omit(struct fm_body *body, const char *key);

/*
 * fm_body_passed returns a value that the host named for the server: a string, or NULL. fm_body_pass writes this value
 * as a member of the body.
 */
const char *fm_body_passed(const struct fm_body *body, enum fm_passed which);
void fm_body_pass(struct fm_body *body, enum fm_passed which, const char *key);

/* Writes the passed members that both of OpenAI's dialects have: service_tier, prompt_cache_key and so on. */
void fm_body_pass_all(struct fm_body *body);

/* Writes the members that the configuration adds and that were not written yet. Call it last. */
void fm_body_others(struct fm_body *body);

/* Returns INVALID_REQUEST because the dialect lacks the feature. `param` is the job's member. */
enum fm_code fm_body_refuse(struct fm_body *body, const char *param, const char *why);

/* Returns the media type of an image; NULL: servers do not take this type. */
const char *fm_image_type(const struct fm_image *image);

/* Writes one string: `before`, the image in base64, and `after`. */
void fm_body_base64(struct fm_body *body, const char *before, const struct fm_image *image);

/* Refuses an image of an unknown type. */
enum fm_code fm_body_check_images(struct fm_body *body);

/* Whether the job has tools at all. */
bool fm_body_has_tools(const struct fm_body *body);

/*
 * Writes "tools": one object for each tool, with the members that `write` gives it. Tools that must not be called are
 * left out, because no dialect can forbid single tools. If no tool may be called, all are sent, and the tool choice
 * forbids them.
 */
void fm_body_tools(struct fm_body *body, void (*write)(const struct fm_tool *tool, struct fm_json_writer *w));

/* Writes two members that all dialects have: "name", and "description" if there is one. */
void fm_body_tool_name(const struct fm_tool *tool, struct fm_json_writer *w);

/* Returns the one tool that has to be called; NULL: there is no such tool. */
const struct fm_tool *fm_body_only_tool(const struct fm_body *body);

/* Returns the effort, "none" to "max"; NULL: the model's default. */
const char *fm_body_effort(const struct fm_body *body);

/*
 * Returns the items among the states of `message` that this endpoint made, as a new list, which the caller releases.
 * NULL: there are none, or out of memory.
 */
struct json_object *fm_body_states(const struct fm_body *body, const struct fm_message *message);

/* Whether `message` has that role. */
bool fm_body_is_role(const struct fm_message *message, const char *role);

/* Writes the members of the dialect. See fm_request_write. */
enum fm_code fm_request_chat(struct fm_body *body);
enum fm_code fm_request_responses(struct fm_body *body);
enum fm_code fm_request_messages(struct fm_body *body);

#endif
