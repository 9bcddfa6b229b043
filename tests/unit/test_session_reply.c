/* The front's replies (good, failed, malformed) and how session mode reads them. */
#include "sessions/reply.h"
#include "wire.h"

#include <json-c/json.h>

#ifdef WRAPPED
#include "allocations.h"
#endif

#define MAX_OUTPUT 20

#define USAGE                                                                                                          \
    "\"usage\":{\"input_tokens\":11,\"input_tokens_details\":{\"cached_tokens\":3},\"output_tokens\":7,"               \
    "\"total_tokens\":18}"
#define TEXT_OF(text)     "{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":" text "}]}"
#define RESPONSE(members) "\"result\":{\"ok\":true,\"response\":{" USAGE "," members "}}"
#define ANSWER(text)      RESPONSE("\"status\":\"completed\",\"output\":[" TEXT_OF(text) "]")
#define FAILURE(code, detail)                                                                                          \
    "\"result\":{\"ok\":false,\"error\":{\"code\":\"" code "\",\"detail\":\"" detail "\"},\"response\":{" USAGE "}}"
#define CUT(members) RESPONSE("\"status\":\"incomplete\",\"output\":[" TEXT_OF("\"{\"") "]," members)

/* A reply with these members; the caller puts it. */
static struct json_object *reply_of(const char *members, struct fm_rpc_message *message) {
    char text[2048];
    int len = snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":1,%s}", members);
    assert_in_range(len, 0, sizeof text - 1);
    struct json_object *root = json_tokener_parse(text);
    if (!root) {
        fail_msg("no JSON: %s", text);
    }
    assert_int_equal(fm_rpc_read(root, message), FM_RPC_OK);
    assert_int_equal(message->kind, FM_RPC_RESPONSE);
    return root;
}

/* The result as JSON, or the fault as "name: detail". */
static const char *told(enum fm_fault_code code, const struct fm_turn_result *result, const struct fm_fault *fault) {
    static char text[2048];
    if (code == FM_FAULT_NONE) {
        snprintf(text, sizeof text, "%s", json_object_to_json_string_ext(result->value, JSON_C_TO_STRING_PLAIN));
    } else {
        assert_int_equal(code, fault->code);
        assert_null(result->value);
        snprintf(text, sizeof text, "%s: %s", fm_fault_name(code), fault->detail);
    }
    return text;
}

/* Checks that a failed read leaves nothing in `result` to free, as the header says. */
static enum fm_fault_code read_turn(const struct fm_rpc_message *message, enum fm_output_format format,
                                    struct fm_turn_result *result, struct fm_fault *fault) {
    struct fm_buf scratch;
    fm_buf_init(&scratch, 1u << 20);
    enum fm_fault_code code = fm_reply_read_turn(message, format, MAX_OUTPUT, &scratch, result, fault);
    fm_buf_free(&scratch);
    return code;
}

struct row {
    const char *members;
    enum fm_output_format format;
    const char *told;
};

static void check_rows(const struct row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct fm_rpc_message message;
        struct fm_turn_result result;
        struct fm_fault fault;
        struct json_object *root = reply_of(rows[i].members, &message);
        enum fm_fault_code code = read_turn(&message, rows[i].format, &result, &fault);
        expect_text(rows[i].members, "row", i, rows[i].told, told(code, &result, &fault));
        if (code == FM_FAULT_NONE) {
            fm_turn_result_free(&result);
            assert_null(result.value);
            fm_turn_result_free(&result);
        }
        json_object_put(root);
    }
}

static void answers(void **state) {
    (void)state;
    static const struct row rows[] = {
        {ANSWER("\"{\\\"result\\\":\\\"one\\\"}\""), FM_OUTPUT_TEXT, "\"one\""},
        {ANSWER("\" {\\\"result\\\" : \\\"\\\"}\\n\""), FM_OUTPUT_TEXT, "\"\""},
        {ANSWER("\"{\\\"result\\\":\\\"a\\\\u0000b\\\"}\""), FM_OUTPUT_TEXT, "\"a\\u0000b\""},
        {ANSWER("\"{\\\"result\\\":\\\"{}\\\"}\""), FM_OUTPUT_TEXT, "\"{}\""}, /* text that looks like JSON is text */
        {ANSWER("\"{\\\"result\\\":[]}\""), FM_OUTPUT_STRING_LIST, "[]"},
        {ANSWER("\"{\\\"result\\\":[\\\"a\\\",\\\"\\\",\\\"c\\\"]}\""), FM_OUTPUT_STRING_LIST, "[\"a\",\"\",\"c\"]"},
        /* a thought stands before the model's message */
        {RESPONSE(
             "\"status\":\"completed\",\"output\":[{\"type\":\"reasoning\",\"content\":[{\"text\":\"{}\"}]}," TEXT_OF(
                 "\"{\\\"result\\\":\\\"two\\\"}\"") "]"),
         FM_OUTPUT_TEXT, "\"two\""},
        {RESPONSE("\"status\":\"completed\",\"output\":[{\"content\":[{\"text\":\"{\\\"result\\\":\\\"x\\\"}\"},7]}]"),
         FM_OUTPUT_TEXT, "\"x\""},
    };
    check_rows(rows, COUNT(rows));
}

/* Whatever an engine writes, a host gets a value of the requested shape, or an error. */
static void wrong_shapes(void **state) {
    (void)state;
#define NO_SHAPE "execution_failed: the engine's answer does not match its schema: send the message again"
    static const char *const texts[] = {
        "\"\"",
        "\"one\"",
        "\"null\"",
        "\"7\"",
        "\"[]\"",
        "\"{}\"",
        "\"{\\\"result\\\":null}\"",
        "\"{\\\"result\\\":7}\"",
        "\"{\\\"result\\\":true}\"",
        "\"{\\\"result\\\":{}}\"",
        "\"{\\\"Result\\\":\\\"a\\\"}\"",
        "\"[{\\\"result\\\":\\\"a\\\"}]\"",
        "\"{\\\"result\\\":\\\"a\"",
        "\"{\\\"result\\\":\\\"a\\\"}}\"",
        "\"{'result':'a'}\"",
        "\"{\\\"result\\\":\\\"\\\\uD800\\\"}\"",
        "7",
        "null",
        "[]",
        "{}",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        char members[1024];
        snprintf(members, sizeof members, ANSWER("%s"), texts[i]);
        const struct row both[] = {{members, FM_OUTPUT_TEXT, NO_SHAPE}, {members, FM_OUTPUT_STRING_LIST, NO_SHAPE}};
        check_rows(both, 2);
    }
    static const struct row rows[] = {
        {ANSWER("\"{\\\"result\\\":[\\\"a\\\"]}\""), FM_OUTPUT_TEXT, NO_SHAPE},
        {ANSWER("\"{\\\"result\\\":\\\"a\\\"}\""), FM_OUTPUT_STRING_LIST, NO_SHAPE},
        {ANSWER("\"{\\\"result\\\":[\\\"a\\\",7]}\""), FM_OUTPUT_STRING_LIST, NO_SHAPE},
        {ANSWER("\"{\\\"result\\\":[null]}\""), FM_OUTPUT_STRING_LIST, NO_SHAPE},
        {ANSWER("\"{\\\"result\\\":[[\\\"a\\\"]]}\""), FM_OUTPUT_STRING_LIST, NO_SHAPE},
        /* responses that the front never writes */
        {RESPONSE("\"status\":\"completed\""), FM_OUTPUT_TEXT, NO_SHAPE},
        {RESPONSE("\"status\":\"completed\",\"output\":null"), FM_OUTPUT_TEXT, NO_SHAPE},
        {RESPONSE("\"status\":\"completed\",\"output\":{}"), FM_OUTPUT_TEXT, NO_SHAPE},
        {RESPONSE("\"status\":\"completed\",\"output\":[]"), FM_OUTPUT_TEXT, NO_SHAPE},
        {RESPONSE("\"status\":\"completed\",\"output\":[null]"), FM_OUTPUT_TEXT, NO_SHAPE},
        {RESPONSE("\"status\":\"completed\",\"output\":[[]]"), FM_OUTPUT_TEXT, NO_SHAPE},
        {RESPONSE("\"status\":\"completed\",\"output\":[{\"content\":7}]"), FM_OUTPUT_TEXT, NO_SHAPE},
        {RESPONSE("\"status\":\"completed\",\"output\":[{\"content\":[]}]"), FM_OUTPUT_TEXT, NO_SHAPE},
        {RESPONSE("\"status\":\"completed\",\"output\":[{\"content\":[7]}]"), FM_OUTPUT_TEXT, NO_SHAPE},
    };
    check_rows(rows, COUNT(rows));
}

static void failures(void **state) {
    (void)state;
    static const struct row rows[] = {
        {FAILURE("GUARDRAIL", "no"), FM_OUTPUT_TEXT, "guardrail_blocked: no"},
        {FAILURE("UNAVAILABLE", "no engine"), FM_OUTPUT_TEXT, "model_unavailable: no engine"},
        {FAILURE("NOT_FOUND", "no model"), FM_OUTPUT_TEXT, "model_unavailable: no model"},
        {FAILURE("CONTEXT_OVERFLOW", "9 tokens"), FM_OUTPUT_TEXT, "execution_failed: context full: 9 tokens"},
        {FAILURE("INTERNAL", "d"), FM_OUTPUT_TEXT, "execution_failed: d"},
        {FAILURE("TIMEOUT", "d"), FM_OUTPUT_TEXT, "execution_failed: d"},
        {FAILURE("CANCELLED", "d"), FM_OUTPUT_TEXT, "execution_failed: d"},
        {FAILURE("INVALID_REQUEST", "d"), FM_OUTPUT_TEXT, "execution_failed: d"},
        {FAILURE("RATE_LIMITED", "d"), FM_OUTPUT_TEXT, "execution_failed: d"},
        {FAILURE("OVERLOADED", "d"), FM_OUTPUT_TEXT, "execution_failed: d"},
        {FAILURE("NEW", "d"), FM_OUTPUT_TEXT, "execution_failed: d"},
        {"\"error\":{\"code\":-32603,\"message\":\"out of memory\"}", FM_OUTPUT_TEXT,
         "execution_failed: out of memory"},
        {"\"error\":{\"code\":-32603}", FM_OUTPUT_TEXT, "execution_failed: "},
        {"\"result\":{\"ok\":false}", FM_OUTPUT_TEXT, "execution_failed: "},
        {"\"result\":{\"ok\":false,\"error\":7}", FM_OUTPUT_TEXT, "execution_failed: "},
        {"\"result\":{\"ok\":false,\"error\":{\"code\":7,\"detail\":[]}}", FM_OUTPUT_TEXT, "execution_failed: "},
        {"\"result\":{}", FM_OUTPUT_TEXT, "execution_failed: "},
        {"\"result\":7", FM_OUTPUT_TEXT, "execution_failed: "},
        {"\"result\":null", FM_OUTPUT_TEXT, "execution_failed: "},
        {"\"result\":[]", FM_OUTPUT_TEXT, "execution_failed: "},
        /* the answer in a failed reply does not count */
        {"\"result\":{\"ok\":false,\"response\":{\"status\":\"completed\",\"output\":[" TEXT_OF(
             "\"{\\\"result\\\":\\\"x\\\"}\"") "]}}",
         FM_OUTPUT_TEXT, "execution_failed: "},
    };
    check_rows(rows, COUNT(rows));
}

/* An incomplete answer is a fault: the filter ended it, the context was full, or it reached its token limit. */
static void incomplete(void **state) {
    (void)state;
#define FULL                                                                                                           \
    "execution_failed: context full: 11 input tokens left room for 7 output tokens, and the answer has more; open a "  \
    "new session, or send less"
    static const struct row rows[] = {
        {CUT("\"incomplete_details\":{\"reason\":\"content_filter\"}"), FM_OUTPUT_TEXT,
         "guardrail_blocked: the engine's filter ended the answer"},
        {CUT("\"incomplete_details\":{\"reason\":\"max_output_tokens\"}"), FM_OUTPUT_TEXT, FULL},
        {CUT("\"incomplete_details\":{}"), FM_OUTPUT_TEXT, FULL},
        {CUT("\"incomplete_details\":null"), FM_OUTPUT_TEXT, FULL},
        {CUT("\"incomplete_details\":[\"content_filter\"]"), FM_OUTPUT_TEXT, FULL},
        {RESPONSE("\"status\":7"), FM_OUTPUT_TEXT, FULL},
        {RESPONSE("\"output\":[" TEXT_OF("\"{\\\"result\\\":\\\"x\\\"}\"") "]"), FM_OUTPUT_TEXT, FULL},
    };
    check_rows(rows, COUNT(rows));
}

#define CUT_AT(tokens)                                                                                                 \
    "\"result\":{\"ok\":true,\"response\":{\"status\":\"incomplete\",\"usage\":{\"output_tokens\":" tokens             \
    "},\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}"

/* An answer that has the maximum number of tokens did not stop by itself. Only such an answer is tried again. */
static void running_on(void **state) {
    (void)state;
    static const struct {
        const char *members;
        bool ran_on;
    } rows[] = {
        {CUT_AT("19"), false},
        {CUT_AT("20"), true},
        {CUT_AT("21"), true},
        {CUT_AT("0"), false},
        {CUT_AT("\"20\""), false},
        {CUT_AT("99999999999999999999"), true},
        {"\"result\":{\"ok\":true,\"response\":{\"status\":\"incomplete\",\"usage\":{\"output_tokens\":20},"
         "\"incomplete_details\":{\"reason\":\"content_filter\"}}}",
         false},
        {"\"result\":{\"ok\":false,\"response\":{\"usage\":{\"output_tokens\":20}}}", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_rpc_message message;
        struct fm_turn_result result;
        struct fm_fault fault;
        struct json_object *root = reply_of(rows[i].members, &message);
        assert_true(read_turn(&message, FM_OUTPUT_TEXT, &result, &fault) != FM_FAULT_NONE);
        if (result.ran_on != rows[i].ran_on) {
            fail_msg("row %zu: %s", i, fault.detail);
        }
        if (rows[i].ran_on) {
            assert_string_equal(fault.detail, "the answer has more than 20 tokens: ask for a shorter one, or raise "
                                              "--max-output-tokens");
        }
        json_object_put(root);
    }
}

/* The tokens of a failed reply count too, as far as they are known. */
static void usage(void **state) {
    (void)state;
    static const struct {
        const char *members;
        int64_t input, cached, output;
    } rows[] = {
        {ANSWER("\"{\\\"result\\\":\\\"one\\\"}\""), 11, 3, 7},
        {ANSWER("\"?\""), 11, 3, 7},
        {CUT("\"incomplete_details\":null"), 11, 3, 7},
        {FAILURE("TIMEOUT", ""), 11, 3, 7},
        {"\"result\":{\"ok\":false,\"error\":{\"code\":\"TIMEOUT\"}}", 0, 0, 0},
        {"\"result\":{\"ok\":false,\"response\":null}", 0, 0, 0},
        {"\"result\":{\"ok\":true,\"response\":{\"usage\":null}}", 0, 0, 0},
        {"\"result\":{\"ok\":true,\"response\":{\"usage\":[]}}", 0, 0, 0},
        {"\"result\":{\"ok\":true,\"response\":{\"usage\":{\"input_tokens\":\"5\",\"input_tokens_details\":2,"
         "\"output_tokens\":1.5}}}",
         0, 0, 0},
        {"\"result\":{\"ok\":true,\"response\":{\"usage\":{\"input_tokens\":5}}}", 5, 0, 0},
        {"\"error\":{\"code\":1,\"message\":\"\"}", 0, 0, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_rpc_message message;
        struct fm_turn_result result;
        struct fm_fault fault;
        struct json_object *root = reply_of(rows[i].members, &message);
        if (read_turn(&message, FM_OUTPUT_TEXT, &result, &fault) == FM_FAULT_NONE) {
            fm_turn_result_free(&result);
        }
        assert_int_equal(result.input_tokens, rows[i].input);
        assert_int_equal(result.cached_tokens, rows[i].cached);
        assert_int_equal(result.output_tokens, rows[i].output);
        json_object_put(root);
    }
}

/* The conversation keeps the text that the model wrote, not the value that was read from it. */
static void what_the_model_wrote(void **state) {
    (void)state;
    static const char text[] = " {\"result\":\"a\\u0000b\"}";
    struct fm_rpc_message message;
    struct fm_turn_result result;
    struct fm_fault fault;
    struct json_object *root = reply_of(ANSWER("\" {\\\"result\\\":\\\"a\\\\u0000b\\\"}\""), &message);
    assert_int_equal(read_turn(&message, FM_OUTPUT_TEXT, &result, &fault), FM_FAULT_NONE);
    assert_int_equal(result.answer.len, sizeof text - 1);
    assert_memory_equal(result.answer.data, text, sizeof text - 1);
    json_object_put(root); /* the value stays valid without the reply */
    assert_int_equal(json_object_get_string_len(result.value), 3);
    fm_turn_result_free(&result);
}

static void availability(void **state) {
    (void)state;
    static const struct {
        const char *members;
        bool available;
        const char *reason;
    } rows[] = {
        {"\"result\":{\"ok\":true,\"available\":true,\"reason_code\":null,\"detail\":null}", true, ""},
        {"\"result\":{\"ok\":true,\"available\":true,\"reason_code\":\"X\",\"detail\":\"d\"}", true, ""},
        {"\"result\":{\"ok\":true,\"available\":false,\"reason_code\":\"MODEL_NOT_READY\",\"detail\":\"no file m\"}",
         false, "MODEL_NOT_READY: no file m"},
        {"\"result\":{\"ok\":true,\"available\":false,\"reason_code\":\"HELPER_UNHEALTHY\",\"detail\":null}", false,
         "HELPER_UNHEALTHY: "},
        /* every reason begins with a code */
        {"\"result\":{\"ok\":false,\"error\":{\"code\":\"OVERLOADED\",\"detail\":\"no descriptor\"}}", false,
         "HELPER_UNHEALTHY: no descriptor"},
        {"\"error\":{\"code\":-32603,\"message\":\"out of memory\"}", false, "HELPER_UNHEALTHY: out of memory"},
        {"\"result\":{}", false, "HELPER_UNHEALTHY: "},
        {"\"result\":null", false, "HELPER_UNHEALTHY: "},
        {"\"result\":[true]", false, "HELPER_UNHEALTHY: "},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_rpc_message message;
        char reason[64] = "unset";
        struct json_object *root = reply_of(rows[i].members, &message);
        assert_int_equal(fm_reply_read_availability(&message, reason, sizeof reason), rows[i].available);
        expect_text(rows[i].members, "row", i, rows[i].reason, reason);
        json_object_put(root);
    }
}

/* A reason that is too long is cut between characters. */
static void a_long_reason(void **state) {
    (void)state;
    struct fm_rpc_message message;
    char reason[] = "MODEL_NOT_READY: 12";
    struct json_object *root = reply_of(
        "\"result\":{\"available\":false,\"reason_code\":\"MODEL_NOT_READY\",\"detail\":\"\xE2\x82\xAC\"}", &message);
    assert_false(fm_reply_read_availability(&message, reason, sizeof reason));
    assert_string_equal(reason, "MODEL_NOT_READY: ");
    json_object_put(root);
}

#ifdef WRAPPED
static void without_memory(void **state) {
    (void)state;
    struct fm_rpc_message message;
    struct json_object *root = reply_of(ANSWER("\"{\\\"result\\\":\\\"\\\\n\\\"}\""), &message);
    int failed = 0;
    for (;; failed++) {
        struct fm_turn_result result;
        struct fm_fault fault;
        allocations_left = failed;
        enum fm_fault_code code = read_turn(&message, FM_OUTPUT_TEXT, &result, &fault);
        bool had_all = allocations_left >= 0;
        allocations_left = -1;
        expect_text("failed", "allocation", (size_t)failed, had_all ? "\"\\n\"" : "execution_failed: out of memory",
                    told(code, &result, &fault));
        if (had_all) {
            fm_turn_result_free(&result);
            break;
        }
    }
    assert_true(failed >= 1);
    json_object_put(root);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(wrong_shapes),
        cmocka_unit_test(failures),
        cmocka_unit_test(incomplete),
        cmocka_unit_test(running_on),
        cmocka_unit_test(usage),
        cmocka_unit_test(what_the_model_wrote),
        cmocka_unit_test(availability),
        cmocka_unit_test(a_long_reason),
#ifdef WRAPPED
        cmocka_unit_test(without_memory),
#endif
    };
    return cmocka_run_group_tests_name("session_reply", tests, NULL, NULL);
}
