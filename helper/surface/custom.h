/*
 * Custom tools. Their calls have a text in place of JSON arguments. No model is trained on such calls, so for the
 * engine a custom tool is a function with one argument, a string, and its call comes as JSON: `{"input": "..."}`. Pure;
 * values are borrowed.
 */
#ifndef FM_SURFACE_CUSTOM_H
#define FM_SURFACE_CUSTOM_H

#include "base/buf.h"
#include "protocol/json_writer.h"
#include "surface/check.h"
#include "surface/surface.h"

/* The members of a custom tool, which in chat lie in its member `custom`. */
extern const struct fm_rule fm_custom_rules[];
extern const struct fm_rule fm_nested_custom_rules[];

/* Writes the members `description` and `parameters` of the function that stands for a checked custom tool. */
void fm_custom_write_function(struct json_object *tool, struct fm_json_writer *w);

/* Writes the members of a checked custom tool of the Responses API, as its Response repeats them. */
void fm_custom_write_echo(struct json_object *tool, struct fm_json_writer *w);

/* Writes the member `arguments` of a call with this text. `scratch` is overwritten. */
void fm_custom_write_arguments(struct json_object *text, struct fm_buf *scratch, struct fm_json_writer *w);

/* Appends to `text` what a piece of the arguments (of any length) has of the text. The buffer keeps a failure. */
void fm_custom_read(struct fm_custom_reader *reader, const char *piece, size_t len, struct fm_buf *text);

#endif
