/* One job's answer, token by token: sequence.h. A thought comes first; the grammar begins where the thought ends. */
#include "engine/llama/sequence.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/llama/checkpoints.h"
#include "engine/llama/tokens.h"
#include "engine/llama/vocabulary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPACES_MAX 16 /* tokens of white space before a grammar */

/* ---- faults ---- */

static enum fm_reason fail_grammar(struct fm_sequence *sequence, const char *reason) {
    struct fm_error *error = &sequence->answer.error;
    char param[64];
    fm_llama_answer_param(&sequence->answer, param, sizeof param);
    (void)fm_fail(error, FM_INVALID_REQUEST, "the answer can't follow the %s any further: %s", param, reason);
    snprintf(error->param, sizeof error->param, "%s", param);
    return FM_REASON_ERROR;
}

void fm_sequence_stop(struct fm_sequence *sequence, enum fm_reason reason, const char *detail) {
    if (sequence->reason) {
        return;
    }
    sequence->reason =
        reason == FM_REASON_ERROR ? fm_llama_answer_fail(&sequence->answer, FM_INTERNAL, detail) : reason;
}

/* ---- adding tokens ---- */

/* A thought follows no grammar. */
static struct fm_grammar *grammar_in_force(const struct fm_sequence *sequence) {
    return fm_llama_answer_is_thinking(&sequence->answer) ? NULL : sequence->answer.guide.grammar;
}

/* `token` was passed on to the job, and must be computed. */
static enum fm_reason push(struct fm_sequence *sequence, llama_token token) {
    size_t context = sequence->model->context_length;
    fm_sampler_take(&sequence->sampler, token);
    if (sequence->count < context) {
        sequence->tokens[sequence->count++] = token;
    }
    return sequence->count >= context ? FM_REASON_LENGTH : FM_REASON_NONE; /* then this token takes the last place */
}

static enum fm_reason add_before_grammar(struct fm_sequence *sequence, llama_token token);

/* Adds `token` to the text. FM_REASON_NONE: it must be computed. */
static enum fm_reason add_token(struct fm_sequence *sequence, llama_token token) {
    struct fm_grammar *grammar = grammar_in_force(sequence);
    if (sequence->answer.guide.grammar && !grammar) {
        return add_before_grammar(sequence, token);
    }
    if (grammar && !fm_llama_answer_drops(&sequence->answer, token) && !fm_grammar_take(grammar, token)) {
        return fail_grammar(sequence, fm_grammar_reason(grammar));
    }
    enum fm_reason reason = fm_llama_answer_add(&sequence->answer, token);
    if (grammar && fm_grammar_complete(grammar) && (!reason || reason == FM_REASON_LENGTH)) {
        return FM_REASON_STOP;
    }
    enum fm_reason pushed = push(sequence, token);
    return reason ? reason : pushed;
}

/* ---- thoughts before a grammar ---- */

/* Adds a mark that must come next, although the model did not draw it. */
static enum fm_reason add_mark(struct fm_sequence *sequence, const char *mark) {
    llama_token *tokens;
    size_t count;
    enum fm_reason reason = FM_REASON_NONE;
    if (fm_prompter_mark_tokens(&sequence->model->prompter, mark, &tokens, &count, &sequence->answer.error) != FM_OK) {
        return FM_REASON_ERROR;
    }
    for (size_t i = 0; i < count && !reason; i++) {
        reason = fm_llama_answer_add(&sequence->answer, tokens[i]);
        enum fm_reason pushed = push(sequence, tokens[i]);
        reason = reason ? reason : pushed;
    }
    free(tokens);
    return reason;
}

/* ---- what comes before a grammar ---- */

/* How many of the bytes that have come may belong to a mark. */
static size_t come_len(const struct fm_opening *opening) {
    return opening->len - fm_tool_space(opening->bytes, opening->len);
}

/*
 * The tokens with which `start` may continue: the tokenizer's token, and if that is text, all tokens with the same
 * text. A model may split a text differently, mainly at the end of a line.
 */
static size_t read_next(const struct fm_sequence *sequence, const struct fm_start *start, llama_token *next,
                        size_t room) {
    const struct fm_opening *opening = &sequence->opening;
    const struct llama_vocab *vocab = sequence->answer.vocab;
    const size_t come = come_len(opening);
    if (room == 0 || !start->possible || come >= start->len) {
        return 0;
    }
    bool same = start->same && opening->come < start->count;
    if (same) {
        next[0] = start->tokens[opening->come];
    }
    bool alone = same && fm_token_is_special(vocab, next[0]);
    return same + (alone ? 0 : fm_tokens_beginning(vocab, start->text + come, start->len - come, next + same, room - same));
}

/* Allows tokens that begin a mark, although the grammar does not have them. */
static void allow_starts(struct fm_sequence *sequence, bool any) {
    struct fm_opening *opening = &sequence->opening;
    llama_token *also = sequence->sampler.also;
    size_t count = 0;
    for (size_t i = 0; i < FM_THOUGHT_MARKS && any; i++) {
        count += read_next(sequence, &opening->starts[i], also + count, FM_SAMPLER_ALSO - count);
    }
    while (count < FM_SAMPLER_ALSO) {
        also[count++] = LLAMA_TOKEN_NULL;
    }
    sequence->sampler.also_alike = opening->come > 0;
    sequence->sampler.also_space = any && opening->count == 0 && opening->spaces < SPACES_MAX;
}

/*
 * From now on a thought or the grammar may begin. After a thought this is only needed if the grammar does not include
 * thoughts.
 */
static void begin_opening(struct fm_sequence *sequence) {
    struct fm_opening *opening = &sequence->opening;
    const struct fm_thought_parser *thought = &sequence->answer.thought;
    bool any = thought->state == FM_THOUGHT_AT_START || thought->form->lead[0];
    const struct fm_kit_job *job = sequence->job;
    const bool no_text = job->tool_mode == FM_TOOLS_REQUIRED && fm_tools_callable(job) && sequence->request.form->native;
    for (size_t i = 0; i < FM_THOUGHT_MARKS; i++) {
        bool wanted = i == FM_THOUGHT_BEGIN ? job->effort != FM_EFFORT_NONE : i < FM_THOUGHT_MARKS_INSIDE || !no_text;
        opening->starts[i].possible = any && wanted && opening->starts[i].count > 0;
        opening->starts[i].same = true;
    }
    opening->count = opening->len = opening->come = 0;
    opening->sure = false;
    allow_starts(sequence, fm_llama_answer_is_thinking(&sequence->answer));
}

/* Passes on the held tokens: they belong to a mark, or to the grammar's text. */
static enum fm_reason settle_opening(struct fm_sequence *sequence, bool mark) {
    struct fm_opening *opening = &sequence->opening;
    struct fm_llama_answer *answer = &sequence->answer;
    struct fm_grammar *grammar = answer->guide.grammar;
    enum fm_reason reason = FM_REASON_NONE;
    if (!mark) {
        answer->thought.state = FM_THOUGHT_OVER;
        fm_held_logprobs_tell(&answer->held, sequence->job, opening->bytes, opening->len);
    } else if (!fm_grammar_restart(grammar)) {
        return fail_grammar(sequence, fm_grammar_reason(grammar));
    }
    fm_held_logprobs_drop(&answer->held);
    answer->replays = true;
    for (size_t i = 0; i < opening->count && !reason; i++) {
        reason = fm_llama_answer_add(answer, opening->tokens[i]);
    }
    answer->replays = false;
    begin_opening(sequence);
    bool whole = !mark && fm_grammar_complete(grammar) && (!reason || reason == FM_REASON_LENGTH);
    return whole ? FM_REASON_STOP : reason;
}

static bool is_space(const struct fm_buf *piece) {
    return piece->len > 0 && fm_tool_space(piece->data, piece->len) == piece->len;
}

/* Holds one more token. */
static void hold(struct fm_opening *opening, llama_token token, const struct fm_buf *piece) {
    size_t room = sizeof opening->bytes - opening->len;
    size_t len = piece->len < room ? piece->len : room;
    memcpy(opening->bytes + opening->len, piece->data, len);
    opening->len += len;
    opening->tokens[opening->count++] = token;
    const size_t come = come_len(opening);
    if (come > 0 || opening->come > 0) {
        for (size_t i = 0; i < FM_THOUGHT_MARKS; i++) {
            struct fm_start *start = &opening->starts[i];
            start->same &= opening->come < start->count && start->tokens[opening->come] == token;
            start->possible &= come < start->len && memcmp(start->text, opening->bytes + opening->len - come, come) == 0;
        }
        opening->come++;
    }
}

static bool hold_logprobs(struct fm_sequence *sequence, llama_token token) {
    struct fm_llama_answer *answer = &sequence->answer;
    return !sequence->job->logprobs ||
           fm_held_logprobs_add(&answer->held, answer->vocab, answer->logits, token, answer->piece.len,
                                sequence->job->top_logprobs);
}

/* Drops white space that is not text. */
static enum fm_reason drop_space(struct fm_sequence *sequence, llama_token token) {
    sequence->opening.spaces++;
    allow_starts(sequence, true);
    enum fm_reason reason = fm_kit_job_token(sequence->job, "", 0);
    enum fm_reason pushed = push(sequence, token);
    return reason ? reason : pushed;
}

/* Adds `token` while it is not decided how the answer begins. */
static enum fm_reason add_opening(struct fm_sequence *sequence, llama_token token) {
    struct fm_opening *opening = &sequence->opening;
    struct fm_llama_answer *answer = &sequence->answer;
    struct fm_grammar *grammar = answer->guide.grammar;
    bool allowed = !opening->sure && fm_grammar_allows(grammar, token);
    if (!fm_llama_answer_read(answer, token)) {
        return fm_llama_answer_fail(answer, FM_INTERNAL, "out of memory");
    }
    if (opening->count == 0 && is_space(&answer->piece) && (!allowed || answer->thought.state == FM_THOUGHT_AFTER)) {
        return drop_space(sequence, token);
    }
    if (allowed && !fm_grammar_take(grammar, token)) {
        return fail_grammar(sequence, fm_grammar_reason(grammar));
    }
    if (!hold_logprobs(sequence, token)) {
        return fm_llama_answer_fail(answer, FM_INTERNAL, "out of memory");
    }
    opening->sure |= !allowed;
    hold(opening, token, &answer->piece);
    enum fm_thought_start start = fm_thought_match_start(answer->thought.form, opening->bytes, opening->len);
    enum fm_reason pushed = push(sequence, token);
    bool over = pushed || opening->count == FM_THOUGHT_HELD_MAX || (!opening->sure && fm_grammar_complete(grammar));
    enum fm_reason reason = FM_REASON_NONE;
    if (start != FM_THOUGHT_MAY_START || (over && !opening->sure)) {
        reason = settle_opening(sequence, start == FM_THOUGHT_START);
    } else {
        allow_starts(sequence, true);
    }
    return reason ? reason : pushed;
}

/*
 * Picks the most likely token that continues a mark: the grammar does not allow the bytes so far, so they must become a
 * mark.
 */
static llama_token draw_start(const struct fm_sequence *sequence) {
    llama_token best = LLAMA_TOKEN_NULL;
    for (size_t i = 0; i < FM_SAMPLER_ALSO; i++) {
        llama_token token = sequence->sampler.also[i];
        bool better = best == LLAMA_TOKEN_NULL ||
                      (token != LLAMA_TOKEN_NULL && sequence->answer.logits[token] > sequence->answer.logits[best]);
        best = better ? token : best;
    }
    return best;
}

/* The thought is closed: adds the gap between a thought and a text, and begins the grammar. */
static enum fm_reason begin_grammar(struct fm_sequence *sequence) {
    struct fm_thought_parser *thought = &sequence->answer.thought;
    const char *gap = thought->form->gap;
    size_t come = thought->space; /* most gaps are white space */
    bool free_text = sequence->job->format.kind == FM_FORMAT_TEXT;
    bool more = thought->form->lead[0] || free_text; /* another thought may follow, or the mark of the text */
    enum fm_reason reason = FM_REASON_NONE;
    if (thought->state == FM_THOUGHT_AFTER || thought->text.len > 0) { /* otherwise the text's own mark has come */
        thought->state = FM_THOUGHT_AFTER;
        reason = come < strlen(gap) ? add_mark(sequence, gap + come) : FM_REASON_NONE;
        thought->state = more ? FM_THOUGHT_AFTER : FM_THOUGHT_OVER;
    }
    thought->space = 0;
    begin_opening(sequence);
    return reason;
}

/* The model ended its turn inside a thought, but a text has to follow: closes the thought. */
static enum fm_reason close_thought(struct fm_sequence *sequence) {
    enum fm_reason reason = add_mark(sequence, sequence->answer.thought.form->end);
    return reason ? reason : begin_grammar(sequence);
}

/*
 * Adds `token` of a thought. If the token also has the beginning of the text, only the tokens of the part before the
 * text are kept.
 */
static enum fm_reason add_thought(struct fm_sequence *sequence, llama_token token) {
    llama_token *tokens = NULL;
    size_t count = 0;
    enum fm_reason reason = fm_llama_answer_add(&sequence->answer, token);
    size_t text = sequence->answer.thought.text.len;
    if (text == 0) {
        enum fm_reason pushed = push(sequence, token);
        return reason ? reason : pushed;
    }
    const struct fm_buf *piece = &sequence->answer.piece;
    if (fm_prompter_text_tokens(&sequence->model->prompter, piece->data, piece->len - text, &tokens, &count,
                                &sequence->answer.error) != FM_OK) {
        return FM_REASON_ERROR;
    }
    for (size_t i = 0; i < count && !reason; i++) {
        reason = push(sequence, tokens[i]);
    }
    free(tokens);
    return reason;
}

static enum fm_reason add_before_grammar(struct fm_sequence *sequence, llama_token token) {
    if (!fm_llama_answer_is_inside(&sequence->answer)) {
        return add_opening(sequence, token);
    }
    enum fm_reason reason = add_thought(sequence, token);
    return reason || fm_llama_answer_is_inside(&sequence->answer) ? reason : begin_grammar(sequence);
}

static enum fm_reason find_start(struct fm_sequence *sequence, const struct fm_thought_mark *mark,
                                 struct fm_start *start) {
    char text[FM_THOUGHT_MARK_MAX];
    llama_token *tokens;
    snprintf(text, sizeof text, "%.*s", (int)mark->len, mark->text);
    snprintf(start->text, sizeof start->text, "%s%s", text + mark->space, mark->next == FM_THOUGHT_OVER ? "" : "\n");
    start->len = strlen(start->text);
    if (fm_prompter_mark_tokens(&sequence->model->prompter, text, &tokens, &start->count, &sequence->answer.error) !=
        FM_OK) {
        return FM_REASON_ERROR;
    }
    start->count = start->count < FM_THOUGHT_MARK_MAX ? start->count : 0;
    memcpy(start->tokens, tokens, start->count * sizeof *tokens);
    free(tokens);
    return FM_REASON_NONE;
}

static enum fm_reason find_starts(struct fm_sequence *sequence) {
    struct fm_thought_mark marks[FM_THOUGHT_MARKS];
    enum fm_reason reason = FM_REASON_NONE;
    fm_thought_marks(sequence->answer.thought.form, marks);
    for (size_t i = 0; i < FM_THOUGHT_MARKS && !reason; i++) {
        reason = marks[i].len ? find_start(sequence, &marks[i], &sequence->opening.starts[i]) : reason;
    }
    begin_opening(sequence);
    return reason;
}

/* If there is a grammar: prepares for a thought before it, or for none. */
static enum fm_reason begin_thinking(struct fm_sequence *sequence) {
    struct fm_llama_answer *answer = &sequence->answer;
    if (!answer->guide.grammar) {
        return FM_REASON_NONE;
    }
    if (answer->thought.state == FM_THOUGHT_AFTER && !answer->thought.form->lead[0]) {
        answer->thought.state = FM_THOUGHT_OVER;
    }
    sequence->forced_more = !fm_llama_answer_is_thinking(answer);
    return fm_llama_answer_is_thinking(answer) ? find_starts(sequence) : FM_REASON_NONE;
}

/* ---- drawing ---- */

/* A token that ends a text also ends the turn. */
static bool ends_turn(const struct fm_sequence *sequence, llama_token token) {
    const struct fm_llama_answer *answer = &sequence->answer;
    return llama_vocab_is_eog(answer->vocab, token) ||
           (token == sequence->model->prompter.text_end && !sequence->job->prompt && !fm_llama_answer_is_thinking(answer));
}

/*
 * A grammar may have an end of turn inside its text, as a token. A guide refuses such grammars, as far as it notices.
 */
static enum fm_reason end_turn(struct fm_sequence *sequence) {
    struct fm_grammar *grammar = sequence->answer.guide.grammar;
    bool whole = !grammar || fm_grammar_accepts(grammar);
    enum fm_reason reason = sequence->opening.count > 0 ? settle_opening(sequence, false) : FM_REASON_NONE;
    if (reason) {
        return reason;
    }
    return whole ? FM_REASON_STOP : fail_grammar(sequence, "the turn ends inside of it");
}

/* What ends the turn if the model wants prose, which can't follow a call; LLAMA_TOKEN_NULL: no call came. */
static llama_token end_after_call(const struct fm_sequence *sequence) {
    const struct fm_llama_answer *answer = &sequence->answer;
    bool called = answer->callable && answer->parser.called && !fm_kit_job_asks(sequence->job, FM_PARAM_IGNORE_EOS);
    return called ? fm_prompter_vocabulary(&sequence->model->prompter).end_of_turn : LLAMA_TOKEN_NULL;
}

static enum fm_reason draw(struct fm_sequence *sequence) {
    struct fm_llama_answer *answer = &sequence->answer;
    bool inside = fm_llama_answer_is_inside(answer);
    sequence->sampler.grammar = inside ? NULL : answer->guide.grammar;
    sequence->sampler.end = end_after_call(sequence);
    llama_token token =
        sequence->opening.sure ? draw_start(sequence) : fm_sampler_draw(&sequence->sampler, answer->logits);
    if (token == LLAMA_TOKEN_NULL) {
        return fail_grammar(sequence, fm_grammar_reason(answer->guide.grammar));
    }
    if (ends_turn(sequence, token)) {
        return answer->guide.grammar && inside ? close_thought(sequence) : end_turn(sequence);
    }
    return add_token(sequence, token);
}

static size_t computed(const struct fm_sequence *sequence) {
    return sequence->cached ? sequence->cached->count : 0;
}

/*
 * Tokens that the grammar forces are not drawn, and are computed in one batch. If the logits of each token are wanted,
 * each token has its own batch.
 */
static enum fm_reason add_forced(struct fm_sequence *sequence) {
    enum fm_reason reason = FM_REASON_NONE;
    size_t most = sequence->job->logprobs ? 1 : sequence->model->chunk;
    sequence->forced_more = grammar_in_force(sequence) != NULL;
    while (sequence->forced_more && !reason && sequence->count - computed(sequence) < most) {
        llama_token token = fm_grammar_forced(sequence->answer.guide.grammar);
        sequence->forced_more = token != LLAMA_TOKEN_NULL;
        reason = sequence->forced_more ? add_token(sequence, token) : FM_REASON_NONE;
    }
    return reason;
}

/* Draws one token, or adds forced ones. */
static enum fm_reason step(struct fm_sequence *sequence) {
    if (fm_kit_job_aborted(sequence->job)) {
        return FM_REASON_ABORTED;
    }
    if (sequence->job->prefill_only) {
        return FM_REASON_LENGTH;
    }
    enum fm_reason reason = sequence->forced_more ? FM_REASON_NONE : draw(sequence);
    return reason ? reason : add_forced(sequence);
}

/* Call it when all tokens are computed: `logits` are the logits after the last token. */
static void go_on_with(struct fm_sequence *sequence, const float *logits) {
    sequence->answer.logits = logits;
    while (!sequence->reason && sequence->count == computed(sequence)) {
        sequence->reason = step(sequence);
    }
    sequence->answer.logits = NULL;
}

/* ---- the beginning ---- */

/* The reason to end a job for the error `code`. */
static enum fm_reason reason_of(enum fm_code code) {
    return code == FM_OK ? FM_REASON_NONE : code == FM_CANCELLED ? FM_REASON_ABORTED : FM_REASON_ERROR;
}

static enum fm_code read_job(struct fm_sequence *sequence, fm_image_go_on *go_on, void *state) {
    struct fm_llama_model *model = sequence->model;
    struct fm_llama_answer *answer = &sequence->answer;
    struct fm_llama_request *request = &sequence->request;
    struct fm_kit_job *job = sequence->job;
    struct fm_error *error = &answer->error;
    const struct fm_vocabulary vocabulary = fm_prompter_vocabulary(&model->prompter);
    enum fm_code code = fm_llama_request_read(request, model, job, go_on, state, error);
    if (code == FM_OK && job->questions) {
        code = fm_decide_begin(request, &sequence->decide, error);
    }
    if (code == FM_OK && request->thought_form) {
        fm_llama_answer_think(answer, request->thought_form, request->thought_state);
    }
    return code ? code : fm_guide_init(&answer->guide, job, request->form, &vocabulary, &model->grammar_vocab, error);
}

/* Called when the grammar, if there is one, is compiled. */
static enum fm_code prepare_sequence(struct fm_sequence *sequence) {
    struct fm_llama_model *model = sequence->model;
    struct fm_llama_answer *answer = &sequence->answer;
    struct fm_llama_request *request = &sequence->request;
    struct fm_kit_job *job = sequence->job;
    struct fm_error *error = &answer->error;
    enum fm_code code = fm_sampler_init(&sequence->sampler, job, answer->guide.grammar, answer->vocab, error);
    sequence->tokens = calloc(model->context_length, sizeof *sequence->tokens);
    if (code == FM_OK && !sequence->tokens) {
        code = fm_fail_no_memory(error);
    }
    if (code == FM_OK && sequence->decide) {
        code = fm_decide_next(sequence->decide, sequence->tokens, &sequence->count, error);
    }
    if (code == FM_OK && model->drafts != FM_DRAFTS_OFF && request->prompt.span_count == 0 && !job->questions) {
        code = fm_lookup_init(&sequence->lookup, model->context_length, error);
    }
    if (code != FM_OK) {
        return code;
    }
    if (!sequence->decide) {
        memcpy(sequence->tokens, request->prompt.tokens, request->prompt.count * sizeof *sequence->tokens);
        sequence->count = request->prompt.count;
    }
    fm_sampler_take_prompt(&sequence->sampler, sequence->tokens, sequence->count);
    answer->callable = fm_tools_callable(job);
    if (answer->callable) {
        fm_tool_parser_init(&answer->parser, job, request->form);
    }
    return FM_OK;
}

bool fm_sequence_compiles(const struct fm_sequence *sequence) {
    return sequence->job && !sequence->reason && fm_guide_compiles(&sequence->answer.guide);
}

void fm_sequence_try_to_start(struct fm_sequence *sequence) {
    struct fm_llama_answer *answer = &sequence->answer;
    enum fm_code code = fm_guide_wait(&answer->guide, 0, &answer->error);
    if (code == FM_OK && fm_guide_compiles(&answer->guide)) {
        return;
    }
    enum fm_reason reason = reason_of(code ? code : prepare_sequence(sequence));
    reason = reason ? reason : begin_thinking(sequence);
    int64_t input = sequence->decide ? FM_UNCOUNTED : (int64_t)sequence->request.prompt.count;
    sequence->reason = reason ? reason : fm_kit_job_accept(sequence->job, input);
}

void fm_sequence_begin(struct fm_sequence *sequence, struct fm_llama_model *model, struct fm_kit_job *job,
                       fm_image_go_on *go_on, void *state) {
    *sequence = (struct fm_sequence){.model = model, .job = job, .output = -1, .start_ms = fm_now_ms()};
    fm_llama_answer_init(&sequence->answer, job, model->prompter.vocab);
    sequence->reason = reason_of(read_job(sequence, go_on, state));
    if (!sequence->reason) {
        fm_sequence_try_to_start(sequence);
    }
}

struct fm_prompt fm_sequence_prompt(const struct fm_sequence *sequence) {
    return (struct fm_prompt){.tokens = sequence->tokens,
                              .count = sequence->count,
                              .spans = sequence->request.prompt.spans,
                              .span_count = sequence->request.prompt.span_count};
}

void fm_sequence_place(struct fm_sequence *sequence, struct fm_cache *cache, struct fm_saved *saved, bool exact) {
    const struct fm_prompt whole = fm_sequence_prompt(sequence);
    bool first = sequence->processed == 0;
    sequence->exact = exact;
    sequence->cached = fm_cache_begin(cache, &whole, exact);
    if (!exact) {
        fm_saved_restore(saved, sequence->cached, &whole);
    }
    if (first) {
        sequence->reused = (int64_t)sequence->cached->count;
        sequence->processed = sequence->reused;
    }
}

void fm_sequence_yield_place(struct fm_sequence *sequence) {
    fm_cached_cut(sequence->cached, 0);
    fm_cache_end(sequence->cached);
    sequence->cached = NULL;
}

/* ---- batches ---- */

bool fm_sequence_prefills(const struct fm_sequence *sequence) {
    return sequence->count - computed(sequence) > 1;
}

/* Only the prompt has spans: the number of spans in the memory says which span comes next. */
const struct fm_span *fm_sequence_span(const struct fm_sequence *sequence) {
    const struct fm_prompt *prompt = &sequence->request.prompt;
    size_t next = sequence->cached->span_count;
    return next < prompt->span_count && prompt->spans[next].at == sequence->cached->count ? &prompt->spans[next] : NULL;
}

/* How many tokens come before the next span, or the end. */
static size_t tokens_left(const struct fm_sequence *sequence) {
    const struct fm_prompt *prompt = &sequence->request.prompt;
    size_t next = sequence->cached->span_count;
    return (next < prompt->span_count ? prompt->spans[next].at : sequence->count) - sequence->cached->count;
}

size_t fm_sequence_fill(struct fm_sequence *sequence, struct fm_batch *batch, size_t most) {
    const struct fm_cached *cached = sequence->cached;
    size_t from = cached->count;
    size_t count = tokens_left(sequence);
    size_t chunk = sequence->model->chunk - from % sequence->model->chunk;
    most = sequence->exact && chunk < most ? chunk : most;
    count = count < most ? count : most;
    count = sequence->decide ? fm_decide_limit(sequence->decide, from, count) : count;
    count = fm_checkpoints_limit(cached, count);
    llama_pos position = fm_cached_position(cached, from);
    bool wanted = from + count == sequence->count;
    sequence->output = -1;
    sequence->drafted = 0;
    sequence->guess = fm_guess_none();
    sequence->filled = count;
    for (size_t i = 0; i < count; i++) {
        bool logits = sequence->decide ? fm_decide_wants(sequence->decide, from + i) : wanted && i + 1 == count;
        int32_t index = fm_batch_add(batch, cached->id, sequence->tokens[from + i], position + (llama_pos)i, logits);
        sequence->output = logits ? index : -1;
    }
    return count;
}

/* Reports how much of the prompt is computed. */
static void tell_progress(struct fm_sequence *sequence) {
    int64_t prompt = (int64_t)sequence->request.prompt.count;
    int64_t count = (int64_t)computed(sequence);
    if (sequence->processed < prompt && count > sequence->processed) {
        sequence->processed = count < prompt ? count : prompt;
        fm_kit_job_progress(sequence->job, sequence->processed, sequence->reused);
    }
}

/* Draws the next tokens as long as they are the drafted tokens. The batch has the logits after each of them. */
static void take_drafts(struct fm_sequence *sequence, const struct fm_batch *batch) {
    struct fm_cached *cached = sequence->cached;
    size_t count = fm_sequence_accepted(sequence, 0);
    sequence->accepted = 0;
    while (count > 0) {
        fm_cached_add(cached, sequence->tokens + cached->count, count, false);
        sequence->accepted += count;
        count = 0;
        if (!sequence->reason && cached->count == sequence->count) {
            go_on_with(sequence, fm_batch_logits(batch, sequence->output + (int32_t)sequence->accepted));
            count = fm_sequence_accepted(sequence, sequence->accepted);
        }
    }
    if (sequence->accepted < sequence->drafted) {
        fm_cached_cut(cached, cached->count);
    }
    sequence->drafted_tokens += (int64_t)sequence->drafted;
    sequence->accepted_tokens += (int64_t)sequence->accepted;
}

/* Takes the logits of a batch whose tokens begin at `from`, and goes on with the next choice or question. */
static void decide(struct fm_sequence *sequence, const struct fm_batch *batch, size_t from) {
    struct fm_decide *decide = sequence->decide;
    const size_t end = sequence->cached->count;
    for (size_t i = from; i < end; i++) {
        if (fm_decide_wants(decide, i)) {
            const float *logits = fm_batch_logits(batch, sequence->output - (int32_t)(end - 1 - i));
            fm_decide_take(decide, sequence->tokens, sequence->count, i, logits);
        }
    }
    fm_kit_job_progress(sequence->job, decide->input, sequence->reused);
    if (fm_kit_job_aborted(sequence->job)) {
        sequence->reason = FM_REASON_ABORTED;
    } else if (end == sequence->count) {
        sequence->reason =
            fm_decide_step(decide, sequence->cached, sequence->tokens, &sequence->count, &sequence->answer.error);
    }
}

void fm_sequence_take(struct fm_sequence *sequence, const struct fm_batch *batch, bool alone) {
    struct fm_cached *cached = sequence->cached;
    size_t from = cached->count;
    size_t end = from + sequence->filled;
    bool before_span = sequence->filled == tokens_left(sequence) && end < sequence->count;
    bool border = end % sequence->model->chunk == 0 || before_span;
    fm_cached_add(cached, sequence->tokens + cached->count, sequence->filled, sequence->exact && alone && border);
    sequence->filled = 0;
    fm_checkpoints_make(cached);
    if (sequence->decide) {
        decide(sequence, batch, from);
        return;
    }
    tell_progress(sequence);
    if (sequence->output >= 0) {
        go_on_with(sequence, fm_batch_logits(batch, sequence->output));
        take_drafts(sequence, batch);
    }
}

void fm_sequence_drop(struct fm_sequence *sequence) {
    sequence->filled = 0;
    fm_cached_cut(sequence->cached, sequence->cached->count);
}

enum fm_decode fm_sequence_see(struct fm_sequence *sequence, const struct fm_batch *batch, fm_image_go_on *go_on,
                               void *state) {
    struct fm_cached *cached = sequence->cached;
    const struct fm_span *span = fm_sequence_span(sequence);
    struct fm_picture *picture = sequence->request.pictures.list[span->image];
    const struct fm_span_place place = {.id = cached->id,
                                        .position = fm_cached_position(cached, cached->count),
                                        .last = cached->count + span->count == sequence->count};
    float *states;
    enum fm_code code =
        fm_picture_encode(sequence->model->vision, picture, span, go_on, state, &states, &sequence->answer.error);
    if (code != FM_OK) {
        sequence->reason = code == FM_CANCELLED ? FM_REASON_ABORTED : FM_REASON_ERROR;
        return FM_DECODE_OK;
    }
    enum fm_decode result = fm_batch_decode_span(batch, picture, span, &place, states);
    while (result == FM_DECODE_FULL && fm_cache_make_room(cached->cache)) {
        fm_cached_cut(cached, cached->count); /* some of its places may be in the memory */
        result = fm_batch_decode_span(batch, picture, span, &place, states);
    }
    if (result != FM_DECODE_OK) {
        fm_sequence_drop(sequence);
        return result;
    }
    fm_cached_add_span(cached, span, sequence->exact);
    tell_progress(sequence);
    if (place.last) {
        go_on_with(sequence, fm_batch_logits(batch, -1));
    }
    return result;
}

/* ---- the end ---- */

bool fm_sequence_go_on(const struct fm_sequence *sequence) {
    return fm_kit_job_go_on(sequence->job, sequence->processed, sequence->reused);
}

void fm_sequence_end(struct fm_sequence *sequence) {
    struct fm_llama_answer *answer = &sequence->answer;
    struct fm_kit_job *job = sequence->job;
    enum fm_reason reason = fm_llama_answer_end(answer, sequence->reason);
    bool whole = reason == FM_REASON_STOP && !answer->parser.called && !fm_kit_job_cut(job);
    bool stuck = whole && !fm_guide_check(&answer->guide, &job->schema_error);
    fm_log(FM_LOG_INFO,
           "job %lld: %zu tokens in, %lld out, %lld of %lld drafts accepted (%lld of %lld of the draft model), %lld ms",
           (long long)job->id, sequence->request.prompt.count, (long long)job->output_tokens,
           (long long)sequence->accepted_tokens, (long long)sequence->drafted_tokens,
           (long long)sequence->right_guesses, (long long)sequence->guessed_tokens,
           (long long)(fm_now_ms() - sequence->start_ms));
    job->speculates = sequence->model->drafts != FM_DRAFTS_OFF;
    job->drafted_tokens = sequence->drafted_tokens;
    job->accepted_tokens = sequence->accepted_tokens;
    fm_sampler_free(&sequence->sampler);
    fm_llama_answer_free(answer);
    fm_llama_request_free(&sequence->request);
    if (sequence->decide) {
        fm_kit_job_usage(job, &(struct fm_kit_usage){.input = sequence->decide->input, .cached = sequence->reused});
        fm_decide_free(sequence->decide);
    }
    fm_lookup_free(&sequence->lookup);
    free(sequence->tokens);
    fm_kit_job_finish(job, reason, &answer->error);
    *sequence = (struct fm_sequence){.cached = sequence->cached, .filled = sequence->filled};
    if (stuck) {
        fm_log(FM_LOG_WARN, "the check of a text by its schema does not end: the engine is ended for it");
        _exit(FM_EXIT_NO_MEMORY); /* the thread uses memory as long as it runs, and can't be stopped in another way */
    }
}

void fm_sequence_release(struct fm_sequence *sequence) {
    if (sequence->cached && sequence->filled > 0) {
        fm_sequence_drop(sequence);
    }
    if (sequence->cached) {
        fm_cache_end(sequence->cached);
    }
    *sequence = (struct fm_sequence){0};
}
