/* Decides which tools may be called. run_commands may be called with --read-only too, because each of its commands is
 * checked. */
#include "mcp/policy.h"

#include <string.h>

static bool is_listed(const char *list, const char *name) {
    size_t len = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        size_t part = strcspn(at, ",");
        if (part == len && memcmp(at, name, len) == 0) {
            return true;
        }
    }
    return false;
}

bool sy_policy_allows(const struct sy_policy *policy, const char *name, bool reads) {
    if (policy->allow && !is_listed(policy->allow, name)) {
        return false;
    }
    return !policy->read_only || reads || strcmp(name, SY_RUN_COMMANDS) == 0;
}
