/* The memory's life. */
#include "memory/memory.h"
#include "memory/internal.h"

#include <stdlib.h>
#include <string.h>

enum fm_code gw_memory_open(const struct gw_memory_options *options, struct gw_memory **out, struct fm_error *error) {
    struct gw_memory *memory = calloc(1, sizeof *memory);
    if (!memory) {
        return fm_fail_no_memory(error);
    }
    memory->options = *options;
    memory->options.database = strdup(options->database);
    memory->options.folder = strdup(options->folder);
    memory->options.model = strdup(options->model);
    memory->end = &memory->first;
    memory->begin_anew = gw_memory_index_anew;
    const struct gw_worker_options worker = {.loop = options->loop, .run = gw_memory_run_jobs, .context = memory};
    enum fm_code code = memory->options.database && memory->options.folder && memory->options.model
                            ? gw_worker_open(&worker, &memory->worker, error)
                            : fm_fail_no_memory(error);
    if (code != FM_OK) {
        gw_memory_free(memory);
        return code;
    }
    *out = memory;
    return FM_OK;
}

static void on_worker_gone(void *context) {
    struct gw_memory *memory = context;
    gw_memory_db_close(memory->db);
    memory->worker_gone = true;
    gw_memory_leave(memory);
}

void gw_memory_close(struct gw_memory *memory) {
    memory->closing = true;
    gw_memory_drop_tasks(memory);
    gw_worker_close(memory->worker, on_worker_gone, memory);
}
