#include "surface/answer.h"
#include "base/clock.h"
#include "base/platform.h"
#include "base/utf8.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DELTA_MAX 32768u /* bytes of output in one delta, when a slow host let it collect */

#define ID_RANDOM 16 /* bytes; each is two hex digits */

void fm_id_draw(char id[FM_ID_SIZE], const char *prefix) {
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[ID_RANDOM];
    fm_random(bytes, sizeof bytes);
    size_t len = strlen(prefix);
    memcpy(id, prefix, len);
    for (size_t i = 0; i < sizeof bytes; i++) {
        id[len++] = digits[bytes[i] >> 4];
        id[len++] = digits[bytes[i] & 15];
    }
    id[len] = '\0';
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
    fm_logprobs_init(answer);
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
    fm_buf_free(&answer->report);
}

void fm_answer_drop(struct fm_answer *answer, int64_t messages) {
    answer->dropped = messages;
}

void fm_answer_open(struct fm_answer *answer, int64_t input_tokens) {
    answer->usage.input = input_tokens;
    answer->opened = true;
    if (answer->request.output_start.len > 0) { /* not before: it would wait for the host with nobody to send it */
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
        return fm_fail(error, FM_INTERNAL, "the engine sent a thought behind text or a call");
    }
    if (!fm_answer_append(answer, text, len)) {
        return fm_fail(error, FM_INTERNAL, "the answer is too large to hold");
    }
    answer->reasoning_len = answer->output.len;
    return FM_OK;
}

bool fm_answer_append(struct fm_answer *answer, const char *text, size_t len) {
    size_t json = fm_json_string_size(text, len) - 2; /* without the quotes */
    if (json > FM_OUTPUT_MAX - answer->output_json) {
        answer->output.failed = true; /* for good: what came later would leave a hole before it */
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

enum fm_code fm_answer_call(struct fm_answer *answer, const char *name, struct fm_error *error) {
    if (!may_call(&answer->request, name)) {
        return fm_fail(error, FM_INTERNAL, "the engine called an unknown tool, or one that may not be called");
    }
    if (answer->call_count == (answer->request.one_call ? 1 : FM_CALLS_MAX)) {
        return fm_fail(error, FM_INTERNAL, "the engine made more calls than it may");
    }
    struct fm_call *calls = realloc(answer->calls, (answer->call_count + 1) * sizeof *calls);
    if (!calls) {
        return fm_fail_no_memory(error);
    }
    struct fm_call *call = &calls[answer->call_count];
    *call = (struct fm_call){.start = answer->output.len};
    snprintf(call->name, sizeof call->name, "%s", name);
    fm_id_draw(call->item_id, "fc_");
    fm_id_draw(call->call_id, "call_");
    answer->calls = calls;
    answer->call_count++;
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
    fm_buf_init(&answer->output, FM_OUTPUT_MAX); /* output_json goes on: they are told together */
    fm_logprobs_next(answer);
    answer->usage = (struct fm_usage){.input = answer->usage.input};
    answer->finished = false;
    answer->completed_at = 0;
    answer->next_event = 0;
    answer->calls_begun = 0;
    answer->sent = 0;
    return FM_OK;
}

int64_t fm_answer_seed(const struct fm_answer *answer) {
    return (int64_t)((uint64_t)answer->request.seed + answer->choice);
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

/* Where what is behind the reasoning ends in the output: 0 is the text, n the call n - 1. */
static size_t end_of(const struct fm_answer *answer, size_t item) {
    return item < answer->call_count ? answer->calls[item].start : answer->output.len;
}

size_t fm_answer_text_len(const struct fm_answer *answer) {
    return end_of(answer, 0) - answer->reasoning_len;
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

/* All choices are texts that ended well. */
static bool is_whole(const struct fm_answer *answer) {
    bool whole = answer->finished && answer->finish == FM_FINISH_STOP && answer->call_count == 0;
    for (size_t i = 0; i < answer->choice; i++) {
        whole = whole && is_whole(answer->earlier[i]);
    }
    return whole;
}

/* An engine that told nothing has nothing to enforce. */
static void write_schema_report(const struct fm_answer *answer, bool begun, struct fm_json_writer *w) {
    static const char nothing[] = "\"enforced\":[],\"checked\":[]";
    bool whole = !begun && is_whole(answer);
    fm_json_object_begin(w);
    if (answer->report.len > 0) {
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

void fm_answer_write_report(const struct fm_answer *answer, bool begun, struct fm_json_writer *w) {
    bool schema = answer->request.schema_report;
    if (!schema && answer->dropped == 0) {
        return;
    }
    fm_json_key(w, "fm");
    fm_json_object_begin(w);
    if (schema && answer->request.has_schema) {
        fm_json_key(w, "schema");
        write_schema_report(answer, begun, w);
    } else if (schema) {
        fm_json_key_null(w, "schema");
    }
    if (answer->dropped > 0) {
        fm_json_key_int(w, "dropped_messages", answer->dropped);
    }
    fm_json_object_end(w);
}

/* ---- the stream ---- */

static bool has_event(struct fm_answer *answer) {
    const struct fm_surface *surface = answer->surface;
    enum fm_event_state state = FM_EVENT_SKIP;
    while (answer->next_event < surface->event_count) {
        state = surface->events[answer->next_event].state(answer);
        if (state != FM_EVENT_SKIP) {
            break;
        }
        answer->next_event++;
    }
    return state == FM_EVENT_DUE;
}

/* The choice whose events are to be sent now. */
static struct fm_answer *telling(struct fm_answer *answer) {
    return answer->told_choices < answer->choice ? answer->earlier[answer->told_choices] : answer;
}

bool fm_answer_has_event(struct fm_answer *answer) {
    if (!answer->request.stream || !(answer->opened || answer->request.background)) {
        return false;
    }
    while (answer->told_choices < answer->choice && !has_event(telling(answer))) {
        answer->told_choices++;
    }
    return has_event(telling(answer));
}

void fm_answer_write_event(struct fm_answer *answer, struct fm_json_writer *w) {
    struct fm_answer *choice = telling(answer);
    const struct fm_event_row *row = &choice->surface->events[choice->next_event];
    row->write(choice, w);
    choice->next_event = (size_t)((ptrdiff_t)choice->next_event + row->step);
}

size_t fm_answer_backlog(const struct fm_answer *answer) {
    size_t backlog = 0;
    for (size_t i = answer->told_choices; i < answer->choice; i++) {
        const struct fm_answer *earlier = answer->earlier[i];
        backlog += answer->request.stream ? earlier->output.len - earlier->sent : 0;
    }
    if (answer->request.stream && !answer->finished) {
        return backlog + answer->output.len - answer->sent;
    }
    return backlog + (answer->finished ? answer->output.len : 0); /* the last events of a stream have all of it */
}

enum fm_event_state fm_event_due(const struct fm_answer *answer) {
    (void)answer;
    return FM_EVENT_DUE;
}

enum fm_event_state fm_event_reasoning_state(const struct fm_answer *answer) {
    if (answer->sent < answer->reasoning_len) {
        return FM_EVENT_DUE;
    }
    bool over = answer->finished || answer->call_count > 0 || fm_answer_text_len(answer) > 0;
    return over ? FM_EVENT_SKIP : FM_EVENT_LATER;
}

/* While there is output of the open item, or there may still be. */
static enum fm_event_state piece_state(const struct fm_answer *answer) {
    if (answer->sent < end_of(answer, answer->calls_begun)) {
        return FM_EVENT_DUE;
    }
    bool over = answer->finished || answer->calls_begun < answer->call_count;
    return over ? FM_EVENT_SKIP : FM_EVENT_LATER;
}

enum fm_event_state fm_event_text_state(const struct fm_answer *answer) {
    return piece_state(answer); /* no call has begun yet where this is asked */
}

enum fm_event_state fm_event_arguments_state(const struct fm_answer *answer) {
    return answer->calls_begun > 0 ? piece_state(answer) : FM_EVENT_SKIP;
}

enum fm_event_state fm_event_call_state(const struct fm_answer *answer) {
    if (answer->calls_begun < answer->call_count) {
        return FM_EVENT_DUE;
    }
    return answer->finished ? FM_EVENT_SKIP : FM_EVENT_LATER;
}

/* Up to `end` of the output, where an item ends. */
static void write_piece(struct fm_answer *answer, size_t end, struct fm_json_writer *w) {
    if (end - answer->sent > DELTA_MAX) {
        end = answer->sent + DELTA_MAX;
        while (((unsigned char)answer->output.data[end] & 0xC0) == 0x80) { /* an item is whole characters */
            end--;
        }
    }
    if (answer->request.logprobs && answer->calls_begun == 0 && answer->sent >= answer->reasoning_len) {
        end = fm_logprobs_piece_end(answer, end);
    }
    write_output(answer, answer->sent, end, w);
    answer->sent = end;
}

void fm_event_write_reasoning_piece(struct fm_answer *answer, struct fm_json_writer *w) {
    write_piece(answer, answer->reasoning_len, w);
}

void fm_event_write_piece(struct fm_answer *answer, struct fm_json_writer *w) {
    write_piece(answer, end_of(answer, answer->calls_begun), w);
}
