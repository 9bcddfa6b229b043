/* Moving the weights into huge pages: weights.h. */
#include "engine/llama/weights.h"
#include "base/file.h"
#include "engine/llama/context.h"

#define MOVED_PART 8 /* a file's copy may take at most 1/MOVED_PART of the usable memory */
#define QUIET_MS   5 /* without a job before the first page moves: soon after a load a job comes */

void fm_weights_add(struct fm_huge_pages *pages, const char *path) {
    struct fm_file_info file;
    if (fm_file_examine(path, &file) == 0 && (double)file.size <= fm_context_usable_memory() / MOVED_PART) {
        fm_huge_pages_find(pages, path);
    }
}

struct fm_kit_job *fm_weights_wait(struct fm_huge_pages *pages, struct fm_kit *kit) {
    struct fm_kit_job *job = pages->count > 0 ? fm_kit_take_within(kit, QUIET_MS) : NULL;
    while (!job && !fm_kit_ending(kit) && fm_huge_pages_next(pages)) {
        job = fm_kit_take_within(kit, 0);
    }
    return job ? job : fm_kit_take(kit, true);
}
