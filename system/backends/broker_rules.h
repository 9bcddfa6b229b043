/* Which calls the broker passes on. Pure. */
#ifndef SY_BROKER_RULES_H
#define SY_BROKER_RULES_H

#include <stdbool.h>

struct json_object;

/*
 * NULL: the call with these params (NULL: none), to a page or tab (`in_session`) or to the browser, is one that
 * fm-system makes. Otherwise why not, a static string.
 */
const char *sy_broker_refuses(const char *method, struct json_object *params, bool in_session);

#endif
