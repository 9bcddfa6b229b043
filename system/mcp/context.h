/* Writes what a model may need to know of this moment, as members of a JSON object. */
#ifndef SY_MCP_CONTEXT_H
#define SY_MCP_CONTEXT_H

#include "mcp/caller.h"

/* Each function writes members. On an error the desktop has no such data, and the caller drops what was written. */
typedef enum fm_code sy_context(struct sy_world *world, const struct sy_snapshot *snapshot, struct fm_json_writer *w,
                                struct fm_error *error);

sy_context sy_context_running, sy_context_installed, sy_context_tabs, sy_context_raw_tabs, sy_context_presets,
    sy_context_monitors;

#endif
