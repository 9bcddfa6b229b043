/* A target that an input beginning with "!" aborts: test_run.py holds replay.c to naming that input. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    HOLDS(size == 0 || data[0] != '!');
    return 0;
}
