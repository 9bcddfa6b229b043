/*
 * A streamed answer, in an endpoint's dialect: bytes in, what the answer consists of out. Pure.
 *
 * The end of an answer is its end mark, never the end of the connection: without the mark nobody knows what is missing.
 */
#ifndef FM_ENGINE_REMOTE_READER_H
#define FM_ENGINE_REMOTE_READER_H

#include "engine/remote/config.h"
#include "engine/remote/request.h"
#include "engine/remote/sse.h"

enum fm_remote_part_kind {
    FM_PART_TEXT,
    FM_PART_REASONING,
    FM_PART_REFUSAL,
    FM_PART_CALL,      /* a call begins: `text` is the name */
    FM_PART_ARGUMENTS, /* of the last call */
    FM_PART_STATE,     /* for the next request of this conversation */
    FM_PART_LOGPROBS,  /* of a token of the text that comes next: `token` */
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

#define FM_READER_CALLS FM_KIT_TOOLS_MAX

struct fm_remote_reader {
    const struct fm_endpoint *endpoint;
    const struct fm_secrets *secrets;
    char maker[FM_MAKER_SIZE];
    fm_remote_part_fn *take;
    void *state;
    struct fm_kit_usage usage; /* as far as the server has told it */
    enum fm_reason reason;     /* FM_REASON_NONE: the end mark has not come */
    bool complete;             /* nothing more will come */
    bool stopped;              /* `take` said so */

    struct fm_sse sse;
    struct fm_buf scratch;
    enum fm_code code; /* of the first fault */
    struct fm_error *error;

    /* the dialects' own */
    uint32_t calls[FM_READER_CALLS]; /* a checksum of the id of each, the last one last */
    size_t call_count;
    int64_t call_index;  /* chat: of the last call */
    bool call_arguments; /* the last call has some */
    bool call_open;      /* messages: the open block is a call */
    struct fm_buf block; /* messages: thought of the open block */
    struct fm_buf seal;  /* messages: its signature */
    bool told_field;     /* chat: the name of the member with reasoning was told */
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

/* The body has ended. FM_INTERNAL unless the end mark was there. */
FM_MUST_USE enum fm_code fm_reader_close(struct fm_remote_reader *reader, struct fm_error *error);

/* ---- what the dialects share; only they use it ---- */

/* Hands a part out; an empty one is left out. */
void fm_reader_emit(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, const char *text, size_t len);

/* The same of a member that is a string. False: there is none, or it is empty. */
bool fm_reader_emit_member(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, struct json_object *object,
                           const char *key);

/* A state that holds `item` (borrowed). */
void fm_reader_emit_state(struct fm_remote_reader *reader, struct json_object *item);

/* The log probabilities of a list of tokens, in OpenAI's form. */
void fm_reader_emit_logprobs(struct fm_remote_reader *reader, struct json_object *list);

/* A call begins. */
void fm_reader_begin_call(struct fm_remote_reader *reader, const char *id, const char *name);

/* Whether that is the id of the last call; and of any. */
bool fm_reader_is_last_call(const struct fm_remote_reader *reader, const char *id);
bool fm_reader_knows_call(const struct fm_remote_reader *reader, const char *id);

/* The answer can't be understood: FM_INTERNAL. */
void fm_reader_fail(struct fm_remote_reader *reader, const char *why);

/* The server reports an error. */
void fm_reader_report(struct fm_remote_reader *reader, struct json_object *object);

/* How a dialect whose events have names reads one of them. */
struct fm_reader_row {
    const char *type;
    void (*read)(struct fm_remote_reader *reader, struct json_object *data);
};

/* Reads an event by its row of `rows`, `count` of them: by its member `type`, or else by `name`. One that has no row is
 * skipped, unless it reports an error. */
void fm_reader_dispatch(struct fm_remote_reader *reader, const struct fm_reader_row *rows, size_t count,
                        const char *name, struct json_object *data);

/* A count of tokens that is a member of `object`, into `*count`, if it is there. */
void fm_reader_count(struct json_object *object, const char *key, int64_t *count);

/* A member that is a string; "": there is none. */
const char *fm_reader_string(struct json_object *object, const char *key);

/* A member that is an object or a list; NULL: there is none. */
struct json_object *fm_reader_object(struct json_object *object, const char *key);

/* An event of the dialect: its name, and its data, an object. */
void fm_reader_chat(struct fm_remote_reader *reader, const char *name, struct json_object *data);
void fm_reader_responses(struct fm_remote_reader *reader, const char *name, struct json_object *data);
void fm_reader_messages(struct fm_remote_reader *reader, const char *name, struct json_object *data);

#endif
