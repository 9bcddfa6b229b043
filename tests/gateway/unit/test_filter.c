/* The secrets filter: what it finds and what it keeps; results that do not depend on how a text is cut; and its speed
 * on texts that are meant to be slow. */
#include "loop.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "security/filter.h"

#define HEX32 "0123456789abcdef0123456789abcdef"
#define AN20  "a1B2c3D4e5F6g7H8i9J0"
#define AN40  AN20 AN20
#define R     GW_REDACTED
#define KEY64 "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
#define BEGIN "-----BEGIN RSA PRIVATE KEY-----"
#define END   "-----END RSA PRIVATE KEY-----"

struct row {
    const char *text;
    const char *expected; /* NULL: the text stays */
};

/* These are not real keys, but have the right kind and number of characters. */
static const struct row formats[] = {
    {"key sk-ant-api03-" AN40 " ok", "key " R " ok"},
    {"sk-proj-" AN40, R},
    {"(sk-" AN40 ")", "(" R ")"},
    {"ghp_" AN20 "0123456789abcdef", R},
    {"gho_" AN20 "0123456789abcdef, ghs_" AN20 "0123456789abcdef", R ", " R},
    {"github_pat_" AN20 "_" AN40, R},
    {"https://x:glpat-" AN20 "@gitlab.com/a.git", "https://x:" R "@gitlab.com/a.git"},
    {"xoxb-"
     "123456789012-" AN20,
     R},
    {"https://hooks.slack.com/services/T00000000/B00000000/" AN20 "abcd", "https://hooks.slack.com/services/" R},
    {"AKIA"
     "ABCDEFGH23456789 in us-east-1",
     R " in us-east-1"},
    {"id=ASIA"
     "ABCDEFGH23456789",
     "id=" R},
    {"AIza" AN20 "a1B2c3D4e5F6g7H", R},
    {"ya29." AN40, R},
    {"npm_" AN20 "0123456789abcdef", R},
    {"hf_" AN20 "abcdefghijKLMN", R},
    {"sk_live_" AN20 "\nnext", R "\nnext"},
    {"SG." AN20 "ab." AN20 "a1B2c3D4e5F6g7H8i9Jxyz", R},
    {"dop_v1_" HEX32 HEX32, R},
    {"gsk_" AN40 "abcdefghijkl", R},
    {"hvs." AN20 "abcdefgh", R},
    {"AGE-SECRET-KEY-1"
     "QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQQPZRY9X8GF2TVDW0S3JN54",
     R},
    {"bot 123456789:AA"
     "abcdefghijklmnopqrstuvwxyz0123456 up",
     "bot 123456789" R " up"},
    {"/bot123456789:AA"
     "abcdefghijklmnopqrstuvwxyz0123456/get",
     "/bot123456789" R "/get"},
    {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U", R},
    {"Authorization: Bearer " AN40, "Authorization: Bearer " R},
    {"curl -H 'authorization: bearer " AN20 "' x", "curl -H 'authorization: bearer " R "' x"},
    {"Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic " R},
    {"postgres://me:hunter2@db:5432/x", "postgres://me:" R "@db:5432/x"},
    {"redis://:hunter2@cache/0", "redis://:" R "@cache/0"},
};

static const struct row names[] = {
    {"API_KEY=abc", "API_KEY=" R},
    {"export OPENAI_API_KEY=whatever-it-is;x\nls", "export OPENAI_API_KEY=" R "\nls"},
    {"AWS_SECRET_ACCESS_KEY=wJalr/UtnFEMI+K7MDENG", "AWS_SECRET_ACCESS_KEY=" R},
    {"DB_PASSWORD='correct horse'", "DB_PASSWORD='" R "'"},
    {"TOKEN=\"x\"", "TOKEN=\"" R "\""},
    {"GITHUB_TOKEN: " AN20, "GITHUB_TOKEN: " R},
    {"MY_TOKEN = abc123def4567", "MY_TOKEN = " R},
    {"password: hunter2", "password: " R},
    {"password=hunter2&user=me", "password=" R "&user=me"},
    {"{\"password\":\"hunter\",\"user\":\"me\"}", "{\"password\":\"" R "\",\"user\":\"me\"}"},
    {"{\\\"password\\\":\\\"hunter\\\"}", "{\\\"password\\\":\\\"" R "\\\"}"},
    {"\"apiKey\" : \"" AN20 "\"", "\"apiKey\" : \"" R "\""},
    {"client_secret: 'abcd'", "client_secret: '" R "'"},
    {"?access_token=a8f5f167f44f4964e6c998dee827110c&x=1", "?access_token=" R "&x=1"},
    {"x-api-key: a8f5f167f44f4964e6c998dee827110c", "x-api-key: " R},
    {"secret = b'a\\'b c1'", NULL}, /* two words: ordinary text */
    {"password = \"hunter2\\\\\" and \"so on\"", "password = \"" R "\" and \"so on\""},
    {"passwd = \"p4ss\"  # old", "passwd = \"" R "\"  # old"},
    {"signingKey=a8f5f167f44f4964e6c998", "signingKey=" R},
    {"session_key=a8f5f167f44f4964e6c998dee", "session_key=" R},
};

static const struct row pem[] = {
    {BEGIN "\n" KEY64 "\n" KEY64 "\nabc=\n" END "\nnext", R "\nnext"},
    {"a\n" BEGIN "\r\n" KEY64 "\r\n" END "\r\nb", "a\n" R "\r\nb"},
    {"{\"key\":\"" BEGIN "\\n" KEY64 "\\n" END "\\n\",\"x\":1}", "{\"key\":\"" R "\\n\",\"x\":1}"},
    {BEGIN "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n" KEY64 "\n" END, R},
    {BEGIN "\n" KEY64 "\n" KEY64, R}, /* its end was cut off */
    {BEGIN "\n" KEY64 "\nhello to all\n", R "\nhello to all\n"},
    {BEGIN " " KEY64 " " KEY64 " " END " x", R " x"}, /* its line ends became blanks */
    {BEGIN KEY64 KEY64 KEY64 KEY64 KEY64 KEY64 KEY64 KEY64 KEY64 END "x", R "x"},
    {"  " BEGIN "\n  " KEY64 "\n  " END "\n", "  " R "\n"},
    {"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n" KEY64 "\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----", R},
    {BEGIN "\n" KEY64 "\n" END "\n" BEGIN "\n" KEY64 "\n" END, R "\n" R},
    {"-------" BEGIN "\n" KEY64 "\n" END, "-------" R},
    {"-----BEGIN X-----BEGIN PRIVATE KEY-----\n" KEY64 "\n" END, "-----BEGIN X" R},
    {"a file begins with -----BEGIN PRIVATE KEY----- and then come lines", NULL},
    {"-----BEGIN PRIVATE KEY-----", NULL},
    {"-----BEGIN PRIVATE KEY-----\n\n", NULL},
    {"-----BEGIN CERTIFICATE-----\n" KEY64 "\n-----END CERTIFICATE-----\n", NULL},
    {"-----BEGIN PUBLIC KEY-----\n" KEY64 "\n-----END PUBLIC KEY-----\n", NULL},
    {"-----BEGIN", NULL},
    {"-----BEGIN a PRIVATE KEY-----", NULL},
};

/* Programs, documents and sentences: they contain no secrets. */
static const struct row stays[] = {
    {"The token is sent as a bearer token; keep your password: never share it.", NULL},
    {"const token = nextToken(stream);", NULL},
    {"token = tokens[i + 1]", NULL},
    {"def login(user: str, password: str = None) -> Token:", NULL},
    {"password = getpass.getpass()", NULL},
    {"if (key == KEY_ENTER) return TOKEN_END;", NULL},
    {"enum { T_KEY = 3, MAX_TOKEN = 4096 };", NULL},
    {"primary_key: user_id, sort_key=created_at2", NULL},
    {"api_key = os.environ[\"API_KEY\"]", NULL},
    {"apiKey: process.env.OPENAI_API_KEY,", NULL},
    {"export API_KEY=$OTHER_KEY PASSWORD=${PW}", NULL},
    {"API_KEY=<your key>", NULL},
    {"\"password\": {\"type\": \"string\"}, \"token\": null", NULL},
    {"https://example.com:8080/a?key=value#token", NULL},
    {"user@example.com: token: 12345", NULL},
    {"sk-learn and sk-..., ghp_xxx, AKIA..., eyJhbGci...", NULL},
    {"https://a@b.c/x:y@z", NULL},
    {"Token::Secret::new(), std::token: x", NULL},
    {"commit 3f786850e387550fdab836ed7e6dc881de23001b", NULL},
    {"max_tokens: 2048, token_count=17", NULL},
    {"monkey=banana42x7, turkey: a1b2c3d4e5f6", NULL},
    {"KEY=1", NULL},
    {"run(\"--link\", CANARY_KEY=self.KEY)", NULL},
    {"\"cat /etc/passwd\": \"EPERM\", /etc/passwd: \"gone\"", NULL},
    {"the secret: it depends", NULL},
    {"-----", NULL},
    {"", NULL},
    {"Gr\xc3\xbc\xc3\x9f"
     "e, \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80",
     NULL},
};

static struct gw_known *known;

static char *filtered(const char *text, size_t len, size_t *out_len) {
    struct fm_buf out;
    fm_buf_init(&out, 1u << 26);
    assert_true(gw_filter_text(known, text, len, &out));
    *out_len = out.len;
    fm_buf_append(&out, "", 1);
    return out.data;
}

static size_t check_rows(const struct row *rows, size_t count) {
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        size_t len;
        char *out = filtered(rows[i].text, strlen(rows[i].text), &len);
        const char *expected = rows[i].expected ? rows[i].expected : rows[i].text;
        if (strcmp(out, expected) != 0) {
            print_error("%s\n  became %s\n  and not %s\n", rows[i].text, out, expected);
            wrong++;
        }
        free(out);
    }
    return wrong;
}

#define CHECK(rows) assert_int_equal(check_rows(rows, sizeof(rows) / sizeof *(rows)), 0)

static void keys_of_services(void **state) {
    (void)state;
    CHECK(formats);
}

static void values_of_names(void **state) {
    (void)state;
    CHECK(names);
}

static void private_keys(void **state) {
    (void)state;
    CHECK(pem);
}

static void ordinary_text_stays(void **state) {
    (void)state;
    CHECK(stays);
}

/* ---- known secrets ---- */

static const char *const secrets[] = {"correct horse, battery", "aaaaaaaab", "abababababac",
                                      "correct horse, batter\xc3\xa9"};

static int know(void **state) {
    (void)state;
    known = gw_known_new();
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
        assert_true(gw_known_add(known, secrets[i], strlen(secrets[i])));
    }
    return 0;
}

static int forget(void **state) {
    (void)state;
    gw_known_free(known);
    known = NULL;
    return 0;
}

static void known_secrets(void **state) {
    static const struct row rows[] = {
        {"it is correct horse, battery!", "it is " R "!"},
        {"correct horse, batter", NULL},
        {"correct horse, correct horse, battery", "correct horse, " R},
        {"aaaaaaaaaaaab", "aaaa" R},
        {"ababababababac", "ab" R},
        {"aaaaaaaababababababac", R}, /* two secrets that overlap by a letter */
        {"aaaaaaaabaaaaaaaab", R},
        {"correct horse, batter\xc3\xa9", R},
        {"correct horse, batter\xc3\xa8", NULL},
    };
    (void)state;
    CHECK(rows);
    assert_false(gw_known_add(known, "short", 5));
    while (gw_known_add(known, "something long", 14)) {
    }
    assert_false(gw_known_add(known, "another one", 11));
}

/*
 * A token that the user chose may contain characters that JSON escapes; the audit's details and a tool's output are
 * JSON.
 */
static void known_secrets_in_json(void **state) {
    static const char secret[] = "hay\"stack\\and\tneedle";
    static const struct row rows[] = {
        {"hay\"stack\\and\tneedle", R},
        {"{\"command\":\"echo hay\\\"stack\\\\and\\tneedle\"}", "{\"command\":\"echo " R "\"}"},
    };
    (void)state;
    known = gw_known_new();
    assert_true(gw_known_add(known, secret, sizeof secret - 1));
    size_t wrong = check_rows(rows, 2);
    gw_known_free(known);
    known = NULL;
    assert_int_equal(wrong, 0);
}

/* Text after an escaped quote still belongs to the value, however long the value is. */
static void long_values(void **state) {
    struct fm_buf text;
    size_t len;
    (void)state;
    fm_buf_init(&text, 1u << 20);
    fm_buf_append_str(&text, "password = \"");
    for (int i = 0; i < 300; i++) {
        fm_buf_append_str(&text, AN20);
    }
    fm_buf_append_str(&text, "\\\"the rest\" end");
    char *out = filtered(text.data, text.len, &len);
    assert_string_equal(out, "password = \"" R "\" end");
    free(out);
    fm_buf_free(&text);
}

/* Finds the text that the secrets cover, in a slow and simple way. */
static void reference(const char *text, size_t len, struct fm_buf *out) {
    bool *hit = calloc(len + 1, 1);
    for (size_t i = 0; i < len; i++) {
        for (size_t s = 0; s < sizeof secrets / sizeof *secrets; s++) {
            size_t n = strlen(secrets[s]);
            if (i + n <= len && memcmp(text + i, secrets[s], n) == 0) {
                memset(hit + i, 1, n);
            }
        }
    }
    for (size_t i = 0; i < len; i++) {
        if (!hit[i]) {
            fm_buf_append_char(out, text[i]);
        } else if (i == 0 || !hit[i - 1]) {
            fm_buf_append_str(out, R);
        }
    }
    free(hit);
}

static void known_secrets_are_found_as_the_slow_way_does(void **state) {
    (void)state;
    srand(3);
    for (int round = 0; round < 4000; round++) {
        char text[120];
        size_t len = (size_t)rand() % sizeof text;
        size_t out_len;
        struct fm_buf expected;
        for (size_t i = 0; i < len; i++) {
            text[i] = "aaaabbc"[rand() % 7];
        }
        if (len > 40) {
            memcpy(text + rand() % 10, secrets[rand() % 3], 9);
        }
        fm_buf_init(&expected, 1u << 20);
        reference(text, len, &expected);
        char *out = filtered(text, len, &out_len);
        assert_int_equal(out_len, expected.len);
        assert_memory_equal(out, expected.data ? expected.data : "", out_len);
        free(out);
        fm_buf_free(&expected);
    }
}

/* ---- cuts ---- */

static void add_row(struct fm_buf *text, const struct row *rows, size_t count) {
    static const char *const between[] = {" ", "\n", "", ", ", "\"", "=", "-", "."};
    fm_buf_append_str(text, rows[(size_t)rand() % count].text);
    fm_buf_append_str(text, between[rand() % 8]);
}

#define ADD(text, rows) add_row(text, rows, sizeof(rows) / sizeof *(rows))

static void make_text(struct fm_buf *text) {
    fm_buf_init(text, 1u << 20);
    for (int i = rand() % 6; i >= 0; i--) {
        switch (rand() % 6) {
        case 0: ADD(text, formats); break;
        case 1: ADD(text, names); break;
        case 2: ADD(text, pem); break;
        case 3: ADD(text, stays); break;
        case 4: fm_buf_append_str(text, secrets[rand() % 4]); break;
        default:
            for (int n = rand() % 30; n > 0; n--) {
                fm_buf_append_char(text, "-_=:\"'\\ \nkeyTOKEN01sk.BEGIN@/"[rand() % 30]);
            }
        }
    }
    if (text->len && rand() % 3 == 0) {
        text->len = (size_t)rand() % text->len;
    }
}

/* Filters pieces of any length; `whole`: pieces of whole characters, which must come out as whole characters. */
static void filter_in_pieces(const struct fm_buf *text, bool whole, struct fm_buf *out) {
    struct gw_filter *filter = gw_filter_new(known);
    assert_non_null(filter);
    for (size_t at = 0; at < text->len;) {
        size_t len = 1 + (size_t)rand() % (rand() % 4 ? 3 : 80);
        len = len < text->len - at ? len : text->len - at;
        while (whole && at + len < text->len && ((unsigned char)text->data[at + len] & 0xc0) == 0x80) {
            len++;
        }
        char *piece = malloc(len); /* of exactly this length, for the sanitizer */
        memcpy(piece, text->data + at, len);
        size_t before = out->len;
        assert_true(gw_filter_feed(filter, piece, len, out));
        if (whole) {
            assert_true(out->len == before || fm_utf8_valid(out->data + before, out->len - before));
        }
        free(piece);
        at += len;
    }
    assert_true(gw_filter_end(filter, out));
    gw_filter_free(filter);
}

static void cuts_change_nothing(void **state) {
    (void)state;
    srand(5);
    for (int round = 0; round < 6000; round++) {
        struct fm_buf text;
        struct fm_buf out;
        size_t len;
        make_text(&text);
        fm_buf_init(&out, 1u << 20);
        char *expected = filtered(text.data, text.len, &len);
        filter_in_pieces(&text, fm_utf8_valid(text.data, text.len), &out);
        if (out.len != len || memcmp(out.data ? out.data : "", expected, len) != 0) {
            fail_msg("%.*s\n  became %.*s\n  and in pieces %.*s", (int)text.len, text.data, (int)len, expected,
                     (int)out.len, out.data);
        }
        free(expected);
        fm_buf_free(&text);
        fm_buf_free(&out);
    }
}

/* Users read an answer while it is written: the filter does not hold back ordinary words. */
static void plain_text_comes_at_once(void **state) {
    struct gw_filter *filter = gw_filter_new(known);
    struct fm_buf out;
    const char *text = "Hello there, how are you today? ";
    (void)state;
    fm_buf_init(&out, 1000);
    for (size_t i = 0; text[i]; i++) {
        assert_true(gw_filter_feed(filter, text + i, 1, &out));
        assert_in_range(i + 1 - out.len, 0, 2);
    }
    assert_int_equal(out.len, strlen(text));
    gw_filter_free(filter);
    fm_buf_free(&out);
}

/* ---- time ---- */

static void made_to_be_slow(void **state) {
    static const char *const units[] = {
        "eyJ",
        "-eyJ-",
        "sk-",
        "sk-a1",
        "aaaaaaaa",
        "abab",
        "://",
        "://a:",
        "bearer ",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----\n",
        "password=",
        "key=\"",
        "A_KEY=",
        "12345678:",
        "xoxb-",
        "AKIA",
        "-----BEGIN PRIVATE KEY-----AAAA ",
        "token: ",
        "\"secret\": \"x",
        "SG.",
        "authorization: basic ",
    };
    enum { LEN = 1 << 20 };
    (void)state;
    char *text = malloc(LEN);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t unit = strlen(units[i]);
        size_t len;
        for (size_t at = 0; at < LEN; at++) {
            text[at] = units[i][at % unit];
        }
        int64_t start = fm_cpu_time_us();
        free(filtered(text, LEN, &len));
        int64_t ms = (fm_cpu_time_us() - start) / 1000;
        if (ms > 20000) { /* a megabyte takes tens of ms; with quadratic time it would be hours */
            fail_msg("%s: %lld ms", units[i], (long long)ms);
        }
    }
    free(text);
}

int main(void) {
#define KNOWING(name) cmocka_unit_test_setup_teardown(name, know, forget)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_services),
        cmocka_unit_test(values_of_names),
        cmocka_unit_test(private_keys),
        cmocka_unit_test(ordinary_text_stays),
        cmocka_unit_test(known_secrets_in_json),
        cmocka_unit_test(long_values),
        KNOWING(known_secrets),
        KNOWING(known_secrets_are_found_as_the_slow_way_does),
        KNOWING(cuts_change_nothing),
        KNOWING(plain_text_comes_at_once),
        KNOWING(made_to_be_slow),
    };
    return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
