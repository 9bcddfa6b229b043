/*
 * Apple's Foundation Models through Apple's C bindings: foundation-models-c of apple/python-apple-fm-sdk 0.2.1, a
 * dynamic library that is loaded at run time. This is the table of its functions that the engine calls, one row each.
 *
 * Rules for all of it, found in its source:
 *  1. Callbacks come on threads of Swift's pool. They copy the data for the engine thread, and return. Texts are only
 *     valid during the callback. A callback must not call a function of the library.
 *  2. A task has one last callback: an error, an answer, or (for a stream) status 0 with NULL. `user` must live until
 *     that callback, even after a cancel.
 *  3. The caller owns every reference that is returned or passed, and calls `release` on it once. Strings are freed
 *     with `free_string`.
 *  4. `release` cancels a stream, `cancel` a task.
 *  5. The texts of a stream are snapshots: each one contains the whole answer so far.
 *  6. A tool's callback has no `user`.
 *  7. A tool's callback runs before the library waits for the tool's result, so a `tool_finish` inside of the callback
 *     is lost. The wait ignores a cancel.
 *  8. Strings end at their first NUL.
 */
#ifndef FM_ENGINE_APPLE_BINDINGS_H
#define FM_ENGINE_APPLE_BINDINGS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* A reference to an object of the library: a model, a session, a prompt, a task, a schema, a tool, content. */
typedef const void *fm_apple_ref;

/* Text of a stream, or its end. */
typedef void fm_apple_text_fn(int status, const char *text, size_t len, void *user);
/* An answer that follows a schema; after an error, its text as content. */
typedef void fm_apple_content_fn(int status, fm_apple_ref content, void *user);
/* A number of tokens. */
typedef void fm_apple_count_fn(int status, int tokens, const char *error, void *user);
/* A call of a tool. `call` is the library's number for it. */
typedef void fm_apple_tool_fn(fm_apple_ref arguments, unsigned call);

/* ROW(our name, the library's name, result, parameters) */
#define FM_APPLE_CALLS(ROW)                                                                                            \
    ROW(model_create, "FMSystemLanguageModelCreate", fm_apple_ref, (int use_case, int guardrails))                     \
    ROW(model_available, "FMSystemLanguageModelIsAvailable", bool, (fm_apple_ref model, int *reason))                  \
    ROW(model_context, "FMSystemLanguageModelGetContextSize", int, (fm_apple_ref model))                               \
    ROW(transcript, "FMTranscriptCreateFromJSONString", fm_apple_ref, (const char *json, int *status, char **why))     \
    ROW(session, "FMLanguageModelSessionCreateFromTranscript", fm_apple_ref,                                           \
        (fm_apple_ref transcript, fm_apple_ref model, fm_apple_ref * tools, int count))                                \
    ROW(prompt, "FMComposedPromptInitialize", fm_apple_ref, (void))                                                    \
    ROW(prompt_add, "FMComposedPromptAddText", void, (fm_apple_ref prompt, const char *text))                          \
    ROW(stream, "FMLanguageModelSessionStreamResponse", fm_apple_ref,                                                  \
        (fm_apple_ref session, fm_apple_ref prompt, const char *options))                                              \
    ROW(stream_start, "FMLanguageModelSessionResponseStreamIterate", void,                                             \
        (fm_apple_ref stream, void *user, fm_apple_text_fn *callback))                                                 \
    ROW(respond_by_schema, "FMLanguageModelSessionRespondWithSchemaFromJSON", fm_apple_ref,                            \
        (fm_apple_ref session, fm_apple_ref prompt, const char *schema, const char *options, void *user,               \
         fm_apple_content_fn *callback))                                                                               \
    ROW(content_json, "FMGeneratedContentGetJSONString", char *, (fm_apple_ref content))                               \
    ROW(count_transcript, "FMSystemLanguageModelTokenCountForTranscript", fm_apple_ref,                                \
        (fm_apple_ref model, fm_apple_ref session, void *user, fm_apple_count_fn *callback))                           \
    ROW(schema, "FMGenerationSchemaCreate", fm_apple_ref, (const char *name, const char *description))                 \
    ROW(property, "FMGenerationSchemaPropertyCreate", fm_apple_ref,                                                    \
        (const char *name, const char *description, const char *type, bool optional))                                  \
    ROW(property_any_of, "FMGenerationSchemaPropertyAddAnyOfGuide", void,                                              \
        (fm_apple_ref property, const char **choices, int count, bool of_items))                                       \
    ROW(property_minimum, "FMGenerationSchemaPropertyAddMinimumGuide", void,                                           \
        (fm_apple_ref property, double minimum, bool of_items))                                                        \
    ROW(property_maximum, "FMGenerationSchemaPropertyAddMaximumGuide", void,                                           \
        (fm_apple_ref property, double maximum, bool of_items))                                                        \
    ROW(property_min_items, "FMGenerationSchemaPropertyAddMinItemsGuide", void, (fm_apple_ref property, int count))    \
    ROW(property_max_items, "FMGenerationSchemaPropertyAddMaxItemsGuide", void, (fm_apple_ref property, int count))    \
    ROW(schema_add, "FMGenerationSchemaAddProperty", void, (fm_apple_ref schema, fm_apple_ref property))               \
    ROW(schema_refer, "FMGenerationSchemaAddReferenceSchema", void, (fm_apple_ref schema, fm_apple_ref named))         \
    ROW(tool, "FMBridgedToolCreate", fm_apple_ref,                                                                     \
        (const char *name, const char *description, fm_apple_ref schema, fm_apple_tool_fn *callback, int *status,      \
         char **why))                                                                                                  \
    ROW(tool_finish, "FMBridgedToolFinishCall", void, (fm_apple_ref tool, unsigned call, const char *output))          \
    ROW(cancel, "FMTaskCancel", void, (fm_apple_ref task))                                                             \
    ROW(release, "FMRelease", void, (fm_apple_ref object))                                                             \
    ROW(free_string, "FMFreeString", void, (char *string))

#define FM_APPLE_MEMBER(name, symbol, result, parameters) result(*name) parameters;

struct fm_apple_api {
    FM_APPLE_CALLS(FM_APPLE_MEMBER)
};

/*
 * Loads the library `path` and fills `api`, whose functions stay valid until the process ends: the library is never
 * unloaded, because its threads may still be on their way out of a callback. Engine thread; blocks on the disk.
 * FM_UNAVAILABLE, HELPER_UNHEALTHY: there is no such library, or it lacks a function, which the detail names.
 */
FM_MUST_USE enum fm_code fm_apple_open(const char *path, struct fm_apple_api *api, struct fm_error *error);

#endif
