/* fm-system doctor: shows which parts of the desktop work, and why others do not. It names no window, application or
 * tab. */
#include "cli/options.h"
#include "desktop/refuse.h"
#include "desktop/snapshot.h"

#include <stdio.h>
#include <sysexits.h>

static void print_count(const char *what, size_t count, const struct fm_error *missing) {
    if (missing->code == FM_OK) {
        printf("%-13s ok, %zu now\n", what, count);
    } else {
        printf("%-13s %s: %s\n", what, sy_reason(missing), missing->detail);
    }
}

/* If things can't be listed, actions on them are not available either. */
static void print_action(const char *what, bool can, const struct fm_error *missing) {
    printf("%-13s %s\n", what, can && missing->code == FM_OK ? "ok" : "unavailable");
}

static int examine(const struct sy_desktop *desktop) {
    static const struct fm_error none = {.code = FM_OK};
    const struct sy_backend *backend = desktop->backend;
    struct sy_snapshot snapshot;
    struct fm_error error;
    printf("%-13s %s\n", "desktop", backend->name);
    if (sy_snapshot_take(desktop, &snapshot, &error) != FM_OK) {
        printf("%-13s %s: %s\n", "lists", sy_reason(&error), error.detail);
        return EX_UNAVAILABLE;
    }
    print_count("windows", snapshot.windows.count, &snapshot.no_windows);
    print_count("monitors", snapshot.monitors.count, snapshot.monitors.count > 0 ? &none : &snapshot.no_windows);
    print_count("applications", snapshot.installed_count, &snapshot.no_apps);
    print_count("tabs", snapshot.tab_count, &snapshot.no_tabs);
    print_action("focus", backend->focus, &snapshot.no_windows);
    print_action("place", backend->place, &snapshot.no_windows);
    print_action("close", backend->close, &snapshot.no_windows);
    print_action("launch", backend->launch, &snapshot.no_apps);
    print_action("tab actions", backend->activate && backend->open && backend->close_tab, &snapshot.no_tabs);
    bool all = snapshot.no_windows.code == FM_OK && snapshot.no_apps.code == FM_OK && snapshot.no_tabs.code == FM_OK;
    sy_snapshot_free(&snapshot);
    return all ? EX_OK : EX_UNAVAILABLE;
}

/* Prints whether there is a model, without starting fm-proxy. */
static void print_model(const struct sy_options *options) {
    struct sy_proxy *helper = sy_options_proxy(options, -1);
    const char *state = "unavailable: there is no fm-proxy beside fm-system; --proxy names one elsewhere";
    if (options->no_model) {
        state = "none, as --no-model says";
    } else if (options->proxy && !sy_proxy_can_start(options)) {
        state = "unavailable: what --proxy names is no program that can be started";
    } else if (helper) {
        state = "fm-proxy is there";
    }
    printf("%-13s %s\n", "model", state);
    sy_proxy_free(helper);
}

int sy_main_doctor(int argc, char **argv) {
    struct sy_options options = {.fake = NULL};
    struct sy_desktop desktop;
    struct fm_error error;
    int status = EX_USAGE;
    if (sy_options_read(&options, argc, argv)) {
        status = EX_UNAVAILABLE;
        if (sy_desktop_open(&options, -1, &desktop, &error) == FM_OK) {
            status = examine(&desktop);
            print_model(&options);
            desktop.backend->free(desktop.self);
        } else {
            printf("%-13s %s: %s\n", "desktop", sy_reason(&error), error.detail);
        }
    }
    sy_options_free(&options);
    return fflush(stdout) == 0 ? status : EX_IOERR;
}
