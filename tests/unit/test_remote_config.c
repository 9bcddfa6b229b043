/* Configurations of the remote engine: which are accepted, and the path of the fault in the others. */
#include "engine/remote/config.h"

#include "wire.h"

#include <unistd.h>

#define ENDPOINT(members) "{\"endpoints\":[{\"url\":\"https://a.example/v1\",\"dialect\":\"chat\"," members "}]}"
#define URL(url)          "{\"endpoints\":[{\"dialect\":\"chat\",\"url\":\"" url "\"}]}"

static const struct row {
    const char *text;
    const char *param; /* NULL: it is accepted */
} rows[] = {
    {URL("https://a.example/v1"), NULL},
    {URL("https://a.example:8443"), NULL},
    {URL("https://a.example/openai/?api-version=1"), NULL},
    {URL("http://127.0.0.1:8080/v1"), NULL},
    {URL("http://127.8.9.1"), NULL},
    {URL("http://localhost/v1"), NULL},
    {URL("http://[::1]:8080/v1"), NULL},
    {URL("http://a.example/v1"), "endpoints[0].url"},
    {URL("http://127.0.0.1.a.example/v1"), "endpoints[0].url"},
    {URL("http://127.example/v1"), "endpoints[0].url"},
    {URL("http://127.0.0.999/v1"), "endpoints[0].url"},
    {URL("http://127.0.1/v1"), "endpoints[0].url"},
    {URL("http://127.0.0.1.2/v1"), "endpoints[0].url"},
    {URL("http://localhost\",\"proxy\":\"http://127.0.0.1:3128"), NULL},
    {URL("http://localhost\",\"proxy\":\"http://p.example:3128"), "endpoints[0].proxy"},
    {URL("http://localhost\",\"plaintext\":true,\"proxy\":\"http://p.example:3128"), NULL},
    {URL("http://localhost.example/v1"), "endpoints[0].url"},
    {URL("http://[::2]/v1"), "endpoints[0].url"},
    {URL("ftp://a.example"), "endpoints[0].url"},
    {URL("a.example"), "endpoints[0].url"},
    {URL(""), "endpoints[0].url"},
    {URL("https://"), "endpoints[0].url"},
    {URL("https:///v1"), "endpoints[0].url"},
    {URL("https://:80"), "endpoints[0].url"},
    {URL("https://[]"), "endpoints[0].url"},
    {URL("https://a:0"), "endpoints[0].url"},
    {URL("https://a:65536"), "endpoints[0].url"},
    {URL("https://a:x"), "endpoints[0].url"},
    {URL("https://a:"), "endpoints[0].url"},
    {URL("https://user:word@a.example"), "endpoints[0].url"},
    {URL("https://a.example/#x"), "endpoints[0].url"},
    {URL("https://a.example/a b"), "endpoints[0].url"},
    {URL("https://a.example/\\u00e4"), "endpoints[0].url"},
    {URL("https://a.example/\\r\\nx: y"), "endpoints[0].url"},
    {ENDPOINT("\"plaintext\":true"), NULL},
    {"{\"endpoints\":[{\"dialect\":\"chat\",\"url\":\"http://a.example\",\"plaintext\":true}]}", NULL},
    {"{\"endpoints\":[{\"dialect\":\"chat\",\"url\":\"http://a.example\",\"plaintext\":false}]}", "endpoints[0].url"},
    {ENDPOINT("\"plaintext\":1"), "endpoints[0].plaintext"},
    {ENDPOINT("\"models\":[\"a\",{\"id\":\"b\",\"name\":\"c\",\"context_length\":8}]"), NULL},
    {ENDPOINT("\"models\":[]"), "endpoints[0].models"},
    {ENDPOINT("\"models\":\"a\""), "endpoints[0].models"},
    {ENDPOINT("\"models\":[\"a\",\"\"]"), "endpoints[0].models[1]"},
    {ENDPOINT("\"models\":[7]"), "endpoints[0].models[0]"},
    {ENDPOINT("\"models\":[{}]"), "endpoints[0].models[0]"},
    {ENDPOINT("\"models\":[{\"id\":\"a\",\"x\":1}]"), "endpoints[0].models[0]"},
    {ENDPOINT("\"models\":[{\"id\":\"a\",\"context_length\":0}]"), "endpoints[0].models[0]"},
    {ENDPOINT("\"headers\":{\"x-a\":\"b\",\"x-c\":\"\"}"), NULL},
    {ENDPOINT("\"headers\":{\"x-a\":1}"), "endpoints[0].headers.x-a"},
    {ENDPOINT("\"headers\":{\"x a\":\"b\"}"), "endpoints[0].headers.x a"},
    {ENDPOINT("\"headers\":{\"x-a\":\"b\\r\\nx: y\"}"), "endpoints[0].headers.x-a"},
    {ENDPOINT("\"headers\":{\"Content-Length\":\"1\"}"), "endpoints[0].headers.Content-Length"},
    {ENDPOINT("\"headers\":[]"), "endpoints[0].headers"},
    {ENDPOINT("\"body\":{\"a\":1}"), NULL},
    {ENDPOINT("\"body\":[]"), "endpoints[0].body"},
    {ENDPOINT("\"proxy\":\"http://p.example:3128\""), NULL},
    {ENDPOINT("\"proxy\":\"socks5://p.example\""), "endpoints[0].proxy"},
    {ENDPOINT("\"proxy\":\"http://p.example/path\""), "endpoints[0].proxy"},
    {ENDPOINT("\"proxy\":\"http://u:p@p.example\""), "endpoints[0].proxy"},
    {ENDPOINT("\"session_header\":\"x-session\""), NULL},
    {ENDPOINT("\"session_header\":\"x session\""), "endpoints[0].session_header"},
    {ENDPOINT("\"timeouts\":{\"connect_ms\":5,\"first_byte_ms\":6,\"silence_ms\":7}"), NULL},
    {ENDPOINT("\"timeouts\":{\"connect_ms\":0}"), "endpoints[0].timeouts.connect_ms"},
    {ENDPOINT("\"timeouts\":{\"total\":1}"), "endpoints[0].timeouts.total"},
    {ENDPOINT("\"timeouts\":7"), "endpoints[0].timeouts"},
    {ENDPOINT("\"ca_file\":\"ca.pem\""), "endpoints[0].ca_file"},
    {ENDPOINT("\"ca_file\":\"/dev/null\""), "endpoints[0].ca_file"},
    {ENDPOINT("\"ca_file\":7"), "endpoints[0].ca_file"},
    {ENDPOINT("\"key_file\":\"nowhere\""), "endpoints[0].key_file"},
    {ENDPOINT("\"key_env\":\"FM_TEST_NO_SUCH\""), "endpoints[0].key_env"},
    {ENDPOINT("\"key_env\":\"\""), "endpoints[0].key_env"},
    {ENDPOINT("\"keychain\":\"x\""), "endpoints[0].keychain"},
    {ENDPOINT("\"key_header\":\"api-key\""), "endpoints[0].key_header"},
    {ENDPOINT("\"colour\":\"red\""), "endpoints[0].colour"},
    {"{\"endpoints\":[{\"url\":\"https://a\",\"dialect\":\"chat\"},{\"url\":\"https://"
     "b\",\"dialect\":\"chat\",\"x\":1}]}",
     "endpoints[1].x"},
    {"{\"endpoints\":[{\"url\":\"https://a\"}]}", "endpoints[0].dialect"},
    {"{\"endpoints\":[{\"url\":\"https://a\",\"dialect\":\"soap\"}]}", "endpoints[0].dialect"},
    {"{\"endpoints\":[{\"dialect\":\"chat\"}]}", "endpoints[0].url"},
    {"{\"endpoints\":[7]}", "endpoints[0]"},
    {"{\"endpoints\":[]}", "endpoints"},
    {"{\"endpoints\":{}}", "endpoints"},
    {"{}", "endpoints"},
    {"[]", ""},
    {"{\"endpoints\":[", ""},
    {"", ""},
    {"{\"endpoints\":[],\"x\":1}", "x"},
    {"{\"endpoints\":[],\"endpoints\":[]}", "endpoints"},
    {ENDPOINT("\"plaintext\":true,\"pl\\u0061intext\":true"), "endpoints[0].plaintext"},
    {ENDPOINT("\"body\": { \"a\\\"\" : [1, {\"b\":-1.5e3 , \"b\":2}] }"), "endpoints[0].body.a\"[1].b"},
    {ENDPOINT("\"body\":{\"a\":[{\"b\":1},{\"b\":2}],\"b\":{\"a\":\"a\"}}"), NULL},
};

static void texts(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_remote_config config;
        struct fm_error error = {.code = FM_OK};
        enum fm_code code = fm_remote_config_read(&config, rows[i].text, strlen(rows[i].text), "/nowhere", &error);
        if (!rows[i].param) {
            assert_int_equal(code, FM_OK);
            assert_int_equal(config.endpoint_count, 1);
        } else {
            assert_int_equal(code, FM_UNAVAILABLE);
            assert_string_equal(error.reason_code, "NOT_CONFIGURED");
            expect_text(rows[i].text, "row", i, rows[i].param, error.param);
            assert_non_null(strstr(error.detail, rows[i].param));
            assert_int_equal(config.endpoint_count, 0);
        }
        fm_remote_config_free(&config);
        fm_remote_config_free(&config);
    }
}

/* Writes a new file; returns its path. */
static const char *file_with(const char *text, size_t len) {
    static char path[] = "/tmp/fm-test-key-XXXXXX";
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), (ssize_t)len);
    close(fd);
    return path;
}

static void what_is_read(void **state) {
    (void)state;
    const char *path = file_with(BYTES("-----BEGIN CERTIFICATE-----"));
    char text[512];
    int len = snprintf(text, sizeof text,
                       "{\"endpoints\":[{\"url\":\"https://a.example:8443/openai//?v=1\",\"dialect\":\"responses\","
                       "\"ca_file\":\"%s\",\"models\":[\"m\",{\"id\":\"n\",\"name\":\"o\",\"context_length\":9}],"
                       "\"timeouts\":{\"silence_ms\":5}},{\"url\":\"http://localhost\",\"dialect\":\"messages\","
                       "\"proxy\":\"http://p:3128\",\"plaintext\":true}]}",
                       path + sizeof "/tmp/" - 1);
    struct fm_remote_config config;
    struct fm_remote_model spare;
    struct fm_error error;
    assert_int_equal(fm_remote_config_read(&config, text, (size_t)len, "/tmp", &error), FM_OK);
    unlink(path);
    const struct fm_endpoint *first = &config.endpoints[0];
    const struct fm_endpoint *second = &config.endpoints[1];
    assert_string_equal(first->base, "https://a.example:8443/openai");
    assert_string_equal(first->query, "?v=1");
    assert_int_equal(config.secrets.count, 1);
    assert_string_equal(config.secrets.texts[0], "?v=1");
    assert_string_equal(first->host, "a.example:8443");
    assert_string_equal(first->ca_file, path);
    assert_int_equal(first->port, 8443);
    assert_int_equal(first->dialect, FM_DIALECT_RESPONSES);
    assert_int_equal(first->connect_ms, FM_CONNECT_MS);
    assert_int_equal(first->silence_ms, 5);
    assert_int_equal(second->port, 3128);
    assert_string_equal(fm_endpoint_model(first, NULL, &spare)->name, "m");
    assert_string_equal(fm_endpoint_model(first, "n", &spare)->name, "o");
    assert_null(fm_endpoint_model(first, "o", &spare));
    assert_string_equal(fm_endpoint_model(second, "any", &spare)->name, "any");
    assert_null(fm_endpoint_model(second, NULL, &spare)->name);
    fm_remote_config_free(&config);
}

static void keys(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        const char *key; /* NULL: the text is not a valid key */
    } cases[] = {
        {BYTES("sk-canary-1"), "sk-canary-1"},
        {BYTES(" \tsk-canary-1\r\n\n"), "sk-canary-1"},
        {BYTES(""), NULL},
        {BYTES("\n"), NULL},
        {BYTES("two words"), NULL},
        {BYTES("a\nb"), NULL},
        {BYTES("a\0b"), NULL},
        {BYTES("k\xc3\xa4"), NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[512];
        struct fm_remote_config config;
        struct fm_error error = {.code = FM_OK};
        const char *path = file_with(cases[i].text, cases[i].len);
        snprintf(text, sizeof text,
                 "{\"endpoints\":[{\"url\":\"https://a\",\"dialect\":\"chat\",\"key_file\":\"%s\"}]}", path);
        enum fm_code code = fm_remote_config_read(&config, text, strlen(text), NULL, &error);
        unlink(path);
        if (cases[i].key) {
            assert_int_equal(code, FM_OK);
            assert_string_equal(config.endpoints[0].key, cases[i].key);
            assert_int_equal(config.secrets.count, 1);
        } else {
            assert_int_equal(code, FM_UNAVAILABLE);
            assert_string_equal(error.param, "endpoints[0].key_file");
            assert_null(strstr(error.detail, "words"));
        }
        fm_remote_config_free(&config);
    }
}

/* Afterwards the variable is removed, and its memory cleared. */
static void key_of_the_environment(void **state) {
    (void)state;
    static const char text[] = ENDPOINT("\"key_env\":\"FM_TEST_KEY\",\"key_header\":\"api-key\"");
    struct fm_remote_config config;
    struct fm_error error;
    assert_int_equal(setenv("FM_TEST_KEY", "sk-canary-2", 1), 0);
    char *place = getenv("FM_TEST_KEY");
    assert_int_equal(fm_remote_config_read(&config, text, sizeof text - 1, NULL, &error), FM_OK);
    assert_string_equal(config.endpoints[0].key, "sk-canary-2");
    assert_null(getenv("FM_TEST_KEY"));
    assert_int_equal(place[0], 0);
    fm_remote_config_free(&config);
}

/* Keys are masked in everything that a server sends. */
static void what_may_be_a_key(void **state) {
    (void)state;
    static const char text[] =
        ENDPOINT("\"key_env\":\"FM_TEST_KEY\",\"headers\":{\"x-other\":\"sk-canary-4\",\"x-no\":\"1\"}");
    struct fm_remote_config config;
    struct fm_error error;
    assert_int_equal(setenv("FM_TEST_KEY", "sk-canary-3", 1), 0);
    assert_int_equal(fm_remote_config_read(&config, text, sizeof text - 1, NULL, &error), FM_OK);
    assert_int_equal(config.secrets.count, 2);
    assert_string_equal(config.secrets.texts[0], "sk-canary-4");
    assert_string_equal(config.secrets.texts[1], "sk-canary-3");
    fm_remote_config_free(&config);
}

static void only_one_key(void **state) {
    (void)state;
    static const char text[] = ENDPOINT("\"key_file\":\"/dev/null\",\"key_env\":\"X\"");
    struct fm_remote_config config;
    struct fm_error error;
    assert_int_equal(fm_remote_config_read(&config, text, sizeof text - 1, NULL, &error), FM_UNAVAILABLE);
    assert_string_equal(error.param, "endpoints[0].key_file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(what_is_read),
        cmocka_unit_test(keys),
        cmocka_unit_test(key_of_the_environment),
        cmocka_unit_test(what_may_be_a_key),
        cmocka_unit_test(only_one_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
