/*
 * What every engine program needs around its engine: the kit speaks protocol/ENGINE.md with the front, so that an
 * engine only loads and generates.
 *
 * The nouns: the *kit* owns stdin, stdout, the mailbox, the list of jobs and this process's end. The *engine thread*
 * alone calls `ops`; its stack has FM_KIT_STACK bytes, and main waits for its end. A *job* is one generation, or texts
 * to embed; it belongs to the kit until fm_kit_take hands it out, then to the caller that took it until fm_kit_job_finish. Its
 * `aborted` flag may be raised by the kit at any time.
 *
 * Threads of the kit: a reader (stdin; never writes, so an abort always gets through) and a watch (signals, the parent,
 * the end). When the end comes, every abort flag is raised, fm_kit_take returns NULL, and what has not returned from
 * fm_kit_main within FM_KIT_GRACE_MS is cut off by _exit.
 *
 * Whatever writes a frame may block until the front takes it: that is the back-pressure.
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
       FM_EXIT_GPU = 70,       /* EX_SOFTWARE: a GPU failed, and what it held is lost */
       FM_EXIT_NO_MEMORY = 71, /* EX_OSERR: a message could not be taken or sent */
       FM_EXIT_PROTOCOL = 76,  /* EX_PROTOCOL: a broken frame, or an end of input inside one */
};

struct fm_kit;
struct fm_sandbox_client;
struct json_object;

/* What to load: paths, borrowed. */
struct fm_model_files {
    const char *model;         /* NULL when the front names none */
    const char *mmproj;        /* what makes the model see; NULL: nothing */
    const char *draft_model;   /* a smaller model, which guesses the model's tokens; NULL: none */
    const char *chat_template; /* a chat template in place of the model's own; NULL: none */
    int saved_read;            /* what an earlier engine saved (ENGINE.md, Saved state), to be read; -1: nothing */
    int saved_write;           /* an empty file, which `serve` may save to at its end; -1: none */
    int64_t saved_max_bytes;   /* the most bytes that file may then have */
};

#define FM_UNCOUNTED (-1) /* in place of a count of tokens: the engine does not know it */

/* What `load` tells about the model. */
struct fm_model_info {
    int64_t context_length;   /* tokens of prompt and answer together; 0: unknown */
    int slots;                /* jobs at once, up to FM_SLOTS_MAX */
    bool silent;              /* a job shows no progress before its first output: another machine computes */
    int64_t memory_bytes;     /* what the model takes with its KV memory; 0: the engine does not know */
    bool images;              /* the model sees images; if false, the kit refuses jobs that have images */
    const struct fm_gpu *gpu; /* the GPU that it computes with, or why with none; NULL: nothing is reported */
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
    const char *reason_code;              /* where it is not: "OFFLINE", ...; NULL is "HELPER_UNHEALTHY" */
    char detail[512];                     /* one sentence, without keys; "": none */
    const struct fm_listed_model *models; /* the default one first; NULL: no list, any name may be asked for */
    size_t model_count;
    int64_t ttl_ms; /* how long this holds; -1: as long as the front likes */
};

/* Which of its systems an engine can run on, for its description. */
enum fm_platforms { FM_ON_LINUX = 1, FM_ON_MACOS = 2, FM_ON_WINDOWS = 4 };

/* The features of an engine that draws its tokens itself. */
#define FM_FEATURES_OF_SAMPLING                                                                                        \
    (FM_FEATURE_SEEDS | FM_FEATURE_STOPS | FM_FEATURE_PENALTIES | FM_FEATURE_LOGIT_BIAS | FM_FEATURE_LOGPROBS)

struct fm_engine_ops {
    const char *name;         /* "llama" */
    const char *version;      /* the engine's own */
    int slots;                /* jobs at once, before a model is known */
    int64_t protocol_version; /* 0: FM_ENGINE_PROTOCOL_VERSION; other versions are for tests */
    bool reads_files;         /* the engine's models are GGUF files; else it has one model, with the engine's name */
    bool lists_models;        /* the engine has several models: `available` lists them, and job->model names one */
    bool remote;              /* the engine sends its jobs to another machine */
    bool any_order;           /* reasoning, text and calls of an answer come in any order, each several times */
    bool needs_config;        /* fm_kit_config has to have something */
    unsigned features;        /* enum fm_feature, but FM_FEATURE_AVAILABILITY: the kit refuses jobs that need others */
    bool extras;              /* the engine has the extra parameters of sampling (protocol/params.h) */
    bool passes_on;           /* the engine has a use for job->passed */
    unsigned platforms;       /* enum fm_platforms; 0: all */
    bool needs_network;       /* the sandbox does not forbid the network */
    const struct fm_sandbox_client *client; /* with needs_network: what is allowed (base/platform.h); NULL: all */
    bool needs_gpus;                        /* the sandbox does not forbid the GPUs' devices */
    bool needs_services;                    /* the sandbox does not forbid macOS's services */
    int64_t delta_ms; /* a job's deltas, except the last, are at least so far apart; 0: one a token */
    void *state;      /* the engine's own, handed to the calls below */

    /* engine.initialize has come; the log level is set. May be NULL. Engine thread; may block. */
    void (*initializing)(void *state, struct fm_kit *kit);

    /*
     * Loads what `files` names. Engine thread; blocks as long as it takes, and should look at fm_kit_ending. On failure
     * nothing is left loaded, `error` names the file, and the front may try again.
     */
    enum fm_code (*load)(void *state, struct fm_kit *kit, const struct fm_model_files *files,
                         struct fm_model_info *info, struct fm_error *error);

    /*
     * Tells whether jobs could be done now, within 2 s; loads nothing. `out` has ttl_ms -1 and nothing else. Between
     * fm_kit_take's jobs, so that an engine that is in a job for long is asked late: that does no harm. NULL: the
     * engine is always available. Engine thread.
     */
    void (*available)(void *state, struct fm_kit *kit, struct fm_availability *out);

    /*
     * Something came for fm_kit_take: a message, an abort, the end. For an engine whose thread waits elsewhere, such as
     * in curl_multi_poll. Any thread of the kit, under its lock, as long as fm_kit_main lasts; must not block, nor
     * call the kit. NULL: not wanted.
     */
    void (*wake)(void *state);

    /* A model is loaded: takes jobs until fm_kit_take (waiting) returns NULL, then frees the model. Engine thread. */
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

/* What an engine sent as job.state with an earlier answer: ENGINE.md, State of an answer. */
struct fm_state_text {
    const char *text; /* UTF-8, not empty, may hold NUL */
    size_t len;
};


/* An image among a message's text. */
struct fm_image {
    unsigned char *bytes; /* the image's file, as the host sent it: nobody has checked it */
    size_t len;           /* at least 1 */
    size_t at;            /* bytes of the message's content before the image */
    size_t index;         /* the image's index among the job's images, from 0 on, in the order of all messages */
    const char *detail;   /* "low", "high", "original" or "auto"; NULL: left open */
};

struct fm_message {
    const char *role;    /* "system", "user", "assistant" or "tool", NUL-terminated */
    const char *content; /* UTF-8, may hold NUL; "" for calls without a text */
    size_t content_len;
    struct fm_image *images; /* of a user's message, in their order; NULL: none */
    size_t image_count;
    char *joined;          /* the kit's: the content, where it came in parts; else NULL */
    const char *reasoning; /* of an assistant's message: what it thought before; UTF-8, may hold NUL; "": nothing */
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
    bool strict;                    /* a keyword of it that can't be enforced is an error */
    bool allowed;                   /* this answer may call it; the others stand in the prompt alone */
};

enum fm_tool_mode {
    FM_TOOLS_AUTO,     /* text, or calls, or both */
    FM_TOOLS_REQUIRED, /* at least one call */
    FM_TOOLS_NONE,     /* text alone: no tool is allowed */
};

/* What the text is to be: ENGINE.md, Formats. */
enum fm_format_kind {
    FM_FORMAT_TEXT,        /* any text */
    FM_FORMAT_JSON_OBJECT, /* some JSON object */
    FM_FORMAT_JSON_SCHEMA, /* JSON that matches `schema` */
    FM_FORMAT_GRAMMAR,     /* text that `definition` describes */
};

struct fm_format {
    enum fm_format_kind kind;   /* tells which of the members below it count; the others are NULL and false */
    struct json_object *schema; /* an object; the job's, read-only: nobody has checked it */
    bool strict;                /* a keyword that can't be enforced is an error */
    const char *syntax;         /* "lark" or "regex" */
    const char *definition;     /* UTF-8, NUL-terminated, not empty */
};


/* A text of which the vector is wanted. */
struct fm_input {
    const char *text; /* UTF-8, not empty, may hold NUL */
    size_t len;
};

/* The whole conversation, of a job whose oldest turns may be left out. The kit's. */
struct fm_truncation {
    bool asked;
    struct fm_message *all; /* fm_kit_job.messages is `left`, which has room for as many */
    size_t count;
    struct fm_message *left;
    size_t *cuts; /* cuts[i]: the first message that stays after the system's, when i + 1 turns are left out */
    size_t cut_count;
};

#define FM_LOGIT_BAN        (-100) /* the bias of a token that is not to come, whatever its logit is */

#define FM_REPEAT_WINDOW 64u /* tokens, as llama.cpp's default */

/* What is added to the logit of a token before one is drawn. */
struct fm_logit_bias {
    int32_t token; /* at least 0; the engine checks whether there is such a token */
    double bias;   /* FM_LOGIT_BAN to 100 */
};

/* Kinds of output of an engine that does not count tokens. */
enum fm_piece {
    FM_PIECE_TEXT,
    FM_PIECE_REASONING,
    FM_PIECE_REFUSAL,   /* what the model says instead of an answer: nothing else follows */
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
    struct fm_input *inputs; /* of a job that embeds: at least one text, and no messages or prompt. Else NULL */
    size_t input_count;
    struct fm_message *messages; /* at least one, unless `prompt` is set; without messages that were left out */
    size_t message_count;
    size_t image_count; /* of all messages, also of those that were left out */
    int64_t dropped;    /* messages that were left out */
    const char *prompt; /* in place of messages: a text that the answer goes on with; UTF-8, may hold NUL. NULL: none */
    size_t prompt_len;
    const char *suffix; /* the text that follows the answer; UTF-8, may hold NUL. NULL: none */
    size_t suffix_len;
    const char *model;   /* one of those that the engine lists, or a name; NULL: its default model, or it lists none */
    const char *session; /* a key that all jobs of one conversation share; NULL: not known */
    bool restartable;    /* fm_kit_job_restart may be called */
    bool count_only;     /* only the prompt's tokens are counted: fm_kit_job_accept returns the reason to finish with */
    int64_t max_tokens;  /* at least 1; 0: no limit */
    /*
     * By enum fm_param (protocol/params.h). An engine that computes looks at the values alone: what the host does not
     * name has its neutral value. An engine that hands jobs on passes on what was named, and nothing else.
     */
    double sampling[FM_PARAM_COUNT];
    bool named[FM_PARAM_COUNT];
    struct json_object *passed[FM_PASSED_COUNT]; /* strings, borrowed; NULL: the host did not name it */
    bool has_seed;
    int64_t seed;
    bool repeatable; /* the answer is to be the same to the bit as in a fresh process: it runs alone (fm_kit_take) */
    struct fm_logit_bias *logit_biases;
    size_t logit_bias_count;
    bool logprobs;       /* fm_kit_job_logprobs is wanted for tokens whose text is part of the answer's text */
    size_t top_logprobs; /* up to FM_TOP_LOGPROBS_MAX: how many of the most likely tokens it should have */
    struct fm_stop stops[FM_STOPS_MAX];
    size_t stop_count;
    enum fm_effort effort;
    struct fm_format format;
    struct fm_tool *tools;
    size_t tool_count;
    enum fm_tool_mode tool_mode;
    bool parallel_tool_calls; /* the answer may make more than one call */

    size_t dimension; /* numbers of a vector, for a job that embeds; the engine sets it before fm_kit_job_accept */

    /*
     * Empty; the engine fills them, and the kit frees them. An append that fails (they have a maximum) counts as out of
     * memory when they are sent, and ends the process. An engine that can go on without them checks for that before.
     */
    struct fm_buf schema_report; /* before fm_kit_job_accept: `schema_report` of job.accepted, a JSON value */
    struct fm_buf schema_error;  /* before fm_kit_job_finish: `schema_error` of job.finished, as text */

    /* The engine sets them before fm_kit_job_finish. */
    char unknown_tool[FM_TOOL_NAME_MAX + 1]; /* a name that the text calls, though no such tool is there; "":
                                                   none. ASCII; the first, of several */
    bool speculates;         /* drafted_tokens and accepted_tokens are reported */
    int64_t drafted_tokens;  /* tokens that were guessed ahead */
    int64_t accepted_tokens; /* drafted tokens that became part of the answer */

    /* The kit's. */
    struct fm_kit *kit;
    struct fm_kit_job *next;
    struct json_object *params; /* holds the strings */
    struct fm_truncation truncation;
    atomic_bool aborted;
    struct fm_error fault;           /* code not FM_OK: job.start was wrong, the engine never sees it */
    struct fm_text_stream stream;    /* the stream of the text; of all kinds of output if `pieced` */
    struct fm_logprob_queue entries; /* when `logprobs` */
    struct fm_buf text;              /* of the next job.reasoning, job.delta, or job.tool_delta after a call */
    bool thinking;                   /* the model is reasoning now */
    bool spoke;                      /* text has begun */
    struct fm_text_stream thought;   /* while `thinking` */
    bool taken;                      /* fm_kit_take has handed it out; under the kit's lock */
    bool pieced;                     /* fm_kit_job_piece has been called: no token is counted */
    enum fm_piece piece;             /* if `pieced`: the kind of the last piece */
    bool has_usage;                  /* fm_kit_job_usage has filled `usage` */
    struct fm_kit_usage usage;
    int64_t calls;       /* begun so far */
    size_t embedded;     /* vectors told so far */
    int64_t delta_ms;    /* when the last delta was sent; 0: none was */
    int64_t event_ms;    /* when the last event was sent */
    int64_t accepted_us; /* when job.accepted was sent; 0: it was not */
    int64_t first_us;    /* when the first token came; 0: none did */
    int64_t input_tokens;
    int64_t cached_tokens;
    int64_t output_tokens;
    int64_t told_tokens;      /* output tokens that were reported to the front */
    int64_t reasoning_tokens; /* output tokens of the reasoning */
};

/*
 * The whole life of an engine program: call it from main, with no other thread running, and return what it returns.
 * `ops` is borrowed. The process is in the sandbox (fm_sandbox_enter) before anything that the front says is read:
 * what the engine must write or connect to, it opens before.
 */
int fm_kit_main(const struct fm_engine_ops *ops, int argc, char *argv[]);

/* True where the job needs an engine that has tools: for new calls, or to understand earlier ones. */
bool fm_kit_job_uses_tools(const struct fm_kit_job *job);

/* Whether the value that the job has of a parameter of sampling changes something. Pure. */
bool fm_kit_job_asks(const struct fm_kit_job *job, enum fm_param param);

/*
 * Makes the prompt of a job's messages as they are now. FM_CONTEXT_OVERFLOW when it and `reserve` (at least 1) tokens
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
 * The next job. Engine thread. With `wait` it blocks until there is one, and NULL means that the end has come; without,
 * for an engine that has other jobs, NULL also means that there is none now, or that the next one is repeatable: it and
 * those after it wait until the engine has none. Calls of the front are answered in here.
 */
struct fm_kit_job *fm_kit_take(struct fm_kit *kit, bool wait);

/*
 * Finishes the aborted jobs that fm_kit_take has not handed out yet. Call it now and then during work that takes long.
 * Engine thread.
 */
void fm_kit_finish_aborted(struct fm_kit *kit);

/* Whether fm_kit_take without `wait` would come upon a job: from inside of work that takes long. Engine thread. */
bool fm_kit_job_waits(struct fm_kit *kit);

/* True once this process should end. Any thread, never blocks. */
bool fm_kit_ending(const struct fm_kit *kit);

/*
 * As fm_kit_take with `wait`, but NULL also comes after `ms` (0: at once), after fm_kit_wake, and when a job that was
 * handed out is aborted: for an engine that looks after its jobs in between. fm_kit_ending tells whether the end has
 * come. Engine thread.
 */
struct fm_kit_job *fm_kit_take_within(struct fm_kit *kit, int64_t ms);

/* Waits as fm_kit_take_within, but takes no job: what comes stays in the mailbox. Engine thread. */
void fm_kit_wait(struct fm_kit *kit, int64_t ms);

/*
 * Makes the fm_kit_take_within or fm_kit_wait that waits, or else the next one, return without a job. Any thread, also
 * one of a library; never blocks for long. Nothing happens once the engine has ended.
 */
void fm_kit_wake(struct fm_kit *kit);

/*
 * The configuration that the front gives the engine (ENGINE.md, Configuration): a JSON object as text, and the folder
 * of its relative paths; both borrowed, for as long as the process lives. NULL: none. The configuration is removed from
 * the environment, and its memory there is overwritten: so call this first, before any thread runs; every later call
 * returns the same.
 */
const char *fm_kit_config(const char **folder);

/*
 * How many ms are left to save the engine's state, after fm_kit_take has told the end; 0: none, as the front is gone or
 * wants nothing saved. Any thread, never blocks.
 */
int64_t fm_kit_save_ms(struct fm_kit *kit);

/* Reports to the front that the whole state is saved, in `bytes` bytes. Call it before `serve` returns. */
void fm_kit_saved(struct fm_kit *kit, int64_t bytes);

/* Reports to the front that the file saved_read can't be used and may be removed. Engine thread. */
void fm_kit_saved_unusable(struct fm_kit *kit, const char *reason);

/* Tells the front how far `load` is, from 0 to 1. Call it only inside `load`. */
void fm_kit_load_progress(struct fm_kit *kit, double progress);

/*
 * From this call on, frames wait for fm_kit_flush, which writes them all at once: so the frames of one batch wake the
 * front once, not once for each job. Between fm_kit_gather and fm_kit_flush there must be no wait, no decode and no
 * fm_kit_take. If a frame does not fit beside the waiting frames (16 KiB), these are sent before. fm_kit_flush may
 * block. Engine thread.
 */
void fm_kit_gather(struct fm_kit *kit);
void fm_kit_flush(struct fm_kit *kit);

/* Writes bytes between two frames as they are: for tests of the front. Any thread. */
void fm_kit_write_raw(struct fm_kit *kit, const char *bytes, size_t len);

/*
 * The calls below are for the one thread that works on the job at a time, and may block on output unless it says
 * otherwise.
 */

/* True when the job should stop: asked by the front, or the process ends. Any thread while the job lives; never blocks.
 */
bool fm_kit_job_aborted(const struct fm_kit_job *job);

/* Sleeps `ms`, less when the job is aborted: returns fm_kit_job_aborted. Writes nothing. */
bool fm_kit_job_sleep(struct fm_kit_job *job, int64_t ms);

/*
 * The prompt fits: sends job.accepted. Call it once, before any call below but fm_kit_job_finish. `input_tokens` may be
 * FM_UNCOUNTED.
 * FM_REASON_NONE: go on. Else finish with this reason: the job only wanted its prompt counted.
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
 * Reports how likely the next token was (copied), before the token itself is told. Its `bytes` are all that it has,
 * whether they turn out to be text or not. It is for jobs with `logprobs`, and harmless for others and after a call.
 * Never blocks; a lack of memory is told with the token.
 */
void fm_kit_job_logprobs(struct fm_kit_job *job, const struct fm_token_logprobs *token);

/*
 * A token was generated; `bytes` is its text, "" when it has none. Counts it, and sends what text is ready when it is
 * time for a delta; a job.progress instead when there is no text for so long that the front would take the job for
 * stuck (ENGINE.md).
 * FM_REASON_NONE: go on. Else finish with this reason: a stop string, max_tokens, an abort, or out of memory
 * (FM_REASON_ERROR). After a call there is no text any more, so `len` must be 0; else it is FM_REASON_ERROR.
 */
FM_MUST_USE enum fm_reason fm_kit_job_token(struct fm_kit_job *job, const char *bytes, size_t len);

/*
 * What the model thinks, before all text and calls. It is like fm_kit_job_text, except that stop strings do not count
 * in it. From the first token up to the next fm_kit_job_text, call, or token with text, all tokens then count as
 * reasoning. This also holds where `bytes` is "", as with a thought that has just been opened. The thought may go on
 * later, as long as there was no text. FM_REASON_ERROR: out of memory, or after text or a call.
 */
FM_MUST_USE enum fm_reason fm_kit_job_reasoning(struct fm_kit_job *job, const char *bytes, size_t len);

/*
 * Text, or after a call a part of its arguments, that the engine held back. It belongs to a token that was told as "",
 * or to the next token that is told as "". Sends nothing: that is done with the next token, call, or the end.
 * FM_REASON_NONE: go on. FM_REASON_STOP: a stop string. FM_REASON_ERROR: out of memory.
 */
FM_MUST_USE enum fm_reason fm_kit_job_text(struct fm_kit_job *job, const char *bytes, size_t len);

/*
 * The answer calls the tool `name`, which must be one of the allowed tools (else the front fails the job). Sends
 * job.tool_call, after the text or the last call's arguments that were held back. Counts no token: report the tokens
 * that spell the name and the marks around it by fm_kit_job_token, with the text "".
 * FM_REASON_NONE: the arguments may follow. FM_REASON_ERROR: out of memory.
 */
FM_MUST_USE enum fm_reason fm_kit_job_tool_call(struct fm_kit_job *job, const char *name);

/*
 * A token was generated, and `bytes` is its part of the arguments of the last call. It is like fm_kit_job_token, except
 * that stop strings do not count here. FM_REASON_ERROR also when there is no call.
 */
FM_MUST_USE enum fm_reason fm_kit_job_tool_arguments(struct fm_kit_job *job, const char *bytes, size_t len);

/*
 * More output whose tokens are not counted: it is sent at once, in whole characters, without what may become a stop
 * string (of text alone). Use it in place of fm_kit_job_token, fm_kit_job_text, fm_kit_job_reasoning and
 * fm_kit_job_tool_arguments, never beside them in one job; fm_kit_job_tool_call still begins a call.
 * FM_REASON_NONE: go on. FM_REASON_STOP: a stop string. FM_REASON_ABORTED. FM_REASON_ERROR: out of memory, arguments
 * without a call, anything after a refusal; or, unless the engine says `any_order`, reasoning after text or calls, or
 * text after calls.
 */
FM_MUST_USE enum fm_reason fm_kit_job_piece(struct fm_kit_job *job, enum fm_piece kind, const char *bytes, size_t len);

/*
 * Reports a state that the engine wants back with this answer; it then comes in fm_message.states. UTF-8, at least 1
 * byte. It belongs to the reasoning that came last. FM_REASON_NONE: go on. FM_REASON_ERROR: out of memory.
 */
FM_MUST_USE enum fm_reason fm_kit_job_state(struct fm_kit_job *job, const char *text, size_t len);

/*
 * Takes back all output, for the reason `error`: the answer is made anew, with another fm_kit_job_accept. Call it only
 * for a job that is `restartable`, and after fm_kit_job_accept. False: out of memory.
 */
FM_MUST_USE bool fm_kit_job_restart(struct fm_kit_job *job, const struct fm_error *error);

/*
 * The counts that job.finished reports, in place of those that the kit has counted. Call it before fm_kit_job_finish.
 */
void fm_kit_job_usage(struct fm_kit_job *job, const struct fm_kit_usage *usage);

/*
 * Reports the vector of the next input, in the order of the inputs: job->dimension numbers. The array is changed: the
 * vector is brought to the length 1. FM_REASON_NONE: go on. FM_REASON_STOP: it was the last. FM_REASON_ABORTED.
 * FM_REASON_ERROR, with `error`: the vector has no length, or out of memory.
 */
FM_MUST_USE enum fm_reason fm_kit_job_embedding(struct fm_kit_job *job, float *values, struct fm_error *error);

/*
 * A stop string has cut the text. One that has a format is not whole then, and there is nothing to check:
 * fm_kit_job_finish puts it into schema_error. Never blocks.
 */
bool fm_kit_job_cut(const struct fm_kit_job *job);

/*
 * The end: sends the text that was held back and job.finished, and frees the job. `error` goes with FM_REASON_ERROR
 * alone; NULL stands for out of memory.
 */
void fm_kit_job_finish(struct fm_kit_job *job, enum fm_reason reason, const struct fm_error *error);

#endif
