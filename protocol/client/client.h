/*
 * A client of `fm-proxy` for hosts in C (protocol/client/README.md): it starts the helper, checks its version, sends
 * calls, hands out streams, and starts another helper after one has died.
 *
 * The host has the event loop. The client has no threads: it works only inside its functions, and never waits in them,
 * except where their comments say so. All functions of a client are called from one thread, the one that made it (on
 * Linux the helper is killed when the thread that started it ends). Two clients have nothing in common.
 *
 *     loop: fm_client_fds and fm_client_timeout say what to wait for;
 *           as soon as one of them is ready, fm_client_process does the work and calls back.
 *
 * A host without a loop calls fm_client_wait, or fm_client_ask for one answer.
 *
 * Calls settle exactly once: `settled` is called once for each call that fm_client_call took, whatever happens, and
 * nothing of the call comes after it. Callbacks come only from fm_client_process, fm_client_wait, fm_client_ask and
 * fm_client_free, so never from within fm_client_call; on_state comes from fm_client_start, fm_client_call and
 * fm_client_stop too. A callback may use every function except those four.
 *
 * A helper is started by the first call, or by fm_client_start. When it dies, its calls settle with FM_UNAVAILABLE: the
 * client never sends a call twice. The next call starts another helper; from the second death in a row on, the client
 * first pauses (FM_CLIENT_FIRST_PAUSE_MS, doubling). Calls during the pause are refused.
 */
#ifndef FM_PROTOCOL_CLIENT_CLIENT_H
#define FM_PROTOCOL_CLIENT_CLIENT_H

#include "base/compiler.h"
#include "base/error.h"
#include "base/platform.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FM_CLIENT_QUEUE_BYTES      33554432u /* default of `queue_bytes`: three of the longest frames */
#define FM_CLIENT_HANDSHAKE_MS     10000     /* default of `handshake_ms` */
#define FM_CLIENT_CALLS_MAX        256u /* open calls; the helper works on 64 requests at once (PROTOCOL.md, All limits) */
#define FM_CLIENT_FIRST_PAUSE_MS   100 /* after the second death in a row; each further death doubles it */
#define FM_CLIENT_LONGEST_PAUSE_MS 30000
#define FM_CLIENT_HEALTHY_MS       60000 /* a helper ready for this long was healthy: its death is a first one */
#define FM_CLIENT_END_MS           2500  /* until a helper that was asked to end is killed (PROTOCOL.md, Life: 2 s) */

struct fm_client;
struct json_object;

enum fm_client_state {
    FM_CLIENT_IDLE,     /* there is no helper; the next call starts one */
    FM_CLIENT_STARTING, /* its version is not known yet; calls wait in the queue */
    FM_CLIENT_READY,
    FM_CLIENT_ENDING, /* the helper was asked to end, or has closed its output; calls are refused */
};

/* A member that is NULL or 0 has its default. Everything is copied. */
struct fm_client_options {
    const char *path;             /* the path of fm-proxy; required. It is not looked up in PATH */
    const char *const *arguments; /* such as "--models-dir", "/models"; NULL-terminated */
    /*
     * NAME=VALUE each, NULL-terminated. The helper gets these, and the variables of the host's environment that are not
     * secret: FM_*, PATH, HOME and some more (the README has the list).
     */
    const char *const *environment;
    size_t queue_bytes;   /* bytes that may wait until the helper reads them */
    int64_t handshake_ms; /* a helper that has not reported its version this long after its start is killed */
    void *context;        /* for the two functions below */
    /* The state has changed. `why`: a sentence if a helper has ended; else NULL. */
    void (*on_state)(void *context, enum fm_client_state state, const char *why);
    /* What the helper writes to its stderr: lines of its log, in pieces of any size. NULL: the log is dropped. */
    void (*on_stderr)(void *context, const char *bytes, size_t len);
};

/* How a call ended. All pointers are valid only during the callback; json_object_get keeps the result. */
struct fm_client_reply {
    enum fm_code code; /* FM_OK, or what `error` says */
    /* The member `result` of the answer, also of a failed one: it may have a part of the output (PROTOCOL.md, Errors).
     * NULL: the call was not answered. */
    struct json_object *result;
    const struct fm_error *error; /* NULL with FM_OK */
};

/* The callbacks of a call. */
struct fm_client_handler {
    void *context;
    /*
     * A notification of a stream: `method` such as "responses.event"; `body` is the event or the chunk, borrowed. NULL:
     * notifications are dropped.
     */
    void (*event)(void *context, const char *method, struct json_object *body);
    /* The call has ended. Called exactly once. May be NULL. */
    void (*settled)(void *context, const struct fm_client_reply *reply);
};

/* Starts nothing. NULL: out of memory. The caller frees it by fm_client_free. */
FM_MUST_USE struct fm_client *fm_client_new(const struct fm_client_options *options);

/*
 * Settles all open calls with FM_CANCELLED, ends the helper and frees the client. Blocks until the helper is gone, for
 * FM_CLIENT_END_MS at most. A host that must not block first calls fm_client_stop, and then calls fm_client_process
 * until the state is FM_CLIENT_IDLE. Calls back, but does not call on_state. NULL: nothing happens.
 */
void fm_client_free(struct fm_client *client);

/*
 * Starts a helper unless there is one. FM_UNAVAILABLE: it can't be started (the error has the path and the reason), the
 * pause after a death is not over (`retry_ms` says how long it lasts), or the last helper is still ending. Blocks for
 * as long as the system needs to run a program.
 */
FM_MUST_USE enum fm_code fm_client_start(struct fm_client *client, struct fm_error *error);

/*
 * Sends a call, and starts a helper where there is none. `method` is a name of PROTOCOL.md, which is not escaped.
 * `params` is JSON text: an object, `len` bytes; NULL: {}. `handler` is copied; NULL: the answer is dropped. `*id` is
 * the call's id for fm_client_cancel, and for `request_id` in params of `responses.cancel`; NULL: not wanted.
 *
 * On failure nothing was sent, and nothing calls back: FM_INVALID_REQUEST (`params` is no JSON object, or more than a
 * frame may hold), FM_RATE_LIMITED (FM_CLIENT_CALLS_MAX), FM_OVERLOADED (the helper does not read: the queue is full),
 * FM_INTERNAL (out of memory), FM_UNAVAILABLE (as fm_client_start). Blocks only where fm_client_start does.
 */
FM_MUST_USE enum fm_code fm_client_call(struct fm_client *client, const char *method, const char *params, size_t len,
                                        const struct fm_client_handler *handler, int64_t *id, struct fm_error *error);

/*
 * Asks the helper to cancel a call. The call then settles with FM_CANCELLED, unless it had ended already. Events may
 * still come. False: no such call is open, or it was cancelled already.
 */
bool fm_client_cancel(struct fm_client *client, int64_t id);

/*
 * Closes the helper's input once it has read what is queued: the helper cancels its requests and ends. It is killed if
 * it takes longer than FM_CLIENT_END_MS. The calls settle. This does not count as a death.
 */
void fm_client_stop(struct fm_client *client);

/*
 * Ends the helper at once, for a host that finds that the helper hangs: the calls settle with FM_UNAVAILABLE and `why`,
 * a sentence that is copied. Counts as a death. Processes that the helper had started end by themselves, within 2 s.
 */
void fm_client_kill(struct fm_client *client, const char *why);

/* The client's state now. */
enum fm_client_state fm_client_state_get(const struct fm_client *client);

/* How many calls are open. */
size_t fm_client_open_calls(const struct fm_client *client);

/* The helper's process; 0: there is none. */
pid_t fm_client_pid(const struct fm_client *client);

/*
 * Fills `fds` with what to wait for, and returns how many. Call it again after each call of a function whose client is
 * not const: a helper may have ended or started meanwhile. The client still owns the descriptors. On Windows only
 * fm_wait understands them, and no other loop can use them: use fm_client_wait there, on a separate thread.
 */
size_t fm_client_fds(const struct fm_client *client, struct fm_waited fds[FM_WAITED_MAX]);

/*
 * The number of ms after which fm_client_process must be called even if nothing comes; -1: never. Call it as often as
 * fm_client_fds.
 */
int64_t fm_client_timeout(const struct fm_client *client);

/*
 * Reads and writes as much as is possible without waiting, and calls back. Each call does a bounded amount of work, so
 * that the host's other work does not wait long; while there is more to do, the descriptors stay ready.
 */
void fm_client_process(struct fm_client *client);

/* Waits until there is work, for `ms` at most (-1: without a limit), then does the work. Blocks. False: the time is
 * up. Without a helper it returns at once. */
bool fm_client_wait(struct fm_client *client, int64_t ms);

/*
 * One call from beginning to end, for hosts without a loop. Blocks until it settles. Callbacks of other calls come
 * meanwhile; `handler` (NULL: none) only gets the events: its `settled` is not called. The caller releases `*result` by
 * json_object_put, also on failure, where it may be NULL; `result` NULL: not wanted. After `ms` (0: without a limit)
 * the call is cancelled and FM_TIMEOUT returned. If the helper does not answer the cancel within FM_CLIENT_END_MS, it
 * is killed. Fails like fm_client_call, or with the call's own error.
 */
FM_MUST_USE enum fm_code fm_client_ask(struct fm_client *client, const char *method, const char *params, size_t len,
                                       const struct fm_client_handler *handler, int64_t ms, struct json_object **result,
                                       struct fm_error *error);

#endif
