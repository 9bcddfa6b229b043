/*
 * Arguments of a call in a *notation* other than JSON: the same values with other punctuation.
 *
 *     {color:<|"|>teal<|"|>,levels:[1,2]}          strings between marks, keys as they are
 *     (color='teal', levels=[1, 2], on=True)       as Python writes it
 *
 * The tool grammar ensures that the text is valid; the reader here turns it into JSON, byte by byte. Pure.
 */
#ifndef FM_ENGINE_CHAT_NOTATION_H
#define FM_ENGINE_CHAT_NOTATION_H

#include "base/buf.h"

#include <stdint.h>

struct json_object;

struct fm_notation {
    char open;         /* '{' or '(': before the arguments, right after the tool's name; '\0': there is no notation */
    char assign;       /* ':' or '=': after the arguments' keys */
    const char *quote; /* the mark around a string; its first byte does not come again in it; not NUL-terminated */
    size_t quote_len;  /* 0: strings are between ' or ", with escapes; so are the keys of objects in the arguments */
    int32_t quote_token; /* the mark's control token; -1: the mark is text */
    bool python; /* has True, False and None, besides true, false and null */
    bool sorted; /* keys are sorted, ignoring case */
};

/* The bracket that closes the arguments. */
char fm_notation_close(const struct fm_notation *notation);

/*
 * Whether the arguments of a tool with `parameters` (NULL: any) can be written in the notation: they are in the subset
 * of value_schema.h, names and choices need no escapes, and no `$ref` refers to itself.
 */
bool fm_notation_fits(const struct fm_notation *notation, struct json_object *parameters);

/* Reads the arguments of one call. At the beginning of the arguments, all members are zero except `notation`. */
struct fm_notation_reader {
    const struct fm_notation *notation;
    size_t depth;    /* how many brackets are open */
    char in_string;  /* the quote that ends the string, or the mark's first byte. '\0': not in a string */
    size_t matched;  /* bytes of the mark that have come */
    bool escaped;
};

/*
 * Reads `c` and appends to `json` the JSON that is certain so far. Only the reader uses `word`, which is empty at the
 * beginning. True: the arguments have ended. The buffers show whether memory ran out.
 */
bool fm_notation_read(struct fm_notation_reader *reader, char c, struct fm_buf *word, struct fm_buf *json);

/*
 * Appends `c`, a byte of a string's text, as it is written in a JSON string; the bytes of a longer character are
 * unchanged.
 */
void fm_notation_escape(char c, struct fm_buf *json);

#endif
