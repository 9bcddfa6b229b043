/* The decisions API: what the engine gets, and how its likelihoods appear in the reply. js/decisions has the bad bodies. */
#include "test_surface.h"

#define ANSWER_ALONE "Answer with the choice alone, as it is written here."

static void the_job(void **state) {
    static const char choices[] =
        "{\"input\":\"x\",\"questions\":[{\"type\":\"choice\",\"instructions\":\"Which?\",\"choices\":["
        "{\"value\":\"true\"},{\"value\":\"b\",\"description\":\"second\"},{\"value\":true},{\"value\":\"a\"}]}]}";
    static const char parts[] =
        "{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"x\"},"
        "{\"type\":\"input_json\",\"data\":{\"a\":\"/\"}},{\"type\":\"input_json\",\"data\":[{}]}]}],"
        "\"questions\":[{\"type\":\"predicate\",\"instructions\":[{\"type\":\"input_text\",\"text\":\"Is \"},"
        "{\"type\":\"input_text\",\"text\":\"it?\"}]},"
        "{\"type\":\"score\",\"instructions\":\"How?\",\"levels\":[{\"label\":\"z\"},{\"label\":\"a\",\"description\":\"d\"}]}]}";
    (void)state;
    check_job(&fm_surface_decisions, choices,
              "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"questions\":[{\"text\":\"Which?\\n\\nThese are the "
              "choices:\\n- a\\n- b: second\\n- true\\n- \\\"true\\\"\\n\\n" ANSWER_ALONE "\","
              "\"choices\":[\"a\",\"b\",\"true\",\"\\\"true\\\"\"]}],\"reasoning\":{\"effort\":\"none\"}");
    check_job(&fm_surface_decisions, parts,
              "\"messages\":[{\"role\":\"user\",\"content\":\"x\\n\\n{\\\"a\\\":\\\"/\\\"}\\n\\n[{}]\"}],"
              "\"questions\":[{\"text\":\"Is it?\\n\\nAnswer with one word, Yes or No.\",\"choices\":[\"Yes\",\"No\"]},"
              "{\"text\":\"How?\\n\\nThese are the levels, from the first to the last:\\n- z\\n- a: d\\n\\nAnswer with the "
              "level alone, as it is written here.\",\"choices\":[\"z\",\"a\"]}],\"reasoning\":{\"effort\":\"none\"}");
}

static void begin(struct fm_answer *answer, const char *body) {
    struct fm_request request = request_of(&fm_surface_decisions, body);
    struct fm_error error;
    assert_int_equal(fm_answer_init(answer, &fm_surface_decisions, &request, "tiny", &error), FM_OK);
    fm_answer_open(answer, 5);
}

static enum fm_code decide(struct fm_answer *answer, const char *logprobs) {
    struct json_object *list = logprobs ? json_of(logprobs, strlen(logprobs)) : NULL;
    struct fm_error error;
    enum fm_code code = fm_answer_decide(answer, list, &error);
    json_object_put(list);
    return code;
}

static void the_object(void **state) {
    static const char body[] =
        "{\"input\":\"x\",\"questions\":[{\"type\":\"predicate\",\"name\":\"p\",\"instructions\":\"?\"},"
        "{\"type\":\"choice\",\"instructions\":\"?\",\"choices\":[{\"value\":\"b\"},{\"value\":true},{\"value\":\"a\"}]},"
        "{\"type\":\"score\",\"instructions\":\"?\",\"levels\":[{\"label\":\"z\"},{\"label\":\"a\"},{\"label\":\"m\"}]}]}";
    struct fm_answer answer;
    (void)state;
    begin(&answer, body);
    assert_int_equal(decide(&answer, "[-1,-1]"), FM_OK);
    assert_int_equal(decide(&answer, "[-9999,0,-9999]"), FM_OK); /* in the order a, b, true */
    assert_int_equal(decide(&answer, "[-5000,-5000,-9999]"), FM_OK);
    assert_int_equal(decide(&answer, "[-1,-1]"), FM_INTERNAL); /* there are three questions */
    fm_answer_finish(&answer, FM_FINISH_STOP, NULL);
    struct json_object *object = object_now(&answer);
    assert_json(object, "answers.0", "{\"type\":\"predicate\",\"name\":\"p\",\"probability\":0.5}");
    assert_json(object, "answers.1",
                "{\"type\":\"choice\",\"name\":null,\"choice\":\"b\",\"confidence\":1,\"probabilities\":["
                "{\"value\":\"b\",\"probability\":1},{\"value\":true,\"probability\":0},{\"value\":\"a\",\"probability\":0}]}");
    assert_json(object, "answers.2",
                "{\"type\":\"score\",\"name\":null,\"score\":0.5,\"confidence\":0.5,\"probabilities\":["
                "{\"label\":\"z\",\"value\":0,\"probability\":0.5},{\"label\":\"a\",\"value\":1,\"probability\":0.5},"
                "{\"label\":\"m\",\"value\":2,\"probability\":0}]}");
    json_object_put(object);
    fm_answer_free(&answer);
}

static void no_likelihoods(void **state) {
    static const char *const lists[] = {NULL, "{}", "[]", "[-1]", "[-1,-1,-1]", "[-1,0.1]", "[-1,\"0\"]", "[-1,null]"};
    struct fm_answer answer;
    (void)state;
    begin(&answer, "{\"input\":\"x\",\"questions\":[{\"type\":\"predicate\",\"instructions\":\"?\"}]}");
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        assert_int_equal(decide(&answer, lists[i]), FM_INTERNAL);
    }
    assert_int_equal(answer.output.len, 0);
    fm_answer_free(&answer);
}

static void more_than_a_reply_has_room_for(void **state) {
    struct fm_buf body;
    (void)state;
    fm_buf_init(&body, 64u << 20);
    fm_buf_append_str(&body, "{\"input\":\"x\",\"questions\":[");
    for (int i = 0; i < 40; i++) {
        fm_buf_append_str(&body, i ? ",{" : "{");
        fm_buf_append_str(&body, "\"type\":\"choice\",\"instructions\":\"?\",\"choices\":[");
        for (int k = 0; k < 255; k++) {
            char value[600];
            snprintf(value, sizeof value, "%s{\"value\":\"%0500d\"}", k ? "," : "", k);
            fm_buf_append_str(&body, value);
        }
        fm_buf_append_str(&body, "]}");
    }
    fm_buf_append(&body, "]}", 3);
    check_body(&fm_surface_decisions, body.data, "invalid_value", "questions");
    fm_buf_free(&body);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_job),
        cmocka_unit_test(the_object),
        cmocka_unit_test(no_likelihoods),
        cmocka_unit_test(more_than_a_reply_has_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
