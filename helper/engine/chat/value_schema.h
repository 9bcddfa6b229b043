/*
 * What a tool's schema says about a value that a form does not write as JSON: a subset of JSON Schema that can be
 * written as a grammar without JSON schemas. Pure; nothing allocates.
 */
#ifndef FM_ENGINE_CHAT_VALUE_SCHEMA_H
#define FM_ENGINE_CHAT_VALUE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

struct json_object;

/* Types of values; a set of them is an `unsigned`. */
enum {
    FM_VALUE_STRING = 1,
    FM_VALUE_NUMBER = 2,
    FM_VALUE_INTEGER = 4,
    FM_VALUE_BOOLEAN = 8,
    FM_VALUE_NULL = 16,
    FM_VALUE_ARRAY = 32,
    FM_VALUE_OBJECT = 64,
    FM_VALUE_ANY = 127,
    FM_VALUE_SCALARS = FM_VALUE_NUMBER | FM_VALUE_INTEGER | FM_VALUE_BOOLEAN | FM_VALUE_NULL, /* except strings */
};

#define FM_VALUE_ITEMS_MAX  1000   /* limit of minItems and maxItems */
#define FM_VALUE_LENGTH_MAX 100000 /* limit of minLength and maxLength */

/* A value fits one of `any_of`, is one of the choices, or has one of the types. All borrowed. */
struct fm_value_schema {
    struct json_object *schema; /* the schema to which `$ref` leads */
    struct json_object *any_of; /* "anyOf" or "oneOf"; NULL: the schema has neither */
    struct json_object *choices; /* "enum"; NULL: the schema has no such keyword, or has "const" */
    struct json_object *constant;
    bool is_constant;
    size_t choice_count;
    unsigned types;
};

/*
 * Reads `schema`, but not the schemas inside it; its references are looked up in `root`. False if `schema` is not in
 * the subset:
 * - it has an "allOf" of several schemas;
 * - it limits the number of properties, describes properties by patterns of their names, or describes items by their
 * places;
 * - a keyword's value is not as in draft 2020-12;
 * - a pattern has alternatives outside of brackets, or `^` and `$` anywhere but at its ends;
 * - it refers to something outside `$defs` and `definitions`.
 * Keywords that a grammar can't enforce do not count.
 */
bool fm_value_schema_read(struct json_object *root, struct json_object *schema, struct fm_value_schema *out);

/* The choice `index`, borrowed; NULL is JSON's null. */
struct json_object *fm_value_schema_choice(const struct fm_value_schema *schema, size_t index);

/* The type of `value`, as one bit of a set of types. An integer does not count as a number. */
unsigned fm_value_type(struct json_object *value);

/* Whether `schema` has a keyword that limits the text of a string. */
bool fm_value_schema_limits_text(const struct fm_value_schema *schema);

/* The value of the keyword `key`, a length or a count; `none` if the keyword is missing. */
size_t fm_value_schema_count(const struct fm_value_schema *schema, const char *key, size_t none);

/* The types that a value of `schema` may have. The set may contain too many types, but never too few. */
unsigned fm_value_types(struct json_object *root, struct json_object *schema);

/* Whether the array "required", if there is one, only has names from the schema's "properties". */
bool fm_value_names_required(struct json_object *schema);

/* Whether a grammar can write the key without quotes: it has only letters, digits, `_` and `-`. */
bool fm_value_is_key(const char *key);

/* Whether `key` is in the array "required". */
bool fm_value_is_required(struct json_object *schema, const char *key);

#endif
