/*
 * The tools of a request: `tools` and `tool_choice` of both APIs, which differ in where the members stand. What a
 * tool's schema may say is the engine's matter (ENGINE.md, Tools). Pure; values are borrowed.
 */
#ifndef FM_SURFACE_TOOLS_H
#define FM_SURFACE_TOOLS_H

#include "surface/format.h"

/* The rows `tools` and `tool_choice` of either API, and behind them fm_shared_rules. */
extern const struct fm_rule fm_responses_tool_rules[];
extern const struct fm_rule fm_chat_tool_rules[];

/*
 * A list of at least `min` and, where `max` is not 0, at most `max` objects of the type "function", each with
 * `members`.
 */
fm_check_fn fm_check_functions;

#define FM_TOOLS_MAX 128 /* in a request; OpenAI's */

/* The tools of a body, and which of them may be called; it borrows from the body. */
struct fm_asked_tools {
    struct json_object *body;
    struct json_object *list;   /* `tools`; NULL: there are none, and nothing below counts */
    bool nested;                /* what is said of a function stands in its member `function`: chat */
    const char *mode;           /* "auto", "required" or "none" */
    bool some;                  /* not all may be called: */
    bool allowed[FM_TOOLS_MAX]; /* those that may, where `some` */
};

/*
 * Reads them in a checked `body` that asks for `format`. What does not go together is refused: FM_INVALID_REQUEST with
 * the path of the field.
 */
FM_MUST_USE enum fm_code fm_tools_find(struct json_object *body, bool nested, const struct fm_asked_format *format,
                                       struct fm_asked_tools *asked, struct fm_error *error);

/* Notes in `request`, behind fm_request_begin, what its answer has to know. */
void fm_tools_note(const struct fm_asked_tools *asked, struct fm_request *request);

/* The members `tools`, `tool_choice` and `parallel_tool_calls` of job.start; the value of the Response's `tools`. */
void fm_tools_write_job(const struct fm_asked_tools *asked, struct fm_json_writer *w);
void fm_tools_write_echo(const struct fm_asked_tools *asked, struct fm_json_writer *w);

#endif
