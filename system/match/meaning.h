/*
 * For words that are in no name: finds the tab or application whose name is nearest in meaning to the words, if no
 * other name is nearly as near. An embedding model compares them. It picks among existing things, and can't invent any.
 */
#ifndef SY_MEANING_H
#define SY_MEANING_H

#include "match/lexical.h"
#include "match/model.h"

/*
 * `found->type` NULL: nothing is near enough, or the model failed or did not answer until `until_ms` of fm_now_ms, and
 * `fault` says why. FM_INTERNAL: out of memory.
 */
FM_MUST_USE enum fm_code sy_meaning(const struct sy_index *index, const struct sy_reading *reading, const char *words,
                                    const struct sy_picker *picker, int64_t until_ms, struct sy_found *found,
                                    struct fm_error *fault, struct fm_error *error);

#endif
