/* Tools: the text of the prompt, the grammar, and parsing an answer, however it is split. */
#include "engine/guide/notation_grammar.h"
#include "engine/guide/tool_grammar.h"
#include "tool_pieces.h"
#ifdef WRAPPED
#include "allocations.h"
#endif

#include <json-c/json.h>

#define LARK_MAX (1u << 20)

#define CALL(name, arguments) "<tool_call>\n{\"name\": \"" name "\", \"arguments\": " arguments "}\n</tool_call>"

static struct fm_tool two_tools[] = {{.name = "f", .allowed = true}, {.name = "g\"\\\xC3\xA9", .allowed = true}};

static struct fm_kit_job job_of(struct fm_message *messages, size_t count) {
    return (struct fm_kit_job){.messages = messages,
                               .message_count = count,
                               .tools = two_tools,
                               .tool_count = COUNT(two_tools),
                               .parallel_tool_calls = true};
}

static struct fm_message say(const char *role, const char *content) {
    return (struct fm_message){.role = role, .content = content, .content_len = strlen(content)};
}

/* ---- prompt ---- */

#define LIST                                                                                                           \
    "# Tools\n\nThese functions are there to help with the user's request, one a line:\n<tools>\n"                     \
    "{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\\n\",\"parameters\":{\"a\":[1.50]}}}\n"   \
    "{\"type\":\"function\",\"function\":{\"name\":\"g\\\"\\\\\xC3\xA9\"}}\n</tools>"
#define HOW                                                                                                            \
    "\n\nTo call one, answer with its name and its arguments as JSON in these tags, and end there:\n"                  \
    "<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>"

static void expect_prompt(const struct fm_kit_job *job, const char *expected) {
    struct fm_tool_prompt prompt;
    struct fm_error error;
    struct transcript log = {.len = 0};
    assert_int_equal(fm_tool_prompt_init(&prompt, job, &fm_tool_form_own, &error), FM_OK);
    assert_int_equal(prompt.chat.tool_count, 0);
    for (size_t i = 0; i < prompt.chat.count; i++) {
        const struct fm_chat_message *message = &prompt.chat.messages[i];
        assert_int_equal(message->call_count, 0);
        note(&log, "[%s]%.*s", message->role, (int)message->content_len, message->content);
    }
    assert_string_equal(log.text, expected);
    fm_tool_prompt_free(&prompt);
}

/* An image keeps its place in its text, even if the text follows an outcome in the same message. */
static void images_keep_their_place(void **state) {
    (void)state;
    struct fm_tool_call call = {.id = "1", .name = "f", .arguments = "{}", .arguments_len = 2};
    struct fm_image first[] = {{.at = 1, .index = 0}};
    struct fm_image second[] = {{.at = 0, .index = 1}, {.at = 4, .index = 2}};
    struct fm_message messages[] = {say("user", "a"), say("assistant", ""), say("tool", "done"), say("user", "more")};
    struct fm_kit_job job = job_of(messages, COUNT(messages));
    struct fm_tool_prompt prompt;
    struct fm_error error;
    messages[0].images = first;
    messages[0].image_count = COUNT(first);
    messages[1].tool_calls = &call;
    messages[1].tool_call_count = 1;
    messages[2].tool_call_id = "1";
    messages[3].images = second;
    messages[3].image_count = COUNT(second);
    job.tool_count = 0;
    assert_int_equal(fm_tool_prompt_init(&prompt, &job, &fm_tool_form_own, &error), FM_OK);
    assert_int_equal(prompt.chat.count, 3);
    const struct fm_chat_message *user = &prompt.chat.messages[0];
    assert_int_equal(user->image_count, 1);
    assert_int_equal(user->images[0].at, 1);
    user = &prompt.chat.messages[2];
    assert_int_equal(user->image_count, 2);
    assert_int_equal(user->images[1].index, 2);
    assert_int_equal(user->images[1].at, user->content_len);
    assert_memory_equal(user->content + user->images[0].at, "more", 4);
    fm_tool_prompt_free(&prompt);
}

static void prompts(void **state) {
    (void)state;
    struct json_object *parameters = json_tokener_parse("{\"a\":[1.50]}");
    struct fm_message messages[] = {say("system", "Be brief."), say("user", "hi")};
    struct fm_kit_job job = job_of(messages, 2);
    two_tools[0].description = "d\n";
    two_tools[0].parameters = parameters;
    expect_prompt(&job, "[system]Be brief.\n\n" LIST HOW "[user]hi");
    messages[0] = say("system", "");
    expect_prompt(&job, "[system]" LIST HOW "[user]hi");
    messages[0] = say("user", "Be brief.");
    expect_prompt(&job, "[system]" LIST HOW "[user]Be brief.[user]hi");
    job.tool_mode = FM_TOOLS_NONE;
    expect_prompt(&job, "[system]" LIST "[user]Be brief.[user]hi");
    job.tool_count = 0;
    expect_prompt(&job, "[user]Be brief.[user]hi");
    messages[0] = say("system", "Be brief.");
    expect_prompt(&job, "[system]Be brief.[user]hi");
    two_tools[0].description = NULL;
    two_tools[0].parameters = NULL;
    json_object_put(parameters);
}

static void conversations(void **state) {
    (void)state;
    struct fm_tool_call calls[] = {{"1", "f", "{\"a\": 1}", 8}, {"2", "g\"", "no JSON", 7}};
    struct fm_message messages[] = {say("user", "hi"), say("assistant", ""),       say("tool", "one"), say("tool", ""),
                                    say("user", "so"), say("assistant", "Right."), say("tool", "two")};
    struct fm_kit_job job = job_of(messages, COUNT(messages));
    job.tool_count = 0;
    for (size_t i = 0; i < COUNT(messages); i++) {
        messages[i].tool_call_id = strcmp(messages[i].role, "tool") == 0 ? "1" : NULL;
    }
    messages[1].tool_calls = calls;
    messages[1].tool_call_count = 2;
    messages[5].tool_calls = calls;
    messages[5].tool_call_count = 1;
    expect_prompt(
        &job,
        "[user]hi[assistant]" CALL("f", "{\"a\": 1}") "\n" CALL(
            "g\\\"", "no JSON") "[user]<tool_response>\none\n</tool_response>\n<tool_response>\n\n</tool_response>"
                                "\nso[assistant]Right.\n" CALL(
                                    "f", "{\"a\": 1}") "[user]<tool_response>\ntwo\n</tool_response>");
}

/* ---- grammar ---- */

#define ANY_OBJECT                                                                                                     \
    "%json {\"x-guidance\":{\"json_allowed_escapes\":\"nrbtf\\\\\\\"\",\"whitespace_flexible\":false},"                \
    "\"type\":\"object\"}\n"
#define FREE_TEXT    "TEXT: /(?s:.*)/\nstart: TEXT"
#define UNKNOWN_CALL                                                                                                   \
    "unknown: \"" NAME_MARK "\" UNKNOWN \"\\\"\" start\n"                                                                    \
    "UNKNOWN: /[a-zA-Z0-9_.:\\/-]{1,64}/ & ~(\"f\" | \"g\\\"\\\\\xC3\xA9\")\n"
#define FREE_START   FREE_TEXT " | json | head unknown | head calls\nhead[lazy]: /(?s:.*)/ \"<tool_call>\"\n"
#define JSON_BEGIN   "json: (json0) (NEXT (\"f\\\"\" ARGUMENTS arguments0)){0,127}"
#define ONE_JSON     "json: (json0)"
#define JSON_END                                                                                                       \
    " END\njson0: name0 ARGUMENTS arguments0\nname0[lazy]: PLACE BEGIN \"f\\\"\"\n"                                     \
    "PLACE: /" FM_JSON_CALL_PLACE "/\nBEGIN: /" FM_JSON_CALL_BEGIN "/\nARGUMENTS: /" FM_JSON_CALL_ARGUMENTS              \
    "/\nNEXT: /" FM_JSON_CALL_NEXT "/\nEND: /" FM_JSON_CALL_END "/\n"
#define FORCED_START "start: \"<tool_call>\" calls\n"
#define NAME_MARK    "\\n{\\\"name\\\": \\\""
#define END_MARK     "}\\n</tool_call>"
#define MANY_CALLS                                                                                                     \
    "calls: \"" NAME_MARK "\" tool ( \"" END_MARK "\\n<tool_call>" NAME_MARK "\" tool){0,127} LAST\n"                  \
    "LAST: \"" END_MARK "\" \"\\n\"?\n"
#define FREE_CALLS                                                                                                     \
    "calls: \"" NAME_MARK "\" tool ( \"" END_MARK "\\n<tool_call>" NAME_MARK "\" any_tool){0,127} LAST\n"              \
    "LAST: \"" END_MARK "\" \"\\n\"?\n"                                                                                \
    "any_tool: tool | UNKNOWN \"\\\", \\\"arguments\\\": \" any\nany: %json {\"type\":\"object\"}\n"
#define ONE_CALL "calls: \"" NAME_MARK "\" tool \"" END_MARK "\"\n"
#define F        "\"f\\\", \\\"arguments\\\": \" arguments0"
#define G        "\"g\\\\\\\"\\\\\\\\\xC3\xA9\\\", \\\"arguments\\\": \" arguments1"

static void expect_grammar(const struct fm_kit_job *job, const struct fm_tool_form *form, const char *schema,
                           const char *expected) {
    struct fm_buf lark;
    struct fm_error error;
    fm_buf_init(&lark, LARK_MAX);
    assert_int_equal(fm_tool_grammar(job, form, NULL, schema, schema ? strlen(schema) : 0, &lark, &error), FM_OK);
    fm_buf_append(&lark, "", 1);
    assert_string_equal(lark.data, expected);
    fm_buf_free(&lark);
}

static void grammars(void **state) {
    (void)state;
    struct fm_kit_job job = job_of(NULL, 0);
    const char *both = "tool: " F " | " G "\narguments0: " ANY_OBJECT "arguments1: " ANY_OBJECT;
    char expected[4096];
    const struct fm_tool_form *own = &fm_tool_form_own;
    snprintf(expected, sizeof expected, "%s%s", FREE_START JSON_BEGIN JSON_END UNKNOWN_CALL FREE_CALLS, both);
    expect_grammar(&job, own, NULL, expected);
    snprintf(expected, sizeof expected, "%s%s",
             "start: text | \"<tool_call>\" calls\ntext: %json {\"a\":1}\n" MANY_CALLS, both);
    job.format.kind = FM_FORMAT_JSON_SCHEMA;
    expect_grammar(&job, own, "{\"a\":1}", expected);
    job.tool_mode = FM_TOOLS_REQUIRED;
    snprintf(expected, sizeof expected, "%s%s", FORCED_START MANY_CALLS, both);
    expect_grammar(&job, own, "{\"a\":1}", expected);
    job.parallel_tool_calls = false;
    two_tools[0].allowed = false;
    expect_grammar(&job, own, NULL, FORCED_START ONE_CALL "tool: " G "\narguments1: " ANY_OBJECT);
    two_tools[0].allowed = true;
}

static void expect_schema(const char *parameters, bool strict, const char *part, const char *param) {
    struct fm_tool tools[] = {{.name = "f", .allowed = false}, {.name = "g", .allowed = true, .strict = strict}};
    struct fm_kit_job job = {.tools = tools, .tool_count = 2};
    struct fm_buf lark;
    struct fm_error error = {0};
    fm_buf_init(&lark, LARK_MAX);
    tools[1].parameters = json_tokener_parse(parameters);
    assert_non_null(tools[1].parameters);
    enum fm_code code = fm_tool_grammar(&job, &fm_tool_form_own, NULL, NULL, 0, &lark, &error);
    fm_buf_append(&lark, "", 1);
    assert_int_equal(code, param ? FM_INVALID_REQUEST : FM_OK);
    if (param) {
        assert_string_equal(error.param, param);
        assert_null(strstr(error.detail, param)); /* `param` is the engine's path; the error's text must not show it */
    } else {
        assert_non_null(strstr(lark.data, part));
    }
    json_object_put(tools[1].parameters);
    fm_buf_free(&lark);
}

static void schemas(void **state) {
    (void)state;
    expect_schema("{}", true, "arguments1: " ANY_OBJECT, NULL);
    expect_schema("{\"type\":\"object\"}", true, "arguments1: " ANY_OBJECT, NULL);
    expect_schema("{\"type\":\"string\"}", false, NULL, "tools[1].parameters.type");
    expect_schema("{\"type\":[\"object\",\"null\"]}", false, NULL, "tools[1].parameters.type");
    expect_schema("{\"type\":null}", false, NULL, "tools[1].parameters.type");
    expect_schema("{\"minProperties\":1}", false, "\"type\":\"object\"", NULL);
    expect_schema("{\"type\":\"object\",\"properties\":{\"a\":{\"not\":{}}}}", true, NULL,
                  "tools[1].parameters.properties.a.not");
    expect_schema("{\"type\":\"object\",\"propertyNames\":{\"pattern\":\"a\"}}", false, "\"type\":\"object\"}\n", NULL);
    expect_schema("{\"properties\":{\"a\":{\"items\":{\"properties\":{\"b\":{}}}}},\"required\":[\"a\"]}", false,
                  "\"properties\":{\"a\":{\"items\":{\"properties\":{\"b\":{}},\"additionalProperties\":false}}},"
                  "\"required\":[\"a\"],\"additionalProperties\":false}\n",
                  NULL);
    expect_schema("{\"properties\":{\"a\":{}},\"required\":[\"b\"]}", false, "\"required\":[\"b\"]}\n", NULL);
    expect_schema("{\"properties\":{\"a\":{}},\"additionalProperties\":true}", false, "\"additionalProperties\":true}\n",
                  NULL);
    expect_schema("{\"properties\":{}}", false, "\"properties\":{}}\n", NULL);
    expect_schema("{\"properties\":1}", false, NULL, "tools[1].parameters.properties");
}

/* ---- parser ---- */

static struct fm_kit_job parsed_job;
static const struct fm_tool_form *parsed_form = &fm_tool_form_own;

static void *start(struct transcript *log) {
    return start_parsing(log, &parsed_job, parsed_form);
}

static const struct subject subject = {start, feed, end};

static void expect_pieces(const char *answer, const char *expected) {
    expect_in_any_split(&subject, answer, answer, strlen(answer), expected);
}

#define SPACES "                                                                                "

static void free_answers(void **state) {
    (void)state;
    parsed_job = job_of(NULL, 0);
    expect_pieces("", "");
    expect_pieces("Some text\nwith  spaces.\n", "T:Some text\nwith  spaces.\n");
    expect_pieces(" \n", "T: \n");
    expect_pieces("a <b> < tool_call> <<tool_cal <tool_call", "T:a <b> < tool_call> <<tool_cal <tool_call");
    expect_pieces(CALL("f", "{}"), "|C:f|A:{}");
    expect_pieces(CALL("f", "{}") "\n", "|C:f|A:{}");
    expect_pieces(" \n" CALL("f", "{}"), "|C:f|A:{}");
    expect_pieces("Let me see: <\n\n " CALL("f", "{\"a\":[{}]}"), "T:Let me see: <|C:f|A:{\"a\":[{}]}");
    expect_pieces("<<tool_<" CALL("g\\\"\\\\\xC3\xA9", "{}") "\n" CALL("f", "{\"f\":{}}"),
                  "T:<<tool_<|C:g\"\\\xC3\xA9|A:{}|C:f|A:{\"f\":{}}");
    /* text that looks like an end, inside strings */
    expect_pieces(CALL("f", "{\"}\\\\\":\"\\\"}}<tool_call>]\\\\\"}") "\n" CALL("f", "{\"a\":\"</tool_call>\"}"),
                  "|C:f|A:{\"}\\\\\":\"\\\"}}<tool_call>]\\\\\"}|C:f|A:{\"a\":\"</tool_call>\"}");
    /* there is more white space than is held back: the excess is text */
    expect_pieces("a" SPACES SPACES SPACES SPACES "<tool_call", "T:a" SPACES SPACES SPACES SPACES "<tool_call");
    expect_pieces(SPACES SPACES SPACES SPACES "<" CALL("f", "{}"), "T:" SPACES SPACES SPACES SPACES "<|C:f|A:{}");
    parsed_job.stop_count = 1; /* a stop string may be white space */
    expect_pieces("a \n" CALL("f", "{}"), "T:a \n|C:f|A:{}");
}

static void forced_answers(void **state) {
    (void)state;
    parsed_job = job_of(NULL, 0);
    parsed_job.tool_mode = FM_TOOLS_REQUIRED;
    expect_pieces(CALL("f", "{\"a\":1}"), "|C:f|A:{\"a\":1}");
    expect_pieces("<tool_ca", "");
    parsed_job.format.kind = FM_FORMAT_JSON_OBJECT;
    expect_pieces(CALL("f", "{}") "\n" CALL("f", "{}"), "|C:f|A:{}|C:f|A:{}");
}

/* A JSON text may contain the mark. */
static void answers_with_a_format(void **state) {
    (void)state;
    parsed_job = job_of(NULL, 0);
    parsed_job.format.kind = FM_FORMAT_JSON_SCHEMA;
    expect_pieces("{\"a\":\"" CALL("f", "{}") "\"}", "T:{\"a\":\"" CALL("f", "{}") "\"}");
    expect_pieces(CALL("f", "{}"), "|C:f|A:{}");
    expect_pieces("<tool", "");
}

/* If an answer is cut at the token limit, the reported pieces are a beginning of the whole pieces, and never contain a
 * mark. */
static void cuts(void **state) {
    (void)state;
    static const char answer[] = "Well <" CALL("f", "{\"a\":\"}\"}") "\n" CALL("f", "{}");
    static const char whole[] = "T:Well <|C:f|A:{\"a\":\"}\"}|C:f|A:{}";
    parsed_job = job_of(NULL, 0);
    for (size_t len = 1; len < strlen(answer); len++) {
        struct transcript log = {.len = 0};
        void *context = start(&log);
        feed_piece(feed, context, answer, len);
        end_parsing(context, true);
        assert_memory_equal(log.text, whole, log.len);
    }
}

static void unknown_names(void **state) {
    (void)state;
    parsed_job = job_of(NULL, 0);
    expect_pieces("Well " CALL("h", "{}"), "T:Well|?T: " CALL("h", "{}"));
    expect_pieces(CALL("h", "{}") "\n" CALL("f", "{}") , "|?T:" CALL("h", "{}") "|C:f|A:{}");
    expect_pieces(CALL("f", "{}") "\n" CALL("h", "{\"a\": {}}") "\n" CALL("f", "{}"), "|C:f|A:{}|?|C:f|A:{}");
}

/* ---- a model's own form ---- */

/* How a template writes calls, and what else is special about it. '#' is the number of the call in its message, '@' its
 * id. */
struct style {
    const char *begin; /* before the first name */
    const char *middle;
    const char *next; /* before another name; NULL: more than one call is refused */
    const char *end;
    const char *turn_end; /* "<end>" is a control token */
    const char *thought;  /* before the assistant's texts and calls */
    const char *think;    /* the beginning of a thought, as far as it is known */
    bool drops_thought;   /* leaves out the thoughts of messages with calls */
    bool hides_tools;
    bool hides_tools_from_system; /* shows no tools if there is a system message */
    bool hides_tools_from_user;   /* shows no tools if there is no system message */
    bool hides_outcomes;
    /* hides all outcomes except those after the last message; the next member is the same for calls */
    bool hides_old_outcomes;
    bool hides_old_calls;
    bool numbers_turns;    /* numbers turns inside calls */
    bool small_letters;    /* writes the names of calls in small letters */
    bool thinks;           /* the prompt ends with a text that earlier turns do not have */
    bool has_ids;          /* writes ids in calls */
    bool has_old_ids;      /* writes ids in calls of earlier turns */
    bool nine;             /* refuses ids that do not have nine characters */
    bool shows_ids;        /* writes ids beside outcomes */
    bool numbers;          /* writes a number after each call */
    bool counts;           /* writes the number of calls in front of them */
    const char *arguments; /* written in place of the given arguments */
    const char *empty;     /* written in place of empty arguments */
    bool names_twice;
    bool announces;    /* writes something before texts, but not before calls */
    const char *tag;   /* text before a key: arguments are in tags; the next four are as in fm_tool_tags */
    const char *raw;
    const char *json;
    const char *close;
    const char *none;  /* written if there are no arguments */
    const char *truth; /* how `true` is written */
};

static void note_numbered(struct transcript *log, const char *text, const char *id, size_t number) {
    const char *place = strpbrk(text, "#@");
    char digits[24];
    snprintf(digits, sizeof digits, "%zu", number);
    if (place) {
        note(log, "%.*s%s%s", (int)(place - text), text, *place == '@' ? id : digits, place + 1);
    } else {
        note(log, "%s", text);
    }
}

static void render_call(const struct style *style, const struct fm_chat *chat, const struct fm_chat_call *call,
                        size_t k, struct transcript *log) {
    char first[2] = {(char)(style->small_letters ? call->name[3] | 0x20 : call->name[3])};
    note_numbered(log, k ? style->next : style->begin, call->id, k);
    note(log, "%s", !style->counts || k == 0 ? "" : k == 1 ? "1" : "2");
    note(log, "%s", !style->numbers_turns ? "" : chat->count > 2 ? "3" : "2");
    note(log, "%.3s%s%s", call->name, first, call->name + 4);
    if (style->tag) {
        note(log, "%s", style->middle);
        if (strcmp(call->arguments, "{}") != 0) {
            note(log, "%sfm_key%sfm_Value%s", style->tag, style->raw, style->close);
            note(log, "%sfm_flag%s%s%s", style->tag, style->json, style->truth, style->close);
        } else {
            note(log, "%s", style->none ? style->none : "");
        }
    } else {
        const char *arguments = strcmp(call->arguments, "{}") == 0 ? style->empty : style->arguments;
        note_numbered(log, style->middle, call->id, k);
        note(log, "%s", arguments ? arguments : call->arguments);
    }
    note(log, "%s", style->has_ids || (style->has_old_ids && chat->count > 2) ? call->id : "");
    note(log, "%s", !style->numbers ? "" : k == 0 ? "0" : k == 1 ? "1" : "2");
    note(log, "%s", style->names_twice ? call->name : "");
}

static void render_message(const struct style *style, const struct fm_chat *chat, size_t index,
                           struct transcript *log) {
    const struct fm_chat_message *message = &chat->messages[index];
    bool assistant = strcmp(message->role, "assistant") == 0;
    bool last = index + 1 == chat->count;
    bool hides_outcomes = style->hides_outcomes || (style->hides_old_outcomes && !last);
    bool hides_calls = style->hides_old_calls && !last;
    bool shows_text = !(hides_outcomes && strcmp(message->role, "tool") == 0);
    note(log, "<%s>", message->role);
    if (assistant) {
        bool thinks = style->thought && !(style->drops_thought && message->call_count > 0);
        note(log, "%s%s", thinks ? style->thought : "", style->announces && !message->call_count ? "!" : "");
    }
    if (style->shows_ids && message->answered_id) {
        note(log, "%s: ", message->answered_id);
    }
    if (shows_text) {
        note(log, "%.*s", (int)message->content_len, message->content);
    }
    for (size_t k = 0; k < message->call_count && !hides_calls; k++) {
        render_call(style, chat, &message->calls[k], k, log);
    }
    note(log, "%s%s", message->call_count ? style->end : "", style->turn_end);
}

static enum fm_code render_style(const void *argument, const struct fm_chat *chat, char **text, size_t *len,
                                 struct fm_error *error) {
    const struct style *style = argument;
    struct transcript log = {.len = 0};
    bool system = strcmp(chat->messages[0].role, "system") == 0;
    bool hides = style->hides_tools || (style->hides_tools_from_system && system) ||
                 (style->hides_tools_from_user && !system) || chat->tool_count == 0;
    *text = NULL;
    *len = 0;
    note(&log, "<tools>%s", hides ? "" : chat->tools[0].name);
    for (size_t i = 0; i < chat->count; i++) {
        if (chat->messages[i].call_count > 1 && !style->next) {
            return fm_fail(error, FM_INVALID_REQUEST, "one call");
        }
        if (style->nine && chat->messages[i].call_count > 0 && strlen(chat->messages[i].calls[0].id) != 9) {
            return fm_fail(error, FM_INVALID_REQUEST, "an id has nine characters");
        }
        render_message(style, chat, i, &log);
    }
    note(&log, "%s", chat->closed ? "" : style->thinks ? "<assistant><think>" : "<assistant>");
    *len = log.len;
    *text = strdup(log.text);
    assert_non_null(*text);
    return FM_OK;
}

/* "<end>" is 1 and ends a turn, "<c>" is 7, "[c]" is 8. */
static size_t control_of_style(const void *argument, const char *text, size_t len, int32_t *token, bool *ends_turn) {
    static const struct {
        const char *text;
        int32_t token;
    } controls[] = {{"<end>", 1}, {"<c>", 7}, {"[c]", 8}};
    (void)argument;
    for (size_t i = 0; i < COUNT(controls); i++) {
        size_t control_len = strlen(controls[i].text);
        if (len >= control_len && memcmp(text, controls[i].text, control_len) == 0) {
            *token = controls[i].token;
            *ends_turn = *token == 1;
            return control_len;
        }
    }
    return 0;
}

static struct fm_tool_template template_of(const struct style *style) {
    return (struct fm_tool_template){.render = render_style, .control = control_of_style, .argument = style};
}

static void read_form(const struct style *style, struct fm_tool_form *form) {
    struct fm_tool_template from = template_of(style);
    struct fm_error error;
    const struct fm_tool_turn turn = {style->think ? style->think : "", "", ""};
    assert_int_equal(fm_tool_form_read(&from, &turn, form, &error), FM_OK);
}

static void note_mark(struct transcript *log, const struct fm_tool_mark *mark) {
    note(log, "%.*s", (int)mark->len, mark->text);
    for (size_t i = 0; i < mark->control_count; i++) {
        note(log, "(%d at %zu)", (int)mark->controls[i].token, mark->controls[i].at);
    }
    if (mark->place == FM_TOOL_NUMBER_PLACE) {
        note(log, "(# at %zu)", mark->place_at);
    }
    note(log, "|");
}

/* `expected`: the form's five marks, and a word; NULL: the template has no usable form. */
static void expect_form(struct style style, const char *expected) {
    struct fm_tool_form form;
    struct transcript log = {.len = 0};
    read_form(&style, &form);
    assert_int_equal(form.native, expected != NULL);
    if (expected) {
        const struct fm_tool_mark *marks[] = {&form.trigger, &form.name, &form.arguments, &form.next, &form.end};
        for (size_t i = 0; i < COUNT(marks); i++) {
            note_mark(&log, marks[i]);
        }
        assert_string_equal(log.text, expected);
    }
    fm_tool_form_free(&form);
}

#define STYLE(before, between, following, ending, turns_end)                                                           \
    .begin = (before), .middle = (between), .next = (following), .end = (ending), .turn_end = (turns_end)
#define TAGS STYLE("\n<call>{\"", "\": ", "}</call>\n<call>{\"", "}</call>", "<end>\n")
#define TAGGED(following, ending) STYLE("<call>\n<f=", ">\n", following, ending, "<end>")
#define IN_TAGS(quote, closing, yes) .tag = "<p=", .raw = ">" quote, .json = ">" quote, .close = (closing), .truth = (yes)
#define JSON_CALL STYLE("{\"name\": \"", "\", \"parameters\": ", NULL, "}", "<end>")

static void forms(void **state) {
    (void)state;
    expect_form((struct style){TAGS}, "<call>|{\"|\": |}</call>\n<call>{\"|}</call>|");
    expect_form((struct style){TAGS, .thought = "<think></think>\n"},
                "<call>|{\"|\": |}</call>\n<call>{\"|}</call>|");
    /* the prompt opens a thought; the template removes it, closes it, or only writes it before a text */
    expect_form((struct style){TAGS, .thinks = true, .think = "<think>"}, "<call>|{\"|\": |}</call>\n<call>{\"|}</call>|");
    expect_form((struct style){TAGS, .thinks = true, .think = "<think>", .thought = "</think>"},
                "<call>|{\"|\": |}</call>\n<call>{\"|}</call>|");
    expect_form((struct style){TAGS, .thinks = true, .think = "<think>", .thought = "<think>\n", .drops_thought = true},
                "<call>|{\"|\": |}</call>\n<call>{\"|}</call>|");
    expect_form((struct style){TAGS, .has_old_ids = true}, "<call>|{\"|\": |}</call>\n<call>{\"|}</call>|");
    /* without a token that ends the turn, the end of the text ends it */
    expect_form((struct style){STYLE("[CALLS](", " ", ", ", ")", "")}, "[CALLS]|(| |, |)|");
    expect_form((struct style){STYLE("[CALLS]", "(", ")[CALLS]", ")", "")}, "[CALLS]||(|)[CALLS]|)|");
    expect_form((struct style){STYLE("<c>", "<c>(", "<c>", "", "<end>")}, "<c>(7 at 0)||<c>((7 at 0)|<c>(7 at 0)||");
    expect_form((struct style){STYLE("[c]", "=", "[c]", "", "<end>")}, "[c](8 at 0)||=|[c](8 at 0)||");
    expect_form((struct style){JSON_CALL}, "|{\"name\": \"|\", \"parameters\": ||}|");
    expect_form((struct style){STYLE("[{\"name\":\"", "\", \"arguments\":", "}, {\"name\":\"", "}]", "<end>")},
                "|[{\"name\":\"|\", \"arguments\":|}, {\"name\":\"|}]|");
    expect_form((struct style){STYLE(" tools[{\"", "\":", "}, {\"", "}]", "<end>")}, "tools[{|\"|\":|}, {\"|}]|");
    /* a second call can't be distinguished from the end, or looks different each time */
    expect_form((struct style){STYLE("<fun=", ">", "</f>", "</f>!", "<end>")}, "<fun=||>||</f>!|");
    expect_form((struct style){TAGS, .counts = true}, "<call>|{\"|\": ||}</call>|");
}

#define NUMBERED STYLE("<c>f.", ":#<c>", "<c>f.", "[c]", "<end>")
#define NUMBERED_LIST STYLE("<c>[{\"id\": #, \"f\": \"", "\", \"p\": ", "}, {\"id\": #, \"f\": \"", "}]", "<end>")

/* Numbered calls: the number is after the name, before the name, or after the arguments. */
static void numbers(void **state) {
    (void)state;
    expect_form((struct style){NUMBERED}, "<c>(7 at 0)|f.|:0<c>(7 at 2)(# at 1)|<c>f.(7 at 0)|[c](8 at 0)|");
    expect_form((struct style){NUMBERED_LIST},
                "<c>(7 at 0)|[{\"id\": 0, \"f\": \"(# at 8)|\", \"p\": |}, {\"id\": 1, \"f\": \"(# at 10)|}]|");
    expect_form((struct style){STYLE("<fun=", ">", "</f><fun=", "</f>", "<end>"), .numbers = true},
                "<fun=||>|0</f><fun=(# at 0)|0</f>(# at 0)|");
    /* These digits do not count as numbers: another digit is next to them, they belong to the name, or the beginning
     * differs from the first call's. */
    expect_form((struct style){STYLE("<c>", ":1#<c>", "<c>", "[c]", "<end>")}, "<c>(7 at 0)||:10<c>(7 at 3)||[c](8 at 0)|");
    expect_form((struct style){STYLE("<c>#", ":", "<c>#", "[c]", "<end>")}, "<c>(7 at 0)|0|:||[c](8 at 0)|");
    expect_form((struct style){STYLE("<c>0/", ":", "<c>#.", "[c]", "<end>")}, "<c>(7 at 0)|0/|:||[c](8 at 0)|");
}

/* A number may have several digits, in any mark. */
static void numbered_answers(void **state) {
    (void)state;
    struct style rows[] = {{NUMBERED}, {NUMBERED_LIST}, {STYLE("<fun=", ">", "</f><fun=", "</f>", "<end>"), .numbers = true}};
    static const char *const answers[] = {
        "f.f:9<c>{\"a\":1}<c>f.f:10<c>{}[c]",
        "[{\"id\": 10, \"f\": \"f\", \"p\": {\"a\":1}}, {\"id\": 11, \"f\": \"f\", \"p\": {}}]",
        "f>{\"a\":1}12</f><fun=f>{}13</f>",
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_tool_form form;
        char answer[128];
        read_form(&rows[i], &form);
        parsed_job = job_of(NULL, 0);
        parsed_job.tool_mode = FM_TOOLS_REQUIRED;
        parsed_form = &form;
        snprintf(answer, sizeof answer, "%.*s%s", (int)form.trigger.len, form.trigger.text, answers[i]);
        expect_pieces(answer, "|C:f|A:{\"a\":1}|C:f|A:{}");
        fm_tool_form_free(&form);
    }
    parsed_form = &fm_tool_form_own;
}

static void numbered_grammars(void **state) {
    (void)state;
    struct fm_tool tool = {.name = "f", .allowed = true};
    struct fm_kit_job job = {.tools = &tool, .tool_count = 1, .tool_mode = FM_TOOLS_REQUIRED, .parallel_tool_calls = true};
    struct style styles[] = {{NUMBERED}, {NUMBERED_LIST}};
    static const char *const expected[] = {
        "start: <[7]> calls\ncalls: \"f.\" tool ( <[7]> \"f.\" tool){0,127} <[8]>\nCALL_NUMBER: /[0-9]{1,4}/\n"
        "tool: \"f:\" CALL_NUMBER <[7]> arguments0\narguments0: " ANY_OBJECT,
        "start: <[7]> calls\ncalls: \"[{\\\"id\\\": \" CALL_NUMBER \", \\\"f\\\": \\\"\" tool "
        "( \"}, {\\\"id\\\": \" CALL_NUMBER \", \\\"f\\\": \\\"\" tool){0,127} \"}]\"\n"
        "CALL_NUMBER: /[0-9]{1,4}/\ntool: \"f\\\", \\\"p\\\": \" arguments0\narguments0: " ANY_OBJECT,
    };
    for (size_t i = 0; i < COUNT(styles); i++) {
        struct fm_tool_form form;
        read_form(&styles[i], &form);
        expect_grammar(&job, &form, NULL, expected[i]);
        fm_tool_form_free(&form);
    }
}

static void no_forms(void **state) {
    (void)state;
    const struct style styles[] = {
        {JSON_CALL, .hides_tools = true}, /* a call can't be distinguished from the message that shows the tools */
        {TAGGED(NULL, "</f>\n</call>"), IN_TAGS("", "</p>", "true"), .hides_tools = true},
        {TAGS, .hides_tools_from_system = true},
        {TAGS, .hides_tools_from_user = true},
        {TAGS, .arguments = "{\"fm_key\": \"fm_Value\", \"fm_flag\": \"True\"}"},
        {TAGS, .hides_outcomes = true},
        {TAGS, .hides_old_outcomes = true},
        {TAGS, .hides_old_calls = true},
        {TAGS, .numbers_turns = true},
        {TAGS, .small_letters = true},
        {TAGS, .thinks = true},
        {TAGS, .thinks = true, .think = "<thought>"},
        {TAGS, .thinks = true, .think = "<think>", .thought = "<thought>", .drops_thought = true},
        {STYLE("<fun=", ">", NULL, "", "<end>"), .has_ids = true}, /* the end of the call's id is not known */
        {TAGS, .names_twice = true},
        {TAGS, .announces = true},
        {STYLE("", ": ", NULL, "", "<end>")},      /* nothing marks a call */
        {STYLE("{\"", "\": ", NULL, "}", "<end>")}, /* looks like any other JSON */
        {STYLE("{\"name\": \"", "\", \"p\": ", NULL, "}", "<end>")},
        {STYLE("call ", ": ", NULL, "", "<end>")}, /* looks like any other text */
        {STYLE("<f=", ": ", NULL, "", "<end>")},   /* is hardly different from other text */
        {STYLE("cat[{\"", "\": ", NULL, "}]", "<end>")},
        {STYLE("call {\"", "\": ", NULL, "}", "<end>")},
        {STYLE("<f>", ": ", NULL, "", "<end>")},
        {STYLE("> ", ": ", NULL, "", "<end>")},
        {STYLE("<a<b>", ": ", NULL, "", "<end>")},                          /* the trigger begins twice */
        {STYLE("<a<c>b>", ": ", NULL, "", "<end>")},                        /* a control token inside the trigger */
        {STYLE("<fun>", "", NULL, "", "<end>")},                            /* the end of a name is not known */
        {STYLE("<call><", "> ", NULL, "", "<end>")},                        /* a control token with some name */
        {STYLE("<fun>", "_a ", NULL, "", "<end>")},                         /* no clear end of a name */
        {STYLE("<fun>", "\\ ", NULL, "", "<end>")},                         /* escapes the next character */
        {STYLE("<fun>", "<end>", NULL, "", "<end>")},                       /* the turn ends inside a call */
        {STYLE("<fun>", " {", NULL, "}", "<end>")},                         /* the arguments are not an object */
        {STYLE("<fun>", " \xC3", NULL, "", "<end>")},                       /* not UTF-8 */
        {STYLE("<fun>", "<c><c><c><c><c><c><c><c><c>", NULL, "", "<end>")}, /* too many control tokens */
    };
    for (size_t i = 0; i < COUNT(styles); i++) {
        expect_form(styles[i], NULL);
    }
}

/* Checks which form is used for a job with `tool`, an earlier `call`, and `format`. */
static void expect_choice(struct fm_tool tool, struct fm_tool_call call, enum fm_format_kind format, bool native) {
    struct style style = {JSON_CALL};
    struct fm_message messages[] = {say("user", "<c>"), say("assistant", "<c>"), say("tool", "<c>")};
    struct fm_kit_job job = {.messages = messages, .message_count = 3, .tools = &tool, .tool_count = 1};
    struct fm_tool_template from = template_of(&style);
    struct fm_tool_form form;
    messages[1].tool_calls = &call;
    messages[1].tool_call_count = 1;
    messages[2].tool_call_id = "1";
    job.format.kind = format;
    read_form(&style, &form);
    assert_ptr_equal(fm_tool_form_for(&form, &from, &job), native ? &form : &fm_tool_form_own);
    fm_tool_form_free(&form);
    assert_ptr_equal(fm_tool_form_for(&form, &from, &job), &fm_tool_form_own);
}

static void choices(void **state) {
    (void)state;
    struct json_object *parameters = json_tokener_parse("{\"a\":[{\"<c>\":1}]}");
    const struct fm_tool tool = {.name = "f", .description = "d"};
    const struct fm_tool_call call = {"1", "f", "{\"a\":\"b\"}", 9};
    const struct {
        struct fm_tool tool;
        struct fm_tool_call call;
        enum fm_format_kind format;
        bool native;
    } rows[] = {
        {tool, call, FM_FORMAT_TEXT, true},
        {{.name = "a-Z_0"}, call, FM_FORMAT_TEXT, true},
        {tool, call, FM_FORMAT_JSON_OBJECT, false}, /* both begin with a brace */
        {{.name = "f.g"}, call, FM_FORMAT_TEXT, false},
        {{.name = "f", .description = "a <c>"}, call, FM_FORMAT_TEXT, false},
        {{.name = "f", .parameters = parameters}, call, FM_FORMAT_TEXT, false},
        {tool, {"1", "f\"", "{}", 2}, FM_FORMAT_TEXT, false},
        {tool, {"2", "f", "{}", 2}, FM_FORMAT_TEXT, false}, /* the outcome is for another call */
        {tool, {"1", "f", "[]", 2}, FM_FORMAT_TEXT, false},
        {tool, {"1", "f", "{} ,", 4}, FM_FORMAT_TEXT, false},
        {tool, {"1", "f", "", 0}, FM_FORMAT_TEXT, false},
        {tool, {"1", "f", "{\"\\u003cc>\":1}", 14}, FM_FORMAT_TEXT, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        expect_choice(rows[i].tool, rows[i].call, rows[i].format, rows[i].native);
    }
    json_object_put(parameters);
}

/* Things that the form can't express in a conversation, or can't combine with a format. */
static void choices_by_form(void **state) {
    (void)state;
    struct fm_tool_call calls[] = {{"1", "f", "{}", 2}, {"2", "f", "{}", 2}};
    struct fm_message message = say("assistant", "Well");
    struct fm_kit_job job = {.messages = &message, .message_count = 1};
    const struct {
        struct style style;
        size_t calls;
        enum fm_format_kind format;
        bool native;
    } rows[] = {
        {{TAGS}, 2, FM_FORMAT_JSON_SCHEMA, true},
        {{STYLE("<fun=", ">", NULL, "", "<end>")}, 1, FM_FORMAT_TEXT, true},
        {{STYLE("<fun=", ">", NULL, "", "<end>")}, 2, FM_FORMAT_TEXT, false}, /* the form has one call at a time */
        {{STYLE("[CALLS]", "(", NULL, ")", "<end>")}, 1, FM_FORMAT_TEXT, true},
        {{STYLE("[CALLS]", "(", NULL, ")", "<end>")}, 1, FM_FORMAT_JSON_SCHEMA, false}, /* it may ask for an array */
        {{STYLE("[c]", "(", NULL, ")", "<end>")}, 1, FM_FORMAT_JSON_SCHEMA, true},
    };
    message.tool_calls = calls;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_tool_template from = template_of(&rows[i].style);
        struct fm_tool_form form;
        read_form(&rows[i].style, &form);
        assert_true(form.native);
        message.tool_call_count = rows[i].calls;
        job.format.kind = rows[i].format;
        assert_ptr_equal(fm_tool_form_for(&form, &from, &job), rows[i].native ? &form : &fm_tool_form_own);
        fm_tool_form_free(&form);
    }
}

/* ---- arguments in tags ---- */

#define CODER                                                                                                          \
    {TAGGED("</f>\n</call>\n<call>\n<f=", "</f>\n</call>"), IN_TAGS("\n", "\n</p>\n", "True")}
#define PAIRS                                                                                                          \
    {STYLE("<call>", "", "</call>\n<call>", "</call>", "<end>"), .tag = "<k>", .raw = "</k><v>", .json = "</k><v>",   \
     .close = "</v>", .truth = "true"}
#define CONTROLS                                                                                                       \
    {STYLE("<c>", "[", NULL, "]", "<end>"), .tag = ";", .raw = "='", .json = "=", .close = "<c>\n", .truth = "true"}

#define LINES                                                                                                          \
    {TAGGED("</f>\n</call>\n<call>\n<f=", "</f>\n</call>"), IN_TAGS("", "</p>\n", "true"), .none = "\n"}

static void expect_tags(struct style style, const char *expected) {
    struct fm_tool_form form;
    struct transcript log = {.len = 0};
    read_form(&style, &form);
    assert_true(form.native);
    const struct fm_tool_mark *marks[] = {&form.arguments,  &form.tags.key,   &form.tags.raw,  &form.tags.json,
                                          &form.tags.close, &form.tags.after, &form.tags.none, &form.next,
                                          &form.end};
    for (size_t i = 0; i < COUNT(marks); i++) {
        note_mark(&log, marks[i]);
    }
    note(&log, "%s", form.tags.python ? "True" : "true");
    assert_string_equal(log.text, expected);
    fm_tool_form_free(&form);
}

static void tagged_forms(void **state) {
    (void)state;
    expect_tags((struct style)CODER,
                ">\n|<p=|>\n|>\n|\n</p>|\n||</f>\n</call>\n<call>\n<f=|</f>\n</call>|True");
    expect_tags((struct style)PAIRS, "|<k>|</k><v>|</k><v>|</v>|||</call>\n<call>|</call>|true");
    expect_tags((struct style)CONTROLS, "[|;|='|=|<c>(7 at 0)|\n|||]|true");
    expect_tags((struct style)LINES, ">\n|<p=|>|>|</p>|\n|\n|</f>\n</call>\n<call>\n<f=|</f>\n</call>|true");
    const struct style styles[] = {
        {STYLE("<call>", ">", NULL, "", "<end>"), IN_TAGS("", "</p>", "true")},      /* arguments have no end mark */
        {STYLE("<call>", ">", NULL, "<p=", "<end>"), IN_TAGS("", "</p>", "true")},   /* the next key ends them */
        {STYLE("<call>", "", NULL, "!", "<end>"), IN_TAGS("", "</p>", "true")},      /* names have two different ends */
        {STYLE("<call>", ">", NULL, "</f>", "<end>"), IN_TAGS("", "; ", "true")},    /* no clear end of strings */
        {STYLE("<call>", ">", NULL, "</f>", "<end>"), IN_TAGS("", "</</p>", "true")},
        {STYLE("<call>", ">", NULL, "</f>", "<end>"), .tag = "<p=", .raw = "_>", .json = "_>", .close = "</p>",
         .truth = "true"}, /* nor the end of a key */
        {STYLE("<call>", ">", NULL, "</f>", "<end>"), .tag = "<p=", .raw = ">", .json = ":", .close = "</p>",
         .truth = "true"}, /* their ends are different */
        {STYLE("<call>", ">", NULL, "</f>", "<end>"), .tag = "<p=", .raw = " string>", .json = " boolean>",
         .close = "</p>", .truth = "true"}, /* the end of a number is not known */
        {STYLE("<call>", ">", NULL, "</f>", "<end>"), IN_TAGS("", "</p>", "true"), .none = "-"}, /* a key's end? */
    };
    for (size_t i = 0; i < COUNT(styles); i++) {
        expect_form(styles[i], NULL);
    }
}

#define LAMP                                                                                                           \
    "{\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"string\"},\"e\":{\"type\":\"string\",\"enum\":[\"a\",\"b\"]},"   \
    "\"n\":{\"type\":[\"boolean\",\"null\"]}},\"required\":[\"s\",\"n\"]}"

/* The grammar of LAMP, beginning with its rules. */
static void expect_tagged_grammar(struct style style, const char *expected) {
    struct json_object *parameters = json_tokener_parse(LAMP);
    struct fm_tool tool = {.name = "f", .allowed = true, .parameters = parameters};
    struct fm_kit_job job = {.tools = &tool, .tool_count = 1, .tool_mode = FM_TOOLS_REQUIRED};
    struct fm_tool_form form;
    struct fm_error error;
    struct fm_buf lark;
    read_form(&style, &form);
    fm_buf_init(&lark, LARK_MAX);
    assert_int_equal(fm_tool_grammar(&job, &form, NULL, NULL, 0, &lark, &error), FM_OK);
    fm_buf_append(&lark, "", 1);
    assert_non_null(strstr(lark.data, "tag0_0 tag0_1? tag0_2\n"));
    const char *rules = strstr(lark.data, "tag0_0:");
    assert_non_null(rules);
    assert_string_equal(rules, expected);
    fm_buf_free(&lark);
    fm_tool_form_free(&form);
    json_object_put(parameters);
}

#define NULLABLE                                                                                                       \
    "value0_2: %json {\"x-guidance\":{\"json_allowed_escapes\":\"nrbtf\\\\\\\"\",\"whitespace_flexible\":false},"      \
    "\"type\":[\"boolean\",\"null\"]}\n"

static void tagged_grammars(void **state) {
    (void)state;
    expect_tagged_grammar((struct style)CODER,
                          "tag0_0: \"<p=\" \"s>\\n\" raw\n"
                          "tag0_1: \"<p=\" \"e>\\n\" (\"a\" | \"b\") \"\\n</p>\" \"\\n\"\n"
                          "tag0_2: \"<p=\" \"n>\\n\" (value0_2 | \"True\" | \"False\" | \"None\") \"\\n</p>\" \"\\n\"\n"
                          NULLABLE "raw: raw_text \"\\n\"\nraw_text[lazy]: /(?s:.*)/ \"\\n</p>\"\n");
    expect_tagged_grammar((struct style)CONTROLS,
                          "tag0_0: \";\" \"s='\" raw\ntag0_1: \";\" \"e='\" (\"a\" | \"b\") <[7]> \"\\n\"\n"
                          "tag0_2: \";\" \"n=\" (value0_2) <[7]> \"\\n\"\n" NULLABLE
                          "raw: raw_text \"\\n\"\nraw_text: RAW_TEXT <[7]>\n"
                          "RAW_TEXT: /([^<]|(<(c)?)*<([^<c]|c[^<>]))*(<(c)?)*/\n");
}

/* The parts of the grammar that stand for arguments; equal values share one rule. */
static void parts_of_tagged_grammars(void **state) {
    (void)state;
    static const struct {
        const char *parameters;
        const char *part;
    } rows[] = {
        {NULL, "tool: \"f>\\n\" \"\\n\"\n"},
        {"{\"properties\":{}}", "tool: \"f>\\n\" \"\\n\"\n"},
        {"{\"properties\":{\"a\":{\"type\":\"null\"}}}", "tool: \"f>\\n\" ( tag0_0? | \"\\n\")\n"},
        {"{\"properties\":{\"a\":{\"type\":\"null\"}},\"required\":[\"a\"]}", "tool: \"f>\\n\" tag0_0\n"},
        {"{\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"}}}", "\ntag0_1: \"<p=\" \"b>\" (value0_0) "},
    };
    struct style lines = LINES;
    struct fm_tool tool = {.name = "f", .allowed = true};
    struct fm_kit_job job = {.tools = &tool, .tool_count = 1, .tool_mode = FM_TOOLS_REQUIRED};
    struct fm_tool_form form;
    read_form(&lines, &form);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_error error;
        struct fm_buf lark;
        fm_buf_init(&lark, LARK_MAX);
        tool.parameters = rows[i].parameters ? json_tokener_parse(rows[i].parameters) : NULL;
        assert_int_equal(fm_tool_grammar(&job, &form, NULL, NULL, 0, &lark, &error), FM_OK);
        fm_buf_append(&lark, "", 1);
        assert_non_null(strstr(lark.data, rows[i].part));
        json_object_put(tool.parameters);
        fm_buf_free(&lark);
    }
    fm_tool_form_free(&form);
}

static void tagged_answers(void **state) {
    (void)state;
    struct style coder = CODER;
    struct style pairs = PAIRS;
    struct style lines = LINES;
    struct json_object *parameters = json_tokener_parse(LAMP);
    struct fm_tool tools[] = {{.name = "f", .allowed = true, .parameters = parameters}, {.name = "g", .allowed = true}};
    struct fm_tool_form form;
    parsed_job = (struct fm_kit_job){.tools = tools, .tool_count = 2, .parallel_tool_calls = true};
    parsed_form = &form;
    read_form(&coder, &form);
    expect_pieces("Well. <call>\n<f=f>\n<p=s>\na\"\n\n</b>\xC3\xA9\n</p>\n<p=n>\nNone\n</p>\n</f>\n</call>\n"
                  "<call>\n<f=g>\n</f>\n</call>",
                  "T:Well.|C:f|A:{\"s\":\"a\\\"\\n\\n</b>\xC3\xA9\",\"n\":null}|C:g|A:{}");
    expect_pieces("<call>\n<f=f>\n<p=s>\n\n</p>\n<p=e>\na\n</p>\n<p=n>\nTrue\n</p>\n</f>\n</call>",
                  "|C:f|A:{\"s\":\"\",\"e\":\"a\",\"n\":true}");
    expect_pieces("<call>\n<f=f>\n<p=n>\n[\"\n</p>\",False]\n</p>\n</f>\n</call>",
                  "|C:f|A:{\"n\":[\"\n</p>\",False]}");
    fm_tool_form_free(&form);
    read_form(&pairs, &form);
    expect_pieces("<call>f<k>s</k><v>a</v><k>n</k><v>false</v></call>\n<call>g</call>",
                  "|C:f|A:{\"s\":\"a\",\"n\":false}|C:g|A:{}");
    fm_tool_form_free(&form);
    read_form(&lines, &form);
    expect_pieces("<call>\n<f=g>\n\n</f>\n</call>\n<call>\n<f=g>\n</f>\n</call>\n<call>\n<f=f>\n<p=s>a</p>\n</f>\n</call>",
                  "|C:g|A:{}|C:g|A:{}|C:f|A:{\"s\":\"a\"}");
    fm_tool_form_free(&form);
    read_form(&pairs, &form);
    static const char answer[] = "<call>f<k>s</k><v>a</v></v><k>n</k><v>false</v></call>";
    static const char whole[] = "|C:f|A:{\"s\":\"a\",";
    for (size_t len = 1; len <= strlen("<call>f<k>s</k><v>a</v>"); len++) {
        struct transcript log = {.len = 0};
        void *context = start(&log);
        feed_piece(feed, context, answer, len);
        end_parsing(context, true);
        assert_memory_equal(log.text, whole, log.len);
    }
    fm_tool_form_free(&form);
    form = (struct fm_tool_form){.native = false};
    parsed_form = &fm_tool_form_own;
    json_object_put(parameters);
}

static void tagged_choices(void **state) {
    (void)state;
    static const struct {
        const char *parameters;
        bool fit;
    } rows[] = {
        {LAMP, true},
        {"{\"properties\":{}}", true},
        {"{}", false}, /* any object */
        {"{\"properties\":1}", false},
        {"{\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}", true},
        {"{\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"b\"}}}", true},
        {"{\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"b|c\"}}}", false},
        {"{\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"string\",\"pattern\":\"b\"},{\"type\":\"string\"}]}}}", false},
        {"{\"properties\":{\"a\":{\"type\":\"string\",\"enum\":[1]}}}", false},
        {"{\"properties\":{\"a\":{\"type\":\"string\",\"enum\":[\"\"]}}}", false},
        {"{\"properties\":{\"a\":{\"type\":\"string\",\"enum\":[\"\\n</p>\"]}}}", false}, /* has the end mark */
        {"{\"properties\":{\"a\":{\"type\":[\"string\",\"null\"]}}}", true},
        {"{\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}],\"default\":null}}}", true},
        {"{\"properties\":{\"a\":{\"anyOf\":[{\"enum\":[\"b\"]},{\"enum\":[\"c\",null]}]}}}", true},
        {"{\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}}}", true},
        {"{\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}}}", false}, /* 1, or "1"? */
        {"{\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"string\",\"minLength\":1},{\"type\":\"null\"}]}}}", true},
        {"{\"properties\":{\"a\":{\"anyOf\":[{\"enum\":[\"\\n</p>\"]},{\"type\":\"null\"}]}}}", false},
        {"{\"properties\":{\"a\":{\"const\":\"b\"}}}", true},
        {"{\"properties\":{\"a\":{\"$ref\":\"#/$defs/b\"}},\"$defs\":{\"b\":{\"enum\":[\"c\"]}}}", true},
        {"{\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/b\"}}},\"$defs\":{\"b\":{}}}", true},
        {"{\"properties\":{\"a\":{\"$ref\":\"#/$defs/b\"}},\"$defs\":{\"b\":{}}}", false},
        {"{\"properties\":{\"a\":{\"$ref\":\"#/$defs/b\"}},\"$defs\":{\"b\":{\"$ref\":\"#/$defs/b\"}}}", false},
        {"{\"properties\":{\"a\":{\"$ref\":\"#/$defs/b\"}},\"$defs\":{\"b\":{\"anyOf\":[{\"$ref\":\"#/$defs/b\"}]}}}", false},
        {"{\"properties\":{\"a\":{\"type\":\"integer\",\"$id\":\"http://b\"}}}", false},
        {"{\"properties\":{\"a\":{\"type\":[]}}}", false},
        {"{\"properties\":{\"a\":{}}}", false},
        {"{\"properties\":{\"a\":true}}", false},
        {"{\"properties\":{\"a b\":{\"type\":\"string\"}}}", false},
        {"{\"properties\":{},\"required\":[\"a\"]}", false},
        {"{\"properties\":{},\"required\":1}", false},
        {"{\"properties\":{},\"minProperties\":1}", false},
        {"{\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}}}", false},
    };
    struct style style = CODER;
    struct fm_tool tool = {.name = "f", .allowed = true};
    struct fm_kit_job job = {.tools = &tool, .tool_count = 1};
    struct fm_tool_template from = template_of(&style);
    struct fm_tool_form form;
    read_form(&style, &form);
    assert_ptr_equal(fm_tool_form_for(&form, &from, &job), &form);
    for (size_t i = 0; i < COUNT(rows); i++) {
        tool.parameters = json_tokener_parse(rows[i].parameters);
        assert_non_null(tool.parameters);
        assert_ptr_equal(fm_tool_form_for(&form, &from, &job), rows[i].fit ? &form : &fm_tool_form_own);
        json_object_put(tool.parameters);
    }
    fm_tool_form_free(&form);
}

/* ---- arguments in another notation ---- */

#define NOTATION(written, without)                                                                                     \
    STYLE("<call>", "", "</call>\n<call>", "</call>", "<end>"), .arguments = (written), .empty = (without)

static void notations(void **state) {
    (void)state;
    static const struct {
        struct style style;
        const char *expected; /* NULL: no form */
    } rows[] = {
        {{NOTATION("{fm_flag:true,fm_key:<c>fm_Value<c>}", "{}")}, "{ : <c> 7 true sorted </call>\n<call>"},
        {{NOTATION("{fm_key:<q|>fm_Value<q|>,fm_flag:true}", "{}")}, "{ : <q|> -1 true given </call>\n<call>"},
        {{NOTATION("(fm_key='fm_Value', fm_flag=True)", "()")}, "( =  0 True given </call>\n<call>"},
        {{NOTATION("(fm_key=\"fm_Value\",fm_flag=true)", "()")}, "( =  0 true given </call>\n<call>"},
        {{NOTATION("{fm_key:<q>fm_Value<q>,fm_flag:true}", "{}")}, NULL}, /* such text may be in a string */
        {{NOTATION("{fm_key:<<q|>fm_Value<<q|>,fm_flag:true}", "{}")}, NULL},
        {{NOTATION("{fm_key:<end>fm_Value<end>,fm_flag:true}", "{}")}, NULL},
        {{NOTATION("{fm_key:|fm_Value|,fm_flag:true}", "{}")}, NULL},
        {{NOTATION("{fm_key:fm_Value,fm_flag:true}", "{}")}, NULL},
        {{NOTATION("{fm_key:<q|>fm_Value<q|>;fm_flag:true}", "{}")}, NULL},
        {{NOTATION("{fm_key:<q|>fm_Value<q|>,fm_flag=true}", "{}")}, NULL},
        {{NOTATION("{fm_key:<q|>fm_Value<q|>,fm_flag:true)", "{}")}, NULL},
        {{NOTATION("[fm_key:<q|>fm_Value<q|>,fm_flag:true]", "[]")}, NULL},
        {{NOTATION("{fm_key:<q|>fm_Value<q|>,fm_flag:true}", "")}, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct transcript log = {.len = 0};
        struct fm_tool_form form;
        read_form(&rows[i].style, &form);
        const struct fm_notation *read = &form.notation;
        assert_int_equal(form.native, rows[i].expected != NULL);
        if (rows[i].expected) {
            note(&log, "%c %c %.*s %d %s %s %.*s", read->open, read->assign, (int)read->quote_len,
                 read->quote ? read->quote : "", (int)read->quote_token, read->python ? "True" : "true",
                 read->sorted ? "sorted" : "given", (int)form.next.len, form.next.text);
            assert_string_equal(log.text, rows[i].expected);
        }
        fm_tool_form_free(&form);
    }
}

static void choices_by_notation(void **state) {
    (void)state;
    struct json_object *fits = json_tokener_parse(LAMP);
    struct json_object *too_much = json_tokener_parse("{\"properties\":{\"a\":{\"prefixItems\":[]}}}");
    struct style style = {NOTATION("(fm_key='fm_Value', fm_flag=True)", "()")};
    struct fm_tool tool = {.name = "f", .allowed = true, .parameters = fits};
    struct fm_kit_job job = {.tools = &tool, .tool_count = 1};
    struct fm_tool_template from = template_of(&style);
    struct fm_tool_form form;
    read_form(&style, &form);
    assert_ptr_equal(fm_tool_form_for(&form, &from, &job), &form);
    tool.parameters = too_much;
    assert_ptr_equal(fm_tool_form_for(&form, &from, &job), &fm_tool_form_own);
    fm_tool_form_free(&form);
    json_object_put(fits);
    json_object_put(too_much);
}

static void native_prompts(void **state) {
    (void)state;
    struct json_object *parameters = json_tokener_parse("{\"type\":\"object\"}");
    struct fm_tool tools[] = {{.name = "f", .description = "d", .parameters = parameters}, {.name = "g"}};
    struct fm_tool_call calls[] = {{"1", "f", "{}", 2}, {"2", "g", "{}", 2}};
    struct fm_message messages[] = {say("user", "hi"), say("assistant", ""), say("tool", "two")};
    struct fm_kit_job job = {.messages = messages, .message_count = 3, .tools = tools, .tool_count = 2};
    struct style style = {TAGS};
    struct fm_tool_form form;
    struct fm_tool_prompt prompt;
    struct fm_error error;
    messages[1].tool_calls = calls;
    messages[1].tool_call_count = 2;
    messages[2].tool_call_id = "2";
    read_form(&style, &form);
    assert_int_equal(fm_tool_prompt_init(&prompt, &job, &form, &error), FM_OK);
    assert_int_equal(prompt.chat.count, 3);
    assert_string_equal(prompt.chat.messages[1].calls[1].id, "2");
    assert_int_equal(prompt.chat.messages[1].call_count, 2);
    assert_string_equal(prompt.chat.messages[2].answered_name, "g");
    assert_null(prompt.chat.messages[1].answered_name);
    assert_int_equal(prompt.chat.tool_count, 2);
    assert_string_equal(prompt.chat.tools[0].description, "d");
    assert_memory_equal(prompt.chat.tools[0].parameters, "{\"type\":\"object\"}", prompt.chat.tools[0].parameters_len);
    assert_string_equal(prompt.chat.tools[1].name, "g");
    assert_int_equal(prompt.chat.tools[1].parameters_len, strlen("{\"type\":\"object\",\"properties\":{}}"));
    fm_tool_prompt_free(&prompt);
    fm_tool_form_free(&form);
    json_object_put(parameters);
}

/* If a template requires ids of a certain length, it gets ids made from the calls' numbers. */
static void native_ids(void **state) {
    (void)state;
    struct style style = {STYLE("[CALLS](", " ", ", ", ");", "<end>"), .has_ids = true, .nine = true};
    struct fm_tool_call calls[] = {{"call_a", "f", "{}", 2}, {"call_b", "f", "{}", 2}};
    struct fm_message messages[] = {say("user", "hi"), say("assistant", ""), say("tool", "two")};
    struct fm_tool tool = {.name = "f", .allowed = true};
    struct fm_kit_job job = {.messages = messages, .message_count = 3, .tools = &tool, .tool_count = 1};
    struct fm_tool_form form;
    struct fm_tool_prompt prompt;
    struct fm_error error;
    struct fm_buf lark;
    messages[1].tool_calls = calls;
    messages[1].tool_call_count = 2;
    messages[2].tool_call_id = "call_b";
    read_form(&style, &form);
    assert_true(form.native && form.ids);
    assert_int_equal(fm_tool_prompt_init(&prompt, &job, &form, &error), FM_OK);
    assert_string_equal(prompt.chat.messages[1].calls[0].id, "000000000");
    assert_string_equal(prompt.chat.messages[1].calls[1].id, "000000001");
    assert_string_equal(prompt.chat.messages[2].answered_id, "000000001");
    fm_tool_prompt_free(&prompt);
    fm_buf_init(&lark, LARK_MAX);
    job.parallel_tool_calls = true;
    assert_int_equal(fm_tool_grammar(&job, &form, NULL, NULL, 0, &lark, &error), FM_OK);
    fm_buf_append(&lark, "", 1);
    assert_non_null(strstr(lark.data, "calls: \"(\" tool ( CALL_ID \", \" any_tool){0,127} CALL_ID \");\"\n"));
    assert_non_null(strstr(lark.data, "CALL_ID: /[a-zA-Z0-9]{9}/\n"));
    fm_buf_free(&lark);
    parsed_job = job_of(NULL, 0);
    parsed_form = &form;
    expect_pieces("a [CALLS](f {\"a\":1}abcdefghi, f {}ABC123xyz);", "T:a|C:f|A:{\"a\":1}|C:f|A:{}");
    parsed_form = &fm_tool_form_own;
    fm_tool_form_free(&form);
}

/* If the template shows no tools, the system message shows them, with a call in the model's form. */
static void told_tools(void **state) {
    (void)state;
    struct style style = {STYLE("<c>", "[c]", "<c>", "</c>", "<end>"), .hides_tools = true};
    struct fm_tool tools[] = {{.name = "f", .allowed = true}};
    struct fm_tool_call call = {"1", "f", "{}", 2};
    struct fm_message messages[] = {say("system", "Be brief."), say("user", "hi"), say("assistant", ""), say("tool", "a")};
    struct fm_kit_job job = {.messages = messages, .message_count = 4, .tools = tools, .tool_count = 1};
    static const char list[] = "# Tools\n\nThese functions are there to help with the user's request, one a line:\n"
                               "<tools>\n{\"type\":\"function\",\"function\":{\"name\":\"f\"}}\n</tools>";
    static const char how[] = "\n\nTo call one, answer with its name and its arguments as JSON in these tags, and end "
                              "there:\n";
    static const char example[] = "<c><function-name>[c]<args-json-object></c>";
    struct fm_tool_form form;
    struct fm_error error;
    messages[2].tool_calls = &call;
    messages[2].tool_call_count = 1;
    messages[3].tool_call_id = "1";
    read_form(&style, &form);
    assert_true(form.native && form.tells_tools);
    for (size_t first = 0; first < 2; first++) { /* with a system message, and without */
        struct fm_tool_prompt prompt;
        char expected[512];
        job.messages = messages + first;
        job.message_count = 4 - first;
        job.tool_mode = first ? FM_TOOLS_NONE : FM_TOOLS_AUTO;
        int len = snprintf(expected, sizeof expected, "%s%s%s", first ? "" : "Be brief.\n\n", list, first ? "" : how);
        assert_int_equal(fm_tool_prompt_init(&prompt, &job, &form, &error), FM_OK);
        assert_int_equal(prompt.chat.count, 4);
        assert_int_equal(prompt.chat.tool_count, 0);
        const struct fm_chat_message *system = &prompt.chat.messages[0];
        assert_string_equal(system->role, "system");
        assert_memory_equal(system->content, expected, (size_t)len);
        assert_int_equal(system->content_len, (size_t)len + system->controls_len);
        assert_int_equal(system->controls_len, first ? 0 : strlen(example));
        if (first == 0) {
            assert_int_equal(system->controls_at, len);
            assert_memory_equal(system->content + len, example, strlen(example));
        }
        assert_string_equal(prompt.chat.messages[1].role, "user");
        assert_string_equal(prompt.chat.messages[2].calls[0].name, "f");
        assert_string_equal(prompt.chat.messages[3].answered_name, "f");
        fm_tool_prompt_free(&prompt);
    }
    job.tool_count = 0; /* no tools are described, and the messages are unchanged */
    struct fm_tool_prompt prompt;
    assert_int_equal(fm_tool_prompt_init(&prompt, &job, &form, &error), FM_OK);
    assert_int_equal(prompt.chat.count, 3);
    assert_string_equal(prompt.chat.messages[0].role, "user");
    fm_tool_prompt_free(&prompt);
    fm_tool_form_free(&form);
}

/* A template that takes ids of any length gets the job's ids, and the model's calls have ids in this form. */
static void any_ids(void **state) {
    (void)state;
    struct style styles[] = {{STYLE("<c>", " ", ", ", ");", "<end>"), .has_ids = true},
                             {STYLE("<c>@/", " ", ", @/", ");", "<end>")}};
    static const char *const answers[] = {"<c>f {\"a\":1}call_0-1, f {}x);", "<c>call_0-1/f {\"a\":1}, x/f {});"};
    struct fm_tool tool = {.name = "f", .allowed = true};
    struct fm_kit_job job = {.tools = &tool, .tool_count = 1, .tool_mode = FM_TOOLS_REQUIRED, .parallel_tool_calls = true};
    for (size_t i = 0; i < COUNT(styles); i++) {
        struct fm_tool_form form;
        struct fm_error error;
        struct fm_buf lark;
        read_form(&styles[i], &form);
        assert_true(form.native && form.ids == FM_TOOL_IDS_GIVEN && form.next.len > 0);
        fm_buf_init(&lark, LARK_MAX);
        assert_int_equal(fm_tool_grammar(&job, &form, NULL, NULL, 0, &lark, &error), FM_OK);
        fm_buf_append(&lark, "", 1);
        assert_non_null(strstr(lark.data, "CALL_ID: /[a-zA-Z0-9_-]{1,32}/\n"));
        assert_non_null(strstr(lark.data, i ? "calls: CALL_ID \"/\" tool ( \", \" CALL_ID \"/\" tool){0,127} \");\"\n"
                                            : "calls: tool ( CALL_ID \", \" tool){0,127} CALL_ID \");\"\n"));
        fm_buf_free(&lark);
        parsed_job = job_of(NULL, 0);
        parsed_job.tool_mode = FM_TOOLS_REQUIRED;
        parsed_form = &form;
        expect_pieces(answers[i], "|C:f|A:{\"a\":1}|C:f|A:{}");
        parsed_form = &fm_tool_form_own;
        fm_tool_form_free(&form);
    }
}

/* A template that shows ids beside outcomes gets the same ids as its calls. */
static void named_ids(void **state) {
    (void)state;
    struct style styles[] = {{NUMBERED, .shows_ids = true}, {NUMBERED}, {NUMBERED_LIST, .shows_ids = true}};
    struct fm_tool_call calls[] = {{"call_a", "f", "{}", 2}, {"call_b", "g", "{}", 2}};
    struct fm_message messages[] = {say("user", "hi"), say("assistant", ""), say("tool", "two"), say("assistant", "")};
    struct fm_kit_job job = {.messages = messages, .message_count = 4};
    messages[1].tool_calls = calls;
    messages[1].tool_call_count = 2;
    messages[2].tool_call_id = "call_b";
    messages[3].tool_calls = calls + 1;
    messages[3].tool_call_count = 1;
    for (size_t i = 0; i < COUNT(styles); i++) {
        struct fm_tool_form form;
        struct fm_tool_prompt prompt;
        struct fm_error error;
        read_form(&styles[i], &form);
        assert_int_equal(fm_tool_prompt_init(&prompt, &job, &form, &error), FM_OK);
        const struct fm_chat_message *said = prompt.chat.messages;
        assert_string_equal(said[1].calls[0].id, i == 0 ? "f.f:0" : "call_a");
        assert_string_equal(said[1].calls[1].id, i == 0 ? "f.g:1" : "call_b");
        assert_string_equal(said[2].answered_id, i == 0 ? "f.g:1" : "call_b");
        assert_string_equal(said[3].calls[0].id, i == 0 ? "f.g:0" : "call_b");
        fm_tool_prompt_free(&prompt);
        fm_tool_form_free(&form);
    }
}

/* A call of another tool, in forms whose parser reads it like any other call. */
#define ANY_TOOL(mark, names)                                                                                          \
    "any_tool: tool | UNKNOWN " mark " any\nany: %json {\"type\":\"object\"}\nUNKNOWN: /" names "{1,64}/ & ~(\"f\")\n"

static void expect_native_grammar(struct style style, enum fm_tool_mode mode, const char *schema,
                                  const char *expected) {
    struct fm_tool tools[] = {{.name = "f", .allowed = true}};
    struct fm_kit_job job = {.tools = tools, .tool_count = 1, .tool_mode = mode, .parallel_tool_calls = true};
    struct fm_tool_form form;
    char all[4096];
    job.format.kind = schema ? FM_FORMAT_JSON_SCHEMA : FM_FORMAT_TEXT;
    read_form(&style, &form);
    snprintf(all, sizeof all, "%s arguments0\narguments0: %s", expected, ANY_OBJECT);
    expect_grammar(&job, &form, schema, all);
    fm_tool_form_free(&form);
}

static void native_grammars(void **state) {
    (void)state;
    const struct style control = {STYLE("<c>a", "<c>(", ")<c>", ")", "<end>")};
    const struct style json = {JSON_CALL};
    expect_native_grammar(control, FM_TOOLS_AUTO, NULL,
                          FREE_TEXT " | json | TEXT head calls\nhead: <[7]>\n" JSON_BEGIN JSON_END
                          "calls: \"a\" any_tool ( \")\" <[7]> any_tool){0,127} \")\"\n"
                          ANY_TOOL("<[7]> \"(\"", "[a-zA-Z0-9_.:\\/-]") "tool: \"f\" <[7]> \"(\"");
    expect_native_grammar(control, FM_TOOLS_AUTO, "{}",
                          "start: text | <[7]> calls\ntext: %json {}\n"
                          "calls: \"a\" tool ( \")\" <[7]> tool){0,127} \")\"\ntool: \"f\" <[7]> \"(\"");
    expect_native_grammar(json, FM_TOOLS_AUTO, NULL,
                          FREE_TEXT " | json\n" JSON_BEGIN JSON_END
                          "calls: \"{\\\"name\\\": \\\"\" tool \"}\"\ntool: \"f\\\", \\\"parameters\\\": \"");
    expect_native_grammar(json, FM_TOOLS_REQUIRED, NULL,
                          "start: calls\ncalls: \"{\\\"name\\\": \\\"\" tool \"}\"\n"
                          "tool: \"f\\\", \\\"parameters\\\": \"");
}

/* The beginning of a call may also be the end of a text. */
static void texts_that_end_so(void **state) {
    (void)state;
    expect_native_grammar((struct style){STYLE("<c>a ", ": ", NULL, "!", "<c>")}, FM_TOOLS_AUTO, NULL,
                          FREE_TEXT " | json | TEXT <[7]> | TEXT head calls\nhead: <[7]>\n" JSON_BEGIN JSON_END
                          "calls: \"a \" any_tool \"!\" <[7]>\n" ANY_TOOL("\": \"", "[a-zA-Z0-9_-]") "tool: \"f: \"");
    expect_native_grammar((struct style){STYLE("<c> a ", ": ", NULL, "!", "<c> ")}, FM_TOOLS_AUTO, NULL,
                          FREE_TEXT " | json | TEXT <[7]> \" \" | TEXT head calls\nhead: <[7]>\n" JSON_BEGIN
                          JSON_END "calls: \" a \" any_tool \"!\" <[7]> \" \"\n"
                          ANY_TOOL("\": \"", "[a-zA-Z0-9_-]") "tool: \"f: \"");
}

/* `expected`: what the text must not contain, as a literal; NULL: it may contain anything. */
static void expect_barred(const struct fm_tool_form *form, const char *expected) {
    char all[256] = "";
    struct fm_buf lark;
    fm_buf_init(&lark, LARK_MAX);
    assert_int_equal(fm_tool_grammar_none(form, &lark), expected != NULL);
    fm_buf_append(&lark, "", 1);
    if (expected) {
        snprintf(all, sizeof all, "start: TEXT\nTEXT: /(?s:.*)/ & ~(/(?s:.*)/ %s /(?s:.*)/)", expected);
    }
    assert_string_equal(lark.data, all);
    fm_buf_free(&lark);
}

static void barred_calls(void **state) {
    (void)state;
    struct style styles[] = {{STYLE("<c>", " ", NULL, ".", "<end>")}, {STYLE("<:::>", " ", NULL, ".", "<end>")}, {JSON_CALL}};
    static const char *const expected[] = {"\"<c\"", "\"<:::>\"", NULL};
    expect_barred(&fm_tool_form_own, "\"<tool_call\"");
    for (size_t i = 0; i < COUNT(styles); i++) {
        struct fm_tool_form form;
        read_form(&styles[i], &form);
        assert_true(form.native);
        expect_barred(&form, expected[i]);
        fm_tool_form_free(&form);
    }
}

static void native_answers(void **state) {
    (void)state;
    struct style list = {STYLE("[CALLS](", " ", ", ", ");", "<end>")};
    struct style json = {JSON_CALL};
    struct style long_end = {STYLE("<call>", "=", ";<call>", "!!!!!!!!f={}", "<end>")};
    struct fm_tool_form form;
    parsed_job = job_of(NULL, 0);
    parsed_form = &form;
    read_form(&list, &form);
    expect_pieces("a [CALLS](f {\"a\":1}, f {});", "T:a|C:f|A:{\"a\":1}|C:f|A:{}");
    fm_tool_form_free(&form);
    read_form(&json, &form);
    expect_pieces("{\"name\": \"f\", \"parameters\": {\"a\":1}}", "|C:f|A:{\"a\":1}");
    expect_pieces("{\"name\": \"Anna\", \"parameters\": {}}", "T:{\"name\": \"Anna\", \"parameters\": {}}");
    parsed_job.tool_mode = FM_TOOLS_REQUIRED;
    expect_pieces("{\"name\": \"f\", \"parameters\": {\"a\":1}}", "|C:f|A:{\"a\":1}");
    parsed_job.tool_mode = FM_TOOLS_AUTO;
    fm_tool_form_free(&form);
    read_form(&long_end, &form);
    expect_pieces("<call>f={};<call>f={}!!!!!!!!f={}", "|C:f|A:{}|C:f|A:{}");
    fm_tool_form_free(&form);
    parsed_form = &fm_tool_form_own;
}

/* The trigger is a token; the same bytes without the token are ordinary text. */
static void triggers(void **state) {
    (void)state;
    struct style style = {STYLE("<c>", " ", NULL, ".", "<end>")};
    struct fm_tool_form form;
    struct fm_tool_piece piece;
    struct transcript log = {.len = 0};
    parsed_job = job_of(NULL, 0);
    read_form(&style, &form);
    parsed_form = &form;
    struct parsing *parsing = start(&log);
    feed_piece(feed, parsing, "<c>f {}\n```\n{ ", 14);
    assert_false(fm_tool_parser_read_trigger(&parsing->parser, 8, &piece));
    assert_true(fm_tool_parser_read_trigger(&parsing->parser, 7, &piece));
    assert_memory_equal(piece.bytes, "\n```\n{", piece.len); /* text that could have become a call in another form */
    assert_int_equal(piece.len, 6);
    note_piece(parsing, &piece);
    assert_false(fm_tool_parser_read_trigger(&parsing->parser, 7, &piece));
    feed_piece(feed, parsing, "f {}.", 5);
    end(parsing);
    assert_string_equal(log.text, "T:<c>f {}\n```\n{|C:f|A:{}");
    parsed_form = &fm_tool_form_own;
    fm_tool_form_free(&form);
}

#ifdef WRAPPED

static enum fm_code make_prompt(const struct fm_kit_job *job) {
    struct fm_tool_prompt prompt;
    struct fm_error error;
    enum fm_code code = fm_tool_prompt_init(&prompt, job, &fm_tool_form_own, &error);
    if (code == FM_OK) {
        fm_tool_prompt_free(&prompt);
    }
    return code;
}

static enum fm_code make_grammar(const struct fm_kit_job *job) {
    struct fm_buf lark;
    struct fm_error error;
    fm_buf_init(&lark, LARK_MAX);
    enum fm_code code = fm_tool_grammar(job, &fm_tool_form_own, NULL, NULL, 0, &lark, &error);
    fm_buf_free(&lark);
    return code;
}

static const struct fm_tool_form form_as_python = {.trigger = {.text = "<call>", .len = 6},
                                                  .arguments = {.text = "("},
                                                  .notation = {.open = '(', .assign = '=', .python = true}};

static enum fm_code make_notation_grammar(const struct fm_kit_job *job) {
    static const char schema[] =
        "{\"properties\":{\"a\":{\"type\":[\"string\",\"null\"],\"maxLength\":9},\"b\":{\"enum\":[\"c\",1]},"
        "\"d\":{\"items\":{\"properties\":{\"e\":{\"type\":\"string\"}}}}}}";
    struct fm_tool tool = job->tools[0];
    struct fm_buf lark;
    struct fm_error error;
    int left = allocations_left;
    allocations_left = -1;
    tool.parameters = json_tokener_parse(schema);
    struct json_object *known = json_object_new_object();
    allocations_left = left;
    fm_buf_init(&lark, LARK_MAX);
    enum fm_code code = fm_notation_grammar(&form_as_python.notation, &tool, 0, known, &lark, &error);
    code = code == FM_OK && lark.failed ? FM_INTERNAL : code;
    fm_buf_free(&lark);
    left = allocations_left;
    allocations_left = -1;
    json_object_put(tool.parameters);
    json_object_put(known);
    allocations_left = left;
    return code;
}

static enum fm_code make_tags_grammar(const struct fm_kit_job *job) {
    static const char schema[] = "{\"properties\":{\"a\":{\"type\":\"string\",\"maxLength\":9},\"b\":{\"$ref\":\"#/$defs/c\"}},"
                                 "\"$defs\":{\"c\":{\"type\":\"integer\"}},\"definitions\":{}}";
    struct style style = CODER;
    struct fm_tool tool = job->tools[0];
    struct fm_kit_job one = {.tools = &tool, .tool_count = 1, .tool_mode = FM_TOOLS_REQUIRED};
    struct fm_tool_form form;
    struct fm_error error;
    struct fm_buf lark;
    int left = allocations_left;
    allocations_left = -1;
    read_form(&style, &form);
    tool.parameters = json_tokener_parse(schema);
    allocations_left = left;
    fm_buf_init(&lark, LARK_MAX);
    enum fm_code code = fm_tool_grammar(&one, &form, NULL, NULL, 0, &lark, &error);
    fm_buf_free(&lark);
    left = allocations_left;
    allocations_left = -1;
    json_object_put(tool.parameters);
    fm_tool_form_free(&form);
    allocations_left = left;
    return code;
}

static enum fm_code parse(const struct fm_kit_job *job, const struct fm_tool_form *form, const char *answer) {
    struct fm_tool_parser parser;
    struct fm_tool_piece piece;
    size_t len = strlen(answer);
    enum fm_code code = FM_OK;
    fm_tool_parser_init(&parser, job, form);
    while (fm_tool_parser_read(&parser, &answer, &len, &piece)) {
        code = piece.kind == FM_TOOL_NO_MEMORY ? FM_INTERNAL : code;
    }
    fm_tool_parser_free(&parser);
    return code;
}

static enum fm_code parse_answer(const struct fm_kit_job *job) {
    return parse(job, &fm_tool_form_own, CALL("g\\\"\\\\\xC3\xA9", "{}"));
}

static enum fm_code parse_notation(const struct fm_kit_job *job) {
    return parse(job, &form_as_python, "<call>f(a='\n', b=1)");
}

static void out_of_memory(void **state) {
    (void)state;
    static enum fm_code (*const works[])(const struct fm_kit_job *) = {make_prompt, make_grammar, parse_answer,
                                                                      make_notation_grammar, make_tags_grammar,
                                                                      parse_notation};
    static const unsigned least[] = {2, 10, 2, 20, 20, 3};
    struct fm_message message = say("user", "hi");
    struct fm_kit_job job = job_of(&message, 1);
    for (size_t i = 0; i < COUNT(works); i++) {
        unsigned failures = 0;
        for (bool done = false; !done; failures += !done) {
            allocations_left = (int)failures;
            enum fm_code code = works[i](&job);
            done = allocations_left >= 0;
            allocations_left = -1;
            assert_int_equal(code, done ? FM_OK : FM_INTERNAL);
        }
        assert_true(failures >= least[i]);
    }
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_keep_their_place),
        cmocka_unit_test(prompts),
        cmocka_unit_test(conversations),
        cmocka_unit_test(grammars),
        cmocka_unit_test(schemas),
        cmocka_unit_test(free_answers),
        cmocka_unit_test(forced_answers),
        cmocka_unit_test(answers_with_a_format),
        cmocka_unit_test(cuts),
        cmocka_unit_test(unknown_names),
        cmocka_unit_test(forms),
        cmocka_unit_test(numbers),
        cmocka_unit_test(numbered_answers),
        cmocka_unit_test(numbered_grammars),
        cmocka_unit_test(no_forms),
        cmocka_unit_test(choices),
        cmocka_unit_test(choices_by_form),
        cmocka_unit_test(tagged_forms),
        cmocka_unit_test(tagged_grammars),
        cmocka_unit_test(parts_of_tagged_grammars),
        cmocka_unit_test(tagged_answers),
        cmocka_unit_test(tagged_choices),
        cmocka_unit_test(notations),
        cmocka_unit_test(choices_by_notation),
        cmocka_unit_test(native_prompts),
        cmocka_unit_test(native_ids),
        cmocka_unit_test(any_ids),
        cmocka_unit_test(named_ids),
        cmocka_unit_test(told_tools),
        cmocka_unit_test(texts_that_end_so),
        cmocka_unit_test(native_grammars),
        cmocka_unit_test(barred_calls),
        cmocka_unit_test(native_answers),
        cmocka_unit_test(triggers),
#ifdef WRAPPED
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
