/* Finds git folders. It looks at a limited number of names, however many the disk has. */
#include "desktop/folders.h"
#include "base/file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 3
#define LOOKS_MAX 2000
#define FOUND_MAX 256
#define PATH_SIZE 1024

struct found {
    char *path;
    int64_t changed;
};

struct search {
    struct found found[FOUND_MAX];
    size_t count;
    int looks;
};

static int latest_first(const void *a, const void *b) {
    const struct found *x = a;
    const struct found *y = b;
    return x->changed != y->changed ? (x->changed < y->changed) - (x->changed > y->changed) : strcmp(x->path, y->path);
}

/* Notes the folder if it has a .git. Returns whether it has a .git: then the search does not enter the folder. */
static bool note_repository(struct search *search, const char *path) {
    char git[PATH_SIZE + 8];
    struct fm_file_info info;
    snprintf(git, sizeof git, "%s/.git", path);
    if (fm_file_examine(git, &info) != 0) {
        return false;
    }
    char *copy = search->count < FOUND_MAX ? strdup(path) : NULL;
    if (copy) {
        search->found[search->count++] = (struct found){copy, info.changed};
    }
    return true;
}

/* Searches a folder; calls itself for at most DEPTH_MAX levels. */
static void look_into(struct search *search, const char *path, int depth) {
    struct fm_folder *folder = fm_folder_open(path);
    const char *name;
    while (folder && search->looks < LOOKS_MAX && (name = fm_folder_next(folder))) {
        char below[PATH_SIZE];
        struct fm_file_info info;
        search->looks++;
        bool fits = snprintf(below, sizeof below, "%s/%s", path, name) < (int)sizeof below;
        if (name[0] == '.' || strcmp(name, "node_modules") == 0 || !fits || fm_file_examine(below, &info) != 0 ||
            info.regular || note_repository(search, below) || depth == DEPTH_MAX) {
            continue;
        }
        look_into(search, below, depth + 1);
    }
    if (folder) {
        fm_folder_close(folder);
    }
}

size_t sy_git_folders(const char *home, char **paths, size_t max) {
    struct search *search = calloc(1, sizeof *search);
    size_t count = 0;
    if (!search) {
        return 0;
    }
    look_into(search, home, 1);
    qsort(search->found, search->count, sizeof search->found[0], latest_first);
    for (size_t i = 0; i < search->count; i++) {
        if (count < max) {
            paths[count++] = search->found[i].path;
        } else {
            free(search->found[i].path);
        }
    }
    free(search);
    return count;
}
