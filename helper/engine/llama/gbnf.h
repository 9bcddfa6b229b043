/*
 * A grammar in llama.cpp's GBNF (grammars/README.md and src/llama-grammar.cpp there) becomes one in llguidance's
 * variant of Lark, for the same texts.
 *
 * llguidance reads text in two steps: a lexer cuts it into lexemes (what a terminal, a literal or a regular expression
 * matches), the longest that is possible at each place, and a parser puts the lexemes together. GBNF has no such cut.
 * So a part of the grammar becomes a lexeme only where one look at the next byte tells which lexeme begins and whether
 * it goes on; what remains is cut into single characters, which is always right and takes llguidance longer.
 */
#ifndef FM_ENGINE_LLAMA_GBNF_H
#define FM_ENGINE_LLAMA_GBNF_H

#include "base/buf.h"
#include "base/error.h"

#define FM_GBNF_MAX         65536u  /* bytes of a grammar */
#define FM_GBNF_RULES_MAX   1000u   /* rules of a grammar */
#define FM_GBNF_NAME_MAX    128u    /* characters of a rule's name */
#define FM_GBNF_GROUPS_MAX  32u     /* groups within each other in the text */
#define FM_GBNF_NESTING_MAX 512u    /* rules, groups, sequences and repetitions within each other */
#define FM_GBNF_REPEAT_MAX  100000u /* m and n of {m,n}; llama.cpp bears 2,000, llguidance 1.9 bears 100,000,000 */

/*
 * gbnf: NUL-terminated UTF-8. On success what was in `lark` is followed by the Lark text, whose start rule is "start";
 * a NUL stands behind it that `lark->len` does not count. On failure what `lark` holds is of no use.
 *
 * FM_INVALID_REQUEST with param "format.definition" and a detail that begins with "line L, column C: " (both from 1, a
 * column is a character) when it is no GBNF, when a rule is defined twice (llama.cpp takes the last) or not at all,
 * when a rule begins with itself (llama.cpp refuses it too) or never ends, when a class or a literal can match no text,
 * when a token (`<name>`, `<[id]>`, `!<name>`) is asked for, when a limit above is passed, or when the Lark text is
 * longer than lark->max. FM_INTERNAL: out of memory.
 *
 * Pure; takes some 40 KiB of stack and up to 16 MiB of memory. llguidance recurses over the result: 512 of
 * FM_GBNF_NESTING_MAX take it about 1 MiB of stack.
 */
FM_MUST_USE enum fm_code fm_gbnf_to_lark(const char *gbnf, struct fm_buf *lark, struct fm_error *error);

#endif
