/*
 * The gateway's settings: defaults, then config.json, then environment variables. One table (keys.c) has each key with
 * its type, limits and default; the functions that read, check and write all use it. Each function may read or write a
 * small file. Call them from the main thread, before any other thread is started.
 */
#ifndef GW_CONFIG_CONFIG_H
#define GW_CONFIG_CONFIG_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GW_CONFIG_TEXT_MAX 1024         /* bytes of a text value, with its NUL */
#define GW_CONFIG_PATH_MAX 8192         /* bytes of the workspace's path, with its NUL */
#define GW_CONFIG_FILE_MAX (256u << 10) /* bytes of config.json */

/* A value for each key of config.json, by group. */
struct gw_config {
    int64_t gateway_port; /* 0: any free port */
    char gateway_host[GW_CONFIG_TEXT_MAX];
    char agents_default[GW_CONFIG_TEXT_MAX];
    char agents_workspace_path[GW_CONFIG_PATH_MAX]; /* absolute after gw_config_load */
    int64_t tools_timeout;                          /* ms */
    int64_t tools_max_output_bytes;
    int64_t tools_approval_timeout;         /* ms */
    char tools_sandbox[GW_CONFIG_TEXT_MAX]; /* "off", "write" or "strict" */
    bool memory_enabled;
    char memory_embedding_model[GW_CONFIG_TEXT_MAX];
    char memory_embedding_provider[GW_CONFIG_TEXT_MAX]; /* "local" or "openai" */
    bool security_audit_log;
    bool security_secrets_filter;
};

/* Values that come only from the environment. Each is memory of base/secret.h, or NULL: not set. */
struct gw_secrets {
    char *token; /* PROJ_JARVIS_TOKEN */
    char *anthropic_key;
    char *openai_key;
};

enum gw_type { GW_INT, GW_BOOL, GW_TEXT, GW_CHOICE };

/* A row of the table. */
struct gw_key {
    const char *group;
    const char *name;
    enum gw_type type;
    size_t offset; /* of the value in struct gw_config */
    int64_t min;   /* GW_INT: the smallest value; GW_TEXT: the fewest bytes */
    int64_t max;
    const char *choices;  /* GW_CHOICE: the allowed values, each with a space after it */
    const char *fallback; /* the default, as JSON */
    const char *variable; /* the environment variable that sets the key; NULL: none */
    const char *why;      /* added to the error where a value is refused; NULL: nothing to add */
};

/* The table, and how many rows it has. */
extern const struct gw_key gw_keys[];
extern const size_t gw_key_count;

/*
 * gw_key_find returns the row of a key; NULL: there is no such key. gw_key_group_exists returns whether the group has
 * any key. Pure.
 */
const struct gw_key *gw_key_find(const char *group, size_t group_len, const char *name, size_t name_len);
bool gw_key_group_exists(const char *group, size_t len);

struct json_object;

/*
 * Sets the key to a JSON value. FM_INVALID_REQUEST: the param is "GROUP.NAME", the detail says what is allowed, and
 * `config` is unchanged. Pure.
 */
FM_MUST_USE enum fm_code gw_key_set(struct gw_config *config, const struct gw_key *key, struct json_object *value,
                                    struct fm_error *error);

/* The defaults. Pure. */
void gw_config_defaults(struct gw_config *config);

/*
 * Reads the text of a config.json; its keys replace the values in `config`. FM_INVALID_REQUEST names key and line
 * ("config.json, line 3: gateway.prt: no such key"); `file` is the name that is shown. A byte order mark at the
 * beginning, as some editors on Windows write it, is ignored. Pure.
 */
FM_MUST_USE enum fm_code gw_config_parse(struct gw_config *config, const char *text, size_t len, const char *file,
                                         struct fm_error *error);

/* Writes a config.json with the defaults. */
void gw_config_write_defaults(struct fm_buf *text);

/* Reads the environment variables that the table names. FM_INVALID_REQUEST names the variable. */
FM_MUST_USE enum fm_code gw_config_environment(struct gw_config *config, struct fm_error *error);

/*
 * Sets everything, in this order: defaults, the file `path` (created if it is missing), environment. Then the path of
 * the workspace becomes absolute: "~" is $HOME, and a relative path begins in the working folder.
 */
FM_MUST_USE enum fm_code gw_config_load(struct gw_config *config, const char *path, struct fm_error *error);

/*
 * Takes the secrets out of the environment, and overwrites their values there. Call it only while the process has one
 * thread. Free with gw_secrets_free.
 */
void gw_secrets_take(struct gw_secrets *secrets);
void gw_secrets_free(struct gw_secrets *secrets);

#endif
