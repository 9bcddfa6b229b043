/*
 * A job's answer, token by token: what of it is a thought, a call of a tool, or text. Each token's bytes are taken
 * apart and told to the job. Which token comes is not decided here (sequence.h). Engine thread only.
 */
#ifndef FM_ENGINE_LLAMA_ANSWER_H
#define FM_ENGINE_LLAMA_ANSWER_H

#include "engine/chat/thoughts.h"
#include "engine/chat/tools.h"
#include "engine/guide/guide.h"
#include "engine/kit/kit.h"
#include "engine/llama/logprobs.h"

struct fm_llama_answer {
    struct fm_kit_job *job;           /* borrowed */
    const struct llama_vocab *vocab;  /* borrowed */
    struct fm_guide guide;            /* owned; a grammar of it begins where the thought ends */
    struct fm_thought_parser thought; /* takes the answer first */
    llama_token thought_marks[2];     /* those that are one token; else LLAMA_TOKEN_NULL */
    struct fm_held_logprobs held;     /* of what it may still say is text */
    struct fm_buf piece;              /* bytes of the token that was read last */
    bool replays;                     /* tokens come that were held: what is known of their logits was told */
    bool callable;                    /* `parser` takes the text apart */
    struct fm_tool_parser parser;
    const float *logits;   /* that the next token is drawn from, or forced against: for log probabilities; borrowed */
    struct fm_error error; /* of FM_REASON_ERROR */
};

/* Of `job`, which must outlive it. There is no thought, no guide and no call until they are set. Allocates nothing. */
void fm_llama_answer_init(struct fm_llama_answer *answer, struct fm_kit_job *job, const struct llama_vocab *vocab);
void fm_llama_answer_free(struct fm_llama_answer *answer);

/* The model thinks in this form, which must outlive the answer, and the answer begins in `state`. */
void fm_llama_answer_think(struct fm_llama_answer *answer, const struct fm_thought_form *form,
                           enum fm_thought_state state);

/* The text has not begun: a thought may come, or has. */
bool fm_llama_answer_is_thinking(const struct fm_llama_answer *answer);

/* A thought is open. */
bool fm_llama_answer_is_inside(const struct fm_llama_answer *answer);

/*
 * `token` is the mark of a thought, amid a text. It is no part of that, and no grammar sees it. What follows is text all
 * the same: nothing tells a thought there from a text about thoughts.
 */
bool fm_llama_answer_drops(const struct fm_llama_answer *answer, llama_token token);

/* The bytes of `token` into ->piece, of a control token too. False: out of memory. */
FM_MUST_USE bool fm_llama_answer_read(struct fm_llama_answer *answer, llama_token token);

/*
 * The answer goes on with `token`, which is told to the job. Its text is that of the vocabulary; none for a control
 * token that is no part of a thought's mark or of a call, nor for one that fm_llama_answer_drops. FM_REASON_NONE: go on.
 */
FM_MUST_USE enum fm_reason fm_llama_answer_add(struct fm_llama_answer *answer, llama_token token);

/* The answer is over for `reason`: tells what could still have become a mark or a call. Returns why it ended. */
FM_MUST_USE enum fm_reason fm_llama_answer_end(struct fm_llama_answer *answer, enum fm_reason reason);

/* Sets `error` and returns FM_REASON_ERROR. */
enum fm_reason fm_llama_answer_fail(struct fm_llama_answer *answer, enum fm_code code, const char *detail);

/* What of the job the answer is at: the tool whose arguments it writes, where that is so; else what the grammar is of.
 */
void fm_llama_answer_param(const struct fm_llama_answer *answer, char *param, size_t size);

#endif
