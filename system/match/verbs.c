/* Verbs: tables of phrases. The longest phrase that fits counts. */
#include "match/verbs.h"

#include <string.h>

struct row {
    const char *phrase;
    enum sy_verb verb;
};

static const struct row rows[] = {
    {"close", SY_CLOSE},
    {"close down", SY_CLOSE},
    {"close out", SY_CLOSE},
    {"close off", SY_CLOSE},
    {"quit", SY_CLOSE},
    {"quit out of", SY_CLOSE},
    {"exit", SY_CLOSE},
    {"exit out of", SY_CLOSE},
    {"kill", SY_CLOSE},
    {"terminate", SY_CLOSE},
    {"shut", SY_CLOSE},
    {"shut down", SY_CLOSE},
    {"shutdown", SY_CLOSE},
    {"get rid of", SY_CLOSE},
    {"remove", SY_CLOSE},
    {"delete", SY_CLOSE},
    {"dismiss", SY_CLOSE},
    {"end", SY_CLOSE},
    {"x out", SY_CLOSE},
    {"clear out", SY_CLOSE},
    {"turn off", SY_CLOSE},
    {"switch", SY_SWITCH},
    {"switch to", SY_SWITCH},
    {"switch over to", SY_SWITCH},
    {"switch back to", SY_SWITCH},
    {"change to", SY_SWITCH},
    {"focus", SY_SWITCH},
    {"focus on", SY_SWITCH},
    {"activate", SY_SWITCH},
    {"bring", SY_SWITCH},
    {"bring up", SY_SWITCH},
    {"bring back", SY_SWITCH},
    {"pull up", SY_SWITCH},
    {"get me", SY_SWITCH},
    {"get me to", SY_SWITCH},
    {"jump to", SY_SWITCH},
    {"show", SY_SWITCH},
    {"show me", SY_SWITCH},
    {"find", SY_SWITCH},
    {"find me", SY_SWITCH},
    {"look at", SY_SWITCH},
    {"see", SY_SWITCH},
    {"view", SY_SWITCH},
    {"raise", SY_SWITCH},
    {"select", SY_SWITCH},
    {"return to", SY_SWITCH},
    {"back to", SY_SWITCH},
    {"flip to", SY_SWITCH},
    {"go back to", SY_SWITCH},
    {"go to", SY_VISIT},
    {"go over to", SY_VISIT},
    {"take me to", SY_VISIT},
    {"take me back to", SY_SWITCH},
    {"navigate to", SY_VISIT},
    {"visit", SY_VISIT},
    {"browse", SY_VISIT},
    {"browse to", SY_VISIT},
    {"head to", SY_VISIT},
    {"open", SY_OPEN},
    {"open up", SY_OPEN},
    {"launch", SY_OPEN},
    {"start", SY_OPEN},
    {"start up", SY_OPEN},
    {"run", SY_OPEN},
    {"fire up", SY_OPEN},
    {"boot up", SY_OPEN},
    {"load", SY_OPEN},
    {"load up", SY_OPEN},
    {"new tab", SY_OPEN},
    {"put", SY_PLACE},
    {"move", SY_PLACE},
    {"place", SY_PLACE},
    {"send", SY_PLACE},
    {"drag", SY_PLACE},
    {"shift", SY_PLACE},
    {"throw", SY_PLACE},
    {"snap", SY_PLACE},
    {"dock", SY_PLACE},
    {"tile", SY_PLACE},
    {"position", SY_PLACE},
    {"resize", SY_PLACE},
    {"make", SY_PLACE},
    {"maximize", SY_PLACE},
    {"maximise", SY_PLACE},
    {"center", SY_PLACE},
    {"centre", SY_PLACE},
    {"set", SY_PLACE},
    {"arrange", SY_PLACE},
    {"stretch", SY_PLACE},
    {"apply", SY_PRESET},
    {"use", SY_PRESET},
    {"set up", SY_PRESET},
    {"enter", SY_PRESET},
    {"restore", SY_PRESET},
    {"list", SY_LIST},
    {"list out", SY_LIST},
    {"enumerate", SY_LIST},
    {"summarize", SY_QUERY},
    {"summarise", SY_QUERY},
    {"count", SY_QUERY},
    {"tell me", SY_QUERY},
    {"explain", SY_QUERY},
    {"describe", SY_QUERY},
    {"minimize", SY_CANNOT},
    {"minimise", SY_CANNOT},
    {"hide", SY_CANNOT},
    {"restart", SY_CANNOT},
    {"reboot", SY_CANNOT},
    {"reload", SY_CANNOT},
    {"refresh", SY_CANNOT},
    {"pin", SY_CANNOT},
    {"unpin", SY_CANNOT},
    {"mute", SY_CANNOT},
    {"unmute", SY_CANNOT},
    {"bookmark", SY_CANNOT},
    {"screenshot", SY_CANNOT},
    {"take a screenshot", SY_CANNOT},
    {"print", SY_CANNOT},
    {"scroll", SY_CANNOT},
    {"type", SY_CANNOT},
    {"click", SY_CANNOT},
    {"copy", SY_CANNOT},
    {"paste", SY_CANNOT},
    {"save", SY_CANNOT},
    {"install", SY_CANNOT},
    {"uninstall", SY_CANNOT},
    {"update", SY_CANNOT},
    {"lock", SY_CANNOT},
    {"play", SY_CANNOT},
    {"pause", SY_CANNOT},
    {"download", SY_CANNOT},
    {"rename", SY_CANNOT},
    {"reopen", SY_CANNOT},
    {"undo", SY_CANNOT},
    {"keep", SY_CANNOT},
    {"leave", SY_CANNOT},
    {"search", SY_CANNOT},
    {"search for", SY_CANNOT},
    {"google", SY_CANNOT},
};

/* How many words the phrase has, if the words begin with it; else 0. */
static size_t fits(const char *phrase, const struct sy_word *words, size_t count) {
    size_t used = 0;
    while (*phrase && used < count) {
        size_t len = strcspn(phrase, " ");
        if (strlen(words[used].text) != len || memcmp(words[used].text, phrase, len) != 0) {
            return 0;
        }
        used++;
        phrase += len + (phrase[len] == ' ');
    }
    return *phrase ? 0 : used;
}

static size_t longest(const char *const *phrases, size_t rows_count, const struct sy_word *words, size_t count) {
    size_t best = 0;
    for (size_t i = 0; i < rows_count; i++) {
        size_t len = fits(phrases[i], words, count);
        best = len > best ? len : best;
    }
    return best;
}

/* One letter too much or too few, or two exchanged; never another letter: "clone" is not "close". */
static bool is_typo(const char *word, const char *verb) {
    size_t len = strlen(word);
    size_t size = strlen(verb);
    size_t i = 0;
    if (strchr(verb, ' ') || size < 4 || word[0] != verb[0] || strcmp(word, verb) == 0) {
        return false;
    }
    while (word[i] && word[i] == verb[i]) {
        i++;
    }
    if (len == size) {
        return len > i + 1 && word[i] == verb[i + 1] && word[i + 1] == verb[i] &&
               strcmp(word + i + 2, verb + i + 2) == 0;
    }
    bool longer = len == size + 1 && strcmp(word + i + 1, verb + i) == 0;
    return size > 4 && (longer || (len + 1 == size && strcmp(word + i, verb + i + 1) == 0));
}

/* The verb's row that the first word is a typo of; only those that are written often enough to be mistyped. */
static const struct row *misspelt(const char *word) {
    static const char *const often[] = {"close",  "switch",   "focus",    "open",  "launch",
                                        "move",   "maximize", "activate", "start", "place",
                                        "resize", "minimize", "list",     "show",  "find"};
    for (size_t i = 0; i < sizeof often / sizeof often[0]; i++) {
        for (size_t j = 0; j < sizeof rows / sizeof rows[0] && is_typo(word, often[i]); j++) {
            if (strcmp(rows[j].phrase, often[i]) == 0) {
                return &rows[j];
            }
        }
    }
    return NULL;
}

enum sy_verb sy_verb_at(const struct sy_word *words, size_t count, size_t *len) {
    enum sy_verb verb = SY_NO_VERB;
    *len = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t fit = fits(rows[i].phrase, words, count);
        if (fit > *len) {
            *len = fit;
            verb = rows[i].verb;
        }
    }
    const struct row *row = *len == 0 && count > 1 ? misspelt(words[0].text) : NULL;
    if (row) {
        *len = 1;
        verb = row->verb;
    }
    return verb;
}

size_t sy_polite(const struct sy_word *words, size_t count) {
    static const char *const phrases[] = {"please",
                                          "pls",
                                          "plz",
                                          "hey",
                                          "hi",
                                          "hello",
                                          "ok",
                                          "okay",
                                          "now",
                                          "just",
                                          "also",
                                          "then",
                                          "and",
                                          "finally",
                                          "kindly",
                                          "can you",
                                          "could you",
                                          "would you",
                                          "will you",
                                          "can we",
                                          "could we",
                                          "could i",
                                          "can i",
                                          "i want to",
                                          "i want you to",
                                          "i would like to",
                                          "i would like you to",
                                          "id like to",
                                          "id like you to",
                                          "i need to",
                                          "i need you to",
                                          "lets",
                                          "let me",
                                          "let us",
                                          "go ahead and",
                                          "computer",
                                          "would you mind",
                                          "quickly",
                                          "maybe",
                                          "well",
                                          "so",
                                          "alright",
                                          "actually",
                                          "let",
                                          "i wanna",
                                          "wanna",
                                          "help me",
                                          "yeah",
                                          "after that",
                                          "afterwards",
                                          "instead"};
    size_t used = 0;
    size_t len;
    do {
        len = longest(phrases, sizeof phrases / sizeof phrases[0], words + used, count - used);
        used += len;
    } while (len > 0 && used < count);
    return used;
}

bool sy_is_question(const struct sy_word *words, size_t count) {
    static const char *const phrases[] = {"what",  "whats", "which", "how", "who", "whose", "when",
                                          "where", "why",   "is",    "are", "do",  "does",  "did",
                                          "was",   "were",  "have",  "has", "am",  "am i",  "should"};
    return longest(phrases, sizeof phrases / sizeof phrases[0], words, count) > 0;
}

bool sy_is_negated(const struct sy_word *words, size_t count) {
    static const char *const phrases[] = {
        "dont",   "do not",   "never",           "not",          "cant",    "cannot", "wont",   "shouldnt",
        "mustnt", "dont you", "without closing", "stop closing", "nothing", "none",   "no need"};
    for (size_t i = 0; i < count; i++) {
        if (longest(phrases, sizeof phrases / sizeof phrases[0], words + i, count - i) > 0) {
            return true;
        }
    }
    return false;
}

bool sy_asks_to_close(const struct sy_words *words) {
    size_t begin = 0;
    size_t len;
    bool closes = false;
    for (size_t i = 0; i < words->count; i++) {
        bool joins = strcmp(words->at[i].text, "and") == 0 || strcmp(words->at[i].text, "then") == 0;
        bool ends = joins || words->at[i].breaks || i + 1 == words->count;
        if (ends) {
            size_t start = begin + sy_polite(words->at + begin, i + 1 - begin);
            closes |= sy_verb_at(words->at + start, words->count - start, &len) == SY_CLOSE;
            closes |= sy_verb_at(words->at + i, 1, &len) == SY_CLOSE;
            begin = i + 1;
        }
    }
    return closes && !sy_is_negated(words->at, words->count);
}
