/*
 * The tabs of Chrome and related browsers, by the Chrome DevTools Protocol (CDP). The browser is the one that
 * `fm-system chrome` has started (broker.h), or else one that listens on this machine for debuggers. A tab's id is the
 * id of its target of the type "tab". The tab keeps this id when it shows another page.
 */
#ifndef SY_CDP_H
#define SY_CDP_H

#include "desktop/backend.h"

struct sy_cdp_places {
    const char *socket;          /* path of the broker's socket */
    const char *const *profiles; /* folders that may have a DevToolsActivePort file; the list ends with NULL */
};

/*
 * Makes a backend of tabs. `places` is copied; NULL: the default places of browsers. It succeeds also if no browser is
 * found. Then each request for a list looks for a browser again, and fails with FM_UNAVAILABLE and advice. Its clock is
 * fm_now_ms. On success the caller frees `desktop` by desktop->backend->free(desktop->self).
 */
FM_MUST_USE enum fm_code sy_cdp_new(const struct sy_cdp_places *places, struct sy_desktop *desktop,
                                    struct fm_error *error);

#endif
