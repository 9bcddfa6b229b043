/* Files in messages: which are accepted, and what the model reads. */
#include "test_surface.h"

#define HELLO "data:text/plain;base64,aGVsbG8K"                     /* "hello\n" */
#define BOM   "data:text/csv;charset=utf-8;base64,77u/YSxiCjEsMg==" /* a mark, "a,b\n1,2" */

#define INPUT(part)                                                                                                    \
    "{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"sum\"}," part "]}]}"
#define FILE_OF(m) INPUT("{\"type\":\"input_file\"" m "}")
#define DATA(data) FILE_OF(",\"filename\":\"a.txt\",\"file_data\":\"" data "\"")
#define CHAT(part) "{\"messages\":[{\"role\":\"user\",\"content\":[" part "]}]}"
#define CHAT_OF(m) CHAT("{\"type\":\"file\"" m "}")
#define CALL                                                                                                           \
    "{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"f\",\"arguments\":\"{}\"},"                              \
    "{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":"

#define AT "input[0].content[1]"

static const struct body_row responses[] = {
    {DATA(HELLO), NULL, NULL},
    {DATA("aGVsbG8K"), NULL, NULL},
    {DATA("DATA:;BASE64,aGVsbG8K"), NULL, NULL},
    {DATA("data:application/octet-stream;base64,aGVsbG8K"), NULL, NULL},
    {DATA("data:text/plain;base64,"), NULL, NULL},
    {FILE_OF(",\"file_data\":\"" HELLO "\",\"detail\":\"high\",\"file_id\":null,\"file_url\":null"), NULL, NULL},
    {FILE_OF(",\"file_data\":\"" HELLO "\",\"detail\":\"original\""), "invalid_value", AT ".detail"},
    {FILE_OF(",\"file_data\":\"" HELLO "\",\"filename\":7"), "invalid_type", AT ".filename"},
    {FILE_OF(",\"file_data\":\"" HELLO "\",\"filename\":\"a\\u0000b\""), "invalid_value", AT ".filename"},
    {FILE_OF(",\"file_data\":\"" HELLO "\",\"text\":\"x\""), IGNORED, AT ".text"},
    {FILE_OF(""), "missing_required_parameter", AT ".file_data"},
    {FILE_OF(",\"file_data\":null"), "missing_required_parameter", AT ".file_data"},
    {FILE_OF(",\"file_data\":[]"), "invalid_type", AT ".file_data"},
    {FILE_OF(",\"file_id\":\"file_1\""), "unsupported_parameter", AT ".file_id"},
    {FILE_OF(",\"file_url\":\"https://example.com/a.txt\""), "unsupported_parameter", AT ".file_url"},
    {DATA(""), "invalid_value", AT ".file_data"},
    {DATA("data:"), "invalid_value", AT ".file_data"},
    {DATA("data:,hello"), "invalid_value", AT ".file_data"},
    {DATA("data:text/plain,hello"), "invalid_value", AT ".file_data"},
    {DATA("data:text/plain;base64"), "invalid_value", AT ".file_data"},
    {DATA("data:text/plain;base64,aGVsbG8"), "invalid_value", AT ".file_data"},
    {DATA("data:text/plain;base64,aGVs bG8K"), "invalid_value", AT ".file_data"},
    {DATA("data:text/plain;base64,aGVsbG8K\\u0000AAA"), "invalid_value", AT ".file_data"},
    {DATA("hello, this is no base64"), "invalid_value", AT ".file_data"},
    {DATA("data:application/pdf;base64,JVBERi0xLjcK"), "unsupported_value", AT ".file_data"},
    {DATA("JVBERi0xLjcK"), "unsupported_value", AT ".file_data"},
    {DATA("data:text/plain;base64,/v8AaA=="), "unsupported_value", AT ".file_data"}, /* UTF-16 */
    {DATA("data:text/plain;base64,bm/pbA=="), "unsupported_value", AT ".file_data"}, /* Latin-1 */
    {DATA("data:text/plain;base64,YQBi"), "unsupported_value", AT ".file_data"},     /* a NUL */
    {DATA("data:image/png;base64,iVBORw0KGgo="), "unsupported_value", AT ".file_data"},
    {"{\"input\":[" CALL "[{\"type\":\"input_file\",\"file_data\":\"" HELLO "\"}]}]}", NULL, NULL},
    {"{\"input\":[" CALL "[{\"type\":\"input_file\",\"file_id\":\"f\"}]}]}", "unsupported_parameter",
     "input[1].output[0].file_id"},
};

static const struct body_row chat[] = {
    {CHAT_OF(",\"file\":{\"filename\":\"a.txt\",\"file_data\":\"" HELLO "\"}"), NULL, NULL},
    {CHAT_OF(",\"file\":{\"file_data\":\"aGVsbG8K\"}"), NULL, NULL},
    {CHAT_OF(""), "missing_required_parameter", "messages[0].content[0].file"},
    {CHAT_OF(",\"file\":\"" HELLO "\""), "invalid_type", "messages[0].content[0].file"},
    {CHAT_OF(",\"file\":{}"), "missing_required_parameter", "messages[0].content[0].file.file_data"},
    {CHAT_OF(",\"file\":{\"file_id\":\"file_1\"}"), "unsupported_parameter", "messages[0].content[0].file.file_id"},
    {CHAT_OF(",\"file\":{\"file_url\":\"http://x\"}"), "unsupported_parameter", "messages[0].content[0].file.file_url"},
    {CHAT_OF(",\"file\":{\"file_data\":\"%\"}"), "invalid_value", "messages[0].content[0].file.file_data"},
    {CHAT_OF(",\"file\":{\"file_data\":\"JVBERi0xLjcK\"}"), "unsupported_value",
     "messages[0].content[0].file.file_data"},
};

static void rows_are_taken_or_refused(void **state) {
    (void)state;
    check_bodies(&fm_surface_responses, responses, sizeof responses / sizeof responses[0]);
    check_bodies(&fm_surface_input_tokens, responses, sizeof responses / sizeof responses[0]);
    check_bodies(&fm_surface_chat, chat, sizeof chat / sizeof chat[0]);
}

#define USER(content) "\"messages\":[{\"role\":\"user\",\"content\":" content "}]"

static void the_model_reads_a_named_part(void **state) {
    (void)state;
    check_job(&fm_surface_responses, DATA(HELLO), USER("\"sum\\n<file name=\\\"a.txt\\\">\\nhello\\n</file>\\n\""));
    check_job(&fm_surface_responses, FILE_OF(",\"file_data\":\"aGVsbG8K\""),
              USER("\"sum\\n<file>\\nhello\\n</file>\\n\""));
    check_job(&fm_surface_responses, FILE_OF(",\"filename\":\"\",\"file_data\":\"data:;base64,\""),
              USER("\"sum\\n<file>\\n</file>\\n\""));
    /* without its mark, and with the end of its last line */
    check_job(&fm_surface_responses, DATA(BOM), USER("\"sum\\n<file name=\\\"a.txt\\\">\\na,b\\n1,2\\n</file>\\n\""));
    check_job(&fm_surface_chat,
              CHAT("{\"type\":\"file\",\"file\":{\"filename\":\"a\\\">\\nb\",\"file_data\":\"aGVsbG8K\"}},"
                   "{\"type\":\"text\",\"text\":\"sum\"}"),
              USER("\"<file name=\\\"a\\\\\\\">\\\\nb\\\">\\nhello\\n</file>\\nsum\""));
    check_job(
        &fm_surface_responses, "{\"input\":[" CALL "[{\"type\":\"input_file\",\"file_data\":\"aGVsbG8K\"}]}]}",
        "\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"name\":\"f\",\"arguments\":\"{}\"}]},"
        "{\"role\":\"tool\",\"content\":\"<file>\\nhello\\n</file>\\n\",\"tool_call_id\":\"1\"}]");
}

/* Beside an image, what is between the images is one text. */
static void a_file_beside_an_image(void **state) {
    (void)state;
    check_job(&fm_surface_responses,
              INPUT("{\"type\":\"input_file\",\"file_data\":\"aGVsbG8K\"},"
                    "{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,iVBORw0KGgo=\"}"),
              USER("[{\"type\":\"text\",\"text\":\"sum\\n<file>\\nhello\\n</file>\\n\"},"
                   "{\"type\":\"image\",\"data\":\"iVBORw0KGgo=\"}]"));
    check_job(&fm_surface_responses,
              INPUT("{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,iVBORw0KGgo=\"},"
                    "{\"type\":\"input_file\",\"file_data\":\"aGVsbG8K\"},{\"type\":\"input_text\",\"text\":\"it\"}"),
              USER("[{\"type\":\"text\",\"text\":\"sum\"},{\"type\":\"image\",\"data\":\"iVBORw0KGgo=\"},"
                   "{\"type\":\"text\",\"text\":\"<file>\\nhello\\n</file>\\nit\"}]"));
}

/* A byte in base64 may become six as JSON. What an engine would not take is refused here. */
static void test_what_grows(void **state) {
    (void)state;
    static const char open[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"file\",\"file\":{\"file_data\":\"";
    for (size_t over = 0; over <= 1; over++) {
        struct fm_buf body;
        fm_buf_init(&body, 16u << 20);
        fm_buf_append_str(&body, open);
        for (size_t i = 0; i < (over ? 1000000 : 900000); i++) {
            fm_buf_append(&body, "AQEB", 4); /* three bytes of the value 1 */
        }
        fm_buf_append(&body, "\"}}]}]}", 8);
        struct json_object *params = json_of(body.data, body.len - 1);
        struct fm_request request;
        struct fm_error error = {.code = FM_OK};
        enum fm_code code = fm_surface_chat.parse(params, &request, &error);
        assert_int_equal(code, over ? FM_CONTEXT_OVERFLOW : FM_OK);
        if (code == FM_OK) {
            fm_request_free(&request);
        }
        json_object_put(params);
        fm_buf_free(&body);
    }
}

/* The stored input has the part unchanged. */
static void files_are_kept(void **state) {
    (void)state;
    check_kept_part(DATA(HELLO), "{\"type\":\"input_file\",\"filename\":\"a.txt\",\"file_data\":\"" HELLO "\"}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_taken_or_refused), cmocka_unit_test(the_model_reads_a_named_part),
        cmocka_unit_test(a_file_beside_an_image),    cmocka_unit_test(files_are_kept),
        cmocka_unit_test(test_what_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
