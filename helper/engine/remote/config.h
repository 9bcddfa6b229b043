/*
 * The configuration of the remote engine: which servers it may ask, in their order (docs/remote.md has the members).
 * What is wrong is told with the path of the member. Read once, before the sandbox and the first thread; read-only
 * afterwards.
 */
#ifndef FM_ENGINE_REMOTE_CONFIG_H
#define FM_ENGINE_REMOTE_CONFIG_H

#include "base/error.h"
#include "engine/kit/kit.h"
#include "engine/remote/key.h"

#include <stdbool.h>

struct json_object;

#define FM_ENDPOINTS_MAX      8u
#define FM_REMOTE_MODELS_MAX  256u /* of an endpoint, as in the answer to engine.available */
#define FM_REMOTE_HEADERS_MAX 16u
#define FM_CONNECT_MS         10000 /* the default of timeouts.connect_ms */
#define FM_REMOTE_TIMEOUT_MAX 86400000

enum fm_dialect_kind { FM_DIALECT_RESPONSES, FM_DIALECT_CHAT, FM_DIALECT_MESSAGES };

/* A model that an endpoint has. */
struct fm_remote_model {
    const char *id;         /* in requests of the host */
    const char *name;       /* in requests to the server */
    int64_t context_length; /* 0: not known */
};

struct fm_remote_header {
    const char *name;
    const char *value;
};

struct fm_endpoint {
    const char *url;   /* without a slash at its end; a query follows in `query` */
    char *base;        /* of it, what a path is added to; owned */
    const char *query; /* "?..." or "" */
    char *host;        /* with the port where the URL has one: what errors and logs call this endpoint; owned */
    int port;          /* to connect to; that of the proxy, where there is one */
    enum fm_dialect_kind dialect;
    char *key;              /* NULL: none; owned */
    const char *key_header; /* that has the key; "authorization" has "Bearer " before it. NULL: as the dialect has it */
    struct fm_remote_model *models; /* NULL: any */
    size_t model_count;
    struct fm_remote_header headers[FM_REMOTE_HEADERS_MAX]; /* of every request, besides */
    size_t header_count;
    struct json_object *body;   /* members of every request that the job does not set; NULL: none */
    char *ca_file;              /* absolute; NULL: the system's. owned */
    const char *proxy;          /* URL; NULL: none */
    const char *session_header; /* that tells the conversation; NULL: none */
    bool plaintext;             /* http is fine, wherever the server is */
    int64_t connect_ms;
    int64_t first_byte_ms; /* from the request to the beginning of the answer; 0: as long as it takes */
    int64_t silence_ms;    /* between two pieces of an answer; 0: likewise */
};

struct fm_remote_config {
    struct json_object *root; /* holds the strings */
    struct fm_endpoint endpoints[FM_ENDPOINTS_MAX];
    size_t endpoint_count;
    struct fm_secrets secrets; /* all that is to be masked */
};

/*
 * Reads `text` (`len` bytes) and the keys that it names. Relative paths begin at `folder`. On failure `config` holds
 * nothing, the code is FM_UNAVAILABLE, `error->reason` "NOT_CONFIGURED" and `error->param` the member's path. May block
 * on the disk.
 */
FM_MUST_USE enum fm_code fm_remote_config_read(struct fm_remote_config *config, const char *text, size_t len,
                                               const char *folder, struct fm_error *error);

/* Wipes the keys; harmless twice. */
void fm_remote_config_free(struct fm_remote_config *config);

/* The model of that id; NULL for an id of a model that it does not have. Where it has any model, `spare` becomes it. */
const struct fm_remote_model *fm_endpoint_model(const struct fm_endpoint *endpoint, const char *id,
                                                struct fm_remote_model *spare);

#endif
