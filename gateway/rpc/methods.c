/* The rows of the methods. */
#include "rpc/methods.h"

#include <string.h>

#define AT(field)                      offsetof(struct gw_params, field)
#define ROW(name, before_auth, params) {name, before_auth, sizeof(params) / sizeof(params)[0], params}

#define AGENT_ID    {"agentId", GW_PARAM_NAME, false, GW_NAME_MAX, AT(agent_id)}
#define SESSION_KEY {"sessionKey", GW_PARAM_KEY, true, GW_SESSION_KEY_LEN, AT(session_key)}
#define RUN_ID      {"runId", GW_PARAM_NAME, true, GW_NAME_MAX, AT(run_id)}
#define APPROVAL_ID {"approvalId", GW_PARAM_NAME, true, GW_NAME_MAX, AT(approval_id)}

static const struct gw_param create[] = {AGENT_ID};
static const struct gw_param get[] = {SESSION_KEY};
static const struct gw_param send[] = {SESSION_KEY,
                                       {"message", GW_PARAM_TEXT, true, GW_MESSAGE_MAX, AT(message)},
                                       {"requestKey", GW_PARAM_KEY, false, GW_SESSION_KEY_LEN, AT(request_key)}};
static const struct gw_param history[] = {SESSION_KEY, {"limit", GW_PARAM_INT, false, GW_HISTORY_MAX, AT(limit)}};
static const struct gw_param abort_run[] = {RUN_ID};
static const struct gw_param approve[] = {APPROVAL_ID, {"remember", GW_PARAM_BOOL, false, 0, AT(remember)}};
static const struct gw_param deny[] = {APPROVAL_ID, {"reason", GW_PARAM_TEXT, false, GW_REASON_MAX, AT(reason)}};
static const struct gw_param subscribe[] = {SESSION_KEY, {"afterSeq", GW_PARAM_SEQ, false, GW_SEQ_MAX, AT(after_seq)}};
static const struct gw_param search[] = {{"query", GW_PARAM_NAME, true, GW_QUERY_MAX, AT(query)},
                                         {"limit", GW_PARAM_INT, false, GW_SEARCH_MAX, AT(limit)}};
static const struct gw_param rename_session[] = {SESSION_KEY,
                                                 {"title", GW_PARAM_NAME, true, GW_NEW_TITLE_MAX, AT(title)}};
static const struct gw_param delete_session[] = {SESSION_KEY};
static const struct gw_param blob[] = {{"blobId", GW_PARAM_NAME, true, GW_NAME_MAX, AT(blob_id)}};

const struct gw_row gw_rows[GW_METHOD_COUNT] = {
    [GW_HEALTH_CHECK] = {"health.check", true, 0, NULL},
    [GW_AGENTS_LIST] = {"agents.list", false, 0, NULL},
    [GW_SESSIONS_CREATE] = ROW("sessions.create", false, create),
    [GW_SESSIONS_LIST] = {"sessions.list", false, 0, NULL},
    [GW_SESSIONS_GET] = ROW("sessions.get", false, get),
    [GW_CHAT_SEND] = ROW("chat.send", false, send),
    [GW_CHAT_HISTORY] = ROW("chat.history", false, history),
    [GW_CHAT_ABORT] = ROW("chat.abort", false, abort_run),
    [GW_EXEC_APPROVE] = ROW("exec.approve", false, approve),
    [GW_EXEC_DENY] = ROW("exec.deny", false, deny),
    [GW_SESSIONS_SUBSCRIBE] = ROW("sessions.subscribe", false, subscribe),
    [GW_SESSIONS_SEARCH] = ROW("sessions.search", false, search),
    [GW_SESSIONS_RENAME] = ROW("sessions.rename", false, rename_session),
    [GW_SESSIONS_DELETE] = ROW("sessions.delete", false, delete_session),
    [GW_BLOBS_GET] = ROW("blobs.get", false, blob),
};

enum gw_method gw_method_find(const char *name, size_t len) {
    enum gw_method method = 0;
    while (method < GW_METHOD_COUNT &&
           (strlen(gw_rows[method].name) != len || memcmp(gw_rows[method].name, name, len) != 0)) {
        method++;
    }
    return method;
}
