/* Makes a helper for a remote server: its configuration is in one variable, and the key in another. */
#include "providers/remote.h"
#include "protocol/json_writer.h"

#include <stdio.h>
#include <string.h>

#define CONFIG_MAX 4096
#define VARIABLE   "FM_GATEWAY_REMOTE" /* the variable from which the helper reads its configuration */

/* How requests reach a remote provider. */
struct elsewhere {
    const char *dialect;
    const char *url;
    const char *path; /* appended to the URL, unless the URL ends with it */
    const char *key;  /* the environment variable with the key */
};

static const struct elsewhere elsewhere[] = {
    [GW_PROVIDER_OPENAI] = {"responses", "https://api.openai.com/v1", "", "OPENAI_API_KEY"},
    [GW_PROVIDER_ANTHROPIC] = {"messages", "https://api.anthropic.com", "/v1", "ANTHROPIC_API_KEY"},
};

const char *gw_remote_key_name(enum gw_provider provider) {
    return elsewhere[provider].key;
}

static void write_url(const struct elsewhere *row, const char *url, struct fm_json_writer *w) {
    char whole[CONFIG_MAX];
    const char *from = url && *url ? url : row->url;
    size_t len = strlen(from);
    size_t path_len = strlen(row->path);
    while (len > 0 && from[len - 1] == '/') {
        len--;
    }
    bool has_path = len >= path_len && memcmp(from + len - path_len, row->path, path_len) == 0;
    int size = snprintf(whole, sizeof whole, "%.*s%s", (int)len, from, has_path ? "" : row->path);
    w->buf->failed |= size < 0 || (size_t)size >= sizeof whole;
    fm_json_key_str(w, "url", whole);
}

/* {"endpoints":[{"url","dialect","key_env"}]}, as NAME=VALUE. */
static bool write_config(const struct elsewhere *row, const char *url, struct fm_buf *variable) {
    fm_buf_append_str(variable, VARIABLE "=");
    struct fm_json_writer w = fm_json_writer_on(variable);
    fm_json_object_begin(&w);
    fm_json_key(&w, "endpoints");
    fm_json_array_begin(&w);
    fm_json_object_begin(&w);
    write_url(row, url, &w);
    fm_json_key_str(&w, "dialect", row->dialect);
    fm_json_key_str(&w, "key_env", row->key);
    fm_json_object_end(&w);
    fm_json_array_end(&w);
    fm_json_object_end(&w);
    fm_buf_append_char(variable, '\0');
    return !variable->failed;
}

struct gw_link *gw_remote_link(uv_loop_t *loop, const char *helper, enum gw_provider provider, const char *key,
                               const char *url, int64_t pulse_ms) {
    static const char *const arguments[] = {"--engine",      "remote", "--remote", "env:" VARIABLE,
                                            "--store-bytes", "0",      NULL};
    const struct elsewhere *row = &elsewhere[provider];
    struct gw_link *link = NULL;
    struct fm_buf config;
    struct fm_buf variable;
    fm_buf_init(&config, CONFIG_MAX);
    fm_buf_init(&variable, CONFIG_MAX);
    fm_buf_append_str(&variable, row->key);
    fm_buf_append_char(&variable, '=');
    fm_buf_append_str(&variable, key);
    fm_buf_append_char(&variable, '\0');
    if (write_config(row, url, &config) && !variable.failed) {
        const char *environment[] = {config.data, variable.data, NULL};
        struct fm_client_options options = {.path = helper, .arguments = arguments, .environment = environment};
        link = gw_link_new(loop, &options, pulse_ms);
    }
    if (variable.data) {
        explicit_bzero(variable.data, variable.len);
    }
    fm_buf_free(&variable);
    fm_buf_free(&config);
    return link;
}
