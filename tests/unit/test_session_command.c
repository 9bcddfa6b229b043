/* Lines of session mode: each error in the table of SESSIONS.md, the order in which errors are reported, and the
 * command that a good line becomes. */
#include "base/utf8.h"
#include "sessions/command.h"
#include "wire.h"

#include <json-c/json.h>

#ifdef WRAPPED
#include "allocations.h"
#endif

/* Reads a line in both steps, from a heap block of exactly the line's size. The caller frees the command. */
static enum fm_fault_code read_line(const char *line, size_t len, struct fm_command *command, struct fm_fault *fault) {
    char *exact = exact_copy(line, len);
    struct fm_buf scratch;
    fm_buf_init(&scratch, 1u << 20);
    enum fm_fault_code code = fm_command_read(exact, len, &scratch, command, fault);
    fm_buf_free(&scratch);
    free(exact); /* the texts are in the tree */
    return code == FM_FAULT_NONE ? fm_command_read_rest(command, fault) : code;
}

/* The answer to a fault, as text. */
static const char *answer_of(const struct fm_fault *fault) {
    static char text[4096];
    struct fm_buf buf;
    fm_buf_init(&buf, sizeof text - 1);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_fault_write(fault, &w);
    assert_false(buf.failed);
    memcpy(text, buf.data, buf.len);
    text[buf.len] = '\0';
    fm_buf_free(&buf);
    return text;
}

struct row {
    const char *line;
    size_t len;
    const char *error; /* NULL: no error */
};

static void check_rows(const struct row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct fm_command command;
        struct fm_fault fault = {.code = FM_FAULT_NONE};
        char expected[512] = "none";
        enum fm_fault_code code = read_line(rows[i].line, rows[i].len, &command, &fault);
        if (rows[i].error) {
            snprintf(expected, sizeof expected, "{\"ok\":false,\"error\":\"%s\"}", rows[i].error);
        }
        assert_int_equal(code, fault.code);
        expect_text(rows[i].line, "row", i, expected, code == FM_FAULT_NONE ? "none" : answer_of(&fault));
        fm_command_free(&command);
        fm_command_free(&command);
    }
}

#define MESSAGE "{\"command\":\"message\",\"session_id\":\"s\""
#define PROMPT  MESSAGE ",\"prompt\":\"p\""
#define WHOLE   PROMPT ",\"content\":\"c\""

static void errors(void **state) {
    (void)state;
    static const struct row rows[] = {
        {BYTES(""), "invalid_json"},
        {BYTES("hello"), "invalid_json"},
        {BYTES("null"), "invalid_json"},
        {BYTES("[]"), "invalid_json"},
        {BYTES("7"), "invalid_json"},
        {BYTES("\"shutdown\""), "invalid_json"},
        {BYTES("[{\"command\":\"shutdown\"}]"), "invalid_json"},
        {BYTES("{}"), "command_required"},
        {BYTES("{\"Command\":\"shutdown\"}"), "command_required"},
        {BYTES("{\"command\":null}"), "command_required"},
        {BYTES("{\"command\":1}"), "command_required"},
        {BYTES("{\"command\":[\"shutdown\"]}"), "command_required"},
        {BYTES("{\"command\":\"\"}"), "unknown_command"},
        {BYTES("{\"command\":\"Shutdown\"}"), "unknown_command"},
        {BYTES("{\"command\":\"shutdown \"}"), "unknown_command"},
        {BYTES("{\"command\":\"shutdow\"}"), "unknown_command"},
        {BYTES("{\"command\":\"shutdown\\u0000\"}"), "unknown_command"},
        {BYTES("{\"command\":\"message\"}"), "session_id_required"},
        {BYTES("{\"command\":\"message\",\"session_id\":null}"), "session_id_required"},
        {BYTES("{\"command\":\"message\",\"session_id\":1}"), "session_id_required"},
        {BYTES("{\"command\":\"close-session\"}"), "session_id_required"},
        {BYTES("{\"command\":\"close-session\",\"session_id\":{}}"), "session_id_required"},
        {BYTES(MESSAGE "}"), "prompt_required"},
        {BYTES(MESSAGE ",\"prompt\":null}"), "prompt_required"},
        {BYTES(MESSAGE ",\"prompt\":[\"x\"]}"), "prompt_required"},
        {BYTES(MESSAGE ",\"prompt\":\"\",\"content\":\"c\",\"output_format\":\"text\"}"), "prompt_required"},
        {BYTES(PROMPT "}"), "content_required"},
        {BYTES(PROMPT ",\"content\":null}"), "content_required"},
        {BYTES(PROMPT ",\"content\":7}"), "content_required"},
        {BYTES(PROMPT ",\"content\":\"\",\"output_format\":\"text\"}"), "content_required"},
        {BYTES(WHOLE "}"), "output_format_required"},
        {BYTES(WHOLE ",\"output_format\":null}"), "output_format_required"},
        {BYTES(WHOLE ",\"output_format\":{\"type\":\"text\"}}"), "output_format_required"},
        {BYTES(WHOLE ",\"output_format\":\"\"}"), "unknown_output_format"},
        {BYTES(WHOLE ",\"output_format\":\"json\"}"), "unknown_output_format"},
        {BYTES(WHOLE ",\"output_format\":\"TEXT\"}"), "unknown_output_format"},
        {BYTES(WHOLE ",\"output_format\":\"text \"}"), "unknown_output_format"},
        {BYTES(WHOLE ",\"output_format\":\"text\\u0000\"}"), "unknown_output_format"},
        {BYTES(WHOLE ",\"output_format\":\"string_lis\"}"), "unknown_output_format"},
        {BYTES("{\"command\":\"open-session\",\"instructions\":7}"),
         "failed_to_open_session: \\\"instructions\\\" must be a string"},
        {BYTES("{\"command\":\"open-session\",\"instructions\":[]}"),
         "failed_to_open_session: \\\"instructions\\\" must be a string"},
    };
    check_rows(rows, COUNT(rows));
}

/* If several members are wrong, only the first one in this order is reported. */
static void their_order(void **state) {
    (void)state;
#define ODD ",\"odd\":1}"
    static const struct row rows[] = {
        {BYTES("{\"odd\":1"), "invalid_json"},
        {BYTES("{\"odd\":1}"), "command_required"},
        {BYTES("{\"command\":\"nothing\"" ODD), "unknown_command"},
        {BYTES("{\"command\":\"message\",\"prompt\":1" ODD), "session_id_required"},
        {BYTES(MESSAGE ",\"content\":1,\"output_format\":1" ODD), "prompt_required"},
        {BYTES(PROMPT ",\"output_format\":1" ODD), "content_required"},
        {BYTES(WHOLE ODD), "output_format_required"},
        {BYTES(WHOLE ",\"output_format\":\"x\"" ODD), "unknown_output_format"},
    };
    check_rows(rows, COUNT(rows));
}

/* The fields are checked before the session, and the output format after it. */
static void before_the_session(void **state) {
    (void)state;
    static const struct row rows[] = {
        {BYTES(WHOLE "}"), "output_format_required"},
        {BYTES(WHOLE ",\"output_format\":\"x\"}"), NULL},
        {BYTES("{\"command\":\"open-session\",\"instructions\":7}"), NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_command command;
        struct fm_fault fault;
        struct fm_buf scratch;
        fm_buf_init(&scratch, 1u << 20);
        enum fm_fault_code code = fm_command_read(rows[i].line, rows[i].len, &scratch, &command, &fault);
        expect_text(rows[i].line, "row", i, rows[i].error ? rows[i].error : "", fm_fault_name(code));
        fm_command_free(&command);
        fm_buf_free(&scratch);
    }
}

/* Members in any order; members that a command does not need are ignored, whatever their type. */
static void members(void **state) {
    (void)state;
    static const struct row rows[] = {
        {BYTES(" {\"command\":\"shutdown\"}\r"), NULL},
        {BYTES("{\"command\":\"check-availability\"}"), NULL},
        {BYTES("{\"command\":\"open-session\"}"), NULL},
        {BYTES("{\"command\":\"open-session\",\"instructions\":null}"), NULL},
        {BYTES("{\"instructions\":\"\",\"command\":\"open-session\"}"), NULL},
        {BYTES("{\"command\":\"close-session\",\"session_id\":\"\"}"), NULL},
        {BYTES(WHOLE ",\"output_format\":\"text\"}"), NULL},
        {BYTES(WHOLE ",\"output_format\":\"string_list\"}"), NULL},
        {BYTES("{\"c\\u006fmmand\":\"shut\\u0064own\"}"), NULL},
        /* of members with the same name, the last one counts */
        {BYTES("{\"command\":\"message\",\"command\":\"shutdown\"}"), NULL},
        {BYTES(WHOLE ",\"output_format\":1,\"output_format\":\"text\"}"), NULL},
        {BYTES(WHOLE ",\"prompt\":\"\",\"output_format\":\"text\"}"), "prompt_required"},
        {BYTES("{\"command\":\"shutdown\",\"session_id\":\"s\"}"), NULL},
        {BYTES("{\"command\":\"shutdown\",\"odd\":[{\"command\":1}]}"), NULL},
        {BYTES("{\"command\":\"check-availability\",\"instructions\":[]}"), NULL},
        {BYTES("{\"command\":\"close-session\",\"session_id\":\"s\",\"prompt\":7,\"odd\":null}"), NULL},
        {BYTES("{\"command\":\"open-session\",\"session_id\":{},\"output_format\":\"x\"}"), NULL},
        {BYTES(WHOLE ",\"output_format\":\"text\",\"instructions\":7}"), NULL},
        {BYTES(WHOLE ",\"output_format\":\"text\",\"\":null,\"Prompt\":\"\"}"), NULL},
    };
    check_rows(rows, COUNT(rows));
}

/* The strict rules of PROTOCOL.md: text that a lenient parser would accept is not JSON here. */
static void strict_json(void **state) {
    (void)state;
    static const struct row rows[] = {
        {BYTES("{\"command\":\"shutdown\""), "invalid_json"},
        {BYTES("{\"command\":\"shutdown\",}"), "invalid_json"},
        {BYTES("{'command':'shutdown'}"), "invalid_json"},
        {BYTES("{command:\"shutdown\"}"), "invalid_json"},
        {BYTES("{\"command\":\"shutdown\"} {}"), "invalid_json"},
        {BYTES("{\"command\":\"shutdown\"}\0"), "invalid_json"},
        {BYTES("{\"command\":\"shutdown\"}//"), "invalid_json"},
        {BYTES("\xEF\xBB\xBF{\"command\":\"shutdown\"}"), "invalid_json"},
        {BYTES("{\"command\":\"shut\xff\"}"), "invalid_json"},
        {BYTES("{\"command\":\"\xC0\x80\"}"), "invalid_json"},
        {BYTES("{\"command\":\"\\uD800\"}"), "invalid_json"},
        {BYTES("{\"command\":\"a\tb\"}"), "invalid_json"},
        {BYTES("{\"command\\u0000\":\"shutdown\"}"), "invalid_json"},
        {BYTES("{\"command\":NaN}"), "invalid_json"},
        {BYTES("{\"command\":01}"), "invalid_json"},
    };
    check_rows(rows, COUNT(rows));
}

/* `levels` nested arrays in a member; the object around them counts too. */
static enum fm_fault_code read_nested(size_t levels) {
    struct fm_command command;
    struct fm_fault fault;
    char line[400] = "{\"command\":\"shutdown\",\"a\":";
    size_t len = strlen(line);
    memset(line + len, '[', levels - 1);
    memset(line + len + levels - 1, ']', levels - 1);
    len += 2 * (levels - 1);
    line[len++] = '}';
    enum fm_fault_code code = read_line(line, len, &command, &fault);
    fm_command_free(&command);
    return code;
}

static void depth(void **state) {
    (void)state;
    assert_int_equal(read_nested(64), FM_FAULT_NONE);
    assert_int_equal(read_nested(65), FM_FAULT_INVALID_JSON);
}

static void expect_fm_text(struct fm_text text, const char *expected, size_t len) {
    assert_non_null(text.data);
    assert_int_equal(text.len, len);
    assert_memory_equal(text.data, expected, len);
}

static void texts(void **state) {
    (void)state;
    struct fm_command command;
    struct fm_fault fault;
    static const char line[] = "{\"command\":\"message\",\"session_id\":\"sess_\\u0031\",\"prompt\":\"a\\u0000b\","
                               "\"content\":\"\\uD83D\\uDE00\\n\",\"output_format\":\"string_list\"}";
    assert_int_equal(read_line(BYTES(line), &command, &fault), FM_FAULT_NONE);
    assert_int_equal(command.kind, FM_COMMAND_MESSAGE);
    assert_int_equal(command.format, FM_OUTPUT_STRING_LIST);
    expect_fm_text(command.session_id, BYTES("sess_1"));
    expect_fm_text(command.prompt, BYTES("a\0b"));
    expect_fm_text(command.content, BYTES("\xF0\x9F\x98\x80\n"));
    fm_command_free(&command);
    assert_int_equal(read_line(BYTES(WHOLE ",\"output_format\":\"text\"}"), &command, &fault), FM_FAULT_NONE);
    assert_int_equal(command.format, FM_OUTPUT_TEXT);
    expect_fm_text(command.prompt, BYTES("p"));
    fm_command_free(&command);
    assert_int_equal(read_line(BYTES("{\"command\":\"open-session\",\"instructions\":\"\"}"), &command, &fault),
                     FM_FAULT_NONE);
    assert_int_equal(command.kind, FM_COMMAND_OPEN);
    expect_fm_text(command.instructions, BYTES(""));
    fm_command_free(&command);
    assert_int_equal(read_line(BYTES("{\"command\":\"open-session\",\"instructions\":null}"), &command, &fault),
                     FM_FAULT_NONE);
    assert_null(command.instructions.data);
    fm_command_free(&command);
}

/* A message without session_id is still a message: the caller needs to know whose error it is. */
static void kinds(void **state) {
    (void)state;
    static const struct {
        const char *name;
        enum fm_command_kind kind;
    } rows[] = {
        {"open-session", FM_COMMAND_OPEN},   {"message", FM_COMMAND_MESSAGE},
        {"close-session", FM_COMMAND_CLOSE}, {"check-availability", FM_COMMAND_CHECK},
        {"shutdown", FM_COMMAND_SHUTDOWN},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char line[100];
        struct fm_command command;
        struct fm_fault fault;
        size_t len = (size_t)snprintf(line, sizeof line, "{\"command\":\"%s\"}", rows[i].name);
        bool wants_session = rows[i].kind == FM_COMMAND_MESSAGE || rows[i].kind == FM_COMMAND_CLOSE;
        assert_int_equal(read_line(line, len, &command, &fault),
                         wants_session ? FM_FAULT_SESSION_ID_REQUIRED : FM_FAULT_NONE);
        assert_int_equal(command.kind, rows[i].kind);
        assert_true(wants_session == (command.root == NULL));
        fm_command_free(&command);
        assert_string_equal(fm_command_name(rows[i].kind), rows[i].name);
        assert_int_equal(read_line(BYTES("{\"command\":\"x\"}"), &command, &fault), FM_FAULT_UNKNOWN_COMMAND);
        assert_non_null(strstr(fault.detail, rows[i].name)); /* the error names the commands that exist */
        fm_command_free(&command);
    }
}

/* In the log, an error names the field and its required type. */
static void details(void **state) {
    (void)state;
    static const struct row rows[] = {
        {BYTES("{\"a\":tru}"), "a word that JSON does not have, at byte 5 of 9"},
        {BYTES("[]"), "the line must be a JSON object"},
        {BYTES("{}"), "\"command\" must be a string"},
        {BYTES(MESSAGE "}"), "\"prompt\" must be a string that is not empty"},
        {BYTES(PROMPT "}"), "\"content\" must be a string that is not empty"},
        {BYTES(WHOLE "}"), "\"output_format\" must be a string"},
        {BYTES(WHOLE ",\"output_format\":\"x\"}"), "\"output_format\" must be \"text\" or \"string_list\""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_command command;
        struct fm_fault fault;
        assert_true(read_line(rows[i].line, rows[i].len, &command, &fault) != FM_FAULT_NONE);
        expect_text(rows[i].line, "row", i, rows[i].error, fault.detail);
        fm_command_free(&command);
    }
}

static void blank(void **state) {
    (void)state;
    static const struct {
        const char *line;
        size_t len;
        bool blank;
    } rows[] = {
        {BYTES(""), true},       {BYTES(" "), true},   {BYTES("\r"), true},
        {BYTES(" \t\r "), true}, {BYTES("\0"), false}, {BYTES("."), false},
        {BYTES("  x  "), false}, {BYTES("\v"), false}, {BYTES("\xC2\xA0"), false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *exact = exact_copy(rows[i].line, rows[i].len);
        assert_int_equal(fm_command_is_blank(exact, rows[i].len), rows[i].blank);
        free(exact);
    }
}

/* Characters are code points, and none is cut. */
static void characters(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        size_t all;      /* characters */
        size_t bytes[4]; /* the bytes of the first 0, 1, 2 and 3 characters */
    } rows[] = {
        {BYTES(""), 0, {0, 0, 0, 0}},          {BYTES("a"), 1, {0, 1, 1, 1}},
        {BYTES("abcd"), 4, {0, 1, 2, 3}},      {BYTES("a\0b"), 3, {0, 1, 2, 3}},
        {BYTES("\xC3\xA9x"), 2, {0, 2, 3, 3}}, {BYTES("\xE2\x82\xAC\xF0\x9F\x98\x80z"), 3, {0, 3, 7, 8}},
        {BYTES("e\xCC\x81"), 2, {0, 1, 3, 3}}, /* a combining mark is a separate code point */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_text text = {rows[i].text, rows[i].len};
        assert_int_equal(fm_utf8_characters(text.data, text.len), rows[i].all);
        for (size_t max = 0; max < 4; max++) {
            assert_int_equal(fm_utf8_prefix(text.data, text.len, max), rows[i].bytes[max]);
        }
        assert_int_equal(fm_utf8_prefix(text.data, text.len, SIZE_MAX), rows[i].len);
    }
}

static void fault_names(void **state) {
    (void)state;
    static const char *const names[] = {
        "",
        "invalid_json",
        "command_required",
        "unknown_command",
        "session_id_required",
        "prompt_required",
        "content_required",
        "output_format_required",
        "session_not_found",
        "unknown_output_format",
        "guardrail_blocked",
        "model_unavailable",
        "failed_to_open_session",
        "execution_failed",
    };
    for (size_t i = 0; i < COUNT(names); i++) {
        struct fm_fault fault;
        char expected[100];
        bool detailed = i >= FM_FAULT_FAILED_TO_OPEN;
        assert_string_equal(fm_fault_name((enum fm_fault_code)i), names[i]);
        assert_int_equal(fm_fault_fill(&fault, (enum fm_fault_code)i, "%s \"%d\"", "why", 7), i);
        assert_string_equal(fault.detail, "why \"7\"");
        snprintf(expected, sizeof expected, "{\"ok\":false,\"error\":\"%s%s\"}", names[i],
                 detailed ? ": why \\\"7\\\"" : "");
        assert_string_equal(answer_of(&fault), expected);
    }
}

/* A long detail is cut between characters. */
static void long_details(void **state) {
    (void)state;
    struct fm_fault fault;
    char text[2000] = "x"; /* one byte, so that characters of three bytes do not end exactly at the end of the room */
    for (size_t i = 1; i + 3 < sizeof text; i += 3) {
        memcpy(text + i, "\xE2\x82\xAC", 4);
    }
    fm_fault_fill(&fault, FM_FAULT_EXECUTION_FAILED, "%s", text);
    assert_int_equal(strlen(fault.detail) % 3, 1);
    assert_in_range(strlen(fault.detail), sizeof fault.detail - 4, sizeof fault.detail - 1);
    assert_null(strstr(answer_of(&fault), "\xEF\xBF\xBD"));
}

#ifdef WRAPPED
/* Escapes and a number beyond 64 bits need memory from our own allocations. */
static void without_memory(void **state) {
    (void)state;
    static const char line[] = "{\"command\":\"shutdown\",\"a\":\"\\n\",\"b\":123456789012345678901234567890}";
    int failed = 0;
    for (;; failed++) {
        struct fm_command command;
        struct fm_fault fault;
        allocations_left = failed;
        enum fm_fault_code code = read_line(BYTES(line), &command, &fault);
        bool had_all = allocations_left >= 0;
        allocations_left = -1;
        assert_int_equal(code, had_all ? FM_FAULT_NONE : FM_FAULT_EXECUTION_FAILED);
        assert_true(had_all || strcmp(fault.detail, "out of memory") == 0);
        assert_true(had_all || !command.root);
        fm_command_free(&command);
        if (had_all) {
            break;
        }
    }
    assert_true(failed >= 2);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors),      cmocka_unit_test(their_order),  cmocka_unit_test(before_the_session),
        cmocka_unit_test(members),     cmocka_unit_test(strict_json),  cmocka_unit_test(depth),
        cmocka_unit_test(texts),       cmocka_unit_test(kinds),        cmocka_unit_test(details),
        cmocka_unit_test(blank),       cmocka_unit_test(characters),   cmocka_unit_test(fault_names),
        cmocka_unit_test(long_details),
#ifdef WRAPPED
        cmocka_unit_test(without_memory),
#endif
    };
    return cmocka_run_group_tests_name("session_command", tests, NULL, NULL);
}
