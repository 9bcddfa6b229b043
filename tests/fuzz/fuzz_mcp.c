/*
 * Fuzzes lines of an MCP client, on a fake desktop. The first byte is the number of lines before jobs are done. Every
 * request gets one answer with its id, unless it was cancelled. An invalid line gets an answer without an id. Nothing
 * else gets an answer. The output consists of whole lines of JSON.
 */
#include "backends/fake.h"
#include "mcp/caller.h"
#include "mcp/server.h"
#include "protocol/json_tree.h"
#include "tests/fuzz/fuzz.h"

#define IDS_MAX 256 /* lines above this number are not sent */

static const char description[] =
    "{\"monitors\":[{\"area\":[0,0,800,600]}],"
    "\"apps\":[{\"id\":\"a.desktop\",\"name\":\"A\",\"class\":\"a\",\"program\":\"a\"}],"
    "\"windows\":[{\"id\":\"w1\",\"class\":\"a\",\"title\":\"t\",\"bounds\":[0,0,99,99],\"active\":true}],"
    "\"tabs\":[{\"id\":\"t1\",\"window\":\"1\",\"active\":true,\"title\":\"x\",\"url\":\"https://a.example/\"},"
    "{\"id\":\"t2\",\"window\":\"1\",\"title\":\"y\",\"url\":\"https://b.example/?q\"}]}";

/* The answers that are expected. */
struct expected {
    struct fm_rpc_id id;
    bool answered;
    bool may_lack; /* the request was cancelled, so its answer may be missing */
};

struct client {
    struct sy_server server;
    struct sy_policy policy;
    struct sy_caller caller;
    struct fm_buf out;
    size_t checked; /* bytes of the output that were checked */
    struct sy_job *jobs[IDS_MAX * SY_BATCH_MAX];
    size_t job_count;
    struct expected expected[IDS_MAX];
    size_t count;
    size_t nameless; /* expected answers without an id */
};

static enum fm_code open_desktop(void *context, int cancel_fd, struct sy_desktop *desktop, struct fm_error *error) {
    bool ok;
    struct json_object *root = json_parse(description, sizeof description - 1, 0, &ok);
    (void)context;
    (void)cancel_fd;
    HOLDS(ok);
    enum fm_code code = sy_fake_new(root, desktop, error);
    json_object_put(root);
    return code;
}

/* ---- jobs ---- */

static void hand_over(void *context, struct sy_job *job) {
    struct client *client = context;
    client->jobs[client->job_count++] = job;
}

static void cancel(void *context, struct sy_job *job) {
    struct client *client = context;
    size_t i = 0;
    while (i < client->job_count && client->jobs[i] != job) {
        i++;
    }
    HOLDS(i < client->job_count);
    client->jobs[i] = client->jobs[--client->job_count];
    sy_server_done(&client->server, job);
}

static struct sy_job *working;

static void tell(void *context, const char *line, size_t len) {
    (void)context;
    fm_buf_append(&working->told, line, len);
}

static void work_all(struct client *client) {
    for (size_t i = 0; i < client->job_count; i++) {
        struct fm_rpc_message message;
        struct sy_request request;
        struct sy_fault fault;
        bool ok;
        struct json_object *root = json_parse(client->jobs[i]->text, client->jobs[i]->len, 0, &ok);
        working = client->jobs[i];
        HOLDS(ok && fm_rpc_read(root, &message) == FM_RPC_OK && sy_request_read(&message, &request, &fault));
        request.era = working->era;
        sy_caller_answer(&client->caller, &request, &working->answer);
        json_object_put(root);
        sy_server_done(&client->server, working);
    }
    client->job_count = 0;
}

/* ---- what is expected ---- */

static void expect_message(struct client *client, struct json_object *root) {
    struct json_object *id = NULL;
    struct json_object *method = NULL;
    bool is_object = json_object_is_type(root, json_type_object);
    bool has_id = is_object && json_object_object_get_ex(root, "id", &id);
    bool has_method = is_object && json_object_object_get_ex(root, "method", &method);
    bool named = json_object_is_type(method, json_type_string);
    struct fm_rpc_id read;
    if (is_object && !has_method &&
        (json_object_object_get_ex(root, "result", NULL) || json_object_object_get_ex(root, "error", NULL))) {
        return;
    }
    if (has_id && fm_rpc_id_read(id, &read)) {
        HOLDS(client->count < IDS_MAX);
        client->expected[client->count++] = (struct expected){.id = read};
    } else if (has_id || !named) {
        client->nameless++;
    }
}

static bool is_cancel(struct json_object *root, struct fm_rpc_id *id) {
    struct json_object *method = json_object_object_get(root, "method");
    struct json_object *params = json_object_object_get(root, "params");
    return json_object_is_type(root, json_type_object) && !json_object_object_get_ex(root, "id", NULL) &&
           json_object_is_type(method, json_type_string) &&
           strcmp(json_object_get_string(method), "notifications/cancelled") == 0 &&
           json_object_is_type(params, json_type_object) &&
           fm_rpc_id_read(json_object_object_get(params, "requestId"), id);
}

static void note_cancel(struct client *client, struct json_object *root) {
    struct fm_rpc_id id;
    if (!is_cancel(root, &id)) {
        return;
    }
    for (size_t i = 0; i < client->count; i++) {
        if (fm_rpc_id_equal(&client->expected[i].id, &id) && !client->expected[i].answered) {
            client->expected[i].may_lack = true;
        }
    }
}

static void expect(struct client *client, struct json_object *root) {
    if (!json_object_is_type(root, json_type_array)) {
        expect_message(client, root);
        note_cancel(client, root);
        return;
    }
    size_t count = json_object_array_length(root);
    if (client->server.negotiated != SY_2025_03_26 || count == 0 || count > SY_BATCH_MAX) {
        client->nameless++;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        expect_message(client, json_object_array_get_idx(root, i));
        note_cancel(client, json_object_array_get_idx(root, i));
    }
}

/* ---- what came ---- */

static void check_answer(struct client *client, struct json_object *root) {
    struct json_object *value = NULL;
    struct fm_rpc_id id;
    HOLDS(json_object_is_type(root, json_type_object));
    HOLDS(strcmp(json_object_get_string(json_object_object_get(root, "jsonrpc")), "2.0") == 0);
    if (json_object_object_get_ex(root, "method", &value)) {
        HOLDS(strncmp(json_object_get_string(value), "notifications/", 14) == 0);
        HOLDS(!json_object_object_get_ex(root, "id", NULL));
        return;
    }
    bool result = json_object_object_get_ex(root, "result", NULL);
    bool error = json_object_object_get_ex(root, "error", NULL);
    HOLDS(result != error);
    json_object_object_get_ex(root, "id", &value);
    if (!value) {
        HOLDS(error && client->nameless-- > 0);
        return;
    }
    HOLDS(fm_rpc_id_read(value, &id));
    struct expected *found = NULL;
    /* if several requests have this id, prefers one that was not cancelled */
    for (size_t i = 0; i < client->count; i++) {
        struct expected *at = &client->expected[i];
        if (!at->answered && fm_rpc_id_equal(&at->id, &id) && (!found || found->may_lack)) {
            found = at;
        }
    }
    HOLDS_OR(found, "an answer to nobody: %.*s", (int)id.len, id.text);
    found->answered = true;
}

static void check_lines(struct client *client) {
    while (client->checked < client->out.len) {
        const char *line = client->out.data + client->checked;
        const char *end = memchr(line, '\n', client->out.len - client->checked);
        HOLDS(end);
        struct json_object *root = json_must_parse(line, (size_t)(end - line));
        if (json_object_is_type(root, json_type_array)) {
            for (size_t i = 0; i < json_object_array_length(root); i++) {
                check_answer(client, json_object_array_get_idx(root, i));
            }
        } else {
            check_answer(client, root);
        }
        json_object_put(root);
        client->checked = (size_t)(end - client->out.data) + 1;
    }
}

/* ---- a run ---- */

static void send_line(struct client *client, const char *text, size_t len) {
    size_t offset;
    bool blank = true;
    char *line = exact_copy(text, len);
    for (size_t i = 0; i < len; i++) {
        blank = blank && strchr(" \t\r", line[i]) && line[i];
    }
    if (!blank && fm_json_check(line, len, SY_MCP_VALUES_MAX, &offset)) {
        client->nameless++;
    } else if (!blank) {
        struct json_object *root = json_must_parse(line, len);
        expect(client, root);
        json_object_put(root);
    }
    sy_server_line(&client->server, line, len);
    free(line);
    check_lines(client);
}

static void finish(struct client *client) {
    work_all(client);
    check_lines(client);
    sy_server_end(&client->server);
    check_lines(client);
    HOLDS(client->nameless == 0 && client->server.job_count == 0 && !client->out.failed);
    for (size_t i = 0; i < client->count; i++) {
        HOLDS_OR(client->expected[i].answered || client->expected[i].may_lack, "no answer to %.*s",
                 (int)client->expected[i].id.len, client->expected[i].id.text);
    }
    sy_server_free(&client->server);
    sy_caller_close(&client->caller);
    fm_buf_free(&client->out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct client client;
    client = (struct client){.policy = {.read_only = size > 0 && data[0] & 8}};
    client.server = (struct sy_server){
        .policy = &client.policy, .out = &client.out, .hand_over = hand_over, .cancel = cancel, .context = &client};
    client.caller =
        (struct sy_caller){.policy = client.policy, .open_desktop = open_desktop, .cancel_fd = -1, .tell = tell};
    fm_buf_init(&client.out, 256u << 20);
    const char *at = (const char *)data + (size > 0);
    const char *end = (const char *)data + size;
    unsigned every = size > 0 ? data[0] % 4 + 1 : 1;
    for (unsigned line = 1; at < end && client.count + SY_BATCH_MAX < IDS_MAX; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        send_line(&client, at, (size_t)(stop - at));
        if (line % every == 0) {
            work_all(&client);
            check_lines(&client);
        }
        at = stop + (newline != NULL);
    }
    finish(&client);
    return 0;
}
