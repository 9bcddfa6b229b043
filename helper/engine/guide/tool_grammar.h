/* The grammar of an answer that may call tools. Pure. */
#ifndef FM_ENGINE_GUIDE_TOOL_GRAMMAR_H
#define FM_ENGINE_GUIDE_TOOL_GRAMMAR_H

#include "engine/chat/tools.h"
#include "engine/guide/grammar.h"

/*
 * Appends llguidance's Lark for the answer to `job`, whose tools can be called. Tags after a call are the tokens that
 * `vocabulary` (NULL: none) has for them. A text must match `schema` (`len` bytes, as the guide in struct fm_schema);
 * NULL: any text. FM_INVALID_REQUEST: a tool's schema can't be enforced; the param is the path of the schema, from
 * "tools[" on. FM_INTERNAL: out of memory.
 */
FM_MUST_USE enum fm_code fm_tool_grammar(const struct fm_kit_job *job, const struct fm_tool_form *form,
                                         const struct fm_vocabulary *vocabulary, const char *schema, size_t len,
                                         struct fm_buf *lark, struct fm_error *error);

/*
 * Appends the Lark of any text in which no call begins, for an answer that may not call a tool in `form`. False: a call
 * in that form can't be distinguished from text, and nothing is appended.
 */
bool fm_tool_grammar_none(const struct fm_tool_form *form, struct fm_buf *lark);

/*
 * Appends `rule: %json` and the part of `schema` that a grammar enforces. `schema` is a part of the schema of `tool`,
 * and is released; NULL: out of memory. The other files of the grammar use this function.
 */
FM_MUST_USE enum fm_code fm_tool_grammar_schema(const char *rule, struct json_object *schema, const struct fm_tool *tool,
                                                struct fm_buf *lark, struct fm_error *error);

#endif
