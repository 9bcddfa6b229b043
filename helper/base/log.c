/* Log lines. Each line is composed in a local array and goes to stderr in one write, so that lines never mix. */
#include "base/log.h"
#include "base/platform.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#ifdef FM_SANITIZE /* a sanitizer's report must never be lost */
#define RELAY_ALWAYS true
#else
#define RELAY_ALWAYS false
#endif

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

/* Writes the beginning of a line, before its text. Returns its length in bytes, less than `size`. */
static int write_start(char *line, size_t size, enum fm_log_level level) {
    int len = log_prefix ? snprintf(line, size, "%s%s", log_prefix, level_marks[level])
                         : snprintf(line, size, "%s: %s: ", log_name, level_names[level]);
    return len < (int)size ? len : (int)size - 1;
}

/* Writes a separate line that reports the dropped lines. Returns its length in bytes, less than `size`. */
static int write_dropped(char *line, size_t size, unsigned long dropped) {
    int len = log_prefix ? snprintf(line, size, "%sWarning: %lu log lines dropped\n", log_prefix, dropped)
                         : snprintf(line, size, "%s: %lu log lines dropped\n", log_name, dropped);
    return len < (int)size ? len : (int)size - 1;
}

/*
 * Replaces by '?' what is no text for a terminal, or for a program that reads lines: control characters (C0, DEL, and
 * C1 in UTF-8), and bytes that are not UTF-8, because some terminals read them as C1.
 */
static void make_plain(char *text, size_t len) {
    for (size_t at = 0; at < len;) {
        int sequence = fm_utf8_sequence(text + at, len - at);
        size_t step = sequence > 0 ? (size_t)sequence : 1;
        unsigned char first = (unsigned char)text[at];
        bool c1 = step == 2 && first == 0xC2 && (unsigned char)text[at + 1] < 0xA0;
        if (sequence <= 0 || first < 0x20 || first == 0x7F || c1) {
            memset(text + at, '?', step);
        }
        at += step;
    }
}

/* A line that is being composed. */
struct line {
    char text[FM_LOG_LINE_MAX];
    size_t used;
    unsigned long dropped; /* how many lines were dropped; the beginning of this line reports it */
};

static void begin_line(struct line *line) {
    line->dropped = atomic_exchange(&dropped_lines, 0);
    line->used = line->dropped ? (size_t)write_dropped(line->text, sizeof line->text / 4, line->dropped) : 0;
}

/* Ends the line and writes it. Its last `len` bytes, from `used` on, are already there, but were not made plain yet. */
static void send_line(struct line *line, size_t len) {
    make_plain(line->text + line->used, len);
    line->used += len;
    line->text[line->used++] = '\n';
    if (!fm_stderr_try_write(line->text, line->used)) {
        atomic_fetch_add(&dropped_lines, line->dropped + 1);
    }
}

void fm_log(enum fm_log_level level, const char *fmt, ...) {
    if (level == FM_LOG_OFF || level > log_level) {
        return;
    }
    struct line line;
    begin_line(&line);
    line.used += (size_t)write_start(line.text + line.used, sizeof line.text / 4, level);

    va_list args;
    va_start(args, fmt);
    int text = vsnprintf(line.text + line.used, sizeof line.text - line.used - 1, fmt, args);
    va_end(args);
    if (text >= 0) {
        send_line(&line, strlen(line.text + line.used));
    }
}

void fm_log_relay(const char *name, const char *text, size_t len) {
    if (log_level == FM_LOG_OFF && !RELAY_ALWAYS) {
        return;
    }
    struct line line;
    char start[sizeof line.text / 4];
    begin_line(&line);
    snprintf(start, sizeof start, "%s%s", log_prefix ? log_prefix : name, log_prefix ? "" : ": ");
    size_t start_len = strlen(start);
    if (len < start_len || memcmp(text, start, start_len) != 0) {
        memcpy(line.text + line.used, start, start_len);
        line.used += start_len;
    }
    size_t room = sizeof line.text - line.used - 1;
    len = len < room ? len : room;
    memcpy(line.text + line.used, text, len);
    send_line(&line, len);
}
