/* JSON-RPC 2.0 envelopes: reads a message out of its tree, and writes requests and replies. */
#include "protocol/rpc.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

/* The largest integer that a double, and so JavaScript, holds exactly. */
#define ID_INTEGER_MAX ((int64_t)9007199254740991)

struct fm_rpc_id fm_rpc_id_int(int64_t value) {
    struct fm_rpc_id id;
    id.len = (unsigned short)snprintf(id.text, sizeof id.text, "%" PRId64, value);
    return id;
}

static bool string_id(const char *text, size_t len, struct fm_rpc_id *id) {
    if (len > FM_RPC_ID_MAX) {
        return false;
    }
    /* A buffer that never allocates: otherwise a valid id would be reported as invalid when memory runs out. */
    struct fm_buf buf = {.data = id->text, .cap = sizeof id->text, .max = sizeof id->text};
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_json_string(&w, text, len);
    id->len = buf.failed ? 0 : (unsigned short)buf.len;
    return !buf.failed;
}

bool fm_rpc_id_read(struct json_object *value, struct fm_rpc_id *id) {
    id->len = 0;
    if (json_object_is_type(value, json_type_string)) {
        return string_id(json_object_get_string(value), (size_t)json_object_get_string_len(value), id);
    }
    if (!json_object_is_type(value, json_type_int)) {
        return false;
    }
    int64_t number = json_object_get_int64(value);
    if (number > ID_INTEGER_MAX || number < -ID_INTEGER_MAX) {
        return false;
    }
    *id = fm_rpc_id_int(number);
    return true;
}

bool fm_rpc_id_equal(const struct fm_rpc_id *a, const struct fm_rpc_id *b) {
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static bool version_valid(struct json_object *root) {
    struct json_object *version;
    return json_object_object_get_ex(root, "jsonrpc", &version) && json_object_is_type(version, json_type_string) &&
           json_object_get_string_len(version) == 3 && strcmp(json_object_get_string(version), "2.0") == 0;
}

enum fm_rpc_error fm_rpc_read(struct json_object *root, struct fm_rpc_message *message) {
    *message = (struct fm_rpc_message){.kind = FM_RPC_REQUEST};
    if (!json_object_is_type(root, json_type_object)) {
        return FM_RPC_INVALID;
    }
    struct json_object *id;
    struct json_object *method;
    bool has_id = json_object_object_get_ex(root, "id", &id);
    bool has_method = json_object_object_get_ex(root, "method", &method);
    bool is_response = !has_method && (json_object_object_get_ex(root, "result", &message->result) ||
                                       json_object_object_get_ex(root, "error", &message->error));
    if (is_response) {
        message->kind = FM_RPC_RESPONSE;
        if (!has_id || !fm_rpc_id_read(id, &message->id)) {
            message->id.len = 0; /* a response without a call's id: the receiver drops it */
        }
        return FM_RPC_OK;
    }
    if (has_id && !fm_rpc_id_read(id, &message->id)) {
        return FM_RPC_INVALID;
    }
    bool named = has_method && json_object_is_type(method, json_type_string);
    if (!has_id && named) {
        message->kind = FM_RPC_NOTIFICATION;
    }
    if (!named || !version_valid(root)) {
        return FM_RPC_INVALID;
    }
    message->method = json_object_get_string(method);
    message->method_len = (size_t)json_object_get_string_len(method);
    json_object_object_get_ex(root, "params", &message->params);
    return FM_RPC_OK;
}

static void write_id(struct fm_buf *buf, const struct fm_rpc_id *id) {
    fm_buf_append_str(buf, ",\"id\":");
    fm_buf_append(buf, id->len ? id->text : "null", id->len ? id->len : 4);
}

static void open_message(struct fm_buf *buf) {
    fm_buf_append_str(buf, "{\"jsonrpc\":\"2.0\"");
}

struct fm_json_writer fm_rpc_result_begin(struct fm_buf *buf, const struct fm_rpc_id *id) {
    open_message(buf);
    write_id(buf, id);
    fm_buf_append_str(buf, ",\"result\":");
    return fm_json_writer_on(buf);
}

static struct fm_json_writer method_begin(struct fm_buf *buf, const char *method) {
    fm_buf_append_str(buf, ",\"method\":\"");
    fm_buf_append_str(buf, method);
    fm_buf_append_str(buf, "\",\"params\":");
    return fm_json_writer_on(buf);
}

struct fm_json_writer fm_rpc_request_begin(struct fm_buf *buf, const struct fm_rpc_id *id, const char *method) {
    open_message(buf);
    write_id(buf, id);
    return method_begin(buf, method);
}

struct fm_json_writer fm_rpc_notification_begin(struct fm_buf *buf, const char *method) {
    open_message(buf);
    return method_begin(buf, method);
}

void fm_rpc_end(struct fm_buf *buf) {
    fm_buf_append_char(buf, '}');
}

void fm_rpc_write_error(struct fm_buf *buf, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *message) {
    open_message(buf);
    write_id(buf, id);
    fm_buf_append_str(buf, ",\"error\":");
    struct fm_json_writer w = fm_json_writer_on(buf);
    fm_json_object_begin(&w);
    fm_json_key_int(&w, "code", code);
    fm_json_key_str(&w, "message", message);
    fm_json_object_end(&w);
    fm_rpc_end(buf);
}
