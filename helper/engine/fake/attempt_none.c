/* A system that has no sandbox: there is nothing to try. */
#include "engine/fake/attempt.h"

#include <stddef.h>

bool fm_attempt_known(const char *attempt) {
    (void)attempt;
    return false;
}

const char *fm_attempt_run(const char *attempt) {
    (void)attempt;
    return NULL;
}
