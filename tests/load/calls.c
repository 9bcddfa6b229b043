/* Starts create calls, collects the front's messages about each, and checks them against PROTOCOL.md's rules. */
#include "calls.h"
#include "base/clock.h"
#include "figures.h"
#include "protocol/json_check.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (8u << 20)

void calls_init(struct calls *calls, struct host *host) {
    *calls = (struct calls){.host = host, .tokener = json_tokener_new_ex(FM_JSON_DEPTH_MAX + 1)};
    for (size_t i = 0; i < CALLS_MAX; i++) {
        fm_buf_init(&calls->slots[i].text, TEXT_MAX);
    }
}

void calls_free(struct calls *calls) {
    for (size_t i = 0; i < CALLS_MAX; i++) {
        fm_buf_free(&calls->slots[i].text);
    }
    json_tokener_free(calls->tokener);
}

struct call *call_create(struct calls *calls, enum call_api api, const char *script, const char *limits) {
    int64_t id = ++calls->last_id;
    struct call *call = &calls->slots[id % CALLS_MAX];
    if (call->id && !call->done) {
        report_fault("call %lld got no result while %d others came", (long long)call->id, CALLS_MAX);
        calls->open--;
    }
    fm_buf_free(&call->text);
    *call = (struct call){.id = id, .api = api, .text = call->text, .started_us = fm_now_us()};
    struct fm_json_writer w =
        host_begin(calls->host, id, api == CALL_CHAT ? "chat.completions.create" : "responses.create");
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "stream", true);
    if (api == CALL_CHAT) {
        fm_json_key(&w, "messages");
        fm_json_array_begin(&w);
        fm_json_object_begin(&w);
        fm_json_key_str(&w, "role", "user");
        fm_json_key_str(&w, "content", script);
        fm_json_object_end(&w);
        fm_json_array_end(&w);
    } else {
        fm_json_key_str(&w, "input", script);
    }
    if (limits) {
        fm_json_key(&w, "fm");
        fm_json_raw(&w, limits, strlen(limits));
    }
    fm_json_object_end(&w);
    host_send(calls->host);
    calls->open++;
    return call;
}

struct call *call_by_id(struct calls *calls, int64_t id) {
    struct call *call = &calls->slots[id > 0 ? id % CALLS_MAX : 0];
    return id > 0 && call->id == id ? call : NULL;
}

/* ---- reading ---- */

static struct json_object *member(struct json_object *object, const char *name) {
    struct json_object *value = NULL;
    json_object_object_get_ex(object, name, &value);
    return value;
}

static const char *string_of(struct json_object *value) {
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

static void append(struct call *call, struct json_object *text) {
    if (json_object_is_type(text, json_type_string)) {
        fm_buf_append(&call->text, json_object_get_string(text), (size_t)json_object_get_string_len(text));
        call->deltas++;
    }
}

static void check_text(const struct call *call, struct json_object *text, const char *where) {
    size_t len = (size_t)json_object_get_string_len(text);
    if (len != call->text.len || (len && memcmp(json_object_get_string(text), call->text.data, len) != 0)) {
        report_fault("call %lld: %s has %zu bytes that are not the %zu of the deltas", (long long)call->id, where, len,
                     call->text.len);
    }
}

/* The text of a finished response or completion; NULL if it has none. */
static struct json_object *final_text(const struct call *call, struct json_object *object) {
    if (call->api == CALL_CHAT) {
        return member(member(json_object_array_get_idx(member(object, "choices"), 0), "message"), "content");
    }
    struct json_object *output = member(object, "output");
    struct json_object *item = json_object_array_length(output) ? json_object_array_get_idx(output, 0) : NULL;
    return item ? member(json_object_array_get_idx(member(item, "content"), 0), "text") : NULL;
}

static bool is_terminal(const char *type) {
    return strcmp(type, "response.completed") == 0 || strcmp(type, "response.incomplete") == 0 ||
           strcmp(type, "response.failed") == 0;
}

static void take_event(struct call *call, struct json_object *event) {
    const char *type = string_of(member(event, "type"));
    struct json_object *response = member(event, "response");
    if (json_object_get_int64(member(event, "sequence_number")) != call->events) {
        report_fault("call %lld: event %lld has sequence number %s", (long long)call->id, (long long)call->events,
                     json_object_get_string(member(event, "sequence_number")));
    }
    if ((call->events == 0) != (strcmp(type, "response.created") == 0)) {
        report_fault("call %lld: event %lld is %s", (long long)call->id, (long long)call->events, type);
    }
    if (call->events == 0) {
        snprintf(call->answer_id, sizeof call->answer_id, "%s", string_of(member(response, "id")));
    }
    if (strcmp(type, "response.output_text.delta") == 0) {
        append(call, member(event, "delta"));
    } else if (strcmp(type, "response.output_text.done") == 0) {
        check_text(call, member(event, "text"), type);
    } else if (is_terminal(type)) {
        call->ended = true;
        snprintf(call->terminal, sizeof call->terminal, "%s", type);
        check_text(call, final_text(call, response), type);
    }
}

static void take_chunk(struct call *call, struct json_object *chunk) {
    struct json_object *choice = json_object_array_get_idx(member(chunk, "choices"), 0);
    if (call->events == 0) {
        snprintf(call->answer_id, sizeof call->answer_id, "%s", string_of(member(chunk, "id")));
    }
    append(call, member(member(choice, "delta"), "content"));
    if (member(choice, "finish_reason")) {
        call->ended = true;
        snprintf(call->terminal, sizeof call->terminal, "%s", string_of(member(choice, "finish_reason")));
    }
}

static void take_notification(struct calls *calls, struct json_object *params) {
    int64_t id = json_object_get_int64(member(params, "id"));
    struct call *call = call_by_id(calls, id);
    if (!call || call->done || call->ended) {
        report_fault("call %lld: an event after its end: %.200s", (long long)id, json_object_get_string(params));
        return;
    }
    if (call->api == CALL_CHAT) {
        take_chunk(call, member(params, "chunk"));
    } else {
        take_event(call, member(params, "event"));
    }
    call->events++;
}

static void take_result(struct calls *calls, struct call *call, struct json_object *result) {
    bool ok = json_object_get_boolean(member(result, "ok"));
    struct json_object *object = member(result, call->api == CALL_CHAT ? "completion" : "response");
    if (call->done) {
        report_fault("call %lld: a second result", (long long)call->id);
        return;
    }
    call->done = true;
    call->ended_us = fm_now_us();
    calls->open--;
    calls->finished++;
    snprintf(call->code, sizeof call->code, "%s", ok ? "ok" : string_of(member(member(result, "error"), "code")));
    bool must_end = call->api == CALL_CHAT ? ok : call->events > 0;
    if (call->ended != must_end) {
        report_fault("call %lld: result %s after %lld events, %s terminal event", (long long)call->id, call->code,
                     (long long)call->events, call->ended ? "with a" : "without a");
    }
    /* a stream's last event already had the text */
    if (object && (call->api == CALL_CHAT || member(object, "output"))) {
        check_text(call, final_text(call, object), "the result");
    }
}

static void take_message(struct calls *calls, struct json_object *message) {
    struct json_object *method = member(message, "method");
    int64_t id = json_object_get_int64(member(message, "id"));
    struct call *call = call_by_id(calls, id);
    if (method) {
        take_notification(calls, member(message, "params"));
    } else if (call && member(message, "result")) {
        take_result(calls, call, member(message, "result"));
    } else if (calls->other) {
        calls->other(calls->context, id, message);
    } else {
        report_fault("an unexpected message: %.200s", json_object_get_string(message));
    }
}

void calls_take(struct calls *calls, const char *body, size_t len) {
    json_tokener_reset(calls->tokener);
    struct json_object *message = json_tokener_parse_ex(calls->tokener, body, (int)len);
    if (message) {
        take_message(calls, message);
    } else {
        report_fault("not JSON: %.*s", (int)(len < 200 ? len : 200), body);
    }
    json_object_put(message);
}

/* ---- waiting ---- */

bool calls_wait(struct calls *calls, int64_t wait_ms) {
    int64_t deadline = fm_now_ms() + wait_ms;
    while (calls->open && !calls->host->ended && fm_now_ms() < deadline) {
        host_turn(calls->host, 10000);
    }
    if (calls->open) {
        report_fault("%u calls have no result", calls->open);
    }
    return calls->open == 0;
}

void calls_warm_up(struct calls *calls) {
    const struct call *call = call_create(calls, CALL_RESPONSES, "[\"warm\"]", NULL);
    if (!calls_wait(calls, (int64_t)(20000 * bounds.slow)) || strcmp(call->code, "ok") != 0) {
        report_fault("the warm-up call ended with \"%s\"", call->code);
    }
}
