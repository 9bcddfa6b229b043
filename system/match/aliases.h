/* Words that people use for kinds of applications, and what such applications are called. */
#ifndef SY_ALIASES_H
#define SY_ALIASES_H

#include <stdbool.h>

/* `word` is used for the application with this name or program; both in small letters without gaps. Pure. */
bool sy_alias_fits(const char *word, const char *name);

#endif
