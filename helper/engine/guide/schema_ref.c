/* Finds the target of a $ref, and decides whether the $ref may be followed. */
#include "engine/guide/schema_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- resolving ---- */

/* Length of `uri` without an empty fragment. */
static size_t id_len(const char *uri) {
    size_t len = strlen(uri);
    return len > 0 && uri[len - 1] == '#' ? len - 1 : len;
}

static bool same_id(const char *id, const char *uri, size_t len) {
    return id_len(id) == len && memcmp(id, uri, len) == 0;
}

struct found {
    struct json_object *schema;
    char *where; /* owned */
    size_t resource;
};

/*
 * The resource that a URI without its fragment names. URIs are compared as they are written. A relative URI only means
 * the same everywhere if no `$id` changes the folder.
 */
static bool find_resource(const struct fm_schema_work *work, size_t base, const char *uri, size_t len, size_t *found) {
    *found = base;
    for (size_t i = 0; len > 0 && i < work->resource_count; i++) {
        if (same_id(work->resources[i].id, uri, len)) {
            *found = i;
            return fm_schema_is_absolute(uri) || !work->paths_differ;
        }
    }
    return len == 0;
}

static int hex_digit(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *found = c ? strchr(digits, c >= 'A' && c <= 'F' ? c | 0x20 : c) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* One token of a pointer (RFC 6901) in a fragment: up to "/", with %XX, ~0 and ~1. Returns what is after it. */
static const char *take_token(const char *at, char *token) {
    while (*at && *at != '/') {
        char c = *at++;
        if (c == '%' && hex_digit(at[0]) >= 0 && hex_digit(at[1]) >= 0) {
            c = (char)(hex_digit(at[0]) << 4 | hex_digit(at[1]));
            at += 2;
        }
        if (c == '~' && (*at == '0' || *at == '1')) {
            c = *at++ == '0' ? '~' : '/';
        }
        *token++ = c;
    }
    *token = '\0';
    return at;
}

static struct json_object *step(struct json_object *value, const char *token, struct fm_schema_at *at) {
    if (json_object_is_type(value, json_type_array)) {
        char *end;
        unsigned long long index = strtoull(token, &end, 10);
        bool valid = *token >= '0' && *token <= '9' && *end == '\0' && index < json_object_array_length(value);
        at->index = valid ? (size_t)index : 0;
        return valid ? json_object_array_get_idx(value, at->index) : NULL;
    }
    at->key = token;
    return json_object_is_type(value, json_type_object) ? fm_schema_member(value, token) : NULL;
}

/* Follows a pointer from found->schema. `found` holds the path so far, which grows with each step. */
static enum fm_code follow_pointer(struct fm_schema_work *work, const char *pointer, struct found *found) {
    char token[FM_SCHEMA_PATTERN_MAX + 1];
    while (*pointer && found->schema) {
        pointer = take_token(pointer + 1, token);
        struct fm_schema_at parent = {.key = found->where};
        struct fm_schema_at at = {.parent = &parent};
        found->schema = step(found->schema, token, &at);
        if (!found->schema) {
            break;
        }
        char *where = fm_schema_path(work, &at);
        free(found->where);
        found->where = where;
        if (!where) {
            return fm_schema_refuse_memory(work);
        }
        found->resource = fm_schema_resource_inside(work, found->schema, found->resource);
    }
    return FM_OK;
}

static void find_anchor(const struct fm_schema_work *work, const char *name, struct found *found, const char **where) {
    found->schema = NULL;
    for (size_t i = 0; i < work->anchor_count; i++) {
        const struct fm_schema_anchor *anchor = &work->anchors[i];
        if (anchor->resource == found->resource && strcmp(anchor->name, name) == 0) {
            found->schema = anchor->schema;
            *where = anchor->where;
            return;
        }
    }
}

static enum fm_code find_target(struct fm_schema_work *work, size_t base, const char *ref,
                                const struct fm_schema_at *at, struct found *found) {
    size_t uri = strcspn(ref, "#");
    const char *fragment = ref[uri] ? ref + uri + 1 : "";
    if (!find_resource(work, base, ref, uri, &found->resource)) {
        return fm_schema_refuse(work, at,
                                "the reference names something outside of this schema, which is not fetched; put it "
                                "into $defs and refer to it as #/$defs/NAME");
    }
    const struct fm_schema_resource *resource = &work->resources[found->resource];
    const char *where = resource->where;
    found->schema = resource->schema;
    if (*fragment && *fragment != '/') {
        find_anchor(work, fragment, found, &where);
    }
    found->where = strdup(where);
    if (!found->where) {
        return fm_schema_refuse_memory(work);
    }
    enum fm_code code = *fragment == '/' ? follow_pointer(work, fragment, found) : FM_OK;
    if (code == FM_OK && !found->schema) {
        code = fm_schema_refuse(work, at,
                                "there is nothing where the reference points to; name a schema that is there, such "
                                "as #/$defs/NAME");
    }
    return code;
}

/* Takes over found->where on success. */
static enum fm_code add_target(struct fm_schema_work *work, struct found *found, size_t *target) {
    struct fm_schema_target entry = {.schema = found->schema, .where = found->where, .resource = found->resource};
    entry.unchecked = !lh_table_lookup_ex(work->seen, found->schema, NULL);
    if (!fm_schema_grow((void **)&work->targets, &work->target_cap, work->target_count, sizeof *work->targets) ||
        lh_table_insert(work->target_of, found->schema, (void *)(uintptr_t)(work->target_count + 1)) != 0) {
        return fm_schema_refuse_memory(work);
    }
    *target = work->target_count;
    work->targets[work->target_count++] = entry;
    found->where = NULL;
    return FM_OK;
}

/* Makes the found value a target. If no walk has reached the value, it is checked now. */
static enum fm_code enter_target(struct fm_schema_work *work, struct found *found, size_t *target) {
    void *known = NULL;
    if (lh_table_lookup_ex(work->target_of, found->schema, &known)) {
        *target = (size_t)(uintptr_t)known - 1;
        return FM_OK;
    }
    enum fm_code code = add_target(work, found, target);
    if (code == FM_OK && work->targets[*target].unchecked) {
        const struct fm_schema_at where = {.key = work->targets[*target].where};
        const struct fm_schema_place place = {work->targets[*target].schema, &where, work->targets[*target].resource,
                                              1};
        code = fm_schema_index(work, &place);
    }
    return code;
}

enum fm_code fm_schema_resolve(struct fm_schema_work *work, size_t resource, struct json_object *ref,
                               const struct fm_schema_at *at, size_t *target) {
    struct found found = {.schema = NULL};
    void *known = NULL;
    if (lh_table_lookup_ex(work->target_by, ref, &known)) {
        *target = (size_t)(uintptr_t)known - 1;
        return FM_OK;
    }
    enum fm_code code = find_target(work, resource, json_object_get_string(ref), at, &found);
    code = code == FM_OK ? enter_target(work, &found, target) : code;
    if (code == FM_OK && lh_table_insert(work->target_by, ref, (void *)(uintptr_t)(*target + 1)) != 0) {
        code = fm_schema_refuse_memory(work);
    }
    free(found.where);
    return code;
}

enum fm_code fm_schema_find_target(struct fm_schema_work *work, size_t resource, struct json_object *ref,
                                   const struct fm_schema_at *at, size_t *target) {
    const struct fm_error before = *work->error;
    struct found found = {.schema = NULL};
    enum fm_code code = find_target(work, resource, json_object_get_string(ref), at, &found);
    if (code == FM_OK) {
        code = enter_target(work, &found, target);
    } else if (code == FM_INVALID_REQUEST) {
        *work->error = before;
        *target = SIZE_MAX;
        code = FM_OK;
    }
    free(found.where);
    return code;
}

/* ---- cycles ---- */

/* How a schema was reached. */
struct way {
    bool in_place; /* only keywords about the same value are followed */
    bool merged;   /* llguidance merges it with other schemas */
    int depth;     /* depth, with every $ref followed */
};

static enum fm_code follow_members(struct fm_schema_work *work, const struct fm_schema_place *place, struct way *way);

/* Whether llguidance merges `keyword` with keywords beside it. */
static bool has_siblings(const struct fm_schema_work *work, struct json_object *schema,
                         const struct fm_schema_keyword *keyword) {
    struct json_object_iter member_at;
    json_object_object_foreachC(schema, member_at) {
        const char *name = member_at.key;
        const struct fm_schema_keyword *other = fm_schema_keyword_find(work->table, name);
        if (other && other->write && other != keyword) {
            return true;
        }
    }
    return false;
}

static enum fm_code follow_target(struct fm_schema_work *work, size_t index, const struct way *way) {
    const struct fm_schema_target target = work->targets[index];
    const struct fm_schema_at at = {.key = target.where};
    const struct fm_schema_place place = {target.schema, &at, target.resource, 1};
    struct way inside = {.in_place = way->in_place, .depth = way->depth};
    enum fm_schema_visit *visit = way->in_place ? &work->targets[index].in_place : &work->targets[index].nested;
    *visit = FM_VISIT_OPEN;
    enum fm_code code = follow_members(work, &place, &inside);
    *visit = FM_VISIT_DONE;
    return code;
}

static enum fm_code follow_to(struct fm_schema_work *work, const struct fm_schema_at *at, size_t index,
                              const struct way *way) {
    enum fm_schema_visit visit = way->in_place ? work->targets[index].in_place : work->targets[index].nested;
    if (visit == FM_VISIT_NEW) {
        return follow_target(work, index, way);
    }
    if (visit == FM_VISIT_OPEN && way->in_place) {
        return fm_schema_refuse(work, at, "a $ref loop that consumes no input; put a property or an item between");
    }
    if (visit == FM_VISIT_OPEN && way->merged) {
        return fm_schema_refuse(work, at,
                                "a schema that contains itself can't be combined with others; let the $ref stand "
                                "alone");
    }
    return FM_OK;
}

static enum fm_code follow_ref(struct fm_schema_work *work, const struct fm_schema_place *place,
                               struct json_object *ref, const struct way *way) {
    const struct fm_schema_at at = {.parent = place->at, .key = "$ref"};
    size_t index;
    enum fm_code code = fm_schema_resolve(work, place->resource, ref, &at, &index);
    return code == FM_OK ? follow_to(work, &at, index, way) : code;
}

/*
 * Follows a $dynamicRef or $recursiveRef to two targets: the one that it names from its own place, and the one that it
 * names from the root, where evaluation begins.
 */
static enum fm_code follow_dynamic_ref(struct fm_schema_work *work, const struct fm_schema_place *place,
                                       const char *name, struct json_object *ref, const struct way *way) {
    const struct fm_schema_at at = {.parent = place->at, .key = name};
    const size_t resources[] = {place->resource, 0};
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < 2 && code == FM_OK; i++) {
        size_t index;
        code = fm_schema_find_target(work, resources[i], ref, &at, &index);
        code = code == FM_OK && index != SIZE_MAX ? follow_to(work, &at, index, way) : code;
    }
    return code;
}

static enum fm_code follow_child(struct fm_schema_work *work, const struct fm_schema_place *child,
                                 const struct fm_schema_keyword *keyword, void *context) {
    const struct way *way = context;
    struct way inside = *way;
    inside.merged = way->merged && keyword->in_place;
    return follow_members(work, child, &inside);
}

static enum fm_code follow_member(struct fm_schema_work *work, const struct fm_schema_place *place, const char *name,
                                  struct json_object *value, const struct way *way) {
    const struct fm_schema_keyword *keyword = fm_schema_keyword_find(work->table, name);
    bool in_place = keyword && (keyword->in_place || keyword->checked_in_place);
    if (!keyword || !(way->in_place ? in_place : keyword->write != NULL)) {
        return FM_OK;
    }
    struct way inside = *way;
    if (keyword->in_place) {
        bool several = strcmp(name, "allOf") == 0 && json_object_array_length(value) > 1;
        inside.merged = way->merged || several || has_siblings(work, place->schema, keyword);
    }
    if (strcmp(name, "$ref") == 0) {
        return follow_ref(work, place, value, &inside);
    }
    if (keyword->checked_in_place && keyword->shape == FM_SHAPE_VALUE) {
        return follow_dynamic_ref(work, place, name, value, &inside);
    }
    const struct fm_schema_at at = {.parent = place->at, .key = name};
    const struct fm_schema_place here = {place->schema, &at, place->resource, place->depth};
    return fm_schema_children(work, &here, keyword, value, follow_child, &inside);
}

static enum fm_code follow_members(struct fm_schema_work *work, const struct fm_schema_place *place, struct way *way) {
    enum fm_code code = FM_OK;
    if (!json_object_is_type(place->schema, json_type_object)) {
        return FM_OK;
    }
    if (++way->depth > FM_SCHEMA_REF_DEPTH_MAX) {
        return fm_schema_refuse(work, place->at,
                                "with every $ref followed, schemas are nested more than %d deep; make it flatter",
                                FM_SCHEMA_REF_DEPTH_MAX);
    }
    struct fm_schema_place inside = *place;
    inside.resource = fm_schema_resource_inside(work, place->schema, place->resource);
    struct json_object_iter member_at;
    json_object_object_foreachC(place->schema, member_at) {
        const char *name = member_at.key;
        struct json_object *value = member_at.val;
        code = code == FM_OK ? follow_member(work, &inside, name, value, way) : code;
    }
    return code;
}

enum fm_code fm_schema_check_graph(struct fm_schema_work *work) {
    const struct fm_schema_at at = {.key = ""};
    const struct fm_schema_place root = {work->root, &at, 0, 1};
    struct way nested = {.in_place = false};
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < work->target_count && code == FM_OK; i++) {
        struct way in_place = {.in_place = true};
        code = work->targets[i].in_place == FM_VISIT_NEW ? follow_target(work, i, &in_place) : FM_OK;
    }
    return code == FM_OK ? follow_members(work, &root, &nested) : code;
}
