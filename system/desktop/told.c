/* The lists of tabs that a client was told, in a ring. */
#include "desktop/told.h"

#include <stdlib.h>
#include <string.h>

static void free_list(struct sy_told_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->tabs[i].url);
    }
    free(list->tabs);
    *list = (struct sy_told_list){.count = 0};
}

static bool copy_tabs(struct sy_told_list *list, const struct sy_snapshot *snapshot) {
    list->tabs = calloc(snapshot->tab_count + 1, sizeof *list->tabs);
    for (size_t i = 0; list->tabs && i < snapshot->tab_count; i++) {
        const struct sy_tab *tab = snapshot->tabs[i].tab;
        memcpy(list->tabs[i].id, tab->id, sizeof tab->id);
        list->tabs[i].url = strdup(tab->url);
        list->count++;
        if (!list->tabs[i].url) {
            return false;
        }
    }
    memcpy(list->handle, snapshot->handle, sizeof list->handle);
    return list->tabs != NULL;
}

bool sy_told_add(struct sy_told *told, const struct sy_snapshot *snapshot) {
    struct sy_told_list list = {.count = 0};
    if (!copy_tabs(&list, snapshot)) {
        free_list(&list);
        return false;
    }
    free_list(&told->lists[told->next]);
    told->lists[told->next] = list;
    told->next = (told->next + 1) % SY_TOLD_MAX;
    told->count += told->count < SY_TOLD_MAX;
    return true;
}

const struct sy_told_list *sy_told_find(const struct sy_told *told, const char *handle) {
    for (size_t back = 1; back <= told->count; back++) {
        const struct sy_told_list *list = &told->lists[(told->next + SY_TOLD_MAX - back) % SY_TOLD_MAX];
        if (!handle || strcmp(list->handle, handle) == 0) {
            return list;
        }
    }
    return NULL;
}

void sy_told_free(struct sy_told *told) {
    for (size_t i = 0; i < SY_TOLD_MAX; i++) {
        free_list(&told->lists[i]);
    }
    *told = (struct sy_told){.count = 0};
}
