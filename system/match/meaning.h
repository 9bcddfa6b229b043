/*
 * What is meant by words that nothing is called by, by a model that embeds: the tab or application whose name is
 * nearest to the words, if nothing else comes near. It picks among what exists, and can't make anything up.
 */
#ifndef SY_MEANING_H
#define SY_MEANING_H

#include "match/lexical.h"
#include "match/model.h"

/*
 * `found->type` NULL: nothing is near enough, or the vectors were not there at `until_ms` of fm_now_ms; `fault` says
 * why. FM_INTERNAL: out of memory.
 */
FM_MUST_USE enum fm_code sy_meaning(const struct sy_index *index, const struct sy_reading *reading, const char *words,
                                    const struct sy_picker *picker, int64_t until_ms, struct sy_found *found,
                                    struct fm_error *fault, struct fm_error *error);

#endif
