/*
 * Reads a streamed answer in an endpoint's dialect: it takes bytes, and hands out the parts of the answer. Pure.
 *
 * An answer ends with its end mark, never with the end of the connection. Without the mark nobody knows what is
 * missing.
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
    FM_REMOTE_ARGUMENTS, /* a piece of the arguments of the last call */
    FM_REMOTE_STATE,     /* a state for the next request of this conversation */
    FM_REMOTE_LOGPROBS,  /* the log probabilities of a token (`token`) of the text that comes next */
};

/* A part of an answer. The callback borrows it for the call. */
struct fm_remote_part {
    enum fm_remote_part_kind kind;
    const char *text;
    size_t len;
    const struct fm_token_logprobs *token;
};

/* Takes a part. False: the callback wants no more parts. */
typedef bool fm_remote_part_fn(void *state, const struct fm_remote_part *part);

#define FM_READER_CALLS FM_TOOLS_MAX
#define FM_READER_KINDS (FM_REMOTE_REFUSAL + 1) /* kinds of parts that are texts */

/* A checksum of a text that was handed out. It shows whether another text begins with the same bytes. */
struct fm_tally {
    uint32_t sum;
    size_t len;
};

/*
 * The unit of the answer that a checksum covers. Servers repeat each unit as a whole at its end, or only send it whole.
 */
enum fm_tally_level { FM_TALLY_PART, FM_TALLY_ITEM, FM_TALLY_ANSWER, FM_TALLY_LEVELS };

/* The texts of a whole item, each kind on its own. */
struct fm_said {
    struct fm_buf texts[FM_READER_KINDS]; /* index: FM_REMOTE_TEXT, FM_REMOTE_REASONING or FM_REMOTE_REFUSAL */
};

struct fm_remote_reader {
    const struct fm_endpoint *endpoint;
    const struct fm_secrets *secrets;
    char maker[FM_MAKER_SIZE];
    fm_remote_part_fn *take;
    void *state;
    struct fm_kit_usage usage; /* as far as the server has reported it */
    enum fm_reason reason;     /* FM_REASON_NONE: the end mark has not come */
    bool complete;             /* nothing more will come */
    bool stopped;              /* `take` wants no more */
    bool whole;                /* the answer was no stream, and all of it came */

    struct fm_sse sse;
    struct fm_buf scratch;
    bool halved;                     /* the event has halves of characters */
    struct fm_halves halves;         /* the pending half, if any, of the text that came last */
    enum fm_remote_part_kind speech; /* the kind of the text that came last */
    struct fm_buf joined;
    struct fm_tally told[FM_READER_KINDS][FM_TALLY_LEVELS];
    enum fm_code code; /* the code of the first fault */
    struct fm_error *error;

    /* members for single dialects */
    uint32_t calls[FM_READER_CALLS]; /* a checksum of each call's id, in order */
    size_t call_count;
    int64_t call_index;  /* chat: index of the last call */
    bool call_arguments; /* the last call has arguments */
    bool call_closed;    /* the last call's arguments are a whole object */
    bool call_quoted;    /* the last call's arguments end inside a string */
    bool call_escaped;   /* the last call's arguments end with a backslash that escapes the next character */
    int64_t call_depth;  /* how many objects and lists are open where the last call's arguments end */
    bool call_open;      /* messages, responses: the open block, or item, is a call */
    size_t items;        /* responses: items that were sent as a whole */
    struct fm_buf block; /* messages: the reasoning of the open block */
    struct fm_buf seal;  /* messages: the signature of the open block */
    bool told_field;     /* chat: the name of the reasoning member was reported */
    int64_t part_index;  /* responses: index of the part that came last */
};

/*
 * `endpoint`, `secrets` and `model` (NULL: no model was named) are borrowed until the reader is freed. Allocates
 * nothing.
 */
void fm_reader_init(struct fm_remote_reader *reader, const struct fm_endpoint *endpoint, const char *model,
                    const struct fm_secrets *secrets, fm_remote_part_fn *take, void *state);
void fm_reader_free(struct fm_remote_reader *reader);

/*
 * Takes the next bytes of the body, cut anywhere. FM_OK: go on, but look at `stopped` and `complete`. Any other code:
 * the server reported an error, or it sent something that can't be understood (FM_INTERNAL). Later calls return the
 * same error.
 */
FM_MUST_USE enum fm_code fm_reader_push(struct fm_remote_reader *reader, const char *bytes, size_t len,
                                        struct fm_error *error);

/* Reads an answer that is no stream: `body` is all of it. Call it in place of fm_reader_push. */
FM_MUST_USE enum fm_code fm_reader_whole(struct fm_remote_reader *reader, const char *body, size_t len,
                                         struct fm_error *error);

/*
 * Call it when the body has ended. Without the end mark: FM_OVERLOADED if the stream broke off, FM_INTERNAL if it was
 * no stream.
 */
FM_MUST_USE enum fm_code fm_reader_close(struct fm_remote_reader *reader, struct fm_error *error);

/* ---- shared by the dialects; only they use it ---- */

/* Hands out a part, unless it is empty. */
void fm_reader_emit(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, const char *text, size_t len);

/*
 * Hands out a string member, as fm_reader_emit. False: the member is missing or empty. Any other value but null is a
 * fault.
 */
bool fm_reader_emit_member(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, struct json_object *object,
                           const char *key);

/* Hands out arguments of the last call: a string, or the object itself, which some servers send. */
void fm_reader_emit_arguments(struct fm_remote_reader *reader, struct json_object *object, const char *key);

/* Hands out a pending half of a character as U+FFFD. Call it before any other part, and at the end. */
void fm_reader_end_text(struct fm_remote_reader *reader);

/* ---- reader_whole.c: texts that come as a whole, with or without pieces before ---- */

/* Call it when another item begins, or another part of the same item. */
void fm_reader_begin_item(struct fm_remote_reader *reader);
void fm_reader_begin_part(struct fm_remote_reader *reader);

/* Counts a text that was handed out. */
void fm_reader_tally(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, const char *text, size_t len);

/*
 * `text` is the whole text of the unit `level`. Hands out the rest of the text that has not come in pieces. False: the
 * pieces are not the beginning of `text`, and nothing is handed out.
 */
bool fm_reader_emit_rest(struct fm_remote_reader *reader, enum fm_remote_part_kind kind, enum fm_tally_level level,
                         const char *text, size_t len);

/*
 * Reads a text in any of the forms in which servers send it: a string, or a list of parts {"type","text"}. The text is
 * appended to `said`, or handed out if `said` is NULL. `kind` is the kind of a plain string. Null stands for no text.
 * Any unknown form is a fault.
 */
void fm_reader_say(struct fm_remote_reader *reader, struct json_object *value, enum fm_remote_part_kind kind,
                   struct fm_said *said);
void fm_said_init(struct fm_said *said);
void fm_said_free(struct fm_said *said);

/* Hands out a state that holds `item` (borrowed). */
void fm_reader_emit_state(struct fm_remote_reader *reader, struct json_object *item);

/* Reads the log probabilities of a list of tokens, in OpenAI's form. */
void fm_reader_emit_logprobs(struct fm_remote_reader *reader, struct json_object *list);

/* Begins a call. A call without a name is a fault. */
void fm_reader_begin_call(struct fm_remote_reader *reader, const char *id, const char *name);

/* Whether `id` is the id of the last call, or of any call. */
bool fm_reader_is_last_call(const struct fm_remote_reader *reader, const char *id);
bool fm_reader_knows_call(const struct fm_remote_reader *reader, const char *id);

/* Fails the answer because it can't be understood: FM_INTERNAL. */
void fm_reader_fail(struct fm_remote_reader *reader, const char *why);

/* Fails the answer because the server stopped in the middle of it: FM_OVERLOADED. An immediate retry may succeed. */
void fm_reader_break(struct fm_remote_reader *reader, const char *how);

/* Fails the answer because the server reports an error. */
void fm_reader_report(struct fm_remote_reader *reader, struct json_object *object);

/* A row for a dialect whose events have names: how one event is read. */
struct fm_reader_row {
    const char *type;
    void (*read)(struct fm_remote_reader *reader, struct json_object *data);
};

/*
 * Reads an event by its row of `rows` (`count` rows). The member `type` selects the row; without it, `name` does. An
 * event without a row is skipped, unless it reports an error.
 */
void fm_reader_dispatch(struct fm_remote_reader *reader, const struct fm_reader_row *rows, size_t count,
                        const char *name, struct json_object *data);

/* Reads a token count, a member of `object`, into `*count` if it is there. */
void fm_reader_count(struct json_object *object, const char *key, int64_t *count);

/* Returns a string member; "": there is none. */
const char *fm_reader_string(struct json_object *object, const char *key);

/* Returns any member; NULL: it is missing or null, or `object` is no object. */
struct json_object *fm_reader_member(struct json_object *object, const char *key);

/* Returns a member that is an object or a list; NULL: there is none. */
struct json_object *fm_reader_object(struct json_object *object, const char *key);

/* Reads an event of the dialect: `name` is its name, and `data` is an object. */
void fm_reader_chat(struct fm_remote_reader *reader, const char *name, struct json_object *data);
void fm_reader_responses(struct fm_remote_reader *reader, const char *name, struct json_object *data);
void fm_reader_messages(struct fm_remote_reader *reader, const char *name, struct json_object *data);

/* Reads an answer that is no stream. */
void fm_reader_responses_whole(struct fm_remote_reader *reader, struct json_object *data);
void fm_reader_messages_whole(struct fm_remote_reader *reader, struct json_object *data);

#endif
