/*
 * The tabs of Chrome and its relatives, by the Chrome DevTools Protocol (CDP): of a browser that `fm-system chrome` has
 * started (broker.h), else of one that listens on this machine for debuggers. A tab's id is that of its target of the
 * type "tab", which it keeps when it shows another page.
 */
#ifndef SY_CDP_H
#define SY_CDP_H

#include "desktop/backend.h"

struct sy_cdp_places {
    const char *socket;          /* path of the broker's socket */
    const char *const *profiles; /* folders that may have a DevToolsActivePort file; ends with NULL */
};

/*
 * Makes one. `places` is copied; NULL: where browsers are by default. It succeeds also where no browser is to be found:
 * each list looks again, and is FM_UNAVAILABLE with what to do. Its clock is fm_now_ms. On success `desktop` is the
 * caller's, for desktop->backend->free(desktop->self).
 */
FM_MUST_USE enum fm_code sy_cdp_new(const struct sy_cdp_places *places, struct sy_desktop *desktop,
                                    struct fm_error *error);

#endif
