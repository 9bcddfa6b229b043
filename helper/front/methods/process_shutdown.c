/* process.shutdown ends the helper in an orderly way; it is answered after everything else. */
#include "front/methods/methods.h"

static enum fm_code process_shutdown(struct fm_front *front, const struct fm_method_call *call,
                                     struct fm_json_writer *result, struct fm_error *error) {
    (void)result;
    (void)error;
    front->shutdown_call = *call->id;
    atomic_store(&front->shutdown_called, true);
    return FM_OK;
}

const struct fm_method fm_method_process_shutdown = {
    "process.shutdown", FM_METHOD_ANSWERS_LATER | FM_METHOD_NOTIFICATION, .run = process_shutdown};
