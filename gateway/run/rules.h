/*
 * Rules: calls that the user has approved permanently. A rule is one tool's input, byte for byte, in one folder. So it
 * allows the same command, but nothing that only looks like it. Rules are stored in rules.json in the state folder.
 */
#ifndef GW_RUN_RULES_H
#define GW_RUN_RULES_H

#include "base/error.h"

#include <stdbool.h>

#define GW_RULES_MAX 1000u

struct gw_rules;

/* Reads the file if there is one. FM_UNAVAILABLE: it can't be read or is broken; the error says what to do. Blocks. */
FM_MUST_USE enum fm_code gw_rules_open(const char *path, struct gw_rules **rules, struct fm_error *error);
void gw_rules_free(struct gw_rules *rules);

/* Whether there is a rule for this input (JSON) of the tool in the folder (a path without links). */
bool gw_rules_allow(const struct gw_rules *rules, const char *tool, const char *folder, const char *input);

/*
 * Adds a rule; it counts once it is on the disk. FM_RATE_LIMITED: there are GW_RULES_MAX rules already. FM_UNAVAILABLE:
 * the disk failed. Blocks on a small file.
 */
FM_MUST_USE enum fm_code gw_rules_add(struct gw_rules *rules, const char *tool, const char *folder, const char *input,
                                      struct fm_error *error);

#endif
