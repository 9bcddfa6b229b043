/* The last load that failed. */
#include "front/engines/failed_load.h"

#include <stdio.h>
#include <string.h>

void fm_failed_load_note(struct fm_failed_load *failed, const struct fm_model *model, bool engine_started,
                         const struct fm_error *error, int64_t now_ms) {
    snprintf(failed->id, sizeof failed->id, "%s", model->id);
    failed->created = model->created;
    failed->at_ms = now_ms;
    failed->engine_started = engine_started;
    failed->error = *error;
}

void fm_failed_load_clear(struct fm_failed_load *failed) {
    failed->id[0] = '\0';
}

bool fm_failed_load_is_of(const struct fm_failed_load *failed, const struct fm_model *model, int64_t now_ms) {
    return failed->id[0] && strncmp(failed->id, model->id, sizeof failed->id - 1) == 0 &&
           failed->created == model->created && now_ms - failed->at_ms < FM_FAILED_LOAD_MS;
}
