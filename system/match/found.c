/* Handles the commands that were found. Only this file knows which members each type of command has. */
#include "match/found.h"
#include "protocol/json_writer.h"

#include <stdlib.h>
#include <string.h>

void sy_found_free(struct sy_found *found) {
    free(found->tabs);
    free(found->text);
    *found = (struct sy_found){.type = NULL};
}

bool sy_found_destroys(const struct sy_found *found) {
    return strncmp(found->type, "close_", 6) == 0;
}

bool sy_found_set_tabs(struct sy_found *found, const size_t *tabs, size_t count) {
    free(found->tabs);
    found->tabs = malloc((count + 1) * sizeof *found->tabs);
    found->tab_count = found->tabs ? count : 0;
    if (found->tabs) {
        memcpy(found->tabs, tabs, count * sizeof *tabs);
    }
    return found->tabs != NULL;
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool sy_found_equal(const struct sy_found *a, const struct sy_found *b) {
    bool tabs = a->tab_count == b->tab_count &&
                (a->tab_count == 0 || memcmp(a->tabs, b->tabs, a->tab_count * sizeof *a->tabs) == 0);
    bool bounds =
        a->has_bounds == b->has_bounds && (!a->has_bounds || memcmp(&a->bounds, &b->bounds, sizeof a->bounds) == 0);
    return tabs && bounds && same_text(a->type, b->type) && same_text(a->name, b->name) &&
           same_text(a->monitor, b->monitor) && same_text(a->text, b->text);
}

static void write_tabs(const struct sy_found *found, const struct sy_snapshot *snapshot, struct fm_json_writer *w) {
    if (strcmp(found->type, "switch_tab") == 0) {
        fm_json_key_int(w, "tab_index", (int64_t)found->tabs[0]);
    } else {
        fm_json_key(w, "tab_indices");
        fm_json_array_begin(w);
        for (size_t i = 0; i < found->tab_count; i++) {
            fm_json_int(w, (int64_t)found->tabs[i]);
        }
        fm_json_array_end(w);
    }
    fm_json_key_str(w, "snapshot", snapshot->handle);
}

void sy_found_write(const struct sy_found *found, const struct sy_snapshot *snapshot, struct fm_json_writer *w) {
    const int edges[] = {found->bounds.left, found->bounds.top, found->bounds.right, found->bounds.bottom};
    fm_json_object_begin(w);
    fm_json_key_str(w, "type", found->type);
    if (found->name) {
        fm_json_key_str(w, strcmp(found->type, "activate_preset") == 0 ? "preset_name" : "app_name", found->name);
    }
    if (found->tab_count > 0) {
        write_tabs(found, snapshot, w);
    }
    if (found->monitor) {
        fm_json_key_str(w, "monitor", found->monitor);
    }
    if (found->has_bounds) {
        fm_json_key(w, "bounds");
        fm_json_array_begin(w);
        for (size_t i = 0; i < 4; i++) {
            fm_json_int(w, edges[i]);
        }
        fm_json_array_end(w);
    }
    if (found->text) {
        fm_json_key_str(w, strcmp(found->type, "query") == 0 ? "question" : "url", found->text);
    }
    fm_json_object_end(w);
}
