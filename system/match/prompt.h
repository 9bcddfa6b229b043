/*
 * The model's prompt: how to answer, the candidates, and the user's words. Titles are cut, and have no control
 * characters. The prompt has only the host of a site's address. Pure.
 */
#ifndef SY_PROMPT_H
#define SY_PROMPT_H

#include "match/schema.h"

struct fm_buf;

/* The instructions: the same in every prompt, so that the model has to read them only once. */
extern const char sy_instructions[];

/* An example before the question: a prompt with a user's words, and the answer. */
struct sy_example {
    const char *prompt;
    const char *answer;
};
extern const struct sy_example sy_examples[];
extern const size_t sy_example_count;

/* Appends the candidates and the words. */
void sy_prompt_write(const struct sy_menu *menu, const char *words, struct fm_buf *prompt);

#endif
