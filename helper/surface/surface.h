/*
 * The OpenAI surface. It checks a request body and turns it into a neutral job for an engine. It turns the engine's
 * output into the events and the object that an OpenAI client expects. No other folder knows the shapes of OpenAI's
 * API.
 *
 * The nouns: a *surface* is one API (Responses, chat completions, embeddings): a table of functions. A *request* is a
 * checked body. An *answer* is what has been produced for a request so far. It belongs to one job, and the caller makes
 * sure that only one thread uses it at a time. Nothing here blocks, takes a lock, or does I/O (except for random bytes
 * and the clock).
 *
 * An answer is a list of parts: reasoning (what the model thought), text, a refusal, calls with their arguments. All
 * parts lie in one buffer, in their order. Most engines produce at most one reasoning, then at most one text, then
 * calls; with some engines (`any_order`) the parts come in any order. An answer to an embeddings request has vectors
 * instead, and no stream.
 *
 * Streaming events are pulled, not pushed: an answer knows which events a reader has got, and builds the next event
 * when the reader asks for it. Output that comes in between goes into the next delta, so a slow host costs no extra
 * memory.
 *
 * Ownership: init or parse allocates, the matching free function releases; on failure nothing is left to free. Pointer
 * arguments are borrowed for the call, unless a comment says otherwise.
 */
#ifndef FM_SURFACE_SURFACE_H
#define FM_SURFACE_SURFACE_H

#include "base/buf.h"
#include "base/error.h"
#include "protocol/engine.h"
#include "protocol/json_writer.h"
#include "protocol/params.h"
#include "surface/stored.h"

#include <stdint.h>

struct json_object;
struct fm_answer;
struct fm_cursor;

/* The watchdog's limits in ms; PROTOCOL.md, "Limits". */
struct fm_limits {
    int64_t queue_ms;
    int64_t first_token_ms;
    int64_t no_progress_ms;
    int64_t total_ms;
    int64_t keep_alive_ms;  /* idle time after the answer until the engine is ended; -1: never; FM_KEEP_ALIVE_UNSAID */
    bool queue_named;       /* the request sets queue_ms, which then counts from arrival; else from the last progress */
    bool first_token_named; /* the request sets first_token_ms, which then counts from acceptance; else as queue_ms */
};

#define FM_KEEP_ALIVE_UNSAID (-2) /* the helper's option counts */

#define FM_LIMITS_DEFAULT                                                                                              \
    ((struct fm_limits){.queue_ms = 120000,                                                                            \
                        .first_token_ms = 120000,                                                                      \
                        .no_progress_ms = 60000,                                                                       \
                        .total_ms = 600000,                                                                            \
                        .keep_alive_ms = FM_KEEP_ALIVE_UNSAID})

/* How far a request has come, for its limits. */
struct fm_progress {
    bool accepted; /* the engine has accepted the prompt */
    bool produced; /* the engine has sent output */
    bool silent;   /* the engine shows no progress before its first output */
    int64_t arrived_ms;
    int64_t accepted_ms;
    int64_t sign_ms; /* last sign of progress: the engine's while the request waits for it; otherwise its own */
};

struct fm_limit {
    const char *name;
    int64_t since_ms;
    int64_t length_ms;
};

/* Returns the limit that passes next if nothing happens. Pure. */
struct fm_limit fm_limit_next(const struct fm_limits *limits, const struct fm_progress *progress);

/* The engine's name and the host's name of a field, for example "format" and "text.format". */
struct fm_param_name {
    const char *engine; /* NULL ends the table */
    const char *host;
};

/* The events by which the Responses API reports reasoning: PROTOCOL.md, "Reasoning". */
enum fm_reasoning_dialect {
    FM_REASONING_SUMMARY, /* response.reasoning_summary_*: every client reads it */
    FM_REASONING_TEXT,    /* response.reasoning_text.*, as OpenAI */
    FM_REASONING_OPEN,    /* response.reasoning.*, as Open Responses */
};

/* What an answer may do with a tool; bits. FM_TOOL_KNOWN is always set, so that the byte is no NUL. */
enum fm_tool_use { FM_TOOL_KNOWN = 1, FM_TOOL_ALLOWED = 2, FM_TOOL_CUSTOM = 4 };

struct fm_request {
    char *model; /* owned; NULL: the default model */
    struct fm_limits limits;
    bool stream;
    bool include_usage; /* chat, completions: stream_options.include_usage */
    bool schema_report; /* fm.schema_report: the answer's object reports on the schema in its member `fm` */
    bool progress;      /* `return_progress`: the stream reports how much of the prompt is computed */
    bool full_result;   /* fm.full_result: the result repeats the object that the stream's last event has */
    bool timings;       /* fm.timings: the object's member `fm` reports how long the answer took */
    bool local_only;    /* fm.local_only: the request may not go to an engine that uses another machine */
    bool repeatable;    /* fm.repeatable: the engine must have no other job meanwhile. Not in job_members */
    bool prefill_only;  /* `generate` is false: the prompt is read, and nothing is generated. Not in job_members */
    enum fm_reasoning_dialect reasoning_dialect;
    bool logprobs;                             /* the answer has the log probabilities of its text's tokens */
    bool has_schema;                           /* the answer is to match a JSON schema */
    const struct fm_param_name *format_params; /* static; for fm_request_rename_param */
    struct fm_buf tools;                       /* of each tool: an enum fm_tool_use as a byte, its name, a NUL */
    bool one_call;                             /* the answer may make one call at most */
    bool nested_tools;                         /* chat: the members of a tool lie in its member `function` */
    int64_t choices; /* how many answers, one after the other; for a compaction: tries; 0 means 1 */
    bool has_seed;
    int64_t seed;                        /* the first choice's; each later one adds 1. Not in job_members */
    size_t input_count;                  /* how many texts to embed, or questions to decide; 0: neither */
    struct json_object *questions;       /* decisions: a checked list; owned; NULL: not a request for decisions */
    int64_t dimensions;                  /* embeddings: values of a vector; 0: as many as the model makes */
    bool base64;                         /* embeddings: the reply has vectors as base64 (protocol/vector.h) */
    bool store;                          /* the response is to be stored */
    bool unstored;                       /* chat: the host asks to store the answer, which is not supported */
    bool background;                     /* the create call is answered before the answer is generated */
    bool unresolved;                     /* job_members has no `messages` yet: fm_request_resolve adds them */
    struct fm_conversation conversation; /* its `input` is set if `store` or `unresolved` is set */
    struct fm_buf image_params;          /* paths of the body's images, in order; each ends with a NUL */
    /* The members of `job.start`'s params (protocol/ENGINE.md) except `job`, as JSON text without braces. */
    struct fm_buf job_members;
    struct fm_buf echo;         /* members of the body that the answer's object repeats: JSON without braces */
    struct fm_buf prompts;      /* completions: the texts of all prompts, which have equally many choices each */
    struct fm_buf prompt_ends;  /* where each ends in `prompts`, as size_t */
    bool echo_prompt;           /* completions: the text of a choice begins with its prompt */
    struct fm_buf ignored;      /* paths of unknown members, and of members without effect: ignored.h */
    struct fm_buf extras;       /* for fm_request_write_extras, until the job is sent */
};

#define FM_UNKNOWN_COUNT (-1) /* replaces a count that the engine does not know */

struct fm_usage { /* tokens; each may be FM_UNKNOWN_COUNT */
    int64_t input;
    int64_t cached; /* tokens of `input` whose KV cache entries were reused */
    int64_t output;
    int64_t reasoning; /* tokens of `output` that are reasoning */
};

/* The times of a choice of an answer: PROTOCOL.md, "Timings". */
struct fm_timings {
    int64_t queue_us;   /* until the engine accepted the prompt */
    int64_t prefill_us; /* from the acceptance of the prompt to the first token */
    int64_t decode_us;  /* from the first token to the end */
    bool told;          /* the engine reported prefill_us and decode_us */
    bool speculates;    /* the engine reported drafted and accepted */
    int64_t drafted;    /* tokens that the engine guessed ahead */
    int64_t accepted;   /* drafted tokens that became part of the answer */
};

/* How an answer ended. */
enum fm_finish {
    FM_FINISH_STOP,           /* the model's own end, or a stop string */
    FM_FINISH_LENGTH,         /* the token limit, or the context is full */
    FM_FINISH_CONTENT_FILTER, /* the engine's filter */
    FM_FINISH_CANCELLED,      /* the host cancelled it */
    FM_FINISH_FAILED,         /* `error` says why */
};

/* What is to be done for a request. */
enum fm_work {
    FM_WORK_ANSWER, /* an engine has to answer the request */
    FM_WORK_LOAD,   /* the request's model has to be loaded */
    FM_WORK_UNLOAD, /* the engine of the request's model has to end */
};

struct fm_surface {
    enum fm_work work;
    const char *event_method;  /* the notification of a stream: "responses.event"; NULL: no stream */
    const char *event_member;  /* its member that holds the event: "event"; NULL: no stream */
    const char *result_member; /* the result's member that holds the final object: "response"; NULL: the object's
                                  members are the result's, once the engine has accepted the prompt */
    const char *id_prefix;     /* prefix of the answer's id: "resp_" */
    const char *item_prefix;   /* prefix of the output item's id: "msg_"; NULL: items have no ids */
    bool whole_usage;          /* OpenAI's types demand all of `usage`: `fm.uncounted` names unknown counts */

    /*
     * Checks `params` (an object) and fills `request` (uninitialised). Keeps no reference to `params`, but removes
     * unknown members from it; `request->ignored` has their paths. On failure `request` needs no free, and `error` has
     * the code FM_INVALID_REQUEST, a reason (answer.h: OpenAI's `code`) and the path of the field; or the code
     * FM_INTERNAL (memory).
     */
    enum fm_code (*parse)(struct json_object *params, struct fm_request *request, struct fm_error *error);

    /*
     * NULL: an answer may end at a token limit. Otherwise an answer that ends at one is generated once more, with a
     * frequency penalty (request.choices is 2). If the second answer is cut too, this function decides: FM_OK, or
     * FM_CONTEXT_OVERFLOW when the answer is of no use.
     */
    enum fm_code (*check_cut)(const struct fm_answer *answer, struct fm_error *error);

    /*
     * A stream, for answer.c. `next` returns the event that follows cursor->last. `write_event` writes that event as a
     * value and moves the cursor past it, but does not change cursor->last (answer.h, enum fm_event). NULL: no stream.
     */
    int (*next)(const struct fm_answer *answer, const struct fm_cursor *cursor);
    void (*write_event)(struct fm_answer *answer, struct fm_cursor *cursor, int event, struct fm_json_writer *w);

    /* Writes the object as it stands now, a Response or a completion; without `result_member`, only its members. */
    void (*write)(const struct fm_answer *answer, struct fm_json_writer *w);

    /*
     * Writes the object in the result of a stream whose last event had the whole object: only what that event lacked.
     * NULL: no event has the whole object.
     */
    void (*write_end)(const struct fm_answer *answer, struct fm_json_writer *w);
};

extern const struct fm_surface fm_surface_responses;
extern const struct fm_surface fm_surface_input_tokens;
extern const struct fm_surface fm_surface_compact;
extern const struct fm_surface fm_surface_chat;
extern const struct fm_surface fm_surface_embeddings;
extern const struct fm_surface fm_surface_completions;
extern const struct fm_surface fm_surface_decisions;
extern const struct fm_surface fm_surface_load;
extern const struct fm_surface fm_surface_unload;

/* Most bytes of an answer's output as JSON. An event or a result must have room for it and for `request.echo`. */
#define FM_OUTPUT_MAX (4u << 20)

#define FM_MISMATCH_MAX  511  /* bytes of the reason why a text does not match its schema */

#define FM_PARTS_MAX              256    /* of an answer */

/* What a part of an answer is. */
enum fm_output_kind { FM_PART_REASONING, FM_PART_TEXT, FM_PART_REFUSAL, FM_PART_CALL };

struct fm_output_part {
    enum fm_output_kind kind;
    char item_id[FM_ID_SIZE];        /* the output item's "rs_...", "msg_..." or "fc_..."; "": the API has none */
    size_t start;                    /* where the part begins in the answer's output; it ends where the next begins */
    char call_id[FM_ID_SIZE];        /* for a call: "call_...", which the tool's output will name */
    char name[FM_TOOL_NAME_MAX + 1]; /* for a call: the name of the tool */
    bool custom;                     /* for a call: the tool is a custom one, and the output is its text */
    char *state;                     /* for reasoning: what the engine wants back with it; owned; NULL: nothing */
    size_t state_len;
};

/*
 * A reader's position in an answer's stream. All readers get the same events. All zero is the beginning of the stream.
 */
struct fm_cursor {
    size_t choice;      /* the choice whose events come now */
    int last;           /* the event that was sent last (answer.h); 0: no event was sent */
    size_t parts_begun; /* parts whose first event was sent; the last of them is the open part */
    size_t sent;        /* bytes of the output that were sent in deltas */
    size_t pieces;      /* how many deltas were sent */
    size_t sent_marks;  /* marks (logprobs.c) up to `sent` */
    size_t piece_marks; /* marks up to the beginning of the last piece */
    int64_t processed;  /* tokens of the prompt that were reported last, if request.progress */
    int64_t sequence;   /* the next sequence_number */
};

/* The results of models.load and models.unload. */
struct fm_loaded {
    int64_t load_ms;        /* from the engine's start until it was ready */
    int64_t memory_bytes;   /* bytes that the model takes; 0: unknown */
    int64_t context_length; /* tokens; 0: unknown */
    unsigned slots;         /* how many requests are answered at once */
    bool unloaded;          /* an engine existed and was ended */
};

/* How far the text of a custom tool's call was read (custom.h). All zero is the beginning of a call. */
struct fm_custom_reader {
    enum { FM_CUSTOM_BEFORE, FM_CUSTOM_TEXT, FM_CUSTOM_AFTER } place; /* before, in or after the text's string */
    int quotes;                                                       /* that came before the text: 3 is its first */
    size_t held;                                                      /* bytes of an escape that is not complete */
    char escape[12];                                                  /* the longest one is `\ud83d\ude00` */
};

struct fm_answer {
    const struct fm_surface *surface;
    struct fm_request request;    /* owned */
    char id[FM_ID_SIZE];          /* "resp_..." or "chatcmpl-..."; never changes */
    char item_id[FM_ID_SIZE];     /* id of the only item, for an object that has one: a compaction */
    char *model;                  /* the id of the model that answers; owned */
    char engine[33];              /* the engine that made the answer, if there are several; "": not to be reported */
    int64_t created_at;           /* seconds since 1970 */
    int64_t completed_at;         /* seconds since 1970; 0 until the end */
    struct fm_buf output;         /* what was produced so far: the texts of the parts; or the vectors, as entries of a
                                     JSON array */
    size_t output_json;           /* bytes of the output as JSON */
    size_t output_max;            /* the largest `output_json`: FM_OUTPUT_MAX, or less if a frame has less room */
    struct fm_output_part *parts; /* owned; room for one more than part_count */
    size_t part_count;
    size_t call_count; /* how many of the parts are calls */
    size_t state_count;
    size_t state_bytes;
    bool any_order;         /* whether the engine's parts may come in any order; set before fm_answer_open */
    size_t dimension;       /* number of values in each of the engine's vectors */
    size_t entry_count;     /* vectors or decisions so far */
    int64_t dropped;        /* messages that the engine left out of the prompt */
    struct fm_buf logprobs; /* of the text: entries as JSON, each with a comma after it; if request.logprobs */
    struct fm_buf marks;    /* where the engine's deltas ended in the output and in `logprobs`: logprobs.c */
    struct fm_custom_reader custom; /* of the call of a custom tool that is produced now */
    struct fm_buf report;   /* set by fm_answer_report; empty: not called */
    char schema_error[FM_MISMATCH_MAX + 1]; /* valid when `mismatch` */
    bool mismatch;                          /* the text is complete, and does not match its schema */
    bool lost;                              /* the answer should have been stored, but could not be */
    struct fm_usage usage;
    int64_t processed;         /* tokens of the prompt that are computed; set by fm_answer_progress */
    int64_t processed_ms;      /* the time that it took */
    struct fm_timings timings; /* set by the caller */
    char unknown_tool[FM_TOOL_NAME_MAX + 1]; /* a tool that the text calls, though the request has none of that name */
    struct fm_loaded loaded;   /* the result if surface->work is not FM_WORK_ANSWER; filled in before the end */
    bool opened;               /* the engine accepted the prompt: stream events may be sent */
    bool finished;
    enum fm_finish finish;      /* valid when `finished` */
    struct fm_error error;      /* valid when finished as FM_FINISH_FAILED */
    size_t choice;              /* the index of the choice under way */
    struct fm_answer **earlier; /* the `choice` finished choices; owned, except for their request, model and report */
    struct fm_buf pieces;       /* where each delta of the stream ends in `output`, as size_t: see answer.c */
    char *error_code;           /* error.reason of an answer that came from the store; owned */
};

/*
 * Begins an answer: takes `request` over (the caller's copy is empty afterwards, also on failure), copies `model`,
 * draws the ids. FM_INTERNAL when out of memory.
 */
FM_MUST_USE enum fm_code fm_answer_init(struct fm_answer *answer, const struct fm_surface *surface,
                                        struct fm_request *request, const char *model, struct fm_error *error);
void fm_answer_free(struct fm_answer *answer);

/*
 * Notes that the engine left out the oldest `messages` messages, so that the prompt fits. Call it before
 * fm_answer_open.
 */
void fm_answer_drop(struct fm_answer *answer, int64_t messages);

/*
 * Notes that the text calls a tool of this name (copied, cut at FM_TOOL_NAME_MAX), which the request does not have.
 * NULL: there is no such call. If there are several, the first one counts. Call it before fm_answer_finish.
 */
void fm_answer_call_unknown(struct fm_answer *answer, const char *name);

/*
 * Call it when the engine has accepted the prompt of the choice under way, which has `input_tokens` tokens
 * (FM_UNKNOWN_COUNT: the engine does not know). Call it once for each choice, unless the choice is made anew.
 */
void fm_answer_open(struct fm_answer *answer, int64_t input_tokens);

/*
 * Notes that `processed` tokens of the prompt are computed, `ms` milliseconds after the engine has accepted it. The
 * first answer->usage.cached of them were in the KV cache. Call it after fm_answer_open, before the first output.
 */
void fm_answer_progress(struct fm_answer *answer, int64_t processed, int64_t ms);

/*
 * Call it when the answer is made anew. It forgets the output of the choice under way, and with `all` also the earlier
 * choices. Call it only while no reader has had an event of the answer.
 */
void fm_answer_restart(struct fm_answer *answer, bool all);

/*
 * Takes over the engine's report on the schema. `report` holds the members "enforced" and "checked", each an array of
 * strings, as JSON text without braces. Call it once, and only if answer->request.schema_report is true.
 */
void fm_answer_report(struct fm_answer *answer, struct fm_buf *report);

/*
 * Notes that the complete text does not match its schema. `reason` says why (NUL-terminated UTF-8, copied, cut at
 * FM_MISMATCH_MAX bytes). Call it before fm_answer_finish.
 */
void fm_answer_mismatch(struct fm_answer *answer, const char *reason);

/*
 * Adds reasoning (whole UTF-8 characters). Call it after fm_answer_open. FM_INTERNAL: after text or a call, unless
 * `any_order`; after a refusal; and whenever fm_answer_append would be false. In these cases the answer stays as it
 * was, and the caller should fail it.
 */
FM_MUST_USE enum fm_code fm_answer_reason(struct fm_answer *answer, const char *text, size_t len,
                                          struct fm_error *error);

/*
 * Adds text, or what the model says to refuse (`kind`). Call it after fm_answer_open. FM_INTERNAL: for text after a
 * call, unless `any_order`; for anything else after a refusal; and whenever fm_answer_append would be false.
 */
FM_MUST_USE enum fm_code fm_answer_say(struct fm_answer *answer, enum fm_output_kind kind, const char *text, size_t len,
                                       struct fm_error *error);

/*
 * Adds a state (copied) that the engine wants back with this answer. It belongs to the reasoning that came last, or to
 * a new part if something else came after that reasoning. FM_INTERNAL: too many states, too long, or out of memory.
 */
FM_MUST_USE enum fm_code fm_answer_state(struct fm_answer *answer, const char *state, size_t len,
                                         struct fm_error *error);

/* The part that is being produced; NULL: there is none. */
const struct fm_output_part *fm_answer_last_part(const struct fm_answer *answer);

/*
 * Adds text from the engine (whole UTF-8 characters); after fm_answer_call, arguments of the last call. Call it after
 * fm_answer_open. False, and always false from then on, when the answer outgrows memory or 4 MiB as JSON. The answer
 * then keeps what it had, and the caller should fail it.
 */
FM_MUST_USE bool fm_answer_append(struct fm_answer *answer, const char *text, size_t len);

/*
 * Adds the log probabilities of the text that fm_answer_append took last. `list` is `logprobs` of ENGINE.md, or NULL if
 * the engine sent none. Does nothing if the request did not ask for log probabilities. FM_INTERNAL when they are wrong,
 * or outgrow memory or 4 MiB as JSON. In that case the caller should fail the answer.
 */
FM_MUST_USE enum fm_code fm_answer_logprobs(struct fm_answer *answer, struct json_object *list, struct fm_error *error);

/*
 * Call it when the engine begins to call the tool `name` (NUL-terminated, copied), after fm_answer_open. FM_INTERNAL
 * when the engine may not call it (no such tool, a tool that may not be called, or one call too many) or memory runs
 * out. In that case the answer stays as it was, and the caller should fail it.
 */
FM_MUST_USE enum fm_code fm_answer_call(struct fm_answer *answer, const char *name, struct fm_error *error);

/*
 * Prepares an embeddings answer for vectors with `dimension` values. Call it before fm_answer_open. FM_INTERNAL when
 * that number is impossible. FM_INVALID_REQUEST when the request asks for more values, or for more vectors than a frame
 * can hold.
 */
FM_MUST_USE enum fm_code fm_answer_expect_vectors(struct fm_answer *answer, int64_t dimension, struct fm_error *error);

/*
 * Adds the decision about the next question. Call it after fm_answer_open. `logprobs` (borrowed, may be NULL) is the
 * engine's list. FM_INTERNAL when it is not a list of log probabilities, when there is one decision too many, or when
 * memory runs out. The answer then keeps what it had, and the caller should fail it.
 */
FM_MUST_USE enum fm_code fm_answer_decide(struct fm_answer *answer, struct json_object *logprobs,
                                          struct fm_error *error);

/*
 * Adds the vector of the next text. Call it after fm_answer_open. `vector` is in the form of protocol/vector.h.
 * FM_INTERNAL when the form is wrong, when there is one vector too many, or when memory runs out. FM_INVALID_REQUEST
 * when the part of the vector that the request asks for has the length 0. In these cases the answer keeps what it had,
 * and the caller should fail it.
 */
FM_MUST_USE enum fm_code fm_answer_vector(struct fm_answer *answer, const char *vector, size_t len,
                                          struct fm_error *error);

/*
 * Ends the answer. Call it once, and set answer->usage before. `error` (copied) counts only if `finish` is
 * FM_FINISH_FAILED; in that case NULL stands for an FM_INTERNAL without details.
 */
void fm_answer_finish(struct fm_answer *answer, enum fm_finish finish, const struct fm_error *error);

/*
 * Whether to store the finished answer: its request asks for that, and the answer was accepted, or runs in the
 * background.
 */
FM_MUST_USE bool fm_answer_is_kept(const struct fm_answer *answer);

/*
 * For requests with several choices. has_next: whether another choice follows the choice under way. goes_on: whether
 * another choice follows if the choice under way ends as `finish`. next: ends the choice under way as `finish` and
 * begins the next choice, which counts as opened. FM_INTERNAL when out of memory; in that case the answer stays as it
 * was.
 */
bool fm_answer_has_next(const struct fm_answer *answer);
bool fm_answer_goes_on(const struct fm_answer *answer, enum fm_finish finish);
FM_MUST_USE enum fm_code fm_answer_next(struct fm_answer *answer, enum fm_finish finish, struct fm_error *error);

/*
 * True when a streaming event can be sent to the reader now. False before fm_answer_open, except in the background.
 */
FM_MUST_USE bool fm_answer_has_event(struct fm_answer *answer, struct fm_cursor *cursor);

/* The seed for the choice under way; valid if request.has_seed. */
int64_t fm_answer_seed(const struct fm_answer *answer);

/* Writes the prompt of the choice under way as a member of `job.start`; nothing if the API has no prompts. */
void fm_answer_write_prompt(const struct fm_answer *answer, struct fm_json_writer *w);

/* Writes the other members of `job.start` that differ between choices. */
void fm_answer_write_choice(const struct fm_answer *answer, struct fm_json_writer *w);

/* Writes the event that fm_answer_has_event announced, one JSON value, and counts it as sent. */
void fm_answer_write_event(struct fm_answer *answer, struct fm_cursor *cursor, struct fm_json_writer *w);

/*
 * Skips events: those with a sequence_number of at most `last` count as sent. Deltas that another reader had are
 * counted at once, so this takes microseconds for any number of deltas.
 */
void fm_answer_skip_events(struct fm_answer *answer, struct fm_cursor *cursor, int64_t last);

/* Whether the next event has a part of the answer, as a delta has. Other events may have the whole answer. */
bool fm_answer_event_is_part(struct fm_answer *answer, const struct fm_cursor *cursor);

/* Bytes of the long members in the largest of the answer's events and in its object. */
size_t fm_answer_size(const struct fm_answer *answer);

/*
 * Bytes of output that were not sent to the reader yet. Without a stream (`cursor` NULL): the bytes of all output once
 * the answer is finished.
 */
size_t fm_answer_backlog(const struct fm_answer *answer, const struct fm_cursor *cursor);

/*
 * Stores and restores a finished answer of the Responses API. The first function writes, as a value, what goes into
 * `stored->stream`. The second makes a stored response an answer again: its stream has the same events as before.
 * FM_INTERNAL: what is stored is damaged, or out of memory.
 */
void fm_answer_write_stream(struct fm_answer *answer, struct fm_json_writer *w);
FM_MUST_USE enum fm_code fm_answer_restore(struct fm_answer *answer, const struct fm_stored_response *stored,
                                           struct fm_error *error);

/*
 * Completes an unresolved request. `messages` (borrowed) has the messages that fm_conversation_resolve wrote.
 * FM_INTERNAL: out of memory.
 */
FM_MUST_USE enum fm_code fm_request_resolve(struct fm_request *request, const struct fm_buf *messages,
                                            struct fm_error *error);

/*
 * Writes the extras that the request asks for and the engine has, as members of the job. Other extras are ignored:
 * their names are added to `request->ignored` (which fails when memory runs out). If ->unstored is set, `store` is
 * added too. `has`: bit i stands for fm_extra_names[i].
 */
void fm_request_write_extras(struct fm_request *request, unsigned has, struct fm_json_writer *w);

#define FM_SESSION_SIZE 17 /* bytes of the hash of a conversation, as text */

/*
 * Computes the hash of the conversation's beginning, for ENGINE.md's `session`. False: the conversation has no message
 * of the user. Call it before the job's members are freed. Pure.
 */
bool fm_request_session(const struct fm_request *request, char session[FM_SESSION_SIZE]);

/*
 * Moves the texts that a job needed, and that are not sent again, to `taken`, whose earlier contents are freed. A text
 * can have megabytes, so the caller frees `taken` without a lock.
 */
void fm_request_take_job(struct fm_request *request, struct fm_buf taken[2]);

/* Frees a request that fm_answer_init did not take over. Calling it twice is harmless. */
void fm_request_free(struct fm_request *request);

/*
 * Writes into error->param the path of the body's image `index`, followed by `member` (for example ".type"). False,
 * with nothing changed, when the body has no such image.
 */
bool fm_request_image_param(const struct fm_request *request, size_t index, const char *member, struct fm_error *error);

/*
 * Translates the `param` of an engine's error into the path in the host's body, if the `param` is in the job's `format`
 * or `embed`, in a tool, or an image (ENGINE.md, Formats, Tools, Embeddings, Images). A path that gets too long is cut
 * between characters. Any other `param` stays. An image's error also gets its reason, FM_IMAGE_INVALID. Afterwards the
 * text of an INVALID_REQUEST names the field.
 */
void fm_request_rename_param(const struct fm_request *request, struct fm_error *error);

/*
 * An error that the prompt of a choice caused gets the path of that prompt, if there are several prompts and it has no
 * path.
 */
void fm_request_name_prompt(const struct fm_request *request, size_t choice, struct fm_error *error);

/*
 * Writes a PROTOCOL.md error object: {"code","detail","openai":{"status","type","code","message","param"}}, with
 * `limit`, `limit_ms`, `reason_code` and `retry_after_ms` if they are set.
 */
void fm_error_write(const struct fm_error *error, struct fm_json_writer *w);

#endif
