/*
 * A session of the library and its one task, from the start to the last callback. Free text is passed on as it comes,
 * until the model calls a tool. Text after a call is not passed on, because it is based on results that nobody
 * computed.
 */
#include "engine/apple/run.h"
#include "engine/apple/status.h"

#include <json-c/json.h>
#include <string.h>

enum fm_reason fm_apple_failed(struct fm_apple_run *run, const char *detail) {
    (void)fm_fail(run->error, FM_INTERNAL, "%s", detail);
    return FM_REASON_ERROR;
}

enum fm_reason fm_apple_no_memory(struct fm_apple_run *run) {
    (void)fm_fail_no_memory(run->error);
    return FM_REASON_ERROR;
}

static bool make_session(struct fm_apple_run *run) {
    const struct fm_apple_api *api = run->api;
    fm_apple_ref tools[FM_TOOLS_MAX];
    int count = 0;
    int status = 0;
    char *why = NULL;
    const char *prompt;
    size_t len;
    struct fm_buf json;
    fm_buf_init(&json, FM_APPLE_TRANSCRIPT_MAX);
    fm_apple_transcript(run->job, &run->extras, false, &json, &prompt, &len);
    fm_buf_reset(&run->piece);
    fm_buf_append(&run->piece, prompt, len);
    fm_buf_append_char(&run->piece, '\0');
    fm_apple_ref transcript = json.failed || run->piece.failed ? NULL : api->transcript(json.data, &status, &why);
    fm_buf_free(&json);
    if (!transcript) {
        api->free_string(why);
        return false;
    }
    for (size_t i = 0; i < run->tools.count; i++) {
        if (run->tools.refs[i]) {
            tools[count++] = run->tools.refs[i];
        }
    }
    run->session = api->session(transcript, run->apple->model, tools, count);
    api->release(transcript);
    run->prompt = api->prompt();
    api->prompt_add(run->prompt, run->piece.data);
    return true;
}

/* Starts the task. With a schema (JSON, NUL-terminated) the answer comes at once, otherwise as a stream. */
static bool start_task(struct fm_apple_run *run, const char *schema) {
    const struct fm_apple_api *api = run->api;
    fm_apple_task_init(&run->task);
    run->running =
        (struct fm_apple_running){.api = api, .tools = &run->tools, .task = &run->task, .is_stream = schema == NULL};
    if (!make_session(run)) {
        return false;
    }
    if (schema) {
        run->running.ref = api->respond_by_schema(run->session, run->prompt, schema, run->options.data, &run->task,
                                                  fm_apple_on_content);
        return true;
    }
    run->running.ref = api->stream(run->session, run->prompt, run->options.data);
    if (run->running.ref) {
        api->stream_start(run->running.ref, &run->task, fm_apple_on_text);
    }
    return run->running.ref != NULL;
}

static void release_task(struct fm_apple_run *run) {
    fm_apple_running_free(&run->running);
    if (run->prompt) {
        run->api->release(run->prompt);
    }
    if (run->session) {
        run->api->release(run->session);
    }
    run->prompt = NULL;
    run->session = NULL;
}

/* Passes on to the job the text that the stream has brought. */
static enum fm_reason tell_text(struct fm_apple_run *run) {
    enum fm_reason reason = FM_REASON_NONE;
    bool rewritten = false;
    while (!reason && fm_apple_next_piece(&run->task, &run->piece, &rewritten)) {
        run->spoke = true;
        reason = run->piece.failed ? fm_apple_no_memory(run)
                                   : fm_kit_job_piece(run->job, FM_PIECE_TEXT, run->piece.data, run->piece.len);
        run->complete = run->complete || reason == FM_REASON_STOP;
        if (reason == FM_REASON_ERROR) {
            (void)fm_apple_no_memory(run);
        }
    }
    return !reason && rewritten
               ? fm_apple_failed(run, "Apple's library took back a part of the answer that it had given")
               : reason;
}

/*
 * Follows a task up to its last callback. FM_REASON_NONE: the task has ended by itself, or because a tool was called.
 */
static enum fm_reason follow_task(struct fm_apple_run *run) {
    enum fm_reason reason = FM_REASON_NONE;
    for (;;) {
        bool ended = fm_apple_task_ended(&run->task);
        reason = reason ? reason : tell_text(run);
        if (ended) {
            return reason;
        }
        if (!reason && fm_kit_job_aborted(run->job)) {
            reason = FM_REASON_ABORTED;
        }
        if (reason || run->running.call_count > 0) {
            fm_apple_cancel(&run->running);
        }
        if (!fm_apple_step(&run->running)) {
            run->apple->stuck = true;
            return reason;
        }
    }
}

/* Reports how the task ended, if neither we nor a tool call ended it. */
static enum fm_reason task_end(struct fm_apple_run *run, bool by_tool_schema) {
    if (run->task.no_memory) {
        return fm_apple_no_memory(run);
    }
    if (run->task.status == FM_APPLE_OK) {
        run->complete = true;
        return FM_REASON_NONE;
    }
    char *content = run->task.content ? run->api->content_json(run->task.content) : NULL;
    const char *why = run->task.why.data ? run->task.why.data : "";
    const struct fm_apple_end end = {.status = run->task.status,
                                     .text = content ? content : why,
                                     .spoke = run->spoke,
                                     .at_limit = run->job->max_tokens > 0,
                                     .tools = by_tool_schema};
    enum fm_reason reason = fm_apple_end_reason(&end, run->error);
    if (reason == FM_REASON_STOP) { /* a refusal */
        const char *text = end.text[0] ? end.text : "Apple's model refuses to answer.";
        enum fm_reason told = fm_kit_job_piece(run->job, FM_PIECE_REFUSAL, text, strlen(text));
        reason = told == FM_REASON_ERROR ? fm_apple_no_memory(run) : reason;
    }
    run->api->free_string(content);
    return reason;
}

enum fm_reason fm_apple_ask(struct fm_apple_run *run, struct json_object *schema, bool of_tool) {
    if (!start_task(run, schema ? json_object_to_json_string_ext(schema, JSON_C_TO_STRING_PLAIN) : NULL)) {
        release_task(run);
        return fm_apple_failed(run, "Apple's library does not take the conversation, or its options");
    }
    enum fm_reason reason = follow_task(run);
    if (run->apple->stuck) {
        return reason ? reason : fm_apple_failed(run, "Apple's library did not stop");
    }
    bool called = run->running.collected > 0;
    reason = reason ? reason : called ? fm_apple_tell_calls(run) : task_end(run, of_tool);
    if (!called && !schema) {
        fm_buf_append(&run->answer, run->task.text.data,
                      run->task.told); /* keeps the text that was passed on, because its tokens are counted */
    } else if (!reason) {
        char *json = run->task.content ? run->api->content_json(run->task.content) : NULL;
        fm_buf_reset(&run->answer);
        fm_buf_append_str(&run->answer, json ? json : "");
        run->api->free_string(json);
    }
    release_task(run);
    return !reason && run->answer.failed ? fm_apple_no_memory(run) : reason;
}
