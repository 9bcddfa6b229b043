/*
 * The code that every engine program needs around its engine. The kit speaks protocol/ENGINE.md with the front, so that
 * an engine only loads and generates.
 *
 * The nouns: the *kit* owns stdin, stdout, the mailbox, the list of jobs and this process's end. Only the *engine
 * thread* calls `ops`. Its stack has FM_KIT_STACK bytes, and main waits for its end. A *job* is one generation, or
 * texts to embed. It belongs to the kit until fm_kit_take returns it, and then to the caller until fm_kit_job_finish.
 * The kit may raise the job's `aborted` flag at any time.
 *
 * Threads of the kit: a reader (stdin; never writes, so an abort always gets through) and a watch (signals, the parent,
 * the end). When the end comes, every abort flag is raised, and fm_kit_take returns NULL. If fm_kit_main has not
 * returned within FM_KIT_GRACE_MS, _exit ends the process.
 *
 * Every function that writes a frame may block until the front takes the frame: this is the back-pressure.
 */
#ifndef FM_ENGINE_KIT_KIT_H
#define FM_ENGINE_KIT_KIT_H

#include "base/buf.h"
#include "base/error.h"
#include "engine/kit/logprobs.h"
#include "engine/kit/text_stream.h"
#include "protocol/engine.h"
#include "protocol/gpu.h"
#include "protocol/params.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FM_KIT_GRACE_MS      600
#define FM_KIT_SIGN_MS       1000                  /* see fm_kit_job_go_on */
#define FM_KIT_STACK         (16u * 1024u * 1024u) /* bytes of the engine thread's stack */
#define FM_ENGINE_BODY_MAX   20000000u             /* bytes of a message from the front; ENGINE.md, "Life" */
#define FM_ENGINE_VALUES_MAX 131072u               /* JSON values in a message from the front */
#define FM_SCHEMA_REPORT_MAX (1u << 20)            /* bytes of fm_kit_job.schema_report */
#define FM_SCHEMA_ERROR_MAX  (64u << 10)           /* bytes of fm_kit_job.schema_error */

enum {                         /* exit statuses, besides 0 */
       FM_EXIT_GPU = 70,       /* EX_SOFTWARE: a GPU failed, and the data in it is lost */
       FM_EXIT_NO_MEMORY = 71, /* EX_OSERR: a message could not be taken or sent */
       FM_EXIT_PROTOCOL = 76,  /* EX_PROTOCOL: a broken frame, or an end of input inside one */
};

struct fm_kit;
struct fm_sandbox_client;
struct json_object;

/* What to load: paths, borrowed. */
struct fm_model_files {
    const char *model;         /* NULL: the front names no model */
    const char *mmproj;        /* the projector, with which the model sees images; NULL: none */
    const char *draft_model;   /* a smaller model, which guesses the model's tokens; NULL: none */
    const char *chat_template; /* a chat template in place of the model's own; NULL: none */
    /* a file with the state that an earlier engine saved (ENGINE.md, Saved state), to be read; -1: none */
    int saved_read;
    int saved_write;           /* an empty file, to which `serve` may save the state at its end; -1: none */
    int64_t saved_max_bytes;   /* the most bytes that saved_write may then have */
};

#define FM_UNCOUNTED (-1) /* in place of a count of tokens: the engine does not know the count */

/* The information about the model that `load` returns. */
struct fm_model_info {
    int64_t context_length;   /* tokens of prompt and answer together; 0: unknown */
    int slots;                /* jobs at once, up to FM_SLOTS_MAX */
    bool silent;              /* a job shows no progress before its first output, because another machine computes */
    int64_t memory_bytes;     /* bytes that the model takes with its KV memory; 0: the engine does not know */
    bool images;              /* the model sees images; if false, the kit refuses jobs that have images */
    /* the GPU that the model computes with, or the reason why it uses none; NULL: nothing is reported */
    const struct fm_gpu *gpu;
};

/* Which GPU the front wants to be used: ENGINE.md, GPU. */
struct fm_gpu_wish {
    const char *folder; /* the folder of the GPU's library; NULL: no GPU is wanted */
    int64_t layers;     /* number of layers on the GPU; -1: as many as fit */
};

/* Reads the environment. It may be called at any time, also before fm_kit_main; never blocks. */
void fm_kit_gpu_wish(struct fm_gpu_wish *wish);


/* A model that an engine lists. */
struct fm_listed_model {
    const char *id;         /* UTF-8, 1 to FM_LISTED_ID_MAX bytes */
    int64_t context_length; /* 0: unknown */
};

/* The answer to engine.available (ENGINE.md, Availability). Borrowed strings and lists: until the next call of the
 * engine. */
struct fm_availability {
    bool available;
    const char *reason_code;              /* if not available: "OFFLINE", ...; NULL is "HELPER_UNHEALTHY" */
    char detail[512];                     /* one sentence, without keys; "": none */
    /* the default model first; NULL: there is no list, and any name may be asked for */
    const struct fm_listed_model *models;
    size_t model_count;
    int64_t ttl_ms; /* ms for which this answer is valid; -1: the front decides */
};

/* The systems that an engine can run on, for its description. */
enum fm_platforms { FM_ON_LINUX = 1, FM_ON_MACOS = 2, FM_ON_WINDOWS = 4 };

/* The features of an engine that draws its tokens itself. */
#define FM_FEATURES_OF_SAMPLING                                                                                        \
    (FM_FEATURE_SEEDS | FM_FEATURE_STOPS | FM_FEATURE_PENALTIES | FM_FEATURE_LOGIT_BIAS | FM_FEATURE_LOGPROBS)

struct fm_engine_ops {
    const char *name;         /* "llama" */
    const char *version;      /* the engine's own name */
    int slots;                /* jobs at once, before a model is known */
    int64_t protocol_version; /* 0: FM_ENGINE_PROTOCOL_VERSION; other versions are for tests */
    bool reads_files;         /* the engine's models are GGUF files; else it has one model, with the engine's name */
    bool lists_models;        /* the engine has several models: `available` lists them, and job->model names one */
    bool remote;              /* the engine sends its jobs to another machine */
    bool any_order;           /* reasoning, text and calls of an answer come in any order, each several times */
    bool needs_config;        /* the engine needs a configuration (fm_kit_config) */
    /* enum fm_feature, without FM_FEATURE_AVAILABILITY; the kit refuses jobs that need other features */
    unsigned features;
    bool extras;              /* the engine has the extra parameters of sampling (protocol/params.h) */
    bool passes_on;           /* the engine uses job->passed */
    unsigned platforms;       /* enum fm_platforms; 0: all */
    bool needs_network;       /* the sandbox does not forbid the network */
    /* with needs_network: the connections that are allowed (base/platform.h); NULL: all */
    const struct fm_sandbox_client *client;
    bool needs_gpus;                        /* the sandbox does not forbid the GPUs' devices */
    bool needs_services;                    /* the sandbox does not forbid macOS's services */
    /* the least ms between two deltas of a job, except before the last one; 0: one delta for each token */
    int64_t delta_ms;
    void *state;      /* the engine's own data, an argument of the functions below */

    /* Called after engine.initialize has come; the log level is set. May be NULL. Engine thread; may block. */
    void (*initializing)(void *state, struct fm_kit *kit);

    /*
     * Loads the files that `files` names. Engine thread; blocks as long as it takes, and should check fm_kit_ending. On
     * failure nothing is left loaded, `error` names the file, and the front may try again.
     */
    enum fm_code (*load)(void *state, struct fm_kit *kit, const struct fm_model_files *files,
                         struct fm_model_info *info, struct fm_error *error);

    /*
     * Says within 2 s whether jobs could be done now; loads nothing. At the call `out` has ttl_ms -1 and nothing else.
     * It is called inside fm_kit_take, so an engine that works on a job for long is asked late, which does no harm.
     * NULL: the engine is always available. Engine thread.
     */
    void (*available)(void *state, struct fm_kit *kit, struct fm_availability *out);

    /*
     * Called when something came for fm_kit_take: a message, an abort, or the end. It is for an engine whose thread
     * waits elsewhere, such as in curl_multi_poll. Any thread of the kit calls it, under the kit's lock, until
     * fm_kit_main returns. It must not block, and must not call the kit. NULL: not wanted.
     */
    void (*wake)(void *state);

    /*
     * Called when a model is loaded: takes jobs until fm_kit_take (waiting) returns NULL, and then frees the model.
     * Engine thread.
     */
    void (*serve)(void *state, struct fm_kit *kit);
};

/* Why a job ended. */
enum fm_reason {
    FM_REASON_NONE, /* the job has not ended */
    FM_REASON_STOP, /* the end of the turn, or a stop string */
    FM_REASON_LENGTH,
    FM_REASON_CONTENT_FILTER,
    FM_REASON_ABORTED,
    FM_REASON_ERROR,
};

/* A call that was made earlier in the conversation. Strings are NUL-terminated UTF-8. */
struct fm_tool_call {
    const char *id;
    const char *name;
    const char *arguments; /* as the host sent it: JSON text, unless the host says something else */
    size_t arguments_len;
};

/* A text that an engine sent as job.state with an earlier answer: ENGINE.md, State of an answer. */
struct fm_state_text {
    const char *text; /* UTF-8, not empty, may hold NUL */
    size_t len;
};


/* An image among a message's text. */
struct fm_image {
    unsigned char *bytes; /* the image's file, as the host sent it, unchecked */
    size_t len;           /* at least 1 */
    size_t at;            /* bytes of the message's content before the image */
    size_t index;         /* the image's index among the job's images, from 0 on, in the order of all messages */
    const char *detail;   /* "low", "high", "original" or "auto"; NULL: not specified */
};

struct fm_message {
    const char *role;    /* "system", "user", "assistant" or "tool", NUL-terminated */
    const char *content; /* UTF-8, may hold NUL; "" for calls without a text */
    size_t content_len;
    struct fm_image *images; /* of a user's message, in the order of the content; NULL: none */
    size_t image_count;
    char *joined;          /* owned by the kit: the content, if it came in parts; otherwise NULL */
    const char *reasoning; /* of an assistant's message: the thought before the text; UTF-8, may hold NUL; "": none */
    size_t reasoning_len;
    struct fm_state_text *states; /* of an assistant's message: texts of job.state, perhaps another engine's */
    size_t state_count;
    struct fm_tool_call *tool_calls; /* of an assistant's message */
    size_t tool_call_count;
    const char *tool_call_id; /* of a tool's message: the id of the call that it answers; else NULL */
};


/* A function that the answer may call: ENGINE.md, Tools. */
struct fm_tool {
    const char *name;               /* NUL-terminated */
    const char *description;        /* NUL-terminated; NULL: none */
    struct json_object *parameters; /* an object, a JSON schema; the job's, read-only. NULL: none */
    bool strict;                    /* a keyword of `parameters` that can't be enforced is an error */
    bool allowed;                   /* this answer may call the tool; other tools are only described in the prompt */
};

enum fm_tool_mode {
    FM_TOOLS_AUTO,     /* text, or calls, or both */
    FM_TOOLS_REQUIRED, /* at least one call */
    FM_TOOLS_NONE,     /* only text: no tool is allowed */
};

/* The format that the text must have: ENGINE.md, Formats. */
enum fm_format_kind {
    FM_FORMAT_TEXT,        /* any text */
    FM_FORMAT_JSON_OBJECT, /* any JSON object */
    FM_FORMAT_JSON_SCHEMA, /* JSON that matches `schema` */
    FM_FORMAT_GRAMMAR,     /* text that `definition` describes */
};

struct fm_format {
    enum fm_format_kind kind;   /* decides which of the members below are used; the others are NULL and false */
    struct json_object *schema; /* an object; owned by the job, read-only, unchecked */
    bool strict;                /* a keyword that can't be enforced is an error */
    const char *syntax;         /* "lark" or "regex" */
    const char *definition;     /* UTF-8, NUL-terminated, not empty */
};


/* A text to embed. */
struct fm_input {
    const char *text; /* UTF-8, not empty, may hold NUL */
    size_t len;
};

/* A question about a job's messages: ENGINE.md, Decisions. */
struct fm_question {
    struct fm_input text;
    struct fm_input *choices; /* the answers to compare */
    size_t choice_count;      /* 2 to FM_QUESTION_CHOICES_MAX */
};

/* The whole conversation of a job whose oldest turns may be left out. Only the kit uses it. */
struct fm_truncation {
    bool asked;
    struct fm_message *all; /* fm_kit_job.messages points to `left`, which has room for all messages */
    size_t count;
    struct fm_message *left;
    size_t *cuts; /* cuts[i]: the first message that stays, besides the system's, when i + 1 turns are left out */
    size_t cut_count;
};

#define FM_LOGIT_BAN        (-100) /* the bias of a token that must not come, whatever its logit is */

#define FM_REPEAT_WINDOW 64u /* tokens; llama.cpp's default */

/* A number that is added to a token's logit before a token is drawn. */
struct fm_logit_bias {
    int32_t token; /* at least 0; the engine checks whether this token exists */
    double bias;   /* FM_LOGIT_BAN to 100 */
};

/* Kinds of output of an engine that does not count tokens. */
enum fm_piece {
    FM_PIECE_TEXT,
    FM_PIECE_REASONING,
    FM_PIECE_REFUSAL,   /* the model's refusal instead of an answer: nothing else follows */
    FM_PIECE_ARGUMENTS, /* of the last call */
};

/* Counts of tokens; FM_UNCOUNTED: unknown. */
struct fm_kit_usage {
    int64_t input;
    int64_t cached;
    int64_t output;
    int64_t reasoning;
};

/* All strings belong to the job. The members down to `parallel_tool_calls` are read-only. */
struct fm_kit_job {
    int64_t id;
    struct fm_input *inputs; /* of a job that embeds: at least one text, and no messages or prompt; otherwise NULL */
    size_t input_count;
    /* at least one message, unless `prompt` is set; without the messages that were left out */
    struct fm_message *messages;
    size_t message_count;
    size_t image_count; /* the number of images in all messages, with the messages that were left out */
    int64_t dropped;    /* number of messages that were left out */
    /* questions to decide; NULL: none. The last message then asks a question: fm_kit_job_ask */
    struct fm_question *questions;
    size_t question_count;
    const char *prompt; /* in place of messages: a text that the answer continues; UTF-8, may hold NUL. NULL: none */
    size_t prompt_len;
    const char *suffix; /* the text that follows the answer; UTF-8, may hold NUL. NULL: none */
    size_t suffix_len;
    /* a model that the engine lists, or another name; NULL: the engine's default model, or the engine lists none */
    const char *model;
    const char *session; /* a key that all jobs of one conversation share; NULL: not known */
    bool restartable;    /* fm_kit_job_restart may be called */
    bool count_only;     /* only the prompt's tokens are counted: fm_kit_job_accept returns the reason to finish with */
    bool prefill_only;   /* the engine reads the prompt into its KV memory, then finishes with FM_REASON_LENGTH */
    int64_t max_tokens;  /* at least 1; 0: no limit */
    /*
     * By enum fm_param (protocol/params.h). An engine that computes only reads the values: a parameter that the host
     * does not name has its neutral value. An engine that forwards jobs passes on the named parameters, and no others.
     */
    double sampling[FM_PARAM_COUNT];
    bool named[FM_PARAM_COUNT];
    struct json_object *passed[FM_PASSED_COUNT]; /* strings, borrowed; NULL: the host did not name it */
    bool has_seed;
    int64_t seed;
    /* the answer must be the same to the bit as in a fresh process, so the job runs alone (fm_kit_take) */
    bool repeatable;
    struct fm_logit_bias *logit_biases;
    size_t logit_bias_count;
    /* the engine should call fm_kit_job_logprobs for tokens whose text is part of the answer's text */
    bool logprobs;
    size_t top_logprobs; /* how many of the most likely tokens to report, up to FM_TOP_LOGPROBS_MAX */
    struct fm_stop stops[FM_STOPS_MAX];
    size_t stop_count;
    enum fm_effort effort;
    struct fm_format format;
    struct fm_tool *tools;
    size_t tool_count;
    enum fm_tool_mode tool_mode;
    bool parallel_tool_calls; /* the answer may make more than one call */

    size_t dimension; /* the length of a vector, for a job that embeds; the engine sets it before fm_kit_job_accept */

    /*
     * Empty at first; the engine fills these buffers, and the kit frees them. They have a maximum. An append that
     * failed counts as out of memory when the buffer is sent, and ends the process. An engine that can continue without
     * the text checks for a failure before.
     */
    struct fm_buf schema_report; /* before fm_kit_job_accept: `schema_report` of job.accepted, a JSON value */
    struct fm_buf schema_error;  /* before fm_kit_job_finish: `schema_error` of job.finished, as text */

    /* The engine sets them before fm_kit_job_finish. */
    /* the name of the first unknown tool that the text calls, in ASCII; "": none */
    char unknown_tool[FM_TOOL_NAME_MAX + 1];
    bool speculates;         /* drafted_tokens and accepted_tokens are reported */
    int64_t drafted_tokens;  /* tokens that were guessed ahead */
    int64_t accepted_tokens; /* drafted tokens that became part of the answer */

    /* The kit's. */
    struct fm_kit *kit;
    struct fm_kit_job *next;
    struct json_object *params; /* holds the strings */
    struct fm_truncation truncation;
    atomic_bool aborted;
    /* if `code` is not FM_OK: job.start was wrong, and the engine never sees the job */
    struct fm_error fault;
    struct fm_text_stream stream;    /* the stream of the text; of all kinds of output if `pieced` */
    struct fm_logprob_queue entries; /* when `logprobs` */
    /* number of tokens in the next job.reasoning, job.delta, or job.tool_delta after a call */
    struct fm_buf text;
    bool thinking;                   /* the model is reasoning now */
    bool spoke;                      /* text has begun */
    struct fm_text_stream thought;   /* while `thinking` */
    bool taken;                      /* fm_kit_take has returned the job; under the kit's lock */
    bool pieced;                     /* fm_kit_job_piece has been called: no token is counted */
    enum fm_piece piece;             /* if `pieced`: the kind of the last piece */
    bool has_usage;                  /* fm_kit_job_usage has filled `usage` */
    struct fm_kit_usage usage;
    int64_t calls;       /* begun so far */
    size_t embedded;     /* vectors reported so far */
    size_t decided;      /* decisions reported so far */
    int64_t delta_ms;    /* when the last delta was sent; 0: never */
    int64_t event_ms;    /* when the last event was sent */
    int64_t accepted_us; /* when job.accepted was sent; 0: never */
    int64_t first_us;    /* when the first token came; 0: never */
    int64_t input_tokens;
    int64_t cached_tokens;
    int64_t output_tokens;
    int64_t told_tokens;      /* output tokens that were reported to the front */
    int64_t reasoning_tokens; /* output tokens of the reasoning */
};

/*
 * Runs the whole life of an engine program. Call it from main, with no other thread running, and return its result.
 * `ops` is borrowed. The process enters the sandbox (fm_sandbox_enter) before it reads anything from the front. So the
 * engine must open before this call whatever it needs to write or to connect to.
 */
int fm_kit_main(const struct fm_engine_ops *ops, int argc, char *argv[]);

/* True if the job needs an engine that has tools: for new calls, or to understand earlier calls. */
bool fm_kit_job_uses_tools(const struct fm_kit_job *job);

/* Whether the job's value of a sampling parameter changes which tokens are drawn. Pure. */
bool fm_kit_job_asks(const struct fm_kit_job *job, enum fm_param param);

/*
 * Makes the prompt of the job's present messages. FM_CONTEXT_OVERFLOW when the prompt and `reserve` (at least 1) tokens
 * of the answer do not fit into the context.
 */
typedef enum fm_code fm_kit_job_fit_fn(void *state, size_t reserve, struct fm_error *error);

/*
 * Makes the prompt of `job` by `fit`. If the prompt does not fit, and the oldest turns may be left out (ENGINE.md,
 * Prompts), `fit` is called again with fewer messages in the job, some 2 * log2(turns that stay) times. The last call
 * that returned FM_OK has then made the prompt of the messages that the job has. FM_CONTEXT_OVERFLOW: the prompt does
 * not fit, whatever may be left out. Call it before fm_kit_job_accept. Blocks as `fit` does.
 */
FM_MUST_USE enum fm_code fm_kit_job_fit(struct fm_kit_job *job, size_t context_length, fm_kit_job_fit_fn *fit,
                                        void *state, struct fm_error *error);

/*
 * Returns the next job. Engine thread. With `wait` it blocks until there is a job, and NULL means that the end has
 * come. Without `wait`, for an engine that has other jobs, NULL also means that there is no job now, or that the next
 * job is repeatable: this job and the jobs after it wait until the engine has no job. This function also answers
 * requests of the front.
 */
struct fm_kit_job *fm_kit_take(struct fm_kit *kit, bool wait);

/*
 * Finishes the aborted jobs that fm_kit_take has not handed out yet. Call it now and then during work that takes long.
 * Engine thread.
 */
void fm_kit_finish_aborted(struct fm_kit *kit);

/* Whether fm_kit_take without `wait` would return a job. Call it during work that takes long. Engine thread. */
bool fm_kit_job_waits(struct fm_kit *kit);

/* True once this process should end. Any thread, never blocks. */
bool fm_kit_ending(const struct fm_kit *kit);

/*
 * Works as fm_kit_take with `wait`, but also returns NULL after `ms` (0: at once), after fm_kit_wake, and when a job
 * that the engine has is aborted. It is for an engine that must attend to its jobs meanwhile. fm_kit_ending says
 * whether the end has come. Engine thread.
 */
struct fm_kit_job *fm_kit_take_within(struct fm_kit *kit, int64_t ms);

/* Waits as fm_kit_take_within does, but takes no job: messages stay in the mailbox. Engine thread. */
void fm_kit_wait(struct fm_kit *kit, int64_t ms);

/*
 * Makes the waiting call of fm_kit_take_within or fm_kit_wait return without a job; if none waits, the next call. Any
 * thread, also a thread of a library; never blocks for long. Does nothing after the engine has ended.
 */
void fm_kit_wake(struct fm_kit *kit);

/*
 * The configuration that the front gives the engine (ENGINE.md, Configuration): a JSON object as text, and the folder
 * of its relative paths; both borrowed, for as long as the process lives. NULL: none. The configuration is removed from
 * the environment, and its memory there is overwritten. So make the first call before any thread runs; every later call
 * returns the same.
 */
const char *fm_kit_config(const char **folder);

/*
 * How many ms are left to save the engine's state, after fm_kit_take has returned NULL at the end; 0: none, because the
 * front is gone or wants nothing saved. Any thread, never blocks.
 */
int64_t fm_kit_save_ms(struct fm_kit *kit);

/* Reports to the front that the whole state is saved, in `bytes` bytes. Call it before `serve` returns. */
void fm_kit_saved(struct fm_kit *kit, int64_t bytes);

/* Reports to the front that the file saved_read can't be used and may be removed. Engine thread. */
void fm_kit_saved_unusable(struct fm_kit *kit, const char *reason);

/* Tells the front how far `load` is, from 0 to 1. Call it only inside `load`. */
void fm_kit_load_progress(struct fm_kit *kit, double progress);

/*
 * After this call, frames wait for fm_kit_flush, which writes them all at once. So the frames of one batch wake the
 * front once, not once for each job. Between fm_kit_gather and fm_kit_flush there must be no wait, no decode and no
 * fm_kit_take. If a frame does not fit beside the waiting frames (16 KiB), the waiting frames are sent first.
 * fm_kit_flush may block. Engine thread.
 */
void fm_kit_gather(struct fm_kit *kit);
void fm_kit_flush(struct fm_kit *kit);

/* Writes bytes between two frames without a header, for tests of the front. Any thread. */
void fm_kit_write_raw(struct fm_kit *kit, const char *bytes, size_t len);

/*
 * Only the thread that works on the job may call the functions below. They may block on output, unless their comment
 * says otherwise.
 */

/*
 * True when the job should stop, because the front asked for it or the process ends. Any thread while the job lives;
 * never blocks.
 */
bool fm_kit_job_aborted(const struct fm_kit_job *job);

/* Sleeps `ms`, or less if the job is aborted. Returns fm_kit_job_aborted. Writes nothing. */
bool fm_kit_job_sleep(struct fm_kit_job *job, int64_t ms);

/*
 * Call it when the prompt fits: sends job.accepted. Call it once, before any function below except fm_kit_job_finish.
 * `input_tokens` may be FM_UNCOUNTED.
 * FM_REASON_NONE: continue. Otherwise finish with the returned reason: the job only wanted its prompt counted.
 */
FM_MUST_USE enum fm_reason fm_kit_job_accept(struct fm_kit_job *job, int64_t input_tokens);

/*
 * Sends job.progress: `processed` input tokens are done, `cached` of them without work. It also has the number of the
 * tokens generated so far, if there are any.
 */
void fm_kit_job_progress(struct fm_kit_job *job, int64_t processed, int64_t cached);

/*
 * Call it again and again during work that may take long. It sends what fm_kit_job_progress would send if the job has
 * been silent for FM_KIT_SIGN_MS, so that a slow machine does not look like an engine that stands still. It sends
 * nothing before fm_kit_job_accept. False when the job should stop.
 */
bool fm_kit_job_go_on(struct fm_kit_job *job, int64_t processed, int64_t cached);

/*
 * Reports how likely the next token was, before the token itself is reported; the argument is copied. Its `bytes` are
 * all bytes of the token, whether they become text or not. For jobs with `logprobs`; harmless for other jobs and after
 * a call. Never blocks; reporting the token shows a lack of memory.
 */
void fm_kit_job_logprobs(struct fm_kit_job *job, const struct fm_token_logprobs *token);

/*
 * Reports a generated token; `bytes` is its text, "" when it has none. Counts the token, and sends the text that is
 * ready when it is time for a delta. Sends job.progress instead if there has been no text for so long that the front
 * would consider the job stuck (ENGINE.md).
 * FM_REASON_NONE: continue. Otherwise finish with the returned reason: a stop string, max_tokens, an abort, or out of
 * memory (FM_REASON_ERROR). After a call no text may come, so `len` must be 0; otherwise it returns FM_REASON_ERROR.
 */
FM_MUST_USE enum fm_reason fm_kit_job_token(struct fm_kit_job *job, const char *bytes, size_t len);

/*
 * Adds to the model's thought, before all text and calls. Works like fm_kit_job_text, except that stop strings do not
 * count. All tokens then count as reasoning, from the first token up to the next fm_kit_job_text, call, or token with
 * text. This is also true if `bytes` is "", as for a thought that was just opened. The thought may continue later,
 * until there is text. FM_REASON_ERROR: out of memory, or after text or a call.
 */
FM_MUST_USE enum fm_reason fm_kit_job_reasoning(struct fm_kit_job *job, const char *bytes, size_t len);

/*
 * Adds text that the engine held back, or, after a call, a part of the call's arguments. It belongs to a token that was
 * reported with the text "", or to the next such token. Sends nothing: the next token, the next call, or the end sends
 * it. FM_REASON_NONE: go on. FM_REASON_STOP: a stop string. FM_REASON_ERROR: out of memory.
 */
FM_MUST_USE enum fm_reason fm_kit_job_text(struct fm_kit_job *job, const char *bytes, size_t len);

/*
 * Reports that the answer calls the tool `name`. It must be one of the allowed tools; otherwise the front fails the
 * job. Sends the text or the last call's arguments that were held back, and then job.tool_call. Counts no token: report
 * the tokens of the name and of the marks around it with fm_kit_job_token and the text "".
 * FM_REASON_NONE: the arguments may follow. FM_REASON_ERROR: out of memory.
 */
FM_MUST_USE enum fm_reason fm_kit_job_tool_call(struct fm_kit_job *job, const char *name);

/*
 * Reports a generated token; `bytes` is its part of the arguments of the last call. Works like fm_kit_job_token, except
 * that stop strings do not count. Returns FM_REASON_ERROR also when there is no call.
 */
FM_MUST_USE enum fm_reason fm_kit_job_tool_arguments(struct fm_kit_job *job, const char *bytes, size_t len);

/*
 * Sends output whose tokens are not counted at once, in whole characters. Text that may become a stop string is held
 * back. Use it in place of fm_kit_job_token, fm_kit_job_text, fm_kit_job_reasoning and fm_kit_job_tool_arguments, never
 * beside them in one job; fm_kit_job_tool_call still begins a call.
 * FM_REASON_NONE: go on. FM_REASON_STOP: a stop string. FM_REASON_ABORTED. FM_REASON_ERROR: out of memory, arguments
 * without a call, anything after a refusal; or, unless the engine says `any_order`, reasoning after text or calls, or
 * text after calls.
 */
FM_MUST_USE enum fm_reason fm_kit_job_piece(struct fm_kit_job *job, enum fm_piece kind, const char *bytes, size_t len);

/*
 * Reports a state that the engine wants back with this answer; it then comes in fm_message.states. UTF-8, at least 1
 * byte. The state belongs to the last reasoning before it. FM_REASON_NONE: go on. FM_REASON_ERROR: out of memory.
 */
FM_MUST_USE enum fm_reason fm_kit_job_state(struct fm_kit_job *job, const char *text, size_t len);

/*
 * Takes back all output, for the reason `error`. The answer is then made again, with another fm_kit_job_accept. Call it
 * only for a job that is `restartable`, and after fm_kit_job_accept. False: out of memory.
 */
FM_MUST_USE bool fm_kit_job_restart(struct fm_kit_job *job, const struct fm_error *error);

/* Sets the counts that job.finished reports in place of the kit's own counts. Call it before fm_kit_job_finish. */
void fm_kit_job_usage(struct fm_kit_job *job, const struct fm_kit_usage *usage);

/*
 * Reports the vector of the next input, in the order of the inputs: job->dimension numbers. The array is changed: the
 * vector is brought to the length 1. FM_REASON_NONE: go on. FM_REASON_STOP: it was the last. FM_REASON_ABORTED.
 * FM_REASON_ERROR, with `error`: the vector has no length, or out of memory.
 */
FM_MUST_USE enum fm_reason fm_kit_job_embedding(struct fm_kit_job *job, float *values, struct fm_error *error);

/* Makes `text` (borrowed) the content of the last message of a job with questions. Never blocks. */
void fm_kit_job_ask(struct fm_kit_job *job, const char *text, size_t len);

/*
 * Reports how likely the choices of the next question are: the logarithms of their probabilities, at most 0, one for
 * each. FM_REASON_NONE: go on. FM_REASON_STOP: it was the last question. FM_REASON_ABORTED. FM_REASON_ERROR, with
 * `error`: out of memory.
 */
FM_MUST_USE enum fm_reason fm_kit_job_decision(struct fm_kit_job *job, const double *logprobs, struct fm_error *error);

/*
 * True if a stop string has cut the text. A text with a format is then incomplete and can't be checked;
 * fm_kit_job_finish says so in schema_error. Never blocks.
 */
bool fm_kit_job_cut(const struct fm_kit_job *job);

/*
 * Ends the job: sends the text that was held back and job.finished, and frees the job. `error` is only for
 * FM_REASON_ERROR; NULL means out of memory.
 */
void fm_kit_job_finish(struct fm_kit_job *job, enum fm_reason reason, const struct fm_error *error);

#endif
