/*
 * Fuzzes the surface's check of a request body, for all APIs. The first byte chooses the API, and whether the rest is
 * the body's text or a list of choices that builds a body (which gets deeper into the tables). The error for a refused
 * body can be sent. An accepted body makes a job that the engines' reader accepts. Ignored members have no effect:
 * without them, the body is the same request.
 */
#include "engine/kit/job_read.h"
#include "protocol/json_tree.h"
#include "surface/ignored.h"
#include "surface/request.h"
#include "surface/surface.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>

#define TEXT_MAX   (64u << 20)
#define BODY_MAX   1000000u
#define DEPTH_MAX  6
#define LIMITS_MAX 86400000
#define DECISIONS  250 /* this first byte chooses decisions, with a body as text */
#define COMPACT    251 /* this first byte chooses compaction, with a body as text */
#define EMBEDDINGS 252 /* first bytes from here on choose embeddings */

/* ---- building a body ---- */

static const char *const words[] = {
    "input",
    "instructions",
    "model",
    "stream",
    "temperature",
    "top_p",
    "seed",
    "stop",
    "metadata",
    "store",
    "tools",
    "max_output_tokens",
    "max_tokens",
    "max_completion_tokens",
    "max_tool_calls",
    "messages",
    "n",
    "user",
    "fm",
    "queue_timeout_ms",
    "first_token_timeout_ms",
    "no_progress_timeout_ms",
    "timeout_ms",
    "service_tier",
    "text",
    "format",
    "type",
    "verbosity",
    "reasoning",
    "effort",
    "summary",
    "generate_summary",
    "truncation",
    "background",
    "include",
    "tool_choice",
    "parallel_tool_calls",
    "stream_options",
    "include_usage",
    "include_obfuscation",
    "response_format",
    "logprobs",
    "top_logprobs",
    "logit_bias",
    "modalities",
    "presence_penalty",
    "frequency_penalty",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "previous_response_id",
    "conversation",
    "prompt",
    "context_management",
    "moderation",
    "prompt_cache_options",
    "reasoning_effort",
    "functions",
    "function_call",
    "prediction",
    "audio",
    "web_search_options",
    "role",
    "content",
    "id",
    "status",
    "phase",
    "refusal",
    "annotations",
    "name",
    "tool_calls",
    "message",
    "developer",
    "system",
    "assistant",
    "tool",
    "function",
    "input_text",
    "output_text",
    "input_image",
    "image_url",
    "function_call_output",
    "item_reference",
    "auto",
    "none",
    "low",
    "medium",
    "high",
    "in_memory",
    "24h",
    "default",
    "flex",
    "disabled",
    "",
    "function_call",
    "call_id",
    "arguments",
    "output",
    "tool_call_id",
    "parameters",
    "description",
    "strict",
    "required",
    "allowed_tools",
    "mode",
    "f",
    "return_progress",
};

static const char *const numbers[] = {
    "0",
    "1",
    "-1",
    "2",
    "0.5",
    "-0",
    "-0.0",
    "1.0",
    "2.0000000001",
    "1e-400",
    "1e308",
    "4",
    "5",
    "64",
    "65",
    "512",
    "2147483647",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "86400000",
    "86400001",
    "123456789012345678901234567890",
    "1e0",
    "1.5e1",
    "100e-2",
};

static void build_value(struct choices *from, struct fm_json_writer *w, unsigned depth);

static void build_key(struct choices *from, struct fm_json_writer *w) {
    unsigned choice = choose(from);
    if (choice < COUNT(words)) {
        fm_json_key(w, words[choice]);
        return;
    }
    size_t len = choice % 100;
    const char *raw = choose_bytes(from, &len);
    fm_json_string(w, raw, len);
    fm_buf_append_char(w->buf, ':');
    w->comma = false;
}

static void build_object(struct choices *from, struct fm_json_writer *w, unsigned depth) {
    fm_json_object_begin(w);
    for (size_t left = choose_of(from, 20); left; left--) {
        build_key(from, w);
        build_value(from, w, depth + 1);
    }
    fm_json_object_end(w);
}

static void build_array(struct choices *from, struct fm_json_writer *w, unsigned depth) {
    fm_json_array_begin(w);
    for (size_t left = choose_of(from, 7); left; left--) {
        build_value(from, w, depth + 1);
    }
    fm_json_array_end(w);
}

/* Writes a value as long as the limits for lengths. */
static void build_long(struct choices *from, struct fm_json_writer *w) {
    static const char *const characters[] = {"x", "\xC3\xA9"};
    static const size_t lengths[] = {63, 64, 65, 511, 512, 513, 200};
    const char *character = characters[choose_of(from, COUNT(characters))];
    struct fm_buf text;
    fm_buf_init(&text, TEXT_MAX);
    for (size_t left = lengths[choose_of(from, COUNT(lengths))]; left; left--) {
        fm_buf_append_str(&text, character);
    }
    fm_json_string(w, text.data, text.len);
    fm_buf_free(&text);
}

static void build_raw(struct choices *from, struct fm_json_writer *w) {
    size_t len = choose_of(from, 40);
    const char *raw = choose_bytes(from, &len);
    fm_json_string(w, raw, len);
}

/* Writes a message or a part: the required members, and some more. */
static void build_turn(struct choices *from, struct fm_json_writer *w, unsigned depth) {
    static const char *const kinds[] = {"type", "role"};
    static const char *const contents[] = {"content", "text", "refusal"};
    fm_json_object_begin(w);
    fm_json_key_str(w, kinds[choose_of(from, COUNT(kinds))], words[choose_of(from, COUNT(words))]);
    fm_json_key(w, contents[choose_of(from, COUNT(contents))]);
    build_value(from, w, depth + 1);
    for (size_t left = choose_of(from, 3); left; left--) {
        build_key(from, w);
        build_value(from, w, depth + 1);
    }
    fm_json_object_end(w);
}

static void build_value(struct choices *from, struct fm_json_writer *w, unsigned depth) {
    unsigned choice = choose(from);
    const char *number = numbers[choice / 16 % COUNT(numbers)];
    switch (choice % 16) {
    case 0: fm_json_null(w); break;
    case 1: fm_json_bool(w, true); break;
    case 2: fm_json_bool(w, false); break;
    case 3: fm_json_raw(w, number, strlen(number)); break;
    case 4:
        number = numbers[choose_of(from, COUNT(numbers))];
        fm_json_raw(w, number, strlen(number));
        break;
    case 5:
    case 6: fm_json_str(w, words[choose_of(from, COUNT(words))]); break;
    case 7: build_long(from, w); break;
    case 8:
    case 9: build_raw(from, w); break;
    default:
        if (depth >= DEPTH_MAX) {
            fm_json_null(w);
        } else if (choice % 16 < 12) {
            build_array(from, w, depth);
        } else if (choice % 16 < 14) {
            build_turn(from, w, depth);
        } else {
            build_object(from, w, depth);
        }
    }
}

static const struct api {
    const struct fm_surface *surface;
    const char *needed; /* the required members, as JSON */
    bool has_usage;     /* it has stream_options.include_usage */
} apis[] = {
    {&fm_surface_responses, "\"input\":\"x\"", false},
    {&fm_surface_chat, "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]", true},
    {&fm_surface_completions, "\"prompt\":\"x\"", true},
    {&fm_surface_input_tokens, "\"input\":\"x\"", false},
    {&fm_surface_embeddings, "\"input\":\"x\"", false},
    {&fm_surface_compact, "\"input\":\"x\",\"model\":\"x\"", false},
    {&fm_surface_decisions, "\"input\":\"x\",\"questions\":[{\"type\":\"predicate\",\"instructions\":\"x\"}]", false},
};

/* Half of the bodies begin with the members that the API needs. */
static void build_body(struct choices *from, const struct api *api, struct fm_buf *body) {
    struct fm_json_writer w = fm_json_writer_on(body);
    unsigned start = choose(from);
    fm_json_object_begin(&w);
    if (start & 1) {
        fm_json_raw(&w, api->needed, strlen(api->needed));
    }
    for (unsigned left = start / 2 % 32; left && choices_left(from); left--) {
        build_key(from, &w);
        build_value(from, &w, 1);
    }
    fm_json_object_end(&w);
}

/* ---- what must hold ---- */

static void expect_refusal(const struct fm_error *error, enum fm_code code) {
    HOLDS_OR(code == FM_INVALID_REQUEST && error->code == code, "%s", fm_code_name(code));
    bool nameless = strstr(error->detail, "parameter: ''") != NULL; /* {"":1} has an empty path */
    HOLDS(error->reason && *error->detail);                    /* "" means null */
    HOLDS_OR(*error->param || nameless, "%s", error->detail);
    HOLDS(memchr(error->param, '\0', sizeof error->param) && memchr(error->detail, '\0', sizeof error->detail));
    HOLDS_OR(is_utf8(error->param, strlen(error->param)), "%s", error->param);
    HOLDS_OR(is_utf8(error->detail, strlen(error->detail)), "%s", error->detail);
    struct fm_buf buf;
    fm_buf_init(&buf, TEXT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_error_write(error, &w);
    json_object_put(json_must_parse(buf.data, buf.len));
    fm_buf_free(&buf);
}

/* Parses the members of an object, given without its braces. */
static struct json_object *parse_members(const struct fm_buf *members, const char *before) {
    struct fm_buf text;
    fm_buf_init(&text, TEXT_MAX);
    fm_buf_append_str(&text, before);
    fm_buf_append(&text, members->data, members->len);
    fm_buf_append_char(&text, '}');
    struct json_object *object = json_must_parse(text.data, text.len);
    HOLDS(json_object_is_type(object, json_type_object));
    fm_buf_free(&text);
    return object;
}

/* Engines refuse a job that breaks ENGINE.md. The surface must never accept a request that makes such a job. */
static void expect_job(const struct fm_buf *members) {
    struct fm_error error = {.code = FM_OK};
    struct fm_kit_job job = {0};
    struct json_object *params = parse_members(members, "{\"job\":1,");
    enum fm_code code = fm_kit_job_read(&job, params, &error);
    HOLDS_OR(code == FM_OK, "%s", error.detail);
    for (size_t i = 0; i < job.message_count; i++) {
        HOLDS(is_utf8(job.messages[i].content, job.messages[i].content_len));
        HOLDS(is_utf8(job.messages[i].reasoning, job.messages[i].reasoning_len));
    }
    for (size_t i = 0; i < job.question_count; i++) {
        HOLDS(is_utf8(job.questions[i].text.text, job.questions[i].text.len));
        HOLDS(job.questions[i].choice_count >= 2 && job.questions[i].choice_count <= FM_QUESTION_CHOICES_MAX);
    }
    for (size_t i = 0; i < job.input_count; i++) {
        HOLDS(job.inputs[i].len > 0);
        HOLDS(is_utf8(job.inputs[i].text, job.inputs[i].len));
    }
    HOLDS(job.message_count > 0 || job.input_count > 0 || job.prompt);
    HOLDS(is_utf8(job.prompt ? job.prompt : "", job.prompt_len) &&
          is_utf8(job.suffix ? job.suffix : "", job.suffix_len));
    HOLDS(job.max_tokens >= 0 && job.max_tokens <= INT32_MAX);
    for (int i = 0; i < FM_PARAM_COUNT; i++) {
        double value = job.sampling[i];
        HOLDS(value == fm_params[i].neutral || (value >= fm_params[i].least && value <= fm_params[i].most));
    }
    fm_kit_job_free_lists(&job);
    json_object_put(params);
}

/* Checks the job for an engine with all extras, and for an engine without extras, which gets less. */
static void expect_whole_job(struct fm_request *request) {
    for (unsigned has = 0; has < 2; has++) {
        struct fm_buf job;
        fm_buf_init(&job, TEXT_MAX);
        struct fm_json_writer w = fm_json_writer_on(&job);
        if (request->prompt_ends.len > 0) {
            size_t len;
            const char *prompt = fm_request_prompt(request, (size_t)request->choices - 1, &len);
            fm_json_key(&w, "prompt");
            fm_json_string(&w, prompt, len);
        }
        fm_json_raw(&w, request->job_members.data, request->job_members.len);
        size_t before = job.len;
        fm_request_write_extras(request, has ? (1u << FM_EXTRA_COUNT) - 1 : 0, &w);
        expect_job(&job);
        HOLDS(has || job.len == before);
        fm_buf_free(&job);
    }
}

static void expect_ignored(const struct fm_request *request) {
    size_t count = 0;
    for (const char *path = NULL; (path = fm_ignored_next(&request->ignored, path)); count++) {
        HOLDS_OR(strlen(path) <= FM_IGNORED_PATH_MAX && is_utf8(path, strlen(path)), "%s", path);
        HOLDS_OR(strncmp(path, "fm.", 3) != 0, "%s", path);
    }
    HOLDS_OR(count <= FM_IGNORED_MAX + 1, "%zu", count);
}

/* `body` is the rest of the body after the check. */
static void expect_same_request(const struct fm_request *request, const struct api *api, struct json_object *body) {
    struct fm_error error = {.code = FM_OK};
    struct fm_request again;
    enum fm_code code = api->surface->parse(body, &again, &error);
    HOLDS_OR(code == FM_OK, "%s", error.detail);
    HOLDS(again.ignored.len == 0);
    HOLDS(again.job_members.len == request->job_members.len && again.echo.len == request->echo.len);
    HOLDS(again.job_members.len == 0 ||
          memcmp(again.job_members.data, request->job_members.data, again.job_members.len) == 0);
    fm_request_free(&again);
}

static bool is_limit(int64_t value) {
    return value >= 1 && value <= LIMITS_MAX;
}

static void expect_request(struct fm_request *request, const struct api *api, size_t body_len) {
    HOLDS(is_limit(request->limits.queue_ms) && is_limit(request->limits.first_token_ms));
    HOLDS(is_limit(request->limits.no_progress_ms) && is_limit(request->limits.total_ms));
    HOLDS(api->has_usage || !request->include_usage);
    HOLDS(api->surface->event_method || !request->stream);
    HOLDS(request->stream || !request->progress);
    HOLDS(request->choices >= 0 && request->choices <= (request->prompt_ends.len > 0 ? 2048 : 128));
    HOLDS(!api->surface->check_cut || request->choices == 2); /* an answer that is cut is tried once more */
    HOLDS(request->prompts.len <= body_len);
    HOLDS(request->input_count <= FM_INPUTS_MAX && request->dimensions >= 0 && request->dimensions <= INT32_MAX);
    HOLDS(!request->model || is_utf8(request->model, strlen(request->model)));
    /* request.c's maximum depends on this: a call as a separate message is longer, and so are tools in the echo */
    size_t most = request->questions ? 4 * body_len : body_len + body_len / 6; /* a question has its choices twice */
    HOLDS_OR(request->job_members.len <= most + 512, "%zu of %zu", request->job_members.len, body_len);
    HOLDS_OR(request->echo.len <= 3 * body_len + 1024, "%zu of %zu", request->echo.len, body_len);
    if (!request->unresolved) { /* without messages here, they come from the store */
        expect_whole_job(request);
    }
    json_object_put(parse_members(&request->echo, "{"));
}

static void run(const struct api *api, const char *text, size_t len) {
    size_t offset = 0;
    if (fm_json_check(text, len, FM_JSON_VALUES_MAX, &offset)) {
        return;
    }
    struct json_object *body = NULL;
    struct fm_buf scratch;
    fm_buf_init(&scratch, TEXT_MAX);
    HOLDS(fm_json_tree(text, len, &scratch, &body));
    fm_buf_free(&scratch);
    if (json_object_is_type(body, json_type_object)) { /* the front has already checked that it is an object */
        struct fm_error error = {.code = FM_OK};
        struct fm_request request;
        enum fm_code code = api->surface->parse(body, &request, &error);
        if (code == FM_OK) {
            expect_ignored(&request);
            expect_same_request(&request, api, body);
        }
        json_object_put(body); /* the request must keep nothing of the body */
        body = NULL;
        if (code == FM_OK) {
            expect_request(&request, api, len);
            fm_request_free(&request);
            fm_request_free(&request); /* freeing it is harmless */
        } else {
            expect_refusal(&error, code);
        }
    }
    json_object_put(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct choices from = {data, data + size};
    unsigned mode = choose(&from);
    bool by_text = mode & 2 || mode >= DECISIONS;
    /* later additions have the modes 4 to 7 */
    size_t chosen = mode >= EMBEDDINGS ? 4 : mode == COMPACT ? 5 : mode == DECISIONS ? 6 : (mode & 1) + (mode / 4 == 1 ? 2 : 0);
    const struct api *api = &apis[chosen];
    if (by_text) {
        size_t len = choices_left(&from);
        const char *text = choose_bytes(&from, &len);
        run(api, text, len);
        return 0;
    }
    struct fm_buf body;
    fm_buf_init(&body, BODY_MAX);
    build_body(&from, api, &body);
    if (!body.failed) {
        run(api, body.data, body.len);
    }
    fm_buf_free(&body);
    return 0;
}
