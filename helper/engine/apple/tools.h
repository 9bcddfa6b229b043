/* A job's tools as the library has them: made of the schemas of their parameters. Engine thread. */
#ifndef FM_ENGINE_APPLE_TOOLS_H
#define FM_ENGINE_APPLE_TOOLS_H

#include "engine/apple/bindings.h"
#include "engine/apple/schema.h"
#include "engine/kit/kit.h"

struct json_object;

/* The tools that the answer may call. A tool's index here, in the job's list and among the trampolines is the same. */
struct fm_apple_tools {
    const struct fm_apple_api *api;
    size_t count; /* of the job's tools */
    fm_apple_ref refs[FM_TOOLS_MAX];
    struct fm_apple_schema schemas[FM_TOOLS_MAX]; /* root NULL: a tool without parameters, or not allowed */
    struct json_object *definitions;              /* for the transcript; an array */
};

/*
 * The schema of the parameters of tool `index`; `schema` is zeroed if the tool has no parameters. FM_INVALID_REQUEST:
 * the param is the path of what Apple's dialect lacks.
 */
FM_MUST_USE enum fm_code fm_apple_tool_schema(const struct fm_kit_job *job, size_t index,
                                              struct fm_apple_schema *schema, struct fm_error *error);

/*
 * Makes the tools that `job` may call. FM_INVALID_REQUEST: the library has no counterpart for a tool's parameters; the
 * param is their path. Whatever is returned, fm_apple_tools_free is due.
 */
FM_MUST_USE enum fm_code fm_apple_tools_make(struct fm_apple_tools *tools, const struct fm_apple_api *api,
                                             const struct fm_kit_job *job, struct fm_error *error);

/* Releases the tools, after the last callback of the task that may call them. Harmless if `tools` is all zero. */
void fm_apple_tools_free(struct fm_apple_tools *tools);

#endif
