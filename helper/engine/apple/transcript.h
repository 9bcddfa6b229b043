/*
 * Writes a conversation in the form of Apple's library: the JSON of a transcript, and the prompt that comes after it.
 * Pure.
 */
#ifndef FM_ENGINE_APPLE_TRANSCRIPT_H
#define FM_ENGINE_APPLE_TRANSCRIPT_H

#include "engine/kit/kit.h"

struct json_object;

/*
 * The prompt that follows a tool's output or a message of the assistant, because the library needs a prompt for each
 * answer.
 */
#define FM_APPLE_AFTER_TOOLS "Answer with the help of these results."
#define FM_APPLE_GO_ON       "Go on."

/* What the model must know besides the messages: JSON in Apple's dialect (schema.h); NULL for none. Borrowed. */
struct fm_apple_extras {
    struct json_object *tools;  /* an array of {"type":"function","function":{name, description, parameters}} */
    struct json_object *format; /* the schema of the answer */
    const char *instructions;   /* more instructions, after those of the system messages */
};

/*
 * Appends the transcript of the job's messages. If the last message is the user's, it is left out and becomes the
 * prompt: `*prompt` is set to its text (`*prompt_len` bytes, borrowed from the job, or a literal). With `whole` the
 * prompt is an entry of the transcript too, so that its tokens are counted. NUL-terminated.
 *
 * All system messages become instructions, in their order, at the beginning: the library has no other place for them.
 */
void fm_apple_transcript(const struct fm_kit_job *job, const struct fm_apple_extras *extras, bool whole,
                         struct fm_buf *json, const char **prompt, size_t *prompt_len);

#endif
