#include "engine/guide/schema.h"
#include "base/utf8.h"
#include "engine/guide/schema_internal.h"
#include "protocol/json_check.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_ROOM    (64u * 1024u * 1024u) /* of the guide: twice the schema's text, with a pattern's bytes 20-fold */
#define PATH_MAX_LEN 1024
#define FUEL         1000000

/* ---- paths and refusals ---- */

static bool is_plain_key(const char *key) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$-";
    return *key && strspn(key, plain) == strlen(key);
}

static void append_step(struct fm_buf *path, const struct fm_schema_at *at) {
    if (!at->key) {
        char index[32];
        int len = snprintf(index, sizeof index, "[%zu]", at->index);
        fm_buf_append(path, index, (size_t)len);
    } else if (is_plain_key(at->key)) {
        fm_buf_append_str(path, path->len ? "." : "");
        fm_buf_append_str(path, at->key);
    } else {
        struct fm_json_writer w = fm_json_writer_on(path);
        fm_buf_append_char(path, '[');
        fm_json_string(&w, at->key, strlen(at->key));
        fm_buf_append_char(path, ']');
    }
}

/* Into work->path, behind `prefix`. Not recursive: each step is found from the start. */
static void write_path(struct fm_schema_work *work, const char *prefix, const struct fm_schema_at *at) {
    struct fm_buf *path = &work->path;
    const struct fm_schema_at *steps[2 * FM_SCHEMA_DEPTH_MAX + FM_JSON_DEPTH_MAX];
    size_t depth = 0;
    for (; at->parent && depth < sizeof steps / sizeof steps[0]; at = at->parent) {
        steps[depth++] = at;
    }
    fm_buf_reset(path);
    fm_buf_append_str(path, prefix);
    if (!at->parent && *at->key) { /* a path already */
        fm_buf_append_str(path, path->len && *at->key != '[' ? "." : "");
        fm_buf_append_str(path, at->key);
    }
    while (depth > 0 && path->len <= PATH_MAX_LEN) {
        append_step(path, steps[--depth]);
    }
    if (path->len > PATH_MAX_LEN) {
        path->len = fm_utf8_whole_prefix(path->data, PATH_MAX_LEN - 3);
        fm_buf_append_str(path, "...");
    }
    fm_buf_append_char(path, '\0');
}

char *fm_schema_path(struct fm_schema_work *work, const struct fm_schema_at *at) {
    write_path(work, "", at);
    return work->path.failed ? NULL : strdup(work->path.data);
}

enum fm_code fm_schema_refuse_memory(struct fm_schema_work *work) {
    return fm_fail_no_memory(work->error);
}

enum fm_code fm_schema_refuse(struct fm_schema_work *work, const struct fm_schema_at *at, const char *fmt, ...) {
    char sentence[384];
    va_list args;
    va_start(args, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    write_path(work, "format.schema", at);
    if (work->path.failed) {
        return fm_schema_refuse_memory(work);
    }
    const char *path = work->path.data;
    enum fm_code code = fm_fail(work->error, FM_INVALID_REQUEST, "%.*s: %s", fm_utf8_shown(path, 120), path, sentence);
    snprintf(work->error->param, sizeof work->error->param, "%.*s", fm_utf8_shown(path, sizeof work->error->param - 1),
             path);
    return code;
}

bool fm_schema_grow(void **list, size_t *cap, size_t count, size_t size) {
    if (count < *cap) {
        return true;
    }
    size_t more = *cap ? *cap * 2 : 8;
    void *grown = realloc(*list, more * size);
    if (grown) {
        *list = grown;
        *cap = more;
    }
    return grown != NULL;
}

struct json_object *fm_schema_member(struct json_object *schema, const char *name) {
    struct json_object *value = NULL;
    json_object_object_get_ex(schema, name, &value);
    return value;
}

/* ---- the size of the text ---- */

/* Adds up the bytes of `value`, as long as they are few enough. False: they are not, or it is too deep. */
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

/* ---- what schemas have in them ---- */

static enum fm_code visit_element(struct fm_schema_work *work, const struct fm_schema_place *place,
                                  const struct fm_schema_keyword *keyword, const struct fm_schema_at *at,
                                  struct json_object *value, fm_schema_child_fn *visit, void *context) {
    const struct fm_schema_place child = {value, at, place->resource, place->depth + 1};
    if (keyword->shape == FM_SHAPE_MIXED && json_object_is_type(value, json_type_array)) {
        return FM_OK;
    }
    return visit(work, &child, keyword, context);
}

enum fm_code fm_schema_children(struct fm_schema_work *work, const struct fm_schema_place *place,
                                const struct fm_schema_keyword *keyword, struct json_object *value,
                                fm_schema_child_fn *visit, void *context) {
    enum fm_code code = FM_OK;
    struct fm_schema_at at = {.parent = place->at};
    if (keyword->shape == FM_SHAPE_VALUE) {
        return FM_OK;
    }
    if (keyword->shape == FM_SHAPE_MAP || keyword->shape == FM_SHAPE_MIXED) {
        struct json_object_iter member_at;
        json_object_object_foreachC(value, member_at) {
            const char *name = member_at.key;
            struct json_object *member = member_at.val;
            at.key = name;
            code = code == FM_OK ? visit_element(work, place, keyword, &at, member, visit, context) : code;
        }
        return code;
    }
    if (keyword->shape != FM_SHAPE_ONE && json_object_is_type(value, json_type_array)) {
        for (at.index = 0; at.index < json_object_array_length(value) && code == FM_OK; at.index++) {
            struct json_object *element = json_object_array_get_idx(value, at.index);
            code = visit_element(work, place, keyword, &at, element, visit, context);
        }
        return code;
    }
    return visit_element(work, place, keyword, place->at, value, visit, context);
}

/* ---- first walk: limits, shapes, names ---- */

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
    default: /* what should be a schema is looked at when it is visited */ break;
    }
    return FM_OK;
}

static enum fm_code index_child(struct fm_schema_work *work, const struct fm_schema_place *child,
                                const struct fm_schema_keyword *keyword, void *context) {
    (void)keyword;
    (void)context;
    return fm_schema_index(work, child);
}

/* Whether llguidance merges schemas here: what is in place stands beside something else. */
static bool merges_here(struct json_object *schema) {
    size_t in_place = 0;
    size_t others = 0;
    struct json_object_iter member_at;
    json_object_object_foreachC(schema, member_at) {
        const char *name = member_at.key;
        struct json_object *value = member_at.val;
        const struct fm_schema_keyword *keyword = fm_schema_keyword_find(name);
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
        const struct fm_schema_keyword *keyword = fm_schema_keyword_find(name);
        enum fm_code code = FM_OK;
        if (strcmp(name, "x-guidance") == 0) {
            return fm_schema_refuse(work, &at, "options of the grammar library are not the schema's to set");
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
    work->merges = work->merges || merges_here(place->schema);
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
        return fm_schema_refuse(work, place->at, "schemas are more than %d deep in each other", FM_SCHEMA_DEPTH_MAX);
    }
    if (++work->subschemas > FM_SCHEMA_SUBSCHEMAS_MAX) {
        return fm_schema_refuse(work, place->at, "there are more than %d schemas in the schema",
                                FM_SCHEMA_SUBSCHEMAS_MAX);
    }
    enum fm_code code = is_object ? fm_schema_index_names(work, &inside) : FM_OK;
    if (code == FM_OK && lh_table_insert(work->seen, place->schema, (void *)(uintptr_t)(inside.resource + 1)) != 0) {
        code = fm_schema_refuse_memory(work);
    }
    return code == FM_OK && is_object ? index_members(work, &inside) : code;
}

/* ---- second walk: values ---- */

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
        const struct fm_schema_keyword *keyword = fm_schema_keyword_find(name);
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

/* What a $ref names may stand where the walk from the root does not come by, and name more of the kind. */
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

/* ---- third walk: the guide ---- */

/* `at` names a keyword that only a validator can tell. */
static enum fm_code note_checked(struct fm_schema_work *work, const struct fm_schema_keyword *keyword,
                                 const struct fm_schema_at *at) {
    if (work->strict) {
        return fm_schema_refuse(work, at,
                                "it can't be enforced while the text is generated: %s. Leave it out, or set strict to "
                                "false to have it checked afterwards",
                                work->reason ? work->reason : keyword->advice);
    }
    if (work->checked_count++ < FM_SCHEMA_CHECKED_MAX) {
        write_path(work, "", at);
        if (work->path.failed) {
            return fm_schema_refuse_memory(work);
        }
        fm_json_str(&work->checked_list, work->path.data);
    }
    return FM_OK;
}

static enum fm_code write_keyword(struct fm_schema_work *work, const struct fm_schema_place *place,
                                  const struct fm_schema_keyword *keyword, struct json_object *value) {
    const struct fm_schema_at at = {.parent = place->at, .key = keyword->name};
    enum fm_schema_fate fate = keyword->write ? FM_FATE_ENFORCED : FM_FATE_CHECKED;
    work->reason = NULL;
    fate = keyword->fate ? keyword->fate(work, place, value) : fate;
    if (fate == FM_FATE_IGNORED) {
        return FM_OK;
    }
    if (fate == FM_FATE_CHECKED) {
        enum fm_code code = note_checked(work, keyword, &at);
        bool as_any_of = code == FM_OK && strcmp(keyword->name, "oneOf") == 0;
        return as_any_of ? keyword->write(work, place, value, &at) : code;
    }
    size_t row = fm_schema_keyword_index(keyword);
    work->enforced[row / 64] |= UINT64_C(1) << row % 64;
    return fate == FM_FATE_ENFORCED ? keyword->write(work, place, value, &at) : FM_OK;
}

static enum fm_code write_members(struct fm_schema_work *work, const struct fm_schema_place *place) {
    struct json_object_iter member_at;
    json_object_object_foreachC(place->schema, member_at) {
        const char *name = member_at.key;
        struct json_object *value = member_at.val;
        const struct fm_schema_keyword *keyword = fm_schema_keyword_find(name);
        if (keyword && (keyword->write || keyword->advice)) {
            enum fm_code code = write_keyword(work, place, keyword, value);
            if (code != FM_OK) {
                return code;
            }
        }
    }
    return fm_schema_member(place->schema, "allOf") ? FM_OK : fm_schema_write_all_of(work, place, NULL);
}

enum fm_code fm_schema_write(struct fm_schema_work *work, const struct fm_schema_place *place) {
    struct fm_schema_place inside = *place;
    if (json_object_is_type(place->schema, json_type_boolean)) {
        fm_json_bool(&work->guide, json_object_get_boolean(place->schema));
        return FM_OK;
    }
    inside.resource = fm_schema_resource_inside(work, place->schema, place->resource);
    fm_json_object_begin(&work->guide);
    enum fm_code code = write_members(work, &inside);
    fm_json_object_end(&work->guide);
    return code;
}

/* The schemas that $refs name, as they come up: writing one may bring others. */
static enum fm_code write_defs(struct fm_schema_work *work) {
    enum fm_code code = FM_OK;
    fm_json_key(&work->guide, "$defs");
    fm_json_object_begin(&work->guide);
    for (size_t i = 0; i < work->def_count && code == FM_OK; i++) {
        const struct fm_schema_target target = work->targets[work->defs[i]];
        const struct fm_schema_at at = {.key = target.where};
        const struct fm_schema_place place = {target.schema, &at, target.resource, 1};
        char key[32];
        snprintf(key, sizeof key, "%zu", target.number);
        fm_json_key(&work->guide, key);
        code = fm_schema_write(work, &place);
    }
    fm_json_object_end(&work->guide);
    return code;
}

static enum fm_code write_guide(struct fm_schema_work *work, const struct fm_schema_place *root) {
    enum fm_code code = FM_OK;
    fm_json_object_begin(&work->guide);
    fm_json_key(&work->guide, "x-guidance");
    fm_json_object_begin(&work->guide);
    fm_json_key_str(&work->guide, "json_allowed_escapes", "nrbtf\\\"");
    fm_json_key_bool(&work->guide, "whitespace_flexible", false);
    fm_json_object_end(&work->guide);
    if (json_object_is_type(root->schema, json_type_object)) {
        code = write_members(work, root);
        code = code == FM_OK && work->def_count ? write_defs(work) : code;
    }
    fm_json_object_end(&work->guide);
    return code;
}

static void write_report(const struct fm_schema_work *work, struct fm_buf *report) {
    struct fm_json_writer w = fm_json_writer_on(report);
    fm_json_object_begin(&w);
    fm_json_key(&w, "enforced");
    fm_json_array_begin(&w);
    const struct fm_schema_keyword *keyword;
    for (size_t i = 0; (keyword = fm_schema_keyword_at(i)); i++) {
        if (work->enforced[i / 64] >> i % 64 & 1) {
            fm_json_str(&w, keyword->name);
        }
    }
    fm_json_array_end(&w);
    fm_json_key(&w, "checked");
    fm_json_array_begin(&w);
    if (work->checked.len) {
        fm_json_raw(&w, work->checked.data, work->checked.len);
    }
    fm_json_array_end(&w);
    fm_json_object_end(&w);
}

/* ---- all of it ---- */

static enum fm_code prepare(struct fm_schema_work *work, struct fm_schema *out) {
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
    code = code == FM_OK ? write_guide(work, &root) : code;
    if (code == FM_OK) {
        write_report(work, &out->report);
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
    enum fm_code code = tables ? prepare(&work, out) : fm_schema_refuse_memory(&work);
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
