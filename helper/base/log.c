#include "base/log.h"
#include "base/platform.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char *const level_names[] = {"off", "error", "warn", "info", "debug"};

static const char *const level_marks[] = {"", "Error: ", "Warning: ", "", "Debug: "};

static const char *log_name = "fm";
static const char *log_prefix; /* NULL: lines begin with name and level */
static enum fm_log_level log_level = FM_LOG_OFF;
static atomic_ulong dropped_lines;

void fm_log_init(const char *name, enum fm_log_level level) {
    log_name = name;
    log_level = level;
}

void fm_log_use_prefix(const char *prefix) {
    log_prefix = prefix;
}

enum fm_log_level fm_log_level_get(void) {
    return log_level;
}

bool fm_log_level_parse(const char *word, enum fm_log_level *out) {
    for (size_t i = 0; i < sizeof level_names / sizeof level_names[0]; i++) {
        if (strcmp(word, level_names[i]) == 0) {
            *out = (enum fm_log_level)i;
            return true;
        }
    }
    return false;
}

const char *fm_log_level_name(enum fm_log_level level) {
    return level_names[level];
}

/* What stands before a line's text. Returns its length in bytes, less than `size`. */
static int write_start(char *line, size_t size, enum fm_log_level level) {
    int len = log_prefix ? snprintf(line, size, "%s%s", log_prefix, level_marks[level])
                         : snprintf(line, size, "%s: %s: ", log_name, level_names[level]);
    return len < (int)size ? len : (int)size - 1;
}

/* A line of its own about those that were dropped. Returns its length in bytes, less than `size`. */
static int write_dropped(char *line, size_t size, unsigned long dropped) {
    int len = log_prefix ? snprintf(line, size, "%sWarning: %lu log lines dropped\n", log_prefix, dropped)
                         : snprintf(line, size, "%s: %lu log lines dropped\n", log_name, dropped);
    return len < (int)size ? len : (int)size - 1;
}

/* What a terminal, or who reads lines, would take for more than text: control characters (C0, DEL, and C1 in UTF-8). */
static void make_plain(char *text, size_t len) {
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)text[i];
        bool c1 = byte == 0xC2 && i + 1 < len && (unsigned char)text[i + 1] < 0xA0;
        if (byte < 0x20 || byte == 0x7F || c1) {
            text[i] = '?';
        }
        if (c1) {
            text[++i] = '?';
        }
    }
}

void fm_log(enum fm_log_level level, const char *fmt, ...) {
    if (level == FM_LOG_OFF || level > log_level) {
        return;
    }
    char line[1024];
    unsigned long dropped = atomic_exchange(&dropped_lines, 0);
    int used = dropped ? write_dropped(line, sizeof line / 4, dropped) : 0;
    used += write_start(line + used, sizeof line / 4, level);

    va_list args;
    va_start(args, fmt);
    int text = vsnprintf(line + used, sizeof line - (size_t)used - 1, fmt, args);
    va_end(args);
    if (text < 0) {
        return;
    }
    size_t len = strlen(line);
    make_plain(line + used, len - (size_t)used);
    line[len++] = '\n';
    if (!fm_stderr_try_write(line, len)) {
        atomic_fetch_add(&dropped_lines, dropped + 1);
    }
}
