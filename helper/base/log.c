#include "base/log.h"
#include "base/platform.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char *const level_names[] = {"off", "error", "warn", "info", "debug"};

static const char *log_name = "fm";
static enum fm_log_level log_level = FM_LOG_OFF;
static atomic_ulong dropped_lines;

void fm_log_init(const char *name, enum fm_log_level level) {
    log_name = name;
    log_level = level;
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

void fm_log(enum fm_log_level level, const char *fmt, ...) {
    if (level == FM_LOG_OFF || level > log_level) {
        return;
    }
    char line[1024];
    unsigned long dropped = atomic_exchange(&dropped_lines, 0);
    int used = dropped ? snprintf(line, sizeof line, "%s: %lu log lines dropped\n", log_name, dropped) : 0;
    used += snprintf(line + used, sizeof line - (size_t)used, "%s: %s: ", log_name, level_names[level]);

    va_list args;
    va_start(args, fmt);
    int text = vsnprintf(line + used, sizeof line - (size_t)used - 1, fmt, args);
    va_end(args);
    if (text < 0) {
        return;
    }
    size_t len = strlen(line);
    line[len++] = '\n';
    if (!fm_stderr_try_write(line, len)) {
        atomic_fetch_add(&dropped_lines, dropped + 1);
    }
}
