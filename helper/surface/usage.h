/* An answer's token counts: the member `usage` of its object, and `fm.uncounted`. Pure. */
#ifndef FM_SURFACE_USAGE_H
#define FM_SURFACE_USAGE_H

#include "surface/surface.h"

struct fm_json_writer;
struct json_object;

/* Returns the tokens of all choices. They share the prompt, which counts once. */
struct fm_usage fm_answer_usage(const struct fm_answer *answer);

/* Whether the tokens of the prompt and of the answer are known; otherwise `usage` is null. */
bool fm_usage_known(const struct fm_usage *usage);

/*
 * Writes the member `usage` of the Responses API's objects. OpenAI's types demand its details, so an unknown detail is
 * 0.
 */
void fm_responses_write_usage(const struct fm_usage *usage, struct fm_json_writer *w);

/* Whether fm_responses_write_usage writes a 0 for a count that is not known. */
bool fm_usage_has_uncounted(const struct fm_usage *usage);

/* Writes the member `uncounted` of `fm`: the names of the counts that are not known. */
void fm_usage_write_uncounted(const struct fm_usage *usage, struct fm_json_writer *w);

/* Reads what fm_responses_write_usage and fm_usage_write_uncounted wrote. Each may be NULL (both borrowed). */
struct fm_usage fm_usage_restore(struct json_object *usage, struct json_object *uncounted);

/* Writes the member `usage` of chat and completions, with the sums of all choices. An unknown detail is left out. */
void fm_chat_write_usage(const struct fm_answer *answer, struct fm_json_writer *w);

/* Writes the member `usage` of vectors, which have no answer tokens. */
void fm_embeddings_write_usage(const struct fm_usage *usage, struct fm_json_writer *w);

#endif
