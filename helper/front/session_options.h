/* The options of session mode (protocol/SESSIONS.md, "Options"): one table row each. */
#ifndef FM_FRONT_SESSION_OPTIONS_H
#define FM_FRONT_SESSION_OPTIONS_H

#include "front/options.h"

#include <stddef.h>

/* Of six values each: a conversation is one frame, of FM_JSON_VALUES_MAX at most. */
#define FM_SESSION_TURNS_MAX 10000

enum fm_session_option {
    FM_SESSION_IDLE,
    FM_SESSION_CHECK,
    FM_SESSION_EOF_WAIT,
    FM_SESSION_MAX_SESSIONS,
    FM_SESSION_MAX_TURNS,
    FM_SESSION_MAX_BYTES,
    FM_SESSION_MAX_OUTPUT,
    FM_SESSION_TIMEOUT,
    FM_SESSION_TEMPERATURE,
    FM_SESSION_TRUNCATION,
    FM_SESSION_LOG_PREFIX,
    FM_SESSION_LOG_USER_TEXT,
    FM_SESSION_OPTIONS,
};

/* The option's name on the command line, such as "--max-turns". */
const char *fm_session_option_name(enum fm_session_option option);

/*
 * Fills `options` from what the command line gave each (NULL: nothing, so the default). False with one line on stderr
 * when a value is wrong. Strings are borrowed.
 */
FM_MUST_USE bool fm_session_options_read(struct fm_session_options *options,
                                         const char *const given[FM_SESSION_OPTIONS]);

#endif
