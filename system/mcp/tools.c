/* tools/list and tools/call. The list depends only on the command line, never on the desktop. */
#include "mcp/tools.h"
#include "commands/table.h"
#include "desktop/refuse.h"
#include "mcp/ask.h"
#include "mcp/lists.h"

#include <ctype.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

static const struct sy_tool tools[] = {
    {SY_RUN_COMMANDS,
     "Runs up to 20 commands in their order, up to the first one that fails. All are checked before the first one "
     "runs. "
     "With needs_clarification true nothing runs, and clarification_reason is what to ask the user.",
     false, true, sy_write_envelope_schema, sy_call_envelope},
    {SY_MATCH,
     "Finds the commands that a user's words mean on the desktop of now, and does nothing. The result is what "
     "run_commands takes; where the words are not clear, needs_clarification is true and clarification_reason is what "
     "to ask the user.",
     true, false, sy_write_match_schema, sy_call_match},
};

static const struct sy_tool *find_tool(const char *name) {
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        if (strcmp(tools[i].name, name) == 0) {
            return &tools[i];
        }
    }
    return NULL;
}

bool sy_is_tool(const char *name) {
    return sy_find_command(name) || find_tool(name);
}

/* ---- listing ---- */

void sy_write_title(const char *name, struct fm_json_writer *w) {
    char title[64];
    snprintf(title, sizeof title, "%s", name);
    title[0] = (char)toupper((unsigned char)title[0]);
    for (char *at = title; *at; at++) {
        *at = *at == '_' ? ' ' : *at;
    }
    fm_json_key_str(w, "title", title);
}

static void write_hints(const char *name, bool reads, bool destroys, struct fm_json_writer *w) {
    fm_json_key(w, "annotations");
    fm_json_object_begin(w);
    sy_write_title(name, w);
    fm_json_key_bool(w, "readOnlyHint", reads);
    fm_json_key_bool(w, "destructiveHint", destroys);
    fm_json_key_bool(w, "openWorldHint", strcmp(name, "open_url") == 0);
    fm_json_object_end(w);
}

static void write_head(const char *name, const char *about, enum sy_era era, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "name", name);
    if (era >= SY_2025_06_18) {
        sy_write_title(name, w);
    }
    fm_json_key_str(w, "description", about);
    fm_json_key(w, "inputSchema");
}

static void write_tail(const char *name, bool reads, bool destroys, enum sy_era era, struct fm_json_writer *w) {
    if (era >= SY_2025_06_18) {
        fm_json_key(w, "outputSchema");
        sy_write_output_schema(name, w);
    }
    if (era >= SY_2025_03_26) {
        write_hints(name, reads, destroys, w);
    }
    fm_json_object_end(w);
}

/* Whether run_commands may close something: one of the allowed commands does. */
static bool may_destroy(const struct sy_policy *policy) {
    for (size_t i = 0; i < sy_command_count; i++) {
        if (sy_commands[i].destroys && sy_policy_allows(policy, sy_commands[i].type, false)) {
            return true;
        }
    }
    return false;
}

void sy_tools_list(const struct sy_policy *policy, enum sy_era era, struct fm_json_writer *w) {
    fm_json_key(w, "tools");
    fm_json_array_begin(w);
    for (size_t i = 0; i < sy_command_count; i++) {
        const struct sy_command *row = &sy_commands[i];
        if (sy_policy_allows(policy, row->type, row->reads)) {
            write_head(row->type, row->about, era, w);
            sy_write_input_schema(row, w);
            write_tail(row->type, row->reads, row->destroys, era, w);
        }
    }
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        const struct sy_tool *row = &tools[i];
        if (sy_policy_allows(policy, row->name, row->reads)) {
            write_head(row->name, row->about, era, w);
            row->input(policy, w);
            write_tail(row->name, row->reads || policy->read_only, row->destroys && may_destroy(policy), era, w);
        }
    }
    fm_json_array_end(w);
}

/* ---- calling ---- */

static bool call(struct sy_caller *caller, const struct sy_request *request, const char *name, struct json_object *args,
                 struct fm_json_writer *w) {
    const struct sy_command *command = sy_find_command(name);
    const struct sy_tool *tool = find_tool(name);
    struct fm_error error;
    if (!sy_policy_allows(&caller->policy, name, command ? command->reads : tool->reads)) {
        sy_refuse(&error, "denied", "", "fm-system was started without %s: see its --allow and --read-only", name);
        return sy_write_refusal(&error, w);
    }
    if (sy_caller_open(caller, &error) != FM_OK) {
        return sy_write_refusal(&error, w);
    }
    return command ? sy_call_command(caller, request, name, args, w) : tool->call(caller, request, args, w);
}

static void write_result(const struct fm_buf *given, bool ok, enum sy_era era, struct fm_json_writer *w) {
    fm_json_key(w, "content");
    fm_json_array_begin(w);
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", "text");
    fm_json_key(w, "text");
    fm_json_string(w, given->data, given->len);
    fm_json_object_end(w);
    fm_json_array_end(w);
    if (era >= SY_2025_06_18) {
        fm_json_key(w, "structuredContent");
        fm_json_raw(w, given->data, given->len);
    }
    fm_json_key_bool(w, "isError", !ok);
}

/* A failed command is a result, so that a model reads its error. A wrong request gets an error of the protocol. */
bool sy_tools_call(struct sy_caller *caller, const struct sy_request *request, struct fm_json_writer *w,
                   struct sy_fault *fault) {
    const char *name = sy_request_string(request, "name", fault);
    struct json_object *args = json_object_object_get(request->params, "arguments");
    struct fm_buf given;
    if (!name) {
        return false;
    }
    if (args && !json_object_is_type(args, json_type_object)) {
        return sy_fail(fault, FM_RPC_PARAMS, "params.arguments must be an object");
    }
    if (!sy_is_tool(name)) {
        return sy_fail(fault, FM_RPC_PARAMS, "Unknown tool: %.64s", name);
    }
    fm_buf_init(&given, SY_REPLY_MAX);
    struct fm_json_writer on_given = fm_json_writer_on(&given);
    bool ok = call(caller, request, name, args, &on_given);
    if (given.failed) {
        fm_buf_free(&given);
        return sy_fail(fault, FM_RPC_INTERNAL, "out of memory, or the answer is too large");
    }
    if (caller->forged) { /* an error of the client, not of the model */
        fm_buf_free(&given);
        return sy_fail(fault, FM_RPC_PARAMS, "params.requestState was not given for this call, or was used: ask again");
    }
    if (caller->asks) {
        sy_ask_write(caller, w);
    } else {
        write_result(&given, ok, request->era, w);
    }
    fm_buf_free(&given);
    return true;
}
