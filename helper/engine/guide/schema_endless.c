/*
 * Schemas that no value fits. If types and counts of keys show that for the root, it is refused here, so that the error
 * names the part at fault; the rest is left to llguidance, which leaves out optional parts. A schema may also need
 * itself without end: an object that requires an object of the same kind, or a list with at least one such list. With a
 * grammar that would only show during generation, and the text could never end.
 *
 * For each schema that a $ref names, this computes the set of types that its values can have; keywords derive it from
 * the sets of other schemas. The greatest solution includes endless values, the least one does not: a schema that is
 * empty only in the least one is refused. Keywords that are not considered here can only make a set too large, never
 * too small.
 */
#include "engine/guide/schema_internal.h"

#include <string.h>

/* Enough for all but very complicated schemas, which are left to the grammar. */
#define PASSES_MAX 32

/* How many $refs are followed one after another; after that, the result of the previous pass is used. */
#define FOLLOWED_MAX 64

enum { OBJECT = 1, ARRAY = 2, SCALAR = 4, ALL_TYPES = 127 };

/* The bits of SCALAR and above tell scalars apart. An integer is a number. */
static const struct {
    const char *name;
    unsigned type;
} types[] = {{"object", OBJECT},      {"array", ARRAY},         {"null", SCALAR},       {"boolean", SCALAR << 1},
             {"number", SCALAR << 2}, {"integer", SCALAR << 2}, {"string", SCALAR << 3}};

struct search {
    struct fm_schema_work *work;
    size_t pass;
    size_t followed;
    bool changed; /* a set changed in this pass */
};

static unsigned types_of(struct search *search, struct json_object *schema);

/* ---- the types that keywords allow ---- */

static unsigned type_named(struct json_object *name) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(json_object_get_string(name), types[i].name) == 0) {
            return types[i].type;
        }
    }
    return 0;
}

static unsigned named_types(struct json_object *type) {
    unsigned found = 0;
    if (!json_object_is_type(type, json_type_array)) {
        return type ? type_named(type) : ALL_TYPES;
    }
    for (size_t i = 0; i < json_object_array_length(type); i++) {
        found |= type_named(json_object_array_get_idx(type, i));
    }
    return found;
}

static unsigned target_types(struct search *search, struct fm_schema_target *target) {
    if (target->pass != search->pass && search->followed < FOLLOWED_MAX) {
        target->pass = search->pass;
        search->followed++;
        unsigned found = types_of(search, target->schema);
        search->followed--;
        search->changed = search->changed || found != target->types;
        target->types = found;
    }
    return target->types;
}

static unsigned ref_types(struct search *search, struct json_object *ref) {
    void *number = NULL;
    bool known = ref && lh_table_lookup_ex(search->work->target_by, ref, &number);
    return known ? target_types(search, &search->work->targets[(size_t)(uintptr_t)number - 1]) : ALL_TYPES;
}

static unsigned all_of_types(struct search *search, struct json_object *list) {
    unsigned found = ALL_TYPES;
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        found &= types_of(search, json_object_array_get_idx(list, i));
    }
    return found;
}

static unsigned any_of_types(struct search *search, struct json_object *list) {
    unsigned found = list ? 0 : ALL_TYPES;
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        found |= types_of(search, json_object_array_get_idx(list, i));
    }
    return found;
}

/* Whether the property can have a value. */
static bool property_fits(struct search *search, struct json_object *schema, const char *name) {
    struct json_object *properties = fm_schema_member(schema, "properties");
    struct json_object *property = NULL;
    if (properties && json_object_object_get_ex(properties, name, &property)) {
        return types_of(search, property) != 0;
    }
    struct json_object *additional = fm_schema_member(schema, "additionalProperties");
    return !additional || fm_schema_member(schema, "patternProperties") || types_of(search, additional) != 0;
}

/* Whether there can be as many properties as minProperties asks for. */
static bool enough_fit(struct search *search, struct json_object *schema) {
    int64_t least = json_object_get_int64(fm_schema_member(schema, "minProperties"));
    struct json_object *properties = fm_schema_member(schema, "properties");
    if (least == 0 || property_fits(search, schema, "")) { /* any name that is not in `properties` */
        return true;
    }
    if (properties) {
        struct json_object_iter member_at;
        json_object_object_foreachC(properties, member_at) {
            least -= types_of(search, member_at.val) != 0;
        }
    }
    return least <= 0;
}

static bool object_fits(struct search *search, struct json_object *schema) {
    struct json_object *required = fm_schema_member(schema, "required");
    bool fits = fm_schema_key_counts_fit(schema) && enough_fit(search, schema);
    for (size_t i = 0; required && i < json_object_array_length(required) && fits; i++) {
        fits = property_fits(search, schema, json_object_get_string(json_object_array_get_idx(required, i)));
    }
    return fits;
}

static bool array_fits(struct search *search, struct json_object *schema) {
    size_t least = (size_t)json_object_get_int64(fm_schema_member(schema, "minItems"));
    struct json_object *rest = fm_schema_member(schema, "items");
    struct json_object *first = NULL;
    if (search->work->draft == FM_DRAFT_2020_12) {
        first = fm_schema_member(schema, "prefixItems");
    } else if (json_object_is_type(rest, json_type_array)) {
        first = rest;
        rest = fm_schema_member(schema, "additionalItems");
    }
    size_t count = first ? json_object_array_length(first) : 0;
    bool fits = least <= count || !rest || types_of(search, rest) != 0;
    for (size_t i = 0; i < count && i < least && fits; i++) {
        fits = types_of(search, json_object_array_get_idx(first, i)) != 0;
    }
    return fits;
}

/* Recursion: at most FOLLOWED_MAX times the depth of schemas inside each other. */
static unsigned types_of(struct search *search, struct json_object *schema) {
    if (!json_object_is_type(schema, json_type_object)) {
        return json_object_get_boolean(schema) ? ALL_TYPES : 0;
    }
    unsigned found = named_types(fm_schema_member(schema, "type"));
    found &= ref_types(search, fm_schema_member(schema, "$ref"));
    found &= all_of_types(search, fm_schema_member(schema, "allOf"));
    found &= any_of_types(search, fm_schema_member(schema, "anyOf"));
    found &= any_of_types(search, fm_schema_member(schema, "oneOf"));
    found &= found & OBJECT && !object_fits(search, schema) ? ~(unsigned)OBJECT : ALL_TYPES;
    found &= found & ARRAY && !array_fits(search, schema) ? ~(unsigned)ARRAY : ALL_TYPES;
    return found;
}

/* ---- the solutions ---- */

/* Whether the schema is in the guide. Other schemas may have any form, and do no harm. */
static bool counts(const struct fm_schema_target *target) {
    return target->nested == FM_VISIT_DONE;
}

/* Computes the solution that iteration from `start` reaches. False: the iteration reached no solution. */
static bool solve(struct search *search, unsigned start) {
    struct fm_schema_work *work = search->work;
    for (size_t i = 0; i < work->target_count; i++) {
        work->targets[i].types = start;
    }
    search->changed = true;
    for (size_t passes = 0; passes < PASSES_MAX && search->changed; passes++) {
        search->changed = false;
        search->pass++;
        for (size_t i = 0; i < work->target_count; i++) {
            if (counts(&work->targets[i])) {
                (void)target_types(search, &work->targets[i]);
            }
        }
    }
    return !search->changed;
}

/* ---- the part at fault ---- */

/* A part of the schema. Every value that fits the whole schema must fit this part, or contain a value that does. */
struct part {
    struct json_object *schema;
    struct fm_schema_at keyword;
    struct fm_schema_at at; /* below `keyword`, or a path */
};

static bool unfit_ref(struct search *search, struct json_object *schema, struct part *part) {
    struct json_object *ref = fm_schema_member(schema, "$ref");
    void *number = NULL;
    if (!ref || !lh_table_lookup_ex(search->work->target_by, ref, &number)) {
        return false;
    }
    const struct fm_schema_target *target = &search->work->targets[(size_t)(uintptr_t)number - 1];
    part->schema = target->schema;
    part->at = (struct fm_schema_at){.key = target->where};
    return target->types == 0;
}

static bool unfit_branch(struct search *search, struct json_object *schema, struct part *part) {
    struct json_object *list = fm_schema_member(schema, "allOf");
    part->keyword.key = "allOf";
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        part->schema = json_object_array_get_idx(list, i);
        part->at = (struct fm_schema_at){.parent = &part->keyword, .index = i};
        if (types_of(search, part->schema) == 0) {
            return true;
        }
    }
    return false;
}

static bool unfit_property(struct search *search, struct json_object *schema, struct part *part) {
    struct json_object *required = fm_schema_member(schema, "required");
    struct json_object *properties = fm_schema_member(schema, "properties");
    part->keyword.key = "properties";
    for (size_t i = 0; required && properties && i < json_object_array_length(required); i++) {
        const char *name = json_object_get_string(json_object_array_get_idx(required, i));
        part->at = (struct fm_schema_at){.parent = &part->keyword, .key = name};
        if (json_object_object_get_ex(properties, name, &part->schema) && types_of(search, part->schema) == 0) {
            return true;
        }
    }
    return false;
}

/* Refuses a schema that no value fits. Recurses as deep as schemas are inside each other, at most FOLLOWED_MAX. */
static enum fm_code refuse_unfit(struct search *search, struct json_object *schema, const struct fm_schema_at *at,
                                 size_t depth) {
    struct part part = {.keyword = {.parent = at}};
    if (!json_object_is_type(schema, json_type_object)) {
        return fm_schema_refuse(search->work, at, "no value fits false. Leave it out, or say what is allowed");
    }
    if (depth < FOLLOWED_MAX && (unfit_ref(search, schema, &part) || unfit_branch(search, schema, &part) ||
                                 unfit_property(search, schema, &part))) {
        return refuse_unfit(search, part.schema, &part.at, depth + 1);
    }
    if (!fm_schema_key_counts_fit(schema)) {
        const struct fm_schema_at most = {.parent = at, .key = "maxProperties"};
        return fm_schema_refuse(search->work, &most,
                                "no object fits: maxProperties is below minProperties or the number of required "
                                "properties. Raise it, or require fewer");
    }
    return fm_schema_refuse(search->work, at,
                            "no value fits this schema: its keywords exclude each other. Leave out those that do");
}

enum fm_code fm_schema_check_endless(struct fm_schema_work *work, const struct fm_schema_at *root) {
    struct search search = {.work = work};
    if (!solve(&search, ALL_TYPES)) {
        return FM_OK;
    }
    if (types_of(&search, work->root) == 0) {
        return refuse_unfit(&search, work->root, root, 0);
    }
    for (size_t i = 0; i < work->target_count; i++) {
        work->targets[i].possible = work->targets[i].types != 0;
    }
    if (!solve(&search, 0)) {
        return FM_OK;
    }
    for (size_t i = 0; i < work->target_count; i++) {
        const struct fm_schema_target *target = &work->targets[i];
        const struct fm_schema_at at = {.key = target->where};
        if (counts(target) && target->possible && target->types == 0) {
            return fm_schema_refuse(work, &at,
                                    "no value fits this schema: it needs another of its kind inside, and that one "
                                    "more, without end");
        }
    }
    return FM_OK;
}
