/* Matching on the desktop of now: what the user is shown by an index is noted, so that it means the same when it runs.
 */
#include "match/match.h"

enum fm_code sy_match_now(struct sy_world *world, const char *words, const struct sy_match_options *options,
                          struct fm_json_writer *w, struct sy_matched *matched, struct fm_error *error) {
    struct sy_snapshot snapshot;
    enum fm_code code = sy_snapshot_take(&world->desktop, &snapshot, error);
    if (code != FM_OK) {
        return code;
    }
    const struct sy_scene scene = {.snapshot = &snapshot};
    code = sy_told_add(&world->told, &snapshot) ? sy_match(&scene, words, options, w, matched, error)
                                                : fm_fail_no_memory(error);
    sy_snapshot_free(&snapshot);
    return code;
}
