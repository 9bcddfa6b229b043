/*
 * Part of the engines in a build with AddressSanitizer: turns the leak check off by default. If an engine does not end
 * in time, the front kills it, or the engine ends itself. The leak check runs in a separate process, which stops the
 * engine. If the engine then dies, this process waits for ever, and keeps the test's pipes open. The contract tests
 * request the check, and end this process (contract/engine.py).
 */
const char *__asan_default_options(void);

const char *__asan_default_options(void) {
    return "detect_leaks=0";
}
