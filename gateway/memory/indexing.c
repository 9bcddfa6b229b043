/*
 * Background work, in tasks. A task has the keys of sessions whose transcripts are indexed one after the other, or of
 * one session that is forgotten. A key goes through three steps: read and compare (thread), vectors (embedder, a few at
 * a time), store (thread). After each key the next task has its turn, so a session that was just used does not wait for
 * a whole sync.
 */
#include "base/file.h"
#include "memory/internal.h"
#include "memory/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_SIZE 4200

enum kind { SYNC, INDEX, FORGET };

struct gw_memory_task {
    struct gw_memory_task *next;
    struct gw_memory *memory;
    enum kind kind;
    gw_memory_done *done;
    void *context;
    struct fm_error error; /* the first error; code FM_OK: none */
    char (*keys)[GW_SESSION_KEY_LEN + 1];
    size_t key_count;
    size_t key_room;
    size_t at;       /* the key at hand */
    bool listed;     /* a sync has read the folder */
    bool no_vectors; /* the embedder has failed: no vectors for the rest of the task */
    /* the members from here on belong to the current key */
    struct gw_memory_job job;
    struct gw_memory_ask ask;
    struct gw_chunks chunks;
    char hash[GW_HASH_LEN + 1];
    bool same;       /* there is nothing to do for the transcript */
    bool stored;     /* the transcript has not changed, but some of its chunks have no vector */
    bool gained;     /* a chunk has a vector that it did not have */
    bool incomplete; /* a chunk has no vector that should have one */
    size_t chunk;    /* the first chunk that may still need a vector */
    size_t batch;    /* how many texts the next question may have */
    bool asking;     /* gw_memory_embed is being called; the answer may come during that call */
    bool answered;
    const char *texts[GW_EMBED_AT_ONCE];
    size_t lens[GW_EMBED_AT_ONCE];
    size_t asked[GW_EMBED_AT_ONCE]; /* the index of each text's chunk */
};

static void begin_first(struct gw_memory *memory);
static void ask_on(struct gw_memory_task *task);

static struct gw_memory_task *task_of(struct gw_memory_job *job) {
    return (struct gw_memory_task *)(void *)((char *)job - offsetof(struct gw_memory_task, job));
}

static struct gw_memory_task *task_of_ask(struct gw_memory_ask *ask) {
    return (struct gw_memory_task *)(void *)((char *)ask - offsetof(struct gw_memory_task, ask));
}

static void name_of(const struct gw_memory_task *task, char name[GW_MEMORY_NAME_SIZE]) {
    snprintf(name, GW_MEMORY_NAME_SIZE, "sessions/%s.jsonl", task->keys[task->at]);
}

/* ---- the queue ---- */

static void enqueue(struct gw_memory *memory, struct gw_memory_task *task) {
    bool idle = !memory->first;
    task->next = NULL;
    *memory->end = task;
    memory->end = &task->next;
    if (idle) {
        begin_first(memory);
    }
}

static void end_task(struct gw_memory_task *task) {
    gw_chunks_free(&task->chunks);
    free(task->keys);
    if (task->done) {
        task->done(task->context, task->error.code == FM_OK ? NULL : &task->error);
    }
    free(task);
}

static void dequeue(struct gw_memory *memory) {
    memory->first = memory->first->next;
    if (!memory->first) {
        memory->end = &memory->first;
    }
}

static void note_error(struct gw_memory_task *task, const struct fm_error *error) {
    if (task->error.code == FM_OK) {
        task->error = *error;
    }
}

/* The first task has done a step: it ends, or it waits until the other tasks have had their turn. */
static void step_done(struct gw_memory_task *task, bool over) {
    struct gw_memory *memory = task->memory;
    struct fm_error closing;
    if (memory->closing && !over) {
        gw_memory_fail_closing(&closing);
        note_error(task, &closing);
        over = true;
    }
    dequeue(memory);
    if (!over) {
        task->next = NULL;
        *memory->end = task;
        memory->end = &task->next;
    }
    if (memory->first && !memory->closing) {
        begin_first(memory);
    }
    if (over) {
        end_task(task);
    }
}

/* The current key is done. `over`: the whole task is done, because the database can't be used. */
static void key_done(struct gw_memory_task *task, bool over) {
    gw_chunks_free(&task->chunks);
    task->at++;
    step_done(task, over || task->at >= task->key_count);
}

/* ---- store ---- */

static enum fm_code store(struct gw_memory_job *job, struct gw_memory_db *db, struct fm_error *error) {
    struct gw_memory_task *task = task_of(job);
    char name[GW_MEMORY_NAME_SIZE];
    name_of(task, name);
    return gw_memory_db_store(db, name, task->hash, !task->incomplete, &task->chunks, error);
}

static void on_stored(struct gw_memory_job *job) {
    struct gw_memory_task *task = task_of(job);
    if (job->error.code != FM_OK) {
        note_error(task, &job->error);
    }
    key_done(task, job->error.code == FM_UNAVAILABLE);
}

static void begin_store(struct gw_memory_task *task) {
    task->job.work = store;
    task->job.back = on_stored;
    gw_memory_run(task->memory, &task->job, false);
}

/* ---- vectors ---- */

/* Makes a question from the next chunks without a vector. Returns how many chunks it has. */
static size_t fill_question(struct gw_memory_task *task) {
    size_t count = 0;
    for (size_t i = task->chunk; i < task->chunks.count && count < task->batch; i++) {
        if (!task->chunks.items[i].vector) {
            task->chunks.items[i].text[task->chunks.items[i].len] = '\0'; /* there is room for the NUL */
            task->texts[count] = task->chunks.items[i].text;
            task->lens[count] = task->chunks.items[i].len;
            task->asked[count++] = i;
        }
    }
    return count;
}

static bool has_gap(const struct gw_memory_task *task) {
    size_t i = task->chunk;
    while (i < task->chunks.count && task->chunks.items[i].vector) {
        i++;
    }
    return i < task->chunks.count;
}

/*
 * The new vectors have another length than the cache's: the model has changed. So all chunks get vectors of the new
 * model.
 */
static void drop_vectors(struct gw_memory_task *task) {
    for (size_t i = 0; i < task->chunks.count; i++) {
        free(task->chunks.items[i].vector);
        task->chunks.items[i].vector = NULL;
    }
    task->chunks.dimensions = 0;
    task->chunk = 0;
}

static void take_vectors(struct gw_memory_task *task, const float *vectors, size_t dimensions) {
    if (task->chunks.dimensions && task->chunks.dimensions != dimensions) {
        drop_vectors(task);
        return; /* the vectors of these texts are asked for again, with the others */
    }
    for (size_t i = 0; i < task->ask.embedding.count; i++) {
        bool set = gw_chunks_set_vector(&task->chunks, task->asked[i], vectors + i * dimensions, dimensions);
        task->gained = task->gained || set;
        task->incomplete = task->incomplete || !set;
        task->chunk = task->asked[i] + 1;
    }
    task->batch = GW_EMBED_AT_ONCE;
}

/* A text is too long for the model. Asks for fewer texts at once until the long one is found; then halves that text. */
static void take_overflow(struct gw_memory_task *task) {
    size_t chunk = task->asked[0];
    if (task->ask.embedding.count > 1) {
        task->batch = task->ask.embedding.count / 2;
    } else if (!gw_chunks_halve(&task->chunks, chunk)) {
        task->chunk = chunk + 1; /* too short to be halved: it gets no vector, and is found by its words */
    }
}

static void on_vectors(struct gw_memory_ask *ask, const struct fm_error *error, const float *vectors,
                       size_t dimensions) {
    struct gw_memory_task *task = task_of_ask(ask);
    if (!error) {
        take_vectors(task, vectors, dimensions);
    } else if (error->code == FM_CONTEXT_OVERFLOW) {
        take_overflow(task);
    } else {
        note_error(task, error);
        task->no_vectors = true;
    }
    task->answered = true;
    if (!task->asking) { /* otherwise the loop in ask_on continues */
        ask_on(task);
    }
}

/* Asks for vectors, until it has to wait for an answer or all are there. */
static void ask_on(struct gw_memory_task *task) {
    size_t count;
    while (!task->memory->closing && !task->no_vectors && (count = fill_question(task))) {
        task->ask.back = on_vectors;
        task->ask.embedding = (struct gw_embedding){.texts = task->texts, .lens = task->lens, .count = count};
        task->asking = true;
        task->answered = false;
        gw_memory_embed(task->memory, &task->ask);
        task->asking = false;
        if (!task->answered) {
            return;
        }
    }
    if (task->memory->closing) {
        struct fm_error closing;
        gw_memory_fail_closing(&closing);
        note_error(task, &closing);
        key_done(task, true);
        return;
    }
    task->incomplete = task->incomplete || (task->no_vectors && has_gap(task));
    if (task->stored && task->incomplete && !task->gained) {
        key_done(task, false); /* the database already has every vector that there is */
    } else {
        begin_store(task);
    }
}

/* ---- read and compare ---- */

/* A transcript that has not changed is read again only if it lacks vectors and the embedder may give them. */
static enum fm_code read_source(struct gw_memory_job *job, struct gw_memory_db *db, struct fm_error *error) {
    struct gw_memory_task *task = task_of(job);
    bool whole;
    char name[GW_MEMORY_NAME_SIZE];
    char path[PATH_SIZE];
    char known[GW_HASH_LEN + 1];
    name_of(task, name);
    snprintf(path, sizeof path, "%s/%s.jsonl", task->memory->options.folder, task->keys[task->at]);
    enum fm_code code = gw_memory_db_hash(db, name, known, &whole, error);
    if (code != FM_OK) {
        return code;
    }
    bool enough = whole || task->no_vectors;
    code = gw_source_read(path, enough ? known : "", task->hash, &task->chunks, error);
    if (code == FM_NOT_FOUND) {
        task->same = true;
        return gw_memory_db_forget(db, name, error);
    }
    task->stored = code == FM_OK && strcmp(known, task->hash) == 0;
    task->same = code != FM_OK || (task->stored && enough);
    if (code == FM_UNAVAILABLE) {
        error->code = FM_INTERNAL; /* the transcript is at fault, not the database */
        return error->code;
    }
    if (code != FM_OK || task->same) {
        return code;
    }
    code = gw_memory_db_look_up(db, &task->chunks, error);
    for (size_t i = 0; i < task->chunks.count; i++) {
        task->gained = task->gained || task->chunks.items[i].vector; /* perhaps since another transcript was indexed */
    }
    return code;
}

static void on_read(struct gw_memory_job *job) {
    struct gw_memory_task *task = task_of(job);
    if (job->error.code != FM_OK) {
        note_error(task, &job->error);
        key_done(task, job->error.code == FM_UNAVAILABLE);
    } else if (task->same) {
        key_done(task, false);
    } else {
        ask_on(task);
    }
}

static void begin_key(struct gw_memory_task *task) {
    task->chunk = 0;
    task->batch = GW_EMBED_AT_ONCE;
    task->incomplete = task->same = task->stored = task->gained = false;
    task->job.work = read_source;
    task->job.back = on_read;
    gw_memory_run(task->memory, &task->job, false);
}

/* ---- sync ---- */

static bool add_key(struct gw_memory_task *task, const char *key) {
    if (task->key_count == task->key_room) {
        size_t room = task->key_room ? 2 * task->key_room : 64;
        void *keys = realloc(task->keys, room * sizeof *task->keys);
        if (!keys) {
            return false;
        }
        task->keys = keys;
        task->key_room = room;
    }
    memcpy(task->keys[task->key_count++], key, sizeof *task->keys);
    return true;
}

/* Finds the key in "KEY.jsonl" or "sessions/KEY.jsonl". */
static bool key_of(const char *name, char key[GW_SESSION_KEY_LEN + 1]) {
    const char *last = strrchr(name, '/');
    name = last ? last + 1 : name;
    if (strlen(name) != GW_SESSION_KEY_LEN + strlen(".jsonl") || strcmp(name + GW_SESSION_KEY_LEN, ".jsonl") != 0) {
        return false;
    }
    memcpy(key, name, GW_SESSION_KEY_LEN);
    key[GW_SESSION_KEY_LEN] = '\0';
    return gw_session_key_valid(key);
}

/* Adds a session that the database has. Reading its transcript shows whether it still exists. */
static bool add_known(void *context, const char *path) {
    char key[GW_SESSION_KEY_LEN + 1];
    return !key_of(path, key) || add_key(context, key);
}

static int by_key(const void *a, const void *b) {
    return strcmp(a, b);
}

static void drop_doubles(struct gw_memory_task *task) {
    size_t count = 0;
    if (task->key_count) {
        qsort(task->keys, task->key_count, sizeof *task->keys, by_key);
    }
    for (size_t i = 0; i < task->key_count; i++) {
        if (count == 0 || strcmp(task->keys[count - 1], task->keys[i]) != 0) {
            memmove(task->keys[count++], task->keys[i], sizeof *task->keys);
        }
    }
    task->key_count = count;
}

static enum fm_code list(struct gw_memory_job *job, struct gw_memory_db *db, struct fm_error *error) {
    struct gw_memory_task *task = task_of(job);
    char key[GW_SESSION_KEY_LEN + 1];
    const char *name;
    bool room = true;
    struct fm_folder *folder = fm_folder_open(task->memory->options.folder);
    if (!folder && errno != ENOENT) {
        return fm_fail(error, FM_INTERNAL, "can't read the folder %s (%s)", task->memory->options.folder,
                       strerror(errno));
    }
    while (folder && room && (name = fm_folder_next(folder))) {
        room = !key_of(name, key) || add_key(task, key);
    }
    if (folder) {
        fm_folder_close(folder);
    }
    enum fm_code code = gw_memory_db_files(db, add_known, task, error);
    drop_doubles(task);
    return code == FM_OK && !room ? fm_fail_no_memory(error) : code;
}

static void on_listed(struct gw_memory_job *job) {
    struct gw_memory_task *task = task_of(job);
    task->listed = true;
    if (job->error.code != FM_OK) {
        note_error(task, &job->error);
    }
    step_done(task, job->error.code != FM_OK || task->key_count == 0);
}

/* ---- forget ---- */

static enum fm_code forget_file(struct gw_memory_job *job, struct gw_memory_db *db, struct fm_error *error) {
    char name[GW_MEMORY_NAME_SIZE];
    name_of(task_of(job), name);
    return gw_memory_db_forget(db, name, error);
}

static void on_forgotten(struct gw_memory_job *job) {
    struct gw_memory_task *task = task_of(job);
    if (job->error.code != FM_OK) {
        note_error(task, &job->error);
    }
    step_done(task, true);
}

/* ---- tasks ---- */

static void begin_first(struct gw_memory *memory) {
    struct gw_memory_task *task = memory->first;
    if (task->kind == FORGET || (task->kind == SYNC && !task->listed)) {
        task->job.work = task->kind == FORGET ? forget_file : list;
        task->job.back = task->kind == FORGET ? on_forgotten : on_listed;
        gw_memory_run(memory, &task->job, false);
    } else {
        begin_key(task);
    }
}

static enum fm_code add_task(struct gw_memory *memory, enum kind kind, const char *key, gw_memory_done *done,
                             void *context, struct fm_error *error) {
    if (key && !gw_session_key_valid(key)) {
        return fm_fail(error, FM_INVALID_REQUEST, "that is no session's key");
    }
    struct gw_memory_task *task = calloc(1, sizeof *task);
    if (!task || (key && !add_key(task, key))) {
        free(task);
        return fm_fail_no_memory(error);
    }
    task->memory = memory;
    task->kind = kind;
    task->done = done;
    task->context = context;
    enqueue(memory, task);
    return FM_OK;
}

enum fm_code gw_memory_sync(struct gw_memory *memory, gw_memory_done *done, void *context, struct fm_error *error) {
    return add_task(memory, SYNC, NULL, done, context, error);
}

enum fm_code gw_memory_index(struct gw_memory *memory, const char *session_key, gw_memory_done *done, void *context,
                             struct fm_error *error) {
    return add_task(memory, INDEX, session_key, done, context, error);
}

enum fm_code gw_memory_forget(struct gw_memory *memory, const char *session_key, gw_memory_done *done, void *context,
                              struct fm_error *error) {
    return add_task(memory, FORGET, session_key, done, context, error);
}

void gw_memory_index_anew(struct gw_memory *memory) {
    struct fm_error error;
    for (const struct gw_memory_task *task = memory->first; task; task = task->next) {
        if (task->kind == SYNC && !task->listed) {
            return;
        }
    }
    if (gw_memory_sync(memory, NULL, NULL, &error) != FM_OK) {
        return; /* no memory: the next start indexes it */
    }
}

void gw_memory_drop_tasks(struct gw_memory *memory) {
    struct gw_memory_task *task = memory->first ? memory->first->next : NULL;
    if (memory->first) {
        memory->first->next = NULL; /* the first task is at work, and ends by itself */
        memory->end = &memory->first->next;
    }
    while (task) {
        struct gw_memory_task *next = task->next;
        gw_memory_fail_closing(&task->error);
        end_task(task);
        task = next;
    }
}
