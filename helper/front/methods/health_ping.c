/* health.ping reports that the helper runs, and its version. It never waits for other messages or for long work. */
#include "base/clock.h"
#include "front/methods/methods.h"
#include "protocol/version.h"

#include <unistd.h>

static enum fm_code health_ping(struct fm_front *front, const struct fm_method_call *call,
                                struct fm_json_writer *result, struct fm_error *error) {
    (void)call;
    (void)error;
    fm_json_key_int(result, "protocol_version", FM_PROTOCOL_VERSION);
    fm_json_key_str(result, "version", FM_VERSION);
    fm_json_key_int(result, "pid", getpid());
    fm_json_key_int(result, "uptime_ms", fm_now_ms() - front->started_ms);
    return FM_OK;
}

const struct fm_method fm_method_health_ping = {"health.ping", FM_METHOD_IGNORES_PARAMS | FM_METHOD_AT_ONCE, .run = health_ping};
