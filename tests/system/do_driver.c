/*
 * `fm-system do` on a fake desktop: do_driver DESKTOP.json [--json] [--dry-run] [--yes] [--terminal] WORDS. It reads
 * the user's answers from stdin. After the output of `do`, stdout has the desktop's log, in lines that begin with "LOG
 * ".
 */
#include "backends/fake.h"
#include "base/buf.h"
#include "cli/do.h"

#include <json-c/json.h>
#include <string.h>

static void read_options(int argc, char **argv, struct sy_do *how) {
    for (int i = 2; i < argc - 1; i++) {
        how->json |= strcmp(argv[i], "--json") == 0;
        how->dry_run |= strcmp(argv[i], "--dry-run") == 0;
        how->yes |= strcmp(argv[i], "--yes") == 0;
        how->terminal |= strcmp(argv[i], "--terminal") == 0;
    }
}

static void print_log(const struct sy_desktop *desktop) {
    const struct fm_buf *log = sy_fake_log(desktop);
    const char *at = log->data;
    const char *end = at ? at + log->len : NULL;
    while (at && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        printf("LOG %.*s\n", (int)(newline - at), at);
        at = newline + 1;
    }
}

int main(int argc, char **argv) {
    struct sy_world world = {.presets = NULL};
    struct sy_do how = {.in = stdin, .out = stdout, .err = stderr};
    struct fm_error error;
    struct json_object *root = argc > 2 ? json_object_from_file(argv[1]) : NULL;
    if (!root || sy_fake_new(root, &world.desktop, &error) != FM_OK) {
        fprintf(stderr, "do_driver: no desktop\n");
        return 70;
    }
    read_options(argc, argv, &how);
    int status = (int)sy_do(&world, argv[argc - 1], &how);
    print_log(&world.desktop);
    sy_world_free(&world);
    world.desktop.backend->free(world.desktop.self);
    json_object_put(root);
    return status;
}
