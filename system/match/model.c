/* fm-proxy as a child. One question is one chat completion, held to its schema; nothing of it is stored or cached on
 * disk. */
#include "match/model.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/platform.h"
#include "match/prompt.h"
#include "protocol/client/client.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MS     60000
#define ANSWER_TOKENS 400 /* eight labels, or a few sentences, and more than enough */
#define CANCEL_MS     2000 /* until a call that was cancelled has settled; then the helper is killed */
#define REQUEST_MAX   (1u << 20)
#define ANSWER_VALUES 64

struct sy_proxy {
    struct fm_client *client;
    char *model;
    int64_t ms;
    int cancel_fd; /* -1: none */
};

/* ---- the request ---- */

static void write_message(struct fm_json_writer *w, const char *role, const char *text, size_t len) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "role", role);
    fm_json_key(w, "content");
    fm_json_string(w, text, len);
    fm_json_object_end(w);
}

static void write_format(struct fm_json_writer *w, const struct fm_buf *schema) {
    fm_json_key(w, "response_format");
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "json_schema");
    fm_json_key(w, "json_schema");
    fm_json_object_begin(w);
    fm_json_key_str(w, "name", "command");
    fm_json_key_bool(w, "strict", true);
    fm_json_key(w, "schema");
    fm_json_raw(w, schema->data, schema->len);
    fm_json_object_end(w);
    fm_json_object_end(w);
}

static void write_model(const struct sy_proxy *proxy, struct fm_json_writer *w) {
    if (proxy->model) {
        fm_json_key_str(w, "model", proxy->model);
    }
}

static void write_limits(struct fm_json_writer *w) {
    fm_json_key_int(w, "temperature", 0);
    fm_json_key_int(w, "max_tokens", ANSWER_TOKENS);
}

static void write_request(const struct sy_proxy *proxy, const struct sy_question *question, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    write_model(proxy, w);
    fm_json_key(w, "messages");
    fm_json_array_begin(w);
    write_message(w, "system", question->instructions, strlen(question->instructions));
    for (size_t i = 0; i < question->example_count; i++) {
        const struct sy_example *example = &question->examples[i];
        write_message(w, "user", example->prompt, strlen(example->prompt));
        write_message(w, "assistant", example->answer, strlen(example->answer));
    }
    write_message(w, "user", question->prompt->data, question->prompt->len);
    fm_json_array_end(w);
    write_format(w, question->schema);
    write_limits(w);
    fm_json_object_end(w);
}

/* ---- the answer ---- */

static struct json_object *member(struct json_object *object, const char *name) {
    return json_object_is_type(object, json_type_object) ? json_object_object_get(object, name) : NULL;
}

/* The text of the answer, of `result`. */
static enum fm_code read_text(struct json_object *result, const char **text, size_t *len, struct fm_error *error) {
    struct json_object *choices = member(member(result, "completion"), "choices");
    bool any = json_object_is_type(choices, json_type_array) && json_object_array_length(choices) > 0;
    struct json_object *choice = any ? json_object_array_get_idx(choices, 0) : NULL;
    struct json_object *content = member(member(choice, "message"), "content");
    if (!json_object_is_type(content, json_type_string)) {
        return fm_fail(error, FM_UNAVAILABLE, "the model gave no answer");
    }
    *text = json_object_get_string(content);
    *len = (size_t)json_object_get_string_len(content);
    return FM_OK;
}

static enum fm_code read_pick(const char *text, size_t len, struct json_object **answer, struct fm_error *error) {
    size_t at;
    if (fm_json_check(text, len, ANSWER_VALUES, &at)) {
        return fm_fail(error, FM_UNAVAILABLE, "the model's answer is no JSON: it was cut at its end, perhaps");
    }
    struct fm_buf scratch;
    fm_buf_init(&scratch, len + 1);
    bool read = fm_json_tree(text, len, &scratch, answer);
    fm_buf_free(&scratch);
    return read ? FM_OK : fm_fail_no_memory(error);
}

/* ---- a call ---- */

struct call {
    bool settled;
    enum fm_code code;
    struct json_object *result; /* the caller's */
    struct fm_error error;
};

static void on_settled(void *context, const struct fm_client_reply *reply) {
    struct call *call = context;
    call->settled = true;
    call->code = reply->code;
    call->result = json_object_get(reply->result);
    if (reply->error) {
        call->error = *reply->error;
    }
}

/* Until the call settles: FM_OK; or FM_TIMEOUT, or FM_CANCELLED as `cancel_fd` (-1: none) says. */
static enum fm_code await(struct fm_client *client, const struct call *call, int64_t until_ms, int cancel_fd) {
    while (!call->settled) {
        struct fm_waited waited[FM_WAITED_MAX];
        size_t count = fm_client_fds(client, waited); /* leaves room for one */
        int64_t left = until_ms - fm_now_ms();
        int64_t due = fm_client_timeout(client);
        if (left <= 0) {
            return FM_TIMEOUT;
        }
        waited[count] = (struct fm_waited){.fd = cancel_fd, .input = true};
        fm_wait(waited, count + 1, (int)(due >= 0 && due < left ? due : left));
        if (waited[count].ready) {
            return FM_CANCELLED;
        }
        fm_client_process(client);
    }
    return FM_OK;
}

/* A helper that died while nobody asked is followed by another one. */
static void take_note(struct fm_client *client) {
    fm_client_process(client);
    while (fm_client_state_get(client) == FM_CLIENT_ENDING) { /* for FM_CLIENT_END_MS at most */
        fm_client_wait(client, -1);
    }
}

/* Sends the request. `*text` is of `*result`, which the caller frees. */
static enum fm_code ask(const struct sy_proxy *proxy, const struct fm_buf *request, struct json_object **result,
                        const char **text, size_t *len, struct fm_error *error) {
    struct call call = {.settled = false};
    const struct fm_client_handler handler = {.context = &call, .settled = on_settled};
    int64_t id = 0;
    *result = NULL;
    take_note(proxy->client);
    enum fm_code code = request->failed ? fm_fail_no_memory(error)
                                        : fm_client_call(proxy->client, "chat.completions.create", request->data,
                                                         request->len, &handler, &id, error);
    if (code != FM_OK) {
        return code;
    }
    enum fm_code ended = await(proxy->client, &call, fm_now_ms() + proxy->ms, proxy->cancel_fd);
    if (ended != FM_OK) {
        fm_client_cancel(proxy->client, id);
        if (await(proxy->client, &call, fm_now_ms() + CANCEL_MS, -1) != FM_OK) {
            fm_client_kill(proxy->client, "the helper did not answer a cancel, and was killed");
        }
    }
    while (!call.settled) {
        fm_client_process(proxy->client);
    }
    *result = call.result;
    if (ended == FM_CANCELLED) {
        return fm_fail(error, FM_CANCELLED, "the call was cancelled");
    }
    if (ended == FM_TIMEOUT) {
        return fm_fail(error, FM_TIMEOUT, "the model has not answered within %d s", (int)(proxy->ms / 1000));
    }
    if (call.code != FM_OK) {
        *error = call.error;
        return call.code;
    }
    return read_text(*result, text, len, error);
}

/* ---- questions ---- */

static enum fm_code pick(void *self, const struct sy_question *question, struct json_object **answer,
                         struct fm_error *error) {
    struct json_object *result;
    struct fm_buf request;
    const char *text;
    size_t len;
    fm_buf_init(&request, REQUEST_MAX);
    struct fm_json_writer w = fm_json_writer_on(&request);
    write_request(self, question, &w);
    enum fm_code code = ask(self, &request, &result, &text, &len, error);
    code = code ? code : read_pick(text, len, answer, error);
    json_object_put(result);
    fm_buf_free(&request);
    return code;
}

static enum fm_code answer_messages(void *self, const struct sy_message *messages, size_t count, struct fm_buf *answer,
                                    struct fm_error *error) {
    static const char *const roles[] = {[SY_SYSTEM] = "system", [SY_USER] = "user", [SY_ASSISTANT] = "assistant"};
    const struct sy_proxy *proxy = self;
    struct json_object *result;
    struct fm_buf request;
    const char *text;
    size_t len;
    fm_buf_init(&request, REQUEST_MAX);
    struct fm_json_writer w = fm_json_writer_on(&request);
    fm_json_object_begin(&w);
    write_model(proxy, &w);
    fm_json_key(&w, "messages");
    fm_json_array_begin(&w);
    for (size_t i = 0; i < count; i++) {
        write_message(&w, roles[messages[i].role], messages[i].text, strlen(messages[i].text));
    }
    fm_json_array_end(&w);
    write_limits(&w);
    fm_json_object_end(&w);
    enum fm_code code = ask(proxy, &request, &result, &text, &len, error);
    if (code == FM_OK) {
        fm_buf_append(answer, text, len);
        code = answer->failed ? fm_fail_no_memory(error) : FM_OK;
    }
    json_object_put(result);
    fm_buf_free(&request);
    return code;
}

/* ---- its life ---- */

/* The caller frees it; NULL: not known, or out of memory. */
static char *beside_this(void) {
    char folder[1024];
    char *path = NULL;
    if (!fm_program_dir(folder, sizeof folder) || asprintf(&path, "%s/fm-proxy%s", folder, FM_PROGRAM_SUFFIX) < 0) {
        return NULL;
    }
    return path;
}

struct sy_proxy *sy_proxy_new(const struct sy_proxy_options *options) {
    static const char *const usual[] = {"--no-kv-cache-files", NULL};
    struct sy_proxy *proxy = calloc(1, sizeof *proxy);
    char *own = options->path ? NULL : beside_this();
    const struct fm_client_options client = {.path = options->path ? options->path : own,
                                             .arguments = options->arguments ? options->arguments : usual};
    if (proxy && client.path) {
        proxy->client = fm_client_new(&client);
        proxy->model = options->model ? strdup(options->model) : NULL;
        proxy->ms = options->ms > 0 ? options->ms : ANSWER_MS;
        proxy->cancel_fd = options->cancel_fd > 0 ? options->cancel_fd : -1;
    }
    bool made = proxy && proxy->client && (proxy->model || !options->model);
    free(own);
    if (!made) {
        sy_proxy_free(proxy);
    }
    return made ? proxy : NULL;
}

void sy_proxy_free(struct sy_proxy *proxy) {
    if (proxy) {
        fm_client_free(proxy->client);
        free(proxy->model);
        free(proxy);
    }
}

struct sy_picker sy_proxy_picker(struct sy_proxy *proxy) {
    return (struct sy_picker){proxy, pick};
}

struct sy_model sy_proxy_model(struct sy_proxy *proxy) {
    return (struct sy_model){proxy, answer_messages};
}
