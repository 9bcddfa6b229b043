/*
 * Which addresses the browser may reach: those of the public internet. Pure, except for the addresses of this machine.
 */
#ifndef GW_TOOLS_ADDRESS_H
#define GW_TOOLS_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/*
 * Returns NULL if `address` (AF_INET or AF_INET6) is public. Otherwise returns a text that says what it is, such as "a
 * loopback address". An IPv6 address that carries an IPv4 address (mapped, 6to4, NAT64) counts as that IPv4 address.
 * Not public are IANA's special-purpose addresses (RFC 6890) and multicast.
 */
const char *gw_address_refused(const struct sockaddr *address);

/*
 * Returns why a public address must not be reached because it is near: it belongs to this machine, or to a network of
 * this machine's interfaces. (At home, each device has a public IPv6 address.) NULL: it is not near. Asks the system.
 */
const char *gw_address_near(const struct sockaddr *address);

/* Writes `address` as "ADDRESS:PORT" or "[ADDRESS]:PORT". Pure. */
void gw_address_write(const struct sockaddr *address, char *text, size_t size);

#endif
