/* Requirements of a job's format and tools on its answer: a grammar for the generation, and a check afterwards. */
#ifndef FM_ENGINE_GUIDE_GUIDE_H
#define FM_ENGINE_GUIDE_GUIDE_H

#include "engine/chat/tools.h"
#include "engine/guide/grammar.h"
#include "engine/kit/kit.h"

struct fm_guide {
    struct fm_grammar *grammar; /* NULL: free text */
    const char *param;          /* the part of the job that the grammar is made of: "format" or "tools" */
    char fault[64];             /* the path from `source` to the part at fault, if the grammar does not compile */
    struct json_object *schema; /* the job's schema, by which `text` is checked. NULL: there is nothing to check */
    struct fm_buf text;         /* the output so far, if the output has to be checked */
};

/*
 * Makes the grammar of `job`'s format and tools, which are called in `form`. If `*vocab` is NULL and needed, it is made
 * from `vocabulary`. The kit of `job` (NULL: none) is woken when a grammar of this vocabulary may have been compiled.
 * Does not wait for the compilation: call fm_guide_wait before the grammar is used. Fills job->schema_report.
 * FM_INVALID_REQUEST says what is wrong, with a path that begins with "format" or "tools". On failure nothing is left
 * to free.
 */
FM_MUST_USE enum fm_code fm_guide_init(struct fm_guide *guide, struct fm_kit_job *job, const struct fm_tool_form *form,
                                       const struct fm_vocabulary *vocabulary, struct fm_grammar_vocab **vocab,
                                       struct fm_error *error);

/* True if there is a grammar that is not compiled yet. */
bool fm_guide_compiles(const struct fm_guide *guide);

/* Works as fm_grammar_wait; an error has a path as in fm_guide_init. On failure only fm_guide_free may be called. */
FM_MUST_USE enum fm_code fm_guide_wait(struct fm_guide *guide, int64_t until_ms, struct fm_error *error);
void fm_guide_free(struct fm_guide *guide);

/* Adds output to the text. False when out of memory. */
FM_MUST_USE bool fm_guide_add(struct fm_guide *guide, const char *bytes, size_t len);

#define FM_GUIDE_UNCHECKED "it could not be checked" /* the beginning of a reason that is not a violation */

/*
 * Call it when the text is complete. `reason` gets how the text violates the schema, or why that can't be checked;
 * nothing if the text is valid. Blocks for at most 0.4 s of processor time, or 10 s by the clock. False when the check
 * does not end. Then a thread continues the check and uses more and more memory, so the process should end soon.
 */
FM_MUST_USE bool fm_guide_check(const struct fm_guide *guide, struct fm_buf *reason);

/*
 * Checks a complete text that was generated without a grammar: whether `text` is JSON and matches `schema` (borrowed).
 * For engines whose output comes from another program.
 */
FM_MUST_USE bool fm_guide_check_text(struct json_object *schema, const char *text, size_t len, struct fm_buf *reason);

#endif
