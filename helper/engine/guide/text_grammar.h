/* Texts in llguidance's Lark: fixed texts, and the keywords of a schema for a text that is not written as JSON. */
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
 * Appends to `lark` ` & ` and an expression of terminals for each keyword of `schema` that limits a text and that a
 * grammar can enforce: "minLength", "maxLength", "format", "pattern". If memory runs out, `lark` fails.
 */
void fm_text_grammar(const struct fm_value_schema *schema, struct fm_buf *lark);

/*
 * Appends the regular expression of all texts without `mark` (`len` bytes of UTF-8). The first character of `mark` must
 * not come again in it.
 */
void fm_text_without(const char *mark, size_t len, struct fm_buf *lark);

#endif
