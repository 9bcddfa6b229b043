/* Reads one input line of session mode into a struct fm_command, and writes faults in the form that clients read. */
#include "sessions/command.h"
#include "base/utf8.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <json-c/json.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- faults ---- */

static const char *const fault_names[] = {
    [FM_FAULT_NONE] = "",
    [FM_FAULT_INVALID_JSON] = "invalid_json",
    [FM_FAULT_COMMAND_REQUIRED] = "command_required",
    [FM_FAULT_UNKNOWN_COMMAND] = "unknown_command",
    [FM_FAULT_SESSION_ID_REQUIRED] = "session_id_required",
    [FM_FAULT_PROMPT_REQUIRED] = "prompt_required",
    [FM_FAULT_CONTENT_REQUIRED] = "content_required",
    [FM_FAULT_OUTPUT_FORMAT_REQUIRED] = "output_format_required",
    [FM_FAULT_SESSION_NOT_FOUND] = "session_not_found",
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

/* The string member `name`; absent when it is missing or not a string. */
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

/* The strings that commands need, in the order of the checks. */
static const struct field {
    const char *name;
    size_t text; /* the field's offset in struct fm_command */
    enum fm_fault_code missing;
    bool filled; /* an empty string counts as missing */
} fields[] = {
    {"session_id", offsetof(struct fm_command, session_id), FM_FAULT_SESSION_ID_REQUIRED, false},
    {"prompt", offsetof(struct fm_command, prompt), FM_FAULT_PROMPT_REQUIRED, true},
    {"content", offsetof(struct fm_command, content), FM_FAULT_CONTENT_REQUIRED, true},
    {"output_format", offsetof(struct fm_command, output_format), FM_FAULT_OUTPUT_FORMAT_REQUIRED, false},
};

static const struct row {
    const char *name;
    size_t needs; /* how many of the fields the command needs, from the first one on */
} rows[] = {
    [FM_COMMAND_OPEN] = {"open-session", 0},
    [FM_COMMAND_MESSAGE] = {"message", 4},
    [FM_COMMAND_CLOSE] = {"close-session", 1},
    [FM_COMMAND_CHECK] = {"check-availability", 0},
    [FM_COMMAND_SHUTDOWN] = {"shutdown", 0},
};

static const char *const format_names[] = {[FM_OUTPUT_TEXT] = "text", [FM_OUTPUT_STRING_LIST] = "string_list"};

const char *fm_output_format_name(enum fm_output_format format) {
    return format_names[format];
}

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

/* Finds a command by its name. False: there is no such command. */
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
        return fm_fault_fill(fault, FM_FAULT_COMMAND_REQUIRED, "\"command\" must be a string");
    }
    if (!find_kind(name, &command->kind)) {
        return fm_fault_fill(fault, FM_FAULT_UNKNOWN_COMMAND,
                             "\"command\" must be one of open-session, message, close-session, check-availability, "
                             "shutdown");
    }
    return FM_FAULT_NONE;
}

static enum fm_fault_code read_fields(struct fm_command *command, struct fm_fault *fault) {
    for (const struct field *field = fields; field < fields + rows[command->kind].needs; field++) {
        struct fm_text text = text_member(command, field->name);
        if (!text.data || (field->filled && text.len == 0)) {
            return fm_fault_fill(fault, field->missing, "\"%s\" must be a string%s", field->name,
                                 field->filled ? " that is not empty" : "");
        }
        *(struct fm_text *)((char *)command + field->text) = text;
    }
    return FM_FAULT_NONE;
}

static enum fm_fault_code read_object(struct fm_command *command, struct fm_fault *fault) {
    if (!json_object_is_type(command->root, json_type_object)) {
        return fm_fault_fill(fault, FM_FAULT_INVALID_JSON, "the line must be a JSON object");
    }
    enum fm_fault_code code = read_kind(command, fault);
    return code == FM_FAULT_NONE ? read_fields(command, fault) : code;
}

enum fm_fault_code fm_command_read(const char *line, size_t len, struct fm_buf *scratch, struct fm_command *command,
                                   struct fm_fault *fault) {
    size_t offset;
    *command = (struct fm_command){.kind = FM_COMMAND_CHECK};
    const char *wrong = fm_json_check(line, len, FM_JSON_VALUES_MAX, &offset);
    if (wrong) {
        return fm_fault_fill(fault, FM_FAULT_INVALID_JSON, "%s, at byte %zu of %zu", wrong, offset, len);
    }
    if (!fm_json_tree(line, len, scratch, &command->root)) {
        return fm_fault_fill(fault, FM_FAULT_EXECUTION_FAILED, "out of memory");
    }
    enum fm_fault_code code = read_object(command, fault);
    if (code != FM_FAULT_NONE) {
        fm_command_free(command);
    }
    return code;
}

static enum fm_fault_code read_instructions(struct fm_command *command, struct fm_fault *fault) {
    struct json_object *value;
    command->instructions = text_member(command, "instructions");
    if (!command->instructions.data && json_object_object_get_ex(command->root, "instructions", &value) && value) {
        return fm_fault_fill(fault, FM_FAULT_FAILED_TO_OPEN, "\"instructions\" must be a string");
    }
    return FM_FAULT_NONE;
}

static enum fm_fault_code read_format(struct fm_command *command, struct fm_fault *fault) {
    for (size_t i = 0; i < sizeof format_names / sizeof format_names[0]; i++) {
        if (text_is(command->output_format, format_names[i])) {
            command->format = (enum fm_output_format)i;
            return FM_FAULT_NONE;
        }
    }
    return fm_fault_fill(fault, FM_FAULT_UNKNOWN_OUTPUT_FORMAT,
                         "\"output_format\" must be \"text\" or \"string_list\"");
}

enum fm_fault_code fm_command_read_rest(struct fm_command *command, struct fm_fault *fault) {
    switch (command->kind) {
    case FM_COMMAND_OPEN: return read_instructions(command, fault);
    case FM_COMMAND_MESSAGE: return read_format(command, fault);
    default: return FM_FAULT_NONE;
    }
}

void fm_command_free(struct fm_command *command) {
    json_object_put(command->root);
    command->root = NULL;
}
