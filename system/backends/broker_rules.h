/* Which calls the broker passes on. Pure. */
#ifndef SY_BROKER_RULES_H
#define SY_BROKER_RULES_H

#include <stdbool.h>

struct json_object;

/*
 * Whether the call with these params (NULL: none), to a page or tab (`in_session`) or to the browser, is refused. NULL:
 * it is passed on, because fm-system makes such a call. Otherwise a static string that says why it is refused.
 */
const char *sy_broker_refuses(const char *method, struct json_object *params, bool in_session);

#endif
