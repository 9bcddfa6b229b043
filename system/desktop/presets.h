/*
 * presets.json: layouts with names.
 *
 *     {"presets": [{"name": "code space",
 *                   "apps": [{"app_name": "XTerm", "monitor": "left"},
 *                            {"app_name": "Notes", "bounds": [0, 0, 960, 1080]}],
 *                   "urls": ["https://github.com"]}]}
 *
 * The file is written whole or not at all, and only its owner can read it (mode 0600). Here only the list and the names
 * are checked; commands/preset.c checks a preset before it runs. All functions may block on the disk.
 */
#ifndef SY_PRESETS_H
#define SY_PRESETS_H

#include "base/error.h"

#include <stddef.h>

#define SY_PRESETS_MAX      100 /* in the file */
#define SY_PRESET_NAME_MAX  100 /* bytes of a name */
#define SY_PRESET_PARTS_MAX 20  /* windows of a preset; as many URLs */

struct json_object;

/* The presets of a file. Zeroed: there are none. */
struct sy_presets {
    struct json_object *root; /* owned */
    struct json_object *list; /* the array in `root`, of objects with a name; NULL: there are none */
};

/* The path of the file: fm-system/presets.json in $XDG_CONFIG_HOME or ~/.config. FM_UNAVAILABLE: no home is known. */
FM_MUST_USE enum fm_code sy_presets_path(char *path, size_t size, struct fm_error *error);

/*
 * Reads the file. If there is no file, there are no presets. FM_INVALID_REQUEST with the reason invalid_preset:
 * `detail` has the place in the file. FM_UNAVAILABLE: it can't be read. Free `presets` by sy_presets_free, only on
 * success.
 */
FM_MUST_USE enum fm_code sy_presets_read(const char *path, struct sy_presets *presets, struct fm_error *error);
void sy_presets_free(struct sy_presets *presets);

/* How many presets there are, and the name of one of them, which stays owned by `presets`. Pure. */
size_t sy_presets_count(const struct sy_presets *presets);
/* `index` is below the count. */
const char *sy_presets_name(const struct sy_presets *presets, size_t index);

/* The index of the preset with exactly this name; sy_presets_count: there is none. */
size_t sy_presets_find(const struct sy_presets *presets, const char *name);

/* FM_INVALID_REQUEST (empty_string, invalid_name): no preset can have this name. Pure. */
FM_MUST_USE enum fm_code sy_presets_check_name(const char *name, struct fm_error *error);

/*
 * Saves a preset (an object with its "name", borrowed). If the file has a preset of this name, `replace` replaces it;
 * without `replace` the call fails with FM_INVALID_REQUEST and the reason preset_exists. The rest of the file stays.
 * `*replaced`: there was a preset of this name. FM_OVERLOADED: another process writes the file now.
 */
FM_MUST_USE enum fm_code sy_presets_save(const char *path, struct json_object *preset, bool replace, bool *replaced,
                                         struct fm_error *error);

/* Deletes a preset. Fails with the reason unknown_preset if there is none of that name. */
FM_MUST_USE enum fm_code sy_presets_delete(const char *path, const char *name, struct fm_error *error);

#endif
