/*
 * Part of the engines in a build with AddressSanitizer. An engine that does not end in time is killed by the front, or
 * ends itself. A leak check at that end stops the world from a separate process, which then waits for ever, with the
 * test's pipes open. The contract tests request the check, and end that process (contract/engine.py).
 */
const char *__asan_default_options(void);

const char *__asan_default_options(void) {
    return "detect_leaks=0";
}
