/* The open sessions: their ids, limits and turns, and the params that they write, which the surface must accept. */
#include "base/clock.h"
#include "front/options.h"
#include "protocol/json_check.h"
#include "sessions/session.h"
#include "test_surface.h"
#include "wire.h"

#ifdef WRAPPED
#include "allocations.h"
#endif

static const struct fm_session_options usual = {
    .idle_ms = 120000,
    .max_sessions = 64,
    .max_turns = 1000,
    .max_bytes = 4 << 20,
    .max_output_tokens = 1024,
    .temperature = 1,
    .truncation = "disabled",
};

static const struct fm_text absent = {.data = NULL};

static struct fm_text text_of(const char *text) {
    return (struct fm_text){text, strlen(text)};
}

static struct fm_session *open_session(struct fm_session_table *table, struct fm_text instructions) {
    struct fm_session *session;
    struct fm_fault fault;
    if (fm_session_open(table, instructions, &session, &fault) != FM_FAULT_NONE) {
        fail_msg("%s", fault.detail);
    }
    return session;
}

static void expect_no_session(struct fm_session_table *table, struct fm_text instructions, const char *detail) {
    struct fm_session *session;
    struct fm_fault fault;
    size_t count = table->count;
    assert_int_equal(fm_session_open(table, instructions, &session, &fault), FM_FAULT_FAILED_TO_OPEN);
    assert_string_equal(fault.detail, detail);
    assert_int_equal(table->count, count);
}

static enum fm_fault_code begin_turn(const struct fm_session_table *table, struct fm_session *session,
                                     const char *prompt, const char *content, struct fm_fault *fault) {
    const struct fm_command command = {
        .kind = FM_COMMAND_MESSAGE, .prompt = text_of(prompt), .content = text_of(content)};
    return fm_session_begin_turn(table, session, &command, fault);
}

static bool keep(const struct fm_session_table *table, struct fm_session *session, const char *answer) {
    struct fm_fault fault;
    return fm_session_keep_turn(table, session, text_of(answer), &fault) == FM_FAULT_NONE;
}

/* Adds a whole successful turn. */
static void add_turn(const struct fm_session_table *table, struct fm_session *session, const char *prompt,
                     const char *answer) {
    struct fm_fault fault;
    assert_int_equal(begin_turn(table, session, prompt, "", &fault), FM_FAULT_NONE);
    assert_true(keep(table, session, answer));
}

static void expect_items(const struct fm_session *session, const char *expected) {
    assert_int_equal(session->items.len, strlen(expected));
    assert_memory_equal(session->items.data, expected, strlen(expected));
}

#define SYSTEM(text)    "{\"role\":\"system\",\"content\":\"" text "\"},"
#define USER(text)      "{\"role\":\"user\",\"content\":\"" text "\"},"
#define ASSISTANT(text) "{\"role\":\"assistant\",\"content\":\"" text "\"},"

static void ids(void **state) {
    (void)state;
    struct fm_session_table table;
    fm_session_table_init(&table, &usual);
    struct fm_session *session = open_session(&table, absent);
    assert_int_equal(strlen(session->id), 37);
    assert_memory_equal(session->id, "sess_", 5);
    assert_int_equal(strspn(session->id + 5, "0123456789abcdef"), 32);
    char first[FM_ID_SIZE];
    memcpy(first, session->id, sizeof first);
    assert_true(strcmp(open_session(&table, absent)->id, first) != 0);
    char *exact = exact_copy(first, 37); /* no NUL after it */
    assert_string_equal(fm_session_find(&table, (struct fm_text){exact, 37})->id, first);
    assert_null(fm_session_find(&table, (struct fm_text){exact, 36}));
    assert_null(fm_session_find(&table, (struct fm_text){first, 38}));
    exact[36] = exact[36] == '0' ? '1' : '0';
    assert_null(fm_session_find(&table, (struct fm_text){exact, 37}));
    free(exact);
    assert_null(fm_session_find(&table, text_of("")));
    assert_null(fm_session_find(&table, absent));
    fm_session_table_free(&table);
    assert_int_equal(table.count, 0);
    assert_null(fm_session_find(&table, text_of(first)));
    fm_session_table_free(&table);
}

static void instructions(void **state) {
    (void)state;
    struct fm_session_table table;
    fm_session_table_init(&table, &usual);
    expect_items(open_session(&table, absent),
                 SYSTEM("You are a helpful assistant. Follow the prompt instructions precisely."));
    expect_items(open_session(&table, text_of("")), SYSTEM(""));
    expect_items(open_session(&table, text_of("say \"no\"\n")), SYSTEM("say \\\"no\\\"\\n"));
    expect_items(open_session(&table, (struct fm_text){"a\0b", 3}), SYSTEM("a\\u0000b"));
    fm_session_table_free(&table);
}

/* Each third of 20 sessions is closed, including the first and the last. The others are still found by their ids. */
static void open_and_close(void **state) {
    (void)state;
    struct fm_session_table table;
    char names[20][FM_ID_SIZE];
    char given[20][16];
    fm_session_table_init(&table, &usual);
    for (size_t i = 0; i < 20; i++) {
        snprintf(given[i], sizeof given[i], "number %zu", i);
        memcpy(names[i], open_session(&table, text_of(given[i]))->id, FM_ID_SIZE);
    }
    for (size_t i = 1; i < 20; i += 3) {
        fm_session_close(&table, fm_session_find(&table, text_of(names[i])));
    }
    fm_session_close(&table, fm_session_find(&table, text_of(names[0])));
    assert_int_equal(table.count, 12);
    for (size_t i = 0; i < 20; i++) {
        struct fm_session *session = fm_session_find(&table, text_of(names[i]));
        assert_int_equal(session == NULL, i % 3 == 1 || i == 0);
        if (session) {
            char expected[100];
            snprintf(expected, sizeof expected, SYSTEM("%s"), given[i]);
            expect_items(session, expected);
        }
    }
    while (table.count) {
        fm_session_close(&table, &table.sessions[0]);
    }
    open_session(&table, absent);
    fm_session_table_free(&table);
}

static void too_many(void **state) {
    (void)state;
    struct fm_session_options options = usual;
    struct fm_session_table table;
    options.max_sessions = 2;
    fm_session_table_init(&table, &options);
    open_session(&table, absent);
    struct fm_session *second = open_session(&table, absent);
    expect_no_session(&table, absent, "2 sessions are open already: close one, or raise --max-sessions");
    fm_session_close(&table, second);
    open_session(&table, absent);
    expect_no_session(&table, absent, "2 sessions are open already: close one, or raise --max-sessions");
    fm_session_table_free(&table);
}

/* Instructions fit exactly, together with the text around them and the comma. */
static void instructions_too_large(void **state) {
    (void)state;
    struct fm_session_options options = usual;
    struct fm_session_table table;
    static char text[1024];
    size_t around = strlen(SYSTEM(""));
    options.max_bytes = 1024;
    memset(text, 'x', sizeof text);
    fm_session_table_init(&table, &options);
    open_session(&table, (struct fm_text){text, 1024 - around});
    char detail[200];
    snprintf(detail, sizeof detail, "the instructions have %zu bytes, and a session's conversation may have 1024: "
             "shorten them, or raise --max-session-bytes",
             1025 - around);
    expect_no_session(&table, (struct fm_text){text, 1025 - around}, detail);
    text[0] = '\n'; /* escaped characters take more room */
    snprintf(detail, sizeof detail, "the instructions have %zu bytes, and a session's conversation may have 1024: "
             "shorten them, or raise --max-session-bytes",
             1024 - around);
    expect_no_session(&table, (struct fm_text){text, 1024 - around}, detail);
    fm_session_table_free(&table);
}

static void turns(void **state) {
    (void)state;
    struct fm_session_table table;
    struct fm_fault fault;
    fm_session_table_init(&table, &usual);
    struct fm_session *session = open_session(&table, text_of("do"));
    assert_int_equal(begin_turn(&table, session, "sort", "b a", &fault), FM_FAULT_NONE);
    expect_items(session, SYSTEM("do")); /* the turn is not in the conversation yet */
    assert_true(keep(&table, session, "{\"result\":\"a b\"}"));
    assert_int_equal(session->turns, 1);
#define FIRST SYSTEM("do") USER("sort\\n\\nContent:\\nb a") ASSISTANT("{\\\"result\\\":\\\"a b\\\"}")
    expect_items(session, FIRST);
    assert_int_equal(begin_turn(&table, session, "lost", "", &fault), FM_FAULT_NONE);
    fm_session_drop_turn(session);
    assert_null(session->turn.data);
    expect_items(session, FIRST);
    assert_int_equal(session->turns, 1);
    assert_int_equal(begin_turn(&table, session, "", "", &fault), FM_FAULT_NONE);
    assert_true(keep(&table, session, ""));
    assert_null(session->turn.data);
    expect_items(session, FIRST USER("\\n\\nContent:\\n") ASSISTANT(""));
    assert_int_equal(session->turns, 2);
    fm_session_table_free(&table);
}

/* A long content is cut after its first 10,000 characters, however many bytes these are; the whole prompt is used. */
static void long_content(void **state) {
    (void)state;
    struct fm_session_table table;
    struct fm_fault fault;
    struct fm_buf content;
    fm_session_table_init(&table, &usual);
    fm_buf_init(&content, 1u << 20);
    for (int i = 0; i < 10000; i++) {
        fm_buf_append_str(&content, "\xE2\x82\xAC");
    }
    size_t all = content.len;
    fm_buf_append_str(&content, "\xF0\x9F\x98\x80 cut");
    struct fm_session *session = open_session(&table, absent);
    struct fm_command command = {.prompt = {content.data, content.len}, .content = {content.data, all}};
    assert_int_equal(fm_session_begin_turn(&table, session, &command, &fault), FM_FAULT_NONE);
    size_t whole = session->turn.len;
    assert_int_equal(whole, strlen(USER("\\n\\nContent:\\n")) + content.len + all);
    command.content.len = content.len;
    assert_int_equal(fm_session_begin_turn(&table, session, &command, &fault), FM_FAULT_NONE);
    assert_int_equal(session->turn.len, whole);
    fm_buf_free(&content);
    fm_session_table_free(&table);
}

static void too_many_turns(void **state) {
    (void)state;
    struct fm_session_options options = usual;
    struct fm_session_table table;
    struct fm_fault fault;
    options.max_turns = 2;
    fm_session_table_init(&table, &options);
    struct fm_session *session = open_session(&table, absent);
    assert_int_equal(begin_turn(&table, session, "a", "", &fault), FM_FAULT_NONE);
    fm_session_drop_turn(session); /* a dropped turn does not count */
    add_turn(&table, session, "a", "b");
    add_turn(&table, session, "a", "b");
    assert_int_equal(begin_turn(&table, session, "a", "", &fault), FM_FAULT_EXECUTION_FAILED);
    assert_string_equal(fault.detail, "session full: it has had 2 turns; open a new one");
    assert_null(session->turn.data);
    assert_int_equal(begin_turn(&table, open_session(&table, absent), "a", "", &fault), FM_FAULT_NONE);
    fm_session_table_free(&table);
}

/* A message and an answer fit exactly. Larger ones leave the session unchanged. */
static void too_many_bytes(void **state) {
    (void)state;
    struct fm_session_options options = usual;
    struct fm_session_table table;
    struct fm_fault fault;
    char text[1025];
    options.max_bytes = 1024;
    memset(text, 'x', sizeof text);
    fm_session_table_init(&table, &options);
    struct fm_session *session = open_session(&table, text_of("do"));
    size_t fits = 1024 - strlen(SYSTEM("do") USER("\\n\\nContent:\\n"));
    text[fits + 1] = '\0';
    assert_int_equal(begin_turn(&table, session, text, "", &fault), FM_FAULT_EXECUTION_FAILED);
    assert_string_equal(fault.detail, "session full: 33 bytes and a message of 992, of 1024 that it may have; open a new one");
    assert_null(session->turn.data);
    text[fits] = '\0';
    assert_int_equal(begin_turn(&table, session, text, "", &fault), FM_FAULT_NONE);
    assert_false(keep(&table, session, "")); /* no room for an answer */
    expect_items(session, SYSTEM("do"));
    assert_int_equal(session->turns, 0);
    text[fits - strlen(ASSISTANT("ab"))] = '\0';
    assert_int_equal(begin_turn(&table, session, text, "", &fault), FM_FAULT_NONE);
    assert_false(keep(&table, session, "abc"));
    expect_items(session, SYSTEM("do"));
    assert_int_equal(begin_turn(&table, session, text, "", &fault), FM_FAULT_NONE);
    assert_true(keep(&table, session, "ab"));
    assert_int_equal(session->items.len, 1024);
    assert_int_equal(session->turns, 1);
    assert_int_equal(begin_turn(&table, session, "", "", &fault), FM_FAULT_EXECUTION_FAILED);
    fm_session_table_free(&table);
}

/* Opening a session and answering in it count as use. A session with recent use stays open. */
static void idle(void **state) {
    (void)state;
    struct fm_session_options options = usual;
    struct fm_session_table table;
    struct fm_fault fault;
    options.idle_ms = 1000;
    fm_session_table_init(&table, &options);
    int64_t before = fm_now_ms();
    for (int i = 0; i < 4; i++) {
        int64_t used_ms = open_session(&table, absent)->used_ms;
        assert_in_range(used_ms, before, fm_now_ms());
    }
    fm_session_close_idle(&table);
    assert_int_equal(table.count, 4);
    char kept[2][FM_ID_SIZE];
    for (size_t i = 0; i < 4; i++) {
        table.sessions[i].used_ms -= 2000;
    }
    assert_int_equal(begin_turn(&table, &table.sessions[1], "a", "", &fault), FM_FAULT_NONE);
    assert_true(keep(&table, &table.sessions[1], "b"));
    fm_session_drop_turn(&table.sessions[2]);
    memcpy(kept[0], table.sessions[1].id, FM_ID_SIZE);
    memcpy(kept[1], table.sessions[2].id, FM_ID_SIZE);
    fm_session_close_idle(&table);
    assert_int_equal(table.count, 2);
    assert_non_null(fm_session_find(&table, text_of(kept[0])));
    assert_non_null(fm_session_find(&table, text_of(kept[1])));
    table.sessions[0].used_ms = table.sessions[1].used_ms = fm_now_ms() - 1000; /* unused for exactly the limit */
    fm_session_close_idle(&table);
    assert_int_equal(table.count, 0);
    fm_session_table_free(&table);
}

/* The params of the current turn; they must be strict JSON that the surface accepts. The caller puts the tree. */
static struct json_object *params_of(const struct fm_session_table *table, const struct fm_session *session,
                                     const struct fm_attempt *attempt) {
    struct fm_buf buf;
    size_t offset;
    fm_buf_init(&buf, 16u << 20);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_session_write_params(table, session, attempt, &w);
    assert_false(buf.failed);
    const char *wrong = fm_json_check(buf.data, buf.len, FM_JSON_VALUES_MAX, &offset);
    if (wrong) {
        fail_msg("%s, at byte %zu of %.*s", wrong, offset, (int)buf.len, buf.data);
    }
    struct json_object *params = json_of(buf.data, buf.len);
    fm_buf_free(&buf);
    struct fm_request request;
    struct fm_error error;
    if (fm_surface_responses.parse(params, &request, &error) != FM_OK) {
        fail_msg("%s: %s", error.detail, json_object_to_json_string(params));
    }
    assert_false(request.store);
    assert_false(request.stream);
    fm_request_free(&request);
    return params;
}

static void params(void **state) {
    (void)state;
    struct fm_session_table table;
    struct fm_fault fault;
    fm_session_table_init(&table, &usual);
    struct fm_session *session = open_session(&table, text_of("do"));
    add_turn(&table, session, "a", "b");
    assert_int_equal(begin_turn(&table, session, "c", "d", &fault), FM_FAULT_NONE);
    struct fm_attempt attempt = {.format = FM_OUTPUT_TEXT, .timeout_ms = 5000};
    struct json_object *made = params_of(&table, session, &attempt);
    assert_json(made, "input",
                "[" SYSTEM("do\\n\\nAnswer with a JSON object, {\\\"result\\\":\\\"...\\\"}: \\\"result\\\" is the text output "
                           "as requested in the prompt.") USER("a\\n\\nContent:\\n")
                    ASSISTANT("b") "{\"role\":\"user\",\"content\":\"c\\n\\nContent:\\nd\"}]");
    assert_json(made, "store", "false");
    assert_null(at(made, "temperature")); /* default values are left out */
    assert_json(made, "max_output_tokens", "1024");
    assert_json(made, "truncation", "\"disabled\"");
    assert_json(made, "fm", "{\"timeout_ms\":5000}");
    assert_json(made, "text.format.type", "\"json_schema\"");
    assert_json(made, "text.format.strict", "true");
    assert_json(made, "text.format.schema",
                "{\"type\":\"object\",\"properties\":{\"result\":{\"type\":\"string\",\"description\":\"the text output as "
                "requested in the prompt\"}},\"required\":[\"result\"],\"additionalProperties\":false}");
    assert_int_equal(json_object_object_length(made), 6);
    json_object_put(made);
    attempt = (struct fm_attempt){.format = FM_OUTPUT_STRING_LIST, .again = true, .timeout_ms = 1};
    made = params_of(&table, session, &attempt);
    assert_json(made, "frequency_penalty", "0.5");
    assert_json(made, "fm", "{\"timeout_ms\":1}");
    assert_json(made, "text.format.schema.properties",
                "{\"result\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":\"the list of text items as "
                "requested in the prompt\"}}");
    assert_json(made, "input.0.content",
                "\"do\\n\\nAnswer with a JSON object, {\\\"result\\\":[\\\"...\\\",\\\"...\\\"]}: \\\"result\\\" is the list of "
                "text items as requested in the prompt.\"");
    assert_int_equal(json_object_object_length(made), 7);
    json_object_put(made);
    fm_session_table_free(&table);
}

/* With any options, the surface accepts the params. */
static void params_of_all_options(void **state) {
    (void)state;
    static const struct {
        double temperature;
        int64_t max_output_tokens;
        int64_t timeout_ms;
        const char *truncation;
    } rows[] = {
        {0, 1, 1, "auto"},
        {2, INT32_MAX, 86400000, "disabled"},
        {0.1, 16, 600000, "auto"},
        {1e-300, 1, 1, "disabled"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_session_options options = usual;
        struct fm_session_table table;
        struct fm_fault fault;
        options.temperature = rows[i].temperature;
        options.max_output_tokens = rows[i].max_output_tokens;
        options.truncation = rows[i].truncation;
        fm_session_table_init(&table, &options);
        struct fm_session *session = open_session(&table, text_of(""));
        assert_int_equal(begin_turn(&table, session, "", "", &fault), FM_FAULT_NONE);
        struct fm_attempt attempt = {.timeout_ms = rows[i].timeout_ms};
        struct json_object *made = params_of(&table, session, &attempt);
        assert_int_equal(int_at(made, "max_output_tokens"), rows[i].max_output_tokens);
        assert_true(json_object_get_double(at(made, "temperature")) == rows[i].temperature);
        assert_string_equal(str_at(made, "truncation"), rows[i].truncation);
        json_object_put(made);
        fm_session_table_free(&table);
    }
}

/* The front can read the params of a session with the highest number of turns that an option allows. */
static void params_of_all_turns(void **state) {
    (void)state;
    struct fm_session_options options = usual;
    struct fm_session_table table;
    struct fm_fault fault;
    options.max_turns = FM_SESSION_TURNS_MAX;
    fm_session_table_init(&table, &options);
    struct fm_session *session = open_session(&table, text_of(""));
    for (int64_t i = 1; i < options.max_turns; i++) {
        add_turn(&table, session, "", "");
    }
    assert_int_equal(begin_turn(&table, session, "", "", &fault), FM_FAULT_NONE);
    struct fm_attempt attempt = {.timeout_ms = 1, .again = true};
    json_object_put(params_of(&table, session, &attempt));
    fm_session_table_free(&table);
}

#ifdef WRAPPED
/* A conversation in which one allocation fails. Returns how many steps succeeded; 4: all. */
static int converse(int allocations, bool *had_all) {
    static const char long_text[] = "a text that is long enough for a buffer to grow a second time, and a third: "
                                    "it goes on and on, as such texts do, until it has some two hundred characters. "
                                    "That is what is wanted of it; nobody has to read it, but somebody may, of course.";
    struct fm_session_table table;
    struct fm_session *session = NULL;
    struct fm_fault fault;
    int came = 0;
    fm_session_table_init(&table, &usual);
    allocations_left = allocations;
    bool ok = fm_session_open(&table, absent, &session, &fault) == FM_FAULT_NONE;
    came += ok;
    ok = ok && begin_turn(&table, session, long_text, long_text, &fault) == FM_FAULT_NONE;
    came += ok;
    ok = ok && keep(&table, session, long_text);
    came += ok;
    *had_all = allocations_left >= 0;
    allocations_left = -1;
    assert_int_equal(table.count, session != NULL);
    if (session) {
        assert_int_equal(session->turns, came == 3);
        fm_session_drop_turn(session);
        add_turn(&table, session, "next", "n"); /* afterwards, the table works as if nothing had happened */
        assert_int_equal(begin_turn(&table, session, "", "", &fault), FM_FAULT_NONE);
        struct fm_attempt attempt = {.timeout_ms = 1};
        struct json_object *made = params_of(&table, session, &attempt);
        assert_int_equal(json_object_array_length(at(made, "input")), came == 3 ? 6 : 4);
        json_object_put(made);
    }
    fm_session_table_free(&table);
    return came;
}

static void without_memory(void **state) {
    (void)state;
    int counts[4] = {0};
    bool had_all = false;
    for (int i = 0; !had_all; i++) {
        assert_true(i < 100);
        counts[converse(i, &had_all)]++;
    }
    assert_int_equal(counts[3], 1);
    for (int came = 0; came < 3; came++) {
        assert_true(counts[came] > 0);
    }
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids),
        cmocka_unit_test(instructions),
        cmocka_unit_test(open_and_close),
        cmocka_unit_test(too_many),
        cmocka_unit_test(instructions_too_large),
        cmocka_unit_test(turns),
        cmocka_unit_test(long_content),
        cmocka_unit_test(too_many_turns),
        cmocka_unit_test(too_many_bytes),
        cmocka_unit_test(idle),
        cmocka_unit_test(params),
        cmocka_unit_test(params_of_all_options),
        cmocka_unit_test(params_of_all_turns),
#ifdef WRAPPED
        cmocka_unit_test(without_memory),
#endif
    };
    return cmocka_run_group_tests_name("session_table", tests, NULL, NULL);
}
