/* Chunks, questions and merging two lists. */
#include "loop.h"

#include "base/utf8.h"
#include "memory/chunks.h"
#include "memory/query.h"
#include "text/fold.h"

/* ---- chunks ---- */

static char *random_text(size_t *len) {
    static const char *const parts[] = {"word ",    "longer",           " ", "\n", "\n\n", ". ",
                                        "\xc3\xa9", "\xf0\x9f\x98\x80", "x"};
    size_t count = (size_t)rand() % 600;
    char *text = malloc(8 * count + 1);
    *len = 0;
    for (size_t i = 0; i < count; i++) {
        char number[12];
        snprintf(number, sizeof number, "%zu", i); /* makes all parts of the text different */
        const char *part = i % 3 ? parts[rand() % 9] : number;
        memcpy(text + *len, part, strlen(part));
        *len += strlen(part);
    }
    text[*len] = '\0';
    return text;
}

static bool is_space(char c) {
    return c == ' ' || c == '\n';
}

/* Every character except blanks is in a chunk, in order; chunks are UTF-8 and within their maximum length. */
static void nothing_is_lost(void **state) {
    (void)state;
    srand(23);
    for (int round = 0; round < 2000; round++) {
        struct gw_chunks chunks = {.count = 0};
        size_t len;
        size_t max = 16 + (size_t)rand() % 200;
        size_t overlap = (size_t)rand() % 60;
        size_t covered = 0;
        char *text = random_text(&len);
        assert_true(gw_chunks_cut(&chunks, text, len, max, overlap));
        for (size_t i = 0; i < chunks.count; i++) {
            const struct gw_chunk *chunk = &chunks.items[i];
            assert_in_range(chunk->len, 1, max);
            assert_true(fm_utf8_valid(chunk->text, chunk->len));
            size_t from = covered > max ? covered - max : 0;
            const char *at = memmem(text + from, len - from, chunk->text, chunk->len);
            assert_non_null(at);
            while (covered < len && is_space(text[covered])) {
                covered++;
            }
            if ((size_t)(at - text) > covered) { /* an earlier place is in the overlap, or has the same text */
                fail_msg("a gap before chunk %zu of %s", i, text);
            }
            size_t end = (size_t)(at - text) + chunk->len;
            covered = end > covered ? end : covered;
        }
        while (covered < len && is_space(text[covered])) {
            covered++;
        }
        assert_int_equal(covered, len);
        gw_chunks_free(&chunks);
        free(text);
    }
}

static void more_text_keeps_the_first_chunks(void **state) {
    (void)state;
    srand(29);
    for (int round = 0; round < 500; round++) {
        struct gw_chunks before = {.count = 0};
        struct gw_chunks after = {.count = 0};
        size_t len;
        char *text = random_text(&len);
        size_t part = fm_utf8_whole_prefix(text, len ? (size_t)rand() % len : 0);
        assert_true(gw_chunks_cut(&before, text, part, 100, 20));
        assert_true(gw_chunks_cut(&after, text, len, 100, 20));
        for (size_t i = 0; i + 1 < before.count; i++) {
            assert_string_equal(before.items[i].hash, after.items[i].hash);
        }
        gw_chunks_free(&before);
        gw_chunks_free(&after);
        free(text);
    }
}

static void ends_at_the_best_place(void **state) {
    static const struct {
        const char *text;
        const char *first;
    } rows[] = {
        {"aaa bbb ccc ddd.\n\neee fff ggg hhh", "aaa bbb ccc ddd."}, /* a paragraph is preferred to a word */
        {"aaa bbb ccc d. e fff ggg hhh iii", "aaa bbb ccc d."},      /* a sentence is preferred to a word */
        {"aaa bbb ccc ddd eee fff", "aaa bbb ccc ddd"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaa"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gw_chunks chunks = {.count = 0};
        assert_true(gw_chunks_cut(&chunks, rows[i].text, strlen(rows[i].text), 18, 0));
        assert_int_equal(chunks.items[0].len, strlen(rows[i].first));
        assert_memory_equal(chunks.items[0].text, rows[i].first, chunks.items[0].len);
        gw_chunks_free(&chunks);
    }
}

static void the_overlap_is_in_both(void **state) {
    struct gw_chunks chunks = {.count = 0};
    const char *text = "one two three four five six seven eight nine ten";
    (void)state;
    assert_true(gw_chunks_cut(&chunks, text, strlen(text), 24, 10));
    assert_memory_equal(chunks.items[0].text, "one two three four five", 23);
    assert_memory_equal(chunks.items[1].text, "four five six", 13);
    gw_chunks_free(&chunks);
}

static void halves(void **state) {
    struct gw_chunks chunks = {.count = 0};
    char text[400];
    const float vector[2] = {1, 0};
    (void)state;
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = i % 10 == 9 ? ' ' : (char)('a' + i / 10 % 26);
    }
    assert_true(gw_chunks_cut(&chunks, text, sizeof text, 400, 0));
    assert_int_equal(chunks.count, 1);
    size_t len = chunks.items[0].len;
    assert_true(gw_chunks_set_vector(&chunks, 0, vector, 2));
    assert_false(gw_chunks_set_vector(&chunks, 0, vector, 1));
    assert_true(gw_chunks_halve(&chunks, 0));
    assert_int_equal(chunks.count, 2);
    assert_int_equal(chunks.items[0].len + chunks.items[1].len, len);
    assert_null(chunks.items[0].vector);
    assert_true(gw_chunks_halve(&chunks, 0));
    assert_true(gw_chunks_halve(&chunks, 2));
    assert_int_equal(chunks.count, 4);
    for (int i = 0; i < 100; i++) { /* halves the chunks until they are too short */
        while (gw_chunks_halve(&chunks, (size_t)i % chunks.count)) {
        }
    }
    for (size_t i = 0; i < chunks.count; i++) {
        assert_in_range(chunks.items[i].len, 1, 2 * GW_CHUNK_LEAST);
    }
    gw_chunks_free(&chunks);
}

static void hashes(void **state) {
    char hash[GW_HASH_LEN + 1];
    (void)state;
    gw_hash("abc", 3, hash); /* FIPS 180-2, B.1 */
    assert_string_equal(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/* ---- questions ---- */

static void questions(void **state) {
    static const struct {
        const char *question;
        const char *query;
    } rows[] = {
        {"Where is the blue car?", "\"blue\" OR \"car\""},
        {"what is this", "\"what\" OR \"is\" OR \"this\""}, /* there is no other word */
        {"car CAR cars", "\"car\" OR \"cars\""},
        {"東京の天気", "\"東京\" OR \"京の\" OR \"の天\" OR \"天気\""}, /* pairs, as in the index */
        {"東京。猫", "\"東京\" OR \"猫\"*"},                        /* a letter that stands alone begins a pair */
        {"ｶﾒﾗ and Ｃaméra", "\"カメ\" OR \"メラ\" OR \"camera\""},
        {"iPhone16を買う", "\"iphone16\" OR \"を買\" OR \"買う\""},
        {"हिन्दी में", "\"हिन्दी\" OR \"में\""},
        {"a\"b OR NOT (c*) NEAR:d", "\"b\" OR \"c\" OR \"near\" OR \"d\""},
        {"Über 42", "\"uber\" OR \"42\""},
        {"", ""},
        {"?!-", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gw_words words;
        struct fm_buf query;
        fm_buf_init(&query, 1000);
        struct fm_buf folded;
        fm_buf_init(&folded, 1000);
        assert_true(gw_fold(rows[i].question, strlen(rows[i].question), &folded));
        gw_words_find(folded.data ? folded.data : "", folded.len, &words);
        gw_query_write(&words, &query);
        fm_buf_append(&query, "", 1);
        assert_string_equal(query.data, rows[i].query);
        fm_buf_free(&query);
        fm_buf_free(&folded);
    }
}

static void long_questions_are_cut(void **state) {
    char question[4000];
    size_t len = 0;
    struct gw_words words;
    (void)state;
    for (int i = 0; i < 500; i++) {
        len += (size_t)snprintf(question + len, sizeof question - len, "w%d ", i);
    }
    gw_words_find(question, len, &words);
    assert_int_equal(words.count, GW_QUESTION_WORDS_MAX);
}

/* ---- fusion ---- */

static void fusion(void **state) {
    const int64_t words[] = {1, 2, 3};
    const int64_t vectors[] = {3, 4, 1};
    struct gw_found found[6];
    (void)state;
    assert_int_equal(gw_fuse(words, 3, vectors, 3, found), 4);
    assert_int_equal(found[0].id, 1); /* 1/61 + 1/63, the same as 3: the lower id is first */
    assert_int_equal(found[1].id, 3);
    assert_int_equal(found[2].id, 2); /* 1/62, the same as 4 */
    assert_int_equal(found[3].id, 4);
    assert_true(found[0].score > 1.0 / 61 + 1.0 / 63 - 1e-12 && found[0].score < 1.0 / 61 + 1.0 / 63 + 1e-12);
    assert_int_equal(found[0].by_words, 1);
    assert_int_equal(found[0].by_vector, 3);
    assert_int_equal(found[2].by_vector, 0);
    assert_int_equal(gw_fuse(words, 0, vectors, 0, found), 0);
    assert_int_equal(gw_fuse(words, 2, vectors, 0, found), 2);
    assert_int_equal(found[0].id, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(more_text_keeps_the_first_chunks),
        cmocka_unit_test(ends_at_the_best_place),
        cmocka_unit_test(the_overlap_is_in_both),
        cmocka_unit_test(halves),
        cmocka_unit_test(hashes),
        cmocka_unit_test(questions),
        cmocka_unit_test(long_questions_are_cut),
        cmocka_unit_test(fusion),
    };
    return cmocka_run_group_tests_name("chunks", tests, NULL, NULL);
}
