/* Texts in llguidance's Lark: fixed ones, and what a schema says about a text that is not written as JSON. */
#ifndef FM_ENGINE_GUIDE_TEXT_GRAMMAR_H
#define FM_ENGINE_GUIDE_TEXT_GRAMMAR_H

#include "base/buf.h"
#include "engine/chat/value_schema.h"

#include <stdint.h>

/* Appends `text` (`len` bytes) as a literal, which is a JSON string. */
void fm_text_literal(const char *text, size_t len, struct fm_buf *lark);

/* Appends ` <[5]>`, the control token 5. */
void fm_text_control(int32_t token, struct fm_buf *lark);

/*
 * Appends to `lark` ` & ` and an expression of terminals for each of the keywords of text that `schema` has, and that a
 * grammar can enforce: "minLength", "maxLength", "format", "pattern". If memory runs out, `lark` fails.
 */
void fm_text_grammar(const struct fm_value_schema *schema, struct fm_buf *lark);

/*
 * Appends the regular expression of all texts without `mark` (`len` bytes of UTF-8, the first of which comes only once
 * in it).
 */
void fm_text_without(const char *mark, size_t len, struct fm_buf *lark);

#endif
