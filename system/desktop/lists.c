/* Frees the lists that backends hand out. */
#include "desktop/backend.h"

#include <stdlib.h>

void sy_monitors_free(struct sy_monitors *monitors) {
    free(monitors->at);
    *monitors = (struct sy_monitors){0};
}

void sy_windows_free(struct sy_windows *windows) {
    for (size_t i = 0; i < windows->count; i++) {
        free(windows->at[i].class_name);
        free(windows->at[i].title);
        sy_program_free(&windows->at[i].runs);
    }
    free(windows->at);
    *windows = (struct sy_windows){0};
}

void sy_apps_free(struct sy_apps *apps) {
    for (size_t i = 0; i < apps->count; i++) {
        free(apps->at[i].name);
        free(apps->at[i].window_class);
        free(apps->at[i].keywords);
        free(apps->at[i].program);
        sy_program_free(&apps->at[i].runs);
    }
    free(apps->at);
    *apps = (struct sy_apps){0};
}

void sy_tabs_free(struct sy_tabs *tabs) {
    for (size_t i = 0; i < tabs->count; i++) {
        free(tabs->at[i].title);
        free(tabs->at[i].url);
    }
    free(tabs->at);
    *tabs = (struct sy_tabs){0};
}
