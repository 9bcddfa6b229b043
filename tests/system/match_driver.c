/*
 * Matches words on a fake desktop. One JSON object on stdin:
 *
 *     {"desktop": {as fake.h has it}, "presets": [names], "way": "lexical", "first" (words, then the model) or "model",
 *      "model": [path of fm-proxy, options of it] or "destructive" or "first",
 *      "embedding_models": the folder of a model that embeds, for the real one, "model_ms": how long it may take,
 *      "requests": [{"words": "...", "after": "what was said before"}]}
 *
 * There are two fake models: one picks something that closes, whether the schema allows it or not, the other one picks
 * the schema's first option. One JSON object on stdout: {"answers": [{"envelope", "by": "words" or "model", "ms",
 * "cpu_ms", "model_error", "asked": how often}]}.
 */
#include "backends/fake.h"
#include "base/platform.h"
#include "match/match.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OUT_MAX (64u << 20)

/* ---- fake models ---- */

struct fake {
    bool destroys;
    size_t asked;
    char *prompt; /* the last prompt */
};

static struct json_object *const_of(struct json_object *option) {
    struct json_object *type = json_object_object_get(json_object_object_get(option, "properties"), "type");
    return json_object_object_get(type, "const");
}

/* Makes an object that fits the option, with the first value of each enum. */
static struct json_object *first_of(struct json_object *option) {
    struct json_object *made = json_object_new_object();
    struct json_object *properties = json_object_object_get(option, "properties");
    struct json_object_iter at;
    json_object_object_foreachC(properties, at) {
        const char *name = at.key;
        struct json_object *schema = at.val;
        struct json_object *items = json_object_object_get(schema, "items");
        struct json_object *values = json_object_object_get(items ? items : schema, "enum");
        struct json_object *fixed = json_object_object_get(schema, "const");
        struct json_object *value = fixed ? fixed : json_object_array_get_idx(values, 0);
        struct json_object *list = items ? json_object_new_array() : NULL;
        if (list) {
            json_object_array_add(list, json_object_get(value));
        }
        json_object_object_add(made, name, list ? list : json_object_get(value));
    }
    return made;
}

static bool is_close(struct json_object *option) {
    return strncmp(json_object_get_string(const_of(option)), "close_", 6) == 0;
}

/* The answer of a model that ignores its schema: it closes the first tab that it can pick, or else an application. */
static struct json_object *forged(struct json_object *options) {
    struct json_object *made = json_object_new_object();
    struct json_object *label = NULL;
    for (size_t i = 0; i < json_object_array_length(options); i++) {
        struct json_object *properties = json_object_object_get(json_object_array_get_idx(options, i), "properties");
        struct json_object *tab = json_object_object_get(properties, "tab");
        struct json_object *app = json_object_object_get(properties, "app_name");
        label = tab ? json_object_array_get_idx(json_object_object_get(tab, "enum"), 0) : label;
        if (app && !label) {
            json_object_object_add(made, "app_name",
                                   json_object_get(json_object_array_get_idx(json_object_object_get(app, "enum"), 0)));
        }
    }
    if (label) {
        struct json_object *list = json_object_new_array();
        json_object_array_add(list, json_object_get(label));
        json_object_object_add(made, "tabs", list);
    }
    json_object_object_add(made, "type", json_object_new_string(label ? "close_tab" : "close_app"));
    return made;
}

static enum fm_code fake_pick(void *self, const struct sy_question *question, struct json_object **answer,
                              struct fm_error *error) {
    struct fake *fake = self;
    char *text = strndup(question->schema->data, question->schema->len);
    struct json_object *schema = json_tokener_parse(text);
    struct json_object *options = json_object_object_get(schema, "anyOf");
    (void)error;
    *answer = NULL;
    for (size_t i = 0; i < json_object_array_length(options) && !*answer; i++) {
        struct json_object *option = json_object_array_get_idx(options, i);
        *answer = !fake->destroys || is_close(option) ? first_of(option) : NULL;
    }
    *answer = *answer ? *answer : forged(options);
    fake->asked++;
    free(fake->prompt);
    fake->prompt = strndup(question->prompt->data, question->prompt->len);
    json_object_put(schema);
    free(text);
    return FM_OK;
}

/* ---- requests ---- */

static double now_ms(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1000 + (double)now.tv_nsec / 1e6;
}

static const char *text_of(struct json_object *object, const char *name) {
    return json_object_get_string(json_object_object_get(object, name));
}

static void write_error(const struct fm_error *error, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "code", error->reason ? error->reason : fm_code_name(error->code));
    fm_json_key_str(w, "param", error->param);
    fm_json_key_str(w, "detail", error->detail);
    fm_json_object_end(w);
}

/* The envelope of earlier words. They are matched without a model, and the user has seen this envelope. */
static struct json_object *envelope_of(const struct sy_scene *scene, const char *words) {
    struct fm_error error;
    struct fm_buf text;
    fm_buf_init(&text, OUT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&text);
    struct json_object *envelope = NULL;
    if (sy_match(scene, words, NULL, &w, NULL, &error) == FM_OK) {
        fm_buf_append_char(&text, '\0');
        envelope = json_tokener_parse(text.data);
    }
    fm_buf_free(&text);
    return envelope;
}

static void answer(const struct sy_scene *scene, struct sy_match_options *options, struct json_object *request,
                   struct fake *fake, struct fm_json_writer *w) {
    struct sy_matched matched;
    struct fm_error error = {.code = FM_OK};
    struct fm_buf text;
    size_t asked = fake->asked;
    options->earlier_words = text_of(request, "after");
    options->earlier_envelope = options->earlier_words ? envelope_of(scene, options->earlier_words) : NULL;
    fm_buf_init(&text, OUT_MAX);
    struct fm_json_writer envelope = fm_json_writer_on(&text);
    double begin = now_ms(CLOCK_MONOTONIC);
    double cpu_begin = now_ms(CLOCK_PROCESS_CPUTIME_ID);
    enum fm_code code = sy_match(scene, text_of(request, "words"), options, &envelope, &matched, &error);
    double ms = now_ms(CLOCK_MONOTONIC) - begin;
    double cpu_ms = now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin;
    fm_json_object_begin(w);
    if (code == FM_OK) {
        fm_json_key(w, "envelope");
        fm_json_raw(w, text.data, text.len);
        fm_json_key_str(w, "by", matched.by == SY_BY_MODEL ? "model" : "words");
        fm_json_key_str(w, "model_error", matched.no_model.code ? matched.no_model.detail : NULL);
    } else {
        fm_json_key(w, "error");
        write_error(&error, w);
    }
    fm_json_key_double(w, "ms", ms);
    fm_json_key_double(w, "cpu_ms", cpu_ms);
    fm_json_key_int(w, "asked", (int64_t)(fake->asked - asked));
    fm_json_key_str(w, "prompt", fake->asked > asked ? fake->prompt : NULL);
    fm_json_object_end(w);
    json_object_put(options->earlier_envelope);
    fm_buf_free(&text);
}

/* ---- the whole ---- */

static struct sy_proxy *start_proxy(struct json_object *model, const char *embedding_models) {
    const char *arguments[32] = {NULL};
    size_t count = json_object_array_length(model);
    for (size_t i = 1; i < count && i < 31; i++) {
        arguments[i - 1] = json_object_get_string(json_object_array_get_idx(model, i));
    }
    const struct sy_proxy_options options = {.path = json_object_get_string(json_object_array_get_idx(model, 0)),
                                             .arguments = arguments,
                                             .embedding_models = embedding_models};
    return sy_proxy_new(&options);
}

static void answer_all(struct json_object *root, const struct sy_scene *scene, struct fm_json_writer *w) {
    struct json_object *model = json_object_object_get(root, "model");
    struct json_object *requests = json_object_object_get(root, "requests");
    const char *way = text_of(root, "way");
    bool real = json_object_is_type(model, json_type_array);
    struct sy_proxy *proxy = real ? start_proxy(model, text_of(root, "embedding_models")) : NULL;
    struct fake fake = {.destroys = !real && model && strcmp(json_object_get_string(model), "destructive") == 0};
    struct sy_picker picker = real && proxy ? sy_proxy_picker(proxy) : (struct sy_picker){&fake, fake_pick, NULL};
    struct sy_match_options options = {.picker = way && strcmp(way, "lexical") != 0 && model ? &picker : NULL,
                                       .model_ms = json_object_get_int64(json_object_object_get(root, "model_ms")),
                                       .way = way && strcmp(way, "model") == 0 ? SY_MODEL_ALONE : SY_WORDS_FIRST};
    fm_json_object_begin(w);
    fm_json_key(w, "answers");
    fm_json_array_begin(w);
    for (size_t i = 0; i < json_object_array_length(requests); i++) {
        answer(scene, &options, json_object_array_get_idx(requests, i), &fake, w);
    }
    fm_json_array_end(w);
    fm_json_object_end(w);
    free(fake.prompt);
    sy_proxy_free(proxy);
}

int main(void) {
    struct json_object *root = json_object_from_fd(STDIN_FILENO);
    struct json_object *presets = json_object_object_get(root, "presets");
    const char *names[64];
    struct sy_desktop desktop;
    struct sy_snapshot snapshot;
    struct fm_error error;
    struct fm_buf out;
    fm_buf_init(&out, OUT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&out);
    if (!root || sy_fake_new(json_object_object_get(root, "desktop"), &desktop, &error) != FM_OK ||
        sy_snapshot_take(&desktop, &snapshot, &error) != FM_OK) {
        fprintf(stderr, "match_driver: no JSON, or no desktop in it\n");
        return 1;
    }
    struct sy_scene scene = {.snapshot = &snapshot, .presets = names};
    while (presets && scene.preset_count < 64 && scene.preset_count < json_object_array_length(presets)) {
        names[scene.preset_count] = json_object_get_string(json_object_array_get_idx(presets, scene.preset_count));
        scene.preset_count++;
    }
    answer_all(root, &scene, &w);
    fwrite(out.data, 1, out.len, stdout);
    fm_buf_free(&out);
    sy_snapshot_free(&snapshot);
    desktop.backend->free(desktop.self);
    json_object_put(root);
    return 0;
}
