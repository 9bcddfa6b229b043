/* job.start's params: which are accepted, which are refused, and which field the error names. */
#include "engine/kit/job_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES         "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define GRAMMAR(members) "{\"job\":1," MESSAGES ",\"format\":{\"type\":\"grammar\"," members "}}"
#define TOOL(members)    "{\"job\":1," MESSAGES ",\"tools\":[{\"name\":\"g\"},{" members "}]}"
#define CHOICE(choice)                                                                                                 \
    "{\"job\":1,\"tool_choice\":" choice "," MESSAGES ",\"tools\":[{\"name\":\"f\"},{\"name\":\"g\"}]}"
#define CALLS(calls)    "{\"job\":1,\"messages\":[{\"role\":\"assistant\",\"tool_calls\":" calls "}]}"
#define PARTS(parts)    "{\"job\":1,\"messages\":[{\"role\":\"user\",\"content\":[" parts "]}]}"
#define TOOL_SAYS(more) "{\"job\":1,\"messages\":[{\"role\":\"tool\",\"content\":\"hi\"" more "}]}"

static const struct row {
    const char *params;
    const char *param; /* the error's `param`; NULL: accepted; "": refused without `param` */
} rows[] = {
    {"{\"job\":1," MESSAGES "}", NULL},
    {"{\"job\":1," MESSAGES ",\"max_tokens\":null,\"temperature\":null,\"top_p\":null,\"seed\":null,\"stop\":null}",
     NULL},
    {"{\"job\":1," MESSAGES ",\"max_tokens\":1,\"temperature\":0,\"top_p\":0.5,\"seed\":-1,\"stop\":[\"a\",\"b\"]}",
     NULL},
    {"{\"job\":1," MESSAGES ",\"stop\":[]}", NULL},
    {"{\"job\":1}", "messages"},
    {"{\"job\":1,\"messages\":null}", "messages"},
    {"{\"job\":1,\"prompt\":\"hi\"}", NULL},
    {"{\"job\":1,\"prompt\":\"\",\"messages\":null,\"suffix\":null,\"truncation\":\"disabled\",\"max_tokens\":0}",
     NULL},
    {"{\"job\":1,\"suffix\":\"\",\"prompt\":\"hi\",\"format\":{\"type\":\"json_object\"}}", NULL},
    {"{\"job\":1,\"prompt\":null}", "messages"},
    {"{\"job\":1,\"prompt\":[\"hi\"]}", "prompt"},
    {"{\"job\":1,\"prompt\":\"hi\",\"suffix\":1}", "suffix"},
    {"{\"job\":1,\"suffix\":\"hi\"}", "messages"},
    {"{\"job\":1,\"prompt\":\"hi\"," MESSAGES "}", "prompt"},
    {"{\"job\":1,\"prompt\":\"hi\",\"tools\":[{\"name\":\"f\"}]}", "prompt"},
    {"{\"job\":1,\"prompt\":\"hi\",\"truncation\":\"auto\"}", "prompt"},
    {"{\"job\":1," MESSAGES ",\"suffix\":\"hi\"}", "suffix"},
    {"{\"job\":1," MESSAGES ",\"truncation\":\"auto\"}", NULL},
    {"{\"job\":1," MESSAGES ",\"truncation\":\"some\"}", "truncation"},
    {"{\"job\":1," MESSAGES ",\"truncation\":true}", "truncation"},
    {"{\"job\":1,\"messages\":[]}", "messages"},
    {"{\"job\":1,\"messages\":{}}", "messages"},
    {"{\"job\":1,\"messages\":\"hi\"}", "messages"},
    {"{\"job\":1,\"messages\":[null]}", "messages[0]"},
    {"{\"job\":1,\"messages\":[7]}", "messages[0]"},
    {"{\"job\":1,\"messages\":[{\"content\":\"hi\"}]}", "messages[0].role"},
    {"{\"job\":1,\"messages\":[{\"role\":\"user\"}]}", "messages[0].content"},
    {"{\"job\":1,\"messages\":[{\"role\":\"function\",\"content\":\"hi\"}]}", "messages[0].role"},
    {PARTS("{\"type\":\"text\",\"text\":\"\"}"), NULL},
    {PARTS("{\"type\":\"image\",\"data\":\"AA==\"}"), NULL},
    {PARTS("{\"type\":\"text\",\"text\":\"hi\"},{\"type\":\"image\",\"data\":\"AAAA\"}"), NULL},
    {PARTS(""), "messages[0].content"},
    {PARTS("7"), "messages[0].content[0]"},
    {PARTS("null"), "messages[0].content[0]"},
    {PARTS("{}"), "messages[0].content[0].type"},
    {PARTS("{\"type\":\"sound\"}"), "messages[0].content[0].type"},
    {PARTS("{\"type\":\"text\"}"), "messages[0].content[0]"},
    {PARTS("{\"type\":\"text\",\"text\":7}"), "messages[0].content[0]"},
    {PARTS("{\"type\":\"text\",\"text\":\"\",\"data\":\"AA==\"}"), "messages[0].content[0]"},
    {PARTS("{\"type\":\"image\"}"), "messages[0].content[0]"},
    {PARTS("{\"type\":\"image\",\"data\":\"\"}"), "messages[0].content[0]"},
    {PARTS("{\"type\":\"image\",\"data\":\"AAA\"}"), "messages[0].content[0]"},
    {PARTS("{\"type\":\"image\",\"data\":7}"), "messages[0].content[0]"},
    {PARTS("{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\",\"data\":\"A A=\"}"), "messages[0].content[1]"},
    {PARTS("{\"type\":\"image\",\"data\":\"AA==\",\"text\":\"\"}"), "messages[0].content[0]"},
    {"{\"job\":1,\"messages\":[{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}]}",
     "messages[0].content"},
    {"{\"job\":1,\"embed\":[\"hi\",\"\\u0000\"]}", NULL},
    {"{\"job\":1,\"embed\":[\"hi\"],\"messages\":null,\"seed\":null}", NULL},
    {"{\"job\":1,\"embed\":[]}", "embed"},
    {"{\"job\":1,\"embed\":\"hi\"}", "embed"},
    {"{\"job\":1,\"embed\":{}}", "embed"},
    {"{\"job\":1,\"embed\":[\"hi\",\"\"]}", "embed[1]"},
    {"{\"job\":1,\"embed\":[null]}", "embed[0]"},
    {"{\"job\":1,\"embed\":[7]}", "embed[0]"},
    {"{\"job\":1,\"embed\":[[1]]}", "embed[0]"},
    {"{\"job\":1,\"embed\":[\"hi\"]," MESSAGES "}", "messages"},
    {"{\"job\":1," MESSAGES ",\"embed\":[\"hi\"]}", "messages"},
    {"{\"job\":1,\"embed\":[\"hi\"],\"max_tokens\":1}", "max_tokens"},
    {"{\"job\":1,\"embed\":[\"hi\"],\"stop\":[]}", "stop"},
    {"{\"job\":1,\"embed\":[\"hi\"],\"tool_choice\":{\"mode\":\"auto\"}}", "tool_choice"},
    {TOOL_SAYS(",\"tool_call_id\":\"1\""), NULL},
    {TOOL_SAYS(""), "messages[0].tool_call_id"},
    {TOOL_SAYS(",\"tool_call_id\":null"), "messages[0].tool_call_id"},
    {TOOL_SAYS(",\"tool_call_id\":\"\""), "messages[0].tool_call_id"},
    {TOOL_SAYS(",\"tool_call_id\":\"1\\u0000\""), "messages[0].tool_call_id"},
    {TOOL_SAYS(",\"tool_call_id\":1"), "messages[0].tool_call_id"},
    {TOOL_SAYS(",\"tool_call_id\":\"1\",\"tool_calls\":[]"), "messages[0]"},
    {"{\"job\":1,\"messages\":[{\"role\":\"tool\",\"tool_call_id\":\"1\"}]}", "messages[0].content"},
    {"{\"job\":1,\"messages\":[{\"role\":\"user\",\"content\":\"\",\"tool_call_id\":\"1\"}]}", "messages[0]"},
    {"{\"job\":1,\"messages\":[{\"role\":\"user\",\"content\":\"\",\"tool_calls\":[]}]}", "messages[0]"},
    {CALLS("[{\"id\":\"1\",\"name\":\"f\",\"arguments\":\"\"}]"), NULL},
    {CALLS("[{\"id\":\"1\",\"name\":\"f\",\"arguments\":\"{}\"}],\"content\":null"), NULL},
    {CALLS("[{\"id\":\"1\",\"name\":\"f\",\"arguments\":\"{}\"}],\"content\":1"), "messages[0].content"},
    {CALLS("null"), "messages[0].content"},
    {CALLS("[]"), "messages[0].tool_calls"},
    {CALLS("{}"), "messages[0].tool_calls"},
    {CALLS("[null]"), "messages[0].tool_calls[0]"},
    {CALLS("[{\"name\":\"f\",\"arguments\":\"{}\"}]"), "messages[0].tool_calls[0]"},
    {CALLS("[{\"id\":\"1\",\"arguments\":\"{}\"}]"), "messages[0].tool_calls[0]"},
    {CALLS("[{\"id\":\"1\",\"name\":\"f\"}]"), "messages[0].tool_calls[0]"},
    {CALLS("[{\"id\":\"1\",\"name\":\"f\",\"arguments\":{}}]"), "messages[0].tool_calls[0]"},
    {CALLS("[{\"id\":\"1\",\"name\":\"f\",\"arguments\":\"{}\",\"x\":1}]"), "messages[0].tool_calls[0]"},
    {CALLS("[{\"id\":\"1\",\"name\":\"f\",\"arguments\":\"{}\"},{\"id\":\"\",\"name\":\"f\",\"arguments\":\"{}\"}]"),
     "messages[0].tool_calls[1]"},
    {"{\"job\":1,\"messages\":[{\"role\":3,\"content\":\"hi\"}]}", "messages[0].role"},
    {"{\"job\":1,\"messages\":[{\"role\":\"user\",\"content\":null}]}", "messages[0].content"},
    {"{\"job\":1,\"messages\":[{\"role\":\"user\",\"content\":[]}]}", "messages[0].content"},
    {"{\"job\":1,\"messages\":[{\"role\":\"user\",\"content\":\"hi\",\"name\":\"x\"}]}", "messages[0]"},
    {"{\"job\":1," MESSAGES ",\"max_tokens\":0}", NULL},
    {"{\"job\":1," MESSAGES ",\"max_tokens\":-5}", "max_tokens"},
    {"{\"job\":1," MESSAGES ",\"max_tokens\":1.5}", "max_tokens"},
    {"{\"job\":1," MESSAGES ",\"max_tokens\":\"1\"}", "max_tokens"},
    {"{\"job\":1," MESSAGES ",\"temperature\":-0.1}", "temperature"},
    {"{\"job\":1," MESSAGES ",\"temperature\":2.1}", "temperature"},
    {"{\"job\":1," MESSAGES ",\"temperature\":\"hot\"}", "temperature"},
    {"{\"job\":1," MESSAGES ",\"top_p\":1.1}", "top_p"},
    {"{\"job\":1," MESSAGES ",\"top_p\":true}", "top_p"},
    {"{\"job\":1," MESSAGES ",\"seed\":1.5}", "seed"},
    {"{\"job\":1," MESSAGES ",\"repeatable\":1}", "repeatable"},
    {"{\"job\":1," MESSAGES ",\"restartable\":1}", "restartable"},
    {"{\"job\":1," MESSAGES ",\"generate\":0}", "generate"},
    {"{\"job\":1,\"embed\":[\"hi\"],\"repeatable\":true}", "repeatable"},
    {"{\"job\":1," MESSAGES ",\"presence_penalty\":-2,\"frequency_penalty\":2.0}", NULL},
    {"{\"job\":1," MESSAGES ",\"top_k\":-1,\"min_p\":0,\"repeat_penalty\":10,\"ignore_eos\":false}", NULL},
    {"{\"job\":1," MESSAGES ",\"top_k\":-2}", "top_k"},
    {"{\"job\":1," MESSAGES ",\"top_k\":2147483648}", "top_k"},
    {"{\"job\":1," MESSAGES ",\"top_k\":1.0}", "top_k"},
    {"{\"job\":1," MESSAGES ",\"min_p\":1.01}", "min_p"},
    {"{\"job\":1," MESSAGES ",\"min_p\":NaN}", "min_p"},
    {"{\"job\":1," MESSAGES ",\"repeat_penalty\":0}", "repeat_penalty"},
    {"{\"job\":1," MESSAGES ",\"repeat_penalty\":10.1}", "repeat_penalty"},
    {"{\"job\":1," MESSAGES ",\"ignore_eos\":1}", "ignore_eos"},
    {"{\"job\":1," MESSAGES ",\"presence_penalty\":2.1}", "presence_penalty"},
    {"{\"job\":1," MESSAGES ",\"presence_penalty\":NaN}", "presence_penalty"},
    {"{\"job\":1," MESSAGES ",\"frequency_penalty\":-2.1}", "frequency_penalty"},
    {"{\"job\":1," MESSAGES ",\"frequency_penalty\":\"0\"}", "frequency_penalty"},
    {"{\"job\":1," MESSAGES ",\"logprobs\":0}", NULL},
    {"{\"job\":1," MESSAGES ",\"logprobs\":20}", NULL},
    {"{\"job\":1," MESSAGES ",\"logprobs\":21}", "logprobs"},
    {"{\"job\":1," MESSAGES ",\"logprobs\":-1}", "logprobs"},
    {"{\"job\":1," MESSAGES ",\"logprobs\":true}", "logprobs"},
    {"{\"job\":1," MESSAGES ",\"logit_bias\":[]}", NULL},
    {"{\"job\":1," MESSAGES ",\"logit_bias\":[[0,-100],[2147483647,100.0]]}", NULL},
    {"{\"job\":1," MESSAGES ",\"logit_bias\":{\"5\":1}}", "logit_bias"},
    {"{\"job\":1," MESSAGES ",\"logit_bias\":[[5,1],5]}", "logit_bias[1]"},
    {"{\"job\":1," MESSAGES ",\"logit_bias\":[[5]]}", "logit_bias[0]"},
    {"{\"job\":1," MESSAGES ",\"logit_bias\":[[5,1,1]]}", "logit_bias[0]"},
    {"{\"job\":1," MESSAGES ",\"logit_bias\":[[-1,1]]}", "logit_bias[0]"},
    {"{\"job\":1," MESSAGES ",\"logit_bias\":[[2147483648,1]]}", "logit_bias[0]"},
    {"{\"job\":1," MESSAGES ",\"logit_bias\":[[1.0,1]]}", "logit_bias[0]"},
    {"{\"job\":1," MESSAGES ",\"logit_bias\":[[5,100.1]]}", "logit_bias[0]"},
    {"{\"job\":1," MESSAGES ",\"logit_bias\":[[5,null]]}", "logit_bias[0]"},
    {"{\"job\":1," MESSAGES ",\"stop\":\"a\"}", "stop"},
    {"{\"job\":1," MESSAGES ",\"stop\":[\"\"]}", "stop"},
    {"{\"job\":1," MESSAGES ",\"stop\":[1]}", "stop"},
    {"{\"job\":1," MESSAGES ",\"stop\":[\"1\",\"2\",\"3\",\"4\",\"5\"]}", "stop"},
    {"{\"job\":1," MESSAGES ",\"functions\":[]}", ""},
    {"{\"job\":1," MESSAGES ",\"tools\":null,\"tool_choice\":null,\"parallel_tool_calls\":null}", NULL},
    {"{\"job\":1," MESSAGES ",\"parallel_tool_calls\":false}", NULL},
    {"{\"job\":1," MESSAGES ",\"parallel_tool_calls\":0}", "parallel_tool_calls"},
    {"{\"job\":1," MESSAGES ",\"tools\":[]}", "tools"},
    {"{\"job\":1," MESSAGES ",\"tools\":{}}", "tools"},
    {TOOL("\"name\":\"f\",\"description\":\"d\",\"parameters\":{},\"strict\":true"), NULL},
    {TOOL("\"name\":\"f\",\"description\":null,\"parameters\":null,\"strict\":null"), NULL},
    {TOOL("\"parameters\":{}"), "tools[1].name"},
    {TOOL("\"name\":\"\""), "tools[1].name"},
    {TOOL("\"name\":\"f\\u0000\""), "tools[1].name"},
    {TOOL("\"name\":7"), "tools[1].name"},
    {TOOL("\"name\":\"g\""), "tools[1].name"},
    {TOOL("\"name\":\"f\",\"description\":7"), "tools[1].description"},
    {TOOL("\"name\":\"f\",\"description\":\"\\u0000\""), "tools[1].description"},
    {TOOL("\"name\":\"f\",\"parameters\":[]"), "tools[1].parameters"},
    {TOOL("\"name\":\"f\",\"strict\":1"), "tools[1].strict"},
    {TOOL("\"name\":\"f\",\"type\":\"function\""), "tools[1]"},
    {"{\"job\":1," MESSAGES ",\"tools\":[null]}", "tools[0]"},
    {CHOICE("{\"mode\":\"auto\"}"), NULL},
    {CHOICE("{\"mode\":\"none\",\"names\":null}"), NULL},
    {CHOICE("{\"names\":[\"g\",\"g\"],\"mode\":\"required\"}"), NULL},
    {CHOICE("\"auto\""), "tool_choice"},
    {CHOICE("{}"), "tool_choice.mode"},
    {CHOICE("{\"mode\":\"any\"}"), "tool_choice.mode"},
    {CHOICE("{\"mode\":\"auto\",\"name\":\"f\"}"), "tool_choice"},
    {CHOICE("{\"mode\":\"auto\",\"names\":[]}"), "tool_choice.names"},
    {CHOICE("{\"mode\":\"auto\",\"names\":\"f\"}"), "tool_choice.names"},
    {CHOICE("{\"mode\":\"none\",\"names\":[\"f\"]}"), "tool_choice.names"},
    {CHOICE("{\"mode\":\"auto\",\"names\":[\"f\",\"h\"]}"), "tool_choice.names[1]"},
    {CHOICE("{\"mode\":\"auto\",\"names\":[null]}"), "tool_choice.names[0]"},
    {CHOICE("{\"mode\":\"auto\",\"names\":[\"f\\u0000\"]}"), "tool_choice.names[0]"},
    {"{\"job\":1," MESSAGES ",\"tool_choice\":{\"mode\":\"auto\"}}", "tool_choice"},
    {"{\"job\":1,\"messages\":[{\"role\":\"user\\u0000\",\"content\":\"hi\"}]}", "messages[0].role"},
    {"{\"job\":1," MESSAGES ",\"reasoning\":null}", NULL},
    {"{\"job\":1," MESSAGES ",\"reasoning\":{}}", NULL},
    {"{\"job\":1," MESSAGES ",\"reasoning\":{\"effort\":null}}", NULL},
    {"{\"job\":1," MESSAGES ",\"reasoning\":{\"effort\":\"none\"}}", NULL},
    {"{\"job\":1," MESSAGES ",\"reasoning\":{\"effort\":\"max\"}}", NULL},
    {"{\"job\":1," MESSAGES ",\"reasoning\":{\"effort\":\"most\"}}", "reasoning.effort"},
    {"{\"job\":1," MESSAGES ",\"reasoning\":{\"effort\":1}}", "reasoning.effort"},
    {"{\"job\":1," MESSAGES ",\"reasoning\":{\"summary\":\"auto\"}}", "reasoning"},
    {"{\"job\":1," MESSAGES ",\"reasoning\":\"low\"}", "reasoning"},
    {"{\"job\":1,\"messages\":[{\"role\":\"assistant\",\"content\":\"\",\"reasoning\":\"hm\"}]}", NULL},
    {"{\"job\":1,\"messages\":[{\"role\":\"assistant\",\"content\":\"\",\"reasoning\":null}]}", NULL},
    {"{\"job\":1,\"messages\":[{\"role\":\"assistant\",\"content\":\"\",\"reasoning\":1}]}", "messages[0].reasoning"},
    {"{\"job\":1,\"messages\":[{\"role\":\"assistant\",\"reasoning\":\"hm\"}]}", "messages[0].content"},
    {"{\"job\":1,\"messages\":[{\"role\":\"user\",\"content\":\"\",\"reasoning\":\"hm\"}]}", "messages[0]"},
    {"{\"job\":1," MESSAGES ",\"format\":null}", NULL},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_object\"}}", NULL},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_schema\",\"schema\":{}}}", NULL},
    {"{\"job\":1," MESSAGES ",\"format\":{\"strict\":true,\"schema\":{},\"type\":\"json_schema\"}}", NULL},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_schema\",\"schema\":{},\"strict\":null}}", NULL},
    {GRAMMAR("\"syntax\":\"lark\",\"definition\":\"x\""), NULL},
    {GRAMMAR("\"syntax\":\"regex\",\"definition\":\"x\""), NULL},
    {GRAMMAR("\"syntax\":\"gbnf\",\"definition\":\"x\""), "format.syntax"},
    {"{\"job\":1," MESSAGES ",\"format\":\"json_object\"}", "format"},
    {"{\"job\":1," MESSAGES ",\"format\":[]}", "format"},
    {"{\"job\":1," MESSAGES ",\"format\":{}}", "format.type"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":null}}", "format.type"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"text\"}}", "format.type"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"grammar\\u0000\"}}", "format.type"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_object\",\"schema\":{}}}", "format"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_object\",\"x\":null}}", "format"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_schema\"}}", "format.schema"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_schema\",\"schema\":null}}", "format.schema"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_schema\",\"schema\":true}}", "format.schema"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_schema\",\"schema\":[]}}", "format.schema"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_schema\",\"schema\":{},\"strict\":1}}", "format.strict"},
    {"{\"job\":1," MESSAGES ",\"format\":{\"type\":\"json_schema\",\"schema\":{},\"name\":\"x\"}}", "format"},
    {GRAMMAR("\"definition\":\"x\""), "format.syntax"},
    {GRAMMAR("\"syntax\":\"yacc\",\"definition\":\"x\""), "format.syntax"},
    {GRAMMAR("\"syntax\":1,\"definition\":\"x\""), "format.syntax"},
    {GRAMMAR("\"syntax\":\"lark\""), "format.definition"},
    {GRAMMAR("\"syntax\":\"lark\",\"definition\":\"\""), "format.definition"},
    {GRAMMAR("\"syntax\":\"lark\",\"definition\":\"a\\u0000\""), "format.definition"},
    {GRAMMAR("\"syntax\":\"lark\",\"definition\":1"), "format.definition"},
    {GRAMMAR("\"syntax\":\"lark\",\"definition\":\"x\",\"schema\":{}"), "format"},
};

static enum fm_code read_params(struct fm_kit_job *job, struct json_object *params, struct fm_error *error) {
    assert_non_null(params);
    *job = (struct fm_kit_job){0};
    *error = (struct fm_error){0};
    return fm_kit_job_read(job, params, error);
}

static void rows_are_taken_or_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_object *params = json_tokener_parse(rows[i].params);
        struct fm_kit_job job;
        struct fm_error error;
        enum fm_code code = read_params(&job, params, &error);
        enum fm_code expected = rows[i].param ? FM_INVALID_REQUEST : FM_OK;
        if (code != expected || (rows[i].param && strcmp(error.param, rows[i].param) != 0)) {
            fail_msg("%s: code %s, param \"%s\", %s", rows[i].params, fm_code_name(code), error.param, error.detail);
        }
        fm_kit_job_free_lists(&job);
        json_object_put(params);
    }
}

enum { NAMED = 1, ASKS = 2 };

struct sampling {
    double value;
    int is;
};

static void assert_sampling(const struct fm_kit_job *job, const struct sampling expected[FM_PARAM_COUNT]) {
    for (int i = 0; i < FM_PARAM_COUNT; i++) {
        int is = (job->named[i] ? NAMED : 0) | (fm_kit_job_asks(job, i) ? ASKS : 0);
        assert_true(job->sampling[i] == expected[i].value);
        assert_int_equal(is, expected[i].is);
    }
}

static void values_arrive(void **state) {
    (void)state;
    struct json_object *params = json_tokener_parse(
        "{\"job\":1,\"messages\":[{\"role\":\"system\",\"content\":\"a\\u0000b\"},{\"role\":\"assistant\",\"content\":"
        "\"\"}],"
        "\"max_tokens\":7,\"temperature\":0.5,\"top_p\":1,\"seed\":-9,\"repeatable\":true,\"presence_penalty\":-0.5,"
        "\"frequency_penalty\":1,\"top_k\":-1,\"min_p\":0,\"logit_bias\":[[7,-100],[0,0.5]],\"logprobs\":3,"
        "\"stop\":[\"x\\u0000\",\"yz\"]}");
    struct fm_kit_job job;
    struct fm_error error;
    assert_int_equal(read_params(&job, params, &error), FM_OK);
    assert_int_equal(job.message_count, 2);
    assert_string_equal(job.messages[0].role, "system");
    assert_int_equal(job.messages[0].content_len, 3);
    assert_memory_equal(job.messages[0].content, "a\0b", 3);
    assert_int_equal(job.messages[1].content_len, 0);
    assert_int_equal(job.max_tokens, 7);
    assert_true(job.has_seed && job.seed == -9 && job.repeatable);
    assert_sampling(&job, (const struct sampling[FM_PARAM_COUNT]){
                              [FM_PARAM_TEMPERATURE] = {0.5, NAMED | ASKS},
                              [FM_PARAM_TOP_P] = {1, NAMED},
                              [FM_PARAM_PRESENCE_PENALTY] = {-0.5, NAMED | ASKS},
                              [FM_PARAM_FREQUENCY_PENALTY] = {1, NAMED | ASKS},
                              [FM_PARAM_TOP_K] = {0, NAMED},
                              [FM_PARAM_MIN_P] = {0, NAMED | ASKS},
                              [FM_PARAM_REPEAT_PENALTY] = {1, 0},
                              [FM_PARAM_IGNORE_EOS] = {0, 0},
                          });
    assert_true(job.logprobs && job.top_logprobs == 3);
    assert_int_equal(job.logit_bias_count, 2);
    assert_true(job.logit_biases[0].token == 7 && job.logit_biases[0].bias == FM_LOGIT_BAN);
    assert_true(job.logit_biases[1].token == 0 && job.logit_biases[1].bias == 0.5);
    assert_int_equal(job.stop_count, 2);
    assert_int_equal(job.stops[0].len, 2);
    assert_memory_equal(job.stops[0].text, "x\0", 2);
    assert_int_equal(job.stops[1].len, 2);
    fm_kit_job_free_lists(&job);
    json_object_put(params);
}

static void images_arrive(void **state) {
    (void)state;
    struct json_object *params = json_tokener_parse(
        "{\"job\":1,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\\u0000b\"},"
        "{\"type\":\"image\",\"data\":\"Zm9v\"},{\"type\":\"text\",\"text\":\"c\"},{\"type\":\"image\",\"data\":"
        "\"YmE=\"}]},{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"user\",\"content\":[{\"type\":\"image\","
        "\"data\":"
        "\"Zg==\"}]}]}");
    struct fm_kit_job job;
    struct fm_error error;
    assert_int_equal(read_params(&job, params, &error), FM_OK);
    assert_int_equal(job.image_count, 3);
    const struct fm_message *first = &job.messages[0];
    assert_int_equal(first->content_len, 4);
    assert_memory_equal(first->content, "a\0bc", 5);
    assert_int_equal(first->image_count, 2);
    assert_int_equal(first->images[0].at, 3);
    assert_int_equal(first->images[0].len, 3);
    assert_memory_equal(first->images[0].bytes, "foo", 3);
    assert_int_equal(first->images[1].at, 4);
    assert_int_equal(first->images[1].index, 1);
    assert_memory_equal(first->images[1].bytes, "ba", 2);
    assert_int_equal(job.messages[1].image_count, 0);
    assert_string_equal(job.messages[2].content, "");
    assert_int_equal(job.messages[2].images[0].index, 2);
    fm_kit_job_free_lists(&job);
    json_object_put(params);
}

static void formats_arrive(void **state) {
    (void)state;
    static const struct {
        const char *format;
        enum fm_format_kind kind;
        const char *schema; /* the schema as JSON; all other members are correct */
        bool strict;
        const char *syntax;
        const char *definition;
    } formats[] = {
        {"null", FM_FORMAT_TEXT, NULL, false, NULL, NULL},
        {"{\"type\":\"json_object\"}", FM_FORMAT_JSON_OBJECT, NULL, false, NULL, NULL},
        {"{\"type\":\"json_schema\",\"schema\":{\"a\":1}}", FM_FORMAT_JSON_SCHEMA, "{\"a\":1}", false, NULL, NULL},
        {"{\"type\":\"json_schema\",\"schema\":{},\"strict\":true}", FM_FORMAT_JSON_SCHEMA, "{}", true, NULL, NULL},
        {"{\"type\":\"json_schema\",\"schema\":{},\"strict\":false}", FM_FORMAT_JSON_SCHEMA, "{}", false, NULL, NULL},
        {"{\"type\":\"grammar\",\"syntax\":\"regex\",\"definition\":\"a\"}", FM_FORMAT_GRAMMAR, NULL, false, "regex",
         "a"},
    };
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"job\":1," MESSAGES ",\"format\":%s}", formats[i].format);
        struct json_object *params = json_tokener_parse(text);
        struct fm_kit_job job;
        struct fm_error error;
        assert_int_equal(read_params(&job, params, &error), FM_OK);
        const struct fm_format *format = &job.format;
        assert_int_equal(format->kind, formats[i].kind);
        assert_int_equal(format->strict, formats[i].strict);
        assert_string_equal(format->syntax ? format->syntax : "none", formats[i].syntax ? formats[i].syntax : "none");
        assert_string_equal(format->definition ? format->definition : "none",
                            formats[i].definition ? formats[i].definition : "none");
        assert_string_equal(json_object_to_json_string_ext(format->schema, JSON_C_TO_STRING_PLAIN),
                            formats[i].schema ? formats[i].schema : "null");
        fm_kit_job_free_lists(&job);
        json_object_put(params);
    }
}

static void tools_arrive(void **state) {
    (void)state;
    static const struct {
        const char *choice;
        enum fm_tool_mode mode;
        bool allowed[3];
    } choices[] = {
        {"null", FM_TOOLS_AUTO, {true, true, true}},
        {"{\"mode\":\"auto\"}", FM_TOOLS_AUTO, {true, true, true}},
        {"{\"mode\":\"required\"}", FM_TOOLS_REQUIRED, {true, true, true}},
        {"{\"mode\":\"none\"}", FM_TOOLS_NONE, {false, false, false}},
        {"{\"mode\":\"required\",\"names\":[\"g\"]}", FM_TOOLS_REQUIRED, {false, true, false}},
        {"{\"mode\":\"auto\",\"names\":[\"h\",\"f\"]}", FM_TOOLS_AUTO, {true, false, true}},
    };
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"job\":1,\"tool_choice\":%s," MESSAGES
                 ",\"parallel_tool_calls\":false,\"tools\":[{\"name\":\"f\",\"description\":\"does f\","
                 "\"parameters\":{\"a\":1},\"strict\":true},{\"name\":\"g\"},{\"name\":\"h\",\"strict\":false}]}",
                 choices[i].choice);
        struct json_object *params = json_tokener_parse(text);
        struct fm_kit_job job;
        struct fm_error error;
        assert_int_equal(read_params(&job, params, &error), FM_OK);
        assert_int_equal(job.tool_count, 3);
        assert_int_equal(job.tool_mode, choices[i].mode);
        assert_false(job.parallel_tool_calls);
        assert_true(fm_kit_job_uses_tools(&job));
        for (size_t t = 0; t < 3; t++) {
            assert_int_equal(job.tools[t].allowed, choices[i].allowed[t]);
        }
        assert_string_equal(job.tools[0].name, "f");
        assert_string_equal(job.tools[0].description, "does f");
        assert_string_equal(json_object_to_json_string_ext(job.tools[0].parameters, JSON_C_TO_STRING_PLAIN),
                            "{\"a\":1}");
        assert_true(job.tools[0].strict);
        assert_string_equal(job.tools[1].name, "g");
        assert_null(job.tools[1].description);
        assert_null(job.tools[1].parameters);
        assert_false(job.tools[1].strict);
        fm_kit_job_free_lists(&job);
        json_object_put(params);
    }
}

static void at_most_128_tools(void **state) {
    (void)state;
    for (size_t count = 128; count <= 129; count++) {
        struct json_object *params = json_tokener_parse("{\"job\":1," MESSAGES ",\"tools\":[]}");
        for (size_t i = 0; i < count; i++) {
            char tool[32];
            snprintf(tool, sizeof tool, "{\"name\":\"f%zu\"}", i);
            json_object_array_add(json_object_object_get(params, "tools"), json_tokener_parse(tool));
        }
        struct fm_kit_job job;
        struct fm_error error;
        assert_int_equal(read_params(&job, params, &error), count == 128 ? FM_OK : FM_INVALID_REQUEST);
        fm_kit_job_free_lists(&job);
        json_object_put(params);
    }
}

static void calls_arrive(void **state) {
    (void)state;
    struct json_object *params = json_tokener_parse("{\"job\":1,\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{"
                                                    "\"id\":\"1\",\"name\":\"f\",\"arguments\":\"{}\"},"
                                                    "{\"id\":\"2\",\"name\":\"g\",\"arguments\":\"{\\\"a\\\":1}\"}]},"
                                                    "{\"role\":\"tool\",\"content\":\"so\",\"tool_call_id\":\"2\"}]}");
    struct fm_kit_job job;
    struct fm_error error;
    assert_int_equal(read_params(&job, params, &error), FM_OK);
    assert_int_equal(job.messages[0].content_len, 0);
    assert_non_null(job.messages[0].content);
    assert_null(job.messages[0].tool_call_id);
    assert_int_equal(job.messages[0].tool_call_count, 2);
    const struct fm_tool_call *call = &job.messages[0].tool_calls[1];
    assert_string_equal(call->id, "2");
    assert_string_equal(call->name, "g");
    assert_string_equal(call->arguments, "{\"a\":1}");
    assert_int_equal(call->arguments_len, 7);
    assert_string_equal(job.messages[1].role, "tool");
    assert_string_equal(job.messages[1].content, "so");
    assert_string_equal(job.messages[1].tool_call_id, "2");
    assert_true(fm_kit_job_uses_tools(&job));
    job.messages[0].tool_call_count = 0; /* a tool's output needs support for tools, too */
    assert_true(fm_kit_job_uses_tools(&job));
    fm_kit_job_free_lists(&job);
    json_object_put(params);
}

static void inputs_arrive(void **state) {
    (void)state;
    struct json_object *params = json_tokener_parse("{\"job\":1,\"embed\":[\"hi\",\"a\\u0000b\"]}");
    struct fm_kit_job job;
    struct fm_error error;
    assert_int_equal(read_params(&job, params, &error), FM_OK);
    assert_int_equal(job.input_count, 2);
    assert_null(job.messages);
    assert_string_equal(job.inputs[0].text, "hi");
    assert_int_equal(job.inputs[1].len, 3);
    assert_memory_equal(job.inputs[1].text, "a\0b", 3);
    assert_false(fm_kit_job_uses_tools(&job));
    fm_kit_job_free_lists(&job);
    json_object_put(params);
}

static void a_prompt_arrives(void **state) {
    (void)state;
    struct json_object *params =
        json_tokener_parse("{\"job\":1,\"prompt\":\"a\\u0000b\",\"suffix\":\"c\\u0000\",\"max_tokens\":0}");
    struct fm_kit_job job;
    struct fm_error error;
    assert_int_equal(read_params(&job, params, &error), FM_OK);
    assert_int_equal(job.prompt_len, 3);
    assert_memory_equal(job.prompt, "a\0b", 3);
    assert_int_equal(job.suffix_len, 2);
    assert_memory_equal(job.suffix, "c\0", 2);
    assert_int_equal(job.message_count, 0);
    assert_true(job.count_only);
    assert_false(fm_kit_job_uses_tools(&job));
    fm_kit_job_free_lists(&job);
    json_object_put(params);
}

static void at_most_2048_inputs(void **state) {
    (void)state;
    for (size_t count = 2048; count <= 2049; count++) {
        struct json_object *params = json_tokener_parse("{\"job\":1,\"embed\":[]}");
        for (size_t i = 0; i < count; i++) {
            json_object_array_add(json_object_object_get(params, "embed"), json_object_new_string("hi"));
        }
        struct fm_kit_job job;
        struct fm_error error;
        assert_int_equal(read_params(&job, params, &error), count == 2048 ? FM_OK : FM_INVALID_REQUEST);
        fm_kit_job_free_lists(&job);
        json_object_put(params);
    }
}

static void absent_values_have_defaults(void **state) {
    (void)state;
    struct json_object *params = json_tokener_parse("{\"job\":1," MESSAGES "}");
    struct fm_kit_job job;
    struct fm_error error;
    assert_int_equal(read_params(&job, params, &error), FM_OK);
    assert_true(job.max_tokens == 0 && !job.count_only && !job.prefill_only && !job.has_seed && job.stop_count == 0);
    for (int i = 0; i < FM_PARAM_COUNT; i++) {
        assert_false(job.named[i] || fm_kit_job_asks(&job, i));
    }
    assert_true(job.tool_count == 0 && job.tool_mode == FM_TOOLS_AUTO && job.parallel_tool_calls);
    assert_false(fm_kit_job_uses_tools(&job));
    fm_kit_job_free_lists(&job);
    json_object_put(params);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_taken_or_refused),
        cmocka_unit_test(values_arrive),
        cmocka_unit_test(images_arrive),
        cmocka_unit_test(formats_arrive),
        cmocka_unit_test(tools_arrive),
        cmocka_unit_test(at_most_128_tools),
        cmocka_unit_test(calls_arrive),
        cmocka_unit_test(inputs_arrive),
        cmocka_unit_test(at_most_2048_inputs),
        cmocka_unit_test(a_prompt_arrives),
        cmocka_unit_test(absent_values_have_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
