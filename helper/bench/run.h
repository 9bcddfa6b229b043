/* Requests of `fm-proxy bench`: several answers at once through the front, and their times. */
#ifndef FM_BENCH_RUN_H
#define FM_BENCH_RUN_H

#include "sessions/link.h"

#define FM_BENCH_PROMPT_MAX (64u << 10)

/* A request for an answer, and its result. */
struct fm_bench_answer {
    char prompt[FM_BENCH_PROMPT_MAX];
    int64_t max_tokens;
    int64_t id; /* of the call */
    int64_t sent_us;
    int64_t first_us; /* when its first output came; 0: no output came */
    int64_t end_us;   /* when its result came; 0: not yet */
    int64_t input_tokens;
    int64_t output_tokens;
    double prefill_per_second; /* below 0: not known */
    double output_per_second;  /* the same */
};

struct fm_bench_host {
    struct fm_link link;
    int end_fd;
    struct fm_bench_answer *answers; /* the answers that are waited for; borrowed */
    size_t count;
    struct json_object *result; /* the result of the last fm_bench_call; owned */
    int64_t call;               /* its id */
    struct fm_error error;      /* the first error; code FM_OK: none */
};

/*
 * Makes a call without params. Its result is in `host->result` until the next call. Blocks. FM_CANCELLED: the
 * measurement has to end.
 */
FM_MUST_USE enum fm_code fm_bench_call(struct fm_bench_host *host, const char *method);

/* Asks for all `answers` at once, and waits for them. Blocks. The first error is in host->error. */
FM_MUST_USE enum fm_code fm_bench_answers(struct fm_bench_host *host, struct fm_bench_answer *answers, size_t count);

#endif
