/*
 * An answer: what an engine has produced for a request, and the stream of events about it. Output is only ever
 * appended.
 */
#include "surface/answer.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "protocol/frame.h"
#include "surface/custom.h"
#include "surface/ignored.h"
#include "surface/request.h"
#include "surface/timings.h"
#include "surface/usage.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DELTA_MAX 32768u /* most bytes of output in one delta; more may collect while a host is slow */

#define PIECES_MAX (sizeof(size_t) * FM_OUTPUT_MAX)

/* Bytes of a frame besides output and echo: ids and names of 128 calls, a schema report of 1 MiB, usage. */
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

/* Makes room for one more part. So the part that an empty answer gets at its end needs no memory at that time. */
static bool make_room(struct fm_answer *answer) {
    struct fm_output_part *parts = realloc(answer->parts, (answer->part_count + 1) * sizeof *parts);
    answer->parts = parts ? parts : answer->parts;
    return parts != NULL;
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
    }
    if (!answer->model || !make_room(answer)) {
        fm_answer_free(answer);
        return fm_fail_no_memory(error);
    }
    return FM_OK;
}

static void free_output(struct fm_answer *answer) {
    for (size_t i = 0; i < answer->part_count; i++) {
        free(answer->parts[i].state);
    }
    free(answer->parts);
    answer->parts = NULL;
    answer->part_count = 0;
    answer->call_count = 0;
    fm_buf_free(&answer->output);
    fm_buf_free(&answer->pieces);
    fm_logprobs_free(answer);
}

static void free_earlier(struct fm_answer *answer) {
    for (size_t i = 0; answer->earlier && i < answer->choice; i++) {
        free_output(answer->earlier[i]);
        free(answer->earlier[i]);
    }
    free(answer->earlier);
    answer->earlier = NULL;
}

void fm_answer_free(struct fm_answer *answer) {
    free_earlier(answer);
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

void fm_answer_call_unknown(struct fm_answer *answer, const char *name) {
    if (name && !answer->unknown_tool[0]) {
        int shown = fm_utf8_shown(name, sizeof answer->unknown_tool - 1);
        snprintf(answer->unknown_tool, sizeof answer->unknown_tool, "%.*s", shown, name);
    }
}

void fm_answer_open(struct fm_answer *answer, int64_t input_tokens) {
    answer->usage.input = input_tokens;
    answer->opened = true;
    size_t len = 0;
    const char *prompt = answer->request.echo_prompt ? fm_request_prompt(&answer->request, answer->choice, &len) : NULL;
    if (len > 0) { /* not earlier, because it would count as backlog that nobody can send */
        (void)fm_answer_add_part(answer, FM_PART_TEXT); /* there is always room for the first part */
        bool kept = fm_answer_append_raw(answer, prompt, len);
        (void)kept; /* if memory runs out, all later steps fail too */
    }
}

void fm_answer_progress(struct fm_answer *answer, int64_t processed, int64_t ms) {
    answer->processed = processed;
    answer->processed_ms = ms;
}

void fm_answer_restart(struct fm_answer *answer, bool all) {
    for (size_t i = 0; i < answer->part_count; i++) {
        free(answer->parts[i].state);
    }
    if (all) {
        free_earlier(answer);
        answer->choice = 0;
    }
    answer->part_count = 0; /* the memory of the parts is kept for the next part */
    answer->call_count = 0;
    answer->state_count = 0;
    answer->state_bytes = 0;
    answer->entry_count = 0;
    fm_buf_free(&answer->output);
    fm_buf_free(&answer->pieces);
    fm_logprobs_free(answer);
    if (answer->choice == 0) {
        answer->opened = false;
        answer->mismatch = false; /* otherwise `mismatch` belongs to an earlier choice */
        answer->output_json = 0;
        fm_buf_free(&answer->report);
        share_frame(answer);
    } else {
        answer->output_json = answer->earlier[answer->choice - 1]->output_json;
    }
    answer->usage = (struct fm_usage){.input = answer->usage.input};
    answer->processed = 0;
    answer->timings = (struct fm_timings){0};
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

const struct fm_output_part *fm_answer_last_part(const struct fm_answer *answer) {
    return answer->part_count ? &answer->parts[answer->part_count - 1] : NULL;
}

static void draw_item_id(const struct fm_answer *answer, struct fm_output_part *part) {
    const char *prefix = part->kind != FM_PART_CALL ? "rs_" : part->custom ? "ctc_" : "fc_";
    if (answer->surface->item_prefix) {
        bool message = part->kind == FM_PART_TEXT || part->kind == FM_PART_REFUSAL;
        fm_id_draw(part->item_id, message ? answer->surface->item_prefix : prefix);
    }
}

struct fm_output_part *fm_answer_add_part(struct fm_answer *answer, enum fm_output_kind kind) {
    if (answer->part_count == FM_PARTS_MAX) {
        return NULL;
    }
    struct fm_output_part *part = &answer->parts[answer->part_count++];
    *part = (struct fm_output_part){.kind = kind, .start = answer->output.len};
    if (!make_room(answer)) {
        answer->part_count--;
        return NULL;
    }
    answer->call_count += kind == FM_PART_CALL;
    return &answer->parts[answer->part_count - 1];
}

/*
 * Begins a part of that kind, unless the last part is of that kind and has no state. False when out of memory, or with
 * too many parts.
 */
static bool begin_kind(struct fm_answer *answer, enum fm_output_kind kind) {
    const struct fm_output_part *last = fm_answer_last_part(answer);
    if (last && last->kind == kind && !last->state) {
        return true;
    }
    struct fm_output_part *part = fm_answer_add_part(answer, kind);
    if (part) {
        draw_item_id(answer, part);
    }
    return part != NULL;
}

bool fm_answer_append_raw(struct fm_answer *answer, const char *text, size_t len) {
    size_t json = fm_json_string_size(text, len) - 2; /* without the quotes */
    if (json > answer->output_max - answer->output_json) {
        answer->output.failed = true; /* stays set, because later output would leave a gap */
    }
    fm_buf_append(&answer->output, text, len);
    if (answer->output.failed) {
        return false;
    }
    answer->output_json += json;
    return true;
}

static enum fm_code too_large(struct fm_error *error) {
    return fm_fail(error, FM_INTERNAL, "the answer is too large to hold");
}

static bool is_refused(const struct fm_answer *answer) {
    const struct fm_output_part *last = fm_answer_last_part(answer);
    return last && last->kind == FM_PART_REFUSAL;
}

enum fm_code fm_answer_reason(struct fm_answer *answer, const char *text, size_t len, struct fm_error *error) {
    const struct fm_output_part *last = fm_answer_last_part(answer);
    bool begun = last && last->kind != FM_PART_REASONING;
    if (len == 0) {
        return FM_OK; /* an empty text begins no part */
    }
    if (begun && (!answer->any_order || is_refused(answer))) {
        return fm_fail(error, FM_INTERNAL, "the engine sent a thought after text or a call");
    }
    return begin_kind(answer, FM_PART_REASONING) && fm_answer_append_raw(answer, text, len) ? FM_OK : too_large(error);
}

enum fm_code fm_answer_say(struct fm_answer *answer, enum fm_output_kind kind, const char *text, size_t len,
                           struct fm_error *error) {
    if (is_refused(answer) && kind != FM_PART_REFUSAL) {
        return fm_fail(error, FM_INTERNAL, "the engine sent more after a refusal");
    }
    if (answer->call_count > 0 && !answer->any_order) {
        return fm_fail(error, FM_INTERNAL, "the engine sent text after a call");
    }
    if (len == 0) {
        return FM_OK; /* an empty text begins no part */
    }
    return begin_kind(answer, kind) && fm_answer_append_raw(answer, text, len) ? FM_OK : too_large(error);
}

/* Adds what a piece of the arguments has of the text of a custom tool's call. */
static bool append_custom(struct fm_answer *answer, const char *piece, size_t len) {
    struct fm_buf text;
    fm_buf_init(&text, FM_OUTPUT_MAX);
    fm_custom_read(&answer->custom, piece, len, &text);
    bool added = !text.failed && (text.len == 0 || fm_answer_append_raw(answer, text.data, text.len));
    answer->output.failed |= text.failed;
    fm_buf_free(&text);
    return added;
}

bool fm_answer_append(struct fm_answer *answer, const char *text, size_t len) {
    const struct fm_output_part *last = fm_answer_last_part(answer);
    bool goes_on = last && last->kind == FM_PART_CALL;
    if (goes_on && last->custom) {
        return append_custom(answer, text, len);
    }
    return (goes_on || len == 0 || begin_kind(answer, FM_PART_TEXT)) && fm_answer_append_raw(answer, text, len);
}

bool fm_part_set_state(struct fm_answer *answer, struct fm_output_part *part, const char *state, size_t len) {
    part->state = malloc(len + 1);
    if (!part->state) {
        return false;
    }
    memcpy(part->state, state, len);
    part->state[len] = '\0';
    part->state_len = len;
    answer->state_count++;
    answer->state_bytes += len;
    return true;
}

enum fm_code fm_answer_state(struct fm_answer *answer, const char *state, size_t len, struct fm_error *error) {
    if (answer->state_count == FM_STATES_MAX || len > FM_STATE_BYTES_MAX - answer->state_bytes) {
        return fm_fail(error, FM_INTERNAL, "the engine wants more of its state back than an answer can hold");
    }
    size_t json = fm_json_string_size(state, len);
    if (json > answer->output_max - answer->output_json || is_refused(answer)) {
        return too_large(error);
    }
    if (!begin_kind(answer, FM_PART_REASONING)) {
        return too_large(error);
    }
    answer->output_json += json;
    bool kept = fm_part_set_state(answer, &answer->parts[answer->part_count - 1], state, len);
    return kept ? FM_OK : fm_fail_no_memory(error);
}

/* The tool `name` (enum fm_tool_use); 0: there is none. */
static unsigned find_tool(const struct fm_request *request, const char *name) {
    const char *tool = request->tools.data;
    const char *end = tool ? tool + request->tools.len : NULL;
    while (tool != end && strcmp(tool + 1, name) != 0) {
        tool += strlen(tool) + 1;
    }
    return tool != end ? (unsigned char)*tool : 0;
}

enum fm_code fm_answer_call(struct fm_answer *answer, const char *name, struct fm_error *error) {
    unsigned tool = find_tool(&answer->request, name);
    if (!(tool & FM_TOOL_ALLOWED)) {
        return fm_fail(error, FM_INTERNAL, "the engine called an unknown tool, or one that may not be called");
    }
    if (answer->call_count == (answer->request.one_call ? 1 : FM_CALLS_MAX)) {
        return fm_fail(error, FM_INTERNAL, "the engine made more calls than it may");
    }
    if (is_refused(answer)) {
        return fm_fail(error, FM_INTERNAL, "the engine sent more after a refusal");
    }
    struct fm_output_part *call = fm_answer_add_part(answer, FM_PART_CALL);
    if (!call) {
        return answer->part_count == FM_PARTS_MAX ? too_large(error) : fm_fail_no_memory(error);
    }
    call->custom = tool & FM_TOOL_CUSTOM;
    answer->custom = (struct fm_custom_reader){0};
    draw_item_id(answer, call);
    fm_id_draw(call->call_id, "call_");
    snprintf(call->name, sizeof call->name, "%s", name);
    return FM_OK;
}

/* Adds an empty text to a completed answer that has no text, no call and no refusal. The last room is for this part. */
static void end_with_text(struct fm_answer *answer) {
    bool wanted = answer->surface->item_prefix && answer->finish == FM_FINISH_STOP && answer->call_count == 0 &&
                  !answer->request.prefill_only;
    if (wanted && !fm_answer_has(answer, FM_PART_TEXT) && !fm_answer_has(answer, FM_PART_REFUSAL)) {
        struct fm_output_part *part = &answer->parts[answer->part_count++];
        *part = (struct fm_output_part){.kind = FM_PART_TEXT, .start = answer->output.len};
        draw_item_id(answer, part);
    }
}

void fm_answer_finish(struct fm_answer *answer, enum fm_finish finish, const struct fm_error *error) {
    static const struct fm_error unknown = {.code = FM_INTERNAL, .detail = "The engine failed."};
    bool whole = finish == FM_FINISH_LENGTH && answer->request.prefill_only; /* nothing more was asked for */
    answer->finish = whole ? FM_FINISH_STOP : finish;
    answer->finished = true;
    answer->completed_at = fm_wall_seconds();
    end_with_text(answer);
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
    struct fm_output_part *parts = copy ? malloc(sizeof *parts) : NULL;
    answer->earlier = earlier ? earlier : answer->earlier;
    if (!parts) {
        free(copy);
        return fm_fail_no_memory(error);
    }
    fm_answer_finish(answer, finish, NULL);
    *copy = *answer;
    copy->earlier = NULL;
    earlier[answer->choice++] = copy;
    answer->parts = parts;
    answer->part_count = 0;
    answer->call_count = 0;
    answer->state_count = 0;
    answer->state_bytes = 0;
    fm_buf_init(&answer->output, FM_OUTPUT_MAX); /* output_json goes on: all choices share the room of one object */
    fm_buf_init(&answer->pieces, PIECES_MAX);
    fm_logprobs_next(answer);
    bool same = !fm_request_begins_prompt(&answer->request, answer->choice); /* of another prompt nothing is read yet */
    answer->usage = (struct fm_usage){.input = same ? answer->usage.input : 0};
    answer->processed = 0;
    answer->timings = (struct fm_timings){0};
    answer->finished = false;
    answer->completed_at = 0;
    return FM_OK;
}

int64_t fm_answer_seed(const struct fm_answer *answer) {
    return (int64_t)((uint64_t)answer->request.seed + answer->choice);
}

void fm_answer_write_prompt(const struct fm_answer *answer, struct fm_json_writer *w) {
    if (answer->request.prompt_ends.len > 0) {
        size_t len;
        const char *prompt = fm_request_prompt(&answer->request, answer->choice, &len);
        fm_json_key(w, "prompt");
        fm_json_string(w, prompt, len);
    }
}

void fm_answer_write_choice(const struct fm_answer *answer, struct fm_json_writer *w) {
    if (answer->request.has_seed) {
        fm_json_key_int(w, "seed", fm_answer_seed(answer));
    }
    if (answer->request.repeatable) {
        fm_json_key_bool(w, "repeatable", true);
    }
    if (answer->request.prefill_only) {
        fm_json_key_bool(w, "generate", false);
    }
    if (answer->surface->check_cut && answer->choice > 0) {
        fm_json_key_double(w, "frequency_penalty", LOOP_PENALTY);
    }
}

/* ---- the object ---- */

/* Where the part `index` ends in the output. */
static size_t end_of(const struct fm_answer *answer, size_t index) {
    return index + 1 < answer->part_count ? answer->parts[index + 1].start : answer->output.len;
}

size_t fm_answer_part_len(const struct fm_answer *answer, size_t index) {
    return end_of(answer, index) - answer->parts[index].start;
}

/* The first part of that kind from `index` on; part_count: there is none. */
static size_t first_of(const struct fm_answer *answer, enum fm_output_kind kind, size_t index) {
    while (index < answer->part_count && answer->parts[index].kind != kind) {
        index++;
    }
    return index;
}

bool fm_answer_has(const struct fm_answer *answer, enum fm_output_kind kind) {
    return first_of(answer, kind, 0) < answer->part_count;
}

size_t fm_answer_text_len(const struct fm_answer *answer) {
    size_t text = first_of(answer, FM_PART_TEXT, 0);
    return text < answer->part_count ? fm_answer_part_len(answer, text) : 0;
}

const char *fm_answer_text(const struct fm_answer *answer) {
    size_t text = first_of(answer, FM_PART_TEXT, 0);
    return text < answer->part_count && answer->output.data ? answer->output.data + answer->parts[text].start : "";
}

static void write_output(const struct fm_answer *answer, size_t start, size_t end, struct fm_json_writer *w) {
    fm_json_string(w, end > start ? answer->output.data + start : "", end - start);
}

void fm_answer_write_part(const struct fm_answer *answer, size_t index, struct fm_json_writer *w) {
    write_output(answer, answer->parts[index].start, end_of(answer, index), w);
}

void fm_answer_write_kind(const struct fm_answer *answer, enum fm_output_kind kind, struct fm_json_writer *w) {
    size_t first = first_of(answer, kind, 0);
    if (first == answer->part_count) {
        fm_json_str(w, "");
        return;
    }
    if (first_of(answer, kind, first + 1) == answer->part_count) {
        fm_answer_write_part(answer, first, w);
        return;
    }
    struct fm_buf joined;
    fm_buf_init(&joined, FM_OUTPUT_MAX);
    for (size_t i = first; i < answer->part_count; i = first_of(answer, kind, i + 1)) {
        fm_buf_append(&joined, answer->output.data + answer->parts[i].start, fm_answer_part_len(answer, i));
    }
    fm_json_string(w, joined.len ? joined.data : "", joined.len);
    w->buf->failed |= joined.failed;
    fm_buf_free(&joined);
}

size_t fm_answer_calls_before(const struct fm_answer *answer, size_t index) {
    size_t calls = 0;
    for (size_t i = 0; i < index; i++) {
        calls += answer->parts[i].kind == FM_PART_CALL;
    }
    return calls;
}

/* Whether this choice is a text that ended by itself. Only such a choice is complete. */
static bool ended_whole(const struct fm_answer *choice) {
    return choice->finished && choice->finish == FM_FINISH_STOP && choice->call_count == 0;
}

/* Whether all choices are texts that ended by themselves. An earlier choice has no `earlier` choices of its own. */
static bool is_whole(const struct fm_answer *answer) {
    bool whole = ended_whole(answer);
    for (size_t i = 0; i < answer->choice; i++) {
        whole = whole && ended_whole(answer->earlier[i]);
    }
    return whole;
}

/* Reports the schema. Without a report from the engine, nothing is enforced. */
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

/* The ignored path after `last`. Extras are left out until the job goes to an engine, which decides about them. */
static const char *next_ignored(const struct fm_answer *answer, enum fm_moment moment, const char *last) {
    do {
        last = fm_ignored_next(&answer->request.ignored, last);
    } while (last && moment == FM_MOMENT_QUEUED && fm_param_is_extra(last));
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

/* Whether to report the engine. The engine may change before the first output, so it is reported at the end. */
static bool tells_engine(const struct fm_answer *answer) {
    return answer->engine[0] && answer->finished && !fm_answer_has_next(answer);
}

static bool tells_unknown(const struct fm_answer *answer) {
    return answer->unknown_tool[0] && answer->finished && !fm_answer_has_next(answer);
}

static bool tells_timings(const struct fm_answer *answer) {
    return answer->request.timings && answer->finished && !fm_answer_has_next(answer);
}

/*
 * Whether to report which counts are not known. APIs without `whole_usage` omit unknown counts, so they need no report.
 */
static bool tells_uncounted(const struct fm_answer *answer) {
    const struct fm_usage usage = fm_answer_usage(answer);
    return answer->surface->whole_usage && answer->finished && fm_usage_has_uncounted(&usage);
}

void fm_answer_write_chunk_report(const struct fm_answer *answer, bool first, bool last, struct fm_json_writer *w) {
    bool ignored = first && next_ignored(answer, FM_MOMENT_NOW, NULL);
    bool timings = last && tells_timings(answer);
    bool engine = last && tells_engine(answer);
    bool unknown = last && tells_unknown(answer);
    if (!ignored && !timings && !engine && !unknown) {
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
    if (engine) {
        fm_json_key_str(w, "engine", answer->engine);
    }
    if (unknown) {
        fm_json_key_str(w, "unknown_tool", answer->unknown_tool);
    }
    fm_json_object_end(w);
}

void fm_answer_write_report(const struct fm_answer *answer, enum fm_moment moment, struct fm_json_writer *w) {
    int64_t dropped = moment == FM_MOMENT_QUEUED ? 0 : answer->dropped;
    bool schema = answer->request.schema_report;
    bool ignored = next_ignored(answer, moment, NULL) != NULL;
    bool timings = moment == FM_MOMENT_NOW && answer->request.timings && answer->finished;
    bool engine = moment == FM_MOMENT_NOW && answer->engine[0] && answer->finished;
    bool unknown = moment == FM_MOMENT_NOW && tells_unknown(answer);
    bool uncounted = moment == FM_MOMENT_NOW && tells_uncounted(answer);
    if (!schema && dropped == 0 && !ignored && !timings && !engine && !unknown && !uncounted) {
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
    if (engine) {
        fm_json_key_str(w, "engine", answer->engine);
    }
    if (unknown) {
        fm_json_key_str(w, "unknown_tool", answer->unknown_tool);
    }
    if (uncounted) {
        const struct fm_usage usage = fm_answer_usage(answer);
        fm_usage_write_uncounted(&usage, w);
    }
    fm_json_object_end(w);
}

/* ---- the stream ---- */

/* Whether the reader gets an event about the prompt: it asked for them, and there is something new before the output.
 */
static bool has_progress(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    bool reading = answer->opened && !answer->finished && answer->usage.output == 0;
    return answer->request.progress && reading && answer->usage.input > 0 && answer->processed > cursor->processed;
}

static int next_event(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    int event = answer->surface->next ? answer->surface->next(answer, cursor) : FM_EVENT_END;
    return event == FM_EVENT_NONE && has_progress(answer, cursor) ? FM_EVENT_PROGRESS : event;
}

/* The choice whose events the reader gets now. */
static struct fm_answer *choice_at(struct fm_answer *answer, const struct fm_cursor *cursor) {
    return cursor->choice < answer->choice ? answer->earlier[cursor->choice] : answer;
}

bool fm_answer_has_event(struct fm_answer *answer, struct fm_cursor *cursor) {
    if (!answer->opened && !answer->request.background) {
        return false;
    }
    while (cursor->choice < answer->choice && next_event(choice_at(answer, cursor), cursor) == FM_EVENT_END) {
        *cursor = (struct fm_cursor){.choice = cursor->choice + 1, .sequence = cursor->sequence};
    }
    int event = next_event(choice_at(answer, cursor), cursor);
    return event != FM_EVENT_NONE && event != FM_EVENT_END;
}

void fm_answer_write_event(struct fm_answer *answer, struct fm_cursor *cursor, struct fm_json_writer *w) {
    struct fm_answer *choice = choice_at(answer, cursor);
    int event = next_event(choice, cursor);
    choice->surface->write_event(choice, cursor, event, w);
    if (event == FM_EVENT_PROGRESS) {
        cursor->processed = choice->processed;
    } else {
        cursor->last = event;
    }
}

bool fm_answer_event_is_part(struct fm_answer *answer, const struct fm_cursor *cursor) {
    int event = next_event(choice_at(answer, cursor), cursor);
    return event == FM_EVENT_DELTA || event == FM_EVENT_PROGRESS;
}

size_t fm_answer_size(const struct fm_answer *answer) {
    size_t size = answer->request.echo.len + answer->report.len + answer->state_bytes;
    for (size_t i = 0; i <= answer->choice; i++) {
        const struct fm_answer *choice = i < answer->choice ? answer->earlier[i] : answer;
        size += choice->output.len + choice->logprobs.len;
    }
    return size;
}

size_t fm_answer_backlog(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    if (!cursor) {
        return answer->finished ? answer->output.len : 0;
    }
    size_t backlog = answer->output.len;
    for (size_t i = cursor->choice; i < answer->choice; i++) {
        backlog += answer->earlier[i]->output.len;
    }
    bool ends = answer->finished && cursor->choice == answer->choice; /* a stream's last events have all of it */
    return ends ? backlog : backlog - cursor->sent;
}

const struct fm_output_part *fm_event_open_part(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    return cursor->parts_begun ? &answer->parts[cursor->parts_begun - 1] : NULL;
}

size_t fm_event_open_index(const struct fm_cursor *cursor) {
    return cursor->parts_begun - 1;
}

bool fm_event_has_piece(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    return cursor->parts_begun > 0 && cursor->sent < end_of(answer, cursor->parts_begun - 1);
}

bool fm_event_is_over(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    bool whole = answer->finished || cursor->parts_begun < answer->part_count;
    return whole && !fm_event_has_piece(answer, cursor);
}

size_t fm_event_next_part(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    size_t index = cursor->parts_begun;
    while (index < answer->part_count && answer->parts[index].kind != FM_PART_CALL &&
           fm_answer_part_len(answer, index) == 0) {
        index++;
    }
    return index;
}

void fm_event_begin_next(const struct fm_answer *answer, struct fm_cursor *cursor) {
    if (!fm_event_has_piece(answer, cursor)) {
        cursor->parts_begun = fm_event_next_part(answer, cursor) + 1;
    }
}

/* Where to end a new piece, which no reader has had yet. `end` is the end of its item. */
static size_t cut_piece(const struct fm_answer *answer, const struct fm_cursor *cursor, size_t end, bool logprobs) {
    size_t start = cursor->sent;
    if (end - start > DELTA_MAX) {
        end = start + DELTA_MAX;
        while (((unsigned char)answer->output.data[end] & 0xC0) == 0x80) { /* an item is whole characters */
            end--;
        }
    }
    return logprobs ? fm_logprobs_piece_end(answer, cursor, end) : end;
}

/* Whether the open part's deltas have log probabilities. */
static bool has_logprobs(const struct fm_answer *answer, const struct fm_cursor *cursor) {
    return answer->request.logprobs && fm_event_open_part(answer, cursor)->kind == FM_PART_TEXT;
}

/* Moves the reader past `count` pieces of the open part, the last of which ends at `end`. */
static void pass_pieces(const struct fm_answer *answer, struct fm_cursor *cursor, size_t count, size_t end) {
    if (has_logprobs(answer, cursor)) {
        fm_logprobs_take(answer, cursor, end);
    }
    cursor->sent = end;
    cursor->pieces += count;
}

/*
 * Moves the reader past its next piece: the piece that other readers had, or a new one. A new one ends at `end`, the
 * end of its item, or earlier.
 */
static void take_piece(struct fm_answer *answer, struct fm_cursor *cursor, size_t end) {
    size_t piece = cursor->pieces;
    if (piece < fm_answer_piece_count(answer)) {
        end = fm_answer_pieces(answer)[piece];
    } else {
        end = cut_piece(answer, cursor, end, has_logprobs(answer, cursor));
        if (answer->request.store) { /* if memory runs out, deltas may differ between readers */
            fm_buf_append(&answer->pieces, &end, sizeof end);
        }
    }
    pass_pieces(answer, cursor, 1, end);
}

size_t fm_answer_piece_count(const struct fm_answer *answer) {
    return answer->pieces.len / sizeof(size_t);
}

const size_t *fm_answer_pieces(const struct fm_answer *answer) {
    return (const void *)answer->pieces.data;
}

/* How many of the `most` next pieces are known and end in the open part. */
static size_t known_pieces(const struct fm_answer *answer, const struct fm_cursor *cursor, size_t most) {
    const size_t *ends = fm_answer_pieces(answer);
    size_t end = end_of(answer, fm_event_open_index(cursor));
    size_t first = cursor->pieces; /* may exceed the number of known pieces if memory ran out */
    size_t low = first;
    size_t high = fm_answer_piece_count(answer);
    high = high > first && high - first > most ? first + most : high;
    size_t known = high;
    while (low < high) { /* the ends rise; ends are equal for a call without arguments and the part before it */
        size_t middle = low + (high - low) / 2;
        low = ends[middle] < end ? middle + 1 : low;
        high = ends[middle] < end ? high : middle;
    }
    return low - first + (low < known && ends[low] == end);
}

/* Moves the reader past known deltas, up to the event `last`. True when it moved. */
static bool skip_pieces(struct fm_answer *answer, struct fm_cursor *cursor, int64_t last) {
    bool delta = next_event(answer, cursor) == FM_EVENT_DELTA;
    size_t count = delta ? known_pieces(answer, cursor, (size_t)(last - cursor->sequence) + 1) : 0;
    if (count > 0) {
        cursor->sequence += (int64_t)count;
        cursor->last = FM_EVENT_DELTA;
        pass_pieces(answer, cursor, count, fm_answer_pieces(answer)[cursor->pieces + count - 1]);
    }
    return count > 0;
}

void fm_answer_skip_events(struct fm_answer *answer, struct fm_cursor *cursor, int64_t last) {
    struct fm_buf nothing = {.failed = true}; /* takes nothing */
    struct fm_json_writer w = fm_json_writer_on(&nothing);
    while (cursor->sequence <= last && fm_answer_has_event(answer, cursor)) {
        if (!skip_pieces(choice_at(answer, cursor), cursor, last)) {
            fm_answer_write_event(answer, cursor, &w);
        }
    }
}

void fm_answer_cut(struct fm_answer *answer) {
    struct fm_cursor cursor = {0};
    for (size_t i = 0; i < answer->part_count; i++) {
        bool call = answer->parts[i].kind == FM_PART_CALL; /* a call without arguments also has a delta */
        cursor.parts_begun = i + 1;
        for (bool first = call; first || cursor.sent < end_of(answer, i); first = false) {
            take_piece(answer, &cursor, end_of(answer, i));
        }
    }
}

/* The members are those of llama.cpp's server (tools/server/README.md, `return_progress`). */
void fm_event_write_progress(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_key(w, "prompt_progress");
    fm_json_object_begin(w);
    fm_json_key_int(w, "total", answer->usage.input);
    fm_json_key_int(w, "cache", answer->usage.cached);
    fm_json_key_int(w, "processed", answer->processed);
    fm_json_key_int(w, "time_ms", answer->processed_ms);
    fm_json_object_end(w);
}

void fm_event_write_piece(struct fm_answer *answer, struct fm_cursor *cursor, struct fm_json_writer *w) {
    size_t start = cursor->sent;
    take_piece(answer, cursor, end_of(answer, fm_event_open_index(cursor)));
    write_output(answer, start, cursor->sent, w);
}
