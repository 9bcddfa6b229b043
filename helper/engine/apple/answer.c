/*
 * One job from its messages to its end. A job that can't be done is refused before the library is asked. An answer that
 * follows a schema is checked before it is sent. If a task does not end, nothing of its job is freed.
 */
#include "engine/apple/options.h"
#include "engine/apple/run.h"
#include "engine/guide/guide.h"
#include "engine/guide/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX 4096

static bool must_call(const struct fm_kit_job *job) {
    return job->tool_count > 0 && job->tool_mode == FM_TOOLS_REQUIRED;
}

/* ---- before the library is asked ---- */

static enum fm_code prepare_format(struct fm_apple_run *run) {
    struct fm_kit_job *job = run->job;
    struct fm_schema checked;
    enum fm_code code = fm_schema_prepare(job->format.schema, false, &checked, run->error);
    if (code != FM_OK) {
        return code;
    }
    fm_schema_free(&checked);
    code = fm_apple_schema_make(job->format.schema, "Answer", false, "format.schema", &run->format, run->error);
    if (code == FM_OK) {
        run->extras.format = run->format.root;
        fm_buf_append(&job->schema_report, run->format.report.data, run->format.report.len);
    }
    return code;
}

static enum fm_code plan(struct fm_apple_run *run) {
    struct fm_kit_job *job = run->job;
    enum fm_code code = fm_apple_check(job, run->error);
    if (code == FM_OK && must_call(job)) {
        return fm_apple_prepare_calls(run);
    }
    if (code == FM_OK && job->tool_count > 0 && job->tool_mode == FM_TOOLS_AUTO) {
        code = fm_apple_tools_make(&run->tools, run->api, job, run->error);
        run->extras.tools = run->tools.definitions;
    }
    return code == FM_OK && job->format.kind == FM_FORMAT_JSON_SCHEMA ? prepare_format(run) : code;
}

/* Makes a transcript from the messages that the job has now, and counts its tokens. */
static enum fm_code fit(void *state, size_t reserve, struct fm_error *error) {
    struct fm_apple_run *run = state;
    struct fm_buf whole;
    const char *prompt;
    size_t len;
    int64_t tokens = FM_UNCOUNTED;
    fm_buf_init(&whole, FM_APPLE_TRANSCRIPT_MAX);
    fm_apple_transcript(run->job, &run->extras, true, &whole, &prompt, &len);
    enum fm_code code =
        whole.failed ? fm_fail_no_memory(error) : fm_apple_count(run->apple, run->job, whole.data, &tokens, error);
    if (code == FM_OK && tokens != FM_UNCOUNTED && tokens + (int64_t)reserve > run->apple->context_length) {
        code =
            fm_fail(error, FM_CONTEXT_OVERFLOW,
                    "the prompt has %lld tokens, and the context of Apple's model %lld, of which the answer needs %zu",
                    (long long)tokens, (long long)run->apple->context_length, reserve);
        error->elsewhere = true;
    }
    if (code != FM_OK) {
        fm_buf_free(&whole);
        return code;
    }
    fm_buf_free(&run->whole);
    run->whole = whole;
    run->input = tokens;
    return FM_OK;
}

/* If tokens can't be counted, it is not known what fits into the context. */
static enum fm_code check_counting(struct fm_apple_run *run) {
    const char *param = run->job->count_only ? "max_tokens" : run->job->truncation.asked ? "truncation" : NULL;
    if (run->apple->counts || !param) {
        return FM_OK;
    }
    (void)fm_fail(run->error, FM_INVALID_REQUEST, "Apple's model counts tokens since macOS 26.4; this one is older");
    run->error->elsewhere = true;
    snprintf(run->error->param, sizeof run->error->param, "%s", param);
    return FM_INVALID_REQUEST;
}

/* ---- kinds of answers ---- */

static enum fm_reason check_answer(struct fm_apple_run *run, const struct fm_buf *text) {
    struct fm_kit_job *job = run->job;
    struct fm_buf why;
    fm_buf_init(&why, FM_SCHEMA_ERROR_MAX);
    enum fm_reason reason = FM_REASON_NONE;
    if (!fm_guide_check_text(job->format.schema, text->data, text->len, &why)) {
        run->apple->stuck = true; /* a thread still checks the answer, and uses its memory */
    }
    static const char unchecked[] = FM_GUIDE_UNCHECKED;
    bool known = why.len < sizeof unchecked - 1 || memcmp(why.data, unchecked, sizeof unchecked - 1) != 0;
    if (why.len > 0 && job->format.strict) {
        reason = fm_apple_failed(run, known ? "Apple's model wrote an answer that does not match the schema; try again"
                                            : "the answer could not be checked against the schema; try again");
    } else if (why.len > 0) {
        fm_buf_append(&job->schema_error, why.data, why.len);
    }
    fm_buf_free(&why);
    return reason;
}

static enum fm_reason answer_by_schema(struct fm_apple_run *run) {
    struct fm_buf text;
    enum fm_reason reason = fm_apple_ask(run, run->format.root, false);
    if (reason) {
        return reason;
    }
    fm_buf_init(&text, FM_APPLE_TEXT_MAX);
    if (fm_apple_schema_restore(&run->format, run->answer.data, run->answer.len, &text, run->error) != FM_OK) {
        reason = FM_REASON_ERROR;
    }
    reason = reason ? reason : check_answer(run, &text);
    if (!reason) {
        reason = fm_kit_job_piece(run->job, FM_PIECE_TEXT, text.data, text.len);
        reason = reason == FM_REASON_ERROR ? fm_apple_no_memory(run) : reason;
    }
    fm_buf_free(&text);
    return reason ? reason : FM_REASON_STOP;
}

static enum fm_reason answer_freely(struct fm_apple_run *run) {
    enum fm_reason reason = fm_apple_ask(run, NULL, false);
    return reason ? reason : FM_REASON_STOP;
}

/* ---- the whole job ---- */

/*
 * The library does not report that the token limit ended an answer. So an answer that has as many tokens as the limit
 * counts as ended by it.
 */
static enum fm_reason count_output(struct fm_apple_run *run, enum fm_reason reason) {
    int64_t cached =
        run->input == FM_UNCOUNTED ? FM_UNCOUNTED : 0; /* each job has a new session, which reads all input again */
    struct fm_kit_usage usage = {run->input, cached, FM_UNCOUNTED, 0};
    bool stopped = reason == FM_REASON_STOP || reason == FM_REASON_LENGTH;
    if (!run->apple->stuck && run->complete && stopped) {
        usage.output =
            fm_apple_count_answer(run->apple, run->job, &run->whole, run->input, run->answer.data, run->answer.len);
    }
    fm_kit_job_usage(run->job, &usage);
    bool full = reason == FM_REASON_STOP && run->job->max_tokens > 0 && usage.output >= run->job->max_tokens;
    return full && !fm_kit_job_cut(run->job) ? FM_REASON_LENGTH : reason;
}

static enum fm_reason do_job(struct fm_apple_run *run) {
    struct fm_kit_job *job = run->job;
    enum fm_code code = plan(run);
    code = code ? code : check_counting(run);
    code = code ? code : fm_kit_job_fit(job, (size_t)run->apple->context_length, fit, run, run->error);
    if (code != FM_OK) {
        return code == FM_CANCELLED ? FM_REASON_ABORTED : FM_REASON_ERROR;
    }
    fm_apple_options(job, &run->options);
    if (run->options.failed || run->instructions.failed) {
        return fm_apple_no_memory(run);
    }
    enum fm_reason reason = fm_kit_job_accept(job, run->input);
    if (reason) {
        return reason;
    }
    reason = must_call(job) ? fm_apple_call_tool(run) : run->format.root ? answer_by_schema(run) : answer_freely(run);
    return count_output(run, reason);
}

static void free_run(struct fm_apple_run *run) {
    fm_apple_tools_free(&run->tools);
    fm_apple_schema_free(&run->format);
    fm_buf_free(&run->instructions);
    fm_buf_free(&run->whole);
    fm_buf_free(&run->options);
    fm_buf_free(&run->piece);
    fm_buf_free(&run->answer);
    free(run);
}

enum fm_reason fm_apple_answer(struct fm_apple *apple, struct fm_kit_job *job, struct fm_error *error) {
    struct fm_apple_run *run = calloc(1, sizeof *run);
    if (!run) {
        (void)fm_fail_no_memory(error);
        return FM_REASON_ERROR;
    }
    *run = (struct fm_apple_run){.apple = apple, .api = &apple->api, .job = job, .error = error, .input = FM_UNCOUNTED};
    fm_buf_init(&run->instructions, FM_APPLE_TRANSCRIPT_MAX);
    fm_buf_init(&run->whole, FM_APPLE_TRANSCRIPT_MAX);
    fm_buf_init(&run->options, OPTIONS_MAX);
    fm_buf_init(&run->piece, FM_APPLE_TEXT_MAX);
    fm_buf_init(&run->answer, FM_APPLE_TEXT_MAX);
    enum fm_reason reason = do_job(run);
    if (!apple->stuck) {
        free_run(run);
    }
    return reason;
}
