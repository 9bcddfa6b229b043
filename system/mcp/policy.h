/* Which tools a client may call, by --read-only and --allow of the command line. */
#ifndef SY_MCP_POLICY_H
#define SY_MCP_POLICY_H

#include <stdbool.h>

#define SY_RUN_COMMANDS "run_commands" /* the tool that runs whole requests */
#define SY_MATCH        "match"        /* the tool that makes requests from words */

/* A policy of zeros allows everything. */
struct sy_policy {
    bool read_only;
    const char *allow; /* names separated by commas; NULL: all */
};

/* Whether a tool or command of this name may be called. `reads`: the tool changes nothing. Pure. */
bool sy_policy_allows(const struct sy_policy *policy, const char *name, bool reads);

#endif
