/* Finds a browser, and exchanges bytes with it. The socket never blocks: if it does not take a message within a second,
 * the link ends. */
#include "backends/cdp_link.h"
#include "backends/ws.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/platform.h"
#include "base/private_files.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WRITE_MS  1000
#define READ_SIZE 65536u
#define PORT_FILE 200u /* bytes of DevToolsActivePort that are read: a number, and "/devtools/browser/" with a UUID */
#define ROOM_FOR  64   /* bytes of a file's name */

bool sy_cdp_socket_path(char *path, size_t size) {
    char cache[512];
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (!runtime || runtime[0] != '/') {
        if (!fm_cache_folder(cache, sizeof cache)) {
            return false;
        }
        runtime = cache;
    }
    size_t len = (size_t)snprintf(path, size, "%s/fm-system/chrome.sock", runtime);
    return len < size && len < sizeof((struct sockaddr_un *)0)->sun_path;
}

/* ---- bytes ---- */

static bool write_bytes(int fd, const char *data, size_t len) {
    int64_t until_ms = fm_now_ms() + WRITE_MS;
    while (len > 0) {
        ssize_t done = send(fd, data, len, MSG_NOSIGNAL);
        if (done >= 0) {
            data += done;
            len -= (size_t)done;
            continue;
        }
        int64_t left = until_ms - fm_now_ms();
        struct fm_waited room = {.fd = fd, .room = true};
        if (errno == EINTR) {
            continue;
        }
        if ((errno != EAGAIN && errno != EWOULDBLOCK) || left <= 0 || fm_wait(&room, 1, (int)left) == 0) {
            return false;
        }
    }
    return true;
}

static bool on_ws_bytes(void *context, const char *data, size_t len) {
    const struct sy_link *link = context;
    return write_bytes(link->fd, data, len);
}

static bool on_ws_message(void *context, const char *text, size_t len) {
    struct sy_link *link = context;
    return fm_cdp_feed(&link->cdp, text, len) && fm_cdp_feed(&link->cdp, "", 1);
}

static bool on_write(void *context, const char *data, size_t len) {
    struct sy_link *link = context;
    return link->ws ? sy_ws_send(link->ws, data, len - 1) : write_bytes(link->fd, data, len);
}

static void on_event(void *context, const char *session, const char *method, struct json_object *params) {
    const struct sy_link *link = context;
    link->event(link->context, session, method, params);
}

bool sy_link_pump(struct sy_link *link, int64_t until_ms) {
    char data[READ_SIZE];
    int64_t left = until_ms - fm_now_ms();
    struct fm_waited input = {.fd = link->fd, .input = true};
    if (fm_wait(&input, 1, left > 0 ? (int)left : 0) == 0) {
        return true;
    }
    ssize_t len = fm_read(link->fd, data, sizeof data);
    if (len < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        return true;
    }
    if (len <= 0) {
        return false;
    }
    return link->ws ? sy_ws_feed(link->ws, data, (size_t)len) : fm_cdp_feed(&link->cdp, data, (size_t)len);
}

/* ---- where browsers are ---- */

static int connect_to(const struct sockaddr *address, socklen_t len) {
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, address, len) != 0) {
        fm_close(fd);
        return -1;
    }
    if (fd >= 0) {
        fm_set_nonblocking(fd);
    }
    return fd;
}

/* No other user can put a socket into our folder, but the peer's user is checked all the same. */
static bool is_ours(int fd) {
    struct ucred peer;
    socklen_t len = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

static int connect_socket(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = connect_to((const struct sockaddr *)&address, sizeof address);
    if (fd >= 0 && !is_ours(fd)) {
        fm_close(fd);
        return -1;
    }
    return fd;
}

/* DevToolsActivePort: the port, and the path of the browser's WebSocket, a line each. */
static bool read_port_file(const char *profile, int *port, char path[PORT_FILE + 1]) {
    char name[4096];
    char text[PORT_FILE + 1];
    char *end;
    if ((size_t)snprintf(name, sizeof name, "%s/DevToolsActivePort", profile) >= sizeof name) {
        return false;
    }
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t len = fd >= 0 ? fm_read(fd, text, PORT_FILE) : -1;
    if (fd >= 0) {
        fm_close(fd);
    }
    if (len <= 0) {
        return false;
    }
    text[len] = '\0';
    long number = strtol(text, &end, 10);
    if (number < 1 || number > 65535 || *end != '\n' || end[1] != '/') {
        return false;
    }
    size_t path_len = strspn(end + 1, "/-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    memcpy(path, end + 1, path_len);
    path[path_len] = '\0';
    *port = (int)number;
    return true;
}

/* The start of the word with this number in the line, from 0; "" after the last word. */
static const char *word_at(const char *line, int number) {
    const char *at = line + strspn(line, " ");
    for (; number > 0; number--) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return at;
}

/* Whether only programs of this user listen on the port. The file stays when its browser has ended; then another user's
 * program may listen there. /proc/net/tcp has the user of each socket. The words of a line are: a number, local
 * address, remote address, state, queues, timer, retransmits, uid. */
static bool is_own_port(int port) {
    static const char listens[] = "0A ";
    FILE *table = fopen("/proc/net/tcp", "re");
    char line[512];
    size_t own = 0;
    size_t others = 0;
    while (table && fgets(line, sizeof line, table)) {
        const char *colon = strchr(word_at(line, 1), ':');
        if (colon && strtol(colon + 1, NULL, 16) == port && strncmp(word_at(line, 3), listens, 3) == 0) {
            bool ours = strtoul(word_at(line, 7), NULL, 10) == geteuid();
            own += ours;
            others += !ours;
        }
    }
    if (table) {
        fclose(table);
    }
    return own > 0 && others == 0;
}

static enum fm_code open_port(struct sy_link *link, const char *profile, struct fm_error *error) {
    char path[PORT_FILE + 1];
    int port;
    if (!read_port_file(profile, &port, path) || !is_own_port(port)) {
        return FM_NOT_FOUND;
    }
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    link->fd = connect_to((const struct sockaddr *)&address, sizeof address);
    if (link->fd < 0) {
        return FM_NOT_FOUND; /* the file was left by a browser that has ended */
    }
    const struct sy_ws_handlers handlers = {.context = link, .write = on_ws_bytes, .message = on_ws_message};
    return sy_ws_new(&handlers, port, path, &link->ws, error);
}

enum fm_code sy_link_open(struct sy_link *link, const struct sy_cdp_places *places, struct fm_error *error) {
    fm_cdp_init(&link->cdp, link, on_write, on_event);
    link->ws = NULL;
    link->fd = places->socket ? connect_socket(places->socket) : -1;
    for (size_t i = 0; link->fd < 0 && places->profiles && places->profiles[i]; i++) {
        enum fm_code code = open_port(link, places->profiles[i], error);
        if (code != FM_OK && code != FM_NOT_FOUND) {
            sy_link_close(link);
            return code;
        }
    }
    return link->fd >= 0 ? FM_OK
                         : fm_fail(error, FM_UNAVAILABLE,
                                   "no browser can be reached: start it by \"fm-system chrome\", or allow remote "
                                   "debugging at chrome://inspect/#remote-debugging");
}

void sy_link_close(struct sy_link *link) {
    if (link->ws) {
        sy_ws_free(link->ws);
        link->ws = NULL;
    }
    if (link->fd >= 0) {
        fm_close(link->fd);
        link->fd = -1;
    }
    fm_cdp_close(&link->cdp);
    fm_cdp_free(&link->cdp);
}
