/*
 * The life of a helper: start, handshake, bytes in and out, end, and the pause before the next start. Every helper ends
 * in end_helper: it reaps the process first and then settles all of its calls, so a callback can start the next helper.
 */
#include "protocol/client/internal.h"
#include "base/clock.h"
#include "protocol/version.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CHUNK      65536u /* bytes of a read */
#define READS      4      /* the most reads in each fm_client_process, so that the host does not wait long */
#define WRITES     16
/* the most reads of an ended helper's output: another process may still write into its pipe */
#define LAST_READS 64
#define QUEUE_KEEP 1048576 /* above this size, the memory of an empty queue is freed */

static void set_state(struct fm_client *client, enum fm_client_state state, const char *why) {
    client->state = state;
    if (client->options.on_state) {
        client->options.on_state(client->options.context, state, why);
    }
}

void fm_client_set_fault(struct fm_client *client, const char *fmt, ...) {
    if (!client->fault[0]) {
        va_list args;
        va_start(args, fmt);
        vsnprintf(client->fault, sizeof client->fault, fmt, args);
        va_end(args);
    }
}

static void close_fd(int *fd) {
    if (*fd >= 0) {
        fm_close(*fd);
        *fd = -1;
    }
}

/* ---- the queue ---- */

static void forget_sent(struct fm_client *client) {
    client->hello -= client->hello < client->sent ? client->hello : client->sent;
    fm_buf_drop_front(&client->out, client->sent);
    client->sent = 0;
    if (client->out.len == 0 && client->out.cap > QUEUE_KEEP) {
        fm_buf_free(&client->out);
    }
}

enum fm_code fm_client_enqueue(struct fm_client *client, size_t limit, struct fm_error *error) {
    const char *frame;
    size_t len;
    if (!fm_frame_end(&client->frame, &frame, &len)) {
        return fm_fail_no_memory(error);
    }
    size_t waiting = client->out.len - client->sent;
    if (len > limit || waiting > limit - len) {
        return fm_fail(error, FM_OVERLOADED,
                       "the helper has not read %zu bytes yet, and %zu more would be above the queue's %zu; try again "
                       "when it has",
                       waiting, len, limit);
    }
    if (client->sent > waiting || client->out.len + len > client->out.max) {
        forget_sent(client);
    }
    fm_buf_append(&client->out, frame, len);
    if (client->out.failed) {
        client->out.failed = false; /* the frames that wait are still complete */
        return fm_fail_no_memory(error);
    }
    return FM_OK;
}

size_t fm_client_sendable(const struct fm_client *client) {
    size_t end = client->state == FM_CLIENT_STARTING ? client->hello : client->out.len;
    return end > client->sent ? end - client->sent : 0;
}

/* ---- the start ---- */

static enum fm_code send_hello(struct fm_client *client, struct fm_error *error) {
    const struct fm_rpc_id id = fm_rpc_id_int(++client->last_id);
    fm_frame_begin(&client->frame);
    struct fm_json_writer w = fm_rpc_request_begin(&client->frame, &id, "health.ping");
    fm_json_raw(&w, "{}", 2);
    fm_rpc_end(&client->frame);
    enum fm_code code = fm_client_enqueue(client, client->options.queue_bytes, error);
    client->hello_id = client->last_id;
    client->hello = client->out.len;
    return code;
}

/* Counts one more death in a row, and sets the pause. */
static void count_death(struct fm_client *client) {
    int64_t now = fm_now_ms();
    bool was_healthy = client->ready_ms && now - client->ready_ms >= FM_CLIENT_HEALTHY_MS;
    client->deaths = was_healthy ? 1 : client->deaths + 1;
    int64_t pause = client->deaths < 2 ? 0 : FM_CLIENT_FIRST_PAUSE_MS;
    for (unsigned i = 2; i < client->deaths && pause < FM_CLIENT_LONGEST_PAUSE_MS; i++) {
        pause *= 2;
    }
    pause = pause < FM_CLIENT_LONGEST_PAUSE_MS ? pause : FM_CLIENT_LONGEST_PAUSE_MS;
    uint32_t chance;
    fm_random(&chance, sizeof chance); /* so that many hosts do not start in step */
    client->pause_end_ms = now + pause / 2 + (int64_t)(chance % (uint32_t)(pause / 2 + 1));
}

static enum fm_code spawn(struct fm_client *client, struct fm_error *error) {
    int failure = fm_child_start_args(&client->child, client->path, client->arguments, client->environment, NULL);
    if (failure) {
        client->child = (struct fm_child){.to_child = -1, .from_child = -1, .errors = -1, .ended = -1};
        client->ready_ms = 0;
        count_death(client);
        return fm_fail(error, FM_UNAVAILABLE, "the helper %s can't be started: %s", client->path, strerror(failure));
    }
    fm_set_nonblocking(client->child.to_child);
    fm_inbound_init(&client->inbound);
    client->ready_ms = 0;
    client->stopping = false;
    client->deadline_ms = fm_now_ms() + client->options.handshake_ms;
    return FM_OK;
}

enum fm_code fm_client_start(struct fm_client *client, struct fm_error *error) {
    int64_t now = fm_now_ms();
    if (client->closing) {
        return fm_fail(error, FM_UNAVAILABLE, "the client is being closed");
    }
    if (client->fault[0] || client->state == FM_CLIENT_ENDING) {
        fm_fail(error, FM_UNAVAILABLE, "the helper is ending; try again when it has ended");
        error->retry_ms = FM_CLIENT_FIRST_PAUSE_MS;
        return FM_UNAVAILABLE;
    }
    if (client->state != FM_CLIENT_IDLE) {
        return FM_OK;
    }
    if (now < client->pause_end_ms) {
        fm_fail(error, FM_UNAVAILABLE, "the helper died %u times in a row; the next one is started in %d ms",
                client->deaths, (int)(client->pause_end_ms - now));
        error->retry_ms = client->pause_end_ms - now;
        return FM_UNAVAILABLE;
    }
    enum fm_code code = spawn(client, error);
    if (code != FM_OK) {
        return code;
    }
    code = send_hello(client, error);
    if (code != FM_OK) {
        fm_client_set_fault(client, "%s", error->detail); /* fm_client_process then ends the helper */
    }
    set_state(client, FM_CLIENT_STARTING, NULL);
    return code;
}

void fm_client_welcome(struct fm_client *client, struct json_object *result) {
    struct json_object *value;
    bool has_version =
        json_object_object_get_ex(result, "protocol_version", &value) && json_object_is_type(value, json_type_int);
    int64_t version = has_version ? json_object_get_int64(value) : 0;
    client->hello_id = 0;
    if (version != FM_PROTOCOL_VERSION) {
        fm_client_set_fault(
            client,
            "the helper speaks version %d of the protocol, this client speaks version %d; take both from "
            "the same release",
            (int)version, FM_PROTOCOL_VERSION);
    } else if (client->state == FM_CLIENT_STARTING) {
        client->ready_ms = fm_now_ms();
        set_state(client, FM_CLIENT_READY, NULL);
    }
}

/* ---- the end ---- */

void fm_client_begin_end(struct fm_client *client) {
    if (client->state == FM_CLIENT_STARTING) { /* calls that wait for the handshake are never sent */
        client->out.len = client->hello;
    }
    if (client->state != FM_CLIENT_ENDING) {
        client->deadline_ms = fm_now_ms() + FM_CLIENT_END_MS;
        set_state(client, FM_CLIENT_ENDING, NULL);
    }
}

/* Kills what is left of the helper, reaps it and resets all state that belonged to it. Returns its status. */
static int bury(struct fm_client *client) {
    fm_child_kill(client->child.pid); /* the helper may be dead, but processes of its group may still run */
    int status = fm_child_reap(client->child.pid);
    close_fd(&client->child.to_child);
    close_fd(&client->child.from_child);
    close_fd(&client->child.errors);
    close_fd(&client->child.ended);
    client->child.pid = 0;
    fm_inbound_free(&client->inbound);
    fm_buf_free(&client->out);
    client->sent = client->hello = 0;
    client->hello_id = 0;
    client->fault[0] = '\0';
    return status;
}

static void end_helper(struct fm_client *client) {
    char why[sizeof client->fault];
    bool killed = client->fault[0];
    struct fm_error error = {.code = FM_OK};
    memcpy(why, client->fault, sizeof why);
    int status = bury(client);
    if (client->stopping) {
        snprintf(why, sizeof why, "the helper was stopped%s", killed ? ", and had to be killed" : "");
        client->deaths = 0;
        client->pause_end_ms = 0;
    } else {
        if (!killed && status < 0) {
            snprintf(why, sizeof why, "the helper died (signal %d)", -status);
        } else if (!killed) {
            snprintf(why, sizeof why, "the helper ended by itself (exit status %d)", status);
        }
        count_death(client);
    }
    struct fm_client_call_state *calls = fm_client_detach(client);
    fm_fail(&error, client->stopping ? FM_CANCELLED : FM_UNAVAILABLE, "%s", why);
    int64_t pause = client->pause_end_ms - fm_now_ms();
    error.retry_ms = pause > 0 ? pause : 0;
    set_state(client, FM_CLIENT_IDLE, why);
    fm_client_settle_list(calls, &error);
}

void fm_client_advance(struct fm_client *client) {
    bool late = (client->state == FM_CLIENT_STARTING || client->state == FM_CLIENT_ENDING) &&
                fm_now_ms() >= client->deadline_ms;
    if (late && client->state == FM_CLIENT_STARTING) {
        fm_client_set_fault(client, "the helper did not tell its version within %d ms, and was killed",
                            (int)client->options.handshake_ms);
    } else if (late) {
        fm_client_set_fault(client, "the helper did not end within %d ms, and was killed", FM_CLIENT_END_MS);
    }
    if (client->child.pid && client->fault[0]) {
        end_helper(client);
    }
}

/* ---- bytes ---- */

static void send_bytes(struct fm_client *client) {
    for (int i = 0; i < WRITES && client->child.to_child >= 0 && fm_client_sendable(client); i++) {
        ssize_t sent =
            fm_write_quiet(client->child.to_child, client->out.data + client->sent, fm_client_sendable(client));
        if (sent < 0 && errno == EAGAIN) {
            break;
        }
        if (sent < 0) { /* the helper reads no more */
            close_fd(&client->child.to_child);
            fm_client_begin_end(client);
            break;
        }
        client->sent += (size_t)sent;
    }
    if (client->sent && client->sent == client->out.len) {
        forget_sent(client);
    }
    if (client->state == FM_CLIENT_ENDING && !fm_client_sendable(client)) {
        close_fd(&client->child.to_child);
    }
}

static bool is_readable(int fd) {
    struct fm_waited waited = {.fd = fd, .input = true};
    return fd >= 0 && fm_wait(&waited, 1, 0) > 0;
}

static void read_messages(struct fm_client *client, int reads) {
    const struct fm_inbound_handler handler = {
        .context = client, .message = fm_client_take, .fault = fm_client_take_fault};
    char chunk[CHUNK];
    for (int i = 0; i < reads && !client->fault[0] && is_readable(client->child.from_child); i++) {
        ssize_t got = fm_read(client->child.from_child, chunk, sizeof chunk);
        if (got <= 0) {
            close_fd(&client->child.from_child);
            fm_client_begin_end(client);
            return;
        }
        const char *broken = fm_inbound_feed(&client->inbound, chunk, (size_t)got, &handler);
        if (broken) {
            fm_client_set_fault(client, "the helper sent something that is no frame: %s", broken);
        }
    }
}

static void read_errors(struct fm_client *client, int reads) {
    char chunk[4096];
    for (int i = 0; i < reads && is_readable(client->child.errors); i++) {
        ssize_t got = fm_read(client->child.errors, chunk, sizeof chunk);
        if (got <= 0) {
            close_fd(&client->child.errors);
        } else if (client->options.on_stderr) {
            client->options.on_stderr(client->options.context, chunk, (size_t)got);
        }
    }
}

void fm_client_transfer(struct fm_client *client) {
    if (!client->child.pid) {
        return;
    }
    /* Checks this before reading: if the helper has ended already, all its output can be read. */
    bool ended = client->child.ended >= 0 ? is_readable(client->child.ended) : fm_child_has_ended(client->child.pid);
    if (!ended) {
        send_bytes(client);
    }
    read_messages(client, ended ? LAST_READS : READS);
    read_errors(client, ended ? LAST_READS : READS);
    if (ended) {
        end_helper(client);
    } else {
        send_bytes(client); /* calls that were made in callbacks */
    }
}
