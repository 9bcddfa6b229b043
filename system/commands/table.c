/* The ten commands and undo: their names, parameters and functions. */
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

static const struct sy_param list[] = {
    {"content_summary", SY_BOOL, false, NULL, "also tell what each page is about, as far as pages do within 300 ms"},
    {"raw", SY_BOOL, false, NULL, "also give the tabs as the browser names them"},
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

static const struct sy_param preset[] = {
    {"preset_name", SY_STRING, true, NULL, "the exact name of a preset"},
    {.name = NULL},
};

static const struct sy_param question[] = {
    {"question", SY_STRING, true, NULL, "about what is open: applications, tabs, recent files, projects"},
    {"conversation", SY_STRING, false, NULL, "the handle that an earlier answer gave, to ask on; by default a new one"},
    {.name = NULL},
};

static const struct sy_param undo[] = {
    {"handle", SY_STRING, false, NULL, "the handle that a placement gave as \"undo\"; by default the last one's"},
    {.name = NULL},
};

const struct sy_command sy_commands[] = {
    {"list_apps", "Lists the applications that are running.", none, .reads = true, .run = sy_run_list_apps},
    {"focus_app", "Brings an application to the front; starts it if it does not run.", app, .check = sy_check_focus_app,
     .run = sy_run_focus_app},
    {"place_app", "Moves the window of an application to a monitor, or to exact bounds.", place, .moves = true,
     .check = sy_check_place_app, .run = sy_run_place_app},
    {"close_app", "Closes all windows of an application.", app, .destroys = true, .check = sy_check_close_app,
     .run = sy_run_close_app},
    {"list_tabs", "Lists the open tabs of Chrome.", list, .reads = true, .check = sy_check_list_tabs,
     .run = sy_run_list_tabs},
    {"switch_tab", "Goes to a tab of Chrome that is open.", tab, .check = sy_check_switch_tab,
     .run = sy_run_switch_tab},
    {"open_url", "Opens a URL in a new tab of Chrome.", url, .check = sy_check_open_url, .run = sy_run_open_url},
    {"close_tab", "Closes tabs of Chrome.", tabs, .destroys = true, .check = sy_check_close_tab,
     .run = sy_run_close_tab},
    {"activate_preset", "Brings back a window layout that was saved under a name.", preset, .moves = true,
     .check = sy_check_activate_preset, .run = sy_run_activate_preset},
    {"query", "Answers a question about what is open; changes nothing.", question, .reads = true,
     .check = sy_check_query, .run = sy_run_query},
    {"undo", "Puts windows back to where they were before they were placed.", undo, .check = sy_check_undo,
     .run = sy_run_undo},
};

const size_t sy_command_count = sizeof sy_commands / sizeof sy_commands[0];

const struct sy_command *sy_find_command(const char *type) {
    size_t i = 0;
    while (i < sy_command_count && strcmp(sy_commands[i].type, type) != 0) {
        i++;
    }
    return i < sy_command_count ? &sy_commands[i] : NULL;
}
