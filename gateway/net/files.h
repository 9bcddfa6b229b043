/*
 * The page's files. They are read into memory at the start, and found by their exact names. So a request can't reach
 * any other file of the disk, whatever its path looks like.
 */
#ifndef GW_NET_FILES_H
#define GW_NET_FILES_H

#include "base/error.h"

#include <stddef.h>
#include <stdbool.h>

#define GW_FILES_MAX      512u       /* files */
#define GW_FILE_BYTES_MAX (4u << 20) /* of one file */
#define GW_ETAG_LEN       34u        /* with its quotes */

struct gw_file {
    char *path; /* "/index.html" */
    const char *type;
    char *data;
    size_t len;
    char etag[GW_ETAG_LEN + 1];
};

struct gw_files {
    struct gw_file *files;
    size_t count;
};

/*
 * Reads the folder and its subfolders. Left out are links, names that begin with a dot or have other characters than
 * letters, digits and "-_.", and types of files that no page has. May block on the disk. FM_UNAVAILABLE names what
 * can't be read, FM_OVERLOADED which limit is exceeded; `files` is empty then.
 */
FM_MUST_USE enum fm_code gw_files_load(struct gw_files *files, const char *folder, struct fm_error *error);
void gw_files_free(struct gw_files *files);

/* The file of a path; "/" means "/index.html". NULL: no file has this path. Pure. */
const struct gw_file *gw_files_find(const struct gw_files *files, const char *path, size_t len);

#endif
