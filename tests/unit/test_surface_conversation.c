/* The conversation that a request continues: the order of turns, references to items, and its maximum length. */
#include "surface/conversation.h"
#include "wire.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (64u << 20)

#define MESSAGE(role, type, text)                                                                                      \
    "{\"type\":\"message\",\"id\":\"m_" text "\",\"role\":\"" role "\",\"content\":[{\"type\":\"" type                 \
    "\",\"text\":\"" text "\"}]}"
#define USER(text)      MESSAGE("user", "input_text", text)
#define ASSISTANT(text) MESSAGE("assistant", "output_text", text)

/* A store with these responses; each input gets `more` bytes of text. */
static const struct {
    const char *id;
    const char *previous;
    const char *output;
    const char *input;
} stored[] = {
    {"resp_1", "", "[" ASSISTANT("b") "]", "[" USER("a") "]"},
    {"resp_2", "resp_1", "[" ASSISTANT("d") "]", "[" USER("c") "]"},
    {"resp_call", "",
     "[{\"type\":\"function_call\",\"id\":\"fc\",\"call_id\":\"k\",\"name\":\"f\",\"arguments\":\"{}\"}]",
     "[" USER("a") "]"},
    {"resp_self", "resp_self", "[" ASSISTANT("b") "]", "[" USER("a") "]"},
};

static void set(struct fm_buf *buf, const char *text) {
    fm_buf_init(buf, TEXT_MAX);
    fm_buf_append_str(buf, text);
}

static enum fm_code get(void *context, const char *id, struct fm_stored_response *response, struct fm_error *error) {
    (void)context;
    for (size_t i = 0; i < COUNT(stored); i++) {
        if (strcmp(id, stored[i].id) == 0) {
            *response = (struct fm_stored_response){0};
            snprintf(response->previous_id, sizeof response->previous_id, "%s", stored[i].previous);
            set(&response->object, "{\"output\":");
            fm_buf_append_str(&response->object, stored[i].output);
            fm_buf_append_str(&response->object, "}");
            set(&response->input, stored[i].input);
            return FM_OK;
        }
    }
    return fm_fail(error, FM_NOT_FOUND, "no %s", id);
}

static enum fm_code find_item(void *context, const char *item_id, char id[FM_ID_SIZE], struct fm_error *error) {
    (void)context;
    for (size_t i = 0; i < COUNT(stored); i++) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "\"id\":\"%s\"", item_id);
        if (strstr(stored[i].output, quoted) || strstr(stored[i].input, quoted)) {
            snprintf(id, FM_ID_SIZE, "%s", stored[i].id);
            return FM_OK;
        }
    }
    return fm_fail(error, FM_NOT_FOUND, "no %s", item_id);
}

static enum fm_code resolve(const char *previous, const char *input, struct fm_buf *messages, struct fm_buf *kept,
                            struct fm_error *error) {
    const struct fm_conversation_source source = {.get = get, .find_item = find_item};
    struct fm_conversation conversation = {.previous_id = previous ? strdup(previous) : NULL};
    set(&conversation.first, "{\"role\":\"system\",\"content\":\"s\"}");
    set(&conversation.input, input);
    fm_buf_init(messages, TEXT_MAX);
    enum fm_code code = fm_conversation_resolve(&conversation, &source, messages, error);
    fm_buf_init(kept, TEXT_MAX);
    fm_buf_append(kept, conversation.input.data, conversation.input.len);
    fm_conversation_free(&conversation);
    return code;
}

static void gives(const char *previous, const char *input, const char *messages, const char *kept) {
    struct fm_buf got;
    struct fm_buf got_kept;
    struct fm_error error;
    if (resolve(previous, input, &got, &got_kept, &error) != FM_OK) {
        fail_msg("%s", error.detail);
    }
    char expected[1024];
    int len = snprintf(expected, sizeof expected, "{\"role\":\"system\",\"content\":\"s\"}%s", messages);
    assert_int_equal(got.len, len);
    assert_memory_equal(got.data, expected, got.len);
    assert_int_equal(got_kept.len, strlen(kept));
    assert_memory_equal(got_kept.data, kept, got_kept.len);
    fm_buf_free(&got);
    fm_buf_free(&got_kept);
}

static void fails(const char *previous, const char *input, enum fm_code code, const char *param,
                  const char *reason) {
    struct fm_buf messages;
    struct fm_buf kept;
    struct fm_error error = {.param = ""};
    assert_int_equal(resolve(previous, input, &messages, &kept, &error), code);
    assert_string_equal(error.param, param);
    if (reason) {
        assert_string_equal(error.reason, reason);
    }
    fm_buf_free(&messages);
    fm_buf_free(&kept);
}

#define TURN(role, text) ",{\"role\":\"" role "\",\"content\":\"" text "\"}"

static void test_order(void **state) {
    (void)state;
    gives(NULL, "[" USER("e") "]", TURN("user", "e"), "[" USER("e") "]");
    gives("resp_1", "[" USER("e") "]", TURN("user", "a") TURN("assistant", "b") TURN("user", "e"), "[" USER("e") "]");
    gives("resp_2", "[]", TURN("user", "a") TURN("assistant", "b") TURN("user", "c") TURN("assistant", "d"), "[]");
}

static void test_references(void **state) {
    (void)state;
    gives(NULL, "[{\"type\":\"item_reference\",\"id\":\"m_c\"}," USER("e") "]", TURN("user", "c") TURN("user", "e"),
          "[" USER("c") "," USER("e") "]");
    gives("resp_1", "[{\"type\":\"item_reference\",\"id\":\"m_b\"}]",
          TURN("user", "a") TURN("assistant", "b") TURN("assistant", "b"), "[" ASSISTANT("b") "]");
    fails(NULL, "[{\"type\":\"item_reference\",\"id\":\"m_x\"}]", FM_INVALID_REQUEST, "input", "");
}

static void test_refused(void **state) {
    (void)state;
    fails("resp_x", "[]", FM_INVALID_REQUEST, "previous_response_id", "previous_response_not_found");
    fails("resp_longer_than_any_id_that_was_ever_drawn_by_this_program", "[]", FM_INVALID_REQUEST,
          "previous_response_id", "previous_response_not_found");
    fails(NULL, "[]", FM_INVALID_REQUEST, "input", "invalid_value"); /* no text */
    fails("resp_1", "[{\"type\":\"function_call_output\",\"call_id\":\"k\",\"output\":\"x\"}]", FM_INVALID_REQUEST,
          "input", "");
    fails("resp_self", "[]", FM_CONTEXT_OVERFLOW, "", NULL); /* a damaged store: the search still ends */
}

static void test_output_of_an_earlier_call(void **state) {
    (void)state;
    static const char output[] =
        "[{\"type\":\"function_call_output\",\"id\":\"o\",\"call_id\":\"k\",\"output\":\"x\"}]";
    gives("resp_call", output,
          TURN("user",
               "a") ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"k\",\"name\":\"f\",\"arguments\":\"{}\"}]}"
                    ",{\"role\":\"tool\",\"content\":\"x\",\"tool_call_id\":\"k\"}",
          output);
}

/* `count` messages of `len` bytes each. */
static char *many(size_t count, size_t len) {
    static const char before[] = "{\"type\":\"message\",\"role\":\"user\",\"content\":\"";
    struct fm_buf text;
    fm_buf_init(&text, 2 * TEXT_MAX);
    fm_buf_append_char(&text, '[');
    for (size_t i = 0; i < count; i++) {
        fm_buf_append_str(&text, i ? "," : "");
        fm_buf_append_str(&text, before);
        for (size_t k = 0; k < len; k++) {
            fm_buf_append_char(&text, 'x');
        }
        fm_buf_append_str(&text, "\"}");
    }
    fm_buf_append(&text, "]", 2);
    assert_false(text.failed);
    return text.data;
}

static void test_limits(void **state) {
    (void)state;
    char *items = many(16385, 1);
    fails(NULL, items, FM_CONTEXT_OVERFLOW, "", NULL);
    free(items);
    items = many(2, 9u << 20);
    fails(NULL, items, FM_CONTEXT_OVERFLOW, "", NULL);
    free(items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),   cmocka_unit_test(test_references),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_output_of_an_earlier_call),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
