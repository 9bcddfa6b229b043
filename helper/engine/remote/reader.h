/*
 * A streamed answer, in an endpoint's dialect: bytes in, what the answer consists of out. Pure.
 *
 * The end of an answer is its end mark, never the end of the connection: without the mark nobody knows what is missing.
 */
#ifndef FM_ENGINE_REMOTE_READER_H
#define FM_ENGINE_REMOTE_READER_H

#include "engine/remote/config.h"
#include "engine/remote/halves.h"
#include "engine/remote/request.h"
#include "engine/remote/sse.h"

enum fm_remote_part_kind {
    FM_REMOTE_TEXT,
    FM_REMOTE_REASONING,
    FM_REMOTE_REFUSAL,
    FM_REMOTE_CALL,      /* a call begins: `text` is the name */
    FM_REMOTE_ARGUMENTS, /* arguments of the last call */
    FM_REMOTE_STATE,     /* a state for the next request of this conversation */
    FM_REMOTE_LOGPROBS,  /* the log probabilities of a token (`token`) of the text that comes next */
};

/* Borrowed during the call. */
struct fm_remote_part {
    enum fm_remote_part_kind kind;
    const char *text;
    size_t len;
    const struct fm_token_logprobs *token;
};

/* False: nothing more is wanted. */
typedef bool fm_remote_part_fn(void *state, const struct fm_remote_part *part);

#define FM_READER_CALLS FM_TOOLS_MAX
#define FM_READER_KINDS (FM_REMOTE_REFUSAL + 1) /* kinds of parts that are texts */

/* A text that was handed out, as a checksum: whether another one begins with it. */
struct fm_tally {
    uint32_t sum;
    size_t len;
};

/* Which unit of the answer a checksum is of: servers repeat each unit as a whole at its end, or only send it whole. */
enum fm_tally_level { FM_TALLY_PART, FM_TALLY_ITEM, FM_TALLY_ANSWER, FM_TALLY_LEVELS };

/* The texts of a whole item, each kind on its own. */
struct fm_said {
    struct fm_buf texts[FM_READER_KINDS]; /* by FM_REMOTE_TEXT, FM_REMOTE_REASONING and FM_REMOTE_REFUSAL */
};

struct fm_remote_reader {
    const struct fm_endpoint *endpoint;
    const struct fm_secrets *secrets;
    char maker[FM_MAKER_SIZE];
    fm_remote_part_fn *take;
    void *state;
    struct fm_kit_usage usage; /* as far as the server has told it */
    enum fm_reason reason;     /* FM_REASON_NONE: the end mark has not come */
    bool complete;             /* nothing more will come */
    bool stopped;              /* `take` wants no more */
    bool whole;                /* the answer was no stream, and all of it came */

    struct fm_sse sse;
    struct fm_buf scratch;
    bool halved;                     /* the event has halves of characters */
    struct fm_halves halves;         /* of the text that came last */
    enum fm_remote_part_kind speech; /* the kind of the text that came last */
    struct fm_buf joined;
    struct fm_tally told[FM_READER_KINDS][FM_TALLY_LEVELS];
    enum fm_code code; /* of the first fault */
    struct fm_error *error;

    /* the dialects' own */
    uint32_t calls[FM_READER_CALLS]; /* a checksum of the id of each, the last one last */
    size_t call_count;
    int64_t call_index;  /* chat: of the last call */
    bool call_arguments; /* the last call has some */
    bool call_closed;    /* the last call's arguments are a whole object */
    bool call_quoted;    /* the last call's arguments end inside a string */
    bool call_escaped;   /* the last call's arguments end with a backslash that escapes the next character */
    int64_t call_depth;  /* how many objects and lists are open where the last call's arguments end */
    bool call_open;      /* messages, responses: the open block, or item, is a call */
    size_t items;        /* responses: items that were sent as a whole */
    struct fm_buf block; /* messages: thought of the open block */
    struct fm_buf seal;  /* messages: the signature of the open block */
    bool told_field;     /* chat: the name of the member with reasoning was reported */
    int64_t part_index;  /* responses: of the part that came last */
};

/*
 * `endpoint`, `secrets` and `model` (NULL: none was named) are borrowed until the free. Allocates nothing.
 */
void fm_reader_init(struct fm_remote_reader *reader, const struct fm_endpoint *endpoint, const char *model,
                    const struct fm_secrets *secrets, fm_remote_part_fn *take, void *state);
void fm_reader_free(struct fm_remote_reader *reader);

/*
 * The next bytes of the body, cut anywhere. FM_OK: go on; look at `stopped` and `complete`. Otherwise the server
 * reported an error, or what it sent can't be understood (FM_INTERNAL); the same comes again then.
 */
FM_MUST_USE enum fm_code fm_reader_push(struct fm_remote_reader *reader, const char *bytes, size_t len,
                                        struct fm_error *error);

/* Reads an answer that is no stream: its body, which has come as a whole. Call it in place of fm_reader_push. */
FM_MUST_USE enum fm_code fm_reader_whole(struct fm_remote_reader *reader, const char *body, size_t len,
                                         struct fm_error *error);

/* The body has ended. Without the end mark FM_OVERLOADED, as the server broke off; FM_INTERNAL if it was no stream. */
FM_MUST_USE enum fm_code fm_reader_close(struct fm_remote_reader *reader, struct fm_error *error);

/* ---- what the dialects share; only they use it ---- */

/* Hands a part out; an empty one is left out. */
void fm_reader_emit(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, const char *text, size_t len);

/*
 * Hands out a member that is a string, as fm_reader_emit. False: there is no such member, or it is empty. Anything else
 * but null is a fault.
 */
bool fm_reader_emit_member(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, struct json_object *object,
                           const char *key);

/* Arguments of the last call: a string, or, of servers that do so, the object itself. */
void fm_reader_emit_arguments(struct fm_remote_reader *reader, struct json_object *object, const char *key);

/*
 * A half of a character that waits for the other half goes out without it. Call it before any other part, and at the
 * end.
 */
void fm_reader_end_text(struct fm_remote_reader *reader);

/* ---- reader_whole.c: what comes as a whole, with or without its pieces before ---- */

/* Another item begins, or another part of the same one. */
void fm_reader_begin_item(struct fm_remote_reader *reader);
void fm_reader_begin_part(struct fm_remote_reader *reader);

/* Counts what was handed out. */
void fm_reader_tally(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, const char *text, size_t len);

/*
 * `text` is the whole text of the unit `level`. Hands out the rest of the text that has not come in pieces. False: the
 * pieces are not the beginning of `text`, and nothing is handed out.
 */
bool fm_reader_emit_rest(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, enum fm_tally_level level,
                         const char *text, size_t len);

/*
 * A text in any of the forms in which servers send it: a string, or a list of parts, {"type","text"}. It is appended to
 * `said`; with NULL it is handed out. `kind` is that of a string. Null is nothing; what is of no known form is a fault.
 */
void fm_reader_say(struct fm_remote_reader *reader, struct json_object *value, enum fm_remote_part_kind kind,
                   struct fm_said *said);
void fm_said_init(struct fm_said *said);
void fm_said_free(struct fm_said *said);

/* A state that holds `item` (borrowed). */
void fm_reader_emit_state(struct fm_remote_reader *reader, struct json_object *item);

/* The log probabilities of a list of tokens, in OpenAI's form. */
void fm_reader_emit_logprobs(struct fm_remote_reader *reader, struct json_object *list);

/* A call begins. Without a name it is a fault. */
void fm_reader_begin_call(struct fm_remote_reader *reader, const char *id, const char *name);

/* Whether that is the id of the last call; and of any. */
bool fm_reader_is_last_call(const struct fm_remote_reader *reader, const char *id);
bool fm_reader_knows_call(const struct fm_remote_reader *reader, const char *id);

/* The answer can't be understood: FM_INTERNAL. */
void fm_reader_fail(struct fm_remote_reader *reader, const char *why);

/* The server stopped in the middle of the answer: FM_OVERLOADED, and it may go well at once. */
void fm_reader_break(struct fm_remote_reader *reader, const char *how);

/* The server reports an error. */
void fm_reader_report(struct fm_remote_reader *reader, struct json_object *object);

/* How a dialect whose events have names reads one of them. */
struct fm_reader_row {
    const char *type;
    void (*read)(struct fm_remote_reader *reader, struct json_object *data);
};

/*
 * Reads an event by its row of `rows`, `count` of them: by its member `type`, or else by `name`. An event that has no
 * row is skipped, unless it reports an error.
 */
void fm_reader_dispatch(struct fm_remote_reader *reader, const struct fm_reader_row *rows, size_t count,
                        const char *name, struct json_object *data);

/* A count of tokens that is a member of `object`, into `*count`, if it is there. */
void fm_reader_count(struct json_object *object, const char *key, int64_t *count);

/* A member that is a string; "": there is none. */
const char *fm_reader_string(struct json_object *object, const char *key);

/* Any member; NULL: there is none, it is null, or `object` is no object. */
struct json_object *fm_reader_member(struct json_object *object, const char *key);

/* A member that is an object or a list; NULL: there is none. */
struct json_object *fm_reader_object(struct json_object *object, const char *key);

/* An event of the dialect: its name, and its data, an object. */
void fm_reader_chat(struct fm_remote_reader *reader, const char *name, struct json_object *data);
void fm_reader_responses(struct fm_remote_reader *reader, const char *name, struct json_object *data);
void fm_reader_messages(struct fm_remote_reader *reader, const char *name, struct json_object *data);

/* An answer that is no stream. */
void fm_reader_responses_whole(struct fm_remote_reader *reader, struct json_object *data);
void fm_reader_messages_whole(struct fm_remote_reader *reader, struct json_object *data);

#endif
