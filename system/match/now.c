/* Matching on the present desktop. The list of tabs is kept, so that an index means the same tab when the request runs.
 */
#include "desktop/presets.h"
#include "match/match.h"

#include <stdlib.h>

/* Lists the names of the presets in an array that the caller frees. If the presets can't be read, the list is empty,
 * and activate_preset reports the error later. Returns whether they were read. */
static bool list_names(const struct sy_world *world, struct sy_presets *presets, const char ***names, size_t *count) {
    struct fm_error ignored;
    *presets = (struct sy_presets){0};
    bool read = world->presets && sy_presets_read(world->presets, presets, &ignored) == FM_OK;
    *count = read ? sy_presets_count(presets) : 0;
    *names = calloc(*count + 1, sizeof **names);
    for (size_t i = 0; *names && i < *count; i++) {
        (*names)[i] = sy_presets_name(presets, i);
    }
    return read;
}

enum fm_code sy_match_now(struct sy_world *world, const char *words, const struct sy_match_options *options,
                          struct fm_json_writer *w, struct sy_matched *matched, struct fm_error *error) {
    struct sy_snapshot snapshot;
    struct sy_presets presets;
    struct sy_scene scene = {.snapshot = &snapshot};
    const char **names;
    enum fm_code code = sy_snapshot_take(&world->desktop, &snapshot, error);
    if (code != FM_OK) {
        return code;
    }
    bool read = list_names(world, &presets, &names, &scene.preset_count);
    scene.presets = names;
    code = names && sy_told_add(&world->told, &snapshot, SY_SEEN_HANDLE) ? sy_match(&scene, words, options, w, matched, error)
                                                         : fm_fail_no_memory(error);
    free(names);
    if (read) {
        sy_presets_free(&presets);
    }
    sy_snapshot_free(&snapshot);
    return code;
}
