/*
 * Which addresses the browser may reach: those of the public internet. Pure, except for the addresses of this machine.
 */
#ifndef GW_TOOLS_ADDRESS_H
#define GW_TOOLS_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/*
 * NULL when `address` (AF_INET or AF_INET6) is public. Otherwise a text that says what it is, such as "a loopback
 * address". An IPv6 address that carries an IPv4 address (mapped, 6to4, NAT64) counts as the latter. Addresses: the
 * special-purpose registries of IANA (RFC 6890), and multicast.
 */
const char *gw_address_refused(const struct sockaddr *address);

/*
 * A text that says why an address must not be reached that is public but near: an address of this machine, or of a
 * network that this machine's interfaces are in. (At home, each device has a public IPv6 address.) NULL: it is not
 * near. Asks the system.
 */
const char *gw_address_near(const struct sockaddr *address);

/* "ADDRESS:PORT" or "[ADDRESS]:PORT" of `address`. Pure. */
void gw_address_write(const struct sockaddr *address, char *text, size_t size);

#endif
