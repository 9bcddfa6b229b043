/*
 * Declarations that the files of fm_schema_prepare share. Only these files, text_grammar.c and tests include this
 * header.
 */
#ifndef FM_ENGINE_GUIDE_SCHEMA_INTERNAL_H
#define FM_ENGINE_GUIDE_SCHEMA_INTERNAL_H

#include "engine/guide/schema.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdint.h>

/* The place of a value: a chain of parents. The last one holds the beginning of the path as text. */
struct fm_schema_at {
    const struct fm_schema_at *parent; /* NULL: `key` is a path, "" for the root */
    const char *key;                   /* NULL: an array element, `index` */
    size_t index;
};

enum fm_schema_draft { FM_DRAFT_4, FM_DRAFT_6, FM_DRAFT_7, FM_DRAFT_2019_09, FM_DRAFT_2020_12 };

/* A schema that a walk visits. */
struct fm_schema_place {
    struct json_object *schema;
    const struct fm_schema_at *at;
    size_t resource; /* index in work->resources of the resource whose base URI applies inside it */
    int depth;       /* 1: at the start of the walk */
};

/* A schema with a `$id`; the first one is the root, with or without a `$id`. */
struct fm_schema_resource {
    struct json_object *schema;
    const char *id; /* borrowed; "": none */
    char *where;    /* path; owned */
};

struct fm_schema_anchor {
    struct json_object *schema;
    const char *name; /* borrowed */
    size_t resource;
    char *where; /* path; owned */
};

enum fm_schema_visit { FM_VISIT_NEW, FM_VISIT_OPEN, FM_VISIT_DONE };

/* What a $ref names. */
struct fm_schema_target {
    struct json_object *schema;
    char *where; /* path; owned */
    size_t resource;
    bool unchecked;                /* keywords do not make this place a schema, so no walk has reached it */
    size_t number;                 /* the target's key in the guide's $defs, from 1; 0: not in the guide */
    enum fm_schema_visit in_place; /* state of the search for cycles of $refs that consume nothing */
    /* state of the search for schemas that llguidance can't merge, and for depth; begins at the root */
    enum fm_schema_visit nested;
    unsigned types; /* for schema_endless.c: the set of types that its values can have */
    bool possible;  /* for schema_endless.c: some value fits the target, if endless values count */
    size_t pass;    /* for schema_endless.c: the last pass that visited the target */
};

enum { FM_SCHEMA_FRACTIONS = 16 };

struct fm_schema_table;

struct fm_schema_work {
    /* the table of keywords. Keywords call the walks, and the walks find keywords here */
    const struct fm_schema_table *table;
    struct json_object *root;
    struct fm_error *error;
    bool strict;
    enum fm_schema_draft draft;

    size_t subschemas;
    size_t enum_values;
    size_t pattern_properties; /* number of such keywords in total */
    bool merges;               /* llguidance merges some schemas: several places together say what they require */
    /* a nested `$id` is not a plain name, so relative references could mean another folder */
    bool paths_differ;
    int64_t multiple; /* least common multiple of the enforced `multipleOf`, in units of 10^-multiple_exp */
    int multiple_exp;
    /* the integer parts of all bounds that are not integers, without repetitions */
    double fractions[FM_SCHEMA_FRACTIONS];
    size_t fraction_count; /* FM_SCHEMA_FRACTIONS + 1: there are more */
    size_t fuel;           /* comparisons left for oneOf, of up to 64 bytes each */
    /* the reason why the present keyword can only be checked; NULL: its row decides */
    const char *reason;

    struct lh_table *seen; /* schemas that were indexed; value: the resource inside + 1 */
    struct fm_schema_resource *resources;
    size_t resource_count;
    size_t resource_cap;
    struct fm_schema_anchor *anchors;
    size_t anchor_count;
    size_t anchor_cap;
    struct fm_schema_target *targets;
    size_t target_count;
    size_t target_cap;
    struct lh_table *target_of; /* from a schema to its target's index + 1 */
    struct lh_table *target_by; /* from a $ref's value to its target's index + 1: oneOf follows a $ref often */
    size_t *defs;               /* targets in the order of their numbers */
    size_t def_count;
    size_t def_cap;

    struct fm_json_writer guide;
    struct fm_buf scratch; /* a pattern */
    bool no_memory;        /* memory ran out for a pattern once */
    struct fm_buf path;
    struct fm_buf checked; /* elements of the report's list */
    struct fm_json_writer checked_list;
    size_t checked_count;
    uint64_t enforced[2]; /* one bit for each row of the table: the keyword was enforced */
};

enum fm_schema_fate {
    FM_FATE_IGNORED,  /* says nothing about the text, or nothing that other keywords do not say */
    FM_FATE_ENFORCED, /* goes into the guide */
    FM_FATE_IMPLIED,  /* enforced by other parts of the guide */
    FM_FATE_CHECKED,  /* only a validator can decide */
};

/* What a keyword's value is made of. */
enum fm_schema_shape {
    FM_SHAPE_VALUE,  /* no schema in it */
    FM_SHAPE_ONE,    /* a schema */
    FM_SHAPE_LIST,   /* an array of schemas, not empty */
    FM_SHAPE_EITHER, /* a schema, or an array of schemas */
    FM_SHAPE_MAP,    /* an object of schemas */
    FM_SHAPE_MIXED,  /* an object of schemas and lists of strings */
};

struct fm_schema_keyword;

typedef enum fm_code fm_schema_value_fn(struct fm_schema_work *work, const struct fm_schema_place *place,
                                        struct json_object *value, const struct fm_schema_at *at);
typedef enum fm_schema_fate fm_schema_fate_fn(struct fm_schema_work *work, const struct fm_schema_place *place,
                                              struct json_object *value);
typedef enum fm_code fm_schema_child_fn(struct fm_schema_work *work, const struct fm_schema_place *child,
                                        const struct fm_schema_keyword *keyword, void *context);

/* A row of the table. With neither `write` nor `advice` it is an annotation. */
struct fm_schema_keyword {
    const char *name;
    enum fm_schema_shape shape;
    bool in_place;             /* its schemas describe the same value as the schema that contains them */
    bool checked_in_place;     /* its schemas describe the same value, but are never in the guide */
    fm_schema_value_fn *check; /* NULL: any value of its shape */
    fm_schema_fate_fn *fate;   /* NULL: enforced if there is `write`, otherwise checked */
    fm_schema_value_fn *write; /* NULL: never in the guide */
    const char *advice;        /* not NULL: the reason why perhaps only a validator can decide */
};

/* The rows of all keywords, in strcmp's order of their names. */
struct fm_schema_table {
    const struct fm_schema_keyword *rows;
    size_t count;
};

/* ---- schema_work.c ---- */

/*
 * Fails with FM_INVALID_REQUEST for the value `at`. `param` names the value; the sentence does not. Returns the code.
 */
enum fm_code fm_schema_refuse(struct fm_schema_work *work, const struct fm_schema_at *at, const char *fmt, ...)
    FM_PRINTF(3, 4);
enum fm_code fm_schema_refuse_memory(struct fm_schema_work *work);

/*
 * Returns a path as text, which the caller frees: at most 1,024 bytes, with "..." at the end if the path was cut. NULL:
 * out of memory.
 */
char *fm_schema_path(struct fm_schema_work *work, const struct fm_schema_at *at);

/* Writes `prefix` and the path into work->path, with a NUL. */
void fm_schema_write_path(struct fm_schema_work *work, const char *prefix, const struct fm_schema_at *at);

/* Makes room for one more element of `size` bytes in `*list`. False: out of memory; the list stays as it is. */
FM_MUST_USE bool fm_schema_grow(void **list, size_t *cap, size_t count, size_t size);

/* A member of a schema; NULL when it is absent or null. */
struct json_object *fm_schema_member(struct json_object *schema, const char *name);

/* The row of a keyword; NULL if the keyword is unknown. */
const struct fm_schema_keyword *fm_schema_keyword_find(const struct fm_schema_table *table, const char *name);
size_t fm_schema_keyword_index(const struct fm_schema_table *table, const struct fm_schema_keyword *keyword);

/* The row `index`; NULL after the last. */
const struct fm_schema_keyword *fm_schema_keyword_at(const struct fm_schema_table *table, size_t index);

/* Calls `visit` for every schema in a keyword's value that has the right shape. */
FM_MUST_USE enum fm_code fm_schema_children(struct fm_schema_work *work, const struct fm_schema_place *place,
                                            const struct fm_schema_keyword *keyword, struct json_object *value,
                                            fm_schema_child_fn *visit, void *context);

/* ---- schema_index.c ---- */

/* Checks the limits and the form of the schemas below `place`, and records their names ($id, anchors). */
FM_MUST_USE enum fm_code fm_schema_index(struct fm_schema_work *work, const struct fm_schema_place *place);

/* The resource inside a schema that was indexed; `outer` for any other value. */
size_t fm_schema_resource_inside(const struct fm_schema_work *work, struct json_object *value, size_t outer);

/* Whether `uri` begins with a scheme. */
bool fm_schema_is_absolute(const char *uri);

/* ---- schema_write.c ---- */

/* Writes a schema into the guide. */
FM_MUST_USE enum fm_code fm_schema_write(struct fm_schema_work *work, const struct fm_schema_place *place);

/* Writes all of the guide; after the other walks. */
FM_MUST_USE enum fm_code fm_schema_write_guide(struct fm_schema_work *work, const struct fm_schema_place *root);

/* Writes the report; after the guide. */
void fm_schema_write_report(const struct fm_schema_work *work, struct fm_buf *report);

/* ---- schema_keywords.c ---- */

extern const struct fm_schema_table fm_schema_table;

/*
 * Whether an object can have as many keys as `required`, minProperties and maxProperties ask for. All three were
 * checked before.
 */
bool fm_schema_key_counts_fit(struct json_object *schema);

/* The draft that the root's `$schema` names. Wrong values are found later. */
enum fm_schema_draft fm_schema_draft_of(struct json_object *root);

/* ---- schema_ref.c ---- */

/* The target of the $ref `at`, in a schema of `resource`: an index of work->targets. */
FM_MUST_USE enum fm_code fm_schema_resolve(struct fm_schema_work *work, size_t resource, struct json_object *ref,
                                           const struct fm_schema_at *at, size_t *target);

/* Works as fm_schema_resolve, but `*target` becomes SIZE_MAX if the $ref names nothing in this schema. */
FM_MUST_USE enum fm_code fm_schema_find_target(struct fm_schema_work *work, size_t resource, struct json_object *ref,
                                               const struct fm_schema_at *at, size_t *target);

/* Refuses cycles of $refs that consume nothing, cycles that llguidance can't merge, and chains that are too long. */
FM_MUST_USE enum fm_code fm_schema_check_graph(struct fm_schema_work *work);

/* ---- schema_endless.c ---- */

/*
 * Refuses a root that no value fits, if types and counts of keys show that, and a $ref to a schema that no value fits
 * because it needs itself without end. Call it after fm_schema_check_graph.
 */
FM_MUST_USE enum fm_code fm_schema_check_endless(struct fm_schema_work *work, const struct fm_schema_at *root);

/* ---- schema_pattern.c ---- */

enum fm_pattern {
    FM_PATTERN_OK,
    FM_PATTERN_UNABLE, /* a valid pattern that llguidance does not support */
    FM_PATTERN_WRONG,  /* not a pattern of ECMA-262 */
};

/*
 * Translates a pattern of ECMA-262 (flag u) into Rust's regex syntax, with the same meaning; `out` is overwritten. If
 * that is impossible, `*reason` is a static text that says why. Linear, not recursive. Out of memory shows in
 * out->failed.
 */
enum fm_pattern fm_pattern_translate(const char *text, size_t len, struct fm_buf *out, const char **reason);

/* Whether no string can match both; false when their beginnings do not show that. */
bool fm_pattern_disjoint(const char *one, const char *other);

/*
 * A regex, in Rust's syntax, of the strings that a `format` allows, or of fewer strings if the definitions of the
 * format differ. NULL: the format is unknown, or no regex describes it.
 */
const char *fm_format_pattern(const char *name);

/* ---- schema_disjoint.c ---- */

/*
 * Whether no value can fit two of the branches of a oneOf. False when that is not clear, or when work->fuel is used up.
 */
bool fm_schema_disjoint(struct fm_schema_work *work, size_t resource, struct json_object *branches);

#endif
