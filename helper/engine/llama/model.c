/* Loads a GGUF file with llama.cpp, and says why it does not load. */
#include "engine/llama/model.h"
#include "base/file.h"
#include "base/gguf.h"
#include "base/log.h"
#include "base/platform.h"
#include "base/utf8.h"
#include "engine/kit/kit.h"
#include "engine/llama/bridge.h"
#include "engine/llama/context.h"
#include "engine/llama/gguf_file.h"
#include "engine/llama/gpu.h"
#include "engine/llama/matmul.h"

#include <ggml-backend.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEMPLATE_MAX (1u << 20) /* bytes of a chat template; the longest in use have 30 kB */

/*
 * A GPU checks whether to stop after each PIECE_NODES nodes of a graph (two layers in most models), if the batch has at
 * least PIECES_FROM tokens: smaller batches take no time. While the GPU is tried, it checks after each TRIAL_NODES
 * nodes, because each of the first nodes may need a program that is not compiled yet.
 */
#define PIECE_NODES 64
#define PIECES_FROM 16
#define TRIAL_NODES 4

/*
 * The parts of a load's progress: the part for reading the weights if a GPU is tried too, and the part of the rest for
 * each piece.
 */
#define WEIGHTS_PART 0.7f
#define TRIAL_PART   0.05f
#define COPIED_PART  4 /* 1/COPIED_PART of a file's size is the least that counts as a copy of weights */

/* ---- llama.cpp's log ---- */

/* The first error line since log_reset: later ones only say that the load failed. */
static struct {
    pthread_mutex_t lock;
    char error[256];
} llama_log = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void log_reset(void) {
    pthread_mutex_lock(&llama_log.lock);
    llama_log.error[0] = '\0';
    pthread_mutex_unlock(&llama_log.lock);
}

static void on_log(enum ggml_log_level level, const char *text, void *unused) {
    (void)unused;
    size_t len = strcspn(text, "\n");
    fm_log(FM_LOG_DEBUG, "llama.cpp: %.*s", (int)len, text);
    if (level != GGML_LOG_LEVEL_ERROR) {
        return;
    }
    pthread_mutex_lock(&llama_log.lock);
    if (!llama_log.error[0]) {
        len = len < sizeof llama_log.error ? len : sizeof llama_log.error - 1;
        memcpy(llama_log.error, text, len);
        llama_log.error[len] = '\0';
    }
    pthread_mutex_unlock(&llama_log.lock);
}

/* ggml's last message; without a callback it prints a stack trace. */
static void on_ggml_abort(const char *message) {
    fm_log(FM_LOG_ERROR, "ggml aborts: %s", message);
}

/* The message "FUNCTION: what is wrong" without the name of the function. */
static const char *without_function(const char *line) {
    const char *colon = strstr(line, ": ");
    size_t name = strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return colon && name && line + name == colon ? colon + 2 : line;
}

static enum fm_code fail_with_log(struct fm_error *error, const char *path, const char *what) {
    pthread_mutex_lock(&llama_log.lock);
    const char *reason = without_function(llama_log.error);
    enum fm_code code = fm_fail(error, FM_UNAVAILABLE, "%s: %s%s%s", path, what, reason[0] ? ": " : "", reason);
    pthread_mutex_unlock(&llama_log.lock);
    return code;
}

/* ---- backends ---- */

/*
 * The variants of the CPU's library for x86_64, as ggml prefers them (its ggml/src/ggml-cpu/arch/x86/cpu-feats.cpp): a
 * variant for another processor does not load. ggml itself opens all of them to compare their scores, which takes four
 * times as long. tests/contract/test_llama.py compares both choices.
 */
static const char *const cpu_variants[] = {
    "sapphirerapids", "zen4",    "cooperlake", "icelake",   "cascadelake", "cannonlake", "skylakex",
    "alderlake",      "haswell", "piledriver", "ivybridge", "sandybridge", "sse42",      "x64",
};

static bool load_cpu(const char *dir) {
    char path[4096 + 64];
    struct fm_file_info info;
    for (size_t i = 0; i < sizeof cpu_variants / sizeof *cpu_variants; i++) {
        snprintf(path, sizeof path, "%s/libggml-cpu-%s.so", dir, cpu_variants[i]);
        if (fm_file_examine(path, &info) != 0) {
            return false;
        }
        if (ggml_backend_load(path)) {
            return true;
        }
    }
    return false;
}

/* The libraries of ggml's backends are beside libllama. */
static enum fm_code load_backends(const struct fm_llama_model_options *options, struct fm_error *error) {
    if (ggml_backend_reg_count() > 0) {
        return FM_OK;
    }
    char dir[4096];
    if (!fm_library_dir("llama_backend_init", dir, sizeof dir)) {
        return fm_fail(error, FM_UNAVAILABLE, "the folder of libllama is not known");
    }
    if (!load_cpu(dir)) {
        ggml_backend_load_all_from_path(dir);
    }
    if (!ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU)) {
        return fm_fail(error, FM_UNAVAILABLE, "no libggml-cpu library in %s fits this processor", dir);
    }
    struct fm_gpu_wish wish;
    fm_kit_gpu_wish(&wish);
    if (!options->ggml_kernels && !wish.folder) { /* our kernels are not used beside a GPU */
        fm_matmul_register();
    }
    return FM_OK;
}

/* ---- the file ---- */

/* Why `path` did not load, if its header shows that; else llama.cpp's message. */
static enum fm_code fail_to_load(struct fm_error *error, const char *path) {
    int64_t size;
    int64_t needed;
    switch (fm_gguf_look(path, &size, &needed)) {
    case FM_GGUF_NO_HEADER:
        return fail_with_log(error, path, "the file's header is damaged or cut short, so fetch the file again");
    case FM_GGUF_CUT:
        return fm_fail(error, FM_UNAVAILABLE, "%s: the file is cut short: it has %lld of %lld bytes", path,
                       (long long)size, (long long)needed);
    default: return fail_with_log(error, path, "the model does not load");
    }
}

/* ---- computing ---- */

void fm_llama_model_watch(struct fm_llama_model *model, fm_llama_stop *stop, void *argument) {
    model->stop = stop;
    model->stop_argument = argument;
    llama_set_abort_callback(model->context, stop, argument);
}

/*
 * llama.cpp only calls its abort callback between operations of the CPU. On a GPU it computes all nodes of a graph up
 * to one that this function asks for, and then calls it again. It always asks for the same nodes, because what a GPU
 * computes together may change the last bits.
 */
static bool on_node(struct ggml_tensor *node, bool ask, void *argument) {
    struct fm_llama_model *model = argument;
    (void)node;
    if (ask) {
        unsigned piece = model->trying_gpu ? TRIAL_NODES : PIECE_NODES;
        return model->stopped || (model->in_pieces && ++model->nodes % piece == 0);
    }
    model->stopped = model->stopped || (model->stop && model->stop(model->stop_argument));
    return !model->stopped; /* false: skips the rest of this part of the graph; llama.cpp itself does not notice it */
}

int32_t fm_llama_model_compute(struct fm_llama_model *model, const struct llama_batch *batch, bool encode) {
    struct fm_error error = {.detail = ""};
    model->in_pieces = model->trying_gpu || batch->n_tokens >= PIECES_FROM;
    model->stopped = false;
    model->nodes = 0;
    fm_threads_begin(&model->threads, model->exact || model->uses_gpu);
    int32_t status = fm_compute(model->context, batch, encode, &error);
    fm_threads_end(&model->threads, status == 0 ? batch->n_tokens : 0);
    if (status == 0 && model->stopped) {
        return FM_COMPUTE_ABORTED;
    }
    bool failed = status < 0; /* results above 0 have other reasons, such as an abort */
    if (failed && model->uses_gpu) {
        fm_log(FM_LOG_ERROR, "the GPU failed, so the engine ends: %s (%d)", error.detail, (int)status);
        _exit(FM_EXIT_GPU);
    }
    if (failed && error.detail[0]) {
        fm_log(FM_LOG_ERROR, "%s", error.detail);
    }
    return status;
}

/* ---- the context ---- */

static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static enum fm_code make_context(struct fm_llama_model *model, const char *path,
                                 const struct fm_llama_model_options *options, struct fm_error *error) {
    struct llama_context_params *params = &model->context_params;
    uint32_t wanted = fm_context_length(model, options);
    bool asked = options->context_length > 0;
    enum fm_code code = fm_context_check(model, options, path, error);
    if (code != FM_OK) {
        return code;
    }
    *params = fm_context_params(model, options, path);
    params->cb_eval = model->uses_gpu ? on_node : NULL;
    params->cb_eval_user_data = model;
    struct llama_context_params first = *params;
    first.n_ctx = fm_context_first(model);
    model->context = fm_matmul_context(model->weights, first);
    if (!model->context) {
        return fail_with_log(error, path,
                             asked ? "no memory for the context that " FM_CONTEXT_SETTING " asks for"
                                   : "no memory for the context");
    }
    model->context_length = smaller(wanted, params->n_ctx);
    model->slots = (int)fm_context_slots(model, options);
    model->repeatable = options->repeatable;
    model->drafts = options->drafts;
    model->spare = model->embeds ? -1 : (llama_seq_id)params->n_seq_max - 1;
    model->sequences = params->n_seq_max - (model->spare >= 0 ? 1 : 0);
    model->batch_size =
        smaller(smaller(params->n_batch, llama_n_batch(model->context)), llama_n_ubatch(model->context));
    model->chunk = fm_context_needs_whole_text(model) ? model->batch_size : smaller(model->batch_size, FM_MODEL_CHUNK);
    if (!llama_get_memory(model->context) && !model->embeds) {
        return fm_fail(error, FM_UNAVAILABLE, "%s: not a model that generates text, nor does it say how it embeds one",
                       path);
    }
    if (!llama_get_memory(model->context) || fm_context_needs_whole_text(model)) {
        model->context_length = smaller(model->context_length, model->chunk);
    }
    return FM_OK;
}

/* Reads the chat template in the file `path`, NUL-terminated. */
static enum fm_code read_template(const char *path, struct fm_buf *source, struct fm_error *error) {
    enum fm_code code = fm_file_read(path, source, error);
    if (code != FM_OK) {
        return code;
    }
    if (source->len == 0 || memchr(source->data, '\0', source->len) || !fm_utf8_valid(source->data, source->len)) {
        return fm_fail(error, FM_UNAVAILABLE, "the chat template is %s: %s", source->len ? "no text in UTF-8" : "empty",
                       path);
    }
    fm_buf_append(source, "", 1);
    return source->failed ? fm_fail(error, FM_UNAVAILABLE, "the file is too long: %s", path) : FM_OK;
}

/* Makes the prompter with the chat template in the file `path`; NULL: the model's own. */
static enum fm_code init_prompter(struct fm_llama_model *model, const char *path, struct fm_error *error) {
    struct fm_buf source;
    if (model->embeds) {
        fm_prompter_init_plain(&model->prompter, model->weights);
        return FM_OK;
    }
    fm_buf_init(&source, TEMPLATE_MAX);
    enum fm_code code = path ? read_template(path, &source, error) : FM_OK;
    if (code == FM_OK) {
        code = fm_prompter_init(&model->prompter, model->weights, source.data, error);
        if (code == FM_UNAVAILABLE && path) {
            const struct fm_error inner = *error;
            fm_fail(error, code, "%s: %s", path, inner.detail);
        }
    }
    if (code == FM_UNAVAILABLE && path) {
        const struct fm_error inner = *error;
        fm_fail(error, code, "name another file with the option chatTemplate (--chat-template), or leave it out: %s",
                inner.detail);
    }
    fm_buf_free(&source);
    return code;
}

/* Loads the projector, with which the model sees images. */
static enum fm_code load_vision(struct fm_llama_model *model, const char *path, struct fm_error *error) {
    if (!path) {
        return FM_OK;
    }
    if (model->embeds) {
        return fm_fail(error, FM_UNAVAILABLE, "%s: a model that embeds texts can't see; start it without a projector",
                       path);
    }
    enum fm_code code = fm_file_check_magic(path, "GGUF", error);
    if (code != FM_OK) {
        return code;
    }
    log_reset();
    fm_vision_log_to(on_log);
    code = fm_vision_load(&model->vision, path, model->weights, model->thread_count, error);
    if (code == FM_UNAVAILABLE && llama_log.error[0]) {
        return fail_with_log(error, path,
                             "the projector can't be used, so name another one with the option mmproj (--mmproj)");
    }
    return code;
}

/* Finds out what kind of model it is. */
static enum fm_code check_kind(struct fm_llama_model *model, const char *path, struct fm_error *error) {
    if (!llama_model_has_decoder(model->weights) || llama_model_has_encoder(model->weights)) {
        return fm_fail(error, FM_UNAVAILABLE, "%s: not a model that generates text from text alone", path);
    }
    switch (fm_context_pooling(model->weights)) {
    case LLAMA_POOLING_TYPE_NONE: break;
    case LLAMA_POOLING_TYPE_MEAN:
    case LLAMA_POOLING_TYPE_CLS:
    case LLAMA_POOLING_TYPE_LAST: model->embeds = true; break;
    default: return fm_fail(error, FM_UNAVAILABLE, "%s: a reranker, which neither generates text nor embeds it", path);
    }
    return FM_OK;
}

/* ---- a trial of the GPU ---- */

struct trial {
    fm_llama_model_progress *progress;
    void *argument;
    float done;
};

static bool on_trial(void *argument) {
    struct trial *trial = argument;
    trial->done += (1 - trial->done) * TRIAL_PART;
    return !trial->progress(trial->done, trial->argument);
}

/*
 * Tries now whether the GPU can compute, and compiles its programs: otherwise the first request would have to wait for
 * that.
 */
static void try_gpu(struct fm_llama_model *model, fm_llama_model_progress *progress, void *argument) {
    struct trial trial = {.progress = progress, .argument = argument, .done = WEIGHTS_PART};
    llama_token token = llama_vocab_bos(model->prompter.vocab);
    llama_memory_t memory = llama_get_memory(model->context);
    token = token == LLAMA_TOKEN_NULL ? 0 : token;
    struct llama_batch batch = llama_batch_get_one(&token, 1);
    fm_llama_model_watch(model, on_trial, &trial);
    model->trying_gpu = true;
    int32_t status = fm_llama_model_compute(model, &batch, !memory);
    model->trying_gpu = false;
    fm_llama_model_watch(model, NULL, NULL);
    fm_log(FM_LOG_DEBUG, "a first token on the GPU: %d", (int)status);
    if (memory) {
        llama_memory_clear(memory, true);
    }
    progress(1, argument);
}

/* ---- loading ---- */

struct source {
    const char *path;
    const struct fm_llama_model_options *options;
    fm_llama_model_progress *progress;
    void *argument;
};

/* Only for a GPU: reading the weights is the first WEIGHTS_PART of the progress, and the trial of the GPU the rest. */
static bool on_weights(float progress, void *argument) {
    const struct source *from = argument;
    return from->progress(progress * WEIGHTS_PART, from->argument);
}

/* Sets in `params` how much of the model the GPU takes. A first look at the file gives the length of the context. */
static bool fit_gpu(struct fm_llama_model *model, const struct source *from, struct llama_model_params *params) {
    struct fm_error error;
    struct fm_llama_model look = {.thread_count = 1};
    struct llama_model_params without = llama_model_default_params();
    fm_llama_gpu_leave_out(&without);
    without.no_alloc = true;
    without.load_mode = LLAMA_LOAD_MODE_NONE;
    look.weights = llama_model_load_from_file(from->path, without);
    bool fits = false;
    /* otherwise loading for the CPU says what is wrong */
    if (look.weights && check_kind(&look, from->path, &error) == FM_OK) {
        struct llama_context_params context = fm_context_params(&look, from->options, from->path);
        fits = fm_llama_gpu_fit(from->path, &context, params, &model->gpu);
    }
    llama_model_free(look.weights);
    return fits;
}

/*
 * llama.cpp maps the file, and for some formats (Q4_0, Q4_K on most processors) computes with a copy in another order.
 * The parts of the file that it no longer reads are dropped from memory. `before`: fm_private_memory before the weights
 * were loaded.
 */
static void drop_what_was_copied(const char *path, int64_t before) {
    struct fm_file_info file;
    if (before >= 0 && fm_file_examine(path, &file) == 0 &&
        fm_private_memory() - before > (int64_t)(file.size / COPIED_PART)) {
        fm_mapped_file_drop(path);
    }
}

/* Loads everything; on failure only `gpu` is left. */
static enum fm_code load_from(struct fm_llama_model *model, struct source *from, bool gpu, struct fm_error *error) {
    const struct fm_llama_model_options *options = from->options;
    struct llama_model_params params = llama_model_default_params();
    model->uses_gpu = gpu && fit_gpu(model, from, &params);
    if (!model->uses_gpu) {
        fm_llama_gpu_leave_out(&params);
    }
    params.progress_callback = model->uses_gpu ? on_weights : from->progress;
    params.progress_callback_user_data = model->uses_gpu ? from : from->argument;
    log_reset();
    int64_t before = fm_private_memory();
    model->weights = llama_model_load_from_file(from->path, params);
    if (!model->weights) {
        return fail_to_load(error, from->path);
    }
    drop_what_was_copied(from->path, before);
    model->thread_count = options->threads > 0 ? (int)options->threads : fm_threads_default();
    enum fm_code code = check_kind(model, from->path, error);
    code = code ? code : init_prompter(model, options->chat_template, error);
    code = code ? code : load_vision(model, options->mmproj, error);
    code = code ? code : make_context(model, from->path, options, error);
    if (code != FM_OK) {
        const struct fm_gpu kept = model->gpu;
        fm_llama_model_free(model);
        model->gpu = kept;
        return code;
    }
    struct fm_file_info projector = {.size = 0};
    if (options->mmproj) {
        fm_file_examine(options->mmproj, &projector);
    }
    model->kv_bytes = fm_context_memory(model, options, from->path);
    model->memory_bytes = (int64_t)llama_model_size(model->weights) + projector.size + model->kv_bytes +
                          (model->embeds ? FM_MODEL_EMBED_WORK : 0) +
                          (int64_t)llama_vocab_n_tokens(model->prompter.vocab) * FM_GGUF_TOKEN_BYTES;
    model->gpu.total_layers = llama_model_n_layer(model->weights) + 1; /* the last one makes the logits */
    bool all = params.n_gpu_layers < 0 || params.n_gpu_layers > model->gpu.total_layers;
    model->gpu.layers = all ? model->gpu.total_layers : params.n_gpu_layers;
    return FM_OK;
}

/* Loads with a GPU if one can be used, and without if the model does not load with it. */
static enum fm_code load_somewhere(struct fm_llama_model *model, struct source *from, struct fm_error *error) {
    bool gpu = fm_llama_gpu_find(&model->gpu);
    enum fm_code code = load_from(model, from, gpu, error);
    if (code == FM_OK || !gpu || !model->gpu.device[0]) {
        return code;
    }
    fm_log(FM_LOG_WARN, "no GPU is used, because the model does not load with %s: %s", model->gpu.device,
           error->detail);
    model->gpu.device[0] = '\0';
    snprintf(model->gpu.detail, sizeof model->gpu.detail, "the model does not load with the GPU: %.200s",
             error->detail);
    return load_from(model, from, false, error);
}

enum fm_code fm_llama_model_load(struct fm_llama_model *model, const char *path,
                                 const struct fm_llama_model_options *options, fm_llama_model_progress *progress,
                                 void *argument, struct fm_error *error) {
    struct source from = {.path = path, .options = options, .progress = progress, .argument = argument};
    *model = (struct fm_llama_model){0};
    llama_log_set(on_log, NULL);
    ggml_set_abort_callback(on_ggml_abort);
    enum fm_code code = fm_file_check_magic(path, "GGUF", error); /* if the file is a FIFO, llama.cpp would wait */
    code = code ? code : load_backends(options, error);
    code = code ? code : load_somewhere(model, &from, error);
    if (code != FM_OK) {
        return code;
    }
    fm_threads_start(&model->threads, model->context, model->thread_count);
    model->exact = model->repeatable;
    if (model->uses_gpu) {
        try_gpu(model, progress, argument);
        fm_log(FM_LOG_INFO, "%lld of %lld layers on %s", (long long)model->gpu.layers,
               (long long)model->gpu.total_layers, model->gpu.device);
    }
    fm_log(FM_LOG_INFO, "context %u, %d threads", model->context_length, model->thread_count);
    return FM_OK;
}

enum fm_code fm_llama_model_load_weights(struct fm_llama_model *model, const char *path,
                                         fm_llama_model_progress *progress, void *argument, struct fm_error *error) {
    struct llama_model_params params = llama_model_default_params();
    *model = (struct fm_llama_model){0};
    fm_llama_gpu_leave_out(&params);
    params.progress_callback = progress;
    params.progress_callback_user_data = argument;
    enum fm_code code = fm_file_check_magic(path, "GGUF", error);
    if (code != FM_OK) {
        return code;
    }
    log_reset();
    model->weights = llama_model_load_from_file(path, params);
    code = model->weights ? check_kind(model, path, error) : fail_to_load(error, path);
    if (code != FM_OK) {
        llama_model_free(model->weights);
        *model = (struct fm_llama_model){0};
    }
    return code;
}

void fm_llama_model_free(struct fm_llama_model *model) {
    fm_grammar_vocab_free(model->grammar_vocab);
    fm_tool_form_free(&model->tool_form);
    fm_prompter_free(&model->prompter);
    llama_free(model->context);
    fm_vision_free(model->vision);
    fm_threads_stop(&model->threads);
    llama_model_free(model->weights);
    *model = (struct fm_llama_model){0};
}
