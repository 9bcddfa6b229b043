/*
 * The Response object and its stream: every way an answer can end, compared with the invariants that clients rely on.
 */
#include "test_surface.h"

/* The keys that a client's parser expects in a Response object, null or not. */
static const char *const response_keys[] = {
    "id",
    "object",
    "created_at",
    "status",
    "model",
    "output",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "store",
    "background",
    "service_tier", /* the keys before this are never null */
    "completed_at",
    "incomplete_details",
    "previous_response_id",
    "instructions",
    "error",
    "reasoning",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "safety_identifier",
    "prompt_cache_key",
    "metadata",
    "access_programs",
};
#define NEVER_NULL 19

static void check_response(struct json_object *response) {
    assert_int_equal(sizeof response_keys / sizeof response_keys[0], 32);
    assert_int_equal(json_object_object_length(response), 32);
    for (size_t i = 0; i < 32; i++) {
        struct json_object *value;
        if (!json_object_object_get_ex(response, response_keys[i], &value) || (i < NEVER_NULL && !value)) {
            fail_msg("%s is missing", response_keys[i]);
        }
    }
    assert_string_equal(str_at(response, "object"), "response");
    assert_true(int_at(response, "created_at") > 1600000000);
    assert_int_equal(strncmp(str_at(response, "id"), "resp_", 5), 0);
    assert_int_equal(strlen(str_at(response, "id")), 5 + 32);
    assert_true(json_object_is_type(at(response, "metadata"), json_type_object));
}

static void check_usage(struct json_object *response) {
    assert_json(response, "usage",
                "{\"input_tokens\":11,\"input_tokens_details\":{\"cached_tokens\":3,\"cache_write_tokens\":0},"
                "\"output_tokens\":7,\"output_tokens_details\":{\"reasoning_tokens\":2},\"total_tokens\":18}");
}

/* ---- the checker: a stream, event by event ---- */

struct walk {
    struct json_object *first; /* the Response of response.created */
    struct json_object *last;  /* the Response of the terminal event */
    const char *item_id;
    const char *done_text;
    size_t at; /* the next event */
    char deltas[4096];
    size_t deltas_len;
};

static struct json_object *next(struct walk *walk, const struct stream *stream, const char *type) {
    if (walk->at == stream->count || strcmp(str_at(stream->events[walk->at], "type"), type) != 0) {
        fail_msg("event %zu is not %s", walk->at, type);
    }
    struct json_object *event = stream->events[walk->at];
    assert_int_equal(int_at(event, "sequence_number"), walk->at);
    assert_int_equal(json_object_object_get_ex(event, "error", NULL), strcmp(type, "error") == 0);
    walk->at++;
    return event;
}

static bool next_is(const struct walk *walk, const struct stream *stream, const char *type) {
    return walk->at < stream->count && strcmp(str_at(stream->events[walk->at], "type"), type) == 0;
}

static struct json_object *next_response(struct walk *walk, const struct stream *stream, const char *type) {
    struct json_object *event = next(walk, stream, type);
    assert_int_equal(json_object_object_length(event), 3);
    struct json_object *response = at(event, "response");
    check_response(response);
    if (!walk->first) {
        walk->first = response;
    }
    assert_string_equal(str_at(response, "id"), str_at(walk->first, "id"));
    assert_int_equal(int_at(response, "created_at"), int_at(walk->first, "created_at"));
    return response;
}

static struct json_object *next_part(struct walk *walk, const struct stream *stream, const char *type) {
    struct json_object *event = next(walk, stream, type);
    assert_string_equal(str_at(event, "item_id"), walk->item_id);
    assert_int_equal(int_at(event, "output_index"), 0);
    assert_int_equal(int_at(event, "content_index"), 0);
    return event;
}

static void check_part(struct json_object *part, const char *text) {
    assert_int_equal(json_object_object_length(part), 4);
    assert_string_equal(str_at(part, "type"), "output_text");
    assert_string_equal(str_at(part, "text"), text);
    assert_json(part, "annotations", "[]");
    assert_json(part, "logprobs", "[]");
}

static void check_item(struct json_object *item, const char *id, const char *status, const char *text) {
    assert_int_equal(json_object_object_length(item), 5);
    assert_string_equal(str_at(item, "id"), id);
    assert_string_equal(str_at(item, "type"), "message");
    assert_string_equal(str_at(item, "role"), "assistant");
    assert_string_equal(str_at(item, "status"), status);
    assert_int_equal(json_object_array_length(at(item, "content")), 1);
    check_part(at(item, "content.0"), text);
}

static void walk_deltas(struct walk *walk, const struct stream *stream) {
    while (next_is(walk, stream, "response.output_text.delta")) {
        struct json_object *event = next_part(walk, stream, "response.output_text.delta");
        assert_int_equal(json_object_object_length(event), 7);
        assert_json(event, "logprobs", "[]");
        int len = json_object_get_string_len(at(event, "delta"));
        assert_true(len > 0 && walk->deltas_len + (size_t)len < sizeof walk->deltas);
        memcpy(walk->deltas + walk->deltas_len, str_at(event, "delta"), (size_t)len);
        walk->deltas_len += (size_t)len;
    }
}

/* Checks the events around the message, which ends with `status`. */
static void walk_message(struct walk *walk, const struct stream *stream, const char *status) {
    struct json_object *event = next(walk, stream, "response.output_item.added");
    assert_int_equal(int_at(event, "output_index"), 0);
    assert_json(event, "item.content", "[]");
    assert_string_equal(str_at(event, "item.status"), "in_progress");
    assert_string_equal(str_at(event, "item.type"), "message");
    assert_string_equal(str_at(event, "item.role"), "assistant");
    walk->item_id = str_at(event, "item.id");
    assert_int_equal(strncmp(walk->item_id, "msg_", 4), 0);
    check_part(at(next_part(walk, stream, "response.content_part.added"), "part"), "");
    walk_deltas(walk, stream);
    event = next_part(walk, stream, "response.output_text.done");
    assert_json(event, "logprobs", "[]");
    walk->done_text = str_at(event, "text");
    assert_string_equal(walk->done_text, walk->deltas);
    check_part(at(next_part(walk, stream, "response.content_part.done"), "part"), walk->done_text);
    event = next(walk, stream, "response.output_item.done");
    assert_int_equal(int_at(event, "output_index"), 0);
    check_item(at(event, "item"), walk->item_id, status, walk->done_text);
}

static void check_in_progress(struct json_object *response) {
    assert_string_equal(str_at(response, "status"), "in_progress");
    assert_json(response, "output", "[]");
    assert_null(at(response, "usage"));
    assert_null(at(response, "error"));
    assert_null(at(response, "completed_at"));
}

/* Checks any stream: `item_status` NULL means that no message was begun. */
static struct walk walk_stream(const struct stream *stream, const char *item_status, bool failed,
                               const char *terminal) {
    struct walk walk = {.first = NULL};
    check_in_progress(next_response(&walk, stream, "response.created"));
    check_in_progress(next_response(&walk, stream, "response.in_progress"));
    if (item_status) {
        walk_message(&walk, stream, item_status);
    }
    if (failed) {
        next(&walk, stream, "error");
    }
    walk.last = next_response(&walk, stream, terminal);
    assert_int_equal(walk.at, stream->count);
    check_usage(walk.last);
    if (item_status) {
        assert_int_equal(json_object_array_length(at(walk.last, "output")), 1);
        check_item(at(walk.last, "output.0"), walk.item_id, item_status, walk.done_text);
    } else {
        assert_json(walk.last, "output", "[]");
    }
    return walk;
}

/* Runs it streamed and not streamed: the final objects may only differ in random values. */
static struct json_object *run_both(struct script *script, struct stream *stream) {
    struct stream none;
    script->body = "{\"input\":\"hi\"}";
    struct json_object *plain = run(script, &none);
    assert_int_equal(none.count, 0);
    script->body = "{\"input\":\"hi\",\"stream\":true}";
    struct json_object *streamed = run(script, stream);
    check_response(plain);
    assert_string_equal(str_at(plain, "status"), str_at(streamed, "status"));
    assert_int_equal(json_object_array_length(at(plain, "output")), json_object_array_length(at(streamed, "output")));
    if (at(plain, "output.0")) {
        check_item(at(plain, "output.0"), str_at(plain, "output.0.id"), str_at(streamed, "output.0.status"),
                   str_at(streamed, "output.0.content.0.text"));
        assert_string_not_equal(str_at(plain, "output.0.id"), str_at(streamed, "output.0.id"));
    }
    assert_string_not_equal(str_at(plain, "id"), str_at(streamed, "id"));
    json_object_put(plain);
    return streamed;
}

static const char *const greeting[] = {"Hello", ", \"w\xc3\xb6rld\"\n", "\xf0\x9f\x98\x80", NULL};
#define GREETING "Hello, \"w\xc3\xb6rld\"\n\xf0\x9f\x98\x80"

/* ---- the ways to end ---- */

struct ending {
    enum fm_finish finish;
    const char *const *deltas;
    const char *item_status; /* NULL: no item */
    const char *terminal;
    const char *status;
    const char *details; /* as JSON */
};

static void test_endings(void **state) {
    (void)state;
    static const char filtered[] = "{\"reason\":\"content_filter\"}";
    static const char limited[] = "{\"reason\":\"max_output_tokens\"}";
    static const struct ending endings[] = {
        {FM_FINISH_STOP, greeting, "completed", "response.completed", "completed", "null"},
        {FM_FINISH_STOP, no_deltas, "completed", "response.completed", "completed", "null"},
        {FM_FINISH_LENGTH, greeting, "incomplete", "response.incomplete", "incomplete", limited},
        {FM_FINISH_LENGTH, no_deltas, NULL, "response.incomplete", "incomplete", limited},
        {FM_FINISH_CONTENT_FILTER, greeting, "incomplete", "response.incomplete", "incomplete", filtered},
        {FM_FINISH_CANCELLED, greeting, "incomplete", "response.incomplete", "cancelled", "null"},
        {FM_FINISH_CANCELLED, no_deltas, NULL, "response.incomplete", "cancelled", "null"},
        {FM_FINISH_FAILED, greeting, "incomplete", "response.failed", "failed", "null"},
        {FM_FINISH_FAILED, no_deltas, NULL, "response.failed", "failed", "null"},
    };
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const struct ending *ending = &endings[i];
        struct fm_error error;
        fm_fail(&error, FM_TIMEOUT, "The total limit of 5 ms fired.");
        struct script script = {.surface = &fm_surface_responses,
                                .deltas = ending->deltas,
                                .finish = ending->finish,
                                .error = ending->finish >= FM_FINISH_CANCELLED ? &error : NULL};
        struct stream stream;
        struct json_object *object = run_both(&script, &stream);
        bool failed = ending->finish == FM_FINISH_FAILED;
        struct walk walk = walk_stream(&stream, ending->item_status, failed, ending->terminal);
        assert_string_equal(str_at(walk.last, "status"), ending->status);
        assert_json(walk.last, "incomplete_details", ending->details);
        assert_int_equal(at(walk.last, "completed_at") != NULL, ending->finish == FM_FINISH_STOP);
        assert_int_equal(at(walk.last, "error") != NULL, failed);
        assert_true(json_object_equal(walk.last, object));
        if (ending->deltas == greeting) {
            assert_string_equal(walk.done_text, GREETING);
        }
        json_object_put(object);
        stream_free(&stream);
    }
}

static void test_failure(void **state) {
    (void)state;
    struct fm_error error;
    fm_fail(&error, FM_INTERNAL, "The engine died.");
    struct script script = {.surface = &fm_surface_responses,
                            .body = "{\"input\":\"hi\",\"stream\":true}",
                            .deltas = greeting,
                            .finish = FM_FINISH_FAILED,
                            .error = &error};
    struct stream stream;
    struct json_object *object = run(&script, &stream);
    struct json_object *event = stream.events[stream.count - 2];
    assert_string_equal(str_at(event, "type"), "error");
    assert_string_equal(str_at(event, "code"), "server_error");
    assert_string_equal(str_at(event, "message"), "The engine died.");
    assert_true(json_object_object_get_ex(event, "param", NULL));
    const char expected[] =
        "{\"type\":\"server_error\",\"code\":\"server_error\",\"message\":\"The engine died.\",\"param\":null}";
    assert_json(event, "error", expected);
    assert_json(object, "error", expected);
    json_object_put(object);
    stream_free(&stream);
}

/* A failure without an error is still a failure. */
static void test_failure_without_error(void **state) {
    (void)state;
    struct script script = {.surface = &fm_surface_responses,
                            .body = "{\"input\":\"hi\",\"stream\":true}",
                            .deltas = no_deltas,
                            .finish = FM_FINISH_FAILED};
    struct stream stream;
    struct json_object *object = run(&script, &stream);
    assert_string_equal(str_at(stream.events[2], "error.code"), "server_error");
    assert_string_equal(str_at(stream.events[3], "response.error.code"), "server_error");
    json_object_put(object);
    stream_free(&stream);
}

static void test_never_opened(void **state) {
    (void)state;
    struct fm_error error;
    fm_fail(&error, FM_CONTEXT_OVERFLOW, "Too long.");
    for (int finish = FM_FINISH_CANCELLED; finish <= FM_FINISH_FAILED; finish++) {
        struct script script = {.surface = &fm_surface_responses,
                                .body = "{\"input\":\"hi\",\"stream\":true}",
                                .finish = (enum fm_finish)finish,
                                .error = &error};
        struct stream stream;
        struct json_object *object = run(&script, &stream);
        assert_int_equal(stream.count, 0);
        check_response(object);
        json_object_put(object);
    }
}

/* ---- what is echoed ---- */

static void test_defaults(void **state) {
    (void)state;
    struct script script = {
        .surface = &fm_surface_responses, .body = "{\"input\":\"hi\"}", .deltas = greeting, .finish = FM_FINISH_STOP};
    struct stream stream;
    struct json_object *object = run(&script, &stream);
    static const char *const expected[][2] = {
        {"model", "\"tiny\""},
        {"tools", "[]"},
        {"tool_choice", "\"auto\""},
        {"truncation", "\"disabled\""},
        {"parallel_tool_calls", "true"},
        {"text", "{\"format\":{\"type\":\"text\"},\"verbosity\":\"medium\"}"},
        {"top_p", "1"},
        {"temperature", "1"},
        {"presence_penalty", "0"},
        {"frequency_penalty", "0"},
        {"top_logprobs", "0"},
        {"store", "true"},
        {"background", "false"},
        {"service_tier", "\"default\""},
        {"reasoning", "{\"effort\":null,\"summary\":null}"},
        {"metadata", "{}"},
        {"instructions", "null"},
        {"previous_response_id", "null"},
        {"max_output_tokens", "null"},
        {"max_tool_calls", "null"},
        {"safety_identifier", "null"},
        {"prompt_cache_key", "null"},
        {"access_programs", "null"},
        {"error", "null"},
        {"incomplete_details", "null"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_json(object, expected[i][0], expected[i][1]);
    }
    json_object_put(object);
}

static void test_echo(void **state) {
    (void)state;
    struct script script = {
        .surface = &fm_surface_responses,
        .body = "{\"input\":\"hi\",\"instructions\":\"be \\u0000 \\\"brief\\\"\",\"metadata\":{\"a\":\"\xc3\xa9/\"},"
                "\"temperature\":0.25,\"top_p\":0.1,\"max_output_tokens\":9,\"max_tool_calls\":3,"
                "\"parallel_tool_calls\":false,\"tool_choice\":\"none\",\"text\":{\"verbosity\":\"low\"},"
                "\"safety_identifier\":\"s\",\"prompt_cache_key\":\"k\",\"service_tier\":\"flex\",\"user\":\"u\","
                "\"seed\":4,\"stop\":\"x\",\"presence_penalty\":0.5,\"frequency_penalty\":-1,\"top_logprobs\":7,"
                "\"stream\":true}",
        .deltas = greeting,
        .finish = FM_FINISH_STOP};
    struct stream stream;
    struct json_object *object = run(&script, &stream);
    static const char *const expected[][2] = {
        {"instructions", "\"be \\u0000 \\\"brief\\\"\""},
        {"metadata", "{\"a\":\"\xc3\xa9/\"}"},
        {"temperature", "0.25"},
        {"top_p", "0.1"},
        {"max_output_tokens", "9"},
        {"max_tool_calls", "3"},
        {"parallel_tool_calls", "false"},
        {"tool_choice", "\"none\""},
        {"text", "{\"format\":{\"type\":\"text\"},\"verbosity\":\"low\"}"},
        {"safety_identifier", "\"s\""},
        {"prompt_cache_key", "\"k\""},
        {"service_tier", "\"default\""},
        {"presence_penalty", "0.5"},
        {"frequency_penalty", "-1"},
        {"top_logprobs", "7"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_json(object, expected[i][0], expected[i][1]);
        assert_json(at(stream.events[0], "response"), expected[i][0], expected[i][1]);
    }
    walk_stream(&stream, "completed", false, "response.completed");
    json_object_put(object);
    stream_free(&stream);
}

/* Messages left out of the prompt: reported from the first event on, with or without a schema report. */
static void test_dropped_messages(void **state) {
    (void)state;
    static const struct {
        const char *more; /* of the body */
        int64_t dropped;
        const char *fm;
    } rows[] = {
        {"", 0, "null"},
        {"", 3, "{\"dropped_messages\":3}"},
        {",\"fm\":{\"schema_report\":true}", 0, "{\"schema\":null}"},
        {",\"fm\":{\"schema_report\":true}", 2, "{\"schema\":null,\"dropped_messages\":2}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char body[128];
        snprintf(body, sizeof body, "{\"input\":\"hi\",\"stream\":true,\"truncation\":\"auto\"%s}", rows[i].more);
        struct script script = {.surface = &fm_surface_responses,
                                .body = body,
                                .deltas = greeting,
                                .finish = FM_FINISH_STOP,
                                .dropped = rows[i].dropped};
        struct stream stream;
        struct json_object *object = run(&script, &stream);
        assert_json(object, "truncation", "\"auto\"");
        assert_json(object, "fm", rows[i].fm);
        assert_json(stream.events[0], "response.truncation", "\"auto\"");
        assert_json(stream.events[0], "response.fm", rows[i].fm);
        json_object_put(object);
        stream_free(&stream);
    }
}

static void test_echo_of_a_format(void **state) {
    (void)state;
    static const struct {
        const char *text; /* the parameter's JSON */
        const char *echo;
    } rows[] = {
        {"{}", "{\"type\":\"text\"}"},
        {"{\"format\":{\"type\":\"text\"}}", "{\"type\":\"text\"}"},
        {"{\"format\":{\"type\":\"json_object\"}}", "{\"type\":\"json_object\"}"},
        {"{\"format\":{\"schema\":{\"b\":[1.50,null],\"a\":{}},\"name\":\"n\",\"type\":\"json_schema\"}}",
         "{\"type\":\"json_schema\",\"name\":\"n\",\"description\":null,\"strict\":false,"
         "\"schema\":{\"b\":[1.50,null],\"a\":{}}}"},
        {"{\"format\":{\"type\":\"json_schema\",\"name\":\"n\",\"schema\":{},\"strict\":true,\"description\":\"d/\"}}",
         "{\"type\":\"json_schema\",\"name\":\"n\",\"description\":\"d/\",\"strict\":true,\"schema\":{}}"},
        {"{},\"fm\":{\"grammar\":{\"syntax\":\"lark\",\"definition\":\"x\"}}", "{\"type\":\"text\"}"},
        {"{},\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"n\",\"schema\":{}}}",
         "{\"type\":\"json_schema\",\"name\":\"n\",\"description\":null,\"strict\":false,\"schema\":{}}"},
        {"null,\"response_format\":{\"type\":\"json_schema\",\"name\":\"n\",\"schema\":{},\"strict\":true}",
         "{\"type\":\"json_schema\",\"name\":\"n\",\"description\":null,\"strict\":true,\"schema\":{}}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char body[256];
        snprintf(body, sizeof body, "{\"input\":\"hi\",\"stream\":true,\"text\":%s}", rows[i].text);
        struct script script = {
            .surface = &fm_surface_responses, .body = body, .deltas = greeting, .finish = FM_FINISH_STOP};
        struct stream stream;
        struct json_object *object = run(&script, &stream);
        assert_json(object, "text.format", rows[i].echo);
        assert_json(stream.events[0], "response.text.format", rows[i].echo);
        walk_stream(&stream, "completed", false, "response.completed");
        json_object_put(object);
        stream_free(&stream);
    }
}

/* A schema is kept only as its text, and once. */
static void test_memory_of_a_format(void **state) {
    (void)state;
    static const char head[] =
        "{\"input\":\"hi\",\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"n\",\"schema\":";
    static char body[70000];
    int len = snprintf(body, sizeof body, "%s{\"title\":\"", head);
    memset(body + len, 'x', 65536);
    snprintf(body + len + 65536, sizeof body - (size_t)len - 65536, "\"}}}}");
    struct fm_request request = request_of(&fm_surface_responses, body);
    assert_in_range(request.echo.len, 65536, 65536 + 1024);
    assert_in_range(request.job_members.len, 65536, 65536 + 1024); /* it is freed when the job is sent */
    fm_request_free(&request);
}

/* ---- the schema report ---- */

#define SCHEMA_BODY "\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"n\",\"schema\":{}}}"
#define REPORT      "\"enforced\":[\"type\"],\"checked\":[\"properties.a.uniqueItems\"]"

static void test_report(void **state) {
    (void)state;
    static const struct {
        const char *format; /* members beside input */
        const char *report;
        const char *mismatch;
        enum fm_finish finish;
        const char *before; /* `fm` in response.created */
        const char *after;
    } rows[] = {
        {"\"text\":null", NULL, NULL, FM_FINISH_STOP, "{\"schema\":null}", "{\"schema\":null}"},
        {"\"text\":{\"format\":{\"type\":\"json_object\"}}", NULL, NULL, FM_FINISH_STOP, "{\"schema\":null}",
         "{\"schema\":null}"},
        {SCHEMA_BODY, NULL, NULL, FM_FINISH_STOP,
         "{\"schema\":{\"enforced\":[],\"checked\":[],\"valid\":null,\"error\":null}}",
         "{\"schema\":{\"enforced\":[],\"checked\":[],\"valid\":true,\"error\":null}}"},
        {SCHEMA_BODY, REPORT, NULL, FM_FINISH_STOP, "{\"schema\":{" REPORT ",\"valid\":null,\"error\":null}}",
         "{\"schema\":{" REPORT ",\"valid\":true,\"error\":null}}"},
        {SCHEMA_BODY, REPORT, "a: \"twice\"", FM_FINISH_STOP, "{\"schema\":{" REPORT ",\"valid\":null,\"error\":null}}",
         "{\"schema\":{" REPORT ",\"valid\":false,\"error\":\"a: \\\"twice\\\"\"}}"},
        {SCHEMA_BODY, REPORT, "a", FM_FINISH_LENGTH, "{\"schema\":{" REPORT ",\"valid\":null,\"error\":null}}",
         "{\"schema\":{" REPORT ",\"valid\":null,\"error\":null}}"},
        {SCHEMA_BODY, REPORT, NULL, FM_FINISH_CANCELLED, "{\"schema\":{" REPORT ",\"valid\":null,\"error\":null}}",
         "{\"schema\":{" REPORT ",\"valid\":null,\"error\":null}}"},
        {SCHEMA_BODY, REPORT, NULL, FM_FINISH_FAILED, "{\"schema\":{" REPORT ",\"valid\":null,\"error\":null}}",
         "{\"schema\":{" REPORT ",\"valid\":null,\"error\":null}}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char body[256];
        snprintf(body, sizeof body, "{\"input\":\"hi\",\"stream\":true,\"fm\":{\"schema_report\":true},%s}",
                 rows[i].format);
        struct script script = {.surface = &fm_surface_responses,
                                .body = body,
                                .deltas = greeting,
                                .finish = rows[i].finish,
                                .report = rows[i].report,
                                .mismatch = rows[i].mismatch};
        struct stream stream;
        struct json_object *object = run(&script, &stream);
        assert_int_equal(json_object_object_length(object), 33);
        /* a slow host, which reads at the end, gets this value too */
        assert_json(stream.events[0], "response.fm", rows[i].before);
        assert_json(stream.events[stream.count - 1], "response.fm", rows[i].after);
        assert_json(object, "fm", rows[i].after);
        json_object_put(object);
        stream_free(&stream);
    }
}

/* Not requested: the report is absent, whatever the engine sends. */
static void test_no_report(void **state) {
    (void)state;
    static const char *const asked[] = {"", ",\"fm\":{}", ",\"fm\":{\"schema_report\":false}",
                                        ",\"fm\":{\"schema_report\":null}"};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        char body[256];
        snprintf(body, sizeof body, "{\"input\":\"hi\"," SCHEMA_BODY "%s}", asked[i]);
        struct script script = {.surface = &fm_surface_responses,
                                .body = body,
                                .deltas = greeting,
                                .finish = FM_FINISH_STOP,
                                .mismatch = "a"};
        struct stream stream;
        struct json_object *object = run(&script, &stream);
        check_response(object);
        json_object_put(object);
    }
}

/* A mismatch reported by an engine is kept up to the length of an error's detail, in whole characters. */
static void test_long_mismatch(void **state) {
    (void)state;
    char reason[800] = "";
    size_t len = 0;
    while (len + 4 < sizeof reason) {
        memcpy(reason + len, "\xe2\x82\xac", 4);
        len += 3;
    }
    struct script script = {.surface = &fm_surface_responses,
                            .body = "{\"input\":\"hi\",\"fm\":{\"schema_report\":true}," SCHEMA_BODY "}",
                            .deltas = greeting,
                            .finish = FM_FINISH_STOP,
                            .mismatch = reason};
    struct stream stream;
    struct json_object *object = run(&script, &stream);
    assert_int_equal(json_object_get_string_len(at(object, "fm.schema.error")), 510);
    assert_memory_equal(str_at(object, "fm.schema.error"), reason, 510);
    json_object_put(object);
}

/* ---- limits ---- */

/* Each event holds one delta, not the whole text so far. Text above 4 MiB is refused, and the earlier text is kept. */
static void test_growth(void **state) {
    (void)state;
    static char piece[1 << 16];
    memset(piece, 'x', sizeof piece);
    struct fm_request request = request_of(&fm_surface_responses, "{\"input\":\"hi\",\"stream\":true}");
    struct fm_answer answer;
    struct fm_error error;
    struct stream stream = {.count = 0};
    assert_int_equal(fm_answer_init(&answer, &fm_surface_responses, &request, "tiny", &error), FM_OK);
    assert_null(request.echo.data); /* the schema was taken over */
    fm_answer_open(&answer, 1);
    assert_true(fm_answer_append(&answer, "", 0));
    pull(&answer, &stream);
    assert_int_equal(stream.count, 2);
    for (int i = 0; i < 64; i++) {
        assert_true(fm_answer_append(&answer, piece, sizeof piece));
        assert_int_equal(fm_answer_backlog(&answer, &stream.cursor), sizeof piece);
        assert_true(pull(&answer, &stream) < sizeof piece + 3000);
        assert_int_equal(fm_answer_backlog(&answer, &stream.cursor), 0);
        stream_free(&stream);
    }
    assert_false(fm_answer_append(&answer, "y", 1));
    assert_int_equal(pull(&answer, &stream), 0);
    assert_int_equal(answer.output.len, 1u << 22);
    fm_fail(&error, FM_INTERNAL, "The answer is longer than 4 MiB.");
    fm_answer_finish(&answer, FM_FINISH_FAILED, &error);
    assert_int_equal(fm_answer_backlog(&answer, &stream.cursor), 1u << 22);
    assert_true(pull(&answer, &stream) > 4u << 22); /* text.done, part.done, item.done, failed */
    stream_free(&stream);
    fm_answer_free(&answer);
}

/* The 4 MiB are counted as JSON, because events contain JSON. */
static void test_growth_escaped(void **state) {
    (void)state;
    static char piece[1 << 16];
    memset(piece, 1, sizeof piece); /* each byte becomes \u0001 */
    struct fm_request request = request_of(&fm_surface_responses, "{\"input\":\"hi\"}");
    struct fm_answer answer;
    struct fm_error error;
    assert_int_equal(fm_answer_init(&answer, &fm_surface_responses, &request, "tiny", &error), FM_OK);
    fm_answer_open(&answer, 1);
    int taken = 0;
    while (fm_answer_append(&answer, piece, sizeof piece)) {
        taken++;
    }
    assert_int_equal(taken, 64 / 6);
    assert_false(fm_answer_append(&answer, "y", 1)); /* the text would fit, but text before it would be missing */
    assert_int_equal(answer.output.len, (size_t)taken * sizeof piece);
    fm_answer_free(&answer);
}

/* Collected text goes out in deltas of at most 32 KiB, cut between characters. */
static void test_long_delta(void **state) {
    (void)state;
    struct fm_request request = request_of(&fm_surface_responses, "{\"input\":\"hi\",\"stream\":true}");
    struct fm_answer answer;
    struct fm_error error;
    struct stream stream = {.count = 0};
    assert_int_equal(fm_answer_init(&answer, &fm_surface_responses, &request, "tiny", &error), FM_OK);
    fm_answer_open(&answer, 1);
    for (int i = 0; i < 20000; i++) {
        assert_true(fm_answer_append(&answer, "\xE2\x82\xAC", 3));
    }
    pull(&answer, &stream);
    assert_int_equal(stream.count, 6);
    assert_int_equal(json_object_get_string_len(at(stream.events[4], "delta")), 32766);
    assert_int_equal(json_object_get_string_len(at(stream.events[5], "delta")), 60000 - 32766);
    stream_free(&stream);
    fm_answer_free(&answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endings),
        cmocka_unit_test(test_failure),
        cmocka_unit_test(test_failure_without_error),
        cmocka_unit_test(test_never_opened),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_echo),
        cmocka_unit_test(test_dropped_messages),
        cmocka_unit_test(test_echo_of_a_format),
        cmocka_unit_test(test_memory_of_a_format),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_no_report),
        cmocka_unit_test(test_long_mismatch),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_growth_escaped),
        cmocka_unit_test(test_long_delta),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + cmocka_run_group_tests(tests, with_slow_host, NULL);
}
