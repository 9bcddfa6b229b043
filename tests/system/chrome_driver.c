/*
 * fm-system with only Chrome's tabs. If the first argument is "chrome", the program is `fm-system chrome` with the
 * other arguments. Otherwise each line of stdin is one of these: a request as in answer.h; {"dump": true} for the tabs
 * with their ids; {"call": "open", "activate", "close" or "text", "with": a URL or an id} for one call of the backend;
 * {"url": ...} to check whether the URL may be opened. Each line gets a line on stdout. "ms" is the time that it took.
 *
 * usage: system_chrome_driver SOCKET [PROFILE...] | chrome [OPTION...]
 */
#include "answer.h"
#include "backends/cdp.h"
#include "base/clock.h"
#include "cli/options.h"
#include "commands/plan.h"
#include "desktop/refuse.h"
#include "desktop/url.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_failure(const struct fm_error *error, struct fm_json_writer *w) {
    fm_json_key_str(w, "failed", fm_code_name(error->code));
    fm_json_key_str(w, "detail", error->detail);
}

static void dump(const struct sy_desktop *desktop, struct fm_json_writer *w) {
    struct sy_tabs tabs;
    struct fm_error error;
    if (desktop->backend->tabs(desktop->self, &tabs, &error) != FM_OK) {
        write_failure(&error, w);
        return;
    }
    fm_json_key(w, "tabs");
    fm_json_array_begin(w);
    for (size_t i = 0; i < tabs.count; i++) {
        const struct sy_tab *at = &tabs.at[i];
        fm_json_object_begin(w);
        fm_json_key_str(w, "id", at->id);
        fm_json_key_str(w, "window", at->window_id);
        fm_json_key_int(w, "position", at->position);
        fm_json_key_bool(w, "active", at->active);
        fm_json_key_str(w, "title", at->title);
        fm_json_key_str(w, "url", at->url);
        fm_json_key_double(w, "opened_ms", at->opened_ms);
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
    sy_tabs_free(&tabs);
}

static void call(const struct sy_desktop *desktop, const char *what, const char *with, struct fm_json_writer *w) {
    const struct sy_backend *backend = desktop->backend;
    char tab[SY_ID_MAX] = "";
    char *text = NULL;
    struct fm_error error;
    enum fm_code code = strcmp(what, "open") == 0       ? backend->open(desktop->self, with, tab, &error)
                        : strcmp(what, "activate") == 0 ? backend->activate(desktop->self, with, &error)
                        : strcmp(what, "close") == 0
                            ? backend->close_tab(desktop->self, with, &error)
                            : backend->text(desktop->self, with, fm_now_ms() + 300, &text, &error);
    if (code != FM_OK) {
        write_failure(&error, w);
    } else {
        fm_json_key_str(w, "tab", tab);
        fm_json_key_str(w, "text", text);
    }
    free(text);
}

static bool answer_other(struct sy_world *world, struct json_object *request, struct fm_json_writer *w) {
    struct json_object *what = json_object_object_get(request, "call");
    struct json_object *url = json_object_object_get(request, "url");
    if (json_object_object_get(request, "dump")) {
        dump(&world->desktop, w);
    } else if (what) {
        call(&world->desktop, json_object_get_string(what),
             json_object_get_string(json_object_object_get(request, "with")), w);
    } else if (url) {
        fm_json_key_bool(w, "is_web", sy_url_is_web(json_object_get_string(url)));
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv) {
    struct sy_world world = {.presets = NULL};
    struct fm_error error;
    if (argc > 1 && strcmp(argv[1], "chrome") == 0) {
        return sy_main_chrome(argc - 1, argv + 1);
    }
    const struct sy_cdp_places places = {argc > 1 ? argv[1] : NULL, (const char *const *)argv + (argc > 2 ? 2 : argc)};
    if (sy_cdp_new(&places, &world.desktop, &error) != FM_OK) {
        fprintf(stderr, "driver: %s\n", error.detail);
        return 1;
    }
    answer_lines(&world, answer_other);
    return 0;
}
