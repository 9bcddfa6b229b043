/* The figures of `fm-proxy bench`, and how they are printed. */
#ifndef FM_BENCH_REPORT_H
#define FM_BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FM_BENCH_STREAMS 4

/* Answers that were generated at the same time. */
struct fm_bench_streams {
    int count;
    int64_t tokens;           /* tokens of each answer, at most */
    double tokens_per_second; /* of all answers together; below 0: not known */
    double first_token_ms;    /* of the answer that waited the longest */
};

struct fm_bench_figures {
    const char *engine;
    const char *model;
    double cold_ms; /* time to the first token, including the engine's start and the load of the model */
    double warm_ms;
    int64_t prompt_tokens;
    double prefill_per_second; /* below 0: not known */
    struct fm_bench_streams one;
    struct fm_bench_streams many;
    int64_t front_bytes; /* memory of the front; -1: not known */
    int64_t engine_bytes;
};

/* Print to stdout. False: that failed. */
bool fm_bench_print_table(const struct fm_bench_figures *figures);
bool fm_bench_print_json(const struct fm_bench_figures *figures);

#endif
