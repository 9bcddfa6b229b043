/* The part of a tool grammar that holds arguments in another notation than JSON (notation.h) to their schema. */
#ifndef FM_ENGINE_GUIDE_NOTATION_GRAMMAR_H
#define FM_ENGINE_GUIDE_NOTATION_GRAMMAR_H

#include "engine/chat/tools.h"

/*
 * Appends to `lark` the rules of the arguments of `tool`, which fm_notation_fits takes: `notation` and `index` is the
 * first. `known` is an object of json-c, empty for the first tool: what is alike in several tools is written once.
 * FM_INVALID_REQUEST: a schema of numbers can't be used. FM_INTERNAL: out of memory, which may show in `lark` too.
 */
FM_MUST_USE enum fm_code fm_notation_grammar(const struct fm_notation *notation, const struct fm_tool *tool, size_t index,
                                             struct json_object *known, struct fm_buf *lark, struct fm_error *error);

/* The rules that those of all tools share. */
void fm_notation_grammar_shared(const struct fm_notation *notation, struct fm_buf *lark);

#endif
