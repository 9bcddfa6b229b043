/*
 * The tool bash: runs a command by `bash -c`, in the working folder, with a time limit. It runs exactly the bytes that
 * were approved.
 */
#include "base/clock.h"
#include "protocol/json_writer.h"
#include "tools/call.h"
#include "tools/display.h"
#include "tools/tools.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define COMMAND_MAX 100000u /* bytes; the kernel takes 131,071 for one argument */
#define SUMMARY_MAX 200u
#define TICK_MS     5000u

struct bash {
    struct gw_tool_call *call;
    struct gw_process *process; /* NULL: it has ended */
    uv_timer_t tick;
    int64_t begun_ms;
    struct gw_process_end end;
};

static void write_details(struct gw_tool_call *call, const char *command, size_t len) {
    struct fm_buf shown;
    struct fm_buf folder;
    struct fm_json_writer w = fm_json_writer_on(&call->details);
    fm_buf_init(&shown, GW_TOOL_CALL_TEXT_MAX);
    fm_buf_init(&folder, GW_TOOL_CALL_TEXT_MAX);
    bool escaped = gw_display(&shown, command, len);
    escaped |= gw_display(&folder, call->folder_path, strlen(call->folder_path));
    fm_json_object_begin(&w);
    fm_json_key(&w, "command");
    fm_json_string(&w, shown.data, shown.len);
    fm_json_key(&w, "workingDir");
    fm_json_string(&w, folder.data, folder.len);
    if (escaped) {
        fm_json_key_bool(&w, "escaped", true);
    }
    fm_json_object_end(&w);
    call->details.failed |= shown.failed || folder.failed;
    fm_buf_free(&shown);
    fm_buf_free(&folder);
}

static enum fm_code refuse_command(struct fm_error *error, const char *why) {
    fm_fail(error, FM_INVALID_REQUEST, "command %s", why);
    snprintf(error->param, sizeof error->param, "command");
    return FM_INVALID_REQUEST;
}

static enum fm_code prepare_command(struct gw_tool_call *call, struct fm_error *error) {
    struct json_object *value = json_object_object_get(call->input, "command");
    const char *command = json_object_get_string(value);
    size_t len = (size_t)json_object_get_string_len(value);
    if (len > COMMAND_MAX) {
        return refuse_command(error, "must have at most 100,000 bytes; write a script into a file and run that");
    }
    if (strlen(command) != len) {
        return refuse_command(error, "must not have a NUL character");
    }
    bool sandboxed = call->tools->sandbox != GW_SANDBOX_OFF;
    char *private_folder = sandboxed ? gw_tool_call_private_path(call) : strdup("");
    if (!private_folder) {
        return fm_fail_no_memory(error);
    }
    const char *const argv[] = {"bash", "-c", command, NULL};
    const struct gw_job_plan plan = {.argv = argv, .private_folder = private_folder, .folder_writable = true};
    enum fm_code code = gw_tool_call_freeze(call, &plan, error);
    free(private_folder);
    memcpy(call->digest, call->job_digest, sizeof call->digest);
    gw_display_line(&call->summary, command, len, SUMMARY_MAX);
    write_details(call, command, len);
    return code;
}

/* ---- running ---- */

static void on_output(void *context, const char *data, size_t len) {
    struct bash *bash = context;
    gw_output_add(&bash->call->output, data, len);
}

static void on_tick(uv_timer_t *timer) {
    struct bash *bash = timer->data;
    gw_tool_call_progress(bash->call, "Running for %" PRId64 " s, %" PRIu64 " bytes of output",
                          (fm_now_ms() - bash->begun_ms) / 1000, bash->call->output.total);
}

static void settle_command(uv_handle_t *handle) {
    struct bash *bash = handle->data;
    struct gw_tool_call *call = bash->call;
    struct gw_process_end end = bash->end;
    static const enum gw_end ends[] = {[GW_PROCESS_EXIT] = GW_END_DONE,
                                       [GW_PROCESS_TIMEOUT] = GW_END_TIMEOUT,
                                       [GW_PROCESS_ABORTED] = GW_END_ABORTED,
                                       [GW_PROCESS_FAILED] = GW_END_FAILED,
                                       [GW_PROCESS_LOST] = GW_END_UNKNOWN};
    char note[600] = "";
    switch (end.why) {
    case GW_PROCESS_EXIT: break;
    case GW_PROCESS_TIMEOUT:
        snprintf(note, sizeof note, "[The command was ended at its time limit of %" PRId64 " ms (tools.timeout).]",
                 call->tools->timeout_ms);
        break;
    case GW_PROCESS_ABORTED: snprintf(note, sizeof note, "[The command was aborted.]"); break;
    case GW_PROCESS_FAILED: snprintf(note, sizeof note, "The command was not run: %s", end.error); break;
    case GW_PROCESS_LOST:
        snprintf(note, sizeof note,
                 "[The program that runs the command was killed. How far the command came is not known.]");
        break;
    }
    call->own = NULL;
    free(bash);
    gw_tool_call_settle(call, ends[end.why], &end, note);
}

static void on_ended(void *context, const struct gw_process_end *end) {
    struct bash *bash = context;
    bash->process = NULL;
    bash->end = *end;
    uv_close((uv_handle_t *)&bash->tick, settle_command);
}

static void free_late(uv_handle_t *handle) {
    free(handle->data);
}

static enum fm_code execute(struct gw_tool_call *call, struct fm_error *error) {
    struct bash *bash = calloc(1, sizeof *bash);
    if (!bash) {
        return fm_fail_no_memory(error);
    }
    bash->call = call;
    bash->begun_ms = fm_now_ms();
    uv_timer_init(call->tools->loop, &bash->tick);
    bash->tick.data = bash;
    const struct gw_process_start start = {.loop = call->tools->loop,
                                           .runner = call->tools->runner,
                                           .job = call->job,
                                           .folder = call->folder,
                                           .digest = call->job_digest};
    const struct gw_process_handlers handlers = {.context = bash, .output = on_output, .ended = on_ended};
    enum fm_code code = gw_process_start(&start, &handlers, &bash->process, error);
    if (code != FM_OK) {
        uv_close((uv_handle_t *)&bash->tick, free_late);
        return code;
    }
    uv_timer_start(&bash->tick, on_tick, TICK_MS, TICK_MS);
    call->own = bash;
    return FM_OK;
}

static void abort_command(struct gw_tool_call *call) {
    struct bash *bash = call->own;
    if (bash && bash->process) {
        gw_process_abort(bash->process);
    }
}

static void free_nothing(struct gw_tool_call *call) {
    (void)call; /* once the call has settled, `own` is freed */
}

const struct gw_tool gw_tool_bash = {
    .name = "bash",
    .description =
        "Runs a command with bash in the working folder and returns what it prints, with its exit code. There is "
        "no terminal and no input. Processes that it leaves in the background are ended with it.",
    .input_schema = "{\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"string\",\"minLength\":1,"
                    "\"description\":\"The command, as for bash -c\"}},\"required\":[\"command\"],"
                    "\"additionalProperties\":false}",
    .requires_approval = true,
    .prepare = prepare_command,
    .execute = execute,
    .abort = abort_command,
    .free = free_nothing,
};
