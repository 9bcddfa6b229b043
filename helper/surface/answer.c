/*
 * An answer: what an engine has produced for a request, and the stream of events about it. Output is only ever
 * appended.
 */
#include "surface/answer.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "protocol/frame.h"
#include "surface/ignored.h"
#include "surface/timings.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DELTA_MAX 32768u /* bytes of output in one delta: more may collect while a host is slow */

#define PIECES_MAX (sizeof(size_t) * FM_OUTPUT_MAX)

/* Bytes of a frame beside output and echo: ids and names of 128 calls, a schema report of 1 MiB, usage. */
#define FRAME_OVERHEAD ((1u << 20) + (256u << 10))

#define LOOP_PENALTY 0.5 /* frequency penalty after an answer that repeated itself; as in session mode */

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Divides the room of a frame between the output and the log probabilities. */
static void share_frame(struct fm_answer *answer) {
    size_t room = FM_FRAME_BODY_MAX - FRAME_OVERHEAD - answer->request.echo.len;
    size_t logprobs = answer->request.logprobs ? least(FM_LOGPROBS_MAX, room / 2) : 0;
    answer->output_max = least(FM_OUTPUT_MAX, room - logprobs);
    fm_logprobs_init(answer, logprobs);
}

enum fm_code fm_answer_init(struct fm_answer *answer, const struct fm_surface *surface, struct fm_request *request,
                            const char *model, struct fm_error *error) {
    *answer = (struct fm_answer){
        .surface = surface,
        .request = *request,
        .model = strdup(model),
        .created_at = fm_wall_seconds(),
    };
    *request = (struct fm_request){0};
    fm_buf_init(&answer->output, FM_OUTPUT_MAX);
    fm_buf_init(&answer->pieces, PIECES_MAX);
    share_frame(answer);
    fm_id_draw(answer->id, surface->id_prefix);
    if (surface->item_prefix) {
        fm_id_draw(answer->item_id, surface->item_prefix);
        fm_id_draw(answer->reasoning_id, "rs_");
    }
    if (!answer->model) {
        fm_answer_free(answer);
        return fm_fail_no_memory(error);
    }
    return FM_OK;
}

static void free_output(struct fm_answer *answer) {
    free(answer->calls);
    answer->calls = NULL;
    answer->call_count = 0;
    fm_buf_free(&answer->output);
    fm_buf_free(&answer->pieces);
    fm_logprobs_free(answer);
}

void fm_answer_free(struct fm_answer *answer) {
    for (size_t i = 0; answer->earlier && i < answer->choice; i++) {
        free_output(answer->earlier[i]);
        free(answer->earlier[i]);
    }
    free(answer->earlier);
    answer->earlier = NULL;
    free_output(answer);
    fm_request_free(&answer->request);
    free(answer->model);
    answer->model = NULL;
    free(answer->error_code);
    answer->error_code = NULL;
    fm_buf_free(&answer->report);
}

void fm_answer_drop(struct fm_answer *answer, int64_t messages) {
    answer->dropped = messages;
}

void fm_answer_open(struct fm_answer *answer, int64_t input_tokens) {
    answer->usage.input = input_tokens;
    answer->opened = true;
    if (answer->request.output_start.len > 0) { /* not earlier: it would count as backlog with nobody to send it */
        answer->output = answer->request.output_start;
        answer->output_json = fm_json_string_size(answer->output.data, answer->output.len) - 2;
        fm_buf_init(&answer->request.output_start, FM_OUTPUT_MAX);
    }
}

void fm_answer_report(struct fm_answer *answer, struct fm_buf *report) {
    answer->report = *report;
    *report = (struct fm_buf){.max = report->max};
}

void fm_answer_mismatch(struct fm_answer *answer, const char *reason) {
    int shown = fm_utf8_shown(reason, sizeof answer->schema_error - 1);
    snprintf(answer->schema_error, sizeof answer->schema_error, "%.*s", shown, reason);
    answer->mismatch = true;
}

enum fm_code fm_answer_reason(struct fm_answer *answer, const char *text, size_t len, struct fm_error *error) {
    if (fm_answer_text_len(answer) > 0 || answer->call_count > 0) {
        return fm_fail(error, FM_INTERNAL, "the engine sent a thought after text or a call");
    }
    if (!fm_answer_append(answer, text, len)) {
        return fm_fail(error, FM_INTERNAL, "the answer is too large to hold");
    }
    answer->reasoning_len = answer->output.len;
    return FM_OK;
}

bool fm_answer_append(struct fm_answer *answer, const char *text, size_t len) {
    size_t json = fm_json_string_size(text, len) - 2; /* without the quotes */
    if (json > answer->output_max - answer->output_json) {
        answer->output.failed = true; /* for good: later output would leave a gap before it */
    }
    fm_buf_append(&answer->output, text, len);
    if (answer->output.failed) {
        return false;
    }
    answer->output_json += json;
    return true;
}

/* Whether the request lets the answer call `name`. */
static bool may_call(const struct fm_request *request, const char *name) {
    const char *known = request->tool_names.data;
    const char *end = known ? known + request->tool_names.len : NULL;
    while (known != end && strcmp(known, name) != 0) {
        known += strlen(known) + 1;
    }
    return known != end;
}

struct fm_call *fm_answer_add_call(struct fm_answer *answer, const char *name) {
    struct fm_call *calls = realloc(answer->calls, (answer->call_count + 1) * sizeof *calls);
    if (!calls) {
        return NULL;
    }
    struct fm_call *call = &calls[answer->call_count++];
    answer->calls = calls;
    *call = (struct fm_call){.start = answer->output.len};
    snprintf(call->name, sizeof call->name, "%s", name);
    return call;
}

enum fm_code fm_answer_call(struct fm_answer *answer, const char *name, struct fm_error *error) {
    if (!may_call(&answer->request, name)) {
        return fm_fail(error, FM_INTERNAL, "the engine called an unknown tool, or one that may not be called");
    }
    if (answer->call_count == (answer->request.one_call ? 1 : FM_CALLS_MAX)) {
        return fm_fail(error, FM_INTERNAL, "the engine made more calls than it may");
    }
    struct fm_call *call = fm_answer_add_call(answer, name);
    if (!call) {
        return fm_fail_no_memory(error);
    }
    fm_id_draw(call->item_id, "fc_");
    fm_id_draw(call->call_id, "call_");
    return FM_OK;
}

void fm_answer_finish(struct fm_answer *answer, enum fm_finish finish, const struct fm_error *error) {
    static const struct fm_error unknown = {.code = FM_INTERNAL, .detail = "The engine failed."};
    answer->finish = finish;
    answer->finished = true;
    answer->completed_at = fm_wall_seconds();
    if (finish == FM_FINISH_FAILED) {
        answer->error = error ? *error : unknown;
    }
}

bool fm_answer_is_kept(const struct fm_answer *answer) {
    return answer->request.store && (answer->opened || answer->request.background);
}

/* ---- choices ---- */

bool fm_answer_has_next(const struct fm_answer *answer) {
    return (int64_t)answer->choice + 1 < answer->request.choices;
}

bool fm_answer_goes_on(const struct fm_answer *answer, enum fm_finish finish) {
    bool wanted = !answer->surface->check_cut || finish == FM_FINISH_LENGTH;
    return wanted && fm_answer_has_next(answer);
}

enum fm_code fm_answer_next(struct fm_answer *answer, enum fm_finish finish, struct fm_error *error) {
    struct fm_answer **earlier = realloc(answer->earlier, (answer->choice + 1) * sizeof(struct fm_answer *));
    struct fm_answer *copy = earlier ? malloc(sizeof *copy) : NULL;
    answer->earlier = earlier ? earlier : answer->earlier;
    if (!copy) {
        return fm_fail_no_memory(error);
    }
    fm_answer_finish(answer, finish, NULL);
    *copy = *answer;
    copy->earlier = NULL;
    earlier[answer->choice++] = copy;
    answer->calls = NULL;
    answer->call_count = 0;
    answer->reasoning_len = 0;
    fm_buf_init(&answer->output, FM_OUTPUT_MAX); /* output_json goes on: all choices share one object */
    fm_buf_init(&answer->pieces, PIECES_MAX);
    fm_logprobs_next(answer);
    answer->usage = (struct fm_usage){.input = answer->usage.input};
    answer->timings = (struct fm_timings){0};
    answer->finished = false;
    answer->completed_at = 0;
    return FM_OK;
}

int64_t fm_answer_seed(const struct fm_answer *answer) {
    return (int64_t)((uint64_t)answer->request.seed + answer->choice);
}

void fm_answer_write_choice(const struct fm_answer *answer, struct fm_json_writer *w) {
    if (answer->request.has_seed) {
        fm_json_key_int(w, "seed", fm_answer_seed(answer));
    }
    if (answer->request.repeatable) {
        fm_json_key_bool(w, "repeatable", true);
    }
    if (answer->surface->check_cut && answer->choice > 0) {
        fm_json_key_double(w, "frequency_penalty", LOOP_PENALTY);
    }
}

struct fm_usage fm_answer_usage(const struct fm_answer *answer) {
    struct fm_usage total = answer->usage;
    for (size_t i = 0; i < answer->choice; i++) {
        const struct fm_usage *usage = &answer->earlier[i]->usage;
        total.input = i == 0 ? usage->input : total.input;
        total.cached = i == 0 ? usage->cached : total.cached;
        total.output += usage->output;
        total.reasoning += usage->reasoning;
    }
    return total;
}

/* ---- the object ---- */

/* Where an item ends in the output: 0 is the text, n the call n - 1. */
static size_t end_of(const struct fm_answer *answer, size_t item) {
    return item < answer->call_count ? answer->calls[item].start : answer->output.len;
}

size_t fm_answer_text_len(const struct fm_answer *answer) {
    return end_of(answer, 0) - answer->reasoning_len;
}

const char *fm_answer_text(const struct fm_answer *answer) {
    return answer->output.data ? answer->output.data + answer->reasoning_len : "";
}

static void write_output(const struct fm_answer *answer, size_t start, size_t end, struct fm_json_writer *w) {
    fm_json_string(w, end > start ? answer->output.data + start : "", end - start);
}

void fm_answer_write_reasoning(const struct fm_answer *answer, struct fm_json_writer *w) {
    write_output(answer, 0, answer->reasoning_len, w);
}

void fm_answer_write_text(const struct fm_answer *answer, struct fm_json_writer *w) {
    write_output(answer, answer->reasoning_len, end_of(answer, 0), w);
}

void fm_answer_write_arguments(const struct fm_answer *answer, size_t index, struct fm_json_writer *w) {
    write_output(answer, answer->calls[index].start, end_of(answer, index + 1), w);
}

/* Whether this choice is a text that ended by itself: only then it is complete. */
static bool ended_whole(const struct fm_answer *choice) {
    return choice->finished && choice->finish == FM_FINISH_STOP && choice->call_count == 0;
}

/* Whether all choices are. An earlier one has no earlier ones itself. */
static bool is_whole(const struct fm_answer *answer) {
    bool whole = ended_whole(answer);
    for (size_t i = 0; i < answer->choice; i++) {
        whole = whole && ended_whole(answer->earlier[i]);
    }
    return whole;
}

/* Without a report from the engine, nothing is enforced. */
static void write_schema_report(const struct fm_answer *answer, enum fm_moment moment, struct fm_json_writer *w) {
    static const char nothing[] = "\"enforced\":[],\"checked\":[]";
    bool whole = moment == FM_MOMENT_NOW && is_whole(answer);
    fm_json_object_begin(w);
    if (answer->report.len > 0 && moment != FM_MOMENT_QUEUED) {
        fm_json_raw(w, answer->report.data, answer->report.len);
    } else {
        fm_json_raw(w, nothing, sizeof nothing - 1);
    }
    if (whole) {
        fm_json_key_bool(w, "valid", !answer->mismatch);
    } else {
        fm_json_key_null(w, "valid");
    }
    fm_json_key_str(w, "error", whole && answer->mismatch ? answer->schema_error : NULL);
    fm_json_object_end(w);
}

/* The ignored path after `last`. No extra is ignored until the job goes to an engine. */
static const char *next_ignored(const struct fm_answer *answer, enum fm_moment moment, const char *last) {
    do {
        last = fm_ignored_next(&answer->request.ignored, last);
    } while (last && moment == FM_MOMENT_QUEUED && fm_is_extra(last));
    return last;
}

static void write_ignored(const struct fm_answer *answer, enum fm_moment moment, struct fm_json_writer *w) {
    fm_json_key(w, "ignored");
    fm_json_array_begin(w);
    for (const char *path = NULL; (path = next_ignored(answer, moment, path));) {
        fm_json_str(w, path);
    }
    fm_json_array_end(w);
}

static bool tells_timings(const struct fm_answer *answer) {
    return answer->request.timings && answer->finished && !fm_answer_has_next(answer);
}

void fm_answer_write_chunk_report(const struct fm_answer *answer, bool first, bool last, struct fm_json_writer *w) {
    bool ignored = first && next_ignored(answer, FM_MOMENT_NOW, NULL);
    bool timings = last && tells_timings(answer);
    if (!ignored && !timings) {
        return;
    }
    fm_json_key(w, "fm");
    fm_json_object_begin(w);
    if (ignored) {
        write_ignored(answer, FM_MOMENT_NOW, w);
    }
    if (timings) {
        fm_timings_write(answer, w);
    }
    fm_json_object_end(w);
}

void fm_answer_write_report(const struct fm_answer *answer, enum fm_moment moment, struct fm_json_writer *w) {
    int64_t dropped = moment == FM_MOMENT_QUEUED ? 0 : answer->dropped;
    bool schema = answer->request.schema_report;
    bool ignored = next_ignored(answer, moment, NULL) != NULL;
    bool timings = moment == FM_MOMENT_NOW && answer->request.timings && answer->finished;
    if (!schema && dropped == 0 && !ignored && !timings) {
        return;
    }
    fm_json_key(w, "fm");
    fm_json_object_begin(w);
    if (schema && answer->request.has_schema) {
        fm_json_key(w, "schema");
        write_schema_report(answer, moment, w);
    } else if (schema) {
        fm_json_key_null(w, "schema");
    }
    if (dropped > 0) {
        fm_json_key_int(w, "dropped_messages", dropped);
    }
    if (ignored) {
        write_ignored(answer, moment, w);
    }
    if (timings) {
        fm_timings_write(answer, w);
    }
    fm_json_object_end(w);
}

/* ---- the stream ---- */

static bool has_event(struct fm_answer *answer, struct fm_cursor *cursor) {
    const struct fm_surface *surface = answer->surface;
    enum fm_event_state state = FM_EVENT_SKIP;
    answer->cursor = cursor;
    while (cursor->next_event < surface->event_count) {
        state = surface->events[cursor->next_event].state(answer);
        if (state != FM_EVENT_SKIP) {
            break;
        }
        cursor->next_event++;
    }
    return state == FM_EVENT_DUE;
}

/* The choice whose events the reader gets now. */
static struct fm_answer *choice_at(struct fm_answer *answer, const struct fm_cursor *cursor) {
    return cursor->choice < answer->choice ? answer->earlier[cursor->choice] : answer;
}

bool fm_answer_has_event(struct fm_answer *answer, struct fm_cursor *cursor) {
    if (!answer->opened && !answer->request.background) {
        return false;
    }
    while (cursor->choice < answer->choice && !has_event(choice_at(answer, cursor), cursor)) {
        *cursor = (struct fm_cursor){.choice = cursor->choice + 1, .sequence = cursor->sequence};
    }
    return has_event(choice_at(answer, cursor), cursor);
}

void fm_answer_write_event(struct fm_answer *answer, struct fm_cursor *cursor, struct fm_json_writer *w) {
    struct fm_answer *choice = choice_at(answer, cursor);
    const struct fm_event_row *row = &choice->surface->events[cursor->next_event];
    choice->cursor = cursor;
    row->write(choice, w);
    cursor->next_event = (size_t)((ptrdiff_t)cursor->next_event + row->step);
}

size_t fm_answer_backlog(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    if (!cursor) {
        return answer->finished ? answer->output.len : 0;
    }
    size_t backlog = answer->output.len;
    for (size_t i = cursor->choice; i < answer->choice; i++) {
        backlog += answer->earlier[i]->output.len;
    }
    bool ends = answer->finished && cursor->choice == answer->choice; /* the last events of a stream have all of it */
    return ends ? backlog : backlog - cursor->sent;
}

enum fm_event_state fm_event_due(const struct fm_answer *answer) {
    (void)answer;
    return FM_EVENT_DUE;
}

enum fm_event_state fm_event_reasoning_state(const struct fm_answer *answer) {
    if (answer->cursor->sent < answer->reasoning_len) {
        return FM_EVENT_DUE;
    }
    bool over = answer->finished || answer->call_count > 0 || fm_answer_text_len(answer) > 0;
    return over ? FM_EVENT_SKIP : FM_EVENT_LATER;
}

/* DUE while the open item has output to send, LATER while more may come. */
static enum fm_event_state piece_state(const struct fm_answer *answer) {
    if (answer->cursor->sent < end_of(answer, answer->cursor->calls_begun)) {
        return FM_EVENT_DUE;
    }
    bool over = answer->finished || answer->cursor->calls_begun < answer->call_count;
    return over ? FM_EVENT_SKIP : FM_EVENT_LATER;
}

enum fm_event_state fm_event_text_state(const struct fm_answer *answer) {
    return piece_state(answer); /* the rows of calls come later, so no call has begun */
}

enum fm_event_state fm_event_arguments_state(const struct fm_answer *answer) {
    return answer->cursor->calls_begun > 0 ? piece_state(answer) : FM_EVENT_SKIP;
}

enum fm_event_state fm_event_call_state(const struct fm_answer *answer) {
    if (answer->cursor->calls_begun < answer->call_count) {
        return FM_EVENT_DUE;
    }
    return answer->finished ? FM_EVENT_SKIP : FM_EVENT_LATER;
}

/* Where the next piece ends, which no reader has had yet. `end` is the end of its item. */
static size_t cut_piece(const struct fm_answer *answer, size_t end, bool logprobs) {
    size_t start = answer->cursor->sent;
    if (end - start > DELTA_MAX) {
        end = start + DELTA_MAX;
        while (((unsigned char)answer->output.data[end] & 0xC0) == 0x80) { /* an item is whole characters */
            end--;
        }
    }
    return logprobs ? fm_logprobs_piece_end(answer, end) : end;
}

/* Moves the reader past its next piece: the one that other readers had, or a new one up to `end`, its item's end. */
static void take_piece(struct fm_answer *answer, size_t end) {
    struct fm_cursor *cursor = answer->cursor;
    bool text = cursor->calls_begun == 0 && cursor->sent >= answer->reasoning_len;
    bool logprobs = answer->request.logprobs && text;
    if (cursor->pieces < fm_answer_piece_count(answer)) {
        end = fm_answer_pieces(answer)[cursor->pieces];
    } else {
        end = cut_piece(answer, end, logprobs);
        if (answer->request.store) { /* if memory runs out, deltas may differ between readers */
            fm_buf_append(&answer->pieces, &end, sizeof end);
        }
    }
    if (logprobs) {
        fm_logprobs_take(answer, end);
    }
    cursor->sent = end;
    cursor->pieces++;
}

size_t fm_answer_piece_count(const struct fm_answer *answer) {
    return answer->pieces.len / sizeof(size_t);
}

const size_t *fm_answer_pieces(const struct fm_answer *answer) {
    return (const void *)answer->pieces.data;
}

void fm_answer_cut(struct fm_answer *answer) {
    struct fm_cursor cursor = {0};
    answer->cursor = &cursor;
    while (cursor.sent < end_of(answer, 0)) {
        take_piece(answer, cursor.sent < answer->reasoning_len ? answer->reasoning_len : end_of(answer, 0));
    }
    for (cursor.calls_begun = 1; cursor.calls_begun <= answer->call_count; cursor.calls_begun++) {
        do { /* a call without arguments also has a delta */
            take_piece(answer, end_of(answer, cursor.calls_begun));
        } while (cursor.sent < end_of(answer, cursor.calls_begun));
    }
    answer->cursor = NULL;
}

static void write_piece(struct fm_answer *answer, size_t end, struct fm_json_writer *w) {
    size_t start = answer->cursor->sent;
    take_piece(answer, end);
    write_output(answer, start, answer->cursor->sent, w);
}

void fm_event_write_reasoning_piece(struct fm_answer *answer, struct fm_json_writer *w) {
    write_piece(answer, answer->reasoning_len, w);
}

void fm_event_write_piece(struct fm_answer *answer, struct fm_json_writer *w) {
    write_piece(answer, end_of(answer, answer->cursor->calls_begun), w);
}
