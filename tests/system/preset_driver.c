/* fm-system preset on a fake desktop, which the file that FM_FAKE names describes. */
#include "backends/fake.h"
#include "cli/preset.h"

#include <json-c/json.h>
#include <stdlib.h>

static enum fm_code open_fake(void *context, int cancel_fd, struct sy_desktop *desktop, struct fm_error *error) {
    struct json_object *description = json_object_from_file(getenv("FM_FAKE"));
    (void)context;
    (void)cancel_fd;
    enum fm_code code = sy_fake_new(description, desktop, error);
    json_object_put(description);
    return code;
}

int main(int argc, char **argv) {
    return sy_preset_main(argc, argv, open_fake, NULL);
}
