/*
 * Writes log lines to stderr, and never blocks. Control characters, and bytes that are not UTF-8, are shown as '?'.
 *
 * A line that stderr does not take at once (full or closed) is dropped and counted; the next line that goes through
 * reports the count. Callers log lengths and times. They log prompts and answers only in session mode, with
 * --log-user-text.
 */
#ifndef FM_BASE_LOG_H
#define FM_BASE_LOG_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

#define FM_LOG_LINE_MAX 1024 /* bytes of a line, with its beginning and its newline */

enum fm_log_level { FM_LOG_OFF, FM_LOG_ERROR, FM_LOG_WARN, FM_LOG_INFO, FM_LOG_DEBUG };

/* Sets the level and the name that starts each line. Call once, before the first thread. `name` must outlive the log.
 */
void fm_log_init(const char *name, enum fm_log_level level);

/*
 * Gives all later lines the form of session mode (protocol/SESSIONS.md): instead of name and level they begin with
 * `prefix`, then "Error: " for an error or "Warning: " for a warning. Call after fm_log_init; `prefix` must outlive the
 * log.
 */
void fm_log_use_prefix(const char *prefix);

/* The current level. */
enum fm_log_level fm_log_level_get(void);

/* Converts "off", "error", "warn", "info" or "debug" to a level. False for any other word. */
FM_MUST_USE bool fm_log_level_parse(const char *word, enum fm_log_level *out);

/* The word of a level, as fm_log_level_parse takes it. */
const char *fm_log_level_name(enum fm_log_level level);

/* Writes one line (no newline in `fmt`), cut at FM_LOG_LINE_MAX. Any thread; never blocks. */
void fm_log(enum fm_log_level level, const char *fmt, ...) FM_PRINTF(2, 3);

/*
 * Logs one line that another program wrote to its stderr (`len` bytes, without a newline), at every level but `off`.
 * Builds with a sanitizer log it at `off` too. The line begins with the prefix of fm_log_use_prefix, or else with
 * `name` and ": ". That beginning is not added if the text has it already. The line is cut at FM_LOG_LINE_MAX. Any
 * thread; never blocks.
 */
void fm_log_relay(const char *name, const char *text, size_t len);

#endif
