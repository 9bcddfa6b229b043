/* The first walk over a schema: its limits, the form of its keywords' values, and the names that a $ref can use. */
#include "engine/guide/schema_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static const char *text_member(struct json_object *schema, const char *name) {
    struct json_object *value = fm_schema_member(schema, name);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

bool fm_schema_is_absolute(const char *uri) {
    size_t scheme = strspn(uri, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    return scheme > 0 && uri[scheme] == ':';
}

static enum fm_code add_resource(struct fm_schema_work *work, struct fm_schema_place *place, const char *id) {
    char *where = fm_schema_path(work, place->at);
    if (!where || !fm_schema_grow((void **)&work->resources, &work->resource_cap, work->resource_count,
                                  sizeof *work->resources)) {
        free(where);
        return fm_schema_refuse_memory(work);
    }
    bool root = work->resource_count == 0;
    work->paths_differ = work->paths_differ || (!root && (fm_schema_is_absolute(id) || strchr(id, '/')));
    place->resource = work->resource_count++;
    work->resources[place->resource] = (struct fm_schema_resource){place->schema, id, where};
    return FM_OK;
}

static enum fm_code add_anchor(struct fm_schema_work *work, const struct fm_schema_place *place, const char *name) {
    char *where = fm_schema_path(work, place->at);
    if (!where ||
        !fm_schema_grow((void **)&work->anchors, &work->anchor_cap, work->anchor_count, sizeof *work->anchors)) {
        free(where);
        return fm_schema_refuse_memory(work);
    }
    work->anchors[work->anchor_count++] = (struct fm_schema_anchor){place->schema, name, place->resource, where};
    return FM_OK;
}

/* Up to draft 7 a `$id` may be an anchor ("#name"); draft 4 calls it `id`. */
static enum fm_code index_names(struct fm_schema_work *work, struct fm_schema_place *place) {
    static const char *const anchors[] = {"$anchor", "$dynamicAnchor"};
    const char *id = text_member(place->schema, work->draft == FM_DRAFT_4 ? "id" : "$id");
    enum fm_code code = FM_OK;
    if (work->resource_count == 0 || (id && *id != '#')) {
        code = add_resource(work, place, id && *id != '#' ? id : "");
    }
    if (code == FM_OK && id && *id == '#' && id[1]) {
        code = add_anchor(work, place, id + 1);
    }
    for (size_t i = 0; i < sizeof anchors / sizeof anchors[0] && code == FM_OK; i++) {
        const char *name = text_member(place->schema, anchors[i]);
        code = name ? add_anchor(work, place, name) : FM_OK;
    }
    return code;
}

/* ---- the walk ---- */

static enum fm_code check_shape(struct fm_schema_work *work, const struct fm_schema_keyword *keyword,
                                struct json_object *value, const struct fm_schema_at *at) {
    bool list = json_object_is_type(value, json_type_array);
    bool map = json_object_is_type(value, json_type_object);
    switch (keyword->shape) {
    case FM_SHAPE_LIST:
        if (!list || json_object_array_length(value) == 0) {
            return fm_schema_refuse(work, at, "a list of schemas that is not empty is expected");
        }
        break;
    case FM_SHAPE_MAP:
    case FM_SHAPE_MIXED:
        if (!map) {
            return fm_schema_refuse(work, at, "an object of schemas is expected");
        }
        break;
    default: /* a value that should be a schema is checked when it is visited */ break;
    }
    return FM_OK;
}

static enum fm_code index_child(struct fm_schema_work *work, const struct fm_schema_place *child,
                                const struct fm_schema_keyword *keyword, void *context) {
    (void)keyword;
    (void)context;
    return fm_schema_index(work, child);
}

/*
 * Whether llguidance merges schemas here, because a keyword with schemas for the same value has other keywords beside
 * it.
 */
static bool merges_here(const struct fm_schema_work *work, struct json_object *schema) {
    size_t in_place = 0;
    size_t others = 0;
    struct json_object_iter member_at;
    json_object_object_foreachC(schema, member_at) {
        const char *name = member_at.key;
        struct json_object *value = member_at.val;
        const struct fm_schema_keyword *keyword = fm_schema_keyword_find(work->table, name);
        if (keyword && keyword->in_place) {
            bool several = strcmp(name, "allOf") == 0 && json_object_array_length(value) > 1;
            in_place += several ? 2 : 1;
        } else {
            others += keyword && keyword->write;
        }
    }
    return in_place > 1 || (in_place == 1 && others > 0);
}

static enum fm_code index_members(struct fm_schema_work *work, const struct fm_schema_place *place) {
    struct json_object_iter member_at;
    json_object_object_foreachC(place->schema, member_at) {
        const char *name = member_at.key;
        struct json_object *value = member_at.val;
        const struct fm_schema_at at = {.parent = place->at, .key = name};
        const struct fm_schema_place here = {place->schema, &at, place->resource, place->depth};
        const struct fm_schema_keyword *keyword = fm_schema_keyword_find(work->table, name);
        enum fm_code code = FM_OK;
        if (strcmp(name, "x-guidance") == 0) {
            return fm_schema_refuse(work, &at, "a schema can't set options of the grammar library; leave it out");
        }
        if (keyword) {
            code = check_shape(work, keyword, value, &at);
            code = code == FM_OK ? fm_schema_children(work, &here, keyword, value, index_child, NULL) : code;
            work->pattern_properties += strcmp(name, "patternProperties") == 0;
        }
        if (code != FM_OK) {
            return code;
        }
    }
    work->merges = work->merges || merges_here(work, place->schema);
    return FM_OK;
}

enum fm_code fm_schema_index(struct fm_schema_work *work, const struct fm_schema_place *place) {
    bool is_object = json_object_is_type(place->schema, json_type_object);
    struct fm_schema_place inside = *place;
    if (!is_object && !json_object_is_type(place->schema, json_type_boolean)) {
        return fm_schema_refuse(work, place->at, "a schema is expected: an object, true or false");
    }
    if (lh_table_lookup_ex(work->seen, place->schema, NULL)) {
        return FM_OK;
    }
    if (place->depth > FM_SCHEMA_DEPTH_MAX) {
        return fm_schema_refuse(work, place->at,
                                "schemas are nested more than %d deep; make it flatter, or put some into $defs",
                                FM_SCHEMA_DEPTH_MAX);
    }
    if (++work->subschemas > FM_SCHEMA_SUBSCHEMAS_MAX) {
        return fm_schema_refuse(work, place->at, "there are more than %d schemas in the schema",
                                FM_SCHEMA_SUBSCHEMAS_MAX);
    }
    enum fm_code code = is_object ? index_names(work, &inside) : FM_OK;
    if (code == FM_OK && lh_table_insert(work->seen, place->schema, (void *)(uintptr_t)(inside.resource + 1)) != 0) {
        code = fm_schema_refuse_memory(work);
    }
    return code == FM_OK && is_object ? index_members(work, &inside) : code;
}

size_t fm_schema_resource_inside(const struct fm_schema_work *work, struct json_object *value, size_t outer) {
    void *index = NULL;
    return lh_table_lookup_ex(work->seen, value, &index) ? (size_t)(uintptr_t)index - 1 : outer;
}
