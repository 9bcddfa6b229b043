/* The third walk over a schema: the parts that a grammar enforces go into the guide, the others into the report. */
#include "engine/guide/schema_internal.h"

#include <stdio.h>
#include <string.h>

/* Notes that only a validator can check the keyword `at`. */
static enum fm_code note_checked(struct fm_schema_work *work, const struct fm_schema_keyword *keyword,
                                 const struct fm_schema_at *at) {
    if (work->strict) {
        return fm_schema_refuse(work, at,
                                "this keyword can't be enforced while the text is generated: %s. Leave it out, or set "
                                "strict to false to have it checked afterwards",
                                work->reason ? work->reason : keyword->advice);
    }
    if (work->checked_count++ < FM_SCHEMA_CHECKED_MAX) {
        fm_schema_write_path(work, "", at);
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
    size_t row = fm_schema_keyword_index(work->table, keyword);
    work->enforced[row / 64] |= UINT64_C(1) << row % 64;
    return fate == FM_FATE_ENFORCED ? keyword->write(work, place, value, &at) : FM_OK;
}

static enum fm_code write_members(struct fm_schema_work *work, const struct fm_schema_place *place) {
    struct json_object_iter member_at;
    json_object_object_foreachC(place->schema, member_at) {
        const char *name = member_at.key;
        struct json_object *value = member_at.val;
        const struct fm_schema_keyword *keyword = fm_schema_keyword_find(work->table, name);
        if (keyword && (keyword->write || keyword->advice)) {
            enum fm_code code = write_keyword(work, place, keyword, value);
            if (code != FM_OK) {
                return code;
            }
        }
    }
    if (fm_schema_member(place->schema, "allOf")) {
        return FM_OK;
    }
    const struct fm_schema_at at = {.parent = place->at, .key = "allOf"};
    return fm_schema_keyword_find(work->table, at.key)->write(work, place, NULL, &at); /* other keywords may need it */
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

/* Writes the schemas that $refs name, in the order in which they are found: writing one schema may add others. */
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

enum fm_code fm_schema_write_guide(struct fm_schema_work *work, const struct fm_schema_place *root) {
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

void fm_schema_write_report(const struct fm_schema_work *work, struct fm_buf *report) {
    struct fm_json_writer w = fm_json_writer_on(report);
    fm_json_object_begin(&w);
    fm_json_key(&w, "enforced");
    fm_json_array_begin(&w);
    const struct fm_schema_keyword *keyword;
    for (size_t i = 0; (keyword = fm_schema_keyword_at(work->table, i)); i++) {
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
