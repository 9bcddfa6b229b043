/*
 * The work on a JSON schema before the grammar library gets it: checks the schema, limits its size, and writes the part
 * that a grammar can enforce. Drafts 4 to 2020-12; without `$schema` the draft is 2020-12.
 *
 * A keyword is enforced if llguidance 1.9 implements it exactly (its src/json/), as tested against a validator. If
 * llguidance is less strict than the specification, the keyword is *checked*: with `strict` it is refused; otherwise it
 * is left out of the guide, and a validator checks the finished text. The table of keywords is in schema_keywords.c.
 */
#ifndef FM_ENGINE_GUIDE_SCHEMA_H
#define FM_ENGINE_GUIDE_SCHEMA_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Limits of a schema. A schema beyond them is refused. */
enum {
    FM_SCHEMA_TEXT_MAX =
        /* bytes of the schema's text without blanks; a number, true, false or null counts as one byte */
        1024 * 1024,
    FM_SCHEMA_DEPTH_MAX = 32, /* schemas inside each other */
    FM_SCHEMA_SUBSCHEMAS_MAX = 5000, /* schemas in all, with the root */
    FM_SCHEMA_PATTERN_MAX = 1024,    /* bytes of a pattern, of a key of patternProperties, of a $ref */
    FM_SCHEMA_ENUM_MAX = 1000,       /* values in all `enum` and `const` together, with the values inside them */
    FM_SCHEMA_COUNT_MAX = 100000,    /* the limit of minLength, minItems and minProperties: no answer is longer */
    FM_SCHEMA_CHECKED_MAX = 100,     /* number of paths in the report's `checked` */
    FM_SCHEMA_REPEAT_MAX = 10000,    /* product of the counts of a pattern's quantifiers inside each other */
    FM_SCHEMA_MULTIPLE_MAX = 10000,  /* least common multiple of all `multipleOf`: the lexer has as many states */
    FM_SCHEMA_CHOICES_MAX = 64,      /* optional properties beside an enforced minProperties or maxProperties */
    /*
     * schemas inside each other when every $ref is followed once: llguidance recurses like this, and 2,000 schemas
     * overflowed a stack of 8 MiB
     */
    FM_SCHEMA_REF_DEPTH_MAX = 256,
};

struct json_object;

struct fm_schema {
    /*
     * JSON text of a schema in draft 2020-12; all of it is enforced by llguidance. Its `x-guidance` leaves \uXXXX out
     * of the escapes: with them, a key spelled "\u0061" would escape the rule for the property "a". The keys are in the
     * order of the input, and an object's properties are generated in that order; schemas that a $ref names are in
     * $defs. The output has no white space between its tokens: a small model would otherwise fill space with it.
     */
    struct fm_buf guide;
    /* JSON text {"enforced":[names of keywords, sorted, unique],"checked":[paths below the schema]}. */
    struct fm_buf report;
    bool exact; /* every text that fits the guide fits the schema: there is nothing to check */
};

/*
 * Prepares `schema` (borrowed, not changed; NULL is JSON's null). Never blocks; recursion is bounded. The time is
 * linear in the schema's text, with three exceptions: keys of patternProperties are sorted, $refs are compared with all
 * `$id` and anchors, and pairs in oneOf are compared, up to a million times 64 bytes. On success the caller frees
 * `out`; on failure it holds nothing. FM_INVALID_REQUEST: `error->param` is the path of the keyword at fault, which
 * begins with "format.schema", and the detail says what can be done. FM_INTERNAL: out of memory.
 */
FM_MUST_USE enum fm_code fm_schema_prepare(struct json_object *schema, bool strict, struct fm_schema *out,
                                           struct fm_error *error);

/*
 * Returns a copy of `schema`, which the caller releases. In the copy, an object has only the keys of its `properties`
 * if the schema says nothing about other keys. This holds in the root, and in properties and items, but not after a
 * $ref. NULL: out of memory.
 */
struct json_object *fm_schema_closed(struct json_object *schema);

/* Frees both texts; harmless after a failure. */
void fm_schema_free(struct fm_schema *schema);

#endif
