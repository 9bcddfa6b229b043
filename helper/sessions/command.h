/* Reads a line of session mode as a command, or as one of the errors of protocol/SESSIONS.md. Pure. */
#ifndef FM_SESSIONS_COMMAND_H
#define FM_SESSIONS_COMMAND_H

#include "base/compiler.h"
#include "protocol/json_writer.h"

struct json_object;

enum fm_command_kind { FM_COMMAND_OPEN, FM_COMMAND_MESSAGE, FM_COMMAND_CLOSE, FM_COMMAND_CHECK, FM_COMMAND_SHUTDOWN };

enum fm_output_format { FM_OUTPUT_TEXT, FM_OUTPUT_STRING_LIST };

/* The errors of SESSIONS.md, "Errors", in the order in which a line is checked. */
enum fm_fault_code {
    FM_FAULT_NONE,
    FM_FAULT_INVALID_JSON,
    FM_FAULT_COMMAND_REQUIRED,
    FM_FAULT_UNKNOWN_COMMAND,
    FM_FAULT_SESSION_ID_REQUIRED,
    FM_FAULT_PROMPT_REQUIRED,
    FM_FAULT_CONTENT_REQUIRED,
    FM_FAULT_OUTPUT_FORMAT_REQUIRED,
    FM_FAULT_SESSION_NOT_FOUND,
    FM_FAULT_UNKNOWN_OUTPUT_FORMAT,
    FM_FAULT_GUARDRAIL_BLOCKED,
    FM_FAULT_MODEL_UNAVAILABLE,
    FM_FAULT_FAILED_TO_OPEN, /* from this code on, the answer has the detail too; before it, only the name */
    FM_FAULT_EXECUTION_FAILED,
};

struct fm_fault {
    enum fm_fault_code code;
    bool quotes;      /* the detail may quote the host's text, so it must not be logged */
    char detail[640]; /* UTF-8; what is wrong and what to do */
};

/* A text of a line or of an answer; it may contain NULs. `data` NULL: the text is absent. */
struct fm_text {
    const char *data;
    size_t len;
};

struct fm_command {
    enum fm_command_kind kind;
    struct json_object *root; /* the parsed line; owned; the texts point into it */
    struct fm_text session_id;
    struct fm_text instructions;
    struct fm_text prompt;
    struct fm_text content;
    struct fm_text output_format;
    enum fm_output_format format; /* `output_format` parsed; valid after fm_command_read_rest */
};

/* Fills `fault` and returns `code`. The detail is formatted as by printf; a long one is cut between characters. */
enum fm_fault_code fm_fault_fill(struct fm_fault *fault, enum fm_fault_code code, const char *fmt, ...) FM_PRINTF(3, 4);

/* The code's name, such as "invalid_json". */
const char *fm_fault_name(enum fm_fault_code code);

/* Writes the answer {"ok":false,"error":...}. */
void fm_fault_write(const struct fm_fault *fault, struct fm_json_writer *w);

/* True for a line that is only white space: it is not a request. */
bool fm_command_is_blank(const char *line, size_t len);

/*
 * Reads the command and the strings that it needs. Other members are ignored; if several have the same name, the last
 * one counts. On failure nothing is left to free; from FM_FAULT_SESSION_ID_REQUIRED on, `command->kind` is the command
 * that failed. `scratch` is used for strings with escapes; its contents mean nothing afterwards.
 */
FM_MUST_USE enum fm_fault_code fm_command_read(const char *line, size_t len, struct fm_buf *scratch,
                                               struct fm_command *command, struct fm_fault *fault);

/*
 * Reads what is checked after the session is found: a message's output format, and the instructions of a new session.
 * The caller frees the command, on failure too.
 */
FM_MUST_USE enum fm_fault_code fm_command_read_rest(struct fm_command *command, struct fm_fault *fault);

/* Calling it twice is harmless. */
void fm_command_free(struct fm_command *command);

/* The command's name, such as "open-session". */
const char *fm_command_name(enum fm_command_kind kind);

/* The format's name, "text" or "string_list". */
const char *fm_output_format_name(enum fm_output_format format);

#endif
