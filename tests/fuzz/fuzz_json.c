/*
 * The pre-scan, our tree and json-c. What the check accepts, json-c parses to the end, also in its own strict mode;
 * what json-c makes of it passes the check and is the same value again; a part of it is refused. And the other way:
 * whatever bytes our writer is given, the check accepts what it writes.
 */
#include "protocol/json_tree.h"
#include "protocol/rpc.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>

#define TEXT_MAX (64u << 20)

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* ---- what the check accepts ---- */

/* Written by json-c, the value is JSON, and the same. */
static void expect_round_trip(struct json_object *value) {
    struct fm_buf text;
    struct fm_buf again;
    fm_buf_init(&text, TEXT_MAX);
    fm_buf_init(&again, TEXT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&text);
    fm_json_value(&w, value);
    HOLDS(!text.failed);
    struct json_object *same = json_must_parse(text.data, text.len);
    HOLDS_OR(json_object_equal(value, same), "%.*s", (int)text.len, text.data);
    w = fm_json_writer_on(&again);
    fm_json_value(&w, same);
    HOLDS(text.len == again.len && memcmp(text.data, again.data, text.len) == 0);
    json_object_put(same);
    fm_buf_free(&again);
    fm_buf_free(&text);
}

/* json-c's strict mode is too lax for a wire, but what it refuses is no JSON. */
static void expect_strict(const char *text, size_t len, struct json_object *value) {
    bool ok = false;
    while (len && is_space(text[len - 1])) { /* which it takes for a second value */
        len--;
    }
    struct json_object *strict = json_parse(text, len, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8, &ok);
    HOLDS_OR(ok, "json-c's strict mode refuses it");
    HOLDS(json_object_equal(value, strict));
    json_object_put(strict);
}

/* Our tree is the one that json-c's tokener builds, to the last digit. */
static void expect_same_tree(const char *text, size_t len, struct json_object *value) {
    struct fm_buf scratch;
    struct json_object *tree;
    char *copy = exact_copy(text, len);
    fm_buf_init(&scratch, TEXT_MAX);
    HOLDS(fm_json_tree(copy, len, &scratch, &tree));
    HOLDS(json_object_equal(value, tree));
    const char *theirs = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
    const char *ours = json_object_to_json_string_ext(tree, JSON_C_TO_STRING_PLAIN);
    HOLDS_OR(strcmp(theirs, ours) == 0, "%s is not %s", ours, theirs);
    json_object_put(tree);
    fm_buf_free(&scratch);
    free(copy);
}

/* A value cut short is none, unless it is a number. One more value behind it is one too many. */
static void expect_whole(const char *text, size_t len) {
    size_t offset = 0;
    size_t end = len;
    while (is_space(text[end - 1])) {
        end--;
    }
    if (text[end - 1] < '0' || text[end - 1] > '9') {
        char *cut = exact_copy(text, end - 1);
        HOLDS(fm_json_check(cut, end - 1, &offset));
        HOLDS(offset <= end - 1);
        free(cut);
    }
    char *more = malloc(len + 2);
    HOLDS(more);
    memcpy(more, text, len);
    memcpy(more + len, " 1", 2);
    HOLDS(fm_json_check(more, len + 2, &offset));
    HOLDS(offset == len + 1);
    free(more);
}

/* ---- messages and ids ---- */

static void expect_id(const struct fm_rpc_id *id) {
    struct fm_rpc_id again;
    struct json_object *value = json_must_parse(id->text, id->len);
    HOLDS(id->len <= sizeof id->text);
    HOLDS_OR(fm_rpc_id_read(value, &again) && fm_rpc_id_equal(id, &again), "%.*s", id->len, id->text);
    json_object_put(value);
}

static void expect_error_reply(const struct fm_rpc_id *id, enum fm_rpc_error code) {
    struct fm_buf buf;
    struct json_object *value;
    fm_buf_init(&buf, TEXT_MAX);
    fm_rpc_write_error(&buf, id, code, "wrong");
    struct json_object *reply = json_must_parse(buf.data, buf.len);
    HOLDS(json_object_object_get_ex(reply, "id", &value) && !value == !id->len);
    json_object_put(reply);
    fm_buf_free(&buf);
}

static void expect_message(struct json_object *root) {
    struct fm_rpc_message message;
    struct fm_rpc_id other = fm_rpc_id_int(1);
    enum fm_rpc_error code = fm_rpc_read(root, &message);
    HOLDS(code == FM_RPC_OK || code == FM_RPC_INVALID);
    HOLDS(code == FM_RPC_INVALID || json_object_is_type(root, json_type_object));
    HOLDS(code == FM_RPC_INVALID || (message.kind == FM_RPC_RESPONSE) == (message.method == NULL));
    HOLDS(message.kind != FM_RPC_NOTIFICATION || message.id.len == 0);
    if (code == FM_RPC_OK && message.kind == FM_RPC_REQUEST) {
        HOLDS(message.id.len > 0);
    }
    if (message.id.len) {
        expect_id(&message.id);
        HOLDS(fm_rpc_id_equal(&message.id, &other) == (message.id.len == 1 && message.id.text[0] == '1'));
    }
    expect_error_reply(&message.id, FM_RPC_INVALID);
}

/* ---- the writer ---- */

static void expect_string(const char *bytes, size_t len) {
    struct fm_buf buf;
    fm_buf_init(&buf, TEXT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_json_string(&w, bytes, len);
    HOLDS(!buf.failed && buf.len <= 6 * len + 2);
    struct json_object *value = json_must_parse(buf.data, buf.len);
    HOLDS(json_object_is_type(value, json_type_string));
    if (is_utf8(bytes, len)) {
        HOLDS(fm_json_string_size(bytes, len) == buf.len);
        HOLDS((size_t)json_object_get_string_len(value) == len);
        HOLDS(memcmp(json_object_get_string(value), bytes, len) == 0);
    }
    json_object_put(value);
    fm_buf_free(&buf);
}

static void expect_number(struct choices from) {
    struct fm_buf buf;
    size_t len = sizeof(int64_t);
    int64_t integer = 0;
    double number = 0;
    const char *bytes = choose_bytes(&from, &len);
    memcpy(&integer, bytes, len);
    memcpy(&number, &integer, sizeof number);
    fm_buf_init(&buf, TEXT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_json_array_begin(&w);
    fm_json_int(&w, integer);
    fm_json_double(&w, isfinite(number) ? number : 0);
    fm_json_array_end(&w);
    struct json_object *value = json_must_parse(buf.data, buf.len);
    HOLDS(json_object_get_int64(json_object_array_get_idx(value, 0)) == integer);
    HOLDS(json_object_get_double(json_object_array_get_idx(value, 1)) == (isfinite(number) ? number : 0));
    json_object_put(value);
    fm_buf_free(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    size_t offset = size + 1;
    const char *fault = fm_json_check(text, size, &offset);
    HOLDS(offset <= size);
    if (fault) {
        HOLDS(*fault);
    } else {
        HOLDS(offset == size && is_utf8(text, size));
        struct json_object *value = json_must_parse(text, size);
        expect_strict(text, size, value);
        expect_same_tree(text, size, value);
        expect_round_trip(value);
        expect_whole(text, size);
        expect_message(value);
        json_object_put(value);
    }
    expect_string(text, size);
    expect_number((struct choices){data, data + size});
    return 0;
}
