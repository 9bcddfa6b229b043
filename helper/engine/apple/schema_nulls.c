/*
 * Puts nulls back into an answer: a required property that is missing and may be null becomes null. The walk follows
 * the answer, so it ends; the host's schema says which property belongs where, and in which order.
 */
#include "engine/apple/schema_nulls.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <json-c/json_pointer.h>
#include <string.h>

#define REFS_MAX   32
#define VALUES_MAX 1000000u
#define TEXT_MAX   (16u << 20)

static struct json_object *schema_member(struct json_object *schema, const char *name) {
    struct json_object *value = NULL;
    if (json_object_is_type(schema, json_type_object)) {
        json_object_object_get_ex(schema, name, &value);
    }
    return value;
}

struct json_object *fm_apple_resolve(struct json_object *root, struct json_object *schema) {
    for (int i = 0; schema_member(schema, "$ref"); i++) {
        const char *ref = json_object_get_string(schema_member(schema, "$ref"));
        struct json_object *target = NULL;
        if (i == REFS_MAX || ref[0] != '#' || (ref[1] != '\0' && ref[1] != '/')) {
            return NULL;
        }
        if (ref[1] == '\0') {
            target = root;
        } else if (json_pointer_get(root, ref + 1, &target) != 0) {
            return NULL;
        }
        schema = target;
    }
    return schema;
}

static bool names_null(struct json_object *type) {
    return json_object_is_type(type, json_type_string) && strcmp(json_object_get_string(type), "null") == 0;
}

static struct json_object *branches_of(struct json_object *schema) {
    return schema_member(schema, "anyOf") ? schema_member(schema, "anyOf") : schema_member(schema, "oneOf");
}

static bool list_has_null(struct json_object *list) {
    bool has = false;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        has = has || !json_object_array_get_idx(list, i) || names_null(json_object_array_get_idx(list, i));
    }
    return has;
}

static bool may_be_null(struct json_object *root, struct json_object *schema, int depth) {
    schema = fm_apple_resolve(root, schema);
    struct json_object *type = schema_member(schema, "type");
    struct json_object *list = branches_of(schema);
    if (!json_object_is_type(schema, json_type_object) || depth == REFS_MAX) {
        return false;
    }
    if (json_object_object_get_ex(schema, "const", NULL)) {
        return !schema_member(schema, "const");
    }
    if (schema_member(schema, "enum")) {
        return list_has_null(schema_member(schema, "enum"));
    }
    if (type) {
        return json_object_is_type(type, json_type_array) ? list_has_null(type) : names_null(type);
    }
    bool may = false;
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        may = may || may_be_null(root, json_object_array_get_idx(list, i), depth + 1);
    }
    return may;
}

bool fm_apple_may_be_null(struct json_object *root, struct json_object *schema) {
    return may_be_null(root, schema, 0);
}

bool fm_apple_only_null(struct json_object *root, struct json_object *schema) {
    schema = fm_apple_resolve(root, schema);
    struct json_object *choices = schema_member(schema, "enum");
    bool constant = json_object_object_get_ex(schema, "const", NULL) && !schema_member(schema, "const");
    bool only = choices && json_object_array_length(choices) == 1 && !json_object_array_get_idx(choices, 0);
    return constant || only || names_null(schema_member(schema, "type"));
}

/*
 * Returns the schema that describes an object or array. Follows each $ref, an allOf with one schema, and a choice
 * between one schema and null.
 */
static struct json_object *shape(struct json_object *root, struct json_object *schema) {
    for (int i = 0; i < REFS_MAX; i++) {
        schema = fm_apple_resolve(root, schema);
        struct json_object *list =
            schema_member(schema, "allOf") ? schema_member(schema, "allOf") : branches_of(schema);
        struct json_object *found = NULL;
        size_t count = 0;
        for (size_t k = 0; list && k < json_object_array_length(list); k++) {
            struct json_object *branch = json_object_array_get_idx(list, k);
            bool null = fm_apple_only_null(root, branch);
            count += !null;
            found = null ? found : branch;
        }
        if (!list) {
            return schema;
        }
        if (count != 1) {
            return NULL; /* the check of the whole answer finds out whether a null is missing */
        }
        schema = found;
    }
    return NULL;
}

static void write_value(struct json_object *root, struct json_object *schema, struct json_object *value,
                        struct fm_json_writer *w);

static bool is_in(struct json_object *list, const char *name) {
    bool found = false;
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        found = found || strcmp(json_object_get_string(json_object_array_get_idx(list, i)), name) == 0;
    }
    return found;
}

/* Writes the property at `at` of the schema with its value in `value`; null if it is missing and required. */
static void write_member(struct json_object *root, struct json_object *schema, struct json_object *value,
                         const struct json_object_iter *at, struct fm_json_writer *w) {
    struct json_object *present = NULL;
    if (json_object_object_get_ex(value, at->key, &present)) {
        fm_json_key_text(w, at->key, strlen(at->key));
        write_value(root, at->val, present, w);
    } else if (is_in(schema_member(schema, "required"), at->key) && fm_apple_may_be_null(root, at->val)) {
        fm_json_key_text(w, at->key, strlen(at->key));
        fm_json_null(w);
    }
}

static void write_object(struct json_object *root, struct json_object *schema, struct json_object *value,
                         struct fm_json_writer *w) {
    struct json_object *properties = schema_member(schema, "properties");
    struct json_object_iter at;
    fm_json_object_begin(w);
    if (properties) {
        json_object_object_foreachC(properties, at) {
            write_member(root, schema, value, &at, w);
        }
    }
    json_object_object_foreachC(value, at) {
        if (!properties || !json_object_object_get_ex(properties, at.key, NULL)) {
            fm_json_key_text(w, at.key, strlen(at.key));
            fm_json_value(w, at.val);
        }
    }
    fm_json_object_end(w);
}

static void write_value(struct json_object *root, struct json_object *schema, struct json_object *value,
                        struct fm_json_writer *w) {
    schema = shape(root, schema);
    if (schema && json_object_is_type(value, json_type_object)) {
        write_object(root, schema, value, w);
    } else if (schema && json_object_is_type(value, json_type_array)) {
        fm_json_array_begin(w);
        for (size_t i = 0; i < json_object_array_length(value); i++) {
            write_value(root, schema_member(schema, "items"), json_object_array_get_idx(value, i), w);
        }
        fm_json_array_end(w);
    } else {
        fm_json_value(w, value);
    }
}

enum fm_code fm_apple_schema_restore(const struct fm_apple_schema *schema, const char *text, size_t len,
                                     struct fm_buf *out, struct fm_error *error) {
    size_t offset;
    struct json_object *value = NULL;
    struct fm_buf scratch;
    fm_buf_init(&scratch, TEXT_MAX);
    bool json = !fm_json_check(text, len, VALUES_MAX, &offset);
    bool built = json && fm_json_tree(text, len, &scratch, &value);
    fm_buf_free(&scratch);
    struct json_object *answer = value;
    bool whole = json_object_is_type(value, json_type_object) &&
                 (!schema->wrapped || json_object_object_get_ex(value, FM_APPLE_WRAPPED, &answer));
    enum fm_code code = FM_OK;
    if (!built && json) {
        code = fm_fail_no_memory(error);
    } else if (!whole) {
        code = fm_fail(error, FM_INTERNAL, "Apple's model wrote an answer that is not JSON of the schema; try again");
    } else {
        struct fm_json_writer w = fm_json_writer_on(out);
        write_value(schema->source, schema->source, answer, &w);
        code = out->failed ? fm_fail_no_memory(error) : FM_OK;
    }
    json_object_put(value);
    return code;
}
