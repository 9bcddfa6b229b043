/*
 * fm-engine-apple: Apple's Foundation Models, through Apple's C bindings (bindings.h). It has one model, and one job at
 * a time (inbox.h). Two variables of the environment set it up:
 *
 *     FM_ENGINE_APPLE_LIBRARY     the path of the library; if it is not set, the library is looked for beside the
 *                                 program, and in the app's Frameworks
 *     FM_ENGINE_APPLE_GUARDRAILS  permissive   (Apple's guardrails for changes of given texts, which let more through)
 *
 * If the library does not stop a task that it was told to stop, the engine ends after its job, with
 * FM_APPLE_EXIT_STUCK.
 */
#include "base/platform.h"
#include "engine/apple/engine.h"
#include "engine/apple/status.h"
#include "engine/guide/grammar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define LIBRARY             "libFoundationModels.dylib"
#define OLDEST_MACOS        26
#define FM_APPLE_EXIT_STUCK EX_TEMPFAIL
#define NOT_READY_TTL_MS    30000 /* macOS may be downloading the model, which ends at some time */
#define PATH_SIZE           4096

enum { USE_GENERAL = 0, GUARDRAILS_DEFAULT = 0, GUARDRAILS_PERMISSIVE = 1 };

static struct fm_apple the_apple;

static enum fm_code unavailable(struct fm_error *error, const char *reason_code, const char *detail) {
    (void)fm_fail(error, FM_UNAVAILABLE, "%s", detail);
    snprintf(error->reason_code, sizeof error->reason_code, "%s", reason_code);
    return FM_UNAVAILABLE;
}

/* False: no path fits. */
static bool find_library(char path[PATH_SIZE]) {
    const char *set = getenv("FM_ENGINE_APPLE_LIBRARY");
    char folder[PATH_SIZE - 64];
    if (set && set[0]) {
        return snprintf(path, PATH_SIZE, "%s", set) < PATH_SIZE;
    }
    if (!fm_program_dir(folder, sizeof folder)) {
        return false;
    }
    snprintf(path, PATH_SIZE, "%s/../Frameworks/" LIBRARY, folder);
    if (access(path, R_OK) != 0) {
        snprintf(path, PATH_SIZE, "%s/" LIBRARY, folder);
    }
    return true;
}

static bool has_library_set(void) {
    const char *set = getenv("FM_ENGINE_APPLE_LIBRARY");
    return set && set[0];
}

/* Whether the library is open and there is a model object. The model may still be unavailable. */
static enum fm_code open_library(struct fm_apple *apple, struct fm_error *error) {
    const char *guardrails = getenv("FM_ENGINE_APPLE_GUARDRAILS");
    char path[PATH_SIZE];
    int system = fm_macos_version();
    if (apple->opened) {
        return FM_OK;
    }
    if (system == 0 && !has_library_set()) {
        return unavailable(error, "UNSUPPORTED_PLATFORM", "Apple's model is a part of macOS; use another engine here");
    }
    if (system > 0 && system < OLDEST_MACOS) {
        return unavailable(error, "OS_TOO_OLD", "Apple's model needs macOS 26 or later; update macOS");
    }
    if (!find_library(path)) {
        return unavailable(error, "HELPER_UNHEALTHY", "the path of Apple's library is too long");
    }
    enum fm_code code = fm_apple_open(path, &apple->api, error);
    if (code == FM_OK) {
        bool permissive = guardrails && strcmp(guardrails, "permissive") == 0;
        apple->model = apple->api.model_create(USE_GENERAL, permissive ? GUARDRAILS_PERMISSIVE : GUARDRAILS_DEFAULT);
        apple->opened = true;
    }
    return code;
}

static enum fm_code check_model(struct fm_apple *apple, struct fm_error *error) {
    int reason = FM_APPLE_REASON_UNKNOWN;
    enum fm_code code = open_library(apple, error);
    if (code != FM_OK) {
        return code;
    }
    return apple->api.model_available(apple->model, &reason) ? FM_OK : fm_apple_unavailable(reason, error);
}

static void available(void *state, struct fm_kit *kit, struct fm_availability *out) {
    static char reason_code[sizeof((struct fm_error *)0)->reason_code];
    struct fm_error error;
    (void)kit;
    out->available = check_model(state, &error) == FM_OK;
    if (!out->available) {
        memcpy(reason_code, error.reason_code, sizeof reason_code);
        out->reason_code = reason_code;
        snprintf(out->detail, sizeof out->detail, "%s", error.detail);
        out->ttl_ms = strcmp(reason_code, "MODEL_NOT_READY") == 0 ? NOT_READY_TTL_MS : out->ttl_ms;
    }
}

static enum fm_code load_apple(void *state, struct fm_kit *kit, const struct fm_model_files *files,
                               struct fm_model_info *info, struct fm_error *error) {
    struct fm_apple *apple = state;
    (void)kit;
    (void)files;
    enum fm_code code = check_model(apple, error);
    if (code != FM_OK) {
        return code;
    }
    apple->context_length = apple->api.model_context(apple->model);
    if (apple->context_length <= 0) {
        return unavailable(error, "HELPER_UNHEALTHY", "Apple's library does not say how long the model's context is");
    }
    fm_apple_calibrate(apple);
    *info = (struct fm_model_info){.context_length = apple->context_length, .slots = 1, .silent = true};
    return FM_OK;
}

static void wake(void *state) {
    (void)state;
    fm_apple_inbox_wake();
}

static void serve_apple(void *state, struct fm_kit *kit) {
    struct fm_apple *apple = state;
    struct fm_kit_job *job;
    while (!apple->stuck && (job = fm_kit_take(kit, true))) {
        struct fm_error error = {0};
        enum fm_reason reason = fm_apple_answer(apple, job, &error);
        fm_kit_job_finish(job, reason, &error);
    }
    if (apple->stuck) {
        _exit(FM_APPLE_EXIT_STUCK); /* threads of the library still use memory that a normal end would free */
    }
}

static void release_model(struct fm_apple *apple) {
    if (apple->model && !apple->stuck) {
        apple->api.release(apple->model);
        apple->model = NULL;
    }
}

int main(int argc, char *argv[]) {
    const struct fm_engine_ops ops = {
        .name = "apple",
        .version = FM_VERSION,
        .slots = 1,
        .features = FM_FEATURE_TOOLS | FM_FEATURE_INPUT_TOKENS | FM_FEATURE_TRUNCATION | FM_FEATURE_SEEDS |
                    FM_FEATURE_STOPS |
                    /* llguidance is used to check complete answers */
                    (fm_grammar_supported() ? FM_FEATURE_STRUCTURED_OUTPUT : 0u),
        .platforms = FM_ON_MACOS,
        .needs_services = true,
        .state = &the_apple,
        .load = load_apple,
        .available = available,
        .wake = wake,
        .serve = serve_apple,
    };
    if (!fm_apple_inbox_init()) {
        return FM_EXIT_NO_MEMORY;
    }
    int status = fm_kit_main(&ops, argc, argv);
    release_model(&the_apple);
    return status;
}
