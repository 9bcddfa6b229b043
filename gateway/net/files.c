/* The table of the page's files. Each was a regular file below the folder when the gateway started. */
#include "net/files.h"

#include "base/file.h"
#include "base/hex.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 8

static const char *type_of(const char *name) {
    static const char *const types[][2] = {
        {".html", "text/html; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
        {".ico", "image/x-icon"},
        {".woff2", "font/woff2"},
        {".json", "application/json"},
        {".webmanifest", "application/manifest+json"},
        {".txt", "text/plain; charset=utf-8"},
    };
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        size_t ending = strlen(types[i][0]);
        if (len > ending && strcmp(name + len - ending, types[i][0]) == 0) {
            return types[i][1];
        }
    }
    return NULL;
}

static bool is_plain(const char *name) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    return *name != '.' && strspn(name, plain) == strlen(name);
}

static bool make_etag(struct gw_file *file) {
    unsigned char digest[32];
    if (EVP_Digest(file->data, file->len, digest, NULL, EVP_sha256(), NULL) != 1) {
        return false;
    }
    file->etag[0] = '"';
    fm_hex(file->etag + 1, digest, 16);
    memcpy(file->etag + 33, "\"", 2);
    return true;
}

static enum fm_code add_file(struct gw_files *files, const char *full, const char *path, const char *type,
                             struct fm_error *error) {
    struct fm_buf text;
    if (files->count == GW_FILES_MAX) {
        return fm_fail(error, FM_OVERLOADED, "the page's folder has more than %u files", GW_FILES_MAX);
    }
    fm_buf_init(&text, GW_FILE_BYTES_MAX);
    enum fm_code code = fm_file_read(full, &text, error);
    struct gw_file *more = code == FM_OK ? realloc(files->files, (files->count + 1) * sizeof *more) : NULL;
    if (!more) {
        fm_buf_free(&text);
        return code == FM_OK ? fm_fail_no_memory(error) : code;
    }
    files->files = more;
    struct gw_file *file = &more[files->count];
    *file = (struct gw_file){.path = strdup(path), .type = type, .data = text.data, .len = text.len};
    if (!file->path || !make_etag(file)) {
        free(file->path);
        fm_buf_free(&text);
        return fm_fail_no_memory(error);
    }
    files->count++;
    return FM_OK;
}

/* `path` is where `folder` lies below the page's folder: "", or "/assets" for example. */
static enum fm_code load_folder(struct gw_files *files, const char *folder, const char *path, int depth,
                                struct fm_error *error) {
    struct fm_folder *open = fm_folder_open(folder);
    enum fm_code code = FM_OK;
    if (!open) {
        return fm_fail(error, FM_UNAVAILABLE, "can't read the page's folder %s: %s", folder, strerror(errno));
    }
    for (const char *name; code == FM_OK && (name = fm_folder_next(open));) {
        char full[4096];
        char below[1024];
        struct stat info;
        if (!is_plain(name) || snprintf(full, sizeof full, "%s/%s", folder, name) >= (int)sizeof full ||
            snprintf(below, sizeof below, "%s/%s", path, name) >= (int)sizeof below || lstat(full, &info) != 0) {
            continue;
        }
        if (S_ISDIR(info.st_mode) && depth < DEPTH_MAX) {
            code = load_folder(files, full, below, depth + 1, error);
        } else if (S_ISREG(info.st_mode) && type_of(name)) {
            code = add_file(files, full, below, type_of(name), error);
        }
    }
    fm_folder_close(open);
    return code;
}

enum fm_code gw_files_load(struct gw_files *files, const char *folder, struct fm_error *error) {
    *files = (struct gw_files){0};
    enum fm_code code = load_folder(files, folder, "", 0, error);
    if (code != FM_OK) {
        gw_files_free(files);
    }
    return code;
}

void gw_files_free(struct gw_files *files) {
    for (size_t i = 0; i < files->count; i++) {
        free(files->files[i].path);
        free(files->files[i].data);
    }
    free(files->files);
    *files = (struct gw_files){0};
}

const struct gw_file *gw_files_find(const struct gw_files *files, const char *path, size_t len) {
    static const char index[] = "/index.html";
    if (len == 1 && *path == '/') {
        path = index;
        len = sizeof index - 1;
    }
    for (size_t i = 0; i < files->count; i++) {
        if (strlen(files->files[i].path) == len && memcmp(files->files[i].path, path, len) == 0) {
            return &files->files[i];
        }
    }
    return NULL;
}
