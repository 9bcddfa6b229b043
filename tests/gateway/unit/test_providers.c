/* What a model reads of a transcript, and what users read of an error: tables of texts. */
#include "loop.h"

#include "protocol/json_tree.h"
#include "providers/advice.h"
#include "providers/input.h"

#include <json-c/json.h>

#define START(id)           "{\"type\":\"run_started\",\"runId\":\"" id "\"}"
#define SAYS(id, text)      ",{\"type\":\"message\",\"runId\":\"" id "\",\"role\":\"user\",\"content\":\"" text "\"}"
#define ENDED(id)           ",{\"type\":\"run_ended\",\"runId\":\"" id "\",\"outcome\":\"final\"}"
#define ANSWER(id, members) ",{\"type\":\"message\",\"runId\":\"" id "\",\"role\":\"assistant\"," members "}"
#define STEP(id, provider, model, items)                                                                               \
    ",{\"type\":\"step\",\"runId\":\"" id "\",\"provider\":\"" provider "\",\"model\":\"" model "\",\"items\":[" items \
    "]}"
#define TOOL(id, call, theirs)                                                                                         \
    ",{\"type\":\"tool_call\",\"runId\":\"" id "\",\"callId\":\"" call "\",\"providerCallId\":\"" theirs               \
    "\",\"name\":\"bash\",\"input\":{}}"
#define RESULT(id, call, members) ",{\"type\":\"tool_result\",\"runId\":\"" id "\",\"callId\":\"" call "\"," members "}"

#define THOUGHT  "{\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"opaque\"}"
#define CALL(id) "{\"type\":\"function_call\",\"call_id\":\"" id "\",\"name\":\"bash\",\"arguments\":\"{}\"}"
#define MESSAGE(text)                                                                                                  \
    "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"" text "\"}]}"
#define OUTPUT(id, text) "{\"type\":\"function_call_output\",\"call_id\":\"" id "\",\"output\":\"" text "\"}"
#define USER(text)       "{\"role\":\"user\",\"content\":\"" text "\"}"
#define MODEL(text)      "{\"role\":\"assistant\",\"content\":\"" text "\"}"
#define PICTURE(blob, bytes)                                                                                           \
    "{\"type\":\"image\",\"mimeType\":\"image/png\",\"name\":\"shot.png\",\"bytes\":" bytes ",\"blobId\":\"" blob "\"" \
                                                                                                                  "}"
#define SHOWN                                                                                                          \
    "{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"The image of the tool's result above:\"},"    \
    "{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,QUJD\"}]}"

static const struct gw_model_ref openai = {GW_PROVIDER_OPENAI, "gpt"};

struct row {
    const char *name;
    const char *records;
    const char *items;
};

/* The open run is "r2", the model openai/gpt; each requested image has the data "QUJD", except "gone". */
static const struct row rows[] = {
    {"a first message", START("r2") SAYS("r2", "hi"), USER("hi")},
    {"an answer of the same model goes back as it came",
     START("r1") SAYS("r1", "a") STEP("r1", "openai", "gpt", THOUGHT "," MESSAGE("b")) ANSWER("r1", "\"content\":\"b\"")
         ENDED("r1") "," START("r2") SAYS("r2", "c"),
     USER("a") "," THOUGHT "," MESSAGE("b") "," USER("c")},
    {"of another model's, texts and calls remain",
     START("r1") SAYS("r1", "a") STEP("r1", "anthropic", "gpt", THOUGHT "," MESSAGE("b") "," CALL("x"))
         TOOL("r1", "c1", "x") RESULT("r1", "c1", "\"output\":\"ok\"") ENDED("r1") "," START("r2") SAYS("r2", "c"),
     USER("a") "," MODEL("b") "," CALL("x") "," OUTPUT("x", "ok") "," USER("c")},
    {"another name of the same provider is another model",
     START("r1") SAYS("r1", "a") STEP("r1", "openai", "old", THOUGHT "," MESSAGE("b")) ENDED("r1") "," START("r2")
         SAYS("r2", "c"),
     USER("a") "," MODEL("b") "," USER("c")},
    {"a refusal remains too",
     START("r1") SAYS("r1", "a")
         STEP("r1", "local", "m", "{\"type\":\"message\",\"content\":[{\"type\":\"refusal\",\"refusal\":\"no\"}]}")
             ENDED("r1") "," START("r2") SAYS("r2", "c"),
     USER("a") "," MODEL("no") "," USER("c")},
    {"results follow their calls in the order of these",
     START("r2") SAYS("r2", "a") STEP("r2", "openai", "gpt", THOUGHT "," CALL("x") "," CALL("y")) TOOL("r2", "c1", "x")
         TOOL("r2", "c2", "y") RESULT("r2", "c2", "\"output\":\"two\"") RESULT("r2", "c1", "\"output\":\"one\""),
     USER("a") "," THOUGHT "," CALL("x") "," CALL("y") "," OUTPUT("x", "one") "," OUTPUT("y", "two")},
    {"a call without a result is left out",
     START("r1") SAYS("r1", "a") STEP("r1", "openai", "gpt", CALL("x") "," CALL("y")) TOOL("r1", "c2", "y")
         RESULT("r1", "c2", "\"output\":\"two\"") ENDED("r1") "," START("r2") SAYS("r2", "c"),
     USER("a") "," CALL("y") "," OUTPUT("y", "two") "," USER("c")},
    {"what came before a failure is kept",
     START("r1") SAYS("r1", "a") ANSWER("r1", "\"content\":\"half\",\"partial\":\"half\"") ENDED("r1") "," START("r2")
         SAYS("r2", "c"),
     USER("a") "," MODEL("half") "," USER("c")},
    {"after a step only what is in none",
     START("r1") SAYS("r1", "a") STEP("r1", "openai", "gpt", MESSAGE("b"))
         ANSWER("r1", "\"content\":\"b half\",\"partial\":\" half\"") ENDED("r1") "," START("r2") SAYS("r2", "c"),
     USER("a") "," MESSAGE("b") "," MODEL(" half") "," USER("c")},
    {"a run without an answer is left out", START("r1") SAYS("r1", "a") ENDED("r1") "," START("r2") SAYS("r2", "c"),
     USER("c")},
    {"runs that wait are left out", START("r2") SAYS("r2", "c") "," START("r3") SAYS("r3", "d"), USER("c")},
    {"a run whose message is not there is left out",
     START("r1") STEP("r1", "openai", "gpt", MESSAGE("b")) ENDED("r1") "," START("r2") SAYS("r2", "c"), USER("c")},
    {"a command's exit code is reported, also where nothing was printed",
     START("r2") SAYS("r2", "a") STEP("r2", "openai", "gpt", CALL("x") "," CALL("y") "," CALL("z")) TOOL("r2", "c1", "x")
         TOOL("r2", "c2", "y") TOOL("r2", "c3", "z") RESULT("r2", "c1", "\"output\":\"before\\n\",\"exitCode\":37")
             RESULT("r2", "c2", "\"output\":\"\",\"exitCode\":0")
                 RESULT("r2", "c3", "\"output\":\"half\",\"exitCode\":137"),
     USER("a") "," CALL("x") "," CALL("y") "," CALL("z") "," OUTPUT("x", "before\\n[exit code 37]") "," OUTPUT(
         "y", "[exit code 0]") "," OUTPUT("z", "half\\n[exit code 137, as after signal 9]")},
    {"an image comes after all results of its step",
     START("r2") SAYS("r2", "a") STEP("r2", "openai", "gpt", CALL("x") "," CALL("y")) TOOL("r2", "c1", "x")
         TOOL("r2", "c2", "y") RESULT("r2", "c1", "\"output\":\"seen\",\"attachments\":[" PICTURE("b1", "3") "]")
             RESULT("r2", "c2", "\"output\":\"\""),
     USER("a") "," CALL("x") "," CALL("y") "," OUTPUT(
         "x", "seen\\n[image shot.png: image/png, 3 bytes, in the next message]") "," OUTPUT("y", "") "," SHOWN},
    {"an image that can't be read is mentioned",
     START("r2") SAYS("r2", "a") STEP("r2", "openai", "gpt", CALL("x")) TOOL("r2", "c1", "x")
         RESULT("r2", "c1", "\"output\":\"\",\"attachments\":[" PICTURE("gone", "3") "]"),
     USER("a") "," CALL("x") "," OUTPUT("x", "[image shot.png: image/png, 3 bytes, not shown here]")},
    {"of many images the newest are shown",
     START("r2") SAYS("r2", "a") STEP("r2", "openai", "gpt", CALL("x")) TOOL("r2", "c1", "x")
         RESULT("r2", "c1",
                "\"output\":\"\",\"attachments\":[" PICTURE("b0", "3") "," PICTURE("b1", "3") "," PICTURE(
                    "b2", "3") "," PICTURE("b3", "3") "," PICTURE("b4", "3") "]"),
     USER("a") "," CALL("x") "," OUTPUT(
         "x", "[image shot.png: image/png, 3 bytes, not shown here]"
              "\\n[image shot.png: image/png, 3 bytes, in the next message]"
              "\\n[image shot.png: image/png, 3 bytes, in the next message]"
              "\\n[image shot.png: image/png, 3 bytes, in the next message]"
              "\\n[image shot.png: image/png, 3 bytes, in the next message]") "," SHOWN "," SHOWN "," SHOWN "," SHOWN},
    {"what is too large, and what is no image, is mentioned",
     START("r2") SAYS("r2", "a") STEP("r2", "openai", "gpt", CALL("x")) TOOL("r2", "c1", "x") RESULT(
         "r2", "c1",
         "\"output\":\"o\",\"attachments\":[" PICTURE("b0", "9000000") ",{\"type\":\"file\",\"mimeType\":"
                                                                       "\"text/csv\",\"bytes\":7,\"blobId\":\"f\"}]"),
     USER("a") "," CALL("x") "," OUTPUT("x", "o\\n[image shot.png: image/png, 9000000 bytes, not shown here]"
                                             "\\n[file: text/csv, 7 bytes, not shown here]")},
};

static struct json_object *parse(const char *text, size_t len) {
    struct json_object *root = NULL;
    struct fm_buf scratch;
    fm_buf_init(&scratch, 1u << 20);
    assert_true(fm_json_tree(text, len, &scratch, &root));
    fm_buf_free(&scratch);
    return root;
}

/* Compares with an array of these items; `items` is the text between its brackets. */
static void assert_items(const struct fm_buf *got, const char *items, const char *name) {
    char wanted[16384];
    snprintf(wanted, sizeof wanted, "[%s]", items);
    struct json_object *left = parse(got->data, got->len);
    struct json_object *right = parse(wanted, strlen(wanted));
    if (!json_object_equal(left, right)) {
        fail_msg("%s:\n%.*s\n%s", name, (int)got->len, got->data, wanted);
    }
    json_object_put(left);
    json_object_put(right);
}

static void write_input(const char *records, const struct gw_model_ref *model, struct fm_buf *out) {
    char text[16384];
    struct gw_story story;
    struct gw_input_images images;
    snprintf(text, sizeof text, "[%s]", records);
    assert_true(gw_story_read(text, strlen(text), &story));
    gw_input_find_images(&story, "r2", &images);
    for (size_t i = 0; i < images.count; i++) {
        images.at[i].data = strcmp(images.at[i].blob_id, "gone") == 0 ? NULL : "QUJD";
        images.at[i].len = 4;
    }
    fm_buf_init(out, 1u << 20);
    struct fm_json_writer w = fm_json_writer_on(out);
    gw_input_write(&story, "r2", model, &images, &w);
    assert_false(out->failed);
    gw_story_free(&story);
}

static void test_input(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_buf out;
        write_input(rows[i].records, &openai, &out);
        assert_items(&out, rows[i].items, rows[i].name);
        fm_buf_free(&out);
    }
}

static bool without_images(const char *input, struct fm_buf *out) {
    fm_buf_init(out, 1u << 20);
    struct fm_json_writer w = fm_json_writer_on(out);
    return gw_input_write_without_images(input, strlen(input), &w);
}

static void test_without_images(void **state) {
    struct fm_buf out;
    (void)state;
    assert_true(without_images("[" USER("a") "," SHOWN "]", &out));
    assert_items(&out,
                 USER("a") ",{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"The image of the "
                           "tool's result above:\"},{\"type\":\"input_text\",\"text\":\"[an image, which this model "
                           "can't see]\"}]}",
                 "without");
    fm_buf_free(&out);
    assert_false(without_images("[" USER("a") "," USER("\\\"input_image\\\"") "]", &out));
    assert_int_equal(out.len, 0);
    fm_buf_free(&out);
}

/* ---- advice ---- */

static void test_advice(void **state) {
    static const struct {
        enum gw_provider provider;
        enum fm_code code;
        const char *reason_code;
        const char *detail;
        const char *wanted;
    } table[] = {
        {GW_PROVIDER_OPENAI, FM_UNAVAILABLE, "AUTH_FAILED", "no",
         "OpenAI: no. What to do: set OPENAI_API_KEY to a valid key in the gateway's environment, and start the "
         "gateway "
         "again"},
        {GW_PROVIDER_ANTHROPIC, FM_UNAVAILABLE, "QUOTA", "no",
         "Anthropic: no. What to do: look at the credit and the limits of the account that ANTHROPIC_API_KEY belongs "
         "to"},
        {GW_PROVIDER_LOCAL, FM_UNAVAILABLE, "", "nothing there; name one with --model",
         "The local model: nothing there; name one with --model. What to do: fm-gateway takes such options with "
         "--helper-arg before each word, as in --helper-arg --models-dir --helper-arg FOLDER"},
        {GW_PROVIDER_LOCAL, FM_UNAVAILABLE, "", "the helper died (signal 9)",
         "The local model: the helper died (signal 9)"},
        {GW_PROVIDER_LOCAL, FM_UNAVAILABLE, "AUTH_FAILED", "no", "The local model: no"},
        {GW_PROVIDER_OPENAI, FM_CONTEXT_OVERFLOW, "", "long",
         "OpenAI: long. What to do: begin a new conversation, or shorten the message"},
        {GW_PROVIDER_OPENAI, FM_INVALID_REQUEST, "", "bad", "OpenAI: bad"},
        {GW_PROVIDER_OPENAI, FM_CANCELLED, "", "stopped", "stopped"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct gw_model_ref model = {table[i].provider, "m"};
        struct fm_error error;
        (void)fm_fail(&error, table[i].code, "%s", table[i].detail);
        snprintf(error.reason_code, sizeof error.reason_code, "%s", table[i].reason_code);
        error.retry_ms = 7;
        gw_advise(&model, &error);
        assert_string_equal(error.detail, table[i].wanted);
        assert_int_equal(error.code, table[i].code);
        assert_string_equal(error.reason_code, table[i].reason_code);
        assert_int_equal(error.retry_ms, 7);
    }
}

/* A long reason is cut between characters, and the advice after it is still there. */
static void test_a_long_reason(void **state) {
    struct fm_error error;
    char detail[512] = "";
    (void)state;
    for (size_t i = 0; i < 200; i++) {
        memcpy(detail + 2 * i, "\xc3\xa4", 3);
    }
    (void)fm_fail(&error, FM_UNAVAILABLE, "x%s", detail);
    snprintf(error.reason_code, sizeof error.reason_code, "AUTH_FAILED");
    gw_advise(&openai, &error);
    assert_non_null(strstr(error.detail, "\xc3\xa4. What to do: "));
    assert_non_null(strstr(error.detail, "start the gateway again"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_input),
        cmocka_unit_test(test_without_images),
        cmocka_unit_test(test_advice),
        cmocka_unit_test(test_a_long_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
