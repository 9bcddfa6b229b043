/* `fm-system do "words"`: the matcher makes the request, as an agent would, and the user answers its questions. */
#ifndef SY_CLI_DO_H
#define SY_CLI_DO_H

#include "match/match.h"

#include <stdio.h>

struct sy_do {
    bool json;     /* prints the envelope and the result as JSON, a line each, and asks nothing */
    bool dry_run;  /* only says what would be done */
    bool yes;      /* closes without asking */
    bool terminal; /* `in` and `out` are the user's: questions can be asked */
    FILE *in, *out, *err;
    const struct sy_picker *picker; /* NULL: there is no model */
};

enum sy_done {
    SY_DONE = 0,
    SY_NOT_DONE = 1, /* refused, failed, or the user said no */
    SY_UNCLEAR = 2,  /* nothing was done: the question is on `out` */
};

/* Matches, asks, runs and prints. Blocks as long as the user, the model and the desktop do. Returns the exit status. */
enum sy_done sy_do(struct sy_world *world, const char *words, const struct sy_do *how);

#endif
