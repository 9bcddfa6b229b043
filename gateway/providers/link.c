/*
 * Before each round of the loop (`prepare`), the client says what it waits for. When one of these things happens, the
 * client does its work. The loop waits on duplicates of the client's descriptors: the client may close its own ones at
 * any moment, and the same number may then be another file.
 */
#include "providers/link.h"
#include "base/log.h"
#include "protocol/line.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct watch {
    uv_poll_t poll;
    struct gw_link *link;
    struct watch *next;
    int client_fd; /* the client's own descriptor, of which `fd` is a duplicate */
    int fd;
    int events;
};

struct gw_link {
    struct fm_client *client;
    uv_loop_t *loop;
    uv_prepare_t prepare;
    uv_timer_t timer;
    uv_timer_t pulse;
    int64_t pulse_ms;
    bool asked;      /* the helper was asked for a sign of life that has not come yet */
    unsigned missed; /* how many signs of life in a row did not come */
    struct fm_lines log;
    struct watch *watches;
    pid_t pid; /* the process of the helper that the watches belong to */
    unsigned handles;
};

/* ---- the helper's log ---- */

static void relay(struct gw_link *link) {
    const char *line;
    size_t len;
    enum fm_line_event event;
    while ((event = fm_lines_next(&link->log, &line, &len)) != FM_LINE_NONE) {
        if (event == FM_LINE_READY && len > 0) {
            fm_log_relay("fm-proxy", line, len);
        }
    }
}

static void on_stderr(void *context, const char *bytes, size_t len) {
    struct gw_link *link = context;
    while (len > 0) {
        size_t piece = len < FM_LINE_FEED ? len : FM_LINE_FEED;
        (void)!fm_lines_feed(&link->log, bytes, piece); /* if memory runs out, a line is lost */
        relay(link);
        bytes += piece;
        len -= piece;
    }
}

static void on_state(void *context, enum fm_client_state state, const char *why) {
    struct gw_link *link = context;
    (void)state;
    if (why) { /* the helper has ended; an unfinished line ends with it */
        fm_lines_end(&link->log);
        relay(link);
        fm_lines_free(&link->log);
        fm_lines_init(&link->log);
    }
}

/* ---- the helper's pulse ---- */

static void on_alive(void *context, const struct fm_client_reply *reply) {
    struct gw_link *link = context;
    (void)reply;
    link->asked = false;
    link->missed = 0;
}

static void on_pulse(uv_timer_t *timer) {
    struct gw_link *link = timer->data;
    const struct fm_client_handler handler = {link, NULL, on_alive};
    struct fm_error error;
    char why[160];
    if (fm_client_state_get(link->client) != FM_CLIENT_READY) {
        return; /* the helper's start and end have their own time limits */
    }
    if (!link->asked) {
        link->asked = fm_client_call(link->client, "health.ping", NULL, 0, &handler, NULL, &error) == FM_OK;
    } else if (++link->missed >= GW_LINK_PULSES_MAX) {
        snprintf(why, sizeof why, "the helper hung for %d ms, and was ended; the next message starts another one",
                 (int)(link->pulse_ms * GW_LINK_PULSES_MAX));
        link->missed = 0;
        fm_client_kill(link->client, why);
    }
}

/* Asks for signs of life only while other calls are open, so that an idle gateway sleeps. */
static void keep_pulse(struct gw_link *link) {
    bool waits = fm_client_open_calls(link->client) > (link->asked ? 1 : 0);
    if (!waits) {
        uv_timer_stop(&link->pulse);
    } else if (!uv_is_active((uv_handle_t *)&link->pulse)) {
        link->missed = 0;
        uv_timer_start(&link->pulse, on_pulse, (uint64_t)link->pulse_ms, (uint64_t)link->pulse_ms);
    }
}

/* ---- what the client waits for ---- */

static void on_watch_closed(uv_handle_t *handle) {
    free(handle->data);
}

static void drop_watch(struct watch **at) {
    struct watch *watch = *at;
    *at = watch->next;
    uv_poll_stop(&watch->poll);
    close(watch->fd);
    uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
}

static void on_ready(uv_poll_t *poll, int status, int events) {
    struct watch *watch = poll->data;
    (void)events;
    if (status != 0) { /* the loop stops the watch when the other end of a pipe is gone */
        watch->events = 0;
    }
    fm_client_process(watch->link->client);
}

static void on_time(uv_timer_t *timer) {
    struct gw_link *link = timer->data;
    fm_client_process(link->client);
}

static void add_watch(struct gw_link *link, const struct fm_waited *wanted) {
    struct watch *watch = calloc(1, sizeof *watch);
    int fd = watch ? fcntl(wanted->fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd < 0 || uv_poll_init(link->loop, &watch->poll, fd) != 0) {
        if (fd >= 0) {
            close(fd);
        }
        free(watch);
        uv_timer_start(&link->timer, on_time, 50, 0); /* tries again after 50 ms */
        return;
    }
    watch->poll.data = watch;
    watch->link = link;
    watch->client_fd = wanted->fd;
    watch->fd = fd;
    watch->next = link->watches;
    link->watches = watch;
}

static void drop_unwanted(struct gw_link *link, const struct fm_waited *wanted, size_t count) {
    bool other = fm_client_pid(link->client) != link->pid;
    link->pid = fm_client_pid(link->client);
    for (struct watch **at = &link->watches; *at;) {
        size_t i = 0;
        while (i < count && wanted[i].fd != (*at)->client_fd) {
            i++;
        }
        if (other || i == count) {
            drop_watch(at);
        } else {
            at = &(*at)->next;
        }
    }
}

static struct watch *find_watch(const struct gw_link *link, int client_fd) {
    struct watch *watch = link->watches;
    while (watch && watch->client_fd != client_fd) {
        watch = watch->next;
    }
    return watch;
}

static void wait_for(struct gw_link *link, const struct fm_waited *wanted) {
    int events = (wanted->input ? UV_READABLE : 0) | (wanted->room ? UV_WRITABLE : 0);
    if (!find_watch(link, wanted->fd)) {
        add_watch(link, wanted);
    }
    struct watch *watch = find_watch(link, wanted->fd);
    if (watch && watch->events != events) {
        watch->events = events;
        uv_poll_start(&watch->poll, events, on_ready);
    }
}

static void on_prepare(uv_prepare_t *prepare) {
    struct gw_link *link = prepare->data;
    struct fm_waited wanted[FM_WAITED_MAX];
    size_t count = fm_client_fds(link->client, wanted);
    int64_t timeout_ms = fm_client_timeout(link->client);
    keep_pulse(link);
    drop_unwanted(link, wanted, count);
    if (timeout_ms >= 0) {
        uv_timer_start(&link->timer, on_time, (uint64_t)timeout_ms, 0);
    } else {
        uv_timer_stop(&link->timer);
    }
    for (size_t i = 0; i < count; i++) {
        if (wanted[i].fd >= 0) {
            wait_for(link, &wanted[i]);
        }
    }
}

/* ---- the link's life ---- */

struct gw_link *gw_link_new(uv_loop_t *loop, const struct fm_client_options *options, int64_t pulse_ms) {
    struct gw_link *link = calloc(1, sizeof *link);
    struct fm_client_options own = *options;
    own.context = link;
    own.on_state = on_state;
    own.on_stderr = on_stderr;
    struct fm_client *client = link ? fm_client_new(&own) : NULL;
    if (!client) {
        free(link);
        return NULL;
    }
    link->client = client;
    link->loop = loop;
    link->pulse_ms = pulse_ms ? pulse_ms : GW_LINK_PULSE_MS;
    fm_lines_init(&link->log);
    uv_prepare_init(loop, &link->prepare);
    uv_timer_init(loop, &link->timer);
    uv_timer_init(loop, &link->pulse);
    link->prepare.data = link->timer.data = link->pulse.data = link;
    link->handles = 3;
    uv_prepare_start(&link->prepare, on_prepare);
    uv_unref((uv_handle_t *)&link->prepare);
    uv_unref((uv_handle_t *)&link->pulse);
    return link;
}

struct fm_client *gw_link_client(struct gw_link *link) {
    return link->client;
}

void gw_link_stop(struct gw_link *link) {
    if (link) {
        fm_client_stop(link->client);
    }
}

static void on_closed(uv_handle_t *handle) {
    struct gw_link *link = handle->data;
    if (--link->handles == 0) {
        free(link);
    }
}

void gw_link_close(struct gw_link *link) {
    if (!link) {
        return;
    }
    while (link->watches) { /* the helper sees the end of its input only when our duplicates are closed too */
        drop_watch(&link->watches);
    }
    fm_client_free(link->client);
    relay(link);
    fm_lines_free(&link->log);
    uv_close((uv_handle_t *)&link->prepare, on_closed);
    uv_close((uv_handle_t *)&link->timer, on_closed);
    uv_close((uv_handle_t *)&link->pulse, on_closed);
}
