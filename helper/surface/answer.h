/*
 * What the APIs share inside this folder: the events of a stream, writing an answer's parts, and OpenAI's errors.
 */
#ifndef FM_SURFACE_ANSWER_H
#define FM_SURFACE_ANSWER_H

#include "surface/surface.h"

/*
 * A stream is a small machine: a surface's `next` says which event follows the last one. These events are common to all
 * surfaces; the numbers of a surface's others begin with FM_EVENT_OWN.
 */
enum fm_event {
    FM_EVENT_NONE,  /* as the last event: none was sent yet. As the next event: it can't be sent yet */
    FM_EVENT_END,   /* no event follows */
    FM_EVENT_DELTA, /* a piece of the answer's output */
    FM_EVENT_OWN,
};

/* The open part, which is the last part whose first event was sent; NULL: no part is open. open_index: its index. */
const struct fm_output_part *fm_event_open_part(const struct fm_answer *answer, const struct fm_cursor *cursor);
size_t fm_event_open_index(const struct fm_cursor *cursor);

/*
 * has_piece: the open part, if there is one, has output that was not sent. is_over: all of its output was sent, and
 * none follows.
 */
bool fm_event_has_piece(const struct fm_answer *answer, const struct fm_cursor *cursor);
bool fm_event_is_over(const struct fm_answer *answer, const struct fm_cursor *cursor);

/* Writes the next piece of the open part, as a value of whole UTF-8 characters, and counts it as sent. */
void fm_event_write_piece(struct fm_answer *answer, struct fm_cursor *cursor, struct fm_json_writer *w);

/*
 * For APIs whose streams mark neither the beginning nor the end of a part. The index of the part after the open one
 * that has output or is a call; answer->part_count: there is none yet. begin_next makes it the open part, unless the
 * open part has a piece.
 */
size_t fm_event_next_part(const struct fm_answer *answer, const struct fm_cursor *cursor);
void fm_event_begin_next(const struct fm_answer *answer, struct fm_cursor *cursor);

/* How many calls there are before the part `index`. */
size_t fm_answer_calls_before(const struct fm_answer *answer, size_t index);

/*
 * An error in OpenAI's words: the members "code", "message" and "param" of an open object; an object of them and
 * "type". Its `reason` is OpenAI's `code`, such as "unsupported_parameter"; without one, its fm_code has a `code`; ""
 * stands for null, where OpenAI has no code.
 */
void fm_openai_error_fields(const struct fm_error *error, struct fm_json_writer *w);
void fm_openai_error_write(const struct fm_error *error, struct fm_json_writer *w);

/* The first code with this `type` in the OpenAI API; FM_INTERNAL for any other text. */
enum fm_code fm_openai_error_code(const char *type);

/*
 * The moment whose state an object shows, even if the answer has gone on since then: so all readers get the same
 * events.
 */
enum fm_moment {
    FM_MOMENT_QUEUED, /* in the background, before the engine accepted the prompt */
    FM_MOMENT_BEGUN,  /* when the engine had accepted the prompt */
    FM_MOMENT_NOW,
};

/*
 * Writes the object's member `fm` if it has something to say: the schema report that the request asks for, how many
 * messages were left out, which parameters were ignored, and at the end what it took, where that was asked for, which
 * engine it was, and what that did not count.
 */
void fm_answer_write_report(const struct fm_answer *answer, enum fm_moment moment, struct fm_json_writer *w);

/*
 * Writes a chunk's member `fm`, as fm_answer_write_report: the first chunk has the ignored parameters. The last chunk
 * of the last choice (not counting the one with the usage) has the timings.
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
 * Parts of chat that legacy completions use too: the first members of an object or chunk (id, object, created, model);
 * the chunk with the usage; why the answer ended (NULL while it has not, or when it was cancelled or failed);
 * the next event of the stream.
 */
void fm_chat_write_head(const struct fm_answer *answer, const char *object, struct fm_json_writer *w);
void fm_chat_write_usage_chunk(const struct fm_answer *answer, const char *object, struct fm_json_writer *w);
const char *fm_chat_finish_reason(const struct fm_answer *answer);
int fm_chat_next(const struct fm_answer *answer, const struct fm_cursor *cursor);

/*
 * Writes an array of log probabilities: of the tokens in the piece that was written last; of all tokens; of those of
 * the part `index`. Empty if the request asks for none.
 */
void fm_event_write_logprobs(const struct fm_answer *answer, const struct fm_cursor *cursor, struct fm_json_writer *w);
void fm_answer_write_logprobs(const struct fm_answer *answer, struct fm_json_writer *w);
void fm_part_write_logprobs(const struct fm_answer *answer, size_t index, struct fm_json_writer *w);

#define FM_LOGPROBS_MAX (4u << 20) /* bytes of entries as JSON */

/*
 * For answer.c. init: prepares room for `max` bytes of log probabilities. piece_end: where a piece of the text must end
 * that may end at `end` at the latest.
 */
void fm_logprobs_init(struct fm_answer *answer, size_t max);
void fm_logprobs_free(struct fm_answer *answer);
void fm_logprobs_next(struct fm_answer *answer); /* for another choice; does not free those of the last one */
size_t fm_logprobs_piece_end(const struct fm_answer *answer, const struct fm_cursor *cursor, size_t end);

/* The reader's piece ends at `end`: the marks up to there belong to it, and count as sent. */
void fm_logprobs_take(const struct fm_answer *answer, struct fm_cursor *cursor, size_t end);

/* Where each delta of the stream ends in the output, in order, for the deltas that some reader has got. */
size_t fm_answer_piece_count(const struct fm_answer *answer);
const size_t *fm_answer_pieces(const struct fm_answer *answer);

/* Begins another part, without ids. NULL when out of memory, or with too many. */
struct fm_output_part *fm_answer_add_part(struct fm_answer *answer, enum fm_output_kind kind);

/* Adds to the last part, of any kind; false as fm_answer_append. */
FM_MUST_USE bool fm_answer_append_raw(struct fm_answer *answer, const char *text, size_t len);

/* Gives a part of reasoning a state (copied). False when out of memory. */
FM_MUST_USE bool fm_part_set_state(struct fm_answer *answer, struct fm_output_part *part, const char *state,
                                   size_t len);

/* Decides the deltas for the part of the finished answer that no reader has got yet. */
void fm_answer_cut(struct fm_answer *answer);

/*
 * For replay.c. write_counts: writes an array of how many log probabilities go with each delta. restore: takes them
 * back; `list` has all of them, `counts` is that array (both borrowed). False: they are damaged, or out of memory.
 */
void fm_logprobs_write_counts(const struct fm_answer *answer, struct fm_json_writer *w);
FM_MUST_USE bool fm_logprobs_restore(struct fm_answer *answer, struct json_object *list, struct json_object *counts);

/* The first text's bytes and their number; valid until something is appended. */
const char *fm_answer_text(const struct fm_answer *answer);
size_t fm_answer_text_len(const struct fm_answer *answer);

/* Whether there is a part of that kind. */
bool fm_answer_has(const struct fm_answer *answer, enum fm_output_kind kind);

/* The number of bytes of the part `index`. */
size_t fm_answer_part_len(const struct fm_answer *answer, size_t index);

/* Each writes a string: all parts of a kind, joined; the part `index`. */
void fm_answer_write_kind(const struct fm_answer *answer, enum fm_output_kind kind, struct fm_json_writer *w);
void fm_answer_write_part(const struct fm_answer *answer, size_t index, struct fm_json_writer *w);

#endif
