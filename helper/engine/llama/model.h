/*
 * A loaded GGUF model: weights, context (with the KV memory), compute threads, tokenizer. It belongs to the engine
 * thread; only llama.cpp's log callback comes from other threads.
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

/* Tokens that an exact sequence (cache.h), or a sequence that embeds, computes at once. */
#define FM_MODEL_CHUNK 128
/* Bytes that computing a text to embed takes, as front/engines/models.c says before a load. */
#define FM_MODEL_EMBED_WORK ((int64_t)64 * 1024 * 1024)

/* The largest context that can be asked for: above what any model was trained for. In docs/options.md. */
#define FM_MODEL_CONTEXT_MAX 16777216

/* True: the present computation should stop. */
typedef bool fm_llama_stop(void *argument);

/*
 * Which tokens are computed before they are drawn: none; tokens by lookup, if that pays; or tokens whenever it is
 * possible.
 */
enum fm_llama_drafts { FM_DRAFTS_OFF, FM_DRAFTS_LOOKUP, FM_DRAFTS_ALWAYS };

struct fm_llama_model {
    struct llama_model *weights;
    struct llama_context *context;
    struct llama_context_params context_params; /* for the full KV memory: kv_memory.h */
    struct fm_threads threads;
    bool embeds; /* the file says how the model's states become a vector: it only embeds */
    struct fm_prompter prompter;            /* without a template if it embeds */
    struct fm_grammar_vocab *grammar_vocab; /* NULL before the first job with a format */
    struct fm_tool_form tool_form;          /* the model's own; read at the first job with tools */
    bool tool_form_read;
    struct fm_turns_memory turns; /* which arrangements its template takes */
    struct fm_thought_form thought_form; /* read at the first job */
    bool thought_form_read;
    uint32_t context_length;  /* tokens of input and output; llama.cpp's own may be longer, it rounds up */
    struct fm_vision *vision; /* NULL: the model sees no images */
    int slots;                /* jobs at once */
    bool repeatable;          /* all jobs are exact sequences (cache.h) */
    enum fm_llama_drafts drafts;
    size_t sequences;     /* sequences of the KV memory: of jobs, and of kept conversations */
    /* one more sequence, empty except while states are moved; -1: none, because the model embeds */
    llama_seq_id spare;
    uint32_t batch_size;  /* tokens, or places of an image, that are computed at once: FM_MODEL_BATCH, or less where
                             llama.cpp takes less */
    /* FM_MODEL_CHUNK, or less; or context_length, if the model embeds and must see a whole text */
    uint32_t chunk;
    /* bytes of the weights, KV memory, projector and vocabulary, and of the work to embed a text */
    int64_t memory_bytes;
    int64_t kv_bytes;     /* the part of memory_bytes that is the KV memory */
    int thread_count;     /* at most */
    bool exact;           /* an exact sequence (cache.h) is being computed */
    bool uses_gpu;        /* a GPU computes some layers */
    struct fm_gpu gpu;    /* the report about the GPU; all "" if no GPU is wanted */
    fm_llama_stop *stop;  /* see fm_llama_model_watch; NULL: never stops */
    void *stop_argument;
    bool trying_gpu;
    bool in_pieces; /* the GPU computes in pieces, and `stop` is called in between */
    bool stopped;
    unsigned nodes; /* nodes of the graph so far */
};

/* Settings; 0 or NULL: the default. */
struct fm_llama_model_options {
    /*
     * At most FM_MODEL_CONTEXT_MAX; default: what the model was trained for, at most 8,192. A model that embeds gets at
     * most what it was trained for, and by default at most 2,048 if it can't compute a text in pieces.
     */
    int64_t context_length;
    int64_t slots;     /* jobs at once; default: see fm_context_slots */
    bool repeatable;   /* one job at a time, whose answer is the same to the bit as in a fresh process */
    bool ggml_kernels; /* ggml's kernels compute everything, not ours (matmul.h); the first load in a process decides */
    enum fm_llama_drafts drafts;
    /* the number of tokens for which the KV memory has room, at least one context; default: see context.c */
    int64_t kv_tokens;
    int64_t threads;           /* at most; default: one for each core that this process may use */
    const char *chat_template; /* a file; default: the model's own */
    const char *mmproj;        /* a projector's file, with which the model sees images; default: none */
};

/* Called while the weights are read, with the progress from 0 to 1; false cancels the load. */
typedef bool fm_llama_model_progress(float progress, void *argument);

/*
 * Loads `path`. Blocks as long as it takes. Every failure is FM_UNAVAILABLE (or out of memory), names the file (and
 * FM_ENGINE_LLAMA_CTX, if the variable is at fault or helps) and says why. A context that does not fit in memory, or a
 * default one far too large for the weights, is a failure too. Nothing is left loaded then. Call it from the engine
 * thread, without another model loaded.
 */
FM_MUST_USE enum fm_code fm_llama_model_load(struct fm_llama_model *model, const char *path,
                                             const struct fm_llama_model_options *options,
                                             fm_llama_model_progress *progress, void *argument, struct fm_error *error);

/*
 * Loads the weights of another model, which the CPU computes: sets only ->weights and ->embeds of `model`. Fails as
 * fm_llama_model_load does. Blocks; call it after fm_llama_model_load.
 */
FM_MUST_USE enum fm_code fm_llama_model_load_weights(struct fm_llama_model *model, const char *path,
                                                     fm_llama_model_progress *progress, void *argument,
                                                     struct fm_error *error);

/* Allowed after a failed load. */
void fm_llama_model_free(struct fm_llama_model *model);

#define FM_COMPUTE_ABORTED 2 /* llama_decode's value */

/*
 * Computes `batch`, with llama_encode if `encode`, else with llama_decode, and returns their result; a value below 0
 * also if they throw. A GPU that fails ends the process (engine/llama/gpu.h). Blocks.
 */
int32_t fm_llama_model_compute(struct fm_llama_model *model, const struct llama_batch *batch, bool encode);

/* After this call `stop` is called many times while a batch is computed, on this thread; NULL: no longer. */
void fm_llama_model_watch(struct fm_llama_model *model, fm_llama_stop *stop, void *argument);

/* The model's chat template with its vocabulary; valid as long as the model. */
struct fm_tool_template fm_llama_model_template(const struct fm_llama_model *model);

/*
 * The form in which tools are described to the model for `job`, and in which it calls them; valid as long as the model.
 * For the first job with tools, the form is read off the chat template. FM_INTERNAL: out of memory.
 */
FM_MUST_USE enum fm_code fm_llama_model_tool_form(struct fm_llama_model *model, const struct fm_kit_job *job,
                                                  const struct fm_tool_form **form, struct fm_error *error);

/* How the model thinks; valid as long as the model. The first call reads it off the template. FM_INTERNAL: as above. */
FM_MUST_USE enum fm_code fm_llama_model_thought_form(struct fm_llama_model *model, const struct fm_thought_form **form,
                                                     struct fm_error *error);

#endif
