/*
 * GBNF to Lark. What is refused is told with its place; what is taken gives text that is UTF-8 if the grammar was, ends
 * in a NUL, and defines `start`; and it is the same behind whatever stood in the buffer before.
 */
#include "engine/llama/gbnf.h"
#include "tests/fuzz/fuzz.h"

#define LARK_MAX (16u << 20)

/* Reads `word`, a number above 0, and `behind` at `*at`. */
static bool read_place(const char **at, const char *word, const char *behind) {
    char *end;
    if (strncmp(*at, word, strlen(word)) != 0) {
        return false;
    }
    long number = strtol(*at + strlen(word), &end, 10);
    *at = end + strlen(behind);
    return number > 0 && strncmp(end, behind, strlen(behind)) == 0;
}

static void expect_refusal(const struct fm_error *error, enum fm_code code) {
    const char *at = error->detail;
    HOLDS(code == FM_INVALID_REQUEST && error->code == code);
    HOLDS(strcmp(error->param, "format.definition") == 0);
    HOLDS_OR(read_place(&at, "line ", ", ") && read_place(&at, "column ", ": "), "%s", error->detail);
    HOLDS(is_utf8(error->detail, strlen(error->detail)));
}

static void expect_lark(const struct fm_buf *lark) {
    HOLDS(lark->data[lark->len] == '\0' && strlen(lark->data) == lark->len);
    HOLDS(is_utf8(lark->data, lark->len));
    HOLDS_OR(strncmp(lark->data, "start:", 6) == 0 || strstr(lark->data, "\nstart:"), "%s", lark->data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fm_error error = {.code = FM_OK};
    struct fm_buf lark;
    struct fm_buf behind;
    char *text = malloc(size + 1);
    HOLDS(text);
    if (size) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    if (is_utf8(text, strlen(text))) { /* the protocol sees to that */
        fm_buf_init(&lark, LARK_MAX);
        fm_buf_init(&behind, LARK_MAX);
        fm_buf_append_str(&behind, "before");
        enum fm_code code = fm_gbnf_to_lark(text, &lark, &error);
        if (code == FM_OK) {
            expect_lark(&lark);
            HOLDS(fm_gbnf_to_lark(text, &behind, &error) == FM_OK && behind.len == lark.len + 6);
            HOLDS(memcmp(behind.data + 6, lark.data, lark.len) == 0);
        } else {
            expect_refusal(&error, code);
        }
        fm_buf_free(&behind);
        fm_buf_free(&lark);
    }
    free(text);
    return 0;
}
