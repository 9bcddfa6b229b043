/* The special-purpose addresses, by prefix. Any other address is public. */
#include "tools/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

struct prefix {
    unsigned char bytes[16];
    int bits;
    const char *what;
};

static const char loopback[] = "a loopback address";
static const char private_network[] = "an address of a private network";
static const char link_local[] = "an address of the local link";
static const char special[] = "an address for special purposes";

static const struct prefix version4[] = {
    {{0}, 8, special},
    {{10}, 8, private_network},
    {{100, 64}, 10, private_network},
    {{127}, 8, loopback},
    {{169, 254}, 16, link_local},
    {{172, 16}, 12, private_network},
    {{192, 0, 0}, 24, special},
    {{192, 0, 2}, 24, special},
    {{192, 88, 99}, 24, special},
    {{192, 168}, 16, private_network},
    {{198, 18}, 15, special},
    {{198, 51, 100}, 24, special},
    {{203, 0, 113}, 24, special},
    {{224}, 4, special},
    {{240}, 4, special},
};

static const struct prefix version6[] = {
    {{[15] = 1}, 128, loopback},
    {{0}, 96, special}, /* "::", and the old form that contains an IPv4 address */
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, special},
    {{0x01}, 64, special},
    {{0x20, 0x01}, 23, special}, /* Teredo and others */
    {{0x20, 0x01, 0x0d, 0xb8}, 32, special},
    {{0x3f, 0xff}, 20, special},
    {{0x5f, 0x00}, 16, special},
    {{0xfc}, 7, private_network},
    {{0xfe, 0x80}, 10, link_local},
    {{0xfe, 0xc0}, 10, private_network},
    {{0xff}, 8, special},
};

/* Prefixes of IPv6 addresses that carry an IPv4 address, and its place in them. */
static const struct {
    struct prefix prefix;
    size_t at;
} carriers[] = {
    {{{[10] = 0xff, [11] = 0xff}, 96, NULL}, 12},
    {{{[8] = 0xff, [9] = 0xff}, 96, NULL}, 12},
    {{{0x00, 0x64, 0xff, 0x9b}, 96, NULL}, 12},
    {{{0x20, 0x02}, 16, NULL}, 2},
};

static bool matches(const struct prefix *prefix, const unsigned char *bytes) {
    int whole = prefix->bits / 8;
    int rest = prefix->bits % 8;
    unsigned char mask = (unsigned char)(0xff00 >> rest);
    return memcmp(prefix->bytes, bytes, (size_t)whole) == 0 &&
           (!rest || ((prefix->bytes[whole] ^ bytes[whole]) & mask) == 0);
}

static const char *find_prefix(const struct prefix *table, size_t count, const unsigned char *bytes) {
    for (size_t i = 0; i < count; i++) {
        if (matches(&table[i], bytes)) {
            return table[i].what;
        }
    }
    return NULL;
}

/* Returns the bytes of the address: 16 for IPv6, 4 for IPv4. */
static const unsigned char *bytes_of(const struct sockaddr *address, size_t *len) {
    if (address->sa_family == AF_INET) {
        *len = 4;
        return (const unsigned char *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;
    }
    *len = 16;
    return (const unsigned char *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
}

/* Returns the bytes to check. If an IPv6 address carries an IPv4 address, these are the IPv4 address's. */
static const unsigned char *meaning_of(const struct sockaddr *address, size_t *len) {
    const unsigned char *bytes = bytes_of(address, len);
    for (size_t i = 0; *len == 16 && i < sizeof carriers / sizeof carriers[0]; i++) {
        if (matches(&carriers[i].prefix, bytes)) {
            *len = 4;
            return bytes + carriers[i].at;
        }
    }
    return bytes;
}

const char *gw_address_refused(const struct sockaddr *address) {
    size_t len;
    if (address->sa_family != AF_INET && address->sa_family != AF_INET6) {
        return special;
    }
    const unsigned char *bytes = meaning_of(address, &len);
    return len == 4 ? find_prefix(version4, sizeof version4 / sizeof version4[0], bytes)
                    : find_prefix(version6, sizeof version6 / sizeof version6[0], bytes);
}

/*
 * Whether both addresses are in one network with this mask. A mask of less than 8 bits (32 for IPv6) does not count,
 * because it belongs to a tunnel to all addresses.
 */
static bool in_network(const unsigned char *a, const unsigned char *b, const unsigned char *mask, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if ((i < len / 4 && mask[i] != 0xff) || ((a[i] ^ b[i]) & mask[i])) {
            return false;
        }
    }
    return true;
}

const char *gw_address_near(const struct sockaddr *address) {
    uv_interface_address_t *interfaces = NULL;
    int count = 0;
    size_t len;
    const char *near = NULL;
    const unsigned char *bytes = meaning_of(address, &len);
    if (uv_interface_addresses(&interfaces, &count) != 0) {
        return "an address that may be of this machine";
    }
    for (int i = 0; i < count; i++) {
        size_t other_len;
        size_t mask_len;
        const unsigned char *other = bytes_of((const struct sockaddr *)&interfaces[i].address, &other_len);
        const unsigned char *mask = bytes_of((const struct sockaddr *)&interfaces[i].netmask, &mask_len);
        if (other_len == len && memcmp(bytes, other, len) == 0) {
            near = "an address of this machine";
            break;
        }
        if (other_len == len && mask_len == len && in_network(bytes, other, mask, len)) {
            near = "an address of a network that this machine is in";
        }
    }
    uv_free_interface_addresses(interfaces, count);
    return near;
}

void gw_address_write(const struct sockaddr *address, char *text, size_t size) {
    char host[INET6_ADDRSTRLEN] = "?";
    size_t len;
    const unsigned char *bytes = bytes_of(address, &len);
    unsigned port = ntohs(len == 4 ? ((const struct sockaddr_in *)(const void *)address)->sin_port
                                   : ((const struct sockaddr_in6 *)(const void *)address)->sin6_port);
    inet_ntop(address->sa_family, bytes, host, sizeof host);
    snprintf(text, size, len == 4 ? "%s:%u" : "[%s]:%u", host, port);
}
