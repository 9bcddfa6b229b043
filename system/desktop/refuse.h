/*
 * How fm-system refuses a request. The error's `reason` is the code on the wire, such as "unknown_app"
 * (docs/requirements-system.md has the list). Its `param` is the path of the parameter.
 */
#ifndef SY_REFUSE_H
#define SY_REFUSE_H

#include "base/error.h"

/*
 * Fills `error` with FM_INVALID_REQUEST, and returns this code. `reason` must outlive the error; `param` "" names none.
 */
enum fm_code sy_refuse(struct fm_error *error, const char *reason, const char *param, const char *fmt, ...)
    FM_PRINTF(4, 5);

/* The code on the wire: the reason, or a word for the error's code if it has no reason. */
const char *sy_reason(const struct fm_error *error);

#endif
