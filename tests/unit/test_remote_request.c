/* The body of the request for a job, in each dialect: the text that is sent, or the member that can't be sent. */
#include "engine/kit/job_read.h"
#include "engine/remote/request.h"

#include "wire.h"

#include <json-c/json.h>

#define R FM_DIALECT_RESPONSES
#define C FM_DIALECT_CHAT
#define M FM_DIALECT_MESSAGES

#define HI          "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define C_HI        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"
#define C_END       "\"stream\":true,\"stream_options\":{\"include_usage\":true}}"
#define R_INPUT(in) "{\"model\":\"m\",\"input\":[" in "],"
#define R_TEXT(role, type, text)                                                                                       \
    "{\"type\":\"message\",\"role\":\"" role "\",\"content\":[{\"type\":\"" type "\",\"text\":\"" text "\"}]}"
#define R_HI         R_INPUT(R_TEXT("user", "input_text", "hi"))
#define R_END        "\"include\":[\"reasoning.encrypted_content\"],\"store\":false,\"stream\":true}"
#define M_TEXT(text) "[{\"type\":\"text\",\"text\":\"" text "\"}]"
#define M_HI         "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":" M_TEXT("hi") "}],"
#define M_END        "\"max_tokens\":8192,\"stream\":true}"
#define TALK                                                                                                           \
    "\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"u\"},"                     \
    "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"},"           \
    "{\"id\":\"2\",\"name\":\"f\",\"arguments\":\"\"}]},"                                                              \
    "{\"role\":\"tool\",\"content\":\"x\",\"tool_call_id\":\"1\"},{\"role\":\"tool\",\"content\":\"y\","               \
    "\"tool_call_id\":\"2\"}]"
#define TOOLS                                                                                                          \
    "\"tools\":[{\"name\":\"f\",\"description\":\"d\",\"parameters\":{\"type\":\"object\"},\"strict\":true},{"         \
    "\"name\":\"g\"}]"
#define PNG "iVBORw0KGgoA"
#define IMAGE                                                                                                          \
    "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\",\"data\":"   \
    "\"" PNG "\"},{\"type\":\"text\",\"text\":\"b\"}]}]"

static const struct row {
    enum fm_dialect_kind dialect;
    const char *job;  /* the job's members */
    const char *body; /* the `body` of the configuration; NULL: none */
    const char *out;
} rows[] = {
    {C, HI, NULL, C_HI C_END},
    {R, HI, NULL, R_HI R_END},
    {M, HI, NULL, M_HI M_END},
    {C,
     HI ",\"max_tokens\":5,\"temperature\":0,\"top_p\":0.5,\"seed\":3,\"presence_penalty\":1,\"frequency_penalty\":-1",
     NULL,
     C_HI "\"temperature\":0,\"top_p\":0.5,\"presence_penalty\":1,\"frequency_penalty\":-1,\"seed\":3,\"max_tokens\":"
          "5," C_END},
    {R, HI ",\"max_tokens\":5,\"temperature\":0,\"top_p\":0.5,\"presence_penalty\":1", NULL,
     R_HI "\"temperature\":0,\"top_p\":0.5,\"presence_penalty\":1,\"max_output_tokens\":5," R_END},
    {M, HI ",\"max_tokens\":5,\"temperature\":0,\"top_p\":0.5,\"top_k\":4,\"stop\":[\"a\",\"b\"]", NULL,
     M_HI
     "\"max_tokens\":5,\"temperature\":0,\"top_p\":0.5,\"top_k\":4,\"stop_sequences\":[\"a\",\"b\"],\"stream\":true}"},
    {C, HI ",\"logit_bias\":[[7,1],[8,-100],[7,2]],\"stop\":[\"x\"],\"logprobs\":2", NULL,
     C_HI "\"logit_bias\":{\"8\":-100,\"7\":2},\"logprobs\":true,\"top_logprobs\":2,\"stop\":[\"x\"]," C_END},
    {C, HI ",\"top_k\":4,\"min_p\":0.1,\"repeat_penalty\":1.5,\"ignore_eos\":true", NULL,
     C_HI "\"min_p\":0.1,\"repeat_penalty\":1.5,\"ignore_eos\":true,\"top_k\":4,\"repetition_penalty\":1.5," C_END},
    {C, HI ",\"logprobs\":0", NULL, C_HI "\"logprobs\":true," C_END},
    {R, HI ",\"logprobs\":0", NULL,
     R_HI
     "\"include\":[\"reasoning.encrypted_content\",\"message.output_text.logprobs\"],\"store\":false,\"stream\":true}"},
/* parameters that the host named are sent even if they change nothing, and replace those of the configuration */
#define NAMED    "\"temperature\":1,\"top_p\":1,\"presence_penalty\":0,\"frequency_penalty\":0"
#define DEFAULTS "{\"temperature\":0.2,\"top_p\":0.3,\"presence_penalty\":1,\"frequency_penalty\":1,\"top_k\":9}"
    {C, HI "," NAMED ",\"top_k\":0,\"min_p\":0,\"repeat_penalty\":1,\"ignore_eos\":false", DEFAULTS,
     C_HI NAMED ",\"min_p\":0,\"repeat_penalty\":1,\"ignore_eos\":false,\"top_k\":-1,\"repetition_penalty\":1," C_END},
    {R, HI "," NAMED ",\"top_k\":0,\"repeat_penalty\":1,\"ignore_eos\":false", "{\"temperature\":0.2,\"top_p\":0.3}",
     R_HI NAMED "," R_END},
    {M, HI "," NAMED ",\"top_k\":-1", "{\"temperature\":0.2,\"top_p\":0.3,\"top_k\":9}",
     M_HI "\"max_tokens\":8192,\"temperature\":1,\"top_p\":1,\"stream\":true}"},
    {C, HI, "{\"temperature\":0.2}",
     C_HI "\"stream\":true,\"stream_options\":{\"include_usage\":true},\"temperature\":0.2}"},
    {R, HI ",\"logprobs\":2", NULL,
     R_HI "\"include\":[\"reasoning.encrypted_content\",\"message.output_text.logprobs\"],\"top_logprobs\":2,"
          "\"store\":false,\"stream\":true}"},
#define PASSED                                                                                                         \
    "\"prompt_cache_key\":\"k\",\"prompt_cache_retention\":\"24h\",\"safety_identifier\":\"s\",\"user\":\"u\""
    {C, HI ",\"verbosity\":\"low\",\"reasoning_summary\":\"auto\",\"service_tier\":\"flex\"," PASSED,
     "{\"service_tier\":\"default\",\"verbosity\":\"high\"}",
     C_HI "\"verbosity\":\"low\",\"service_tier\":\"flex\"," PASSED "," C_END},
    {R, HI ",\"verbosity\":\"low\",\"reasoning_summary\":\"concise\",\"service_tier\":\"flex\"," PASSED,
     "{\"reasoning\":{\"effort\":\"low\"},\"text\":{\"verbosity\":\"high\"}}",
     R_HI "\"text\":{\"verbosity\":\"low\"},\"reasoning\":{\"summary\":\"concise\",\"effort\":\"low\"},"
          "\"service_tier\":\"flex\"," PASSED "," R_END},
    {M, HI ",\"verbosity\":\"medium\",\"reasoning_summary\":\"auto\",\"service_tier\":\"default\"," PASSED, NULL,
     M_HI "\"max_tokens\":8192,\"service_tier\":\"standard_only\",\"metadata\":{\"user_id\":\"s\"},\"stream\":true}"},
    {M, HI ",\"service_tier\":\"auto\",\"user\":\"u\"", NULL,
     M_HI "\"max_tokens\":8192,\"service_tier\":\"auto\",\"metadata\":{\"user_id\":\"u\"},\"stream\":true}"},
    {M, HI ",\"service_tier\":\"priority\"", NULL, "!service_tier"},
    {M, HI ",\"verbosity\":\"low\"", NULL, "!verbosity"},
    {M, HI ",\"reasoning_summary\":\"concise\"", NULL, "!reasoning_summary"},
    {C, HI ",\"reasoning_summary\":\"concise\"", NULL, "!reasoning_summary"},
    {C, "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"data\":\"" PNG "\",\"detail\":\"low\"}]}]",
     NULL,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":"
     "\"data:image/png;base64," PNG "\",\"detail\":\"low\"}}]}]," C_END},
    {R,
     "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"data\":\"" PNG "\",\"detail\":\"high\"}]}]",
     NULL,
     R_INPUT("{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_image\",\"detail\":\"high\","
             "\"image_url\":\"data:image/png;base64," PNG "\"}]}") R_END},
    {C, HI ",\"reasoning\":{\"effort\":\"high\"}", NULL, C_HI "\"reasoning_effort\":\"high\"," C_END},
    {R, HI ",\"reasoning\":{\"effort\":\"high\"}",
     "{\"reasoning\":{\"summary\":\"auto\",\"effort\":\"low\"},\"user\":\"u\",\"store\":true}",
     R_HI "\"reasoning\":{\"effort\":\"high\",\"summary\":\"auto\"},"
          "\"include\":[\"reasoning.encrypted_content\"],\"store\":false,\"stream\":true,\"user\":\"u\"}"},
    {M, HI ",\"reasoning\":{\"effort\":\"minimal\"}", NULL,
     M_HI "\"thinking\":{\"type\":\"adaptive\"},\"output_config\":{\"effort\":\"low\"}," M_END},
    {M, HI ",\"reasoning\":{\"effort\":\"none\"}", NULL, M_HI "\"thinking\":{\"type\":\"disabled\"}," M_END},
    {M, HI, "{\"max_tokens\":99}", M_HI "\"stream\":true,\"max_tokens\":99}"},
    {C, HI ",\"format\":{\"type\":\"json_object\"}", NULL,
     C_HI "\"response_format\":{\"type\":\"json_object\"}," C_END},
    {C, HI ",\"format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\"},\"strict\":true}", NULL,
     C_HI "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"answer\",\"schema\":{\"type\":"
          "\"object\"},"
          "\"strict\":true}}," C_END},
    {R, HI ",\"format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\"}}",
     "{\"text\":{\"verbosity\":\"low\"}}",
     R_HI "\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"answer\",\"schema\":{\"type\":\"object\"},"
          "\"strict\":false},"
          "\"verbosity\":\"low\"}," R_END},
    {M, HI ",\"format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"array\"}}", NULL,
     M_HI "\"output_config\":{\"format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"array\"}}}," M_END},
    {M, HI ",\"format\":{\"type\":\"json_object\"}", NULL,
     M_HI "\"output_config\":{\"format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\"}}}," M_END},
    {C, HI "," TOOLS, NULL,
     C_HI "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\",\"parameters\":{"
          "\"type\":\"object\"},"
          "\"strict\":true}},{\"type\":\"function\",\"function\":{\"name\":\"g\"}}],\"tool_choice\":\"auto\"," C_END},
    {C, HI "," TOOLS ",\"tool_choice\":{\"mode\":\"required\",\"names\":[\"g\"]},\"parallel_tool_calls\":false", NULL,
     C_HI "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"g\"}}],"
          "\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"g\"}},\"parallel_tool_calls\":false," C_END},
    {R, HI "," TOOLS ",\"tool_choice\":{\"mode\":\"none\"}", NULL,
     R_HI "\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"description\":\"d\",\"parameters\":{\"type\":\"object\"},"
          "\"strict\":true},"
          "{\"type\":\"function\",\"name\":\"g\",\"strict\":false}],\"tool_choice\":\"none\"," R_END},
    {M, HI "," TOOLS ",\"tool_choice\":{\"mode\":\"required\"},\"parallel_tool_calls\":false", NULL,
     M_HI "\"tools\":[{\"name\":\"f\",\"description\":\"d\",\"input_schema\":{\"type\":\"object\"},\"strict\":true},"
          "{\"name\":\"g\",\"input_schema\":{\"type\":\"object\"}}],"
          "\"tool_choice\":{\"type\":\"any\",\"disable_parallel_tool_use\":true}," M_END},
    {M, HI "," TOOLS ",\"tool_choice\":{\"mode\":\"required\",\"names\":[\"g\"]}", NULL,
     M_HI "\"tools\":[{\"name\":\"g\",\"input_schema\":{\"type\":\"object\"}}],\"tool_choice\":{\"type\":\"tool\","
          "\"name\":\"g\"}," M_END},
    {C, TALK, NULL,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"u\"},"
     "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\",\"function\":{"
     "\"name\":\"f\","
     "\"arguments\":\"{\\\"a\\\":1}\"}},{\"id\":\"2\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
     "\"\"}}]},"
     "{\"role\":\"tool\",\"content\":\"x\",\"tool_call_id\":\"1\"},{\"role\":\"tool\",\"content\":\"y\",\"tool_call_"
     "id\":\"2\"}]," C_END},
    {R, TALK, NULL,
     R_INPUT(R_TEXT("system", "input_text", "s") "," R_TEXT(
         "user", "input_text",
         "u") ","
              "{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"},"
              "{\"type\":\"function_call\",\"call_id\":\"2\",\"name\":\"f\",\"arguments\":\"\"},"
              "{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":\"x\"},"
              "{\"type\":\"function_call_output\",\"call_id\":\"2\",\"output\":\"y\"}") R_END},
    {M, TALK, NULL,
     "{\"model\":\"m\",\"system\":" M_TEXT("s") ",\"messages\":[{\"role\":\"user\",\"content\":" M_TEXT(
         "u") "},"
              "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"f\",\"input\":{"
              "\"a\":1}},"
              "{\"type\":\"tool_use\",\"id\":\"2\",\"name\":\"f\",\"input\":{}}]},"
              "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"1\",\"content\":\"x\"},"
              "{\"type\":\"tool_result\",\"tool_use_id\":\"2\",\"content\":\"y\"}]}]," M_END},
    {C, IMAGE, NULL,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":"
     "\"image_url\","
     "\"image_url\":{\"url\":\"data:image/png;base64," PNG "\"}},{\"type\":\"text\",\"text\":\"b\"}]}]," C_END},
    {R, IMAGE, NULL,
     R_INPUT("{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"a\"},{\"type\":"
             "\"input_image\","
             "\"detail\":\"auto\",\"image_url\":\"data:image/png;base64," PNG
             "\"},{\"type\":\"input_text\",\"text\":\"b\"}]}") R_END},
    {M, IMAGE, NULL,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":"
     "\"image\",\"source\":"
     "{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"" PNG
     "\"}},{\"type\":\"text\",\"text\":\"b\"}]}]," M_END},
/* any order of messages becomes alternating turns: the first turn is the user's, and a turn begins with the outputs of
 * calls */
#define SAY(role, text)  "{\"role\":\"" role "\",\"content\":\"" text "\"}"
#define CALL(id)         "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"" id "\",\"name\":\"f\",\"arguments\":\"{}\"}]}"
#define TOLD(id, text)   "{\"role\":\"tool\",\"content\":\"" text "\",\"tool_call_id\":\"" id "\"}"
#define M_BLOCK(text)    "{\"type\":\"text\",\"text\":\"" text "\"}"
#define M_CALL(id)       "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"f\",\"input\":{}}"
#define M_TOLD(id, text) "{\"type\":\"tool_result\",\"tool_use_id\":\"" id "\",\"content\":\"" text "\"}"
#define M_USER(blocks)   "{\"role\":\"user\",\"content\":[" blocks "]}"
#define M_MODEL(blocks)  "{\"role\":\"assistant\",\"content\":[" blocks "]}"
#define M_SYSTEM(blocks) "{\"model\":\"m\",\"system\":[" blocks "],"
#define TURNS(turns)     "\"messages\":[" turns "]"
    {M, TURNS(SAY("user", "a") "," SAY("system", "b")), NULL,
     M_SYSTEM(M_BLOCK("b")) TURNS(M_USER(M_BLOCK("a"))) "," M_END},
    {M,
     TURNS(SAY("system", "s") "," SAY("user", "a") "," SAY("assistant", "b") "," SAY("system", "t") "," SAY(
         "user", "c") "," SAY("system", " ")),
     NULL,
     M_SYSTEM(M_BLOCK("s") "," M_BLOCK("t")) TURNS(
         M_USER(M_BLOCK("a")) "," M_MODEL(M_BLOCK("b")) "," M_USER(M_BLOCK("c"))) "," M_END},
    {M,
     TURNS(SAY("user", "a") "," SAY("system", "s") "," SAY("user", "b") "," SAY("assistant", "c") "," SAY(
         "assistant", "d") "," SAY("user", "e")),
     NULL,
     M_SYSTEM(M_BLOCK("s")) TURNS(M_USER(M_BLOCK("a") "," M_BLOCK("b")) "," M_MODEL(
         M_BLOCK("c") "," M_BLOCK("d")) "," M_USER(M_BLOCK("e"))) "," M_END},
    {M, TURNS(SAY("assistant", "a") "," SAY("user", "b")), NULL,
     "{\"model\":\"m\"," TURNS(M_USER(M_BLOCK(".")) "," M_MODEL(M_BLOCK("a")) "," M_USER(M_BLOCK("b"))) "," M_END},
    {M, TURNS(SAY("system", "s")), NULL, M_SYSTEM(M_BLOCK("s")) TURNS(M_USER(M_BLOCK("."))) "," M_END},
    {M, TURNS(SAY("user", "a") "," SAY("assistant", "b") "," SAY("system", "s")), NULL,
     M_SYSTEM(M_BLOCK("s")) TURNS(M_USER(M_BLOCK("a")) "," M_MODEL(M_BLOCK("b")) "," M_USER(M_BLOCK("."))) "," M_END},
    {M, TURNS(SAY("user", "") "," SAY("assistant", "") "," SAY("user", " \\n")), NULL,
     "{\"model\":\"m\"," TURNS(M_USER(M_BLOCK("."))) "," M_END},
    {M, TURNS(SAY("user", "a") "," SAY("assistant", "b") "," SAY("user", "")), NULL,
     "{\"model\":\"m\"," TURNS(M_USER(M_BLOCK("a")) "," M_MODEL(M_BLOCK("b")) "," M_USER(M_BLOCK("."))) "," M_END},
    {M,
     TURNS(SAY("user", "a") "," CALL("1") "," CALL("2") "," TOLD("2", "x") "," SAY("user", "b") "," TOLD("1", "y")),
     NULL,
     "{\"model\":\"m\"," TURNS(M_USER(M_BLOCK("a")) "," M_MODEL(M_CALL("1") "," M_CALL("2")) "," M_USER(
         M_TOLD("2", "x") "," M_TOLD("1", "y") "," M_BLOCK("b"))) "," M_END},
    {M,
     TURNS(SAY("user", "a") "," CALL("1") "," SAY("user", "b") "," SAY("assistant", "c") "," TOLD("1", "x") "," SAY(
         "assistant", "d") "," SAY("user", "e")),
     NULL,
     "{\"model\":\"m\"," TURNS(M_USER(M_BLOCK("a")) "," M_MODEL(M_CALL("1")) "," M_USER(
         M_TOLD("1", "x") "," M_BLOCK("b")) "," M_MODEL(M_BLOCK("c") "," M_BLOCK("d")) "," M_USER(M_BLOCK("e"))) "," M_END},
    {M, TURNS(SAY("user", "a") "," CALL("1") "," TOLD("1", "x") "," CALL("1") "," TOLD("1", "y")), NULL,
     "{\"model\":\"m\"," TURNS(M_USER(M_BLOCK("a")) "," M_MODEL(M_CALL("1")) "," M_USER(M_TOLD("1", "x")) "," M_MODEL(
         M_CALL("1")) "," M_USER(M_TOLD("1", "y"))) "," M_END},
    {C, "\"embed\":[\"a\",\"b\"]", NULL, "{\"model\":\"m\",\"input\":[\"a\",\"b\"],\"encoding_format\":\"base64\"}"},
    {C, "\"embed\":[\"a\"]", "{\"dimensions\":8}",
     "{\"model\":\"m\",\"input\":[\"a\"],\"encoding_format\":\"base64\",\"dimensions\":8}"},
    {C,
     "\"messages\":[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning\":\"r\"},{\"role\":\"user\",\"content\":\"\"}"
     "]",
     NULL,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"r\"},"
     "{\"role\":\"user\",\"content\":\"\"}]," C_END},

    {R, HI ",\"seed\":1", NULL, "!seed"},
    {R, HI ",\"stop\":[\"a\"]", NULL, "!stop"},
    {R, HI ",\"logit_bias\":[[1,1]]", NULL, "!logit_bias"},
    {R, HI ",\"top_k\":1", NULL, "!top_k"},
    {R, HI ",\"min_p\":0.5", NULL, "!min_p"},
    {R, HI ",\"repeat_penalty\":2", NULL, "!repeat_penalty"},
    {R, HI ",\"ignore_eos\":true", NULL, "!ignore_eos"},
    {M, HI ",\"seed\":1", NULL, "!seed"},
    {M, HI ",\"presence_penalty\":1", NULL, "!presence_penalty"},
    {M, HI ",\"frequency_penalty\":1", NULL, "!frequency_penalty"},
    {M, HI ",\"logit_bias\":[[1,1]]", NULL, "!logit_bias"},
    {M, HI ",\"logprobs\":0", NULL, "!logprobs"},
    {M, "\"embed\":[\"a\"]", NULL, "!embed"},
    {M, "\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"name\":\"f\",\"arguments\":\"[1]\"}]}]",
     NULL, "!messages[0].tool_calls[0].arguments"},
    {C, "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"data\":\"AAAA\"}]}]", NULL, "!images[0]"},
};

/* Reads a job as the kit does. */
static void read_job(struct fm_kit_job *job, struct json_object *params) {
    struct fm_error error;
    *job = (struct fm_kit_job){.id = 1};
    if (fm_kit_job_read(job, params, &error) != FM_OK) {
        fail_msg("%s", error.detail);
    }
}

static void expect_body(enum fm_dialect_kind dialect, const char *members, const char *configured,
                        const char *expected) {
    struct fm_endpoint endpoint = {.base = (char *)"https://a", .host = (char *)"a", .dialect = dialect};
    struct fm_kit_job job;
    struct fm_error error = {.code = FM_OK};
    struct fm_buf out;
    size_t size = strlen(members) + 32;
    char *text = malloc(size);
    assert_non_null(text);
    snprintf(text, size, "{\"job\":1,%s}", members);
    struct json_object *params = json_tokener_parse(text);
    assert_non_null(params);
    read_job(&job, params);
    endpoint.body = configured ? json_tokener_parse(configured) : NULL;
    fm_buf_init(&out, FM_REQUEST_MAX);
    enum fm_code code = fm_request_write(&endpoint, "m", &job, &out, &error);
    fm_buf_append_char(&out, '\0');
    if (code == FM_OK) {
        expect_text(members, "dialect", dialect, expected, out.data);
        struct json_object *again = json_tokener_parse(out.data);
        assert_non_null(again);
        json_object_put(again);
    } else {
        assert_int_equal(code, FM_INVALID_REQUEST);
        expect_text(members, "dialect", dialect, expected + 1, error.param);
        assert_int_equal(expected[0], '!');
        assert_int_equal(error.elsewhere, strncmp(error.param, "images", 6) != 0);
    }
    fm_buf_free(&out);
    fm_kit_job_free_lists(&job);
    json_object_put(endpoint.body);
    json_object_put(params);
    free(text);
}

static void bodies(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        expect_body(rows[i].dialect, rows[i].job, rows[i].body, rows[i].out);
    }
}

/* A state goes back only to the server that made it. */
static void states(void **state) {
    (void)state;
    static const struct {
        enum fm_dialect_kind dialect;
        const char *item;
        const char *expected;
    } cases[] = {
        {R, "{\\\"type\\\":\\\"reasoning\\\"}",
         R_INPUT("{\"type\":\"reasoning\"}," R_TEXT("assistant", "output_text", "a")) R_END},
        {M, "{\\\"type\\\":\\\"thinking\\\"}",
         "{\"model\":\"m\"," TURNS(M_USER(M_BLOCK(".")) "," M_MODEL("{\"type\":\"thinking\"}," M_BLOCK("a"))) "," M_END},
        {C, "\\\"reasoning\\\"",
         "{\"model\":\"m\",\"messages\":[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning\":\"r\"}]," C_END},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fm_endpoint endpoint = {.base = (char *)"https://a", .dialect = cases[i].dialect};
        char maker[FM_MAKER_SIZE];
        char members[512];
        fm_request_maker(&endpoint, "m", maker);
        snprintf(members, sizeof members,
                 "\"messages\":[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning\":\"r\",\"state\":[\"{"
                 "\\\"maker\\\":\\\"%s\\\","
                 "\\\"item\\\":%s}\",\"{\\\"maker\\\":\\\"other\\\",\\\"item\\\":{}}\",\"gAAA\",\"[]\",\"{}\"]}]",
                 maker, cases[i].item);
        expect_body(cases[i].dialect, members, NULL, cases[i].expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bodies), cmocka_unit_test(states)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
