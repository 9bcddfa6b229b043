/* How long an answer took, and its rates. See timings.h. */
#include "surface/timings.h"

#include <json-c/json.h>

/* Sums over all choices of an answer. */
struct sums {
    struct fm_timings timings;
    int64_t read;    /* tokens of prompts that had to be computed */
    int64_t decoded; /* tokens of answers, without the first token of each answer */
};

static void add_choice(struct sums *sums, const struct fm_answer *choice) {
    const struct fm_timings *timings = &choice->timings;
    const struct fm_usage *usage = &choice->usage;
    sums->timings.queue_us += timings->queue_us;
    sums->timings.prefill_us += timings->prefill_us;
    sums->timings.decode_us += timings->decode_us;
    sums->timings.drafted += timings->drafted;
    sums->timings.accepted += timings->accepted;
    sums->timings.told |= timings->told;
    sums->timings.speculates |= timings->speculates;
    sums->read += usage->input > 0 ? usage->input - (usage->cached > 0 ? usage->cached : 0) : 0;
    sums->decoded += usage->output > 0 ? usage->output - 1 : 0;
}

static void write_ms(const char *key, int64_t us, bool known, struct fm_json_writer *w) {
    if (known) {
        fm_json_key_double(w, key, (double)us / 1000);
    } else {
        fm_json_key_null(w, key);
    }
}

/* Tokens per second, to two decimals; null if nothing was counted or measured. */
static void write_rate(const char *key, int64_t tokens, int64_t us, struct fm_json_writer *w) {
    if (tokens > 0 && us > 0) {
        int64_t hundredths = (int64_t)((double)tokens * 1e8 / (double)us + 0.5);
        fm_json_key_double(w, key, (double)hundredths / 100);
    } else {
        fm_json_key_null(w, key);
    }
}

void fm_timings_write(const struct fm_answer *answer, struct fm_json_writer *w) {
    const struct fm_answer *first = answer->choice > 0 ? answer->earlier[0] : answer;
    struct sums sums = {0};
    for (size_t i = 0; i < answer->choice; i++) {
        add_choice(&sums, answer->earlier[i]);
    }
    add_choice(&sums, answer);
    const struct fm_timings *timings = &sums.timings;
    fm_json_key(w, "timings");
    fm_json_object_begin(w);
    write_ms("queue_ms", timings->queue_us, true, w);
    write_ms("prefill_ms", timings->prefill_us, timings->told, w);
    write_ms("decode_ms", timings->decode_us, timings->told, w);
    write_rate("prompt_tokens_per_second", sums.read, timings->prefill_us, w);
    write_rate("output_tokens_per_second", sums.decoded, timings->decode_us, w);
    fm_json_key_count(w, "cached_tokens", first->usage.cached);
    if (timings->speculates) {
        fm_json_key_int(w, "drafted_tokens", timings->drafted);
        fm_json_key_int(w, "accepted_tokens", timings->accepted);
    }
    fm_json_object_end(w);
}

static int64_t read_us(struct json_object *timings, const char *name) {
    return (int64_t)(json_object_get_double(json_object_object_get(timings, name)) * 1000 + 0.5);
}

void fm_timings_restore(struct fm_answer *answer, struct json_object *timings) {
    answer->request.timings = json_object_is_type(timings, json_type_object);
    if (!answer->request.timings) {
        return;
    }
    struct json_object *drafted = json_object_object_get(timings, "drafted_tokens");
    answer->timings = (struct fm_timings){
        .queue_us = read_us(timings, "queue_ms"),
        .prefill_us = read_us(timings, "prefill_ms"),
        .decode_us = read_us(timings, "decode_ms"),
        .told = json_object_object_get(timings, "prefill_ms") != NULL,
        .speculates = drafted != NULL,
        .drafted = json_object_get_int64(drafted),
        .accepted = json_object_get_int64(json_object_object_get(timings, "accepted_tokens")),
    };
}
