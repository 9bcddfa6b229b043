/*
 * The connection to a browser: finds one, and carries the messages of CDP both ways. From the broker's Unix socket they
 * come as they are; from a browser's port as a WebSocket's text messages. One thread; nothing here waits longer than
 * the caller says.
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

/* The broker's socket, where nobody says where it is. False: no folder for it is known, or it is too long. */
FM_MUST_USE bool sy_cdp_socket_path(char *path, size_t size);

/*
 * Connects to the first browser that is there. FM_UNAVAILABLE: none is. `context` and `event` of the link are set;
 * answers get the link as their context.
 */
FM_MUST_USE enum fm_code sy_link_open(struct sy_link *link, const struct sy_cdp_places *places, struct fm_error *error);

/* Takes what has arrived, waiting for something until `until_ms`. False: the browser is gone, or sent garbage. */
FM_MUST_USE bool sy_link_pump(struct sy_link *link, int64_t until_ms);

/* Closes it, if it is open; nothing is answered any more. */
void sy_link_close(struct sy_link *link);

#endif
