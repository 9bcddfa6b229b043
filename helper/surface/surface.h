/*
 * The OpenAI surface: a request body is checked and turned into a neutral job, and what an engine says about that job
 * is turned into the events and the object that an OpenAI client expects. Nobody below or beside this folder knows an
 * OpenAI shape.
 *
 * The nouns: a *surface* is one API (Responses, chat completions, embeddings), a table of functions. A *request* is a
 * checked body.
 * An *answer* is what has been produced for a request so far; it belongs to one job, and its caller keeps two threads
 * from using it at once. Nothing here blocks, does I/O (but for random bytes and the clock) or takes a lock.
 *
 * An answer is a list of items: at most one reasoning (what the model thought), then at most one message (a text), then
 * function calls, each with its arguments. All of it lies in one buffer in that order. An answer to an embeddings
 * request has vectors in their place, and no stream.
 *
 * Streaming events are pulled, not pushed: an answer knows which events it has sent, and builds the next one when it is
 * asked for it. What comes meanwhile goes into the next delta, so a slow host costs no memory but the output's own.
 *
 * Ownership: init or parse allocates, the matching free releases, on failure nothing is left to free. Pointers handed
 * in are borrowed for the call, unless a comment says otherwise.
 */
#ifndef FM_SURFACE_SURFACE_H
#define FM_SURFACE_SURFACE_H

#include "base/buf.h"
#include "base/error.h"
#include "protocol/json_writer.h"
#include "surface/conversation.h"

#include <stdint.h>

struct json_object;
struct fm_answer;
struct fm_event_row;

/* The watchdog's limits in ms; PROTOCOL.md, "Limits". */
struct fm_limits {
    int64_t queue_ms;
    int64_t first_token_ms;
    int64_t no_progress_ms;
    int64_t total_ms;
    bool queue_named;       /* by the request: it counts from arrival; else, from the last sign of progress */
    bool first_token_named; /* the same, from acceptance */
};

#define FM_LIMITS_DEFAULT                                                                                              \
    ((struct fm_limits){.queue_ms = 120000, .first_token_ms = 120000, .no_progress_ms = 60000, .total_ms = 600000})

/* How far a request is, for its limits. */
struct fm_progress {
    bool accepted; /* the engine has accepted the prompt */
    bool produced; /* and there is output */
    int64_t arrived_ms;
    int64_t accepted_ms;
    int64_t sign_ms; /* the last sign of progress: of the engine while the request waits for it, else of its own */
};

struct fm_limit {
    const char *name;
    int64_t since_ms;
    int64_t length_ms;
};

/* The limit that fires next if nothing happens. Pure. */
struct fm_limit fm_limit_next(const struct fm_limits *limits, const struct fm_progress *progress);

/* A field as an engine names it, and as the host does: "format", "text.format". */
struct fm_param_name {
    const char *engine; /* NULL ends the table */
    const char *host;
};

/* How the Responses API tells of reasoning: PROTOCOL.md, "Reasoning". */
enum fm_reasoning_dialect {
    FM_REASONING_SUMMARY, /* response.reasoning_summary_*: what every client reads */
    FM_REASONING_TEXT,    /* response.reasoning_text.*, as OpenAI */
    FM_REASONING_OPEN,    /* response.reasoning.*, as Open Responses */
};

struct fm_request {
    char *model; /* owned; NULL: the default model */
    struct fm_limits limits;
    bool stream;
    bool include_usage; /* chat, completions: stream_options.include_usage */
    bool schema_report; /* fm.schema_report: the answer's object has the member `fm` */
    enum fm_reasoning_dialect reasoning_dialect;
    bool logprobs;                             /* the answer's text goes with the log probabilities of its tokens */
    bool has_schema;                           /* the answer is to match a JSON schema */
    const struct fm_param_name *format_params; /* static; for fm_request_rename_param */
    struct fm_buf tool_names;                  /* of the tools that the answer may call; each ends with a NUL */
    bool one_call;                             /* it may call one, not more */
    bool nested_tools;                         /* chat: what is said of a tool stands in its member `function` */
    int64_t choices; /* chat: how many answers are wanted, one after the other; compaction: tries; 0 is 1 */
    bool has_seed;
    int64_t seed;                        /* of the first choice; each later one has the next. Not in job_members */
    size_t input_count;                  /* embeddings: the texts; 0: the request is for an answer */
    int64_t dimensions;                  /* embeddings: the numbers of a vector; 0: as many as the model's have */
    bool base64;                         /* embeddings: in the reply, vectors are text (protocol/vector.h) */
    bool store;                          /* the response is to be kept */
    bool background;                     /* its call is answered before it has run */
    bool unresolved;                     /* job_members lacks `messages`: fm_request_resolve brings them */
    struct fm_conversation conversation; /* its `input` is there when it is stored or unresolved */
    struct fm_buf image_params; /* the paths of the body's images, in their order; each ends with a NUL; empty: none */
    /* The members of the engine's `job.start` params (protocol/ENGINE.md) but `job`, as JSON text without braces. */
    struct fm_buf job_members;
    struct fm_buf echo; /* what the answer's object says back, JSON members without braces; the body is not kept */
    struct fm_buf output_start; /* text that the answer's begins with, before any of the engine's */
    struct fm_buf ignored; /* paths of members that no one knows, and of extras that the engine lacks: ignored.h */
    struct fm_buf extras;  /* for fm_request_write_extras, until the job is sent */
};

/*
 * Parameters of a request that not every engine has: those that are not OpenAI's, and that an engine names in its reply
 * to engine.initialize (ENGINE.md, "Extra parameters").
 */
#define FM_EXTRAS 4
extern const char *const fm_extra_names[FM_EXTRAS];
bool fm_is_extra(const char *path); /* of a member */

struct fm_usage { /* tokens */
    int64_t input;
    int64_t cached; /* of input: those whose KV cache entries were reused */
    int64_t output;
    int64_t reasoning; /* of output */
};

/* How an answer ended. */
enum fm_finish {
    FM_FINISH_STOP,           /* the model's own end, or a stop string */
    FM_FINISH_LENGTH,         /* the token limit, or the context is full */
    FM_FINISH_CONTENT_FILTER, /* the engine's filter */
    FM_FINISH_CANCELLED,      /* the host wanted no more */
    FM_FINISH_FAILED,         /* `error` says why */
};

struct fm_surface {
    const char *event_method;  /* the notification of a stream: "responses.event"; NULL, as the next: it has none */
    const char *event_member;  /* its member that holds the event: "event" */
    const char *result_member; /* the result's member that holds the final object: "response"; NULL: its members are
                                  the result's own, once the engine accepted the prompt */
    const char *id_prefix;     /* of the answer's id: "resp_" */
    const char *item_prefix;   /* of the output item's id: "msg_"; NULL: it has none */

    /*
     * Checks `params` (an object) and fills `request` (uninitialised); keeps nothing of `params`, but takes the members
     * that no one knows out of it: `request->ignored` has their paths. On failure `error` has code FM_INVALID_REQUEST,
     * a reason (answer.h: OpenAI's `code`) and the path of the field, or FM_INTERNAL (memory), and `request` needs no
     * free.
     */
    enum fm_code (*parse)(struct json_object *params, struct fm_request *request, struct fm_error *error);

    /*
     * NULL: an answer may end at a token limit. Else one that does is made once more, with a frequency penalty
     * (request.choices is 2). Of what is cut then too: FM_OK, or FM_CONTEXT_OVERFLOW where there is nothing of use.
     */
    enum fm_code (*check_cut)(const struct fm_answer *answer, struct fm_error *error);

    /* The events of a stream in their order; for answer.c. */
    const struct fm_event_row *events;
    size_t event_count;

    /* The object as it stands now, a Response or a completion; without `result_member`, its members alone. */
    void (*write)(const struct fm_answer *answer, struct fm_json_writer *w);
};

extern const struct fm_surface fm_surface_responses;
extern const struct fm_surface fm_surface_input_tokens;
extern const struct fm_surface fm_surface_compact;
extern const struct fm_surface fm_surface_chat;
extern const struct fm_surface fm_surface_embeddings;
extern const struct fm_surface fm_surface_completions;

/* Bytes of an answer's output as JSON: what an event or a result has to hold, with what the request has echoed. */
#define FM_OUTPUT_MAX (4u << 20)

#define FM_TOOL_NAME_MAX 64   /* bytes of a tool's name */
#define FM_CALLS_MAX     128u /* calls of an answer; ENGINE.md, "Tools" */

/* A call of a tool. */
struct fm_call {
    char item_id[FM_ID_SIZE]; /* the output item's "fc_..." */
    char call_id[FM_ID_SIZE]; /* "call_...", which the tool's output will name */
    char name[FM_TOOL_NAME_MAX + 1];
    size_t start; /* where its arguments begin in the answer's output; they end where the next call's begin */
};

/* How far a reader of an answer's stream has come. All readers get the same events. Zeroed, it is at the beginning. */
struct fm_cursor {
    size_t choice;      /* the one whose events come now */
    size_t next_event;  /* the row in surface->events */
    size_t calls_begun; /* calls that an event has told of; the last of them is the open item */
    size_t sent;        /* bytes of the output that have gone out in deltas */
    size_t pieces;      /* how many deltas those were */
    size_t sent_marks;  /* marks that `sent` has come to */
    size_t piece_marks; /* those that it had come to before the last piece */
    int64_t sequence;   /* the next sequence_number */
};

struct fm_answer {
    const struct fm_surface *surface;
    struct fm_request request;     /* owned */
    char id[FM_ID_SIZE];           /* "resp_..." or "chatcmpl-..."; never changes */
    char item_id[FM_ID_SIZE];      /* the message item's "msg_..." */
    char reasoning_id[FM_ID_SIZE]; /* the reasoning item's "rs_..." */
    char *model;                   /* the id of the model that answers; owned */
    int64_t created_at;            /* seconds since 1970 */
    int64_t completed_at;          /* the same; 0 until the end */
    struct fm_buf output;          /* what was produced so far: reasoning, text, arguments of the calls; or, as the
                                      entries of a JSON array, the vectors */
    size_t reasoning_len;          /* bytes of it that are reasoning */
    size_t output_json;            /* bytes of it as JSON */
    size_t output_max;             /* of those: FM_OUTPUT_MAX, or what else a frame has room for */
    struct fm_call *calls;         /* owned */
    size_t call_count;
    size_t dimension;       /* numbers of the engine's vectors */
    size_t vector_count;    /* so far */
    int64_t dropped;        /* messages that the engine left out of the prompt */
    struct fm_buf logprobs; /* of the text: entries as JSON, each with a comma behind it; when request.logprobs */
    struct fm_buf marks;    /* where a delta ended in the output and in `logprobs`, as logprobs.c has it */
    struct fm_buf report;   /* what fm_answer_report took; empty: nothing */
    char schema_error[512]; /* valid when `mismatch` */
    bool mismatch;          /* the text is whole, and does not match its schema */
    bool lost;              /* it was to be stored, and could not be */
    struct fm_usage usage;
    bool opened; /* the engine accepted the prompt: stream events may be sent */
    bool finished;
    enum fm_finish finish;      /* valid when `finished` */
    struct fm_error error;      /* valid when finished as FM_FINISH_FAILED */
    size_t choice;              /* which one it is */
    struct fm_answer **earlier; /* those before it, finished, `choice` of them; owned, but request, model and report */
    struct fm_buf pieces;       /* where each delta of a stream ends in `output`, as answer.c has it */
    char *error_code;           /* owned: error.reason, where the answer was stored meanwhile */
    struct fm_cursor *cursor;   /* whose event is being made; borrowed, and valid as long as that takes */
};

/*
 * Begins an answer: takes `request` over (the caller's copy is empty then, also on failure), copies `model`, draws the
 * ids. FM_INTERNAL when out of memory.
 */
FM_MUST_USE enum fm_code fm_answer_init(struct fm_answer *answer, const struct fm_surface *surface,
                                        struct fm_request *request, const char *model, struct fm_error *error);
void fm_answer_free(struct fm_answer *answer);

/* The engine left `messages` of the oldest out, to have the prompt fit. Before fm_answer_open. */
void fm_answer_drop(struct fm_answer *answer, int64_t messages);

/* The engine accepted the prompt, of `input_tokens` tokens. Once. */
void fm_answer_open(struct fm_answer *answer, int64_t input_tokens);

/*
 * What the engine tells of the schema: `report` holds the members "enforced" and "checked", each an array of strings,
 * as JSON text without braces, and is taken over. Once, and only when answer->request.schema_report.
 */
void fm_answer_report(struct fm_answer *answer, struct fm_buf *report);

/*
 * The text, now whole, does not match its schema, as `reason` (NUL-terminated UTF-8, copied, cut at 511 bytes) says.
 * Before fm_answer_finish.
 */
void fm_answer_mismatch(struct fm_answer *answer, const char *reason);

/*
 * What the model thinks (whole UTF-8 characters), behind fm_answer_open. FM_INTERNAL behind text or a call, where no
 * thought may be, and as soon as fm_answer_append is false; the answer stays as it was, and should be failed then.
 */
FM_MUST_USE enum fm_code fm_answer_reason(struct fm_answer *answer, const char *text, size_t len,
                                          struct fm_error *error);

/*
 * Text from the engine (whole UTF-8 characters), behind fm_answer_open; behind fm_answer_call, arguments of the last
 * call. False, and from then on for good, when the answer outgrew memory or 4 MiB as JSON; it should be failed then,
 * and keeps what it had.
 */
FM_MUST_USE bool fm_answer_append(struct fm_answer *answer, const char *text, size_t len);

/*
 * The tokens of the text that fm_answer_append took last: `list` is ENGINE.md's `logprobs`; NULL: there was none. Does
 * nothing where the request did not ask for them. FM_INTERNAL when they are wrong, or outgrow memory or 4 MiB as JSON;
 * the answer should be failed then.
 */
FM_MUST_USE enum fm_code fm_answer_logprobs(struct fm_answer *answer, struct json_object *list, struct fm_error *error);

/*
 * The engine begins to call the tool `name` (NUL-terminated, copied), behind fm_answer_open. Where it may not (no such
 * tool, or not this one, or one call too many), and without memory: FM_INTERNAL, and the answer stays as it was; it
 * should be failed then.
 */
FM_MUST_USE enum fm_code fm_answer_call(struct fm_answer *answer, const char *name, struct fm_error *error);

/*
 * Of an embeddings request, before fm_answer_open: the engine's vectors will have `dimension` numbers. FM_INTERNAL when
 * that can't be, FM_INVALID_REQUEST when the request asks for more, or for more vectors than a frame holds.
 */
FM_MUST_USE enum fm_code fm_answer_expect_vectors(struct fm_answer *answer, int64_t dimension, struct fm_error *error);

/*
 * The vector of the next text, behind fm_answer_open; `vector` as protocol/vector.h has it. FM_INTERNAL where it is not
 * that, or one too many, and without memory; FM_INVALID_REQUEST where what the request asks of it has no length. The
 * answer should be failed then, and keeps what it had.
 */
FM_MUST_USE enum fm_code fm_answer_vector(struct fm_answer *answer, const char *vector, size_t len,
                                          struct fm_error *error);

/*
 * The end. Once; set answer->usage before. `error` (copied) is read when `finish` is FM_FINISH_FAILED, where NULL
 * stands for a plain FM_INTERNAL.
 */
void fm_answer_finish(struct fm_answer *answer, enum fm_finish finish, const struct fm_error *error);

/* Whether the finished answer belongs into the store: its request says so, and the engine had accepted it. */
FM_MUST_USE bool fm_answer_is_kept(const struct fm_answer *answer);

/*
 * With several choices: whether one is to follow the one under way; ends that one as `finish` and begins the next,
 * which has fm_answer_open behind it already. FM_INTERNAL when out of memory; the answer stays as it was then.
 */
bool fm_answer_has_next(const struct fm_answer *answer);
bool fm_answer_goes_on(const struct fm_answer *answer, enum fm_finish finish); /* if the one under way ends so */
FM_MUST_USE enum fm_code fm_answer_next(struct fm_answer *answer, enum fm_finish finish, struct fm_error *error);

/*
 * True when a streaming event can be sent to the reader now. Always false before fm_answer_open, but in the background.
 */
FM_MUST_USE bool fm_answer_has_event(struct fm_answer *answer, struct fm_cursor *cursor);

/* The job's seed for the choice under way; read it when request.has_seed. */
int64_t fm_answer_seed(const struct fm_answer *answer);

/* Writes the members of `job.start` that the choice under way has of its own. */
void fm_answer_write_choice(const struct fm_answer *answer, struct fm_json_writer *w);

/* Writes the event that fm_answer_has_event told of, one JSON value, and counts it as sent. */
void fm_answer_write_event(struct fm_answer *answer, struct fm_cursor *cursor, struct fm_json_writer *w);

/*
 * Bytes of output that no event of the reader has taken yet; where there is no stream (NULL), all of it once the answer
 * is finished.
 */
size_t fm_answer_backlog(const struct fm_answer *answer, const struct fm_cursor *cursor);

/*
 * A finished answer of the Responses API, into the store and back: writes as a value what `stored->stream` is to have;
 * makes a stored response an answer again, whose stream has the same events, whoever read it before. FM_INTERNAL: what
 * is stored is damaged, or out of memory.
 */
void fm_answer_write_stream(struct fm_answer *answer, struct fm_json_writer *w);
FM_MUST_USE enum fm_code fm_answer_restore(struct fm_answer *answer, const struct fm_stored_response *stored,
                                           struct fm_error *error);

/*
 * An unresolved request is whole now: `messages` is what fm_conversation_resolve wrote (borrowed). FM_INTERNAL: out of
 * memory.
 */
FM_MUST_USE enum fm_code fm_request_resolve(struct fm_request *request, const struct fm_buf *messages,
                                            struct fm_error *error);

/*
 * Writes the members of the job that are extras (fm_extra_names) and asked for. Those that the engine has not are
 * ignored: they are added to `request->ignored`, which fails without memory. `has`: bit i is fm_extra_names[i].
 */
void fm_request_write_extras(struct fm_request *request, unsigned has, struct fm_json_writer *w);

/* Of a request that fm_answer_init did not take over. Harmless twice. */
void fm_request_free(struct fm_request *request);

/*
 * Writes into error->param the path of the body's image `index`, and `member` behind it (".type", say). False, and
 * nothing is changed, when the body has none such.
 */
bool fm_request_image_param(const struct fm_request *request, size_t index, const char *member, struct fm_error *error);

/*
 * Turns the `param` of an engine's error that is the job's `format` or `embed`, or within it or within a tool, or one
 * of its images (ENGINE.md, Formats, Tools, Embeddings, Images), into the path in the host's body, cut between
 * characters where it gets too long. Another `param` stays as it is. An image's error gets its code.
 */
void fm_request_rename_param(const struct fm_request *request, struct fm_error *error);

/*
 * Writes a PROTOCOL.md error object: {"code","detail","openai":{"status","type","code","message","param"}}, with
 * `limit` and `limit_ms` when they are set.
 */
void fm_error_write(const struct fm_error *error, struct fm_json_writer *w);

#endif
