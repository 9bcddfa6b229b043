/* Lists of ignored paths: at most FM_IGNORED_MAX, then one entry that stands for all others. */
#include "surface/ignored.h"

#include <string.h>

void fm_ignored_add(struct fm_ignored *ignored, const char *path) {
    if (ignored->count > FM_IGNORED_MAX) {
        return;
    }
    const char *shown = ignored->count < FM_IGNORED_MAX ? path : FM_IGNORED_MORE;
    size_t size = strlen(shown) + 1;
    memcpy(ignored->paths + ignored->len, shown, size);
    ignored->len += size;
    ignored->count++;
}

const char *fm_ignored_next(const struct fm_buf *paths, const char *last) {
    const char *next = last ? last + strlen(last) + 1 : paths->data;
    return next && next < paths->data + paths->len ? next : NULL;
}

void fm_ignored_append(struct fm_buf *paths, const char *path) {
    size_t count = 0;
    for (const char *known = fm_ignored_next(paths, NULL); known; known = fm_ignored_next(paths, known)) {
        if (strcmp(known, path) == 0) {
            return;
        }
        count++;
    }
    if (count <= FM_IGNORED_MAX) {
        const char *shown = count < FM_IGNORED_MAX ? path : FM_IGNORED_MORE;
        fm_buf_append(paths, shown, strlen(shown) + 1);
    }
}

struct fm_buf fm_ignored_paths(const struct fm_ignored *ignored) {
    return (struct fm_buf){.data = (char *)ignored->paths, .len = ignored->len};
}

void fm_ignored_write_report(const struct fm_buf *paths, struct fm_json_writer *w) {
    if (paths->len == 0) {
        return;
    }
    fm_json_key(w, "fm");
    fm_json_object_begin(w);
    fm_json_key(w, "ignored");
    fm_json_array_begin(w);
    for (const char *path = fm_ignored_next(paths, NULL); path; path = fm_ignored_next(paths, path)) {
        fm_json_str(w, path);
    }
    fm_json_array_end(w);
    fm_json_object_end(w);
}
