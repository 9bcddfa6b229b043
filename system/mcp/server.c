/*
 * Implements the protocol's rules for one client. The version in a message's _meta decides the message's era. Without
 * such a version, the message has the era that `initialize` has set. Both kinds of messages may come on the same
 * connection.
 */
#include "mcp/server.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"
#include "protocol/line.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_BYTES  (64u << 20) /* bytes of the answers of a batch; further answers become errors */
#define FAULTS_BYTES (1u << 20)  /* room for these errors */

/* The answers to an array of messages. They are sent together, as soon as the last answer is ready. */
struct sy_batch {
    struct fm_buf answers; /* each answer, with a comma before it */
    size_t open;           /* requests without an answer, plus 1 until all messages were read */
};

void sy_server_free(struct sy_server *server) {
    free(server->jobs);
}

/* ---- output ---- */

static void append_line(struct sy_server *server, struct sy_batch *batch, const struct fm_buf *line) {
    if (!batch) {
        fm_buf_append(server->out, line->data, line->len);
        return;
    }
    fm_buf_append_char(&batch->answers, ',');
    fm_buf_append(&batch->answers, line->data, line->len - 1);
}

static void leave_batch(struct sy_server *server, struct sy_batch *batch) {
    if (!batch || --batch->open > 0) {
        return;
    }
    if (batch->answers.len > 0) {
        batch->answers.data[0] = '[';
        fm_buf_append(server->out, batch->answers.data, batch->answers.len);
        fm_buf_append_str(server->out, "]\n");
    }
    fm_buf_free(&batch->answers);
    free(batch);
}

static void send_fault(struct sy_server *server, struct sy_batch *batch, const struct fm_rpc_id *id, enum sy_era era,
                       const struct sy_fault *fault) {
    struct fm_buf line;
    fm_buf_init(&line, SY_REPLY_MAX);
    sy_write_fault(&line, id, era, fault);
    append_line(server, batch, &line);
    fm_buf_free(&line);
}

/* Sends an answer, which is one line. If its batch has no room for it, an error is sent instead. */
static void send_answer(struct sy_server *server, struct sy_batch *batch, const struct fm_rpc_id *id, enum sy_era era,
                        const struct fm_buf *line) {
    struct sy_fault fault;
    if (batch && batch->answers.len + line->len > BATCH_BYTES) {
        sy_fail(&fault, FM_RPC_INTERNAL, "the answers of the batch have more than %u bytes: ask for less at once",
                BATCH_BYTES);
        send_fault(server, batch, id, era, &fault);
        return;
    }
    append_line(server, batch, line);
}

static void send_nameless_fault(struct sy_server *server, int code, const char *message) {
    static const struct fm_rpc_id none = {.len = 0};
    struct sy_fault fault;
    sy_fail(&fault, code, "%s", message);
    send_fault(server, NULL, &none, server->negotiated, &fault);
}

void sy_server_long_line(struct sy_server *server) {
    char message[80];
    snprintf(message, sizeof message, "the line is longer than %u bytes", FM_LINE_MAX);
    send_nameless_fault(server, FM_RPC_INVALID, message);
}

/* ---- subscriptions: the lists never change, so no notification follows; a subscription only ends ---- */

static void write_subscription(struct fm_json_writer *w, const struct fm_rpc_id *id) {
    fm_json_key(w, "_meta");
    fm_json_object_begin(w);
    fm_json_key(w, SY_META "subscriptionId");
    fm_json_raw(w, id->text, id->len);
    fm_json_object_end(w);
}

/* Begins a subscription. Its answer is sent when it ends; now only a notification is sent. */
static bool listen_for_changes(struct sy_server *server, const struct sy_request *request, struct sy_fault *fault) {
    struct json_object *wanted = json_object_object_get(request->params, "notifications");
    if (!json_object_is_type(wanted, json_type_object)) {
        return sy_fail(fault, FM_RPC_PARAMS, "params.notifications must be an object");
    }
    if (server->listener_count == SY_LISTENERS_MAX) {
        return sy_fail(fault, FM_RPC_INTERNAL, "%d subscriptions are open: cancel one", SY_LISTENERS_MAX);
    }
    server->listeners[server->listener_count++] = request->id;
    struct fm_json_writer w = fm_rpc_notification_begin(server->out, "notifications/subscriptions/acknowledged");
    fm_json_object_begin(&w);
    write_subscription(&w, &request->id);
    fm_json_key(&w, "notifications");
    fm_json_object_begin(&w);
    fm_json_object_end(&w);
    fm_json_object_end(&w);
    fm_rpc_end(server->out);
    fm_buf_append_char(server->out, '\n');
    return true;
}

static bool forget_listener(struct sy_server *server, const struct fm_rpc_id *id) {
    for (size_t i = 0; i < server->listener_count; i++) {
        if (fm_rpc_id_equal(&server->listeners[i], id)) {
            server->listeners[i] = server->listeners[--server->listener_count];
            return true;
        }
    }
    return false;
}

void sy_server_end(struct sy_server *server) {
    for (size_t i = 0; i < server->listener_count; i++) {
        const struct sy_request request = {.era = SY_MODERN};
        struct fm_json_writer w = fm_rpc_result_begin(server->out, &server->listeners[i]);
        fm_json_object_begin(&w);
        write_subscription(&w, &server->listeners[i]);
        sy_result_end(server->out, &request, "complete", &w);
    }
    server->listener_count = 0;
}

/* ---- the era of a request ---- */

static bool is_log_level(struct json_object *value) {
    static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                         "error", "critical", "alert",  "emergency"};
    size_t i = 0;
    const char *level = json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
    while (i < sizeof levels / sizeof levels[0] && strcmp(levels[i], level) != 0) {
        i++;
    }
    return i < sizeof levels / sizeof levels[0];
}

static bool fail_version(const char *requested, struct sy_fault *fault) {
    struct fm_buf data = {.data = fault->data, .cap = sizeof fault->data - 1, .max = sizeof fault->data - 1};
    struct fm_json_writer w = fm_json_writer_on(&data);
    sy_fail(fault, SY_NO_VERSION, "Unsupported protocol version");
    fm_json_object_begin(&w);
    fm_json_key(&w, "supported");
    fm_json_array_begin(&w);
    fm_json_str(&w, sy_era_name(SY_MODERN));
    fm_json_array_end(&w);
    fm_json_key(&w, "requested");
    fm_json_string(&w, requested, strnlen(requested, 64));
    fm_json_object_end(&w);
    fault->data[data.len] = '\0';
    return false;
}

/* Reads the _meta of a request whose _meta has the version. */
static bool read_modern(struct sy_request *request, struct json_object *version, struct sy_fault *fault) {
    struct json_object *abilities = json_object_object_get(request->meta, SY_META "clientCapabilities");
    struct json_object *info = json_object_object_get(request->meta, SY_META "clientInfo");
    struct json_object *level = json_object_object_get(request->meta, SY_META "logLevel");
    if (!json_object_is_type(version, json_type_string)) {
        return sy_fail(fault, FM_RPC_PARAMS, "params._meta: " SY_META "protocolVersion must be a string");
    }
    if (sy_era_find(json_object_get_string(version)) != SY_MODERN) {
        return fail_version(json_object_get_string(version), fault);
    }
    request->era = SY_MODERN;
    if (!json_object_is_type(abilities, json_type_object)) {
        return sy_fail(fault, FM_RPC_PARAMS, "params._meta: " SY_META "clientCapabilities must be an object");
    }
    if (info && !json_object_is_type(info, json_type_object)) {
        return sy_fail(fault, FM_RPC_PARAMS, "params._meta: " SY_META "clientInfo must be an object");
    }
    if (level && !is_log_level(level)) {
        return sy_fail(fault, FM_RPC_PARAMS, "params._meta: " SY_META "logLevel is no level");
    }
    return true;
}

static bool find_era(const struct sy_server *server, struct sy_request *request, struct sy_fault *fault) {
    struct json_object *version = json_object_object_get(request->meta, SY_META "protocolVersion");
    bool begins = strcmp(request->method, "initialize") == 0 && !version; /* versions in _meta have no such method */
    request->era = server->negotiated;
    if (begins || (server->negotiated == SY_NO_ERA && !version && strcmp(request->method, "ping") == 0)) {
        request->era = SY_LAST_LEGACY;
        return true;
    }
    if (version) {
        return read_modern(request, version, fault);
    }
    if (server->negotiated == SY_NO_ERA && sy_find_method(request->method)) {
        return sy_fail(fault, FM_RPC_PARAMS,
                       "params._meta needs " SY_META "protocolVersion, unless the client calls initialize first");
    }
    return true;
}

/* ---- requests ---- */

static struct sy_job *find_job(const struct sy_server *server, const struct fm_rpc_id *id) {
    for (size_t i = 0; i < server->job_count; i++) {
        if (!server->jobs[i]->dropped && fm_rpc_id_equal(&server->jobs[i]->id, id)) {
            return server->jobs[i];
        }
    }
    return NULL;
}

static bool is_open(const struct sy_server *server, const struct fm_rpc_id *id) {
    for (size_t i = 0; i < server->listener_count; i++) {
        if (fm_rpc_id_equal(&server->listeners[i], id)) {
            return true;
        }
    }
    return find_job(server, id) != NULL;
}

/* Makes a job with a copy of the message, and gives it to server->hand_over, which owns it until sy_server_done. */
static bool hand_over(struct sy_server *server, const struct sy_request *request, const char *text, size_t len,
                      struct sy_batch *batch, struct sy_fault *fault) {
    struct sy_job *job = malloc(sizeof *job + len);
    struct sy_job **jobs = realloc(server->jobs, (server->job_count + 1) * sizeof(struct sy_job *));
    if (jobs) {
        server->jobs = jobs;
    }
    if (!job || !jobs) {
        free(job);
        return sy_fail(fault, FM_RPC_INTERNAL, "out of memory");
    }
    *job = (struct sy_job){.id = request->id, .era = request->era, .batch = batch, .len = len};
    memcpy(job->text, text, len);
    fm_buf_init(&job->told, SY_REPLY_MAX);
    fm_buf_init(&job->answer, SY_REPLY_MAX);
    server->jobs[server->job_count++] = job;
    if (batch) {
        batch->open++;
    }
    server->hand_over(server->context, job);
    return true;
}

static bool answer_at_once(struct sy_server *server, const struct sy_request *request, const struct sy_method *method,
                           struct sy_batch *batch, struct sy_fault *fault) {
    struct fm_buf line;
    fm_buf_init(&line, SY_REPLY_MAX);
    struct fm_json_writer w = sy_result_begin(&line, request, method->keep);
    bool done = method->answer(server, request, &w, fault);
    sy_result_end(&line, request, "complete", &w);
    if (done && line.failed) {
        done = sy_fail(fault, FM_RPC_INTERNAL, "out of memory");
    }
    if (done) {
        send_answer(server, batch, &request->id, request->era, &line);
    }
    fm_buf_free(&line);
    return done;
}

static bool take_request(struct sy_server *server, struct sy_request *request, const char *text, size_t len,
                         struct sy_batch *batch, struct sy_fault *fault) {
    if (!find_era(server, request, fault)) {
        return false;
    }
    if (is_open(server, &request->id)) {
        return sy_fail(fault, FM_RPC_INVALID, "a request with this id is still open");
    }
    const struct sy_method *method = sy_find_method(request->method);
    if (!method || request->era < method->first || request->era > method->last) {
        return sy_fail(fault, FM_RPC_METHOD, "Method not found: %.64s", request->method);
    }
    if (batch && strcmp(method->name, "initialize") == 0) {
        return sy_fail(fault, FM_RPC_INVALID, "initialize must not be part of a batch");
    }
    if (method->listens) {
        return listen_for_changes(server, request, fault);
    }
    return method->answer ? answer_at_once(server, request, method, batch, fault)
                          : hand_over(server, request, text, len, batch, fault);
}

static void take_notification(struct sy_server *server, const struct fm_rpc_message *message) {
    struct json_object *value = json_object_is_type(message->params, json_type_object)
                                    ? json_object_object_get(message->params, "requestId")
                                    : NULL;
    struct fm_rpc_id id;
    if (strcmp(message->method, "notifications/cancelled") != 0 || !fm_rpc_id_read(value, &id) ||
        forget_listener(server, &id)) {
        return;
    }
    struct sy_job *job = find_job(server, &id);
    if (job) {
        job->dropped = true;
        server->cancel(server->context, job);
    }
}

/* Takes one message. `text` is its JSON, `root` the tree made from it. */
static void take_message(struct sy_server *server, struct json_object *root, const char *text, size_t len,
                         struct sy_batch *batch) {
    struct fm_rpc_message message;
    struct sy_request request = {.era = server->negotiated};
    struct sy_fault fault = {.code = 0};
    enum fm_rpc_error code = fm_rpc_read(root, &message);
    if (code != FM_RPC_OK) {
        if (message.kind == FM_RPC_NOTIFICATION) {
            return;
        }
        sy_fail(&fault, code, "not a message of JSON-RPC 2.0 with a method, and an id that is a string or an integer");
    } else if (message.kind == FM_RPC_NOTIFICATION) {
        take_notification(server, &message);
        return;
    } else if (message.kind == FM_RPC_RESPONSE) {
        return; /* ignored: this server sends no requests */
    } else if (message.method_len != strlen(message.method)) {
        sy_fail(&fault, FM_RPC_METHOD, "Method not found");
    } else if (sy_request_read(&message, &request, &fault)) {
        take_request(server, &request, text, len, batch, &fault);
    }
    if (fault.code != 0) {
        send_fault(server, batch, &message.id, request.era, &fault);
    }
}

/* ---- lines ---- */

static void take_batch(struct sy_server *server, struct json_object *root) {
    size_t count = json_object_array_length(root);
    if (server->negotiated != SY_2025_03_26 || count == 0 || count > SY_BATCH_MAX) {
        send_nameless_fault(server, FM_RPC_INVALID,
                            server->negotiated != SY_2025_03_26 ? "this version of the protocol has no batches"
                                                                : "a batch must have 1 to 64 messages");
        return;
    }
    struct sy_batch *batch = calloc(1, sizeof *batch);
    if (!batch) {
        send_nameless_fault(server, FM_RPC_INTERNAL, "out of memory");
        return;
    }
    fm_buf_init(&batch->answers, BATCH_BYTES + FAULTS_BYTES);
    batch->open = 1;
    for (size_t i = 0; i < count; i++) {
        struct json_object *at = json_object_array_get_idx(root, i);
        struct fm_buf text;
        fm_buf_init(&text, FM_LINE_MAX);
        struct fm_json_writer w = fm_json_writer_on(&text);
        fm_json_value(&w, at);
        take_message(server, at, text.data, text.len, batch);
        fm_buf_free(&text);
    }
    leave_batch(server, batch);
}

static bool is_blank(const char *line, size_t len) {
    while (len > 0 && strchr(" \t\r", line[len - 1]) && line[len - 1]) {
        len--;
    }
    return len == 0;
}

void sy_server_line(struct sy_server *server, const char *line, size_t len) {
    struct json_object *root = NULL;
    size_t offset = 0;
    if (is_blank(line, len)) {
        return;
    }
    const char *fault = fm_json_check(line, len, SY_MCP_VALUES_MAX, &offset);
    if (fault) {
        char message[200];
        snprintf(message, sizeof message, "%s, at byte %zu of the line", fault, offset);
        send_nameless_fault(server, FM_RPC_PARSE, message);
        return;
    }
    struct fm_buf scratch;
    fm_buf_init(&scratch, FM_LINE_MAX);
    bool built = fm_json_tree(line, len, &scratch, &root);
    fm_buf_free(&scratch);
    if (!built) {
        send_nameless_fault(server, FM_RPC_INTERNAL, "out of memory");
    } else if (json_object_is_type(root, json_type_array)) {
        take_batch(server, root);
    } else {
        take_message(server, root, line, len, NULL);
    }
    json_object_put(root);
}

/* ---- jobs ---- */

void sy_server_tell(struct sy_server *server, const struct sy_job *job, const struct fm_buf *lines) {
    if (!job->dropped) {
        fm_buf_append(server->out, lines->data, lines->len);
    }
}

void sy_server_done(struct sy_server *server, struct sy_job *job) {
    size_t i = 0;
    while (server->jobs[i] != job) {
        i++;
    }
    server->jobs[i] = server->jobs[--server->job_count];
    sy_server_tell(server, job, &job->told);
    if (!job->dropped) {
        send_answer(server, job->batch, &job->id, job->era, &job->answer);
    }
    leave_batch(server, job->batch);
    fm_buf_free(&job->told);
    fm_buf_free(&job->answer);
    free(job);
}
