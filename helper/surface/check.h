/*
 * Checks a request body against a table with one row for each parameter. The walk and the typed checkers are here. The
 * tables are in the files X_request.c, in request.c (the common parameters), and in the files for the parts of a body
 * (format.c, tools.c, items.c, limits.c, ...).
 *
 * A checker returns FM_OK, or fills `error` (FM_INVALID_REQUEST, a reason, the path) and returns its code. It never
 * gets null: a null parameter counts as absent. Pure; values are borrowed.
 */
#ifndef FM_SURFACE_CHECK_H
#define FM_SURFACE_CHECK_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fm_buf;
struct fm_ignored;
struct json_object;

/* The position of a value: a chain up to the body. In errors it is written as a path (`input[0].content[1].type`). */
struct fm_path {
    const struct fm_path *parent; /* NULL: the body itself */
    const char *key;              /* NULL: an array element with `index` */
    size_t index;
    bool closed;                /* unknown members below this step are refused, even if the body ignores them */
    struct fm_ignored *ignored; /* only in the body's step, which has no name: the list that collects unknown paths */
};

struct fm_rule;

typedef enum fm_code fm_check_fn(const struct fm_rule *rule, struct json_object *value, const struct fm_path *at,
                                 struct fm_error *error);

/* What a parameter may be. It depends on the checker which of the fields after `check` count. */
struct fm_rule {
    const char *name; /* NULL ends the table; if `members` is set, the table goes on in `members` */
    fm_check_fn *check;
    int64_t min;
    int64_t max;
    const char *const *words;      /* NULL-terminated */
    const struct fm_rule *members; /* of an object */
    const char *note;              /* the sentence after "Unsupported parameter: 'x'.", which says what to do instead */
    bool required;
    bool closed; /* for an object: unknown members in it, at any depth, are refused, never ignored */
};

/*
 * Checks a whole body. Members without a row, at any depth, are removed from `body`, so that they can have no effect,
 * and their paths are added to `ignored`. They are refused instead if `ignored` is NULL, or below a row that is
 * `closed`.
 */
FM_MUST_USE enum fm_code fm_check_body(const struct fm_rule *rules, struct json_object *body,
                                       struct fm_ignored *ignored, struct fm_error *error);

/* Refuses the first of some ignored paths (there is at least one): FM_INVALID_REQUEST, `unknown_parameter`. */
enum fm_code fm_ignored_refuse(const struct fm_buf *paths, struct fm_error *error);

/* The row with that name; NULL: there is none. */
const struct fm_rule *fm_rule_find(const struct fm_rule *rules, const char *name);

/*
 * Checks each member of `object` against its row, then checks that required members exist. For unknown members see
 * fm_check_body.
 */
FM_MUST_USE enum fm_code fm_check_members(const struct fm_rule *rules, struct json_object *object,
                                          const struct fm_path *at, struct fm_error *error);

/* ---- checkers for the tables ---- */

fm_check_fn fm_check_any;    /* any value */
fm_check_fn fm_check_bool;   /* true or false */
fm_check_fn fm_check_int;    /* an integer (5.0 is not one) from `min` to `max` */
fm_check_fn fm_check_number; /* any number from `min` to `max` */
fm_check_fn fm_check_string; /* at least `min` characters and, where `max` is not 0, at most `max` */
fm_check_fn fm_check_text;   /* as fm_check_string, but without a NUL */
fm_check_fn fm_check_enum;   /* one of `words` */
fm_check_fn fm_check_array;  /* any array */
fm_check_fn fm_check_object; /* an object with `members` */

/* Checks an object whose `type` is one of `words`. The row of `members` with that word has the other members. */
fm_check_fn fm_check_variant;

/* For parameters that are not supported: any value but a harmless one is `unsupported_parameter`, with `note`. */
fm_check_fn fm_check_unsupported; /* no value is harmless */
fm_check_fn fm_check_only_false;  /* false is harmless */
fm_check_fn fm_check_only_word;   /* a string of `words` is harmless */
fm_check_fn fm_check_only_number; /* the number `min` is harmless */
fm_check_fn fm_check_only_list;   /* an array that only has `words` is harmless */

/* ---- for checkers in the files of the tables ---- */

/*
 * Each fills `error` for the value at `at` and returns its code. `expected`: "an array"; `note`: a sentence; `meant`: a
 * name that is known, or NULL.
 */
enum fm_code fm_reject_missing(const struct fm_path *at, struct fm_error *error);
enum fm_code fm_reject_unknown(const struct fm_path *at, const char *meant, struct fm_error *error);
enum fm_code fm_reject_unsupported(const struct fm_path *at, const char *note, struct fm_error *error);
enum fm_code fm_reject_type(const struct fm_path *at, struct json_object *value, const char *expected,
                            struct fm_error *error);
enum fm_code fm_reject_value(const struct fm_path *at, const char *note, struct fm_error *error);
enum fm_code fm_reject_unsupported_value(const struct fm_path *at, const char *note, struct fm_error *error);
enum fm_code fm_reject_long_string(const struct fm_path *at, size_t max, size_t chars, struct fm_error *error);
enum fm_code fm_reject_long_array(const struct fm_path *at, size_t max, size_t entries, struct fm_error *error);

/*
 * Checks that `value` is an object with a string member `key`, on which its other members depend. `*tag` is that
 * string; it is not set on failure.
 */
FM_MUST_USE enum fm_code fm_check_tag(struct json_object *value, const char *key, const struct fm_path *at,
                                      struct json_object **tag, struct fm_error *error);

/*
 * Checks a string, or an array of 1 to `max` strings. `entry` checks each string, with `rule`. An empty array is
 * refused first; the length of an array is checked after its entries.
 */
FM_MUST_USE enum fm_code fm_check_one_or_more(fm_check_fn *entry, const struct fm_rule *rule, size_t max,
                                              struct json_object *value, const struct fm_path *at,
                                              struct fm_error *error);

/* Whether `value` is the string `word`. */
bool fm_string_is(struct json_object *value, const char *word);

/* The number of characters (code points) of a string value. */
size_t fm_string_chars(struct json_object *value);

#endif
