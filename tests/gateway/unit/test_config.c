/* config.json: the defaults of the table, the values that replace them, and refusals that name key and line. */
#include "config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void test_defaults(void **state) {
    struct gw_config config;
    (void)state;
    gw_config_defaults(&config);
    assert_int_equal(config.gateway_port, 18789);
    assert_string_equal(config.gateway_host, "127.0.0.1");
    assert_string_equal(config.agents_default, "assistant");
    assert_string_equal(config.agents_workspace_path, "./workspace");
    assert_int_equal(config.tools_timeout, 120000);
    assert_int_equal(config.tools_max_output_bytes, 100000);
    assert_int_equal(config.tools_approval_timeout, 600000);
    assert_string_equal(config.tools_sandbox, "off");
    assert_true(config.memory_enabled);
    assert_string_equal(config.memory_embedding_model, "text-embedding-3-small");
    assert_string_equal(config.memory_embedding_provider, "local");
    assert_true(config.security_audit_log);
    assert_true(config.security_secrets_filter);
}

static void test_what_is_written_is_read_back(void **state) {
    struct gw_config defaults;
    struct gw_config config;
    struct fm_error error;
    struct fm_buf text;
    (void)state;
    gw_config_defaults(&defaults);
    memset(&config, 0, sizeof config);
    fm_buf_init(&text, GW_CONFIG_FILE_MAX);
    gw_config_write_defaults(&text);
    assert_int_equal(gw_config_parse(&config, text.data, text.len, "config.json", &error), FM_OK);
    assert_memory_equal(&config, &defaults, sizeof config);
    fm_buf_free(&text);
}

struct row {
    const char *text;
    const char *fault; /* NULL: it is accepted */
};

static const struct row rows[] = {
    {"{}", NULL},
    {"{\"gateway\":{}}", NULL},
    {"{\"gateway\":{\"port\":1}}", NULL},
    {"{\"gateway\":{\"host\":\"::1\"}}", NULL},
    {"\xef\xbb\xbf{\"gateway\":{\"port\":1}}", NULL}, /* a byte order mark */
    {"\xef\xbb\xbf", "c.json, line 1: not JSON"},
    {"\xef\xbb\xbf\xef\xbb\xbf{}", "c.json, line 1: not JSON"},
    {"", "c.json, line 1: not JSON"},
    {"[]", "c.json, line 1: must be a JSON object"},
    {"{\n\"gateway\": {\n \"prt\": 1}}", "c.json, line 3: gateway.prt: no such key"},
    {"{\n\n\"gatway\": {}}", "c.json, line 3: gatway: no such group"},
    {"{\"gateway\": 5}", "c.json, line 1: gateway: must be an object"},
    {"{\"gateway\": [{\"port\": 1}]}", "c.json, line 1: gateway: must be an object"},
    {"{\"gateway\": {\n\"port\": \"1\"}}",
     "c.json, line 2: gateway.port: must be an integer from 0 to 65535, not \"1\""},
    {"{\"gateway\": {\"port\": 65536}}", "gateway.port: must be an integer"},
    {"{\"gateway\": {\"port\": 1.0}}", "gateway.port: must be an integer"},
    {"{\"gateway\": {\"port\": null}}", "gateway.port: must be an integer"},
    {"{\"gateway\":{\n\"host\":\n\"0.0.0.0\"}}", "c.json, line 2: gateway.host: must be one of"},
    {"{\"gateway\":{\"host\":\"0.0.0.0\"}}", "this machine alone"},
    {"{\"gateway\":{\"host\":\"\"}}", "gateway.host: must be one of"},
    {"{\"gateway\":{\"host\":\"127.0.0.1\\u0000\"}}", "gateway.host: must be one of"},
    {"{\"memory\":{\"enabled\":1}}", "memory.enabled: must be true or false, not 1"},
    {"{\"agents\":{\"default\":\"\"}}", "agents.default: must be a string of 1 to 64 bytes"},
    {"{\"gateway\":{\"port\":1,\n\"port\":2}}", "c.json, line 2: gateway.port: the key is there twice"},
    {"{\"gateway\":{},\n\"gateway\":{}}", "c.json, line 2: gateway: the group is there twice"},
    {"{\"gateway\":{\n\"port\" 1}}", "c.json, line 2: not JSON"},
};

static void test_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gw_config config;
        struct gw_config before;
        struct fm_error error = {0};
        gw_config_defaults(&config);
        before = config;
        enum fm_code code = gw_config_parse(&config, rows[i].text, strlen(rows[i].text), "c.json", &error);
        assert_int_equal(code, rows[i].fault ? FM_INVALID_REQUEST : FM_OK);
        if (rows[i].fault && !strstr(error.detail, rows[i].fault)) {
            fail_msg("%s: %s", rows[i].text, error.detail);
        }
        if (rows[i].fault) {
            assert_memory_equal(&config, &before, sizeof config);
        }
    }
}

static void test_environment(void **state) {
    struct gw_config config;
    struct fm_error error;
    (void)state;
    gw_config_defaults(&config);
    setenv("PROJ_JARVIS_PORT", "4000", 1);
    setenv("PROJ_JARVIS_HOST", "localhost", 1);
    assert_int_equal(gw_config_environment(&config, &error), FM_OK);
    assert_int_equal(config.gateway_port, 4000);
    assert_string_equal(config.gateway_host, "localhost");
    static const char *const wrong[] = {"x", "-1", "65536", "80 ", "0x10", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv("PROJ_JARVIS_PORT", wrong[i], 1);
        assert_int_equal(gw_config_environment(&config, &error), FM_INVALID_REQUEST);
        assert_non_null(strstr(error.detail, "PROJ_JARVIS_PORT"));
    }
    setenv("PROJ_JARVIS_PORT", "", 1);
    setenv("PROJ_JARVIS_HOST", "192.168.0.1", 1);
    assert_int_equal(gw_config_environment(&config, &error), FM_INVALID_REQUEST);
    assert_non_null(strstr(error.detail, "PROJ_JARVIS_HOST"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_what_is_written_is_read_back),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
