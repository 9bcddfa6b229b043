/*
 * Calls and how they end. A call is in its client's list from fm_client_call until it settles; it is taken out of the
 * list before its callback runs, so nothing can settle it twice.
 */
#include "protocol/client/internal.h"
#include "protocol/json_check.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/* Room in a frame for everything except the params. */
#define ENVELOPE 512u

/* Above this size, the memory of a written frame is freed. */
#define FRAME_KEEP 65536u

/* Room for one cancel for each call. A full queue must not delay a cancel. */
#define CANCEL_BYTES  128u
#define CANCELS_BYTES ((size_t)FM_CLIENT_CALLS_MAX * CANCEL_BYTES)

static void settle_call(struct fm_client_call_state *call, struct json_object *result, const struct fm_error *error) {
    const struct fm_client_reply reply = {.code = error ? error->code : FM_OK, .result = result, .error = error};
    if (call->handler.settled) {
        call->handler.settled(call->handler.context, &reply);
    }
    free(call);
}

static struct fm_client_call_state *find_call(struct fm_client *client, int64_t id) {
    struct fm_client_call_state *call = client->calls;
    while (call && call->id != id) {
        call = call->next;
    }
    return call;
}

static struct fm_client_call_state *take_out(struct fm_client *client, int64_t id) {
    struct fm_client_call_state **link = &client->calls;
    while (*link && (*link)->id != id) {
        link = &(*link)->next;
    }
    struct fm_client_call_state *call = *link;
    if (call) {
        *link = call->next;
        client->calls_end = *link ? client->calls_end : link;
        client->call_count--;
    }
    return call;
}

struct fm_client_call_state *fm_client_detach(struct fm_client *client) {
    struct fm_client_call_state *calls = client->calls;
    client->calls = NULL;
    client->calls_end = &client->calls;
    client->call_count = 0;
    return calls;
}

void fm_client_settle_list(struct fm_client_call_state *calls, const struct fm_error *error) {
    while (calls) {
        struct fm_client_call_state *next = calls->next;
        settle_call(calls, NULL, error);
        calls = next;
    }
}

/* ---- answers ---- */

static const char *text_member(struct json_object *object, const char *name) {
    struct json_object *value;
    bool is_text = json_object_object_get_ex(object, name, &value) && json_object_is_type(value, json_type_string);
    return is_text ? json_object_get_string(value) : NULL;
}

static int64_t int_member(struct json_object *object, const char *name) {
    struct json_object *value;
    bool is_int = json_object_object_get_ex(object, name, &value) && json_object_is_type(value, json_type_int);
    return is_int ? json_object_get_int64(value) : 0;
}

static void copy_text(char *to, size_t size, const char *text) {
    size_t len = text ? strnlen(text, size - 1) : 0;
    memcpy(to, text ? text : "", len);
    to[len] = '\0';
}

/* The limit's name as a static string (PROTOCOL.md, Errors), because an error's `limit` must outlive the message. */
static const char *limit_word(const char *word) {
    static const char *const words[] = {"queue", "first_token", "no_progress", "total"};
    for (size_t i = 0; word && i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i]) == 0) {
            return words[i];
        }
    }
    return NULL;
}

static void read_error(struct json_object *object, struct fm_error *error) {
    const char *code = text_member(object, "code");
    const char *detail = text_member(object, "detail");
    struct json_object *openai;
    memset(error, 0, sizeof *error);
    fm_fail(error, fm_code_parse(code ? code : ""), "%s", detail ? detail : "the helper gave no reason");
    error->limit = limit_word(text_member(object, "limit"));
    error->limit_ms = int_member(object, "limit_ms");
    error->retry_ms = int_member(object, "retry_after_ms");
    copy_text(error->reason_code, sizeof error->reason_code, text_member(object, "reason_code"));
    if (json_object_object_get_ex(object, "openai", &openai)) {
        copy_text(error->param, sizeof error->param, text_member(openai, "param"));
    }
}

/* Reads an answer. True: the call succeeded. False: `error` is filled. */
static bool read_answer(const struct fm_rpc_message *message, struct fm_error *error) {
    struct json_object *ok = NULL;
    struct json_object *failure = NULL;
    memset(error, 0, sizeof *error);
    if (message->error) {
        int64_t code = int_member(message->error, "code");
        const char *text = text_member(message->error, "message");
        fm_fail(error, code == FM_RPC_INTERNAL ? FM_INTERNAL : FM_INVALID_REQUEST, "%s",
                text ? text : "the helper refused the call");
        return false;
    }
    if (!json_object_object_get_ex(message->result, "ok", &ok) || !json_object_is_type(ok, json_type_boolean)) {
        fm_fail(error, FM_INTERNAL, "the helper's answer does not say whether the call went well (`ok`)");
        return false;
    }
    if (!json_object_get_boolean(ok)) {
        json_object_object_get_ex(message->result, "error", &failure);
        read_error(failure, error);
        return false;
    }
    return true;
}

/* The number in an id; 0: this client did not make the id. */
static int64_t id_number(const struct fm_rpc_id *id) {
    return id->len && id->text[0] != '"' ? strtoll(id->text, NULL, 10) : 0;
}

static void take_answer(struct fm_client *client, const struct fm_rpc_message *message) {
    int64_t id = id_number(&message->id);
    if (message->id.len == 0) { /* the message does not say which call it answers, so all calls must end */
        const char *text = message->error ? text_member(message->error, "message") : NULL;
        fm_client_set_fault(client, "the helper refused a message: %s", text ? text : "it gave no reason");
    } else if (id && id == client->hello_id) {
        fm_client_welcome(client, message->result);
    } else {
        struct fm_error error;
        bool ok = read_answer(message, &error);
        struct fm_client_call_state *call = take_out(client, id);
        if (call) {
            settle_call(call, message->result, ok ? NULL : &error);
        }
    }
}

static void take_event(struct fm_client *client, const struct fm_rpc_message *message) {
    struct json_object *body = NULL;
    struct fm_client_call_state *call = find_call(client, int_member(message->params, "id"));
    if (call && call->handler.event &&
        (json_object_object_get_ex(message->params, "event", &body) ||
         json_object_object_get_ex(message->params, "chunk", &body))) {
        call->handler.event(call->handler.context, message->method, body);
    }
}

void fm_client_take(void *context, const struct fm_rpc_message *message, struct json_object *root) {
    struct fm_client *client = context;
    (void)root;
    if (client->fault[0]) {
        return; /* the helper is killed, and all its calls settle together */
    }
    if (message->kind == FM_RPC_RESPONSE) {
        take_answer(client, message);
    } else if (message->kind == FM_RPC_NOTIFICATION) {
        take_event(client, message);
    }
}

void fm_client_take_fault(void *context, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *detail) {
    (void)id;
    (void)code;
    fm_client_set_fault(context, "the helper sent something that is no message: %s", detail);
}

/* ---- calls ---- */

static bool begins_object(const char *params, size_t len) {
    size_t at = 0;
    while (at < len && strchr(" \t\r\n", params[at]) && params[at]) {
        at++;
    }
    return at < len && params[at] == '{';
}

/* Writes the whole message into `frame`, and checks it as the helper will. The helper can't see the id of an invalid
 * message, so its answer would belong to no call. */
static enum fm_code write_call(struct fm_client *client, int64_t id, const char *method, const char *params, size_t len,
                               struct fm_error *error) {
    struct fm_buf *frame = &client->frame;
    size_t offset = 0;
    if (len > FM_FRAME_BODY_MAX - ENVELOPE || strlen(method) > ENVELOPE / 2) {
        return fm_fail(error, FM_INVALID_REQUEST, "the params have %zu bytes; a frame holds %u with its envelope", len,
                       FM_FRAME_BODY_MAX);
    }
    const struct fm_rpc_id rpc_id = fm_rpc_id_int(id);
    fm_frame_begin(frame);
    size_t header = frame->len;
    struct fm_json_writer w = fm_rpc_request_begin(frame, &rpc_id, method);
    fm_json_raw(&w, params, len);
    fm_rpc_end(frame);
    if (frame->failed) {
        return fm_fail_no_memory(error);
    }
    const char *wrong = fm_json_check(frame->data + header, frame->len - header, FM_JSON_VALUES_MAX, &offset);
    if (!wrong) { /* the params must also be valid alone: otherwise they could add another id */
        wrong = fm_json_check(params, len, FM_JSON_VALUES_MAX, &offset);
    }
    if (wrong || !begins_object(params, len)) {
        return fm_fail(error, FM_INVALID_REQUEST, "the params of %s are not a JSON object: %s", method,
                       wrong ? wrong : "they do not begin with {");
    }
    return FM_OK;
}

static enum fm_code send_call(struct fm_client *client, int64_t id, const char *method, const char *params, size_t len,
                              struct fm_error *error) {
    enum fm_code code = write_call(client, id, method, params, len, error);
    code = code ? code : fm_client_enqueue(client, client->options.queue_bytes, error);
    if (client->frame.cap > FRAME_KEEP) {
        fm_buf_free(&client->frame);
    }
    return code;
}

enum fm_code fm_client_call(struct fm_client *client, const char *method, const char *params, size_t len,
                            const struct fm_client_handler *handler, int64_t *id, struct fm_error *error) {
    if (client->call_count >= FM_CLIENT_CALLS_MAX) {
        return fm_fail_too_many(error, "%u calls are open; wait until one has settled", FM_CLIENT_CALLS_MAX);
    }
    struct fm_client_call_state *call = calloc(1, sizeof *call);
    if (!call) {
        return fm_fail_no_memory(error);
    }
    enum fm_code code = fm_client_start(client, error);
    if (code == FM_OK) {
        code = send_call(client, client->last_id + 1, method, params ? params : "{}", params ? len : 2, error);
    }
    if (code != FM_OK) {
        free(call);
        return code;
    }
    call->id = ++client->last_id;
    if (handler) {
        call->handler = *handler;
    }
    *client->calls_end = call;
    client->calls_end = &call->next;
    client->call_count++;
    if (id) {
        *id = call->id;
    }
    return FM_OK;
}

bool fm_client_cancel(struct fm_client *client, int64_t id) {
    struct fm_client_call_state *call = find_call(client, id);
    struct fm_error ignored;
    if (!call || call->cancelled) {
        return false;
    }
    fm_frame_begin(&client->frame);
    struct fm_json_writer w = fm_rpc_notification_begin(&client->frame, "$/cancelRequest");
    fm_json_object_begin(&w);
    fm_json_key_int(&w, "id", id);
    fm_json_object_end(&w);
    fm_rpc_end(&client->frame);
    call->cancelled = fm_client_enqueue(client, client->options.queue_bytes + CANCELS_BYTES, &ignored) == FM_OK;
    return call->cancelled;
}
