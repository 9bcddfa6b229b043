/* JSON-RPC messages: the kind of each one, the id in its answer, and the text of the replies. */
#include "protocol/json_check.h"
#include "protocol/rpc.h"
#include "wire.h"

#include <json-c/json.h>

#define NUL_ID "\"a\\u0000b\""
#define HEAD   "\"jsonrpc\":\"2.0\","

static const char *const kind_names[] = {"request", "notification", "response"};

/*
 * "CODE KIND ID": the id as the answer would have it, "-" for none. A notification with a code is a fault without a
 * reply.
 */
static const char *outcome(const char *json, size_t len, char *out, size_t size) {
    struct json_tokener *tokener = json_tokener_new_ex(FM_JSON_DEPTH_MAX + 1);
    struct json_object *root = json_tokener_parse_ex(tokener, json, (int)len);
    if (json_tokener_get_error(tokener) == json_tokener_continue) {
        root = json_tokener_parse_ex(tokener, "", -1);
    }
    assert_int_equal(json_tokener_get_error(tokener), json_tokener_success);
    struct fm_rpc_message message;
    memset(&message, 'x', sizeof message);
    enum fm_rpc_error code = fm_rpc_read(root, &message);
    snprintf(out, size, "%d %s %.*s", code, kind_names[message.kind], message.id.len ? (int)message.id.len : 1,
             message.id.len ? message.id.text : "-");
    json_object_put(root);
    json_tokener_free(tokener);
    return out;
}

static const struct {
    const char *json;
    size_t len;
    const char *expected;
} message_rows[] = {
    /* requests */
    {BYTES("{" HEAD "\"id\":1,\"method\":\"m\"}"), "0 request 1"},
    {BYTES("{\"method\":\"m\",\"id\":\"x\",\"jsonrpc\":\"2.0\",\"params\":{}}"), "0 request \"x\""},
    {BYTES("{" HEAD "\"id\":1,\"method\":\"m\",\"unknown\":[1]}"), "0 request 1"},
    {BYTES("{" HEAD "\"id\":1,\"method\":\"m\",\"result\":1}"), "0 request 1"},
    {BYTES("{" HEAD "\"id\":1,\"method\":\"\"}"), "0 request 1"},
    /* ids */
    {BYTES("{" HEAD "\"id\":0,\"method\":\"m\"}"), "0 request 0"},
    {BYTES("{" HEAD "\"id\":-7,\"method\":\"m\"}"), "0 request -7"},
    {BYTES("{" HEAD "\"id\":9007199254740991,\"method\":\"m\"}"), "0 request 9007199254740991"},
    {BYTES("{" HEAD "\"id\":-9007199254740991,\"method\":\"m\"}"), "0 request -9007199254740991"},
    {BYTES("{" HEAD "\"id\":\"\",\"method\":\"m\"}"), "0 request \"\""},
    {BYTES("{" HEAD "\"id\":\"1\",\"method\":\"m\"}"), "0 request \"1\""},
    {BYTES("{" HEAD "\"id\":\"null\",\"method\":\"m\"}"), "0 request \"null\""},
    {BYTES("{" HEAD "\"id\":\"\xC3\xA9 \\\" \\\\ \\n /\",\"method\":\"m\"}"), "0 request \"\xC3\xA9 \\\" \\\\ \\n /\""},
    {BYTES("{" HEAD "\"id\":" NUL_ID ",\"method\":\"m\"}"), "0 request " NUL_ID},
    {BYTES("{" HEAD "\"id\":null,\"method\":\"m\"}"), "-32600 request -"},
    {BYTES("{" HEAD "\"id\":1.5,\"method\":\"m\"}"), "-32600 request -"},
    {BYTES("{" HEAD "\"id\":1.0,\"method\":\"m\"}"), "-32600 request -"},
    {BYTES("{" HEAD "\"id\":1e2,\"method\":\"m\"}"), "-32600 request -"},
    {BYTES("{" HEAD "\"id\":true,\"method\":\"m\"}"), "-32600 request -"},
    {BYTES("{" HEAD "\"id\":false,\"method\":\"m\"}"), "-32600 request -"},
    {BYTES("{" HEAD "\"id\":{},\"method\":\"m\"}"), "-32600 request -"},
    {BYTES("{" HEAD "\"id\":[1],\"method\":\"m\"}"), "-32600 request -"},
    {BYTES("{" HEAD "\"id\":9007199254740992,\"method\":\"m\"}"), "-32600 request -"},
    {BYTES("{" HEAD "\"id\":9007199254740993,\"method\":\"m\"}"), "-32600 request -"},
    {BYTES("{" HEAD "\"id\":-9007199254740992,\"method\":\"m\"}"), "-32600 request -"},
    {BYTES("{" HEAD "\"id\":18446744073709551617,\"method\":\"m\"}"), "-32600 request -"},
    {BYTES("{" HEAD "\"id\":-18446744073709551617,\"method\":\"m\"}"), "-32600 request -"},
    /* faults of `jsonrpc`: the id is valid, so the answer has it */
    {BYTES("{\"id\":1,\"method\":\"m\"}"), "-32600 request 1"},
    {BYTES("{\"jsonrpc\":2.0,\"id\":1,\"method\":\"m\"}"), "-32600 request 1"},
    {BYTES("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"m\"}"), "-32600 request 1"},
    {BYTES("{\"jsonrpc\":\"2.0 \",\"id\":1,\"method\":\"m\"}"), "-32600 request 1"},
    {BYTES("{\"jsonrpc\":\"2.0\\u0000\",\"id\":1,\"method\":\"m\"}"), "-32600 request 1"},
    {BYTES("{\"jsonrpc\":\"2\",\"id\":1,\"method\":\"m\"}"), "-32600 request 1"},
    {BYTES("{\"jsonrpc\":\"\",\"id\":1,\"method\":\"m\"}"), "-32600 request 1"},
    {BYTES("{\"jsonrpc\":null,\"id\":1,\"method\":\"m\"}"), "-32600 request 1"},
    {BYTES("{\"jsonrpc\":[\"2.0\"],\"id\":1,\"method\":\"m\"}"), "-32600 request 1"},
    {BYTES("{\"JSONRPC\":\"2.0\",\"id\":1,\"method\":\"m\"}"), "-32600 request 1"},
    /* method */
    {BYTES("{" HEAD "\"id\":1}"), "-32600 request 1"},
    {BYTES("{" HEAD "\"id\":1,\"method\":null}"), "-32600 request 1"},
    {BYTES("{" HEAD "\"id\":1,\"method\":1}"), "-32600 request 1"},
    {BYTES("{" HEAD "\"id\":1,\"method\":[\"m\"]}"), "-32600 request 1"},
    {BYTES("{" HEAD "\"id\":1,\"method\":{}}"), "-32600 request 1"},
    {BYTES("{" HEAD "\"id\":\"x\",\"method\":true}"), "-32600 request \"x\""},
    /* notifications: never answered, even if they are invalid */
    {BYTES("{" HEAD "\"method\":\"m\"}"), "0 notification -"},
    {BYTES("{" HEAD "\"method\":\"m\",\"params\":[]}"), "0 notification -"},
    {BYTES("{\"method\":\"m\"}"), "-32600 notification -"},
    {BYTES("{\"jsonrpc\":\"1.0\",\"method\":\"m\"}"), "-32600 notification -"},
    /* neither a method nor an id: an error with a null id */
    {BYTES("{}"), "-32600 request -"},
    {BYTES("{" HEAD "\"params\":{}}"), "-32600 request -"},
    {BYTES("{" HEAD "\"method\":1}"), "-32600 request -"},
    /* responses: the receiver drops unexpected ones */
    {BYTES("{" HEAD "\"id\":1,\"result\":{}}"), "0 response 1"},
    {BYTES("{" HEAD "\"id\":1,\"result\":null}"), "0 response 1"},
    {BYTES("{" HEAD "\"id\":\"x\",\"error\":{\"code\":1,\"message\":\"\"}}"), "0 response \"x\""},
    {BYTES("{" HEAD "\"id\":1,\"error\":null}"), "0 response 1"},
    {BYTES("{" HEAD "\"id\":null,\"error\":{}}"), "0 response -"},
    {BYTES("{" HEAD "\"id\":1.5,\"result\":{}}"), "0 response -"},
    {BYTES("{" HEAD "\"result\":{}}"), "0 response -"},
    {BYTES("{\"result\":{}}"), "0 response -"},
    /* not objects */
    {BYTES("null"), "-32600 request -"},
    {BYTES("true"), "-32600 request -"},
    {BYTES("7"), "-32600 request -"},
    {BYTES("1.5"), "-32600 request -"},
    {BYTES("\"x\""), "-32600 request -"},
    {BYTES("[]"), "-32600 request -"},
    {BYTES("[{" HEAD "\"id\":1,\"method\":\"m\"}]"), "-32600 request -"},
    {BYTES("[{" HEAD "\"id\":1,\"method\":\"m\"},{" HEAD "\"id\":2,\"method\":\"m\"}]"), "-32600 request -"},
    {BYTES("[{" HEAD "\"method\":\"m\"}]"), "-32600 request -"},
};

static void messages(void **state) {
    (void)state;
    char out[2048];
    for (size_t i = 0; i < COUNT(message_rows); i++) {
        const char *json = message_rows[i].json;
        expect_text(json, "row", i, message_rows[i].expected, outcome(json, message_rows[i].len, out, sizeof out));
    }
}

/* The limit is 256 bytes for the string, not for its JSON text, which may be six times as long. */
static void long_ids(void **state) {
    (void)state;
    static const struct {
        const char *unit; /* the maximum of the JSON text */
        size_t unit_bytes;
        size_t units;
        bool ok;
    } rows[] = {
        {"x", 1, 256, true},        {"x", 1, 257, false},       {"\\u0001", 1, 256, true},
        {"\\u0001", 1, 257, false}, {"\xC3\xA9", 2, 128, true}, {"\xC3\xA9", 2, 129, false},
        {"\\\"", 1, 256, true},     {"x", 1, 100000, false},    {"\\u0000", 1, 256, true},
    };
    static char json[200000];
    char out[2048];
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t len = (size_t)snprintf(json, sizeof json, "{" HEAD "\"method\":\"m\",\"id\":\"");
        size_t start = len - 1;
        for (size_t u = 0; u < rows[i].units; u++) {
            len += (size_t)snprintf(json + len, sizeof json - len, "%s", rows[i].unit);
        }
        size_t id_len = len + 1 - start;
        len += (size_t)snprintf(json + len, sizeof json - len, "\"}");
        outcome(json, len, out, sizeof out);
        if (rows[i].ok) {
            assert_memory_equal(out, "0 request ", 10);
            assert_int_equal(strlen(out + 10), id_len);
            assert_memory_equal(out + 10, json + start, id_len);
        } else {
            assert_string_equal(out, "-32600 request -");
        }
    }
}

static void fields(void **state) {
    (void)state;
    struct fm_rpc_message message;
    struct json_object *root = json_tokener_parse("{" HEAD "\"id\":1,\"method\":\"a\\u0000b\",\"params\":[3]}");
    assert_int_equal(fm_rpc_read(root, &message), FM_RPC_OK);
    assert_int_equal(message.method_len, 3);
    assert_memory_equal(message.method, "a\0b", 4);
    assert_ptr_equal(message.params, json_object_object_get(root, "params"));
    assert_null(message.result);
    json_object_put(root);

    static const char *const no_params[] = {"{" HEAD "\"id\":1,\"method\":\"m\"}",
                                            "{" HEAD "\"id\":1,\"method\":\"m\",\"params\":null}"};
    for (size_t i = 0; i < COUNT(no_params); i++) {
        root = json_tokener_parse(no_params[i]);
        assert_int_equal(fm_rpc_read(root, &message), FM_RPC_OK);
        assert_null(message.params);
        json_object_put(root);
    }

    root = json_tokener_parse("{" HEAD "\"id\":1,\"result\":{\"a\":1}}");
    assert_int_equal(fm_rpc_read(root, &message), FM_RPC_OK);
    assert_ptr_equal(message.result, json_object_object_get(root, "result"));
    assert_null(message.method);
    json_object_put(root);

    root = json_tokener_parse("{" HEAD "\"id\":1,\"error\":{}}");
    assert_int_equal(fm_rpc_read(root, &message), FM_RPC_OK);
    assert_null(message.result);
    json_object_put(root);
}

static void ids_of_parameters(void **state) {
    (void)state;
    static const struct {
        const char *json;
        const char *expected; /* NULL: no id at all */
    } rows[] = {
        {"1", "1"},   {"\"a\"", "\"a\""}, {"\"\\u0061\"", "\"a\""}, {"null", NULL}, {"1.5", NULL},
        {"{}", NULL}, {"[]", NULL},       {"true", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_rpc_id id = {.len = 9};
        struct json_object *value = json_tokener_parse(rows[i].json);
        assert_int_equal(fm_rpc_id_read(value, &id), rows[i].expected != NULL);
        assert_int_equal(id.len, rows[i].expected ? strlen(rows[i].expected) : 0);
        assert_memory_equal(id.text, rows[i].expected ? rows[i].expected : "", id.len);
        json_object_put(value);
    }
}

static void equal_ids(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        bool equal;
    } rows[] = {
        {"1", "1", true},   {"1", "2", false},          {"1", "\"1\"", false},      {"\"a\"", "\"\\u0061\"", true},
        {"1", "11", false}, {"\"a\"", "\"ab\"", false}, {"\"/\"", "\"\\/\"", true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_rpc_id a;
        struct fm_rpc_id b;
        struct json_object *left = json_tokener_parse(rows[i].a);
        struct json_object *right = json_tokener_parse(rows[i].b);
        assert_true(fm_rpc_id_read(left, &a));
        assert_true(fm_rpc_id_read(right, &b));
        assert_int_equal(fm_rpc_id_equal(&a, &b), rows[i].equal);
        json_object_put(left);
        json_object_put(right);
    }
    struct fm_rpc_id made = fm_rpc_id_int(-42);
    assert_int_equal(made.len, 3);
    assert_memory_equal(made.text, "-42", 3);
}

static void expect_written(struct fm_buf *buf, const char *expected) {
    assert_false(buf->failed);
    fm_buf_append_char(buf, '\0');
    assert_string_equal(buf->data, expected);
    size_t offset;
    assert_null(fm_json_check(buf->data, buf->len - 1, FM_JSON_VALUES_MAX, &offset));
    fm_buf_reset(buf);
}

static void written(void **state) {
    (void)state;
    struct fm_buf buf;
    fm_buf_init(&buf, 1000);
    struct fm_rpc_id id = fm_rpc_id_int(7);
    static const struct fm_rpc_id none;

    struct fm_json_writer w = fm_rpc_result_begin(&buf, &id);
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "ok", true);
    fm_json_object_end(&w);
    fm_rpc_end(&buf);
    expect_written(&buf, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"ok\":true}}");

    w = fm_rpc_request_begin(&buf, &id, "job.start");
    fm_json_array_begin(&w);
    fm_json_array_end(&w);
    fm_rpc_end(&buf);
    expect_written(&buf, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"job.start\",\"params\":[]}");

    w = fm_rpc_notification_begin(&buf, "responses.event");
    fm_json_null(&w);
    fm_rpc_end(&buf);
    expect_written(&buf, "{\"jsonrpc\":\"2.0\",\"method\":\"responses.event\",\"params\":null}");

    fm_rpc_write_error(&buf, &id, FM_RPC_METHOD, "no \"such\" method");
    expect_written(&buf,
                   "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32601,\"message\":\"no \\\"such\\\" method\"}}");
    fm_rpc_write_error(&buf, &none, FM_RPC_PARSE, "parse error");
    expect_written(&buf, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"parse error\"}}");
    fm_buf_free(&buf);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages),          cmocka_unit_test(long_ids),  cmocka_unit_test(fields),
        cmocka_unit_test(ids_of_parameters), cmocka_unit_test(equal_ids), cmocka_unit_test(written),
    };
    return cmocka_run_group_tests_name("rpc", tests, NULL, NULL);
}
