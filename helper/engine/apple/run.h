/* The state of one job during its answer, which the files for answers share. Only they include this. Engine thread. */
#ifndef FM_ENGINE_APPLE_RUN_H
#define FM_ENGINE_APPLE_RUN_H

#include "engine/apple/engine.h"
#include "engine/apple/schema.h"

#define FM_APPLE_TRANSCRIPT_MAX (64u << 20) /* bytes */

/* All memory that a task of the library may use is in here. It stays unchanged if the task does not end. */
struct fm_apple_run {
    struct fm_apple *apple;
    const struct fm_apple_api *api;
    struct fm_kit_job *job;
    struct fm_error *error;
    struct fm_apple_tools tools;   /* tools that the model may call */
    struct fm_apple_schema format; /* the schema of the answer; root NULL: free text */
    struct fm_apple_extras extras;
    struct fm_buf instructions;
    struct fm_buf whole; /* the transcript that was counted */
    struct fm_buf options;
    int64_t input; /* the tokens of `whole` */

    fm_apple_ref session; /* the session of the running task */
    fm_apple_ref prompt;
    struct fm_apple_task task;
    struct fm_apple_running running;
    struct fm_buf piece;
    bool spoke;
    bool complete;        /* the task ended well, or we stopped it: the text can be counted */
    struct fm_buf answer; /* an answer that follows a schema, as the library wrote it, or the arguments of calls */
};

/* ---- run.c ---- */

/* Fill run->error with FM_INTERNAL. Both return FM_REASON_ERROR, so that a failing function ends in one statement. */
enum fm_reason fm_apple_failed(struct fm_apple_run *run, const char *detail);
enum fm_reason fm_apple_no_memory(struct fm_apple_run *run);

/*
 * Lets the library answer the conversation, up to its last callback. Free text is sent as it comes. With `schema` (in
 * Apple's dialect) the answer is left in run->answer, as JSON. If the model calls a tool, the call is sent, and the job
 * ends. FM_REASON_NONE: it ended well. Blocks. The caller checks run->apple->stuck afterwards.
 */
FM_MUST_USE enum fm_reason fm_apple_ask(struct fm_apple_run *run, struct json_object *schema, bool of_tool);

/* ---- calls.c ---- */

/* Checks the schemas of the tools that an answer may have to call, and describes the tools to the model. */
FM_MUST_USE enum fm_code fm_apple_prepare_calls(struct fm_apple_run *run);

/* Sends the calls that the model made by itself, before it got a result for any of them. */
FM_MUST_USE enum fm_reason fm_apple_tell_calls(struct fm_apple_run *run);

/* Makes the model call a tool: asks first for the tool's name, then for the arguments. Blocks. */
FM_MUST_USE enum fm_reason fm_apple_call_tool(struct fm_apple_run *run);

#endif
