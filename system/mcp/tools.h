/* Tools: the commands of the table, and some that are no commands. */
#ifndef SY_MCP_TOOLS_H
#define SY_MCP_TOOLS_H

#include "mcp/caller.h"

/*
 * A tool that is no command. `call` writes the tool's result as one JSON object with a member "ok", and returns the
 * value of "ok". To add a tool, write a row in tools.c and a row in output.c.
 */
struct sy_tool {
    const char *name;
    const char *about;                                                       /* for models */
    bool reads;                                                              /* the tool changes nothing */
    bool destroys;                                                           /* the tool may close something */
    void (*input)(const struct sy_policy *policy, struct fm_json_writer *w); /* writes its parameters' JSON Schema */
    bool (*call)(struct sy_caller *caller, const struct sy_request *request, struct json_object *args,
                 struct fm_json_writer *w);
};

/* ---- input.c: the schemas of tools' parameters ---- */

struct sy_command;

/* Write the JSON Schema of a command's parameters, and of a whole request. */
void sy_write_input_schema(const struct sy_command *command, struct fm_json_writer *w);
void sy_write_envelope_schema(const struct sy_policy *policy, struct fm_json_writer *w);

/* ---- matching.c: from words to a request ---- */

/* Write the schema of match's parameters, and the result of a call of match: a request, or a question for the user. */
void sy_write_match_schema(const struct sy_policy *policy, struct fm_json_writer *w);
bool sy_call_match(struct sy_caller *caller, const struct sy_request *request, struct json_object *args,
                   struct fm_json_writer *w);

/* ---- running.c: commands ---- */

/* Run a command, or a whole request, and write {"ok": ..., with the results or "error": {...}}. Return the value of
 * "ok". */
bool sy_call_command(struct sy_caller *caller, const struct sy_request *request, const char *type,
                     struct json_object *args, struct fm_json_writer *w);
bool sy_call_envelope(struct sy_caller *caller, const struct sy_request *request, struct json_object *args,
                      struct fm_json_writer *w);

/*
 * Writes one object: the members of the object `text` (NULL: none), and "ok": true if `error` is NULL; otherwise
 * "ok": false and the error. Returns "ok".
 */
bool sy_write_outcome(const struct fm_buf *text, const struct fm_error *error, struct fm_json_writer *w);

/* Writes {"ok": false, "error": {code, param, detail}}. Returns false. */
bool sy_write_refusal(const struct fm_error *error, struct fm_json_writer *w);

#endif
