/*
 * The tools of a request: `tools` and `tool_choice` of both APIs, which have the members in different places. The
 * engine decides what a tool's schema may contain (ENGINE.md, Tools). Pure; values are borrowed.
 */
#ifndef FM_SURFACE_TOOLS_H
#define FM_SURFACE_TOOLS_H

#include "protocol/engine.h"
#include "surface/format.h"

/* Each API's rows `tools` and `tool_choice`, followed by fm_shared_rules. */
extern const struct fm_rule fm_responses_tool_rules[];
extern const struct fm_rule fm_chat_tool_rules[];

/*
 * Checks a list of at least `min` and, if `max` is not 0, at most `max` objects. Each has a `type`, "function" or
 * "custom", and the members of the row of `members` with that name.
 */
fm_check_fn fm_check_tools;

/* The tools of a body, and which of them may be called. Borrows from the body. */
struct fm_asked_tools {
    struct json_object *body;
    struct json_object *list;   /* `tools`; NULL: there are none, and the fields below do not count */
    bool nested;                /* chat: the members of a tool lie in its member `function` */
    const char *mode;           /* "auto", "required" or "none" */
    bool some;                  /* only some tools may be called, those in the next member */
    bool allowed[FM_TOOLS_MAX]; /* the tools that may be called, if `some` */
};

/*
 * Reads the tools of a checked `body` that asks for `format`. Combinations that make no sense are refused:
 * FM_INVALID_REQUEST with the path of the field.
 */
FM_MUST_USE enum fm_code fm_tools_find(struct json_object *body, bool nested, const struct fm_asked_format *format,
                                       struct fm_asked_tools *asked, struct fm_error *error);

/* Notes in `request` what its answer needs to know about the tools. Call it after fm_request_begin. */
void fm_tools_note(const struct fm_asked_tools *asked, struct fm_request *request);

/*
 * The first writes the job's `tools`, `tool_choice` and `parallel_tool_calls`. The second writes the value of the
 * Response's `tools`.
 */
void fm_tools_write_job(const struct fm_asked_tools *asked, struct fm_json_writer *w);
void fm_tools_write_echo(const struct fm_asked_tools *asked, struct fm_json_writer *w);

#endif
