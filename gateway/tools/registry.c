/*
 * The table of tools, and the life of a call: it is prepared, started, and settled once. Only gw_tool_call_settle
 * reports a result, and callbacks come only from the loop.
 */
#include "base/platform.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"
#include "protocol/json_writer.h"
#include "base/file.h"
#include "base/utf8.h"
#include "tools/call.h"
#include "tools/environment.h"
#include "tools/runner/wire.h"
#include "tools/schema.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROCESSES_MAX 4096
#define TEMPORARY_MAX                                                                                                  \
    32u /* bytes of the folder's path: programs make sockets below it, whose paths may have 107 bytes (unix(7)) */

static const struct gw_tool *const table[] = {&gw_tool_bash, &gw_tool_browser};

static const char *const sandbox_words[] = {
    [GW_SANDBOX_OFF] = "off", [GW_SANDBOX_WRITE] = "write", [GW_SANDBOX_STRICT] = "strict"};

bool gw_sandbox_parse(const char *word, enum gw_sandbox *sandbox) {
    for (size_t i = 0; i < sizeof sandbox_words / sizeof sandbox_words[0]; i++) {
        if (strcmp(sandbox_words[i], word) == 0) {
            *sandbox = (enum gw_sandbox)i;
            return true;
        }
    }
    return false;
}

const char *gw_end_name(enum gw_end end) {
    static const char *const names[] = {[GW_END_DONE] = "done",
                                        [GW_END_TIMEOUT] = "timeout",
                                        [GW_END_ABORTED] = "aborted",
                                        [GW_END_FAILED] = "failed",
                                        [GW_END_UNKNOWN] = "unknown"};
    return names[end];
}

size_t gw_tools_count(void) {
    return sizeof table / sizeof table[0];
}

const struct gw_tool *gw_tools_at(size_t index) {
    return table[index];
}

/* ---- the tools as a whole ---- */

static char *find_runner(const char *path) {
    char folder[PATH_MAX];
    char *result = NULL;
    if (path) {
        return strdup(path);
    }
    if (!fm_program_dir(folder, sizeof folder) || asprintf(&result, "%s/fm-tool-run", folder) < 0) {
        return NULL;
    }
    return result;
}

static char *copy_or_null(const char *text) {
    return text ? strdup(text) : NULL;
}

void gw_tools_free(struct gw_tools *tools) {
    if (tools) {
        free(tools->runner);
        free(tools->browser);
        free(tools->exempt_address);
        free(tools->temporary);
        gw_strings_free(tools->environment);
        gw_strings_free(tools->hidden);
        free(tools);
    }
}

enum fm_code gw_tools_new(const struct gw_tools_config *config, struct gw_tools **result, struct fm_error *error) {
    char *const *environment = config->environment ? config->environment : fm_process_environment();
    struct gw_tools *tools = calloc(1, sizeof *tools);
    *result = NULL;
    if (!tools || !(tools->environment = gw_environment_allowed(environment))) {
        gw_tools_free(tools);
        return fm_fail_no_memory(error);
    }
    const char *temporary = gw_environment_get(tools->environment, "TMPDIR");
    tools->loop = config->loop;
    tools->timeout_ms = config->timeout_ms;
    tools->output_max = config->output_max;
    tools->processes_max = config->processes_max ? config->processes_max : PROCESSES_MAX;
    tools->sandbox = config->sandbox;
    tools->runner = find_runner(config->runner);
    tools->browser = strdup(config->browser ? config->browser : "chromium");
    tools->exempt_address = copy_or_null(config->exempt_address);
    tools->own_port = config->own_port;
    tools->temporary = strdup(temporary && *temporary == '/' ? temporary : "/tmp");
    tools->hidden = gw_hidden_paths(gw_environment_get(tools->environment, "HOME"), config->state_folder);
    int failure = tools->runner ? fm_file_check_program(tools->runner) : ENOMEM;
    if (!tools->hidden || !tools->temporary || !tools->browser || failure) {
        fm_fail(error, FM_UNAVAILABLE, "%s can't be run: %s. It belongs beside the gateway's program",
                tools->runner ? tools->runner : "fm-tool-run", strerror(failure));
        gw_tools_free(tools);
        return FM_UNAVAILABLE;
    }
    *result = tools;
    return FM_OK;
}

/* ---- a call before its start ---- */

static const struct gw_tool *find_tool(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i]->name, name) == 0) {
            return table[i];
        }
    }
    return NULL;
}

/* Makes a tree from JSON text; NULL with the error. */
static struct json_object *parse_json(const char *text, size_t len, struct fm_error *error) {
    size_t offset = 0;
    struct json_object *root = NULL;
    struct fm_buf scratch;
    const char *fault =
        len > GW_TOOL_INPUT_MAX ? "it is too long" : fm_json_check(text, len, FM_JSON_VALUES_MAX, &offset);
    if (fault) {
        fm_fail(error, FM_INVALID_REQUEST, "the input is no JSON: %s at byte %zu", fault, offset);
        return NULL;
    }
    fm_buf_init(&scratch, GW_TOOL_INPUT_MAX);
    if (!fm_json_tree(text, len, &scratch, &root)) {
        fm_fail_no_memory(error);
    } else if (!root) {
        fm_fail(error, FM_INVALID_REQUEST, "the input must be of type object");
    }
    fm_buf_free(&scratch);
    return root;
}

static enum fm_code check_input(struct gw_tool_call *call, struct fm_error *error) {
    const char *text = call->tool->input_schema;
    struct json_object *schema = parse_json(text, strlen(text), error);
    enum fm_code code = schema ? gw_schema_check(schema, call->input, error) : error->code;
    json_object_put(schema);
    return code;
}

/* Opens the folder once; the user sees the path that it has at that moment. */
static enum fm_code open_folder(struct gw_tool_call *call, const char *folder, struct fm_error *error) {
    char link[64];
    char path[PATH_MAX];
    call->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (call->folder < 0) {
        return fm_fail(error, FM_INVALID_REQUEST, "the working folder %s can't be opened: %s", folder, strerror(errno));
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", call->folder);
    ssize_t len = readlink(link, path, sizeof path - 1);
    path[len > 0 ? len : 0] = '\0';
    call->folder_path = strdup(len > 0 ? path : folder);
    return call->folder_path ? FM_OK : fm_fail_no_memory(error);
}

static void free_call(uv_handle_t *handle) {
    struct gw_tool_call *call = handle->data;
    call->tool->free(call);
    json_object_put(call->input);
    if (call->folder >= 0) {
        close(call->folder);
    }
    if (call->job >= 0) {
        close(call->job);
    }
    for (size_t i = 0; i < call->attachment_count; i++) {
        free(call->attachments[i].data);
    }
    free(call->folder_path);
    fm_buf_free(&call->summary);
    fm_buf_free(&call->details);
    gw_output_free(&call->output);
    free(call);
}

void gw_tool_call_free(struct gw_tool_call *call) {
    if (call && !call->freed) {
        call->freed = true;
        uv_close((uv_handle_t *)&call->later, free_call);
    }
}

static struct gw_tool_call *create_call(struct gw_tools *tools, const struct gw_tool *tool) {
    struct gw_tool_call *call = calloc(1, sizeof *call);
    if (call) {
        call->tools = tools;
        call->tool = tool;
        call->folder = -1;
        call->job = -1;
        fm_buf_init(&call->summary, GW_TOOL_CALL_TEXT_MAX);
        fm_buf_init(&call->details, GW_TOOL_CALL_TEXT_MAX);
        gw_output_init(&call->output, tools->output_max);
        uv_timer_init(tools->loop, &call->later);
        call->later.data = call;
    }
    return call;
}

enum fm_code gw_tool_call_prepare(struct gw_tools *tools, const char *name, const char *input, size_t len,
                                  const char *folder, struct gw_tool_call **result, struct fm_error *error) {
    const struct gw_tool *tool = find_tool(name);
    *result = NULL;
    if (!tool) {
        return fm_fail(error, FM_NOT_FOUND, "there is no tool %.*s", fm_utf8_shown(name, 80), name);
    }
    struct gw_tool_call *call = create_call(tools, tool);
    if (!call) {
        return fm_fail_no_memory(error);
    }
    enum fm_code code = FM_OK;
    if (!(call->input = parse_json(input, len, error)) || (code = check_input(call, error)) != FM_OK ||
        (code = open_folder(call, folder, error)) != FM_OK || (code = tool->prepare(call, error)) != FM_OK) {
        code = error->code;
    } else {
        fm_buf_append_char(&call->summary, '\0');
        fm_buf_append_char(&call->details, '\0');
        code = call->summary.failed || call->details.failed ? fm_fail_no_memory(error) : FM_OK;
    }
    if (code != FM_OK) {
        gw_tool_call_free(call);
        return code;
    }
    *result = call;
    return FM_OK;
}

void gw_tool_call_request(const struct gw_tool_call *call, struct gw_tool_call_request *request) {
    *request = (struct gw_tool_call_request){
        .tool = call->tool->name,
        .summary = call->summary.data,
        .details = call->details.data,
        .digest = call->digest,
        .folder = call->folder_path,
        .requires_approval = call->tool->requires_approval,
    };
}

/* ---- freezing ---- */

static void write_list(struct fm_json_writer *w, const char *name, const char *const *strings) {
    fm_json_key(w, name);
    fm_json_array_begin(w);
    for (size_t i = 0; strings[i]; i++) {
        fm_json_str(w, strings[i]);
    }
    fm_json_array_end(w);
}

/* A private folder is also the command's TMPDIR. */
static void write_environment(struct fm_json_writer *w, const struct gw_tool_call *call,
                              const struct gw_job_plan *plan) {
    const char *private_folder = plan->private_folder;
    fm_json_key(w, "env");
    fm_json_array_begin(w);
    for (size_t i = 0; call->tools->environment[i]; i++) {
        const char *variable = call->tools->environment[i];
        bool replaced = (*private_folder && strncmp(variable, "TMPDIR=", 7) == 0) ||
                        (plan->home_private && strncmp(variable, "HOME=", 5) == 0);
        if (!replaced) {
            fm_json_str(w, variable);
        }
    }
    char variable[PATH_MAX + 8];
    if (*private_folder) {
        snprintf(variable, sizeof variable, "TMPDIR=%s", private_folder);
        fm_json_str(w, variable);
    }
    if (plan->home_private) {
        snprintf(variable, sizeof variable, "HOME=%s", private_folder);
        fm_json_str(w, variable);
    }
    fm_json_array_end(w);
}

static void write_job(struct fm_buf *job, const struct gw_tool_call *call, const struct gw_job_plan *plan) {
    struct fm_json_writer w = fm_json_writer_on(job);
    fm_json_object_begin(&w);
    write_list(&w, "argv", plan->argv);
    write_environment(&w, call, plan);
    write_list(&w, "hidden", (const char *const *)call->tools->hidden);
    fm_json_key_str(&w, "sandbox", sandbox_words[call->tools->sandbox]);
    fm_json_key_str(&w, "private", plan->private_folder);
    fm_json_key_bool(&w, "folder_writable", plan->folder_writable);
    fm_json_key_bool(&w, "pipes", plan->pipes);
    fm_json_key_int(&w, "timeout_ms", call->tools->timeout_ms);
    fm_json_key_int(&w, "processes", call->tools->processes_max);
    fm_json_object_end(&w);
}

enum fm_code gw_tool_call_freeze(struct gw_tool_call *call, const struct gw_job_plan *plan, struct fm_error *error) {
    struct fm_buf job;
    fm_buf_init(&job, GW_RUN_JOB_MAX);
    write_job(&job, call, plan);
    call->job = job.failed ? -1 : memfd_create("job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool frozen = call->job >= 0 && fm_write_all(call->job, job.data, job.len) &&
                  fcntl(call->job, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0;
    gw_digest(job.data, job.len, call->job_digest);
    fm_buf_free(&job);
    return frozen ? FM_OK
                  : fm_fail(error, FM_INTERNAL,
                            "the call can't be kept for approval: it is too long, or no memory is left");
}

char *gw_tool_call_private_path(const struct gw_tool_call *call) {
    unsigned char random[16];
    char digits[GW_DIGEST_SIZE];
    char *path = NULL;
    const char *folder = call->tools->temporary;
    fm_random(random, sizeof random);
    gw_digest(random, sizeof random, digits);
    folder = strlen(folder) > TEMPORARY_MAX ? "/tmp" : folder;
    return asprintf(&path, "%s/fm-tool-%.16s", folder, digits) < 0 ? NULL : path;
}

/* ---- a call that runs ---- */

static void on_start_failed(uv_timer_t *timer) {
    struct gw_tool_call *call = timer->data;
    gw_tool_call_settle(call, GW_END_FAILED, NULL, call->failure.detail);
}

void gw_tool_call_start(struct gw_tool_call *call, const struct gw_observer *observer) {
    call->observer = *observer;
    if (call->tool->execute(call, &call->failure) != FM_OK) {
        uv_timer_start(&call->later, on_start_failed, 0, 0);
    }
}

void gw_tool_call_abort(struct gw_tool_call *call) {
    if (!call->settled && call->failure.code == FM_OK) {
        call->aborting = true;
        call->tool->abort(call);
    }
}

void gw_tool_call_progress(struct gw_tool_call *call, const char *fmt, ...) {
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    text[fm_utf8_whole_prefix(text, strlen(text))] = '\0';
    if (call->observer.progress && !call->settled) {
        call->observer.progress(call->observer.context, text);
    }
}

bool gw_tool_call_attach(struct gw_tool_call *call, const char *mime_type, const char *name, char *data, size_t len) {
    if (!data || call->attachment_count == GW_ATTACHMENTS_MAX || len > GW_ATTACHMENT_BYTES - call->attachment_bytes) {
        free(data);
        return false;
    }
    struct gw_attachment *attachment = &call->attachments[call->attachment_count++];
    *attachment = (struct gw_attachment){.image = strncmp(mime_type, "image/", 6) == 0, .data = data, .len = len};
    snprintf(attachment->mime_type, sizeof attachment->mime_type, "%s", mime_type);
    snprintf(attachment->name, sizeof attachment->name, "%s", name);
    call->attachment_bytes += len;
    return true;
}

void gw_tool_call_settle(struct gw_tool_call *call, enum gw_end end, const struct gw_process_end *process,
                         const char *note) {
    struct gw_result result = {
        .end = end, .attachments = call->attachments, .attachment_count = call->attachment_count};
    struct fm_buf text;
    if (call->settled) {
        return;
    }
    call->settled = true;
    fm_buf_init(&text, call->output.max + 2048);
    if (!gw_output_text(&call->output, &text, &result.truncated)) {
        fm_buf_reset(&text);
        note = "The output is lost: no memory is left.";
    }
    if (note && *note) {
        fm_buf_append_str(&text, text.len && text.data[text.len - 1] != '\n' ? "\n" : "");
        fm_buf_append_str(&text, note);
    }
    result.output = text.data ? text.data : "";
    result.output_len = text.len;
    if (process) {
        result.pid_namespace = process->pid_namespace;
        result.has_exit_code = process->why == GW_PROCESS_EXIT;
        result.exit_code = process->exit_code;
    }
    call->observer.done(call->observer.context, &result);
    fm_buf_free(&text); /* `done` may free the call, whose memory goes in the loop's next round */
}
