#include "engine/llama/gbnf.h"
#include "engine/llama/gbnf_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum fm_code fm_gbnf_fail(const struct fm_gbnf *grammar, size_t offset, const char *expected, struct fm_error *error) {
    size_t line = 1;
    size_t column = 1;
    for (const char *at = grammar->text; at < grammar->text + offset; at++) {
        if (*at == '\n' || (*at == '\r' && at[1] != '\n')) {
            line++;
            column = 1;
        } else {
            column += ((unsigned char)*at & 0xC0) != 0x80;
        }
    }
    fm_fail(error, FM_INVALID_REQUEST, "line %zu, column %zu: %s", line, column, expected);
    snprintf(error->param, sizeof error->param, "format.definition");
    return error->code;
}

static bool grammar_init(struct fm_gbnf *grammar, const char *text) {
    *grammar = (struct fm_gbnf){.text = text, .len = strnlen(text, FM_GBNF_MAX + 1)};
    grammar->nodes = calloc(grammar->len + 2, sizeof *grammar->nodes);
    grammar->ranges = calloc(grammar->len + 1, sizeof *grammar->ranges);
    grammar->rules = calloc(FM_GBNF_RULES_MAX, sizeof *grammar->rules);
    return grammar->nodes && grammar->ranges && grammar->rules;
}

enum fm_code fm_gbnf_to_lark(const char *gbnf, struct fm_buf *lark, struct fm_error *error) {
    struct fm_gbnf grammar;
    enum fm_code code = grammar_init(&grammar, gbnf) ? FM_OK : fm_fail_no_memory(error);
    code = code ? code : fm_gbnf_parse(&grammar, error);
    code = code ? code : fm_gbnf_choose_lexemes(&grammar, error);
    code = code ? code : fm_gbnf_write(&grammar, lark, error);
    free(grammar.nodes);
    free(grammar.ranges);
    free(grammar.rules);
    return code;
}
