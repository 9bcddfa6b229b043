/*
 * The tool browser before it runs: checks what is allowed, and writes what the user is shown. Keeps the actions as the
 * user saw them.
 */
#include "tools/browser.h"
#include "protocol/json_writer.h"
#include "tools/display.h"
#include "tools/tools.h"

#include <ctype.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SUMMARY_MAX 200u

static enum fm_code refuse_action(struct fm_error *error, size_t index, const char *member, const char *why) {
    fm_fail(error, FM_INVALID_REQUEST, "actions[%zu].%s %s", index, member, why);
    snprintf(error->param, sizeof error->param, "actions[%zu].%s", index, member);
    return FM_INVALID_REQUEST;
}

/*
 * Allows only web addresses. An address that browsers and people read differently is refused: a user name
 * ("https://bank@evil"), a backslash (Chromium reads it as a slash), white space and control characters (Chromium
 * leaves them out).
 */
static const char *url_fault(const char *url) {
    size_t scheme = strncasecmp(url, "https://", 8) == 0 ? 8 : strncasecmp(url, "http://", 7) == 0 ? 7 : 0;
    if (!scheme) {
        return "must begin with http:// or https://; other addresses, such as file:, are not opened";
    }
    for (const unsigned char *at = (const unsigned char *)url; *at; at++) {
        if (*at <= ' ' || *at == '\\' || *at == 0x7f) {
            return "must not have white space, controls or backslashes; write them as %20 and the like";
        }
    }
    size_t host = strcspn(url + scheme, "/?#");
    if (host == 0) {
        return "must have a host";
    }
    return memchr(url + scheme, '@', host) ? "must not have a user name or password" : NULL;
}

/*
 * Whether it is an address without its scheme, as people write it: localhost or a host with a dot, perhaps a port,
 * perhaps a path.
 */
static bool lacks_scheme(const char *url) {
    const char *end = url + strcspn(url, "/?#");
    const char *colon = memchr(url, ':', (size_t)(end - url));
    const char *host_end = colon ? colon : end;
    bool host =
        memchr(url, '.', (size_t)(host_end - url)) || gw_proxy_names_this_machine(url, (size_t)(host_end - url));
    if (!host || (colon && colon + 1 == end)) {
        return false;
    }
    for (const char *at = url; at < end; at++) {
        bool digit = *at >= '0' && *at <= '9';
        bool name = isalnum((unsigned char)*at) || (unsigned char)*at >= 0x80 || (at > url && strchr(".-", *at));
        if (at != colon && !(at < host_end ? name : digit)) {
            return false;
        }
    }
    return true;
}

/*
 * Writes such an address with https:// (of this machine: http://), before it is checked and shown: the user approves
 * what is opened.
 */
static bool add_scheme(struct json_object *action) {
    const char *url = gw_browser_text(action, "url");
    int len = json_object_get_string_len(json_object_object_get(action, "url"));
    struct fm_buf whole;
    if (strlen(url) != (size_t)len || !lacks_scheme(url)) {
        return true; /* check_action refuses an address with a NUL */
    }
    fm_buf_init(&whole, GW_TOOL_CALL_TEXT_MAX);
    fm_buf_append_str(&whole, gw_proxy_names_this_machine(url, strcspn(url, ":/?#")) ? "http://" : "https://");
    fm_buf_append_str(&whole, url);
    fm_buf_append_char(&whole, '\0');
    struct json_object *value = whole.failed ? NULL : json_object_new_string(whole.data);
    fm_buf_free(&whole);
    if (!value || json_object_object_add(action, "url", value) != 0) {
        json_object_put(value);
        return false;
    }
    return true;
}

/* The port of an action whose address names this machine. 0: there is no address, or no valid port of this machine. */
static unsigned own_port(struct json_object *action) {
    const char *url = gw_browser_text(action, "url");
    if (!*url) {
        return 0;
    }
    bool secure = strncasecmp(url, "https://", 8) == 0;
    const char *host = url + (secure ? 8 : 7);
    const char *end = host + strcspn(host, "/?#");
    bool bracket = *host == '[';
    const char *host_end = bracket ? memchr(host, ']', (size_t)(end - host)) : memchr(host, ':', (size_t)(end - host));
    host_end = host_end ? host_end : end;
    const char *port = host_end + (bracket && host_end < end);
    if (!gw_proxy_names_this_machine(host + bracket, (size_t)(host_end - host) - bracket)) {
        return 0;
    }
    if (port == end) {
        return secure ? 443 : 80;
    }
    char *rest = NULL;
    unsigned long number = *port == ':' && isdigit((unsigned char)port[1]) ? strtoul(port + 1, &rest, 10) : 0;
    return rest == end && number <= 65535 ? (unsigned)number : 0;
}

size_t gw_browser_own_ports(struct json_object *input, unsigned ports[GW_BROWSER_ACTIONS_MAX]) {
    struct json_object *actions = json_object_object_get(input, "actions");
    size_t count = 0;
    for (size_t i = 0; i < json_object_array_length(actions) && count < GW_BROWSER_ACTIONS_MAX; i++) {
        unsigned port = own_port(json_object_array_get_idx(actions, i));
        if (port) {
            ports[count++] = port;
        }
    }
    return count;
}

/*
 * A page of this machine may be opened, because developers want to see their own pages. It may not be opened in one
 * call with pages of the web, because these could reach it then. The gateway's own page is never opened.
 */
static enum fm_code check_own_pages(const struct gw_tool_call *call, struct json_object *actions, bool *own,
                                    struct fm_error *error) {
    bool web = false;
    *own = false;
    for (size_t i = 0; i < json_object_array_length(actions); i++) {
        struct json_object *action = json_object_array_get_idx(actions, i);
        unsigned port = own_port(action);
        *own = *own || port;
        web = web || (!port && *gw_browser_text(action, "url"));
        if (*own && web) {
            return refuse_action(error, i, "url",
                                 port ? "is on this machine, and another one is not; make a call for each"
                                      : "is of the web, and another one is on this machine; make a call for each");
        }
        if (port && call->tools->own_port && port == *call->tools->own_port) {
            return refuse_action(error, i, "url", "is the gateway's own address, which no tool opens");
        }
    }
    return FM_OK;
}

static bool is_one_of(const char *name, const char *const members[2]) {
    return (members[0] && strcmp(name, members[0]) == 0) || (members[1] && strcmp(name, members[1]) == 0);
}

static enum fm_code check_action(struct json_object *action, size_t index, struct fm_error *error) {
    const struct gw_browser_action *row = gw_browser_action_find(gw_browser_text(action, "action"));
    for (size_t i = 0; i < 2 && row->needs[i]; i++) {
        if (!json_object_object_get_ex(action, row->needs[i], NULL)) {
            return refuse_action(error, index, row->needs[i], "is missing");
        }
    }
    for (struct lh_entry *entry = json_object_get_object(action)->head; entry; entry = entry->next) {
        const char *name = lh_entry_k(entry);
        struct json_object *value = (struct json_object *)lh_entry_v(entry);
        if (strcmp(name, "action") != 0 && !is_one_of(name, row->needs) && !is_one_of(name, row->takes)) {
            return refuse_action(error, index, name, "is not for this action; leave it out");
        }
        if (json_object_is_type(value, json_type_string) &&
            strlen(json_object_get_string(value)) != (size_t)json_object_get_string_len(value)) {
            return refuse_action(error, index, name, "must not have a NUL character");
        }
    }
    const char *fault = is_one_of("url", row->needs) ? url_fault(gw_browser_text(action, "url")) : NULL;
    if (strcmp(row->name, "wait") == 0 && !json_object_object_get_ex(action, "ms", NULL) &&
        !json_object_object_get_ex(action, "selector", NULL)) {
        return refuse_action(error, index, "selector", "is missing; a wait has a selector, or ms");
    }
    return fault ? refuse_action(error, index, "url", fault) : FM_OK;
}

static void write_summary(struct gw_tool_call *call, struct json_object *actions, bool own) {
    struct json_object *first = json_object_array_get_idx(actions, 0);
    const struct gw_browser_action *row = gw_browser_action_find(gw_browser_text(first, "action"));
    size_t more = json_object_array_length(actions) - 1;
    fm_buf_append_str(&call->summary, row->verb);
    if (row->shown) {
        const char *text = gw_browser_text(first, row->shown);
        const char *host = strstr(text, "://");
        bool is_url = strcmp(row->shown, "url") == 0;
        text = is_url && host ? host + 3 : text;
        fm_buf_append_char(&call->summary, *text ? ' ' : '.');
        gw_display_line(&call->summary, text, is_url ? strcspn(text, "/?#") : strlen(text), SUMMARY_MAX);
    }
    fm_buf_append_str(&call->summary, own ? " (this machine)" : "");
    if (more) {
        char text[64];
        snprintf(text, sizeof text, ", then %zu more action%s", more, more == 1 ? "" : "s");
        fm_buf_append_str(&call->summary, text);
    }
}

/* Writes one action; true if a character was replaced. */
static bool write_action(struct fm_json_writer *w, struct json_object *action) {
    bool escaped = false;
    fm_json_object_begin(w);
    for (struct lh_entry *entry = json_object_get_object(action)->head; entry; entry = entry->next) {
        const char *name = lh_entry_k(entry);
        struct json_object *value = (struct json_object *)lh_entry_v(entry);
        fm_json_key(w, name);
        if (json_object_is_type(value, json_type_string)) {
            struct fm_buf shown;
            fm_buf_init(&shown, GW_TOOL_CALL_TEXT_MAX);
            escaped |= gw_display(&shown, json_object_get_string(value), (size_t)json_object_get_string_len(value));
            fm_json_string(w, shown.data ? shown.data : "", shown.len);
            w->buf->failed |= shown.failed;
            fm_buf_free(&shown);
        } else {
            fm_json_value(w, value);
        }
    }
    fm_json_object_end(w);
    return escaped;
}

static void write_details(struct gw_tool_call *call, struct json_object *actions, bool own) {
    struct fm_json_writer w = fm_json_writer_on(&call->details);
    bool escaped = false;
    fm_json_object_begin(&w);
    fm_json_key(&w, "actions");
    fm_json_array_begin(&w);
    for (size_t i = 0; i < json_object_array_length(actions); i++) {
        escaped |= write_action(&w, json_object_array_get_idx(actions, i));
    }
    fm_json_array_end(&w);
    if (own) {
        fm_json_key_str(&w, "note", "The pages are on this machine. Nothing else can be reached.");
    }
    if (escaped) {
        fm_json_key_bool(&w, "escaped", true);
    }
    fm_json_object_end(&w);
}

static enum fm_code prepare_actions(struct gw_tool_call *call, struct fm_error *error) {
    struct json_object *actions = json_object_object_get(call->input, "actions");
    if (call->tools->sandbox == GW_SANDBOX_STRICT) {
        return fm_fail(error, FM_UNAVAILABLE,
                       "the browser needs the network, and tools.sandbox is \"strict\": set it to "
                       "\"write\" or \"off\" to use the browser");
    }
    for (size_t i = 0; i < json_object_array_length(actions); i++) {
        struct json_object *action = json_object_array_get_idx(actions, i);
        if (!add_scheme(action)) {
            return fm_fail_no_memory(error);
        }
        if (check_action(action, i, error) != FM_OK) {
            return error->code;
        }
    }
    bool own;
    if (check_own_pages(call, actions, &own, error) != FM_OK) {
        return error->code;
    }
    const char *text = json_object_to_json_string_ext(actions, JSON_C_TO_STRING_PLAIN);
    if (!text) {
        return fm_fail_no_memory(error);
    }
    gw_digest(text, strlen(text), call->digest);
    write_summary(call, actions, own);
    write_details(call, actions, own);
    return FM_OK;
}

static void free_nothing(struct gw_tool_call *call) {
    (void)call; /* once the call has settled, `own` is freed */
}

#define TEXT(max) "{\"type\":\"string\",\"minLength\":1,\"maxLength\":" max "}"

const struct gw_tool gw_tool_browser = {
    .name = "browser",
    .description = "Controls a browser with an empty profile, which is gone after the call; so one call has all "
                   "actions that belong "
                   "together, in order. navigate {url}; click {selector}; type {selector, text, submit?} replaces a "
                   "field's text and, "
                   "with submit, presses Enter; wait {selector} until it is there, or {ms}; text {selector?} returns "
                   "the visible text; "
                   "screenshot. Selectors are those of CSS. Private addresses can't be reached, and nothing is "
                   "downloaded. A page of this machine (http://localhost:PORT/) needs a call of its own.",
    .input_schema =
        "{\"type\":\"object\",\"required\":[\"actions\"],\"additionalProperties\":false,\"properties\":{\"actions\":{"
        "\"type\":\"array\",\"minItems\":1,\"maxItems\":20,\"items\":{\"type\":\"object\",\"required\":[\"action\"],"
        "\"additionalProperties\":false,\"properties\":{\"action\":{\"type\":\"string\",\"enum\":[\"navigate\","
        "\"click\","
        "\"type\",\"wait\",\"text\",\"screenshot\"]},\"url\":" TEXT("8192") ",\"selector\":" TEXT(
            "1000") ","
                    "\"text\":{\"type\":\"string\",\"maxLength\":20000},\"submit\":{\"type\":\"boolean\"},\"ms\":{"
                    "\"type\":\"integer\","
                    "\"minimum\":0,\"maximum\":30000}}}}}}",
    .requires_approval = true,
    .prepare = prepare_actions,
    .execute = gw_browser_execute,
    .abort = gw_browser_abort,
    .free = free_nothing,
};
