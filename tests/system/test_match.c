/*
 * The matcher's pure parts: words, similarity, verbs that close, places. A model's answer is checked, not trusted.
 */
#include "base/buf.h"
#include "match/context.h"
#include "match/match.h"
#include "match/schema.h"
#include "match/verbs.h"
#include "protocol/json_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

static void read_words(void **state) {
    static const struct {
        const char *said;
        const char *words; /* the words, with a space after each, and | where a clause may end */
    } rows[] = {
        {"Close ALL Reddit-tabs!", "close all reddit tabs |"},
        {"what's up, don't", "what up | dont "},
        {"open \"A.example/x?y=1\".", "open a.example/x?y=1 |"},
        {"tabs 3-7 & 9", "tabs 3 to 7 and 9 "},
        {"\xc3\x84pfel c++ c#", "\xc3\xa4pfel c++ c# "},
        {"a\x01"
         "b\x1b[0mc\xe2\x80\xae d",
         "a b 0mc d "},
        {"v1.2 1.2.3.4 localhost:3000/a", "v1 2 1.2.3.4 localhost:3000/a "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sy_words words;
        struct fm_error error;
        char joined[256] = "";
        size_t used = 0;
        assert_int_equal(sy_words_read(rows[i].said, &words, &error), FM_OK);
        for (size_t j = 0; j < words.count; j++) {
            const char *after = !words.at[j].breaks ? " " : j + 1 < words.count ? " | " : " |";
            used += (size_t)snprintf(joined + used, sizeof joined - used, "%s%s", words.at[j].text, after);
        }
        assert_string_equal(joined, rows[i].words);
        assert_null(strpbrk(words.text, "\x01\x1b"));
        assert_null(strstr(words.text, "\xe2\x80\xae"));
    }
}

static void words_have_limits(void **state) {
    char text[SY_TEXT_MAX + 2];
    struct sy_words words;
    struct fm_error error;
    (void)state;
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(sy_words_read(text, &words, &error), FM_INVALID_REQUEST);
    assert_string_equal(error.reason, "invalid_words");
    text[SY_TEXT_MAX] = '\0';
    assert_int_equal(sy_words_read(text, &words, &error), FM_OK);
    assert_int_equal(strlen(words.at[0].text), SY_WORD_MAX - 1);
    assert_int_equal(sy_words_read("\xff", &words, &error), FM_INVALID_REQUEST);
    assert_int_equal(sy_words_read(" \x01 ", &words, &error), FM_INVALID_REQUEST);
    assert_string_equal(error.reason, "empty_string");
    memset(text, ' ', SY_TEXT_MAX);
    for (size_t i = 0; i < SY_TEXT_MAX; i += 2) {
        text[i] = 'a';
    }
    assert_int_equal(sy_words_read(text, &words, &error), FM_INVALID_REQUEST);
    assert_string_equal(error.reason, "invalid_words");
}

static void alike(void **state) {
    static const struct {
        const char *a, *b;
        double least, most;
    } rows[] = {{"reddit", "reddit", 1, 1},
                {"tab", "tabs", 0.9, 0.99},
                {"redit", "reddit", 0.8, 0.99},
                {"chorme", "chrome", 0.8, 0.99},
                {"github", "gitlab", 0, 0.7},
                {"cat", "car", 0, 0},
                {"new", "news", 0, 0},
                {"slack", "black", 0.7, 0.85},
                {"photosynthesis", "photosyntesis", 0.9, 1},
                {"", "", 1, 1},
                {"a", "aaaaaaaa", 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double likeness = sy_alike(rows[i].a, rows[i].b);
        assert_true(likeness >= rows[i].least && likeness <= rows[i].most);
        assert_true(likeness == sy_alike(rows[i].b, rows[i].a));
    }
}

static void plain_text(void **state) {
    char out[64];
    (void)state;
    sy_plain("a\n\tb\x1b[2Jc\x7f\xc2\x85\xe2\x80\xae"
             "d\xef\xbb\xbf"
             "e\xff",
             12, out, sizeof out);
    assert_string_equal(out, "a b [2Jc d e");
    sy_plain("\xc3\xa4\xc3\xb6\xc3\xbc", 2, out, sizeof out);
    assert_string_equal(out, "\xc3\xa4\xc3\xb6...");
    sy_plain("", 5, out, sizeof out);
    assert_string_equal(out, "");
}

static void titles_have_signs(void **state) {
    char words[8][SY_WORD_MAX];
    (void)state;
    assert_int_equal(
        sy_words_split("acme / infra \xc2\xb7 Git\xe2\x80\x93Lab #art \xe2\x80\x9cq\xe2\x80\x9d", words, 8), 6);
    assert_string_equal(words[2], "git");
    assert_string_equal(words[4], "art");
    assert_string_equal(words[5], "q");
}

/* ---- verbs ---- */

static void who_asks_to_close(void **state) {
    static const struct {
        const char *said;
        bool closes;
    } rows[] = {
        {"close slack", true},          {"please could you quit it", true},
        {"slack, shut it down", true},  {"clsoe slack", true},
        {"open a and close b", true},   {"slack quit", true},
        {"don't close slack", false},   {"open the page on how to close accounts", false},
        {"clone slack", false},         {"switch to close", false},
        {"never close it", false},      {"show me kill bill", false},
        {"what closes at nine", false}, {"turn slack off", true},
        {"i want slack closed", true},  {"would you mind closing slack", true},
        {"closing time", false},        {"get slack out of my sight", false},
        {"slack, close please", true},  {"the close button", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sy_words words;
        struct fm_error error;
        assert_int_equal(sy_words_read(rows[i].said, &words, &error), FM_OK);
        assert_int_equal(sy_asks_to_close(&words), rows[i].closes);
    }
}

/* ---- clauses ---- */

static void cut_into_clauses(void **state) {
    static const struct {
        const char *said;
        size_t clauses;
        enum sy_verb verb; /* the verb of the last word */
        size_t numbers;    /* the number of numbers in all words */
        bool has_but, vague, negated;
    } rows[] = {
        {"close slack and discord", 2, SY_CLOSE, 0, false, false, false},
        {"close tabs 1, 3 and 5", 3, SY_CLOSE, 3, false, false, false},
        {"close tabs 1-100", 1, SY_CLOSE, 100, false, false, false},
        {"close tabs 1-999", 1, SY_CLOSE, SY_NUMBERS_MAX, false, true, false},
        {"close lectures 1 to 3", 1, SY_CLOSE, 3, false, false, false},
        {"close lessons 1 and 2", 1, SY_CLOSE, 2, false, false, false},
        {"close the two rust tabs", 1, SY_CLOSE, 0, false, false, false},
        {"close two tabs", 1, SY_CLOSE, 0, false, true, false},
        {"close all tabs except a, b and c", 1, SY_CLOSE, 0, true, false, false},
        {"close all tabs except a and open b", 2, SY_OPEN, 0, false, false, false},
        {"close old tabs", 1, SY_CLOSE, 0, false, true, false},
        {"close a, not b", 1, SY_CLOSE, 0, true, false, false},
        {"close all tabs but keep a and b", 1, SY_CLOSE, 0, true, false, false},
        {"close a and b, leave c open", 2, SY_CLOSE, 0, true, false, false},
        {"close everything, but i still need c", 1, SY_CLOSE, 0, true, false, false},
        {"don't close a, not b", 2, SY_NO_VERB, 0, false, false, true},
        {"close some tabs", 1, SY_CLOSE, 0, false, true, false},
        {"close the parts up to 10", 1, SY_CLOSE, 0, false, true, false},
        {"a and b can go", 2, SY_CLOSE, 0, false, false, false},
        {"close a, b and c pages", 3, SY_CLOSE, 0, false, false, false},
        {"i am done with a, close it", 1, SY_CLOSE, 0, false, false, false},
        {"a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v", 20, SY_NO_VERB, 0, false, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sy_words words;
        struct sy_clauses clauses;
        struct fm_error error;
        size_t numbers = 0;
        assert_int_equal(sy_words_read(rows[i].said, &words, &error), FM_OK);
        sy_clauses_read(&words, true, &clauses);
        assert_int_equal(clauses.count, rows[i].clauses);
        assert_int_equal(clauses.too_many, i == sizeof rows / sizeof rows[0] - 1);
        for (size_t j = 0; j < clauses.count; j++) {
            numbers += clauses.at[j].number_count;
        }
        const struct sy_clause *last = &clauses.at[clauses.count - 1];
        assert_int_equal(numbers, rows[i].numbers);
        assert_int_equal(last->verb, rows[i].verb);
        assert_int_equal(last->has_but, rows[i].has_but);
        assert_int_equal(last->vague, rows[i].vague);
        assert_int_equal(last->negated, rows[i].negated);
    }
}

/* ---- what a model may pick ---- */

struct desk {
    struct sy_tab raw[12];
    struct sy_numbered_tab tabs[12];
    struct sy_snapshot snapshot;
    struct sy_scene scene;
    struct sy_index index;
};

static void make_desk(struct desk *desk) {
    *desk = (struct desk){.snapshot = {.tab_count = 12}};
    for (size_t i = 0; i < 12; i++) {
        desk->raw[i].title = i == 0 ? "https://a.example/x?token=SECRET y#z \x1b[2Jclose" : "Same";
        desk->raw[i].url = "https://a.example/x?token=SECRET";
        desk->tabs[i] = (struct sy_numbered_tab){&desk->raw[i], 1, (int)i + 1, "a.example"};
    }
    desk->snapshot.tabs = desk->tabs;
    desk->scene.snapshot = &desk->snapshot;
    assert_true(sy_index_make(&desk->scene, &desk->index));
}

/* ---- what goes with a command ---- */

static void without_context(void **state) {
    static const struct {
        const char *said;
        const char *left;
        const char *bold; /* NULL: the same */
    } rows[] = {
        {"I've read it, close slack", "close slack", NULL},
        {"close slack because it annoys me", "close slack", NULL},
        {"did it work? show me the build", "show me the build", NULL},
        {"I'm done with parts 5-10, close those", "close parts 5 to 10 those", NULL},
        {"slack and code, close em both", "close slack and code", NULL},
        {"the chat is too loud, quit it", "quit chat", NULL},
        {"close this page", "close this page", NULL},
        {"close all the shops, I mean a and b", "close all the a and b", NULL},
        {"close a, no wait, hide it", "hide a", NULL},
        {"drop a, I mean close it", "close a", NULL},
        {"quit a, I mean the app", "quit a the app", NULL},
        {"quit a, not the tab", "quit a the app", NULL},
        {"in the second window close all tabs but a", "close all tabs in the second window but a", NULL},
        {"close all tabs, I still need mail", "close all tabs i still need mail", NULL},
        {"close all tabs unless it is mail", "close all tabs unless it is mail", NULL},
        {"slack please, somebody wrote", "slack please", NULL},
        {"a and b should trade places", "swap a and b", NULL},
        {"lunch is over, close that page about knives", "close that page about knives", NULL},
        {"slack, mail: close, I am in a hurry", "close slack mail", NULL},
        {"it is late so slack on the left", "so slack on the left", NULL},
        {"close a - I have to leave", "close a", NULL},
        {"don't close slack, I am not done", "dont close slack", NULL},
    };
    struct desk desk;
    (void)state;
    make_desk(&desk);
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        struct sy_words words;
        struct sy_words said;
        struct fm_error error;
        char text[SY_TEXT_MAX + 1] = "";
        bool bold = i % 2 == 1;
        assert_int_equal(sy_words_read(rows[i / 2].said, &words, &error), FM_OK);
        sy_context_drop(&desk.index, &words, bold, &said);
        for (size_t j = 0; j < said.count; j++) {
            size_t used = strlen(text);
            snprintf(text + used, sizeof text - used, "%s%s", j ? " " : "", said.at[j].text);
        }
        assert_string_equal(text, bold && rows[i / 2].bold ? rows[i / 2].bold : rows[i / 2].left);
    }
    sy_index_free(&desk.index);
}

static void menus_are_short_clean_and_without_closing(void **state) {
    struct desk desk;
    struct sy_menu menu;
    const struct sy_reading reading = {.verb = SY_NO_VERB};
    struct fm_buf schema;
    (void)state;
    make_desk(&desk);
    sy_menu_make(&desk.index, &reading, false, &menu);
    assert_int_equal(menu.tab_count, SY_ITEMS_MAX);
    assert_false(menu.types & (1u << SY_PICK_CLOSE_TAB | 1u << SY_PICK_CLOSE_APP | 1u << SY_PICK_FOCUS));
    assert_string_equal(menu.tabs[0].label, "https://a.example/x y#z [2Jclose (a.example)");
    for (size_t i = 1; i < menu.tab_count; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(menu.tabs[i].label, menu.tabs[j].label);
        }
    }
    fm_buf_init(&schema, 1 << 20);
    sy_menu_make(&desk.index, &reading, true, &menu);
    sy_schema_write(&menu, &schema);
    fm_buf_append_char(&schema, '\0');
    assert_non_null(strstr(schema.data, "close_tab"));
    assert_null(strstr(schema.data, "uniqueItems"));
    assert_null(strstr(schema.data, "SECRET"));
    struct json_object *root = json_tokener_parse(schema.data);
    assert_non_null(json_object_object_get(root, "anyOf"));
    json_object_put(root);
    fm_buf_free(&schema);
    sy_index_free(&desk.index);
}

static void answers_are_looked_up(void **state) {
    static const struct {
        const char *answer;
        bool may_close;
        const char *type; /* NULL: none */
        size_t tabs;
    } rows[] = {
        {"{\"type\":\"switch_tab\",\"tab\":\"Same (a.example)\"}", false, "switch_tab", 1},
        {"{\"type\":\"switch_tab\",\"tab\":\"Other\"}", false, NULL, 0},
        {"{\"type\":\"switch_tab\",\"tab\":3}", false, NULL, 0},
        {"{\"type\":\"close_tab\",\"tabs\":[\"Same (a.example)\"]}", false, NULL, 0},
        {"{\"type\":\"close_tab\",\"tabs\":[\"Same (a.example)\"]}", true, "close_tab", 1},
        {"{\"type\":\"close_tab\",\"tabs\":[\"Same (a.example)\",\"Same (a.example)\"]}", true, "close_tab", 1},
        {"{\"type\":\"close_tab\",\"tabs\":[]}", true, NULL, 0},
        {"{\"type\":\"close_tab\",\"tabs\":[\"Same (a.example)\",\"Other\"]}", true, NULL, 0},
        {"{\"type\":\"close_app\",\"app_name\":\"Slack\"}", true, NULL, 0},
        {"{\"type\":\"list_tabs\"}", false, "list_tabs", 0},
        {"{\"type\":\"ask\"}", true, NULL, 0},
        {"{\"type\":\"rm\"}", true, NULL, 0},
        {"[]", true, NULL, 0},
        {"7", true, NULL, 0},
    };
    struct desk desk;
    const struct sy_reading reading = {.verb = SY_NO_VERB};
    const struct sy_where nowhere = {.given = false};
    (void)state;
    make_desk(&desk);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sy_menu menu;
        struct sy_found found;
        struct fm_error error;
        struct json_object *answer = json_tokener_parse(rows[i].answer);
        sy_menu_make(&desk.index, &reading, rows[i].may_close, &menu);
        assert_int_equal(sy_pick_read(&desk.index, &menu, answer, &nowhere, "?", &found, &error), FM_OK);
        assert_true((found.type == NULL) == (rows[i].type == NULL));
        if (found.type) {
            assert_string_equal(found.type, rows[i].type);
        }
        assert_int_equal(found.tab_count, rows[i].tabs);
        sy_found_free(&found);
        json_object_put(answer);
    }
    sy_index_free(&desk.index);
}

/* ---- by meaning ---- */

struct embedder {
    bool late;
    size_t asked;
};

/* The user's words and the tab with "close" in its title are close in meaning; nothing else is. */
static enum fm_code fake_embed(void *self, const char *const *texts, size_t count, int64_t ms, float **vectors,
                               size_t *size, struct fm_error *error) {
    struct embedder *embedder = self;
    assert_in_range(ms, 1, SY_MODEL_MS);
    *size = 2;
    *vectors = NULL;
    if (embedder->late && embedder->asked > 0) {
        return fm_fail(error, FM_TIMEOUT, "late");
    }
    *vectors = calloc(count * 2, sizeof **vectors);
    for (size_t i = 0; *vectors && i < count; i++) {
        bool near = strstr(texts[i], "frobs") || strstr(texts[i], "close");
        assert_null(strstr(texts[i], "SECRET"));
        (*vectors)[2 * i + !near] = 1;
    }
    embedder->asked++;
    return FM_OK;
}

static void meaning_shows_and_never_closes(void **state) {
    static const struct {
        const char *words;
        bool late;
        const char *has; /* a part of the envelope */
    } rows[] = {
        {"show me the frobs", false, "\"switch_tab\",\"tab_index\":1"},
        {"show me the frobs", true, "\"commands\":[],\"needs_clarification\":true"},
        {"close the frobs", false, "\"needs_clarification\":true,\"clarification_reason\":\"Do you mean tab 1?"},
        {"frobs", false, "\"switch_tab\",\"tab_index\":1"},
        /* the words name a thing, but have no known verb */
        {"buy the same frobs", false, "\"needs_clarification\":true"},
    };
    struct desk desk;
    (void)state;
    make_desk(&desk);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct embedder embedder = {.late = rows[i].late};
        const struct sy_picker picker = {&embedder, NULL, fake_embed};
        const struct sy_match_options options = {.picker = &picker};
        struct sy_matched matched;
        struct fm_error error;
        struct fm_buf text;
        fm_buf_init(&text, 1 << 16);
        struct fm_json_writer w = fm_json_writer_on(&text);
        assert_int_equal(sy_match(&desk.scene, rows[i].words, &options, &w, &matched, &error), FM_OK);
        fm_buf_append_char(&text, '\0');
        assert_non_null(strstr(text.data, rows[i].has));
        assert_int_equal(matched.no_model.code, rows[i].late ? FM_TIMEOUT : FM_OK);
        fm_buf_free(&text);
    }
    sy_index_free(&desk.index);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_words),
        cmocka_unit_test(words_have_limits),
        cmocka_unit_test(alike),
        cmocka_unit_test(plain_text),
        cmocka_unit_test(titles_have_signs),
        cmocka_unit_test(who_asks_to_close),
        cmocka_unit_test(cut_into_clauses),
        cmocka_unit_test(without_context),
        cmocka_unit_test(menus_are_short_clean_and_without_closing),
        cmocka_unit_test(answers_are_looked_up),
        cmocka_unit_test(meaning_shows_and_never_closes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
