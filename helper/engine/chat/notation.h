/*
 * Arguments of a call in another *notation* than JSON: the same values in other punctuation.
 *
 *     {color:<|"|>teal<|"|>,levels:[1,2]}          strings between marks, keys as they are
 *     (color='teal', levels=[1, 2], on=True)       as Python writes it
 *
 * The tool grammar has decided what the text is; the reader here makes JSON of it, byte by byte. Pure.
 */
#ifndef FM_ENGINE_CHAT_NOTATION_H
#define FM_ENGINE_CHAT_NOTATION_H

#include "base/buf.h"

#include <stdint.h>

struct json_object;

struct fm_notation {
    char open;         /* '{' or '(': before the arguments, right after the tool's name; '\0': there is no notation */
    char assign;       /* ':' or '=': after their keys */
    const char *quote; /* around a string: a mark whose first byte is not in it again; not NUL-terminated */
    size_t quote_len;  /* 0: ' or ", with escapes in it, and around the keys of objects in the arguments too */
    int32_t quote_token; /* of a mark that is a control token; -1: it is text */
    bool python; /* True, False and None, besides true, false and null */
    bool sorted; /* keys are sorted, without regard to case */
};

/* What closes the arguments. */
char fm_notation_close(const struct fm_notation *notation);

/*
 * The arguments of a tool with `parameters` (NULL: any) can be written in it: these are in the subset of value_schema.h,
 * names and choices need no escapes, and no `$ref` leads into itself.
 */
bool fm_notation_fits(const struct fm_notation *notation, struct json_object *parameters);

/* Of one call; all zero but for `notation` where it begins. */
struct fm_notation_reader {
    const struct fm_notation *notation;
    size_t depth;    /* of brackets */
    char in_string;  /* which quote it ends with, or the mark's first byte. '\0': in none */
    size_t matched;  /* bytes of the mark */
    bool escaped;
};

/*
 * Reads `c` and appends to `json` what is certain. `word` is the reader's, empty where the arguments begin. True: they
 * are over. A lack of memory shows in the buffers.
 */
bool fm_notation_read(struct fm_notation_reader *reader, char c, struct fm_buf *word, struct fm_buf *json);

/* Appends `c`, of a string's text, as JSON has it in a string; the bytes of a longer character are as they are. */
void fm_notation_escape(char c, struct fm_buf *json);

#endif
