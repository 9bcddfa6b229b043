#include "engine/llama/gguf_file.h"

#include <gguf.h>
#include <stddef.h>
#include <sys/stat.h>

enum fm_gguf_state fm_gguf_look(const char *path, int64_t *size, int64_t *needed) {
    const struct gguf_init_params params = {.no_alloc = true};
    struct stat info;
    *size = 0;
    *needed = 0;
    struct gguf_context *header = gguf_init_from_file(path, params);
    if (!header) {
        return FM_GGUF_NO_HEADER;
    }
    uint64_t end = 0;
    for (int64_t i = 0; i < gguf_get_n_tensors(header); i++) {
        uint64_t last = gguf_get_tensor_offset(header, i) + gguf_get_tensor_size(header, i);
        end = last > end ? last : end;
    }
    *needed = (int64_t)(gguf_get_data_offset(header) + end);
    gguf_free(header);
    *size = stat(path, &info) == 0 ? (int64_t)info.st_size : 0;
    return *size < *needed ? FM_GGUF_CUT : FM_GGUF_WHOLE;
}
