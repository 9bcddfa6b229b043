/* What the APIs share inside this folder: the rows of a stream's events, and errors in OpenAI's words. */
#ifndef FM_SURFACE_ANSWER_H
#define FM_SURFACE_ANSWER_H

#include "surface/surface.h"

enum fm_event_state {
    FM_EVENT_LATER, /* it is not known yet, or not known whether it will be sent */
    FM_EVENT_DUE,
    FM_EVENT_SKIP, /* this answer has no such event, or no more of them */
};

/* An event in the order of a stream. */
struct fm_event_row {
    enum fm_event_state (*state)(const struct fm_answer *answer);
    void (*write)(struct fm_answer *answer, struct fm_json_writer *w);
    bool repeats; /* asked for its state again after it was sent */
};

/* States that both APIs have: at once; while there is text that no delta has taken. */
enum fm_event_state fm_event_due(const struct fm_answer *answer);
enum fm_event_state fm_event_text_state(const struct fm_answer *answer);

/* Writes the text of the next delta as a value, whole UTF-8 characters, and counts it as sent. */
void fm_event_write_text(struct fm_answer *answer, struct fm_json_writer *w);

/*
 * An error in OpenAI's words: the members "code", "message" and "param" of an open object; an object of them and
 * "type".
 */
void fm_openai_error_fields(const struct fm_error *error, struct fm_json_writer *w);
void fm_openai_error_write(const struct fm_error *error, struct fm_json_writer *w);

/*
 * Writes the object's member `fm`, where the request asks for it: the schema report. `begun`: as it was when the answer
 * began, however far it is by now.
 */
void fm_answer_write_report(const struct fm_answer *answer, bool begun, struct fm_json_writer *w);

/* Writes the whole text as a value. */
void fm_answer_write_text(const struct fm_answer *answer, struct fm_json_writer *w);

#endif
