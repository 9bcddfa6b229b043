/* The ten commands, but for those that are still to come (system/README.md): what they are called, take and do. */
#include "commands/table.h"

#include <string.h>

static const char *const monitor_words[] = {"main", "left", "right", NULL};

static const struct sy_param none[] = {{.name = NULL}};

static const struct sy_param app[] = {
    {"app_name", SY_STRING, true, NULL, "the exact name of an application"},
    {.name = NULL},
};

static const struct sy_param place[] = {
    {"app_name", SY_STRING, true, NULL, "the exact name of an application"},
    {"monitor", SY_WORD, false, monitor_words, "where to; optional if bounds are given"},
    {"bounds", SY_BOUNDS, false, NULL, "[left, top, right, bottom] of the window in pixels of the whole screen"},
    {.name = NULL},
};

static const struct sy_param tab[] = {
    {"tab_index", SY_INDEX, true, NULL, "the index that list_tabs gives the tab"},
    {"snapshot", SY_STRING, false, NULL, "the handle of the list that the index is from; by default the last one"},
    {.name = NULL},
};

static const struct sy_param tabs[] = {
    {"tab_indices", SY_INDICES, true, NULL, "the indices that list_tabs gives the tabs"},
    {"snapshot", SY_STRING, false, NULL, "the handle of the list that the indices are from; by default the last one"},
    {.name = NULL},
};

static const struct sy_param url[] = {
    {"url", SY_STRING, true, NULL, "a URL, a host, or the name of a well-known site"},
    {.name = NULL},
};

const struct sy_command sy_commands[] = {
    {"list_apps", "Lists the applications that are running.", none, true, false, NULL, sy_run_list_apps},
    {"focus_app", "Brings an application to the front; starts it if it does not run.", app, false, false,
     sy_check_focus_app, sy_run_focus_app},
    {"place_app", "Moves the window of an application to a monitor, or to exact bounds.", place, false, false,
     sy_check_place_app, sy_run_place_app},
    {"close_app", "Closes all windows of an application.", app, false, true, sy_check_close_app, sy_run_close_app},
    {"list_tabs", "Lists the open tabs of Chrome.", none, true, false, sy_check_list_tabs, sy_run_list_tabs},
    {"switch_tab", "Goes to a tab of Chrome that is open.", tab, false, false, sy_check_switch_tab, sy_run_switch_tab},
    {"open_url", "Opens a URL in a new tab of Chrome.", url, false, false, sy_check_open_url, sy_run_open_url},
    {"close_tab", "Closes tabs of Chrome.", tabs, false, true, sy_check_close_tab, sy_run_close_tab},
};

const size_t sy_command_count = sizeof sy_commands / sizeof sy_commands[0];

const struct sy_command *sy_find_command(const char *type) {
    size_t i = 0;
    while (i < sy_command_count && strcmp(sy_commands[i].type, type) != 0) {
        i++;
    }
    return i < sy_command_count ? &sy_commands[i] : NULL;
}
