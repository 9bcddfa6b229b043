/* Dispatches a host's message to the method that serves it, and sends the answer. */
#include "front/dispatch.h"
#include "front/jobs.h"
#include "front/methods/methods.h"
#include "front/reply.h"
#include "front/store/queue.h"
#include "protocol/frame.h"

#include <json-c/json.h>

void fm_dispatcher_init(struct fm_dispatcher *dispatcher, struct fm_front *front) {
    dispatcher->front = front;
    fm_buf_init(&dispatcher->reply, FM_EVENT_MAX);
}

void fm_dispatcher_free(struct fm_dispatcher *dispatcher) {
    fm_buf_free(&dispatcher->reply);
}

bool fm_dispatch_is_at_once(const struct fm_rpc_message *message) {
    bool calls = message->kind != FM_RPC_RESPONSE;
    const struct fm_method *method = calls ? fm_method_find(message->method, message->method_len) : NULL;
    return method && method->flags & FM_METHOD_AT_ONCE;
}

static void reply_error(struct fm_dispatcher *dispatcher, const struct fm_rpc_id *id, enum fm_rpc_error code,
                        const char *detail) {
    struct fm_front *front = dispatcher->front;
    fm_frame_begin(&dispatcher->reply);
    fm_rpc_write_error(&dispatcher->reply, id, code, detail);
    fm_send_frame(front, &front->outbox, &dispatcher->reply);
}

static bool is_in_flight(struct fm_front *front, const struct fm_rpc_id *id) {
    fm_front_lock(front);
    bool in_flight = fm_jobs_answer_locked(front, id) || fm_store_answers_locked(front, id);
    fm_front_unlock(front);
    return in_flight;
}

/*
 * Checks whether the message can be run. Returns NULL, or why it can't be. A notification gets no reply in either case.
 */
static const char *find_refusal(struct fm_front *front, const struct fm_rpc_message *message,
                                const struct fm_method *method, enum fm_rpc_error *code) {
    *code = FM_RPC_METHOD;
    if (!method) {
        return "there is no such method; PROTOCOL.md lists all methods";
    }
    *code = FM_RPC_PARAMS;
    bool ignored = method->flags & FM_METHOD_IGNORES_PARAMS;
    if (!message->params && method->flags & FM_METHOD_NEEDS_PARAMS) {
        return "params are missing";
    }
    if (message->params && !ignored && !json_object_is_type(message->params, json_type_object)) {
        return "params must be an object";
    }
    *code = FM_RPC_INVALID;
    bool taken = message->kind == FM_RPC_REQUEST && is_in_flight(front, &message->id);
    return taken ? "a call with this id is still in flight" : NULL;
}

static void run_method(struct fm_dispatcher *dispatcher, const struct fm_rpc_message *message,
                       const struct fm_method *method) {
    struct fm_front *front = dispatcher->front;
    struct fm_buf *buf = &dispatcher->reply;
    struct fm_error error;
    fm_frame_begin(buf);
    struct fm_json_writer w = fm_rpc_result_begin(buf, &message->id);
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "ok", true);
    enum fm_code code = fm_method_run(method, front, message, &w, &error);
    fm_json_object_end(&w);
    fm_rpc_end(buf);
    bool answered_later = code == FM_OK && method->flags & FM_METHOD_ANSWERS_LATER;
    if (message->kind == FM_RPC_NOTIFICATION || answered_later) {
        return;
    }
    if (code != FM_OK) {
        fm_reply_write_failure(buf, &message->id, &error);
    }
    fm_send_frame(front, &front->outbox, buf);
}

static void on_message(void *context, const struct fm_rpc_message *message, struct json_object *root) {
    struct fm_dispatcher *dispatcher = context;
    struct fm_front *front = dispatcher->front;
    (void)root;
    if (message->kind == FM_RPC_RESPONSE || atomic_load(&front->shutdown_called)) {
        return;
    }
    const struct fm_method *method = fm_method_find(message->method, message->method_len);
    enum fm_rpc_error code;
    const char *refusal = find_refusal(front, message, method, &code);
    if (refusal) {
        if (message->kind == FM_RPC_REQUEST) {
            reply_error(dispatcher, &message->id, code, refusal);
        }
        return;
    }
    if (message->kind == FM_RPC_REQUEST || method->flags & FM_METHOD_NOTIFICATION) {
        run_method(dispatcher, message, method);
    }
}

static void on_fault(void *context, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *detail) {
    struct fm_dispatcher *dispatcher = context;
    reply_error(dispatcher, id, code, detail);
    if (code == FM_RPC_INTERNAL) { /* this call can never be answered: its id could not be read */
        fm_front_no_memory(dispatcher->front);
    }
}

const struct fm_inbound_handler fm_dispatch_handler = {.message = on_message, .fault = on_fault};
