/*
 * fm-engine-llama: GGUF models through llama.cpp. The engine thread generates all jobs, batch by batch (scheduler.h).
 * Everything here belongs to it; ggml's compute threads know nothing of jobs. Its settings are the environment
 * variables FM_ENGINE_LLAMA_CTX, FM_ENGINE_LLAMA_SLOTS, FM_ENGINE_LLAMA_KV_TOKENS, FM_ENGINE_LLAMA_SPECULATION,
 * FM_ENGINE_LLAMA_KERNELS and FM_ENGINE_LLAMA_THREADS (docs/options.md).
 */
#include "base/platform.h"
#include "engine/kit/kit.h"
#include "engine/llama/context.h"
#include "engine/llama/draft_model.h"
#include "engine/llama/embed.h"
#include "engine/llama/gpu.h"
#include "engine/llama/scheduler.h"
#include "engine/llama/vision.h"
#include "engine/llama/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS     "FM_ENGINE_LLAMA_SLOTS"
#define KV_TOKENS "FM_ENGINE_LLAMA_KV_TOKENS"
#define THREADS   "FM_ENGINE_LLAMA_THREADS"

#define SLOTS_MAX 64

/*
 * The least time between two deltas: too short to see. A small model makes several tokens in that time, and each delta
 * wakes the front and the host, on cores that the model computes on.
 */
#define DELTA_MS 30

struct llama_engine {
    struct fm_llama_model model;
    struct fm_draft_model draft; /* ->context NULL: none */
    struct fm_scheduler scheduler;
    struct fm_saved saved;
    struct fm_huge_pages pages; /* pages of the weights that still have to be moved */
};

static struct llama_engine the_engine;

/* ---- load ---- */

struct load_progress {
    struct fm_kit *kit;
    float from; /* where the file that is loaded now begins in the whole progress */
    float part;
    float told;
};

#define MODEL_PART 0.8F /* the model's part of the load's progress, if a draft model is loaded too */

/* llama.cpp reports progress for each of hundreds of tensors; it is passed on once a percent. */
static bool on_progress(float progress, void *argument) {
    struct load_progress *state = argument;
    progress = state->from + progress * state->part;
    if (progress >= state->told + 0.01f || (progress >= 1 && state->told < 1)) {
        state->told = progress;
        fm_kit_load_progress(state->kit, progress);
    }
    return !fm_kit_ending(state->kit);
}

/* An environment variable with a number from 1 to `max`; 0 when it is not set. `told`: its name in errors. */
static enum fm_code read_setting(const char *name, const char *told, int64_t max, int64_t *value,
                                 struct fm_error *error) {
    const char *text = getenv(name);
    char *end;
    *value = 0;
    if (!text || !text[0]) {
        return FM_OK;
    }
    *value = strtoll(text, &end, 10);
    if (*end || *value < 1 || *value > max) { /* a number too large for the type is read as the type's maximum */
        return fm_fail(error, FM_UNAVAILABLE, "%s is not a number from 1 to %lld", told, (long long)max);
    }
    return FM_OK;
}

/*
 * ggml's threads wait for each other in a loop. With one thread more than this process has processors, almost nothing
 * gets done.
 */
static int64_t threads_max(void) {
    struct fm_processors usable;
    fm_processors(&usable);
    return usable.count < GGML_MAX_N_THREADS ? usable.count : GGML_MAX_N_THREADS;
}

/* How many jobs run at once, and whether all jobs are repeatable: a repeatable job runs alone. */
static enum fm_code read_slots(struct fm_llama_model_options *options, struct fm_error *error) {
    const char *repeatable = getenv("FM_ENGINE_LLAMA_REPEATABLE");
    options->repeatable = repeatable && strcmp(repeatable, "1") == 0;
    enum fm_code code = read_setting(SLOTS, SLOTS, SLOTS_MAX, &options->slots, error);
    if (code != FM_OK) {
        return code;
    }
    if (repeatable && repeatable[0] && !options->repeatable) {
        return fm_fail(error, FM_UNAVAILABLE, "FM_ENGINE_LLAMA_REPEATABLE is neither 1 nor empty");
    }
    if (options->repeatable && options->slots > 1) {
        return fm_fail(
            error, FM_UNAVAILABLE,
            "FM_ENGINE_LLAMA_SLOTS is %lld, but with FM_ENGINE_LLAMA_REPEATABLE each request runs alone: leave "
            "one of them out",
            (long long)options->slots);
    }
    return FM_OK;
}

/* Which tokens are computed ahead; "always" is for tests. */
static enum fm_code read_drafts(struct fm_llama_model_options *options, struct fm_error *error) {
    static const char *const names[] = {
        [FM_DRAFTS_OFF] = "off", [FM_DRAFTS_LOOKUP] = "lookup", [FM_DRAFTS_ALWAYS] = "always"};
    const char *text = getenv("FM_ENGINE_LLAMA_SPECULATION");
    options->drafts = FM_DRAFTS_LOOKUP;
    if (!text || !text[0]) {
        return FM_OK;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            options->drafts = (enum fm_llama_drafts)i;
            return FM_OK;
        }
    }
    return fm_fail(error, FM_UNAVAILABLE, "FM_ENGINE_LLAMA_SPECULATION is neither \"lookup\" nor \"off\"");
}

/* Who computes products of Q4_1. */
static enum fm_code read_kernels(struct fm_llama_model_options *options, struct fm_error *error) {
    const char *text = getenv("FM_ENGINE_LLAMA_KERNELS");
    bool ours = !text || !text[0] || strcmp(text, "own") == 0;
    options->ggml_kernels = !ours;
    return ours || strcmp(text, "ggml") == 0
               ? FM_OK
               : fm_fail(error, FM_UNAVAILABLE, "FM_ENGINE_LLAMA_KERNELS is neither \"own\" nor \"ggml\"");
}

static enum fm_code read_settings(struct fm_llama_model_options *options, struct fm_error *error) {
    enum fm_code code = read_setting(FM_CONTEXT_VARIABLE, FM_CONTEXT_SETTING, FM_MODEL_CONTEXT_MAX,
                                     &options->context_length, error);
    code = code ? code : read_slots(options, error);
    code = code ? code : read_drafts(options, error);
    code = code ? code : read_kernels(options, error);
    code = code ? code : read_setting(KV_TOKENS, KV_TOKENS, FM_MODEL_CONTEXT_MAX, &options->kv_tokens, error);
    code = code ? code : read_setting(THREADS, THREADS " (threads)", GGML_MAX_N_THREADS, &options->threads, error);
    /*
     * The number of threads that an application sets fits its author's machine. On a machine with fewer processors it
     * means all processors.
     */
    const int64_t most = threads_max();
    options->threads = options->threads < most ? options->threads : most;
    return code;
}

/* Loads the draft model too, unless speculation is off. */
static enum fm_code load_models(struct llama_engine *engine, const struct fm_model_files *files,
                                const struct fm_llama_model_options *options, struct fm_kit *kit,
                                struct fm_error *error) {
    bool drafts = files->draft_model && options->drafts != FM_DRAFTS_OFF;
    struct load_progress progress = {.kit = kit, .part = drafts ? MODEL_PART : 1};
    enum fm_code code = fm_llama_model_load(&engine->model, files->model, options, on_progress, &progress, error);
    if (code != FM_OK || !drafts) {
        return code;
    }
    progress.from = MODEL_PART;
    progress.part = 1 - MODEL_PART;
    code =
        fm_draft_model_load(&engine->draft, &engine->model, files->draft_model, options, on_progress, &progress, error);
    if (code != FM_OK) {
        fm_llama_model_free(&engine->model);
    }
    return code;
}

/* A GPU has its own memory. */
static void add_weights(struct llama_engine *engine, const struct fm_model_files *files) {
    engine->pages = (struct fm_huge_pages){0};
    if (!engine->model.uses_gpu) {
        fm_weights_add(&engine->pages, files->model);
    }
    if (engine->draft.context) {
        fm_weights_add(&engine->pages, files->draft_model);
    }
}

static void free_models(struct llama_engine *engine) {
    fm_draft_model_free(&engine->draft);
    fm_llama_model_free(&engine->model);
}

static enum fm_code load_llama(void *state, struct fm_kit *kit, const struct fm_model_files *files,
                               struct fm_model_info *info, struct fm_error *error) {
    struct llama_engine *engine = state;
    struct fm_llama_model_options options;
    if (!files->model) {
        return fm_fail(error, FM_UNAVAILABLE, "the llama engine needs a model file");
    }
    enum fm_code code = read_settings(&options, error);
    options.mmproj = files->mmproj;
    options.chat_template = files->chat_template;
    code = code ? code : load_models(engine, files, &options, kit, error);
    if (code != FM_OK) {
        return code;
    }
    struct fm_draft_model *draft = engine->draft.context ? &engine->draft : NULL;
    code = engine->model.embeds ? FM_OK : fm_scheduler_init(&engine->scheduler, &engine->model, draft, error);
    if (code != FM_OK) {
        free_models(engine);
        return code;
    }
    fm_saved_init(&engine->saved, &engine->model, files, kit);
    add_weights(engine, files);
    *info = (struct fm_model_info){.context_length = engine->model.context_length,
                                   .slots = engine->model.slots,
                                   .memory_bytes = engine->model.memory_bytes + engine->draft.memory_bytes,
                                   .images = engine->model.vision != NULL,
                                   .gpu = engine->model.uses_gpu || engine->model.gpu.detail[0] ? &engine->model.gpu
                                                                                                : NULL};
    return FM_OK;
}

static void serve_llama(void *state, struct fm_kit *kit) {
    struct llama_engine *engine = state;
    struct fm_kit_job *job;
    if (!engine->model.embeds) {
        fm_scheduler_run(&engine->scheduler, &engine->saved, &engine->pages, kit);
        fm_scheduler_free(&engine->scheduler);
    }
    while (engine->model.embeds && (job = fm_weights_wait(&engine->pages, kit))) {
        fm_embed(&engine->model, job);
    }
    fm_saved_free(&engine->saved);
    free_models(engine);
}

int main(int argc, char *argv[]) {
    char version[64];
    struct fm_gpu_wish wish;
    fm_kit_gpu_wish(&wish);
    fm_llama_gpu_prepare();
    snprintf(version, sizeof version, "%s (llama.cpp %s)", FM_VERSION, llama_version());
    const unsigned formats = FM_FEATURE_STRUCTURED_OUTPUT | FM_FEATURE_GRAMMARS | FM_FEATURE_TOOLS;
    const struct fm_engine_ops ops = {
        .name = "llama",
        .version = version,
        .slots = FM_CONTEXT_SLOTS,
        .reads_files = true,
        .features = FM_FEATURE_EMBEDDINGS | FM_FEATURE_COMPLETIONS | FM_FEATURE_INPUT_TOKENS | FM_FEATURE_TRUNCATION |
                    FM_FEATURE_SAVED_STATE | FM_FEATURE_PREFILL | FM_FEATURE_DECISIONS | FM_FEATURES_OF_SAMPLING |
                    (fm_vision_supported() ? FM_FEATURE_IMAGES : 0u) | (fm_grammar_supported() ? formats : 0u),
        .extras = true,
        .needs_gpus = wish.folder != NULL,
        .delta_ms = DELTA_MS,
        .state = &the_engine,
        .load = load_llama,
        .serve = serve_llama,
    };
    return fm_kit_main(&ops, argc, argv);
}
