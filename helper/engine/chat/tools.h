/*
 * Tools. How a call looks as text is a *tool form*: the model's own, read off its chat template, or ours, which most
 * models have seen in training and which is told in the system message:
 *
 *     <tool_call>
 *     {"name": "get_weather", "arguments": {"city":"Linz"}}
 *     </tool_call>
 *
 * A *tool prompt* is a job's messages in that form, the *tool grammar* holds the answer to it, and the *tool parser*
 * takes the answer apart. Beside each form, a call may be mere JSON (json_call.h). Pure, and without llama.cpp; engine
 * thread only.
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

/* White space of ASCII, which may stand before a call without being told as text. */
bool fm_tool_is_space(char c);

/* How many bytes of such white space `bytes` (`len` of them) begin with. */
size_t fm_tool_space(const char *bytes, size_t len);

/* The length of `bytes` (`len` of them) without such white space at their end. */
size_t fm_tool_trimmed(const char *bytes, size_t len);

/* `bytes` (`len` of them) end with `mark` (`mark_len`; an empty one ends nothing). White space after it does not count. */
bool fm_tool_ends_with(const char *bytes, size_t len, const char *mark, size_t mark_len);

/* ---- form ---- */

/* Our own form. */
#define FM_TOOL_BEGIN         "<tool_call>"
#define FM_TOOL_NAME_KEY      "\n{\"name\": "
#define FM_TOOL_NAME          FM_TOOL_NAME_KEY "\"" /* the name is the inside of a JSON string */
#define FM_TOOL_ARGUMENTS_KEY ", \"arguments\": "
#define FM_TOOL_ARGUMENTS     "\"" FM_TOOL_ARGUMENTS_KEY
#define FM_TOOL_END           "}\n</tool_call>"
#define FM_TOOL_NEXT          "\n" FM_TOOL_BEGIN /* between two calls, with the second one's beginning */

/* A name of a tool that is not there: FM_TOOL_NAME_MAX bytes at most. */
#define FM_TOOL_UNKNOWN_NAME "[a-zA-Z0-9_.:\\/-]{1,64}"
#define FM_TOOL_PLAIN_NAME   "[a-zA-Z0-9_-]{1,64}" /* for forms in which one of the other characters ends a name */

#define FM_TOOL_TRIGGER_MAX   64u /* bytes */
#define FM_TOOL_MARK_CONTROLS 8u
#define FM_TOOL_FORM_TEXTS    4u
#define FM_TOOL_ID_LEN        9u /* bytes of a call's id in a model's form, letters and digits: Mistral's */
#define FM_TOOL_WAYS          8u

/* The part of a mark that differs from call to call. */
enum fm_tool_place { FM_TOOL_NO_PLACE, FM_TOOL_ID_PLACE, FM_TOOL_NUMBER_PLACE };

/* Text that stands around names and arguments. */
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
    size_t place_at; /* where it is in the text: an id of FM_TOOL_ID_LEN or a number with a digit, whatever they are; a
                        byte follows that is in none */
};

/* How many bytes of its text are the mark's place. */
size_t fm_tool_place_len(const struct fm_tool_mark *mark);

/* `c` may be in what stands in the mark's place. */
bool fm_tool_in_place(const struct fm_tool_mark *mark, char c);

/*
 * How arguments stand in tags. Each argument is: the mark `key`, the argument's key, then `raw` and the text of a
 * string, or `json` and any other value as JSON, then `close` and `after`. A string ends at the first `close`. A call
 * without arguments has `none` instead.
 */
struct fm_tool_tags {
    struct fm_tool_mark key; /* empty: the arguments are JSON */
    struct fm_tool_mark raw; /* begins as `json` does, with no byte of a key */
    struct fm_tool_mark json;
    struct fm_tool_mark close; /* a control token, or text that has its first byte only once */
    struct fm_tool_mark after;
    struct fm_tool_mark none; /* white space, or empty; begins with another byte than `key` */
    bool python; /* true is written True */
};

/*
 * A call may be a message whose header tells it from a text. A model writes its header in several ways, where its
 * template has one: each of `heads` may stand before the name, each of `rests` between that and the arguments. It is the
 * first message of the turn, or follows on a text with `between`.
 */
struct fm_tool_header {
    const char *recipient; /* what each head ends with; NULL: the form has no headers */
    struct fm_tool_mark heads[FM_TOOL_WAYS];
    size_t head_count;
    struct fm_tool_mark rests[FM_TOOL_WAYS]; /* each begins with no byte of a name, and has no brace */
    size_t rest_count;
    struct fm_tool_mark between; /* begins with a control token; empty: calls follow on no text */
};

/* A call is `trigger`, `name`, the tool's name, `arguments`, those as JSON, in `tags` or in `notation`, then `end`, or
 * `next` and another name. */
struct fm_tool_form {
    struct fm_tool_mark trigger; /* tells a call from text, and has its first byte only once; empty where a call is
                                    mere JSON, or `opened` */
    struct fm_tool_mark name;
    struct fm_tool_mark arguments; /* `text` begins with no byte of a name, also where the mark is empty */
    struct fm_tool_tags tags;
    struct fm_notation notation;
    struct fm_tool_header header; /* in place of `trigger` to `arguments`, which are as the template has them */
    struct fm_tool_mark next;      /* empty: an answer has one call at most */
    bool opened; /* the prompt ends with `next`, which is text, and no trigger comes: what tells a call from text is a
                    tool's name and the first byte of `arguments`, at the answer's beginning or after `next` */
    struct fm_tool_mark end;
    struct fm_tool_mark text_end;   /* what a text may end with: empty, or begins with a control token, maybe the trigger */
    enum fm_tool_ids {
        FM_TOOL_IDS_GIVEN,   /* the template takes the job's, in calls or not */
        FM_TOOL_IDS_OF_LEN,  /* it has calls with an id of FM_TOOL_ID_LEN, and refuses others */
        FM_TOOL_IDS_BY_NAME, /* it shows one with an outcome, and a call has as a head what such an id is: `id_before`,
                                the name, `id_after` with its number in the message */
    } ids;
    struct fm_tool_mark id_before;
    struct fm_tool_mark id_after;
    bool native;      /* the model's: its template renders calls */
    bool tells_tools; /* the first message, the system's, describes the tools, since the template does not */
    char *texts[FM_TOOL_FORM_TEXTS]; /* what the marks of a native form lie in */
};

extern const struct fm_tool_form fm_tool_form_own;

/* Arguments are JSON, not in tags nor in a notation. */
bool fm_tool_form_has_json(const struct fm_tool_form *form);

/* A call may name a tool that is not there, and is text then, as what follows: no control token stands around its parts. */
bool fm_tool_form_has_unknown(const struct fm_tool_form *form);

/*
 * An answer to `job` may call a tool that is not there also where a control token or an id stands around the call's
 * parts, or after another call. Such a call is read like any other, and reported as text in our form; after a call it
 * is not reported.
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
    /* The bytes of the control token that `text` (`len` of them, at least 1) begins with; 0: none. */
    size_t (*control)(const void *argument, const char *text, size_t len, int32_t *token, bool *ends_turn);
    /* `text` (NUL-terminated) is one token, of whatever kind. */
    bool (*is_token)(const void *argument, const char *text);
    const void *argument;
};

/* What a model writes besides calls. All NUL-terminated and borrowed; "" if the model does not write it. */
struct fm_tool_turn {
    const char *thought;     /* what a thought begins with */
    const char *thought_end; /* up to a text: it ends with `lead` */
    const char *lead;        /* what stands before each text */
};

/*
 * Reads the form off what `from` makes of calls in a conversation. `form->native` is false where it renders none, or
 * calls that are not of this kind: with an id in them that runs into what follows, with arguments in no such way, with
 * nothing in front that stands out from text and no prompt that opens them, otherwise in another place of a
 * conversation, or in turns that begin otherwise than the model is asked to go on, but for `turn`, of which the prompt
 * may open the thought; or where it shows tools only beside a system's message or only without, or none while a call is
 * mere JSON or its arguments are not JSON.
 * FM_INTERNAL: out of memory. Renders nine conversations. Free with fm_tool_form_free; `turn->thought_end` has to live
 * until then.
 */
FM_MUST_USE enum fm_code fm_tool_form_read(const struct fm_tool_template *from, const struct fm_tool_turn *turn,
                                           struct fm_tool_form *form, struct fm_error *error);
void fm_tool_form_free(struct fm_tool_form *form); /* harmless on one that is all zero */

/*
 * The header of calls that `head` stands in before the name, and `rest` after it, where such a one is known. False where
 * none is. Allocates nothing.
 */
bool fm_tool_header_find(const struct fm_tool_template *from, const struct fm_tool_mark *head,
                         const struct fm_tool_mark *rest, struct fm_tool_header *header);

/* Finds the control tokens of the `len` bytes, which have to live as long as `mark`. False: too many, or one that ends
 * the turn. */
bool fm_tool_mark_set(const struct fm_tool_template *from, const char *bytes, size_t len, struct fm_tool_mark *mark);

/*
 * The form for `job`: `native`, or our own where there is none, or where the job has something that it can't say: a
 * name that needs quotes, arguments that are no JSON object, more calls in a turn than it has, text that looks like a
 * control token, an outcome without its call, a format whose texts begin as calls do, and, where arguments are in tags
 * or another notation, a tool that fm_tool_tags_fit or fm_notation_fits does not take. Whether the template takes the
 * conversation, with all its texts and calls, shows when it is rendered.
 */
const struct fm_tool_form *fm_tool_form_for(const struct fm_tool_form *native, const struct fm_tool_template *from,
                                            const struct fm_kit_job *job);

/* How a value stands in tags, by its schema. The text "null" ("None" of Python) is FM_TOOL_RAW_OR_NULL's null. */
enum fm_tool_value { FM_TOOL_NO_VALUE, FM_TOOL_RAW_VALUE, FM_TOOL_RAW_OR_NULL, FM_TOOL_JSON_VALUE };

/* Of `property` of a tool's parameters `root`. FM_TOOL_NO_VALUE: it may be a string or something else, or a string of which
 * a grammar can't hold the text to its schema. */
enum fm_tool_value fm_tool_value_of(const struct fm_tool_tags *tags, struct json_object *root,
                                    struct json_object *property);

/* The tool's arguments are properties with names, each of a value that can stand in tags, and nothing else counts. */
bool fm_tool_tags_fit(const struct fm_tool_tags *tags, const struct fm_tool *tool);

/*
 * The call that the tool's message `index` of `job` answers; `*called` is the index of the message before it that has
 * the call. NULL: there is none.
 */
const struct fm_tool_call *fm_tool_answered(const struct fm_kit_job *job, size_t index, size_t *called);

/* ---- prompt ---- */

struct fm_tool_prompt {
    struct fm_chat chat;              /* of the next two */
    struct fm_chat_message *messages; /* contents are the job's, or in `text` */
    struct fm_chat_tool *tools;       /* of a native form, as the next; parameters, and ids of its own, are in `text` */
    struct fm_chat_call *calls;
    struct fm_chat_image *images;
    size_t image_count;
    struct fm_buf text;
};

/*
 * The messages of `job`, which must outlive them. In our own form they are as any chat template takes them: the tools
 * in the first message, of the system; calls as text of the assistant; their outcomes, several in a row together and
 * with the user's text after them, as a turn of the user. FM_INTERNAL when out of memory; nothing is left to free
 * then.
 */
FM_MUST_USE enum fm_code fm_tool_prompt_init(struct fm_tool_prompt *prompt, const struct fm_kit_job *job,
                                             const struct fm_tool_form *form, struct fm_error *error);
void fm_tool_prompt_free(struct fm_tool_prompt *prompt);

/* ---- parser ---- */

#define FM_TOOL_SPACE_MAX 192 /* bytes of white space that are held back before what may become a call */

enum fm_tool_state {
    FM_TOOL_IN_TEXT,
    FM_TOOL_AT_START, /* the first byte tells calls from text, whatever the text contains */
    FM_TOOL_AT_HEAD,  /* the first bytes tell calls from text: they are a header's, or there is no call */
    FM_TOOL_IN_HEAD,  /* `skip` bytes of the recipient have come */
    FM_TOOL_IN_REST,  /* of a header, up to the arguments' brace */
    FM_TOOL_IN_PLAIN, /* no call follows */
    FM_TOOL_IN_MARK,  /* `skip` more bytes of what stands around names and arguments */
    FM_TOOL_IN_NAME,
    FM_TOOL_AT_UNKNOWN, /* a call of a tool that is not there: what begins its text is held */
    FM_TOOL_IN_ARGUMENTS,
    FM_TOOL_AT_KEY, /* arguments in tags, up to FM_TOOL_IN_VALUE: `skip` bytes of the mark before a key have come */
    FM_TOOL_IN_KEY,
    FM_TOOL_IN_RAW, /* in a string: `skip` bytes of the mark that closes it have come */
    FM_TOOL_IN_VALUE,
    FM_TOOL_IN_NOTATION,
    FM_TOOL_IN_NEXT, /* as long as it is the form's `next`, of which `skip` bytes have come */
    FM_TOOL_AT_JSON_CALL, /* a call as mere JSON, up to FM_TOOL_AFTER_JSON_CALL: at the quote after the name */
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
    const struct fm_tool_mark *mark; /* the mark whose place comes; after_place: its bytes after that; 0: no place */
    size_t after_place;
    const struct fm_tool_mark *head; /* the head of which `skip` bytes have come */
    const struct fm_tool *called; /* the tool of the last call; NULL: no call has begun */
    bool unknown;     /* the call under way is of a tool that is not there */
    bool any_unknown; /* an earlier call was of a tool that is not there */
    bool hold_space;
    struct fm_buf held;       /* text that is not given out */
    size_t given;             /* bytes at the beginning of `held` that are given out */
    size_t matched;           /* of the trigger, or of `next` and a name if the form is opened, at the end of `held` */
    struct fm_json_call json; /* how much of a call as mere JSON has come */
    struct fm_buf name; /* JSON, while it comes; or of an argument; or a word of a notation */
    bool any_key;       /* a key of the call's arguments has come */
    bool maybe_null;    /* `name` has what has come of a text that may be null */
    struct fm_notation_reader notation;
    size_t depth;       /* how many brackets are open in the arguments */
    bool in_string;
    bool escaped;
};

/* FM_TOOL_UNKNOWN: the text that follows is a call of a tool that does not exist. */
enum fm_tool_kind { FM_TOOL_TEXT, FM_TOOL_CALL, FM_TOOL_PART_OF_ARGUMENTS, FM_TOOL_UNKNOWN, FM_TOOL_NO_MEMORY };

struct fm_tool_piece {
    enum fm_tool_kind kind;
    const char *bytes; /* of text and arguments; valid until the next call, or as long as the input */
    size_t len;
    const char *name; /* of a call: the tool's; of an unknown tool, valid as `bytes` */
};

/* For the answer to `job`, whose tools can be called, in `form`. Allocates nothing; both must outlive the parser. */
void fm_tool_parser_init(struct fm_tool_parser *parser, const struct fm_kit_job *job, const struct fm_tool_form *form);
void fm_tool_parser_free(struct fm_tool_parser *parser); /* harmless on one that is all zero */

/*
 * Takes of `*bytes` (`*len`), which are as the tool grammar has them and may be cut anywhere, and moves both on.
 * False: all is taken, and there is nothing to tell.
 * White space right before a call is dropped where no stop string counts, up to FM_TOOL_SPACE_MAX; so is the line of a
 * fence before a call as mere JSON.
 */
FM_MUST_USE bool fm_tool_parser_read(struct fm_tool_parser *parser, const char **bytes, size_t *len,
                                     struct fm_tool_piece *piece);

/* In place of its bytes, where the form's trigger is a control token: those may as well be text. True where it counts
 * as the trigger, with the text before it, which may be empty; else the token is read as any other. */
FM_MUST_USE bool fm_tool_parser_read_trigger(struct fm_tool_parser *parser, int32_t token, struct fm_tool_piece *piece);

/*
 * The answer ends: gives out the text that is held back, if there is any. One that is `cut` may have ended in a mark:
 * what could be the beginning of one is dropped then.
 */
FM_MUST_USE bool fm_tool_parser_end(struct fm_tool_parser *parser, bool cut, struct fm_tool_piece *piece);

#endif
