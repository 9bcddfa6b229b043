/* The methods that a host can call: one table row each. */
#ifndef FM_FRONT_METHODS_H
#define FM_FRONT_METHODS_H

#include "front/front.h"

enum fm_method_flags {
    FM_METHOD_NEEDS_PARAMS = 1,   /* absent params are an error */
    FM_METHOD_IGNORES_PARAMS = 2, /* params may be anything */
    FM_METHOD_NOTIFICATION = 4,   /* also works without an id */
    FM_METHOD_ANSWERS_LATER = 8,  /* on FM_OK a job answers the call; `result` is not used */
};

struct fm_method {
    const char *name;
    unsigned flags;
    /*
     * Runs in the reader's thread, must not block. Writes its members of {"ok":true, ...} to `result`; on failure fills
     * `error` and returns its code, and what it wrote is thrown away.
     */
    enum fm_code (*run)(struct fm_front *front, const struct fm_rpc_message *message, struct fm_json_writer *result,
                        struct fm_error *error);
};

/* NULL when there is no such method. */
const struct fm_method *fm_method_find(const char *name, size_t len);

#endif
