/*
 * A library with the ABI of Apple's C bindings, and no model: for tests of fm-engine-apple where there is no Mac. Its
 * callbacks come from eight threads, in any order between tasks. It counts references and strings, and ends the process
 * with status 97 and a line on stderr when a rule of helper/engine/apple/bindings.h is broken; at the end of the
 * process too, when something is left.
 *
 * What a prompt makes it do is in script.c. FM_ENGINE_STANDIN of the environment has words, with "," between them:
 *
 *     calls        a tool is called by itself, unless the prompt is a script or tools have answered
 *     reason=N     the model is not available, for the reason N
 *     nocount      an old macOS: tokens can't be counted
 *     context=N    tokens (default 4096)
 */
#ifndef FM_TESTS_APPLE_STANDIN_H
#define FM_TESTS_APPLE_STANDIN_H

#include "base/buf.h"
#include "base/compiler.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT        __attribute__((visibility("default")))
#define STATUS_BROKEN 97
#define TEXTS_MAX     (64u << 20)
#define WAITING_MAX   128
#define SESSION_TOOLS 128
#define ENTRY_TOKENS  3 /* of each entry of a transcript, besides its words */

struct json_object;

enum kind { MODEL = 1, SESSION, PROMPT, STREAM, TASK, SCHEMA, PROPERTY, TOOL, CONTENT };

/* What begins each object. */
struct object {
    unsigned magic;
    enum kind kind;
    atomic_int refs;
};

typedef void text_fn(int status, const char *text, size_t len, void *user);
typedef void content_fn(int status, const void *content, void *user);
typedef void count_fn(int status, int tokens, const char *error, void *user);
typedef void tool_fn(const void *arguments, unsigned call);

struct tool {
    struct object object;
    char *name;
    tool_fn *callback;
    char *schema; /* of its arguments, as plain JSON */
    pthread_mutex_t lock;
    unsigned calls;                /* made so far */
    unsigned waiting[WAITING_MAX]; /* whose callback has returned */
    size_t waiting_count;
};

struct session {
    struct object object;
    char *transcript; /* JSON */
    struct tool *tools[SESSION_TOOLS];
    size_t tool_count;
    atomic_int responding;
};

struct content {
    struct object object;
    char *json;
};

/* One task. A worker has it, or the queue; `cancelled` is anybody's. */
struct run {
    struct run *next;
    enum { RUN_STREAM, RUN_SCHEMA, RUN_COUNT } kind;
    struct session *session; /* retained */
    char *prompt;
    char *schema;
    int64_t max_tokens; /* 0: none */
    void *user;
    text_fn *on_text;
    content_fn *on_content;
    count_fn *on_count;
    atomic_bool cancelled;
    atomic_int owners; /* the queue or a worker, and the object that can cancel it */

    /* the worker's */
    int64_t due_us;
    struct json_object *script;
    size_t step;
    size_t repeated;
    int64_t wait_until_us; /* of the step at hand; 0: it has not begun */
    int64_t deaf_ms;       /* so long a cancel is not seen */
    int64_t cancelled_us;  /* when it was seen first; 0: not yet */
    bool for_ever;
    struct fm_buf text;
    int64_t tokens;
    struct tool *called[WAITING_MAX]; /* whose results are waited for */
    unsigned call_ids[WAITING_MAX];
    size_t called_count;
};

struct task {
    struct object object;
    struct run *run;
};

/* ---- objects.c ---- */

/* A rule is broken: says which, and ends the process. */
FM_PRINTF(2, 3) void broken(int rule, const char *fmt, ...);

/* A new object of `size` bytes, zeroed, with one reference. */
void *make(enum kind kind, size_t size);
void retain(void *object);
void release(const void *object);

/* `ref` as an object of the kind; ends the process where it is none, or freed. */
void *expect(const void *ref, enum kind kind);

/* A copy of the text that the caller has to free by FMFreeString. */
char *give_string(const char *text, size_t len);

/* Every exported function begins so: none may be called inside of a callback. */
void enter(const char *function);

/* Around each callback. */
void callback_begins(void);
void callback_ends(void);

/* Whether FM_ENGINE_STANDIN has the word; its number goes into `number`, where that is not NULL. */
bool is_told(const char *word, int64_t *number);

/* The number of tasks whose last callback has not come. */
extern atomic_int tasks_alive;

/* ---- checks.c ---- */

/* The argument, parsed; ends the process where it is not what the library takes. The caller's to put. */
struct json_object *expect_json(const char *text, const char *what);
void check_transcript(const char *json);
void check_schema(const char *json);
int64_t check_options(const char *json); /* the limit of tokens; 0: none */

/* Tokens of a transcript: its words, and ENTRY_TOKENS an entry. */
int64_t transcript_tokens(const char *json);

/* ---- script.c ---- */

/* Reads the prompt. */
void script_begin(struct run *run);

/* One step, with one callback at most. True: the task has ended. Else run->due_us says when the next step is. */
bool script_step(struct run *run);

/* ---- workers.c ---- */

int64_t now_us(void);

/* Hands the task to the workers, which own it from then on, beside its object. */
void run_start(struct run *run);
void run_drop(struct run *run);

#endif
