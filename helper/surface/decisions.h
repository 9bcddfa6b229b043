/*
 * Decisions: questions about a text, each with a list of possible answers. The engine reports how likely it is that the
 * model gives each of them (ENGINE.md, Decisions). Shared inside this folder.
 */
#ifndef FM_SURFACE_DECISIONS_H
#define FM_SURFACE_DECISIONS_H

#include "protocol/engine.h"
#include "surface/surface.h"

struct json_object;

/* How many answers the checked question has: 2 for a predicate. Pure. */
size_t fm_question_choices(struct json_object *question);

/*
 * Fills `order` (room for FM_QUESTION_CHOICES_MAX) with the indices of the question's answers, in the order in which
 * the engine gets them. The order of choices in a request must not matter, so they are sorted. The levels of a score
 * keep their order.
 */
void fm_question_order(struct json_object *question, size_t order[FM_QUESTION_CHOICES_MAX]);

#endif
