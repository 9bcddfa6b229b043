/* Helpers for all steps of fm_schema_prepare: paths, refusals, the table's rows, the schemas in a keyword's value. */
#include "engine/guide/schema_internal.h"
#include "base/utf8.h"
#include "protocol/json_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_MAX_LEN 1024

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

/* Writes into work->path, after `prefix`. Not recursive: each step is found from the start. */
void fm_schema_write_path(struct fm_schema_work *work, const char *prefix, const struct fm_schema_at *at) {
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
    fm_schema_write_path(work, "", at);
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
    fm_schema_write_path(work, "format.schema", at);
    if (work->path.failed) {
        return fm_schema_refuse_memory(work);
    }
    const char *path = work->path.data;
    enum fm_code code = fm_fail(work->error, FM_INVALID_REQUEST, "%s", sentence);
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

/* ---- the table's rows ---- */

static int compare_keyword(const void *name, const void *keyword) {
    return strcmp(name, ((const struct fm_schema_keyword *)keyword)->name);
}

const struct fm_schema_keyword *fm_schema_keyword_find(const struct fm_schema_table *table, const char *name) {
    return bsearch(name, table->rows, table->count, sizeof *table->rows, compare_keyword);
}

size_t fm_schema_keyword_index(const struct fm_schema_table *table, const struct fm_schema_keyword *keyword) {
    return (size_t)(keyword - table->rows);
}

const struct fm_schema_keyword *fm_schema_keyword_at(const struct fm_schema_table *table, size_t index) {
    return index < table->count ? &table->rows[index] : NULL;
}

/* ---- the schemas inside a schema ---- */

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
