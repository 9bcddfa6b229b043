/* Clauses. Each word of the user goes into one slot of one clause, or is dropped because it says nothing. */
#include "match/clause.h"

#include <string.h>

/* ---- slots ---- */

struct reading {
    const struct sy_word *words;
    size_t count;
    const struct sy_word *number_words[SY_NUMBERS_MAX];
    bool closes_but; /* after "except" */
    bool tabs_said;  /* the clause is about several tabs; the word may stand anywhere in it */
};

static const char *text_at(const struct reading *in, size_t i) {
    return i < in->count ? in->words[i].text : "";
}

/* The number of words from `i` on that are like "in chrome", "in a new tab", "in my browser"; 0: none are. */
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

/* Whether the verb may open something new. */
static bool opens(enum sy_verb verb) {
    return verb == SY_OPEN || verb == SY_VISIT || verb == SY_WANT || verb == SY_NO_VERB;
}

/* Reads "I'm on" of "the tab I'm on", or "I am looking at": the current tab. Returns how many words; 0: none. */
static size_t read_here(const struct reading *in, size_t i, struct sy_clause *clause) {
    size_t at = i;
    const char *does = text_at(in, i + 2);
    size_t len = strlen(does);
    if (strcmp(text_at(in, i), "i") == 0 && sy_is_one_of(text_at(in, i + 1), "was had opened") && i > 0) {
        bool ing = len > 4 && strcmp(does + len - 3, "ing") == 0;
        return 2 + (size_t)(ing || strcmp(does, "open") == 0); /* "the pdf I was reading" */
    }
    if (strcmp(text_at(in, at), "im") == 0) {
        at++;
    } else if (strcmp(text_at(in, at), "i") == 0 && strcmp(text_at(in, at + 1), "am") == 0) {
        at += 2;
    } else {
        return 0;
    }
    if (!sy_is_one_of(text_at(in, at), "on in at viewing looking reading")) {
        return 0;
    }
    at += 1 + (size_t)sy_is_one_of(text_at(in, at + 1), "at now");
    clause->current = true;
    return at - i;
}

/* Reads "to the right of it", for tabs to be closed. Returns how many words; 0: none. */
static size_t read_side(const struct reading *in, size_t i, struct sy_clause *clause) {
    size_t at = i + 1 + (size_t)(strcmp(text_at(in, i + 1), "the") == 0);
    bool right = strcmp(text_at(in, at), "right") == 0;
    bool side = right || strcmp(text_at(in, at), "left") == 0;
    if (clause->verb != SY_CLOSE || !in->tabs_said || !side || !sy_is_one_of(text_at(in, i), "to on")) {
        return 0;
    }
    at += 1 + (size_t)(strcmp(text_at(in, at + 1), "of") == 0);
    at += sy_is_one_of(text_at(in, at), "it this that here mine me");
    at += sy_is_one_of(text_at(in, at), "one tab");
    clause->side = right ? 1 : -1;
    return at - i;
}

/* Reads a word for a kind of thing, such as "tab". False: it is another word. */
static bool read_kind(struct sy_clause *clause, const char *word) {
    if (sy_is_one_of(word, "tab tap tba") ||
        (clause->current && clause->name_count == 0 && sy_is_one_of(word, "page webpage site website article video"))) {
        clause->tab = true;
    } else if (sy_is_one_of(word, "tabs taps tbas tabz")) {
        clause->tab = clause->tabs = true;
    } else if (sy_is_one_of(word, "app application program programm")) {
        clause->app = true;
    } else if (sy_is_one_of(word, "apps applications programs")) {
        clause->app = clause->apps = true;
    } else if (sy_is_one_of(word, "window")) {
        clause->window = true;
    } else if (sy_is_one_of(word, "windows")) {
        clause->window = clause->apps = true;
    } else if (sy_is_one_of(word, "preset layout workspace arrangement mode setup presets")) {
        clause->preset = true;
    } else if (clause->verb == SY_OPEN && sy_is_one_of(word, "site website")) {
        clause->site = true;
    } else {
        return false;
    }
    return true;
}

/* Reads a word that says which things are meant, such as "all". False: it is another word. */
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
    } else if (sy_is_one_of(word, "it them those these em")) {
        clause->refers = true;
        clause->several |= strcmp(word, "it") != 0;
    } else if (sy_is_one_of(word, "copy copies") && clause->verb == SY_CLOSE &&
               (clause->ordinal == 2 || clause->other)) {
        clause->duplicate = true; /* "the second copy of it" */
        clause->ordinal = 0;
        clause->other = false;
    } else if (strcmp(word, "running") == 0) {
        clause->running = true;
    } else if (sy_is_one_of(word, "next following")) {
        clause->relative = 1;
    } else if (sy_is_one_of(word, "previous prior")) {
        clause->relative = -1;
    } else if (sy_is_one_of(word, "one ones")) {
        clause->several |= strcmp(word, "ones") == 0;
        return true;
    } else {
        return false;
    }
    return true;
}

/* Reads "this" or "that": "this tab" is the current one, "close this" refers to what was said before, and in "that
 * reddit tab" the word adds nothing. */
static bool read_pointing(const struct reading *in, size_t i, struct sy_clause *clause) {
    const char *word = text_at(in, i);
    const char *next = text_at(in, i + 1);
    if (!sy_is_one_of(word, "this that")) {
        return false;
    }
    bool last = i + 1 >= in->count || sy_is_one_of(next, "one too up down as");
    bool named = sy_is_one_of(next, "tab window app application page program webpage site website");
    clause->refers |= last || (named && strcmp(word, "that") == 0);
    clause->current |= named && strcmp(word, "this") == 0;
    clause->pointed = true;
    return true;
}

/* Whether the number at `i` says how many there are ("the two rust tabs"), not which ones. */
static bool is_count(const struct reading *in, size_t i) {
    bool first = i == 0 || sy_is_one_of(text_at(in, i - 1), "the all my those these of both other");
    bool tabs = false;
    bool plural = false;
    for (size_t j = i + 1; j < in->count; j++) {
        const char *word = text_at(in, j);
        size_t len = strlen(word);
        tabs |= sy_is_one_of(word, "tabs windows apps");
        plural = len > 3 && word[len - 1] == 's' && word[len - 2] != 's';
    }
    return first && sy_number(text_at(in, i)) > 0 && i + 1 < in->count && (tabs || plural) &&
           sy_number(text_at(in, i + 1)) < 0 && !sy_is_one_of(text_at(in, i + 1), "to through till until thru");
}

/* The number of words at `i` that are like "onwards" or "and up", after a number; 0: none. */
static size_t onwards_len(const struct reading *in, size_t i) {
    size_t at = i + (size_t)(strcmp(text_at(in, i), "and") == 0);
    bool on = sy_is_one_of(text_at(in, at), "onwards onward upwards upward") ||
              (at > i && sy_is_one_of(text_at(in, at), "up above later beyond following")) ||
              (strcmp(text_at(in, at), "on") == 0 && at + 1 == in->count);
    return on ? at + 1 - i : 0;
}

/* Reads a number, or a range such as "3 to 7". Returns how many words; 0: none. place_numbers decides later what the
 * numbers belong to. */
static size_t read_number(struct reading *in, size_t i, struct sy_clause *clause) {
    if (sy_is_one_of(text_at(in, i), "number numbers nr no") && sy_number(text_at(in, i + 1)) >= 0) {
        return 1;
    }
    size_t behind = onwards_len(in, i + 1);
    bool unclear = clause->number_count > 0 || clause->ordinal || strcmp(text_at(in, i), "one") == 0;
    if (sy_number(text_at(in, i)) > 0 && behind > 0 && unclear) {
        clause->vague = true; /* "3, 10 onwards", "the second one onwards" */
        return 1 + behind;
    }
    if (sy_number(text_at(in, i)) > 0 && behind > 0) {
        clause->onwards = true;
        in->number_words[clause->number_count] = &in->words[i];
        clause->numbers[clause->number_count++] = sy_number(text_at(in, i));
        return 1 + behind;
    }
    clause->vague |= sy_number(text_at(in, i)) >= 0 && clause->onwards;
    int number = sy_number(text_at(in, i));
    int end = sy_is_one_of(text_at(in, i + 1), "to through till until thru") ? sy_number(text_at(in, i + 2)) : -1;
    bool one = strcmp(text_at(in, i), "one") == 0; /* "the second one" */
    if (number < 0 || (one && (i > 0 || in->count > 1) && !clause->tab)) {
        return 0;
    }
    size_t to = i > 0 && sy_is_one_of(text_at(in, i - 1), "number nr no") ? i - 1 : i;
    if (to > 1 && strcmp(text_at(in, to - 1), "to") == 0 && strcmp(text_at(in, to - 2), "up") == 0) {
        clause->vague = true; /* "up to lecture 10": the beginning is not clear */
    }
    if (clause->ordinal == 0 && is_count(in, i)) {
        clause->counted = number;
        return 1;
    }
    for (int n = number; n <= (end > number ? end : number); n++) {
        if (clause->number_count == SY_NUMBERS_MAX) {
            clause->vague = true; /* a part of the numbers would mislead */
            break;
        }
        in->number_words[clause->number_count] = &in->words[i];
        clause->numbers[clause->number_count++] = n;
    }
    return end > number ? 3 : 1;
}

/* Reads "window 2", "the second window"; in a clause about tabs also "this window". Returns how many words; 0: none. */
static size_t read_window(const struct reading *in, size_t i, struct sy_clause *clause) {
    bool chrome = sy_ordinal(text_at(in, i)) > 0 && sy_is_one_of(text_at(in, i + 1), "chrome browser");
    bool next = strcmp(text_at(in, i + 1 + chrome), "window") == 0;
    if (strcmp(text_at(in, i), "window") == 0 && sy_number(text_at(in, i + 1)) > 0) {
        clause->in_window = sy_number(text_at(in, i + 1));
    } else if (next && sy_ordinal(text_at(in, i)) > 0) {
        clause->in_window = sy_ordinal(text_at(in, i));
    } else if (next && clause->tab && sy_is_one_of(text_at(in, i), "this current")) {
        clause->in_window = -1;
    } else {
        return 0;
    }
    return 2 + (size_t)chrome;
}

static bool is_except(const struct reading *in, size_t i, size_t *len) {
    const char *word = text_at(in, i);
    bool two = (strcmp(word, "apart") == 0 && strcmp(text_at(in, i + 1), "from") == 0) ||
               (strcmp(word, "other") == 0 && strcmp(text_at(in, i + 1), "than") == 0) ||
               (strcmp(word, "except") == 0 && strcmp(text_at(in, i + 1), "for") == 0);
    *len = two ? 2 : 1;
    return two || sy_is_one_of(word, "except but besides excluding without");
}

/* Whether "but keep gmail", "only gmail stays" begins at `i`. When closing, this means the same as "except". */
static bool is_kept(const struct reading *in, size_t i, const struct sy_clause *clause, size_t *len) {
    if (clause->verb != SY_CLOSE) {
        return false;
    }
    *len = sy_keeps(in->words + i, in->count - i);
    for (size_t j = i + 1; j < in->count && *len == 0 && strcmp(text_at(in, i), "only") == 0; j++) {
        *len = sy_is_one_of(text_at(in, j), "stay stays remain remains") ? 1 : 0;
    }
    return *len > 0;
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

static bool names_something(const struct sy_clause *clause) {
    for (size_t i = 0; i < clause->name_count; i++) {
        if (!sy_is_stop(clause->names[i]->text)) {
            return true;
        }
    }
    return false;
}

/* Reads a word for a kind of thing after "except". The clause gets this kind, unless it is already about several
 * things: "all tabs except the gmail tab" is still about several. */
static bool read_but_kind(struct sy_clause *clause, const char *word) {
    struct sy_clause kind = {.verb = clause->verb};
    bool is_kind = read_kind(&kind, word);
    if (is_kind && !clause->apps && !clause->tabs) {
        (void)read_kind(clause, word);
    }
    return is_kind;
}

/* Whether the word at `i` asks for a new tab of a site: "a fresh chatgpt", "a new chatgpt tab". */
static bool is_anew(const struct reading *in, size_t i, const struct sy_clause *clause) {
    bool tab = strcmp(text_at(in, i), "new") == 0 && strcmp(text_at(in, in->count - 1), "tab") == 0 &&
               i + 2 < in->count && strcmp(text_at(in, i + 1), "york") != 0;
    return opens(clause->verb) && i > 0 && i + 1 < in->count && (tab || strcmp(text_at(in, i), "fresh") == 0) &&
           sy_is_one_of(text_at(in, i - 1), "a another");
}

/* Reads the next slot from `i` on. Returns how many words it has. */
static size_t read_slot(struct reading *in, size_t i, struct sy_clause *clause) {
    const struct sy_word *word = &in->words[i];
    size_t len;
    if (in->closes_but) {
        bool joins = sy_is_one_of(word->text, "and or");
        /* the window may be that of all tabs, or of those that stay */
        clause->vague |= strcmp(word->text, "window") == 0 && clause->tab;
        bool says = !is_count(in, i) && !sy_is_one_of(word->text, "one ones stay stays remain remains open alone") &&
                    !(sy_is_one_of(word->text, "number nr no") && sy_number(text_at(in, i + 1)) >= 0);
        if (!joins && !read_but_kind(clause, word->text) && says) {
            add_name(clause, word, true);
        }
        if (joins || word->breaks) {
            clause->but[clause->but_count++] = NULL;
        }
        return 1;
    }
    bool some = clause->verb == SY_CLOSE && !names_something(clause) && !word->address &&
                sy_is_one_of(word->text, "some few couple several most half many");
    clause->vague |= some && sy_number(text_at(in, i + 1)) < 0; /* which of them? */
    if (i > 0 && (is_kept(in, i, clause, &len) || is_except(in, i, &len))) {
        in->closes_but = true;
        clause->has_but = true;
        return len;
    }
    if ((len = in_browser(in, i)) > 0) {
        bool tab = strcmp(text_at(in, i + len - 1), "tab") == 0;
        clause->fresh |= opens(clause->verb) || (tab && clause->verb != SY_CLOSE);
        clause->tab |= !clause->fresh;
        return len;
    }
    if ((len = read_here(in, i, clause)) > 0 || (len = read_side(in, i, clause)) > 0) {
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
        bool anew = is_anew(in, i, clause);
        clause->anew |= anew;
        bool fresh = strcmp(word->text, "new") == 0 && clause->tab && opens(clause->verb) &&
                     sy_is_one_of(text_at(in, i + 1), "tab browser chrome");
        if (ordinal != 0 && clause->ordinal == 0) {
            clause->ordinal = ordinal;
        } else if (fresh) {
            clause->fresh = true;
        } else if (!anew) {
            add_name(clause, word, false);
        }
    }
    return 1;
}

/* Whether the names only say that tabs are empty: "the empty new tabs". */
static bool only_blank(const struct sy_clause *clause) {
    bool any = false;
    for (size_t i = 0; i < clause->name_count; i++) {
        bool state = sy_is_one_of(clause->names[i]->text, "new empty blank");
        if (!state && !sy_is_stop(clause->names[i]->text)) {
            return false;
        }
        any |= state;
    }
    return any && clause->tab && !clause->fresh;
}

/* Whether the names only describe a state, such as "unused" or "old", and name nothing. */
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

/* Decides what the numbers belong to. Without a name they are numbers of tabs. With a name they are a series of
 * things with this name. A single number with a name, but without "tab", becomes a word of the name. */
static void place_numbers(const struct reading *in, struct sy_clause *clause) {
    if (clause->number_count == 0 || !names_something(clause) || clause->ordinal != 0) {
        return;
    }
    clause->series = clause->tab || clause->number_count > 1 || clause->onwards;
    if (!clause->series && clause->name_count < SY_WORDS_MAX) {
        clause->names[clause->name_count++] = in->number_words[0];
        clause->number_count = 0;
        clause->named_number = clause->numbers[0];
    }
}

/* Whether the place that was read belongs to the clause. Only some verbs take a place. With SY_OPEN and SY_SWITCH it
 * must clearly be a place, such as a monitor. */
static bool takes_place(const struct sy_clause *clause) {
    if (clause->verb == SY_PLACE) {
        return true;
    }
    bool wants = clause->verb == SY_NO_VERB || clause->verb == SY_WANT;
    bool may = clause->verb == SY_OPEN || clause->verb == SY_SWITCH || wants;
    bool sure = clause->where.monitor || clause->where.part || clause->where.width > 0 || clause->where.beside ||
                clause->where.rest;
    return may && clause->where.given && (sure || wants);
}

static void read_slots(const struct sy_word *words, size_t count, struct sy_clause *clause) {
    struct reading in = {.words = words, .count = count};
    const struct sy_word *pointers[SY_WORDS_MAX] = {NULL};
    bool used[SY_WORDS_MAX] = {false};
    bool everything = false;
    for (size_t i = 0; i < count; i++) {
        pointers[i] = &words[i];
        clause->tab |= sy_is_one_of(words[i].text, "tab tabs"); /* set first, for numbers before the word */
        in.tabs_said |= strcmp(words[i].text, "tabs") == 0;
        everything |= strcmp(words[i].text, "everything") == 0;
    }
    in.tabs_said |= everything && clause->tab; /* "everything to the right of the weather tab" */
    if (clause->verb != SY_CLOSE && clause->verb != SY_VISIT && clause->verb != SY_PRESET) {
        sy_where_read(pointers, count, &clause->where, used);
        if (!takes_place(clause)) {
            clause->where = (struct sy_where){.there = clause->where.there};
            memset(used, 0, sizeof used);
        }
    }
    for (size_t i = 0; i < count;) {
        bool filler =
            clause->where.given && !clause->tab &&
            sy_is_one_of(words[i].text, "take takes taking occupy occupying fill fills filling cover covering "
                                        "use using sit live stay go going be being float span spanning part "
                                        "portion area space edge section position spot use uses goes belongs gets put "
                                        "place move have show size sized bigger larger "
                                        "so completely entirely its is enough will do suffices");
        i += used[i] || filler ? 1 : read_slot(&in, i, clause);
    }
    place_numbers(&in, clause);
    clause->blank = only_blank(clause);
    clause->vague |= (only_states(clause) && !clause->blank) ||
                     (clause->counted > 0 && !names_something(clause) && !clause->ordinal);
}

/* ---- cutting ---- */

static bool separates(const struct sy_word *word) {
    return sy_is_one_of(word->text, "and then plus");
}

/* "I want to", "let's": the user says what they want to do themselves. */
static bool is_wish(const struct sy_words *words, size_t begin, size_t end) {
    bool wish = false;
    for (size_t i = begin; i < end; i++) {
        wish |= sy_is_one_of(words->at[i].text, "i id im ill we lets wanna gotta gonna have time");
        if (sy_is_one_of(words->at[i].text, "you can could u")) {
            return false;
        }
    }
    return wish;
}

static void add_clause(const struct sy_words *words, size_t begin, size_t end, struct sy_clauses *clauses) {
    const size_t polite = begin;
    begin += sy_polite(words->at + begin, end - begin);
    if (begin >= end) {
        return;
    }
    end -= sy_polite_end(words->at + begin, end - begin);
    if (clauses->count == SY_CLAUSES_MAX) {
        clauses->too_many = true;
        return;
    }
    struct sy_clause *clause = &clauses->at[clauses->count];
    const struct sy_clause *before = clauses->count > 0 ? clause - 1 : NULL;
    *clause = (struct sy_clause){.all_words = words->at + begin, .word_count = end - begin};
    clause->negated = sy_is_negated(words->at + begin, end - begin);
    const size_t first = begin;
    const bool wish = is_wish(words, polite, first);
    const size_t last = end;
    enum sy_verb verb = sy_verb_of(words->at, &begin, &end);
    clause->behind = verb == SY_CLOSE && begin == first && end < last;
    if (verb == SY_NO_VERB && wish && end - begin > 2 &&
        sy_is_one_of(words->at[begin + 1].text, "a an the my some this")) {
        begin++; /* "I have to unpack a zip": the verb is not known, but the thing is */
        verb = SY_WANT;
    }
    clause->own_verb = verb != SY_NO_VERB;
    clause->verb = !clause->own_verb && before ? before->verb : verb;
    const char *said = !clause->own_verb ? "" : begin > first ? words->at[begin - 1].text : words->at[end].text;
    bool whole = sy_is_one_of(said, "maximize maximise fullscreen screen expand fill");
    bool center = sy_is_one_of(said, "center centre");
    bool beside = strcmp(said, "split") == 0;
    bool fresh = verb == SY_OPEN && strcmp(said, "tab") == 0;
    if (verb == SY_CANNOT && wish && sy_is_activity(words->at[first].text)) {
        clause->verb = SY_WANT; /* "I want to play wordle": the game is shown, and the user plays */
    }
    read_slots(words->at + begin, end - begin, clause);
    if (verb == SY_PLACE && wish && !clause->where.given && strcmp(words->at[first].text, "make") == 0) {
        clause->verb = SY_WANT;
    }
    clause->fresh |= fresh;
    clause->where.given |= beside;
    clause->where.beside |= beside;
    if (whole && !clause->where.part) {
        clause->where.given = clause->where.part = true;
        clause->where.right = clause->where.bottom = SY_TWELFTHS;
    } else if (center && !clause->where.part) {
        clause->where.given = clause->where.center = true;
    }
    clauses->count++;
}

/* "Close all of reddit, but keep the first": the part after "but" belongs to the clause that closes. */
static bool keeps_at(const struct sy_words *words, size_t begin, size_t i, bool closing) {
    size_t len;
    size_t start = begin + sy_polite(words->at + begin, i - begin);
    enum sy_verb verb = start <= i ? sy_verb_at(words->at + start, i + 1 - start, &len) : SY_NO_VERB;
    bool closes = verb == SY_CLOSE || (verb == SY_NO_VERB && closing);
    return closes && (sy_keeps(words->at + i, words->count - i) > 0 ||
                      (i + 1 < words->count && sy_keeps(words->at + i + 1, words->count - i - 1) > 0) ||
                      (i + 1 < words->count && sy_is_one_of(words->at[i + 1].text, "only except")));
}

/* Whether a new clause begins after the word at `i`. After "except" there is one list, up to the next verb. */
static bool ends_at(const struct sy_words *words, size_t begin, size_t i, bool split, bool closing) {
    size_t next = i + 1;
    size_t len;
    bool but = strcmp(words->at[i].text, "but") == 0;
    if (next >= words->count || !(words->at[i].breaks || but || separates(&words->at[i])) ||
        keeps_at(words, begin, i, closing)) {
        return false;
    }
    for (size_t j = begin; j <= i; j++) {
        split = split &&
                !sy_is_one_of(words->at[j].text, "except but besides excluding without apart than keep leave spare "
                                                 "not only");
    }
    size_t start = next + sy_polite(words->at + next, words->count - next);
    return split || (start < words->count && sy_verb_at(words->at + start, words->count - start, &len) != SY_NO_VERB);
}

/* "Lessons 1 and 2": a clause that has only numbers is joined to the clause before it, which has the name. */
static void share_numbers(struct sy_clauses *clauses) {
    for (size_t i = 1; i < clauses->count;) {
        struct sy_clause *before = &clauses->at[i - 1];
        const struct sy_clause *at = &clauses->at[i];
        bool goes_on = !at->own_verb && !at->tab && at->number_count > 0 && !names_something(at) &&
                       (before->named_number > 0 || before->series);
        if (!goes_on || before->number_count + at->number_count >= SY_NUMBERS_MAX) {
            i++;
            continue;
        }
        before->vague |= at->onwards || before->onwards; /* "lessons 5 and 20 onwards" */
        if (before->named_number > 0) { /* the number is the last word of the names */
            before->name_count--;
            before->numbers[before->number_count++] = before->named_number;
            before->named_number = 0;
        }
        memcpy(before->numbers + before->number_count, at->numbers, at->number_count * sizeof at->numbers[0]);
        before->number_count += at->number_count;
        before->series = true;
        memmove(&clauses->at[i], &clauses->at[i + 1], (clauses->count - i - 1) * sizeof *at);
        clauses->count--;
    }
}

/* Whether the verb takes a place. A place after the last thing of a list then applies to the whole list. */
static bool takes_where(enum sy_verb verb) {
    return verb == SY_PLACE || verb == SY_WANT || verb == SY_NO_VERB;
}

static bool is_placed(const struct sy_where *where) {
    return where->given && (where->part || where->direction);
}

/* "B on the other half" means the half that A did not get. */
static void share_rest(struct sy_clauses *clauses) {
    for (size_t i = 1; i < clauses->count; i++) {
        const struct sy_where *before = &clauses->at[i - 1].where;
        struct sy_where *at = &clauses->at[i].where;
        bool across =
            before->part && before->top == 0 && before->bottom == SY_TWELFTHS && before->left != before->right;
        bool down = before->part && before->left == 0 && before->right == SY_TWELFTHS;
        if (at->there && !at->given && before->given) {
            *at = *before;
        } else if (at->rest && (across || down) && !(across && down)) {
            const char *monitor = at->monitor ? at->monitor : before->monitor;
            *at = *before;
            at->monitor = monitor;
            at->there = true;
            int *from = across ? &at->left : &at->top;
            int *to = across ? &at->right : &at->bottom;
            bool first = *from == 0;
            *from = first ? *to : 0;
            *to = first ? SY_TWELFTHS : (across ? before->left : before->top);
        } else if (at->rest && before->direction) {
            *at = *before;
            at->direction = strcmp(before->direction, "left") == 0 ? "right" : "left";
        }
    }
}

/* "A on the left half and B on the right half of the main monitor": the monitor applies to both clauses. */
static void share_monitor(struct sy_clauses *clauses) {
    for (size_t i = 1; i < clauses->count; i++) {
        struct sy_where *before = &clauses->at[i - 1].where;
        struct sy_where *at = &clauses->at[i].where;
        if (clauses->at[i].own_verb || !is_placed(before) || !is_placed(at)) {
            continue;
        }
        if (!before->monitor && at->monitor && (at->part || before->part || (at->direction && before->direction))) {
            before->monitor = at->monitor;
        } else if (!at->monitor && before->monitor && before->part) {
            at->monitor = before->monitor;
        }
    }
}

/* "Close youtube and the bbc but keep chopin": the exception applies to both clauses. */
static void share_but(struct sy_clauses *clauses) {
    for (size_t i = clauses->count; i > 1; i--) {
        const struct sy_clause *at = &clauses->at[i - 1];
        struct sy_clause *before = &clauses->at[i - 2];
        if (at->has_but && at->verb == SY_CLOSE && before->verb == SY_CLOSE && !before->has_but) {
            memcpy(before->but, at->but, sizeof before->but);
            before->but_count = at->but_count;
            before->has_but = before->but_shared = true;
        }
    }
}

/* "Both slack and cursor can be closed": the verb at the end applies to the things before it. */
static void share_behind(struct sy_clauses *clauses) {
    for (size_t i = clauses->count; i > 1; i--) {
        struct sy_clause *before = &clauses->at[i - 2];
        if (clauses->at[i - 1].behind && before->verb == SY_NO_VERB && !before->own_verb) {
            before->verb = SY_CLOSE;
            before->behind = true;
            before->where = (struct sy_where){.given = false};
            clauses->at[i - 1].own_verb = false; /* it is one list */
        }
    }
}

/* Whether the clause ends in a word such as "pages": "wikipedia and reddit pages" means several. */
static bool ends_in_pages(const struct sy_clause *clause) {
    const struct sy_word *last = clause->name_count > 0 ? clause->names[clause->name_count - 1] : NULL;
    return last && sy_is_one_of(last->text, "pages sites websites");
}

/* Words of one thing in a list may apply to the whole list: "tabs 1, 3 and 5", "all reddit and youtube tabs". */
static void share(struct sy_clauses *clauses) {
    share_behind(clauses);
    share_numbers(clauses);
    share_rest(clauses);
    share_but(clauses);
    share_monitor(clauses);
    for (size_t i = 0; i < clauses->count;) {
        size_t end = i + 1;
        bool tabs = clauses->at[i].tabs || (clauses->at[i].tab && clauses->at[i].number_count > 0);
        bool pair = clauses->at[i].both && clauses->count > i + 1 && !clauses->at[i + 1].own_verb;
        clauses->at[i].both = clauses->at[i].both && !pair; /* "both rust and figma": one thing for each name */
        clauses->at[i].all = clauses->at[i].all && !pair;
        bool all = clauses->at[i].all;
        bool several = false;
        bool apps = clauses->at[i].apps;
        const struct sy_where *where = NULL;
        while (end < clauses->count && !clauses->at[end].own_verb) {
            tabs |= clauses->at[end].tabs;
            apps |= clauses->at[end].apps;
            several |= clauses->at[end].several || ends_in_pages(&clauses->at[end]);
            end++;
        }
        for (size_t j = end; j > i; j--) {
            struct sy_clause *at = &clauses->at[j - 1];
            bool other = at->app || at->window || at->preset || (at->tab && !at->tabs && at->number_count == 0);
            at->tab |= tabs && !other;
            at->tabs |= tabs && !other && at->number_count == 0;
            at->apps |= apps && !at->tab;
            at->several |= several && !other && !at->tab;
            at->all |= all && end - i > 1 && at->name_count > 0;
            where = at->where.given ? &at->where : where;
            bool shown = where && where->beside && (at->verb == SY_SWITCH || at->verb == SY_OPEN);
            if (!at->where.given && where && (shown || takes_where(at->verb))) {
                at->where = *where;
            }
        }
        bool whole = sy_is_one_of(clauses->at[i].all_words[0].text, "maximize maximise fullscreen center centre");
        for (size_t j = i + 1; j < end && whole; j++) { /* "maximize slack and chrome" */
            struct sy_clause *at = &clauses->at[j];
            at->where = at->where.given ? at->where : clauses->at[i].where;
        }
        i = end;
    }
}

/* "I'm done with reddit, close it": the first clause only names what the second one is about. */
static void join_topic(struct sy_clauses *clauses) {
    struct sy_clause *topic = &clauses->at[0];
    struct sy_clause *next = &clauses->at[1];
    bool more = clauses->count > 1 && (topic->number_count > 0 || topic->ordinal || topic->has_but || topic->other ||
                                       topic->duplicate || topic->relative || topic->in_window || topic->vague);
    if (more || clauses->count < 2 || topic->verb != SY_NO_VERB || topic->negated || !next->refers ||
        names_something(next)) {
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

/* Whether the words ask for a list, like a question: "show me what's running". */
static bool shows_what(const struct sy_words *words, size_t begin) {
    size_t at = begin + (size_t)(words->count > begin && strcmp(words->at[begin].text, "show") == 0);
    at += at > begin && at < words->count && strcmp(words->at[at].text, "me") == 0;
    return at > begin && at < words->count && sy_is_one_of(words->at[at].text, "what whats which");
}

void sy_clauses_read(const struct sy_words *words, bool split, struct sy_clauses *clauses) {
    size_t begin = 0;
    size_t polite = sy_polite(words->at, words->count);
    memset(clauses, 0, sizeof *clauses); /* a compound literal would use the same amount of stack again */
    bool wish = polite > 0 && is_wish(words, 0, polite) && polite < words->count &&
                strcmp(words->at[polite].text, "do") == 0; /* "I want to do the crossword" */
    clauses->question = (!wish && sy_is_question(words->at + polite, words->count - polite)) ||
                        shows_what(words, polite);
    for (size_t i = 0; i < words->count; i++) {
        bool closing = clauses->count > 0 && clauses->at[clauses->count - 1].verb == SY_CLOSE;
        if (i + 1 == words->count || ends_at(words, begin, i, split, closing)) {
            bool joins = separates(&words->at[i]) || strcmp(words->at[i].text, "but") == 0;
            size_t end = i + 1 - (joins ? 1 : 0);
            add_clause(words, begin, end, clauses);
            begin = i + 1;
        }
    }
    join_topic(clauses);
    share(clauses);
}
