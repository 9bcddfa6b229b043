/*
 * Part of the engines in a build with AddressSanitizer. The front kills an engine that does not end in time. A leak
 * check at that end stops the world from a process of its own, which then waits for ever, with the test's pipes open.
 * The contract tests, which kill nobody, ask for the check.
 */
const char *__asan_default_options(void);

const char *__asan_default_options(void) {
    return "detect_leaks=0";
}
