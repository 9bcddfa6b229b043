/* Prints the figures as a table for people and as JSON for programs (report.h). */
#include "bench/report.h"
#include "protocol/json_writer.h"

#include <math.h>
#include <stdio.h>

#define JSON_MAX   65536
#define LABEL_SIZE 64
#define WIDTH      44 /* characters of a line's label, before its number */
#define MIB        1048576.0

/* ---- the table ---- */

/* A value below 0 is not known. */
static void print_line(const char *label, double value, const char *unit) {
    if (value < 0) {
        printf("  %-*s %10s\n", WIDTH, label, "not known");
    } else {
        printf("  %-*s %10.*f %s\n", WIDTH, label, value < 99.95 ? 1 : 0, value, unit);
    }
}

static void print_streams(const struct fm_bench_streams *streams) {
    char label[LABEL_SIZE];
    snprintf(label, sizeof label, "%d answers at once, together", streams->count);
    print_line(label, streams->tokens_per_second, "tokens/s");
    snprintf(label, sizeof label, "%d answers at once, the last first token", streams->count);
    print_line(label, streams->first_token_ms, "ms");
}

bool fm_bench_print_table(const struct fm_bench_figures *figures) {
    char label[LABEL_SIZE];
    printf("%s (engine %s)\n", figures->model, figures->engine);
    print_line("First token, with the load of the model", figures->cold_ms, "ms");
    print_line("First token, loaded", figures->warm_ms, "ms");
    snprintf(label, sizeof label, "Reads a prompt of %lld tokens", (long long)figures->prompt_tokens);
    print_line(label, figures->prefill_per_second, "tokens/s");
    print_line("Writes an answer", figures->one.tokens_per_second, "tokens/s");
    print_streams(&figures->many);
    print_line("Memory of fm-proxy", (double)figures->front_bytes / MIB, "MiB");
    print_line("Memory of the engine, with the model", (double)figures->engine_bytes / MIB, "MiB");
    return fflush(stdout) == 0 && !ferror(stdout);
}

/* ---- JSON ---- */

static void write_number(const char *key, double value, struct fm_json_writer *w) {
    if (value < 0) {
        fm_json_key_null(w, key);
    } else {
        fm_json_key_double(w, key, floor(value * 100 + 0.5) / 100);
    }
}

static void write_bytes(const char *key, int64_t bytes, struct fm_json_writer *w) {
    if (bytes < 0) {
        fm_json_key_null(w, key);
    } else {
        fm_json_key_int(w, key, bytes);
    }
}

static void write_streams(const struct fm_bench_streams *streams, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_int(w, "streams", streams->count);
    fm_json_key_int(w, "tokens_each", streams->tokens);
    write_number("tokens_per_second", streams->tokens_per_second, w);
    write_number("first_token_ms", streams->first_token_ms, w);
    fm_json_object_end(w);
}

static void write_figures(const struct fm_bench_figures *figures, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "version", FM_VERSION);
    fm_json_key_str(w, "engine", figures->engine);
    fm_json_key_str(w, "model", figures->model);
    write_number("cold_first_token_ms", figures->cold_ms, w);
    write_number("first_token_ms", figures->warm_ms, w);
    fm_json_key(w, "prefill");
    fm_json_object_begin(w);
    fm_json_key_int(w, "tokens", figures->prompt_tokens);
    write_number("tokens_per_second", figures->prefill_per_second, w);
    fm_json_object_end(w);
    fm_json_key(w, "decode");
    fm_json_array_begin(w);
    write_streams(&figures->one, w);
    write_streams(&figures->many, w);
    fm_json_array_end(w);
    fm_json_key(w, "memory_bytes");
    fm_json_object_begin(w);
    write_bytes("front", figures->front_bytes, w);
    write_bytes("engine", figures->engine_bytes, w);
    fm_json_object_end(w);
    fm_json_object_end(w);
}

bool fm_bench_print_json(const struct fm_bench_figures *figures) {
    struct fm_buf text;
    fm_buf_init(&text, JSON_MAX);
    struct fm_json_writer w = fm_json_writer_on(&text);
    write_figures(figures, &w);
    fm_buf_append_char(&text, '\n');
    bool ok = !text.failed && fwrite(text.data, 1, text.len, stdout) == text.len && fflush(stdout) == 0;
    fm_buf_free(&text);
    return ok;
}
