/*
 * Logs ignored parameters: one line for each name in the life of the process, so that a host that always sends a
 * parameter does not fill its log.
 */
#include "front/ignored.h"
#include "surface/ignored.h"

#include <stdio.h>
#include <string.h>

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/*
 * Writes `path` without the indexes of lists: "input[0].foo" becomes "input[].foo". False: the path may have a user's
 * text.
 */
static bool write_name(char name[FM_LOGGED_NAME_MAX + 1], const char *path) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-[]";
    size_t len = 0;
    if (!path[0] || path[strspn(path, plain)]) {
        return false;
    }
    for (const char *at = path; *at; at++) {
        size_t digits = 0;
        while (len > 0 && name[len - 1] == '[' && is_digit(at[digits])) {
            digits++;
        }
        at += digits && at[digits] == ']' ? digits : 0;
        if (len == FM_LOGGED_NAME_MAX) {
            return false;
        }
        name[len++] = *at;
    }
    name[len] = '\0';
    return true;
}

static bool is_logged(const struct fm_logged_names *logged, const char *name) {
    unsigned i = 0;
    while (i < logged->count && strcmp(logged->names[i], name) != 0) {
        i++;
    }
    return i < logged->count;
}

void fm_log_ignored_locked(struct fm_front *front, const struct fm_buf *paths) {
    struct fm_logged_names *logged = &front->logged;
    for (const char *path = fm_ignored_next(paths, NULL); path; path = fm_ignored_next(paths, path)) {
        char name[FM_LOGGED_NAME_MAX + 1] = "";
        if (!write_name(name, path)) {
            snprintf(name, sizeof name, "of %zu bytes", strlen(path));
        }
        if (logged->count == FM_LOGGED_NAMES) {
            return;
        }
        if (!is_logged(logged, name)) {
            memcpy(logged->names[logged->count++], name, sizeof name);
            fm_log(FM_LOG_WARN, "ignored parameter %s%s", name,
                   logged->count == FM_LOGGED_NAMES ? " (the log names no more of them)" : "");
        }
    }
}
