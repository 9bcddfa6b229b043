/* The options of `fm-system chrome`, and the default places of the browser and its profile. */
#include "cli/options.h"
#include "backends/broker.h"
#include "backends/cdp_link.h"
#include "base/platform.h"
#include "base/private_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define PATH_SIZE 4096

static const char usage[] =
    "usage: fm-system chrome [--browser PROGRAM] [--profile FOLDER] [--socket PATH] [-- ARGUMENT...]\n\n"
    "Starts Chrome or Chromium with a profile of its own, whose tabs fm-system can list, switch, open and close.\n"
    "It runs until the browser is closed. Arguments after -- are the browser's.\n";

/* The first browser on the PATH. */
static bool find_browser(const char *name, char path[PATH_SIZE]) {
    static const char *const names[] = {"google-chrome-stable", "google-chrome", "chromium", "chromium-browser"};
    const char *folders = getenv("PATH");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *wanted = name ? name : names[i];
        if (strchr(wanted, '/')) {
            return (size_t)snprintf(path, PATH_SIZE, "%s", wanted) < PATH_SIZE;
        }
        for (const char *at = folders; at && *at;) {
            size_t len = strcspn(at, ":");
            if (at[0] == '/' && (size_t)snprintf(path, PATH_SIZE, "%.*s/%s", (int)len, at, wanted) < PATH_SIZE &&
                access(path, X_OK) == 0) {
                return true;
            }
            at += len + (at[len] == ':');
        }
    }
    return false;
}

static bool default_profile(char path[PATH_SIZE]) {
    const char *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    bool own = data && data[0] == '/';
    return (own || (home && home[0] == '/')) &&
           (size_t)snprintf(path, PATH_SIZE, "%s%s/fm-system/chrome", own ? data : home, own ? "" : "/.local/share") <
               PATH_SIZE;
}

static void on_ready(const char *socket) {
    fprintf(stderr, "fm-system: the browser's tabs can be used, at %s\n", socket);
}

static int fail_usage(const char *reason) {
    fprintf(stderr, "fm-system: %s\n", reason);
    return EX_USAGE;
}

int sy_main_chrome(int argc, char **argv) {
    char browser[PATH_SIZE];
    char profile[PATH_SIZE];
    char socket[512];
    const char *given[3] = {NULL, NULL, NULL};
    static const char *const names[] = {"--browser", "--profile", "--socket"};
    int at = 1;
    for (; at < argc && strcmp(argv[at], "--") != 0; at += 2) {
        size_t i = 0;
        if (strcmp(argv[at], "--help") == 0) {
            fputs(usage, stdout);
            return EX_OK;
        }
        while (i < 3 && strcmp(argv[at], names[i]) != 0) {
            i++;
        }
        if (i == 3 || at + 1 == argc) {
            fputs(usage, stderr);
            return EX_USAGE;
        }
        given[i] = argv[at + 1];
    }
    if (!find_browser(given[0], browser)) {
        return fail_usage("no Chrome or Chromium was found: install one, or name it by --browser");
    }
    if (!given[1] && !default_profile(profile)) {
        return fail_usage("there is no home folder for the profile: name a folder by --profile");
    }
    if (!given[2] && !sy_cdp_socket_path(socket, sizeof socket)) {
        return fail_usage("there is no folder for the socket: name a path by --socket");
    }
    int folder = fm_private_folder_open(given[1] ? given[1] : profile);
    if (folder < 0) {
        return fail_usage("the profile's folder can't be made, or is not this user's alone");
    }
    fm_close(folder);
    struct fm_error error = {.code = FM_OK};
    struct sy_broker_options options = {.browser = browser,
                                        .profile = given[1] ? given[1] : profile,
                                        .socket = given[2] ? given[2] : socket,
                                        .args = (const char *const *)argv + (at < argc ? at + 1 : argc),
                                        .end = fm_watch_for_end()};
    if (options.end < 0 || sy_broker_run(&options, on_ready, &error) != FM_OK) {
        fprintf(stderr, "fm-system: %s\n", error.detail);
        return error.code == FM_INVALID_REQUEST ? EX_USAGE : EX_UNAVAILABLE;
    }
    return EX_OK;
}
