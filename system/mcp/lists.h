/* What a client may ask for: static lists, which nothing of the desktop changes. Each writes members of a result. */
#ifndef SY_MCP_LISTS_H
#define SY_MCP_LISTS_H

#include "mcp/message.h"
#include "mcp/policy.h"

/* The key "tools": those that the policy allows. */
void sy_tools_list(const struct sy_policy *policy, enum sy_era era, struct fm_json_writer *w);

/* The keys "resources" and "prompts". */
void sy_resources_list(enum sy_era era, struct fm_json_writer *w);
void sy_prompts_list(enum sy_era era, struct fm_json_writer *w);

/* Whether there is a tool of that name, allowed or not. */
bool sy_is_tool(const char *name);

/* "focus_app" as users read it: "Focus app". */
void sy_write_title(const char *name, struct fm_json_writer *w);

/* The JSON Schema of what a tool gives; errors are in it. */
void sy_write_output_schema(const char *name, struct fm_json_writer *w);

#endif
