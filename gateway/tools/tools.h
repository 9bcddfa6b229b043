/* All tools. Each has a file, and a row of registry.c. */
#ifndef GW_TOOLS_TOOLS_H
#define GW_TOOLS_TOOLS_H

#include "tools/tool.h"

extern const struct gw_tool gw_tool_bash;
extern const struct gw_tool gw_tool_browser;

#endif
