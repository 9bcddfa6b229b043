/*
 * The versions of the Model Context Protocol that are served, in two eras: those that begin with `initialize`, and from
 * 2026-07-28 on those in which each request says its version. Compare them by <.
 */
#ifndef SY_MCP_ERA_H
#define SY_MCP_ERA_H

enum sy_era {
    SY_NO_ERA, /* nothing has told it yet */
    SY_2024_11_05,
    SY_2025_03_26, /* batches; annotations of tools; messages of progress */
    SY_2025_06_18, /* no batches; titles; structured results */
    SY_2025_11_25,
    SY_2026_07_28, /* no session */
};

#define SY_FIRST_ERA   SY_2024_11_05
#define SY_LAST_LEGACY SY_2025_11_25
#define SY_MODERN      SY_2026_07_28

/* Its name on the wire. */
const char *sy_era_name(enum sy_era era);

/* The version of that name; SY_NO_ERA: there is none, or it is not served. */
enum sy_era sy_era_find(const char *name);

#endif
