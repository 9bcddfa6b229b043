/*
 * A library with the ABI of Apple's C bindings, but without a model. It is for tests of fm-engine-apple without a Mac.
 * Its callbacks come from eight threads; the tasks' callbacks are mixed in any order. It counts references and strings.
 * If a rule of helper/engine/apple/bindings.h is broken, or something is left when the process ends, it ends the
 * process with status 97 and a line on stderr.
 *
 * See script.c for what a prompt makes it do. The environment variable FM_ENGINE_STANDIN has words, separated by ",":
 *
 *     calls        a tool is called without a script, unless tools have answered already
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
#define ENTRY_TOKENS  3 /* for each entry of a transcript, besides its words */

struct json_object;

enum kind { MODEL = 1, SESSION, PROMPT, STREAM, TASK, SCHEMA, PROPERTY, TOOL, CONTENT };

/* Every object begins with this. */
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
    char *schema; /* JSON schema of the tool's arguments, as standard JSON Schema */
    pthread_mutex_t lock;
    unsigned calls;                /* calls so far */
    unsigned waiting[WAITING_MAX]; /* calls whose callback has returned */
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

/* One task. A worker or the queue has it; any thread may set `cancelled`. */
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
    atomic_int owners; /* counts the queue or a worker, and the object that can cancel the run */

    /* used only by the worker */
    int64_t due_us;
    struct json_object *script;
    size_t step;
    size_t repeated;
    int64_t wait_until_us; /* end of the current step's wait; 0: it has not begun */
    int64_t deaf_ms;       /* how long a cancel is not noticed */
    int64_t cancelled_us;  /* when the cancel was first noticed; 0: not yet */
    bool for_ever;
    struct fm_buf text;
    int64_t tokens;
    struct tool *called[WAITING_MAX]; /* tools whose results have not come yet */
    unsigned call_ids[WAITING_MAX];
    size_t called_count;
};

struct task {
    struct object object;
    struct run *run;
};

/* ---- objects.c ---- */

/* Reports which rule is broken, and ends the process. */
FM_PRINTF(2, 3) void broken(int rule, const char *fmt, ...);

/* Returns a new object of `size` bytes, zeroed, with one reference. */
void *make(enum kind kind, size_t size);
void retain(void *object);
void release(const void *object);

/* Returns `ref` as an object of the kind. Ends the process if `ref` is no such object, or is freed. */
void *expect(const void *ref, enum kind kind);

/* Returns a copy of the text. The caller frees it with FMFreeString. */
char *give_string(const char *text, size_t len);

/* Call it first in every exported function: none may be called inside a callback. */
void enter(const char *function);

/* Call them before and after each callback. */
void callback_begins(void);
void callback_ends(void);

/* Whether FM_ENGINE_STANDIN has the word; writes its number into `number`, unless that is NULL. */
bool is_told(const char *word, int64_t *number);

/* The number of tasks whose last callback has not come yet. */
extern atomic_int tasks_alive;

/* ---- checks.c ---- */

/* Return the parsed argument. End the process if the library would not accept the argument. The caller frees the result
 * with json_object_put. */
struct json_object *expect_json(const char *text, const char *what);
void check_transcript(const char *json);
void check_schema(const char *json);
int64_t check_options(const char *json); /* returns the limit of tokens; 0: none */

/* Returns the number of tokens of a transcript: its words, and ENTRY_TOKENS for each entry. */
int64_t transcript_tokens(const char *json);

/* ---- script.c ---- */

/* Reads the prompt. */
void script_begin(struct run *run);

/*
 * Runs one step, with at most one callback. True: the task has ended. Otherwise run->due_us is the time of the next
 * step.
 */
bool script_step(struct run *run);

/* ---- workers.c ---- */

int64_t now_us(void);

/* Hands the run to the workers. From then on, they and the task's object own the run together. */
void run_start(struct run *run);
void run_drop(struct run *run);

#endif
