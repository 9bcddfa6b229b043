/* Starts fm-proxy and moves frames to it and from it, without blocking outside of host_turn. */
#include "host.h"
#include "base/clock.h"
#include "base/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OUT_MAX    (64u << 20)
#define READ_BYTES 65536

/* Time to read what the front had written before its end, if another process keeps the wire open. */
#define LAST_BYTES_MS 1000

const char *host_programs = "build/bin";
const char *host_store_bytes = "1048576";
const char *host_model;

static void die(const char *what) {
    perror(what);
    exit(2);
}

static void make_pair(enum wire wire, int *reads, int *writes) {
    int fds[2];
    int failed =
        wire == WIRE_PIPE ? fm_pipe(&fds[0], &fds[1]) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
    if (failed) {
        die("can't make a wire");
    }
    *reads = fds[0];
    *writes = fds[1];
}

static void become_front(int in, int out) {
    char path[4096];
    snprintf(path, sizeof path, "%s/fm-proxy", host_programs);
    signal(SIGPIPE, SIG_DFL);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", host_model ? host_model : "");
    *(strrchr(folder, '/') ? strrchr(folder, '/') : folder) = '\0';
    execl(path, path, "--store-bytes", host_store_bytes, "--no-kv-cache-files", "--engine",
          host_model ? "fake,llama" : "fake", host_model ? "--models-dir" : NULL, folder, (char *)NULL);
    perror(path);
    _exit(127);
}

void host_start(struct host *host, enum wire wire, void (*take)(void *context, const char *body, size_t len),
                void *context) {
    int in;
    int out;
    *host = (struct host){.may_read = -1, .take = take, .context = context};
    make_pair(wire, &in, &host->to);
    make_pair(wire, &host->from, &out);
    host->pid = fork();
    if (host->pid < 0) {
        die("fork");
    }
    if (host->pid == 0) {
        become_front(in, out);
    }
    close(in);
    close(out);
    fm_set_nonblocking(host->to);
    fm_set_nonblocking(host->from);
    fm_framer_init(&host->framer);
    fm_buf_init(&host->message, OUT_MAX);
    fm_buf_init(&host->out, OUT_MAX);
}

/* ---- sending ---- */

struct fm_json_writer host_begin(struct host *host, int64_t id, const char *method) {
    struct fm_rpc_id call = fm_rpc_id_int(id);
    fm_frame_begin(&host->message);
    return id ? fm_rpc_request_begin(&host->message, &call, method) : fm_rpc_notification_begin(&host->message, method);
}

void host_send(struct host *host) {
    const char *frame;
    size_t len;
    fm_rpc_end(&host->message);
    if (!fm_frame_end(&host->message, &frame, &len)) {
        die("a message");
    }
    host_send_raw(host, frame, len);
}

void host_call(struct host *host, int64_t id, const char *method) {
    struct fm_json_writer w = host_begin(host, id, method);
    fm_json_null(&w);
    host_send(host);
}

void host_send_raw(struct host *host, const char *bytes, size_t len) {
    fm_buf_append(&host->out, bytes, len);
    if (host->out.failed) {
        fprintf(stderr, "load: the front takes no input\n");
        exit(2);
    }
}

void host_mark(struct host *host) {
    host->mark = host->out.len;
}

bool host_sending(const struct host *host) {
    return host->out.len > host->out_sent && host->to >= 0 && !host->ended;
}

static void write_some(struct host *host) {
    int64_t begun_us = fm_now_us();
    ssize_t sent = write(host->to, host->out.data + host->out_sent, host->out.len - host->out_sent);
    if (sent > 0) {
        host->out_sent += (size_t)sent;
        if (host->mark && host->out_sent >= host->mark) {
            host->mark_us = begun_us;
            host->mark = 0;
        }
        if (host->out_sent == host->out.len) {
            fm_buf_reset(&host->out);
            host->out_sent = 0;
        }
    } else if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        host_hang_up(host); /* EPIPE: the front reads no more */
    }
}

void host_hang_up(struct host *host) {
    if (host->to >= 0) {
        close(host->to);
        host->to = -1;
    }
}

/* ---- receiving ---- */

static void take_bytes(struct host *host, const char *bytes, size_t len) {
    while (!host->fault) {
        const char *body;
        size_t body_len;
        switch (fm_framer_next(&host->framer, &bytes, &len, &body, &body_len)) {
        case FM_FRAME_MORE: return;
        case FM_FRAME_BODY: host->take(host->context, body, body_len); break;
        case FM_FRAME_BROKEN: host->fault = host->framer.fault; break;
        default: host->fault = "a frame beyond what a host may be sent"; break;
        }
    }
}

static void read_some(struct host *host) {
    static char bytes[READ_BYTES];
    size_t room = host->may_read < 0 || host->may_read > READ_BYTES ? READ_BYTES : (size_t)host->may_read;
    ssize_t got = read(host->from, bytes, room);
    if (got > 0) {
        host->may_read -= host->may_read < 0 ? 0 : got;
        host->bytes_in += (uint64_t)got;
        take_bytes(host, bytes, (size_t)got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        host->ended = true;
    }
}

void host_turn(struct host *host, int64_t wait_us) {
    struct pollfd fds[2] = {
        {.fd = host_sending(host) ? host->to : -1, .events = POLLOUT},
        {.fd = host->may_read == 0 || host->ended ? -1 : host->from, .events = POLLIN},
    };
    wait_us = wait_us < 0 ? 0 : wait_us;
    struct timespec wait = {.tv_sec = (time_t)(wait_us / 1000000), .tv_nsec = (long)(wait_us % 1000000) * 1000};
    if (ppoll(fds, 2, &wait, NULL) <= 0) {
        return;
    }
    if (fds[0].revents) {
        write_some(host);
    }
    if (fds[1].revents) {
        read_some(host);
    }
}

/* ---- the end ---- */

int host_end(struct host *host, int64_t wait_ms) {
    int64_t deadline = fm_now_ms() + wait_ms;
    int status = 0;
    pid_t gone = 0;
    host->may_read = -1;
    while (!(gone = waitpid(host->pid, &status, WNOHANG)) && fm_now_ms() < deadline) {
        if (host->ended) {
            fm_sleep_ms(1);
        } else {
            host_turn(host, 10000);
        }
    }
    if (!gone) {
        kill(host->pid, SIGKILL);
        waitpid(host->pid, &status, 0);
    }
    for (deadline = fm_now_ms() + LAST_BYTES_MS; !host->ended && fm_now_ms() < deadline;) {
        host_turn(host, 10000);
    }
    host_hang_up(host);
    close(host->from);
    fm_framer_free(&host->framer);
    fm_buf_free(&host->message);
    fm_buf_free(&host->out);
    if (!gone) {
        return HOST_STAYED;
    }
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

int64_t reply_id(const char *body, size_t len) {
    static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":";
    size_t at = sizeof head - 1;
    int64_t id = 0;
    if (len <= at || memcmp(body, head, at) != 0 || body[at] < '0' || body[at] > '9') {
        return -1;
    }
    for (; at < len && body[at] >= '0' && body[at] <= '9'; at++) {
        id = id * 10 + (body[at] - '0');
    }
    return id;
}
