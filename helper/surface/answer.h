/* Shared inside this folder by the APIs: the events of a stream, writing an answer's parts, and OpenAI's errors. */
#ifndef FM_SURFACE_ANSWER_H
#define FM_SURFACE_ANSWER_H

#include "surface/surface.h"

/*
 * A stream is a small state machine: a surface's `next` says which event follows the last one. These events are common
 * to all surfaces. The numbers of a surface's own events begin with FM_EVENT_OWN.
 */
enum fm_event {
    FM_EVENT_NONE,     /* as the last event: no event was sent yet. As the next event: it can't be sent yet */
    FM_EVENT_END,      /* no event follows */
    FM_EVENT_DELTA,    /* a piece of the answer's output */
    FM_EVENT_PROGRESS, /* how much of the prompt is computed; cursor->last does not change, and it has no number */
    FM_EVENT_OWN,
};

/* The open part is the last part whose first event was sent; NULL: no part is open. open_index returns its index. */
const struct fm_output_part *fm_event_open_part(const struct fm_answer *answer, const struct fm_cursor *cursor);
size_t fm_event_open_index(const struct fm_cursor *cursor);

/*
 * has_piece: whether the open part, if there is one, has output that was not sent. is_over: whether all of its output
 * was sent, and no more will follow.
 */
bool fm_event_has_piece(const struct fm_answer *answer, const struct fm_cursor *cursor);
bool fm_event_is_over(const struct fm_answer *answer, const struct fm_cursor *cursor);

/* Writes the member `prompt_progress` of FM_EVENT_PROGRESS. */
void fm_event_write_progress(const struct fm_answer *answer, struct fm_json_writer *w);

/* Writes the next piece of the open part, as a value of whole UTF-8 characters, and counts it as sent. */
void fm_event_write_piece(struct fm_answer *answer, struct fm_cursor *cursor, struct fm_json_writer *w);

/*
 * For APIs whose streams mark neither the beginning nor the end of a part. next_part returns the index of the next part
 * after the open one that has output or is a call; answer->part_count: there is none yet. begin_next makes it the open
 * part, unless the open part has a piece.
 */
size_t fm_event_next_part(const struct fm_answer *answer, const struct fm_cursor *cursor);
void fm_event_begin_next(const struct fm_answer *answer, struct fm_cursor *cursor);

/* How many calls there are before the part `index`. */
size_t fm_answer_calls_before(const struct fm_answer *answer, size_t index);

/*
 * Writes an error in OpenAI's words. fields: writes the members "code", "message" and "param" of an open object. write:
 * writes an object of these members and "type". The error's `reason` becomes OpenAI's `code`, such as
 * "unsupported_parameter". Without a reason, the `code` follows from fm_code. The reason "" stands for null, if OpenAI
 * has no code.
 */
void fm_openai_error_fields(const struct fm_error *error, struct fm_json_writer *w);
void fm_openai_error_write(const struct fm_error *error, struct fm_json_writer *w);

/* The first code with this `type` in the OpenAI API; FM_INTERNAL for any other text. */
enum fm_code fm_openai_error_code(const char *type);

/*
 * The moment whose state an object shows, even if the answer has gone on since then. So all readers get the same
 * events.
 */
enum fm_moment {
    FM_MOMENT_QUEUED, /* in the background, before the engine accepted the prompt */
    FM_MOMENT_BEGUN,  /* when the engine had accepted the prompt */
    FM_MOMENT_NOW,
};

/*
 * Writes the object's member `fm` if there is anything to report: the schema report that the request asks for, how many
 * messages were left out, and which parameters were ignored. At the end also: the timings, if the request asks for
 * them, the engine, and which counts are not known.
 */
void fm_answer_write_report(const struct fm_answer *answer, enum fm_moment moment, struct fm_json_writer *w);

/*
 * Writes a chunk's member `fm`, like fm_answer_write_report. The first chunk has the ignored parameters. The last chunk
 * of the last choice (not counting the chunk with the usage) has the timings.
 */
void fm_answer_write_chunk_report(const struct fm_answer *answer, bool first, bool last, struct fm_json_writer *w);

/* The events of chat's stream. The stream of legacy completions has neither FM_CHAT_ROLE nor FM_CHAT_CALL. */
enum fm_chat_event {
    FM_CHAT_ROLE = FM_EVENT_OWN,
    FM_CHAT_CALL,
    FM_CHAT_FINISH,
    FM_CHAT_USAGE,
};

/*
 * Parts of chat that legacy completions use too. In order: the first members of an object or chunk (id, object,
 * created, model); the chunk with the usage; the chunk with the progress; why the answer ended (NULL while it has not
 * ended, or when it was cancelled or failed); the next event of the stream.
 */
void fm_chat_write_head(const struct fm_answer *answer, const char *object, struct fm_json_writer *w);
void fm_chat_write_usage_chunk(const struct fm_answer *answer, const char *object, struct fm_json_writer *w);
void fm_chat_write_progress_chunk(const struct fm_answer *answer, const char *object, struct fm_json_writer *w);
const char *fm_chat_finish_reason(const struct fm_answer *answer);
int fm_chat_next(const struct fm_answer *answer, const struct fm_cursor *cursor);

/*
 * Each writes an array of log probabilities: for the tokens in the piece that was written last (`cursor` NULL: for all
 * tokens); for those of the part `index`. The array is empty if the request asks for none.
 */
void fm_answer_write_logprobs(const struct fm_answer *answer, const struct fm_cursor *cursor, struct fm_json_writer *w);
void fm_part_write_logprobs(const struct fm_answer *answer, size_t index, struct fm_json_writer *w);

#define FM_LOGPROBS_MAX (4u << 20) /* most bytes of entries as JSON */

/*
 * For answer.c. init prepares room for `max` bytes of log probabilities. piece_end returns where a piece of the text
 * must end, which is at `end` or earlier.
 */
void fm_logprobs_init(struct fm_answer *answer, size_t max);
void fm_logprobs_free(struct fm_answer *answer);
void fm_logprobs_next(struct fm_answer *answer); /* for another choice; the entries of the last one are not freed */
size_t fm_logprobs_piece_end(const struct fm_answer *answer, const struct fm_cursor *cursor, size_t end);

/* Ends the reader's piece at `end`: the marks up to `end` belong to the piece, and count as sent. */
void fm_logprobs_take(const struct fm_answer *answer, struct fm_cursor *cursor, size_t end);

/* Where each delta that some reader has got ends in the output, in order. */
size_t fm_answer_piece_count(const struct fm_answer *answer);
const size_t *fm_answer_pieces(const struct fm_answer *answer);

/* Begins another part, without ids. NULL when out of memory, or with too many parts. */
struct fm_output_part *fm_answer_add_part(struct fm_answer *answer, enum fm_output_kind kind);

/* Adds text to the last part, of any kind. False: see fm_answer_append. */
FM_MUST_USE bool fm_answer_append_raw(struct fm_answer *answer, const char *text, size_t len);

/* Gives a part of reasoning a state (copied). False when out of memory. */
FM_MUST_USE bool fm_part_set_state(struct fm_answer *answer, struct fm_output_part *part, const char *state,
                                   size_t len);

/* Divides the part of the finished answer that no reader has got yet into deltas. */
void fm_answer_cut(struct fm_answer *answer);

/*
 * For replay.c. write_counts writes an array with the number of log probabilities of each delta. restore reads them
 * again: `list` has all log probabilities, `counts` is that array (both borrowed). False: they are damaged, or out of
 * memory.
 */
void fm_logprobs_write_counts(const struct fm_answer *answer, struct fm_json_writer *w);
FM_MUST_USE bool fm_logprobs_restore(struct fm_answer *answer, struct json_object *list, struct json_object *counts);

/* The first text: its bytes, and their number. Valid until something is appended. */
const char *fm_answer_text(const struct fm_answer *answer);
size_t fm_answer_text_len(const struct fm_answer *answer);

/* Whether there is a part of that kind. */
bool fm_answer_has(const struct fm_answer *answer, enum fm_output_kind kind);

/* The number of bytes of the part `index`. */
size_t fm_answer_part_len(const struct fm_answer *answer, size_t index);

/* Each writes a string. kind: all parts of a kind, joined. part: the part `index`. */
void fm_answer_write_kind(const struct fm_answer *answer, enum fm_output_kind kind, struct fm_json_writer *w);
void fm_answer_write_part(const struct fm_answer *answer, size_t index, struct fm_json_writer *w);

#endif
