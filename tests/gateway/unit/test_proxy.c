/*
 * The browser's proxy, when a host has several addresses. This file decides which addresses a host has, and which of
 * them may be reached: the linker (--wrap) replaces uv_getaddrinfo, gw_address_refused and gw_address_near.
 */
#include "loop.h"

#include "tools/address.h"
#include "tools/proxy.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define ADDRESSES_MAX 3
#define UNREACHABLE   4 /* RFC 1928, section 6 */
#define NOT_ALLOWED   2

static int ports[ADDRESSES_MAX]; /* on 127.0.0.1; they stand for the addresses of every host */
static size_t port_count;
static int refused_port;

int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *lookup, uv_getaddrinfo_cb done, const char *host,
                          const char *service, const struct addrinfo *hints);
const char *__wrap_gw_address_refused(const struct sockaddr *address);
const char *__wrap_gw_address_near(const struct sockaddr *address);

/* Makes the list as glibc does: each element and its address are one block of memory, which freeaddrinfo frees. */
static struct addrinfo *new_address(int port, struct addrinfo *next) {
    struct addrinfo *one = calloc(1, sizeof *one + sizeof(struct sockaddr_in));
    assert_non_null(one);
    struct sockaddr_in *address = (struct sockaddr_in *)(one + 1);
    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t)port);
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    one->ai_family = AF_INET;
    one->ai_addr = (struct sockaddr *)address;
    one->ai_addrlen = sizeof *address;
    one->ai_next = next;
    return one;
}

static uv_getaddrinfo_cb on_found;

static void find(uv_timer_t *timer) {
    struct addrinfo *first = NULL;
    for (size_t i = port_count; i > 0; i--) {
        first = new_address(ports[i - 1], first);
    }
    on_found(timer->data, 0, first);
    uv_close((uv_handle_t *)timer, (uv_close_cb)free);
}

int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *lookup, uv_getaddrinfo_cb done, const char *host,
                          const char *service, const struct addrinfo *hints) {
    uv_timer_t *timer = malloc(sizeof *timer);
    (void)host;
    (void)service;
    (void)hints;
    assert_non_null(timer);
    on_found = done;
    timer->data = lookup;
    return uv_timer_init(loop, timer) || uv_timer_start(timer, find, 0, 0);
}

const char *__wrap_gw_address_refused(const struct sockaddr *address) {
    return ntohs(((const struct sockaddr_in *)address)->sin_port) == refused_port ? "an address that is refused" : NULL;
}

const char *__wrap_gw_address_near(const struct sockaddr *address) {
    (void)address;
    return NULL;
}

/* A socket of 127.0.0.1 that listens if `backlog` is not negative, and its port. */
static int new_socket(int backlog, int *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    assert_true(backlog < 0 || listen(fd, backlog) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static int connect_here(int port, bool wait) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (wait ? 0 : SOCK_NONBLOCK), 0);
    assert_true(fd >= 0);
    assert_true(connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || !wait);
    return fd;
}

static int refusals;
static bool closed;

static void on_refused(void *context, const char *host, const char *reason) {
    (void)context;
    assert_string_equal(host, "a.example");
    assert_non_null(strstr(reason, "an address that is refused"));
    refusals++;
}

static void on_proxy_closed(void *context) {
    (void)context;
    closed = true;
}

struct answer {
    int fd;
    unsigned char bytes[12];
    size_t len;
    bool whole;
};

static void on_readable(uv_poll_t *poll, int status, int events) {
    static const unsigned char request[] = {5, 1, 0, 3, 9, 'a', '.', 'e', 'x', 'a', 'm', 'p', 'l', 'e', 0, 80};
    struct answer *answer = poll->data;
    (void)events;
    assert_int_equal(status, 0);
    ssize_t got = read(answer->fd, answer->bytes + answer->len, sizeof answer->bytes - answer->len);
    assert_true(got > 0);
    answer->len += (size_t)got;
    if (answer->len == 2) { /* the greeting is answered */
        assert_int_equal(write(answer->fd, request, sizeof request), sizeof request);
    }
    answer->whole = answer->len == sizeof answer->bytes;
}

/* What the proxy replies when the browser asks for a host with this number of addresses. */
static int reply_of(size_t count) {
    static const unsigned char greeting[] = {5, 1, 0};
    uv_loop_t loop;
    uv_poll_t poll;
    struct gw_proxy *proxy;
    struct fm_error error;
    port_count = count;
    assert_int_equal(uv_loop_init(&loop), 0);
    const struct gw_proxy_policy policy = {.exempt = NULL};
    assert_int_equal(gw_proxy_open(&loop, &policy, on_refused, NULL, &proxy, &error), FM_OK);
    struct answer answer = {.fd = connect_here(gw_proxy_port(proxy), true)};
    assert_int_equal(write(answer.fd, greeting, sizeof greeting), sizeof greeting);
    assert_int_equal(uv_poll_init(&loop, &poll, answer.fd), 0);
    poll.data = &answer;
    assert_int_equal(uv_poll_start(&poll, UV_READABLE, on_readable), 0);
    run_until(&loop, &answer.whole);
    uv_close((uv_handle_t *)&poll, NULL);
    gw_proxy_close(proxy, on_proxy_closed);
    closed = false;
    run_until(&loop, &closed);
    end_loop(&loop);
    close(answer.fd);
    assert_memory_equal(answer.bytes, ((unsigned char[]){5, 0, 5}), 3);
    return answer.bytes[3];
}

static void test_addresses(void **state) {
    (void)state;
    int server = new_socket(8, &ports[2]);
    int closed_one = new_socket(-1, &ports[0]); /* nothing listens on it */
    int closed_two = new_socket(-1, &ports[1]);
    const int good = ports[2];
    assert_int_equal(reply_of(3), 0);
    assert_int_equal(reply_of(2), UNREACHABLE);

    refused_port = ports[1]; /* skipped, and only reported if no other address can be reached */
    assert_int_equal(reply_of(3), 0);
    assert_int_equal(reply_of(2), UNREACHABLE); /* one address might have been reached */
    refused_port = good;
    assert_int_equal(reply_of(3), UNREACHABLE);
    assert_int_equal(refusals, 0);
    refused_port = ports[0];
    assert_int_equal(reply_of(1), NOT_ALLOWED);
    assert_int_equal(refusals, 1);
    refused_port = 0;
    close(server);
    close(closed_one);
    close(closed_two);
}

/* An address that gives no answer at all, not even a refusal: a listener whose queue is full. */
static void test_silence(void **state) {
    (void)state;
    int waiting[2];
    int silent = new_socket(0, &ports[0]);
    int server = new_socket(8, &ports[1]);
    for (size_t i = 0; i < 2; i++) {
        waiting[i] = connect_here(ports[0], false);
    }
    assert_int_equal(reply_of(2), 0);
    close(waiting[0]);
    close(waiting[1]);
    close(silent);
    close(server);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_addresses), cmocka_unit_test(test_silence)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
