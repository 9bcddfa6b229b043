/* The grammar of an answer that may call tools. Pure. */
#ifndef FM_ENGINE_GUIDE_TOOL_GRAMMAR_H
#define FM_ENGINE_GUIDE_TOOL_GRAMMAR_H

#include "engine/chat/tools.h"
#include "engine/guide/grammar.h"

/*
 * Appends llguidance's Lark for the answer to `job`, whose tools can be called. Tags after a call are the tokens that
 * `vocabulary` (NULL: none) has for them. `schema` (`len` bytes, as fm_schema's guide) is what a text has to match; NULL:
 * any text. FM_INVALID_REQUEST: a tool's schema can't be enforced, and the param is its path, from "tools[" on.
 * FM_INTERNAL: out of memory.
 */
FM_MUST_USE enum fm_code fm_tool_grammar(const struct fm_kit_job *job, const struct fm_tool_form *form,
                                         const struct fm_vocabulary *vocabulary, const char *schema, size_t len,
                                         struct fm_buf *lark, struct fm_error *error);

/* Appends the Lark of any text in which no call begins, for an answer that may not call a tool in `form`. False: in that
 * form a call is text as any other, and nothing is appended. */
bool fm_tool_grammar_none(const struct fm_tool_form *form, struct fm_buf *lark);

/*
 * Appends `rule: %json` and what a grammar enforces of `schema`, which is a part of `tool`'s, and is released; NULL: out of
 * memory. The other parts of the grammar are written with it.
 */
FM_MUST_USE enum fm_code fm_tool_grammar_schema(const char *rule, struct json_object *schema, const struct fm_tool *tool,
                                                struct fm_buf *lark, struct fm_error *error);

#endif
