/* The buffer: its maximum, and failures that stay. */
#include "base/buf.h"
#include "wire.h"

static void starts_empty(void **state) {
    (void)state;
    struct fm_buf buf;
    fm_buf_init(&buf, 100);
    assert_null(buf.data);
    assert_int_equal(buf.len, 0);
    assert_int_equal(buf.cap, 0);
    assert_false(buf.failed);
    fm_buf_append(&buf, NULL, 0); /* appending nothing is allowed */
    assert_false(buf.failed);
    assert_null(buf.data);
    fm_buf_free(&buf);
}

static void grows(void **state) {
    (void)state;
    struct fm_buf buf;
    fm_buf_init(&buf, 100000);
    for (int i = 0; i < 10000; i++) {
        fm_buf_append(&buf, "0123456789", 10);
        assert_true(buf.cap <= buf.max);
    }
    assert_false(buf.failed);
    assert_int_equal(buf.len, 100000);
    for (size_t i = 0; i < buf.len; i++) {
        assert_int_equal(buf.data[i], '0' + (char)(i % 10));
    }
    fm_buf_free(&buf);
    assert_null(buf.data);
    assert_int_equal(buf.max, 100000);
}

/* An append that fits is taken whole; one that does not fit leaves the contents unchanged, and later ones fail too. */
static void maximum(void **state) {
    (void)state;
    static const struct {
        size_t max, first, second;
        bool first_fits, second_fits;
    } rows[] = {
        {0, 0, 0, true, true},      {0, 1, 0, false, true},      {10, 10, 0, true, true},  {10, 11, 0, false, true},
        {10, 4, 6, true, true},     {10, 4, 7, true, false},     {10, 10, 1, true, false}, {10, 11, 1, false, false},
        {300, 256, 44, true, true}, {300, 256, 45, true, false},
    };
    static const char text[512] = {'a'};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_buf buf;
        fm_buf_init(&buf, rows[i].max);
        fm_buf_append(&buf, text, rows[i].first);
        assert_int_equal(!buf.failed, rows[i].first_fits);
        size_t len = buf.len;
        assert_int_equal(len, rows[i].first_fits ? rows[i].first : 0);
        fm_buf_append(&buf, text, rows[i].second);
        assert_int_equal(!buf.failed, rows[i].first_fits && rows[i].second_fits);
        assert_int_equal(buf.len, buf.failed ? len : len + rows[i].second);
        assert_true(buf.cap <= rows[i].max);
        fm_buf_free(&buf);
    }
}

static void failure_stays_until_reset(void **state) {
    (void)state;
    struct fm_buf buf;
    fm_buf_init(&buf, 8);
    fm_buf_append_str(&buf, "abcd");
    fm_buf_append_str(&buf, "efghi");
    assert_true(buf.failed);
    fm_buf_append_char(&buf, 'x'); /* the character would fit, but the buffer has failed before */
    assert_false(fm_buf_reserve(&buf, 1));
    assert_true(buf.failed);
    assert_int_equal(buf.len, 4);
    assert_memory_equal(buf.data, "abcd", 4);

    size_t cap = buf.cap;
    fm_buf_reset(&buf);
    assert_false(buf.failed);
    assert_int_equal(buf.len, 0);
    assert_int_equal(buf.cap, cap);
    fm_buf_append_str(&buf, "12345678");
    assert_false(buf.failed);
    assert_memory_equal(buf.data, "12345678", 8);
    fm_buf_free(&buf);
}

static void reserve(void **state) {
    (void)state;
    struct fm_buf buf;
    fm_buf_init(&buf, 1000);
    fm_buf_append_str(&buf, "abc");
    assert_true(fm_buf_reserve(&buf, 997));
    assert_true(buf.cap - buf.len >= 997);
    assert_int_equal(buf.len, 3);
    assert_memory_equal(buf.data, "abc", 3);
    assert_false(fm_buf_reserve(&buf, 998));
    assert_true(buf.failed);
    fm_buf_reset(&buf);
    fm_buf_append_str(&buf, "abc");
    assert_false(fm_buf_reserve(&buf, SIZE_MAX - 2)); /* no wrap-around */
    fm_buf_free(&buf);
}

#ifdef WRAPPED
/* Replaces realloc, because a sanitizer's realloc ends the program at an extreme size. */
void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);

void *__wrap_realloc(void *block, size_t size) {
    return size > PTRDIFF_MAX / 4 ? NULL : __real_realloc(block, size);
}
#endif

/* If the system refuses an allocation, only the buffer fails. */
static void no_memory(void **state) {
    (void)state;
    struct fm_buf buf;
    fm_buf_init(&buf, SIZE_MAX);
    fm_buf_append_str(&buf, "kept");
    assert_false(fm_buf_reserve(&buf, PTRDIFF_MAX / 2));
    assert_true(buf.failed);
    assert_int_equal(buf.len, 4);
    assert_memory_equal(buf.data, "kept", 4);
    fm_buf_free(&buf);
}

static void drop_front(void **state) {
    (void)state;
    static const struct {
        size_t drop;
        const char *left;
    } rows[] = {{0, "abcdef"}, {1, "bcdef"}, {5, "f"}, {6, ""}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_buf buf;
        fm_buf_init(&buf, 100);
        fm_buf_append_str(&buf, "abcdef");
        fm_buf_drop_front(&buf, rows[i].drop);
        assert_int_equal(buf.len, strlen(rows[i].left));
        assert_memory_equal(buf.data, rows[i].left, buf.len);
        fm_buf_free(&buf);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_empty), cmocka_unit_test(grows),
        cmocka_unit_test(maximum),      cmocka_unit_test(failure_stays_until_reset),
        cmocka_unit_test(reserve),      cmocka_unit_test(no_memory),
        cmocka_unit_test(drop_front),
    };
    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
