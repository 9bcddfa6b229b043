/*
 * Measures how good and how fast searches are (for memory_quality.py, and by hand).
 *
 *     memory_judge quality FOLDER QUESTIONS   indexes FOLDER/sessions by the memory, then answers the questions in the
 *                                             file, one a line, only by words, only by vectors and by both
 *     memory_judge speed CHUNKS DIMENSIONS    random texts and vectors; prints how long 300 searches take: by the
 *                                             clock, and of a processor, which a busy machine changes less
 *
 * For `quality`, vectors come from the program that started it: a line {"embed":["text",...]} on stdout wants a line
 * [[0.1,...],...] on stdin, or {"overflow":true}. Results are lines {"mode":"words","paths":[...]}.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "memory/memory.h"
#include "protocol/json_writer.h"
#include "protocol/vector.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOP      10
#define SEARCHES 300
#define A_FILE   100 /* chunks */

static _Noreturn void give_up(const char *what) {
    fprintf(stderr, "memory_judge: %s\n", what);
    exit(1);
}

static void must(enum fm_code code, const struct fm_error *error) {
    if (code != FM_OK) {
        give_up(error->detail);
    }
}

/* ---- vectors from the program that started this one ---- */

static float *read_vectors(size_t count, size_t *dimensions) {
    char *line = NULL;
    size_t room = 0;
    if (getline(&line, &room, stdin) < 0) {
        give_up("no answer");
    }
    struct json_object *array = json_tokener_parse(line);
    float *vectors = NULL;
    free(line);
    for (size_t i = 0; json_object_is_type(array, json_type_array) && i < count; i++) {
        struct json_object *vector = json_object_array_get_idx(array, i);
        *dimensions = json_object_array_length(vector);
        vectors = vectors ? vectors : calloc(count * *dimensions, sizeof *vectors);
        for (size_t j = 0; vectors && j < *dimensions; j++) {
            vectors[i * *dimensions + j] = (float)json_object_get_double(json_object_array_get_idx(vector, j));
        }
    }
    json_object_put(array);
    return vectors;
}

static float *ask(const char *const *texts, const size_t *lens, size_t count, size_t *dimensions) {
    struct fm_buf line;
    fm_buf_init(&line, 1u << 24);
    struct fm_json_writer w = fm_json_writer_on(&line);
    fm_json_object_begin(&w);
    fm_json_key(&w, "embed");
    fm_json_array_begin(&w);
    for (size_t i = 0; i < count; i++) {
        fm_json_string(&w, texts[i], lens[i]);
    }
    fm_json_array_end(&w);
    fm_json_object_end(&w);
    printf("%.*s\n", (int)line.len, line.data);
    fflush(stdout);
    fm_buf_free(&line);
    return read_vectors(count, dimensions);
}

static void embed(void *context, struct gw_embedding *embedding) {
    struct fm_error error;
    size_t dimensions = 0;
    (void)context;
    float *vectors = ask(embedding->texts, embedding->lens, embedding->count, &dimensions);
    if (vectors) {
        gw_embedding_done(embedding, vectors, dimensions);
    } else {
        fm_fail(&error, FM_CONTEXT_OVERFLOW, "too long");
        gw_embedding_failed(embedding, &error);
    }
    free(vectors);
}

/* ---- quality ---- */

static void on_synced(void *context, const struct fm_error *error) {
    if (error) {
        give_up(error->detail);
    }
    *(bool *)context = true;
}

static void index_all(const char *folder) {
    char database[512];
    char sessions[512];
    struct fm_error error;
    struct gw_memory *memory;
    uv_loop_t loop;
    bool done = false;
    snprintf(database, sizeof database, "%s/memory.db", folder);
    snprintf(sessions, sizeof sessions, "%s/sessions", folder);
    uv_loop_init(&loop);
    const struct gw_memory_options options = {
        .loop = &loop, .database = database, .folder = sessions, .model = "judged", .embedder = {.embed = embed}};
    must(gw_memory_open(&options, &memory, &error), &error);
    must(gw_memory_sync(memory, on_synced, &done, &error), &error);
    while (!done && uv_run(&loop, UV_RUN_ONCE)) {
    }
    gw_memory_close(memory);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
}

static void print_hits(const char *mode, struct gw_hit *hits, size_t count) {
    printf("{\"mode\":\"%s\",\"paths\":[", mode);
    for (size_t i = 0; i < count; i++) {
        printf("%s\"%s\"", i ? "," : "", hits[i].path);
    }
    puts("]}");
    fflush(stdout);
    gw_hits_free(hits, count);
}

static void judge(struct gw_memory_db *db, const char *question, size_t len) {
    struct gw_hit hits[TOP];
    struct fm_error error;
    size_t count;
    size_t dimensions = 0;
    float *vector = ask(&question, &len, 1, &dimensions);
    if (!vector || !fm_vector_normalise(vector, dimensions)) {
        give_up("no vector of a question");
    }
    must(gw_memory_db_search(db, question, len, NULL, 0, hits, TOP, &count, &error), &error);
    print_hits("words", hits, count);
    must(gw_memory_db_search(db, "", 0, vector, dimensions, hits, TOP, &count, &error), &error);
    print_hits("vectors", hits, count);
    must(gw_memory_db_search(db, question, len, vector, dimensions, hits, TOP, &count, &error), &error);
    print_hits("both", hits, count);
    free(vector);
}

static void quality(const char *folder, const char *questions) {
    char database[512];
    struct fm_error error;
    struct gw_memory_db *db;
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    index_all(folder);
    snprintf(database, sizeof database, "%s/memory.db", folder);
    must(gw_memory_db_open(database, "judged", &db, &error), &error);
    FILE *file = fopen(questions, "r");
    if (!file) {
        give_up("no questions");
    }
    while ((len = getline(&line, &room, file)) > 0) {
        line[len - 1] = '\0';
        judge(db, line, (size_t)len - 1);
    }
    free(line);
    fclose(file);
    gw_memory_db_close(db);
}

/* ---- speed ---- */

static double uniform(void) {
    return (rand() + 0.5) / ((double)RAND_MAX + 1);
}

/* A vocabulary in which the n-th word is about 1/n as frequent as the first one, as in languages (Zipf). */
static size_t random_words(char *text, size_t size) {
    size_t len = 0;
    while (len + 16 < size) {
        unsigned word = (unsigned)exp(uniform() * log(50000));
        len += (size_t)snprintf(text + len, size - len, "w%x%c ", word, 'a' + (int)(word % 26));
    }
    return len;
}

static void random_vector(float *vector, size_t dimensions) {
    for (size_t i = 0; i < dimensions; i++) {
        vector[i] = (float)(uniform() - 0.5);
    }
    if (!fm_vector_normalise(vector, dimensions)) {
        give_up("a vector of zeros");
    }
}

static void fill(struct gw_memory_db *db, size_t chunks, size_t dimensions) {
    struct fm_error error;
    float *vector = calloc(dimensions, sizeof *vector);
    char text[GW_CHUNK_BYTES];
    char path[64];
    for (size_t at = 0; at < chunks; at += A_FILE) {
        struct gw_chunks file = {.count = 0};
        for (size_t i = 0; i < A_FILE; i++) {
            size_t len = random_words(text, sizeof text);
            random_vector(vector, dimensions);
            if (!gw_chunks_cut(&file, text, len, GW_CHUNK_BYTES, 0) || file.count != i + 1 ||
                !gw_chunks_set_vector(&file, i, vector, dimensions)) {
                give_up("no chunk");
            }
        }
        snprintf(path, sizeof path, "sessions/%032zx.jsonl", at);
        must(gw_memory_db_store(db, path, "x", true, &file, &error), &error);
        gw_chunks_free(&file);
    }
    free(vector);
}

static int by_value(const void *a, const void *b) {
    return (*(const int64_t *)a > *(const int64_t *)b) - (*(const int64_t *)a < *(const int64_t *)b);
}

static void print_times(const char *what, int64_t *times) {
    qsort(times, SEARCHES, sizeof *times, by_value);
    printf("%s p50 %6.1f ms   p95 %6.1f ms   max %6.1f ms", what, (double)times[SEARCHES / 2] / 1000,
           (double)times[SEARCHES * 95 / 100] / 1000, (double)times[SEARCHES - 1] / 1000);
}

static void measure(struct gw_memory_db *db, const char *mode, bool words, size_t dimensions) {
    struct gw_hit hits[TOP];
    struct fm_error error;
    int64_t times[SEARCHES];
    int64_t work[SEARCHES];
    float *vector = dimensions ? calloc(dimensions, sizeof *vector) : NULL;
    for (size_t i = 0; i < SEARCHES; i++) {
        char question[96];
        size_t count;
        size_t len = random_words(question, sizeof question); /* about eleven words */
        if (vector) {
            random_vector(vector, dimensions);
        }
        int64_t start = fm_now_us();
        int64_t worked = fm_cpu_time_us();
        must(gw_memory_db_search(db, question, words ? len : 0, vector, dimensions, hits, TOP, &count, &error), &error);
        work[i] = fm_cpu_time_us() - worked;
        times[i] = fm_now_us() - start;
        gw_hits_free(hits, count);
    }
    printf("%-8s", mode);
    print_times("", times);
    print_times("   of a processor", work);
    printf("\n");
    free(vector);
}

static void speed(size_t chunks, size_t dimensions) {
    char path[] = "/tmp/fm-memory-judge-XXXXXX";
    char database[64];
    struct fm_error error;
    struct gw_memory_db *db;
    struct fm_file_info info;
    if (!mkdtemp(path)) {
        give_up("no folder");
    }
    snprintf(database, sizeof database, "%s/memory.db", path);
    int64_t start = fm_now_ms();
    must(gw_memory_db_open(database, "random", &db, &error), &error);
    fill(db, chunks, dimensions);
    printf("%zu chunks of %zu dimensions: indexed in %.1f s", chunks, dimensions, (double)(fm_now_ms() - start) / 1000);
    gw_memory_db_close(db);
    start = fm_now_ms();
    must(gw_memory_db_open(database, "random", &db, &error), &error);
    fm_file_examine(database, &info);
    printf(", opened in %.2f s; the file has %.0f MB\n", (double)(fm_now_ms() - start) / 1000, (double)info.size / 1e6);
    measure(db, "words", true, 0);
    measure(db, "vectors", false, dimensions);
    measure(db, "both", true, dimensions);
    gw_memory_db_close(db);
    fm_file_remove(database);
    remove(path);
}

int main(int argc, char *argv[]) {
    fm_log_init("memory_judge", FM_LOG_WARN);
    if (argc == 4 && strcmp(argv[1], "quality") == 0) {
        quality(argv[2], argv[3]);
    } else if (argc == 4 && strcmp(argv[1], "speed") == 0) {
        speed(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
    } else {
        give_up("quality FOLDER QUESTIONS, or speed CHUNKS DIMENSIONS");
    }
    return 0;
}
