/*
 * Fuzzes the check of a JSON schema before the grammar library gets the schema. A refusal names a path that begins with
 * format.schema. For an accepted schema, the guide and the report are JSON. A schema that is accepted as strict, with
 * nothing left to check, is also accepted without `strict`.
 */
#include "engine/guide/schema.h"
#include "protocol/json_tree.h"
#include "tests/fuzz/fuzz.h"

static void expect_refusal(const struct fm_error *error, enum fm_code code) {
    static const char root[] = "format.schema";
    HOLDS(code == FM_INVALID_REQUEST && error->code == code);
    HOLDS_OR(strncmp(error->param, root, sizeof root - 1) == 0, "%s", error->param);
    HOLDS(error->detail[0] && is_utf8(error->detail, strlen(error->detail)));
    HOLDS(is_utf8(error->param, strlen(error->param)));
}

static struct json_object *expect_json(const struct fm_buf *buf) {
    struct json_object *value = json_must_parse(buf->data, buf->len);
    HOLDS(json_object_is_type(value, json_type_object));
    return value;
}

static size_t checked_count(struct json_object *report) {
    return json_object_array_length(json_object_object_get(report, "checked"));
}

static bool prepare(struct json_object *schema, bool strict) {
    struct fm_schema out;
    struct fm_error error = {.code = FM_OK};
    enum fm_code code = fm_schema_prepare(schema, strict, &out, &error);
    if (code != FM_OK) {
        expect_refusal(&error, code);
        return false;
    }
    struct json_object *report = expect_json(&out.report);
    HOLDS(out.exact == (checked_count(report) == 0));
    HOLDS(!strict || out.exact);
    json_object_put(expect_json(&out.guide));
    json_object_put(report);
    fm_schema_free(&out);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t offset = 0;
    struct json_object *schema = NULL;
    struct fm_buf scratch;
    if (fm_json_check((const char *)data, size, FM_JSON_VALUES_MAX, &offset)) {
        return 0;
    }
    fm_buf_init(&scratch, 64u << 20);
    HOLDS(fm_json_tree((const char *)data, size, &scratch, &schema));
    fm_buf_free(&scratch);
    bool strict = prepare(schema, true);
    bool loose = prepare(schema, false);
    HOLDS(!strict || loose);
    json_object_put(schema);
    return 0;
}
