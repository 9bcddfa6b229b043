/* The table of allowed calls: a row for each call, with the kind of each of its params. All else is refused. */
#include "backends/broker_rules.h"
#include "backends/cdp_scripts.h"
#include "desktop/url.h"

#include <json-c/json.h>
#include <stddef.h>
#include <string.h>

#define PARAMS_MAX 4

enum kind { ID, NUMBER, YES, NO, WEB_URL, SCRIPT, WORLD, TAB_FILTER };

static const struct rule {
    const char *method;
    bool in_session;
    struct {
        const char *name; /* NULL: no more */
        enum kind kind;
    } params[PARAMS_MAX];
} rules[] = {
    {"Browser.getVersion", false, {{NULL, ID}}},
    {"Browser.getWindowForTarget", false, {{"targetId", ID}}},
    {"Target.setDiscoverTargets", false, {{"discover", YES}, {"filter", TAB_FILTER}}},
    {"Target.getTargets", false, {{"filter", TAB_FILTER}}},
    {"Target.activateTarget", false, {{"targetId", ID}}},
    {"Target.createTarget", false, {{"url", WEB_URL}, {"forTab", YES}}},
    {"Target.attachToTarget", false, {{"targetId", ID}, {"flatten", YES}}},
    {"Target.detachFromTarget", false, {{"sessionId", ID}}},
    {"Target.setAutoAttach", true, {{"autoAttach", YES}, {"waitForDebuggerOnStart", NO}, {"flatten", YES}}},
    {"Page.createIsolatedWorld", true, {{"frameId", ID}, {"worldName", WORLD}}},
    {"Page.close", true, {{NULL, ID}}},
    {"Runtime.evaluate", true, {{"expression", SCRIPT}, {"contextId", NUMBER}, {"returnByValue", YES}}},
};

static bool is_one_of(const char *text, const char *a, const char *b) {
    return text && (strcmp(text, a) == 0 || strcmp(text, b) == 0);
}

static bool fits_kind(struct json_object *value, enum kind kind) {
    bool is_text = json_object_is_type(value, json_type_string);
    const char *text = is_text ? json_object_get_string(value) : NULL;
    if (is_text && (size_t)json_object_get_string_len(value) != strlen(text)) {
        return false; /* the text has a NUL, which would hide the rest */
    }
    switch (kind) {
    case ID: return is_text;
    case NUMBER: return json_object_is_type(value, json_type_int);
    case YES:
    case NO: return json_object_is_type(value, json_type_boolean) && json_object_get_boolean(value) == (kind == YES);
    case WEB_URL: return is_text && sy_url_is_web(text);
    case SCRIPT: return is_one_of(text, SY_CDP_OPENED, SY_CDP_TEXT);
    case WORLD: return is_one_of(text, SY_CDP_WORLD, SY_CDP_WORLD);
    case TAB_FILTER:
        return is_one_of(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN), SY_CDP_TABS, SY_CDP_TABS);
    }
    return false;
}

/* Whether all params of the rule are there, and no others. */
static bool params_fit(const struct rule *rule, struct json_object *params) {
    size_t count = params ? (size_t)json_object_object_length(params) : 0;
    for (size_t i = 0; i < PARAMS_MAX && rule->params[i].name; i++, count--) {
        struct json_object *value = NULL;
        if (!params || !json_object_object_get_ex(params, rule->params[i].name, &value) ||
            !fits_kind(value, rule->params[i].kind)) {
            return false;
        }
    }
    return count == 0;
}

const char *sy_broker_refuses(const char *method, struct json_object *params, bool in_session) {
    if (params && !json_object_is_type(params, json_type_object)) {
        return "params must be an object";
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(rules[i].method, method) == 0 && rules[i].in_session == in_session) {
            return params_fit(&rules[i], params) ? NULL : "fm-system does not make this call with such params";
        }
    }
    return "fm-system does not make this call";
}
