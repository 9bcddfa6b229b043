/* A job's life between fm_kit_take and fm_kit_job_finish: its events, its flag, its text. */
#include "base/clock.h"
#include "engine/kit/job_read.h"
#include "engine/kit/kit_internal.h"
#include "protocol/vector.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

/* The most bytes that one token may send: all bytes that were held back, and the token itself. */
#define DELTA_MAX (FM_TEXT_HELD_MAX + 1024u * 1024u)

/* The longest time that a job which makes tokens without text stays silent (ENGINE.md). */
#define SILENCE_MS 100

struct fm_kit_job *fm_kit_job_new(struct fm_kit *kit, int64_t id, struct json_object *params) {
    struct fm_kit_job *job = calloc(1, sizeof *job);
    if (!job) {
        return NULL;
    }
    job->id = id;
    job->kit = kit;
    atomic_init(&job->aborted, false);
    fm_buf_init(&job->text, DELTA_MAX);
    fm_logprob_queue_init(&job->entries);
    fm_buf_init(&job->schema_report, FM_SCHEMA_REPORT_MAX);
    fm_buf_init(&job->schema_error, FM_SCHEMA_ERROR_MAX);
    enum fm_code code = fm_kit_job_read(job, params, &job->fault);
    if (!fm_text_stream_init(&job->stream, job->stops, code == FM_OK ? job->stop_count : 0)) {
        fm_kit_job_free_lists(job);
        free(job);
        return NULL;
    }
    job->params = params;
    return job;
}

void fm_kit_job_free(struct fm_kit_job *job) {
    fm_text_stream_free(&job->stream);
    fm_logprob_queue_free(&job->entries);
    fm_text_stream_free(&job->thought);
    fm_buf_free(&job->text);
    fm_buf_free(&job->schema_report);
    fm_buf_free(&job->schema_error);
    json_object_put(job->params);
    fm_kit_job_free_lists(job);
    free(job);
}

bool fm_kit_job_aborted(const struct fm_kit_job *job) {
    return atomic_load_explicit(&job->aborted, memory_order_relaxed);
}

bool fm_kit_job_sleep(struct fm_kit_job *job, int64_t ms) {
    struct fm_kit *kit = job->kit;
    int64_t deadline = fm_now_ms() + ms;
    pthread_mutex_lock(&kit->lock);
    while (!fm_kit_job_aborted(job) && fm_now_ms() < deadline) {
        fm_cond_wait_until(&kit->changed, &kit->lock, deadline);
    }
    pthread_mutex_unlock(&kit->lock);
    return fm_kit_job_aborted(job);
}

static struct fm_json_writer begin_event(struct fm_kit_job *job, const char *method) {
    job->event_ms = fm_now_ms();
    struct fm_json_writer w = fm_output_notification(job->kit, method);
    fm_json_object_begin(&w);
    fm_json_key_int(&w, "job", job->id);
    return w;
}

enum fm_reason fm_kit_job_accept(struct fm_kit_job *job, int64_t input_tokens) {
    job->input_tokens = input_tokens;
    job->accepted_us = fm_now_us();
    struct fm_json_writer w = begin_event(job, FM_JOB_ACCEPTED);
    if (input_tokens >= 0) {
        fm_json_key_int(&w, "input_tokens", input_tokens);
    }
    if (job->inputs) {
        fm_json_key_int(&w, "dimension", (int64_t)job->dimension);
    }
    if (job->dropped > 0) {
        fm_json_key_int(&w, "dropped", job->dropped);
    }
    if (job->schema_report.len > 0) {
        fm_json_key(&w, "schema_report");
        fm_json_raw(&w, job->schema_report.data, job->schema_report.len);
    }
    w.buf->failed |= job->schema_report.failed;
    fm_json_object_end(&w);
    fm_output_send_or_end(job->kit);
    return job->count_only ? FM_REASON_LENGTH : FM_REASON_NONE;
}

void fm_kit_job_progress(struct fm_kit_job *job, int64_t processed, int64_t cached) {
    job->cached_tokens = cached;
    struct fm_json_writer w = begin_event(job, FM_JOB_PROGRESS);
    fm_json_key_int(&w, "processed", processed);
    fm_json_key_int(&w, "cached", cached);
    if (job->output_tokens) {
        fm_json_key_int(&w, "output_tokens", job->output_tokens);
        job->told_tokens = job->output_tokens;
    }
    fm_json_object_end(&w);
    fm_output_send_or_end(job->kit);
}

bool fm_kit_job_go_on(struct fm_kit_job *job, int64_t processed, int64_t cached) {
    if (job->event_ms > 0 && fm_now_ms() - job->event_ms >= FM_KIT_SIGN_MS) {
        fm_kit_job_progress(job, processed, cached);
    }
    return !fm_kit_job_aborted(job);
}

/* The kind of output that job->text is a part of. */
static enum fm_piece kind_of(const struct fm_kit_job *job) {
    if (job->pieced) {
        return job->piece;
    }
    return job->calls > 0 ? FM_PIECE_ARGUMENTS : job->thinking ? FM_PIECE_REASONING : FM_PIECE_TEXT;
}

/* Text is sent together with the log probabilities of its tokens. Other kinds of output have no log probabilities. */
static bool has_logprobs(const struct fm_kit_job *job) {
    return job->logprobs && kind_of(job) == FM_PIECE_TEXT;
}

/* Sends the part `cut` at the beginning of job->text: reasoning, text, or arguments of the last call. */
static bool send_cut(struct fm_kit_job *job, const struct fm_logprob_cut *cut) {
    static const char *const methods[] = {
        [FM_PIECE_TEXT] = FM_JOB_DELTA,
        [FM_PIECE_REASONING] = FM_JOB_REASONING,
        [FM_PIECE_REFUSAL] = FM_JOB_REFUSAL,
        [FM_PIECE_ARGUMENTS] = FM_JOB_TOOL_DELTA,
    };
    enum fm_piece kind = kind_of(job);
    struct fm_json_writer w = begin_event(job, methods[kind]);
    if (kind == FM_PIECE_ARGUMENTS) {
        fm_json_key_int(&w, "index", job->calls - 1);
    }
    fm_json_key(&w, kind == FM_PIECE_ARGUMENTS ? "arguments" : "text");
    fm_json_string(&w, job->text.data, cut->len);
    if (has_logprobs(job)) {
        fm_json_key(&w, "logprobs");
        fm_logprob_queue_write(&job->entries, cut, &w);
    }
    if (!job->pieced) {
        fm_json_key_int(&w, "output_tokens", job->output_tokens);
    }
    fm_json_object_end(&w);
    fm_logprob_queue_drop(&job->entries, cut, &job->text);
    job->told_tokens = job->output_tokens;
    job->delta_ms = fm_now_ms();
    return fm_output_send(job->kit);
}

/* The part of job->text to send next. `all`: no more text will follow. */
static struct fm_logprob_cut next_cut(const struct fm_kit_job *job, bool all) {
    if (!has_logprobs(job)) {
        return (struct fm_logprob_cut){.len = job->text.len};
    }
    return fm_logprob_queue_cut(&job->entries, &job->stream, &job->text, all || job->stream.stopped);
}

static bool send_delta(struct fm_kit_job *job, bool all) {
    bool sent = true;
    struct fm_logprob_cut cut = next_cut(job, all);
    while (cut.len > 0 && sent) {
        sent = send_cut(job, &cut);
        cut = next_cut(job, all);
    }
    return sent;
}

static bool is_delta_due(const struct fm_kit_job *job) {
    int64_t interval = job->kit->ops->delta_ms;
    return interval == 0 || job->delta_ms == 0 || fm_now_ms() - job->delta_ms >= interval;
}

/*
 * Sends a sign of progress. While text is held back, the engine must not look as if it stood still or had no first
 * token yet.
 */
static void send_sign(struct fm_kit_job *job) {
    bool silent = fm_now_ms() - job->event_ms >= SILENCE_MS;
    if (job->told_tokens == 0 || (silent && job->told_tokens < job->output_tokens)) {
        fm_kit_job_progress(job, job->input_tokens, job->cached_tokens);
    }
}

/* Ends the thought: sends the rest of it, because text or a call follows. */
static bool end_thought(struct fm_kit_job *job) {
    if (!job->thinking) {
        return true;
    }
    bool sent = send_delta(job, true);
    fm_text_stream_free(&job->thought);
    job->thinking = false;
    return sent;
}

/* Adds to the text, or to the last call's arguments. */
static enum fm_text_status push_text(struct fm_kit_job *job, const char *bytes, size_t len) {
    job->spoke |= len > 0;
    if (!end_thought(job)) {
        return FM_TEXT_NO_MEMORY;
    }
    return has_logprobs(job) ? fm_logprob_queue_push(&job->entries, &job->stream, bytes, len, &job->text)
                             : fm_text_stream_push(&job->stream, bytes, len, &job->text);
}

void fm_kit_job_logprobs(struct fm_kit_job *job, const struct fm_token_logprobs *token) {
    if (job->logprobs &&
        (job->calls == 0 || job->pieced)) { /* a thought may still be open: this token's text ends it */
        fm_logprob_queue_add(&job->entries, token);
    }
}

/* Counts a generated token; adding its text had the result `status`. */
static enum fm_reason add_token(struct fm_kit_job *job, enum fm_text_status status) {
    job->output_tokens++;
    job->first_us = job->first_us ? job->first_us : fm_now_us();
    if (job->thinking) {
        job->reasoning_tokens = job->output_tokens;
    }
    if (status == FM_TEXT_NO_MEMORY || (is_delta_due(job) && !send_delta(job, false))) {
        return FM_REASON_ERROR;
    }
    if (status == FM_TEXT_STOPPED) {
        return FM_REASON_STOP;
    }
    if (job->output_tokens == job->max_tokens) {
        return FM_REASON_LENGTH;
    }
    if (fm_kit_job_aborted(job)) {
        return FM_REASON_ABORTED;
    }
    send_sign(job);
    return FM_REASON_NONE;
}

enum fm_reason fm_kit_job_text(struct fm_kit_job *job, const char *bytes, size_t len) {
    switch (push_text(job, bytes, len)) {
    case FM_TEXT_NO_MEMORY: return FM_REASON_ERROR;
    case FM_TEXT_STOPPED: return FM_REASON_STOP;
    default: return FM_REASON_NONE;
    }
}

enum fm_reason fm_kit_job_token(struct fm_kit_job *job, const char *bytes, size_t len) {
    bool tag = job->thinking && len == 0;
    if (job->calls > 0 && len > 0) {
        return FM_REASON_ERROR;
    }
    return add_token(job, tag ? FM_TEXT_MORE : push_text(job, bytes, len));
}

enum fm_reason fm_kit_job_tool_arguments(struct fm_kit_job *job, const char *bytes, size_t len) {
    return job->calls > 0 ? add_token(job, push_text(job, bytes, len)) : FM_REASON_ERROR;
}

enum fm_reason fm_kit_job_reasoning(struct fm_kit_job *job, const char *bytes, size_t len) {
    if (job->spoke || job->calls > 0) {
        return FM_REASON_ERROR;
    }
    if (!job->thinking && !fm_text_stream_init(&job->thought, NULL, 0)) {
        return FM_REASON_ERROR;
    }
    job->thinking = true;
    return fm_text_stream_push(&job->thought, bytes, len, &job->text) == FM_TEXT_NO_MEMORY ? FM_REASON_ERROR
                                                                                           : FM_REASON_NONE;
}

/* Begins another text, after it has sent the text that was held back. Arguments are not searched for stop strings. */
static bool begin_text(struct fm_kit_job *job) {
    bool flushed = end_thought(job) && fm_text_stream_flush(&job->stream, &job->text) != FM_TEXT_NO_MEMORY &&
                   send_delta(job, true);
    fm_text_stream_free(&job->stream);
    return fm_text_stream_init(&job->stream, NULL, 0) && flushed;
}

enum fm_reason fm_kit_job_tool_call(struct fm_kit_job *job, const char *name) {
    if (!begin_text(job)) {
        return FM_REASON_ERROR;
    }
    job->piece = FM_PIECE_ARGUMENTS;
    struct fm_json_writer w = begin_event(job, FM_JOB_TOOL_CALL);
    fm_json_key_int(&w, "index", job->calls++);
    fm_json_key_str(&w, "name", name);
    if (!job->pieced && job->output_tokens > 0) { /* if no token was counted before, the engine sends pieces of text */
        fm_json_key_int(&w, "output_tokens", job->output_tokens);
    }
    fm_json_object_end(&w);
    job->told_tokens = job->output_tokens;
    return fm_output_send(job->kit) ? FM_REASON_NONE : FM_REASON_ERROR;
}

/* ---- output that is not counted ---- */

/* Whether output of this kind may come after the output so far. */
static bool may_follow(const struct fm_kit_job *job, enum fm_piece kind) {
    static const int ranks[] = {
        [FM_PIECE_REASONING] = 0, [FM_PIECE_TEXT] = 1, [FM_PIECE_ARGUMENTS] = 2, [FM_PIECE_REFUSAL] = 3};
    bool begun = job->pieced || job->calls > 0;
    if (begun && job->piece == FM_PIECE_REFUSAL) {
        return kind == FM_PIECE_REFUSAL;
    }
    if (kind == FM_PIECE_ARGUMENTS) {
        return job->calls > 0 && job->piece == FM_PIECE_ARGUMENTS;
    }
    return !begun || job->kit->ops->any_order || ranks[kind] >= ranks[job->piece];
}

/* Begins another kind of output, after it has sent the held text of the last kind. False when out of memory. */
static bool begin_kind(struct fm_kit_job *job, enum fm_piece kind) {
    bool stops = kind == FM_PIECE_TEXT;
    if (job->pieced && kind == job->piece) {
        return true;
    }
    bool flushed = fm_text_stream_flush(&job->stream, &job->text) != FM_TEXT_NO_MEMORY && send_delta(job, true);
    fm_text_stream_free(&job->stream);
    job->pieced = true;
    job->piece = kind;
    return fm_text_stream_init(&job->stream, job->stops, stops ? job->stop_count : 0) && flushed;
}

enum fm_reason fm_kit_job_piece(struct fm_kit_job *job, enum fm_piece kind, const char *bytes, size_t len) {
    if (!may_follow(job, kind) || !begin_kind(job, kind)) {
        return FM_REASON_ERROR;
    }
    job->first_us = job->first_us ? job->first_us : fm_now_us();
    enum fm_text_status status = push_text(job, bytes, len);
    if (status == FM_TEXT_NO_MEMORY || !send_delta(job, false)) {
        return FM_REASON_ERROR;
    }
    if (status == FM_TEXT_STOPPED) {
        return FM_REASON_STOP;
    }
    return fm_kit_job_aborted(job) ? FM_REASON_ABORTED : FM_REASON_NONE;
}

enum fm_reason fm_kit_job_state(struct fm_kit_job *job, const char *text, size_t len) {
    struct fm_json_writer w = begin_event(job, FM_JOB_STATE);
    fm_json_key(&w, "state");
    fm_json_string(&w, text, len);
    fm_json_object_end(&w);
    return fm_output_send(job->kit) ? FM_REASON_NONE : FM_REASON_ERROR;
}

bool fm_kit_job_restart(struct fm_kit_job *job, const struct fm_error *error) {
    fm_text_stream_free(&job->stream);
    fm_text_stream_free(&job->thought);
    fm_logprob_queue_free(&job->entries);
    fm_logprob_queue_init(&job->entries);
    fm_buf_reset(&job->text);
    fm_buf_reset(&job->schema_error);
    job->thinking = job->spoke = job->pieced = job->has_usage = job->speculates = false;
    job->calls = job->delta_ms = job->accepted_us = job->first_us = 0;
    job->cached_tokens = job->output_tokens = job->told_tokens = job->reasoning_tokens = 0;
    struct fm_json_writer w = begin_event(job, FM_JOB_RESTARTED);
    fm_json_key(&w, "error");
    fm_output_error_value(&w, error);
    fm_json_object_end(&w);
    fm_output_send_or_end(job->kit);
    return fm_text_stream_init(&job->stream, job->stops, job->stop_count);
}

/* ---- vectors and decisions ---- */

/* Sends the event of a vector or a decision. `*sent` is the number of those sent before; there will be `all`. */
static enum fm_reason send_entry(struct fm_kit_job *job, size_t *sent, size_t all, struct fm_error *error) {
    if (!fm_output_send(job->kit)) {
        (void)fm_fail_no_memory(error);
        return FM_REASON_ERROR;
    }
    if (++*sent == all) {
        return FM_REASON_STOP;
    }
    return fm_kit_job_aborted(job) ? FM_REASON_ABORTED : FM_REASON_NONE;
}

enum fm_reason fm_kit_job_embedding(struct fm_kit_job *job, float *values, struct fm_error *error) {
    if (!fm_vector_normalise(values, job->dimension)) {
        (void)fm_fail(error, FM_INTERNAL, "the model makes no vector of the text");
        snprintf(error->param, sizeof error->param, "embed[%zu]", job->embedded);
        return FM_REASON_ERROR;
    }
    struct fm_json_writer w = begin_event(job, FM_JOB_EMBEDDING);
    fm_json_key_int(&w, "index", (int64_t)job->embedded);
    fm_json_key(&w, "vector");
    fm_vector_write(values, job->dimension, &w);
    fm_json_object_end(&w);
    return send_entry(job, &job->embedded, job->input_count, error);
}

enum fm_reason fm_kit_job_decision(struct fm_kit_job *job, const double *logprobs, struct fm_error *error) {
    struct fm_json_writer w = begin_event(job, FM_JOB_DECISION);
    fm_json_key_int(&w, "index", (int64_t)job->decided);
    fm_json_key(&w, "logprobs");
    fm_json_array_begin(&w);
    for (size_t i = 0; i < job->questions[job->decided].choice_count; i++) {
        fm_json_double(&w, logprobs[i]);
    }
    fm_json_array_end(&w);
    fm_json_object_end(&w);
    return send_entry(job, &job->decided, job->question_count, error);
}

/* ---- the end ---- */

static void write_count(struct fm_json_writer *w, const char *name, int64_t count) {
    if (count >= 0) {
        fm_json_key_int(w, name, count);
    }
}

/* Writes the counts that the engine gave, or else the kit's own counts. Unknown counts are left out. */
static void write_usage(const struct fm_kit_job *job, struct fm_json_writer *w) {
    bool counted = !job->pieced && job->input_tokens >= 0;
    struct fm_kit_usage usage = {.input = job->input_tokens,
                                 .cached = counted ? job->cached_tokens : FM_UNCOUNTED,
                                 .output = counted ? job->output_tokens : FM_UNCOUNTED,
                                 .reasoning = counted ? job->reasoning_tokens : FM_UNCOUNTED};
    usage = job->has_usage ? job->usage : usage;
    fm_json_key(w, "usage");
    fm_json_object_begin(w);
    write_count(w, "input_tokens", usage.input);
    write_count(w, "cached_tokens", usage.cached);
    write_count(w, "output_tokens", usage.output);
    write_count(w, "reasoning_tokens", usage.reasoning);
    fm_json_object_end(w);
}

void fm_kit_job_usage(struct fm_kit_job *job, const struct fm_kit_usage *usage) {
    job->usage = *usage;
    job->has_usage = true;
}

/* Writes how long the job took after it was accepted. */
static void write_timings(const struct fm_kit_job *job, struct fm_json_writer *w) {
    int64_t now = fm_now_us();
    int64_t first = job->first_us ? job->first_us : now;
    if (!job->accepted_us || job->count_only) {
        return;
    }
    fm_json_key(w, "timings");
    fm_json_object_begin(w);
    fm_json_key_double(w, "prefill_ms", (double)(first - job->accepted_us) / 1000);
    fm_json_key_double(w, "decode_ms", (double)(now - first) / 1000);
    if (job->speculates) {
        fm_json_key_int(w, "drafted_tokens", job->drafted_tokens);
        fm_json_key_int(w, "accepted_tokens", job->accepted_tokens);
    }
    fm_json_object_end(w);
}

static void send_finished(struct fm_kit_job *job, enum fm_reason reason, const struct fm_error *error) {
    static const char *const names[] = {
        [FM_REASON_NONE] = "error",      [FM_REASON_STOP] = "stop",
        [FM_REASON_LENGTH] = "length",   [FM_REASON_CONTENT_FILTER] = "content_filter",
        [FM_REASON_ABORTED] = "aborted", [FM_REASON_ERROR] = "error",
    };
    struct fm_json_writer w = begin_event(job, FM_JOB_FINISHED);
    fm_json_key_str(&w, "reason", names[reason]);
    write_timings(job, &w);
    write_usage(job, &w);
    if (reason == FM_REASON_ERROR) {
        fm_json_key(&w, "error");
        fm_output_error_value(&w, error);
    }
    if (job->schema_error.len > 0) {
        fm_json_key(&w, "schema_error");
        fm_json_string(&w, job->schema_error.data, job->schema_error.len);
    }
    w.buf->failed |= job->schema_error.failed;
    if (job->unknown_tool[0]) {
        fm_json_key_str(&w, "unknown_tool", job->unknown_tool);
    }
    fm_json_object_end(&w);
    fm_output_send_or_end(job->kit);
}

static void unlist(struct fm_kit_job *job) {
    struct fm_kit *kit = job->kit;
    pthread_mutex_lock(&kit->lock);
    struct fm_kit_job **link = &kit->jobs;
    while (*link != job) {
        link = &(*link)->next;
    }
    *link = job->next;
    pthread_mutex_unlock(&kit->lock);
}

bool fm_kit_job_cut(const struct fm_kit_job *job) {
    return job->stream.stopped && (job->calls == 0 || job->pieced);
}

void fm_kit_job_finish(struct fm_kit_job *job, enum fm_reason reason, const struct fm_error *error) {
    struct fm_error no_memory;
    if (!error) {
        (void)fm_fail_no_memory(&no_memory);
        error = &no_memory;
    }
    if (fm_text_stream_flush(&job->stream, &job->text) == FM_TEXT_NO_MEMORY || !send_delta(job, true)) {
        reason = FM_REASON_ERROR;
    }
    if (fm_kit_job_cut(job) && job->format.kind == FM_FORMAT_JSON_SCHEMA) {
        fm_buf_reset(&job->schema_error);
        fm_buf_append_str(&job->schema_error, "a stop string cut the text before it was whole");
    }
    send_finished(job, reason, error);
    unlist(job);
    fm_kit_job_free(job);
}
