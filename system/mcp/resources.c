/*
 * The contract's context as resources: running and installed applications, tabs in the browser's order and tabs with
 * their numbers, presets, monitors. Each resource is JSON, and is made when it is read.
 */
#include "desktop/refuse.h"
#include "mcp/context.h"
#include "mcp/lists.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define URI_HEAD "fm-system://context/"

static const struct row {
    const char *path; /* the path in the URI */
    const char *about;
    sy_context *write;
} rows[] = {
    {"running-apps", "The applications that are running, with the exact names that commands take.", sy_context_running},
    {"installed-apps", "The applications that can be started, with the exact names that focus_app takes.",
     sy_context_installed},
    {"tabs", "Chrome's tabs with their numbers, and the snapshot handle of this list.", sy_context_tabs},
    {"tabs-raw", "Chrome's tabs as the browser names them.", sy_context_raw_tabs},
    {"presets", "The names of the presets that activate_preset takes.", sy_context_presets},
    {"monitors", "The monitors: their names, and their bounds in pixels of the whole screen.", sy_context_monitors},
};

#define ROWS (sizeof rows / sizeof rows[0])

void sy_resources_list(enum sy_era era, struct fm_json_writer *w) {
    fm_json_key(w, "resources");
    fm_json_array_begin(w);
    for (size_t i = 0; i < ROWS; i++) {
        char uri[64];
        snprintf(uri, sizeof uri, URI_HEAD "%s", rows[i].path);
        fm_json_object_begin(w);
        fm_json_key_str(w, "uri", uri);
        fm_json_key_str(w, "name", rows[i].path);
        if (era >= SY_2025_06_18) {
            char title[32];
            snprintf(title, sizeof title, "%s", rows[i].path);
            for (char *at = title; *at; at++) {
                *at = *at == '-' ? '_' : *at;
            }
            sy_write_title(title, w);
        }
        fm_json_key_str(w, "description", rows[i].about);
        fm_json_key_str(w, "mimeType", "application/json");
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}

static const struct row *find_row(const char *uri) {
    if (strncmp(uri, URI_HEAD, strlen(URI_HEAD)) != 0) {
        return NULL;
    }
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].path, uri + strlen(URI_HEAD)) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

/* Fills `fault` when the desktop can't give the data. Returns false. */
static bool fail_unavailable(const struct fm_error *error, struct sy_fault *fault) {
    sy_fail(fault, FM_RPC_INTERNAL, "%s", error->detail);
    snprintf(fault->data, sizeof fault->data, "{\"code\":\"%s\"}", sy_reason(error));
    return false;
}

static bool read_row(struct sy_caller *caller, const struct row *row, struct fm_buf *text, struct sy_fault *fault) {
    struct fm_error error;
    struct sy_snapshot snapshot;
    struct fm_json_writer w = fm_json_writer_on(text);
    enum fm_code code = sy_caller_open(caller, &error);
    code = code ? code : sy_snapshot_take(&caller->world.desktop, &snapshot, &error);
    if (code != FM_OK) {
        return fail_unavailable(&error, fault);
    }
    fm_json_object_begin(&w);
    code = row->write(&caller->world, &snapshot, &w, &error);
    fm_json_object_end(&w);
    sy_snapshot_free(&snapshot);
    return code == FM_OK || fail_unavailable(&error, fault);
}

static bool no_such_resource(const char *uri, enum sy_era era, struct sy_fault *fault) {
    struct fm_buf data = {.data = fault->data, .cap = sizeof fault->data - 1, .max = sizeof fault->data - 1};
    struct fm_json_writer w = fm_json_writer_on(&data);
    sy_fail(fault, era >= SY_MODERN ? FM_RPC_PARAMS : SY_NO_RESOURCE, "Resource not found");
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "uri", uri);
    fm_json_object_end(&w);
    fault->data[data.failed ? 0 : data.len] = '\0'; /* a URI that is too long is left out */
    return false;
}

bool sy_resources_read(struct sy_caller *caller, const struct sy_request *request, struct fm_json_writer *w,
                       struct sy_fault *fault) {
    const char *uri = sy_request_string(request, "uri", fault);
    struct fm_buf text;
    if (!uri) {
        return false;
    }
    const struct row *row = find_row(uri);
    if (!row) {
        return no_such_resource(uri, request->era, fault);
    }
    fm_buf_init(&text, SY_REPLY_MAX);
    bool done = read_row(caller, row, &text, fault);
    if (done && text.failed) {
        done = sy_fail(fault, FM_RPC_INTERNAL, "out of memory, or the resource is too large");
    }
    if (done) {
        fm_json_key(w, "contents");
        fm_json_array_begin(w);
        fm_json_object_begin(w);
        fm_json_key_str(w, "uri", uri);
        fm_json_key_str(w, "mimeType", "application/json");
        fm_json_key(w, "text");
        fm_json_string(w, text.data, text.len);
        fm_json_object_end(w);
        fm_json_array_end(w);
    }
    fm_buf_free(&text);
    return done;
}
