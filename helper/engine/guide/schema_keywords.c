/*
 * The table of keywords: which values they may have, which of them are enforced, and how they are written in the guide.
 */
#include "engine/guide/schema_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX                                                                                                     \
    9007199254740992.0   /* 2^53: below it a double holds every integer, and llguidance counts in doubles */
#define NUMBER_MIN 1e-20 /* llguidance writes a bound digit by digit */
#define MULTIPLE_PLACES 4

#define NEAR_BOUND    "another bound, no integer, has the same integer part; type integer can be bounded so"
#define LIBRARY_LACKS "the grammar library does not have it"

/* ---- kinds of values ---- */

static bool is_number(struct json_object *value) {
    return json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double);
}

static bool is_true(struct json_object *value) {
    return json_object_is_type(value, json_type_boolean) && json_object_get_boolean(value);
}

static bool is_false(struct json_object *value) {
    return json_object_is_type(value, json_type_boolean) && !json_object_get_boolean(value);
}

static bool is_string(struct json_object *value) {
    return json_object_is_type(value, json_type_string);
}

static bool has(const struct fm_schema_place *place, const char *name) {
    return json_object_object_get_ex(place->schema, name, NULL);
}

static enum fm_schema_fate only_checked(struct fm_schema_work *work, const char *reason) {
    work->reason = reason;
    return FM_FATE_CHECKED;
}

/* A string that can be a name: without a NUL, where strcmp would stop. */
static bool is_name(struct json_object *value) {
    return is_string(value) && strlen(json_object_get_string(value)) == (size_t)json_object_get_string_len(value);
}

static enum fm_code check_name(struct fm_schema_work *work, const struct fm_schema_place *place,
                               struct json_object *value, const struct fm_schema_at *at) {
    (void)place;
    return is_name(value) ? FM_OK : fm_schema_refuse(work, at, "a string without a NUL is expected");
}

/* Draft 4's name for `$id`; other drafts do not have this name. */
static enum fm_code check_id(struct fm_schema_work *work, const struct fm_schema_place *place,
                             struct json_object *value, const struct fm_schema_at *at) {
    return work->draft == FM_DRAFT_4 && is_string(value) ? check_name(work, place, value, at) : FM_OK;
}

static enum fm_code check_bool(struct fm_schema_work *work, const struct fm_schema_place *place,
                               struct json_object *value, const struct fm_schema_at *at) {
    (void)place;
    bool valid = json_object_is_type(value, json_type_boolean);
    return valid ? FM_OK : fm_schema_refuse(work, at, "true or false is expected");
}

static enum fm_code write_schema(struct fm_schema_work *work, const struct fm_schema_place *place,
                                 struct json_object *value, const struct fm_schema_at *at) {
    const struct fm_schema_place child = {value, at, place->resource, place->depth + 1};
    return fm_schema_write(work, &child);
}

/* ---- $schema ---- */

static const struct {
    const char *uri;
    enum fm_schema_draft draft;
} drafts[] = {
    {"//json-schema.org/draft-04/schema", FM_DRAFT_4},
    {"//json-schema.org/draft-06/schema", FM_DRAFT_6},
    {"//json-schema.org/draft-07/schema", FM_DRAFT_7},
    {"//json-schema.org/draft/2019-09/schema", FM_DRAFT_2019_09},
    {"//json-schema.org/draft/2020-12/schema", FM_DRAFT_2020_12},
    {"//json-schema.org/schema", FM_DRAFT_2020_12}, /* the latest; not in the specification, but often used */
};

static bool find_draft(struct json_object *value, enum fm_schema_draft *draft) {
    const char *uri = is_name(value) ? json_object_get_string(value) : "";
    size_t scheme = strncmp(uri, "https:", 6) == 0 ? 6 : strncmp(uri, "http:", 5) == 0 ? 5 : 0;
    uri += scheme;
    size_t len = scheme ? strlen(uri) : 0;
    len -= len > 0 && uri[len - 1] == '#';
    for (size_t i = 0; i < sizeof drafts / sizeof drafts[0]; i++) {
        if (strlen(drafts[i].uri) == len && memcmp(drafts[i].uri, uri, len) == 0) {
            *draft = drafts[i].draft;
            return true;
        }
    }
    return false;
}

enum fm_schema_draft fm_schema_draft_of(struct json_object *root) {
    enum fm_schema_draft draft = FM_DRAFT_2020_12;
    if (json_object_is_type(root, json_type_object)) {
        (void)find_draft(fm_schema_member(root, "$schema"), &draft);
    }
    return draft;
}

static enum fm_code check_draft(struct fm_schema_work *work, const struct fm_schema_place *place,
                                struct json_object *value, const struct fm_schema_at *at) {
    enum fm_schema_draft draft;
    if (!find_draft(value, &draft)) {
        return fm_schema_refuse(work, at, "the URI of a draft from 4 to 2020-12 is expected");
    }
    return draft == work->draft || place->schema == work->root
               ? FM_OK
               : fm_schema_refuse(work, at, "one schema can't mix drafts; let the root name it");
}

/* ---- $ref ---- */

static enum fm_code check_ref(struct fm_schema_work *work, const struct fm_schema_place *place,
                              struct json_object *value, const struct fm_schema_at *at) {
    size_t target;
    if (!is_name(value) || json_object_get_string_len(value) > FM_SCHEMA_PATTERN_MAX) {
        return fm_schema_refuse(work, at, "a string of up to %d bytes, without a NUL, is expected",
                                FM_SCHEMA_PATTERN_MAX);
    }
    return fm_schema_resolve(work, place->resource, value, at, &target);
}

/*
 * A $dynamicRef may name something outside the schema, and only a validator follows it. If it names something inside
 * the schema, the target must be a schema.
 */
static enum fm_code check_dynamic_ref(struct fm_schema_work *work, const struct fm_schema_place *place,
                                      struct json_object *value, const struct fm_schema_at *at) {
    size_t target;
    if (!is_name(value) || json_object_get_string_len(value) > FM_SCHEMA_PATTERN_MAX) {
        return fm_schema_refuse(work, at, "a string of up to %d bytes, without a NUL, is expected",
                                FM_SCHEMA_PATTERN_MAX);
    }
    enum fm_code code = fm_schema_find_target(work, place->resource, value, at, &target);
    return code == FM_OK ? fm_schema_find_target(work, 0, value, at, &target) : code;
}

static enum fm_code write_ref(struct fm_schema_work *work, const struct fm_schema_place *place,
                              struct json_object *value, const struct fm_schema_at *at) {
    size_t index;
    char text[48];
    enum fm_code code = fm_schema_resolve(work, place->resource, value, at, &index);
    if (code != FM_OK) {
        return code;
    }
    struct fm_schema_target *target = &work->targets[index];
    if (target->number == 0) {
        if (!fm_schema_grow((void **)&work->defs, &work->def_cap, work->def_count, sizeof *work->defs)) {
            return fm_schema_refuse_memory(work);
        }
        work->defs[work->def_count++] = index;
        target->number = work->def_count;
    }
    snprintf(text, sizeof text, "#/$defs/%zu", target->number);
    fm_json_key_str(&work->guide, "$ref", text);
    return FM_OK;
}

/* ---- type, enum, const ---- */

static bool is_type_name(struct json_object *value) {
    static const char *const names[] = {"array", "boolean", "integer", "null", "number", "object", "string"};
    for (size_t i = 0; is_name(value) && i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(json_object_get_string(value), names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static enum fm_code check_type(struct fm_schema_work *work, const struct fm_schema_place *place,
                               struct json_object *value, const struct fm_schema_at *at) {
    bool list = json_object_is_type(value, json_type_array);
    size_t count = list ? json_object_array_length(value) : 1;
    bool valid = count > 0 && count <= 7;
    (void)place;
    for (size_t i = 0; valid && i < count; i++) {
        struct json_object *name = list ? json_object_array_get_idx(value, i) : value;
        valid = is_type_name(name);
        for (size_t j = 0; valid && j < i; j++) {
            valid = !json_object_equal(name, json_object_array_get_idx(value, j));
        }
    }
    return valid ? FM_OK
                 : fm_schema_refuse(work, at,
                                    "\"array\", \"boolean\", \"integer\", \"null\", \"number\", \"object\" or "
                                    "\"string\" is expected, or a list of different ones");
}

static bool fits_number(struct json_object *value) {
    double number = fabs(json_object_get_double(value));
    return number == 0 || (number >= NUMBER_MIN && number < NUMBER_MAX);
}

/* Counts a value and the values inside it. Recurses as deep as the schema is nested; that depth was checked before. */
static enum fm_code check_literal(struct fm_schema_work *work, struct json_object *value,
                                  const struct fm_schema_at *at) {
    enum fm_code code = FM_OK;
    if (++work->enum_values > FM_SCHEMA_ENUM_MAX) {
        return fm_schema_refuse(work, at, "there are more than %d values in all enum and const together",
                                FM_SCHEMA_ENUM_MAX);
    }
    if (is_number(value) && !fits_number(value)) {
        return fm_schema_refuse(work, at,
                                "a number of 2^53 or more, or closer to 0 than 1e-20, is not exact; use a string");
    }
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value) && code == FM_OK; i++) {
            code = check_literal(work, json_object_array_get_idx(value, i), at);
        }
    } else if (json_object_is_type(value, json_type_object)) {
        struct json_object_iter member_at;
        json_object_object_foreachC(value, member_at) {
            struct json_object *member = member_at.val;
            code = code == FM_OK ? check_literal(work, member, at) : code;
        }
    }
    return code;
}

static enum fm_code check_const(struct fm_schema_work *work, const struct fm_schema_place *place,
                                struct json_object *value, const struct fm_schema_at *at) {
    (void)place;
    return check_literal(work, value, at);
}

static enum fm_code check_enum(struct fm_schema_work *work, const struct fm_schema_place *place,
                               struct json_object *value, const struct fm_schema_at *at) {
    enum fm_code code = FM_OK;
    (void)place;
    if (!json_object_is_type(value, json_type_array) || json_object_array_length(value) == 0) {
        return fm_schema_refuse(work, at, "a list that is not empty is expected");
    }
    for (size_t i = 0; i < json_object_array_length(value) && code == FM_OK; i++) {
        code = check_literal(work, json_object_array_get_idx(value, i), at);
    }
    return code;
}

/* Whether the guide's escapes can write all strings in a value: its `x-guidance` leaves \uXXXX out. */
static bool is_writable(struct json_object *value) {
    bool writable = true;
    if (is_string(value)) {
        const char *text = json_object_get_string(value);
        for (int i = 0; i < json_object_get_string_len(value); i++) {
            unsigned char c = (unsigned char)text[i];
            writable = writable && c != 0x7F && (c >= 0x20 || (c != '\0' && strchr("\b\f\n\r\t", c) != NULL));
        }
    } else if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value) && writable; i++) {
            writable = is_writable(json_object_array_get_idx(value, i));
        }
    } else if (json_object_is_type(value, json_type_object)) {
        struct json_object_iter member_at;
        json_object_object_foreachC(value, member_at) {
            struct json_object *member = member_at.val;
            writable = writable && is_writable(member);
        }
    }
    return writable;
}

static enum fm_schema_fate literal_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                        struct json_object *value) {
    (void)place;
    return is_writable(value) ? FM_FATE_ENFORCED
                              : only_checked(work, "it has a control character that is written as \\uXXXX");
}

static enum fm_code write_value(struct fm_schema_work *work, const struct fm_schema_place *place,
                                struct json_object *value, const struct fm_schema_at *at) {
    (void)place;
    fm_json_key_value(&work->guide, at->key, value);
    return FM_OK;
}

/* ---- numbers ---- */

static void put_number(struct fm_json_writer *w, const char *key, double number) {
    fm_json_key(w, key);
    if (number == floor(number)) { /* -0 is 0 */
        fm_json_int(w, (int64_t)number);
    } else {
        fm_json_double(w, number);
    }
}

/*
 * Notes the integer part of a bound that is not an integer. If there are more of them than `fractions` holds, every
 * bound counts as noted.
 */
static void note_fraction(struct fm_schema_work *work, double number) {
    size_t i = 0;
    while (i < work->fraction_count && i < FM_SCHEMA_FRACTIONS && work->fractions[i] != trunc(number)) {
        i++;
    }
    if (number == trunc(number) || i < work->fraction_count) {
        return;
    }
    if (i < FM_SCHEMA_FRACTIONS) {
        work->fractions[i] = trunc(number);
    }
    work->fraction_count = i + 1;
}

static enum fm_code check_bound(struct fm_schema_work *work, const struct fm_schema_place *place,
                                struct json_object *value, const struct fm_schema_at *at) {
    (void)place;
    if (!is_number(value)) {
        return fm_schema_refuse(work, at, "a number is expected");
    }
    note_fraction(work, json_object_get_double(value));
    return fits_number(value)
               ? FM_OK
               : fm_schema_refuse(work, at,
                                  "a bound is 0, or from 1e-20 to below 2^53, or the negative of such a number");
}

/* In draft 4 this is true or false, beside `minimum` and `maximum`. */
static enum fm_code check_exclusive(struct fm_schema_work *work, const struct fm_schema_place *place,
                                    struct json_object *value, const struct fm_schema_at *at) {
    if (work->draft == FM_DRAFT_4) {
        return check_bool(work, place, value, at);
    }
    if (json_object_is_type(value, json_type_boolean)) {
        return fm_schema_refuse(work, at,
                                "a number is expected; true and false are draft 4's, which $schema would name");
    }
    return check_bound(work, place, value, at);
}

/*
 * The exclusive bound at one end; NULL: there is none. In draft 4 the bound is in `inclusive`, and `exclusive` is a
 * flag.
 */
static struct json_object *exclusive_bound(struct json_object *schema, const char *exclusive, const char *inclusive) {
    struct json_object *value = fm_schema_member(schema, exclusive);
    value = is_true(value) ? fm_schema_member(schema, inclusive) : value;
    return is_number(value) ? value : NULL;
}

static bool is_integer_type(struct json_object *schema) {
    struct json_object *type = fm_schema_member(schema, "type");
    size_t count = json_object_is_type(type, json_type_array) ? json_object_array_length(type) : 0;
    bool fraction = !type || (is_string(type) && strcmp(json_object_get_string(type), "number") == 0);
    for (size_t i = 0; i < count; i++) {
        fraction = fraction || strcmp(json_object_get_string(json_object_array_get_idx(type, i)), "number") == 0;
    }
    return !fraction;
}

/*
 * Whether llguidance forgets that `bound` is excluded. This happens if `bound` is a whole number, the schema takes
 * numbers that are not integers, and the other bound has the same integer part.
 */
static bool forgets_exclusive(const struct fm_schema_work *work, struct json_object *schema, double bound) {
    static const char *const names[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"};
    bool found = false;
    if (bound != trunc(bound) || is_integer_type(schema)) {
        return false;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct json_object *value = fm_schema_member(schema, names[i]);
        double other = is_number(value) ? json_object_get_double(value) : bound;
        found = found || (other != bound && trunc(other) == bound);
    }
    for (size_t i = 0; work->merges && i < work->fraction_count; i++) { /* the other bound may be in another schema */
        found = found || i == FM_SCHEMA_FRACTIONS || work->fractions[i] == bound;
    }
    return found;
}

static const struct end {
    const char *inclusive;
    const char *exclusive;
    int sign; /* the sign of numbers towards this end */
} ends[] = {{"minimum", "exclusiveMinimum", -1}, {"maximum", "exclusiveMaximum", 1}};

/* Multiplies the number by 10 until it is an integer, at most MULTIPLE_PLACES times, and counts. */
static double scaled(double number, int *places) {
    for (*places = 0; number != floor(number) && *places < MULTIPLE_PLACES; ++*places) {
        number *= 10;
    }
    return number;
}

/*
 * The largest number for which a double can show whether it is a multiple of the schema's `multipleOf`; INFINITY: the
 * schema has no `multipleOf`.
 */
static double exact_multiple_max(struct json_object *schema) {
    struct json_object *multiple = fm_schema_member(schema, "multipleOf");
    int places = 0;
    if (!multiple) {
        return INFINITY;
    }
    (void)scaled(json_object_get_double(multiple), &places);
    return floor((NUMBER_MAX - 1) / pow(10, places));
}

static bool exclusive_is_enforced(const struct fm_schema_work *work, struct json_object *schema,
                                  const struct end *end) {
    struct json_object *bound = exclusive_bound(schema, end->exclusive, end->inclusive);
    return !bound || !forgets_exclusive(work, schema, json_object_get_double(bound));
}

static enum fm_schema_fate exclusive_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                          struct json_object *value) {
    bool enforced = true;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (fm_schema_member(place->schema, ends[i].exclusive) == value) {
            enforced = exclusive_is_enforced(work, place->schema, &ends[i]);
        }
    }
    if (is_false(value)) {
        return FM_FATE_IGNORED;
    }
    return enforced ? FM_FATE_ENFORCED : FM_FATE_CHECKED;
}

static enum fm_code write_bound(struct fm_schema_work *work, const struct fm_schema_place *place,
                                struct json_object *value, const struct fm_schema_at *at) {
    const char *key = at->key;
    double number = json_object_get_double(value);
    double most = exact_multiple_max(place->schema);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (fm_schema_member(place->schema, ends[i].inclusive) == value ||
            fm_schema_member(place->schema, ends[i].exclusive) == value) {
            number = ends[i].sign * fmin(ends[i].sign * number, most);
        }
        if (strcmp(key, ends[i].inclusive) == 0 && is_true(fm_schema_member(place->schema, ends[i].exclusive)) &&
            exclusive_is_enforced(work, place->schema, &ends[i])) {
            key = ends[i].exclusive;
        }
    }
    if (is_number(value)) {
        put_number(&work->guide, key, number);
    }
    return FM_OK;
}

static enum fm_code check_multiple(struct fm_schema_work *work, const struct fm_schema_place *place,
                                   struct json_object *value, const struct fm_schema_at *at) {
    (void)place;
    bool valid = is_number(value) && json_object_get_double(value) > 0;
    return valid ? FM_OK : fm_schema_refuse(work, at, "a number above 0 is expected");
}

static int64_t common_multiple(int64_t a, int64_t b) {
    int64_t x = a;
    int64_t y = b;
    while (y) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* The bound at one end; NULL: there is none. */
static struct json_object *bound_at(struct json_object *schema, const struct end *end) {
    struct json_object *bound = exclusive_bound(schema, end->exclusive, end->inclusive);
    return bound ? bound : fm_schema_member(schema, end->inclusive);
}

/* Whether the bounds only leave numbers for which a double can't show whether they are multiples. */
static bool beyond_exact(struct json_object *schema) {
    bool beyond = false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct json_object *bound = bound_at(schema, &ends[i]);
        beyond = beyond || (bound && ends[i].sign * json_object_get_double(bound) < -exact_multiple_max(schema));
    }
    return beyond;
}

/*
 * llguidance finds the decimal places by multiplying a double by 10 until it is whole, and merges by least common
 * multiples in 32 bits that overflow. The lexer has as many states as the digits of `multipleOf` say: 65,535 took 0.5
 * s.
 */
static enum fm_schema_fate multiple_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                         struct json_object *value) {
    int places;
    double number = scaled(json_object_get_double(value), &places);
    if (beyond_exact(place->schema)) {
        return only_checked(work, "the other bound leaves only numbers that are too large for a double to show it");
    }
    if (number != floor(number) || number > FM_SCHEMA_MULTIPLE_MAX) {
        return FM_FATE_CHECKED;
    }
    int64_t own = (int64_t)number;
    int64_t all = work->multiple;
    for (int i = places; i < work->multiple_exp && own <= FM_SCHEMA_MULTIPLE_MAX; i++) {
        own *= 10;
    }
    for (int i = work->multiple_exp; i < places && all <= FM_SCHEMA_MULTIPLE_MAX; i++) {
        all *= 10;
    }
    if (own > FM_SCHEMA_MULTIPLE_MAX || all > FM_SCHEMA_MULTIPLE_MAX ||
        common_multiple(own, all) > FM_SCHEMA_MULTIPLE_MAX) {
        return FM_FATE_CHECKED;
    }
    work->multiple = common_multiple(own, all);
    work->multiple_exp = places > work->multiple_exp ? places : work->multiple_exp;
    return FM_FATE_ENFORCED;
}

static enum fm_code write_multiple(struct fm_schema_work *work, const struct fm_schema_place *place,
                                   struct json_object *value, const struct fm_schema_at *at) {
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (!bound_at(place->schema, &ends[i])) {
            put_number(&work->guide, ends[i].inclusive, ends[i].sign * exact_multiple_max(place->schema));
        }
    }
    return write_value(work, place, value, at);
}

/* ---- counts ---- */

static bool read_count(struct json_object *value, int64_t *count) {
    double number = json_object_get_double(value);
    bool valid = is_number(value) && number >= 0 && number == floor(number);
    *count = valid && number < NUMBER_MAX ? (int64_t)number : (int64_t)NUMBER_MAX;
    return valid;
}

static int64_t count_of(struct json_object *schema, const char *name, int64_t absent) {
    struct json_object *value = fm_schema_member(schema, name);
    int64_t count;
    return value && read_count(value, &count) ? count : absent;
}

static enum fm_code check_count(struct fm_schema_work *work, const struct fm_schema_place *place,
                                struct json_object *value, const struct fm_schema_at *at) {
    int64_t count;
    (void)place;
    return read_count(value, &count) ? FM_OK : fm_schema_refuse(work, at, "an integer from 0 is expected");
}

static enum fm_code check_least(struct fm_schema_work *work, const struct fm_schema_place *place,
                                struct json_object *value, const struct fm_schema_at *at) {
    int64_t count;
    enum fm_code code = check_count(work, place, value, at);
    if (code == FM_OK && read_count(value, &count) && count > FM_SCHEMA_COUNT_MAX) {
        code = fm_schema_refuse(work, at, "no answer gets as long as that; %d is the most", FM_SCHEMA_COUNT_MAX);
    }
    return code;
}

/*
 * llguidance takes up to 2^32 - 1 characters, but each character is a state of the lexer, which may have 250,000
 * states.
 */
static enum fm_schema_fate most_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                     struct json_object *value) {
    int64_t count = 0;
    (void)place;
    (void)read_count(value, &count);
    return count <= FM_SCHEMA_COUNT_MAX ? FM_FATE_ENFORCED : only_checked(work, "it is above 100,000");
}

static enum fm_code write_count(struct fm_schema_work *work, const struct fm_schema_place *place,
                                struct json_object *value, const struct fm_schema_at *at) {
    int64_t count = 0;
    (void)place;
    (void)read_count(value, &count);
    fm_json_key_int(&work->guide, at->key, count);
    return FM_OK;
}

static enum fm_schema_fate contains_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                         struct json_object *value) {
    (void)work;
    (void)value;
    return has(place, "contains") ? FM_FATE_CHECKED : FM_FATE_IGNORED;
}

/* ---- strings ---- */

/* Translates a pattern into work->scratch. */
static enum fm_pattern translate(struct fm_schema_work *work, const char *text, size_t len, const char **reason) {
    enum fm_pattern kind = fm_pattern_translate(text, len, &work->scratch, reason);
    work->no_memory = work->no_memory || work->scratch.failed;
    return kind;
}

static enum fm_code check_pattern(struct fm_schema_work *work, const struct fm_schema_place *place,
                                  struct json_object *value, const struct fm_schema_at *at) {
    const char *reason;
    (void)place;
    if (!is_string(value) || json_object_get_string_len(value) > FM_SCHEMA_PATTERN_MAX) {
        return fm_schema_refuse(work, at, "a pattern of up to %d bytes is expected", FM_SCHEMA_PATTERN_MAX);
    }
    size_t len = (size_t)json_object_get_string_len(value);
    if (translate(work, json_object_get_string(value), len, &reason) == FM_PATTERN_WRONG) {
        return fm_schema_refuse(work, at, "this pattern is not valid: %s", reason);
    }
    return FM_OK;
}

static enum fm_schema_fate pattern_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                        struct json_object *value) {
    size_t len = (size_t)json_object_get_string_len(value);
    (void)place;
    enum fm_pattern kind = translate(work, json_object_get_string(value), len, &work->reason);
    return kind == FM_PATTERN_OK ? FM_FATE_ENFORCED : FM_FATE_CHECKED;
}

/* The fate of this pattern was computed directly before, so its translation is still in work->scratch. */
static enum fm_code write_pattern(struct fm_schema_work *work, const struct fm_schema_place *place,
                                  struct json_object *value, const struct fm_schema_at *at) {
    (void)place;
    (void)value;
    fm_json_key(&work->guide, at->key);
    fm_json_string(&work->guide, work->scratch.data ? work->scratch.data : "", work->scratch.len);
    return FM_OK;
}

static enum fm_schema_fate format_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                       struct json_object *value) {
    (void)work;
    (void)place;
    return fm_format_pattern(json_object_get_string(value)) ? FM_FATE_ENFORCED : FM_FATE_CHECKED;
}

/* With a `pattern` beside it, the format is written into the allOf. */
static enum fm_code write_format(struct fm_schema_work *work, const struct fm_schema_place *place,
                                 struct json_object *value, const struct fm_schema_at *at) {
    (void)at;
    if (!has(place, "pattern")) {
        fm_json_key_str(&work->guide, "pattern", fm_format_pattern(json_object_get_string(value)));
    }
    return FM_OK;
}

/* ---- schemas for the same value ---- */

static enum fm_code write_list(struct fm_schema_work *work, const struct fm_schema_place *place,
                               struct json_object *value, const struct fm_schema_at *at) {
    enum fm_code code = FM_OK;
    struct fm_schema_at element = {.parent = at};
    for (; element.index < json_object_array_length(value) && code == FM_OK; element.index++) {
        code = write_schema(work, place, json_object_array_get_idx(value, element.index), &element);
    }
    return code;
}

static enum fm_code write_schemas(struct fm_schema_work *work, const struct fm_schema_place *place, const char *key,
                                  struct json_object *value, const struct fm_schema_at *at) {
    fm_json_key(&work->guide, key);
    fm_json_array_begin(&work->guide);
    enum fm_code code = write_list(work, place, value, at);
    fm_json_array_end(&work->guide);
    return code;
}

/* Writes an element of an allOf: {"anyOf":[...]}. */
static enum fm_code write_one_of_apart(struct fm_schema_work *work, const struct fm_schema_place *place) {
    const struct fm_schema_at at = {.parent = place->at, .key = "oneOf"};
    fm_json_object_begin(&work->guide);
    enum fm_code code = write_schemas(work, place, "anyOf", fm_schema_member(place->schema, "oneOf"), &at);
    fm_json_object_end(&work->guide);
    return code;
}

/*
 * Also called for a schema without allOf (`value` NULL): two keywords about the same thing need an allOf in the guide.
 */
static enum fm_code write_all_of(struct fm_schema_work *work, const struct fm_schema_place *place,
                                 struct json_object *value, const struct fm_schema_at *at) {
    struct json_object *format = fm_schema_member(place->schema, "format");
    const char *pattern = format && has(place, "pattern") ? fm_format_pattern(json_object_get_string(format)) : NULL;
    bool one_of = has(place, "oneOf") && has(place, "anyOf");
    if (!value && !pattern && !one_of) {
        return FM_OK;
    }
    fm_json_key(&work->guide, "allOf");
    fm_json_array_begin(&work->guide);
    enum fm_code code = value ? write_list(work, place, value, at) : FM_OK;
    if (pattern) {
        fm_json_object_begin(&work->guide);
        fm_json_key_str(&work->guide, "pattern", pattern);
        fm_json_object_end(&work->guide);
    }
    if (code == FM_OK && one_of) {
        code = write_one_of_apart(work, place);
    }
    fm_json_array_end(&work->guide);
    return code;
}

static enum fm_code write_any_of(struct fm_schema_work *work, const struct fm_schema_place *place,
                                 struct json_object *value, const struct fm_schema_at *at) {
    return write_schemas(work, place, "anyOf", value, at);
}

static enum fm_schema_fate one_of_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                       struct json_object *value) {
    return fm_schema_disjoint(work, place->resource, value) ? FM_FATE_ENFORCED : FM_FATE_CHECKED;
}

/*
 * Branches that exclude each other, or that are only checked, become anyOf. With an `anyOf` beside it, the oneOf is
 * written into the allOf.
 */
static enum fm_code write_one_of(struct fm_schema_work *work, const struct fm_schema_place *place,
                                 struct json_object *value, const struct fm_schema_at *at) {
    return has(place, "anyOf") ? FM_OK : write_schemas(work, place, "anyOf", value, at);
}

/* ---- arrays ---- */

static enum fm_code check_items(struct fm_schema_work *work, const struct fm_schema_place *place,
                                struct json_object *value, const struct fm_schema_at *at) {
    (void)place;
    if (json_object_is_type(value, json_type_array) && work->draft == FM_DRAFT_2020_12) {
        return fm_schema_refuse(work, at,
                                "a schema is expected; for a list use prefixItems, or name in $schema a draft up to "
                                "2019-09");
    }
    return FM_OK;
}

static enum fm_code write_items(struct fm_schema_work *work, const struct fm_schema_place *place,
                                struct json_object *value, const struct fm_schema_at *at) {
    if (json_object_is_type(value, json_type_array)) {
        return write_schemas(work, place, "prefixItems", value, at);
    }
    fm_json_key(&work->guide, "items");
    return write_schema(work, place, value, at);
}

static enum fm_schema_fate additional_items_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                                 struct json_object *value) {
    bool counts = work->draft != FM_DRAFT_2020_12 &&
                  json_object_is_type(fm_schema_member(place->schema, "items"), json_type_array);
    (void)value;
    return counts ? FM_FATE_ENFORCED : FM_FATE_IGNORED;
}

static enum fm_schema_fate prefix_items_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                             struct json_object *value) {
    (void)place;
    (void)value;
    return work->draft == FM_DRAFT_2020_12 ? FM_FATE_ENFORCED : FM_FATE_IGNORED;
}

static enum fm_code write_prefix_items(struct fm_schema_work *work, const struct fm_schema_place *place,
                                       struct json_object *value, const struct fm_schema_at *at) {
    return write_schemas(work, place, "prefixItems", value, at);
}

static enum fm_schema_fate if_true_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                        struct json_object *value) {
    (void)work;
    (void)place;
    return is_true(value) ? FM_FATE_CHECKED : FM_FATE_IGNORED;
}

static enum fm_schema_fate unless_true_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                            struct json_object *value) {
    (void)work;
    (void)place;
    return is_true(value) ? FM_FATE_IGNORED : FM_FATE_CHECKED;
}

/* ---- objects ---- */

static enum fm_code write_map(struct fm_schema_work *work, const struct fm_schema_place *place,
                              struct json_object *value, const struct fm_schema_at *at) {
    enum fm_code code = FM_OK;
    fm_json_key(&work->guide, at->key);
    fm_json_object_begin(&work->guide);
    struct json_object_iter member_at;
    json_object_object_foreachC(value, member_at) {
        const char *name = member_at.key;
        struct json_object *schema = member_at.val;
        const struct fm_schema_at member = {.parent = at, .key = name};
        if (code == FM_OK) {
            fm_json_key_text(&work->guide, name, strlen(name));
            code = write_schema(work, place, schema, &member);
        }
    }
    fm_json_object_end(&work->guide);
    return code;
}

static enum fm_code check_required(struct fm_schema_work *work, const struct fm_schema_place *place,
                                   struct json_object *value, const struct fm_schema_at *at) {
    struct json_object *properties = fm_schema_member(place->schema, "properties");
    size_t count = json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
    struct lh_table *names = lh_kchar_table_new(16, NULL);
    enum fm_code code = names ? FM_OK : fm_schema_refuse_memory(work);
    if (code == FM_OK && !json_object_is_type(value, json_type_array)) {
        code = fm_schema_refuse(work, at, "a list of strings is expected");
    }
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        struct json_object *element = json_object_array_get_idx(value, i);
        const char *name = is_name(element) ? json_object_get_string(element) : NULL;
        if (!name) {
            code = fm_schema_refuse(work, at, "a list of strings is expected, without a NUL in them");
        } else if (lh_table_lookup_ex(names, name, NULL)) {
            code = fm_schema_refuse(work, at, "\"%.60s\" stands in the list twice; leave one out", name);
        } else if (properties && is_false(fm_schema_member(properties, name))) {
            code = fm_schema_refuse(work, at, "\"%.60s\" is required, but no value fits its schema", name);
        } else if (lh_table_insert(names, name, NULL) != 0) {
            code = fm_schema_refuse_memory(work);
        }
    }
    if (names) {
        lh_table_free(names);
    }
    return code;
}

static enum fm_code check_pattern_properties(struct fm_schema_work *work, const struct fm_schema_place *place,
                                             struct json_object *value, const struct fm_schema_at *at) {
    (void)place;
    struct json_object_iter member_at;
    json_object_object_foreachC(value, member_at) {
        const char *name = member_at.key;
        const struct fm_schema_at member = {.parent = at, .key = name};
        const char *reason;
        if (strlen(name) > FM_SCHEMA_PATTERN_MAX) {
            return fm_schema_refuse(work, &member, "a pattern of up to %d bytes is expected", FM_SCHEMA_PATTERN_MAX);
        }
        if (translate(work, name, strlen(name), &reason) == FM_PATTERN_WRONG) {
            return fm_schema_refuse(work, &member, "this pattern is not valid: %s", reason);
        }
    }
    return FM_OK;
}

static int compare_keys(const void *one, const void *other) {
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/*
 * Whether no key can match two patterns. The patterns are sorted. If two patterns have a common beginning, all patterns
 * between them have it too, so only neighbours are compared.
 */
static bool all_disjoint(struct fm_schema_work *work, struct json_object *value) {
    size_t count = 0;
    const char **keys = malloc((size_t)json_object_object_length(value) * sizeof *keys + 1);
    if (!keys) {
        work->no_memory = true;
        return false;
    }
    struct json_object_iter member_at;
    json_object_object_foreachC(value, member_at) {
        keys[count++] = member_at.key;
    }
    qsort(keys, count, sizeof *keys, compare_keys);
    bool disjoint = true;
    for (size_t i = 1; i < count && disjoint; i++) {
        disjoint = fm_pattern_disjoint(keys[i - 1], keys[i]);
    }
    free(keys);
    return disjoint;
}

/* llguidance needs patterns that can't both match a key, also when it merges objects. */
static enum fm_schema_fate pattern_properties_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                                   struct json_object *value) {
    (void)place;
    if (work->merges && work->pattern_properties > 1) {
        return only_checked(work, "several stand in a schema that combines others");
    }
    struct json_object_iter member_at;
    json_object_object_foreachC(value, member_at) {
        const char *name = member_at.key;
        if (translate(work, name, strlen(name), &work->reason) != FM_PATTERN_OK) {
            return FM_FATE_CHECKED;
        }
    }
    return all_disjoint(work, value) ? FM_FATE_ENFORCED : FM_FATE_CHECKED;
}

static enum fm_code put_pattern_properties(struct fm_schema_work *work, const struct fm_schema_place *place,
                                           struct json_object *value, const struct fm_schema_at *at) {
    enum fm_code code = FM_OK;
    fm_json_key(&work->guide, "patternProperties");
    fm_json_object_begin(&work->guide);
    struct json_object_iter member_at;
    json_object_object_foreachC(value, member_at) {
        const char *name = member_at.key;
        struct json_object *schema = member_at.val;
        const struct fm_schema_at member = {.parent = at, .key = name};
        const char *reason;
        if (code == FM_OK) {
            (void)translate(work, name, strlen(name), &reason);
            fm_json_key_text(&work->guide, work->scratch.data ? work->scratch.data : "", work->scratch.len);
            code = write_schema(work, place, schema, &member);
        }
    }
    fm_json_object_end(&work->guide);
    return code;
}

/*
 * llguidance expects patternProperties directly beside additionalProperties. So if a schema has both, the latter writes
 * both.
 */
static enum fm_code write_pattern_properties(struct fm_schema_work *work, const struct fm_schema_place *place,
                                             struct json_object *value, const struct fm_schema_at *at) {
    return has(place, "additionalProperties") ? FM_OK : put_pattern_properties(work, place, value, at);
}

/* additionalProperties is about the keys that match no pattern, so it has the same fate as the patterns. */
static enum fm_schema_fate additional_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                           struct json_object *value) {
    struct json_object *patterns = fm_schema_member(place->schema, "patternProperties");
    if (!patterns || is_true(value)) {
        return FM_FATE_ENFORCED;
    }
    enum fm_schema_fate fate = pattern_properties_fate(work, place, patterns);
    work->reason = "the patternProperties beside it can't be";
    return fate;
}

static enum fm_code write_additional(struct fm_schema_work *work, const struct fm_schema_place *place,
                                     struct json_object *value, const struct fm_schema_at *at) {
    struct json_object *patterns = fm_schema_member(place->schema, "patternProperties");
    enum fm_code code = FM_OK;
    if (patterns && pattern_properties_fate(work, place, patterns) == FM_FATE_ENFORCED) {
        const struct fm_schema_at beside = {.parent = place->at, .key = "patternProperties"};
        code = put_pattern_properties(work, place, patterns, &beside);
    }
    fm_json_key(&work->guide, at->key);
    return code == FM_OK ? write_schema(work, place, value, at) : code;
}

/* How many keys a schema names, and how many it requires. */
struct keys {
    int64_t required;
    int64_t optional; /* keys in `properties` that are not required */
    bool closed;      /* no other keys */
    int64_t least;    /* minProperties, less the required keys */
    int64_t most;     /* maxProperties, less the required keys; INT64_MAX: none */
};

static struct keys count_keys(struct json_object *schema) {
    struct keys keys = {.most = INT64_MAX};
    struct json_object *properties = fm_schema_member(schema, "properties");
    struct json_object *required = fm_schema_member(schema, "required");
    int64_t known = 0;
    keys.required = required ? (int64_t)json_object_array_length(required) : 0;
    for (size_t i = 0; properties && i < (size_t)keys.required; i++) {
        const char *name = json_object_get_string(json_object_array_get_idx(required, i));
        known += json_object_object_get_ex(properties, name, NULL);
    }
    keys.optional = properties ? json_object_object_length(properties) - known : 0;
    struct json_object *patterns = fm_schema_member(schema, "patternProperties");
    keys.closed = is_false(fm_schema_member(schema, "additionalProperties")) &&
                  (!patterns || json_object_object_length(patterns) == 0);
    keys.least = count_of(schema, "minProperties", 0) - keys.required;
    keys.least = keys.least > 0 ? keys.least : 0;
    int64_t most = count_of(schema, "maxProperties", INT64_MAX);
    if (most != INT64_MAX) {
        keys.most = most > keys.required ? most - keys.required : 0;
    }
    return keys;
}

/* The only bounds that llguidance supports for optional keys: at least, at most or exactly one of them. */
static bool one_optional(const struct keys *keys) {
    return keys->closed && keys->optional <= FM_SCHEMA_CHOICES_MAX && keys->least <= 1 &&
           (keys->most == 1 || keys->most == INT64_MAX);
}

bool fm_schema_key_counts_fit(struct json_object *schema) {
    struct json_object *required = fm_schema_member(schema, "required");
    int64_t most = count_of(schema, "maxProperties", INT64_MAX);
    return (required ? (int64_t)json_object_array_length(required) : 0) <= most &&
           count_of(schema, "minProperties", 0) <= most;
}

/* Other keys may occur twice in the text, and then they count twice. So only a count of one can be enforced. */
static enum fm_schema_fate least_properties_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                                 struct json_object *value) {
    struct keys keys = count_keys(place->schema);
    (void)value;
    if (!fm_schema_key_counts_fit(place->schema)) {
        return FM_FATE_ENFORCED;
    }
    if (keys.least == 0) {
        return FM_FATE_IMPLIED;
    }
    bool enforced = keys.optional == 0 ? keys.least == 1 : one_optional(&keys);
    return enforced && !work->merges ? FM_FATE_ENFORCED : FM_FATE_CHECKED;
}

static enum fm_schema_fate most_properties_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                                struct json_object *value) {
    struct keys keys = count_keys(place->schema);
    /* if all of it is in the guide, llguidance sees this and allows no object */
    if (!fm_schema_key_counts_fit(place->schema)) {
        return FM_FATE_ENFORCED;
    }
    if (keys.closed && keys.most >= keys.optional) {
        return FM_FATE_IMPLIED;
    }
    bool enforced = keys.optional == 0 || one_optional(&keys);
    return enforced && !work->merges ? most_fate(work, place, value) : FM_FATE_CHECKED;
}

static enum fm_code check_dependent_required(struct fm_schema_work *work, const struct fm_schema_place *place,
                                             struct json_object *value, const struct fm_schema_at *at) {
    enum fm_code code = FM_OK;
    if (!json_object_is_type(value, json_type_object)) {
        return fm_schema_refuse(work, at, "an object of lists of strings is expected");
    }
    struct json_object_iter member_at;
    json_object_object_foreachC(value, member_at) {
        const char *name = member_at.key;
        struct json_object *names = member_at.val;
        const struct fm_schema_at member = {.parent = at, .key = name};
        code = code == FM_OK ? check_required(work, place, names, &member) : code;
    }
    return code;
}

/* Up to draft 7: schemas and lists of names in the same object. */
static enum fm_code check_dependencies(struct fm_schema_work *work, const struct fm_schema_place *place,
                                       struct json_object *value, const struct fm_schema_at *at) {
    enum fm_code code = FM_OK;
    struct json_object_iter member_at;
    json_object_object_foreachC(value, member_at) {
        const char *name = member_at.key;
        struct json_object *entry = member_at.val;
        const struct fm_schema_at member = {.parent = at, .key = name};
        if (code == FM_OK && json_object_is_type(entry, json_type_array)) {
            code = check_required(work, place, entry, &member);
        }
    }
    return code;
}

static enum fm_schema_fate unless_empty_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                             struct json_object *value) {
    (void)work;
    (void)place;
    return json_object_object_length(value) ? FM_FATE_CHECKED : FM_FATE_IGNORED;
}

static enum fm_schema_fate condition_fate(struct fm_schema_work *work, const struct fm_schema_place *place,
                                          struct json_object *value) {
    (void)work;
    (void)value;
    bool counts = has(place, "if") && (has(place, "then") || has(place, "else"));
    return counts ? FM_FATE_CHECKED : FM_FATE_IGNORED;
}

/* Writes one schema under its key. */
static enum fm_code write_under_key(struct fm_schema_work *work, const struct fm_schema_place *place,
                                    struct json_object *value, const struct fm_schema_at *at) {
    fm_json_key(&work->guide, strcmp(at->key, "additionalItems") == 0 ? "items" : at->key);
    return write_schema(work, place, value, at);
}

/* ---- the table ---- */

/*
 * Drafts 4 to 2020-12, in strcmp's order. A keyword is used in every draft, except where drafts differ (items,
 * prefixItems, additionalItems, exclusive*, id). An answer stays right if more keywords are enforced than its draft
 * has.
 */
// clang-format off
static const struct fm_schema_keyword keywords[] = {
    {.name = "$anchor", .check = check_name},
    {.name = "$comment"},
    {.name = "$defs", .shape = FM_SHAPE_MAP},
    {.name = "$dynamicAnchor", .check = check_name},
    {.name = "$dynamicRef", .checked_in_place = true, .check = check_dynamic_ref,
     .advice = LIBRARY_LACKS "; $ref is there"},
    {.name = "$id", .check = check_name},
    {.name = "$recursiveAnchor", .check = check_bool},
    {.name = "$recursiveRef", .checked_in_place = true, .check = check_dynamic_ref,
     .advice = LIBRARY_LACKS "; $ref is there"},
    {.name = "$ref", .in_place = true, .check = check_ref, .write = write_ref},
    {.name = "$schema", .check = check_draft},
    {.name = "$vocabulary"},
    {.name = "additionalItems", .shape = FM_SHAPE_ONE, .fate = additional_items_fate, .write = write_under_key},
    {.name = "additionalProperties", .shape = FM_SHAPE_ONE, .fate = additional_fate, .write = write_additional},
    {.name = "allOf", .shape = FM_SHAPE_LIST, .in_place = true, .write = write_all_of},
    {.name = "anyOf", .shape = FM_SHAPE_LIST, .in_place = true, .write = write_any_of},
    {.name = "const", .check = check_const, .fate = literal_fate, .write = write_value},
    {.name = "contains", .shape = FM_SHAPE_ONE, .advice = LIBRARY_LACKS "; prefixItems can ask for certain items"},
    {.name = "contentEncoding"},
    {.name = "contentMediaType"},
    {.name = "contentSchema", .shape = FM_SHAPE_ONE},
    {.name = "default"},
    {.name = "definitions", .shape = FM_SHAPE_MAP},
    {.name = "dependencies", .shape = FM_SHAPE_MIXED, .checked_in_place = true, .check = check_dependencies,
     .fate = unless_empty_fate,
     .advice = LIBRARY_LACKS "; anyOf can list the cases"},
    {.name = "dependentRequired", .check = check_dependent_required, .fate = unless_empty_fate,
     .advice = LIBRARY_LACKS "; anyOf can list the cases"},
    {.name = "dependentSchemas", .shape = FM_SHAPE_MAP, .checked_in_place = true, .fate = unless_empty_fate,
     .advice = LIBRARY_LACKS "; anyOf can list the cases"},
    {.name = "deprecated"},
    {.name = "description"},
    {.name = "else", .shape = FM_SHAPE_ONE, .checked_in_place = true, .fate = condition_fate,
     .advice = LIBRARY_LACKS "; anyOf can list the cases"},
    {.name = "enum", .check = check_enum, .fate = literal_fate, .write = write_value},
    {.name = "examples"},
    {.name = "exclusiveMaximum", .check = check_exclusive, .fate = exclusive_fate, .write = write_bound,
     .advice = NEAR_BOUND},
    {.name = "exclusiveMinimum", .check = check_exclusive, .fate = exclusive_fate, .write = write_bound,
     .advice = NEAR_BOUND},
    {.name = "format", .check = check_name, .fate = format_fate, .write = write_format,
     .advice = "a regular expression can't check this format"},
    {.name = "id", .check = check_id},
    {.name = "if", .shape = FM_SHAPE_ONE, .checked_in_place = true, .fate = condition_fate,
     .advice = LIBRARY_LACKS "; anyOf can list the cases"},
    {.name = "items", .shape = FM_SHAPE_EITHER, .check = check_items, .write = write_items},
    {.name = "maxContains", .check = check_count, .fate = contains_fate, .advice = LIBRARY_LACKS},
    {.name = "maxItems", .check = check_count, .fate = most_fate, .write = write_count},
    {.name = "maxLength", .check = check_count, .fate = most_fate, .write = write_count},
    {.name = "maxProperties", .check = check_count, .fate = most_properties_fate, .write = write_count,
     .advice = "only one optional property can be counted, and only if additionalProperties is false"},
    {.name = "maximum", .check = check_bound, .write = write_bound},
    {.name = "minContains", .check = check_count, .fate = contains_fate, .advice = LIBRARY_LACKS},
    {.name = "minItems", .check = check_least, .write = write_count},
    {.name = "minLength", .check = check_least, .write = write_count},
    {.name = "minProperties", .check = check_least, .fate = least_properties_fate, .write = write_count,
     .advice = "only one optional property can be counted, and only if additionalProperties is false; required can "
               "ask for certain ones"},
    {.name = "minimum", .check = check_bound, .write = write_bound},
    {.name = "multipleOf", .check = check_multiple, .fate = multiple_fate, .write = write_multiple,
     .advice = "it has more than four decimal places, or with the others a least common multiple of too many digits"},
    {.name = "not", .shape = FM_SHAPE_ONE, .checked_in_place = true, .advice = LIBRARY_LACKS "; say what is allowed"},
    {.name = "oneOf", .shape = FM_SHAPE_LIST, .in_place = true, .fate = one_of_fate, .write = write_one_of,
     .advice = "nothing shows that no value fits two of its schemas; use anyOf, or a required property with a const "
               "of its own in each"},
    {.name = "pattern", .check = check_pattern, .fate = pattern_fate, .write = write_pattern},
    {.name = "patternProperties", .shape = FM_SHAPE_MAP, .check = check_pattern_properties, .fate = pattern_properties_fate,
     .write = write_pattern_properties, .advice = "nothing shows that no key fits two of its patterns"},
    {.name = "prefixItems", .shape = FM_SHAPE_LIST, .fate = prefix_items_fate, .write = write_prefix_items},
    {.name = "properties", .shape = FM_SHAPE_MAP, .write = write_map},
    {.name = "propertyNames", .shape = FM_SHAPE_ONE, .fate = unless_true_fate,
     .advice = LIBRARY_LACKS "; patternProperties with additionalProperties false is there"},
    {.name = "readOnly"},
    {.name = "required", .check = check_required, .write = write_value},
    {.name = "then", .shape = FM_SHAPE_ONE, .checked_in_place = true, .fate = condition_fate,
     .advice = LIBRARY_LACKS "; anyOf can list the cases"},
    {.name = "title"},
    {.name = "type", .check = check_type, .write = write_value},
    {.name = "unevaluatedItems", .shape = FM_SHAPE_ONE, .fate = unless_true_fate, .advice = LIBRARY_LACKS "; items is there"},
    {.name = "unevaluatedProperties", .shape = FM_SHAPE_ONE, .fate = unless_true_fate,
     .advice = LIBRARY_LACKS "; additionalProperties is there"},
    {.name = "uniqueItems", .check = check_bool, .fate = if_true_fate, .advice = LIBRARY_LACKS},
    {.name = "writeOnly"},
};
// clang-format on

const struct fm_schema_table fm_schema_table = {keywords, sizeof keywords / sizeof keywords[0]};
