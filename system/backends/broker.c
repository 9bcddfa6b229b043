/*
 * One loop for the browser's pipe and the clients' socket. A session belongs to the client that attached, and so do the
 * sessions that are attached in it. No other client can use them or gets their events. When a client disconnects, its
 * sessions are detached.
 */
#include "backends/broker.h"
#include "backends/broker_rules.h"
#include "base/clock.h"
#include "base/platform.h"
#include "base/private_files.h"
#include "protocol/cdp.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"
#include "protocol/json_writer.h"

#include <errno.h>
#include <json-c/json.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CLIENTS_MAX  16
#define SESSIONS_MAX 512
#define CALL_MAX     65536u /* bytes of a client's message: it holds a URL at most */
#define VALUES_MAX   1000u
#define TO_BROWSER   (4u << 20)
#define TO_CLIENT    (FM_CDP_MESSAGE_MAX + (1u << 20))
#define UNREAD_MAX   262144u /* bytes that a client has not read: above this it gets no events about changed tabs */
#define READ_SIZE    65536u
#define ID_SIZE      128
#define END_MS       5000 /* until a browser whose pipe was closed is killed */
#define CONNECTIONS  8
#define FIXED        6 /* polled descriptors besides those of clients */

struct client {
    int fd;          /* -1: free */
    unsigned number; /* identifies this connection: later connections in the same array element have other numbers */
    bool discovers;
    struct fm_buf in;
    struct fm_buf out;
};

/* A client's call that was passed on to the browser. */
struct passed {
    int id; /* 0: free */
    unsigned client;
    int64_t client_id;
    bool attaches;
    char session[ID_SIZE]; /* the session in which the call was made; "": none */
};

struct session {
    char id[ID_SIZE]; /* "": free */
    unsigned client;
    char outer[ID_SIZE]; /* the session in which this one was attached; they end together; "": none */
};

struct broker {
    struct fm_child child;
    int to_browser;   /* -1: closed */
    int from_browser; /* -1: the browser has ended */
    int listener;
    struct fm_buf out; /* waits to be written to the browser */
    struct fm_cdp cdp;
    struct client clients[CLIENTS_MAX];
    struct passed passed[FM_CDP_PENDING_MAX];
    struct session sessions[SESSIONS_MAX];
    unsigned last_number;
    bool answers; /* the browser has answered, so it can be used */
};

static const char *member_text(struct json_object *object, const char *name) {
    struct json_object *value = NULL;
    bool there = json_object_is_type(object, json_type_object) && json_object_object_get_ex(object, name, &value) &&
                 json_object_is_type(value, json_type_string);
    return there ? json_object_get_string(value) : "";
}

/* ---- sessions ---- */

static struct session *find_session(struct broker *broker, const char *id) {
    for (size_t i = 0; *id && i < SESSIONS_MAX; i++) {
        if (strcmp(broker->sessions[i].id, id) == 0) {
            return &broker->sessions[i];
        }
    }
    return NULL;
}

static void detach(struct broker *broker, const char *id) {
    char params[ID_SIZE + 32];
    if (strspn(id, "0123456789ABCDEFabcdef-") == strlen(id)) {
        snprintf(params, sizeof params, "{\"sessionId\":\"%s\"}", id);
        if (!fm_cdp_call(&broker->cdp, NULL, "Target.detachFromTarget", params, NULL)) {
            return; /* the browser reads nothing: the loop ends it */
        }
    }
}

/* Keeps the session. If there is no room for it, or its client has gone, it is detached at once. */
static void add_session(struct broker *broker, const char *id, unsigned client, const char *outer) {
    bool wanted = false;
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        wanted |= broker->clients[i].fd >= 0 && broker->clients[i].number == client;
    }
    for (size_t i = 0; wanted && strlen(id) < ID_SIZE && i < SESSIONS_MAX; i++) {
        if (!broker->sessions[i].id[0]) {
            broker->sessions[i] = (struct session){.client = client};
            snprintf(broker->sessions[i].id, ID_SIZE, "%s", id);
            snprintf(broker->sessions[i].outer, ID_SIZE, "%s", outer);
            return;
        }
    }
    if (strlen(id) < ID_SIZE) {
        detach(broker, id);
    }
}

/* ---- clients ---- */

static struct client *client_of(struct broker *broker, unsigned number) {
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        if (broker->clients[i].fd >= 0 && broker->clients[i].number == number) {
            return &broker->clients[i];
        }
    }
    return NULL;
}

static void answer_client(struct client *client, int64_t id, struct json_object *result, const char *reason) {
    struct fm_json_writer w = fm_json_writer_on(&client->out);
    fm_json_object_begin(&w);
    fm_json_key_int(&w, "id", id);
    if (reason) {
        fm_json_key(&w, "error");
        fm_json_object_begin(&w);
        fm_json_key_int(&w, "code", -32000);
        fm_json_key_str(&w, "message", reason);
        fm_json_object_end(&w);
    } else {
        fm_json_key(&w, "result");
        if (result) {
            fm_json_value(&w, result);
        } else {
            fm_json_raw(&w, "{}", 2);
        }
    }
    fm_json_object_end(&w);
    fm_buf_append_char(&client->out, '\0');
}

/* A session has ended: its open calls get an error, since the browser will not answer them. The sessions that came out
 * of it end too. */
static void forget_session(struct broker *broker, const char *id) {
    struct session *session = find_session(broker, id);
    char gone[ID_SIZE];
    if (!session) {
        return;
    }
    memcpy(gone, session->id, sizeof gone);
    session->id[0] = '\0';
    for (size_t i = 0; i < FM_CDP_PENDING_MAX; i++) {
        struct passed *passed = &broker->passed[i];
        struct client *client = client_of(broker, passed->client);
        if (passed->id && strcmp(passed->session, gone) == 0) {
            fm_cdp_forget(&broker->cdp, passed->id);
            passed->id = 0;
            if (client) {
                answer_client(client, passed->client_id, NULL, "the session has ended");
            }
        }
    }
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        if (broker->sessions[i].id[0] && strcmp(broker->sessions[i].outer, gone) == 0) {
            forget_session(broker, broker->sessions[i].id);
        }
    }
}

static void drop_client(struct broker *broker, struct client *client) {
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        struct session *session = &broker->sessions[i];
        if (session->id[0] && session->client == client->number) {
            if (!session->outer[0]) {
                detach(broker, session->id);
            }
            forget_session(broker, session->id);
        }
    }
    fm_close(client->fd);
    client->fd = -1;
    fm_buf_free(&client->in);
    fm_buf_free(&client->out);
}

static void tell(struct client *client, const char *session, const char *method, struct json_object *params) {
    struct fm_json_writer w = fm_json_writer_on(&client->out);
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "method", method);
    fm_json_key_value(&w, "params", params);
    if (*session) {
        fm_json_key_str(&w, "sessionId", session);
    }
    fm_json_object_end(&w);
    fm_buf_append_char(&client->out, '\0');
}

/* ---- from the browser ---- */

static void on_answer(void *context, struct json_object *result, const char *reason) {
    struct broker *broker = context;
    struct passed *passed = broker->passed;
    while (passed < broker->passed + FM_CDP_PENDING_MAX && passed->id != broker->cdp.answering) {
        passed++;
    }
    if (passed == broker->passed + FM_CDP_PENDING_MAX) {
        return;
    }
    struct client *client = client_of(broker, passed->client);
    passed->id = 0;
    if (passed->attaches && !reason) {
        add_session(broker, member_text(result, "sessionId"), passed->client, "");
    }
    if (client) {
        answer_client(client, passed->client_id, result, reason);
    }
}

static void on_event(void *context, const char *session, const char *method, struct json_object *params) {
    struct broker *broker = context;
    bool attached = strcmp(method, "Target.attachedToTarget") == 0;
    bool detached = strcmp(method, "Target.detachedFromTarget") == 0;
    struct session *outer = find_session(broker, session);
    struct session *about = find_session(broker, member_text(params, "sessionId"));
    struct client *owner = client_of(broker, outer ? outer->client : about ? about->client : 0);
    if (attached && outer) {
        add_session(broker, member_text(params, "sessionId"), outer->client, outer->id);
    }
    if (((attached && outer) || (detached && about)) && owner) {
        tell(owner, session, method, params);
    }
    if (detached && about) {
        forget_session(broker, about->id);
    }
    if (!*session && (strcmp(method, "Target.targetCreated") == 0 || strcmp(method, "Target.targetDestroyed") == 0 ||
                      strcmp(method, "Target.targetInfoChanged") == 0)) {
        for (size_t i = 0; i < CLIENTS_MAX; i++) {
            struct client *client = &broker->clients[i];
            if (client->fd >= 0 && client->discovers && client->out.len < UNREAD_MAX) {
                tell(client, "", method, params);
            }
        }
    }
}

static bool on_write(void *context, const char *data, size_t len) {
    struct broker *broker = context;
    if (broker->to_browser < 0 || broker->out.len + len > TO_BROWSER) {
        return false;
    }
    fm_buf_append(&broker->out, data, len);
    return !broker->out.failed;
}

/* ---- from clients ---- */

/* Passes a call on, or answers it. Returns why the call was refused; NULL: it was not refused. */
static const char *pass(struct broker *broker, struct client *client, int64_t id, struct json_object *root) {
    const char *method = member_text(root, "method");
    struct json_object *params = NULL;
    struct json_object *session = NULL;
    json_object_object_get_ex(root, "params", &params);
    bool in_session = json_object_object_get_ex(root, "sessionId", &session);
    const char *session_id = in_session ? member_text(root, "sessionId") : "";
    const struct session *own = find_session(broker, session_id);
    const char *reason = sy_broker_refuses(method, params, in_session);
    if (reason) {
        return reason;
    }
    const struct session *left = find_session(broker, member_text(params, "sessionId"));
    if ((in_session && (!own || own->client != client->number)) ||
        (strcmp(method, "Target.detachFromTarget") == 0 && (!left || left->client != client->number))) {
        return "there is no such session";
    }
    if (strcmp(method, "Target.setDiscoverTargets") == 0) {
        client->discovers = true;
        answer_client(client, id, NULL, NULL);
        return NULL;
    }
    struct passed *row = broker->passed;
    while (row < broker->passed + FM_CDP_PENDING_MAX && row->id) {
        row++;
    }
    const char *text = params ? json_object_to_json_string_ext(params, JSON_C_TO_STRING_PLAIN) : "{}";
    if (row == broker->passed + FM_CDP_PENDING_MAX || !fm_cdp_call(&broker->cdp, session_id, method, text, on_answer)) {
        return "the browser takes no more calls";
    }
    *row = (struct passed){broker->cdp.last_id, client->number, id, strcmp(method, "Target.attachToTarget") == 0, ""};
    snprintf(row->session, sizeof row->session, "%s", session_id);
    return NULL;
}

/* False: the text is not a message of the protocol. */
static bool take_call(struct broker *broker, struct client *client, const char *text, size_t len) {
    struct json_object *root = NULL;
    struct json_object *id = NULL;
    struct fm_buf scratch;
    size_t offset;
    fm_buf_init(&scratch, CALL_MAX);
    bool valid = !fm_json_check(text, len, VALUES_MAX, &offset) && fm_json_tree(text, len, &scratch, &root) &&
                 json_object_is_type(root, json_type_object) && json_object_object_get_ex(root, "id", &id) &&
                 json_object_is_type(id, json_type_int);
    if (valid) {
        const char *reason = pass(broker, client, json_object_get_int64(id), root);
        if (reason) {
            answer_client(client, json_object_get_int64(id), NULL, reason);
        }
    }
    fm_buf_free(&scratch);
    json_object_put(root);
    return valid;
}

static bool read_client(struct broker *broker, struct client *client) {
    char data[READ_SIZE];
    ssize_t len = fm_read(client->fd, data, sizeof data);
    if (len <= 0) {
        return len < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
    for (ssize_t i = 0; i < len; i++) {
        if (data[i] != '\0') {
            fm_buf_append_char(&client->in, data[i]);
        } else if (client->in.failed ||
                   !take_call(broker, client, client->in.data ? client->in.data : "", client->in.len)) {
            return false;
        } else {
            fm_buf_reset(&client->in);
        }
    }
    return !client->in.failed && !client->out.failed;
}

static bool flush(int fd, struct fm_buf *out) {
    while (out->len > 0) {
        ssize_t done = fm_write_quiet(fd, out->data, out->len);
        if (done < 0) {
            return errno == EAGAIN || errno == EWOULDBLOCK;
        }
        fm_buf_drop_front(out, (size_t)done);
    }
    return true;
}

static void accept_client(struct broker *broker) {
    struct ucred peer;
    socklen_t len = sizeof peer;
    struct client *client = broker->clients;
    int fd = accept4(broker->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return;
    }
    while (client < broker->clients + CLIENTS_MAX && client->fd >= 0) {
        client++;
    }
    if (client == broker->clients + CLIENTS_MAX || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 ||
        peer.uid != geteuid()) {
        fm_close(fd);
        return;
    }
    *client = (struct client){.fd = fd, .number = ++broker->last_number};
    fm_buf_init(&client->in, CALL_MAX);
    fm_buf_init(&client->out, TO_CLIENT);
}

/* ---- the loop ---- */

static bool read_browser(struct broker *broker) {
    char data[READ_SIZE];
    ssize_t len = fm_read(broker->from_browser, data, sizeof data);
    return len > 0 ? fm_cdp_feed(&broker->cdp, data, (size_t)len)
                   : len < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* Reads and drops the browser's output. */
static void drain(int *fd) {
    char data[READ_SIZE];
    ssize_t len = fm_read(*fd, data, sizeof data);
    if (len == 0 || (len < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) {
        fm_close(*fd);
        *fd = -1;
    }
}

/* One turn of the loop. False: the browser has ended, or should end. */
static bool turn(struct broker *broker, int end) {
    struct pollfd fds[FIXED + CLIENTS_MAX] = {
        {.fd = end, .events = POLLIN},
        {.fd = broker->listener, .events = POLLIN},
        {.fd = broker->from_browser, .events = POLLIN},
        {.fd = broker->out.len ? broker->to_browser : -1, .events = POLLOUT},
        {.fd = broker->child.from_child, .events = POLLIN},
        {.fd = broker->child.errors, .events = POLLIN},
    };
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        struct client *client = &broker->clients[i];
        fds[FIXED + i] = (struct pollfd){.fd = client->fd, .events = client->out.len ? POLLIN | POLLOUT : POLLIN};
    }
    if (poll(fds, FIXED + CLIENTS_MAX, -1) < 0) {
        return errno == EINTR;
    }
    if (fds[0].revents || (fds[2].revents && !read_browser(broker))) {
        return false;
    }
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        struct client *client = &broker->clients[i];
        bool fine =
            client->fd < 0 || !(fds[FIXED + i].revents & (POLLIN | POLLHUP | POLLERR)) || read_client(broker, client);
        if (client->fd >= 0 && (!fine || client->out.failed || !flush(client->fd, &client->out))) {
            drop_client(broker, client);
        }
    }
    if (fds[1].revents) {
        accept_client(broker);
    }
    if (fds[4].revents) {
        drain(&broker->child.from_child);
    }
    if (fds[5].revents) {
        drain(&broker->child.errors);
    }
    return flush(broker->to_browser, &broker->out);
}

static bool is_to_end(int end) {
    struct fm_waited waited = {.fd = end, .input = true};
    return fm_wait(&waited, 1, 0) > 0;
}

/* ---- the start ---- */

static enum fm_code listen_at(const char *path, int *listener, struct fm_error *error) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char folder[sizeof address.sun_path];
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path || strlen(path) >= sizeof address.sun_path) {
        return fm_fail(error, FM_INVALID_REQUEST, "the socket's path must be absolute and shorter than %zu bytes",
                       sizeof address.sun_path);
    }
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = fm_private_folder_open(folder);
    if (fd < 0) {
        return fm_fail(error, FM_UNAVAILABLE, "the socket's folder can't be used, it must be this user's alone: %s",
                       strerror(errno));
    }
    fm_close(fd);
    *listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*listener >= 0 && (connect(*listener, (const struct sockaddr *)&address, sizeof address) == 0 ||
                           errno == EAGAIN)) { /* a broker listens, and its queue of connections is full */
        return fm_fail(error, FM_UNAVAILABLE, "a browser of fm-system runs already, at this socket");
    }
    (void)unlink(path); /* a killed broker has left the socket */
    mode_t before = umask(0177);
    bool bound = *listener >= 0 && bind(*listener, (const struct sockaddr *)&address, sizeof address) == 0;
    umask(before);
    if (!bound || listen(*listener, CONNECTIONS) != 0) {
        return fm_fail(error, FM_UNAVAILABLE, "the socket can't be made: %s", strerror(errno));
    }
    return FM_OK;
}

/*
 * Finds a switch that would open another way to the browser, or would stop it from using the pipe; NULL: there is none.
 */
static const char *forbidden(const char *const *args) {
    static const char *const switches[] = {"remote-debugging-", "remote-allow-origins", "user-data-dir"};
    for (; *args; args++) {
        const char *name = *args + strspn(*args, "-");
        for (size_t i = 0; name != *args && i < sizeof switches / sizeof switches[0]; i++) {
            if (strncmp(name, switches[i], strlen(switches[i])) == 0) {
                return *args;
            }
        }
    }
    return NULL;
}

static int start_child(struct broker *broker, const struct sy_broker_options *options) {
    char profile[4096];
    size_t count = 0;
    int for_child[2] = {-1, -1};
    while (options->args[count]) {
        count++;
    }
    const char **args = calloc(count + 5, sizeof *args);
    int fault = args ? fm_pipe(&for_child[0], &broker->to_browser) : ENOMEM;
    fault = fault ? fault : fm_pipe(&broker->from_browser, &for_child[1]);
    if (!fault) {
        snprintf(profile, sizeof profile, "--user-data-dir=%s", options->profile);
        args[0] = "--remote-debugging-pipe";
        args[1] = profile;
        args[2] = "--no-first-run";
        args[3] = "--no-default-browser-check";
        memcpy(args + 4, options->args, count * sizeof *args);
        const struct fm_child_given given = {.fds = {for_child[0], for_child[1]}, .count = 2};
        fault = fm_child_start_args(&broker->child, options->browser, (char *const *)args, fm_process_environment(),
                                    &given);
    }
    for (size_t i = 0; i < 2; i++) {
        if (for_child[i] >= 0) {
            fm_close(for_child[i]);
        }
    }
    free(args);
    return fault;
}

static void on_first_answer(void *context, struct json_object *result, const char *reason) {
    struct broker *broker = context;
    (void)result;
    broker->answers |= reason == NULL;
}

static enum fm_code start_browser(struct broker *broker, const struct sy_broker_options *options,
                                  struct fm_error *error) {
    static const char discover[] = "{\"discover\":true,\"filter\":[{\"type\":\"tab\"}]}";
    int fault = start_child(broker, options);
    if (fault) {
        return fm_fail(error, FM_UNAVAILABLE, "the browser can't be started: %s", strerror(fault));
    }
    fm_close(broker->child.to_child);
    fm_set_nonblocking(broker->to_browser);
    fm_set_nonblocking(broker->from_browser);
    fm_set_nonblocking(broker->child.from_child);
    fm_set_nonblocking(broker->child.errors);
    fm_cdp_init(&broker->cdp, broker, on_write, on_event);
    fm_buf_init(&broker->out, TO_BROWSER);
    return fm_cdp_call(&broker->cdp, NULL, "Target.setDiscoverTargets", discover, on_first_answer)
               ? FM_OK
               : fm_fail_no_memory(error);
}

static void close_all(const int *fds, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0) {
            fm_close(fds[i]);
        }
    }
}

/* Closes the pipe, so that the browser saves its data and ends. A browser that hangs is killed. */
static void end_browser(struct broker *broker) {
    const int pipes[] = {broker->to_browser, broker->from_browser};
    int64_t until_ms = fm_now_ms() + END_MS;
    close_all(pipes, 2);
    while (!fm_child_has_ended(broker->child.pid) && fm_now_ms() < until_ms) {
        for (size_t i = 0; i < 2; i++) {
            int *fd = i ? &broker->child.errors : &broker->child.from_child;
            if (*fd >= 0) {
                drain(fd);
            }
        }
        fm_sleep_ms(10);
    }
    fm_child_kill(broker->child.pid);
    (void)fm_child_reap(broker->child.pid);
    const int fds[] = {broker->child.from_child, broker->child.errors, broker->child.ended};
    close_all(fds, 3);
}

enum fm_code sy_broker_run(const struct sy_broker_options *options, void (*ready)(const char *socket),
                           struct fm_error *error) {
    const char *wrong = forbidden(options->args);
    if (wrong) {
        return fm_fail(error, FM_INVALID_REQUEST, "the browser gets no %.100s here; the profile is --profile", wrong);
    }
    struct broker *broker = calloc(1, sizeof *broker);
    if (!broker) {
        return fm_fail_no_memory(error);
    }
    broker->to_browser = broker->from_browser = broker->listener = -1;
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        broker->clients[i].fd = -1;
    }
    enum fm_code code = listen_at(options->socket, &broker->listener, error);
    bool listens = code == FM_OK;
    code = code ? code : start_browser(broker, options, error);
    bool used = false;
    while (code == FM_OK && turn(broker, options->end)) {
        if (broker->answers && !used) {
            used = true;
            ready(options->socket);
        }
    }
    if (code == FM_OK && !used && !is_to_end(options->end)) {
        code = fm_fail(error, FM_UNAVAILABLE,
                       "the browser ended before it could be used: another one may run with this profile, or it wants a "
                       "switch after -- such as --no-sandbox");
    }
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        if (broker->clients[i].fd >= 0) {
            drop_client(broker, &broker->clients[i]);
        }
    }
    if (listens) {
        (void)unlink(options->socket);
    }
    if (broker->child.pid > 0) {
        end_browser(broker);
        fm_cdp_free(&broker->cdp);
        fm_buf_free(&broker->out);
    } else {
        const int pipes[] = {broker->to_browser, broker->from_browser};
        close_all(pipes, 2);
    }
    if (broker->listener >= 0) {
        fm_close(broker->listener);
    }
    free(broker);
    return code;
}
