/*
 * All readers of an answer's stream get the same events: fast readers, late readers, and readers of the stored
 * response.
 */
#include "surface/conversation.h"
#include "test_surface.h"

#define TOOLS                                                                                                          \
    "\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{},"          \
    "\"required\":[],\"additionalProperties\":false}}]"
#define SCHEMA                                                                                                         \
    "\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"n\",\"schema\":{\"type\":\"object\"}}},"                \
    "\"fm\":{\"schema_report\":true}"
#define BODY(members) "{\"input\":\"hi\",\"stream\":true," members "}"

static const char entries[] = "[{\"bytes\":[104,105],\"logprob\":-0.1,\"top\":[{\"bytes\":[34,200],\"logprob\":-2.5}]},"
                              "{\"bytes\":[],\"logprob\":-3e-7,\"top\":[]}]";

static const struct row {
    const char *what;
    const char *body;
    const char *deltas[8]; /* as in a script */
    enum fm_finish finish;
    const char *mismatch;
    bool unopened;
} rows[] = {
    {"text",
     .body = BODY("\"metadata\":{\"a\":\"\\u00e9\\n\"},\"user\":\"me\""),
     {"one ", "two \n\"", "\xF0\x9F\x98\x80"}},
    {"no text", .body = BODY("\"temperature\":0.1"), {NULL}},
    {"no text, and cut", .body = BODY("\"top_p\":0.3"), {NULL}, .finish = FM_FINISH_LENGTH},
    {"cut", .body = BODY("\"max_output_tokens\":20"), {"one ", "two"}, .finish = FM_FINISH_LENGTH},
    {"filtered", .body = BODY("\"instructions\":\"\""), {"one"}, .finish = FM_FINISH_CONTENT_FILTER},
    {"cancelled", .body = BODY("\"background\":true"), {"one ", "two"}, .finish = FM_FINISH_CANCELLED},
    {"cancelled before it began",
     .body = BODY("\"background\":true"),
     {NULL},
     .finish = FM_FINISH_CANCELLED,
     .unopened = true},
    {"failed", .body = BODY("\"truncation\":\"disabled\""), {"one ", "two"}, .finish = FM_FINISH_FAILED},
    {"failed before it began",
     .body = BODY("\"background\":true"),
     {NULL},
     .finish = FM_FINISH_FAILED,
     .unopened = true},
    {"a thought", .body = BODY("\"reasoning\":{\"summary\":\"auto\"}"), {"~let ", "~me", "one ", "two"}},
    {"a thought alone", .body = BODY("\"store\":true"), {"~let ", "~me"}, .finish = FM_FINISH_LENGTH},
    {"a thought as text", .body = BODY("\"fm\":{\"reasoning_dialect\":\"reasoning_text\"}"), {"~let ", "~me", "one"}},
    {"a thought, open", .body = BODY("\"fm\":{\"reasoning_dialect\":\"reasoning\"}"), {"~let", "one"}},
    {"calls", .body = BODY(TOOLS), {"one", "@f", "{\"a\":", "1}", "@f", "@f", "{}"}},
    {"calls alone, the last one cut", .body = BODY(TOOLS), {"@f", "{}", "@f", "{\"a"}, .finish = FM_FINISH_LENGTH},
    {"a schema", .body = BODY(SCHEMA), {"{", "}"}},
    {"a schema that it misses", .body = BODY(SCHEMA), {"{", "}"}, .finish = FM_FINISH_STOP, .mismatch = "no 'a'"},
    {"log probabilities",
     .body = BODY("\"include\":[\"message.output_text.logprobs\"]"),
     {"one ", "two ", "three", "\n"}},
    {"log probabilities and a call",
     .body = BODY(TOOLS ",\"include\":[\"message.output_text.logprobs\"]"),
     {"one ", "two ", "@f", "{}"}},
};

/* Message text also gets log probabilities, which not every request accepts. */
static void say(struct fm_answer *answer, const char *delta) {
    struct fm_error error;
    produce(answer, delta);
    if (*delta != '@' && *delta != '~' && answer->call_count == 0) {
        struct json_object *list = json_of(entries, sizeof entries - 1);
        assert_int_equal(fm_answer_logprobs(answer, list, &error), FM_OK);
        json_object_put(list);
    }
}

static void same(const char *what, const struct stream *stream, size_t from, const struct stream *other) {
    if (stream->count != other->count) {
        fail_msg("%s: %zu events, not %zu", what, other->count, stream->count);
    }
    for (size_t i = from; i < stream->count; i++) {
        if (!json_object_equal(stream->events[i], other->events[i])) {
            fail_msg("%s: %s, not %s", what, json_object_to_json_string(other->events[i]),
                     json_object_to_json_string(stream->events[i]));
        }
    }
}

/* A reader that continues after any event gets the remaining ones. */
static void same_after_each(const char *what, struct fm_answer *answer, const struct stream *whole) {
    for (size_t had = 0; had <= whole->count; had++) {
        struct stream rest = {.count = had};
        fm_answer_skip_events(answer, &rest.cursor, (int64_t)had - 1);
        pull(answer, &rest);
        same(what, whole, had, &rest);
        for (size_t i = had; i < rest.count; i++) {
            json_object_put(rest.events[i]);
        }
    }
}

/* The response as the front has stored it. */
static struct fm_stored_response stored_of(struct fm_answer *answer) {
    struct fm_stored_response stored = {0};
    fm_buf_init(&stored.object, 1u << 20);
    fm_buf_init(&stored.stream, 1u << 20);
    struct fm_json_writer w = fm_json_writer_on(&stored.object);
    answer->surface->write(answer, &w);
    w = fm_json_writer_on(&stored.stream);
    fm_answer_write_stream(answer, &w);
    assert_false(stored.object.failed || stored.stream.failed);
    return stored;
}

/* If `fast`, the first reader takes each delta separately; another one begins in the middle. */
static void all_readers(const struct row *row, bool fast) {
    struct fm_request request = request_of(&fm_surface_responses, row->body);
    struct fm_answer answer;
    struct fm_answer restored;
    struct fm_error error;
    struct stream first = {0};
    struct stream second = {0};
    struct stream last = {0};
    assert_int_equal(fm_answer_init(&answer, &fm_surface_responses, &request, "tiny", &error), FM_OK);
    if (answer.request.has_schema) {
        tell_report(&answer, "\"enforced\":[\"type\"],\"checked\":[]");
    }
    pull(&answer, &first);
    if (!row->unopened) {
        fm_answer_drop(&answer, 2);
        fm_answer_call_unknown(&answer, "get_wether");
        fm_answer_open(&answer, 11);
    }
    for (size_t i = 0; row->deltas[i]; i++) {
        say(&answer, row->deltas[i]);
        fast ? pull(&answer, &first) : 0;
        i == 1 ? pull(&answer, &second) : 0;
    }
    answer.usage = test_usage;
    if (row->mismatch) {
        fm_answer_mismatch(&answer, row->mismatch);
    }
    fm_fail(&error, FM_TIMEOUT, "too late: 100%% of the time");
    error.reason = row->unopened ? "queue_timeout" : NULL;
    fm_answer_finish(&answer, row->finish, &error);
    struct fm_stored_response stored = stored_of(&answer);
    pull(&answer, &first);
    pull(&answer, &second);
    same(row->what, &first, 0, &second);
    same_after_each(row->what, &answer, &first);
    assert_int_equal(fm_answer_restore(&restored, &stored, &error), FM_OK);
    restored.request.stream = true;
    pull(&restored, &last);
    same(row->what, &first, 0, &last);
    same_after_each(row->what, &restored, &first);
    struct fm_stored_response again = stored_of(&restored);
    assert_int_equal(again.object.len, stored.object.len);
    stream_free(&first);
    stream_free(&second);
    stream_free(&last);
    fm_stored_response_free(&stored);
    fm_stored_response_free(&again);
    fm_answer_free(&answer);
    fm_answer_free(&restored);
}

static void test_all_readers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        all_readers(&rows[i], true);
        all_readers(&rows[i], false);
    }
}

/* Other programs may write to the file, too. */
static void test_damaged(void **state) {
    (void)state;
    static const char object[] =
        "{\"id\":\"resp_1\",\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":"
        "[{\"text\":\"abc\",\"logprobs\":[1]}]}]}";
    static const struct {
        const char *object;
        const char *stream;
        bool whole;
    } stored[] = {
        {object, "{\"dialect\":0,\"ends\":[1,3]}", true},
        {object, "{\"dialect\":0,\"ends\":[1,3],\"logprobs\":[1,0]}", true},
        {object, "{}", true},
        {object, "{\"dialect\":77}", true},
        {object, "", false},
        {object, "{\"ends\":[4]}", false},
        {object, "{\"ends\":[2,1]}", false},
        {object, "{\"ends\":[-1]}", false},
        {object, "{\"ends\":[3],\"logprobs\":[2]}", false},
        {object, "{\"ends\":[3],\"logprobs\":[-1]}", false},
        {object, "{\"ends\":[1,3],\"logprobs\":[1,1]}", false},
        {object, "{\"ends\":[3],\"logprobs\":7}", false},
        {"{\"output\":[]}", "{}", true},
        {"{\"output\":[{}]}", "{}", false},
        {"{\"output\":[7]}", "{}", false},
        {"{\"output\":[{\"type\":\"message\",\"content\":[]}]}", "{}", false},
        {"{\"output\":[{\"type\":\"message\",\"content\":7}]}", "{}", false},
        {"{\"output\":[{\"type\":\"reasoning\"}]}", "{}", false},
        {"{\"output\":[{\"type\":\"function_call\",\"arguments\":1}]}", "{}", false},
        {"{\"output\":7}", "{}", false},
        {"{}", "{}", false},
        {"[]", "{}", false},
        {"7", "{}", false},
    };
    for (size_t i = 0; i < sizeof stored / sizeof stored[0]; i++) {
        struct fm_stored_response response = {0};
        struct fm_answer answer;
        struct fm_error error;
        fm_buf_init(&response.object, 1u << 20);
        fm_buf_init(&response.stream, 1u << 20);
        fm_buf_append_str(&response.object, stored[i].object);
        fm_buf_append_str(&response.stream, stored[i].stream);
        enum fm_code code = fm_answer_restore(&answer, &response, &error);
        if (code != (stored[i].whole ? FM_OK : FM_INTERNAL)) {
            fail_msg("%s with %s: %d", stored[i].object, stored[i].stream, code);
        }
        if (code == FM_OK) {
            struct stream stream = {0};
            answer.request.stream = true;
            pull(&answer, &stream);
            stream_free(&stream);
            fm_answer_free(&answer);
        }
        fm_stored_response_free(&response);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_readers),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
