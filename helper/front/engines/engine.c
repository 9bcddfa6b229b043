/* Ends an engine's process, for the rest of the front. */
#include "front/engines/engine.h"
#include "front/engines/table.h"

void fm_engine_note_end_locked(struct fm_engine *engine, enum fm_engine_end end, const struct fm_error *error) {
    if (engine->end_error.code == FM_OK) {
        engine->end_error = *error;
        engine->end = end;
    }
}

void fm_engine_kill_locked(struct fm_engine *engine, enum fm_engine_end end, const struct fm_error *error) {
    fm_engine_note_end_locked(engine, end, error);
    if (engine->pid) {
        fm_engine_set_state_locked(engine, FM_ENGINE_STOPPING);
        fm_child_kill(engine->pid);
    }
}
