/* fm_schema_prepare, step by step: the size, three walks over the schema, and checks that need all of it. */
#include "engine/guide/schema.h"
#include "engine/guide/schema_internal.h"
#include "protocol/json_check.h"

#include <stdlib.h>
#include <string.h>

/* bytes of the guide: twice the schema's text, where a byte of a pattern counts 20 times */
#define TEXT_ROOM    (64u * 1024u * 1024u)
#define FUEL         1000000

/* ---- the size of the text ---- */

/* Adds up the bytes of `value`, up to the limit. False: `value` is above the limit, or too deep. */
static bool measure(struct json_object *value, int depth, size_t *bytes) {
    enum json_type type = json_object_get_type(value);
    *bytes += 1;
    if (depth > FM_JSON_DEPTH_MAX) {
        return false;
    }
    if (type == json_type_string) {
        *bytes += fm_json_string_size(json_object_get_string(value), (size_t)json_object_get_string_len(value));
    } else if (type == json_type_array) {
        for (size_t i = 0; i < json_object_array_length(value) && *bytes <= FM_SCHEMA_TEXT_MAX; i++) {
            if (!measure(json_object_array_get_idx(value, i), depth + 1, bytes)) {
                return false;
            }
        }
    } else if (type == json_type_object) {
        struct json_object_iter member_at;
        json_object_object_foreachC(value, member_at) {
            const char *name = member_at.key;
            struct json_object *member = member_at.val;
            *bytes += fm_json_string_size(name, strlen(name)) + 1;
            if (*bytes > FM_SCHEMA_TEXT_MAX || !measure(member, depth + 1, bytes)) {
                return false;
            }
        }
    } else {
        *bytes += 1;
    }
    return *bytes <= FM_SCHEMA_TEXT_MAX;
}

static enum fm_code check_size(struct fm_schema_work *work, const struct fm_schema_at *at) {
    size_t bytes = 0;
    if (!measure(work->root, 1, &bytes)) {
        return fm_schema_refuse(work, at,
                                "the schema is larger than %d bytes, or nested deeper than %d arrays and objects",
                                FM_SCHEMA_TEXT_MAX, FM_JSON_DEPTH_MAX);
    }
    return FM_OK;
}

/* ---- the second walk: values ---- */

static enum fm_code check_schema(struct fm_schema_work *work, const struct fm_schema_place *place);

static enum fm_code check_child(struct fm_schema_work *work, const struct fm_schema_place *child,
                                const struct fm_schema_keyword *keyword, void *context) {
    (void)keyword;
    (void)context;
    return check_schema(work, child);
}

static enum fm_code check_schema(struct fm_schema_work *work, const struct fm_schema_place *place) {
    if (!json_object_is_type(place->schema, json_type_object)) {
        return FM_OK;
    }
    const size_t resource = fm_schema_resource_inside(work, place->schema, place->resource);
    struct json_object_iter member_at;
    json_object_object_foreachC(place->schema, member_at) {
        const char *name = member_at.key;
        struct json_object *value = member_at.val;
        const struct fm_schema_at at = {.parent = place->at, .key = name};
        const struct fm_schema_place here = {place->schema, &at, resource, place->depth};
        const struct fm_schema_keyword *keyword = fm_schema_keyword_find(work->table, name);
        enum fm_code code = FM_OK;
        if (keyword && keyword->check) {
            code = keyword->check(work, &here, value, &at);
        }
        if (keyword && code == FM_OK) {
            code = fm_schema_children(work, &here, keyword, value, check_child, NULL);
        }
        if (code != FM_OK) {
            return code;
        }
    }
    return FM_OK;
}

/* A $ref may name a schema that the walk from the root does not reach, and that schema may name more such schemas. */
static enum fm_code check_all(struct fm_schema_work *work, const struct fm_schema_place *root) {
    enum fm_code code = check_schema(work, root);
    for (size_t i = 0; i < work->target_count && code == FM_OK; i++) {
        if (work->targets[i].unchecked) {
            const struct fm_schema_at at = {.key = work->targets[i].where};
            const struct fm_schema_place place = {work->targets[i].schema, &at, work->targets[i].resource, 1};
            code = check_schema(work, &place);
        }
    }
    return code;
}

/* ---- all of it ---- */

static enum fm_code prepare_schema(struct fm_schema_work *work, struct fm_schema *out) {
    const struct fm_schema_at at = {.key = ""};
    const struct fm_schema_place root = {work->root, &at, 0, 1};
    enum fm_code code = check_size(work, &at);
    if (code == FM_OK && json_object_is_type(work->root, json_type_boolean) && !json_object_get_boolean(work->root)) {
        code = fm_schema_refuse(work, &at, "nothing fits false");
    }
    code = code == FM_OK ? fm_schema_index(work, &root) : code;
    code = code == FM_OK ? check_all(work, &root) : code;
    code = code == FM_OK ? fm_schema_check_graph(work) : code;
    code = code == FM_OK ? fm_schema_check_endless(work, &at) : code;
    code = code == FM_OK ? fm_schema_write_guide(work, &root) : code;
    if (code == FM_OK) {
        fm_schema_write_report(work, &out->report);
        out->exact = work->checked_count == 0;
    }
    bool failed = out->guide.failed || out->report.failed || work->checked.failed || work->no_memory;
    return code == FM_OK && failed ? fm_schema_refuse_memory(work) : code;
}

static void free_work(struct fm_schema_work *work) {
    for (size_t i = 0; i < work->resource_count; i++) {
        free(work->resources[i].where);
    }
    for (size_t i = 0; i < work->anchor_count; i++) {
        free(work->anchors[i].where);
    }
    for (size_t i = 0; i < work->target_count; i++) {
        free(work->targets[i].where);
    }
    free(work->resources);
    free(work->anchors);
    free(work->targets);
    free(work->defs);
    if (work->seen) {
        lh_table_free(work->seen);
    }
    if (work->target_of) {
        lh_table_free(work->target_of);
    }
    if (work->target_by) {
        lh_table_free(work->target_by);
    }
    fm_buf_free(&work->scratch);
    fm_buf_free(&work->path);
    fm_buf_free(&work->checked);
}

enum fm_code fm_schema_prepare(struct json_object *schema, bool strict, struct fm_schema *out, struct fm_error *error) {
    struct fm_schema_work work = {.root = schema, .strict = strict, .error = error, .fuel = FUEL, .multiple = 1};
    work.table = &fm_schema_table;
    *out = (struct fm_schema){.exact = false};
    fm_buf_init(&out->guide, TEXT_ROOM);
    fm_buf_init(&out->report, TEXT_ROOM);
    fm_buf_init(&work.scratch, TEXT_ROOM);
    fm_buf_init(&work.path, TEXT_ROOM);
    fm_buf_init(&work.checked, TEXT_ROOM);
    work.guide = fm_json_writer_on(&out->guide);
    work.checked_list = fm_json_writer_on(&work.checked);
    work.draft = fm_schema_draft_of(schema);
    work.seen = lh_kptr_table_new(64, NULL);
    work.target_of = lh_kptr_table_new(16, NULL);
    work.target_by = lh_kptr_table_new(16, NULL);
    bool tables = work.seen && work.target_of && work.target_by;
    enum fm_code code = tables ? prepare_schema(&work, out) : fm_schema_refuse_memory(&work);
    free_work(&work);
    if (code != FM_OK) {
        fm_schema_free(out);
    }
    return code;
}

void fm_schema_free(struct fm_schema *schema) {
    fm_buf_free(&schema->guide);
    fm_buf_free(&schema->report);
}
