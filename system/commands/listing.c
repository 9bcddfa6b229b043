/* Lists of applications and tabs. Commands and resources give the same lists. */
#include "commands/listing.h"
#include "base/utf8.h"
#include "desktop/url.h"
#include "protocol/json_writer.h"

#include <string.h>

#define TITLE_MAX 4096 /* bytes of a title */

/* Writes a page's text, cut to `max` bytes. Otherwise a text of megabytes would make the list too large. */
static void key_cut(struct fm_json_writer *w, const char *key, const char *text, size_t max) {
    size_t len = strlen(text);
    fm_json_key(w, key);
    fm_json_string(w, text, len > max ? fm_utf8_whole_prefix(text, max) : len);
}

void sy_write_running(const struct sy_snapshot *snapshot, struct fm_json_writer *w) {
    fm_json_key(w, "apps");
    fm_json_array_begin(w);
    for (size_t i = 0; i < snapshot->running_count; i++) {
        const struct sy_running *at = &snapshot->running[i];
        fm_json_object_begin(w);
        fm_json_key_str(w, "name", at->name);
        fm_json_key_int(w, "windows", (int64_t)at->window_count);
        fm_json_key_bool(w, "is_active", at->active);
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}

void sy_write_tabs(const struct sy_snapshot *snapshot, char *const *summaries, struct fm_json_writer *w) {
    fm_json_key_str(w, "snapshot", snapshot->handle);
    fm_json_key(w, "tabs");
    fm_json_array_begin(w);
    for (size_t i = 0; i < snapshot->tab_count; i++) {
        const struct sy_numbered_tab *at = &snapshot->tabs[i];
        fm_json_object_begin(w);
        fm_json_key_int(w, "index", (int64_t)i + 1);
        key_cut(w, "title", at->tab->title, TITLE_MAX);
        key_cut(w, "url", at->tab->url, SY_URL_MAX);
        fm_json_key_str(w, "domain", at->domain);
        fm_json_key_str(w, "content_summary", summaries ? summaries[i] : NULL);
        fm_json_key_bool(w, "is_active", at->tab->active);
        fm_json_key_int(w, "window_index", at->window_index);
        fm_json_key_int(w, "local_index", at->local_index);
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}

void sy_write_raw_tabs(const char *key, const struct sy_tabs *tabs, struct fm_json_writer *w) {
    fm_json_key(w, key);
    fm_json_array_begin(w);
    for (size_t i = 0; i < tabs->count; i++) {
        const struct sy_tab *tab = &tabs->at[i];
        fm_json_object_begin(w);
        fm_json_key_str(w, "id", tab->id);
        fm_json_key_str(w, "window_id", tab->window_id);
        fm_json_key_int(w, "position", tab->position);
        fm_json_key_bool(w, "active", tab->active);
        key_cut(w, "title", tab->title, TITLE_MAX);
        key_cut(w, "url", tab->url, SY_URL_MAX);
        fm_json_key_double(w, "opened_ms", tab->opened_ms);
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}
