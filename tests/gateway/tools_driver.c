/*
 * Drives the tools by lines of JSON, for test_tools.py and test_browser.py: what the gateway does with them, without
 * the rest of the gateway. The first line has the configuration. Then
 * {"op":"prepare","id":N,"tool":..,"input":..,"folder":..},
 * {"op":"start","id":N}, {"op":"abort","id":N}, {"op":"free","id":N}. A line for each thing that happens comes back.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/platform.h"
#include "protocol/json_writer.h"
#include "protocol/line.h"
#include "tools/tool.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLS_MAX 64

struct slot {
    int id;
    struct gw_tool_call *call;
};

static uv_loop_t loop;
static uv_pipe_t input;
static struct fm_lines lines;
static struct gw_tools *tools;
static struct slot slots[CALLS_MAX];
static char piece[FM_LINE_FEED];

static const char *text(struct json_object *root, const char *name) {
    struct json_object *value = NULL;
    return json_object_object_get_ex(root, name, &value) ? json_object_get_string(value) : NULL;
}

static int64_t number(struct json_object *root, const char *name) {
    struct json_object *value = NULL;
    return json_object_object_get_ex(root, name, &value) ? json_object_get_int64(value) : 0;
}

static struct fm_json_writer begin(struct fm_buf *line, int id) {
    fm_buf_init(line, 64u << 20);
    struct fm_json_writer w = fm_json_writer_on(line);
    fm_json_object_begin(&w);
    fm_json_key_int(&w, "id", id);
    return w;
}

static void end(struct fm_json_writer *w) {
    fm_json_object_end(w);
    fm_buf_append_char(w->buf, '\n');
    if (w->buf->failed || !fm_write_all(1, w->buf->data, w->buf->len)) {
        exit(3);
    }
    fm_buf_free(w->buf);
}

static void report_error(int id, const struct fm_error *error) {
    struct fm_buf line;
    struct fm_json_writer w = begin(&line, id);
    fm_json_key_str(&w, "error", fm_code_name(error->code));
    fm_json_key_str(&w, "param", error->param);
    fm_json_key_str(&w, "detail", error->detail);
    end(&w);
}

static void on_progress(void *context, const char *message) {
    struct fm_buf line;
    struct slot *slot = context;
    struct fm_json_writer w = begin(&line, slot->id);
    fm_json_key_str(&w, "progress", message);
    end(&w);
}

static void on_done(void *context, const struct gw_result *result) {
    struct fm_buf line;
    struct slot *slot = context;
    struct fm_json_writer w = begin(&line, slot->id);
    fm_json_key_str(&w, "end", gw_end_name(result->end));
    fm_json_key(&w, "output");
    fm_json_string(&w, result->output, result->output_len);
    fm_json_key_bool(&w, "truncated", result->truncated);
    fm_json_key_bool(&w, "namespace", result->pid_namespace);
    if (result->has_exit_code) {
        fm_json_key_int(&w, "exitCode", result->exit_code);
    }
    fm_json_key(&w, "attachments");
    fm_json_array_begin(&w);
    for (size_t i = 0; i < result->attachment_count; i++) {
        fm_json_object_begin(&w);
        fm_json_key_str(&w, "type", result->attachments[i].image ? "image" : "file");
        fm_json_key_str(&w, "mimeType", result->attachments[i].mime_type);
        fm_json_key_str(&w, "name", result->attachments[i].name);
        fm_json_key(&w, "data");
        fm_json_string(&w, result->attachments[i].data, result->attachments[i].len);
        fm_json_object_end(&w);
    }
    fm_json_array_end(&w);
    end(&w);
    gw_tool_call_free(slot->call);
    slot->call = NULL;
}

static struct slot *find(int id) {
    for (size_t i = 0; i < CALLS_MAX; i++) {
        if (slots[i].call && slots[i].id == id) {
            return &slots[i];
        }
    }
    return NULL;
}

static void prepare(struct json_object *root, int id) {
    struct json_object *call_input = NULL;
    struct fm_error error;
    struct gw_tool_call_request request;
    struct fm_buf line;
    struct slot *slot = slots;
    while (slot->call) {
        slot++;
    }
    json_object_object_get_ex(root, "input", &call_input);
    const char *json = json_object_to_json_string(call_input);
    slot->id = id;
    if (gw_tool_call_prepare(tools, text(root, "tool"), json, strlen(json), text(root, "folder"), &slot->call,
                             &error)) {
        report_error(id, &error);
        return;
    }
    gw_tool_call_request(slot->call, &request);
    struct fm_json_writer w = begin(&line, id);
    fm_json_key_str(&w, "summary", request.summary);
    fm_json_key(&w, "details");
    fm_json_raw(&w, request.details, strlen(request.details));
    fm_json_key_str(&w, "digest", request.digest);
    fm_json_key_bool(&w, "requiresApproval", request.requires_approval);
    end(&w);
}

static void open_tools(struct json_object *root) {
    struct fm_error error;
    struct gw_tools_config config = {.loop = &loop,
                                     .runner = text(root, "runner"),
                                     .browser = text(root, "browser"),
                                     .state_folder = text(root, "stateFolder"),
                                     .exempt_address = text(root, "exempt"),
                                     .timeout_ms = number(root, "timeout"),
                                     .output_max = (size_t)number(root, "maxOutputBytes"),
                                     .processes_max = number(root, "processes")};
    if (!gw_sandbox_parse(text(root, "sandbox"), &config.sandbox) || gw_tools_new(&config, &tools, &error)) {
        report_error(0, &error);
        exit(2);
    }
}

static void take(struct json_object *root) {
    const char *op = text(root, "op");
    int id = (int)number(root, "id");
    struct slot *slot = find(id);
    const struct gw_observer observer = {.context = slot, .progress = on_progress, .done = on_done};
    if (strcmp(op, "open") == 0) {
        open_tools(root);
    } else if (strcmp(op, "prepare") == 0) {
        prepare(root, id);
    } else if (strcmp(op, "start") == 0 && slot) {
        gw_tool_call_start(slot->call, &observer);
    } else if (strcmp(op, "abort") == 0 && slot) {
        gw_tool_call_abort(slot->call);
    } else if (strcmp(op, "free") == 0 && slot) {
        gw_tool_call_free(slot->call);
        slot->call = NULL;
    }
}

static void allocate(uv_handle_t *handle, size_t wanted, uv_buf_t *buf) {
    (void)handle;
    (void)wanted;
    *buf = uv_buf_init(piece, sizeof piece);
}

static void on_input(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf) {
    const char *line;
    size_t len;
    if (got < 0) {
        uv_close((uv_handle_t *)stream, NULL); /* calls go on, and end the loop when they end */
        return;
    }
    if (!fm_lines_feed(&lines, buf->base, (size_t)got)) {
        exit(3);
    }
    while (fm_lines_next(&lines, &line, &len) == FM_LINE_READY) {
        struct json_tokener *tokener = json_tokener_new();
        struct json_object *root = json_tokener_parse_ex(tokener, line, (int)len);
        take(root);
        json_object_put(root);
        json_tokener_free(tokener);
    }
}

int main(void) {
    fm_lines_init(&lines);
    uv_loop_init(&loop);
    uv_pipe_init(&loop, &input, 0);
    uv_pipe_open(&input, 0);
    uv_read_start((uv_stream_t *)&input, allocate, on_input);
    uv_run(&loop, UV_RUN_DEFAULT);
    gw_tools_free(tools);
    fm_lines_free(&lines);
    return uv_loop_close(&loop) == 0 ? 0 : 4;
}
