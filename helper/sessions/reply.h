/* Translates the front's replies for the host of session mode. Pure. */
#ifndef FM_SESSIONS_REPLY_H
#define FM_SESSIONS_REPLY_H

#include "protocol/rpc.h"
#include "sessions/command.h"

/* The outcome of responses.create. */
struct fm_turn_result {
    struct fm_text answer;     /* the answer, as the model wrote it; points into the reply */
    struct json_object *value; /* the reply's `result`; owned */
    int64_t input_tokens;
    int64_t cached_tokens; /* input tokens whose KV cache entries were reused */
    int64_t output_tokens;
    bool ran_on; /* the answer was cut at the limit of output tokens */
};

/*
 * Reads the reply to responses.create. On failure there is nothing to free, but the token counts are set if the reply
 * has them. `scratch`: see fm_command_read.
 */
FM_MUST_USE enum fm_fault_code fm_reply_read_turn(const struct fm_rpc_message *reply, enum fm_output_format format,
                                                  int64_t max_output_tokens, struct fm_buf *scratch,
                                                  struct fm_turn_result *result, struct fm_fault *fault);

/* Frees a result that was read; harmless twice. */
void fm_turn_result_free(struct fm_turn_result *result);

/* Reads the reply to capabilities.get; `reason` (`size` bytes) is "" when a model is available. */
bool fm_reply_read_availability(const struct fm_rpc_message *reply, char *reason, size_t size);

#endif
