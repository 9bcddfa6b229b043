/*
 * What a host asks the output to be: `text.format` of the Responses API, `response_format` of chat completions, which
 * the Responses API takes too, and `fm.grammar` of both. Only the shape is checked here: what a schema or a grammar may
 * say is the engine's matter (ENGINE.md, Formats). Pure; values are borrowed.
 */
#ifndef FM_SURFACE_FORMAT_H
#define FM_SURFACE_FORMAT_H

#include "protocol/json_writer.h"
#include "surface/check.h"
#include "surface/surface.h"

/* The types of a format, for fm_check_variant: its words, and a row of members for each in either API. */
extern const char *const fm_format_types[];
extern const struct fm_rule fm_responses_formats[];
extern const struct fm_rule fm_chat_formats[];

extern const struct fm_rule fm_grammar_rules[]; /* the members of `fm.grammar` */

/* Checkers that tools have too: a name of OpenAI's pattern ^[a-zA-Z0-9_-]{1,64}$; a JSON schema's size. */
fm_check_fn fm_check_name;
fm_check_fn fm_check_schema;

/* JSON values in all schemas of a request together. */
#define FM_SCHEMA_VALUES_MAX 32768

/* Values in a checked schema, itself included; NULL: none. */
size_t fm_schema_values(struct json_object *schema);

/* The row `response_format` of the Responses API: the shape of either API. */
fm_check_fn fm_check_any_format;

/*
 * The format of a body (NULL: none; borrowed), and where an engine's "format..." stands there: a table for
 * fm_request.format_params, by which its shape is known.
 */
struct fm_format_place {
    struct json_object *format;
    const struct fm_param_name *params;
};

extern const struct fm_param_name fm_chat_format_params[]; /* chat's */

/* Of a checked body of the Responses API. Two formats are refused: FM_INVALID_REQUEST, on `response_format`. */
FM_MUST_USE enum fm_code fm_format_of_responses(struct json_object *body, struct fm_format_place *place,
                                                struct fm_error *error);

enum fm_format_type { FM_ASKS_TEXT, FM_ASKS_JSON_OBJECT, FM_ASKS_JSON_SCHEMA, FM_ASKS_GRAMMAR };

/* The format that a body asks for; it borrows from the body. */
struct fm_asked_format {
    enum fm_format_type type;
    /* FM_ASKS_JSON_SCHEMA: name, schema, strict, description; FM_ASKS_GRAMMAR: syntax, definition. Else NULL. */
    struct json_object *members;
    const struct fm_param_name *params; /* static */
};

/*
 * Finds it in a checked `body`, where the API's own format is at `place`. What can't stand side by side is refused:
 * FM_INVALID_REQUEST, on `fm.grammar`.
 */
FM_MUST_USE enum fm_code fm_format_find(struct json_object *body, const struct fm_format_place *place,
                                        struct fm_asked_format *asked, struct fm_error *error);

/* Notes in `request`, behind fm_request_begin, what its answer has to know. */
void fm_format_note(const struct fm_asked_format *asked, struct fm_request *request);

/* The member `format` of job.start, where there is one; and the value of the Response object's `text.format`. */
void fm_format_write_job(const struct fm_asked_format *asked, struct fm_json_writer *w);
void fm_format_write_echo(const struct fm_asked_format *asked, struct fm_json_writer *w);

#endif
