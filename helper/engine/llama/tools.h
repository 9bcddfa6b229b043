/*
 * Tools, for any model: they are told in the system message, and calls are text of our own form, which most models have
 * seen in training:
 *
 *     <tool_call>
 *     {"name": "get_weather", "arguments": {"city":"Linz"}}
 *     </tool_call>
 *
 * A *tool prompt* is a job's messages in that form, the *tool grammar* holds the answer to it, and the *tool parser*
 * takes the answer apart. Pure, and without llama.cpp; engine thread only.
 */
#ifndef FM_ENGINE_LLAMA_TOOLS_H
#define FM_ENGINE_LLAMA_TOOLS_H

#include "engine/kit/kit.h"
#include "engine/llama/bridge.h"

/* A call is these, with the name as a JSON string behind FM_TOOL_NAME, and the arguments before FM_TOOL_END. */
#define FM_TOOL_BEGIN     "<tool_call>"
#define FM_TOOL_NAME      "\n{\"name\": "
#define FM_TOOL_ARGUMENTS ", \"arguments\": "
#define FM_TOOL_END       "}\n</tool_call>"
#define FM_TOOL_NEXT      "\n" FM_TOOL_BEGIN /* between two calls, with the second one's beginning */

#define FM_TOOL_CALLS_MAX 128 /* in an answer: ENGINE.md, Tools */

/* True when the answer to `job` may call a tool. */
bool fm_tools_callable(const struct fm_job *job);

/* ---- prompt ---- */

struct fm_tool_prompt {
    struct fm_chat_message *messages; /* contents are the job's, or in `text` */
    size_t count;
    struct fm_buf text;
};

/*
 * The messages of `job`, which must outlive them, as any chat template takes them: the tools in the first message, of
 * the system; calls as text of the assistant; their outcomes, several in a row together, as a turn of the user.
 * FM_INTERNAL when out of memory; nothing is left to free then.
 */
FM_MUST_USE enum fm_code fm_tool_prompt_init(struct fm_tool_prompt *prompt, const struct fm_job *job,
                                             struct fm_error *error);
void fm_tool_prompt_free(struct fm_tool_prompt *prompt);

/* ---- grammar ---- */

/*
 * Appends llguidance's Lark for the answer to `job`, whose tools can be called. `schema` (`len` bytes, as fm_schema's
 * guide) is what a text has to match; NULL: any text. FM_INVALID_REQUEST: a tool's schema can't be enforced, and the
 * param is its path, from "tools[" on. FM_INTERNAL: out of memory.
 */
FM_MUST_USE enum fm_code fm_tool_grammar(const struct fm_job *job, const char *schema, size_t len, struct fm_buf *lark,
                                         struct fm_error *error);

/* ---- parser ---- */

#define FM_TOOL_HELD_MAX 256 /* bytes of text that are held back: white space, and what may become a call */

enum fm_tool_state {
    FM_TOOL_IN_TEXT,
    FM_TOOL_AT_START, /* the first byte tells calls from a text with a format, whatever stands in that */
    FM_TOOL_IN_PLAIN, /* no call follows */
    FM_TOOL_IN_MARK,  /* `skip` more bytes of what stands around names and arguments */
    FM_TOOL_IN_NAME,
    FM_TOOL_IN_ARGUMENTS,
};

struct fm_tool_parser {
    const struct fm_job *job;
    enum fm_tool_state state;
    enum fm_tool_state next; /* behind the mark */
    size_t skip;
    bool called; /* a call has begun */
    bool hold_space;
    char held[FM_TOOL_HELD_MAX];
    size_t held_len;
    size_t matched;     /* of FM_TOOL_BEGIN, at the end of `held` */
    struct fm_buf name; /* JSON, while it comes */
    size_t depth;       /* of brackets in the arguments */
    bool in_string;
    bool escaped;
};

enum fm_tool_kind { FM_TOOL_TEXT, FM_TOOL_CALL, FM_TOOL_PART_OF_ARGUMENTS, FM_TOOL_NO_MEMORY };

struct fm_tool_piece {
    enum fm_tool_kind kind;
    const char *bytes; /* of text and arguments; valid until the next call, or as long as the input */
    size_t len;
    const char *name; /* of a call: the tool's */
};

/* For the answer to `job`, whose tools can be called. Allocates nothing. */
void fm_tool_parser_init(struct fm_tool_parser *parser, const struct fm_job *job);
void fm_tool_parser_free(struct fm_tool_parser *parser); /* harmless on one that is all zero */

/*
 * Takes of `*bytes` (`*len`), which are as the tool grammar has them and may be cut anywhere, and moves both on.
 * False: all is taken, and there is nothing to tell. White space right before a call is dropped where no stop string
 * counts, up to FM_TOOL_HELD_MAX.
 */
FM_MUST_USE bool fm_tool_parser_read(struct fm_tool_parser *parser, const char **bytes, size_t *len,
                                     struct fm_tool_piece *piece);

/* The answer ends: gives out the text that is held back. False when there is none. */
FM_MUST_USE bool fm_tool_parser_end(struct fm_tool_parser *parser, struct fm_tool_piece *piece);

#endif
