/*
 * A loaded GGUF model: weights, context (with the KV memory), compute threads, tokenizer. It belongs to the engine
 * thread; llama.cpp's log callback alone comes from elsewhere.
 */
#ifndef FM_ENGINE_LLAMA_MODEL_H
#define FM_ENGINE_LLAMA_MODEL_H

#include "base/error.h"
#include "engine/chat/turns.h"
#include "engine/guide/grammar.h"
#include "engine/llama/prompt.h"
#include "engine/llama/threads.h"
#include "protocol/gpu.h"

#include <llama.h>
#include <stdbool.h>
#include <stdint.h>

/* The most tokens that are computed at once. */
#define FM_MODEL_BATCH 512

/* Tokens that an exact sequence computes at once (cache.h), and one that embeds. */
#define FM_MODEL_CHUNK 128
/* Bytes that computing a text to embed takes, as front/engines/models.c says before a load. */
#define FM_MODEL_EMBED_WORK ((int64_t)64 * 1024 * 1024)

/* The largest context that can be asked for: above what any model was trained for. In docs/options.md. */
#define FM_MODEL_CONTEXT_MAX 16777216

/* True: what is being computed should stop. */
typedef bool fm_llama_stop(void *argument);

/* Tokens that are computed before it is known that they come: none; by lookup, where it pays; and wherever it can be.
 */
enum fm_llama_drafts { FM_DRAFTS_OFF, FM_DRAFTS_LOOKUP, FM_DRAFTS_ALWAYS };

struct fm_llama_model {
    struct llama_model *weights;
    struct llama_context *context;
    struct llama_context_params context_params; /* with the whole KV memory: kv_memory.h */
    struct fm_threads threads;
    bool embeds; /* the file says how the model's states become a vector: it embeds, and does nothing else */
    struct fm_prompter prompter;            /* plain, where it embeds */
    struct fm_grammar_vocab *grammar_vocab; /* NULL before the first job with a format */
    struct fm_tool_form tool_form;          /* the model's own; read at the first job with tools */
    bool tool_form_read;
    struct fm_turns_memory turns; /* what its template takes */
    struct fm_thought_form thought_form; /* read at the first job */
    bool thought_form_read;
    uint32_t context_length;  /* tokens of input and output; llama.cpp's own may be longer, it rounds up */
    struct fm_vision *vision; /* NULL: the model does not see */
    int slots;                /* jobs at once */
    bool repeatable;          /* all are exact sequences (cache.h) */
    enum fm_llama_drafts drafts;
    size_t sequences;     /* of the KV memory: of the jobs, and of conversations that are kept */
    llama_seq_id spare;   /* one more of its sequences, empty but while states are moved; -1: none, it embeds */
    uint32_t batch_size;  /* tokens, or places of an image, that are computed at once: FM_MODEL_BATCH, or less where
                             llama.cpp takes less */
    uint32_t chunk;       /* FM_MODEL_CHUNK, or less; or, where it embeds and has to see a text whole,
                             context_length */
    int64_t memory_bytes; /* what the weights, the KV memory, the projector, the vocabulary and a text to embed take */
    int64_t kv_bytes;     /* the KV memory of that */
    int thread_count;     /* at most */
    bool exact;           /* what is computed now is of an exact sequence (cache.h) */
    bool uses_gpu;        /* for some of its layers */
    struct fm_gpu gpu;    /* what is told of that; all "" where nobody wants one */
    fm_llama_stop *stop;  /* see fm_llama_model_watch; NULL: nobody asks */
    void *stop_argument;
    bool trying_gpu;
    bool in_pieces; /* of what is being computed on the GPU: `stop` is asked in between */
    bool stopped;
    unsigned nodes; /* of its graph, so far */
};

/* Settings; 0 or NULL: the default. */
struct fm_llama_model_options {
    /*
     * At most FM_MODEL_CONTEXT_MAX; default: what the model was trained for, at most 8,192. One that embeds gets what
     * it was trained for at most, and by default 2,048 at most where it has to see a text whole.
     */
    int64_t context_length;
    int64_t slots;     /* jobs at once; default: see fm_context_slots */
    bool repeatable;   /* one job at a time, each the same to the bit as in a fresh process */
    bool ggml_kernels; /* all is computed by ggml's kernels, none by ours (matmul.h); of the first load in a process */
    enum fm_llama_drafts drafts;
    int64_t kv_tokens;         /* that the KV memory has room for, at least a context; default: see context.c */
    int64_t threads;           /* at most; default: one a core that this process may use */
    const char *chat_template; /* a file; default: the model's own */
    const char *mmproj;        /* a projector's file, with which the model sees; default: it does not */
};

/* Called while the weights are read, from 0 to 1; false gives the load up. */
typedef bool fm_llama_model_progress(float progress, void *argument);

/*
 * Loads `path`. Blocks as long as it takes. Every failure is FM_UNAVAILABLE (or out of memory), names the file (and
 * FM_ENGINE_LLAMA_CTX, where that is at fault or helps) and says why; a context that the memory does not hold, or a
 * default one out of proportion to the weights, is one. nothing is left loaded then. Call from the engine thread,
 * without another model loaded.
 */
FM_MUST_USE enum fm_code fm_llama_model_load(struct fm_llama_model *model, const char *path,
                                             const struct fm_llama_model_options *options,
                                             fm_llama_model_progress *progress, void *argument, struct fm_error *error);

/*
 * The weights of another model, which the CPU computes: ->weights and ->embeds of `model`, and nothing else. Fails as
 * fm_llama_model_load does. Blocks; call it after that.
 */
FM_MUST_USE enum fm_code fm_llama_model_load_weights(struct fm_llama_model *model, const char *path,
                                                     fm_llama_model_progress *progress, void *argument,
                                                     struct fm_error *error);

/* Also after a failed load. */
void fm_llama_model_free(struct fm_llama_model *model);

#define FM_COMPUTE_ABORTED 2 /* llama_decode's */

/*
 * Computes `batch`, by llama_encode with `encode`, else by llama_decode, and returns what they do; something below 0
 * too where they throw. A GPU that fails ends the process (engine/llama/gpu.h). Blocks.
 */
int32_t fm_llama_model_compute(struct fm_llama_model *model, const struct llama_batch *batch, bool encode);

/* From now on `stop` is asked many times while a batch is computed, on this thread; NULL: no longer. */
void fm_llama_model_watch(struct fm_llama_model *model, fm_llama_stop *stop, void *argument);

/* The model's chat template with its vocabulary; valid as long as the model. */
struct fm_tool_template fm_llama_model_template(const struct fm_llama_model *model);

/*
 * How tools are told to the model for `job`, and how it calls them; valid as long as the model. The first job with
 * tools has the form read off the chat template. FM_INTERNAL: out of memory.
 */
FM_MUST_USE enum fm_code fm_llama_model_tool_form(struct fm_llama_model *model, const struct fm_kit_job *job,
                                                  const struct fm_tool_form **form, struct fm_error *error);

/* How the model thinks; valid as long as it. The first call has it read off the chat template. FM_INTERNAL: the same.
 */
FM_MUST_USE enum fm_code fm_llama_model_thought_form(struct fm_llama_model *model, const struct fm_thought_form **form,
                                                     struct fm_error *error);

#endif
