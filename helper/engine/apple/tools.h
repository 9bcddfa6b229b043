/* A job's tools as objects of the library, which are made from the schemas of their parameters. Engine thread. */
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
    struct fm_apple_schema schemas[FM_TOOLS_MAX]; /* root NULL: the tool has no parameters, or is not allowed */
    struct json_object *definitions;              /* for the transcript; an array */
};

/*
 * Translates the schema of the parameters of tool `index`. `schema` is zeroed if the tool has no parameters.
 * FM_INVALID_REQUEST: Apple's dialect lacks a keyword, whose path is the param.
 */
FM_MUST_USE enum fm_code fm_apple_tool_schema(const struct fm_kit_job *job, size_t index,
                                              struct fm_apple_schema *schema, struct fm_error *error);

/*
 * Makes the tools that `job` may call. FM_INVALID_REQUEST: the library can't express a tool's parameters; the param is
 * their path. Call fm_apple_tools_free in any case.
 */
FM_MUST_USE enum fm_code fm_apple_tools_make(struct fm_apple_tools *tools, const struct fm_apple_api *api,
                                             const struct fm_kit_job *job, struct fm_error *error);

/* Releases the tools, after the last callback of the task that may call them. Harmless if `tools` is all zero. */
void fm_apple_tools_free(struct fm_apple_tools *tools);

#endif
