/* The names of the protocol's versions. */
#include "mcp/era.h"

#include <string.h>

static const char *const names[] = {"", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"};

const char *sy_era_name(enum sy_era era) {
    return names[era];
}

enum sy_era sy_era_find(const char *name) {
    enum sy_era era = SY_MODERN;
    while (era != SY_NO_ERA && strcmp(names[era], name) != 0) {
        era--;
    }
    return era;
}
