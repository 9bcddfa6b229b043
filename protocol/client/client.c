/* A client from fm_client_new to fm_client_free: its options, the descriptors and times for the host's loop, and the
 * functions that do the waiting. */
#include "protocol/client/client.h"
#include "base/clock.h"
#include "base/secret.h"
#include "base/variables.h"
#include "protocol/client/internal.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/* How often the client checks whether the helper has ended, in ms. Used if the system has no descriptor for this. */
#define LOOK_MS 50

/* Room in `out` beyond the host's `queue_bytes`, for cancels (calls.c). */
#define QUEUE_RESERVE 65536u

/* ---- options ---- */

/*
 * The variables of the host's environment that the helper gets: names, or prefixes that end with '_'. The npm package
 * passes on the same variables.
 */
static const char *const allowed[] = {
    "FM_",
    "PATH",
    "HOME",
    "TMPDIR",
    "TEMP",
    "TMP",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "APPDATA",
    "GGML_VK_VISIBLE_DEVICES",
    "COMSPEC",
    "PATHEXT",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "USERPROFILE",
    "PROCESSOR_ARCHITECTURE",
    "WINDIR",
    "VK_ICD_FILENAMES",
    "VK_DRIVER_FILES",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
#ifdef FM_SANITIZE
    "ASAN_OPTIONS",
    "UBSAN_OPTIONS",
    "TSAN_OPTIONS",
    "LSAN_OPTIONS",
#endif
};

static bool is_allowed(const char *entry) {
    return fm_variable_is_in(allowed, sizeof allowed / sizeof allowed[0], entry);
}

static size_t count_of(const char *const *list) {
    size_t count = 0;
    while (list && list[count]) {
        count++;
    }
    return count;
}

/* Whether `list` has a variable with the same name as `entry`. */
static bool has_name(const char *const *list, const char *entry) {
    size_t len = strcspn(entry, "=") + 1;
    for (size_t i = 0; list && list[i]; i++) {
        if (strncmp(list[i], entry, len) == 0) {
            return true;
        }
    }
    return false;
}

static void free_list(char **list) {
    for (size_t i = 0; list && list[i]; i++) {
        fm_secret_free(list[i]);
    }
    free(list);
}

/* Adds a copy of an entry. Arguments and variables may have secret keys, so the copy is kept like a secret. */
static bool add_copy(char **list, size_t *count, const char *text) {
    list[*count] = fm_secret_copy(text, strlen(text));
    return list[(*count)++];
}

/* The entries of `first` that may be passed on and are not in `second`, then those of `second`. NULL: out of memory. */
static char **copy_lists(const char *const *first, const char *const *second) {
    size_t count = 0;
    char **list = calloc(count_of(first) + count_of(second) + 1, sizeof *list);
    bool ok = list;
    for (size_t i = 0; ok && first && first[i]; i++) {
        ok = !is_allowed(first[i]) || has_name(second, first[i]) || add_copy(list, &count, first[i]);
    }
    for (size_t i = 0; ok && second && second[i]; i++) {
        ok = add_copy(list, &count, second[i]);
    }
    if (!ok) {
        free_list(list);
    }
    return ok ? list : NULL;
}

struct fm_client *fm_client_new(const struct fm_client_options *options) {
    struct fm_client *client = calloc(1, sizeof *client);
    if (!client) {
        return NULL;
    }
    client->options = *options;
    client->options.queue_bytes = options->queue_bytes ? options->queue_bytes : FM_CLIENT_QUEUE_BYTES;
    client->options.handshake_ms = options->handshake_ms ? options->handshake_ms : FM_CLIENT_HANDSHAKE_MS;
    client->child = (struct fm_child){.to_child = -1, .from_child = -1, .errors = -1, .ended = -1};
    fm_client_detach(client);
    fm_buf_init(&client->out, 2 * client->options.queue_bytes + QUEUE_RESERVE);
    fm_buf_init(&client->frame, FM_FRAME_BODY_MAX + FM_FRAME_HEADER_MAX);
    client->path = strdup(options->path);
    client->arguments = copy_lists(NULL, options->arguments);
    client->environment = copy_lists((const char *const *)fm_process_environment(), options->environment);
    if (!client->path || !client->arguments || !client->environment) {
        fm_client_free(client);
        return NULL;
    }
    return client;
}

void fm_client_free(struct fm_client *client) {
    if (!client) {
        return;
    }
    struct fm_error error = {.code = FM_OK};
    client->closing = true;
    client->options.on_state = NULL;
    fm_fail(&error, FM_CANCELLED, "the client was closed");
    fm_client_settle_list(fm_client_detach(client), &error);
    fm_client_stop(client);
    while (client->state != FM_CLIENT_IDLE) {
        fm_client_wait(client, -1);
    }
    fm_buf_free(&client->out);
    fm_buf_free(&client->frame);
    free(client->path);
    free_list(client->arguments);
    free_list(client->environment);
    free(client);
}

/* ---- what the host asks and wants ---- */

enum fm_client_state fm_client_state_get(const struct fm_client *client) {
    return client->state;
}

size_t fm_client_open_calls(const struct fm_client *client) {
    return client->call_count;
}

pid_t fm_client_pid(const struct fm_client *client) {
    return client->child.pid;
}

void fm_client_stop(struct fm_client *client) {
    if (client->state != FM_CLIENT_IDLE) {
        client->stopping = true;
        fm_client_begin_end(client);
    }
}

void fm_client_kill(struct fm_client *client, const char *why) {
    if (client->state != FM_CLIENT_IDLE) {
        fm_client_set_fault(client, "%s", why[0] ? why : "the helper was killed");
    }
}

/* ---- the loop ---- */

size_t fm_client_fds(const struct fm_client *client, struct fm_waited fds[FM_WAITED_MAX]) {
    const struct fm_waited all[] = {
        {.fd = client->child.from_child, .input = true},
        {.fd = fm_client_sendable(client) ? client->child.to_child : -1, .room = true},
        {.fd = client->child.errors, .input = true},
        {.fd = client->child.ended, .input = true},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].fd >= 0) {
            fds[count++] = all[i];
        }
    }
    return count;
}

int64_t fm_client_timeout(const struct fm_client *client) {
    int64_t ms = -1;
    if (client->state == FM_CLIENT_IDLE) {
        return -1;
    }
    if (client->fault[0]) {
        return 0;
    }
    if (client->state != FM_CLIENT_READY) {
        int64_t left = client->deadline_ms - fm_now_ms();
        ms = left > 0 ? left : 0;
    }
    if (client->state == FM_CLIENT_ENDING && client->child.to_child >= 0 && !fm_client_sendable(client)) {
        return 0; /* so that its input is closed */
    }
    return client->child.ended < 0 && (ms < 0 || ms > LOOK_MS) ? LOOK_MS : ms;
}

void fm_client_process(struct fm_client *client) {
    if (client->processing) {
        return; /* a callback called it, which client.h forbids */
    }
    client->processing = true;
    if (!client->fault[0]) {
        fm_client_transfer(client);
    }
    fm_client_advance(client);
    client->processing = false;
}

bool fm_client_wait(struct fm_client *client, int64_t ms) {
    struct fm_waited fds[FM_WAITED_MAX];
    if (client->state == FM_CLIENT_IDLE) {
        return false;
    }
    size_t count = fm_client_fds(client, fds);
    int64_t due = fm_client_timeout(client);
    bool due_first = due >= 0 && (ms < 0 || due <= ms);
    int ready = fm_wait(fds, count, (int)(due_first ? due : ms));
    fm_client_process(client);
    return ready > 0 || due_first;
}

/* ---- one call from beginning to end ---- */

struct asked {
    const struct fm_client_handler *handler;
    struct json_object *result;
    struct fm_error error;
    enum fm_code code;
    bool settled;
};

static void pass_event(void *context, const char *method, struct json_object *body) {
    const struct asked *asked = context;
    asked->handler->event(asked->handler->context, method, body);
}

static void note_answer(void *context, const struct fm_client_reply *reply) {
    struct asked *asked = context;
    asked->settled = true;
    asked->code = reply->code;
    asked->result = json_object_get(reply->result);
    if (reply->error) {
        asked->error = *reply->error;
    }
}

/* Works until the call has settled, or until fm_now_ms() is `end_ms`; below 0: without a limit. */
static void wait_for(struct fm_client *client, const struct asked *asked, int64_t end_ms) {
    while (!asked->settled) {
        int64_t left = end_ms - fm_now_ms();
        if (end_ms >= 0 && left <= 0) {
            return;
        }
        fm_client_wait(client, end_ms < 0 ? -1 : left);
    }
}

enum fm_code fm_client_ask(struct fm_client *client, const char *method, const char *params, size_t len,
                           const struct fm_client_handler *handler, int64_t ms, struct json_object **result,
                           struct fm_error *error) {
    struct asked asked = {.handler = handler};
    const struct fm_client_handler ours = {&asked, handler && handler->event ? pass_event : NULL, note_answer};
    int64_t id = 0;
    if (result) {
        *result = NULL;
    }
    if (client->processing) {
        return fm_fail(error, FM_INTERNAL, "fm_client_ask can't be called from a callback");
    }
    enum fm_code code = fm_client_call(client, method, params, len, &ours, &id, error);
    if (code != FM_OK) {
        return code;
    }
    wait_for(client, &asked, ms > 0 ? fm_now_ms() + ms : -1);
    bool late = !asked.settled;
    if (late) {
        fm_client_cancel(client, id);
        wait_for(client, &asked, fm_now_ms() + FM_CLIENT_END_MS);
    }
    if (!asked.settled) {
        fm_client_kill(client, "the helper did not answer a cancel, and was killed");
        wait_for(client, &asked, -1);
    }
    if (result) {
        *result = asked.result;
    } else {
        json_object_put(asked.result);
    }
    if (late && asked.code == FM_CANCELLED) {
        fm_fail(error, FM_TIMEOUT, "%s was not answered within %lld ms, and was cancelled", method, (long long)ms);
        error->limit = "total";
        error->limit_ms = ms;
        return FM_TIMEOUT;
    }
    if (asked.code != FM_OK) {
        *error = asked.error;
    }
    return asked.code;
}
