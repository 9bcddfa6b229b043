/* Ranks things. A score depends only on the names and words. Titles are compared; they are never instructions. */
#include "match/rank.h"
#include "desktop/url.h"
#include "match/aliases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TITLE_WORDS  48
#define DOMAIN_WORDS 6
#define PATH_WORDS   10
#define TAB_WORDS    (TITLE_WORDS + DOMAIN_WORDS + PATH_WORDS)
#define ALIKE        0.7 /* if two words are less alike, they do not fit at all */
#define WEAK         0.25
#define MEANS        0.85 /* score for a word that means the same */
#define BY_KEYWORD   0.88
#define NEIGHBOUR    0.9 /* the highest score of another product of a site's owner */
#define BY_TITLE     0.8 /* score for an application by the title of its window */

struct sy_doc {
    char (*words)[SY_WORD_MAX]; /* the words of the title, the domain and the path */
    size_t title;
    size_t domain;
    size_t path;
    char joined[256]; /* the title's words without gaps and stop words; cut */
};

/* ---- the index ---- */

static size_t keep_labels(char (*labels)[SY_WORD_MAX], size_t count) {
    static const char *const second[] = {"co", "com", "org", "net", "ac", "gov", "github", "web", "app"};
    size_t kept = count > 1 ? count - 1 : count; /* the last label is a public suffix such as "com" */
    for (size_t i = 0; i < sizeof second / sizeof second[0] && kept > 1; i++) {
        kept -= strcmp(labels[kept - 1], second[i]) == 0;
    }
    return kept;
}

static void join_title(struct sy_doc *doc) {
    size_t used = 0;
    for (size_t i = 0; i < doc->title; i++) {
        size_t len = strlen(doc->words[i]);
        if (!sy_is_stop(doc->words[i]) && used + len < sizeof doc->joined) {
            memcpy(doc->joined + used, doc->words[i], len);
            used += len;
        }
    }
    doc->joined[used] = '\0';
}

/* Splits the URL's path into words, without the query, which may have secrets. */
static size_t split_path(const char *url, char (*words)[SY_WORD_MAX]) {
    char path[256];
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    host += strcspn(host, ":/?#");
    size_t len = strcspn(host, "?#");
    len = len < sizeof path ? len : sizeof path - 1;
    memcpy(path, host, len);
    path[len] = '\0';
    return sy_words_split(path, words, PATH_WORDS);
}

static bool read_tab(const struct sy_numbered_tab *tab, struct sy_doc *doc) {
    char words[TAB_WORDS][SY_WORD_MAX];
    doc->title = sy_words_split(tab->tab->title, words, TITLE_WORDS);
    doc->domain = keep_labels(words + doc->title, sy_words_split(tab->domain, words + doc->title, DOMAIN_WORDS));
    doc->path = split_path(tab->tab->url, words + doc->title + doc->domain);
    size_t count = doc->title + doc->domain + doc->path;
    doc->words = malloc((count + 1) * sizeof *doc->words);
    if (doc->words) {
        memcpy(doc->words, words, count * sizeof *doc->words);
        join_title(doc);
    }
    return doc->words != NULL;
}

static void list_apps(const struct sy_snapshot *snapshot, struct sy_index *index) {
    for (size_t i = 0; i < snapshot->running_count; i++) {
        const struct sy_running *at = &snapshot->running[i];
        index->apps[index->app_count++] = (struct sy_entry){at->name, at->app, at, true, at->active};
    }
    for (size_t i = 0; i < snapshot->installed_count; i++) {
        const struct sy_installed *at = &snapshot->installed[i];
        if (!sy_find_running(snapshot, at->name)) {
            index->apps[index->app_count++] = (struct sy_entry){at->name, at->app, NULL, false, false};
        }
    }
}

bool sy_index_make(const struct sy_scene *scene, struct sy_index *index) {
    const struct sy_snapshot *snapshot = scene->snapshot;
    *index = (struct sy_index){.scene = scene};
    index->apps = calloc(snapshot->running_count + snapshot->installed_count + 1, sizeof *index->apps);
    index->presets = calloc(scene->preset_count + 1, sizeof *index->presets);
    index->tabs = calloc(snapshot->tab_count + 1, sizeof *index->tabs);
    bool made = index->apps && index->presets && index->tabs;
    if (made) {
        list_apps(snapshot, index);
    }
    for (size_t i = 0; made && i < scene->preset_count; i++) {
        index->presets[index->preset_count++] = (struct sy_entry){.name = scene->presets[i], .running = true};
    }
    for (size_t i = 0; made && i < snapshot->tab_count; i++) {
        struct sy_doc *doc = &index->tabs[index->tab_count++];
        made = read_tab(&snapshot->tabs[i], doc);
        index->mean_len += (double)(doc->title + doc->domain) / (double)snapshot->tab_count;
    }
    if (!made) {
        sy_index_free(index);
    }
    return made;
}

void sy_index_free(struct sy_index *index) {
    for (size_t i = 0; i < index->tab_count; i++) {
        free(index->tabs[i].words);
    }
    free(index->apps);
    free(index->presets);
    free(index->tabs);
    *index = (struct sy_index){.scene = NULL};
}

/* ---- terms ---- */

static bool is_weak(const char *word) {
    static const char *const weak[] = {
        "app",      "application", "article", "blog",   "browser", "channel",  "chrome",    "conversation",
        "doc",      "document",    "feed",    "file",   "forum",   "homepage", "page",      "pages",
        "paper",    "papers",      "post",    "posts",  "program", "question", "questions", "site",
        "story",    "stuff",       "thread",  "video",  "videos",  "web",      "webpage",   "website",
        "websites", "articles",    "threads", "docs",   "tool",    "software", "item",      "listing",
        "link",     "list",        "entry",   "screen", "game",    "program",  "something"};
    size_t len = strlen(word);
    for (size_t i = 0; i < sizeof weak / sizeof weak[0]; i++) {
        size_t size = strlen(weak[i]);
        bool plural = len == size + 1 && word[size] == 's';
        if (memcmp(weak[i], word, size < len ? size : len) == 0 && (len == size || plural)) {
            return true;
        }
    }
    return false;
}

static bool in_apps(const struct sy_index *index, const char *text) {
    char joined[64];
    for (size_t i = 0; i < index->app_count; i++) {
        sy_words_join(index->apps[i].name, joined, sizeof joined);
        if (strcmp(joined, text) == 0 || sy_alias_fits(text, joined)) {
            return true;
        }
    }
    return false;
}

/* Whether a title, a domain or an application has exactly this word. */
static bool is_known(const struct sy_index *index, const char *text, bool domains_only) {
    char words[8][SY_WORD_MAX];
    for (size_t i = 0; i < index->tab_count; i++) {
        const struct sy_doc *doc = &index->tabs[i];
        for (size_t j = domains_only ? doc->title : 0; j < doc->title + doc->domain; j++) {
            if (strcmp(doc->words[j], text) == 0) {
                return true;
            }
        }
    }
    for (size_t i = 0; i < index->app_count && !domains_only; i++) {
        size_t count = sy_words_split(index->apps[i].name, words, 8);
        for (size_t j = 0; j < count; j++) {
            if (strcmp(words[j], text) == 0) {
                return true;
            }
        }
    }
    return sy_site(text) != NULL || in_apps(index, text);
}

/* Whether a title has the word: "machine learning", joined, is one word of "r/MachineLearning". */
static bool is_title_word(const struct sy_index *index, const char *text) {
    for (size_t i = 0; i < index->tab_count && strlen(text) >= 8; i++) {
        for (size_t j = 0; j < index->tabs[i].title; j++) {
            if (strcmp(index->tabs[i].words[j], text) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Whether the word only says that something is a program. */
static bool says_program(const char *word) {
    return sy_is_one_of(word, "app application program tool software client package");
}

static void append_term(char *joined, size_t size, const char *text) {
    size_t used = strlen(joined);
    size_t len = strlen(text);
    if (used + len < size) {
        memcpy(joined + used, text, len + 1);
    }
}

/* Notes `word` if `term` may be a typo of `word`. False: `term` may be a typo of several words. */
static bool note_typo(struct sy_term *term, const char *word) {
    size_t away = strlen(word) >= 4 ? sy_edits(term->text, word) : 3;
    bool same = term->typo_of[0] && sy_alike(term->typo_of, word) >= 0.98;
    if (away > 2 || same) {
        return true;
    }
    if (away > 1 || term->typo_of[0]) {
        return false;
    }
    memcpy(term->typo_of, word, strlen(word) + 1);
    return true;
}

/* Finds the word that the term is a typo of. The term must have at least six letters. One known word must differ by one
 * letter, and all other words by three or more. */
static void find_typo(const struct sy_index *index, struct sy_term *term) {
    char words[8][SY_WORD_MAX];
    bool one = strlen(term->text) >= 6 && strlen(term->text) < SY_WORD_MAX && !term->known;
    for (size_t i = 0; i < index->tab_count && one; i++) {
        const struct sy_doc *doc = &index->tabs[i];
        for (size_t j = 0; j < doc->title + doc->domain && one; j++) {
            one = note_typo(term, doc->words[j]);
        }
    }
    for (size_t i = 0; i < index->app_count && one; i++) {
        size_t count = sy_words_split(index->apps[i].name, words, 8);
        for (size_t j = 0; j < count && one; j++) {
            one = note_typo(term, words[j]);
        }
    }
    if (!one) {
        term->typo_of[0] = '\0';
    }
}

static void add_term(const struct sy_index *index, const char *text, struct sy_terms *terms) {
    struct sy_term *term = &terms->at[terms->count++];
    memcpy(term->text, text, strlen(text) + 1);
    term->place = sy_site(text);
    term->weak = is_weak(text);
    term->known = is_known(index, text, false);
    term->number = sy_number(text);
    term->typo_of[0] = '\0';
    find_typo(index, term);
    sy_meanings_of(text, &term->meanings);
    append_term(terms->joined, sizeof terms->joined, text);
    if (!says_program(text)) {
        append_term(terms->strong, sizeof terms->strong, text);
    }
}

/* Adds the words of an address by which people know its host: "github" of "github.com/a". */
static void add_host(const struct sy_index *index, const struct sy_word *word, struct sy_terms *terms) {
    char host[128];
    char labels[DOMAIN_WORDS][SY_WORD_MAX];
    const char *begin = strstr(word->text, "://");
    begin = begin ? begin + 3 : word->text;
    size_t len = strcspn(begin, "/:?#");
    memcpy(host, begin, len);
    host[len] = '\0';
    size_t count = keep_labels(labels, sy_words_split(host, labels, DOMAIN_WORDS));
    for (size_t i = 0; i < count && terms->count < SY_WORDS_MAX; i++) {
        if (strcmp(labels[i], "www") != 0) {
            add_term(index, labels[i], terms);
        }
    }
}

void sy_terms_make(const struct sy_index *index, const struct sy_word *const *words, size_t count,
                   struct sy_terms *terms) {
    char pair[2 * SY_WORD_MAX];
    terms->count = 0;
    terms->joined[0] = terms->strong[0] = '\0';
    for (size_t i = 0; i < count && terms->count < SY_WORDS_MAX; i++) {
        size_t len = strlen(words[i]->text);
        bool two = i + 1 < count && len > 1;
        if (two) {
            memcpy(pair, words[i]->text, len);
            memcpy(pair + len, words[i + 1]->text, strlen(words[i + 1]->text) + 1);
        }
        if (words[i]->address) {
            add_host(index, words[i], terms);
        } else if (two && (is_known(index, pair, true) || is_title_word(index, pair))) {
            add_term(index, pair, terms);
            i++;
        } else if (!sy_is_stop(words[i]->text)) {
            add_term(index, words[i]->text, terms);
        }
    }
    bool all_weak = true;
    for (size_t i = 0; i < terms->count; i++) {
        all_weak &= terms->at[i].weak;
    }
    for (size_t i = 0; i < terms->count && all_weak; i++) {
        terms->at[i].weak = false;
    }
}

/* ---- words against words ---- */

struct fit {
    double score;
    bool certain;
    bool domain; /* for tabs: the word is in the domain; for names: only some words of the name were said */
};

static bool starts(const char *word, const char *beginning, size_t least) {
    size_t len = strlen(beginning);
    return len >= least && strncmp(word, beginning, len) == 0;
}

/* Compares two words. A typo is certain if the term is long, and nothing is called exactly like the term. */
static struct fit fit_word(const struct sy_term *term, const char *word, size_t least_prefix) {
    double alike = sy_alike(term->text, word);
    bool is_long = strlen(term->text) >= 5 || (strlen(term->text) == 4 && strlen(word) == 5);
    bool typo = is_long && !term->known && alike >= 0.75;
    struct fit fit = {alike >= ALIKE ? alike : 0, alike >= 0.98 || typo, false};
    if (fit.score < 0.78 && starts(word, term->text, least_prefix)) {
        fit = (struct fit){0.78, false, false};
    }
    return fit;
}

static void better(struct fit *best, struct fit other) {
    if (other.score > best->score || (other.score == best->score && other.certain && !best->certain)) {
        *best = other;
    }
}

/* ---- tabs ---- */

/*
 * Whether the tab's host is the host of the place, or a subdomain of it. `*below`: how many bytes the tab's host has
 * before the host of the place, with the dot; 0 if both are the same.
 */
static bool on_host(const struct sy_numbered_tab *tab, const char *place, size_t *below) {
    size_t host = strcspn(place, "/");
    size_t len = strlen(tab->domain);
    *below = len > host ? len - host : 0;
    return len >= host && strncmp(tab->domain + *below, place, host) == 0 &&
           (*below == 0 || tab->domain[*below - 1] == '.');
}

/* Scores a tab by the site's place: the tab has the host of the site or a subdomain, and the path of the site. */
static double at_place(const struct sy_numbered_tab *tab, const char *place) {
    const char *path = place + strcspn(place, "/");
    size_t below;
    if (!on_host(tab, place, &below)) {
        return 0;
    }
    if (*path && strncmp(path, "/app", 4) != 0) {
        const char *at = strstr(tab->tab->url, tab->domain);
        return at && strncmp(at + strlen(tab->domain), path, strlen(path)) == 0 ? 1 : 0;
    }
    return below == 0 ? 1 : 0.97;
}

/* Whether the host `below`.SITE, of `len` bytes before the dot, is the site itself for another language or device. */
static bool is_variant(const char *below, size_t len) {
    char label[8];
    if (len >= sizeof label) {
        return false;
    }
    memcpy(label, below, len);
    label[len] = '\0';
    return (len == 2 && strcmp(label, "tv") != 0) || sy_is_one_of(label, "m i mobile touch web app old new beta");
}

/*
 * Whether the tab shows another product of the site's owner: AWS is not Amazon, and a spreadsheet is not in Google
 * Docs. Sites whose subdomains belong to users or subjects have no such products.
 */
static bool is_neighbour(const struct sy_numbered_tab *tab, const char *place) {
    size_t below;
    if (!on_host(tab, place, &below)) {
        return false;
    }
    if (below == 0) {
        return at_place(tab, place) == 0;
    }
    return !is_variant(tab->domain, below - 1) &&
           !sy_is_one_of(place, "aws.amazon.com bandcamp.com craigslist.org deviantart.com itch.io reddit.com "
                                "stackexchange.com substack.com tumblr.com wikipedia.org wordpress.com");
}

/* Scores a tab by the kind of its site, or by a word that means the same. Such a score is enough to show the tab, but
 * not to close it. */
static struct fit fit_meaning(const struct sy_doc *doc, const struct sy_numbered_tab *tab, const struct sy_term *term) {
    const char *host = tab->domain[0] ? strstr(tab->tab->url, tab->domain) : NULL;
    struct fit fit = {host ? sy_kind_fits(&term->meanings, tab->domain, host + strlen(tab->domain)) : 0, false, false};
    for (size_t i = 0; term->meanings.same && i < doc->title + doc->domain && fit.score < MEANS; i++) {
        fit.score = sy_means(&term->meanings, doc->words[i]) ? MEANS : fit.score;
    }
    fit.certain = fit.score > 0 && sy_is_one_of(term->text, "subreddit subreddits"); /* only one site has subreddits */
    return fit;
}

/* Whether the text is two words of the title without the gap: "blackfriday". */
static bool is_both(const char *text, const char *first, const char *second) {
    size_t len = strlen(first);
    return len > 1 && second[0] && second[1] && strncmp(text, first, len) == 0 && strcmp(text + len, second) == 0;
}

static struct fit fit_tab(const struct sy_index *index, size_t tab, const struct sy_term *term) {
    const struct sy_doc *doc = &index->tabs[tab];
    const struct sy_numbered_tab *numbered = &index->scene->snapshot->tabs[tab];
    struct fit best = {0, false, false};
    bool neighbour = term->place && is_neighbour(numbered, term->place);
    if (term->place && !neighbour) {
        double score = at_place(numbered, term->place);
        best = (struct fit){score, score > 0, score > 0};
    }
    for (size_t i = 0; i < doc->domain; i++) {
        struct fit fit = fit_word(term, doc->words[doc->title + i], 4);
        fit.domain = fit.score > 0;
        if (neighbour && fit.domain) { /* good enough to show it, not to close it */
            fit = (struct fit){fit.score < NEIGHBOUR ? fit.score : NEIGHBOUR, false, false};
        }
        better(&best, fit);
    }
    for (size_t i = 0; i < doc->title && best.score < 1; i++) {
        bool number = (term->number >= 0 && sy_number(doc->words[i]) == term->number) ||
                      (i + 1 < doc->title && is_both(term->text, doc->words[i], doc->words[i + 1]));
        struct fit fit = number ? (struct fit){1, true, false} : fit_word(term, doc->words[i], 4);
        bool typo = term->typo_of[0] && sy_alike(term->typo_of, doc->words[i]) >= 0.98;
        fit.certain = typo || (fit.certain && fit.score >= 0.98); /* titles may have any text */
        fit.score = typo && fit.score < 0.95 ? 0.95 : fit.score;
        better(&best, fit);
    }
    better(&best, fit_meaning(doc, numbered, term));
    for (size_t i = 0; i < doc->path && best.score < 0.9; i++) {
        const char *word = doc->words[doc->title + doc->domain + i];
        bool equal = sy_alike(word, term->text) >= 0.98;
        better(&best, (struct fit){equal ? 0.9 : 0, equal, false});
    }
    return best;
}

/* The BM25 weight of one term (Robertson), with the usual k1 and b. `count` is how often the tab has it. */
static double bm25(double idf, double count, double len, double mean) {
    const double k1 = 1.2;
    const double b = 0.75;
    return idf * count * (k1 + 1) / (count + k1 * (1 - b + b * len / (mean > 0 ? mean : 1)));
}

static double idf_of(size_t tabs, size_t having) {
    return log(1 + ((double)tabs - (double)having + 0.5) / ((double)having + 0.5));
}

static double occurrences(const struct sy_doc *doc, const struct sy_term *term) {
    double count = 0;
    for (size_t i = 0; i < doc->title + doc->domain; i++) {
        count += strcmp(doc->words[i], term->text) == 0;
    }
    return count;
}

/* Raises the score if the title equals the words, or has them in one piece, or if the domain fits. */
static double extra(const struct sy_doc *doc, const struct sy_terms *terms, bool domain) {
    if (strcmp(doc->joined, terms->joined) == 0) {
        return 0.12;
    }
    bool piece = terms->count > 1 && strstr(doc->joined, terms->joined) != NULL;
    return domain ? 0.07 : piece ? 0.06 : 0;
}

static void score_tab(const struct sy_index *index, size_t tab, const struct sy_terms *terms, const double *weights,
                      const struct fit *fits, struct sy_hit *hit) {
    const struct sy_doc *doc = &index->tabs[tab];
    double sum = 0;
    double all = 0;
    *hit = (struct sy_hit){.at = tab, .certain = true, .domain = true};
    for (size_t i = 0; i < terms->count; i++) {
        double weight = (0.5 + 0.5 * weights[i] / idf_of(index->tab_count, 0)) * (terms->at[i].weak ? WEAK : 1);
        weight = terms->at[i].weak && weights[i] >= idf_of(index->tab_count, 0) ? 0 : weight; /* no tab has it */
        const struct fit *fit = &fits[i * index->tab_count + tab];
        sum += weight * fit->score;
        all += weight;
        hit->certain &= fit->certain || terms->at[i].weak;
        hit->domain &= fit->domain || terms->at[i].weak;
        hit->stray |= terms->at[i].place && !fit->domain && !terms->at[i].weak;
        double count = occurrences(doc, &terms->at[i]);
        count = count > 0 ? count : fit->score;
        hit->bm25 += bm25(weights[i], count, (double)(doc->title + doc->domain), index->mean_len);
    }
    hit->score = all > 0 ? sum / all : 0;
    hit->score += hit->score > 0.97 ? extra(doc, terms, hit->domain) : 0;
}

static int best_first(const void *a, const void *b) {
    const struct sy_hit *x = a;
    const struct sy_hit *y = b;
    if (x->score != y->score) {
        return x->score < y->score ? 1 : -1;
    }
    if (x->bm25 != y->bm25) {
        return x->bm25 < y->bm25 ? 1 : -1;
    }
    return (x->at > y->at) - (x->at < y->at);
}

static bool rank_tabs(const struct sy_index *index, const struct sy_terms *terms, struct sy_hits *hits) {
    double weights[SY_WORDS_MAX] = {0};
    struct fit *fits = calloc(terms->count * index->tab_count + 1, sizeof *fits);
    if (!fits) {
        return false;
    }
    for (size_t i = 0; i < terms->count; i++) {
        size_t having = 0;
        for (size_t tab = 0; tab < index->tab_count; tab++) {
            struct fit *fit = &fits[i * index->tab_count + tab];
            *fit = fit_tab(index, tab, &terms->at[i]);
            having += fit->score > 0;
        }
        weights[i] = idf_of(index->tab_count, having);
    }
    for (size_t tab = 0; tab < index->tab_count; tab++) {
        score_tab(index, tab, terms, weights, fits, &hits->at[hits->count]);
        hits->count += hits->at[hits->count].score > 0;
    }
    free(fits);
    return true;
}

/* ---- names ---- */

/* Whether the text has the first letters of the words: "vsc" for "Visual Studio Code". */
static bool is_acronym(const char *text, char (*words)[SY_WORD_MAX], size_t count) {
    size_t i = 0;
    while (i < count && text[i] == words[i][0]) {
        i++;
    }
    return count >= 2 && i == count && !text[i];
}

/* Scores a whole name: "vs code", "code" by its program, "terminal" by its kind. */
static struct fit fit_whole(const struct sy_entry *entry, const char *joined, const char *text) {
    char other[64];
    if (strcmp(joined, text) == 0) {
        return (struct fit){1.1, true, false};
    }
    if (entry->app) {
        sy_words_join(entry->app->program, other, sizeof other);
        bool program = strcmp(other, text) == 0 || sy_alias_fits(text, other) == SY_ALIAS_OF_KIND;
        sy_words_join(entry->app->window_class, other, sizeof other);
        if (program || strcmp(other, text) == 0) {
            return (struct fit){0.96, true, false};
        }
    }
    enum sy_alias alias = sy_alias_fits(text, joined);
    return alias ? (struct fit){0.95, alias == SY_ALIAS_OF_KIND, false} : (struct fit){0, false, false};
}

/* Scores an application by the keywords of its .desktop entry. Such a score is enough to show the application. It is
 * never certain, because the author may write any keywords. */
static struct fit fit_keywords(const struct sy_entry *entry, const char *joined, const struct sy_terms *terms) {
    char words[48][SY_WORD_MAX];
    size_t count = entry->app ? sy_words_split(entry->app->keywords, words, 48) : 0;
    bool all = terms->count > 0 && count > 0;
    for (size_t i = 0; i < terms->count && all; i++) {
        all = says_program(terms->at[i].text) || sy_alias_fits(terms->at[i].text, joined) != SY_NO_ALIAS;
        for (size_t j = 0; j < count && !all; j++) {
            all = sy_alike(terms->at[i].text, words[j]) >= 0.98;
        }
    }
    return (struct fit){all ? BY_KEYWORD : 0, false, false};
}

static struct fit fit_parts(char (*words)[SY_WORD_MAX], size_t count, const struct sy_terms *terms) {
    struct fit whole = {0, true, false};
    double all = 0;
    for (size_t i = 0; i < terms->count; i++) {
        struct fit best = {0, false, false};
        double weight = terms->at[i].weak ? WEAK : 1;
        for (size_t j = 0; j < count; j++) {
            better(&best, fit_word(&terms->at[i], words[j], 3));
        }
        whole.score += weight * best.score;
        whole.certain &= best.certain || terms->at[i].weak;
        all += weight;
    }
    whole.domain = count > terms->count;
    whole.score = all > 0 ? whole.score / all - 0.01 * (double)(count > terms->count ? count - terms->count : 0) : 0;
    return whole;
}

/* Scores a term by a word of a window's title, or by the kind of application: "the budget spreadsheet". */
static double fit_window_word(const struct sy_term *term, const char *joined, char (*words)[SY_WORD_MAX],
                              size_t count) {
    struct fit best = {sy_alias_fits(term->text, joined) != SY_NO_ALIAS ? 0.9 : 0, false, false};
    for (size_t i = 0; i < count; i++) {
        better(&best, fit_word(term, words[i], 4));
    }
    return best.score;
}

/* Scores an application by the titles of its windows. Such a score is never certain. */
static struct fit fit_windows(const struct sy_snapshot *snapshot, const struct sy_entry *entry,
                              const struct sy_terms *terms) {
    char words[16][SY_WORD_MAX];
    char joined[64];
    struct fit best = {0, false, false};
    sy_words_join(entry->name, joined, sizeof joined);
    for (size_t i = 0; entry->runs && i < entry->runs->window_count; i++) {
        size_t count = sy_words_split(snapshot->windows.at[entry->runs->windows[i]].title, words, 16);
        double sum = 0;
        double all = 0;
        for (size_t j = 0; j < terms->count; j++) {
            double weight = says_program(terms->at[j].text) ? WEAK : 1;
            sum += weight * fit_window_word(&terms->at[j], joined, words, count);
            all += weight;
        }
        double score = all > 0 ? sum / all : 0;
        better(&best, (struct fit){score >= 0.6 ? BY_TITLE * score : 0, false, false});
    }
    return best;
}

bool sy_window_has(const struct sy_snapshot *snapshot, const struct sy_entry *entry, const struct sy_terms *terms) {
    char words[16][SY_WORD_MAX];
    char joined[64];
    sy_words_join(entry->name, joined, sizeof joined);
    bool browser = sy_alias_fits("chrome", joined) != SY_NO_ALIAS; /* a browser's windows have its tabs' titles */
    for (size_t i = 0; !browser && entry->runs && i < entry->runs->window_count; i++) {
        size_t count = sy_words_split(snapshot->windows.at[entry->runs->windows[i]].title, words, 16);
        bool all = terms->count > 0;
        for (size_t j = 0; j < terms->count && all; j++) {
            bool any = terms->at[j].weak;
            for (size_t k = 0; k < count && !any; k++) {
                any = fit_word(&terms->at[j], words[k], 4).score >= 0.9;
            }
            all = any;
        }
        if (all) {
            return true;
        }
    }
    return false;
}

static struct fit fit_name(const struct sy_snapshot *snapshot, const struct sy_entry *entry,
                           const struct sy_terms *terms) {
    char words[12][SY_WORD_MAX];
    char joined[64];
    struct sy_term all = {.known = terms->count != 1 || terms->at[0].known};
    size_t count = sy_words_split(entry->name, words, 12);
    sy_words_join(entry->name, joined, sizeof joined);
    struct fit best = fit_whole(entry, joined, terms->joined);
    if (best.score == 0 && terms->strong[0] && strcmp(terms->strong, terms->joined) != 0) {
        struct fit strong = fit_whole(entry, joined, terms->strong); /* "the notes program" */
        best = (struct fit){strong.score > 0.95 ? 0.95 : strong.score, strong.certain, false};
    }
    if (terms->count == 0 || best.score > 0) {
        return terms->count ? best : (struct fit){0, false, false};
    }
    better(&best, fit_parts(words, count, terms));
    if (is_acronym(terms->joined, words, count)) {
        better(&best, (struct fit){0.9, true, false});
    }
    if (strlen(terms->joined) < SY_WORD_MAX && strlen(joined) < SY_WORD_MAX) {
        memcpy(all.text, terms->joined, strlen(terms->joined) + 1);
        better(&best, fit_word(&all, joined, SY_WORD_MAX));
    }
    better(&best, fit_keywords(entry, joined, terms));
    better(&best, fit_windows(snapshot, entry, terms));
    return best;
}

static void rank_names(const struct sy_snapshot *snapshot, const struct sy_entry *entries, size_t count,
                       const struct sy_terms *terms, struct sy_hits *hits) {
    for (size_t i = 0; i < count; i++) {
        struct fit fit = fit_name(snapshot, &entries[i], terms);
        if (fit.score > 0) {
            double score = fit.score - (entries[i].running ? 0 : 0.06);
            hits->at[hits->count++] =
                (struct sy_hit){.at = i, .score = score, .certain = fit.certain, .part = fit.domain};
        }
    }
}

bool sy_rank(const struct sy_index *index, enum sy_group group, const struct sy_terms *terms, struct sy_hits *hits) {
    size_t most = group == SY_TABS ? index->tab_count : group == SY_APPS ? index->app_count : index->preset_count;
    hits->count = 0;
    hits->at = calloc(most + 1, sizeof *hits->at);
    bool done = hits->at != NULL;
    if (done && group == SY_TABS) {
        done = rank_tabs(index, terms, hits);
    } else if (done) {
        bool apps = group == SY_APPS;
        rank_names(index->scene->snapshot, apps ? index->apps : index->presets, most, terms, hits);
    }
    if (!done) {
        free(hits->at);
        hits->at = NULL;
        return false;
    }
    qsort(hits->at, hits->count, sizeof *hits->at, best_first);
    return true;
}
