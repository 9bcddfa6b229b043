/*
 * Tools. A *tool form* says how a call looks as text. It is the model's own form, read off its chat template, or our
 * form. Most models have seen our form in training, and the system message explains it:
 *
 *     <tool_call>
 *     {"name": "get_weather", "arguments": {"city":"Linz"}}
 *     </tool_call>
 *
 * A *tool prompt* is a job's messages in the tool form. The *tool grammar* makes the answer follow the form, and the
 * *tool parser* splits the answer into text and calls. With each form, a call may also be plain JSON (json_call.h).
 * Pure, and without llama.cpp; engine thread only.
 */
#ifndef FM_ENGINE_CHAT_TOOLS_H
#define FM_ENGINE_CHAT_TOOLS_H

#include "engine/chat/chat.h"
#include "engine/chat/json_call.h"
#include "engine/chat/notation.h"
#include "engine/kit/kit.h"


/* True when the answer to `job` may call a tool. */
bool fm_tools_callable(const struct fm_kit_job *job);

/* True when the answer to `job` may be any text, with or without calls: there is no format, and no call is required. */
bool fm_tools_allow_text(const struct fm_kit_job *job);

/* Whether `c` is ASCII white space, which may come before a call without being passed on as text. */
bool fm_tool_is_space(char c);

/* The number of bytes of ASCII white space at the beginning of `bytes` (`len` bytes). */
size_t fm_tool_space(const char *bytes, size_t len);

/* The length of `bytes` (`len` bytes) without ASCII white space at their end. */
size_t fm_tool_trimmed(const char *bytes, size_t len);

/*
 * True if `bytes` (`len` bytes) end with `mark` (`mark_len` bytes, not empty). White space after the mark does not
 * count.
 */
bool fm_tool_ends_with(const char *bytes, size_t len, const char *mark, size_t mark_len);

/* ---- form ---- */

/* Our own form. */
#define FM_TOOL_BEGIN         "<tool_call>"
#define FM_TOOL_NAME_KEY      "\n{\"name\": "
#define FM_TOOL_NAME          FM_TOOL_NAME_KEY "\"" /* the name is the inside of a JSON string */
#define FM_TOOL_ARGUMENTS_KEY ", \"arguments\": "
#define FM_TOOL_ARGUMENTS     "\"" FM_TOOL_ARGUMENTS_KEY
#define FM_TOOL_END           "}\n</tool_call>"
#define FM_TOOL_NEXT          "\n" FM_TOOL_BEGIN /* the text between two calls, with the beginning of the second call */

/* The name of a tool that does not exist, at most FM_TOOL_NAME_MAX bytes. */
#define FM_TOOL_UNKNOWN_NAME "[a-zA-Z0-9_.:\\/-]{1,64}"
/* the name's characters in forms in which one of the other characters ends a name */
#define FM_TOOL_PLAIN_NAME   "[a-zA-Z0-9_-]{1,64}"

#define FM_TOOL_TRIGGER_MAX   64u /* bytes */
#define FM_TOOL_MARK_CONTROLS 8u
#define FM_TOOL_FORM_TEXTS    4u
/* bytes of a call's id in a model's form, letters and digits; Mistral's models want this length */
#define FM_TOOL_ID_LEN        9u
#define FM_TOOL_WAYS          8u

/* The part of a mark that differs from call to call. */
enum fm_tool_place { FM_TOOL_NO_PLACE, FM_TOOL_ID_PLACE, FM_TOOL_NUMBER_PLACE };

/* Text around names and arguments. */
struct fm_tool_mark {
    const char *text; /* not NUL-terminated; control tokens are written as in the vocabulary */
    size_t len;
    struct fm_tool_control { /* in order */
        size_t at;
        size_t len;
        int32_t token;
    } controls[FM_TOOL_MARK_CONTROLS];
    size_t control_count;
    enum fm_tool_place place;
    /*
     * Offset of the place. `text` has an id of FM_TOOL_ID_LEN bytes or a number of one digit there; an answer may have
     * any id or number. The byte after the place can't be a part of it.
     */
    size_t place_at;
};

/* The number of bytes of the mark's text that are its place. */
size_t fm_tool_place_len(const struct fm_tool_mark *mark);

/* True if `c` may be a byte of the id or the number in the mark's place. */
bool fm_tool_in_place(const struct fm_tool_mark *mark, char c);

/*
 * How arguments are written in tags. Each argument is: the mark `key`, the argument's key, then `raw` and the text of a
 * string, or `json` and any other value as JSON, then `close` and `after`. A string ends at the first `close`. A call
 * without arguments has `none` instead.
 */
struct fm_tool_tags {
    struct fm_tool_mark key; /* empty: the arguments are JSON */
    struct fm_tool_mark raw; /* has the same first byte as `json`, which can't be a byte of a key */
    struct fm_tool_mark json;
    struct fm_tool_mark close; /* a control token, or text whose first byte does not come again in it */
    struct fm_tool_mark after;
    struct fm_tool_mark none; /* white space, or empty; its first byte differs from that of `key` */
    bool python; /* true is written True */
};

/*
 * A call may be a message with a header, which distinguishes the call from a text. The template has one way to write
 * the header, but the model has several: each of `heads` may come before the name, and each of `rests` between the name
 * and the arguments. The call is the first message of the turn, or follows a text, with `between` after the text.
 */
struct fm_tool_header {
    const char *recipient; /* what each head ends with; NULL: the form has no headers */
    struct fm_tool_mark heads[FM_TOOL_WAYS];
    size_t head_count;
    struct fm_tool_mark rests[FM_TOOL_WAYS]; /* the first byte of each can't be a byte of a name; none has a brace */
    size_t rest_count;
    struct fm_tool_mark between; /* begins with a control token; empty: a call can't follow a text */
};

/*
 * A call is `trigger`, `name`, the tool's name, `arguments`, the arguments as JSON, in `tags` or in `notation`, and
 * then `end`, or `next` and another name.
 */
struct fm_tool_form {
    /*
     * Distinguishes a call from text. Its first byte does not come again in it. Empty if a call is plain JSON, or if
     * `opened`.
     */
    struct fm_tool_mark trigger;
    struct fm_tool_mark name;
    struct fm_tool_mark arguments; /* the first byte at `text` can't be a byte of a name, even if the mark is empty */
    struct fm_tool_tags tags;
    struct fm_notation notation;
    /* replaces the members from `trigger` to `arguments`, which have the template's way */
    struct fm_tool_header header;
    struct fm_tool_mark next;      /* empty: an answer has at most one call */
    /*
     * The prompt ends with `next`, which is text, and there is no trigger. A tool's name and the first byte of
     * `arguments` distinguish a call from text, at the answer's beginning or after `next`.
     */
    bool opened;
    struct fm_tool_mark end;
    /* a text may end with this mark: empty, or begins with a control token, maybe the trigger */
    struct fm_tool_mark text_end;
    enum fm_tool_ids {
        FM_TOOL_IDS_GIVEN,   /* the template takes the ids of the job, whether it shows them or not */
        FM_TOOL_IDS_OF_LEN,  /* the template only takes calls whose id has FM_TOOL_ID_LEN bytes */
        /*
         * The template shows an id with an outcome, and the text of this id before a call: `id_before`, the name, and
         * `id_after` with the call's number in the message.
         */
        FM_TOOL_IDS_BY_NAME,
    } ids;
    struct fm_tool_mark id_before;
    struct fm_tool_mark id_after;
    bool native;      /* the form is the model's: its template renders calls */
    bool tells_tools; /* the first message, a system message, describes the tools, because the template does not */
    char *texts[FM_TOOL_FORM_TEXTS]; /* owned: the texts that contain the marks of a native form */
};

extern const struct fm_tool_form fm_tool_form_own;

/* True if arguments are JSON, neither in tags nor in a notation. */
bool fm_tool_form_has_json(const struct fm_tool_form *form);

/*
 * True if a call may name a tool that does not exist. Such a call is text, and so is everything after it. No control
 * token is around the parts of a call.
 */
bool fm_tool_form_has_unknown(const struct fm_tool_form *form);

/*
 * True if an answer to `job` may call a tool that does not exist even with a control token or an id around the call's
 * parts, or after another call. Such a call is read like any other call, and reported as text in our form. After a call
 * it is not reported.
 */
bool fm_tool_form_retells_unknown(const struct fm_tool_form *form, const struct fm_kit_job *job);

/* A chat template with its vocabulary. */
struct fm_tool_template {
    /*
     * Renders `chat` as a prompt. The caller frees `*text` (`*len` bytes, with a NUL after them) with free().
     * FM_INVALID_REQUEST: the template refuses these messages. Nothing is left to free after a failure.
     */
    enum fm_code (*render)(const void *argument, const struct fm_chat *chat, char **text, size_t *len,
                           struct fm_error *error);
    /* The length of the control token at the beginning of `text` (`len` bytes, at least 1); 0: there is none. */
    size_t (*control)(const void *argument, const char *text, size_t len, int32_t *token, bool *ends_turn);
    /* True if `text` (NUL-terminated) is one token, of any kind. */
    bool (*is_token)(const void *argument, const char *text);
    const void *argument;
};

/*
 * The marks that a model writes besides calls. All are NUL-terminated and borrowed; "": the model does not write this
 * mark.
 */
struct fm_tool_turn {
    const char *thought;     /* the beginning of a thought */
    const char *thought_end; /* from the end of a thought to a text: ends with `lead` */
    const char *lead;        /* comes before each text */
};

/*
 * Reads the form off the text that `from` renders for calls in a conversation. `form->native` becomes false if the
 * template renders no calls, or calls that this form can't describe:
 * - an id in a call is not clearly separated from the text after it;
 * - arguments are written in an unknown way;
 * - no text before a call distinguishes it from text, and the prompt does not open a call;
 * - calls look different at another place of the conversation;
 * - turns do not begin as the prompt asks the model to continue (the prompt may open the thought of `turn`);
 * - tools are shown only with a system message, or only without;
 * - no tools are shown, and a call is plain JSON or its arguments are not JSON.
 * FM_INTERNAL: out of memory. Renders nine conversations. Free it with fm_tool_form_free; `turn->thought_end` must live
 * until then.
 */
FM_MUST_USE enum fm_code fm_tool_form_read(const struct fm_tool_template *from, const struct fm_tool_turn *turn,
                                           struct fm_tool_form *form, struct fm_error *error);
void fm_tool_form_free(struct fm_tool_form *form); /* harmless on one that is all zero */

/*
 * Finds the known header of calls that has `head` before the name and `rest` after the name. False if no such header is
 * known. Allocates nothing.
 */
bool fm_tool_header_find(const struct fm_tool_template *from, const struct fm_tool_mark *head,
                         const struct fm_tool_mark *rest, struct fm_tool_header *header);

/*
 * Makes a mark of `len` bytes, which must live as long as `mark`, and finds their control tokens. False if there are
 * too many, or if one of them ends the turn.
 */
bool fm_tool_mark_set(const struct fm_tool_template *from, const char *bytes, size_t len, struct fm_tool_mark *mark);

/*
 * The form for `job`: `native`, or our own. Our own form is used if the model has no form, or if the job has something
 * that its form can't express: a name that needs quotes, arguments that are not a JSON object, more calls in a turn
 * than the form allows, text that looks like a control token, an outcome without its call, or a format whose texts
 * begin as calls do. The same holds if arguments are in tags or another notation and fm_tool_tags_fit or
 * fm_notation_fits is false for a tool. Only rendering shows whether the template takes the conversation, with all its
 * texts and calls.
 */
const struct fm_tool_form *fm_tool_form_for(const struct fm_tool_form *native, const struct fm_tool_template *from,
                                            const struct fm_kit_job *job);

/*
 * How a value is written in tags, by its schema. With FM_TOOL_RAW_OR_NULL, the text "null" (or Python's "None") is
 * null.
 */
enum fm_tool_value { FM_TOOL_NO_VALUE, FM_TOOL_RAW_VALUE, FM_TOOL_RAW_OR_NULL, FM_TOOL_JSON_VALUE };

/*
 * How the value of `property` in a tool's parameters `root` is written. FM_TOOL_NO_VALUE: the value may be a string or
 * of another type, or a grammar can't make the string's text follow the schema.
 */
enum fm_tool_value fm_tool_value_of(const struct fm_tool_tags *tags, struct json_object *root,
                                    struct json_object *property);

/*
 * True if the tool's arguments are named properties, the value of each can be written in tags, and the schema limits
 * nothing else.
 */
bool fm_tool_tags_fit(const struct fm_tool_tags *tags, const struct fm_tool *tool);

/*
 * The call that the message `index` of `job`, a tool's message, answers. `*called` becomes the index of the earlier
 * message with the call. NULL: there is no such call.
 */
const struct fm_tool_call *fm_tool_answered(const struct fm_kit_job *job, size_t index, size_t *called);

/* ---- prompt ---- */

struct fm_tool_prompt {
    struct fm_chat chat;              /* points to `messages` and `tools` */
    struct fm_chat_message *messages; /* the contents belong to the job, or are in `text` */
    /* `tools` and `calls` are for a native form; their parameters and new ids are in `text` */
    struct fm_chat_tool *tools;
    struct fm_chat_call *calls;
    struct fm_chat_image *images;
    size_t image_count;
    struct fm_buf text;
};

/*
 * Makes the messages of `job`, which must outlive `prompt`. In our own form, any chat template takes the messages: the
 * first message, a system message, describes the tools; calls are text of the assistant; outcomes are a turn of the
 * user, which has several outcomes in a row and the user's text after them. FM_INTERNAL when out of memory; nothing is
 * left to free then.
 */
FM_MUST_USE enum fm_code fm_tool_prompt_init(struct fm_tool_prompt *prompt, const struct fm_kit_job *job,
                                             const struct fm_tool_form *form, struct fm_error *error);
void fm_tool_prompt_free(struct fm_tool_prompt *prompt);

/* ---- parser ---- */

#define FM_TOOL_SPACE_MAX 192 /* bytes of white space that are held back before text that may become a call */

enum fm_tool_state {
    FM_TOOL_IN_TEXT,
    FM_TOOL_AT_START, /* the first byte distinguishes calls from text, whatever the text contains */
    FM_TOOL_AT_HEAD,  /* the first bytes distinguish calls from text: they are a header, or there is no call */
    FM_TOOL_IN_HEAD,  /* `skip` bytes of the recipient have come */
    FM_TOOL_IN_REST,  /* in the rest of a header, up to the brace of the arguments */
    FM_TOOL_IN_PLAIN, /* no call follows */
    FM_TOOL_IN_MARK,  /* `skip` more bytes of the text around names and arguments will come */
    FM_TOOL_IN_NAME,
    FM_TOOL_AT_UNKNOWN, /* a call of a tool that does not exist: the beginning of its text is held */
    FM_TOOL_IN_ARGUMENTS,
    FM_TOOL_AT_KEY, /* this and the next three: arguments in tags. `skip` bytes of the mark before a key have come */
    FM_TOOL_IN_KEY,
    FM_TOOL_IN_RAW, /* in a string: `skip` bytes of the mark that closes the string have come */
    FM_TOOL_IN_VALUE,
    FM_TOOL_IN_NOTATION,
    FM_TOOL_IN_NEXT, /* `skip` bytes of the form's `next` have come */
    FM_TOOL_AT_JSON_CALL, /* this and the next two: a call as plain JSON. At the quote after the name */
    FM_TOOL_AFTER_JSON_NAME,
    FM_TOOL_AFTER_JSON_CALL,
    FM_TOOL_AT_END,
};

struct fm_tool_parser {
    const struct fm_kit_job *job;
    const struct fm_tool_form *form;
    enum fm_tool_state state;
    enum fm_tool_state next; /* after the mark */
    size_t skip;
    /* the mark whose place comes next; after_place: the mark's bytes after the place; 0: no place */
    const struct fm_tool_mark *mark;
    size_t after_place;
    const struct fm_tool_mark *head; /* the head of which `skip` bytes have come */
    const struct fm_tool *called; /* the tool of the last call; NULL: no call has begun */
    bool unknown;     /* the present call names a tool that does not exist */
    bool any_unknown; /* an earlier call named a tool that does not exist */
    bool hold_space;
    struct fm_buf held;       /* text that is not yet passed on */
    size_t given;             /* bytes at the beginning of `held` that were passed on */
    /* how many bytes at the end of `held` match the trigger, or `next` and a name if the form is opened */
    size_t matched;
    struct fm_json_call json; /* how much of a call as plain JSON has come */
    /* the tool's name as JSON, as far as it has come; or an argument's key; or a word of a notation */
    struct fm_buf name;
    bool any_key;       /* a key of the call's arguments has come */
    bool maybe_null;    /* `name` has the part that has come of a text that may be null */
    struct fm_notation_reader notation;
    size_t depth;       /* how many brackets are open in the arguments */
    bool in_string;
    bool escaped;
};

/* FM_TOOL_UNKNOWN: the text that follows is a call of a tool that does not exist. */
enum fm_tool_kind { FM_TOOL_TEXT, FM_TOOL_CALL, FM_TOOL_PART_OF_ARGUMENTS, FM_TOOL_UNKNOWN, FM_TOOL_NO_MEMORY };

struct fm_tool_piece {
    enum fm_tool_kind kind;
    const char *bytes; /* the text, or a part of the arguments; valid until the next call, or as long as the input */
    size_t len;
    const char *name; /* the name of the called tool; if that is unknown, valid as long as `bytes` */
};

/*
 * Makes a parser of the answer to `job`, whose tools can be called, in `form`. Allocates nothing. `job` and `form` must
 * outlive the parser.
 */
void fm_tool_parser_init(struct fm_tool_parser *parser, const struct fm_kit_job *job, const struct fm_tool_form *form);
void fm_tool_parser_free(struct fm_tool_parser *parser); /* harmless on one that is all zero */

/*
 * Takes some of the bytes `*bytes` (`*len`), and moves both on. The bytes follow the tool grammar and may be cut
 * anywhere.
 * False: all bytes are taken, and there is nothing to report.
 * White space directly before a call is dropped, up to FM_TOOL_SPACE_MAX bytes, if the job has no stop strings. The
 * line of a fence before a call as plain JSON is dropped too.
 */
FM_MUST_USE bool fm_tool_parser_read(struct fm_tool_parser *parser, const char **bytes, size_t *len,
                                     struct fm_tool_piece *piece);

/*
 * Call it with a control token, before its bytes are read: the same bytes could also be text. True if the token counts
 * as the trigger; `piece` is then the text before it, which may be empty. False: read the token's bytes like those of
 * any other token.
 */
FM_MUST_USE bool fm_tool_parser_read_trigger(struct fm_tool_parser *parser, int32_t token, struct fm_tool_piece *piece);

/*
 * Call it when the answer has ended: passes on the text that is held back, if there is any. If the answer was `cut`, it
 * may have ended inside a mark, so bytes that could be the beginning of a mark are dropped.
 */
FM_MUST_USE bool fm_tool_parser_end(struct fm_tool_parser *parser, bool cut, struct fm_tool_piece *piece);

#endif
