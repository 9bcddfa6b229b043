/*
 * Drives the tools by lines of JSON, for test_tools.py and test_browser.py: it uses them like the gateway, but without
 * the rest of the gateway. The first line has the configuration. Then
 * {"op":"prepare","id":N,"tool":..,"input":..,"folder":..}, {"op":"start","id":N}, {"op":"abort","id":N},
 * {"op":"free","id":N}. A line comes back for each thing that happens.
 */
#include "driver.h"
#include "base/clock.h"
#include "base/file.h"
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
static struct gw_tools *tools;
static struct slot slots[CALLS_MAX];

static void on_progress(void *context, const char *message) {
    struct fm_buf line;
    struct slot *slot = context;
    struct fm_json_writer w = driver_begin(&line, slot->id);
    fm_json_key_str(&w, "progress", message);
    driver_end(&w);
}

static void on_done(void *context, const struct gw_result *result) {
    struct fm_buf line;
    struct slot *slot = context;
    struct fm_json_writer w = driver_begin(&line, slot->id);
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
    driver_end(&w);
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
    if (gw_tool_call_prepare(tools, driver_text(root, "tool"), json, strlen(json), driver_text(root, "folder"),
                             &slot->call, &error)) {
        driver_report(id, &error);
        return;
    }
    gw_tool_call_request(slot->call, &request);
    struct fm_json_writer w = driver_begin(&line, id);
    fm_json_key_str(&w, "summary", request.summary);
    fm_json_key(&w, "details");
    fm_json_raw(&w, request.details, strlen(request.details));
    fm_json_key_str(&w, "digest", request.digest);
    fm_json_key_bool(&w, "requiresApproval", request.requires_approval);
    driver_end(&w);
}

static void open_tools(struct json_object *root) {
    static uint16_t own_port;
    struct fm_error error;
    own_port = (uint16_t)driver_number(root, "ownPort");
    struct gw_tools_config config = {.loop = &loop,
                                     .own_port = &own_port,
                                     .runner = driver_text(root, "runner"),
                                     .browser = driver_text(root, "browser"),
                                     .state_folder = driver_text(root, "stateFolder"),
                                     .exempt_address = driver_text(root, "exempt"),
                                     .timeout_ms = driver_number(root, "timeout"),
                                     .output_max = (size_t)driver_number(root, "maxOutputBytes"),
                                     .processes_max = driver_number(root, "processes")};
    if (!gw_sandbox_parse(driver_text(root, "sandbox"), &config.sandbox) || gw_tools_new(&config, &tools, &error)) {
        driver_report(0, &error);
        exit(2);
    }
}

static void take(struct json_object *root) {
    const char *op = driver_text(root, "op");
    int id = (int)driver_number(root, "id");
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

int main(void) {
    uv_loop_init(&loop);
    driver_run(&loop, take, NULL); /* Calls continue after the end of the input. The loop ends when they have ended. */
    gw_tools_free(tools);
    return uv_loop_close(&loop) == 0 ? 0 : 4;
}
