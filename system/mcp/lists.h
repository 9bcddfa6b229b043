/* The static lists that a client may ask for; they do not depend on the desktop. Each function writes members of a
 * result. */
#ifndef SY_MCP_LISTS_H
#define SY_MCP_LISTS_H

#include "mcp/message.h"
#include "mcp/policy.h"

/* Writes the key "tools": the tools that the policy allows. */
void sy_tools_list(const struct sy_policy *policy, enum sy_era era, struct fm_json_writer *w);

/* Write the keys "resources" and "prompts". */
void sy_resources_list(enum sy_era era, struct fm_json_writer *w);
void sy_prompts_list(enum sy_era era, struct fm_json_writer *w);

/* Whether there is a tool of this name, allowed or not. */
bool sy_is_tool(const char *name);

/* Writes the key "title" with the name as users read it: "Focus app" for "focus_app". */
void sy_write_title(const char *name, struct fm_json_writer *w);

/* Writes the JSON Schema of a tool's result, which may be an error. */
void sy_write_output_schema(const char *name, struct fm_json_writer *w);

#endif
