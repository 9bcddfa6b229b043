/*
 * Calls of tools as plain JSON. Models write them besides the form that they were trained on, or instead of that form:
 *
 *     ```json
 *     {"name": "get_weather", "arguments": {"city": "Linz"}}
 *     ```
 *
 * A call begins with an object, or a list of objects. The first member of the object names a tool that may be called.
 * The object may be inside another object, as in {"type": "function", "function": {"name": ...}}. Its braces may be
 * doubled, as the template of Qwen2.5-Coder shows them. A call begins at the start of the answer or of a line. In the
 * line the call is in a tag such as <tools>, between < and >, or bare. A bare call comes after a blank line, or after a
 * line whose last character does not announce more text. All other JSON is text. The tool grammar describes calls by
 * the regular expressions below, and this code reads them byte by byte: both decide the same for every text. Pure.
 */
#ifndef FM_ENGINE_CHAT_JSON_CALL_H
#define FM_ENGINE_CHAT_JSON_CALL_H

#include "engine/kit/kit.h"

#define FM_JSON_CALL_NAME_MAX 64 /* bytes; a longer name is not recognised */

/* White space between the tokens of JSON: only as much as indentation needs. */
#define FM_JSON_CALL_SPACE  "[ \\t\\r\\n]{0,16}"
#define FM_JSON_CALL_SPACES 16u

/* The last characters of a line that continues on the next line. */
#define FM_JSON_CALL_OPENERS "[]{}(,=\"'\\"

/* What models put around a call, besides fences. */
#define FM_JSON_CALL_TAG     "<[A-Za-z_]{1,16}>"
#define FM_JSON_CALL_TAG_MAX 16u

/* The text before a call. */
#define FM_JSON_CALL_PLACE                                                                                             \
    "(((?s:.*)\\n)?[ \\t\\r]*\\n|(?s:.*)[^\\[\\]{}(,=\"'\\\\ \\t\\r\\n][ \\t\\r]*\\n)?[ \\t\\r]*"                            \
    "(" FM_JSON_CALL_TAG FM_JSON_CALL_SPACE "|<)?"

/* A call up to the quote before its name. */
#define FM_JSON_CALL_BEGIN                                                                                             \
    "(\\[" FM_JSON_CALL_SPACE ")?(\\{" FM_JSON_CALL_SPACE "){1,2}(\"type\"" FM_JSON_CALL_SPACE                             \
    ":" FM_JSON_CALL_SPACE "\"function\"" FM_JSON_CALL_SPACE "," FM_JSON_CALL_SPACE                                     \
    ")?(\"function\"" FM_JSON_CALL_SPACE ":" FM_JSON_CALL_SPACE "\\{" FM_JSON_CALL_SPACE                               \
    ")?\"name\"" FM_JSON_CALL_SPACE ":" FM_JSON_CALL_SPACE "\""

/*
 * ARGUMENTS: from the quote after the name to the arguments. END: from the end of the arguments to where the answer may
 * end. NEXT: from the end of the arguments to the name in the next call.
 */
#define FM_JSON_CALL_ARGUMENTS                                                                                         \
    FM_JSON_CALL_SPACE "," FM_JSON_CALL_SPACE "\"(arguments|parameters)\"" FM_JSON_CALL_SPACE ":" FM_JSON_CALL_SPACE
#define FM_JSON_CALL_END                                                                                               \
    FM_JSON_CALL_SPACE "\\}(" FM_JSON_CALL_SPACE "[}\\]]){0,3}(" FM_JSON_CALL_SPACE                                        \
                       "(```|<\\/[A-Za-z_]{1,16}>|>))?" FM_JSON_CALL_SPACE
#define FM_JSON_CALL_NEXT                                                                                              \
    FM_JSON_CALL_END "(," FM_JSON_CALL_SPACE ")?((```[A-Za-z0-9_]{0,16}|" FM_JSON_CALL_TAG ")" FM_JSON_CALL_SPACE              \
                     "|<)?" FM_JSON_CALL_BEGIN

/* How much of the beginning of a call has come. */
struct fm_json_call {
    const struct fm_kit_job *job; /* the job whose tools are called; borrowed */
    bool anywhere;                /* a call may begin at each byte, because another call came before */
    bool place;                   /* a call may begin in this line, if only white space has come in it */
    enum { FM_JSON_CALL_BLANK, FM_JSON_CALL_OPENER, FM_JSON_CALL_OTHER } line; /* the kind of the line's last byte */
    size_t state;
    const char *word; /* the name of a tool or a token of JSON, of which `matched` bytes have come */
    size_t matched;
    size_t spaces; /* white space since the last token; in a fence's line or a tag: bytes of that line or tag */
    size_t len;    /* bytes at the end of the text that may be the beginning of a call, with its fence or tag */
};

/* `tool` may be called, and its name consists of letters, digits and `_-.:/`, at most FM_JSON_CALL_NAME_MAX of them. */
bool fm_json_call_names(const struct fm_tool *tool);

/* Starts at the beginning of a text, or, with `anywhere`, after a call. Allocates nothing. */
void fm_json_call_init(struct fm_json_call *call, const struct fm_kit_job *job, bool anywhere);

/*
 * Reads `c`. If `c` is the quote after a tool's name and completes the beginning of a call, returns that tool;
 * otherwise NULL.
 */
const struct fm_tool *fm_json_call_read(struct fm_json_call *call, char c);

#endif
