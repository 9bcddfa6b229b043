/* Which desktop there is. */
#include "backends/fake.h"
#include "cli/options.h"
#include "cli/preset.h"
#include "desktop/presets.h"
#ifdef SY_GLIB
#include "desktop/recent.h"
#endif

#include <stdlib.h>

enum fm_code sy_desktop_open(void *context, int cancel_fd, struct sy_desktop *desktop, struct fm_error *error) {
    const struct sy_options *options = context;
    if (options->fake) {
        enum fm_code code = sy_fake_new(options->fake, desktop, error);
        if (code == FM_OK) {
            sy_fake_cancel_by(desktop, cancel_fd);
        }
        return code;
    }
    return fm_fail(error, FM_UNAVAILABLE, "this fm-system was built without a desktop: it can only use a fake one");
}

void sy_world_furnish(void *context, struct sy_world *world) {
    struct sy_options *options = context;
    struct fm_error error;
    if (sy_presets_path(options->presets, sizeof options->presets, &error) == FM_OK) {
        world->presets = options->presets;
    }
    world->home = getenv("HOME");
#ifdef SY_GLIB
    world->recent_files = sy_recent_files;
#endif
}

int sy_main_preset(int argc, char **argv) {
    struct sy_options options = {.fake = NULL};
    return sy_preset_main(argc, argv, sy_desktop_open, &options);
}
