/*
 * The table of methods. Each has a row with its parameters, which are checked before a handler gets them. To add a
 * method, add a value to enum gw_method, a row to methods.c, and a field to struct gw_params for each new parameter.
 * Then set its handler with gw_app_set. Pure.
 */
#ifndef GW_RPC_METHODS_H
#define GW_RPC_METHODS_H

#include "rpc/frame.h"

#include <stdint.h>

enum gw_method {
    GW_HEALTH_CHECK,
    GW_AGENTS_LIST,
    GW_SESSIONS_CREATE,
    GW_SESSIONS_LIST,
    GW_SESSIONS_GET,
    GW_CHAT_SEND,
    GW_CHAT_HISTORY,
    GW_CHAT_ABORT,
    GW_EXEC_APPROVE,
    GW_EXEC_DENY,
    GW_SESSIONS_SUBSCRIBE,
    GW_SESSIONS_SEARCH,
    GW_SESSIONS_RENAME,
    GW_SESSIONS_DELETE,
    GW_BLOBS_GET,
    GW_METHOD_COUNT,
};

#define GW_MESSAGE_MAX     (1u << 20) /* bytes of a message of chat.send */
#define GW_REASON_MAX      2000u      /* bytes of the reason of a denial */
#define GW_NAME_MAX        64u        /* bytes of an agentId, runId or approvalId */
#define GW_SESSION_KEY_LEN 32u
#define GW_HISTORY_MAX     10000
#define GW_SEARCH_MAX      200              /* results of sessions.search */
#define GW_QUERY_MAX       1000u            /* bytes */
#define GW_NEW_TITLE_MAX   800u             /* bytes: 200 characters */
#define GW_SEQ_MAX         9007199254740991 /* 2^53 - 1: the greatest integer of a page (ECMA-262, 21.1.2.6) */

/* A string; NULL: the caller did not send it. It has no NUL before its end, except a message, whose length is `len`. */
struct gw_text {
    const char *text;
    size_t len;
};

/* The parameters of any method; parameters that the method's row lacks are NULL and 0. Valid while the handler runs. */
struct gw_params {
    struct gw_text agent_id;
    struct gw_text session_key; /* 32 digits of lower-case hexadecimal */
    struct gw_text message;
    struct gw_text run_id;
    struct gw_text approval_id;
    struct gw_text reason;
    struct gw_text request_key; /* as a sessionKey */
    struct gw_text query;
    struct gw_text title;
    struct gw_text blob_id;
    int64_t limit;     /* 0: the caller did not send it */
    int64_t after_seq; /* 0: the caller did not send it */
    bool remember;
};

enum gw_param_kind {
    GW_PARAM_NAME, /* 1 to `max` bytes without control characters */
    GW_PARAM_KEY,  /* a sessionKey: it may become the name of a file */
    GW_PARAM_TEXT, /* up to `max` bytes of any text; at least 1 if it is required */
    GW_PARAM_INT,  /* 1 to `max` */
    GW_PARAM_SEQ,  /* 0 to `max` */
    GW_PARAM_BOOL,
};

struct gw_param {
    const char *name;
    enum gw_param_kind kind;
    bool required;
    int64_t max;
    size_t offset; /* of the value in struct gw_params */
};

struct gw_row {
    const char *name;
    bool before_auth; /* answered on a socket that is not logged in */
    size_t param_count;
    const struct gw_param *params;
};

/* By enum gw_method. */
extern const struct gw_row gw_rows[GW_METHOD_COUNT];

/* Finds the method of that name; GW_METHOD_COUNT: no method has that name. */
enum gw_method gw_method_find(const char *name, size_t len);

/*
 * Checks `values` (NULL: none were sent) against the row and fills `params`. GW_INVALID_PARAMS: `fault` has the
 * parameter's name and what it must be. Values point into `values`.
 */
FM_MUST_USE enum gw_code gw_params_read(const struct gw_row *row, struct json_object *values, struct gw_params *params,
                                        char *fault, size_t size);

#endif
