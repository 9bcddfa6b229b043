/* Turns: which arrangement of a conversation a template gets, tested with templates written in C. */
#include "engine/chat/turns.h"
#include "wire.h"
#ifdef WRAPPED
#include "allocations.h"
#endif

/* What the templates below do; one bit for each behaviour. */
enum {
    SYSTEM_FIRST = 1,   /* refuses system messages at other places */
    ALTERNATES = 2,     /* refuses anything but user and assistant in turns, the user first */
    NO_SYSTEM = 4,      /* refuses system messages */
    DROPS_SYSTEM = 8,   /* leaves out each system message except the first */
    REPEATS = 16,       /* writes the last message twice */
    BACKWARDS = 32,     /* begins with the last message */
    TOOLS_BY_USER = 64, /* shows the tools only if the last message is the user's */
    MOVES_SYSTEM = 128, /* writes the first message last */
    REFUSES = 256,      /* refuses everything */
    DROPS_TEXT = 512,   /* leaves out a text that stands beside calls */
};

struct script {
    unsigned does;
    size_t renders;
};

static bool is_role(const struct fm_chat *chat, size_t i, const char *role) {
    return i < chat->count && strcmp(chat->messages[i].role, role) == 0;
}

static bool refused(unsigned does, const struct fm_chat *chat) {
    const char *expected = "user";
    bool wrong = does & REFUSES;
    for (size_t i = 0; i < chat->count; i++) {
        if (is_role(chat, i, "system")) {
            wrong = wrong || (does & NO_SYSTEM) || ((does & SYSTEM_FIRST) && i > 0);
        } else if (is_role(chat, i, "tool")) {
            expected = "assistant";
        } else {
            wrong = wrong || ((does & ALTERNATES) && !is_role(chat, i, expected));
            expected = is_role(chat, i, "user") ? "assistant" : "user";
        }
    }
    return wrong;
}

static void write_message(unsigned does, const struct fm_chat *chat, size_t i, struct fm_buf *out) {
    const struct fm_chat_message *message = &chat->messages[i];
    bool dropped = (does & DROPS_TEXT) && message->call_count > 0;
    fm_buf_append(out, message->content, dropped ? 0 : message->content_len);
    for (size_t k = 0; k < message->call_count; k++) {
        fm_buf_append_str(out, message->calls[k].name);
        fm_buf_append(out, message->calls[k].arguments, message->calls[k].arguments_len);
    }
    fm_buf_append_char(out, '\n');
}

static enum fm_code render(const void *argument, const struct fm_chat *chat, char **text, size_t *len,
                           struct fm_error *error) {
    struct script *script = (struct script *)argument;
    struct fm_buf out;
    size_t last = chat->count - 1;
    size_t first = script->does & MOVES_SYSTEM ? 1 : 0;
    script->renders++;
    if (refused(script->does, chat)) {
        return fm_fail(error, FM_INVALID_REQUEST, "refused");
    }
    fm_buf_init(&out, 100000);
    for (size_t i = 0; i < chat->tool_count && (!(script->does & TOOLS_BY_USER) || is_role(chat, last, "user")); i++) {
        fm_buf_append_str(&out, chat->tools[i].name);
    }
    for (size_t i = first; i < chat->count; i++) {
        if (!(script->does & DROPS_SYSTEM) || i == 0 || !is_role(chat, i, "system")) {
            write_message(script->does, chat, script->does & BACKWARDS ? last - i : i, &out);
        }
    }
    if (first > 0 || (script->does & REPEATS)) {
        write_message(script->does, chat, first > 0 ? 0 : last, &out);
    }
    fm_buf_append_char(&out, '\0');
    *text = out.data;
    *len = out.len - 1;
    return out.failed ? fm_fail_no_memory(error) : FM_OK;
}

static const struct fm_chat_call call = {.id = "1", .name = "f", .arguments = "{}", .arguments_len = 2};

/* One letter per message: s, u, a; c a call, C a call with a text; t its outcome; e an empty text of the assistant. */
static size_t write_order(const char *order, struct fm_chat_message *messages) {
    static char texts[26][2];
    for (size_t i = 0; order[i]; i++) {
        bool calls = strchr("cC", order[i]);
        bool says = !strchr("ce", order[i]);
        const char *role = strchr("aceC", order[i]) ? "assistant" : NULL;
        texts[i][0] = (char)('A' + i);
        messages[i] = (struct fm_chat_message){
            .role = role               ? role
                    : order[i] == 's' ? "system"
                    : order[i] == 'u' ? "user"
                                      : "tool",
            .content = texts[i],
            .content_len = says,
            .calls = calls ? &call : NULL,
            .call_count = calls,
            .answered_id = order[i] == 't' ? "1" : NULL,
            .answered_name = order[i] == 't' ? "f" : NULL,
        };
    }
    return strlen(order);
}

static void note_chat(struct transcript *log, const struct fm_chat *chat) {
    for (size_t i = 0; i < chat->count; i++) {
        const struct fm_chat_message *message = &chat->messages[i];
        note(log, "%c(%.*s", message->role[0], (int)message->content_len, message->content);
        for (size_t k = 0; k < message->call_count; k++) {
            note(log, "!");
        }
        note(log, ")");
    }
}

/* Checks which conversation a template with the behaviour `does` gets for `order` ("": none), and after how many
 * renderings. */
static void expect(unsigned does, const char *order, const char *expected, size_t renders) {
    struct fm_chat_message messages[26];
    const struct fm_chat_tool tool = {.name = "f", .parameters = "{}", .parameters_len = 2};
    const struct fm_chat chat = {
        .messages = messages, .count = write_order(order, messages), .tools = &tool, .tool_count = 1};
    struct script script = {.does = does};
    const struct fm_tool_template from = {.render = render, .argument = &script};
    struct transcript log = {.len = 0};
    struct fm_turns_memory memory = {.next = 0};
    struct fm_turns turns;
    struct fm_error error;
    assert_int_equal(fm_turns_init(&turns, &chat, &memory, &error), FM_OK);
    enum fm_code code = fm_turns_next(&turns, &from, &error);
    assert_int_equal(code, expected[0] ? FM_OK : FM_INVALID_REQUEST);
    if (code == FM_OK) {
        note_chat(&log, &turns.chat);
    }
    assert_string_equal(log.text, expected);
    assert_int_equal(script.renders, renders);
    fm_turns_free(&turns);
    fm_turns_free(&turns);
}

static void as_it_is(void **state) {
    (void)state;
    expect(0, "su", "s(A)u(B)", 1);
    expect(0, "asusaauu", "a(A)s(B)u(C)s(D)a(E)a(F)u(G)u(H)", 1);
    expect(0, "uCtue", "u(A)a(B!)t(C)u(D)a()", 1);
    expect(ALTERNATES | SYSTEM_FIRST, "sucta", "s(A)u(B)a(!)t(D)a(E)", 1);
    expect(MOVES_SYSTEM, "suau", "s(A)u(B)a(C)u(D)", 1);
    expect(REPEATS, "uau", "u(A)a(B)u(C)", 1);
}

static void joined(void **state) {
    (void)state;
    expect(SYSTEM_FIRST, "susa", "s(A\n\nC)u(B)a(D)", 2);
    expect(SYSTEM_FIRST, "us", "s(B)u(A)", 2);
    expect(DROPS_SYSTEM, "ssuau", "s(A\n\nB)u(C)a(D)u(E)", 2);
    expect(MOVES_SYSTEM, "usu", "s(B)u(A)u(C)", 2);
    expect(ALTERNATES, "ssuuuaa", "s(A\n\nB)u(C\n\nD\n\nE)a(F\n\nG)", 3);
    expect(ALTERNATES, "ueau", "u(A)a(C)u(D)", 2);
    expect(NO_SYSTEM, "sus", "u(A\n\nC\n\nB)", 3);
    expect(NO_SYSTEM, "s", "u(A)", 3);
}

static void joined_calls(void **state) {
    (void)state;
    expect(ALTERNATES, "uacu", "u(A)a(B!)u(D)", 2);
    expect(ALTERNATES, "ucctta", "u(A)a(!!)t(D)t(E)a(F)", 2);
    expect(ALTERNATES, "ucau", "", 1); /* a text that comes after a call can't be moved before it */
}

static void parted_calls(void **state) {
    (void)state;
    expect(DROPS_TEXT, "uCtaCt", "u(A)a(B)a(!)t(C)a(D)a(E)a(!)t(F)", 2);
    expect(DROPS_TEXT, "uctu", "u(A)a(!)t(C)u(D)", 1);
    expect(DROPS_TEXT | DROPS_SYSTEM, "ssuCt", "s(A\n\nB)u(C)a(D)a(!)t(E)", 3);
    expect(DROPS_TEXT | ALTERNATES, "uCt", "", 3); /* after the parts are joined again, the message has lost its text */
    expect(ALTERNATES, "uuCt", "u(A\n\nB)a(C!)t(D)", 3);
}

static void with_users(void **state) {
    (void)state;
    expect(ALTERNATES, "sau", "s(A)u()a(B)u(C)", 2);
    expect(ALTERNATES, "aa", "u()a(A\n\nB)", 3);
    expect(TOOLS_BY_USER, "sua", "s(A)u(B)a(C)u()", 2);
}

static void none(void **state) {
    (void)state;
    expect(REFUSES, "su", "", 2);
    expect(BACKWARDS, "ua", "", 2);
}

/* If a template accepts an arrangement but loses its texts, fm_turns_next gives the next arrangement. */
static void the_next(void **state) {
    (void)state;
    struct fm_chat_message messages[26];
    const struct fm_chat chat = {.messages = messages, .count = write_order("susu", messages)};
    struct script script = {.does = 0};
    const struct fm_tool_template from = {.render = render, .argument = &script};
    static const char *const expected[] = {"s(A)u(B)s(C)u(D)", "s(A\n\nC)u(B)u(D)", "s(A\n\nC)u(B\n\nD)",
                                           "u(A\n\nC\n\nB\n\nD)"};
    struct fm_turns_memory memory = {.next = 0};
    struct fm_turns turns;
    struct fm_error error = {.code = FM_OK};
    assert_int_equal(fm_turns_init(&turns, &chat, &memory, &error), FM_OK);
    for (size_t i = 0; i < COUNT(expected); i++) {
        struct transcript log = {.len = 0};
        assert_int_equal(fm_turns_next(&turns, &from, &error), FM_OK);
        note_chat(&log, &turns.chat);
        assert_string_equal(log.text, expected[i]);
    }
    assert_int_equal(fm_turns_next(&turns, &from, &error), FM_INVALID_REQUEST);
    assert_int_equal(error.code, FM_OK);
    fm_turns_free(&turns);
}

/*
 * Only one conversation of each shape is checked. If the template refuses a later one, that one gets another
 * arrangement.
 */
static void a_known_shape(void **state) {
    (void)state;
    static const char *const orders[] = {"sus", "sus", "suu", "sus"};
    static const size_t renders[] = {2, 2, 3, 3};
    struct script script = {.does = SYSTEM_FIRST};
    const struct fm_tool_template from = {.render = render, .argument = &script};
    struct fm_turns_memory memory = {.next = 0};
    struct fm_turns turns;
    struct fm_error error = {.code = FM_OK};
    for (size_t i = 0; i < COUNT(orders); i++) {
        struct fm_chat_message messages[26];
        const struct fm_chat chat = {.messages = messages, .count = write_order(orders[i], messages)};
        struct transcript log = {.len = 0};
        assert_int_equal(fm_turns_init(&turns, &chat, &memory, &error), FM_OK);
        assert_int_equal(fm_turns_next(&turns, &from, &error), FM_OK);
        note_chat(&log, &turns.chat);
        assert_string_equal(log.text, i == 2 ? "s(A)u(B)u(C)" : "s(A\n\nC)u(B)");
        assert_int_equal(script.renders, renders[i]);
        if (i == 3) {
            script.does = NO_SYSTEM;
            assert_int_equal(fm_turns_next(&turns, &from, &error), FM_OK);
            assert_int_equal(turns.chat.count, 1);
        }
        fm_turns_free(&turns);
    }
}

/* Images and control tokens keep their place in their texts; an image without a text also counts as content. */
static void images_and_thoughts(void **state) {
    (void)state;
    const struct fm_chat_image first = {.at = 1, .index = 0};
    const struct fm_chat_image more[] = {{.at = 0, .index = 1}, {.at = 2, .index = 2}};
    const struct fm_chat_message messages[] = {
        {.role = "system", .content = "Be kind.", .content_len = 8},
        {.role = "user", .content = "ab", .content_len = 2, .controls_at = 1, .controls_len = 1, .images = &first,
         .image_count = 1},
        {.role = "user", .content = "", .images = more, .image_count = 1},
        {.role = "user", .content = "cd", .content_len = 2, .images = more, .image_count = 2},
        {.role = "assistant", .content = "e", .content_len = 1, .reasoning = "one", .reasoning_len = 3},
        {.role = "assistant", .content = "f", .content_len = 1, .reasoning = "two", .reasoning_len = 3},
    };
    const struct fm_chat chat = {.messages = messages, .count = COUNT(messages)};
    struct script script = {.does = ALTERNATES | NO_SYSTEM};
    const struct fm_tool_template from = {.render = render, .argument = &script};
    static const struct fm_chat_image expected[] = {{11, 0}, {12, 1}, {14, 1}, {16, 2}};
    struct fm_turns_memory memory = {.next = 0};
    struct fm_turns turns;
    struct fm_error error;
    assert_int_equal(fm_turns_init(&turns, &chat, &memory, &error), FM_OK);
    assert_int_equal(fm_turns_next(&turns, &from, &error), FM_OK);
    assert_int_equal(turns.chat.count, 3);
    const struct fm_chat_message *user = &turns.chat.messages[0];
    assert_int_equal(user->content_len, 16);
    assert_memory_equal(user->content, "Be kind.\n\nab\n\ncd", 16);
    assert_int_equal(user->image_count, COUNT(expected));
    assert_memory_equal(user->images, expected, sizeof expected);
    assert_int_equal(user->controls_at, 11);
    assert_int_equal(user->controls_len, 1);
    const struct fm_chat_message *assistant = &turns.chat.messages[1];
    assert_int_equal(assistant->reasoning_len, 8);
    assert_memory_equal(assistant->reasoning, "one\n\ntwo", 8);
    fm_turns_free(&turns);
}

#ifdef WRAPPED

static enum fm_code arrange(void) {
    struct fm_chat_message messages[26];
    const struct fm_chat chat = {.messages = messages, .count = write_order("susuac", messages)};
    struct script script = {.does = ALTERNATES | NO_SYSTEM};
    const struct fm_tool_template from = {.render = render, .argument = &script};
    struct fm_turns_memory memory = {.next = 0};
    struct fm_turns turns;
    struct fm_error error;
    enum fm_code code = fm_turns_init(&turns, &chat, &memory, &error);
    if (code == FM_OK) {
        code = fm_turns_next(&turns, &from, &error);
        fm_turns_free(&turns);
    }
    return code;
}

static void out_of_memory(void **state) {
    (void)state;
    int refused_ones = 0;
    for (allocations_left = 0;; refused_ones++) {
        int before = allocations_left;
        enum fm_code code = arrange();
        if (allocations_left >= 0) {
            assert_int_equal(code, FM_OK);
            break;
        }
        assert_int_equal(code, FM_INTERNAL);
        allocations_left = before + 1;
    }
    allocations_left = -1;
    assert_true(refused_ones > 20);
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_it_is),
        cmocka_unit_test(joined),
        cmocka_unit_test(joined_calls),
        cmocka_unit_test(parted_calls),
        cmocka_unit_test(with_users),
        cmocka_unit_test(none),
        cmocka_unit_test(the_next),
        cmocka_unit_test(a_known_shape),
        cmocka_unit_test(images_and_thoughts),
#ifdef WRAPPED
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
