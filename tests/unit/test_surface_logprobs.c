/*
 * Log probabilities, from the engine's list to the host's entries: which are refused, and with which piece they come.
 */
#include "test_surface.h"

#define OUTPUT     "{\"input\":\"hi\",\"stream\":true,\"include\":[\"message.output_text.logprobs\"]}"
#define CHAT       "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true,\"logprobs\":true}"
#define ENTRY(in)  "[{\"bytes\":[104,105]," in "}]"
#define TOP(entry) ENTRY("\"logprob\":-1,\"top\":[" entry "]")

static struct fm_answer answer_of(const struct fm_surface *surface, const char *body) {
    struct fm_request request = request_of(surface, body);
    struct fm_answer answer;
    struct fm_error error;
    assert_int_equal(fm_answer_init(&answer, surface, &request, "tiny", &error), FM_OK);
    fm_answer_open(&answer, 3);
    return answer;
}

static enum fm_code say(struct fm_answer *answer, const char *text, size_t len, const char *list) {
    struct json_object *value = list ? json_of(list, strlen(list)) : NULL;
    struct fm_error error;
    assert_true(fm_answer_append(answer, text, len));
    enum fm_code code = fm_answer_logprobs(answer, value, &error);
    json_object_put(value);
    return code;
}

static void lists_are_taken_or_refused(void **state) {
    (void)state;
    static const struct {
        const char *list; /* NULL: none */
        bool taken;
    } rows[] = {
        {ENTRY("\"logprob\":-1.5,\"top\":[]"), true},
        {ENTRY("\"logprob\":0,\"top\":[]"), true},
        {TOP("{\"bytes\":[],\"logprob\":-9999}"), true},
        {"[]", true},
        {NULL, false},
        {"{}", false},
        {"[7]", false},
        {"[null]", false},
        {ENTRY("\"logprob\":-1"), false},
        {ENTRY("\"top\":[]"), false},
        {ENTRY("\"logprob\":\"-1\",\"top\":[]"), false},
        {ENTRY("\"logprob\":0.5,\"top\":[]"), false},
        {ENTRY("\"logprob\":null,\"top\":[]"), false},
        {"[{\"logprob\":-1,\"top\":[]}]", false},
        {"[{\"bytes\":\"hi\",\"logprob\":-1,\"top\":[]}]", false},
        {"[{\"bytes\":[256],\"logprob\":-1,\"top\":[]}]", false},
        {"[{\"bytes\":[-1],\"logprob\":-1,\"top\":[]}]", false},
        {"[{\"bytes\":[1.0],\"logprob\":-1,\"top\":[]}]", false},
        {TOP("{}"), false},
        {TOP("7"), false},
        {TOP("{\"bytes\":[999],\"logprob\":-1}"), false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_answer answer = answer_of(&fm_surface_responses, OUTPUT);
        enum fm_code code = say(&answer, "hi", 2, rows[i].list);
        if (code != (rows[i].taken ? FM_OK : FM_INTERNAL)) {
            fail_msg("%s", rows[i].list ? rows[i].list : "none");
        }
        assert_true(rows[i].taken || answer.logprobs.len == 0); /* a refused list leaves nothing behind */
        fm_answer_free(&answer);
        struct fm_answer plain = answer_of(&fm_surface_responses, "{\"input\":\"hi\"}");
        /* this request did not ask for log probabilities */
        assert_int_equal(say(&plain, "hi", 2, rows[i].list), FM_OK);
        fm_answer_free(&plain);
    }
}

/* A token with `bytes` bytes, and `alternatives` alternatives. */
static enum fm_code say_many(size_t bytes, size_t alternatives) {
    struct fm_buf list;
    fm_buf_init(&list, 1u << 20);
    fm_buf_append_str(&list, "[{\"logprob\":-1,\"bytes\":[");
    for (size_t i = 0; i < bytes; i++) {
        fm_buf_append_str(&list, i ? ",104" : "104");
    }
    fm_buf_append_str(&list, "],\"top\":[");
    for (size_t i = 0; i < alternatives; i++) {
        fm_buf_append_str(&list, i ? ",{\"bytes\":[],\"logprob\":-1}" : "{\"bytes\":[],\"logprob\":-1}");
    }
    fm_buf_append(&list, "]}]", sizeof "]}]");
    struct fm_answer answer = answer_of(&fm_surface_chat, CHAT);
    enum fm_code code = say(&answer, "h", 1, list.data);
    fm_answer_free(&answer);
    fm_buf_free(&list);
    return code;
}

static void what_an_entry_may_hold(void **state) {
    (void)state;
    assert_int_equal(say_many(2048, 20), FM_OK);
    assert_int_equal(say_many(2049, 20), FM_INTERNAL);
    assert_int_equal(say_many(2048, 21), FM_INTERNAL);
}

static void an_entry(void **state) {
    (void)state;
    static const char list[] = "[{\"bytes\":[240,159],\"logprob\":-0.25,\"top\":[{\"bytes\":[97],\"logprob\":-2}]}]";
    static const char entry[] = "[{\"token\":\"\xEF\xBF\xBD\xEF\xBF\xBD\",\"bytes\":[240,159],\"logprob\":-0.25,"
                                "\"top_logprobs\":[{\"token\":\"a\",\"bytes\":[97],\"logprob\":-2}]}]";
    struct fm_answer answer = answer_of(&fm_surface_chat, CHAT);
    struct stream stream = {.count = 0};
    assert_int_equal(say(&answer, "x", 1, list), FM_OK);
    pull(&answer, &stream);
    assert_json(stream.events[0], "choices.0.logprobs", "null");
    assert_json(stream.events[1], "choices.0.logprobs.content", entry);
    assert_json(stream.events[1], "choices.0.logprobs.refusal", "null");
    stream_free(&stream);
    fm_answer_free(&answer);
}

/*
 * A slow host gets pieces of up to 32 KiB, each with the entries of its text. A longer delta comes whole, with all its
 * entries.
 */
static void pieces_have_their_entries(void **state) {
    (void)state;
    enum { DELTAS = 50, LEN = 1500, LONG = 40000 };
    static const char list[] =
        "[{\"bytes\":[104],\"logprob\":-1,\"top\":[]},{\"bytes\":[105],\"logprob\":-1,\"top\":[]}]";
    char *text = malloc(LONG);
    memset(text, 'x', LONG);
    struct fm_answer answer = answer_of(&fm_surface_responses, OUTPUT);
    struct stream stream = {.count = 0};
    for (int i = 0; i < DELTAS; i++) {
        assert_int_equal(say(&answer, text, LEN, list), FM_OK);
    }
    assert_int_equal(say(&answer, text, LONG, list), FM_OK);
    fm_answer_finish(&answer, FM_FINISH_STOP, NULL);
    pull(&answer, &stream);
    size_t entries = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < stream.count; i++) {
        if (strcmp(str_at(stream.events[i], "type"), "response.output_text.delta") != 0) {
            continue;
        }
        size_t len = strlen(str_at(stream.events[i], "delta"));
        size_t told = json_object_array_length(at(stream.events[i], "logprobs"));
        assert_int_equal(told, len == LONG ? 2 : 2 * (len / LEN));
        bytes += len;
        entries += told;
    }
    assert_int_equal(bytes, DELTAS * LEN + LONG);
    assert_int_equal(entries, 2 * (DELTAS + 1));
    struct json_object *end = at(stream.events[stream.count - 1], "response.output.0.content.0.logprobs");
    assert_int_equal(json_object_array_length(end), entries);
    stream_free(&stream);
    fm_answer_free(&answer);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_taken_or_refused),
        cmocka_unit_test(what_an_entry_may_hold),
        cmocka_unit_test(an_entry),
        cmocka_unit_test(pieces_have_their_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
