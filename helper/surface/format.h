/*
 * The output format that a host asks for: `text.format` of the Responses API, `response_format` of chat completions
 * (which the Responses API takes too), or `fm.grammar` of both. Only the shape is checked here: the engine decides what
 * a schema or a grammar may contain (ENGINE.md, Formats). Pure; values are borrowed.
 */
#ifndef FM_SURFACE_FORMAT_H
#define FM_SURFACE_FORMAT_H

#include "protocol/json_writer.h"
#include "surface/check.h"
#include "surface/surface.h"

/* The types of a format, for fm_check_variant: the words, and each API's rows with the members of each type. */
extern const char *const fm_format_types[];
extern const struct fm_rule fm_responses_formats[];
extern const struct fm_rule fm_chat_formats[];

extern const struct fm_rule fm_grammar_rules[]; /* the members of `fm.grammar` */

/*
 * Checkers that tools use too: one for a name of OpenAI's pattern ^[a-zA-Z0-9_-]{1,64}$, one for the size of a JSON
 * schema.
 */
fm_check_fn fm_check_name;
fm_check_fn fm_check_schema;

/* The checker of a grammar's definition: a text whose size in bytes is limited. */
fm_check_fn fm_check_definition;

/* Most JSON values in all schemas of a request together. */
#define FM_SCHEMA_VALUES_MAX 32768

/* How many JSON values a checked schema has, itself included; 0 for NULL. */
size_t fm_schema_values(struct json_object *schema);

/* For `response_format` in the Responses API: the shape of either API is accepted. */
fm_check_fn fm_check_any_format;

/*
 * The format in a body (NULL: none; borrowed), and the table for fm_request.format_params. The table translates an
 * engine's "format..." into the path in the body, and also shows which API's shape the format has.
 */
struct fm_format_place {
    struct json_object *format;
    const struct fm_param_name *params;
};

extern const struct fm_param_name fm_chat_format_params[]; /* chat's */

/*
 * Finds the format in a checked body of the Responses API. Two formats are refused: FM_INVALID_REQUEST, on
 * `response_format`.
 */
FM_MUST_USE enum fm_code fm_format_of_responses(struct json_object *body, struct fm_format_place *place,
                                                struct fm_error *error);

enum fm_format_type { FM_ASKS_TEXT, FM_ASKS_JSON_OBJECT, FM_ASKS_JSON_SCHEMA, FM_ASKS_GRAMMAR };

/* The format that a body asks for; it borrows from the body. */
struct fm_asked_format {
    enum fm_format_type type;
    /*
     * With FM_ASKS_JSON_SCHEMA: name, schema, strict, description. With FM_ASKS_GRAMMAR: syntax, definition. Otherwise
     * NULL.
     */
    struct json_object *members;
    const struct fm_param_name *params; /* static */
};

/*
 * Reads the format that a checked `body` asks for; the API's own format is at `place`. A grammar together with a JSON
 * format is refused: FM_INVALID_REQUEST, on `fm.grammar`.
 */
FM_MUST_USE enum fm_code fm_format_find(struct json_object *body, const struct fm_format_place *place,
                                        struct fm_asked_format *asked, struct fm_error *error);

/* Notes in `request` what its answer needs to know about the format. Call it after fm_request_begin. */
void fm_format_note(const struct fm_asked_format *asked, struct fm_request *request);

/*
 * write_job writes the member `format` of job.start, if there is a format. write_echo writes the value of the
 * Response's `text.format`.
 */
void fm_format_write_job(const struct fm_asked_format *asked, struct fm_json_writer *w);
void fm_format_write_echo(const struct fm_asked_format *asked, struct fm_json_writer *w);

#endif
