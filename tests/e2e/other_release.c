/* Another build of llama.cpp, with the version of this one: a library for LD_PRELOAD (Linux, glibc). */
const char *ggml_commit(void) {
    return "0ther";
}
