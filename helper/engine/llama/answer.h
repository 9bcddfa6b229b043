/*
 * A job's answer, token by token: which part of it is a thought, a call of a tool, or text. Each token's bytes are
 * split and passed on to the job. sequence.h decides which token comes next. Engine thread only.
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
    struct fm_guide guide;            /* owned; its grammar begins where the thought ends */
    struct fm_thought_parser thought; /* reads the answer first */
    /* for each mark, its token if the mark is one token; otherwise LLAMA_TOKEN_NULL */
    llama_token thought_marks[2];
    struct fm_held_logprobs held; /* log probabilities of tokens that may still become text */
    struct fm_buf piece;          /* bytes of the last token that was read */
    /* held tokens are being passed on; their log probabilities were passed on before */
    bool replays;
    bool callable; /* the answer may call tools: `parser` splits it into text and calls */
    struct fm_tool_parser parser;
    const float *logits;   /* the logits for the next token, drawn or forced; for log probabilities; borrowed */
    struct fm_error error; /* why a function returned FM_REASON_ERROR */
};

/*
 * Makes the answer to `job`, which must outlive the answer. The answer has no thought, guide and calls until they are
 * set. Allocates nothing.
 */
void fm_llama_answer_init(struct fm_llama_answer *answer, struct fm_kit_job *job, const struct llama_vocab *vocab);
void fm_llama_answer_free(struct fm_llama_answer *answer);

/* Sets the form in which the model thinks, which must outlive the answer, and the state in which the answer begins. */
void fm_llama_answer_think(struct fm_llama_answer *answer, const struct fm_thought_form *form,
                           enum fm_thought_state state);

/* True if the text has not begun: a thought may come, or has begun. */
bool fm_llama_answer_is_thinking(const struct fm_llama_answer *answer);

/* True if a thought is open. */
bool fm_llama_answer_is_inside(const struct fm_llama_answer *answer);

/*
 * Whether `token` is the mark of a thought in the middle of a text. Such a mark is not a part of the text, and no
 * grammar gets it. The tokens after it are still text: a thought there can't be distinguished from a text about
 * thoughts.
 */
bool fm_llama_answer_drops(const struct fm_llama_answer *answer, llama_token token);

/* Reads the bytes of `token`, also of a control token, into ->piece. False: out of memory. */
FM_MUST_USE bool fm_llama_answer_read(struct fm_llama_answer *answer, llama_token token);

/*
 * Adds `token` to the answer and passes it on to the job. The token's text is its text in the vocabulary. The text is
 * empty for a control token that is not a part of a thought's mark or of a call, and if fm_llama_answer_drops is true.
 * FM_REASON_NONE: continue.
 */
FM_MUST_USE enum fm_reason fm_llama_answer_add(struct fm_llama_answer *answer, llama_token token);

/* Ends the answer for `reason`: passes on bytes that could still have become a mark or a call. Returns why it ended. */
FM_MUST_USE enum fm_reason fm_llama_answer_end(struct fm_llama_answer *answer, enum fm_reason reason);

/* Sets `error` and returns FM_REASON_ERROR. */
enum fm_reason fm_llama_answer_fail(struct fm_llama_answer *answer, enum fm_code code, const char *detail);

/*
 * Writes the path of the part of the job that the answer is at: the tool whose arguments it writes; else the grammar's
 * source.
 */
void fm_llama_answer_param(const struct fm_llama_answer *answer, char *param, size_t size);

#endif
