/*
 * The configuration of the remote engine: which servers it may ask, and in which order (docs/remote.md has the
 * members). An error names the path of the wrong member. The configuration is read once, before the sandbox and the
 * first thread. It does not change afterwards.
 */
#ifndef FM_ENGINE_REMOTE_CONFIG_H
#define FM_ENGINE_REMOTE_CONFIG_H

#include "base/error.h"
#include "engine/kit/kit.h"
#include "engine/remote/key.h"

#include <stdbool.h>

struct json_object;

#define FM_ENDPOINTS_MAX      8u
#define FM_REMOTE_MODELS_MAX  256u /* models of one endpoint; the answer to engine.available has the same maximum */
#define FM_REMOTE_HEADERS_MAX 16u
#define FM_CONNECT_MS         10000 /* the default of timeouts.connect_ms */
#define FM_REMOTE_TIMEOUT_MAX 86400000

enum fm_dialect_kind { FM_DIALECT_RESPONSES, FM_DIALECT_CHAT, FM_DIALECT_MESSAGES };

/* A model that an endpoint has. */
struct fm_remote_model {
    const char *id;         /* the model's name in the host's requests */
    const char *name;       /* the model's name in requests to the server */
    int64_t context_length; /* 0: not known */
};

struct fm_remote_header {
    const char *name;
    const char *value;
};

struct fm_endpoint {
    const char *url;   /* without a slash at its end; a query follows in `query` */
    char *base;        /* the URL without the query, to which a path is added; owned */
    const char *query; /* "?..." or "" */
    char *host;        /* the host, with the port if the URL has one; errors and logs name the endpoint by it; owned */
    int port;          /* the port to connect to: the proxy's if there is a proxy */
    enum fm_dialect_kind dialect;
    char *key;              /* NULL: none; owned */
    const char *key_header; /* the header for the key; "authorization" adds "Bearer ". NULL: the dialect's default */
    struct fm_remote_model *models; /* NULL: any */
    size_t model_count;
    struct fm_remote_header headers[FM_REMOTE_HEADERS_MAX]; /* more headers for every request */
    size_t header_count;
    struct json_object *body;   /* members to add to every request if the job does not set them; NULL: none */
    char *ca_file;              /* absolute path; NULL: the system's. owned */
    const char *proxy;          /* the proxy's URL; NULL: no proxy */
    const char *session_header; /* the header that identifies the conversation; NULL: none */
    bool plaintext;             /* http is allowed, even if the server is on another machine */
    int64_t connect_ms;
    int64_t first_byte_ms; /* from the request to the beginning of the answer; 0: no limit */
    int64_t silence_ms;    /* between two pieces of an answer; 0: no limit */
};

struct fm_remote_config {
    struct json_object *root; /* the JSON tree that holds the strings */
    struct fm_endpoint endpoints[FM_ENDPOINTS_MAX];
    size_t endpoint_count;
    struct fm_secrets secrets; /* everything that must be masked */
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

/*
 * Finds the model with that id. NULL: the endpoint does not have it. If the endpoint takes any model, `spare` is filled
 * and returned.
 */
const struct fm_remote_model *fm_endpoint_model(const struct fm_endpoint *endpoint, const char *id,
                                                struct fm_remote_model *spare);

#endif
