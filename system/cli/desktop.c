/* Which desktop there is. */
#include "backends/fake.h"
#include "cli/options.h"

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
