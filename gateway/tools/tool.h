/*
 * The gateway's tools: what a model may ask for, what the user sees before it runs, and how it runs.
 *
 * A call goes through three steps. gw_tool_call_prepare checks the input and freezes everything. The caller gets the
 * user's approval. gw_tool_call_start runs the call and leads to exactly one `done`. A tool is one file and one row of
 * the table in registry.c. Call all functions on the loop's thread. None blocks for longer than it takes to open a
 * file. Callbacks come only from the loop, never from within a function here. Linux only: runner/ is built on its
 * namespaces and Landlock.
 */
#ifndef GW_TOOLS_TOOL_H
#define GW_TOOLS_TOOL_H

#include "base/error.h"
#include "tools/digest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define GW_TOOL_INPUT_MAX (256u * 1024u) /* bytes of a call's input as JSON */

struct json_object;
struct gw_tool_call;
struct gw_tools;

/* The values of tools.sandbox (config.json). */
enum gw_sandbox { GW_SANDBOX_OFF, GW_SANDBOX_WRITE, GW_SANDBOX_STRICT };

/* "off", "write" or "strict". False for any other word. */
FM_MUST_USE bool gw_sandbox_parse(const char *word, enum gw_sandbox *sandbox);

/* A row of the table. Only registry.c calls its functions, on the loop's thread. */
struct gw_tool {
    const char *name;
    const char *description;  /* for the model */
    const char *input_schema; /* a JSON Schema object, of the keywords in schema.h */
    bool requires_approval;
    /* Checks what the schema can't, and fills the call's summary, details and job (call.h). */
    enum fm_code (*prepare)(struct gw_tool_call *call, struct fm_error *error);
    /*
     * Begins the call, which later ends in one gw_tool_call_settle. A failure means that the call did not start and
     * nothing runs.
     */
    enum fm_code (*execute)(struct gw_tool_call *call, struct fm_error *error);
    /* Ends the call early: it settles as soon as none of its processes is left. May be called more than once. */
    void (*abort)(struct gw_tool_call *call);
    /* Frees what `prepare` and `execute` kept in the call. */
    void (*free)(struct gw_tool_call *call);
};

struct gw_tools_config {
    uv_loop_t *loop;
    const char *runner;       /* path of fm-tool-run; NULL: beside this program */
    const char *browser;      /* path of Chromium; NULL: "chromium", by PATH */
    char *const *environment; /* NAME=VALUE; an allow-list picks from these (environment.c). NULL: environ */
    const char *state_folder; /* a folder that is hidden from sandboxed tools, as keys are; NULL: none */
    const char
        *exempt_address;   /* for tests: "ADDRESS:PORT" that the browser may reach, though it is private; NULL: none */
    const uint16_t *own_port;   /* where the gateway listens, which no page may be of: read at each call; NULL: not known */
    int64_t timeout_ms;    /* tools.timeout */
    size_t output_max;     /* tools.maxOutputBytes, at least 1,000 */
    int64_t processes_max; /* of one call; 0: 4,096 */
    enum gw_sandbox sandbox;
};

/*
 * Makes the tools, and copies what they need. FM_INVALID_REQUEST or FM_INTERNAL: `*tools` is NULL. Free with
 * gw_tools_free.
 */
FM_MUST_USE enum fm_code gw_tools_new(const struct gw_tools_config *config, struct gw_tools **tools,
                                      struct fm_error *error);

/* Frees the tools. No call of them may exist any more. */
void gw_tools_free(struct gw_tools *tools);

/* The table, which is constant: how many tools there are, and each tool. */
size_t gw_tools_count(void);
const struct gw_tool *gw_tools_at(size_t index);

/*
 * Checks a call that a model makes, and freezes it. `input` is JSON; `folder` is where it shall run. The folder is
 * opened here and kept open, so a link that changes afterwards has no effect. FM_NOT_FOUND: no such tool.
 * FM_INVALID_REQUEST: the input or the folder is at fault; for the input, `param` names the value ("actions[2].url").
 * The caller owns the call and frees it by gw_tool_call_free.
 */
FM_MUST_USE enum fm_code gw_tool_call_prepare(struct gw_tools *tools, const char *name, const char *input, size_t len,
                                              const char *folder, struct gw_tool_call **call, struct fm_error *error);

/* What the user shall approve. It is valid as long as the call. */
struct gw_tool_call_request {
    const char *tool;
    const char *summary; /* one line, with invisible characters shown as display.h does */
    const char *details; /* a JSON object: bash {command,workingDir}, browser {actions}; "escaped":true is added where a
                            character was replaced by its name, such as <U+202E> */
    const char *digest;  /* SHA-256 of what will run: the runner refuses anything else */
    const char *folder;  /* where it runs: the path of the folder that is held open, without links */
    bool requires_approval;
};
void gw_tool_call_request(const struct gw_tool_call *call, struct gw_tool_call_request *request);

enum gw_end {
    GW_END_DONE,    /* the call ran to its end, successful or not */
    GW_END_TIMEOUT, /* tools.timeout */
    GW_END_ABORTED, /* ended by gw_tool_call_abort */
    GW_END_FAILED,  /* the call could not run, or an action failed: `output` has the reason */
    GW_END_UNKNOWN, /* the runner was killed: how far it came is not known */
};

/* The word for an end: "done", "timeout", "aborted", "failed", "unknown". */
const char *gw_end_name(enum gw_end end);

struct gw_attachment {
    bool image; /* else a file */
    char mime_type[32];
    char name[64];
    char *data; /* base64 */
    size_t len;
};

struct gw_result {
    enum gw_end end;
    const char *output; /* UTF-8: at most output_max bytes, and a line that says why it ended */
    size_t output_len;
    const struct gw_attachment *attachments;
    size_t attachment_count;
    bool has_exit_code;
    int exit_code; /* 128 + N: ended by signal N, as shells say */
    bool truncated;
    bool pid_namespace; /* whether its processes had their own namespace */
};

struct gw_observer {
    void *context;
    void (*progress)(void *context, const char *message); /* a line of plain text; may be NULL */
    void (*done)(void *context,
                 const struct gw_result *result); /* called once; may call gw_tool_call_free */
};

/* Runs the call, once. Any failure is reported by `done`. */
void gw_tool_call_start(struct gw_tool_call *call, const struct gw_observer *observer);

/*
 * Ends the call early. `done` is called as soon as none of its processes is left. After `done` this function does
 * nothing.
 */
void gw_tool_call_abort(struct gw_tool_call *call);

/* Frees the call. Call it only before gw_tool_call_start, or in `done` or later. NULL does nothing. */
void gw_tool_call_free(struct gw_tool_call *call);

#endif
