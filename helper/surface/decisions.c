/*
 * The decisions API. Each answer is written as JSON when it comes, as the vectors are (embeddings.c).
 *
 * The numbers are likelihoods: how probable it is that the model's answer begins with a text, divided by the sum for
 * all texts of the question. They are as good as the model is, and nobody has calibrated them.
 */
#include "surface/decisions.h"
#include "surface/answer.h"
#include "surface/request.h"
#include "surface/usage.h"

#include <json-c/json.h>
#include <math.h>

/* ---- numbers ---- */

/* Reads the engine's list, one number for each of `count` answers in its order, and puts them in the request's order. */
static bool read_logprobs(struct json_object *list, const size_t *order, size_t count, double *logprobs) {
    if (!json_object_is_type(list, json_type_array) || json_object_array_length(list) != count) {
        return false;
    }
    bool valid = true;
    for (size_t i = 0; i < count; i++) {
        struct json_object *value = json_object_array_get_idx(list, i);
        double logprob = json_object_get_double(value);
        valid &= (json_object_is_type(value, json_type_double) || json_object_is_type(value, json_type_int)) &&
                 isfinite(logprob) && logprob <= 0;
        logprobs[order[i]] = logprob;
    }
    return valid;
}

/* Makes probabilities of log probabilities, so that their sum is 1. Returns the index of the greatest. */
static size_t normalise(double *values, size_t count) {
    size_t best = 0;
    double sum = 0;
    for (size_t i = 1; i < count; i++) {
        best = values[i] > values[best] ? i : best;
    }
    const double most = values[best];
    for (size_t i = 0; i < count; i++) {
        values[i] = exp(values[i] - most); /* the greatest is 1, so the sum is not 0 */
        sum += values[i];
    }
    for (size_t i = 0; i < count; i++) {
        values[i] /= sum;
    }
    return best;
}

/* ---- answers ---- */

/* `list` has the choices, or the levels, each of which also has a value: its index. */
static void write_probabilities(struct json_object *list, bool levels, const double *probabilities, size_t best,
                                struct fm_json_writer *w) {
    const char *key = levels ? "label" : "value";
    fm_json_key_double(w, "confidence", probabilities[best]);
    fm_json_key(w, "probabilities");
    fm_json_array_begin(w);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        fm_json_object_begin(w);
        fm_json_key_value(w, key, json_object_object_get(json_object_array_get_idx(list, i), key));
        if (levels) {
            fm_json_key_int(w, "value", (int64_t)i);
        }
        fm_json_key_double(w, "probability", probabilities[i]);
        fm_json_object_end(w);
    }
    fm_json_array_end(w);
}

/* The mean of the levels' values. */
static double score_of(const double *probabilities, size_t count) {
    double score = 0;
    for (size_t i = 0; i < count; i++) {
        score += (double)i * probabilities[i];
    }
    return score;
}

static void write_entry(struct fm_answer *answer, struct json_object *question, double *logprobs) {
    struct json_object *choices = json_object_object_get(question, "choices");
    struct json_object *levels = json_object_object_get(question, "levels");
    struct fm_json_writer w = fm_json_writer_on(&answer->output);
    w.comma = answer->entry_count > 0;
    size_t best = normalise(logprobs, fm_question_choices(question));
    fm_json_object_begin(&w);
    fm_json_key_value(&w, "type", json_object_object_get(question, "type"));
    fm_json_key_value(&w, "name", json_object_object_get(question, "name"));
    if (choices) {
        fm_json_key_value(&w, "choice", json_object_object_get(json_object_array_get_idx(choices, best), "value"));
        write_probabilities(choices, false, logprobs, best, &w);
    } else if (levels) {
        fm_json_key_double(&w, "score", score_of(logprobs, json_object_array_length(levels)));
        write_probabilities(levels, true, logprobs, best, &w);
    } else {
        fm_json_key_double(&w, "probability", logprobs[0]); /* of "Yes" */
    }
    fm_json_object_end(&w);
}

enum fm_code fm_answer_decide(struct fm_answer *answer, struct json_object *list, struct fm_error *error) {
    if (answer->entry_count == answer->request.input_count) {
        return fm_fail(error, FM_INTERNAL, "the engine sent more decisions than there are questions");
    }
    struct json_object *question = json_object_array_get_idx(answer->request.questions, answer->entry_count);
    size_t order[FM_QUESTION_CHOICES_MAX];
    double logprobs[FM_QUESTION_CHOICES_MAX];
    size_t count = fm_question_choices(question);
    fm_question_order(question, order);
    if (!read_logprobs(list, order, count, logprobs)) {
        return fm_fail(error, FM_INTERNAL, "the engine sent something other than %zu log probabilities", count);
    }
    size_t before = answer->output.len;
    write_entry(answer, question, logprobs);
    if (answer->output.failed) {
        answer->output.len = before; /* keeps only whole entries */
        return fm_fail_no_memory(error);
    }
    answer->entry_count++;
    return FM_OK;
}

/* ---- the object ---- */

static void decisions_write(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key(w, "answers");
    fm_json_array_begin(w);
    if (answer->output.len > 0) {
        fm_json_raw(w, answer->output.data, answer->output.len);
    }
    fm_json_array_end(w);
    fm_json_key_str(w, "model", answer->model);
    fm_responses_write_usage(&answer->usage, w);
    fm_answer_write_report(answer, FM_MOMENT_NOW, w);
    fm_json_object_end(w);
}

const struct fm_surface fm_surface_decisions = {
    .result_member = "decision",
    .id_prefix = "dec_",
    .whole_usage = true,
    .parse = fm_decisions_parse,
    .write = decisions_write,
};
