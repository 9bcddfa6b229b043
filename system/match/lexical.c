/*
 * Makes a reading from an utterance, clause by clause. There are two ways to cut an utterance into clauses; both are
 * tried. For the first clause that is not clear, the reading keeps the candidates.
 */
#include "match/lexical.h"
#include "match/choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the whole ---- */

static bool rank_all(struct sy_work *work) {
    const struct sy_clause *clause = work->clause;
    sy_terms_make(work->index, clause->names, clause->name_count, &work->terms);
    bool ranked = sy_rank(work->index, SY_APPS, &work->terms, &work->apps) &&
                  sy_rank(work->index, SY_TABS, &work->terms, &work->tabs) &&
                  sy_rank(work->index, SY_PRESETS, &work->terms, &work->presets);
    work->failed |= !ranked;
    return ranked;
}

static void drop_hits(struct sy_work *work) {
    free(work->apps.at);
    free(work->tabs.at);
    free(work->presets.at);
    work->apps = work->tabs = work->presets = (struct sy_hits){.at = NULL};
}

/* Replaces each word that names something by a word without meaning: "go to my bank" becomes "go to my blorp". */
static void make_nonsense(const struct sy_work *work) {
    char *text = work->out->nonsense;
    size_t used = 0;
    for (size_t i = 0; i < work->words->count; i++) {
        const struct sy_word *word = &work->words->at[i];
        bool names = false;
        for (size_t j = 0; j < work->clause->name_count; j++) {
            names |= work->clause->names[j] == word && !sy_is_stop(word->text);
        }
        int len = snprintf(text + used, SY_TEXT_MAX + 1 - used, "%s%s", i ? " " : "", names ? "blorp" : word->text);
        used += (size_t)len < SY_TEXT_MAX + 1 - used ? (size_t)len : 0;
    }
}

/* Reads one clause. The candidates of the first unclear clause are kept. The clauses after it are read too, so that a
 * model has to decide only one. */
static void read_clause(struct sy_work *work) {
    struct sy_reading *out = work->out;
    size_t before = out->count;
    enum sy_standing standing = rank_all(work) ? sy_resolve(work) : SY_ASK;
    if (out->standing == SY_CLEAR) {
        out->verb = work->clause->verb;
        out->where = work->clause->where;
    }
    if (standing != SY_CLEAR && out->standing == SY_CLEAR) {
        out->standing = standing;
        make_nonsense(work);
        out->open = before;
        out->apps = work->apps;
        out->tabs = work->tabs;
        out->presets = work->presets;
        work->apps = work->tabs = work->presets = (struct sy_hits){.at = NULL};
    } else if (standing != SY_CLEAR) {
        out->standing = SY_ASK; /* two clauses are not clear */
    }
    drop_hits(work);
}

/* Gives the earlier verb to the first clauses if they have no verb. They continue the earlier command ("also the
 * youtube ones"), or answer a question. */
static void inherit(const struct sy_work *work, struct sy_clauses *clauses) {
    const char *first = work->words->at[0].text;
    const char *last = work->words->at[work->words->count - 1].text;
    bool goes_on = sy_is_one_of(first, "and also same likewise") || sy_is_one_of(last, "too also well likewise");
    for (size_t i = 0; i < 3 && i < work->words->count; i++) {
        goes_on |= strcmp(work->words->at[i].text, "same") == 0; /* "do the same with slack" */
    }
    bool may = work->before && (work->before->asked || goes_on);
    for (size_t i = 0; i < clauses->count && may && clauses->at[i].verb == SY_NO_VERB; i++) {
        clauses->at[i].verb = work->before->verb;
        if (work->before->verb == SY_PLACE && !clauses->at[i].where.given) {
            clauses->at[i].where = work->before->where;
        }
    }
}

/* Whether one thing would be both closed and shown: "close all tabs, I need the weather". */
static bool contradicts(const struct sy_reading *out) {
    for (size_t i = 0; i < out->count; i++) {
        for (size_t j = 0; j < out->count && sy_found_destroys(&out->found[i]); j++) {
            const struct sy_found *a = &out->found[i];
            const struct sy_found *b = &out->found[j];
            bool same = !sy_found_destroys(b) && a->name && b->name && strcmp(a->name, b->name) == 0 && i < j;
            for (size_t k = 0; k < a->tab_count && !sy_found_destroys(b) && b->tab_count == 1; k++) {
                same |= a->tabs[k] == b->tabs[0];
            }
            if (same) {
                return true;
            }
        }
    }
    return false;
}

static bool closes_all(const struct sy_clauses *clauses) {
    bool all = true;
    for (size_t i = 0; i < clauses->count; i++) {
        all = all && clauses->at[i].verb == SY_CLOSE;
    }
    return all;
}

/* In "close the keyboards and the bugs", all things are proposed in one question if one of them is not sure. If such a
 * question is not possible, nothing is proposed, because a "yes" would close only some of the things. */
static void propose_list(struct sy_work *work, bool list) {
    struct sy_reading *out = work->out;
    sy_merge_closes(work);
    out->proposes = false;
    if (list && out->count == 1 && strcmp(out->found[0].type, "close_tab") == 0) {
        struct sy_found all = out->found[0];
        out->count = 0;
        out->standing = sy_propose(work, &all);
        return;
    }
    while (out->count > 0) {
        sy_found_free(&out->found[--out->count]);
    }
}

static void resolve_all(struct sy_work *work, const struct sy_clauses *clauses) {
    if (clauses->too_many || clauses->count == 0) {
        work->out->standing =
            clauses->count ? sy_ask_back(work, "That is too much at once") : sy_ask_back(work, "What is to be done?");
        return;
    }
    work->clause = &clauses->at[0];
    if (clauses->question) {
        work->out->standing = rank_all(work) ? sy_answer_question(work) : SY_ASK;
        drop_hits(work);
        return;
    }
    bool list = closes_all(clauses);
    for (size_t i = 0; i < clauses->count && !work->failed && (list || !work->out->proposes); i++) {
        work->clause = &clauses->at[i];
        size_t before = work->out->count;
        read_clause(work);
        list = list && work->out->count > before; /* false: a part of the list is not known */
    }
    if (work->out->proposes && clauses->count > 1) {
        propose_list(work, list);
    }
    if (work->swap && work->out->standing == SY_CLEAR) {
        work->out->standing = sy_ask_back(work, "Two applications can change places. Which ones?");
    }
    sy_merge_closes(work);
    if (work->out->standing == SY_CLEAR && contradicts(work->out)) {
        work->out->standing = sy_ask_back(work, "What is to be shown would be closed too. What is to stay?");
    }
}

/* Reads the utterance, which is cut in one of the two ways. The clauses are on the heap: they are too large for a
 * thread's stack. */
static void read_all(struct sy_work *work, bool split) {
    struct sy_clauses *clauses = calloc(1, sizeof *clauses);
    work->failed = work->failed || !clauses;
    if (clauses) {
        sy_clauses_read(work->words, split, clauses);
        inherit(work, clauses);
        resolve_all(work, clauses);
    }
    work->clause = NULL;
    free(clauses);
}

static bool may_be_one_name(const struct sy_words *words) {
    for (size_t i = 0; i < words->count; i++) {
        if (words->at[i].breaks || strcmp(words->at[i].text, "and") == 0) {
            return true;
        }
    }
    return false;
}

enum fm_code sy_lexical(const struct sy_index *index, const struct sy_words *words, const struct sy_before *before,
                        struct sy_reading *reading, struct fm_error *error) {
    struct sy_work work = {.index = index, .before = before, .words = words, .out = reading};
    *reading = (struct sy_reading){.standing = SY_CLEAR};
    read_all(&work, true);
    if (reading->standing != SY_CLEAR && may_be_one_name(words) && !work.failed) {
        struct sy_reading whole = {.standing = SY_CLEAR};
        work.out = &whole;
        work.swap = NULL;
        read_all(&work, false);
        bool better = whole.standing == SY_CLEAR;
        sy_reading_free(better ? reading : &whole);
        *reading = better ? whole : *reading;
    }
    return work.failed ? fm_fail_no_memory(error) : FM_OK;
}

enum fm_code sy_lexical_choose(const struct sy_index *index, const struct sy_words *words,
                               const struct sy_reading *earlier, const size_t *choices, size_t count,
                               struct sy_reading *reading, struct fm_error *error) {
    struct sy_work work = {.index = index, .words = words, .out = reading};
    bool closes = earlier->verb == SY_CLOSE;
    *reading = (struct sy_reading){.verb = earlier->verb, .where = earlier->where};
    if (count > 1 && !(closes && earlier->group == SY_TABS)) {
        reading->standing = sy_ask_back(&work, "One only can be meant. Which one?");
    } else if (earlier->group == SY_TABS) {
        size_t tabs[SY_CHOICES_MAX];
        for (size_t i = 0; i < count; i++) {
            tabs[i] = choices[i] + 1;
        }
        reading->standing = sy_add_tabs(&work, closes ? "close_tab" : "switch_tab", tabs, count);
    } else if (earlier->group == SY_APPS && earlier->where.given) {
        reading->standing = sy_place(&work, index->apps[choices[0]].name, &earlier->where);
    } else if (earlier->group == SY_APPS) {
        reading->standing = sy_add_app(&work, closes ? "close_app" : "focus_app", &index->apps[choices[0]]);
    } else {
        struct sy_found found = {.type = "activate_preset", .name = index->presets[choices[0]].name};
        reading->standing = sy_add(&work, &found);
    }
    return work.failed ? fm_fail_no_memory(error) : FM_OK;
}

enum fm_code sy_lexical_rank(const struct sy_index *index, const struct sy_words *words, struct sy_reading *reading,
                             struct fm_error *error) {
    struct sy_clause clause = {.verb = SY_NO_VERB};
    struct sy_work work = {.index = index, .words = words, .out = reading, .clause = &clause};
    *reading = (struct sy_reading){.standing = SY_UNSURE, .verb = SY_NO_VERB, .reason = "What is to be done?"};
    for (size_t i = 0; i < words->count; i++) {
        clause.names[clause.name_count++] = &words->at[i];
    }
    bool ranked = rank_all(&work);
    make_nonsense(&work);
    reading->apps = work.apps;
    reading->tabs = work.tabs;
    reading->presets = work.presets;
    return ranked ? FM_OK : fm_fail_no_memory(error);
}

void sy_reading_free(struct sy_reading *reading) {
    for (size_t i = 0; i < reading->count; i++) {
        sy_found_free(&reading->found[i]);
    }
    reading->count = 0;
    free(reading->apps.at);
    free(reading->tabs.at);
    free(reading->presets.at);
    reading->apps = reading->tabs = reading->presets = (struct sy_hits){.at = NULL};
}
