/*
 * Text to tokens: tokens.h.
 *
 * Most tokenizers split text with std::regex, which recurses once for each character of a match. None of their patterns
 * matches more than a line with the blank lines and the indent after it. So the longest such part of the text
 * determines how much stack is needed.
 */
#include "engine/llama/tokens.h"
#include "base/platform.h"
#include "engine/kit/kit.h"
#include "engine/llama/bridge.h"

#include <stdint.h>
#include <string.h>

#define PIECE_SIZE 128 /* bytes of a token that is searched */

#define TOKENS_MAX (64u * 1024u * 1024u) /* at most one for each byte; a request has at most 10 MB */

/* docs/limits.md names this limit. It needs at most 256 MiB of stack, which the kernel provides as it is used. */
#define LINE_CHARACTERS_MAX 524288

#define STACK_PER_CHARACTER 512                                      /* bytes; GCC's library takes 365 */
#define LINE_ON_OUR_STACK   (FM_KIT_STACK / 2 / STACK_PER_CHARACTER) /* characters; longer ones get another stack */

static const char *const shown[] = {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>"};

bool fm_token_is_control(const struct llama_vocab *vocab, llama_token token) {
    const enum llama_token_attr attr = llama_vocab_get_attr(vocab, token);
    bool control = (attr & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) != 0;
    for (size_t i = 0; i < sizeof shown / sizeof shown[0] && (attr & LLAMA_TOKEN_ATTR_USER_DEFINED) && !control; i++) {
        control = strcmp(llama_vocab_get_text(vocab, token), shown[i]) == 0;
    }
    return control;
}

llama_token fm_token_of(const struct llama_vocab *vocab, const char *text) {
    llama_token token;
    return llama_tokenize(vocab, text, (int32_t)strlen(text), &token, 1, false, true) == 1 ? token : LLAMA_TOKEN_NULL;
}

int32_t fm_token_piece(const struct llama_vocab *vocab, llama_token token, bool control, char *text, int32_t room) {
    bool is_none = !control && fm_token_is_control(vocab, token);
    return is_none ? 0 : llama_token_to_piece(vocab, token, text, room, 0, control);
}

bool fm_token_is_special(const struct llama_vocab *vocab, llama_token token) {
    return llama_vocab_get_attr(vocab, token) & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_USER_DEFINED);
}

/*
 * Whether the first `len` bytes of `text` are the text of `token`. Some tokenizers add a space at the beginning of a
 * text.
 */
static bool is_piece(const struct llama_vocab *vocab, llama_token token, const char *text, size_t len) {
    char piece[PIECE_SIZE];
    return fm_token_piece(vocab, token, true, piece, sizeof piece) == (int32_t)len && memcmp(piece, text, len) == 0;
}

size_t fm_tokens_beginning(const struct llama_vocab *vocab, const char *text, size_t len, llama_token *tokens,
                           size_t room) {
    size_t count = 0;
    for (size_t i = 1; i <= len && count < room; i++) {
        llama_token token;
        if (llama_tokenize(vocab, text, (int32_t)i, &token, 1, false, true) == 1 && is_piece(vocab, token, text, i)) {
            tokens[count++] = token;
            room = fm_token_is_special(vocab, token) ? count : room;
        }
    }
    return count;
}

void fm_tokens_init(struct fm_tokens *tokens, const struct llama_vocab *vocab, size_t longest_token, size_t context) {
    *tokens = (struct fm_tokens){.vocab = vocab, .longest_token = longest_token, .context = context};
    fm_buf_init(&tokens->buf, TOKENS_MAX * sizeof(llama_token));
}

size_t fm_tokens_count(const struct fm_tokens *tokens) {
    return tokens->buf.len / sizeof(llama_token);
}

enum fm_code fm_tokens_check(const struct fm_tokens *tokens, size_t count, bool or_more, struct fm_error *error) {
    if (count < tokens->context || (tokens->embeds && count == tokens->context)) {
        return FM_OK;
    }
    return fm_fail(error, FM_CONTEXT_OVERFLOW, "the input has %s%zu tokens, the context holds %zu%s",
                   or_more ? "at least " : "", count, tokens->context,
                   tokens->embeds ? "" : " with at least one of output");
}

/*
 * Characters of the longest line, with the blank lines and the indent after it: patterns may match the white space on
 * both sides of a line's end.
 */
static size_t longest_line(const char *text, size_t len) {
    size_t longest = 0;
    size_t current = 0;
    bool ended = false;
    for (size_t i = 0; i < len; i++) {
        bool space = text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r');
        if (ended && !space) {
            current = 0;
            ended = false;
        }
        ended = ended || text[i] == '\n';
        current += ((unsigned char)text[i] & 0xC0) != 0x80; /* not inside a UTF-8 sequence */
        longest = current > longest ? current : longest;
    }
    return longest;
}

struct piece {
    struct fm_tokens *tokens;
    const char *text;
    size_t len;
    enum fm_tokens_kind kind;
    enum fm_code code;
    struct fm_error *error;
};

static void tokenize_piece(void *argument) {
    struct piece *piece = argument;
    struct fm_buf *tokens = &piece->tokens->buf;
    bool at_ends = piece->kind == FM_TOKENS_INPUT || piece->kind == FM_TOKENS_PROMPT;
    bool parse_control = piece->kind == FM_TOKENS_MARKS || piece->kind == FM_TOKENS_PROMPT;
    /* Each token has at least one byte, except those that are added at the ends. */
    size_t room = piece->len + 8;
    if (!fm_buf_reserve(tokens, room * sizeof(llama_token))) {
        piece->code = fm_fail_no_memory(piece->error);
        return;
    }
    /* Allocated memory is aligned, and `len` is a multiple of a token's size. */
    llama_token *end = (llama_token *)(void *)(tokens->data + tokens->len);
    size_t count;
    piece->code = fm_tokenize(piece->tokens->vocab, piece->text, piece->len, at_ends, parse_control, end, room, &count,
                              piece->error);
    tokens->len += count * sizeof(llama_token);
}

/* Runs the tokenizer with the stack that a line of this length needs. */
static enum fm_code run_piece(struct piece *piece, size_t line) {
    if (line <= LINE_ON_OUR_STACK) {
        tokenize_piece(piece);
        return piece->code;
    }
    size_t stack = FM_KIT_STACK + line * STACK_PER_CHARACTER;
    return fm_run_on_stack(stack, tokenize_piece, piece) == 0 ? piece->code : fm_fail_no_memory(piece->error);
}

/*
 * Fails because a line is too long to tokenize. Usually the text does not fit either: if the beginning of the text
 * shows that, fails with that error instead.
 */
static enum fm_code refuse_line(struct piece *piece, size_t line) {
    size_t characters = 0;
    size_t len = 0;
    while (characters < LINE_CHARACTERS_MAX) { /* there are more characters */
        characters += ((unsigned char)piece->text[++len] & 0xC0) != 0x80;
    }
    piece->len = len;
    enum fm_code code = run_piece(piece, LINE_CHARACTERS_MAX);
    code = code ? code : fm_tokens_check(piece->tokens, fm_tokens_count(piece->tokens), true, piece->error);
    return code ? code
                : fm_fail(piece->error, FM_INVALID_REQUEST,
                          "a line of the input has %zu characters, %d are the most: break it into lines", line,
                          LINE_CHARACTERS_MAX);
}

enum fm_code fm_tokens_add(struct fm_tokens *tokens, const char *text, size_t len, enum fm_tokens_kind kind,
                           struct fm_error *error) {
    struct piece piece = {tokens, text, len, kind, FM_OK, error};
    size_t least = fm_tokens_count(tokens) + (tokens->longest_token ? len / tokens->longest_token : 0);
    enum fm_code code = fm_tokens_check(tokens, least, true, error);
    if (code != FM_OK) {
        return code;
    }
    size_t line = longest_line(text, len);
    if (len > INT32_MAX - 8) {
        return fm_fail(error, FM_INVALID_REQUEST, "the prompt is longer than 2 GiB");
    }
    return line > LINE_CHARACTERS_MAX ? refuse_line(&piece, line) : run_piece(&piece, line);
}

void fm_tokens_append(struct fm_tokens *tokens, llama_token token) {
    fm_buf_append(&tokens->buf, &token, sizeof token);
}

enum fm_code fm_tokens_take(struct fm_tokens *tokens, enum fm_code code, llama_token **list, size_t *count) {
    *list = NULL;
    *count = 0;
    if (code != FM_OK) {
        fm_buf_free(&tokens->buf);
        return code;
    }
    *list = (llama_token *)(void *)tokens->buf.data;
    *count = fm_tokens_count(tokens);
    return FM_OK;
}
