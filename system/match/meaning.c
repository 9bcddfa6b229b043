/* Finds a candidate by its vector. The vectors are requested in small groups, so that the time limit is kept. */
#include "match/meaning.h"
#include "base/clock.h"
#include "match/schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 16
#define SHOWN   48 /* characters of a title */

/* How near the best candidate must be (cosine), and how much nearer than the next one. Without a verb (BARE) the limits
 * are higher, because the words may not be a request to show a thing. */
#define NEAR_NAMED  0.25
#define APART_NAMED 0.07
#define NEAR_BARE   0.33
#define APART_BARE  0.1

struct nearest {
    double best, next;
    size_t at; /* index among the tabs, then among the applications */
};

struct meaning {
    const struct sy_index *index;
    const struct sy_picker *picker;
    int64_t until_ms;
    const float *wanted;
    size_t size;
    struct nearest nearest;
};

static char *describe_thing(const struct sy_index *index, size_t at) {
    char plain[4 * SHOWN + 4];
    char domain[4 * 30 + 4] = "";
    char *text = NULL;
    if (at < index->tab_count) {
        const struct sy_numbered_tab *tab = &index->scene->snapshot->tabs[at];
        sy_plain(tab->tab->title, SHOWN, plain, sizeof plain);
        sy_drop_queries(plain);
        sy_plain(strncmp(tab->domain, "www.", 4) == 0 ? tab->domain + 4 : tab->domain, 30, domain, sizeof domain);
    } else {
        sy_plain(index->apps[at - index->tab_count].name, SHOWN, plain, sizeof plain);
        snprintf(domain, sizeof domain, "application");
    }
    return asprintf(&text, "%s %s", plain, domain) < 0 ? NULL : text;
}

static double cosine(const float *a, const float *b, size_t size) {
    double product = 0;
    double of_a = 0;
    double of_b = 0;
    for (size_t i = 0; i < size; i++) {
        product += (double)a[i] * b[i];
        of_a += (double)a[i] * a[i];
        of_b += (double)b[i] * b[i];
    }
    return of_a > 0 && of_b > 0 ? product / sqrt(of_a * of_b) : 0;
}

/* Whether both candidates are tabs with the same page. Such tabs are no rivals. */
static bool same(const struct sy_index *index, size_t a, size_t b) {
    const struct sy_snapshot *snapshot = index->scene->snapshot;
    return a < index->tab_count && b < index->tab_count &&
           strcmp(snapshot->tabs[a].tab->url, snapshot->tabs[b].tab->url) == 0;
}

static void compare_vector(struct meaning *meaning, size_t at, const float *vector) {
    struct nearest *nearest = &meaning->nearest;
    double near = cosine(meaning->wanted, vector, meaning->size);
    if (near > nearest->best) {
        nearest->next = same(meaning->index, at, nearest->at) ? nearest->next : nearest->best;
        nearest->best = near;
        nearest->at = at;
    } else if (near > nearest->next && !same(meaning->index, at, nearest->at)) {
        nearest->next = near;
    }
}

static enum fm_code embed_in_time(const struct meaning *meaning, const char *const *texts, size_t count,
                                  float **vectors, size_t *size, struct fm_error *fault) {
    int64_t left = meaning->until_ms - fm_now_ms();
    return left > 0 ? meaning->picker->embed(meaning->picker->self, texts, count, left, vectors, size, fault)
                    : fm_fail(fault, FM_TIMEOUT, "the model did not answer in time");
}

/* Compares the words with `count` candidates from `begin` on. `*compared` false: the model failed, and `fault` says
 * why. */
static enum fm_code compare_some(struct meaning *meaning, size_t begin, size_t count, bool *compared,
                                 struct fm_error *fault, struct fm_error *error) {
    char *texts[AT_ONCE] = {NULL};
    float *vectors = NULL;
    size_t size = 0;
    enum fm_code code = FM_OK;
    for (size_t i = 0; i < count && code == FM_OK; i++) {
        texts[i] = describe_thing(meaning->index, begin + i);
        code = texts[i] ? FM_OK : fm_fail_no_memory(error);
    }
    *compared = code == FM_OK &&
                embed_in_time(meaning, (const char *const *)texts, count, &vectors, &size, fault) == FM_OK &&
                size == meaning->size;
    for (size_t i = 0; *compared && i < count; i++) {
        compare_vector(meaning, begin + i, vectors + i * size);
    }
    for (size_t i = 0; i < count; i++) {
        free(texts[i]);
    }
    free(vectors);
    return code;
}

static bool set_found(const struct sy_index *index, size_t at, bool closes, struct sy_found *found) {
    if (at >= index->tab_count) {
        found->name = index->apps[at - index->tab_count].name;
        found->type = closes ? "close_app" : "focus_app";
        return true;
    }
    size_t tab = at + 1;
    found->type = closes ? "close_tab" : "switch_tab";
    return sy_found_set_tabs(found, &tab, 1);
}

static bool may_pick(const struct sy_reading *reading) {
    bool shows = reading->verb == SY_SWITCH || reading->verb == SY_VISIT || reading->verb == SY_WANT ||
                 reading->verb == SY_OPEN || reading->verb == SY_NO_VERB || reading->verb == SY_CLOSE;
    return shows && !reading->where.given;
}

enum fm_code sy_meaning(const struct sy_index *index, const struct sy_reading *reading, const char *words,
                        const struct sy_picker *picker, int64_t until_ms, struct sy_found *found,
                        struct fm_error *fault, struct fm_error *error) {
    struct meaning meaning = {.index = index, .picker = picker, .until_ms = until_ms};
    char said[SY_TEXT_MAX + 1];
    const char *text = said;
    float *wanted = NULL;
    size_t all = index->tab_count + index->app_count;
    bool compared = false;
    enum fm_code code = FM_OK;
    *found = (struct sy_found){.type = NULL};
    snprintf(said, sizeof said, "%s", words);
    sy_drop_queries(said);
    if (all > 0 && may_pick(reading)) {
        compared = embed_in_time(&meaning, &text, 1, &wanted, &meaning.size, fault) == FM_OK;
        meaning.wanted = wanted;
    }
    for (size_t i = 0; compared && i < all && code == FM_OK; i += AT_ONCE) {
        code = compare_some(&meaning, i, all - i < AT_ONCE ? all - i : AT_ONCE, &compared, fault, error);
    }
    free(wanted);
    bool bare = reading->verb == SY_NO_VERB;
    bool near = meaning.nearest.best >= (bare ? NEAR_BARE : NEAR_NAMED) &&
                meaning.nearest.best - meaning.nearest.next >= (bare ? APART_BARE : APART_NAMED);
    if (code == FM_OK && compared && near && !set_found(index, meaning.nearest.at, reading->verb == SY_CLOSE, found)) {
        code = fm_fail_no_memory(error);
    }
    return code;
}
