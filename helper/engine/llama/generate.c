/*
 * One job: its prompt, prefill, and the loop that draws tokens, reads thoughts and calls out of them, and reports them.
 * A thought comes before the grammar: that begins where the thought ends.
 */
#include "engine/llama/generate.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/chat/tools.h"
#include "engine/guide/guide.h"
#include "engine/llama/logprobs.h"
#include "engine/llama/sampler.h"
#include "engine/llama/vocabulary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE_SIZE 256        /* bytes of a token's text; most have less than 20 */
#define PIECE_MAX  (1u << 20) /* no token has so many */

/* A text that an answer may begin with, though its grammar does not have it. */
struct start {
    const char *mark;
    llama_token first;
    size_t count; /* of its tokens */
};

struct generation {
    struct fm_slot *slot;
    struct fm_kit_job *job;
    struct fm_guide guide;
    struct fm_sampler sampler;
    struct fm_thought_parser thought; /* takes the answer first */
    struct fm_held_logprobs held;     /* of what it may still say is text */
    struct fm_buf piece;              /* bytes of the token that was told last */
    struct start starts[2];           /* of a thought, and of a text without one */
    const struct fm_tool_form *form;
    bool callable; /* `parser` takes the answer apart */
    struct fm_tool_parser parser;
    struct fm_pictures pictures;
    struct fm_prompt prompt;
    int64_t cached;                      /* tokens of it that needed no work */
    llama_token pending[FM_MODEL_CHUNK]; /* told to the host, not decoded yet */
    size_t pending_count;
    bool forced_more;      /* the next token may be a forced one: don't draw */
    struct fm_error error; /* of FM_REASON_ERROR */
};

/* ---- steps ---- */

/* fm_image_go_on. */
static bool go_on(void *argument) {
    struct generation *run = argument;
    size_t count = run->slot->count < run->prompt.count ? run->slot->count : run->prompt.count;
    return fm_kit_job_go_on(run->job, (int64_t)count, run->cached);
}

/* llama.cpp asks between the operations of a batch, which may take a minute: on this thread. */
static bool abort_asked(void *argument) {
    return !go_on(argument);
}

static enum fm_reason fail(struct generation *run, enum fm_code code, const char *detail) {
    (void)fm_fail(&run->error, code, "%s", detail);
    return FM_REASON_ERROR;
}

static enum fm_reason fail_no_memory(struct generation *run) {
    return fail(run, FM_INTERNAL, "out of memory");
}

/* What of the job the answer is at: the tool whose arguments it writes, where that is so. */
static void name_param(const struct generation *run, char *param, size_t size) {
    const struct fm_tool_parser *parser = &run->parser;
    enum fm_tool_state state = parser->state == FM_TOOL_IN_MARK ? parser->next : parser->state;
    if (parser->called && state == FM_TOOL_IN_ARGUMENTS) {
        snprintf(param, size, "tools[%td].parameters", parser->called - run->job->tools);
    } else {
        snprintf(param, size, "%s", run->guide.param);
    }
}

static enum fm_reason fail_grammar(struct generation *run, const char *reason) {
    char param[64];
    name_param(run, param, sizeof param);
    (void)fm_fail(&run->error, FM_INVALID_REQUEST, "the %s can't be kept to any further: %.*s", param,
                  (int)strcspn(reason, "\n"), reason);
    snprintf(run->error.param, sizeof run->error.param, "%s", param);
    return FM_REASON_ERROR;
}

static enum fm_reason reason_of(struct generation *run, enum fm_decode result) {
    switch (result) {
    case FM_DECODE_OK: return FM_REASON_NONE;
    case FM_DECODE_ABORTED: return FM_REASON_ABORTED;
    default: return fail(run, FM_INTERNAL, "the model could not be evaluated");
    }
}

/* The text has not begun: a thought may come, or has. */
static bool is_thinking(const struct generation *run) {
    return run->thought.state != FM_THOUGHT_OVER;
}

static bool is_inside(const struct generation *run) {
    return run->thought.state == FM_THOUGHT_BEGUN || run->thought.state == FM_THOUGHT_INSIDE;
}

/* A thought is free. */
static struct fm_grammar *grammar_in_force(const struct generation *run) {
    return is_thinking(run) ? NULL : run->guide.grammar;
}

static enum fm_reason decode_pending(struct generation *run) {
    size_t count = run->pending_count;
    run->pending_count = 0;
    return reason_of(run, fm_slot_append(run->slot, run->pending, count));
}

/* fm_kit_job_fit_fn: the prompt is replaced where the new one fits. FM_CANCELLED: an abort was asked for meanwhile. */
static enum fm_code fit_messages(void *state, size_t reserve, struct fm_error *error) {
    struct generation *run = state;
    struct fm_llama_model *model = run->slot->model;
    struct fm_prompt_thought thought = {.job = run->job};
    struct fm_tool_prompt prompt;
    struct fm_prompt made;
    if (fm_kit_job_aborted(run->job)) {
        return fm_fail(error, FM_CANCELLED, "the job was aborted");
    }
    enum fm_code code = fm_llama_model_thought_form(model, &thought.form, error);
    code = code ? code : fm_tool_prompt_init(&prompt, run->job, run->form, error);
    if (code != FM_OK) {
        return code;
    }
    fm_thought_ask(thought.form, run->job, &prompt.chat);
    code = fm_prompter_tokens(&model->prompter, &prompt.chat, &run->pictures, model->context_length + 1 - reserve,
                              &thought, &made, error);
    fm_tool_prompt_free(&prompt);
    if (code == FM_OK) {
        fm_prompt_free(&run->prompt);
        run->prompt = made;
        fm_thought_parser_init(&run->thought, thought.form, thought.state);
    }
    return code;
}

static enum fm_code make_prompt(struct generation *run) {
    const struct fm_kit_job *job = run->job;
    const struct fm_llama_model *model = run->slot->model;
    if (job->prompt) {
        return fm_prompter_plain_tokens(&model->prompter, job->prompt, job->prompt_len, job->suffix, job->suffix_len,
                                        model->context_length, &run->prompt.tokens, &run->prompt.count, &run->error);
    }
    return fm_kit_job_fit(run->job, model->context_length, fit_messages, run, &run->error);
}

/* A template that refuses calls where they are may take them in our form, whose messages are as any others. */
static enum fm_code read_prompt(struct generation *run) {
    enum fm_code code = make_prompt(run);
    if (code == FM_INVALID_REQUEST && run->form->native) {
        run->form = &fm_tool_form_own;
        run->error = (struct fm_error){.code = FM_OK};
        code = make_prompt(run);
    }
    return code;
}

/* ---- images ---- */

/* All of them, before it is known which turns stay: no more than a look at each. */
static enum fm_code look_at_images(struct generation *run) {
    const struct fm_kit_job *job = run->job;
    enum fm_code code = FM_OK;
    if (job->image_count == 0) {
        return FM_OK;
    }
    run->pictures.list = calloc(job->image_count, sizeof(struct fm_picture *));
    if (!run->pictures.list) {
        return fm_fail_no_memory(&run->error);
    }
    run->pictures.count = job->image_count;
    for (size_t i = 0; i < job->message_count; i++) {
        for (size_t k = 0; k < job->messages[i].image_count && code == FM_OK; k++) {
            if (fm_kit_job_aborted(run->job)) {
                return fm_fail(&run->error, FM_CANCELLED, "the job was aborted");
            }
            const struct fm_image *image = &job->messages[i].images[k];
            code = fm_picture_new(run->slot->model->vision, image, &run->pictures.list[image->index], &run->error);
        }
    }
    return code;
}

static void free_pictures(struct fm_pictures *pictures) {
    for (size_t i = 0; i < pictures->count; i++) {
        fm_picture_free(pictures->list[i]);
    }
    free(pictures->list);
}

static enum fm_code refuse_span(const struct generation *run, const struct fm_span *span, struct fm_error *error) {
    fm_fail(error, FM_INVALID_REQUEST, "the image takes %zu tokens at once, %u are the most with this model",
            span->count, run->slot->model->span_chunk);
    snprintf(error->param, sizeof error->param, "images[%zu]", span->image);
    return error->code;
}

/* Those that the prompt has: a damaged one is a bad request, so it is found out before the job is accepted. */
static enum fm_code check_images(struct generation *run) {
    const struct fm_llama_model *model = run->slot->model;
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < run->prompt.span_count && code == FM_OK; i++) {
        const struct fm_span *span = &run->prompt.spans[i];
        bool again = i > 0 && run->prompt.spans[i - 1].image == span->image;
        if (span->count > model->span_chunk && fm_vision_needs_whole_spans(model->vision)) {
            return refuse_span(run, span, &run->error);
        }
        code = again ? FM_OK : fm_picture_check(run->pictures.list[span->image], go_on, run, &run->error);
    }
    return code;
}

static enum fm_reason prefill_span(struct generation *run, const struct fm_span *span) {
    struct fm_picture *picture = run->pictures.list[span->image];
    float *states;
    enum fm_code code = fm_picture_encode(run->slot->model->vision, picture, span, go_on, run, &states, &run->error);
    if (code != FM_OK) {
        return code == FM_CANCELLED ? FM_REASON_ABORTED : FM_REASON_ERROR;
    }
    return reason_of(run, fm_slot_prefill_span(run->slot, &run->prompt, picture, span, states));
}

static enum fm_reason prefill(struct generation *run) {
    struct fm_slot *slot = run->slot;
    enum fm_reason reason = FM_REASON_NONE;
    fm_slot_reuse(slot, &run->prompt, fm_sampler_repeats(run->job));
    run->cached = (int64_t)slot->count;
    if (slot->count == run->prompt.count) {
        fm_kit_job_progress(run->job, run->cached, run->cached);
    }
    while (slot->count < run->prompt.count && !reason) {
        const struct fm_span *span = fm_slot_next_span(slot, &run->prompt);
        reason = span ? prefill_span(run, span) : reason_of(run, fm_slot_prefill(slot, &run->prompt));
        if (!reason) {
            fm_kit_job_progress(run->job, (int64_t)slot->count, run->cached);
        }
    }
    return reason;
}

/* ---- telling ---- */

static enum fm_reason tell_piece(struct generation *run, const struct fm_tool_piece *piece) {
    switch (piece->kind) {
    case FM_TOOL_CALL: return fm_kit_job_tool_call(run->job, piece->name);
    case FM_TOOL_PART_OF_ARGUMENTS: return fm_kit_job_text(run->job, piece->bytes, piece->len);
    case FM_TOOL_TEXT:
        return fm_guide_add(&run->guide, piece->bytes, piece->len) ? fm_kit_job_text(run->job, piece->bytes, piece->len)
                                                                   : FM_REASON_ERROR;
    case FM_TOOL_UNKNOWN: return fail(run, FM_INTERNAL, "the call names no tool");
    default: return FM_REASON_ERROR;
    }
}

/* One token's bytes, of text or calls or both: it counts once, after them. */
static enum fm_reason tell_pieces(struct generation *run, const char *bytes, size_t len) {
    enum fm_reason reason = FM_REASON_NONE;
    struct fm_tool_piece piece;
    while (!reason && fm_tool_parser_read(&run->parser, &bytes, &len, &piece)) {
        reason = tell_piece(run, &piece);
    }
    enum fm_reason counted = fm_kit_job_token(run->job, "", 0);
    return reason ? reason : counted;
}

static enum fm_reason tell_bytes(struct generation *run, const char *bytes, size_t len) {
    enum fm_reason reason = FM_REASON_ERROR;
    if (run->callable) {
        reason = tell_pieces(run, bytes, len);
    } else if (fm_guide_add(&run->guide, bytes, len)) {
        reason = fm_kit_job_token(run->job, bytes, len);
    }
    return reason == FM_REASON_ERROR && run->error.code == FM_OK ? fail_no_memory(run) : reason;
}

/* What fm_thought_read, or fm_thought_end, has told. After a thought a grammar begins, which had no part in this text.
 */
static enum fm_reason tell_thought(struct generation *run) {
    const struct fm_thought_parser *thought = &run->thought;
    enum fm_reason reason = FM_REASON_NONE;
    if (thought->thought.len > 0) {
        reason = fm_kit_job_reasoning(run->job, thought->thought.data, thought->thought.len);
    }
    if (!reason && thought->text.len > 0 && !run->guide.grammar) {
        fm_held_logprobs_tell(&run->held, run->job, thought->text.data, thought->text.len);
        reason = fm_kit_job_text(run->job, thought->text.data, thought->text.len);
    }
    return reason;
}

/* Holds the log probabilities of `token`, which the thought's parser has read, where they may be those of text. */
static bool hold_logprobs(struct generation *run, llama_token token, size_t len) {
    const struct fm_kit_job *job = run->job;
    bool text = run->thought.state == FM_THOUGHT_AT_START || run->thought.text.len > 0;
    return !job->logprobs || run->guide.grammar || !text ||
           fm_held_logprobs_add(&run->held, run->slot->model->prompter.vocab, fm_slot_logits(run->slot), token, len,
                                job->top_logprobs);
}

/* One token's bytes, where a thought may begin or has. */
static enum fm_reason tell_thinking(struct generation *run, llama_token token, const char *bytes, size_t len) {
    bool inside = is_inside(run);
    if (!fm_thought_read(&run->thought, bytes, len) || !hold_logprobs(run, token, len)) {
        return fail_no_memory(run);
    }
    enum fm_reason reason = inside || is_inside(run) ? fm_kit_job_reasoning(run->job, "", 0) : FM_REASON_NONE;
    reason = reason ? reason : tell_thought(run);
    enum fm_reason counted = fm_kit_job_token(run->job, "", 0);
    reason = reason ? reason : counted;
    if (run->thought.state != FM_THOUGHT_AT_START) {
        fm_held_logprobs_drop(&run->held);
    }
    if (!reason && inside && !is_inside(run)) {
        reason = fm_kit_job_text(run->job, "", 0); /* it is over with this token */
    }
    return reason == FM_REASON_ERROR ? fail_no_memory(run) : reason;
}

/* The answer is over: what could still have become a mark is thought, or text. */
static enum fm_reason tell_held_thought(struct generation *run, enum fm_reason reason) {
    bool told = !is_thinking(run) || (fm_thought_end(&run->thought) && tell_thought(run) != FM_REASON_ERROR);
    return told ? reason : fail_no_memory(run);
}

/* The answer is over: what could have become a call is text, where the model ended it. */
static enum fm_reason tell_held(struct generation *run, enum fm_reason reason) {
    struct fm_tool_piece piece;
    if (!run->callable || !fm_tool_parser_end(&run->parser, reason != FM_REASON_STOP, &piece)) {
        return reason;
    }
    return tell_piece(run, &piece) == FM_REASON_ERROR ? fail_no_memory(run) : reason;
}

/* Before `token` is told, whose text is `bytes`: the logits that it was drawn from, or forced against, are there still.
 */
static enum fm_reason tell_logprobs(struct generation *run, llama_token token, const char *bytes, size_t len) {
    struct fm_llama_logprobs logprobs;
    if (!run->job->logprobs) {
        return FM_REASON_NONE;
    }
    bool read = fm_llama_logprobs_read(&logprobs, run->slot->model->prompter.vocab, fm_slot_logits(run->slot), token,
                                       run->job->top_logprobs);
    logprobs.told.token.bytes = bytes;
    logprobs.told.token.len = len;
    fm_kit_job_logprobs(run->job, &logprobs.told);
    fm_llama_logprobs_free(&logprobs);
    return read ? FM_REASON_NONE : fail_no_memory(run);
}

static enum fm_reason tell_token(struct generation *run, llama_token token, const char *bytes, size_t len) {
    enum fm_reason reason = tell_logprobs(run, token, bytes, len);
    return reason ? reason : tell_bytes(run, bytes, len);
}

/* The bytes of `token` into run->piece, of a control token where `control` asks for them. */
static bool read_piece(struct generation *run, llama_token token, bool control) {
    const struct llama_vocab *vocab = run->slot->model->prompter.vocab;
    struct fm_buf *piece = &run->piece;
    fm_buf_reset(piece);
    int32_t len =
        fm_buf_reserve(piece, PIECE_SIZE) ? llama_token_to_piece(vocab, token, piece->data, PIECE_SIZE, 0, control) : 0;
    if (len < 0) {
        len =
            fm_buf_reserve(piece, (size_t)-len) ? llama_token_to_piece(vocab, token, piece->data, -len, 0, control) : 0;
    }
    piece->len = len > 0 ? (size_t)len : 0;
    return !piece->failed;
}

static bool is_in(const char *mark, const struct fm_buf *piece) {
    return memmem(mark, strlen(mark), piece->data, piece->len) != NULL;
}

static enum fm_reason send_thinking(struct generation *run, llama_token token) {
    const struct fm_thought_form *form = run->thought.form;
    if (!read_piece(run, token, true)) {
        return fail_no_memory(run);
    }
    bool control = llama_vocab_is_control(run->slot->model->prompter.vocab, token);
    if (control && !is_in(form->begin, &run->piece) && !is_in(form->end, &run->piece) &&
        !is_in(form->lead, &run->piece)) {
        run->piece.len = 0;
    }
    return tell_thinking(run, token, run->piece.data, run->piece.len);
}

/* The text of `token`, "" for a control token that is no part of a thought's mark or of a call. */
static enum fm_reason send_token(struct generation *run, llama_token token) {
    bool control = run->callable; /* a mark may have control tokens, and a grammar of tools has no others */
    if (is_thinking(run)) {
        return send_thinking(run, token);
    }
    if (run->callable && fm_tool_parser_read_trigger(&run->parser, token)) {
        return tell_bytes(run, "", 0);
    }
    return read_piece(run, token, control) ? tell_token(run, token, run->piece.data, run->piece.len)
                                           : fail_no_memory(run);
}

static enum fm_reason add_before_grammar(struct generation *run, llama_token token);

/* `token`, which was told, waits to be decoded. */
static enum fm_reason push(struct generation *run, llama_token token) {
    struct fm_slot *slot = run->slot;
    if (run->pending_count == slot->model->chunk) {
        enum fm_reason reason = decode_pending(run);
        if (reason) {
            return reason;
        }
    }
    fm_sampler_take(&run->sampler, token);
    run->pending[run->pending_count++] = token;
    /* then this token has the last place */
    return slot->count + run->pending_count >= slot->model->context_length ? FM_REASON_LENGTH : FM_REASON_NONE;
}

/* The text goes on with `token`. FM_REASON_NONE: it waits to be decoded. */
static enum fm_reason add(struct generation *run, llama_token token) {
    struct fm_grammar *grammar = grammar_in_force(run);
    if (run->guide.grammar && !grammar) {
        return add_before_grammar(run, token);
    }
    if (grammar && !fm_grammar_take(grammar, token)) {
        return fail_grammar(run, fm_grammar_reason(run->guide.grammar));
    }
    enum fm_reason reason = send_token(run, token);
    if (grammar && fm_grammar_complete(grammar) && (!reason || reason == FM_REASON_LENGTH)) {
        return FM_REASON_STOP;
    }
    enum fm_reason pushed = push(run, token);
    return reason ? reason : pushed;
}

/* ---- thoughts before a grammar ---- */

/* What must come next, though the model did not draw it. */
static enum fm_reason add_mark(struct generation *run, const char *mark) {
    llama_token *tokens;
    size_t count;
    enum fm_reason reason = FM_REASON_NONE;
    if (fm_prompter_mark_tokens(&run->slot->model->prompter, mark, &tokens, &count, &run->error) != FM_OK) {
        return FM_REASON_ERROR;
    }
    for (size_t i = 0; i < count && !reason; i++) {
        reason = send_token(run, tokens[i]);
        enum fm_reason pushed = push(run, tokens[i]);
        reason = reason ? reason : pushed;
    }
    free(tokens);
    return reason;
}

/* The thought is closed: the grammar begins, after what stands between a thought and a text. */
static enum fm_reason begin_grammar(struct generation *run) {
    const char *gap = run->thought.form->gap;
    size_t come = run->thought.space; /* white space, as most gaps are */
    run->thought.state = FM_THOUGHT_AFTER;
    enum fm_reason reason = come < strlen(gap) ? add_mark(run, gap + come) : FM_REASON_NONE;
    run->thought.state = FM_THOUGHT_OVER;
    return reason;
}

/* The model ends its turn in a thought; a text has to follow. */
static enum fm_reason close_thought(struct generation *run) {
    enum fm_reason reason = add_mark(run, run->thought.form->end);
    return reason ? reason : begin_grammar(run);
}

/* Tells `token` and puts in its place, where text is in it already, the tokens of what is before that. */
static enum fm_reason add_thought(struct generation *run, llama_token token) {
    llama_token *tokens = NULL;
    size_t count = 0;
    enum fm_reason reason = send_token(run, token);
    size_t text = run->thought.text.len;
    if (text == 0) {
        enum fm_reason pushed = push(run, token);
        return reason ? reason : pushed;
    }
    const struct fm_buf *piece = &run->piece;
    if (fm_prompter_text_tokens(&run->slot->model->prompter, piece->data, piece->len - text, &tokens, &count,
                                &run->error) != FM_OK) {
        return FM_REASON_ERROR;
    }
    for (size_t i = 0; i < count && !reason; i++) {
        reason = push(run, tokens[i]);
    }
    free(tokens);
    return reason;
}

/* The mark that the answer begins with; NULL: it is a text that the grammar has. */
static const struct start *find_start(struct generation *run, llama_token token) {
    for (size_t i = 0; i < sizeof run->starts / sizeof run->starts[0]; i++) {
        const struct start *start = &run->starts[i];
        bool sure = start->count == 1 || run->callable || !fm_grammar_allows(run->guide.grammar, token);
        if (start->count > 0 && start->first == token && sure) {
            return start;
        }
    }
    return NULL;
}

static enum fm_reason add_before_grammar(struct generation *run, llama_token token) {
    if (run->thought.state == FM_THOUGHT_AT_START) {
        const struct start *start = find_start(run, token);
        if (!start) {
            run->thought.state = FM_THOUGHT_OVER;
            return add(run, token);
        }
        return add_mark(run, start->mark);
    }
    enum fm_reason reason = add_thought(run, token);
    return reason || is_inside(run) ? reason : begin_grammar(run);
}

/* What may come first, though the grammar does not have it. */
static enum fm_reason find_starts(struct generation *run) {
    const struct fm_thought_form *form = run->thought.form;
    const char *const marks[] = {form->begin, form->lead};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        llama_token *tokens;
        struct start *start = &run->starts[i];
        start->mark = marks[i];
        if (!marks[i][0]) {
            continue;
        }
        if (fm_prompter_mark_tokens(&run->slot->model->prompter, marks[i], &tokens, &start->count, &run->error) !=
            FM_OK) {
            return FM_REASON_ERROR;
        }
        start->first = start->count ? tokens[0] : LLAMA_TOKEN_NULL;
        run->sampler.also[i] = start->first;
        free(tokens);
    }
    return FM_REASON_NONE;
}

/* Where a grammar waits for the end of a thought, or not even that. */
static enum fm_reason begin_thinking(struct generation *run) {
    if (!run->guide.grammar) {
        return FM_REASON_NONE;
    }
    if (run->thought.state == FM_THOUGHT_AFTER) {
        run->thought.state = FM_THOUGHT_OVER;
    }
    run->forced_more = !is_thinking(run);
    return run->thought.state == FM_THOUGHT_AT_START ? find_starts(run) : FM_REASON_NONE;
}

/* ---- the loop ---- */

/* A grammar may have an end of turn amid its text, as a token. A guide refuses those that it sees. */
static enum fm_reason end_turn(struct generation *run) {
    bool whole = !run->guide.grammar || fm_grammar_accepts(run->guide.grammar);
    return whole ? FM_REASON_STOP : fail_grammar(run, "the turn ends inside of it");
}

static enum fm_reason draw(struct generation *run) {
    const struct fm_llama_model *model = run->slot->model;
    run->sampler.grammar = is_inside(run) ? NULL : run->guide.grammar;
    llama_token token = fm_sampler_draw(&run->sampler, fm_slot_logits(run->slot));
    if (token == LLAMA_TOKEN_NULL) {
        return fail_grammar(run, fm_grammar_reason(run->guide.grammar));
    }
    if (llama_vocab_is_eog(model->prompter.vocab, token)) {
        return run->guide.grammar && is_inside(run) ? close_thought(run) : end_turn(run);
    }
    return add(run, token);
}

/*
 * What the grammar leaves no choice about needs no draw, and one decode for all of it; but where each token's logits
 * are wanted, a decode for each.
 */
static enum fm_reason add_forced(struct generation *run) {
    enum fm_reason reason = FM_REASON_NONE;
    size_t most = run->job->logprobs ? 1 : run->slot->model->chunk;
    run->forced_more = grammar_in_force(run) != NULL;
    while (run->forced_more && !reason && run->pending_count < most) {
        llama_token token = fm_grammar_forced(run->guide.grammar);
        run->forced_more = token != LLAMA_TOKEN_NULL;
        reason = run->forced_more ? add(run, token) : FM_REASON_NONE;
    }
    return reason;
}

static enum fm_reason step(struct generation *run) {
    if (fm_kit_job_aborted(run->job)) {
        return FM_REASON_ABORTED;
    }
    run->pending_count = 0;
    enum fm_reason reason = run->forced_more ? FM_REASON_NONE : draw(run);
    reason = reason ? reason : add_forced(run);
    return reason || run->pending_count == 0 ? reason : decode_pending(run);
}

static enum fm_reason generate(struct generation *run) {
    enum fm_reason reason = begin_thinking(run);
    reason = reason ? reason : fm_kit_job_accept(run->job, (int64_t)run->prompt.count);
    reason = reason ? reason : prefill(run);
    while (!reason) {
        reason = step(run);
    }
    return reason;
}

/* What the job asks for, before there is an answer. */
static enum fm_reason prepare(struct generation *run) {
    struct fm_llama_model *model = run->slot->model;
    struct fm_guide *guide = &run->guide;
    const struct fm_prompter *prompter = &model->prompter;
    const struct fm_vocabulary vocabulary = fm_prompter_vocabulary(prompter);
    enum fm_code code = fm_llama_model_tool_form(model, run->job, &run->form, &run->error);
    code = code ? code : look_at_images(run);
    code = code ? code : read_prompt(run);
    code = code ? code : check_images(run);
    code = code ? code : fm_guide_init(guide, run->job, run->form, &vocabulary, &model->grammar_vocab, &run->error);
    code = code ? code : fm_sampler_init(&run->sampler, run->job, guide->grammar, prompter->vocab, &run->error);
    if (code == FM_OK) {
        fm_sampler_take_prompt(&run->sampler, run->prompt.tokens, run->prompt.count);
    }
    run->callable = fm_tools_callable(run->job);
    if (run->callable) {
        fm_tool_parser_init(&run->parser, run->job, run->form);
    }
    return code == FM_OK ? FM_REASON_NONE : code == FM_CANCELLED ? FM_REASON_ABORTED : FM_REASON_ERROR;
}

void fm_generate(struct fm_slot *slot, struct fm_kit_job *job) {
    struct generation run = {.slot = slot, .job = job, .thought = {.state = FM_THOUGHT_OVER}};
    fm_buf_init(&run.piece, PIECE_MAX);
    int64_t start = fm_now_ms();
    fm_llama_model_watch(slot->model, abort_asked, &run);
    enum fm_reason reason = prepare(&run);
    reason = reason ? reason : generate(&run);
    fm_llama_model_watch(slot->model, NULL, NULL);
    reason = tell_held(&run, tell_held_thought(&run, reason));
    bool whole = reason == FM_REASON_STOP && !run.parser.called && !fm_kit_job_cut(job);
    bool stuck = whole && !fm_guide_check(&run.guide, &job->schema_error);
    fm_sampler_free(&run.sampler);
    fm_guide_free(&run.guide);
    fm_thought_parser_free(&run.thought);
    fm_held_logprobs_drop(&run.held);
    fm_tool_parser_free(&run.parser);
    fm_buf_free(&run.piece);
    fm_log(FM_LOG_INFO, "job %lld: %zu tokens in, %lld out, %lld ms", (long long)job->id, run.prompt.count,
           (long long)job->output_tokens, (long long)(fm_now_ms() - start));
    fm_prompt_free(&run.prompt);
    free_pictures(&run.pictures);
    fm_kit_job_finish(job, reason, &run.error);
    if (stuck) {
        fm_log(FM_LOG_WARN, "the check of a text by its schema does not end: the engine is ended for it");
        _exit(FM_EXIT_NO_MEMORY); /* it takes memory as long as it lasts, and can't be stopped otherwise */
    }
}
