/*
 * Fuzzes fm_json_check and our tree, and compares them with json-c. The check accepts the same texts as a second
 * implementation of the rules. json-c parses each accepted text, also in its strict mode, to the same tree as our
 * parser. What json-c writes from the tree passes the check and is the same value. A text that is cut short is refused.
 * Whatever bytes our writer gets, the check accepts the writer's output.
 */
#include "protocol/json_tree.h"
#include "protocol/rpc.h"
#include "tests/fuzz/fuzz.h"

#include <ctype.h>
#include <math.h>

#define TEXT_MAX (64u << 20)

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* ---- the rules once more, as a recursive descent ---- */

/*
 * Each function returns the place after its part of the text, or NULL. With NULL, `dead` is the byte that is not
 * allowed, the end of the wrong escape or number, or the beginning of the first value above the limit.
 */
struct rules {
    const char *end;
    const char *dead;
    size_t values; /* values that have begun */
};

static const char *die(struct rules *rules, const char *at) {
    rules->dead = at;
    return NULL;
}

static const char *blank(const struct rules *rules, const char *at) {
    while (at < rules->end && is_space(*at)) {
        at++;
    }
    return at;
}

/* `at` is a lead byte. The decision uses the code point, not tables of bytes. */
static const char *rule_character(struct rules *rules, const char *at) {
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char lead = (unsigned char)*at;
    unsigned bytes = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    unsigned point = bytes < 2 ? lead : lead & (0x7Fu >> bytes);
    if (bytes == 0) {
        return die(rules, at);
    }
    for (unsigned i = 1; i < bytes; i++) {
        if (at + i == rules->end || ((unsigned char)at[i] >> 6) != 2) {
            return die(rules, at + i);
        }
        point = point * 64 + ((unsigned char)at[i] & 63);
    }
    bool scalar = point >= least[bytes] && point <= 0x10FFFF && point / 0x800 != 0xD800 / 0x800;
    return scalar ? at + bytes : die(rules, at + bytes - 1);
}

/* Reads four hex digits after "\\u"; -1 if they are not hex digits. */
static int rule_hex(struct rules *rules, const char *at) {
    char digits[5] = "";
    for (int i = 0; i < 4; i++) {
        if (at + i >= rules->end || !isxdigit((unsigned char)at[i])) {
            die(rules, at + i < rules->end ? at + i : rules->end);
            return -1;
        }
        digits[i] = at[i];
    }
    return (int)strtol(digits, NULL, 16);
}

/* `at` is after the backslash. */
static const char *rule_escape(struct rules *rules, const char *at, bool key) {
    if (at == rules->end || !*at || !strchr("\"\\/bfnrtu", *at)) {
        return die(rules, at);
    }
    if (*at++ != 'u') {
        return at;
    }
    int unit = rule_hex(rules, at);
    if (unit < 0 || (unit == 0 && key)) {
        return unit < 0 ? NULL : die(rules, at + 4);
    }
    at += 4;
    if (unit < 0xD800 || unit > 0xDFFF) {
        return at;
    }
    if (unit > 0xDBFF || rules->end - at < 2 || memcmp(at, "\\u", 2) != 0) {
        return die(rules, at);
    }
    int low = rule_hex(rules, at + 2);
    if (low >= 0 && (low < 0xDC00 || low > 0xDFFF)) {
        die(rules, at + 6);
    }
    return low >= 0xDC00 && low <= 0xDFFF ? at + 6 : NULL;
}

static const char *rule_string(struct rules *rules, const char *at, bool key) {
    if (at == rules->end || *at++ != '"') {
        return die(rules, at);
    }
    while (at && at < rules->end && *at != '"') {
        if ((unsigned char)*at < 0x20) {
            return die(rules, at);
        }
        at = *at == '\\' ? rule_escape(rules, at + 1, key) : rule_character(rules, at);
    }
    if (at == rules->end) {
        return die(rules, at);
    }
    return at ? at + 1 : NULL;
}

static const char *digits(struct rules *rules, const char *at) {
    const char *first = at;
    while (at < rules->end && isdigit((unsigned char)*at)) {
        at++;
    }
    return at > first ? at : die(rules, at);
}

static const char *rule_number(struct rules *rules, const char *at) {
    const char *first = at;
    at += *at == '-';
    bool zero = at < rules->end && *at == '0';
    at = zero ? at + 1 : digits(rules, at);
    if (at && at < rules->end && *at == '.') {
        at = digits(rules, at + 1);
    }
    if (at && at < rules->end && (*at | 0x20) == 'e') {
        at++;
        at += at < rules->end && (*at == '+' || *at == '-');
        at = digits(rules, at);
    }
    if (!at) {
        return NULL;
    }
    char *copy = strndup(first, (size_t)(at - first));
    bool finite = isfinite(strtod(copy, NULL));
    free(copy);
    return finite ? at : die(rules, at);
}

static const char *rule_word(struct rules *rules, const char *at) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < COUNT(words); i++) {
        size_t len = strlen(words[i]);
        if ((size_t)(rules->end - at) >= len && memcmp(at, words[i], len) == 0) {
            return at + len;
        }
    }
    return die(rules, at);
}

static const char *rule_value(struct rules *rules, const char *at, int depth);

/* Reads on after an opening bracket. */
static const char *rule_container(struct rules *rules, const char *at, int depth) {
    bool object = at[-1] == '{';
    char close = object ? '}' : ']';
    at = blank(rules, at);
    if (at < rules->end && *at == close) {
        return at + 1;
    }
    for (;;) {
        if (object) {
            at = rule_string(rules, blank(rules, at), true);
            at = at ? blank(rules, at) : NULL;
            if (at && (at == rules->end || *at++ != ':')) {
                return die(rules, at);
            }
        }
        at = at ? rule_value(rules, at, depth) : NULL;
        if (!at) {
            return NULL;
        }
        at = blank(rules, at);
        if (at == rules->end || (*at != ',' && *at != close)) {
            return die(rules, at);
        }
        if (*at++ == close) {
            return at;
        }
    }
}

/* Reads a value, with white space before it. */
static const char *rule_value(struct rules *rules, const char *at, int depth) {
    at = blank(rules, at);
    if (at == rules->end) {
        return die(rules, at);
    }
    if (++rules->values > FM_JSON_VALUES_MAX) {
        return die(rules, at);
    }
    if (*at == '[' || *at == '{') {
        return depth < FM_JSON_DEPTH_MAX ? rule_container(rules, at + 1, depth + 1) : die(rules, at);
    }
    if (*at == '"') {
        return rule_string(rules, at, false);
    }
    return *at == '-' || isdigit((unsigned char)*at) ? rule_number(rules, at) : rule_word(rules, at);
}

/* Tests that fm_json_check finds the fault at its place, not later. */
static void expect_rules(const char *text, size_t len, bool accepted, size_t offset) {
    struct rules rules = {.end = text + len, .dead = NULL};
    const char *at = rule_value(&rules, text, 0);
    at = at ? blank(&rules, at) : NULL;
    if (at && at < rules.end) {
        at = die(&rules, at);
    }
    HOLDS_OR(accepted == (at != NULL), "at byte %zu", accepted ? (size_t)(rules.dead - text) : offset);
    HOLDS_OR(at || text + offset <= rules.dead, "at byte %zu, not %zu", (size_t)(rules.dead - text), offset);
}

/* ---- what the check accepts ---- */

/* Tests that what json-c writes from the value is JSON, and the same value. */
static void expect_round_trip(struct json_object *value) {
    struct fm_buf text;
    struct fm_buf again;
    fm_buf_init(&text, TEXT_MAX);
    fm_buf_init(&again, TEXT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&text);
    fm_json_value(&w, value);
    HOLDS(!text.failed);
    struct json_object *same = json_must_parse(text.data, text.len);
    HOLDS_OR(json_object_equal(value, same), "%.*s", (int)text.len, text.data);
    w = fm_json_writer_on(&again);
    fm_json_value(&w, same);
    HOLDS(text.len == again.len && memcmp(text.data, again.data, text.len) == 0);
    json_object_put(same);
    fm_buf_free(&again);
    fm_buf_free(&text);
}

/* json-c's strict mode is too lax for our rules, but whatever it refuses is not JSON. */
static void expect_strict(const char *text, size_t len, struct json_object *value) {
    bool ok = false;
    while (len && is_space(text[len - 1])) { /* json-c takes these bytes for a second value */
        len--;
    }
    struct json_object *strict = json_parse(text, len, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8, &ok);
    HOLDS_OR(ok, "json-c's strict mode refuses it");
    HOLDS(json_object_equal(value, strict));
    json_object_put(strict);
}

/*
 * json-c 0.16 treats an escaped pair whose code point ends in D800 to DFFF, such as U+1DA00, as a lone surrogate, and
 * returns U+FFFD. These are the pairs whose high half ends, in binary, in 11011x.
 */
static bool has_pair_that_json_c_mistakes(const char *text, size_t len) {
    for (size_t i = 0; i + 6 <= len; i++) {
        unsigned half;
        char digits[5] = {0};
        if (memcmp(text + i, "\\u", 2) != 0) {
            continue;
        }
        memcpy(digits, text + i + 2, 4);
        half = (unsigned)strtoul(digits, NULL, 16);
        if ((half & 0xFC3E) == 0xD836) {
            return true;
        }
    }
    return false;
}

/*
 * Our tree must equal the tree of json-c's tokener, to the last digit. Our tree keeps an integer beyond 64 bits as
 * text; parsing this text gives the tokener's value.
 */
static void expect_same_tree(const char *text, size_t len, struct json_object *value) {
    struct fm_buf scratch;
    struct json_object *tree;
    if (has_pair_that_json_c_mistakes(text, len)) {
        return;
    }
    char *copy = exact_copy(text, len);
    fm_buf_init(&scratch, TEXT_MAX);
    HOLDS(fm_json_tree(copy, len, &scratch, &tree));
    HOLDS(json_object_equal(value, tree));
    const char *theirs = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
    const char *written = json_object_to_json_string_ext(tree, JSON_C_TO_STRING_PLAIN);
    struct json_object *again = json_must_parse(written, strlen(written));
    const char *ours = json_object_to_json_string_ext(again, JSON_C_TO_STRING_PLAIN);
    HOLDS_OR(strcmp(theirs, ours) == 0, "%s is not %s", ours, theirs);
    json_object_put(again);
    json_object_put(tree);
    fm_buf_free(&scratch);
    free(copy);
}

/* A value that is cut short is refused, unless it is a number. A second value after it is refused too. */
static void expect_whole(const char *text, size_t len) {
    size_t offset = 0;
    size_t end = len;
    while (is_space(text[end - 1])) {
        end--;
    }
    if (text[end - 1] < '0' || text[end - 1] > '9') {
        char *cut = exact_copy(text, end - 1);
        HOLDS(fm_json_check(cut, end - 1, FM_JSON_VALUES_MAX, &offset));
        HOLDS(offset <= end - 1);
        free(cut);
    }
    char *more = malloc(len + 2);
    HOLDS(more);
    memcpy(more, text, len);
    memcpy(more + len, " 1", 2);
    HOLDS(fm_json_check(more, len + 2, FM_JSON_VALUES_MAX, &offset));
    HOLDS(offset == len + 1);
    free(more);
}

/* ---- messages and ids ---- */

static void expect_id(const struct fm_rpc_id *id) {
    struct fm_rpc_id again;
    struct json_object *value = json_must_parse(id->text, id->len);
    HOLDS(id->len <= sizeof id->text);
    HOLDS_OR(fm_rpc_id_read(value, &again) && fm_rpc_id_equal(id, &again), "%.*s", id->len, id->text);
    if (json_object_is_type(value, json_type_int)) {
        HOLDS(llabs(json_object_get_int64(value)) <= 9007199254740991);
    } else {
        HOLDS(json_object_get_string_len(value) <= 256);
    }
    json_object_put(value);
}

static void expect_error_reply(const struct fm_rpc_id *id, enum fm_rpc_error code) {
    struct fm_buf buf;
    struct json_object *value;
    fm_buf_init(&buf, TEXT_MAX);
    fm_rpc_write_error(&buf, id, code, "wrong");
    struct json_object *reply = json_must_parse(buf.data, buf.len);
    HOLDS(json_object_object_get_ex(reply, "id", &value) && !value == !id->len);
    json_object_put(reply);
    fm_buf_free(&buf);
}

static void expect_message(struct json_object *root) {
    struct fm_rpc_message message;
    struct fm_rpc_id other = fm_rpc_id_int(1);
    enum fm_rpc_error code = fm_rpc_read(root, &message);
    HOLDS(code == FM_RPC_OK || code == FM_RPC_INVALID);
    HOLDS(code == FM_RPC_INVALID || json_object_is_type(root, json_type_object));
    HOLDS(code == FM_RPC_INVALID || (message.kind == FM_RPC_RESPONSE) == (message.method == NULL));
    HOLDS(message.kind != FM_RPC_NOTIFICATION || message.id.len == 0);
    if (code == FM_RPC_OK && message.kind == FM_RPC_REQUEST) {
        HOLDS(message.id.len > 0);
    }
    if (message.id.len) {
        expect_id(&message.id);
        bool one = message.id.len == 1 && message.id.text[0] == '1';
        HOLDS(fm_rpc_id_equal(&message.id, &other) == one && fm_rpc_id_equal(&other, &message.id) == one);
    }
    expect_error_reply(&message.id, FM_RPC_INVALID);
}

/* ---- the writer ---- */

static void expect_string(const char *bytes, size_t len) {
    struct fm_buf buf;
    fm_buf_init(&buf, TEXT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_json_string(&w, bytes, len);
    HOLDS(!buf.failed && buf.len <= 6 * len + 2);
    struct json_object *value = json_must_parse(buf.data, buf.len);
    HOLDS(json_object_is_type(value, json_type_string));
    if (is_utf8(bytes, len)) {
        HOLDS(fm_json_string_size(bytes, len) == buf.len);
        HOLDS((size_t)json_object_get_string_len(value) == len);
        HOLDS(memcmp(json_object_get_string(value), bytes, len) == 0);
    }
    json_object_put(value);
    fm_buf_free(&buf);
}

static void expect_number(struct choices from) {
    struct fm_buf buf;
    size_t len = sizeof(int64_t);
    int64_t integer = 0;
    double number = 0;
    const char *bytes = choose_bytes(&from, &len);
    memcpy(&integer, bytes, len);
    memcpy(&number, &integer, sizeof number);
    fm_buf_init(&buf, TEXT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&buf);
    fm_json_array_begin(&w);
    fm_json_int(&w, integer);
    fm_json_double(&w, isfinite(number) ? number : 0);
    fm_json_array_end(&w);
    struct json_object *value = json_must_parse(buf.data, buf.len);
    HOLDS(json_object_get_int64(json_object_array_get_idx(value, 0)) == integer);
    HOLDS(json_object_get_double(json_object_array_get_idx(value, 1)) == (isfinite(number) ? number : 0));
    json_object_put(value);
    fm_buf_free(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    size_t offset = size + 1;
    const char *fault = fm_json_check(text, size, FM_JSON_VALUES_MAX, &offset);
    HOLDS(offset <= size);
    expect_rules(text, size, !fault, offset);
    if (fault) {
        HOLDS(*fault);
    } else {
        HOLDS(offset == size && is_utf8(text, size));
        struct json_object *value = json_must_parse(text, size);
        expect_strict(text, size, value);
        expect_same_tree(text, size, value);
        expect_round_trip(value);
        expect_whole(text, size);
        expect_message(value);
        json_object_put(value);
    }
    expect_string(text, size);
    expect_number((struct choices){data, data + size});
    return 0;
}
