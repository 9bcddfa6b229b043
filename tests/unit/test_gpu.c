/* An engine's report about its GPU: a report that was written is read back, and other texts are refused. */
#include "protocol/gpu.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bool read_text(const char *text, struct fm_gpu *gpu) {
    struct json_object *object = json_tokener_parse(text);
    bool read = fm_gpu_read(object, gpu);
    json_object_put(object);
    return read;
}

static void there_and_back(void **state) {
    static const struct {
        struct fm_gpu gpu;
        const char *text;
    } rows[] = {
        {{.device = "A \"GPU\"", .layers = 3, .total_layers = 31},
         "{\"device\":\"A \\\"GPU\\\"\",\"layers\":3,\"total_layers\":31,\"detail\":null}"},
        {{.total_layers = 31, .detail = "no driver"},
         "{\"device\":null,\"layers\":0,\"total_layers\":31,\"detail\":\"no driver\"}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_gpu gpu;
        struct fm_buf buf;
        fm_buf_init(&buf, 1000);
        struct fm_json_writer w = fm_json_writer_on(&buf);
        fm_gpu_write(&rows[i].gpu, &w);
        fm_buf_append_char(&buf, '\0');
        assert_string_equal(buf.data, rows[i].text);
        assert_true(read_text(rows[i].text, &gpu));
        assert_string_equal(gpu.device, rows[i].gpu.device);
        assert_string_equal(gpu.detail, rows[i].gpu.detail);
        assert_int_equal(gpu.layers, rows[i].gpu.layers);
        assert_int_equal(gpu.total_layers, rows[i].gpu.total_layers);
        fm_buf_free(&buf);
    }
}

static void what_is_none(void **state) {
    static const char *const texts[] = {
        "null",
        "[]",
        "{}",
        "{\"device\":\"x\",\"layers\":1,\"total_layers\":1}",
        "{\"device\":1,\"layers\":1,\"total_layers\":1,\"detail\":null}",
        "{\"layers\":1,\"total_layers\":1,\"detail\":null}",
        "{\"device\":\"x\",\"layers\":-1,\"total_layers\":1,\"detail\":null}",
        "{\"device\":\"x\",\"layers\":\"1\",\"total_layers\":1,\"detail\":null}",
        "{\"device\":\"x\",\"layers\":1,\"total_layers\":null,\"detail\":null}",
        "{\"device\":\"x\",\"layers\":1,\"total_layers\":1,\"detail\":[]}",
    };
    struct fm_gpu gpu;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_false(read_text(texts[i], &gpu));
    }
}

/* An engine's text may have any length; it is cut between characters. */
static void a_long_name(void **state) {
    struct fm_gpu gpu;
    char name[300] = "";
    char text[400];
    (void)state;
    for (size_t i = 0; i + 2 < sizeof name - 100; i += 2) {
        memcpy(name + i, "\xc3\xa4", 3);
    }
    snprintf(text, sizeof text, "{\"device\":\"x%s\",\"layers\":1,\"total_layers\":1,\"detail\":null}", name);
    assert_true(read_text(text, &gpu));
    assert_int_equal(strlen(gpu.device), sizeof gpu.device - 1);
    assert_memory_equal(gpu.device + sizeof gpu.device - 3, "\xc3\xa4", 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(what_is_none),
        cmocka_unit_test(a_long_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
