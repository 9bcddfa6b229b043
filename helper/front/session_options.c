#include "front/session_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_MS     86400000
#define PREFIX_MAX 200 /* bytes, of a log line's 1,000 */

struct number {
    const char *name;
    size_t offset;
    int64_t least;
    int64_t most;
    int64_t usual;
};

#define NUMBER(member) offsetof(struct fm_session_options, member)

static const struct number numbers[] = {
    [FM_SESSION_IDLE] = {"--idle-timeout-ms", NUMBER(idle_ms), 1, DAY_MS, 120000},
    [FM_SESSION_CHECK] = {"--idle-check-ms", NUMBER(check_ms), 1, DAY_MS, 30000},
    [FM_SESSION_EOF_WAIT] = {"--eof-wait-ms", NUMBER(eof_wait_ms), 0, DAY_MS, 0},
    [FM_SESSION_MAX_SESSIONS] = {"--max-sessions", NUMBER(max_sessions), 1, 10000, 64},
    [FM_SESSION_MAX_TURNS] = {"--max-turns", NUMBER(max_turns), 1, FM_SESSION_TURNS_MAX, 1000},
    [FM_SESSION_MAX_BYTES] = {"--max-session-bytes", NUMBER(max_bytes), 1024, 8 << 20, 4 << 20},
    [FM_SESSION_MAX_OUTPUT] = {"--max-output-tokens", NUMBER(max_output_tokens), 1, INT32_MAX, 1024},
    [FM_SESSION_TIMEOUT] = {"--message-timeout-ms", NUMBER(timeout_ms), 1, DAY_MS, 600000},
};

static const char *const other_names[] = {
    [FM_SESSION_TEMPERATURE] = "--temperature",
    [FM_SESSION_TRUNCATION] = "--truncation",
    [FM_SESSION_LOG_PREFIX] = "--log-prefix",
    [FM_SESSION_LOG_USER_TEXT] = "--log-user-text",
};

const char *fm_session_option_name(enum fm_session_option option) {
    return option < FM_SESSION_TEMPERATURE ? numbers[option].name : other_names[option];
}

static bool read_number(struct fm_session_options *options, const struct number *number, const char *text) {
    int64_t *value = (int64_t *)((char *)options + number->offset);
    *value = number->usual;
    if (!text) {
        return true;
    }
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    bool digits = text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
    if (!digits || *value < number->least || *value > number->most) {
        fprintf(stderr, "fm-proxy: %s must be an integer from %lld to %lld, not \"%s\"\n", number->name,
                (long long)number->least, (long long)number->most, text);
        return false;
    }
    return true;
}

static bool read_temperature(struct fm_session_options *options, const char *text) {
    options->temperature = 1;
    if (!text) {
        return true;
    }
    char *end;
    options->temperature = strtod(text, &end);
    bool digits = text[0] >= '0' && text[0] <= '9' && *end == '\0' && !strpbrk(text, "xX");
    if (!digits || !(options->temperature <= 2)) {
        fprintf(stderr, "fm-proxy: --temperature must be a number from 0 to 2, not \"%s\"\n", text);
        return false;
    }
    return true;
}

static bool read_truncation(struct fm_session_options *options, const char *text) {
    options->truncation = text ? text : "disabled";
    if (strcmp(options->truncation, "auto") != 0 && strcmp(options->truncation, "disabled") != 0) {
        fprintf(stderr, "fm-proxy: --truncation must be auto or disabled, not \"%s\"\n", text);
        return false;
    }
    return true;
}

static bool read_log_prefix(struct fm_session_options *options, const char *text) {
    options->log_prefix = text ? text : "[IntelligenceKit] ";
    if (strlen(options->log_prefix) > PREFIX_MAX || strpbrk(options->log_prefix, "\r\n")) {
        fprintf(stderr, "fm-proxy: --log-prefix must be one line of at most %d bytes\n", PREFIX_MAX);
        return false;
    }
    return true;
}

bool fm_session_options_read(struct fm_session_options *options, const char *const given[FM_SESSION_OPTIONS]) {
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (!read_number(options, &numbers[i], given[i])) {
            return false;
        }
    }
    options->log_user_text = given[FM_SESSION_LOG_USER_TEXT] != NULL;
    return read_temperature(options, given[FM_SESSION_TEMPERATURE]) &&
           read_truncation(options, given[FM_SESSION_TRUNCATION]) &&
           read_log_prefix(options, given[FM_SESSION_LOG_PREFIX]);
}
