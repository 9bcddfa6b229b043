/* Images in messages: which are accepted, what the engine gets, and which field an error names. */
#include "test_surface.h"

#include "surface/conversation.h"

#define URL "data:image/png;base64,iVBORw0KGgo="

/* A body of the Responses API with a part after a text, and the same for chat. */
#define INPUT(part)                                                                                                    \
    "{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"what?\"}," part "]}]}"
#define IMAGE(more)   INPUT("{\"type\":\"input_image\"" more "}")
#define FROM(url)     IMAGE(",\"image_url\":\"" url "\"")
#define CHAT(part)    "{\"messages\":[{\"role\":\"user\",\"content\":[" part "]}]}"
#define CHAT_IMAGE(m) CHAT("{\"type\":\"image_url\"" m "}")
#define CHAT_FROM(u)  CHAT_IMAGE(",\"image_url\":{\"url\":\"" u "\"}")

#define AT "input[0].content[1]"

static const struct body_row responses[] = {
    {FROM(URL), NULL, NULL},
    {FROM("DATA:Image/PNG;Base64,iVBORw0KGgo="), NULL, NULL},
    {FROM("data:image/jpeg;base64,AAAA"), NULL, NULL},
    {FROM("data:image/jpg;base64,AAA="), NULL, NULL},
    {FROM("data:image/gif;base64,AA=="), NULL, NULL},
    {FROM("data:image/bmp;base64,AAAA"), NULL, NULL},
    {IMAGE(",\"image_url\":\"" URL "\",\"detail\":\"auto\",\"file_id\":null"), NULL, NULL},
    {IMAGE(",\"image_url\":\"" URL "\",\"detail\":\"original\""), NULL, NULL},
    {IMAGE(",\"image_url\":\"" URL "\",\"detail\":null"), NULL, NULL},
    {IMAGE(",\"image_url\":\"" URL "\",\"detail\":\"fine\""), "invalid_value", AT ".detail"},
    {IMAGE(",\"image_url\":\"" URL "\",\"detail\":1"), "invalid_type", AT ".detail"},
    {IMAGE(",\"image_url\":\"" URL "\",\"text\":\"x\""), IGNORED, AT ".text"},
    {IMAGE(""), "missing_required_parameter", AT ".image_url"},
    {IMAGE(",\"image_url\":null"), "missing_required_parameter", AT ".image_url"},
    {IMAGE(",\"image_url\":{\"url\":\"" URL "\"}"), "invalid_type", AT ".image_url"},
    {IMAGE(",\"file_id\":\"file_1\""), "unsupported_parameter", AT ".file_id"},
    {FROM("http://example.com/a.png"), "unsupported_value", AT ".image_url"},
    {FROM("HTTPS://example.com/a.png"), "unsupported_value", AT ".image_url"},
    {FROM("file:///a.png"), "invalid_value", AT ".image_url"},
    {FROM(""), "invalid_value", AT ".image_url"},
    {FROM("data:"), "invalid_value", AT ".image_url"},
    {FROM("data:image/png"), "invalid_value", AT ".image_url"},
    {FROM("data:image/png,"), "invalid_value", AT ".image_url"},
    {FROM("data:image/png;base64"), "invalid_value", AT ".image_url"},
    {FROM("data:image/png;base64,"), "invalid_value", AT ".image_url"},
    {FROM("data:image/png,iVBORw0KGgo="), "invalid_value", AT ".image_url"},
    {FROM("data:image/png;charset=utf-8;base64,AAAA"), "invalid_value", AT ".image_url"},
    {FROM("data:image/pngs;base64,AAAA"), "invalid_value", AT ".image_url"},
    {FROM("data:image/webp;base64,AAAA"), "invalid_value", AT ".image_url"},
    {FROM("data:image/svg+xml;base64,AAAA"), "invalid_value", AT ".image_url"},
    {FROM("data:text/plain;base64,AAAA"), "invalid_value", AT ".image_url"},
    {FROM("data:;base64,AAAA"), "invalid_value", AT ".image_url"},
    {FROM("data:image/png;base64,AAA"), "invalid_value", AT ".image_url"},
    {FROM("data:image/png;base64,AA=A"), "invalid_value", AT ".image_url"},
    {FROM("data:image/png;base64,AAAA AAAA"), "invalid_value", AT ".image_url"},
    {FROM("data:image/png;base64,AAAA\\nAAA="), "invalid_value", AT ".image_url"},
    {FROM("data:image/png;base64,AA-_"), "invalid_value", AT ".image_url"},
    {FROM("data:image/png;base64,AB=="), "invalid_value", AT ".image_url"},
    {FROM("data:image/png;base64,AAAA\\u0000AAA"), "invalid_value", AT ".image_url"},
    {FROM("data:image/png\\u0000;base64,AAAA"), "invalid_value", AT ".image_url"},
    /* an image without a text can be answered */
    {"{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_image\",\"image_url\":\"" URL "\"}]}]}", NULL,
     NULL},
    /* only a user may send images */
    {"{\"input\":[{\"role\":\"assistant\",\"content\":[{\"type\":\"input_image\",\"image_url\":\"" URL "\"}]}]}",
     "unsupported_parameter", "input[0].content[0].type"},
    {"{\"input\":[{\"role\":\"system\",\"content\":[{\"type\":\"input_text\",\"text\":\"a\"},"
     "{\"type\":\"input_image\",\"image_url\":\"" URL "\"}]}]}",
     "unsupported_parameter", AT ".type"},
    {"{\"input\":[{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"f\",\"arguments\":\"{}\"},"
     "{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":[{\"type\":\"input_image\",\"image_url\":\"" URL
     "\"}]}]}",
     "unsupported_parameter", "input[1].output[0].type"},
};

static const struct body_row chat[] = {
    {CHAT_FROM(URL), NULL, NULL},
    {CHAT_IMAGE(",\"image_url\":{\"url\":\"" URL "\",\"detail\":\"low\"}"), NULL, NULL},
    {CHAT_FROM("https://example.com/a.png"), "unsupported_value", "messages[0].content[0].image_url.url"},
    {CHAT_FROM("data:image/png;base64,A"), "invalid_value", "messages[0].content[0].image_url.url"},
    {CHAT_IMAGE(""), "missing_required_parameter", "messages[0].content[0].image_url"},
    {CHAT_IMAGE(",\"image_url\":\"" URL "\""), "invalid_type", "messages[0].content[0].image_url"},
    {CHAT_IMAGE(",\"image_url\":{}"), "missing_required_parameter", "messages[0].content[0].image_url.url"},
    {CHAT_IMAGE(",\"image_url\":{\"url\":\"" URL "\",\"size\":1}"), IGNORED, "messages[0].content[0].image_url.size"},
    {"{\"messages\":[{\"role\":\"assistant\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"" URL
     "\"}}]}]}",
     "unsupported_parameter", "messages[0].content[0].type"},
    {"{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\",\"function\":{"
     "\"name\":\"f\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":[{\"type\":"
     "\"image_url\",\"image_url\":{\"url\":\"" URL "\"}}]}]}",
     "unsupported_parameter", "messages[1].content[0].type"},
};

static void rows_are_taken_or_refused(void **state) {
    (void)state;
    check_bodies(&fm_surface_responses, responses, sizeof responses / sizeof responses[0]);
    check_bodies(&fm_surface_input_tokens, responses, sizeof responses / sizeof responses[0]);
    check_bodies(&fm_surface_chat, chat, sizeof chat / sizeof chat[0]);
}

static void what_the_engine_gets(void **state) {
    (void)state;
#define JOB(detail)                                                                                                    \
    "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"what?\"},"                            \
    "{\"type\":\"image\",\"data\":\"iVBORw0KGgo=\"" detail "}]}]"
    check_job(&fm_surface_responses, FROM(URL), JOB(""));
    check_job(&fm_surface_chat,
              CHAT("{\"type\":\"text\",\"text\":\"what?\"},{\"type\":\"image_url\",\"image_url\":{\"url\":\"" URL
                   "\",\"detail\":\"high\"}}"),
              JOB(",\"detail\":\"high\""));
    check_job(&fm_surface_responses, INPUT("{\"type\":\"input_image\",\"image_url\":\"" URL "\",\"detail\":\"low\"}"),
              JOB(",\"detail\":\"low\""));
    /* a list without images becomes one text, as before */
    check_job(&fm_surface_responses, INPUT("{\"type\":\"input_text\",\"text\":\" Why?\"}"),
              "\"messages\":[{\"role\":\"user\",\"content\":\"what? Why?\"}]");
}

/* Two images, the second one after a message without an image. */
#define TWO                                                                                                            \
    "{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"a\"},"                            \
    "{\"type\":\"input_image\",\"image_url\":\"" URL "\"}]},{\"role\":\"user\",\"content\":\"b\"},"                    \
    "{\"role\":\"user\",\"content\":[{\"type\":\"input_image\",\"image_url\":\"" URL "\"}]}]"

static void check_renamed(const struct fm_surface *surface, const char *body, const char *param, const char *expected,
                          const char *code) {
    struct fm_request request = request_of(surface, body);
    struct fm_error error = {.code = FM_INVALID_REQUEST};
    snprintf(error.param, sizeof error.param, "%s", param);
    fm_request_rename_param(&request, &error);
    assert_string_equal(error.param, expected);
    if (code) {
        assert_string_equal(error.reason, code);
    } else {
        assert_null(error.reason);
    }
    fm_request_free(&request);
}

static void errors_find_what_was_handed_on(void **state) {
    (void)state;
    check_renamed(&fm_surface_responses, FROM(URL), "verbosity", "text.verbosity", NULL);
    check_renamed(&fm_surface_responses, FROM(URL), "reasoning_summary", "reasoning.summary", NULL);
    check_renamed(&fm_surface_chat, CHAT_FROM(URL), "verbosity", "verbosity", NULL);
}

static void errors_find_their_image(void **state) {
    (void)state;
    check_renamed(&fm_surface_responses, TWO "}", "images[0]", "input[0].content[1].image_url", "invalid_image");
    check_renamed(&fm_surface_responses, TWO "}", "images[1]", "input[2].content[0].image_url", "invalid_image");
    check_renamed(&fm_surface_responses, TWO "}", "images[2]", "input", "invalid_image");
    check_renamed(&fm_surface_responses, TWO "}", "images[x]", "images[x]", NULL);
    check_renamed(&fm_surface_responses, TWO "}", "images[1].data", "images[1].data", NULL);
    check_renamed(&fm_surface_responses, TWO ",\"previous_response_id\":\"resp_1\"}", "images[1]", "input",
                  "invalid_image");
    check_renamed(&fm_surface_chat, CHAT_FROM(URL), "images[0]", "messages[0].content[0].image_url", "invalid_image");
}

static void the_first_one_has_a_path(void **state) {
    (void)state;
    struct fm_request request = request_of(&fm_surface_responses, TWO "}");
    struct fm_error error;
    assert_true(fm_request_image_param(&request, 0, ".type", &error));
    assert_string_equal(error.param, "input[0].content[1].type");
    fm_request_free(&request);
    request = request_of(&fm_surface_responses, "{\"input\":\"x\"}");
    assert_false(fm_request_image_param(&request, 0, ".type", &error));
    fm_request_free(&request);
}

/* The stored input has the parts unchanged. */
static void images_are_kept(void **state) {
    (void)state;
    check_kept_part(FROM(URL), "{\"type\":\"input_image\",\"image_url\":\"" URL "\"}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_taken_or_refused), cmocka_unit_test(what_the_engine_gets),
        cmocka_unit_test(errors_find_their_image),   cmocka_unit_test(the_first_one_has_a_path),
        cmocka_unit_test(images_are_kept),           cmocka_unit_test(errors_find_what_was_handed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
