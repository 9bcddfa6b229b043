/*
 * usage: full_weights IN.gguf OUT.gguf
 *
 * Writes a quantized model's weights as 32-bit floats. With quantized weights, the CPU rounds the other factor to 8
 * bits; with floats it does not, so that a GPU's text can be compared token by token.
 */
#include <llama.h>
#include <stdio.h>

int main(int argc, char *argv[]) {
    if (argc != 3) {
        fprintf(stderr, "usage: full_weights IN.gguf OUT.gguf\n");
        return 64;
    }
    struct llama_model_quantize_params params = llama_model_quantize_default_params();
    params.ftype = LLAMA_FTYPE_ALL_F32;
    params.allow_requantize = true;
    return llama_model_quantize(argv[1], argv[2], &params) == 0 ? 0 : 1;
}
