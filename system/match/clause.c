/* Clauses: each word of the user ends up in one slot of one clause, or is one that says nothing. */
#include "match/clause.h"

#include <string.h>

/* ---- slots ---- */

struct reading {
    const struct sy_word *words;
    size_t count;
    const struct sy_word *number_words[SY_NUMBERS_MAX];
    bool closes_but; /* behind "except" */
};

static const char *text_at(const struct reading *in, size_t i) {
    return i < in->count ? in->words[i].text : "";
}

/* "in chrome", "in a new tab", "in my browser": how many words from `i` on; 0: it is none of these. */
static size_t in_browser(const struct reading *in, size_t i) {
    size_t at = i;
    if (!sy_is_one_of(text_at(in, at), "in with using inside on")) {
        return 0;
    }
    at++;
    while (sy_is_one_of(text_at(in, at), "a the my another separate google")) {
        at++;
    }
    if (sy_is_one_of(text_at(in, at), "chrome chromium browser")) {
        return at + 1 - i;
    }
    bool tab = strcmp(text_at(in, at), "new") == 0 && strcmp(text_at(in, at + 1), "tab") == 0;
    return tab                                                                                  ? at + 2 - i
           : strcmp(text_at(in, at), "tab") == 0 && strcmp(text_at(in, at - 1), "another") == 0 ? at + 1 - i
                                                                                                : 0;
}

/* A kind of thing; true: the word is one. */
static bool read_kind(struct sy_clause *clause, const char *word) {
    if (sy_is_one_of(word, "tab tap")) {
        clause->tab = true;
    } else if (sy_is_one_of(word, "tabs")) {
        clause->tab = clause->tabs = true;
    } else if (sy_is_one_of(word, "app application program")) {
        clause->app = true;
    } else if (sy_is_one_of(word, "apps applications programs")) {
        clause->app = clause->apps = true;
    } else if (sy_is_one_of(word, "window")) {
        clause->window = true;
    } else if (sy_is_one_of(word, "windows")) {
        clause->window = clause->apps = true;
    } else if (sy_is_one_of(word, "preset layout workspace arrangement mode presets")) {
        clause->preset = true;
    } else if (clause->verb == SY_OPEN && sy_is_one_of(word, "site website")) {
        clause->site = true;
    } else {
        return false;
    }
    return true;
}

/* Which ones; true: the word says that. */
static bool read_which(struct sy_clause *clause, const char *word) {
    if (sy_is_one_of(word, "all every each everything both")) {
        clause->all = true;
        clause->both |= strcmp(word, "both") == 0;
    } else if (sy_is_one_of(word, "other others rest remaining else")) {
        clause->other = true;
    } else if (sy_is_one_of(word, "current active")) {
        clause->current = true;
    } else if (sy_is_one_of(word, "duplicate duplicates duplicated dupes dupe")) {
        clause->duplicate = true;
    } else if (sy_is_one_of(word, "it them those these")) {
        clause->refers = true;
    } else if (strcmp(word, "running") == 0) {
        clause->running = true;
    } else if (sy_is_one_of(word, "next following")) {
        clause->relative = 1;
    } else if (sy_is_one_of(word, "previous prior")) {
        clause->relative = -1;
    } else if (sy_is_one_of(word, "one ones")) {
        return true;
    } else {
        return false;
    }
    return true;
}

/* "this tab" is the current one, "close this" what was meant before, "that reddit tab" says nothing. */
static bool read_pointing(const struct reading *in, size_t i, struct sy_clause *clause) {
    const char *word = text_at(in, i);
    const char *next = text_at(in, i + 1);
    if (!sy_is_one_of(word, "this that")) {
        return false;
    }
    bool last = i + 1 >= in->count || sy_is_one_of(next, "one too up down as");
    bool named = sy_is_one_of(next, "tab window app application page program");
    clause->refers |= last || (named && strcmp(word, "that") == 0);
    clause->current |= named && strcmp(word, "this") == 0;
    return true;
}

/* Numbers, and "3 to 7"; returns how many words. Whether they count things is decided later. */
static size_t read_number(struct reading *in, size_t i, struct sy_clause *clause) {
    int number = sy_number(text_at(in, i));
    int end = sy_is_one_of(text_at(in, i + 1), "to through till until thru") ? sy_number(text_at(in, i + 2)) : -1;
    bool one = strcmp(text_at(in, i), "one") == 0; /* "the second one" */
    if (number < 0 || (one && (i > 0 || in->count > 1) && !clause->tab)) {
        return 0;
    }
    for (int n = number; n <= (end > number ? end : number); n++) {
        if (clause->number_count == SY_NUMBERS_MAX) {
            clause->vague = true; /* rather than some of them */
            break;
        }
        in->number_words[clause->number_count] = &in->words[i];
        clause->numbers[clause->number_count++] = n;
    }
    return end > number ? 3 : 1;
}

/* "window 2", "the second window"; with tabs also "this window". */
static size_t read_window(const struct reading *in, size_t i, struct sy_clause *clause) {
    bool next = strcmp(text_at(in, i + 1), "window") == 0;
    if (strcmp(text_at(in, i), "window") == 0 && sy_number(text_at(in, i + 1)) > 0) {
        clause->in_window = sy_number(text_at(in, i + 1));
    } else if (next && sy_ordinal(text_at(in, i)) > 0) {
        clause->in_window = sy_ordinal(text_at(in, i));
    } else if (next && clause->tab && sy_is_one_of(text_at(in, i), "this current")) {
        clause->in_window = -1;
    } else {
        return 0;
    }
    return 2;
}

static bool is_except(const struct reading *in, size_t i, size_t *len) {
    const char *word = text_at(in, i);
    bool two = (strcmp(word, "apart") == 0 && strcmp(text_at(in, i + 1), "from") == 0) ||
               (strcmp(word, "other") == 0 && strcmp(text_at(in, i + 1), "than") == 0) ||
               (strcmp(word, "except") == 0 && strcmp(text_at(in, i + 1), "for") == 0);
    *len = two ? 2 : 1;
    return two || sy_is_one_of(word, "except but besides excluding without");
}

static void add_name(struct sy_clause *clause, const struct sy_word *word, bool but) {
    if (but) {
        clause->but[clause->but_count++] = word;
    } else {
        clause->names[clause->name_count++] = word;
    }
    if (word->address) {
        clause->address = word;
    }
}

/* One step: how many words were taken. */
static size_t read_slot(struct reading *in, size_t i, struct sy_clause *clause) {
    const struct sy_word *word = &in->words[i];
    size_t len;
    if (in->closes_but) {
        bool joins = sy_is_one_of(word->text, "and or");
        if (!joins && !read_kind(clause, word->text) && !sy_is_one_of(word->text, "one ones")) {
            add_name(clause, word, true);
        }
        if (joins || word->breaks) {
            clause->but[clause->but_count++] = NULL;
        }
        return 1;
    }
    if (is_except(in, i, &len) && i > 0) {
        in->closes_but = true;
        clause->has_but = true;
        return len;
    }
    if ((len = in_browser(in, i)) > 0) {
        clause->fresh |= clause->verb == SY_OPEN || clause->verb == SY_VISIT || clause->verb == SY_NO_VERB;
        clause->tab |= !clause->fresh;
        return len;
    }
    if ((len = read_window(in, i, clause)) > 0 || (!word->address && (len = read_number(in, i, clause)) > 0)) {
        return len;
    }
    if (clause->tab && sy_is_one_of(word->text, "chrome browser") && sy_is_one_of(text_at(in, i + 1), "tab tabs")) {
        return 1; /* "all Chrome tabs" */
    }
    bool up_to_date = sy_is_one_of(word->text, "front foreground forward down") && clause->verb != SY_OPEN;
    if (word->address || !(read_kind(clause, word->text) || read_pointing(in, i, clause) ||
                           read_which(clause, word->text) || up_to_date)) {
        int ordinal = word->address ? 0 : sy_ordinal(word->text);
        bool fresh = strcmp(word->text, "new") == 0 && clause->tab && clause->verb == SY_OPEN;
        if (ordinal != 0 && clause->ordinal == 0) {
            clause->ordinal = ordinal;
        } else if (fresh) {
            clause->fresh = true;
        } else {
            add_name(clause, word, false);
        }
    }
    return 1;
}

static bool names_something(const struct sy_clause *clause) {
    for (size_t i = 0; i < clause->name_count; i++) {
        if (!sy_is_stop(clause->names[i]->text)) {
            return true;
        }
    }
    return false;
}

/* "Unused", "old": what something is like now, and no name. */
static bool only_states(const struct sy_clause *clause) {
    bool any = false;
    for (size_t i = 0; i < clause->name_count; i++) {
        bool state = sy_is_one_of(clause->names[i]->text,
                                  "new old older oldest newest recent latest unused empty blank useless inactive "
                                  "extra idle unread unnecessary useful important boring irrelevant");
        if (!state && !sy_is_stop(clause->names[i]->text)) {
            return false;
        }
        any |= state;
    }
    return any;
}

/* Numbers name tabs where tabs are said, or nothing else is; otherwise they belong to a name. */
static void place_numbers(const struct reading *in, struct sy_clause *clause) {
    if (clause->number_count > 0 && !clause->tab && names_something(clause)) {
        for (size_t i = 0; i < clause->number_count && clause->name_count < SY_WORDS_MAX; i++) {
            clause->names[clause->name_count++] = in->number_words[i];
        }
        clause->vague |= clause->number_count > 1;
        clause->number_count = 0;
    }
}

/* Whether a place belongs to the clause: with these verbs only if a monitor is named, or it can be nothing else. */
static bool takes_place(const struct sy_clause *clause) {
    if (clause->verb == SY_PLACE) {
        return true;
    }
    bool may = clause->verb == SY_OPEN || clause->verb == SY_SWITCH || clause->verb == SY_NO_VERB;
    bool sure = clause->where.monitor || clause->where.part || clause->where.width > 0;
    return may && clause->where.given && (sure || clause->verb == SY_NO_VERB);
}

static void read_slots(const struct sy_word *words, size_t count, struct sy_clause *clause) {
    struct reading in = {.words = words, .count = count};
    const struct sy_word *pointers[SY_WORDS_MAX] = {NULL};
    bool used[SY_WORDS_MAX] = {false};
    for (size_t i = 0; i < count; i++) {
        pointers[i] = &words[i];
        clause->tab |= sy_is_one_of(words[i].text, "tab tabs"); /* numbers before the word need to know */
    }
    if (clause->verb != SY_CLOSE && clause->verb != SY_VISIT && clause->verb != SY_PRESET) {
        sy_where_read(pointers, count, &clause->where, used);
        if (!takes_place(clause)) {
            clause->where = (struct sy_where){.given = false};
            memset(used, 0, sizeof used);
        }
    }
    for (size_t i = 0; i < count;) {
        i += used[i] ? 1 : read_slot(&in, i, clause);
    }
    place_numbers(&in, clause);
    clause->vague |= only_states(clause);
}

/* ---- cutting ---- */

static bool separates(const struct sy_word *word) {
    return sy_is_one_of(word->text, "and then plus");
}

/* The verb of the words from `begin` to `end`: at their beginning or, alone, at their end. */
static enum sy_verb verb_of(const struct sy_word *words, size_t *begin, size_t *end) {
    size_t len;
    enum sy_verb verb = sy_verb_at(words + *begin, *end - *begin, &len);
    *begin += len;
    if (verb == SY_NO_VERB && *end - *begin > 1) {
        verb = sy_verb_at(words + *end - 1, 1, &len);
        verb = verb == SY_QUERY || verb == SY_CANNOT || verb == SY_OPEN ? SY_NO_VERB : verb;
        *end -= verb != SY_NO_VERB;
    }
    return verb;
}

static void add_clause(const struct sy_words *words, size_t begin, size_t end, struct sy_clauses *clauses) {
    begin += sy_polite(words->at + begin, end - begin);
    if (begin >= end) {
        return;
    }
    if (clauses->count == SY_CLAUSES_MAX) {
        clauses->too_many = true;
        return;
    }
    struct sy_clause *clause = &clauses->at[clauses->count];
    const struct sy_clause *before = clauses->count > 0 ? clause - 1 : NULL;
    *clause = (struct sy_clause){.all_words = words->at + begin, .word_count = end - begin};
    clause->negated = sy_is_negated(words->at + begin, end - begin);
    enum sy_verb verb = verb_of(words->at, &begin, &end);
    clause->own_verb = verb != SY_NO_VERB;
    clause->verb = !clause->own_verb && before ? before->verb : verb;
    bool whole = clause->own_verb && begin > 0 && sy_is_one_of(words->at[begin - 1].text, "maximize maximise");
    bool center = clause->own_verb && begin > 0 && sy_is_one_of(words->at[begin - 1].text, "center centre");
    bool fresh = clause->own_verb && verb == SY_OPEN && strcmp(words->at[begin - 1].text, "tab") == 0;
    read_slots(words->at + begin, end - begin, clause);
    clause->fresh |= fresh;
    if (whole && !clause->where.part) {
        clause->where.given = clause->where.part = true;
        clause->where.right = clause->where.bottom = SY_TWELFTHS;
    } else if (center && !clause->where.part) {
        clause->where.given = clause->where.center = true;
    }
    clauses->count++;
}

/* Whether a new clause begins after the word at `i`; what comes behind "except" is one list up to the next verb. */
static bool ends_at(const struct sy_words *words, size_t begin, size_t i, bool split) {
    size_t next = i + 1;
    size_t len;
    bool but = strcmp(words->at[i].text, "but") == 0;
    if (next >= words->count || !(words->at[i].breaks || but || separates(&words->at[i]))) {
        return false;
    }
    for (size_t j = begin; j <= i; j++) {
        split = split && !sy_is_one_of(words->at[j].text, "except but besides excluding without apart than");
    }
    size_t start = next + sy_polite(words->at + next, words->count - next);
    return split || (start < words->count && sy_verb_at(words->at + start, words->count - start, &len) != SY_NO_VERB);
}

/* What is said of some of a list holds for all: "tabs 1, 3 and 5", "all reddit and youtube tabs". */
static void share(struct sy_clauses *clauses) {
    for (size_t i = 0; i < clauses->count;) {
        size_t end = i + 1;
        bool tabs = clauses->at[i].tabs || (clauses->at[i].tab && clauses->at[i].number_count > 0);
        bool all = clauses->at[i].all;
        bool apps = clauses->at[i].apps;
        const struct sy_where *where = NULL;
        while (end < clauses->count && !clauses->at[end].own_verb) {
            tabs |= clauses->at[end].tabs;
            apps |= clauses->at[end].apps;
            end++;
        }
        for (size_t j = end; j > i; j--) {
            struct sy_clause *at = &clauses->at[j - 1];
            bool other = at->app || at->window || at->preset || (at->tab && !at->tabs && at->number_count == 0);
            at->tab |= tabs && !other;
            at->tabs |= tabs && !other && at->number_count == 0;
            at->apps |= apps && !at->tab;
            at->all |= all && end - i > 1 && at->name_count > 0;
            where = at->where.given ? &at->where : where;
            if (!at->where.given && where && at->verb == SY_PLACE) {
                at->where = *where;
            }
        }
        i = end;
    }
}

/* "I'm done with reddit, close it": the first clause only names what the second one is about. */
static void join_topic(struct sy_clauses *clauses) {
    struct sy_clause *topic = &clauses->at[0];
    struct sy_clause *next = &clauses->at[1];
    if (clauses->count < 2 || topic->verb != SY_NO_VERB || topic->negated || !next->refers || names_something(next)) {
        return;
    }
    memcpy(next->names, topic->names, sizeof next->names);
    next->name_count = topic->name_count;
    next->tab |= topic->tab;
    next->tabs |= topic->tabs;
    next->app |= topic->app;
    next->refers = topic->name_count == 0;
    memmove(topic, next, (clauses->count - 1) * sizeof *topic);
    clauses->count--;
}

void sy_clauses_read(const struct sy_words *words, bool split, struct sy_clauses *clauses) {
    size_t begin = 0;
    size_t polite = sy_polite(words->at, words->count);
    memset(clauses, 0, sizeof *clauses); /* a compound literal would take as much of the stack again */
    clauses->question = sy_is_question(words->at + polite, words->count - polite);
    for (size_t i = 0; i < words->count; i++) {
        if (i + 1 == words->count || ends_at(words, begin, i, split)) {
            bool joins = separates(&words->at[i]) || strcmp(words->at[i].text, "but") == 0;
            size_t end = i + 1 - (joins ? 1 : 0);
            add_clause(words, begin, end, clauses);
            begin = i + 1;
        }
    }
    join_topic(clauses);
    share(clauses);
}
