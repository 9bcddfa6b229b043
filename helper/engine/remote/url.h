/* Reads the URLs of a configuration. Pure. */
#ifndef FM_ENGINE_REMOTE_URL_H
#define FM_ENGINE_REMOTE_URL_H

#include <stdbool.h>
#include <stddef.h>

struct fm_url {
    bool https;
    char host[256]; /* the host, without brackets */
    size_t authority_len;
    const char *authority; /* HOST:PORT, as in the text */
    int port;
    const char *rest; /* the part after the host and the port */
};

/* Reads the URL `text`. Returns NULL, or what is wrong with it. `url` borrows from `text`. */
const char *fm_url_read(const char *text, struct fm_url *url);

/* Whether a request to this URL stays on this machine. */
bool fm_url_is_loopback(const struct fm_url *url);

#endif
