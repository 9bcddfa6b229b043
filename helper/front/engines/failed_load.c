/* Remembers the loads that failed recently. */
#include "front/engines/failed_load.h"

#include <stdio.h>
#include <string.h>

static bool is_of(const struct fm_failed_load *load, const struct fm_model *model) {
    return load->id[0] && strncmp(load->id, model->id, sizeof load->id - 1) == 0;
}

void fm_failed_load_clear(struct fm_failed_loads *failed, const struct fm_model *model) {
    for (size_t i = 0; i < FM_FAILED_LOADS_MAX; i++) {
        if (is_of(&failed->loads[i], model)) {
            failed->loads[i].id[0] = '\0';
        }
    }
}

void fm_failed_load_note(struct fm_failed_loads *failed, const struct fm_model *model, bool engine_started,
                         const struct fm_error *error, int64_t now_ms) {
    fm_failed_load_clear(failed, model);
    struct fm_failed_load *load = &failed->loads[failed->next++ % FM_FAILED_LOADS_MAX];
    snprintf(load->id, sizeof load->id, "%s", model->id);
    load->created = model->created;
    load->at_ms = now_ms;
    load->engine_started = engine_started;
    load->error = *error;
}

const struct fm_failed_load *fm_failed_load_of(const struct fm_failed_loads *failed, const struct fm_model *model,
                                               int64_t now_ms) {
    for (size_t i = 0; i < FM_FAILED_LOADS_MAX; i++) {
        const struct fm_failed_load *load = &failed->loads[i];
        if (is_of(load, model) && load->created == model->created && now_ms - load->at_ms < FM_FAILED_LOAD_MS) {
            return load;
        }
    }
    return NULL;
}
