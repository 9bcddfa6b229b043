/*
 * Writes texts that a schema's grammar allows, without a model's weights: the vocabulary of a GGUF file, random logits
 * and the llama engine's own sampler and grammar. So the texts are anything that the grammar allows, not what a model
 * prefers.
 *
 * usage: sample_schema MODEL < REQUESTS
 *
 * A request is one line, {"schema":..., "strict":true, "count":20, "seed":1}. Its answer is one line too,
 * {"texts":[...],"report":{...},"compile_us":n,"masks_us":[...]} or {"error":"...","param":"...","refused_us":n}. A
 * text that does not end within TOKENS_MAX tokens is dropped and made again, at most TRIES_MAX times.
 */
#include "base/clock.h"
#include "engine/guide/guide.h"
#include "engine/llama/sampler.h"
#include "engine/llama/vocabulary.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS_MAX 160
#define TRIES_MAX  8

/* The longer a text is, the more likely are the tokens that bring it to an end. */
#define END_BIAS_PER_TOKEN 0.25f

struct sampling {
    struct fm_prompter prompter;
    struct fm_vocabulary vocabulary; /* the vocabulary of `prompter` */
    struct fm_grammar_vocab *vocab;
    float *logits;
    bool *ends; /* for each token: whether it is only quotes, brackets and white space, or the end of the turn */
    size_t vocab_size;
    uint64_t random;
    struct fm_buf masks; /* the time of each mask, in us: JSON numbers separated by commas */
};

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void draw_logits(struct sampling *s, size_t so_far) {
    for (size_t i = 0; i < s->vocab_size; i++) {
        float unit = (float)(next_random(&s->random) >> 40) / 16777216.0f;
        s->logits[i] = 4 * unit + (s->ends[i] ? END_BIAS_PER_TOKEN * (float)so_far : 0);
    }
}

static bool append_token(struct sampling *s, struct fm_grammar *grammar, llama_token token, struct fm_buf *text) {
    char piece[1024];
    int32_t len = llama_token_to_piece(s->prompter.vocab, token, piece, sizeof piece, 0, false);
    fm_buf_append(text, piece, len > 0 ? (size_t)len : 0);
    return fm_grammar_take(grammar, token);
}

/* Only for the measurement: the draw computes the mask again if it needs it. */
static void time_mask(struct sampling *s, struct fm_grammar *grammar) {
    char number[24];
    int64_t start = fm_now_us();
    (void)fm_grammar_mask(grammar);
    snprintf(number, sizeof number, "%s%lld", s->masks.len ? "," : "", (long long)(fm_now_us() - start));
    fm_buf_append_str(&s->masks, number);
}

/* True if `text` is complete. */
static bool write_text(struct sampling *s, struct fm_grammar *grammar, struct fm_sampler *sampler,
                       struct fm_buf *text) {
    for (size_t tokens = 0; tokens < TOKENS_MAX; tokens++) {
        llama_token token = fm_grammar_forced(grammar);
        if (token == LLAMA_TOKEN_NULL) {
            time_mask(s, grammar);
            draw_logits(s, tokens);
            token = fm_sampler_draw(sampler, s->logits);
        }
        if (token == LLAMA_TOKEN_NULL) {
            fprintf(stderr, "no token: %s\n", fm_grammar_reason(grammar));
            exit(EXIT_FAILURE);
        }
        if (llama_vocab_is_eog(s->prompter.vocab, token)) {
            return true;
        }
        if (!append_token(s, grammar, token, text)) {
            fprintf(stderr, "not taken: %s\n", fm_grammar_reason(grammar));
            exit(EXIT_FAILURE);
        }
        if (fm_grammar_complete(grammar)) {
            return true;
        }
    }
    return false;
}

/* Compiles the guide. On failure there is nothing to free. */
static enum fm_code make_guide(struct sampling *s, struct fm_kit_job *job, struct fm_guide *guide,
                               struct fm_error *error) {
    enum fm_code code = fm_guide_init(guide, job, &fm_tool_form_own, &s->vocabulary, &s->vocab, error);
    if (code == FM_OK && (code = fm_guide_wait(guide, INT64_MAX, error)) != FM_OK) {
        fm_guide_free(guide);
    }
    return code;
}

/* Writes one text to `w`, or none if the text does not end. `job` must be as fm_guide_init requires. */
static enum fm_code sample(struct sampling *s, struct fm_kit_job *job, struct fm_json_writer *w,
                           struct fm_error *error) {
    bool whole = false;
    for (int i = 0; i < TRIES_MAX && !whole; i++) {
        struct fm_guide guide;
        struct fm_sampler sampler;
        struct fm_buf text;
        job->seed = (int64_t)next_random(&s->random);
        enum fm_code code = make_guide(s, job, &guide, error);
        code = code ? code : fm_sampler_init(&sampler, job, guide.grammar, s->prompter.vocab, error);
        if (code != FM_OK) {
            return code;
        }
        fm_buf_init(&text, PTRDIFF_MAX);
        whole = write_text(s, guide.grammar, &sampler, &text);
        if (whole) {
            fm_json_string(w, text.data ? text.data : "", text.len);
        }
        fm_sampler_free(&sampler);
        fm_guide_free(&guide);
        fm_buf_free(&text);
    }
    return FM_OK;
}

/* Writes the answer's members. */
static void write_answer(struct sampling *s, struct json_object *request, struct fm_json_writer *w) {
    struct fm_kit_job job = {
        .sampling = {[FM_PARAM_TEMPERATURE] = 1.5, [FM_PARAM_TOP_P] = 1, [FM_PARAM_REPEAT_PENALTY] = 1},
        .has_seed = true,
        .format.kind = FM_FORMAT_JSON_SCHEMA,
    };
    struct fm_error error;
    struct fm_guide guide;
    int64_t count = json_object_get_int64(json_object_object_get(request, "count"));
    job.format.schema = json_object_object_get(request, "schema");
    job.format.strict = json_object_get_boolean(json_object_object_get(request, "strict"));
    fm_buf_init(&job.schema_report, PTRDIFF_MAX);
    s->random = (uint64_t)json_object_get_int64(json_object_object_get(request, "seed"));
    fm_buf_reset(&s->masks);
    int64_t start = fm_now_us();
    enum fm_code code = make_guide(s, &job, &guide, &error);
    int64_t took = fm_now_us() - start;
    if (code == FM_OK) {
        fm_guide_free(&guide);
        fm_json_key_int(w, "compile_us", took);
        fm_json_key(w, "report");
        fm_json_raw(w, job.schema_report.data, job.schema_report.len);
        fm_json_key(w, "texts");
        fm_json_array_begin(w);
        for (int64_t i = 0; i < count && code == FM_OK; i++) {
            fm_buf_reset(&job.schema_report);
            code = sample(s, &job, w, &error);
        }
        fm_json_array_end(w);
        fm_json_key(w, "masks_us");
        fm_json_array_begin(w);
        if (s->masks.len) {
            fm_json_raw(w, s->masks.data, s->masks.len);
        }
        fm_json_array_end(w);
    }
    if (code != FM_OK) {
        fm_json_key_int(w, "refused_us", took);
        fm_json_key_str(w, "error", error.detail);
        fm_json_key_str(w, "param", error.param);
    }
    fm_buf_free(&job.schema_report);
}

static void answer(struct sampling *s, const char *line) {
    struct json_object *request = json_tokener_parse(line);
    struct fm_buf out;
    fm_buf_init(&out, PTRDIFF_MAX);
    struct fm_json_writer w = fm_json_writer_on(&out);
    fm_json_object_begin(&w);
    write_answer(s, request, &w);
    fm_json_object_end(&w);
    printf("%.*s\n", (int)out.len, out.data);
    fflush(stdout);
    fm_buf_free(&out);
    json_object_put(request);
}

/* Whether the token only has characters that end strings, arrays or objects, or ends the turn. */
static bool is_end(const struct llama_vocab *vocab, llama_token token) {
    char piece[64];
    int32_t len = llama_token_to_piece(vocab, token, piece, sizeof piece - 1, 0, false);
    if (len <= 0) {
        return llama_vocab_is_eog(vocab, token);
    }
    piece[len] = '\0';
    return strspn(piece, "\"]}") == (size_t)len;
}

static bool set_up(struct sampling *s, const struct llama_model *model, struct fm_error *error) {
    if (fm_prompter_init(&s->prompter, model, NULL, error) != FM_OK) {
        return false;
    }
    s->vocabulary = fm_prompter_vocabulary(&s->prompter);
    struct fm_kit_job any = {.format.kind = FM_FORMAT_JSON_OBJECT};
    struct fm_guide guide;
    /* the first guide is slower to make, because it builds the vocabulary */
    if (make_guide(s, &any, &guide, error) != FM_OK) {
        return false;
    }
    fm_guide_free(&guide);
    s->vocab_size = (size_t)llama_vocab_n_tokens(s->prompter.vocab);
    s->logits = calloc(s->vocab_size, sizeof *s->logits);
    s->ends = calloc(s->vocab_size, sizeof *s->ends);
    for (size_t i = 0; s->ends && i < s->vocab_size; i++) {
        s->ends[i] = is_end(s->prompter.vocab, (llama_token)i);
    }
    return s->logits && s->ends;
}

static void ignore_log(enum ggml_log_level level, const char *text, void *data) {
    (void)level;
    (void)text;
    (void)data;
}

int main(int argc, char **argv) {
    struct sampling s = {0};
    struct fm_error error = {0};
    struct llama_model_params params = llama_model_default_params();
    char *line = NULL;
    size_t size = 0;
    params.vocab_only = true;
    fm_buf_init(&s.masks, PTRDIFF_MAX);
    llama_log_set(ignore_log, NULL);
    struct llama_model *model = argc == 2 ? llama_model_load_from_file(argv[1], params) : NULL;
    if (!model || !set_up(&s, model, &error)) {
        fprintf(stderr, "usage: sample_schema MODEL < REQUESTS\n%s\n", error.detail);
        return EXIT_FAILURE;
    }
    while (getline(&line, &size, stdin) > 0) {
        answer(&s, line);
    }
    free(line);
    fm_buf_free(&s.masks);
    free(s.logits);
    free(s.ends);
    fm_grammar_vocab_free(s.vocab);
    fm_prompter_free(&s.prompter);
    llama_model_free(model);
    return EXIT_SUCCESS;
}
