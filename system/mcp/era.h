/*
 * The supported versions of the Model Context Protocol, in two eras. In older versions a client begins with
 * `initialize`. From 2026-07-28 on, each request names its version. Later versions have larger values.
 */
#ifndef SY_MCP_ERA_H
#define SY_MCP_ERA_H

enum sy_era {
    SY_NO_ERA, /* not known yet */
    SY_2024_11_05,
    SY_2025_03_26, /* batches; annotations of tools; messages of progress */
    SY_2025_06_18, /* no batches; titles; structured results */
    SY_2025_11_25,
    SY_2026_07_28, /* no session */
};

#define SY_FIRST_ERA   SY_2024_11_05
#define SY_LAST_LEGACY SY_2025_11_25
#define SY_MODERN      SY_2026_07_28

/* Returns the name of a version on the wire. */
const char *sy_era_name(enum sy_era era);

/* Returns the version with the name `name`; SY_NO_ERA: no such version is supported. */
enum sy_era sy_era_find(const char *name);

#endif
