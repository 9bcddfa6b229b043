/* A target that aborts at an input that begins with "!": test_run.py checks that replay.c names that input. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    HOLDS(size == 0 || data[0] != '!');
    return 0;
}
