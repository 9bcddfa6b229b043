/* Shared by the tests of tool grammars: a vocabulary of bytes, and grammars that use it. */
#ifndef TESTS_UNIT_BYTE_GRAMMAR_H
#define TESTS_UNIT_BYTE_GRAMMAR_H

#include "engine/guide/grammar.h"
#include "engine/guide/tool_grammar.h"
#include "tool_pieces.h"

#define BYTE_COUNT 256              /* the number of byte tokens; the token after them ends a turn */
#define QUOTE      (BYTE_COUNT + 1) /* a control token */
#define QUOTE_TEXT "<|\"|>"
#define LARK_MAX   (1u << 20)
#define NEVER      INT64_MAX

/* The tokens after the bytes; the first one ends a turn. */
struct byte_control {
    const char *text;
    bool ends_turn;
};

static const struct byte_control end_and_quote[] = {{"end", true}, {QUOTE_TEXT, false}};
static const struct byte_control *byte_controls = end_and_quote;
static size_t byte_control_count = COUNT(end_and_quote);
/* the last ones of byte_controls are tags, which a text may have too; this is their number */
static size_t byte_tag_count;

static inline bool is_tag(size_t control) {
    return control + byte_tag_count >= byte_control_count;
}

static inline bool ends_turn(const void *argument, int32_t token) {
    (void)argument;
    return token >= BYTE_COUNT && byte_controls[token - BYTE_COUNT].ends_turn;
}

static inline size_t piece(const void *argument, int32_t token, bool control, char *text, size_t room) {
    const char *name = token < BYTE_COUNT ? "" : byte_controls[token - BYTE_COUNT].text;
    (void)argument;
    assert_true(room > strlen(name));
    if (token >= BYTE_COUNT) {
        memcpy(text, name, strlen(name));
        return control || is_tag((size_t)(token - BYTE_COUNT)) ? strlen(name) : 0;
    }
    text[0] = (char)token;
    return 1;
}

static inline enum fm_code tokenize(const void *argument, const char *text, size_t len, int32_t **tokens, size_t *count,
                                    struct fm_error *error) {
    (void)argument;
    (void)error;
    *tokens = malloc((len + 1) * sizeof **tokens);
    assert_non_null(*tokens);
    for (size_t i = 0; i < len; i++) {
        (*tokens)[i] = (unsigned char)text[i];
    }
    *count = len;
    return FM_OK;
}

static inline size_t tag(const void *argument, const char *text, size_t len, int32_t *token) {
    (void)argument;
    for (size_t i = 0; i < byte_control_count; i++) {
        const size_t tag_len = strlen(byte_controls[i].text);
        if (is_tag(i) && tag_len <= len && memcmp(text, byte_controls[i].text, tag_len) == 0) {
            *token = (int32_t)(BYTE_COUNT + i);
            return tag_len;
        }
    }
    return 0;
}

static struct fm_grammar_vocab *vocab;
static struct fm_vocabulary vocabulary;

static inline int make_vocab(void **state) {
    (void)state;
    vocabulary = (struct fm_vocabulary){.size = (int32_t)(BYTE_COUNT + byte_control_count),
                                        .end_of_turn = BYTE_COUNT,
                                        .ends_turn = ends_turn,
                                        .piece = piece,
                                        .tokenize = tokenize,
                                        .tag = tag};
    struct fm_error error;
    return fm_grammar_vocab_new(&vocabulary, NULL, NULL, &vocab, &error);
}

static inline int free_vocab(void **state) {
    (void)state;
    fm_grammar_vocab_free(vocab);
    return 0;
}

/* `schema`: that of the job's format; NULL: there is none. */
static inline struct fm_grammar *new_grammar(const struct fm_kit_job *job, const struct fm_tool_form *form,
                                             const char *schema) {
    struct fm_buf lark;
    struct fm_grammar *grammar;
    struct fm_error error;
    fm_buf_init(&lark, LARK_MAX);
    assert_int_equal(fm_tool_grammar(job, form, &vocabulary, schema, schema ? strlen(schema) : 0, &lark, &error), FM_OK);
    fm_buf_append(&lark, "", 1);
    assert_int_equal(fm_grammar_new(vocab, "lark", lark.data, &grammar, &error), FM_OK);
    if (fm_grammar_wait(grammar, NEVER, &error) != FM_OK) {
        fail_msg("%s\n%s", error.detail, lark.data);
    }
    fm_buf_free(&lark);
    return grammar;
}

#endif
