/* Reads and writes the common parts of all requests and answers. */
#include "mcp/message.h"

#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define KEEP_MS 3600000 /* for lists that change only with the program's version */

bool sy_fail(struct sy_fault *fault, int code, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(fault->message, sizeof fault->message, fmt, args);
    va_end(args);
    fault->code = code;
    fault->data[0] = '\0';
    return false;
}

/* ---- writing ---- */

struct fm_json_writer sy_result_begin(struct fm_buf *reply, const struct sy_request *request, enum sy_keep keep) {
    struct fm_json_writer w = fm_rpc_result_begin(reply, &request->id);
    fm_json_object_begin(&w);
    if (request->era < SY_MODERN) {
        return w;
    }
    fm_json_key(&w, "_meta");
    fm_json_object_begin(&w);
    fm_json_key(&w, SY_META "serverInfo");
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "name", "fm-system");
    fm_json_key_str(&w, "version", FM_VERSION);
    fm_json_object_end(&w);
    fm_json_object_end(&w);
    if (keep != SY_KEEP_NOT) {
        fm_json_key_int(&w, "ttlMs", keep == SY_KEEP_LONG ? KEEP_MS : 0);
        fm_json_key_str(&w, "cacheScope", keep == SY_KEEP_LONG ? "public" : "private");
    }
    return w;
}

void sy_result_end(struct fm_buf *reply, const struct sy_request *request, const char *type, struct fm_json_writer *w) {
    if (request->era >= SY_MODERN) {
        fm_json_key_str(w, "resultType", type);
    }
    fm_json_object_end(w);
    fm_rpc_end(reply);
    fm_buf_append_char(reply, '\n');
}

void sy_write_fault(struct fm_buf *reply, const struct fm_rpc_id *id, enum sy_era era, const struct sy_fault *fault) {
    struct fm_json_writer w = fm_json_writer_on(reply);
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "jsonrpc", "2.0");
    if (id->len > 0) {
        fm_json_key(&w, "id");
        fm_json_raw(&w, id->text, id->len);
    } else if (era != SY_NO_ERA && era < SY_2025_11_25) {
        fm_json_key_null(&w, "id"); /* JSON-RPC wants null; since 2025-11-25 MCP's schema does not allow it */
    }
    fm_json_key(&w, "error");
    fm_json_object_begin(&w);
    fm_json_key_int(&w, "code", fault->code);
    fm_json_key_str(&w, "message", fault->message);
    if (fault->data[0]) {
        fm_json_key(&w, "data");
        fm_json_raw(&w, fault->data, strlen(fault->data));
    }
    fm_json_object_end(&w);
    fm_json_object_end(&w);
    fm_buf_append_char(reply, '\n');
}

/* ---- reading ---- */

bool sy_request_read(const struct fm_rpc_message *message, struct sy_request *request, struct sy_fault *fault) {
    *request = (struct sy_request){.id = message->id, .method = message->method, .params = message->params};
    if (request->params && !json_object_is_type(request->params, json_type_object)) {
        return sy_fail(fault, FM_RPC_PARAMS, "params must be an object");
    }
    request->meta = json_object_object_get(request->params, "_meta");
    if (request->meta && !json_object_is_type(request->meta, json_type_object)) {
        return sy_fail(fault, FM_RPC_PARAMS, "params._meta must be an object");
    }
    return true;
}

const char *sy_request_string(const struct sy_request *request, const char *name, struct sy_fault *fault) {
    struct json_object *value = json_object_object_get(request->params, name);
    if (!json_object_is_type(value, json_type_string)) {
        sy_fail(fault, FM_RPC_PARAMS, "params.%s must be a string", name);
        return NULL;
    }
    return json_object_get_string(value);
}

bool sy_request_has_no_cursor(const struct sy_request *request, struct sy_fault *fault) {
    if (json_object_object_get(request->params, "cursor")) {
        return sy_fail(fault, FM_RPC_PARAMS, "params.cursor did not come from this server: its lists have one page");
    }
    return true;
}
