/*
 * Opens the desktop: the fake one that the options name, or else the real one, from the parts that this program was
 * built with. A part that can't be made is left out; the others still work.
 */
#include "backends/fake.h"
#include "backends/joined.h"
#include "cli/options.h"
#include "cli/preset.h"
#include "desktop/presets.h"
#ifdef SY_X11
#include "backends/x11.h"
#endif
#ifdef SY_APPS_GIO
#include "backends/apps_gio.h"
#endif
#ifdef SY_CHROME
#include "backends/cdp.h"
#endif
#ifdef SY_GLIB
#include "desktop/recent.h"
#endif

#include <stdlib.h>

static enum fm_code open_real(const struct sy_options *options, int cancel_fd, struct sy_desktop *desktop,
                              struct fm_error *error) {
    struct sy_joined_parts parts = {.tabs = {.backend = NULL}};
#ifdef SY_X11
    if (sy_x11_new(&parts.windows, error) != FM_OK) {
        parts.windows.backend = NULL;
    }
#endif
#ifdef SY_APPS_GIO
    if (sy_apps_gio_new(&parts.apps, error) != FM_OK) {
        parts.apps.backend = NULL;
    }
#endif
#ifdef SY_CHROME
    const struct sy_cdp_places place = {.socket = options->chrome_socket};
    if (sy_cdp_new(place.socket ? &place : NULL, &parts.tabs, error) != FM_OK) {
        parts.tabs.backend = NULL;
    }
#endif
    return sy_joined_new(&parts, cancel_fd, desktop, error);
}

enum fm_code sy_desktop_open(void *context, int cancel_fd, struct sy_desktop *desktop, struct fm_error *error) {
    const struct sy_options *options = context;
    if (!options->fake) {
        return open_real(options, cancel_fd, desktop, error);
    }
    enum fm_code code = sy_fake_new(options->fake, desktop, error);
    if (code == FM_OK) {
        sy_fake_cancel_by(desktop, cancel_fd);
    }
    return code;
}

void sy_world_furnish(void *context, int cancel_fd, struct sy_world *world) {
    struct sy_options *options = context;
    struct fm_error error;
    if (sy_presets_path(options->presets, sizeof options->presets, &error) == FM_OK) {
        world->presets = options->presets;
    }
    world->home = getenv("HOME");
#ifdef SY_GLIB
    world->recent_files = sy_recent_files;
#endif
    options->helper = sy_options_proxy(options, cancel_fd);
    if (options->helper) {
        options->model = sy_proxy_model(options->helper);
        world->model = &options->model;
    }
}

void sy_world_dismiss(void *context) {
    struct sy_options *options = context;
    sy_proxy_free(options->helper);
    options->helper = NULL;
}

int sy_main_preset(int argc, char **argv) {
    struct sy_options options = {.fake = NULL};
    return sy_preset_main(argc, argv, sy_desktop_open, &options);
}
