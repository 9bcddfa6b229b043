#include "engine/llama/generate.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/llama/guide.h"
#include "engine/llama/logprobs.h"
#include "engine/llama/sampler.h"
#include "engine/llama/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE_SIZE 256 /* bytes of a token's text; most have less than 20 */

struct generation {
    struct fm_slot *slot;
    struct fm_job *job;
    struct fm_guide guide;
    struct fm_sampler sampler;
    const struct fm_tool_form *form;
    bool callable; /* `parser` takes the answer apart */
    struct fm_tool_parser parser;
    llama_token *prompt;
    size_t prompt_count;
    llama_token pending[FM_MODEL_CHUNK]; /* told to the host, not decoded yet */
    size_t pending_count;
    bool forced_more;      /* the next token may be a forced one: don't draw */
    struct fm_error error; /* of FM_REASON_ERROR */
};

/* ---- steps ---- */

static bool abort_asked(void *job) {
    return fm_job_aborted(job);
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

/* fm_job_fit_fn: the prompt is replaced where the new one fits. FM_CANCELLED: an abort was asked for meanwhile. */
static enum fm_code fit_messages(void *state, size_t reserve, struct fm_error *error) {
    struct generation *run = state;
    const struct fm_model *model = run->slot->model;
    struct fm_tool_prompt prompt;
    llama_token *tokens;
    size_t count;
    if (fm_job_aborted(run->job)) {
        return fm_fail(error, FM_CANCELLED, "the job was aborted");
    }
    enum fm_code code = fm_tool_prompt_init(&prompt, run->job, run->form, error);
    if (code != FM_OK) {
        return code;
    }
    code =
        fm_prompter_tokens(&model->prompter, &prompt.chat, model->context_length + 1 - reserve, &tokens, &count, error);
    fm_tool_prompt_free(&prompt);
    if (code == FM_OK) {
        free(run->prompt);
        run->prompt = tokens;
        run->prompt_count = count;
    }
    return code;
}

static enum fm_code make_prompt(struct generation *run) {
    const struct fm_job *job = run->job;
    const struct fm_model *model = run->slot->model;
    if (job->prompt) {
        return fm_prompter_plain_tokens(&model->prompter, job->prompt, job->prompt_len, job->suffix, job->suffix_len,
                                        model->context_length, &run->prompt, &run->prompt_count, &run->error);
    }
    return fm_job_fit(run->job, model->context_length, fit_messages, run, &run->error);
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

static enum fm_reason prefill(struct generation *run) {
    struct fm_slot *slot = run->slot;
    enum fm_reason reason = FM_REASON_NONE;
    fm_slot_reuse(slot, run->prompt, run->prompt_count, fm_sampler_repeats(run->job));
    int64_t cached = (int64_t)slot->count;
    if (slot->count == run->prompt_count) {
        fm_job_progress(run->job, cached, cached);
    }
    while (slot->count < run->prompt_count && !reason) {
        reason = reason_of(run, fm_slot_prefill(slot, run->prompt, run->prompt_count));
        if (!reason) {
            fm_job_progress(run->job, (int64_t)slot->count, cached);
        }
    }
    return reason;
}

static enum fm_reason tell_piece(struct generation *run, const struct fm_tool_piece *piece) {
    switch (piece->kind) {
    case FM_TOOL_CALL: return fm_job_tool_call(run->job, piece->name);
    case FM_TOOL_PART_OF_ARGUMENTS: return fm_job_text(run->job, piece->bytes, piece->len);
    case FM_TOOL_TEXT:
        return fm_guide_add(&run->guide, piece->bytes, piece->len) ? fm_job_text(run->job, piece->bytes, piece->len)
                                                                   : FM_REASON_ERROR;
    case FM_TOOL_UNKNOWN: return fail(run, FM_INTERNAL, "the call names no tool");
    default: return FM_REASON_ERROR;
    }
}

/* One token's bytes, of text or calls or both: it counts once, behind them. */
static enum fm_reason tell_pieces(struct generation *run, const char *bytes, size_t len) {
    enum fm_reason reason = FM_REASON_NONE;
    struct fm_tool_piece piece;
    while (!reason && fm_tool_parser_read(&run->parser, &bytes, &len, &piece)) {
        reason = tell_piece(run, &piece);
    }
    enum fm_reason counted = fm_job_token(run->job, "", 0);
    return reason ? reason : counted;
}

static enum fm_reason tell(struct generation *run, const char *bytes, size_t len) {
    enum fm_reason reason = FM_REASON_ERROR;
    if (run->callable) {
        reason = tell_pieces(run, bytes, len);
    } else if (fm_guide_add(&run->guide, bytes, len)) {
        reason = fm_job_token(run->job, bytes, len);
    }
    return reason == FM_REASON_ERROR && run->error.code == FM_OK ? fail_no_memory(run) : reason;
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
    struct fm_logprobs logprobs;
    if (!run->job->logprobs) {
        return FM_REASON_NONE;
    }
    bool read = fm_logprobs_read(&logprobs, run->slot->model->prompter.vocab, fm_slot_logits(run->slot), token,
                                 run->job->top_logprobs);
    logprobs.told.token.bytes = bytes;
    logprobs.told.token.len = len;
    fm_job_logprobs(run->job, &logprobs.told);
    fm_logprobs_free(&logprobs);
    return read ? FM_REASON_NONE : fail_no_memory(run);
}

static enum fm_reason tell_token(struct generation *run, llama_token token, const char *bytes, size_t len) {
    enum fm_reason reason = tell_logprobs(run, token, bytes, len);
    return reason ? reason : tell(run, bytes, len);
}

/* The text of `token`, "" for a control token that is no part of a call. */
static enum fm_reason send_token(struct generation *run, llama_token token) {
    char piece[PIECE_SIZE];
    const struct llama_vocab *vocab = run->slot->model->prompter.vocab;
    bool control = run->callable; /* a mark may have control tokens, and a grammar of tools has no others */
    if (run->callable && fm_tool_parser_read_trigger(&run->parser, token)) {
        return tell(run, "", 0);
    }
    int32_t len = llama_token_to_piece(vocab, token, piece, sizeof piece, 0, control);
    if (len >= 0) {
        return tell_token(run, token, piece, (size_t)len);
    }
    char *larger = malloc((size_t)-len);
    if (!larger) {
        return fail_no_memory(run);
    }
    len = llama_token_to_piece(vocab, token, larger, -len, 0, control);
    enum fm_reason reason = tell_token(run, token, larger, len > 0 ? (size_t)len : 0);
    free(larger);
    return reason;
}

/* The text goes on with `token`. FM_REASON_NONE: it waits to be decoded. */
static enum fm_reason add(struct generation *run, llama_token token) {
    struct fm_slot *slot = run->slot;
    if (run->guide.grammar && !fm_grammar_take(run->guide.grammar, token)) {
        return fail_grammar(run, fm_grammar_reason(run->guide.grammar));
    }
    fm_sampler_take(&run->sampler, token);
    enum fm_reason reason = send_token(run, token);
    if (run->guide.grammar && fm_grammar_complete(run->guide.grammar) && (!reason || reason == FM_REASON_LENGTH)) {
        return FM_REASON_STOP;
    }
    run->pending[run->pending_count++] = token;
    if (!reason && slot->count + run->pending_count >= slot->model->context_length) {
        reason = FM_REASON_LENGTH; /* this token has the last place */
    }
    return reason;
}

/* A grammar may have an end of turn amid its text, as a token. A guide refuses those that it sees. */
static enum fm_reason end_turn(struct generation *run) {
    bool whole = !run->guide.grammar || fm_grammar_accepts(run->guide.grammar);
    return whole ? FM_REASON_STOP : fail_grammar(run, "the turn ends inside of it");
}

static enum fm_reason draw(struct generation *run) {
    const struct fm_model *model = run->slot->model;
    llama_token token = fm_sampler_draw(&run->sampler, fm_slot_logits(run->slot));
    if (token == LLAMA_TOKEN_NULL) {
        return fail_grammar(run, fm_grammar_reason(run->guide.grammar));
    }
    return llama_vocab_is_eog(model->prompter.vocab, token) ? end_turn(run) : add(run, token);
}

/*
 * What the grammar leaves no choice about needs no draw, and one decode for all of it; but where each token's logits
 * are wanted, a decode for each.
 */
static enum fm_reason add_forced(struct generation *run) {
    enum fm_reason reason = FM_REASON_NONE;
    size_t most = run->job->logprobs ? 1 : run->slot->model->chunk;
    run->forced_more = run->guide.grammar != NULL;
    while (run->forced_more && !reason && run->pending_count < most) {
        llama_token token = fm_grammar_forced(run->guide.grammar);
        run->forced_more = token != LLAMA_TOKEN_NULL;
        reason = run->forced_more ? add(run, token) : FM_REASON_NONE;
    }
    return reason;
}

static enum fm_reason step(struct generation *run) {
    if (fm_job_aborted(run->job)) {
        return FM_REASON_ABORTED;
    }
    run->pending_count = 0;
    enum fm_reason reason = run->forced_more ? FM_REASON_NONE : draw(run);
    reason = reason ? reason : add_forced(run);
    if (reason || run->pending_count == 0) {
        return reason;
    }
    return reason_of(run, fm_slot_append(run->slot, run->pending, run->pending_count));
}

static enum fm_reason generate(struct generation *run) {
    enum fm_reason reason = fm_job_accept(run->job, (int64_t)run->prompt_count);
    reason = reason ? reason : prefill(run);
    while (!reason) {
        reason = step(run);
    }
    return reason;
}

/* What the job asks for, before there is an answer. */
static enum fm_reason prepare(struct generation *run) {
    struct fm_model *model = run->slot->model;
    const struct fm_prompter *prompter = &model->prompter;
    enum fm_code code = fm_model_tool_form(model, run->job, &run->form, &run->error);
    code = code ? code : read_prompt(run);
    code = code ? code : fm_guide_init(&run->guide, run->job, run->form, prompter, &model->grammar_vocab, &run->error);
    code = code ? code : fm_sampler_init(&run->sampler, run->job, run->guide.grammar, prompter->vocab, &run->error);
    run->forced_more = run->guide.grammar != NULL;
    run->callable = fm_tools_callable(run->job);
    if (run->callable) {
        fm_tool_parser_init(&run->parser, run->job, run->form);
    }
    return code == FM_OK ? FM_REASON_NONE : code == FM_CANCELLED ? FM_REASON_ABORTED : FM_REASON_ERROR;
}

void fm_generate(struct fm_slot *slot, struct fm_job *job) {
    struct generation run = {.slot = slot, .job = job};
    int64_t start = fm_now_ms();
    llama_set_abort_callback(slot->model->context, abort_asked, job);
    enum fm_reason reason = prepare(&run);
    reason = reason ? reason : generate(&run);
    llama_set_abort_callback(slot->model->context, NULL, NULL);
    reason = tell_held(&run, reason);
    bool whole = reason == FM_REASON_STOP && !run.parser.called;
    bool stuck = whole && !fm_guide_check(&run.guide, &job->schema_error);
    fm_sampler_free(&run.sampler);
    fm_guide_free(&run.guide);
    fm_tool_parser_free(&run.parser);
    free(run.prompt);
    fm_log(FM_LOG_INFO, "job %lld: %zu tokens in, %lld out, %lld ms", (long long)job->id, run.prompt_count,
           (long long)job->output_tokens, (long long)(fm_now_ms() - start));
    fm_job_finish(job, reason, &run.error);
    if (stuck) {
        fm_log(FM_LOG_WARN, "the check of a text by its schema does not end: the engine is ended for it");
        _exit(FM_EXIT_NO_MEMORY); /* it takes memory as long as it lasts, and can't be stopped otherwise */
    }
}
