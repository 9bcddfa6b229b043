/*
 * The browser's only way out: a SOCKS 5 proxy (RFC 1928, only CONNECT, no authentication) on a port of 127.0.0.1. It
 * resolves names itself, checks each address (address.h), and connects to the very address that it checked. So neither
 * a redirect nor a name that changes its address leads elsewhere. If a host has several addresses, the proxy tries the
 * allowed ones one after the other, for up to 2 s each but the last. A proxy lives as long as its call. The loop's
 * thread.
 */
#ifndef GW_TOOLS_PROXY_H
#define GW_TOOLS_PROXY_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct gw_proxy;

/* What may be reached beside the public internet. */
struct gw_proxy_policy {
    const char *exempt;    /* for tests: an "ADDRESS:PORT" that may be reached in spite of the table; NULL: none */
    const unsigned *ports; /* of this machine's pages: if there are any, they are all that can be reached */
    size_t port_count;
};

/* Whether `host`, as an address has it, names this machine: "localhost", "127.0.0.1" or "::1" (without brackets). Pure.
 */
bool gw_proxy_names_this_machine(const char *host, size_t len);

/*
 * Listens. `refused` is called for each connection that is not made because of its address, with the host as the
 * browser named it and the reason ("127.0.0.1 is a loopback address"). The proxy copies `exempt` and the ports of the
 * policy. FM_UNAVAILABLE: `*proxy` is NULL.
 */
FM_MUST_USE enum fm_code gw_proxy_open(uv_loop_t *loop, const struct gw_proxy_policy *policy,
                                       void (*refused)(void *context, const char *host, const char *reason),
                                       void *context, struct gw_proxy **proxy, struct fm_error *error);

/* The port that it listens on. */
int gw_proxy_port(const struct gw_proxy *proxy);

/* Begins to close everything; `closed` is called when nothing is left. Do not use the proxy after this call. */
void gw_proxy_close(struct gw_proxy *proxy, void (*closed)(void *context));

#endif
