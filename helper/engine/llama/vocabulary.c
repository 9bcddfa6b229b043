/* llama.cpp's vocabulary in the form that grammars need: the bytes of each token, and which tokens end a turn. */
#include "engine/llama/vocabulary.h"
#include "base/buf.h"
#include "engine/llama/tokens.h"

#include <stdint.h>
#include <string.h>

static bool ends_turn(const void *argument, int32_t token) {
    const struct fm_prompter *prompter = argument;
    return llama_vocab_is_eog(prompter->vocab, token) || token == prompter->text_end;
}

static size_t piece(const void *argument, int32_t token, bool control, char *text, size_t room) {
    const struct fm_prompter *prompter = argument;
    int32_t len = fm_token_piece(prompter->vocab, token, control, text, (int32_t)room);
    return len > 0 ? (size_t)len : 0;
}

/* How many of `tokens` come before the text that follows the line end at the beginning. */
static size_t after_line(const struct fm_prompter *prompter, const int32_t *tokens, size_t count) {
    char text[8];
    size_t at = 0;
    while (at < count && !(piece(prompter, tokens[at], false, text, sizeof text) == 1 && text[0] == '\n')) {
        at++;
    }
    return at + (at < count);
}

/* Tokenizers like Llama 2's put a space in front of a text, but not after a line end. */
static enum fm_code tokenize(const void *argument, const char *text, size_t len, int32_t **tokens, size_t *count,
                             struct fm_error *error) {
    const struct fm_prompter *prompter = argument;
    if (llama_vocab_type(prompter->vocab) != LLAMA_VOCAB_TYPE_SPM) {
        return fm_prompter_text_tokens(prompter, text, len, tokens, count, error);
    }
    struct fm_buf line;
    fm_buf_init(&line, PTRDIFF_MAX);
    fm_buf_append(&line, "\n", 1);
    fm_buf_append(&line, text, len);
    enum fm_code code = line.failed ? fm_fail_no_memory(error)
                                    : fm_prompter_text_tokens(prompter, line.data, line.len, tokens, count, error);
    fm_buf_free(&line);
    if (code == FM_OK) {
        size_t first = after_line(prompter, *tokens, *count);
        *count -= first;
        memmove(*tokens, *tokens + first, *count * sizeof **tokens);
    }
    return code;
}

static size_t tag(const void *argument, const char *text, size_t len, int32_t *token) {
    const struct fm_control_text *found = fm_prompter_tag(argument, text, len);
    *token = found ? found->token : FM_TOKEN_NONE;
    return found ? found->len : 0;
}

struct fm_vocabulary fm_prompter_vocabulary(const struct fm_prompter *prompter) {
    llama_token end = llama_vocab_eot(prompter->vocab);
    return (struct fm_vocabulary){
        .size = llama_vocab_n_tokens(prompter->vocab),
        .end_of_turn = end == LLAMA_TOKEN_NULL ? llama_vocab_eos(prompter->vocab) : end,
        .ends_turn = ends_turn,
        .piece = piece,
        .tokenize = tokenize,
        .tag = tag,
        .argument = prompter,
    };
}
