/*
 * config.json on the disk. It is created at the first run and never changed after that, because it belongs to the user.
 */
#include "config/config.h"

#include "base/file.h"
#include "config/paths.h"

#include <errno.h>

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

enum fm_code gw_config_load(struct gw_config *config, const char *path, struct fm_error *error) {
    struct fm_file_info info;
    gw_config_defaults(config);
    enum fm_code code = fm_file_examine(path, &info) == ENOENT ? make(path, error) : read_file(config, path, error);
    return code == FM_OK ? gw_config_environment(config, error) : code;
}
