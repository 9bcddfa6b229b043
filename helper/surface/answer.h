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
    int step; /* once it was sent, the row that comes next is so many rows further: 0, the same; less than 0, back */
};

/*
 * States that both APIs have: at once; while there is reasoning, or text, that no delta has taken; when there is a call
 * behind the open item; while a call is open whose arguments are not all in deltas. Items are streamed one after the
 * other, so the rows of a call's end come before those of the next call's beginning, which lead back to them.
 */
enum fm_event_state fm_event_due(const struct fm_answer *answer);
enum fm_event_state fm_event_reasoning_state(const struct fm_answer *answer);
enum fm_event_state fm_event_text_state(const struct fm_answer *answer);
enum fm_event_state fm_event_call_state(const struct fm_answer *answer);
enum fm_event_state fm_event_arguments_state(const struct fm_answer *answer);

/* Writes the next piece of the open item as a value, whole UTF-8 characters, and counts it as sent. */
void fm_event_write_reasoning_piece(struct fm_answer *answer, struct fm_json_writer *w); /* of the reasoning */
void fm_event_write_piece(struct fm_answer *answer, struct fm_json_writer *w);           /* of the text, or a call */

/*
 * An error in OpenAI's words: the members "code", "message" and "param" of an open object; an object of them and
 * "type". Its `reason` is OpenAI's `code`, such as "unsupported_parameter"; without one, its fm_code has a `code`; ""
 * stands for null, where OpenAI has no code.
 */
void fm_openai_error_fields(const struct fm_error *error, struct fm_json_writer *w);
void fm_openai_error_write(const struct fm_error *error, struct fm_json_writer *w);

/* A code that has this `type` in the OpenAI API; FM_INTERNAL for a type that is none. */
enum fm_code fm_openai_error_code(const char *type);

/* As of when an object is told, however far the answer is by now: all readers of a stream get the same. */
enum fm_moment {
    FM_MOMENT_QUEUED, /* in the background: before the engine accepted the prompt */
    FM_MOMENT_BEGUN,  /* when it had */
    FM_MOMENT_NOW,
};

/*
 * Writes the object's member `fm`, where there is something for it: the schema report that the request asks for, the
 * messages that were left out, the parameters that were ignored.
 */
void fm_answer_write_report(const struct fm_answer *answer, enum fm_moment moment, struct fm_json_writer *w);

/* The same for a stream's first chunk, which says of all this what was ignored alone. */
void fm_answer_write_ignored(const struct fm_answer *answer, struct fm_json_writer *w);

/* The member `usage` of the Responses API's objects. */
void fm_responses_write_usage(const struct fm_usage *usage, struct fm_json_writer *w);

/*
 * What legacy completions have of chat's. The members of an object, or of a chunk, that tell which answer it is of;
 * `usage`; the chunk that has it; why the answer ended, NULL where it has not, or not well; whether the chunks of
 * reason and of usage are due.
 */
void fm_chat_write_head(const struct fm_answer *answer, const char *object, struct fm_json_writer *w);
void fm_chat_write_usage(const struct fm_answer *answer, struct fm_json_writer *w);
void fm_chat_write_usage_chunk(const struct fm_answer *answer, const char *object, struct fm_json_writer *w);
const char *fm_chat_finish_reason(const struct fm_answer *answer);
enum fm_event_state fm_chat_finish_state(const struct fm_answer *answer);
enum fm_event_state fm_chat_usage_state(const struct fm_answer *answer);

/*
 * Writes as a value, an array, the log probabilities of the tokens: those of the piece that was written last, and all
 * of the text's. Empty where the request asks for none.
 */
void fm_event_write_logprobs(const struct fm_answer *answer, struct fm_json_writer *w);
void fm_answer_write_logprobs(const struct fm_answer *answer, struct fm_json_writer *w);

#define FM_LOGPROBS_MAX (4u << 20) /* bytes of entries as JSON */

/*
 * For answer.c: prepares and frees them, of `max` bytes; how far a piece of the text may go that ends at `end` at most.
 */
void fm_logprobs_init(struct fm_answer *answer, size_t max);
void fm_logprobs_free(struct fm_answer *answer);
void fm_logprobs_next(struct fm_answer *answer); /* for another choice; what the last one had is not freed */
size_t fm_logprobs_piece_end(const struct fm_answer *answer, size_t end);

/* The reader's piece ends at `end`: moves it behind the marks up to there, which are the piece's. */
void fm_logprobs_take(const struct fm_answer *answer, size_t end);

/* Where each delta of the stream ends in the output, in their order, as far as a reader got them. */
size_t fm_answer_piece_count(const struct fm_answer *answer);
const size_t *fm_answer_pieces(const struct fm_answer *answer);

/* Begins another call of the tool `name` (copied); its ids are the caller's to fill in. NULL when out of memory. */
struct fm_call *fm_answer_add_call(struct fm_answer *answer, const char *name);

/* Cuts what no reader of the finished answer has got into deltas, as they will get it. */
void fm_answer_cut(struct fm_answer *answer);

/*
 * For replay.c. Writes as a value, an array, how many log probabilities go with each delta. Takes them back: `list` has
 * all of them, `counts` is that array (both borrowed). False: they are damaged, or out of memory.
 */
void fm_logprobs_write_counts(const struct fm_answer *answer, struct fm_json_writer *w);
FM_MUST_USE bool fm_logprobs_restore(struct fm_answer *answer, struct json_object *list, struct json_object *counts);

/* Tokens of all choices; those of the prompt, which they share, once. */
struct fm_usage fm_answer_usage(const struct fm_answer *answer);

/* The text, the message's, and its bytes; valid until there is more of it. */
const char *fm_answer_text(const struct fm_answer *answer);
size_t fm_answer_text_len(const struct fm_answer *answer);

/* Writes as a value: all of the reasoning; the whole text; all arguments of the call `index`. */
void fm_answer_write_reasoning(const struct fm_answer *answer, struct fm_json_writer *w);
void fm_answer_write_text(const struct fm_answer *answer, struct fm_json_writer *w);
void fm_answer_write_arguments(const struct fm_answer *answer, size_t index, struct fm_json_writer *w);

#endif
