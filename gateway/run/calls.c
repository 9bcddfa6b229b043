/*
 * Runs the tool calls of one step, one after the other. Each call is checked, shown to the user, approved, run and
 * stored; only then the model gets its result. A call that does not run has a result too, which says why not.
 *
 *     begin -> (approval) -> (audit) -> tool -> attachments -> result on the disk -> the next one
 */
#include "run/internal.h"

#include "base/clock.h"
#include "protocol/base64.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (64u << 20)
#define NOT_RUN  "Not run: the run was stopped."

/* The outcome of a call, while its attachments go to the disk. */
struct gw_tool_outcome {
    struct fm_json_writer attachments; /* on the part's buffer */
    struct gw_attachment *left;        /* `count` copies of attachments; those from index `at` on are not written yet */
    size_t at;
    size_t count;
};

static struct gw_chats *chats_of(const struct gw_run *run) {
    return run->chat->chats;
}

static void next(struct gw_run *run);

/* ---- the result ---- */

static void on_result_written(struct gw_run *run) {
    struct gw_part *part = gw_live_last(run);
    struct fm_json_writer *w = gw_tell_begin(run, "tool.result");
    fm_json_key_str(w, "callId", part->call_id);
    fm_json_key_str(w, "state", part->state);
    gw_live_write_outcome(part, w);
    (void)gw_tell_end(run);
    next(run);
}

static void audit_after(struct gw_run *run) {
    const struct gw_part *part = gw_live_last(run);
    const struct gw_audit_tool tool = {run->chat->key, run->id, part->call_id, part->tool_name};
    const struct gw_audit_result result = {.outcome = part->state,
                                           .exit_code = part->has_exit_code ? part->exit_code : -1,
                                           .output_bytes = part->text.len,
                                           .truncated = part->truncated,
                                           .duration_ms = part->duration_ms};
    struct fm_error error;
    (void)!gw_audit_tool_after(chats_of(run)->options.audit, &tool, &result, NULL, NULL, &error);
}

/* Writes the result of the last part, which is complete. */
static void write_result(struct gw_run *run) {
    struct gw_part *part = gw_live_last(run);
    audit_after(run);
    struct fm_json_writer *w = gw_run_record(run, GW_RECORD_TOOL_RESULT);
    if (!w) {
        return;
    }
    fm_json_key_str(w, "callId", part->call_id);
    fm_json_key_str(w, "state", part->state);
    if (strcmp(part->state, "unknown") == 0) {
        fm_json_key_str(w, "outcome", "unknown");
    }
    gw_live_write_outcome(part, w);
    gw_run_write(run, on_result_written);
}

/* The call does not run, and its result says why not. */
static void settle_call(struct gw_run *run, const char *state, const char *output) {
    struct gw_part *part = gw_live_last(run);
    gw_tool_call_free(run->call);
    run->call = NULL;
    part->state = state;
    part->duration_ms = 0;
    fm_buf_append_str(&part->text, output);
    write_result(run);
}

/* ---- attachments ---- */

static void attach(struct gw_run *run);

static void free_outcome(struct gw_run *run) {
    struct gw_tool_outcome *outcome = run->outcome;
    for (size_t i = 0; outcome && i < outcome->count; i++) {
        free(outcome->left[i].data);
    }
    if (outcome) {
        free(outcome->left);
    }
    free(outcome);
    run->outcome = NULL;
}

static void on_attached(void *context, const struct fm_error *error, const char *id) {
    struct gw_run *run = context;
    struct gw_tool_outcome *outcome = run->outcome;
    const struct gw_attachment *at = &outcome->left[outcome->at++];
    struct fm_json_writer *w = &outcome->attachments;
    run->writes--;
    if (error) {
        free_outcome(run);
        gw_run_fail(run, error->detail);
        return;
    }
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", at->image ? "image" : "file");
    fm_json_key_str(w, "mimeType", at->mime_type);
    if (at->name[0]) {
        fm_json_key_str(w, "name", at->name);
    }
    fm_json_key_int(w, "bytes", (int64_t)fm_base64_decoded_size(at->data, at->len));
    fm_json_key_str(w, "blobId", id);
    fm_json_object_end(w);
    attach(run);
}

/* Sends the next attachment to the disk; after the last attachment, the call's result. */
static void attach(struct gw_run *run) {
    struct gw_tool_outcome *outcome = run->outcome;
    if (outcome->at == outcome->count) {
        if (outcome->count > 0) {
            fm_json_array_end(&outcome->attachments);
        }
        free_outcome(run);
        write_result(run);
        return;
    }
    const struct gw_attachment *at = &outcome->left[outcome->at];
    size_t size = fm_base64_decoded_size(at->data, at->len);
    unsigned char *bytes = malloc(size ? size : 1);
    struct fm_error error;
    enum fm_code code =
        bytes && fm_base64_read(at->data, at->len, bytes)
            ? gw_session_attach(chats_of(run)->options.sessions, run->chat->key, bytes, size, on_attached, run, &error)
            : fm_fail(&error, FM_INTERNAL, "an attachment of the tool can't be kept");
    free(bytes);
    if (code != FM_OK) {
        free_outcome(run);
        gw_run_fail(run, error.detail);
        return;
    }
    run->writes++;
}

/* Copies the attachments: the result is valid only during the callback. False: out of memory. */
static bool keep_attachments(struct gw_run *run, const struct gw_result *result) {
    struct gw_tool_outcome *outcome = calloc(1, sizeof *outcome);
    run->outcome = outcome;
    if (!outcome) {
        return false;
    }
    outcome->left = calloc(result->attachment_count + 1, sizeof *outcome->left);
    for (size_t i = 0; outcome->left && i < result->attachment_count; i++) {
        outcome->left[i] = result->attachments[i];
        outcome->left[i].data = malloc(result->attachments[i].len + 1);
        outcome->count++;
        if (!outcome->left[i].data) {
            return false;
        }
        memcpy(outcome->left[i].data, result->attachments[i].data, result->attachments[i].len);
    }
    outcome->attachments = fm_json_writer_on(&gw_live_last(run)->attachments);
    if (outcome->count > 0) {
        fm_json_array_begin(&outcome->attachments);
    }
    return outcome->left != NULL;
}

/* ---- the tool ---- */

static const char *state_of(const struct gw_result *result) {
    switch (result->end) {
    case GW_END_DONE: return result->has_exit_code && result->exit_code != 0 ? "failed" : "done";
    case GW_END_TIMEOUT:
    case GW_END_FAILED: return "failed";
    case GW_END_ABORTED: return "aborted";
    case GW_END_UNKNOWN: break;
    }
    return "unknown";
}

static void on_done(void *context, const struct gw_result *result) {
    struct gw_run *run = context;
    struct gw_part *part = gw_live_last(run);
    run->phase = GW_PHASE_OTHER;
    part->state = state_of(result);
    part->has_exit_code = result->has_exit_code;
    part->exit_code = result->exit_code;
    part->truncated = result->truncated;
    part->duration_ms = fm_now_ms() - run->tool_started_ms;
    fm_buf_reset(&part->text);
    bool ok = gw_tell_filtered(chats_of(run), result->output, result->output_len, &part->text);
    part->text.len -= part->text.len > 0; /* without the NUL */
    ok = ok && keep_attachments(run, result);
    gw_tool_call_free(run->call);
    run->call = NULL;
    if (!ok) {
        free_outcome(run);
        gw_run_fail(run, "the tool's output can't be kept: memory ran out");
        return;
    }
    attach(run);
}

static void on_progress(void *context, const char *message) {
    struct gw_run *run = context;
    struct fm_buf text;
    fm_buf_init(&text, TEXT_MAX);
    if (gw_tell_filtered(chats_of(run), message, strlen(message), &text)) {
        const struct gw_part *part = gw_live_last(run);
        struct fm_json_writer *w = gw_tell_begin(run, "tool.progress");
        fm_json_key_str(w, "tool", part->tool_name);
        fm_json_key_str(w, "message", text.data);
        fm_json_key_str(w, "callId", part->call_id);
        (void)gw_tell_end(run);
    }
    fm_buf_free(&text);
}

/* The audit's record of the call is on the disk, or the audit has failed. */
static void on_audited(void *context, const struct fm_error *error) {
    struct gw_run *run = context;
    run->writes--;
    if (error || run->fault[0]) {
        gw_run_fail(run, error ? error->detail : NULL);
        return;
    }
    if (run->aborting) {
        settle_call(run, "aborted", NOT_RUN);
        return;
    }
    const struct gw_observer observer = {run, on_progress, on_done};
    run->phase = GW_PHASE_TOOL;
    run->tool_started_ms = fm_now_ms();
    gw_live_last(run)->state = "running";
    gw_tool_call_start(run->call, &observer);
}

/* The record of the permission to run is on the disk. */
static void on_allowed(struct gw_run *run) {
    const struct gw_part *part = gw_live_last(run);
    const struct gw_audit_tool tool = {run->chat->key, run->id, part->call_id, part->tool_name};
    struct fm_error error;
    if (gw_audit_tool_before(chats_of(run)->options.audit, &tool, run->allowed_by, part->details, strlen(part->details),
                             on_audited, run, &error) != FM_OK) {
        gw_run_fail(run, error.detail);
        return;
    }
    run->writes++;
}

/* ---- approval ---- */

static void answer_user(struct gw_run *run) {
    struct gw_reply *call = run->answerer;
    run->answerer = NULL;
    if (call) {
        gw_tell_ok(call, true);
    }
}

static void tell_resolved(struct gw_run *run, const char *outcome) {
    struct fm_json_writer *w = gw_event_begin(chats_of(run)->options.rpc, "exec.approval_resolved");
    fm_json_key_str(w, "approvalId", run->approval_id);
    fm_json_key_str(w, "outcome", outcome);
    (void)gw_tell_end(run);
    run->approval_id[0] = '\0';
}

static void on_approved(struct gw_run *run) {
    answer_user(run);
    tell_resolved(run, "approved");
    on_allowed(run);
}

static void on_denied(struct gw_run *run) {
    char output[GW_DENIAL_MAX + 64];
    const char *reason = gw_live_last(run)->text.data; /* NUL-terminated by gw_calls_decided */
    answer_user(run);
    tell_resolved(run, "denied");
    snprintf(output, sizeof output, "Denied: %s", reason);
    fm_buf_reset(&gw_live_last(run)->text);
    settle_call(run, "denied", output);
}

static void on_expired(struct gw_run *run) {
    tell_resolved(run, "expired");
    settle_call(run, "expired", "Not run: the user did not answer in time.");
}

static void on_withdrawn(struct gw_run *run) {
    tell_resolved(run, "withdrawn");
    settle_call(run, "aborted", NOT_RUN);
}

void gw_calls_decided(void *context, const char *approval_id, enum gw_verdict verdict, const char *reason) {
    static const struct {
        const char *word;
        void (*then)(struct gw_run *run);
    } rows[] = {
        [GW_APPROVED] = {"approved", on_approved},
        [GW_DENIED] = {"denied", on_denied},
        [GW_EXPIRED] = {"expired", on_expired},
        [GW_WITHDRAWN] = {"withdrawn", on_withdrawn},
    };
    struct gw_run *run = context;
    run->phase = GW_PHASE_OTHER;
    if (run->state == GW_RUN_ENDING) { /* after gw_calls_leave: the disk has failed, and nothing more is written */
        tell_resolved(run, rows[GW_WITHDRAWN].word);
        return;
    }
    struct fm_json_writer *w = gw_run_record(run, GW_RECORD_APPROVAL_SETTLED);
    if (!w) {
        return;
    }
    fm_json_key_str(w, "approvalId", approval_id);
    fm_json_key_str(w, "verdict", rows[verdict].word);
    if (verdict == GW_DENIED) {
        struct fm_buf *text = &gw_live_last(run)->text;
        fm_buf_append_str(text, *reason ? reason : "the user gave no reason");
        fm_buf_append_char(text, '\0');
        fm_json_key_str(w, "reason", reason);
    }
    gw_run_write(run, rows[verdict].then);
}

static void on_approval_written(struct gw_run *run) {
    if (!run->approval_id[0] || run->phase != GW_PHASE_APPROVAL) {
        return; /* the user answered before the approval's opening was on the disk */
    }
    struct fm_json_writer *w = gw_event_begin(chats_of(run)->options.rpc, "exec.approval_request");
    gw_tell_approval(run, false, w);
    (void)gw_tell_end(run);
}

static void on_expiry(uv_timer_t *timer) {
    struct gw_chats *chats = timer->data;
    int64_t again_ms = gw_approvals_expire(chats->approvals, fm_now_ms());
    if (again_ms >= 0) {
        uv_timer_start(timer, on_expiry, (uint64_t)again_ms, 0);
    }
}

static void ask_approval(struct gw_run *run) {
    struct gw_chats *chats = chats_of(run);
    struct gw_part *part = gw_live_last(run);
    struct fm_error error;
    if (gw_approval_open(chats->approvals, run->id, gw_calls_decided, run, fm_now_ms(), run->approval_id, &error) !=
        FM_OK) {
        settle_call(run, "failed", error.detail);
        return;
    }
    part->state = "waiting";
    run->allowed_by = "user";
    run->approval_end_ms = gw_wall_ms() + chats->options.approval_timeout_ms;
    run->can_remember = strcmp(part->tool_name, "browser") != 0 && !run->chat->browsed;
    run->phase = GW_PHASE_APPROVAL;
    on_expiry(&chats->expiry);
    struct fm_json_writer *w = gw_run_record(run, GW_RECORD_APPROVAL_OPENED);
    if (w) {
        fm_json_key_str(w, "approvalId", run->approval_id);
        fm_json_key_str(w, "callId", part->call_id);
        gw_run_write(run, on_approval_written);
    }
}

/* ---- a call ---- */

static void write_input(struct json_object *item, struct fm_json_writer *w) {
    const char *arguments = gw_text_of(item, "arguments");
    size_t len = strlen(arguments);
    size_t offset;
    fm_json_key(w, "input");
    if (len > 0 && !fm_json_check(arguments, len, 1048576, &offset)) {
        fm_json_raw(w, arguments, len);
    } else {
        fm_json_str(w, arguments);
    }
}

/* Records the call, and sends the event tool.call. False: the run has failed. */
static bool begin_call(struct gw_run *run, struct json_object *item, bool requires_approval) {
    const struct gw_part *part = gw_live_last(run);
    struct fm_json_writer *w = gw_run_record(run, GW_RECORD_TOOL_CALL);
    if (!w) {
        return false;
    }
    fm_json_key_str(w, "callId", part->call_id);
    fm_json_key_str(w, "name", part->tool_name);
    write_input(item, w);
    fm_json_key_str(w, "summary", part->summary);
    fm_json_key(w, "details");
    fm_json_raw(w, part->details, strlen(part->details));
    fm_json_key_str(w, "providerCallId", gw_text_of(item, "call_id"));
    gw_run_write(run, NULL);
    if (run->state == GW_RUN_ENDING) {
        return false;
    }
    w = gw_tell_begin(run, "tool.call");
    gw_live_write_call(part, w);
    fm_json_key_bool(w, "requiresApproval", requires_approval);
    (void)gw_tell_end(run);
    return true;
}

/*
 * The call can't be run: its tool is unknown, or its input is wrong. The result says so, and the model may correct the
 * call.
 */
static void refuse_call(struct gw_run *run, struct json_object *item, const struct fm_error *error) {
    char output[sizeof error->detail + 16];
    snprintf(output, sizeof output, "Error: %s", error->detail); /* the detail begins with the member's name */
    if (!gw_live_tool(run, gw_text_of(item, "name"), gw_text_of(item, "name"), "{}")) {
        gw_run_fail(run, "out of memory");
    } else if (begin_call(run, item, false)) {
        settle_call(run, "failed", output);
    }
}

static void allow(struct gw_run *run, const char *by) {
    run->allowed_by = by;
    struct fm_json_writer *w = gw_run_record(run, GW_RECORD_TOOL_STARTED);
    if (w) {
        fm_json_key_str(w, "callId", gw_live_last(run)->call_id);
        gw_run_write(run, on_allowed);
    }
}

static void prepare_call(struct gw_run *run, struct json_object *item) {
    struct gw_chats *chats = chats_of(run);
    const char *name = gw_text_of(item, "name");
    const char *arguments = gw_text_of(item, "arguments");
    struct gw_tool_call_request request;
    struct fm_error error;
    enum fm_code code = chats->options.tools
                            ? gw_tool_call_prepare(chats->options.tools, name, arguments, strlen(arguments),
                                                   chats->folder, &run->call, &error)
                            : fm_fail(&error, FM_UNAVAILABLE, "there are no tools on this system");
    if (code != FM_OK) {
        run->call = NULL;
        refuse_call(run, item, &error);
        return;
    }
    gw_tool_call_request(run->call, &request);
    bool ruled = !run->chat->browsed && strcmp(name, "browser") != 0 &&
                 gw_rules_allow(chats->rules, request.tool, request.folder, arguments);
    if (!gw_live_tool(run, request.tool, request.summary, request.details)) {
        gw_run_fail(run, "out of memory");
        return;
    }
    run->chat->browsed |= strcmp(name, "browser") == 0;
    if (!begin_call(run, item, request.requires_approval && !ruled)) {
        return;
    }
    if (request.requires_approval && !ruled) {
        ask_approval(run);
    } else {
        allow(run, ruled ? "rule" : "none");
    }
}

const char *gw_calls_input(const struct gw_run *run) {
    return gw_text_of(json_object_array_get_idx(run->items, run->item_index - 1), "arguments");
}

static void next(struct gw_run *run) {
    size_t count = json_object_array_length(run->items);
    while (run->item_index < count && !run->aborting && !run->fault[0]) {
        struct json_object *item = json_object_array_get_idx(run->items, run->item_index++);
        if (strcmp(gw_text_of(item, "type"), "function_call") == 0) {
            prepare_call(run, item);
            return;
        }
    }
    gw_run_calls_done(run);
}

void gw_calls_run(struct gw_run *run) {
    next(run);
}

void gw_calls_leave(struct gw_run *run) {
    struct gw_reply *answerer = run->answerer;
    if (run->approval_id[0]) {
        gw_approvals_withdraw(chats_of(run)->approvals, run->id);
    }
    run->approval_id[0] = '\0';
    run->answerer = NULL;
    if (answerer) {
        gw_reply_fail(answerer, GW_UNAVAILABLE, "the answer could not be kept, so the tool did not run: %s",
                      run->fault);
    }
}

void gw_calls_abort(struct gw_run *run) {
    if (run->phase == GW_PHASE_TOOL) {
        gw_tool_call_abort(run->call);
    } else if (run->phase == GW_PHASE_APPROVAL) {
        gw_approvals_withdraw(chats_of(run)->approvals, run->id);
    }
}
