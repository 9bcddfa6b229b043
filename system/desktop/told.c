/* The lists of tabs that a client has seen, in a ring. */
#include "desktop/told.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

uint64_t sy_told_page(const char *url) {
    return fm_hash(FM_HASH_START, url, strlen(url));
}

static void free_list(struct sy_told_list *list) {
    free(list->tabs);
    *list = (struct sy_told_list){.count = 0};
}

/* `back` 1 is the latest list, told->count the oldest one. */
static const struct sy_told_list *list_back(const struct sy_told *told, size_t back) {
    return &told->lists[(told->next + SY_TOLD_MAX - back) % SY_TOLD_MAX];
}

/* The tab as the client has seen it last; NULL: the client has not seen this tab. */
static const struct sy_told_tab *known_tab(const struct sy_told *told, const char *id) {
    for (size_t back = 1; back <= told->count; back++) {
        const struct sy_told_list *list = list_back(told, back);
        for (size_t i = 0; i < list->count && list->seen != SY_SEEN_HANDLE; i++) {
            if (strcmp(list->tabs[i].id, id) == 0) {
                return &list->tabs[i];
            }
        }
    }
    return NULL;
}

static bool copy_tabs(const struct sy_told *told, const struct sy_snapshot *snapshot, struct sy_told_list *list) {
    list->tabs = calloc(snapshot->tab_count + 1, sizeof *list->tabs);
    list->count = list->tabs ? snapshot->tab_count : 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct sy_tab *tab = snapshot->tabs[i].tab;
        const struct sy_told_tab *known = list->seen == SY_SEEN_INDICES ? known_tab(told, tab->id) : NULL;
        memcpy(list->tabs[i].id, tab->id, sizeof tab->id);
        list->tabs[i].page = known ? known->page : sy_told_page(tab->url);
    }
    memcpy(list->handle, snapshot->handle, sizeof list->handle);
    return list->tabs != NULL;
}

bool sy_told_add(struct sy_told *told, const struct sy_snapshot *snapshot, enum sy_seen seen) {
    struct sy_told_list list = {.seen = seen};
    if (!copy_tabs(told, snapshot, &list)) {
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
        const struct sy_told_list *list = list_back(told, back);
        if (handle ? strcmp(list->handle, handle) == 0 : list->seen != SY_SEEN_HANDLE) {
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
