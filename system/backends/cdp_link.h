/*
 * The connection to a browser: finds a browser, and carries the messages of CDP both ways. On the broker's Unix socket,
 * the messages are sent as they are. On a browser's port, they are a WebSocket's text messages. One thread; nothing
 * here waits longer than the caller says.
 */
#ifndef SY_CDP_LINK_H
#define SY_CDP_LINK_H

#include "backends/cdp.h"
#include "protocol/cdp.h"

struct sy_ws;

struct sy_link {
    int fd;            /* -1: there is none */
    struct sy_ws *ws;  /* NULL: the messages come as they are */
    struct fm_cdp cdp; /* meaningful while fd is not -1 */
    void *context;     /* for the functions below */
    void (*event)(void *context, const char *session, const char *method, struct json_object *params);
};

/* The default path of the broker's socket. False: no folder for it is known, or the path is too long. */
FM_MUST_USE bool sy_cdp_socket_path(char *path, size_t size);

/*
 * Connects to the first browser that can be reached. FM_UNAVAILABLE: there is none. The caller has set `context` and
 * `event` of the link. Functions that take answers get the link as their context.
 */
FM_MUST_USE enum fm_code sy_link_open(struct sy_link *link, const struct sy_cdp_places *places, struct fm_error *error);

/*
 * Waits for input until `until_ms`, and handles what has arrived. False: the browser is gone, or sent an invalid
 * message.
 */
FM_MUST_USE bool sy_link_pump(struct sy_link *link, int64_t until_ms);

/* Closes the link if it is open; no more answers come. */
void sy_link_close(struct sy_link *link);

#endif
