/*
 * config.json on the disk. It is created at the first run and never changed after that, because it belongs to the user.
 */
#include "config/config.h"

#include "base/file.h"
#include "config/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum fm_code make(const char *path, struct fm_error *error) {
    struct fm_buf text;
    fm_buf_init(&text, GW_CONFIG_FILE_MAX);
    gw_config_write_defaults(&text);
    enum fm_code code = text.failed ? fm_fail_no_memory(error) : gw_file_replace(path, text.data, text.len, error);
    fm_buf_free(&text);
    return code;
}

static enum fm_code read_file(struct gw_config *config, const char *path, struct fm_error *error) {
    struct fm_buf text;
    fm_buf_init(&text, GW_CONFIG_FILE_MAX);
    enum fm_code code = fm_file_read(path, &text, error);
    if (code == FM_OK) {
        code = gw_config_parse(config, text.data ? text.data : "", text.len, path, error);
    }
    fm_buf_free(&text);
    return code;
}

/* Makes the workspace's path absolute, so that an error names a folder that a user can find. */
static enum fm_code find_workspace(struct gw_config *config, struct fm_error *error) {
    char *path = config->agents_workspace_path;
    char folder[GW_PATH_MAX];
    char found[sizeof config->agents_workspace_path];
    bool in_home = path[0] == '~' && (path[1] == '/' || path[1] == '\0');
    if (path[0] == '/') {
        return FM_OK;
    }
    const char *base = in_home ? getenv("HOME") : getcwd(folder, sizeof folder);
    if (!base || base[0] != '/') {
        return fm_fail(error, FM_INVALID_REQUEST, "agents.workspacePath is %.200s, and %s: write an absolute path",
                       path, in_home ? "HOME is not set to a folder" : "the working folder is gone");
    }
    const char *rest = path + (in_home ? 1 : strncmp(path, "./", 2) == 0);
    const char *slash = *rest == '/' || *rest == '\0' ? "" : "/";
    if ((size_t)snprintf(found, sizeof found, "%s%s%s", base, slash, rest) >= sizeof found) {
        return fm_fail(error, FM_INVALID_REQUEST, "agents.workspacePath: its absolute path is longer than %zu bytes",
                       sizeof found - 1);
    }
    memcpy(path, found, strlen(found) + 1);
    return FM_OK;
}

enum fm_code gw_config_load(struct gw_config *config, const char *path, struct fm_error *error) {
    struct fm_file_info info;
    gw_config_defaults(config);
    enum fm_code code = fm_file_examine(path, &info) == ENOENT ? make(path, error) : read_file(config, path, error);
    code = code == FM_OK ? gw_config_environment(config, error) : code;
    return code == FM_OK ? find_workspace(config, error) : code;
}
