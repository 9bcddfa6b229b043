/*
 * Makes a model say what a test wants: a library for LD_PRELOAD (Linux, glibc). FM_SCRIPTED names a file that the test
 * maps: struct script. The logits make the next part of the script likely. Sampler, grammar and parser are the real
 * ones. If they choose other tokens than the script's, the answer differs from the script.
 *
 * Of the tokens that continue the script, the longest is the likeliest. If a grammar forbids it, the answer continues
 * with a shorter token, or leaves white space out. After the script, and after an answer has left the script, tokens
 * that end the turn are likely. An answer that differs only in white space has not left the script. The text of a
 * special token in the script stands for that token.
 *
 * Works for one job at a time, in one sequence, without drafts.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <llama.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define POSITIONS   (1u << 17)
#define SCRIPT_MAX  (1u << 16) /* bytes */
#define PIECES_MAX  (4u << 20) /* bytes of all tokens */
#define UNLIKELY    (-1e6f)
#define PER_BYTE    1e3f
#define WITHOUT     1e-2f /* a factor for tokens that leave white space out */
#define ENDS        1e-1f

/* The test writes the other members, and a new number into the first one. */
struct script {
    uint32_t number; /* the script's number; 0: none, the model is not changed */
    uint32_t len;
    uint32_t left; /* 1: the answer differs from the script; the engine writes it */
    uint32_t reserved;
    char text[SCRIPT_MAX]; /* with control tokens as their texts */
};

static struct {
    struct script *script;
    uint32_t number;               /* number of the script that runs now */
    int32_t prompt;                /* length of its prompt in positions */
    int32_t last;                  /* the last position that was computed */
    llama_token tokens[POSITIONS]; /* the tokens by their position */
    char *pieces;                  /* the texts of all tokens, one after another */
    uint32_t *ends;                /* where each token's text ends in `pieces` */
    bool *special;                 /* which tokens are special */
    bool begins[SCRIPT_MAX + 1];   /* places in the script where a special token begins */
} scripted;

static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        abort();
    }
    return found;
}

__attribute__((constructor)) static void map_script(void) {
    const char *path = getenv("FM_SCRIPTED");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *map = fd >= 0 ? mmap(NULL, sizeof *scripted.script, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    scripted.script = map == MAP_FAILED ? NULL : map;
}

/* ---- what has been said ---- */

int32_t llama_decode(struct llama_context *context, struct llama_batch batch) {
    int32_t (*decode)(struct llama_context *, struct llama_batch);
    *(void **)&decode = next("llama_decode");
    for (int32_t i = 0; i < batch.n_tokens && batch.token && batch.pos; i++) {
        if ((uint32_t)batch.pos[i] < POSITIONS) {
            scripted.tokens[batch.pos[i]] = batch.token[i];
            scripted.last = batch.pos[i];
        }
    }
    return decode(context, batch);
}

static void read_pieces(const struct llama_vocab *vocab) {
    int32_t count = llama_vocab_n_tokens(vocab);
    scripted.pieces = malloc(PIECES_MAX);
    scripted.ends = calloc((size_t)count, sizeof *scripted.ends);
    scripted.special = calloc((size_t)count, sizeof *scripted.special);
    if (!scripted.pieces || !scripted.ends || !scripted.special) {
        abort();
    }
    uint32_t len = 0;
    for (llama_token token = 0; token < count; token++) {
        int32_t got = llama_token_to_piece(vocab, token, scripted.pieces + len, (int32_t)(PIECES_MAX - len), 0, true);
        len += got > 0 ? (uint32_t)got : 0;
        scripted.ends[token] = len;
        scripted.special[token] =
            (llama_vocab_get_attr(vocab, token) & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_USER_DEFINED)) != 0;
    }
}

static const char *piece_of(llama_token token, size_t *len) {
    uint32_t start = token > 0 ? scripted.ends[token - 1] : 0;
    *len = scripted.ends[token] - start;
    return scripted.pieces + start;
}

/* Whether the text of `token` is in the script at `at`. */
static bool stands_at(const struct script *script, size_t at, llama_token token) {
    size_t len;
    const char *piece = piece_of(token, &len);
    return len > 0 && len <= script->len - at && memcmp(piece, script->text + at, len) == 0;
}

static void find_specials(const struct script *script, int32_t count) {
    memset(scripted.begins, 0, sizeof scripted.begins);
    for (llama_token token = 0; token < count; token++) {
        for (size_t at = 0; scripted.special[token] && at < script->len; at++) {
            scripted.begins[at] = scripted.begins[at] || stands_at(script, at, token);
        }
    }
}

static bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static size_t after_space(const struct script *script, size_t at) {
    while (at < script->len && is_space(script->text[at])) {
        at++;
    }
    return at;
}

/* Moves `*at` in the script past `piece`, apart from white space. */
static bool follow(const struct script *script, size_t *at, const char *piece, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (*at < script->len && piece[i] == script->text[*at]) {
            ++*at;
        } else if (!is_space(piece[i])) {
            *at = after_space(script, *at);
            if (*at == script->len || piece[i] != script->text[*at]) {
                return false;
            }
            ++*at;
        }
    }
    return true;
}

/* Returns how many bytes of the script the answer has so far; -1: the answer differs from the script. */
static int64_t said(const struct script *script) {
    size_t at = 0;
    for (int32_t i = scripted.prompt; i <= scripted.last; i++) {
        size_t len;
        const char *piece = piece_of(scripted.tokens[i], &len);
        if (!follow(script, &at, piece, len)) {
            return -1;
        }
    }
    return (int64_t)at;
}

/* ---- what is said next ---- */

/* Makes tokens likely that continue the script from `at` on. */
static void favour(const struct script *script, size_t at, float *logits, int32_t count, float weight) {
    size_t whole = 1; /* how many bytes a token that is not special may have */
    while (at + whole < script->len && !scripted.begins[at + whole]) {
        whole++;
    }
    for (llama_token token = 0; token < count; token++) {
        size_t len;
        bool special = scripted.special[token];
        (void)piece_of(token, &len);
        if (logits[token] < 0 && (special || len <= whole) && stands_at(script, at, token)) {
            logits[token] = weight * (float)len * (special || !scripted.begins[at] ? 1 : WITHOUT);
        }
    }
}

static void fill(const struct script *script, size_t at, float *logits, const struct llama_vocab *vocab) {
    int32_t count = llama_vocab_n_tokens(vocab);
    size_t after = after_space(script, at);
    for (llama_token token = 0; token < count; token++) {
        logits[token] = after == script->len && llama_vocab_is_eog(vocab, token) ? ENDS : UNLIKELY;
    }
    favour(script, at, logits, count, PER_BYTE);
    favour(script, after, logits, count, PER_BYTE * WITHOUT);
}

float *llama_get_logits_ith(struct llama_context *context, int32_t index) {
    float *(*get)(struct llama_context *, int32_t);
    *(void **)&get = next("llama_get_logits_ith");
    float *logits = get(context, index);
    struct script *script = scripted.script;
    if (!logits || !script || __atomic_load_n(&script->number, __ATOMIC_ACQUIRE) == 0) {
        return logits;
    }
    const struct llama_vocab *vocab = llama_model_get_vocab(llama_get_model(context));
    if (!scripted.ends) {
        read_pieces(vocab);
    }
    if (script->number != scripted.number) {
        scripted.number = script->number;
        scripted.prompt = scripted.last + 1;
        find_specials(script, llama_vocab_n_tokens(vocab));
    }
    int64_t at = said(script);
    script->left = at < 0;
    fill(script, at < 0 ? script->len : (size_t)at, logits, vocab);
    return logits;
}
