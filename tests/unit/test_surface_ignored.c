/* Unknown members of a request, and parameters that the engine lacks: they have no effect, but are reported. */
#include "surface/conversation.h"
#include "test_surface.h"

#define ALL ((1u << FM_EXTRA_COUNT) - 1)

static const char *const words[] = {"one ", "two", NULL};

/* ---- what is ignored has no effect ---- */

/* `unknown` has members that `known` lacks, at `paths` (in order, a comma after each), but gives the same job. */
static const struct pair {
    const struct fm_surface *surface;
    const char *known;
    const char *unknown;
    const char *paths;
} pairs[] = {
    {&fm_surface_responses, "{\"input\":\"hi\"}", "{\"top_q\":{\"a\":[1]},\"input\":\"hi\",\"temp\":null}",
     "top_q,temp,"},
    {&fm_surface_responses,
     "{\"input\":[{\"type\":\"message\",\"id\":\"m\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\","
     "\"text\":\"hi\"}]}],\"text\":{\"verbosity\":\"low\"}}",
     "{\"input\":[{\"type\":\"message\",\"id\":\"m\",\"role\":\"user\",\"foo\":1,\"content\":[{\"type\":"
     "\"input_text\",\"text\":\"hi\",\"bar\":2}]}],\"text\":{\"verbosity\":\"low\",\"tone\":\"x\"}}",
     "input[0].foo,input[0].content[0].bar,text.tone,"},
    {&fm_surface_responses,
     "{\"input\":\"hi\",\"reasoning\":{},\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{\"x\":1}}]}",
     "{\"input\":\"hi\",\"reasoning\":{\"foo\":1},\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"cache\":{},"
     "\"parameters\":{\"x\":1}}]}",
     "reasoning.foo,tools[0].cache,"},
    {&fm_surface_chat, "{\"messages\":[{\"role\":\"system\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"b\"}]}",
     "{\"messages\":[{\"role\":\"system\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"b\",\"foo\":1}],"
     "\"repetition_penalty\":1.1}",
     "messages[1].foo,repetition_penalty,"},
    {&fm_surface_chat,
     "{\"messages\":[{\"role\":\"user\",\"content\":\"b\"}],\"tools\":[{\"type\":\"function\",\"function\":"
     "{\"name\":\"f\"}}]}",
     "{\"messages\":[{\"role\":\"user\",\"content\":\"b\"}],\"tools\":[{\"type\":\"function\",\"function\":"
     "{\"name\":\"f\",\"foo\":1}}]}",
     "tools[0].function.foo,"},
    {&fm_surface_completions, "{\"prompt\":\"hi\"}", "{\"prompt\":\"hi\",\"toolz\":[]}", "toolz,"},
    {&fm_surface_embeddings, "{\"input\":\"hi\"}", "{\"input\":\"hi\",\"top_k\":1}", "top_k,"},
    {&fm_surface_input_tokens, "{\"input\":\"hi\"}", "{\"input\":\"hi\",\"temprature\":\"x\",\"top_k\":5}",
     "top_k,temprature,"},
    {&fm_surface_compact, "{\"model\":\"m\",\"input\":\"hi\"}",
     "{\"model\":\"m\",\"toolz\":7,\"ignore_eos\":true,\"input\":\"hi\"}", "ignore_eos,toolz,"},
};

static void same_bytes(const struct fm_buf *a, const struct fm_buf *b) {
    assert_int_equal(a->len, b->len);
    assert_true(a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static void unknown_members_have_no_effect(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct fm_request known = request_of(pairs[i].surface, pairs[i].known);
        struct fm_request unknown = request_of(pairs[i].surface, pairs[i].unknown);
        char paths[512] = "";
        for (const char *at = NULL; (at = fm_ignored_next(&unknown.ignored, at));) {
            snprintf(paths + strlen(paths), sizeof paths - strlen(paths), "%s,", at);
        }
        assert_string_equal(paths, pairs[i].paths);
        assert_int_equal(known.ignored.len, 0);
        same_bytes(&known.job_members, &unknown.job_members);
        same_bytes(&known.echo, &unknown.echo);
        same_bytes(&known.extras, &unknown.extras);
        if (strstr(pairs[i].known, "\"id\"")) { /* otherwise the id is random */
            same_bytes(&known.conversation.input, &unknown.conversation.input);
        }
        fm_request_free(&known);
        fm_request_free(&unknown);
    }
}

/* 64 are named; one more entry stands for all others. */
static void a_report_has_an_end(void **state) {
    (void)state;
    static const size_t counts[] = {64, 65, 1000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct fm_buf body;
        fm_buf_init(&body, 1u << 20);
        fm_buf_append_str(&body, "{\"input\":\"hi\"");
        for (size_t k = 0; k < counts[i]; k++) {
            char member[300];
            snprintf(member, sizeof member, ",\"%0250zu\":0", k);
            fm_buf_append_str(&body, member);
        }
        fm_buf_append(&body, "}", 2);
        struct fm_request request = request_of(&fm_surface_responses, body.data);
        size_t named = 0;
        const char *last = NULL;
        for (const char *at = NULL; (at = fm_ignored_next(&request.ignored, at)); last = at) {
            named++;
        }
        assert_int_equal(named, counts[i] < 65 ? counts[i] : 65);
        assert_int_equal(strcmp(last, "...") == 0, counts[i] > 64);
        fm_request_free(&request);
        fm_buf_free(&body);
    }
}

/* ---- the report ---- */

static void objects_report_it(void **state) {
    (void)state;
    static const struct {
        const struct fm_surface *surface;
        const char *body;
        const char *fm;
    } rows[] = {
        {&fm_surface_responses, "{\"input\":\"hi\",\"x\":1}", "{\"ignored\":[\"x\"]}"},
        {&fm_surface_responses, "{\"input\":\"hi\",\"x\":1,\"fm\":{\"schema_report\":true}}",
         "{\"schema\":null,\"dropped_messages\":2,\"ignored\":[\"x\"]}"},
        {&fm_surface_responses, "{\"input\":\"hi\"}", "null"},
        {&fm_surface_chat, "{\"messages\":[{\"role\":\"user\",\"content\":\"b\",\"\\u0001\":1}]}",
         "{\"ignored\":[\"messages[0].\\u0001\"]}"},
        {&fm_surface_completions, "{\"prompt\":\"hi\",\"x\":1}", "{\"ignored\":[\"x\"]}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct stream stream;
        int64_t dropped = strstr(rows[i].body, "report") ? 2 : 0;
        struct script script = {
            .surface = rows[i].surface, .body = rows[i].body, .deltas = words, .dropped = dropped};
        struct json_object *object = run(&script, &stream);
        assert_json(object, "fm", rows[i].fm);
        json_object_put(object);
    }
}

/* In a stream, the report is in its Response objects, or in its first chunk, and in no other event. */
static void streams_report_it(void **state) {
    (void)state;
    static const struct {
        const struct fm_surface *surface;
        const char *body;
        const char *at;
        const char *deltas[3];
    } rows[] = {
        {&fm_surface_responses, "{\"stream\":true,\"input\":\"hi\",\"x\":1}", "response.fm", {"one ", "two"}},
        {&fm_surface_chat,
         "{\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"b\"}],\"x\":1}",
         "fm",
         {"one ", "two"}},
        {&fm_surface_completions, "{\"stream\":true,\"prompt\":\"hi\",\"x\":1}", "fm", {"one ", "two"}},
        {&fm_surface_completions, "{\"stream\":true,\"prompt\":\"hi\",\"x\":1}", "fm", {NULL}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct stream stream;
        struct script script = {.surface = rows[i].surface, .body = rows[i].body, .deltas = rows[i].deltas};
        json_object_put(run(&script, &stream));
        assert_json(stream.events[0], rows[i].at, "{\"ignored\":[\"x\"]}");
        size_t reports = 0;
        for (size_t k = 0; k < stream.count; k++) {
            reports += at(stream.events[k], rows[i].at) != NULL;
        }
        /* in created, in_progress and completed */
        assert_int_equal(reports, rows[i].surface == &fm_surface_responses ? 3 : 1);
        stream_free(&stream);
    }
}

/* ---- extra parameters ---- */

static void check_extras(const char *body, unsigned has, const char *members, const char *first) {
    struct fm_request request = request_of(&fm_surface_responses, body);
    struct fm_buf job;
    fm_buf_init(&job, 1u << 16);
    struct fm_json_writer w = fm_json_writer_on(&job);
    fm_request_write_extras(&request, has, &w);
    fm_buf_append_char(&job, '\0');
    assert_string_equal(job.data, members);
    const char *ignored = fm_ignored_next(&request.ignored, NULL);
    assert_string_equal(ignored ? ignored : "", first);
    size_t before = request.ignored.len;
    fm_request_write_extras(&request, has, &w); /* the job of another choice: reported once */
    assert_int_equal(request.ignored.len, before);
    fm_buf_free(&job);
    fm_request_free(&request);
}

static void an_engine_gets_the_extras_that_it_has(void **state) {
    (void)state;
#define FOUR "\"top_k\":40,\"min_p\":0.1,\"repeat_penalty\":1.5,\"ignore_eos\":true"
    check_extras("{\"input\":\"hi\"," FOUR "}", ALL, FOUR, "");
    check_extras("{\"input\":\"hi\"," FOUR "}", 0, "", "top_k");
    check_extras("{\"input\":\"hi\"," FOUR "}", 1u, "\"top_k\":40", "min_p");
    check_extras("{\"input\":\"hi\",\"x\":1,\"min_p\":0}", ALL, "\"min_p\":0", "x");
    /* an engine need not support values without an effect */
    check_extras("{\"input\":\"hi\",\"top_k\":-1,\"repeat_penalty\":1.0,\"ignore_eos\":false}", 0, "", "");
    check_extras("{\"input\":\"hi\",\"top_k\":0,\"min_p\":null}", 0, "", "");
    /* members that OpenAI's server uses are for engines that pass requests on; for others they are not reported */
#define TEXTS "\"service_tier\":\"flex\",\"prompt_cache_key\":\"k\",\"safety_identifier\":\"s\",\"user\":\"u\""
    check_extras("{\"input\":\"hi\",\"text\":{\"verbosity\":\"low\"},\"reasoning\":{\"generate_summary\":\"auto\"}," TEXTS "}",
                 ALL, "\"verbosity\":\"low\",\"reasoning_summary\":\"auto\"," TEXTS, "");
    check_extras("{\"input\":\"hi\",\"text\":{\"verbosity\":\"low\"}," TEXTS "}", 0, "", "");
    /* but an engine with the parameter gets it: its default may be different */
    check_extras("{\"input\":\"hi\",\"top_k\":-1,\"repeat_penalty\":1.0,\"ignore_eos\":false}", ALL,
                 "\"top_k\":-1,\"repeat_penalty\":1.0,\"ignore_eos\":false", "");
}

static void extras_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *member;
        const char *code;
        const char *param;
    } rows[] = {
        {"\"top_k\":-1", NULL, NULL},
        {"\"top_k\":2147483647", NULL, NULL},
        {"\"top_k\":-2", "integer_below_min_value", "top_k"},
        {"\"top_k\":2147483648", "integer_above_max_value", "top_k"},
        {"\"top_k\":1.5", "invalid_type", "top_k"},
        {"\"min_p\":0", NULL, NULL},
        {"\"min_p\":1", NULL, NULL},
        {"\"min_p\":1.1", "decimal_above_max_value", "min_p"},
        {"\"min_p\":-0.1", "decimal_below_min_value", "min_p"},
        {"\"min_p\":\"0\"", "invalid_type", "min_p"},
        {"\"repeat_penalty\":10", NULL, NULL},
        {"\"repeat_penalty\":0.01", NULL, NULL},
        {"\"repeat_penalty\":0", "invalid_value", "repeat_penalty"},
        {"\"repeat_penalty\":-1", "decimal_below_min_value", "repeat_penalty"},
        {"\"repeat_penalty\":10.5", "decimal_above_max_value", "repeat_penalty"},
        {"\"repeat_penalty\":true", "invalid_type", "repeat_penalty"},
        {"\"ignore_eos\":1", "invalid_type", "ignore_eos"},
        {"\"ignore_eos\":false", NULL, NULL},
    };
    static const struct {
        const struct fm_surface *surface;
        const char *needed;
    } apis[] = {{&fm_surface_responses, "\"input\":\"hi\""},
                {&fm_surface_chat, "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"},
                {&fm_surface_completions, "\"prompt\":\"hi\""}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t k = 0; k < sizeof apis / sizeof apis[0]; k++) {
            char body[256];
            snprintf(body, sizeof body, "{%s,%s}", apis[k].needed, rows[i].member);
            check_body(apis[k].surface, body, rows[i].code, rows[i].param);
        }
    }
}

/* In the background a stream begins before there is an engine; all readers, also later ones, get the same report. */
static void a_stream_that_is_read_again_reports_the_same(void **state) {
    (void)state;
    struct fm_request request = request_of(
        &fm_surface_responses, "{\"input\":\"hi\",\"stream\":true,\"background\":true,\"x\":1,\"top_k\":4}");
    struct fm_stored_response stored = {0};
    struct fm_answer answer;
    struct fm_answer again;
    struct stream early = {.count = 0};
    struct stream late = {.count = 0};
    struct fm_error error;
    struct fm_buf job;
    fm_buf_init(&job, 1u << 16);
    fm_buf_init(&stored.object, 1u << 20);
    fm_buf_init(&stored.stream, 1u << 20);
    assert_int_equal(fm_answer_init(&answer, &fm_surface_responses, &request, "tiny", &error), FM_OK);
    pull(&answer, &early);
    struct fm_json_writer w = fm_json_writer_on(&job);
    fm_request_write_extras(&answer.request, 0, &w);
    fm_answer_open(&answer, 1);
    produce(&answer, "one");
    fm_answer_finish(&answer, FM_FINISH_STOP, NULL);
    pull(&answer, &early);
    w = fm_json_writer_on(&stored.object);
    fm_surface_responses.write(&answer, &w);
    w = fm_json_writer_on(&stored.stream);
    fm_answer_write_stream(&answer, &w);
    assert_int_equal(fm_answer_restore(&again, &stored, &error), FM_OK);
    again.request.stream = true;
    pull(&again, &late);
    assert_json(early.events[0], "response.fm", "{\"ignored\":[\"x\"]}");
    assert_json(early.events[early.count - 1], "response.fm", "{\"ignored\":[\"x\",\"top_k\"]}");
    assert_int_equal(early.count, late.count);
    for (size_t i = 0; i < early.count; i++) {
        assert_true(json_object_equal(early.events[i], late.events[i]));
    }
    stream_free(&early);
    stream_free(&late);
    fm_answer_free(&answer);
    fm_answer_free(&again);
    fm_stored_response_free(&stored);
    fm_buf_free(&job);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_members_have_no_effect),
        cmocka_unit_test(a_report_has_an_end),
        cmocka_unit_test(objects_report_it),
        cmocka_unit_test(streams_report_it),
        cmocka_unit_test(an_engine_gets_the_extras_that_it_has),
        cmocka_unit_test(extras_are_checked),
        cmocka_unit_test(a_stream_that_is_read_again_reports_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
