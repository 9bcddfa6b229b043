/* Pretends to be another build of llama.cpp with the same version: a library for LD_PRELOAD (Linux, glibc). */
const char *ggml_commit(void) {
    return "0ther";
}
