/* Request bodies: the values that each parameter may have, and the errors for other values. */
#include "test_surface.h"

struct row {
    const char *body; /* NULL ends the table */
    const char *code; /* of the error; NULL: accepted */
    const char *param;
};

/* Parameters of both APIs; %s is the part that every body needs. */
static const struct row shared_rows[] = {
    {"{%s}", NULL, NULL},
    {"{%s,\"model\":null,\"temperature\":null,\"stop\":null,\"fm\":null,\"metadata\":null,\"tools\":null}", NULL, NULL},
    {"{%s,\"model\":5}", "invalid_type", "model"},
    {"{%s,\"model\":\"a\\u0000b\"}", "invalid_value", "model"},
    {"{%s,\"stream\":1}", "invalid_type", "stream"},
    {"{%s,\"temperature\":0}", NULL, NULL},
    {"{%s,\"temperature\":2}", NULL, NULL},
    {"{%s,\"temperature\":2.01}", "decimal_above_max_value", "temperature"},
    {"{%s,\"temperature\":-0.1}", "decimal_below_min_value", "temperature"},
    {"{%s,\"temperature\":\"1\"}", "invalid_type", "temperature"},
    {"{%s,\"top_p\":1.5}", "decimal_above_max_value", "top_p"},
    {"{%s,\"top_p\":-1}", "decimal_below_min_value", "top_p"},
    {"{%s,\"top_p\":true}", "invalid_type", "top_p"},
    {"{%s,\"seed\":-7}", NULL, NULL},
    {"{%s,\"seed\":9223372036854775807}", NULL, NULL},
    {"{%s,\"seed\":9223372036854775808}", "integer_above_max_value", "seed"},
    {"{%s,\"seed\":99999999999999999999999}", "integer_above_max_value", "seed"},
    {"{%s,\"seed\":-99999999999999999999999}", "integer_below_min_value", "seed"},
    {"{%s,\"seed\":5.0}", "invalid_type", "seed"},
    {"{%s,\"stop\":\"x\"}", NULL, NULL},
    {"{%s,\"stop\":[\"a\",\"b\",\"c\",\"d\"]}", NULL, NULL},
    {"{%s,\"stop\":[\"a\",\"b\",\"c\",\"d\",\"e\"]}", "array_above_max_length", "stop"},
    {"{%s,\"stop\":[\"a\",\"b\",\"c\",\"d\",\"\"]}", "invalid_value", "stop[4]"},
    {"{%s,\"stop\":[]}", "invalid_value", "stop"},
    {"{%s,\"stop\":\"\"}", "invalid_value", "stop"},
    {"{%s,\"stop\":[\"a\",\"\"]}", "invalid_value", "stop[1]"},
    {"{%s,\"stop\":[\"a\",null]}", "invalid_type", "stop[1]"},
    {"{%s,\"stop\":{}}", "invalid_type", "stop"},
    {"{%s,\"metadata\":{\"a\":\"b\"}}", NULL, NULL},
    {"{%s,\"metadata\":{\"a\":1}}", "invalid_type", "metadata.a"},
    {"{%s,\"metadata\":{\"a\":null}}", "invalid_type", "metadata.a"},
    {"{%s,\"metadata\":[]}", "invalid_type", "metadata"},
    {"{%s,\"safety_identifier\":7}", "invalid_type", "safety_identifier"},
    {"{%s,\"prompt_cache_key\":{}}", "invalid_type", "prompt_cache_key"},
    {"{%s,\"prompt_cache_retention\":\"24h\"}", NULL, NULL},
    {"{%s,\"prompt_cache_retention\":\"48h\"}", "invalid_value", "prompt_cache_retention"},
    {"{%s,\"prompt_cache_options\":{\"mode\":\"implicit\",\"ttl\":\"30m\"}}", NULL, NULL},
    {"{%s,\"prompt_cache_options\":{\"ttl\":\"1h\"}}", "invalid_value", "prompt_cache_options.ttl"},
    {"{%s,\"prompt_cache_options\":7}", "invalid_type", "prompt_cache_options"},
    {"{%s,\"user\":\"me\"}", NULL, NULL},
    {"{%s,\"user\":1}", "invalid_type", "user"},
    {"{%s,\"service_tier\":\"flex\"}", NULL, NULL},
    {"{%s,\"service_tier\":\"gold\"}", "invalid_value", "service_tier"},
    {"{%s,\"service_tier\":1}", "invalid_type", "service_tier"},
    {"{%s,\"parallel_tool_calls\":false}", NULL, NULL},
    {"{%s,\"parallel_tool_calls\":\"no\"}", "invalid_type", "parallel_tool_calls"},
    {"{%s,\"store\":false}", NULL, NULL},
    {"{%s,\"top_logprobs\":0}", NULL, NULL},
    {"{%s,\"top_logprobs\":21}", "integer_above_max_value", "top_logprobs"},
    {"{%s,\"top_logprobs\":-1}", "integer_below_min_value", "top_logprobs"},
    {"{%s,\"top_logprobs\":\"0\"}", "invalid_type", "top_logprobs"},
    {"{%s,\"presence_penalty\":0.0}", NULL, NULL},
    {"{%s,\"presence_penalty\":2,\"frequency_penalty\":-2.0}", NULL, NULL},
    {"{%s,\"presence_penalty\":2.5}", "decimal_above_max_value", "presence_penalty"},
    {"{%s,\"presence_penalty\":\"1\"}", "invalid_type", "presence_penalty"},
    {"{%s,\"frequency_penalty\":-2.01}", "decimal_below_min_value", "frequency_penalty"},
    {"{%s,\"frequency_penalty\":true}", "invalid_type", "frequency_penalty"},
    {"{%s,\"fm\":{}}", NULL, NULL},
    {"{%s,\"fm\":{\"timeout_ms\":null}}", NULL, NULL},
    {"{%s,\"fm\":[]}", "invalid_type", "fm"},
    {"{%s,\"fm\":{\"timeout_ms\":0}}", "integer_below_min_value", "fm.timeout_ms"},
    {"{%s,\"fm\":{\"timeout_ms\":86400001}}", "integer_above_max_value", "fm.timeout_ms"},
    {"{%s,\"fm\":{\"queue_timeout_ms\":1.5}}", "invalid_type", "fm.queue_timeout_ms"},
    {"{%s,\"fm\":{\"xyz\":1}}", "unknown_parameter", "fm.xyz"},
    {"{%s,\"fm\":{\"schema_report\":true}}", NULL, NULL},
    {"{%s,\"fm\":{\"schema_report\":1}}", "invalid_type", "fm.schema_report"},
    {"{%s,\"fm\":{\"repeatable\":true}}", NULL, NULL},
    {"{%s,\"fm\":{\"repeatable\":1}}", "invalid_type", "fm.repeatable"},
    {"{%s,\"fm\":{\"grammar\":null}}", NULL, NULL},
    {"{%s,\"fm\":{\"grammar\":\"x\"}}", "invalid_type", "fm.grammar"},
    {"{%s,\"fm\":{\"grammar\":{}}}", "missing_required_parameter", "fm.grammar.syntax"},
    {"{%s,\"fm\":{\"grammar\":{\"syntax\":\"lark\"}}}", "missing_required_parameter", "fm.grammar.definition"},
    {"{%s,\"fm\":{\"grammar\":{\"definition\":\"x\"}}}", "missing_required_parameter", "fm.grammar.syntax"},
    {"{%s,\"fm\":{\"grammar\":{\"syntax\":\"lark\",\"definition\":\"start: /x/\"}}}", NULL, NULL},
    {"{%s,\"fm\":{\"grammar\":{\"syntax\":\"regex\",\"definition\":\"x\"}}}", NULL, NULL},
    {"{%s,\"fm\":{\"grammar\":{\"syntax\":\"gbnf\",\"definition\":\"x\"}}}", "unsupported_value", "fm.grammar.syntax"},
    {"{%s,\"fm\":{\"grammar\":{\"syntax\":\"yacc\",\"definition\":\"x\"}}}", "invalid_value", "fm.grammar.syntax"},
    {"{%s,\"fm\":{\"grammar\":{\"syntax\":[],\"definition\":\"x\"}}}", "invalid_type", "fm.grammar.syntax"},
    {"{%s,\"fm\":{\"grammar\":{\"syntax\":\"lark\",\"definition\":\"\"}}}", "invalid_value", "fm.grammar.definition"},
    {"{%s,\"fm\":{\"grammar\":{\"syntax\":\"lark\",\"definition\":\"a\\u0000\"}}}", "invalid_value",
     "fm.grammar.definition"},
    {"{%s,\"fm\":{\"grammar\":{\"syntax\":\"lark\",\"definition\":7}}}", "invalid_type", "fm.grammar.definition"},
    {"{%s,\"fm\":{\"grammar\":{\"syntax\":\"lark\",\"definition\":\"x\",\"start\":\"x\"}}}", "unknown_parameter",
     "fm.grammar.start"},
    {"{%s,\"fm\":{\"grammar\":{\"syntax\":\"lark\",\"definition\":\"x\"}},\"stop\":\"y\"}", NULL, NULL},
    {"{%s,\"fm\":{\"grammar\":{\"syntax\":\"lark\",\"definition\":\"x\"}},\"stop\":null}", NULL, NULL},
    {"{%s,\"grammar\":\"x\"}", IGNORED, "grammar"},
    {"{%s,\"grammar\":null}", IGNORED, "grammar"},
    {NULL, NULL, NULL},
};

#define IN "\"input\":\"hi\""

static const struct row responses_rows[] = {
    {"{}", "missing_required_parameter", "input"},
    {"{\"input\":null}", "missing_required_parameter", "input"},
    {"{\"input\":5}", "invalid_type", "input"},
    {"{\"input\":\"\"}", NULL, NULL}, /* hosts do send empty messages */
    {"{\"input\":[]}", "invalid_value", "input"},
    {"{\"input\":[{\"type\":\"reasoning\",\"summary\":[]}]}", "invalid_value", "input"},
    {"{\"input\":[{\"role\":\"user\",\"content\":\"\"}]}", NULL, NULL},
    {"{\"input\":[{\"role\":\"user\",\"content\":[]}],\"instructions\":\"do\"}", NULL, NULL},
    {"{\"input\":[null]}", "invalid_type", "input[0]"},
    {"{\"input\":[{}]}", "missing_required_parameter", "input[0].type"},
    {"{\"input\":[{\"type\":\"message\",\"content\":\"x\"}]}", "missing_required_parameter", "input[0].role"},
    {"{\"input\":[{\"type\":7,\"role\":\"user\"}]}", "invalid_type", "input[0].type"},
    {"{\"input\":[{\"type\":\"poem\"}]}", "invalid_value", "input[0].type"},
    {"{\"input\":[{\"type\":\"item_reference\",\"id\":\"msg_1\"}]}", NULL, NULL},
    {"{\"input\":[{\"id\":\"msg_1\"}]}", NULL, NULL},
    {"{\"input\":[{\"type\":\"item_reference\"}]}", "missing_required_parameter", "input[0].id"},
    {"{\"input\":[{\"type\":\"item_reference\",\"id\":\"\"}]}", "invalid_value", "input[0].id"},
    {"{\"input\":[{\"type\":\"item_reference\",\"id\":\"a\",\"x\":1}]}", IGNORED, "input[0].x"},
    {"{\"input\":[{\"id\":\"a\"},{\"id\":\"b\"},{\"id\":\"a\"}]}", "invalid_value", "input[2].id"},
    {"{\"input\":[{\"role\":\"user\",\"content\":\"a\",\"id\":\"m\"},{\"role\":\"user\",\"content\":\"b\",\"id\":\"m\"}"
     "]}",
     "invalid_value", "input[1].id"},
    {"{\"input\":[{\"role\":\"user\",\"content\":\"a\",\"id\":null},{\"role\":\"user\",\"content\":\"b\",\"id\":null}]"
     "}",
     NULL, NULL},
    {"{\"input\":[{\"role\":\"user\",\"content\":\"a\",\"id\":\"\"}]}", "invalid_value", "input[0].id"},
    {"{\"input\":[{\"role\":\"user\",\"content\":\"a\",\"id\":\"m\\u0000\"}]}", "invalid_value", "input[0].id"},
    {"{\"input\":[{\"type\":\"reasoning\",\"summary\":[]}]}", "invalid_value", "input"},
    {"{\"input\":[{\"role\":\"tool\",\"content\":\"x\"}]}", "invalid_value", "input[0].role"},
    {"{\"input\":[{\"role\":\"user\\u0000\",\"content\":\"x\"}]}", "invalid_value", "input[0].role"},
    {"{\"input\":[{\"role\":1,\"content\":\"x\"}]}", "invalid_type", "input[0].role"},
    {"{\"input\":[{\"role\":\"user\"}]}", "missing_required_parameter", "input[0].content"},
    {"{\"input\":[{\"role\":\"user\",\"content\":null}]}", "missing_required_parameter", "input[0].content"},
    {"{\"input\":[{\"role\":\"user\",\"content\":4}]}", "invalid_type", "input[0].content"},
    {"{\"input\":[{\"role\":\"user\",\"content\":[4]}]}", "invalid_type", "input[0].content[0]"},
    {"{\"input\":[{\"role\":\"user\",\"content\":[{}]}]}", "missing_required_parameter", "input[0].content[0].type"},
    {"{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"a\"},"
     "{\"type\":\"input_image\",\"image_url\":\"x\"}]}]}",
     "invalid_value", "input[0].content[1].image_url"},
    {"{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\"}]}]}", "unsupported_parameter",
     "input[0].content[0].type"},
    {"{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}]}", "invalid_value",
     "input[0].content[0].type"},
    {"{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\"}]}]}", "missing_required_parameter",
     "input[0].content[0].text"},
    {"{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":5}]}]}", "invalid_type",
     "input[0].content[0].text"},
    {"{\"input\":[{\"role\":\"assistant\",\"content\":[{\"type\":\"refusal\",\"text\":\"x\"}]}]}",
     "missing_required_parameter", "input[0].content[0].refusal"},
    {"{\"input\":[{\"role\":\"user\",\"content\":\"x\",\"mood\":1}]}", IGNORED, "input[0].mood"},
    {"{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"a\",\"b\":1}]}]}", IGNORED,
     "input[0].content[0].b"},
    {"{\"input\":[{\"type\":\"message\",\"id\":\"msg_1\",\"status\":\"completed\",\"phase\":null,"
     "\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"x\",\"annotations\":[],"
     "\"logprobs\":[]}]}]}",
     NULL, NULL},
    {"{" IN ",\"instructions\":7}", "invalid_type", "instructions"},
    {"{" IN ",\"max_output_tokens\":1}", NULL, NULL},
    {"{" IN ",\"max_output_tokens\":2147483647}", NULL, NULL},
    {"{" IN ",\"max_output_tokens\":0}", "integer_below_min_value", "max_output_tokens"},
    {"{" IN ",\"max_output_tokens\":-1}", "integer_below_min_value", "max_output_tokens"},
    {"{" IN ",\"max_output_tokens\":2147483648}", "integer_above_max_value", "max_output_tokens"},
    {"{" IN ",\"max_output_tokens\":5.0}", "invalid_type", "max_output_tokens"},
    {"{" IN ",\"max_output_tokens\":\"5\"}", "invalid_type", "max_output_tokens"},
    {"{" IN ",\"max_tool_calls\":0}", "integer_below_min_value", "max_tool_calls"},
    {"{" IN ",\"text\":{}}", NULL, NULL},
    {"{" IN ",\"text\":{\"format\":{\"type\":\"text\"},\"verbosity\":\"low\"}}", NULL, NULL},
    {"{" IN ",\"text\":{\"format\":null}}", NULL, NULL},
    {"{" IN ",\"text\":5}", "invalid_type", "text"},
    {"{" IN ",\"text\":{\"verbosity\":\"huge\"}}", "invalid_value", "text.verbosity"},
    {"{" IN ",\"text\":{\"tone\":\"huge\"}}", IGNORED, "text.tone"},
    {"{\"input\":[{\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"x\",\"annotations\":{}}]}]"
     "}",
     "invalid_type", "input[0].content[0].annotations"},
    {"{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":7}]}]}", "invalid_type", "input[0].content[0].type"},
    {"{" IN ",\"reasoning\":{\"effort\":null,\"summary\":null}}", NULL, NULL},
    {"{" IN ",\"reasoning\":{\"effort\":\"none\",\"summary\":\"auto\",\"generate_summary\":\"detailed\"}}", NULL, NULL},
    {"{" IN ",\"reasoning\":{\"effort\":\"most\"}}", "invalid_value", "reasoning.effort"},
    {"{" IN ",\"reasoning\":{\"effort\":1}}", "invalid_type", "reasoning.effort"},
    {"{" IN ",\"reasoning\":{\"summary\":\"long\"}}", "invalid_value", "reasoning.summary"},
    {"{" IN ",\"reasoning\":{\"generate_summary\":\"long\"}}", "invalid_value", "reasoning.generate_summary"},
    {"{" IN ",\"reasoning\":{\"tempo\":\"x\"}}", IGNORED, "reasoning.tempo"},
    {"{" IN ",\"include\":[\"reasoning.encrypted_content\"]}", NULL, NULL},
    {"{" IN ",\"fm\":{\"reasoning_dialect\":\"reasoning\"}}", NULL, NULL},
    {"{" IN ",\"fm\":{\"reasoning_dialect\":\"thought\"}}", "invalid_value", "fm.reasoning_dialect"},
    {"{" IN ",\"reasoning\":\"low\"}", "invalid_type", "reasoning"},
    {"{" IN ",\"stream_options\":{\"include_obfuscation\":false}}", NULL, NULL},
    {"{" IN ",\"stream_options\":{\"include_obfuscation\":1}}", "invalid_type", "stream_options.include_obfuscation"},
    {"{" IN ",\"stream_options\":{\"include_usage\":true}}", IGNORED, "stream_options.include_usage"},
    {"{" IN ",\"truncation\":\"disabled\"}", NULL, NULL},
    {"{" IN ",\"truncation\":\"auto\"}", NULL, NULL},
    {"{" IN ",\"truncation\":\"some\"}", "invalid_value", "truncation"},
    {"{" IN ",\"truncation\":true}", "invalid_type", "truncation"},
    {"{" IN ",\"background\":false}", NULL, NULL},
    {"{" IN ",\"background\":true}", NULL, NULL},
    {"{" IN ",\"background\":true,\"store\":true}", NULL, NULL},
    {"{" IN ",\"background\":true,\"store\":false}", "unsupported_value", "background"},
    {"{" IN ",\"background\":1}", "invalid_type", "background"},
    {"{" IN ",\"store\":true}", NULL, NULL},
    {"{" IN ",\"store\":0}", "invalid_type", "store"},
    {"{" IN ",\"include\":[]}", NULL, NULL},
    {"{" IN ",\"include\":[\"message.output_text.logprobs\",\"reasoning.encrypted_content\"]}", NULL, NULL},
    {"{" IN ",\"include\":[\"file_search_call.results\",\"everything\"]}", "invalid_value", "include[1]"},
    {"{" IN ",\"include\":[7]}", "invalid_type", "include[0]"},
    {"{" IN ",\"include\":\"message.output_text.logprobs\"}", "invalid_type", "include"},
    {"{" IN ",\"top_logprobs\":20}", NULL, NULL},
    {"{" IN ",\"previous_response_id\":null,\"conversation\":null,\"prompt\":null,\"context_management\":null,"
     "\"moderation\":null,\"prompt_cache_options\":null}",
     NULL, NULL},
    {"{" IN ",\"previous_response_id\":\"resp_1\"}", NULL, NULL},
    {"{\"previous_response_id\":\"resp_1\"}", NULL, NULL},
    {"{" IN ",\"previous_response_id\":\"\"}", "invalid_value", "previous_response_id"},
    {"{" IN ",\"previous_response_id\":1}", "invalid_type", "previous_response_id"},
    {"{" IN ",\"previous_response_id\":\"a\\u0000\"}", "invalid_value", "previous_response_id"},
    {"{" IN ",\"conversation\":{}}", "unsupported_parameter", "conversation"},
    {"{" IN ",\"prompt\":{}}", "unsupported_parameter", "prompt"},
    {"{" IN ",\"context_management\":[]}", "unsupported_parameter", "context_management"},
    {"{" IN ",\"moderation\":{}}", "unsupported_parameter", "moderation"},
    {"{" IN ",\"access_programs\":{}}", "unsupported_parameter", "access_programs"},
    {"{" IN ",\"personality\":\"friendly\"}", "unsupported_parameter", "personality"},
    {"{" IN ",\"background_options\":{\"completion_window\":\"soonest\",\"continuation_id\":\"a\"}}", NULL, NULL},
    {"{" IN ",\"background_options\":{\"completion_window\":\"2h\"}}", "unsupported_parameter",
     "background_options.completion_window"},
    {"{" IN ",\"background_options\":\"soonest\"}", "invalid_type", "background_options"},
    {"{" IN ",\"image\":{\"context_compression\":\"auto\"}}", NULL, NULL},
    {"{" IN ",\"image\":{\"context_compression\":\"disabled\"}}", NULL, NULL},
    {"{" IN ",\"image\":{\"context_compression\":\"enabled\"}}", "unsupported_parameter", "image.context_compression"},
    {"{" IN ",\"reasoning\":{\"context\":\"auto\",\"mode\":\"standard\"}}", NULL, NULL},
    {"{" IN ",\"reasoning\":{\"context\":\"all_turns\"}}", "unsupported_parameter", "reasoning.context"},
    {"{" IN ",\"reasoning\":{\"mode\":\"pro\"}}", "unsupported_parameter", "reasoning.mode"},
    {"{" IN ",\"reasoning\":{\"mode\":5}}", "unsupported_parameter", "reasoning.mode"},
    {"{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"a\",\"prompt_cache_breakpoint\":"
     "{\"mode\":\"explicit\",\"ttl\":\"30m\"}}]}]}",
     NULL, NULL},
    {"{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"a\",\"prompt_cache_breakpoint\":"
     "{\"mode\":\"implicit\"}}]}]}",
     "invalid_value", "input[0].content[0].prompt_cache_breakpoint.mode"},
    {"{" IN ",\"messages\":[]}", "unsupported_parameter", "messages"},
    {"{" IN ",\"max_tokens\":1}", "unsupported_parameter", "max_tokens"},
    {NULL, NULL, NULL},
};

#define MSG "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

static const struct row chat_rows[] = {
    {"{}", "missing_required_parameter", "messages"},
    {"{\"messages\":\"hi\"}", "invalid_type", "messages"},
    {"{\"messages\":[]}", "invalid_value", "messages"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":\"\"}]}", NULL, NULL},
    {"{\"messages\":[{\"role\":\"user\",\"content\":[]}]}", NULL, NULL},
    {"{\"messages\":[5]}", "invalid_type", "messages[0]"},
    {"{\"messages\":[{\"content\":\"x\"}]}", "missing_required_parameter", "messages[0].role"},
    {"{\"messages\":[{\"role\":\"poet\",\"content\":\"x\"}]}", "invalid_value", "messages[0].role"},
    {"{\"messages\":[{\"role\":\"function\",\"name\":\"f\",\"content\":\"x\"}]}", "unsupported_parameter",
     "messages[0].role"},
    {"{\"messages\":[{\"role\":\"assistant\",\"content\":\"x\",\"refusal\":null,\"annotations\":[],\"tool_calls\":[],"
     "\"name\":\"n\",\"audio\":null,\"function_call\":null}]}",
     NULL, NULL},
    {"{\"messages\":[{\"role\":\"assistant\",\"content\":\"x\",\"function_call\":{}}]}", "unsupported_parameter",
     "messages[0].function_call"},
    {"{\"messages\":[{\"role\":\"assistant\",\"content\":\"x\",\"audio\":{}}]}", "unsupported_parameter",
     "messages[0].audio"},
    {"{\"messages\":[{\"role\":\"assistant\",\"refusal\":\"no\"}]}", NULL, NULL},
    {"{\"messages\":[{\"role\":\"assistant\"}]}", "missing_required_parameter", "messages[0].content"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"mood\":1}]}", IGNORED, "messages[0].mood"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]}", "missing_required_parameter",
     "messages[0].content[0].image_url"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\"}]}]}", "unsupported_parameter",
     "messages[0].content[0].type"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"x\"}]}]}", "invalid_value",
     "messages[0].content[0].type"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]}", "missing_required_parameter",
     "messages[0].content[0].text"},
    {"{" MSG ",\"max_tokens\":0}", "integer_below_min_value", "max_tokens"},
    {"{" MSG ",\"max_completion_tokens\":2147483648}", "integer_above_max_value", "max_completion_tokens"},
    {"{" MSG ",\"n\":1}", NULL, NULL},
    {"{" MSG ",\"n\":128}", NULL, NULL},
    {"{" MSG ",\"n\":129}", "integer_above_max_value", "n"},
    {"{" MSG ",\"n\":0}", "integer_below_min_value", "n"},
    {"{" MSG ",\"n\":1.5}", "invalid_type", "n"},
    {"{" MSG ",\"stream_options\":{\"include_usage\":true,\"include_obfuscation\":true}}", NULL, NULL},
    {"{" MSG ",\"stream_options\":{\"include_usage\":1}}", "invalid_type", "stream_options.include_usage"},
    {"{" MSG ",\"stream_options\":{\"x\":1}}", IGNORED, "stream_options.x"},
    {"{" MSG ",\"logprobs\":false}", NULL, NULL},
    {"{" MSG ",\"logprobs\":true}", NULL, NULL},
    {"{" MSG ",\"store\":true}", NULL, NULL}, /* accepted here; reported when the job goes to an engine */
    {"{" MSG ",\"store\":1}", "invalid_type", "store"},
    {"{" MSG ",\"logprobs\":1}", "invalid_type", "logprobs"},
    {"{" MSG ",\"logprobs\":true,\"top_logprobs\":20}", NULL, NULL},
    {"{" MSG ",\"logprobs\":false,\"top_logprobs\":1}", "invalid_value", "top_logprobs"},
    {"{" MSG ",\"top_logprobs\":1}", "invalid_value", "top_logprobs"},
    {"{" MSG ",\"logit_bias\":{}}", NULL, NULL},
    {"{" MSG ",\"logit_bias\":{\"0\":-100,\"5\":1.5,\"2147483647\":100}}", NULL, NULL},
    {"{" MSG ",\"logit_bias\":[]}", "invalid_type", "logit_bias"},
    {"{" MSG ",\"logit_bias\":{\"\":1}}", "invalid_value", "logit_bias"},
    {"{" MSG ",\"logit_bias\":{\"the\":1}}", "invalid_value", "logit_bias"},
    {"{" MSG ",\"logit_bias\":{\"5x\":1}}", "invalid_value", "logit_bias"},
    {"{" MSG ",\"logit_bias\":{\"-5\":1}}", "invalid_value", "logit_bias"},
    {"{" MSG ",\"logit_bias\":{\"05\":1}}", "invalid_value", "logit_bias"},
    {"{" MSG ",\"logit_bias\":{\"2147483648\":1}}", "invalid_value", "logit_bias"},
    {"{" MSG ",\"logit_bias\":{\"99999999999999999999\":1}}", "invalid_value", "logit_bias"},
    {"{" MSG ",\"logit_bias\":{\"5\":100.5}}", "decimal_above_max_value", "logit_bias.5"},
    {"{" MSG ",\"logit_bias\":{\"5\":-101}}", "decimal_below_min_value", "logit_bias.5"},
    {"{" MSG ",\"logit_bias\":{\"5\":null}}", "invalid_type", "logit_bias.5"},
    {"{" MSG ",\"modalities\":[\"text\"]}", NULL, NULL},
    {"{" MSG ",\"modalities\":[\"text\",\"audio\"]}", "unsupported_parameter", "modalities"},
    {"{" MSG ",\"modalities\":[\"audio\",\"text\"]}", "unsupported_parameter", "modalities"},
    {"{" MSG ",\"modalities\":\"text\"}", "unsupported_parameter", "modalities"},
    {"{" MSG ",\"verbosity\":\"high\"}", NULL, NULL},
    {"{" MSG ",\"verbosity\":\"max\"}", "invalid_value", "verbosity"},
    {"{" MSG ",\"reasoning_effort\":\"minimal\"}", NULL, NULL},
    {"{" MSG ",\"reasoning_effort\":\"most\"}", "invalid_value", "reasoning_effort"},
    {"{" MSG ",\"fm\":{\"reasoning_dialect\":\"summary\"}}", "unsupported_parameter", "fm.reasoning_dialect"},
    {"{" MSG ",\"functions\":[]}", "unsupported_parameter", "functions"},
    {"{" MSG ",\"function_call\":\"none\"}", "unsupported_parameter", "function_call"},
    {"{" MSG ",\"prediction\":{}}", "unsupported_parameter", "prediction"},
    {"{" MSG ",\"audio\":{}}", "unsupported_parameter", "audio"},
    {"{" MSG ",\"web_search_options\":{}}", "unsupported_parameter", "web_search_options"},
    {"{" MSG ",\"input\":\"x\"}", "unsupported_parameter", "input"},
    {"{" MSG ",\"max_output_tokens\":5}", "unsupported_parameter", "max_output_tokens"},
    {NULL, NULL, NULL},
};

static const struct row input_tokens_rows[] = {
    {"{" IN ",\"model\":null,\"instructions\":\"x\",\"tools\":[],\"tool_choice\":\"auto\",\"text\":{},\"reasoning\":{},"
     "\"truncation\":\"disabled\",\"previous_response_id\":null,\"conversation\":null,\"parallel_tool_calls\":true,"
     "\"fm\":{\"timeout_ms\":5}}",
     NULL, NULL},
    {"{}", "missing_required_parameter", "input"},
    {"{\"previous_response_id\":\"resp_1\"}", NULL, NULL},
    {"{" IN ",\"conversation\":\"conv_1\"}", "unsupported_parameter", "conversation"},
    {"{" IN ",\"store\":false}", "unsupported_parameter", "store"},
    {"{" IN ",\"text\":{\"format\":{\"type\":\"xml\"}}}", "invalid_value", "text.format.type"},
    {"{" IN ",\"stream\":false}", "unsupported_parameter", "stream"},
    {"{" IN ",\"max_output_tokens\":null}", NULL, NULL},
    {"{" IN ",\"temperature\":1}", "unsupported_parameter", "temperature"},
    {"{" IN ",\"x\":1}", IGNORED, "x"},
    {NULL, NULL, NULL},
};

/* Formats; %s is the format. Members beside it are in shared_rows. */
static const struct row type_rows[] = {
    {"null", NULL, NULL},
    {"{\"type\":\"text\"}", NULL, NULL},
    {"{\"type\":\"json_object\"}", NULL, NULL},
    {"\"text\"", "invalid_type", ""},
    {"[]", "invalid_type", ""},
    {"{}", "missing_required_parameter", ".type"},
    {"{\"type\":null}", "missing_required_parameter", ".type"},
    {"{\"type\":7}", "invalid_type", ".type"},
    {"{\"type\":\"xml\"}", "invalid_value", ".type"},
    {"{\"type\":\"text\\u0000\"}", "invalid_value", ".type"},
    {"{\"type\":\"grammar\"}", "invalid_value", ".type"},
    {"{\"type\":\"text\",\"x\":1}", IGNORED, ".x"},
    {"{\"type\":\"text\",\"schema\":{}}", IGNORED, ".schema"},
    {"{\"type\":\"json_object\",\"name\":\"x\"}", IGNORED, ".name"},
    {"{\"x\":1}", "missing_required_parameter", ".type"},
    {NULL, NULL, NULL},
};

/* The members of a json_schema. */
static const struct row schema_rows[] = {
    {"\"name\":\"a\",\"schema\":{}", NULL, NULL},
    {"\"name\":\"Az_0-9\",\"schema\":{\"type\":\"object\"},\"strict\":true,\"description\":\"d\"", NULL, NULL},
    {"\"name\":\"a\",\"schema\":{\"x\":null},\"strict\":null,\"description\":null", NULL, NULL},
    {"\"name\":\"a\",\"schema\":{},\"strict\":false", NULL, NULL},
    {"\"schema\":{}", "missing_required_parameter", ".name"},
    {"\"name\":null,\"schema\":{}", "missing_required_parameter", ".name"},
    {"\"name\":\"a\"", "missing_required_parameter", ".schema"},
    {"\"name\":\"a\",\"schema\":null", "missing_required_parameter", ".schema"},
    {"\"name\":\"\",\"schema\":{}", "invalid_value", ".name"},
    {"\"name\":\"a b\",\"schema\":{}", "invalid_value", ".name"},
    {"\"name\":\"a.b\",\"schema\":{}", "invalid_value", ".name"},
    {"\"name\":\"\xc3\xa9\",\"schema\":{}", "invalid_value", ".name"},
    {"\"name\":\"a\\u0000\",\"schema\":{}", "invalid_value", ".name"},
    {"\"name\":7,\"schema\":{}", "invalid_type", ".name"},
    {"\"name\":\"a\",\"schema\":true", "invalid_type", ".schema"},
    {"\"name\":\"a\",\"schema\":\"{}\"", "invalid_type", ".schema"},
    {"\"name\":\"a\",\"schema\":[]", "invalid_type", ".schema"},
    {"\"name\":\"a\",\"schema\":{},\"strict\":\"yes\"", "invalid_type", ".strict"},
    {"\"name\":\"a\",\"schema\":{},\"description\":{}", "invalid_type", ".description"},
    {"\"name\":\"a\",\"schema\":{},\"x\":1", IGNORED, ".x"},
    {NULL, NULL, NULL},
};

/* Where a format may be, and the text around a schema's members there. The first two are the APIs' own places. */
static const struct place {
    const struct fm_surface *surface;
    const char *open;
    const char *close;
    const char *at;
    const char *schema_open;
    const char *schema_close;
    const char *schema_at;
} places[] = {
    {&fm_surface_responses, "{" IN ",\"text\":{\"format\":", "}", "text.format", "{\"type\":\"json_schema\",", "}",
     "text.format"},
    {&fm_surface_chat, "{" MSG ",\"response_format\":", "", "response_format",
     "{\"type\":\"json_schema\",\"json_schema\":{", "}}", "response_format.json_schema"},
    {&fm_surface_responses, "{" IN ",\"response_format\":", "", "response_format",
     "{\"type\":\"json_schema\",\"json_schema\":{", "}}", "response_format.json_schema"},
    {&fm_surface_responses, "{" IN ",\"text\":{\"format\":null},\"response_format\":", "", "response_format",
     "{\"type\":\"json_schema\",", "}", "response_format"},
};

struct body {
    char text[1024];
};

/* A body with `format`, and `more` beside it. */
static struct body body_with(const struct place *place, const char *format, const char *more) {
    struct body body;
    int len = snprintf(body.text, sizeof body.text, "%s%s%s%s}", place->open, format, place->close, more);
    assert_in_range(len, 1, sizeof body.text - 1);
    return body;
}

/* A format at `place` whose json_schema has these members. */
static struct body schema_of(const struct place *place, const char *members, const char *more) {
    struct body format;
    int len =
        snprintf(format.text, sizeof format.text, "%s%s%s%s", place->schema_open, members, more, place->schema_close);
    assert_in_range(len, 1, sizeof format.text - 1);
    return format;
}

static void check_rows(const struct fm_surface *surface, const struct row *rows) {
    for (const struct row *row = rows; row->body; row++) {
        check_body(surface, row->body, row->code, row->param);
    }
}

static void check_shared(const struct fm_surface *surface, const char *needed) {
    for (const struct row *row = shared_rows; row->body; row++) {
        char body[512];
        const char *rest = row->body + 3; /* the part after "{%s" */
        snprintf(body, sizeof body, "{%s%s", needed, rest);
        check_body(surface, body, row->code, row->param);
    }
}

static void test_shared(void **state) {
    (void)state;
    check_shared(&fm_surface_responses, IN);
    check_shared(&fm_surface_chat, MSG);
}

static void test_responses(void **state) {
    (void)state;
    check_rows(&fm_surface_responses, responses_rows);
}

static void test_input_tokens(void **state) {
    (void)state;
    check_rows(&fm_surface_input_tokens, input_tokens_rows);
    struct fm_request request = request_of(&fm_surface_input_tokens, "{" IN "}");
    assert_false(request.store || request.stream || request.background);
    fm_request_free(&request);
}

static void test_chat(void **state) {
    (void)state;
    check_rows(&fm_surface_chat, chat_rows);
}

/* ---- formats ---- */

static void check_format(const struct place *place, const char *format, const char *more, const char *code,
                         const char *param) {
    struct body body = body_with(place, format, more);
    check_body(place->surface, body.text, code, param);
}

/* Checks `format`; its error is at `at` or below. */
static void check_format_row(const struct place *place, const char *format, const struct row *row, const char *at) {
    char param[160];
    snprintf(param, sizeof param, "%s%s", at, row->code ? row->param : "");
    check_format(place, format, "", row->code, param);
}

static void test_formats(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const struct place *place = &places[i];
        for (const struct row *row = type_rows; row->body; row++) {
            check_format_row(place, row->body, row, place->at);
        }
        for (const struct row *row = schema_rows; row->body; row++) {
            check_format_row(place, schema_of(place, row->body, "").text, row, place->schema_at);
        }
    }
    check_body(&fm_surface_chat, "{" MSG ",\"response_format\":{\"type\":\"json_schema\"}}",
               "missing_required_parameter", "response_format.json_schema");
    check_body(&fm_surface_chat, "{" MSG ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":7}}",
               "invalid_type", "response_format.json_schema");
    check_body(&fm_surface_chat, "{" MSG ",\"response_format\":{\"type\":\"json_schema\",\"schema\":{}}}",
               "missing_required_parameter", "response_format.json_schema");
    check_body(&fm_surface_responses, "{" IN ",\"text\":{\"format\":{\"type\":\"json_schema\",\"json_schema\":{}}}}",
               "missing_required_parameter", "text.format.name");
}

#define GRAMMAR ",\"fm\":{\"grammar\":{\"syntax\":\"lark\",\"definition\":\"x\"}}"
#define OBJECT  "{\"type\":\"json_object\"}"
#define NESTED  "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"a\",\"schema\":{}}}"
#define FLAT    "\"response_format\":{\"type\":\"json_schema\",\"name\":\"a\",\"schema\":{}}"

/* Chat's parameter in the Responses API: it means `text.format`, in either form. */
static void test_response_format(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"{" IN ",\"response_format\":7}", "invalid_type", "response_format"},
        {"{" IN ",\"response_format\":{\"type\":\"json_schema\"}}", "missing_required_parameter",
         "response_format.json_schema"},
        {"{" IN ",\"text\":{\"format\":" OBJECT "},\"response_format\":" OBJECT "}", "invalid_value",
         "response_format"},
        {"{" IN ",\"text\":{\"format\":{\"type\":\"text\"}}," NESTED "}", "invalid_value", "response_format"},
        {"{" IN ",\"text\":{\"format\":" OBJECT "},\"response_format\":null}", NULL, NULL},
        {"{" IN "," NESTED GRAMMAR "}", "invalid_value", "fm.grammar"},
        {NULL, NULL, NULL},
    };
    check_rows(&fm_surface_responses, rows);
    check_rows(&fm_surface_input_tokens, rows);
    check_job(&fm_surface_input_tokens, "{" IN "," NESTED "}",
              MSG ",\"max_tokens\":0,\"format\":{\"type\":\"json_schema\",\"schema\":{},\"strict\":false}");
    check_body(&fm_surface_compact, "{" IN ",\"model\":\"m\"," NESTED "}", "unsupported_parameter", "response_format");
}

static void test_what_stands_beside_a_format(void **state) {
    (void)state;
    static const struct {
        const char *more;
        const char *code; /* the error's code beside a JSON format; beside {"type":"text"} all values are accepted */
        const char *param;
    } rows[] = {
        {",\"stop\":\"x\"", NULL, ""},
        {GRAMMAR, "invalid_value", "fm.grammar"},
        {",\"fm\":{\"grammar\":null,\"schema_report\":true}", NULL, ""},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct body schema = schema_of(&places[i], "\"name\":\"a\",\"schema\":{}", "");
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
            check_format(&places[i], schema.text, rows[k].more, rows[k].code, rows[k].param);
            check_format(&places[i], "{\"type\":\"json_object\"}", rows[k].more, rows[k].code, rows[k].param);
            check_format(&places[i], "{\"type\":\"text\"}", rows[k].more, NULL, NULL);
            check_format(&places[i], "null", rows[k].more, NULL, NULL);
        }
    }
}

/* The notes say what is supported. */
static void test_format_notes(void **state) {
    (void)state;
    static const struct {
        const char *body;
        const char *detail;
    } rows[] = {
        {"{" IN ",\"text\":{\"format\":{\"type\":\"xml\"}}}",
         "Invalid value for 'text.format.type'. Supported values are: 'text', 'json_object', 'json_schema'."},
        {"{" IN ",\"text\":{\"format\":" OBJECT "},\"response_format\":" OBJECT "}",
         "Invalid value for 'response_format'. The request also has 'text.format': send one of them only."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_object *params = json_of(rows[i].body, strlen(rows[i].body));
        struct fm_request request;
        struct fm_error error;
        assert_int_equal(fm_surface_responses.parse(params, &request, &error), FM_INVALID_REQUEST);
        assert_string_equal(error.detail, rows[i].detail);
        json_object_put(params);
    }
}

/* An answer that repeats the schema must be a body that PROTOCOL.md allows. */
static void test_size_of_a_schema(void **state) {
    (void)state;
    static const struct {
        const char *head; /* the schema's beginning, then `count` times `unit`, then `tail` */
        const char *unit;
        const char *tail;
        int most;
    } rows[] = {
        {"{\"a\":", "[", "]", 49},        /* nested levels, including the object around them; `tail` closes one */
        {"{\"a\":[0", ",0", NULL, 32765}, /* values besides the object, the array and the first 0 */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int over = 0; over < 2; over++) {
            struct fm_buf body;
            fm_buf_init(&body, 1u << 20);
            fm_buf_append_str(&body,
                              "{" IN ",\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"a\",\"schema\":");
            fm_buf_append_str(&body, rows[i].head);
            for (int k = 0; k < rows[i].most + over; k++) {
                fm_buf_append_str(&body, rows[i].unit);
            }
            for (int k = 0; k < rows[i].most + over && rows[i].tail; k++) {
                fm_buf_append_str(&body, rows[i].tail);
            }
            fm_buf_append_str(&body, rows[i].tail ? "}}}}" : "]}}}}");
            fm_buf_append_char(&body, '\0');
            check_body(&fm_surface_responses, body.data, over ? "invalid_value" : NULL, "text.format.schema");
            fm_buf_free(&body);
        }
    }
}

/* ---- limits of length ---- */

/* A body whose `format` (with one %s) has `unit` repeated `count` times. The caller frees it. */
static char *long_body(const char *format, const char *unit, size_t count) {
    size_t unit_len = strlen(unit);
    size_t size = strlen(format) + unit_len * count + 1;
    char *body = malloc(size);
    const char *hole = strstr(format, "%s");
    size_t head = (size_t)(hole - format);
    memcpy(body, format, head);
    for (size_t i = 0; i < count; i++) {
        memcpy(body + head + i * unit_len, unit, unit_len);
    }
    snprintf(body + head + unit_len * count, size - head - unit_len * count, "%s", hole + 2);
    return body;
}

static void test_lengths(void **state) {
    (void)state;
    static const struct {
        const char *format;
        const char *unit;
        size_t max;
        const char *code;
        const char *param;
    } rows[] = {
        {"{\"input\":\"%s\"}", "x", 10485760, "string_above_max_length", "input"},
        {"{\"input\":\"%s\"}", "x\xc3\xa9", 5242880, "string_above_max_length", "input"}, /* characters, not bytes */
        {"{" IN ",\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"%s\",\"schema\":{}}}}", "x", 64,
         "string_above_max_length", "text.format.name"},
        {"{" IN ",\"fm\":{\"grammar\":{\"syntax\":\"lark\",\"definition\":\"%s\"}}}", "x", 65536,
         "string_above_max_length", "fm.grammar.definition"},
        {"{" IN ",\"fm\":{\"grammar\":{\"syntax\":\"lark\",\"definition\":\"%s\"}}}", "\xc3\xa9", 32768,
         "string_above_max_length", "fm.grammar.definition"}, /* bytes, not characters */
        {"{" IN ",\"safety_identifier\":\"%s\"}", "x", 64, "string_above_max_length", "safety_identifier"},
        {"{" IN ",\"prompt_cache_key\":\"%s\"}", "\xe2\x82\xac", 64, "string_above_max_length", "prompt_cache_key"},
        {"{" IN ",\"metadata\":{\"k\":\"%s\"}}", "x", 512, "string_above_max_length", "metadata.k"},
        {"{" IN ",\"metadata\":{\"%s\":\"v\"}}", "\xc3\xa9", 64, "string_above_max_length", "metadata"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *most = long_body(rows[i].format, rows[i].unit, rows[i].max);
        char *more = long_body(rows[i].format, rows[i].unit, rows[i].max + 1);
        check_body(&fm_surface_responses, most, NULL, NULL);
        check_body(&fm_surface_responses, more, rows[i].code, rows[i].param);
        free(most);
        free(more);
    }
}

static void test_metadata_pairs(void **state) {
    (void)state;
    for (int pairs = 16; pairs <= 17; pairs++) {
        struct json_object *body = json_of("{" IN "}", strlen("{" IN "}"));
        struct json_object *metadata = json_object_new_object();
        for (int i = 0; i < pairs; i++) {
            char key[8];
            snprintf(key, sizeof key, "k%d", i);
            json_object_object_add(metadata, key, json_object_new_string("v"));
        }
        json_object_object_add(body, "metadata", metadata);
        check_body(&fm_surface_responses, json_object_to_json_string(body), pairs > 16 ? "invalid_value" : NULL,
                   "metadata");
        json_object_put(body);
    }
}

/* A host's key may be longer than the path that names it: it is cut between characters. */
static void test_long_key(void **state) {
    (void)state;
    char *body = long_body("{" IN ",\"x%s\":1}", "\xe2\x82\xac", 500);
    struct fm_request request = request_of(&fm_surface_responses, body);
    const char *path = fm_ignored_next(&request.ignored, NULL);
    assert_int_equal(strlen(path), 253); /* x and 84 whole characters, out of 255 bytes */
    assert_memory_equal(path + 250, "\xe2\x82\xac", 4);
    fm_request_free(&request);
    free(body);
}

/* ---- what a right body becomes ---- */

static void test_job_members(void **state) {
    (void)state;
    check_job(&fm_surface_responses, "{" IN "}", "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]");
    check_job(&fm_surface_responses,
              "{\"input\":[{\"role\":\"developer\",\"content\":[{\"type\":\"input_text\",\"text\":\"a\"},"
              "{\"type\":\"input_text\",\"text\":\"b\\u0000\\n\"}]},{\"type\":\"message\",\"role\":\"assistant\","
              "\"content\":[{\"type\":\"refusal\",\"refusal\":\"no\"}]},{\"role\":\"user\",\"content\":[]},"
              "{\"role\":\"system\",\"content\":\"\xf0\x9f\x98\x80\\\"\"}],\"instructions\":\"first\","
              "\"max_output_tokens\":5,\"temperature\":0.7,\"top_p\":1,\"seed\":-3,\"stop\":\"x\\u0000y\","
              "\"stream\":true}",
              "\"messages\":[{\"role\":\"system\",\"content\":\"first\"},{\"role\":\"system\",\"content\":"
              "\"ab\\u0000\\n\"},{\"role\":\"assistant\",\"content\":\"no\"},{\"role\":\"user\",\"content\":\"\"},"
              "{\"role\":\"system\",\"content\":\"\xf0\x9f\x98\x80\\\"\"}],\"max_tokens\":5,\"temperature\":0.7,"
              "\"top_p\":1,\"stop\":[\"x\\u0000y\"]");
    check_job(&fm_surface_responses, "{" IN ",\"truncation\":\"auto\",\"max_output_tokens\":5}",
              "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"max_tokens\":5,\"truncation\":\"auto\"");
    check_job(&fm_surface_input_tokens, "{" IN ",\"instructions\":\"do\"}",
              "\"messages\":[{\"role\":\"system\",\"content\":\"do\"},{\"role\":\"user\",\"content\":\"hi\"}],"
              "\"max_tokens\":0");
    check_job(&fm_surface_chat,
              "{\"messages\":[{\"role\":\"developer\",\"content\":\"d\"},{\"role\":\"assistant\",\"content\":null,"
              "\"refusal\":\"r\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
              "{\"type\":\"text\",\"text\":\"b\"}]}],\"max_tokens\":4,\"stop\":[\"p\",\"q\"]}",
              "\"messages\":[{\"role\":\"system\",\"content\":\"d\"},{\"role\":\"assistant\",\"content\":\"r\"},"
              "{\"role\":\"user\",\"content\":\"ab\"}],\"max_tokens\":4,\"stop\":[\"p\",\"q\"]");
    check_job(&fm_surface_chat, "{" MSG ",\"max_completion_tokens\":9,\"max_tokens\":4,\"seed\":9223372036854775807}",
              "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"max_tokens\":9");
}

/* ENGINE.md: named parameters are sent, even if they change nothing. */
static void test_job_sampling(void **state) {
    (void)state;
    static const char asked[] = ",\"presence_penalty\":-0.5,\"frequency_penalty\":2}";
    static const char nothing[] = ",\"presence_penalty\":0,\"frequency_penalty\":-0.0}";
    char body[128];
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *needed = places[i].surface == &fm_surface_chat ? MSG : IN;
        snprintf(body, sizeof body, "{%s%s", needed, asked);
        check_job(places[i].surface, body, MSG ",\"presence_penalty\":-0.5,\"frequency_penalty\":2");
        snprintf(body, sizeof body, "{%s%s", needed, nothing);
        check_job(places[i].surface, body, MSG ",\"presence_penalty\":0,\"frequency_penalty\":-0.0");
    }
    check_job(&fm_surface_chat, "{" MSG ",\"logit_bias\":{}}", MSG);
    check_job(&fm_surface_chat, "{" MSG ",\"logit_bias\":{\"0\":-100,\"50256\":0.5}}",
              MSG ",\"logit_bias\":[[0,-100],[50256,0.5]]");
}

static void test_job_logprobs(void **state) {
    (void)state;
    static const char include[] = ",\"include\":[\"message.output_text.logprobs\"]";
    char body[256];
    snprintf(body, sizeof body, "{" IN "%s}", include);
    check_job(&fm_surface_responses, body, MSG ",\"logprobs\":0");
    snprintf(body, sizeof body, "{" IN "%s,\"top_logprobs\":20}", include);
    check_job(&fm_surface_responses, body, MSG ",\"logprobs\":20");
    check_job(&fm_surface_responses, "{" IN ",\"top_logprobs\":5,\"include\":[\"reasoning.encrypted_content\"]}", MSG);
    check_job(&fm_surface_chat, "{" MSG ",\"logprobs\":true}", MSG ",\"logprobs\":0");
    check_job(&fm_surface_chat, "{" MSG ",\"logprobs\":true,\"top_logprobs\":3}", MSG ",\"logprobs\":3");
    check_job(&fm_surface_chat, "{" MSG ",\"logprobs\":false,\"top_logprobs\":0}", MSG);
}

static void test_many_biases(void **state) {
    (void)state;
    struct json_object *body = json_of("{" MSG "}", strlen("{" MSG "}"));
    struct json_object *biases = json_object_new_object();
    json_object_object_add(body, "logit_bias", biases);
    for (int i = 0; i <= 1024; i++) {
        char key[8];
        snprintf(key, sizeof key, "%d", i);
        json_object_object_add(biases, key, json_object_new_int(1));
        if (i >= 1023) {
            check_body(&fm_surface_chat, json_object_to_json_string(body), i > 1023 ? "invalid_value" : NULL,
                       "logit_bias");
        }
    }
    json_object_put(body);
}

#define SCHEMA     "{\"type\":\"object\",\"a/b\":[1.50,null,-0.0,1e3,\"\\u0000\xc3\xa9\"],\"\":{}}"
#define JOB_SCHEMA MSG ",\"format\":{\"type\":\"json_schema\",\"schema\":" SCHEMA ",\"strict\":"

/* ENGINE.md: the schema is sent unchanged, but without its name and description. */
static void test_job_formats(void **state) {
    (void)state;
    static const char named[] = "\"name\":\"a\",\"description\":\"d\",\"schema\":" SCHEMA;
    static const struct {
        const char *format; /* NULL: a schema, with `strict` */
        const char *more;
        const char *job;
    } rows[] = {
        {"null", "", MSG},
        {"{\"type\":\"text\"}", "", MSG},
        {"{\"type\":\"json_object\"}", "", MSG ",\"format\":{\"type\":\"json_object\"}"},
        {NULL, "", JOB_SCHEMA "false}"},
        {NULL, ",\"strict\":null", JOB_SCHEMA "false}"},
        {NULL, ",\"strict\":false", JOB_SCHEMA "false}"},
        {NULL, ",\"strict\":true", JOB_SCHEMA "true}"},
        {"{\"type\":\"text\"}", GRAMMAR,
         MSG ",\"format\":{\"type\":\"grammar\",\"syntax\":\"lark\",\"definition\":\"x\"}"},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
            bool given = rows[k].format != NULL;
            struct body schema = schema_of(&places[i], named, rows[k].more);
            struct body body = body_with(&places[i], given ? rows[k].format : schema.text, given ? rows[k].more : "");
            check_job(places[i].surface, body.text, rows[k].job);
        }
    }
}

/* ---- an engine's `param` ---- */

static void check_param(const struct place *place, const char *format, const char *more, const char *said,
                        const char *told) {
    struct body body = body_with(place, format, more);
    struct fm_request request = request_of(place->surface, body.text);
    struct fm_error error;
    fm_fail(&error, FM_INVALID_REQUEST, "because");
    snprintf(error.param, sizeof error.param, "%s", said);
    fm_request_rename_param(&request, &error);
    assert_string_equal(error.param, told);
    char detail[sizeof error.detail]; /* the detail names the field */
    snprintf(detail, sizeof detail, told[0] ? "Invalid '%s': because" : "because", told);
    assert_string_equal(error.detail, detail);
    fm_request_free(&request);
}

static void test_param_of_an_engine(void **state) {
    (void)state;
    static const struct {
        const char *said;
        const char *told[3]; /* the host's param in Responses, in chat, and for a grammar */
    } rows[] = {
        {"format", {"text.format", "response_format", "fm.grammar"}},
        {"format.type", {"text.format.type", "response_format.type", "fm.grammar"}},
        {"format.schema", {"text.format.schema", "response_format.json_schema.schema", "fm.grammar.schema"}},
        {"format.schema.properties.a[0].not",
         {"text.format.schema.properties.a[0].not", "response_format.json_schema.schema.properties.a[0].not",
          "fm.grammar.schema.properties.a[0].not"}},
        {"format.strict", {"text.format.strict", "response_format.json_schema.strict", "fm.grammar.strict"}},
        {"format.definition", {"text.format.definition", "response_format.definition", "fm.grammar.definition"}},
        {"", {"", "", ""}},
        {"formats", {"formats", "formats", "formats"}},
        {"messages[0].format", {"messages[0].format", "messages[0].format", "messages[0].format"}},
        {"stop", {"stop", "stop", "stop"}},
    };
    static const char object[] = "{\"type\":\"json_object\"}";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t k = 0; k < 2; k++) {
            check_param(&places[k], object, "", rows[i].said, rows[i].told[k]);
            check_param(&places[k], "null", "", rows[i].said, rows[i].told[k]);
            check_param(&places[k], "null", GRAMMAR, rows[i].said, rows[i].told[2]);
        }
    }
}

/* The param of `response_format` in the Responses API, in either form. */
static void test_param_of_a_response_format(void **state) {
    (void)state;
    static const char *const rows[][3] = {
        /* the engine's param; the host's param in chat's form, and in that of `text.format` */
        {"format", "response_format", "response_format"},
        {"format.schema.properties.a.not", "response_format.json_schema.schema.properties.a.not",
         "response_format.schema.properties.a.not"},
        {"format.strict", "response_format.json_schema.strict", "response_format.strict"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t k = 2; k < 4; k++) {
            struct body schema = schema_of(&places[k], "\"name\":\"a\",\"schema\":{}", "");
            check_param(&places[k], schema.text, "", rows[i][0], rows[i][k - 1]);
        }
    }
}

/* The host's path is longer: it is cut between characters. */
static void test_long_param_of_an_engine(void **state) {
    (void)state;
    struct fm_request request = request_of(&fm_surface_chat, "{" MSG "}");
    struct fm_error error;
    fm_fail(&error, FM_INVALID_REQUEST, "because");
    size_t len = (size_t)snprintf(error.param, sizeof error.param, "format.schema.");
    while (len + 3 < sizeof error.param) {
        memcpy(error.param + len, "\xe2\x82\xac", 4);
        len += 3;
    }
    fm_request_rename_param(&request, &error);
    static const char head[] = "response_format.json_schema.schema."; /* 35 bytes, then characters of 3 */
    assert_memory_equal(error.param, head, sizeof head - 1);
    assert_int_equal(strlen(error.param), 35 + 73 * 3);
    assert_memory_equal(error.param + strlen(error.param) - 3, "\xe2\x82\xac", 4);
    fm_request_free(&request);
}

static void test_request_fields(void **state) {
    (void)state;
    struct fm_request request = request_of(&fm_surface_responses, "{" IN "}");
    assert_null(request.model);
    assert_false(request.stream);
    assert_int_equal(request.limits.queue_ms, 120000);
    assert_int_equal(request.limits.first_token_ms, 120000);
    assert_int_equal(request.limits.no_progress_ms, 60000);
    assert_int_equal(request.limits.total_ms, 600000);
    fm_request_free(&request);
    fm_request_free(&request); /* freeing it is harmless */
    request = request_of(&fm_surface_chat,
                         "{" MSG ",\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":true},"
                         "\"fm\":{\"queue_timeout_ms\":1,\"first_token_timeout_ms\":2,\"no_progress_timeout_ms\":3,"
                         "\"timeout_ms\":86400000}}");
    assert_string_equal(request.model, "m");
    assert_true(request.stream);
    assert_true(request.include_usage);
    assert_int_equal(request.limits.queue_ms, 1);
    assert_int_equal(request.limits.first_token_ms, 2);
    assert_int_equal(request.limits.no_progress_ms, 3);
    assert_int_equal(request.limits.total_ms, 86400000);
    fm_request_free(&request);
}

/* Members of another API are refused, and the error says what to use. */
static void test_other_apis(void **state) {
    (void)state;
    static const struct {
        const struct fm_surface *surface;
        const char *body;
        const char *param;
        const char *says;
    } rows[] = {
        {&fm_surface_responses, "{" MSG "}", "messages", "in 'input'; 'messages' is for chat.completions.create"},
        {&fm_surface_responses, "{\"prompt\":\"x\"}", "prompt", "in 'input'"},
        {&fm_surface_responses, "{" IN ",\"max_tokens\":5}", "max_tokens", "Use 'max_output_tokens'"},
        {&fm_surface_responses, "{" IN ",\"max_completion_tokens\":5}", "max_completion_tokens",
         "Use 'max_output_tokens'"},
        {&fm_surface_responses, "{" IN ",\"reasoning_effort\":\"low\"}", "reasoning_effort", "Use 'reasoning'"},
        {&fm_surface_responses, "{" IN ",\"verbosity\":\"low\"}", "verbosity", "Use 'text'"},
        {&fm_surface_responses, "{" IN ",\"logprobs\":true}", "logprobs", "message.output_text.logprobs"},
        {&fm_surface_responses, "{" IN ",\"functions\":[]}", "functions", "Use 'tools'"},
        {&fm_surface_responses, "{" IN ",\"function_call\":\"auto\"}", "function_call", "Use 'tool_choice'"},
        {&fm_surface_responses, "{" IN ",\"n\":2}", "n",
         "It is a parameter of chat.completions.create, completions.create: leave it out."},
        {&fm_surface_responses, "{" IN ",\"echo\":true}", "echo", "It is a parameter of completions.create: leave it out."},
        {&fm_surface_responses, "{" IN ",\"dimensions\":3}", "dimensions", "It is a parameter of embeddings.create"},
        {&fm_surface_responses, "{" IN ",\"prediction\":{}}", "prediction", "fm-proxy does not have it: leave it out."},
        {&fm_surface_responses, "{" IN ",\"audio\":{}}", "audio", "fm-proxy gives text only"},
        {&fm_surface_chat, "{\"input\":\"x\"}", "input", "in 'messages'; 'input' is for responses.create"},
        {&fm_surface_chat, "{\"prompt\":\"x\"}", "prompt", "in 'messages'; 'prompt' is for completions.create"},
        {&fm_surface_chat, "{" MSG ",\"instructions\":\"x\"}", "instructions", "the role 'system'"},
        {&fm_surface_chat, "{" MSG ",\"max_output_tokens\":5}", "max_output_tokens", "Use 'max_completion_tokens'"},
        {&fm_surface_chat, "{" MSG ",\"text\":{}}", "text", "Use 'response_format' and 'verbosity'"},
        {&fm_surface_chat, "{" MSG ",\"reasoning\":{}}", "reasoning", "Use 'reasoning_effort'"},
        {&fm_surface_chat, "{" MSG ",\"include\":[]}", "include", "'logprobs' and 'top_logprobs'"},
        {&fm_surface_chat, "{" MSG ",\"previous_response_id\":\"r\"}", "previous_response_id", "whole conversation"},
        {&fm_surface_chat, "{" MSG ",\"conversation\":\"c\"}", "conversation", "whole conversation"},
        {&fm_surface_chat, "{" MSG ",\"background\":true}", "background", "It is a parameter of responses.create: leave"},
        {&fm_surface_chat, "{" MSG ",\"moderation\":{}}", "moderation", "fm-proxy does not have it: leave it out."},
        {&fm_surface_completions, "{" MSG "}", "messages", "in 'prompt'; 'messages' is for chat.completions.create"},
        {&fm_surface_completions, "{\"input\":\"x\"}", "input", "in 'prompt'"},
        {&fm_surface_completions, "{\"prompt\":\"x\",\"max_output_tokens\":5}", "max_output_tokens", "Use 'max_tokens'"},
        {&fm_surface_completions, "{\"prompt\":\"x\",\"tools\":[]}", "tools",
         "It is a parameter of responses.create, chat.completions.create: leave it out."},
        {&fm_surface_embeddings, "{\"prompt\":\"x\"}", "prompt", "in 'input'"},
        {&fm_surface_embeddings, "{" MSG "}", "messages", "in 'input'"},
        {&fm_surface_embeddings, "{" IN ",\"temperature\":1}", "temperature",
         "It is a parameter of responses.create, chat.completions.create, completions.create: leave it out."},
        {&fm_surface_input_tokens, "{" MSG "}", "messages", "in 'input'"},
        {&fm_surface_input_tokens, "{" IN ",\"stream\":true}", "stream", "This call does not have it"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct json_object *params = json_of(rows[i].body, strlen(rows[i].body));
        struct fm_request request;
        struct fm_error error;
        assert_int_equal(rows[i].surface->parse(params, &request, &error), FM_INVALID_REQUEST);
        assert_string_equal(error.reason, "unsupported_parameter");
        assert_string_equal(error.param, rows[i].param);
        if (!strstr(error.detail, rows[i].says)) {
            fail_msg("%s: %s", rows[i].body, error.detail);
        }
        json_object_put(params);
    }
}

static void test_unknown_members_of_fm(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"timeout", "Unknown parameter: 'fm.timeout'. Did you mean 'timeout_ms'?"},
        {"timeouts", "Unknown parameter: 'fm.timeouts'."},
        {"", "Unknown parameter: 'fm.'."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char body[128];
        snprintf(body, sizeof body, "{\"input\":\"x\",\"fm\":{\"%s\":1}}", rows[i][0]);
        struct json_object *params = json_of(body, strlen(body));
        struct fm_request request;
        struct fm_error error;
        assert_int_equal(fm_surface_responses.parse(params, &request, &error), FM_INVALID_REQUEST);
        assert_string_equal(error.detail, rows[i][1]);
        json_object_put(params);
    }
}

/* A refused value is the host's text, so the error only names the field. */
static void test_no_user_text(void **state) {
    (void)state;
    static const char body[] = "{" IN ",\"service_tier\":\"sekrit\"}";
    struct json_object *params = json_of(body, sizeof body - 1);
    struct fm_request request;
    struct fm_error error;
    assert_int_equal(fm_surface_responses.parse(params, &request, &error), FM_INVALID_REQUEST);
    assert_null(strstr(error.detail, "sekrit"));
    assert_string_equal(error.detail, "Invalid value for 'service_tier'. Supported values are: 'auto', 'default', "
                                      "'flex', 'scale', 'priority'.");
    json_object_put(params);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_responses),
        cmocka_unit_test(test_input_tokens),
        cmocka_unit_test(test_chat),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_response_format),
        cmocka_unit_test(test_what_stands_beside_a_format),
        cmocka_unit_test(test_format_notes),
        cmocka_unit_test(test_size_of_a_schema),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_metadata_pairs),
        cmocka_unit_test(test_long_key),
        cmocka_unit_test(test_job_members),
        cmocka_unit_test(test_job_sampling),
        cmocka_unit_test(test_job_logprobs),
        cmocka_unit_test(test_many_biases),
        cmocka_unit_test(test_job_formats),
        cmocka_unit_test(test_param_of_an_engine),
        cmocka_unit_test(test_param_of_a_response_format),
        cmocka_unit_test(test_long_param_of_an_engine),
        cmocka_unit_test(test_request_fields),
        cmocka_unit_test(test_other_apis),
        cmocka_unit_test(test_unknown_members_of_fm),
        cmocka_unit_test(test_no_user_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
