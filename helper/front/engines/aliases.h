/*
 * Other names of models: NAME=MODEL,NAME=MODEL,... in the form of --aliases. The name "*" stands for every name that is
 * neither a model nor an alias. Pure.
 */
#ifndef FM_FRONT_ENGINES_ALIASES_H
#define FM_FRONT_ENGINES_ALIASES_H

#include <stdbool.h>

#define FM_ALIAS_MAX 255 /* bytes of a name, and of the model that it stands for */

/* Whether `text` is a valid list: no name and no model is empty or longer than FM_ALIAS_MAX. "" is an empty list. */
bool fm_aliases_valid(const char *text);

/*
 * Writes the model that `name` stands for to `model`. False: the name is no alias, and there is no "*". If several
 * entries have the same name, the first one counts. `text` NULL is an empty list.
 */
bool fm_aliases_find(const char *text, const char *name, char model[FM_ALIAS_MAX + 1]);

#endif
