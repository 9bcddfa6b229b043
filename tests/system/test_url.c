/* The URL that open_url makes from a user's words, and the domain of a tab. */
#include "desktop/refuse.h"
#include "desktop/url.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdio.h>
#include <string.h>

static const struct {
    const char *text;
    const char *url; /* the URL, or '!' and the code of the refusal */
} urls[] = {
    {"https://chatgpt.com", "https://chatgpt.com"},
    {"HTTP://Example.com/A?b#c", "HTTP://Example.com/A?b#c"},
    {"chatgpt", "https://chatgpt.com"},
    {"Hacker News", "https://news.ycombinator.com"},
    {"example.com", "https://example.com"},
    {"example.com/a b", "!invalid_url"},
    {"example.com:8080/x", "https://example.com:8080/x"},
    {"b\xc3\xbc"
     "cher.example",
     "https://b\xc3\xbc"
     "cher.example"},
    {"localhost", "http://localhost"},
    {"localhost:3000/a", "http://localhost:3000/a"},
    {"127.0.0.1:8000", "http://127.0.0.1:8000"},
    {"[::1]:8000/", "http://[::1]:8000/"},
    {"[::1", "!unknown_site"},
    {"nowhere", "!unknown_site"},
    {"", "!empty_string"},
    {"file:///etc/passwd", "!scheme_not_allowed"},
    {"FILE:///etc/passwd", "!scheme_not_allowed"},
    {"javascript:alert(1)", "!scheme_not_allowed"},
    {"chrome://settings", "!scheme_not_allowed"},
    {"data:text/html,x", "!scheme_not_allowed"},
    {"view-source:https://a.example", "!scheme_not_allowed"},
    {"https:example.com", "!invalid_url"},
    {"https://", "!invalid_url"},
    {"https:///path", "!invalid_url"},
    {"https://a.example/x y", "!invalid_url"},
    {"https://a.example\n", "!invalid_url"},
    {"https://a..example", "!invalid_url"},
    {"https://a.example:0", "!invalid_url"},
    {"https://a.example:99999", "!invalid_url"},
    {"https://a.example:", "!invalid_url"},
    {"https://a.example:8x", "!invalid_url"},
    {"https://user:pass@a.example", "!credentials_in_url"},
    {"https://good.example@evil.example", "!credentials_in_url"},
    {"https://good.example\\@evil.example", "https://good.example\\@evil.example"},
    {"user@a.example", "!credentials_in_url"},
    {"https://[::1", "!invalid_url"},
    {"https://[1.2.3]/", "!invalid_url"},
    {"\xff.example", "!invalid_url"},
};

static void what_is_opened(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        char url[SY_URL_MAX + 1];
        struct fm_error error = {.code = FM_OK};
        enum fm_code code = sy_url_normalize(urls[i].text, url, &error);
        print_message("%s\n", urls[i].text);
        if (urls[i].url[0] == '!') {
            assert_int_equal(code, FM_INVALID_REQUEST);
            assert_string_equal(sy_reason(&error), urls[i].url + 1);
            assert_string_equal(error.param, "url");
        } else {
            assert_int_equal(code, FM_OK);
            assert_string_equal(url, urls[i].url);
        }
    }
}

static void how_long_it_may_be(void **state) {
    (void)state;
    char text[SY_URL_MAX + 2];
    char url[SY_URL_MAX + 1];
    struct fm_error error;
    memset(text, 'a', sizeof text);
    memcpy(text, "https://a.example/", strlen("https://a.example/"));
    text[SY_URL_MAX] = '\0';
    assert_int_equal(sy_url_normalize(text, url, &error), FM_OK);
    text[SY_URL_MAX] = 'a';
    text[SY_URL_MAX + 1] = '\0';
    assert_int_equal(sy_url_normalize(text, url, &error), FM_INVALID_REQUEST);
    memcpy(text, "a.example/aaaaaaaa", strlen("a.example/aaaaaaaa")); /* there is no room to put "https://" in front */
    text[SY_URL_MAX - 1] = '\0';
    assert_int_equal(sy_url_normalize(text, url, &error), FM_INVALID_REQUEST);
}

static void domains(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"https://www.reddit.com/r/c", "reddit.com"},
        {"https://Old.Reddit.com:443/", "old.reddit.com"},
        {"http://u:p@a.example/@b", "a.example"},
        {"chrome://newtab/", "newtab"},
        {"about:blank", ""},
        {"", ""},
        {"http://[::1]:80/", "[::1]"},
        {"https://www.", "www."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char host[64];
        assert_int_equal(sy_url_domain(rows[i][0], host, sizeof host), strlen(rows[i][1]));
        assert_string_equal(host, rows[i][1]);
    }
    char small[4];
    assert_int_equal(sy_url_domain("https://example.com", small, sizeof small), 3);
    assert_string_equal(small, "exa");
}

/* Sites are found by bsearch, so they must be sorted. */
static void each_site_is_found(void **state) {
    (void)state;
    static const char *const words[] = {"amazon", "youtube", "x", "reddit", "gmail", "GitHub"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        assert_non_null(sy_site(words[i]));
    }
    assert_null(sy_site("xx"));
    assert_null(sy_site("a word that is much longer than any in the table of sites"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_opened), cmocka_unit_test(how_long_it_may_be),
                                       cmocka_unit_test(domains), cmocka_unit_test(each_site_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
