/*
 * fm-proxy bench (bench.h). Each figure is the median of some rounds. On a slow machine, prompts and answers are
 * shorter, so that the whole measurement takes a minute or two. Each prompt begins with a different number, so that no
 * prompt is cached.
 */
#include "bench/bench.h"
#include "base/clock.h"
#include "base/platform.h"
#include "bench/report.h"
#include "bench/run.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define ROUNDS  3
#define HURRY_S 45 /* after this time a step has only one round */

#define CHECKING_MS    8000 /* an engine answers within 7 s when it is asked whether it is available */
#define CHECK_AGAIN_MS 30

#define STEP_S       5 /* how long a prompt or an answer should take at most, estimated from earlier ones */
#define PROMPT_MOST  1024
#define PROMPT_LEAST 64
#define ANSWER_MOST  128
#define ANSWER_LEAST 16

struct bench {
    struct fm_front *front;
    const struct fm_options *options;
    struct fm_bench_host host;
    struct fm_bench_figures figures;
    struct fm_bench_answer answers[FM_BENCH_STREAMS];
    int64_t start_ms;
    int prompts; /* number of prompts so far: each prompt begins with its number */
    char engine[64];
    char model[256];
};

static void say(const char *what) {
    fprintf(stderr, "fm-proxy bench: %s ...\n", what);
}

/* ---- the requests ---- */

/* Writes a question of some 20 tokens, and `words` more words. */
static void write_prompt(struct bench *bench, struct fm_bench_answer *answer, int64_t words) {
    static const char *const some[] = {" sea", " wind", " light", " stone", " house", " night", " water", " road"};
    int at = snprintf(answer->prompt, sizeof answer->prompt, "%d. Tell a long story about a storm.", ++bench->prompts);
    for (int64_t i = 0; i < words && at < (int)sizeof answer->prompt - 16; i++) {
        at +=
            snprintf(answer->prompt + at, sizeof answer->prompt - (size_t)at, "%s", some[(i * 5 + bench->prompts) % 8]);
    }
}

/* Asks for `count` answers at the same time. */
static enum fm_code ask_answers(struct bench *bench, size_t count, int64_t words, int64_t max_tokens) {
    for (size_t i = 0; i < count; i++) {
        bench->answers[i].max_tokens = max_tokens;
        write_prompt(bench, &bench->answers[i], words);
    }
    return fm_bench_answers(&bench->host, bench->answers, count);
}

static int compare_numbers(const void *a, const void *b) {
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare_numbers);
    return values[count / 2];
}

/* Whether a step has another round after `done` rounds. */
static bool goes_on(const struct bench *bench, size_t done) {
    bool late = fm_now_ms() - bench->start_ms > HURRY_S * 1000;
    return done == 0 || (done < ROUNDS && !late);
}

/* Returns as many tokens as a step has time for; `most` if the rate is not known. */
static int64_t fitting(double per_second, int64_t least, int64_t most) {
    double tokens = per_second < 0 ? (double)most : per_second * STEP_S;
    return tokens < (double)least ? least : tokens > (double)most ? most : (int64_t)tokens;
}

/* For an answer without any output, its end counts as its first token. */
static double first_token_ms(const struct fm_bench_answer *answer) {
    return (double)((answer->first_us ? answer->first_us : answer->end_us) - answer->sent_us) / 1000;
}

/* ---- the steps ---- */

static void copy_text(struct json_object *value, char *text, size_t size) {
    snprintf(text, size, "%s", json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "");
}

/* Whether an engine is still being asked if it is available. */
static bool is_checking(struct json_object *result) {
    struct json_object *order = json_object_object_get(result, "order");
    bool checking = false;
    for (size_t i = 0; i < json_object_array_length(order); i++) {
        char code[sizeof "CHECKING" + 1];
        copy_text(json_object_object_get(json_object_array_get_idx(order, i), "reason_code"), code, sizeof code);
        checking |= strcmp(code, "CHECKING") == 0;
    }
    return checking;
}

/* Finds out which engine answers, or why none does. */
static enum fm_code look(struct bench *bench) {
    int64_t last_ms = fm_now_ms() + CHECKING_MS;
    while (fm_bench_call(&bench->host, "capabilities.get") == FM_OK && is_checking(bench->host.result) &&
           fm_now_ms() < last_ms) {
        fm_sleep_ms(CHECK_AGAIN_MS);
    }
    if (bench->host.error.code != FM_OK) {
        return bench->host.error.code;
    }
    struct json_object *result = bench->host.result;
    struct json_object *models = json_object_object_get(result, "models");
    if (!json_object_get_boolean(json_object_object_get(result, "available"))) {
        char detail[512];
        copy_text(json_object_object_get(result, "detail"), detail, sizeof detail);
        return fm_fail(&bench->host.error, FM_UNAVAILABLE, "%s", detail);
    }
    copy_text(json_object_object_get(json_object_object_get(result, "engine"), "name"), bench->engine,
              sizeof bench->engine);
    for (size_t i = 0; i < json_object_array_length(models); i++) {
        struct json_object *model = json_object_array_get_idx(models, i);
        if (json_object_get_boolean(json_object_object_get(model, "default"))) {
            copy_text(json_object_object_get(model, "id"), bench->model, sizeof bench->model);
        }
    }
    bench->figures.engine = bench->engine;
    bench->figures.model = bench->model;
    return FM_OK;
}

static enum fm_code measure_first_tokens(struct bench *bench) {
    double ms[ROUNDS];
    size_t done = 0;
    say("loading the model");
    if (ask_answers(bench, 1, 0, ANSWER_LEAST) != FM_OK) {
        return bench->host.error.code;
    }
    bench->figures.cold_ms = first_token_ms(&bench->answers[0]);
    say("first tokens");
    for (; goes_on(bench, done); done++) {
        if (ask_answers(bench, 1, 0, ANSWER_LEAST) != FM_OK) {
            return bench->host.error.code;
        }
        ms[done] = first_token_ms(&bench->answers[0]);
    }
    bench->figures.warm_ms = median(ms, done);
    return FM_OK;
}

/* If the context is set to be short, the prompts must be shorter. */
static enum fm_code read_once(struct bench *bench, int64_t *words) {
    while (ask_answers(bench, 1, *words, 1) == FM_CONTEXT_OVERFLOW && *words > PROMPT_LEAST) {
        *words /= 2;
    }
    return bench->host.error.code;
}

static enum fm_code measure_prefill(struct bench *bench) {
    double rates[ROUNDS];
    size_t done = 0;
    int64_t words = fitting(bench->answers[0].prefill_per_second, PROMPT_LEAST, PROMPT_MOST);
    say("a long prompt");
    for (; goes_on(bench, done); done++) {
        if (read_once(bench, &words) != FM_OK) {
            return bench->host.error.code;
        }
        rates[done] = bench->answers[0].prefill_per_second;
        bench->figures.prompt_tokens = bench->answers[0].input_tokens;
    }
    bench->figures.prefill_per_second = median(rates, done);
    return FM_OK;
}

/*
 * Returns the rate of all answers together, from the first token of any answer to the end of the last one; below 0: too
 * few tokens to measure.
 */
static double rate_of_all(const struct fm_bench_answer *answers, size_t count) {
    int64_t tokens = 0;
    int64_t first_us = INT64_MAX;
    int64_t end_us = 0;
    for (size_t i = 0; i < count; i++) {
        tokens += answers[i].output_tokens;
        first_us = answers[i].first_us && answers[i].first_us < first_us ? answers[i].first_us : first_us;
        end_us = answers[i].end_us > end_us ? answers[i].end_us : end_us;
    }
    return tokens > 1 && end_us > first_us ? (double)(tokens - 1) * 1e6 / (double)(end_us - first_us) : -1;
}

static enum fm_code measure_streams(struct bench *bench, struct fm_bench_streams *streams) {
    double rates[ROUNDS];
    double ms[ROUNDS];
    size_t done = 0;
    for (; goes_on(bench, done); done++) {
        if (ask_answers(bench, (size_t)streams->count, 0, streams->tokens) != FM_OK) {
            return bench->host.error.code;
        }
        rates[done] = rate_of_all(bench->answers, (size_t)streams->count);
        ms[done] = 0;
        for (int k = 0; k < streams->count; k++) {
            double own = first_token_ms(&bench->answers[k]);
            ms[done] = own > ms[done] ? own : ms[done];
        }
    }
    streams->tokens_per_second = median(rates, done);
    streams->first_token_ms = median(ms, done);
    return FM_OK;
}

static enum fm_code measure_answers(struct bench *bench, int64_t tokens) {
    bench->figures.one = (struct fm_bench_streams){.count = 1, .tokens = tokens};
    bench->figures.many = (struct fm_bench_streams){.count = FM_BENCH_STREAMS, .tokens = tokens};
    say("one answer");
    enum fm_code code = measure_streams(bench, &bench->figures.one);
    if (code != FM_OK) {
        return code;
    }
    say("answers side by side");
    return measure_streams(bench, &bench->figures.many);
}

/* Measures the memory of the front, which is this process, and of the engine. */
static void measure_memory(struct bench *bench) {
    bench->figures.front_bytes = fm_process_memory(getpid());
    bench->figures.engine_bytes = -1;
    fm_front_lock(bench->front);
    for (size_t i = 0; i < FM_ENGINES_MAX; i++) {
        if (bench->front->engines[i].pid) {
            bench->figures.engine_bytes = fm_process_memory(bench->front->engines[i].pid);
        }
    }
    fm_front_unlock(bench->front);
}

static enum fm_code measure(struct bench *bench) {
    enum fm_code code = look(bench);
    code = code ? code : measure_first_tokens(bench);
    int64_t tokens = fitting(bench->answers[0].output_per_second, ANSWER_LEAST, ANSWER_MOST);
    code = code ? code : measure_prefill(bench);
    code = code ? code : measure_answers(bench, tokens);
    if (code == FM_OK) {
        measure_memory(bench);
    }
    return code;
}

int fm_bench_run(struct fm_front *front, const struct fm_options *options, int end_fd) {
    static struct bench bench;
    bench = (struct bench){.front = front, .options = options, .host = {.end_fd = end_fd}, .start_ms = fm_now_ms()};
    int failure = fm_link_start(&bench.host.link, front, options);
    if (failure) {
        fprintf(stderr, "fm-proxy bench: can't start: %s\n", strerror(failure));
        return EX_OSERR;
    }
    int status = EX_OK;
    if (measure(&bench) != FM_OK) {
        fprintf(stderr, "fm-proxy bench: %s\n", bench.host.error.detail);
        status = EX_UNAVAILABLE;
    }
    json_object_put(bench.host.result);
    if (!fm_link_end(&bench.host.link)) {
        front->stuck = true; /* main ends by _exit */
    }
    bool printed = status != EX_OK || (options->json ? fm_bench_print_json : fm_bench_print_table)(&bench.figures);
    if (!printed) {
        fprintf(stderr, "fm-proxy bench: the figures could not be written\n");
    }
    return printed ? status : EX_IOERR;
}
