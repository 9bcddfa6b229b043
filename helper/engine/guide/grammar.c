/*
 * llguidance under grammar.h: a model's vocabulary in llguidance's form, compiling within a time limit, and one grammar
 * for each job.
 */
#include "engine/guide/grammar.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/platform.h"

#include <errno.h>
#include <llguidance.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_MAX 1024 /* bytes of a token's text */

/* The byte that marks a control token in toktrie, the token tree of llguidance: it never occurs in UTF-8. */
#define CONTROL_MARK '\xff'

/* llguidance's default limits are for servers. Its header says how long a unit takes. */
#define LEXER_FUEL      2000000 /* units to build a grammar: 50,000 take a millisecond */
#define STEP_LEXER_FUEL 500000  /* units for one mask: 14,000 take a millisecond */
#define LEXER_STATES    50000   /* 1 to 2 kB each */

/* The limit of processor time for compiling one grammar; also in PROTOCOL.md. */
#define COMPILE_MS 300

/*
 * Limits of the number of threads that compile, including abandoned threads, which llguidance's limits end after a few
 * seconds. If all of them are abandoned, one more thread may compile, up to a limit for memory.
 */
#define COMPILERS_MAX 8
#define THREADS_MAX   32

/*
 * The stack of a thread that compiles, in bytes. llguidance recurses over rules and groups: 28 groups in each of 850
 * rules in a chain, 60 kB of text, overflow 16 MiB. A schema is bounded by its own limits (FM_SCHEMA_REF_DEPTH_MAX).
 */
#define STACK          (16u << 20)
#define STACK_PER_BYTE 4096u
#define STACK_BYTES    65536u

/* Forced tokens that are kept, because each call that asks for them tokenizes all of the forced text again. */
#define FORCED_MAX 16384

struct fm_grammar_vocab {
    struct fm_vocabulary vocabulary;
    void (*wake)(void *);
    void *waiter;
    pthread_mutex_t making; /* held while `tokenizer` is made */
    struct LlgTokenizer *tokenizer;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t compilers;          /* threads that use this vocabulary; under lock */
    size_t waited_for;         /* threads that were not abandoned; engine thread */
    struct fm_grammar *first;  /* the grammars that wait for a thread, the shortest text first */
};

struct fm_grammar {
    struct fm_grammar_vocab *vocab;
    const char *kind; /* static */
    struct fm_grammar *next; /* the next grammar that waits for a thread */
    struct compilation *work; /* NULL: it is compiled */
    struct fm_task *task;     /* the thread that compiles it; NULL: it waits for a thread */
    struct LlgMatcher *matcher;
    uint32_t forced[FORCED_MAX]; /* what must come next, from `forced_at` on */
    size_t forced_count;         /* 0: nobody asked since the last token, or the next token is not forced */
    size_t forced_at;
    char reason[256]; /* the last result of fm_grammar_reason */
};

bool fm_grammar_supported(void) {
    return true;
}

/* ---- the vocabulary ---- */

/* The bytes of `token`, PIECE_MAX at most. A control token's are its name after a mark. */
static size_t piece_of(const struct fm_vocabulary *vocabulary, int32_t token, char *piece) {
    size_t len = vocabulary->piece(vocabulary->argument, token, false, piece, PIECE_MAX);
    if (len > 0) {
        return len;
    }
    piece[0] = CONTROL_MARK;
    len = vocabulary->piece(vocabulary->argument, token, true, piece + 1, PIECE_MAX - 1);
    return len > 0 ? len + 1 : 0;
}

/*
 * How many of `tokens` stand for exactly these bytes. The others may not: some tokenizers add a space in front, or
 * normalize text.
 */
static size_t same_bytes(const struct fm_vocabulary *vocabulary, const int32_t *tokens, size_t count,
                         const uint8_t *bytes, size_t len) {
    char piece[PIECE_MAX];
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        size_t part = piece_of(vocabulary, tokens[i], piece);
        if (part > len - at || memcmp(piece, bytes + at, part) != 0) {
            return i;
        }
        at += part;
    }
    return count;
}

/*
 * Tokenizes text as it comes out of a job, without control tokens. llguidance calls it, on the thread that called
 * llguidance.
 */
static size_t tokenize(const void *user_data, const uint8_t *bytes, size_t len, uint32_t *tokens, size_t room) {
    const struct fm_vocabulary *vocabulary = user_data;
    int32_t *found = NULL;
    size_t count = 0;
    struct fm_error error;
    if (vocabulary->tokenize(vocabulary->argument, (const char *)bytes, len, &found, &count, &error) != FM_OK) {
        fm_log(FM_LOG_ERROR, "forced text: %s", error.detail);
        return 0; /* then llguidance forces no token, and the mask decides */
    }
    count = same_bytes(vocabulary, found, count, bytes, len);
    for (size_t i = 0; i < count && i < room; i++) {
        tokens[i] = (uint32_t)found[i];
    }
    free(found);
    return count;
}

/* All tokens that end a turn, except the first; calloc'd, NULL when out of memory. */
static uint32_t *other_ends(const struct fm_vocabulary *vocabulary, uint32_t *count) {
    uint32_t *ends = calloc((size_t)vocabulary->size, sizeof *ends);
    *count = 0;
    for (int32_t token = 0; ends && token < vocabulary->size; token++) {
        if (token != vocabulary->end_of_turn && vocabulary->ends_turn(vocabulary->argument, token)) {
            ends[(*count)++] = (uint32_t)token;
        }
    }
    return ends;
}

/* `lens` has one entry for each token. False: out of memory. */
static bool read_pieces(const struct fm_vocabulary *vocabulary, uint32_t *lens, struct fm_buf *bytes) {
    char piece[PIECE_MAX];
    for (int32_t token = 0; token < vocabulary->size; token++) {
        lens[token] = (uint32_t)piece_of(vocabulary, token, piece);
        fm_buf_append(bytes, piece, lens[token]);
    }
    return !bytes->failed;
}

static struct LlgTokenizer *make_tokenizer(const struct fm_vocabulary *vocabulary, char *reason, size_t reason_size) {
    struct LlgTokenizer *tokenizer = NULL;
    struct LlgTokenizerInitV2 init = {
        .struct_size = sizeof init,
        .vocab_size = (uint32_t)vocabulary->size,
        .tok_eos = (LlgToken)vocabulary->end_of_turn,
        .tokenize_assumes_string = true,
        .tokenize_fn = tokenize,
        .tokenize_user_data = vocabulary,
    };
    struct fm_buf bytes;
    fm_buf_init(&bytes, PTRDIFF_MAX);
    uint32_t *lens = calloc(init.vocab_size, sizeof *lens);
    uint32_t *ends = other_ends(vocabulary, &init.tok_eos_extra_count);
    if (lens && ends && read_pieces(vocabulary, lens, &bytes)) {
        init.token_lens = lens;
        init.token_bytes = (const uint8_t *)bytes.data;
        init.tok_eos_extra = ends;
        tokenizer = llg_new_tokenizer_v2(&init, reason, reason_size);
    }
    fm_buf_free(&bytes);
    free(ends);
    free(lens);
    return tokenizer;
}

enum fm_code fm_grammar_vocab_new(const struct fm_vocabulary *vocabulary, void (*wake)(void *), void *waiter,
                                  struct fm_grammar_vocab **vocab, struct fm_error *error) {
    *vocab = NULL;
    struct fm_grammar_vocab *made = calloc(1, sizeof *made);
    if (!made || fm_cond_init(&made->changed) != 0) {
        free(made);
        return fm_fail_no_memory(error);
    }
    pthread_mutex_init(&made->making, NULL);
    pthread_mutex_init(&made->lock, NULL);
    made->vocabulary = *vocabulary;
    made->wake = wake;
    made->waiter = waiter;
    *vocab = made;
    return FM_OK;
}

void fm_grammar_vocab_free(struct fm_grammar_vocab *vocab) {
    if (!vocab) {
        return;
    }
    pthread_mutex_lock(&vocab->lock);
    while (vocab->compilers > 0) {
        pthread_cond_wait(&vocab->changed, &vocab->lock);
    }
    pthread_mutex_unlock(&vocab->lock);
    llg_free_tokenizer(vocab->tokenizer);
    pthread_cond_destroy(&vocab->changed);
    pthread_mutex_destroy(&vocab->lock);
    pthread_mutex_destroy(&vocab->making);
    free(vocab);
}

/* ---- compiling ---- */

/*
 * llguidance can't be interrupted while it compiles, and it is hard to see beforehand which grammars take seconds. So
 * each is compiled on a separate thread, with the stack that llguidance's recursion needs. The engine goes on
 * meanwhile, and checks how much processor time the thread has used. A compilation that takes too long is abandoned,
 * and only its job fails. There are at most COMPILERS_MAX such threads, or one thread beside abandoned ones. Later
 * grammars wait until a thread ends; the waiting does not count towards their time limit. The shortest grammar comes
 * first, so that a simple format does not wait for large ones.
 */
struct compilation {
    struct fm_grammar_vocab *vocab;
    const char *kind; /* static */
    char *text;
    struct LlgMatcher *matcher; /* NULL: there is no tokenizer */
    char reason[200];           /* why it failed */
};

static void free_compilation(struct compilation *compilation) {
    if (compilation) {
        llg_free_matcher(compilation->matcher);
        free(compilation->text);
        free(compilation);
    }
}

static struct compilation *new_compilation(struct fm_grammar_vocab *vocab, const char *kind, const char *text) {
    struct compilation *compilation = calloc(1, sizeof *compilation);
    if (!compilation) {
        return NULL;
    }
    *compilation = (struct compilation){.vocab = vocab, .kind = kind, .text = strdup(text), .reason = "out of memory"};
    if (!compilation->text) {
        free_compilation(compilation);
        return NULL;
    }
    return compilation;
}

static void add_tokenizer(void *argument) {
    struct compilation *compilation = argument;
    struct fm_grammar_vocab *vocab = compilation->vocab;
    vocab->tokenizer = make_tokenizer(&vocab->vocabulary, compilation->reason, sizeof compilation->reason);
}

/*
 * The vocabulary's tokenizer; NULL: compilation->reason says why. A separate thread makes it, because that processor
 * time must not count for the compilation.
 */
static struct LlgTokenizer *tokenizer_of(struct compilation *compilation) {
    struct fm_grammar_vocab *vocab = compilation->vocab;
    pthread_mutex_lock(&vocab->making);
    bool there = vocab->tokenizer || fm_run_on_stack(STACK, add_tokenizer, compilation) == 0;
    struct LlgTokenizer *tokenizer = there ? vocab->tokenizer : NULL;
    pthread_mutex_unlock(&vocab->making);
    return tokenizer;
}

static void run_compilation(void *argument) {
    struct compilation *compilation = argument;
    struct LlgTokenizer *tokenizer = tokenizer_of(compilation);
    struct LlgConstraintInit init = {.tokenizer = tokenizer};
    if (!tokenizer) {
        return;
    }
    llg_constraint_init_set_defaults(&init, tokenizer);
    init.log_stderr_level = 0;
    init.log_buffer_level = 0;
    init.limits.initial_lexer_fuel = LEXER_FUEL;
    init.limits.step_lexer_fuel = STEP_LEXER_FUEL;
    init.limits.max_lexer_states = LEXER_STATES;
    init.limits.verbose_errors = false; /* verbose errors would contain the user's text */
    compilation->matcher = llg_new_matcher(&init, compilation->kind, compilation->text);
    bool usable = !llg_matcher_get_error(compilation->matcher) && llg_matcher_compute_mask(compilation->matcher) == 0;
    (void)usable; /* an ambiguous grammar fails, maybe slowly, at the first token; the matcher knows why */
}

/* Notes that the thread of a compilation ends. After this call the vocabulary may be freed. */
static void leave_compilers(struct fm_grammar_vocab *vocab) {
    void (*wake)(void *) = vocab->wake;
    void *waiter = vocab->waiter;
    pthread_mutex_lock(&vocab->lock);
    vocab->compilers--;
    pthread_cond_broadcast(&vocab->changed);
    pthread_mutex_unlock(&vocab->lock);
    if (wake) {
        wake(waiter);
    }
}

static void end_compilation(void *argument) {
    struct compilation *compilation = argument;
    leave_compilers(compilation->vocab);
}

static void drop_compilation(void *argument) {
    struct compilation *compilation = argument;
    struct fm_grammar_vocab *vocab = compilation->vocab;
    free_compilation(compilation);
    leave_compilers(vocab);
}

/* Whether one more thread may begin. The lock is held. */
static bool has_room(const struct fm_grammar_vocab *vocab) {
    return vocab->compilers < (vocab->waited_for > 0 ? COMPILERS_MAX : THREADS_MAX);
}

static bool join_compilers(struct fm_grammar_vocab *vocab) {
    pthread_mutex_lock(&vocab->lock);
    bool joined = has_room(vocab);
    vocab->compilers += joined;
    pthread_mutex_unlock(&vocab->lock);
    return joined;
}

static size_t stack_for(const char *text) {
    size_t len = strlen(text);
    return STACK + STACK_PER_BYTE * (len < STACK_BYTES ? len : STACK_BYTES);
}

/* ---- waiting for a compilation ---- */

static void join_queue(struct fm_grammar *grammar) {
    struct fm_grammar **link = &grammar->vocab->first;
    size_t len = strlen(grammar->work->text);
    while (*link && strlen((*link)->work->text) <= len) {
        link = &(*link)->next;
    }
    grammar->next = *link;
    *link = grammar;
}

/* The pointer to `grammar` in the queue, or the queue's last pointer. */
static struct fm_grammar **find_queued(struct fm_grammar *grammar) {
    struct fm_grammar **link = &grammar->vocab->first;
    while (*link && *link != grammar) {
        link = &(*link)->next;
    }
    return link;
}

static bool is_queued(struct fm_grammar *grammar) {
    return *find_queued(grammar) != NULL;
}

static void leave_queue(struct fm_grammar *grammar) {
    struct fm_grammar **link = find_queued(grammar);
    if (*link) {
        *link = grammar->next;
    }
}

/* Starts threads for the waiting grammars, as many as are allowed. */
static void start_compiling(struct fm_grammar_vocab *vocab) {
    static const struct fm_task_calls calls = {run_compilation, end_compilation, drop_compilation};
    while (vocab->first && join_compilers(vocab)) {
        struct fm_grammar *grammar = vocab->first;
        leave_queue(grammar);
        if (fm_task_start(stack_for(grammar->work->text), &calls, grammar->work, &grammar->task) != 0) {
            leave_compilers(vocab);
        } else {
            vocab->waited_for++;
        }
    }
}

/* Ends the task of the thread, which has finished or is abandoned. False: the thread still works. */
static bool end_task(struct fm_grammar *grammar) {
    grammar->vocab->waited_for--;
    bool done = fm_task_end(grammar->task);
    grammar->task = NULL;
    return done;
}

/* ---- reasons ---- */

/* `reason`, or an explanation if only somebody who knows llguidance would understand `reason`. */
static const char *translate(const char *reason) {
    static const char too_large[] =
        "it is too large or too complex; make it smaller: fewer or simpler patterns, a shorter maxLength";
    static const char *const words[][2] = {
        {"NoExtension", "no text fits it"},
        {"lookarounds not supported", "\\b, and ^ or $ amid the text, are not supported; leave them out"},
        {"too many expressions", too_large},
        {"too many states", too_large},
        {"fuel exhausted", too_large},
        {"lexer precomputation failed", too_large},
        {"Unable to determine if regex is empty", too_large},
        {"schema too large", too_large},
        {"stack level exceeded", too_large},
        {" items; max is ", "at one point it goes on in too many ways; give it fewer optional properties or alternatives"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(reason, words[i][0])) {
            return words[i][1];
        }
    }
    return reason;
}

/* `reason` without the place in a Lark grammar with which it may begin: at LINE(COLUMN), counted from 1. */
static const char *read_place(const char *reason, long *line, long *column) {
    char *end;
    *line = strtol(strncmp(reason, "at ", 3) == 0 ? reason + 3 : reason, &end, 10);
    *column = *line > 0 && *end == '(' ? strtol(end + 1, &end, 10) : 0;
    return *column > 0 && strncmp(end, "): ", 3) == 0 ? end + 3 : reason;
}

/* `reason` without `head` at its beginning; NULL: `reason` does not begin with `head`. */
static const char *after(const char *reason, const char *head) {
    size_t len = strlen(head);
    return strncmp(reason, head, len) == 0 ? reason + len : NULL;
}

/*
 * Makes one line of llguidance's message. The message first shows the whole pattern, and the fault only in a later
 * line.
 */
static const char *explain(struct fm_grammar *grammar, const char *said) {
    char place[64] = "";
    long line;
    long column;
    const char *reason = read_place(said, &line, &column);
    if (reason != said && strcmp(grammar->kind, "lark") == 0) { /* other grammars are not the host's text */
        snprintf(place, sizeof place, "line %ld, column %ld: ", line, column);
    }
    const char *pattern = after(reason, "invalid regex ");
    const char *schema = after(reason, "failed to compile JSON schema: ");
    const char *fault = pattern ? strstr(pattern, "\nerror: ") : NULL;
    reason = schema ? schema : reason;
    reason = fault ? fault + strlen("\nerror: ") : translate(reason);
    snprintf(grammar->reason, sizeof grammar->reason, "%s%s%.*s", place,
             pattern  ? "invalid regular expression: "
             : schema ? "invalid JSON schema: "
                      : "",
             (int)strcspn(reason, "\n"), reason);
    return grammar->reason;
}

/* Takes the result when the thread has finished. */
static enum fm_code take_compiled(struct fm_grammar *grammar, struct fm_error *error) {
    struct compilation *work = grammar->work;
    enum fm_code code = FM_OK;
    grammar->matcher = work->matcher;
    if (!work->matcher) {
        code = fm_fail(error, FM_INTERNAL, "the vocabulary can't be used for a format: %s", work->reason);
    }
    work->matcher = NULL;
    grammar->work = NULL;
    free_compilation(work);
    if (code == FM_OK && (llg_matcher_is_error(grammar->matcher) || !llg_matcher_get_mask(grammar->matcher))) {
        code = fm_fail(error, FM_INVALID_REQUEST, "the %s can't be used: %s",
                       strcmp(grammar->kind, "json_schema") == 0 ? "schema" : "grammar", fm_grammar_reason(grammar));
    }
    return code;
}

/* Waits for the thread that compiles the grammar. */
static enum fm_code wait_for_task(struct fm_grammar *grammar, int64_t until_ms, struct fm_error *error) {
    if (fm_task_wait(grammar->task, until_ms)) {
        (void)end_task(grammar);
        return take_compiled(grammar, error);
    }
    return fm_task_cpu_ms(grammar->task) < COMPILE_MS
               ? FM_OK
               : fm_fail(error, FM_INVALID_REQUEST,
                         "it takes more than %d ms to compile; make it smaller, or less nested", COMPILE_MS);
}

/* Waits until one more thread is allowed. */
static void wait_for_compilers(struct fm_grammar_vocab *vocab, int64_t until_ms) {
    pthread_mutex_lock(&vocab->lock);
    while (!has_room(vocab) && fm_now_ms() < until_ms) {
        fm_cond_wait_until(&vocab->changed, &vocab->lock, until_ms);
    }
    pthread_mutex_unlock(&vocab->lock);
}

enum fm_code fm_grammar_wait(struct fm_grammar *grammar, int64_t until_ms, struct fm_error *error) {
    enum fm_code code = FM_OK;
    int64_t now = fm_now_ms();
    do {
        int64_t next = now + FM_GRAMMAR_POLL_MS < until_ms ? now + FM_GRAMMAR_POLL_MS : until_ms;
        start_compiling(grammar->vocab);
        if (grammar->task) {
            code = wait_for_task(grammar, next, error);
        } else if (is_queued(grammar)) {
            wait_for_compilers(grammar->vocab, next);
        } else {
            code = fm_fail_no_memory(error); /* the compilation's thread could not be started */
        }
        now = fm_now_ms();
    } while (code == FM_OK && grammar->work && now < until_ms);
    return code;
}

/* ---- grammars ---- */

enum fm_code fm_grammar_new(struct fm_grammar_vocab *vocab, const char *kind, const char *text,
                            struct fm_grammar **grammar, struct fm_error *error) {
    struct fm_grammar *made = calloc(1, sizeof *made);
    *grammar = NULL;
    if (!made) {
        return fm_fail_no_memory(error);
    }
    made->vocab = vocab;
    made->kind = kind;
    made->work = new_compilation(vocab, kind, text);
    if (!made->work) {
        free(made);
        return fm_fail_no_memory(error);
    }
    join_queue(made);
    start_compiling(vocab);
    *grammar = made;
    return FM_OK;
}

void fm_grammar_free(struct fm_grammar *grammar) {
    if (!grammar) {
        return;
    }
    leave_queue(grammar);
    if (!grammar->task || end_task(grammar)) {
        free_compilation(grammar->work);
    }
    llg_free_matcher(grammar->matcher);
    free(grammar);
}

bool fm_grammar_compiles(const struct fm_grammar *grammar) {
    return grammar->work != NULL;
}

bool fm_grammar_allows(struct fm_grammar *grammar, int32_t token) {
    uint32_t wanted = (uint32_t)token;
    return llg_matcher_validate_tokens(grammar->matcher, &wanted, 1) == 1;
}

const uint32_t *fm_grammar_mask(struct fm_grammar *grammar) {
    return llg_matcher_compute_mask(grammar->matcher) == 0 ? llg_matcher_get_mask(grammar->matcher) : NULL;
}

bool fm_grammar_take(struct fm_grammar *grammar, int32_t token) {
    bool forced = grammar->forced_count && grammar->forced[grammar->forced_at] == (uint32_t)token;
    grammar->forced_at += forced;
    if (!forced || grammar->forced_at == grammar->forced_count) {
        grammar->forced_at = 0;
        grammar->forced_count = 0;
    }
    return llg_matcher_consume_token(grammar->matcher, (uint32_t)token) == 0;
}

bool fm_grammar_restart(struct fm_grammar *grammar) {
    grammar->forced_at = 0;
    grammar->forced_count = 0;
    return llg_matcher_reset(grammar->matcher) == 0;
}

int32_t fm_grammar_forced(struct fm_grammar *grammar) {
    if (grammar->forced_count == 0) {
        int32_t count = llg_matcher_compute_ff_tokens(grammar->matcher, grammar->forced, FORCED_MAX);
        grammar->forced_at = 0;
        grammar->forced_count = count > 0 ? (size_t)count : 0;
    }
    return grammar->forced_count ? (int32_t)grammar->forced[grammar->forced_at] : FM_TOKEN_NONE;
}

bool fm_grammar_complete(const struct fm_grammar *grammar) {
    return llg_matcher_is_stopped(grammar->matcher) && !llg_matcher_is_error(grammar->matcher);
}

bool fm_grammar_accepts(struct fm_grammar *grammar) {
    return llg_matcher_is_accepting(grammar->matcher);
}

const char *fm_grammar_reason(struct fm_grammar *grammar) {
    const char *reason = llg_matcher_get_error(grammar->matcher);
    return reason ? explain(grammar, reason) : "no text fits it";
}
