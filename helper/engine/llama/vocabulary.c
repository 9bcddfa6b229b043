/* llama.cpp's vocabulary as grammars want it: which bytes a token stands for, and which tokens end a turn. */
#include "engine/llama/vocabulary.h"

static bool ends_turn(const void *argument, int32_t token) {
    const struct fm_prompter *prompter = argument;
    return llama_vocab_is_eog(prompter->vocab, token);
}

static size_t piece(const void *argument, int32_t token, bool control, char *text, size_t room) {
    const struct fm_prompter *prompter = argument;
    int32_t len = llama_token_to_piece(prompter->vocab, token, text, (int32_t)room, 0, control);
    return len > 0 ? (size_t)len : 0;
}

static enum fm_code tokenize(const void *argument, const char *text, size_t len, int32_t **tokens, size_t *count,
                             struct fm_error *error) {
    return fm_prompter_text_tokens(argument, text, len, tokens, count, error);
}

struct fm_vocabulary fm_prompter_vocabulary(const struct fm_prompter *prompter) {
    llama_token end = llama_vocab_eot(prompter->vocab);
    return (struct fm_vocabulary){
        .size = llama_vocab_n_tokens(prompter->vocab),
        .end_of_turn = end == LLAMA_TOKEN_NULL ? llama_vocab_eos(prompter->vocab) : end,
        .ends_turn = ends_turn,
        .piece = piece,
        .tokenize = tokenize,
        .argument = prompter,
    };
}
