/*
 * Streams of the three dialects, cut at every byte: a transcript has the parts, with adjacent pieces of one kind
 * joined, and the end. The events are from the servers' documentation, and from shortened recorded answers of
 * llama-server.
 */
#include "engine/remote/reader.h"

#include "wire.h"

#define CHAT(delta)   "data: {\"choices\":[{\"index\":0,\"delta\":{" delta "}}]}\n\n"
#define CHAT_END(why) "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" why "\"}]}\n\n"
#define CALL(index, id, name, text)                                                                                    \
    CHAT("\"tool_calls\":[{\"index\":" index ",\"id\":" id ",\"function\":{\"name\":" name ",\"arguments\":\"" text    \
         "\"}}]")
#define BARE(name, text) CHAT("\"tool_calls\":[{\"function\":{\"name\":\"" name "\",\"arguments\":\"" text "\"}}]")
#define MESSAGE(message, why)                                                                                          \
    "data: {\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\"," message "},\"finish_reason\":\"" why       \
    "\"}]}\n\n"
#define DONE "data: [DONE]\n\n"
#define LOGPROB(members)                                                                                               \
    "data: {\"choices\":[{\"delta\":{},\"logprobs\":{\"content\":[{\"token\":\"a\"," members "}]}}]}\n\n"
#define RESP_ITEM(item)        "{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"" item "\"}]}"
#define RESP_WHOLE(items)      RESP("response.completed", "\"response\":{\"output\":[" items "]}")
#define RESP(type, members)    "event: " type "\ndata: {\"type\":\"" type "\"," members "}\n\n"
#define RESP_DELTA(kind, text) RESP("response." kind ".delta", "\"item_id\":\"i\",\"delta\":\"" text "\"")
#define RESP_END                                                                                                       \
    RESP("response.completed", "\"response\":{\"usage\":{\"input_tokens\":7,\"output_tokens\":3,"                      \
                               "\"input_tokens_details\":{\"cached_tokens\":2},"                                       \
                               "\"output_tokens_details\":{\"reasoning_tokens\":1}}}")
#define MSG(type, members) "event: " type "\ndata: {\"type\":\"" type "\"," members "}\n\n"
#define MSG_START                                                                                                      \
    MSG("message_start", "\"message\":{\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":3,"                   \
                         "\"cache_creation_input_tokens\":1,\"output_tokens\":1}}")
#define MSG_BLOCK(block) MSG("content_block_start", "\"index\":0,\"content_block\":{" block "}")
#define MSG_DELTA(delta) MSG("content_block_delta", "\"index\":0,\"delta\":{" delta "}")
#define MSG_STOP         MSG("content_block_stop", "\"index\":0")
#define MSG_END(why)                                                                                                   \
    MSG("message_delta", "\"delta\":{\"stop_reason\":\"" why "\"},\"usage\":{\"output_tokens\":9}")                    \
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

static const struct row {
    enum fm_dialect_kind dialect;
    const char *name;
    const char *in;
    const char *out;
} rows[] = {
    {FM_DIALECT_CHAT, "text",
     CHAT("\"role\":\"assistant\",\"content\":null") CHAT("\"content\":\"Hel\"") CHAT("\"content\":\"lo\"")
         CHAT_END("stop") "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,"
                          "\"prompt_tokens_details\":{\"cached_tokens\":2}}}\n\n" DONE,
     "text(Hello) stop 7/2/3/-1 complete"},
    {FM_DIALECT_CHAT, "no [DONE]", CHAT("\"content\":\"a\"") CHAT_END("length"), "text(a) length -1/-1/-1/-1"},
    {FM_DIALECT_CHAT, "no end mark", CHAT("\"content\":\"a\"") DONE, "text(a) OVERLOADED"},
    {FM_DIALECT_CHAT, "nothing", "", "OVERLOADED"},
    {FM_DIALECT_CHAT, "filtered", CHAT_END("content_filter") DONE, "content_filter -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "an answer that was given up", CHAT_END("abort") DONE, "OVERLOADED"},
    {FM_DIALECT_CHAT, "an unknown end", CHAT_END("tired") DONE, "INTERNAL"},
    {FM_DIALECT_CHAT, "reasoning_content",
     CHAT("\"reasoning_content\":\"hm\"") CHAT("\"content\":\"a\"") CHAT_END("stop") DONE,
     "reasoning(hm) text(a) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "reasoning", CHAT("\"reasoning\":\"h\"") CHAT("\"reasoning\":\"m\"") CHAT_END("stop") DONE,
     "reasoning(h) state(\"reasoning\") reasoning(m) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "refusal", CHAT("\"refusal\":\"I can't\"") CHAT_END("stop") DONE,
     "refusal(I can't) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "calls",
     CALL("0", "\"c0\"", "\"f\"", "") CALL("0", "null", "null", "{\\\"a\\\":") CALL("0", "null", "null", "1}")
         CALL("1", "\"c1\"", "\"g\"", "{}") CHAT_END("tool_calls") DONE,
     "call(f) arguments({\"a\":1}) call(g) arguments({}) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "calls told apart by the id alone",
     CALL("0", "\"c0\"", "\"f\"", "{}") CALL("0", "\"c1\"", "\"g\"", "{}") CHAT_END("tool_calls") DONE,
     "call(f) arguments({}) call(g) arguments({}) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "names that are repeated",
     CALL("0", "\"c0\"", "\"f\"", "{") CALL("0", "\"c0\"", "\"f\"", "}") CHAT_END("tool_calls") DONE,
     "call(f) arguments({}) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "mixed calls",
     CALL("0", "\"c0\"", "\"f\"", "{") CALL("1", "\"c1\"", "\"g\"", "{}") CALL("0", "null", "null", "}")
         CHAT_END("tool_calls") DONE,
     "call(f) arguments({) call(g) arguments({}) INTERNAL"},
    {FM_DIALECT_CHAT, "a call without a name", CALL("0", "\"c0\"", "null", "{}"), "INTERNAL"},
    {FM_DIALECT_CHAT, "an error",
     CHAT("\"content\":\"a\"") "data: {\"error\":{\"message\":\"x\",\"type\":\"server_error\"}}\n\n",
     "text(a) OVERLOADED"},
    {FM_DIALECT_CHAT, "no JSON", CHAT("\"content\":\"a\"") "data: {\"choices\":[\n\n", "text(a) INTERNAL"},
    {FM_DIALECT_CHAT, "no object", "data: []\n\n", "INTERNAL"},
    {FM_DIALECT_CHAT, "members that are null",
     "data: {\"choices\":null,\"usage\":7}\n\ndata: "
     "{\"choices\":[{\"delta\":null,\"message\":null,\"finish_reason\":null,"
     "\"logprobs\":[]}]}\n\n" CHAT("\"content\":null,\"tool_calls\":null,\"function_call\":null,\"refusal\":null")
         CHAT_END("stop") DONE,
     "stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "choices that are no list", "data: {\"choices\":{}}\n\n" CHAT_END("stop") DONE, "INTERNAL"},
    {FM_DIALECT_CHAT, "a choice that is none", "data: {\"choices\":[7]}\n\n" CHAT_END("stop") DONE, "INTERNAL"},
    {FM_DIALECT_CHAT, "a content of another kind", CHAT("\"content\":7") CHAT_END("stop") DONE, "INTERNAL"},
    {FM_DIALECT_CHAT, "calls that are no list", CHAT("\"tool_calls\":{}") CHAT_END("stop") DONE, "INTERNAL"},
    {FM_DIALECT_CHAT, "a call of no function", CHAT("\"tool_calls\":[{\"type\":\"custom\"}]"), "INTERNAL"},
    {FM_DIALECT_CHAT, "junk after the end", CHAT("\"content\":\"a\"") CHAT_END("stop") DONE "data: junk\n\n",
     "text(a) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "a whole message", MESSAGE("\"content\":\"Hello\"", "stop") DONE,
     "text(Hello) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "a whole message after its pieces",
     CHAT("\"content\":\"Hel\"") CHAT("\"content\":\"lo\"") MESSAGE("\"content\":\"Hello\"", "stop") DONE,
     "text(Hello) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "messages that grow",
     MESSAGE("\"content\":\"Hel\"", "") MESSAGE("\"content\":\"Hello\"", "stop") DONE,
     "text(Hello) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "a whole message that is another one",
     CHAT("\"content\":\"Hel\"") MESSAGE("\"content\":\"lo\"", "stop") DONE, "text(Hel) INTERNAL"},
    {FM_DIALECT_CHAT, "a whole message with calls",
     MESSAGE(
         "\"content\":null,\"reasoning_content\":\"hm\",\"tool_calls\":[{\"id\":\"c0\",\"function\":{\"name\":\"f\","
         "\"arguments\":\"{}\"}},{\"id\":\"c1\",\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1}}}]",
         "tool_calls") DONE,
     "reasoning(hm) call(f) arguments({}) call(f) arguments({\"a\":1}) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "calls, and once more as a message",
     CALL("0", "\"c0\"", "\"f\"", "{}") MESSAGE(
         "\"tool_calls\":[{\"id\":\"c0\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]", "tool_calls") DONE,
     "call(f) arguments({}) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "a content in parts",
     CHAT("\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"hm\"}]}]") CHAT(
         "\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]") CHAT_END("stop") DONE,
     "reasoning(hm) text(ab) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "a part of no known type",
     CHAT("\"content\":[{\"type\":\"image\",\"data\":\"x\"}]") CHAT_END("stop"), "INTERNAL"},
    {FM_DIALECT_CHAT, "text as of legacy completions",
     "data: {\"choices\":[{\"text\":\"ab\",\"finish_reason\":\"stop\"}]}\n\n" DONE,
     "text(ab) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "a call as of old",
     CHAT("\"function_call\":{\"name\":\"f\",\"arguments\":\"\"}") CHAT("\"function_call\":{\"arguments\":\"{\"}")
         CHAT("\"function_call\":{\"arguments\":\"}\"}") CHAT_END("function_call") DONE,
     "call(f) arguments({}) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "arguments that are an object",
     CHAT("\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":{\"a\":\"b\"}}}]") CHAT_END("stop")
         DONE,
     "call(f) arguments({\"a\":\"b\"}) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "arguments that are none",
     CHAT("\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":[1]}}]"), "call(f) INTERNAL"},
    {FM_DIALECT_CHAT, "calls without an id and an index, one after the other",
     BARE("f", "{\\\"a\\\":\\\"}\\\\\\\"\\\"}") BARE("f", "{}") CHAT_END("stop") DONE,
     "call(f) arguments({\"a\":\"}\\\"\"}) call(f) arguments({}) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "calls without an id and an index, in one list",
     CHAT("\"tool_calls\":[{\"function\":{\"name\":\"f\"}},{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]")
         CHAT_END("stop") DONE,
     "call(f) call(f) arguments({}) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "a call without an id and an index, in pieces",
     BARE("f", "") BARE("f", "{") CHAT("\"tool_calls\":[{\"function\":{\"arguments\":\"}\"}}]") CHAT_END("stop") DONE,
     "call(f) arguments({}) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "calls with the same index and no id",
     CALL("0", "null", "\"f\"", "{}") CALL("0", "\"\"", "\"g\"", "{}") CHAT_END("stop") DONE,
     "call(f) arguments({}) call(g) arguments({}) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "halves of a character",
     CHAT("\"content\":\"a\\ud83d\"") CHAT("\"content\":\"\\ude00b\"") CHAT_END("stop") DONE,
     "text(a\xf0\x9f\x98\x80"
     "b) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "halves without the other one",
     CHAT("\"content\":\"\\ude00a\\ud83d\"") CHAT("\"content\":\"\\ud83d\\ud83d\\ude00\\ud83d\"") CHAT_END("stop") DONE,
     "text(\xef\xbf\xbd"
     "a\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80\xef\xbf\xbd) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "a half before a thought ends",
     CHAT("\"reasoning_content\":\"\\ud83d\"") CHAT("\"content\":\"a\"") CHAT_END("stop"),
     "reasoning(\xef\xbf\xbd) text(a) stop -1/-1/-1/-1"},
    {FM_DIALECT_CHAT, "a half in what is no JSON", CHAT("\"content\":\"\\ud83d\","), "INTERNAL"},
    {FM_DIALECT_CHAT, "log probabilities",
     "data: {\"choices\":[{\"delta\":{\"content\":\"ab\"},\"logprobs\":{\"content\":[{\"token\":\"a\",\"logprob\":-0.5,"
     "\"bytes\":[97],\"top_logprobs\":[{\"token\":\"a\",\"logprob\":-0.5,\"bytes\":null}]},{\"token\":\"b\","
     "\"logprob\":-99999,\"top_logprobs\":[]}]}}]}\n\n" CHAT_END("stop") DONE,
     "token(a -0.50 1) token(b -9999.00 0) text(ab) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "log probabilities that are no numbers", LOGPROB("\"logprob\":\"-1\",\"bytes\":[97]"),
     "INTERNAL"},
    {FM_DIALECT_CHAT, "bytes that are no numbers", LOGPROB("\"logprob\":-1,\"bytes\":[\"a\"]"), "INTERNAL"},
    {FM_DIALECT_CHAT, "bytes that are none", LOGPROB("\"logprob\":-1,\"bytes\":[256]"), "INTERNAL"},
    {FM_DIALECT_CHAT, "a logarithm of nothing", LOGPROB("\"logprob\":null,\"bytes\":[97]") CHAT_END("stop"),
     "token(a -9999.00 0) stop -1/-1/-1/-1"},

    {FM_DIALECT_RESPONSES, "text",
     RESP("response.created", "\"response\":{}") RESP("response.output_item.added", "\"item\":{\"type\":\"message\"}")
         RESP_DELTA("output_text", "Hel") RESP_DELTA("output_text", "lo")
             RESP("response.output_text.done", "\"text\":\"Hello\"") RESP_END,
     "text(Hello) stop 7/2/3/1 complete"},
    {FM_DIALECT_RESPONSES, "text in response.completed alone",
     RESP_WHOLE(
         "{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"h\"},{\"type\":\"summary_text\","
         "\"text\":\"m\"}],\"encrypted_content\":\"X\"}," RESP_ITEM(
             "Hello") ",{\"type\":\"function_call\","
                      "\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"{}\"}"),
     "reasoning(h\n\nm) "
     "state({\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"h\"},{\"type\":"
     "\"summary_text\",\"text\":\"m\"}],\"encrypted_content\":\"X\"}) text(Hello) call(f) arguments({}) "
     "stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_RESPONSES, "text in events of whole parts alone",
     RESP("response.output_text.done", "\"content_index\":0,\"text\":\"Hel\"")
         RESP("response.output_text.done", "\"content_index\":1,\"text\":\"Helga\"")
             RESP("response.refusal.done", "\"content_index\":2,\"refusal\":\"no\"") RESP_END,
     "text(HelHelga) refusal(no) stop 7/2/3/1 complete"},
    {FM_DIALECT_RESPONSES, "text in events of whole items alone",
     RESP("response.output_item.done", "\"item\":" RESP_ITEM("Hello"))
         RESP("response.output_item.done", "\"item\":" RESP_ITEM("Hello"))
             RESP_WHOLE(RESP_ITEM("Hello") "," RESP_ITEM("Hello")),
     "text(HelloHello) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_RESPONSES, "text in all forms",
     RESP_DELTA("output_text", "Hel") RESP_DELTA("output_text", "lo")
         RESP("response.output_text.done", "\"text\":\"Hello\"")
             RESP("response.output_item.done", "\"item\":" RESP_ITEM("Hello")) RESP_WHOLE(RESP_ITEM("Hello")),
     "text(Hello) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_RESPONSES, "the end of a text in response.completed",
     RESP_DELTA("output_text", "Hel") RESP_WHOLE(RESP_ITEM("Hello")), "text(Hello) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_RESPONSES, "a text in response.completed that is another one",
     RESP_DELTA("output_text", "Hello ") RESP_WHOLE(RESP_ITEM("Hello")), "text(Hello ) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_RESPONSES, "a thought in events of whole parts",
     RESP("response.reasoning_text.done", "\"content_index\":0,\"text\":\"hm\"")
         RESP("response.output_item.done", "\"item\":{\"type\":\"reasoning\",\"summary\":[{\"text\":\"x\"}]}") RESP_END,
     "reasoning(hm) stop 7/2/3/1 complete"},
    {FM_DIALECT_RESPONSES, "a part of no known type",
     RESP_WHOLE("{\"type\":\"message\",\"content\":[{\"type\":\"output_audio\"}]}"), "INTERNAL"},
    {FM_DIALECT_RESPONSES, "a part without a text",
     RESP_WHOLE("{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"txt\":\"a\"}]}"), "INTERNAL"},
    {FM_DIALECT_RESPONSES, "an output that is no list", RESP("response.completed", "\"response\":{\"output\":{}}"),
     "INTERNAL"},
    {FM_DIALECT_RESPONSES, "a delta that is no string", RESP("response.output_text.delta", "\"delta\":{}"), "INTERNAL"},
    {FM_DIALECT_RESPONSES, "arguments as a whole",
     RESP("response.output_item.added", "\"item\":{\"type\":\"function_call\",\"id\":\"a\",\"name\":\"f\"}")
         RESP("response.function_call_arguments.done", "\"item_id\":\"a\",\"arguments\":\"{}\"")
             RESP("response.output_item.done", "\"item\":{\"type\":\"function_call\",\"id\":\"a\",\"name\":\"f\","
                                               "\"arguments\":\"{}\"}") RESP_END,
     "call(f) arguments({}) stop 7/2/3/1 complete"},
    {FM_DIALECT_RESPONSES, "calls without an id",
     RESP("response.output_item.done", "\"item\":{\"type\":\"function_call\",\"name\":\"f\",\"arguments\":{\"a\":1}}")
         RESP("response.output_item.done", "\"item\":{\"type\":\"function_call\",\"name\":\"f\",\"arguments\":\"{}\"}")
             RESP_WHOLE("{\"type\":\"function_call\",\"name\":\"f\",\"arguments\":\"{1}\"}"),
     "call(f) arguments({\"a\":1}) call(f) arguments({}) stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_RESPONSES, "halves of a character",
     RESP_DELTA("output_text", "\\ud83d") RESP_DELTA("output_text", "\\ude00")
         RESP("response.output_text.done", "\"text\":\"\xf0\x9f\x98\x80\"") RESP_END,
     "text(\xf0\x9f\x98\x80) stop 7/2/3/1 complete"},
    {FM_DIALECT_RESPONSES, "no end mark", RESP_DELTA("output_text", "a") DONE, "text(a) OVERLOADED"},
    {FM_DIALECT_RESPONSES, "refusal", RESP_DELTA("refusal", "no") RESP_END, "refusal(no) stop 7/2/3/1 complete"},
    {FM_DIALECT_RESPONSES, "a thought with a summary",
     RESP("response.reasoning_summary_part.added", "\"summary_index\":0") RESP_DELTA("reasoning_summary_text", "a")
         RESP("response.reasoning_summary_part.added", "\"summary_index\":1") RESP_DELTA("reasoning_summary_text", "b")
             RESP("response.output_item.done", "\"item\":{\"type\":\"reasoning\",\"id\":\"rs\",\"summary\":[],"
                                               "\"encrypted_content\":\"XYZ\",\"status\":null}")
                 RESP_DELTA("output_text", "c") RESP_END,
     "reasoning(a\n\nb) state({\"type\":\"reasoning\",\"id\":\"rs\",\"summary\":[],\"encrypted_content\":\"XYZ\"}) "
     "text(c) "
     "stop 7/2/3/1 complete"},
    {FM_DIALECT_RESPONSES, "a thought without a seal",
     RESP_DELTA("reasoning_text", "a")
         RESP("response.output_item.done", "\"item\":{\"type\":\"reasoning\",\"summary\":[],\"content\":[]}") RESP_END,
     "reasoning(a) stop 7/2/3/1 complete"},
    {FM_DIALECT_RESPONSES, "calls",
     RESP("response.output_item.added", "\"item\":{\"type\":\"function_call\",\"id\":\"a\",\"name\":\"f\"}")
         RESP("response.function_call_arguments.delta", "\"item_id\":\"a\",\"delta\":\"{\"")
             RESP("response.function_call_arguments.delta", "\"item_id\":\"a\",\"delta\":\"}\"")
                 RESP("response.output_item.done", "\"item\":{\"type\":\"function_call\",\"id\":\"a\",\"name\":\"f\","
                                                   "\"arguments\":\"{}\"}")
                     RESP("response.output_item.done", "\"item\":{\"type\":\"function_call\",\"id\":\"b\","
                                                       "\"name\":\"g\",\"arguments\":\"{1}\"}") RESP_END,
     "call(f) arguments({}) call(g) arguments({1}) stop 7/2/3/1 complete"},
    {FM_DIALECT_RESPONSES, "mixed calls",
     RESP("response.output_item.added", "\"item\":{\"type\":\"function_call\",\"id\":\"a\",\"name\":\"f\"}")
         RESP("response.output_item.added", "\"item\":{\"type\":\"function_call\",\"id\":\"b\",\"name\":\"g\"}")
             RESP("response.function_call_arguments.delta", "\"item_id\":\"a\",\"delta\":\"{\""),
     "call(f) call(g) INTERNAL"},
    {FM_DIALECT_RESPONSES, "incomplete",
     RESP_DELTA("output_text", "a")
         RESP("response.incomplete", "\"response\":{\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}"),
     "text(a) length -1/-1/-1/-1 complete"},
    {FM_DIALECT_RESPONSES, "filtered",
     RESP("response.incomplete", "\"response\":{\"incomplete_details\":{\"reason\":\"content_filter\"}}"),
     "content_filter -1/-1/-1/-1 complete"},
    {FM_DIALECT_RESPONSES, "failed",
     RESP("response.failed", "\"response\":{\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"x\"}}"),
     "RATE_LIMITED"},
    {FM_DIALECT_RESPONSES, "an error", RESP("error", "\"code\":\"server_error\",\"message\":\"x\""), "OVERLOADED"},
    {FM_DIALECT_RESPONSES, "unknown events", RESP("response.new", "\"x\":1") RESP_END, "stop 7/2/3/1 complete"},
    {FM_DIALECT_RESPONSES, "nothing after the end", RESP_END RESP_DELTA("output_text", "a"), "stop 7/2/3/1 complete"},

    {FM_DIALECT_MESSAGES, "text",
     MSG_START MSG_BLOCK("\"type\":\"text\",\"text\":\"\"") "event: ping\ndata: {\"type\":\"ping\"}\n\n" MSG_DELTA(
         "\"type\":\"text_delta\",\"text\":\"Hel\"") MSG_DELTA("\"type\":\"text_delta\",\"text\":\"lo\"")
         MSG_STOP MSG_END("end_turn"),
     "text(Hello) stop 9/3/9/-1 complete"},
    {FM_DIALECT_MESSAGES, "no end mark", MSG_START MSG("message_delta", "\"delta\":{\"stop_reason\":\"end_turn\"}"),
     "OVERLOADED"},
    {FM_DIALECT_MESSAGES, "blocks in message_start",
     MSG("message_start",
         "\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"tool_use\",\"id\":\"i\","
         "\"name\":\"f\",\"input\":{\"b\":1}}]}") MSG_END("tool_use"),
     "text(a) call(f) arguments({\"b\":1}) stop -1/-1/9/-1 complete"},
    {FM_DIALECT_MESSAGES, "an input that is none", MSG_BLOCK("\"type\":\"tool_use\",\"name\":\"f\",\"input\":[1]"),
     "call(f) INTERNAL"},
    {FM_DIALECT_MESSAGES, "a text that is none", MSG_BLOCK("\"type\":\"text\",\"text\":[1]"), "INTERNAL"},
    {FM_DIALECT_MESSAGES, "a signed thought",
     MSG_BLOCK("\"type\":\"thinking\",\"thinking\":\"\"") MSG_DELTA("\"type\":\"thinking_delta\",\"thinking\":\"a\"")
         MSG_DELTA("\"type\":\"thinking_delta\",\"thinking\":\"b\"")
             MSG_DELTA("\"type\":\"signature_delta\",\"signature\":\"S\"") MSG_STOP MSG_END("end_turn"),
     "reasoning(ab) state({\"type\":\"thinking\",\"thinking\":\"ab\",\"signature\":\"S\"}) stop -1/-1/9/-1 complete"},
    {FM_DIALECT_MESSAGES, "a hidden thought",
     MSG_BLOCK("\"type\":\"redacted_thinking\",\"data\":\"X\"") MSG_STOP MSG_END("end_turn"),
     "state({\"type\":\"redacted_thinking\",\"data\":\"X\"}) stop -1/-1/9/-1 complete"},
    {FM_DIALECT_MESSAGES, "an empty signature",
     MSG_BLOCK("\"type\":\"thinking\",\"thinking\":\"a\"") MSG_DELTA("\"type\":\"signature_delta\",\"signature\":\"\"")
         MSG_STOP MSG_END("end_turn"),
     "reasoning(a) stop -1/-1/9/-1 complete"},
    {FM_DIALECT_MESSAGES, "calls, and text between them",
     MSG_BLOCK("\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}")
         MSG_DELTA("\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\"\"")
             MSG_DELTA("\"type\":\"input_json_delta\",\"partial_json\":\":1}\"")
                 MSG_STOP MSG_BLOCK("\"type\":\"text\",\"text\":\"b\"")
                     MSG_STOP MSG_BLOCK("\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"g\",\"input\":{\"x\":1}")
                         MSG_STOP MSG_END("tool_use"),
     "call(f) arguments({\"a\":1}) text(b) call(g) arguments({\"x\":1}) stop -1/-1/9/-1 complete"},
    {FM_DIALECT_MESSAGES, "the limit", MSG_END("max_tokens"), "length -1/-1/9/-1 complete"},
    {FM_DIALECT_MESSAGES, "a refusal", MSG_END("refusal"), "content_filter -1/-1/9/-1 complete"},
    {FM_DIALECT_MESSAGES, "an unknown end", MSG_END("pause_turn"), "INTERNAL"},
    {FM_DIALECT_MESSAGES, "an error", MSG("error", "\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}"),
     "OVERLOADED"},
};

struct subject_of_row {
    struct fm_remote_reader reader;
    struct transcript *log;
    int last; /* the kind of the part that is open in the transcript; -1: none */
};

/* The text after `mark` in a text without a NUL at its end; NULL: the mark is not there. */
static const char *find_after(const char *text, size_t len, const char *mark) {
    size_t mark_len = strlen(mark);
    for (size_t i = 0; i + mark_len <= len; i++) {
        if (memcmp(text + i, mark, mark_len) == 0) {
            return text + i + mark_len;
        }
    }
    return NULL;
}

static bool take(void *state, const struct fm_remote_part *part) {
    static const char *const names[] = {"text", "reasoning", "refusal", "call", "arguments", "state", "token"};
    struct subject_of_row *subject = state;
    bool joins = subject->last == (int)part->kind && part->kind != FM_REMOTE_CALL;
    if (part->kind == FM_REMOTE_LOGPROBS) {
        note(subject->log, "token(%.*s %.2f %zu) ", (int)part->token->token.len, part->token->token.bytes,
             part->token->token.logprob, part->token->top_count);
        return true;
    }
    if (joins) {
        subject->log->len -= 2; /* removes ") " */
    } else {
        note(subject->log, "%s(", names[part->kind]);
    }
    const char *item = part->kind == FM_REMOTE_STATE ? find_after(part->text, part->len, "\"item\":") : NULL;
    if (item) {
        note(subject->log, "%.*s) ", (int)(part->text + part->len - item - 1), item);
    } else {
        note(subject->log, "%.*s) ", (int)part->len, part->text);
    }
    subject->last = part->kind == FM_REMOTE_STATE ? -1 : (int)part->kind;
    return true;
}

static struct fm_endpoint endpoint = {.base = (char *)"http://h", .host = (char *)"h"};
static const struct fm_secrets no_secrets = {.count = 0};

static void begin(struct subject_of_row *subject, struct transcript *log, enum fm_dialect_kind dialect) {
    *log = (struct transcript){.len = 0};
    *subject = (struct subject_of_row){.log = log, .last = -1};
    endpoint.dialect = dialect;
    fm_reader_init(&subject->reader, &endpoint, "m", &no_secrets, take, subject);
}

static void end(struct subject_of_row *subject, struct fm_error *error) {
    static const char *const reasons[] = {"none", "stop", "length", "content_filter"};
    if (fm_reader_close(&subject->reader, error) != FM_OK) {
        note(subject->log, "%s", fm_code_name(error->code));
    } else {
        const struct fm_kit_usage *usage = &subject->reader.usage;
        note(subject->log, "%s %lld/%lld/%lld/%lld%s", reasons[subject->reader.reason], (long long)usage->input,
             (long long)usage->cached, (long long)usage->output, (long long)usage->reasoning,
             subject->reader.complete ? " complete" : "");
    }
    fm_reader_free(&subject->reader);
}

/* Feeds the stream in two pieces, the first with `cut` bytes; in pieces of one byte if `cut` is 0. */
static void expect_row(const struct row *row, size_t cut) {
    static struct transcript log;
    struct subject_of_row subject;
    struct fm_error error = {.code = FM_OK};
    size_t len = strlen(row->in);
    size_t step = cut ? len : 1;
    begin(&subject, &log, row->dialect);
    for (size_t at = 0; at < len;) {
        size_t piece = at < cut ? cut - at : len - at < step ? len - at : step;
        char *bytes = exact_copy(row->in + at, piece);
        enum fm_code code = fm_reader_push(&subject.reader, bytes, piece, &error);
        assert_int_equal(code, subject.reader.code);
        free(bytes);
        at += piece;
    }
    end(&subject, &error);
    expect_text(row->name, "cut at", cut, row->out, log.text);
}

/* Answers that are not streamed. */
static void whole(void **state) {
    (void)state;
    static const struct row bodies[] = {
        {FM_DIALECT_CHAT, "text",
         "{\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"a\\ud83d\"},\"finish_reason\":"
         "\"stop\"}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}",
         "text(a\xef\xbf\xbd) stop 7/-1/3/-1"},
        {FM_DIALECT_CHAT, "an error", "{\"error\":{\"type\":\"server_error\"}}", "OVERLOADED"},
        {FM_DIALECT_CHAT, "nothing", "{}", "INTERNAL"},
        {FM_DIALECT_CHAT, "no object", "[]", "INTERNAL"},
        {FM_DIALECT_RESPONSES, "text",
         "{\"object\":\"response\",\"status\":\"completed\",\"error\":null,\"output\":[" RESP_ITEM("a") "]}",
         "text(a) stop -1/-1/-1/-1 complete"},
        {FM_DIALECT_RESPONSES, "the limit",
         "{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\"output\":[" RESP_ITEM(
             "a") "]}",
         "text(a) length -1/-1/-1/-1 complete"},
        {FM_DIALECT_RESPONSES, "not at its end", "{\"status\":\"queued\",\"output\":[]}", "INTERNAL"},
        {FM_DIALECT_MESSAGES, "text",
         "{\"type\":\"message\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"S\"},{\"type\":"
         "\"text\",\"text\":\"a\"}],\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":5,\"output_tokens\":2}}",
         "reasoning(hm) state({\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"S\"}) text(a) stop 5/0/2/-1 "
         "complete"},
        {FM_DIALECT_MESSAGES, "no end", "{\"type\":\"message\",\"content\":[]}", "INTERNAL"},
    };
    static struct transcript log;
    for (size_t i = 0; i < COUNT(bodies); i++) {
        struct subject_of_row subject;
        struct fm_error error = {.code = FM_OK};
        begin(&subject, &log, bodies[i].dialect);
        char *copy = exact_copy(bodies[i].in, strlen(bodies[i].in));
        enum fm_code code = fm_reader_whole(&subject.reader, copy, strlen(bodies[i].in), &error);
        assert_int_equal(code, subject.reader.code);
        free(copy);
        end(&subject, &error);
        expect_text(bodies[i].name, "body", i, bodies[i].out, log.text);
    }
}

static void streams(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t cut = 0; cut <= strlen(rows[i].in); cut++) {
            expect_row(&rows[i], cut);
        }
    }
}

static bool take_one(void *state, const struct fm_remote_part *part) {
    (*(int *)state)++;
    return part->kind != FM_REMOTE_TEXT;
}

/* When the kit wants no more output, the reader passes on nothing more. */
static void stops(void **state) {
    (void)state;
    static const char in[] = CHAT("\"content\":\"a\"") CHAT("\"content\":\"b\"") CHAT_END("stop") DONE;
    struct fm_remote_reader reader;
    struct fm_error error;
    int parts = 0;
    endpoint.dialect = FM_DIALECT_CHAT;
    fm_reader_init(&reader, &endpoint, NULL, &no_secrets, take_one, &parts);
    assert_int_equal(fm_reader_push(&reader, in, sizeof in - 1, &error), FM_OK);
    assert_true(reader.stopped);
    assert_int_equal(parts, 1);
    fm_reader_free(&reader);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(streams), cmocka_unit_test(whole), cmocka_unit_test(stops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
