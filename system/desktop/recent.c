/* Recent files, by GLib's reader of bookmarks. Only local files are returned. */
#include "desktop/recent.h"

#include <glib.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct seen {
    const char *uri;
    int64_t at; /* in seconds since 1970 */
};

static int latest_first(const void *a, const void *b) {
    const struct seen *x = a;
    const struct seen *y = b;
    return x->at != y->at ? (x->at < y->at) - (x->at > y->at) : strcmp(x->uri, y->uri);
}

/* The path of a URI, which the caller frees; NULL: the URI is not a local file. */
static char *path_of(const char *uri) {
    char *path = g_filename_from_uri(uri, NULL, NULL);
    char *copy = path ? strdup(path) : NULL;
    g_free(path);
    return copy;
}

static size_t take_latest(GBookmarkFile *bookmarks, char **paths, size_t max) {
    gsize count = 0;
    size_t taken = 0;
    char **uris = g_bookmark_file_get_uris(bookmarks, &count);
    struct seen *seen = calloc(count + 1, sizeof *seen);
    for (size_t i = 0; seen && i < count; i++) {
        GDateTime *at = g_bookmark_file_get_modified_date_time(bookmarks, uris[i], NULL);
        seen[i] = (struct seen){uris[i], at ? g_date_time_to_unix(at) : 0};
    }
    if (seen) {
        qsort(seen, count, sizeof *seen, latest_first);
    }
    for (size_t i = 0; seen && i < count && taken < max; i++) {
        char *path = g_bookmark_file_get_is_private(bookmarks, seen[i].uri, NULL) ? NULL : path_of(seen[i].uri);
        if (path) {
            paths[taken++] = path;
        }
    }
    free(seen);
    g_strfreev(uris);
    return taken;
}

size_t sy_recent_files(char **paths, size_t max) {
    char *list = g_build_filename(g_get_user_data_dir(), "recently-used.xbel", NULL);
    GBookmarkFile *bookmarks = g_bookmark_file_new();
    size_t count = g_bookmark_file_load_from_file(bookmarks, list, NULL) ? take_latest(bookmarks, paths, max) : 0;
    g_bookmark_file_free(bookmarks);
    g_free(list);
    return count;
}
