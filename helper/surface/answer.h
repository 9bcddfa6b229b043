/* What the APIs share inside this folder: putting events on a stream, and errors in OpenAI's words. */
#ifndef FM_SURFACE_ANSWER_H
#define FM_SURFACE_ANSWER_H

#include "surface/surface.h"

/* A writer on the empty scratch buffer, for one event or chunk. */
struct fm_json_writer fm_event_begin(struct fm_answer *answer);

/* Hands the event to answer->emit. One that could not be built is dropped, and answer->lost is set. */
void fm_event_send(struct fm_answer *answer);

/*
 * An error in OpenAI's words: the members "code", "message" and "param" of an open object; an object of them and
 * "type".
 */
void fm_openai_error_fields(const struct fm_error *error, struct fm_json_writer *w);
void fm_openai_error_write(const struct fm_error *error, struct fm_json_writer *w);

/* Writes the whole text as a value. */
void fm_answer_write_text(const struct fm_answer *answer, struct fm_json_writer *w);

#endif
