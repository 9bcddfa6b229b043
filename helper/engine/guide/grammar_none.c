/* A build without llguidance: no grammar is ever made, so calls that need one can't be reached. */
#include "engine/guide/grammar.h"
#include "engine/guide/guidance/guidance.h"

#include <stdlib.h>

bool fm_grammar_supported(void) {
    return false;
}

enum fm_code fm_grammar_vocab_new(const struct fm_vocabulary *vocabulary, void (*wake)(void *), void *waiter,
                                  struct fm_grammar_vocab **vocab, struct fm_error *error) {
    (void)vocabulary;
    (void)wake;
    (void)waiter;
    *vocab = NULL;
    return fm_fail(error, FM_INTERNAL, "this build has no llguidance; build with FM_GUIDANCE=on");
}

void fm_grammar_vocab_free(struct fm_grammar_vocab *vocab) {
    (void)vocab;
}

enum fm_code fm_grammar_new(struct fm_grammar_vocab *vocab, const char *kind, const char *text,
                            struct fm_grammar **grammar, struct fm_error *error) {
    (void)vocab;
    (void)kind;
    (void)text;
    *grammar = NULL;
    return fm_fail(error, FM_INTERNAL, "this build has no llguidance; build with FM_GUIDANCE=on");
}

void fm_grammar_free(struct fm_grammar *grammar) {
    (void)grammar;
}

bool fm_grammar_compiles(const struct fm_grammar *grammar) {
    (void)grammar;
    abort();
}

enum fm_code fm_grammar_wait(struct fm_grammar *grammar, int64_t until_ms, struct fm_error *error) {
    (void)grammar;
    (void)until_ms;
    (void)error;
    abort();
}

bool fm_grammar_allows(struct fm_grammar *grammar, int32_t token) {
    (void)grammar;
    (void)token;
    abort();
}

const uint32_t *fm_grammar_mask(struct fm_grammar *grammar) {
    (void)grammar;
    abort();
}

bool fm_grammar_take(struct fm_grammar *grammar, int32_t token) {
    (void)grammar;
    (void)token;
    abort();
}

bool fm_grammar_restart(struct fm_grammar *grammar) {
    (void)grammar;
    abort();
}

int32_t fm_grammar_forced(struct fm_grammar *grammar) {
    (void)grammar;
    abort();
}

bool fm_grammar_complete(const struct fm_grammar *grammar) {
    (void)grammar;
    abort();
}

bool fm_grammar_accepts(struct fm_grammar *grammar) {
    (void)grammar;
    abort();
}

const char *fm_grammar_reason(struct fm_grammar *grammar) {
    (void)grammar;
    abort();
}

int32_t fm_schema_check(const char *schema, size_t schema_len, const char *instance, size_t instance_len, char *reason,
                        size_t reason_size) {
    (void)schema;
    (void)schema_len;
    (void)instance;
    (void)instance_len;
    (void)reason;
    (void)reason_size;
    abort();
}
