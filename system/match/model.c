/* Runs fm-proxy as a child process. Each question is one chat completion whose answer must match a schema. Neither
 * questions nor answers are stored on the disk. */
#include "match/model.h"
#include "base/buf.h"
#include "match/ask.h"
#include "match/prompt.h"
#include "protocol/base64.h"
#include "protocol/client/client.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MS     60000
#define ANSWER_TOKENS 400 /* more than eight labels or a few sentences need */
#define REQUEST_MAX   (1u << 20)
#define ANSWER_VALUES 64

#define KEPT_MAX 1024 /* kept vectors: the next question needs the vectors of the same titles again */

struct vector {
    char *text;
    float *numbers;
};

struct sy_proxy {
    struct fm_client *client;
    struct fm_client *embedder; /* NULL: there is none */
    struct vector kept[KEPT_MAX];
    size_t kept_count;
    size_t size; /* how many numbers a vector has */
    char *model;
    int64_t ms;
    int cancel_fd; /* -1: none */
};

/* ---- the request ---- */

static void write_role_text(struct fm_json_writer *w, const char *role, const char *text, size_t len) {
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
    write_role_text(w, "system", question->instructions, strlen(question->instructions));
    for (size_t i = 0; i < question->example_count; i++) {
        const struct sy_example *example = &question->examples[i];
        write_role_text(w, "user", example->prompt, strlen(example->prompt));
        write_role_text(w, "assistant", example->answer, strlen(example->answer));
    }
    write_role_text(w, "user", question->prompt->data, question->prompt->len);
    fm_json_array_end(w);
    write_format(w, question->schema);
    write_limits(w);
    fm_json_object_end(w);
}

/* ---- the answer ---- */

static struct json_object *reply_member(struct json_object *object, const char *name) {
    return json_object_is_type(object, json_type_object) ? json_object_object_get(object, name) : NULL;
}

/* Finds the answer's text, which is a part of `result`. */
static enum fm_code read_text(struct json_object *result, const char **text, size_t *len, struct fm_error *error) {
    struct json_object *choices = reply_member(reply_member(result, "completion"), "choices");
    bool any = json_object_is_type(choices, json_type_array) && json_object_array_length(choices) > 0;
    struct json_object *choice = any ? json_object_array_get_idx(choices, 0) : NULL;
    struct json_object *content = reply_member(reply_member(choice, "message"), "content");
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

/* Sends the request. `*text` is a part of `*result`, which the caller frees. */
static enum fm_code ask_proxy(const struct sy_proxy *proxy, const struct fm_buf *request, int64_t ms,
                              struct json_object **result, const char **text, size_t *len, struct fm_error *error) {
    enum fm_code code =
        sy_ask_helper(proxy->client, "chat.completions.create", request, ms, proxy->cancel_fd, result, error);
    return code ? code : read_text(*result, text, len, error);
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
    const struct sy_proxy *proxy = self;
    write_request(proxy, question, &w);
    int64_t ms = question->ms > 0 && question->ms < proxy->ms ? question->ms : proxy->ms;
    enum fm_code code = ask_proxy(proxy, &request, ms, &result, &text, &len, error);
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
        write_role_text(&w, roles[messages[i].role], messages[i].text, strlen(messages[i].text));
    }
    fm_json_array_end(&w);
    write_limits(&w);
    fm_json_object_end(&w);
    enum fm_code code = ask_proxy(proxy, &request, proxy->ms, &result, &text, &len, error);
    if (code == FM_OK) {
        fm_buf_append(answer, text, len);
        code = answer->failed ? fm_fail_no_memory(error) : FM_OK;
    }
    json_object_put(result);
    fm_buf_free(&request);
    return code;
}

/* ---- vectors ---- */

static void write_texts(const char *const *texts, size_t count, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key(w, "input");
    fm_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        fm_json_str(w, texts[i]);
    }
    fm_json_array_end(w);
    fm_json_key_str(w, "encoding_format", "base64");
    fm_json_object_end(w);
}

/* Reads the vectors: little-endian floats in base64. This machine's floats have the same form. */
static enum fm_code read_vectors(struct json_object *data, size_t count, float **vectors, size_t *size,
                                 struct fm_error *error) {
    bool all = json_object_is_type(data, json_type_array) && json_object_array_length(data) == count;
    *vectors = NULL;
    *size = 0;
    for (size_t i = 0; i < count; i++) {
        struct json_object *text = all ? reply_member(json_object_array_get_idx(data, i), "embedding") : NULL;
        size_t len = (size_t)json_object_get_string_len(text);
        const char *digits = json_object_get_string(text);
        size_t bytes = digits ? fm_base64_decoded_size(digits, len) : 0;
        bool fits = bytes > 0 && bytes % sizeof(float) == 0 && (i == 0 || bytes == *size * sizeof(float));
        if (fits && i == 0) {
            *size = bytes / sizeof(float);
            *vectors = malloc(bytes * count);
        }
        if (!fits || (*vectors && !fm_base64_read(digits, len, (unsigned char *)(*vectors + i * *size)))) {
            free(*vectors);
            *vectors = NULL;
            return fm_fail(error, FM_UNAVAILABLE, "the model's vectors can't be read");
        }
        if (!*vectors) {
            return fm_fail_no_memory(error);
        }
    }
    return FM_OK;
}

static enum fm_code ask_vectors(struct sy_proxy *proxy, const char *const *texts, size_t count, int64_t ms,
                                float **vectors, size_t *size, struct fm_error *error) {
    struct json_object *result = NULL;
    struct fm_buf request;
    fm_buf_init(&request, REQUEST_MAX);
    struct fm_json_writer w = fm_json_writer_on(&request);
    write_texts(texts, count, &w);
    enum fm_code code =
        sy_ask_helper(proxy->embedder, "embeddings.create", &request, ms, proxy->cancel_fd, &result, error);
    code = code ? code
                : read_vectors(reply_member(reply_member(result, "embeddings"), "data"), count, vectors, size, error);
    json_object_put(result);
    fm_buf_free(&request);
    return code;
}

static const struct vector *find_kept(const struct sy_proxy *proxy, const char *text) {
    for (size_t i = 0; i < proxy->kept_count; i++) {
        if (strcmp(proxy->kept[i].text, text) == 0) {
            return &proxy->kept[i];
        }
    }
    return NULL;
}

static void drop_kept(struct sy_proxy *proxy) {
    for (size_t i = 0; i < proxy->kept_count; i++) {
        free(proxy->kept[i].text);
        free(proxy->kept[i].numbers);
    }
    proxy->kept_count = 0;
}

/* Keeps the vector, if there is memory for it. */
static void keep_vector(struct sy_proxy *proxy, const char *text, const float *numbers) {
    struct vector *vector = &proxy->kept[proxy->kept_count];
    *vector = (struct vector){strdup(text), malloc(proxy->size * sizeof *numbers)};
    if (vector->text && vector->numbers) {
        memcpy(vector->numbers, numbers, proxy->size * sizeof *numbers);
        proxy->kept_count++;
    } else {
        free(vector->text);
        free(vector->numbers);
    }
}

/* Asks for the vectors that are not kept. A helper that was started again may have another model. Its vectors can't be
 * compared with the kept ones: if the size is another, these are dropped. */
static enum fm_code ask_missing(struct sy_proxy *proxy, const char *const *texts, size_t count, int64_t ms,
                                float **vectors, struct fm_error *error) {
    size_t size = 0;
    enum fm_code code = count > 0 ? ask_vectors(proxy, texts, count, ms, vectors, &size, error) : FM_OK;
    if (code != FM_OK || count == 0 || size == proxy->size) {
        return code;
    }
    bool other = proxy->kept_count > 0;
    drop_kept(proxy);
    proxy->size = size;
    return other ? fm_fail(error, FM_UNAVAILABLE, "another model answers than before") : FM_OK;
}

/* Returns the vectors of all texts. Asks the model only for vectors that are not kept. */
static enum fm_code embed_texts(void *self, const char *const *texts, size_t count, int64_t ms, float **vectors,
                                size_t *size, struct fm_error *error) {
    struct sy_proxy *proxy = self;
    float *fresh = NULL;
    const char **missing = calloc(count + 1, sizeof *missing);
    size_t missing_count = 0;
    size_t taken = 0;
    *vectors = NULL;
    if (proxy->kept_count + count > KEPT_MAX) {
        drop_kept(proxy);
    }
    for (size_t i = 0; missing && i < count; i++) {
        if (!find_kept(proxy, texts[i])) {
            missing[missing_count++] = texts[i];
        }
    }
    enum fm_code code =
        missing ? ask_missing(proxy, missing, missing_count, ms, &fresh, error) : fm_fail_no_memory(error);
    *size = proxy->size;
    *vectors = code == FM_OK ? malloc(count * *size * sizeof **vectors) : NULL;
    for (size_t i = 0; *vectors && i < count; i++) {
        const struct vector *kept = find_kept(proxy, texts[i]);
        bool next = taken < missing_count && missing[taken] == texts[i];
        memcpy(*vectors + i * *size, next ? fresh + taken * *size : kept->numbers, *size * sizeof **vectors);
        if (next && !kept) {
            keep_vector(proxy, texts[i], fresh + taken * *size);
        }
        taken += next;
    }
    code = code == FM_OK && !*vectors ? fm_fail_no_memory(error) : code;
    free(missing);
    free(fresh);
    return code;
}

/* ---- its life ---- */

struct sy_proxy *sy_proxy_new(const struct sy_proxy_options *options) {
    static const char *const usual[] = {"--no-kv-cache-files", NULL};
    struct sy_proxy *proxy = calloc(1, sizeof *proxy);
    const struct fm_client_options client = {.path = options->path,
                                             .arguments = options->arguments ? options->arguments : usual};
    if (proxy) {
        proxy->client = fm_client_new(&client);
        proxy->model = options->model ? strdup(options->model) : NULL;
        proxy->ms = options->ms > 0 ? options->ms : ANSWER_MS;
        proxy->cancel_fd = options->cancel_fd > 0 ? options->cancel_fd : -1;
    }
    if (proxy && options->embedding_models) {
        const char *const arguments[] = {"--no-kv-cache-files", "--models-dir", options->embedding_models, NULL};
        const struct fm_client_options embedder = {.path = client.path, .arguments = arguments};
        proxy->embedder = fm_client_new(&embedder);
    }
    bool made =
        proxy && proxy->client && (proxy->model || !options->model) && (proxy->embedder || !options->embedding_models);
    if (!made) {
        sy_proxy_free(proxy);
    }
    return made ? proxy : NULL;
}

void sy_proxy_free(struct sy_proxy *proxy) {
    if (proxy) {
        fm_client_free(proxy->client);
        drop_kept(proxy);
        if (proxy->embedder) {
            fm_client_free(proxy->embedder);
        }
        free(proxy->model);
        free(proxy);
    }
}

struct sy_picker sy_proxy_picker(struct sy_proxy *proxy) {
    return (struct sy_picker){proxy, pick, proxy->embedder ? embed_texts : NULL};
}

struct sy_model sy_proxy_model(struct sy_proxy *proxy) {
    return (struct sy_model){proxy, answer_messages};
}
