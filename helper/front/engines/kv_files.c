/* The files in which engines keep what they have computed. See kv_files.h. */
#include "front/engines/kv_files.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/platform.h"
#include "base/private_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FOLDER      "fm-proxy/kv"
#define SAVED       ".kv"
#define NEW         ".new"
#define HASH_DIGITS 16
#define LEFT_MS     60000 /* a younger new file may not be locked yet */
#define SHARE       2     /* a file may take 1/SHARE of all bytes, so that other models' files have room too */

void fm_kv_files_none(struct fm_kv_files *files) {
    *files = (struct fm_kv_files){.folder = -1, .read = -1, .write = -1};
}

static void close_one(int *fd) {
    if (*fd >= 0) {
        fm_close(*fd);
    }
    *fd = -1;
}

/* ---- names ---- */

/*
 * Builds a file's name. If two models get the same name by chance, they replace each other's file; an engine recognises
 * whether a file belongs to its model.
 */
static void make_names(struct fm_kv_files *files, const char *engine, const char *model) {
    uint64_t random;
    uint64_t hash = fm_hash(fm_hash(FM_HASH_START, engine, strlen(engine) + 1), model, strlen(model) + 1);
    fm_random(&random, sizeof random);
    snprintf(files->name, sizeof files->name, "%016llx" SAVED, (unsigned long long)hash);
    snprintf(files->new_name, sizeof files->new_name, "%016llx" NEW, (unsigned long long)random);
}

/* Whether a file has a name of this form, because the folder may contain other files. */
static bool is_named(const char *name, const char *ending) {
    return strspn(name, "0123456789abcdef") == HASH_DIGITS && strcmp(name + HASH_DIGITS, ending) == 0;
}

/* ---- which files are removed ---- */

struct sweep {
    const struct fm_kv_files *files;
    int64_t now_ms;
    int64_t bytes; /* of all saved files together */
    int64_t oldest_ms;
    char oldest[FM_KV_NAME_MAX]; /* the least recently used file, except our own; "": there is none */
};

static void look_at(void *context, const struct fm_private_entry *entry) {
    struct sweep *sweep = context;
    int folder = sweep->files->folder;
    if (is_named(entry->name, NEW) && sweep->now_ms - entry->used_ms > LEFT_MS &&
        fm_private_file_is_left(folder, entry->name)) {
        fm_private_file_remove(folder, entry->name); /* a file of a helper that was killed */
    }
    if (!is_named(entry->name, SAVED)) {
        return;
    }
    sweep->bytes += entry->bytes;
    bool older = !sweep->oldest[0] || entry->used_ms < sweep->oldest_ms;
    if (older && strcmp(entry->name, sweep->files->name) != 0) {
        sweep->oldest_ms = entry->used_ms;
        snprintf(sweep->oldest, sizeof sweep->oldest, "%s", entry->name);
    }
}

/* Removes files that killed helpers left. Then removes the least recently used files until the rest is small enough. */
static void sweep(const struct fm_kv_files *files) {
    struct sweep found;
    for (;;) {
        found = (struct sweep){.files = files, .now_ms = fm_wall_seconds() * 1000};
        if (!fm_private_folder_list(files->folder, look_at, &found) || found.bytes <= files->all_bytes ||
            !found.oldest[0]) {
            return;
        }
        fm_private_file_remove(files->folder, found.oldest);
    }
}

/* ---- the files of one engine ---- */

static void say_why_not(const char *what, const char *path) {
    const char *hint = errno == EPERM ? "; it must be yours, and nobody else may write to it" : "";
    fm_log(FM_LOG_WARN, "what the engine has computed is not kept when it ends: can't %s (%s): %s%s", what,
           strerror(errno), path, hint);
}

/* The folder of the files; "": there is none. */
static void find_folder(const struct fm_options *options, char *path, size_t size) {
    char caches[PATH_MAX];
    path[0] = '\0';
    if (options->kv_cache_dir) {
        snprintf(path, size, "%s", options->kv_cache_dir);
    } else if (fm_cache_folder(caches, sizeof caches)) {
        snprintf(path, size, "%s/" FOLDER, caches);
    }
}

void fm_kv_files_open(struct fm_kv_files *files, const struct fm_options *options, const char *engine,
                      const char *model) {
    char path[PATH_MAX + sizeof FOLDER];
    fm_kv_files_none(files);
    find_folder(options, path, sizeof path);
    if (options->no_kv_cache_files || options->kv_cache_bytes == 0 || !path[0]) {
        return;
    }
    files->folder = fm_private_folder_open(path);
    if (files->folder < 0) {
        say_why_not("use the folder", path);
        return;
    }
    files->all_bytes = options->kv_cache_bytes;
    files->max_bytes = options->kv_cache_bytes / SHARE;
    make_names(files, engine, model);
    files->read = fm_private_file_open(files->folder, files->name);
    if (files->read < 0 && errno != ENOENT) {
        fm_private_file_remove(files->folder, files->name); /* the file is a link, or others can read it */
    } else if (files->read >= 0 && fm_private_file_size(files->read) > files->max_bytes) {
        fm_private_file_remove(files->folder, files->name); /* the limit was higher before; read it this last time */
    }
    sweep(files);
    files->write = fm_private_file_create(files->folder, files->new_name);
    if (files->write < 0) {
        say_why_not("make a file in the folder", path);
        close_one(&files->read);
        close_one(&files->folder);
    }
}

struct fm_child_given fm_kv_files_given(const struct fm_kv_files *files) {
    return files->write < 0 ? (struct fm_child_given){.count = 0}
                            : (struct fm_child_given){.fds = {files->read, files->write},
                                                      .count = 2,
                                                      .file_bytes = files->max_bytes};
}

void fm_kv_files_drop(struct fm_kv_files *files) {
    if (files->read >= 0 && fm_private_file_is(files->folder, files->name, files->read)) {
        fm_private_file_remove(files->folder, files->name);
    }
}

/*
 * Does not call fsync, which may take longer than this process has at its end. If a power failure damages the file, its
 * checksums do not match.
 */
static bool keep_file(const struct fm_kv_files *files, int64_t saved_bytes) {
    return saved_bytes > 0 && saved_bytes <= files->max_bytes && fm_private_file_size(files->write) == saved_bytes &&
           fm_private_file_rename(files->folder, files->new_name, files->name);
}

void fm_kv_files_close(struct fm_kv_files *files, int64_t saved_bytes) {
    if (files->folder < 0) {
        return;
    }
    if (keep_file(files, saved_bytes)) {
        fm_log(FM_LOG_INFO, "%lld bytes of what the engine has computed are kept", (long long)saved_bytes);
        sweep(files);
    } else {
        if (saved_bytes > 0) {
            fm_log(FM_LOG_WARN, "what the engine has computed is not kept: the file is not as long as it says, or too "
                                "long, or can't be given its name in the folder");
        }
        fm_private_file_remove(files->folder, files->new_name);
    }
    close_one(&files->read);
    close_one(&files->write);
    close_one(&files->folder);
    fm_kv_files_none(files);
}
