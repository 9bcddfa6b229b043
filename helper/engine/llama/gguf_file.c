/* Reads a GGUF file's header with ggml's reader: whether the file is complete, and the sum of an array in it. */
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

int64_t fm_gguf_sum(const char *path, const char *key) {
    const struct gguf_init_params params = {.no_alloc = true};
    struct gguf_context *header = gguf_init_from_file(path, params);
    int64_t sum = 0;
    if (!header) {
        return 0;
    }
    int64_t at = gguf_find_key(header, key);
    bool array = at >= 0 && gguf_get_kv_type(header, at) == GGUF_TYPE_ARRAY;
    enum gguf_type type = array ? gguf_get_arr_type(header, at) : GGUF_TYPE_COUNT;
    if (type == GGUF_TYPE_UINT32 || type == GGUF_TYPE_INT32) {
        const uint32_t *items = gguf_get_arr_data(header, at);
        for (size_t i = 0; i < gguf_get_arr_n(header, at); i++) {
            sum += items[i];
        }
    }
    gguf_free(header);
    return sum;
}
