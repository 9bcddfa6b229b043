/* Texts as a search compares them: tables of texts that are the same, and of what an index gets. */
#include "loop.h"

#include "base/buf.h"
#include "text/fold.h"

struct row {
    const char *text;
    const char *folded;
};

static void assert_folded(const struct row *row, bool (*fold)(const char *text, size_t len, struct fm_buf *out)) {
    struct fm_buf out;
    fm_buf_init(&out, 4096);
    assert_true(fold(row->text, strlen(row->text), &out));
    fm_buf_append_char(&out, '\0');
    assert_string_equal(out.data, row->folded);
    fm_buf_free(&out);
}

static void folding(void **state) {
    static const struct row rows[] = {
        {"Hello", "hello"},
        {"МОСКВА", "москва"},
        {"ΑΘΉΝΑ", "αθηνα"},
        {"Straße", "strasse"},
        {"CAFÉ", "cafe"},
        {"cafe\u0301", "cafe"}, /* decomposed */
        {"Ｆｕｌｌ　ｗｉｄｔｈ", "full width"},
        {"ｶﾞｷﾞ", "ガギ"},
        {"か\u3099", "が"},           /* a mark that makes another sound is no accent */
        {"\u1112\u1161\u11ab", "한"}, /* Korean, decomposed */
        {"ﬁne ①", "fine 1"},
        {"हिन्दी", "हिन्दी"},
        {"a\u200bb", "ab"}, /* what can't be seen */
        {"\xff\xfe", "\xff\xfe"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_folded(&rows[i], gw_fold);
    }
}

static void pairs(void **state) {
    static const struct row rows[] = {
        {"The Car", "the car"},
        {"東京都", " 東京 京都 都"},
        {"猫", " 猫"},
        {"猫だ。犬", " 猫だ だ 。 犬"},
        {"Windows™ 11", "windows    11"},
        {"ㅋㅋㅋ", " ᄏᄏ ᄏᄏ ᄏ"},
        {"iPhoneを買う", "iphone を買 買う う"},
        {"สวัสดี", " สว วั ัส สด ดี ี"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_folded(&rows[i], gw_fold_for_index);
    }
}

static void places(void **state) {
    static const char text[] = "Straße ＡＢ か\u3099x";
    (void)state;
    assert_int_equal(gw_fold_place(text, strlen(text), 0), 0);
    assert_int_equal(gw_fold_place(text, strlen(text), strlen("strasse a")), strlen("Straße Ａ"));
    assert_int_equal(gw_fold_place(text, strlen(text), 1000), strlen(text));
    assert_int_equal(gw_fold_place(text, strlen(text), strlen("strasse ab が")), strlen(text) - 1);
    static const char apart[] = "ｶﾞ\u1112\u1161\u11abx";
    assert_int_equal(gw_fold_place(apart, strlen(apart), strlen("ガ한")), strlen(apart) - 1);
}

static void too_long(void **state) {
    struct fm_buf out;
    (void)state;
    fm_buf_init(&out, 8);
    assert_false(gw_fold("abcdefghi", 9, &out));
    fm_buf_free(&out);
    fm_buf_init(&out, 8);
    assert_false(gw_fold("ああああ", 12, &out));
    fm_buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(folding), cmocka_unit_test(pairs), cmocka_unit_test(places),
                                       cmocka_unit_test(too_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
