/*
 * list_tabs, switch_tab, open_url, close_tab. An index refers to the list of tabs that the client has seen (told.h). A
 * tab is not closed if it shows another page now than in this list.
 */
#include "commands/internal.h"
#include "commands/listing.h"
#include "desktop/refuse.h"
#include "desktop/url.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define SHOW_MS  2000 /* until a tab is the one that its window shows */
#define CLOSE_MS 2000 /* until all pages have closed, or refuse to close */

/* ---- list_tabs ---- */

static enum fm_code need_tabs(const struct sy_plan *plan, struct fm_error *error) {
    if (plan->snapshot.no_tabs.code != FM_OK) {
        *error = plan->snapshot.no_tabs;
        return error->code;
    }
    return FM_OK;
}

enum fm_code sy_check_list_tabs(struct sy_world *world, struct sy_plan *plan, struct sy_step *step,
                                struct fm_error *error) {
    (void)world;
    (void)step;
    return need_tabs(plan, error);
}

static enum fm_code write_tabs(struct sy_world *world, const struct sy_step *step, const struct sy_snapshot *snapshot,
                               struct fm_json_writer *w, struct fm_error *error) {
    char **summaries = calloc(snapshot->tab_count + 1, sizeof *summaries);
    enum fm_code code = summaries ? FM_OK : fm_fail_no_memory(error);
    if (code == FM_OK && json_object_get_boolean(sy_arg(step, "content_summary"))) {
        code = sy_take_summaries(world, snapshot, summaries, error);
    }
    if (code == FM_OK && !sy_told_add(&world->told, snapshot, SY_SEEN_PAGES)) {
        code = fm_fail_no_memory(error);
    }
    if (code == FM_OK) {
        sy_write_tabs(snapshot, summaries, w);
    }
    if (code == FM_OK && json_object_get_boolean(sy_arg(step, "raw"))) {
        sy_write_raw_tabs("raw", &snapshot->raw_tabs, w);
    }
    for (size_t i = 0; summaries && i < snapshot->tab_count; i++) {
        free(summaries[i]);
    }
    free(summaries);
    return code;
}

enum fm_code sy_run_list_tabs(struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                              struct fm_json_writer *w, struct fm_error *error) {
    struct sy_snapshot fresh = {.tab_count = 0};
    const struct sy_snapshot *snapshot;
    enum fm_code code = sy_snapshot_now(world, plan, step, &fresh, &snapshot, error);
    if (code == FM_OK && snapshot->no_tabs.code != FM_OK) {
        *error = snapshot->no_tabs;
        code = error->code;
    }
    code = code ? code : write_tabs(world, step, snapshot, w, error);
    sy_snapshot_free(&fresh);
    return code;
}

/* ---- indices ---- */

static const struct sy_tab *find_tab(const struct sy_tabs *tabs, const char *id) {
    size_t i = 0;
    while (i < tabs->count && strcmp(tabs->at[i].id, id) != 0) {
        i++;
    }
    return i < tabs->count ? &tabs->at[i] : NULL;
}

/* Finds the tab that `index` means in a list that the client has seen. */
static enum fm_code find_told(const struct sy_plan *plan, const struct sy_step *step, const struct sy_told_list *list,
                              int64_t index, const char *param, const struct sy_tab **tab, struct fm_error *error) {
    if ((uint64_t)index > list->count) {
        return sy_refuse_step(step, error, "unknown_tab", param, "there are %zu tabs in the list", list->count);
    }
    const struct sy_told_tab *told = &list->tabs[index - 1];
    *tab = find_tab(&plan->snapshot.raw_tabs, told->id);
    if (!*tab) {
        return sy_refuse_step(step, error, "unknown_tab", param, "tab %lld was closed meanwhile", (long long)index);
    }
    if (step->command->destroys && sy_told_page((*tab)->url) != told->page) {
        return sy_refuse_step(step, error, "stale_snapshot", param,
                              "tab %lld shows another page than it did: list the tabs again", (long long)index);
    }
    return FM_OK;
}

static enum fm_code find_index(const struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                               int64_t index, const char *param, const struct sy_tab **tab, struct fm_error *error) {
    const char *handle = json_object_get_string(sy_arg(step, "snapshot"));
    const struct sy_told_list *list = sy_told_find(&world->told, handle);
    if (list) {
        return find_told(plan, step, list, index, param, tab, error);
    }
    if (handle && strcmp(handle, plan->snapshot.handle) != 0) {
        return sy_refuse_step(step, error, "stale_snapshot", "snapshot", "the tabs have changed: list them again");
    }
    if ((uint64_t)index > plan->snapshot.tab_count) {
        return sy_refuse_step(step, error, "unknown_tab", param, "there are %zu tabs", plan->snapshot.tab_count);
    }
    *tab = plan->snapshot.tabs[index - 1].tab;
    return FM_OK;
}

/* ---- switch_tab ---- */

enum fm_code sy_check_switch_tab(struct sy_world *world, struct sy_plan *plan, struct sy_step *step,
                                 struct fm_error *error) {
    const struct sy_tab *tab = NULL;
    int64_t index = json_object_get_int64(sy_arg(step, "tab_index"));
    enum fm_code code = need_tabs(plan, error);
    code = code ? code : find_index(world, plan, step, index, "tab_index", &tab, error);
    if (code != FM_OK) {
        return code;
    }
    char(*ids)[SY_ID_MAX] = sy_step_ids(step, 1);
    if (!ids) {
        return fm_fail_no_memory(error);
    }
    memcpy(ids[0], tab->id, SY_ID_MAX);
    return FM_OK;
}

static enum fm_code until_shown(const struct sy_world *world, const struct sy_step *step, struct fm_json_writer *w,
                                struct fm_error *error) {
    const struct sy_backend *backend = world->desktop.backend;
    int64_t until_ms = backend->now(world->desktop.self) + SHOW_MS;
    for (;;) {
        struct sy_tabs tabs = {.count = 0};
        enum fm_code code = backend->tabs(world->desktop.self, &tabs, error);
        const struct sy_tab *tab = code == FM_OK ? find_tab(&tabs, step->ids[0]) : NULL;
        bool shown = tab && tab->active;
        if (shown) {
            fm_json_key_str(w, "title", tab->title);
            fm_json_key_str(w, "url", tab->url);
        } else if (code == FM_OK && !tab) {
            code = sy_refuse_step(step, error, "unknown_tab", "tab_index", "the tab was closed meanwhile");
        } else if (code == FM_OK && backend->now(world->desktop.self) >= until_ms) {
            code = fm_fail(error, FM_TIMEOUT, "the tab is not in front after %d s", SHOW_MS / 1000);
        }
        sy_tabs_free(&tabs);
        code = code || shown ? code : backend->wait(world->desktop.self, until_ms, error);
        if (code != FM_OK || shown) {
            return code;
        }
    }
}

enum fm_code sy_run_switch_tab(struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                               struct fm_json_writer *w, struct fm_error *error) {
    (void)plan;
    enum fm_code code = world->desktop.backend->activate(world->desktop.self, step->ids[0], error);
    if (code == FM_NOT_FOUND) {
        return sy_refuse_step(step, error, "unknown_tab", "tab_index", "the tab was closed meanwhile");
    }
    return code ? code : until_shown(world, step, w, error);
}

/* ---- open_url ---- */

enum fm_code sy_check_open_url(struct sy_world *world, struct sy_plan *plan, struct sy_step *step,
                               struct fm_error *error) {
    char url[SY_URL_MAX + 1];
    (void)world;
    enum fm_code code = need_tabs(plan, error);
    if (code == FM_OK && sy_url_normalize(json_object_get_string(sy_arg(step, "url")), url, error) != FM_OK) {
        const struct fm_error fault = *error;
        return sy_refuse_step(step, error, fault.reason, "url", "%s", fault.detail);
    }
    step->url = code == FM_OK ? strdup(url) : NULL;
    return code == FM_OK && !step->url ? fm_fail_no_memory(error) : code;
}

enum fm_code sy_run_open_url(struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                             struct fm_json_writer *w, struct fm_error *error) {
    char tab[SY_ID_MAX];
    (void)plan;
    enum fm_code code = world->desktop.backend->open(world->desktop.self, step->url, tab, error);
    if (code == FM_OK) {
        fm_json_key_str(w, "url", step->url);
    }
    return code;
}

/* ---- close_tab ---- */

static int highest_first(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The indices of the step, the highest first; the caller frees them. NULL when out of memory. */
static int64_t *indices_of(const struct sy_step *step, size_t *count) {
    struct json_object *list = sy_arg(step, "tab_indices");
    *count = json_object_array_length(list);
    int64_t *indices = calloc(*count, sizeof *indices);
    for (size_t i = 0; indices && i < *count; i++) {
        indices[i] = json_object_get_int64(json_object_array_get_idx(list, i));
    }
    if (indices) {
        qsort(indices, *count, sizeof *indices, highest_first);
    }
    return indices;
}

enum fm_code sy_check_close_tab(struct sy_world *world, struct sy_plan *plan, struct sy_step *step,
                                struct fm_error *error) {
    size_t count = 0;
    enum fm_code code = need_tabs(plan, error);
    int64_t *indices = code == FM_OK ? indices_of(step, &count) : NULL;
    char(*ids)[SY_ID_MAX] = indices ? sy_step_ids(step, count) : NULL;
    if (code == FM_OK && !ids) {
        code = fm_fail_no_memory(error);
    }
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        const struct sy_tab *tab = NULL;
        code = find_index(world, plan, step, indices[i], "tab_indices", &tab, error);
        if (code == FM_OK) {
            memcpy(ids[i], tab->id, SY_ID_MAX);
        }
    }
    free(indices);
    return code;
}

enum fate { OPEN, CLOSED, CHANGED };

/* Asks tabs to close, except tabs that now show another page than when the plan was made. */
static enum fm_code ask_to_close(const struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                                 enum fate *fates, struct fm_error *error) {
    const struct sy_backend *backend = world->desktop.backend;
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < step->id_count && code == FM_OK; i++) {
        struct sy_tabs tabs = {.count = 0};
        code = backend->tabs(world->desktop.self, &tabs, error);
        const struct sy_tab *tab = code == FM_OK ? find_tab(&tabs, step->ids[i]) : NULL;
        const struct sy_tab *before = find_tab(&plan->snapshot.raw_tabs, step->ids[i]);
        fates[i] = !tab ? CLOSED : strcmp(tab->url, before->url) == 0 ? OPEN : CHANGED;
        sy_tabs_free(&tabs);
        if (code == FM_OK && fates[i] == OPEN) {
            code = backend->close_tab(world->desktop.self, step->ids[i], error);
            code = code == FM_NOT_FOUND ? FM_OK : code;
        }
    }
    return code;
}

/* Notes which tabs are gone, and counts those that were asked to close and are still open. */
static enum fm_code look_again(const struct sy_world *world, const struct sy_step *step, enum fate *fates, size_t *open,
                               struct fm_error *error) {
    struct sy_tabs tabs = {.count = 0};
    enum fm_code code = world->desktop.backend->tabs(world->desktop.self, &tabs, error);
    *open = 0;
    for (size_t i = 0; i < step->id_count && code == FM_OK; i++) {
        fates[i] = find_tab(&tabs, step->ids[i]) ? fates[i] : CLOSED;
        *open += fates[i] == OPEN;
    }
    sy_tabs_free(&tabs);
    return code;
}

/* Writes the indices of the tabs with this fate, as the client gave them, in ascending order. */
static void write_indices(const struct sy_step *step, const enum fate *fates, enum fate fate, const char *key,
                          struct fm_json_writer *w) {
    size_t count;
    int64_t *indices = indices_of(step, &count);
    fm_json_key(w, key);
    fm_json_array_begin(w);
    for (size_t i = count; indices && i > 0; i--) {
        if (fates[i - 1] == fate) {
            fm_json_int(w, indices[i - 1]);
        }
    }
    fm_json_array_end(w);
    free(indices);
}

enum fm_code sy_run_close_tab(struct sy_world *world, const struct sy_plan *plan, const struct sy_step *step,
                              struct fm_json_writer *w, struct fm_error *error) {
    const struct sy_backend *backend = world->desktop.backend;
    int64_t until_ms = backend->now(world->desktop.self) + CLOSE_MS;
    size_t open = 0;
    enum fate *fates = calloc(step->id_count, sizeof *fates);
    if (!fates) {
        return fm_fail_no_memory(error);
    }
    enum fm_code code = ask_to_close(world, plan, step, fates, error);
    code = code ? code : look_again(world, step, fates, &open, error);
    while (code == FM_OK && open > 0 && backend->now(world->desktop.self) < until_ms) {
        code = backend->wait(world->desktop.self, until_ms, error);
        code = code ? code : look_again(world, step, fates, &open, error);
    }
    write_indices(step, fates, CLOSED, "closed", w);
    write_indices(step, fates, OPEN, "blocked", w);
    write_indices(step, fates, CHANGED, "changed", w);
    free(fates);
    return code;
}
