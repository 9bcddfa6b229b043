/* The part of a tool grammar that makes arguments in a notation other than JSON (notation.h) follow their schema. */
#ifndef FM_ENGINE_GUIDE_NOTATION_GRAMMAR_H
#define FM_ENGINE_GUIDE_NOTATION_GRAMMAR_H

#include "engine/chat/tools.h"

/*
 * Appends to `lark` the rules for the arguments of `tool`, for which fm_notation_fits is true; the first rule is called
 * `notation` and the `index`. `known` is a json-c object, empty for the first tool: equal parts of several tools are
 * written once. FM_INVALID_REQUEST: a schema of numbers can't be used. FM_INTERNAL: out of memory, which `lark` may
 * show too.
 */
FM_MUST_USE enum fm_code fm_notation_grammar(const struct fm_notation *notation, const struct fm_tool *tool, size_t index,
                                             struct json_object *known, struct fm_buf *lark, struct fm_error *error);

/* Appends the rules that all tools share. */
void fm_notation_grammar_shared(const struct fm_notation *notation, struct fm_buf *lark);

#endif
