/* Errors of fm-system: the project's error struct, with the codes of fm-system's contract as reasons. */
#include "desktop/refuse.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum fm_code sy_refuse(struct fm_error *error, const char *reason, const char *param, const char *fmt, ...) {
    char detail[sizeof error->detail];
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof detail, fmt, args);
    va_end(args);
    (void)fm_fail(error, FM_INVALID_REQUEST, "%.*s", (int)fm_utf8_whole_prefix(detail, strlen(detail)), detail);
    error->reason = reason;
    snprintf(error->param, sizeof error->param, "%s", param);
    return error->code;
}

const char *sy_reason(const struct fm_error *error) {
    if (error->reason) {
        return error->reason;
    }
    return error->code == FM_UNAVAILABLE ? "unavailable"
           : error->code == FM_TIMEOUT   ? "timeout"
           : error->code == FM_CANCELLED ? "cancelled"
                                         : "internal";
}
