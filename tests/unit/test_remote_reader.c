/*
 * Streams of the three dialects, cut at every byte: a transcript of the parts, pieces of one kind joined, and the end.
 * The events are those of the servers' documentation, and of recorded answers of llama-server, shortened.
 */
#include "engine/remote/reader.h"

#include "wire.h"

#define CHAT(delta)   "data: {\"choices\":[{\"index\":0,\"delta\":{" delta "}}]}\n\n"
#define CHAT_END(why) "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" why "\"}]}\n\n"
#define CALL(index, id, name, text)                                                                                    \
    CHAT("\"tool_calls\":[{\"index\":" index ",\"id\":" id ",\"function\":{\"name\":" name ",\"arguments\":\"" text    \
         "\"}}]")
#define DONE                   "data: [DONE]\n\n"
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
    {FM_DIALECT_CHAT, "no end mark", CHAT("\"content\":\"a\"") DONE, "text(a) INTERNAL"},
    {FM_DIALECT_CHAT, "nothing", "", "INTERNAL"},
    {FM_DIALECT_CHAT, "filtered", CHAT_END("content_filter") DONE, "content_filter -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "an unknown end", CHAT_END("abort") DONE, "INTERNAL"},
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
    {FM_DIALECT_CHAT, "members of other types",
     "data: {\"choices\":{},\"usage\":7}\n\ndata: {\"choices\":[7]}\n\ndata: "
     "{\"choices\":[{\"delta\":{\"content\":7,\"tool_calls\":{}},\"finish_reason\":7,\"logprobs\":[]}]}\n\n" CHAT_END(
         "stop") DONE,
     "stop -1/-1/-1/-1 complete"},
    {FM_DIALECT_CHAT, "log probabilities",
     "data: {\"choices\":[{\"delta\":{\"content\":\"ab\"},\"logprobs\":{\"content\":[{\"token\":\"a\",\"logprob\":-0.5,"
     "\"bytes\":[97],\"top_logprobs\":[{\"token\":\"a\",\"logprob\":-0.5,\"bytes\":null}]},{\"token\":\"b\","
     "\"logprob\":-99999,\"top_logprobs\":[]}]}}]}\n\n" CHAT_END("stop") DONE,
     "token(a -0.50 1) token(b -9999.00 0) text(ab) stop -1/-1/-1/-1 complete"},

    {FM_DIALECT_RESPONSES, "text",
     RESP("response.created", "\"response\":{}") RESP("response.output_item.added", "\"item\":{\"type\":\"message\"}")
         RESP_DELTA("output_text", "Hel") RESP_DELTA("output_text", "lo")
             RESP("response.output_text.done", "\"text\":\"Hello\"") RESP_END,
     "text(Hello) stop 7/2/3/1 complete"},
    {FM_DIALECT_RESPONSES, "no end mark", RESP_DELTA("output_text", "a") DONE, "text(a) INTERNAL"},
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
     "INTERNAL"},
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
    int last; /* kind of the part that is open in the transcript; -1: none */
};

/* What comes after `mark` in a text without a NUL at its end; NULL: the mark is not there. */
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
    bool joins = subject->last == (int)part->kind && part->kind != FM_PART_CALL;
    if (part->kind == FM_PART_LOGPROBS) {
        note(subject->log, "token(%.*s %.2f %zu) ", (int)part->token->token.len, part->token->token.bytes,
             part->token->token.logprob, part->token->top_count);
        return true;
    }
    if (joins) {
        subject->log->len -= 2; /* ") " */
    } else {
        note(subject->log, "%s(", names[part->kind]);
    }
    const char *item = part->kind == FM_PART_STATE ? find_after(part->text, part->len, "\"item\":") : NULL;
    if (item) {
        note(subject->log, "%.*s) ", (int)(part->text + part->len - item - 1), item);
    } else {
        note(subject->log, "%.*s) ", (int)part->len, part->text);
    }
    subject->last = part->kind == FM_PART_STATE ? -1 : (int)part->kind;
    return true;
}

/* The stream in two pieces, of which the first has `cut` bytes; in pieces of one byte where `cut` is 0. */
static void expect_row(const struct row *row, size_t cut) {
    static struct transcript log;
    static const char *const reasons[] = {"none", "stop", "length", "content_filter"};
    static struct fm_endpoint endpoint = {.base = (char *)"http://h", .host = (char *)"h"};
    const struct fm_secrets none = {.count = 0};
    struct subject_of_row subject = {.log = &log, .last = -1};
    struct fm_error error = {.code = FM_OK};
    size_t len = strlen(row->in);
    size_t step = cut ? len : 1;
    log = (struct transcript){.len = 0};
    endpoint.dialect = row->dialect;
    fm_reader_init(&subject.reader, &endpoint, "m", &none, take, &subject);
    for (size_t at = 0; at < len;) {
        size_t piece = at < cut ? cut - at : len - at < step ? len - at : step;
        char *bytes = exact_copy(row->in + at, piece);
        enum fm_code code = fm_reader_push(&subject.reader, bytes, piece, &error);
        assert_int_equal(code, subject.reader.code);
        free(bytes);
        at += piece;
    }
    if (fm_reader_close(&subject.reader, &error) != FM_OK) {
        note(&log, "%s", fm_code_name(error.code));
    } else {
        const struct fm_kit_usage *usage = &subject.reader.usage;
        note(&log, "%s %lld/%lld/%lld/%lld%s", reasons[subject.reader.reason], (long long)usage->input,
             (long long)usage->cached, (long long)usage->output, (long long)usage->reasoning,
             subject.reader.complete ? " complete" : "");
    }
    fm_reader_free(&subject.reader);
    expect_text(row->name, "cut at", cut, row->out, log.text);
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
    return part->kind != FM_PART_TEXT;
}

/* Once the kit wants no more, nothing more is handed out. */
static void stops(void **state) {
    (void)state;
    static const char in[] = CHAT("\"content\":\"a\"") CHAT("\"content\":\"b\"") CHAT_END("stop") DONE;
    static struct fm_endpoint endpoint = {.base = (char *)"", .host = (char *)"h", .dialect = FM_DIALECT_CHAT};
    const struct fm_secrets none = {.count = 0};
    struct fm_remote_reader reader;
    struct fm_error error;
    int parts = 0;
    fm_reader_init(&reader, &endpoint, NULL, &none, take_one, &parts);
    assert_int_equal(fm_reader_push(&reader, in, sizeof in - 1, &error), FM_OK);
    assert_true(reader.stopped);
    assert_int_equal(parts, 1);
    fm_reader_free(&reader);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(streams), cmocka_unit_test(stops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
