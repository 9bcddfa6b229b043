/* Splits the answer's tokens into thought, calls and text, and passes them on to the job: answer.h. */
#include "engine/llama/answer.h"
#include "engine/llama/tokens.h"

#include <stdio.h>
#include <string.h>

#define PIECE_SIZE 256        /* bytes of a token's text; most have less than 20 */
#define PIECE_MAX  (1u << 20) /* no token has this many */

void fm_llama_answer_init(struct fm_llama_answer *answer, struct fm_kit_job *job, const struct llama_vocab *vocab) {
    *answer = (struct fm_llama_answer){.job = job, .vocab = vocab, .thought = {.state = FM_THOUGHT_OVER}};
    answer->thought_marks[0] = answer->thought_marks[1] = LLAMA_TOKEN_NULL;
    fm_buf_init(&answer->piece, PIECE_MAX);
}

void fm_llama_answer_free(struct fm_llama_answer *answer) {
    fm_guide_free(&answer->guide);
    fm_thought_parser_free(&answer->thought);
    fm_held_logprobs_drop(&answer->held);
    fm_tool_parser_free(&answer->parser);
    fm_buf_free(&answer->piece);
}

void fm_llama_answer_think(struct fm_llama_answer *answer, const struct fm_thought_form *form,
                           enum fm_thought_state state) {
    fm_thought_parser_init(&answer->thought, form, state);
    if (form->thinks) {
        answer->thought_marks[0] = fm_token_of(answer->vocab, form->begin);
        answer->thought_marks[1] = fm_token_of(answer->vocab, form->end);
    }
}

bool fm_llama_answer_drops(const struct fm_llama_answer *answer, llama_token token) {
    bool mark = token == answer->thought_marks[0] || token == answer->thought_marks[1];
    bool text = answer->callable ? answer->parser.state == FM_TOOL_IN_TEXT
                                 : answer->job->format.kind == FM_FORMAT_TEXT;
    return mark && text && !fm_llama_answer_is_thinking(answer);
}

bool fm_llama_answer_is_thinking(const struct fm_llama_answer *answer) {
    return answer->thought.state != FM_THOUGHT_OVER;
}

bool fm_llama_answer_is_inside(const struct fm_llama_answer *answer) {
    return answer->thought.state == FM_THOUGHT_BEGUN || answer->thought.state == FM_THOUGHT_INSIDE;
}

/* ---- faults ---- */

enum fm_reason fm_llama_answer_fail(struct fm_llama_answer *answer, enum fm_code code, const char *detail) {
    (void)fm_fail(&answer->error, code, "%s", detail);
    return FM_REASON_ERROR;
}

static enum fm_reason fail_no_memory(struct fm_llama_answer *answer) {
    return fm_llama_answer_fail(answer, FM_INTERNAL, "out of memory");
}

void fm_llama_answer_param(const struct fm_llama_answer *answer, char *param, size_t size) {
    const struct fm_tool_parser *parser = &answer->parser;
    enum fm_tool_state state = parser->state == FM_TOOL_IN_MARK ? parser->next : parser->state;
    if (parser->called && state >= FM_TOOL_IN_ARGUMENTS && state <= FM_TOOL_IN_NOTATION) {
        snprintf(param, size, "tools[%td].parameters", parser->called - answer->job->tools);
    } else {
        snprintf(param, size, "%s", answer->guide.param);
    }
}

/* ---- text and calls ---- */

static enum fm_reason tell_piece(struct fm_llama_answer *answer, const struct fm_tool_piece *piece) {
    struct fm_kit_job *job = answer->job;
    switch (piece->kind) {
    case FM_TOOL_CALL: return fm_kit_job_tool_call(job, piece->name);
    case FM_TOOL_PART_OF_ARGUMENTS: return fm_kit_job_text(job, piece->bytes, piece->len);
    case FM_TOOL_TEXT:
        return fm_guide_add(&answer->guide, piece->bytes, piece->len) ? fm_kit_job_text(job, piece->bytes, piece->len)
                                                                      : FM_REASON_ERROR;
    case FM_TOOL_UNKNOWN:
        if (!job->unknown_tool[0]) {
            snprintf(job->unknown_tool, sizeof job->unknown_tool, "%s", piece->name);
        }
        return FM_REASON_NONE;
    default: return FM_REASON_ERROR;
    }
}

/* Passes on the bytes of one token, which may be text, calls, or both; the token is counted once, after them. */
static enum fm_reason tell_pieces(struct fm_llama_answer *answer, const char *bytes, size_t len) {
    enum fm_reason reason = FM_REASON_NONE;
    struct fm_tool_piece piece;
    while (!reason && fm_tool_parser_read(&answer->parser, &bytes, &len, &piece)) {
        reason = tell_piece(answer, &piece);
    }
    enum fm_reason counted = fm_kit_job_token(answer->job, "", 0);
    return reason ? reason : counted;
}

/* Returns `reason`; an error without a description means that memory ran out. */
static enum fm_reason told(struct fm_llama_answer *answer, enum fm_reason reason) {
    return reason == FM_REASON_ERROR && answer->error.code == FM_OK ? fail_no_memory(answer) : reason;
}

/* Handles a token that is the trigger of a call, after `text`. */
static enum fm_reason tell_trigger(struct fm_llama_answer *answer, const struct fm_tool_piece *text) {
    enum fm_reason reason = text->len > 0 ? tell_piece(answer, text) : FM_REASON_NONE;
    enum fm_reason counted = fm_kit_job_token(answer->job, "", 0);
    return told(answer, reason ? reason : counted);
}

static enum fm_reason tell_bytes(struct fm_llama_answer *answer, const char *bytes, size_t len) {
    enum fm_reason reason = FM_REASON_ERROR;
    if (answer->callable) {
        reason = tell_pieces(answer, bytes, len);
    } else if (fm_guide_add(&answer->guide, bytes, len)) {
        reason = fm_kit_job_token(answer->job, bytes, len);
    }
    return told(answer, reason);
}

/* Called before `token`, whose text is `bytes`, is passed on. */
static enum fm_reason tell_logprobs(struct fm_llama_answer *answer, llama_token token, const char *bytes, size_t len) {
    struct fm_llama_logprobs logprobs;
    if (!answer->job->logprobs || answer->replays) {
        return FM_REASON_NONE;
    }
    bool read = fm_llama_logprobs_read(&logprobs, answer->vocab, answer->logits, token, answer->job->top_logprobs);
    logprobs.told.token.bytes = bytes;
    logprobs.told.token.len = len;
    fm_kit_job_logprobs(answer->job, &logprobs.told);
    fm_llama_logprobs_free(&logprobs);
    return read ? FM_REASON_NONE : fail_no_memory(answer);
}

static enum fm_reason tell_token(struct fm_llama_answer *answer, llama_token token, const char *bytes, size_t len) {
    enum fm_reason reason = tell_logprobs(answer, token, bytes, len);
    return reason ? reason : tell_bytes(answer, bytes, len);
}

/* ---- thoughts ---- */

/* Passes on the result of fm_thought_read or fm_thought_end. A grammar begins after a thought, without this text. */
static enum fm_reason tell_thought(struct fm_llama_answer *answer) {
    const struct fm_thought_parser *thought = &answer->thought;
    enum fm_reason reason = FM_REASON_NONE;
    if (thought->thought.len > 0) {
        reason = fm_kit_job_reasoning(answer->job, thought->thought.data, thought->thought.len);
    }
    if (!reason && thought->text.len > 0 && !answer->guide.grammar) {
        fm_held_logprobs_tell(&answer->held, answer->job, thought->text.data, thought->text.len);
        reason = fm_kit_job_text(answer->job, thought->text.data, thought->text.len);
    }
    return reason;
}

/* Whether the bytes that the thought's parser holds may become text. */
static bool may_be_text(const struct fm_thought_parser *thought) {
    return thought->state == FM_THOUGHT_AT_START || (thought->state == FM_THOUGHT_AFTER && thought->held_len > 0);
}

/* Holds the log probabilities of `token`, which the thought's parser has read, if the token may be text. */
static bool hold_logprobs(struct fm_llama_answer *answer, llama_token token, size_t len) {
    const struct fm_kit_job *job = answer->job;
    bool text = may_be_text(&answer->thought) || answer->thought.text.len > 0;
    return !job->logprobs || answer->guide.grammar || !text ||
           fm_held_logprobs_add(&answer->held, answer->vocab, answer->logits, token, len, job->top_logprobs);
}

/* Passes on the bytes of one token while a thought may begin or has begun. */
static enum fm_reason tell_thinking(struct fm_llama_answer *answer, llama_token token) {
    const struct fm_buf *piece = &answer->piece;
    bool control = fm_token_is_control(answer->vocab, token);
    bool inside = fm_llama_answer_is_inside(answer);
    if (!fm_thought_read(&answer->thought, piece->data, piece->len, control) ||
        !hold_logprobs(answer, token, control ? 0 : piece->len)) {
        return fail_no_memory(answer);
    }
    bool thought = inside || fm_llama_answer_is_inside(answer);
    enum fm_reason reason = thought ? fm_kit_job_reasoning(answer->job, "", 0) : FM_REASON_NONE;
    reason = reason ? reason : tell_thought(answer);
    enum fm_reason counted = fm_kit_job_token(answer->job, "", 0);
    reason = reason ? reason : counted;
    if (!may_be_text(&answer->thought)) {
        fm_held_logprobs_drop(&answer->held);
    }
    if (!reason && inside && !fm_llama_answer_is_inside(answer)) {
        reason = fm_kit_job_text(answer->job, "", 0); /* the thought ends with this token */
    }
    return reason == FM_REASON_ERROR ? fail_no_memory(answer) : reason;
}

/* ---- tokens ---- */

/* Reads the bytes of `token` into answer->piece; with `control` also those of a control token. */
static bool read_piece(struct fm_llama_answer *answer, llama_token token, bool control) {
    const struct llama_vocab *vocab = answer->vocab;
    struct fm_buf *piece = &answer->piece;
    fm_buf_reset(piece);
    int32_t len = fm_buf_reserve(piece, PIECE_SIZE) ? fm_token_piece(vocab, token, control, piece->data, PIECE_SIZE) : 0;
    if (len < 0) {
        len = fm_buf_reserve(piece, (size_t)-len) ? fm_token_piece(vocab, token, control, piece->data, -len) : 0;
    }
    piece->len = len > 0 ? (size_t)len : 0;
    return !piece->failed;
}

static bool is_in(const char *mark, const struct fm_buf *piece) {
    return memmem(mark, strlen(mark), piece->data, piece->len) != NULL;
}

bool fm_llama_answer_read(struct fm_llama_answer *answer, llama_token token) {
    return read_piece(answer, token, true);
}

static enum fm_reason add_thinking(struct fm_llama_answer *answer, llama_token token) {
    const struct fm_thought_form *form = answer->thought.form;
    if (!read_piece(answer, token, true)) {
        return fail_no_memory(answer);
    }
    const struct fm_buf *piece = &answer->piece;
    if (fm_token_is_control(answer->vocab, token) && !is_in(form->begin, piece) && !is_in(form->end, piece) &&
        !is_in(form->lead, piece) && !is_in(form->preamble, piece)) {
        answer->piece.len = 0;
    }
    return tell_thinking(answer, token);
}

enum fm_reason fm_llama_answer_add(struct fm_llama_answer *answer, llama_token token) {
    struct fm_tool_piece piece;
    bool control = answer->callable; /* a mark may have control tokens, and a grammar of tools allows no others */
    if (fm_llama_answer_is_thinking(answer)) {
        return add_thinking(answer, token);
    }
    if (answer->callable && fm_tool_parser_read_trigger(&answer->parser, token, &piece)) {
        return tell_trigger(answer, &piece);
    }
    if (!read_piece(answer, token, control)) {
        return fail_no_memory(answer);
    }
    size_t len = fm_llama_answer_drops(answer, token) ? 0 : answer->piece.len;
    return tell_token(answer, token, answer->piece.data, len);
}

/* ---- the end ---- */

/* Held bytes that could still have become a mark are thought, or text. */
static enum fm_reason tell_held_thought(struct fm_llama_answer *answer, enum fm_reason reason) {
    bool told = !fm_llama_answer_is_thinking(answer) ||
                (fm_thought_end(&answer->thought) && tell_thought(answer) != FM_REASON_ERROR);
    return told ? reason : fail_no_memory(answer);
}

/* Held bytes that could have become a call are text if the model ended the answer. */
static enum fm_reason tell_held_call(struct fm_llama_answer *answer, enum fm_reason reason) {
    struct fm_tool_piece piece;
    if (!answer->callable || !fm_tool_parser_end(&answer->parser, reason != FM_REASON_STOP, &piece)) {
        return reason;
    }
    return tell_piece(answer, &piece) == FM_REASON_ERROR ? fail_no_memory(answer) : reason;
}

enum fm_reason fm_llama_answer_end(struct fm_llama_answer *answer, enum fm_reason reason) {
    return tell_held_call(answer, tell_held_thought(answer, reason));
}
