// The log of llama.cpp's common/, which says nothing here: its lines hold prompts. It takes the place of log.cpp, which
// writes from its own thread, and waits there with the one function that RHEL 9's libstdc++ lacks
// (GLIBCXX_3.4.30).
#include "log.h"

class common_json; // the log.h of some pinned releases does not declare it

struct common_log {};

int common_log_get_verbosity_thold(void) {
    return -1;
}

void common_log_set_verbosity_thold(int) {}

bool common_log_get_jsonl(void) {
    return false;
}

void common_log_default_callback(enum ggml_log_level, const char *, void *) {}

struct common_log *common_log_main() {
    static common_log none;
    return &none;
}

void common_log_add(struct common_log *, enum ggml_log_level, const char *, ...) {}

void common_log_add_json(struct common_log *, const char *, const common_json &) {}

void common_log_set_prefix(struct common_log *, bool) {}

void common_log_set_timestamps(struct common_log *, bool) {}
