/* What pages are about, for list_tabs. All pages together have one time limit, whatever a page does. */
#include "commands/internal.h"
#include "desktop/clean.h"

#include <stdlib.h>
#include <string.h>

#define ALL_MS      300 /* for all pages together */
#define SUMMARY_MAX 200 /* characters */
#define BYTES_MAX   4096

/* Makes a summary of the text: cleaned and cut; NULL if nothing remains. False when out of memory. */
static bool shorten(const char *text, char **summary) {
    struct fm_buf out;
    fm_buf_init(&out, BYTES_MAX);
    sy_clean(&out, text, SUMMARY_MAX, false);
    bool empty = out.len == 0;
    fm_buf_append_char(&out, '\0');
    *summary = out.failed || empty ? NULL : strdup(out.data);
    bool ok = !out.failed && (empty || *summary);
    fm_buf_free(&out);
    return ok;
}

enum fm_code sy_take_summaries(const struct sy_world *world, const struct sy_snapshot *snapshot, char **summaries,
                               struct fm_error *error) {
    const struct sy_backend *backend = world->desktop.backend;
    int64_t end_ms = backend->now(world->desktop.self) + ALL_MS;
    for (size_t i = 0; backend->text && i < snapshot->tab_count; i++) {
        int64_t now_ms = backend->now(world->desktop.self);
        bool last = i + 1 == snapshot->tab_count;
        int64_t until_ms =
            last ? end_ms : now_ms + (end_ms - now_ms) / 2; /* if a page hangs, time remains for the other pages */
        char *text = NULL;
        if (until_ms <= now_ms) {
            return FM_OK;
        }
        enum fm_code code = backend->text(world->desktop.self, snapshot->tabs[i].tab->id, until_ms, &text, error);
        bool kept = !text || shorten(text, &summaries[i]);
        free(text);
        if (!kept) {
            return fm_fail_no_memory(error);
        }
        if (code == FM_CANCELLED || code == FM_INTERNAL) {
            return code;
        }
    }
    return FM_OK;
}
