/*
 * Passes the output of an endpoint to the kit. job.accepted is sent with the first output, because until then another
 * endpoint may do the job.
 */
#include "base/utf8.h"
#include "engine/guide/guide.h"
#include "engine/remote/remote.h"
#include "protocol/base64.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"
#include "protocol/vector.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX          (16u << 20) /* bytes of a text that is checked */
#define NAME_SHOWN        64          /* bytes of a tool's name in an error */
#define WHY_SHOWN         300         /* bytes of the description of a fault */
#define VECTOR_VALUES_MAX (1u << 20)  /* numbers of vectors that do not come in base64 */
/* bytes of a text that are sent to the front at once: with escapes, they fit a frame */
#define PIECE_MAX         (1u << 20)

void fm_remote_answer_init(struct fm_remote_answer *answer, struct fm_kit_job *job) {
    *answer = (struct fm_remote_answer){.job = job};
    fm_buf_init(&answer->text, TEXT_MAX);
    fm_buf_init(&answer->arguments, TEXT_MAX);
}

void fm_remote_answer_free(struct fm_remote_answer *answer) {
    fm_buf_free(&answer->text);
    fm_buf_free(&answer->arguments);
}

bool fm_remote_answer_restart(struct fm_remote_answer *answer, const struct fm_error *why) {
    const struct fm_endpoint *endpoint = answer->endpoint;
    fm_remote_answer_free(answer);
    fm_remote_answer_init(answer, answer->job);
    answer->endpoint = endpoint;
    return fm_kit_job_restart(answer->job, why);
}

/* True if the kit wants more output. */
static bool go_on(struct fm_remote_answer *answer, enum fm_reason reason) {
    answer->reason = reason;
    return reason == FM_REASON_NONE;
}

static bool accept(struct fm_remote_answer *answer, int64_t input_tokens) {
    if (answer->accepted) {
        return true;
    }
    answer->accepted = true;
    return go_on(answer, fm_kit_job_accept(answer->job, input_tokens));
}

static bool is_json(const struct fm_remote_answer *answer) {
    enum fm_format_kind kind = answer->job->format.kind;
    return kind == FM_FORMAT_JSON_OBJECT || kind == FM_FORMAT_JSON_SCHEMA;
}

/* ---- calls ---- */

/* Passes on a text in pieces that fit a frame, whatever the size of the server's pieces. */
static bool send_text(struct fm_remote_answer *answer, enum fm_piece kind, const char *text, size_t len) {
    bool more = true;
    for (size_t at = 0; more && at < len; at += PIECE_MAX) {
        size_t piece = len - at < PIECE_MAX ? len - at : PIECE_MAX;
        more = go_on(answer, fm_kit_job_piece(answer->job, kind, text + at, piece));
    }
    return more;
}

/*
 * Passes on a state, which must come back with the conversation. Its size has a limit (ENGINE.md, State of an answer).
 */
static bool send_state(struct fm_remote_answer *answer, const char *text, size_t len) {
    if (len > FM_STATE_BYTES_MAX) {
        (void)fm_fail(&answer->fault, FM_INTERNAL,
                      "%s sent a thought of %zu bytes that has to come back with the conversation, and 262144 can",
                      answer->endpoint->host, len);
        return go_on(answer, FM_REASON_ERROR);
    }
    return go_on(answer, fm_kit_job_state(answer->job, text, len));
}

/*
 * Notes what is wrong with a call, to be reported when the answer ends. The first fault counts. No text of the server
 * is shown.
 */
static void note_fault(struct fm_remote_answer *answer, const struct fm_tool *tool, const char *why) {
    const char *name = tool ? tool->name : "one that this answer may not call";
    if (answer->fault.code == FM_OK) {
        (void)fm_fail(&answer->fault, FM_INTERNAL, "%s called a tool: %.*s%.*s", answer->endpoint->host,
                      fm_utf8_shown(name, NAME_SHOWN), name, fm_utf8_shown(why, WHY_SHOWN), why);
    }
}

/*
 * Checks the arguments of a call. A server may have ignored the schema, or its answer may have been cut. A call with
 * broken arguments is a fault. `cut`: the answer has reached a limit, so the arguments may be the beginning of an
 * object.
 */
static void check_arguments(struct fm_remote_answer *answer, bool cut) {
    const struct fm_tool *tool = answer->call;
    struct fm_buf *arguments = &answer->arguments;
    struct fm_buf reason;
    size_t offset;
    fm_buf_append_char(arguments, '\0'); /* strspn stops there */
    if (arguments->failed) {
        note_fault(answer, tool, ", with arguments that are too long to be checked");
        return;
    }
    arguments->len--;
    size_t blanks = strspn(arguments->data, " \t\r\n");
    const char *fault = fm_json_check(arguments->data, arguments->len, FM_ENGINE_VALUES_MAX, &offset);
    if (fault && cut && offset == arguments->len && (arguments->data[blanks] == '{' || blanks == arguments->len)) {
        return;
    }
    if (fault || arguments->data[blanks] != '{') {
        note_fault(answer, tool, ", with arguments that are not a JSON object");
        return;
    }
    if (tool->strict && tool->parameters && fm_grammar_supported()) {
        fm_buf_init(&reason, WHY_SHOWN);
        fm_buf_append_str(&reason, ", with arguments that don't match its schema: ");
        size_t len = reason.len;
        bool ended = fm_guide_check_text(tool->parameters, arguments->data, arguments->len, &reason);
        if (!ended || reason.len > len || reason.failed) {
            fm_buf_append_char(&reason, '\0');
            note_fault(answer, tool, reason.failed ? ", with arguments that don't match its schema" : reason.data);
        }
        fm_buf_free(&reason);
    }
}

/* Sends a call of an unknown tool as text, in the form of the llama engine. After calls no text may come. */
static bool send_unknown(struct fm_remote_answer *answer, const char *text, size_t len) {
    return answer->calls || send_text(answer, FM_PIECE_TEXT, text, len);
}

/*
 * Begins the text of a call of a tool that does not exist, up to the arguments. The name in the first such call is
 * reported.
 */
static bool begin_unknown(struct fm_remote_answer *answer, const char *name) {
    struct fm_kit_job *job = answer->job;
    struct fm_buf begin;
    fm_buf_init(&begin, TEXT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&begin);
    if (!job->unknown_tool[0]) {
        snprintf(job->unknown_tool, sizeof job->unknown_tool, "%.*s", fm_utf8_shown(name, FM_TOOL_NAME_MAX), name);
    }
    fm_buf_append_str(&begin, answer->text_told ? FM_TOOL_NEXT FM_TOOL_NAME_KEY : FM_TOOL_BEGIN FM_TOOL_NAME_KEY);
    fm_json_str(&w, name);
    fm_buf_append_str(&begin, FM_TOOL_ARGUMENTS_KEY);
    answer->unknown = answer->text_told = true;
    bool more = begin.failed ? go_on(answer, FM_REASON_ERROR) : send_unknown(answer, begin.data, begin.len);
    fm_buf_free(&begin);
    return more;
}

static bool end_unknown(struct fm_remote_answer *answer) {
    const char *end = answer->arguments.len > 0 ? FM_TOOL_END : "{}" FM_TOOL_END;
    answer->unknown = false;
    return send_unknown(answer, end, strlen(end));
}

/* Ends a call. In some dialects a call without arguments has no object, so the call gets an empty object. */
static bool end_call(struct fm_remote_answer *answer) {
    if (answer->unknown) {
        return end_unknown(answer);
    }
    bool open = answer->call != NULL;
    bool empty = open && answer->arguments.len == 0;
    if (empty) {
        fm_buf_append_str(&answer->arguments, "{}");
    }
    if (open) {
        check_arguments(answer, false);
    }
    answer->call = NULL;
    return !empty || go_on(answer, fm_kit_job_piece(answer->job, FM_PIECE_ARGUMENTS, "{}", 2));
}

static const struct fm_tool *find_tool(const struct fm_kit_job *job, const char *name) {
    for (size_t i = 0; i < job->tool_count; i++) {
        if (job->tools[i].allowed && strcmp(job->tools[i].name, name) == 0) {
            return &job->tools[i];
        }
    }
    return NULL;
}

static bool take_call(struct fm_remote_answer *answer, const char *name) {
    struct fm_kit_job *job = answer->job;
    if (!end_call(answer)) {
        return false;
    }
    answer->call = find_tool(job, name);
    fm_buf_reset(&answer->arguments);
    if (!answer->call && fm_tools_allow_text(job)) {
        return begin_unknown(answer, name);
    }
    if (!answer->call || (answer->calls && !job->parallel_tool_calls)) {
        note_fault(answer, answer->call, answer->call ? ", although one call alone is allowed" : "");
        return go_on(answer, FM_REASON_ERROR);
    }
    answer->calls = true;
    return go_on(answer, fm_kit_job_tool_call(job, name));
}

/* ---- all parts ---- */

/* Passes on log probabilities. Some servers report more likely tokens than the job asks for. */
static void take_logprobs(struct fm_kit_job *job, const struct fm_token_logprobs *told) {
    struct fm_token_logprobs token = *told;
    token.top_count = token.top_count < job->top_logprobs ? token.top_count : job->top_logprobs;
    fm_kit_job_logprobs(job, &token);
}

bool fm_remote_answer_take(void *state, const struct fm_remote_part *part) {
    static const enum fm_piece pieces[] = {
        [FM_REMOTE_TEXT] = FM_PIECE_TEXT,
        [FM_REMOTE_REASONING] = FM_PIECE_REASONING,
        [FM_REMOTE_REFUSAL] = FM_PIECE_REFUSAL,
    };
    struct fm_remote_answer *answer = state;
    struct fm_kit_job *job = answer->job;
    if (!accept(answer, FM_UNCOUNTED)) {
        return false;
    }
    switch (part->kind) {
    case FM_REMOTE_LOGPROBS: take_logprobs(job, part->token); return true;
    case FM_REMOTE_STATE: return send_state(answer, part->text, part->len);
    case FM_REMOTE_CALL: return take_call(answer, part->text);
    case FM_REMOTE_ARGUMENTS:
        fm_buf_append(&answer->arguments, part->text, part->len);
        return answer->unknown ? send_unknown(answer, part->text, part->len)
                               : send_text(answer, FM_PIECE_ARGUMENTS, part->text, part->len);
    case FM_REMOTE_TEXT:
        answer->text_told = true;
        if (is_json(answer)) {
            fm_buf_append(&answer->text, part->text, part->len);
        }
        break;
    default: break;
    }
    return end_call(answer) && send_text(answer, pieces[part->kind], part->text, part->len);
}

/* ---- the check of a text with a format ---- */

/* Writes what is wrong with the text into `reason`; nothing if the text is right. */
static void check_text(const struct fm_remote_answer *answer, struct fm_buf *reason) {
    const struct fm_format *format = &answer->job->format;
    const char *text = answer->text.len > 0 ? answer->text.data : "";
    size_t blanks = strspn(text, " \t\r\n");
    size_t offset;
    const char *fault = fm_json_check(text, answer->text.len, FM_ENGINE_VALUES_MAX, &offset);
    if (answer->text.failed) {
        fm_buf_append_str(reason, "it is too long to be checked");
    } else if (fault && answer->job->stop_count > 0 && offset == answer->text.len) {
        return; /* a stop string may have cut the text, which no server reports */
    } else if (fault) {
        fm_buf_append_str(reason, "it is not JSON: ");
        fm_buf_append_str(reason, fault);
    } else if (format->kind == FM_FORMAT_JSON_OBJECT && text[blanks] != '{') {
        fm_buf_append_str(reason, "it is not a JSON object");
    } else if (format->kind == FM_FORMAT_JSON_SCHEMA &&
               !fm_guide_check_text(format->schema, text, answer->text.len, reason)) {
        fm_buf_append_str(reason, " (the check goes on, and takes a processor until the engine ends)");
    }
}

/* The server may have ignored the format. With `strict`, a text that violates the format is an error. */
static enum fm_reason check_format(struct fm_remote_answer *answer, struct fm_error *error) {
    static const char *const advice[] = {
        [FM_DIALECT_CHAT] = "it may ignore formats; try another server or model",
        [FM_DIALECT_RESPONSES] = "it may ignore formats in the dialect responses; try the dialect chat",
        [FM_DIALECT_MESSAGES] = "it may ignore formats in the dialect messages; try the dialect chat",
    };
    struct fm_buf *reason = &answer->job->schema_error;
    const struct fm_format *format = &answer->job->format;
    if (!is_json(answer) || (answer->calls && answer->text.len == 0) || fm_kit_job_cut(answer->job)) {
        return FM_REASON_STOP;
    }
    fm_buf_append_char(&answer->text, '\0'); /* strspn stops there */
    answer->text.len -= !answer->text.failed;
    check_text(answer, reason);
    if (reason->len == 0 || (format->kind == FM_FORMAT_JSON_SCHEMA && !format->strict)) {
        return FM_REASON_STOP;
    }
    fm_buf_append_char(reason, '\0');
    const char *why = reason->failed ? "what is wrong is too long to be told" : reason->data;
    (void)fm_fail(error, FM_INTERNAL, "%s has not kept to the format (%s): %.*s", answer->endpoint->host,
                  advice[answer->endpoint->dialect], fm_utf8_shown(why, WHY_SHOWN), why);
    fm_buf_reset(reason);
    return FM_REASON_ERROR;
}

/* Some servers end an answer at the limit with the same reason as any other answer. */
static bool is_full(const struct fm_remote_answer *answer, const struct fm_remote_reader *reader) {
    return answer->endpoint->dialect == FM_DIALECT_RESPONSES && !answer->calls && answer->job->max_tokens > 0 &&
           reader->usage.output >= answer->job->max_tokens;
}

enum fm_reason fm_remote_answer_end(struct fm_remote_answer *answer, const struct fm_remote_reader *reader,
                                    struct fm_error *error) {
    enum fm_reason reason = reader->reason;
    if (!accept(answer, reader->usage.input)) {
        return answer->reason;
    }
    const bool cut = reason != FM_REASON_STOP;
    if (cut && answer->call) {
        check_arguments(answer, true);
    } else if (!(cut && answer->unknown) && !end_call(answer)) {
        return answer->reason;
    }
    if (answer->fault.code != FM_OK) {
        *error = answer->fault;
        return FM_REASON_ERROR;
    }
    if (reason != FM_REASON_STOP) {
        return reason;
    }
    if (is_full(answer, reader)) {
        return FM_REASON_LENGTH;
    }
    if (answer->job->tool_mode == FM_TOOLS_REQUIRED && answer->job->tool_count > 0 && !answer->calls) {
        (void)fm_fail(error, FM_INTERNAL, "%s has answered without a call, though the request demands one",
                      answer->endpoint->host);
        return FM_REASON_ERROR;
    }
    return check_format(answer, error);
}

/* ---- vectors ---- */

static enum fm_reason broken(const struct fm_remote_answer *answer, const char *why, struct fm_error *error) {
    (void)fm_fail(error, FM_INTERNAL, "%s sent vectors that can't be understood: %s", answer->endpoint->host, why);
    return FM_REASON_ERROR;
}

/* How many numbers a vector has; 0: it is not a vector. */
static size_t size_of(struct json_object *vector) {
    if (json_object_is_type(vector, json_type_array)) {
        return json_object_array_length(vector);
    }
    size_t bytes =
        json_object_is_type(vector, json_type_string)
            ? fm_base64_decoded_size(json_object_get_string(vector), (size_t)json_object_get_string_len(vector))
            : 0;
    return bytes % sizeof(float) == 0 ? bytes / sizeof(float) : 0;
}

/* `vector` has `count` entries. False: not all are finite numbers. */
static bool read_vector(struct json_object *vector, float *values, size_t count) {
    if (json_object_is_type(vector, json_type_string)) {
        return fm_vector_read(json_object_get_string(vector), (size_t)json_object_get_string_len(vector), values,
                              count);
    }
    for (size_t i = 0; i < count; i++) {
        struct json_object *number = json_object_array_get_idx(vector, i);
        values[i] = (float)json_object_get_double(number);
        bool is_number = json_object_is_type(number, json_type_int) || json_object_is_type(number, json_type_double);
        if (!is_number || !isfinite(values[i])) {
            return false;
        }
    }
    return true;
}

/* Finds the vector of the input `index`, wherever it is in the list. */
static struct json_object *find_vector(struct json_object *list, size_t index) {
    struct json_object *entry = json_object_array_get_idx(list, index);
    int64_t number = (int64_t)index;
    fm_reader_count(entry, "index", &number);
    for (size_t i = 0; number != (int64_t)index && i < json_object_array_length(list); i++) {
        entry = json_object_array_get_idx(list, i);
        fm_reader_count(entry, "index", &number);
    }
    struct json_object *vector = NULL;
    json_object_object_get_ex(number == (int64_t)index ? entry : NULL, "embedding", &vector);
    return vector;
}

static enum fm_reason send_vectors(struct fm_remote_answer *answer, struct json_object *root, struct fm_error *error) {
    struct fm_kit_job *job = answer->job;
    struct json_object *list = fm_reader_object(root, "data");
    struct fm_kit_usage usage = {FM_UNCOUNTED, FM_UNCOUNTED, 0, 0};
    answer->counted = true;
    if (!json_object_is_type(list, json_type_array) || json_object_array_length(list) != job->input_count) {
        return broken(answer, "there are not as many as texts", error);
    }
    job->dimension = size_of(find_vector(list, 0));
    float *values = job->dimension > 0 ? calloc(job->dimension, sizeof *values) : NULL;
    if (!values || job->dimension > FM_VECTOR_MAX) {
        free(values);
        return broken(answer, "the first one is not a list of numbers", error);
    }
    fm_reader_count(fm_reader_object(root, "usage"), "prompt_tokens", &usage.input);
    fm_kit_job_usage(job, &usage);
    enum fm_reason reason = accept(answer, usage.input) ? FM_REASON_NONE : answer->reason;
    for (size_t i = 0; !reason; i++) {
        struct json_object *vector = find_vector(list, i);
        if (size_of(vector) != job->dimension || !read_vector(vector, values, job->dimension)) {
            reason = broken(answer, "they have not all the same size, or are not finite numbers", error);
        } else {
            reason = fm_kit_job_embedding(job, values, error);
        }
    }
    free(values);
    return reason;
}

enum fm_reason fm_remote_answer_embed(struct fm_remote_answer *answer, const struct fm_buf *body,
                                      struct fm_error *error) {
    struct json_object *root = NULL;
    struct fm_buf scratch;
    size_t offset;
    const char *fault = fm_json_check(body->data ? body->data : "", body->len, VECTOR_VALUES_MAX, &offset);
    if (fault) {
        return broken(answer, fault, error);
    }
    fm_buf_init(&scratch, body->max);
    bool built = fm_json_tree(body->data, body->len, &scratch, &root);
    fm_buf_free(&scratch);
    enum fm_reason reason = FM_REASON_ERROR;
    if (!built) {
        (void)fm_fail_no_memory(error);
    } else {
        reason = send_vectors(answer, root, error);
    }
    json_object_put(root);
    return reason;
}
