/*
 * Questions that code answers: how many, which are open twice, which are the oldest or newest. A question is understood
 * only if every word of it is known: an unknown word might change the question.
 */
#include "base/clock.h"
#include "commands/query.h"
#include "desktop/clean.h"
#include "desktop/refuse.h"
#include "desktop/url.h"
#include "protocol/json_writer.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_PAGES 5 /* how many of the oldest or newest are named, if the question has no number */
#define TITLE_MAX   80

enum { COUNT = 1, TWICE = 2, OLDEST = 4, NEWEST = 8, ANY = 15 };
enum { NONE, TABS, WINDOWS, APPS, MONITORS };

static const struct word {
    const char *text;
    unsigned allowed; /* the topics of questions that may have this word */
    unsigned topic;   /* the topic that this word gives a question */
    unsigned noun;
} words[] = {
    {"a", ANY, 0, NONE},
    {"address", TWICE, 0, NONE},
    {"addresses", TWICE, 0, NONE},
    {"all", ANY, 0, NONE},
    {"altogether", COUNT, 0, NONE},
    {"an", ANY, 0, NONE},
    {"any", ANY, 0, NONE},
    {"app", ANY, 0, APPS},
    {"application", ANY, 0, APPS},
    {"applications", ANY, 0, APPS},
    {"apps", ANY, 0, APPS},
    {"are", ANY, 0, NONE},
    {"at", ANY, 0, NONE},
    {"been", OLDEST, 0, NONE},
    {"chrome", ANY, 0, NONE},
    {"count", COUNT, COUNT, NONE},
    {"current", ANY, 0, NONE},
    {"currently", ANY, 0, NONE},
    {"display", COUNT, 0, MONITORS},
    {"displays", COUNT, 0, MONITORS},
    {"do", ANY, 0, NONE},
    {"does", ANY, 0, NONE},
    {"duplicate", TWICE, TWICE, NONE},
    {"duplicated", TWICE, TWICE, NONE},
    {"duplicates", TWICE, TWICE, NONE},
    {"find", TWICE, 0, NONE},
    {"for", OLDEST, 0, NONE},
    {"from", COUNT, 0, NONE},
    {"give", ANY, 0, NONE},
    {"has", OLDEST, 0, NONE},
    {"have", ANY, 0, NONE},
    {"how", COUNT | TWICE, 0, NONE},
    {"i", ANY, 0, NONE},
    {"in", ANY, 0, NONE},
    {"installed", COUNT, 0, NONE},
    {"is", ANY, 0, NONE},
    {"latest", NEWEST, NEWEST, NONE},
    {"longest", OLDEST, OLDEST, NONE},
    {"many", COUNT | TWICE, COUNT, NONE},
    {"me", ANY, 0, NONE},
    {"moment", ANY, 0, NONE},
    {"monitor", COUNT, 0, MONITORS},
    {"monitors", COUNT, 0, MONITORS},
    {"my", ANY, 0, NONE},
    {"newest", NEWEST, NEWEST, NONE},
    {"now", ANY, 0, NONE},
    {"number", COUNT, COUNT, NONE},
    {"of", ANY, 0, NONE},
    {"oldest", OLDEST, OLDEST, NONE},
    {"on", ANY, 0, NONE},
    {"open", ANY, 0, NONE},
    {"page", ANY, 0, TABS},
    {"pages", ANY, 0, TABS},
    {"please", ANY, 0, NONE},
    {"program", ANY, 0, APPS},
    {"programs", ANY, 0, APPS},
    {"right", ANY, 0, NONE},
    {"running", ANY, 0, NONE},
    {"same", TWICE, TWICE, NONE},
    {"screen", COUNT, 0, MONITORS},
    {"screens", COUNT, 0, MONITORS},
    {"show", ANY, 0, NONE},
    {"site", TWICE, 0, NONE},
    {"sites", TWICE, 0, NONE},
    {"tab", ANY, 0, TABS},
    {"tabs", ANY, 0, TABS},
    {"tell", ANY, 0, NONE},
    {"the", ANY, 0, NONE},
    {"there", ANY, 0, NONE},
    {"total", COUNT, 0, NONE},
    {"twice", TWICE, TWICE, NONE},
    {"url", TWICE, 0, NONE},
    {"urls", TWICE, 0, NONE},
    {"what", ANY, 0, NONE},
    {"whats", ANY, 0, NONE},
    {"which", ANY, 0, NONE},
    {"window", COUNT, 0, WINDOWS},
    {"windows", COUNT, 0, WINDOWS},
    {"with", TWICE, 0, NONE},
};

/* ---- understanding ---- */

/* The label that people use as the name of a domain: "reddit" of old.reddit.com, "bbc" of www.bbc.co.uk. */
static const char *name_of(const char *domain, size_t *len) {
    size_t end = strlen(domain);
    size_t from = end;
    for (int label = 0; label < 3; label++) { /* skips the ending, such as "com" or "co.uk" */
        end = from > 0 && label > 0 ? from - 1 : end;
        from = end;
        while (from > 0 && domain[from - 1] != '.') {
            from--;
        }
        if (from == 0 || (label == 1 && end - from > 3) || label == 2) {
            break;
        }
    }
    *len = end - from;
    return domain + from;
}

static bool is_name(const char *domain, const char *word) {
    size_t len;
    const char *name = name_of(domain, &len);
    return strlen(word) == len && memcmp(word, name, len) == 0;
}

static bool is_below(const char *domain, const char *host, size_t len) {
    size_t own = strlen(domain);
    return own >= len && memcmp(domain + own - len, host, len) == 0 && (own == len || domain[own - len - 1] == '.');
}

/* Whether a tab belongs to the site, given as "reddit", "old.reddit.com", or a word of the table of sites. */
static bool is_of_site(const struct sy_numbered_tab *tab, const char *site) {
    const char *place = sy_site(site);
    return is_name(tab->domain, site) || (strchr(site, '.') && is_below(tab->domain, site, strlen(site))) ||
           (place && is_below(tab->domain, place, strcspn(place, "/")));
}

static bool is_site(const struct sy_snapshot *snapshot, const char *word) {
    bool known = strchr(word, '.') || sy_site(word);
    for (size_t i = 0; i < snapshot->tab_count && !known; i++) {
        known = is_of_site(&snapshot->tabs[i], word);
    }
    return known;
}

struct reading {
    struct sy_understood *understood;
    const struct sy_snapshot *snapshot;
    unsigned allowed;
    bool failed;
};

static void read_word(struct reading *reading, const char *text) {
    struct sy_understood *understood = reading->understood;
    size_t i = 0;
    while (i < sizeof words / sizeof words[0] && strcmp(words[i].text, text) != 0) {
        i++;
    }
    if (i < sizeof words / sizeof words[0]) {
        const struct word *word = &words[i];
        bool other = word->noun && understood->noun && word->noun != understood->noun;
        reading->allowed &= word->allowed;
        reading->failed |= other; /* two kinds of things, such as tabs and windows, in one question */
        understood->topic |= word->topic;
        understood->noun = word->noun ? word->noun : understood->noun;
        understood->chrome |= strcmp(text, "chrome") == 0;
        understood->installed |= strcmp(text, "installed") == 0;
    } else if (strspn(text, "0123456789") == strlen(text) && strlen(text) < 3 && !understood->limit) {
        understood->limit = (size_t)strtoul(text, NULL, 10);
        reading->allowed &= OLDEST | NEWEST;
        reading->failed |= understood->limit == 0;
    } else if (!understood->site[0] && is_site(reading->snapshot, text)) {
        snprintf(understood->site, sizeof understood->site, "%s", text);
        reading->allowed &= COUNT;
    } else {
        reading->failed = true;
    }
}

/* Reads the next word in lower case, without punctuation. False: there is none, or it is too long (`*failed`). */
static bool next_word(const char **at, char word[64], bool *failed) {
    static const char ends[] = " \t\n?!,;:\"";
    size_t len = strcspn(*at + strspn(*at, ends), ends);
    const char *from = *at + strspn(*at, ends);
    size_t kept = 0;
    *at = from + len;
    *failed = len >= 64;
    for (size_t i = 0; i < len && !*failed; i++) {
        unsigned char c = (unsigned char)from[i];
        if (c != '\'') {
            word[kept++] = (char)tolower(c);
        }
    }
    while (kept > 0 && word[kept - 1] == '.') {
        kept--;
    }
    word[kept] = '\0';
    return len > 0 && !*failed;
}

bool sy_understand(const char *question, const struct sy_snapshot *snapshot, struct sy_understood *understood) {
    struct reading reading = {.understood = understood, .snapshot = snapshot, .allowed = ANY};
    const char *at = question;
    char word[64];
    *understood = (struct sy_understood){.topic = 0};
    while (!reading.failed && next_word(&at, word, &reading.failed)) {
        bool browser = strcmp(word, "google") == 0 && strncasecmp(at + strspn(at, " "), "chrome", 6) == 0;
        if (word[0] && !browser) {
            read_word(&reading, word);
        }
    }
    understood->topic &= understood->topic & TWICE ? ~(unsigned)COUNT : ANY;
    understood->noun = !understood->noun && understood->topic == TWICE ? TABS : understood->noun;
    bool one = understood->topic && (understood->topic & (understood->topic - 1)) == 0;
    bool fits = (understood->noun == TABS || (understood->noun && understood->topic == COUNT)) &&
                (!understood->site[0] || understood->noun == TABS) &&
                (!understood->installed || understood->noun == APPS) &&
                (!understood->chrome || understood->noun == TABS || understood->noun == WINDOWS);
    return !reading.failed && one && (reading.allowed & understood->topic) && fits;
}

/* ---- answers ---- */

static void append_number(struct fm_buf *out, size_t number) {
    char text[24];
    snprintf(text, sizeof text, "%zu", number);
    fm_buf_append_str(out, text);
}

/* Writes what stands before the `at`th of `count` things: nothing, a comma, or "and". */
static void append_separator(struct fm_buf *out, size_t at, size_t count) {
    fm_buf_append_str(out, at == 0 ? "" : at + 1 == count ? " and " : ", ");
}

static void append_count(struct fm_buf *out, size_t count, const char *one, const char *many) {
    fm_buf_append_str(out, count == 1 ? "There is " : "There are ");
    append_number(out, count);
    fm_buf_append_char(out, ' ');
    fm_buf_append_str(out, count == 1 ? one : many);
}

static void append_title(struct fm_buf *out, const struct sy_numbered_tab *tab) {
    fm_buf_append_char(out, '"');
    sy_clean(out, tab->tab->title, TITLE_MAX, false);
    fm_buf_append_char(out, '"');
}

static void write_count(struct fm_json_writer *w, size_t count) {
    fm_json_key_int(w, "count", (int64_t)count);
}

static void count_tabs(const struct sy_understood *understood, const struct sy_snapshot *snapshot, struct fm_buf *out,
                       struct fm_json_writer *w) {
    const char *site = understood->site;
    size_t count = 0;
    size_t at = 0;
    size_t windows = snapshot->tab_count ? (size_t)snapshot->tabs[snapshot->tab_count - 1].window_index : 0;
    for (size_t i = 0; i < snapshot->tab_count; i++) {
        count += !site[0] || is_of_site(&snapshot->tabs[i], site);
    }
    append_count(out, count, site[0] ? "tab of " : "tab", site[0] ? "tabs of " : "tabs");
    fm_buf_append_str(out, site);
    if (!site[0] && windows > 1) {
        fm_buf_append_str(out, " in ");
        append_number(out, windows);
        fm_buf_append_str(out, " windows");
    }
    fm_buf_append_str(out, site[0] && count ? ": " : "");
    write_count(w, count);
    fm_json_key(w, "tabs");
    fm_json_array_begin(w);
    for (size_t i = 0; i < snapshot->tab_count; i++) {
        if (!site[0] || is_of_site(&snapshot->tabs[i], site)) {
            fm_json_int(w, (int64_t)i + 1);
        }
        if (site[0] && is_of_site(&snapshot->tabs[i], site)) {
            append_separator(out, at++, count);
            append_number(out, i + 1);
        }
    }
    fm_json_array_end(w);
    fm_buf_append_char(out, '.');
}

static void count_apps(const struct sy_understood *understood, const struct sy_snapshot *snapshot, struct fm_buf *out,
                       struct fm_json_writer *w) {
    size_t count = understood->installed ? snapshot->installed_count : snapshot->running_count;
    append_count(out, count, "application ", "applications ");
    fm_buf_append_str(out, understood->installed ? "installed" : "running");
    fm_buf_append_str(out, understood->installed || count == 0 ? "" : ": ");
    for (size_t i = 0; i < count && !understood->installed; i++) {
        append_separator(out, i, count);
        sy_clean(out, snapshot->running[i].name, TITLE_MAX, false);
    }
    fm_buf_append_char(out, '.');
    write_count(w, count);
}

static void count_others(const struct sy_understood *understood, const struct sy_snapshot *snapshot, struct fm_buf *out,
                         struct fm_json_writer *w) {
    size_t count = snapshot->windows.count;
    if (understood->noun == MONITORS) {
        count = snapshot->monitors.count;
    } else if (understood->chrome) {
        count = snapshot->tab_count ? (size_t)snapshot->tabs[snapshot->tab_count - 1].window_index : 0;
    }
    append_count(out, count, understood->noun == MONITORS ? "monitor" : "window",
                 understood->noun == MONITORS ? "monitors" : "windows");
    fm_buf_append_str(out, understood->chrome ? " of Chrome." : ".");
    write_count(w, count);
}

static int by_url(const void *a, const void *b) {
    const struct sy_numbered_tab *x = *(const struct sy_numbered_tab *const *)a;
    const struct sy_numbered_tab *y = *(const struct sy_numbered_tab *const *)b;
    int order = strcmp(x->tab->url, y->tab->url);
    return order ? order : (x > y) - (x < y);
}

static int by_age(const void *a, const void *b) {
    const struct sy_numbered_tab *x = *(const struct sy_numbered_tab *const *)a;
    const struct sy_numbered_tab *y = *(const struct sy_numbered_tab *const *)b;
    double mine = x->tab->opened_ms;
    double other = y->tab->opened_ms;
    return mine != other ? (mine > other) - (mine < other) : (x > y) - (x < y);
}

static size_t same_page(const struct sy_numbered_tab **sorted, size_t at, size_t count) {
    size_t end = at + 1;
    while (end < count && strcmp(sorted[end]->tab->url, sorted[at]->tab->url) == 0) {
        end++;
    }
    return end - at;
}

static void tell_duplicates(const struct sy_numbered_tab **sorted, const struct sy_snapshot *snapshot,
                            struct fm_buf *out, struct fm_json_writer *w) {
    size_t pages = 0;
    qsort(sorted, snapshot->tab_count, sizeof *sorted, by_url);
    fm_json_key(w, "duplicates");
    fm_json_array_begin(w);
    for (size_t i = 0; i < snapshot->tab_count;) {
        size_t same = same_page(sorted, i, snapshot->tab_count);
        if (same > 1) {
            fm_buf_append_str(out, pages++ ? "; " : "More than one tab shows ");
            append_title(out, sorted[i]);
            fm_buf_append_str(out, " (tabs ");
            fm_json_array_begin(w);
            for (size_t at = 0; at < same; at++) {
                size_t index = (size_t)(sorted[i + at] - snapshot->tabs) + 1;
                append_separator(out, at, same);
                append_number(out, index);
                fm_json_int(w, (int64_t)index);
            }
            fm_json_array_end(w);
            fm_buf_append_char(out, ')');
        }
        i += same;
    }
    fm_json_array_end(w);
    fm_buf_append_str(out, pages ? "." : "No page is open in more than one tab.");
    write_count(w, pages);
}

static void append_age(struct fm_buf *out, double opened_ms) {
    int64_t seconds = fm_wall_seconds() - (int64_t)(opened_ms / 1000);
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        int64_t count = seconds / units[i].seconds;
        if (count > 0) {
            char text[64];
            snprintf(text, sizeof text, "%" PRId64 " %s%s ago", count, units[i].name, count == 1 ? "" : "s");
            fm_buf_append_str(out, text);
            return;
        }
    }
    fm_buf_append_str(out, "less than a minute ago");
}

static enum fm_code tell_ages(const struct sy_understood *understood, const struct sy_numbered_tab **sorted,
                              const struct sy_snapshot *snapshot, struct fm_buf *out, struct fm_json_writer *w,
                              struct fm_error *error) {
    size_t known = 0;
    bool oldest = understood->topic == OLDEST;
    for (size_t i = 0; i < snapshot->tab_count; i++) {
        if (sorted[i]->tab->opened_ms > 0) {
            sorted[known++] = sorted[i];
        }
    }
    if (known == 0) {
        return fm_fail(error, FM_UNAVAILABLE, "the browser does not tell when its pages were loaded");
    }
    qsort(sorted, known, sizeof *sorted, by_age);
    size_t limit = understood->limit ? understood->limit : NAMED_PAGES;
    limit = limit < known ? limit : known;
    fm_buf_append_str(out, oldest ? "Loaded longest ago: " : "Loaded last: ");
    fm_json_key(w, "tabs");
    fm_json_array_begin(w);
    for (size_t i = 0; i < limit; i++) {
        const struct sy_numbered_tab *tab = sorted[oldest ? i : known - 1 - i];
        size_t index = (size_t)(tab - snapshot->tabs) + 1;
        fm_buf_append_str(out, i ? "; " : "");
        append_title(out, tab);
        fm_buf_append_str(out, " (tab ");
        append_number(out, index);
        fm_buf_append_str(out, ", ");
        append_age(out, tab->tab->opened_ms);
        fm_buf_append_char(out, ')');
        fm_json_int(w, (int64_t)index);
    }
    fm_json_array_end(w);
    fm_buf_append_char(out, '.');
    if (known < snapshot->tab_count) {
        fm_buf_append_str(out, " Not known of ");
        append_number(out, snapshot->tab_count - known);
        fm_buf_append_str(out, snapshot->tab_count - known == 1 ? " tab." : " tabs.");
    }
    return FM_OK;
}

static enum fm_code about_pages(const struct sy_understood *understood, const struct sy_snapshot *snapshot,
                                struct fm_buf *out, struct fm_json_writer *w, struct fm_error *error) {
    const struct sy_numbered_tab **sorted = calloc(snapshot->tab_count + 1, sizeof *sorted);
    enum fm_code code = FM_OK;
    if (!sorted) {
        return fm_fail_no_memory(error);
    }
    for (size_t i = 0; i < snapshot->tab_count; i++) {
        sorted[i] = &snapshot->tabs[i];
    }
    if (understood->topic == TWICE) {
        tell_duplicates(sorted, snapshot, out, w);
    } else {
        code = tell_ages(understood, sorted, snapshot, out, w, error);
    }
    free(sorted);
    return code;
}

enum fm_code sy_answer_by_code(const struct sy_understood *understood, const struct sy_snapshot *snapshot,
                               struct fm_buf *answer, struct fm_json_writer *w, struct fm_error *error) {
    bool of_tabs = understood->noun == TABS || understood->chrome;
    const struct fm_error *absent = of_tabs                 ? &snapshot->no_tabs
                                    : understood->installed ? &snapshot->no_apps
                                                            : &snapshot->no_windows;
    if (absent->code != FM_OK) {
        *error = *absent;
        return error->code;
    }
    if (understood->topic != COUNT) {
        return about_pages(understood, snapshot, answer, w, error);
    }
    if (understood->noun == TABS) {
        count_tabs(understood, snapshot, answer, w);
    } else if (understood->noun == APPS) {
        count_apps(understood, snapshot, answer, w);
    } else {
        count_others(understood, snapshot, answer, w);
    }
    return FM_OK;
}
