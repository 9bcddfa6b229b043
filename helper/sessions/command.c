#include "sessions/command.h"
#include "base/utf8.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAME_SHOWN 100 /* bytes of a name in an error */

/* ---- faults ---- */

static const char *const fault_names[] = {
    [FM_FAULT_NONE] = "",
    [FM_FAULT_INVALID_JSON] = "invalid_json",
    [FM_FAULT_COMMAND_REQUIRED] = "command_required",
    [FM_FAULT_UNKNOWN_COMMAND] = "unknown_command",
    [FM_FAULT_SESSION_ID_REQUIRED] = "session_id_required",
    [FM_FAULT_SESSION_NOT_FOUND] = "session_not_found",
    [FM_FAULT_PROMPT_REQUIRED] = "prompt_required",
    [FM_FAULT_CONTENT_REQUIRED] = "content_required",
    [FM_FAULT_OUTPUT_FORMAT_REQUIRED] = "output_format_required",
    [FM_FAULT_UNKNOWN_OUTPUT_FORMAT] = "unknown_output_format",
    [FM_FAULT_GUARDRAIL_BLOCKED] = "guardrail_blocked",
    [FM_FAULT_MODEL_UNAVAILABLE] = "model_unavailable",
    [FM_FAULT_FAILED_TO_OPEN] = "failed_to_open_session",
    [FM_FAULT_EXECUTION_FAILED] = "execution_failed",
};

const char *fm_fault_name(enum fm_fault_code code) {
    return fault_names[code];
}

enum fm_fault_code fm_fault_fill(struct fm_fault *fault, enum fm_fault_code code, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(fault->detail, sizeof fault->detail, fmt, args);
    va_end(args);
    fault->detail[fm_utf8_whole_prefix(fault->detail, strlen(fault->detail))] = '\0';
    fault->code = code;
    fault->quotes = false;
    return code;
}

static enum fm_fault_code plain(struct fm_fault *fault, enum fm_fault_code code) {
    return fm_fault_fill(fault, code, "%s", "");
}

void fm_fault_write(const struct fm_fault *fault, struct fm_json_writer *w) {
    char text[sizeof fault->detail + 64];
    bool detailed = fault->code == FM_FAULT_FAILED_TO_OPEN || fault->code == FM_FAULT_EXECUTION_FAILED;
    snprintf(text, sizeof text, detailed ? "%s: %s" : "%s", fault_names[fault->code], fault->detail);
    fm_json_object_begin(w);
    fm_json_key_bool(w, "ok", false);
    fm_json_key_str(w, "error", text);
    fm_json_object_end(w);
}

/* ---- texts ---- */

/* The string member `name`; absent when there is none, or when it is something else. */
static struct fm_text text_member(const struct fm_command *command, const char *name) {
    struct json_object *value;
    if (!json_object_object_get_ex(command->root, name, &value) || !json_object_is_type(value, json_type_string)) {
        return (struct fm_text){.data = NULL};
    }
    return (struct fm_text){json_object_get_string(value), (size_t)json_object_get_string_len(value)};
}

static bool text_is(struct fm_text text, const char *word) {
    return text.len == strlen(word) && memcmp(text.data, word, text.len) == 0;
}

/* ---- commands ---- */

struct row {
    const char *name;
    bool has_session;
    const char *members[5]; /* beside `command`; NULL-terminated */
};

static const struct row rows[] = {
    [FM_COMMAND_OPEN] = {"open-session", false, {"instructions"}},
    [FM_COMMAND_MESSAGE] = {"message", true, {"session_id", "prompt", "content", "output_format"}},
    [FM_COMMAND_CLOSE] = {"close-session", true, {"session_id"}},
    [FM_COMMAND_CHECK] = {"check-availability", false, {NULL}},
    [FM_COMMAND_SHUTDOWN] = {"shutdown", false, {NULL}},
};

const char *fm_command_name(enum fm_command_kind kind) {
    return rows[kind].name;
}

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool fm_command_is_blank(const char *line, size_t len) {
    size_t i = 0;
    while (i < len && is_space(line[i])) {
        i++;
    }
    return i == len;
}

/* By its name. False: there is no such command. */
static bool find_kind(struct fm_text name, enum fm_command_kind *kind) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (text_is(name, rows[i].name)) {
            *kind = (enum fm_command_kind)i;
            return true;
        }
    }
    return false;
}

static enum fm_fault_code read_kind(struct fm_command *command, struct fm_fault *fault) {
    struct fm_text name = text_member(command, "command");
    if (!name.data) {
        return plain(fault, FM_FAULT_COMMAND_REQUIRED);
    }
    if (!find_kind(name, &command->kind)) {
        return plain(fault, FM_FAULT_UNKNOWN_COMMAND);
    }
    command->session_id = text_member(command, "session_id");
    if (rows[command->kind].has_session && !command->session_id.data) {
        return plain(fault, FM_FAULT_SESSION_ID_REQUIRED);
    }
    return FM_FAULT_NONE;
}

enum fm_fault_code fm_command_read(const char *line, size_t len, struct fm_buf *scratch, struct fm_command *command,
                                   struct fm_fault *fault) {
    size_t offset;
    *command = (struct fm_command){.kind = FM_COMMAND_CHECK};
    if (fm_json_check(line, len, FM_JSON_VALUES_MAX, &offset)) {
        return plain(fault, FM_FAULT_INVALID_JSON);
    }
    if (!fm_json_tree(line, len, scratch, &command->root)) {
        return fm_fault_fill(fault, FM_FAULT_EXECUTION_FAILED, "out of memory");
    }
    enum fm_fault_code code = json_object_is_type(command->root, json_type_object)
                                  ? read_kind(command, fault)
                                  : plain(fault, FM_FAULT_INVALID_JSON);
    if (code != FM_FAULT_NONE) {
        fm_command_free(command);
    }
    return code;
}

static bool is_known(const struct row *row, const char *name) {
    bool known = strcmp(name, "command") == 0;
    for (const char *const *member = row->members; *member && !known; member++) {
        known = strcmp(name, *member) == 0;
    }
    return known;
}

/* Nothing that a host says is dropped in silence. */
static enum fm_fault_code check_members(const struct fm_command *command, enum fm_fault_code code,
                                        struct fm_fault *fault) {
    const struct lh_table *members = json_object_get_object(command->root);
    for (const struct lh_entry *entry = members->head; entry; entry = lh_entry_next(entry)) {
        const char *name = lh_entry_k(entry);
        if (!is_known(&rows[command->kind], name)) {
            fm_fault_fill(fault, code, "unknown field \"%.*s\"", fm_utf8_shown(name, NAME_SHOWN), name);
            fault->quotes = true;
            return code;
        }
    }
    return FM_FAULT_NONE;
}

static enum fm_fault_code read_open(struct fm_command *command, struct fm_fault *fault) {
    struct json_object *value;
    command->instructions = text_member(command, "instructions");
    if (!command->instructions.data && json_object_object_get_ex(command->root, "instructions", &value) && value) {
        return fm_fault_fill(fault, FM_FAULT_FAILED_TO_OPEN, "\"instructions\" must be a string");
    }
    return check_members(command, FM_FAULT_FAILED_TO_OPEN, fault);
}

static enum fm_fault_code read_message(struct fm_command *command, struct fm_fault *fault) {
    command->prompt = text_member(command, "prompt");
    command->content = text_member(command, "content");
    struct fm_text format = text_member(command, "output_format");
    if (!command->prompt.data) {
        return plain(fault, FM_FAULT_PROMPT_REQUIRED);
    }
    if (!command->content.data) {
        return plain(fault, FM_FAULT_CONTENT_REQUIRED);
    }
    if (format.len == 0) {
        return plain(fault, FM_FAULT_OUTPUT_FORMAT_REQUIRED);
    }
    if (!text_is(format, "text") && !text_is(format, "string_list")) {
        return plain(fault, FM_FAULT_UNKNOWN_OUTPUT_FORMAT);
    }
    command->format = text_is(format, "text") ? FM_OUTPUT_TEXT : FM_OUTPUT_STRING_LIST;
    return check_members(command, FM_FAULT_EXECUTION_FAILED, fault);
}

enum fm_fault_code fm_command_read_rest(struct fm_command *command, struct fm_fault *fault) {
    switch (command->kind) {
    case FM_COMMAND_OPEN: return read_open(command, fault);
    case FM_COMMAND_MESSAGE: return read_message(command, fault);
    default: return check_members(command, FM_FAULT_EXECUTION_FAILED, fault);
    }
}

void fm_command_free(struct fm_command *command) {
    json_object_put(command->root);
    command->root = NULL;
}
