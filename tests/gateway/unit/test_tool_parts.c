/* The pure parts of the tools: output, display, schemas, addresses, the browser's protocol, the environment. */
#include "protocol/json_tree.h"
#include "tools/address.h"
#include "protocol/cdp.h"
#include "tools/display.h"
#include "tools/environment.h"
#include "tools/output.h"
#include "tools/schema.h"
#include "tools/tools.h"

#include <arpa/inet.h>
#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- output ---- */

/* A text with characters of one to four bytes, and bytes that are not UTF-8. */
static const char alphabet[] = "a\xC3\xBC\xE4\xB8\xAD\xF0\x9F\x98\x80\xFFz\xE4\xB8\n";

static void output_is_the_same_in_whatever_pieces(void **state) {
    (void)state;
    for (size_t total = 0; total < 4000; total += 37) {
        char *raw = malloc(total + 1);
        for (size_t i = 0; i < total; i++) {
            raw[i] = alphabet[i % (sizeof alphabet - 1)];
        }
        struct fm_buf first;
        fm_buf_init(&first, 1u << 20);
        for (size_t piece = 1; piece < 2000; piece = piece * 7 + 1) {
            struct gw_output output;
            struct fm_buf text;
            bool cut;
            gw_output_init(&output, 1000);
            fm_buf_init(&text, 1u << 20);
            for (size_t at = 0; at < total; at += piece) {
                gw_output_add(&output, raw + at, total - at < piece ? total - at : piece);
            }
            assert_true(gw_output_text(&output, &text, &cut));
            assert_true(text.len <= 1000);
            if (piece == 1) {
                fm_buf_append(&first, text.data, text.len);
            }
            assert_int_equal(text.len, first.len);
            assert_true(text.len == 0 || memcmp(text.data, first.data, text.len) == 0);
            fm_buf_free(&text);
            gw_output_free(&output);
        }
        fm_buf_free(&first);
        free(raw);
    }
}

static void check_output(const char *raw, size_t len, bool expected_cut, const char *begin, const char *end) {
    struct gw_output output;
    struct fm_buf text;
    bool cut;
    gw_output_init(&output, 1000);
    fm_buf_init(&text, 2000);
    gw_output_add(&output, raw, len);
    assert_true(gw_output_text(&output, &text, &cut));
    assert_int_equal(cut, expected_cut);
    assert_memory_equal(text.data, begin, strlen(begin));
    assert_memory_equal(text.data + text.len - strlen(end), end, strlen(end));
    fm_buf_free(&text);
    gw_output_free(&output);
}

static void output_is_cut_between_characters(void **state) {
    char raw[1600];
    (void)state;
    memset(raw, 'x', sizeof raw);
    check_output(raw, 1000, false, "xxx", "xxx");
    check_output(raw, 1001, true, "xxx", "xxx");
    memcpy(raw + 458, "\xF0\x9F\x98\x80", 4); /* the beginning that is kept has 460 bytes */
    memcpy(raw + 1600 - 461, "\xF0\x9F\x98\x80", 4);
    struct gw_output output;
    struct fm_buf text;
    bool cut;
    gw_output_init(&output, 1000);
    fm_buf_init(&text, 2000);
    gw_output_add(&output, raw, sizeof raw);
    assert_true(gw_output_text(&output, &text, &cut));
    assert_memory_equal(text.data + 458, "\n[... 685 bytes are left out here ...]\nx", 40);
    fm_buf_free(&text);
    gw_output_free(&output);
    memset(raw, 0xFF, sizeof raw); /* each byte becomes three bytes */
    check_output(raw, 333, false, "\xEF\xBF\xBD", "\xEF\xBF\xBD");
    check_output(raw, 334, true, "\xEF\xBF\xBD", "\xEF\xBF\xBD");
}

/* ---- display ---- */

static void what_is_unseen_gets_a_name(void **state) {
    static const struct {
        const char *text;
        const char *shown;
    } rows[] = {
        {"plain\n\ttext", "plain\n\ttext"},
        {"\x01\x1f\x7f", "<U+0001><U+001F><U+007F>"},
        {"\xC2\x85\xC2\xA0\xC2\xAD", "<U+0085><U+00A0><U+00AD>"},
        {"\xE2\x80\xAE\xE2\x81\xA6\xE2\x80\x8B\xE2\x80\xA8", "<U+202E><U+2066><U+200B><U+2028>"},
        {"\xD8\x9C\xE3\x85\xA4\xEF\xBB\xBF\xE2\xA0\x80", "<U+061C><U+3164><U+FEFF><U+2800>"},
        {"\xF3\xA0\x81\x81\xF3\xA0\x84\x80", "<U+E0041><U+E0100>"},
        {"\xF0\x9F\x98\x80\xC3\xBC\xD7\x90\xE4\xB8\xAD", "\xF0\x9F\x98\x80\xC3\xBC\xD7\x90\xE4\xB8\xAD"},
        {"\xEE\x80\x80\xF3\xB0\x80\x80\xF4\x8F\xBF\xBF", "<U+E000><U+F0000><U+10FFFF>"},
        {"\xF0\x9D\x85\x99\xF0\x96\xBF\xA4", "<U+1D159><U+16FE4>"},
        {"\xFF", "<U+FFFD>"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_buf buf;
        fm_buf_init(&buf, 1000);
        bool escaped = gw_display(&buf, rows[i].text, strlen(rows[i].text));
        fm_buf_append_char(&buf, '\0');
        assert_string_equal(buf.data, rows[i].shown);
        assert_int_equal(escaped, strcmp(rows[i].text, rows[i].shown) != 0);
        fm_buf_free(&buf);
    }
}

static void a_line_is_short(void **state) {
    struct fm_buf buf;
    (void)state;
    fm_buf_init(&buf, 1000);
    gw_display_line(&buf,
                    "a\nb\xC3\xBC"
                    "cd",
                    7, 4);
    fm_buf_append_char(&buf, '\0');
    assert_string_equal(buf.data, "a b...");
    fm_buf_free(&buf);
}

/* ---- schemas ---- */

static struct json_object *parse(const char *text) {
    struct json_object *root = NULL;
    struct fm_buf scratch;
    fm_buf_init(&scratch, 1u << 16);
    assert_true(fm_json_tree(text, strlen(text), &scratch, &root));
    fm_buf_free(&scratch);
    return root;
}

static void inputs_are_checked(void **state) {
    static const char schema[] =
        "{\"type\":\"object\",\"required\":[\"a\"],\"additionalProperties\":false,\"properties\":{"
        "\"a\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":2,\"items\":{\"type\":\"object\",\"properties\":{"
        "\"s\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":2},\"e\":{\"type\":\"string\",\"enum\":[\"x\",\"y\"]}"
        ","
        "\"n\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":3}}}},\"b\":{\"type\":\"boolean\"}}}";
    static const struct {
        const char *input;
        const char *param; /* NULL: the input is valid */
        const char *detail;
    } rows[] = {
        {"{\"a\":[{\"s\":\"\xC3\xBC\xC3\xBC\",\"e\":\"y\",\"n\":3}],\"b\":true}", NULL, NULL},
        {"{\"a\":[{\"other\":1}]}", NULL, NULL},
        {"[]", "", "the input must be of type object"},
        {"{}", "a", "a is missing"},
        {"{\"a\":[{}],\"c\":1}", "c", "c is not known here; leave it out"},
        {"{\"a\":{}}", "a", "a must be of type array"},
        {"{\"a\":[]}", "a", "a must have at least 1 items"},
        {"{\"a\":[{},{},{}]}", "a", "a must have at most 2 items"},
        {"{\"a\":[{},1]}", "a[1]", "a[1] must be of type object"},
        {"{\"a\":[{\"s\":\"\"}]}", "a[0].s", "a[0].s must not be empty"},
        {"{\"a\":[{\"s\":\"abc\"}]}", "a[0].s", "a[0].s must have at most 2 characters"},
        {"{\"a\":[{\"e\":\"z\"}]}", "a[0].e", "a[0].e must be one of: x, y"},
        {"{\"a\":[{\"n\":0}]}", "a[0].n", "a[0].n must be at least 1"},
        {"{\"a\":[{\"n\":4}]}", "a[0].n", "a[0].n must be at most 3"},
        {"{\"a\":[{\"n\":1.5}]}", "a[0].n", "a[0].n must be of type integer"},
        {"{\"a\":[{\"s\":null}]}", "a[0].s", "a[0].s must be of type string"},
        {"{\"a\":[{}],\"b\":0}", "b", "b must be of type boolean"},
    };
    struct json_object *rules = parse(schema);
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_error error;
        struct json_object *input = parse(rows[i].input);
        enum fm_code code = gw_schema_check(rules, input, &error);
        assert_int_equal(code, rows[i].param ? FM_INVALID_REQUEST : FM_OK);
        if (rows[i].param) {
            assert_string_equal(error.param, rows[i].param);
            assert_string_equal(error.detail, rows[i].detail);
        }
        json_object_put(input);
    }
    json_object_put(rules);
}

/* With an empty input, each keyword at the top of the schema is checked. A part of the schema without a type, or with
 * an unknown keyword, is only noticed when the input reaches it. */
static void schemas_have_known_keywords(void **state) {
    static const char *const rows[] = {"{\"type\":\"object\",\"oneOf\":[]}", "{\"properties\":{}}"};
    struct fm_error error;
    struct json_object *input = parse("{}");
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_object *schema = parse(rows[i]);
        assert_int_equal(gw_schema_check(schema, input, &error), FM_INTERNAL);
        json_object_put(schema);
    }
    json_object_put(input);
    for (size_t i = 0; i < gw_tools_count(); i++) {
        struct json_object *schema = parse(gw_tools_at(i)->input_schema);
        struct json_object *full =
            parse(strcmp(gw_tools_at(i)->name, "bash") == 0
                      ? "{\"command\":\"x\"}"
                      : "{\"actions\":[{\"action\":\"text\",\"url\":\"x\",\"selector\":\"x\",\"text\":"
                        "\"x\",\"submit\":true,\"ms\":1}]}");
        assert_int_equal(gw_schema_check(schema, full, &error), FM_OK);
        json_object_put(full);
        json_object_put(schema);
    }
}

/* ---- addresses ---- */

static const struct {
    const char *address;
    const char *refused; /* NULL: public */
} addresses[] = {
    {"1.1.1.1", NULL},
    {"9.255.255.255", NULL},
    {"10.0.0.0", "an address of a private network"},
    {"10.255.255.255", "an address of a private network"},
    {"11.0.0.0", NULL},
    {"100.63.255.255", NULL},
    {"100.64.0.0", "an address of a private network"},
    {"100.127.255.255", "an address of a private network"},
    {"100.128.0.0", NULL},
    {"0.0.0.0", "an address for special purposes"},
    {"127.0.0.1", "a loopback address"},
    {"127.255.255.254", "a loopback address"},
    {"128.0.0.0", NULL},
    {"169.254.169.254", "an address of the local link"},
    {"172.15.255.255", NULL},
    {"172.16.0.0", "an address of a private network"},
    {"172.31.255.255", "an address of a private network"},
    {"172.32.0.0", NULL},
    {"192.168.255.255", "an address of a private network"},
    {"192.169.0.0", NULL},
    {"198.18.0.1", "an address for special purposes"},
    {"198.20.0.0", NULL},
    {"223.255.255.255", NULL},
    {"224.0.0.1", "an address for special purposes"},
    {"255.255.255.255", "an address for special purposes"},
    {"::1", "a loopback address"},
    {"::", "an address for special purposes"},
    {"::2", "an address for special purposes"},
    {"::127.0.0.1", "an address for special purposes"},
    {"::ffff:127.0.0.1", "a loopback address"},
    {"::ffff:10.0.0.1", "an address of a private network"},
    {"::ffff:1.1.1.1", NULL},
    {"::ffff:0:127.0.0.1", "a loopback address"},
    {"64:ff9b::7f00:1", "a loopback address"},
    {"64:ff9b::808:808", NULL},
    {"64:ff9b:1::1", "an address for special purposes"},
    {"2002:7f00:1::", "a loopback address"},
    {"2002:a00:1::", "an address of a private network"},
    {"2001::1", "an address for special purposes"},
    {"2001:db8::1", "an address for special purposes"},
    {"2001:4860:4860::8888", NULL},
    {"2606:4700::1111", NULL},
    {"fc00::1", "an address of a private network"},
    {"fdff::1", "an address of a private network"},
    {"fe80::1", "an address of the local link"},
    {"febf::1", "an address of the local link"},
    {"fec0::1", "an address of a private network"},
    {"ff02::1", "an address for special purposes"},
};

static void only_public_addresses(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        struct sockaddr_storage address = {0};
        struct sockaddr_in *v4 = (void *)&address;
        struct sockaddr_in6 *v6 = (void *)&address;
        if (inet_pton(AF_INET, addresses[i].address, &v4->sin_addr) == 1) {
            address.ss_family = AF_INET;
        } else {
            assert_int_equal(inet_pton(AF_INET6, addresses[i].address, &v6->sin6_addr), 1);
            address.ss_family = AF_INET6;
        }
        const char *refused = gw_address_refused((struct sockaddr *)&address);
        if (addresses[i].refused) {
            assert_non_null(refused);
            assert_string_equal(refused, addresses[i].refused);
        } else {
            assert_null(refused);
        }
    }
    struct sockaddr other = {.sa_family = AF_UNIX};
    assert_non_null(gw_address_refused(&other));
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(80)};
    char text[80];
    assert_string_equal(gw_address_near((struct sockaddr *)&own), "an address of this machine");
    gw_address_write((struct sockaddr *)&own, text, sizeof text);
    assert_string_equal(text, "127.0.0.1:80");
}

/* ---- the browser's protocol ---- */

static char written[1000];
static char log_text[1000];

static bool on_write(void *context, const char *data, size_t len) {
    (void)context;
    assert_true(len < sizeof written);
    memcpy(written, data, len);
    assert_int_equal(written[len - 1], '\0');
    return true;
}

static void note(const char *text) {
    size_t len = strlen(log_text);
    snprintf(log_text + len, sizeof log_text - len, "%s;", text);
}

static void on_event(void *context, const char *session, const char *method, struct json_object *params) {
    (void)context;
    (void)params;
    note(session);
    note(method);
}

static void on_answer(void *context, struct json_object *result, const char *error) {
    (void)context;
    note(error ? error : json_object_to_json_string_ext(result, JSON_C_TO_STRING_PLAIN));
}

static void messages_in_whatever_pieces(void **state) {
    static const char stream[] =
        "{\"id\":2,\"result\":{\"a\":1}}\0{\"method\":\"M\",\"sessionId\":\"S\"}\0"
        "{\"id\":2,\"result\":{}}\0{\"id\":77,\"result\":{}}\0{\"id\":1,\"error\":{\"message\":\"no\"}}";
    (void)state;
    for (size_t piece = 1; piece <= sizeof stream; piece++) {
        struct fm_cdp cdp;
        fm_cdp_init(&cdp, NULL, on_write, on_event);
        *log_text = '\0';
        assert_true(fm_cdp_call(&cdp, NULL, "First", NULL, on_answer));
        assert_string_equal(written, "{\"id\":1,\"method\":\"First\"}");
        assert_true(fm_cdp_call(&cdp, "S", "Second", "{\"x\":[]}", on_answer));
        assert_string_equal(written, "{\"id\":2,\"method\":\"Second\",\"params\":{\"x\":[]},\"sessionId\":\"S\"}");
        for (size_t at = 0; at < sizeof stream; at += piece) {
            assert_true(fm_cdp_feed(&cdp, stream + at, sizeof stream - at < piece ? sizeof stream - at : piece));
        }
        assert_string_equal(log_text, "{\"a\":1};S;M;no;");
        fm_cdp_free(&cdp);
    }
}

static void what_is_no_message(void **state) {
    static const char *const rows[] = {"", "x", "{", "[]", "{}", "1", "{\"id\":1}{}"};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_cdp cdp;
        fm_cdp_init(&cdp, NULL, on_write, on_event);
        assert_false(fm_cdp_feed(&cdp, rows[i], strlen(rows[i]) + 1));
        fm_cdp_free(&cdp);
    }
}

static void pending_calls_are_limited(void **state) {
    struct fm_cdp cdp;
    (void)state;
    fm_cdp_init(&cdp, NULL, on_write, on_event);
    for (size_t i = 0; i < FM_CDP_PENDING_MAX; i++) {
        assert_true(fm_cdp_call(&cdp, NULL, "M", NULL, on_answer));
    }
    assert_false(fm_cdp_call(&cdp, NULL, "M", NULL, on_answer));
    assert_true(fm_cdp_call(&cdp, NULL, "M", NULL, NULL));
    fm_cdp_close(&cdp);
    assert_false(fm_cdp_call(&cdp, NULL, "M", NULL, NULL));
    *log_text = '\0';
    assert_true(fm_cdp_feed(&cdp, "{\"id\":1,\"result\":{}}", 21)); /* no callbacks after the close */
    assert_string_equal(log_text, "");
    fm_cdp_free(&cdp);
}

/* ---- the environment ---- */

static void an_allow_list(void **state) {
    char *const all[] = {"PATH=/bin",    "OPENAI_API_KEY=k", "LC_ALL=C",   "LCX=1",           "PATHX=1", "HOME=/h",
                         "LD_PRELOAD=x", "BASH_ENV=x",       "TERM=xterm", "SSH_AUTH_SOCK=x", NULL};
    char **allowed = gw_environment_allowed(all);
    (void)state;
    static const char *const expected[] = {"TERM=dumb", "PATH=/bin", "LC_ALL=C", "HOME=/h"};
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(allowed[i], expected[i]);
    }
    assert_null(allowed[4]);
    assert_string_equal(gw_environment_get(allowed, "PATH"), "/bin");
    assert_null(gw_environment_get(allowed, "PAT"));
    gw_strings_free(allowed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_is_the_same_in_whatever_pieces),
        cmocka_unit_test(output_is_cut_between_characters),
        cmocka_unit_test(what_is_unseen_gets_a_name),
        cmocka_unit_test(a_line_is_short),
        cmocka_unit_test(inputs_are_checked),
        cmocka_unit_test(schemas_have_known_keywords),
        cmocka_unit_test(only_public_addresses),
        cmocka_unit_test(messages_in_whatever_pieces),
        cmocka_unit_test(what_is_no_message),
        cmocka_unit_test(pending_calls_are_limited),
        cmocka_unit_test(an_allow_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
