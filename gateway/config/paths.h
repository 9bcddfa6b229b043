/*
 * The state folder: where each of the gateway's files is, and the lock that allows only one gateway for a folder. May
 * block on the disk; main thread.
 */
#ifndef GW_CONFIG_PATHS_H
#define GW_CONFIG_PATHS_H

#include "base/error.h"

#include <stddef.h>
#include <stdbool.h>

#define GW_PATH_MAX 4096

/* All absolute. The parts that use the folders below `home`, and the files other than `lock`, create them. */
struct gw_paths {
    char home[GW_PATH_MAX];      /* $PROJ_JARVIS_HOME, or ~/.proj-jarvis; 0700 */
    char config[GW_PATH_MAX];    /* config.json */
    char token[GW_PATH_MAX];     /* token */
    char lock[GW_PATH_MAX];      /* lock: its holder is the gateway of this folder */
    char sessions[GW_PATH_MAX];  /* sessions/ */
    char blobs[GW_PATH_MAX];     /* blobs/ */
    char audit[GW_PATH_MAX];     /* audit.jsonl */
    char memory_db[GW_PATH_MAX]; /* memory.db */
};

/*
 * Finds the state folder and creates it, with mode 0700, if it is missing. A folder that belongs to another user, or
 * that others can write to, is refused. FM_UNAVAILABLE says what to do.
 */
FM_MUST_USE enum fm_code gw_paths_open(struct gw_paths *paths, struct fm_error *error);

/*
 * Takes the lock of the folder for as long as the process lives: `*fd` is its descriptor, close-on-exec. Never waits.
 * FM_UNAVAILABLE: another gateway has it; the error names its process.
 */
FM_MUST_USE enum fm_code gw_paths_lock(const struct gw_paths *paths, int *fd, struct fm_error *error);

/* Notes in the lock's file which port the gateway listens on. */
FM_MUST_USE enum fm_code gw_paths_note_port(const struct gw_paths *paths, int fd, int port, struct fm_error *error);

/* The port of the gateway that has the lock. FM_UNAVAILABLE: no gateway runs, or it is not ready yet. */
FM_MUST_USE enum fm_code gw_paths_find_port(const struct gw_paths *paths, int *port, struct fm_error *error);

/*
 * Makes `path` a file with the `len` bytes at `text` and mode 0600. The change is atomic: a reader sees the old file or
 * the new one. FM_UNAVAILABLE names the file.
 */
FM_MUST_USE enum fm_code gw_file_replace(const char *path, const char *text, size_t len, struct fm_error *error);

#endif
